"""The potential of a drift of one's own, which has a slope alone."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.core.errors import MeanfieldError, UnresolvedWarning
from meanfield.models.zonal import ZonalDrift
from meanfield.testing import check


class SteepSlope(ZonalDrift):
    """W' = exp(-a (1 - t))."""

    a: float

    def slope(self, t):
        return np.exp(-self.a * (1 - t))

    def closed(self, t):
        return (np.exp(-self.a * (1 - t)) - np.exp(-self.a)) / self.a


class SingularSlope(ZonalDrift):
    def slope(self, t):
        with np.errstate(divide="ignore"):
            return 1 / np.sqrt(1 - t)


@pytest.mark.parametrize("a", [3.0, 500.0, 2000.0])
def test_energies_of_tokens_are_those_of_pairs(a):
    tokens = mf.Tokens.uniform(40, 3, rng=0)
    x = np.vstack([tokens.x, tokens.x + 1e-2])
    tokens = mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))
    found = mf.measure(mf.Transformer(SteepSlope(a)), tokens)["interaction_energy"]
    expected = SteepSlope(a).closed(np.clip(tokens.x @ tokens.x.T, -1, 1)).mean() / 2
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_energies_of_densities_are_those_of_the_multipliers():
    density, a = mf.Circle(64).von_mises(0.0, 20.0), 50.0
    found = mf.measure(mf.Transformer(SteepSlope(a)), density)["interaction_energy"]
    shifted = mf.Interaction(lambda t: (np.exp(-a * (1 - t)) - np.exp(-a)) / a)
    expected = mf.measure(mf.Transformer(shifted), density)["interaction_energy"]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_members_of_an_ensemble_have_potentials_of_their_own():
    a = np.array([[1.0, 20.0], [300.0, 4000.0], [5.0, 6.0]])
    t = np.broadcast_to(np.linspace(-1, 1, 7), (3, 2, 7))
    found = SteepSlope(a).potential(t)
    for index in np.ndindex(3, 2):
        assert np.array_equal(found[index], SteepSlope(a[index]).potential(t[index]))


class LiftedPotential(SteepSlope):
    """W is 1 at t = 0."""

    def potential(self, t):
        return 1 + super().potential(t)


def test_a_potential_of_ones_own_may_build_on_the_default():
    t = np.broadcast_to(np.linspace(-1, 1, 5), (2, 3, 5))
    drift = LiftedPotential(np.array([1.0, 20.0]))
    assert np.array_equal(drift.potential(t), 1 + SteepSlope(drift.a).potential(t))


def test_an_energy_that_cannot_be_known_is_nan_and_says_so():
    tokens = mf.Tokens.uniform(20, 3, rng=0)
    with pytest.warns(UnresolvedWarning, match=r"not finite at 1.*Write SingularSlope.potential"):
        found = mf.measure(mf.Transformer(SingularSlope()), tokens)
    assert np.isnan(found["interaction_energy"])
    with pytest.warns(UnresolvedWarning), pytest.raises(MeanfieldError, match="integral of the"):
        mf.measure(mf.Transformer(SingularSlope(), reaction=1.0), tokens)


class RoughSlope(ZonalDrift):
    """Its multipliers are known to 1e-9, its integral is not known to 1e-12."""

    def slope(self, t):
        return np.abs(t - 0.3) ** -0.3


class SlightlyOff(SteepSlope):
    """Its potential is off by 1e-9."""

    def potential(self, t):
        return (1 + 1e-9 * t) * self.closed(t)


def test_the_check_sees_wrong_potentials_to_ten_digits():
    with pytest.raises(AssertionError, match="potential"):
        check(SlightlyOff(2000.0))
    with pytest.raises(AssertionError, match="write potential"):
        check(RoughSlope())
