"""Causal sums by harmonics, in near-linear time on the circle and on S^2.

Tokens are divided into blocks. For each token, the tokens of earlier blocks are summed by the
harmonics of their measure, a running sum over blocks; earlier tokens of its own block by pairs:

    D_i v_i = grad sum_lm W_l A_lm Y_lm(x_i) + P_i sum_(j <= i, in the block of i) m_j W'(t_ij) x_j

    A_lm = sum of m_j conj Y_lm(x_j) over the earlier blocks

and likewise the denominator D_i. The sums of tokens in the first block are therefore exact.
"""

import numpy as np
from numpy.polynomial import Chebyshev, Legendre

from ..models.influence import Causal
from ..spaces.contract import dimension_of_harmonics
from .causal import CausalEngine, CausalSums, earlier_masses
from .direct import projected
from .harmonics import HarmonicEngine
from .pairs import columns_of

BLOCK_SIZES = 2 ** np.arange(6, 14)  # numbers of tokens of a block that are compared by cost
CAUSAL_TOKEN_COST = 0.08  # microseconds per token in addition to harmonics and pairs
ZONAL_SERIES = {2: Chebyshev, 3: Legendre}  # polynomials in t of the zonal harmonics, by dimension
LEVEL_NODES = np.linspace(-1, 1, 65)  # inner products at which Z is evaluated to find its maximum


class CausalModes(CausalEngine):
    """Velocities of tokens that attend to earlier ones, in O(n) operations for each degree.

    Parameters
    ----------
    modes : HarmonicEngine
        The engine of sums over all tokens under the same drift.
    causal : Causal
        Without window, decay and beta.

    Notes
    -----
    The error is relative to the velocity that the mass up to the token can exert. Velocities whose
    denominator is comparable with the rounding of the harmonics are computed again, from all pairs.
    Results are the same, bit for bit, for every number of threads.
    """

    def __init__(self, modes: HarmonicEngine, causal: Causal) -> None:
        """Choose the block size of least cost per token; with Z, find the t of largest |Z|."""
        super().__init__(modes.drift, causal)
        self.name = f"causal {modes.name}"
        self._modes, self._numerators = modes, modes.undivided()
        self._pairs = CausalSums(modes.drift, causal, modes.threads.threads)
        self._normalised = modes.normaliser is not None
        self._reference: tuple[float, float] | None = None  # t with the largest |Z|, and Z there
        if self._normalised:
            d, Z = modes.dimension, np.asarray(modes.normaliser)
            t = float(LEVEL_NODES[np.abs(self.drift.weight(LEVEL_NODES)).argmax()])
            series = Z * [dimension_of_harmonics(l, d) for l in range(Z.size)]
            self._reference = t, float(ZONAL_SERIES[d](series)(t))
        costs = [self._cost(int(size)) / size for size in BLOCK_SIZES]
        self.block = int(BLOCK_SIZES[np.argmin(costs)])

    def _cost(self, size: int) -> float:
        """Estimated microseconds for a block of `size` tokens."""
        pairs = CausalSums.cost_of(self.drift, size)
        return CAUSAL_TOKEN_COST * size + self._modes.cost(size) + pairs

    def cost(self, n: int) -> float:
        """About the microseconds that velocities of n tokens take."""
        return -(-n // self.block) * self._cost(self.block)

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Velocities by harmonics of all earlier blocks, and by pairs within a block."""
        replicas, n, d = x.shape
        blocks = -(-n // self.block)
        blocked = self._in_blocks(x, blocks), self._in_blocks(masses[..., None], blocks)[..., 0]
        velocity, denominators = self._earlier(*blocked, blocks)
        columns = columns_of(*blocked)
        pulls, denominators_inside = self._pairs.sums(columns, self._reference)
        velocity += projected(columns, pulls, d)
        velocity = np.ascontiguousarray(velocity.reshape(replicas, -1, d)[:, :n])
        if self._normalised:
            denominators = (denominators + denominators_inside).reshape(replicas, -1)[:, :n]
            lowest = self._modes._lowest * _before(blocked[1].sum(axis=1).reshape(replicas, blocks))
            velocity /= np.where(denominators == 0, 1.0, denominators)[..., None]
            inaccurate = denominators < np.repeat(lowest, self.block, axis=1)[:, :n]
            for r in np.flatnonzero(inaccurate.any(axis=1)):
                tokens = np.flatnonzero(inaccurate[r])
                velocity[r, tokens] = self._pairs.single_velocities(x[r], masses[r], tokens)
        elif self.causal.is_mean(self.drift):
            velocity /= earlier_masses(masses)[..., None]
        return velocity

    def _in_blocks(self, values: np.ndarray, blocks: int) -> np.ndarray:
        """Values (R, n, c) in blocks, (R * blocks, size, c); the last block is padded.

        The padding repeats the last token for c > 1 (positions), and is 0 for c = 1 (masses).
        """
        replicas, n, c = values.shape
        padded = np.zeros((replicas, blocks * self.block, c))
        padded[:, :n] = values
        if c > 1:
            padded[:, n:] = values[:, -1:]
        return padded.reshape(replicas * blocks, self.block, c)

    def _earlier(
        self, x: np.ndarray, masses: np.ndarray, blocks: int
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Contributions of earlier blocks to numerators, (R * blocks, size, d), and denominators.

        x and masses are in blocks, (R * blocks, size, ...); denominators are None where Z = 1.
        """
        coordinates = self._modes.scattered.coordinates(x)
        modes = self._modes.scattered.moments(coordinates, masses)
        earlier = _before(modes.reshape(-1, blocks, modes.shape[1])).reshape(modes.shape)
        numerators, _ = self._numerators.fields(x, coordinates, earlier)
        denominators = self._modes.denominators(coordinates, earlier) if self._normalised else None
        return numerators, denominators


def _before(values: np.ndarray) -> np.ndarray:
    """Sums of values (R, blocks, ...) over the blocks before each block, of the same shape."""
    sums = np.zeros_like(values)
    np.cumsum(values[:, :-1], axis=1, out=sums[:, 1:])
    return sums
