"""Curves of periodic orbits: the collocation equations of one mesh, and their linear systems."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core.cached import cached_property
from ..core.differences import NODES, WEIGHTS
from .bases import Array
from .continuation import Curve, CurvePoint, StationaryCurve
from .cycle_collocation import Condensed, Mesh, radau
from .newton import Iteration, newton

CYCLE_TOLERANCE = 1e-11  # on the residual of coefficients
LOG_STEP = 0.02  # of differences by log kappa
MOST_CYCLE_STEPS, MOST_CYCLE_HALVINGS = 25, 6  # of Newton's method, and of one step
CONTRACTED = 0.1  # reduction of the residual from which on a derivative is used again
SHIFT_ROUNDING = 1e-8  # relative size of directions of shifts that count as zero


class Orbit(NamedTuple):
    """A periodic orbit on a mesh.

    Attributes
    ----------
    stages : ndarray, (n, k, N)
        Coefficients at the collocation points.
    period : float
    speeds : ndarray, (r,)
        Omega_i.
    p : float
        Parameter of the curve.
    """

    stages: Array
    period: float
    speeds: Array
    p: float

    @property
    def z(self) -> Array:
        """All of these in one array, (n k N + r + 2,)."""
        return np.concatenate([self.stages.ravel(), [self.period], self.speeds, [self.p]])


class CoefficientFlow:
    """dc/dt = F(c; p) of the coefficients of a density, for the models on a curve.

    Parameters
    ----------
    states : StationaryCurve
        Curve of stationary states in the basis of all harmonics, for equations by parameter.
    """

    def __init__(self, states: StationaryCurve):
        self.states = states
        self.basis: Any = states.basis
        self._sizes = self.basis.sizes

    @property
    def rotations(self) -> list[Any]:
        """Generators A_i of the rotations under which the models are invariant."""
        return self.basis.rotations

    def padded(self, states: Array) -> Array:
        """Coefficients (..., N) from those of another degree of truncation."""
        return np.apply_along_axis(self.basis.padded, -1, states)

    def tail(self, stages: Array, p: float, limit: float) -> float:
        """Largest moment among the last degrees, over the states (n, k, N) of an orbit."""
        m = np.abs(stages).max(axis=(0, 1)) / self._sizes
        return float(self.basis.tail(m, limit, self.states.at(p)[0].moving))

    def rate(self, c: Array, p: float) -> Array:
        """F(c; p), (N,)."""
        equation, kappa = self.states.at(p)
        m = c / self._sizes
        mean = equation.mean(m, kappa)
        change = (mean.moments - m) * self.basis.eigenvalues * self._sizes / kappa
        for speed, turning in zip(mean.speeds, self.rotations, strict=True):
            change = change + speed * (turning @ c)
        return change

    def jacobian(self, c: Array, p: float) -> Array:
        """dF/dc, (N, N)."""
        equation, kappa = self.states.at(p)
        m = c / self._sizes
        matrix = equation.linearised(m, kappa, self.basis.even)
        if self.rotations:
            for speed, turning in zip(equation.mean(m, kappa).speeds, self.rotations, strict=True):
                matrix = matrix + speed * turning.toarray()
        return matrix

    def by_parameter(self, states: Array, p: float) -> Array:
        """dF/dp at states (..., N), by differences of the order 6 or more."""
        family = getattr(self.states, "family", None)
        points, slopes = p + LOG_STEP * NODES, WEIGHTS / LOG_STEP
        if family is not None:
            points, slopes = family.stencil(p)
        total = np.zeros_like(states)
        for point, slope in zip(points, slopes, strict=True):
            if slope:
                rates = [self.rate(c, float(point)) for c in states.reshape(-1, states.shape[-1])]
                total += slope * np.reshape(rates, states.shape)
        return total


class Linearised:
    """Derivative of the collocation equations at an orbit, with bordering rows.

    Parameters
    ----------
    curve : CycleCurve
    orbit : Orbit
    rates : ndarray, (n, k, N)
        dc/dt at the points in the frame of the orbit.
    rows : ndarray, (r + 2, n k N + r + 2)
        Rows of the bordering equations.
    by_parameter : bool
        Whether p changes; else derivatives by p are not computed.
    """

    def __init__(
        self, curve: "CycleCurve", orbit: Orbit, rates: Array, rows: Array, by_parameter: bool
    ):
        from scipy.linalg import lu_factor, lu_solve

        motion, tableau, self.rows = curve.motion, radau(), rows
        n, k, size = orbit.stages.shape
        scaled = curve.mesh.lengths[:, None, None] * tableau.matrix
        forced = [scaled @ rates]
        for turning in motion.rotations:
            turned = np.array([(turning @ states.T).T for states in orbit.stages])
            forced.append(-orbit.period * (scaled @ turned))
        change = np.zeros_like(rates)
        if by_parameter:
            change = motion.by_parameter(orbit.stages, orbit.p)
        forced.append(orbit.period * (scaled @ change))
        columns = np.moveaxis(np.array(forced), 0, -1)  # (n, k, N, r + 2)
        start = np.tile(np.eye(size), (k, 1))
        self._inverse, self._responses = [], np.empty((n, k * size, size + columns.shape[-1]))
        turned = sum(w * A.toarray() for w, A in zip(orbit.speeds, motion.rotations, strict=True))
        for i, states in enumerate(orbit.stages):
            matrix = np.eye(k * size).reshape(k, size, k, size)
            for l, c in enumerate(states):
                slopes = orbit.period * (motion.jacobian(c, orbit.p) - turned)
                matrix[:, :, l] -= scaled[i][:, l, None, None] * slopes
            factors = lu_factor(matrix.reshape(k * size, k * size), overwrite_a=True)
            self._inverse.append(partial(lu_solve, factors))
            right = np.hstack([start, columns[i].reshape(k * size, -1)])
            self._responses[i] = self._inverse[i](right)
        self._shape = n, k, size

    def solve(self, right: Array) -> Array:
        """The change (n k N + r + 2,) that the derivative maps to `right`."""
        n, k, size = self._shape
        inner, borders = right[: n * k * size].reshape(n, -1), right[n * k * size :]
        own = np.array([inverse(r) for inverse, r in zip(self._inverse, inner, strict=True)])
        responses = np.concatenate([self._responses, own[:, :, None]], axis=-1)
        rows = self.rows[:, : n * k * size].reshape(-1, n, k, size)[:, :, -1]
        corner = np.column_stack([self.rows[:, n * k * size :], -borders])
        ends, y = self.condensed(responses).solved(rows, corner)
        starts = np.roll(ends, 1, axis=0)
        every = np.concatenate([starts, np.tile(y, (n, 1))], axis=1)
        return np.append((responses @ every[:, :, None]).ravel(), y[:-1])

    def carried(self, start: Array) -> Array:
        """States (n, k, N) of a perturbation that is `start`, (N,), at phase 0."""
        states = np.empty(self._shape)
        for response, here in zip(self._responses, states, strict=True):
            here[:] = (response[:, : len(start)] @ start).reshape(here.shape)
            start = here[-1]
        return states

    def condensed(self, responses: Array | None = None) -> Condensed:
        """Relations between the ends of intervals."""
        responses = self._responses if responses is None else responses
        size = self._shape[-1]
        return Condensed(responses[:, -size:, :size], responses[:, -size:, size:])


class CycleCurve(Curve):
    """Curve of periodic orbits (U, T, Omega, p) on one mesh.

    The metric is that of the coefficients, averaged over the period, of log T and of p.

    Parameters
    ----------
    motion : CoefficientFlow
    mesh : Mesh
    reference : Orbit
        Orbit on the mesh from which the phases are determined.
    max_step : float
        Longest step.
    """

    straight, curved = 0.97, 0.8  # orbits turn more than stationary states
    chords = 2  # derivatives are used again

    def __init__(self, motion: CoefficientFlow, mesh: Mesh, reference: Orbit, max_step: float):
        states = motion.states
        super().__init__(0, 0, max_step, states.journal)
        self.motion, self.mesh, self.reference = motion, mesh, reference
        lengths = np.zeros(reference.stages.shape)
        lengths[:, -1] = mesh.weights[:, None]
        none = np.zeros(len(reference.speeds))
        self.lengths = np.concatenate([lengths.ravel(), [reference.period**-2], none, [1.0]])

    def identity(self) -> tuple[Any, ...]:
        return *self.motion.states.identity(), self.mesh.ends, self.reference.z

    def value(self, p: float) -> float:
        return self.motion.states.value(p)

    def coordinate(self, value: float) -> float:
        return self.motion.states.coordinate(value)

    def orbit(self, z: Array) -> Orbit:
        """The orbit of a point of the curve."""
        shape = self.reference.stages.shape
        size = int(np.prod(shape))
        return Orbit(z[:size].reshape(shape), float(z[size]), z[size + 1 : -1], float(z[-1]))

    @cached_property
    def phase_rows(self) -> Array:
        """Rows of the phase conditions, in time and in each rotation, (r + 1, size of z)."""
        stages, reference = self.reference.stages, self.reference
        rates = self._rates(reference)
        along = [rates[:, -1], *((A @ stages[:, -1].T).T for A in self.motion.rotations)]
        rows = np.zeros((len(along), reference.z.size))
        for row, direction in zip(rows, along, strict=True):
            entries = np.zeros(stages.shape)
            entries[:, -1] = self.mesh.weights[:, None] * direction
            size = np.sqrt(self.mesh.weights @ (direction**2).sum(axis=1))
            row[: stages.size] = entries.ravel() / (size or 1.0)
        return rows

    def _rates(self, orbit: Orbit) -> Array:
        """dc/dt at the points in the frame of the orbit, (n, k, N)."""
        rates = np.empty_like(orbit.stages)
        for index in np.ndindex(rates.shape[:2]):
            c = orbit.stages[index]
            rates[index] = self.motion.rate(c, orbit.p)
            for speed, turning in zip(orbit.speeds, self.motion.rotations, strict=True):
                rates[index] -= speed * (turning @ c)
        return rates

    def in_plane(self, z: Array, row: Array, value: float) -> tuple[Array, Any]:
        """Collocation equations, phase conditions and <row, z> = value; and their derivative."""
        orbit = self.orbit(z)
        rates = self._rates(orbit)
        residual = self.mesh.residual(orbit.stages, orbit.period * rates)
        rows = np.vstack([self.phase_rows, row])
        fixed = self.phase_rows @ self.reference.z
        borders = rows @ z - np.append(fixed, value)
        moving = bool(np.any(row[:-1]))
        derivative = partial(Linearised, self, orbit, rates, rows, by_parameter=moving)
        return np.append(residual.ravel(), borders), derivative

    def iteration(self, start: Array, row: Array, value: float) -> Iteration:
        """Newton's method for the orbit near `start` with <row, z> = value.

        The derivative is computed again unless a step with it reduces the residual by 0.1.
        """
        system = partial(self.in_plane_or_inf, row=row, value=value)
        return newton(system, start, CYCLE_TOLERANCE, MOST_CYCLE_STEPS,
                      halvings=MOST_CYCLE_HALVINGS, reused=CONTRACTED)  # fmt: skip

    def point(self, z: Array, direction: Array) -> CurvePoint:
        """Point of the curve at z with its unit tangent and its monodromy matrix."""

        def find() -> Array:
            _, derivative = self.in_plane(z, self.lengths * direction, 0.0)
            linear = derivative(by_parameter=True)
            tangent = linear.solve(np.append(np.zeros(len(z) - 1), 1.0))
            tangent /= np.sqrt(self.lengths @ tangent**2)
            return np.append(tangent, linear.condensed().monodromy())

        found = self.recalled("tangent", (z, direction), find)
        monodromy = found[len(z) :].reshape(2 * (len(self.motion.basis.degrees),))
        return CurvePoint(z, found[: len(z)], self.value(z[-1]), rates=[monodromy])

    def multipliers(self, point: CurvePoint) -> tuple[Array, Array, float]:
        """Multipliers of shifts in time and rotations, the others, and the error of the first.

        The others are those of perturbations up to these shifts, in decreasing absolute value. The
        error is |M f - f|/|f| for f = dc/dt.
        """
        (monodromy,), orbit = point.rates, self.orbit(point.z)
        c = orbit.stages[-1, -1]
        rate = self._rates(Orbit(c[None, None], orbit.period, orbit.speeds, orbit.p))[0, 0]
        shifts = np.column_stack([rate, *(A @ c for A in self.motion.rotations)])
        frame, sizes, _ = np.linalg.svd(shifts)
        count = int((sizes > SHIFT_ROUNDING * sizes[0]).sum())
        inside, across = frame[:, :count], frame[:, count:]
        neutral = np.linalg.eigvals(inside.T @ monodromy @ inside)
        others = np.linalg.eigvals(across.T @ monodromy @ across)
        error = np.linalg.norm(monodromy @ rate - rate) / np.linalg.norm(rate)
        return neutral, others[np.argsort(-np.abs(others))], float(error)
