"""The result of a fit: parameters with intervals, profiles, and what it says in words."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.checks import fitting, real
from ..core.errors import MeanfieldError
from ..models.transformer import Transformer
from .families import Family
from .scores import Equations, Estimate, moved
from .transitions import logarithm
from .verdicts import Goodness, Prediction

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

UNTOLD = 0.5  # relative standard error along a direction from which on it counts as not told
SINGULAR = 1e10  # condition number of exact data at which a direction is not told
SIZE = 0.05
ENDS, FAR = 5, 8.0  # of the search for the end of an interval: rounds, standard errors
NEAR = (
    0.15  # relative step of that search with which it ends; errors are of the order of its square
)
KINDS = ("model", "tokens", "texts")


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """A flow that was fitted to the layers of a network.

    Attributes
    ----------
    family : Family
        What was fitted.
    estimate : Estimate
        The root of the estimating equations and its accuracy.
    equations : Equations
        The equations and their data.
    variance : ndarray
        Of the equations under the model.
    goodness : Goodness or None
        The test of fit; None without noise, or where none was asked for.
    predictions : tuple of Prediction
        Errors on layers and texts that were held out.
    unrelated : bool
        Whether layers have nothing to do with the one before.
    """

    family: Family
    estimate: Estimate
    equations: Equations
    variance: np.ndarray
    goodness: Goodness | None
    predictions: tuple[Prediction, ...]
    unrelated: bool
    _ends: dict[float, np.ndarray] = field(default_factory=dict, init=False)

    # Numbers -------------------------------------------------------------------------------

    @property
    def parameters(self) -> "xr.Dataset":
        """By parameter: `value`, `error` (standard error), `low` and `high` (95 % interval)."""
        import xarray as xr

        low, high = self.interval().T
        values = self.family.values(self.estimate.point)
        factor = np.where(self.family.logarithmic, values, 1)
        found = {"value": values, "error": self._errors("model") * factor, "low": low, "high": high}
        return xr.Dataset(
            {name: ("parameter", v) for name, v in found.items()},
            {"parameter": self.family.labels},
        )

    def __getitem__(self, name: str) -> float:
        """The value of a parameter."""
        return float(self.family.values(self.estimate.point)[self._index(name)])

    def interval(self, level: float = 0.95, by: str = "model") -> np.ndarray:
        """Confidence intervals (p, 2) of all parameters.

        With noise and by "model" an end is where a test of the parameter would reject it: G there,
        with the variance and the sensitivity that the model has *there*, is that many standard
        deviations from 0 (Rao's score interval). At the estimate both vary with it, for few tokens
        by 30 %, so that the estimate with so many of its own standard errors on each side covers
        too rarely. An end that is not reached within 8 standard errors is inf, or 0 for time and
        kappa. Others, and all those of `fit(wide=True)`, are those of normal estimates; time and
        kappa have those of their logarithms.

        Parameters
        ----------
        level : float
            Between 0 and 1.
        by : str
            Where the variance of the equations is from: "model", the fitted model's own
            replicas; "tokens", each token's part of the equations, as if tokens were independent
            given the layer before, which misses that they move each other; "texts", those of whole
            texts, from 5 on.

        Notes
        -----
        Ends by "model" take about 60 evaluations of replicas, more than the fit, and are
        kept for the level.

        References
        ----------
        Rao, Proc. Cambridge Philos. Soc. 44 (1948); Boos, American Statistician 46 (1992): score
        tests of estimating equations.
        """
        from scipy.special import ndtri

        level = real("level", level, "between 0 and 1", lambda number: 0 < number < 1)
        point, quantile = self.estimate.point, float(ndtri((1 + level) / 2))
        away = quantile * self._errors(by)
        ends = np.stack([point - away, point + away], 1)
        if by == "model" and self.family.noise and self.equations.drawn and self.status == "fitted":
            if quantile not in self._ends:
                self._ends[quantile] = np.array([
                    [self._end(j, sign * quantile) for sign in (-1, 1)] for j in range(len(point))
                ])  # fmt: skip
            ends = self._ends[quantile]
        return np.stack([self.family.values(end) for end in ends.T], 1)

    def _end(self, index: int, quantile: float) -> float:
        """The free number `index` at which the score test gives this quantile, of either sign.

        Others go along with it as the estimates of both do.
        """
        point, covariance = self.estimate.point, self.covariance("model")
        error = np.sqrt(covariance[index, index])
        path = covariance[:, index] / error
        way, before, value = quantile, 0.0, 0.0  # the secant method
        for _ in range(ENDS):
            try:
                reached = self._deviation(point + way * path, index)
            except MeanfieldError:  # the model cannot be followed there
                return float(np.sign(quantile) * np.inf)
            if reached * quantile <= 0 or abs(way) > FAR:
                return float(np.sign(quantile) * np.inf)
            slope = (reached - value) / (way - before)
            longer = 1 + (quantile - reached) / (slope * way) if slope > 0 else 2.0
            before, value = way, reached
            way *= float(np.clip(longer, 0.5, 2.0))
            if abs(longer - 1) < NEAR:
                break
        return float(point[index] + way * error)

    def _deviation(self, there: np.ndarray, index: int) -> float:
        """Standard deviations between the estimate of a free number and `there`, if that is true.

        On the random numbers of the fit: those of the data fall out, as h is held.
        """
        anchor, equations = self.estimate.point, self.equations
        mean, spread = self._simulated(there)
        base, own = self._at_estimate
        slope = equations.sensitivity(there, anchor, self._errors("model"))
        scale = np.sqrt(spread / own)
        variance = self.variance * np.outer(scale, scale) + self.estimate.simulation
        inverse = np.linalg.pinv(slope)
        error = np.sqrt((inverse @ variance @ inverse.T)[index, index])
        return float((inverse @ (mean - base))[index] / error)

    @cached_property
    def _at_estimate(self) -> tuple[np.ndarray, np.ndarray]:
        return self._simulated(self.estimate.point)

    def _simulated(self, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variances of the sum of h under the model at a point."""
        drawn = [h.sum(axis=1) for h in self.equations.simulated(point, self.estimate.point)]
        mean = np.sum([h.mean(axis=0) for h in drawn], axis=0)
        return mean, np.sum([h.var(axis=0, ddof=1) for h in drawn], axis=0)

    def bootstrap(self, over: str = "tokens", draws: int = 1000, *, rng: Any = 0) -> np.ndarray:
        """Estimates (draws, p) by the multiplier bootstrap over "tokens" or "texts".

        Each draw gives every token, or text, a weight of mean 1 and variance 1 in the equations,
        and takes the step of Newton's method from the estimate.
        """
        from ..core.checks import generator

        parts, random = self._parts(over), generator(rng)
        weights = random.standard_normal((int(draws), len(parts)))
        steps = weights @ parts @ np.linalg.pinv(self.estimate.sensitivity).T
        return np.stack([self.family.values(self.estimate.point + step) for step in steps])

    def profile(self, name: str, values: Any) -> np.ndarray:
        """The objective G' V^-1 G at given values of a parameter, least in all others.

        It is 0 at the estimate, and above 3.84 outside a 95 % interval. G is that of new replicas
        at each point, on the same random numbers; without noise G' V^-1 G is the growth of the sum
        of squares, over its mean.
        """
        index = self._index(name)
        fitting("values", values, "numbers", np.ndim(values) == 1)
        found, point = [], self.estimate.point
        for value in values:
            target = self.family.values(point).copy()
            target[index] = value
            held = self.family.point(target)[index]
            found.append(self._objective_at(index, float(held)))
        return np.array(found)

    def _objective_at(self, index: int, held: float) -> float:
        """The objective with one free number held, the others by Gauss and Newton's method."""
        point, slope = self.estimate.point, self.estimate.sensitivity
        others = [j for j in range(len(point)) if j != index]
        if not self.family.noise:
            return self._growth(index, held, others)
        precision = np.linalg.pinv(self.variance + self.estimate.simulation)
        center = point.copy()
        C = np.linalg.pinv(slope.T @ precision @ slope)
        center[others] += C[others, index] / C[index, index] * (held - point[index])
        center[index] = held
        for _ in range(2):
            value = self._value(center)
            part = slope[:, others]
            step = np.linalg.pinv(part.T @ precision @ part) @ (part.T @ precision @ value)
            center[others] += step
        value = self._value(center)
        return float(value @ precision @ value)

    def _value(self, point: np.ndarray) -> np.ndarray:
        terms, _ = self.equations.terms(point, self.estimate.point)
        return np.sum([part.sum(axis=0) for part in terms], axis=0)

    def _growth(self, index: int, held: float, others: list[int]) -> float:
        from scipy.optimize import least_squares

        def left(free: np.ndarray) -> np.ndarray:
            point = self.estimate.point.copy()
            point[index], point[others] = held, free
            ends = [(moved(self.family, point, t.x[None])[0], t.y) for t in self.transitions]
            return np.concatenate([logarithm(p, y).ravel() for p, y in ends])

        start = self.estimate.point[others]
        found = left(start) if not others else least_squares(left, start, xtol=1e-8).fun
        d = self.equations.dimension
        mean = max(self.estimate.residual**2, 1e-28) / (d - 1)
        base = self.estimate.residual**2 * self.equations.tokens
        return float(((found**2).sum() - base) / mean)

    @property
    def transitions(self) -> list:
        """The layers, each with the next."""
        return self.equations.transitions

    @property
    def model(self) -> Transformer:
        """The fitted model, with its noise."""
        return self.family.at(self.estimate.point).noisy

    @property
    def time(self) -> float:
        """Time per layer."""
        return self.family.at(self.estimate.point).time

    # Words ---------------------------------------------------------------------------------

    @property
    def rejected(self) -> bool | None:
        """Whether the layers are no such flow, at the size 5 %; None if that was not tested.

        Without noise: whether residuals are more than 1e-4 of what moves.
        """
        if self.unrelated:
            return True
        if not self.family.noise:
            return self.estimate.residual > 1e-4 * self._way
        return None if self.goodness is None else self.goodness.p_value < SIZE

    @property
    def untold(self) -> str | None:
        """The combination of parameters that the data do not tell, in words, or None."""
        directions = self.directions
        relative, direction = directions[0]
        flat = not self.family.noise and directions[-1][0] * np.sqrt(SINGULAR) < relative
        if not (relative > UNTOLD or flat or not np.isfinite(relative)):
            return None
        parts = [
            f"{weight:+.2f} {'log ' if log else ''}{label}"
            for label, weight, log in zip(
                self.family.labels, direction, self.family.logarithmic, strict=True
            )
            if abs(weight) > 0.1
        ]
        return " ".join(parts)

    @property
    def directions(self) -> list[tuple[float, np.ndarray]]:
        """Standard errors along the principal directions of the covariance, the largest first.

        Of logarithms of time and kappa, and of other parameters over 1 + |value|.
        """
        scale = np.where(self.family.logarithmic, 1, 1 + np.abs(self.estimate.point))
        covariance = self.covariance("model") / np.outer(scale, scale)
        if not self.family.noise:  # shapes that exact data leave as they are
            D = self.estimate.sensitivity * np.outer(scale, scale)
            level = max(self.estimate.residual, 1e-12) ** 2 / (self.equations.dimension - 1)
            values, vectors = np.linalg.eigh(D)
            errors = np.sqrt(level / np.maximum(values, 1e-300))
            return [(float(e), v) for e, v in zip(errors, vectors.T, strict=True)]
        values, vectors = np.linalg.eigh(covariance)
        order = np.argsort(-values)
        return [(float(np.sqrt(max(values[j], 0))), vectors[:, j]) for j in order]

    @property
    def status(self) -> str:
        """ "fitted", "not converged", "not identified" or "unrelated"."""
        if self.unrelated:
            return "unrelated"
        if not self.estimate.converged:
            return "not converged"
        return "not identified" if self.untold else "fitted"

    @property
    def verdict(self) -> str:
        """What the fit says, in sentences."""
        words = []
        if self.unrelated:
            words.append("Layers are unrelated: tokens do not point where they did a layer before.")
        elif not self.estimate.converged:
            words.append("No root of the estimating equations was found: the numbers say nothing.")
        elif self.untold:
            words.append(f"The data do not tell {self.untold}.")
        if not self.family.noise:
            part = self.estimate.residual / self._way if self._way else 0.0
            words.append(
                f"The flow leaves {self.estimate.residual:.3g} of the {self._way:.3g} radians "
                f"(root mean square) that tokens move in a layer, {part:.2g} of it."
            )
        elif self.goodness is not None:
            worst = max(self.goodness.deviations.items(), key=lambda item: abs(item[1]))
            found = (
                "The layers are no flow of this family" if self.rejected else "Nothing rejects it"
            )
            detail = f"p = {self.goodness.p_value:.2g}; {worst[0]}: {worst[1]:+.1f} standard errors"
            words.append(f"{found} ({detail}).")
        for one in self.predictions:
            words.append(
                f"On {one.held} held out the flow is off by {one.flow:.3f} rad, nothing by "
                f"{one.nothing:.3f}, a linear map by {one.linear:.3f}: the flow is "
                f"{_compared(one.over_nothing)} nothing and {_compared(one.over_linear)} the map."
            )
        return " ".join(words)

    def __repr__(self) -> str:
        rows = [f"Fit of {self.family.name} to {len(self.transitions)} layers: {self.status}"]
        table = zip(
            self.family.labels,
            self.family.values(self.estimate.point),
            self.interval(),
            strict=True,
        )
        rows += [f"  {name:8} {value:.4g} [{a:.4g}, {b:.4g}]" for name, value, (a, b) in table]
        return "\n".join([*rows, f"  {self.verdict}"])

    def plot(self) -> "Figure":
        """Parameters with intervals, standard errors of the statistics, and errors held out."""
        from .pictures import of_fit

        return of_fit(self)

    # Accuracy ------------------------------------------------------------------------------

    def covariance(self, by: str = "model") -> np.ndarray:
        """That of the free numbers (logarithms of time and kappa): see `interval`."""
        fitting("by", by, f"one of {', '.join(KINDS)}", by in KINDS)
        parts = self.variance if by == "model" else _outer(self._parts(by))
        return self.estimate.covariance(parts + self.estimate.simulation)

    def _errors(self, by: str) -> np.ndarray:
        return np.sqrt(np.maximum(np.diag(self.covariance(by)), 0))

    def _parts(self, over: str) -> np.ndarray:
        """The equations' parts by tokens or texts."""
        fitting("over", over, "tokens or texts", over in ("tokens", "texts"))
        if over == "tokens":
            return np.concatenate(self.estimate.terms)
        texts = sorted({one.text for one in self.transitions})
        if len(texts) < 5:
            raise ValueError(f"Variances over texts need 5 texts or more; got {len(texts)}.")
        pairs = list(zip(self.transitions, self.estimate.terms, strict=True))
        return np.stack([
            np.sum([part.sum(axis=0) for one, part in pairs if one.text == text], axis=0)
            for text in texts
        ])  # fmt: skip

    def _index(self, name: str) -> int:
        labels = self.family.labels
        fitting("name", name, f"one of {', '.join(labels)}", name in labels)
        return labels.index(name)

    @property
    def _way(self) -> float:
        """Root mean square of the angles that tokens move in a layer."""
        squares = [(logarithm(one.x, one.y) ** 2).sum(axis=-1) for one in self.transitions]
        return float(np.sqrt(np.concatenate(squares).mean()))


def _outer(parts: np.ndarray) -> np.ndarray:
    return parts.T @ parts


def _compared(ratio: tuple[float, float]) -> str:
    """In words, from an interval of the ratio of squared errors."""
    if ratio[1] < 1:
        return "better than"
    return "worse than" if ratio[0] > 1 else "not told from"
