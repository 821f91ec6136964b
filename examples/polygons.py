r"""
Regular polygons of clusters are unstable, at rates that are exponentially small in beta
========================================================================================

k clusters of equal masses at the vertices of a regular polygon are stationary under softmax
attention, but unstable. A displacement :math:`\varepsilon \cos(2\pi m j/k)` of vertex j grows at
the rate

.. math:: -\frac{1}{Z} \sum_{l} g(2\pi l/k) \left(1 - \cos\frac{2\pi m l}{k}\right), \qquad
    g(x) = (\cos x - \beta \sin^2 x)\, e^{\beta \cos x}, \quad Z = \sum_l e^{\beta \cos(2\pi l/k)},

with the mode m that maximises it. For k = 2 it is :math:`1/\cosh\beta`. The lifetime of such
metastable states is therefore exponential in :math:`\beta`. Measured: the growth by a factor of
:math:`e^{5}` from :math:`\varepsilon = 10^{-7}`.

:Source: Survey, section 5.2, on metastability; Geshkovski, Letrouit, Polyanskiy and Rigollet,
    arXiv:2312.10794, appendix B, for g.
:Run time: 2 s, ``python examples/polygons.py``
:Look at: the slopes, those of :math:`e^{-\beta (1 - \cos(2\pi/k))}`: more clusters are closer to
    each other, and have shorter lifetimes.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

CORNERS, BETAS = (2, 3, 4, 5), np.array([2.0, 4.0, 6.0, 8.0, 10.0])
SIZE, GROWTH = 1e-7, 5.0
TOLERANCE = 1e-5  # relative; (SIZE e^GROWTH)^2 and rounding of SIZE are below


def fastest(beta: float, k: int) -> tuple[float, int]:
    """The largest rate of k corners, and its mode m."""
    angle = 2 * np.pi * np.arange(k) / k
    weight = np.exp(beta * (np.cos(angle) - 1))
    g = (np.cos(angle) - beta * np.sin(angle) ** 2) * weight
    rates = [-(g @ (1 - np.cos(m * angle))) / weight.sum() for m in range(1, k)]
    return float(max(rates)), 1 + int(np.argmax(rates))


def measured(beta: float, k: int) -> float:
    """How fast a displacement along that mode grows."""
    rate, m = fastest(beta, k)
    angle = 2 * np.pi * np.arange(k) / k
    tokens = mf.Tokens.on_circle(angle + SIZE * np.cos(m * angle))
    end = GROWTH / rate
    run = mf.solve(mf.Transformer(mf.SA(beta)), tokens, (0, end), t_eval=[0, end], rtol=1e-12)
    first, last = (np.angle(x @ [1, 1j] * np.exp(-1j * angle)) for x in (run[0].x, run.final.x))
    return float(np.log(np.cos(m * angle) @ last / (np.cos(m * angle) @ first)) / end)


def run(out: Path) -> list[Row]:
    """Measure, draw polygons.png, compare."""
    found = {k: np.array([measured(beta, k) for beta in BETAS]) for k in CORNERS}
    draw(found).savefig(out / "polygons.png")
    return [
        Row(f"{k} clusters, beta = {beta:g}: growth rate", rate, fastest(beta, k)[0], TOLERANCE,
            relative=True)
        for k, rates in found.items()
        for beta, rate in zip(BETAS, rates.tolist(), strict=True)
    ]  # fmt: skip


def draw(found: dict[int, np.ndarray]):
    """Rates over beta, predicted and measured, beside the polygons."""
    with theme.style():
        page = theme.figure(width=6.6, height=3.2)
        grid = page.add_gridspec(2, 4, width_ratios=[1, 1, 0.1, 4.2])
        ax = page.add_subplot(grid[:, 3])
        line = np.linspace(1, 11, 201)
        for i, (colour, (k, rates)) in enumerate(zip(theme.PALETTE, found.items(), strict=False)):
            ax.semilogy(line, [fastest(beta, k)[0] for beta in line], color=colour)
            ax.semilogy(BETAS, rates, "o", color=colour, mfc="white", markersize=5)
            ax.text(11.1, fastest(11.0, k)[0], f"$k = {k}$", color=colour, va="center")
            polygon(page.add_subplot(grid[i // 2, i % 2]), k, colour)
        ax.set(xlabel=r"$\beta$", ylabel="growth rate", xlim=(1, 11))
    return page


def polygon(ax, k: int, colour: str) -> None:
    """The clusters on the circle."""
    around, angle = np.linspace(0, 2 * np.pi, 201), 2 * np.pi * np.arange(k) / k + np.pi / 2
    ax.plot(np.cos(around), np.sin(around), color=theme.FAINT, lw=0.8)
    ax.plot(np.cos(angle), np.sin(angle), "o", color=colour, markersize=6)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.text(0, 0, f"$k = {k}$", ha="center", va="center", fontsize=9)


if __name__ == "__main__":
    run_alone(__doc__, run)
