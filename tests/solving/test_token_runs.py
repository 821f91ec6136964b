"""Runs of tokens: merging, times at which parameters jump, layers, checkpoints, refusals."""

import numpy as np
import pytest

import meanfield as mf
from meanfield import steppers

FOUR = mf.Tokens.on_circle([0.0, 0.3, 2.0, 3.4])


def solved(model, tokens, t, **options):
    """The run until t."""
    return mf.solve(model, tokens, (0, t), t_eval=[t], **options)


# Merging ------------------------------------------------------------------------------------


def test_tokens_that_collapsed_become_one():
    model = mf.Transformer(mf.SA(30.0))
    run = solved(model, FOUR, 1e12, merge=1e-7)
    assert [count for _, count in run.stats["merges"]] == [3, 2]
    # Tokens that merged are at the same place, to the last bit.
    assert len(np.unique(run.final.x, axis=0)) == 2
    assert len(run.final) == 4 and np.array_equal(run.final.masses, FOUR.masses)


def test_merging_changes_nothing_else():
    """Positions differ by about the distance at which tokens merge."""
    model, x = mf.Transformer(mf.SA(8.0)), mf.Tokens.uniform(12, 3, rng=1)
    plain = solved(model, x, 30.0, rtol=1e-11)
    merged = solved(model, x, 30.0, rtol=1e-11, merge=1e-6)
    assert merged.stats["merges"] and merged.stats["steps"] < plain.stats["steps"]
    np.testing.assert_allclose(merged.final.x, plain.final.x, rtol=0, atol=2e-6)


@pytest.mark.long
def test_a_staircase_over_120_orders_of_magnitude():
    """USA, beta = 200: pairs at angles below 90 degrees merge at once, others after ages."""
    times = [1e-80, 1e-40, 1e-10, 1.0, 1e40]
    model = mf.Transformer(mf.USA(200.0))
    run = mf.solve(model, FOUR, (0, 1e40), t_eval=times, merge=1e-7)
    assert run.success and run.t.tolist() == times
    counts = [mf.cluster_labels(state).max() + 1 for state in run]
    assert counts == sorted(counts, reverse=True) and counts[0] == 3 and counts[-1] == 2
    # Two masses a, b at the angle phi: T = e^(-beta cos phi) / ((a + b) beta sin^2 phi).
    first, second = (t for t, _ in run.stats["merges"])
    near = np.exp(-200 * np.cos(0.3)) / (0.5 * 200 * np.sin(0.3) ** 2)
    assert first == pytest.approx(near, rel=0.3)
    phi, b = 1.4, 200
    far = np.exp(-b * np.cos(phi)) / (0.5 * b * np.sin(phi) ** 2)
    assert second == pytest.approx(far, rel=0.2)


def test_masses_of_merged_tokens_add_up_under_a_reaction():
    model = mf.Transformer(mf.USA(3.0), reaction=0.5)
    tokens = mf.Tokens.uniform(6, 3, rng=5)
    plain = solved(model, tokens, 6.0, rtol=1e-10)
    merged = solved(model, tokens, 6.0, rtol=1e-10, merge=1e-7)
    assert merged.stats["merges"]
    np.testing.assert_allclose(merged.final.masses, plain.final.masses, rtol=0, atol=1e-6)
    assert merged.final.masses.sum() == pytest.approx(1, abs=1e-14)


def test_merging_is_for_single_sets_without_noise():
    replicas = mf.Tokens.uniform(4, 2, rng=0, shape=(2,))
    with pytest.raises(ValueError, match="single set of Tokens without noise"):
        solved(mf.Transformer(mf.SA(1.0)), replicas, 1.0, merge=1e-8)
    for bad in (0.0, -1.0, np.nan, "1e-8"):
        with pytest.raises(ValueError, match="merge must be a finite number > 0"):
            solved(mf.Transformer(mf.SA(1.0)), FOUR, 1.0, merge=bad)
    with pytest.raises(ValueError, match=r"<= 0\.1"):
        solved(mf.Transformer(mf.SA(1.0)), FOUR, 1.0, merge=0.5)


# Reaction -----------------------------------------------------------------------------------


def test_a_reaction_moves_mass_and_never_lowers_the_energy():
    """d log(w_i/w_j)/dt = alpha (Phi_i - Phi_j), here for tokens that symmetry holds in place."""
    alpha, beta = 0.7, 2.0
    x = mf.Tokens([[1.0, 0.0], [-1.0, 0.0]], [0.6, 0.4])
    run = mf.solve(mf.Transformer(mf.USA(beta), reaction=alpha), x, (0, 1), rtol=1e-11)
    w = run.final.masses
    # Phi_1 - Phi_2 = (w_1 - w_2) (e^beta - e^-beta) / beta, so that s = w_1 - w_2 obeys
    # s' = alpha c s (1 - s^2) / 2.
    c = 2 * np.sinh(beta) / beta
    s0, growth = 0.2, np.exp(alpha * c * 1.0)
    ratio = s0**2 / (1 - s0**2) * growth
    assert w[0] - w[1] == pytest.approx(np.sqrt(ratio / (1 + ratio)), abs=1e-9)
    energy = run.observables["interaction_energy"].values
    assert (np.diff(energy) > 0).all()
    np.testing.assert_allclose(run.final.x, x.x, rtol=0, atol=1e-14)


# Times at which parameters jump -------------------------------------------------------------


@pytest.mark.parametrize("start", [0.0, 0.1])
def test_layers_end_where_they_should(start):
    """One run through three layers equals three runs."""
    values = [np.eye(3), -0.5 * np.eye(3), np.diag([1.0, 2.0, 3.0])]
    layered = mf.Transformer(mf.Attention(V=mf.PerLayer(values, duration=0.3), beta=2.0))
    x = mf.Tokens.uniform(5, 3, rng=2)
    run = mf.solve(layered, x, (start, 1.3), t_eval=[1.3], rtol=1e-11)
    end = x
    for value, begin, stop in zip(values, (start, 0.3, 0.6), (0.3, 0.6, 1.3), strict=True):
        model = mf.Transformer(mf.Attention(V=value, beta=2.0))
        end = mf.solve(model, end, (begin, stop), t_eval=[stop], rtol=1e-11).final
    np.testing.assert_allclose(run.final.x, end.x, rtol=0, atol=1e-10)
    assert run.stats["rejected"] <= 3  # no step runs into a jump


def test_parameters_may_depend_on_time():
    """Alone with itself (causal attention), the first token follows x' = P V(t) x."""
    model = mf.Transformer(mf.Attention(V=lambda t: np.diag([0.0, np.cos(t)]), causal=True))
    run = solved(model, mf.Tokens.on_circle([0.4, 1.0]), 2.0, rtol=1e-11)
    # tan(theta)' = cos(t) tan(theta)
    x = run.final.x[0]
    assert x[1] / x[0] == pytest.approx(np.tan(0.4) * np.exp(np.sin(2.0)), rel=1e-9)


def test_causal_tokens_do_not_see_later_ones():
    model, x = mf.Transformer(mf.Attention(beta=2.0, causal=True)), mf.Tokens.uniform(5, 3, rng=1)
    few = mf.Tokens(x.x[:3])
    np.testing.assert_allclose(
        solved(model, x, 2.0).final.x[:3], solved(model, few, 2.0).final.x, rtol=0, atol=1e-7
    )


# R^d ----------------------------------------------------------------------------------------


def test_tokens_in_space_need_no_sphere():
    """V = 0 but for a constant shift of Q: with one mass, x' = V x_1, exactly."""
    x = mf.Tokens([[1.0, 2.0], [3.0, -1.0]], [1.0, 0.0], on_sphere=False)
    run = solved(mf.Transformer(mf.Attention(V=-np.eye(2), beta=0.7)), x, 1.0, rtol=1e-11)
    np.testing.assert_allclose(run.final.x[0], np.exp(-1) * x.x[0], rtol=1e-10)
    shift = (np.exp(-1) - 1) * x.x[0]
    np.testing.assert_allclose(run.final.x[1], x.x[1] + shift, rtol=1e-10)


def test_rescaled_tokens_stay_in_their_hull():
    """V = 1: z = e^(-t) x moves within the convex hull of the z_i (facts, section 12)."""
    x = mf.Tokens(np.random.default_rng(3).standard_normal((12, 2)), on_sphere=False)
    model = mf.Transformer(mf.Attention(beta=1.0))
    run = mf.solve(model, x, (0, 3), t_eval=[0, 1, 2, 3], rtol=1e-10)
    directions = np.stack([np.cos(a := np.linspace(0, 2 * np.pi, 33)), np.sin(a)])
    reach = [
        (mf.rescaled(s.x, np.eye(2), t) @ directions).max(axis=0)
        for s, t in zip(run, run.t, strict=True)
    ]
    assert (np.diff(reach, axis=0) < 1e-8).all()


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (mf.Transformer(mf.SA(1.0)), "SA is defined on the sphere"),
        (mf.Transformer(mf.Attention(), normalisation=mf.PreLN()), r"PreLN\(\) is defined on"),
    ],
    ids=["zonal", "normalised"],
)
def test_what_belongs_to_the_sphere_is_refused_in_space(model, match):
    with pytest.raises(mf.MeanfieldError, match=match):
        solved(model, mf.Tokens([[1.0], [2.0]], on_sphere=False), 1.0)


# Extremes -----------------------------------------------------------------------------------


def test_spans_beyond_the_square_root_of_the_largest_number():
    run = solved(mf.Transformer(mf.SA(4.0)), mf.Tokens.on_circle([0, 1.0]), 1e160, merge=1e-7)
    assert run.success and len(run.stats["merges"]) == 1


def test_an_event_between_two_times_that_the_clock_cannot_tell_apart():
    """The last part of the way takes less than the spacing of floats at t = 7e17."""

    def met(_t, state):
        return float(np.linalg.norm(state.x[0] - state.x[1])) - 0.01

    met.terminal = True
    span = np.exp(100 * (1 - np.cos(1)))
    run = solved(mf.Transformer(mf.SA(100.0)), mf.Tokens.on_circle([0, 1.0]), span, events=met)
    assert run.status == "event"
    gap = np.linalg.norm(run.final.x[0] - run.final.x[1])
    assert gap <= 0.01


@pytest.mark.parametrize("rtol", [1e-4, 1e-8])
def test_inner_products_of_few_dimensions_stay_so_to_the_error_of_the_run(rtol):
    gram = mf.Tokens.uniform(32, 8, rng=0).gram()
    run = mf.solve(mf.Transformer(mf.USA(6.0)), gram, (0, 1), t_eval=[0.1, 1.0], rtol=rtol)
    assert run.success and np.linalg.eigvalsh(run[0].G).min() > -1e3 * rtol


@pytest.mark.parametrize("scheme", [mf.MixLN(2.0), mf.PreLN()], ids=repr)
def test_tokens_of_different_radii_do_not_merge(scheme):
    """At the same place they would part."""
    tokens = mf.Tokens(mf.Tokens.on_circle([0, 0.3, 2.6]).x, radii=[1.0, 9.0, 1.0])
    model = mf.Transformer(mf.USA(5.0), normalisation=scheme)
    whole, merged = (
        mf.solve(model, tokens, (0, 12), t_eval=[2.0, 12.0], **options)
        for options in ({}, {"merge": 1e-8})
    )
    for one, other in zip(whole, merged, strict=True):
        np.testing.assert_allclose(other.x, one.x, atol=1e-7)
        np.testing.assert_allclose(other.radii, one.radii, rtol=1e-7)


def test_hidden_states_that_are_one_merge():
    tokens = mf.Tokens.on_circle([0.0, 1e-9, 2.0])
    model = mf.Transformer(mf.SA(2.0), normalisation=mf.PreLN())
    run = mf.solve(model, tokens, (0, 5), t_eval=[5.0], merge=1e-8)
    assert [rows for _, rows in run.stats["merges"]] == [2]
    exact = mf.solve(model, tokens, (0, 5), t_eval=[5.0])
    np.testing.assert_allclose(run.final.radii, exact.final.radii, rtol=1e-8)


def test_drifts_that_part_tokens_at_the_same_place_do_not_merge():
    for drift in (mf.Hardmax(), mf.Attention(causal=True)):
        with pytest.raises(ValueError, match="at the same place alike"):
            solved(mf.Transformer(drift), FOUR, 1.0, merge=1e-6)


def test_masses_that_move_are_no_steady_state():
    tokens = mf.Tokens([[1.0, 0], [-1.0, 0]], [0.6, 0.4])
    model = mf.Transformer(mf.Kuramoto(), reaction=1.0)
    run = mf.solve(model, tokens, (0, 100), until="steady", steady_tolerance=1e-6)
    assert run.status == "steady" and run.final.masses[1] < 1e-5


@pytest.mark.long
def test_growth_beyond_all_bounds_ends_the_run():
    x = mf.Tokens(np.random.default_rng(0).standard_normal((4, 2)), on_sphere=False)
    with pytest.warns(mf.UnresolvedWarning, match="the clock stands still|not finite"):
        run = solved(mf.Transformer(mf.Attention(V=5.0)), x, 500.0)
    assert not run.success


def test_tokens_at_the_origin_stay_there():
    x = mf.Tokens(np.zeros((3, 2)), on_sphere=False)
    assert np.abs(solved(mf.Transformer(mf.Attention()), x, 1.0).final.x).max() == 0


@pytest.mark.parametrize(
    "options", [{}, {"scheme": steppers.Layers, "dt": 0.01}], ids=["", "Layers"]
)
def test_tokens_without_mass_have_none_after_a_reaction(options):
    """At every output, also at those within a step."""
    tokens = mf.Tokens(mf.Tokens.uniform(4, 3, rng=0).x, [0.5, 0.3, 0.2, 0.0])
    model = mf.Transformer(mf.USA(1.0), reaction=0.5)
    run = mf.solve(model, tokens, (0, 1), **options)
    assert run.success and len(run) == 101
    masses = np.array([state.masses for state in run])
    assert (masses[:, 3] == 0).all() and (np.ptp(masses[:, :3], axis=0) > 1e-3).all()
