"""Claim: noise of tokens is Brownian motion on the sphere, steps are of weak order 2, and noisy
Kuramoto tokens have the stationary law of their mean field.

Brownian motion without drift, d = 2, 3, 10, in one step or ten:
E P_l(<x_t, x_0>) = e^(-l(l+d-2) t/kappa) for l = 1, 2, whatever the step; 4.5 standard errors.

Order: dX = P_X e dt + sqrt(2/kappa) dW on the circle and S^2 from the point opposite e, whose mean
E<X_1, e> follows from a linear system for the harmonics, and so does that of the exact splitting,
noise for dt/2, drift for dt, noise for dt/2. The means of 4 million paths with 1, 2 and 4 steps
against the latter, 4.5 standard errors; and their errors against the former: order 2, two-sided.

Stationary law: noisy Kuramoto at kappa = 2d, n = 10^4: order parameter and second moment about the
mean direction, averaged over time, against von Mises-Fisher of concentration kappa r; 4.5
standard errors of means over blocks of time.

    python validation/token_noise.py [--quick]    # 51 s, 7 s quick

--quick has 200 000 paths, too few to tell an order, and 1000 tokens. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.linalg import expm
from scipy.optimize import brentq
from scipy.special import ive

import meanfield as mf

NOTHING = mf.Interaction.chebyshev([0.0, 0.0], name="nothing")
ERRORS = 4.5  # standard errors
PATHS, SEEDS = 1_000_000, 4
QUICK_PATHS = 200_000
SCHEME = 0.02  # of the flow of the drift in one step of length 1, by the scheme of order 4


def brownian_motion(report: Report) -> None:
    for d, n in ((2, 100_000), (3, 100_000), (10, 3000)):
        kappa, x = 2.0 * d, mf.Tokens.uniform(n, d, rng=d)
        for steps in (1, 10):
            run = mf.solve(
                mf.Transformer(NOTHING, kappa), x, (0, 1), t_eval=[1.0], dt=1 / steps, rng=1
            )
            cosine = (successful(run).final.x * x.x).sum(axis=1)
            for l, values in ((1, cosine), (2, (d * cosine**2 - 1) / (d - 1))):
                report.compare(
                    f"d = {d}, {steps} steps",
                    f"degree {l}",
                    predicted=np.exp(-l * (l + d - 2) / kappa),
                    measured=values.mean(),
                    tolerance=ERRORS * values.std() / np.sqrt(n),
                )


def generators(d: int, kappa: float) -> tuple[np.ndarray, np.ndarray]:
    """Of E P_l(<X, e>), l = 0, ..., 60: by noise, and by the drift P_x e."""
    l = np.arange(61)
    # (1 - c^2) P_l' = l (l+d-2)/(2l+d-2) (P_{l-1} - P_{l+1}) for P_l(1) = 1
    pull = np.where(l > 0, l * (l + d - 2) / np.maximum(2 * l + d - 2, 1), 0.0)
    return np.diag(-l * (l + d - 2) / kappa), np.diag(pull[1:], -1) - np.diag(pull[:-1], 1)


def order(report: Report, d: int, quick: bool) -> None:
    kappa, e = 4.0, np.eye(d)[-1]
    noise, drift = generators(d, kappa)
    opposite = (-1.0) ** np.arange(len(noise))
    exact = (expm(noise + drift) @ opposite)[1]
    start = mf.Tokens(np.tile(-e, (QUICK_PATHS if quick else PATHS, 1)))
    model = mf.Transformer(NOTHING, kappa, feedforward=lambda x: np.broadcast_to(e, x.shape))
    errors, spreads = [], []
    for steps in (1, 2, 4):
        half, whole = expm(noise / (2 * steps)), expm(drift / steps)
        split = (np.linalg.matrix_power(half @ whole @ half, steps) @ opposite)[1]
        ends = [
            successful(mf.solve(model, start, (0, 1), t_eval=[1.0], dt=1 / steps, rng=seed))
            for seed in range(1 if quick else SEEDS)
        ]
        heights = np.concatenate([run.final.x[:, -1] for run in ends])
        spreads.append(heights.std() / np.sqrt(heights.size))
        errors.append(heights.mean() - exact)
        report.compare(
            f"splitting, d = {d}",
            f"mean, {steps} steps",
            predicted=split,
            measured=heights.mean(),
            tolerance=ERRORS * spreads[-1] + SCHEME / steps**4,
        )
    if quick:  # so few paths cannot tell an order
        return
    report.compare(
        f"order, d = {d}",
        "2 and 4 steps",
        predicted=2.0,
        measured=np.log2(errors[1] / errors[2]),
        tolerance=0.1 + ERRORS * np.hypot(*np.divide(spreads[1:], errors[1:])) / np.log(2),
    )


def stationary_law(report: Report, d: int, n: int) -> None:
    kappa, blocks = 2.0 * d, 20
    r = brentq(lambda r: ive(d / 2, kappa * r) / ive(d / 2 - 1, kappa * r) - r, 0.1, 1, xtol=1e-15)
    x = mf.Tokens(np.tile(np.eye(d)[0], (n, 1)))
    times = 10 + np.arange(10 * blocks) * 0.5
    model = mf.Transformer(mf.Kuramoto(), kappa)
    run = successful(mf.solve(model, x, (0, times[-1]), t_eval=times, dt=0.05, rng=d))
    first, second = [], []
    for state in run:
        mean = state.x.mean(axis=0)
        along = state.x @ (mean / np.linalg.norm(mean))
        first.append(along.mean())
        second.append((along**2).mean())
    expected = {"order parameter": (first, r), "second moment": (second, 1 - (d - 1) / kappa)}
    for name, (values, predicted) in expected.items():
        means = np.array(values).reshape(blocks, -1).mean(axis=1)
        error = means.std(ddof=1) / np.sqrt(blocks)
        report.compare(
            f"stationary, d = {d}",
            name,
            predicted=predicted,
            measured=means.mean(),
            tolerance=ERRORS * error + 3 / n,  # finite n: a bias of order 1/n
        )


def main() -> int:
    quick = command_line(__doc__, "fewer paths and tokens, no order").quick
    report = Report(["what", "which"])
    brownian_motion(report)
    for d in (2, 3):
        order(report, d, quick)
    for d in (2, 3):
        stationary_law(report, d, 1000 if quick else 10_000)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
