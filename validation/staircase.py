"""Claim: for large beta clusters last for times e^(c beta), and the energy climbs a staircase.

Tokens on the circle, solved to merging times of up to 1e143.

1. n = 5, SA with beta = 4: the numbers of clusters (chains with <x, y> > 0.9999) fall at the
   times 2.44, 3.73, 6.35 and 329.52, known on a grid of 0.01 (rounded up). Asked: 0.01.
2. Two tokens of masses a, b at the angle phi_0, until phi = 1e-7, SA and USA: the time is

       T = int d phi/|phi'|,   USA: phi' = -(a + b) e^{beta cos phi} sin phi,

   and by Laplace's method, with c = cos phi_0, q = 1/(beta sin^2 phi_0),

       T = T_inf (1 + 2 c q + (2 + 6 c^2) q^2 + 24 c (1 + c^2) q^3 + ...),
       SA   T_inf = e^{beta (1 - c)}/((a/b + b/a) beta sin^2 phi_0),
       USA  T_inf = e^{-beta c}/((a + b) beta sin^2 phi_0).

   Asked: 1e-6 of the quadrature, relative; of the expansion twice the first term left out, that
   of q^3. Known times until phi = 0.01: solved, 1e-6; known T_inf: to their digits.
3. Two clusters of two tokens: log(beta T) grows linearly with beta up to 200, in SA's clock with
   slope 1 - cos(gap), in USA's with -cos(gap): 2 per cent. log T itself, fitted by a line over
   beta = 50 to 200, has the slope of the law minus that of log(beta): 2 per cent.
4. Five tokens at 0, .5, 2, 4, 7 times log(2000)/(2 sqrt(2000)), of equal masses and of masses .15,
   .25, .1, .3, .2, under SA and in the clock of Geshkovski et al., USA times e^-beta, for beta =
   500 to 4000. All times of merging are those of the equations for five angles, solved over the
   closest gap instead of time: 1e-6, relative. For beta >= 2000 the closest pair alone gives the
   later ones, of up to 1e143: 1 per cent. sum_ij m_i m_j e^{beta(<x_i,x_j> - 1)} is sum alpha_k^2
   of the masses of clusters, so that a merging adds 2 alpha_i alpha_j, on every plateau that
   lasts for a factor of 1000: asked is 1e-8 and what the clusters that are left contribute to each
   other after the merging before, times 1.1 (half-way, in log time, it has grown by 1/31).

    python validation/staircase.py [--quick] [--figure FILE.png]    # 50 s, 9 s quick

--quick has a third of the pairs, fewer gaps and fewer beta. Exit code 1 on failure.

References: Geshkovski, Koubbi, Polyanskiy and Rigollet, arXiv:2410.06833.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from _staircase import STEPS, limiting_gaps, meetings, pairings
from _two_bodies import closing_time, sa_speeds, usa_speeds

import meanfield as mf
from meanfield.plotting import theme

KINETIC = (0.062197143764, 0.214322973423, 1.819122620804, 2.911071009455, -3.095248345473)
KINETIC_TIMES = {4: 2.44, 3: 3.73, 2: 6.35, 1: 329.52}
LINKED = np.arccos(0.9999)
GRID = 0.01  # on which the times above were read, upwards
KNOWN = {(20, 1.0): 388.438, (40, 1.0): 1.783266e6, (10, 2.0): 79623.05}  # until 0.01
KNOWN_LIMITS = {(20, 1.0): 347.3, (40, 1.0): 1.7084e6, (10, 2.0): 85468}
CASES = [
    *((mf.SA, beta, 1.0, 0.5) for beta in (40, 80, 160)),
    *((mf.SA, beta, 2.0, 0.7) for beta in (15, 30, 50)),
    *((mf.USA, beta, 1.0, 0.5) for beta in (60, 120, 200)),
    *((mf.USA, beta, 2.0, 0.7) for beta in (50, 100, 200)),
]
BETAS = (50, 100, 150, 200)
EQUAL, WEIGHTED = (0.2,) * 5, (0.15, 0.25, 0.1, 0.3, 0.2)
TIGHT, NEAR = 1e-7, 1e-6  # tokens so close are merged; have met


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


def chain(count: int, distance: float):
    """An event of tokens on an arc: so many clusters are farther than a distance from the next."""

    def event(_t, tokens):
        gaps = np.diff(np.sort(np.arctan2(*tokens.x.T[::-1])))
        return np.sort(gaps)[len(gaps) - count] - distance

    return event


def meeting_time(drift, phi: float, a: float, end: float, distance: float = TIGHT) -> float:
    """When two tokens at the angle phi are so close."""
    tokens, model = mf.Tokens.on_circle([0, phi], [a, 1 - a]), mf.Transformer(drift)
    event = chain(1, distance)
    event.terminal = True
    run = mf.solve(model, tokens, (0, end), t_eval=[end], rtol=1e-11, events=event)
    return successful(run).t_events[0][0]


def laplace(kind, beta: float, phi: float, a: float) -> tuple[float, float, float]:
    """T_inf, the expansion up to q^2 and the relative size of the term of q^3."""
    b, c, q = 1 - a, np.cos(phi), 1 / (beta * np.sin(phi) ** 2)
    own = kind is mf.USA
    limit = np.exp(beta * ((0 if own else 1) - c)) * q / (1.0 if own else a / b + b / a)
    expansion = limit * (1 + 2 * c * q + (2 + 6 * c**2) * q**2)
    return limit, expansion, abs(24 * c * (1 + c**2) * q**3)


def check_pairs(report: Report, cases: list) -> None:
    for (beta, phi), known in KNOWN.items():
        label = f"SA {beta}, angle {phi:g}, known"
        time = meeting_time(mf.SA(beta), phi, 0.5, 2 * known, 0.01)
        options = {"predicted": known, "measured": time, "tolerance": 1e-6}
        report.compare("two tokens meet", label, **options, relative=True)
        limit, _, _ = laplace(mf.SA, beta, phi, 0.5)
        options = {"predicted": KNOWN_LIMITS[beta, phi], "measured": limit, "tolerance": 2e-4}
        report.compare("T_inf", label, **options, relative=True)
    for kind, beta, phi, a in cases:
        b, own = 1 - a, kind is mf.USA
        speeds = usa_speeds(beta, a, b) if own else sa_speeds(beta, a, b)
        exact, _ = closing_time(speeds, phi, TIGHT)
        measured = meeting_time(kind(beta), phi, a, 2 * exact)
        label = f"{kind.__name__} {beta}, angle {phi:g}, masses {a:g}, {b:g}"
        options = {"predicted": exact, "measured": measured, "tolerance": 1e-6}
        report.compare("two tokens meet", label, **options, relative=True)
        _, law, left_out = laplace(kind, beta, phi, a)
        options = {"predicted": law, "measured": measured, "tolerance": 2 * left_out}
        report.compare("by Laplace", label, **options, relative=True)


def lifetimes(kind, gap: float) -> np.ndarray:
    """When two clusters of two tokens merge, for all BETAS."""
    tokens = mf.Tokens.on_circle([-0.02, 0.02, gap - 0.02, gap + 0.02])

    def lifetime(beta: float) -> float:
        end = np.exp(beta * ((kind is mf.SA) - np.cos(gap)))
        model = mf.Transformer(kind(beta))
        run = mf.solve(model, tokens, (0, end), t_eval=[end], merge=TIGHT)
        (*_, (time, left)) = successful(run).stats["merges"]
        assert left == 1
        return time

    return mf.sweep(lifetime, {"beta": BETAS})["value"].values


def check_lifetimes(report: Report, gaps: tuple) -> dict:
    found = {}
    for kind in (mf.SA, mf.USA):
        for gap in gaps:
            times = found[kind.__name__, gap] = lifetimes(kind, gap)
            law, label = (kind is mf.SA) - np.cos(gap), f"{kind.__name__}, gap {gap}"
            less = np.polyfit(BETAS, np.log(BETAS), 1)[0]
            slope = np.polyfit(BETAS, np.log(times), 1)[0]
            options = {"relative": True, "tolerance": 0.02}
            for name, shift in (("log(beta T)", 0.0), ("log T", less)):
                numbers = {"predicted": law - shift, "measured": slope + less - shift}
                report.compare(f"slope of {name}", label, **numbers, **options)
    return found


def normalised_usa(beta: float) -> mf.Interaction:
    """USA in the clock of Geshkovski et al., that does not overflow."""
    return mf.Interaction(
        lambda t: np.exp(beta * (t - 1)) / beta, derivative=lambda t: np.exp(beta * (t - 1))
    )


CLOCKS = {"SA": mf.SA, "scaled USA": normalised_usa}


def normalised_energy(beta: float, tokens: mf.Tokens) -> float:
    squares = ((tokens.x[:, None] - tokens.x) ** 2).sum(axis=-1)
    return float(tokens.masses @ np.exp(-beta / 2 * squares) @ tokens.masses)


def climb(clock: str, beta: float, masses: tuple, end: float) -> mf.Solution:
    """Five tokens of the staircase until a time; events say when so many clusters are left."""
    times, events = np.geomspace(1e-2, end, 2000), [chain(count, NEAR) for count in (4, 3, 2, 1)]
    model, start = mf.Transformer(CLOCKS[clock](beta)), mf.Tokens.on_circle(STEPS, masses)
    options = {"t_eval": times, "merge": TIGHT, "rtol": 1e-9, "events": events}
    return successful(mf.solve(model, start, (0, end), **options))


def check_staircase(report: Report, clock: str, beta: float, masses=EQUAL) -> tuple:
    """Compare all steps; times and energies."""
    laws = list(meetings(clock, beta, masses, NEAR))
    run = climb(clock, beta, masses, 1e4 * laws[-1][0])
    energy = np.array([normalised_energy(beta, tokens) for tokens in run])
    alone = pairings(clock, beta, masses, NEAR)
    ends, kind = [*(law[0] for law in laws[1:]), run.t[-1]], "" if masses == EQUAL else ", weighted"
    for law, (pair, _), (time,), end in zip(laws, alone, run.t_events, ends, strict=True):
        exact, angles, masses = law
        label = f"{clock}{kind}, beta {beta:g}, {len(masses)} left"
        numbers = {"measured": time, "relative": True}
        report.compare("time", label, predicted=exact, **numbers, tolerance=1e-6)
        if beta >= 2000 and len(masses) < 4:
            report.compare("closest pair alone", label, predicted=pair, **numbers, tolerance=0.01)
        if end > 1000 * time:
            squares, weights = (masses**2).sum(), np.multiply.outer(masses, masses)
            kernel = np.exp(-2 * beta * np.sin((angles - angles[:, None]) / 2) ** 2)
            others = float((weights * kernel).sum() - squares)
            numbers = {"measured": energy[np.searchsorted(run.t, np.sqrt(time) * np.sqrt(end))]}
            tolerance = 1e-8 + 1.1 * others
            report.compare("plateau", label, predicted=squares, **numbers, tolerance=tolerance)
    return run.t, energy


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
        (line,) = middle.plot(
            BETAS, np.log10(times), "os"[kind == "USA"], ms=4, label=f"{kind}, {gap}"
        )
        fine, speeds = np.linspace(40, 210, 50), usa_speeds if kind == "USA" else sa_speeds
        law = [closing_time(speeds(beta, 0.5, 0.5), gap, TIGHT)[0] for beta in fine]
        middle.plot(fine, np.log10(law), color=line.get_color(), lw=0.9)
    middle.set(
        title="two clusters merge", xlabel=r"$\beta$", ylabel=r"$\log_{10}$ of the time of merging"
    )
    middle.legend(title="clock, gap", fontsize=7, title_fontsize=7)
    for i, (beta, (t, energy)) in enumerate(curves.items()):
        color = f"{0.75 * (1 - i / (len(curves) - 1)):.2f}" if i < len(curves) - 1 else "C3"
        right.plot(np.log(t) / beta, energy, color=color, lw=1.3, label=rf"$\beta = {beta:g}$")
    limits = 1 - np.cos(limiting_gaps())
    right.vlines(
        limits, 0.15, 1.02, color="C0", lw=0.8, ls=":", zorder=0, label=r"$\beta = \infty$"
    )
    right.set(xlabel=r"$\log t\,/\,\beta$", ylabel="normalised energy", title="staircase of USA")
    right.set(xlim=(-0.004, 0.085), ylim=(0.15, 1.42))
    right.legend(fontsize=7, loc="upper center", ncols=3)
    figure.savefig(path)


def main() -> int:
    arguments = command_line(__doc__, "fewer betas", "where to draw the staircase")
    report = Report(["what", "case"], digits=8)
    kinetic = check_kinetic(report)
    check_pairs(report, CASES[:: 3 if arguments.quick else 1])
    lives = check_lifetimes(report, (0.8,) if arguments.quick else (0.8, 1.2, 2.0))
    betas = (500,) if arguments.quick else (500, 1000, 1500, 2000, 3000, 4000)
    curves = {beta: check_staircase(report, "scaled USA", float(beta)) for beta in betas}
    if arguments.quick:
        check_staircase(report, "SA", 3000.0, WEIGHTED)
    else:
        for beta in betas[-2:]:
            check_staircase(report, "SA", float(beta))
            for clock in CLOCKS:
                check_staircase(report, clock, float(beta), WEIGHTED)
    if arguments.figure:
        with theme.style():
            draw(kinetic, lives, curves, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
