r"""
Where a Transformer normalises decides how fast its tokens gather
=================================================================

32 orthogonal tokens move under softmax attention with :math:`\beta = 1`; all their inner products
are equal, :math:`\rho`. Post-LN and nGPT keep tokens on the sphere, and :math:`1 - \rho` falls
exponentially. With a scaling by :math:`\sqrt{t + 1}` it falls like :math:`e^{-4\sqrt{t + 1}}`.
Under Pre-LN, Mix-LN and Peri-LN hidden states grow, and it falls like :math:`C/t^2`. At early times
Peri-LN and nGPT, which use only the direction of the output, are the fastest. Compared with an
independent integration at t = 1, 2, 5 and 10, and with the constants of late times.

:Source: Survey, section 6.2, equation (7) and the table of schemes; Karagodin, Geshkovski,
    Polyanskiy and Rigollet, arXiv:2510.22026.
:Run time: 2 s, ``python examples/normalisations.py``
:Look at: the straight lines, two exponentials on the left and three powers on the right.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

START, END = mf.Equiangular(32, 0.0), 200.0
TIMES = (1.0, 2.0, 5.0, 10.0)
SCHEMES = {  # 1 - rho at TIMES
    "Post-LN": (mf.PostLN(), (0.8481507, 0.4102272, 1.715751e-3, 7.802886e-8)),
    "nGPT": (mf.NGPT(1.0), (0.3456653, 0.05584784, 1.425545e-4, 6.472441e-9)),
    "√(t + 1)": (mf.SqrtScaling(), (0.8927758, 0.6739395, 0.1030260, 3.566186e-3)),
    "Pre-LN": (mf.PreLN(), (0.8621322, 0.5389413, 8.180274e-2, 1.590707e-2)),
    "Mix-LN, τ = 2": (mf.MixLN(2.0), None),
    "Peri-LN": (mf.PeriLN(), (0.4638771, 0.2005645, 4.235338e-2, 1.130432e-2)),
}
TOLERANCE = 5e-7  # relative: half of the last digit of the values
CONSTANT = 1.18302785  # (1 - rho) r^2, Pre-LN and Peri-LN


def run(out: Path) -> list[Row]:
    """Solve for all schemes, draw normalisations.png, compare."""
    t = np.unique(np.concatenate([np.linspace(0, 20, 201), np.geomspace(0.1, END, 200), TIMES]))
    runs = {name: solved(scheme, t) for name, (scheme, _) in SCHEMES.items()}
    draw(runs).savefig(out / "normalisations.png")
    rows = []
    for name, (_, known) in SCHEMES.items():
        if known:
            gaps = [float(runs[name][int(np.searchsorted(t, time))].gap) for time in TIMES]
            worst = max(abs(gap / value - 1) for gap, value in zip(gaps, known, strict=True))
            rows.append(Row(f"{name}: 1 - rho, largest relative error", worst, 0.0, TOLERANCE))
    finals = {name: runs[name].final for name in ("Pre-LN", "Peri-LN")}
    return [
        *rows,
        *(
            Row(f"{name}: (1 - rho) r^2 at t = {END:g}", float(end.gap * end.radius**2), CONSTANT,
                1e-4, relative=True)
            for name, end in finals.items()
        ),
    ]  # fmt: skip


def solved(scheme: mf.Normalisation, t: np.ndarray) -> mf.Solution:
    model = mf.Transformer(mf.SA(1.0), normalisation=scheme)
    return mf.solve(model, START, (0, END), t_eval=t, rtol=1e-11)


def draw(runs: dict[str, mf.Solution]):
    """1 - rho over time, and over logarithmic time."""
    with theme.style():
        page = theme.figure(width=7.4, height=3.2)
        left, right = page.subplots(1, 2, sharey=True)
        for i, (colour, (name, run)) in enumerate(zip(theme.PALETTE, runs.items(), strict=False)):
            gap = np.array([float(state.gap) for state in run])
            dashes = {"dashes": (5, 2)} if i >= 3 else {}
            for ax in (left, right):
                ax.plot(run.t, gap, color=colour, label=name, **dashes)
        left.set(xlabel="time $t$", ylabel=r"$1 - \rho$", xlim=(0, 20), ylim=(1e-8, 2),
                 yscale="log")  # fmt: skip
        right.set(xlabel="time $t$, logarithmic", xlim=(0.1, END), xscale="log")
        page.legend(*left.get_legend_handles_labels(), loc="outside right center")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
