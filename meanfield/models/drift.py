"""What a drift is: a velocity field v[mu] of attention."""

import functools
import inspect
from abc import abstractmethod
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

import numpy as np

from ..core.errors import MeanfieldError
from ..core.forms import NUMBERS, Either, Form
from ..core.kinds import Kind, KindOf, parameters_of
from ..spaces.kernels import finite_values, quadrature_multipliers
from .parameters import GivenNumber
from .slopes import slope_of

__all__ = ["Drift", "Ensemble", "ZonalDrift"]

NODES = np.cos(np.pi * (np.arange(64) + 0.5) / 64)  # at which a drift shows what it computes
DENSE = np.linspace(-1, 1, 515)[1:-1]  # for the largest slope, which may be infinite at +-1
ENSEMBLE = Either((NUMBERS, KindOf(GivenNumber)))  # what a parameter of the annotation float may be
Ensemble = Annotated[Any, ENSEMBLE]
CLOSE = 1e-3  # gaps below which differences of slopes cancel
PLACES, SHARES = (np.polynomial.legendre.leggauss(40) + np.array([[1.0], [0.0]])) / 2


class Drift(Kind, family=True):
    """A velocity field v[mu] that a measure exerts on its points.

    In a drift a parameter of the annotation ``float`` is a number, or an array of them, which makes
    an ensemble.

    Attributes
    ----------
    gradient_flow : bool
        Whether mu follows the Wasserstein gradient of an interaction energy.
    on_sphere_only : bool
        Whether the drift is defined on the unit sphere, and not in R^d.
    parts_tokens : bool
        Whether tokens at the same place may part.
    constant : bool
        Whether no parameter depends on time.
    """

    leaves: ClassVar[dict[Any, Form]] = {float: ENSEMBLE}
    gradient_flow: ClassVar[bool] = False
    on_sphere_only: ClassVar[bool] = False
    parts_tokens: ClassVar[bool] = False
    constant: ClassVar[bool] = True

    @property
    def dimension(self) -> int | None:
        """The d of the points, or None where the drift leaves it open."""
        return None

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """The numbers that may differ between the members of an ensemble, by name."""
        return {
            name: getattr(self, name)
            for name, parameter in parameters_of(type(self)).items()
            if parameter.form is ENSEMBLE and isinstance(getattr(self, name), np.ndarray)
        }

    @property
    def shape(self) -> tuple[int, ...]:
        """Ensemble shape of the parameters; () for a single drift."""
        return np.broadcast_shapes(*(values.shape for values in self.parameters.values()))

    def validate(self) -> None:
        try:
            self.shape  # noqa: B018  (raises if the parameters do not broadcast)
        except ValueError:
            shapes = {name: values.shape for name, values in self.parameters.items()}
            raise ValueError(
                f"The parameters of {type(self).__name__} do not broadcast: shapes {shapes}."
            ) from None

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        """The drift with an ensemble of parameters flattened, one for each entry of `shape`."""
        if not self.shape:
            return self
        found = {n: np.broadcast_to(v, shape).ravel() for n, v in self.parameters.items() if v.ndim}
        return self.replace(**found)

    def member(self, index: int | tuple[int, ...]) -> Self:
        """The drift of one member of the ensemble; itself if it is a single one."""
        if not self.shape:
            return self
        found = self.parameters.items()
        return self.replace(**{n: np.broadcast_to(v, self.shape)[index] for n, v in found})

    @abstractmethod
    def rate(self, t: float = 0.0) -> np.ndarray:
        """About the largest rate at which tokens attract each other, for the choice of steps."""

    def breakpoints(self, start: float, end: float) -> np.ndarray:
        """Times strictly between `start` and `end` at which a parameter jumps, increasing."""
        return np.empty(0)

    def known_rate(self, on_sphere: bool) -> bool:
        """Whether `rate` bounds how fast tokens move, at all times: steps may be chosen by it."""
        return True

    def output_size(self, t: float) -> float:
        """About the length of the output of attention where nothing cancels."""
        return float(np.max(self.rate(t)))

    def interaction_energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """E of tokens (..., n, d) with masses (..., n), (...); nan where the drift has none."""
        return np.full(x.shape[:-2], np.nan)

    def why_not_finite(self, largest: float) -> str:
        """Why velocities of tokens overflow whose components are up to `largest`."""
        return (
            "numbers such as beta <Qx, Ky> and V x exceed 1.8e308, the largest there is; "
            f"components of the tokens are up to {largest:.3g}. Rescale the tokens, or the "
            "parameters."
        )

    def as_zonal(self) -> "ZonalDrift":
        """The drift, if it depends on inner products alone; raises MeanfieldError if not."""
        raise MeanfieldError(
            f"{type(self).__name__} does not depend on inner products alone, so it has no "
            "harmonics to move a density by: solve for Tokens. Densities, Characteristics and "
            f"Gram matrices take {', '.join(zonal_names())}."
        )


def zonal_names() -> list[str]:
    """The names of the zonal drifts that are known."""
    return sorted(name for name, kind in Drift.kinds.items() if issubclass(kind, ZonalDrift))


class ZonalDrift(Drift):
    """v[mu] = grad (W * mu) / (Z * mu) on the unit sphere of R^d, W and Z functions of <x, y>.

    A drift of one's own needs `slope`, which is W'; the rest follows from it, and what is given in
    closed form is faster:

        v(x) = P_x sum_j m_j W'(<x, x_j>) x_j / sum_j m_j Z(<x, x_j>)

    `slope`, `weight` and `potential` are functions of inner products t of shape (*shape, ...),
    whose parameters have the trailing axes that they need for broadcasting with t.

    Attributes
    ----------
    exponent : ndarray of shape `shape`, or None
        beta if W' is exp(beta t), and Z is 1 or exp(beta t): sums over tokens are then compiled.
        None for other functions.
    polynomial_degree : int or None
        The degree of W and Z, if they are polynomials of known degree.
    multiplier_error : float
        Error of the multipliers relative to the largest; 0 for closed forms, which are exact to
        rounding of each.

    Examples
    --------
    >>> class LinearAttention(ZonalDrift):
    ...     b: float
    ...
    ...     def slope(self, t):
    ...         return 1 + self.b * t
    """

    on_sphere_only = True
    multiplier_error: ClassVar[float] = 3e-14  # of quadrature

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in ("slope", "weight", "potential"):
            if inspect.isfunction(cls.__dict__.get(name)):
                setattr(cls, name, _with_trailing_axes(cls.__dict__[name]))

    @abstractmethod
    def slope(self, t: np.ndarray) -> np.ndarray:
        """W' at inner products t (*shape, ...).

        It may have a factor in common with `weight`, if `attraction` and `normaliser` are given.
        """

    def weight(self, t: np.ndarray) -> np.ndarray:
        """Z at inner products t (*shape, ...): 1, unless it is overridden."""
        return np.ones_like(t)

    def potential(self, t: np.ndarray) -> np.ndarray:
        """W at inner products t (*shape, ...): the integral of `slope` from 0, unless overridden.

        By a Gauss rule of 40 nodes, exact to rounding for smooth slopes.
        """
        return t * (self.slope(t[..., None] * PLACES) @ SHARES)

    def potential_at(self, t: np.ndarray) -> np.ndarray:
        """`potential`; inner products beyond +-1 by rounding are taken for +-1."""
        return self.potential(np.minimum(np.maximum(t, -1.0), 1.0))

    @property
    def exponent(self) -> np.ndarray | None:
        return None

    @property
    def polynomial_degree(self) -> int | None:
        return None

    @property
    def normalised(self) -> bool:
        """Whether the sums are divided by Z * mu: whether `weight` is overridden."""
        return type(self).weight is not ZonalDrift.weight

    @property
    def gradient_flow(self) -> bool:  # type: ignore[override]
        return not self.normalised

    def as_zonal(self) -> "ZonalDrift":
        return self

    def rate(self, t: float = 0.0) -> np.ndarray:
        """The largest |W'|, over the least Z."""
        nodes = np.broadcast_to(DENSE, (*self.shape, DENSE.size))
        return np.abs(self.slope(nodes)).max(axis=-1) / self.weight(nodes).min(axis=-1)

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        """Multipliers of W, shape (*shape, degree + 1); entry 0 has no effect on v, and is 0.

        From those of W' by quadrature, W_l = (W'_(l-1) - W'_(l+1)) / (2l + d - 2).
        """
        return self._known(self._attraction, degree, dimension)

    def normaliser(self, degree: int, dimension: int) -> np.ndarray | None:
        """Multipliers of Z, shape (*shape, degree + 1), or None where Z = 1."""
        return self._known(self._normaliser, degree, dimension) if self.normalised else None

    def interaction(self, degree: int, dimension: int) -> np.ndarray:
        """Multipliers of W in the interaction energy, its additive constant included."""
        multipliers = self.attraction(degree, dimension)
        mean = self._of_members(lambda drift: drift.potential_at, 0, dimension)
        multipliers[..., :1] = mean
        return multipliers

    def _known(self, compute, degree: int, dimension: int) -> np.ndarray:
        key = compute.__name__, degree, dimension
        if key not in self._multipliers:
            self._multipliers[key] = compute(degree, dimension)
        return self._multipliers[key].copy()

    @cached_property
    def _multipliers(self) -> dict[tuple, np.ndarray]:
        return {}  # that were asked for: a kernel with a kink takes seconds

    def _attraction(self, degree: int, dimension: int) -> np.ndarray:
        slopes = self._of_members(lambda drift: drift.slope, degree + 1, dimension)
        l = np.arange(1, degree + 1)
        multipliers = np.zeros((*self.shape, degree + 1))
        multipliers[..., 1:] = (slopes[..., :-2] - slopes[..., 2:]) / (2 * l + dimension - 2)
        return multipliers

    def _normaliser(self, degree: int, dimension: int) -> np.ndarray:
        return self._of_members(lambda drift: drift.weight, degree, dimension)

    def _of_members(self, function, degree: int, dimension: int) -> np.ndarray:
        multipliers = np.empty((*self.shape, degree + 1))
        for index in np.ndindex(*self.shape):
            kernel = function(self.member(index))
            multipliers[index] = quadrature_multipliers(kernel, degree, dimension)
        return multipliers

    def contrast(self, log_gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """W'(1)/W'(1 - gap) - 1 as its sign and its logarithm, both (*shape, ...).

        The gap > 0 is given by its logarithm: it may be below the least number of the machine.
        Where it is small, by the mean of W'' between the two.
        """
        gap = np.exp(log_gap)
        there = self.slope(1 - gap)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (self.slope(np.ones_like(gap)) - there) / there
            sign, log_size = np.array(np.sign(ratio)), np.array(np.log(np.abs(ratio)))
            for index in np.argwhere(gap < CLOSE):
                place = tuple(index)
                curvature = self.member(place[: len(self.shape)])._curvature
                mean = curvature(1 - gap[place] * PLACES) @ SHARES / there[place]
                sign[place] = np.sign(mean)
                log_size[place] = np.log(np.abs(mean)) + log_gap[place]
        return sign, log_size

    @cached_property
    def _curvature(self):
        """W''."""
        try:
            return slope_of(self.slope)
        except MeanfieldError as error:
            raise MeanfieldError(
                f"Close tokens need the curvature W'' of {self!r}, whose slope is not smooth: "
                "tokens that are closer than 1e-3 cannot be told from each other."
            ) from error

    def fingerprint(self) -> Any:
        nodes = np.broadcast_to(NODES, (*self.shape, NODES.size))
        return [finite_values("slope", self.slope, nodes), self.weight(nodes)]


def _with_trailing_axes(method):
    """The method on a drift whose parameters broadcast with inner products t."""

    @functools.wraps(method)
    def evaluate(self, t):
        t = np.asarray(t, dtype=float)
        return method(_expanded(self, t.ndim) if self.shape else self, t)

    return evaluate


def _expanded(drift: ZonalDrift, ndim: int) -> ZonalDrift:
    """A copy whose ensemble parameters have as many axes as inner products."""
    copy, shape = object.__new__(type(drift)), drift.shape
    copy.__dict__.update(drift.__dict__)
    for name, values in drift.parameters.items():
        own = np.broadcast_to(values, shape)
        copy.__dict__[name] = own.reshape(shape + (1,) * (ndim - len(shape)))
    return copy
