"""Zonal drifts: v[mu] = grad (W * mu) / (Z * mu) with W and Z functions of the inner product."""

import functools
import inspect
import re
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..core.annotations import AnyObject, Function, PassedOn, Values
from ..core.cached import cached_property
from ..core.checks import returned
from ..core.dual import Dual, changes_of, value_of
from ..core.errors import MeanfieldError, UnresolvedWarning
from ..spaces.kernels import Primitive, quadrature_multipliers, values_at
from .changes import derivative_by
from .drift import Drift

if TYPE_CHECKING:
    from ..spaces.torus import Torus

# Inner products at which values of a drift identify it.
FINGERPRINT_NODES = np.cos(np.pi * (np.arange(64) + 0.5) / 64)
SLOPE_SEARCH_NODES = np.linspace(-1, 1, 515)[1:-1]  # slopes may be infinite at +-1
CLOSE_SLOPES = 1e-3  # gaps below which differences of slopes suffer from cancellation
GAUSS_NODES, GAUSS_WEIGHTS = (np.polynomial.legendre.leggauss(40) + np.array([[1.0], [0.0]])) / 2
INTERPOLANT_SIZES = (16, 32, 64, 128, 256, 512, 1024)  # of Chebyshev interpolants
SLOPE_ACCURACY = 1e-12  # relative accuracy of the derivatives of interpolants
ROUNDED_COEFFICIENT = 1e-15  # coefficients below this share of the largest may be rounding errors
NEGLIGIBLE_DEGREE = 1e-17
CLOSED_FORMS = (
    "exponent",
    "polynomial_degree",
    "multiplier_error",
    "rate",
    "potential",
    "attraction",
    "normaliser",
    "interaction",
    "contrast",
)  # valid only for the slope and weight of the same class
KERNEL_DEGREES = (64, 256, 1024, 4096)


def remembered(compute: Function) -> Function:
    """Decorator that caches multipliers by degree and dimension, as quadrature may be slow."""

    names = list(inspect.signature(compute).parameters)[1:]

    @functools.wraps(compute)
    def multipliers(self: "ZonalDrift", *of: object, **keywords: object) -> np.ndarray | None:
        of += tuple(keywords.pop(name) for name in names[len(of) :] if name in keywords)
        if keywords or len(of) != len(names):
            compute(self, *of, **keywords)  # raises TypeError
        cache = self._multipliers
        key = compute.__name__, *of
        if key not in cache:  # a new mapping, as another thread may be reading this one
            cache = {**cache, key: compute(self, *of)}
            self.__dict__["_multipliers"] = cache
        stored = cache[key]
        return None if stored is None else stored.copy()

    return multipliers


class ZonalDrift(Drift):
    """v[mu] = grad (W * mu) / (Z * mu) on the unit sphere of R^d, W and Z functions of <x, y>.

    A user-defined drift needs `slope`, which is W'; everything else follows from it. Closed forms
    of other methods are faster.

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

    on_sphere_only = is_zonal = True
    exponent: ClassVar[np.ndarray | None] = None
    polynomial_degree: ClassVar[int | None] = None
    multiplier_error: ClassVar[float] = 3e-14  # of quadrature
    _internal: ClassVar[str] = (
        "contrast interaction multiplier_error on_torus potential_at slope_and_weight"
    )

    def __init_subclass__(cls, **options: PassedOn) -> None:
        super().__init_subclass__(**options)
        cls._refuse_closed_forms_of_another_slope()
        for name in ("slope", "weight", "potential", "contrast"):
            if inspect.isfunction(cls.__dict__.get(name)):
                setattr(cls, name, _with_trailing_axes(cls.__dict__[name]))

    @classmethod
    def _refuse_closed_forms_of_another_slope(cls) -> None:
        """Raise TypeError if closed forms do not belong to a class's own slope or weight."""
        parent: AnyObject = super(cls, cls)
        if parent.slope is ZonalDrift.slope or not {"slope", "weight"} & set(vars(cls)):
            return
        inherited = [
            name
            for name in CLOSED_FORMS
            if name not in vars(cls)
            and inspect.getattr_static(cls, name) is not inspect.getattr_static(ZonalDrift, name)
        ]
        if inherited:
            raise TypeError(
                f"{cls.__name__} has a slope or a weight of its own, and would inherit the "
                f"{', '.join(inherited)} of another: define these too, or derive it from "
                "ZonalDrift, where they follow from slope and weight."
            )

    @abstractmethod
    def slope(self, t: np.ndarray) -> np.ndarray:
        """W' at inner products t (*shape, ...).

        It may be infinite at t = 1 as long as no two tokens meet. It may have a common factor with
        `weight`, if `attraction` and `normaliser` are overridden.
        """

    @property
    def undefined(self) -> str:  # type: ignore[override]
        with np.errstate(all="ignore"):
            finite = np.isfinite(self.slope(np.ones(1))).all()
        return "" if finite else f"tokens meet (the slope of {self!r} is not finite at t = 1)"

    def weight(self, t: np.ndarray) -> np.ndarray:
        """Z at inner products t (*shape, ...): 1, unless it is overridden."""
        return np.ones_like(t)

    def slope_and_weight(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """`slope` and `weight` at inner products t, evaluated once where they are one function."""
        slope = self.slope(t)
        return slope, slope if type(self).weight is type(self).slope else self.weight(t)

    def potential(self, t: np.ndarray) -> np.ndarray:
        """W at inner products t (*shape, ...): the integral of `slope` from 0, unless overridden.

        The integral is computed once, by Chebyshev series on intervals of the angle that are
        adapted to kinks and jumps. It is nan, with a warning, if its error exceeds 1e-12.
        """
        values = np.empty(t.shape)
        for index, integral in zip(np.ndindex(*self.shape), self._integrals, strict=True):
            entries = tuple(
                i if n > 1 else slice(None) for i, n in zip(index, self.shape, strict=True)
            )
            values[entries] = np.nan if isinstance(integral, str) else integral(t[entries])
        return values

    @cached_property
    def _multipliers(self) -> dict[tuple[object, ...], np.ndarray | None]:
        """The cache of `remembered`, by method and its arguments."""
        return {}

    @cached_property
    def _integrals(self) -> list[Primitive | str]:
        """The integral of the slope of each member, or the reason why it cannot be computed."""
        integrals: list[Primitive | str] = []
        for index in np.ndindex(*self.shape):
            member = self.member(index)
            try:
                integrals.append(Primitive(member.slope))
            except MeanfieldError as error:
                integrals.append(f"the slope of {member!r}: {error}")
        if reason := next((why for why in integrals if isinstance(why, str)), None):
            warnings.warn(
                f"Interaction energies are nan, as W is the integral of {reason}. Write "
                f"{type(self).__name__}.potential(t), which is W.",
                UnresolvedWarning,
                stacklevel=4,
            )
        return integrals

    def potential_at(self, t: np.ndarray) -> np.ndarray:
        """The `potential` at inner products, clipped to [-1, 1] against rounding."""
        return self.potential(np.minimum(np.maximum(t, -1.0), 1.0))

    @property
    def normalised(self) -> bool:  # type: ignore[override]
        """Whether the sums are divided by Z * mu: whether `weight` is overridden."""
        return type(self).weight is not ZonalDrift.weight

    def why_no_potential(self, d: int, t: float = 0.0) -> str:
        if type(self).potential is not ZonalDrift.potential:
            return ""
        return next(
            (f"W is the integral of {w}" for w in self._integrals if isinstance(w, str)), ""
        )

    @property
    def gradient_flow(self) -> bool:  # type: ignore[override]
        return not self.normalised

    def as_zonal(self) -> "ZonalDrift":
        return self

    def rate(self, t: float = 0.0) -> np.ndarray:
        """The largest |W'| divided by the least Z, of each member."""
        nodes = np.broadcast_to(SLOPE_SEARCH_NODES, (*self.shape, SLOPE_SEARCH_NODES.size))
        return np.abs(self.slope(nodes)).max(axis=-1) / self.weight(nodes).min(axis=-1)

    @remembered
    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        """Multipliers of W, shape (*shape, degree + 1); entry 0 has no effect on v, and is 0.

        W_l = (W'_(l-1) - W'_(l+1)) / (2l + d - 2), with multipliers of W' by quadrature; W' may
        have jumps.
        """
        slopes = self._by_quadrature("slope", degree + 1, dimension, continuous=False)
        l = np.arange(1, degree + 1)
        multipliers = np.zeros((*self.shape, degree + 1))
        multipliers[..., 1:] = (slopes[..., :-2] - slopes[..., 2:]) / (2 * l + dimension - 2)
        return multipliers

    @remembered
    def normaliser(self, degree: int, dimension: int) -> np.ndarray | None:
        """Multipliers of Z, shape (*shape, degree + 1), or None where Z = 1."""
        if not self.normalised:
            return None
        return self._by_quadrature("weight", degree, dimension)

    def interaction(self, degree: int, dimension: int) -> np.ndarray:
        """Multipliers of W in the interaction energy, its additive constant included.

        The constant (entry 0) is nan if the potential is not known.
        """
        multipliers = self.attraction(degree, dimension)
        known = not self.why_no_potential(dimension)
        constant = self._by_quadrature("potential_at", 0, dimension) if known else np.nan
        multipliers[..., :1] = constant
        return multipliers

    @remembered
    def on_torus(self, name: str, space: "Torus") -> np.ndarray:
        """Multipliers on a torus, (*shape, modes): see `on_torus`."""
        from .on_torus import multipliers

        return multipliers(self, name, space)

    def _by_quadrature(
        self, name: str, degree: int, dimension: int, continuous: bool = True
    ) -> np.ndarray:
        """Multipliers (*shape, degree + 1) of a function of inner products, a method, by name."""
        multipliers = np.empty((*self.shape, degree + 1))
        for index in np.ndindex(*self.shape):
            of_kernel = getattr(self.member(index), name), degree, dimension
            multipliers[index] = quadrature_multipliers(*of_kernel, continuous=continuous)
        return multipliers

    def contrast(self, log_gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sign, and logarithm of the modulus, of W'(1)/W'(1 - gap) - 1, both (*shape, ...).

        The gap > 0 is given by its logarithm, as it may be below the least float. For small gaps
        the difference is computed from the mean of W'' on [1 - gap, 1].
        """
        gap = np.exp(log_gap)
        slopes = self.slope(1 - gap)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (self.slope(np.ones_like(gap)) - slopes) / slopes
            sign, log_size = np.array(np.sign(ratio)), np.array(np.log(np.abs(ratio)))
            for index in np.argwhere(gap < CLOSE_SLOPES):
                entry = tuple(index)
                curvature = self.member(entry[: len(self.shape)])._curvature
                mean = curvature(1 - gap[entry] * GAUSS_NODES) @ GAUSS_WEIGHTS / slopes[entry]
                sign[entry] = np.sign(mean)
                log_size[entry] = np.log(np.abs(mean)) + log_gap[entry]
        return sign, log_size

    @cached_property
    def _curvature(self) -> Callable[[np.ndarray], np.ndarray]:
        """The function W'' of a single drift."""
        try:
            return slope_of(self.slope)
        except MeanfieldError as error:
            raise MeanfieldError(
                f"Close tokens need the curvature W'' of {self!r}, whose slope is not smooth: "
                "tokens that are closer than 1e-3 cannot be told from each other."
            ) from error

    def why_not_finite(self, x: np.ndarray) -> str:
        if self.exponent is not None:
            return super().why_not_finite(x)
        name = type(self).__name__
        zero = f", or sums of {name}.weight are 0" if self.normalised else ""
        return f"{name}.slope is not finite at inner products of these tokens{zero}."

    def identity(self) -> object:
        nodes = np.broadcast_to(FINGERPRINT_NODES, (*self.shape, FINGERPRINT_NODES.size))
        slopes = values_at("slope", self.slope, nodes, finite=True)
        return [super().identity(), slopes, self.weight(nodes)]


SCALAR_ONLY_ERROR = re.compile(r"only \S+ arrays can be converted|truth value of an array")


@functools.cache
def _with_trailing_axes(method: Function) -> Function:
    """Wrap a method of t: parameters get the trailing axes of t, and values are checked."""

    @functools.wraps(method)
    def evaluate(self: "ZonalDrift", t: Values) -> Values:
        name = f"{type(self).__name__}.{method.__name__}"
        parameters = self.parameters.values()
        if isinstance(t, Dual) or any(isinstance(value, Dual) for value in parameters):
            return _with_tangents(method, evaluate, self, t, name)
        t = np.asarray(t, dtype=float)
        try:
            several = any(value.ndim for value in parameters)  # faster than `self.shape`
            values = method(_expanded(self, t.ndim) if several else self, t)
        except (TypeError, ValueError) as error:
            _refuse_one_number(name, t.shape, error)
            raise
        return values if method.__name__ == "contrast" else returned(name, values, t.shape)

    return evaluate


def _with_tangents(
    method: Function, evaluate: Function, drift: ZonalDrift, t: Values, name: str
) -> Values:
    """The method for inner products or parameters with tangents.

    If it uses functions without a rule for `Dual` arrays, its derivative by t is that of an
    interpolant, and its derivatives by parameters are finite differences.
    """
    try:
        values = method(_expanded(drift, t.ndim) if drift.shape else drift, t)
        return returned(name, values, t.shape)
    except (TypeError, AttributeError):
        moving = {n: v for n, v in drift.parameters.items() if isinstance(v, Dual)}
    count = len(next(array for array in (t, *moving.values()) if isinstance(array, Dual)).changes)
    plain = drift._with({n: v.value for n, v in moving.items()})
    value, changes = np.empty(t.shape), np.zeros((count, *t.shape))
    for index in np.ndindex(*drift.shape):
        member, inner, entry = plain.member(index), value_of(t)[index], (slice(None), *index)
        value[index] = evaluate(member, inner)
        if isinstance(t, Dual):
            changes[entry] = slope_of(functools.partial(evaluate, member))(inner) * t.changes[entry]

        def of_many(many: Values, inner: np.ndarray = inner) -> np.ndarray:
            return evaluate(many, np.broadcast_to(inner, (*many.shape, *inner.shape)))

        for parameter, array in moving.items():
            rates = changes_of(np.broadcast_to(array, drift.shape), count)[entry]
            changes[entry] += np.multiply.outer(rates, derivative_by(member, parameter, of_many))
    return Dual(value, changes)


def _refuse_one_number(name: str, shape: tuple[int, ...], error: Exception) -> None:
    """Raise TypeError if NumPy's error comes from a function for a single number."""
    if SCALAR_ONLY_ERROR.search(str(error)):
        raise TypeError(
            f"{name} gets an array of inner products, here of shape {shape}: write np.exp, not "
            f"math.exp, and np.where, not if. It raised: {error}."
        ) from error


def _expanded(drift: ZonalDrift, ndim: int) -> ZonalDrift:
    """A copy whose ensemble parameters have as many axes as inner products."""
    copy, shape = object.__new__(type(drift)), drift.shape
    copy.__dict__.update(drift.__dict__)
    for name, values in drift.parameters.items():
        full = np.broadcast_to(values, shape)
        copy.__dict__[name] = full.reshape(shape + (1,) * (ndim - len(shape)))
    return copy


# The derivative of a function of inner products --------------------------------------------------


def slope_of(potential: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """W' as a function of an array of inner products, for a potential W.

    It is the derivative of a Chebyshev series: of W itself, or of an interpolant of W of up to 1024
    terms.

    Raises
    ------
    TypeError, ValueError
        If values of the potential are not finite real numbers, one for each inner product.
    MeanfieldError
        If the derivatives of the interpolants do not converge to 1e-12 of their maximum.
    """
    if isinstance(potential, np.polynomial.Chebyshev):
        return potential.deriv()
    points = np.cos(np.linspace(0, np.pi, INTERPOLANT_SIZES[-1]))
    coarser = np.full(points.size, np.nan)
    for size in INTERPOLANT_SIZES:
        slope = _interpolant(potential, size).deriv()
        values = slope(points)
        if np.abs(values - coarser).max() <= SLOPE_ACCURACY * np.abs(values).max():
            return slope
        coarser = values
    raise MeanfieldError(
        "Tokens need the slope W' of an Interaction, and the Chebyshev interpolants of its "
        f"potential do not give it to {SLOPE_ACCURACY:g} with up to {INTERPOLANT_SIZES[-1]} terms. "
        "Give it: Interaction(W, derivative=...)."
    )


def _interpolant(
    potential: Callable[[np.ndarray], np.ndarray], size: int
) -> np.polynomial.Chebyshev:
    """Chebyshev interpolant of `potential` at `size` nodes, without rounding errors."""
    from scipy.fft import dct  # numpy's interpolation loses digits in high degrees

    nodes = np.cos((np.arange(size) + 0.5) * np.pi / size)
    coefficients = dct(values_at("potential", potential, nodes, finite=True)) / size
    coefficients[0] /= 2
    return np.polynomial.Chebyshev(coefficients).trim(
        ROUNDED_COEFFICIENT * np.abs(coefficients).max()
    )


# How many harmonics of a drift matter ------------------------------------------------------------


def kernel_degree(
    drift: ZonalDrift, dimension: int, negligible: float = NEGLIGIBLE_DEGREE,
    searched: Sequence[int] = KERNEL_DEGREES,
) -> int:  # fmt: skip
    """The highest degree that contributes to a velocity, by default to rounding.

    Degree l contributes at most W_l dim H_l l (l + d - 2)/(d - 1) to the numerator of the velocity
    and Z_l dim H_l to its denominator, both attained at a Dirac. Contributions below `negligible`
    times the largest are ignored. For an ensemble it is the maximum over the members. Series up to
    the degrees `searched` are computed in turn.

    Raises
    ------
    MeanfieldError
        If the contributions do not decay.
    """
    if drift.polynomial_degree is not None:
        return max(drift.polynomial_degree, 1)

    for degree in searched:
        last = [_last(sizes, negligible) for sizes in _log_sizes(drift, degree, dimension)]
        if max(last) - 1 < 0.9 * degree:
            return max(*last, 1)
    raise MeanfieldError(
        f"The harmonics of {drift!r} do not decay to rounding up to degree {searched[-1]}: "
        "its slope is not smooth, varies over too small angles, or is infinite at 1, where mass "
        "gathers. A sum of harmonics needs a smooth potential, as USA, Kuramoto, and SA with "
        "|beta| <= 1e5 have; else solve for the density, or sum over pairs of tokens."
    )


def _last(log_sizes: np.ndarray, negligible: float) -> int:
    """The last degree with a contribution in some member; above KERNEL_DEGREES if not finite."""
    largest = log_sizes.max(axis=-1, keepdims=True)
    if not (largest < np.inf).all():
        return KERNEL_DEGREES[-1] + 1
    counts = log_sizes > largest + np.log(negligible)
    return int(np.nonzero(counts)[-1].max(initial=0))


def _log_sizes(drift: ZonalDrift, degree: int, d: int) -> Iterator[np.ndarray]:
    """Yield log(|lambda_l| dim H_l), l = 0, ..., degree, for the slope of W and for Z if it varies.

    For the slope, multipliers of W have the factor l (l + d - 2) / (d - 1), as in v at the pole.
    """
    from scipy.special import gammaln

    l = np.arange(1, degree + 1)
    log_dims = np.log((2 * l + d - 2) / l) + gammaln(l + d - 2) - gammaln(d - 1) - gammaln(l)
    log_dims = np.concatenate([[0.0], log_dims])

    def log_sizes(multipliers: np.ndarray) -> np.ndarray:
        """The logarithms log(|lambda_l| dim H_l); -inf if lambda_l may be a rounding error."""
        size = np.abs(multipliers)
        error = drift.multiplier_error * size.max(axis=-1, keepdims=True) * np.exp(-log_dims / 2)
        with np.errstate(divide="ignore"):
            return np.log(np.where(size <= error, 0.0, size)) + log_dims

    log_factors = np.concatenate([[-np.inf], np.log(l * (l + d - 2.0) / (d - 1))])
    yield log_sizes(drift.attraction(degree, d)) + log_factors
    normaliser = drift.normaliser(degree, d) if drift.exponent is None else None
    if normaliser is not None:  # if W' = Z, as for exponentials, W has as many harmonics
        yield log_sizes(normaliser)
