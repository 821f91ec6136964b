"""The distance of measures that know the position of a token, as causal attention needs it."""

import numpy as np

from ..core.checks import whole_number
from ..states import Tokens
from .curves import ROUNDING
from .distance import Distance
from .ground import between
from .quantiles import levels_of
from .shift import SLIVER
from .wasserstein import checked_power, wasserstein

__all__ = ["conditional_wasserstein"]


def conditional_wasserstein(
    a: Tokens, b: Tokens, p: float = 2, *, blocks: int | None = None
) -> Distance:
    """(int_0^1 W_p(a_s, b_s)^p ds)^(1/p), where s is the place of a token in its sequence.

    a_s is the law of tokens given that s of the mass comes before them. Token i of n equal ones is
    the law at every s from (i - 1)/n to i/n, or a block of neighbours together is.

    Parameters
    ----------
    a, b : Tokens
        Single sets in one space, in the order of their sequences, of equal or different lengths.
    p : float
        From 1 to 20.
    blocks : int, optional
        Number of blocks of equal mass; it divides the number of tokens of both, whose masses are
        then equal. By default every token is a block of its own.

    Raises
    ------
    TypeError, ValueError
        For other states, and blocks that do not divide both sequences.

    Notes
    -----
    Plans that keep s: the distance is at least `wasserstein(a, b, p)`.

    References
    ----------
    Castin, Ablin and Peyre, arXiv:2312.14820 (masked attention).
    """
    p = checked_power(p)
    for state in (a, b):
        if not isinstance(state, Tokens) or state.shape:
            raise TypeError(
                f"conditional_wasserstein is between single sets of Tokens; got {state!r}."
            )
    if blocks is not None:
        return _of_blocks(a, b, p, whole_number("blocks must be a number", "blocks", blocks))
    if a.dimension != b.dimension or a.on_sphere != b.on_sphere:
        raise ValueError(f"Both need to be tokens of one space; got {a!r} and {b!r}.")
    ends = [levels_of(tokens.masses[None])[0, 1:] for tokens in (a, b)]
    edges = np.union1d(*ends)
    middles = (edges + np.concatenate([[0.0], edges[:-1]])) / 2
    first, second = (
        tokens.x[np.minimum(np.searchsorted(end, middles), len(tokens) - 1)]
        for tokens, end in zip((a, b), ends, strict=True)
    )
    lengths = np.diff(edges, prepend=0.0)
    lengths[lengths <= SLIVER] = 0.0  # rounding errors of the levels
    gaps = between(first, second) if a.on_sphere else np.linalg.norm(first - second, axis=1)
    scale = float(gaps.max())
    value = scale * (lengths @ (gaps / (scale or 1.0)) ** p) ** (1 / p)
    most = (value**p + ROUNDING * scale**p) ** (1 / p) if scale < 1e3 else value
    return Distance(value, most - value, "along the sequence")


def _of_blocks(a: Tokens, b: Tokens, p: float, blocks: int) -> Distance:
    for tokens in (a, b):
        if len(tokens) % blocks or np.ptp(tokens.masses) > 0:
            raise ValueError(
                f"{blocks} blocks of equal mass need a number of tokens that they divide, of equal "
                f"masses; got {tokens!r}."
            )
    first, second = (
        Tokens(t.x.reshape(blocks, -1, t.dimension), on_sphere=t.on_sphere) for t in (a, b)
    )
    slices = wasserstein(first, second, p)
    values, highest = np.asarray(slices.value), np.asarray(slices.value) + slices.error
    mean, most = (float((x**p).mean() ** (1 / p)) for x in (values, highest))
    return Distance(mean, most - mean, "along the sequence")
