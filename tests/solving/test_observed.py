"""Functions of the caller's that are measured along a run, by `observe=`."""

import numpy as np
import pytest

import meanfield as mf

START = mf.Circle(16).von_mises(0.0, 1.0)
X = mf.Tokens.uniform(12, 3, rng=0)
TOKENS = mf.Transformer(mf.SA(1.0))
ENSEMBLE = mf.Transformer(mf.SA([1.0, 2.0]))
DENSITY = mf.Transformer(mf.Kuramoto(), 3.0)
SHORT = {"t_span": (0, 0.2), "t_eval": [0.1, 0.2]}


@pytest.mark.parametrize("name", ["a/b", "/x", "", "a b", "1st", ".hidden"])
def test_a_name_that_files_cannot_hold_is_refused(name):
    with pytest.raises(ValueError, match="letters, digits and underscores"):
        mf.solve(TOKENS, X, observe={name: len}, **SHORT)


@pytest.mark.parametrize(
    ("model", "state", "name"),
    [
        (TOKENS, X, "token"),
        (TOKENS, X, "masses"),
        (TOKENS, X, "speed"),
        (TOKENS, X, "kappa"),
        (ENSEMBLE, X, "member"),
        (ENSEMBLE, X, "beta"),
        (DENSITY, START, "k"),
        (DENSITY, START, "degree"),
        (DENSITY, START, "moment_re"),
        (DENSITY, START, "theta"),
    ],
)
def test_a_name_that_is_taken_is_refused(model, state, name):
    with pytest.raises(ValueError, match=f"'{name}' is an observable.*mass"):
        mf.solve(model, state, observe={name: lambda state: 1.0}, **SHORT)


def test_the_axes_of_arrays_are_taken_too():
    observe = {"mean": lambda state: state.x.mean(axis=0), "mean_0": lambda state: 1.0}
    with pytest.raises(ValueError, match="'mean_0'"):
        mf.solve(TOKENS, X, observe=observe, **SHORT)


def test_what_is_observed_in_an_ensemble_is_told_from_its_parameter(tmp_path):
    run = mf.solve(ENSEMBLE, X, observe={"first": lambda state: state.x[..., 0, 0]}, **SHORT)
    again = mf.load(run.save(tmp_path / "run.nc"))
    assert again.observables["first"].dims == ("t", "member")
    np.testing.assert_array_equal(again.observables["beta"], [1.0, 2.0])


@pytest.mark.parametrize("value", ["a", None, 1j, [[1.0], [1.0, 2.0]]], ids=repr)
def test_what_is_no_number_is_refused_before_the_run(value):
    with pytest.raises((TypeError, ValueError), match=r"observe\['peak'\]"):
        mf.solve(TOKENS, X, (0, 1e9), observe={"peak": lambda state: value})


def late(state):
    if not np.array_equal(state.x, X.x):
        raise KeyError("late")
    return 1.0


def test_a_function_that_fails_does_not_lose_the_run(tmp_path):
    """Its shape is known from the first state; where it fails or changes, there is nan."""
    sizes = iter([2, 2, 3])
    observe = {"late": late, "list": lambda state: np.ones(next(sizes)), "good": lambda s: 1.0}
    with pytest.warns(RuntimeWarning) as told:
        run = mf.solve(TOKENS, X, observe=observe, **SHORT)
    assert run.success
    first, second = (str(warning.message) for warning in told)
    assert "'late'" in first and "2 of 2 times" in first and "t = 0.1: KeyError('late')" in first
    assert "'list'" in second and "t = 0.2" in second and "(3,)" in second and "(2,)" in second
    assert all(warning.filename == __file__ for warning in told)
    found = mf.load(run.save(tmp_path / "run.nc")).observables
    np.testing.assert_array_equal(found["late"], [np.nan, np.nan])
    np.testing.assert_array_equal(found["list"], [[1, 1], [np.nan, np.nan]])
    np.testing.assert_array_equal(found["good"], [1, 1])
