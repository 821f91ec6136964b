"""Claim: without normalisation rescaled tokens gather on polytopes, hyperplanes or at the origin.

Tokens of R^d under softmax attention, x_i' = V sum_j w_ij x_j, w_ij = softmax_j <Q x_i, K x_j>, and
z_i = e^{-tV} x_i (`mf.rescaled`).

1. V = 1, Q = K = 1, n = 40, d = 2 and 3: the convex hull of the z_i never grows, so that each is in
   the hull of those before (1e-9); at t = 8 every z_i is within 1e-3 of the boundary of the hull
   or of the origin, and the tokens that are no vertices attend to vertices: weights of vertices sum
   to 1 within 1e-6.
2. V symmetric with a simple top eigenvalue lambda > 0 and <Q phi, K phi> > 0: the coordinates
   <phi, z_i> have at most three limits, the least, 0 and the largest: 1e-3 at t = 12.
3. V = -1, Q = K = 1: all x_i tend to 0, but slowly, like t^{-1/2}: with the mean gone, x' is
   -C x to leading order, C the covariance, so that 2 t C tends to 1: its eigenvalues at t = 1e4 to
   1e-2.
4. d = 1, V = 1: the matrix of weights becomes Boolean: at t = 12 all rows but one have an entry of
   at least 1 - 1e-6, in the columns of the least and of the largest token.

    python validation/polytopes.py    # 5 s

Exit code 1 on failure.

References: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2305.05465, Theorems 3.1, 4.1,
and 2.1.
"""

import sys

import numpy as np
from _report import Report, successful
from scipy.spatial import ConvexHull

import meanfield as mf

TIMES = np.linspace(0, 8, 9)


def solved(V: np.ndarray, x: np.ndarray, times: np.ndarray = TIMES) -> mf.Solution:
    one = np.eye(x.shape[1])
    model, start = mf.Transformer(mf.Attention(one, one, V, 1.0)), mf.Tokens(x, on_sphere=False)
    return successful(mf.solve(model, start, (0, times[-1]), t_eval=times, rtol=1e-10))


def weights(x: np.ndarray) -> np.ndarray:
    """Rows of softmax <x_i, x_j>."""
    logits = x @ x.T
    w = np.exp(logits - logits.max(axis=1, keepdims=True))
    return w / w.sum(axis=1, keepdims=True)


def check_polytope(report: Report, d: int) -> None:
    x = np.random.default_rng(d).uniform(-1, 1, (40, d))
    run = solved(np.eye(d), x)
    z = [np.exp(-t) * state.x for t, state in zip(run.t, run, strict=True)]
    outside = max(
        (hull.equations[:, :-1] @ after.T + hull.equations[:, -1:]).max()
        for hull, after in zip(map(ConvexHull, z[:-1]), z[1:], strict=True)
    )
    report.compare("the hull never grows", f"V = 1, {d=}", predicted=1,
                   measured=int(outside <= 1e-9), tolerance=0)  # fmt: skip
    hull, end = ConvexHull(z[-1]), z[-1]
    depth = -(hull.equations[:, :-1] @ end.T + hull.equations[:, -1:]).max(axis=0)
    left = np.minimum(depth, np.linalg.norm(end, axis=1)).max()
    report.compare("on the boundary, or 0", f"V = 1, {d=}", predicted=0, measured=left,
                   tolerance=1e-3)  # fmt: skip
    w = weights(run.final.x)
    report.compare("weights of vertices", f"V = 1, {d=}", predicted=1,
                   measured=w[:, hull.vertices].sum(axis=1).min(), tolerance=1e-6)  # fmt: skip
    print(f"{d=}: {len(hull.vertices)} of 40 tokens are vertices of the hull")


def check_hyperplanes(report: Report) -> None:
    V = np.diag([1.0, 0.3, -0.2])
    x = np.random.default_rng(5).uniform(-1, 1, (40, 3))
    run = solved(V, x, np.array([0.0, 12.0]))
    along = np.exp(-run.t[-1]) * run.final.x[:, 0]
    limits = np.array([along.min(), 0, along.max()])
    off = np.abs(along[:, None] - limits).min(axis=1).max()
    report.compare("three hyperplanes", "V symmetric, d = 3", predicted=0, measured=off,
                   tolerance=1e-3)  # fmt: skip


def check_origin(report: Report) -> None:
    x = np.random.default_rng(6).uniform(-1, 1, (40, 2))
    run = solved(-np.eye(2), x, np.array([0.0, 1e4]))
    for value in np.linalg.eigvalsh(np.cov(run.final.x.T, bias=True)):
        report.compare("2 t C", "V = -1, t = 1e4", predicted=1, measured=2e4 * value,
                       tolerance=1e-2)  # fmt: skip


def check_boolean(report: Report) -> None:
    x = np.random.default_rng(7).uniform(-1, 1, (40, 1))
    run = solved(np.eye(1), x, np.array([0.0, 12.0]))
    w = weights(run.final.x)
    ends = [int(np.argmin(run.final.x)), int(np.argmax(run.final.x))]
    sharp = w[:, ends].max(axis=1) >= 1 - 1e-6
    report.compare("Boolean rows, but one", "d = 1", predicted=1,
                   measured=int(sharp.sum() >= 39), tolerance=0)  # fmt: skip


def main() -> int:
    report = Report(["claim", "case"])
    for d in (2, 3):
        check_polytope(report, d)
    check_hyperplanes(report)
    check_origin(report)
    check_boolean(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
