"""Attention and Hardmax as objects: which matrices fit together, and as plain data."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import meanfield as mf
from meanfield import MeanfieldError, Transformer
from meanfield.core.descriptions import build, describe
from meanfield.core.forms import Reading
from meanfield.models import (
    L2,
    Attention,
    Hardmax,
    PerLayer,
    Sigmoid,
    Sinkhorn,
    Softmax,
    Unnormalised,
)

KINDS = [Softmax(), Unnormalised(), L2(), Sigmoid(-0.1), Sinkhorn(1e-9, 77)]
finite = st.floats(allow_nan=False, allow_infinity=False)
I2, I3 = np.eye(2), np.eye(3)


def through_json(drift):
    arrays = {}
    data = json.loads(json.dumps(describe(drift, arrays)))
    return build(mf.Drift, data, Reading(arrays=arrays, result=True))


def growing(t):
    """A parameter in a file by its name only."""
    return t * I2


# Shapes --------------------------------------------------------------------------------------


def test_the_dimension_is_that_of_the_matrices():
    heads = np.ones((4, 2, 8))
    assert Attention().dimension is None
    assert Attention(2.0, V=-1).dimension is None
    assert Attention(heads, heads).dimension == 8
    assert Attention(K=I3).dimension == 3
    assert Attention(heads, heads, heads, output=heads.swapaxes(1, 2)).dimension == 8
    assert Attention(V=heads, output=np.ones((8, 2))).dimension == 8
    assert Hardmax(V=I2).dimension == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Q": np.ones((2, 3)), "K": np.ones((3, 3))}, r"one k; got Q \(2, 3\), K \(3, 3\)"),
        ({"Q": np.ones((2, 3))}, r"Q \(d, d\).* one d; got Q \(2, 3\).*number"),
        ({"Q": 2.0, "K": np.ones((2, 3))}, r"K \(d, d\).* one d; got K \(2, 3\)"),
        ({"V": np.ones((2, 3))}, r"V \(d, d\).*one d; got V \(2, 3\).*output= of shape \(3, 2\)"),
        (
            {"V": np.ones((4, 2, 3))},
            r"V \(4, 2, 3\)\. V maps to 2 dimensions: give output= of shape \(4, 3, 2\)\.",
        ),
        (
            {"V": np.ones((2, 3)), "output": np.ones((2, 3))},
            r"output \(d, v\) must have one d; got V \(2, 3\), output \(2, 3\)",
        ),
        ({"V": np.ones((2, 3)), "output": 1.0}, r"V \(d, d\) must have one d; got V \(2, 3\)"),
        ({"output": np.ones((2, 3))}, r"output \(d, d\) must have one d; got output \(2, 3\)"),
        ({"Q": I2, "V": I3}, r"one d; got Q \(2, 2\), V \(3, 3\)"),
        (
            {"V": np.ones((2, 2, 2)), "K": np.ones((3, 2, 2))},
            r"one H; got K \(3, 2, 2\), V \(2, 2, 2\)",
        ),
        ({"Q": np.ones(3)}, r"Q must be None.*got shape \(3,\)"),
        ({"V": np.ones((4, 1, 2, 2)), "K": np.ones((3, 1, 2, 2))}, r"broadcast: K of shape \(3,\)"),
        ({"V": np.ones((4, 1, 2, 2)), "beta": np.ones(3)}, r"broadcast: .*beta of shape \(3,\)"),
        (
            {"V": np.ones((4, 1, 2, 2)), "K": np.ones((4, 3, 2, 2))},
            r"one H; got K \(4, 3, 2, 2\), V \(4, 1, 2, 2\)",
        ),
        ({"V": np.ones((4, 1, 2, 3))}, r"V \(H, d, d\).*one d; got V \(4, 1, 2, 3\)"),
        ({"K": np.empty((0, 2))}, r"got shape \(0, 2\)"),
        ({"Q": [[np.nan, 1], [1, np.inf]]}, "Q must be finite; got 2 nan or inf"),
        ({"V": np.inf}, "V must be finite"),
        ({"beta": np.nan}, "beta must be finite.*got beta = nan"),
        ({"beta": [1.0, np.inf]}, "beta must be finite"),
        ({"beta": []}, "beta must be finite"),
        ({"causal": True, "weights": Sinkhorn()}, "Sinkhorn weights cannot be causal"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Attention(**arguments)


@pytest.mark.parametrize("weights", ["softmax", Softmax, 1.0])
def test_weights_are_objects(weights):
    with pytest.raises(TypeError, match=r"weights must be .*Softmax\("):
        Attention(weights=weights)


def test_parameters_are_real_numbers():
    with pytest.raises(TypeError, match="Q must be real numbers"):
        Attention(Q=I2 * 1j)
    with pytest.raises(TypeError, match="beta must be real numbers; got 'hot'"):
        Attention(beta="hot")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Sigmoid(np.nan), "bias must be a finite number"),
        (lambda: Sinkhorn(0.0), "tolerance must be a finite number > 0"),
        (lambda: Sinkhorn(most_iterations=0), "most_iterations = 0"),
        (lambda: Hardmax(ties=-1.0), "ties = -1.0"),
        (lambda: Hardmax(ties=np.nan), "ties must be a finite number"),
        (lambda: Hardmax(V=np.ones((2, 3))), r"V \(d, d\) must have one d; got V \(2, 3\)"),
    ],
)
def test_numbers_out_of_range_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_representation_shows_shapes_not_numbers():
    drift = Attention(np.ones((2, 3, 8)), PerLayer(np.ones((5, 2, 3, 8))), V=growing, causal=True)
    assert repr(drift) == (
        "Attention(Q=<array (2, 3, 8)>, K=PerLayer(values=<array (5, 2, 3, 8)>), V=<growing>, "
        "causal=True)"
    )
    assert repr(Hardmax(np.eye(5))) == "Hardmax(Q=<array (5, 5)>, K=1.0, V=1.0)"


def test_densities_are_not_moved_by_attention():
    with pytest.raises(MeanfieldError, match="Attention does not depend on inner products alone"):
        Transformer(Attention()).zonal  # noqa: B018


# As plain data -------------------------------------------------------------------------------


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    V=arrays(float, st.sampled_from([(), (2, 2), (3, 2, 2)]), elements=finite),
    Q=finite,
    beta=st.one_of(finite, arrays(float, (2, 2), elements=finite)),
    kind=st.sampled_from(KINDS),
    layered=st.booleans(),
)
def test_a_description_gives_back_every_bit(V, Q, beta, kind, layered):
    V = PerLayer([V, -V], 0.1) if layered else V
    drift = Attention(Q, V=V, beta=beta, weights=kind)
    again = through_json(drift)
    assert again == drift and describe(again) == describe(drift)
    assert again.weights == kind
    for name, value in drift.at(0.1).items():
        assert again.at(0.1)[name].tobytes() == value.tobytes()
        assert again.at(0.1)[name].shape == value.shape


def test_every_argument_is_described():
    heads = np.random.default_rng(0).standard_normal((2, 3, 8))
    drift = Attention(heads, -heads, heads, 2.0, output=heads.swapaxes(1, 2), causal=True)
    arrays = {}
    data = describe(drift, arrays)
    assert list(data) == ["kind", "Q", "K", "V", "beta", "output", "causal"]
    assert data["Q"] == {"array": "Q"} and arrays["Q"].shape == (2, 3, 8)
    again = through_json(drift)
    assert again.causal and again == drift
    np.testing.assert_array_equal(again.output, drift.output)
    hard = Hardmax(I2, V=PerLayer([1.0, 2.0], 0.5), ties=0.25)
    assert through_json(hard) == hard and through_json(hard).ties == 0.25
    assert through_json(hard) != hard.replace(ties=0.5)


@pytest.mark.parametrize("drift", [Attention(V=growing), Hardmax(V=growing)])
def test_a_function_is_described_by_its_name_and_raises_when_it_is_missed(drift):
    assert describe(drift)["V"] == {"function": "growing"}
    again = through_json(drift)
    assert describe(again) == describe(drift)
    assert not again.constant
    with pytest.raises(MeanfieldError, match="growing"):
        again.at(0.0)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "Attention", "weights": {"kind": "Cubic"}}, "Softmax.*Cubic"),
        ({"kind": "Attention", "Q": {"shape": [2]}}, "Q.kind"),
        ({"kind": "Atention"}, "did you mean Attention"),
    ],
)
def test_other_data_are_refused(data, message):
    with pytest.raises(mf.ConfigError, match=message):
        build(mf.Drift, data)


@pytest.mark.parametrize("causal", ["no", 1, None, np.ones(1, dtype=bool)], ids=repr)
def test_causal_is_true_or_false(causal):
    with pytest.raises(TypeError, match="causal must be True or False; got causal ="):
        Attention(causal=causal)
    assert Attention(causal=np.True_).causal is True
