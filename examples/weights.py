r"""
Which degree grows first depends on the weights of attention
============================================================

A perturbation of degree k of the uniform density on the circle grows at the rate :math:`k^2 g_k`,
where only :math:`g_k` depends on the weights. With :math:`\ell_k = I_k(\beta)/I_0(\beta)`,

.. math:: g_k = \frac{\ell_k}{\beta} \ \text{(softmax)}, \qquad
    \frac{I_k(\beta)}{\beta} \ \text{(unnormalised)}, \qquad
    \frac{\ell_k}{\beta (1 + \ell_k)} \ \text{(Sinkhorn)},

and for sigmoid weights :math:`\sigma(\beta \langle x, y\rangle + b)` it is the coefficient of
degree k of their primitive. Measured: the growth of each degree until t = 1/2, alone and from the
size :math:`10^{-7}`. For :math:`\beta = 5` three clusters form first under softmax weights, four
under Sinkhorn weights, and two under sigmoid weights, which damp the degrees 4 to 6.

:Source: Survey, section 5; Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322, for the weights.
    The rate of Sinkhorn weights is derived here from :math:`v = -\nabla f/\beta` with their
    log-scaling f.
:Run time: 5 s, ``python examples/weights.py``
:Look at: the position of each maximum; circles are measured, lines predicted.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.special import expit, ive

import meanfield as mf
from meanfield.plotting import theme

BETA, BIAS, SIZE = 5.0, -2.0, 1e-7
DEGREES = np.arange(1, 9)
CIRCLE = mf.Circle(48)
KINDS = {
    "softmax": mf.Softmax(),
    "Sinkhorn": mf.Sinkhorn(),
    f"sigmoid, b = {BIAS:g}": mf.Sigmoid(BIAS),
    "unnormalised": mf.Unnormalised(),
}


def predicted(name: str) -> np.ndarray:
    """k^2 g_k; unnormalised weights on the clock of softmax, on which they have its rates."""
    share = ive(DEGREES, BETA) / ive(0, BETA)
    theta = 2 * np.pi * np.arange(512) / 512
    if name.startswith("sigmoid"):
        slope = expit(BETA * np.cos(theta) + BIAS) * np.sin(theta)  # -d/dtheta of the primitive
        g = np.array([(slope * np.sin(k * theta)).mean() / k for k in DEGREES])
    else:
        g = share / BETA / (1 + share if name == "Sinkhorn" else 1)
    return DEGREES**2 * g


def measured(name: str) -> np.ndarray:
    """Growth rates of all degrees, each on its own, by a short run of an ensemble."""
    drift = mf.Attention(beta=BETA, weights=KINDS[name])
    scale = 1 / (ive(0, BETA) * np.exp(BETA)) if name.startswith("unnormalised") else 1.0
    found = []
    for k in DEGREES:
        start = CIRCLE.fourier([1.0, *np.where(DEGREES == k, SIZE, 0.0)])
        end = 0.5 * scale
        run = mf.solve(mf.Transformer(drift), start, (0, end), t_eval=[end], rtol=1e-12)
        found.append(np.log(abs(run.final.moment(int(k))) / abs(start.moment(int(k)))) / 0.5)
    return np.array(found)


def run(out: Path) -> list[Row]:
    """Measure, draw weights.png, compare."""
    rates = {name: measured(name) for name in KINDS}
    draw(rates).savefig(out / "weights.png")
    rows = []
    for name, found in rates.items():
        error = float(np.abs(found - predicted(name)).max())
        rows.append(Row(f"{name}: largest error of a rate", error, 0.0, 1e-6))
    best = {name: int(DEGREES[found.argmax()]) for name, found in rates.items()}
    return [
        *rows,
        *(Row(f"{name}: fastest degree", best[name], "", remark="shown") for name in KINDS),
    ]


def draw(rates: dict[str, np.ndarray]):
    """Rates over the degree: lines as predicted, circles as measured."""
    with theme.style():
        page = theme.figure(width=5.0, height=3.2)
        ax = page.subplots()
        for colour, (name, found) in zip(theme.PALETTE, list(rates.items())[:3], strict=False):
            ax.plot(DEGREES, predicted(name), color=colour, label=name)
            ax.plot(DEGREES, found, "o", color=colour, mfc="white", markersize=5)
        ax.axhline(0, color=theme.FAINT, lw=0.7, zorder=0)
        ax.set(xlabel="degree $k$", ylabel="growth rate", title=rf"$\beta = {BETA:g}$")
        ax.legend()
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
