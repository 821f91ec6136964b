"""Parameters of attention that change with time: layers, functions, and what is checked."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meanfield.models import SA, USA, Attention, Hardmax, PerLayer

reproducible = settings(deadline=None, derandomize=True, max_examples=60)


@reproducible
@given(st.integers(1, 60), st.floats(1e-3, 1e3))
def test_a_layer_begins_at_its_jump(layers, duration):
    """Also where floor(t / duration) would round to the layer before."""
    parameter = PerLayer(np.arange(layers), duration)
    for layer, jump in enumerate(parameter.breakpoints(0, np.inf), start=1):
        assert parameter.at(jump) == layer
        assert parameter.at(np.nextafter(jump, -np.inf)) == layer - 1
        assert jump == pytest.approx(layer * duration)
    assert parameter.at(-5.0) == parameter.at(0.0) == 0
    assert parameter.at(2e6) == layers - 1


def test_breakpoints_lie_strictly_inside():
    parameter = PerLayer([1.0, 2.0, 3.0, 4.0], 0.5)
    np.testing.assert_array_equal(parameter.breakpoints(0, 10), [0.5, 1.0, 1.5])
    np.testing.assert_array_equal(parameter.breakpoints(0.5, 1.5), [1.0])
    assert parameter.breakpoints(1.5, 9).size == 0


def test_a_drift_jumps_where_one_of_its_parameters_does():
    drift = Attention(
        Q=PerLayer(np.ones((3, 2, 2)), 0.5), K=2.0, V=PerLayer([1.0, 2.0]), beta=lambda t: t
    )
    np.testing.assert_array_equal(drift.breakpoints(0, 5), [0.5, 1.0])
    np.testing.assert_array_equal(drift.breakpoints(0, 0.7), [0.5])
    assert Attention(np.eye(2)).breakpoints(0, 5).shape == (0,)
    np.testing.assert_array_equal(Hardmax(V=PerLayer([1.0, 2.0], 3)).breakpoints(0, 5), [3.0])


def test_at_gives_the_arrays_of_that_time():
    Q, V = np.arange(24.0).reshape(3, 2, 4), np.arange(32.0).reshape(2, 4, 4)
    drift = Attention(Q, PerLayer([Q, -Q]), lambda t: t * V[0], beta=PerLayer([1.0, 2.0], 10))
    at = drift.at(1.5)
    assert set(at) == {"Q", "K", "V", "beta"}
    np.testing.assert_array_equal(at["Q"], Q)
    np.testing.assert_array_equal(at["K"], -Q)
    np.testing.assert_array_equal(at["V"], 1.5 * V[0])
    assert at["beta"] == 1.0
    assert set(Attention(output=2.0).at(0)) == {"Q", "K", "V", "beta", "output"}


@pytest.mark.parametrize("changing", [PerLayer([1.0, 2.0]), np.cos], ids=["layers", "function"])
@pytest.mark.parametrize("name", ["Q", "K", "V", "beta", "output"])
def test_constant_means_that_no_parameter_changes(name, changing):
    assert Attention(np.eye(2), V=2.0, beta=[1.0, 2.0]).constant
    assert not Attention(**{name: changing}).constant
    assert Hardmax(np.eye(2)).constant
    if name in "QKV":
        assert not Hardmax(**{name: changing}).constant


def test_an_ensemble_is_of_betas_that_are_constant():
    drift = Attention(beta=np.ones((2, 3)))
    assert drift.shape == (2, 3)
    assert drift.parameters["beta"].shape == (2, 3)
    for beta in (PerLayer([1.0, 2.0]), np.cos):
        assert Attention(beta=beta).shape == ()
        assert Attention(beta=beta).parameters == {}
    with pytest.raises(ValueError, match=r"number at each time; got shape \(3,\).*constant"):
        Attention(beta=PerLayer(np.ones((2, 3))))


def test_what_a_function_returns_is_checked_whenever_it_is_evaluated():
    sizes = {0.0: 2, 1.0: 3}
    growing = Attention(V=lambda t: np.eye(sizes[t]))
    assert growing.dimension is None
    growing.at(0.0)
    assert growing.dimension == 2
    with pytest.raises(ValueError, match=r"t = 1\.0\) returned shape \(3, 3\) after \(2, 2\)"):
        growing.at(1.0)
    with pytest.raises(ValueError, match=r"<lambda>\(t = 2\.0\): Q must be finite; got 1 nan"):
        Attention(Q=lambda t: np.nan).at(2.0)
    with pytest.raises(ValueError, match=r"V \(d, d\).*one d; got V \(2, 3\)"):
        Attention(V=lambda t: np.ones((2, 3))).at(0.0)
    with pytest.raises(ValueError, match="beta must be finite"):
        Attention(beta=lambda t: np.inf).at(0.0)
    with pytest.raises(ValueError, match="beta must be a number at each time"):
        Attention(beta=lambda t: [1.0, 2.0]).at(0.0)
    with pytest.raises(TypeError, match=r"K must be real numbers; got .a."):
        Attention(K=lambda t: "a").at(0.0)


@pytest.mark.parametrize(
    ("values", "duration", "message"),
    [
        (1.0, 1.0, "must be a sequence with an entry for each layer; got 1.0"),
        ([], 1.0, "must be a sequence with an entry"),
        ([1.0, np.nan], 1.0, "must be numbers, without nan"),
        ([1.0, 2.0], 0.0, "duration must be a finite number > 0"),
        ([1.0, 2.0], np.inf, "duration must be a finite number > 0"),
    ],
)
def test_layers_that_are_refused(values, duration, message):
    with pytest.raises(ValueError, match=message):
        PerLayer(values, duration)


def test_layers_of_different_shapes_are_refused():
    with pytest.raises(ValueError, match=r"all of one shape\) must have rows of equal length"):
        PerLayer([np.eye(2), np.eye(3)])
    with pytest.raises(ValueError, match=r"Q must be None.*got shape \(2,\)"):
        Attention(Q=PerLayer(np.ones((3, 2))))


def test_parameters_are_copies_that_cannot_be_written():
    Q = np.eye(2)
    drift, layers = Attention(Q), PerLayer([Q, Q])
    Q[0, 0] = 7
    assert drift.Q[0, 0] == layers.values[0, 0, 0] == 1
    for array in (drift.Q, drift.V, drift.beta, layers.values):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


@pytest.mark.parametrize("name", ["Q", "K", "V", "output", "beta"])
def test_a_function_without_return_is_not_the_identity(name):
    def forgetful(t):
        np.diag([1, 1, np.cos(t)])

    drift = Attention(**{name: forgetful})
    message = rf"forgetful\(t = 0.5\): {name} must be real numbers; got None.*lack a return"
    with pytest.raises(TypeError, match=message):
        drift.at(0.5)
    if name != "beta":
        assert Attention(**{name: None}).at(0.5).get(name, 1.0) == 1.0


@pytest.mark.parametrize("drift", [USA, SA])
def test_zonal_drifts_say_which_models_take_functions_of_time(drift):
    with pytest.raises(
        TypeError, match=r"beta must be real numbers.* beta, Q, K and V of Attention"
    ):
        drift(lambda t: 1 + t)
