"""Claim: SA is the gradient flow, uphill, of its energy for a metric that weighs by Z.

E(mu) = 1/(2 beta) int int e^{beta <x, y>} dmu dmu has the first variation Z(x)/beta, with
Z(x) = int e^{beta <x, y>} dmu(y), and SA the velocity v = grad Z/(beta Z). So v is the gradient of
the first variation for the metric int |w|^2 Z dmu, and along the flow

    dE/dt = int |v|^2 Z dmu.

1. That balance, integrated over time by 24 Gauss nodes: tokens on S^1, S^2 and S^7, beta = 1, 4; a
   density on the circle and one on S^2, beta = 3; characteristics of the former. Energy, Z and v
   are sums over pairs of tokens, or of nodes of a quadrature, by NumPy. Asked: 1e-11, relative;
   1e-9 for densities, which are solved to rtol = 1e-12.
2. In Wasserstein's own metric it is none: dE/dt differs from int |v|^2 dmu, by more than a tenth.
3. Of all velocities w of the same length int |w|^2 Z dmu, v raises the energy most: of 1000 random
   ones, tangent to the sphere, none does more, and the best of the plane that contains v does as
   much to 1e-12.

    python validation/dissipation_of_sa.py    # 2 s

Exit code 1 on failure. Reference: the survey, section 3.2, after (3).
"""

import sys

import numpy as np
from _report import Report, successful

import meanfield as mf

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
Sums = tuple[float, float, float]


def sums(x: np.ndarray, masses: np.ndarray, beta: float) -> Sums:
    """E, int |v|^2 Z dmu and int |v|^2 dmu of points (n, d)."""
    z, v = field(x, masses, beta)
    squares = (v * v).sum(axis=1)
    return masses @ z / (2 * beta), masses @ (squares * z), masses @ squares


def field(x: np.ndarray, masses: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Z and v at the points."""
    kernel = np.exp(beta * x @ x.T) * masses
    z = kernel.sum(axis=1)
    mean = kernel @ x / z[:, None]
    return z, mean - (mean * x).sum(axis=1, keepdims=True) * x


def points(state) -> tuple[np.ndarray, np.ndarray]:
    """Points and masses of tokens, of characteristics, or of a density at nodes of a quadrature."""
    if isinstance(state, mf.Density):
        return state.space.points, state.values * state.space.weights
    if isinstance(state, mf.Characteristics):
        return state.points, state.masses
    return state.x, state.masses


def along(state, beta: float, end: float) -> tuple[float, float, float]:
    """The gain of energy, and the integrals of both squares over time."""
    times = np.concatenate([[0], end * (NODES + 1) / 2, [end]])
    options = {} if isinstance(state, mf.Tokens) else {"rtol": 1e-12}
    if isinstance(state, mf.Density):
        options["min_degree"] = options["max_degree"] = state.space.degree
    run = mf.solve(mf.Transformer(mf.SA(beta)), state, (0, end), t_eval=times,
                   **{"rtol": 1e-13} | options)  # fmt: skip
    found = np.array([sums(*points(state), beta) for state in successful(run)])
    integrals = end / 2 * WEIGHTS @ found[1:-1, 1:]
    return found[-1, 0] - found[0, 0], *integrals


def cases():
    """Name, state, beta, last time and tolerance."""
    for beta in (1.0, 4.0):
        for d in (2, 3, 8):
            yield f"20 tokens, {d=}", mf.Tokens.uniform(20, d, rng=d), beta, 1.0, 1e-11
    ring = mf.Circle(96).density(lambda a: 1 + 0.3 * np.cos(a) + 0.2 * np.sin(2 * a))
    ball = mf.Sphere(20).density(lambda x, y, z: 1 + 0.4 * z + 0.3 * x * y)
    yield "density on the circle", ring, 3.0, 0.5, 1e-9
    yield "density on S^2", ball, 3.0, 0.25, 1e-9
    yield "characteristics", mf.Characteristics(ring, nodes=1024), 3.0, 0.5, 1e-9


def check_balance(report: Report) -> None:
    for name, state, beta, end, tolerance in cases():
        gain, own, plain = along(state, beta, end)
        report.compare("gain of energy", f"{name}, {beta=:g}", predicted=own, measured=gain,
                       tolerance=tolerance, relative=True)  # fmt: skip
        apart = abs(plain / gain - 1) > 0.1
        report.compare("not in Wasserstein's metric", f"{name}, {beta=:g}", predicted=1,
                       measured=int(apart), tolerance=0)  # fmt: skip


def check_steepest(report: Report) -> None:
    rng, beta = np.random.default_rng(1), 3.0
    tokens = mf.Tokens.uniform(20, 3, rng=rng)
    x, masses = points(tokens)
    z, v = field(x, masses, beta)
    w = rng.standard_normal((1000, 20, 3))
    w -= (w * x).sum(axis=2, keepdims=True) * x

    def product(a, b):
        return (a * b).sum(axis=-1) @ (masses * z)

    slope = v * z[:, None]  # of the first variation
    best = (v * slope).sum(axis=-1) @ masses / np.sqrt(product(v, v))
    raised = (w * slope).sum(axis=-1) @ masses / np.sqrt(product(w, w))
    report.compare("steepest of 1000", "SA(3), 20 tokens", predicted=1,
                   measured=int(np.all(raised < best)), tolerance=0)  # fmt: skip
    angles = np.linspace(-0.5, 0.5, 101)[:, None, None]
    plane = v / np.sqrt(product(v, v)) + angles * w[0] / np.sqrt(product(w[0], w[0]))
    top = ((plane * slope).sum(axis=-1) @ masses / np.sqrt(product(plane, plane))).max()
    report.compare("steepest in a plane", "SA(3), 20 tokens", predicted=best, measured=top,
                   tolerance=1e-12, relative=True)  # fmt: skip


def main() -> int:
    report = Report(["claim", "case"])
    check_balance(report)
    check_steepest(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
