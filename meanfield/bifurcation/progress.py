"""Progress of continuation: a bar that shows where a curve is, and Ctrl-C as a request to stop."""

import sys
from math import log
from typing import Any

from ..solving.progress import Interruption

__all__ = ["Following"]


class Following:
    """Within the block, `at` is told of every new point; the bar goes to and fro with the curve.

    Parameters
    ----------
    name : str
        Of the parameter.
    span : (float, float)
        Its range: the ends of the bar, which is logarithmic where both are positive.
    enabled : bool, optional
        None shows the bar on a terminal only, after one second.
    """

    def __init__(self, name: str, span: tuple[float, float], enabled: bool | None):
        self._name, self._span = name, span
        self._interruption = Interruption()
        self._curve: Any = None
        self._number, self._bar = 0, None
        if enabled or (enabled is None and sys.stderr.isatty()):
            from tqdm.auto import tqdm

            self._bar = tqdm(
                total=1.0,
                delay=0 if enabled else 1,
                miniters=0,
                bar_format=f"{{desc}} {span[0]:g} |{{bar}}| {span[1]:g} {{elapsed}}",
                desc="curves",
            )

    def __enter__(self) -> "Following":
        self._interruption.__enter__()
        return self

    def __exit__(self, *exception) -> None:
        self._interruption.__exit__(*exception)
        if self._bar is not None:
            self._bar.close()

    @property
    def stopped(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._interruption.requested

    def at(self, curve: Any, what: str, value: float) -> bool:
        """Show where a curve is, and which; whether to stop."""
        if curve is not self._curve:
            self._curve, self._number = curve, self._number + 1
        if self._bar is not None:
            text = f"curve {self._number}, {what}, {self._name} = {value:.4g}"
            self._bar.set_description_str(text, refresh=False)
            self._bar.update(min(max(self._place(value), 0.0), 1.0) - self._bar.n)
        return self.stopped

    def _place(self, value: float) -> float:
        """Where a value lies in the range: 0 at its lower end, 1 at its upper end."""
        low, high = self._span
        if low > 0:
            return log(max(value, low) / low) / log(high / low)
        return (value - low) / (high - low)
