"""Equiangular tokens: one logit, of which every small number keeps its digits."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf

reproducible = settings(deadline=None, derandomize=True, max_examples=100)
NUMBERS = st.floats(2, 1e15)


@reproducible
@given(NUMBERS, st.floats(-300, -1e-12), st.floats(0.1, 10))
def test_a_gap_is_kept_with_all_its_digits(n, exponent, factor):
    gap = min(factor * 10.0**exponent, 0.999)
    state = mf.Equiangular(n, gap=gap)
    np.testing.assert_allclose(state.gap, gap, rtol=1e-12)
    np.testing.assert_allclose(state.log_gap, np.log(gap), rtol=1e-12, atol=1e-13)


@reproducible
@given(NUMBERS, st.floats(-1, 1))
def test_what_is_known_of_an_inner_product_agrees(n, share):
    rho = 0.999 * (share if share > 0 else share / (n - 1))
    state = mf.Equiangular(n, rho)
    np.testing.assert_allclose(state.rho, rho, rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(state.rho + state.gap, 1, rtol=1e-14)
    np.testing.assert_allclose(state.square, (1 + (n - 1) * rho) / n, rtol=1e-12)


def test_a_gap_below_the_least_number_still_has_a_logarithm():
    state = mf.Equiangular.computed(np.array(32.0), np.array(2e3), np.array(1.0))
    assert state.gap == 0
    np.testing.assert_allclose(state.log_gap, np.log(32) - 2e3, rtol=1e-15)


@pytest.mark.parametrize("state", [(2, -0.9), (5, -0.2), (5, 0.0), (32, 0.7), (3, 1 - 1e-9)])
def test_tokens_have_these_inner_products(state):
    state = mf.Equiangular(*state)
    n = int(state.n)
    for d in (None, n + 3):
        tokens = state.to_tokens(d)
        assert tokens.x.shape == (n, d or n) and tokens.radii is None
        gaps = ((tokens.x[:, None] - tokens.x) ** 2).sum(axis=-1) / 2
        np.testing.assert_allclose(gaps, state.gap * (1 - np.eye(n)), rtol=1e-6, atol=1e-16)


def test_tokens_of_an_ensemble_are_replicas_with_radii():
    state = mf.Equiangular(4, [0.1, 0.2], radius=2.0)
    tokens = state.to_tokens()
    assert tokens.shape == (2,) and (tokens.radii == 2).all()
    np.testing.assert_allclose(tokens.gram().G[:, 0, 1], [0.1, 0.2], rtol=1e-14)
    assert state[1].rho == pytest.approx(0.2) and state[1].shape == ()
    assert mf.Equiangular(4, 0.0).broadcast((3,)).shape == (3,)


def test_it_says_what_it_is():
    assert repr(mf.Equiangular(1e12, 0.25)) == "Equiangular(n=1000000000000, rho=0.25, radius=1)"
    assert repr(mf.Equiangular(32, gap=1e-9)) == "Equiangular(n=32, gap=1e-09, radius=1)"
    assert repr(mf.Equiangular(4, [0.1, 0.2])) == "Equiangular(ensemble of shape (2,))"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 1, "rho": 0}, "n >= 2 tokens; got n = 1"),
        ({"n": np.inf, "rho": 0}, "finite n >= 2"),
        (
            {"n": 3, "rho": 1},
            "one point, and rest; got rho = 1. For tokens that",
        ),
        ({"n": 3, "rho": -0.5}, "-0.5 = -1/(n - 1) < rho < 1"),
        ({"n": 3, "rho": np.nan}, "got rho = nan"),
        ({"n": 3, "gap": 0.0}, "got gap = 0"),
        ({"n": 32, "gap": -1.0}, "0 < gap < n/(n - 1) = 1.03226"),
        ({"n": 3, "gap": 1.5}, "got gap = 1.5"),
        ({"n": 3, "gap": np.nan}, "got gap = nan"),
        ({"n": 3}, "got 'neither'"),
        ({"n": 3, "rho": 0, "gap": 1}, "got 'both'"),
        ({"n": 3, "rho": 0, "radius": 0}, "finite radius > 0; got radius ="),
        ({"n": [3, 4], "rho": [0, 0, 0]}, "n of shape (2,), rho of shape (3,)"),
    ],
)
def test_what_is_no_equiangular_state_is_refused(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        mf.Equiangular(**arguments)


def test_what_has_no_tokens_is_refused():
    with pytest.raises(ValueError, match=r"n must be .* >= 2; got n = 2\.5\.$"):
        mf.Equiangular(2.5, 0.0).to_tokens()
    with pytest.raises(ValueError, match=r"n = 4, .*got d = 3"):
        mf.Equiangular(4, 0.0).to_tokens(3)
    with pytest.raises(ValueError, match=re.escape("got n = [4, 5]")):
        mf.Equiangular([4, 5], 0.0).to_tokens()
    with pytest.raises(ValueError, match=r"2.4e\+16 GB"):
        mf.Equiangular(1e12, 0.0).to_tokens()
    with pytest.raises(TypeError, match="single state"):
        mf.Equiangular(4, 0.0)[0]
    with pytest.raises(IndexError, match=r"^Members alone .* the arrays n, logit, radius\.$"):
        mf.Equiangular([3, 4], 0.0)[5]


def test_a_refusal_of_a_gap_does_not_speak_of_rho():
    for gap in (-1.0, 1.5):
        with pytest.raises(ValueError, match="gap") as refused:
            mf.Equiangular(32, gap=gap)
        assert "rho" not in str(refused.value)
