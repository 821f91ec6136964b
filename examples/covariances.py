r"""
Covariances of Gaussians under attention end at matrices of rank one
====================================================================

A normal law in the plane stays normal under softmax attention, and its covariance S follows
:math:`S' = V S A S + (V S A S)^T`, :math:`A = K^T Q`. Covariances of trace one form a disc, with
the coordinates :math:`(a - b, 2c)` for the diagonal a, b and the off-diagonal entry c; its boundary
are the matrices of rank one. For :math:`A = -q q^T` and V = 1 every S tends to
:math:`p p^T/\langle p, S_0^{-1} p\rangle` with p orthogonal to q. For an indefinite A there are two
possible limits of trace one, :math:`u u^T` with :math:`\langle u, A u\rangle = 0`. Measured: the
limits from all starts, and the number of starts for each.

:Source: Castin, Ablin, Carrillo and Peyré, arXiv:2501.18322, figure 1, with their seeds.
:Run time: 8 s, ``python examples/covariances.py``
:Look at: the paths, which end on the circle: in one point on the left, in two on the right.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

END = 1e4
TIMES = np.concatenate([[0.0], np.geomspace(1e-2, END, 30)])


def starts() -> list[np.ndarray]:
    """Covariances of trace 1: the centre of the disc, and eight around it."""
    around = 0.7 * np.exp(2j * np.pi * np.arange(8) / 8)
    return [np.array([[1 + z.real, z.imag], [z.imag, 1 - z.real]]) / 2 for z in (0j, *around)]


def rank_one() -> tuple[mf.Attention, np.ndarray]:
    """A = -q q^T of their seed 36, and q."""
    q = np.random.RandomState(36).randn(1, 2)
    q /= np.linalg.norm(q)
    return mf.Attention(q, -q, beta=1 / np.sqrt(2)), q[0]


def two_lines() -> mf.Attention:
    """The first normal Q, K of seed 36 with A + A^T indefinite, and V of seed 32."""
    rng = np.random.RandomState(36)
    while True:
        Q, K = rng.randn(2, 2), rng.randn(2, 2)
        low, high = np.linalg.eigvalsh(K.T @ Q + Q.T @ K)
        if low * high < 0:
            V = np.random.RandomState(32).randn(2, 2)
            return mf.Attention(Q, K, V, beta=1 / np.sqrt(2))


def paths(drift: mf.Attention, times: np.ndarray) -> list[np.ndarray]:
    """Covariances (times, 2, 2) from all starts."""
    found = []
    for cov in starts():
        law = mf.Gaussian(np.zeros(2), cov)
        run = mf.solve(mf.Transformer(drift), law, (0, times[-1]), t_eval=times, rtol=1e-7)
        found.append(np.array([state.cov for state in run]))
    return found


def null_lines(drift: mf.Attention) -> np.ndarray:
    """The two unit vectors u with <u, A u> = 0, as rows."""
    A = np.asarray(drift.K).T @ np.asarray(drift.Q)
    a, b, c = A[0, 0], A[0, 1] + A[1, 0], A[1, 1]
    slopes = np.roots([c, b, a])
    u = np.stack([np.ones(2), slopes.real], axis=1)
    return u / np.linalg.norm(u, axis=1, keepdims=True)


def run(out: Path) -> list[Row]:
    """Solve from all starts, draw covariances.png, compare."""
    one, q = rank_one()
    p = np.array([-q[1], q[0]])
    to_one, two = paths(one, TIMES), two_lines()
    to_two, lines = paths(two, TIMES), null_lines(two)
    draw(to_one, to_two, p, lines).savefig(out / "covariances.png")
    limits = [np.outer(p, p) / (p @ np.linalg.solve(S, p)) for S in starts()]
    far = max(np.abs(path[-1] - end).max() for path, end in zip(to_one, limits, strict=True))
    ends = np.array([path[-1] / np.trace(path[-1]) for path in to_two])
    off = np.array([np.abs(ends - np.outer(u, u)).max(axis=(1, 2)) for u in lines])
    reached = np.bincount(off.argmin(axis=0), minlength=2)
    return [
        Row("rank one: largest distance from the limit", float(far), 0.0, 3e-4),
        Row("indefinite: largest distance from a line", float(off.min(axis=0).max()), 0.0, 1e-4),
        *(Row(f"indefinite: starts that end on line {i + 1}", int(k), "", remark="shown")
          for i, k in enumerate(reached)),
    ]  # fmt: skip


def disc(covs: np.ndarray) -> np.ndarray:
    """(a - b, 2c) of covariances (..., 2, 2) divided by their trace."""
    trace = np.trace(covs, axis1=-2, axis2=-1)
    places = [covs[..., 0, 0] - covs[..., 1, 1], 2 * covs[..., 0, 1]]
    return np.stack(places, axis=-1) / trace[..., None]


def draw(to_one, to_two, p: np.ndarray, lines: np.ndarray):
    """Paths in the disc."""
    around = np.linspace(0, 2 * np.pi, 361)
    with theme.style():
        page = theme.figure(width=6.4, height=3.3)
        cases = [("$A = -qq^T$", to_one, [p]), ("$A$ indefinite", to_two, lines)]
        for ax, (title, found, ends) in zip(page.subplots(1, 2), cases, strict=True):
            ax.plot(np.cos(around), np.sin(around), color=theme.INK, lw=0.9)
            for path in found:
                x, y = disc(path).T
                ax.plot(x, y, color=theme.PALETTE[0], lw=0.7)
                ax.plot(x[0], y[0], "o", color=theme.PALETTE[0], markersize=2)
            for u in ends:
                ax.plot(*disc(np.outer(u, u)), "o", color=theme.PALETTE[1], markersize=7, zorder=4)
            ax.set(title=title, xlabel="$a - b$", ylabel="$2c$", aspect="equal")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
