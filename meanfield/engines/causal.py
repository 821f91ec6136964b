"""Causal attention: sums over each token and those before it, by pairs and by means.

    v_i = P_i sum_(j <= i) w_ij m_j W'(t_ij) x_j / D_i,    w_ij = w(s_i - s_j),

    D_i = sum_(j <= i) w_ij m_j Z(t_ij) where Z is not 1; else sum_(j <= i) w_ij m_j for "mean", and
    1 for "sum"

with the position s_i = m_1 + ... + m_i of token i. A token does not move if all masses up to and
including its own are 0.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..core.errors import MeanfieldError
from ..lowlevel.blas import one_blas_thread
from ..models import Attention, ZonalDrift
from ..models.influence import Causal
from ..states.points import unit
from .attention import AttentionSums
from .contract import ZonalEngine
from .direct import LOWEST_DENOMINATOR, DirectSums, projected, whole_output
from .gram_pairs import within_one
from .pairs import PAIR_BLOCK, columns_of, earlier_sums, more_than_three

CAUSAL_PAIR_COST = 0.75e-3  # microseconds of a pair, with an exponential kernel
BLOCK_ENTRIES = 1 << 17  # inner products of a block of rows
FEWEST_ROWS_OF_A_BLOCK = 128  # least rows of a block where windows are short
WINDOW_ROUNDING = 1e-12  # tolerance at the edge of a window: positions are sums of masses


class CausalEngine(ZonalEngine):
    """Velocities of tokens that attend to earlier ones, under a zonal drift.

    They increase no energy: `energy` returns nan. Their derivatives are not known.

    Parameters
    ----------
    drift : ZonalDrift
        A single drift for all systems.
    causal : Causal
    """

    def __init__(self, drift: ZonalDrift, causal: Causal, threads: int = 1) -> None:
        super().__init__(drift, threads)
        self.causal = causal

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        return np.full(len(x), np.nan)

    def with_tangents(self, names: Sequence[str | None]) -> NoReturn:
        """Raise MeanfieldError: derivatives are not known."""
        refuse_tangents(self.causal)


class CausalMean(CausalEngine):
    """Causal means, where the kernel is constant: v_i = P_i sum_(j <= i) m_j x_j / D_i, O(n d)."""

    name = "causal mean"

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """P_i sum_{j < i} m_j u_j, (R, n, d), divided by sum_{j <= i} m_j for "mean"."""
        u = unit(x)
        preceding = np.zeros_like(u)  # sums over tokens before each, as no token acts on itself
        np.cumsum(masses[:, :-1, None] * u[:, :-1], axis=1, out=preceding[:, 1:])
        if self.causal.is_mean(self.drift):
            preceding /= earlier_masses(masses)[..., None]
        return preceding - (preceding * u).sum(axis=-1, keepdims=True) * u


class CausalSums(CausalEngine):
    """Sums over all pairs j <= i, O(n^2 d) time, O(n d) memory, for any zonal drift and dimension.

    With w tokens in a window and k in its sink, O(n (w + k) d) time. A decay has no cut-off and
    saves no time.

    Exponential kernels without window, decay and beta are summed by compiled code: the error of a
    force is the rounding of its own weight. Others are summed on blocks of inner products.

    Parameters
    ----------
    drift : ZonalDrift
    causal : Causal
    threads : int
        The results are the same, bit for bit, for every number of threads.

    Raises
    ------
    ValueError
        If `causal` has a beta for each position, and the drift has no parameter beta.
    """

    name = "causal direct"

    def __init__(self, drift: ZonalDrift, causal: Causal, threads: int = 1) -> None:
        """Check that the drift takes a beta for each position where `causal` has one."""
        super().__init__(drift, causal, threads)
        if causal.beta is not None and "beta" not in drift.parameters:
            raise ValueError(
                f"causal has a beta of its own for each place, and {drift!r} has none to be "
                "replaced. Use USA(beta) or SA(beta), or leave it out."
            )
        drift.slope(np.zeros(2))  # refuses potentials that have none

    @staticmethod
    def cost_of(drift: ZonalDrift, n: int) -> float:
        """About the microseconds that velocities of n tokens take."""
        if drift.exponent is None:
            return DirectSums.cost_of(drift, n)
        return CAUSAL_PAIR_COST * n**2 / 2

    @property
    def compiled(self) -> bool:
        """True where the sums are taken by compiled code."""
        return self.drift.exponent is not None and self.causal.plain

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        columns, pulls = self._pulls(x, masses)
        return projected(columns, pulls, x.shape[2])

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Output sum_(j <= i) w_ij m_j W'(t_ij) x_j / D_i, (R, n, d), with the token itself."""
        columns, pulls = self._pulls(x, masses)
        return whole_output(columns, pulls, x.shape[2])

    def _pulls(self, x: np.ndarray, masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Columns of the tokens, and pulls divided by D_i, both (R, rows + 1, n)."""
        columns = columns_of(x, masses)
        pulls, denominators = self.sums(columns)
        pulls /= denominators[:, None]
        return columns, pulls

    def sums(
        self, columns: np.ndarray, reference: tuple[float, float] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Undivided pulls (R, rows + 1, n), and denominators D_i (R, n).

        The rows of pulls are sum_j w_ij m_j W'(t_ij) (u_j - u_i), and last sum_j w_ij m_j W'(t_ij).
        D_i is 1 where a token sees no mass. Where Z is not 1, the sums and the D_i of a token may
        have an arbitrary common factor; a `reference` (t, z) fixes it by Z(t) = z, and D_i is then
        0 where a token sees no mass.
        """
        if not self.compiled:
            tokens = np.arange(columns.shape[2])
            parts = [self.row_sums(system, tokens, reference) for system in columns]
            pulls, denominators = zip(*parts, strict=True)
            return np.stack(pulls), np.stack(denominators)
        beta, visible = float(np.asarray(self.drift.exponent)), earlier_masses(columns[:, -1])
        pulls = np.zeros_like(columns)
        tasks = len(columns) * -(-columns.shape[2] // PAIR_BLOCK)
        work = partial(earlier_sums, columns, beta, pulls[:, None], more_than_three(columns))
        self.threads.for_pairs(len(columns) * columns.shape[2] ** 2).share(work, tasks)
        if not self.drift.normalised:
            pulls *= np.exp(abs(beta))
            return pulls, visible if self.causal.is_mean(self.drift) else np.ones_like(visible)
        if reference is not None:
            t, z = reference
            pulls *= z / np.exp(beta * t - abs(beta))
            return pulls, pulls[:, -1].copy()
        return pulls, self._denominators(columns, pulls)

    def _denominators(self, columns: np.ndarray, pulls: np.ndarray) -> np.ndarray:
        """Denominators D_i (R, n) of compiled sums.

        Where all weights that a token sees underflow, its pulls and D_i are summed again by rows.
        """
        denominators = pulls[:, -1].copy()
        for r in np.flatnonzero((denominators < LOWEST_DENOMINATOR).any(axis=1)):
            tokens = np.flatnonzero(denominators[r] < LOWEST_DENOMINATOR)
            pulls[r][:, tokens], denominators[r, tokens] = self.row_sums(columns[r], tokens)
        return denominators

    def single_velocities(
        self, x: np.ndarray, masses: np.ndarray, tokens: np.ndarray
    ) -> np.ndarray:
        """Velocities (k, d) of k tokens, given by their indices, of one system x (n, d)."""
        columns = columns_of(x[None], masses[None])
        pulls, denominators = self.row_sums(columns[0], tokens)
        return projected(columns[:, :, tokens], (pulls / denominators)[None], x.shape[1])[0]

    def row_sums(
        self, columns: np.ndarray, tokens: np.ndarray, reference: tuple[float, float] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pulls (rows + 1, k) and denominators (k,) as by `sums`, for k tokens of one system.

        `tokens` (k,) are their indices, in increasing order. A block of rows of the Gram matrix has
        the columns from the first to the last token in the windows of its rows, and the sink.
        """
        pulls, denominators = np.empty((len(columns), tokens.size)), np.empty(tokens.size)
        positions = np.cumsum(columns[-1])
        begins, always = np.zeros_like(tokens), 0  # first token in each window, tokens in the sink
        if self.causal.window is not None:
            first = positions[tokens] - self.causal.window - 2 * WINDOW_ROUNDING
            begins = np.searchsorted(positions, first)
        if self.causal.sink is not None:
            last = self.causal.sink + WINDOW_ROUNDING
            always = int(np.searchsorted(positions, last, side="right"))
        width = int((tokens - begins).max(initial=0)) + 1 + always
        size = max(1, min(BLOCK_ENTRIES // width, max(width, FEWEST_ROWS_OF_A_BLOCK)))
        count = -(-tokens.size // size)

        def work(first: int, last: int) -> None:
            """Write sums over the tokens visible to each row, for blocks from `first`."""
            for number in range(first, last):  # alternate between both ends: later ones take longer
                block = count - 1 - number // 2 if number % 2 else number // 2
                block_range = slice(block * size, (block + 1) * size)
                rows, begin = tokens[block_range], int(begins[block_range].min())
                visible = np.arange(begin, int(rows.max()) + 1)
                if always:
                    visible = np.append(np.arange(min(always, begin)), visible)
                sums = self._of_rows(columns, positions, rows, visible, reference)
                pulls[:, block_range], denominators[block_range] = sums

        with one_blas_thread():
            self.threads.share(work, count)
        return pulls, denominators

    def _of_rows(
        self,
        columns: np.ndarray,
        positions: np.ndarray,
        rows: np.ndarray,
        sources: np.ndarray,
        reference: tuple[float, float] | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pulls and denominators as by `row_sums`, for one block of rows.

        rows are the indices of its tokens, `sources` of the tokens summed over, in increasing
        order; the last of `sources` is the last row.
        """
        row_numbers, diagonal = np.arange(rows.size), np.searchsorted(sources, rows)
        u = columns[:-1, sources]
        shares = self._shares(columns[-1, sources], positions[sources], diagonal)
        visible = shares > 0
        t = within_one(columns[:-1, rows].T @ u)
        # invisible pairs get the t of a visible one: they must not set the scale of a row
        t = np.where(visible, t, t[row_numbers, visible.argmax(axis=1)][:, None])
        if reference is not None:
            t = np.concatenate([t, np.full((rows.size, 1), reference[0])], axis=1)
        betas = self.causal.betas(positions[rows])
        drift = self.drift if betas is None else self.drift.replace(beta=betas)
        weights = np.array(drift.slope(t), dtype=float)  # a copy, as it may be t itself
        if self.drift.normalised:
            Z, scale = np.asarray(drift.weight(t)), np.ones((rows.size, 1))
            if reference is not None:
                scale = reference[1] / Z[:, -1:]
            denominators = (scale * Z[:, : sources.size] * shares).sum(axis=1)
            weights = weights[:, : sources.size] * (scale * shares)
        else:
            denominators = np.ones(rows.size)
            if self.causal.is_mean(self.drift):
                denominators = shares.sum(axis=1)
            weights = weights[:, : sources.size] * shares
        if reference is None:
            denominators[~visible.any(axis=1)] = 1.0
        of_itself = weights[row_numbers, diagonal]
        weights[row_numbers, diagonal] = 0.0
        total = weights.sum(axis=1)
        pull = u @ weights.T - columns[:-1, rows] * total
        return np.concatenate([pull, (total + of_itself)[None]]), denominators

    def _shares(self, masses: np.ndarray, positions: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Masses w_ij m_j that token i sees, (rows, all j); 0 for j > i and outside the window."""
        visible = np.arange(masses.size) <= rows[:, None]
        if self.causal.plain:
            return np.where(visible, masses, 0.0)
        differences = np.maximum(positions[rows, None] - positions, 0.0)  # < 0 only for j > i
        if self.causal.window is not None:
            in_window = differences <= self.causal.window + WINDOW_ROUNDING
            if self.causal.sink is not None:
                in_window |= positions <= self.causal.sink + WINDOW_ROUNDING
            visible &= in_window
        return np.where(visible, self.causal.weights(differences) * masses, 0.0)


class CausalAttention(AttentionSums):
    """Attention with matrices of each token to itself and those before it, by "mean" or "sum".

    Parameters
    ----------
    drift : Attention
    causal : Causal
    threads : int

    Raises
    ------
    ValueError
        For weights that cannot be causal.
    MeanfieldError
        For a window, a decay, or a beta for each position.
    """

    def __init__(self, drift: Attention, causal: Causal, threads: int = 1) -> None:
        """Check that attention with matrices is plainly causal, and that "mean" has no bias."""
        if not causal.plain:
            raise MeanfieldError(
                "Attention with matrices sees all that comes before alike: window, decay and beta "
                f"by place are for USA, SA and other zonal drifts; got {causal!r}."
            )
        super().__init__(drift if drift.causal else drift.replace(causal=True), threads)
        self._by_mass = causal.is_mean(drift) and not drift.normalised
        self._causal = causal
        if self._by_mass and drift.output_bias is not None:
            raise MeanfieldError(
                'causal = "mean" divides sums by masses, and output_bias is no sum. '
                "Leave it out, and add Field(lambda x: bias + 0 * x) to the drift."
            )

    def attention(
        self, t: float, x: np.ndarray, masses: np.ndarray, at: np.ndarray | None = None
    ) -> np.ndarray:
        """Outputs (R, n, d), divided by the mass up to each token for "mean"."""
        output = super().attention(t, x, masses, at)
        return output / earlier_masses(masses)[..., None] if self._by_mass else output

    def with_tangents(self, names: Sequence[str | None]) -> Any:
        if self._by_mass:
            refuse_tangents(self._causal)
        return super().with_tangents(names)


def refuse_tangents(causal: Causal) -> NoReturn:
    """Raise MeanfieldError: derivatives are not known."""
    raise MeanfieldError(
        f"Derivatives of tokens under causal = {causal!r} are not known for this drift. Use "
        "Attention(beta=..., causal=True), whose derivatives are, or differences of runs with dt=."
    )


def earlier_masses(masses: np.ndarray) -> np.ndarray:
    """Cumulative masses (R, n) up to and including each token; 1 where they are 0."""
    visible = np.cumsum(masses, axis=1)
    return np.where(visible > 0, visible, 1.0)
