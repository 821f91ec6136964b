"""The page of `gaussian_figures`: cones, discs, traces and histograms of ranks."""

import matplotlib
import numpy as np
from _gaussian_cases import KINDS, rank_one, two_lines
from _gaussian_ranks import DIMENSIONS, Ranks
from _gaussian_runs import lines_of

from meanfield.plotting import cone_points, theme

__all__ = ["draw"]

TURN = np.linspace(0, 2 * np.pi, 121)
POLE, LIMIT = theme.PALETTE[1], theme.PALETTE[0]
COLOURS = matplotlib.colormaps[theme.ORDER_MAP]
SHADES = matplotlib.colors.Normalize(-1.2, 1.2)  # of a - b at the start; light ends are left out


def draw(found, ranks: dict[tuple[int, bool], Ranks], path: str) -> None:
    """Five rows of four panels."""
    with theme.style():
        page = theme.figure(width=11.5, height=14)
        rows = page.subfigures(5, 1, height_ratios=[0.96, 0.96, 1, 1, 0.85])
        to_a_line_or_plane(rows[0], found["rank one"])
        to_zero_or_two_lines(rows[1], found["to zero"], found["two lines"])
        growth(rows[2], found["growing"])
        mixed(rows[3], found["mixed"], found["growing"])
        histograms(rows[4], ranks)
        page.savefig(path, dpi=150)


def shade(run):
    first = run[0].cov
    return COLOURS(SHADES(first[0, 0] - first[1, 1]))


def to_a_line_or_plane(row, runs) -> None:
    """One path and one limit under three kinds of weights, a plane under two heads."""
    row.suptitle("Keys of rank one, $K = -Q$ (seed 36): a line, or a plane")
    q = rank_one()[0][0]
    p = np.array([-q[1], q[0]])
    for i, kind in enumerate(KINDS):
        ax = row.add_subplot(1, 4, i + 1, projection="3d")
        cone(ax, runs[kind], 1.0)
        if kind == "two heads":
            plane(ax, q)
        else:
            line(ax, np.outer(p, p), 1.0)
        ax.set_title(f"{kind}: {'a plane' if kind == 'two heads' else 'a line'}", y=0.97)
    name_colours(row)


def to_zero_or_two_lines(row, zero, lines) -> None:
    """Two kinds of weights each."""
    row.suptitle("$K = -Q$, $V > 0$ (seed 35): zero. $A$ indefinite (seeds 36, 32): two lines")
    panels = [("to zero", kind, zero[kind]) for kind in ("softmax", "two heads")]
    panels += [("two lines", kind, lines[kind]) for kind in ("softmax", "L2")]
    for i, (name, kind, runs) in enumerate(panels):
        ax = row.add_subplot(1, 4, i + 1, projection="3d")
        height = max(cone_points(run)[:, 2].max() for run in runs)
        cone(ax, runs, height)
        if name == "two lines":
            for limit in lines_of(*two_lines()[:2]):
                line(ax, limit, height)
        ax.set_title(f"{kind}: {name}", y=0.97)
    name_colours(row)


def name_colours(row) -> None:
    bar = row.colorbar(
        matplotlib.cm.ScalarMappable(SHADES, COLOURS), ax=row.axes, shrink=0.6, aspect=30, pad=0.04
    )
    bar.ax.set_ylim(-1, 1)
    bar.set_label("$a - b$ at the start")


def cone(ax, runs, height: float) -> None:
    """All paths, in the colour of a - b at the start, with a dot at the end."""
    ax.computed_zorder = False  # limits are drawn before paths, and paths before their ends
    size = 1.04 * height
    rim = size * np.array([np.cos(TURN), np.sin(TURN)])
    levels = np.array([0.0, 1.0])[:, None]
    ax.plot_surface(
        levels * rim[0],
        levels * rim[1],
        levels * size * np.ones_like(TURN),
        color="0.5",
        alpha=0.08,
        linewidth=0,
    )
    ax.plot(*rim, size, color=theme.FAINT, linewidth=0.6)
    for run in runs:
        points = cone_points(run)
        ax.plot(*points.T, color=shade(run), linewidth=0.7, alpha=0.8, zorder=2)
        ax.plot(
            *points[-1][:, None],
            "o",
            color=shade(run),
            markersize=2.2,
            markeredgecolor="black",
            markeredgewidth=0.3,
            zorder=3,
        )
    ax.set(xlabel="$a - b$", ylabel="$2c$", zlabel="$a + b$")
    ax.set_box_aspect((1, 1, 0.95), zoom=1.04)
    ax.view_init(elev=16, azim=-60)
    ax.locator_params(nbins=4)
    ax.tick_params(labelsize=7, pad=-2)
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.labelpad = -7


def line(ax, direction: np.ndarray, height: float) -> None:
    """Multiples of u u^T, up to the trace `height`."""
    a, b, c = direction[0, 0], direction[1, 1], direction[0, 1]
    end = height * np.array([a - b, 2 * c, a + b]) / (a + b)
    ax.plot(*np.stack([np.zeros(3), end]).T, color="black", linewidth=1.6, zorder=1)


def plane(ax, q: np.ndarray) -> None:
    """<e_1, S q> = 0 within the cone: a q_1 + c q_2 = 0."""
    r = q[1] / q[0]
    share, height = np.meshgrid(np.linspace(0, 1, 30), np.linspace(0, 1.04, 30))
    b = height / (1 + share * r * r)  # a = share r^2 b, and the edges of the cone are at 0 and 1
    a, c = share * r * r * b, -share * r * b
    x, y, z = a - b, 2 * c, a + b
    ax.plot_surface(x, y, z, color="black", alpha=0.2, linewidth=0, zorder=1)


def disc(ax, runs, colour_of) -> None:
    """Paths of covariances of trace one, from rings to dots."""
    ax.plot(np.cos(TURN), np.sin(TURN), color=theme.FAINT, linewidth=0.7)
    for run in runs:
        x, y, _ = cone_points(run, trace_one=True).T
        ax.plot(x, y, color=colour_of(run), linewidth=0.9, alpha=0.85)
        ax.plot(x[:1], y[:1], "o", color=colour_of(run), markersize=2.5, markerfacecolor="none")
        ax.plot(x[-1:], y[-1:], "o", color=colour_of(run), markersize=3)
    ax.set(xlabel="$(a - b)/(a + b)$", ylabel="$2c/(a + b)$", aspect="equal")
    ax.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])


def growth(row, runs) -> None:
    """The same starts under four kinds of weights."""
    row.suptitle("$V = 1$, $A + A^T > 0$ (seed 33): directions of laws that grow")
    for ax, kind in zip(row.subplots(1, 4, sharey=True), KINDS, strict=True):
        disc(ax, runs[kind], shade)
        pole = kind in ("softmax", "two heads")
        ax.set_title(f"{kind}: {'blow-up' if pole else 'no blow-up'}")
        ax.label_outer()


def mixed(row, runs, growing) -> None:
    """Fates under softmax and L2 weights, and traces over time."""
    row.suptitle("$A$ indefinite (seeds 36, 35): fates depend on the start. Traces over time")
    axes = row.subplots(1, 4)
    poles = {id(two) for one, two in zip(*runs.values(), strict=True) if one.status == "blow-up"}
    poles |= {id(run) for run in runs["softmax"] if run.status == "blow-up"}
    for ax, kind in zip(axes, ("softmax", "L2"), strict=False):
        disc(ax, runs[kind], lambda run: POLE if id(run) in poles else LIMIT)
        pole = kind == "softmax"
        ax.set_title("softmax: blow-up (orange) or a line" if pole else "L2: all to the line")
    axes[1].label_outer()
    round_one = max(range(len(growing["L2"])), key=lambda i: np.linalg.det(growing["L2"][i][0].cov))
    traces(axes[2], {kind: growing[kind][round_one] for kind in KINDS}, "seed 33, one start")
    axes[2].set(xlim=(0, 12), ylim=(0.5, 1e6))
    pole = next(i for i, run in enumerate(runs["softmax"]) if run.status == "blow-up")
    traces(axes[3], {kind: found[pole] for kind, found in runs.items()}, "mixed, one start")
    axes[3].set(xlim=(0, 20), ylim=(0.5, 1e6))


def traces(ax, runs, title: str) -> None:
    """Traces over time, with a dotted line at a blow-up."""
    for kind, run in runs.items():
        saved = [(t, np.trace(state.cov)) for t, state in zip(run.t, run, strict=True)]
        colour = theme.PALETTE[KINDS.index(kind)]
        ax.plot(*np.transpose(saved), color=colour, label=kind)
        if run.status == "blow-up":
            ax.axvline(run.stats["blow_up_time"], color=colour, linewidth=0.7, linestyle=":")
    ax.set(title=title, xlabel="time $t$", ylabel=r"$a + b$", yscale="log")
    ax.legend(fontsize=8, loc="lower right" if len(runs) == 2 else "upper right")


def histograms(row, ranks) -> None:
    """Shares of runs by rank, for V = 1 and random, and by size as in the paper."""
    row.suptitle(r"Ranks of limits, $A = -Q^TQ/\sqrt{d}$ of rank $\lfloor d/2\rfloor$")
    axes = row.subplots(1, 4, sharey=True)
    for ax, d in zip(axes, DIMENSIONS, strict=False):
        shown = [
            ("$V = 1$", ranks[d, True].by_rule),
            ("$V$ random", ranks[d, False].by_rule),
            ("$V$ random, eigenvalues $> 0.1$", ranks[d, False].above_threshold),
        ]
        for shift, (name, found) in zip((-0.27, 0, 0.27), shown, strict=True):
            shares = np.bincount(found, minlength=d + 1) / len(found)
            ax.bar(np.arange(d + 1) + shift, shares, 0.25, label=f"{name}: {len(found)} runs")
        ax.set(title=f"$d = {d}$", xlabel="rank", xticks=np.arange(d + 1), ylim=(0, 1.05))
    axes[0].set_ylabel("share of runs")
    axes[3].set_axis_off()
    axes[3].legend(*axes[2].get_legend_handles_labels(), fontsize=9, loc="center left")
