"""Linear, logarithmic and power scales for densities with heavy peaks, and their colour bar."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize, PowerNorm
from matplotlib.figure import FigureBase

from . import theme

__all__ = ["Scale", "choose_scale", "density_bar"]

HEAVY_PEAK = 30.0  # largest value over the mean (which is 1) beyond which the scale adapts
DEEPEST = 1e-3  # a logarithmic scale ends a thousand times below the uniform state
EXPONENT = 0.4
NAMES = ("auto", "linear", "log", "power")


@dataclass(frozen=True)
class Scale:
    """How densities from `low` to `high` are shown.

    Attributes
    ----------
    name : str
        "linear", "log" or "power".
    low, high : float
        Ends of the scale.
    cut : bool
        Whether values below `low` exist, which a map of colours draws as if they were `low`.
    """

    name: str
    low: float
    high: float
    cut: bool

    @property
    def note(self) -> str:
        """What to add to a label: nothing for a linear scale."""
        notes = {
            "linear": "",
            "log": " (log scale)",
            "power": f" (power scale, exponent {EXPONENT:g})",
        }
        return notes[self.name]

    @property
    def norm(self) -> Normalize:
        """Colour scale for matplotlib."""
        if self.name == "log":
            return LogNorm(self.low, self.high)
        if self.name == "power":
            return PowerNorm(EXPONENT, self.low, self.high)
        return Normalize(self.low, self.high)

    def shown(self, values: np.ndarray) -> np.ndarray:
        """Values with those below the scale at its low end; the label of the scale says so."""
        return np.maximum(values, self.low) if self.cut else values

    def height(self, values: np.ndarray) -> np.ndarray:
        """Height from 0 to 1 of densities above 0, for a radius."""
        positive = np.maximum(values, 0.0)
        if self.name == "log":
            return np.log1p(positive) / np.log1p(self.high)
        return (positive / self.high) ** (EXPONENT if self.name == "power" else 1.0)


def choose_scale(values: np.ndarray, scale: str = "auto", *, heavy: str = "log") -> Scale:
    """The scale for `values`, densities of mean 1.

    Parameters
    ----------
    scale : str
        "linear", "log", "power", or "auto": `heavy` if the largest value exceeds 30 times the
        mean, and else linear.
    heavy : str
        What "auto" takes for heavy peaks.

    Raises
    ------
    ValueError
        If the name is unknown, or no value is finite.
    """
    if scale not in NAMES:
        raise ValueError(f"scale must be one of {', '.join(map(repr, NAMES))}; got {scale!r}.")
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise ValueError(
            "No value of the density is finite, so there is nothing to draw. Read the "
            "solution's message."
        )
    low, high = float(finite.min()), float(finite.max())
    if scale == "auto":
        scale = heavy if high > HEAVY_PEAK else "linear"
    if scale == "log":
        # max(..., DEEPEST) also keeps the scale positive for densities that touch zero.
        floor = min(max(low, DEEPEST), 0.5 * high)
        return Scale("log", floor, high, low < floor)
    if scale == "power":
        return Scale("power", 0.0, high, low < -1e-9 * high)
    if high - low < 1e-9 * abs(high):  # rounding must not be painted as structure
        low, high = 0.0, 2.0 * high
    return Scale("linear", low, high, False)


def density_bar(
    figure: FigureBase,
    axes: Sequence[Axes],
    image: ScalarMappable,
    scale: Scale,
    label: str,
    *,
    rows: int = 1,
    short: bool = False,
) -> None:
    """One bar for the maps in `axes`, in `rows` rows; its mark is the uniform state, 1.

    The label of a `short` bar is broken where it would be longer than the bar is high.
    """
    note = scale.note
    if short:
        note = note.replace(" (power", "\n(power").replace(" exponent", "\nexponent")
    bar = figure.colorbar(
        image,
        ax=axes,
        label=label + note,
        extend="min" if scale.cut else "neither",
        aspect=26 * rows,
        pad=0.02,
    )
    if scale.low < 1.0 < scale.high:
        bar.ax.axhline(1.0, color="white", linewidth=2.4)
        bar.ax.axhline(1.0, color=theme.INK, linewidth=1.0)
