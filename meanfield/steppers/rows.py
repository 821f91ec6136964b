"""Many equations of the same size, each with its own clock and steps, advanced in one call.

Every equation is a row: arrays of the loop have a leading axis of rows. The memory of a row is
contiguous, and `advance` treats it like a single equation.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .advance import ADVANCE, EQUATION_ROW, RATES, SLOPES, Task, run
from .attempt import HIGHEST_PHI, JOURNAL
from .clock import Clock
from .eigenbasis import NO_BASIS, CalledBasis, Eigenbasis
from .schemes import Scheme, Table

TASK = EQUATION_ROW.block("rtol", "limit")  # fields of the rules and of the task of one call
COUNTS = EQUATION_ROW.block("accepted", "weighed")


class Nonlinear(Protocol):
    """The function N as compiled code calls it: see `spaces.transport.Transport`."""

    address: int
    context: int
    speed: np.ndarray
    time: np.ndarray

    def check(self) -> None: ...


class Rows:
    """Memory for equations du/dt = L u + N(u, t) of (members, modes), and for their steps.

    Parameters
    ----------
    scheme : Scheme
    linear : ndarray, (1 or members, modes)
        The diagonal of L for any of the rows; its shape and dtype are used.
    shape : (int, int)
        Shape of a state: members, which share their steps, and modes.
    dtype : numpy dtype
        The dtype of the states.
    count : int
        The number of rows.
    metric : ndarray, (modes,), optional
        Weights of the squared coefficients in the norm of errors; by default 1.
    parseval : ndarray, (modes,), optional
        Weights of the squared coefficients in the norm of the rate of change; by default 1.
    degrees : ndarray of int, (modes,), optional
        Degree of every coefficient, for the spectral tail; by default 0, 1, ....
    start : float
        The time at which the clocks show 0.
    basis : Eigenbasis, optional
        Basis in which L is diagonal, for states as real numbers: alternating real and imaginary
        parts if they are complex. A row of `linear` has one eigenvalue for each real number.
    speeds : ndarray, (count,), optional
        Memory for the largest speed in evaluations of N in each row. `Rows` objects for different
        schemes may share it.

    Attributes
    ----------
    linear : ndarray, (count, 1 or members, numbers)
        The diagonal of L of each row, with one entry for each number of a state in the loop.
    records : structured ndarray, (count,)
        The records of the rows for compiled code: see `advance.EQUATION_ROW`.
    memory : Memory
        Arrays with a leading axis of rows.
    metric, parseval, degrees : ndarray
        One for each float of a state.
    """

    def __init__(
        self,
        scheme: Scheme,
        linear: np.ndarray,
        shape: tuple[int, int],
        dtype: Any,
        *,
        count: int = 1,
        metric: np.ndarray | None = None,
        parseval: np.ndarray | None = None,
        degrees: np.ndarray | None = None,
        start: float = 0.0,
        basis: Eigenbasis | None = None,
        speeds: np.ndarray | None = None,
    ):
        """Describe `count` equations u' = L u + N(u), of one shape, to the compiled loop."""
        self.scheme, self.table, self.dtype = scheme, scheme.table, np.dtype(dtype)
        self.basis = NO_BASIS if basis is None else basis
        self._called_basis = CalledBasis(self.basis)
        # If L is real, the loop treats complex states as pairs of floats, and is compiled once.
        modes, numbers = shape[1], self.dtype if np.iscomplexobj(linear) else np.dtype(float)
        width = self.dtype.itemsize // 8
        self._zero = numbers.type(0).item()
        self._repeats = self.dtype.itemsize // numbers.itemsize if basis is None else 1
        self.linear = np.zeros((count, *self.inside(linear).shape), linear.dtype)
        self._split = as_taken(scheme, self.linear)
        self.metric = np.repeat(np.ones(modes) if metric is None else metric, width).astype(float)
        weights = np.ones(modes) if parseval is None else parseval
        self.parseval = np.repeat(weights, width).astype(float)
        degrees = np.arange(modes) if degrees is None else degrees
        self.degrees = np.repeat(degrees, width).astype(np.int64)
        self.speeds = np.zeros(count) if speeds is None else speeds
        self.records = np.zeros(count, EQUATION_ROW.dtype)
        self._nonlinear: list[Nonlinear | None] = [None] * count
        shape_in_loop = (shape[0], modes * self.dtype.itemsize // numbers.itemsize)
        self._describe(shape_in_loop, numbers, width, float(start))

    def _describe(self, shape: tuple[int, int], numbers: Any, width: int, start: float) -> None:
        """Allocate the memory of all rows, and write addresses, sizes and options to the records.

        `shape` is that of a state in the loop, `numbers` its dtype, `width` the floats of a
        coefficient.
        """
        table, records = self.table, self.records
        self.memory = Memory.zeros(table, self._split[0], shape, numbers)
        (rows, slots), (members, modes) = table.columns.shape, shape
        constants = {
            "origin": start,
            "linear_rows": self._split[0].shape[1],
            "linear_modes": self._split[0].shape[2],
            "added_rows": self._split[1].shape[1],
            "change": self._called_basis.address,
            "basis": self._called_basis.context,
            "members": members,
            "modes": modes,
            "size": modes * numbers.itemsize,
            "floats": modes * numbers.itemsize // 8,
            "width": width,
            "last": table.decay.size,
            "rows": rows,
            "slots": slots,
            "node_count": table.nodes.size,
            "entry_count": len(table.entries),
            "stability": table.stability,
            "joined": table.joined,
            "weighed_step": np.nan,
            "rate": np.nan,
        }
        arrays = {
            "metric": self.metric,
            "parseval": self.parseval,
            "degrees": self.degrees,
            "columns": table.columns,
            "nodes": table.nodes,
            "decay_nodes": table.decay,
            "entries": table.entries,
        }
        addresses = {"linear": self._split[0], "added": self._split[1], **self.memory._asdict()}
        for name, value in constants.items():
            records[name] = value
        for name, array in arrays.items():
            records[name] = array.ctypes.data
        for name, array in (addresses | {"kept_speed": self.speeds}).items():
            records[name] = array.ctypes.data + np.arange(len(records)) * array.strides[0]

    def inside(self, linear: np.ndarray) -> np.ndarray:
        """The diagonal of L, (..., modes), repeated for each number of a state in the loop."""
        return np.repeat(linear, self._repeats, axis=-1)

    def enter(self, row: int, linear: np.ndarray, nonlinear: Nonlinear, number: int) -> None:
        """Set L and N of a row; `number` is the argument `member` of N for its first member."""
        self.linear[row] = self.inside(linear)
        self._nonlinear[row] = nonlinear  # a reference, as its address is used
        record = self.records[row]
        record["nonlinear"], record["context"] = nonlinear.address, nonlinear.context
        record["speed"], record["time"] = nonlinear.speed.ctypes.data, nonlinear.time.ctypes.data
        record["first"] = number

    def again(self, row: int) -> "Rows":
        """A copy of one row in separate memory, with states that are 0."""
        single, chosen = object.__new__(type(self)), slice(row, row + 1)
        vars(single).update(vars(self))
        record = self.records[row]
        single.linear, single._nonlinear = self.linear[chosen].copy(), self._nonlinear[chosen]
        single._split = as_taken(self.scheme, single.linear)
        single.speeds, single.records = self.speeds[chosen].copy(), np.zeros(1, EQUATION_ROW.dtype)
        for name in ("nonlinear", "context", "speed", "time", "first"):
            single.records[name] = record[name]
        u = self.memory.u
        width, origin = int(record["width"]), float(record["origin"])
        single._describe(u.shape[2:], u.dtype, width, origin)
        return single

    def memory_of(self, row: int) -> "Memory":
        """Views of the arrays of one row."""
        return Memory(*(array[row] for array in self.memory))

    def _run(self, indices: np.ndarray, task: int) -> None:
        run(self.records.ctypes.data, np.asarray(indices, dtype=np.int64), task, self._zero)

    def slopes(self, rows: np.ndarray, u: np.ndarray, elapsed: float) -> np.ndarray:
        """Values of N for states u (n, members, modes), one for each row in `rows` (n,).

        States are in the dtype and shape of the loop. L u is added for an explicit scheme.
        """
        u = np.ascontiguousarray(u)
        slopes, records = np.empty_like(u), self.records
        for name, array in (("given", u), ("result", slopes)):
            records[name][rows] = array.ctypes.data + np.arange(len(rows)) * u.strides[0]
        records["elapsed"][rows] = elapsed
        self._run(rows, SLOPES)
        return slopes

    def begin(self, rows: np.ndarray, states: np.ndarray, elapsed: float) -> None:
        """Set the states of `rows` to states (n, members, modes), at clock `elapsed`."""
        memory_u, records = self.memory.u, self.records
        numbers = np.array(states, dtype=self.dtype, order="C").view(memory_u.dtype)
        u, fronts = numbers.reshape(len(rows), *memory_u.shape[2:]), records["front"][rows]
        self.memory.u[rows, fronts] = u
        self.memory.slope[rows, fronts] = self.slopes(rows, u, elapsed)
        records["rate"][rows] = np.nan

    def growths(self, rows: np.ndarray, step: float, elapsed: float) -> np.ndarray:
        """Relative rates of change of N along du/dt, (n,), by a difference over a distance `step`.

        In the norm of errors, the largest over the members of a row. The member with the largest
        rate of change is moved by `step` from its present state, the others by less.
        """
        basis, memory, fronts = self.basis, self.memory, self.records["front"][rows]
        u, slope = memory.u[rows, fronts], memory.slope[rows, fronts]
        modal = self._split[0][rows] * basis.into(u.reshape(-1, u.shape[-1])).reshape(u.shape)
        rates = basis.out_of(modal.reshape(-1, u.shape[-1])).reshape(u.shape) + slope
        sizes = self.rates_of_change(rows, self.metric)
        shifted = u + (step / sizes)[:, None, None] * rates
        change = (self.slopes(rows, shifted, elapsed) - slope).view(float)
        return np.sqrt((self.metric * change**2).sum(axis=2).max(axis=1)) / step

    def rates_of_change(self, indices: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The largest norm of du/dt over the members of each row, (n,), at the present state."""
        records = self.records
        records["given"][indices] = weights.ctypes.data
        stored = records["rate"][indices].copy()
        self._run(indices, RATES)
        rates, records["rate"][indices] = records["rate"][indices].copy(), stored
        return rates

    def advance(self, indices: Sequence[int], tasks: Sequence[Task]) -> None:
        """Advance rows, one after another; results and codes are in their records."""
        rows = np.array(indices)
        self.memory.clock[rows] = [task.clock for task in tasks]
        numbers = [(*task.rules, task.target, task.output, task.limit) for task in tasks]
        self.records.view(float).reshape(len(self.records), -1)[rows, TASK] = numbers
        self._run(rows, ADVANCE)


class Memory(NamedTuple):
    """Arrays of the loop, (rows, ...): see `attempt.MEMORY_FIELDS`."""

    u: np.ndarray
    slope: np.ndarray
    slopes: np.ndarray
    stage: np.ndarray
    modal: np.ndarray
    phi: np.ndarray
    decay: np.ndarray
    weights: np.ndarray
    journal: np.ndarray
    clock: np.ndarray
    before: np.ndarray

    @classmethod
    def zeros(
        cls, table: Table, linear: np.ndarray, shape: tuple[int, int], dtype: Any
    ) -> "Memory":
        """Memory of zeros for all rows; `linear` is L in the exponentials."""
        (rows, slots), (members, modes), count = table.columns.shape, shape, len(linear)

        def zeros(*axes: int, kind: Any = dtype) -> np.ndarray:
            return np.zeros((count, *axes), dtype=kind)

        return cls(
            u=zeros(2, members, modes),
            slope=zeros(2, members, modes),
            slopes=zeros(members, table.decay.size + 1, modes),
            stage=zeros(modes),
            modal=zeros(2, modes),
            phi=zeros(table.nodes.size, HIGHEST_PHI + 1),
            decay=zeros(rows, *linear.shape[1:]),
            weights=zeros(rows, linear.shape[1], slots, linear.shape[2]),
            journal=zeros(JOURNAL, 2, kind=float),
            clock=zeros(len(Clock._fields), kind=float),
            before=zeros(len(Clock._fields), kind=float),
        )


def as_taken(scheme: Scheme, linear: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split L of all rows into the part in the exponentials and the part added to N.

    An explicit scheme adds all of L to N, an exponential one none.
    """
    count, modes = len(linear), linear.shape[2]
    if scheme.explicit:
        return np.zeros((count, 1, 1), linear.dtype), linear
    return linear, np.zeros((count, 0, modes), linear.dtype)
