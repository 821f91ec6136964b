"""Indexed densities move as their slices see each other: laws, exact solutions, other solvers."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.core.errors import UnresolvedWarning
from meanfield.dynamics import IndexedMotion
from meanfield.plotting.layouts import resolved_states

CIRCLE = mf.Circle(16)
T = 0.5


def law(s, theta):
    return 1 + 0.3 * np.cos(theta - s / 2) + 0.1 * s * np.sin(2 * theta)


def collocated(beta, kappa, *, softmax, C, s, points=64):
    """The densities of all positions at T on a grid of angles, velocities by dense sums there."""
    theta = 2 * np.pi * np.arange(points) / points
    kernel = np.exp(beta * np.cos(theta[:, None] - theta)) / points
    pull = -kernel * np.sin(theta[:, None] - theta)
    k = np.fft.fftfreq(points, 1 / points)

    def rates(_t, u):
        u = u.reshape(s.size, points)
        seen = C @ u
        v = seen @ pull.T
        v = v / (seen @ kernel.T) if softmax else v
        spectrum = -1j * k * np.fft.fft(u * v) - k**2 / kappa * np.fft.fft(u)
        spectrum[:, points // 2] = 0
        return np.fft.ifft(spectrum).real.ravel()

    first = law(s[:, None], theta).ravel()
    last = solve_ivp(rates, (0, T), first, method="DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    return (last.reshape(s.size, points) * np.exp(1j * theta)).mean(axis=1)


@pytest.mark.parametrize("divide", ["mean", "sum"])
@pytest.mark.parametrize("drift", [mf.USA(2.0), mf.SA(2.0)])
def test_against_collocation(drift, divide):
    """The matrix of integrals from 0 to s is by powers of s here, not by Lagrange polynomials."""
    index = mf.Positions(order=7)
    s = index.nodes
    powers = np.vander(s, 7, increasing=True)
    C = powers * s[:, None] / np.arange(1, 8) @ np.linalg.inv(powers)
    C = C / s[:, None] if divide == "mean" else C
    model = mf.Transformer(drift, 5.0, causal=divide)
    run = mf.solve(model, CIRCLE.indexed(law, index), (0, T), rtol=1e-11)
    softmax = isinstance(drift, mf.SA)
    expected = collocated(2.0, 5.0, softmax=softmax, C=C, s=s)
    np.testing.assert_allclose(run.final.moment(1), expected, atol=2e-12)


@pytest.mark.parametrize("divide", ["mean", "sum"])
def test_attention_with_matrices_is_the_zonal_drift(divide):
    mu = CIRCLE.indexed(law, mf.Positions(order=5))
    for weights, drift in ((mf.Softmax(), mf.SA(2.0)), (mf.Unnormalised(), mf.USA(2.0))):
        attention = mf.Attention(1.0, 1.0, 1.0, 2.0, weights=weights)
        finals = [
            mf.solve(mf.Transformer(d, 4.0, causal=divide), mu, (0, T), rtol=1e-10).final
            for d in (attention, drift)
        ]
        np.testing.assert_allclose(finals[0].moment(1), finals[1].moment(1), atol=1e-12)


def test_a_field_does_not_see_how_much_is_seen():
    """Under "sum" the velocity of a function of points is not multiplied by the mass seen."""
    field = mf.Field(lambda x: x * np.array([1.0, 0.0]))
    mu = CIRCLE.indexed(lambda s, theta: 1 + 0.3 * np.cos(theta) + 0 * s, mf.Positions(order=3))
    finals = [
        mf.solve(mf.Transformer(field, 4.0, causal=divide), mu, (0, T), rtol=1e-10).final
        for divide in ("mean", "sum")
    ]
    alone = mf.solve(mf.Transformer(field, 4.0), mu.slices[0], (0, T), rtol=1e-10).final
    for final in finals:
        np.testing.assert_allclose(final.moment(1), alone.moment(1), atol=1e-10)


@pytest.mark.parametrize("space", [CIRCLE, mf.Sphere(8), mf.Zonal(5, 8)])
def test_positions_of_one_law_move_as_the_unmasked_density(space):
    density = space.perturbed(0.03, rng=0, degrees=[1, 2])
    mu = mf.Indexed.of_slices(mf.Positions(order=3), [density] * 3)
    steps = {"dt": 0.05, "min_degree": 32, "max_degree": 32}
    causal = mf.solve(mf.Transformer(mf.SA(2.0), 8.0, causal=True), mu, (0, T), **steps).final
    alone = mf.solve(mf.Transformer(mf.SA(2.0), 8.0), density, (0, T), **steps).final
    for part in causal.each:
        np.testing.assert_allclose(part, alone.coefficients, atol=1e-14)


def test_later_positions_change_nothing_before():
    """To the last bit, at fixed steps and degree, beyond an edge between pieces."""
    index = mf.Positions([0, 0.5, 1], 6)
    other = CIRCLE.indexed(lambda s, t: np.where(s < 0.5, law(s, t), 1 + 0.5 * np.sin(t)), index)
    steps = {"dt": 0.05, "min_degree": 16, "max_degree": 16}
    model = mf.Transformer(mf.USA(2.0), 5.0, causal="mean")
    finals = [
        mf.solve(model, mu, (0, T), **steps).final for mu in (CIRCLE.indexed(law, index), other)
    ]
    np.testing.assert_array_equal(finals[0].each[:6], finals[1].each[:6])
    assert np.abs(finals[0].each[6:] - finals[1].each[6:]).max() > 0.1


@pytest.mark.parametrize("kappa", [5.0, np.inf])
def test_masses_of_positions(kappa):
    model = mf.Transformer(mf.USA(1.0), kappa, causal="sum")
    final = mf.solve(model, CIRCLE.indexed(law), (0, 2)).final
    np.testing.assert_allclose(final.mass, 1, atol=1e-13)


@pytest.mark.bits
def test_members_have_the_bits_that_they_have_alone():
    mu = CIRCLE.indexed(law, mf.Positions(order=4))
    betas, kappas = np.array([0.5, 3.0]), np.array([2.0, 8.0])
    both = mf.solve(mf.Transformer(mf.USA(betas), kappas, causal="mean"), mu, (0, T))
    for i in range(2):
        model = mf.Transformer(mf.USA(betas[i]), kappas[i], causal="mean")
        alone = mf.solve(model, mu, (0, T))
        np.testing.assert_array_equal(both.final[i].coefficients, alone.final.coefficients)


def test_velocities_of_an_ensemble_are_those_of_its_members():
    mu = CIRCLE.indexed(law, mf.Positions(order=4))
    K = np.array([[1, 0.5], [-0.3, 0.8]])
    betas = np.array([0.5, 3.0])
    for drift in (mf.USA, lambda beta: mf.Attention(1.0, K, 1.0, beta)):

        def velocity(beta, state, drift=drift):
            model = mf.Transformer(drift(beta), 5.0, causal="mean")
            return IndexedMotion(model, state).velocity(state.coefficients)

        both = velocity(betas, mf.Indexed.stack([mu, mu]))
        for beta, found in zip(betas, both, strict=True):
            np.testing.assert_allclose(found, velocity(beta, mu), atol=1e-13)


@pytest.mark.bits
def test_resumed_bit_for_bit(tmp_path):
    model, mu = mf.Transformer(mf.USA(2.0), 5.0, causal="mean"), CIRCLE.indexed(law)
    kept = {"checkpoint": tmp_path / "run.ckpt"}
    whole = mf.solve(model, mu, (0, T), callback=lambda t, state: False)
    mf.solve(model, mu, (0, T), callback=lambda t, state: t > T / 2, **kept)
    again = mf.solve(model, mu, (0, T), callback=lambda t, state: False, resume=True, **kept)
    np.testing.assert_array_equal(again.final.coefficients, whole.final.coefficients)


def test_beta_of_each_position():
    """The first moment of Kuramoto-like USA at beta(s): against a run for each beta alone."""
    index = mf.Positions(order=3)
    mu = CIRCLE.indexed(lambda s, t: 1 + 0.3 * np.cos(t) + 0 * s, index)
    coupling = {"dt": 0.05, "min_degree": 16, "max_degree": 16}
    causal = mf.Causal("mean", beta=lambda s: 1 + 0 * s)
    same = mf.solve(mf.Transformer(mf.USA(7.0), 4.0, causal=causal), mu, (0, T), **coupling)
    plain = mf.solve(mf.Transformer(mf.USA(1.0), 4.0, causal="mean"), mu, (0, T), **coupling)
    np.testing.assert_array_equal(same.final.coefficients, plain.final.coefficients)
    changing = mf.solve(
        mf.Transformer(mf.USA(7.0), 4.0, causal=mf.Causal("mean", beta=lambda s: 1 + s)),
        mu, (0, 1e-4), t_eval=[0, 1e-4], rtol=1e-12,
    )  # fmt: skip
    for i, s in enumerate(index.nodes):
        one = mf.solve(mf.Transformer(mf.USA(1 + s), 4.0), mu.slices[i], (0, 1e-4), rtol=1e-12)
        assert changing.final.moment(1)[i] == pytest.approx(one.final.moment(1), abs=1e-9)
    with pytest.raises(ValueError, match="beta"):
        mf.solve(mf.Transformer(mf.Kuramoto(), 4.0, causal=causal), mu, (0, 1))


# Frequencies, classes ----------------------------------------------------------------------------


def test_without_coupling_oscillators_turn_and_diffuse():
    index = mf.Classes([-1.0, 0.5, 2.0])
    mu = CIRCLE.indexed(lambda w, t: 1 + 0.4 * np.cos(t) + 0 * w, index)
    drift = 0.0 * mf.Kuramoto()
    for scheme in (mf.steppers.Krogstad, mf.steppers.DormandPrince):
        run = mf.solve(
            mf.Transformer(drift, 4.0, frequency=mf.OfIndex()), mu, (0, 1), rtol=1e-10,
            scheme=scheme,
        )  # fmt: skip
        expected = 0.2 * np.exp(1j * index.nodes - 1 / 4)
        np.testing.assert_allclose(run.final.moment(1), expected, atol=1e-9)


def test_classes_against_moments_of_kuramoto():
    """z_k' = (i k omega - k^2/kappa) z_k + (k/2)(h z_(k-1) - conj(h) z_(k+1)), h = sum J w z_1."""
    index, K = mf.Classes([-0.5, 1.0], [0.25, 0.75]), 24
    J = np.array([[2.0, 1.0], [-0.5, 3.0]])
    mu = CIRCLE.indexed(lambda w, t: 1 + 0.3 * np.cos(t) + 0.2 * w * np.sin(t), index)
    k = np.arange(1, K + 1)

    def rates(_t, z):
        z = z.reshape(2, K)
        h = (J * index.weights) @ z[:, 0]
        below = np.concatenate([np.ones((2, 1)), z[:, :-1]], axis=1)
        above = np.concatenate([z[:, 1:], np.zeros((2, 1))], axis=1)
        own = (1j * k * index.nodes[:, None] - k**2 / 4.0) * z
        pull = h[:, None] * below - np.conj(h)[:, None] * above
        return (own + k / 2 * pull).ravel()

    first = np.stack([mu.moment(int(n)) for n in k], axis=1)
    z = solve_ivp(rates, (0, 2), first.ravel(), rtol=1e-11, atol=1e-13, method="DOP853").y[:, -1]
    model = mf.Transformer(mf.Kuramoto(), 4.0, coupling=J, frequency=mf.OfIndex())
    final = mf.solve(model, mu, (0, 2), rtol=1e-11).final
    np.testing.assert_allclose(final.moment(1), z.reshape(2, K)[:, 0], atol=1e-9)


@pytest.mark.parametrize("centre", [0.0, 0.7])
def test_lorentzian_frequencies_follow_ott_and_antonsen(centre):
    K, width, r0, t = 2.0, 0.3, 0.3, 3.0
    mu = mf.Circle(64).density(lambda a: (1 - r0**2) / (1 - 2 * r0 * np.cos(a) + r0**2))
    model = mf.Transformer(K * mf.Kuramoto(), frequency=mf.Lorentzian(width, centre))
    a, b = K / 2 - width, K / 2
    r = np.sqrt(a / (b + (a / r0**2 - b) * np.exp(-2 * a * t)))
    final = mf.solve(model, mu, (0, t), rtol=1e-11).final
    assert final.moment(1) == pytest.approx(r * np.exp(1j * centre * t), abs=1e-10)


# Refused -----------------------------------------------------------------------------------------


MU = CIRCLE.indexed(law, mf.Positions(order=6))
REFUSED = {
    "common": mf.Transformer(mf.SA(1.0), common=mf.CommonRotations(2.0), causal=True),
    "noise": mf.Transformer(mf.SA(1.0), 2.0, noise=mf.Anisotropic(np.eye(2)), causal=True),
    "reaction": mf.Transformer(mf.USA(1.0), reaction=1.0, causal="mean"),
    "Lorentzian": mf.Transformer(mf.Kuramoto(), frequency=mf.Lorentzian(1.0)),
    "hardmax": mf.Transformer(mf.Hardmax()),
}


@pytest.mark.parametrize("words", list(REFUSED))
def test_models_are_refused(words):
    with pytest.raises(mf.MeanfieldError, match=words):
        mf.solve(REFUSED[words], MU, (0, 1))


def test_other_states_do_not_follow_places():
    causal = mf.Transformer(mf.SA(1.0), causal=True)
    turning = mf.Transformer(mf.Kuramoto(), frequency=mf.OfIndex())
    for model, state in (
        (causal, CIRCLE.uniform()),
        (causal, mf.Gaussian(np.zeros(2), np.eye(2))),
        (causal, mf.Equiangular(3, 0.1)),
        (turning, CIRCLE.uniform()),
        (turning, mf.Tokens.uniform(3, 2, rng=0)),
        (mf.Transformer(mf.Kuramoto(), frequency=mf.OfIndex()),
         mf.Sphere(4).indexed(lambda s, x, y, z: 1 + 0 * s * x)),
        (mf.Transformer(mf.USA(1.0), frequency=mf.Lorentzian(1.0)), CIRCLE.uniform()),
    ):  # fmt: skip
        with pytest.raises(mf.MeanfieldError):
            mf.solve(model, state, (0, 1))


def test_unresolved_in_the_index_is_said():
    """A jump of the initial law inside of a piece."""
    jump = CIRCLE.indexed(lambda s, t: 1 + 0.5 * np.sign(s - 0.4) * np.cos(t))
    with pytest.warns(mf.UnresolvedWarning, match="index"):
        mf.solve(mf.Transformer(mf.SA(1.0), 5.0, causal=True), jump, (0, 0.1))


def test_members_of_attention_with_matrices():
    """An ensemble of beta and kappa under a drift that is not zonal."""
    mu = CIRCLE.indexed(law, mf.Positions(order=4))
    betas, kappas = np.array([0.5, 3.0]), np.array([2.0, 8.0])
    K = np.array([[1, 0.5], [-0.3, 0.8]])
    both = mf.solve(
        mf.Transformer(mf.Attention(1.0, K, 1.0, betas), kappas, causal=True), mu, (0, T)
    )
    for i in range(2):
        one = mf.Attention(1.0, K, 1.0, betas[i])
        alone = mf.solve(mf.Transformer(one, kappas[i], causal=True), mu, (0, T))
        np.testing.assert_array_equal(both.final[i].coefficients, alone.final.coefficients)


def test_what_is_causal_is_the_model():
    inner = mf.Attention(1.0, 1.0, 1.0, 2.0, causal=True)
    with pytest.raises(mf.MeanfieldError, match="mask from the model"):
        mf.solve(mf.Transformer(inner, 5.0, causal=True), MU, (0, 1))
    given = mf.Transformer(mf.USA([1.0, 2.0]), 5.0, causal=mf.Causal("mean", beta=lambda s: 1 + s))
    with pytest.raises(ValueError, match="ensemble"):
        mf.solve(given, MU, (0, 1))
    with pytest.raises(TypeError, match="mean"):
        mf.Transformer(mf.USA(1.0), causal=1)


def test_what_the_nodes_do_not_resolve_is_told():
    """One coarse piece: a jump of the law in s inside of it. An ensemble is resolved if all are."""
    index, jump = mf.Positions(order=6), mf.Positions([0, 0.45, 1], order=6)
    law = lambda s, x: 1 + 0.5 * np.cos(x) * np.sign(s - 0.45)  # noqa: E731
    model = mf.Transformer(mf.USA(1.0), 2.0, causal="mean")
    rough = CIRCLE.indexed(law, index)
    with pytest.warns(UnresolvedWarning, match="not resolved in the index"):
        run = mf.solve(model, rough, (0, 0.1))
    assert run.status == "finished" and not run.resolved and not run.final.resolved
    assert not run.stats["resolved_in_index"] and not resolved_states(run).any()
    assert mf.solve(model, CIRCLE.indexed(law, jump), (0, 0.1)).resolved
    even = CIRCLE.indexed(lambda s, x: 1 + 0.5 * np.cos(x) + 0 * s, index)
    with pytest.warns(UnresolvedWarning, match="not resolved in the index"):
        both = mf.solve(model, mf.Indexed.stack([even, rough]), (0, 0.1))
    assert not both.resolved and both.stats["resolved_in_index"] == [True, False]
