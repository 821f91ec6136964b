"""Claim: densities on S^2 under attention with matrices are those of a quadrature of tokens.

    x_i' = P_x ( V sum_j m_j k(x_i, x_j) x_j / Z(x_i) ),    mu_0 = 1 + x/2 - 3 y z/10 + 3 z/10

The tokens are 3 420 points of a quadrature that integrates mu_0 times polynomials of degree 75,
followed by DormandPrince at rtol 1e-10. Compared are int x dmu and int x_a x_b dmu at t = 0.1 for
random Q, K, V, one and two heads, every kind of weights but Sinkhorn's; and the mass.

Asked: absolute error <= 1e-9 at rtol = 1e-11; mass to 1e-13.

    python validation/attention_on_densities.py [--quick]    # 4 s, 3 s quick

--quick takes softmax and L2 weights of one head. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf
from meanfield.models.weights import L2, Linear, Sigmoid, Softmax, Unnormalised

T_END, FINE = 0.1, 25
KINDS = (Softmax(), Unnormalised(), L2(), Sigmoid(0.3), Linear())
NAMES = ("x", "y", "z", "xx", "xy", "xz", "yy", "yz", "zz")


def main() -> int:
    quick = command_line(__doc__, "two kinds of weights, one head").quick
    report = Report(["weights", "heads", "quantity"], digits=12)
    rng = np.random.default_rng(3)
    Q, K, V = 0.6 * rng.standard_normal((3, 2, 3, 3))
    space = mf.Sphere(16)
    start = space.density(lambda x, y, z: 1 + 0.5 * x - 0.3 * y * z + 0.3 * z)
    fine = space.with_degree(FINE)
    masses = fine.weights * start.resample(FINE).values
    tokens = mf.Tokens(fine.points, masses / masses.sum())
    for heads in (1,) if quick else (1, 2):
        every = KINDS[::2][:2] if quick else KINDS
        for weights in every if heads == 1 else KINDS[:3]:
            drift = mf.Attention(Q[:heads], K[:heads], V[:heads], 0.8, weights=weights)
            model, span = mf.Transformer(drift), (0, T_END)
            run = successful(mf.solve(model, start, span, rtol=1e-11, progress=False))
            dense = successful(mf.solve(model, tokens, span, rtol=1e-10, progress=False))
            final, last = run[-1], dense[-1]
            found = np.array([final.expect(f) for f in _functions()])
            wanted = np.array([tokens.masses @ f(last.x) for f in _functions()])
            for name, predicted, measured in zip(NAMES, wanted, found, strict=True):
                labels = type(weights).__name__, heads, name
                report.compare(*labels, predicted=predicted, measured=measured, tolerance=1e-9)
            labels = type(weights).__name__, heads, "mass"
            report.compare(*labels, predicted=1.0, measured=float(final.mass), tolerance=1e-13)
    return report.verdict()


def _functions():
    """Coordinates, and their products."""
    first = [lambda x, a=a: x[..., a] for a in range(3)]
    pairs = zip(*np.triu_indices(3), strict=True)
    return first + [lambda x, a=a, b=b: x[..., a] * x[..., b] for a, b in pairs]


if __name__ == "__main__":
    sys.exit(main())
