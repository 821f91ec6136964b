r"""
Hysteresis (movie): order appears late as the noise falls and disappears late as it rises
=========================================================================================

At :math:`\beta = 4` the uniform state of noisy USA loses its stability at
:math:`\kappa_1 = \beta/I_1(\beta) = 0.40986`, and ordered states exist from the fold 0.38707 on.
:math:`\kappa` rises slowly from 0.400 to 0.440 and then falls to 0.375. On the way up the order
parameter is small, and follows the linear law
:math:`\log r = \log r_0 + \int (I_1(\beta)/\beta - 1/\kappa(t))\, dt`. It first decays; order
appears only when later growth has compensated for this decay. On the way down order lasts until the
fold. The run is compared with the linear law at :math:`\kappa_1`, and with the stationary state at
0.40 (computed by ``stationary.py``), from which it differs by at most 0.01.

:Source: Survey, section 7, equation (9); Balasubramanian, Banerjee and Rigollet, arXiv:2510.20094.
:Run time: 12 s, ``python examples/hysteresis_loop.py``
:Look at: the point, which jumps to the upper branch after the lower branch has lost its stability,
    and falls where the upper branch ends.
"""

from pathlib import Path

import numpy as np
from movies import movie_path, write_movie
from report import Row, run_alone
from scipy.integrate import quad
from scipy.special import iv
from stationary import stationary

import meanfield as mf
from meanfield.plotting import theme

BETA, START, TOP, BOTTOM, SPEED = 4.0, 0.400, 0.440, 0.375, 4e-4
ONSET = BETA / iv(1, BETA)
TURN, END = (TOP - START) / SPEED, (2 * TOP - START - BOTTOM) / SPEED
TIMES = np.linspace(0, END, 61)
AROUND = np.linspace(-np.pi, np.pi, 361)
SIZE = 5e-3


def kappa(t: float) -> float:
    """Up, then down."""
    return TOP - SPEED * abs(t - TURN)


def run(out: Path) -> list[Row]:
    """Solve, find the branches, write the movie and hysteresis_loop.png, compare."""
    circle = mf.Circle(32)
    start = circle.density(lambda theta: 1 + 2 * SIZE * np.cos(theta))
    model = mf.Transformer(mf.USA(BETA), kappa=kappa)
    at_onset, back = (ONSET - START) / SPEED, 2 * TURN  # kappa_1 upwards; 0.40 downwards
    saved = np.unique([*TIMES, at_onset, back])
    solution = mf.solve(model, start, (0, END), t_eval=saved, rtol=1e-8)
    r = np.array([abs(state.moment(1)) for state in solution])
    branches = ordered_states()
    draw(solution, r, branches).savefig(out / "hysteresis_loop.png")
    with theme.style():
        page, show = stage(solution, r, branches)
        write_movie(page, show, len(solution), movie_path(out, "hysteresis_loop"))
    grown, _ = quad(lambda t: iv(1, BETA) / BETA - 1 / kappa(t), 0, at_onset)
    k = np.array([kappa(t) for t in solution.t])
    up, down = k[np.argmax(r > 0.3)], k[np.flatnonzero(r > 0.3)[-1]]
    order = {t: float(r[np.searchsorted(solution.t, t)]) for t in (at_onset, back)}
    return [
        Row("log r at kappa_1 on the way up", float(np.log(order[at_onset])),
            float(np.log(SIZE) + grown), 1e-3),
        Row("r at kappa = 0.40 on the way down", order[back], stationary(BETA, START, 2.5).order,
            0.01),
        Row("r at kappa = 0.40 on the way up", float(r[0]), "", remark="the start"),
        Row("kappa at which r rises above 0.3", float(up), "", remark="shown"),
        Row("kappa at which r falls below 0.3", float(down), "", remark="shown"),
    ]  # fmt: skip


def ordered_states() -> list[tuple[np.ndarray, np.ndarray, bool]]:
    """kappa, r and stability of the ordered branch, on both sides of the fold."""
    diagram = mf.branches(mf.USA(BETA), mf.Circle(16), kappa=(BOTTOM - 0.005, TOP + 0.005))
    found = []
    for _, branch in diagram.data.groupby("branch"):
        k, r = branch.kappa.values, branch.order_parameter.values
        if r.max() > 0.1:
            fold = int(k.argmin())
            parts = (slice(0, fold + 1), slice(fold, None))
            found += [(k[part], r[part], bool(r[part].max() > 0.65)) for part in parts]
    return found


def scene(ax, branches) -> None:
    """The branches: stable ones are solid."""
    dashed = {"color": theme.INK, "lw": 1.0, "dashes": (4, 3)}
    for k, r, stable in branches:
        ax.plot(k, r, **({"color": theme.INK, "lw": 1.2} if stable else dashed))
    ax.plot([BOTTOM, ONSET], [0, 0], color=theme.INK, lw=1.2)
    ax.plot([ONSET, TOP + 0.005], [0, 0], **dashed)
    ax.set(xlabel=r"inverse noise $\kappa$", ylabel="order parameter $r$", ylim=(-0.03, 1),
           xlim=(BOTTOM - 0.002, TOP + 0.002))  # fmt: skip


def draw(solution: mf.Solution, r: np.ndarray, branches):
    """The whole loop."""
    k = np.array([kappa(t) for t in solution.t])
    turn = int(k.argmax())
    with theme.style():
        page = theme.figure(width=4.6, height=3.2)
        ax = page.subplots()
        scene(ax, branches)
        ax.plot(k[: turn + 1], r[: turn + 1], color=theme.PALETTE[0], label="up", lw=2)
        ax.plot(k[turn:], r[turn:], color=theme.PALETTE[1], label="down", lw=2)
        ax.legend(loc="upper left")
    return page


def stage(solution: mf.Solution, r: np.ndarray, branches):
    """The moving figure, and what sets it to a time: the point on the branches, and the density."""
    k = np.array([kappa(t) for t in solution.t])
    page = theme.figure(width=7.4, height=3.2)
    left, right = page.subplots(1, 2)
    scene(left, branches)
    (trail,) = left.plot([], [], color=theme.PALETTE[0], lw=1.6)
    (point,) = left.plot([], [], "o", color=theme.PALETTE[1], markersize=8)
    (graph,) = right.plot(AROUND, 0 * AROUND, color=theme.PALETTE[0])
    right.set(xlabel=r"angle $\theta$", ylabel="density", xlim=(-np.pi, np.pi), ylim=(0, 9))
    right.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
    clock = page.suptitle(" ")

    def show(i: int) -> None:
        trail.set_data(k[: i + 1], r[: i + 1])
        point.set_data(k[[i]], r[[i]])
        graph.set_ydata(solution[i].at(mf.Circle.embed(AROUND)))
        clock.set_text(rf"$\beta = {BETA:g}$, $\kappa = {k[i]:.4f}$, $t = {solution.t[i]:.0f}$")

    return page, show


if __name__ == "__main__":
    run_alone(__doc__, run)
