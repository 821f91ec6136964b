"""Observables of states along a run, inner products and clusters of tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.annotations import Function, MovedState, PassedOn, UserValue
from ..core.calls import checked_call
from ..core.checks import as_given, check_memory, positive, whole_number
from ..models.transformer import Transformer
from ..spaces import Space
from ..states import Gram, Tokens
from ..states.clusters import LINKED_ANGLE
from ..states.tokens import TokenSet, sum_over_pairs
from ..steppers import Strang
from ..steppers.flow import NO_FLOAT_WARNINGS
from .motion import motion_for

MOMENT_COUNT = 8
HISTOGRAM_ROWS = 512
SHORT_STEP = 2.0**-10


@dataclass(frozen=True)
class ObservableStyle:
    """Axis and scale on which figures show an observable.

    Attributes
    ----------
    symbol : str
        Label of its axis.
    log_from : float
        The ratio of largest to smallest positive value from which on the axis is logarithmic.
    offset : float
        Subtracted before drawing.
    steps : bool
        Whether it is a whole number, constant between saved times.
    noise : float
        Values below this share of earlier ones are rounding errors; 0 if small values are accurate.
    """

    symbol: str
    log_from: float = np.inf
    offset: float = 0.0
    steps: bool = False
    noise: float = 1e-20


OBSERVABLE_STYLES: dict[tuple[str, bool], ObservableStyle] = {}


@checked_call()
def declare(name: str, symbol: str, *, flat: bool = False, **scale: PassedOn) -> None:
    """Declare how figures show the observable of this name.

    Parameters
    ----------
    name : str
        As in ``Solution.observables``.
    symbol : str
        The label of its axis, with formulas in dollar signs.
    flat : bool
        Only for states of R^d.
    **scale
        Other attributes of `ObservableStyle`, such as `log_from`, the ratio of largest to smallest
        value from which the axis is logarithmic.
    """
    OBSERVABLE_STYLES[name, flat] = ObservableStyle(symbol, **scale)


def style_of_observable(name: str, *, flat: bool = False) -> ObservableStyle:
    """The style of an observable, in R^d if `flat`; with its name as symbol if not declared."""
    sphere_style = OBSERVABLE_STYLES.get((name, False), ObservableStyle(name.replace("_", " ")))
    return OBSERVABLE_STYLES.get((name, flat), sphere_style)


declare("order_parameter", r"order parameter $|m_1|$")
declare("order_parameter", r"length of the mean $|\bar{x}|$", flat=True, log_from=100.0)
declare("mean_cosine", "mean cosine")
declare("mean_cosine", "mean cosine of directions", flat=True)
declare("speed", r"speed in $W_2$", log_from=100.0)
declare("cluster_count", "clusters", log_from=50.0, steps=True)
declare("interaction_energy", r"interaction energy $E(\mu_t)$")
declare("effective_rank", "effective rank", log_from=1e4)
declare("spread", "spread (r.m.s.)", log_from=100.0)
declare("mass", r"mass drift $\int \mathrm{d}\mu_t - 1$", offset=1.0)


@checked_call("model")
def measure(model: Transformer, state: UserValue = None, t: float = 0.0) -> dict[str, np.ndarray]:
    """Observables of a state under a model: see `measure` of the motion of its class.

    Speeds and energies depend on the model. Observables of a state alone, such as its moments, are
    methods of the state.

    Parameters
    ----------
    model : Transformer
    state : Density, Characteristics, Tokens, Gram, Equiangular, Gaussian or another one
    t : float
        The time, for models that depend on it.

    Returns
    -------
    dict of ndarray
        Observables by name, with an entry for each member or replica.

    Raises
    ------
    TypeError
        Without a model or a state.
    """
    if not isinstance(model, Transformer) or state is None:
        got = "no state" if isinstance(model, Transformer) else f"model = {as_given(model)}"
        raise TypeError(
            "measure takes a model and a state, mf.measure(model, state): speeds and energies are "
            f"those of a state under a model; got {got}. What needs no model a state tells by "
            "itself: state.moment(1) or state.expect(f), for instance."
        )
    with np.errstate(**NO_FLOAT_WARNINGS):
        observables = motion_for(state, model)(model, state).measure(state, t)
    return {name: np.asarray(value) for name, value in observables.items()}


def measure_all(
    model: Transformer,
    states: Sequence[MovedState],
    times: Sequence[float] | np.ndarray,
    tell: Callable[[float], None] = lambda _part: None,
) -> dict[str, np.ndarray]:
    """`measure` at every time, stacked on a first axis; lists of clusters padded with nan.

    For densities also the degree at each time. `tell` is called with the fraction that is done.
    """
    motion, rows = motion_for(states[0], model)(model, states[0]), []
    with np.errstate(**NO_FLOAT_WARNINGS):
        for state, t in zip(states, times, strict=True):
            motion = motion.with_state(state)
            rows.append({**motion.measure(state, float(t)), **motion.resolution(state)})
            tell(len(rows) / len(states))
    return {name: _stacked([np.asarray(row[name]) for row in rows]) for name in rows[0]}


def rates_of_change(model: Transformer, state: MovedState, t: float) -> np.ndarray:
    """Rates of change of the coordinates of a state, an array of floats.

    Of tokens with noise, the mean rates over one short step with random numbers of a fixed seed.
    """
    motion = motion_for(state, model)(model, state)
    y, rng = motion.coordinates(state), np.random.default_rng(0)
    with np.errstate(**NO_FLOAT_WARNINGS):
        if motion.random and not motion.semilinear:
            streams = (rng,) if model.common is None else (rng, rng)
            rates = (motion.step(Strang, y, t, SHORT_STEP, *streams) - y) / SHORT_STEP
        else:
            rates = motion.velocity(y, t)
    return np.ascontiguousarray(rates).view(float).ravel()


def _stacked(arrays: list[np.ndarray]) -> np.ndarray:
    """Arrays on a new first axis; those shorter on their own first axis are padded with nan."""
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    padded = np.full((len(arrays), max(map(len, arrays)), *arrays[0].shape[1:]), np.nan)
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return padded


def moments_of(space: Space, coefficients: np.ndarray) -> np.ndarray:
    """The moments of degrees 1, ..., 8 of densities with these coefficients, (..., 8), complex."""
    degrees = range(1, MOMENT_COUNT + 1)
    moments = [space.scalar_moment(coefficients, k) for k in degrees]
    return np.stack(moments, axis=-1).astype(complex)


def effective_rank(tokens: Tokens) -> np.ndarray:
    """exp(-sum_k p_k log p_k), p the eigenvalues of sum_i m_i x_i x_i^T over their sum."""
    weighted = np.sqrt(tokens.masses)[..., None] * tokens.x
    values = np.linalg.svd(weighted, compute_uv=False) ** 2
    return rank_of(values / values.sum(axis=-1, keepdims=True))


def rank_of(shares: np.ndarray) -> np.ndarray:
    """The exponential of the entropy of shares (..., k) >= 0 of sum 1, (...)."""
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return np.exp(-(shares * logs).sum(axis=-1))


def inner_product_histogram(state: Tokens | Gram, bins: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """The histogram of <x_i, x_j> over pairs i != j, weighted by their masses.

    Parameters
    ----------
    state : Tokens or Gram
        A single set; for tokens of R^d directions are used, without tokens at 0.
    bins : int
        The number of equal bins on [-1, 1].

    Returns
    -------
    (shares, edges) : ndarray, (bins,) and (bins + 1,)
        Shares of sum 1, nan if no pair has a mass. Inner products beyond +-1 by rounding are in
        the outermost bins.

    Raises
    ------
    TypeError
        For other states.
    ValueError
        For replicas, a single token, or bins that are not a whole number >= 1.

    Notes
    -----
    Cost: n^2 d operations and memory for 512 rows.
    """
    _check_token_set(state)
    if state.shape:
        raise ValueError("The histogram is that of a single set; take replicas one by one.")
    bins = whole_number("bins", bins)
    if len(state) < 2:
        raise ValueError("Inner products are those of pairs; there is only one token.")
    check_memory(f"bins = {bins}", (8, bins), "bins")
    edges, shares = np.linspace(-1, 1, bins + 1), np.zeros(bins)
    masses = state.directed_masses
    for begin in range(0, len(state), HISTOGRAM_ROWS):
        rows = slice(begin, begin + HISTOGRAM_ROWS)
        products = state.inner_products(rows)
        weights = masses[rows, None] * masses
        weights[np.arange(len(weights)), np.arange(begin, begin + len(weights))] = 0
        clipped = np.minimum(np.maximum(products, -1), 1)
        shares += np.histogram(clipped, edges, weights=weights)[0]
    with np.errstate(invalid="ignore"):
        return shares / shares.sum(), edges


def mean_cosine(state: Tokens | Gram) -> np.ndarray:
    """The mean of <x_i, x_j> over pairs i != j, weighted by their masses, (*replicas,).

    Tokens at 0 in R^d have no direction and are left out. nan where no pair has a mass.
    """
    _check_token_set(state)
    masses = state.directed_masses
    with np.errstate(invalid="ignore"):
        return state.sum_of_inner_products / sum_over_pairs(np.ones((*masses.shape, 1)), masses)


def pairless(state: Tokens | Gram) -> str | None:
    """A sentence if in some replica fewer than two tokens have a mass > 0; else None."""
    if (np.count_nonzero(state.masses, axis=-1) > 1).all():
        return None
    return (
        "All masses but one are 0, so that no pair of tokens has a mass, and the mean over pairs, "
        "mean_cosine, is nan."
    )


def _check_token_set(state: UserValue, noun: str = "Pairs") -> None:
    if not isinstance(state, TokenSet):
        raise TypeError(f"{noun} are those of a state of Tokens or a Gram; got {as_given(state)}.")


# Clusters ------------------------------------------------------------


def cluster_counts(state: UserValue) -> np.ndarray:
    """The number of clusters of every replica of Tokens or Gram."""
    sets = [state] if not state.shape else [state[i] for i in np.ndindex(state.shape)]
    counts = [cluster_labels(tokens).max() + 1 for tokens in sets]
    return np.array(counts, dtype=float).reshape(state.shape)


def cluster_labels(state: Tokens | Gram, angle: float = LINKED_ANGLE) -> np.ndarray:
    """The cluster of every token, numbered from 0: single linkage with gaps up to `angle`.

    Parameters
    ----------
    state : Tokens or Gram
        A single set. In R^d the gap is a distance rather than an angle.
    angle : float
        In radians; by default arccos 0.9999.

    Returns
    -------
    ndarray of int, (n,)

    Raises
    ------
    ValueError
        For replicas; for more than 20000 tokens in d > 3.

    Notes
    -----
    On the circle O(n log n); otherwise O(n^2), and for many tokens in d <= 3 about O(n): those in
    the same cell of side angle / sqrt(d) are linked, and only cells next to each other compared.
    """
    _check_token_set(state, "Clusters")
    if state.shape:
        raise ValueError("Clusters are those of a single set of tokens; take replicas one by one.")
    angle = positive("angle", angle)
    return state.cluster_labels(angle)


def merge_events(n: int, angle: float = LINKED_ANGLE) -> list[Function]:
    """Events, for `solve`, at which the number of clusters falls to n - 1, n - 2, ..., 1.

    The times are then `run.t_events`, one array for each.

    Parameters
    ----------
    n : int
        The number of tokens, or of clusters at the start.
    angle : float
        As for `cluster_labels`.

    Notes
    -----
    Locating one merger costs about 50 steps, because the jump of the number of clusters is found by
    bisection; all 99 mergers of 100 tokens may cost 100 runs. A smaller n, such as
    ``merge_events(3)``, locates only the last ones.
    """
    n = whole_number("n", n)
    angle = positive("angle", angle)
    check_memory(f"n = {n}, an event for each", (32, n), "n")
    return [_falls_to(count, angle) for count in range(n - 1, 0, -1)]


def _falls_to(count: int, angle: float) -> Function:
    """Event at which the number of clusters, linked by `angle`, falls to `count`."""

    def excess(_t: float, state: Tokens | Gram) -> float:
        return float(cluster_labels(state, angle).max() + 0.5 - count)

    excess.__qualname__ = f"falls to {count} clusters"
    excess.direction = -1  # type: ignore[attr-defined]
    return excess
