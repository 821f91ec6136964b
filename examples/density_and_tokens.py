r"""
A movie: a density becomes three clusters, and 2000 of its tokens with it
=========================================================================

USA at :math:`\beta = 5` on the circle with noise, :math:`\kappa = 2`. The density starts with
random modes 1 to 8 of size 0.15; the tokens are a sample of it. Mode k grows at the rate
:math:`k^2 (I_k(\beta)/\beta - 1/\kappa)`, fastest for k = 3: three clusters form, whose width is
set by the noise. Measured: their number, and the distance :math:`W_1` of tokens and density. For
independent samples this distance is about :math:`n^{-1/2} = 0.02`; the figure shows its growth
while clusters form.

:Source: Survey, section 5, clusters from a nearly uniform start; Bruno, Pasqualotto and Agazzi,
    ICLR 2025.
:Run time: 8 s, ``python examples/density_and_tokens.py``
:Look at: the curve, whose distance from the circle is the density, and the tokens inside it.
"""

from pathlib import Path

import numpy as np
from movies import movie_path, write_movie
from report import Row, run_alone
from scipy.special import iv

import meanfield as mf
from meanfield.plotting import theme

BETA, KAPPA, SIZE, N = 5.0, 2.0, 0.15, 2000
TIMES = np.linspace(0, 0.4, 61)
CIRCLE = mf.Circle(128)
AROUND = np.linspace(-np.pi, np.pi, 721)


def rates(k: np.ndarray) -> np.ndarray:
    """Growth of degree k."""
    return k**2 * (iv(k, BETA) / BETA - 1 / KAPPA)


def peaks(density: mf.Density) -> int:
    """Maxima of the density above 1."""
    values = density.values
    highest = (values > np.roll(values, 1)) & (values >= np.roll(values, -1)) & (values > 1)
    return int(highest.sum())


def run(out: Path) -> list[Row]:
    """Solve both, write the movie and density_and_tokens.png, compare."""
    model = mf.Transformer(mf.USA(BETA), kappa=KAPPA)
    start = CIRCLE.perturbed(SIZE, rng=0)
    density = mf.solve(model, start, (0, TIMES[-1]), t_eval=TIMES, rtol=1e-8)
    tokens = mf.solve(model, start.sample(N, rng=5), (0, TIMES[-1]), t_eval=TIMES, dt=1e-3, rng=6)
    with theme.style():
        page, show = stage(density, tokens)
        write_movie(page, show, len(TIMES), movie_path(out, "density_and_tokens"))
    draw(density, tokens).savefig(out / "density_and_tokens.png")
    middle = len(TIMES) // 2
    k = np.arange(1, 9)
    return [
        Row("clusters of the density", peaks(density.final), int(k[rates(k).argmax()]), 0.0),
        Row("W1 of tokens and density at the start",
            float(mf.wasserstein(tokens[0], density[0], p=1)), 0.0, 0.06),
        Row(f"W1 at t = {TIMES[middle]:.2g}",
            float(mf.wasserstein(tokens[middle], density[middle], p=1)), "", remark="shown"),
        Row("W1 at the end", float(mf.wasserstein(tokens.final, density.final, p=1)), "",
            remark="shown"),
    ]  # fmt: skip


def curve(density: mf.Density) -> np.ndarray:
    """The density as a distance from the unit circle, (2, angles)."""
    radius = 1 + 0.15 * density.at(mf.Circle.embed(AROUND))
    return radius * np.array([np.cos(AROUND), np.sin(AROUND)])


def spread(tokens: mf.Tokens) -> np.ndarray:
    """Tokens within the circle, (2, n), at random distances: they do not cover each other."""
    return (tokens.x * np.random.default_rng(0).uniform(0.75, 0.97, (N, 1))).T


def panel(ax, density: mf.Density, tokens: mf.Tokens):
    """Curve and dots of one time."""
    ax.plot(np.cos(AROUND), np.sin(AROUND), color=theme.INK, lw=0.8)
    (line,) = ax.plot(*curve(density), color=theme.PALETTE[0])
    (dots,) = ax.plot(*spread(tokens), ".", color=theme.PALETTE[1], markersize=1.5, alpha=0.6)
    ax.set(xlim=(-2.4, 2.4), ylim=(-2.4, 2.4), aspect="equal")
    ax.set_axis_off()
    return line, dots


def stage(density: mf.Solution, tokens: mf.Solution):
    """The moving figure, both on the circle and over the angle, and what sets it to a time."""
    page = theme.figure(width=7.4, height=3.6)
    left, right = page.subplots(1, 2, width_ratios=[1, 1.1])
    line, dots = panel(left, density[0], tokens[0])
    (graph,) = right.plot(AROUND, density[0].at(mf.Circle.embed(AROUND)), color=theme.PALETTE[0])
    edges = np.linspace(-np.pi, np.pi, 73)
    centres = (edges[1:] + edges[:-1]) / 2
    (bars,) = right.step(centres, 0 * centres, where="mid", color=theme.PALETTE[1], lw=0.9)
    right.set(xlabel=r"angle $\theta$", ylabel="density", xlim=(-np.pi, np.pi), ylim=(0, 10))
    right.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    clock = page.suptitle(" ")

    def show(i: int) -> None:
        line.set_data(*curve(density[i]))
        dots.set_data(*spread(tokens[i]))
        graph.set_ydata(density[i].at(mf.Circle.embed(AROUND)))
        counts, _ = np.histogram(np.arctan2(*tokens[i].x.T[::-1]), edges)
        bars.set_ydata(counts * (len(edges) - 1) / N)
        clock.set_text(rf"$\beta = {BETA:g}$, $\kappa = {KAPPA:g}$, $t = {TIMES[i]:.3f}$")

    return page, show


def draw(density: mf.Solution, tokens: mf.Solution):
    """Four times side by side."""
    with theme.style():
        page = theme.figure(width=7.4, height=2.2)
        chosen = [0, len(TIMES) // 2, int(0.7 * len(TIMES)), len(TIMES) - 1]
        for ax, i in zip(page.subplots(1, 4), chosen, strict=True):
            panel(ax, density[i], tokens[i])
            ax.set_title(f"$t = {TIMES[i]:.3f}$")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
