"""Drifts: velocity fields v[mu] of attention."""

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np

from ..core.annotations import ArrayIndex, TangentNames, TypeHint, UserValue, Values
from ..core.cached import cached_property
from ..core.checks import as_given, common_shape, require
from ..core.descriptions import KindOf
from ..core.dual import Array, Dual
from ..core.errors import MeanfieldError
from ..core.forms import NUMBERS, Either, Form, Plain, Reading
from ..core.kinds import Kind
from ..core.parameters import parameters_of
from .parameters import GivenNumber, Parameter, changing, jumps_of

if TYPE_CHECKING:
    from .sums import Sum
    from .zonal import ZonalDrift


class _Numbers(Either):
    """Form of a number or an array that does not change with time."""

    def read(self, data: Plain, where: str, reading: Reading) -> UserValue:
        """The number or array; TypeError, with advice, for a function of time."""
        if reading.in_python and callable(data) and not isinstance(data, Kind):
            raise TypeError(
                f"{where} must be real numbers; got {as_given(data)}. Functions of time can be "
                "kappa, and beta, Q, K and V of Attention, such as Attention(beta=lambda t: 1 + t)."
            )
        return super().read(data, where, reading)


ENSEMBLE = _Numbers((NUMBERS, KindOf(GivenNumber)))  # for parameters annotated float
Ensemble = Annotated[UserValue, ENSEMBLE]


class Drift(Kind, family=True):
    """A velocity field v[mu] that a measure exerts on its points.

    A parameter of a drift with the annotation ``float`` is a number, or an array, which makes an
    ensemble. Drifts can be added, and multiplied by numbers: ``SA(4.0) - 0.5 * Kuramoto()`` is a
    `Sum`.

    Attributes
    ----------
    gradient_flow : bool
        Whether mu follows the Wasserstein gradient of an interaction energy.
    on_sphere_only : bool
        Whether the drift is defined on the unit sphere, and not in R^d.
    parts_tokens : bool
        Whether tokens at the same point may separate.
    is_zonal : bool
        Whether it depends on inner products alone, see `as_zonal`.
    normalised : bool
        Whether v[c mu] = v[mu] for all c > 0, as for sums divided by the sum of the weights.
    interacts : bool
        Whether v[mu] depends on the measure mu.
    why_no_density : str
        The reason why densities cannot follow the drift; empty if they can.
    why_not_causal : str
        The reason why attention cannot be restricted to preceding tokens; empty if it can.
    dimension : int or None
        The dimension d of the points; None if the drift is for any dimension.
    undefined : str
        A clause for the states where velocities are not defined; empty if there are none.
    """

    annotation_forms: ClassVar[dict[TypeHint, Form]] = {float: ENSEMBLE}
    function_advice: ClassVar[str] = (
        "A function W of inner products goes into Interaction(W), whose slope is W'; one of points "
        "into Field(f)."
    )
    derivation_advice: ClassVar[str] = (
        "Derive from ZonalDrift for a function of inner products, which is its method slope(t); "
        "from Weights, for Attention, where queries and keys count; from Pointwise for a function "
        "of each point. Any other v(t, x, mu) is the velocity of a Motion of a State of your own."
    )
    gradient_flow: ClassVar[bool] = False
    on_sphere_only: ClassVar[bool] = False
    parts_tokens: ClassVar[bool] = False
    is_zonal: ClassVar[bool] = False
    normalised: ClassVar[bool] = False
    interacts: ClassVar[bool] = True
    why_no_density: ClassVar[str] = ""
    why_not_causal: ClassVar[str] = ""
    dimension: ClassVar[int | None] = None
    undefined: ClassVar[str] = ""
    _internal: ClassVar[str] = (
        "autonomous broadcast check_potential is_gradient known_rate output_size place_of "
        "undefined why_no_law why_no_potential why_not_finite biased gradient_at "
        "harmonics interaction_potential singles"
    )

    __array_ufunc__ = None  # a numpy array times a drift is a drift

    def __add__(self, other: "Drift") -> "Sum":
        return _sum((1.0, self), (1.0, _added(other)))

    def __radd__(self, other: UserValue) -> "Drift":
        """The drift itself for 0, the start value of Python's `sum`; else the sum."""
        return self if type(other) is int and other == 0 else _added(other) + self

    def __sub__(self, other: "Drift") -> "Sum":
        return _sum((1.0, self), (-1.0, _added(other)))

    def __neg__(self) -> "Sum":
        return _sum((-1.0, self))

    def __mul__(self, factor: UserValue) -> "Sum":
        return _sum((ENSEMBLE.check("factor", factor), self))

    __rmul__ = __mul__

    @property
    def terms(self) -> tuple[tuple[Values, Values], ...]:
        """Pairs of factor and drift whose sum this drift is: (1, itself), unless a `Sum`."""
        return ((1.0, self),)

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """Numerical parameters, by name, which may differ between members of an ensemble."""
        return {
            name: getattr(self, name)
            for name, parameter in parameters_of(type(self)).items()
            if parameter.form is ENSEMBLE and isinstance(getattr(self, name), np.ndarray | Dual)
        }

    def place_of(self, name: str) -> tuple[int, str | None]:
        """The index in `terms` of the part with a parameter, and the parameter's name in it.

        The name is None for the factor of the part.
        """
        return 0, name

    @property
    def shape(self) -> tuple[int, ...]:
        """Ensemble shape of the parameters; () for a single drift."""
        shapes = {name: values.shape for name, values in self.parameters.items()}
        return common_shape(f"The parameters of {type(self).__name__}", shapes)

    def validate(self) -> None:
        self.shape  # noqa: B018  (raises if the parameters do not broadcast)

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        """The drift with parameters broadcast to the ensemble shape, as a flat ensemble."""
        if not self.shape:
            return self
        values = self.parameters.items()
        return self._with({n: np.broadcast_to(v, shape).ravel() for n, v in values if v.ndim})

    def member(self, index: ArrayIndex) -> Self:
        """The drift of one member of the ensemble; itself if it is a single drift.

        An array of indices of members gives the ensemble of these.
        """
        if not self.shape:
            return self
        values = self.parameters.items()
        return self._with({n: np.broadcast_to(v, self.shape)[index] for n, v in values})

    def along(self, rates: Mapping[str, Array]) -> Self:
        """The drift with `Dual` parameters, which change at the rates (p,) along p tangents."""
        values = self.parameters
        require("tangents", [*rates], f"parameters among {[*values]}", {*rates} <= {*values})
        return self._with({name: rising(values[name], by) for name, by in rates.items()})

    def _with(self, parameters: Mapping[str, Values]) -> Self:
        """The drift with new values of some parameters, not checked if one is `Dual`."""
        if not any(isinstance(value, Dual) for value in parameters.values()):
            return self.replace(**parameters)
        varied = copy(self)
        varied._set(**parameters)
        return varied

    @abstractmethod
    def rate(self, t: float = 0.0) -> np.ndarray:
        """The approximate largest rate of attraction between tokens, of each member."""

    @cached_property
    def singles(self) -> list[Self]:
        """The drifts of the members of an ensemble, in C order."""
        return [self.member(index) for index in np.ndindex(*self.shape)]

    @property
    def _array_parameters(self) -> dict[str, Parameter]:
        """The parameters that may change with time, by name."""
        return {}

    @property
    def constant(self) -> bool:
        """Whether no parameter depends on time."""
        return not changing(self._array_parameters)

    @property
    def autonomous(self) -> bool:
        """Whether the drift is independent of time between two breakpoints."""
        in_time = changing(self._array_parameters).values()
        return all(value.piecewise_constant for value in in_time) if in_time else self.constant

    def breakpoints(self, start: float, end: float) -> np.ndarray:
        """Times strictly between `start` and `end` at which a parameter jumps, increasing."""
        return jumps_of(self._array_parameters, start, end)

    def known_rate(self, on_sphere: bool) -> bool:
        """Whether `rate` bounds the speed of tokens at all times, so that it can set steps."""
        return True

    def output_size(self, t: float) -> np.ndarray:
        """The approximate length of the output of attention without cancellation, by member."""
        return np.asarray(self.rate(t))

    def interaction_energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The energy E (...) of tokens (..., n, d) with masses (..., n); nan without one."""
        return np.full(x.shape[:-2], np.nan)

    def is_gradient(self, d: int, t: float = 0.0) -> bool:
        """Whether v at time t is the gradient of a potential Phi, with E = (1/2) int Phi dmu."""
        return self.gradient_flow

    def check_potential(self, d: int, t: float = 0.0) -> None:
        """Raise MeanfieldError, with the reason, if there is no potential Phi for a reaction."""
        if reason := self.why_no_potential(d, t):
            raise MeanfieldError(
                f"reaction needs a potential: {reason}. Use such a drift, or reaction=0."
            )

    def why_no_potential(self, d: int, t: float = 0.0) -> str:
        """The reason why there is no potential Phi in dimension d; empty if there is one."""
        return (
            "Phi = W * mu of a zonal drift, or of Attention that follows its gradient, or V of a "
            f"Potential; {type(self).__name__} has none"
        )

    def why_not_finite(self, x: np.ndarray) -> str:
        """The reason why velocities of tokens x, (..., n, d), are not finite."""
        largest = float(np.abs(x).max())
        return (
            "numbers such as beta <Qx, Ky> and V x exceed 1.8e308, the largest there is; "
            f"components of the tokens are up to {largest:.3g}. Rescale the tokens, or the "
            "parameters."
        )

    def as_zonal(self) -> "ZonalDrift":
        """The drift as a `ZonalDrift`; MeanfieldError unless it depends only on inner products."""
        from .zonal import ZonalDrift

        raise MeanfieldError(
            f"{type(self).__name__} does not depend on inner products alone. Gram matrices, "
            "equiangular tokens, stationary states and branches need a drift "
            "grad(W * mu)/(Z * mu), which acts on harmonics of each degree by one number: "
            f"{', '.join(KindOf(ZonalDrift).names)}; for multiples of the identity SA(beta) or "
            "USA(beta). With other drifts solve for Tokens, or for a Density on Circle or Sphere."
        )


def unit_rates(names: TangentNames) -> dict[str, Array]:
    """Rates (p,) of each named parameter along p tangents: 1 along its own, else 0."""
    return {name: np.array([float(name == n) for n in names]) for name in names if name is not None}


def rising(value: np.ndarray, rates: Array) -> Dual:
    """The parameter as a `Dual`, all entries of which change at the rates (p,)."""
    by = np.reshape(rates, (-1, *(1,) * value.ndim))
    return Dual(value, np.broadcast_to(by, (rates.size, *value.shape)))


def _added(other: UserValue) -> Drift:
    """The argument of an addition; raises TypeError if it is not a drift."""
    advice = "A function of points is Field(f), a multiple of a drift is number * drift."
    is_drift = isinstance(other, Drift)
    return require("What is added to a drift", other, "a drift", is_drift, TypeError, advice)


def _sum(*terms: tuple[Values, Drift]) -> "Sum":
    from .sums import Sum

    factors, drifts = zip(*terms, strict=True)
    return Sum(drifts, factors)
