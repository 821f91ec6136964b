"""Claim: Gaussians follow attention in R^d exactly, and blow up when they must.

Attention with softmax, L2, Sinkhorn or linear weights has velocities that are affine on N(a, S):
the law stays normal. With A = beta K^T Q,

1. Reference. Means and covariances at t = 1 agree with twelve printed digits of an independent
   program; with S' = V S A S + S A^T S V^T and its likes integrated as they stand, for linear
   attention, for two heads with output projections, and for layers that change (PerLayer).
2. Closed form. For V = 1 and a symmetric A, S(t) = (S_0^(-1) - 2 t A)^(-1), which blows up at
   t = 1 / the largest eigenvalue of 2 L^T A L, L L^T = S_0; the rank of its limit is d - rank A,
   and if A commutes with S_0, a(t) = e^t S(t)^(1/2) S_0^(-1/2) a_0.
3. Tokens. The nodes of a Gauss-Hermite rule stay one of the law that moves; n random tokens have
   its mean and covariance but for their sampling error, quasi-random ones much more closely.
4. Gradient flows. Where v = grad dE/dmu, E grows by int |v|^2 dmu dt, and |v| is the metric speed
   in the distance of Bures and Wasserstein; where v is no gradient it exceeds that speed.

    python validation/gaussians.py [--quick]    # 14 s, 5 s quick
"""

import argparse
import sys

import numpy as np
from _report import Report, successful
from scipy.integrate import solve_ivp
from scipy.stats.qmc import MultivariateNormalQMC

import meanfield as mf

MEAN, COV = np.array([1.0, -0.5]), np.array([[1.0, 0.3], [0.3, 0.5]])
V = np.array([[0.8, 0.3], [-0.2, 0.6]])
Q = np.array([[0.7, 0.2], [0.1, 0.9]])
K = np.array([[0.5, -0.3], [0.4, 0.8]])
NEGATIVE = -np.array([[1.0, 0.2], [0.2, 0.5]])
GENERAL = np.array([[-1.0, 0.4], [0.1, -0.7]])
KINDS = {
    "softmax": mf.Softmax(),
    "L2": mf.L2(),
    "Sinkhorn": mf.Sinkhorn(),
    "linear": mf.Linear(),
}
ERRORS = 4.5


def final(drift, end=1.0, mean=MEAN, cov=COV, rtol=1e-11) -> mf.Gaussian:
    """The law at time `end`."""
    model = mf.Transformer(drift)
    return successful(
        mf.solve(model, mf.Gaussian(mean, cov), (0, end), t_eval=[end], rtol=rtol)
    ).final


def apart(law: mf.Gaussian, mean, cov) -> float:
    """The largest difference of an entry of mean or covariance."""
    return float(max(np.abs(law.mean - mean).max(), np.abs(law.cov - cov).max()))


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
    layers = mf.PerLayer([1.0, -0.4, 0.2, 0.7], duration=0.25)

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
    mean, cov = MEAN, COV
    for beta in layers.values:  # layer by layer, where nothing jumps
        law = final(mf.Attention(Q, K, V, beta), 0.25, mean, cov)
        mean, cov = law.mean, law.cov
    error = apart(final(mf.Attention(Q, K, V, layers)), mean, cov)
    report.compare(
        "written out", "four layers at once", predicted=0, measured=error, tolerance=1e-10
    )
    law = final(mf.Attention(Q, K, V, lambda t: np.cos(3 * t)))
    mean, cov = integrated(
        lambda t, a, S: (
            V @ a + np.cos(3 * t) * V @ S @ A @ a,
            sandwich(np.cos(3 * t) * V @ S @ A, S),
        )
    )
    error = apart(law, mean, cov)
    report.compare("written out", "beta = cos 3t", predicted=0, measured=error, tolerance=1e-10)


def random_law(rng, d: int) -> mf.Gaussian:
    """A covariance G G^T / d."""
    G = rng.standard_normal((d, d))
    return mf.Gaussian(np.zeros(d), G @ G.T / d + 0.1 * np.eye(d))


def check_closed_form(report: Report, rng) -> None:
    """Covariances, times of blow-up at the default rtol, ranks of limits, one mean."""
    for d in (1, 2, 3, 5):
        G, worst, late = rng.standard_normal((d, d)), 0.0, 0.0
        for A in (-G @ G.T / d, (G + G.T) / np.sqrt(2), G @ G.T / d):
            law, model = random_law(rng, d), mf.Transformer(mf.Attention(A))
            closed = mf.ClosedCovariance(model, law)
            end = 0.9 * closed.blow_up_time if np.isfinite(closed.blow_up_time) else 5.0
            cov = final(model.drift, end, law.mean, law.cov).cov
            error = np.abs(cov - closed.at(end)).max() / np.abs(cov).max()
            worst = max(worst, error)
            if np.isfinite(closed.blow_up_time):
                run = mf.solve(model, law, (0, 10 * closed.blow_up_time))
                assert run.status == "blow-up", run
                late = max(late, abs(run.stats["blow_up_time"] / closed.blow_up_time - 1))
        report.compare("closed form", f"d = {d}", predicted=0, measured=worst, tolerance=1e-9)
        report.compare("blow-up time", f"d = {d}", predicted=0, measured=late, tolerance=1e-8)
    law = mf.Gaussian([0.4, -1.0], np.diag([0.7, 1.6]))
    cov = np.diag(1 / (1 / np.diag(law.cov) + 2 * 1.5 * np.array([1.0, 0.4])))
    mean = np.exp(1.5) * np.sqrt(np.diag(cov) / np.diag(law.cov)) * law.mean
    error = apart(final(mf.Attention(-np.diag([1.0, 0.4])), 1.5, law.mean, law.cov), mean, cov)
    report.compare(
        "closed form", "mean, A and S commute", predicted=0, measured=error, tolerance=1e-9
    )


def hermite_tokens(law: mf.Gaussian, nodes: int) -> mf.Tokens:
    """A product rule for a law in the plane."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
    masses = np.outer(weights, weights).ravel()
    return mf.Tokens(law.mean + grid @ law.root, masses / masses.sum(), on_sphere=False)


def moments(tokens: mf.Tokens):
    """Mean and covariance of tokens."""
    mean = tokens.masses @ tokens.x
    centred = tokens.x - mean
    return mean, (tokens.masses[:, None] * centred).T @ centred


def drift_of(kind: str) -> mf.Attention:
    return mf.Attention(Q, K, -0.8 * V, 0.6, weights=KINDS[kind])


def check_tokens(report: Report, n: int, replicas: int, rng) -> None:
    """Quadrature rules, random and quasi-random tokens under the same drift, up to t = 0.5."""
    start, end = mf.Gaussian(MEAN, COV), 0.5
    for kind in KINDS:
        model, law = mf.Transformer(drift_of(kind)), final(drift_of(kind), end)

        def moved(tokens, model=model):
            return mf.solve(model, tokens, (0, end), t_eval=[end], rtol=1e-11).final

        count = min(n, 128) if kind == "Sinkhorn" else n  # its iteration takes minutes for more
        rule = moved(hermite_tokens(start, 16))
        error = apart(law, *moments(rule))
        report.compare("Gauss-Hermite tokens", kind, predicted=0, measured=error, tolerance=1e-11)
        samples = [moments(moved(start.sample(count, rng=rng))) for _ in range(replicas)]
        means, covs = (np.array(part) for part in zip(*samples, strict=True))
        for name, found, expected in (("mean", means, law.mean), ("covariance", covs, law.cov)):
            bound = ERRORS * found.std(axis=0, ddof=1) / np.sqrt(replicas) + 12 / count
            miss = (np.abs(found.mean(axis=0) - expected) / bound).max()
            report.compare(
                f"{replicas} x {count} random tokens",
                f"{kind}, {name} / bound",
                predicted=0,
                measured=miss,
                tolerance=1,
            )
        sobol = MultivariateNormalQMC(MEAN, COV, rng=np.random.default_rng(5)).random(count)
        closer = apart(law, *moments(moved(mf.Tokens(sobol, on_sphere=False))))
        usual = np.mean([apart(law, *sample) for sample in samples])
        report.compare(
            f"{count} quasi-random tokens",
            f"{kind}, error / random's",
            predicted=0,
            measured=closer / usual,
            tolerance=0.25,
        )


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
            "gradient flow: metric speed",
            name,
            predicted=1,
            measured=metric_speed(model, law),
            tolerance=1e-6,
        )
    twisted = mf.Transformer(mf.Attention(GENERAL, None, np.array([[0.0, 1.0], [-1.0, 0.0]])))
    share = metric_speed(twisted, mf.Gaussian(np.zeros(2), COV))
    report.compare(
        "no gradient: metric speed < |v|", "softmax", predicted=0, measured=share, tolerance=0.99
    )


def metric_speed(model, law, t=0.2, h=1e-4) -> float:
    """The Bures-Wasserstein speed at t over (int |v|^2 dmu)^(1/2)."""
    run = mf.solve(model, law, (0, t + h), t_eval=[t - h, t, t + h], rtol=1e-12)
    speed = float(run.observables["speed"][1])
    return float(mf.wasserstein(run[0], run[2], p=2)) / (2 * h) / speed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer tokens")
    quick = parser.parse_args().quick
    report, rng = Report(["what", "case"]), np.random.default_rng(12)
    check_references(report)
    check_written_out(report)
    check_closed_form(report, rng)
    check_gradient_flows(report)
    check_tokens(report, 256 if quick else 1024, 8 if quick else 12, rng)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
