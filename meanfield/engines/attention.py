"""Attention evaluated on tokens: sums over all pairs, in memory of the size of the tokens.

The n x n matrix of logits <q_i, k_j> is never stored: blocks of it are computed by matrix products,
turned into weights, and multiplied by the values of their columns. Blocks of rows are independent;
for small n a block has many replicas. The division into blocks depends on n alone, so that the bits
of a replica depend neither on other replicas nor on the number of threads.

Arrays of tokens may be `Dual`: changes of the sums then follow, block by block, from those of
logits, weights and values.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.annotations import Values
from ..core.cached import cached_property
from ..core.checks import whole_number
from ..core.differences import derivative_at_zero
from ..core.dual import Dual, constant, value_of
from ..core.errors import MeanfieldError
from ..models.attention import AXES, Attention, Hardmax, heads
from .contract import SINGLE_THREAD, Engine, ThreadPool

LOGIT_ENTRIES = 1 << 17  # logits of a block: 1 MiB, within the cache of a core
LOGIT_COLUMNS = 512  # most columns of a block
MOST_DENSE_TOKENS = 512  # tokens up to which n x n weights are stored, for Newton's method
NEWTON_INTERVAL = 10  # iterations before Newton's method is tried (again)
LEAST_SUM = np.finfo(float).tiny  # smaller sums of weights have lost digits
NO_MASS_BIAS = -1e300  # bias of a token without mass: finite, as -inf - (-inf) would be nan
HIGHEST_LOGIT = 300.0  # of tokens without mass, relative to the largest of others


class AttentionSums(Engine):
    """The attention A_i of `Attention` or `Hardmax` on the tokens of R replicas.

    Parameters
    ----------
    drift : Attention or Hardmax
    threads : int
        Threads that share the blocks of rows; results are the same, bit for bit. BLAS may have
        threads of its own: more than one here helps where it has one (OPENBLAS_NUM_THREADS=1).

    Notes
    -----
    Costs O(R n^2 H (k + d)) operations, with linear weights O(R n H k d), and O(R n d) memory. A
    token that attends to no mass at all has A = 0.
    """

    name = "attention"
    tangential = False
    _rates: np.ndarray | None = None  # changes of beta along the tangents, (p,)

    def __init__(self, drift: Attention | Hardmax, threads: int = 1) -> None:
        self.drift: Any = drift
        self.threads = ThreadPool(whole_number("threads", threads))

    def attention(
        self, t: float, x: np.ndarray, masses: np.ndarray, at: np.ndarray | None = None
    ) -> np.ndarray:
        """Output A at time t of tokens x (R, n, d) with masses >= 0, (R, n).

        It is evaluated at the points `at`, (R, m, d) or (q R, m, d) with q systems of points for
        each system of tokens, and has their shape; these points exert no attention. By default
        they are the tokens; `Hardmax`, and attention that is causal or has positions, allow no
        others. Where exp(beta <Qx, Ky>) or the result overflows, it is infinite or nan.

        Raises
        ------
        ValueError
            If the drift's matrices are for another dimension, its betas or matrices are not one for
            each replica, Hardmax has fewer than two tokens, or a callable returned no valid value.
        MeanfieldError
            If Sinkhorn weights are not balanced, or a parameter is a function that a file did
            not hold.
        """
        matrices, positions = self.drift.at(t, x.shape[2]), self.drift.positions
        if positions is not None and at is not None:
            raise MeanfieldError(
                f"{self.drift!r} is known at tokens, which have positions; other points have none."
            )
        beta = self._beta_of(matrices, len(x))
        with np.errstate(over="ignore", invalid="ignore"):  # results are checked as a whole
            points = x if at is None else at
            shape = len(x), points.size // (len(x) * x.shape[2]), x.shape[2]
            pulls = []
            for number, matrix in enumerate(heads(matrices)):
                k, v = (of_head(matrix, name, x) for name in "KV")
                q = of_head(matrix, "Q", points.reshape(shape))
                if positions is not None:
                    q, k = positions.turned(q), positions.turned(k)
                head = Head(
                    *(q, k, v, masses, beta, self.threads),
                    causal=self.drift.causal,
                    token_queries=None if at is None else of_head(matrix, "Q", x),
                    terms=None if positions is None else positions.of_head(number),
                )
                pulled = self.drift.attend(self._prepared(head, number, matrix, x, points))
                pulls.append(times(pulled, matrix["output"]) if "output" in matrix else pulled)
            total: Any = sum(pulls[1:], pulls[0])
            if "output_bias" in matrices:
                total = total + matrices["output_bias"][..., None, :]
            return total.reshape(points.shape)

    def _beta_of(self, matrices: dict[str, np.ndarray], replicas: int) -> Values:
        """Remove beta from the matrices; return it, of shape () or (R, 1, 1), with changes.

        Raises ValueError unless beta and all matrices are one for all replicas or for each.
        """
        shapes = {name: matrices[name].shape for name in AXES if name in matrices}
        ensembles = {name: shape[: -len(AXES[name])] for name, shape in shapes.items()}
        beta = matrices.pop("beta", np.array(1.0))
        for name, shape in {**ensembles, "beta": beta.shape}.items():
            if shape not in ((), (1,), (replicas,)):
                raise ValueError(
                    f"{name} of ensemble shape {shape} is not one for each of {replicas} replicas. "
                    "Give one for all, or as many as there are replicas."
                )
        beta = np.broadcast_to(beta, (replicas,)).reshape(-1, 1, 1) if beta.ndim else beta
        if self._rates is not None:
            return Dual(beta, np.multiply.outer(self._rates, np.ones(beta.shape)))
        return beta

    def _prepared(
        self, head: "Head", number: int, matrix: Any, x: np.ndarray, at: np.ndarray
    ) -> "Head":
        """The head itself; derived classes may replace it.

        `number` and `matrix` are the number and the matrices of the head, x the tokens, `at` the
        points where the output is evaluated.
        """
        return head

    def with_tangents(self, names: Sequence[str | None]) -> Any:
        """The engine of `Dual` tokens, of sums over pairs; "beta" changes at the rate 1.

        Raises MeanfieldError for Hardmax.
        """
        if isinstance(self.drift, Hardmax):
            raise MeanfieldError(
                "Under Hardmax velocities jump where another token becomes the maximiser, so that "
                "runs have no derivatives. Use Attention(Q, K, V, beta) with a large beta."
            )
        if type(self.drift).attend is not Attention.attend:
            raise MeanfieldError(
                f"{type(self.drift).__name__} has a method attend of its own, whose derivatives "
                "are not known. Give the weights of `Attention` one."
            )
        engine = AttentionSums(self.drift, self.threads.threads)
        engine._rates = np.array([float(name == "beta") for name in names])
        return engine

    def potential(self, x: Values, masses: Values, t: float = 0.0) -> np.ndarray:
        """The potentials (R, n) whose gradients are the velocities; MeanfieldError of `Dual` x."""
        if isinstance(x, Dual):
            raise MeanfieldError(
                "Derivatives of runs with a reaction are known for zonal drifts, not for Attention."
                " Use USA(beta) or SA(beta) in its place, or reaction=0."
            )
        return super().potential(x, masses, t)


@dataclass(frozen=True)
class Head:
    """One head of attention on R replicas of n tokens, arrays or `Dual`, and its sums over pairs

        sum_j m_j k_ij v_j,    divided by sum_j m_j k_ij where `normalised`

    of shape (R, m, k). The weights k_ij are functions of the logits l_ij = beta <q_i, k_j>.

    Attributes
    ----------
    queries : ndarray, shape (R, m, k)
    keys, values : ndarray, shape (R, n, k)
    masses : ndarray, shape (R, n)
    beta : ndarray, shape () or (R, 1, 1)
    threads : ThreadPool
        Threads that share the blocks of pairs.
    bias : ndarray, shape (R, n), or None
        Added to the logits of each key.
    causal : bool
        Whether only the pairs j <= i count.
    token_queries : ndarray, shape (R, n, k), or None
        Queries of the n tokens themselves, where `queries` belong to other points.
    terms : callable or None
        terms(rows, columns), of two slices, is added to the logits of that block.
    """

    queries: Values
    keys: Values
    values: Values
    masses: Values
    beta: Values
    threads: ThreadPool = SINGLE_THREAD
    bias: Values | None = None
    causal: bool = False
    token_queries: Values | None = None
    terms: Callable[[slice, slice], np.ndarray] | None = None

    # What weights ask for ------------------------------------------------------------------

    def weighted(self, kernel: Callable[..., Any], *, normalised: bool) -> Values:
        """Sums with the weights k = kernel(l, (beta |q|^2, beta |k|^2)), which have to be finite.

        nan where `normalised` sums have a denominator that underflows although there is mass.
        """
        u = self._with_masses(self.values)
        u = u if normalised else u[..., :-1]
        squares = [self.beta * (v**2).sum(-1, keepdims=True) for v in (self.queries, self.keys)]
        sums = self._empty(u.shape[-1])

        def work(chunk: slice, rows: slice) -> None:
            """Write sums of weights times u for `rows` of the systems `chunk`."""

            def weights(columns: slice, logits: Values) -> Values:
                """Weights k_ij of a block (chunk, rows, columns); 0 for keys after the query."""
                key_squares = np.swapaxes(squares[1][chunk, columns], 1, 2)
                k = weights_along(kernel, logits, (squares[0][chunk, rows], key_squares))
                later = self._later(rows, columns)
                return k if later is None else np.where(later, 0.0, k)

            sums[chunk, rows] = sum(
                _weighted_sums(weights(columns, logits), u, chunk, columns)
                for columns, logits in self._logits(chunk, rows, masked=False)
            )

        self._for_each_block(work)
        if not normalised:
            return sums
        m = value_of(self.masses)
        mass = m.cumsum(axis=1) if self.causal else m.sum(axis=1, keepdims=True)
        lost = (np.abs(value_of(sums)[..., -1]) < LEAST_SUM) & (mass > 0)
        return np.where(lost[..., None], np.nan, means(sums))

    def exponential(self, *, normalised: bool) -> Values:
        """Sums with k = e^l. If `normalised`, each row is scaled by its largest k: no overflow."""
        top, sums = self._exponential_sums(self._with_masses(self.values))
        return means(sums) if normalised else np.exp(top) * sums[..., :-1]

    def by_distance(self) -> "Head":
        """The head with logits -beta |q - k|^2, up to a constant of each row."""
        origin = self.keys[:, :1]  # any origin will do; near the tokens fewer digits cancel
        queries, keys = 2 * (self.queries - origin), self.keys - origin
        token_queries = None if self.token_queries is None else 2 * (self.token_queries - origin)
        bias = (-self.beta * (keys**2).sum(axis=-1, keepdims=True))[..., 0]
        return replace(self, queries=queries, keys=keys, bias=bias, token_queries=token_queries)

    def doubly_stochastic(self, tolerance: float, most_iterations: int) -> "Head":
        """The head with the bias for which normalised e^l have columns of sum one too.

        See `log_scaling` for the parameters and errors. Changes of the bias of a `Dual` head keep
        the sums of columns constant: n linear equations for each replica, O(n^3) operations.
        """
        if isinstance(self.masses, Dual):
            names = "queries", "keys", "values", "masses", "beta"
            head = replace(self, **{name: value_of(getattr(self, name)) for name in names})
            bias: Any = head.doubly_stochastic(tolerance, most_iterations).bias
            return replace(self, bias=Dual(bias, self._changes_of_balance(bias)))

        def log_sums(
            queries: np.ndarray, keys: np.ndarray, potential: np.ndarray, masses: np.ndarray
        ) -> np.ndarray:
            """Logarithms of sum_j m_j exp(logit_ij + potential_j), (R, n)."""
            pairs = Head(queries, keys, keys, masses, np.array(1.0), self.threads, potential)
            top, sums = pairs._exponential_sums(masses[..., None])
            return (top + np.log(sums))[..., 0]

        of_tokens = self.queries if self.token_queries is None else self.token_queries
        queries, limits = self.beta * of_tokens, (tolerance, most_iterations)
        return replace(self, bias=log_scaling(queries, self.keys, self.masses, log_sums, *limits))

    def _changes_of_balance(self, bias: np.ndarray) -> np.ndarray:
        """Changes (p, R, n) of the bias along which the sums of columns stay one."""
        changes = np.empty(self.masses.changes.shape)
        for r, m in enumerate(self.masses.value):
            q, k = self._scaled[r], self.keys[r]
            weights = q.value @ k.value.T + bias[r]
            weights = np.exp(weights - weights.max(axis=1, keepdims=True))
            weights /= (weights @ m)[:, None]
            jacobian = np.diag(m @ weights) + m - (weights.T * m) @ (weights * m)
            for a, dm in enumerate(self.masses.changes[:, r]):
                dl = q.changes[a] @ k.value.T + q.value @ k.changes[a].T
                dl -= ((weights * dl) @ m + weights @ dm)[:, None]
                sum_changes = dm @ weights + m @ (weights * dl)
                changes[a, r] = np.linalg.solve(jacobian, -sum_changes)
        return changes

    def linear(self) -> Values:
        """Sums with k = l, not normalised, in O(n) operations; O(n^2) of causal `Dual` heads."""
        if self.causal and isinstance(self.masses, Dual):
            return self.weighted(lambda logits, _squares: logits, normalised=False)
        queries, u = self._scaled, self._with_masses(self.values)[..., :-1]
        if not self.causal:
            return queries @ (np.swapaxes(self.keys, 1, 2) @ u)
        moment = np.zeros((len(u), self.keys.shape[2], u.shape[2]))
        result = np.empty_like(u)
        for i in range(u.shape[1]):
            moment += self.keys[:, i, :, None] * u[:, i, None, :]
            result[:, i] = np.einsum("rq,rqk->rk", queries[:, i], moment)
        return result

    def largest(self, ties: float) -> np.ndarray:
        """Means of the v_j, j != i, for which l_ij is within `ties` of its maximum.

        The logits are computed twice: for the maximum of each row, and to compare with it.
        """
        excluded = None if self.masses.all() else np.where(self.masses > 0, 0.0, NO_MASS_BIAS)
        pairs, u = replace(self, bias=excluded), self._with_masses(self.values)
        sums = np.empty_like(u)

        def others(chunk: slice, rows: slice) -> Iterator[tuple[slice, np.ndarray]]:
            """Yield blocks of logits, with -inf at a token's own key."""
            for columns, logits in pairs._logits(chunk, rows):
                own_keys = np.arange(max(rows.start, columns.start), min(rows.stop, columns.stop))
                logits[:, own_keys - rows.start, own_keys - columns.start] = -np.inf
                yield columns, logits

        def work(chunk: slice, rows: slice) -> None:
            """Sum u_j over keys whose logits are largest, up to `ties`, for a block of rows."""
            peaks = (logits.max(axis=-1, keepdims=True) for _, logits in others(chunk, rows))
            threshold = np.maximum.reduce(list(peaks)) - ties
            sums[chunk, rows] = sum(
                (logits >= threshold).astype(float) @ u[chunk, columns]
                for columns, logits in others(chunk, rows)
            )

        self._for_each_block(work)
        return means(sums)

    # Blocks of pairs -----------------------------------------------------------------------

    @cached_property
    def _scaled(self) -> Values:
        """Scaled queries beta q."""
        beta, q = self.beta, self.queries
        if not isinstance(q, Dual):
            return beta * q
        systems = int(np.prod(beta.changes.shape[1:]))  # not -1, as there may be no tangents
        rates = beta.changes.reshape(len(q.changes), systems, 1, 1)
        return Dual(beta.value * q.value, beta.value * q.changes + rates * q.value)

    @cached_property
    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors (d(beta q), beta q) and (k, dk) of the changes of logits: one product for all."""
        q, k = self._scaled, self.keys
        left = np.concatenate([q.changes, np.broadcast_to(q.value, q.changes.shape)], axis=-1)
        right = np.concatenate([np.broadcast_to(k.value, k.changes.shape), k.changes], axis=-1)
        return left, right

    def _inner_products(self, chunk: slice, rows: slice, columns: slice) -> Values:
        """Inner products beta <q_i, k_j> of a block, (chunk, rows, columns)."""
        q, k = value_of(self._scaled), value_of(self.keys)
        products = q[chunk, rows] @ k[chunk, columns].swapaxes(1, 2)
        if not isinstance(self.keys, Dual):
            return products
        left, right = self._factors
        return Dual(products, left[:, chunk, rows] @ right[:, chunk, columns].swapaxes(2, 3))

    @property
    def _width(self) -> int:
        """Columns of a block of logits."""
        n = self.keys.shape[1]
        return n if isinstance(self.keys, Dual) else min(n, LOGIT_COLUMNS)

    def _with_masses(self, values: Values) -> Values:
        """Values times masses, and masses: (m v, m), shape (R, n, k + 1)."""
        m = value_of(self.masses)[..., None]
        summands = np.concatenate([m * value_of(values), m], axis=-1)
        if not isinstance(values, Dual):
            return summands
        dm = self.masses.changes[..., None]  # by hand: a fifth of the time of a small system
        changes = np.concatenate([dm * values.value + m * values.changes, dm], axis=-1)
        return Dual(summands, changes)

    def _empty(self, size: int) -> Values:
        """Array (R, m, size) for sums, with changes if the head has them."""
        shape = *self.queries.shape[:2], size
        if isinstance(self.masses, Dual):
            return Dual(np.empty(shape), np.empty((len(self.masses.changes), *shape)))
        return np.empty(shape)

    def _logits(
        self, chunk: slice, rows: slice, *, masked: bool = True
    ) -> Iterator[tuple[slice, Values]]:
        """Yield a slice of columns and the logits (chunk, rows, columns) of that block.

        If `masked`, logits of pairs j > i are -inf for a causal head.
        """
        n = self.keys.shape[1]
        end = min(rows.stop, n) if self.causal else n
        for start in range(0, end, self._width):
            columns = slice(start, min(start + self._width, end))
            block = self._inner_products(chunk, rows, columns)
            if self.bias is not None:
                bias = self.bias[chunk, None, columns]
                np.add(value_of(block), value_of(bias), out=value_of(block))
                if isinstance(block, Dual):
                    np.add(block.changes, bias.changes, out=block.changes)
            if self.terms is not None:
                np.add(value_of(block), self.terms(rows, columns), out=value_of(block))
            later = self._later(rows, columns) if masked else None
            if later is not None:
                np.copyto(value_of(block), -np.inf, where=later)
            yield columns, block

    def _later(self, rows: slice, columns: slice) -> np.ndarray | None:
        """A mask of the pairs j > i of a block of a causal head; None if there are none."""
        if not self.causal or columns.stop - 1 <= rows.start:
            return None
        i = np.arange(rows.start, min(rows.stop, self.keys.shape[1]))
        return np.arange(columns.start, columns.stop) > i[:, None]

    def _for_each_block(self, work: Callable[[slice, slice], None]) -> None:
        """Call work(chunk of replicas, rows) for blocks that cover all rows of all replicas.

        Blocks are so small that their logits, with changes, fit into LOGIT_ENTRIES.
        """
        replicas, n = self.queries.shape[:2]
        arrays = 1 + len(self.masses.changes) if isinstance(self.masses, Dual) else 1
        width, entries = self._width, LOGIT_ENTRIES // arrays
        rows = max(1, min(n, entries // width))
        chunk = max(1, entries // (rows * width)) if rows == n else 1
        blocks = [
            (slice(c, min(c + chunk, replicas)), slice(r, min(r + rows, n)))
            for c in range(0, replicas, chunk)
            for r in range(0, n, rows)
        ]

        count = self.threads.threads

        def work_of_threads(first: int, last: int) -> None:
            """Work through every count-th block, beginning with the number of the thread."""
            with np.errstate(over="ignore", invalid="ignore"):  # each thread has its own errstate
                for thread in range(first, last):
                    for block in blocks[thread::count]:  # later blocks of causal heads cost more
                        work(*block)

        self.threads.share(work_of_threads, count)

    def _exponential_sums(self, u: Values) -> tuple[np.ndarray, Values]:
        """Pair (top, sums) with sum_j e^(l_ij) u_j = e^(top_i) sums_i, without overflow.

        u has shape (R, n, c), top (R, m, 1) is the largest logit of each row, sums are (R, m, c).
        """
        top, sums = np.empty((*self.queries.shape[:2], 1)), self._empty(u.shape[-1])
        massless = None if value_of(self.masses).all() else value_of(self.masses) <= 0

        def work(chunk: slice, rows: slice) -> None:
            """Fill largest logits and sums of e^(logit - largest) u_j for a block of rows."""
            highest, total = np.array(NO_MASS_BIAS), None
            for columns, block in self._logits(chunk, rows):
                l = among = value_of(block)
                if massless is not None:
                    among = np.where(massless[chunk, None, columns], NO_MASS_BIAS, l)
                peak = np.maximum(among.max(axis=-1, keepdims=True), highest)
                np.subtract(l, peak, out=l)
                if massless is not None:  # logits of tokens without mass may exceed the others
                    np.minimum(l, HIGHEST_LOGIT, out=l)
                np.exp(l, out=l)
                if isinstance(block, Dual):
                    np.multiply(block.changes, l, out=block.changes)
                added = _weighted_sums(block, u, chunk, columns)
                total = added if total is None else added + np.exp(highest - peak) * total
                highest = peak
            top[chunk, rows], sums[chunk, rows] = highest, total

        self._for_each_block(work)
        return top, sums


def means(sums: Values) -> Values:
    """Weighted means of v, (R, n, k), from sums of (m v, m), (R, n, k + 1); 0 without mass."""
    values = value_of(sums)
    total = np.where(values[..., -1:] == 0, 1.0, values[..., -1:])
    mean = values[..., :-1] / total
    if not isinstance(sums, Dual):
        return mean
    return Dual(mean, (sums.changes[..., :-1] - mean * sums.changes[..., -1:]) / total)


def _weighted_sums(weights: Values, u: Values, chunk: slice, columns: slice) -> Values:
    """Sums of rows of u (R, n, k), with changes by hand: operators of `Dual` take longer."""
    values = value_of(u)[chunk, columns]
    if not isinstance(weights, Dual):
        return weights @ values
    changes = weights.changes @ values + weights.value @ u.changes[:, chunk, columns]
    return Dual(weights.value @ values, changes)


def weights_along(kernel: Callable[..., Any], logits: Values, squares: tuple[Any, ...]) -> Values:
    """Weights kernel(logits, squares), with tangents of `Dual` arrays, else by differences.

    Differences are used where the kernel calls functions without a rule for `Dual`.
    """
    if not isinstance(logits, Dual):
        return kernel(logits, squares)
    try:
        k = kernel(logits.copy(), squares)
        return k if isinstance(k, Dual) else constant(k, len(logits.changes))
    except (TypeError, AttributeError):  # the kernel calls functions without a rule for `Dual`
        arguments, total = (logits, *squares), np.zeros(logits.changes.shape)
    for number, argument in enumerate(arguments):

        def moved(h: float, number: int = number) -> np.ndarray:
            l, *parameters = (a.value + h * (k == number) for k, a in enumerate(arguments))
            return kernel(l, tuple(parameters))

        total += derivative_at_zero(moved, kernel.__name__) * argument.changes
    return Dual(kernel(logits.value.copy(), tuple(s.value for s in squares)), total)


def of_head(matrix: Mapping[str, np.ndarray], name: str, x: np.ndarray) -> np.ndarray:
    """Queries, keys or values M x of a head for every token, plus the bias if there is one.

    `name` is "Q", "K" or "V", the key of M in the matrices of the head.
    """
    vectors, bias = times(x, matrix[name]), matrix.get(f"{name}_bias")
    return vectors if bias is None else vectors + bias[..., None, :]


def times(x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Products M x for every token, (R, n, d) -> (R, n, k); M is (k, d), (R, k, d) or a number."""
    return x @ matrix.swapaxes(-1, -2) if matrix.ndim else matrix * x


# Sinkhorn weights: the w(y) for which both marginals are one ------------------------------


def log_scaling(
    queries: np.ndarray,
    keys: np.ndarray,
    masses: np.ndarray,
    log_sums: Callable[..., np.ndarray],
    tolerance: float,
    most_iterations: int,
) -> np.ndarray:
    """Sinkhorn potential log w_j, (R, n): softmax of l_ij + log w_j has columns of sum one too.

        sum_i m_i k_ij = 1,    k_ij = e^(l_ij) w_j / sum_j m_j e^(l_ij) w_j,    l_ij = <q_i, k_j>

    Each iteration costs two sums over all pairs; a replica is iterated until its own marginals are
    one. For narrow kernels the iteration converges slowly; for n <= 512 Newton's method is tried
    every tenth iteration.

    Parameters
    ----------
    queries, keys : ndarray, shape (R, n, k)
    masses : ndarray, shape (R, n)
        Tokens without mass have no marginals.
    log_sums : callable
        log_sums(queries, keys, potential, masses) returns log sum_j m_j e^(l_ij + potential_j),
        (R, n), over the tokens that have mass.
    tolerance : float
        Largest error of a marginal.
    most_iterations : int

    Raises
    ------
    MeanfieldError
        If a replica misses the tolerance after `most_iterations`.
    """
    potential = np.zeros_like(masses)
    active, error = np.arange(len(masses)), np.empty(0)
    for iteration in range(most_iterations):
        q, k, m, old = queries[active], keys[active], masses[active], potential[active]
        new = -log_sums(k, q, -log_sums(q, k, old, m), m)
        errors = np.where(m > 0, np.abs(np.expm1(old - new)), 0.0)  # errors of the column sums
        error = errors.max(axis=1)
        unbalanced = ~(error <= tolerance)
        active = active[unbalanced]
        if active.size == 0:
            return potential
        potential[active] = new[unbalanced]
        if masses.shape[1] <= MOST_DENSE_TOKENS and (iteration + 1) % NEWTON_INTERVAL == 0:
            for r in active:
                massive = masses[r] > 0
                dense = queries[r, massive] @ keys[r, massive].T
                potential[r, massive] = _newton(dense, potential[r, massive], masses[r, massive])
    raise not_balanced(most_iterations, error.max(), tolerance, "beta <Qx, Ky>")


def not_balanced(count: int, error: float, tolerance: float, of: str) -> MeanfieldError:
    """The error of Sinkhorn weights after `count` iterations; `of` has the range of the logits."""
    return MeanfieldError(
        f"Sinkhorn weights are not balanced after {count} iterations: the error of a marginal is "
        f"{error:.2g}, expected {tolerance:.2g}. Raise most_iterations if it is large (narrow "
        "kernels need more), or tolerance if it is small (about 1e-16 times the range of "
        f"{of} is rounding)."
    )


def _newton(logits: np.ndarray, potential: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Newton's method for the potential (n,) of one replica, as long as it halves the error.

    The column sums c_j(potential) have the Jacobian c_j delta_jl - m_l sum_i m_i k_ij k_il. It is
    singular, since constants in the potential have no effect; m_l is added to make it regular.
    """
    best, error = potential, np.inf
    while True:
        k = logits + potential
        k = np.exp(k - k.max(axis=1, keepdims=True))
        k /= (k @ masses)[:, None]
        excess = masses @ k - 1
        size = np.abs(excess).max()
        if not size < error / 2:
            return best
        best, error = potential, size
        jacobian = np.diag(excess + 1) + masses - (k.T * masses) @ (k * masses)
        try:
            potential = potential - np.linalg.solve(jacobian, excess)
        except np.linalg.LinAlgError:
            return best
