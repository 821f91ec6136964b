"""The parameters of a kind or a function, read from its signature, annotations and docstring."""

import functools
import inspect
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from .annotations import AnyObject, TypeHint, UserValue
from .forms import (
    ANYTHING,
    FUNCTION,
    LEAVES,
    Either,
    Form,
    Instance,
    Many,
    Named,
    Plain,
    Reading,
    choice,
)
from .identity import same

PARAMETER_SECTION = re.compile(
    r"^(?:Parameters|Attributes)\n-+\n((?:(?!.*\n---).*\n?)*)", re.MULTILINE
)
# names, indented text
PARAMETER_ENTRY = re.compile(r"^(\S[^:\n]*).*\n?((?: .*\n?|\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kind or a function.

    Attributes
    ----------
    form : Form
        The values it accepts.
    default : object
        ``inspect.Parameter.empty`` if it is required.
    optional : bool
        Whether it may be None; a file omits the key then.
    words : str
        Its description in the docstring.
    """

    form: Form
    default: UserValue
    optional: bool
    words: str

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def needs_function(self) -> bool:
        """Whether only Python can give it, not a file."""
        return self.required and self.form is FUNCTION

    def read(self, data: Plain, where: str, reading: Reading) -> UserValue:
        """The value that a call or a file gives; None means no value, or a default kind."""
        if data is None and self.optional:
            return None
        if data is None and self.form.none_is_default and not self.required:
            return self.default
        return self.form.read(data, where, reading)

    def is_default(self, value: UserValue) -> bool:
        """Whether a value equals the default."""
        if self.required or self.default is None or value is None:
            return value is None and self.default is None
        default = self.form.check("default", self.default)
        return type(default) is type(value) and same(default, value)


def signature_of(target: AnyObject) -> inspect.Signature:
    """The signature of a function, or of the constructor of a class.

    `inspect.signature` of a class reads `Kind.__new__` instead, in Python before 3.11.4.
    """
    if not isinstance(target, type):
        return inspect.signature(target)
    constructor = inspect.signature(getattr(target, "__init__"))  # noqa: B009
    return constructor.replace(parameters=list(constructor.parameters.values())[1:])


@functools.cache
def parameters_of(target: AnyObject) -> dict[str, Parameter]:
    """The parameters of a kind, or of a function, that have an annotation."""
    function: AnyObject = getattr(target, "__init__") if isinstance(target, type) else target  # noqa: B009
    own_name = {target.__name__: target} if isinstance(target, type) else {}
    hints = get_type_hints(function, localns=own_name, include_extras=True)
    checked = hasattr(target, "as_form") and not target.plain_class
    places = reversed(target.__mro__) if isinstance(target, type) else [target]
    words = {name: text for place in places for name, text in _words(place).items() if text}
    family_forms = getattr(target, "annotation_forms", {})
    signature = signature_of(target).parameters
    return {
        name: Parameter(
            form_of(hints[name], family_forms, None if checked else ANYTHING),
            signature[name].default,
            types.NoneType in get_args(hints[name]),
            words.get(name, ""),
        )
        for name in signature
        if name in hints
    }


def form_of(
    hint: TypeHint, family_forms: Mapping[TypeHint, Form], otherwise: Form | None = ANYTHING
) -> Form:
    """The form of an annotation; `family_forms` are additional annotations of a family.

    Raises
    ------
    TypeError
        If the annotation has no form, and `otherwise` is None.
    """
    origin: TypeHint = get_origin(hint)
    arguments = get_args(hint)
    for metadata in getattr(hint, "__metadata__", ()):
        if isinstance(metadata, Form):
            return metadata
    if origin is Literal:
        return choice({name: name for name in arguments})
    of_part = functools.partial(form_of, family_forms=family_forms, otherwise=otherwise)
    if origin in (Union, types.UnionType):
        forms = [of_part(argument) for argument in arguments if argument is not types.NoneType]
        return forms[0] if len(forms) == 1 else Either(tuple(forms))
    if origin in (tuple, list, Sequence) and arguments:
        return Many(of_part(arguments[0]))
    if origin in (dict, Mapping) and arguments:
        return Named(of_part(arguments[1]))
    if hasattr(hint, "known"):  # a class that knows its objects by their names, such as Scheme
        return choice(hint.known)
    if isinstance(hint, type) and hasattr(hint, "as_form"):  # a kind
        return hint.as_form()
    form = {**LEAVES, **family_forms}.get(origin or hint, otherwise)
    if form is ANYTHING and origin is type and isinstance(arguments[0], type):
        return Instance(arguments[0], itself=True)
    if form is ANYTHING and isinstance(hint, type) and hint not in (object, Any):
        return Instance(hint)
    if form is None:
        raise TypeError(
            f"{getattr(hint, '__name__', hint)!r} is no annotation of a parameter: expected float, "
            "int, bool, str, np.ndarray, Callable, a kind, or Any, whose values are not checked."
        )
    return form


def _words(place: AnyObject) -> dict[str, str]:
    """The descriptions of parameters in the sections of a numpydoc docstring, by name."""
    texts: dict[str, str] = {}
    for section in PARAMETER_SECTION.findall(inspect.cleandoc(place.__doc__ or "")):
        for names, text in PARAMETER_ENTRY.findall(section):
            for name in names.split(","):
                texts.setdefault(name.strip(" *"), " ".join(text.split()))
    return texts
