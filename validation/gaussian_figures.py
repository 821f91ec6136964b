"""Claim: covariances of Gaussians under attention behave as in the figures of Castin et al.

Covariances [[a, c], [c, b]] of trace 1 on a grid of (a - b, 2c), followed in coordinates (a - b,
2c, a + b); parameters in the manner of the paper, whose own are drawn at random:

1. Convergence. (a) A < 0, V > 0: to zero, like 1/t. (b) V = 1, A = -q q^T: to the line of
   multiples of p p^T, p orthogonal to q, to the limit in closed form. (c) Two heads that project on
   the axes, the second without keys: to the plane <e_1, S q> = 0. (d) A indefinite, V such that
   both stay: to the two lines of multiples of u u^T with <u, A u> = 0.
2. Divergence, V = 1, A + A^T > 0. Softmax blows up at the time of the closed form; two heads blow
   up where an integration of S itself does; L2 grows at most exponentially, in the end at the rate
   2 max Re eig(K^(-1) Q). Mixed: which starts blow up, and which do not, is found alike by both.
3. Variants. Softmax, L2, Sinkhorn and two heads all converge to zero like 1/t for A < 0, V > 0.
4. Ranks of limits, d = 3, 4, 5, A = -Q^T Q of rank floor(d/2), Q normal, starts G G^T. V = 1:
   exactly d - rank A, in 100 runs. V = G^T G: at most ceil(d/2), in 20. An eigenvalue
   vanishes if it falls like 1/t, to less than a half from t = 1e9 to 1e10, or below rounding: its
   size alone does not tell, since G and V may be small. For V random from t = 1e5 to 1e6: limits
   are stable from one side only, and errors of the steps move a law along them in the end.

    python validation/gaussian_figures.py [--quick] [--figure FILE.png]    # 260 s, 12 s quick

Reference: Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322, figures 1 to 3 and of appendix A.
"""

import argparse
import sys
from collections.abc import Callable

import numpy as np
from _gaussian_panels import draw
from _report import Report, successful
from scipy.integrate import solve_ivp

import meanfield as mf

AXES = np.eye(2)
Q_LINE = np.array([1.0, 2.0]) / np.sqrt(5)
Q = np.array([[0.7, 0.2], [0.1, 0.9]])
OTHER = np.array([[0.6, 0.1], [0.0, 0.8]])
V = np.array([[0.8, 0.3], [0.3, 0.6]])
INDEFINITE = np.diag([1.0, -1.0])
GROWING = np.array([[0.8, 0.6], [-0.1, 0.4]])
KEYS = np.array([[1.0, 0.2], [-0.1, 0.8]])
MIXED = np.array([[0.0, 0.3], [0.2, -0.9]]), np.array([[-1.2, 0.3], [0.4, 1.9]])
ALONG_AXES = {"V": AXES[:, None, :], "output": AXES[:, :, None]}  # heads e_h e_h^T
ROUNDING = 1e-13

Runs = dict[str, list[mf.Solution]]


def starts(count: int) -> list[np.ndarray]:
    """Covariances of trace 1 on a grid of (a - b, 2c)."""
    axis = np.linspace(-0.85, 0.85, count)
    pairs = [(x, y) for x in axis for y in axis if x * x + y * y < 0.8]
    return [np.array([[1 + x, y], [y, 1 - x]]) / 2 for x, y in pairs]


def followed(drift: mf.Attention, end: float, count: int, first: float = 1e-3) -> list[mf.Solution]:
    """Runs from all starts, saved at times spread in proportion, or towards a blow-up."""
    model, times, runs = mf.Transformer(drift), np.append(0.0, np.geomspace(first, 1, 60) * end), []
    for cov in starts(count):
        law = mf.Gaussian(np.zeros(2), cov)
        run = mf.solve(model, law, (0, end), t_eval=times)
        if run.status == "blow-up":
            near = run.stats["blow_up_time"] * (1 - np.geomspace(1, 1e-4, 60))
            run = mf.solve(model, law, (0, end), t_eval=np.append(near, end))
        runs.append(run)
    return runs


def decay(runs: list[mf.Solution]) -> float:
    """The power of t by which traces fall at the end that is farthest from -1."""
    powers = []
    for run in map(successful, runs):
        late, last = run[-8], run.final
        ratio = np.log(np.trace(last.cov) / np.trace(late.cov))
        powers.append(ratio / np.log(run.t[-1] / run.t[-8]))
    return max(powers, key=lambda power: abs(power + 1))


def check_convergence(report: Report, count: int) -> Runs:
    """To zero, a line, a plane and two lines."""
    q, p = Q_LINE, np.array([Q_LINE[1], -Q_LINE[0]])
    none = np.zeros_like(q)
    plane = mf.Attention(np.array([[q], [none]]), np.array([[-q], [none]]), **ALONG_AXES)
    runs = {
        "zero": followed(mf.Attention(Q, -Q, V), 1e5, count, 1e-7),
        "a line": followed(mf.Attention(q[None], -q[None]), 1e7, count, 1e-9),
        "a plane": followed(plane, 1e4, count, 1e-7),
        "two lines": followed(
            mf.Attention(INDEFINITE, None, np.array([[-1.0, 0.2], [-0.1, 1.0]])), 3e3, count, 1e-6
        ),
    }
    report.compare(
        *("converges to", "zero: power of t"),
        predicted=-1,
        measured=decay(runs["zero"]),
        tolerance=1e-3,
    )
    for name, distance in distances_from_limits(runs, p, q).items():
        labels = "converges to", f"{name}, farthest run"
        report.compare(*labels, predicted=0, measured=distance, tolerance=1e-6)
    return runs


def distances_from_limits(runs: Runs, p: np.ndarray, q: np.ndarray) -> dict[str, float]:
    """Of the run that is farthest: relative to the trace, but for the limit in closed form."""
    ends = {name: [successful(run).final for run in found] for name, found in runs.items()}
    first, second = (np.outer(u, u) / 2 for u in ([1, 1], [1, -1]))
    lines = [state.trace_one for state in ends["two lines"]]
    gaps = np.array([[np.abs(S - first).max(), np.abs(S - second).max()] for S in lines])
    unmet = gaps.min(axis=0).max()  # how near the nearest run is to the line that is met less
    return {
        "a line: its limit": max(
            np.abs(state.cov - mf.ClosedCovariance(run.model, run[0]).limit).max()
            for state, run in zip(ends["a line"], runs["a line"], strict=True)
        ),
        "a line": max(1 - p @ state.trace_one @ p for state in ends["a line"]),
        "a plane": max(abs(state.trace_one[0] @ q) for state in ends["a plane"]),
        "two lines: the nearest": gaps.min(axis=1).max(),
        "two lines: the other is met": unmet,
    }


def independent(rates: Callable, cov: np.ndarray, end: float, largest: float = 1e9):
    """S' = rates(S) by another program's scheme until the trace is `largest`: times and S."""

    def reached(_t, y):
        return y[0] + y[3] - largest

    reached.terminal = True
    return solve_ivp(
        lambda _t, y: rates(y.reshape(2, 2)).ravel(),
        (0, end),
        cov.ravel(),
        method="DOP853",
        rtol=1e-12,
        atol=1e-14,
        events=reached,
    )


def pole(rates: Callable, found) -> float:
    """Where tr S has its pole: t + tr S / tr S' for what grows like 1/(T - t)."""
    S = found.y[:, -1].reshape(2, 2)
    return found.t[-1] + np.trace(S) / np.trace(rates(S))


def symmetric(M: np.ndarray) -> np.ndarray:
    return M + M.T


def check_divergence(report: Report, count: int) -> Runs:
    """Blow-up of softmax and of two heads, growth of L2, and a mixed regime."""
    heads = np.array([GROWING, GROWING])
    runs = {
        "blow-up, softmax": followed(mf.Attention(GROWING, KEYS), 100.0, count, 1e-4),
        "blow-up, two heads": followed(
            mf.Attention(heads, np.array([KEYS, 0.5 * KEYS]), **ALONG_AXES), 300.0, count
        ),
        "slow divergence, L2": followed(mf.Attention(GROWING, KEYS, weights=mf.L2()), 80.0, count),
        "mixed, softmax": followed(mf.Attention(MIXED[0], None, MIXED[1]), 30.0, count),
    }
    compare_times(report, runs["blow-up, softmax"], runs["blow-up, two heads"])
    compare_rates(report, runs["slow divergence, L2"])
    compare_fates(report, runs["mixed, softmax"])
    return runs


def compare_times(report: Report, softmax: list[mf.Solution], heads: list[mf.Solution]) -> None:
    """Times of blow-up against the closed form, and against S' itself."""
    A = KEYS.T @ GROWING

    def two_heads(S):
        return sum(
            symmetric(np.outer(e, e) @ S @ (c * A) @ S) for e, c in zip(AXES, (1, 0.5), strict=True)
        )

    worst = {"softmax": 0.0, "two heads": 0.0}
    for one, two in zip(softmax, heads, strict=True):
        exact = mf.ClosedCovariance(one.model, one[0]).blow_up_time
        other = pole(two_heads, independent(two_heads, two[0].cov, 300.0))
        for name, run, time in (("softmax", one, exact), ("two heads", two, other)):
            measured = run.stats["blow_up_time"] or np.inf
            worst[name] = max(worst[name], abs(measured / time - 1))
    for name, error in worst.items():
        report.compare("blow-up times", name, predicted=0, measured=error, tolerance=1e-8)


def compare_rates(report: Report, runs: list[mf.Solution]) -> None:
    """The rate of exponential growth at the end of the first and of the last run."""
    rate = 2 * np.linalg.eigvals(np.linalg.solve(KEYS, GROWING)).real.max()
    for run in (runs[0], runs[-1]):
        measured = (
            np.log(np.trace(successful(run).final.cov) / np.trace(run[-2].cov)) / np.diff(run.t)[-1]
        )
        report.compare(
            "L2 grows at the rate",
            f"from {run[0].cov[0].round(2)}",
            predicted=rate,
            measured=measured,
            tolerance=1e-2,
            relative=True,
        )


def compare_fates(report: Report, runs: list[mf.Solution]) -> None:
    """Which runs blow up, against S' itself."""
    (A, W), differ, blown = MIXED, 0, 0
    for run in runs:
        found = independent(lambda S: symmetric(W @ S @ A @ S), run[0].cov, 30.0)
        blown += run.status == "blow-up"
        differ += (found.status == 1) != (run.status == "blow-up")
    report.compare("mixed", "starts with another fate", predicted=0, measured=differ, tolerance=0)
    both = 0 < blown < len(runs)
    report.compare(
        "mixed", f"{blown} blow up, others not", predicted=1, measured=int(both), tolerance=0
    )


def check_variants(report: Report, count: int) -> Runs:
    """The same Q, K, V under each kind of weights; two heads, one of them with other keys."""
    Qs, Vs = np.array([Q, OTHER]), V @ ALONG_AXES["output"] @ ALONG_AXES["V"]
    drifts = {
        "softmax": mf.Attention(Q, -Q, V),
        "L2": mf.Attention(Q, -Q, V, weights=mf.L2()),
        "Sinkhorn": mf.Attention(Q, -Q, V, weights=mf.Sinkhorn()),
        "two heads": mf.Attention(Qs, -Qs, Vs),
    }
    runs = {name: followed(drift, 1e5, count, 1e-7) for name, drift in drifts.items()}
    for name, found in runs.items():
        report.compare(
            "variants, power of t", name, predicted=-1, measured=decay(found), tolerance=2e-3
        )
    return runs


def rank_of_limit(d: int, identity: bool, rng) -> int:
    """How many eigenvalues do not fall any more, from one random start, under random A and V."""
    Q, G, H = rng.standard_normal((d // 2, d)), *rng.standard_normal((2, d, d))
    drift = mf.Attention(Q, -Q, None if identity else H.T @ H)
    law = mf.Gaussian(np.zeros(d), G @ G.T)
    end = 1e10 if identity else 1e6
    run = mf.solve(mf.Transformer(drift), law, (0, end), t_eval=[end / 10, end], rtol=1e-10)
    before, after = (np.linalg.eigvalsh(state.cov) for state in successful(run))
    return int(((after > before / 2) & (after > ROUNDING * after[-1])).sum())


def check_ranks(report: Report, count: int, rng) -> dict[tuple[int, bool], np.ndarray]:
    """Histograms of ranks for V = 1 (True) and V random."""
    found = {}
    for d in (3, 4, 5):
        for identity, runs in ((True, count), (False, -(-count // 5))):
            ranks = np.array([rank_of_limit(d, identity, rng) for _ in range(runs)])
            found[d, identity] = np.bincount(ranks, minlength=d + 1)
            most = -(-d // 2)
            off = (ranks != most) if identity else (ranks > most)
            what = f"V = 1: other than {most}" if identity else f"V random: above {most}"
            report.compare(
                f"ranks, d = {d}, {runs} runs", what, predicted=0, measured=off.sum(), tolerance=0
            )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer starts and random ones")
    parser.add_argument("--figure", metavar="FILE", help="where to draw the figures")
    arguments = parser.parse_args()
    report, count = Report(["what", "case"]), 4 if arguments.quick else 6
    converging = check_convergence(report, count)
    diverging = check_divergence(report, count)
    variants = check_variants(report, count)
    ranks = check_ranks(report, 3 if arguments.quick else 100, np.random.default_rng(4))
    if arguments.figure:
        draw(converging, diverging, variants, ranks, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
