"""Claim: runs that end steadily end in the known stationary states.

A stationary density of USA with noise solves mu = exp(kappa W * mu)/Z. Its first three
moments, and its free energy F minus that of the uniform state, are compared with values from
an independent branch continuation (12 digits). For Kuramoto m_1 solves
r = I_1(kappa r)/I_0(kappa r). The equation itself is checked too: the largest
deviation of mu from exp(kappa W * mu)/Z on the grid, relative to the maximum of mu, where W * mu
is summed directly over the grid points, not in Fourier modes.

Asked: absolute errors of the moments and of F <= 1e-8, deviation <= 1e-8.

    python validation/stationary_moments.py    # 3 s; exit code 1 on failure

References: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, section 3, for the
free energy; the stationarity equation follows from its first variation.
"""

import sys

import numpy as np
from _report import Report, successful
from scipy.special import iv

import meanfield as mf

USA = {  # (beta, kappa): m_1, m_2, m_3, F - F(uniform)
    (1.0, 2.0): (0.543821203160, 0.205285340932, 0.061687841131, -1.070871312839e-2),
    (1.0, 3.0): (0.863961101266, 0.601702334173, 0.355358317638, -1.267350879807e-1),
    (1.0, 5.0): (0.947430064422, 0.808897477395, 0.627385709840, -2.985914802946e-1),
    (2.0, 2.0): (0.914665945171, 0.741190700828, 0.541106139231, -2.292009972298e-1),
    (2.0, 4.0): (0.977549558827, 0.913628180443, 0.817382167920, -6.411807017969e-1),
    (5.0, 0.19): (0.775321066363, 0.631131123999, 0.468040162296, -5.002095247791e-2),
    (5.0, 0.25): (0.954629361242, 0.878598862255, 0.770712094042, -1.847173041868),
}
KURAMOTO = {
    2.1: 0.303689343806,
    2.5: 0.589707987783,
    3.0: 0.724158717626,
    4.0: 0.831462024754,
    6.0: 0.902152779065,
    10.0: 0.945542186423,
}


def steady(model: mf.Transformer) -> mf.Solution:
    """A run from an ordered density to its steady state."""
    start = mf.Circle(64).von_mises(0.0, 5.0)
    limits = {"rtol": 1e-10, "until": "steady", "steady_tolerance": 1e-10}
    return successful(mf.solve(model, start, (0, 2000), t_eval=[2000], **limits))


def deviation(beta: float, kappa: float, density: mf.Density) -> float:
    """max |mu - exp(kappa W * mu)/Z| / max mu, W * mu by direct summation over the grid."""
    angles, weights, values = density.space.angles, density.space.weights, density.values
    cosines = np.cos(angles[:, None] - angles)
    kernel = np.exp(beta * cosines) / beta if beta else cosines
    exponent = kappa * kernel @ (weights * values)
    implied = np.exp(exponent - exponent.max())
    implied /= weights @ implied
    return float(np.abs(values - implied).max() / implied.max())


def main() -> int:
    report = Report(["drift", "kappa", "quantity"], digits=12)
    for (beta, kappa), row in USA.items():
        run = steady(mf.Transformer(mf.USA(beta), kappa))
        uniform = -iv(0, beta) / (2 * beta)
        measured = [run.final.moment(k).real for k in (1, 2, 3)]
        measured.append(run.observables["free_energy"].values[-1] - uniform)
        for name, predicted, value in zip(["m_1", "m_2", "m_3", "F"], row, measured, strict=True):
            labels = (f"USA({beta:g})", kappa, name)
            report.compare(*labels, predicted=predicted, measured=value, tolerance=1e-8)
        labels, value = (f"USA({beta:g})", kappa, "deviation"), deviation(beta, kappa, run.final)
        report.compare(*labels, predicted=0, measured=value, tolerance=1e-8)
    for kappa, predicted in KURAMOTO.items():
        final = steady(mf.Transformer(mf.Kuramoto(), kappa)).final
        labels, value = ("Kuramoto", kappa, "m_1"), final.moment(1).real
        report.compare(*labels, predicted=predicted, measured=value, tolerance=1e-8)
        labels, value = ("Kuramoto", kappa, "deviation"), deviation(0.0, kappa, final)
        report.compare(*labels, predicted=0, measured=value, tolerance=1e-8)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
