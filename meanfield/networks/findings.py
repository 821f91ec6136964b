"""Findings of a probe: sentences with numbers, intervals by bootstrap, and verdicts."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
import xarray as xr

from meanfield import SA, MeanfieldError, UnresolvedWarning
from meanfield.extending import PassedOn, shown

from .bootstrap import CONFIDENCE_LEVEL, interval, means_over_pairs, rank_correlation
from .fitting.fit import Fit, estimate_in_words
from .fitting.fit import fit as fit_flow
from .nulls import NULLS_IN_WORDS
from .quantities import MeanCosine, directions
from .trace import Trace, last_steps

BOOTSTRAP_DRAWS = 400
ENERGY_BETA = 4.0  # beta of the energy in the findings
OUTLIER_LENGTH = 10.0  # a token of this multiple of the layer's median length is an outlier
# So is a token whose mean cosine to others is below the median by more than both: this multiple of
# the standard deviation (1.4826 times the median deviation), and OUTLIER_GAP
OUTLIER_DEVIATIONS, OUTLIER_GAP = 6.0, 0.3
OUTLIERS_NAMED = 5  # outliers of a text that are named
UNRELATED_ERRORS = 4.0  # standard errors of the mean cosine of independent layers
LAYERS_LISTED = 13  # largest number of layers for which each value is written out
HOLDS, FAILS, UNDECIDED = "holds", "fails", "undecided"
EFFECTS = {  # of a sublayer on tokens, by the verdict that it clusters them
    **{HOLDS: "clusters tokens", FAILS: "disperses tokens"},
    UNDECIDED: "neither clusters nor disperses them",
}
WIDE_FIT_DIMENSION = 64  # from this dimension on, fits use the limit of many dimensions
LARGEST_FIT = 1e6  # largest n^2 d of a fit in fewer dimensions
FIT_ERRORS = (MeanfieldError, ValueError, np.linalg.LinAlgError)
FLOW_TOPIC = "Layers are softmax attention of the theory (SA) with noise"
MULTIPLE_TOPIC = (
    f"Layers are a multiple a > 0 of softmax attention (SA, beta = {ENERGY_BETA:g}) with noise"
)


def verdict_of(low: float, high: float, value: float = 0.0) -> str:
    """ "holds" for an interval above a value, "fails" below it, "undecided" if it contains it."""
    if low > value:
        return HOLDS
    return FAILS if high < value else UNDECIDED


@dataclass(frozen=True)
class Finding:
    """One statement of the theory, compared with the network.

    Attributes
    ----------
    topic : str
    verdict : str
        "holds", "fails" or "undecided"; "" where the theory says nothing.
    text : str
        Sentences with numbers; brackets contain 95 % intervals.
    """

    topic: str
    verdict: str
    text: str


@dataclass(frozen=True)
class Changes:
    """Mean cosine and energy by layer: the estimate at index 0 of the last axis, then draws.

    Attributes
    ----------
    cosine, energy : ndarray, (layers + 1, 1 + draws)
        E_beta at beta = 4, as `probe` defines it: with the terms i = j, which do not vary.
    parts : dict of ndarray, (2, blocks, 1 + draws)
        Changes of the mean cosine (index 0) and of the energy (index 1) in each block, by kind of
        sublayer; empty for a trace without sublayers.
    """

    cosine: np.ndarray
    energy: np.ndarray
    parts: dict[str, np.ndarray]


def changes_of(trace: Trace, rng: np.random.Generator, draws: int = BOOTSTRAP_DRAWS) -> Changes:
    """Bootstrap mean cosines and energies over tokens, and over texts if there are 5 or more.

    Changes of the size of rounding are 0.
    """
    states = trace.streams or trace.hidden
    means = means_over_pairs(states, [lambda t: t, _energy], draws, rng)
    _drop_rounding(means, rounding_of(states))
    if not trace.streams:
        return Changes(means[0], means[1], {})
    last = last_steps(trace.steps)
    parts: dict[str, np.ndarray] = {}
    steps = np.diff(means, axis=1)
    for index, (kind, layer) in enumerate(trace.steps[1:]):
        part = parts.setdefault(kind, np.zeros((2, len(last) - 1, draws + 1)))
        part[:, layer - 1] += steps[:, index]
    return Changes(means[0, last], means[1, last], parts)


def rounding_of(states: list[np.ndarray]) -> float:
    """Relative rounding error of a mean over pairs of states (layers, n, d).

    Coordinates are rounded independently of each other, to the precision of the arrays.
    """
    rounded = (np.finfo(h.dtype).eps / np.sqrt(h[0].size) for h in states if h.dtype.kind == "f")
    return float(8 * np.finfo(float).eps + 4 * max(rounded, default=0.0))


def _drop_rounding(means: np.ndarray, rounding: float) -> None:
    """Set values along axis 1 to the value before, from which they differ by rounding only."""
    for quantity in means:
        for before, now in pairwise(quantity):
            equal = np.abs(now - before) <= rounding * np.abs(quantity).max()
            now[equal] = before[equal]


def _energy(products: np.ndarray) -> np.ndarray:
    """A kernel whose mean over pairs i != j is E_beta, including its terms i = j."""
    n = len(products)
    diagonal = np.exp(ENERGY_BETA) / n
    return ((1 - 1 / n) * np.exp(ENERGY_BETA * products) + diagonal) / (2 * ENERGY_BETA)


def with_interval(values: np.ndarray, signed: bool = False) -> str:
    """Text such as 0.12 [0.10, 0.14]: values[0], and the 95 % interval of the draws values[1:].

    Changes that are all 0 are equal to rounding.
    """
    if signed and not values.any():
        return "0, equal to rounding"
    low, high = interval(values[1:])
    form = "+.3g" if signed else ".3g"
    return f"{values[0]:{form}} [{low:{form}}, {high:{form}}]"


def directions_of(steps: np.ndarray) -> np.ndarray:
    """Signs (layers,) of changes (layers, 1 + draws), or 0; with 95 % probability none is wrong.

    Simultaneous intervals of all layers: the mean of the draws of a layer, plus and minus a
    multiple of their standard deviation. The multiple is the 95 % quantile of the largest
    standardised deviation over the layers.
    """
    mean = steps[:, 1:].mean(axis=1, keepdims=True)
    draws, deviation = steps[:, 1:] - mean, steps[:, 1:].std(axis=1, keepdims=True)
    scaled = np.abs(np.divide(draws, deviation, out=np.zeros_like(draws), where=deviation > 0))
    half = np.quantile(scaled.max(axis=0, initial=0.0), CONFIDENCE_LEVEL) * deviation[:, 0]
    return np.sign(mean[:, 0]) * (np.abs(mean[:, 0]) > half)


def in_layers(numbers: list[int]) -> str:
    """Layers in words: layers 1, 2 and 5; layer 3; layers 1 to 12 and 14; no layer."""
    words = in_ranges(numbers)
    if len(words) < 2:
        return f"layer{'s' * (len(numbers) > 1)} {words[0]}" if words else "no layer"
    return f"layers {', '.join(words[:-1])} and {words[-1]}"


def in_ranges(numbers: Sequence[int]) -> list[str]:
    """Increasing whole numbers in words; three or more consecutive ones as "3 to 5"."""
    words: list[str] = []
    for _, pairs in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [number for _, number in pairs]
        words += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run)
    return words


def of_order(trace: Trace) -> list[Finding]:
    """A finding if the first axis of hidden states does not look like layers; otherwise none."""
    if trace.streams:
        return []
    x = [directions(h)[0] for h in trace.hidden]
    later, nearby = (
        float(np.mean([(a * b).sum(axis=-1).mean() for a, b in pairs]))
        for pairs in ([(h[:-1], h[1:]) for h in x], [(h[:, :-1], h[:, 1:]) for h in x])
    )
    chance = UNRELATED_ERRORS / np.sqrt(sum(h[1:].size for h in x))
    if later >= max(nearby, chance):
        return []
    text = (
        f"Tokens have the mean cosine {later:.2g} with themselves a layer later, and {nearby:.2g} "
        "with the next token of the text: layers of one residual stream are closer. The first axis "
        "of hidden states is that of layers; of an array h (n, layers, d) give h.swapaxes(0, 1). "
        "Changes from layer to layer are therefore not judged."
    )
    return [Finding("Consecutive layers are unrelated", "", text)]


def of_layers(changes: Changes) -> list[Finding]:
    """Findings on clustering of tokens, and on monotonicity of the energy."""
    total, steps = changes.cosine[-1] - changes.cosine[0], np.diff(changes.energy, axis=0)
    text = (
        f"From the first to the last layer the mean cosine of pairs changes by "
        f"{with_interval(total, True)}, from {with_interval(changes.cosine[0])} to "
        f"{with_interval(changes.cosine[-1])}."
    )
    clustering = Finding("Tokens cluster", verdict_of(*interval(total[1:])), text)
    _, down, _, undecided = _by_sign(steps)
    verdict = FAILS if down else UNDECIDED if undecided else HOLDS
    names = ("rise", "fall", "no change", "undecided")
    text = f"Interaction energy at beta = {ENERGY_BETA:g}. {_layer_by_layer(steps, names)}"
    if down:
        deepest = min(down, key=lambda layer: steps[layer - 1, 0])
        fall = with_interval(steps[deepest - 1], True)
        text += f" The largest of these falls is {fall}, in layer {deepest}."
    text += " Under the flow of the theory it never falls, in any layer."
    return [clustering, Finding("Energy never falls", verdict, text)]


def _by_sign(steps: np.ndarray) -> tuple[list[int], ...]:
    """Layers whose changes (layers, 1 + draws) are positive, negative, 0, and undecided.

    Changes are 0 if they are equal to rounding, and undecided if the simultaneous intervals of all
    layers hold 0.
    """
    signs = directions_of(steps)
    signs[(steps == 0).all(axis=1)] = np.nan
    masks = (signs == 1, signs == -1, np.isnan(signs), signs == 0)
    return tuple([*(np.flatnonzero(mask) + 1)] for mask in masks)


def _layer_by_layer(steps: np.ndarray, names: Sequence[str]) -> str:
    """Sentences on changes, by the names of the groups of `_by_sign`: "Layers 1 and 2: rise." """
    sentences = []
    for name, numbers in zip(names, _by_sign(steps), strict=True):
        changes = ", ".join(f"{steps[layer - 1, 0]:+.3g}" for layer in numbers)
        estimates = f" ({changes}; intervals hold 0)" * (name == "undecided")
        if numbers:
            sentences.append(f"{in_layers(numbers).capitalize()}: {name}{estimates}.")
    return " ".join(sentences)


PARTS_BY_SIGN = ("positive", "negative", "no effect", "undecided")


def of_parts(changes: Changes) -> list[Finding]:
    """Findings on which sublayers cluster tokens, and which disperse them."""
    findings = []
    for kind in [kind for kind in ("attention", "mlp", "normalisation") if kind in changes.parts]:
        part, is_attention = changes.parts[kind][0], kind == "attention"
        total = part.sum(axis=0)
        found = verdict_of(*interval(total[1:]))
        name = {"mlp": "The feed-forward map"}.get(kind, kind.capitalize())
        text = (
            f"{name} {EFFECTS[found]}: over all layers its part of the change of the "
            f"mean cosine, biases included, is {with_interval(total, True)}. "
            f"{_layer_by_layer(part, PARTS_BY_SIGN)}"
        )
        verdict = found if is_attention else ""
        topic = "Attention clusters tokens" if is_attention else f"Effect of {name.lower()}"
        findings.append(Finding(topic, verdict, text))
    return findings


def of_heads(layers: xr.Dataset, parts: xr.Dataset, rng: np.random.Generator) -> list[Finding]:
    """Findings on the heads that cluster tokens, their value matrices and temperatures."""
    part = parts.head_part.mean("text").values
    trace = layers.value_symmetric.sum("eigenvalue").values
    value, *ends = rank_correlation(trace, part, rng)
    most, least = (
        f"head {k % part.shape[1] + 1} of layer {k // part.shape[1] + 1} ({part.flat[k]:+.3g})"
        for k in (int(part.argmax()), int(part.argmin()))
    )
    agree = float((np.sign(trace) == np.sign(part)).mean())
    text = (
        f"{np.sum(part > 0)} of {part.size} heads raise the mean cosine; most of all {most}, least "
        f"{least}. The rank correlation of a head's part with the trace of its output V, "
        f"the matrix from what it looks at to what it adds, is {value:.2f} "
        f"[{ends[0]:.2f}, {ends[1]:.2f}]; the signs agree in {100 * agree:.0f} % of heads."
    )
    topic = "The sign of the value matrix decides whether a head clusters tokens"
    by_values = Finding(topic, verdict_of(*ends), text)
    beta, share, slope = (
        np.ravel(layers[name].mean("text").values)
        for name in ("head_beta", "head_slope_share", "head_slope")
    )
    rows = rng.integers(len(share), size=(BOOTSTRAP_DRAWS, len(share)))
    low, high = interval(np.median(share[rows], axis=1))
    quartiles = np.quantile(beta, [0.25, 0.5, 0.75])
    text = (
        f"In the median head cosines explain {100 * np.median(share):.1f} % "
        f"[{100 * low:.1f}, {100 * high:.1f}] of the variance of logits within rows, with the "
        f"slope {np.median(slope):.2g}. Its inverse temperature times the norms of queries and "
        f"keys, how large its logits can be, is {quartiles[1]:.3g} (quartiles "
        f"{quartiles[0]:.3g} and {quartiles[2]:.3g})."
    )
    topic = "Logits are beta times the cosine of the tokens (Q = K = 1)"
    return [by_values, Finding(topic, verdict_of(low, high, 0.5), text)]


def of_nulls(changes: Changes, null: xr.Dataset) -> list[Finding]:
    """Findings on the growth of the mean cosine, compared with that in null models."""
    findings = []
    network = changes.cosine[-1] - changes.cosine[0]
    low, high = interval(network[1:])
    start, end = changes.cosine[[0, -1], 0]
    for kind in map(str, null["null"].values):
        cosines = null.mean_cosine.sel(null=kind).mean("text").transpose("layer", "draw").values
        gain = cosines[-1] - cosines[0]
        deviation = gain.std(ddof=1) if len(gain) > 1 else np.nan
        lower, higher = high < gain.min(), low > gain.max()
        comparison = "less" if lower else "more" if higher else "not distinguishably more or less"
        text = (
            f"With {NULLS_IN_WORDS[kind]} the mean cosine goes from {cosines[0].mean():.3g} to "
            f"{cosines[-1].mean():.3g}, by {gain.mean():+.3g} (standard deviation {deviation:.2g} "
            f"of {len(gain)} draws). In the network as it is it goes from {start:.3g} to "
            f"{end:.3g}, by {with_interval(network, True)}: it clusters tokens {comparison}."
        )
        findings.append(Finding(f"Comparison with {kind}", "", text))
    return findings


def of_distances(layers: xr.Dataset) -> list[Finding]:
    """A finding on the angles by which layers move tokens."""
    turns, w2 = (layers[name].mean("text").values for name in ("moved", "w2"))
    text = "Tokens do not move."
    if turns.any():
        ratio = float((w2[turns > 0] / turns[turns > 0]).min())
        ratio_in_words = f"at least {ratio:.3f} times as large."
        if ratio > 1 - 1e-6:
            ratio_in_words = "equal to this angle: tokens keep their places."
        text = (
            f"Tokens turn by {turns.min():.2f} to {turns.max():.2f} radians (root mean square) in "
            "a layer. The distance W2, the least such angle over all ways to match the tokens of "
            f"two layers, is {ratio_in_words}"
        )
    return [Finding("How far layers move tokens", "", text)]


def of_outliers(trace: Trace) -> list[Finding]:
    """A finding on tokens much longer than the others or in another direction, if there are any."""
    texts = []
    for k, h in enumerate(trace.hidden):
        lengths = np.linalg.norm(np.asarray(h, dtype=float), axis=-1)
        ratios = lengths / np.median(lengths, axis=1, keepdims=True)
        x = h / lengths[..., None]
        cosines = (np.einsum("lnd,ld->ln", x, x.sum(axis=1)) - 1) / (x.shape[1] - 1)
        gaps = np.median(cosines, axis=1, keepdims=True) - cosines
        scale = 1.4826 * np.median(np.abs(gaps), axis=1, keepdims=True)
        is_long = ratios >= OUTLIER_LENGTH
        turned = gaps > np.maximum(OUTLIER_DEVIATIONS * scale, OUTLIER_GAP)
        tokens = np.flatnonzero((is_long | turned).any(axis=0))
        if not tokens.size:
            continue
        order = tokens[np.argsort(-ratios[:, tokens].max(axis=0), kind="stable")]
        each = [_outlier(trace, k, i, ratios[:, i], is_long[:, i], cosines[:, i], turned[:, i])
                for i in order[:OUTLIERS_NAMED]]  # fmt: skip
        text = f"{'; '.join(each)}{'; and others' if len(tokens) > OUTLIERS_NAMED else ''}."
        others = np.delete(x, tokens, axis=1)
        if others.shape[1] > 1:
            ends = [[MeanCosine().value(h) for h in y[[0, -1]]] for y in (x, others)]
            total, without = (f"{a:.3g} to {b:.3g}" for a, b in ends)
            pronoun = "it" if len(tokens) == 1 else "them"
            text += f" The mean cosine goes from {total}; without {pronoun}, from {without}."
        texts.append(f"In text {k}: {text}" if len(trace.hidden) > 1 else f"T{text[1:]}")
    if not texts:
        return []
    texts.append("Directions are compared, so that lengths count in no other number of this page.")
    return [Finding("Tokens that are unlike the others", "", " ".join(texts))]


def _outlier(
    trace: Trace, text: int, token: int, ratios: np.ndarray, longer: np.ndarray,
    cosines: np.ndarray, turned: np.ndarray,
) -> str:  # fmt: skip
    """Describe an outlying token.

    Arrays are by layer: `ratios` of its length to the median length, its mean `cosines` to the
    other tokens, and the masks `longer` and `turned` of the layers where it is an outlier by length
    or by direction.
    """
    name = f"token {token}"
    if trace.named_by == "words":
        name += f" ({shown(trace.words[text][token])})"
    parts = []
    if longer.any():
        layers = in_layers(list(np.flatnonzero(longer)))
        parts.append(f"is up to {ratios.max():.3g} times as long as the median token ({layers})")
    if turned.any():
        layers = in_layers(list(np.flatnonzero(turned)))
        least = cosines[turned].min()
        parts.append(f"points elsewhere, at a mean cosine down to {least:.2g} to others ({layers})")
    return f"{name} {' and '.join(parts)}"


# The fit of a flow -------------------------------------------------------------------------------


def fit_of(trace: Trace, rng: np.random.Generator) -> tuple[Fit | None, Finding]:
    """Fit SA with noise, or a multiple of it, to the tokens of the first text.

    From 64 dimensions on, a positive or negative multiple of SA is fitted, to all layers together
    and to each layer alone. The fit is None if it takes too long or fails.
    """
    h = trace.hidden[0]
    _, n, d = h.shape

    is_wide = d >= WIDE_FIT_DIMENSION
    topic = MULTIPLE_TOPIC if is_wide else FLOW_TOPIC
    if not is_wide and n * n * d > LARGEST_FIT:
        text = f"It was not fitted: {n} tokens in {d} dimensions take too long. `fit` does it."
        return None, Finding(topic, UNDECIDED, text)
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore"):  # overflow far from the optimum
            warnings.simplefilter("ignore", UnresolvedWarning)  # the finding reports it
            if is_wide:
                fit = _multiple_of_sa(h, rng)
            else:
                fit = fit_flow(h, SA, replicas=4, rng=rng, progress=False)
            verdict = FAILS if _denied(fit, is_wide) else UNDECIDED
            if fit.unrelated:
                return fit, Finding(topic, verdict, fit.verdict)
            text = f"Fitted to all {n} tokens"
            if is_wide:
                text += f" in all {d} dimensions, with one unit of time per layer and intervals by "
                text += f"tokens: {_numbers(fit, 'tokens')}. {fit.verdict}{_by_layer(h, rng)}"
            else:
                text += f": {_numbers(fit)}. {fit.verdict}"
            return fit, Finding(topic, verdict, text)
    except FIT_ERRORS as error:
        return None, Finding(FLOW_TOPIC, UNDECIDED, f"It could not be fitted: {error}")


def _denied(fit: Fit, is_wide: bool) -> bool:
    """True if layers are unrelated, or a converged fit is rejected, predicts badly, or disperses.

    A multiple of SA disperses tokens if it is negative.
    """
    is_bad = any(p.over_nothing[0] > 1 for p in fit.predictions)  # than no change
    disperses = is_wide and fit.status == "fitted" and fit.interval(by="tokens")[0, 1] < 0
    return bool(fit.unrelated or disperses or (fit.estimate.converged and (fit.rejected or is_bad)))


def _multiple_of_sa(h: np.ndarray, rng: np.random.Generator, **options: PassedOn) -> Fit:
    """Fit a multiple a of SA at beta = 4, of either sign, with noise, in many dimensions."""
    start = {"a": 0.1, "kappa": 2.0 * h.shape[-1]}
    return fit_flow(h, lambda a: a * SA(ENERGY_BETA), start=start, fixed={"time": 1.0}, wide=True,
                    test_replicas=16, rng=rng, progress=False, **options)  # fmt: skip


def _by_layer(h: np.ndarray, rng: np.random.Generator) -> str:
    """A sentence on the multiple a fitted to each layer alone, and on its sign."""
    if len(h) < 3:
        return ""
    values: dict[int, float] = {}
    signs: dict[int, str] = {}
    for layer in range(1, len(h)):
        with suppress(*FIT_ERRORS):
            fit = _multiple_of_sa(h[layer - 1 : layer + 1], rng, verdict=False)
            if fit.status == "fitted":
                low, high = fit.interval(by="tokens")[0]
                values[layer], signs[layer] = fit["a"], verdict_of(low, high)
    rises, falls = ([k for k, found in signs.items() if found == sign] for sign in (HOLDS, FAILS))
    if len(values) > LAYERS_LISTED:
        lowest, highest = (choose(values, key=values.__getitem__) for choose in (min, max))
        each = f"{values[lowest]:+.3g} (layer {lowest}) to {values[highest]:+.3g} (layer {highest})"
    else:
        texts = [f"{values[k]:+.3g}" if k in values else "none" for k in range(1, len(h))]
        each = f"{', '.join(texts)} in layers 1 to {len(h) - 1}"
    remark = ", so that the one a of all layers is a compromise between opposite signs"
    return (
        f" Fitted to each layer alone, a is {each}: positive in {in_layers(rises)}, negative in "
        f"{in_layers(falls)}{remark if rises and falls else ''}."
    )


def _numbers(fit: Fit, by: str = "model") -> str:
    """Parameters with their intervals."""
    if fit.status == "not converged":
        return "the search for values that fit did not converge"
    values = fit.family.values(fit.estimate.point)
    names = zip(fit.family.labels, values, fit.interval(by=by), strict=True)
    return "; ".join(f"{name} {estimate_in_words(v, ends, '.3g')}" for name, v, ends in names)
