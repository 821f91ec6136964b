"""Why no step of tokens was short enough, and what helps."""

import numpy as np

from ..models import Hardmax
from ..models.transformer import Transformer
from ..states import SomeTokens, Tokens

__all__ = ["why_too_small"]


def why_too_small(
    model: Transformer, state: SomeTokens, elapsed: float, step: float, stalled: bool, merging: bool
) -> str:
    """In words, `elapsed` after the start and at this step; `stalled` if the clock stood still."""
    if not stalled:
        return (
            "the velocity is not smooth there, or not finite, as where a radius falls to 0. Use a "
            "larger rtol, or dt= for fixed steps."
        )
    text = (
        f"the clock stands still there, where numbers are {np.spacing(elapsed):.1g} apart, while "
        f"the state goes on changing in steps of {step:.1g}"
    )
    if model.normalisation.has_radii or not getattr(state, "on_sphere", True):
        text += "; where a radius falls to 0, or tokens go to infinity, the solution ends"
    parted = isinstance(model.drift, Hardmax) or getattr(model.drift, "causal", False)
    if isinstance(state, Tokens) and not (merging or parted):
        return f"{text}. For tokens that have collapsed use merge=, of replicas one by one."
    return (
        f"{text}. A run from the last state that starts at t = 0 has a clock that shows such "
        "steps: try one, not much longer than they are."
    )
