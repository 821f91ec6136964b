"""Reports on a network and its texts: findings with numbers and verdicts, figures, a page."""

from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from meanfield.extending import (
    OfLibrary,
    Progress,
    RandomSource,
    UserValue,
    boolean,
    counted,
    generator,
    one_blas_thread,
    path_of,
    require,
    whole_number,
    write_whole,
)

from . import findings as statements
from .attribution import attribute
from .bootstrap import RESAMPLED_TEXTS
from .clustering import clusters_of
from .findings import ENERGY_BETA, Changes, Finding, changes_of, fit_of
from .fitting import Fit
from .network import Network
from .nulls import nulls
from .probe import as_trace, probe
from .quantities import Energy, MeanCosine
from .trace import Trace

FEWEST_TOKENS = 5  # of a text; with fewer, many bootstrap draws repeat one token and have no pair
COMPARED = ["mean_cosine", "effective_rank"]  # with null models
LISTED_TEXTS, LISTED_NOTES = 8, 3  # texts whose sizes are written out; notes on cut texts


@dataclass(frozen=True, repr=False)
class Report:
    """Findings on a network, with numbers, figures and a page in HTML; made by `report`.

    Attributes
    ----------
    title, facts : str
        A heading, and a description of network and texts.
    findings : tuple of Finding
        Sentences with numbers, intervals and verdicts.
    layers : xarray.Dataset
        Result of `probe`.
    parts : dict of xarray.Dataset
        Results of `attribute` by name of the quantity; empty for a trace without sublayers.
    null : xarray.Dataset or None
        Result of `nulls`; None without a network.
    clusters : (float, list of list of str)
        beta, and the words of each mean-shift cluster of three tokens or more in the last layer of
        the first text.
    fit : Fit or None
    changes : Changes
        Bootstrap of mean cosines and energies.
    tokens : int
        Number of tokens of the first text.
    named_by : str
        Meaning of the words in `clusters`: "words", "ids", or "numbers" (positions in the text).
    """

    title: str
    facts: str
    findings: tuple[Finding, ...]
    layers: xr.Dataset
    parts: dict[str, xr.Dataset]
    null: xr.Dataset | None
    clusters: tuple[float, list[list[str]]]
    fit: Fit | None
    changes: Changes
    tokens: int
    named_by: str

    def __str__(self) -> str:
        rows = [f"{f.topic}{f': {f.verdict}' if f.verdict else ''}. {f.text}"
                for f in self.findings]  # fmt: skip
        return "\n".join([self.title, self.facts, *rows])

    __repr__ = __str__

    def figures(self) -> dict[str, OfLibrary]:
        """The figures of the page, by name."""
        from . import pictures

        figures = {
            "layers": pictures.of_layers(self.layers, self.changes, self.null),
            "cosines": pictures.of_cosines(self.layers),
        }
        if self.parts:
            figures["parts"] = pictures.of_parts(self.parts)
        if "head_slope" in self.layers and self.parts:
            figures["heads"] = pictures.of_heads(self.layers, next(iter(self.parts.values())))
        return figures

    def histograms(self) -> OfLibrary:
        """Figure 1 of the survey for this network: histograms of cosines of pairs by layer."""
        from . import pictures

        return pictures.of_histograms(self.layers)

    @property
    def html(self) -> str:
        """The page as self-contained HTML, for light and dark mode, with text alternatives."""
        from .page import html_of

        return html_of(self)

    def save(self, path: str | Path) -> Path:
        """Write the page; StorageError if that fails."""
        return write_whole(path_of("path", path), self.html.encode("utf-8"))


def report(
    source: UserValue,
    texts: UserValue = None,
    *,
    draws: int = 3,
    fit: bool = True,
    rng: RandomSource = 0,
    title: str | None = None,
    progress: bool | None = None,
) -> Report:
    """Probe a network on texts and compare it with the theory.

    Parameters
    ----------
    source : Network, Trace or arrays
        Arrays of hidden states have the forms that `probe` accepts. Without a network the report
        has no heads and no null models; without sublayers it has no parts of sublayers.
    texts : str, pathlib.Path, sequence of int, or a list of these
        Texts in the forms that `Network.trace` accepts; for a network only.
    draws : int
        Number of draws of each null model, >= 2.
    fit : bool
        Whether to fit a flow to the tokens of the first text: SA with noise; from 64 dimensions on,
        a positive or negative multiple of SA in the limit of many dimensions.
    rng : numpy.random.Generator or seed
        Random numbers of null models, bootstrap and fit.
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
    with_fit = boolean("fit", fit)
    net = source if isinstance(source, Network) else None
    expected = "given for a network, and for nothing else"
    require("texts", texts, expected, (texts is not None) == (net is not None))
    with Progress("probing", progress, stages=True) as bar, one_blas_thread():
        bar.show(0.02, "replaying")
        if net is None:
            trace = as_trace(source)
            _check_sizes({f"text {k}": h.shape[1] for k, h in enumerate(trace.hidden)})
        else:
            read = net.encoded(texts)
            _check_sizes({text.name: len(text.ids) for text in read})
            trace = as_trace(net.replay(read, attention=True))
        bar.show(0.1, "probing")
        layers = probe(trace, net)
        changes = changes_of(trace, random)
        unrelated = statements.of_order(trace)
        findings = unrelated or statements.of_layers(changes) + statements.of_parts(changes)
        parts: dict[str, xr.Dataset] = {}
        if trace.streams:
            bar.show(0.4, "splitting changes")
            energy = f"energy at beta = {ENERGY_BETA:g}"
            quantities = {"mean cosine": MeanCosine(), energy: Energy(ENERGY_BETA)}
            parts = {name: attribute(trace, quantity, net) for name, quantity in quantities.items()}
        null = None
        if net is not None:
            findings += statements.of_heads(layers, parts["mean cosine"], random)
            bar.show(0.55, "null models")
            null = nulls(net, [list(map(int, ids)) for ids in trace.ids],
                         lambda trace, _: probe(trace, distances=False, modes=False)[COMPARED],
                         draws=draws, rng=random)  # fmt: skip
            findings += statements.of_nulls(changes, null)
        findings += [] if unrelated else statements.of_distances(layers)
        findings += statements.of_outliers(trace)
        bar.show(0.75, "clusters")
        clusters = clusters_of(trace)
        result = None
        if with_fit:
            bar.show(0.8, "fitting")
            result, finding = fit_of(trace, random)
            findings.append(finding)
    return Report(
        title or "Hidden states and the mean-field theory",
        _facts(net, trace), tuple(findings), layers, parts, null, clusters, result, changes,
        trace.hidden[0].shape[1], trace.named_by,
    )  # fmt: skip


def _check_sizes(sizes: dict[str, int]) -> None:
    """Raise ValueError, with its name, for a text of too few tokens."""
    name = min(sizes, key=sizes.__getitem__)
    if sizes[name] < FEWEST_TOKENS:
        raise ValueError(
            f"A report needs texts of {FEWEST_TOKENS} tokens or more; {name} has "
            f"{counted(sizes[name], 'token')}."
        )


def _facts(net: Network | None, trace: Trace) -> str:
    """A description of network and texts, with the notes of the trace."""
    depth, sizes = len(trace.hidden[0]) - 1, [h.shape[1] for h in trace.hidden]
    all_sizes = ", ".join(map(str, sizes))
    lengths = all_sizes if len(sizes) <= LISTED_TEXTS else f"{min(sizes)} to {max(sizes)}"
    notes, others = trace.notes[:LISTED_NOTES], len(trace.notes) - LISTED_NOTES
    notes = [*notes, f"So are {others} more."] if others > 0 else notes
    return " ".join([
        f"{f'Network {net.family.name}' if net else 'Hidden states'}: "
        f"{counted(depth, 'layer')} of {trace.hidden[0].shape[2]} dimensions; "
        f"{counted(len(sizes), 'text')} of {lengths} tokens.",
        *notes,
        "Brackets hold 95 % intervals by bootstrap over tokens"
        f"{' and texts' if len(sizes) >= RESAMPLED_TEXTS else ''}.",
    ])  # fmt: skip
