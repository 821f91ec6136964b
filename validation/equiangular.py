"""Claim: `Equiangular` follows the scalar equations, at late times and for large n too.

Steps of rtol = 1e-13, from orthogonal tokens unless said otherwise.

1. The time at which inner products reach 0.999: tables for n = 32 and 128, beta from 0 to 9; for
   n = 10^6 and 10^12 by quadrature of 1/rho'. Asked: 1e-9; 1e-9, relative.
2. beta = 0: rho = (e^{2t} - 1)/(e^{2t} + n - 1), n up to 10^250, t up to 300. Asked: 1e-11 of rho
   and of 1 - rho, relative.
3. Six normalisations, n = 32, beta = 1: 1 - rho and r at t = 1, 2, 5, 10 by another integrator, and
   the printed values. Asked: 1e-9, relative; all printed digits.
4. Late times, where 1 - rho is far below rounding: (1 - rho) e^{2t} (Post-LN, nGPT), (1 - rho) e^{4
   sqrt(t + 1)} (square-root scaling), (1 - rho) r^2 (Pre-, Peri-LN) are the known constants, at
   t = 300, 10^4 and 10^6. Asked: 1e-7, relative.
5. Pre- and Peri-LN run through the same curve, d log r/d rho = (e^b + (n - 1) rho e^{b rho})/
   (2 e^{b rho} (1 - rho)(1 + (n - 1) rho)): r by quadrature where 1 - rho = 10^-1, ..., 10^-9.
   Asked: 1e-9, relative.
6. `Tokens` and `Equiangular` agree, also where tokens repel (beta < 0), from rho = -0.1 to 0.9, in
   the flow and layer by layer. Asked: 1e-10; 1e-13.

    python validation/equiangular.py [--figure FILE.png]    # 9 s

Exit code 1 on failure.

References: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, theorem 6.8; Karagodin,
Geshkovski, Polyanskiy and Rigollet, arXiv:2510.22026 (3, 4, 5).
"""

import argparse
import sys

import numpy as np
from _reduced_models import BETAS, TIMES, normalised, passage_time
from _report import Report, successful
from matplotlib.figure import Figure
from scipy.integrate import quad
from scipy.special import expit

import meanfield as mf
from meanfield.plotting import theme

DRIFTS = {"SA": mf.SA, "USA": mf.USA}
SCHEMES = {
    "PostLN": mf.PostLN(),
    "PreLN": mf.PreLN(),
    "PeriLN": mf.PeriLN(),
    "MixLN": mf.MixLN(2.0),
    "NGPT": mf.NGPT(),
    "SqrtScaling": mf.SqrtScaling(),
}
PRINTED = {  # 1 - rho at t = 1, 2, 5, 10
    "PostLN": (0.8481507, 0.4102272, 1.715751e-3, 7.8028862e-8),
    "PreLN": (0.8621322, 0.5389413, 8.180274e-2, 1.590707e-2),
    "PeriLN": (0.4638771, 0.2005645, 4.235338e-2, 1.130432e-2),
    "NGPT": (0.3456653, 0.05584784, 1.425545e-4, 6.4724415e-9),
    "SqrtScaling": (0.8927758, 0.6739395, 0.1030260, 3.566186e-3),
}
LATE = {  # a time, the constant there, and the exponent of which it is the factor
    "PostLN": (300.0, 37.856891, lambda t, state: 2 * t),
    "NGPT": (300.0, 3.1402034, lambda t, state: 2 * t),
    "SqrtScaling": (1e4, 2066.9162, lambda t, state: 4 * np.sqrt(t + 1)),
    "PreLN": (1e6, 1.1830278, lambda t, state: 2 * np.log(state.radius)),
    "PeriLN": (1e6, 1.1830278, lambda t, state: 2 * np.log(state.radius)),
}


def moved(drift, start, times, layer_norm=None, **options) -> mf.Solution:
    """The run at all these times."""
    model = mf.Transformer(drift, normalisation=layer_norm)
    return successful(
        mf.solve(model, start, (0, np.max(times)), t_eval=times, rtol=1e-13, **options)
    )


def reaching(gap: float):
    """An event that ends the run where 1 - rho falls to `gap`."""

    def function(_t, state):
        return state.log_gap - np.log(gap)

    function.terminal = True
    return function


def passages(report: Report) -> None:
    known = {
        (name, n, beta): (time, False)
        for (name, n), times in TIMES.items()
        for beta, time in zip(BETAS, times, strict=True)
    }
    for n in (1e6, 1e12):
        for name, beta in (("SA", 1), ("SA", 9), ("SA", 20), ("USA", 4)):
            known[name, n, beta] = passage_time(name, beta, n), True
    for (name, n, beta), (time, relative) in known.items():
        run = moved(DRIFTS[name](beta), mf.Equiangular(n, 0.0), [1e5], events=reaching(1e-3))
        label = f"{name}({beta:g}), n = {n:g}"
        numbers = {"predicted": time, "measured": run.t_events[0][0], "relative": relative}
        report.compare("time to 0.999", label, **numbers, tolerance=1e-9)


def large_numbers(report: Report) -> None:
    times = [1.0, 20.0, 300.0]
    for n in (2, 1e3, 1e12, 1e250):
        for t, state in zip(times, moved(mf.SA(0), mf.Equiangular(n, 0.0), times), strict=True):
            logit = 2 * t + np.log(-np.expm1(-2 * t)) - np.log(n)  # of rho/(1 - rho)
            label = f"beta = 0, n = {n:g}, t = {t:g}"
            for what, exact, found in (
                ("rho", expit(logit), state.rho),
                ("1 - rho", expit(-logit), state.gap),
            ):
                numbers = {"predicted": exact, "measured": found, "tolerance": 1e-11}
                report.compare(what, label, **numbers, relative=True)


def normalisations(report: Report) -> None:
    times = [1.0, 2.0, 5.0, 10.0]
    for name, scheme in SCHEMES.items():
        gaps, radii = normalised(name, times)
        run = moved(mf.SA(1), mf.Equiangular(32, 0.0), times, scheme)
        for i, (t, state) in enumerate(zip(times, run, strict=True)):
            label = f"{name}, t = {t:g}"
            numbers = {"predicted": gaps[i], "measured": state.gap, "tolerance": 1e-9}
            report.compare("1 - rho", label, **numbers, relative=True)
            numbers = {"predicted": radii[i], "measured": state.radius, "tolerance": 1e-9}
            report.compare("r", label, **numbers, relative=True)
            if name in PRINTED:
                numbers = {"predicted": PRINTED[name][i], "measured": state.gap}
                report.compare("printed", label, **numbers, tolerance=4e-7, relative=True)


def late_times(report: Report) -> None:
    for name, (t, constant, exponent) in LATE.items():
        end = moved(mf.SA(1), mf.Equiangular(32, 0.0), [t], SCHEMES[name]).final
        found = np.exp(end.log_gap + exponent(t, end))
        label = f"{name}, t = {t:g}, log(1 - rho) = {end.log_gap:.2f}"
        numbers = {"predicted": constant, "measured": found, "tolerance": 1e-7}
        report.compare("late constant", label, **numbers, relative=True)


def common_curve(report: Report, n: float = 32, beta: float = 2.0) -> None:
    def growth(x: float) -> float:  # d log r/dx, 1 - rho = e^-x
        gap = np.exp(-x)
        q, rho = np.exp(-beta * gap), 1 - gap
        return (1 + (n - 1) * rho * q) / (2 * q * (1 + (n - 1) * rho))

    for gap in (1e-1, 1e-3, 1e-6, 1e-9):
        r = np.exp(quad(growth, 0, -np.log(gap), epsabs=0, epsrel=1e-13, limit=200)[0])
        for name in ("PreLN", "PeriLN"):
            start, scheme = mf.Equiangular(n, 0.0), SCHEMES[name]
            run = moved(mf.SA(beta), start, [1e6], scheme, events=reaching(gap))
            label = f"{name}, 1 - rho = {gap:g}"
            numbers = {"predicted": r, "measured": run.final.radius, "tolerance": 1e-9}
            report.compare("r", label, **numbers, relative=True)


def real_tokens(report: Report) -> None:
    times = [0.5, 2.0, 4.0]
    for name, scheme in SCHEMES.items():
        for drift, rho in ((mf.SA(4), -0.1), (mf.SA(-2), 0.9), (mf.USA(1), 0.3)):
            start, worst = mf.Equiangular(8, rho), {}
            for way, options in (
                ("flow", {}),
                ("layers", {"scheme": mf.steppers.Layers, "dt": 0.25}),
            ):
                pair = [
                    moved(drift, s, times, scheme, **options) for s in (start, start.to_tokens())
                ]
                gaps = [np.abs(b.gram().G[0, 1:] - a.rho).max() for a, b in zip(*pair, strict=True)]
                worst[way] = max(gaps)
            for way, tolerance in (("flow", 1e-10), ("layers", 1e-13)):
                label = f"{name}, {drift!r}, rho = {rho:g}, {way}"
                numbers = {"predicted": 0, "measured": worst[way], "tolerance": tolerance}
                report.compare("Tokens - Equiangular", label, **numbers)


def draw(path: str) -> None:
    """1 - rho over time under all normalisations, and the times of clustering."""
    figure = Figure(figsize=(9, 3.4), dpi=200, layout="constrained")
    left, right = figure.subplots(1, 2)
    times = np.geomspace(0.1, 1e4, 200)
    for name, scheme in SCHEMES.items():
        run = moved(mf.SA(1), mf.Equiangular(32, 0.0), times, scheme)
        left.plot(times, [state.log_gap / np.log(10) for state in run], label=name)
    left.set(xscale="log", ylim=(-30, 1), xlabel="time $t$", ylabel=r"$\log_{10}(1 - \rho)$")
    left.set_title(r"SA, $\beta = 1$, $n = 32$")
    left.legend(fontsize=8)
    betas = np.linspace(0, 30, 121)
    for n in (8, 32, 1e3, 1e6, 1e12):
        exponent = f"10^{{{np.log10(n):.0f}}}" if n > 100 else f"{n:g}"
        found = [passage_time("SA", beta, n) for beta in betas]
        line = right.semilogy(betas, found, label=f"$n = {exponent}$")[0]
        marks = np.arange(0, 31, 5.0)
        ends = [mf.Equiangular(n, 0.0)] * len(marks)
        measured = [
            moved(mf.SA(beta), start, [1e5], events=reaching(1e-3)).t_events[0]
            for beta, start in zip(marks, ends, strict=True)
        ]
        for beta, t in zip(marks, measured, strict=True):
            right.plot([beta] * len(t), t, "o", ms=4, color=line.get_color())
    right.set(
        xlabel=r"inverse temperature $\beta$", ylabel=r"time to $\rho = 0.999$", ylim=(3, 1e4)
    )
    right.set_title("SA: quadrature (lines), Equiangular (dots)")
    right.legend(fontsize=8)
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="FILE", help="where to draw late times and passages")
    arguments = parser.parse_args()
    report = Report(["what", "case"])
    for check in (passages, large_numbers, normalisations, late_times, common_curve, real_tokens):
        check(report)
    if arguments.figure:
        with theme.style():
            draw(arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
