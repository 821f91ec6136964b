"""Claim: for large beta clusters last for times e^(c beta), and the energy climbs a staircase.

Tokens on the circle, solved to merging times of up to 1e131.

1. n = 5, SA with beta = 4: the numbers of clusters (chains with <x, y> > 0.9999) fall at the
   times 2.44, 3.73, 6.35 and 329.52, known on a grid of 0.01 (rounded up). Asked: 0.01.
2. Two tokens of masses a, b at the angle phi_0, until phi = 1e-7, SA and USA: the time is

       T = int d phi/|phi'|,   USA: phi' = -(a + b) e^{beta cos phi} sin phi,

   and by Laplace's method T = T_inf (1 + 2 cos(phi_0)/(beta sin^2 phi_0) + O(beta^-2)),

       SA   T_inf = e^{beta (1 - cos phi_0)}/((a/b + b/a) beta sin^2 phi_0),
       USA  T_inf = e^{-beta cos phi_0}/((a + b) beta sin^2 phi_0).

   Asked: 1e-6 of the quadrature, relative; 40/beta^2 of the expansion.
3. Two clusters of two tokens: log(beta T) grows linearly with beta up to 200, in SA's clock with
   slope 1 - cos(gap), in USA's with -cos(gap). Asked: 2 per cent.
4. Five tokens at 0, .5, 2, 4, 7 times log(2000)/(2 sqrt(2000)), under SA and in the clock of
   Geshkovski et al., USA times e^-beta: sum_ij m_i m_j e^{beta(<x_i,x_j> - 1)} is sum alpha_k^2
   of the masses of clusters on every plateau (asked: 1e-8), so that a merging adds 2 alpha_i
   alpha_j. Each step is the merging of the closest pair alone: its time and place are those of
   the quadrature (asked: 1 per cent of times that span 130 decades, beta >= 2000; 50 below,
   where neighbours count, and for the first step, whose e^{c beta} is still of order one).

    python validation/staircase.py [--quick] [--figure FILE.png]    # 30 s, 11 s quick

--quick has a third of the pairs, and fewer beta of the staircase. Exit code 1 on failure.

References: Geshkovski, Koubbi, Polyanskiy and Rigollet, arXiv:2410.06833.
"""

import argparse
import sys
from functools import partial

import numpy as np
from _report import Report, successful
from _two_bodies import closing_time, sa_speeds, usa_speeds

import meanfield as mf
from meanfield.plotting import theme

KINETIC = (0.062197143764, 0.214322973423, 1.819122620804, 2.911071009455, -3.095248345473)
KINETIC_TIMES = {4: 2.44, 3: 3.73, 2: 6.35, 1: 329.52}
LINKED = np.arccos(0.9999)
GRID = 0.01  # on which the times above were read, upwards
KNOWN = {(20, 1.0): 388.438, (40, 1.0): 1.783266e6, (10, 2.0): 79623.05}  # until 0.01
CASES = [
    *((mf.SA, beta, 1.0, 0.5) for beta in (40, 80, 160)),
    *((mf.SA, beta, 2.0, 0.7) for beta in (15, 30, 50)),
    *((mf.USA, beta, 1.0, 0.5) for beta in (60, 120, 200)),
    *((mf.USA, beta, 2.0, 0.7) for beta in (50, 100, 200)),
]
BETAS = (50, 100, 150, 200)
STEPS = 0.5 * np.array([0, 0.5, 2, 4, 7]) * np.log(2000) / np.sqrt(2000)
TIGHT = 1e-7  # tokens so close are merged


def clusters_reach(count: int):
    """An event of tokens on the circle: so many chains of gaps up to LINKED are left."""

    def event(_t, tokens):
        angles = np.sort(np.arctan2(*tokens.x.T[::-1]))
        gaps = np.sort(np.diff(angles, append=angles[0] + 2 * np.pi))
        return gaps[len(gaps) - count - 1] - LINKED

    return event


def check_kinetic(report: Report) -> mf.Solution:
    events = [clusters_reach(count) for count in KINETIC_TIMES]
    tokens, times = mf.Tokens.on_circle(KINETIC), np.geomspace(0.01, 400, 400)
    run = mf.solve(mf.Transformer(mf.SA(4)), tokens, (0, 400), t_eval=times, events=events)
    for (count, known), found in zip(KINETIC_TIMES.items(), run.t_events, strict=True):
        label = f"{count} clusters of SA 4"
        report.compare("time", label, predicted=known, measured=found[0], tolerance=GRID)
    return successful(run)


def meeting_time(drift, phi: float, a: float, end: float) -> float:
    """When two tokens at the angle phi are merged."""
    tokens, model = mf.Tokens.on_circle([0, phi], [a, 1 - a]), mf.Transformer(drift)
    run = mf.solve(model, tokens, (0, end), t_eval=[end], rtol=1e-11, merge=TIGHT)
    ((time, _),) = successful(run).stats["merges"]
    return time


def check_pairs(report: Report, cases: list) -> None:
    for (beta, phi), known in KNOWN.items():
        time, _ = closing_time(sa_speeds(beta, 0.5, 0.5), phi, 0.01)
        options = {"predicted": known, "measured": time, "tolerance": 1e-6}
        report.compare("quadrature", f"SA {beta}, angle {phi:g}, known", **options, relative=True)
    for kind, beta, phi, a in cases:
        b, own = 1 - a, kind is mf.USA
        speeds = usa_speeds(beta, a, b) if own else sa_speeds(beta, a, b)
        exact, _ = closing_time(speeds, phi, TIGHT)
        measured = meeting_time(kind(beta), phi, a, 2 * exact)
        label = f"{kind.__name__} {beta}, angle {phi:g}, masses {a:g}, {b:g}"
        options = {"predicted": exact, "measured": measured, "tolerance": 1e-6}
        report.compare("two tokens meet", label, **options, relative=True)
        law = np.exp(-beta * np.cos(phi)) if own else np.exp(beta * (1 - np.cos(phi)))
        law /= (1.0 if own else a / b + b / a) * beta * np.sin(phi) ** 2
        law *= 1 + 2 * np.cos(phi) / (beta * np.sin(phi) ** 2)
        options = {"predicted": law, "measured": measured, "tolerance": 40 / beta**2}
        report.compare("by Laplace", label, **options, relative=True)


def lifetimes(kind, gap: float) -> list[float]:
    """When two clusters of two tokens merge, for all BETAS."""
    tokens, found = mf.Tokens.on_circle([-0.02, 0.02, gap - 0.02, gap + 0.02]), []
    for beta in BETAS:
        end = np.exp(beta * ((kind is mf.SA) - np.cos(gap)))
        model = mf.Transformer(kind(beta))
        run = mf.solve(model, tokens, (0, end), t_eval=[end], merge=TIGHT)
        (*_, (time, left)) = successful(run).stats["merges"]
        assert left == 1
        found.append(time)
    return found


def check_lifetimes(report: Report) -> dict:
    found = {}
    for kind in (mf.SA, mf.USA):
        for gap in (0.8, 1.2, 2.0):
            times = found[kind.__name__, gap] = lifetimes(kind, gap)
            slope = np.polynomial.Polynomial.fit(BETAS, np.log(times) + np.log(BETAS), 1)
            law, label = (kind is mf.SA) - np.cos(gap), f"{kind.__name__}, gap {gap}"
            slope = slope.convert().coef[1]
            options = {"predicted": law, "measured": slope, "tolerance": 0.02}
            report.compare("slope of log(beta T)", label, **options, relative=True)
    return found


def normalised_usa(beta: float) -> mf.Interaction:
    """USA in the clock of Geshkovski et al., that does not overflow."""
    return mf.Interaction(
        lambda t: np.exp(beta * (t - 1)) / beta, derivative=lambda t: np.exp(beta * (t - 1))
    )


CLOCKS = {
    "SA": (mf.SA, sa_speeds),
    "scaled USA": (normalised_usa, partial(usa_speeds, shift=1.0)),
}


def pairings(clock: str, beta: float):
    """Predicted (time, masses of the clusters), the closest pair alone merging, again and again."""
    angles, masses, time = STEPS.copy(), np.full(len(STEPS), 1 / len(STEPS)), 0.0
    while len(angles) > 1:
        i = int(np.argmin(np.diff(angles)))
        speeds = CLOCKS[clock][1](beta, masses[i], masses[i + 1])
        lasts, way = closing_time(speeds, angles[i + 1] - angles[i], TIGHT)
        way += TIGHT * masses[i + 1] / (masses[i] + masses[i + 1])  # to the centre of mass
        time, angles[i] = time + lasts, angles[i] + way
        masses[i] += masses[i + 1]
        angles, masses = np.delete(angles, i + 1), np.delete(masses, i + 1)
        yield time, masses.copy()


def normalised_energy(beta: float, tokens: mf.Tokens) -> float:
    squares = ((tokens.x[:, None] - tokens.x) ** 2).sum(axis=-1)
    return float(tokens.masses @ np.exp(-beta / 2 * squares) @ tokens.masses)


def climb(clock: str, beta: float) -> mf.Solution:
    """Five tokens of the staircase until long after the last merging."""
    (*_, (end, _)) = pairings(clock, beta)
    times = np.geomspace(1e-2, 100 * end, 2000)
    model, start = mf.Transformer(CLOCKS[clock][0](beta)), mf.Tokens.on_circle(STEPS)
    return successful(mf.solve(model, start, (0, times[-1]), t_eval=times, merge=TIGHT))


def check_staircase(report: Report, clock: str, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Compare all steps; times and energies."""
    run = climb(clock, beta)
    energy, merges = [normalised_energy(beta, tokens) for tokens in run], run.stats["merges"]
    assert [left for _, left in merges] == [4, 3, 2, 1]
    ends = [*(time for time, _ in merges[1:]), run.t[-1]]
    for (law, masses), (time, left), end in zip(pairings(clock, beta), merges, ends, strict=True):
        label = f"{clock}, beta {beta:g}, {left} left"
        tolerance = 0.01 if beta >= 2000 and left < 4 else 0.5
        options = {"predicted": law, "measured": time, "tolerance": tolerance}
        report.compare("time", label, **options, relative=True)
        if beta >= 2000:
            plateau, law = energy[np.searchsorted(run.t, np.sqrt(time * end))], (masses**2).sum()
            report.compare("plateau", label, predicted=law, measured=plateau, tolerance=1e-8)
    return run.t, np.array(energy)


def draw(kinetic: mf.Solution, lives: dict, curves: dict, path: str) -> None:
    """Angles over time; lifetimes over beta; the staircase in scaled log time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.5), dpi=200, layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.3))
    angles = np.unwrap([np.arctan2(*tokens.x.T[::-1]) for tokens in kinetic], axis=0)
    left.semilogx(kinetic.t, angles % (2 * np.pi), lw=1.3)
    for time in KINETIC_TIMES.values():
        left.axvline(time, color="0.7", lw=0.8, ls=":", zorder=0)
    left.set(title=r"SA, $\beta = 4$, $n = 5$", xlabel="time $t$", ylabel="angles of tokens")
    for (kind, gap), times in lives.items():
        (line,) = middle.semilogy(BETAS, times, "os"[kind == "USA"], ms=4, label=f"{kind}, {gap}")
        beta = np.linspace(40, 210, 50)
        law = times[-1] * BETAS[-1] / beta
        law *= np.exp((beta - BETAS[-1]) * ((kind == "SA") - np.cos(gap)))
        middle.semilogy(beta, law, color=line.get_color(), lw=0.9)
    middle.set(title="two clusters merge", xlabel=r"$\beta$", ylabel="time of merging")
    middle.legend(title="clock, gap", fontsize=7, title_fontsize=7)
    for i, (beta, (t, energy)) in enumerate(curves.items()):
        color = f"{0.75 * (1 - i / (len(curves) - 1)):.2f}" if i < len(curves) - 1 else "C3"
        right.plot(np.log(t) / beta, energy, color=color, lw=1.3, label=rf"$\beta = {beta:g}$")
    limits = 1 - np.cos(limiting_gaps())
    right.vlines(limits, 0, 2, color="C0", lw=0.8, ls=":", zorder=0, label=r"$\beta = \infty$")
    right.set(xlabel=r"$\log t\,/\,\beta$", ylabel="normalised energy", title="staircase of USA")
    right.set(xlim=(-0.004, 0.085), ylim=(0.15, 1.05))
    right.legend(fontsize=7, loc="upper left")
    figure.savefig(path)


def limiting_gaps() -> list[float]:
    """Gaps of the closest pairs, one merging after the other, for beta = infinity."""
    angles, masses, gaps = np.array(STEPS), np.ones(len(STEPS)), []
    while len(angles) > 1:
        i = int(np.argmin(np.diff(angles)))
        gaps.append(angles[i + 1] - angles[i])
        angles[i] = np.average(angles[i : i + 2], weights=masses[i : i + 2])
        masses[i] += masses[i + 1]
        angles, masses = np.delete(angles, i + 1), np.delete(masses, i + 1)
    return gaps


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer betas")
    parser.add_argument("--figure", metavar="FILE", help="where to draw the staircase")
    arguments = parser.parse_args()
    report = Report(["what", "case"], digits=8)
    kinetic = check_kinetic(report)
    check_pairs(report, CASES[:: 3 if arguments.quick else 1])
    lives = check_lifetimes(report)
    betas = (500, 3000) if arguments.quick else (500, 1000, 1500, 2000, 3000, 4000)
    curves = {beta: check_staircase(report, "scaled USA", float(beta)) for beta in betas}
    for beta in betas[-1:] if arguments.quick else betas[-2:]:
        check_staircase(report, "SA", float(beta))
    if arguments.figure:
        with theme.style():
            draw(kinetic, lives, curves, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
