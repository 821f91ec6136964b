r"""
Two close onsets make a transition discontinuous
================================================

Under :math:`W = \cos\theta + m \cos 2\theta` the uniform state loses its stability to degree 1 at
:math:`\kappa = 2` and to degree 2 at :math:`\kappa = 2/m`. For :math:`m > 1` each onset alone is a
supercritical pitchfork. A term :math:`a^2 b` of the free energy, however, couples both degrees, and
the transition is of first order if the onsets are close:

- for :math:`m \leq 1/2` it is continuous, to degree 1, up to a tricritical point;
- for :math:`1/2 < m < 1.2673` it is discontinuous, and farthest below the onset at :math:`m = 1`;
- beyond the end point of the first-order line it is continuous, to degree 2.

Dots are the transitions of single diagrams in :math:`\kappa`, of which two are shown. Near the
resonance the branch of the transition leaves the branch of degree 2 at an amplitude of
:math:`m - 1`.

:Source: Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020), for
    discontinuous transitions at resonances.
:Run time: 8 s, ``python examples/close_onsets.py``
:Look at: the first-order line, which is smooth where the onsets cross, at m = 1.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.optimize import fsolve

import meanfield as mf
from meanfield.plotting import phases, theme

SINGLE = (0.6, 0.8, 1.001, 1.1, 1.2)
BESIDE = (1.001, 1.3)


class Cosines(mf.ZonalDrift):
    """W = cos + m cos 2."""

    m: float

    def slope(self, t):
        return 1 + 4 * self.m * t


def equal_energy(m: float, guess: mf.StationaryState) -> float:
    """kappa of the state exp(a cos + b cos 2) with the free energy of the uniform one."""
    angles = np.pi * (np.arange(400) + 0.5) / 400
    first, second = np.cos(angles), np.cos(2 * angles)

    def residual(y: np.ndarray) -> list[float]:
        a, b, kappa = y
        law = np.exp(a * first + b * second)
        r1, r2 = (law * first).mean() / law.mean(), (law * second).mean() / law.mean()
        energy = kappa * (r1**2 + m * r2**2) / 2 - np.log(law.mean())
        return [a - kappa * r1, b - kappa * m * r2, energy]

    r = guess.legendre_moments
    start = [0.95 * guess.kappa * r[0], 0.95 * guess.kappa * m * r[1], 0.99 * guess.kappa]
    return float(fsolve(residual, start, xtol=1e-12)[2])


def run(out: Path) -> list[Row]:
    """Follow the lines and some diagrams, write close_onsets.png, compare."""
    plane = mf.phase_diagram(Cosines(1.0), mf.Circle(16), vary={"m": (0.3, 2.5)}, degrees=(1, 2))
    diagrams = {
        m: mf.branches(Cosines(m), mf.Circle(16), (1.4, 2.3)) for m in sorted({*SINGLE, *BESIDE})
    }
    figure(plane, diagrams).savefig(out / "close_onsets.png")
    rows = []
    for m in SINGLE:
        transition = diagrams[m].transition()
        state = min(diagrams[m].special("transition"), key=lambda s: s.value).state
        rows.append(Row(f"transition at m = {m:g}", transition.kappa, equal_energy(m, state), 1e-9))
        line = plane.kappa("transition", m)
        rows.append(Row(f"that of the phase diagram, m = {m:g}", line, transition.kappa, 1e-9))
    (corner,), (end,) = plane.tricritical, plane.end_points
    rows.append(Row("tricritical m", corner.beta, 0.5, 1e-9))
    m, onset = float(end.beta), 2 / float(end.beta)
    rows.append(
        Row("kappa at the end point of the line", plane.kappa("transition", m), onset, 1e-9)
    )
    return rows


def figure(plane: mf.PhaseDiagram, diagrams: dict[float, mf.Diagram]) -> theme.PaperFigure:
    """The plane of m and kappa, and two diagrams."""
    with theme.style():
        page = theme.figure(width=7.0, height=3.1)
        left, *others = page.subplots(1, 3, width_ratios=[1.5, 1, 1])
        phases(plane, ax=left)
        found = [diagrams[m].transition().kappa for m in SINGLE]
        left.plot(SINGLE, found, ".", color=theme.INK, ms=5, label="single diagrams")
        left.set(yscale="linear", xlim=(0.3, 1.8), ylim=(1.0, 2.4), title="")
        left.legend(loc="lower left", fontsize=6)
        for m, ax in zip(BESIDE, others, strict=True):
            diagrams[m].plot(y="free_energy", ax=ax)
            ax.set(title=f"m = {m:g}", xlim=(1.45, 2.1), ylim=(-0.021, 0.006))
        others[0].legend(
            handles=others[0].get_legend().legend_handles, loc="lower left", fontsize=6
        )
        others[1].get_legend().remove()
        others[1].set_ylabel("")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
