"""What models and densities are built from, whatever kind of file it stands in."""

from pathlib import Path
from typing import Protocol

from .initial import Initial
from .models import Model
from .spaces import Geometry

__all__ = ["Described"]


class Described(Protocol):
    """The tables [model], [geometry] and [initial], and the file they come from."""

    @property
    def model(self) -> Model: ...

    @property
    def geometry(self) -> Geometry | None: ...

    @property
    def initial(self) -> Initial | None: ...

    @property
    def source(self) -> Path | None: ...
