"""The page of a report in HTML: findings, figures with words, tables and clusters."""

import re
from collections import Counter
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

import numpy as np

from .findings import LAYERS_LISTED, in_ranges
from .pictures import svg
from .report import Report

PAGE_TEMPLATE = Path(__file__).with_name("report.html")
CLUSTERS_SHOWN = 8
WORDS_SHOWN, WORD_LENGTH = 14, 40  # words of a cluster, characters of a word
HEADINGS = {  # of figures, by name
    "layers": "Quantities by layer",
    "cosines": "Cosines of pairs",
    "parts": "Changes by sublayer",
    "heads": "Heads",
}
HEADS_IN_WORDS = (
    "Left: the part of each head in the change of the mean cosine. Middle: that part against the "
    "trace of output V. Right: the share of the variance of logits that cosines of tokens explain, "
    "against the inverse temperature times the norms of queries and keys."
)
PARTS_NOTE = (
    "Parts are integrals of gradients along the increments of the sublayers, in the order of the "
    "network. For a quantity that is not linear no split is unique: other paths have other parts "
    "with the same sum."
)
OF_PARTS_OF_REPORTS = {  # terms of the glossary that only some reports use: the words they explain
    "output V": "output V",
    "logits": "logits",
    "SA": r"\bSA\b",
    "kappa": "kappa",
    "the tails of the noise": "tails of the noise",
    "test of fit, p": r"\(p ",
}
NULLS_NOTE = (
    "Null models are the network with something taken away. Random weights of the trained sizes "
    "and shuffled weights keep how large training made each tensor, and no more: they are no "
    "networks before training, which are the untrained ones."
)


def html_of(report: Report) -> str:
    """The page as self-contained HTML; characters that UTF-8 cannot encode are escaped."""
    findings = []
    for finding in report.findings:
        verdict = f': <span class="verdict {finding.verdict}">{finding.verdict}</span>'
        title = f"{escape(finding.topic)}{verdict if finding.verdict else ''}"
        findings.append(f"<h3>{title}</h3>\n<p>{escape(finding.text)}</p>")
    figures = _figures(report)
    used = " ".join([*findings, *figures])
    template = PAGE_TEMPLATE.read_text(encoding="utf-8")
    for term, words in OF_PARTS_OF_REPORTS.items():
        if not re.search(words, used):
            template = re.sub(rf"<dt>{term}</dt>.*\n", "", template)
    page = Template(template).substitute(
        title=escape(report.title),
        facts=escape(report.facts),
        findings="\n".join(findings),
        figures="\n".join(figures),
        clusters=clusters_section(report),
        notes="".join(
            f"<li>{escape(note)}</li>"
            for note, holds in ((PARTS_NOTE, report.parts), (NULLS_NOTE, report.null is not None))
            if holds
        ),
    )
    return page.encode("utf-8", "backslashreplace").decode("utf-8")


def _figures(report: Report) -> list[str]:
    """Figures with their words and tables, in HTML."""
    means = row_in_words(report.changes.cosine[:, 0])
    nulls = "; other lines are null models, with the range of their draws"
    total = {name: table.part.mean("text").sum("block") for name, table in report.parts.items()}
    parts = [
        f"{name}, over all layers: "
        + ", ".join(f"{k} {float(parts.sel(sublayer=k)):+.3g}" for k in parts.sublayer.values)
        for name, parts in total.items()
    ]
    words = {
        "layers": f"Mean over texts. Mean cosine: {means}; the band is its 95 % interval"
        f"{nulls if report.null is not None else ''}. Lengths: bars are one standard deviation of "
        "tokens.",
        "cosines": "The law of the cosines of all pairs of tokens, layer by layer: mean "
        f"{row_in_words(report.layers.mean_cosine.mean('text').values)}.",
        "parts": "; ".join(["Parts of the sublayers in the change over each layer", *parts])
        + ". Diamonds are the whole change.",
        "heads": HEADS_IN_WORDS,
    }
    sections = []
    for name, figure in report.figures().items():
        heading, caption = HEADINGS[name], words[name]
        sections.append(
            f"<h2>{heading}</h2><figure>{svg(figure, name, heading, caption)}"
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )
        if name == "layers":
            sections.append(_table_of_layers(report))
        for quantity, table in report.parts.items() if name == "parts" else ():
            part = table.part.mean("text")
            rows = {str(k): part.sel(sublayer=k).values for k in part.sublayer.values}
            rows["whole"] = table.change.mean("text").values
            sections.append(_table(part.block.values, rows, f"Change of the {quantity}"))
    return sections


def row_in_words(values: np.ndarray) -> str:
    """Values of layers 0, 1, ... in words; of many only the first, last, least and largest."""
    if len(values) <= LAYERS_LISTED:
        return ", ".join(f"{value:.3g}" for value in values)
    low, high = int(values.argmin()), int(values.argmax())
    return (
        f"{values[0]:.3g} in layer 0, {values[-1]:.3g} in layer {len(values) - 1}, from "
        f"{values[low]:.3g} (layer {low}) to {values[high]:.3g} (layer {high})"
    )


def _table_of_layers(report: Report) -> str:
    """Table in HTML of means over texts by layer; quantities of blocks begin with layer 1."""
    layers = report.layers.mean("text")
    rows = {"mean cosine": layers.mean_cosine, "effective rank": layers.effective_rank}
    rows["mean length"] = layers.norm
    for beta in layers.beta.values:
        rows[f"energy, beta = {beta:g}"] = layers.energy.sel(beta=beta)
        rows[f"modes, beta = {beta:g}"] = layers.modes.sel(beta=beta)
    for angle in layers.angle.values:
        rows[f"clusters, linked to {angle:g} rad"] = layers.clusters.sel(angle=angle)
        if "renyi_centres" in layers:
            rows[f"Rényi centres, {angle:g} rad"] = layers.renyi_centres.sel(angle=angle)
    rows["r.m.s. angle moved"], rows["W2 from the layer before"] = layers.moved, layers.w2
    if "entropy" in layers:
        rows["entropy of attention, nats"] = layers.entropy.mean("head")
    count = len(layers.layer)
    padded = {label: np.full(count, np.nan) for label in rows}
    for label, values in rows.items():
        padded[label][count - len(values) :] = values  # blocks have no value in layer 0
    return _table(layers.layer.values, padded, "Quantities by layer")


def _table(layers: np.ndarray, rows: dict[str, np.ndarray], caption: str) -> str:
    """An HTML table with a column for each layer, and rows by label; nan is left blank."""
    head = "".join(f'<th scope="col">{c}</th>' for c in ("layer", *layers))
    body = "".join(
        f'<tr><th scope="row">{escape(label)}</th>'
        + "".join(f"<td>{'' if np.isnan(v) else f'{v:.3g}'}</td>" for v in values)
        + "</tr>"
        for label, values in rows.items()
    )
    title = f'<caption class="soft">{escape(caption)}</caption>'
    return _wide(caption, f"{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody>")


def _wide(label: str, table: str) -> str:
    """A table in HTML that may be wider than the page, and then is scrolled."""
    region = f'<div class="wide" tabindex="0" role="region" aria-label="{escape(label)}">'
    return f"{region}<table>{table}</table></div>"


# Clusters ----------------------------------------------------------------------------------------


def clusters_section(report: Report) -> str:
    """The section on clusters; tokens are named by words, ids or positions."""
    beta, clusters = report.clusters
    first, *rest = [len(words) for words in clusters] or [0]
    sizes = (
        f"In the last layer of the first text the largest cluster has {first} of {report.tokens} "
        f"tokens; {len(rest)} others of three tokens and more have {sum(rest)}."
    )
    if 2 * first > report.tokens:
        sizes += " That is one cloud rather than several clusters: the list says little."
    rows = "".join(
        f'<tr><th scope="row">{len(words)}</th><td class="words">'
        f"{escape(_enumeration(words, report.named_by))}</td></tr>"
        for words in clusters[:CLUSTERS_SHOWN]
    )
    hidden = len(clusters) - CLUSTERS_SHOWN
    remainder = f" {hidden} more are not shown." if hidden > 0 else ""
    noun, column = {
        "words": ("words", "words"),
        "ids": ("tokens", "tokens, by their ids"),
    }.get(report.named_by, ("tokens", "tokens, by their position in the text, from 0"))
    head = f'<tr><th scope="col">tokens</th><th scope="col" class="words">{column}</th></tr>'
    table = _wide("Clusters", f"<thead>{head}</thead><tbody>{rows}</tbody>")
    return (
        f"<h2>Clusters of {noun}</h2><p>{sizes} Clusters are those of mean-shift at beta = "
        f"{beta:g}: among the values tried this one puts most tokens into clusters other than the "
        f"largest.{remainder}</p>{table}"
    )


def _enumeration(words: list[str], named_by: str) -> str:
    """Distinct words, the most frequent first, with counts; positions in the order of the text."""
    if named_by == "numbers":
        entries = in_ranges(sorted(map(int, words)))
    else:
        names: Sequence[int | str] = list(map(int, words)) if named_by == "ids" else words
        counts = sorted(Counter(names).items(), key=lambda item: (-item[1], item[0]))
        entries = []
        for word, count in counts:
            start = str(word)[:WORD_LENGTH]
            text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in start)
            dots = "..." if len(str(word)) > WORD_LENGTH else ""
            entries.append(f"{text}{dots}" + (f" ×{count}" if count > 1 else ""))
    return ", ".join(entries[:WORDS_SHOWN]) + (", ..." if len(entries) > WORDS_SHOWN else "")
