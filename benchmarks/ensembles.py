"""What an ensemble of densities costs beside a loop over its members, and what two threads save.

    python benchmarks/ensembles.py [--repeats 5] [--pairs 10000] [--small]

Random pairs of beta in 0.5 to 6 and kappa in 0.3 to 8, USA on the circle, from 1 + 0.1 cos theta.
20 pairs to T = 2 as an ensemble and in a loop; 1000 pairs on two threads and in a loop; 1000 equal
cheap members (beta = 1, kappa = 2 to 3). Then `--pairs` pairs to t = 2 in an ensemble on two
threads; and to the stationary state that the flow reaches, in two processes of `mf.sweep`: see
`examples/many_pairs.py`. The least of all repeats is shown. Takes about six minutes.
"""

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from _small import parser, sized
from _timing import fastest

import meanfield as mf

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import many_pairs

CHUNK = sized(100, 2)  # pairs of one point of the sweep
FEW, MANY, PAIRS = sized((20, 1000, 10_000), (3, 4, 4))
START = mf.Circle(16).density(lambda x: 1 + 0.1 * np.cos(x))


def ensemble(beta: np.ndarray, kappa: np.ndarray, threads: int = 1) -> None:
    """All pairs in one call, to T = 2."""
    model = mf.Transformer(mf.USA(beta), kappa)
    mf.solve(model, START, (0, 2), t_eval=[2], threads=threads, progress=False)


def loop(beta: np.ndarray, kappa: np.ndarray) -> None:
    """The same, one call each."""
    for b, k in zip(beta, kappa, strict=True):
        mf.solve(mf.Transformer(mf.USA(b), k), START, (0, 2), t_eval=[2], progress=False)


def states(first: int, count: int) -> np.ndarray:
    """Order parameters that some of the pairs reach; nan where the flow is slow."""
    beta, kappa = many_pairs.random_pairs(count)
    return many_pairs.reached(beta[first : first + CHUNK], kappa[first : first + CHUNK])


def compare(name: str, beta: np.ndarray, kappa: np.ndarray, threads: int, repeats: int) -> None:
    one, other = partial(ensemble, beta, kappa, threads), partial(loop, beta, kappa)
    one()
    together, alone = fastest([one, other], repeats, budget=120.0)
    each = 1e3 / len(beta)
    print(
        f"{name:38s} {each * together:8.2f} ms a member, loop {each * alone:8.2f}, "
        f"ratio {together / alone:.2f}",
        flush=True,
    )


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--pairs", type=int, default=PAIRS)
    arguments = options.parse_args()
    repeats, pairs = arguments.repeats, arguments.pairs
    compare(f"{FEW} random pairs", *many_pairs.random_pairs(FEW), 1, repeats)
    many = many_pairs.random_pairs(MANY)
    compare(f"{MANY} random pairs, two threads", *many, 2, min(repeats, 2))
    compare(f"{MANY} cheap members", np.ones(MANY), np.linspace(2, 3, MANY), 1, min(repeats, 3))
    began = time.perf_counter()
    ensemble(*many_pairs.random_pairs(pairs), threads=2)
    print(f"{pairs} pairs to t = 2, two threads: {time.perf_counter() - began:.1f} s", flush=True)
    began = time.perf_counter()
    chunks = {"first": range(0, pairs, CHUNK)}
    found = mf.sweep(partial(states, count=pairs), chunks, executor="processes", progress=False)
    slow = int(np.isnan(found["value"]).sum())
    print(
        f"{pairs} pairs to their stationary states, two processes: "
        f"{time.perf_counter() - began:.1f} s; {slow} slow ones"
    )


if __name__ == "__main__":
    main()
