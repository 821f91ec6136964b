"""Normalisation schemes: what they do to the output of attention."""

import numpy as np
import pytest

import meanfield as mf
from meanfield import NGPT, MixLN, PeriLN, PostLN, PreLN, SqrtScaling
from meanfield.core.descriptions import describe

A = np.random.default_rng(0).standard_normal((2, 3, 4))


@pytest.mark.parametrize("scheme", [PostLN(), PreLN(), MixLN(2.0)], ids=repr)
def test_attention_itself_is_the_update(scheme):
    np.testing.assert_array_equal(scheme.update(1.0, A), A)


def test_updates_of_unit_length():
    np.testing.assert_allclose(np.linalg.norm(PeriLN().update(0, A), axis=-1), 1, rtol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(NGPT(0.3).update(0, A), axis=-1), 0.3, rtol=1e-15)
    varying = NGPT(lambda t: 1 / (1 + t))
    np.testing.assert_allclose(np.linalg.norm(varying.update(3, A), axis=-1), 0.25, rtol=1e-15)


def test_the_root_of_depth():
    np.testing.assert_allclose(SqrtScaling().update(3.0, A), A / 2, rtol=1e-15)


def test_which_radii_grow_and_when():
    grow = [PreLN(), PeriLN()]
    fixed = [PostLN(), NGPT(), SqrtScaling()]
    assert all(scheme.grows(0) and scheme.has_radii for scheme in grow)
    assert not any(scheme.grows(0) or scheme.has_radii for scheme in fixed)
    mixed = MixLN(1.5)
    assert (mixed.grows(1.4), mixed.grows(1.5), mixed.has_radii) == (False, True, True)
    assert mixed.breakpoints() == (1.5,) and PreLN().breakpoints() == ()


@pytest.mark.parametrize("make", [lambda v: MixLN(v), lambda v: NGPT(v)], ids=["tau", "alpha"])
@pytest.mark.parametrize("value", [0, -1.0, np.inf, np.nan, "1"], ids=str)
def test_numbers_are_positive(make, value):
    with pytest.raises(ValueError, match="must be a finite number > 0"):
        make(value)


def test_a_learning_rate_that_is_no_number_is_named():
    with pytest.raises(ValueError, match=r"alpha\(2\) must be a finite number > 0"):
        NGPT(lambda t: -t).update(2.0, A)


def test_descriptions_are_plain():
    assert describe(MixLN(2)) == {"kind": "MixLN", "tau": 2.0}
    assert describe(NGPT(0.5)) == {"kind": "NGPT", "alpha": 0.5}
    assert describe(PreLN()) == {"kind": "PreLN"}


def test_a_class_of_ones_own_may_depend_on_time_unless_it_says_no():
    class Halved(mf.Normalisation):
        def update(self, t, A, size=0.0):
            return A / 2

    class Steady(Halved):
        constant = True

    tokens = mf.Tokens.uniform(5, 3, rng=0)
    assert mf.solve(mf.Transformer(mf.USA(1.0), normalisation=Steady()), tokens, (0, 1)).success
    model = mf.Transformer(mf.USA(1.0), normalisation=Halved())
    with pytest.raises(ValueError, match="steady"):
        mf.solve(model, tokens, (0, 1), until="steady")


def test_lengths_that_grow_need_lengths():
    with pytest.raises(TypeError, match="has_radii"):

        class Growing(mf.Normalisation):
            def grows(self, t):
                return True


@pytest.mark.parametrize("size", [1e-200, 1.0, 3e160, 1e308])
def test_the_direction_of_an_output_does_not_depend_on_its_size(size):
    """Where squares overflow or vanish too."""
    A = np.array([[0.6, -0.8, 0.0], [0.0, 0.0, 0.1]])
    for scheme in (NGPT(1.0), PeriLN()):
        found = scheme.update(0.0, A * size)
        np.testing.assert_allclose(found, [[0.6, -0.8, 0], [0, 0, 1.0]], rtol=4e-16)
