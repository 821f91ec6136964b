"""Claim: tokens of a deep Transformer with random weights stay nearly equiangular, as predicted.

n = 128 uniform tokens of dimension d = 512, beta = sqrt(d), softmax attention with its own Q and K
in each of 64 layers (independent entries of variance 1/d), Post-, Pre- and Peri-LN:

1. V = 1, steps of 1/8. Logits are Gaussian, of variance about 1, with no preference for any
   token: weights have the mean 1/n, and the mean cosine is that of `Equiangular` at beta = 0, layer
   by layer (Post- and Pre-LN).
2. With overlaps of weights too, e^{(1 - rho) rho}/n on average between two tokens and
   e^{1 - rho}/n of one with itself, the lengths of outputs are known, which Peri-LN needs:

       a = rho + (1 - rho)/n,    p = rho + (1 - rho) e^{(1 - rho) rho}/n
       q = rho + (1 - rho) e^{1 - rho}/n,    f = 1 (Post-, Pre-LN) or q^{-1/2} (Peri-LN)
       r^2 <- r^2 + 2 r h f a + h^2 f^2 q,    r^2 rho <- r^2 rho + 2 r h f a + h^2 f^2 p

   for steps h, from r = 1 in each layer for Post-LN.
3. V random like Q and K, steps of 1, as in a network at its initialisation. Outputs are orthogonal
   to the tokens: the same with a = 0. Asked of 1, 2, 3, at all layers: 0.01 and 4.5 standard
   errors over the networks, which differ by the random products x^T V x.
4. The predictions lie within the bands that hold 90 % of the cosines of pairs. Asked: at all
   layers with 1 - rho > 0.01.
5. With random V, each layer halves 1 - rho (Post-LN), or 1 - rho is proportional to 1/r^2 (Pre- and
   Peri-LN, r^2 ~ depth): factors from layer 16 to 32 (Post-LN) and from 32 to 64. Asked: 1 % of
   the logarithm (Post-LN), 5 % of the ratio.

    python validation/random_transformer.py [--quick] [--figure FILE.png]    # 300 s, 20 s quick

Exit code 1 on failure. Reference: Karagodin, Geshkovski, Polyanskiy and Rigollet, arXiv:2510.22026,
and figure 4 of Rigollet, arXiv:2512.01868.
"""

import argparse
import sys

import numpy as np
from _report import Report, successful
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist

import meanfield as mf
from meanfield.plotting import theme

N, D, DEPTH = 128, 512, 64
STEPS = {"V = 1": 0.125, "random V": 1.0}
SCHEMES = {"Post-LN": mf.PostLN(), "Pre-LN": mf.PreLN(), "Peri-LN": mf.PeriLN()}
LISTED = (1, 4, 16, 32, 64)


def network(values: str, rng) -> mf.Attention:
    """Attention with random matrices in each layer."""

    def layers():
        matrices = [mf.ensembles.ginibre(D, rng) / np.sqrt(D) for _ in range(DEPTH)]
        return mf.PerLayer(matrices, duration=STEPS[values])

    V = layers() if values == "random V" else 1.0
    return mf.Attention(layers(), layers(), V, beta=np.sqrt(D))


def layered(drift, start, scheme, step: float) -> mf.Solution:
    """The states at all layers."""
    model, options = mf.Transformer(drift, normalisation=scheme), {"scheme": mf.steppers.Layers}
    return successful(mf.solve(model, start, (0, DEPTH * step), dt=step, **options))


def measured(values: str, count: int) -> dict[str, np.ndarray]:
    """1 - <x_i, x_j> of all pairs, (networks, layers, pairs), by scheme."""
    found = {name: [] for name in SCHEMES}
    for seed in range(count):
        rng = np.random.default_rng(seed)
        drift, start = network(values, rng), mf.Tokens.uniform(N, D, rng=rng)
        for name, scheme in SCHEMES.items():
            run = layered(drift, start, scheme, STEPS[values])
            found[name].append([pdist(state.x, "sqeuclidean") / 2 for state in run])
    return {name: np.array(gaps) for name, gaps in found.items()}


def predicted(values: str, name: str) -> np.ndarray:
    """1 - rho at all layers, with the overlaps of random weights."""
    gap, square, h, gaps = 1.0, 1.0, STEPS[values], [1.0]
    for _ in range(DEPTH):
        a = 1 - gap + gap / N if values == "V = 1" else 0.0
        own, shared = np.exp(gap) / N, np.exp(gap * (1 - gap)) / N
        q = 1 - gap + gap * own
        step = h / np.sqrt(q) if name == "Peri-LN" else h
        longer = square + 2 * np.sqrt(square) * step * a + step**2 * q
        gap *= (square + step**2 * (own - shared)) / longer
        square = 1.0 if name == "Post-LN" else longer
        gaps.append(gap)
    return np.array(gaps)


def equiangular(name: str) -> np.ndarray:
    """1 - rho at all layers, of equiangular tokens at beta = 0."""
    run = layered(mf.SA(0.0), mf.Equiangular(N, 0.0), SCHEMES[name], STEPS["V = 1"])
    return np.array([float(state.gap) for state in run])


def compare(report: Report, case: str, gaps: np.ndarray, law: np.ndarray) -> None:
    means = 1 - gaps.mean(axis=2)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    for layer in LISTED:
        numbers = {"predicted": 1 - law[layer], "measured": means[:, layer].mean()}
        allowed = 0.01 + 4.5 * error[layer]
        report.compare("mean cosine", f"{case}, layer {layer}", **numbers, tolerance=allowed)
    excess = np.abs(means.mean(axis=0) - 1 + law) - 4.5 * error
    numbers = {"predicted": 0, "measured": max(0, excess.max()), "tolerance": 0.01}
    report.compare("excess over 4.5 errors", case, **numbers)
    low, high = np.percentile(gaps, [5, 95], axis=(0, 2))
    early = law > 0.01
    outside = early & ((law < low) | (law > high))
    numbers = {"predicted": 0, "measured": outside.sum(), "tolerance": 0}
    report.compare("layers outside of the band", f"{case}, {early.sum()} layers", **numbers)


def late_layers(report: Report, name: str, gaps: np.ndarray) -> None:
    """How 1 - rho falls with random V."""
    mean = gaps.mean(axis=2)
    if name == "Post-LN":
        rate = np.log(mean[:, 32] / mean[:, 16]).mean() / 16
        numbers = {"predicted": -np.log(2), "measured": rate, "tolerance": 0.01}
        report.compare("log of a factor", name, **numbers, relative=True)
        return
    law = predicted("random V", name)
    ratio = (mean[:, 64] / mean[:, 32]).mean()
    numbers = {"predicted": law[64] / law[32], "measured": ratio, "tolerance": 0.05}
    report.compare("ratio of 1 - rho", name, **numbers, relative=True)


def draw(found: dict, path: str) -> None:
    """Mean cosines with their bands, and the predictions."""
    figure = Figure(figsize=(9, 3.4), dpi=200, layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    layers = np.arange(DEPTH + 1)
    for ax, (values, by_scheme) in zip(axes, found.items(), strict=True):
        for i, (name, (gaps, law)) in enumerate(by_scheme.items()):
            colour = theme.PALETTE[i]
            low, high = np.percentile(1 - gaps, [5, 95], axis=(0, 2))
            ax.fill_between(layers, low, high, color=colour, alpha=0.25, linewidth=0)
            ax.plot(layers, 1 - gaps.mean(axis=(0, 2)), color=colour, label=name)
            ax.plot(layers, 1 - law, "k:", lw=1.2, label="predicted" if i == 2 else None)
        step = f"steps of {STEPS[values]:g}"
        ax.set(xlabel="layer", title=f"{values}, {step}", xlim=(0, DEPTH))
    axes[0].set_ylabel(r"cosine of pairs: mean and 90 %")
    axes[1].legend(fontsize=8)
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="4 networks instead of 8")
    parser.add_argument("--figure", metavar="FILE", help="where to draw mean cosines and bands")
    arguments = parser.parse_args()
    report, found = Report(["what", "case"], digits=6), {}
    for values in STEPS:
        gaps = measured(values, 4 if arguments.quick else 8)
        found[values] = {name: (gaps[name], predicted(values, name)) for name in SCHEMES}
        for name, (pairs, law) in found[values].items():
            compare(report, f"{values}, {name}", pairs, law)
            if values == "random V":
                late_layers(report, name, pairs)
            elif name != "Peri-LN":
                compare(report, f"Equiangular, {name}", pairs, equiangular(name))
    if arguments.figure:
        with theme.style():
            draw(found, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
