"""Claim: causal attention that prefers the recent forgets the middle, until a critical depth.

Causal USA on the circle with the decay e^{-l (s - tau)}, divided by its mass, starts from the
uniform law at every position. Degree n of a change at position tau acts on position 1 through

    K_n(tau) = l e^{-l (1 - tau)} / (1 - e^{-l}) sqrt(T/u) I_1(2 sqrt(T u)),
    T = n^2 I_n(beta) t / beta,    u = log((e^l - 1) / (e^{l tau} - 1)).

A probe that reads M positions of the circle weighs degree n by w_n = exp(-pi^2 n^2 / (2 M^2)), and
the profile of retrieval is sum_n w_n K_n. It rises at tau = 1, and so has its minimum in the
middle, for

    t / beta < t_crit = 2 (1 - e^{-l}) sum_n w_n a_n / sum_n w_n a_n^2,    a_n = n^2 I_n(beta)

(Duerinckx, Geshkovski and Rossi, arXiv:2605.09213). Their velocities are beta times ours, and so
t / beta is their time.

1. K_n is the gradient of the n-th moment at position 1, computed by one adjoint run of the package,
   n = 1, 2, 3 and l = 1, 2: 1e-6, relative.
2. The depth at which the profile of the matrix e^{T C} of the package loses its rise at tau = 1 is
   t_crit, l = 1, M = 8, n <= 20, beta = 1, 2, 3: 1e-6. The printed values are 2.4574889803,
   0.6007162243, 0.1740183939.
3. In runs of the package, by their adjoints, the rise is lost at t = beta t_crit, l = 1, beta = 2:
   1e-4, relative.
4. At 0.2, 0.5 and 0.9 of t_crit the profile has one minimum, inside; at 1.1 of it it falls on the
   whole sequence.

    python validation/lost_in_the_middle.py [--quick]    # 20 s, 15 s quick

--quick has l = 1 in part 1. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from numpy.polynomial import legendre
from scipy.linalg import expm
from scipy.optimize import brentq
from scipy.special import i1, iv

import meanfield as mf

DEGREES, READ, ORDER = np.arange(1, 21), 8, 8
PRINTED = {1.0: 2.4574889803, 2.0: 0.6007162243, 3.0: 0.1740183939}


def decay(l):
    """The attention by distance in the sequence, e^{-l (s - tau)}."""
    return mf.Causal("mean", decay=lambda distance: np.exp(-l * distance))


def kernel(tau, T, l):
    """K of the continuum at positions tau < 1."""
    u = np.log(np.expm1(l) / np.expm1(l * tau))
    recency = l * np.exp(-l * (1 - tau)) / -np.expm1(-l)
    return recency * np.sqrt(T / u) * i1(2 * np.sqrt(T * u))


def measured_kernels(index, degrees, l, beta, depth):
    """The kernel of each degree at the nodes, by the adjoint of a run of the package."""
    degree = max(8, 2 * max(degrees))
    start = mf.Circle(degree).indexed(lambda s, x: 1 + 0 * s * x, index)
    steps = {"dt": depth / 24, "min_degree": degree, "max_degree": degree, "progress": False}
    model = mf.Transformer(mf.USA(beta), causal=decay(l))
    run = successful(mf.solve(model, start, (0, depth), t_eval=[depth], **steps))
    for n in degrees:
        J = mf.Functional.mean(
            lambda x, n=n: np.cos(n * np.arctan2(x[:, 1], x[:, 0])), position=1.0
        )
        yield 2 * mf.gradient(J, run, parameters=[]).initial.slices.coefficients[:, n].real


def gradients(report, l, beta=2.0, depth=0.6):
    """The kernels of degrees 1 to 3 in a run of the package, and the formula."""
    index = mf.Positions([0, *np.geomspace(1e-3, 0.8, 9), 1], order=12)
    inner = (index.nodes > 0.02) & (index.nodes < 0.8)
    for n, values in enumerate(measured_kernels(index, (1, 2, 3), l, beta, depth), start=1):
        law = kernel(index.nodes[inner], n**2 * iv(n, beta) * depth / beta, l)
        measured = values[inner]
        report.compare(
            f"l = {l:g}", f"kernel of degree {n}", "gradient", predicted=0.0,
            measured=np.abs(measured / law - 1).max(), tolerance=1e-6,
        )  # fmt: skip


def reading(n):
    """The weight w_n of degree n."""
    return np.exp(-((np.pi * n / READ) ** 2) / 2)


def slope_at_the_end(profile, index):
    """The derivative at tau = 1 of a profile at the nodes.

    It jumps to 0 within the last piece; the polynomial of the last but one is continued.
    """
    piece = slice(-2 * ORDER, -ORDER)
    return legendre.Legendre.fit(index.nodes[piece], profile[piece], ORDER - 1).deriv()(1.0)


def slope_of_influence(beta, t, C, index):
    """The derivative of the profile of retrieval after their time t, from the matrix C.

    The row of e^{t C} at s = 1, divided by the weights of the nodes, is the kernel.
    """
    row = 0.0
    for n in DEGREES:
        acts = expm(n**2 * iv(n, beta) * t * C) - np.eye(len(C))
        row = row + reading(n) * (index.interpolation(1.0) @ acts)
    return slope_at_the_end(row / index.weights, index)


def in_own_time(report, l=1.0, beta=2.0):
    """The depth t of runs of the package at which the rise is lost; degrees above 8 add 1e-7."""
    index = mf.Positions([0, *np.geomspace(1e-3, 0.5, 9), 0.7, 0.9, 0.99, 1], order=ORDER)
    depths, slopes, degrees = beta * PRINTED[beta] * np.array([0.999, 1.001]), [], range(1, 9)
    for depth in depths:
        kernels = measured_kernels(index, degrees, l, beta, depth)
        profile = sum(reading(n) * values for n, values in zip(degrees, kernels, strict=True))
        slopes.append(slope_at_the_end(profile, index))
    lost = depths[0] - slopes[0] * np.diff(depths)[0] / np.diff(slopes)[0]
    report.compare(
        f"beta = {beta:g}", "t / (beta t_crit)", "runs", predicted=1.0,
        measured=lost / (beta * PRINTED[beta]), tolerance=1e-4,
    )  # fmt: skip


def critical(report, l=1.0):
    """The critical depth, and the shape of the profile on both sides of it."""
    index = mf.Positions([0, *np.geomspace(1e-3, 0.5, 9), 0.7, 0.9, 0.99, 1], order=ORDER)
    for beta, printed in PRINTED.items():
        C = index.influence(mf.Transformer(mf.USA(beta), causal=decay(l)))
        w, a = reading(DEGREES), DEGREES**2 * iv(DEGREES, beta)
        formula = 2 * -np.expm1(-l) * (w @ a) / (w @ a**2)
        t = brentq(
            lambda t, beta=beta, C=C: slope_of_influence(beta, t, C, index),
            0.5 * formula, 2 * formula, xtol=1e-12,
        )  # fmt: skip
        name = f"beta = {beta:g}"
        report.compare(
            name, "t_crit", "formula", predicted=printed, measured=formula, tolerance=1e-10
        )
        report.compare(name, "t_crit", "profile", predicted=printed, measured=t, tolerance=1e-6)
        for part, expected in ((0.2, 1), (0.5, 1), (0.9, 1), (1.1, 0)):
            tau = np.linspace(1e-3, 1 - 1e-6, 20001)
            values = sum(
                weight * kernel(tau, rate * part * formula, l)
                for weight, rate in zip(w, a, strict=True)
            )
            rises = np.diff(values) > 0
            minima = int(np.count_nonzero(rises[1:] & ~rises[:-1]))
            report.compare(
                name, f"minima inside at {part:g} t_crit", "profile", predicted=expected,
                measured=minima, tolerance=0,
            )  # fmt: skip


def main():
    quick = command_line(__doc__).quick
    report = Report(["model", "quantity", "by"])
    for l in (1.0,) if quick else (1.0, 2.0):
        gradients(report, l)
    in_own_time(report)
    critical(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
