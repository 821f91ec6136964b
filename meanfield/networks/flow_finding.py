"""The finding of a report on a fitted flow: softmax attention of the theory with noise."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield import SA, MeanfieldError, UnresolvedWarning

from .findings import ENERGY_BETA, FAILS, LAYERS_LISTED, UNDECIDED, Finding, in_layers
from .fitting.fit import fit as fit_flow
from .trace import Trace

if TYPE_CHECKING:
    from .fitting import Fit

WIDE_FIT_DIMENSION = 64  # from this dimension on, fits use the limit of many dimensions
LARGEST_FIT = 1e6  # largest n^2 d of a fit in fewer dimensions
FLOW_TOPIC = "Layers are softmax attention of the theory (SA) with noise"
MULTIPLE_TOPIC = (
    f"Layers are a multiple a > 0 of softmax attention (SA, beta = {ENERGY_BETA:g}) with noise"
)
FIT_ERRORS = (MeanfieldError, ValueError, np.linalg.LinAlgError)


def fitted(trace: Trace, rng: np.random.Generator) -> "tuple[Fit | None, Finding]":
    """Fit SA with noise, or a multiple of it, to the tokens of the first text.

    From 64 dimensions on, a positive or negative multiple of SA is fitted, to all layers together
    and to each layer alone. The fit is None if it takes too long or fails.
    """
    h = trace.hidden[0]
    _, n, d = h.shape
    many = d >= WIDE_FIT_DIMENSION
    if not many and n * n * d > LARGEST_FIT:
        text = f"It was not fitted: {n} tokens in {d} dimensions take too long. `fit` does it."
        return None, Finding(FLOW_TOPIC, UNDECIDED, text)
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore"):  # overflow far from the optimum
            warnings.simplefilter("ignore", UnresolvedWarning)  # the finding reports it
            if not many:
                fit = fit_flow(h, SA, replicas=4, rng=rng, progress=False)
                text = f"Fitted to all {n} tokens: {_numbers(fit)}. {fit.verdict}"
                return fit, Finding(FLOW_TOPIC, FAILS if _denied(fit) else UNDECIDED, text)
            fit = _multiple_of_sa(h, rng)
            disperses = fit.status == "fitted" and fit.interval(by="tokens")[0, 1] < 0
            verdict = FAILS if disperses or _denied(fit) else UNDECIDED
            text = (
                f"Fitted to all {n} tokens in all {d} dimensions, with one unit of time per layer "
                f"and intervals by tokens: {_numbers(fit, 'tokens')}. {fit.verdict}"
            )
            return fit, Finding(MULTIPLE_TOPIC, verdict, text + _by_layer(h, rng))
    except FIT_ERRORS as error:
        return None, Finding(FLOW_TOPIC, UNDECIDED, f"It could not be fitted: {error}")


def _multiple_of_sa(h: np.ndarray, rng: np.random.Generator, **options: Any) -> "Fit":
    """Fit a multiple a of SA at beta = 4, of either sign, with noise, in many dimensions."""
    start = {"a": 0.1, "kappa": 2.0 * h.shape[-1]}
    return fit_flow(h, lambda a: a * SA(ENERGY_BETA), start=start, fixed={"time": 1.0}, wide=True,
                    test_replicas=16, rng=rng, progress=False, **options)  # fmt: skip


def _by_layer(h: np.ndarray, rng: np.random.Generator) -> str:
    """A sentence on the multiple a fitted to each layer alone, and on its sign."""
    if len(h) < 3:
        return ""
    values: dict[int, float] = {}
    up, down = [], []
    for layer in range(1, len(h)):
        try:
            fit = _multiple_of_sa(h[layer - 1 : layer + 1], rng, verdict=False)
        except FIT_ERRORS:
            continue
        if fit.status == "fitted":
            low, high = fit.interval(by="tokens")[0]
            values[layer] = fit["a"]
            up += [layer] * bool(low > 0)
            down += [layer] * bool(high < 0)
    if len(values) > LAYERS_LISTED:
        least, most = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
        each = f"{values[least]:+.3g} (layer {least}) to {values[most]:+.3g} (layer {most})"
    else:
        listed = [f"{values[k]:+.3g}" if k in values else "none" for k in range(1, len(h))]
        each = f"{', '.join(listed)} in layers 1 to {len(h) - 1}"
    mixed = ", so that the one a of all layers is a compromise between opposite signs"
    return (
        f" Fitted to each layer alone, a is {each}: positive in {in_layers(up)}, negative in "
        f"{in_layers(down)}{mixed if up and down else ''}."
    )


def _denied(fit: "Fit") -> bool:
    """Return True if layers are unrelated, or a converged fit is rejected or predicts badly.

    Bad predictions are those worse than no change.
    """
    worse = any(one.over_nothing[0] > 1 for one in fit.predictions)
    return fit.unrelated or (fit.estimate.converged and bool(fit.rejected or worse))


def _numbers(fit: "Fit", by: str = "model") -> str:
    """Parameters with their intervals."""
    if fit.status == "not converged":
        return "the search for values that fit did not converge"
    values = fit.family.values(fit.estimate.point)
    names = zip(fit.family.labels, values, fit.interval(by=by), strict=True)
    return "; ".join(f"{name} {v:.3g} [{a:.3g}, {b:.3g}]" for name, v, (a, b) in names)
