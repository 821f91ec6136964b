"""Claim: densities of tight clusters on S^(d-1) are right in d = 16 to 50, to the tolerance.

Under Kuramoto at noise kappa an axisymmetric density tends to the von Mises-Fisher law of
concentration kappa r, with r the mean of x = <token, axis>:

    r = I_{d/2}(kappa r) / I_{d/2-1}(kappa r),    F = r^2/2 - log(Z(kappa r))/kappa,
    Z(c) = int e^(c x) dsigma = Gamma(d/2) (2/c)^(d/2-1) I_{d/2-1}(c).

Its coefficients reach 4e10 in d = 50 at kappa = 300. Under SA the limit is the state that
`mf.stationary` finds. Counted too are the highest degree and the steps of each run, against bounds.

Asked: r to 1e-9, F to 1e-6, the means under SA to 1e-4, all at rtol 1e-4; at most 512 modes and
2000 steps.

    python validation/clusters_in_many_dimensions.py [--quick]    # 15 s, 6 s quick

--quick has the highest dimension of each drift only. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.optimize import brentq
from scipy.special import gammaln, ive

import meanfield as mf

KURAMOTO = [(16, 300.0), (20, 300.0), (30, 300.0), (50, 300.0)]
SOFTMAX = [(16.0, 20), (16.0, 30), (40.0, 16)]
END, RTOL = 20.0, 1e-4


def cluster(d: int, kappa: float) -> tuple[float, float]:
    """r and F of the state with order."""

    def mean(c):
        return ive(d / 2, c) / ive(d / 2 - 1, c)

    r = brentq(lambda r: r - mean(kappa * r), 0.5, 1, xtol=1e-15)
    c, order = kappa * r, d / 2 - 1
    log_size = gammaln(d / 2) + order * np.log(2 / c) + np.log(ive(order, c)) + c
    return r, r * r / 2 - log_size / kappa


def run_of(drift, d: int, kappa: float, start) -> mf.Solution:
    model = mf.Transformer(drift, kappa)
    return successful(mf.solve(model, start, (0, END), t_eval=[END], rtol=RTOL))


def main() -> int:
    few = command_line(__doc__, "the highest dimensions only").quick
    report = Report(["drift", "d", "kappa", "quantity"])

    def count(run, *labels):
        degree, steps = run.stats["highest_degree"], run.stats["steps"]
        report.compare(*labels, "modes", predicted=256, measured=degree, tolerance=256)
        report.compare(*labels, "steps", predicted=1000, measured=steps, tolerance=1000)

    for d, kappa in KURAMOTO[-1:] if few else KURAMOTO:
        labels = "Kuramoto", d, kappa
        run = run_of(mf.Kuramoto(), d, kappa, mf.Zonal(d, 32).density(lambda x: 1 + 0.5 * x))
        r, free_energy = cluster(d, kappa)
        found = run.observables.isel(t=-1)
        measured = float(found.order_parameter)
        report.compare(*labels, "r", predicted=r, measured=measured, tolerance=1e-9)
        measured = float(found.free_energy)
        report.compare(*labels, "F", predicted=free_energy, measured=measured, tolerance=1e-6)
        count(run, *labels)
    for beta, d in SOFTMAX[1:2] if few else SOFTMAX:
        labels = f"SA({beta:g})", d, 300.0
        drift, start = mf.SA(beta), mf.Zonal(d, 32).von_mises_fisher(5.0)
        run = run_of(drift, d, 300.0, start)
        found = mf.stationary(mf.Transformer(drift, 300.0), run.final)
        predicted, measured = found.density.moment(1), run.final.moment(1)
        report.compare(*labels, "r", predicted=predicted, measured=measured, tolerance=RTOL)
        count(run, *labels)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
