"""Cards of objects in notebooks: a small picture beside a table.

If the picture cannot be drawn, the reason is shown instead.
"""

import base64
from collections.abc import Callable
from html import escape
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..core.errors import MeanfieldError
from ..core.provided import FIGURES, Rows, Shown
from ..models.transformer import Transformer
from ..results.solution import Solution
from ..states.contract import State
from . import theme
from .appearance import appearance_of
from .registry import plot

WIDTH = 360  # pixels of a picture
SHARP = 2  # pixels of the image for one of the page
CARD = (
    "<div><strong>{title}</strong></div>"
    '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">'
    "<table>{rows}</table>{picture}</div>"
)
TABLE_CELL = '<td style="text-align:left">{}</td>'
IMAGE = (
    '<img alt="{alt}" width="{width}" style="background:white" src="data:image/png;base64,{data}">'
)
PAIR_ANGLES = np.linspace(0.0, np.pi, 181)


def of_result(result: Any) -> str:
    """The card of an object with a method `plot`; the lines of its `repr` are the table."""
    return card(*Shown.card(result))


@FIGURES.register
def portrait(state: State, kind: str = "overview", **options: Any) -> Figure:
    """A figure of a single state, drawn like a run with one state, but without a time."""
    heading = {} if options.get("ax") else {"title": ""}  # the caller's axes keep their title
    return plot(alone(state), kind, **heading | options)


def alone(state: State) -> Solution:
    """A run whose only state is this one; figures show neither its model nor its time."""
    from ..models import Attention, Kuramoto

    flat = appearance_of(state).flat(state)
    return Solution(
        t=np.zeros(1),
        states=(state,),
        model=Transformer(Attention(np.eye(state.dimension)) if flat else Kuramoto()),
        status="finished",
        message="",
        stats={},
        options={},
        stored={"timeless": True},
    )


@FIGURES.register
def pull(model: Transformer) -> Figure:
    """The velocity that one token gives to another at each angle, of a zonal drift."""
    if not model.is_zonal or model.drift.shape:
        raise MeanfieldError("It is drawn for single drifts that depend on inner products alone.")
    drift, t = model.zonal, np.cos(PAIR_ANGLES)
    pull = drift.slope(t) * np.sin(PAIR_ANGLES)
    with theme.style():
        page = theme.figure(width=3.4, height=2.2)
        ax = page.subplots()
        ax.plot(PAIR_ANGLES, pull)
        ax.axhline(0.0, color=theme.FAINT, linewidth=0.7)
        ax.set(xlabel="angle between two tokens", ylabel=r"$W'(\cos\theta)\,\sin\theta$")
        ax.set_xticks([0, np.pi / 2, np.pi], ["0", r"$\pi/2$", r"$\pi$"])
        ax.set_xlim(0, np.pi)
    return page


@FIGURES.register
def card(title: str, rows: Rows, draw: Callable[[], Figure]) -> str:
    """A title, rows of one or two texts, and a picture, as HTML."""
    try:
        picture = _image(draw(), title)
    except (MeanfieldError, ValueError, TypeError) as reason:  # such as too many members
        picture = f"<p>No picture: {escape(str(reason))}</p>"
    table = "".join(
        f"<tr>{''.join(TABLE_CELL.format(escape(text)) for text in row)}</tr>" for row in rows
    )
    return CARD.format(title=escape(title), rows=table, picture=picture)


def _image(figure: Figure, alt: str) -> str:
    """The HTML of a figure as a PNG image, with the text `alt`."""
    buffer = BytesIO()
    dpi = SHARP * WIDTH / figure.get_size_inches()[0]
    figure.savefig(buffer, format="png", dpi=dpi)
    data = base64.b64encode(buffer.getvalue()).decode()
    return IMAGE.format(alt=escape(alt, quote=True), width=WIDTH, data=data)
