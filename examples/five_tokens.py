r"""
Five tokens merge one after the other, and the last pair takes fifty times as long
==================================================================================

Softmax attention at :math:`\beta = 4` on the circle. Merged are tokens with
:math:`\langle x_i, x_j\rangle > 0.9999`. The times are known from another program (an explicit
method of order 8 with error control). While clusters of masses :math:`m_a` are far from each other
the energy :math:`\frac{1}{n^2} \sum_{ij} e^{\beta (\langle x_i, x_j\rangle - 1)}` rests at
:math:`\sum_a m_a^2`: for two and three of five tokens at 0.52. Euler's method with steps of 0.1 is
11 % late at the last step.

:Source: Geshkovski, Koubbi, Polyanskiy and Rigollet, arXiv:2410.06833, the figure of five tokens;
    survey, section 5.2 and figure 2.
:Run time: 1 s, ``python examples/five_tokens.py``
:Look at: the plateau of two clusters, which lasts longer than all before it.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

BETA = 4.0
ANGLES = (0.062197143764, 0.214322973423, 1.819122620804, 2.911071009455, -3.095248345473)
TIMES = {4: 2.43089, 3: 3.72889, 2: 6.34850, 1: 329.51642}  # clusters left: when
MERGED = float(np.arccos(0.9999))


def energy(tokens: mf.Tokens) -> float:
    """1 if all tokens are at one point."""
    return float(np.exp(BETA * (tokens.x @ tokens.x.T - 1)).mean())


def run(out: Path) -> list[Row]:
    """Solve, draw five_tokens.png, compare."""
    tokens = mf.Tokens.on_circle(ANGLES)
    t = np.concatenate([[0.0], np.geomspace(0.05, 600, 400)])
    events = mf.merge_events(5, angle=MERGED)
    model = mf.Transformer(mf.SA(BETA))
    solution = mf.solve(model, tokens, (0, t[-1]), t_eval=t, events=events, rtol=1e-11)
    times = [float(found[0]) for found in solution.t_events]
    draw(solution, times).savefig(out / "five_tokens.png")
    between = [np.sqrt(a * b) for a, b in zip(times, [*times[1:], 600], strict=True)]
    levels = [energy(solution[int(np.abs(solution.t - time).argmin())]) for time in between]
    return [
        *(
            Row(f"time at which {left} are left", time, known, 1e-5, relative=True)
            for (left, known), time in zip(TIMES.items(), times, strict=True)
        ),
        *(
            Row(f"energy while {left} are left", level, "", remark="shown")
            for left, level in zip(TIMES, levels, strict=True)
        ),
        Row("energy at the end", energy(solution.final), 1.0, 1e-9),
    ]


def draw(solution: mf.Solution, times: list[float]):
    """Angles and energy over logarithmic time."""
    with theme.style():
        page = theme.figure(width=6.4, height=4.0)
        top, bottom = page.subplots(2, 1, sharex=True, height_ratios=[1.2, 1])
        angles = np.array([np.unwrap(np.arctan2(*state.x.T[::-1])) for state in solution])
        angles = np.unwrap(angles, axis=0)
        for i, colour in enumerate(theme.PALETTE[:5]):
            top.semilogx(solution.t[1:], angles[1:, i], color=colour)
        bottom.semilogx(solution.t[1:], [energy(state) for state in solution][1:], color=theme.INK)
        for ax in (top, bottom):
            for time in times:
                ax.axvline(time, color=theme.FAINT, lw=0.7, dashes=(4, 3), zorder=0)
        for left, time in zip(TIMES, times, strict=True):
            bottom.text(time * 1.06, 0.06, f"{left}", fontsize=9, color=theme.INK)
        top.set(ylabel=r"angle $\theta_i$")
        bottom.set(xlabel=r"time $t$, and the number of clusters that are left", ylabel="energy",
                   ylim=(0, 1.05), xlim=(0.05, 600))  # fmt: skip
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
