"""Positions of points: unit vectors, functions of points, and kinds that draw or read positions."""

from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..core.annotations import UserValue
from ..core.arrays import read_numbers
from ..core.checks import check_memory, generator, plain_array, real_array, require, values_of
from ..core.forms import DataFile, Index, Natural
from ..core.kinds import Kind

UNIT = 1e-9


Seed = np.random.Generator | int  # of random numbers
DIVIDE = "Divide nonzero ones by their norms first: x / np.linalg.norm(x, axis=-1, keepdims=True)."
ROUNDINGS = 16  # tolerance of unit lengths below double precision, in its roundings


def unit(x: np.ndarray) -> np.ndarray:
    """Vectors (..., d) divided by their lengths."""
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def on_circles(angles: np.ndarray) -> np.ndarray:
    """Points (..., 2m), pairs (cos, sin), of angles (..., m)."""
    pairs = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return pairs.reshape(*angles.shape[:-1], 2 * angles.shape[-1])


def along_circles(points: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Rates of change (..., m) of the angles of points (..., 2m) with these velocities."""
    return points[..., ::2] * vectors[..., 1::2] - points[..., 1::2] * vectors[..., ::2]


def turns(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Angles (..., m), from -pi to pi, by which pairs turn from points x to y, (..., 2m)."""
    cosines = x[..., ::2] * y[..., ::2] + x[..., 1::2] * y[..., 1::2]
    return np.arctan2(along_circles(x, y), cosines)


def angles_between(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Angles in radians between unit vectors (..., d), broadcast, to relative rounding."""
    chord, co_chord = (np.linalg.norm(x - sign * y, axis=-1) for sign in (1, -1))
    return 2 * np.arctan2(chord, co_chord)


def unit_vectors(caller: str, vectors: UserValue, advice: str = DIVIDE) -> np.ndarray:
    """The rows of a new array of floats, of length 1; ValueError if they are not of unit length.

    Rows in float32 or float16, whose lengths are 1 up to rounding, are divided by their lengths in
    double precision.
    """
    x, kind = real_array("x", vectors), plain_array("x", vectors).dtype  # also of a tensor
    coarse = kind.kind == "f" and kind.itemsize < x.itemsize
    tolerance = ROUNDINGS * float(np.finfo(kind).eps) if coarse else UNIT
    check_unit(caller, x, tolerance, advice)
    return unit(x) if coarse else x


def check_unit(caller: str, x: np.ndarray, tolerance: float = UNIT, advice: str = DIVIDE) -> None:
    """Raise ValueError unless all rows of x, (..., d), have length 1; `caller` expects them."""
    error = np.abs(np.linalg.norm(x, axis=-1) - 1)
    if (error <= tolerance).all():
        return
    index = np.unravel_index(error.argmax(), error.shape)
    position = f" at index {', '.join(map(str, index))}" if index else ""
    single = error[index] <= ROUNDINGS * float(np.finfo(np.float32).eps)
    look = ", as if normalised in single precision: cast to double first" * bool(single)
    reason = f"the worst length is off by {error[index]:.2g}{position}{look}. {advice}"
    if not np.isfinite(x).all():
        reason = f"{np.count_nonzero(~np.isfinite(x))} entries are not finite. Remove them first."
    raise ValueError(f"{caller} expects unit vectors; {reason}")


def function_values(f: Callable[[np.ndarray], np.ndarray], points: np.ndarray) -> np.ndarray:
    """Values of f at points (*shape, d): numbers (*shape, ...); else TypeError or ValueError."""
    values, shape = values_of(f, points), points.shape[:-1]
    if values.shape[: len(shape)] != shape or values.dtype.kind not in "fiubc":
        raise ValueError(
            f"f must map points {points.shape} to values of shape {shape}, or more of them on "
            f"further axes; got shape {values.shape} of {values.dtype}."
        )
    return values


def vectors_of(array: np.ndarray) -> np.ndarray:
    """The unit vectors of angles in radians, (n,) or (..., 1); other arrays as they are."""
    if array.ndim != 1 and array.shape[-1:] != (1,):
        return array
    angles = real_array("Angles", array if array.ndim == 1 else array[..., 0])
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


class Points(Kind, family=True):
    """Positions of tokens that are drawn, read or listed in another form than Cartesian vectors."""

    @abstractmethod
    def draw(self) -> np.ndarray:
        """The positions, (*replicas, n, d)."""


class Angles(Points):
    """Points of the circle.

    Parameters
    ----------
    angles : array, (*replicas, n)
        In radians.
    """

    angles: np.ndarray

    def draw(self) -> np.ndarray:
        return vectors_of(self.angles[..., None])


class Orthonormal(Points):
    """The first n basis vectors of R^d.

    Parameters
    ----------
    n : int
        Number of tokens.
    d : int, optional
        Dimension, >= n; n by default.
    """

    n: Natural
    d: Natural | None = None

    def validate(self) -> None:
        largest = self.d or self.n
        require("n", self.n, f"from 2 to d = {largest}", 2 <= self.n <= largest)

    def draw(self) -> np.ndarray:
        shape = (self.n, self.d or self.n)
        check_memory(f"n = {self.n} tokens", (2, *shape), "n or d")
        return np.eye(*shape)


class _Drawn(Points):
    """Independent points.

    Parameters
    ----------
    n : int
        Number of tokens.
    d : int
        Dimension of the tokens.
    rng : int
        Seed of the positions.
    replicas : int, optional
        Independent sets of tokens; by default one, without an axis.
    """

    n: Natural
    d: Natural
    rng: Index
    replicas: Natural | None = None

    def normal(self) -> np.ndarray:
        """Independent standard normal vectors."""
        shape = () if self.replicas is None else (self.replicas,)
        check_memory(f"n = {self.n} tokens", (*shape, 5 * self.n, self.d), "n, d or replicas")
        return generator(self.rng).standard_normal((*shape, self.n, self.d))


class Normal(_Drawn):
    """Independent standard normal points of R^d."""

    def draw(self) -> np.ndarray:
        return self.normal()


class Uniform(_Drawn):
    """Independent uniform points of S^(d-1)."""

    def draw(self) -> np.ndarray:
        return unit(self.normal())


class File(Points):
    """Points that are read from a file: unit vectors (n, d), or angles in radians, (n,) or (n, 1).

    Parameters
    ----------
    file : str
        *.npy, *.npz or *.csv; relative names start from the folder of the configuration file.
    key : str, optional
        Name of the array in an .npz file.
    """

    file: DataFile
    key: str | None = None

    def draw(self) -> np.ndarray:
        return vectors_of(read_numbers(Path(self.file), self.key))
