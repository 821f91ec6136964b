"""What a kernel of two points costs by the rank of its matrix: a table in Markdown.

    python benchmarks/pair_kernels.py [--small]

Kernels e^(beta <x, y>) R y on S^2, R a rotation, for increasing beta: the time to find the matrix
of low rank and the time of a velocity with it, beside the product with a dense matrix of the same
shape.

Processor time of one thread; velocities are the best of 20; about ten seconds.
"""

import os
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from _small import parser, sized
from _timing import fastest

import meanfield as mf
from meanfield.engines.density_heads import GridDensity
from meanfield.engines.fields import fields_of

DEGREE, BETAS = sized((32, (0.5, 1.0, 2.0, 4.0)), (12, (0.5, 1.0)))
REPEATS = 20
TURN = np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])


def main() -> None:
    parser(__doc__).parse_args()
    print("\n| beta | matrix | rank | error | to find it, s | velocity, ms | dense, ms |")
    print("|---|---|---|---|---|---|---|")
    for beta in BETAS:
        row(beta)


def row(beta: float) -> None:
    def seen(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.exp(beta * ((x * y).sum(-1, keepdims=True) - 1)) * (y @ TURN.T)

    space = mf.Sphere(DEGREE)
    density = space.density(lambda x, y, z: np.exp(0.5 * x + 0.3 * y * z))
    acting = GridDensity(space, density.coefficients, density.values)
    begun = time.process_time()
    ((_, field),) = fields_of(mf.PairKernel(seen), space)
    field.velocity(0.0, acting)
    found = time.process_time() - begun
    kernel = field.kernel
    dense, vector = np.ones(kernel.shape), np.ones(kernel.shape[1])
    calls = [lambda: field.velocity(0.0, acting), lambda: dense @ vector]
    times = fastest(calls, REPEATS, clock=time.process_time)
    shape = " x ".join(map(str, kernel.shape))
    numbers = " | ".join(f"{1e3 * one:.2f}" for one in times)
    print(f"| {beta:g} | {shape} | {kernel.rank} | {kernel.error:.0e} | {found:.2f} | {numbers} |")


if __name__ == "__main__":
    main()
