r"""
A transition path over the barrier (movie)
==========================================

At :math:`\beta = 4`, :math:`\kappa = 0.402` the uniform state of noisy USA and a state with one
cluster are both stable. Densities cannot leave either state, but finitely many tokens can. Their
most likely path climbs to the saddle against the flow, and then descends with it. The barrier and
the order parameter at the saddle are compared with an independent computation, by bisection of the
fixed points of the moments.

:Source: Survey, section 7; Gvalani and Schlichting, arXiv:1905.11823.
:Run time: 10 s, ``python examples/over_the_barrier.py``
:Look at: the small order parameter of the saddle, from which the flow leads to the cluster.
"""

from pathlib import Path

import numpy as np
from movies import movie_path, write_movie
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

BETA, KAPPA = 4.0, 0.402
ORDER, BARRIER = 0.2201262640, 0.0011400484279  # at the saddle
FRAMES = 60
AROUND = np.linspace(-np.pi, np.pi, 361)


def run(out: Path) -> list[Row]:
    """Find the path, write the movie and over_the_barrier.png, compare."""
    model = mf.Transformer(mf.USA(BETA), KAPPA)
    states = [state for state in mf.stationary_states(model, mf.Circle(32)) if state.stable]
    states.sort(key=lambda state: state.order_parameter)
    path = mf.transition_path(states[0], states[-1])
    path.plot().savefig(out / "over_the_barrier.png")
    length = path.data.length.values
    places = np.linspace(0, length[-1], FRAMES)
    images = [int(np.abs(length - place).argmin()) for place in places]
    with theme.style():
        page, show = stage(path, images)
        write_movie(page, show, FRAMES, movie_path(out, "over_the_barrier"))
    energy = path.data.free_energy.values
    return [
        Row("barrier", path.barrier, BARRIER, 1e-9),
        Row("order at the saddle", path.saddle.state.order_parameter, ORDER, 1e-9),
        Row("highest image above the start", float(np.max(energy) - energy[0]), BARRIER, 1e-6),
        Row("images across the flow: largest d_t mu", path.residual, 0.0, 1e-4),
    ]


def stage(path: mf.TransitionPath, images: list[int]):
    """The moving figure, and what sets it to a frame: the place on the path, and the density."""
    length, energy = path.data.length.values, path.data.free_energy.values
    order, last = path.data.order_parameter.values, path.densities[-1]
    phase = np.angle(np.exp(1j * AROUND) @ last.at(mf.Circle.embed(AROUND)))
    page = theme.figure(width=7.4, height=3.2)
    left, right = page.subplots(1, 2)
    left.plot(length, 1e3 * (energy - energy[0]), color=theme.INK)
    (point,) = left.plot([], [], "o", color=theme.PALETTE[1], markersize=8)
    left.set(xlabel="length of the path", ylabel=r"$10^3\,(F(\mu) - F(a))$")
    (graph,) = right.plot(AROUND, 0 * AROUND, color=theme.PALETTE[0])
    top = float(last.at(mf.Circle.embed(AROUND)).max())
    right.set(xlabel=r"angle $\theta$", ylabel="density", xlim=(-np.pi, np.pi), ylim=(0, 1.1 * top))
    right.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    clock = page.suptitle(" ")

    def show(frame: int) -> None:
        i = images[frame]
        point.set_data([length[i]], [1e3 * (energy[i] - energy[0])])
        graph.set_ydata(path.densities[i].at(mf.Circle.embed(AROUND + phase)))
        clock.set_text(f"$r = {order[i]:.3f}$")

    return page, show


if __name__ == "__main__":
    run_alone(__doc__, run)
