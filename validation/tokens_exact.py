"""Claim: tokens follow closed forms, quadratures and tables, as `Tokens` and as `Gram`.

Without noise, with steps of rtol = 1e-13:

1. two tokens: their angle, phi' = -2 sin(phi) / (1 + e^{beta(1 - cos phi)}) for SA and
   -e^{beta cos phi} sin(phi) for USA, by another integrator. Asked: 1e-11.
2. 32 (and 128) orthonormal tokens: the time at which inner products reach 0.999, beta from 0 to 9,
   as Tokens and as Gram; beta = 0: rho = (e^{2t} - 1)/(e^{2t} + n - 1). Asked: 1e-10, 1e-12.
3. where layers are normalised: 1 - rho for 32 orthonormal tokens, beta = 1, and what is left of
   it at late times, by quadratures (errata: see `equiangular.py`). Asked: 1e-8, 1e-7.
4. a token without mass near a Dirac: c' = 1 - c^2 for SA, c the cosine. Asked: 1e-12.
5. regular k-gons: the fastest growth of a perturbation; the triangle is stable for beta < -2/3,
   with the rate e^{-beta/2} (1/2 + 3 beta/4). Asked: 1e-6.
6. five tokens, beta = 4: clusters (cosines > 0.9999) merge at t = 2.44, 3.73, 6.35 and 329.52, the
   first sample at or after it in steps of 0.01: the measured times are rounded up. Asked: equal.
7. min_i <x_i, w> does not fall while it is positive. Asked: 1e-13.
8. USA: E(t) - E(0) = int sum_i m_i |v_i|^2 dt. Asked: 1e-11.
9. rotated and permuted tokens move to the rotated and permuted places. Asked: 1e-11.
10. causal attention, V = 1: all tokens converge to the first, which rests. Asked: 1e-9.

    python validation/tokens_exact.py [--quick] [--figure FILE.png]    # 14 s, 11 s quick

--quick has four beta of 2, with 32 tokens. Exit code 1 on failure.

References: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794 (2, 7, 8); Karagodin,
Geshkovski, Polyanskiy and Rigollet, arXiv:2510.22026 (3); Geshkovski, Koubbi, Polyanskiy and
Rigollet, arXiv:2410.06833 (6); Karagodin, Polyanskiy and Rigollet, arXiv:2411.04990 (10).
"""

import sys

import numpy as np
from _equiangular_laws import late_constant
from _reduced_models import BETAS, TIMES, fastest_growth, normalised, passage_time, two_tokens
from _report import Report, command_line, successful
from matplotlib.figure import Figure
from scipy.stats import ortho_group

import meanfield as mf
from meanfield.plotting import theme

DRIFTS = {"SA": mf.SA, "USA": mf.USA}
SCHEMES = {  # each, the last time, and what 1 - rho is multiplied by, see late_constant
    "PostLN": (mf.PostLN(), 14.0, lambda t, r: np.exp(2 * t)),
    "PreLN": (mf.PreLN(), 2e3, lambda t, r: r**2),
    "MixLN": (mf.MixLN(2.0), 2e3, lambda t, r: r**2),
    "PeriLN": (mf.PeriLN(), 2e3, lambda t, r: r**2),
    "NGPT": (mf.NGPT(), 12.0, lambda t, r: np.exp(2 * t)),
    "SqrtScaling": (mf.SqrtScaling(), 50.0, lambda t, r: np.exp(4 * np.sqrt(t + 1))),
}
POLYGONS = {  # (tokens, beta): the fastest growth for USA and for SA
    (2, 1): (np.exp(-1), np.exp(-1) / np.cosh(1)),
    (2, 4): (np.exp(-4), np.exp(-4) / np.cosh(4)),
    (3, 4): (0.4736735, 2.589851e-2),
    (3, 9): (8.054022e-2, 2.981828e-5),
    (4, 9): (9.0, 4.441657e-3),
    (5, 9): (91.45213, 5.620656e-2),
}
FIVE = (0.062197143764, 0.214322973423, 1.819122620804, 2.911071009455, -3.095248345473)
MERGES = (2.44, 3.73, 6.35, 329.52)


def moved(model, start, times, **options) -> mf.Solution:
    """The run at all these times."""
    model = mf.Transformer(model) if not isinstance(model, mf.Transformer) else model
    options = {"t_eval": times, "rtol": 1e-13, **options}
    return successful(mf.solve(model, start, (0, np.max(times)), **options))


def event(function, direction: int = 0, terminal: bool = False):
    """An event of `solve`."""
    function.direction, function.terminal = direction, terminal
    return function


def pair_gap(tokens: mf.Tokens) -> float:
    """1 - <x_1, x_2>, without cancellation."""
    return float(((tokens.x[0] - tokens.x[1]) ** 2).sum() / 2)


def pairs(report: Report) -> None:
    times = [0.5, 2.0, 5.0]
    for name, drift in DRIFTS.items():
        for beta in (0, 1, 4):
            exact = two_tokens(name, beta, 2.5, times)
            run = moved(drift(beta), mf.Tokens.on_circle([-1.25, 1.25]), times)
            for t, phi, state in zip(times, exact, run, strict=True):
                label = f"{name}({beta}), t = {t:g}"
                angle = 2 * np.arcsin(np.sqrt(pair_gap(state) / 2))
                report.compare("angle", label, predicted=phi, measured=angle, tolerance=1e-11)


def passage(drift, start) -> float:
    """When inner products of orthonormal tokens reach 0.999."""

    def reached(_t, state):
        return (state.G[0, 1] if isinstance(state, mf.Gram) else 1 - pair_gap(state)) - 0.999

    run = moved(drift, start, [300.0], events=event(reached, terminal=True))
    return float(run.t_events[0][0])


def orthonormal(report: Report, quick: bool) -> None:
    for (name, n), times in TIMES.items():
        tokens = mf.Tokens.orthonormal(n)
        for beta, known in zip(BETAS, times, strict=True):
            if quick and (n > 32 or beta not in (0, 1, 4, 9)):
                continue
            for start in (tokens, tokens.gram()) if n == 32 else (tokens.gram(),):
                label = f"{name}({beta:g}), n = {n}, {type(start).__name__}"
                report.compare(
                    "time to 0.999",
                    label,
                    predicted=known,
                    measured=passage(DRIFTS[name](beta), start),
                    tolerance=1e-10,
                )
    times = np.array([0.5, 1.0, 3.0])
    run = moved(mf.Kuramoto(), mf.Tokens.orthonormal(32), times)
    for t, state in zip(times, run, strict=True):
        rho, known = 1 - pair_gap(state), np.expm1(2 * t) / (np.exp(2 * t) + 31)
        label = f"Kuramoto, t = {t:g}"
        report.compare("rho", label, predicted=known, measured=rho, tolerance=1e-12)


def normalisations(report: Report) -> dict:
    """Compare all schemes; their curves."""
    curves = {}
    for name, (scheme, last, factor) in SCHEMES.items():
        times = np.unique([*np.geomspace(0.1, last, 80), 1, 2, 5, 10, last])
        model = mf.Transformer(mf.SA(1), normalisation=scheme)
        run = moved(model, mf.Tokens.orthonormal(32), times)
        gaps = np.array([pair_gap(state) for state in run])
        radii = np.array([1 if state.radii is None else state.radii[0] for state in run])
        known = normalised(name, times)
        curves[name] = times, gaps, known[0]
        for t in (1, 2, 5, 10, last):
            (i,) = np.flatnonzero(times == t)
            label = f"{name}, t = {t:g}"
            numbers = {"predicted": known[0, i], "measured": gaps[i], "tolerance": 1e-8}
            report.compare("1 - rho", label, **numbers, relative=True)
            if scheme.has_radii:
                numbers = {"predicted": known[1, i], "measured": radii[i], "tolerance": 1e-11}
                report.compare("r", label, **numbers, relative=True)
        value = gaps[-1] * factor(last, radii[-1])
        numbers = {"predicted": late_constant(name), "measured": value, "tolerance": 1e-7}
        report.compare("late constant", f"{name}, t = {last:g}", **numbers, relative=True)
    return curves


def test_particle(report: Report) -> None:
    c, times = -0.8, np.array([0.5, 1.0, 3.0])
    start = mf.Tokens([[1.0, 0, 0], [c, np.sqrt(1 - c**2), 0]], masses=[1, 0])
    for beta in (0, 1, 10):
        for t, state in zip(times, moved(mf.SA(beta), start, times), strict=True):
            ahead, behind = (1 + c) * np.exp(2 * t), 1 - c
            known = (ahead - behind) / (ahead + behind)
            label = f"SA({beta}), no mass, t = {t:g}"
            cosine = float(state.x[1, 0])
            report.compare("cosine", label, predicted=known, measured=cosine, tolerance=1e-12)


def growth(drift, k: int, m: int, rate: float) -> float:
    """The rate at which the mode m of a regular k-gon grows, from both signs of its amplitude."""
    corners, span = 2 * np.pi * np.arange(k) / k, 1 / max(abs(rate), 0.1 if rate == 0 else 0)
    wave = np.cos(2 * np.pi * m * np.arange(k) / k)
    start = mf.Tokens.on_circle(corners + np.outer([1e-5, -1e-5], wave))
    x = moved(drift, start, [span]).final.x
    shifts = np.arctan2(
        x[..., 1] * np.cos(corners) - x[..., 0] * np.sin(corners),
        x[..., 0] * np.cos(corners) + x[..., 1] * np.sin(corners),
    )
    amplitude = (shifts[0] - shifts[1]) @ wave / (2e-5 * wave @ wave)
    return float(np.log(amplitude) / span)


def polygons(report: Report) -> None:
    for (k, beta), known in POLYGONS.items():
        for name, value in zip(("USA", "SA"), known, strict=True):
            rate, mode = fastest_growth(name, beta, k)
            measured = growth(DRIFTS[name](beta), k, mode, rate)
            numbers = {"predicted": value, "measured": measured, "tolerance": 1e-6}
            report.compare("growth", f"{k}-gon, {name}({beta})", **numbers, relative=True)
    for beta in (-0.8, -2 / 3, -0.5):
        rate = np.exp(-beta / 2) * (0.5 + 0.75 * beta)
        measured = growth(mf.USA(beta), 3, 1, rate if abs(rate) > 1e-9 else 0.0)
        label = f"triangle, USA({beta:.4g})"
        report.compare("growth", label, predicted=rate, measured=measured, tolerance=1e-6)


def linked(state: mf.Tokens) -> int:
    """The number of chains of tokens with cosines > 0.9999."""
    return int(mf.cluster_labels(state).max()) + 1


def merges(report: Report) -> tuple[mf.Solution, np.ndarray]:
    """Compare the times at which clusters merge; the run, and those times."""
    falls = [event(lambda _t, state, k=k: linked(state) - k - 0.5, -1) for k in (4, 3, 2, 1)]
    times = np.concatenate([[0], np.geomspace(0.02, 1e3, 400)])
    run = moved(mf.SA(4), mf.Tokens.on_circle(FIVE), times, events=falls)
    measured = np.concatenate(run.t_events)
    for k, known, t in zip((4, 3, 2, 1), MERGES, measured, strict=True):
        label = f"SA(4), {k + 1} -> {k}: {t:.5f}, rounded up"
        rounded = np.ceil(100 * t) / 100
        report.compare("merging", label, predicted=known, measured=rounded, tolerance=1e-9)
    return run, measured


def hemisphere(report: Report) -> None:
    x = mf.Tokens.uniform(20, 3, rng=1).x * 1.0
    x[:, 2] = np.abs(x[:, 2])
    for drift in (mf.SA(4), mf.USA(2)):
        run = moved(drift, mf.Tokens(x), np.linspace(0, 10, 201))
        lowest = np.array([state.x[:, 2].min() for state in run])
        fall = max(0.0, float(-np.diff(lowest).min()))
        label = f"{drift!r}, from {lowest[0]:.3f} to {lowest[-1]:.6f}"
        report.compare("fall of min <x, w>", label, predicted=0, measured=fall, tolerance=1e-13)


def energy_identity(report: Report) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(40)
    for beta, d in ((1, 3), (4, 2), (4, 8)):
        end = 4 * np.exp(-beta)
        times = np.concatenate([[0], end * (nodes + 1) / 2, [end]])
        seen = moved(mf.USA(beta), mf.Tokens.uniform(20, d, rng=2), times).observables
        gain = float(seen["interaction_energy"][-1] - seen["interaction_energy"][0])
        work = end * float(weights @ seen["speed"].to_numpy()[1:-1] ** 2 / 2)
        numbers = {"predicted": work, "measured": gain, "tolerance": 1e-11, "relative": True}
        report.compare("energy gained", f"USA({beta}), d = {d}", **numbers)


def equivariance(report: Report) -> None:
    start = mf.Tokens.uniform(20, 4, rng=3)
    turn, order = ortho_group.rvs(4, random_state=4), np.random.default_rng(5).permutation(20)
    for drift in (mf.SA(3), mf.USA(1), mf.Attention(beta=2, weights=mf.L2())):
        straight = moved(drift, start, [2.0]).final.x
        turned = moved(drift, mf.Tokens(start.x @ turn), [2.0]).final.x
        shuffled = moved(drift, mf.Tokens(start.x[order]), [2.0]).final.x
        for what, error in (
            ("rotated", np.abs(turned - straight @ turn).max()),
            ("permuted", np.abs(shuffled - straight[order]).max()),
        ):
            label = type(drift).__name__
            report.compare(what, label, predicted=0, measured=error, tolerance=1e-11)


def causal(report: Report) -> None:
    start = mf.Tokens.uniform(16, 3, rng=6)
    for beta in (0, 1, 2):
        final = moved(mf.Attention(beta=beta, causal=True), start, [60.0]).final
        far = np.linalg.norm(final.x - start.x[0], axis=1).max()
        label = f"SA({beta}), t = 60"
        report.compare("from x_1(0)", label, predicted=0, measured=far, tolerance=1e-9)


def draw(curves: dict, run: mf.Solution, merged: np.ndarray, path: str) -> None:
    """Times of passage, decay under normalisations, and five tokens on their way to one."""
    figure = Figure(figsize=(9.5, 3.0), dpi=200, layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    fine = np.linspace(0, 9, 181)
    for i, ((name, n), times) in enumerate(TIMES.items()):
        left.semilogy(fine, [passage_time(name, beta, n) for beta in fine], color=f"C{i}", lw=1.2)
        left.semilogy(BETAS, times, "o", color=f"C{i}", ms=4, label=f"{name}, $n = {n}$")
    left.set(xlabel=r"$\beta$", ylabel=r"time at which $\rho = 0.999$", title="orthonormal tokens")
    left.legend()
    for i, (name, (times, gaps, known)) in enumerate(curves.items()):
        middle.loglog(times, known, color=f"C{i}", lw=1.2, label=name)
        middle.loglog(times[::2], gaps[::2], ".", color=f"C{i}", ms=4)
    middle.set(xlabel="time $t$", ylabel=r"$1 - \rho$", title=r"normalisations, SA, $\beta = 1$")
    middle.set(xlim=(0.3, 2e3), ylim=(1e-8, 2))
    middle.legend()
    angles = np.unwrap([np.arctan2(state.x[:, 1], state.x[:, 0]) for state in run], axis=0)
    right.semilogx(run.t[1:], angles[1:] % (2 * np.pi), lw=1.2)
    for t in merged:
        right.axvline(t, color="0.6", lw=0.8, ls=":")
    right.set(xlabel="time $t$", ylabel=r"angle $\theta_i$", title=r"five tokens, SA, $\beta = 4$")
    figure.savefig(path)


def main() -> int:
    arguments = command_line(__doc__, "fewer tokens and betas", "where to draw three of the checks")
    report = Report(["what", "case"])
    pairs(report)
    orthonormal(report, arguments.quick)
    curves = normalisations(report)
    for check in (test_particle, polygons, hemisphere, energy_identity, equivariance, causal):
        check(report)
    run, merged = merges(report)
    if arguments.figure:
        with theme.style():
            draw(curves, run, merged, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
