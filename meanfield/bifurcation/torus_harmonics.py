"""Basis of all waves on the torus, for models that translations of the angles change.

Fields, potentials and noises with a scale leave no translation, or some. The functions are
sqrt(2) cos <k, x> and sqrt(2) sin <k, x> of the stored waves k. Reflections are those that map each
of them to itself or to its negative: x -> -x, bit 0, and half a turn of the angle i, bit i.
"""

from typing import Any, ClassVar

import numpy as np

from ..core.cached import cached_property
from ..core.checks import check_memory
from ..spaces import Torus
from .bases import Truncation
from .reflections import AllHarmonics, Reflected
from .torus_waves import EVEN, OnTorus, Orbits, orbits_on

MATRIX_BLOCK = 2**15  # entries of a block of a matrix that is computed at once


class TorusHarmonics(AllHarmonics):
    """Cosines and sines of the waves of a torus, in the order of their numbers in `orbits`.

    Attributes
    ----------
    orbits : Orbits
        Pairs k, -k of waves.
    waves : ndarray of int, (N, m)
        Wave of each function.
    """

    space: Any

    def __init__(self, space: Any):
        self.orbits: Orbits = orbits_on(space, EVEN)
        super().__init__(space)
        self.waves = space.waves[self._parts // 2]

    def _numbers(self) -> np.ndarray:
        return self.orbits.of_waves

    @property
    def eigenvalues(self) -> np.ndarray:
        return (self.waves**2.0).sum(axis=1)

    @cached_property
    def parities(self) -> np.ndarray:
        """Whether functions are odd under x -> -x and under half a turn of each angle."""
        return np.column_stack([self._parts % 2 == 1, self.waves % 2 == 1])

    def signs(self, reflection: int) -> np.ndarray:
        pairs = [1 - 2 * (reflection >> i + 1 & 1) for i in range(self.space.circles)]
        mirror = 1 - 2 * (reflection & 1)
        return np.array([(pair, mirror * pair) for pair in pairs]).ravel()

    # p_i = sqrt(2) Re(s_i e^{i<k, x>}) with s_i = 1 for cosines and i for minus sines

    def _phases(self, members: np.ndarray) -> np.ndarray:
        return np.where(self._parts[members] % 2, 2**0.5 * 1j, 2**0.5)

    def table(self, members: np.ndarray, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        space, waves = self.space, self.waves[members]
        shape = 3 + space.circles, members.size, nodes.size
        check_memory(f"tables of waves on {space!r}", shape, "degree")
        degree, count = space.degree, space.angles.size
        powers = np.exp(1j * np.outer(np.arange(-degree, degree + 1), space.angles))
        series = self._phases(members)[:, None] + np.zeros(nodes.size)
        for k, places in zip(
            waves.T, np.unravel_index(nodes, space.circles * (count,)), strict=True
        ):
            series *= powers[k + degree][:, places]
        return series.real.copy(), -waves.T[:, :, None] * series.imag

    def advected(self, part: Any, nodes: np.ndarray, flow: np.ndarray) -> np.ndarray:
        """Sums as in `AllHarmonics`, by Fourier coefficients of F at sums of two waves."""
        space, most = self.space, 2 * self.space.degree
        count, width = space.angles.size, 2 * most + 1
        grid = np.zeros((len(flow), *space.circles * (count,)))
        grid.reshape(len(flow), -1)[:, nodes] = flow
        series = np.fft.ifftn(grid, axes=range(1, grid.ndim), norm="forward")
        for axis in range(1, grid.ndim):  # waves from -2L to 2L
            series = series.take(np.arange(-most, most + 1), axis=axis, mode="wrap")
        waves, phases = self.waves[part.members], self._phases(part.members)
        places = waves @ width ** np.arange(space.circles)[::-1]
        matrix, centre = np.empty((len(waves), len(waves))), series[0].size // 2
        for some in np.array_split(np.arange(len(waves)), 1 + len(waves) ** 2 // MATRIX_BLOCK):
            sums: Any = 0.0
            for sign, other in ((1, phases), (-1, phases.conj())):
                at = centre + places[some, None] + sign * places
                along = sum(
                    k[some, None] * one.take(at) for k, one in zip(waves.T, series, strict=True)
                )
                sums = sums + along * other
            matrix[some] = (0.5j * phases[some, None] * sums).real
        return matrix

    @property
    def planes(self) -> list[tuple[int, int]]:
        return [(2 * i, 2 * i + 1) for i in range(self.space.circles)]


class TorusReflected(OnTorus, Reflected, space=Torus):
    """All waves of a torus up to a degree, sorted by the reflections of a state."""

    space: Any
    all: TorusHarmonics
    harmonics: ClassVar[type[AllHarmonics]] = TorusHarmonics
    iterates = True
    bounds: ClassVar = {
        2: Truncation(32, 256, 320, 1e-12),
        4: Truncation(6, 24, 30, 1e-10),
        6: Truncation(3, 5, 6, 1e-8),
    }

    @property
    def orbits_of_waves(self) -> Orbits:  # type: ignore[override]
        return self.all.orbits

    @property
    def waves(self) -> np.ndarray:  # type: ignore[override]
        return self.all.waves

    @cached_property
    def sizes(self) -> np.ndarray:
        return np.full(len(self.degrees), 2**0.5)

    def first_moments(self, m: np.ndarray) -> np.ndarray:
        first = self.eigenvalues == 1  # cosine and sine of each angle
        return np.asarray(m[..., first]) / (np.count_nonzero(first) / 2) ** 0.5
