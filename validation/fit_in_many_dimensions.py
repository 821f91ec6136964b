"""Claim: `networks.fit(wide=True)`, in the limit of many dimensions, finds the flow that moved
tokens, its intervals cover, and layers that no flow made are rejected.

Tokens about six centres, with cosines between 0 and 0.8, are moved by SA, beta = 4, with noise.

1. n = 60, d = 128, kappa = 256, 3 layers of T = 0.5, new tokens in each repetition: deviations of
   beta, log T and log kappa from the truth, in standard errors, have means within 3/sqrt(N) + 0.1
   of 0 and root mean squares within 3/sqrt(2 N) + 0.1 of 1. 95 % intervals cover in 93 to 97 %,
   within 2.6 standard errors.
2. The same for long layers, T = 2 and kappa = 1000, where tokens turn by about a radian.
3. For a multiple a of SA in place of the time, which is held: a = 0.5.
   The test of fit rejects these true flows, 1 to 3, in at most 5 %, within 3 standard errors.
4. In d = 64 of 40 tokens, as replicas: within one standard error of each other.
5. Layers of 1 that are turned by a rotation, moved by a ReLU network, or by attention with a random
   value matrix in place of V = 1, are rejected.

    python validation/fit_in_many_dimensions.py [--quick]    # 90 s, 18 s quick

N is 60 in 1, 12 in 2, 30 in 3, and there are 2 fits in 4 and 3 of each kind in 5; quick 12, 3, 6, 1
and 1. Exit code 1 on failure.
"""

import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from _report import Report
from fit_of_layers import quiet
from scipy.linalg import expm

import meanfield as mf

BETA, CENTRES, PROCESSES = 4.0, 6, 2
OTHERS = ("turned layers", "a ReLU network", "a random value matrix")


def layers_of(
    n: int, d: int, kappa: float, time: float, count: int, seed: int, drift: mf.Drift | None = None
) -> np.ndarray:
    """Tokens about centres, and those after each layer."""
    rng = np.random.default_rng([7, seed])
    centres, spread = rng.standard_normal((CENTRES, d)), rng.uniform(0, 2, (n, 1))
    x = rng.standard_normal((n, d)) + spread * centres[np.arange(n) % CENTRES]
    found, model = [mf.Tokens.from_hidden(x).x], mf.Transformer(drift or mf.SA(BETA), kappa=kappa)
    for _ in range(count):
        run = mf.solve(model, mf.Tokens(found[-1]), (0, time), t_eval=[time], dt=0.025, rng=rng,
                       progress=False)  # fmt: skip
        found.append(run.final.x)
    return np.array(found)


def multiple(a: float) -> mf.Drift:
    return a * mf.SA(BETA)


def deviations(
    seed: int, kappa: float, time: float, family: Callable, fixed: dict, true: dict
) -> tuple[np.ndarray, np.ndarray, bool]:
    """From the truth in standard errors, which intervals cover, and whether it is rejected."""
    layers = layers_of(60, 128, kappa, time, 3, seed)
    start = {"kappa": 256.0 * time / 0.5 if "time" not in fixed else 512.0}
    found = quiet(layers, family=family, fixed=fixed, start=start, wide=True, hold=False, rng=seed)
    values = np.array([true[name] for name in found.family.labels])
    low, high = found.interval().T
    off = (found.estimate.point - found.family.point(values)) / found.estimate.errors
    return off, (low < values) & (values < high), bool(found.rejected)


def no_flow(kind: str, seed: int) -> bool:
    """Whether layers that are no flow are rejected."""
    rng, d = np.random.default_rng([8, seed]), 128
    drift = None
    if kind == "a random value matrix":
        drift = mf.Attention(beta=BETA, V=rng.standard_normal((d, d)) / np.sqrt(d))
    layers = layers_of(60, d, 256.0, 0.5, 3, seed, drift)
    if kind == "turned layers":
        A = rng.standard_normal((d, d)) / np.sqrt(d)
        turn = expm(0.2 * (A - A.T))
        layers = np.array([x @ np.linalg.matrix_power(turn, k) for k, x in enumerate(layers)])
    if kind == "a ReLU network":
        first, second = rng.standard_normal((2, d, d)) / np.sqrt(d)
        for k in range(3):
            z = layers[k] + 0.5 * np.maximum(layers[k] @ first, 0) @ second
            z += 0.5 * rng.standard_normal(z.shape) / np.sqrt(d)
            layers[k + 1] = z / np.linalg.norm(z, axis=1, keepdims=True)
    return bool(quiet(layers, start={"kappa": 256.0}, wide=True, hold=False).rejected)


def check(report: Report, pool: Any, part: str, count: int, case: dict) -> None:
    """Means, root mean squares and coverage."""
    drawn = list(pool.map(partial(deviations, **case), range(count)))
    off, covered, rejected = (np.array(kind) for kind in zip(*drawn, strict=True))
    for k, name in enumerate(case["true"]):
        for what, at, measured, tolerance in (
            ("mean deviation", 0.0, off[:, k].mean(), 3 / np.sqrt(count) + 0.1),
            ("rms deviation", 1.0, (off[:, k] ** 2).mean() ** 0.5, 3 / np.sqrt(2 * count) + 0.1),
            ("coverage", 0.95, covered[:, k].mean(), 0.02 + 2.6 * np.sqrt(0.0475 / count)),
        ):
            report.compare(part, f"{name}, {what}", predicted=at, measured=measured,
                           tolerance=tolerance, random=True)  # fmt: skip
    report.compare(part, "true flows rejected, above 5 %", predicted=0.0,
                   measured=max(0.0, rejected.mean() - 0.05),
                   tolerance=3 * np.sqrt(0.0475 / count), random=True)  # fmt: skip


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
        for kind in OTHERS:
            rate = np.mean(list(pool.map(partial(no_flow, kind), range(1 if quick else 3))))
            report.compare("rejected", kind, predicted=1.0, measured=rate, tolerance=0.0)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
