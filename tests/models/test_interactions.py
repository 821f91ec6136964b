"""What an Interaction is made of, and what its functions must return."""

import numpy as np
import pytest

from meanfield import CosineSeries, Interaction


@pytest.mark.parametrize("series", [[], [[0, 1], [1, 2]], 1.0, [0, np.nan], [np.inf]], ids=str)
def test_a_chebyshev_series_has_finite_coefficients_in_a_row(series):
    with pytest.raises(ValueError, match="coefficients"):
        Interaction.chebyshev(series)


def test_a_chebyshev_series_is_of_numbers():
    with pytest.raises(TypeError, match="coefficients must be real"):
        Interaction.chebyshev(["a"])


def test_an_interaction_is_made_of_functions():
    for wrong in (3, None, "t"):
        with pytest.raises(TypeError, match="potential must be a function"):
            Interaction(wrong)
    with pytest.raises(TypeError, match="derivative must be a function"):
        Interaction(np.exp, derivative=3)
    with pytest.raises(ValueError, match="tolerance must be a finite number > 0"):
        Interaction(np.exp, tolerance=-1.0)


def test_functions_of_inner_products_keep_their_shape():
    t = np.linspace(-1, 1, 5)
    short = Interaction(np.exp, derivative=lambda t: np.ones(3))
    with pytest.raises(ValueError, match=r"derivative must map .*shape \(3,\) for \(5,\)"):
        short.slope(t)
    for potential in (lambda t: np.ones(3), lambda t: 1.0):
        for asked in (Interaction(potential).slope, Interaction(potential).potential_at):
            with pytest.raises(ValueError, match=r"potential must map .*of the same shape"):
                asked(t)
    with pytest.raises(TypeError, match="values of a derivative must be real"):
        Interaction(np.exp, derivative=lambda t: 1j * t).slope(t)
    root = Interaction(lambda t: -np.sqrt(1 - t**2), derivative=lambda t: t / np.sqrt(1 - t**2))
    with np.errstate(divide="ignore"):  # a token does not attract itself
        assert root.slope(np.array([0.0, 1.0])).tolist() == [0.0, np.inf]


@pytest.mark.parametrize("f", [lambda x, y: x @ y, lambda: 1.0, lambda t, *, more: t])
def test_functions_that_do_not_take_t_alone_are_refused_when_they_are_given(f):
    with pytest.raises(TypeError, match="potential must be a function of t alone"):
        Interaction(f)
    with pytest.raises(TypeError, match="derivative must be a function of t alone"):
        Interaction(np.cos, derivative=f)
    with pytest.raises(TypeError, match="derivative must be a function of t alone"):
        CosineSeries([0.0, 1.0], derivative=f)
    assert Interaction(lambda t, scale=2.0: scale * t).attraction(2, 2)[1] > 0
