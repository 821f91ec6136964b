r"""
What common noise does to Kuramoto oscillators: no threshold, and one cluster
=============================================================================

With independent noise alone order begins at :math:`\kappa = 2`. Common translations move the law at
random, so that the order parameter is random on both sides of 2. Without independent noise all
tokens come together: two close tokens approach at the mean rate :math:`1 + 1/\kappa_0`. The law, a
Poisson kernel, shrinks to one cluster,

.. math:: d\varrho = \left(\tanh(\varrho/2) + \frac{\coth \varrho}{\kappa_0}\right) dt
    + \sqrt{2/\kappa_0}\; dB, \qquad \varrho = 2\,\mathrm{artanh}\, r,

at late times at the same rate. Under the repelling drift -Kuramoto it does so if
:math:`\kappa_0 < 1`.

:Source: Survey, end of section 7, which asks for the phase diagram under common noise.
:Run time: 6 s, ``python examples/common_noise_phases.py``
:Look at: the broad laws of r near :math:`\kappa = 2`, where independent noise alone has a corner.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf
from meanfield.plotting import theme

COMMON, KAPPAS, REPLICAS, TOKENS = 8.0, np.array([1.0, 1.5, 2.0, 3.0, 4.0]), 40, 300
START, POINTS, PATHS = 0.3, 100, 200
STRENGTHS, PAIRS, TIME = np.array([0.5, 1.0, 2.0, 4.0, 8.0]), 1000, 1.0
ERRORS = 4.5  # standard errors


def run(out: Path) -> list[Row]:
    """Solve for replicas of tokens, each set with its own path, draw, compare."""
    law = np.array([order_parameters(kappa) for kappa in KAPPAS])
    rates = {sign: np.array([exponents(sign, kappa) for kappa in STRENGTHS]) for sign in (1, -1)}
    t, r = contraction()
    figure(law, rates, t, r).savefig(out / "common_noise_phases.png")
    rows = []
    for sign, name in ((1, "Kuramoto"), (-1, "-Kuramoto")):
        for kappa, found in zip(STRENGTHS, rates[sign], strict=True):
            error = ERRORS * np.sqrt(2 / (kappa * TIME * PAIRS))
            predicted = -sign - 1 / kappa
            rows.append(Row(f"exponent, {name}, kappa_0 = {kappa:g}", found, predicted, error))
    cosh = np.cosh(2 * np.arctanh(r))
    rate, last = 1 + 2 / COMMON, int(np.abs(t - 0.5).argmin())
    known = (cosh[0].mean() - 1 / rate) * np.exp(rate * t[last]) + 1 / rate
    error = ERRORS * cosh[last].std() / np.sqrt(cosh.shape[1])
    rows.append(Row("E cosh rho at t = 0.5", cosh[last].mean(), known, error))
    below = float(np.median(law[0]))
    rows.append(Row("median of r at kappa = 1", below, "0 without"))
    rows.append(Row("median of 1 - r at t = 4", float(np.median(1 - r[-1])), "0 in the end"))
    return rows


def order_parameters(kappa: float) -> np.ndarray:
    """r of replicas at late times, under both noises."""
    x = np.random.default_rng(0).standard_normal((REPLICAS, TOKENS, 2))
    model = mf.Transformer(
        mf.Kuramoto(), kappa=kappa, common=mf.CommonTranslations(np.full(REPLICAS, COMMON))
    )
    start = mf.Tokens(x / np.linalg.norm(x, axis=-1, keepdims=True))
    run = mf.solve(model, start, (0, 12), dt=0.1, t_eval=np.linspace(4, 12, 9), rng=1)
    return np.concatenate([np.linalg.norm(s.x.mean(axis=1), axis=-1) for s in run])


def exponents(sign: int, kappa: float) -> float:
    """The mean growth of log |x_1 - x_2| of close pairs."""
    x = np.zeros((PAIRS, 2, 2))
    x[:, :, 0], x[:, 1, 1] = 1.0, 1e-6
    model = mf.Transformer(sign * mf.Kuramoto(), common=mf.CommonTranslations(kappa))
    end = mf.solve(model, mf.Tokens(x), (0, TIME), dt=0.02, t_eval=[TIME], rng=2).final.x
    return float(np.log(np.linalg.norm(end[:, 1] - end[:, 0], axis=1) / 1e-6).mean() / TIME)


def contraction() -> tuple[np.ndarray, np.ndarray]:
    """r of Poisson kernels over time, which begin at r = 0.3, from n tokens: up to r^n."""
    z = np.exp(2j * np.pi * np.arange(POINTS) / POINTS)
    z = (z + START) / (1 + START * z)
    x = np.broadcast_to(np.stack([z.real, z.imag], axis=-1), (PATHS, POINTS, 2))
    model = mf.Transformer(mf.Kuramoto(), common=mf.CommonTranslations(np.full(PATHS, COMMON)))
    t = np.linspace(0, 4, 41)
    run = mf.solve(model, mf.Tokens(x), (0, 4), dt=0.05, t_eval=t, rng=3)
    return t, np.array([np.linalg.norm(s.x.mean(axis=1), axis=-1) for s in run])


def stationary(kappa: float) -> float:
    """r without common noise."""
    if kappa <= 2:
        return 0.0
    return float(brentq(lambda r: iv(1, kappa * r) / iv(0, kappa * r) - r, 1e-3, 1))


def figure(law: np.ndarray, rates: dict, t: np.ndarray, r: np.ndarray) -> theme.PaperFigure:
    """The law of the order parameter, exponents of close tokens, and contraction."""
    with theme.style():
        page = theme.figure(width=7.8, height=2.7)
        left, middle, right = page.subplots(1, 3)
        low, half, high = np.quantile(law, [0.1, 0.5, 0.9], axis=1)
        left.fill_between(KAPPAS, low, high, color=theme.PALETTE[0], alpha=0.25, lw=0,
                          label="10 to 90 %")  # fmt: skip
        left.plot(KAPPAS, half, "o-", ms=3, color=theme.PALETTE[0], label="median")
        fine = np.linspace(KAPPAS[0], KAPPAS[-1], 200)
        left.plot(fine, [stationary(k) for k in fine], color=theme.INK, ls="--", lw=1,
                  label="no common noise")  # fmt: skip
        left.set(xlabel=r"inverse noise $\kappa$", ylabel=r"$|\int x\,d\mu|$", ylim=(0, 1.25))
        left.set(title=rf"Law of the order, $\kappa_0 = {COMMON:g}$")
        left.legend(loc="upper left")
        fine = np.geomspace(STRENGTHS[0], STRENGTHS[-1], 100)
        for (sign, found), colour in zip(rates.items(), theme.PALETTE, strict=False):
            middle.plot(fine, -sign - 1 / fine, color=colour, lw=1)
            name = "Kuramoto" if sign > 0 else "$-$Kuramoto"
            middle.plot(STRENGTHS, found, "o", ms=4, mfc="white", mec=colour, label=name)
        middle.axhline(0, color=theme.FAINT, lw=0.7)
        middle.set(xlabel=r"inverse common noise $\kappa_0$", ylabel="exponent", xscale="log")
        middle.set(xticks=STRENGTHS, xticklabels=[f"{kappa:g}" for kappa in STRENGTHS])
        middle.minorticks_off()
        middle.set(title="Two close tokens")
        middle.legend()
        rest = 1 - r
        right.semilogy(t, rest[:, :12], color=theme.FAINT, lw=0.6)
        typical = np.exp(np.log(rest).mean(axis=1))
        right.semilogy(t, typical, color=theme.PALETTE[1], label="geometric mean")
        slope = np.exp(-(1 + 1 / COMMON) * (t - t[-1])) * typical[-1]
        right.semilogy(t, slope, color=theme.INK, ls="--", lw=1, label=r"$e^{-(1 + 1/\kappa_0)t}$")
        right.set(xlabel="$t$", ylabel=r"$1 - |\int x\,d\mu|$", title="Contraction to one cluster")
        right.legend()
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
