"""Sums of drifts, and functions of points, move tokens and what else they move: laws."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield import engines, steppers
from meanfield.core.identity import digest
from meanfield.dynamics.tokens import TokenMotion
from meanfield.plotting.labels import describe_model, label_of_member

RNG = np.random.default_rng(0)
Q, K, V = RNG.standard_normal((3, 3, 3)) / 2
MLP = mf.FeedForward(
    *(RNG.standard_normal(shape) / 2 for shape in ((4, 3), (3, 4), 4)),
    activation=mf.models.gelu,
)
LEAVES = [
    *(mf.SA(2.0), mf.USA(1.0), mf.Kuramoto(), mf.CosineSeries([0.0, 0.5, 0.2]), MLP),
    *(mf.Attention(Q, K, V, 2.0), mf.Attention(V=V, causal=True), mf.Hardmax(V=V)),
    mf.Field(lambda x: np.roll(x, 1, axis=-1) ** 2),
]
X = mf.Tokens.uniform(12, 3, rng=1)


def velocity(drift, tokens=X, t=0.0, **options):
    """Velocities of tokens, without noise."""
    motion = TokenMotion(mf.Transformer(drift), tokens, **options)
    motion.enter(0.0, 10.0)
    return motion.velocity(motion.coordinates(tokens), t)


def final(drift, tokens=X, t=1.0, **parts):
    return mf.solve(mf.Transformer(drift, **parts), tokens, (0, t), rtol=1e-10).final


def alike(found, wanted, times=20):
    """Equal to some units of rounding of the largest."""
    scale = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=times * 2.3e-16 * max(scale, 1))


terms = st.lists(st.tuples(st.floats(-3, 3), st.sampled_from(LEAVES)), min_size=1, max_size=5)


@given(terms, st.sampled_from(["sphere", "plane"]))
@settings(max_examples=40, deadline=None)
def test_velocities_of_a_sum_are_sums_of_velocities(terms, where):
    """On the sphere, and in R^3 for the drifts that are defined there; in any order."""
    tokens = X
    if where == "plane":
        terms = [(c, part) for c, part in terms if not part.on_sphere_only] or [(1.0, MLP)]
        tokens = mf.Tokens(1.5 * X.x, on_sphere=False)
    expected = sum(c * velocity(part, tokens) for c, part in terms)
    size = sum(abs(c) * np.abs(velocity(part, tokens)).max() for c, part in terms)
    drift = sum(c * part for c, part in terms)
    swapped = sum(c * part for c, part in terms[::-1])
    rounding = 2e-15 * size + np.finfo(float).tiny  # products may be subnormal numbers
    np.testing.assert_allclose(velocity(drift, tokens), expected, rtol=0, atol=rounding)
    np.testing.assert_allclose(velocity(swapped, tokens), expected, rtol=0, atol=rounding)


def test_twice_a_drift_is_the_drift_in_half_the_time():
    """Bit for bit: all lengths of steps are halved."""
    for drift in LEAVES:
        twice = mf.solve(mf.Transformer(2 * drift), X, (0, 0.5), t_eval=[0.5], dt=1 / 32)
        once = mf.solve(mf.Transformer(drift), X, (0, 1.0), t_eval=[1.0], dt=1 / 16)
        np.testing.assert_array_equal(twice.final.x, once.final.x)


def test_a_part_times_zero_changes_nothing():
    once = final(mf.SA(2.0)).x
    np.testing.assert_array_equal(final(mf.SA(2.0) + 0 * mf.USA(3.0)).x, once)
    for other in (MLP, mf.Attention(Q, K, V)):
        alike(final(mf.SA(2.0) - 0.0 * other).x, once)


@pytest.mark.parametrize("drift", [mf.SA(2.0), mf.Attention(Q, K, V)], ids=["SA", "Attention"])
def test_a_perceptron_in_the_drift_is_the_perceptron_of_the_model(drift):
    """As flows; as layers one acts beside attention, and the other after it."""
    alike(final(drift + MLP).x, final(drift, feedforward=MLP).x)
    layer = {"scheme": steppers.Layers, "dt": 0.5, "t_eval": [0.5]}
    beside = mf.solve(mf.Transformer(drift + MLP), X, (0, 0.5), **layer).final.x
    after = mf.solve(mf.Transformer(drift, feedforward=MLP), X, (0, 0.5), **layer).final.x
    answer = mf.attend(drift, X)
    hidden = X.x + 0.5 * (answer.radii[:, None] * answer.x + MLP(X.x))
    alike(beside, hidden / np.linalg.norm(hidden, axis=1, keepdims=True))
    assert np.abs(after - beside).max() > 0.01


@pytest.mark.parametrize("normalisation", [mf.PreLN(), mf.PeriLN(), mf.NGPT(0.5)], ids=repr)
def test_a_normalisation_takes_the_whole_output_of_the_sum(normalisation):
    drift = mf.Kuramoto() + 0.5 * mf.SA(2.0) - MLP
    outputs = [mf.attend(part, X) for part in (mf.Kuramoto(), mf.SA(2.0))]
    A = sum(c * a.radii[:, None] * a.x for c, a in zip((1, 0.5), outputs, strict=True)) - MLP(X.x)
    model = mf.Transformer(drift, normalisation=normalisation)
    run = mf.solve(model, X, (0, 0.5), t_eval=[0.5], scheme=steppers.Layers, dt=0.5).final
    lengths = 1.0 if normalisation == mf.PreLN() else np.linalg.norm(A, axis=1, keepdims=True)
    hidden = X.x + 0.5 * (0.5 if normalisation == mf.NGPT(0.5) else 1) * A / lengths
    alike(run.x, hidden / np.linalg.norm(hidden, axis=1, keepdims=True))


def test_rotated_parts_move_rotated_tokens():
    R = mf.ensembles.ginibre(3, 5)
    R = np.linalg.qr(R)[0]
    drift = mf.SA(2.0) + 0.5 * mf.Attention(Q, K, V) - MLP
    turned = (
        mf.SA(2.0)
        + 0.5 * mf.Attention(Q @ R.T, K @ R.T, R @ V @ R.T)
        - mf.FeedForward(MLP.inner @ R.T, R @ MLP.outer, MLP.bias, MLP.activation)
    )
    alike(final(turned, mf.Tokens(X.x @ R.T)).x, final(drift).x @ R.T, times=1e5)  # rtol 1e-10


def test_parameters_that_jump_and_functions_of_time_keep_their_times():
    """Until 0.5 the sum is one drift, and from then on another."""
    drift = mf.SA(1.0) + mf.Attention(V=mf.PerLayer([1.0, -1.0], duration=0.5))
    half = final(mf.SA(1.0) + mf.Attention(), t=0.5)
    alike(final(drift).x, final(mf.SA(1.0) - mf.Attention(), half, t=0.5).x, times=1e6)
    drift = mf.USA(0.0) + mf.Attention(V=lambda t: np.sin(t) * V)
    expected = velocity(mf.Kuramoto()) + np.sin(2.0) * velocity(mf.Attention(V=V))
    alike(velocity(drift, t=2.0), expected)


# Ensembles, threads, resumption ------------------------------------------------------------------


def test_an_ensemble_of_factors_is_many_runs():
    """To the last bit, in steps of one length."""
    factors, steps = np.array([-0.5, 0.0, 2.0]), {"t_eval": [1.0], "dt": 1 / 16}
    drift = mf.SA([1.0, 2.0, 3.0]) + factors * MLP + 0.5 * mf.Attention(Q, K, V)
    many = mf.solve(mf.Transformer(drift), X, (0, 1), **steps)
    for i in range(3):
        one = mf.solve(mf.Transformer(drift.member(i)), X, (0, 1), **steps)
        np.testing.assert_array_equal(many.final[i].x, one.final.x)
    assert many.parameters["factors[1]"].tolist() == factors.tolist()


@pytest.mark.bits
def test_results_do_not_depend_on_threads():
    tokens = mf.Tokens.uniform(1500, 3, rng=0)
    drift = 0.5 * mf.USA(1.0) + mf.Attention(Q, K, V) + MLP - mf.SA(2.0)
    found = [velocity(drift, tokens, engine=engines.Automatic(threads=k)) for k in (1, 2, 3)]
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.bits
@pytest.mark.parametrize(
    "drift",
    [mf.SA(1.0) - 0.5 * MLP, np.array([1.0, 2.0]) * mf.Attention(Q, K, V) + mf.Kuramoto()],
    ids=["SA", "Attention"],
)
def test_a_run_under_a_sum_is_saved_loaded_and_resumed(drift):
    assert len(mf.testing.check(drift)) == 2


def test_with_noise_steps_are_chosen_where_rates_are_known():
    model = mf.Transformer(mf.SA(1.0) + mf.USA(1.0), kappa=4.0)
    run = mf.solve(model, X, (0, 0.1), t_eval=[0.1], rng=0)
    assert run.stats["steps"] == np.ceil(0.1 / 0.05 * (1.5 + np.e + 0.5))
    with pytest.raises(ValueError, match="needs dt"):
        mf.solve(mf.Transformer(mf.SA(1.0) + MLP, kappa=4.0), X, (0, 0.1), rng=0)


# Engines -----------------------------------------------------------------------------------------


def test_engines_that_are_asked_for_sum_the_parts_that_have_several():
    tokens = mf.Tokens.uniform(400, 3, rng=0)
    drift = mf.SA(2.0) + 0.5 * mf.USA(1.0) - mf.Attention(Q, K, V) + MLP
    wanted = velocity(drift, tokens, engine=engines.Direct())
    found = velocity(drift, tokens, engine=engines.Modes(tolerance=1e-12))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11)
    run = mf.solve(mf.Transformer(drift), tokens, (0, 0.01), engine=engines.Modes())
    assert run.stats["engine"] == "sphere + attention modes + points"
    with pytest.raises(ValueError, match="Hardmax has one way to sum"):
        velocity(mf.Hardmax() + MLP, tokens, engine=engines.Modes())


def test_energies_and_potentials_are_sums():
    """The reaction of a sum of zonal drifts; a part without energy leaves none."""
    drift, parts = 0.5 * mf.USA(2.0) - mf.Kuramoto(), (mf.USA(2.0), mf.Kuramoto())
    energies = [mf.measure(mf.Transformer(d), X)["interaction_energy"] for d in (drift, *parts)]
    assert energies[0] == pytest.approx(0.5 * energies[1] - energies[2], rel=1e-14)
    assert np.isnan(mf.measure(mf.Transformer(drift + MLP), X)["interaction_energy"])
    moved = [velocity_with_reaction(d) for d in (drift, *parts)]
    alike(moved[0], 0.5 * moved[1] - moved[2])
    with pytest.raises(mf.MeanfieldError, match="FeedForward has none"):
        final(drift + MLP, reaction=1.0)


def velocity_with_reaction(drift):
    motion = TokenMotion(mf.Transformer(drift, reaction=0.7), X)
    return motion.velocity(motion.coordinates(X), 0.0)


def test_vectors_that_are_not_finite_are_laid_to_the_function():
    """A part that may be at fault is named."""
    drift = mf.Field(lambda x: np.where(x > 2, x, np.inf))
    with pytest.raises(mf.MeanfieldError, match=r"Field.* not finite"):
        mf.solve(mf.Transformer(mf.SA(1.0) + drift), X, (0, 1))


# Other states --------------------------------------------------------------------------------


def test_zonal_sums_move_gram_matrices_and_equiangular_tokens():
    drift = 0.5 * mf.USA(2.0) + np.array(0.3) * mf.Kuramoto()
    wanted = final(drift)
    run = mf.solve(mf.Transformer(drift), X.gram(), (0, 1), rtol=1e-10)
    np.testing.assert_allclose(run.final.G, wanted.gram().G, rtol=0, atol=1e-9)
    start = mf.Equiangular(n=4.0, rho=0.2)
    run = mf.solve(mf.Transformer(drift), start, (0, 1), rtol=1e-10).final
    tokens = final(drift, start.to_tokens(4)).gram().G
    np.testing.assert_allclose(run.rho, tokens[0, 1], rtol=1e-9)
    drift = 2 * mf.SA(3.0)
    twice = mf.solve(mf.Transformer(drift), start, (0, 1), rtol=1e-10).final.rho
    once = mf.solve(mf.Transformer(mf.SA(3.0)), start, (0, 2), rtol=1e-10).final.rho
    np.testing.assert_allclose(twice, once, rtol=1e-9)


@pytest.mark.parametrize("space", [mf.Circle(24), mf.Sphere(16), mf.Zonal(4, 20)], ids=repr)
def test_a_series_is_the_sum_of_its_terms(space):
    """Densities under 0.5 T_1 + 0.2 T_2, as one drift and as two, end at the same coefficients."""
    one = mf.CosineSeries([0.0, 0.5, 0.2])
    two = 0.5 * mf.Kuramoto() + mf.CosineSeries([0.0, 0.0, 0.2])
    ends = [
        mf.solve(mf.Transformer(d, 4.0), space.perturbed(0.1, rng=0, degrees=[1, 2]), (0, 1)).final
        for d in (one, two)
    ]
    alike(ends[0].coefficients, ends[1].coefficients, times=1000)


@pytest.mark.long
def test_the_factor_of_a_part_is_followed_as_a_parameter():
    """The uniform state loses stability at kappa (0.5 w_1 + c / 2) = 1."""
    drift, circle, kappa = 0.5 * mf.USA(2.0) + mf.Kuramoto(), mf.Circle(16), 2.0
    diagram = mf.branches(drift, circle, kappa, vary={"factors[1]": (-1.5, 1.0)}, max_step=0.3)
    (onset,) = diagram.special("bifurcation", 0)
    w = 0.5 * mf.USA(2.0).attraction(1, 2)[1]
    assert onset.value == pytest.approx(2 * (1 / kappa - w), rel=1e-9)
    onsets = mf.branches(drift, circle, (0.5, 3.0), max_step=0.3).special("bifurcation", 0)
    assert onsets[0].value == pytest.approx(1 / (w + 0.5), rel=1e-12)


def test_a_diagram_of_a_sum_is_saved(tmp_path):
    drift = 0.5 * mf.USA(2.0) + mf.Kuramoto()
    diagram = mf.branches(drift, mf.Circle(16), (0.9, 1.5), max_step=0.3, save_at=[1.2])
    diagram.save(tmp_path / "sum.nc")
    again = mf.load(tmp_path / "sum.nc")
    assert repr(again) == repr(diagram) and again.drift == diagram.drift
    assert digest(again.ground_state(1.2).density) == digest(diagram.ground_state(1.2).density)


def test_stationary_states_are_those_of_the_scaled_noise():
    """c USA at kappa has the stationary states of USA at c kappa; and so for SA."""
    circle = mf.Circle(24)
    for drift in (mf.USA(1.0), mf.SA(1.0)):
        guess = circle.von_mises(0.0, 3.0)
        scaled = mf.stationary(mf.Transformer(0.5 * drift, 8.0), guess)
        plain = mf.stationary(mf.Transformer(drift, 4.0), guess)
        alike(scaled.density.coefficients, plain.density.coefficients, times=1e4)


def test_figures_write_a_sum_as_a_formula():
    """With the index of each part, and what differs between members left to their panels."""
    drift = mf.SA(4.0) + np.array([0.5, 1.0]) * MLP
    run = mf.solve(mf.Transformer(drift), X, (0, 0.1), t_eval=[0.1])
    assert describe_model(run) == (
        r"${c_{0}}$ SA + ${c_{1}}$ FeedForward, ${c_{0}} = 1$, ${\beta_{0}} = 4$, $\kappa = \infty$"
    )
    assert label_of_member(run, (0,)) == "${c_{1}} = 0.5$"
    run.plot().draw_without_rendering()
    plt.close("all")
