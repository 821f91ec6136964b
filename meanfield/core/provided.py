"""Functions that rooms above write for objects of rooms below: figures, runs of configurations.

The object below asks for a function by its name, and the room above registers it::

    @FIGURES.register                                        in plotting
    def rates(study, *, t=None, ...): ...

    return FIGURES["rates"](self, **options)                 in Study.plot

The module that registers is named here as text, and imported when a function is first asked for:
no import statement points upwards.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, TypeVar

from .annotations import Function, OfLibrary

Registered = TypeVar("Registered", bound=Callable[..., Any])
Rows = Iterable[Sequence[str]]  # of a table, with one or two texts in each row


class Provided(dict[str, Callable[..., Any]]):
    """Functions by name, registered by a module that is imported when one is first asked for."""

    def __init__(self, module: str) -> None:
        super().__init__()
        self.module = module

    def register(self, function: Registered) -> Registered:
        """Register the decorated function under its name."""
        self[function.__name__] = function
        return function

    def __missing__(self, name: str) -> Function:
        import_module(self.module)
        if name not in self:
            raise KeyError(f"{self.module} registers no function {name}.")
        return self[name]


FIGURES = Provided("meanfield.plotting")
EXTENSIONS = Provided("meanfield.solving")
CONFIGURED_RUNS = Provided("meanfield.app.configured_runs")


class Shown:
    """An object that notebooks show as a card: a title, a table and a picture."""

    def card(self) -> tuple[str, Rows, Callable[[], OfLibrary]]:
        """The title, the rows of the table, and the function that draws the picture.

        By default they are the first line of `repr`, its other lines, and `plot`. A line is split
        into two cells where it has two spaces or more.
        """
        title, *lines = repr(self).splitlines()
        rows = [re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines]
        return title, rows, self.plot  # type: ignore[attr-defined]

    def _repr_html_(self) -> str:
        return FIGURES["card"](*self.card())
