"""Export of a scene: configurations in TOML, an equivalent Python script, and figures."""

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pprint import pformat
from typing import Any

from meanfield import MeanfieldError
from meanfield.extending import Kind, require

from .frames import LONGEST_COMPUTING
from .scene import FRAME_COUNTS, Scene, UserFile, law_of_tokens

MOST_DRAWINGS = 3  # figures that are drawn at the same time
FAIR_SECONDS = 10.0  # seconds after which a figure gives way to another one
STOPPING_SECONDS = 2.0  # longest wait for the end of a figure that was told to stop
RUN_NAMES = {"density": "density_run", "tokens": "token_run"}
FIGURE_TYPES = {"png": "image/png", "svg": "image/svg+xml"}
SCRIPT_TEXT = '''"""A scene of `meanfield explore`; its link was {link}."""

import numpy as np

import meanfield as mf

{body}'''


def is_figure(name: str) -> bool:
    """Return True for the name of a figure, which needs a run; texts need none."""
    return name.rpartition(".")[2] in FIGURE_TYPES


def exported(
    scene: Scene,
    name: str,
    file: UserFile | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[str, bytes]:
    """The media type and the content of an exported file of a scene.

    Parameters
    ----------
    scene : Scene
    name : str
        density.toml, tokens.toml, explored.py, or density or tokens with .png or .svg.
    file : UserFile, optional
    stopped : callable
        Called after every step of the run of a figure; if it returns True, the run stops.

    Raises
    ------
    MeanfieldError
        For another name, a layer that the scene lacks, and a run that was stopped.
    """
    stem, _, ending = name.partition(".")
    names = [f"{layer}.{e}" for e in ("toml", *FIGURE_TYPES) for layer in ("density", "tokens")]
    names.append("explored.py")
    require("name", name, f"one of {', '.join(names)}", name in names, MeanfieldError)
    if name == "explored.py":
        return "text/x-python", script(scene, file).encode()
    tables = scene.tables(file)
    if stem not in tables:
        raise MeanfieldError(f"{name}: this scene has no {stem}; it has {' and '.join(tables)}.")
    if ending == "toml":
        return "application/toml", toml_text(tables[stem]).encode()
    run = scene.configurations(file)[stem].run(
        out=None, progress=False, callback=lambda *_: stopped()
    )
    if stopped():
        raise MeanfieldError(
            f"{name} was stopped at t = {run.t[-1]:g}: `meanfield solve {stem}.toml`, "
            "with the configuration that is exported, takes as long as it needs."
        )
    buffer = BytesIO()
    run.plot().savefig(buffer, format=ending, dpi=200)
    return FIGURE_TYPES[ending], buffer.getvalue()


# Threads -----------------------------------------------------------------------------------------


class Drawing:
    """One figure that is being drawn.

    Parameters
    ----------
    pool : ThreadPoolExecutor
    draw : callable
        Draws the figure and returns its type and content, as `exported`. Its argument is a
        function that returns True if the drawing must stop.
    """

    def __init__(self, pool: ThreadPoolExecutor, draw: Callable[[Callable[[], bool]], Any]):
        self.began, self.given_up = time.monotonic(), False
        self.future = asyncio.get_running_loop().run_in_executor(pool, draw, self.stopped)

    @property
    def seconds(self) -> float:
        """Seconds since the drawing began."""
        return time.monotonic() - self.began

    def stopped(self) -> bool:
        """Return True if the figure is no longer wanted, or takes too long."""
        return self.given_up or self.seconds > LONGEST_COMPUTING


class Drawings(ThreadPoolExecutor):
    """The threads that draw figures; one that takes long is stopped when others wait."""

    def __init__(self) -> None:
        super().__init__(MOST_DRAWINGS, "figure")
        self.open: list[Drawing] = []

    async def begin(self, draw: Callable[[Callable[[], bool]], Any]) -> Drawing | None:
        """Begin to draw a figure; None while all threads are busy."""
        if len(self.open) >= MOST_DRAWINGS and (oldest := self.open[0]).seconds > FAIR_SECONDS:
            oldest.given_up = True
            await asyncio.wait([oldest.future], timeout=STOPPING_SECONDS)
        if len(self.open) >= MOST_DRAWINGS:
            return None
        drawing = Drawing(self, draw)
        self.open.append(drawing)
        drawing.future.add_done_callback(lambda _: self.open.remove(drawing))
        return drawing

    def end(self) -> None:
        """Stop all drawings."""
        for drawing in self.open:
            drawing.given_up = True
        self.shutdown(wait=False, cancel_futures=True)


# TOML --------------------------------------------------------------------------------------------


def toml_text(data: Mapping[str, Any]) -> str:
    """The text of a TOML file with these tables."""
    tables = {name: value for name, value in data.items() if isinstance(value, Mapping)}
    lines = [f"{name} = {_value(value)}" for name, value in data.items() if name not in tables]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_value(entry)}" for key, entry in table.items())]
    return "\n".join(lines).lstrip() + "\n"


def _value(value: Any) -> str:
    """A value as text in TOML."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_value(entry)}' for key, entry in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


# Python ------------------------------------------------------------------------------------------


def script(scene: Scene, file: UserFile | None = None) -> str:
    """A script with the runs of a scene, whose states equal those of the page bit by bit.

    The run of the density is its variable ``density_run``, that of the tokens ``token_run``.
    """
    configurations = scene.configurations(file)
    law = pformat(scene.law(file), width=96, sort_dicts=False)
    of_tokens = law_of_tokens(scene.law(file))
    body = [
        f"law = {law}",
        f"mu0 = mf.build(mf.Start, law).begin({None if of_tokens else _code(scene.initial_space)})",
        f"t_end = {scene.t_end!r}",
        f"times = np.linspace(0.0, t_end, {FRAME_COUNTS[scene.space]})",
    ]
    for layer, config in configurations.items():
        options = {k: v for k, v in config.tables["solve"].items() if k not in ("t_span", "t_eval")}
        words = ", ".join(f"{name}={value!r}" for name, value in options.items())
        state = "mu0"
        if config.data["initial"]["kind"] == "AlongCharacteristics":
            state = "mf.Characteristics(mu0)"
        elif config.data["initial"]["kind"] == "SampledTokens":
            state = f"mu0.sample({scene.tokens}, rng={scene.rng})"
        name, model = RUN_NAMES[layer], _code(config.tables["model"])
        solved = f"mf.solve({model}, {state}, t_span=(0.0, t_end), t_eval=times, {words})"
        body += ["", f"{name} = {solved}"]
    first = RUN_NAMES[next(iter(configurations))]
    body += ["", f"print({first})", f'{first}.plot().savefig("explored.png")', ""]
    link = "?" + "&".join(f"{name}={value}" for name, value in scene.link.items())
    return SCRIPT_TEXT.format(link=link, body="\n".join(body))


def _code(kind: Kind) -> str:
    """The Python expression that builds a kind, from its `repr`."""
    return re.sub(r"\b(?=[A-Z]\w*\()", "mf.", repr(kind))
