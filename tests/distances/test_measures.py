"""States from elsewhere: what a user defines takes part in every distance, or is told how to."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.distances.measures import measure_of

X, Y = mf.Tokens.uniform(6, 2, rng=0), mf.Tokens.uniform(5, 2, rng=1)
DISTANCES = (mf.wasserstein, mf.sobolev_distance, mf.mmd, mf.sliced_wasserstein,
             mf.sinkhorn_divergence)  # fmt: skip


class Angles:
    """Tokens of the circle, held as angles."""

    def __init__(self, angles):
        self.angles = angles

    def as_measure(self):
        """What distances see."""
        return mf.Tokens.on_circle(self.angles)


class Wave:
    """The density 1 + a cos(theta)."""

    def __init__(self, a):
        self.a = a

    def as_measure(self):
        """What distances see."""
        return mf.Circle(4).fourier([1, self.a / 2])


class LabelledPoints(mf.Tokens):
    """Tokens with something more: they are tokens."""


class FineCircle(mf.Circle):
    """A space of a user's own."""


@pytest.mark.repeats
@pytest.mark.parametrize("distance", DISTANCES, ids=lambda f: f.__name__)
def test_a_state_is_what_it_says_it_is(distance):
    angles = np.arctan2(X.x[:, 1], X.x[:, 0])
    tokens = mf.Tokens.on_circle(angles)
    for mine, known in (
        (Angles(angles), tokens),
        (Wave(0.5), mf.Circle(4).fourier([1, 0.25])),
        (LabelledPoints(X.x), X),
        (FineCircle(16).von_mises(0.0, 1.0), mf.Circle(16).von_mises(0.0, 1.0)),
    ):
        assert distance(mine, Y).value == distance(known, Y).value
        assert distance(Y, mine).value == distance(Y, known).value


@pytest.mark.parametrize("distance", DISTANCES, ids=lambda f: f.__name__)
def test_a_state_that_is_no_measure_is_told_which_are(distance):
    for unknown in (mf.Gram(np.eye(3)), mf.Equiangular(3, 0.0), object()):
        with pytest.raises(TypeError, match=r"Density, Tokens, .*as_measure") as caught:
            distance(Y, unknown)
        assert type(unknown).__name__ in str(caught.value)


def test_what_needs_an_axis_is_refused_by_measures_without_one():
    with pytest.raises(TypeError, match=r"last axis.* got Tokens on S\^1"):
        measure_of("a distance", X, "a").axial_coefficients(4)


def test_axisymmetric_densities_on_the_circle_are_turned():
    """W_2 up to rotation of an even density is that of the same density on the circle."""
    even, circle = mf.Zonal(2, 16).von_mises_fisher(1.0), mf.Circle(16).von_mises(np.pi / 2, 1.0)
    other = mf.Circle(16).von_mises(1.0, 3.0)
    found, exact = (mf.wasserstein(a, other, up_to_rotation=True) for a in (even, circle))
    assert found.value == pytest.approx(exact.value, rel=2e-6)
