"""One description of everything that is chosen by an object: drifts, noises, states, spaces, ...

A kind is a class below `Kind`. Its signature and docstring are the only place where its parameters
are written down; the table in a configuration file, the entry in a result file, the identity in a
checkpoint, the JSON schema, the `repr` and the messages of errors are derived from them:

    describe(Sigmoid(-3.0))                             {"kind": "Sigmoid", "bias": -3.0}
    build(Weights, {"kind": "Sigmoid", "bias": -3.0})   Sigmoid(bias=-3.0)
    schema(Weights)                                     JSON schema of all weights known now

Kinds belong to a family, a class below `Kind` with ``family=True``, in which they are registered by
being defined. A table names its kind by the key `kind`; a bare string is a kind without parameters.
"""

import inspect
from abc import ABCMeta
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from .annotations import AnyObject, Parameters, PassedOn, TypeHint, UserValue
from .calls import readable, refuse_abstract, refuse_wrong_names
from .forms import Call, Form, nearest, shown
from .identity import digest, is_cached, same
from .libraries import of_library
from .parameters import parameters_of, signature_of
from .read_only import read_only

if TYPE_CHECKING:
    from .descriptions import KindOf

NEAR_MISS = 0.88  # similarity of names that is taken for a misspelling


class Registry(dict[str, Any]):
    """The kinds of a family by name; its digest is constant, as names change no computation."""

    def identity(self) -> None:
        """None: the contents of a registry do not enter digests."""


class KindType(ABCMeta):
    """Metaclass of kinds: completion offers the names of their objects, `help` their parameters."""

    @property
    def __signature__(cls) -> inspect.Signature:
        return readable(signature_of(cls).replace(return_annotation=inspect.Signature.empty))

    def __dir__(cls) -> list[str]:
        shown = [name for name in super().__dir__() if name not in internal_names(cls)]
        return sorted({*shown, *parameters_of(cls)})


def internal_names(cls: type) -> set[str]:
    """Names that only the package and authors of kinds need, which completion leaves out."""
    entries = (vars(base).get("_internal", "") for base in cls.__mro__)
    return {name for text in entries for name in text.split()}


@dataclass_transform(eq_default=False)
class Kind(metaclass=KindType):
    """Base of all kinds.

    A subclass is a frozen dataclass of its annotations. One that has an ``__init__`` of its own
    keeps it, and sets its attributes by `_set`. Either way the parameters of ``__init__`` are those
    of the kind, checked as their annotations say: see `forms`.

    A class that is defined again in the same module, as in a notebook, replaces the one before.
    Names that begin with an underscore, and abstract classes, are not registered.

    Raises
    ------
    TypeError
        If another module has defined a kind of this name in the family, or if a parameter has the
        name of an inherited attribute that the class option ``hides`` does not list.
    """

    family: ClassVar[type["Kind"]]
    kinds: ClassVar[dict[str, type["Kind"]]]
    annotation_forms: ClassVar[dict[TypeHint, Form]] = {}  # of annotations with a special meaning
    default_kind: ClassVar[str | None] = None  # the kind of a table without a key `kind`
    function_advice: ClassVar[str] = ""  # advice if a function is given in place of a kind
    derivation_advice: ClassVar[str] = ""  # names the classes to derive from
    has_table: ClassVar[bool] = True  # whether a table describes it; else its repr does
    is_absent: ClassVar[bool] = False  # whether it represents an unknown kind of a file
    _elsewhere: ClassVar[dict[str, str]] = {}  # advice, by parameter of another class
    plain_class: ClassVar[bool] = False  # True for ordinary classes, False for dataclasses
    # names that only the package and authors of kinds need, which completion leaves out
    _internal: ClassVar[str] = (
        "annotation_forms as_form default_kind derivation_advice described family function_advice "
        "has_table identity stored_kind is_absent kinds plain_class resolve validate"
    )

    def __init_subclass__(
        cls, family: bool = False, hides: tuple[str, ...] = (), **options: PassedOn
    ) -> None:
        """Make the class a frozen dataclass, and register it by its name unless abstract."""
        super().__init_subclass__(**options)
        _refuse_near_miss(cls)
        if _needs_init(cls):
            for name in _fields(cls):
                if name not in hides and (hidden := _hidden(cls, name)):
                    raise TypeError(
                        f"{cls.__name__} has a parameter {name}, which would hide {hidden}: choose "
                        f"another name, such as {name}_."
                    )
            dataclass(frozen=True, eq=False, repr=False)(cls)
            del cls.__setattr__, cls.__delattr__  # use those of Kind
        if family:
            cls.family, cls.kinds = cls, Registry()
            if cls.default_kind != cls.__name__:
                return
        if hasattr(cls, "family") and cls.__name__[0] != "_" and not inspect.isabstract(cls):
            registered = cls.kinds.get(cls.__name__, cls)
            if registered.__module__ != cls.__module__:
                raise TypeError(
                    f"{registered.__module__} defines a {cls.family.__name__} of the name "
                    f"{cls.__name__} already: {cls.__module__} has to choose another name."
                )
            try:
                parameters_of(cls)
            except (NameError, TypeError) as error:
                raise TypeError(f"{cls.__name__} cannot be read: {error}") from error
            cls.kinds[cls.__name__] = cls

    @classmethod
    def as_form(cls) -> "KindOf":
        """The form of parameters that are kinds of this class."""
        from .descriptions import KindOf

        return KindOf(cls)

    def __new__(cls, *_arguments: PassedOn, **keywords: PassedOn) -> Self:
        """Refuse abstract classes, unknown keywords, and attributes without annotation."""
        for name in keywords:
            value = vars(cls).get(name)
            if (
                isinstance(value, bool | int | float | str)
                and name not in parameters_of(cls)
                and not of_library(cls.__module__)
            ):
                hint = f"{name}: {type(value).__name__} = {value!r}"
                raise TypeError(f"{cls.__name__} has no parameter {name}: write `{hint}` in it.")
        refuse_abstract(cls)
        refuse_wrong_names(cls, _arguments, keywords)
        return super().__new__(cls)

    def __reduce__(self) -> tuple[object, ...]:
        return object.__new__, (type(self),), self.__getstate__()

    def __setattr__(self, name: str, value: UserValue) -> None:
        """Raise AttributeError, for kinds are frozen, but for classes outside the registry."""
        if not self.plain_class:
            cls = type(self)
            if name in parameters_of(cls):
                advice = f"; use replace({name}=...)."
            elif hasattr(self, name) or of_library(cls.__module__):
                advice = f" and has no parameter {name}{nearest(name, parameters_of(cls))}."
            else:
                advice = f"; declare `{name}: float` in the class, without __init__, and it is set."
            raise AttributeError(f"{cls.__name__} is frozen{advice}")
        object.__setattr__(self, name, value)

    def __post_init__(self) -> None:
        for name, parameter in parameters_of(type(self)).items():
            self._set(**{name: parameter.read(getattr(self, name), name, Call())})
        self.validate()

    def _set(self, **values: UserValue) -> None:
        """Set attributes of a frozen object; arrays become read-only."""
        for name, value in values.items():
            object.__setattr__(self, name, read_only(value))

    def __getstate__(self) -> Parameters:
        """The attributes without cached properties, which another thread may be computing."""
        entries = vars(self).copy().items()
        return {name: value for name, value in entries if not is_cached(type(self), name)}

    def __setstate__(self, state: Parameters) -> None:
        self._set(**state)

    def validate(self) -> None:
        """Raise ValueError or TypeError where parameters do not fit together; by default never."""

    @property
    def described(self) -> Parameters:
        """The parameters by their names."""
        return {name: getattr(self, name) for name in parameters_of(type(self))}

    def replace(self, **changes: PassedOn) -> Self:
        """A copy with other values of some parameters."""
        return type(self)(**{**self.described, **changes})

    def resolve(self, sizes: AnyObject) -> AnyObject:
        """The kind with numbers for all parameters that depend on the state or on files.

        Parameters
        ----------
        sizes : StateSizes
            Sizes of the state; see `models.parameters`.

        Raises
        ------
        MeanfieldError
            If it cannot be evaluated, because a file did not store it.
        ValueError, StorageError
            If the numbers are missing or inconsistent.
        """
        if not self.has_table:  # its arguments may not be attributes
            return self
        kinds = {name: kind for name, kind in self.described.items() if isinstance(kind, Kind)}
        resolved = {name: kind.resolve(sizes) for name, kind in kinds.items()}
        changes = {name: new for name, new in resolved.items() if new is not kinds[name]}
        return self.replace(**changes) if changes else self

    def stored_kind(self) -> "Kind":
        """The kind that files store instead of this one: by default the kind itself."""
        return self

    def identity(self) -> object:
        """The data that `digest` reads: parameters, and attributes of classes defined elsewhere."""
        if of_library(type(self).__module__):
            return self.described
        return {**self.__getstate__(), **self.described}  # a user's class may have more attributes

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and same(self, other)

    def __hash__(self) -> int:
        try:
            return hash(digest(self))
        except TypeError:  # no digest: it equals only itself
            return id(self)

    def __dir__(self) -> list[str]:
        """Names that completion offers: without those that only the package needs."""
        internal = internal_names(type(self))
        return [name for name in object.__dir__(self) if name not in internal]

    def __repr__(self) -> str:
        arguments = [
            f"{name}={shown(value)}"
            for name, value in self.described.items()
            if not parameters_of(type(self))[name].is_default(value)
        ]
        return f"{type(self).__name__}({', '.join(arguments)})"


def _refuse_near_miss(cls: type[Kind]) -> None:
    """Raise TypeError for a class attribute whose name is nearly that of an inherited one."""
    inherited = {name for base in cls.__mro__[1:] for name in vars(base) if name[0] != "_"}
    parameters = _fields(cls)
    for name, value in vars(cls).items():
        is_constant = isinstance(value, bool | int | float | str)
        if is_constant and name[0] != "_" and name not in inherited and name not in parameters:
            from difflib import get_close_matches

            similar = get_close_matches(name, inherited, 1, NEAR_MISS)
            if similar:
                raise TypeError(
                    f"{cls.__name__} sets {name}, which has no effect; did you mean {similar[0]}?"
                )


def _needs_init(cls: type[Kind]) -> bool:
    """Whether `dataclass` makes ``__init__``: there are new annotations, or no base defines it."""
    if cls.plain_class or "__init__" in cls.__dict__:
        return False
    if _fields(cls):
        return True
    return next(base for base in cls.__mro__[1:] if "__init__" in base.__dict__) is object


def _fields(cls: type[Kind]) -> list[str]:
    """The parameters that a class adds by annotations."""
    hints = inspect.get_annotations(cls).items()
    return [name for name, hint in hints if "ClassVar" not in str(hint)]


def _hidden(cls: type[Kind], name: str) -> str:
    """A description of the inherited name that a parameter would hide; empty if there is none."""
    if name in ("kind", "self"):
        return f"the word {name} of tables and methods"
    for base in cls.__mro__[1:]:
        if is_dataclass(base) and name in (field.name for field in fields(base)):
            return ""
        if name in vars(base):
            return f"{base.__name__}.{name}"
    return ""


def ancestor(kind: type, classes: AnyObject) -> AnyObject:
    """The first class in the method resolution order of `kind` that is in `classes`, or None."""
    return next((base for base in kind.__mro__ if base in classes), None)
