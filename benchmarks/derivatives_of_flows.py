"""What tangents of runs of tokens and characteristics cost, in runs: a table in Markdown.

    python benchmarks/derivatives_of_flows.py [--small]

A tangent: the time of `solve` with one tangent in a direction, less that without, over that
without; the step from one tangent to three, a tangent.

One thread, processor time; the median over rounds in which all three take a turn, with its standard
error; eight minutes. Exit code 1 if a tangent, the first or a further one, costs more than 2.5 runs
by more than two standard errors, never in the small mode.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import sys
import time

import numpy as np
from _small import SMALL, parser, sized
from _timing import median, rounds

import meanfield as mf

ROUNDS, BUDGET = 15, 6.0
MOST = 2.5
SIZES, DIMENSIONS = sized(((64, 500, 2000), (2, 3, 8, 64)), ((20,), (2,)))
MANY = sized(20_000, 500)
RNG = np.random.default_rng(0)


def tokens(n, d):
    x = RNG.standard_normal((n, d))
    return mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))


def attention(weights, d):
    Q, K, V = RNG.standard_normal((3, 2, 8, d)) / 4
    output = RNG.standard_normal((2, d, 8)) / 4
    return mf.Attention(Q, K, V, 1.0, weights=weights, output=output)


def cases():
    """Names, drifts, states and engines."""
    for n in SIZES:
        for d in DIMENSIONS:
            for drift in (mf.SA(beta=2.0), mf.USA(beta=2.0)):
                name = f"{type(drift).__name__}, n = {n}, d = {d}, pairs"
                yield name, drift, tokens(n, d), mf.engines.Direct()
    for n in SIZES:
        for weights in (mf.Softmax(), mf.Sigmoid()):
            name = f"{type(weights).__name__}, n = {n}, d = 16, 2 heads"
            yield name, attention(weights, 16), tokens(n, 16), None
    for d in (2, 3):
        for drift in (mf.SA(beta=4.0), mf.USA(beta=4.0)):
            name = f"{type(drift).__name__}, n = {MANY}, d = {d}, modes"
            yield name, drift, tokens(MANY, d), mf.engines.Modes()
    density = mf.Sphere(24).von_mises_fisher(concentration=1.0)
    for drift in (mf.SA(beta=4.0), mf.USA(beta=4.0)):
        state = mf.Characteristics(density)
        yield f"{type(drift).__name__}, characteristics on S^2", drift, state, None


def main() -> int:
    parser(__doc__).parse_args()
    print("| run | ms | a tangent | each further one |")
    print("|---|---|---|---|")
    dear = 0
    for name, drift, state, engine in cases():
        alone, *tangents = costs(mf.Transformer(drift), state, engine)
        dear += any(cost - 2 * error > MOST for cost, error in tangents)
        words = " | ".join(f"{cost:.2f} ± {error:.2f}" for cost, error in tangents)
        print(f"| {name} | {1e3 * alone:.1f} | {words} |", flush=True)
    return int(dear > 0 and not SMALL)


def directed(state):
    """A change of the initial state: of the places of all tokens, or of a density."""
    if not isinstance(state, mf.Tokens):
        return lambda x: x[:, 0]
    e = RNG.standard_normal(state.x.shape)
    return e - (e * state.x).sum(axis=1, keepdims=True) * state.x


def costs(model, state, engine) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """Seconds of the run; what a tangent and each further one cost in runs, and standard errors."""
    e = directed(state)
    end = 1.0 if len(state) <= 500 else 0.3

    def solve(*tangents):
        return mf.solve(
            model, state, (0, end), t_eval=[end], tangents=tangents, progress=False, engine=engine
        )

    timed = [solve, lambda: solve(e), lambda: solve(e, e, e)]
    for one in timed:
        one()  # compiled, or read
    alone, one, three = rounds(timed, ROUNDS, BUDGET, time.process_time).T
    return np.median(alone), median((one - alone) / alone), median((three - one) / 2 / alone)


if __name__ == "__main__":
    sys.exit(main())
