"""Claim: six more digits take 2 to 3.2 times the steps without noise, up to 25 times with noise.

Steps at rtol 1e-6 and 1e-12, of densities under USA, SA and Kuramoto with kappa from 2 to infinity
and of tokens in d = 2, 3, 64. Nothing is predicted: the ranges are those that were found, on the
pages "Choose the accuracy" and "Methods". Tokens, whose scheme is of order 8, would take
10^(6/8) = 5.6 times the steps if all errors were those of the leading order.

For the same densities at rtol 1e-12: the evaluations of the right-hand side with
scheme=DormandPrince, relative to those with the scheme selected by the package. Below 1 the
selection would lose.

Asked: ratios of steps in [2, 3.2] for densities without noise, [1, 25] with noise, [4, 6] for
tokens; ratios of evaluations in [0.95, 2.2]. Counts do not depend on the machine, up to rounding.

    python validation/cost_of_digits.py [--quick]    # 19 s, 2 s quick

--quick leaves out USA with noise. Exit code 1 on failure.
"""

import sys
from collections.abc import Iterator

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf

STEPS = {"without noise": (2.0, 3.2), "with noise": (1.0, 25.0), "tokens": (4.0, 6.0)}
EVALUATIONS = (0.95, 2.2)
LOW, HIGH = 1e-6, 1e-12
STARTS = {
    "one wave": lambda theta: 1 + 0.3 * np.cos(theta),
    "three waves": lambda theta: 1 + 0.3 * np.cos(3 * theta) + 0.4 * np.sin(theta),
}


def densities(quick: bool) -> Iterator[tuple[mf.Transformer, float]]:
    """Model and time of the runs; USA moves e^beta times as fast as SA, about."""
    yield mf.Transformer(mf.USA(4.0)), 0.1
    for kappa in (np.inf, 6.0, 30.0, 100.0):
        yield mf.Transformer(mf.SA(4.0), kappa), 1.0
        yield mf.Transformer(mf.Kuramoto(), kappa), 1.0
    for kappa in () if quick else (2.0, 6.0, 30.0, 100.0, 1000.0):
        yield mf.Transformer(mf.USA(4.0), kappa), 2.0


def counts(model: mf.Transformer, state, end: float, rtol: float, **options) -> dict:
    return successful(mf.solve(model, state, (0, end), t_eval=[end], rtol=rtol, **options)).stats


def compare(report: Report, what: str, case: str, ratio: float, bounds: tuple) -> None:
    low, high = bounds
    report.compare(
        what, case, predicted=(low + high) / 2, measured=ratio, tolerance=(high - low) / 2
    )


def main() -> int:
    quick = command_line(__doc__).quick
    report = Report(["ratio of", "run"], digits=3)
    circle = mf.Circle(64)
    for model, end in densities(quick):
        for name, start in STARTS.items():
            case, state = (
                f"{model.drift}, kappa = {float(model.kappa)}, {name}",
                circle.density(start),
            )
            few, many = (counts(model, state, end, rtol) for rtol in (LOW, HIGH))
            explicit = counts(model, state, end, HIGH, scheme=mf.steppers.DormandPrince)
            kind = "with noise" if model.noisy else "without noise"
            compare(report, f"steps, {kind}", case, many["steps"] / few["steps"], STEPS[kind])
            ratio = explicit["evaluations"] / many["evaluations"]
            compare(report, "evaluations", case, ratio, EVALUATIONS)
    for d, n in ((2, 100), (3, 100), (64, 30)):
        for drift in (mf.SA(4.0), mf.USA(1.0)):
            model, state = mf.Transformer(drift), mf.Tokens.uniform(n, d, rng=0)
            few, many = (counts(model, state, 5.0, rtol) for rtol in (LOW, HIGH))
            ratio = many["steps"] / few["steps"]
            compare(report, "steps, tokens", f"{drift}, d = {d}", ratio, STEPS["tokens"])
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
