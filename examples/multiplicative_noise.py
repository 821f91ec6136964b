r"""
Multiplicative noise: even scales split the onset of order, odd ones undo it
============================================================================

Under the scale :math:`s = 1 + 0.3 x_1^2` the disordered state is proportional to :math:`1/s` in the
sense of Stratonovich and to :math:`1/s^2` in the sense of Ito. In the Kuramoto model order along
:math:`x_1` begins before order across it (Stratonovich), or at the same :math:`\kappa` (Ito). Under
:math:`s = 1 + a x_1` there is no onset. The pitchfork splits into a smooth branch and a branch that
begins at a fold, at :math:`2 + 3 (a/2)^{2/3}` for small a. Onsets are compared with quadratures,
folds with this law.

:Source: Survey, end of section 7, which asks for multiplicative noise.
:Run time: 4 s, ``python examples/multiplicative_noise.py``
:Look at: the pitchfork, which splits into two branches.
"""

from pathlib import Path

import numpy as np
from phase_diagrams_noise import draw_branches
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

CIRCLE = mf.Circle(32)
EVEN, ODD, SIZES = 0.3, 0.02, (0.005, 0.02, 0.05)
SENSES = {"Stratonovich": mf.noise.MultiplicativeStratonovich, "Ito": mf.noise.MultiplicativeIto}


def even(x: np.ndarray) -> np.ndarray:
    return 1 + EVEN * x[..., 0] ** 2


def odd(a: float):
    return lambda x: 1 + a * x[..., 0]


def run(out: Path) -> list[Row]:
    """Follow the branches, draw them, compare."""
    splits, rows = {}, []
    for power, (sense, noise) in enumerate(SENSES.items(), 1):
        diagram = splits[sense] = mf.branches(
            mf.Kuramoto(), CIRCLE, (2.0, 3.2), noise=noise(even), secondary=False
        )
        found = {onset.order: onset.value for onset in diagram.special("bifurcation", 0)}
        for order, axis in ((1, "first"), (2, "second")):
            name = f"onset along the {axis} axis, {sense}"
            rows.append(Row(name, found[order], exact_onset(power, order), 1e-9))
    halves = {a: imperfect(a) for a in SIZES}
    halves[ODD].save(out / "multiplicative_noise.nc")
    folds = np.array([min(s.value for s in half.special("fold")) for half in halves.values()])
    for a, fold in zip(SIZES, folds, strict=True):
        leading = 2 + 3 * (a / 2) ** (2 / 3)
        rows.append(Row(f"fold, scale 1 + {a} x_1", fold, leading, (a / 2) ** (4 / 3) * 5))
    figure(splits, halves[ODD], folds).savefig(out / "multiplicative_noise.png")
    return rows


def imperfect(a: float) -> mf.Diagram:
    noise = mf.noise.MultiplicativeStratonovich(odd(a))
    if a == ODD:
        return mf.branches(mf.Kuramoto(), CIRCLE, (1.5, 2.8), noise=noise)
    span = 1.8, 2 + 6 * (a / 2) ** (2 / 3)
    return mf.branches(mf.Kuramoto(), CIRCLE, span, noise=noise, secondary=False)


def exact_onset(power: int, order: int) -> float:
    """Where order along an axis begins on the state 1/s^power, from h = kappa mu (A - int A dmu).

    Along the first axis A' = -sin/s^2 and int cos h = 1; along the second A' = cos/s^2 and int sin
    h = 1.
    """
    theta = 2 * np.pi * np.arange(1024) / 1024
    x = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    s = even(x)
    slope = (-np.sin(theta) if order == 1 else np.cos(theta)) / s**2
    A = np.fft.irfft(np.append(0, np.fft.rfft(slope)[1:] / (1j * np.arange(1, 513))))
    mu = s**-power / (s**-power).sum()
    return float(1 / (mu @ (x[:, order - 1] * (A - A @ mu))))


def figure(splits: dict, half: mf.Diagram, folds: np.ndarray) -> theme.PaperFigure:
    """Order under an even scale in both senses, the imperfect pitchfork, and its folds."""
    with theme.style():
        page = theme.figure(width=9.0, height=2.6)
        *both, third, last = page.subplots(1, 4)
        for ax, (sense, diagram) in zip(both, splits.items(), strict=True):
            draw_branches(ax, diagram, "order_parameter")
            ax.set(xlabel=r"inverse noise $\kappa$", ylabel=r"$|\int x\,d\mu|$", xlim=diagram.span)
            ax.set(title=rf"{sense.replace('Ito', 'Itô')}, $s = 1 + {EVEN}\,x_1^2$")
        draw_branches(third, half, "moments")
        third.set(xlabel=r"inverse noise $\kappa$", ylabel=r"$\int x_1\,d\mu$", xlim=half.span)
        third.set(title=rf"Stratonovich, $s = 1 + {ODD}\,x_1$")
        a = np.array(SIZES)
        last.loglog(a, folds - 2, "o", mfc="white", mec=theme.INK, ms=4, label="fold")
        last.loglog(a, 3 * (a / 2) ** (2 / 3), color=theme.PALETTE[1], label=r"$3\,(a/2)^{2/3}$")
        last.set(xlabel="$a$", ylabel=r"$\kappa - 2$", title="$s = 1 + a\\,x_1$")
        last.set(
            xticks=SIZES, xticklabels=map(str, SIZES), yticks=(0.05, 0.1, 0.2), xlim=(0.004, 0.065)
        )
        last.set(yticklabels=("0.05", "0.1", "0.2"), ylim=(0.045, 0.3))
        last.minorticks_off()
        last.legend()
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
