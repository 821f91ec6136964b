"""Attribution of changes of a quantity to sublayers and heads, by integrated gradients."""

import warnings

import numpy as np
import xarray as xr

from meanfield import UnresolvedWarning
from meanfield.extending import positive, require

from .network import Network
from .quantities import Quantity
from .trace import Trace, last_steps

MOST_QUADRATURE_PIECES = 20  # of the interval of an integral, in adaptive quadrature
SUBLAYERS = ("attention", "mlp", "normalisation")
QUANTITY_ROUNDING = 1e-13  # relative rounding error of values of a quantity


def attribute(
    trace: Trace, quantity: Quantity, net: Network | None = None, *, tolerance: float = 1e-7
) -> xr.Dataset:
    """Split the change of a quantity over each layer into the parts of its sublayers and heads.

    Between layers l - 1 and l the residual stream follows one straight segment for each sublayer,
    in the order of the network. On the segment from a to b = a + sum_p parts_p, the change
    f(b) - f(a) is the sum over p of

        c_p = int_0^1 <grad f(a + s (b - a)), parts_p> ds

    Parameters
    ----------
    trace : Trace
        Trace of a network, with the residual stream after each sublayer.
    quantity : Quantity
        `MeanCosine()`, `Energy(beta)`, `MeanNorm()`, `EffectiveRank()`, or a subclass of `Quantity`
        with `value(h)` and `gradient(h)`.
    net : Network, optional
        The network that made the trace; adds separate parts of heads and biases.
    tolerance : float
        Tolerance of quadrature, relative to the sum of the absolute parts of a sublayer.

    Returns
    -------
    xarray.Dataset
        - `value` (text, layer); `change` (text, block), of block l from layer l - 1 to layer l;
        - `part` (text, block, sublayer): parts of "attention", "mlp" and "normalisation". If the
          network is given, "bias" is the part of the biases of values, output and the outer map of
          the MLP, and the other parts exclude it. Biases of normalisations count as
          "normalisation";
        - `head_part` (text, block, head), if the network is given: parts of the heads, whose sum is
          the part of "attention";
        - `residual` (text, block): `change` minus all parts, the error of quadrature.

        The incoming residual stream is the start of a segment and has no part.

    Raises
    ------
    TypeError, ValueError
        For a trace without sublayers, a `quantity` of another type, zero vectors.

    Warns
    -----
    UnresolvedWarning
        If quadrature on 20 pieces misses the tolerance: the quantity is not smooth there.

    Notes
    -----
    For a quantity that is not linear the split is not unique: another order of the sublayers or
    another path between layers gives other parts with the same sum. The part of a sublayer is the
    difference of f over its segment, in the network's order. Parts within a sublayer are
    Aumann-Shapley values, which do not depend on an order of the heads.

    The integrals are computed by the adaptive Gauss-Kronrod rule of 15 nodes, and their sum is
    compared with the change.

    Heads are replayed in double precision: the parts of a network in float32 sum to the whole up
    to the rounding of its stream.

    References
    ----------
    Sundararajan, Taly and Yan, Axiomatic attribution for deep networks, ICML 2017, equation (1).
    """
    require("trace", trace, "a Trace", isinstance(trace, Trace), TypeError)
    expected = "a Quantity, as mf.networks.MeanCosine()"
    require("quantity", quantity, expected, isinstance(quantity, Quantity), TypeError)
    tolerance = positive("tolerance", tolerance)
    if not trace.streams:
        raise ValueError("The trace has hidden states only: trace a Network for its sublayers.")
    depth = trace.steps[-1][1]
    names = SUBLAYERS if net is None else (*SUBLAYERS, "bias")
    texts = [_of_text(h, trace.steps, quantity, net, tolerance) for h in trace.streams]
    all_values, all_parts, of_heads, errors = map(np.array, zip(*texts, strict=True))
    largest = errors.max()
    if largest > tolerance:
        warnings.warn(
            f"The {quantity.name} is not smooth between two layers: its parts are known to "
            f"{largest:.1g} of the sum of absolute parts, asked was {tolerance:.1g}.",
            UnresolvedWarning,
            stacklevel=2,
        )
    result = xr.Dataset(
        {
            "value": (("text", "layer"), all_values),
            "change": (("text", "block"), np.diff(all_values, axis=1)),
            "part": (("text", "block", "sublayer"), all_parts[..., : len(names)]),
        },
        {
            **{"text": np.arange(len(all_values)), "sublayer": list(names)},
            **{"layer": np.arange(depth + 1), "block": np.arange(1, depth + 1)},
        },
        {"quantity": repr(quantity)},
    )
    if net is not None:
        result["head_part"] = (("text", "block", "head"), of_heads)
    result["residual"] = result["change"] - result["part"].sum("sublayer")
    return result


def _of_text(
    stream: np.ndarray,
    steps: list[tuple[str, int]],
    quantity: Quantity,
    net: Network | None,
    tolerance: float,
) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], float]:
    """Values by layer, parts by block and sublayer, and of heads by block; largest relative error.

    The last sublayer is "bias".
    """
    stream = np.asarray(stream, dtype=float)
    values = np.array([quantity.value(h) for h in stream])
    last = last_steps(steps)
    parts = np.zeros((len(last) - 1, len(SUBLAYERS) + 1))
    heads: list[np.ndarray] = [np.empty(0)] * len(parts)
    largest = 0.0
    for k, (kind, layer) in enumerate(steps[1:], 1):
        block, sublayer = parts[layer - 1], SUBLAYERS.index(kind)
        pieces = None if net is None else _pieces(net, stream, k, kind, layer - 1, last[layer - 1])
        if pieces is None:
            block[sublayer] += values[k] - values[k - 1]
            continue
        changes, missed = integrated(quantity, stream[k - 1], pieces, tolerance)
        largest = max(largest, missed)
        block[sublayer] += changes[:-1].sum()
        block[-1] += changes[-1]
        if kind == "attention":
            heads[layer - 1] = changes[:-1]
    return values[last], parts, heads, largest


def _pieces(
    net: Network, stream: np.ndarray, k: int, kind: str, index: int, entered: int
) -> np.ndarray | None:
    """Split the increment of step k into parts (p, n, d): heads or the MLP, then biases.

    `kind` is the kind of the sublayer, `index` its layer from 0, `entered` the step whose stream
    enters the layer. Returns None for a sublayer of a single part.
    """
    added = stream[k] - stream[k - 1]
    if kind == "attention":
        heads = net.layer(index).heads_of(stream[entered])
        return np.concatenate([heads.added, np.broadcast_to(heads.bias, (1, *added.shape))])
    bias = net.layer(index).maps["outer"].bias if kind == "mlp" else None
    if bias is None:
        return None
    return np.stack([added - bias, np.broadcast_to(bias, added.shape)])


def integrated(
    quantity: Quantity, start: np.ndarray, parts: np.ndarray, tolerance: float
) -> tuple[np.ndarray, float]:
    """Integrals (p,) of <grad f(start + s sum parts), part> over s in [0, 1], for each part.

    `parts` is (p, n, d). Also returns the estimated error, relative to the sum of the absolute
    integrals.
    """
    from scipy.integrate import quad_vec

    step, flat = parts.sum(axis=0), parts.reshape(len(parts), -1)
    ends = quantity.value(start), quantity.value(start + step)
    rounding = QUANTITY_ROUNDING * (abs(ends[0]) + abs(ends[1]))
    integrals, error = quad_vec(
        lambda s: flat @ np.ravel(quantity.gradient(start + s * step)), 0, 1, epsabs=rounding,
        epsrel=tolerance / np.sqrt(len(parts)), quadrature="gk15", limit=MOST_QUADRATURE_PIECES,
    )  # fmt: skip
    size = np.abs(integrals).sum()
    error = max(np.sqrt(len(parts)) * error, abs(integrals.sum() - (ends[1] - ends[0])))
    return integrals, max(error - rounding, 0.0) / size if size else 0.0
