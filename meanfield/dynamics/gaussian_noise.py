"""Gaussians with noise: S' = B S + S B^T + (2/kappa) N, N the covariance of the noise.

B is the matrix of the affine velocity, so that B S + S B^T = L' L^T + L L'^T for the root L of S
without noise. Steps act on S itself: unlike its root, it is smooth in time where noise begins to
spread a law of singular covariance, such as a point.
"""

import numpy as np

from ..core.annotations import UserValue, Values
from ..core.dual import Array, Dual, value_of
from ..core.errors import MeanfieldError
from ..states import Gaussian
from .gaussian import GaussianMotion
from .gaussian_attention import length

NEGATIVE_VARIANCE = 1e-6  # share of the largest variance; more negative ones reject a step
VARIANCE_ROUNDING = 1e-14  # relative to the largest variance, of the least that has its own error

FIRST_TIME = 1e-8  # guess of a time, times 1/kappa, in which noise spreads a point


class CovarianceMotion(GaussianMotion, moves=Gaussian, noisy=True):
    """Velocities of the covariance S and the mean a of a normal law under a model with noise.

    Coordinates are an array (d, d + 1): the columns of S, and a. Error control is relative to
    (s_i s_j)^(1/2) for the entry of S between principal axes i and j of variances s_i and s_j, and
    to the spread or the length of the mean for a. Variances below 1e-14/rtol of the largest are
    replaced by it.

    Parameters
    ----------
    model : Transformer
        As of `GaussianMotion`, with `Isotropic` or `Anisotropic` noise; kappa may change with time.
    state : Gaussian

    Raises
    ------
    MeanfieldError
        Also for noise that does not keep the law normal, with the reason.
    """

    changes_coordinates = False
    options = frozenset({"rtol"})
    follows = frozenset({"noise", "feedforward"})

    def check(self) -> None:
        """Raise MeanfieldError for noise that does not keep a Gaussian."""
        super().check()
        if self.model.noise.on_sphere_only:
            raise MeanfieldError(
                f"{self.model.noise!r} does not keep a Gaussian: its strength depends on the point "
                "(arXiv:2606.07600), and it is defined on the sphere. Use Isotropic() or "
                "Anisotropic(sigma)."
            )

    def setup(self) -> None:
        super().setup()
        self._noise = self.model.noise.covariance_in_space(self._dimension)

    # Coordinates ---------------------------------------------------------------------------

    def packed(self, state: Gaussian) -> np.ndarray:
        """The covariance and the mean, (d, d + 1)."""
        cov = state.cov
        return np.concatenate([(cov + cov.mT) / 2, state.mean[:, None]], axis=-1)

    def state_of(self, y: np.ndarray) -> Gaussian:
        """The law with these coordinates."""
        cov, mean = y[:, :-1].copy(), y[:, -1].copy()
        root = cov if isinstance(y, Dual) else self._with_root(y)[:, :-1]
        return Gaussian.computed(mean, cov, root)

    def projected(self, y: np.ndarray) -> np.ndarray:
        return y

    def _with_root(self, y: Values) -> Values:
        """The symmetric root and the mean of these coordinates, (..., d, d + 1).

        Negative variances count as 0 while they are errors of a step, and are nan beyond.
        """
        with_root, cov = y.copy(), value_of(y)[..., :-1]
        if not np.isfinite(cov).all():
            value_of(with_root)[...] = np.nan
            return with_root
        values, axes = np.linalg.eigh(cov)
        least = -NEGATIVE_VARIANCE * np.abs(values).max(axis=-1, keepdims=True)
        with np.errstate(invalid="ignore"):
            roots = np.sqrt(np.where(values >= least, np.maximum(values, 0.0), np.nan))
        value_of(with_root)[..., :-1] = axes * roots[..., None, :] @ axes.mT
        if isinstance(y, Dual):  # L dL + dL L = dS
            sums = roots[..., :, None] + roots[..., None, :]
            moved = axes.mT @ y.changes[..., :-1] @ axes
            with_root.changes[..., :-1] = (
                axes @ (moved / np.where(sums > 0, sums, np.inf)) @ axes.mT
            )
        return with_root

    # Motion --------------------------------------------------------------------------------

    def velocity(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the coordinates, or of a stack of them, (..., d, d + 1)."""
        rates = self._pushed(y, t)
        rates[..., :-1] += 2 / self.model.kappa_at(self.inside(t)) * self._noise
        return rates

    def _pushed(self, y: np.ndarray, t: float) -> np.ndarray:
        """The rates without noise."""
        with_root = self._with_root(y)
        rates = super().velocity(with_root, t)
        pushed = rates[..., :-1] @ with_root[..., :-1].mT
        rates[..., :-1] = pushed + pushed.mT
        return rates

    # Derivatives ---------------------------------------------------------------------------

    def direction(self, direction: UserValue, state: Gaussian) -> dict[str, Array]:
        """A checked change of an initial law, as arrays by the names "mean" and "cov".

        `direction` is as in `GaussianMotion.direction`; a singular covariance may change.
        """
        return self._given_changes(direction, state)

    # Steps ---------------------------------------------------------------------------------

    def relative_error(self, error: np.ndarray, y: np.ndarray) -> float:
        """The largest error of a covariance between two principal axes, or of the mean."""
        if not (np.isfinite(y).all() and np.isfinite(error).all()):
            return np.inf
        values, axes = np.linalg.eigh(y[:, :-1])
        largest = float(values[-1])
        if not largest > 0:  # of a point, where only the length of the first step depends on it
            largest = FIRST_TIME * float(np.abs(self._noise).max()) or 1.0
        scales = np.sqrt(np.maximum(values, VARIANCE_ROUNDING / self.rtol * largest))
        between = np.abs(axes.T @ error[:, :-1] @ axes) / np.multiply.outer(scales, scales)
        of_mean = length(error[:, -1]) / max(length(y[:, -1]), np.sqrt(largest))
        return float(max(between.max(), of_mean))

    def rate(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """The speed of the law in W2; inf where noise begins to spread it in a new direction."""
        if not (np.isfinite(y).all() and np.isfinite(velocity).all()):
            return np.nan
        values, axes = np.linalg.eigh(y[:, :-1])
        values = np.maximum(values, 0.0)
        moved, sums = axes.T @ velocity[:, :-1] @ axes, np.add.outer(values, values)
        with np.errstate(divide="ignore"):
            shares = np.where(moved != 0, moved / np.sqrt(2 * np.where(sums > 0, sums, 0.0)), 0.0)
        return length(np.append(shares, velocity[:, -1]))

    def growth(self, y: np.ndarray, velocity: np.ndarray, t: float) -> float:
        """The rate of growth without noise, which spreads a law but makes none blow up."""
        return super().growth(y, self._pushed(y, t), t)

    def _growth(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """The largest rate d/dt log of |a|^2 and of the variances along the principal axes."""
        values, axes = np.linalg.eigh(y[:, :-1])
        along = np.einsum("ik,ij,jk->k", axes, velocity[:, :-1], axes)
        resolved = values > VARIANCE_ROUNDING / self.rtol * max(values[-1], np.finfo(float).tiny)
        rates = np.where(resolved, along / np.where(resolved, values, 1.0), -np.inf)
        a, size = y[:, -1], length(y[:, -1])
        of_mean = 2 * (a / size) @ (velocity[:, -1] / size) if size > 0 else -np.inf
        return float(max(rates.max(), of_mean))
