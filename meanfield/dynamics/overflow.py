"""Which part of velocities is not finite, in words."""

import numpy as np

from ..models import Attention, Drift, Interaction, Unnormalised
from ..models.transformer import Transformer
from .equiangular import EquiangularMotion
from .gram import GramMotion
from .tokens import TokenMotion

__all__ = ["reason_not_finite"]


def reason_not_finite(
    model: Transformer,
    motion: TokenMotion | GramMotion | EquiangularMotion,
    y: np.ndarray,
    t: float,
) -> str:
    """Why velocities at the coordinates y are not finite, and what to do about it."""
    if isinstance(motion, TokenMotion):
        x, masses = motion.points(y), motion.masses(y)
        if model.feedforward is not None:
            lost = ~np.isfinite(motion.feedforward_update(x, t)).all(axis=-1)
            if lost.any():
                return (
                    f"feedforward returned vectors that are not finite, for {lost.sum()} of "
                    f"{lost.size} tokens. Look at what it does to them."
                )
        if motion.has_radii and np.isfinite(motion.attention_update(x, masses, t)).all():
            return "they are divided by radii so small that they overflow. Use larger radii."
    return _reason_of_drift(model.drift, float(np.abs(y).max()))


def _reason_of_drift(drift: Drift, largest: float) -> str:
    if isinstance(drift, Interaction) and drift.derivative is not None:
        return (
            "the derivative of the Interaction is not finite at inner products of these tokens. "
            "Expected W'(t), finite for -1 < t < 1."
        )
    if isinstance(drift, Attention) and isinstance(drift.weights, Unnormalised):
        return (
            "weights exp(beta <Qx, Ky>) overflow on these tokens. Softmax() weights do not; or "
            "use a smaller beta."
        )
    return (
        "numbers such as beta <Qx, Ky> and V x exceed 1.8e308, the largest there is; components "
        f"of the tokens are up to {largest:.3g}. Rescale the tokens, or the parameters."
    )
