r"""
Phase transitions on the torus: three waves with a strong or a weak resonance
=============================================================================

Points have two angles and attract each other by

.. math:: W(z) = \cos z_1 + \cos z_2 + a \cos(z_1 + z_2).

The waves (1, 0) and (0, 1) grow from the uniform state above :math:`\kappa = 2`, the wave (1, 1),
their sum, above :math:`2/a`. For :math:`a = 1` the three waves are equally strong and in resonance,
and the transition is discontinuous: a hexagonal lattice becomes the ground state before the uniform
state loses its stability. For small a the transition is continuous: by the normal form, lattices
branch towards :math:`\kappa > 2` if :math:`a < 1/3`.

For :math:`a = 1` states are compared with
:math:`\mu \propto e^{b (\cos x_1 + \cos x_2 + \cos(x_1 + x_2))}`, whose moment
:math:`r(b) = \int \cos x_1\, d\mu` is computed by quadrature. The states have
:math:`\kappa = b/r(b)`. The fold is the minimum of this function, and at the transition the free
energy is 0. For :math:`a = 0.3` there is no fold, for :math:`a = 0.36` there is one.

:Source: Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020).
:Run time: 20 s, ``python examples/torus_phases.py``
:Look at: the solid lines. On the left the ground state changes at the diamond, before the onset,
    and hysteresis ends at the fold, the square; on the right r grows continuously from 0.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.optimize import brentq, minimize_scalar

import meanfield as mf
from meanfield.plotting import theme

RESONANT, WEAK, STRONGER = 1.0, 0.3, 0.36  # a; the lattice turns to the other side at 1/3
SHOWN = 2.2
SPAN = (1.6, 2.4)


def diagram(a: float) -> mf.Diagram:
    """Branches of states that are even about a point."""
    kernel = mf.PeriodicKernel(lambda z, w: np.cos(z) + np.cos(w) + a * np.cos(z + w))
    return mf.branches(kernel, mf.Torus(8), kappa=SPAN, symmetry="even", secondary=False)


def lattice(found: mf.Diagram, kappa: float) -> mf.StationaryState:
    """The state of least free energy."""
    return min((state for _, state in found.states_at(kappa)), key=lambda s: s.free_energy)


def centred(density: mf.Density) -> mf.Density:
    """The density with its peak at 0."""
    torus, c = density.space, density.coefficients
    angles = np.angle(c[torus.places(np.eye(2, dtype=int))])
    return mf.Density(torus, c * np.exp(-1j * torus.waves @ angles))


def by_quadrature() -> tuple[float, float, float]:
    """Fold, transition and |int x dmu| at the kappa shown, of three equal waves."""
    x, y = np.meshgrid(*2 * [2 * np.pi * np.arange(128) / 128])
    sums = np.cos(x) + np.cos(y) + np.cos(x + y)

    def moment(b: float) -> float:
        law = np.exp(b * (sums - 3))
        return (law * np.cos(x)).mean() / law.mean()

    def kappa(b: float) -> float:
        return b / moment(b)

    def energy(b: float) -> float:
        entropy = 3 * b * moment(b) - np.log(np.exp(b * (sums - 3)).mean()) - 3 * b
        return entropy / kappa(b) - 1.5 * moment(b) ** 2

    fold = minimize_scalar(kappa, (0.1, 0.5, 3.0), options={"xtol": 1e-12})
    transition = kappa(brentq(energy, fold.x, 4.0, xtol=1e-14))
    shown = brentq(lambda b: kappa(b) - SHOWN, fold.x, 6.0, xtol=1e-14)
    return fold.fun, transition, moment(shown)


def run(out: Path) -> list[Row]:
    """Follow branches, draw torus_phases.png, compare."""
    resonant, weak, stronger = map(diagram, (RESONANT, WEAK, STRONGER))
    figure(resonant, weak).savefig(out / "torus_phases.png")
    fold, transition, order = by_quadrature()
    state = lattice(resonant, SHOWN)
    least = min(state.free_energy for _, state in weak.states_at(1.99))
    return [
        Row("a = 1, onset of the three waves", resonant.special("bifurcation")[0].value, 2, 1e-12),
        Row("a = 1, fold", resonant.special("fold")[0].value, fold, 1e-9),
        Row("a = 1, transition", resonant.special("transition")[0].value, transition, 1e-9),
        Row(f"a = 1, order at kappa = {SHOWN}", state.order_parameter, order, 1e-9),
        Row("a = 0.3, folds", len(weak.special("fold")), 0, 0),
        Row("a = 0.3, least free energy at kappa = 1.99", least, 0, 1e-12),
        Row("a = 0.36, folds", len(stronger.special("fold")), 1, 0),
    ]


def figure(resonant: mf.Diagram, weak: mf.Diagram) -> theme.PaperFigure:
    """Both diagrams, and maps of the ground states."""
    with theme.style():
        page = theme.figure(width=7.4, height=5.6)
        (top_left, top_right), (left, right) = page.subplots(2, 2)
        pairs = zip((resonant, weak), (top_left, top_right), (left, right), strict=True)
        for (found, above, below), a in zip(pairs, (RESONANT, WEAK), strict=True):
            found.plot("order_parameter", ax=above)
            above.set(title=f"$a = {a:g}$", ylim=(-0.25, 1.3))
            if a == RESONANT:  # what the legend of the other diagram lacks
                marks = {mark.get_label(): mark for mark in above.get_legend().legend_handles}
                both = "stable", "unstable", "uniform", "branch 1", "branch 2", "bifurcation"
                names = [name for name in marks if name not in both]
                above.legend([marks[name] for name in names], names, loc="upper left")
            centred(lattice(found, SHOWN).density).plot("map", ax=below)
            below.set(title=rf"ground state at $\kappa = {SHOWN}$", aspect="equal")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
