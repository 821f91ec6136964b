"""Runs of tokens that cannot go on: radii that fall to 0, growth beyond numbers, steps too long."""

import warnings

import numpy as np
import pytest

import meanfield as mf
from meanfield import UnresolvedWarning

PRE_LN = mf.PreLN()


@pytest.mark.long
def test_a_radius_that_falls_to_zero_ends_the_run():
    """theta = A, so r' = -|A|: r = 0 in finite time, before which the run ends."""
    model = mf.Transformer(mf.Attention(V=-1.0), normalisation=PRE_LN)
    with pytest.warns(UnresolvedWarning, match="a radius falls to 0"):
        run = mf.solve(model, mf.Tokens.uniform(6, 3, rng=0), (0, 10))
    assert run.status == "step_too_small" and 0 < run.t[-1] < 10
    assert 0 < run.final.radii.min() < 1e-4


@pytest.mark.long
def test_two_equal_tokens_reach_the_origin_on_time():
    """x' = -x/|x| for tokens at one place: r = 1 - t."""
    model = mf.Transformer(mf.Attention(V=-1.0), normalisation=PRE_LN)
    with pytest.warns(UnresolvedWarning):
        run = mf.solve(model, mf.Tokens([[0.0, 1.0]] * 2), (0, 2))
    assert run.t[-1] == pytest.approx(1, abs=1e-9)
    np.testing.assert_allclose(run[50].radii, 1 - run.t[50], atol=1e-9)


@pytest.mark.repeats
@pytest.mark.parametrize("noise", [{}, {"kappa": 1e8}], ids=["none", "little"])
@pytest.mark.parametrize("radius", [0.01, 0.003, 0.001])
def test_fixed_steps_that_are_too_long_are_right_or_end_the_run(radius, noise):
    tokens = mf.Tokens(np.eye(3), radii=[1.0, 1.0, radius])
    still = mf.Transformer(mf.SA(1.0), normalisation=PRE_LN)
    exact = mf.solve(still, tokens, (0, 1), t_eval=[1.0], rtol=1e-9).final
    model = mf.Transformer(mf.SA(1.0), normalisation=PRE_LN, **noise)
    options = {"rng": 1} if noise else {}
    for dt in (radius, 3 * radius, 10 * radius, 100 * radius):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnresolvedWarning)
            long = mf.solve(model, tokens, (0, 1), t_eval=[1.0], dt=dt, **options)
        assert long.status in ("not_finite", "finished")
        if long.status == "finished":
            np.testing.assert_allclose(long.final.x, exact.x, atol=0.05)
            np.testing.assert_allclose(long.final.radii, exact.radii, atol=0.05)
    assert long.status == "not_finite" and "use a smaller dt" in long.message
    fine = mf.solve(model, tokens, (0, 1), t_eval=[1.0], dt=radius / 2, **options).final
    np.testing.assert_allclose(fine.x, exact.x, atol=5e-3)
    np.testing.assert_allclose(fine.radii, exact.radii, atol=5e-3)


@pytest.mark.long
@pytest.mark.parametrize("outputs", [None, [0.5, 1, 2]])
def test_growth_to_infinity_in_finite_time_ends_the_run(outputs):
    model = mf.Transformer(mf.Attention(weights=mf.Unnormalised()))
    tokens = mf.Tokens(np.eye(2), on_sphere=False)
    with pytest.warns(UnresolvedWarning):
        run = mf.solve(model, tokens, (0, 2), t_eval=outputs)
    assert run.status == "step_too_small"
    assert run.t[-1] == pytest.approx(0.213979, abs=1e-6)
    assert np.isfinite(run.final.x).all()


@pytest.mark.parametrize(
    ("drift", "scheme"), [(mf.Kuramoto(), mf.NGPT()), (mf.SA(2.0), mf.PeriLN())], ids=str
)
def test_rounding_errors_have_no_direction(drift, scheme):
    """Two antipodes: their sum is exactly 0 for Kuramoto, but not as numbers."""
    angles = [0.0, np.pi] if isinstance(drift, mf.Kuramoto) else np.arange(3) * 2 * np.pi / 3
    tokens = mf.Tokens.on_circle(angles)
    if isinstance(drift, mf.SA):  # what a token gives itself is what the others take
        drift = mf.Attention(V=1e-9, beta=0.0)
    with pytest.raises(mf.MeanfieldError, match="Attention is 0 at a token"):
        mf.solve(mf.Transformer(drift, normalisation=scheme), tokens, (0, 3))


def test_small_values_have_a_direction():
    one, small = (
        mf.solve(
            mf.Transformer(mf.Attention(V=v), normalisation=mf.PeriLN()),
            mf.Tokens.uniform(6, 3, rng=0),
            (0, 3),
        ).final
        for v in (1.0, 1e-20)
    )
    np.testing.assert_allclose(small.x, one.x, atol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        mf.Transformer(mf.Attention(V=lambda t: np.eye(3) * np.sin(t))),
        mf.Transformer(mf.Attention(beta=mf.PerLayer([1.0, 2.0]))),
        mf.Transformer(mf.SA(1.0), normalisation=mf.NGPT(lambda t: 1 + t)),
    ],
    ids=["callable", "per layer", "learning rate"],
)
def test_what_changes_with_time_has_no_steady_state(model):
    with pytest.raises(ValueError, match="do not change with time"):
        mf.solve(model, mf.Tokens.uniform(6, 3, rng=0), (0, 1), until="steady")


def test_no_pair_of_tokens_has_a_mass():
    """The mean cosine of pairs is 0/0, and the run says so."""
    for state in (mf.Tokens(np.eye(3), [0, 0, 1.0]), mf.Gram(np.eye(3), [0, 0, 1.0])):
        run = mf.solve(mf.Transformer(mf.USA(1.0)), state, (0, 1))
        assert run.success and "no pair of tokens has a mass" in run.message
        assert np.isnan(run.observables["mean_cosine"]).all()


@pytest.mark.parametrize("reaction", [1e6, 1e12])
def test_a_reaction_however_fast_leaves_one_mass(reaction):
    """Masses that grow alike do not lose their digits: 79 steps; of 1e300 it was no end."""
    tokens = mf.Tokens.uniform(5, 3, rng=0)
    run = mf.solve(mf.Transformer(mf.USA(1.0), reaction=reaction), tokens, (0, 1))
    assert "mean_cosine, is nan" in run.message
    assert run.status == "finished" and run.stats["steps"] < 500
    assert run.final.masses.max() == 1
