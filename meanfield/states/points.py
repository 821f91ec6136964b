"""Where tokens are: laws and files that stand in place of their positions."""

from abc import abstractmethod
from pathlib import Path

import numpy as np

from ..core.checks import check_memory, generator
from ..core.files import read_numbers
from ..core.forms import DataFile, Index, Natural
from ..core.kinds import Kind

__all__ = ["Points"]


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
        return np.stack([np.cos(self.angles), np.sin(self.angles)], axis=-1)


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
        if not 2 <= self.n <= (self.d or self.n):
            raise ValueError(
                f"Orthonormal tokens need 2 <= n <= d; got n = {self.n}, d = {self.d}."
            )

    def draw(self) -> np.ndarray:
        shape = (self.n, self.d or self.n)
        check_memory(f"{self.n} tokens", shape)
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
        check_memory(f"{self.n} tokens", (*shape, self.n, self.d))
        return generator(self.rng).standard_normal((*shape, self.n, self.d))


class Normal(_Drawn):
    """Independent standard normal points of R^d."""

    def draw(self) -> np.ndarray:
        return self.normal()


class Uniform(_Drawn):
    """Independent uniform points of S^(d-1)."""

    def draw(self) -> np.ndarray:
        x = self.normal()
        return x / np.linalg.norm(x, axis=-1, keepdims=True)


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
        array = read_numbers(Path(self.file), self.key)
        if array.ndim == 1 or array.shape[1:] == (1,):
            return Angles(array.ravel()).draw()
        return array
