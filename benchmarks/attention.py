"""A time step of a density under attention with matrices: a table in Markdown.

    python benchmarks/attention.py [--small]

For each kind of weights with random Q, K, V, one head and beta |Q^T K| = 5: microseconds of a step
of Krogstad's scheme with constant parameters, and in brackets how many steps of SA(5), a zonal
drift, of the same degree take as long. The last column is a step by sums over all pairs of the
grid's points (softmax), which no density needs. Best of several; one thread; about three minutes.
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _small import parser, sized
from _timing import fastest

import meanfield as mf
from meanfield.dynamics import DensityEvolution
from meanfield.engines.attention import AttentionSums
from meanfield.models.weights import L2, Sigmoid, Sinkhorn, Softmax, Unnormalised
from meanfield.steppers import Krogstad, Stepper
from meanfield.steppers.clock import started
from meanfield.steppers.stepper import FIXED_STEP

WEIGHTS = (Softmax(), Unnormalised(), L2(), Sigmoid(), Sinkhorn())
DEGREES = {mf.Circle: sized((64, 256), (16,)), mf.Sphere: sized((15, 31, 63), (15,))}
REPEATS, BUDGET, DT, STAGES = 9, 6.0, 1e-6, 4


def main() -> None:
    parser(__doc__).parse_args()
    names = ["SA(5)", *(type(w).__name__ for w in WEIGHTS), "dense sums"]
    print(f"| space | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
    for space, degrees in DEGREES.items():
        for degree in degrees:
            row(space(degree))


def row(space) -> None:
    """One line of the table."""
    rng, d = np.random.default_rng(0), space.dimension
    start = space.von_mises(0.3, 1.0) if d == 2 else space.von_mises_fisher([0.6, 0, 0.8], 1.0)
    Q, K, V = rng.standard_normal((3, d, d))
    beta = 5 / np.linalg.norm(K.T @ Q, 2)
    drifts = [mf.SA(5.0), *(mf.Attention(Q, K, V, beta, weights=w) for w in WEIGHTS)]
    counts = [200 if d == 2 else 20, *([200 if d == 2 else 2] * 4), 2]
    runs = [steps(d, start, n) for d, n in zip(drifts, counts, strict=True)]
    sums, points = AttentionSums(drifts[1]), space.points[None]
    masses = (space.weights * start.values)[None]
    runs.append(lambda: sums.attention(0.0, points, masses))
    times = np.array(fastest(runs, REPEATS, BUDGET)) / [*counts, 1 / STAGES] * 1e6
    cells = " | ".join(f"{each:.0f} ({each / times[0]:.1f})" for each in times)
    print(f"| {space!r} | {cells} |", flush=True)


def steps(drift, start, count: int):
    """A function that takes so many steps; the first ones are taken here."""
    evolution = DensityEvolution(mf.Transformer(drift, 10.0), start.space)
    state = start.coefficients[None]
    stepper = Stepper(
        Krogstad, evolution.linear, evolution.nonlinear, state, degrees=start.space.degrees
    )

    def run(number: int = count) -> None:
        stepper.state = state
        stepper.advance(started(DT), FIXED_STEP, number * DT, number)

    run(1)
    return run


if __name__ == "__main__":
    main()
