"""Families of models to fit: names of parameters, and the model at a point.

A point is a vector of free numbers: the parameters of the family, then the logarithms of `time` and
`kappa`, all without those that are fixed.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from meanfield import Drift, MeanfieldError, Transformer
from meanfield.extending import (
    Parameters,
    UserValue,
    as_given,
    parameters_of,
    positive,
    real,
    real_array,
    require,
)

LAYER_PARAMETERS = ("time", "kappa")
SHORTEST_LOG_TIME, LONGEST_LOG_TIME = np.log(1e-6), np.log(1e3)  # bounds of log time


class LayerFlow(NamedTuple):
    """The flow of one layer: a model, its time and its noise.

    Attributes
    ----------
    model : Transformer
        The model without noise.
    time, kappa : float
        Time per layer and noise, kappa = inf for none.
    """

    model: Transformer
    time: float
    kappa: float

    @property
    def noisy(self) -> Transformer:
        """The model with its noise."""
        return self.model.replace(kappa=self.kappa)


class ParameterFamily:
    """A parametrised family of models, with starts and fixed parameters as in `fit`.

    Attributes
    ----------
    labels : list of str
        Names of the free numbers, "v[0]" for those of an array.
    start : ndarray
        The point where a fit begins.

    Raises
    ------
    TypeError, ValueError
        For families, names and values that do not fit.
    """

    def __init__(self, family: UserValue, start: Parameters, fixed: Parameters, noise: bool):
        """Check the arguments, and collect labels and start values of the free numbers."""
        expected = "a class of drifts, as mf.SA, or a function of numbers that returns a model"
        require("family", family, expected, callable(family), TypeError)
        self._make, self.noise = family, noise
        self.names, self.name = _names(family), getattr(family, "__name__", "a family")
        self._check_names(start, fixed)
        self._fixed = {k: real_array(f"fixed[{k!r}]", v) for k, v in fixed.items()}
        free_names = [name for name in self.names if name not in fixed]
        values = {name: real_array(f"start[{name!r}]", start.get(name, 1.0)) for name in free_names}
        self._shapes = {name: value.shape for name, value in values.items()}
        of_drifts = [
            f"{name}[{','.join(map(str, index))}]" if index else name
            for name, shape in self._shapes.items()
            for index in np.ndindex(*shape)
        ]
        numbers = [number for value in values.values() for number in value.ravel()]
        self.drifts, logarithms = len(numbers), self._layer_starts(start, fixed)
        self.labels = [*of_drifts, *logarithms]
        self.start = np.array([*numbers, *logarithms.values()])
        require("free parameters", self.labels, "one at least", len(self.labels) > 0)
        self.at(self.start)

    def _check_names(self, start: Parameters, fixed: Parameters) -> None:
        """Raise ValueError or TypeError unless both are dicts of different known parameters."""
        valid = [*self.names, *LAYER_PARAMETERS]
        for name, values in (("start", start), ("fixed", fixed)):
            require(name, values, "a dict of parameters", isinstance(values, Mapping), TypeError)
            for key in values:
                require(f"a name in {name}", key, f"one of {', '.join(valid)}", key in valid)
        both = set(start) & set(fixed)
        require("start and fixed", sorted(both), "of different parameters", not both)
        require("kappa", fixed.get("kappa"), "left out where noise=False",
                self.noise or not {"kappa"} & {*fixed, *start})  # fmt: skip

    def _layer_starts(self, start: Parameters, fixed: Parameters) -> dict[str, float]:
        """The logarithms with which a search for "time" and "kappa" begins, if these are free."""
        logarithms: dict[str, float] = {}
        if "time" in fixed:
            positive("fixed['time']", fixed["time"])
        else:
            time = positive("start['time']", start.get("time", 0.5))
            low, high = SHORTEST_LOG_TIME, LONGEST_LOG_TIME
            expected = f"from {np.exp(low):g} to {np.exp(high):g}"
            require("start['time']", time, expected, low <= np.log(time) <= high)
            logarithms["time"] = np.log(time)
        if self.noise and "kappa" in fixed:
            real("fixed['kappa']", fixed["kappa"], "a finite number > 0; for none give noise=False",
                 lambda k: 0 < k < np.inf)  # fmt: skip
        elif self.noise:
            logarithms["kappa"] = np.log(positive("start['kappa']", start.get("kappa", 100.0)))
        return logarithms

    @property
    def logarithmic(self) -> np.ndarray:
        """Mask of the free numbers that are logarithms."""
        return np.array([label in LAYER_PARAMETERS for label in self.labels])

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper bounds (p,) of the free numbers in a search; only log time has any."""
        of_time = np.array([label == "time" for label in self.labels])
        low = np.where(of_time, SHORTEST_LOG_TIME, -np.inf)
        return low, np.where(of_time, LONGEST_LOG_TIME, np.inf)

    def scale(self, point: np.ndarray) -> np.ndarray:
        """Scales of changes of the free numbers: 1 for logarithms, 1 + |value| for others."""
        return np.where(self.logarithmic, 1, 1 + np.abs(point))

    def at(self, point: np.ndarray) -> LayerFlow:
        """The model at a point."""
        values: Parameters = {k: v[()] for k, v in self._fixed.items() if k in self.names}
        start = 0
        for name, shape in self._shapes.items():
            end = start + math.prod(shape)
            values[name] = point[start:end].reshape(shape) if shape else float(point[start])
            start = end
        model = self._make(**values)
        if isinstance(model, Drift):
            model = Transformer(model)
        expected = "a family of drifts, or of mf.Transformer"
        require("family", model, expected, isinstance(model, Transformer), TypeError)
        if model.noisy or model.shape:
            raise ValueError(
                f"family must give single models without noise; got {as_given(model)}. The noise "
                "kappa is a parameter of the fit: hold it with fixed={'kappa': ...}."
            )
        _only_directions(model)
        scales = dict(zip(self.labels[self.drifts :], np.exp(point[self.drifts :]), strict=True))
        time = float(scales.get("time", self._fixed.get("time", np.nan)))
        kappa = float(scales.get("kappa", self._fixed.get("kappa", np.inf)))
        return LayerFlow(model, time, kappa if self.noise else np.inf)

    def values(self, point: np.ndarray) -> np.ndarray:
        """The parameters at a point, without logarithms."""
        return np.where(self.logarithmic, np.exp(np.where(self.logarithmic, point, 0)), point)


def central_differences(
    f: Callable[[np.ndarray], np.ndarray], point: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """(f(point + h e_j) - f(point - h e_j))/(2 h) for each length h_j, along the first axis."""
    changes = lengths[:, None] * np.eye(len(lengths), len(point))
    pairs = zip(changes, lengths, strict=True)
    return np.array([(f(point + change) - f(point - change)) / (2 * h) for change, h in pairs])


def _only_directions(model: Transformer) -> None:
    """Raise MeanfieldError unless directions and model alone determine the next layer."""
    drift, norm = model.drift, model.normalisation
    reasons = {
        f"reaction = {model.reaction:g} gives tokens masses of their own": model.reaction != 0,
        f"{norm!r} gives tokens radii of their own": norm.has_radii,
        "its velocity depends on time, and each layer begins at the time 0": not (
            drift.constant and norm.constant and norm.autonomous
        ),
    }
    for reason in [reason for reason, holds in reasons.items() if holds]:
        raise MeanfieldError(
            "A flow that is fitted moves directions alone, in every layer in the same way: of "
            f"{model!r} {reason}."
        )


def _names(family: UserValue) -> list[str]:
    """Names of the parameters of a family; those of a function that have a default are left out."""
    if isinstance(family, type) and issubclass(family, Drift):
        return list(parameters_of(family))
    parameters = inspect.signature(family).parameters.values()
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    ok = all(p.kind in by_name and p.name not in LAYER_PARAMETERS for p in parameters)
    rule = "a function of named numbers, none of them called time or kappa, which fit adds itself"
    require("family", family, rule, ok)
    return [p.name for p in parameters if p.default is inspect.Parameter.empty]
