"""Exact derivatives and transposes of steps of exponential and explicit schemes, compiled.

A step of the scheme from u, with slopes K_j = N(U_j) and U_0 = u,

    U_i = e^(c_i z) u + dt sum_j a_ij(z) K_j,    u' = e^z u + dt sum_j b_j(z) K_j,    z = dt L,

is differentiated in u, in parameters of N, and in L, by phi_j' = phi_j - j phi_(j+1). Its
transpose, with respect to the inner product of L^2, takes l' to l:

    k_j = b_j l' + sum_(i > j) a_ij l_i,    l_i = DN(U_i)* k_i,    l = e^z l' + sum_i e^(c_i z) l_i

L is M/kappa, with kappa at the beginning of the step, plus the rotation by natural frequencies; if
kappa changes within the step, N contains the rest of M/kappa. If M is diagonal only in an
eigenbasis, exponential schemes form their sums in that basis, and transposed sums in its `dual`.

The state and its tangents are the members of one row of `steppers.rows`, which one call of N
evaluates together; weights and sums are computed as in ordinary steps. A second row contains the
derivatives of the weights by L, a third one the dual basis. Numbers are floats, alternating real
and imaginary parts of complex coefficients, unless L is complex.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from ..core.annotations import AnyObject, PassedOn
from ..lowlevel.callbacks import evaluate
from ..lowlevel.compilation import INNER, njit
from ..lowlevel.records import Layout, numbers_at
from ..steppers import Scheme
from ..steppers.advance import EQUATION_ROW
from ..steppers.attempt import (
    HIGHEST_PHI,
    Number,
    Row,
    add_product,
    combine,
    copy,
    phi_functions,
    phi_slopes,
    weigh,
)
from ..steppers.dense_output import Interpolant, ParabolicInterpolant, interpolation_terms
from ..steppers.eigenbasis import BACK, COLUMN_BLOCK, FORTH, Eigenbasis
from ..steppers.rows import Rows
from ..steppers.schemes import ParabolicOutput

Array = np.ndarray


class Diffusion(NamedTuple):
    """The operator M of the noise on the modes of a space, L = M/kappa + rotation.

    Attributes
    ----------
    rates : ndarray, (modes,)
        Real eigenvalues of M; with a basis one for every float of the coefficients.
    basis, dual : Eigenbasis
        Eigenbases of M and of its transpose in the inner product of L^2; both are empty where M
        is diagonal in the coefficients.
    parseval : ndarray, (floats,)
        Weights of the inner product of L^2.
    rotation : ndarray, (modes,), or 0
        The term that frequencies add to M/kappa; only without a basis.
    """

    rates: Array
    basis: Eigenbasis
    dual: Eigenbasis
    parseval: Array
    rotation: Array | float = 0.0


def dual_of(basis: Eigenbasis, parseval: Array) -> Eigenbasis:
    """The eigenbasis of the transpose of E diag E^-1 in the inner product sum parseval a b.

    With P = diag(parseval) its matrices are E^T P and P^-1 E^-T.
    """
    blocks = []
    for start, end, offset in zip(basis.starts[:-1], basis.starts[1:], basis.offsets, strict=True):
        coordinates, size = basis.order[start:end], int(end - start)
        length = -(-size // COLUMN_BLOCK) * COLUMN_BLOCK * size
        forward, inverse = (
            columns[offset : offset + length].reshape(-1, size)[:size].T
            for columns in (basis.forth, basis.back)
        )
        weights = parseval[coordinates]
        blocks.append((coordinates, inverse.T * weights, forward.T / weights[:, None]))
    return Eigenbasis.of(blocks)


class NoiseStrengths(NamedTuple):
    """The noise strength 1/kappa along n steps of a scheme with s stages.

    Attributes
    ----------
    at_start : ndarray, (n,)
        1/kappa at the beginning of each step.
    excess : ndarray, (n, s + 2)
        1/kappa at u, at the stages u_1, ..., u_s and at u', minus its value in `at_start`.
    """

    at_start: Array
    excess: Array

    @classmethod
    def constant(cls, strength: float, steps: int, scheme: Scheme) -> "NoiseStrengths":
        return cls(np.full(steps, strength), np.zeros((steps, len(scheme.nodes) + 2)))

    def part(self, first: int, end: int) -> "NoiseStrengths":
        """1/kappa along the steps with index from `first` to `end` - 1."""
        return NoiseStrengths(self.at_start[first:end], self.excess[first:end])


class DifferentiatedNonlinear(Protocol):
    """N with its derivatives along tangents, or its transpose, callable from compiled code."""

    address: int
    context: int
    time: Array

    def check(self) -> None: ...


LINEARISED = Layout(
    "Linearised",
    {
        "row": int,  # address of the row of the state and its tangents
        "derived": int,  # address of the row whose weights are derivatives by L
        "dual": int,  # address of the row with the dual basis
        "rates": int,  # (modes,) eigenvalues of M
        "rotation": int,  # (modes,) the rotation, L - M/kappa
        "rotates": int,  # whether the rotation is not 0
        "strength": float,  # 1/kappa of L in the exponentials
        "added": int,  # (modes,) workspace: the part of L that N contains
        "parameters": int,  # p
        "moved": int,  # (p, modes) dL of each tangent, or by each parameter
        "moves": int,  # (p,) whether dL of the tangent is not 0
        "moving": int,  # whether some dL is not 0
        "pairing": int,  # (modes,) weights of the inner product, 1 in a basis
        "count": int,  # n
        "steps": int,  # (n, 2) start time and length of each step
        "at_start": int,  # (n,) 1/kappa at the start of each step
        "excess": int,  # (n, s + 2) excess of 1/kappa: see NoiseStrengths
        "stages": int,  # (n, s + 1, modes) recorded stages of the state; 0 for none
        "slopes": int,  # (n, s + 1, modes) N of the stages, in the basis of sums
        "adjoint": int,  # (modes,) l
        "gradient": int,  # (p,) derivatives by parameters
        "pulled": int,  # (s + 2, modes) workspace: l_i, and l' last, in the basis of sums
        "pair": int,  # (2, modes) workspace: arguments of N*
        "result": int,  # (modes + p) workspace: values of N*
        "sums": int,  # (2, modes) workspace
    },
)
LinearisedRecord = AnyObject  # a LINEARISED record, in compiled code
_linearised_at = LINEARISED.at
_row_at = EQUATION_ROW.at


class DifferentiatedScheme:
    """A scheme for du/dt = L u + N(u, t) with tangents, or its transpose.

    Parameters
    ----------
    scheme : Scheme
    diffusion : Diffusion
        The operator M and the rotation of L.
    nonlinear : DifferentiatedNonlinear
        N with its derivatives along tangents, or its transpose.
    slopes : ndarray, (p, modes)
        The derivative of L in the direction of each tangent, or by each parameter.
    start : float
        The time from which the times of steps are counted.
    """

    def __init__(
        self,
        scheme: Scheme,
        diffusion: Diffusion,
        nonlinear: DifferentiatedNonlinear,
        slopes: Array,
        start: float = 0.0,
    ):
        """Tables of a scheme for steps of changes and, backwards, of linear forms."""
        self.scheme, self._nonlinear = scheme, nonlinear  # keeps its address valid
        basis, floats = diffusion.basis, diffusion.parseval.size
        rotation = np.zeros(diffusion.rates.size) + diffusion.rotation
        is_complex = np.iscomplexobj(rotation) or np.iscomplexobj(slopes)
        self._dtype = np.dtype(complex if is_complex else float)
        modes, self._zero = floats // (2 if is_complex else 1), self._dtype.type(0).item()

        def per_number(factors: Array) -> Array:
            factors = np.asarray(factors, dtype=self._dtype)
            return np.repeat(factors, modes // factors.shape[-1], axis=-1)

        self._rates, self._rotation = per_number(diffusion.rates), per_number(rotation)
        self._moved = per_number(np.asarray(slopes).reshape(len(slopes), diffusion.rates.size))
        stages, p = len(scheme.nodes) + 1, len(slopes)
        self._describe_rows(diffusion, p, modes, start)
        self._memory = self._rows.memory_of(0)
        parseval = diffusion.parseval[:: floats // modes]
        self._constants = {
            "rates": self._rates,
            "rotation": self._rotation,
            "added": np.empty(modes, self._dtype),
            "moved": np.ascontiguousarray(self._moved),
            "moves": self._moved.any(axis=-1).astype(np.int64),
            "pairing": np.ones(modes) if basis.order.size else np.array(parseval, dtype=float),
            "pulled": np.empty((stages + 1, modes), self._dtype),
            "pair": np.empty((2, modes), self._dtype),
            "result": np.empty(floats + p),
            "sums": np.empty((2, modes), self._dtype),
        }
        self._record = np.zeros(1, LINEARISED.dtype)
        records = (rows.records for rows in (self._rows, self._derived, self._dual))
        self._fill(**dict(zip(("row", "derived", "dual"), records, strict=True)))
        self._fill(parameters=p, rotates=bool(rotation.any()), moving=bool(self._moved.any()))
        self._fill(strength=np.nan, **self._constants)

    def _describe_rows(self, diffusion: Diffusion, tangents: int, modes: int, start: float) -> None:
        """Rows of the state with its tangents, of derivatives by L, and in the dual basis."""

        def rows(members: int, basis: Eigenbasis) -> Rows:
            used, shape = basis if basis.order.size else None, (members, modes)
            return Rows(self.scheme, self._rates[None], shape, self._dtype, start=start, basis=used)

        self._rows, self._derived = rows(1 + tangents, diffusion.basis), rows(1, diffusion.basis)
        self._dual, row, N = rows(1, diffusion.dual), self._rows.records[0], self._nonlinear
        row["nonlinear"], row["context"], row["time"] = N.address, N.context, N.time.ctypes.data
        derived = self._derived.records
        derived["derived"], derived["linear"] = 1, row["linear"]
        entries = int((self.scheme.table.entries[:, 0] < row["last"]).sum())
        for records in (self._rows.records, derived):  # without the rows of error estimates
            records["rows"], records["entry_count"] = row["last"], entries

    def _fill(self, **values: PassedOn) -> None:
        """Write numbers, and addresses of arrays, into the record; the caller keeps the arrays."""
        for name, value in values.items():
            self._record[name] = value.ctypes.data if isinstance(value, Array) else value

    def _set_steps(self, steps: Array, noise: NoiseStrengths, **values: PassedOn) -> int:
        """Set the steps and further fields of the record; returns its address."""
        self._steps = np.ascontiguousarray(steps), *map(np.ascontiguousarray, noise)
        self._fill(
            count=len(steps), **dict(zip(("steps", *noise._fields), self._steps, strict=True))
        )
        self._fill(**values)
        return int(self._record.ctypes.data)

    # Forwards ------------------------------------------------------------------------------

    def advance(self, state: Array, steps: Array, noise: NoiseStrengths) -> Array:
        """The state and tangents (1 + p, modes) after steps (n, 2); see `within`."""
        self._memory.u[0] = np.ascontiguousarray(state).view(self._dtype)
        _advance(self._set_steps(steps, noise, stages=0, slopes=0), self._zero)
        self._nonlinear.check()
        self._last = steps[-1], noise.at_start[-1]
        return self._memory.u[0].copy().view(state.dtype)

    def within(self, share: float, excess_at: Callable[[float], float], dtype: np.dtype) -> Array:
        """State and tangents (1 + p, modes) after the fraction `share` of the last step.

        `excess_at` gives 1/kappa at a time, minus its value at the start of the step.
        """
        (t, dt), strength = self._last
        (new, u), slopes, dense = self._memory.u, self._memory.slopes, self.scheme.dense
        if isinstance(dense, ParabolicOutput):
            basis, linear = self._rows.basis, strength * self._rates + self._rotation
            ends = basis.into(u), basis.into(new)
            interpolant = ParabolicInterpolant(dense, linear[None], *ends, slopes, dt)
            rows, derivatives = interpolant(share), interpolant.derivatives[:, 0]
            if self._moved.any():
                change = _parabolic_change(linear, ends[0][0], derivatives, dt, share)
                rows[1:] += self._moved * change
            return basis.out_of(rows).view(dtype)
        assert dense is not None
        address = int(self._record.ctypes.data)

        def velocity(y: Array, time: float) -> Array:
            """Slope L u + N(u) at y and a time."""
            slope, y = np.empty_like(u), np.ascontiguousarray(y)
            _slope_at(address, y.ctypes.data, slope.ctypes.data, time, excess_at(time), self._zero)
            self._nonlinear.check()
            return slope.view(float)

        self._fill(strength=strength)
        flat = np.ascontiguousarray(np.moveaxis(slopes, 1, 0)).view(float)
        ends = u.view(float), new.view(float)
        terms = interpolation_terms(dense, velocity, *ends, flat.reshape(len(flat), -1), t, dt)
        return Interpolant(ends[0], terms)(share).view(dtype)

    # Backwards -----------------------------------------------------------------------------

    def recorded(self, u: Array, steps: Array, noise: NoiseStrengths) -> tuple[Array, Array]:
        """Stages and slopes (n, s + 1, modes) of steps (n, 2) from u (modes,), without tangents."""
        self._memory.u[0, 0] = np.ascontiguousarray(u).view(self._dtype)
        shape = len(steps), len(self.scheme.nodes) + 1, self._memory.stage.size
        stages, slopes = np.empty(shape, self._dtype), np.empty(shape, self._dtype)
        _advance(self._set_steps(steps, noise, stages=stages, slopes=slopes), self._zero)
        self._nonlinear.check()
        return stages, slopes

    def pulled_back(
        self,
        adjoint: Array,
        steps: Array,
        noise: NoiseStrengths,
        recorded: tuple[Array, Array],
        gradient: Array,
    ) -> Array:
        """The adjoint l at the start of the steps, (modes,), from `adjoint`, l' at their end.

        `recorded` are the stages and slopes from the method of this name. The derivatives by each
        parameter are added to `gradient`, (p,).
        """
        l = np.array(adjoint, order="C")
        stages, slopes = recorded
        values = {"stages": stages, "slopes": slopes, "adjoint": l, "gradient": gradient}
        _pull_back(self._set_steps(steps, noise, **values), self._zero)
        self._nonlinear.check()
        return l


def _parabolic_change(linear: Array, u: Array, derivatives: Array, dt: float, s: float) -> Array:
    """The derivative by L of the interpolated state at the fraction s of a step, (modes,).

    `derivatives` (3, modes) are those of N in the interpolant.
    """

    def change(share: float) -> Array:
        """The derivative by L of the expansion of the state at the fraction `share`."""
        phi = np.empty((linear.size, HIGHEST_PHI + 1), linear.dtype)
        _slopes_of_phi(share * dt * linear, phi)
        total = share * dt * phi[:, 0] * u
        for j, derivative in enumerate(derivatives, start=1):
            total = total + share ** (j + 1) * dt**2 * phi[:, j] * derivative
        return total

    return change(s) - s * s * (3 - 2 * s) * change(1.0)


@njit(cache=True)
def _slopes_of_phi(z: Array, slopes: Array) -> None:
    for k in range(z.size):
        phi_functions(z[k], slopes[k])
        phi_slopes(z[k], slopes[k], 1.0)


@njit(**INNER)
def _weigh(run: LinearisedRecord, row: Row, dt: float, strength: float, zero: Number) -> None:
    """Compute the weights for this length of step and 1/kappa, if they have changed."""
    if row.weighed_step == dt and run.strength == strength:
        return
    run.strength = strength
    if row.added_rows == 0:
        rates, rotation = numbers_at(run.rates, 0, zero), numbers_at(run.rotation, 0, zero)
        linear = numbers_at(row.linear, 0, zero)
        for k in range(row.modes):
            linear[k] = strength * rates[k] + rotation[k]
        if run.moving:
            weigh(_row_at(run.derived), dt, zero)
    weigh(row, dt, zero)


@njit(**INNER)
def _changed(row: Row, direction: int, source: int, target: int, zero: Number) -> None:
    """Transform into (FORTH) or out of (BACK) the basis of sums; a copy without a basis."""
    if row.change != 0 and row.added_rows == 0:
        evaluate(row.change, row.basis, direction, source, target)
    else:
        copy(row.modes, source, target, zero)


@njit(**INNER)
def _nonlinear_has_linear(run: LinearisedRecord, row: Row, excess: float, zero: Number) -> bool:
    """Write the part of L that N contains to `added`; returns whether it is not 0."""
    explicit = row.added_rows > 0
    total, rotates = run.strength + excess if explicit else excess, explicit and run.rotates != 0
    if total == 0.0 and not rotates:
        return False
    rates, rotation = numbers_at(run.rates, 0, zero), numbers_at(run.rotation, 0, zero)
    added = numbers_at(run.added, 0, zero)
    for k in range(row.modes):
        added[k] = total * rates[k]
        if rotates:
            added[k] += rotation[k]
    return True


@njit(**INNER)
def _slope(
    run: LinearisedRecord, row: Row, u: int, slope: int, t: float, excess: float, zero: Number
) -> None:
    """N of the state and its tangents at the time t, plus L u for an explicit scheme.

    `u` and `slope` are addresses of input and result.
    """
    numbers_at(row.time, 0, 0.0)[0] = row.origin + t
    evaluate(row.nonlinear, row.context, 0, u, slope)
    if _nonlinear_has_linear(run, row, excess, zero):
        for member in range(row.members):
            offset = member * row.size
            add_product(row, run.added, 0, u + offset, slope + offset, zero)
    if row.added_rows > 0:
        moves = numbers_at(run.moves, 0, 0)
        for p in range(row.members - 1):
            if moves[p]:
                add_product(row, run.moved, p, u, slope + (p + 1) * row.size, zero)


@njit(cache=True)
def _slope_at(address: int, u: int, slope: int, t: float, excess: float, zero: Number) -> None:
    run = _linearised_at(address)
    _slope(run, _row_at(run.row), u, slope, t, excess, zero)


@njit(**INNER)
def _keep_slopes(row: Row, slope: int, stage: int, zero: Number) -> None:
    """Store the slopes of all members as those of a stage, in the basis of sums."""
    for member in range(row.members):
        stored = row.slopes + (member * (row.last + 1) + stage) * row.size
        _changed(row, FORTH, slope + member * row.size, stored, zero)


@njit(cache=True)
def _advance(address: int, zero: Number) -> None:
    """Advance u over all steps; stages and slopes of the state are recorded if asked for."""
    run = _linearised_at(address)
    row, derived = _row_at(run.row), _row_at(run.derived)
    size, stages, block = row.size, row.last, row.members * row.size
    moves, nodes = numbers_at(run.moves, 0, 0), numbers_at(row.nodes, 0, 0.0)
    decay_nodes, steps = numbers_at(row.decay_nodes, 0, 0), numbers_at(run.steps, 0, 0.0)
    strengths, excess = numbers_at(run.at_start, 0, 0.0), numbers_at(run.excess, 0, 0.0)
    is_modal, scaled = row.change != 0 and row.added_rows == 0, run.moving and row.added_rows == 0
    u, start, slope, first = row.u, row.u + block, row.slope, row.slope + block
    for n in range(run.count):
        t, dt, of_step, offset = steps[2 * n], steps[2 * n + 1], n * (stages + 1), n * stages * size
        _weigh(run, row, dt, strengths[n], zero)
        if n == 0 or excess[of_step - 1] != 0:  # the part of L in N has changed
            _slope(run, row, u, slope, t, excess[of_step], zero)
            _keep_slopes(row, slope, 0, zero)
        else:
            for member in range(row.members):
                first_slope = row.slopes + member * (stages + 1) * size
                copy(row.modes, first_slope + stages * size, first_slope, zero)
        copy(row.members * row.modes, u, start, zero)
        for member in range(row.members):
            _changed(row, FORTH, start + member * size, first + member * size, zero)
        if run.stages:
            copy(row.modes, u, run.stages + offset, zero)
        for i in range(stages):
            indices = i * row.linear_modes, i * row.slots * row.linear_modes, i * row.slots
            if scaled:
                combine(derived, row.stage, first, *indices, row.slopes, zero)
            for member in range(row.members):
                target = u + member * size
                sums, slopes = row.modal if is_modal else target, member * (stages + 1) * size
                combine(row, sums, first + member * size, *indices, row.slopes + slopes, zero)
                if scaled and member > 0 and moves[member - 1]:
                    f, change_of_L = numbers_at(sums, 0, zero), numbers_at(run.moved, 0, zero)
                    change = numbers_at(row.stage, 0, zero)
                    for k in range(row.modes):
                        f[k] += change_of_L[(member - 1) * row.modes + k] * change[k]
                if is_modal:
                    evaluate(row.change, row.basis, BACK, sums, target)
            if run.stages and i < stages - 1:
                copy(row.modes, u, run.stages + offset + (i + 1) * size, zero)
            time = t + nodes[decay_nodes[i]] * dt
            _slope(run, row, u, slope, time, excess[of_step + i + 1], zero)
            _keep_slopes(row, slope, i + 1, zero)
        if run.slopes:
            copy(stages * row.modes, row.slopes, run.slopes + offset, zero)


@njit(**INNER)
def _add_transposed(
    row: Row, factors: int, first: float, a: int, target: int, zero: Number
) -> None:
    """target += conj(factor) a, with the factors from `first` on: one, or one a mode."""
    w, f, g = numbers_at(factors, first, zero), numbers_at(a, 0, zero), numbers_at(target, 0, zero)
    if row.linear_modes < row.modes:
        factor = np.conj(w[0])
        for k in range(row.modes):
            g[k] += factor * f[k]
    else:
        for k in range(row.modes):
            g[k] += np.conj(w[k]) * f[k]


@njit(**INNER)
def _add_pairings(run: LinearisedRecord, row: Row, a: int, b: int, zero: Number) -> None:
    """Add <a, dL b>, for real functions a and b, to the gradient by each parameter."""
    moves, gradient = numbers_at(run.moves, 0, 0), numbers_at(run.gradient, 0, 0.0)
    f, g, weights = numbers_at(a, 0, zero), numbers_at(b, 0, zero), numbers_at(run.pairing, 0, 0.0)
    for p in range(run.parameters):
        if moves[p]:
            total, slope = 0.0, numbers_at(run.moved, p * row.modes, zero)
            for k in range(row.modes):
                total += weights[k] * (np.conj(f[k]) * (slope[k] * g[k])).real
            gradient[p] += total


@njit(**INNER)
def _pull_back_stage(
    run: LinearisedRecord, row: Row, dual: Row, stage: int, t: float, excess: float, zero: Number
) -> None:
    """Apply N* at a stage to k, the second entry of `pair`.

    The result is written to `result`; derivatives by parameters are added to the gradient.
    """
    k, gradient = run.pair + row.size, numbers_at(run.gradient, 0, 0.0)
    copy(row.modes, stage, run.pair, zero)
    numbers_at(row.time, 0, 0.0)[0] = row.origin + t
    evaluate(row.nonlinear, row.context, 0, run.pair, run.result)
    by_parameter = numbers_at(run.result, row.floats, 0.0)
    for p in range(run.parameters):
        gradient[p] += by_parameter[p]
    if _nonlinear_has_linear(run, row, excess, zero):
        added = numbers_at(run.added, 0, zero)
        for i in range(row.modes):
            added[i] = np.conj(added[i])
        add_product(dual, run.added, 0, k, run.result, zero)
    if row.added_rows > 0 and run.moving:
        if row.change == 0:
            _add_pairings(run, row, k, stage, zero)
        else:
            evaluate(dual.change, dual.basis, FORTH, k, dual.modal)
            evaluate(row.change, row.basis, FORTH, stage, row.modal)
            _add_pairings(run, row, dual.modal, row.modal, zero)


@njit(cache=True)
def _pull_back(address: int, zero: Number) -> None:
    """Pull `adjoint` back from the end of the steps to their start; adds to the gradient."""
    run = _linearised_at(address)
    row, derived, dual = _row_at(run.row), _row_at(run.derived), _row_at(run.dual)
    size, stages, modes, width = row.size, row.last, row.modes, row.linear_modes
    columns, nodes = numbers_at(row.columns, 0, 0), numbers_at(row.nodes, 0, 0.0)
    decay_nodes, steps = numbers_at(row.decay_nodes, 0, 0), numbers_at(run.steps, 0, 0.0)
    strengths, excess = numbers_at(run.at_start, 0, 0.0), numbers_at(run.excess, 0, 0.0)
    f, first, scaled = numbers_at(run.sums, 0, zero), run.sums + size, row.added_rows == 0
    for n in range(run.count - 1, -1, -1):
        t, dt, offset = steps[2 * n], steps[2 * n + 1], n * stages * size
        _weigh(run, row, dt, strengths[n], zero)
        _changed(dual, FORTH, run.adjoint, run.pulled + stages * size, zero)
        for j in range(stages - 1, -1, -1):
            for k in range(modes):
                f[k] = zero
            for i in range(j, stages):  # row i makes the stage i + 1, the last one u'
                for slot in range(row.slots):
                    if columns[i * row.slots + slot] == j:
                        index, l = (i * row.slots + slot) * width, run.pulled + (i + 1) * size
                        _add_transposed(row, row.weights, index, l, run.sums, zero)
            _changed(dual, BACK, run.sums, run.pair + size, zero)
            time = t if j == 0 else t + nodes[decay_nodes[j - 1]] * dt
            stage, strength = run.stages + offset + j * size, excess[n * (stages + 1) + j]
            _pull_back_stage(run, row, dual, stage, time, strength, zero)
            _changed(dual, FORTH, run.result, run.pulled + j * size, zero)
        copy(modes, run.pulled, run.sums, zero)
        _changed(row, FORTH, run.stages + offset, first, zero)
        for i in range(stages):
            l = run.pulled + (i + 1) * size
            _add_transposed(row, row.decay, i * width, l, run.sums, zero)
            if scaled and run.moving:
                indices = i * width, i * row.slots * width, i * row.slots
                combine(derived, row.stage, first, *indices, run.slopes + offset, zero)
                _add_pairings(run, row, l, row.stage, zero)
        _changed(dual, BACK, run.sums, run.adjoint, zero)
