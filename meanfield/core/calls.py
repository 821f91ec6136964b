"""Checked calls: arguments by their annotations, and messages about wrong and missing names."""

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

import numpy as np

from .forms import Call, nearest
from .libraries import of_library
from .parameters import parameters_of, signature_of

SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
F = TypeVar("F", bound=Callable[..., Any])


def checked(
    function: Callable[..., Any], given: Mapping[str, Any], *without: str
) -> dict[str, Any]:
    """The arguments of a call, converted according to their annotations, except those in `without`.

    Raises
    ------
    TypeError, ValueError
        For the first argument that does not fit; the message begins with its name.
    """
    known = parameters_of(function)
    return {
        name: value if name in without else known[name].read(value, name, Call())
        for name, value in given.items()
    }


@functools.cache
def _names_of(target: Any) -> tuple[str, ...] | None:
    """The names of arguments of a call; None if any name is accepted."""
    given = signature_of(target).parameters.values()
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in given):
        return None
    return tuple(one.name for one in given if one.kind is not inspect.Parameter.POSITIONAL_ONLY)


def refuse_unknown(
    target: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Raise TypeError for an unknown parameter of a function or class, with a hint."""
    names = _names_of(target)
    unknown = [] if names is None else [name for name in named if name not in names]
    if names is None or not unknown:
        return
    name, title = unknown[0], target.__name__
    names = tuple(other for other in names if other not in ("self", "cls"))
    classes = (one if isinstance(one, type) else type(one) for one in (*given, *named.values()))
    kinds = (cls for cls in classes if hasattr(cls, "as_form"))
    owner = next((kind.__name__ for kind in kinds if name in parameters_of(kind)), "")
    elsewhere = getattr(target, "_elsewhere", {}).get(name)
    if elsewhere:
        hint = f": {elsewhere}."
    elif owner and "vary" in names:
        hint = f'; to vary that of {owner}, write vary={{"{name}": (start, end)}}.'
    else:
        hint = f"; it is one of {owner}." if owner else nearest(name, names) or "."
    listed = f" It takes {', '.join(names)}." if names else " It takes none."
    raise TypeError(f"{title} has no parameter {name}{hint}{listed}")


@functools.cache
def _places_of(target: Any) -> tuple[list[str], list[str], bool]:
    """Positional parameters, required parameters, and whether more positions are accepted."""
    given = signature_of(target).parameters.values()
    by_name = (*SEVERAL, inspect.Parameter.KEYWORD_ONLY)
    places = [one.name for one in given if one.kind not in by_name]
    required = [one.name for one in given if one.default is one.empty and one.kind not in SEVERAL]
    return places, required, any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in given)


def refuse_missing(
    target: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]
) -> None:
    """Raise TypeError for a call with too few arguments or too many positional ones."""
    places, required, more = _places_of(target)
    missing = [name for name in required if name not in (*places[: len(given)], *named)]
    own = [name for name in signature_of(target).parameters if name not in ("self", "cls")]
    title = target.__qualname__
    if missing:
        listed = "" if own == missing else f" It takes {', '.join(own)}."
        raise TypeError(f"{title} needs {' and '.join(missing)}.{listed}")
    if len(given) > len(places) and not more:
        by_place = [name for name in places if name in own]  # without self
        got = len(given) - len(places) + len(by_place)
        raise TypeError(
            f"{title} takes only {', '.join(by_place) or 'nothing'} without a name; got {got} "
            f"values. It takes {', '.join(own) or 'nothing'}."
        )


def refuse_abstract(cls: Any) -> None:
    """Raise TypeError for a class with abstract methods, naming them or a better base class."""
    if not inspect.isabstract(cls):
        return
    missing = sorted(cls.__abstractmethods__)
    name, lacking = cls.__name__, " and ".join(missing)
    family = getattr(cls, "family", None)
    if family and family.derivation_advice and cls.__abstractmethods__ & family.__abstractmethods__:
        raise TypeError(f"{name} is abstract, as it lacks {lacking}. {family.derivation_advice}")
    if not of_library(cls.__module__):
        methods = {one: inspect.signature(getattr(cls, one)).parameters for one in missing}
        needed = " and ".join(f"{one}({', '.join(given)})" for one, given in methods.items())
        defined = [other for other in vars(cls) if other[0] != "_"]
        near = next((hint for one in missing if (hint := nearest(one, defined, "by {}"))), ".")
        near = near.replace("; did you mean", ", which you may mean").replace("?", ".")
        raise TypeError(f"{name} must define {needed}{near}")
    known = f" Kinds that do: {', '.join(cls.as_form().names)}." if family else ""
    raise TypeError(f"{name} is abstract: derive a class from it that defines {lacking}.{known}")


class _Shown:
    """An annotation that prints as short text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def readable(signature: inspect.Signature) -> inspect.Signature:
    """A signature for `help`, whose annotations have no module paths and no checks."""
    shown = [
        one.replace(annotation=_Shown(text) if (text := _short(one.annotation)) else one.empty)
        for one in signature.parameters.values()
    ]
    result = _Shown(text) if (text := _short(signature.return_annotation)) else signature.empty
    return signature.replace(parameters=shown, return_annotation=result)


def _short(hint: Any) -> str:
    """The text of an annotation, without module paths; empty for one that says nothing."""
    if hint is Any or hint is inspect.Parameter.empty:
        return ""
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, str) or hint is None or hint is Ellipsis:
        return "..." if hint is Ellipsis else str(hint)
    if hint is types.NoneType:
        return "None"
    if hasattr(hint, "__metadata__"):
        return _short(hint.__origin__)
    if origin in (Union, types.UnionType):
        parts = dict.fromkeys(map(_short, inner))
        return "" if "" in parts else " | ".join(parts)
    if origin is Literal:
        return " | ".join(map(repr, inner))
    name = getattr(origin or hint, "__name__", None) or str(hint)
    if origin is None or origin is Callable:
        return name
    return f"{name}[{', '.join(_short(one) or 'Any' for one in inner)}]"


def with_hints(function: F) -> F:
    """Decorate a function: a call with an unknown name says which parameter may be meant."""

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        refuse_unknown(function, given, named)
        refuse_missing(function, given, named)
        with np.errstate(under="ignore"):  # NumPy's default: underflow to 0 is no error
            return function(*given, **named)

    call.__signature__ = readable(inspect.signature(function))  # type: ignore[attr-defined]
    return cast(F, call)


def checked_call(*without: str) -> Callable[[F], F]:
    """Decorate a function: its arguments are `checked`, except those in `without`."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        several = [n for n, one in signature.parameters.items() if one.kind in SEVERAL]

        @functools.wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            refuse_unknown(function, given, named)
            refuse_missing(function, given, named)
            bound = signature.bind(*given, **named)
            bound.arguments |= checked(function, bound.arguments, "self", *several, *without)
            with np.errstate(under="ignore"):  # NumPy's default: underflow to 0 is no error
                return function(*bound.args, **bound.kwargs)

        call.__signature__ = readable(signature)  # type: ignore[attr-defined]
        return cast(F, call)

    return decorate
