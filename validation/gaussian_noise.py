"""Claim: Gaussians under attention, affine maps and noise have the mean and covariance predicted.

    a' = sum_h V_h m_h + M a + c,    S' = B S + S B^T + (2/kappa) N

with N = 1 (`Isotropic`) or a matrix (`Anisotropic`).

1. Formulas for m and B without roots of S, integrated by SciPy, give the same under softmax, L2,
   Sinkhorn and linear weights, from a regular law and from a point.
2. The linear case rests at the solution of M S + S M^T + (2/kappa) N = 0. Noise in the velocity
   alone spreads a point in positions too, by the integral of Van Loan.
3. With noise S' = p S^2 + q on the line: a blow-up at (pi/2 - atan(S_0 (p/q)^(1/2))) / (p q)^(1/2).
4. Tokens of R^d have the mean and covariance of the law within 4.5 standard errors over replicas
   (steps of 0.02, whose weak error is below a tenth of that).

    python validation/gaussian_noise.py [--quick]    # 12 s, 5 s quick
"""

import sys

import numpy as np
from _gaussian_laws import COV, KINDS, MEAN, K, Q, V, apart
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp
from scipy.linalg import expm, solve_continuous_lyapunov, sqrtm

import meanfield as mf

ONE, KAPPA, BETA = np.eye(2), 2.0, 0.6
M, C = np.array([[-1.0, 0.5], [-0.3, -0.7]]), np.array([0.2, -0.1])
NOISES = {"isotropic": mf.Isotropic(), "matrix": mf.Anisotropic([[1.0, 0.3], [0.3, 0.5]])}
STARTS = {"a law": mf.Gaussian(MEAN, COV), "a point": mf.Gaussian(MEAN, np.zeros((2, 2)))}


def model(weights, noise) -> mf.Transformer:
    """One head, a field as a part of the drift, and a feed-forward map."""
    drift = mf.Attention(Q, K, -0.8 * V, BETA, weights=weights) + 0.5 * mf.Field(lambda x: x @ M.T)
    return mf.Transformer(drift, KAPPA, noise=noise, feedforward=lambda x: C - x)


def seen(kind: str, S, a):
    """m and G with E[y | x] = m + G (x - a)."""
    A, moment = BETA * K.T @ Q, S + np.outer(a, a)
    if kind == "softmax":
        return a + S @ A @ a, S @ A
    if kind == "linear":
        return moment @ A @ a, moment @ A
    if kind == "L2":
        pull = 2 * BETA * S @ np.linalg.inv(ONE + 2 * BETA * K.T @ K @ S) @ K.T
        return a + pull @ (Q - K) @ a, pull @ Q
    return a, 2 * S @ A @ np.linalg.inv(ONE + sqrtm(ONE + 4 * S @ A.T @ S @ A)).real


def check_equation(report: Report) -> None:
    """The covariance equation, integrated as it stands."""
    for kind, weights in KINDS.items():
        for name, noise in NOISES.items():
            N = getattr(noise, "sigma", ONE)

            def rates(_t, y, kind=kind, N=N):
                a, S = y[:2], y[2:].reshape(2, 2)
                m, G = seen(kind, S, a)
                B = -0.8 * V @ G + 0.5 * M - ONE
                moved = -0.8 * V @ m + (0.5 * M - ONE) @ a + C
                return np.append(moved, B @ S + S @ B.T + 2 / KAPPA * N)

            for start, law in STARTS.items():
                first = np.append(law.mean, law.cov)
                exact = solve_ivp(rates, (0, 1), first, method="DOP853", rtol=1e-12, atol=1e-13)
                found = successful(mf.solve(model(weights, noise), law, (0, 1), rtol=1e-11)).final
                error = apart(found, exact.y[:2, -1], exact.y[2:, -1].reshape(2, 2))
                label = f"{kind}, {name}, from {start}"
                report.compare("equation", label, predicted=0, measured=error, tolerance=1e-10)


def check_linear(report: Report) -> None:
    """The law at rest, and noise in one direction."""
    for name, noise in NOISES.items():
        N = getattr(noise, "sigma", ONE)
        cov = solve_continuous_lyapunov(M, -2 / KAPPA * N)
        linear = mf.Transformer(mf.Field(lambda x: x @ M.T + C), KAPPA, noise=noise)
        for start, law in STARTS.items():
            final = successful(mf.solve(linear, law, (0, 60), rtol=1e-11)).final
            error = apart(final, -np.linalg.solve(M, C), cov)
            label = f"{name}, from {start}"
            report.compare("at rest", label, predicted=0, measured=error, tolerance=1e-10)
    B, noise = np.array([[0.0, 1.0], [-1.0, -0.7]]), np.diag([0.0, 1.0])
    langevin = mf.Transformer(mf.Field(lambda x: x @ B.T), KAPPA, noise=mf.Anisotropic(noise))
    flow = expm(np.block([[-B, 2 / KAPPA * noise], [np.zeros((2, 2)), B.T]]))
    final = successful(mf.solve(langevin, STARTS["a point"], (0, 1), rtol=1e-11)).final
    error = apart(final, expm(B) @ MEAN, flow[2:, 2:].T @ flow[:2, 2:])
    report.compare("Langevin", "from a point", predicted=0, measured=error, tolerance=1e-10)


def check_blow_up(report: Report) -> None:
    """Attention on the line whose covariance blows up beside the noise."""
    for start in (0.0, 0.3, 2.0):
        growing, p, q = mf.Transformer(mf.Attention(beta=1.5), 4.0), 3.0, 0.5
        run = mf.solve(growing, mf.Gaussian([0.0], [[start]]), (0, 5))
        T = (np.pi / 2 - np.arctan(start * np.sqrt(p / q))) / np.sqrt(p * q)
        late = (run.stats["blow_up_time"] or np.inf) / T - 1
        report.compare("blow-up", f"S_0 = {start}", predicted=0, measured=late, tolerance=1e-7)


def check_tokens(report: Report, replicas: int) -> None:
    """Means and second moments about the mean of the law, over replicas of 128 tokens."""
    for name, noise in NOISES.items():
        moving = model(KINDS["softmax"], noise)
        law = mf.solve(moving, STARTS["a law"], (0, 0.5), rtol=1e-9).final
        x = np.stack([STARTS["a law"].sample(128, rng=seed).x for seed in range(replicas)])
        clouds = mf.solve(moving, mf.Tokens(x, on_sphere=False), (0, 0.5), dt=0.02, rng=1).final.x
        off = clouds - law.mean
        moments = np.einsum("rni,rnj->rij", off, off) / 128 - law.cov
        for what, values in (("mean", off.mean(axis=1)), ("covariance", moments)):
            error = values.std(axis=0, ddof=1) / np.sqrt(replicas)
            worst = float(np.abs(values.mean(axis=0) / error).max())
            label = f"{name}, {what}, in standard errors"
            report.compare("tokens", label, predicted=0, measured=worst, tolerance=4.5)


def main() -> int:
    quick = command_line(__doc__, "fewer replicas of tokens").quick
    report = Report(["what", "case"])
    check_equation(report)
    check_linear(report)
    check_blow_up(report)
    check_tokens(report, 64 if quick else 256)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
