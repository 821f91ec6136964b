"""Claim: covariances of Gaussians under attention behave as in the figures of Castin et al.

From the paper's program we take the seeds 35, 36, 32, 33 (for ranks 40, 26, 41), the recipes of Q,
K, V and their scalings, and the grid of 10 x 10 covariances of trace 1 with (a - b, 2c) in
[-1/2, 1/2]^2. What differs: its grids in [-1, 1]^2 of 20, 30 and 40 a side are 10 x 10 here, and
12 x 12 for mixed fates; steps have error control, where the paper projects steps of Euler; and
predictions, and Sinkhorn weights with keys of rank one, are added.

1. Rank one, K = -Q = -q, V = 1. Softmax, L2 and Sinkhorn weights follow one path, at other times,
   to the line of p p^T, p orthogonal to q, at p p^T / <p, S_0^-1 p>. Two heads, of which the
   second sees nothing, keep b and go to the plane <e_1, S q> = 0, at [[r^2 s, -r s], [-r s, b]],
   r = q_2 / q_1, s = b - (S_0 q)_2^2 / <q, S_0 q>.
2. To zero, K = -Q, V = G G^T: S = M / (t + t_0), power -1 up to t_0 / t; 1e3 is allowed for
   t_0, which two heads have 390 of. L2 and Sinkhorn weights are softmax's near 0, with A sqrt(8)
   and sqrt(2) times as large.
3. Two lines, A indefinite: multiples of u u^T, <u, A u> = 0. Each is met, and by softmax at the
   limit of an independent integration (`_gaussian_directions`).
4. Growth, V = 1, A + A^T > 0. Softmax blows up at the time of the closed form, two heads at that
   of the independent integration. L2 does not blow up: it follows S' integrated by another program,
   and finally grows at the rate 2 max Re eig(K^-1 Q), from all starts by t = 239. Sinkhorn does
   not blow up either: its plan turns by an angle, tan theta = (A_12 - A_21) sqrt(det S) / tr AS,
   and S grows at the rate 2 cos theta once its direction is at rest, up to a term of the inverse of
   its size: 2e-5 at t = 12, rounding at t = 23.
5. Mixed, A indefinite: softmax blows up or converges to a line, each start as found independently;
   under L2 weights those that blow up grow, turn and come to the same line.
6. Ranks of limits, d = 3, 4, 5 (`_gaussian_ranks`, with the rule). V = 1: exactly d - rank A =
   ceil(d/2). V random: S Q^T = 0 by Lyapunov's equation, hence at most ceil(d/2).

Tolerances: 1e-6 for laws to which 100 steps of rtol = 1e-8 lead; runs that stop at rest are at a
speed of 1e-11, of at least 1e-4 times the distance. 1e-8 for times of blow-up, as asked.

    python validation/gaussian_figures.py [--quick] [--figure FILE.png]    # 500 s, 13 s quick

Reference: Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322, figures 1 to 3 and of appendix A.
"""

import sys

import numpy as np
from _gaussian_cases import KINDS, grid, rank_one, to_zero, two_lines
from _gaussian_directions import fates, softmax
from _gaussian_growth import check_growing, check_mixed
from _gaussian_panels import draw
from _gaussian_ranks import check_ranks
from _gaussian_runs import EARLY, LAW, Runs, distance, followed, gaps, lines_of, settled
from _report import Report, command_line, successful


def check_rank_one(report: Report, count: int) -> Runs:
    """The same limits under three kinds of weights, others of two heads."""
    matrices, starts = rank_one(), grid(count, 0.5)
    q = matrices[0][0]
    p, r = np.array([-q[1], q[0]]), q[1] / q[0]
    late = np.append(EARLY, 1e8)
    runs = {
        kind: [successful(followed(kind, matrices, S, late)) for S in starts] for kind in KINDS[:3]
    }
    runs["two heads"] = settled("two heads", matrices, starts)
    on_the_line = [np.outer(p, p) / (p @ np.linalg.solve(S, p)) for S in starts]
    free = [S[1, 1] - (S @ q)[1] ** 2 / (q @ S @ q) for S in starts]
    in_the_plane = [
        np.array([[r * r * s, -r * s], [-r * s, S[1, 1]]])
        for s, S in zip(free, starts, strict=True)
    ]
    for kind, found in runs.items():
        plane = kind == "two heads"
        far = distance(found, in_the_plane if plane else on_the_line)
        what = f"{kind}: limits {'in the plane' if plane else 'on the line'}"
        report.compare("rank one", what, predicted=0, measured=far, tolerance=LAW)
    return runs


def check_to_zero(report: Report, count: int) -> Runs:
    """The power of t, and how traces of the variants compare."""
    matrices, starts, end = to_zero(), grid(count, 0.5), 1e8
    late = np.append(EARLY, [end / 10, end])
    runs = {kind: [followed(kind, matrices, S, late) for S in starts] for kind in KINDS[::3]}
    few = starts[:: max(1, len(starts) // 8)]
    runs |= {kind: [followed(kind, matrices, S, late[-2:]) for S in few] for kind in KINDS[1:3]}
    traces = {
        kind: np.array([[np.trace(state.cov) for state in successful(run)[-2:]] for run in found])
        for kind, found in runs.items()
    }
    for kind in KINDS:
        powers = np.log10(traces[kind][:, 1] / traces[kind][:, 0])
        worst = powers[np.abs(powers + 1).argmax()]
        allowed = 1e3 / (end / 10)
        report.compare(
            "to zero", f"{kind}: power of t", predicted=-1, measured=worst, tolerance=allowed
        )
    for kind, factor in (("L2", 8), ("Sinkhorn", 2)):
        ratio = traces["softmax"][0, 1] / traces[kind][0, 1]
        report.compare(
            *("to zero", f"trace: softmax over {kind}"),
            predicted=np.sqrt(factor),
            measured=ratio,
            tolerance=1e3 / end,
            relative=True,
        )
    return runs


def check_two_lines(report: Report, count: int) -> Runs:
    """Every run is on a line, on every line there is a run."""
    matrices, starts = two_lines(), grid(count, 1.0)
    runs = {kind: settled(kind, matrices, starts) for kind in KINDS[:2]}
    for kind, found in runs.items():
        off = gaps(found, lines_of(*matrices[:2]))
        for what, far in (
            (f"{kind}: off the lines", off.min(axis=1).max()),
            (f"{kind}: off the line that is met less", off.min(axis=0).max()),
        ):
            report.compare("two lines", what, predicted=0, measured=far, tolerance=LAW)
    limits = fates(softmax(*matrices), starts, 300.0).limits
    far = distance(runs["softmax"], limits)
    report.compare("two lines", "softmax: limits", predicted=0, measured=far, tolerance=LAW)
    return runs


def main() -> int:
    arguments = command_line(__doc__, "fewer starts and random ones", "where to draw the figures")
    report, count = Report(["figure", "case"]), 2 if arguments.quick else 10
    found = {
        "rank one": check_rank_one(report, count),
        "to zero": check_to_zero(report, count),
        "two lines": check_two_lines(report, max(count, 4)),
        "growing": check_growing(report, max(count, 3)),
        "mixed": check_mixed(report, 7 if arguments.quick else 12),
    }
    ranks = check_ranks(report, (1, 1) if arguments.quick else (100, 100))
    if arguments.figure:
        draw(found, ranks, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
