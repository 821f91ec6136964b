"""Claim: n tokens approach the mean field as predicted, uniformly in time except for metastability.

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
   which makes n E W_2^2 grow by 2/kappa in unit time; W_2 up to rotation does not grow, and is
   ~ n^(-1/2). 4.5 se.
5. Metastability, USA, beta = 4, kappa = 0.98 kappa_c = 0.402: there the uniform density is stable,
   but clusters have less free energy (first-order transition at kappa_t = 0.3915). Until t = 40 up
   to 1024 tokens are found in clusters (at least 30 % of replicas), 4096 tokens are not (at most
   20 %): W_2 is not uniform in time; at t = 40 it does not fall with n <= 1024.
6. S^2, uniform phase: n E W_2^2 grows like log n with slope 1 (Ambrosio, Stra and Trevisan: area
   over 4 pi), which is the rate (log n / n)^(1/2); interacting tokens have sum_l (2l+1)/(l(l+1))
   (1/(1 - kappa/kappa_l) - 1) more than independent ones. 4.5 se; what the bounds of W_2 leave open
   is 2 %. mmd and H^-2 ~ n^(-1/2) up to n = 16384.

    python validation/propagation_of_chaos.py [--quick] [--figure FILE.png]  # 600 s, 21 s quick

--quick has fewer tokens and replicas, and wider intervals. OMP_NUM_THREADS says how many batches
are run at the same time, by default two. Exit code 1 on failure.

References: Sznitman (1991); Bertini, Giacomin and Poquet, Probab. Theory Relat. Fields 160 (2014),
for the diffusing phase; Ambrosio, Stra and Trevisan, Probab. Theory Relat. Fields 173 (2019).
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from _chaos_figure import draw, mean_of
from _chaos_on_the_sphere import sphere
from _chaos_report import Sampled
from _report import command_line, successful
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf
from meanfield.chaos import rate_of

THREADS = int(os.environ.get("OMP_NUM_THREADS", 2))  # of batches; results are the same


def main() -> int:
    options = command_line(__doc__, "fewer tokens and replicas", "file to draw in")
    report = Sampled(0.12 if options.quick else 0.03)
    parts = [
        part(report, options.quick)
        for part in (rates, weak_errors, uniform_phase, ordered_phase, metastability, sphere)
    ]
    if options.figure:
        draw(options.figure, *parts)
    return report.verdict()


study = partial(mf.propagation_of_chaos, executor=ThreadPoolExecutor(THREADS))


def critical(beta: float, k: int) -> float:
    """kappa_k of USA on the circle."""
    if beta == 0:
        return 2.0 if k == 1 else np.inf
    return beta / iv(k, beta)


def drift(beta: float) -> mf.USA | mf.Kuramoto:
    return mf.USA(beta) if beta else mf.Kuramoto()


# 1, 2: rates --------------------------------------------------------------------------------


def rates(report: Sampled, quick: bool) -> mf.Study:
    model, start = mf.Transformer(mf.USA(1.0), 1.0), mf.Circle(24).von_mises(0.0, 1.0)
    sizes = [32, 128, 512] if quick else [64, 256, 1024, 4096, 16384]
    found = study(model, start, sizes, [1.0, 4.0], 32 if quick else 128, rng=0, dt=0.05)
    for t in (1.0, 4.0):
        for name in ("W1", "W2", "H^-1", "coupling"):
            report.rate("rate in n", f"{name}, t = {t:g}", found.rate(name, t), -0.5)
    smallest = float(found.data["W2"].mean("replica").min())
    bias = time_step_bias(found.law, 40_000 if quick else 1_000_000)
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


def weak_errors(report: Sampled, quick: bool) -> mf.Study:
    model, start = mf.Transformer(mf.USA(1.0), 0.5), mf.Circle(24).von_mises(0.0, 0.5)
    sizes = [16, 64, 256] if quick else [64, 128, 256, 512, 1024]
    options = {"coupling": False, "floor": False, "distances": [], "dt": 0.1}
    found = study(model, start, sizes, [1.0], 1024 if quick else 6144, rng=1, **options)
    for name in ("|m_1|^2", "|m_2|^2"):
        report.rate("weak error", name, found.weak_rate(name), -1.0)
    return found


# 3: the uniform phase -----------------------------------------------------------------------


def uniform_phase(report: Sampled, quick: bool) -> dict:
    curves = {}
    for seed, (beta, part, n, replicas, end) in enumerate(
        (
            (0, 0.5, 1024, 384, 16.0),
            (0, 0.9, 4096, 192, 60.0),
            (1, 0.5, 1024, 384, 16.0),
            (1, 0.9, 4096, 192, 60.0),
            (4, 0.5, 1024, 384, 4.0),
            (4, 0.9, 4096, 192, 16.0),
        )
    ):
        if quick and (part == 0.9 or beta == 1):
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


def compared(report: Sampled, found: mf.Study, beta: float, kappa: float, n: int):
    case = f"beta = {beta}, kappa = {kappa:.3f}, n = {n}"
    gains = {k: 1 / (1 - kappa / critical(beta, k)) for k in range(1, 40)}
    beyond = 3 * gains[1] ** 2 / n  # the next order, relative
    for k in (1, 2, 3):
        mean, error = mean_of(n * found.data[f"|m_{k}|^2"].isel(n=0, t=-1))
        report.agrees(f"n E|m_{k}|^2", case, gains[k], mean, error, beyond=beyond * gains[k])
    predicted = np.pi**2 / 3 + sum(2 / k**2 * (gain - 1) for k, gain in gains.items())
    means, errors = mean_of(n * found.data["W2"].isel(n=0) ** 2)
    for t, mean, error in list(zip(found.data.t.values, means, errors, strict=True))[-2:]:
        report.agrees(
            "n E W2^2", f"{case}, t = {t:g}", predicted, mean, error, beyond=beyond * predicted
        )
    return found.data.t.values, means, errors, predicted


# 4: the ordered phase -----------------------------------------------------------------------


def ordered_phase(report: Sampled, quick: bool) -> mf.Study:
    kappa = 3.0
    r = brentq(lambda r: iv(1, kappa * r) / iv(0, kappa * r) - r, 0.1, 0.99)
    start, model = mf.Circle(32).von_mises(0.0, kappa * r), mf.Transformer(mf.Kuramoto(), kappa)
    diffusion(report, model, start, r, quick)
    times = [5.0, 20.0] if quick else [5.0, 10.0, 20.0, 40.0]
    names = ["W2", "W2 up to rotation"]
    options = {"distances": names, "dt": 0.1, "floor": False}
    sizes, replicas = ([32, 128], 64) if quick else ([64, 256, 1024], 192)
    found = study(model, start, sizes, times, replicas, rng=3, **options)
    unchanged(report, found)
    report.rate(
        "rate in n",
        "W2 up to rotation, kappa = 3",
        found.rate("W2 up to rotation"),
        -0.5,
    )
    return found


def unchanged(report: Sampled, found: mf.Study) -> None:
    """W_2 up to rotation, from the first time to the last."""
    sizes, times = found.data.n.values, found.data.t.values
    scaled = found.data["W2 up to rotation"] ** 2 * found.data.n
    late, early = mean_of(scaled.isel(t=-1)), mean_of(scaled.isel(t=0))
    for i, n in enumerate(sizes):
        error = np.hypot(late[1][i], early[1][i])
        report.agrees(
            "n E W2^2 up to rotation",
            f"from t = {times[0]:g} to {times[-1]:g}, n = {n}",
            early[0][i],
            late[0][i],
            error,
        )


def diffusion(report: Sampled, model, start, r: float, quick: bool) -> None:
    """Of the phase of m_1, and what it adds to W_2^2."""
    n, kappa = 128 if quick else 256, float(model.kappa)
    options = {"coupling": False, "floor": False, "distances": ["W2"], "dt": 0.1}
    options |= {"functionals": {"phase": phase}}
    times, replicas = ([5.0, 25.0], 256) if quick else ([5.0, 40.0], 512)
    found = study(model, start, [n], times, replicas, rng=8, **options)
    squares = n * found.data[["phase", "W2"]].isel(n=0) ** 2
    grown = (squares.isel(t=1) - squares.isel(t=0)) / (times[1] - times[0])
    stiffness = 1 - iv(0, kappa * r) ** -2
    for name, predicted in (("phase", 2 / kappa / stiffness), ("W2", 2 / kappa)):
        mean, error = mean_of(grown[name])
        report.agrees(
            "growth by diffusion of the phase",
            f"n E {name}^2, kappa = 3, n = {n}",
            predicted,
            mean,
            error,
        )


def phase(state):
    return np.arctan2(state.expect(lambda x: x[..., 1]), state.expect(first))


# 5: metastability ---------------------------------------------------------------------------


def metastability(report: Sampled, quick: bool) -> mf.Study:
    kappa, sizes = 0.98 * critical(4.0, 1), [64, 256] if quick else [64, 256, 1024, 4096]
    model, options = mf.Transformer(mf.USA(4.0), kappa), {"coupling": False, "floor": False}
    options |= {"distances": ["W2"], "functionals": {"|m_1|^2": partial(square, 1)}, "dt": 0.05}
    times, replicas = ([5.0, 10.0], 64) if quick else ([2.0, 5.0, 10.0, 20.0, 40.0], 64)
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
        report.rate("rate in n, n <= 1024", f"W2, {case}", late, 0.0, tolerance=0.25)
    return found


if __name__ == "__main__":
    sys.exit(main())
