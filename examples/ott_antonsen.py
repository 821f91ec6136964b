r"""
Kuramoto model without noise: the density stays on the exact solution
=====================================================================

Poisson kernels :math:`(1 - r^2)/(1 - 2 r \cos\theta + r^2)`, whose moments are :math:`r^k`, are
preserved by :math:`\partial_t \mu = -(\mu v)'`,
:math:`v = \nabla \int \langle x, y\rangle\, d\mu(y)`, and

.. math:: r' = \frac{r (1 - r^2)}{2}, \qquad r(t)^2 = \frac{q}{1 + q}, \qquad
    q = e^t \frac{r(0)^2}{1 - r(0)^2}.

Compared with this solution at all output times: the order parameter, moments 2 to 8 and the
density.

:Source: Survey, section 3.3, equation (4) with beta = 0; Ott and Antonsen, Chaos 18 (2008).
:Run time: 4 s, ``python examples/ott_antonsen.py``
:Look at: the error, far below the tolerance although the peak of the density grows fifteenfold.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

CONFIG = Path(__file__).with_suffix(".toml")
TOLERANCE = 1e-10
START, END = 0.1, 6.0  # r(0) and the last time, as in the configuration


def exact_order(t: np.ndarray, start: float) -> np.ndarray:
    """r(t) from r(0) = start."""
    q = np.exp(t) * start**2 / (1 - start**2)
    return np.sqrt(q / (1 + q))


def errors(solution: mf.Solution) -> dict[str, np.ndarray]:
    """Errors at every output time, of r, of moments 2 to 8 and of the density (largest)."""
    r = exact_order(solution.t, START)
    k = np.arange(2, 9)
    moments = np.stack([[state.moment(j) for j in k] for state in solution])
    angles = mf.Circle(degree=512).angles
    kernel = (1 - r**2) / (1 - 2 * r * np.cos(angles[:, None]) + r**2)
    values = np.stack([state.at(mf.Circle.embed(angles)) for state in solution], axis=1)
    return {
        "order parameter r": np.abs(solution.observables.order_parameter.values - r),
        "moments 2 to 8": np.abs(moments - r[:, None] ** k).max(axis=1),
        "density, relative to its peak": np.abs(values - kernel).max(axis=0) / kernel.max(axis=0),
    }


def run(out: Path) -> list[Row]:
    """Solve, write ott_antonsen.nc and .png, compare."""
    solution = mf.run_config(mf.read_config(CONFIG), out=out / f"{CONFIG.stem}.nc")
    found = errors(solution)
    figure(solution, found).savefig(out / f"{CONFIG.stem}.png")
    end, r = float(solution.t[-1]), solution.observables.order_parameter.values
    exact = float(exact_order(solution.t, START)[-1])
    rows = [
        Row("time reached", end, END, 0.0),
        Row(f"order parameter at t = {end:g}", float(r[-1]), exact, TOLERANCE),
    ]
    return rows + [
        Row(f"largest error of the {name}", float(error.max()), 0.0, TOLERANCE)
        for name, error in found.items()
    ]


def figure(solution: mf.Solution, found: dict[str, np.ndarray]) -> theme.PaperFigure:
    """r(t) with the exact curve, the densities, and the errors."""
    with theme.style():
        page = theme.figure(width=7.0, height=2.6)
        order, profile, error = page.subplots(1, 3)
        _order(order, solution)
        _profiles(profile, solution)
        for name, values in found.items():
            error.semilogy(solution.t[1:], values[1:], label=name)
        error.axhline(TOLERANCE, color=theme.INK, lw=0.6, dashes=(4, 3), label="tolerance")
        error.set(xlabel=r"time $t$", ylabel="error", ylim=(1e-16, 1e-5))
        error.legend(fontsize=7.5, loc="upper left")
    return page


def _order(ax, solution: mf.Solution) -> None:
    ax.plot(solution.t, exact_order(solution.t, START), label="exact")
    some = slice(None, None, 8)
    r = solution.observables.order_parameter.values
    ax.plot(solution.t[some], r[some], "o", markersize=3.5, label="measured")
    ax.set(xlabel=r"time $t$", ylabel=r"order parameter $r$", ylim=(0, 1))
    ax.legend(loc="upper left")


def _profiles(ax, solution: mf.Solution) -> None:
    theta = np.linspace(-np.pi, np.pi, 721)
    chosen = np.searchsorted(solution.t, [0, 2, 3, 4, 5, END])
    for colour, i in zip(theme.ordered_colours(chosen.size), chosen, strict=True):
        density = solution[i].at(mf.Circle.embed(theta))
        ax.plot(theta, density, color=colour, label=rf"$t = {solution.t[i]:g}$")
    ax.set(xlabel=r"angle $\theta$", ylabel=r"density $\mu_t(\theta)$", ylim=(0, None))
    ax.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    ax.legend(fontsize=7.5, handlelength=1)


if __name__ == "__main__":
    run_alone(__doc__, run)
