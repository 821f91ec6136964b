"""What derivatives of runs cost, in units of the run: a table in Markdown.

    python benchmarks/derivatives.py [--small]

A tangent: the time of `solve` with one tangent, less that without, over that without; the step
from one tangent to three, a tangent. The gradient: `mf.gradient` of int x^2 dmu, over the run.

One thread, processor time, medians over rounds in which all take a turn; six minutes. Exit code 1
if a tangent in a direction or in kappa costs more than 2.5 runs by more than two standard errors,
or the gradient in the initial law more than 6; under drifts that are not zonal by beta too; never
in the small mode.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time

import numpy as np
from _small import SMALL, parser, sized
from _timing import median, rounds

import meanfield as mf

ROUNDS, BUDGET = 9, 6.0
TANGENT, GRADIENT = 2.5, 6.0
CIRCLE = mf.Circle(64)
MU0 = CIRCLE.density(lambda theta: 1 + 0.3 * np.cos(theta) + 0.1 * np.sin(2 * theta))
SPHERE, ZONAL = mf.Sphere(24), mf.Zonal(8, 48)
ON_SPHERE = SPHERE.density(lambda x, y, z: 1 + 0.3 * x + 0.2 * y * z)
ON_ZONAL = ZONAL.density(lambda x: 1 + 0.3 * x)
BY_INDEX = CIRCLE.indexed(lambda s, theta: 1 + 0.3 * np.cos(theta - s))
BY_INDEX_ON_SPHERE = SPHERE.indexed(lambda s, x, y, z: 1 + 0.3 * x + 0.2 * s * y * z)


def pushing(x):
    return np.stack([x[..., 1] ** 2, *[x[..., 0]] * (x.shape[-1] - 1)], axis=-1)


def beside_others():
    """Drifts that are not zonal on degrees that are held fixed: drift, kappa, start, options."""
    for space in (mf.Circle(64), mf.Circle(256), mf.Sphere(15), mf.Sphere(31)):
        d, rng = space.dimension, np.random.default_rng(0)
        Q, V = (np.eye(d) + np.eye(d, k=k) / 3 for k in (1, -1))
        layer = rng.standard_normal((4, d)), rng.standard_normal((d, 4)) / 4
        drifts = {
            type(weights).__name__: mf.Attention(Q, V=V, beta=2.0, weights=weights)
            for weights in (mf.Softmax(), mf.Unnormalised(), mf.L2(), mf.Sigmoid(-0.5))
        }
        drifts["two heads"] = mf.Attention(np.stack([Q, V]), V=np.stack([V, Q]), beta=2.0)
        drifts["SA + 0.5 Field"] = mf.SA(beta=2.0) + 0.5 * mf.Field(pushing)
        forward = mf.FeedForward(*layer, activation=np.tanh)
        drifts["SA + 0.5 FeedForward"] = mf.SA(beta=2.0) + 0.5 * forward
        waves = (
            (lambda t: np.cos(t) + np.sin(2 * t) / 3) if d == 2 else (lambda x, y, z: x + y * z / 2)
        )
        start = space.density(lambda *x, waves=waves: 1 + 0.3 * waves(*x))
        fixed = {"min_degree": space.degree, "max_degree": space.degree}
        options = fixed if d == 2 else fixed | {"rtol": 1e-4}
        for name, drift in drifts.items():
            yield f"{space!r}: {name}", (drift, 6.0 if d == 2 else 1.5, start, options)


CASES = {
    "USA(4), kappa = 6, adaptive": (mf.USA(beta=4.0), 6.0, MU0, {}),
    "SA(8), kappa = 40, adaptive": (mf.SA(beta=8.0), 40.0, MU0, {"rtol": 1e-10}),
    "USA(4), kappa = 6, dt = 0.005": (mf.USA(beta=4.0), 6.0, MU0, {"dt": 0.005}),
    "SA(8), kappa = 40, dt = 0.005": (mf.SA(beta=8.0), 40.0, MU0, {"dt": 0.005}),
    "S^2: USA(2), kappa = 6": (mf.USA(beta=2.0), 6.0, ON_SPHERE, {}),
    "S^2: SA(2), kappa = 12": (mf.SA(beta=2.0), 12.0, ON_SPHERE, {}),
    "Zonal(8): USA(2), kappa = 20": (mf.USA(beta=2.0), 20.0, ON_ZONAL, {}),
    "Zonal(8): SA(2), kappa = 20": (mf.SA(beta=2.0), 20.0, ON_ZONAL, {}),
    "Indexed, 16 positions: USA(4), kappa = 6": (mf.USA(beta=4.0), 6.0, BY_INDEX, {}),
    "Indexed, 16 positions: SA(8), kappa = 40": (mf.SA(beta=8.0), 40.0, BY_INDEX, {}),
    "Indexed, 16 positions, S^2: SA(2), kappa = 12": (
        *(mf.SA(beta=2.0), 12.0, BY_INDEX_ON_SPHERE, {"rtol": 1e-5}),
    ),
    **dict(beside_others()),
}


FEW = {  # of the small mode
    name: CASES[name] for name in ("USA(4), kappa = 6, dt = 0.005", "Circle(degree=64): Softmax")
}


def main() -> int:
    parser(__doc__).parse_args()
    print("| run | ms | direction | kappa | beta | one more | gradient | with beta, kappa |")
    print("|---|---|---|---|---|---|---|---|")
    dear = 0
    for name, (drift, kappa, start, options) in sized(CASES, FEW).items():
        causal = "mean" if isinstance(start, mf.Indexed) else None
        alone, numbers = costs(mf.Transformer(drift, kappa, causal=causal), start, options)
        asked = numbers[:2] if drift.is_zonal else numbers[:3]
        limits = [*((cost, TANGENT) for cost in asked), (numbers[4], GRADIENT)]
        dear += any(cost - 2 * error > most for (cost, error), most in limits)
        words = " | ".join(f"{cost:.2f} ± {error:.2f}" for cost, error in numbers)
        print(f"| {name} | {alone:.1f} | {words} |", flush=True)
    return int(dear > 0 and not SMALL)


def costs(
    model: mf.Transformer, start: mf.Density, options: dict
) -> tuple[float, list[tuple[float, float]]]:
    """Milliseconds of the run; what derivatives cost in runs, with standard errors."""
    own, end = list(model.drift.parameters)[-1], 5.0 if model.drift.is_zonal else 2.0

    def direction(x):
        return x[:, -1]

    def solve(*tangents):
        return mf.solve(
            model, start, (0, end), t_eval=[end], tangents=tangents, progress=False, **options
        )

    run = solve()
    timed = [
        solve,
        lambda: solve(direction),
        lambda: solve("kappa"),
        lambda: solve(own),
        lambda: solve(direction, direction, direction),
        lambda: mf.gradient(lambda x: x[:, -1] ** 2, run, parameters=[]),
        lambda: mf.gradient(lambda x: x[:, -1] ** 2, run),
    ]
    for one in timed:
        one()  # compiled, or read
    alone, *tangents, three, gradient, whole = rounds(timed, ROUNDS, BUDGET, time.process_time).T
    found = [median((seconds - alone) / alone) for seconds in tangents]
    found += [median((three - tangents[0]) / 2 / alone), median(gradient / alone)]
    return 1e3 * np.median(alone), [*found, median(whole / alone)]


if __name__ == "__main__":
    sys.exit(main())
