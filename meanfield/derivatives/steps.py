"""Steps of an exponential or explicit scheme, differentiated exactly, and transposed: compiled.

A step of the scheme from u, with slopes K_j = N(U_j) and U_0 = u,

    U_i = e^(c_i z) u + dt sum_j a_ij(z) K_j,    u' = e^z u + dt sum_j b_j(z) K_j,    z = dt L,

is differentiated in u, in parameters of N, and in L, by phi_j' = phi_j - j phi_(j+1). Its
transpose, with respect to the inner product of L^2, takes l' to l:

    k_j = b_j l' + sum_(i > j) a_ij l_i,    l_i = DN(U_i)* k_i,    l = e^z l' + sum_i e^(c_i z) l_i

L is M/kappa, with kappa at the beginning of a step, and the rotation by natural frequencies; where
kappa changes within the step, N has the rest of M/kappa. Where M is diagonal in an eigenbasis
alone, sums of exponential schemes are taken in it, and their transposes in its `dual`.

The state and its tangents are the members of one row of `steppers.rows`, of which N moves all in
one call; weights and sums are those of ordinary steps. A second row has the derivatives of the
weights by L, a third one the dual basis. Numbers are floats, real and imaginary parts of complex
coefficients in turn, unless L is complex.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..lowlevel.callbacks import evaluate
from ..lowlevel.compilation import njit
from ..lowlevel.records import Layout, numbers_at
from ..steppers import Scheme
from ..steppers.advance import EQUATION_ROW
from ..steppers.attempt import (
    HIGHEST_PHI,
    IN_STEP,
    Number,
    Row,
    add_product,
    combine,
    copy,
    phi_functions,
    phi_slopes,
    weigh,
)
from ..steppers.dense_output import Interpolant, ParabolicInterpolant, row_of
from ..steppers.eigenbasis import BACK, COLUMN_BLOCK, FORTH, NO_BASIS, Eigenbasis
from ..steppers.rows import Rows
from ..steppers.schemes import ParabolicOutput

Array = np.ndarray


class Diffusion(NamedTuple):
    """M on the modes of a space.

    Attributes
    ----------
    rates : ndarray, (modes,)
        Its eigenvalues, real; in a basis one for every float of the coefficients.
    basis, dual : Eigenbasis
        In which M is diagonal, and its transpose in the inner product of L^2: without entries
        where M is diagonal in the coefficients.
    parseval : ndarray, (floats,)
        Weights of that inner product.
    rotation : ndarray, (modes,), or 0
        The term that frequencies add to M/kappa; without a basis only.
    """

    rates: Array
    basis: Eigenbasis
    dual: Eigenbasis
    parseval: Array
    rotation: Array | float = 0.0

    @classmethod
    def of(
        cls,
        rates: Array,
        basis: Eigenbasis | None,
        parseval: Array,
        rotation: Array | None = None,
    ) -> "Diffusion":
        if basis is None:
            return cls(rates, NO_BASIS, NO_BASIS, parseval, 0.0 if rotation is None else rotation)
        return cls(rates, basis, dual_of(basis, parseval), parseval)


def dual_of(basis: Eigenbasis, parseval: Array) -> Eigenbasis:
    """The basis in which E diag E^-1 is transposed, (a, b) = sum parseval a b: E^T P, P^-1 E^-T."""
    blocks = []
    for start, end, at in zip(basis.starts[:-1], basis.starts[1:], basis.offsets, strict=True):
        coordinates, size = basis.order[start:end], int(end - start)
        length = -(-size // COLUMN_BLOCK) * COLUMN_BLOCK * size
        forth, back = (
            columns[at : at + length].reshape(-1, size)[:size].T
            for columns in (basis.forth, basis.back)
        )
        weights = parseval[coordinates]
        blocks.append((coordinates, back.T * weights, forth.T / weights[:, None]))
    return Eigenbasis.of(blocks)


class NoiseStrengths(NamedTuple):
    """1/kappa along some steps.

    Attributes
    ----------
    at_start : ndarray, (n,)
        1/kappa at the beginning of each step.
    excess : ndarray, (n, s + 2)
        How much larger it is at the stages u, u_1, ..., u_s and u'.
    """

    at_start: Array
    excess: Array

    @classmethod
    def constant(cls, strength: float, steps: int, scheme: Scheme) -> "NoiseStrengths":
        return cls(np.full(steps, strength), np.zeros((steps, len(scheme.nodes) + 2)))

    def part(self, first: int, end: int) -> "NoiseStrengths":
        """1/kappa along steps from the number `first` on, before `end`."""
        return NoiseStrengths(self.at_start[first:end], self.excess[first:end])


class DifferentiatedNonlinear(Protocol):
    """N with its derivatives along tangents, or its transpose, which compiled code calls."""

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
        "rotation": int,  # (modes,) the rest of L
        "rotates": int,  # whether that is not 0
        "strength": float,  # 1/kappa that L in the exponentials has
        "added": int,  # (modes,) the part of L that N has: memory
        "parameters": int,  # p
        "moved": int,  # (p, modes) dL of each tangent, or by each parameter
        "moves": int,  # (p,) whether it is not 0
        "moving": int,  # whether one of them is not 0
        "pairing": int,  # (modes,) weights of the inner product, 1 in a basis
        "count": int,  # n
        "steps": int,  # (n, 2) beginning and length of steps
        "at_start": int,  # (n,) 1/kappa
        "excess": int,  # (n, s + 2)
        "stages": int,  # (n, s + 1, modes) stages of the state, kept where the address is not 0
        "slopes": int,  # (n, s + 1, modes) and N of them, in the basis of sums
        "adjoint": int,  # (modes,) l
        "gradient": int,  # (p,) derivatives by parameters
        "pulled": int,  # (s + 2, modes) l_i, and l' last, in the basis of sums: memory
        "pair": int,  # (2, modes) arguments of N*: memory
        "result": int,  # (modes + p) N*: memory
        "sums": int,  # (2, modes) memory
    },
)
LinearisedRecord = Any  # that record, in compiled code
_linearised_at = LINEARISED.at
_row_at = EQUATION_ROW.at


class DifferentiatedScheme:
    """A scheme for du/dt = L u + N(u, t), with tangents or transposed.

    Parameters
    ----------
    scheme : Scheme
    diffusion : Diffusion
        M, L being M/kappa.
    nonlinear : DifferentiatedNonlinear
        N with its derivatives along, or with its transpose.
    moved : ndarray, (p, modes)
        The derivative of L in the direction of each tangent, or by each parameter.
    start : float
        The time at which steps are counted from 0.
    """

    def __init__(
        self,
        scheme: Scheme,
        diffusion: Diffusion,
        nonlinear: DifferentiatedNonlinear,
        moved: Array,
        start: float = 0.0,
    ):
        self.scheme, self._nonlinear = scheme, nonlinear  # lives as long as its address is used
        basis, floats = diffusion.basis, diffusion.parseval.size
        rotation = np.zeros(diffusion.rates.size) + diffusion.rotation
        turned = np.iscomplexobj(rotation) or np.iscomplexobj(moved)
        self._dtype = np.dtype(complex if turned else float)
        modes, self._zero = floats // (2 if turned else 1), self._dtype.type(0).item()

        def per_number(factors: Array) -> Array:
            factors = np.asarray(factors, dtype=self._dtype)
            return np.repeat(factors, modes // factors.shape[-1], axis=-1)

        self._rates, self._rotation = per_number(diffusion.rates), per_number(rotation)
        self._moved = per_number(np.asarray(moved).reshape(len(moved), diffusion.rates.size))
        linear = self._rates[None]

        def rows(members: int, of: Eigenbasis) -> Rows:
            based = of if of.order.size else None
            return Rows(scheme, linear, (members, modes), self._dtype, start=start, basis=based)

        self._rows, derived = rows(1 + len(moved), basis), rows(1, basis)
        self._dual = rows(1, diffusion.dual)
        self._memory, row = self._rows.memory_of(0), self._rows.records[0]
        row["nonlinear"], row["context"] = nonlinear.address, nonlinear.context
        row["time"] = nonlinear.time.ctypes.data
        derived.records["derived"], derived.records["linear"] = 1, row["linear"]
        entries = int((scheme.table.entries[:, 0] < row["last"]).sum())
        for records in (self._rows.records, derived.records):  # without estimates
            records["rows"], records["entry_count"] = row["last"], entries
        parseval = diffusion.parseval[:: floats // modes]
        self._derived, stages, p = derived, int(row["last"]), len(moved)
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
        self._fill(row=self._rows.records, derived=derived.records, dual=self._dual.records)
        self._fill(parameters=p, rotates=bool(rotation.any()), moving=bool(self._moved.any()))
        self._fill(strength=np.nan, **self._constants)

    def _fill(self, **values: Any) -> None:
        """Write numbers, and addresses of arrays, into the record; the caller keeps the arrays."""
        for name, value in values.items():
            self._record[name] = value.ctypes.data if isinstance(value, Array) else value

    def _along(self, steps: Array, noise: NoiseStrengths, **values: Any) -> int:
        """Set the steps and further fields of the record; its address."""
        self._steps = np.ascontiguousarray(steps), *map(np.ascontiguousarray, noise)
        self._fill(
            count=len(steps), **dict(zip(("steps", *noise._fields), self._steps, strict=True))
        )
        self._fill(**values)
        return int(self._record.ctypes.data)

    # Forwards ------------------------------------------------------------------------------

    def advance(self, state: Array, steps: Array, noise: NoiseStrengths) -> Array:
        """The state and tangents (1 + p, modes) after steps (n, 2), of which the last is kept."""
        self._memory.u[0] = np.ascontiguousarray(state).view(self._dtype)
        _advance(self._along(steps, noise, stages=0, slopes=0), self._zero)
        self._nonlinear.check()
        self._last = steps[-1], noise.at_start[-1]
        return self._memory.u[0].copy().view(state.dtype)

    def within(self, part: float, excess_at: Callable[[float], float], dtype: Any) -> Array:
        """State and tangents (1 + p, modes) after this part of the last step.

        `excess_at` gives the excess of 1/kappa at other times of the step than those of stages.
        """
        (t, dt), strength = self._last
        (new, u), slopes, dense = self._memory.u, self._memory.slopes, self.scheme.dense
        if isinstance(dense, ParabolicOutput):
            basis, linear = self._rows.basis, strength * self._rates + self._rotation
            ends = basis.into(u), basis.into(new)
            rows = ParabolicInterpolant(dense, linear[None], *ends, slopes, dt)(part)
            if self._moved.any():
                change = _parabolic_change(dense, linear, ends[0][0], slopes[0], dt, part)
                rows[1:] += self._moved * change
            return basis.out_of(rows).view(dtype)
        assert dense is not None
        address = int(self._record.ctypes.data)

        def velocity(y: Array, time: float) -> Array:
            slope, y = np.empty_like(u), np.ascontiguousarray(y)
            _slope_at(address, y.ctypes.data, slope.ctypes.data, time, excess_at(time), self._zero)
            self._nonlinear.check()
            return slope.view(float)

        self._fill(strength=strength)
        flat = np.ascontiguousarray(np.moveaxis(slopes, 1, 0)).view(float)
        ends = u.view(float), new.view(float)
        return Interpolant(dense, velocity, *ends, flat.reshape(len(flat), -1), t, dt)(part).view(
            dtype
        )

    # Backwards -----------------------------------------------------------------------------

    def recorded(self, u: Array, steps: Array, noise: NoiseStrengths) -> tuple[Array, Array]:
        """Stages and slopes (n, s + 1, modes) of steps (n, 2) from u (modes,), without tangents."""
        self._memory.u[0, 0] = np.ascontiguousarray(u).view(self._dtype)
        shape = len(steps), len(self.scheme.nodes) + 1, self._memory.stage.size
        stages, slopes = np.empty(shape, self._dtype), np.empty(shape, self._dtype)
        _advance(self._along(steps, noise, stages=stages, slopes=slopes), self._zero)
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
        """l at the beginning of the steps from l' at their end.

        The derivatives by each parameter are added to `gradient`, (p,).
        """
        l = np.array(adjoint, order="C")
        stages, slopes = recorded
        values = {"stages": stages, "slopes": slopes, "adjoint": l, "gradient": gradient}
        _pull_back(self._along(steps, noise, **values), self._zero)
        self._nonlinear.check()
        return l


def _parabolic_change(
    dense: ParabolicOutput, linear: Array, u: Array, slopes: Array, dt: float, s: float
) -> Array:
    """The derivative by L of the state within a step, (modes,): see `ParabolicOutput`."""
    weights = row_of(dense.middle)
    first, middle, last = slopes[0], weights @ slopes[: weights.size], slopes[-1]
    derivatives = first, 4 * middle - 3 * first - last, 4 * (first + last - 2 * middle)

    def change(part: float) -> Array:
        """The derivative by L of e(part)."""
        phi = np.empty((linear.size, HIGHEST_PHI + 1), linear.dtype)
        _slopes_of_phi(part * dt * linear, phi)
        total = part * dt * phi[:, 0] * u
        for j, derivative in enumerate(derivatives, start=1):
            total = total + part ** (j + 1) * dt**2 * phi[:, j] * derivative
        return total

    return change(s) - s * s * (3 - 2 * s) * change(1.0)


@njit(cache=True, error_model="numpy")
def _slopes_of_phi(z: Array, slopes: Array) -> None:
    for k in range(z.size):
        phi_functions(z[k], slopes[k])
        phi_slopes(z[k], slopes[k], 1.0)


@njit(**IN_STEP)
def _weigh(form: LinearisedRecord, row: Row, dt: float, strength: float, zero: Number) -> None:
    """Let the weights be those of this step and this 1/kappa."""
    if row.weighed_step == dt and form.strength == strength:
        return
    form.strength = strength
    if row.added_rows == 0:
        rates, rotation = numbers_at(form.rates, 0, zero), numbers_at(form.rotation, 0, zero)
        linear = numbers_at(row.linear, 0, zero)
        for k in range(row.modes):
            linear[k] = strength * rates[k] + rotation[k]
        if form.moving:
            weigh(_row_at(form.derived), dt, zero)
    weigh(row, dt, zero)


@njit(**IN_STEP)
def _changed(row: Row, direction: int, source: int, target: int, zero: Number) -> None:
    """Coordinates in the basis of sums (FORTH), or out of it; the same ones without a basis."""
    if row.change != 0 and row.added_rows == 0:
        evaluate(row.change, row.basis, direction, source, target)
    else:
        copy(row.modes, source, target, zero)


@njit(**IN_STEP)
def _nonlinear_has_linear(form: LinearisedRecord, row: Row, excess: float, zero: Number) -> bool:
    """Write the part of L that N has to `added`; returns whether it is not 0."""
    explicit = row.added_rows > 0
    total, rotates = form.strength + excess if explicit else excess, explicit and form.rotates != 0
    if total == 0.0 and not rotates:
        return False
    rates, rotation = numbers_at(form.rates, 0, zero), numbers_at(form.rotation, 0, zero)
    added = numbers_at(form.added, 0, zero)
    for k in range(row.modes):
        added[k] = total * rates[k]
        if rotates:
            added[k] += rotation[k]
    return True


@njit(**IN_STEP)
def _slope(
    form: LinearisedRecord, row: Row, u: int, slope: int, t: float, excess: float, zero: Number
) -> None:
    """N of the state and its tangents, and L u for an explicit scheme."""
    numbers_at(row.time, 0, 0.0)[0] = row.origin + t
    evaluate(row.nonlinear, row.context, 0, u, slope)
    if _nonlinear_has_linear(form, row, excess, zero):
        for member in range(row.members):
            at = member * row.size
            add_product(row, form.added, 0, u + at, slope + at, zero)
    if row.added_rows > 0:
        moves = numbers_at(form.moves, 0, 0)
        for p in range(row.members - 1):
            if moves[p]:
                add_product(row, form.moved, p, u, slope + (p + 1) * row.size, zero)


@njit(cache=True, error_model="numpy")
def _slope_at(address: int, u: int, slope: int, t: float, excess: float, zero: Number) -> None:
    form = _linearised_at(address)
    _slope(form, _row_at(form.row), u, slope, t, excess, zero)


@njit(**IN_STEP)
def _keep_slopes(row: Row, slope: int, stage: int, zero: Number) -> None:
    """Take the slopes of all members as those of a stage, in the basis of sums."""
    for member in range(row.members):
        kept = row.slopes + (member * (row.last + 1) + stage) * row.size
        _changed(row, FORTH, slope + member * row.size, kept, zero)


@njit(cache=True, error_model="numpy")
def _advance(address: int, zero: Number) -> None:
    """Steps from u, of which stages and slopes of the state are kept where that is asked for."""
    form = _linearised_at(address)
    row, derived = _row_at(form.row), _row_at(form.derived)
    size, stages, block = row.size, row.last, row.members * row.size
    moves, nodes = numbers_at(form.moves, 0, 0), numbers_at(row.nodes, 0, 0.0)
    decay_nodes, steps = numbers_at(row.decay_nodes, 0, 0), numbers_at(form.steps, 0, 0.0)
    strengths, excess = numbers_at(form.at_start, 0, 0.0), numbers_at(form.excess, 0, 0.0)
    is_modal, scaled = row.change != 0 and row.added_rows == 0, form.moving and row.added_rows == 0
    u, before, slope, first = row.u, row.u + block, row.slope, row.slope + block
    for n in range(form.count):
        t, dt, of_step, kept = steps[2 * n], steps[2 * n + 1], n * (stages + 1), n * stages * size
        _weigh(form, row, dt, strengths[n], zero)
        if n == 0 or excess[of_step - 1] != 0:  # N has changed with L
            _slope(form, row, u, slope, t, excess[of_step], zero)
            _keep_slopes(row, slope, 0, zero)
        else:
            for member in range(row.members):
                at = row.slopes + member * (stages + 1) * size
                copy(row.modes, at + stages * size, at, zero)
        copy(row.members * row.modes, u, before, zero)
        for member in range(row.members):
            _changed(row, FORTH, before + member * size, first + member * size, zero)
        if form.stages:
            copy(row.modes, u, form.stages + kept, zero)
        for i in range(stages):
            at = i * row.linear_modes, i * row.slots * row.linear_modes, i * row.slots
            if scaled:
                combine(derived, row.stage, first, *at, row.slopes, zero)
            for member in range(row.members):
                target = u + member * size
                sums, slopes = row.modal if is_modal else target, member * (stages + 1) * size
                combine(row, sums, first + member * size, *at, row.slopes + slopes, zero)
                if scaled and member > 0 and moves[member - 1]:
                    f, moved = numbers_at(sums, 0, zero), numbers_at(form.moved, 0, zero)
                    change = numbers_at(row.stage, 0, zero)
                    for k in range(row.modes):
                        f[k] += moved[(member - 1) * row.modes + k] * change[k]
                if is_modal:
                    evaluate(row.change, row.basis, BACK, sums, target)
            if form.stages and i < stages - 1:
                copy(row.modes, u, form.stages + kept + (i + 1) * size, zero)
            time = t + nodes[decay_nodes[i]] * dt
            _slope(form, row, u, slope, time, excess[of_step + i + 1], zero)
            _keep_slopes(row, slope, i + 1, zero)
        if form.slopes:
            copy(stages * row.modes, row.slopes, form.slopes + kept, zero)


@njit(**IN_STEP)
def _add_transposed(
    row: Row, factors: int, first: float, a: int, target: int, zero: Number
) -> None:
    """target += factors* a, with the factors from an index on: one, or as many as modes."""
    w, f, g = numbers_at(factors, first, zero), numbers_at(a, 0, zero), numbers_at(target, 0, zero)
    if row.linear_modes < row.modes:
        factor = np.conj(w[0])
        for k in range(row.modes):
            g[k] += factor * f[k]
    else:
        for k in range(row.modes):
            g[k] += np.conj(w[k]) * f[k]


@njit(**IN_STEP)
def _add_pairings(form: LinearisedRecord, row: Row, a: int, b: int, zero: Number) -> None:
    """Add <a, dL b> of real functions, by their numbers, to the gradient by each parameter."""
    moves, gradient = numbers_at(form.moves, 0, 0), numbers_at(form.gradient, 0, 0.0)
    f, g, weights = numbers_at(a, 0, zero), numbers_at(b, 0, zero), numbers_at(form.pairing, 0, 0.0)
    for p in range(form.parameters):
        if moves[p]:
            total, moved = 0.0, numbers_at(form.moved, p * row.modes, zero)
            for k in range(row.modes):
                total += weights[k] * (np.conj(f[k]) * (moved[k] * g[k])).real
            gradient[p] += total


@njit(**IN_STEP)
def _pull_back_stage(
    form: LinearisedRecord, row: Row, dual: Row, stage: int, t: float, excess: float, zero: Number
) -> None:
    """N* of `pair`, whose second entry is k, at a stage; its result, and the gradient."""
    k, gradient = form.pair + row.size, numbers_at(form.gradient, 0, 0.0)
    copy(row.modes, stage, form.pair, zero)
    numbers_at(row.time, 0, 0.0)[0] = row.origin + t
    evaluate(row.nonlinear, row.context, 0, form.pair, form.result)
    by_parameter = numbers_at(form.result, row.floats, 0.0)
    for p in range(form.parameters):
        gradient[p] += by_parameter[p]
    if _nonlinear_has_linear(form, row, excess, zero):
        added = numbers_at(form.added, 0, zero)
        for i in range(row.modes):
            added[i] = np.conj(added[i])
        add_product(dual, form.added, 0, k, form.result, zero)
    if row.added_rows > 0 and form.moving:
        if row.change == 0:
            _add_pairings(form, row, k, stage, zero)
        else:
            evaluate(dual.change, dual.basis, FORTH, k, dual.modal)
            evaluate(row.change, row.basis, FORTH, stage, row.modal)
            _add_pairings(form, row, dual.modal, row.modal, zero)


@njit(cache=True, error_model="numpy")
def _pull_back(address: int, zero: Number) -> None:
    """`adjoint` from the end of the steps to their beginning, and the gradient by parameters."""
    form = _linearised_at(address)
    row, derived, dual = _row_at(form.row), _row_at(form.derived), _row_at(form.dual)
    size, stages, modes, width = row.size, row.last, row.modes, row.linear_modes
    columns, nodes = numbers_at(row.columns, 0, 0), numbers_at(row.nodes, 0, 0.0)
    decay_nodes, steps = numbers_at(row.decay_nodes, 0, 0), numbers_at(form.steps, 0, 0.0)
    strengths, excess = numbers_at(form.at_start, 0, 0.0), numbers_at(form.excess, 0, 0.0)
    f, first, scaled = numbers_at(form.sums, 0, zero), form.sums + size, row.added_rows == 0
    for n in range(form.count - 1, -1, -1):
        t, dt, kept = steps[2 * n], steps[2 * n + 1], n * stages * size
        _weigh(form, row, dt, strengths[n], zero)
        _changed(dual, FORTH, form.adjoint, form.pulled + stages * size, zero)
        for j in range(stages - 1, -1, -1):
            for k in range(modes):
                f[k] = zero
            for i in range(j, stages):  # row i makes the stage i + 1, the last one u'
                for slot in range(row.slots):
                    if columns[i * row.slots + slot] == j:
                        at, l = (i * row.slots + slot) * width, form.pulled + (i + 1) * size
                        _add_transposed(row, row.weights, at, l, form.sums, zero)
            _changed(dual, BACK, form.sums, form.pair + size, zero)
            time = t if j == 0 else t + nodes[decay_nodes[j - 1]] * dt
            stage, more = form.stages + kept + j * size, excess[n * (stages + 1) + j]
            _pull_back_stage(form, row, dual, stage, time, more, zero)
            _changed(dual, FORTH, form.result, form.pulled + j * size, zero)
        copy(modes, form.pulled, form.sums, zero)
        _changed(row, FORTH, form.stages + kept, first, zero)
        for i in range(stages):
            l = form.pulled + (i + 1) * size
            _add_transposed(row, row.decay, i * width, l, form.sums, zero)
            if scaled and form.moving:
                at = i * width, i * row.slots * width, i * row.slots
                combine(derived, row.stage, first, *at, form.slopes + kept, zero)
                _add_pairings(form, row, l, row.stage, zero)
        _changed(dual, BACK, form.sums, form.adjoint, zero)
