"""The engine that is chosen, the mean, and the requests of users."""

import numpy as np
import pytest
from token_systems import error, tokens

import meanfield as mf
from meanfield.engines import (
    Automatic,
    CircleModes,
    Direct,
    DirectSums,
    MeanDirection,
    Modes,
    SphereModes,
)

ROOT = mf.Interaction(lambda t: -np.sqrt(1 - t**2), derivative=lambda t: t / np.sqrt(1 - t**2))
FIVE_WAVES = mf.CosineSeries([0.0, 1.0, 0.5, 0.2, 0.1, 0.1])
CHOICES = {
    "few tokens": (mf.SA(5.0), 200, 2, "direct"),
    "circle": (mf.SA(5.0), 1000, 2, "circle"),
    "sphere, some": (mf.USA(5.0), 300, 3, "direct"),
    "sphere, many": (mf.USA(5.0), 10_000, 3, "sphere"),
    "sharp, some": (mf.SA(1e4), 3000, 3, "direct"),
    "four dimensions": (mf.USA(5.0), 10**6, 4, "direct"),
    "Kuramoto": (mf.Kuramoto(), 10, 7, "mean"),
    "beta = 0": (mf.SA([0.0, 0.0]), 1000, 2, "mean"),
    "some beta = 0": (mf.SA([0.0, 1.0]), 1000, 2, "circle"),
    "repelling a little": (mf.SA(-1.0), 1000, 2, "circle"),
    "repelling": (mf.SA(-30.0), 1000, 2, "direct"),
    "repelling, Z = 1": (mf.USA(-30.0), 1000, 2, "circle"),
    "series": (mf.Interaction.chebyshev([0, 1.0, 1.0]), 300, 3, "sphere"),
    "not smooth": (ROOT, 10**5, 2, "direct"),
    "few, series": (FIVE_WAVES, 20, 2, "circle"),
    "few, series, sphere": (FIVE_WAVES, 20, 3, "direct"),
    "some, series, sphere": (FIVE_WAVES, 100, 3, "sphere"),
    "few, faint forces": (mf.Interaction(lambda t: np.exp(40 * t)), 20, 2, "direct"),
    "few, not smooth": (ROOT, 20, 2, "direct"),
}


@pytest.mark.repeats
@pytest.mark.parametrize("drift, n, d, name", CHOICES.values(), ids=CHOICES)
def test_the_engine_that_is_expected_to_be_fastest(drift, n, d, name):
    engine = Automatic().build(drift, n, d)
    assert engine.name == name


def test_an_accuracy_that_modes_do_not_have_is_left_to_pairs():
    assert Automatic(1e-14).build(mf.USA(5.0), 1000, 2).name == "direct"
    assert Automatic(1e-12).build(mf.USA(5.0), 1000, 2).name == "circle"


def test_requests_are_met():
    assert isinstance(Direct(threads=2).build(mf.USA(1.0), 10**6, 2), DirectSums)
    assert isinstance(Modes().build(mf.USA(1.0), 10, 2), CircleModes)
    engine = Modes(tolerance=1e-6, threads=2).build(mf.SA(1.0), 10, 3)
    assert isinstance(engine, SphereModes) and engine.tolerance == 1e-6
    assert Direct() == Direct(threads=1) and Modes() != Modes(1e-8)


def test_requests_that_cannot_be_met_say_so():
    with pytest.raises(ValueError, match=r"d = 2 or 3; got d = 4\. Use Direct"):
        Modes().build(mf.USA(1.0), 10, 4)
    with pytest.raises(mf.MeanfieldError, match="sum over pairs of tokens"):
        Modes().build(ROOT, 10, 2)
    with pytest.raises(ValueError, match="tolerance must be a finite number > 0"):
        Modes(tolerance=0.0)
    for spec in (Direct, Modes, Automatic):
        with pytest.raises(ValueError, match=r"threads = 0"):
            spec(threads=0)


@pytest.mark.parametrize("d", [2, 3, 9])
def test_the_mean_is_the_interaction_of_beta_zero(d):
    x, masses = tokens("clustered", 1500, d, replicas=2)
    mean, pairs = MeanDirection(mf.Kuramoto()), DirectSums(mf.Kuramoto())
    assert error(mean.velocity(x, masses), pairs.velocity(x, masses)) < 1e-13
    assert error(mean.velocity(1.1 * x, masses), pairs.velocity(x, masses)) < 1e-13
    np.testing.assert_allclose(mean.energy(x, masses), pairs.energy(x, masses), rtol=1e-13)
