"""The figures of `gaussian_figures`: cones, discs, traces and histograms of ranks on one page."""

import numpy as np

import meanfield as mf
from meanfield.plotting import theme
from meanfield.plotting.cone import draw_cone, draw_disc

__all__ = ["draw"]


def draw(converging, diverging, variants, ranks, path: str) -> None:
    """Four rows: convergence, divergence, variants, and ranks beside traces over time."""
    with theme.style():
        page = theme.figure(width=12, height=12.4)
        rows = page.subfigures(4, 1, height_ratios=[1, 1, 1, 0.9])
        for row, found in ((rows[0], converging), (rows[2], variants)):
            for i, (name, runs) in enumerate(found.items()):
                ax = row.add_subplot(1, 4, i + 1, projection="3d")
                cones(ax, runs)
                ax.set_title(f"to {name}" if row is rows[0] else name)
        for ax, (name, runs) in zip(rows[1].subplots(1, 4), diverging.items(), strict=True):
            discs(ax, runs)
            ax.set_title(name)
        panels = rows[3].subplots(1, 4)
        for ax, d in zip(panels, (3, 4, 5), strict=False):
            bars(ax, d, ranks)
        traces(panels[3], diverging)
        page.savefig(path, dpi=150)


def cones(ax, runs: list[mf.Solution]) -> None:
    """All paths in one cone, in colours that tell them apart."""
    for run, colour in zip(runs, theme.ordered_colours(len(runs)), strict=True):
        draw_cone(ax, run, colour)


def discs(ax, runs: list[mf.Solution]) -> None:
    """All paths of trace one: those that blow up, or diverge, in purple, others in yellow."""
    for run in runs:
        grows = np.trace(run.final.cov) > 10 * np.trace(run[0].cov)
        draw_disc(ax, run, "#5B2A86" if grows else "#C9A000")


def bars(ax, d: int, ranks) -> None:
    """Histograms for V = 1 and V random."""
    for shift, identity, name in ((-0.2, True, "$V = 1$"), (0.2, False, "$V$ random")):
        counts = ranks[d, identity]
        ax.bar(np.arange(len(counts)) + shift, counts, 0.38, label=name)
    ax.set(title=f"rank of the limit, $d = {d}$", xlabel="rank", ylabel="runs")
    ax.set_xticks(np.arange(d + 1))
    ax.legend(fontsize=8)


def traces(ax, diverging) -> None:
    """Traces over time of one start: a pole against an exponential."""
    for name in ("blow-up, softmax", "slow divergence, L2"):
        run = diverging[name][0]
        ax.plot(run.t, [np.trace(state.cov) for state in run], label=name.split(", ")[1])
    ax.set(title="trace of the covariance", xlabel="time $t$", xlim=(0, 5), ylim=(0.5, 1e4))
    ax.set_yscale("log")
    ax.legend(fontsize=8)
