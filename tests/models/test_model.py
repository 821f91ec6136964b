"""The model: a drift, the noise, and how their parameters make an ensemble."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield import (
    SA,
    USA,
    Anisotropic,
    CommonRotations,
    FeedForward,
    Isotropic,
    Kuramoto,
    Transformer,
)
from meanfield.core.descriptions import describe

reproducible = settings(deadline=None, derandomize=True, max_examples=50)
shapes = st.lists(st.integers(1, 3), max_size=3).map(tuple)


def test_without_kappa_there_is_no_noise():
    model = Transformer(Kuramoto())
    assert model.kappa == np.inf
    assert model.shape == ()


@reproducible
@given(shapes, shapes)
def test_the_shape_is_that_of_beta_and_kappa_broadcast(beta, kappa):
    drift, noise = USA(np.ones(beta)), np.ones(kappa)
    try:
        expected = np.broadcast_shapes(beta, kappa)
    except ValueError:
        with pytest.raises(ValueError, match=r"do not broadcast.*trailing axis"):
            Transformer(drift, noise)
    else:
        assert Transformer(drift, noise).shape == expected


def test_a_table_of_beta_and_kappa():
    model = Transformer(SA(np.array([1.0, 2.0])[:, None]), kappa=[1.0, 3.0, np.inf])
    assert model.shape == (2, 3)
    assert json.loads(json.dumps(describe(model)))["drift"]["beta"] == [[1.0], [2.0]]


@pytest.mark.parametrize("kappa", [0, -1.0, np.nan, -np.inf, [1.0, 0.0], [np.nan, 2.0]], ids=str)
def test_kappa_must_be_positive(kappa):
    with pytest.raises(ValueError, match=r"kappa must be > 0 .*got kappa = "):
        Transformer(USA(1.0), kappa)


@pytest.mark.parametrize("drift", [4.0, "USA", None, USA], ids=["number", "name", "None", "class"])
def test_a_drift_must_be_a_drift(drift):
    with pytest.raises(TypeError, match="drift"):
        Transformer(drift)


def test_a_class_or_a_function_in_place_of_a_drift_is_told_what_makes_one():
    with pytest.raises(TypeError, match=r"got drift = .*; did you mean USA\(\.\.\.\)\?"):
        Transformer(USA)
    for f in (lambda t: t, np.exp):
        with pytest.raises(TypeError, match=r"a function\. .*Interaction\(W\), whose slope is W'"):
            Transformer(f)


def test_kappa_is_a_copy_that_cannot_be_changed():
    kappa = np.array([1.0, 2.0])
    model = Transformer(USA(1.0), kappa)
    kappa[0] = 9
    np.testing.assert_array_equal(model.kappa, [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        model.kappa[0] = 3
    with pytest.raises(AttributeError):
        model.kappa = 4


def test_description_and_text_show_both_parameters():
    model = Transformer(USA(4), kappa=6)
    assert describe(model) == {
        "kind": "Transformer",
        "drift": {"kind": "USA", "beta": 4.0},
        "kappa": 6.0,
    }
    assert repr(model) == "Transformer(USA(beta=4.0), kappa=6.0)"
    assert repr(Transformer(Kuramoto())) == "Transformer(Kuramoto())"


def test_a_noise_of_another_kind_needs_a_finite_kappa():
    for kappa in (np.inf, [np.inf, np.inf]):
        with pytest.raises(ValueError, match=r"Anisotropic.* has strength 1/kappa.*finite kappa"):
            Transformer(USA(1.0), kappa, noise=Anisotropic(np.eye(2)))
    assert Transformer(USA(1.0), [np.inf, 2.0], noise=Anisotropic(np.eye(2))).noisy
    deterministic = Transformer(USA(1.0), noise=Isotropic())
    assert replace(deterministic, drift=SA(1.0)).noise == Isotropic()


def test_common_noise_is_beside_independent_noise():
    model = Transformer(USA(1.0), common=CommonRotations(2.0))
    assert model.noisy
    assert not model.has_independent_noise
    assert Transformer(USA(1.0), 3.0, common=CommonRotations([1.0, 2.0])).shape == (2,)
    assert repr(model) == "Transformer(USA(beta=1.0), common=CommonRotations(kappa=2.0))"
    with pytest.raises(ValueError, match="common"):
        Transformer(USA([1.0, 2.0, 3.0]), common=CommonRotations([1.0, 2.0]))
    with pytest.raises(TypeError, match="common"):
        Transformer(USA(1.0), common=Isotropic())


SWAP = [[0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("inner", "outer", "bias"),
    [
        (0.5, 2.0, None),
        (0.5, 2.0, [0.1, 0.2]),
        (0.5, [[0, 1], [1, 0]], None),
        ([[1, 2], [3, 4]], 2, None),
    ],
)
def test_a_number_in_a_perceptron_is_a_multiple_of_the_identity(inner, outer, bias):
    x = np.array([[0.6, 0.8], [1.0, 0.0]])
    written_out = [m * np.eye(2) if np.ndim(m) == 0 else np.array(m) for m in (inner, outer)]
    found, wanted = FeedForward(inner, outer, bias), FeedForward(*written_out, bias)
    np.testing.assert_allclose(found(x), wanted(x), rtol=1e-15)
    told = np.ndim(outer) or np.ndim(inner) or bias is not None
    assert found.dimension == (2 if told else None)


@pytest.mark.parametrize(
    ("inner", "outer", "bias"),
    [
        (0.5, np.ones((2, 3)), None),
        (np.eye(2), 1.0, [1.0]),
        (1.0, 1.0, np.eye(2)),
        (1.0, [1.0], None),
    ],
)
def test_a_number_stands_for_square_matrices_only(inner, outer, bias):
    wanted = r"one d; got .*a square matrix|bias.shape must be \(k\)|outer.shape must be \(d, k\)"
    with pytest.raises(ValueError, match=wanted):
        FeedForward(inner, outer, bias)
