"""The plane of a parameter and kappa, or of any two parameters, of the stationary equations.

A point has the first parameter p and the coordinate q of the second one, log kappa or its value.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..models.noise import Noise
from ..models.transformer import Transformer
from ..spaces import Space
from .bases import AXISYMMETRIC, Array
from .continuation import StationaryCurve, curve_of
from .families import (
    RECENT_EQUATIONS,
    EquationFamily,
    OutsideDomain,
    basis_along,
    basis_of,
    probed_values,
    with_parameter,
)
from .journal import AnswerJournal
from .stationary import check_model

Span = tuple[float, float]


class KappaPlane(EquationFamily):
    """Stationary equations in the plane of a parameter p and q = log kappa.

    Attributes
    ----------
    second : str
        Name of the second parameter, "kappa".
    second_span : (float, float) or None
        Its range; None for kappa.
    """

    second: str = "kappa"
    second_span: Span | None = None

    def for_file(self) -> dict[str, Any]:
        """Drift, noise, ranges and basis, from which `PhaseDiagram.made_of` makes the plane."""
        names = ("drift", "name", "span", "second", "second_span")
        basis = {"symmetries": self.basis.symmetries, "truncation": self.basis.degree}
        return {name: getattr(self, name) for name in names} | basis | {"noise": self.basis.noise}

    def second_value(self, q: float) -> float:
        """The value of the second parameter at q."""
        return float(np.exp(q))

    def coordinate(self, value: float) -> float:
        """The q of a value of the second parameter."""
        return float(np.log(value))

    def near(self, q: float) -> Span:
        """A range of the second parameter around q."""
        return self.second_value(q) / 2, 2 * self.second_value(q)

    def equation(self, p: float, q: float) -> tuple[Any, float]:
        """Equation and kappa at (p, q); raises OutsideDomain if there is no equation."""
        return self.at(p), self.second_value(q)

    def slopes(self, p: float, q: float, equation: Any, m: Array, mean: Any) -> Array:
        """dR/dq and dR/dp, (N, 2)."""
        return np.column_stack([equation.by_log_kappa(mean), equation.by_parameter(m, mean)])

    def kappa_slopes(self, p: float, q: float) -> Array:
        """dlog kappa/dq and dlog kappa/dp, (2,)."""
        return np.array([1.0, 0.0])

    def block_change(self, p: float, q: float, equation: Any, mean: Any, *given: Any) -> Array:
        """Gradient (N + 2,) of left . block right by the moments, q and p; see the equation."""
        return equation.block_change(mean, *given)

    def kinks_at(self, p: float, q: float) -> dict[str, float]:
        """Values near (p, q) at which the equation has no derivative, by parameter."""
        return self.kinks(p)

    def line(
        self, p: float, span: Span, basis: Any, max_step: float = 1.0,
        journal: AnswerJournal | None = None,
    ) -> StationaryCurve:  # fmt: skip
        """Stationary states in the second parameter at one p."""
        return curve_of(self.source_at(p), basis, self.second, span, None, max_step, journal)

    def source_at(self, p: float) -> Any:
        """The drift, model or function of the second parameter alone, at one p."""
        return self.at(p).source


class ParameterPlane(KappaPlane):
    """Stationary equations in the plane of two parameters p and q of models, each with its kappa.

    Parameters
    ----------
    drift : Transformer or callable
        A model with both parameters, or a function (p, q) -> model.
    name, span, basis
        As for `EquationFamily`, of the first parameter.
    second : str
    second_span : (float, float)
        Name and range of the second parameter.
    """

    second_span: Span

    def __init__(
        self, drift: Any, name: str, span: Span, basis: Any, second: str, second_span: Span
    ):
        self.second, self.second_span = second, second_span
        super().__init__(drift, name, span, basis)

    def _remember(self) -> None:
        super()._remember()
        self._lines = lru_cache(RECENT_EQUATIONS)(self._both)

    def second_value(self, q: float) -> float:
        return float(q)

    def coordinate(self, value: float) -> float:
        return float(value)

    def near(self, q: float) -> Span:
        return self.second_span

    def _fixed(self, name: str, value: float) -> Any:
        """Model, or function of one number, with one of the two parameters fixed."""
        if isinstance(self.drift, Transformer):
            return with_parameter(self.drift, name, value)
        if name == self.name:
            return partial(self.drift, value)
        return partial(_with_second, self.drift, value)

    def model(self, p: float, q: float) -> Transformer:
        """The model at (p, q)."""
        return with_parameter(self._fixed(self.name, p), self.second, q)

    def _both(self, p: float, q: float) -> tuple[EquationFamily, EquationFamily]:
        """Families in the second and in the first parameter through (p, q); the last are cached."""
        try:
            sources = self._fixed(self.name, p), self._fixed(self.second, q)
        except ValueError as error:
            raise OutsideDomain(str(error)) from error
        names, spans = (self.second, self.name), (self.second_span, self.span)
        second, first = map(EquationFamily, sources, names, spans, (self.basis, self.basis))
        second._general = first._general = self._general
        return second, first

    def probed(self) -> list[Transformer]:
        """Models at `probed_values` of both ranges."""
        pairs = product(probed_values(self.span), probed_values(self.second_span))
        return [self.model(*pair) for pair in pairs]

    def equation(self, p: float, q: float) -> tuple[Any, float]:
        _, first = self._lines(p, q)
        return first.at(p), first.kappa(p)

    def slopes(self, p: float, q: float, equation: Any, m: Array, mean: Any) -> Array:
        pairs = zip(self._lines(p, q), (q, p), strict=True)
        changes = [family.at(value).by_parameter(m, mean) for family, value in pairs]
        by_kappa = equation.by_log_kappa(mean)
        return np.column_stack(changes) + np.outer(by_kappa, self.kappa_slopes(p, q))

    def kinks_at(self, p: float, q: float) -> dict[str, float]:
        second, first = self._lines(p, q)
        return second.kinks(q) | first.kinks(p)

    def kappa_slopes(self, p: float, q: float) -> Array:
        second, first = self._lines(p, q)
        return np.array([second.log_kappa_change(q), first.log_kappa_change(p)])

    def block_change(self, p: float, q: float, equation: Any, mean: Any, *given: Any) -> Array:
        pairs = zip(self._lines(p, q), (q, p), strict=True)
        changes = [family.at(value).block_change(mean, *given) for family, value in pairs]
        *by_moments, by_kappa, by_first = changes[1]
        by_both = np.array([changes[0][-1], by_first]) + by_kappa * self.kappa_slopes(p, q)
        return np.append(by_moments, by_both)

    def source_at(self, p: float) -> Any:
        return self._fixed(self.name, p)


def _with_second(family: Callable[[float, float], Transformer], q: float, p: float) -> Transformer:
    """The model of a function of two numbers."""
    return family(p, q)


def plane_of(drift: Any, ranges: Mapping[str, Span], noise: Noise, space: Space) -> KappaPlane:
    """The plane of the parameters in `ranges`, one beside kappa or two, in their common basis.

    Raises
    ------
    MeanfieldError
        For two parameters of models that are all invariant under rotations.
    """
    (name, span), *others = ranges.items()
    if not others:
        return KappaPlane(drift, name, span, basis_along(drift, name, span, noise, space,
                                                         AXISYMMETRIC))  # fmt: skip
    plane = ParameterPlane(drift, name, span, None, *others[0])
    corners = plane.probed()
    for model in corners:
        check_model(model, space)
    basis = basis_of(corners, space)
    if basis.symmetric:
        raise MeanfieldError(
            f"{corners[0]!r} is invariant under rotations, for all values of {name} and "
            f"{others[0][0]}: its curves begin at kappa = 1/w_l, so vary kappa and one of the two."
        )
    return plane.among(basis)
