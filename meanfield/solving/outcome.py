"""How a run can end, and what to say about it."""

import numpy as np

from ..states import Density
from ..states.density import COMPUTED
from ..steppers.advance import NOT_FINITE, TOO_SMALL
from .arguments import Accuracy, Arguments
from .march import UNRESOLVED, March

__all__ = ["FAILURES", "asks_to_stop", "message", "negativity"]

FAILURES = {NOT_FINITE: "not_finite", TOO_SMALL: "step_too_small", UNRESOLVED: "unresolved"}


def asks_to_stop(answer) -> bool:
    """Whether a callback's answer ends the run: True does, None and False do not."""
    if answer is None or isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise TypeError(f"A callback returns True to end the run, else None or False; got {answer!r}.")


def negativity(density: Density, accuracy: Accuracy) -> str | None:
    """What to say if a density came out clearly negative somewhere; None if it did not."""
    lowest, highest = float(density.minimum.min()), float(density.values.max())
    if lowest >= -COMPUTED * highest:
        return None
    remedy = f"a dt below {accuracy.dt:g}" if accuracy.dt else f"an rtol below {accuracy.rtol:g}"
    return (
        f"The final density is negative: minimum {lowest:.2g} at a maximum of {highest:.3g}. Its "
        f"moments may be accurate to the tolerance, its values are not: use {remedy}."
    )


def message(status: str, march: March, arguments: Arguments) -> str:
    """The status in words, and what to do where it is not a success."""
    t, steady = march.t, arguments.stopping.steady
    not_yet = f", not steady yet: rate of change {march.rate:.1e} > {steady:g}" if steady else ""
    return {
        "finished": f"Reached t = {t:g}{not_yet}.",
        "steady": f"Steady at t = {t:g}: rate of change {march.rate:.1e}.",
        "event": "A terminal event occurred.",
        "stopped": f"The callback ended the run at t = {t:g}.",
        "interrupted": f"Interrupted at t = {t:g}; the states so far are kept.",
        "max_steps": f"max_steps was reached at t = {t:g}; the states so far are kept.",
        "unresolved": (
            f"The density is not resolved by max_degree = {march.highest_degree} modes after "
            f"t = {t:g}. "
            + (
                "Use a smaller dt, if the steps were too long; else raise"
                if arguments.accuracy.dt
                else "Raise"
            )
            + " max_degree or, where a density without noise concentrates to Diracs, follow "
            "mf.Characteristics(density), which needs no modes."
        ),
        "step_too_small": (
            f"No step size meets rtol at t = {t:g}. Without noise the density may be "
            "collapsing; else the drift is too strong for this time scale: try a larger rtol."
        ),
        "not_finite": f"The state was not finite after t = {t:g}: use a smaller dt.",
    }[status]
