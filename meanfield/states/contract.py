"""What a state is: a measure in one representation, which holds named arrays."""

import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from ..core.checks import fitting
from ..core.dual import Dual
from ..core.identity import digest
from ..core.kinds import Kind, signature_of
from ..core.provided import FIGURES, Rows, Shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Arrays = dict[str, tuple[tuple[str, ...], np.ndarray]]  # name -> names of the axes, values


def member_dims(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the axes of an ensemble, or of replicas."""
    return ("member",) if len(shape) == 1 else tuple(f"member_{i}" for i in range(len(shape)))


class Start(Kind, family=True):
    """What a run may begin with: a state, or a law that makes one on a space."""

    @abstractmethod
    def begin(self, space: Any) -> "State":
        """The state that a run begins with.

        Parameters
        ----------
        space : Space or None
            The space of a configuration, where it has one.
        """


class Held(NamedTuple):
    """An array of floats that states hold, in the annotation of an attribute that may be None.

    Attributes
    ----------
    words : str
        Its long name, for figures and files.
    axes : tuple of str
        Names of its axes, which come after those of the ensemble.
    fixed : bool
        Whether it is kept once for a whole run if it is equal in all states.
    """

    words: str
    axes: tuple[str, ...] = ()
    fixed: bool = False


class State(Start, Shown):
    """A measure in one representation, or an ensemble of them.

    A state of one's own is an ordinary class with an ``__init__``. Either the
    annotations of its arrays say that they are `Held`, and all else is in `header`; or it writes
    `arrays`, and what that returns has the names of the parameters of ``__init__``, or `of_arrays`
    is written too. A `Motion` says how models move it.

    Attributes
    ----------
    held : dict
        The arrays that are `Held`, by name.
    words : dict
        Long names of the arrays, for figures and files.
    fixed : tuple of str
        Arrays that are kept once for a whole run if they are equal in all its states.
    replicated : bool
        Whether axes of its own, which come before those of the model, are independent replicas.
    families : dict
        The families of kinds in its `header` that are no spaces, by name: how files are read.
    takes_noise : bool
        Whether random numbers move it where the model has noise; a run then has a seed.
    """

    by_hand = True
    held: ClassVar[dict[str, Held]] = {}
    words: ClassVar[dict[str, str]] = {}
    fixed: ClassVar[tuple[str, ...]] = ()
    replicated: ClassVar[bool] = False
    families: ClassVar[dict[str, Any]] = {}
    takes_noise: ClassVar[bool] = False
    _internal: ClassVar[str] = (
        "begin broadcast card check_arrays computed families fixed header held of_arrays "
        "replicated size_in_words stacked takes_noise told unstacked with_members words "
        "directed_masses sum_of_inner_products "
        "chart covariance inner_product logit mean_direction negative_mass of_root square w2_error"
    )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, hint in inspect.get_annotations(cls).items():
            for held in getattr(hint, "__metadata__", ()):
                cls.held, cls.words = {**cls.held, name: held}, {**cls.words, name: held.words}
                cls.fixed = (*cls.fixed, name) if held.fixed else cls.fixed

    @abstractmethod
    def __init__(self, *values: Any):
        """Check what the state is made of."""

    @classmethod
    def computed(cls, *arrays: Any, **others: Any) -> Self:
        """The state that holds these arrays, in the order of `held` or by name, unchecked."""
        given = dict.fromkeys(cls.held) | dict(zip(cls.held, arrays, strict=False)) | others
        for name in cls.held:
            if given[name] is not None and not isinstance(given[name], Dual):
                given[name] = np.array(given[name], dtype=float, order="C")
        state = object.__new__(cls)
        state._set(**given)
        return state

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the ensemble, or of the replicas; () for a single state."""
        for name, held in self.held.items():
            return getattr(self, name).shape[: -len(held.axes) or None]
        return ()

    @property
    def dimension(self) -> int | None:
        """The dimension d of its points, where it has one."""
        return None

    @property
    def tokens(self) -> Any:
        """The number of tokens, or None where there are none."""
        return None

    @property
    def size_in_words(self) -> str:
        """How much it holds, for tables: "256 tokens"."""
        return repr(self)

    def told(self) -> dict[str, str]:
        """The rows of its table by name: sizes and ranges of its arrays."""
        arrays = {name: np.asarray(values) for name, (_, values) in self.arrays().items()}
        return {self.words.get(name, name): _in_words(values) for name, values in arrays.items()}

    def with_members(self, axes: int) -> Self:
        """The state with room for that many axes of an ensemble of models, after its own."""
        if not (self.replicated and axes and self.shape):
            return self
        return self._each(lambda array, own: array.reshape(*self.shape, *(1,) * axes, *own))

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        """The same state in every member of this shape, to which its own broadcasts."""
        return self._each(lambda array, own: np.broadcast_to(array, (*shape, *own)))

    @classmethod
    def stack(cls, states: Sequence[Self]) -> Self:
        """An ensemble of these states, along a new first axis.

        Raises
        ------
        ValueError
            If they hold arrays of other shapes, or live elsewhere.
        """
        first, *others = states
        held = [{n: v for n in cls.held if (v := getattr(one, n)) is not None} for one in states]
        forms = [{name: array.shape for name, array in arrays.items()} for arrays in held]
        same = all(form == forms[0] for form in forms)
        same = same and all(one.header() == first.header() for one in others)
        fitting("states", forms, "states with arrays of the same shapes, of one space", same)
        arrays = {name: np.stack([one[name] for one in held]) for name in held[0]}
        return cls.computed(**arrays, **first.header())

    def __getitem__(self, index) -> Self:
        """One of the replicas, or of the members, or some of them.

        Raises
        ------
        IndexError
            For an index into more than their axes, or those that are not there.
        """
        if not self.shape:
            names = ", ".join(self.arrays())
            raise TypeError(
                f"This is a single state without members. Its numbers are the arrays {names}."
            )
        try:
            numbers = np.arange(math.prod(self.shape)).reshape(self.shape)[index]
        except IndexError as error:
            raise IndexError(
                f"{'Replicas' if self.replicated else 'Members'} alone are indexed, an array of "
                f"shape {self.shape}: {error}. Their numbers are the arrays "
                f"{', '.join(self.arrays())}."
            ) from None
        chosen = np.unravel_index(numbers, self.shape)
        return self._each(lambda array, _: array[chosen])

    def _each(self, change: Callable[[np.ndarray, tuple[int, ...]], np.ndarray]) -> Self:
        """The state with other arrays: `change` takes each, and its shape in one member."""
        held = {name: getattr(self, name) for name in self.held}
        changed = {
            name: None if array is None else change(array, array.shape[len(self.shape) :])
            for name, array in held.items()
        }
        return self.computed(**changed, **self.header())

    def plot(self, kind: str = "overview", **options: Any) -> "Figure":
        """A matplotlib figure of the state, of a kind that `plotting.plot` lists.

        Raises
        ------
        ValueError, TypeError
            If there is no such kind for this state, or for an option that it does not have.
        """
        return FIGURES["portrait"](self, kind, **options)

    def card(self) -> tuple[str, Rows, Callable[[], Any]]:
        return repr(self), self.told().items(), self.plot

    def arrays(self) -> Arrays:
        """What the state holds, by name: names of the axes, and values."""
        dims = member_dims(self.shape)
        return {
            name: ((*dims, *held.axes), getattr(self, name))
            for name, held in self.held.items()
            if getattr(self, name) is not None
        }

    def header(self) -> dict[str, Any]:
        """What else it is made of: plain data and kinds, such as its space."""
        return {}

    @classmethod
    def of_arrays(cls, *values: Any, **held: Any) -> Self:
        """The state that holds these arrays, and what stands in its `header`, bit for bit."""
        return cls.computed(*values, **held) if cls.held else cls(*values, **held)

    @classmethod
    def stacked(cls, states: Sequence[Self]) -> Arrays:
        """The arrays of the states of a run, with an axis "t" where they may differ."""
        found: Arrays = {}
        for name, (dims, first) in states[0].arrays().items():
            each = [state.arrays()[name][1] for state in states]
            if name in cls.fixed and all(np.array_equal(values, first) for values in each):
                found[name] = dims, first
            else:
                found[name] = ("t", *dims), np.stack(each)
        return found

    @classmethod
    def unstacked(cls, arrays: Arrays, header: dict[str, Any]) -> list[Self]:
        """The states of a run that `stacked` stacked."""
        count = next(len(values) for dims, values in arrays.values() if dims[:1] == ("t",))
        return [
            cls.of_arrays(
                **{n: v[i] if dims[:1] == ("t",) else v for n, (dims, v) in arrays.items()},
                **header,
            )
            for i in range(count)
        ]

    def check_arrays(self) -> None:
        """Raise TypeError unless its arrays, as files keep them, and its header give it back."""
        try:
            again = self.unstacked(self.stacked([self]), self.header())[0]
            named = all(len(dims) == np.ndim(values) for dims, values in self.arrays().values())
            if named and digest(again) == digest(self):
                return
            problem = f"those that give {again!r}" if named else "axes without names"
        except Exception as error:
            problem = repr(error)
        name, keys = type(self).__name__, ", ".join(signature_of(type(self)).parameters)
        raise TypeError(
            f"{name}.arrays() must return what makes the {name} again, by the names of the "
            "parameters of __init__, each with the names of its axes: {name: (axes, values)} for "
            f"{keys}; got {problem}."
        )

    def begin(self, space: Any) -> "State":
        if space is not None:
            raise ValueError(f"{type(self).__name__} has no use for [space]; leave that table out.")
        return self

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def identity(self) -> Any:
        """What `digest` reads of it: its arrays and its header."""
        return [self.header(), {name: values for name, (_, values) in self.arrays().items()}]


def _in_words(values: np.ndarray) -> str:
    """A number, or how many there are and between which they lie."""
    if not values.ndim:
        return f"{values:g}"
    size = " × ".join(map(str, values.shape)) + " numbers"
    if not values.size or values.dtype.kind not in "iuf":
        return size
    least, largest = values.min(), values.max()
    ends = f"each {least:.6g}" if least == largest else f"from {least:.6g} to {largest:.6g}"
    return f"{size}, {ends}"
