"""How a run can end, and what to say about it."""

from ..states import Density
from ..steppers.advance import NOT_FINITE, TOO_SMALL
from .march import UNRESOLVED, March

__all__ = ["FAILURES", "message", "negativity"]

FAILURES = {NOT_FINITE: "not_finite", TOO_SMALL: "step_too_small", UNRESOLVED: "unresolved"}
NEGATIVE = 1e-3


def negativity(density: Density, rtol: float) -> str | None:
    """What to say if a density came out clearly negative somewhere; None if it did not."""
    lowest, highest = float(density.minimum.min()), float(density.values.max())
    if lowest >= -NEGATIVE * highest:
        return None
    return (
        f"The final density is negative: minimum {lowest:.2g} at a maximum of {highest:.3g}. Its "
        "moments are accurate to the tolerance, its values are not: use an rtol below "
        f"{rtol:g}."
    )


def message(status: str, march: March) -> str:
    """The status in words, and what to do where it is not a success."""
    t = march.t
    return {
        "finished": f"Reached t = {t:g}.",
        "steady": f"Steady at t = {t:g}: rate of change {march.rate:.1e}.",
        "event": "A terminal event occurred.",
        "stopped": f"The callback ended the run at t = {t:g}.",
        "interrupted": f"Interrupted at t = {t:g}; the states so far are kept.",
        "max_steps": f"max_steps was reached at t = {t:g}; the states so far are kept.",
        "unresolved": (
            f"The density is not resolved by max_degree = {march.highest_degree} modes after "
            f"t = {t:g}. Raise max_degree or, where a density without noise concentrates to "
            "Diracs, follow mf.Characteristics(density), which needs no modes."
        ),
        "step_too_small": (
            f"No step size meets rtol at t = {t:g}. Without noise the density may be "
            "collapsing; else the drift is too strong for this time scale: try a larger rtol."
        ),
        "not_finite": f"The state was not finite after t = {t:g}: use a smaller dt.",
    }[status]
