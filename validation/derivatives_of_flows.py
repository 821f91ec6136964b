"""Claim: derivatives of runs of tokens, characteristics and Gaussians are exact.

Frozen steps: tangents of runs with adaptive steps against differences of order 4 of the same
steps, by parameters and in a direction, at outputs within steps and at the end: tokens under SA,
attention with matrices and softmax, sigmoid and Sinkhorn weights, in R^d, with radii, with a
reaction; characteristics; Gaussians under four kinds of weights.

Closed forms: two tokens under Kuramoto's drift; equiangular tokens, whose inner product follows
one equation; Ott and Antonsen's solution by characteristics; the covariance
(Sigma_0^-1 - t M)^-1.

Laws: a turned start has turned tangents, and the velocity is carried along.

Lyapunov exponents: 0 and -1 of consensus under SA, 0 and -(1 +- |m_2|)/2 of repelling
oscillators, the sum -41/3 of Lorenz' system.

    python validation/derivatives_of_flows.py    # 9 s

Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, successful

import meanfield as mf
from meanfield.derivatives.flows import DifferentiatedFlow
from meanfield.dynamics.motion import motion_for

FOURTH = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
STEP = 1e-3
RNG = np.random.default_rng(0)
Q, K, V = 0.4 * RNG.standard_normal((3, 2, 2, 4))
OUT = 0.4 * RNG.standard_normal((2, 4, 2))
ROOT = np.linalg.qr(RNG.standard_normal((3, 3)))[0] * np.array([1.0, 0.6, 0.3])


def points(n, d):
    x = RNG.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def tangential(x, size=0.3):
    e = RNG.standard_normal(x.shape)
    e -= (e * x).sum(axis=-1, keepdims=True) * x
    return size * e / np.linalg.norm(e)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def along_its_steps(report, name, make, start, direction, given, array):
    """Compare the tangents of an adaptive run with differences along its own steps."""
    times = np.linspace(0, 1.5, 7)
    run = successful(mf.solve(make(0.0), start(0.0), (0, 1.5), t_eval=times, tangents=given))
    worst = 0.0
    for key, found in run.tangents.items():
        many = {}
        for node in FOURTH:
            s = node * STEP
            model, state = make(s if key != direction else 0.0), start(s if key == direction else 0)
            flow = DifferentiatedFlow(motion_of(model, state), run.stored["journal"], state, [], [])
            many[node] = [
                np.asarray(getattr(linearised.motion.state_of(Y[0]), array))
                for linearised, Y in flow.stacks(run.t)
            ]
        for i, h in enumerate(found):
            expected = sum(w * many[node][i] for node, w in FOURTH.items()) / STEP
            error = np.abs(expected - h[array]).max() / max(1.0, np.abs(expected).max())
            worst = max(worst, float(error))
    report.compare(name, "tangents, frozen steps", predicted=0, measured=worst, tolerance=1e-8)


def motion_of(model, state):
    return motion_for(state, model)(model, state)


def tokens(report: Report) -> None:
    x, masses = points(8, 4), RNG.random(8)
    masses /= masses.sum()
    e = tangential(x)

    def start(s):
        return mf.Tokens(unit(x + s * e), masses)

    def attention(weights):
        return lambda s: mf.Transformer(mf.Attention(Q, K, V, 1.5 + s, weights=weights, output=OUT))

    cases = {
        "SA": lambda s: mf.Transformer(mf.SA(beta=2.0 + s)),
        "USA": lambda s: mf.Transformer(mf.USA(beta=1.0 + s)),
        "SA, Pre-LN": lambda s: mf.Transformer(mf.SA(beta=2.0 + s), normalisation=mf.PreLN()),
        "SA, reaction": lambda s: mf.Transformer(mf.SA(beta=2.0 + s), reaction=0.5),
        "softmax": attention(mf.Softmax()),
        "sigmoid": attention(mf.Sigmoid(0.3)),
        "Sinkhorn": attention(mf.Sinkhorn()),
    }
    for name, make in cases.items():
        along_its_steps(report, name, make, start, "direction_0", ["beta", e], "x")
    y, h = 0.5 * RNG.standard_normal((8, 4)), 0.1 * RNG.standard_normal((8, 4))

    def in_space(s):
        return mf.Tokens(y + s * h, masses, on_sphere=False)

    make = attention(mf.L2())
    along_its_steps(report, "L2 in R^4", make, in_space, "direction_0", ["beta", h], "x")


def other_states(report: Report) -> None:
    density = mf.Circle(16).density(lambda t: 1 + 0.4 * np.cos(t) + 0.2 * np.sin(2 * t))
    nodes = mf.Characteristics(density, nodes=512)

    def score(x):
        return x[:, 0] + 0.3 * x[:, 1] ** 2

    change = nodes.masses * (score(nodes.points) - nodes.masses @ score(nodes.points))
    along_its_steps(
        report, "characteristics, SA", lambda s: mf.Transformer(mf.SA(beta=2.0 + s)),
        lambda s: nodes.moved(nodes.coordinates, nodes.masses + s * change), "direction_0",
        ["beta", score], "coordinates",
    )  # fmt: skip
    cov, change = ROOT @ ROOT.T, RNG.standard_normal((3, 3))
    given = {"mean": np.array([0.1, 0.2, -0.3]), "cov": 0.02 * (change + change.T)}
    A, B, C = 0.4 * RNG.standard_normal((3, 2, 3, 3))
    for weights in (mf.Softmax(), mf.L2(), mf.Sinkhorn(), mf.Linear()):

        def make(s, weights=weights):
            return mf.Transformer(mf.Attention(A, B, C, 0.5 + s, weights=weights))

        def start(s):
            return mf.Gaussian(s * given["mean"], cov + s * given["cov"])

        name = f"Gaussian, {type(weights).__name__}"
        along_its_steps(report, name, make, start, "direction_0", ["beta", given], "cov")


def closed_forms(report: Report) -> None:
    a, t = 1.3, 2.0
    x = np.array([[1.0, 0.0], [np.cos(a), np.sin(a)]])
    e = np.array([[0.0, 0.0], [-np.sin(a), np.cos(a)]])
    model = mf.Transformer(mf.Kuramoto())
    run = successful(mf.solve(model, mf.Tokens(x), (0, t), tangents=[e], rtol=1e-12))
    h, y = run.tangents["direction_0"][-1].x, run.final.x
    angles = h[:, 1] * y[:, 0] - h[:, 0] * y[:, 1]
    left = np.tan(a / 2) * np.exp(-t)
    exact(report, "two tokens", "da/da_0", np.exp(-t) / np.cos(a / 2) ** 2 / (1 + left**2),
          angles[1] - angles[0])  # fmt: skip

    n, beta = 6, 2.0

    def rate(rho):
        other = (n - 1) * np.exp(beta * rho)
        return 2 * np.exp(beta * rho) * (1 - rho) * ((n - 1) * rho + 1) / (np.exp(beta) + other)

    start = mf.Equiangular(n=n, rho=0.1).to_tokens(n)
    model = mf.Transformer(mf.SA(beta=beta))
    velocity = motion_of(model, start).velocity(start.x[None], 0.0)[0]
    options = {"tangents": [velocity / rate(0.1)], "rtol": 1e-12}
    run = successful(mf.solve(model, start, (0, 3), t_eval=[3], **options))
    rho = run.observables.mean_cosine.values[-1]
    measured = run.tangents.observables.mean_cosine.values[0, -1]
    exact(report, "equiangular", "d rho/d rho_0", rate(rho) / rate(0.1), measured)

    r0 = 0.3
    poisson = mf.Circle(64).density(
        lambda theta: (1 - r0**2) / (1 - 2 * r0 * np.cos(theta) + r0**2)
    )

    def by_r0(x):
        inside = 1 - 2 * r0 * x[:, 0] + r0**2
        return -2 * r0 / (1 - r0**2) - (2 * r0 - 2 * x[:, 0]) / inside

    model, nodes = mf.Transformer(mf.Kuramoto()), mf.Characteristics(poisson)
    run = successful(mf.solve(model, nodes, (0, t), t_eval=[t], tangents=[by_r0], rtol=1e-12))
    odds = np.exp(t) * r0**2 / (1 - r0**2)
    r = np.sqrt(odds / (1 + odds))
    measured = run.tangents.observables.order_parameter.values[0, -1]
    exact(report, "Ott-Antonsen", "dr/dr_0", r * (1 - r**2) / (r0 * (1 - r0**2)), measured)

    A, cov, t = np.diag([1.0, 0.5, -0.8]), np.diag([0.9, 0.5, 0.3]), 0.4
    change, M = np.diag([0.1, -0.2, 0.3]), 2 * np.diag([1.0, 0.5, -0.8])
    model = mf.Transformer(mf.Attention(A, np.eye(3), np.eye(3), 0.7))
    start = mf.Gaussian(np.zeros(3), cov)
    options = {"tangents": ["beta", {"cov": change}], "rtol": 1e-12, "t_eval": [t]}
    run = successful(mf.solve(model, start, (0, t), **options))
    now, inner = np.linalg.inv(np.linalg.inv(cov) - t * 0.7 * M), np.linalg.inv(cov)
    for key, by in {"beta": t * M, "direction_0": inner @ change @ inner}.items():
        error = np.abs(run.tangents[key][-1].cov - now @ by @ now).max()
        exact(report, "covariance", f"dSigma by {key}", 0, error)


def exact(report, case, what, predicted, measured):
    report.compare(case, what, predicted=float(predicted), measured=float(measured), tolerance=1e-9)


def laws(report: Report) -> None:
    x, model = points(7, 4), mf.Transformer(mf.SA(beta=3.0))
    turn, e = np.linalg.qr(RNG.standard_normal((4, 4)))[0], tangential(x)
    here, there = (
        mf.solve(model, mf.Tokens(y), (0, 2), dt=0.1, tangents=["beta", h]).tangents
        for y, h in ((x, e), (x @ turn.T, e @ turn.T))
    )
    errors = [np.abs(there[key][-1].x - here[key][-1].x @ turn.T).max() for key in here]
    exact(report, "SA", "a turned start", 0, max(errors))
    velocity = motion_of(model, mf.Tokens(x)).velocity(x[None], 0.0)[0]
    run = mf.solve(model, mf.Tokens(x), (0, 2), tangents=[velocity], rtol=1e-12)
    moved = motion_of(model, run.final).velocity(run.final.x[None], 0.0)[0]
    error = np.abs(run.tangents["direction_0"][-1].x - moved).max()
    exact(report, "SA", "the velocity", 0, error)


class Lorenz(mf.Pointwise):
    """x' = 10 (y - x), y' = x (28 - z) - y, z' = x y - 8 z/3."""

    def __call__(self, x):
        a, b, c = np.moveaxis(x, -1, 0)
        return np.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], axis=-1)


def lyapunov(report: Report) -> None:
    x = unit(np.eye(3)[-1] + 0.2 * RNG.standard_normal((4, 3)))
    run = mf.solve(mf.Transformer(mf.SA(beta=2.0)), mf.Tokens(x), (0, 40), t_eval=[40], dt=0.2)
    error = np.abs(mf.lyapunov_exponents(run, 8).late - np.repeat([0.0, -1.0], [2, 6])).max()
    report.compare("consensus", "exponents", predicted=0, measured=error, tolerance=1e-6)
    angles = 2 * np.pi * np.arange(5) / 5 + 0.3 * RNG.standard_normal(5)
    circle = mf.Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=1))
    model = mf.Transformer(-1.0 * mf.Kuramoto())
    run = mf.solve(model, circle, (0, 100), t_eval=[100], dt=0.2)
    second = np.abs(((run.final.x @ np.array([1, 1j])) ** 2).mean())
    expected = np.array([0, 0, 0, -(1 - second) / 2, -(1 + second) / 2])
    error = np.abs(mf.lyapunov_exponents(run, 5).late - expected).max()
    report.compare("repelling", "exponents", predicted=0, measured=error, tolerance=1e-6)
    pair = mf.Tokens([[1.0, 2.0, 20.0], [-3.0, 1.0, 25.0]], on_sphere=False)
    run = mf.solve(mf.Transformer(Lorenz()), pair, (0, 10), t_eval=[10], dt=0.01)
    total = mf.lyapunov_exponents(run, 6).history[-1].sum()
    report.compare("Lorenz", "sum of exponents", predicted=-82 / 3, measured=float(total),
                   tolerance=1e-8)  # fmt: skip


def main() -> int:
    report = Report(["case", "what"])
    tokens(report)
    other_states(report)
    closed_forms(report)
    laws(report)
    lyapunov(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
