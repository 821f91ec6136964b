"""Sums of drifts, each with a factor: v = sum_k c_k v_k."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Self

import numpy as np

from ..core.annotations import ArrayIndex, Function, PassedOn, Values
from ..core.checks import common_shape, require
from ..core.dual import Array
from ..core.errors import MeanfieldError
from ..core.forms import NUMBERS, shown
from ..core.read_only import read_only
from .drift import Drift, Ensemble, rising
from .parameters import Given, StateSizes
from .pointwise import Pointwise
from .zonal import ZonalDrift


class Sum(Drift):
    """A sum of drifts: v[mu] = sum_k c_k v_k[mu].

    In Python it is written ``SA(4.0) - 0.5 * Kuramoto()``. A sum of sums is one sum. Where all
    parts are zonal with Z = 1, or there is one part alone, the sum is zonal as its parts are.

    Parameters
    ----------
    drifts : sequence of Drift
        The parts v_k.
    factors : sequence of float or array, optional
        The c_k, as many finite numbers; 1 by default. An array makes an ensemble.

    Raises
    ------
    TypeError, ValueError
        If an argument has a wrong type, there is no part, the numbers of parts and factors differ,
        or the parts have different dimensions or do not broadcast.

    Notes
    -----
    The names in `parameters` are ``factors[0]``, ``drifts[0].beta`` and so on.
    """

    drifts: Sequence[Drift]
    factors: Sequence[Ensemble] | None = None

    def validate(self) -> None:
        factors = (np.array(1.0),) * len(self.drifts) if self.factors is None else self.factors
        if not self.drifts or len(factors) != len(self.drifts):
            raise ValueError(
                "A Sum needs one drift or more, and as many factors; got "
                f"{len(self.drifts)} drifts and {len(factors)} factors."
            )
        terms = [t for pair in zip(factors, self.drifts, strict=True) for t in _flat(*pair)]
        factors, drifts = zip(*terms, strict=True)
        self._set(factors=tuple(map(read_only, factors)), drifts=drifts)
        dimensions = {d.dimension for d in drifts} - {None}
        if len(dimensions) > 1:
            names = ", ".join(f"{d!r} for d = {d.dimension}" for d in drifts if d.dimension)
            raise ValueError(f"The parts of a sum must be for one dimension d; got {names}.")
        super().validate()

    @property
    def terms(self) -> tuple[tuple[Values, Values], ...]:
        assert self.factors is not None
        return tuple(zip(self.factors, self.drifts, strict=True))

    # Parameters ----------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        factors = {f"factors[{k}]": factor for k, (factor, _) in enumerate(self.terms)}
        values = {name: factor for name, factor in factors.items() if not isinstance(factor, Given)}
        for k, drift in enumerate(self.drifts):
            values |= {f"drifts[{k}].{name}": v for name, v in drift.parameters.items()}
        return values

    def place_of(self, name: str) -> tuple[int, str | None]:
        part, _, inner = name.partition(".")
        return int(part[part.index("[") + 1 : -1]), inner or None

    @property
    def shape(self) -> tuple[int, ...]:
        shapes = {name: values.shape for name, values in self.parameters.items()}
        shapes |= {f"drifts[{k}]": drift.shape for k, drift in enumerate(self.drifts)}
        return common_shape("The parts of a sum", shapes)

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        return self._of_each(
            lambda drift: drift.broadcast(shape), lambda c: np.broadcast_to(c, shape).ravel()
        )

    def member(self, index: ArrayIndex) -> Self:
        shape = self.shape

        def of_part(drift: Drift) -> Drift:
            flat = drift.broadcast(shape)
            return flat.member(np.arange(int(np.prod(shape))).reshape(shape)[index])

        return self._of_each(of_part, lambda c: np.broadcast_to(c, shape)[index])

    def _of_each(self, of_part: Function, of_factor: Function) -> Self:
        """The sum with of_part(part), of_factor(factor) for ensemble parts and factors."""
        if not self.shape:
            return self
        drifts = [of_part(drift) if drift.shape else drift for drift in self.drifts]
        factors = [of_factor(c) if np.ndim(c) else c for c, _ in self.terms]
        return super().replace(drifts=drifts, factors=factors)

    def along(self, rates: Mapping[str, Array]) -> Self:
        names = [*self.parameters]
        require("tangents", [*rates], f"parameters among {names}", {*rates} <= {*names})
        factors, drifts = [], []
        for k, (factor, drift) in enumerate(self.terms):
            prefix, key = f"drifts[{k}].", f"factors[{k}]"
            inner = {n.removeprefix(prefix): by for n, by in rates.items() if n.startswith(prefix)}
            factors.append(rising(factor, rates[key]) if key in rates else factor)
            drifts.append(drift.along(inner))
        varied = copy(self)
        varied._set(drifts=tuple(drifts), factors=tuple(factors))
        return varied

    def replace(self, **changes: PassedOn) -> Self:
        """A sum with other drifts or factors, or values of some of its `parameters`."""
        drifts, factors = [], []
        for k, (factor, drift) in enumerate(self.terms):
            factors.append(changes.pop(f"factors[{k}]", factor))
            keys = {f"drifts[{k}].{name}": name for name in drift.parameters}
            part_changes = {name: changes.pop(key) for key, name in keys.items() if key in changes}
            drifts.append(drift.replace(**part_changes) if part_changes else drift)
        return super().replace(**{"drifts": drifts, "factors": factors, **changes})

    def resolve(self, sizes: StateSizes) -> Self:
        terms = self.terms
        drifts = [drift.resolve(sizes) for _, drift in terms]
        factors = [c.resolve(sizes) if isinstance(c, Given) else c for c, _ in terms]
        pairs = zip((*drifts, *factors), (*self.drifts, *(c for c, _ in terms)), strict=True)
        return self if all(new is old for new, old in pairs) else type(self)(drifts, factors)

    # What the parts say --------------------------------------------------------------------

    @property
    def dimension(self) -> int | None:  # type: ignore[override]
        return next((d.dimension for d in self.drifts if d.dimension is not None), None)

    gradient_flow = property(lambda self: all(d.gradient_flow for d in self.drifts))
    on_sphere_only = property(lambda self: any(d.on_sphere_only for d in self.drifts))
    normalised = property(lambda self: all(d.normalised for d in self.drifts))
    parts_tokens = property(lambda self: any(d.parts_tokens for d in self.drifts))
    constant = property(lambda self: all(d.constant for d in self.drifts))
    autonomous = property(lambda self: all(d.autonomous for d in self.drifts))

    @property
    def is_zonal(self) -> bool:  # type: ignore[override]
        return all(drift.is_zonal for drift in self.drifts) and not self._conflicting_parts

    @property
    def _conflicting_parts(self) -> tuple[ZonalDrift, ZonalDrift] | None:
        """A zonal part divided by Z * mu, and another part that differs from it; else None."""
        parts = [drift.as_zonal() for drift in self.drifts]
        divided = next((part for part in parts if part.normalised), parts[0])
        conflicting = (part for part in parts if divided.normalised and part != divided)
        conflict = next(conflicting, None)
        return None if conflict is None else (divided, conflict)

    @property
    def why_no_density(self) -> str:  # type: ignore[override]
        return next((drift.why_no_density for drift in self.drifts if drift.why_no_density), "")

    def rate(self, t: float = 0.0) -> np.ndarray:
        return np.asarray(sum(np.abs(factor) * drift.rate(t) for factor, drift in self.terms))

    def known_rate(self, on_sphere: bool) -> bool:
        return all(drift.known_rate(on_sphere) for drift in self.drifts)

    def output_size(self, t: float) -> np.ndarray:
        return np.asarray(sum(np.abs(c) * drift.output_size(t) for c, drift in self.terms))

    def breakpoints(self, start: float, end: float) -> np.ndarray:
        return np.unique(np.concatenate([d.breakpoints(start, end) for d in self.drifts]))

    def interaction_energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return np.asarray(sum(c * drift.interaction_energy(x, masses) for c, drift in self.terms))

    def is_gradient(self, d: int, t: float = 0.0) -> bool:
        return all(drift.is_gradient(d, t) for drift in self.drifts)

    def why_no_potential(self, d: int, t: float = 0.0) -> str:
        return next(filter(None, (part.why_no_potential(d, t) for part in self.drifts)), "")

    @property
    def undefined(self) -> str:  # type: ignore[override]
        reasons = dict.fromkeys(d.undefined for d in self.drifts if d.undefined)
        return " or ".join(reasons)

    def why_not_finite(self, x: np.ndarray) -> str:
        lost = [part for part in self.drifts if isinstance(part, Pointwise) and part.where_lost(x)]
        parts = lost or self.drifts
        reasons = dict.fromkeys(drift.why_not_finite(x).rstrip(".") for drift in parts)
        return f"{'; or '.join(reasons)}."

    # Inner products alone ------------------------------------------------------------------

    def as_zonal(self) -> ZonalDrift:
        """The sum as a zonal drift; raises MeanfieldError if it is not zonal."""
        if self._conflicting_parts is not None:
            divided, other = self._conflicting_parts
            raise MeanfieldError(
                f"{self!r} is no zonal drift: {divided!r} is divided by Z * mu, and {other!r} is "
                "not divided by the same, so that there is no W and Z of the sum. Take zonal parts "
                "with Z = 1, such as USA, Kuramoto and Interaction; or solve for Tokens, or for a "
                "density on Circle(degree) or Sphere(degree)."
            )
        factors = [factor for factor, _ in self.terms]
        parts = [drift.as_zonal() for drift in self.drifts]
        if parts[0].normalised:  # and all are the same
            return _ZonalSum(parts[:1], [sum(factors)])
        return _ZonalSum(parts, factors)

    def __repr__(self) -> str:
        text = ""
        for factor, drift in self.terms:
            sign, part = "+", f"({drift!r})" if drift.terms[0][1] is not drift else repr(drift)
            if np.ndim(factor) or isinstance(factor, Given):
                part = f"{shown(factor)}*{part}"
            else:
                sign = "-" if np.signbit(factor) else "+"
                size = np.abs(factor).item()
                is_single = sign == "+" and len(self.drifts) == 1  # which is no sum
                part = part if size == 1 and not is_single else f"{shown(size)}*{part}"
            text += f" {sign} {part}" if text else part if sign == "+" else f"-{part}"
        return text


def _flat(factor: Values, drift: Drift) -> Sequence[tuple[Values, Drift]]:
    """The terms of factor * drift; a single term if the factors of a sum are not known yet."""
    factors = [inner for inner, _ in drift.terms]
    if len(factors) == 1 and drift.terms[0][1] is drift:
        return [(factor, drift)]
    if isinstance(factor, Given) or any(isinstance(inner, Given) for inner in factors):
        return [(factor, drift)]
    products = []
    for inner in factors:
        shapes = {"one": np.shape(factor), "the other": np.shape(inner)}
        common_shape("The factors of a sum in a sum", shapes)
        with np.errstate(over="ignore"):
            products.append(NUMBERS.check("A product of factors", factor * inner))
    return [(c, part) for c, (_, part) in zip(products, drift.terms, strict=True)]


class _ZonalSum(Sum, ZonalDrift):
    """A zonal sum of zonal drifts: W = sum_k c_k W_k, and Z = 1, or the Z of its only part."""

    on_sphere_only = is_zonal = True

    def as_zonal(self) -> ZonalDrift:
        return self

    def stored_kind(self) -> Sum:
        return Sum(self.drifts, self.factors)

    def identity(self) -> object:
        return self.described

    def _total(self, name: str, t: np.ndarray) -> np.ndarray:
        """The sum of c_k f_k(t), t (*shape, ...), where f_k is the method `name` of part k."""
        return np.asarray(sum(c * getattr(part, name)(t) for c, part in self._broadcast_terms(t)))

    def _broadcast_terms(self, t: np.ndarray) -> Iterator[tuple[np.ndarray, ZonalDrift]]:
        """Yield pairs (factor, drift) in the ensemble shape; factors get the further axes of t."""
        shape = self.shape
        for factor, drift in self.terms:
            if drift.shape:
                values = drift.parameters.items()
                drift = drift.replace(**{n: np.broadcast_to(v, shape) for n, v in values})
            broadcast_factor = np.broadcast_to(factor, shape)
            yield broadcast_factor.reshape(shape + (1,) * (t.ndim - len(shape))), drift

    def slope(self, t: np.ndarray) -> np.ndarray:
        return self._total("slope", t)

    def potential(self, t: np.ndarray) -> np.ndarray:
        return self._total("potential", t)

    def potential_at(self, t: np.ndarray) -> np.ndarray:
        return self._total("potential_at", t)

    def weight(self, t: np.ndarray) -> np.ndarray:
        _, part = next(self._broadcast_terms(t))
        return part.weight(t)

    @property
    def normalised(self) -> bool:  # type: ignore[override]
        return any(part.normalised for _, part in self.terms)

    @property
    def polynomial_degree(self) -> int | None:  # type: ignore[override]
        degrees = [part.polynomial_degree for _, part in self.terms]
        return None if None in degrees else max(degrees)

    @property
    def multiplier_error(self) -> float:  # type: ignore[override]
        return max(part.multiplier_error for _, part in self.terms)

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        return self._added("attraction", degree, dimension)

    def interaction(self, degree: int, dimension: int) -> np.ndarray:
        return self._added("interaction", degree, dimension)

    def _added(self, name: str, *of: int) -> np.ndarray:
        """The sum of c_k times the multipliers `name` of part k; inf or nan on overflow."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(sum(c[..., None] * getattr(p, name)(*of) for c, p in self.terms))

    def normaliser(self, degree: int, dimension: int) -> np.ndarray | None:
        multipliers = self.terms[0][1].normaliser(degree, dimension)
        if multipliers is None:
            return None
        return np.broadcast_to(multipliers, (*self.shape, degree + 1)).copy()

    def contrast(self, log_gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mean of the contrasts of the parts, with weights c_k W_k'(1 - gap)."""
        parts = list(self._broadcast_terms(log_gap))
        slopes = [c * part.slope(1 - np.exp(log_gap)) for c, part in parts]
        contrasts = [part.contrast(log_gap) for _, part in parts]
        top = np.max([log_size for _, log_size in contrasts], axis=0)
        top = np.where(np.isfinite(top), top, 0.0)
        scaled = [w * s * np.exp(l - top) for w, (s, l) in zip(slopes, contrasts, strict=True)]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = sum(scaled) / sum(slopes)
            return np.sign(ratio), np.log(np.abs(ratio)) + top
