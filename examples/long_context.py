r"""
Long contexts: attention averages, or copies, on either side of beta = log n/(1 - rho)
======================================================================================

One layer of softmax attention over n equiangular tokens, with inner products :math:`\rho = 1/2` and
:math:`\beta = \gamma \log n`. If :math:`\gamma (1 - \rho) < 1` every token attends to all others,
and the outputs become equal. If :math:`\gamma (1 - \rho) > 1` each token attends to itself, and the
inner products do not change:

.. math:: \langle y_i, y_j\rangle \to 1, \quad \frac{4\rho}{1 + 3\rho}, \quad \rho
    \qquad \text{for } \gamma (1 - \rho) < 1, \; = 1, \; > 1.

Let :math:`w = 1/(1 + (n - 1) n^{-\gamma (1 - \rho)})` be the attention of a token to itself,
:math:`D = w - (1 - w)/(n - 1)` and :math:`s = (1 + (n - 1)\rho)/n`. At finite n the inner product
is :math:`1 - D^2 (1 - \rho)/(D^2 + (1 - D^2) s)`. Compared with this formula: the output of one
layer of equiangular tokens for n up to :math:`10^{64}`, and of 512 tokens given as an array.

:Source: Survey, Theorem 7; Chen, Lin, Polyanskiy and Rigollet, arXiv:2510.05554.
:Run time: 1 s, ``python examples/long_context.py``
:Look at: the curves, which approach a step as n grows, and the point common to all of them.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

RHO = 0.5
NUMBERS = (1e2, 1e4, 1e8, 1e16, 1e64)
PRODUCTS = np.linspace(0.4, 1.6, 241)  # gamma (1 - rho)
ARRAY = 512


def exact(n: float, product: np.ndarray) -> np.ndarray:
    """The inner product of two outputs."""
    w = 1 / (1 + (n - 1) * n ** -np.asarray(product))
    D = w - (1 - w) / (n - 1)
    s = (1 + (n - 1) * RHO) / n
    return 1 - D**2 * (1 - RHO) / (D**2 + (1 - D**2) * s)


def answered(n: float, product: np.ndarray) -> np.ndarray:
    """The same by the layer itself."""
    beta = mf.scalings.logarithmic(n, product / (1 - RHO))
    return mf.attend(mf.SA(beta), mf.Equiangular(n, RHO)).rho


def answered_by_array(product: float) -> float:
    """The same for tokens sqrt(rho) e_0 + sqrt(1 - rho) e_i, with outputs of any length."""
    x = np.sqrt(1 - RHO) * np.eye(ARRAY, ARRAY + 1, 1)
    x[:, 0] = np.sqrt(RHO)
    beta = float(mf.scalings.logarithmic(ARRAY, product / (1 - RHO)))
    y = mf.attend(mf.SA(beta), mf.Tokens(x)).x
    return float(y[0] @ y[1] / np.linalg.norm(y[0]) / np.linalg.norm(y[1]))


def run(out: Path) -> list[Row]:
    """Ask the layers, draw long_context.png, compare."""
    found = {n: answered(n, PRODUCTS) for n in NUMBERS}
    draw(found).savefig(out / "long_context.png")
    middle = float(answered(1e64, np.array(1.0)))
    return [
        *(
            Row(f"n = {n:g}: largest error", float(np.abs(rho - exact(n, PRODUCTS)).max()), 0.0,
                1e-12)
            for n, rho in found.items()
        ),
        *(
            Row(f"{ARRAY} arrays, gamma (1 - rho) = {p:g}", answered_by_array(p),
                float(exact(ARRAY, p)), 1e-11)
            for p in (0.8, 1.0, 1.2)
        ),
        Row("at the transition, n = 1e64", middle, 4 * RHO / (1 + 3 * RHO), 1e-12),
    ]  # fmt: skip


def draw(found: dict[float, np.ndarray]):
    """Inner products over gamma (1 - rho), and their limit."""
    with theme.style():
        page = theme.figure(width=5.2, height=3.2)
        ax = page.subplots()
        ax.plot([0.4, 1, 1, 1.6], [1, 1, RHO, RHO], color=theme.INK, lw=0.8, dashes=(4, 3),
                label="limit")  # fmt: skip
        for colour, (n, rho) in zip(theme.ordered_colours(len(found)), found.items(), strict=True):
            ax.plot(PRODUCTS, rho, color=colour, label=f"$n = 10^{{{np.log10(n):.0f}}}$")
        ax.plot(1, 4 * RHO / (1 + 3 * RHO), "o", color=theme.INK, mfc="white", zorder=5,
                label=r"limit at 1, $4\rho/(1 + 3\rho)$")  # fmt: skip
        ax.set_title(rf"equiangular tokens, $\rho = {RHO:g}$")
        ax.set(xlabel=r"$\gamma (1 - \rho)$", ylabel=r"$\langle y_i, y_j\rangle$ of two outputs")
        ax.legend(loc="lower left")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
