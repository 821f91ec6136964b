"""Claim: from a nearly uniform start the first metastable state has k*(beta) clusters.

Without noise a perturbation of degree k of the uniform state grows at the rate k^2 I_k/beta
(USA). The degree k* of the largest rate forms the clusters: 3 at beta = 5 and 4 at beta = 7.

    clusters    peaks of the density when its maximum reaches 4, fewest and most of ten seeded
                random perturbations of 1e-12 in degrees 1 to 8, under USA and SA.
    fastest     the degree that has grown most at the end of a linear run in which degrees 1
                to 12 start with equal amplitudes, for betas on both sides of every switch.
    switches    the beta at which k* goes from k to k + 1, from the package's multipliers,
                k^2 w_k = (k + 1)^2 w_{k+1}; reference values to 14 digits: <= 1e-9 relative.

The start must be this close to uniform. At beta = 5 degree 3 grows only 14 per cent faster than
degree 4; from a larger perturbation the number of clusters is as random as the start.

    python validation/metastable_clusters.py    # 3 s; exit code 1 on failure

References: Bruno, Pasqualotto and Agazzi, "Emergence of meta-stable clustering in mean-field
transformer models", ICLR 2025; the rates follow by linearisation.
"""

import sys

import numpy as np
from _report import Report, successful
from scipy.optimize import brentq

import meanfield as mf

CLUSTERS = {5.0: 3, 7.0: 4}
SWITCHES = {  # k: beta at which the fastest degree goes from k to k + 1
    1: 1.0444568621078,
    2: 3.1654344427006,
    3: 6.211298379432,
    4: 10.228483162986,
    5: 15.236276728521,
    6: 21.240451963642,
    7: 28.242957185718,
    8: 36.244583046742,
    9: 45.245700253437,
}
HEIGHT, SEEDS = 4.0, range(10)


def peaks(density: mf.Density) -> int:
    """Number of local maxima above the uniform level 1."""
    values = density.values
    higher = (values > np.roll(values, 1)) & (values >= np.roll(values, -1))
    return int(np.count_nonzero(higher & (values > 1)))


def clusters(drift, seed: int) -> int:
    """Peaks when the maximum of the density first reaches HEIGHT."""

    def tall(_t, density):
        return float(density.values.max()) - HEIGHT

    tall.terminal = True
    start = mf.Circle(32).perturbed(1e-12, rng=seed)
    run = mf.solve(mf.Transformer(drift), start, (0, 100), t_eval=[100], events=tall)
    if run.status != "event":
        sys.exit(f"No clusters formed: {run.message}")
    return peaks(successful(run).final)


def fastest(beta: float) -> int:
    """The degree whose coefficient has grown most when the largest is 100 times as large."""
    amplitude, degrees = 1e-9, np.arange(1, 13)
    rates = degrees**2 * mf.SA(beta).attraction(12, 2)[1:]
    end = np.log(100) / rates.max()
    start = mf.Circle(32).fourier([1, *np.full(12, amplitude)])
    run = mf.solve(mf.Transformer(mf.SA(beta)), start, (0, end), t_eval=[end], dt=end / 400)
    return 1 + int(np.abs(successful(run).final.coefficients[1:13]).argmax())


def switch(k: int, near: float) -> float:
    """beta at which the rates of degrees k and k + 1 agree."""

    def difference(beta):
        weights = mf.SA(beta).attraction(k + 1, 2)
        return k**2 * weights[k] - (k + 1) ** 2 * weights[k + 1]

    return brentq(difference, 0.9 * near, 1.1 * near, xtol=1e-13)


def main() -> int:
    report = Report(["drift", "beta", "quantity"], digits=13)
    for beta, number in CLUSTERS.items():
        for drift in (mf.USA(beta), mf.SA(beta)):
            counts = [clusters(drift, seed) for seed in SEEDS]
            for name, measured in (("fewest", min(counts)), ("most", max(counts))):
                labels = (type(drift).__name__, beta, f"clusters, {name} of {len(SEEDS)} seeds")
                report.compare(*labels, predicted=number, measured=measured, tolerance=0)
    for k, beta in SWITCHES.items():
        for factor, degree in ((0.98, k), (1.02, k + 1)):
            labels = ("SA", f"{factor * beta:.4g}", "fastest degree")
            measured = fastest(factor * beta)
            report.compare(*labels, predicted=degree, measured=measured, tolerance=0)
        options = {"tolerance": 1e-9, "relative": True}
        labels = ("both", "", f"switch {k} to {k + 1}")
        report.compare(*labels, predicted=beta, measured=switch(k, beta), **options)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
