"""Claim: `networks.fit(wide=True)`, in the limit of many dimensions, finds the flow that moved
tokens, and its intervals cover.

Tokens about six centres, with cosines between 0 and 0.8, are moved by SA, beta = 4, with noise.

1. n = 60, d = 128, kappa = 256, 3 layers of T = 0.5, new tokens in each repetition: deviations of
   beta, log T and log kappa from the truth, in standard errors, have means within 3/sqrt(N) + 0.1
   of 0 and root mean squares within 3/sqrt(2 N) + 0.1 of 1. 95 % intervals cover in 93 to 97 %,
   within 2.6 standard errors.
2. The same for long layers, T = 2 and kappa = 1000, where tokens turn by about a radian.
3. For a multiple a of SA in place of the time, which is held: a = 0.5.
4. In d = 64 of 40 tokens, as replicas: within one standard error of each other.

    python validation/fit_in_many_dimensions.py [--quick]    # 90 s, 18 s quick

N is 60 in 1, 12 in 2, 30 in 3, and there are 2 fits in 4; quick 12, 3, 6 and 1. Exit code 1 on
failure.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from _report import Report
from fit_of_layers import quiet

import meanfield as mf

BETA, CENTRES, PROCESSES = 4.0, 6, 2


def layers_of(n: int, d: int, kappa: float, time: float, count: int, seed: int) -> np.ndarray:
    """Tokens about centres, and those after each layer."""
    rng = np.random.default_rng([7, seed])
    centres, spread = rng.standard_normal((CENTRES, d)), rng.uniform(0, 2, (n, 1))
    x = rng.standard_normal((n, d)) + spread * centres[np.arange(n) % CENTRES]
    found, model = [mf.Tokens.from_hidden(x).x], mf.Transformer(mf.SA(BETA), kappa=kappa)
    for _ in range(count):
        run = mf.solve(model, mf.Tokens(found[-1]), (0, time), t_eval=[time], dt=0.025, rng=rng,
                       progress=False)  # fmt: skip
        found.append(run.final.x)
    return np.array(found)


def multiple(a: float) -> mf.Drift:
    return a * mf.SA(BETA)


def deviations(
    seed: int, kappa: float, time: float, family: Callable, fixed: dict, true: dict
) -> tuple[np.ndarray, np.ndarray]:
    """From the truth in standard errors, and which intervals cover."""
    layers = layers_of(60, 128, kappa, time, 3, seed)
    start = {"kappa": 256.0 * time / 0.5 if "time" not in fixed else 512.0}
    found = quiet(layers, family=family, fixed=fixed, start=start, wide=True, verdict=False)
    values = np.array([true[name] for name in found.family.labels])
    low, high = found.interval().T
    off = (found.estimate.point - found.family.point(values)) / found.estimate.errors
    return off, (low < values) & (values < high)


def check(report: Report, pool: Any, part: str, count: int, case: dict) -> None:
    """Means, root mean squares and coverage."""
    drawn = list(pool.map(partial(deviations, **case), range(count)))
    off, covered = (np.array(kind) for kind in zip(*drawn, strict=True))
    for k, name in enumerate(case["true"]):
        for what, at, measured, tolerance in (
            ("mean deviation", 0.0, off[:, k].mean(), 3 / np.sqrt(count) + 0.1),
            ("rms deviation", 1.0, (off[:, k] ** 2).mean() ** 0.5, 3 / np.sqrt(2 * count) + 0.1),
            ("coverage", 0.95, covered[:, k].mean(), 0.02 + 2.6 * np.sqrt(0.0475 / count)),
        ):
            report.compare(part, f"{name}, {what}", predicted=at, measured=measured,
                           tolerance=tolerance, random=True)  # fmt: skip


def against_replicas(seed: int) -> np.ndarray:
    """Estimates of the limit less those of replicas, in standard errors."""
    layers = layers_of(40, 64, 130.0, 0.5, 3, seed)
    given = {"hold": False, "rng": seed}
    limit, replicas = quiet(layers, wide=True, **given), quiet(layers, **given)
    return (limit.estimate.point - replicas.estimate.point) / replicas.estimate.errors


def main() -> int:
    """All parts."""
    quick = "--quick" in sys.argv[1:]
    report = Report(("part", "what"), digits=3)
    plain = {"beta": BETA, "time": 0.5, "kappa": 256.0}
    cases = {
        "short layers": {"kappa": 256.0, "time": 0.5, "fixed": {}, "true": plain},
        "long layers": {"kappa": 1000.0, "time": 2.0, "fixed": {},
                        "true": {"beta": BETA, "time": 2.0, "kappa": 1000.0}},
        "a multiple": {"kappa": 256.0, "time": 0.5, "fixed": {"time": 1.0}, "family": multiple,
                       "true": {"a": 0.5, "kappa": 512.0}},
    }  # fmt: skip
    counts = (12, 3, 6) if quick else (60, 12, 30)
    with ProcessPoolExecutor(PROCESSES) as pool:
        for (part, case), count in zip(cases.items(), counts, strict=True):
            check(report, pool, part, count, {"family": mf.SA, **case})
        for seed, off in enumerate(pool.map(against_replicas, range(1 if quick else 2))):
            for name, one in zip(plain, off, strict=True):
                report.compare("limit less replicas", f"{name}, tokens {seed}", predicted=0.0,
                               measured=one, tolerance=1.0, random=True)  # fmt: skip
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
