"""Families of models along one parameter: their equations, and the bases to solve these in."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import lru_cache, partial
from typing import Any, Self

import numpy as np

from ..core.cached import cached_property
from ..core.checks import as_given, require
from ..core.descriptions import absent, build
from ..core.errors import MeanfieldError
from ..core.forms import Reading
from ..core.kinds import Kind, ancestor
from ..dynamics.model_harmonics import ModelHarmonics
from ..models import Drift, Kuramoto, Transformer, ZonalDrift
from ..models.noise import Noise
from ..spaces import Space
from .bases import AXISYMMETRIC, ISOTROPIC, Array, Basis, basis_on
from .equation import Interactions, MomentEquation, StationaryEquation, interactions
from .indexed import IndexedBasis, IndexedEquation
from .reflections import Symmetries, reflected_on, symmetries_of_noise
from .torus_harmonics import TorusReflected as TorusReflected
from .transport import TransportEquation, scaled

RECENT_EQUATIONS, RECENT_SOURCES = 12, 256  # numbers of cached equations, and of models
BETWEEN = 0.381966  # fraction of a range at which symmetries are determined, besides its ends
PARAMETER_STEP = 0.01  # longest distance of nodes, in units of min(1, width of the range)
STENCIL = np.arange(-3.0, 4.0)  # of difference formulas
STENCIL_SLOPES = np.transpose([
    np.polyder(np.poly(STENCIL[STENCIL != j])) / np.prod(j - STENCIL[STENCIL != j]) for j in STENCIL
])  # derivatives of Lagrange's polynomials  # fmt: skip
PROBED_DEGREE, PROBED_SIZE = 3, 0.02  # of a random density to detect symmetries and kinks
KINK_DIGITS = 9  # of a value of the parameter
KINK_PART, KINK_ROUNDING = 0.7, 1e-12  # least fourth differences at kinks: of second ones, and all
ASYMMETRIC_CHANGE = 1e-8  # relative change of the motion under a symmetry that a part lacks
UNDAMPED = 1e100  # kappa at which noise is nothing beside a drift


TRANSPORT = {Basis: TransportEquation, IndexedBasis: IndexedEquation}  # by class of bases


class OutsideDomain(ValueError):
    """Error for a value of a parameter for which there is no equation."""


def model_of(source: Any, noise: Noise) -> Transformer:
    """The model of a drift and a noise; a model is returned as it is."""
    if isinstance(source, Transformer):
        return source
    return Transformer(source, np.inf if noise.laplacian else 1.0, noise=noise)


def is_isotropic(model: Transformer) -> bool:
    """Whether a model is invariant under all rotations: then the uniform density is stationary."""
    drift: Any = model.drift
    zonal = drift.is_absent or all(part.is_zonal for _, part in drift.terms)
    return zonal and model.noise.laplacian and not set(model.extras) - {"reaction"}


def equation_of(
    source: Any,
    basis: Any,
    changes: Callable[..., Any] | None = None,
    neighbours: Callable[..., Any] | None = None,
) -> StationaryEquation:
    """The stationary equation of a drift or model in a basis.

    A `MomentEquation` if the basis is symmetric and the drift has a potential, else a
    `TransportEquation`. `changes` and `neighbours` are arguments of these for derivatives.
    """
    model = model_of(source, basis.noise)
    drift: Any = model.drift
    if basis.symmetric and drift.is_absent:  # placeholder of a drift that was not saved
        return MomentEquation(drift, basis, changes)
    if basis.symmetric and model.is_zonal:
        equation = MomentEquation(model.zonal, basis, changes)
        if equation.exists:
            return equation
    return transport_equation(model, basis, neighbours)


def transport_equation(model: Transformer, basis: Any, neighbours: Any = None) -> TransportEquation:
    """The general equation of a model in a basis."""
    return TRANSPORT[ancestor(type(basis), TRANSPORT)](model, basis, neighbours)


def basis_of(models: Sequence[Transformer], space: Any, symmetry: Any = AXISYMMETRIC) -> Any:
    """The basis in which the search for states of models begins.

    `basis_on` if all models are rotation-invariant; else `Reflected` with their common symmetries.
    These are computed anew, unless `symmetry` is what `known_symmetry` returned.

    Raises
    ------
    TypeError, ValueError, MeanfieldError
        As `basis_on`; for a symmetry or a space that a model does not preserve.
    """
    kind = reflected_on(space)
    if isinstance(symmetry, Symmetries):
        return kind(_resolving(kind, space, models), models[0].noise, symmetry)
    if not issubclass(kind, IndexedBasis):
        basis = basis_on(space, symmetry)
        if all(map(is_isotropic, models)):
            degree = least_degree(models, space, basis.degree, basis.finest)
            return basis if degree == basis.degree else basis.finer(degree)
    model = next((model for model in models if not is_isotropic(model)), models[0])
    wanted = f"left out under {model!r}, which keeps no symmetry but reflections"
    axisymmetric = isinstance(symmetry, str) and symmetry == AXISYMMETRIC
    require("symmetry", symmetry, wanted, axisymmetric)
    if not model.noise.is_absent:
        model.noise.check_densities(space)
    if space.axisymmetric:
        raise MeanfieldError(
            f"{model!r} does not keep densities symmetric about an axis, which {space!r} holds "
            "alone: use a Circle or a Sphere."
        )
    if space.dimension not in kind.bounds:
        raise MeanfieldError(
            f"Stationary states on {space!r} are known for kernels and isotropic noise alone; got "
            f"{model!r}."
        )
    space = _resolving(kind, space, models)
    each = [symmetries_of(model, space) for model in models]
    common = (sorted(set(each[0][i]).intersection(*(one[i] for one in each))) for i in (0, 1))
    return kind(space, model.noise, Symmetries(*map(tuple, common)))


def _resolving(kind: Any, space: Any, models: Sequence[Transformer]) -> Any:
    """The space with the degree at which the search for states of models begins."""
    begun, most = kind.resolving(space), 2 * kind.bounds[space.dimension].most
    return begun.with_degree(least_degree(models, space, begun.degree, most))


def least_degree(models: Sequence[Transformer], space: Any, degree: int, most: int) -> int:
    """Least degree of a search, from `degree` on, at which no harmonic of models is lost unseen.

    Raises MeanfieldError if it exceeds both `most` and the degree of the space.
    """
    name, most = "", max(most, space.degree)
    for model in models:
        degree, other = ModelHarmonics(model, space, most).needed(degree)
        name = other or name
    expected = f"at most {most}, the highest degree of a search on {type(space).__name__}"
    advice = "Use smoother functions, or mf.solve."
    what = f"The degree of the first harmonics of {name}"
    require(what, degree, expected, degree <= most or not name, MeanfieldError, advice)
    return degree


def known_symmetry(model: Transformer, space: Any, symmetry: Any) -> Any:
    """The symmetry of a search among states of one model, for many calls of `basis_of`.

    The symmetries of the model, if they are not all rotations; else `symmetry` itself.
    """
    return basis_of([model], space, symmetry).symmetries or symmetry


def basis_along(source: Any, name: str, span: Any, noise: Noise, space: Any, symmetry: Any) -> Any:
    """The basis for models along a parameter, from its value at both ends and one in between."""
    values = () if name == "kappa" else probed_values(span)
    each = [with_parameter(source, name, value) for value in values] or [source]
    models = [
        one if isinstance(one, Transformer) else Transformer(one, 1.0, noise=noise) for one in each
    ]
    return basis_of(models, space, symmetry)


def probed_values(span: tuple[float, float]) -> tuple[float, float, float]:
    """Both ends of a range, and one value between."""
    low, high = span
    return low, low + BETWEEN * (high - low), high


@contextmanager
def naming_value(source: Any, name: str, value: float) -> Iterator[None]:
    """Errors about the model of a function say for which value of its parameter."""
    try:
        yield
    except (ValueError, MeanfieldError) as error:
        if isinstance(source, Kind | type):
            raise
        kind = MeanfieldError if isinstance(error, MeanfieldError) else ValueError
        text = f"At {name} = {value:.6g} the model of the family does not fit: {error}"
        raise kind(text) from error


def symmetries_of(model: Transformer, space: Space) -> Symmetries:
    """Reflections and rotations under which a model is invariant.

    Those of the noise, tested on the rate of change of a random density under each part of the
    model alone, however weak it is. Zonal drifts have all of them.
    """
    of_noise = symmetries_of_noise(model.noise, space)
    absent = model.drift.is_absent or model.noise.is_absent
    parts = [] if absent else list(_parts_alone(model))
    if not parts:
        return of_noise
    basis = reflected_on(space)(space, model.noise, Symmetries((0,)))
    c = PROBED_SIZE * np.random.default_rng(0).standard_normal(len(basis.degrees))
    c *= basis.degrees <= PROBED_DEGREE
    signs = [np.where(basis.all.odd(r), -1.0, 1.0) for r in of_noise.reflections]
    rotations = [basis.all.rotations[plane] for plane in of_noise.planes]
    changes = np.zeros((0, len(signs) + len(rotations), len(c)))
    for part in parts:
        equation = transport_equation(part, basis)
        here = _force(equation, c)
        slope = equation.linearised(c / basis.sizes, UNDAMPED, basis.even) if rotations else None
        found = np.array([
            *(one * _force(equation, one * c) - here for one in signs),
            *(slope @ (A @ c) - A @ here for A in rotations),
        ])  # fmt: skip
        rounding = max(ASYMMETRIC_CHANGE * np.abs(here).max(), 1 / np.sqrt(UNDAMPED))
        found[np.abs(found).max(axis=1) <= rounding] = 0.0
        changes = np.append(changes, found[None], axis=0)
    # parts that change may cancel in the sum
    most = ASYMMETRIC_CHANGE * np.abs(changes).max(axis=(0, 2), initial=0.0)
    kept = np.abs(changes.sum(axis=0)).max(axis=1) <= most
    return Symmetries(
        tuple(r for r, same in zip(of_noise.reflections, kept, strict=False) if same),
        tuple(p for p, same in zip(of_noise.planes, kept[len(signs) :], strict=True) if same),
    )


def _parts_alone(model: Transformer) -> Iterator[Transformer]:
    """Models of one part each that need not be invariant under the symmetries of the noise."""
    others = {name: None for name in ("feedforward", "frequency") if name in model.extras}
    terms: Any = model.drift.terms
    by_place = set(model.extras) - {"reaction", *others}
    for factor, part in terms:
        if by_place or not part.is_zonal:
            yield model.replace(drift=float(factor) * part, **others)
    if others:
        yield model.replace(drift=0.0 * Kuramoto())


def _force(equation: TransportEquation, c: Array) -> Array:
    """Rate of change (N,) of the coefficients c without noise."""
    return equation.mean(c / equation.basis.sizes, UNDAMPED).force


class EquationFamily:
    """Family of stationary equations of models along one parameter.

    Parameters
    ----------
    drift : ZonalDrift, type, Transformer or callable
        A single drift or model, at any value of the parameter; a class of drifts with this
        parameter alone; or a function parameter -> model.
    name : str
        Name of the parameter, one of `parameters_of`.
    span : (float, float)
        Range of the parameter. Difference formulas do not use values outside it.
    basis : Basis
        Basis of order 0.
    """

    def __init__(self, drift: Any, name: str, span: tuple[float, float], basis: Basis):
        self.drift, self.name, self.span, self.basis = drift, name, span, basis
        self._remember()

    def _remember(self) -> None:
        """Create the caches of equations and models."""
        self._source = lru_cache(RECENT_SOURCES)(partial(with_parameter, self.drift, self.name))
        self._equation = lru_cache(RECENT_EQUATIONS)(self._made)
        self._interactions = lru_cache(RECENT_SOURCES)(self._made_interactions)
        self._neighbour = lru_cache(RECENT_EQUATIONS)(self._made_neighbour)

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling, without the caches of equations."""
        kept = vars(self).items()
        return {name: value for name, value in kept if not hasattr(value, "cache_info")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._remember()

    def at(self, value: float) -> Any:
        """The equation at a value of the parameter; the last 12 are cached.

        Raises
        ------
        OutsideDomain
            If there is no such model, or, outside the range, if its equation cannot be made.
        """
        return self._equation(float(value))

    @cached_property
    def _general(self) -> bool:
        """Whether some model of the family has no equation of moments, so that none is used."""
        if not isinstance(self.drift, Transformer) and isinstance(self.drift, Kind | type):
            return False
        return not all(model.is_zonal for model in self.probed())

    def probed(self) -> list[Transformer]:
        """Models at `probed_values` of the range."""
        return [self._source(float(value)) for value in probed_values(self.span)]

    def _made(self, value: float) -> Any:
        """The equation at a value, not cached."""
        if not np.isfinite(value):
            raise OutsideDomain(f"{self.name} = {value}")
        try:
            source = self._source(value)
        except ValueError as error:
            raise OutsideDomain(str(error)) from error
        derivatives = partial(self.changes, value), lambda: self._around(value)
        try:
            with naming_value(self.drift, self.name, value):
                if self._general:
                    model = model_of(source, self.basis.noise)
                    return _with_velocity(transport_equation(model, self.basis, derivatives[1]))
                return _with_velocity(equation_of(source, self.basis, *derivatives))
        except (ValueError, MeanfieldError) as error:  # for example beyond a pole
            if self.span[0] <= value <= self.span[1]:
                raise
            raise OutsideDomain(str(error)) from error

    def among(self, basis: Any) -> Self:
        """The family in another basis."""
        other = copy(self)
        other.basis, other._source = basis, self._source
        return other

    def kappa(self, value: float) -> float:
        """The kappa of the model at a value; for families of models."""
        varies = not isinstance(self.drift, Transformer) or self.name == "kappa"
        return float((self._source(float(value)) if varies else self.drift).kappa)

    def log_kappa_change(self, value: float) -> float:
        """d log kappa/dp of the models; for families of models."""
        points, slopes = self.stencil(value)
        return float(slopes @ np.log([self.kappa(point) for point in points]))

    def weights(self, values: Array) -> Array:
        """Multipliers w_l of all degrees at several values, (len(values), degree + 1)."""
        pairs = ((value, self._interactions(value)) for value in map(float, values))
        return np.stack([(known or self.at(value)).weights for value, known in pairs])

    def changes(self, value: float) -> Interactions:
        """Derivatives of multipliers and of c by the parameter, by differences of sixth order."""
        points, slopes = self.stencil(value)
        samples: Any = map(self._interactions, points.tolist())
        return Interactions(*(slopes @ np.stack(row) for row in zip(*samples, strict=True)))

    def _around(self, value: float) -> tuple[Array, list[TransportEquation]]:
        """Weights and equations whose weighted sum is d/dp of the equation, to rounding.

        At neighbouring values; without Z the equation is linear in the multipliers, so that two
        equations with the multipliers dw/dp and 0 are enough.
        """
        points, slopes = self.stencil(value)
        each = [self._neighbour(point) for point in points.tolist()]
        zonal: Any = [one._zonal for one in each]
        if type(each[0]) is TransportEquation and zonal[0] and zonal[0][0][1] is None:
            change = slopes @ np.array([w for ((w, _),) in zonal])
            pair = scaled(change, None), scaled(0 * change, None)
            made = [TransportEquation(each[0].model, self.basis, zonal=[one]) for one in pair]
            return np.array([1.0, -1.0]), made
        return slopes, each

    def _made_neighbour(self, value: float) -> TransportEquation:
        """The general equation at a value; `zonal` is known where it depends on that alone."""
        with naming_value(self.drift, self.name, value):
            model = model_of(self._source(value), self.basis.noise)
            equation = _with_velocity(transport_equation(model, self.basis))
        if isinstance(self.drift, Drift | type):
            equation._zonal = equation._zonal_parts
        return equation

    def stencil(self, value: float) -> tuple[Array, Array]:
        """Values, (7,), and weights, (7,), of a difference formula for d/dp at a value.

        The values are the nearest of a uniform grid of the range, as models may not exist outside
        it, so that their equations are made once for many values.
        """
        low, high = self.span
        count = int(np.ceil((high - low) / (PARAMETER_STEP * min(1.0, high - low))))
        place = (value - low) * count / (high - low)
        last = max(count, np.floor(place))  # beyond the range, nodes up to the value
        centre = np.clip(np.round(place), min(0.0, np.ceil(place)) + 3, last - 3)
        points = low + (high - low) / count * (centre + STENCIL)
        slopes = np.polyval(STENCIL_SLOPES, place - centre) * count / (high - low)
        return np.clip(points, min(low, value), max(high, value)), slopes

    def kinks(self, value: float) -> dict[str, float]:
        """A value near which R has no derivative by the parameter, by its name; empty without one.

        It lies within the difference formula at `value`, where fourth differences of R are as large
        as second ones, which those of a smooth function are not.
        """
        points, _ = self.stencil(value)
        rng, size = np.random.default_rng(0), len(self.basis.degrees)
        m = PROBED_SIZE * rng.standard_normal(size) * (self.basis.degrees <= PROBED_DEGREE)
        kappas = [self.kappa(point) for point in points]
        finite = np.where(np.isfinite(kappas), kappas, 1.0)
        pairs = zip(points, finite, strict=True)
        rows = np.array([self.at(point).mean(m, kappa).moments for point, kappa in pairs])
        second, fourth = (np.abs(np.diff(rows, order, axis=0)).max(axis=1) for order in (2, 4))
        if fourth.max() <= max(KINK_PART * second.max(), KINK_ROUNDING):
            return {}
        near = slice(max(int(second.argmax()) - 1, 0), int(second.argmax()) + 2)
        place = float(np.average(points[1:-1][near], weights=second[near]))
        return {self.name: round(place, KINK_DIGITS) + 0.0}  # no -0

    def _made_interactions(self, value: float) -> Interactions | None:
        """Multipliers at a value; None without a potential."""
        source = self._source(value)
        if self._general:
            return None
        with naming_value(self.drift, self.name, value):
            return interactions(getattr(source, "zonal", source), self.basis)


def _with_velocity(equation: Any) -> Any:
    """An equation, after its velocity is made, which raises for points of another dimension."""
    if isinstance(equation, TransportEquation) and not isinstance(equation, IndexedEquation):
        equation.heads  # noqa: B018
    return equation


def parameters_of(source: Any) -> list[str]:
    """Names of the real parameters of a drift or model that can be varied."""
    if not isinstance(source, Transformer):
        return list(source.parameters)
    names = [*source.drift.parameters, "kappa", "reaction"]
    for part in ("noise", "frequency"):
        described = getattr(getattr(source, part), "described", {})
        names += [f"{part}.{name}" for name, value in described.items() if _is_number(value)]
    return names


def value_of(source: Any, name: str) -> float:
    """The value of a parameter of a drift or model, by its name in `parameters_of`."""
    part, _, own = name.partition(".")
    if isinstance(source, Transformer):
        if part in ("noise", "frequency"):
            return float(getattr(getattr(source, part), own))
        if name in ("kappa", "reaction"):
            return float(getattr(source, name))
        source = source.drift
    return float(source.parameters[name])


def _is_number(value: Any) -> bool:
    """Whether the value of a parameter is one real number."""
    array = np.asarray(value)
    return isinstance(value, float | np.ndarray) and not array.ndim and array.dtype.kind == "f"


def with_parameter(source: Any, name: str, value: Any) -> Any:
    """The drift or model with another value of one parameter.

    `source` may be a class of drifts, or a function of the parameter that returns a Transformer.
    """
    if isinstance(source, type):
        return source(**{name: value})
    if not isinstance(source, Kind):
        model = source(value)
        if not isinstance(model, Transformer):
            raise TypeError(
                "A function of a number as drift or source must return a Transformer; got "
                f"{as_given(model)}."
            )
        if not model.steady_noise or not model.drift.constant:
            raise MeanfieldError(
                f"The model of the family at {name} = {value:.6g} changes with time, or its kappa "
                f"does: {model!r}."
            )
        return model
    if not isinstance(source, Transformer):
        return source.replace(**{name: value})
    part, _, own = name.partition(".")
    if part in ("noise", "frequency"):
        return source.replace(**{part: getattr(source, part).replace(**{own: value})})
    if name in ("kappa", "reaction"):
        return source.replace(**{name: value})
    return source.replace(drift=source.drift.replace(**{name: value}))


def checked_source(caller: str, drift: Any, noise: Noise) -> tuple[Any, Noise, bool]:
    """The drift, class of drifts, model or family that `caller` follows, and its noise.

    Also whether it is a family. Drifts that are not zonal become models.
    """
    kind = isinstance(drift, type) and issubclass(drift, ZonalDrift)
    family = callable(drift) and not isinstance(drift, type | Drift | Transformer)
    if not kind and not family:
        if not isinstance(drift, Drift | Transformer):
            raise TypeError(
                f"{caller} needs a drift, such as USA(4.0) or USA itself, a Transformer, or a "
                f"function of one number that gives a Transformer; got {as_given(drift)}."
            )
        if drift.shape:
            raise ValueError(f"{caller} follows a single model; got an ensemble {drift!r}.")
    if isinstance(drift, Transformer):
        wanted = "left out: a Transformer has its own"
        require("noise", noise, wanted, noise is ISOTROPIC or noise is drift.noise)
        noise = drift.noise
    elif isinstance(drift, Drift):
        drift = drift.as_zonal() if drift.is_zonal else Transformer(drift, 1.0, noise=noise)
    return drift, noise, family


def source_of(described: Any) -> Any:
    """The drift, class of drifts or model from its description; or a placeholder."""
    if name := described.get("function"):
        return Drift.kinds.get(name) or absent(Drift, name, described)
    reading = Reading(result=True)
    if described["kind"] == Transformer.__name__:
        model = build(Transformer, described, reading)
        lost = (
            absent(Drift, described["drift"]["kind"], described["drift"]) if reading.lost else None
        )
        return model if lost is None else model.replace(drift=lost)
    drift = build(Drift, described, reading)
    return drift if drift.is_absent else drift.as_zonal()


def saved_basis(space: Any, noise: Noise, symmetries: Any, symmetry: Any = AXISYMMETRIC) -> Any:
    """The basis in which a saved search began, from its `symmetries`, which may be None."""
    if symmetries is None:
        return basis_on(space, symmetry)
    found = Symmetries(*(tuple(map(int, part)) for part in symmetries))
    kind = reflected_on(space)
    return kind(kind.resolving(space), noise, found)
