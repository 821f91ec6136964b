"""Runs of characteristics under attention with matrices, and under reactions."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import meanfield as mf

CIRCLE = mf.Circle(4).density(lambda x: 1 + 0.5 * np.cos(x - 1) + 0.2 * np.sin(2 * x))
LUMPS = mf.Sphere(4).density(lambda x, y, z: 1 + 0.4 * z + 0.3 * x * y - 0.2 * y)
CIRCLE_NODES = mf.Characteristics(CIRCLE, nodes=768)
SPHERE_NODES = mf.Characteristics(LUMPS, nodes=2600)
RNG = np.random.default_rng(4)
Q2, K2, V2 = RNG.standard_normal((3, 2, 2)) * 0.7
Q3, K3, V3 = RNG.standard_normal((3, 3, 3)) * 0.5
SYMMETRIC = np.array([[0.8, 0.3], [0.3, -0.4]])


def final(model, start, t=1.0, **options):
    """The state at a time."""
    return mf.solve(model, start, (0, t), **{"t_eval": [t], "rtol": 1e-11, **options}).final


# Against tokens, and against scipy ---------------------------------------------------------


MODELS = {
    "softmax": mf.Transformer(mf.Attention(Q2, K2, V2, 2.0)),
    "two heads, L2": mf.Transformer(
        mf.Attention(np.stack([Q2, V2]), np.stack([K2, Q2]), np.stack([V2, K2]), weights=mf.L2())
    ),
    "layers": mf.Transformer(mf.Attention(mf.PerLayer([Q2, K2], 0.4), K2, V2)),
    "in time": mf.Transformer(mf.Attention(Q2, K2, V2, lambda t: 1 + t)),
    "feed-forward": mf.Transformer(mf.SA(1.0), feedforward=lambda x: 0.3 * np.sin(x @ V2)),
    "nGPT": mf.Transformer(mf.Attention(Q2, K2), normalisation=mf.NGPT(lambda t: 1 / (1 + t))),
}


@pytest.mark.repeats
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_nodes_are_tokens_with_masses(model):
    """The same points and masses, by steps of their own. Measured: 1e-12."""
    start = CIRCLE_NODES
    tokens = mf.Tokens(start.points, start.masses / start.masses.sum())
    nodes, tokens = final(model, start), final(model, tokens)
    np.testing.assert_allclose(nodes.points, tokens.x, rtol=0, atol=2e-10)


def test_nodes_on_s2_are_tokens_with_masses():
    start, model = SPHERE_NODES, mf.Transformer(mf.Attention(Q3, K3, V3))
    tokens = mf.Tokens(start.points, start.masses / start.masses.sum())
    nodes, tokens = (final(model, s, 0.3, rtol=1e-9) for s in (start, tokens))
    np.testing.assert_allclose(nodes.points, tokens.x, rtol=0, atol=1e-8)


def dense(drift, alpha=0.0, n=256):
    """Moments 1 to 8 at t = 1 by scipy, on nodes that are equally spaced at first, in angles."""
    angles = 2 * np.pi * np.arange(n) / n
    masses = CIRCLE.at(np.stack([np.cos(angles), np.sin(angles)], axis=1)) / n

    def change(_t, y):
        theta, m = y[:n], masses * np.exp(y[n:])
        x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
        q, k, v = (x @ np.atleast_2d(M).T for M in (drift.Q, drift.K, drift.V))
        weights = m * np.exp(drift.beta * q @ k.T)
        if drift.weights.normalised:
            weights /= weights.sum(axis=1, keepdims=True)
        A = weights @ v
        rates = x[:, 0] * A[:, 1] - x[:, 1] * A[:, 0]
        if not alpha:
            return np.concatenate([rates, np.zeros(n)])
        c = (drift.V / (drift.K.T @ drift.Q))[0, 0]
        phi = c * weights.sum(axis=1) / drift.beta
        return np.concatenate([rates, alpha * (phi - m @ phi)])

    start = np.concatenate([angles, np.zeros(n)])
    end = solve_ivp(change, (0, 1), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    return np.exp(-1j * np.outer(np.arange(9), end[:n])) @ (masses * np.exp(end[n:]))


def test_moments_are_those_of_another_quadrature():
    """Measured: 1e-13."""
    drift = mf.Attention(Q2, K2, V2, 2.0)
    found = final(mf.Transformer(drift), CIRCLE_NODES).coefficients(8)
    np.testing.assert_allclose(found, dense(drift), rtol=0, atol=1e-11)


@pytest.mark.parametrize("alpha", [0.8, -0.8])
def test_moments_under_a_reaction_are_those_of_another_quadrature(alpha):
    """Measured: 1e-13."""
    drift = mf.Attention(np.eye(2), SYMMETRIC, 0.5 * SYMMETRIC, 1.2, weights=mf.Unnormalised())
    found = final(mf.Transformer(drift, reaction=alpha), CIRCLE_NODES).coefficients(8)
    np.testing.assert_allclose(found, dense(drift, alpha), rtol=0, atol=1e-11)


@pytest.mark.repeats
@pytest.mark.parametrize("start", [CIRCLE_NODES, SPHERE_NODES], ids=["circle", "sphere"])
@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_multiples_of_the_identity_are_sa(start, beta):
    """Coordinates agree to 1e-12 after the same time; on S^2 harmonics are summed to 1e-12."""
    t = 1.0 if start is CIRCLE_NODES else 0.25
    by_pairs, by_harmonics = (
        final(mf.Transformer(drift), start, t) for drift in (mf.Attention(beta=beta), mf.SA(beta))
    )
    np.testing.assert_allclose(by_pairs.points, by_harmonics.points, rtol=0, atol=1e-12)


@pytest.mark.long
def test_fixed_steps_have_order_eight_though_parameters_change():
    """Two-sided: 8 +- 0.4."""
    model = mf.Transformer(mf.Attention(Q2, K2, V2, lambda t: 2 + np.sin(2 * t)))
    start = mf.Characteristics(CIRCLE, nodes=512)
    exact = final(model, start, 2.0, dt=2.0 / 40).coordinates
    errors = [
        np.abs(final(model, start, 2.0, dt=2.0 / steps).coordinates - exact).max()
        for steps in (6, 12)
    ]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(8, abs=0.4)


# Symmetry ----------------------------------------------------------------------------------


def test_on_the_circle_the_run_turns_with_density_and_matrices():
    """Moments, as nodes are placed by the maximum on a grid. Measured: 1e-15."""
    angle = 2.0
    R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    model, turned = (
        mf.Transformer(mf.Attention(Q2 @ T.T, K2 @ T.T, T @ V2 @ T.T)) for T in (np.eye(2), R)
    )
    one = final(model, CIRCLE_NODES)
    other = final(turned, mf.Characteristics(CIRCLE.rotate(angle), nodes=768))
    phases = np.exp(-1j * angle * np.arange(9))
    np.testing.assert_allclose(
        other.coefficients(8), phases * one.coefficients(8), rtol=0, atol=1e-13
    )


def test_on_s2_moments_turn_with_density_and_matrices():
    """The nodes are at other longitudes. Measured: 1e-10, the error of the quadrature."""
    R = Rotation.random(random_state=0).as_matrix()
    model, turned = (
        mf.Transformer(mf.Attention(Q3 @ T.T, K3 @ T.T, T @ V3 @ T.T)) for T in (np.eye(3), R)
    )
    other = mf.Characteristics(LUMPS.rotate(R), nodes=2600)
    means = [
        final(*run, 0.3, rtol=1e-9).expect(lambda x: x)
        for run in ((model, SPHERE_NODES), (turned, other))
    ]
    np.testing.assert_allclose(means[1], R @ means[0], rtol=0, atol=1e-8)


# Collapse ----------------------------------------------------------------------------------


COLLAPSES = {  # min(b, a/2) of b = l k(w, w)/Z(w), a = l k(-w, w)/Z(-w), Vw = l w
    "softmax": (mf.Softmax(), 0.4, 1.5 / 2),
    "L2": (mf.L2(), 0.2, 1.5 / 2),
    "unnormalised": (mf.Unnormalised(), 0.3, 1.5 * np.exp(-0.3) / 2),
    "attracted by what is far": (mf.Unnormalised(), -0.8, 1.5 * np.exp(-0.8)),
}


@pytest.mark.repeats
@pytest.mark.parametrize(("weights", "beta", "rate"), COLLAPSES.values(), ids=COLLAPSES)
def test_w2_decays_at_the_rate_of_the_linearisation(weights, beta, rate):
    """The density is symmetric about w = e_1, V e_1 = 1.5 e_1; see docs/theory/collapse.md."""
    start = mf.Characteristics(mf.Circle(4).density(lambda x: 1 + 0.5 * np.cos(x)), nodes=512)
    drift = mf.Attention(np.diag([1.0, 0.5]), None, np.diag([1.5, 0.7]), beta, weights=weights)
    times = [7.0 / rate, 10.0 / rate]
    run = mf.solve(mf.Transformer(drift), start, (0, times[1]), t_eval=times)
    w2 = [state.w2_to_dirac() for state in run]
    assert run.resolved and w2[0] < 1e-2
    assert np.log(w2[0] / w2[1]) / (times[1] - times[0]) == pytest.approx(rate, rel=2e-3)
    np.testing.assert_allclose(run.final.mean_direction, [1, 0], rtol=0, atol=1e-12)


# Reactions ---------------------------------------------------------------------------------


REACTIONS = {
    "circle": (CIRCLE_NODES, mf.USA(1.5)),
    "softmax": (CIRCLE_NODES, mf.SA(2.0)),
    "attention": (
        CIRCLE_NODES,
        mf.Attention(np.eye(2), SYMMETRIC, SYMMETRIC, weights=mf.Unnormalised()),
    ),
    "axisymmetric": (mf.Characteristics(mf.Zonal(5, 4).zonal([1, 0.5, 0.2])), mf.Kuramoto()),
    "sphere": (SPHERE_NODES, mf.USA(1.0)),
    "zeros": (
        mf.Characteristics(mf.Circle(4).density(lambda x: 1 + np.cos(x)), nodes=512),
        mf.USA(1.0),
    ),
}
every_reaction = pytest.mark.parametrize(("start", "drift"), REACTIONS.values(), ids=REACTIONS)


@pytest.mark.repeats
@every_reaction
@pytest.mark.parametrize("alpha", [1.5, -1.5])
def test_a_reaction_keeps_the_mass(start, drift, alpha):
    """To 1e-13, while single masses change by factors."""
    model = mf.Transformer(drift, reaction=alpha)
    run = mf.solve(model, start, (0, 1), t_eval=np.linspace(0, 1, 5))
    np.testing.assert_array_equal(run[0].masses, start.masses)
    for state in run:
        assert abs(state.mass - start.mass) < 1e-13
    changed = run.final.masses[start.masses > 0] / start.masses[start.masses > 0]
    assert changed.max() / changed.min() > 1.3 and run.resolved


@pytest.mark.repeats
@pytest.mark.parametrize("name", ["circle", "axisymmetric", "attention"])
def test_under_a_reaction_the_energy_grows_by_both(name):
    """dE/dt = int |v|^2 + alpha |Phi - int Phi dmu|^2 dmu, by Simpson's rule."""
    start, drift = REACTIONS[name]
    model, times = mf.Transformer(drift, reaction=0.8), np.linspace(0, 0.3, 13)
    table = mf.solve(model, start, (0, 0.3), t_eval=times, rtol=1e-10).observables
    energy, rate = table.interaction_energy.values, table.dissipation.values
    gained = (rate[:-2:2] + 4 * rate[1:-1:2] + rate[2::2]) * 0.025 / 3
    np.testing.assert_allclose(energy[2::2] - energy[:-2:2], gained, rtol=1e-6)
    assert (rate > table.speed.values**2 * 1.01).all()


def test_a_reaction_alone_gathers_at_the_cluster_of_most_potential():
    """Masses move from one cluster to the other: clusters and W2 use those of the moment."""
    density = mf.Circle(64).density(lambda x: np.exp(8 * np.cos(2 * x)) * (1 + 0.2 * np.cos(x)))
    start = mf.Characteristics(density, nodes=512)
    run = mf.solve(mf.Transformer(mf.USA(2.0), reaction=2.0), start, (0, 3), t_eval=[0.0, 3.0])
    before, after = (state.clusters(radius=0.5) for state in run)
    assert [len(before), len(after)] == [2, 1]
    assert before[0].mass == pytest.approx(0.6, abs=0.02) and after[0].mass > 0.999
    np.testing.assert_allclose(after[0].point, [1, 0], atol=1e-8)
    assert run.final.w2_to_dirac() < 0.05 < run[0].w2_to_dirac()


def test_tokens_of_a_gradient_have_a_reaction_too():
    """Attention with V = K^T Q = 1 and unnormalised weights is USA."""
    tokens = mf.Tokens.uniform(40, 3, rng=0)
    one, other = (
        final(mf.Transformer(drift, reaction=0.5), tokens, rtol=1e-10)
        for drift in (mf.Attention(beta=1.5, weights=mf.Unnormalised()), mf.USA(1.5))
    )
    np.testing.assert_allclose(one.masses, other.masses, rtol=1e-12)
    np.testing.assert_allclose(one.x, other.x, rtol=0, atol=1e-12)


# Files and checkpoints ---------------------------------------------------------------------


KEPT = {
    "layers": (CIRCLE_NODES, mf.Transformer(mf.Attention(mf.PerLayer([Q2, K2], 0.4), K2, V2))),
    "reaction": (CIRCLE_NODES, mf.Transformer(mf.USA(1.5), reaction=1.0)),
    "attention, reaction": (
        mf.Characteristics(CIRCLE, nodes=512),
        mf.Transformer(REACTIONS["attention"][1], reaction=-1.0),
    ),
    "axisymmetric, reaction": (
        mf.Characteristics(mf.Zonal(4, 2).zonal([1, 0.5])),
        mf.Transformer(mf.SA(1.0), reaction=1.0),
    ),
}
every_kept = pytest.mark.parametrize(("start", "model"), KEPT.values(), ids=KEPT)


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        assert a.coordinates.tobytes() == b.coordinates.tobytes()
        assert a.masses.tobytes() == b.masses.tobytes()


@pytest.mark.bits
@every_kept
def test_a_resumed_run_is_the_unbroken_one(tmp_path, start, model):
    options = {"t_eval": [0.0, 0.3, 1.0], "checkpoint": tmp_path / "run.ckpt"}
    whole = mf.solve(model, start, (0, 1), t_eval=options["t_eval"])
    part, steps = mf.solve(model, start, (0, 1), max_steps=1, **options), 1
    while part.status == "max_steps":
        steps += 2
        part = mf.solve(model, start, (0, 1), max_steps=steps, resume=True, **options)
    assert_same(part, whole)
    assert part.stats["steps"] == whole.stats["steps"] and steps > 4


@pytest.mark.bits
@every_kept
def test_a_result_comes_back_bit_for_bit(tmp_path, start, model):
    run = mf.solve(model, start, (0, 1), t_eval=[0.0, 0.5, 1.0])
    again = mf.load(run.save(tmp_path / "run.nc"))
    assert_same(again, run)
    assert again.model == run.model
    dims = ("t", "node") if model.reaction else ("node",)
    assert run.to_xarray().masses.dims == dims
    assert "kernel_degree" in run.stats or run.stats["engine"].startswith("attention")


@pytest.mark.parametrize("name", ["reaction", "layers"])
def test_runs_are_plotted(name):
    from matplotlib import pyplot

    start, model = KEPT[name]
    run = mf.solve(model, start, (0, 1), t_eval=np.linspace(0, 1, 6))
    for kind in (None, "trajectories", "distribution", "polar"):
        figure = run.plot() if kind is None else run.plot(kind)
        assert figure is not None
    pyplot.close("all")
