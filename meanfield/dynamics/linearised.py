"""Linearised motions: the coordinates of a state together with p tangents.

The coordinates y and their changes dy form one stack Y (1 + p, ...), whose velocity is
(v, Dv(y) dy + dv/dparameter). A step of the stack by an explicit scheme is then the step of the
state and, exactly, its derivatives. The motion computes this velocity itself, with `Dual` arrays as
coordinates and parameters.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from ..core.annotations import MovedState, Observations, TangentNames, UserValue, Values
from ..core.checks import finite_array, require
from ..core.differences import derivative_at_zero
from ..core.dual import Array, Dual, NoDerivative, changes_of, constant
from ..states.contract import State
from ..steppers import Splitting

if TYPE_CHECKING:
    from .motion import Motion

Changes = Sequence[Mapping[str, Array] | None]  # of arrays of a state, for each tangent, by name
# The number of degrees of freedom, and a function rng -> changes in a random direction.
TangentSpace = tuple[int, Callable[[Generator], Mapping[str, Array]]]

OFF_TANGENT = 1e-9  # relative rounding error up to which a direction is tangential


class LinearisedMotion:
    """A motion and its derivatives along tangents.

    Parameters
    ----------
    motion : Motion
    names : sequence of (str or None)
        The name of the parameter of each tangent; None for a tangent in a direction.
    directions : sequence of (mapping or None)
        The change of the initial state for each tangent, as `Motion.direction` returns it; None
        for a tangent by a parameter.
    """

    def __init__(
        self,
        motion: "Motion",
        names: TangentNames,
        directions: Changes,
    ):
        """Linearise along parameters `names` and changes `directions` of the state."""
        self.motion, self.names, self.directions = motion, tuple(names), tuple(directions)
        state = motion.state_along(motion.like, self.directions)
        self._moving = motion.along(self.names, state)

    @property
    def changes_coordinates(self) -> bool:
        return self.motion.changes_coordinates

    def enter(self, start: float, end: float) -> None:
        """`enter` of the motion: restrict times to a span between two breakpoints."""
        self.motion.enter(start, end)
        self._moving.enter(start, end)

    def first(self, state: MovedState) -> Array:
        """The stack (1 + p, ...) at the initial state."""
        initial = self.motion.state_along(state, self.directions)
        return stack_of(self._moving.coordinates(initial), self.names)

    def velocity(self, Y: Array, t: float) -> Array:
        """Rates of change of the stack."""
        return stack_of(self._moving.velocity(Dual.of_stack(Y), t), self.names)

    def velocity_from(self, Y: Array, t: float, value: Array, intermediate: Array | None) -> Array:
        """The rates of the stack, from the velocity `value` of the state, computed before.

        `intermediate` are the intermediate results of that velocity.
        """
        value = value.reshape(Y[0].shape)
        rates = self._moving.velocity_from(Dual.of_stack(Y), t, value, intermediate)
        return stack_of(rates, self.names)

    def changes(self, Y: Array) -> list[dict[str, Array]]:
        """The changes of the arrays of the state, by name, for each tangent."""
        try:
            state, count = self._moving.state_of(Dual.of_stack(Y)), len(self.names)
        except NoDerivative:  # states of a user's class have plain arrays
            return [self._change(Y[0], dy) for dy in Y[1:]]
        arrays = {name: getattr(state, name) for name in self.motion.tangent_arrays}
        rows = {n: changes_of(v, count) for n, v in arrays.items() if v is not None}
        return [{name: row[a].copy() for name, row in rows.items()} for a in range(count)]

    def _change(self, y: Array, dy: Array) -> dict[str, Array]:
        """The changes of the arrays of a state for a change dy of y, by finite differences."""

        def array(name: str, h: float) -> Array:
            return np.asarray(getattr(self.motion.state_of(y + h * dy), name))

        names = self.motion.tangent_arrays
        return {name: derivative_at_zero(partial(array, name), name) for name in names}

    def merged(self, Y: Array, labels: np.ndarray) -> tuple["LinearisedMotion", Array]:
        """The motion and the stack after merging the rows with equal labels."""
        state, y = self._moving.merged(Dual.of_stack(Y), labels)
        motion = self.motion.with_state(state)
        return LinearisedMotion(motion, self.names, [None] * len(self.names)), y.stack

    @property
    def members(self) -> tuple[int, ...]:
        """Shape of the replicas."""
        return self.motion.like.shape

    def vectors(self, Y: Array) -> Array:
        """The tangents as vectors with a norm, (members, p, N)."""
        return self._moving.tangent_vectors(Dual.of_stack(Y))

    def measured(
        self, state: MovedState, change: Mapping[str, Array], name: str | None, t: float
    ) -> Observations:
        """Derivatives of observables along the change of a state.

        `name` is the parameter that changes at the rate 1 with it, or None.
        """
        motion = self.motion.along([name], self.motion.state_along(state, [change]))
        with np.errstate(divide="ignore", invalid="ignore"):
            observables = motion.smooth_observables(motion.like, t)
        return {name: changes_of(value, 1)[0] for name, value in observables.items()}

    def projected(self, Y: Array) -> Array:
        """`projected` of the motion, and its derivative."""
        return stack_of(self._moving.projected(Dual.of_stack(Y)), self.names)

    def step(self, scheme: Splitting, Y: Array, t: float, dt: float) -> Array:
        """The stack after one step of a splitting."""
        stepped = self._moving.step(scheme, Dual.of_stack(Y), t, dt, None)  # type: ignore[arg-type]
        return stack_of(stepped, self.names)

    def relative_error(self, error: Array, Y: Array) -> float:
        """0: the steps are prescribed by the run, without error control."""
        return 0.0


def stack_of(array: Values, names: TangentNames) -> Array:
    """The stack (1 + p, ...) of a `Dual` array, or of a constant one, whose changes are 0."""
    return (array if isinstance(array, Dual) else constant(array, len(names))).stack


def checked_changes(
    direction: UserValue, shapes: Mapping[str, tuple[int, ...]], alternatives: str = ""
) -> dict[str, Array]:
    """Changes of the arrays of a state, by name, broadcast to these shapes.

    Raises TypeError or ValueError unless `direction` is a mapping of such names to finite numbers
    of shapes that broadcast; `alternatives` are other accepted values, for the message.
    """
    expected = f"names of parameters{alternatives}, or changes by the names {[*shapes]}"
    fits = isinstance(direction, Mapping) and {*direction} <= {*shapes}
    require("tangents", direction, expected, fits, TypeError)
    changes = {}
    for name, value in direction.items():
        array, shape = finite_array(f"tangents: the change of {name}", value), shapes[name]
        try:
            fits = array.shape[-1:] == shape[-1:]
            changes[name] = np.broadcast_to(array, shape) if fits else array
        except ValueError:
            fits = False
        require(f"The change of {name}", array.shape, f"of shape {shape}", fits)
    return changes


def check_vanishes(
    expected: str, defect: Array, change: Array, advice: str = "", tolerance: float = OFF_TANGENT
) -> None:
    """Raise ValueError, "tangents must be `expected`", unless `defect` / change is 0."""
    largest, size = np.abs(defect).max(), np.abs(change).max()
    fits = bool(largest <= tolerance * size)
    require("tangents", float(largest), expected, fits, advice=advice)


def check_masses(changes: Mapping[str, Array]) -> None:
    """Raise ValueError unless changes of masses, where there are any, have the sum 0."""
    if "masses" in changes:
        total = changes["masses"].sum(axis=-1)
        check_vanishes("changes of masses of sum 0", total, changes["masses"])


def state_along(state: State, changes: Changes, names: Sequence[str]) -> MovedState:
    """The state with `Dual` arrays of these names.

    `changes` has, for each tangent, the changes of arrays by name, or None for no change.
    """
    moved = object.__new__(type(state))
    moved._set(**state.__getstate__())
    for name in names:
        value = getattr(state, name)
        if value is not None:
            rows = [np.zeros(value.shape) if h is None else h.get(name, 0.0) for h in changes]
            full = [np.broadcast_to(row, value.shape) for row in rows]
            moved._set(**{name: Dual(value, np.reshape(full, (len(rows), *value.shape)))})
    return moved
