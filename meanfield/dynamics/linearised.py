"""Linearised motions: coordinates that move, together with tangents of them.

Coordinates of a state and its tangents are one stack Y (1 + p, ...): y, and p changes of it. Its
velocity is (v, Dv(y) dy + dv/dparameter), so that steps of the stack by an explicit scheme are
those of the state and, exactly, their derivatives. The motion itself computes it, with `Dual`
arrays in place of its coordinates and parameters.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.differences import derivative_at_zero
from ..core.dual import Array, Dual, NoDerivative, changes_of, constant
from ..states.contract import State
from ..steppers import Splitting

if TYPE_CHECKING:
    from .motion import Motion

OFF_TANGENT = 1e-9  # relative: so far a direction may leave the tangent space, by rounding


class LinearisedMotion:
    """A motion and its derivatives along tangents.

    Parameters
    ----------
    motion : Motion
    names : sequence of (str or None)
        The parameter of each tangent, which changes at the rate 1 along it; None for directions.
    directions : sequence of (mapping or None)
        Changes of the initial state as `direction` returned them; None for parameters.
    """

    def __init__(
        self,
        motion: "Motion",
        names: Sequence[str | None],
        directions: Sequence[Mapping[str, Array] | None],
    ):
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

    def first(self, state: Any) -> Array:
        """The stack (1 + p, ...) at the initial state."""
        moved = self.motion.state_along(state, self.directions)
        return stack_of(self._moving.coordinates(moved), self.names)

    def velocity(self, Y: Array, t: float) -> Array:
        """Rates of change of the stack."""
        return stack_of(self._moving.velocity(Dual.of_stack(Y), t), self.names)

    def velocity_beside(self, Y: Array, t: float, known: Array, beside: Array | None) -> Array:
        """`velocity`, given the velocity (N,) of the state and its intermediate results."""
        known = known.reshape(Y[0].shape)
        rates = self._moving.velocity_from(Dual.of_stack(Y), t, known, beside)
        return stack_of(rates, self.names)

    def changes(self, Y: Array) -> list[dict[str, Array]]:
        """The changes of the state, by the names of its arrays, one for each tangent."""
        try:
            state, count = self._moving.state_of(Dual.of_stack(Y)), len(self.names)
        except NoDerivative:  # a state of one's own, which makes plain arrays
            return [self._change(Y[0], dy) for dy in Y[1:]]
        arrays = {name: getattr(state, name) for name in self.motion.tangent_arrays}
        rows = {n: changes_of(v, count) for n, v in arrays.items() if v is not None}
        return [{name: row[a].copy() for name, row in rows.items()} for a in range(count)]

    def _change(self, y: Array, dy: Array) -> dict[str, Array]:
        """The changes of the arrays of a state with that of its coordinates, by differences."""

        def array(name: str, h: float) -> Array:
            return np.asarray(getattr(self.motion.state_of(y + h * dy), name))

        names = self.motion.tangent_arrays
        return {name: derivative_at_zero(partial(array, name), name) for name in names}

    def merged(self, Y: Array, labels: np.ndarray) -> tuple["LinearisedMotion", Array]:
        """The motion of fewer rows and its stack, where rows of equal labels become one."""
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
        self, state: Any, change: Mapping[str, Array], name: str | None, t: float
    ) -> dict[str, Any]:
        """Derivatives of observables of a state that changes, as a parameter does where named."""
        moving = self.motion.along([name], self.motion.state_along(state, [change]))
        with np.errstate(divide="ignore", invalid="ignore"):
            observables = moving.smooth_observables(moving.like, t)
        return {name: changes_of(value, 1)[0] for name, value in observables.items()}

    def projected(self, Y: Array) -> Array:
        """`projected` of the motion, and its derivative."""
        return stack_of(self._moving.projected(Dual.of_stack(Y)), self.names)

    def step(self, scheme: Splitting, Y: Array, t: float, dt: float) -> Array:
        """The stack after one step of a splitting."""
        return stack_of(self._moving.step(scheme, Dual.of_stack(Y), t, dt, None), self.names)

    def relative_error(self, error: Array, Y: Array) -> float:
        """0: steps are those of the run, and nothing is controlled."""
        return 0.0


def stack_of(array: Any, names: Sequence[str | None]) -> Array:
    """The stack (1 + p, ...) of an array, which may not change along any tangent."""
    return (array if isinstance(array, Dual) else constant(array, len(names))).stack


def state_along(
    state: State, changes: Sequence[Mapping[str, Array] | None], names: Sequence[str]
) -> Any:
    """The state with `Dual` arrays of these names: changes of each tangent, or None for none."""
    moved = object.__new__(type(state))
    moved._set(**state.__getstate__())
    for name in names:
        value = getattr(state, name)
        if value is not None:
            rows = [np.zeros(value.shape) if h is None else h.get(name, 0.0) for h in changes]
            both = [np.broadcast_to(row, value.shape) for row in rows]
            moved._set(**{name: Dual(value, np.reshape(both, (len(rows), *value.shape)))})
    return moved
