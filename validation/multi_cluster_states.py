"""Claim: k clusters on the circle are stationary, unstable, and metastable for large beta.

1. On the branch that leaves the uniform state of USA at kappa_k, the state with k clusters has
   growing perturbations, k = 2, 3, 4. As kappa grows its largest rate tends to that of k points of
   mass 1/k at equal distances,

       max_q (1/k) sum_j W''(2 pi j/k) (1 - cos(2 pi q j/k)),
       W'' = (beta sin^2 - cos) e^(beta cos):

   by two extrapolations in 1/kappa, 1e-3, relative.
2. Lifetimes: the rate of two clusters falls by the factor e for each unit of beta: the slope of
   its logarithm from beta = 3 to 6 is -1, to 1 %.
3. `solve` agrees: the perturbation along the growing mode grows at the rate to 1e-6.
4. Deflation finds the states with 1 to 5 clusters for beta = 6, kappa = 1, and the uniform one.

    python validation/multi_cluster_states.py [--quick]    # 2 s, 1 s quick

--quick has the rates of two and three points and beta from 3 to 5. Exit code 1 on failure.

References: Bruno, Pasqualotto and Agazzi, arXiv:2410.23228, for the metastable clusters.
"""

import sys

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf

CIRCLE = mf.Circle(32)


def main() -> int:
    report = Report(["claim", "case"], digits=10)
    quick = command_line(__doc__, "few clusters, small beta").quick
    limits(report, [(2, 3.0), (3, 4.0)] if quick else [(2, 3.0), (2, 5.0), (3, 4.0), (4, 5.0)])
    lifetimes(report, np.arange(3.0, 6.0 if quick else 7.0))
    growth_under_solve(report)
    found_by_deflation(report)
    return report.verdict()


def clusters(beta: float, k: int, factor: float) -> mf.StationaryState:
    """The state with k clusters at kappa = factor kappa_k, from k narrow normal laws."""
    kappa = factor / mf.USA(beta).attraction(k, 2)[k]
    l = np.arange(1, 65)
    moments = np.where(l % k == 0, np.exp(-(l**2) * k / (2 * kappa * np.exp(beta))), 0.0)
    guess = mf.Density(mf.Circle(64), np.concatenate([[1.0], moments]))
    found = mf.stationary(mf.Transformer(mf.USA(beta), kappa), guess)
    if not found.converged:
        sys.exit(f"{k} clusters, beta = {beta}: {found.message}")
    return found


def rate_of_points(beta: float, k: int) -> float:
    angle, j = 2 * np.pi * np.arange(1, k) / k, np.arange(1, k)
    pull = (beta * np.sin(angle) ** 2 - np.cos(angle)) * np.exp(beta * np.cos(angle))
    return max(pull @ (1 - np.cos(2 * np.pi * q * j / k)) / k for q in range(1, k))


def limits(report: Report, cases: list[tuple[int, float]]) -> None:
    for k, beta in cases:
        first, second, third = (-clusters(beta, k, f).stability().gap for f in (8, 16, 32))
        once = 2 * second - first, 2 * third - second
        measured, predicted = (4 * once[1] - once[0]) / 3, rate_of_points(beta, k)
        report.compare(f"rate of {k} points", f"beta = {beta:g}", predicted=predicted,
                       measured=measured, tolerance=1e-3, relative=True)  # fmt: skip


def lifetimes(report: Report, betas: np.ndarray) -> None:
    rates = [-clusters(beta, 2, 10.0).stability().gap for beta in betas]
    slope = np.polyfit(betas, np.log(rates), 1)[0]
    report.compare("slope of log rate", "2 clusters", predicted=-1, measured=slope, tolerance=0.01)


def growth_under_solve(report: Report) -> None:
    size, duration = 1e-7, 5.0
    for k, beta in ((2, 4.0), (3, 4.0)):
        state = clusters(beta, k, 3.0)
        found = state.stability(3)
        phase = 1.0 if found.orders[0] == 0 else -1j
        mode = np.append(0.0, phase * found.modes[0].real / np.linalg.norm(found.modes[0].real))
        start = state.density.coefficients
        moved = mf.Density(state.density.space, start + size * mode)
        run = successful(mf.solve(state.model, moved, (0, duration), rtol=1e-12, t_eval=[duration]))
        change = run.final.coefficients[: len(start)] - start
        ratio = (np.vdot(mode, change) / np.vdot(mode, size * mode)).real
        report.compare("growth under solve", f"{k} clusters", predicted=found.eigenvalues[0].real,
                       measured=np.log(ratio) / duration, tolerance=1e-6)  # fmt: skip


def found_by_deflation(report: Report) -> None:
    states = mf.stationary_states(mf.Transformer(mf.USA(6.0), 1.0), CIRCLE)
    periods = {int(np.flatnonzero(np.abs(s.legendre_moments) > 1e-6)[0]) + 1 if
               np.abs(s.legendre_moments).max() > 1e-6 else 0 for s in states}  # fmt: skip
    for k in range(6):
        report.compare("found by deflation", f"{k} clusters" if k else "uniform", predicted=1,
                       measured=int(k in periods), tolerance=0)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
