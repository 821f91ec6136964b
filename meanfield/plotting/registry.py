"""Figures by kind of state, space and name; a figure is a function that registers itself.

    @figure("spacetime", Density, Circle, panels=(7.0, 3.2))
    def spacetime(panels, *, scale="auto"): ...

is what `plot(solution, kind="spacetime")` draws of densities on the circle. A figure is found along
the bases of the class of the state, and then of the class of its space: those registered for
`object` are there for all states.
"""

import base64
from collections.abc import Callable, Iterable
from functools import update_wrapper
from html import escape
from inspect import Parameter, Signature, signature
from io import BytesIO
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..core.checks import as_given, require
from ..core.errors import MeanfieldError
from ..core.forms import nearest
from ..core.provided import FIGURES, Rows, Shown
from ..models.transformer import Transformer
from ..results.solution import Solution
from ..states.contract import State
from . import layouts, theme
from .appearance import Appearance, appearance_of, describe_states, space_of
from .spaces import in_words

Draw = Callable[..., Any]


class FigureRegistry:
    """Functions by name, class of states and class of spaces."""

    def __init__(self) -> None:
        self._entries: dict[tuple[type, type], dict[str, Draw]] = {}

    def register(
        self, name: str, states: type | tuple[type, ...], spaces: tuple[type, ...]
    ) -> Callable[[Draw], Draw]:
        """Decorator that registers a function for these states on these spaces, or on any space.

        Raises
        ------
        ValueError
            If another module has registered the same name for the same classes.
        """

        def keep(draw: Draw) -> Draw:
            """Register the function; ValueError if another module has done so."""
            each = states if isinstance(states, tuple) else (states,)
            for state, space in product(each, spaces or (object,)):  # `object` is any space
                kinds = self._entries.setdefault((state, space), {})
                if kinds.get(name, draw).__module__ != draw.__module__:
                    space_text = f"{state.__name__} {in_words(space)}".rstrip()
                    raise ValueError(
                        f"{name!r} is already drawn by {kinds[name].__module__} for {space_text}; "
                        "choose another name."
                    )
                kinds[name] = draw
            return draw

        return keep

    def drawn(self, sought: object) -> list[tuple[type, type]]:
        """The classes of states and of spaces for which a name, or a function, is registered."""
        tables = self._entries.items()
        return [pair for pair, table in tables if sought in [*table, *table.values()]]

    def of(self, solution: Solution) -> dict[str, Draw]:
        """All functions for the states of a solution on their space, by name."""
        functions: dict[str, Draw] = {}
        for pair in product(type(solution.final).__mro__, space_of(solution).__mro__):
            functions = {**self._entries.get(pair, {}), **functions}
        return functions


FIGURE_KINDS = FigureRegistry()
KIND_ORDER = {"overview": -1, "spectrum": 1, "observables": 2}  # 0 for others
SOLUTION = Parameter("solution", Parameter.POSITIONAL_OR_KEYWORD, annotation=Solution)


class FigureKind:
    """A kind of figure: called with a solution, and options by keyword, it draws a Figure.

    Attributes
    ----------
    draw : callable
        Function that draws into panels, for pages with more than this figure.
    is_sheet : bool
        Whether there is a panel for each member at each time.
    """

    def __init__(self, draw: Draw, frame: Callable[..., Any] | None, layout: tuple[Any, ...]):
        """Wrap `draw`; its signature gains the options of `frame`, which makes the panels."""
        self.draw, self._frame, self._layout = draw, frame, layout
        self.is_sheet = frame is layouts.sheet
        update_wrapper(self, draw)
        self._around: list[Parameter] = []
        if frame is not None:
            options = list(signature(draw).parameters.values())[1:]
            self._around = [
                p
                for p in signature(frame).parameters.values()
                if p.default is None and (len(layout) > 2 or p.name in ("ax", "member"))
            ]
            title = Parameter("title", Parameter.KEYWORD_ONLY, default=None)
            self.__signature__ = Signature([SOLUTION, *self._around, title, *options])

    def __call__(self, solution: Solution, **options: Any) -> Figure:
        """The figure; TypeError for states and spaces without it."""
        expect(solution, FIGURE_KINDS.drawn(self))
        if self._frame is None:
            return self.draw(solution, **options)
        around = {p.name: options.pop(p.name) for p in self._around if p.name in options}
        title = options.pop("title", None)
        with theme.style():
            panels = self._frame(solution, *self._layout, **around)
            self.draw(panels, **options)
            return layouts.finish(panels, title)


def figure(
    kind: str,
    states: type | tuple[type, ...] = object,
    *spaces: type,
    panels: tuple[float, float] | tuple[float, float, int] | None = None,
    sheet: tuple[int, float, int] | None = None,
) -> Callable[[Draw], FigureKind]:
    """Decorate a function that draws `kind` of these states, on these spaces or on any.

    The function takes a solution, then options by keyword, and returns a Figure. With `panels` or
    `sheet` it takes `Panels` to draw in, which hold the solution, and returns nothing; the figure
    then has the options `ax`, `member` and `title`, and `times` and `count` where several times are
    shown. Called by itself, it refuses solutions of other states and spaces.

    Parameters
    ----------
    kind : str
        What `plot` calls it.
    states : type or tuple of type
        Classes of states, such as `Tokens`; derived classes have the figure too.
    *spaces : type
        Classes of spaces, such as `Circle`; by default any, also for states that have none.
    panels : (float, float) or (float, float, int), optional
        Width and height in inches of a panel; each member of an ensemble has one. A third number
        is that of the saved times in each panel by default; `Panels.times` are their indices.
    sheet : (int, float, int), optional
        How many saved times are shown by default, width over height of a panel, and the most
        panels in a row; each member has a panel at each time.

    Raises
    ------
    ValueError
        If another module draws this kind for the same states and space.
    """

    def register(draw: Draw) -> FigureKind:
        frame = layouts.panels if panels else layouts.sheet if sheet else None
        entry = draw
        if not isinstance(entry, FigureKind):
            entry = FigureKind(draw, frame, panels or sheet or ())
        FIGURE_KINDS.register(kind, states, spaces)(entry)
        return entry

    return register


def expect(solution: Solution, pairs: list[tuple[type, type]]) -> None:
    """Raise TypeError unless the states of a solution and their space are among the pairs."""
    fits = isinstance(solution, Solution)
    require("solution", solution, "a Solution, which solve returns", fits, TypeError)
    final, space = solution.final, space_of(solution)
    if any(isinstance(final, state) and issubclass(space, place) for state, place in pairs):
        return
    raise TypeError(
        f"This plot needs {described(pairs)}; got {describe_states(solution)}. kind='observables' "
        "draws any solution."
    )


def described(pairs: Iterable[tuple[type, type]]) -> str:
    """Classes of states and of spaces in words: "tokens on the Circle or the Line"."""
    spaces: dict[str, dict[str, None]] = {}
    for state, space in pairs:
        spaces.setdefault(_name(state), {})[in_words(space, plain=True)] = None
    return ", or ".join(
        " or ".join([f"{name} {first}".rstrip(), *(text.removeprefix("on ") for text in texts)])
        for name, (first, *texts) in spaces.items()
    )


def _name(state: type) -> str:
    appearance = Appearance.registered.get(state)
    return appearance.states if appearance else state.__name__


def kinds_of(solution: Solution) -> dict[str, Draw]:
    """Kinds of figures that `plot` draws of a solution, "overview" first and "observables" last."""
    functions = FIGURE_KINDS.of(solution).items()
    return dict(sorted(functions, key=lambda item: KIND_ORDER.get(item[0], 0)))


def find_figure(solution: Solution, kind: str) -> Draw:
    """The function that draws a kind, or ValueError with the kinds there are."""
    kinds = kinds_of(solution)
    if isinstance(kind, str) and kind in kinds:
        return kinds[kind]
    pairs = FIGURE_KINDS.drawn(kind) if isinstance(kind, str) else []
    hint = f", which draws {described(pairs)}." if pairs else nearest(as_given(kind), kinds)
    raise ValueError(
        f"kind must be one of {', '.join(map(repr, kinds))} for {describe_states(solution)}; "
        f"got {as_given(kind)}{hint or '.'}"
    )


def options_of(draw: Draw) -> list[str]:
    """Names of the options of a function: its `options`, or else its parameters by keyword."""
    if hasattr(draw, "options"):
        return list(draw.options)
    parameters = signature(draw).parameters.values()
    return [option.name for option in parameters if option.kind == Parameter.KEYWORD_ONLY]


def options_for(draw: Draw, options: dict[str, Any]) -> dict[str, Any]:
    """The options that a function has, among these."""
    return {name: options[name] for name in options_of(draw) if name in options}


def check_options(
    solution: Solution, figure_text: str, options: dict[str, Any], allowed: list[str]
) -> None:
    """Raise TypeError for an option not allowed, with the kinds of figures that have it."""
    for name in options:
        if name not in allowed:
            kinds = [kind for kind, draw in kinds_of(solution).items() if name in options_of(draw)]
            kinds_text = f" These kinds have it: {', '.join(map(repr, kinds))}." if kinds else ""
            closest = "." if kinds else nearest(name, allowed) or "."
            raise TypeError(
                f"{name!r} is no option of {figure_text} for {describe_states(solution)}; it has "
                f"{', '.join(allowed)}{closest}{kinds_text}"
            )


@FIGURES.register
def plot(solution: Solution, kind: str = "overview", **options: Any) -> Figure:
    """A figure of a solution.

    Parameters
    ----------
    solution : Solution
    kind : str
        "overview" and "observables" exist for all states. Also, on the spaces they name:

        - densities: "spectrum"; "spacetime" and "snapshots" on the circle and axisymmetric,
          "polar" on the circle, "orthographic" and "map" on the sphere, "map" on the torus;
        - indexed densities: "map" on the circle and axisymmetric, "order" and "order_map"; and what
          densities have, of the marginal law;
        - characteristics: "trajectories", "distribution" and "polar" on the circle and
          axisymmetric, "orthographic" and "map" on the sphere, "map" on the torus;
        - tokens: "trajectories" on the circle and the line, "spacetime", "polar" and "histogram"
          on the circle, "orthographic" and "map" on the sphere of R^3, "map" on the torus,
          "inner_products", "projection" and "paths" in R^d and on spheres, d > 1;
        - inner products (Gram): "inner_products" and "histogram";
        - Gaussians: "variances", and in the plane "ellipses" and "cone".

        Others are added by `figure`.
    **options
        Those of the function that draws the kind. Most kinds have

        - `ax`: draw one panel into these axes rather than into a new figure;
        - `width`, `height`: of a figure, in inches;
        - `member`: one member of an ensemble, an int or a tuple; by default each has a panel, at
          most nine;
        - `title`: the heading, by default the model; "" for none; with `ax` that of the axes;
        - `times`: show the states at these times: those not saved are evaluated if the run has kept
          its steps (``dense=True``), and otherwise the nearest saved states are shown, with a
          warning. Or `count` saved states, chosen so that the measure moves equally far between
          them; in an `ax` the last;
        - `log_time`: whether the axis of times is logarithmic, by default where saved times are
          spaced like numpy.geomspace.

    Returns
    -------
    Figure
        Write it with `figure.savefig(path)`: 300 dpi, maps as images inside vector formats.

    Raises
    ------
    ValueError
        If there is no such kind for these states on this space; and as the function of that name.
    TypeError
        For an option that it does not have.
    """
    draw = find_figure(solution, kind)
    size = options.pop("width", None), options.pop("height", None)
    if all(p.kind != p.VAR_KEYWORD for p in signature(draw).parameters.values()):
        allowed = dict.fromkeys([*options_of(draw), "width", "height"])
        check_options(solution, f"kind={kind!r}", options, [*allowed])
    result = draw(solution, **options)
    return result if size == (None, None) else theme.resized(result, *size)


# Single states, and cards of objects in notebooks -------------------------------------------------

PICTURE_WIDTH = 360  # pixels of a picture
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


def result_card(result: Any) -> str:
    """The card of an object with a method `plot`; the lines of its `repr` are the table."""
    return card(*Shown.card(result))


@FIGURES.register
def portrait(state: State, kind: str = "overview", **options: Any) -> Figure:
    """A figure of a single state, drawn like a run with one state, but without a time."""
    # axes of the caller keep their title
    heading = {"title": ""} if options.get("ax") is None else {}
    return plot(run_of_one_state(state), kind, **heading | options)


def run_of_one_state(state: State) -> Solution:
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
    with theme.subplots(3.4, 2.2) as (page, ax):
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
        figure, buffer = draw(), BytesIO()
        dpi = SHARP * PICTURE_WIDTH / figure.get_size_inches()[0]
        figure.savefig(buffer, format="png", dpi=dpi)
        data = base64.b64encode(buffer.getvalue()).decode()
        picture = IMAGE.format(alt=escape(title, quote=True), width=PICTURE_WIDTH, data=data)
    except (MeanfieldError, ValueError, TypeError) as reason:  # such as too many members
        picture = f"<p>No picture: {escape(str(reason))}</p>"
    table = "".join(
        f"<tr>{''.join(TABLE_CELL.format(escape(text)) for text in row)}</tr>" for row in rows
    )
    return CARD.format(title=escape(title), rows=table, picture=picture)
