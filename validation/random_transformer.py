"""Claim: tokens of a deep Transformer with random weights stay nearly equiangular, as predicted.

n = 128 uniform tokens of dimension d = 512, beta = sqrt(d), softmax attention with its own Q and K
in each of 64 layers (independent entries of variance 1/d), Post-, Pre- and Peri-LN:

1. V = 1, steps of 1/8. Logits are Gaussian, of variance about 1, with no preference for any
   token: weights have the mean 1/n, and the mean cosine is that of `Equiangular` at beta = 0, layer
   by layer; under Peri-LN from layer 16 on, where the lengths of outputs are those of beta = 0 too.
2. With overlaps of weights, e^{(1 - rho) rho}/n on average between two tokens and e^{1 - rho}/n of
   one with itself, lengths of outputs are known from the start, by a recursion of this script:

       a = rho + (1 - rho)/n,    p = rho + (1 - rho) e^{(1 - rho) rho}/n
       q = rho + (1 - rho) e^{1 - rho}/n,    f = 1 (Post-, Pre-LN) or q^{-1/2} (Peri-LN)
       r^2 <- r^2 + 2 r h f a + h^2 f^2 q,    r^2 rho <- r^2 rho + 2 r h f a + h^2 f^2 p

   for steps h, from r = 1 in each layer for Post-LN.
3. V random like Q and K, steps of 1, as in a network at its initialisation. Outputs are orthogonal
   to the tokens: the recursion of 2 with a = 0, which no `Equiangular` model has.
   Asked of 1, 2, 3, at all layers: 0.004 and 4.5 standard errors over the networks.
4. Networks differ, by the random lengths |V x|^2 = 1 +- (2/d)^{1/2} of the mean token: by 11 % of
   the mean cosine after four layers with random V. On average there is no bias: 64 networks of
   5 layers (16 with --quick), Post-LN. Asked: 4.5 standard errors, alone.
5. The predictions lie within the bands that hold 90 % of the cosines of pairs. Asked: at all
   layers with 1 - rho > 0.01.
6. With random V, each layer halves 1 - rho (Post-LN), or 1 - rho is proportional to 1/r^2 (Pre- and
   Peri-LN, r^2 ~ depth): factors over the layers 16 to 32 (Post-LN) and the last half. Asked: 1 %
   of the logarithm (Post-LN), 5 % of the ratio.

--quick: 3 networks of 32 layers instead of 8 of 64, looked at in four of them; 4 for random V only.

    python validation/random_transformer.py [--quick] [--figure FILE.png]    # 67 s, 14 s quick

Exit code 1 on failure. Reference: Karagodin, Geshkovski, Polyanskiy and Rigollet, arXiv:2510.22026,
and figure 4 of Rigollet, arXiv:2512.01868.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist

import meanfield as mf
from meanfield.plotting import theme

N, D = 128, 512
EARLY, LATE = 5, 16
STEPS = {"V = 1": 0.125, "random V": 1.0}
SCHEMES = {"Post-LN": mf.PostLN(), "Pre-LN": mf.PreLN(), "Peri-LN": mf.PeriLN()}
LISTED = (1, 4, 16, 32, 64)
ALLOWED, ENOUGH = 0.004, 8  # networks, for standard errors at every layer
STYLES = {"Post-LN": "-", "Pre-LN": "-", "Peri-LN": "--"}


def network(values: str, depth: int, rng) -> mf.Attention:
    """Attention with random matrices in each layer."""

    def layers():
        matrices = [mf.ensembles.ginibre(D, rng) / np.sqrt(D) for _ in range(depth)]
        return mf.PerLayer(matrices, duration=STEPS[values])

    V = layers() if values == "random V" else 1.0
    return mf.Attention(layers(), layers(), V, beta=np.sqrt(D))


def layered(drift, start, scheme, step: float, depth: int) -> mf.Solution:
    """The states at all layers."""
    model, options = mf.Transformer(drift, normalisation=scheme), {"scheme": mf.steppers.Layers}
    return successful(mf.solve(model, start, (0, depth * step), dt=step, **options))


def measured(values: str, depth: int, count: int, names=tuple(SCHEMES)) -> dict[str, np.ndarray]:
    """1 - <x_i, x_j> of all pairs, (networks, layers, pairs), by scheme."""
    found = {name: [] for name in names}
    for seed in range(count):
        rng = np.random.default_rng(seed)
        drift, start = network(values, depth, rng), mf.Tokens.uniform(N, D, rng=rng)
        for name in names:
            run = layered(drift, start, SCHEMES[name], STEPS[values], depth)
            found[name].append([pdist(state.x, "sqeuclidean") / 2 for state in run])
    return {name: np.array(gaps) for name, gaps in found.items()}


def predicted(values: str, name: str, depth: int) -> np.ndarray:
    """1 - rho and r at all layers, (2, layers), with the overlaps of random weights."""
    gap, square, h, found = 1.0, 1.0, STEPS[values], [(1.0, 1.0)]
    for _ in range(depth):
        a = 1 - gap + gap / N if values == "V = 1" else 0.0
        own, shared = np.exp(gap) / N, np.exp(gap * (1 - gap)) / N
        q = 1 - gap + gap * own
        step = h / np.sqrt(q) if name == "Peri-LN" else h
        longer = square + 2 * np.sqrt(square) * step * a + step**2 * q
        gap *= (square + step**2 * (own - shared)) / longer
        square = 1.0 if name == "Post-LN" else longer
        found.append((gap, np.sqrt(square)))
    return np.array(found).T


def equiangular(name: str, depth: int) -> tuple[int, np.ndarray]:
    """The first layer and 1 - rho from there on, of equiangular tokens at beta = 0."""
    first = LATE if name == "Peri-LN" else 0
    gap, r = predicted("V = 1", name, depth)[:, first]
    start, step = mf.Equiangular(N, gap=gap, radius=r), STEPS["V = 1"]
    run = layered(mf.SA(0.0), start, SCHEMES[name], step, depth - first)
    return first, np.array([float(state.gap) for state in run])


def compare(report: Report, case: str, gaps: np.ndarray, law: np.ndarray, first: int = 0) -> None:
    means = 1 - gaps.mean(axis=2)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    for layer in (layer for layer in LISTED if first < layer < first + len(law)):
        numbers = {"predicted": 1 - law[layer - first], "measured": means[:, layer].mean()}
        allowed = ALLOWED + 4.5 * error[layer]
        report.compare("mean cosine", f"{case}, layer {layer}", **numbers, tolerance=allowed)
    if len(means) >= ENOUGH:
        excess = np.abs(means.mean(axis=0)[first:] - 1 + law) - 4.5 * error[first:]
        numbers = {"predicted": 0, "measured": max(0, excess.max()), "tolerance": ALLOWED}
        report.compare("excess over 4.5 errors", case, **numbers)
    low, high = np.percentile(gaps[:, first:], [5, 95], axis=(0, 2))
    early = law > 0.01
    outside = early & ((law < low) | (law > high))
    numbers = {"predicted": 0, "measured": outside.sum(), "tolerance": 0}
    report.compare("layers outside of the band", f"{case}, {early.sum()} layers", **numbers)


def bias(report: Report, values: str, count: int) -> None:
    """Many shallow networks, whose standard errors are small."""
    means = 1 - measured(values, EARLY, count, ("Post-LN",))["Post-LN"].mean(axis=2)
    law = 1 - predicted(values, "Post-LN", EARLY)[0]
    for layer in range(1, EARLY + 1):
        error = 4.5 * means[:, layer].std(ddof=1) / np.sqrt(count)
        label = f"{values}, {count} networks, layer {layer}"
        numbers = {"predicted": law[layer], "measured": means[:, layer].mean()}
        report.compare("mean of networks", label, **numbers, tolerance=error, random=True)


def late_layers(report: Report, name: str, gaps: np.ndarray) -> None:
    """How 1 - rho falls with random V."""
    mean = gaps.mean(axis=2)
    if name == "Post-LN":
        rate = np.log(mean[:, 32] / mean[:, 16]).mean() / 16
        numbers = {"predicted": -np.log(2), "measured": rate, "tolerance": 0.01}
        report.compare("log of a factor", name, **numbers, relative=True)
        return
    depth = mean.shape[1] - 1
    law = predicted("random V", name, depth)[0]
    ratio = (mean[:, -1] / mean[:, depth // 2]).mean()
    numbers = {"predicted": law[-1] / law[depth // 2], "measured": ratio, "tolerance": 0.05}
    report.compare("ratio of 1 - rho", name, **numbers, relative=True)


def draw(found: dict, path: str) -> None:
    """Mean cosines with their bands, and the predictions."""
    figure = Figure(figsize=(9, 3.4), dpi=200, layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, (values, by_scheme) in zip(axes, found.items(), strict=True):
        for i, (name, (gaps, law)) in enumerate(by_scheme.items()):
            colour, layers = theme.PALETTE[i], np.arange(len(law))
            low, high = np.percentile(1 - gaps, [5, 95], axis=(0, 2))
            ax.fill_between(layers, low, high, color=colour, alpha=0.2, linewidth=0)
            style = {"color": colour, "ls": STYLES[name], "lw": 4 if name == "Pre-LN" else 1.6}
            ax.plot(layers, 1 - gaps.mean(axis=(0, 2)), **style, label=name)
            ax.plot(layers, 1 - law, "k:", lw=1.2, label="recursion" if i == 2 else None)
        step = f"steps of {STEPS[values]:g}"
        ax.set(xlabel="layer", title=f"{values}, {step}", xlim=(0, layers[-1]))
        ax.legend(fontsize=8, title="mean of networks")
    axes[0].set_ylabel("cosine of pairs: mean and 90 %")
    figure.savefig(path)


def main() -> int:
    arguments = command_line(
        __doc__, "fewer, shallower networks", "where to draw mean cosines and bands"
    )
    report, found = Report(["what", "case"], digits=6), {}
    depth, count, many = (32, 3, 16) if arguments.quick else (64, 8, 64)
    for values in STEPS:
        gaps = measured(values, depth, count)
        found[values] = {name: (gaps[name], predicted(values, name, depth)[0]) for name in SCHEMES}
        for name, (pairs, law) in found[values].items():
            compare(report, f"{values}, {name}", pairs, law)
            if values == "random V":
                late_layers(report, name, pairs)
            else:
                first, law = equiangular(name, depth)
                compare(report, f"Equiangular, {name}", pairs, law, first)
        if values == "random V" or not arguments.quick:
            bias(report, values, many)
    if arguments.figure:
        with theme.style():
            draw(found, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
