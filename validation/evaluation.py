"""Claim: a run that has ended is evaluated at any time of its span, as if with an output there.

Runs to t = 2 with one output and ``dense=True`` are evaluated at 200 random times, in memory and
from their files, and compared with runs that have outputs at these times: of every state, with
error control. No number may differ. The snapshots of three runs are measured in MB per 1000 steps.

    python validation/evaluation.py [--quick]    # 25 s, 10 s quick

--quick takes 20 times. Exit code 1 on failure.
"""

import sys
import tempfile

import numpy as np
from _report import Report

import meanfield as mf

END = 2.0
BUMP = mf.Circle(16).von_mises(0.3, 1.0)
BALL = mf.Sphere(8).density(lambda x, y, z: 1 + 0.3 * x * y + z / 5)
X = mf.Tokens.uniform(8, 3, rng=0)
LAW = mf.Gaussian([0.5, -0.2], [[1, 0.3], [0.3, 0.5]])
SA, NOISY = mf.Transformer(mf.SA(2.0)), mf.Transformer(mf.SA(2.0), kappa=5.0)
ENSEMBLE = mf.Transformer(mf.USA(np.array([1.0, 2.0])), kappa=5.0)
STRONGER = mf.Transformer(mf.USA(np.array([1.0, 2.0])), kappa=1.0)
CLOSE = mf.Tokens([[1.0, 0.0], [np.cos(0.4), np.sin(0.4)], [-1.0, 0.0], [0.0, 1.0]])
RUNS = {
    "density": (NOISY, BUMP, {}),
    "density on S^2": (NOISY, BALL, {}),
    "axisymmetric": (NOISY, mf.Zonal(4, 16).density(lambda x: 1 + 0.3 * x), {}),
    "ensemble": (ENSEMBLE, BUMP, {}),
    "ensemble, ends apart": (STRONGER, BUMP, {"until": "steady", "steady_tolerance": 0.1}),
    "characteristics": (SA, mf.Characteristics(BUMP), {}),
    "tokens": (SA, X, {}),
    "merging tokens": (SA, CLOSE, {"merge": 0.05}),
    "replicas": (SA, mf.Tokens.uniform(8, 3, rng=0, shape=(3,)), {}),
    "Gram matrix": (SA, mf.Gram(X.x @ X.x.T), {}),
    "equiangular": (SA, mf.Equiangular(n=8, rho=0.1), {}),
    "Gaussian": (mf.Transformer(mf.Attention(V=-1.0)), LAW, {}),
}
USA = mf.Transformer(mf.USA(1.0), kappa=3.0)
FINE = {"dt": 0.01, "min_degree": 64, "max_degree": 64}
MEASURED = {  # model, state, last time, options, and MB for 1000 steps
    "circle, degree 64": (USA, mf.Circle(64).von_mises(0.3, 1.0), 20.0, FINE, 0.2),
    "S^2, degree 32": (
        *(USA, mf.Sphere(32).density(lambda x, y, z: 1 + 0.3 * x + 0.2 * y), 10.0),
        {"dt": 0.01, "min_degree": 32, "max_degree": 32},
        0.6,
    ),
    "1000 tokens": (SA, mf.Tokens.uniform(1000, 3, rng=0), 1.0, {"dt": 0.01}, 30.0),
}


def numbers(state: mf.Density | mf.Tokens) -> np.ndarray:
    """Coefficients or coordinates of a state."""
    if isinstance(state, mf.Density):
        return state.coefficients
    return np.concatenate([np.ravel(values) for _, values in state.arrays().values()])


def main(quick: bool) -> int:
    report = Report(["run", "measured"], 4)
    for name, (model, state, options) in RUNS.items():
        times = np.sort(np.random.default_rng(0).uniform(0, END, 20 if quick else 200))
        run = mf.solve(model, state, (0, END), t_eval=[END], dense=True, **options)
        whole = mf.solve(model, state, (0, END), t_eval=[*times, END], **options)
        times = times[times <= run.t[-1]]
        with tempfile.TemporaryDirectory() as folder:
            loaded = mf.load(run.save(f"{folder}/run.nc", dense=True))
        for way, one in (("in memory", run), ("from a file", loaded)):
            pairs = zip(one(times), whole, strict=False)
            differing = sum(not np.array_equal(numbers(a), numbers(b)) for a, b in pairs)
            report.compare(name, way, predicted=0, measured=differing, tolerance=0)
    for name, (model, state, end, options, most) in MEASURED.items():
        run = mf.solve(model, state, (0, end), t_eval=[end], dense=True, **options)
        size = run.stored["dense"].nbytes / 1e6 / run.stats["steps"] * 1000
        report.compare(name, "MB", predicted=0, measured=size, tolerance=most)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main("--quick" in sys.argv[1:]))
