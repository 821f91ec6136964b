"""Claim: n tokens approach the mean field as theory says, uniformly in time but for metastability.

Rates are fitted to means over replicas, with 95 % intervals by the bootstrap; se are standard
errors of means. Asked of exponents: 0.03.

1. Circle, noisy USA (beta = 1, kappa = 1 < kappa_c = 1.769) from a von Mises density, n = 64 to
   16384: W_1, W_2, H^-1 and the coupling with the nonlinear process ~ n^(-1/2), at t = 1 and 4.
   The bias of the time step is below 3 % of the smallest distance.
2. The same at kappa = 0.5, t = 1, n = 64 to 1024: E F(mu^n) - F(mu) ~ 1/n for F = |m_1|^2, |m_2|^2.
3. Uniform phase: n E|m_k|^2 = 1/(1 - kappa/kappa_k), k = 1, 2, 3; and by the linearisation of W_2
   about the uniform density n E W_2^2 = pi^2/3 + sum_k 2/k^2 (1/(1 - kappa/kappa_k) - 1), at all
   times after relaxation; beta = 0, 1, 4, at kappa = kappa_c / 2 and 0.9 kappa_c; 4.5 se and the
   next order, in 1/n.
4. Ordered phase, Kuramoto, kappa = 3: the phase diffuses, n Var = 2t/kappa / (1 - I_0(kappa r)^-2),
   which makes n E W_2^2 grow by 2/kappa in unit time; W_2 up to rotation stays where it is, and is
   ~ n^(-1/2). 4.5 se.
5. Metastability, USA, beta = 4, kappa = 0.98 kappa_c = 0.402: there the uniform density is stable,
   but clusters have less free energy (first-order transition at kappa_t = 0.3915). Until t = 40 up
   to 1024 tokens are found in clusters (at least 30 % of replicas), 4096 tokens are not (at most
   20 %): W_2 is not uniform in time; at t = 40 it does not fall with n <= 1024.
6. S^2, uniform phase: n E W_2^2 grows like log n with slope 1 (Ambrosio, Stra and Trevisan: area
   over 4 pi), which is the rate (log n / n)^(1/2); interacting tokens have sum_l (2l+1)/(l(l+1))
   (1/(1 - kappa/kappa_l) - 1) more than independent ones. 4.5 se; what the bounds of W_2 leave open
   is 2 %. mmd and H^-2 ~ n^(-1/2) up to n = 16384.

    python validation/propagation_of_chaos.py [--quick] [--figure FILE.png]

Eight minutes on two cores, 20 s with --quick, which has fewer replicas and wider intervals; exit
code 1 on failure.

References: Sznitman (1991); Bertini, Giacomin and Poquet, Probab. Theory Relat. Fields 160 (2014),
for the diffusing phase; Ambrosio, Stra and Trevisan, Probab. Theory Relat. Fields 173 (2019).
"""

import argparse
import sys
from functools import partial

import numpy as np
from _report import Report, successful
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf
from meanfield.chaos import rate_of

ERRORS = 4.5  # standard errors
THREADS = 2


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="fewer tokens and replicas")
    parser.add_argument("--figure", metavar="FILE.png")
    options = parser.parse_args()
    report = Report(["claim", "case", "95 % interval"], digits=4)
    parts = [
        part(report, options.quick)
        for part in (rates, weak_errors, uniform_phase, ordered_phase, metastability, sphere)
    ]
    if options.figure:
        draw(options.figure, *parts)
    return report.verdict()


study = partial(mf.propagation_of_chaos, threads=THREADS)


def critical(beta: float, k: int) -> float:
    """kappa_k of USA on the circle."""
    if beta == 0:
        return 2.0 if k == 1 else np.inf
    return beta / iv(k, beta)


def drift(beta: float) -> mf.USA | mf.Kuramoto:
    return mf.USA(beta) if beta else mf.Kuramoto()


def mean_of(table) -> tuple[np.ndarray, np.ndarray]:
    """Means over replicas and their standard errors."""
    values = table.transpose(..., "replica").values
    return values.mean(axis=-1), values.std(axis=-1, ddof=1) / values.shape[-1] ** 0.5


def exponent(report: Report, claim: str, case: str, rate, predicted: float, quick: bool) -> None:
    low, high = rate.interval
    report.compare(
        claim,
        case,
        f"[{low:.3f}, {high:.3f}]",
        predicted=predicted,
        measured=rate.exponent,
        tolerance=0.12 if quick else 0.03,
    )


# 1, 2: rates --------------------------------------------------------------------------------


def rates(report: Report, quick: bool) -> mf.Study:
    model, start = mf.Transformer(mf.USA(1.0), 1.0), mf.Circle(24).von_mises(0.0, 1.0)
    sizes = [64, 256, 1024] if quick else [64, 256, 1024, 4096, 16384]
    found = study(model, start, sizes, [1.0, 4.0], 32 if quick else 128, rng=0, dt=0.05)
    for t in (1.0, 4.0):
        for name in ("W1", "W2", "H^-1", "coupling"):
            exponent(report, "rate in n", f"{name}, t = {t:g}", found.rate(name, t), -0.5, quick)
    smallest = float(found.data["W2"].mean("replica").min())
    bias = time_step_bias(found.law, 100_000 if quick else 1_000_000)
    report.compare(
        "bias of dt = 0.05",
        "relative to the least W2",
        "",
        predicted=0.0,
        measured=bias / smallest,
        tolerance=0.03,
    )
    return found


def time_step_bias(law: mf.Solution, n: int) -> float:
    """That of E x_1 at t = 4 by steps of 0.4, over 64: steps of order 2 in 0.05."""
    tokens = mf.Tokens(law[0].sample(n, rng=1).x)
    alone = mf.Transformer(mf.MeanField(law), law.model.kappa)
    coarse = successful(mf.solve(alone, tokens, (0, 4), t_eval=[4.0], dt=0.4, rng=2))
    exact = float(law.final.expect(first))
    values = coarse.final.x[:, 0]
    return (abs(values.mean() - exact) + 2 * values.std() / n**0.5) / 64


def first(x: np.ndarray) -> np.ndarray:
    return x[..., 0]


def weak_errors(report: Report, quick: bool) -> mf.Study:
    model, start = mf.Transformer(mf.USA(1.0), 0.5), mf.Circle(24).von_mises(0.0, 0.5)
    sizes = [16, 64, 256] if quick else [64, 128, 256, 512, 1024]
    options = {"coupling": False, "floor": False, "distances": [], "dt": 0.1}
    found = study(model, start, sizes, [1.0], 2048 if quick else 12_288, rng=1, **options)
    for name in ("|m_1|^2", "|m_2|^2"):
        exponent(report, "weak error", name, found.weak_rate(name), -1.0, quick)
    return found


# 3: the uniform phase -----------------------------------------------------------------------


def uniform_phase(report: Report, quick: bool) -> dict:
    curves = {}
    for seed, (beta, part, n, replicas, end) in enumerate(
        (
            (0, 0.5, 1024, 1024, 16.0),
            (0, 0.9, 4096, 384, 60.0),
            (1, 0.5, 1024, 1024, 16.0),
            (1, 0.9, 4096, 384, 60.0),
            (4, 0.5, 1024, 1024, 4.0),
            (4, 0.9, 4096, 384, 16.0),
        )
    ):
        if quick and part == 0.9:
            continue
        n, replicas = (256, 128) if quick else (n, replicas)
        kappa = part * critical(beta, 1)
        times = end * np.array([0.125, 0.5, 0.75, 1.0])
        model, options = mf.Transformer(drift(beta), kappa), {"coupling": False, "floor": False}
        options |= {"distances": ["W2"], "functionals": SQUARES, "dt": end / 160}
        found = study(model, mf.Circle(16).uniform(), [n], times, replicas, rng=seed, **options)
        curves[beta, part] = compared(report, found, beta, kappa, n)
    return curves


def square(k: int, state):
    """|m_k|^2."""
    waves = np.cos, np.sin
    angle = lambda x: k * np.arctan2(x[..., 1], x[..., 0])  # noqa: E731
    return sum(state.expect(lambda x, wave=wave: wave(angle(x))) ** 2 for wave in waves)


SQUARES = {f"|m_{k}|^2": partial(square, k) for k in (1, 2, 3)}


def compared(report: Report, found: mf.Study, beta: float, kappa: float, n: int):
    case = f"beta = {beta}, kappa = {kappa:.3f}, n = {n}"
    gains = {k: 1 / (1 - kappa / critical(beta, k)) for k in range(1, 40)}
    beyond = 3 * gains[1] ** 2 / n  # the next order, relative
    for k in (1, 2, 3):
        mean, error = mean_of(n * found.data[f"|m_{k}|^2"].isel(n=0, t=-1))
        report.compare(
            f"n E|m_{k}|^2",
            case,
            interval(mean, error),
            predicted=gains[k],
            measured=mean,
            tolerance=ERRORS * error + beyond * gains[k],
            random=True,
        )
    predicted = np.pi**2 / 3 + sum(2 / k**2 * (gain - 1) for k, gain in gains.items())
    means, errors = mean_of(n * found.data["W2"].isel(n=0) ** 2)
    for t, mean, error in list(zip(found.data.t.values, means, errors, strict=True))[-2:]:
        report.compare(
            "n E W2^2",
            f"{case}, t = {t:g}",
            interval(mean, error),
            predicted=predicted,
            measured=mean,
            tolerance=ERRORS * error + beyond * predicted,
            random=True,
        )
    return found.data.t.values, means, errors, predicted


def interval(mean: float, error: float) -> str:
    return f"[{mean - 1.96 * error:.3f}, {mean + 1.96 * error:.3f}]"


# 4: the ordered phase -----------------------------------------------------------------------


def ordered_phase(report: Report, quick: bool) -> mf.Study:
    kappa = 3.0
    r = brentq(lambda r: iv(1, kappa * r) / iv(0, kappa * r) - r, 0.1, 0.99)
    start, model = mf.Circle(32).von_mises(0.0, kappa * r), mf.Transformer(mf.Kuramoto(), kappa)
    diffusion(report, model, start, r, quick)
    times = [5.0, 10.0, 20.0] if quick else [5.0, 10.0, 20.0, 40.0]
    names = ["W2", "W2 up to rotation"]
    options = {"distances": names, "dt": 0.1, "floor": False}
    sizes, replicas = ([32, 128], 64) if quick else ([64, 256, 1024], 192)
    found = study(model, start, sizes, times, replicas, rng=3, **options)
    scaled = found.data["W2 up to rotation"] ** 2 * found.data.n
    late, early = mean_of(scaled.isel(t=-1)), mean_of(scaled.isel(t=0))
    for i, n in enumerate(sizes):
        error = np.hypot(late[1][i], early[1][i])
        report.compare(
            "n E W2^2 up to rotation",
            f"from t = {times[0]:g} to {times[-1]:g}, n = {n}",
            interval(late[0][i], late[1][i]),
            predicted=early[0][i],
            measured=late[0][i],
            tolerance=ERRORS * error,
            random=True,
        )
    for name in ("W2 up to rotation",):
        exponent(report, "rate in n", f"{name}, kappa = 3", found.rate(name), -0.5, quick)
    return found


def diffusion(report: Report, model, start, r: float, quick: bool) -> None:
    """Of the phase of m_1, and what it adds to W_2^2."""
    n, kappa = 128 if quick else 256, float(model.kappa)
    options = {"coupling": False, "floor": False, "distances": ["W2"], "dt": 0.1}
    options |= {"functionals": {"phase": phase}}
    found = study(model, start, [n], [5.0, 40.0], 128 if quick else 1024, rng=8, **options)
    squares = n * found.data[["phase", "W2"]].isel(n=0) ** 2
    grown = (squares.isel(t=1) - squares.isel(t=0)) / 35
    stiffness = 1 - iv(0, kappa * r) ** -2
    for name, predicted in (("phase", 2 / kappa / stiffness), ("W2", 2 / kappa)):
        mean, error = mean_of(grown[name])
        report.compare(
            "growth by diffusion of the phase",
            f"n E {name}^2, kappa = 3, n = {n}",
            interval(mean, error),
            predicted=predicted,
            measured=mean,
            tolerance=ERRORS * error,
            random=True,
        )


def phase(state):
    return np.arctan2(state.expect(lambda x: x[..., 1]), state.expect(first))


# 5: metastability ---------------------------------------------------------------------------


def metastability(report: Report, quick: bool) -> mf.Study:
    kappa, sizes = 0.98 * critical(4.0, 1), [64, 256] if quick else [64, 256, 1024, 4096]
    model, options = mf.Transformer(mf.USA(4.0), kappa), {"coupling": False, "floor": False}
    options |= {"distances": ["W2"], "functionals": {"|m_1|^2": partial(square, 1)}, "dt": 0.05}
    times, replicas = ([5.0, 10.0], 64) if quick else ([2.0, 5.0, 10.0, 20.0, 40.0], 128)
    found = study(model, mf.Circle(24).uniform(), sizes, times, replicas, rng=4, **options)
    share = (found.data["|m_1|^2"] > 0.25).mean("replica").isel(t=-1)
    case = f"beta = 4, kappa = {kappa:.4f}, t = {times[-1]:g}"
    few = share.sel(n=[n for n in sizes if n <= 1024])
    report.compare(
        "few tokens in clusters",
        f"{case}, n <= 1024",
        "",
        predicted=1.0,
        measured=float(few.min()),
        tolerance=0.7,
    )
    if not quick:
        report.compare(
            "many tokens are not",
            f"{case}, n = 4096",
            "",
            predicted=0.0,
            measured=float(share.sel(n=4096)),
            tolerance=0.2,
        )
        late = rate_of(few.n.values, found.data["W2"].isel(t=-1).sel(n=few.n).values)
        report.compare(
            "rate in n, n <= 1024",
            f"W2, {case}",
            f"[{late.interval[0]:.3f}, {late.interval[1]:.3f}]",
            predicted=0.0,
            measured=late.exponent,
            tolerance=0.25,
        )
    return found


# 6: S^2 -------------------------------------------------------------------------------------


def sphere(report: Report, quick: bool) -> tuple:
    sizes, replicas = ([32, 64, 128], 24) if quick else ([64, 128, 256, 512], 96)
    space, kappa = mf.Sphere(16), 1.5
    model = mf.Transformer(mf.Kuramoto(), kappa)
    options = {"coupling": False, "distances": ["W2"], "dt": 0.1}
    found = study(model, space.uniform(), sizes, [6.0], replicas, rng=5, **options)
    more = 3 / 2 * (1 / (1 - kappa / 3) - 1)
    scaled = {
        name: found.data[name].isel(t=0) ** 2 * found.data.n for name in ("W2", "floor of W2")
    }
    slopes = {}
    for name, table in scaled.items():
        means, errors = mean_of(table)
        slopes[name] = line(np.log(sizes), means, errors)
        slope, error = slopes[name]
        report.compare(
            "n E W2^2 ~ log n, S^2",
            name,
            interval(slope, error),
            predicted=1.0,
            measured=slope,
            tolerance=ERRORS * error,
            random=True,
        )
    gaps = scaled["W2"] - scaled["floor of W2"]
    means, errors = mean_of(gaps)
    weights = errors**-2 / np.sum(errors**-2)
    error = np.sum(errors**-2) ** -0.5
    report.compare(
        "n E W2^2, tokens less samples",
        "S^2, kappa = 1.5",
        interval(weights @ means, error),
        predicted=more,
        measured=weights @ means,
        tolerance=ERRORS * error + 0.1 * more,
        random=True,
    )
    start, sizes = space.von_mises_fisher([0, 0, 1], 1.0), [64, 256, 1024, 4096, 16384]
    model = mf.Transformer(mf.USA(1.0), 1.5)
    many = study(model, start, sizes[: 3 if quick else 5], [1.0], 32, rng=6, dt=0.1, floor=False)
    for name in ("mmd", "H^-2", "coupling"):
        exponent(report, "rate in n, S^2", f"{name}, t = 1", many.rate(name), -0.5, quick)
    return found, many


def line(x: np.ndarray, means: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """The slope of a weighted line, and its standard error."""
    weights = errors**-2
    centred = x - weights @ x / weights.sum()
    size = weights @ centred**2
    return float(weights @ (centred * means) / size), float(size**-0.5)


# The figure ---------------------------------------------------------------------------------


def draw(path: str, circle, weak, uniform, ordered, metastable, spheres) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7.4), dpi=160, layout="constrained")
    axes = figure.subplots(2, 3)
    draw_rates(axes[0, 0], circle, ("W1", "W2", "coupling"), "1. Circle, noisy USA, t = 4")
    draw_weak(axes[0, 1], weak)
    draw_uniform(axes[0, 2], uniform)
    draw_ordered(axes[1, 0], ordered)
    draw_metastable(axes[1, 1], metastable)
    draw_spheres(axes[1, 2], spheres[0])
    figure.savefig(path)


def draw_rates(ax, found: mf.Study, names, title: str) -> None:
    sizes = found.data.n.values
    for name in names:
        mean, error = mean_of(found.data[name].isel(t=-1))
        rate = found.rate(name)
        ax.errorbar(sizes, mean, 1.96 * error, fmt="o", ms=4, color=(colour := next_colour(ax)))
        fitted = rate.constant * sizes**rate.exponent
        ax.plot(sizes, fitted, color=colour, label=f"{name} ~ n^{rate.exponent:.3f}")
        if f"floor of {name}" in found.data:
            floor = mean_of(found.data[f"floor of {name}"].isel(t=-1))[0]
            ax.plot(sizes, floor, "--", lw=1, color=colour)
    ax.plot([], [], "k--", lw=1, label="independent samples")
    ax.set(xscale="log", yscale="log", xlabel="n", title=title)
    ax.legend(fontsize=8)


def next_colour(ax) -> str:
    return f"C{len(ax.containers)}"


def draw_weak(ax, found: mf.Study) -> None:
    sizes = found.data.n.values
    for i, name in enumerate(("|m_1|^2", "|m_2|^2")):
        limit = float(found.data[f"limit of {name}"].isel(t=-1))
        mean, error = mean_of(found.data[name].isel(t=-1))
        rate = found.weak_rate(name)
        ax.errorbar(sizes, mean - limit, 1.96 * error, fmt="o", ms=4, color=f"C{i}")
        fitted = rate.constant * sizes**rate.exponent
        ax.plot(sizes, fitted, f"C{i}", label=f"F = {name} ~ n^{rate.exponent:.3f}")
    ax.set(xscale="log", yscale="log", xlabel="n", title="2. E F(mu^n) - F(mu), t = 1")
    ax.legend(fontsize=8)


def draw_uniform(ax, curves: dict) -> None:
    for i, ((beta, part), (times, means, errors, predicted)) in enumerate(curves.items()):
        label = f"beta = {beta}, kappa = {part} kappa_c"
        ax.errorbar(times, means, 1.96 * errors, fmt="o-", ms=4, color=f"C{i}", label=label)
        ax.axhline(predicted, color=f"C{i}", lw=1, ls=":")
    ax.set(xscale="log", yscale="log", xlabel="t", title="3. n E W2^2, uniform phase")
    ax.legend(fontsize=7)


def draw_ordered(ax, found: mf.Study) -> None:
    times = found.data.t.values
    for i, n in enumerate(found.data.n.values):
        for name, style in (("W2", "o-"), ("W2 up to rotation", "s--")):
            mean, error = mean_of(n * found.data[name].sel(n=n) ** 2)
            ax.errorbar(
                times, mean, 1.96 * error, fmt=style, ms=4, color=f"C{i}", label=f"{name}, n = {n}"
            )
    ax.plot(times, 2 + 2 * times / 3, "k:", label="2 + 2t/3")
    ax.set(yscale="log", xlabel="t", title="4. n E W2^2, Kuramoto, kappa = 3")
    ax.legend(fontsize=7)


def draw_metastable(ax, found: mf.Study) -> None:
    for i, n in enumerate(found.data.n.values):
        mean, error = mean_of(found.data["W2"].sel(n=n))
        ax.errorbar(
            found.data.t, mean, 1.96 * error, fmt="o-", ms=4, color=f"C{i}", label=f"n = {n}"
        )
    ax.set(xscale="log", yscale="log", xlabel="t", title="5. E W2, beta = 4, kappa = 0.402")
    ax.legend(fontsize=8)


def draw_spheres(ax, found: mf.Study) -> None:
    sizes = found.data.n.values
    for i, (name, label) in enumerate((("W2", "tokens"), ("floor of W2", "independent samples"))):
        mean, error = mean_of(found.data[name].isel(t=-1) ** 2 * found.data.n)
        ax.errorbar(sizes, mean, 1.96 * error, fmt="o", ms=4, color=f"C{i}", label=label)
        weights = error**-2
        start = weights @ (mean - np.log(sizes)) / weights.sum()
        ax.plot(sizes, np.log(sizes) + start, f"C{i}", lw=1, label=f"log n + {start:.2f}")
    ax.set(xscale="log", xlabel="n", title="6. n E W2^2 on S^2, kappa = 1.5")
    ax.legend(fontsize=8)


if __name__ == "__main__":
    sys.exit(main())
