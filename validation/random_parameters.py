"""Claim: random starts form the predicted numbers of clusters; random Q, K, V lead to known limits.

First, SA on the circle, Q = K = V = 1, n = 32, 200 uniform starts: clusters (chains of cosines >
0.9999) at t = 18. Asked: that the most common number is 2 for beta = 4, 3 for beta = 9, as in the
reference; what share of starts has it is printed. (A uniform density, n = infinity, would first
form 3 and 4: the fastest modes.)

Then d = 128, n = 32, weights exp(beta <x_i, B x_j>), B = Q^T K with entries of variance 1:

    (a) B = G1 G2/sqrt(d), V = G3/sqrt(d)    Ginibre matrices, entries N(0, 1)
    (b) B = (G + G^T)/sqrt(2), V = W         V = G G^T/d >= 0
    (c) B = G1 G2/sqrt(d), V = B/sqrt(d)
    (d) B = (G + G^T)/sqrt(2), V = B/sqrt(d)

V is scaled to a spectrum of size O(1), which sets the unit of time. Known or derived, and asked:

1. Tokens that have met stay together and move by x' = P V x, so that x(t) is e^{tV} x(0),
   normalised. (a) and (b), beta = 1, from t = 40 to 50: distance at most 1e-6.
2. (b): such tokens converge to the top eigenvector of V, u or -u. At t = 500: 1e-6.
3. (d): SA is an ascent of sum_ij e^{beta <x_i, B x_j>}. It never falls, to 1e-12 of itself.
4. (d): clusters at eigenvectors of B rest. Linearised there, with e^{-beta lambda} neglected: of
   the largest eigenvalue, e or -e, they are stable; of the smallest, pairs f and -f, stable if
   -lambda_min > lambda_max; others never. So all tokens end at e or -e if lambda_max is the larger
   one, else at e, -e, f, -f. beta = 2, t = 500, B of either kind: distance at most 1e-3.
5. Consensus, P(<x_i, x_j> >= 0.999) at t = 30: 1 in (a) for all beta <= 9, and in (b) and (c) for
   beta = 0.1; at most 0.8 in (c), 0.5 in (d), for beta >= 3; in (b) tokens are then at one point
   or two antipodal ones: P(|<x_i, x_j>| >= 0.999) >= 0.9.

For large beta a density would gather at two antipodal points in (c), as V K^T Q = B B^T/sqrt(d) has
a simple top eigenvalue. With 32 tokens, few for a sphere of 127 dimensions, this is not seen.

    python validation/random_parameters.py [--quick] [--figure FILE.png]  # 60 s, 15 s quick

--quick has 40 starts, fewer beta, and one draw of the matrices rather than four. Exit code 1 on
failure.

References: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, figures 4 and 5;
Bruno, Pasqualotto and Agazzi, arXiv:2509.25040 (alignment: large beta, densities).
"""

import sys
from collections import Counter

import numpy as np
from _report import Report, command_line, successful
from matplotlib.figure import Figure
from scipy.linalg import expm

import meanfield as mf
from meanfield.models.ensembles import ginibre, ginibre_product, goe, wishart
from meanfield.plotting import theme

N, D = 32, 128
SNAPSHOTS = (2.5, 18.0, 30.0)
COMMON = {4.0: 2, 9.0: 3}
BETAS = np.linspace(0.1, 9, 13)
TIMES = np.linspace(0, 30, 61)
CASES = {
    "a": "$Q, K, V$ Ginibre",
    "b": r"$Q^TK$ Wigner, $V \geq 0$",
    "c": "$Q, K$ Ginibre, $V = Q^TK$",
    "d": "$Q^TK$ Wigner, $V = Q^TK$",
}


def matrices(case: str, rng) -> tuple[np.ndarray, np.ndarray]:
    """B = Q^T K, and V."""
    if case == "a":
        return ginibre_product(D, rng), ginibre(D, rng) / np.sqrt(D)
    if case == "b":
        return goe(D, rng), wishart(D, rng) / np.sqrt(D)
    B = ginibre_product(D, rng) if case == "c" else goe(D, rng)
    return B, B / np.sqrt(D)


def products(tokens: mf.Tokens) -> np.ndarray:
    """<x_i, x_j> of all pairs i < j."""
    G = tokens.x @ np.swapaxes(tokens.x, -1, -2)
    return G[..., *np.triu_indices(N, 1)]


def moved(drift, start: mf.Tokens, times, rtol: float = 1e-8) -> mf.Solution:
    span = (0, np.max(times))
    return successful(mf.solve(mf.Transformer(drift), start, span, t_eval=times, rtol=rtol))


def circle(report: Report, starts: int) -> dict:
    """Count clusters on the circle; for each beta a start with the common number, and its share."""
    shown = {}
    for beta, common in COMMON.items():
        run = moved(mf.SA(beta), mf.Tokens.uniform(N, 2, rng=0, shape=(starts,)), SNAPSHOTS)
        counts = [[int(mf.cluster_labels(s[i]).max()) + 1 for i in range(starts)] for s in run]
        for t, found in zip(SNAPSHOTS[1:], counts[1:], strict=True):
            law = ", ".join(f"{k}: {m / starts:.0%}" for k, m in sorted(Counter(found).items()))
            print(f"SA({beta:g}), d = 2, t = {t:g}, {starts} starts: clusters {law}")
        likely = Counter(counts[1]).most_common(1)[0][0]
        label = f"SA({beta:g}), d = 2, most common number at t = 18"
        report.compare("clusters", label, predicted=common, measured=likely, tolerance=0)
        both = [i for i in range(starts) if counts[1][i] == counts[2][i] == common]
        shown[beta] = [state[both[0]].x for state in run], counts[1].count(common) / starts
    return shown


def diagram(case: str, draws: int, betas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(<x_i, x_j> >= 0.999) at (beta, t); inner products (t, beta, samples)."""
    samples = []
    for draw in range(draws):
        rng = np.random.default_rng([1, ord(case), draw])
        B, V = matrices(case, rng)
        start = mf.Tokens.uniform(N, D, rng=rng)
        run = moved(mf.Attention(K=B, V=V, beta=betas), start, TIMES, rtol=1e-6)
        samples.append([products(state) for state in run])
    cosines = np.concatenate(samples, axis=-1)
    return (cosines >= 0.999).mean(axis=-1).T, cosines


def check_diagrams(report: Report, diagrams: dict, betas: np.ndarray) -> None:
    last = {case: share[:, -1] for case, (share, _) in diagrams.items()}
    aligned = (np.abs(diagrams["b"][1][-1]) >= 0.999).mean(axis=-1)
    for label, predicted, value, tolerance in (
        ("(a), all beta: 1", 1, last["a"].min(), 0),
        ("(b), beta = 0.1: 1", 1, last["b"][0], 0),
        ("(c), beta = 0.1: 1", 1, last["c"][0], 0),
        ("(b), beta >= 3, one point or two: at least 0.9", 1, aligned[betas >= 3].min(), 0.1),
        ("(c), beta >= 3: at most 0.8", 0, last["c"][betas >= 3].max(), 0.8),
        ("(d), beta >= 3: at most 0.5", 0, last["d"][betas >= 3].max(), 0.5),
    ):
        numbers = {"predicted": predicted, "measured": value, "tolerance": tolerance}
        report.compare("consensus", label, **numbers)


def together(report: Report) -> None:
    """Tokens that have met follow e^{tV}; for V >= 0 to its top eigenvector."""
    for case in "ab":
        rng = np.random.default_rng([2, ord(case)])
        B, V = matrices(case, rng)
        drift = mf.Attention(K=B, V=V, beta=1.0)
        met, later, end = moved(drift, mf.Tokens.uniform(N, D, rng=rng), [40, 50, 500])
        exact = expm(10 * V) @ met.x[0]
        far = np.linalg.norm(later.x - exact / np.linalg.norm(exact), axis=1).max()
        label = f"({case}), from t = 40 to 50"
        report.compare("distance to e^{tV} x", label, predicted=0, measured=far, tolerance=1e-6)
        if case == "b":
            top = np.linalg.eigh(V)[1][:, -1]
            far = np.sqrt(2 - 2 * np.minimum(1, np.abs(end.x @ top)).min())
            label = "(b), t = 500"
            numbers = {"predicted": 0, "measured": far, "tolerance": 1e-6}
            report.compare("distance to +-u", label, **numbers)


def ascent(report: Report, draws: int) -> None:
    """Case (d): the energy rises, and tokens go to eigenvectors of extreme eigenvalues."""
    for draw in range(draws):
        rng = np.random.default_rng([3, draw])
        B, V = (matrix * (-1) ** draw for matrix in matrices("d", rng))
        times = [*np.linspace(0, 100, 201), 500]
        run = moved(mf.Attention(K=B, V=V, beta=2.0), mf.Tokens.uniform(N, D, rng=rng), times)
        energies = np.array([np.exp(2 * s.x @ B @ s.x.T).mean() for s in run])
        fall = max(0.0, float(-(np.diff(energies) / energies[1:]).min()))
        report.compare(
            "fall of energy", f"(d), start {draw}", predicted=0, measured=fall, tolerance=1e-12
        )
        values, vectors = np.linalg.eigh(V)
        cosines = run.final.x @ vectors[:, [-1, 0]]
        places = " ".join(str((sign * c > 0.5).sum()) for c in cosines.T for sign in (1, -1))
        allowed = cosines[:, :1] if values[-1] > -values[0] else cosines
        far = np.sqrt(2 - 2 * np.minimum(1, np.abs(allowed).max(axis=1)).min())
        what = "distance to +-e" + (", +-f" if allowed.shape[1] == 2 else "")
        label = f"(d), lambda {values[-1]:.3f}, {values[0]:.3f}; at e, -e, f, -f: {places}"
        report.compare(what, label, predicted=0, measured=far, tolerance=1e-3)


def draw_circles(figure, shown: dict) -> None:
    """Tokens on the circle at three times, for both beta."""
    axes = iter(figure.subplots(1, 6))
    around = np.linspace(0, 2 * np.pi, 200)
    for beta, (snapshots, share) in shown.items():
        for i, (t, x) in enumerate(zip(SNAPSHOTS, snapshots, strict=True)):
            ax = next(axes)
            ax.plot(np.cos(around), np.sin(around), color="0.75", lw=0.8)
            ax.plot(*x.T, "o", ms=4, alpha=0.5, mew=0, clip_on=False)
            ax.set(aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
            ax.set_title(f"$t = {t:g}$" if i else rf"$\beta = {beta:g}$, $t = {t:g}$")
            ax.set_axis_off()
            if i == 1:
                ax.text(0, 0, f"{COMMON[beta]} clusters\nin {share:.0%}", ha="center", va="center")


def draw_cases(figure, diagrams: dict, betas: np.ndarray) -> None:
    """Phase diagrams, and histograms of inner products, in the four cases."""
    axes, shown = figure.subplots(2, 4, sharey="row"), len(betas) // 3
    edges = np.linspace(-1, 1, 41)
    for ax, below, case in zip(*axes, CASES, strict=True):
        share, cosines = diagrams[case]
        mesh = ax.pcolormesh(
            TIMES, betas, share, vmin=0, vmax=1, shading="nearest", rasterized=True
        )
        ax.set(title=f"({case}) {CASES[case]}", xlabel="time $t$")
        for t, colour in ((0, "#CCCCCC"), (5, "#E69F00"), (30, "#0072B2")):
            inside = np.clip(cosines[TIMES == t, shown], -1, 1)  # beyond by rounding
            heights = np.histogram(inside, edges)[0] / inside.size
            below.stairs(heights, edges, color=colour, lw=1.3, label=f"$t = {t}$", fill=t == 0)
        below.set(yscale="log", xlabel=r"$\langle x_i, x_j\rangle$", ylim=(1e-4, 1.5))
    axes[0, 0].set_ylabel(r"$\beta$")
    axes[1, 0].set_ylabel(rf"share of pairs, $\beta = {betas[shown]:.1f}$")
    axes[1, 0].legend(loc="upper left", fontsize=8)
    label = r"$P(\langle x_i, x_j\rangle \geq 0.999)$"
    figure.colorbar(mesh, ax=axes[0], label=label, aspect=15)


def draw(shown: dict, diagrams: dict, betas: np.ndarray, path: str) -> None:
    figure = Figure(figsize=(9.5, 6.6), dpi=200, layout="constrained")
    upper, lower = figure.subfigures(2, 1, height_ratios=(1, 3))
    draw_circles(upper, shown)
    draw_cases(lower, diagrams, betas)
    figure.savefig(path)


def main() -> int:
    arguments = command_line(
        __doc__, "fewer starts, matrices and beta", "where to draw clusters and diagrams"
    )
    report = Report(["what", "case"], digits=4)
    shown = circle(report, 40 if arguments.quick else 200)
    together(report)
    ascent(report, 1 if arguments.quick else 4)
    betas, draws = (BETAS[::4], 1) if arguments.quick else (BETAS, 4)
    diagrams = {case: diagram(case, draws, betas) for case in CASES}
    check_diagrams(report, diagrams, betas)
    if arguments.figure:
        with theme.style():
            draw(shown, diagrams, betas, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
