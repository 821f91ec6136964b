r"""
A smooth density ends in two opposite clusters, and not in one
==============================================================

The density :math:`1 + \cos\theta/2 + \cos(2\theta)/5` is symmetric and positive, and its mean
points to :math:`\theta = 0`. Under USA with :math:`\beta = 1` all mass gathers there; for larger
:math:`\beta` a share :math:`1 - \alpha` is trapped on the opposite side. Densities therefore do not
always end in one cluster, although tokens do from almost every start. The two clusters would meet
only after a perturbation that breaks the symmetry; it grows like :math:`e^{e^{-\beta} t}`. The
density is represented by 4000 symmetric tokens, its quantiles. An independent program with 500
points gives the shares to 0.002.

:Source: Survey, after Theorem 5: several limit points for large beta.
:Run time: 5 s, ``python examples/opposite_clusters.py``
:Look at: the boundary between the two basins, and its shift as beta grows.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

SHARES = {1.0: 1.0, 2.0: 0.791, 3.0: 0.734, 4.0: 0.699, 5.0: 0.666}  # beta: alpha
SHOWN = (1.0, 2.0, 4.0)
TOKENS, END, TOLERANCE = 4000, 20.0, 0.002


def quantiles() -> mf.Tokens:
    """Tokens that are symmetric, each in the middle of its share of the mass."""
    theta = np.linspace(-np.pi, np.pi, 40_001)
    below = (theta + np.pi + 0.5 * np.sin(theta) + 0.1 * np.sin(2 * theta)) / (2 * np.pi)
    half = np.interp((np.arange(TOKENS // 2) + 0.5) / TOKENS + 0.5, below, theta)
    return mf.Tokens.on_circle(np.concatenate([-half[::-1], half]))


def followed(beta: float) -> mf.Solution:
    """The flow, at times that are dense at the start."""
    t = np.concatenate([[0.0], np.geomspace(0.02, END, 120)])
    return mf.solve(mf.Transformer(mf.USA(beta)), quantiles(), (0, END), t_eval=t, rtol=1e-8)


def share(run: mf.Solution) -> float:
    """The mass in the half of theta = 0 at the end."""
    return float((run.final.x[:, 0] > 0).mean())


def run(out: Path) -> list[Row]:
    """Solve for all beta, draw opposite_clusters.png, compare."""
    runs = {beta: followed(beta) for beta in SHARES}
    draw(runs).savefig(out / "opposite_clusters.png")
    return [
        Row(f"beta = {beta:g}: share alpha at theta = 0", share(runs[beta]), alpha, TOLERANCE)
        for beta, alpha in SHARES.items()
    ]


def draw(runs: dict[float, mf.Solution]):
    """Angles of tokens over time, in the colour of the cluster in which they end."""
    with theme.style():
        page = theme.figure(width=7.4, height=2.7)
        *panels, last = page.subplots(1, 4, width_ratios=[1, 1, 1, 0.9])
        for ax, beta in zip(panels, SHOWN, strict=True):
            lines(ax, runs[beta])
            ax.set_title(rf"$\beta = {beta:g}$")
        panels[0].set_ylabel(r"angle $\theta$")
        last.plot(list(SHARES), [share(run) for run in runs.values()], "o-", color=theme.PALETTE[0])
        last.set(xlabel=r"$\beta$", title=r"share $\alpha$ at $\theta = 0$", ylim=(0.5, 1.03))
    return page


def lines(ax, run: mf.Solution) -> None:
    """Sixty tokens, that is 1/60 of the mass each."""
    chosen = (np.arange(60) * TOKENS + TOKENS // 2) // 60
    angles = np.array([np.arctan2(*state.x[chosen].T[::-1]) for state in run])
    angles = np.unwrap(angles, axis=0)
    for i, near in enumerate(np.cos(angles[-1]) > 0):
        ax.plot(run.t, angles[:, i], color=theme.PALETTE[0 if near else 1], lw=0.8)
    ax.set(xlabel=r"time $t$", xlim=(0.02, END), xscale="log", ylim=(-3.3, 3.3))
    ax.set_yticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])


if __name__ == "__main__":
    run_alone(__doc__, run)
