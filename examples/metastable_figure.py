"""The figure of metastable.py: growth of the modes, the density in time, the clusters."""

from collections.abc import Callable

import numpy as np
from matplotlib.lines import Line2D

import meanfield as mf
from meanfield.plotting import theme

__all__ = ["figure"]

MODES = np.arange(1, 7)
ANGLES = np.linspace(0, 2 * np.pi, 721)
TICKS = {"ticks": [0, np.pi, 2 * np.pi], "labels": ["0", r"$\pi$", r"$2\pi$"]}


def figure(
    runs: dict[int, mf.Solution],
    growth: Callable[[float], np.ndarray],
    clustered: Callable[[mf.Solution], int],
    predicted: Callable[[mf.Density, int], np.ndarray],
) -> theme.PaperFigure:
    """A row for each beta: modes with their predicted growth, space-time map, clusters."""
    with theme.style():
        page = theme.figure(width=7.4, height=2.5 * len(runs))
        rows = page.subplots(len(runs), 3, squeeze=False)
        for (modes, spacetime, profile), (beta, run) in zip(rows, runs.items(), strict=True):
            rates = growth(beta)
            k = int(rates.argmax()) + 1
            angles = predicted(run[0], k)
            _modes(modes, run, rates, k)
            modes.set_title(rf"$\beta = {beta}$: mode {k} is the fastest", loc="left")
            _spacetime(page, spacetime, run, clustered(run), angles)
            spacetime.set_title("orange: predicted; white: formed", loc="left")
            _profile(profile, run, clustered(run), angles)
            profile.set_title("density at three times", loc="left", pad=16)
        for ax in rows[-1]:
            ax.set_xlabel(r"time $t$" if ax is not rows[-1][-1] else r"angle $\theta$")
    return page


def _modes(ax, run: mf.Solution, rates: np.ndarray, fastest: int) -> None:
    sizes = np.abs([[state.moment(k) for k in MODES] for state in run])
    for k, size in zip(MODES, sizes.T, strict=True):
        main = k == fastest
        colour = theme.PALETTE[1] if main else "0.65"
        ax.semilogy(run.t, size, color=colour, lw=1.8 if main else 0.9, zorder=2 + main)
        line = size[0] * np.exp(rates[k - 1] * run.t)
        ax.semilogy(run.t, line, color=theme.INK, lw=0.6, dashes=(4, 3), zorder=4)
    handles = [
        Line2D([], [], color=theme.PALETTE[1], lw=1.8, label=f"mode {fastest}"),
        Line2D([], [], color="0.65", lw=0.9, label="other modes"),
        Line2D([], [], color=theme.INK, lw=0.6, dashes=(4, 3), label="linear theory"),
    ]
    ax.legend(handles=handles, fontsize=7.5, loc="upper left", borderaxespad=0)
    ax.set(ylabel=r"$|m_k|$, $k = 1, \dots, 6$", xlim=(0, run.t[-1]), ylim=(1e-10, 30))


def _spacetime(page, ax, run: mf.Solution, first: int, predicted: np.ndarray) -> None:
    start = int(0.75 * first)
    density = np.stack([run[i].at(mf.Circle.embed(ANGLES)) for i in range(start, len(run))])
    top = float(density[first - start].max())
    mesh = ax.pcolormesh(
        run.t[start:], ANGLES, density.T, vmin=0, vmax=top, shading="gouraud", rasterized=True
    )
    bar = page.colorbar(mesh, ax=ax, extend="max", pad=0.02)
    bar.set_label("density")
    ax.axvline(run.t[first], color="white", lw=0.8, dashes=(4, 3))
    for angle in predicted:
        ax.axhline(angle, color=theme.PALETTE[1], lw=0.9, dashes=(4, 3))
    ax.set(ylabel=r"angle $\theta$", ylim=(0, 2 * np.pi))
    ax.set_yticks(**TICKS)


def _profile(ax, run: mf.Solution, first: int, predicted: np.ndarray) -> None:
    for angle in predicted:
        ax.axvline(angle, color=theme.PALETTE[1], lw=0.9, dashes=(4, 3), zorder=0)
    chosen = [int(0.93 * first), int(0.98 * first), first]
    for colour, i in zip(theme.ordered_colours(3)[::-1], chosen, strict=True):
        density = run[i].at(mf.Circle.embed(ANGLES))
        ax.plot(ANGLES, density, color=colour, label=rf"$t = {run.t[i]:.3f}$")
    ax.set(ylabel="density", xlim=(0, 2 * np.pi), ylim=(0, None))
    ax.set_xticks(**TICKS)
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.98), "borderaxespad": 0}
    ax.legend(ncols=3, fontsize=7.5, handlelength=0.8, columnspacing=0.8, **place)
