"""Quantities of the theory in the layers of a network: cosines, energies, clusters, heads."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import xarray as xr

from meanfield import Tokens, wasserstein
from meanfield.extending import UserValue, Values, boolean, real, require, whole_number

from .clustering import linked, modes_of, renyi_centres
from .hidden_states import check_states, texts_of
from .network import Network
from .quantities import EffectiveRank, Energy, MeanCosine, checked_beta, directions
from .trace import Trace

Columns = dict[str, tuple[tuple[str, ...], Values, str]]  # dimensions, values, label


def probe(
    trace: UserValue,
    net: Network | None = None,
    *,
    betas: Sequence[float] = (1.0, 4.0, 8.0),
    angles: Sequence[float] = (0.6, 0.9, 1.2),
    bins: int = 80,
    distances: bool = True,
    modes: bool = True,
    causal: bool | None = None,
) -> xr.Dataset:
    """Quantities of the theory in the layers of a network, by text, layer, block and head.

    Layer 0 is the input of the first block, layer l the output of block l. x_i = h_i/|h_i| is the
    direction of a hidden state, and all tokens of a text have the mass 1/n.

    Parameters
    ----------
    trace : Trace, array (layers + 1, n, d), or list of such arrays
        Hidden states of one text or several, without padding; or the tuple `hidden_states` that
        the package transformers returns for one text, with entries (1, n, d).
    net : Network, optional
        The network that made the trace; adds the quantities of its heads.
    betas : sequence of float
        Inverse temperatures of energies, modes and discrepancies, 0 < beta <= 500.
    angles : sequence of float
        Thresholds of single linkage and of Renyi centres, in radians, between 0 and pi.
    bins : int
        Number of equal bins on [-1, 1] in the histogram of cosines.
    distances : bool
        Whether to compute distances between consecutive layers.
    modes : bool
        Whether to count modes by mean-shift.
    causal : bool, optional
        Whether attention is causal, which adds Renyi centres; by default read from the network, or
        from the attention weights of the trace.

    Returns
    -------
    xarray.Dataset
        By (text, layer):

        - `mean_cosine`: of pairs i != j; `cosine_share` (bin): shares of pairs by their cosine;
        - `energy` (beta): E_beta = 1/(2 beta n^2) sum_ij exp(beta <x_i, x_j>), i = j included;
        - `effective_rank`: exp of the entropy of the eigenvalues of sum_i x_i x_i^T/n;
        - `norm`, `norm_spread`: mean and standard deviation of |h_i|;
        - `clusters` (angle): number of sets that gaps up to the angle link (single linkage);
        - `modes` (beta): number of limits of mean-shift, see Notes;
        - causal: `renyi_centres`, `strong_renyi_centres` (angle): tokens farther than the angle
          from all centres before them; from all tokens before them.

        By (text, block), between layers l - 1 and l:

        - `w2`: Wasserstein distance of the directions, in radians; `moved`: root mean square of
          the angles by which tokens turn, at least `w2`;
        - `mmd` (beta): maximum mean discrepancy with the kernel exp(-beta |x - y|^2/2).

        By (text, block, head), if the trace has attention weights A_ij:

        - `entropy`: mean over i of -sum_j A_ij log A_ij, in nats; `entropy_share`: `entropy`
          divided by its value for equal weights on the same tokens;
        - `sink_share`, `sink_position`: the largest share of all attention that one token
          receives, max_j (1/n) sum_i A_ij, and its j.

        By (text, block, head), if the network is given, with logits <q_i, k_j>/sqrt(k):

        - `head_beta`: |q| |k|/sqrt(k), with |q| and |k| the root mean squares of |q_i| and |k_j|:
          logits are head_beta <q_i, k_j>/(|q| |k|);
        - `head_log_energy`: log of E_beta of the directions of layer l - 1 at beta = head_beta;
        - `head_slope`, `head_slope_share`: the beta for which beta <x_i, x_j> is nearest to the
          logits, by least squares up to a constant for each i, over the pairs that attention
          allows, and the share of the logits' variance within rows that it explains.

        By (block, head), if the network is given, of M = output_h V_h ("value") and
        M = Q_h^T K_h/sqrt(k) ("key"): singular values `value_singular`, `key_singular` (rank), and
        nonzero eigenvalues of (M + M^T)/2, `value_symmetric`, `key_symmetric` (eigenvalue). The
        matrices act on hidden states if normalisations follow the sublayers (BERT), and on unit
        vectors if they precede them.

    Raises
    ------
    TypeError, ValueError
        For a `trace` of another type or shape, zero vectors, a single token, or options out of
        their range.

    Notes
    -----
    Modes are those of sum_j exp(beta <x, x_j>) on the sphere that tokens reach by mean-shift:
    y -> sum_j exp(beta <y, x_j>) x_j divided by its length is iterated until tokens move less than
    1e-7 bandwidths beta^(-1/2). Limits within 0.01 bandwidths count once, and so do tokens that
    still move after 2000 steps.

    Cost for a text and layer: n^2 d, and n^3 for the rank; modes about 50 n^2 d; the distance W2
    about n^2.5, 0.1 s at n = 500.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy and Rigollet, A mathematical perspective on transformers, Bull.
    Amer. Math. Soc. 62 (2025), for the energy (3.4). Cheng, IEEE Trans. Pattern Anal. Mach. Intell.
    17 (1995), for mean-shift. Karagodin, Polyanskiy and Rigollet, Clustering in causal attention
    masking, NeurIPS 2024, for Renyi centres.
    """
    trace = as_trace(trace)
    betas = [checked_beta("a number in betas", beta) for beta in betas]
    angles = [real("a number in angles", a, "0 < angle <= pi", lambda a: 0 < a <= np.pi)
              for a in angles]  # fmt: skip
    bins = whole_number("bins", bins)
    distances, modes = boolean("distances", distances), boolean("modes", modes)
    masked = is_causal(trace, net) if causal is None else boolean("causal", causal)
    options = betas, angles, bins, modes, masked
    texts = [_stacked("layer", [_of_layer(h, *options) for h in hidden]) for hidden in trace.hidden]
    columns = _stacked("text", texts)
    if distances:
        columns |= _stacked("text", [_between_layers(h, betas) for h in trace.hidden])
    if trace.attention:
        columns |= _stacked("text", [_of_weights(weights) for weights in trace.attention])
    if net is not None:
        columns |= _stacked("text", [_of_heads(net, k, trace) for k in range(len(trace.hidden))])
        columns |= _of_matrices(net)
    depth = len(trace.hidden[0])
    edges = np.linspace(-1, 1, bins + 1)
    coordinates = {
        "text": np.arange(len(trace.hidden)), "layer": np.arange(depth),
        "block": np.arange(1, depth), "beta": betas, "angle": angles,
        "bin": (edges[1:] + edges[:-1]) / 2,
    }  # fmt: skip
    present = {dim for dims, _, _ in columns.values() for dim in dims}
    return xr.Dataset(
        {name: (dims, values, {"long_name": label})
         for name, (dims, values, label) in columns.items()},
        {dim: values for dim, values in coordinates.items() if dim in present},
    )  # fmt: skip


def as_trace(states: UserValue) -> Trace:
    """Check a trace; convert arrays of hidden states to a trace whose words are positions.

    Raises
    ------
    TypeError, ValueError
        For other types or shapes, zero vectors, single tokens, texts of different depth, and words
        whose number is not that of the tokens.
    """
    if not isinstance(states, Trace):
        arrays = texts_of("trace", states)
        words = [[str(k) for k in range(h.shape[-2] if h.ndim > 1 else 0)] for h in arrays]
        states = Trace(arrays, words)
    for k, h in enumerate(states.hidden):
        check_states("trace" if len(states.hidden) == 1 else f"text {k} of trace", h)
    shapes = sorted({(h.shape[0], h.shape[2]) for h in states.hidden})
    require("trace", shapes, "texts of one depth and dimension d", len(shapes) == 1)
    sizes, counts = [h.shape[1] for h in states.hidden], [len(text) for text in states.words]
    if counts not in ([], sizes):
        raise ValueError(
            f"trace must have a word for each token, or none at all; got {counts} words of texts "
            f"of {sizes} tokens."
        )
    return states


def is_causal(trace: Trace, net: Network | None) -> bool:
    """Return True if attention is causal, by the network or by the weights of the trace."""
    if net is not None:
        return net.layer(0).causal
    weights = trace.attention[0] if trace.attention else None
    return weights is not None and not np.triu(weights, 1).any()


def _stacked(dim: str, parts: list[Columns]) -> Columns:
    """Columns of texts or layers, stacked along a first dimension."""
    return {
        name: ((dim, *dims), np.stack([part[name][1] for part in parts]), label)
        for name, (dims, _, label) in parts[0].items()
    }


def _of_layer(
    h: np.ndarray, betas: list[float], angles: list[float], bins: int, modes: bool, masked: bool
) -> Columns:
    """Quantities of one layer of one text."""
    x, lengths = directions(h)
    products = x @ x.T
    pairs = np.clip(products[~np.eye(len(x), dtype=bool)], -1, 1)
    shares = np.histogram(pairs, np.linspace(-1, 1, bins + 1))[0] / pairs.size
    quantities: Columns = {
        "mean_cosine": ((), MeanCosine().value(x), "mean cosine of pairs"),
        "cosine_share": (("bin",), shares, "share of pairs"),
        "energy": (("beta",), [Energy(beta).value(x) for beta in betas], "interaction energy"),
        "effective_rank": ((), EffectiveRank().value(x), "effective rank"),
        "norm": ((), lengths.mean(), "mean length"),
        "norm_spread": ((), lengths.std(), "standard deviation of lengths"),
        "clusters": (("angle",), [linked(products, angle).max() + 1
                                  for angle in angles], "clusters, single linkage"),
    }  # fmt: skip
    if modes:
        counts = [modes_of(x, beta).max() + 1 for beta in betas]
        quantities["modes"] = (("beta",), counts, "modes, mean-shift")
    if masked:
        centres = np.array([renyi_centres(products, angle) for angle in angles])
        for name, row in zip(("renyi_centres", "strong_renyi_centres"), centres.T, strict=True):
            quantities[name] = (("angle",), row, name.replace("_", " ").replace("renyi", "Rényi"))
    return quantities


def _between_layers(hidden: np.ndarray, betas: list[float]) -> Columns:
    """Distances between consecutive layers of one text."""
    x = [directions(h)[0] for h in hidden]
    pairs = list(pairwise(x))
    distances = [float(wasserstein(Tokens(a), Tokens(b))) for a, b in pairs]
    chords = np.linalg.norm(np.diff(x, axis=0), axis=-1)
    turned = 2 * np.arcsin(np.minimum(chords / 2, 1))
    products = [(a @ a.T, b @ b.T, a @ b.T) for a, b in pairs]  # accurate to 1e-7 in the MMD
    means = np.array([[[np.exp(beta * (p - 1)).mean() for p in three] for beta in betas]
                      for three in products])  # fmt: skip
    squares = means @ [1, 1, -2]
    return {
        "w2": (("block",), np.array(distances), "W2 between layers, radians"),
        "moved": (("block",), np.sqrt((turned**2).mean(axis=-1)), "r.m.s. angle moved, radians"),
        "mmd": (("block", "beta"), np.sqrt(np.maximum(squares, 0)), "MMD between layers"),
    }


def _of_weights(weights: np.ndarray) -> Columns:
    """Entropy, and the token that receives most, of attention weights (blocks, heads, n, n)."""
    weights = np.asarray(weights, dtype=float)
    n = weights.shape[-1]
    logs = np.log(np.where(weights > 0, weights, 1.0))
    entropy = -(weights * logs).sum(axis=-1).mean(axis=-1)
    causal = not np.triu(weights, 1).any()
    maximum = np.log(np.arange(1, n + 1)).mean() if causal else np.log(n)
    shares = weights.mean(axis=-2)
    dims = ("block", "head")
    return {
        "entropy": (dims, entropy, "entropy of attention, nats"),
        "entropy_share": (dims, entropy / maximum, "entropy of attention, of the largest"),
        "sink_share": (dims, shares.max(axis=-1), "largest share of attention of one token"),
        "sink_position": (dims, shares.argmax(axis=-1), "position of that token"),
    }


def _of_heads(net: Network, text: int, trace: Trace) -> Columns:
    """`head_beta`, `head_log_energy`, `head_slope` and `head_slope_share` of text number `text`."""
    rows = []
    for index, h in enumerate(trace.hidden[text][:-1]):
        layer = net.layer(index)
        heads = layer.heads_of(h)
        x, _ = directions(h)
        products = x @ x.T
        visible = np.tri(len(x), dtype=bool) | (not layer.causal)
        slopes = np.array([slope_of(logits, products, visible) for logits in heads.logits])
        largest = products.max()  # log E_beta without overflow
        energies = [beta * largest + np.log(np.exp(beta * (products - largest)).mean() / (2 * beta))
                    for beta in heads.beta]  # fmt: skip
        rows.append([heads.beta, energies, *slopes.T])
    labels = {
        "head_beta": "inverse temperature of the head: temperature times norms",
        "head_log_energy": "log of the interaction energy at this inverse temperature",
        "head_slope": "slope of logits against cosines",
        "head_slope_share": "share of the logits' variance that cosines explain",
    }
    columns = zip(labels.items(), np.array(rows).swapaxes(0, 1), strict=True)
    return {name: (("block", "head"), values, label) for (name, label), values in columns}


def slope_of(logits: np.ndarray, products: np.ndarray, visible: np.ndarray) -> tuple[float, float]:
    """Least-squares slope of logits (n, n) against inner products (n, n), and explained share.

    Both arrays are centred in each row; only pairs in the mask `visible` (n, n) count. Returns nan
    twice if one of the arrays is constant in each row.
    """

    def centred(a: np.ndarray) -> np.ndarray:
        mean = a.mean(axis=1, keepdims=True, where=visible)
        return np.where(visible, a - mean, 0.0)

    y, g = centred(logits), centred(products)
    covariance, of_logits, of_products = (y * g).sum(), (y**2).sum(), (g**2).sum()
    if not of_logits or not of_products:
        return float("nan"), float("nan")
    return covariance / of_products, covariance**2 / (of_products * of_logits)


def _of_matrices(net: Network) -> Columns:
    """Spectra of the heads' matrices."""
    spectra = [net.layer(index).spectra() for index in range(net.depth)]
    labels = {
        "value_singular": "singular values of output V",
        "value_symmetric": "eigenvalues of the symmetric part of output V",
        "key_singular": "singular values of Q^T K/sqrt(k)",
        "key_symmetric": "eigenvalues of the symmetric part of Q^T K/sqrt(k)",
    }
    return {
        name: (("block", "head", "rank" if name.endswith("singular") else "eigenvalue"),
               np.array([of_layer[name] for of_layer in spectra]), label)
        for name, label in labels.items()
    }  # fmt: skip
