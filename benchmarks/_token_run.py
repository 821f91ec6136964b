"""A whole run of tokens on the circle in a process of its own, whose peak memory is its own.

    python benchmarks/_token_run.py 1000000

Prints JSON: processor seconds of `solve`, velocities evaluated, processor seconds of one of them,
and the memory that the run took beyond that of the imports and of compiled code, as a multiple of
the coordinates.
"""

import json
import os
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from _timing import fastest

import meanfield as mf
from meanfield import engines

MODEL, T_END, RTOL = mf.Transformer(mf.SA(beta=5.0)), 2.0, 1e-6


def main() -> None:
    n = int(sys.argv[1])
    solved(mf.Tokens.uniform(20_000, 2, rng=0))  # compiles
    before = peak()
    tokens = mf.Tokens.uniform(n, 2, rng=1)
    began = time.process_time()
    run = solved(tokens)
    seconds = time.process_time() - began
    memory = (peak() - before) / tokens.x.nbytes
    engine = engines.Automatic().build(MODEL.drift, n, 2)
    x, masses = tokens.x[None], tokens.masses[None]
    one = fastest([lambda: engine.velocity(x, masses)], 10, clock=time.process_time)[0]
    evaluations = run.stats["evaluations"]
    found = {"seconds": seconds, "evaluations": evaluations, "velocity": one, "memory": memory}
    print(json.dumps({**found, "steps": run.stats["steps"], "rejected": run.stats["rejected"]}))


def solved(tokens: mf.Tokens) -> mf.Solution:
    return mf.solve(MODEL, tokens, (0, T_END), t_eval=[T_END], rtol=RTOL, progress=False)


def peak() -> int:
    """Peak memory of this program in bytes, without that of the one which started it (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = (line for line in status if line.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


if __name__ == "__main__":
    main()
