"""One velocity of tokens under attention with matrices: a table in Markdown.

    python benchmarks/attention_tokens.py [--small]

Milliseconds by modes with random Q, K, V, one head and beta |Q^T K| = 5, for each kind of weights,
beside SA(5), a zonal drift, by its modes, and beside softmax by all pairs, up to 10^4 tokens; and
the milliseconds that the tables take once. Processor time on one thread, best of several; about a
minute.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time

import numpy as np
from _small import parser, sized
from _timing import fastest

import meanfield as mf
from meanfield.engines import AttentionModes, AttentionSums, CircleModes, SphereModes
from meanfield.models.weights import L2, Softmax, Unnormalised

WEIGHTS = (Softmax(), Unnormalised(), L2())
SIZES, PAIRS = sized(((10**3, 10**4, 10**5, 10**6), 10**4), ((100, 200), 100))
REPEATS, BUDGET = 7, 6.0


def main() -> None:
    parser(__doc__).parse_args()
    names = ["space", "n", "SA(5)", *(type(w).__name__ for w in WEIGHTS), "all pairs"]
    print(f"| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for d, zonal in ((2, CircleModes), (3, SphereModes)):
        rng = np.random.default_rng(0)
        Q, K, V = rng.standard_normal((3, d, d))
        beta = 5 / np.linalg.norm(K.T @ Q, 2)
        drifts = [mf.Attention(Q, K, V, beta, weights=weights) for weights in WEIGHTS]
        modes, pairs = [AttentionModes(drift) for drift in drifts], AttentionSums(drifts[0])
        tables = [first(engine, d) for engine in modes]
        for n in SIZES:
            tokens = mf.Tokens.uniform(n, d, rng=0, shape=(1,))
            x, masses, sa = tokens.x.copy(), tokens.masses.copy(), zonal(mf.SA(5.0))
            runs = [lambda x=x, m=masses, sa=sa: sa.velocity(x, m)]
            for engine in modes + ([pairs] if n <= PAIRS else []):
                runs.append(lambda x=x, m=masses, e=engine: e.attention(0.0, x, m))
            for run in runs:
                run()
            found = fastest(runs, REPEATS, BUDGET, time.process_time)
            cells = [f"{1e3 * seconds:.3g}" for seconds in found] + [""] * (n > PAIRS)
            print(f"| {('circle', 'S^2')[d - 2]} | {n:.0e} | {' | '.join(cells)} |", flush=True)
        print(f"| tables | | | {' | '.join(f'{1e3 * seconds:.3g}' for seconds in tables)} | |")


def first(engine: AttentionModes, d: int) -> float:
    """Seconds of the first velocity of few tokens."""
    tokens = mf.Tokens.uniform(20, d, rng=0, shape=(1,))
    AttentionModes(mf.Attention()).attention(0.0, tokens.x, tokens.masses)  # compiles
    began = time.process_time()
    engine.attention(0.0, tokens.x, tokens.masses)
    return time.process_time() - began


if __name__ == "__main__":
    main()
