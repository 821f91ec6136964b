"""Claim: Gaussians follow attention in R^d exactly, whatever its parameters.

Attention with softmax, L2, Sinkhorn or linear weights has velocities that are affine on N(a, S):
the law stays normal. With A = beta K^T Q,

1. Reference. Means and covariances at t = 1 agree with twelve printed digits of an independent
   program; with S' = V S A S + S A^T S V^T and its likes integrated as they stand, for linear
   attention, two heads with output projections, Q, K, V and beta that are functions of t (softmax,
   L2), and layers one after the other (PerLayer, softmax, L2, Sinkhorn).
2. Gradient flows. Where v = grad dE/dmu, E grows by int |v|^2 dmu dt. The speed of any law is its
   metric speed in the distance of Bures and Wasserstein, which is less than |v| elsewhere.
3. Digits. A variance of 1e-2 beside one of 1e26 is the same in turned coordinates as in the
   coordinates of the two directions. Models that do not keep a Gaussian are refused.

Blow-up and limits: gaussian_closed_forms.py. Tokens: gaussian_tokens.py.

    python validation/gaussians.py [--quick]    # 1 s
"""

import sys

import numpy as np
from _gaussian_laws import COV, MEAN, K, Q, V, apart, final
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp

import meanfield as mf

NEGATIVE = -np.array([[1.0, 0.2], [0.2, 0.5]])
GENERAL = np.array([[-1.0, 0.4], [0.1, -0.7]])


def check_references(report: Report) -> None:
    """Printed values, to half a unit of the twelfth decimal and what a run adds."""
    cases = {
        "softmax, V = 1, A < 0": (
            mf.Attention(NEGATIVE),
            [0.313723745105, 0.030259878960, 0.293698825205],
            [1.750023016638, -1.463344429561],
        ),
        "softmax": (
            mf.Attention(GENERAL, None, V),
            [0.365319031951, 0.159567019588, 0.376685335057],
            [1.086341878407, -1.031069124060],
        ),
        "L2": (
            mf.Attention(Q, K, V, weights=mf.L2()),
            [3.026792577521, 0.664676151609, 0.497299256409],
            [1.334975559658, -1.281727381924],
        ),
        "Sinkhorn": (
            mf.Attention(Q, K, V, weights=mf.Sinkhorn()),
            [2.595522398360, 0.774916918303, 0.587394279760],
            [1.863767639484, -1.281361153923],
        ),
    }
    for name, (drift, (aa, ab, bb), mean) in cases.items():
        error = apart(final(drift), mean, [[aa, ab], [ab, bb]])
        report.compare("printed values", name, predicted=0, measured=error, tolerance=2e-12)


def integrated(rates, end=1.0):
    """Mean and covariance of a' and S' written out, by another program's scheme."""

    def flat(t, y):
        a, S = y[:2], y[2:].reshape(2, 2)
        return np.concatenate([part.ravel() for part in rates(t, a, S)])

    start, options = np.concatenate([MEAN, COV.ravel()]), {"rtol": 1e-13, "atol": 1e-14}
    y = solve_ivp(flat, (0, end), start, method="DOP853", max_step=0.01, **options).y[:, -1]
    return y[:2], y[2:].reshape(2, 2)


def sandwich(M, S):
    """M S + S M^T."""
    return M @ S + S @ M.T


def check_written_out(report: Report) -> None:
    """The equations as they stand in the covariance, where the package moves a root of it."""
    A, B = K.T @ Q, 0.5 * GENERAL
    values = np.stack([V, np.eye(2)])
    output = np.stack([np.diag([1.0, 0.0]), np.diag([0.3, 0.8])])
    two = mf.Attention(np.stack([Q, B]), np.stack([K, np.eye(2)]), values, -0.7, output=output)

    def linear(_t, a, S):
        M = -0.3 * V @ (S + np.outer(a, a)) @ A
        return M @ a, sandwich(M, S)

    def heads(_t, a, S):
        parts = [(output[0] @ V, -0.7 * A), (output[1], -0.7 * B)]
        slopes = [C @ S @ pull for C, pull in parts]
        return sum(C for C, _ in parts) @ a + sum(slopes) @ a, sandwich(sum(slopes), S)

    for name, drift, rates in (
        ("linear", mf.Attention(Q, K, V, -0.3, weights=mf.Linear()), linear),
        ("two heads", two, heads),
    ):
        error = apart(final(drift), *integrated(rates))
        report.compare("written out", name, predicted=0, measured=error, tolerance=1e-10)


def check_changing(report: Report) -> None:
    """Q, K, V and beta that change with t, continuously and from layer to layer."""
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])

    def at(t):
        """Q, K, V, beta."""
        return Q + np.sin(2 * t) * turn, K * np.exp(-t), V + t * turn, 0.6 + 0.3 * np.cos(3 * t)

    def softmax(t, a, S):
        q, k, v, beta = at(t)
        pull = v @ S @ (beta * k.T @ q)
        return v @ a + pull @ a, sandwich(pull, S)

    def l2(t, a, S):
        q, k, v, beta = at(t)
        pull = v @ S @ k.T @ np.linalg.inv(np.eye(2) / (2 * beta) + k @ S @ k.T)
        return v @ a + pull @ (q - k) @ a, sandwich(pull @ q, S)

    functions = [lambda t, i=i: at(t)[i] for i in range(4)]
    for name, kind, rates in (("softmax", mf.Softmax(), softmax), ("L2", mf.L2(), l2)):
        error = apart(final(mf.Attention(*functions, weights=kind)), *integrated(rates))
        label = f"{name}, Q, K, V, beta of t"
        report.compare("written out", label, predicted=0, measured=error, tolerance=1e-10)
    stacks = [np.stack([at(t)[i] for t in (0.0, 0.4, 0.8, 1.2)]) for i in range(4)]
    for name, kind in (("softmax", mf.Softmax()), ("L2", mf.L2()), ("Sinkhorn", mf.Sinkhorn())):
        mean, cov = MEAN, COV
        for layer in zip(*stacks, strict=True):
            law = final(mf.Attention(*layer, weights=kind), 0.25, mean, cov)
            mean, cov = law.mean, (law.cov + law.cov.T) / 2
        layers = [mf.PerLayer(stack, duration=0.25) for stack in stacks]
        error = apart(final(mf.Attention(*layers, weights=kind)), mean, cov)
        label = f"{name}, four layers at once"
        report.compare("written out", label, predicted=0, measured=error, tolerance=1e-10)


def check_gradient_flows(report: Report) -> None:
    """Energy against the integral of the squared speed, and metric speeds, h = 1e-4."""
    A, mean = NEGATIVE, np.array([0.6, 0.3])
    key = np.array([[1.0, 0.2], [0.1, 0.5]])
    cases = {
        "softmax, a = 0": (mf.Attention(A, None, -0.6 * A), np.zeros(2)),
        "Sinkhorn": (mf.Attention(A, None, -0.5 * A, weights=mf.Sinkhorn()), mean),
        "L2, Q = K": (mf.Attention(key, key, -0.7 * key.T @ key, 0.8, weights=mf.L2()), mean),
        "linear": (mf.Attention(A, None, -A, weights=mf.Linear()), mean),
    }
    nodes, weights = np.polynomial.legendre.leggauss(12)
    times = np.concatenate([[0.0], 0.2 * (nodes + 1), [0.4]])
    for name, (drift, start) in cases.items():
        model, law = mf.Transformer(drift), mf.Gaussian(start, COV)
        run = successful(mf.solve(model, law, (0, 0.4), t_eval=times, rtol=1e-12))
        energy = run.observables["interaction_energy"].to_numpy()
        speed = run.observables["speed"].to_numpy()
        gained = 0.2 * weights @ speed[1:-1] ** 2
        report.compare(
            "gradient flow: energy gained",
            name,
            predicted=gained,
            measured=energy[-1] - energy[0],
            tolerance=1e-9,
            relative=True,
        )
        report.compare(
            "metric speed",
            name,
            predicted=1,
            measured=metric_speed(model, law),
            tolerance=1e-6,
        )
    twisted = mf.Transformer(mf.Attention(GENERAL, None, np.array([[0.0, 1.0], [-1.0, 0.0]])))
    share = metric_speed(twisted, mf.Gaussian(np.zeros(2), COV))
    report.compare("metric speed", "no gradient", predicted=1, measured=share, tolerance=1e-6)
    points = twisted.drift.V @ COV @ GENERAL @ np.linalg.cholesky(COV)  # v = V S A L z
    slower = float(mf.solve(twisted, mf.Gaussian(np.zeros(2), COV), (0, 1)).observables.speed[0])
    share = slower / np.linalg.norm(points)
    report.compare("speed / |v|", "no gradient", predicted=0, measured=share, tolerance=0.99)


def metric_speed(model, law, t=0.2, h=1e-4) -> float:
    """The distance of laws h before and after t over 2 h, over the speed."""
    run = mf.solve(model, law, (0, t + h), t_eval=[t - h, t, t + h], rtol=1e-12)
    speed = float(run.observables["speed"][1])
    return float(mf.wasserstein(run[0], run[2], p=2)) / (2 * h) / speed


def check_small_variances(report: Report) -> None:
    """V = R diag(1, -1) R^T, t = 30, rtol 1e-11: the least variance and the rank."""
    signs, law = np.diag([1.0, -1.0]), mf.Gaussian(np.zeros(2), np.eye(2))
    R = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    for name, kind in (("L2", mf.L2()), ("Sinkhorn", mf.Sinkhorn())):
        along, turned = (
            final(mf.Attention(V=V, weights=kind), 30, law.mean, law.cov)
            for V in (signs, R @ signs @ R.T)
        )
        least, found = along.variances[1], turned.variances[1]
        options = {"tolerance": 1e-8, "relative": True}
        report.compare("least variance, turned", name, predicted=least, measured=found, **options)
        report.compare("rank", name, predicted=1, measured=turned.rank(), tolerance=0)


def check_refusals(report: Report) -> None:
    """Models under which the law does not stay normal."""
    refused = {
        "unnormalised": mf.Transformer(mf.Attention(weights=mf.Unnormalised())),
        "sigmoid": mf.Transformer(mf.Attention(weights=mf.Sigmoid())),
        "causal": mf.Transformer(mf.Attention(causal=True)),
        "on the sphere": mf.Transformer(mf.SA(1.0)),
        "multiplicative noise": mf.Transformer(
            mf.Attention(), 2.0, noise=mf.MultiplicativeIto(lambda x: 1 + x[..., 0] ** 2)
        ),
        "normalised": mf.Transformer(mf.Attention(), normalisation=mf.PreLN()),
        "L2 without an integral": mf.Transformer(mf.Attention(beta=-1.0, weights=mf.L2())),
    }
    for name, model in refused.items():
        try:
            mf.solve(model, mf.Gaussian(MEAN, COV), (0, 1))
            answer = 0
        except mf.MeanfieldError:
            answer = 1
        report.compare("refused", name, predicted=1, measured=answer, tolerance=0)


def main() -> int:
    command_line(__doc__, "the same: it is quick")
    report = Report(["what", "case"])
    check_references(report)
    check_written_out(report)
    check_changing(report)
    check_gradient_flows(report)
    check_small_variances(report)
    check_refusals(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
