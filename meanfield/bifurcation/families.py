"""The models along a curve in a parameter, their equations, and the functions to solve these in."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..core.checks import as_given, fitting
from ..core.descriptions import absent, build
from ..core.errors import MeanfieldError
from ..core.forms import Reading
from ..core.kinds import Kind
from ..models import Drift, Kuramoto, Transformer, ZonalDrift
from ..models.noise import Noise
from ..spaces import Space
from .bases import AXISYMMETRIC, Array, Basis, basis_on
from .equation import Interactions, MomentEquation, StationaryEquation, interactions
from .reflections import Reflected, Symmetries, symmetries_of_noise
from .transport import TransportEquation, scaled

RECENT_EQUATIONS = 8  # equations that are kept
BETWEEN = 0.381966  # the part of a range at which symmetries are looked at too
ABSENT_OF_ROTATIONS = Kuramoto()  # stands for all zonal drifts: they have the same symmetries
PARAMETER_STEP, STEPS_EACH_WAY = 0.01, 3  # of a parameter, or of its range if this is < 1
PROBED_DEGREE, PROBED_SIZE = 3, 0.02  # of a density by which symmetries are recognised
ASYMMETRIC_CHANGE = 1e-8  # relative, of its motion, by a symmetry that a model has not


class OutsideDomain(ValueError):
    """A value of a parameter for which there is no equation."""


def model_of(source: Any, noise: Noise) -> Transformer:
    """The model that a drift makes with a noise, or a model itself."""
    if isinstance(source, Transformer):
        return source
    return Transformer(source, np.inf if noise.laplacian else 1.0, noise=noise)


def is_isotropic(model: Transformer) -> bool:
    """Whether no rotation changes a model, so that the uniform density rests."""
    drift: Any = model.drift
    zonal = drift.is_absent or all(part.is_zonal for _, part in drift.terms)
    return zonal and model.noise.laplacian and not set(model.extras) - {"reaction"}


def equation_of(
    source: Any,
    basis: Any,
    changes: Callable[..., Any] | None = None,
    neighbours: Callable[..., Any] | None = None,
) -> StationaryEquation:
    """The equation of a drift, or of a model, in the functions of a basis.

    That of moments where the drift has a potential, else the general one.
    """
    model = model_of(source, basis.noise)
    drift: Any = model.drift
    if basis.symmetric and drift.is_absent:  # its states came from such an equation
        return MomentEquation(drift, basis, changes)
    if basis.symmetric and model.is_zonal:
        equation = MomentEquation(model.zonal, basis, changes)
        if equation.exists:
            return equation
    return TransportEquation(model, basis, neighbours)


def basis_of(models: Sequence[Transformer], space: Any, symmetry: Any = AXISYMMETRIC) -> Any:
    """The functions in which states of models are sought first: as `basis_on` if isotropic.

    Raises
    ------
    TypeError, ValueError, MeanfieldError
        As `basis_on`; for a symmetry, and for spaces, that the model does not keep.
    """
    basis = basis_on(space, symmetry)
    if all(map(is_isotropic, models)):
        return basis
    model = next(model for model in models if not is_isotropic(model))
    wanted = f"left out under {model!r}, which keeps no symmetry but reflections"
    axisymmetric = isinstance(symmetry, str) and symmetry == AXISYMMETRIC
    fitting("symmetry", symmetry, wanted, axisymmetric)
    if not model.noise.is_absent:
        model.noise.check_densities(space)
    if space.axisymmetric:
        raise MeanfieldError(
            f"{model!r} does not keep densities symmetric about an axis, which {space!r} holds "
            "alone: use a Circle or a Sphere."
        )
    space = Reflected.resolving(space)
    each = [symmetries_of(model, space) for model in models]
    common = (sorted(set(each[0][i]).intersection(*(one[i] for one in each))) for i in (0, 1))
    return Reflected(space, model.noise, Symmetries(*map(tuple, common)))


def basis_along(source: Any, name: str, span: Any, noise: Noise, space: Any, symmetry: Any) -> Any:
    """The functions for the models along a parameter: those of its ends, and of one between."""
    if isinstance(source, Drift) or (isinstance(source, type) and issubclass(source, ZonalDrift)):
        model = Transformer(ABSENT_OF_ROTATIONS, noise=noise, kappa=1.0)
        return basis_of([model], space, symmetry)
    if name == "kappa":
        return basis_of([source], space, symmetry)
    low, high = span
    values = low, low + BETWEEN * (high - low), high
    return basis_of([with_parameter(source, name, value) for value in values], space, symmetry)


def symmetries_of(model: Transformer, space: Space) -> Symmetries:
    """Reflections and rotations that a model does not see, by the motion of a random density."""
    of_noise = symmetries_of_noise(model.noise, space)
    others = set(model.extras) - {"reaction"}
    absent = model.drift.is_absent or model.noise.is_absent
    if absent or (not others and all(t.is_zonal for _, t in model.drift.terms)):
        return of_noise
    basis = Reflected(space, model.noise, Symmetries((0,)))
    equation, rng = TransportEquation(model, basis), np.random.default_rng(0)
    m = PROBED_SIZE * rng.standard_normal(len(basis.degrees)) * (basis.degrees <= PROBED_DEGREE)

    def change(m: Array) -> Array:
        return m - equation.mean(m, 1.0).moments

    here = change(m)
    most = ASYMMETRIC_CHANGE * np.abs(here).max()
    signs = [np.where(basis.all.odd(r), -1.0, 1.0) for r in of_noise.reflections]
    kept = [np.abs(one * change(one * m) - here).max() <= most for one in signs]
    turnings = [basis.all.rotations[plane] for plane in of_noise.planes]
    jacobian = equation.jacobian(equation.mean(m, 1.0)) if turnings else None
    turned = [np.abs(jacobian @ (A @ m) - A @ here).max() <= most for A in turnings]
    return Symmetries(
        tuple(r for r, same in zip(of_noise.reflections, kept, strict=True) if same),
        tuple(plane for plane, same in zip(of_noise.planes, turned, strict=True) if same),
    )


class EquationFamily:
    """The equations of models along one parameter.

    Parameters
    ----------
    drift : ZonalDrift, type, Transformer or callable
        A single drift or model, at any value of the parameter; a kind of drift that is made from
        it alone; or a function of the parameter that gives a model.
    name : str
        Of the parameter, one of `parameters_of`.
    span : (float, float)
        The range of the parameter. Derivatives do not look beyond it.
    basis : Basis
        Of order 0.
    """

    def __init__(self, drift: Any, name: str, span: tuple[float, float], basis: Basis):
        self.drift, self.name, self.span, self.basis = drift, name, span, basis
        self._remember()

    def _remember(self) -> None:
        self._equation = lru_cache(RECENT_EQUATIONS)(self._made)
        self._neighbours = lru_cache(2)(self._around)

    def __getstate__(self) -> dict[str, Any]:
        """All but the equations that it remembers."""
        kept = vars(self).items()
        return {name: value for name, value in kept if name not in ("_equation", "_neighbours")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._remember()

    def at(self, value: float) -> Any:
        """The equation at this value; the same one for the last few that were asked for.

        Raises
        ------
        OutsideDomain
            If there is no such model; beyond the range also if its multipliers cannot be computed.
        """
        return self._equation(float(value))

    def _made(self, value: float) -> Any:
        if not np.isfinite(value):
            raise OutsideDomain(f"{self.name} = {value}")
        try:
            source = with_parameter(self.drift, self.name, value)
        except ValueError as error:
            raise OutsideDomain(str(error)) from error
        derivatives = partial(self.changes, value), lambda: self._neighbours(value)
        try:
            return equation_of(source, self.basis, *derivatives)
        except MeanfieldError as error:  # as beyond a pole, where a step was too long
            if self.span[0] <= value <= self.span[1]:
                raise
            raise OutsideDomain(str(error)) from error

    def finer(self, degree: int) -> "EquationFamily":
        """This family in more functions."""
        return self.among(self.basis.finer(degree))

    def among(self, basis: Any) -> "EquationFamily":
        """This family in other functions."""
        return EquationFamily(self.drift, self.name, self.span, basis)

    def kappa(self, value: float) -> float:
        """The kappa of the model at a value, where models have their own."""
        return float(with_parameter(self.drift, self.name, value).kappa)

    def log_kappa_change(self, value: float) -> float:
        """d log kappa/dp, where models have their own kappa."""
        points, slopes = self.stencil(value)
        return float(slopes @ np.log([self.kappa(point) for point in points]))

    def weights(self, values: Array) -> Array:
        """w_l of all degrees at many values, (len(values), degree + 1)."""
        known = self._at_all(values)
        if any(one is None for one in known):
            return np.stack([self.at(float(value)).weights for value in values])
        return np.stack([member.weights for member in known if member is not None])

    def changes(self, value: float) -> Interactions:
        """d/dp of the multipliers and of c, by differences of sixth order."""
        points, slopes = self.stencil(value)
        samples: Any = self._at_all(points)
        return Interactions(*(slopes @ np.stack(row) for row in zip(*samples, strict=True)))

    def _around(self, value: float) -> tuple[Array, list[TransportEquation]]:
        """Weights and equations of which the sum is the derivative by the parameter."""
        points, slopes = self.stencil(value)
        points, slopes = points[slopes != 0], slopes[slopes != 0]
        noise, basis, many = self.basis.noise, self.basis, self._ensemble(points)
        if many is None:
            sources = (with_parameter(self.drift, self.name, float(point)) for point in points)
            return slopes, [TransportEquation(model_of(one, noise), basis) for one in sources]
        model = model_of(with_parameter(self.drift, self.name, value), noise)
        of = basis.degree, basis.dimension
        w, z = np.atleast_2d(many.attraction(*of)), many.normaliser(*of)
        each = zip(w, [None] * len(w) if z is None else np.atleast_2d(z), strict=True)
        return slopes, [TransportEquation(model, basis, zonal=[scaled(*one)]) for one in each]

    def stencil(self, value: float) -> tuple[Array, Array]:
        """Values and weights of a derivative; they stay within the range of the parameter.

        Beyond it there may be no such model.
        """
        low, high = min(self.span[0], value), max(self.span[1], value)
        step = PARAMETER_STEP * min(1.0, self.span[1] - self.span[0])
        nodes = np.arange(-STEPS_EACH_WAY, STEPS_EACH_WAY + 1)
        nodes += max(0, int(np.ceil((low - value) / step)) + STEPS_EACH_WAY)
        nodes -= max(0, nodes[-1] - int(np.floor((high - value) / step)))
        slopes = np.array([_slope_at_zero(int(j), nodes) / step if j else 0.0 for j in nodes])
        if nodes[0] + nodes[-1]:  # else they are antisymmetric
            slopes[nodes == 0] = -sum(slopes)
        return np.clip(value + step * nodes, low, high), slopes

    def _ensemble(self, values: Array) -> ZonalDrift | None:
        """The drifts at many values as one, where there is such an ensemble."""
        try:
            many = with_parameter(self.drift, self.name, values)
        except (TypeError, ValueError):
            return None
        return many if isinstance(many, ZonalDrift) and many.shape == values.shape else None

    def _at_all(self, values: Array) -> list[Interactions | None]:
        """The multipliers at many values: at once where the drift makes ensembles."""
        many = self._ensemble(values)
        if many is not None:
            return interactions(many, self.basis)
        singles = (with_parameter(self.drift, self.name, float(value)) for value in values)
        drifts = [getattr(one, "zonal", one) for one in singles]
        return [member for drift in drifts for member in interactions(drift, self.basis)]


def parameters_of(source: Any) -> list[str]:
    """The names of the numbers of a drift, or of a model, that may vary."""
    if not isinstance(source, Transformer):
        return list(source.parameters)
    names = [*source.drift.parameters, "kappa", "reaction"]
    for part in ("noise", "frequency"):
        described = getattr(getattr(source, part), "described", {})
        numbers = (name for name, value in described.items() if np.ndim(value) == 0)
        names += [f"{part}.{name}" for name in numbers if _is_number(described[name])]
    return names


def value_of(source: Any, name: str) -> float:
    """The value of a parameter of a drift or of a model."""
    part, _, own = name.partition(".")
    if isinstance(source, Transformer):
        if part in ("noise", "frequency"):
            return float(getattr(getattr(source, part), own))
        if name in ("kappa", "reaction"):
            return float(getattr(source, name))
        source = source.drift
    return float(source.parameters[name])


def _is_number(value: Any) -> bool:
    return isinstance(value, float | np.ndarray) and np.asarray(value).dtype.kind == "f"


def with_parameter(source: Any, name: str, value: Any) -> Any:
    """A drift or model with another value of one parameter; of a class, the drift with it."""
    if isinstance(source, type):
        return source(**{name: value})
    if not isinstance(source, Kind):
        model = source(value)
        if not isinstance(model, Transformer):
            raise TypeError(f"A family gives a Transformer for a number; got {as_given(model)}.")
        return model
    if not isinstance(source, Transformer):
        return source.replace(**{name: value})
    part, _, own = name.partition(".")
    if part in ("noise", "frequency"):
        return source.replace(**{part: getattr(source, part).replace(**{own: value})})
    if name in ("kappa", "reaction"):
        return source.replace(**{name: value})
    return source.replace(drift=source.drift.replace(**{name: value}))


def _slope_at_zero(j: int, nodes: np.ndarray) -> float:
    """The derivative at 0 of Lagrange's polynomial of node j, for nodes with 0 among them."""
    others = nodes[(nodes != j) & (nodes != 0)]
    return float(np.prod(others / (others - j)) / j)


def drift_of(described: Any) -> Any:
    """The drift, or the kind of drift, that `describe` described."""
    if name := described.get("function"):
        return Drift.kinds.get(name) or absent(Drift, name, described)
    drift = build(Drift, described, Reading(result=True))
    return drift if drift.is_absent else drift.as_zonal()
