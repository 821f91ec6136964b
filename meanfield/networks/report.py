"""One page on a network and its texts: what of the theory is there, with figures and numbers."""

import warnings
from collections import Counter
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.checks import boolean, counted, fitting, generator, path_of, whole_number
from ..core.errors import MeanfieldError, UnresolvedWarning
from ..core.files import write_whole
from ..lowlevel.blas import one_blas_thread
from ..lowlevel.progress import Progress
from ..models import SA
from .attribution import attribute
from .clustering import modes_of
from .findings import (
    ENERGY_BETA,
    FAILS,
    UNDECIDED,
    Changes,
    Finding,
    changes_of,
    in_layers,
    in_ranges,
    of_distances,
    of_heads,
    of_layers,
    of_nulls,
    of_outliers,
    of_parts,
)
from .fitting import fit as fit_flow
from .network import Network
from .nulls import nulls
from .probe import as_trace, is_causal, probe
from .quantities import Energy, MeanCosine, directions
from .trace import Trace

if TYPE_CHECKING:
    import xarray as xr

    from .fitting import Fit

PAGE_TEMPLATE = Path(__file__).with_name("report.html")
WIDE_FIT_DIMENSION = 64  # dimensions from which on a flow is fitted in the limit of many
FEWEST_TOKENS = 5  # tokens of a text: of fewer a bootstrap draws no pairs too often
LARGEST_FIT = 1e6  # n^2 d up to which one is fitted in fewer
MEAN_SHIFT_BETAS = (3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 24.0)  # beta of mean-shift
FLOW_TOPIC = "Layers are softmax attention of the theory (SA) with noise"
SMALLEST_CLUSTER, CLUSTERS_SHOWN, WORDS_SHOWN = (
    3,
    8,
    14,
)  # tokens of a cluster; clusters; tokens of one that are shown
WORD_LENGTH, NOTES_SHOWN = 40, 3  # characters of a word; texts that were cut and are named
LAYERS_LISTED = 13  # layers of which each number is written out


@dataclass(frozen=True, repr=False)
class Report:
    """Findings on a network, with numbers, figures and a page in HTML; made by `report`.

    Attributes
    ----------
    title, facts : str
        What was looked at.
    findings : tuple of Finding
        Sentences with numbers, intervals and verdicts.
    layers : xarray.Dataset
        Of `probe`.
    parts : dict of xarray.Dataset
        Of `attribute`, by the name of the quantity; empty without sublayers.
    null : xarray.Dataset or None
        Of `nulls`; None without a network.
    clusters : (float, list of list of str)
        beta, and the words of the largest clusters of the last layer by mean-shift.
    fit : Fit or None
    changes : Changes
        Bootstrap of mean cosines and energies.
    tokens : int
        Of the first text.
    named_by : str
        By what tokens are told apart: "words", "ids", or "numbers" of their places.
    """

    title: str
    facts: str
    findings: tuple[Finding, ...]
    layers: "xr.Dataset"
    parts: "dict[str, xr.Dataset]"
    null: "xr.Dataset | None"
    clusters: tuple[float, list[list[str]]]
    fit: "Fit | None"
    changes: Changes
    tokens: int
    named_by: str

    def __str__(self) -> str:
        rows = [f"{one.topic}{f': {one.verdict}' if one.verdict else ''}. {one.text}"
                for one in self.findings]  # fmt: skip
        return "\n".join([self.title, self.facts, *rows])

    def __repr__(self) -> str:
        return str(self)

    def figures(self) -> dict[str, Any]:
        """The figures of the page, by name."""
        from . import probe_pictures as pictures

        figures = {
            "layers": pictures.of_layers(self.layers, self.changes, self.null),
            "cosines": pictures.of_cosines(self.layers),
        }
        if self.parts:
            figures["parts"] = pictures.of_parts(self.parts, self.changes)
        if "head_slope" in self.layers and self.parts:
            figures["heads"] = pictures.of_heads(self.layers, next(iter(self.parts.values())))
        return figures

    def histograms(self) -> Any:
        """Figure 1 of the survey for this network: histograms of cosines of pairs by layer."""
        from .probe_pictures import of_histograms

        return of_histograms(self.layers)

    @property
    def html(self) -> str:
        """The page: complete in itself, light and dark, with texts for its figures."""
        page = Template(PAGE_TEMPLATE.read_text(encoding="utf-8")).substitute(
            title=escape(self.title), facts=escape(self.facts), sections="\n".join(_sections(self))
        )
        return page.encode("utf-8", "backslashreplace").decode("utf-8")  # words may be no Unicode

    def save(self, path: Any) -> Path:
        """Write the page; StorageError if that fails."""
        path = path_of("path", path)
        write_whole(path, self.html.encode("utf-8"))
        return path


def report(
    source: Any,
    texts: Any = None,
    *,
    draws: int = 3,
    fit: bool = True,
    rng: Any = 0,
    title: str | None = None,
    progress: bool | None = None,
) -> Report:
    """Probe a network on texts and say what of the theory is in it.

    Parameters
    ----------
    source : Network, Trace or arrays
        Arrays of hidden states as `probe` takes them. Without a network there are no heads and no
        null models; without sublayers no parts.
    texts : str, pathlib.Path, sequence of int, or a list of these
        For a network, as `Network.trace` takes them; not given otherwise.
    draws : int
        Of each null model, >= 2.
    fit : bool
        Whether to fit a flow to the tokens of the first text: SA with noise, and from 64 dimensions
        on a multiple of it, of either sign, in the limit of many dimensions.
    rng : numpy.random.Generator or seed
        Of null models, bootstrap and fit.
    title : str, optional
        Heading of the page.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    Report
        ``print(found)``; ``found.save("report.html")``.

    Raises
    ------
    TypeError, ValueError
        As `Network.trace` and `probe`.
    """
    random, draws = generator(rng), whole_number("draws", draws, least=2)
    wanted = boolean("fit", fit)
    net = source if isinstance(source, Network) else None
    needed = "given for a network, and for nothing else"
    fitting("texts", texts, needed, (texts is not None) == (net is not None))
    with Progress("probing", progress) as bar, one_blas_thread():
        bar.show(0.02, "replaying")
        trace = as_trace(source) if net is None else as_trace(net.trace(texts, attention=True))
        sizes = [h.shape[1] for h in trace.hidden]
        if min(sizes) < FEWEST_TOKENS:
            raise ValueError(
                f"A report needs texts of {FEWEST_TOKENS} tokens or more; text {np.argmin(sizes)} "
                f"has {counted(min(sizes), 'token')}."
            )
        bar.show(0.1, "probing")
        layers = probe(trace, net, causal=is_causal(trace, net))
        changes = changes_of(trace, random)
        findings = of_layers(changes) + of_parts(changes)
        parts: dict[str, xr.Dataset] = {}
        if trace.streams:
            bar.show(0.4, "splitting changes")
            split = {
                "mean cosine": MeanCosine(),
                f"energy at beta = {ENERGY_BETA:g}": Energy(ENERGY_BETA),
            }
            parts = {name: attribute(trace, quantity, net) for name, quantity in split.items()}
        null = None
        if net is not None:
            findings += of_heads(layers, parts["mean cosine"], random)
            bar.show(0.55, "null models")
            null = nulls(net, [list(map(int, ids)) for ids in trace.ids], _plain,
                         draws=draws, rng=random)  # fmt: skip
            findings += of_nulls(changes, null)
        findings += of_distances(layers) + of_outliers(trace)
        bar.show(0.75, "clusters")
        clusters = clusters_of(trace)
        result = None
        if wanted:
            bar.show(0.8, "fitting")
            result, finding = fitted(trace, random)
            findings.append(finding)
    states = trace.hidden[0]
    many = (
        f"{min(sizes)} to {max(sizes)}"
        if len(sizes) > CLUSTERS_SHOWN
        else ", ".join(map(str, sizes))
    )
    more = (
        f"So are {len(trace.notes) - NOTES_SHOWN} more. " if len(trace.notes) > NOTES_SHOWN else ""
    )
    facts = (
        f"{'Network ' + type(net).__name__ if net else 'Hidden states'}: "
        f"{counted(len(states) - 1, 'layer')} of {states.shape[2]} dimensions; "
        f"{counted(len(trace.hidden), 'text')} of {many} tokens. "
        f"{''.join(f'{note} ' for note in trace.notes[:NOTES_SHOWN])}{more}"
        f"Brackets hold 95 % intervals by bootstrap over tokens"
        f"{' and texts' if len(trace.hidden) >= 5 else ''}."
    )
    return Report(
        title or "What of the mean-field theory is in these layers",
        facts, tuple(findings), layers, parts, null, clusters, result, changes,
        states.shape[1], trace.named_by,
    )  # fmt: skip


def _plain(trace: Trace, _net: Network) -> "xr.Dataset":
    return probe(trace, distances=False, modes=False)[["mean_cosine", "effective_rank"]]


def clusters_of(trace: Trace) -> tuple[float, list[list[str]]]:
    """Clusters of words in the last layer of the first text, by mean-shift.

    At the inverse temperature, of those tried, at which clusters of three tokens or more hold most
    tokens but for those of the largest: at small ones all tokens are one cluster, at large ones
    each is alone.
    """
    x, _ = directions(trace.hidden[0][-1])
    best: tuple[int, float, np.ndarray] = (-1, MEAN_SHIFT_BETAS[0], np.zeros(len(x), dtype=int))
    for beta in MEAN_SHIFT_BETAS:
        labels = modes_of(x, beta)
        sizes = np.bincount(labels)
        others = int(sizes[1:][sizes[1:] >= SMALLEST_CLUSTER].sum())  # the largest is the first
        if others > best[0]:
            best = others, beta, labels
    _, beta, labels = best
    words = np.array(trace.words[0] if trace.words else [str(k) for k in range(len(x))], object)
    return beta, [list(words[labels == k]) for k in range(labels.max() + 1)
                  if (labels == k).sum() >= SMALLEST_CLUSTER]  # fmt: skip


def fitted(trace: Trace, rng: np.random.Generator) -> "tuple[Fit | None, Finding]":
    """A flow of SA with noise, fitted to all tokens of the first text, and what it says."""
    _, n, d = trace.hidden[0].shape
    topic = FLOW_TOPIC
    if d < WIDE_FIT_DIMENSION and n * n * d > LARGEST_FIT:
        said = f"It was not fitted: {n} tokens in {d} dimensions take too long."
        return None, Finding(topic, UNDECIDED, f"{said} `fit` does it.")
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore"):  # far from any fit
            warnings.simplefilter("ignore", UnresolvedWarning)  # the finding says it
            return (_in_many_dimensions if d >= WIDE_FIT_DIMENSION else _in_few_dimensions)(
                trace, rng
            )
    except (MeanfieldError, ValueError, np.linalg.LinAlgError) as error:
        return None, Finding(topic, UNDECIDED, f"It could not be fitted: {error}")


def _in_few_dimensions(trace: Trace, rng: np.random.Generator) -> "tuple[Fit, Finding]":
    """SA with noise, and the test of fit."""
    result = fit_flow(trace.hidden[0], SA, replicas=4, rng=rng, progress=False)
    return result, Finding(
        FLOW_TOPIC,
        FAILS if _denied(result) else UNDECIDED,
        f"Fitted to all {trace.hidden[0].shape[1]} tokens: {_numbers(result)}. {result.verdict}",
    )


def _in_many_dimensions(trace: Trace, rng: np.random.Generator) -> "tuple[Fit, Finding]":
    """A multiple of SA with noise, of either sign, and the test of fit."""
    h = trace.hidden[0]
    result = _multiple_of_sa(h, rng)
    disperses = result.status == "fitted" and result.interval(by="tokens")[0, 1] < 0
    return result, Finding(
        f"Layers are a multiple a > 0 of softmax attention (SA, beta = {ENERGY_BETA:g}) with noise",
        FAILS if disperses or _denied(result) else UNDECIDED,
        f"Fitted to all {h.shape[1]} tokens in all {h.shape[-1]} dimensions, a layer lasting the "
        f"time 1, with intervals by tokens: {_numbers(result, 'tokens')}. {result.verdict}"
        f"{_by_layer(h, rng)}",
    )


def _multiple_of_sa(h: np.ndarray, rng: np.random.Generator, **options: Any) -> "Fit":
    """A multiple a of SA at beta = 4, of either sign, with noise, in the limit of many."""
    start = {"a": 0.1, "kappa": 2.0 * h.shape[-1]}
    return fit_flow(h, lambda a: a * SA(ENERGY_BETA), start=start, fixed={"time": 1.0}, wide=True,
                    test_replicas=16, rng=rng, progress=False, **options)  # fmt: skip


def _by_layer(h: np.ndarray, rng: np.random.Generator) -> str:
    """A sentence on the multiple a fitted to each layer alone, and on its sign."""
    if len(h) < 3:
        return ""
    listed, up, down = [], [], []
    values: dict[int, float] = {}
    for layer in range(1, len(h)):
        try:
            result = _multiple_of_sa(h[layer - 1 : layer + 1], rng, verdict=False)
        except (MeanfieldError, ValueError, np.linalg.LinAlgError):
            listed.append("none")
            continue
        if result.status != "fitted":
            listed.append("none")
            continue
        low, high = result.interval(by="tokens")[0]
        listed.append(f"{result['a']:+.3g}")
        values[layer] = result["a"]
        up += [layer] * bool(low > 0)
        down += [layer] * bool(high < 0)
    each = f"{', '.join(listed)} in layers 1 to {len(h) - 1}"
    if len(values) > LAYERS_LISTED:
        least, most = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
        each = f"{values[least]:+.3g} (layer {least}) to {values[most]:+.3g} (layer {most})"
    said = (
        f" Fitted to each layer alone, a is {each}: "
        f"positive in {in_layers(up)}, negative in {in_layers(down)}"
    )
    if up and down:
        said += ", so that the one a of all layers is a compromise between opposite signs"
    return f"{said}."


def _denied(fit: "Fit") -> bool:
    """Return True if the fit is rejected, or predicts worse than no change."""
    worse = any(one.over_nothing[0] > 1 for one in fit.predictions)
    return fit.unrelated or (fit.estimate.converged and bool(fit.rejected or worse))


def _numbers(fit: "Fit", by: str = "model") -> str:
    """Parameters with their intervals."""
    values = fit.family.values(fit.estimate.point)
    if fit.status == "not converged":
        return "the search found no values that fit"
    names = zip(fit.family.labels, values, fit.interval(by=by), strict=True)
    return "; ".join(f"{name} {v:.3g} [{a:.3g}, {b:.3g}]" for name, v, (a, b) in names)


# The page ----------------------------------------------------------------------------------------


def _sections(report: Report) -> list[str]:
    parts = ["<h2>What was found</h2>", *(_of_finding(one) for one in report.findings)]
    titles = {
        "layers": ("Quantities by layer", _words_of_layers(report)),
        "cosines": ("Cosines of pairs", "The law of the cosines of all pairs of tokens, layer by "
                    "layer: mean " + _row(report.layers.mean_cosine.mean("text").values) + "."),
        "parts": ("What changes them", _words_of_parts(report)),
        "heads": ("Heads", "Left: the part of each head in the change of the mean cosine. Middle: "
                  "that part against the trace of output V. Right: the share of the variance of "
                  "logits that cosines of tokens explain, against the inverse temperature times "
                  "the norms of queries and keys."),
    }  # fmt: skip
    from .probe_pictures import svg

    for name, page in report.figures().items():
        heading, words = titles[name]
        parts += [
            f"<h2>{heading}</h2>",
            f"<figure>{svg(page, name, heading, words)}"
            f"<figcaption>{escape(words)}</figcaption></figure>",
        ]
        if name == "layers":
            parts.append(_table_of_layers(report))
        if name == "parts":
            parts += [_table_of_parts(*item) for item in report.parts.items()]
    return [*parts, _of_clusters(report), _notes(report)]


def _of_finding(one: Finding) -> str:
    verdict = f': <span class="verdict {one.verdict}">{one.verdict}</span>' if one.verdict else ""
    return f"<h3>{escape(one.topic)}{verdict}</h3>\n<p>{escape(one.text)}</p>"


def _row(values: np.ndarray) -> str:
    """Numbers of layers 0, 1, ...; of many the first, the last, the least and the largest."""
    if len(values) <= LAYERS_LISTED:
        return ", ".join(f"{value:.3g}" for value in values)
    low, high = int(values.argmin()), int(values.argmax())
    return (
        f"{values[0]:.3g} in layer 0, {values[-1]:.3g} in layer {len(values) - 1}, from "
        f"{values[low]:.3g} (layer {low}) to {values[high]:.3g} (layer {high})"
    )


def _words_of_layers(report: Report) -> str:
    words = (
        "Mean over texts. Mean cosine: "
        + _row(report.changes.cosine[:, 0])
        + "; the band is its 95 % interval"
    )
    if report.null is not None:
        words += "; other lines are null models, with the range of their draws"
    return words + ". Lengths: bars are one standard deviation of tokens."


def _words_of_parts(report: Report) -> str:
    words = "Parts of the sublayers in the change over each layer"
    for name, parts in report.parts.items():
        total = parts.part.mean("text").sum("block")
        each = ", ".join(f"{k} {float(total.sel(sublayer=k)):+.3g}" for k in total.sublayer.values)
        words += f"; {name}, over all layers: {each}"
    return words + ". Diamonds are the whole change."


def _table_of_layers(report: Report) -> str:
    layers = report.layers.mean("text")
    rows = {
        "mean cosine": layers.mean_cosine.values,
        "effective rank": layers.effective_rank.values,
        "mean length": layers.norm.values,
    }
    for beta in layers.beta.values:
        rows[f"energy, beta = {beta:g}"] = layers.energy.sel(beta=beta).values
        rows[f"modes, beta = {beta:g}"] = layers.modes.sel(beta=beta).values
    for angle in layers.angle.values:
        rows[f"clusters, linked to {angle:g} rad"] = layers.clusters.sel(angle=angle).values
        if "renyi_centres" in layers:
            rows[f"Rényi centres, {angle:g} rad"] = layers.renyi_centres.sel(angle=angle).values
    for name, label in (("moved", "r.m.s. angle moved"), ("w2", "W2 from the layer before"),
                        ("entropy", "entropy of attention, nats")):  # fmt: skip
        if name in layers:
            values = layers[name].mean("head") if name == "entropy" else layers[name]
            rows[label] = np.concatenate([[np.nan], values])
    return _table("layer", [str(k) for k in layers.layer.values], rows, "Quantities by layer")


def _table_of_parts(name: str, parts: "xr.Dataset") -> str:
    part = parts.part.mean("text")
    rows = {str(k): part.sel(sublayer=k).values for k in part.sublayer.values}
    rows["whole"] = parts.change.mean("text").values
    return _table("layer", [str(k) for k in part.block.values], rows, f"Change of the {name}")


def _table(corner: str, columns: list[str], rows: dict[str, np.ndarray], caption: str) -> str:
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in (corner, *columns))
    body = "".join(
        f'<tr><th scope="row">{escape(label)}</th>'
        + "".join(f"<td>{'' if np.isnan(v) else f'{v:.3g}'}</td>" for v in values)
        + "</tr>"
        for label, values in rows.items()
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
        f'<caption class="soft">{escape(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _of_clusters(report: Report) -> str:
    beta, clusters = report.clusters
    rows = "".join(
        f'<tr><th scope="row">{len(words)}</th><td class="words">'
        f"{escape(_some(words, report.named_by))}</td></tr>"
        for words in clusters[:CLUSTERS_SHOWN]
    )
    left = (
        f" {len(clusters) - CLUSTERS_SHOWN} more are not shown."
        if len(clusters) > CLUSTERS_SHOWN
        else ""
    )
    kind = {"words": "words", "ids": "tokens, by their ids"}.get(
        report.named_by, "tokens, by their places in the text, from 0"
    )
    what = "words" if report.named_by == "words" else "tokens"
    return (
        f"<h2>Which {what} gather</h2>"
        f"<p>{_shares(report)} Clusters are those of mean-shift at beta = {beta:g}: of the numbers "
        f"tried the one with most tokens in clusters beside the largest.{left}</p>"
        '<div class="wide" tabindex="0" role="region" aria-label="Clusters"><table>'
        '<thead><tr><th scope="col">tokens</th><th scope="col" class="words">'
        f"{kind}</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _shares(report: Report) -> str:
    """A sentence on the sizes of the largest cluster, and of the others."""
    sizes = [len(words) for words in report.clusters[1]]
    first, others = (sizes[0], sum(sizes[1:])) if sizes else (0, 0)
    said = (
        f"In the last layer of the first text the largest cluster holds {first} of "
        f"{report.tokens} tokens, {len(sizes[1:])} others of three tokens and more hold {others}."
    )
    if 2 * first > report.tokens:
        said += " That is one cloud rather than several clusters: the list says little."
    return said


def _some(words: list[str], named_by: str) -> str:
    """Distinct words, the most frequent first, with counts; positions in the order of the text."""
    if named_by == "numbers":
        words_shown = in_ranges(sorted(map(int, words)))
    else:
        names = list(map(int, words)) if named_by == "ids" else words
        counts = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
        words_shown = [
            f"{_cut(word)}" + (f" ×{count}" if count > 1 else "") for word, count in counts
        ]
    return ", ".join(words_shown[:WORDS_SHOWN]) + (
        ", ..." if len(words_shown) > WORDS_SHOWN else ""
    )


def _cut(word: Any) -> str:
    """A word as it can be shown: without marks that are not printed, and not longer than a line."""
    plain = "".join(
        mark if mark.isprintable() else ascii(mark)[1:-1] for mark in str(word)[:WORD_LENGTH]
    )
    return plain + ("..." if len(str(word)) > WORD_LENGTH else "")


def _notes(report: Report) -> str:
    notes = [
        "Directions of hidden states are compared, x = h/|h|. Tokens that networks add, as [CLS], "
        "are among them.",
        "Intervals treat tokens as drawn independently: words of one text are not, and another "
        "text has other numbers.",
    ]
    if report.parts:
        notes.append(
            "Parts are integrals of gradients along what sublayers add, in the order of the "
            "network. For a quantity that is not linear no split is unique: other paths have other "
            "parts with the same sum."
        )
    if report.null is not None:
        notes.append(
            "Null models are the network with something taken away. Random weights of the trained "
            "sizes and shuffled weights keep how large training made each tensor, and no more: "
            "they are no networks before training, which are the untrained ones."
        )
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    words = "".join(f"<dt>{word}</dt><dd>{escape(said)}</dd>" for word, said in GLOSSARY.items())
    return f"<h2>How to read it</h2><ul>{items}</ul><h2>Words</h2><dl>{words}</dl>"


GLOSSARY = {
    "mean cosine of pairs": "The mean of the cosines of all pairs of different tokens: 0 for "
    "independent directions, 1 if all tokens point the same way.",
    "beta, inverse temperature": "How sharply tokens are told apart: tokens whose cosines differ "
    "by 1/beta have weights that differ by the factor e.",
    "SA": "Softmax attention of the theory, with Q = K = V = 1: each token turns towards the mean "
    "of all tokens, weighted by the softmax of beta times their cosines. A multiple a < 0 of it "
    "turns tokens away from there.",
    "kappa": "The inverse strength of noise in a fit: in the time t a token of d dimensions turns "
    "by about the square root of 2 (d - 1) t/kappa radians in a random direction.",
    "energy": "E_beta = 1/(2 beta n\u00b2) sum_ij exp(beta cosine_ij) over all pairs of n tokens, "
    "i = j included. It is larger the more tokens gather; attention of the theory never lowers it.",
    "effective rank": "How many dimensions the directions fill: the exponential of the entropy of "
    "the shares of their principal components. It is 1 if all tokens point the same way.",
    "modes": "Peaks of a smoothed density of the directions, which tokens reach by mean-shift. The "
    "larger beta, the less it is smoothed.",
    "clusters, linked to an angle": "Sets of tokens in which each is nearer than the angle to "
    "another one; chains of tokens make one cluster.",
    "W2": "A distance between the tokens of two layers: the root mean square angle between them, "
    "if they are matched so that it is least.",
    "output V": "The product of a head\u2019s value and output matrices. It maps what the head "
    "looks at to what it adds. A positive trace means that on average it adds "
    "what it sees, a negative one that it takes it away.",
    "logits": "What the softmax of a head is applied to: products of queries and keys.",
    "tails of the noise": "In the test of a fit: how often tokens turn much farther than the fit "
    "says, beside replicas of the fitted flow.",
    "test of fit, p": "How often replicas of the fitted flow would differ from it by as much as "
    "the layers do. Where p is small the layers are no such flow.",
}
