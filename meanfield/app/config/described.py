"""What models and densities are built from, whatever kind of file it stands in."""

from pathlib import Path
from typing import Protocol

from .initial import Initial
from .models import Model
from .spaces import Geometry

__all__ = ["Described", "InSpace", "Modelled", "Sourced"]


class Sourced(Protocol):
    """The file that tables come from."""

    @property
    def source(self) -> Path | None: ...


class InSpace(Sourced, Protocol):
    """The table [geometry]."""

    @property
    def geometry(self) -> Geometry | None: ...


class Modelled(InSpace, Protocol):
    """The tables [model] and [geometry]."""

    @property
    def model(self) -> Model: ...


class Described(Modelled, Protocol):
    """The tables [model], [geometry] and [initial]."""

    @property
    def initial(self) -> Initial | None: ...
