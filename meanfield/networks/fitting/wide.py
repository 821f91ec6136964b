"""Estimating equations in the limit of many dimensions, which need no replicas for their root.

In many dimensions independent noises are orthogonal, so that the inner products C of tokens that
noise moves apart do not fluctuate. With A_ij = W'(C_ij)/sum_k Z(C_ik), or W'(C_ij)/n where Z = 1,
q_i = sum_j A_ij C_ij and lambda = (d - 1)/kappa, C and the means M of the tokens follow

    dM_i/dt = sum_j A_ij M_j - (q_i + lambda) M_i,
    dC_ij/dt = (A C)_ij + (A C)_ji - (q_i + q_j + 2 lambda) C_ij for i != j,    C_ii = 1.

The law of a token of the next layer is approximated by von Mises and Fisher's law with the mean
M_i, rho = |M_i|. Its variance V_i is (1 - rho^2)/(d - rho^2) across M_i and, in many dimensions,
(1 - rho^2)^2/(d (1 + rho^2)) along it, as for small noise on the sphere to leading order. Then

    G(theta) = sum_i (dM_i/dtheta)' V_i^-1 (Y_i - M_i(theta)).

Its mean at the true theta is 0 up to the fluctuations of inner products, of the relative order 1/d.
Tokens are treated as independent given the layer before, although the noise of each moves others.
A few replicas at the root estimate the true mean and variance of G; a step of Newton's method
corrects the root for that mean.

References
----------
Mardia and Jupp, Directional Statistics (2000), section 9.3 and appendix 1: the law of von Mises
and Fisher. Wedderburn, Biometrika 61 (1974): quasi-likelihood.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from meanfield import MeanfieldError
from meanfield.steppers import kutta_step

from .equations import (
    LONGEST_STEP,
    ROOT_TOLERANCE,
    Estimate,
    NoisyEquations,
    Transitions,
    pseudo_inverse,
    total,
)
from .families import LayerFlow
from .goodness import Compared, Goodness
from .transitions import Arrays, LayerTransition, replicas_of, unit

FEWEST_RK_STEPS, MOST_RK_STEPS = 2, 64  # steps of the Runge-Kutta method of order 4 in a layer
RESOLVED_SHIFT = 0.05  # standard errors by which twice as many steps may move the root
SCORING_ROUNDS = 30
WIDE_CHANGE = 1e-6  # of free numbers in differences, relative to 1 + |theta|
STEP_HALVINGS = 8  # largest number of halvings of a step that does not lower the deviance
LONGEST_MEAN = 1.01  # exact means have length <= 1; longer ones show too long Runge-Kutta steps
NEARER_START = "begin at a shorter time, a larger kappa, or other parameters, with start="


@dataclass(eq=False)
class WideEquations(NoisyEquations):
    """Estimating equations in the limit of many dimensions.

    Replicas are drawn at the root only. For the parameters see `Equations`.

    Attributes
    ----------
    rk_steps : int
        Number of Runge-Kutta steps in each layer. It is doubled while the steps are too long for
        the model, and until twice as many move the root by less than 0.05 standard errors. The
        number of steps of replicas grows with its square.
    """

    rk_steps: int = FEWEST_RK_STEPS

    def __post_init__(self) -> None:
        self.family.at(self.family.start).model.zonal  # noqa: B018  (raises if there is none)

    def means(self, point: np.ndarray, rk_steps: int | None = None) -> Arrays:
        """Means of the tokens of the next layers, (n, d) for each transition."""
        flow, steps = self.family.at(point), rk_steps or self.rk_steps
        means = [mean_after(flow, pair.x, steps) for pair in self.transitions]
        self.evaluated()
        return means

    def terms(self, point: np.ndarray, anchor: np.ndarray) -> tuple[Arrays, np.ndarray]:
        """The terms of G by token, with dM/dtheta and V at `anchor`; replicas add no variance."""
        weights, _ = self._weights(anchor, self.means(anchor))
        return self._terms(weights, self.means(point)), np.zeros((len(point),) * 2)

    def estimate(self, start: np.ndarray | None = None) -> Estimate:
        """The root by Fisher's scoring; `variance` is the information for independent tokens."""
        point = self.within(self.family.start if start is None else start)
        means, converged = self._resolved_means(point), False
        for _ in range(SCORING_ROUNDS):
            weights, information = self._weights(point, means)
            terms, scale = self._terms(weights, means), self.family.scale(point)
            value, (inverse, _) = total(terms), pseudo_inverse(information, information, scale)
            step = inverse @ value
            if value @ step >= ROOT_TOLERANCE**2 * len(point):
                step /= max(1.0, np.abs(step / scale).max() / LONGEST_STEP)
                better = self._better(point, step, self.deviance(means), value @ step < len(point))
                if better:
                    point, means = better
                    continue
            elif not moves_root(weights, inverse, means, self.means(point, 2 * self.rk_steps)):
                # a start may have needed more steps than the root
                while self.rk_steps > FEWEST_RK_STEPS:
                    coarse = self._trial_means(point, self.rk_steps // 2)
                    if not coarse or moves_root(weights, inverse, means, coarse):
                        break
                    self.rk_steps, means = self.rk_steps // 2, coarse
                converged = True
                break
            if self.rk_steps == MOST_RK_STEPS:
                break
            self.rk_steps *= 2
            means = self._resolved_means(point)
        zero = np.zeros_like(information)
        return Estimate(point, scale, information, information, zero, terms, converged)

    def _better(
        self, point: np.ndarray, step: np.ndarray, deviance: float, near: bool
    ) -> tuple[np.ndarray, Arrays] | None:
        """A point along a step with a smaller deviance, and its means; None if there is none.

        Within a standard error of the root (`near`) the step is taken although the deviance does
        not fall: its minimum is the root of G only up to 1/d, and if the model is right. Also
        returns None if Runge-Kutta steps are too long and their number can still be doubled.
        """
        for halving in range(STEP_HALVINGS):
            trial = self.within(point + step / 2**halving)
            means = self._trial_means(trial)
            if means and self.deviance(means) < deviance:
                return trial, means
            if not means and self.rk_steps < MOST_RK_STEPS:
                break
        trial = self.within(point + step)
        means = self._trial_means(trial) if near else []
        return (trial, means) if means else None

    def _resolved_means(self, point: np.ndarray) -> Arrays:
        """The means at a point; doubles the number of Runge-Kutta steps as needed."""
        while self.rk_steps < MOST_RK_STEPS:
            if means := self._trial_means(point):
                return means
            self.rk_steps *= 2
        return self.means(point)

    def _trial_means(self, point: np.ndarray, rk_steps: int | None = None) -> Arrays:
        """The means at a point, or an empty list if the Runge-Kutta steps are too long."""
        try:
            means = self.means(point, rk_steps)
        except MeanfieldError:
            return []
        longest = max(np.linalg.norm(mean, axis=-1).max() for mean in means)
        return means if longest < LONGEST_MEAN else []

    def judged(
        self, estimate: Estimate, rng: np.random.Generator
    ) -> tuple[Estimate, Goodness | None]:
        """Refine and test as `NoisyEquations.judged`; without a root the estimate is unchanged."""
        return super().judged(estimate, rng) if estimate.converged else (estimate, None)

    def compared(self, point: np.ndarray) -> Iterator[Compared]:
        """Yield each layer with new replicas, as `NoisyEquations.compared`."""
        means = self.means(point)
        weights, _ = self._weights(point, means)
        replicas = self._replicas(point, self.transitions, self.test_replicas)
        for mean, weight, (pair, y) in zip(means, weights, replicas, strict=True):
            h = np.tensordot(y - mean, weight, axes=([1, 2], [1, 2]))
            score = np.tensordot(weight, pair.y - mean, axes=2)
            yield pair, y, h, score, y, pair.y

    def _replicas(
        self, point: np.ndarray, part: Transitions, count: int
    ) -> Iterator[tuple[LayerTransition, np.ndarray]]:
        """Yield transitions with `count` replicas, whose steps grow with the square of rk_steps."""
        steps = self.steps * self.rk_steps**2 // FEWEST_RK_STEPS**2
        return replicas_of(self.family.at(point), part, count, steps, pairs=False)

    def predicted(self, point: np.ndarray, part: Transitions) -> tuple[Arrays, np.ndarray]:
        """Predict by the means in the limit of many dimensions, as `Equations.predicted`."""
        ((_, sample),) = self._replicas(point, part[-1:], 1)
        return [unit(mean) for mean in replace(self, transitions=part).means(point)], sample[0]

    def _weights(self, point: np.ndarray, means: Arrays) -> tuple[Arrays, np.ndarray]:
        """V^-1 dM/dtheta, (p, n, d) for each transition, and the information (p, p)."""
        columns = []
        for j, change in enumerate(WIDE_CHANGE * self.family.scale(point)):
            shifted = self.means(point + change * np.eye(len(point))[j])
            columns.append([(a - b) / change for a, b in zip(shifted, means, strict=True)])
        derivatives = [np.stack(parts) for parts in zip(*columns, strict=True)]
        weights = [divided_by_variance(*pair) for pair in zip(means, derivatives, strict=True)]
        information = np.zeros((len(point),) * 2)
        for weight, derivative in zip(weights, derivatives, strict=True):
            information += np.tensordot(weight, derivative, axes=([1, 2], [1, 2]))
        return weights, information

    def _terms(self, weights: Arrays, means: Arrays) -> Arrays:
        """The terms of G by token, (n, p) for each transition."""
        triples = zip(self.transitions, weights, means, strict=True)
        return [np.einsum("pnd,nd->np", w, pair.y - mean) for pair, w, mean in triples]

    def deviance(self, means: Arrays) -> float:
        """-2 log of the density of the next layers, up to a constant; the search lowers it.

        In many dimensions von Mises and Fisher's law with the mean M has
        log p = k <Y, M>/rho - log c with k = d rho/(1 - rho^2), and d(log c)/dk = rho, so that
        log c = d (rho^2/(1 - rho^2) + log(1 - rho^2)/2) up to a constant. inf unless all |M| < 1.
        """
        total = 0.0
        for pair, mean in zip(self.transitions, means, strict=True):
            d, square = mean.shape[-1], (mean**2).sum(axis=-1)
            if not (square < 1).all():
                return np.inf
            gap = 1 - square
            products = (pair.y * mean).sum(axis=-1)
            total -= 2 * d * (products / gap - square / gap - np.log(gap) / 2).sum()
        return float(total)


def moves_root(weights: Arrays, inverse: np.ndarray, means: Arrays, other_means: Arrays) -> bool:
    """True if other means move the root by `RESOLVED_SHIFT` standard errors or more."""
    triples = zip(weights, means, other_means, strict=True)
    shift = np.sum([np.tensordot(w, a - b, axes=2) for w, a, b in triples], axis=0)
    return bool(shift @ inverse @ shift >= RESOLVED_SHIFT**2 * len(inverse))


def divided_by_variance(mean: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """V^-1 dM/dtheta (p, n, d), the weights of the residuals of a layer, from dM/dtheta."""
    rho = np.linalg.norm(mean, axis=-1)
    d, gap = mean.shape[-1], 1 - rho**2
    if rho.max() > LONGEST_MEAN:
        raise MeanfieldError(
            f"Tokens are moved too far in a layer for steps to follow: {NEARER_START}."
        )
    if not (gap > 0).all():
        raise MeanfieldError(
            "There is so little noise that rounding hides it: begin at a smaller kappa, or give "
            "noise=False."
        )
    axis, across, along = (mean / rho[:, None], gap / (d - rho**2), gap**2 / (d * (1 + rho**2)))
    radial = (slope * axis).sum(axis=-1, keepdims=True) * axis
    return (slope - radial) / across[:, None] + radial / along[:, None]


def mean_after(flow: LayerFlow, x: np.ndarray, steps: int) -> np.ndarray:
    """The means (n, d) of tokens x (n, d) one layer later, by `steps` Runge-Kutta steps."""
    drift, (n, d) = flow.model.zonal, x.shape
    loss, normalised = (d - 1) / flow.kappa, drift.normalised

    def rates(y: np.ndarray, _t: float) -> np.ndarray:
        """Time derivatives (n, columns) of y, whose first n columns are the cosines C."""
        C = y[:, :n]
        A = drift.slope(C)
        A = A / (drift.weight(C).sum(axis=1, keepdims=True) if normalised else n)
        q = (A * C).sum(axis=1)
        rate = A @ y
        rate -= (q + loss)[:, None] * y
        rate[:, :n] += rate[:, :n].T.copy()
        np.fill_diagonal(rate[:, :n], 0.0)
        return rate

    C = np.clip(x @ x.T, -1, 1)
    np.fill_diagonal(C, 1.0)
    y = np.concatenate([C, x], axis=1)  # inner products, and means of the tokens
    with np.errstate(over="ignore", invalid="ignore"):  # steps too long raise an error below
        for _ in range(steps):
            y = kutta_step(rates, y, 0.0, flow.time / steps)
    if not np.isfinite(M := y[:, n:]).all():
        raise MeanfieldError(
            f"Means of {flow.noisy} are not finite after the time {flow.time:g}: {NEARER_START}."
        )
    return M
