"""Claim: the flux mu v of USA and Kuramoto is computed without aliases, whatever the density.

The Fourier coefficients of -(mu v)' are those of the exact convolution

    -i k sum_j v_j c_{k-j},    v_j = i j w_j c_j,    |k|, |k - j|, |j| <= degree,

for coefficients c_k that do not decay at all, the worst case: random phases, modulus 1/2. For a
smooth density aliases are below rounding, and a test would show no error on any grid. The
convolution is summed directly; the code multiplies on a grid of 2 degree + band + 1 points or a few
more, where the band is that of the kernel.

Asked: errors <= 1e-13 of the largest coefficient.

    python validation/products_without_aliases.py    # 2 s; exit code 1 on failure

References: Orszag, J. Atmos. Sci. 28 (1971) 1074, for the counting of aliases.
"""

import sys

import numpy as np
from _report import Report

import meanfield as mf
from meanfield.dynamics import DensityEvolution

DRIFTS = (mf.Kuramoto(), mf.USA(0.5), mf.USA(4.0), mf.USA(20.0))


def convolution(weights: np.ndarray, c: np.ndarray) -> np.ndarray:
    """-i k sum_j v_j c_{k-j} for k = 0, ..., degree, summed directly."""
    k = np.arange(c.size)
    full = np.concatenate([np.conj(c[:0:-1]), c])
    velocity = 1j * k * weights * c
    velocity = np.concatenate([np.conj(velocity[:0:-1]), velocity])
    return -1j * k * np.convolve(full, velocity)[2 * c.size - 2 : 3 * c.size - 2]


def main() -> int:
    report = Report(["drift", "degree"], digits=4)
    rng = np.random.default_rng(7)
    for drift in DRIFTS:
        for degree in (1, 2, 5, 16, 31, 64, 100, 257):
            c = 0.5 * np.exp(2j * np.pi * rng.random(degree + 1))
            c[0] = 1
            transport = DensityEvolution(mf.Transformer(drift), mf.Circle(degree), ()).nonlinear
            weights = drift.attraction(degree, 2)
            exact = convolution(weights, c)
            error = np.abs(transport(c[None])[0] - exact).max() / np.abs(exact).max()
            report.compare(drift, degree, predicted=0, measured=error, tolerance=1e-13)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
