r"""
Fluctuations of finitely many tokens grow without bound towards the onset of order
==================================================================================

Below the critical :math:`\kappa_k = \beta/I_k(\beta)` the uniform density is stable, and n tokens
fluctuate about it. Each moment is then an Ornstein-Uhlenbeck process with the stationary variance

.. math:: n\, \mathrm{E} |m_k|^2 = \frac{1}{1 - \kappa/\kappa_k} + o(1),
    \qquad m_k = \frac1n \sum_j e^{i k \theta_j},

which is 1 for independent tokens and diverges at the onset. Measured: the mean over 32 runs of 400
tokens and over the times after relaxation, at four values of :math:`\kappa`. The tolerance is four
standard errors, plus 3 % for finite n and the time step.

:Source: Survey, section 7, from n tokens to equation (8); the variance is derived here, from the
    linearised (9).
:Run time: 8 s, ``python examples/fluctuations.py``
:Look at: degree 1, which diverges at its onset, and degree 2, whose onset is twice as far.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.special import iv

import meanfield as mf
from meanfield.plotting import theme

BETA, N, RUNS = 2.0, 400, 32
CRITICAL = BETA / iv(np.arange(1, 3), BETA)
KAPPAS = CRITICAL[0] * np.array([0.2, 0.4, 0.6, 0.8])
ALLOWED = 0.03


def measured(kappa: float) -> tuple[np.ndarray, np.ndarray]:
    """n E|m_k|^2 for k = 1, 2, and standard errors."""
    relaxation = 1 / (1 / kappa - 1 / CRITICAL[0])
    begin, end = 4 * relaxation, 16 * relaxation
    t = np.linspace(begin, end, 81)
    tokens = mf.Tokens.uniform(N, 2, rng=1, shape=(RUNS,))
    model = mf.Transformer(mf.USA(BETA), kappa=kappa)
    run = mf.solve(model, tokens, (0, end), t_eval=t, dt=0.05 * kappa, rng=2)
    z = np.array([state.x @ [1, 1j] for state in run])
    squares = np.stack([np.abs((z**k).mean(axis=-1)) ** 2 for k in (1, 2)], axis=-1)
    each = N * squares.mean(axis=0)
    return each.mean(axis=0), each.std(axis=0) / np.sqrt(RUNS)


def run(out: Path) -> list[Row]:
    """Run all, draw fluctuations.png, compare."""
    found = [measured(kappa) for kappa in KAPPAS]
    draw(found).savefig(out / "fluctuations.png")
    rows = []
    for kappa, (means, errors) in zip(KAPPAS, found, strict=True):
        for k, mean, error, critical in zip((1, 2), means, errors, CRITICAL, strict=True):
            law = 1 / (1 - kappa / critical)
            rows.append(Row(f"kappa = {kappa:.3f}: n E|m_{k}|^2", float(mean), float(law),
                            float(4 * error + ALLOWED * law)))  # fmt: skip
    return rows


def draw(found):
    """Variances over kappa, predicted and measured."""
    line = np.linspace(0, 0.97, 200) * CRITICAL[0]
    with theme.style():
        page = theme.figure(width=5.0, height=3.2)
        ax = page.subplots()
        for k, colour in zip((0, 1), theme.PALETTE, strict=False):
            ax.plot(line, 1 / (1 - line / CRITICAL[k]), color=colour, label=f"degree {k + 1}")
            means, errors = np.array([(mean[k], error[k]) for mean, error in found]).T
            ax.errorbar(KAPPAS, means, 2 * errors, fmt="o", color=colour, mfc="white", capsize=2)
        ax.axvline(CRITICAL[0], color=theme.INK, lw=0.8, dashes=(4, 3))
        ax.text(CRITICAL[0] - 0.02, 0.25, r"$\kappa_1$", ha="right")
        ax.set(xlabel=r"inverse noise $\kappa$", ylabel=r"$n\,\mathrm{E}\,|m_k|^2$", ylim=(0, 8),
               xlim=(0, 1.04 * CRITICAL[0]))  # fmt: skip
        ax.legend(loc="upper left")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
