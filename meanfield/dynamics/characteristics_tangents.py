"""Nodes that the flow carries, and tangents of them: `characteristics`, differentiated.

The places of the nodes at the start stand for points, which no change of the density moves: it
changes their masses.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.checks import as_given, fitting
from ..core.errors import MeanfieldError
from ..models.changes import multiplier_changes
from ..models.pointwise import change_of
from .linearised import OFF_TANGENT, LinearisedMotion
from .token_tangents import stacked


class LinearisedCharacteristics(LinearisedMotion):
    """The velocities of `CharacteristicsMotion`, and their derivatives; without a reaction."""

    arrays = "masses", "coordinates"

    def setup(self) -> None:
        """Multipliers and how they change, and sums over pairs with tangents."""
        motion = self.motion
        if motion.model.reaction:
            raise MeanfieldError(
                "Derivatives of runs of Characteristics are known without a reaction. Use "
                "reaction=0, or Tokens of the same points and masses."
            )
        self._pairs = None
        if motion.pairs is not None:
            self._pairs = motion.pairs.linearised(self._names_of(self._pair_parts), self.directions)
        self._tables = [self._changes_of(k, term) for k, term in self._zonal]
        self._by_factors = [
            np.array([float(name == f"factors[{k}]") for name in self.names])
            for k, _ in self._zonal
        ]
        self._by_masses = np.zeros((len(self.names), len(motion.like)))
        for a, direction in enumerate(self.directions):
            if direction is not None:
                self._by_masses[a] = direction.get("masses", 0.0)

    # Which part of a sum a parameter belongs to ----------------------------------------------

    @property
    def _whole(self) -> bool:
        """Whether all terms are one drift, with the names of parameters of the model."""
        drift = self.motion.model.drift
        return drift.is_zonal or len(drift.terms) == 1

    @property
    def _pair_parts(self) -> list[int]:
        """Numbers of the terms that are summed over pairs."""
        drift, plain = self.motion.model.drift, self.motion.model.normalisation.is_identity
        return [k for k, (_, part) in enumerate(drift.terms) if not (plain and part.is_zonal)]

    @property
    def _zonal(self) -> list[tuple[int, Any]]:
        """The terms that are summed by harmonics, with their numbers in the drift."""
        drift, terms = self.motion.model.drift, self.motion.harmonics
        others = set(self._pair_parts) if not drift.is_zonal else set()
        numbers = [k for k in range(len(drift.terms)) if k not in others]
        return list(zip(numbers, terms, strict=False))

    def _names_of(self, parts: list[int]) -> list[str | None]:
        """The names of parameters as the sum of these parts knows them; None for others."""
        if self._whole or len(parts) == len(self.motion.model.drift.terms):
            return list(self.names)
        own: dict[str, str] = {}
        for place, k in enumerate(parts):
            own[f"factors[{k}]"] = f"factors[{place}]"
            for name in self.motion.model.drift.drifts[k].parameters:
                own[f"drifts[{k}].{name}"] = f"drifts[{place}].{name}"
        return [own.get(name) if name is not None else None for name in self.names]

    def _changes_of(self, k: int, term: Any) -> list[Any]:
        """How multipliers of a term change with the parameter of each tangent."""
        d, size = self.motion.like.dimension, term.degree + 1
        nothing = np.zeros(size), None if term.normaliser is None else np.zeros(size)
        found: list[Any] = []
        for name in self.names:
            own = name if self._whole else None
            if not self._whole and name is not None and name.startswith(f"drifts[{k}]."):
                own = name.removeprefix(f"drifts[{k}].")
            if own is None:
                found.append(nothing)
            else:
                by = multiplier_changes(term.drift, own, term.degree, d)
                found.append((by[0], by[1] if len(by) > 1 else None))
        return found

    # Coordinates ---------------------------------------------------------------------------

    def first(self, state: Any) -> np.ndarray:
        y = self.motion.coordinates(state)
        Y = np.zeros((1 + len(self.names), *y.shape))
        Y[0] = y
        for a, direction in enumerate(self.directions):
            if direction is not None:
                Y[1 + a] = direction.get("coordinates", 0.0)
        return Y

    def changes(self, Y: np.ndarray) -> list[dict[str, np.ndarray]]:
        points = self.motion.chart.point_changes(Y[0], Y[1:])
        return [
            {"coordinates": h.copy(), "points": dx.copy(), "masses": dm.copy()}
            for h, dx, dm in zip(Y[1:], points, self._by_masses, strict=True)
        ]

    # Motion --------------------------------------------------------------------------------

    def velocity(self, Y: np.ndarray, t: float) -> np.ndarray:
        motion, chart, masses = self.motion, self.motion.chart, self.motion.like.masses
        x, dx, dm = Y[0], np.ascontiguousarray(Y[1:]), self._by_masses
        rates = np.zeros(Y.shape)
        extra = (slice(None),) + (None,) * x.ndim
        for (_, term), tables, by in zip(self._zonal, self._tables, self._by_factors, strict=True):
            multipliers = term.attraction, term.normaliser
            v, dv = chart.velocity_tangents(x, masses, dx, dm, multipliers, tables)
            rates += stacked(term.factor * v, term.factor * dv)
            if not self._whole:
                rates[1:] += by[extra] * v
        if self._pairs is None and motion.model.feedforward is None:
            return rates
        points, moved = chart.points(x), chart.point_changes(x, dx)
        if self._pairs is not None:
            given = points[None], masses[None], np.ascontiguousarray(moved[:, None]), dm[:, None]
            u = self._pairs._attention_update(given, t)[:, 0]
            rates += self._followed(x, dx, u)
        if motion.model.feedforward is not None:
            value = motion.model.feedforward_at(points)
            change = change_of("feedforward", motion.model.feedforward, points, moved)
            normalisation = motion.model.normalisation
            u = stacked(*normalisation.update_tangents(motion.inside(t), value, change))
            rates += self._followed(x, dx, u)
        return rates

    def _followed(self, x: np.ndarray, dx: np.ndarray, u: np.ndarray) -> np.ndarray:
        chart = self.motion.chart
        return stacked(chart.rates(x, u[0]), chart.rates_tangents(x, dx, u[0], u[1:]))

    def projected(self, Y: np.ndarray) -> np.ndarray:
        chart = self.motion.chart
        return stacked(chart.projected(Y[0]), chart.projected_tangents(Y[0], Y[1:]))

    def tangent_space(self, state: Any) -> tuple[int, Callable]:
        """Of the coordinates of the nodes."""
        chart, x = self.motion.chart, state.coordinates

        def draw(rng: np.random.Generator) -> dict[str, np.ndarray]:
            drawn = rng.standard_normal((1, *x.shape))
            return {"coordinates": chart.projected_tangents(x, drawn)[0]}

        return len(x) * (x.ndim if x.ndim == 1 else x.shape[1] - 1), draw

    def measured(
        self, state: Any, change: Mapping[str, np.ndarray], name: str | None, t: float
    ) -> dict[str, Any]:
        """Derivatives of order_parameter and mass."""
        mean = state.masses @ state.points
        moved = change["masses"] @ state.points + state.masses @ change["points"]
        axis = np.abs(state.limit) if state.coordinates.ndim == 1 and len(mean) > 2 else 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (mean * axis) @ (moved * axis) / np.linalg.norm(mean * axis)
        return {"order_parameter": found, "mass": change["masses"].sum()}


def characteristics_direction(given: Any, state: Any) -> dict[str, np.ndarray]:
    """A change of the initial density or nodes.

    A function f of unit vectors (n, d), by which the logarithm of the density changes, up to a
    constant: d mu = (f - int f dmu) mu. Or a mapping with changes of "masses" (n,), of sum 0,
    "coordinates", or both.

    Raises
    ------
    TypeError, ValueError
        For other things and shapes, and changes of masses whose sum is not 0.
    """
    if callable(given) and not isinstance(given, Mapping):
        values = np.asarray(given(state.points), dtype=float)
        wanted = f"functions with a number at each node, ({len(state)},)"
        fitting("tangents", values.shape, wanted, values.shape == state.masses.shape)
        mean = state.masses @ values / state.masses.sum()
        return {"masses": state.masses * (values - mean)}
    if not isinstance(given, Mapping) or not set(given) <= {"masses", "coordinates"}:
        raise TypeError(
            "tangents must have names of parameters, functions of unit vectors, or {'masses': ..., "
            f"'coordinates': ...}}; got {as_given(given)}."
        )
    found = {}
    for name, value in given.items():
        array, shape = np.asarray(value, dtype=float), getattr(state, name).shape
        fitting(f"The change of {name}", array.shape, f"{shape}", array.shape == shape)
        found[name] = array
    if "masses" in found:
        total, scale = np.abs(found["masses"].sum()), np.abs(found["masses"]).sum()
        fitting("tangents", total, "changes of masses of sum 0", bool(total <= OFF_TANGENT * scale))
    return found
