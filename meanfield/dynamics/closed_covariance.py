"""The covariance of a normal law under softmax attention in closed form, where V commutes."""

import numpy as np

from ..core.checks import real_array
from ..core.errors import MeanfieldError
from ..models import Attention, Softmax
from ..models.attention import heads
from ..models.transformer import Transformer
from ..states import Gaussian
from .gaussian import checked_attention
from .gaussian_attention import full, length

__all__ = ["ClosedCovariance"]

COMMUTE = 1e-12  # of the product of the norms
ROUNDING = np.finfo(float).eps  # of the largest eigenvalue, times d: what it leaves of a zero


class ClosedCovariance:
    """Sigma(t) = L (1 - t L^T M L)^(-1) L^T, L L^T = Sigma_0, M = sum_h V_h A_h + (V_h A_h)^T.

    It is (Sigma_0^(-1) - t M)^(-1) where the covariance is regular. A_h = beta K_h^T Q_h, and with
    output projections O_h V_h stands for V_h.

    Parameters
    ----------
    model : Transformer
        `Attention` with softmax weights and constant parameters, without noise.
    state : Gaussian
        At t = 0; its mean has no influence on the covariance.

    Attributes
    ----------
    blow_up_time : float
        1 / the largest eigenvalue of L^T M L; inf unless it is positive, see the notes.

    Raises
    ------
    MeanfieldError
        Unless every V_h commutes with M and with the covariance, if a parameter changes, or where
        L^T M L exceeds 1e308.
    TypeError
        For anything but a model and a Gaussian.

    Notes
    -----
    An eigenvalue of L^T M L is known to eps = 2e-16 of the largest modulus m, and counts as 0
    below d eps m. So a blow-up later than 1 / (d eps m) is not told from a limit, and one at T is
    known to eps m T, relative.

    References
    ----------
    Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322, section 4.
    """

    def __init__(self, model: Transformer, state: Gaussian):
        drift = checked_attention(model, state)
        if not isinstance(drift.weights, Softmax) or not drift.constant:
            raise MeanfieldError(
                "The covariance is known in closed form under softmax weights with constant "
                f"parameters; got {drift!r}. Use solve."
            )
        root = state.root
        with np.errstate(over="ignore", invalid="ignore"):
            values, drive = _drive(drift, state.dimension)
            rates = root.T @ drive @ root
        if not np.isfinite(rates).all():
            raise MeanfieldError(
                "The closed form needs L^T M L below 1e308, for it blows up at 1 / its largest "
                f"eigenvalue; got more, from {drift!r} and a covariance of the trace "
                f"{np.trace(state.cov):.3g}. Divide beta by some c: times are then c times as long."
            )
        for V in values:
            for name, other in {"the covariance": state.cov, "M": drive}.items():
                _check_commute(V, other, name)
        eigenvalues, vectors = np.linalg.eigh(rates)
        negligible = state.dimension * ROUNDING * np.abs(eigenvalues).max()
        self._values = np.where(np.abs(eigenvalues) > negligible, eigenvalues, 0.0)
        self._columns = root @ vectors
        fastest = self._values.max()
        self.blow_up_time = 1 / float(fastest) if fastest > 0 else np.inf

    def at(self, t) -> np.ndarray:
        """Sigma(t), (d, d), or (..., d, d) of an array of times.

        Raises TypeError for what is no time, ValueError unless 0 <= t < `blow_up_time`.
        """
        times = real_array("t", t)
        if not ((times >= 0) & (times < self.blow_up_time)).all():
            raise ValueError(f"t must be >= 0 and < {self.blow_up_time:.10g}; got t = {t!r}.")
        left = 1 - times[..., None, None] * self._values
        return self._columns / left @ self._columns.T

    @property
    def limit(self) -> np.ndarray:
        """Sigma(t) for t to infinity, (d, d), of the rank d - rank M where Sigma_0 is regular.

        Raises MeanfieldError where the covariance blows up.
        """
        if self.blow_up_time < np.inf:
            raise MeanfieldError(
                f"There is no limit: the covariance blows up at t = {self.blow_up_time:.10g}."
            )
        stays = self._columns[:, self._values == 0]
        return stays @ stays.T


def _drive(drift: Attention, d: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Every V_h, and M."""
    matrices = drift.at(0.0)
    beta = matrices.pop("beta")
    values, drive = [], np.zeros((d, d))
    for head in heads(matrices):
        V = full(head.get("output", np.array(1.0)), d) @ full(head["V"], d)
        pull = V @ (beta * full(head["K"], d).T @ full(head["Q"], d))
        drive += pull + pull.T
        values.append(V)
    return values, drive


def _check_commute(V: np.ndarray, other: np.ndarray, name: str) -> None:
    one, other = V / (length(V) or 1.0), other / (length(other) or 1.0)  # squares may overflow
    off = np.linalg.norm(one @ other - other @ one)
    if off > COMMUTE:
        raise MeanfieldError(
            f"The closed form needs V that commutes with {name}; their commutator has the norm "
            f"{off:.2g}, relative to theirs. Use solve."
        )
