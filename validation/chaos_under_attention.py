"""Claim: n tokens under attention with matrices approach their density like n^(-1/2).

Rates are fitted to means over replicas. Asked of exponents of
distances: 0.03; of the coupling, whose replicas differ by more, 4.5 standard errors, at most 0.1.

1. Circle, random Q, K, V of two heads, softmax and unnormalised weights, and L2 with one head,
   under isotropic and anisotropic noise, n = 256 to 4096, t = 1: W_1, W_2, H^-1 and the coupling
   with the nonlinear process ~ n^(-1/2).
2. S^2, softmax, random Q, K, V: H^-2 and the coupling ~ n^(-1/2).

    python validation/chaos_under_attention.py [--quick]     # 250 s, 10 s quick

--quick has one model, on the circle, fewer tokens and replicas, and exponents to 0.12.
OMP_NUM_THREADS says how many batches are run at the same time, by default two. Exit code 1 on
failure.

References: Sznitman (1991); Castin, Ablin, Carrillo and Peyre (2025), for the mean-field limit.
"""

import os
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from _chaos_report import Sampled
from _report import command_line

import meanfield as mf

THREADS = int(os.environ.get("OMP_NUM_THREADS", 2))


def matrices(seed: int, d: int, heads: int) -> dict[str, np.ndarray]:
    """Random Q, K, V of norm about 1."""
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((heads, d, d)) / np.sqrt(d) for name in "QKV"}


def rates(report: Sampled, name: str, found: mf.Study, distances: tuple[str, ...]) -> None:
    """Exponents of distances and of the coupling."""
    for what in distances:
        report.rate(name, what, found.rate(what), -0.5)
    rate = found.rate("coupling")
    error = (rate.interval[1] - rate.interval[0]) / (2 * 1.96)
    report.rate(name, "coupling", rate, -0.5, tolerance=min(4.5 * error, 0.1))


def main() -> int:
    quick = command_line(__doc__, "fewer tokens and replicas").quick
    pool = ThreadPoolExecutor(THREADS)
    report = Sampled(0.12 if quick else 0.03)
    sizes, replicas = ([64, 256, 1024], 32) if quick else ([256, 1024, 4096], 192)
    circle = mf.Circle(24).von_mises(0.5, 1.0)
    skew = mf.noise.Anisotropic(np.diag([1.4, 0.6]))
    cases = {
        "softmax, two heads": (mf.Attention(**matrices(1, 2, 2), beta=1.5), mf.noise.Isotropic()),
        "unnormalised, two heads": (
            mf.Attention(**matrices(2, 2, 2), beta=1.0, weights=mf.Unnormalised()),
            skew,
        ),
        "L2": (mf.Attention(**matrices(3, 2, 1), beta=1.5, weights=mf.L2()), skew),
    }
    for seed, (name, (drift, noise)) in enumerate(list(cases.items())[:: 3 if quick else 1]):
        model = mf.Transformer(drift, 2.0, noise=noise)
        found = mf.propagation_of_chaos(
            model, circle, sizes, [1.0], replicas, rng=seed, dt=0.05, executor=pool
        )
        rates(report, name, found, ("W1", "W2", "H^-1"))
    if not quick:
        model = mf.Transformer(mf.Attention(**matrices(4, 3, 1), beta=2.0), 2.0)
        start = mf.Sphere(12).von_mises_fisher((0, 0, 1), 1.0)
        found = mf.propagation_of_chaos(
            model, start, sizes, [0.5], replicas, rng=5, dt=0.1, distances=["H^-2"],
            executor=pool,
        )  # fmt: skip
        rates(report, "S^2, softmax", found, ("H^-2",))
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
