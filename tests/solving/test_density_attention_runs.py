"""Runs of densities under attention with matrices: against quadratures, laws, and resumed ones."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.dynamics.density import DensityMotion
from meanfield.engines.attention import AttentionSums
from meanfield.models.weights import L2, Linear, Sigmoid, Sinkhorn, Softmax, Unnormalised

QUIET = {"progress": False}
RNG = np.random.default_rng(11)
Q, K, V = RNG.standard_normal((3, 2, 2, 2)) * 0.7
START = mf.Circle(32).density(lambda t: 1 + 0.5 * np.cos(t - 0.3) + 0.2 * np.cos(2 * t + 1))


def wavy(wave):
    """A field along the circle, sin(wave theta) / 2."""

    def field(x):
        speed = 0.5 * np.sin(wave * np.arctan2(x[..., 1], x[..., 0]))
        return speed[..., None] * np.stack([-x[..., 1], x[..., 0]], axis=-1)

    return mf.Field(field)


def moments_of_tokens(drift, mu, t_end, n, forward=None):
    """Moments 1 to 3 at t_end of n quadrature tokens, integrated by scipy."""
    angles = 2 * np.pi * np.arange(n) / n
    masses = mu.at(np.stack([np.cos(angles), np.sin(angles)], axis=1)) / n
    sums = AttentionSums(drift)

    def velocity(t, theta):
        x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
        A = sums.attention(t, x[None], masses[None])[0]
        if forward is not None:
            A = A + forward(x)
        return A[:, 1] * x[:, 0] - A[:, 0] * x[:, 1]

    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
    theta = solve_ivp(velocity, (0, t_end), angles, **options).y[:, -1]
    return np.exp(1j * np.outer([1, 2, 3], theta)) @ masses


KINDS = [Softmax(), Unnormalised(), L2(), Sigmoid(0.3), Linear(), Sinkhorn(1e-13)]


@pytest.mark.repeats
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("weights", KINDS, ids=lambda w: type(w).__name__)
def test_without_noise_moments_are_those_of_a_quadrature(weights, heads):
    drift = mf.Attention(Q[:heads], K[:heads], V[:heads], 1.2, weights=weights)
    forward = mf.FeedForward(Q[0], 0.3 * K[1], activation=np.tanh)
    t_end, n = (0.2, 96) if isinstance(weights, Sinkhorn) else (0.5, 160)
    options = {"rtol": 1e-10 if isinstance(weights, Sinkhorn) else 1e-11, **QUIET}
    run = mf.solve(mf.Transformer(drift, feedforward=forward), START, (0, t_end), **options)
    wanted = moments_of_tokens(drift, START, t_end, n, forward)
    found = np.array([run[-1].moment(k) for k in (1, 2, 3)])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9)
    assert abs(run[-1].mass - 1) < 1e-13


@pytest.mark.parametrize("wave", [3, 20, 60])
def test_velocities_of_more_degrees_than_the_density_are_resolved(wave):
    """d theta/dt = sin(k theta)/2 moves tan(k theta/2) as e^(k t/2), from the uniform density."""
    t = 1.0 / wave
    run = mf.solve(mf.Transformer(wavy(wave)), mf.Circle(1).uniform(), (0, t), rtol=1e-10, **QUIET)
    r = np.tanh(wave * t / 4)  # the Poisson kernel that grows at k theta = pi
    assert run[-1].moment(wave).real == pytest.approx(-r, abs=1e-9)
    assert abs(run[-1].moment(1)) < 1e-12


@pytest.mark.parametrize(
    "sharpness", [mf.PerLayer([1.0, 60.0], 0.01), lambda t: 1 + 2950 * t], ids=["layers", "smooth"]
)
def test_velocities_that_become_finer_are_resolved_from_the_start(sharpness):
    def degree(beta, end):
        model = mf.Transformer(mf.Attention(np.diag([1.0, 0.1]), 1, V[0], beta))
        motion = DensityMotion(
            model, mf.Circle(2).density(lambda t: 1 + 0.5 * np.cos(t)), rtol=1e-8
        )
        return motion.least_degree((0.0, end), 4096)

    assert degree(1.0, 0.02) <= degree(sharpness, 0.001) < degree(60.0, 0.02)
    assert degree(sharpness, 0.02) == degree(60.0, 0.02)


@pytest.mark.parametrize("drift", [mf.SA(-22.0), mf.Attention(1, 1, 1, -22.0)], ids=repr)
def test_a_quotient_of_rounding_errors_is_told(drift):
    """Z is smallest where a narrow density is, by 19 digits."""
    start = mf.Circle(128).von_mises(0, 300.0)
    with pytest.warns(mf.UnresolvedWarning, match=r"Z \* mu"):
        mf.solve(mf.Transformer(drift), start, (0, 1e-4), rtol=1e-4, **QUIET)


def test_a_velocity_beyond_the_highest_degree_is_told():
    model, start = mf.Transformer(wavy(20)), mf.Circle(64).uniform()
    with pytest.warns(mf.UnresolvedWarning, match="max_degree = 64"):
        run = mf.solve(model, start, (0, 0.01), max_degree=64, **QUIET)
    assert not run.success


# In time -----------------------------------------------------------------------------------


def layered():
    """Values that jump, queries that turn."""

    def queries(t):
        return np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])

    values = mf.PerLayer([V[0], V[1], -V[0]], duration=0.17)
    return mf.Attention(queries, K[0], values, 1.5)


def test_parameters_in_time_are_those_of_tokens():
    drift = mf.Attention(Q[0], K[0], mf.PerLayer([V[0], V[1]], duration=0.25), 1.5)
    run = mf.solve(mf.Transformer(drift), START, (0, 0.5), rtol=1e-11, **QUIET)
    first = mf.solve(mf.Transformer(drift.replace(V=V[0])), START, (0, 0.25), rtol=1e-11, **QUIET)
    second = mf.solve(
        mf.Transformer(drift.replace(V=V[1])), first[-1], (0, 0.25), rtol=1e-11, **QUIET
    )
    for k in (1, 2, 3):
        assert run[-1].moment(k) == pytest.approx(second[-1].moment(k), abs=1e-10)


@pytest.mark.bits
@pytest.mark.parametrize("drift", [layered(), mf.SA(2.0) + 0.3 * mf.Attention(Q, K, V)])
def test_a_run_that_was_cut_short_is_resumed_bit_for_bit(drift, tmp_path):
    model, times = mf.Transformer(drift, 4.0), np.linspace(0, 0.6, 7)
    whole = mf.solve(model, START, (0, 0.6), t_eval=times, **QUIET)
    path = tmp_path / "run.nc"

    options = {"t_eval": times, "checkpoint": path, **QUIET}
    part = mf.solve(model, START, (0, 0.6), max_steps=5, **options)
    assert part.status == "max_steps" and 0 < part.t[-1] < 0.6
    rest = mf.solve(model, START, (0, 0.6), resume=True, **options)
    np.testing.assert_array_equal(rest[-1].coefficients, whole[-1].coefficients)


def test_events_ensembles_and_files(tmp_path):
    betas, kappas = np.array([0.5, 2.0]), np.array([3.0, 8.0])
    drift = mf.Attention(Q[0], K[0], V[0], betas)
    model = mf.Transformer(drift, kappas)
    run = mf.solve(model, START, (0, 0.4), **QUIET)
    for i in range(2):
        single = mf.Transformer(drift.replace(beta=betas[i]), kappas[i])
        alone = mf.solve(single, START, (0, 0.4), **QUIET)
        assert run[-1][i].moment(1) == pytest.approx(alone[-1].moment(1), abs=1e-6)
    run.save(tmp_path / "run.nc")
    again = mf.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(again[-1].coefficients, run[-1].coefficients)
    assert again.model.drift == drift


# Energies ----------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [mf.Circle(48), mf.Sphere(16)], ids=repr)
def test_energies_of_gradient_flows(space):
    """E that of tokens on the grid; F falls at the rate of its dissipation."""
    d = space.dimension
    A = np.diag([1.0, 0.5, -0.4][:d])
    drift = mf.Attention(1, A, 0.8 * A, 1.5, weights=Unnormalised())
    mu = START.resample(48) if d == 2 else space.von_mises_fisher([0.6, 0.0, 0.8], 1.0)
    model, dt = mf.Transformer(drift, 5.0), 1e-3
    run = mf.solve(model, mu, (0, 2 * dt), t_eval=[0, dt, 2 * dt], rtol=1e-12, **QUIET)
    names = ("interaction_energy", "free_energy", "dissipation")
    E, F, D = (run.observables[name].values for name in names)
    masses = space.weights * mu.values
    assert E[0] == pytest.approx(float(drift.interaction_energy(space.points, masses)), rel=1e-12)
    assert (F[0] - F[2]) / (2 * dt) == pytest.approx(D[1], rel=1e-5)


# What is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("drift", "state", "reason"),
    [
        (mf.Hardmax(), START, "no mean field"),
        (mf.Attention(causal=True), START, "causal"),
        (mf.Attention(np.eye(3), np.eye(3), np.eye(3)), START, "dimension 3"),
        (mf.Attention(np.eye(3), 1, 1), mf.Zonal(3, 8).uniform(), "Zonal"),
    ],
)
def test_what_no_density_can_follow(drift, state, reason):
    with pytest.raises((mf.MeanfieldError, ValueError), match=reason):
        mf.solve(mf.Transformer(drift), state, (0, 1), **QUIET)


def test_radii_are_refused():
    model = mf.Transformer(mf.Attention(Q[0], K[0], V[0]), normalisation=mf.normalisation.PreLN())
    with pytest.raises(mf.MeanfieldError, match="radii"):
        mf.solve(model, START, (0, 1), **QUIET)


def test_a_reaction_without_a_potential_is_refused():
    model = mf.Transformer(mf.Attention(Q[0], K[0], V[0]), reaction=1.0)
    with pytest.raises(mf.MeanfieldError, match="reaction"):
        mf.solve(model, START, (0, 1), **QUIET)


class Own(Exception):
    pass


@pytest.mark.parametrize("error", [Own, KeyboardInterrupt, ZeroDivisionError])
def test_errors_in_functions_of_a_user_come_out_as_they_are(error):
    calls = []

    def values(t):
        calls.append(t)
        if len(calls) > 12:
            raise error
        return V[0]

    model = mf.Transformer(mf.Attention(Q[0], K[0], values), 5.0)
    if error is KeyboardInterrupt:
        try:
            run = mf.solve(model, START, (0, 1), **QUIET)
        except KeyboardInterrupt:
            return
        assert run.status == "interrupted"
        return
    with pytest.raises(error):
        mf.solve(model, START, (0, 1), **QUIET)


def test_logits_that_overflow_are_told():
    drift = mf.Attention(1, 1, 1, 800.0, weights=Unnormalised())
    with pytest.raises(mf.MeanfieldError, match="logits up to about 800"):
        mf.solve(mf.Transformer(drift), START, (0, 1), **QUIET)


def test_tokens_are_samples_of_the_density():
    drift = mf.Attention(Q, K, V, 1.2)
    model, n = mf.Transformer(drift, 4.0), 1_000
    run = mf.solve(model, START, (0, 0.3), **QUIET)
    tokens = START.sample(n, rng=0)
    final = mf.solve(model, tokens, (0, 0.3), dt=0.1, rng=1, **QUIET)[-1]
    z = np.exp(1j * np.arctan2(final.x[:, 1], final.x[:, 0]))
    for k in (1, 2):
        wanted = run[-1].moment(k)
        assert abs((z**k).mean() - wanted) < 4.5 * np.std(z**k) / np.sqrt(n)
