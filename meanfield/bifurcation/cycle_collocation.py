"""Periodic orbits of dc/dt = F(c; p) by collocation at Radau points, on an adaptive mesh in time.

With s = t/T, 0 = s_0 < ... < s_n = 1, and k points c_1 < ... < c_k = 1 of the Radau IIA method in
every interval, of length h, the states U_j at the points and u at its beginning solve

    U_j = u + h T sum_l a_jl (F(U_l; p) - sum_i Omega_i A_i U_l),    u of the next interval = U_k.

The last interval ends where the first begins. The Omega_i are angular velocities in each rotation
under which the model is invariant, with generators A_i: an orbit may close up to a rotation. Phases
in time and of rotations are determined by sum_m w_m <dc/ds, c - reference> = 0 over the mesh, and
the same with A_i c; w_m are trapezoidal weights. The order of the method is 2 k - 1 at the mesh.

Radau methods damp the fast modes of diffusion as the flow does: with Gauss points, their
multipliers would have absolute values near 1 instead of 0.

Newton's method eliminates the points of each interval, u_m+1 = G_m u_m + E_m y, where y are the
changes of T, Omega and p, and then the u_m one by one with orthogonal matrices. The relation B u_0
+ C u_n = 0 that remains for y = 0 has the Floquet multipliers -C^-1 B, and is computed stably even
where factors G_m have large norms.

References
----------
Ascher, Mattheij and Russell, Numerical Solution of Boundary Value Problems for Ordinary
Differential Equations (1995), chapters 5, 7 and 9; Wright, SIAM J. Sci. Stat. Comput. 13 (1992);
Fairgrieve and Jepson, SIAM J. Numer. Anal. 28 (1991), for the multipliers.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial.legendre import legder, legroots, legval, legvander

from .bases import Array

POINTS = 10  # k, points in an interval
FLATTEST = 0.1  # least density of the mesh, relative to its mean


class Tableau(NamedTuple):
    """Radau IIA method with k points.

    Attributes
    ----------
    points : ndarray, (k,)
        c_j; the last is 1.
    matrix : ndarray, (k, k)
        a_jl.
    modes : ndarray, (k + 1, k + 1)
        Legendre coefficients of the polynomial with given values at 0, c_1, ..., c_k.
    """

    points: Array
    matrix: Array
    modes: Array


@lru_cache(maxsize=4)
def radau(count: int = POINTS) -> Tableau:
    """The method with `count` points."""
    series = np.zeros(count + 1)
    series[-2:] = -1.0, 1.0
    roots = np.sort(legroots(series).real)
    for _ in range(2):
        roots -= legval(roots, series) / legval(roots, legder(series))
    points = np.append((1 + roots[:-1]) / 2, 1.0)
    values = legvander(2 * points - 1, count)
    slopes = 2.0 * np.arange(count - 1) + 3
    integrals = np.column_stack([points, (values[:, 2:] - values[:, :-2]) / (2 * slopes)])
    matrix = np.linalg.solve(values[:, :count].T, integrals.T).T
    modes = np.linalg.inv(legvander(2 * np.append(0.0, points) - 1, count))
    return Tableau(points, matrix, modes)


class Mesh(NamedTuple):
    """Intervals in phase s, 0 to 1.

    Attributes
    ----------
    ends : ndarray, (n + 1,)
        s_0 = 0, ..., s_n = 1.
    """

    ends: Array

    @property
    def lengths(self) -> Array:
        return np.diff(self.ends)

    @property
    def phases(self) -> Array:
        """Phases of the collocation points, (n, k)."""
        return self.ends[:-1, None] + self.lengths[:, None] * radau().points

    @property
    def weights(self) -> Array:
        """Trapezoidal weights of the ends s_1, ..., s_n, (n,)."""
        return (self.lengths + np.roll(self.lengths, -1)) / 2

    def series(self, stages: Array) -> Array:
        """Legendre coefficients (n, k + 1, N) in each interval of states (n, k, N)."""
        starts = np.roll(stages[:, -1], 1, axis=0)
        return radau().modes @ np.concatenate([starts[:, None], stages], axis=1)

    def residual(self, stages: Array, rates: Array) -> Array:
        """Residuals (n, k, N) of the collocation equations, for rates by phase (n, k, N)."""
        starts = np.roll(stages[:, -1], 1, axis=0)[:, None]
        return stages - starts - self.lengths[:, None, None] * (radau().matrix @ rates)

    def at(self, stages: Array, phases: Array) -> Array:
        """States (..., N) at phases (...), which have the period 1."""
        s = np.asarray(phases, dtype=float) % 1.0
        i = np.clip(np.searchsorted(self.ends, s, side="right") - 1, 0, len(self.ends) - 2)
        inside = 2 * (s - self.ends[i]) / self.lengths[i] - 1
        values = legvander(np.ravel(inside), stages.shape[1]).reshape(*s.shape, -1)
        return np.einsum("...k,...kn->...n", values, self.series(stages)[i])

    def amplitude(self, stages: Array) -> float:
        """Root of the mean square of states (n, k, N) minus their mean over the period."""
        ends = stages[:, -1]
        return float(np.sqrt(self.weights @ ((ends - self.weights @ ends) ** 2).sum(axis=1)))

    def passes(self, stages: Array, tolerance: float) -> int:
        """Number of times that states (n, k, N) pass through the same orbit, to a tolerance."""
        count = POINTS * len(self.lengths)
        waves = np.fft.rfft(self.at(stages, np.arange(count) / count), axis=0) / count
        present = np.linalg.norm(waves, axis=1) > tolerance
        return int(np.gcd.reduce(np.flatnonzero(present)))

    def errors(self, stages: Array) -> Array:
        """Estimated error of the polynomial in each interval, (n,), in the norm of the states.

        The Legendre coefficient of degree k + 1, from differences of those of degree k.
        """
        return self._density(stages) ** (POINTS + 1) * self.lengths ** (POINTS + 1)

    def _density(self, stages: Array) -> Array:
        """(error / length^(k + 1))^(1/(k + 1)) in each interval, (n,)."""
        top = self.series(stages)[:, -1] / self.lengths[:, None] ** POINTS
        between = (self.lengths + np.roll(self.lengths, -1)) / 2
        jumps = np.linalg.norm(np.roll(top, -1, axis=0) - top, axis=1) / between
        change = (jumps + np.roll(jumps, 1)) / 2
        return (change / (2 * (2 * POINTS + 1))) ** (1 / (POINTS + 1))

    def adapted(self, stages: Array, tolerance: float, least: int, most: int) -> "Mesh":
        """The mesh on which estimated errors are equal, and at most the tolerance."""
        density = self._density(stages)
        mean = float(self.lengths @ density)
        density = density + FLATTEST * mean
        mass = np.append(0.0, np.cumsum(self.lengths * density))
        count = int(np.clip(np.ceil(mass[-1] / tolerance ** (1 / (POINTS + 1))), least, most))
        ends = np.interp(np.linspace(0, mass[-1], count + 1), mass, self.ends)
        ends[0], ends[-1] = 0.0, 1.0
        return Mesh(ends)


class Condensed(NamedTuple):
    """Linear relations u_m+1 = G_m u_m + E_m y between the ends of intervals.

    Attributes
    ----------
    steps : ndarray, (n, N, N)
        G_m.
    shifts : ndarray, (n, N, q)
        E_m.
    """

    steps: Array
    shifts: Array

    def solved(self, rows: Array, corner: Array) -> tuple[Array, Array]:
        """Ends u_1, ..., u_n = u_0, (n, N), and y, (q,), whose last entry is 1.

        They also solve sum_m <rows_am, u_m> + corner_a y = 0, for rows (q - 1, n, N) and a corner
        (q - 1, q).
        """
        n, size, _ = self.steps.shape
        kept, corner, first, rows = [], corner.copy(), rows[:, -1].copy(), rows.copy()
        relation, shift = self._start()
        for m in range(1, n):
            known, relation, shift = _merged(relation, shift, self.steps[m], self.shifts[m])
            kept.append(known)
            u, onward, y = known
            first -= rows[:, m - 1] @ u
            corner += rows[:, m - 1] @ y
            if m < n - 1:
                rows[:, m] -= rows[:, m - 1] @ onward
            else:
                first -= rows[:, m - 1] @ onward
        begin, end = relation
        matrix = np.block([[begin + end, -shift[:, :-1]], [first, corner[:, :-1]]])
        solution = np.linalg.solve(matrix, np.append(shift[:, -1], -corner[:, -1]))
        y, ends = np.append(solution[size:], 1.0), np.empty((n, size))
        ends[-1] = solution[:size]
        for m in range(n - 2, -1, -1):
            u, onward, moved = kept[m]
            ends[m] = moved @ y - u @ ends[-1] - onward @ ends[m + 1]
        return ends, y

    def _start(self) -> tuple[tuple[Array, Array], Array]:
        """The relation B u_0 + C u_1 = E y."""
        return (-self.steps[0], np.eye(self.steps.shape[1])), self.shifts[0]

    def monodromy(self) -> Array:
        """The derivative of the state after one period by that at phase 0, (N, N)."""
        relation, shift = self._start()
        for m in range(1, len(self.steps)):
            _, relation, shift = _merged(relation, shift, self.steps[m], self.shifts[m])
        begin, end = relation
        return np.asarray(np.linalg.solve(end, -begin), dtype=float)


def _merged(relation: tuple[Array, Array], shift: Array, step: Array, moved: Array) -> Any:
    """Eliminate u from B u_0 + C u = E y and u' = G u + E' y.

    Returns u = -X u_0 - Y u' + Z y as (X, Y, Z), and the relation of u_0 and u'.
    """
    from scipy.linalg import qr, solve_triangular

    (begin, end), size = relation, len(step)
    q, r = qr(np.vstack([end, -step]))
    nothing = np.zeros_like(begin)
    after = q.T @ np.block([[begin, nothing, shift], [nothing, np.eye(size), moved]])
    top = solve_triangular(r[:size], after[:size])
    parts, last = np.split(top, [size, 2 * size], axis=1), after[size:]
    return tuple(parts), (last[:, :size], last[:, size : 2 * size]), last[:, 2 * size :]
