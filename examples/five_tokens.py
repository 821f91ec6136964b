r"""
Five tokens merge one after the other: the energy climbs a staircase
====================================================================

Softmax attention at :math:`\beta = 40` on the circle. The energy is
:math:`\sum_{ij} m_i m_j e^{\beta (\langle x_i, x_j\rangle - 1)}`: energy (3) of the survey, scaled
to be 1 at a point. While clusters of masses :math:`m_a` are far from each other it stays at
:math:`\sum_a m_a^2`, for times that grow like :math:`e^{c\beta}`, here up to :math:`10^{35}`. A
merging of two clusters adds :math:`2 m_a m_b`. Tokens closer than the angle :math:`10^{-8}` merge
(``merge=``); otherwise steps would have to resolve distances that no longer matter. The time of the
last merging is known: the angle :math:`\varphi` between two clusters of masses a and b follows
:math:`\dot\varphi = -\sin\varphi\left(\frac{a e}{b + a e} + \frac{b e}{a + b e}\right)`,
:math:`e = e^{\beta(\cos\varphi - 1)}`.

:Source: Survey, section 5.2, equation (6) and figure 2; Geshkovski, Koubbi, Polyanskiy and
    Rigollet, arXiv:2410.06833.
:Run time: 2 s, ``python examples/five_tokens.py``
:Look at: the plateaus on the logarithmic time axis, each far longer than all earlier ones.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.integrate import quad

import meanfield as mf
from meanfield.plotting import theme

BETA, END = 40.0, 1e40
ANGLES = (-2.2, -1.6, -0.6, 0.75, 2.3)
LEVELS = {5: 0.2, 4: 0.28, 3: 0.44, 2: 0.52, 1: 1.0}  # clusters left: sum of squares of masses
PAIR = 0.4, 0.6  # masses of the last two
MET, MERGED = 1e-3, 1e-8


def energy(tokens: mf.Tokens) -> float:
    """1 if all tokens are at one point."""
    weights = np.exp(BETA * (tokens.x @ tokens.x.T - 1))
    return float(tokens.masses @ weights @ tokens.masses)


def time_of_a_pair(gap: float) -> float:
    """How long two clusters of masses PAIR take from the angle `gap` until they have met."""
    a, b = PAIR

    def slowness(angle: float) -> float:
        e = np.exp(BETA * (np.cos(angle) - 1))
        return 1 / (np.sin(angle) * (a * e / (b + a * e) + b * e / (a + b * e)))

    return quad(slowness, MET, gap, points=[0.9 * gap, 0.99 * gap], epsabs=0, epsrel=1e-10)[0]


def run(out: Path) -> list[Row]:
    """Solve, draw five_tokens.png, compare."""
    tokens = mf.Tokens.on_circle(ANGLES)
    t = np.concatenate([[0.0], np.geomspace(0.1, END, 800)])
    model, events = mf.Transformer(mf.SA(BETA)), mf.merge_events(5, angle=MET)
    solution = mf.solve(model, tokens, (0, END), t_eval=t, events=events, merge=MERGED, rtol=1e-10)
    times = [float(found[0]) for found in solution.t_events]
    draw(solution, times).savefig(out / "five_tokens.png")
    between = [np.sqrt(a * b) for a, b in zip([1.0, *times], [*times, END], strict=True)]
    plateaus = [solution[int(np.abs(np.log(t[1:] / time)).argmin()) + 1] for time in between]
    angles = np.sort(np.arctan2(*plateaus[3].x.T[::-1]))
    last = time_of_a_pair(float(np.arccos(np.cos(angles[-1] - angles[0]))))
    return [
        *(
            Row(f"energy / (e^β/2β) while {left} {'is' if left == 1 else 'are'} left",
                energy(state), level, 1e-3 if left == 5 else 1e-8)
            for (left, level), state in zip(LEVELS.items(), plateaus, strict=True)
        ),
        *(
            Row(f"time at which {left} are left", time, "", remark="shown")
            for left, time in zip((4, 3, 2), times, strict=False)
        ),
        Row("time of the last merging", times[3], last, 1e-6, relative=True),
    ]  # fmt: skip


def draw(solution: mf.Solution, times: list[float]):
    """Angles and energy over logarithmic time."""
    with theme.style():
        page = theme.figure(width=6.4, height=4.2)
        top, bottom = page.subplots(2, 1, sharex=True, height_ratios=[1.1, 1])
        shown = solution.t > 0
        angles = np.array([np.arctan2(*state.x.T[::-1]) for state in solution])[shown]
        for i, colour in enumerate(theme.PALETTE[:5]):
            top.semilogx(solution.t[shown], angles[:, i], color=colour)
        energies = np.array([energy(state) for state in solution])[shown]
        bottom.semilogx(solution.t[shown], energies, color=theme.INK)
        for ax in (top, bottom):
            for time in times:
                ax.axvline(time, color=theme.FAINT, lw=0.7, dashes=(4, 3), zorder=0)
        for level in LEVELS.values():
            line = bottom.axhline(level, color=theme.FAINT, lw=0.5, zorder=0)
        line.set_label(r"$\sum_a m_a^2$ of the clusters")
        bottom.legend(loc="upper left")
        for left, begin in zip(LEVELS, [solution.t[1], *times], strict=True):
            top.text(begin * 1.6, 2.72, f"{left}", fontsize=9, color=theme.INK)
        top.set(ylabel=r"angle $\theta_i$", ylim=(-2.6, 3.2))
        top.set_title("number of clusters", loc="left", fontsize=9)
        bottom.set(xlabel="time $t$", ylabel=r"energy / $(e^\beta/2\beta)$",
                   ylim=(0, 1.08), xlim=(solution.t[1], END))  # fmt: skip
        page.suptitle(rf"Five tokens under SA, $\beta = {BETA:g}$")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
