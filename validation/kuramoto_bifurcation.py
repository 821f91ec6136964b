"""Claim: the noisy Kuramoto model on the circle orders at kappa = 2, along a known curve.

For kappa <= 2 every density tends to the uniform one. For kappa > 2 the limit is a von Mises
density of concentration kappa r, whose order parameter r and second moment are

    r = I_1(kappa r) / I_0(kappa r) > 0,        m_2 = 1 - 2/kappa.

One ensemble starts from a cosine of amplitude 0.2 and runs until it is steady. The threshold
itself is measured as well: the growth rate of a small perturbation is 1/2 - 1/kappa, linear
in 1/kappa, and the line through two measured rates vanishes at kappa = 2.

Asked: errors of r and m_2 <= 1e-8, of the threshold <= 1e-7.

    python validation/kuramoto_bifurcation.py    # 2 s; exit code 1 on failure

References: Rigollet, arXiv:2512.01868, equations (8) and (9) and the text below them; Bertini,
Giacomin and Pakdaman, J. Stat. Phys. 138 (2010), with their K = kappa/2.
"""

import sys

import numpy as np
from _report import Report, successful
from scipy.optimize import brentq
from scipy.special import ive

import meanfield as mf

KAPPA = np.array([1.5, 1.9, 2.1, 2.5, 3.0, 4.0, 6.0, 10.0])


def predicted_order(kappa: float) -> float:
    """The positive root of r = I_1(kappa r)/I_0(kappa r), 0 up to kappa = 2."""
    if kappa <= 2:
        return 0.0
    return brentq(lambda r: r - ive(1, kappa * r) / ive(0, kappa * r), 1e-3, 1, xtol=1e-15)


def measured_threshold() -> float:
    """Where the growth rate of a perturbation of 1e-6 vanishes, from kappa = 1.8 and 2.2."""
    kappa, end = np.array([1.8, 2.2]), 10.0
    start = mf.Circle(16).fourier([1, 1e-6])
    model = mf.Transformer(mf.Kuramoto(), kappa)
    run = successful(mf.solve(model, start, (0, end), t_eval=[end], dt=0.02))
    rate = np.log(np.abs(run.final.moment(1)) / 1e-6) / end
    slope = (rate[1] - rate[0]) / (1 / kappa[1] - 1 / kappa[0])
    return 1 / (1 / kappa[0] - rate[0] / slope)


def main() -> int:
    start = mf.Circle(32).fourier([1, 0.1])
    model = mf.Transformer(mf.Kuramoto(), KAPPA)
    run = mf.solve(
        model, start, (0, 5000), t_eval=[5000], rtol=1e-10, until="steady", steady_tolerance=1e-11
    )
    final = successful(run).final
    report = Report(["kappa", "quantity"])
    report.compare("", "threshold", predicted=2, measured=measured_threshold(), tolerance=1e-7)
    for i, kappa in enumerate(KAPPA):
        order, second = abs(final.moment(1)[i]), abs(final.moment(2)[i])
        r = predicted_order(kappa)
        report.compare(kappa, "r", predicted=r, measured=order, tolerance=1e-8)
        m_2 = max(0.0, 1 - 2 / kappa)
        report.compare(kappa, "m_2", predicted=m_2, measured=second, tolerance=1e-8)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
