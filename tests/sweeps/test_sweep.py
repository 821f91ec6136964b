"""Sweeps: what they return, random numbers, failures, and what is refused."""

import asyncio
import decimal
import itertools
import re
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xarray as xr
from swept import drawn, fails_at_two, product, slow

import meanfield as mf
from meanfield.sweeps.points import Grid

KEY_OF_BETA_3 = "16c533025ae9d7aa4d297fc17d6364ea07dde605273d53b04f33bf272df3e4fb"


def test_the_dataset_has_the_parameters_for_axes():
    found = mf.sweep(product, {"beta": [1.0, 2.0], "kappa": np.arange(3)})
    expected = xr.DataArray(
        [[0.0, 1.0, 2.0], [0.0, 2.0, 4.0]],
        {"beta": [1.0, 2.0], "kappa": [0, 1, 2]},
        ("beta", "kappa"),
    )
    xr.testing.assert_equal(found["value"], expected)
    assert found.attrs["status"] == "finished" and found.attrs["axes"] == ["beta", "kappa"]


@pytest.mark.bits
def test_numbers_drawn_depend_on_seed_parameters_and_replica_only():
    whole = mf.sweep(drawn, {"beta": [1, 2, 3]}, replicas=4, rng=5)
    part = mf.sweep(drawn, {"beta": [3, 7, 2]}, replicas=2, rng=5)["noise"].sel(beta=[2, 3])
    xr.testing.assert_equal(part, whole["noise"].sel(beta=[2, 3], replica=[0, 1]))
    one = mf.sweep(drawn, {"beta": [3]}, rng=5)["noise"]
    xr.testing.assert_equal(one, whole["noise"].sel(beta=[3]).isel(replica=0, drop=True))
    assert len(np.unique(whole["noise"])) == 36
    (point,) = Grid.of({"beta": [3]}, None).points(lambda value: value)
    assert point.key == KEY_OF_BETA_3  # or numbers of all sweeps change
    with ThreadPoolExecutor(3) as threads:
        assert mf.sweep(drawn, {"beta": [1, 2, 3]}, replicas=4, rng=5, executor=threads).equals(
            whole
        )


def test_kinds_and_text_are_parameters_too():
    found = mf.sweep(
        lambda drift, name: {"beta": drift.beta, "word": name * 2},
        {"drift": [mf.USA(2.0), mf.SA(3.0)], "name": ["a", "bc"]},
    )
    assert list(found["drift"].values) == ["USA(beta=2.0)", "SA(beta=3.0)"]
    assert found["word"].sel(name="bc").values.tolist() == ["bcbc", "bcbc"]


def test_a_solution_stands_for_its_observables_and_runs_may_end_at_different_times():
    circle = mf.Circle(16)

    def solved(kappa):
        model = mf.Transformer(mf.Kuramoto(), kappa=kappa)
        t = np.linspace(0, 1, 3 + int(kappa))
        return mf.solve(model, circle.von_mises(0, 1.0), (0, 1), t_eval=t, progress=False)

    found = mf.sweep(solved, {"kappa": [1.0, 2.0]})
    alone = solved(1.0).observables["order_parameter"].values
    np.testing.assert_array_equal(found["order_parameter"].sel(kappa=1.0)[:4], alone)
    assert np.isnan(found["order_parameter"].sel(kappa=1.0)[4])
    assert found["t_of_point"].sel(kappa=2.0)[-1] == 1 and (found["status"] == "finished").all()
    same = mf.sweep(lambda kappa: solved(1 + 0.1 * kappa), {"kappa": [1.0, 2.0]})
    assert same["t"].dims == ("t",) and same["k"].values.tolist() == list(range(1, 9))


def test_failures_are_kept_with_their_message_or_raised_with_their_parameters():
    found = mf.sweep(fails_at_two, {"i": [1, 2, 3]}, errors="keep")
    assert found["error"].values.tolist() == ["", "ValueError: two will not do", ""]
    np.testing.assert_array_equal(found["i squared"], [1, np.nan, 9])
    np.testing.assert_array_equal(np.isnan(found["ones"]).sum("ones_0"), [2, 4, 0])
    with pytest.raises(mf.MeanfieldError, match="point i = 2 failed: ValueError: two") as caught:
        mf.sweep(fails_at_two, {"i": [1, 2, 3]})
    assert "raise ValueError" in caught.value.__notes__[0]


def test_an_error_without_a_readable_message_is_kept_by_its_name():
    class Mute(Exception):
        def __str__(self):
            raise ValueError

    def fails(i):
        raise Mute

    assert mf.sweep(fails, {"i": [1]}, errors="keep")["error"] == "Mute"


def test_labelled_arrays_are_sequences_of_their_values():
    found = mf.sweep(lambda i: 2 * i, {"i": xr.DataArray([1, 2], dims="x")})
    assert found["value"].values.tolist() == [2, 4] and found["i"].values.tolist() == [1, 2]


def test_failed_points_are_run_again_unless_errors_are_kept(tmp_path, capsys):
    calls = tmp_path / "calls"  # a list would be part of what f is

    def fails_at_first(i):
        with calls.open("a") as file:
            file.write(f"{i} ")
        if calls.read_text() == "5 6 ":
            raise OSError("the disk is full")
        return i

    path, at = tmp_path / "store", {"i": [5, 6, 7]}
    with pytest.raises(mf.MeanfieldError, match="i = 6 failed: OSError"):
        mf.sweep(fails_at_first, at, store=path)
    again = mf.sweep(fails_at_first, at, store=path, progress=True)
    assert again["value"].values.tolist() == [5, 6, 7]
    assert re.search(r"sweep 3/3 \(\d from the store\)", capsys.readouterr().err)
    assert calls.read_text() == "5 6 6 7 "


def test_ctrl_c_ends_a_sweep_and_the_point_that_it_fell_into_does_not_count(tmp_path):
    circle, model = mf.Circle(16), mf.Transformer(mf.Kuramoto(), kappa=1.0)
    asked = tmp_path / "asked"

    def final(i):
        def ask(_t, _state):
            if i == 1 and not asked.exists():
                asked.touch()
                signal.raise_signal(signal.SIGINT)

        run = mf.solve(model, circle.von_mises(0, 1.0), (0, 1), callback=ask, progress=False)
        return run.t[-1]  # of a run that ended early, and nobody looks

    at = {"i": [0, 1, 2]}
    half = mf.sweep(final, at, store=tmp_path / "store", errors="keep")
    assert half.attrs["status"] == "interrupted"
    np.testing.assert_array_equal(half["value"], [1.0, np.nan, np.nan])
    assert half["error"].values.tolist() == ["", "not run", "not run"]
    whole = mf.sweep(final, at, store=tmp_path / "store", errors="keep")
    assert whole["value"].values.tolist() == [1.0, 1.0, 1.0]


def test_ctrl_c_leaves_other_jobs_alone_that_run_already():
    entered, go_on = threading.Event(), threading.Event()

    def waits(i):
        entered.set()
        go_on.wait(5)
        time.sleep(0.01)
        return i

    def interrupt():
        entered.wait(5)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        go_on.set()

    threading.Thread(target=interrupt).start()
    with ThreadPoolExecutor(1) as pool:
        found = mf.sweep(waits, {"i": range(50)}, executor=pool)
    done = int(found["value"].notnull().sum())
    assert found.attrs["status"] == "interrupted" and 1 <= done < 50


@pytest.mark.parametrize(
    ("call", "words"),
    {
        "f": (lambda: mf.sweep(3, {"i": [1]}), "f must be a function"),
        "no parameters": (lambda: mf.sweep(product, {}), "parameters must be .* at least one"),
        "no values": (lambda: mf.sweep(slow, {"i": []}, rng=1), "parameters of i must be"),
        "a number": (lambda: mf.sweep(slow, {"i": 3}, rng=1), "sequence of values"),
        "other names": (lambda: mf.sweep(product, {"beta": [1]}), "missing .* 'kappa'"),
        "no rng": (lambda: mf.sweep(slow, {"i": [1]}), "rng must be a seed"),
        "replicas": (lambda: mf.sweep(fails_at_two, {"i": [1]}, replicas=3), "replicas must be"),
        "executor": (lambda: mf.sweep(slow, {"i": [1]}, rng=1, executor="many"), "executor must"),
        "errors": (lambda: mf.sweep(slow, {"i": [1]}, rng=1, errors="no"), "errors must be"),
        "batch": (lambda: mf.sweep(slow, {"i": [1]}, rng=1, batch=2), "batch must be 1"),
        "twice": (
            lambda: mf.sweep(fails_at_two, {"i": [1, 3, 1.0]}),
            "of i must be values that di",
        ),
        "objects": (lambda: mf.sweep(fails_at_two, {"i": [[1], [1]]}), "of i must be"),
        "locks": (lambda: mf.sweep(fails_at_two, {"i": [threading.Lock()]}), "told from others"),
        "no replicas": (lambda: mf.sweep(drawn, {"beta": [1]}, replicas=0, rng=1), "replicas must"),
        "a set": (lambda: mf.sweep(fails_at_two, {"i": {1, 3}}), "sequence of values"),
        "a name": (
            lambda: mf.sweep(lambda replica, rng: 1, {"replica": [1]}, replicas=2, rng=1),
            "names of par",
        ),
        "taken": (lambda: mf.sweep(lambda error: 1, {"error": [1]}, errors="keep"), "names of par"),
        "a generator": (
            lambda: mf.sweep(drawn, {"beta": [1]}, rng=np.random.default_rng(1)),
            "rng must be",
        ),
    }.values(),
)
def test_what_makes_no_sense_is_refused(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.parametrize("value", [None, [[1], [1, 2]], {"error": 1.0}, {"a/b": 1.0}, object()])
def test_what_f_must_not_return_is_a_failure(value):
    with pytest.raises(mf.MeanfieldError, match=r"point i = 1 failed: .*Error: f must return"):
        mf.sweep(lambda i: value, {"i": [1]})


@pytest.mark.parametrize(
    "value", [np.ma.array([1.0, 2.0], mask=[False, True]), xr.Dataset({"a": ("q", [object()])})]
)
def test_what_would_be_kept_as_something_else_is_a_failure(value):
    with pytest.raises(mf.MeanfieldError, match="TypeError: f must return a number"):
        mf.sweep(lambda i: value, {"i": [1]})


def test_what_exits_is_a_failure_and_so_is_a_generator():
    found = mf.sweep(
        lambda i: sys.exit(f"{i}") if i else (x for x in "ab"), {"i": [0, 1]}, errors="keep"
    )
    assert found["error"].values[1] == "SystemExit: 1"
    assert "f must return a number" in found["error"].values[0]


class Own(BaseException):
    """No Exception, as those of other languages that call Python."""


def test_whatever_is_raised_is_a_failure():
    def fails(i):
        raise (Own, GeneratorExit, asyncio.CancelledError)[i]

    found = mf.sweep(fails, {"i": [0, 1, 2]}, errors="keep")
    assert found["error"].values.tolist() == ["Own", "GeneratorExit", "CancelledError"]


@pytest.mark.parametrize("values", [range(10**10), range(10**20), np.broadcast_to(1.0, 10**11)])
def test_more_values_than_memory_holds_are_refused_before_they_are_read(values):
    with pytest.raises(ValueError, match=r"parameters of i: .* reduce their number"):
        mf.sweep(fails_at_two, {"i": values})


def test_an_iterator_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("meanfield.core.checks.available_memory", lambda: 10**8)
    with pytest.raises(ValueError, match=r"parameters of i: .* reduce their number"):
        mf.sweep(fails_at_two, {"i": itertools.count()})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, "1", "a"], ["1", "'1'", "'a'"]),
        ([2**53, 2**53 + 1, 0.5], ["9007199254740992", "9007199254740993", "0.5"]),
        ([2**63, 2**63 + 1, -1], [f"{2**63}", f"{2**63 + 1}", "-1"]),
        (["a", "a\0"], ["'a'", "'a\\x00'"]),
        ([b"a", "a"], ["b'a'", "'a'"]),
        ([1, 0.5, np.nan], [1.0, 0.5, np.nan]),
        (["a", "b"], ["a", "b"]),
        ([2**63, 1], [2**63, 1]),
    ],
)
def test_values_that_differ_are_coordinates_that_differ(values, expected):
    found = mf.sweep(lambda i: 1, {"i": values})["i"].values
    assert len(np.unique(found)) == len(values)
    np.testing.assert_array_equal(found, np.array(expected))


@pytest.mark.parametrize("other", [0.5, 2**63 + 1, ZeroDivisionError()])
def test_integers_that_are_rounded_are_told_of(other):
    def f(i):
        if i and isinstance(other, Exception):
            raise other
        return other if i else 2**53 + 1

    with pytest.warns(mf.StorageWarning, match=r"value has integers beyond 9.01e\+15"):
        mf.sweep(f, {"i": [0, 1]}, errors="keep")
    found = mf.sweep(lambda i: 2**53 + i, {"i": [0, 1]})["value"].values
    assert found.tolist() == [2**53, 2**53 + 1]


@pytest.mark.parametrize("value", [10**5000, decimal.Decimal("sNaN")], ids=["long", "sNaN"])
def test_numbers_that_cannot_be_compared_or_printed_are_refused_by_name(value, tmp_path):
    with pytest.raises(TypeError, match="parameters of i must be"):
        mf.sweep(lambda i: 1, {"i": [1, value]})
    with pytest.raises(mf.MeanfieldError, match="point i = 1 failed: TypeError: f must return"):
        mf.sweep(lambda i: value, {"i": [1]})
    found = mf.sweep(lambda i: i is value, {"i": [1]}, store=tmp_path / "store")
    assert not found["value"].values.any()  # what f holds is told by its contents


def takes_out(some, more):
    """Changes both of its arguments."""
    some.append(len(some))
    more["x"] *= 2
    return {"n": len(some), "x": more["x"]}


def test_a_function_that_changes_its_arguments_gives_the_same_everywhere():
    at = {"some": [[], [1]], "more": [{"x": np.array([1.0])}, {"x": np.array([3.0])}]}
    found = mf.sweep(takes_out, at)
    assert found["n"].values.tolist() == [[1, 1], [2, 2]]
    assert found["x"].values[..., 0].tolist() == [[2, 6], [2, 6]]
    assert at["some"] == [[], [1]] and at["more"][0]["x"] == 1.0
    with ThreadPoolExecutor(2) as threads:
        assert mf.sweep(takes_out, at, executor=threads).identical(found)


def test_variables_have_the_same_axes_everywhere_and_no_name_of_a_parameter():
    with pytest.raises(mf.MeanfieldError, match="value as text at one point and as a number"):
        mf.sweep(lambda i: "one" if i == 1 else i, {"i": [1, 2]})
    with pytest.raises(mf.MeanfieldError, match="at all points"):
        mf.sweep(lambda i: np.ones((2,) * i), {"i": [1, 2]})
    for value in ({"i": 1}, xr.DataArray([1.0, 2.0], dims="i")):
        with pytest.raises(mf.MeanfieldError, match="i, which is a parameter"):
            mf.sweep(lambda i, value=value: value, {"i": [1, 2]})
