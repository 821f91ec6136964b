"""What densities do to the points of their grid: velocities, outputs of attention, potentials.

A field belongs to one drift on one space. It is made by the drift's kind, see FIELDS; fields of
sums of drifts are sums.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.cached import cached_property
from ..core.errors import MeanfieldError
from ..core.kinds import ancestor
from ..models import Attention, Drift, Pointwise, ZonalDrift
from ..models.zonal import kernel_degree
from ..spaces.circle_transport import NEGLIGIBLE, NO_MASS, Table
from .attention import AttentionSums
from .kernels import LARGEST, Kernel, Kernels, kernels_of, of_points, quadratic

COLUMNS = 32  # modes whose columns of tables are computed together
LARGEST_LOGIT = 700.0  # whose exponential, times values, does not overflow
BIASED = 14.0  # range of a bias beyond which sums would lose more than six digits
MEMORY = 8  # of Anderson's acceleration


@dataclass(frozen=True)
class GridDensity:
    """One density on the grid of its space, or in tables many functions at once.

    Attributes
    ----------
    geometry : Geometry
    coefficients : ndarray, (modes,)
    values : ndarray, (N,)
    """

    geometry: Any
    coefficients: np.ndarray
    values: np.ndarray

    @cached_property
    def moments(self) -> np.ndarray:
        """y mu(y) and mu(y) at the points y, (d + 1, ..., N)."""
        ones = np.ones((1, len(self.geometry.points)))
        lifted = np.concatenate([self.geometry.points.T, ones])
        return (lifted if self.values.ndim == 1 else lifted[:, None]) * self.values

    @property
    def masses(self) -> np.ndarray:
        """Those of the points as tokens, (N,)."""
        return self.geometry.weights * self.values

    def mean(self, values: np.ndarray) -> np.ndarray:
        """int f dmu of values (..., N)."""
        return values @ self.masses

    def mass_below(self, level: np.ndarray, least: Any) -> float:
        """The mass at the points where the level (N,) is below another."""
        below = level < least
        return float(np.abs(self.masses[below]).sum()) if below.any() else 0.0


class DensityField(ABC):
    """What a density exerts on the points of its grid under one drift, without ensembles."""

    def __init__(self, drift: Any, geometry: Any):
        self.drift, self.geometry, self._bounded = drift, geometry, 0.0

    @property
    def bounded(self) -> float:
        """The largest mass met at points where a bound has taken the place of Z * mu."""
        return self._bounded

    @abstractmethod
    def attention(self, t: float, density: GridDensity) -> np.ndarray:
        """The whole output of attention, (N, d)."""

    def velocity(self, t: float, density: GridDensity) -> np.ndarray:
        """Its tangential part, in components (d - 1, N)."""
        return np.einsum("fnd,nd->fn", self.geometry.frame, self.attention(t, density))

    def tables(self) -> "list[Table] | None":
        """Of the velocity on the circle, as a sum; None where it is no such sum."""
        return None

    def potential(self, t: float, density: GridDensity) -> np.ndarray:
        """Phi, (N,), of which the velocity is the gradient; that of a reaction."""
        raise NotImplementedError  # `check_potential` of the drift has refused it


class ZonalField(DensityField):
    """v = grad (W * mu) / (Z * mu) and the potential W * mu, by harmonics.

    Z * mu below NO_MASS is rounding, and is taken for NO_MASS: see `circle_transport`.
    """

    drift: ZonalDrift

    @cached_property
    def _multipliers(self) -> tuple[np.ndarray, np.ndarray | None]:
        degree, dimension = self.geometry.degree, self.geometry.dimension
        attraction = self.drift.attraction(degree, dimension)[self.geometry.degrees]
        normaliser = self.drift.normaliser(degree, dimension)
        return attraction, None if normaliser is None else normaliser[self.geometry.degrees]

    @cached_property
    def _interaction(self) -> np.ndarray:
        """Multipliers of W; those of `_multipliers` may have a factor in common with Z."""
        multipliers = self.drift.interaction(self.geometry.degree, self.geometry.dimension)
        return multipliers[self.geometry.degrees]

    def velocity(self, t: float, density: GridDensity) -> np.ndarray:
        attraction, normaliser = self._multipliers
        gradient = self.geometry.gradient(attraction * density.coefficients)
        if normaliser is None:
            return gradient
        return gradient / self._level(density)

    def tables(self) -> "list[Table] | None":
        if self.geometry.dimension != 2:
            return None
        attraction, normaliser = self._multipliers
        sizes = np.abs(attraction) * self.geometry.degrees
        sizes = sizes if normaliser is None else np.maximum(sizes, np.abs(normaliser))
        counted = np.flatnonzero(sizes > NEGLIGIBLE * sizes.max())
        count = int(counted[-1]) + 1 if counted.size else 1
        if count * self.geometry.weights.size > LARGEST:
            return None
        parts = unit_coefficients(self.geometry, 0, count)
        numerator = self.geometry.to_values(1j * self.geometry.degrees * attraction * parts)
        if normaliser is None:
            return [Table(numerator)]
        return [Table(numerator, self.geometry.to_values(normaliser * parts), NO_MASS)]

    def attention(self, t: float, density: GridDensity) -> np.ndarray:
        """int W'(<x, y>) y dmu(y) / (Z * mu)(x): the component k is W' * (y_k mu), convolved.

        The multipliers of W' are sums of those of W, W_l = (W'_(l-1) - W'_(l+1)) / (2l + d - 2).
        """
        geometry = self.geometry
        moments = geometry.to_coefficients(density.moments[:-1])
        output = geometry.to_values(self._slopes * moments).T
        normaliser = self._multipliers[1]
        if normaliser is None:
            return output
        return output / self._level(density)[:, None]

    def _level(self, density: GridDensity) -> np.ndarray:
        """Z * mu, or its bound."""
        level = self.geometry.to_values(self._multipliers[1] * density.coefficients)
        self._bounded = max(self._bounded, density.mass_below(level, NO_MASS))
        return np.maximum(level, NO_MASS)

    @cached_property
    def _slopes(self) -> np.ndarray:
        degree, dimension = self.geometry.degree, self.geometry.dimension
        last = 2 + 2 * max(degree, kernel_degree(self.drift, dimension))
        weights = self.drift.attraction(last, dimension)
        pairs = ((2 * np.arange(last + 1) + dimension - 2) * weights)[1:].reshape(-1, 2)
        return pairs[::-1].cumsum(axis=0)[::-1].ravel()[self.geometry.degrees]

    def potential(self, t: float, density: GridDensity) -> np.ndarray:
        return self.geometry.to_values(self._interaction * density.coefficients)


class PointField(DensityField):
    """A function of points, which no density changes."""

    @cached_property
    def _values(self) -> np.ndarray:
        values = self.drift.values(self.geometry.points)
        if not np.isfinite(values).all():
            raise MeanfieldError(self.drift.why_not_finite(1.0))
        return values

    def tables(self) -> "list[Table] | None":
        if self.geometry.dimension != 2:
            return None
        return [Table.constant((self.geometry.frame[0] * self._values).sum(axis=1))]

    def attention(self, t: float, density: GridDensity) -> np.ndarray:
        return self._values


# Attention -------------------------------------------------------------------------------------


class AttentionField(DensityField):
    """Attention of several heads, by the kernels of the space; else by sums over its points."""

    drift: Attention

    def __init__(self, drift: Attention, geometry: Any):
        super().__init__(drift, geometry)
        self._kernels: list[Kernels] = []
        self._sums = AttentionSums(drift)

    @property
    def bounded(self) -> float:
        return max((kernels.bounded for kernels in self._kernels), default=0.0)

    def heads(self, t: float, density: GridDensity, kind: Any = None) -> "list[Any]":
        """One for each head, with matrices at the time t."""
        found = self.drift.on(t, self.geometry.dimension)
        while len(self._kernels) < len(found):
            self._kernels.append(kernels_of(self.geometry))
        return [
            (kind or DensityHead)(density, *head, kernels)
            for head, kernels in zip(found, self._kernels, strict=False)
        ]

    def attention(self, t: float, density: GridDensity) -> np.ndarray:
        try:
            pulls: list[Any] = [self.drift.attend(head) for head in self.heads(t, density)]
            return sum(pulls[1:], pulls[0])
        except NotSmooth:
            points = self.geometry.points[None]
            return self._sums.attention(t, points, density.masses[None])[0]

    def tables(self) -> list[Table] | None:
        geometry = self.geometry
        if not (self.drift.constant and geometry.dimension == 2):
            return None
        found: list[list[Table]] = []
        for first in range(0, geometry.degrees.size, COLUMNS):
            parts = unit_coefficients(geometry, first, COLUMNS)
            functions = GridDensity(geometry, parts, geometry.to_values(parts))
            try:
                heads = self.heads(0.0, functions, TableHead)
                answers: Any = [self.drift.attend(head) for head in heads]
            except (NotSmooth, TypeError):  # weights that calculate with answers of heads, as
                return None  # tables have no arithmetic; errors of their own come in `attention`
            if not all(isinstance(answer, Table) for answer in answers):
                return None
            found.append(answers)
            if all(new.negligible_to(old) for new, old in zip(answers, found[0], strict=True)):
                break
            if sum(table.size for tables in found for table in tables) > LARGEST:
                return None
        return [Table.joined(columns) for columns in zip(*found, strict=True)]

    def potential(self, t: float, density: GridDensity) -> np.ndarray:
        slope = self.drift.gradient_at(t, self.geometry.dimension)
        if slope is None:
            return super().potential(t, density)
        c, A, beta = slope
        weights = self.drift.weights

        def energy(x, y):
            return weights.potential(x @ A.T @ y.T, beta)

        kernels = self.heads(t, density)[0].kernels
        key = "potential", A, beta
        kernel = kernels.remembered(key, lambda: kernels.smooth(A, energy))
        if kernel is not None:
            return c * kernel(density.values[None])[0]
        points = self.geometry.points
        return c * (energy(points, points) @ density.masses)


class NotSmooth(Exception):
    """A kernel needs sums over all pairs of points."""


@dataclass(frozen=True)
class DensityHead:
    """One head of attention on the grid of a density: what `engines.attention.Head` is to tokens.

    int k(x, y) V y dmu(y), divided by int k(x, y) dmu(y) where `normalised`, at the points x of
    the grid: (N, d). The logits are <A x, y> + bias(y), A = beta K^T Q, or <A x, y> + <y, form y>.
    """

    density: GridDensity
    V: np.ndarray
    Q: np.ndarray
    K: np.ndarray
    beta: np.ndarray
    kernels: Kernels
    bias: np.ndarray | None = None
    form: np.ndarray | None = None

    @property
    def A(self) -> np.ndarray:
        return self.beta * self.K.T @ self.Q

    @property
    def _factor(self) -> np.ndarray | float:
        """exp(bias), up to a constant; NotSmooth where digits would be lost."""
        bias = self.bias
        if self.form is not None:
            bias = quadratic(self.form, self.density.geometry.points)
        if bias is None:
            return 1.0
        if np.ptp(bias) > BIASED:
            raise NotSmooth
        return np.exp(bias - bias.max())

    def _exponential(self, A: np.ndarray, name: str) -> Kernel:
        return _smooth(self.kernels.remembered((name, A), lambda: self.kernels.exponential(A)))

    def exponential(self, *, normalised: bool) -> Any:
        """With k = e^logits; with a bias it has to be normalised."""
        if self.form is not None and normalised:
            key = "gaussian", self.A, self.form
            build = lambda: self.kernels.gaussian(self.A, self.form)  # noqa: E731
            gaussian = self.kernels.remembered(key, build)
            if gaussian is not None:
                sums = self._sums(gaussian, self.density.moments)
                return self.answer(sums[:-1], sums[-1], NO_MASS)
        kernel = self._exponential(self.A, "exponential")
        sums = self._sums(kernel, self._factor * self.density.moments)
        if normalised:
            x = self.density.geometry.points
            largest = np.linalg.norm(x @ self.A.T, axis=1) - kernel.top
            return self.answer(sums[:-1], sums[-1], NO_MASS * np.exp(largest))
        if kernel.top.max() > LARGEST_LOGIT:
            raise MeanfieldError(
                f"exp(beta <Qx, Ky>) has to stay below 1.8e308, beta <Qx, Ky> below "
                f"{LARGEST_LOGIT:g}; got logits up to about {kernel.top.max():.4g}. Use a smaller "
                "beta or smaller matrices, or weights that are normalised, as Softmax()."
            )
        return self.answer(np.exp(kernel.top) * sums[:-1])

    @staticmethod
    def _sums(kernel: Kernel, functions: np.ndarray) -> np.ndarray:
        return kernel(functions.reshape(-1, functions.shape[-1])).reshape(functions.shape)

    def answer(self, pulls: np.ndarray, level: np.ndarray | None = None, least: Any = None) -> Any:
        """V pulls / level, (N, d), of pulls (d, N); `least` takes the place of a smaller level."""
        pulled = (self.V @ pulls).T
        if level is None:
            return pulled
        if least is not None:
            found = self.density.mass_below(level, least)
            self.kernels.bounded = max(self.kernels.bounded, found)
            level = np.maximum(level, least)
        return pulled / level[:, None]

    def by_distance(self) -> "DensityHead":
        """The head with logits -beta |Qx - Ky|^2, up to a constant of each x."""
        return replace(self, beta=2 * self.beta, form=-self.beta * self.K.T @ self.K)

    def weighted(self, kernel: Callable, *, normalised: bool) -> np.ndarray:
        """With k = kernel(logits, (beta |Qx|^2, beta |Ky|^2))."""
        weights = of_points(kernel, self.Q, self.K, self.beta)
        key = "weights", self.Q, self.K, self.beta
        build = lambda: self.kernels.smooth(self.A, weights)  # noqa: E731
        sums = self._sums(_smooth(self.kernels.remembered(key, build)), self.density.moments)
        return self.answer(sums[:-1], sums[-1]) if normalised else self.answer(sums[:-1])

    def doubly_stochastic(self, tolerance: float, most_iterations: int) -> "DensityHead":
        """The head with the bias for which normalised weights have columns of sum one too."""
        symmetric = np.array_equal(self.A, self.A.T)  # then both factors are equal
        rows = self._exponential(self.A, "rows")
        columns = rows if symmetric else self._exponential(self.A.T, "columns")
        values = self.density.values

        def balancing(kernel: Kernel, potential: np.ndarray) -> np.ndarray:
            """-log int k e^potential dmu."""
            largest = potential.max()
            sums = kernel((np.exp(potential - largest) * values)[None])[0]
            if not (sums > 0).all():
                raise MeanfieldError(
                    "Sinkhorn weights of a density need a kernel with positive sums at all points; "
                    f"got {sums.min():.2g}, the largest being {sums.max():.2g}: rounding, or a "
                    "density that is not positive. Lower beta, or solve for Tokens."
                )
            return -(kernel.top + np.log(sums) + largest)

        def balanced(potential: np.ndarray) -> np.ndarray:
            other = balancing(rows, potential)
            return (potential + other) / 2 if symmetric else balancing(columns, other)

        amount = 4 if symmetric else 1  # of changes by which a marginal may be off
        start = np.zeros(values.size)
        bias = _fixed_point(balanced, start, tolerance, most_iterations, amount)
        return replace(self, bias=bias)

    def linear(self) -> Any:
        """With k = logits, not normalised."""
        points = self.density.geometry.points
        second = np.tensordot(self.density.moments[:-1], self._weighted_points, axes=1)
        return self.answer(second @ (points @ self.A.T).T)

    @property
    def _weighted_points(self) -> np.ndarray:
        geometry = self.density.geometry
        return geometry.weights[:, None] * geometry.points


def unit_coefficients(geometry: Any, first: int, count: int) -> np.ndarray:
    """1 as real, and as imaginary part of some of the coefficients in turn, (columns, modes)."""
    last = min(first + count, geometry.degrees.size)
    parts = np.zeros((2 * (last - first), 2 * geometry.degrees.size))
    parts[np.arange(len(parts)), 2 * first + np.arange(len(parts))] = 1.0
    return parts.view(complex)


class TableHead(DensityHead):
    """A head on many functions at once, which answers with a `Table`."""

    def answer(self, pulls, level=None, least=None) -> Any:
        along = self.density.geometry.frame[0] @ self.V  # <e, V y> at each point
        numerator = np.einsum("na,arn->rn", along, pulls)
        return Table(numerator, level, 0.0 if least is None else float(np.max(least)))

    def doubly_stochastic(self, tolerance: float, most_iterations: int) -> DensityHead:
        raise NotSmooth  # u and w depend on the density


def _fixed_point(
    f: Callable, x: np.ndarray, tolerance: float, most: int, amount: float = 1
) -> np.ndarray:
    """x = f(x), to expm1(amount (x - f(x))) <= tolerance; Anderson's acceleration."""
    changes: list[np.ndarray] = []
    values: list[np.ndarray] = []
    for _ in range(most):
        value = f(x)
        change = value - x
        error = np.abs(np.expm1(amount * change)).max()
        if error <= tolerance:
            return x
        changes, values = [*changes[-MEMORY:], change], [*values[-MEMORY:], value]
        x = value
        if len(changes) > 1 and error < 1:
            steps = np.diff(changes, axis=0).T
            parts = np.linalg.lstsq(steps, change, rcond=1e-10)[0]
            x = value - np.diff(values, axis=0).T @ parts
    raise MeanfieldError(
        f"Sinkhorn weights are not balanced after {most} iterations: the error of a marginal is "
        f"{error:.2g}, expected {tolerance:.2g}. Raise most_iterations if it is large (narrow "
        "kernels need more), or tolerance if it is small (about 1e-16 times the range of the "
        "kernel is rounding)."
    )


def _smooth(kernel: Kernel | None) -> Kernel:
    if kernel is None:
        raise NotSmooth
    return kernel


# Which field a drift has -----------------------------------------------------------------------

FIELDS: dict[Any, type[DensityField]] = {
    ZonalDrift: ZonalField,
    Attention: AttentionField,
    Pointwise: PointField,
}


def fields_of(drift: Drift, geometry: Any) -> list[tuple[float, DensityField]]:
    """Factors and fields of the parts of a drift, a single one.

    Raises
    ------
    MeanfieldError
        For a drift of another kind than those of FIELDS.
    """
    found = []
    for factor, part in drift.terms:
        kind = ancestor(type(part), FIELDS)
        if kind is None:
            names = ", ".join(each.__name__ for each in FIELDS)
            raise MeanfieldError(
                f"Densities know no field of {type(part).__name__}; they know those of {names} and "
                "of classes derived from them. Solve for Tokens."
            )
        found.append((factor, FIELDS[kind](part, geometry)))
    return found
