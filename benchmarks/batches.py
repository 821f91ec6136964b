"""What a sweep over a configuration gains from solving points together.

    python benchmarks/batches.py [--repeats 3] [--small]

1000 densities of the circle under USA, to t = 1; 200 sets of 20 tokens of S^2 under SA, to t = 2,
in steps of their own; 200 noisy ones, 4 replicas of 50 points, in 40 steps: milliseconds of a
point, alone (batch=1) and as `sweep` chooses. In this process in processor time, in two processes
in wall time, which needs two free cores. The least of all repeats is shown. Takes two minutes.
"""

import time
from concurrent.futures import Executor
from typing import Any

import numpy as np
from _small import parser, sized

import meanfield as mf
from meanfield.sweeps.executors import processes

KAPPAS, BETAS, SETS, NOISY_SETS = sized((50, 20, 200, 50), (3, 2, 4, 3))
UNIFORM = {"kind": "Uniform", "n": 20, "d": 3, "rng": 1}
SA = {"kind": "SA", "beta": 1.0}
DENSITIES = (
    {
        "model": {"drift": {"kind": "USA", "beta": 1.0}, "kappa": 3.0},
        "space": {"kind": "Circle", "degree": 16},
        "initial": {"kind": "Fourier", "cos": [0.3, 0.1]},
        "solve": {"t_span": [0.0, 1.0], "t_eval": [0.0, 1.0]},
    },
    {"model.kappa": np.linspace(1, 8, KAPPAS), "model.drift.beta": np.linspace(0.2, 3, BETAS)},
    {},
)
TOKENS = (
    {
        "model": {"drift": SA},
        "initial": {"kind": "Tokens", "x": UNIFORM},
        "solve": {"t_span": [0.0, 2.0], "t_eval": [0.0, 1.0, 2.0]},
    },
    {"model.drift.beta": np.linspace(0.2, 9, SETS)},
    {},
)
NOISY = (
    {
        "model": {"drift": SA, "kappa": 5.0},
        "initial": {"kind": "Tokens", "x": UNIFORM},
        "solve": {"t_span": [0.0, 2.0], "t_eval": [0.0, 1.0, 2.0], "dt": 0.05, "rng": 2},
    },
    {"model.drift.beta": np.linspace(0.2, 9, NOISY_SETS)},
    {"rng": 1, "replicas": 4},
)
CASES = {"densities": DENSITIES, "sets of tokens": TOKENS, "noisy sets": NOISY}


def seconds(case: Any, batch: int | None, executor: Executor | None) -> float:
    base, parameters, options = case
    clock = time.process_time if executor is None else time.perf_counter
    before = clock()
    mf.sweep(base, parameters, **options, batch=batch, executor=executor, progress=False)
    return clock() - before


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=sized(3, 1))
    repeats = options.parse_args().repeats
    with processes(2) as two:
        for name, case in CASES.items():
            for where, executor in {"here": None, "two processes": two}.items():
                for batch in (1, None):  # imports, and code that is read from the cache
                    seconds((case[0], {n: v[:4] for n, v in case[1].items()}, {}), batch, executor)
                found = [[seconds(case, b, executor) for b in (1, None)] for _ in range(repeats)]
                points = int(np.prod([len(v) for v in case[1].values()]))
                points *= case[2].get("replicas", 1)
                alone, together = 1e3 * np.min(found, axis=0) / points
                print(
                    f"{points:4} {name:15} {where:15} {alone:6.2f} ms alone, "
                    f"{together:6.2f} ms together: {alone / together:.1f} times as fast"
                )


if __name__ == "__main__":
    main()
