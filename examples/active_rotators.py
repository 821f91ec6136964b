r"""
Active rotators: rest, fold and oscillation
===========================================

Noisy oscillators :math:`d\theta = (w - \tfrac12 \sin\theta)\, dt + \ldots` that attract each other,
with the drift :math:`2 K[\mu] + w - \tfrac12 \sin\theta`. For small :math:`w` the density rests;
for large :math:`w` it oscillates. The plane of :math:`w` and :math:`\kappa` has a line of Hopf
points, at which small oscillations begin, and a line of folds, at which the period of the
oscillation is infinite (SNIC). Both lines meet near a cusp (star) and a Bogdanov-Takens point
(diamond).

Compared with time stepping: the period of one cycle, the return of its density, and its extremes
of the order parameter. Compared with the first Lyapunov coefficient: the amplitude near the Hopf
point.

:Source: Shinomoto and Kuramoto, Prog. Theor. Phys. 75 (1986); Kuznetsov, Elements of Applied
    Bifurcation Theory (2004).
:Run time: 30 s, ``python examples/active_rotators.py``
:Look at: where both lines end, and the cycle that begins slowly and then turns fast.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

CIRCLE = mf.Circle(12)
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
PULL = np.array([0.5, 0.0])
DRIFT, NOISE = 0.8, 1.4  # w and kappa of the cycle that is drawn


def rotators(w: float, kappa: float = 1.4) -> mf.Transformer:
    """2 K[mu] + w - sin(theta)/2, with the noise 1/kappa."""
    return mf.Transformer(2.0 * mf.Kuramoto() + mf.Field(lambda x: w * (x @ TURN.T) + PULL), kappa)


def run(out: Path) -> list[Row]:
    """Compute the lines, one cycle and a branch of cycles, draw, and compare."""
    plane = mf.phase_diagram(rotators, CIRCLE, (0.35, 0.7), kappa=(0.9, 3.0), places=9)
    cycle = mf.cycle(rotators(DRIFT, NOISE), CIRCLE.von_mises(0.0, 0.3))
    points = mf.branches(rotators(DRIFT), CIRCLE, vary={"kappa": (1.1, 1.2)})
    (hopf,) = points.special("Hopf")
    branch = mf.cycles(rotators(DRIFT), hopf, (1.1, 2.0), tolerance=1e-7, max_step=0.08)
    figure(plane, cycle, branch).savefig(out / "active_rotators.png")
    return compared(cycle, hopf, branch)


def compared(cycle: mf.Cycle, hopf: mf.SpecialPoint, branch: mf.CycleBranch) -> list[Row]:
    """The cycle beside one period of `solve`, and the first cycle beside its normal form."""
    start, period = cycle.at(0.0), cycle.period
    times = np.linspace(0, period, 1001)
    stepped = mf.solve(cycle.model, start, (0, period), t_eval=times, rtol=1e-12)
    moved = max(abs(stepped.final.moment(k) - start.moment(k)) for k in (1, 2, 3))
    orders = [abs(state.moment(1)) for state in stepped.states]
    least, largest = cycle.extremes(lambda state: abs(state.moment(1)))
    near = [
        mf.stationary(rotators(DRIFT, hopf.value + step), hopf.state.density).stability(1)
        for step in (-1e-4, 1e-4)
    ]
    growth = [each.eigenvalues[0] for each in near]
    slope, rate = (growth[1].real - growth[0].real) / 2e-4, np.abs(np.imag(growth)).mean()
    square = 2 * slope * (branch.data.kappa.values[0] - hopf.value)
    square /= -mf.first_lyapunov(hopf) * rate
    return [
        Row("moments after one period of the cycle, change", moved, 0.0, 1e-8),
        Row("least order parameter on the cycle", least, min(orders), 1e-5),
        Row("largest order parameter on the cycle", largest, max(orders), 1e-5),
        Row("multiplier of shifts in time", abs(cycle.multipliers[0]), 1.0, 1e-8),
        Row("amplitude of the first cycle", branch.data.amplitude.values[0], square**0.5, 1e-3),
    ]


def figure(
    plane: mf.NoisePhaseDiagram, cycle: mf.Cycle, branch: mf.CycleBranch
) -> theme.PaperFigure:
    """The plane of w and kappa, extremes of the order parameter, and one cycle."""
    with theme.style():
        page = theme.figure(width=8.4, height=3.0)
        left, middle, right = page.subplots(1, 3)
        plane.plot(ax=left)
        left.set(xlabel="drift $w$", ylabel=r"inverse noise $\kappa$", title="")
        left.get_legend().remove()
        white = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
        for place, words in (((0.37, 2.4), "rest"), ((0.52, 1.9), "oscillation"),
                             ((0.37, 1.35), "rest"), ((0.46, 2.7), "fold (SNIC)"),
                             ((0.58, 1.36), "Hopf")):  # fmt: skip
            left.text(*place, words, bbox=white)
        branch.plot("order_parameter", ax=middle)
        phases = np.linspace(0, 1, 201)
        angles = np.linspace(-np.pi, np.pi, 181)
        points = CIRCLE.embed(angles)
        values = np.array([cycle.at(float(phase)).at(points) for phase in phases])
        mesh = right.pcolormesh(phases * cycle.period, angles, values.T, cmap=theme.DENSITY_MAP,
                                rasterized=True)  # fmt: skip
        page.colorbar(mesh, ax=right, label="density")
        right.set(xlabel="time $t$", ylabel=r"angle $\theta$")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
