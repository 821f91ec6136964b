"""The stationary Fokker-Planck equation under any noise, in all harmonics.

mu is stationary under the drift v = grad(W * mu)/(Z * mu) and a noise with the generator L/kappa if

    L* mu - kappa div(mu v[mu]) = 0.

Where L is not the Laplacian, mu is no longer exp(kappa g)/const. In the moments m_i = c_i/s_i,
c_i = int p_i dmu, of real orthonormal harmonics p_i of degree l, s_i = sqrt(dim H_l), this is

    R_i(m) = -(sum_j M_ij c_j + M_i0 + kappa int mu <grad p_i, v[mu]>) / (l (l + d - 2) s_i) = 0

with M the matrix of L*. The Jacobian is that of linear stability: with h = sum_j c_j p_j,

    L h = L* h/kappa - div(h v[mu] + mu (grad W * h - v[mu] Z * h)/(Z * mu)).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..core.cached import cached_property
from ..models import ZonalDrift
from .reflections import HarmonicsOfOrder, Reflected

MOMENT_ROUNDING = 2e-15  # of a moment, for each degree


class Flow(NamedTuple):
    """What the density with the moments m does, on the grid.

    Attributes
    ----------
    kappa : float
    density : ndarray, (M,)
    velocity : ndarray, (d - 1, M)
    level : ndarray, (M,)
        Z * mu.
    force : ndarray, (n,)
        int mu <grad p_i, v>, of functions of order 0.
    moments : ndarray, (N,)
        m - R.
    """

    kappa: float
    density: np.ndarray
    velocity: np.ndarray
    level: np.ndarray
    force: np.ndarray
    moments: np.ndarray


class Multipliers(NamedTuple):
    """w_l and z_l of W and Z for every degree, over the mean of Z; z = 0 where Z = 1."""

    weights: np.ndarray
    normaliser: np.ndarray

    def of(self, degrees: np.ndarray) -> "Multipliers":
        """Those of each function."""
        return Multipliers(self.weights[degrees], self.normaliser[degrees])


class Product(NamedTuple):
    """An operator on harmonics as sums over nodes: left (sum_k w_k right_k)^T, columns scaled.

    Attributes
    ----------
    left : ndarray, (n, M)
    rights : list of (ndarray, ndarray), (M,) and (n, M)
        Weights of nodes, and functions.
    factors : ndarray, (n,), or float
        Of the columns.
    """

    left: np.ndarray
    rights: list[tuple[np.ndarray, np.ndarray]]
    factors: Any = 1.0

    @property
    def matrix(self) -> np.ndarray:
        (weights, right), *others = self.rights
        total = weights * right
        for weights, right in others:
            total += weights * right
        return self.left @ total.T * self.factors

    def times(self, directions: np.ndarray) -> np.ndarray:
        """The operator times directions (n, k)."""
        inside = (self.factors * directions.T).T
        return self.left @ sum(w[:, None] * (right.T @ inside) for w, right in self.rights)


def summed(
    operator: np.ndarray, products: Iterable[Product], directions: np.ndarray | None = None
) -> np.ndarray:
    """The sum of an operator, a matrix or its diagonal, and of products; times directions (n, k).

    Without directions the matrix, (n, n).
    """
    if directions is None:
        matrix = np.diag(operator) if operator.ndim == 1 else operator.copy()
        for product in products:
            matrix += product.matrix
        return matrix
    result = operator[:, None] * directions if operator.ndim == 1 else operator @ directions
    return result + sum(product.times(directions) for product in products)


class FokkerPlanck:
    """R(m) = 0 for one zonal drift and one noise, among states with some reflections.

    Parameters
    ----------
    drift : ZonalDrift
        A single one.
    basis : Reflected
    tables : callable, optional
        () -> Multipliers: their derivatives by a parameter of the drift.
    """

    gradient_flow = False

    def __init__(self, drift: ZonalDrift, basis: Reflected, tables: Callable | None = None):
        self.drift, self.basis, self._differentiated = drift, basis, tables
        self.degree, self.degrees = basis.degree, basis.degrees

    @cached_property
    def _multipliers(self) -> "Multipliers":
        (found,) = multipliers(self.drift, self.basis)
        return found.of(self.degrees)

    @cached_property
    def _changes(self) -> "Multipliers":
        """d/dp of the multipliers."""
        assert self._differentiated is not None
        return self._differentiated().of(self.degrees)

    @property
    def most_attracted(self) -> int:
        """Stability is looked at in all orders."""
        return self.basis.orders

    def finer(self, degree: int) -> "FokkerPlanck":
        """The same equation in more functions."""
        return FokkerPlanck(self.drift, self.basis.finer(degree))

    def among(self, basis: Reflected) -> "FokkerPlanck":
        """The same equation for states with other reflections."""
        return FokkerPlanck(self.drift, basis, self._differentiated)

    @cached_property
    def _scale(self) -> np.ndarray:
        return self.scale(self.basis.even)

    def scale(self, part: HarmonicsOfOrder) -> np.ndarray:
        """l (l + d - 2) s_i of functions of one order."""
        return (self.basis.eigenvalues * self.basis.sizes)[part.members]

    @cached_property
    def _diffusion(self) -> tuple[np.ndarray, np.ndarray]:
        mine, (matrix, uniform) = self.basis.even.members, self.basis.all.diffusion
        return matrix[np.ix_(mine, mine)], uniform[mine]

    def mean(self, m: np.ndarray, kappa: float) -> Flow:
        """What the density does."""
        even, (w, z) = self.basis.even, self._multipliers
        mine = even.members
        c = self.basis.sizes[mine] * m[mine]
        density = 1.0 + c @ even.values
        pull = np.tensordot(even.gradients, w[mine] * c, (1, 0))
        level = 1.0 + (z[mine] * c) @ even.values
        velocity = pull / level
        force = np.tensordot(
            even.gradients, self.basis.weights * density * velocity, ((0, 2), (0, 1))
        )
        matrix, uniform = self._diffusion
        moments = np.zeros_like(m)
        moments[mine] = m[mine] + (matrix @ c + uniform + kappa * force) / self._scale
        return Flow(kappa, density, velocity, level, force, moments)

    def residual(self, m: np.ndarray, kappa: float) -> float:
        """max_i |R_i|."""
        return float(np.abs(m - self.mean(m, kappa).moments).max())

    def resolves(self, m: np.ndarray, kappa: float, tail: float) -> bool:
        """Whether the last moments are below `tail` and rounding."""
        return self.basis.tail(m) <= tail + MOMENT_ROUNDING * self.degree

    def jacobian(self, flow: Flow) -> np.ndarray:
        """dR/dm, (N, N)."""
        even, result = self.basis.even, np.eye(len(self.degrees))
        result[np.ix_(even.members, even.members)] = self.block(flow, even)
        return result

    def coupled(self, flow: Flow) -> np.ndarray:
        """dR/dm for a step of Newton's method."""
        return self.jacobian(flow)

    def block(self, flow: Flow, part: HarmonicsOfOrder) -> np.ndarray:
        """The Jacobian among functions of one order: dR/dm, (n, n), for those of order 0."""
        mine = part.members
        diffusion = self.basis.all.diffusion[0][np.ix_(mine, mine)]
        operator = diffusion + flow.kappa * summed(0 * diffusion, self._transport(flow, part))
        return -operator * self.basis.sizes[mine] / self.scale(part)[:, None]

    def block_change(
        self, flow: Flow, m: np.ndarray, part: HarmonicsOfOrder, left: np.ndarray, right: np.ndarray
    ) -> np.ndarray:
        """d(left . block right), (N + 2,), by the moments, log kappa and the parameter.

        With f = sum left_i p_i/(l_i (l_i + d - 2) s_i), h = sum right_i s_i p_i and q = grad W * h
        - v Z * h, left . block right has the part -kappa int <grad f, h v + (mu/Z * mu) q>. A
        change k of mu changes v by (grad W * k - v Z * k)/(Z * mu).
        """
        even, mine, sizes = self.basis.even, part.members, self.basis.sizes
        (w, z), inner = self._multipliers, self.basis.even.members
        f = np.tensordot(left / self.scale(part), part.gradients, (0, 1))
        c = sizes[mine] * right
        h, pulled, levelled = c @ part.values, w[mine] * c, (z[mine] * c) @ part.values
        q = np.tensordot(pulled, part.gradients, (0, 1)) - flow.velocity * levelled
        share = flow.density / flow.level
        weights = self.basis.weights
        rest = weights * (h - share * levelled) / flow.level  # times a change of Z * mu v
        along, moved = (f * flow.velocity).sum(axis=0), (f * q).sum(axis=0) * weights / flow.level
        change = np.zeros(len(self.degrees) + 2, dtype=np.result_type(left, right))
        by_mass = even.values @ moved
        by_level = even.values @ (rest * along + share * moved)
        by_pull = np.einsum("cim,cm->i", even.gradients, rest * f)
        change[inner] = sizes[inner] * (by_mass + w[inner] * by_pull - z[inner] * by_level)
        change[-2] = weights @ (h * along) + (share * moved * flow.level).sum()
        by_w, by_z = self._changes
        masses = sizes[inner] * m[inner]
        turned = np.tensordot(by_w[mine] * c, part.gradients, (0, 1))
        turned -= flow.velocity * ((by_z[mine] * c) @ part.values)
        change[-1] = (weights * share) @ (f * turned).sum(axis=0)
        change[-1] += (by_w[inner] * masses) @ by_pull - (by_z[inner] * masses) @ by_level
        return -flow.kappa * change

    def _transport(self, flow: Flow, part: HarmonicsOfOrder) -> Iterator[Product]:
        """h -> -div(h v + mu (grad W * h - v Z * h)/(Z * mu)) in one order."""
        w, z = self._multipliers
        weights, mine, share = self.basis.weights, part.members, flow.density / flow.level
        for gradient, velocity in zip(part.gradients, flow.velocity, strict=True):
            yield Product(gradient, [(weights * velocity, part.values)])
            yield Product(gradient, [(weights * share, gradient)], w[mine])
            if z.any():
                yield Product(gradient, [(-weights * share * velocity, part.values)], z[mine])

    def linearised(
        self,
        m: np.ndarray,
        kappa: float,
        part: HarmonicsOfOrder,
        directions: np.ndarray | None = None,
    ) -> np.ndarray:
        """The operator L about the state m, in the harmonics of one order: (n, n).

        Or L times directions (n, k).
        """
        mine = part.members
        diffusion = self.basis.all.diffusion[0][np.ix_(mine, mine)]
        return summed(diffusion / kappa, self._transport(self.mean(m, kappa), part), directions)

    def by_log_kappa(self, flow: Flow) -> np.ndarray:
        """dR/dlog kappa, (N,)."""
        result = np.zeros(len(self.degrees))
        result[self.basis.even.members] = -flow.kappa * flow.force / self._scale
        return result

    def by_parameter(self, m: np.ndarray, flow: Flow) -> np.ndarray:
        """dR/dp, (N,), p a parameter of the drift."""
        even, (w, z) = self.basis.even, self._changes
        mine = even.members
        c = self.basis.sizes[mine] * m[mine]
        change = np.tensordot(even.gradients, w[mine] * c, (1, 0)) / flow.level
        change -= flow.velocity * ((z[mine] * c) @ even.values) / flow.level
        mass = self.basis.weights * flow.density
        result = np.zeros(len(self.degrees))
        pushed = np.tensordot(even.gradients, mass * change, ((0, 2), (0, 1)))
        result[mine] = -flow.kappa * pushed / self._scale
        return result

    def free_energy(self, flow: Any) -> float:
        """Nan: there is none."""
        return float("nan")


def multipliers(drift: ZonalDrift, basis: Any) -> list[Multipliers]:
    """Those of every member of a drift, up to the degree of a basis."""
    of = basis.degree, basis.dimension
    w, z = np.atleast_2d(drift.attraction(*of)), drift.normaliser(*of)
    if z is None:
        return [Multipliers(row, np.zeros_like(row)) for row in w]
    z = np.atleast_2d(z)
    return [Multipliers(row / one[0], one / one[0]) for row, one in zip(w, z, strict=True)]
