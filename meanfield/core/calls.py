"""Checked calls: arguments by their annotations, and messages about wrong and missing names."""

import functools
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeVar, Union, cast, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike

from . import checks
from .annotations import AnyObject, Function, PassedOn, TypeHint
from .forms import Call, nearest
from .libraries import of_library
from .parameters import parameters_of, signature_of

SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
F = TypeVar("F", bound=Callable[..., Any])
Names = list[str]


@functools.cache
def _parameters_of_call(target: AnyObject) -> tuple[int, Names, Names | None, Names, Names, bool]:
    """The names of the parameters of a function, or of the constructor of a class.

    Returns the number of parameters `self` or `cls`, which the lists leave out; all names; those
    that a call may give by name, None if any; positional ones; required ones; and whether more
    positional arguments are accepted.
    """
    parameters = list(signature_of(target).parameters.values())
    bound = int(bool(parameters) and parameters[0].name in ("self", "cls"))
    parameters = parameters[bound:]
    kinds = {p.kind for p in parameters}
    named = [p.name for p in parameters if p.kind is not inspect.Parameter.POSITIONAL_ONLY]
    by_name = (*SEVERAL, inspect.Parameter.KEYWORD_ONLY)
    positional = [p.name for p in parameters if p.kind not in by_name]
    required = [p.name for p in parameters if p.default is p.empty and p.kind not in SEVERAL]
    accepted = None if inspect.Parameter.VAR_KEYWORD in kinds else named
    variadic = inspect.Parameter.VAR_POSITIONAL in kinds
    return bound, [p.name for p in parameters], accepted, positional, required, variadic


def refuse_wrong_names(
    target: Function, arguments: Sequence[PassedOn], keywords: Mapping[str, PassedOn]
) -> None:
    """Raise TypeError for a call with an unknown name, too few or too many positional arguments."""
    bound, names, named, positional, required, variadic = _parameters_of_call(target)
    if named is not None and (unknown := [name for name in keywords if name not in named]):
        _refuse_unknown(target, unknown[0], named, [*arguments, *keywords.values()])
    title, count = target.__qualname__, max(len(arguments) - bound, 0)
    for place, name in enumerate(positional[:count], start=1):
        if name in keywords:
            raise TypeError(
                f"{title} got {name} twice: the value in place {place} is {name}, as is {name}=. "
                f"It takes {', '.join(named or positional)}."
            )
    if missing := [name for name in required if name not in (*positional[:count], *keywords)]:
        signature_hint = "" if names == missing else f" It takes {', '.join(names)}."
        raise TypeError(f"{title} needs {' and '.join(missing)}.{signature_hint}")
    if count > len(positional) and not variadic:
        given = checks.counted(count, "value")
        if not names:
            raise TypeError(f"{title} takes no arguments; got {given}.")
        most = f"only {', '.join(positional)}" if positional else "no arguments"
        raise TypeError(
            f"{title} takes {most} without a name; got {given}. It takes {', '.join(names)}."
        )


def _refuse_unknown(
    target: Function, name: str, valid: Sequence[str], values: Sequence[PassedOn]
) -> NoReturn:
    """Raise TypeError for the unknown parameter `name` of a call with these values, with a hint."""
    classes = (value if isinstance(value, type) else type(value) for value in values)
    kinds = (cls for cls in classes if hasattr(cls, "as_form"))
    owner = next((kind.__name__ for kind in kinds if name in parameters_of(kind)), "")
    replacement = getattr(target, "_elsewhere", {}).get(name)
    if replacement:
        hint = f": {replacement}."
    elif owner and "vary" in valid:
        hint = f'; to vary that of {owner}, write vary={{"{name}": (start, end)}}.'
    else:
        hint = f"; it is one of {owner}." if owner else nearest(name, valid) or "."
    signature_hint = f" It takes {', '.join(valid)}." if valid else " It takes none."
    raise TypeError(f"{target.__name__} has no parameter {name}{hint}{signature_hint}")


def refuse_abstract(cls: AnyObject) -> None:
    """Raise TypeError for a class with abstract methods, naming them or a better base class."""
    if not inspect.isabstract(cls):
        return
    missing = sorted(cls.__abstractmethods__)
    name, lacking = cls.__name__, " and ".join(missing)
    family = getattr(cls, "family", None)
    if family and family.derivation_advice and cls.__abstractmethods__ & family.__abstractmethods__:
        raise TypeError(f"{name} is abstract, as it lacks {lacking}. {family.derivation_advice}")
    if not of_library(cls.__module__):
        methods = {m: inspect.signature(getattr(cls, m)).parameters for m in missing}
        needed = " and ".join(f"{m}({', '.join(names)})" for m, names in methods.items())
        defined = [attribute for attribute in vars(cls) if attribute[0] != "_"]
        near = next((hint for m in missing if (hint := nearest(m, defined, "by {}"))), ".")
        near = near.replace("; did you mean", ", which you may mean").replace("?", ".")
        raise TypeError(f"{name} must define {needed}{near}")
    kinds = f" Kinds that do: {', '.join(cls.as_form().names)}." if family else ""
    raise TypeError(f"{name} is abstract: derive a class from it that defines {lacking}.{kinds}")


class _Shown(str):
    """An annotation that prints as this text, without quotation marks."""

    def __repr__(self) -> str:
        return str(self)


def readable(signature: inspect.Signature) -> inspect.Signature:
    """A signature for `help`, whose annotations have no module paths and no checks."""
    shown = [
        p.replace(annotation=_Shown(text) if (text := _type_text(p.annotation)) else p.empty)
        for p in signature.parameters.values()
    ]
    result = _Shown(text) if (text := _type_text(signature.return_annotation)) else signature.empty
    return signature.replace(parameters=shown, return_annotation=result)


def _type_text(hint: TypeHint) -> str:
    """The text of an annotation, without module paths; empty for one that says nothing."""
    if hint is Any or hint is inspect.Parameter.empty:
        return ""
    if hint == ArrayLike:  # a union of many types
        return "ArrayLike"
    origin: TypeHint = get_origin(hint)
    arguments = get_args(hint)
    if isinstance(hint, str) or hint is None or hint is Ellipsis:
        return "..." if hint is Ellipsis else str(hint)
    if hint is types.NoneType:
        return "None"
    if hasattr(hint, "__metadata__"):
        return _type_text(hint.__origin__)
    if origin in (Union, types.UnionType):
        parts = dict.fromkeys(map(_type_text, arguments))
        return "" if "" in parts else " | ".join(parts)
    if origin is Literal:
        return " | ".join(map(repr, arguments))
    name = getattr(origin or hint, "__name__", None) or str(hint)
    if origin is None or origin is Callable:
        return name
    return f"{name}[{', '.join(_type_text(argument) or 'Any' for argument in arguments)}]"


def with_hints(function: F) -> F:
    """Decorate a function: a call with an unknown name says which parameter may be meant."""
    return _with_messages(function, lambda _given, _named: None)


def checked_call(*unchecked_names: str) -> Callable[[F], F]:
    """Decorate a function: arguments, except `unchecked_names`, must fit their annotations.

    The decorated function raises TypeError or ValueError for the first argument that does not fit;
    the message begins with its name.
    """

    def decorate(function: F) -> F:
        """Decorated function: arguments are converted by the forms of their annotations first."""
        signature = inspect.signature(function)
        several = [n for n, parameter in signature.parameters.items() if parameter.kind in SEVERAL]
        unchecked = {"self", *several, *unchecked_names}

        def convert(arguments: PassedOn, named: PassedOn) -> inspect.BoundArguments:
            """Bind the arguments, each converted by the form of its annotation."""
            call_arguments, forms = signature.bind(*arguments, **named), parameters_of(function)
            for name, value in call_arguments.arguments.items():
                if name not in unchecked:
                    call_arguments.arguments[name] = forms[name].read(value, name, Call())
            return call_arguments

        return _with_messages(function, convert)

    return decorate


def _with_messages(
    function: F, convert: Callable[[PassedOn, PassedOn], inspect.BoundArguments | None]
) -> F:
    """The function, after a check of the names of a call and the conversion of its arguments."""

    @functools.wraps(function)
    def call(*arguments: PassedOn, **keywords: PassedOn) -> PassedOn:
        """Call the function, with messages for wrong names and arguments."""
        refuse_wrong_names(function, arguments, keywords)
        if call_arguments := convert(arguments, keywords):
            arguments, keywords = call_arguments.args, call_arguments.kwargs
        with np.errstate(under="ignore"):  # NumPy's default: underflow to 0 is no error
            return function(*arguments, **keywords)

    call.__signature__ = readable(inspect.signature(function))  # type: ignore[attr-defined]
    return cast(F, call)
