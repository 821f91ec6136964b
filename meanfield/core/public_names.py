"""Public names of a module, which the message about a wrong one knows."""

from collections.abc import Callable, Iterable
from typing import Any


def with_hint(
    module: str, names: Iterable[str], lookup: Callable[[str], Any] | None = None
) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module, which says which of its public names may be meant.

    Parameters
    ----------
    module : str
        Its name.
    names : iterable of str
        Its public names.
    lookup : callable, optional
        It returns the object of a name that is not in the module yet, or raises AttributeError.
    """

    def __getattr__(name: str) -> Any:
        if lookup is not None:
            try:
                return lookup(name)
            except AttributeError:
                pass
        hint = ""
        if not name.startswith("_"):
            from .forms import nearest

            hint = nearest(name, names)
        raise AttributeError(f"{module} has no {name}{hint or '.'}", name=name)

    return __getattr__
