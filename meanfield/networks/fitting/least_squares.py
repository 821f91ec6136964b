"""Least-squares fit of a flow without noise, by the Gauss-Newton method."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from meanfield import MeanfieldError, Tokens, solve

from .equations import Equations, Estimate
from .families import ParameterFamily, central_differences
from .goodness import Goodness
from .scores import first_guess
from .transitions import LayerTransition, logarithm

LEAST_SQUARES_CHANGE = 1e-3  # of free numbers in differences, relative to 1 + |theta|
FLOW_TOLERANCE = 1e-10  # relative tolerance of flows
REJECTED_RESIDUAL = 1e-4  # residual, relative to the angles that tokens move, that rejects a flow


class LeastSquares(Equations):
    """Minimisation of the sum of |log_p(y)|^2, p the model's tokens and y the next layer's."""

    def estimate(self, start: np.ndarray | None = None) -> Estimate:
        """The minimum; its `variance` is estimated from the residuals of tokens."""
        from scipy.optimize import least_squares

        family, transitions = self.family, self.transitions
        point = first_guess(family, transitions) if start is None else start
        groups: dict[tuple[int, ...], list[LayerTransition]] = {}
        for one in transitions:
            groups.setdefault(one.x.shape, []).append(one)
        every = groups.values()
        batches = [(np.stack([t.x for t in g]), np.stack([t.y for t in g])) for g in every]
        order = [one for group in every for one in group]

        def left(point: np.ndarray) -> np.ndarray:
            self._evaluated()
            ways = [logarithm(moved(family, point, x), y).ravel() for x, y in batches]
            return np.concatenate(ways)

        def slopes(point: np.ndarray) -> np.ndarray:
            lengths = LEAST_SQUARES_CHANGE * family.scale(point)
            return np.stack([*central_differences(left, point, lengths)], axis=1)

        minimum = least_squares(left, point, jac=slopes, bounds=family.bounds, x_scale="jac",
                                ftol=1e-14, xtol=1e-13, gtol=1e-14, max_nfev=100)  # fmt: skip
        J, r, d, p = slopes(minimum.x), minimum.fun, self.dimension, len(point)
        each = -np.einsum("ndp,nd->np", J.reshape(-1, d, p), r.reshape(-1, d))
        cuts = np.cumsum([len(one.x) for one in order])[:-1]
        by_transition = dict(zip(map(id, order), np.split(each, cuts), strict=True))
        terms = [by_transition[id(one)] for one in transitions]
        size = float(np.sqrt((r**2).sum() * d / r.size))
        scale, none = family.scale(minimum.x), np.zeros((p, p))
        return Estimate(minimum.x, scale, J.T @ J, each.T @ each, none, terms,
                        bool(minimum.success), size)  # fmt: skip

    def ahead(
        self, point: np.ndarray, part: Sequence[LayerTransition]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Predict by the flow without noise, whose tokens are also the draw of the last layer."""
        tokens = [moved(self.family, point, one.x[None])[0] for one in part]
        return tokens, tokens[-1]

    def objective(self, estimate: Estimate, index: int, value: float) -> float:
        """The increase of the sum of squares, divided by its mean over tangent coordinates."""
        from scipy.optimize import least_squares

        others = [j for j in range(len(estimate.point)) if j != index]

        def left(free: np.ndarray) -> np.ndarray:
            point = estimate.point.copy()
            point[index], point[others] = value, free
            ends = [(moved(self.family, point, t.x[None])[0], t.y) for t in self.transitions]
            return np.concatenate([logarithm(p, y).ravel() for p, y in ends])

        start = estimate.point[others]
        least = left(start) if not others else least_squares(left, start, xtol=1e-8).fun
        base = estimate.residual**2 * self.tokens
        mean = max(estimate.residual, 1e-14) ** 2 / (self.dimension - 1)
        return float(((least**2).sum() - base) / mean)

    def rejects(self, estimate: Estimate, goodness: Goodness | None) -> bool:
        """True if residuals exceed 1e-4 of the angles that tokens move."""
        return estimate.residual > REJECTED_RESIDUAL * self.way

    def words(self, estimate: Estimate, goodness: Goodness | None) -> list[str]:
        """The residual angle of the flow in a sentence."""
        way = self.way
        part = estimate.residual / way if way else 0.0
        said = "The flow leaves"
        if self.rejects(estimate, None):
            said = "The layers are no flow of this family: it leaves"
        return [
            f"{said} {estimate.residual:.3g} of the {way:.3g} radians (root mean square) "
            f"that tokens move in a layer, {part:.2g} of it."
        ]


def moved(family: ParameterFamily, point: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Tokens (R, n, d) a layer later, without noise."""
    at = family.at(point)
    run: Any = solve(at.model, Tokens(x), (0, at.time), rtol=FLOW_TOLERANCE, progress=False)
    if not run.success:
        raise MeanfieldError(f"A layer of {at.model} for the time {at.time:g} failed: {run.status}")
    return run.final.x
