"""Claim: points of a sweep that are solved together have the numbers that they have alone.

Random configurations of each kind of run, of 12 points that differ in betas, starts or seeds, are
swept point by point, as `sweep` chooses, and in batches of 5: all variables are compared bit for
bit, and it is counted how many of the points were members of an ensemble.

    python validation/batches.py [--quick]    # 90 s, 6 s quick

--quick has one random configuration of each kind, of 8 points. Exit code 1 on failure.
"""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from _report import Report, command_line

import meanfield as mf
from meanfield.app.configured_runs import Runs
from meanfield.sweeps.points import Grid

rng = np.random.default_rng(0)


def solve(end: float, **options: Any) -> dict[str, Any]:
    return {"t_span": [0.0, end], "t_eval": sorted(rng.uniform(0, end, 3).tolist()), **options}


def tokens(model: dict[str, Any], **options: Any) -> dict[str, Any]:
    n, d = int(rng.integers(2, 40)), int(rng.choice([2, 3, 5, 17]))
    x = {"kind": "Uniform", "n": n, "d": d, "rng": 1}
    return {
        "model": model,
        "initial": {"kind": "Tokens", "x": x},
        "solve": solve(1.0, **options),
    }


def cases(count: int) -> Iterator[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]]:
    """Kind, configuration, parameters of `count` points, and options of the sweep."""
    betas = {"model.drift.beta": [0.0, *rng.uniform(0, 9, count - 1)]}
    seeds = {"rng": int(rng.integers(1000)), "replicas": 4}
    few = {"model.drift.beta": rng.uniform(0, 9, count // 4).tolist()}
    sa = {"drift": {"kind": "SA", "beta": 1.0}}
    usa = {"drift": {"kind": "USA", "beta": 1.0}}
    dt, kappa = float(rng.uniform(0.02, 0.1)), {"kappa": float(rng.uniform(1, 9))}
    circle = {"kind": "Fourier", "cos": rng.uniform(-0.2, 0.2, 3).tolist()}
    yield "tokens", tokens(sa), betas, {}
    yield "fixed steps", tokens(sa, scheme="DormandPrince", dt=dt), betas, {}
    yield "LieTrotter", tokens(sa, scheme="LieTrotter", dt=dt), betas, {}
    yield "radii", tokens({**sa, "normalisation": "PreLN"}), betas, {}
    yield "noise", tokens({**sa, **kappa}, dt=dt, rng=2), few, seeds
    yield "starts", tokens(sa), few, seeds
    yield (
        "density",
        {
            "model": {**usa, **kappa},
            "space": {"kind": "Circle", "degree": 16},
            "initial": circle,
            "solve": solve(0.5),
        },
        betas,
        {},
    )
    equiangular = {"kind": "Equiangular", "n": int(rng.integers(2, 1000)), "rho": 0.0}
    rhos = {"initial.rho": rng.uniform(0, 0.9, count).tolist()}
    yield "Equiangular", {"model": sa, "initial": equiangular, "solve": solve(2.0)}, rhos, {}
    G = mf.Tokens.uniform(int(rng.integers(2, 12)), 4, rng=rng).gram().G.tolist()
    yield "Gram", {"model": sa, "initial": {"kind": "Gram", "G": G}, "solve": solve(1.0)}, betas, {}


def main() -> int:
    report = Report(["what", "case"])
    differ: dict[str, int] = {}
    apart: dict[str, int] = {}
    rounds, count = (1, 8) if command_line(__doc__).quick else (6, 12)
    for _ in range(rounds):
        for name, base, parameters, options in cases(count):
            alone = mf.sweep(base, parameters, **options, batch=1, progress=False)
            runs = Runs(base)
            points = Grid.of(parameters, options.get("replicas")).points(runs.contents)
            sizes = map(len, runs.batches(points, None, options.get("rng"), 1))
            apart[name] = apart.get(name, 0) + sum(size for size in sizes if size == 1)
            for batch in (None, 5):
                found = mf.sweep(base, parameters, **options, batch=batch, progress=False)
                differ[name] = differ.get(name, 0) + (not found.identical(alone))
    for name, count in differ.items():
        report.compare("bits", name, predicted=0, measured=count, tolerance=0)
        report.compare("alone", name, predicted=0, measured=apart[name], tolerance=0)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
