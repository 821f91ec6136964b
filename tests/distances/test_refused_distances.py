"""What has no distance, and how it is said."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.distances import linear_programs

CIRCLE, SPHERE = mf.Circle(8).uniform(), mf.Sphere(6).uniform()
TOKENS = mf.Tokens.uniform(4, 3, rng=0)
DISTANCES = (
    mf.wasserstein,
    mf.sobolev_distance,
    mf.mmd,
    mf.sliced_wasserstein,
    mf.sinkhorn_divergence,
)


@pytest.mark.parametrize("distance", DISTANCES, ids=lambda f: f.__name__)
def test_states_of_one_space_are_needed(distance):
    for a, b in (
        (CIRCLE, SPHERE),
        (CIRCLE, TOKENS),
        (mf.Tokens(TOKENS.x, on_sphere=False), TOKENS),
    ):
        with pytest.raises(ValueError, match="two states of one space; got"):
            distance(a, b)
    for wrong in (TOKENS.x, None, "state", mf.Gram(np.eye(3))):
        with pytest.raises(TypeError, match=f"{distance.__name__} compares states"):
            distance(TOKENS, wrong)


@pytest.mark.parametrize(
    "p", [0.5, 0, -1, np.nan, np.inf, 21, 1j, np.complex128(2), "2", True, None, [1, 2]], ids=str
)
def test_powers_are_from_one_to_twenty(p):
    for distance in (mf.wasserstein, mf.sliced_wasserstein, mf.sinkhorn_divergence):
        with pytest.raises(ValueError, match="1 <= p <= 20; got p ="):
            distance(TOKENS, TOKENS, p)
    with pytest.raises(ValueError, match="1 <= p <= 20"):
        mf.conditional_wasserstein(TOKENS, TOKENS, p)


def test_negative_densities_are_no_measures():
    wavy = mf.Density(mf.Circle(8), [1, 0.9, *[0] * 7])
    for distance in DISTANCES:
        with pytest.raises(ValueError, match="must not be negative"):
            distance(wavy, CIRCLE)


def test_ensembles_broadcast():
    a, b = (mf.Tokens.uniform(3, 2, rng=0, shape=(k,)) for k in (2, 3))
    with pytest.raises(ValueError, match=r"shape \(2,\), b of shape \(3,\)"):
        mf.wasserstein(a, b)
    with pytest.raises(ValueError, match="between single states on a sphere"):
        mf.sliced_wasserstein(a, b[0])


@pytest.mark.parametrize("s", [0, -1.0, np.nan, np.inf, "1"], ids=str)
def test_orders_are_positive(s):
    with pytest.raises(ValueError, match="s must be a finite number > 0"):
        mf.sobolev_distance(CIRCLE, CIRCLE, s)


def test_a_sum_without_end_needs_a_degree():
    with pytest.raises(ValueError, match=r"S\^2 .*harmonics.*degree"):
        mf.sobolev_distance(TOKENS, SPHERE, 2)
    with pytest.raises(ValueError, match=r"S\^1.*s = 1.5"):
        mf.sobolev_distance(mf.Tokens.uniform(3, 2, rng=0), CIRCLE, 1.5)
    with pytest.raises(ValueError, match="degree must be a whole number >= 1; got degree = 0"):
        mf.sobolev_distance(TOKENS, SPHERE, degree=0)


def test_high_dimensions_have_axisymmetric_densities_only():
    law, tokens = mf.Zonal(5, 8).uniform(), mf.Tokens.uniform(4, 5, rng=0)
    with pytest.raises(ValueError, match=r"S\^4 .*density.sample"):
        mf.wasserstein(law, tokens)
    with pytest.raises(ValueError, match="circles of latitude"):
        mf.wasserstein(mf.Characteristics(law), tokens)
    with pytest.raises(ValueError, match=r"axisymmetric measures; got measures on S\^4"):
        mf.sobolev_distance(law, tokens, degree=4)


def test_too_many_pairs_are_refused(monkeypatch):
    monkeypatch.setattr(linear_programs, "MAX_PAIRS", 10)
    with pytest.raises(mf.MeanfieldError, match=r"4 and 4 .* at most 10"):
        mf.wasserstein(TOKENS, TOKENS)


@pytest.mark.filterwarnings("ignore:numItermax")  # that of the network simplex itself
def test_a_plan_that_is_not_optimal_says_so(monkeypatch):
    monkeypatch.setattr(linear_programs, "MAX_PIVOTS", 3)
    a, b = mf.Tokens.uniform(60, 3, rng=1), mf.Tokens.uniform(60, 3, rng=2)
    with pytest.warns(mf.UnresolvedWarning, match="network simplex stopped"):
        found = mf.wasserstein(a, b)
    monkeypatch.undo()
    exact = mf.wasserstein(a, b)
    assert found.error > 0 and found.value - found.error <= exact.value <= found.value


def test_other_arguments_are_checked():
    with pytest.raises(ValueError, match="cells must be a whole number >= 1"):
        mf.wasserstein(SPHERE, TOKENS, cells=0)
    with pytest.raises(ValueError, match="blur must be a finite number > 0"):
        mf.sinkhorn_divergence(TOKENS, TOKENS, blur=0)
    with pytest.raises(ValueError, match="beta must be a finite number > 0"):
        mf.mmd(TOKENS, TOKENS, -1.0)
    with pytest.raises(ValueError, match="projections must be a whole number >= 2"):
        mf.sliced_wasserstein(TOKENS, TOKENS, projections=1)
    with pytest.raises(ValueError, match="rng must be a numpy Generator"):
        mf.sliced_wasserstein(TOKENS, TOKENS, rng=-1)
    with pytest.raises(TypeError, match="single set of Tokens"):
        mf.conditional_wasserstein(TOKENS, SPHERE)
    with pytest.raises(ValueError, match=r"tokens .*blocks = 3"):
        mf.conditional_wasserstein(TOKENS, TOKENS, blocks=3)
    with pytest.raises(ValueError, match="one space"):
        mf.conditional_wasserstein(TOKENS, mf.Tokens.uniform(4, 2, rng=0))


@pytest.mark.parametrize(
    ("point", "match"),
    [
        ([1.0, 1.0], "off by 0.41"),
        ([1.0], r"point.shape = \(1,\)"),
        (np.eye(2), r"point.shape = \(2, 2\)"),
    ],
)
def test_a_point_is_a_unit_vector(point, match):
    with pytest.raises(ValueError, match=match):
        mf.Dirac(point)


def test_gaussians():
    normal = mf.Gaussian([0.0, 0.0], np.eye(2))
    with pytest.raises(ValueError, match="closed distance for p = 2"):
        mf.wasserstein(normal, normal, 1)
    with pytest.raises(ValueError, match=r"dimensions must be equal.*\(2, 1\)"):
        mf.wasserstein(normal, mf.Gaussian([0.0], [[1.0]]))
    with pytest.raises(TypeError, match="Gaussian only; got Gaussian and Tokens"):
        mf.wasserstein(normal, TOKENS)
    for mean, cov, match in (
        ([0.0], np.eye(2), r"\(\(1,\), \(2, 2\)\)"),
        ([0.0, 0.0], [[1, 1], [0, 1]], "off by 1"),
        ([0.0, 0.0], [[1, 0], [0, -1]], "eigenvalue -1"),
        ([0.0, np.inf], np.eye(2), "finite"),
    ):
        with pytest.raises(ValueError, match=match):
            mf.Gaussian(mean, cov)
