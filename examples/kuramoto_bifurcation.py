r"""
Noisy Kuramoto model: order begins at kappa = 2
===============================================

Stationary states of :math:`\partial_t \mu = \kappa^{-1} \mu'' - (\mu v)'`,
:math:`v = \nabla \int \langle x, y\rangle\, d\mu(y)`, are the uniform density and, for
:math:`\kappa > 2`, the von Mises densities of concentration :math:`\kappa r` with

.. math:: r = I_1(\kappa r) / I_0(\kappa r).

An ensemble of seven :math:`\kappa` is solved until steady. Compared with theory: the final order
parameter, the second moment :math:`1 - 2/\kappa` of the ordered states, and the rate
:math:`1/\kappa - 1/2` at which the order parameter decays at :math:`\kappa = 1.9`.

:Source: Survey, section 7, equation (9) with beta = 0; Bertini, Giacomin and Pakdaman, J. Stat.
    Phys. 138 (2010).
:Run time: 4 s, ``python examples/kuramoto_bifurcation.py``
:Look at: the dots of the runs on the theoretical curve, and the slow runs next to 2.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.optimize import brentq
from scipy.special import ive

import meanfield as mf
from meanfield.plotting import theme

CONFIG = Path(__file__).with_suffix(".toml")
BELOW_TWO = {1.5: (0.3, 0.16), 1.9: (38.0, 0.12)}  # where their curves are labelled


def order(kappa: float) -> float:
    """The stable solution of r = I_1(kappa r)/I_0(kappa r): 0 for kappa <= 2."""
    if kappa <= 2:
        return 0.0
    return brentq(lambda r: r - ive(1, kappa * r) / ive(0, kappa * r), 1e-6, 1, xtol=1e-15)


def run(out: Path) -> list[Row]:
    """Solve the ensemble, write kuramoto_bifurcation.nc and .png, compare."""
    solution = mf.run_config(mf.read_config(CONFIG), out=out / f"{CONFIG.stem}.nc")
    figure(solution).savefig(out / f"{CONFIG.stem}.png")
    kappas, measured = solution.model.kappa, np.abs(solution.final.moment(1))
    rows = [
        Row(f"order parameter at kappa = {kappa:g}", r, order(kappa), 1e-8)
        for kappa, r in zip(kappas, measured, strict=True)
    ]
    ordered = kappas > 2
    second = np.abs(solution.final.moment(2))[ordered]
    worst = np.abs(second - (1 - 2 / kappas[ordered])).argmax()
    rows.append(
        Row(
            f"second moment, worst of kappa > 2 (at {kappas[ordered][worst]:g})",
            second[worst],
            1 - 2 / kappas[ordered][worst],
            1e-8,
        )
    )
    rows.append(Row("rate of r at kappa = 1.9", rate(solution, 1.9), 0.5 - 1 / 1.9, 1e-5, True))
    residual = max(solution.stats["rate_of_change"])
    steady = f"{solution.status} at t = {solution.t[-1]:.0f}"
    return [*rows, Row("rate of change at the end", residual, "0", remark=steady)]


def rate(solution: mf.Solution, kappa: float) -> float:
    """d log r / dt between t = 256 and t = 640, where r is small and not yet rounding."""
    member = int(np.flatnonzero(solution.model.kappa == kappa)[0])
    early, late = np.searchsorted(solution.t, [256, 640])
    r = solution.observables.order_parameter.values[:, member]
    return np.log(r[late] / r[early]) / (solution.t[late] - solution.t[early])


def figure(solution: mf.Solution) -> theme.PaperFigure:
    """The bifurcation diagram, and the order parameter in time."""
    with theme.style():
        page = theme.figure(width=7.0, height=3.1)
        left, right = page.subplots(1, 2, width_ratios=[1.15, 1])
        _diagram(left, solution)
        _relaxation(right, solution)
    return page


def _diagram(ax, solution: mf.Solution) -> None:
    kappa = np.concatenate([2 + np.geomspace(1e-6, 0.1, 60), np.linspace(2.1, 6.5, 120)])
    ax.plot(kappa, [order(k) for k in kappa], color=theme.PALETTE[0], label="theory, stable")
    ax.plot([1, 2], [0, 0], color=theme.PALETTE[0])
    ax.plot([2, 6.5], [0, 0], color=theme.PALETTE[0], dashes=(4, 3), label="theory, unstable")
    ax.plot(
        solution.model.kappa,
        np.abs(solution.final.moment(1)),
        "o",
        color=theme.PALETTE[1],
        markersize=5,
        label="measured",
        zorder=3,
        clip_on=False,
    )
    ax.annotate(r"$\kappa = 2$", (2, 0), (1.25, 0.22), arrowprops={"arrowstyle": "-", "lw": 0.6})
    ax.set(xlabel=r"inverse noise $\kappa$", ylabel=r"order parameter $r$")
    ax.set(xlim=(1, 6.5), ylim=(-0.02, 1))
    ax.legend(loc="lower right", bbox_to_anchor=(1, 0.05))


def _relaxation(ax, solution: mf.Solution) -> None:
    r = solution.observables.order_parameter.values
    kappas = solution.model.kappa
    late = solution.t > 0
    for colour, kappa, member in zip(theme.ordered_colours(kappas.size), kappas, r.T, strict=True):
        ax.axhline(order(kappa), color=colour, lw=0.6, dashes=(4, 3))
        ax.semilogx(solution.t[late], member[late], color=colour)
        place = BELOW_TWO.get(float(kappa), (1500, order(kappa)))
        ax.text(*place, rf"$\kappa = {kappa:g}$", color=colour, va="center")
    ax.set(xlabel=r"time $t$", ylabel=r"order parameter $r(t)$")
    ax.set(xlim=(0.25, 1200), ylim=(-0.02, 1))


if __name__ == "__main__":
    run_alone(__doc__, run)
