"""The contract of states: a state is a measure in one representation, made of named arrays."""

import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from ..core.annotations import ArrayIndex, FromAbove, OfLibrary, Parameters, PassedOn, Values
from ..core.checks import require
from ..core.dual import Dual
from ..core.identity import digest
from ..core.kinds import Kind
from ..core.parameters import signature_of
from ..core.provided import FIGURES, Rows, Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Arrays = dict[str, tuple[tuple[str, ...], np.ndarray]]  # name -> names of the axes, values


def member_dims(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the axes of an ensemble, or of replicas."""
    return ("member",) if len(shape) == 1 else tuple(f"member_{i}" for i in range(len(shape)))


class Start(Kind, family=True):
    """The start of a run: a state, or a law that makes one on a space."""

    @abstractmethod
    def begin(self, space: FromAbove) -> "State":
        """The state that a run begins with.

        Parameters
        ----------
        space : Space or None
            The space of a configuration, where it has one.
        """


class StatePart(NamedTuple):
    """Annotation by which an attribute of a state, floats or None, becomes one of its arrays.

    Attributes
    ----------
    words : str
        Its long name, for figures and files.
    axes : tuple of str
        Names of its axes, which come after those of the ensemble.
    fixed : bool
        Whether a run stores it once if it is equal in all states.
    """

    words: str
    axes: tuple[str, ...] = ()
    fixed: bool = False


MEASURED = frozenset(
    "order_parameter mean_cosine speed cluster_count interaction_energy free_energy dissipation "
    "effective_rank".split()
)  # observables that are looked for among the attributes of states and runs


class State(Start, Shown):
    """A measure in one representation, or an ensemble of them.

    A user's state is an ordinary class with an ``__init__``. Either its arrays are annotated with
    `StatePart`, and everything else is in `header`; or it defines `arrays`, whose names are the
    parameters of ``__init__``, or it defines `of_arrays` too. A `Motion` says how models move it.

    Attributes
    ----------
    parts : dict
        The arrays annotated with a `StatePart`, by name.
    words : dict
        Long names of the arrays, for figures and files.
    fixed : tuple of str
        Arrays that a run stores once if they are equal in all its states.
    replicated : bool
        Whether axes of its own, which come before those of the model, are independent replicas.
    families : dict
        Families of the kinds in its `header` other than spaces, by name; for reading files.
    takes_noise : bool
        Whether random numbers move it where the model has noise; a run then has a seed.
    """

    plain_class = True
    parts: ClassVar[dict[str, StatePart]] = {}
    words: ClassVar[dict[str, str]] = {}
    fixed: ClassVar[tuple[str, ...]] = ()
    replicated: ClassVar[bool] = False
    families: ClassVar[dict[str, Any]] = {}
    takes_noise: ClassVar[bool] = False
    _internal: ClassVar[str] = (
        "begin broadcast card check_arrays computed families fixed header parts of_arrays "
        "replicated size_in_words stacked takes_noise facts unstacked with_members words "
        "directed_masses sum_of_inner_products "
        "chart covariance inner_product logit mean_direction negative_mass of_root square w2_error"
    )

    def __init_subclass__(cls, **options: PassedOn) -> None:
        super().__init_subclass__(**options)
        for base in cls.__bases__:
            cls.words = {**getattr(base, "words", {}), **cls.words}
        for name, hint in inspect.get_annotations(cls).items():
            for part in getattr(hint, "__metadata__", ()):
                cls.parts, cls.words = {**cls.parts, name: part}, {**cls.words, name: part.words}
                cls.fixed = (*cls.fixed, name) if part.fixed else cls.fixed

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, for an observable with the function that measures it."""
            if name in MEASURED and not hasattr(type(self), name):
                raise AttributeError(
                    f"{type(self).__name__} has no {name}: mf.measure(model, state) has the "
                    "observables of a state, and run.observables those of a run.",
                    name=name,
                )
            return object.__getattribute__(self, name)

    @abstractmethod
    def __init__(self, *values: Values):
        """Check the arguments and set the attributes."""

    @classmethod
    def computed(cls, *arrays: Values, **fields: Values) -> Self:
        """The state of these arrays, in the order of `parts` or by name, unchecked."""
        values = dict.fromkeys(cls.parts) | dict(zip(cls.parts, arrays, strict=False)) | fields
        for name in cls.parts:
            if values[name] is not None and not isinstance(values[name], Dual):
                values[name] = np.array(values[name], dtype=float, order="C")
        state = object.__new__(cls)
        state._set(**values)
        return state

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the ensemble, or of the replicas; () for a single state."""
        for name, part in self.parts.items():
            return getattr(self, name).shape[: -len(part.axes) or None]
        return ()

    @property
    def dimension(self) -> int | None:
        """The dimension d of its points, where it has one."""
        return None

    @property
    def tokens(self) -> int | np.ndarray | None:
        """The number of tokens, or None where there are none."""
        return None

    @property
    def size_in_words(self) -> str:
        """The size as text, for tables: "256 tokens"."""
        return repr(self)

    def facts(self) -> dict[str, str]:
        """Rows of its table in notebooks, by name: sizes and ranges of its arrays."""
        arrays = {name: np.asarray(values) for name, (_, values) in self.arrays().items()}
        return {self.words.get(name, name): _in_words(values) for name, values in arrays.items()}

    def with_members(self, axes: int) -> Self:
        """The state with `axes` axes of length 1 after its replicas, for an ensemble of models."""
        if not (self.replicated and axes and self.shape):
            return self
        return self._mapped(lambda array, form: array.reshape(*self.shape, *(1,) * axes, *form))

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        """The state broadcast to an ensemble of this shape."""
        return self._mapped(lambda array, form: np.broadcast_to(array, (*shape, *form)))

    @classmethod
    def stack(cls, states: Sequence[Self]) -> Self:
        """An ensemble of these states, along a new first axis.

        Raises
        ------
        ValueError
            If their arrays differ in shape, or their spaces differ.
        """
        first, *remaining = states
        tables = [{n: v for n in cls.parts if (v := getattr(s, n)) is not None} for s in states]
        forms = [{name: array.shape for name, array in arrays.items()} for arrays in tables]
        are_alike = all(form == forms[0] for form in forms)
        are_alike = are_alike and all(state.header() == first.header() for state in remaining)
        require("states", forms, "states with arrays of the same shapes, of state space", are_alike)
        arrays = {name: np.stack([table[name] for table in tables]) for name in tables[0]}
        return cls.computed(**arrays, **first.header())

    def __getitem__(self, index: ArrayIndex) -> Self:
        """A replica, or a member, or several of them.

        Raises
        ------
        IndexError
            For too many indices, and for indices out of range.
        """
        if not self.shape:
            names = ", ".join(self.arrays())
            raise TypeError(
                f"This is a single state without members. Its numbers are the arrays {names}."
            )
        try:
            numbers = np.arange(math.prod(self.shape)).reshape(self.shape)[index]
        except IndexError as error:
            noun, names = "Replicas" if self.replicated else "Members", ", ".join(self.arrays())
            reason = f"{noun} alone are indexed, an array of shape {self.shape}: {error}"
            raise IndexError(f"{reason}. Their numbers are the arrays {names}.") from None
        member_indices = np.unravel_index(numbers, self.shape)
        return self._mapped(lambda array, _: array[member_indices])

    def _mapped(self, change: Callable[[np.ndarray, tuple[int, ...]], np.ndarray]) -> Self:
        """The state with each array replaced by change(array, shape of one member)."""
        arrays = {name: getattr(self, name) for name in self.parts}
        changed_arrays = {
            name: None if array is None else change(array, array.shape[len(self.shape) :])
            for name, array in arrays.items()
        }
        return self.computed(**changed_arrays, **self.header())

    def plot(self, kind: str = "overview", **options: PassedOn) -> "Figure":
        """A matplotlib figure of the state, of a kind that `plotting.plot` lists.

        Raises
        ------
        ValueError, TypeError
            If there is no such kind for this state, or for an option that it does not have.
        """
        return FIGURES["portrait"](self, kind, **options)

    def card(self) -> tuple[str, Rows, Callable[[], OfLibrary]]:
        return repr(self), self.facts().items(), self.plot

    def arrays(self) -> Arrays:
        """Arrays of the state by name: names of the axes, and values."""
        dims = member_dims(self.shape)
        return {
            name: ((*dims, *part.axes), getattr(self, name))
            for name, part in self.parts.items()
            if getattr(self, name) is not None
        }

    def header(self) -> Parameters:
        """The other parts of the state: plain data and kinds, such as its space."""
        return {}

    @classmethod
    def of_arrays(cls, *values: Values, **parts: Values) -> Self:
        """The state with these arrays and the entries of its `header`, bit for bit."""
        return cls.computed(*values, **parts) if cls.parts else cls(*values, **parts)

    @classmethod
    def stacked(cls, states: Sequence[Self]) -> Arrays:
        """The arrays of the states of a run, with an axis "t" where they may differ."""
        arrays: Arrays = {}
        for name, (dims, first) in states[0].arrays().items():
            each = [state.arrays()[name][1] for state in states]
            if name in cls.fixed and all(np.array_equal(values, first) for values in each):
                arrays[name] = dims, first
            else:
                arrays[name] = ("t", *dims), np.stack(each)
        return arrays

    @classmethod
    def unstacked(cls, arrays: Arrays, header: Parameters) -> list[Self]:
        """The states of a run, from the arrays of `stacked` and the header of the states."""
        count = next(len(values) for dims, values in arrays.values() if dims[:1] == ("t",))
        rows = (
            {n: v[i] if dims[:1] == ("t",) else v for n, (dims, v) in arrays.items()}
            for i in range(count)
        )
        return [cls.of_arrays(**row, **header) for row in rows]

    def check_arrays(self) -> None:
        """Raise TypeError unless its arrays, as in files, and its header restore the state."""
        try:
            restored = self.unstacked(self.stacked([self]), self.header())[0]
            valid = all(len(dims) == np.ndim(values) for dims, values in self.arrays().values())
            if valid and digest(restored) == digest(self):
                return
            problem = f"those that give {restored!r}" if valid else "axes without names"
        except Exception as error:
            problem = repr(error)
        name, keys = type(self).__name__, ", ".join(signature_of(type(self)).parameters)
        raise TypeError(
            f"{name}.arrays() must return what makes the {name} again, by the names of the "
            "parameters of __init__, each with the names of its axes: {name: (axes, values)} for "
            f"{keys}; got {problem}."
        )

    def begin(self, space: FromAbove) -> "State":
        if space is not None:
            raise ValueError(f"{type(self).__name__} has no use for [space]; leave that table out.")
        return self

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def identity(self) -> object:
        """The parts that `digest` reads: arrays and header."""
        return [self.header(), {name: values for name, (_, values) in self.arrays().items()}]


def _in_words(values: np.ndarray) -> str:
    """A description of an array: its only number, or its shape and range."""
    if not values.ndim:
        return f"{values:g}"
    size = " × ".join(map(str, values.shape)) + " numbers"
    if not values.size or values.dtype.kind not in "iuf":
        return size
    lowest, largest = values.min(), values.max()
    ends = f"each {lowest:.6g}" if lowest == largest else f"from {lowest:.6g} to {largest:.6g}"
    return f"{size}, {ends}"
