"""One step of every noise against its generator: the error of any expectation is O(s^3)."""

import numpy as np
import pytest
from diffusions import (
    constant,
    constants,
    local_errors,
    orders,
    plus,
    tangential,
    times,
    unit,
    variable,
)

from meanfield.models.noise import (
    Anisotropic,
    Isotropic,
    MultiplicativeIto,
    MultiplicativeStratonovich,
)

STEPS = 1e-3 / 2.0 ** np.arange(4)


def starts(d, n=1):
    """Four starts of n tokens, in no special places."""
    return unit(np.random.default_rng(d).standard_normal((4, n, d)))


def polynomials(d):
    """Functions that are not harmonic, of degrees 1 to 4."""
    x, y = variable(0, d), variable(1, d)
    return {
        "1": plus(x, times(constant(0.4, d), y)),
        "2": times(x, y),
        "3": plus(times(x, times(y, y)), y),
        "4": plus(times(times(x, x), times(x, y)), times(y, y)),
    }


def axes(d, deviations=None):
    """The fields P_x a_k with the columns a_k of a matrix."""
    columns = np.eye(d) if deviations is None else deviations
    return [tangential(constants(column)) for column in columns.T]


def assert_third_order(errors):
    np.testing.assert_allclose(orders(errors, STEPS), 3, atol=0.1)


@pytest.mark.repeats
@pytest.mark.parametrize("degree", ["1", "2"])
@pytest.mark.parametrize("d, nodes", [(2, 24), (3, 14)])
def test_isotropic_is_exact_for_means_and_covariances(d, nodes, degree):
    s = np.array([1e-3, 0.01])
    p = polynomials(d)[degree]
    errors = local_errors(Isotropic(), p, starts(d), s, axes(d), nodes=nodes)
    assert errors.max() < 1e-12  # the series without (6 s)^7/7!


@pytest.mark.parametrize("degree", ["1", "2", "3", "4"])
@pytest.mark.parametrize("d", [2, 3])
def test_anisotropic(d, degree):
    rng = np.random.default_rng(5)
    factor = rng.standard_normal((d, d)) / np.sqrt(d)
    noise = Anisotropic(factor @ factor.T)
    errors = local_errors(noise, polynomials(d)[degree], starts(d), STEPS, axes(d, factor))
    assert_third_order(errors)


@pytest.mark.parametrize("degree", ["1", "2", "3"])
@pytest.mark.parametrize("d", [2, 3])
def test_anisotropic_with_the_identity_has_the_law_of_isotropic(d, degree):
    noise = Anisotropic(np.eye(d))
    assert_third_order(local_errors(noise, polynomials(d)[degree], starts(d), STEPS, axes(d)))


SLOPES = np.array([0.5, 0.3, -0.4])


def scale(x):
    return 1 + x @ SLOPES[: x.shape[-1]]


def scale_as_polynomial(d):
    linear = [times(constant(c, d), variable(k, d)) for k, c in enumerate(SLOPES[:d])]
    return plus(constant(1, d), *linear)


@pytest.mark.repeats
@pytest.mark.parametrize("d, degree", [(2, "1"), (2, "2"), (2, "3"), (3, "2")])
def test_multiplicative(d, degree):
    p, s = polynomials(d)[degree], scale_as_polynomial(d)
    fields = [tangential(constants(e), s) for e in np.eye(d)]
    noise = MultiplicativeStratonovich(scale)
    assert_third_order(local_errors(noise, p, starts(d), STEPS, fields))

    minus = times(constant(-1, d), s)
    drift = tangential(constants(SLOPES[:d]), minus)
    noise = MultiplicativeIto(scale, gradient=lambda x: np.broadcast_to(SLOPES[:d], x.shape))
    assert_third_order(local_errors(noise, p, starts(d), STEPS, fields, drift))
