"""Functions of a space that compiled time loops call: transports, and transforms on a grid."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..lowlevel.callbacks import CompiledFunction, PythonFunction
from ..lowlevel.records import Layout, Record

if TYPE_CHECKING:
    from .contract import Space

# Values of Z * mu below NO_MASS are rounding errors, and the mass there is less than NO_MASS in
# total. Dividing by NO_MASS instead moves this mass too slowly rather than at a random speed.
NO_MASS = 2.0**-40


class Transport:
    """Map from the coefficients of mu to those of -div(mu v[mu]), for the compiled time loop.

    `address` is that of a C function ``void f(context, member, source, target)``. It reads the
    coefficients of one density at `source`, writes those of -div(mu v[mu]) under the velocity of
    this member at `target`, and raises `speed[0]` to the largest |v| if that is larger. Members
    are independent, and each stays in the cache for all stages of a step.

    With `pairs` the coefficients of the density are followed by those of another measure nu, and
    the velocity is v[nu]. `IndexedTransport` uses this.

    Parameters
    ----------
    space : Space
        Space of the densities.
    attraction : ndarray, (1 or members, levels)
        Multipliers of W, shared or for each member; complex for a W(x - y) that is not even.
    normaliser : ndarray, (1 or members, levels), or None
        Multipliers of Z; None means Z = 1.
    members : int
        Number of densities.
    pairs : bool
        Whether densities are followed by the measures that move them.

    Attributes
    ----------
    compiled : CompiledFunction
        Function at `address`.
    degree, band : int
        Highest degrees of densities and of velocities.
    points : int
        Least number of points on a great circle for which mu v has no aliases in the modes kept.
    speed : ndarray, (1,)
        Largest |v| since it was last set to 0.
    time : ndarray, (1,)
        Time at which the velocities are evaluated, if they depend on it.
    """

    compiled: CompiledFunction | PythonFunction
    dtype: Any = complex
    pairs: bool = False

    def __init__(
        self, space: "Space", attraction: np.ndarray, normaliser: np.ndarray | None, members: int,
        pairs: bool = False,
    ) -> None:  # fmt: skip
        self.space, self.degree, self.dtype = space, space.degree, space.dtype
        self.band = int(space.bands(attraction).max())
        self.normalised = normaliser is not None
        self.points = 2 * self.degree + (self.degree if self.normalised else self.band) + 1
        denominator = np.zeros(attraction.shape) if normaliser is None else normaliser
        self.tables = [
            np.array(table, np.result_type(table, float), order="C")
            for table in (attraction, denominator)
        ]
        self.speed, self.time = np.zeros(1), np.zeros(1)
        self._shape = members, space.degrees.size
        self._of_pairs(pairs)
        self._prepare()

    def _prepare(self) -> None:
        """Set the compiled function and its context, by `_enter`, for these `tables`."""

    def _of_pairs(self, pairs: bool) -> None:
        """Set `pairs`, and the distance in bytes from a density to the measure that moves it.

        It is 0 if the density moves itself, and else the size of its coefficients.
        """
        self.pairs = pairs
        self._measure_offset = self._shape[1] * np.dtype(self.dtype).itemsize if pairs else 0

    def _enter(self, compiled: CompiledFunction, record: Record) -> None:
        """Set the compiled function, and the record of numbers and arrays that is its context."""
        self.compiled, self._record = compiled, record
        self.address, self.context = compiled.address, record.address

    def check(self) -> None:
        """Raise the exceptions of Python functions that compiled code called."""

    def __call__(self, coefficients: np.ndarray) -> np.ndarray:
        """Coefficients (members, modes) of -div(mu v) from those of densities; for Python code.

        With `pairs` the argument is (members, 2 modes).
        """
        members, modes = self._shape
        target = np.empty(self._shape, dtype=self.dtype)
        source = np.ascontiguousarray(coefficients, dtype=self.dtype)
        source = source.reshape(members, modes * (2 if self.pairs else 1))
        for member in range(len(source)):
            addresses = source[member].ctypes.data, target[member].ctypes.data
            self.compiled(self.context, member, *addresses)
        return target


class GridTransforms:
    """Four transforms for compiled code, ``void f(context, number, source, target)``.

    Coefficients are those of one real function, as floats; values are those at the grid points.

    `values` : coefficients of degrees up to `number` -> values
    `gradient` : coefficients of degrees up to `number` -> gradient, one component after the other
    `analysis` : values of `number` functions, 1 or 2 -> coefficients
    `divergence` : components of a tangent field -> coefficients of -div

    Parameters
    ----------
    space : Space
        Space of the functions, with their highest degree.
    points : int
        Least number of points on a great circle.

    Attributes
    ----------
    size : int
        Number of grid points; their order differs from that of `Space.points`.
    components : int
        Number of components of tangent fields.
    functions : Record
        Addresses of the four functions and their context, see `FUNCTIONS`.
    """

    components = 1
    size: int
    compiled: tuple[CompiledFunction, CompiledFunction, CompiledFunction, CompiledFunction]

    def _enter(self, record: Record) -> None:
        """Set the record of numbers and arrays that is the context of the four functions."""
        self._record = record
        addresses = [function.address for function in self.compiled]
        names = zip(FUNCTIONS.fields, [*addresses, record.address], strict=True)
        self.functions = FUNCTIONS.filled(**dict(names))


FUNCTIONS = Layout(
    "GridTransforms",
    dict.fromkeys(("values", "gradient", "analysis", "divergence", "context"), int),
)
