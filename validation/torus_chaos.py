"""Claim: tokens on the torus approach the mean field like 1/n, uniformly in time at small coupling.

Torus of two angles, noisy USA, beta = 0.5, kappa = 0.5 below the first onset kappa_1 = 1.82, from a
product of von Mises densities. se are standard errors of means over replicas; rates are fitted to
means, with 95 % intervals by the bootstrap. Asked of exponents: 0.03.

1. mmd and H^-2 of n = 64, 256, 1024 tokens from their density are ~ n^(-1/2) at t = 1, 5 and 20,
   and the coupling with the nonlinear process at t = 1.
2. E F(mu^n) - F(mu) ~ 1/n for F = |m_1|^2, n = 32 to 256, at t = 1, 5 and 20: the weak error of
   Delarue and Tse.
3. Uniform in time: n E |m_1|^2 is 2/(1 - kappa/kappa_1) at t = 5 and 20, by the linearised noisy
   equation, and mmd and H^-2 do not grow between them. 4.5 se, and of the first what is of order
   1/n. The coupling, token by token, grows all the time: nothing brings back a token that is off.

    python validation/torus_chaos.py [--quick]    # 450 s, 30 s quick; exit code 1 on failure

Reference: Delarue and Tse, arXiv:2104.14973.
"""

import sys

import numpy as np
from _chaos_figure import mean_of
from _chaos_report import Sampled
from _report import command_line
from scipy.special import iv

import meanfield as mf

BETA, KAPPA = 0.5, 0.5
ONSET = BETA / (iv(0, BETA) * iv(1, BETA))
TIMES = [1.0, 5.0, 20.0]
MODEL = mf.Transformer(mf.USA(BETA), KAPPA)
START = mf.Torus(12).von_mises([0.3, 1.0], 0.7)


def distances(report: Sampled, quick: bool) -> None:
    sizes, replicas = ([16, 64, 256], 64) if quick else ([64, 256, 1024], 256)
    options = {"rng": 1, "dt": 0.2, "floor": False}
    found = mf.propagation_of_chaos(MODEL, START, sizes, TIMES, replicas, **options)
    for name in ("mmd", "H^-2"):
        for t in TIMES:
            report.rate("rate in n", f"{name}, t = {t:g}", found.rate(name, t), -0.5)
        late = found.data[name].sel(t=TIMES[1:])
        for n in sizes:
            (before, after), errors = mean_of(late.sel(n=n))
            report.agrees(
                "no growth in time", f"{name}, n = {n}", 1.0, after / before,
                float(np.hypot(*errors)) / before,
            )  # fmt: skip
    report.rate("rate in n", "coupling, t = 1", found.rate("coupling", 1.0), -0.5)
    apart = found.data["coupling"].mean("replica").sel(n=sizes[-1]).values
    grows, claim = float((np.diff(apart) > 0).all()), "the coupling grows"
    case = "from t = 1 to 5 to 20", ""
    report.compare(claim, *case, predicted=1.0, measured=grows, tolerance=0.0)


def weak_errors(report: Sampled, quick: bool) -> None:
    sizes, replicas = ([16, 32, 64], 1024) if quick else ([32, 64, 128, 256], 4096)
    options = {"rng": 2, "dt": 0.2, "floor": False, "coupling": False, "distances": []}
    found = mf.propagation_of_chaos(MODEL, START, sizes, TIMES, replicas, **options)
    for t in TIMES:
        report.rate("weak error", f"|m_1|^2, t = {t:g}", found.weak_rate("|m_1|^2", t), -1.0)
    exact, n = 2 / (1 - KAPPA / ONSET), sizes[-1]
    for t in TIMES[1:]:
        mean, error = mean_of(n * found.data["|m_1|^2"].sel(n=n, t=t))
        report.agrees("n E|m_1|^2", f"t = {t:g}", exact, mean, error, beyond=4 / n)


def main() -> int:
    quick = command_line(__doc__, "fewer tokens and replicas").quick
    report = Sampled(0.12 if quick else 0.03)
    distances(report, quick)
    weak_errors(report, quick)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
