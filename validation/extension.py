"""Claim: a run that has ended goes on as the longer run.

A run to t = 1 is extended to t = 2: in memory, from its file, and by its finished checkpoint. Of
every state the steps are fixed (1/64), or end at outputs (tokens with noise). No number of the
states and no count of steps may differ from those of the run to t = 2.

With error control (rtol = 1e-10) the last two steps before t = 1 are other ones. The largest
difference of coefficients or coordinates at t = 2 is compared with 100 rtol. A run that `max_steps`
ended long before its end has the steps of the longer run, and no number may differ.

    python validation/extension.py [--quick]    # 7 s, 6 s quick

--quick leaves error control out. Exit code 1 on failure.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from _report import Report

import meanfield as mf

FIXED = {"dt": 1 / 64}
EARLY, LATE = [0.25, 1.0], [1.25, 2.0]
BUMP = mf.Circle(16).von_mises(0.3, 1.0)
X = mf.Tokens.uniform(8, 3, rng=0)
LAW = mf.Gaussian([0.5, -0.2], [[1, 0.3], [0.3, 0.5]])
SA, NOISY = mf.Transformer(mf.SA(2.0)), mf.Transformer(mf.SA(2.0), kappa=5.0)
RUNS = {
    "density": (NOISY, BUMP, FIXED),
    "density on S^2": (NOISY, mf.Sphere(8).density(lambda x, y, z: 1 + 0.3 * x * y + z / 5), FIXED),
    "axisymmetric": (NOISY, mf.Zonal(4, 16).density(lambda x: 1 + 0.3 * x), FIXED),
    "ensemble": (mf.Transformer(mf.USA(np.array([1.0, 2.0])), kappa=5.0), BUMP, FIXED),
    "characteristics": (SA, mf.Characteristics(BUMP), FIXED),
    "tokens": (SA, X, FIXED),
    "tokens with noise": (NOISY, X, {"rng": 3}),
    "replicas": (SA, mf.Tokens.uniform(8, 3, rng=0, shape=(3,)), FIXED),
    "Gram matrix": (SA, mf.Gram(X.x @ X.x.T), FIXED),
    "equiangular": (SA, mf.Equiangular(n=8, rho=0.1), FIXED),
    "Gaussian": (mf.Transformer(mf.Attention(V=-1.0)), LAW, FIXED),
}
ADAPTIVE = ("density", "ensemble", "tokens", "replicas")
RTOL = 1e-10


def numbers(run: mf.Solution, i: int) -> np.ndarray:
    """Coefficients or coordinates of a saved state."""
    state = run[i]
    if isinstance(state, mf.Density):
        return state.coefficients
    return np.concatenate([np.ravel(values) for _, values in state.arrays().values()])


def differing(one: mf.Solution, other: mf.Solution) -> int:
    """Count of states, and numbers of steps, that are not equal."""
    if one.t.tolist() != other.t.tolist():
        return len(other)
    states = [not np.array_equal(numbers(one, i), numbers(other, i)) for i in range(len(one))]
    return sum(states) + int(not np.array_equal(one.stats["steps"], other.stats["steps"]))


def distance(one: mf.Solution, other: mf.Solution) -> float:
    """Largest difference of the numbers of the last states."""
    first, second = numbers(one, -1), numbers(other, -1)
    size = min(first.shape[-1], second.shape[-1])  # densities may have other degrees
    return float(np.abs(first[..., :size] - second[..., :size]).max())


def main(quick: bool) -> int:
    report = Report(["state", "extended"], 4)
    for name, (model, state, options) in RUNS.items():
        whole = mf.solve(model, state, (0, 2), t_eval=EARLY + LATE, **options)
        short = mf.solve(model, state, (0, 1), t_eval=EARLY, **options)
        with tempfile.TemporaryDirectory() as folder:
            keeping = {"checkpoint": Path(folder) / "run.checkpoint", "resume": True}
            mf.solve(model, state, (0, 1), t_eval=EARLY, **keeping, **options)
            longer = {
                "in memory": short.extend(2.0, t_eval=LATE),
                "from a file": mf.load(short.save(f"{folder}/a.nc")).extend(2.0, t_eval=LATE),
                "by a checkpoint": mf.solve(
                    model, state, (0, 2), t_eval=EARLY + LATE, **keeping, **options
                ),
            }
        for way, run in longer.items():
            same = {"predicted": 0, "measured": differing(run, whole), "tolerance": 0}
            report.compare(name, way, **same)
    for name in () if quick else ADAPTIVE:
        model, state, _ = RUNS[name]
        whole = mf.solve(model, state, (0, 2), t_eval=[2.0], rtol=RTOL)
        longer = mf.solve(model, state, (0, 1), t_eval=[1.0], rtol=RTOL).extend(2.0)
        error = {"measured": distance(longer, whole), "tolerance": 100 * RTOL}
        report.compare(name, "error control", predicted=0, **error)
        cut = mf.solve(model, state, (0, 20), t_eval=[20.0], rtol=RTOL, max_steps=6)
        whole = mf.solve(model, state, (0, 40), t_eval=[20.0, 40.0], rtol=RTOL)
        longer = cut.extend(40.0, t_eval=[40.0])
        same = {"predicted": 0, "measured": differing(longer, whole), "tolerance": 0}
        report.compare(name, "cut short", **same)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main("--quick" in sys.argv[1:]))
