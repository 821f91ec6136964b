"""The stationary equation of any model that moves densities.

A density mu = 1 + sum_i c_i p_i, in real orthonormal harmonics p_i of degree l, is stationary under
the velocity v[mu] and a noise with the generator M/kappa if M* mu - kappa div(mu v[mu]) = 0. In the
moments m_i = c_i/s_i, s_i = sqrt(dim H_l),

    R_i(m) = -(sum_j M_ij c_j + M_i0 + kappa int mu <grad p_i, v[mu]>) / (l (l + d - 2) s_i) = 0.

v is a sum of quotients of linear functions of a density, v[mu] = sum_h A_h mu/B_h mu: one quotient
for a zonal drift, grad(W * mu)/(Z * mu), one for every head of attention, and A_h mu alone for a
field. So its derivatives are, with q_h(k) = (A_h k - v_h B_h k)/B_h mu,

    dv(k) = sum_h q_h(k),    d^2 v(h, k) = -sum_h (q_h(k) B_h h + q_h(h) B_h k)/B_h mu.

If the model is invariant under rotations with the generators A_k, a state may rotate steadily:
M* mu/kappa - div(mu v) = sum_k Omega_k A_k c. The projection of R on the A_k c is removed, by least
squares; this is the equation in the co-rotating frame, with the Omega_k as unknowns. Steps of
Newton's method are orthogonal to the A_k c, as states that differ by a rotation are equivalent.

A `HigherOrder` part is a product of linear functions: see `moment_products`. Frequencies add T c,
which rotates and damps densities; a reaction adds alpha mu (Phi - int Phi dmu) with Phi linear in
mu.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np

from ..core.cached import cached_property
from ..dynamics.model_harmonics import ModelHarmonics
from ..engines.density_heads import GridDensity
from ..engines.fields import fields_of
from ..models import HigherOrder, Transformer
from ..spaces.validity import NEGATIVE_SHARE, log_modulus
from .bases import UNIFORM_MOMENT, Array, Basis
from .equation import StationaryEquation
from .moment_products import MomentProduct

NEGLIGIBLE_FACTOR = 1e-20  # smaller factors of a linear map, relative to the largest, are left out
MOMENT_ROUNDING = 2e-15  # rounding error of a moment, for each degree of truncation
CIRCLES, CIRCLE_POINTS = (0.25, 0.125, 0.0625, 0.03125), 32  # complex t of series
LAPLACIAN_ROUNDING = 1e-12  # relative to a generator: its difference from the Laplacian
CIRCLE_ROUNDING = 1e-13  # of the last coefficient of a resolved series
VALUES, GRADIENTS = attrgetter("values"), attrgetter("gradients")  # tables of functions


class LinearFunction(NamedTuple):
    """A linear map from densities to functions, by its values at the nodes.

    Attributes
    ----------
    constant : ndarray, (..., M)
        Values for the uniform density.
    table : callable or None
        (functions of one order) -> (..., n, M): values for each function, divided by `factors`.
        None if the values are those for the uniform density, for densities of every mass.
    factors : ndarray, (degree + 1,), or 1
        Factor for each degree.
    """

    constant: Any
    table: Callable[[Any], Array] | None = None
    factors: Any = 1.0

    def _factors(self, part: Any) -> Any:
        """Factors of the functions in `part`, (n,) or 1."""
        return self.factors if np.ndim(self.factors) == 0 else self.factors[part.degrees]

    def at(self, c: Array, part: Any) -> Any:
        """Values (..., M) for sum_i c_i p_i, with the functions p_i of one order in `part`."""
        if self.table is None:
            return np.zeros(np.shape(self.constant))
        felt = self.felt(part)
        return (self._factors(part) * c)[:felt] @ self.table(part)[..., :felt, :]

    def of(self, part: Any, count: int | None = None) -> Array:
        """Values (..., n, M) for the first `count` functions in `part`, by default all."""
        if self.table is None:
            return np.zeros((len(part.degrees), len(self.constant)))
        table, factors = self.table(part)[..., :count, :], self._factors(part)
        return table * factors[:count, None] if np.ndim(factors) else table

    def felt(self, part: Any) -> int:
        """Number of the first functions in `part`; factors of those after them are rounding."""
        sizes = np.abs(self._factors(part)) * np.ones(len(part.degrees))
        felt = np.flatnonzero(sizes > NEGLIGIBLE_FACTOR * sizes.max(initial=0.0))
        return int(felt[-1]) + 1 if felt.size else 0

    def pulled(self, masses: Array, part: Any) -> Array:
        """Transposed map: sums (n,) over nodes of values for each function times masses (..., M).

        Components that only one of the two has are left out.
        """
        if self.table is None:
            return np.zeros(len(part.members))
        table = self.table(part)
        if masses.ndim == 1:
            table, masses = table[None], masses[None]
        count = min(len(table), len(masses))
        sums = np.tensordot(table[:count], masses[:count], ((0, 2), (0, 1)))
        return self._factors(part) * sums


class VelocityPart(NamedTuple):
    """Quotient of linear maps with values (C, M) and (M,); `below` is None for a denominator 1."""

    above: LinearFunction
    below: LinearFunction | None = None


class Flow(NamedTuple):
    """Values at the nodes for one density, and for the measure that moves it.

    Attributes
    ----------
    density : ndarray, (M,)
    velocity : ndarray, (C, M)
    parts : list of (ndarray, ndarray or 1)
        Velocity (C, M) of each head, and its denominator, (M,) or 1.
    potential : ndarray, (M,), or 0
        Phi - int Phi dmu.
    moments : sequence of ndarray
        Moments in each `MomentProduct`.
    """

    density: Array
    velocity: Array
    parts: list[tuple[Array, Any]]
    potential: Any = 0.0
    moments: Sequence[Array] = ()


class TransportState(NamedTuple):
    """Velocity and other values at the nodes, for the density with the moments m.

    Attributes
    ----------
    kappa : float
    flows : list of Flow
        One, or that of each slice of indexed densities.
    force : ndarray, (n,)
        Rate of change of the coefficients by drift, frequencies and reaction, for order 0.
    moments : ndarray, (N,)
        m - R.
    tangents : ndarray, (n, r)
        Orthonormal tangents of the rotations of the state, in functions of order 0.
    speeds : ndarray, (k,)
        Angular velocities Omega_k, one for each rotation under which the model is invariant.
    fit : ndarray, (k, n)
        Pseudoinverse of the tangents: the speeds are `fit` times the rate of change.
    """

    kappa: float
    flows: list[Flow]
    force: Array
    moments: Array
    tangents: Array
    speeds: Array
    fit: Array

    @property
    def density(self) -> Array:
        """Values of all densities at the nodes, (len(flows), M)."""
        return np.array([flow.density for flow in self.flows])


class TransportEquation(StationaryEquation):
    """R(m) = 0 for one model, in the functions of a basis.

    Parameters
    ----------
    model : Transformer
        A single model.
    basis : Basis
        A symmetric basis for rotation-invariant models, else a `Reflected` one.
    neighbours : callable, optional
        () -> (weights, equations at other values of a parameter): finite differences by it.
    zonal : list of (ndarray, ndarray or None), optional
        Multipliers of the zonal parts, if computed before: see `scaled`.
    """

    basis: Any

    def __init__(
        self,
        model: Transformer,
        basis: Basis,
        neighbours: Callable[..., Any] | None = None,
        zonal: list[tuple[Array, Array | None]] | None = None,
    ):
        super().__init__(model, basis)
        self._neighbours, self._zonal = neighbours, zonal
        self._diffusions: dict[tuple[int, int], Array] = {}

    def among(self, basis: Any) -> Self:
        return type(self)(self.model, basis)

    @cached_property
    def weights(self) -> Array:
        """Multipliers w_l, (degree + 1,): sum over zonal parts of those of W over the mean of Z.

        A reaction adds alpha Phi_l/(l (l + d - 2)).
        """
        rates = self.basis.multiplier_eigenvalues
        total = np.sum([0.0 * rates, *(w for w, _ in self._zonal_parts)], axis=0)
        if alpha := self.model.reaction:
            phi = np.sum([p.factors for p in self._potentials if np.ndim(p.factors)], axis=0)
            total += alpha * phi / np.maximum(1, rates)
        return total

    @cached_property
    def _zonal_parts(self) -> list[tuple[Array, Array | None]]:
        """Multipliers of W and Z (None for Z = 1) of each zonal part, over the mean of Z."""
        if self._zonal is not None:
            return self._zonal
        each, basis = self._zonal_terms, self.basis
        return [scaled(c * basis.attraction(part), basis.normaliser(part)) for c, part in each]

    @property
    def _terms(self) -> list[tuple[float, Any]]:
        """Factors and parts of the drift; a zonal drift is one part."""
        drift: Any = self.model.drift
        return [(1.0, drift)] if drift.is_zonal else drift.terms

    @cached_property
    def _zonal_terms(self) -> list[tuple[float, Any]]:
        """Factors and zonal parts."""
        return [(c, part.as_zonal()) for c, part in self._terms if part.is_zonal]

    @property
    def _others(self) -> list[tuple[float, Any]]:
        """Factors and parts of the drift that are not zonal."""
        return [term for term in self._terms if not term[1].is_zonal]

    @cached_property
    def _fields(self) -> list[tuple[float, Any]]:
        """Factors and fields of the parts of the drift that are neither zonal nor products."""
        parts = [term for term in self._others if not isinstance(term[1], HigherOrder)]
        return [(c, field) for c, part in parts for _, field in fields_of(part, self.basis.space)]

    @cached_property
    def products(self) -> list[MomentProduct]:
        """Parts of the velocity that are products of moments."""
        parts = [(c, part) for c, part in self._others if isinstance(part, HigherOrder)]
        return [MomentProduct.of(c, part, self.basis) for c, part in parts]

    @cached_property
    def heads(self) -> list[VelocityPart]:
        """Quotients of which the velocity is the sum."""
        basis = self.basis
        heads = [_zonal_head(w, z) for w, z in self._zonal_parts]
        for factor, field in self._fields:
            if not field.drift.interacts:
                (one,) = field.quotients(_unit_densities(basis, 0))
                above = LinearFunction(factor * one.numerators[..., 0, basis.nodes])
                heads.append(VelocityPart(above))
                continue
            for one in field.quotients(_unit_densities(basis)):
                below = None if one.denominators is None else _tabulated(basis, one.denominators)
                heads.append(VelocityPart(_tabulated(basis, factor * one.numerators), below))
        if self.model.feedforward is not None:
            values = self.model.feedforward_on(basis.space)
            steady = np.einsum("fnd,nd->fn", basis.space.frame, values)
            heads.append(VelocityPart(LinearFunction(steady[:, basis.nodes])))
        return heads

    @cached_property
    def moving(self) -> Array | float:
        space = self.basis.space
        return 0.0 if space is None else ModelHarmonics(self.model, space, 1).moving(self.degree)

    @cached_property
    def _potentials(self) -> list[LinearFunction]:
        """Linear maps of which the sum is Phi."""
        basis = self.basis
        zonal = (c * basis.interaction(part) for c, part in self._zonal_terms)
        found = [LinearFunction(0.0, VALUES, factors) for factors in zonal]
        for factor, field in self._fields:
            every = _unit_densities(basis, None if field.drift.interacts else 0)
            each = zip(every.coefficients, every.values, strict=True)
            rows = [field.potential(0.0, GridDensity(basis.space, *one)) for one in each]
            known = _tabulated(basis, factor * np.array(rows))
            found.append(known if field.drift.interacts else known._replace(table=None))
        return found

    @cached_property
    def _energy_shares(self) -> list[float] | None:
        """Shares of int Phi_i dmu of the `_potentials` in the energy; None without an energy."""
        drift, model = self.model.drift, self.model
        if model.extras or not drift.is_gradient(self.basis.dimension):
            return None
        if np.isnan(self.noise_strength):
            return None
        fields = [field.energy_share for _, field in self._fields]
        return [0.5] * (len(self._potentials) - len(fields)) + fields

    @property
    def real_spectrum(self) -> bool:  # type: ignore[override]
        """Whether L is symmetric, in the metric of the gradient flow of a free energy.

        False in bases that compute all growth rates: two that vanish at once, where the determinant
        keeps its sign, are located by these rates.
        """
        return self.basis.iterates and self._energy_shares is not None

    @cached_property
    def noise_strength(self) -> float:
        """The c of a noise with the generator c Laplacian/kappa; nan for another one."""
        if self.model.noise.laplacian:
            return 1.0
        basis = self.basis
        matrix, drawn = basis.diffusion
        laplacian = np.diag(-basis.eigenvalues)
        strength = float(np.trace(matrix) / np.trace(laplacian))
        apart = max(np.abs(matrix - strength * laplacian).max(), np.abs(drawn).max())
        return strength if apart <= LAPLACIAN_ROUNDING * np.abs(matrix).max() else float("nan")

    def free_energy(self, mean: TransportState) -> float:
        shares = self._energy_shares
        if shares is None or len(mean.flows) > 1 or self.negativity(mean) > NEGATIVE_SHARE:
            return float("nan")
        even, (flow,), gain = self.basis.even, mean.flows, 0.0
        masses = self.basis.weights * flow.density
        change = masses - self.basis.weights
        for share, part in zip(shares, self._potentials, strict=True):
            rise = part.at(even.values @ change, even)  # of Phi
            gain += share * (change @ (part.constant * np.ones_like(masses)) + masses @ rise)
        entropy = self.noise_strength * (masses @ log_modulus(flow.density))
        return float(entropy / mean.kappa - gain)

    @cached_property
    def _frequency_operator(self) -> Array | float:
        """T, (N, N): operator of the frequencies on coefficients; 0.0 without frequencies."""
        frequency: Any = self.model.frequency
        if frequency is None:
            return 0.0
        basis = self.basis
        damping = frequency.width + 1j * frequency.centre
        every = basis.all.series(np.eye(len(basis.degrees)), 0.0)
        return basis.all.moments(-basis.space.degrees * damping * every).T

    def _frequency_block(self, part: Any) -> Any:
        """The block of T of one order, (n, n); 0.0 without frequencies."""
        whole: Any = self._frequency_operator
        return whole[np.ix_(part.members, part.members)] if np.ndim(whole) else 0.0

    def _diffusion(self, part: Any) -> Array:
        """The block of L* of one order, (n, n); cached unless it is diagonal."""
        if self.model.noise.laplacian:
            return np.diag(-part.eigenvalues)
        key = part.order, len(part.degrees)
        if key not in self._diffusions:
            matrix = self.basis.diffusion[0][np.ix_(part.members, part.members)]
            self._diffusions[key] = matrix
        return self._diffusions[key]

    def mean(self, m: Array, kappa: float) -> TransportState:
        """Velocity, force and m - R(m) of the density with the moments m."""
        even, mine = self.basis.even, self.basis.even.members
        c = even.sizes * m[mine]
        flows, force = self._flows(c)
        if np.ndim(self._frequency_operator):
            force = force + self._frequency_block(even) @ c
        moments = np.zeros_like(m)
        diffused = self._diffused(c)
        tangents, speeds, fit = self._rotation_fit(m, diffused / kappa + force)
        change = diffused + kappa * force
        change = change - tangents @ (tangents.T @ change)
        moments[mine] = m[mine] + change / (even.eigenvalues * even.sizes)
        return TransportState(kappa, flows, force, moments, tangents, speeds, fit)

    def _diffused(self, c: Array) -> Array:
        """L* mu for coefficients of order 0, (n,)."""
        if self.model.noise.laplacian:
            return np.asarray(-self.basis.even.eigenvalues * c)
        return (
            self._diffusion(self.basis.even) @ c + self.basis.diffusion[1][self.basis.even.members]
        )

    def _flows(self, c: Array) -> tuple[list[Flow], Array]:
        """Flow, and change of the coefficients c of order 0 by drift and reaction, (n,)."""
        flow, force = self.moved(c, c)
        if alpha := self.model.reaction:
            even, masses = self.basis.even, self.basis.weights * flow.density
            values = sum(part.constant + part.at(c, even) for part in self._potentials)
            flow = flow._replace(potential=values - masses @ values)
            force = force + alpha * (even.values @ (masses * flow.potential))
        return [flow], force

    def moved(self, c: Array, acting: Array, mass: float = 1.0) -> tuple[Flow, Array]:
        """Flow of a density, and change (n,) of its coefficients c by the drift.

        `acting` are the coefficients of the measure that moves it, and `mass` its mass.
        """
        even, parts = self.basis.even, []
        density = 1.0 + c @ even.values
        for above, below in self.heads:
            share = mass if above.table else 1.0
            denominator = 1.0 if below is None else share * below.constant + below.at(acting, even)
            parts.append(
                ((share * above.constant + above.at(acting, even)) / denominator, denominator)
            )
        moments = [product.moments(acting, even) for product in self.products]
        moved = zip(self.products, moments, strict=True)
        velocity = np.sum(
            [*(part for part, _ in parts), *(one.velocity(z, acting) for one, z in moved)], axis=0
        )
        moving = (self.basis.weights * density) * velocity
        force = (even.gradients @ moving[:, :, None]).sum(axis=0)[:, 0]
        return Flow(density, velocity, parts, moments=moments), force

    def _rotation_fit(self, m: Array, change: Array) -> tuple[Array, Array, Array]:
        """Orthonormal tangents (n, r) of the rotations of a state, and angular velocities (k,).

        The velocities are the least-squares fit of the rate of change `change` by the tangents,
        whose pseudoinverse (k, n) comes last.
        """
        mine, rotations = self.basis.even.members, self.basis.rotations
        columns = np.array([(A @ (self.basis.sizes * m))[mine] for A in rotations])
        if not UNIFORM_MOMENT <= np.abs(columns).max(initial=0.0) < np.inf:  # nan neither
            none = np.zeros(len(rotations))
            return np.zeros((len(mine), 0)), none, np.zeros((len(rotations), len(mine)))
        left, sizes, right = np.linalg.svd(columns.T, full_matrices=False)
        kept = sizes > max(UNIFORM_MOMENT * sizes[0], UNIFORM_MOMENT)
        left, sizes, right = left[:, kept], sizes[kept], right[kept]
        return left, right.T @ ((left.T @ change) / sizes), right.T @ (left / sizes).T

    def speed(self, m: Array, kappa: float) -> float:
        speeds = self.mean(m, kappa).speeds
        return float(-speeds[0] if len(speeds) == 1 else np.linalg.norm(speeds))

    def resolves(self, m: Array, kappa: float, tail: float) -> bool:
        limit = tail + MOMENT_ROUNDING * self.degree
        return self.basis.tail(m, limit, self.moving) <= limit

    def jacobian(self, mean: TransportState) -> Array:
        block, mine = self.block(mean, self.basis.even), self.basis.even.members
        if len(mine) == len(self.degrees):
            return block
        result = np.eye(len(self.degrees))
        result[np.ix_(mine, mine)] = block
        return result

    def block(self, flow: TransportState, part: Any) -> Array:
        operator = self._diffusion(part) + flow.kappa * self._transport(flow, part)
        if part.order == 0 and flow.tangents.size:
            operator -= flow.tangents @ (flow.tangents.T @ operator + flow.tangents.T)
        return -operator * part.sizes / (part.eigenvalues * part.sizes)[:, None]

    def linearised(self, m: Array, kappa: float, basis: Any) -> Array:
        return self._diffusion(basis) / kappa + self._transport(self.mean(m, kappa), basis)

    def _transport(self, state: TransportState, part: Any) -> Array:
        """Linearised drift, reaction, frequencies and co-rotation in one order, (n, n)."""
        matrix = self._drifted(state, part)
        for speed, turning in zip(state.speeds, self.basis.rotations, strict=True):
            if speed:
                matrix -= speed * turning[part.members][:, part.members].toarray()
        return matrix + self._frequency_block(part)

    def _drifted(self, state: TransportState, part: Any) -> Array:
        """Linearised drift and reaction in one order, (n, n)."""
        (flow,), weights = state.flows, self.basis.weights
        matrix = np.add(*self.divergences(flow, part))
        if alpha := self.model.reaction:
            moved = sum(potential.of(part) for potential in self._potentials)
            means = moved @ (weights * flow.density) + part.values @ (weights * flow.potential)
            means *= part.order == 0  # else 0 over the sphere, of which nodes cover a part
            change = flow.potential * part.values + flow.density * (moved - means[:, None])
            matrix += alpha * (part.values * weights) @ change.T
        return matrix

    def divergences(self, flow: Flow, part: Any) -> tuple[Array, Array]:
        """Derivatives (n, n) of -div(mu v), by mu and by the measure that moves it.

        Tested with the p_i: int <grad p_i, v> p_j and int mu <grad p_i, dv(p_j)>.
        """
        masses, gradients = self.basis.weights * flow.density, part.gradients
        by_density = part.advected(self.basis.weights * flow.velocity)
        by_measure = np.zeros_like(by_density)
        for (above, below), (velocity, denominator) in zip(self.heads, flow.parts, strict=True):
            if above.table is None:
                continue
            felt = max(one.felt(part) for one in (above, below) if one is not None)
            change = above.of(part, felt)
            if below is not None:
                change = change - _wide(velocity, len(gradients))[:, None] * below.of(part, felt)
            for gradient, component in zip(gradients, change, strict=True):
                by_measure[:, :felt] += (gradient * (masses / denominator)) @ component.T
        for product, z in zip(self.products, flow.moments, strict=True):
            by_measure += (gradients[0] * masses) @ product.changes(z, part)[0].T
        return by_density, by_measure

    def block_change(
        self, state: TransportState, m: Array, part: Any, left: Array, right: Array
    ) -> Array:
        even, scaled = self.basis.even, left / (part.eigenvalues * part.sizes)
        c, change = part.sizes * right, np.zeros(len(self.degrees) + 2, np.result_type(left, right))
        across = scaled - _projected(state, scaled) if part.order == 0 else scaled
        inner, total = self._drifted_change(state, part, across, c)
        if np.ndim(self._frequency_operator):
            total += across @ self._frequency_block(part) @ c
        if state.tangents.size:
            turned = self._corotation_change(state, m, part, scaled, across, c)
            inner, total = inner + turned[0], total + turned[1]
        change[even.members], change[-2] = even.sizes * inner, total
        change *= -state.kappa
        if self._neighbours is not None:
            for weight, one in zip(*self._neighbours(), strict=True):
                block = one.block(one.mean(m, state.kappa), part)
                change[-1] += weight * (left @ block @ right)
        return change

    def _corotation_change(
        self, state: TransportState, m: Array, part: Any, left: Array, across: Array, right: Array
    ) -> tuple[Array, Any]:
        """Changes of left . block right, over -kappa, by the speeds and tangents of a wave.

        Gradient (n,) by coefficients of order 0, and derivative by log kappa, at a stationary
        state. `across` is `left` without its part along the tangents, in order 0.
        """
        even, kappa, mine = self.basis.even, state.kappa, self.basis.even.members
        turned = [A[part.members][:, part.members] @ right for A in self.basis.rotations]
        weights = np.array([across @ one for one in turned])  # of the speeds
        slope = self._diffusion(even) / kappa + self._transport(state, even)
        by_rate = weights @ state.fit
        diffused = self._diffused(even.sizes * m[mine])
        total = by_rate @ diffused / kappa - weights @ state.speeds
        inner = -by_rate @ slope
        if part.order == 0:  # tangents change
            moved = kappa * (slope @ right) + right
            beside = moved - _projected(state, moved)
            for A, along, other in zip(
                self.basis.rotations, state.fit @ moved, state.fit @ left, strict=True
            ):
                inner = inner - A[mine][:, mine].T @ (across * along + beside * other) / kappa
        return inner, total

    def _drifted_change(
        self, state: TransportState, part: Any, left: Array, right: Array
    ) -> tuple[Array, Any]:
        """Gradient (n,) of left . `_drifted` right by coefficients of order 0, and its value."""
        (flow,), even, weights = state.flows, self.basis.even, self.basis.weights
        by_density, by_measure, total = self.flux_change(flow, part, left, right, right)
        inner = by_density + by_measure
        if alpha := self.model.reaction:
            f, h, share = left @ part.values, right @ part.values, flow.density
            moved = sum(potential.at(right, part) for potential in self._potentials)
            whole = part.order == 0  # else these means are 0, over all of the sphere
            mean = whole * (weights @ (moved * share + flow.potential * h))
            by_f, by_h = whole * (weights @ (f * share)), weights @ (f * h)
            inner += alpha * (even.values @ (weights * (f * (moved - mean) - by_f * moved
                                                        - by_h * flow.potential)))  # fmt: skip
            for potential in self._potentials:
                masses = weights * (f * h - by_h * share - by_f * h)
                inner += alpha * potential.pulled(masses, even)
            total += alpha * weights @ (f * (flow.potential * h + share * (moved - mean)))
        return inner, total

    def flux_change(
        self, flow: Flow, part: Any, left: Array, right: Array, acting: Array
    ) -> tuple[Array, Array, Any]:
        """Second derivatives of the drift, for changes `right` of mu and `acting` of the measure.

        Gradients (n,) of left . D(mu v) by the coefficients of order 0 of mu, and by those of the
        measure that moves it; and left . D(mu v) itself.
        """
        even, weights, count = self.basis.even, self.basis.weights, len(part.gradients)
        slope, h, share = (
            np.tensordot(left, part.gradients, (0, 1)),
            right @ part.values,
            flow.density,
        )
        inner, along = np.zeros(len(even.degrees), np.result_type(left, right)), 0.0
        for (above, below), (own, denominator) in zip(self.heads, flow.parts, strict=True):
            v, change_of_head = _wide(own, count), above.at(acting, part)
            rest = weights * h / denominator
            if below is not None:
                lower = below.at(acting, part)
                change_of_head = (change_of_head - v * lower) / denominator
                rest = rest - weights * share * lower / denominator**2
                pulled = rest * (slope * v).sum(axis=0)
                pulled += weights * share * (slope * change_of_head).sum(axis=0) / denominator
                inner -= below.pulled(pulled, even)
            inner += above.pulled(rest * slope, even)
            along = along + (slope * change_of_head).sum(axis=0)
        for product, z in zip(self.products, flow.moments, strict=True):
            along = along + (slope * product.change(z, acting, part)).sum(axis=0)
            second = product.second(z, acting, part, even)
            pulled = weights * slope * h, weights * slope * share
            inner += np.tensordot(product.changes(z, even), pulled[0], ((0, 2), (0, 1)))
            inner += np.tensordot(second, pulled[1], ((0, 2), (0, 1)))
        straight = (slope * _wide(flow.velocity, count)).sum(axis=0)
        return even.values @ (weights * along), inner, weights @ (h * straight + share * along)

    def negativity(self, mean: TransportState) -> float:
        return max(0.0, -float(mean.density.min() / mean.density.max()))

    def by_log_kappa(self, mean: TransportState) -> Array:
        return self._by_force(mean, mean.force)

    def _by_force(self, mean: TransportState, force: Array) -> Array:
        """dR, (N,), for a change of the force, (n,)."""
        result, even = np.zeros(len(self.degrees)), self.basis.even
        force = force - _projected(mean, force)
        result[even.members] = -mean.kappa * force / (even.eigenvalues * even.sizes)
        return result

    def by_parameter(self, m: Array, mean: TransportState) -> Array:
        assert self._neighbours is not None
        slopes, equations = self._neighbours()
        parts = [one._zonal[0] for one in equations if one._zonal is not None]
        if not parts or len(mean.flows) > 1:
            pairs = zip(slopes, equations, strict=True)
            return -sum(weight * one.mean(m, mean.kappa).moments for weight, one in pairs)
        # of one zonal part: dv = (grad(dW * mu) - v (dZ * mu))/(Z * mu)
        (flow,), even = mean.flows, self.basis.even
        ((velocity, denominator),), c = flow.parts, even.sizes * m[even.members]
        w, z = zip(*parts, strict=True)
        change = LinearFunction(0.0, GRADIENTS, slopes @ np.array(w)).at(c, even)
        if z[0] is not None:
            below = LinearFunction(0.0, VALUES, slopes @ np.array(z)).at(c, even)
            change = change - velocity * below
        moving = self.basis.weights * flow.density * change / denominator
        return self._by_force(mean, (even.gradients @ moving[:, :, None]).sum(axis=0)[:, 0])

    def series(self, m: Array, kappa: Array) -> Array:
        """Coefficients (orders, N) of R(m(t), kappa(t)) as a series in t, by Cauchy's integrals.

        R is evaluated on half of a circle of complex t, the other half being conjugate. Its radius
        is halved until the last of its coefficients are rounding.
        """
        half = np.exp(2j * np.pi * np.arange(CIRCLE_POINTS // 2 + 1) / CIRCLE_POINTS)
        for radius in CIRCLES:
            powers = (radius * half[:, None]) ** np.arange(len(m))
            pairs = zip(powers @ m, powers @ kappa, strict=True)
            values = [at - self.mean(at, k).moments for at, k in pairs]
            terms = np.fft.irfft(np.conj(values), CIRCLE_POINTS, axis=0)
            if np.abs(terms[-1]).max() <= CIRCLE_ROUNDING * np.abs(values).max():
                break
        return terms[: len(m)] / radius ** np.arange(len(m))[:, None]


def scaled(w: Array, z: Array | None) -> tuple[Array, Array | None]:
    """Multipliers of W and of Z, divided by the mean of Z; None stands for Z = 1."""
    return (w, z) if z is None else (w / z[0], z / z[0])


def _zonal_head(w: Array, z: Array | None) -> VelocityPart:
    """grad(W * mu)/(Z * mu) from multipliers with z_0 = 1; z is None for Z = 1."""
    below = None if z is None or not np.any(z[1:]) else LinearFunction(1.0, VALUES, z)
    return VelocityPart(LinearFunction(0.0, GRADIENTS, w), below)


def _tabulated(basis: Any, rows: Array) -> LinearFunction:
    """Linear map with the values rows (..., 1 + N, points), for the constant and all harmonics."""
    inner = rows[..., basis.nodes]

    def table(part: Any) -> Array:
        every = inner[..., 1:, :]
        return every if len(part.members) == every.shape[-2] else every[..., part.members, :]

    return LinearFunction(inner[..., 0, :], table)


def _unit_densities(basis: Any, harmonics: int | None = None) -> GridDensity:
    """The constant 1 and the first harmonics, by default all, as functions on the grid."""
    space, count = basis.space, len(basis.degrees)
    each = basis.all.series(np.eye(count)[:harmonics], 0.0)
    rows = np.vstack([basis.all.series(np.zeros(count)), each])
    return GridDensity(space, rows, space.to_values(rows))


def _wide(components: Array, count: int) -> Array:
    """Components (C, M) of a field, padded with zeros to `count` components."""
    missing = count - len(components)
    return np.pad(components, ((0, missing), (0, 0))) if missing > 0 else components


def _projected(state: TransportState, change: Array) -> Array:
    """The part of a change of coefficients (n,) along the tangents of the rotations of a state."""
    return state.tangents @ (state.tangents.T @ change)
