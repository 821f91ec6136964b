"""Attribute errors of modules that suggest the nearest public name."""

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec

from .annotations import AnyObject


def with_hint(
    module: str,
    names: Iterable[str],
    lookup: Callable[[str], AnyObject] | None = None,
    public_modules: Iterable[str] = (),
) -> Callable[[str], AnyObject]:
    """The ``__getattr__`` of a module, whose error suggests the nearest public name.

    A name that is public in another one of the public modules is pointed to there.

    Parameters
    ----------
    module : str
        Name of the module.
    names : iterable of str
        Public names of the module.
    lookup : callable, optional
        Returns the object of a name that the module does not contain yet, or raises
        AttributeError.
    public_modules : iterable of str
        Modules among the names.
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

            known = name.lower() in (own.lower() for own in names)
            hint = "" if known else _elsewhere(module, name, public_modules)
            hint = hint or nearest(name, names)
        raise AttributeError(f"{module} has no {name}{hint or '.'}", name=name)

    return __getattr__


def _elsewhere(module: str, name: str, others: Iterable[str]) -> str:
    """A hint at the module of `others` that has a public name, in any case; empty if none has.

    Submodules get none, and import nothing: ``from module import name`` asks for them too.
    """
    if not others or find_spec(f"{module}.{name}") is not None:
        return ""
    places: dict[str, str] = {}
    for other in (getattr(import_module(module), other) for other in others):
        entries = vars(other).items()
        own = [n for n, v in entries if getattr(v, "__module__", None) == other.__name__]
        for public in getattr(other, "__all__", own):
            if public[0] != "_" and public.lower() == name.lower():
                places.setdefault(public, f"{other.__name__}.{public}")
    place = places.get(name) or next(iter(places.values()), None)
    return f"; did you mean {place}?" if place else ""
