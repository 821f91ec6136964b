r"""
Waiting times at a barrier
==========================

One token on the circle moves in the double well :math:`v(\theta) = -\sin 2\theta`. It stays near
:math:`\theta = 0` until the noise carries it over the barrier to :math:`\pi`, after the mean time

.. math:: T = \kappa \int_0^\pi e^{-\kappa V(y)} \int_0^y e^{\kappa V(z)}\, dz\, dy,
    \qquad V(\theta) = \tfrac12 \cos 2\theta,

which grows like :math:`e^\kappa`. The figure shows this integral, computed by ``mf.escape_time``,
the Eyring-Kramers law :math:`T = \tfrac\pi2 e^\kappa`, and mean times of tokens with error bars of
two standard errors.

:Source: Survey, section 7; the integral is that of a reflecting end, e.g. Gardiner, section 5.2.
:Run time: 20 s, ``python examples/waiting_times.py``
:Look at: the mean times, which approach the straight line of the law from above.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.integrate import cumulative_simpson, simpson

import meanfield as mf
from meanfield.plotting import theme

KAPPAS = np.linspace(1.0, 8.0, 29)
MEASURED = (1.5, 2.5, 3.5)
TOKENS, SEED, STEP = 1024, 3, 0.01
END = 0.99  # the passage is over where cos(theta) is below -END


def double_well(x: np.ndarray) -> np.ndarray:
    """The gradient of (cos^2 theta - sin^2 theta) / 2."""
    return x * [1.0, -1.0]


def model(kappa: float) -> mf.Transformer:
    return mf.Transformer(mf.Field(double_well), kappa)


def quadrature(kappa: float, end: float = np.pi) -> float:
    """The mean time from 0 to an angle, by Simpson's rule."""
    angle = np.linspace(0, end, 8193)
    potential = 0.5 * np.cos(2 * angle)
    inner = cumulative_simpson(np.exp(kappa * potential), x=angle, initial=0)
    return float(kappa * simpson(np.exp(-kappa * potential) * inner, x=angle))


def measured(kappa: float) -> tuple[float, float]:
    """Mean time of tokens and its standard error."""
    start = mf.Tokens.on_circle([0.0])
    times = mf.first_passages(
        model(kappa), start, lambda tokens: -tokens.x[..., 0, 0], target=END, t_max=1e4,
        replicas=TOKENS, rng=SEED, dt=STEP,
    )  # fmt: skip
    return times.mean_time.value, times.mean_time.error


def run(out: Path) -> list[Row]:
    """Compute and measure waiting times, draw waiting_times.png, compare."""
    exact = np.array([quadrature(kappa) for kappa in KAPPAS])
    state = mf.stationary(model(KAPPAS[-1]), mf.Circle(64).uniform())
    law = mf.escape_time(state, 1, start=[1.0, 0.0])
    points = {kappa: measured(kappa) for kappa in MEASURED}
    with theme.style():
        page = theme.figure(width=4.6, height=3.4)
        axes = page.subplots()
        axes.semilogy(KAPPAS, exact, color=theme.PALETTE[0], label="quadrature")
        axes.semilogy(KAPPAS, np.pi * np.exp(KAPPAS) / 2, "--", color=theme.INK,
                      label="Eyring and Kramers")  # fmt: skip
        axes.errorbar(list(points), [mean for mean, _ in points.values()],
                      [2 * error for _, error in points.values()], fmt="o",
                      color=theme.PALETTE[1], label=f"{TOKENS} tokens")  # fmt: skip
        axes.set(xlabel=r"$\kappa$", ylabel="mean waiting time")
        axes.legend()
        page.savefig(out / "waiting_times.png")
    rows = [Row(f"escape_time, kappa = {KAPPAS[-1]:g}", law.time, exact[-1], 1e-2, relative=True)]
    end = np.arccos(-END)
    for kappa, (mean, error) in points.items():
        rows.append(Row(f"tokens, kappa = {kappa:g}", mean, quadrature(kappa, end), 3 * error))
    return rows


if __name__ == "__main__":
    run_alone(__doc__, run)
