"""Claim: n = 32 tokens are one cluster after a time whose logarithm grows with beta.

The second experiment that the summary of the survey suggests: 32 uniform tokens under SA, on the
circle and on S^2, until the mean of all <x_i, x_j> is 0.99, for beta from 0.1 to 100, followed to
times of up to e^200. Tokens that have come together (1e-8) are merged.

1. All runs get there, and the medians over starts grow with beta from beta = 3 on.
2. From the time at which two clusters are left, of masses a, b at the angle phi, the rest is

       T - t = int d phi/|phi'|,  SA: phi' = -(b/(a + b k) + a/(b + a k)) k sin phi,
       k = e^{beta (cos phi - 1)},

   and for beta >= 10 it is nearly all of T: of the quadrature 1e-8, relative.
3. For beta >= 30 the plateau before the last merger has (log(beta T))/beta = 1 - cos phi up to
   (log of the masses' part and of 1/sin^2 phi)/beta: T is within 1/4 of its first term

       T_inf = e^{beta (1 - cos phi)}/((a/b + b/a) beta sin^2 phi),

   where beta sin^2 phi >= 20.

    python validation/passage_times.py [--quick] [--figure FILE.png]    # 75 s, 10 s quick

--quick has 2 starts and fewer beta. Exit code 1 on failure.

References: summary of the survey, experiment 2; Geshkovski, Letrouit, Polyanskiy and Rigollet,
arXiv:2312.10794; Geshkovski, Koubbi, Polyanskiy and Rigollet, arXiv:2410.06833.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from _two_bodies import angle, closing_time, sa_speeds
from matplotlib.figure import Figure

import meanfield as mf
from meanfield.plotting import theme

TOKENS, TOGETHER = 32, 1e-8
BETAS = (0.1, 0.3, 1.0, 3.0, 5.0, 10.0, 30.0, 50.0, 100.0)


def mean_cosine(state: mf.Tokens) -> float:
    return float((state.masses @ state.x) @ (state.masses @ state.x))


def close(_t, state) -> float:
    return mean_cosine(state) - 0.99


close.terminal = True


def passage(beta: float, start: mf.Tokens) -> tuple[float, mf.Solution]:
    """When the mean cosine is 0.99."""
    end = 1e6 * np.exp(2 * beta)
    times = np.geomspace(1e-2, end, 500)  # one of them is on the last plateau
    run = mf.solve(mf.Transformer(mf.SA(beta)), start, (0, end), t_eval=times, merge=TOGETHER,
                   events=close, rtol=1e-10)  # fmt: skip
    return float(successful(run).t_events[0][0]), run


def last_pair(run: mf.Solution) -> tuple[float, ...] | None:
    """Time, angle and masses of the last two clusters, first saved when only they are left."""
    alone = [t for t, rows in run.stats["merges"] if rows == 2]
    saved = np.flatnonzero(run.t > alone[0]) if alone else ()
    if not len(saved):
        return None
    at, state = float(run.t[saved[0]]), run[int(saved[0])]
    first = np.linalg.norm(state.x - state.x[0], axis=1) < 1e-6
    a = float(state.masses[first].sum())
    second = state.x[~first][0]
    return at, float(angle(state.x[0], second)), a, 1 - a


def rest(beta: float, phi: float, a: float, b: float) -> float:
    """From the angle phi until a^2 + b^2 + 2 a b cos phi = 0.99."""
    end = np.arccos(1 - 0.01 / (2 * a * b))
    return closing_time(sa_speeds(beta, a, b), phi, end)[0]


def check_pair(report: Report, label: str, beta: float, time: float, pair) -> None:
    at, phi, a, b = pair
    report.compare("time, from two clusters on", label, predicted=at + rest(beta, phi, a, b),
                   measured=time, tolerance=1e-8, relative=True)  # fmt: skip
    if beta >= 30 and beta * np.sin(phi) ** 2 >= 20:
        limit = np.exp(beta * (1 - np.cos(phi))) / ((a / b + b / a) * beta * np.sin(phi) ** 2)
        report.compare("T/T_inf", label, predicted=1, measured=time / limit, tolerance=0.25)


def draw(found: dict, path: str) -> None:
    """Times over beta, each start, and medians."""
    figure = Figure(figsize=(5.0, 3.4), layout="constrained")
    axes = figure.subplots()
    marks = {2: ("#0072B2", "o", "circle"), 3: ("#D55E00", "s", r"$S^2$")}
    for d, times in found.items():
        colour, mark, name = marks[d]
        for beta, some in times.items():
            axes.plot([beta] * len(some), some, mark, color=colour, ms=3, alpha=0.5, mew=0)
        axes.plot(list(times), [np.median(t) for t in times.values()], mark + "-", color=colour,
                  ms=5, label=f"{name}, median")  # fmt: skip
    axes.set(xlabel=r"$\beta$", ylabel="time to a mean cosine of 0.99", yscale="log")
    axes.legend()
    figure.savefig(path, dpi=150)


def main() -> int:
    report = Report(["claim", "case"], digits=6)
    arguments = command_line(__doc__, "2 starts, fewer beta", "draw the times to this file")
    betas = (0.3, 3.0, 10.0, 30.0) if arguments.quick else BETAS
    count, found = 2 if arguments.quick else 6, {}
    for d in (2, 3):
        rng = np.random.default_rng(d)
        starts = [mf.Tokens.uniform(TOKENS, d, rng=rng) for _ in range(count)]
        times: dict[float, list[float]] = {}
        for beta in betas:
            times[beta] = []
            for k, start in enumerate(starts):
                time, run = passage(beta, start)
                times[beta].append(time)
                pair = last_pair(run) if beta >= 10 else None
                if pair:
                    check_pair(report, f"{d=}, {beta=:g}, start {k}", beta, time, pair)
        medians = [np.median(times[beta]) for beta in betas if beta >= 3]
        report.compare("medians grow", f"{d=}", predicted=1,
                       measured=int(np.all(np.diff(medians) > 0)), tolerance=0)  # fmt: skip
        print(f"{d=}: log10 of the medians", {b: round(float(np.log10(np.median(t))), 2)
              for b, t in times.items()})  # fmt: skip
        found[d] = times
    if arguments.figure:
        with theme.style():
            draw(found, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
