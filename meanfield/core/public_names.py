"""Attribute errors of modules that suggest the nearest public name."""

from collections.abc import Callable, Iterable

from .annotations import AnyObject


def with_hint(
    module: str, names: Iterable[str], lookup: Callable[[str], AnyObject] | None = None
) -> Callable[[str], AnyObject]:
    """The ``__getattr__`` of a module, whose error suggests the nearest public name.

    Parameters
    ----------
    module : str
        Name of the module.
    names : iterable of str
        Public names of the module.
    lookup : callable, optional
        Returns the object of a name that the module does not contain yet, or raises
        AttributeError.
    """

    def __getattr__(name: str) -> AnyObject:
        """The name from `lookup`; AttributeError with the nearest public name if there is none."""
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
