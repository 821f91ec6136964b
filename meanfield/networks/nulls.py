"""Null models: networks of the same architecture without what training gave, and shuffled texts."""

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from meanfield.extending import RandomSource, UserValue, as_given, generator, require, whole_number

from .load import untrained
from .network import Network
from .trace import Trace

Ids = list[np.ndarray]


NULL_MODELS: dict[str, Callable[[Network, Ids, np.random.Generator], tuple[Network, Ids]]] = {
    "random weights": lambda net, ids, rng: (net.random(rng), ids),
    "shuffled weights": lambda net, ids, rng: (net.shuffled(rng), ids),
    "shuffled tokens": lambda net, ids, rng: (
        net, [np.concatenate([i[:1], rng.permutation(i[1:-1]), i[-1:]]) for i in ids]
    ),
    "untrained": lambda net, ids, rng: (untrained(net.config, rng, net.dtype), ids),
}  # fmt: skip
NULLS_IN_WORDS = {
    "random weights": "random weights of the trained sizes (each tensor normal with the mean and "
    "standard deviation that training gave it)",
    "shuffled weights": "shuffled weights (the entries of each trained tensor in random order)",
    "shuffled tokens": "shuffled tokens (the words of each text in random order)",
    "untrained": "untrained weights (as before training: small normal numbers, gains near 1)",
}  # in sentences, after "with"


def nulls(
    net: Network,
    texts: UserValue,
    measure: "Callable[[Trace, Network], xr.Dataset]",
    *,
    kinds: Sequence[str] = tuple(NULL_MODELS),
    draws: int = 4,
    rng: RandomSource = 0,
) -> xr.Dataset:
    """Repeat a measurement on networks without training, and on shuffled texts.

    Parameters
    ----------
    net : Network
    texts : str, sequence of int, or a list of these
        As `Network.trace` takes them.
    measure : function of a trace and its network
        Returns an xarray.Dataset, as ``lambda trace, net: probe(trace, net, modes=False)``.
    kinds : sequence of str
        - "random weights": each tensor normal with the mean and standard deviation of the trained
          one. This keeps the sizes of trained weights; it is no network before training;
        - "shuffled weights": the entries of each tensor in random order;
        - "shuffled tokens": the network itself, on texts whose tokens are in random order, except
          for the first and the last, which are special tokens in encoders;
        - "untrained": a network before training, drawn by `untrained`.
    draws : int
        Number of draws of each kind; at least 2 for a standard deviation.
    rng : numpy.random.Generator or seed

    Returns
    -------
    xarray.Dataset
        Results of `measure`, with the dimensions `null` and `draw` before their own:
        ``found.mean("draw")`` and ``found.std("draw", ddof=1)``.

    Raises
    ------
    TypeError, ValueError
        For unknown kinds, and texts that the network refuses.
    """
    require("measure", measure, "a function of a trace and a network", callable(measure), TypeError)
    kinds, draws, random = list(kinds), whole_number("draws", draws), generator(rng)
    is_known = set(kinds) <= set(NULL_MODELS) and len(kinds) > 0
    require("kinds", kinds, f"some of {', '.join(NULL_MODELS)}", is_known)
    ids = net.trace(texts).ids
    rows = []
    for kind in kinds:
        drawn = (NULL_MODELS[kind](net, ids, random) for _ in range(draws))
        measured = [measure(model.trace(list(shuffled)), model) for model, shuffled in drawn]
        for data in measured:
            expected = "an xarray.Dataset from measure"
            require("the result", as_given(data), expected, isinstance(data, xr.Dataset), TypeError)
        rows.append(xr.concat(measured, "draw"))
    return xr.concat(rows, "null").assign_coords(null=kinds)
