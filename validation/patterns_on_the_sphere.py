"""Claim: from a near-uniform start on S^2 the fastest degree l*(beta) makes the first pattern.

SA without noise, from random perturbations of degrees 1 to 8. (USA has the same l*, with another
unit of time.) Their size is 1e-9, so that the fastest degree has the time to become the largest.
When the density has left the uniform state (its largest value passes 1.2), the degree with the
largest share of int (mu - 1)^2 dsigma is l*(beta), which maximises l (l + 1) i_l(beta), i_l the
modified spherical Bessel function. beta =
1.5, 3, 6 and 10 lie between the switch values 1.8162, 4.4253, 7.9624, 12.477, which are measured
too, as crossings of the growth rates.

Asked: l* = 1, 2, 3, 4 for 5 random starts each; switch values to 1e-9, relative.

    python validation/patterns_on_the_sphere.py    # 5 s; exit code 1 on failure

References: Bruno, Pasqualotto and Agazzi, ICLR 2025, on the circle; the rates on S^2 follow from
the Funk-Hecke formula.
"""

import sys

import numpy as np
from _report import Report, successful
from scipy.optimize import brentq

import meanfield as mf
from meanfield.spaces.kernels import exponential_multipliers

SWITCHES = (1.8161545254359, 4.4252930123956, 7.9623798515463, 12.477433109401)
BETAS = (1.5, 3.0, 6.0, 10.0)


def rates(beta: float) -> np.ndarray:
    """l (l + 1) lambda_l for l = 0, ..., 12, up to a common factor."""
    l = np.arange(13)
    return l * (l + 1) * exponential_multipliers(beta, 12, 3)


def pattern(beta: float, seed: int) -> int:
    """The degree of the first pattern from a random start."""
    start = mf.Sphere(16).perturbed(1e-9, rng=seed)

    def visible(_t, density):
        return density.values.max() - 1.2

    visible.terminal = True
    run = successful(
        mf.solve(
            mf.Transformer(mf.SA(beta)), start, (0, 100), t_eval=[100], events=visible, rtol=1e-13
        )
    )
    space = run.final.space
    power = np.bincount(space.degrees, space.parseval * np.abs(run.final.coefficients) ** 2)
    return int(np.argmax(power[1:]) + 1)


def main() -> int:
    report = Report(["case"])
    for l, switch in enumerate(SWITCHES, start=1):
        found = brentq(
            lambda beta, l=l: rates(beta)[l + 1] - rates(beta)[l], switch - 0.3, switch + 0.3
        )
        report.compare(
            f"l* switches from {l} to {l + 1} at beta",
            predicted=switch,
            measured=found,
            tolerance=1e-9,
            relative=True,
        )
    for l, beta in enumerate(BETAS, start=1):
        for seed in range(5):
            report.compare(
                f"beta = {beta:g}, seed {seed}: degree of the pattern",
                predicted=l,
                measured=pattern(beta, seed),
                tolerance=0,
            )
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
