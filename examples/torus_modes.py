r"""
Modes in resonance on tori of one and two angles
================================================

A wave excites its square, a second wave with a times the strength of attraction:

.. math:: W(z) = \cos z + a \cos 2z, \qquad W(z) = \cos z_1 + \cos z_2 + a \cos z_1 \cos z_2.

The uniform state loses its stability at :math:`\kappa = 2`, and a branch of the amplitude t begins
there as :math:`\kappa = 2 (1 + c_2 t^2)`, with

.. math:: c_2 = \frac{1 - 2a}{4 - 4a}, \qquad c_2 = \frac{2 - 5a}{16 - 8a}.

The transition is therefore continuous up to :math:`a = 1/2` and :math:`a = 2/5`, respectively, and
discontinuous beyond: the closer the second wave is to its onset, the further the branch turns below
2. Compared are :math:`c_2` from the normal form, and the transitions at a = 0.8. By quadrature, the
transition is the least :math:`\kappa` at which a density has the free energy of the uniform one.

:Source: Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020).
:Run time: 15 s, ``python examples/torus_modes.py``
:Look at: the zeros of the curves on the left; on the right, at a = 0.8, branches that turn back
    below 2, with a jump at the diamond.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.optimize import minimize

import meanfield as mf
from meanfield.bifurcation.bases import basis_on
from meanfield.bifurcation.families import equation_of
from meanfield.bifurcation.normal_forms import normal_form
from meanfield.plotting import theme

SYMMETRY = {1: "even", 2: "square"}
STRENGTHS = np.linspace(0.05, 0.85, 9)
SHOWN = 0.8


def kernel(a: float, m: int) -> mf.PeriodicKernel:
    """W on the torus of m angles."""
    if m == 1:
        return mf.PeriodicKernel(lambda z: np.cos(z) + a * np.cos(2 * z), circles=1)
    return mf.PeriodicKernel(lambda z, w: np.cos(z) + np.cos(w) + a * np.cos(z) * np.cos(w))


def measured(a: float, m: int) -> float:
    """c_2 of the branch of the first wave."""
    basis = basis_on(mf.Torus(8, m), SYMMETRY[m])
    return normal_form(equation_of(kernel(a, m), basis), 1).quadratic


def closed(a: np.ndarray, m: int) -> np.ndarray:
    """c_2 in closed form."""
    return (1 - 2 * a) / (4 - 4 * a) if m == 1 else (2 - 5 * a) / (16 - 8 * a)


def diagram(a: float, m: int) -> mf.Diagram:
    """Branches from the uniform state."""
    options = {"symmetry": SYMMETRY[m], "secondary": False}
    return mf.branches(kernel(a, m), mf.Torus(8, m), kappa=(1.5, 2.4), **options)


def least(a: float, m: int) -> float:
    """Least kappa at which a density exp(b f + c g)/Z has the free energy of the uniform one."""
    x = 2 * np.pi * np.arange(96) / 96
    f, g = np.cos(x), np.cos(2 * x)
    if m == 2:
        f, g = f[:, None] + f, f[:, None] * f

    def kappa(z: np.ndarray) -> float:
        b, c = z
        return float((m * b**2 / 2 + c**2 / (2 * a)) / np.log(np.exp(b * f + c * g).mean()))

    options = {"xatol": 1e-9, "fatol": 1e-15}
    return float(minimize(kappa, (1.0, 0.5), method="Nelder-Mead", options=options).fun)


def run(out: Path) -> list[Row]:
    """Expand and follow branches, draw torus_modes.png, compare."""
    strong = {m: diagram(SHOWN, m) for m in SYMMETRY}
    c_2 = {m: np.array([measured(a, m) for a in STRENGTHS]) for m in SYMMETRY}
    figure(c_2, strong).savefig(out / "torus_modes.png")
    rows = []
    for m, found in strong.items():
        error = np.abs(c_2[m] - closed(STRENGTHS, m)).max()
        kappa = found.transition().kappa
        rows += [
            Row(f"m = {m}, error of c_2", error, 0, 1e-12),
            Row(f"m = {m}, transition at a = {SHOWN}", kappa, least(SHOWN, m), 1e-9),
            Row(f"m = {m}, onset", found.special("bifurcation")[0].value, 2, 1e-12),
        ]
    return rows


def figure(c_2: dict[int, np.ndarray], strong: dict[int, mf.Diagram]) -> theme.PaperFigure:
    """c_2 over a, and the diagrams of one and two angles."""
    with theme.style():
        page = theme.figure(width=7.4, height=2.6)
        left, *others = page.subplots(1, 3)
        for m, values in c_2.items():
            a = np.linspace(STRENGTHS[0], STRENGTHS[-1], 200)
            (line,) = left.plot(a, closed(a, m), label=f"$m = {m}$")
            left.plot(STRENGTHS, values, "o", color=line.get_color())
        left.axhline(0, color="0.6", lw=0.6)
        left.set(xlabel="$a$", ylabel="$c_2$", title="how branches begin")
        left.legend()
        for ax, (m, found) in zip(others, strong.items(), strict=True):
            found.plot("order_parameter", ax=ax)
            ax.set(title=f"$m = {m}$, $a = {SHOWN}$")
            ax.get_legend().remove()
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
