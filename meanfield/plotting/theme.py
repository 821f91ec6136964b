"""The look of every figure: one style, one palette, one figure class."""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib import rcParams
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patheffects import withStroke
from matplotlib.text import Text

from ..core.checks import positive
from ..core.files import write_whole

__all__ = [
    *("CAUTION", "DASHES", "DENSITY_MAP", "FAINT", "GREY_MAP", "INK", "ORDER_MAP", "PALETTE"),
    *("WARNING", "figure", "style", "subplots"),
]

# Okabe and Ito's colours, which stay apart under every common form of colour blindness.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# Dashes of curves in one panel: in grey, most of these colours look alike.
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (9, 2)))
WARNING = "#D00000"
CAUTION = "#B35900"
INK = "#222222"
FAINT = "#9A9A9A"
HALO = [withStroke(linewidth=1.6, foreground="white")]  # of texts on figures
# Both maps are perceptually uniform and safe for colour-blind readers.
DENSITY_MAP = "viridis"
GREY_MAP = "Greys"  # beneath curves in colours
ORDER_MAP = "plasma"  # of times and members, so that neither is taken for a density

HEADING_MARGIN = 0.05  # inches, at both sides
SPACE_BETWEEN_WORDS = re.compile(r" (?=(?:[^$]*\$[^$]*\$)*[^$]*$)")  # and not within a formula

Style = dict[str, Any]  # options of artists
STYLE: Any = {
    "font.family": "STIXGeneral",  # comes with matplotlib: figures look the same everywhere
    "mathtext.fontset": "stix",
    "font.size": 10.0,
    "axes.titlesize": 10.0,
    "axes.labelsize": 10.0,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "legend.fontsize": 9.0,
    "figure.titlesize": 11.0,
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": True,
    "axes.formatter.limits": (-3, 4),
    "lines.linewidth": 1.4,
    "xtick.direction": "out",
    "ytick.direction": "out",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "legend.handlelength": 1.5,
    "hatch.linewidth": 0.6,
    "image.cmap": DENSITY_MAP,
    "figure.dpi": 110.0,
    "savefig.dpi": 300.0,
    "savefig.bbox": None,
    "pdf.fonttype": 42,  # TrueType, which journals ask for
}


DRAWING = threading.RLock()  # matplotlib has one style at a time, for all threads


@contextmanager
def style() -> Iterator[None]:
    """Context in which matplotlib draws in the style of the package; undone on leaving.

    One thread at a time draws in it, and others wait.
    """
    with DRAWING, matplotlib.rc_context(STYLE):
        yield


def _in_style(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a figure that draws in the style of the package, also outside its context."""

    @wraps(method)
    def call(self: Figure, *args: Any, **options: Any) -> Any:
        with style():
            return method(self, *args, **options)

    return call


class PaperFigure(Figure):
    """A matplotlib Figure that is written in the package's style, at 300 dots per inch."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Write the figure, as `matplotlib.figure.Figure.savefig`; dpi is 300 if not given.

        A file is written whole or not at all.

        Raises
        ------
        StorageError
            If it cannot be written.
        """
        with style():
            if not isinstance(fname, str | PathLike):
                super().savefig(fname, **options)
                return
            path, buffer = Path(fname), BytesIO()
            kind = options.pop("format", None) or path.suffix[1:] or rcParams["savefig.format"]
            super().savefig(buffer, format=kind, **options)
            write_whole(path if path.suffix else path.with_suffix(f".{kind}"), buffer.getvalue())

    def draw(self, renderer: RendererBase) -> None:
        """Draw the figure; logarithmic axes of less than a decade have plain numbers."""
        from .labels import label_logarithmic

        label_logarithmic(self.axes)
        super().draw(renderer)

    add_subplot = _in_style(Figure.add_subplot)
    add_axes = _in_style(Figure.add_axes)
    suptitle = _in_style(Figure.suptitle)

    def _repr_png_(self) -> bytes:
        buffer = BytesIO()
        self.savefig(buffer, format="png", dpi=self.dpi)
        return buffer.getvalue()


def figure(*, width: float = 7.0, height: float = 3.2) -> PaperFigure:
    """An empty figure, laid out so that labels never overlap.

    Draw in it inside the style context::

        with theme.style():
            page = theme.figure(width=3.4, height=2.6)
            ax = page.subplots()
            ax.plot(kappa, order)
        page.savefig("bifurcation.pdf")

    Parameters
    ----------
    width, height : float
        Size in inches; a column of a journal is about 3.4 wide, its page about 7.

    Returns
    -------
    PaperFigure
        Not known to pyplot: nothing to close.
    """
    with style():
        layout = ConstrainedLayoutEngine(w_pad=0.07, h_pad=0.07)
        return PaperFigure(figsize=(width, height), layout=layout)


@contextmanager
def subplots(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> Iterator[tuple[PaperFigure, Any]]:
    """Context with the style of the package; yields a new figure and its panels.

    Panels and `options` are those of `matplotlib.figure.Figure.subplots`.
    """
    with style():
        page = figure(width=width, height=height)
        yield page, page.subplots(rows, columns, **options)


def break_heading(figure: Figure, heading: Text) -> float:
    """Break a heading into lines for which the figure is wide enough; returns the inches added."""
    widest, box = figure.bbox.width - 2 * HEADING_MARGIN * figure.dpi, heading.get_window_extent()
    if box.width <= widest:
        return 0.0
    lines: list[str] = []
    for first, *words in map(SPACE_BETWEEN_WORDS.split, heading.get_text().split("\n")):
        lines.append(first)
        for word in words:
            heading.set_text(f"{lines[-1]} {word}")
            fits = heading.get_window_extent().width <= widest
            lines[-1:] = [heading.get_text()] if fits else [lines[-1], word]
    heading.set_text("\n".join(lines))
    return (heading.get_window_extent().height - box.height) / figure.dpi


def resized(figure: Figure, width: float | None, height: float | None) -> Figure:
    """The figure in another size, in inches; room for banners stays as it is, and for headings.

    A heading that is too wide is broken into lines.
    """
    old_size = figure.get_size_inches()
    sizes = [("width", width, old_size[0]), ("height", height, old_size[1])]
    new = np.array([old if size is None else positive(name, size) for name, size, old in sizes])
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        rect = np.array(engine.get()["rect"])
        low = rect[:2] * old_size / new
        high = 1 - (1 - rect[:2] - rect[2:]) * old_size / new
        figure.set_size_inches(*new)
        for heading in (text for text in figure.texts if text.get_text() == figure.get_suptitle()):
            high[1] -= break_heading(figure, heading) / new[1]
        engine.set(rect=(*low, *(high - low)))
    figure.set_size_inches(*new)
    return figure


def colour(i: int) -> str:
    """The i-th colour of the palette, repeated cyclically, for items without an order."""
    return PALETTE[i % len(PALETTE)]


def stroke(i: int) -> dict[str, Any]:
    """Colour and dashes of the i-th curve in a panel; dashes distinguish curves in grey."""
    return {"color": colour(i), "linestyle": DASHES[i % len(DASHES)]}


def ordered_colours(count: int) -> list[tuple[float, float, float, float]]:
    """`count` colours for times or members, from dark to light but never too light for paper."""
    return [matplotlib.colormaps[ORDER_MAP](x) for x in np.linspace(0.0, 0.85, count)]
