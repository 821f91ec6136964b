r"""
Hysteresis of noisy USA at beta = 4, kappa = 0.40: the start decides
====================================================================

The ordered state minimises the free energy above :math:`\kappa_t = 0.3914751`, and the uniform
state is stable up to :math:`\kappa_c = \beta/I_1(\beta) = 0.4098585`. Between these values both are
stable. Six densities :math:`1 + 2 r \cos\theta` are solved as one ensemble. Compared with theory:
the order parameter and the free energy of the final state, and the rate
:math:`I_1(\beta)/\beta - 1/\kappa` at which a small perturbation decays. The equation of stationary
states gives the ordered state and the unstable state between the two, see ``stationary.py``.

:Source: Survey, section 7, equation (9); Balasubramanian, Banerjee and Rigollet, arXiv:2510.20094.
:Run time: 6 s, ``python examples/hysteresis.py``
:Look at: the two ends of the six curves, on either side of the dashed unstable state.
"""

from pathlib import Path

import numpy as np
from matplotlib.lines import Line2D
from report import Row, run_alone
from scipy.special import iv
from stationary import ANGLES, Stationary, stationary

import meanfield as mf
from meanfield.plotting import theme

CONFIG = Path(__file__).with_suffix(".toml")
BETA, KAPPA = 4.0, 0.40
KAPPA_T, KAPPA_C = 0.3914751, 0.4098585


def run(out: Path) -> list[Row]:
    """Solve the ensemble, write hysteresis.nc and .png, compare."""
    solution = mf.run_config(mf.read_config(CONFIG), out=out / f"{CONFIG.stem}.nc")
    ordered, unstable = stationary(BETA, KAPPA, 2.5), stationary(BETA, KAPPA, 0.5)
    figure(solution, ordered, unstable).savefig(out / f"{CONFIG.stem}.png")
    r = solution.observables.order_parameter.values
    rows = [
        Row(f"order parameter reached from {start:.3g}", end, expected, 1e-8)
        for start, end, expected in zip(
            r[0], r[-1], np.where(r[0] < unstable.order, 0, ordered.order), strict=True
        )
    ]
    free = solution.observables.free_energy.values[-1]
    return [
        *rows,
        Row("order parameter between the two, unstable", unstable.order, "", remark="theory"),
        Row("rate of the smallest perturbation", rate(solution), decay(), 1e-5, True),
        Row("free energy: ordered - uniform", free[-1] - free[0], ordered.free_energy, 1e-9),
        Row("kappa_c = beta/I_1(beta)", KAPPA_C, BETA / iv(1, BETA), 1e-7),
    ]


def decay() -> float:
    """The rate of degree 1 on top of the uniform state."""
    return iv(1, BETA) / BETA - 1 / KAPPA


def rate(solution: mf.Solution) -> float:
    """d log r / dt of the first member between t = 50 and t = 200."""
    early, late = np.searchsorted(solution.t, [50, 200])
    r = solution.observables.order_parameter.values[:, 0]
    return np.log(r[late] / r[early]) / (solution.t[late] - solution.t[early])


def figure(solution: mf.Solution, ordered: Stationary, unstable: Stationary) -> theme.PaperFigure:
    """Order parameter in time, free energy against order parameter, densities reached."""
    with theme.style():
        page = theme.figure(width=7.4, height=2.9)
        page.suptitle(
            rf"coexistence $\kappa_t = {KAPPA_T}$"
            rf"$\;<\;\kappa = {KAPPA:.2f}\;<\;$"
            rf"$\kappa_c = {KAPPA_C}$ instability of the uniform state;  $\beta = 4$"
        )
        colours = theme.ordered_colours(solution.shape[0])
        order, energy, states = page.subplots(1, 3)
        _order(order, solution, ordered, unstable, colours)
        _energy(energy, solution, ordered, unstable, colours)
        _states(states, solution, ordered, unstable, colours)
    return page


def _order(ax, solution, ordered, unstable, colours) -> None:
    r = solution.observables.order_parameter.values
    for colour, member in zip(colours, r.T, strict=True):
        ax.plot(solution.t, member, color=colour)
    for level, label in ((ordered.order, "ordered"), (unstable.order, "unstable")):
        ax.axhline(level, color=theme.INK, lw=0.6, dashes=(4, 3), zorder=0)
        ax.text(78, level + 0.015, label, ha="right", fontsize=8)
    ax.set(xlabel=r"time $t$", ylabel=r"order parameter $r(t)$", xlim=(0, 80), ylim=(-0.01, 0.8))


def _energy(ax, solution, ordered, unstable, colours) -> None:
    r = solution.observables.order_parameter.values
    free = solution.observables.free_energy.values
    for colour, x, y in zip(colours, r.T, free.T - free[-1, 0], strict=True):
        ax.plot(x, 100 * y, color=colour)
    for x, y in ((0, 0), (ordered.order, ordered.free_energy)):
        ax.plot(x, 100 * y, "o", color=theme.INK, markersize=4, zorder=3)
    ax.plot(
        unstable.order, 100 * unstable.free_energy, "o", color=theme.INK, mfc="white", markersize=4
    )
    ax.set(xlabel=r"order parameter $r$", ylabel=r"free energy $100\,(F - F_\mathrm{uniform})$")
    ax.set(xlim=(-0.03, 0.8), ylim=(-4.2, 1.4))


def _states(ax, solution, ordered, unstable, colours) -> None:
    theta = np.linspace(-np.pi, np.pi, 361)
    for member in (0, -1):
        density = solution.final[member].at(mf.Circle.embed(theta))
        ax.plot(theta, density, color=colours[member])
    centred = (ANGLES + np.pi) % (2 * np.pi) - np.pi
    line = np.argsort(centred)
    dots = line[::16]
    ax.plot(centred[dots], ordered.density[dots], "o", color=theme.INK, markersize=2.5)
    ax.plot(centred[line], unstable.density[line], color=theme.INK, lw=0.6, dashes=(4, 3))
    handles = [
        Line2D([], [], color=colours[-1], label="reached"),
        Line2D([], [], color=theme.INK, marker="o", ls="", markersize=2.5, label="ordered"),
        Line2D([], [], color=theme.INK, lw=0.6, dashes=(4, 3), label="unstable"),
    ]
    ax.legend(handles=handles, fontsize=7.5, loc="upper left", borderaxespad=0)
    ax.set(xlabel=r"angle $\theta$", ylabel="density", ylim=(0, None))
    ax.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])


if __name__ == "__main__":
    run_alone(__doc__, run)
