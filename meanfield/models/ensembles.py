"""Random matrices for the Q, K and V of attention, with the scalings of the literature's figures.

    ginibre            G                      entries N(0, 1), independent
    ginibre_product    G1 G2 / sqrt(d)        a Q^T K of two Ginibre matrices
    goe                (G + G^T) / sqrt(2)    symmetric
    wishart            G G^T / sqrt(d)        symmetric, >= 0

<Qx, Ky> = <x, Q^T K y>, so a random Q^T K = B is ``Attention(K=B)``. Each function takes a seed
or a numpy Generator; `shape` asks for as many independent matrices, for instance (H,) of heads.
The classes of the same names stand in place of matrices, ``Attention(K=GOE(rng=0))``, and are drawn
when the dimension of the state is known.

References
----------
Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, figure 5 (d = 128, n = 32), with
the scalings of its code.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from ..core.annotations import RandomSource
from ..core.checks import check_memory, generator, shape_of, whole_number
from ..core.forms import Index, Natural
from .parameters import GivenMatrix, StateSizes


def ginibre(
    dimension: int, rng: RandomSource, shape: tuple[int, ...] = (), *, rows: int | None = None
) -> np.ndarray:
    """G, entries independent N(0, 1): eigenvalues fill the disc of radius sqrt(d).

    Parameters
    ----------
    dimension : int
        d, the number of columns.
    rng : numpy Generator or seed
    shape : tuple of int
        As many independent matrices.
    rows : int, optional
        Number of rows k; d by default. k = d/H is what heads of attention have.

    Returns
    -------
    ndarray, shape (*shape, rows, d)
    """
    d = whole_number("dimension", dimension)
    k = d if rows is None else whole_number("rows", rows)
    sizes = (*shape_of("shape", shape), k, d)
    check_memory(f"matrices of dimension {d}", (*sizes, 2), "dimension, rows or shape")
    return generator(rng).standard_normal(sizes)


def ginibre_product(dimension: int, rng: RandomSource, shape: tuple[int, ...] = ()) -> np.ndarray:
    """G1 G2 / sqrt(d) of two independent Ginibre matrices, shape (*shape, d, d).

    Entries have mean 0 and variance 1; eigenvalues fill the disc of radius sqrt(d), denser at 0.
    """
    first, second = np.moveaxis(ginibre(dimension, rng, (*shape_of("shape", shape), 2)), -3, 0)
    return first @ second / np.sqrt(dimension)


def goe(dimension: int, rng: RandomSource, shape: tuple[int, ...] = ()) -> np.ndarray:
    """(G + G^T) / sqrt(2), the Gaussian orthogonal ensemble, shape (*shape, d, d).

    Off the diagonal N(0, 1), on it N(0, 2); eigenvalues fill [-2 sqrt(d), 2 sqrt(d)] as a
    semicircle.
    """
    matrices = ginibre(dimension, rng, shape)
    return (matrices + np.swapaxes(matrices, -1, -2)) / np.sqrt(2)


def wishart(dimension: int, rng: RandomSource, shape: tuple[int, ...] = ()) -> np.ndarray:
    """G G^T / sqrt(d), symmetric and >= 0, shape (*shape, d, d).

    Trace d sqrt(d) on average; eigenvalues fill [0, 4 sqrt(d)].
    """
    matrices = ginibre(dimension, rng, shape)
    return matrices @ np.swapaxes(matrices, -1, -2) / np.sqrt(dimension)


class _Random(GivenMatrix):
    """A random matrix, or one for each head.

    Parameters
    ----------
    rng : int
        Seed; equal seeds give equal matrices.
    scale : float
        The factor by which it is multiplied.
    columns : int, optional
        Number of columns; by default the dimension of the state.
    heads : int, optional
        Number of independent matrices; by default one, without an axis of heads.
    per_replica : bool
        Whether each replica of tokens, or each density, has matrices of its own, independent of
        the others; those of the first replicas do not depend on how many there are.
    """

    draw: ClassVar[Callable[..., np.ndarray]]

    rng: Index
    scale: float = 1.0
    columns: Natural | None = None
    heads: Natural | None = None
    per_replica: bool = False

    def resolve(self, sizes: StateSizes) -> np.ndarray:
        columns = self.columns or sizes.d
        if columns is None:
            raise ValueError(f"{self!r} needs columns: this state has no dimension.")
        shape: tuple[int, ...] = () if self.heads is None else (self.heads,)
        if self.per_replica and sizes.shape:
            shape = (*sizes.shape, self.heads or 1)
        return self.scale * self.draw(columns, self.rng, shape)


class Ginibre(_Random):
    """A matrix of independent N(0, 1) entries.

    Parameters
    ----------
    rows : int, optional
        Number of rows; by default that of columns.
    """

    rows: Natural | None = None

    def draw(self, columns: int, rng: int, shape: tuple[int, ...]) -> np.ndarray:
        return ginibre(columns, rng, shape, rows=self.rows)


class GinibreProduct(_Random):
    """G1 G2 / sqrt(d) of two independent matrices of N(0, 1) entries."""

    draw = staticmethod(ginibre_product)


class GOE(_Random):
    """(G + G^T) / sqrt(2), G of independent N(0, 1) entries: the Gaussian orthogonal ensemble."""

    draw = staticmethod(goe)


class Wishart(_Random):
    """G G^T / sqrt(d), G of independent N(0, 1) entries: a Wishart matrix."""

    draw = staticmethod(wishart)
