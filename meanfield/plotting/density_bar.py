"""The colour bar of a map of densities."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import FigureBase

from . import theme
from .scales import Scale

__all__ = ["density_bar"]


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
