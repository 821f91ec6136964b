"""What notebooks show of an object: a small picture beside a table.

Objects are told by what they have: `plot`, and their `repr`. A picture that cannot be drawn is left
out, and the reason stands in its place.
"""

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..core.errors import MeanfieldError
from ..models.transformer import Transformer
from ..results.solution import Solution
from ..states.contract import State
from . import theme
from .appearance import appearance_of
from .registry import plot

__all__ = ["card", "of_model", "of_result", "of_state", "portrait"]

WIDTH = 360  # pixels of a picture
SHARP = 2  # pixels of the image for one of the page
CARD = (
    "<div><strong>{title}</strong></div>"
    '<div style="display:flex;flex-wrap:wrap;gap:1em;align-items:flex-start">'
    "<table>{rows}</table>{picture}</div>"
)
CELL = '<td style="text-align:left">{}</td>'
IMAGE = (
    '<img alt="{alt}" width="{width}" style="background:white" src="data:image/png;base64,{data}">'
)
PARTS = "drift", "kappa", "causal", "normalisation", "noise", "common", "feedforward"
ANGLES = np.linspace(0.0, np.pi, 181)


def of_result(result: Any) -> str:
    """The lines of its `repr` as a table, and its default figure."""
    title, *lines = repr(result).splitlines()
    return card(
        title, [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines], result.plot
    )


def of_state(state: State) -> str:
    """What it tells of itself, and its portrait."""
    return card(repr(state), state.told().items(), lambda: portrait(state))


def of_model(model: Transformer) -> str:
    """Its parts, and the velocity that one token gives to another at each angle, if it is zonal."""
    parts = {name: getattr(model, name) for name in PARTS}
    rows = [(name, f"{part}") for name, part in parts.items() if part is not None]
    title = type(model.drift).__doc__ or type(model).__name__
    return card(title.strip().splitlines()[0], rows, lambda: _pull(model))


def portrait(state: State, kind: str = "overview", **options: Any) -> Figure:
    """A figure of a single state, as `plot` draws the only one of a run, but without a time."""
    heading = {} if options.get("ax") else {"title": ""}  # axes keep theirs
    return plot(alone(state), kind, **heading | options)


def alone(state: State) -> Solution:
    """The state as the only one of a run, of which neither model nor time is shown."""
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


def _pull(model: Transformer) -> Figure:
    if not model.is_zonal or model.drift.shape:
        raise MeanfieldError("It is drawn for single drifts that depend on inner products alone.")
    drift, t = model.zonal, np.cos(ANGLES)
    pull = drift.slope(t) * np.sin(ANGLES)
    with theme.style():
        page = theme.figure(width=3.4, height=2.2)
        ax = page.subplots()
        ax.plot(ANGLES, pull)
        ax.axhline(0.0, color=theme.FAINT, linewidth=0.7)
        ax.set(xlabel="angle between two tokens", ylabel=r"$W'(\cos\theta)\,\sin\theta$")
        ax.set_xticks([0, np.pi / 2, np.pi], ["0", r"$\pi/2$", r"$\pi$"])
        ax.set_xlim(0, np.pi)
    return page


def card(title: str, rows: Iterable[Sequence[str]], draw: Callable[[], Figure]) -> str:
    """A title, rows of one or two texts, and a picture, as HTML."""
    try:
        picture = _image(draw(), title)
    except (MeanfieldError, ValueError, TypeError) as reason:  # as of too many members
        picture = f"<p>No picture: {escape(str(reason))}</p>"
    table = "".join(
        f"<tr>{''.join(CELL.format(escape(text)) for text in row)}</tr>" for row in rows
    )
    return CARD.format(title=escape(title), rows=table, picture=picture)


def _image(figure: Figure, alt: str) -> str:
    buffer = BytesIO()
    dpi = SHARP * WIDTH / figure.get_size_inches()[0]
    figure.savefig(buffer, format="png", dpi=dpi)
    data = base64.b64encode(buffer.getvalue()).decode()
    return IMAGE.format(alt=escape(alt, quote=True), width=WIDTH, data=data)
