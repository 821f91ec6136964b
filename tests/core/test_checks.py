"""Numbers, names and sizes that callers give: what is taken, and what is refused in words."""

import fractions
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf
from meanfield.core import checks

ROOT = Path(__file__).resolve().parents[2]
HUGE = 10**400


@pytest.mark.parametrize(
    "value", [HUGE, [1, HUGE], fractions.Fraction(HUGE, 3)], ids=["number", "entry", "fraction"]
)
def test_numbers_that_no_float_holds_are_refused(value):
    with pytest.raises(ValueError, match=r"beta must be below 1\.8e308"):
        checks.real_array("beta", value)


def test_fractions_and_long_integers_are_numbers():
    given = [fractions.Fraction(1, 4), 2**70]
    np.testing.assert_array_equal(checks.real_array("x", given), [0.25, 2.0**70])
    assert checks.real("x", fractions.Fraction(1, 4), "a number", np.isfinite) == 0.25


@pytest.mark.parametrize(
    "value",
    [
        np.ma.masked_array([0.1, 0.2], [True, False]),
        [np.ma.masked_array([0.1, 0.2], [True, False]), [1.0, 2.0]],
        np.ma.masked,
        np.array(["1", "2"], dtype=object),
        [None],
        b"3",
        np.timedelta64(3, "s"),
        np.datetime64("2020-01-01"),
        [1j],
    ],
    ids=repr,
)
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match=r"^masses must be real numbers"):
        checks.real_array("masses", value)


def test_masked_arrays_without_masks_are_arrays():
    np.testing.assert_array_equal(checks.real_array("x", np.ma.masked_array([1.0, 2.0])), [1, 2])


@pytest.mark.parametrize(
    "value", [HUGE, 10**5000, 2**63], ids=["401 digits", "5001 digits", "2^63"]
)
def test_counts_have_63_bits(value):
    with pytest.raises(ValueError, match=r"n must be .* >= 1 and below 2\^63; got n = .{,220}$"):
        checks.whole_number("n", value)


def test_what_has_no_repr_is_named_by_its_type():
    class Lying:
        def __repr__(self):
            raise RuntimeError

    assert checks.as_given(Lying()) == "a value of type Lying"
    assert checks.as_given(10**5000) == "a value of type int"
    assert len(checks.as_given("x" * 5000)) < 210


@pytest.mark.parametrize("rng", [-1, [1, -1], "3", 1.0, [1, 2.5], [], True])
def test_seeds_are_whole_numbers(rng):
    with pytest.raises((TypeError, ValueError), match="rng must be a numpy Generator, or a seed"):
        checks.generator(rng)


@pytest.mark.parametrize(
    "rng", [np.random.RandomState(1), [1, 2], np.arange(4), np.array(1), 2**80]
)
def test_what_numpy_takes_as_a_seed_is_one(rng):
    checks.generator(rng)


def test_seeds_that_python_does_not_write_to_files_are_refused():
    for seed in (10**4300 - 1, [1, 10**5000]):  # of a list, files keep the state of the generator
        checks.generator(seed)
    with pytest.raises(ValueError, match=r"rng must be a seed of at most 4300 digits"):
        checks.generator(10**4300)


def test_durations_are_no_whole_numbers():
    day = np.timedelta64(3, "D")
    assert [checks.is_whole(n) for n in (3, np.int8(3), day, True, 3.0)] == [True] * 2 + [False] * 3
    for duration in (day, np.timedelta64(3), np.timedelta64(3, "ns"), np.array(3, "m8[ns]")):
        for check in (checks.whole_number, checks.positive):
            with pytest.raises((TypeError, ValueError), match=r"got n = .*timedelta64"):
                check("n", duration)


@pytest.mark.parametrize("rng", [[[1], [2]], np.arange(4).reshape(2, 2)])
def test_tables_of_seeds_are_refused(rng):  # by some versions of numpy too
    with pytest.raises(ValueError, match=r"rng must be a seed, or a list"):
        checks.generator(rng)


def test_masked_seeds_are_refused():
    with pytest.raises(TypeError, match=r"rng must be .* masked"):
        checks.generator(np.ma.masked)


def test_arrays_without_axes_are_numbers():
    assert checks.positive("x", np.array(0.5)) == 0.5
    assert checks.whole_number("n", np.array(3)) == 3


@pytest.mark.parametrize("name", ["x" * 256, "x/" * 2500, "a\0b", "\ud800", b"x", 3], ids=ascii)
def test_names_that_no_file_has_are_refused(name):
    with pytest.raises((TypeError, ValueError), match=r"^path must be a"):
        checks.path_of("path", name)


# Memory ------------------------------------------------------------------------------------------


SIZES = {
    "tokens": "mf.Tokens.uniform(10**6, 10**3, rng=0)",
    "circle": "mf.Circle(10**9)",
    "sphere": "mf.Sphere(10**4)",
    "matrix": "goe(10**5, rng=0)",
    "times": "mf.solve(M, mf.Circle(64).uniform(), (0, 1), t_eval=mf_linspace(10**9))",
    "replicas": "mf.propagation_of_chaos(M, mf.Circle(8).uniform(), [4], [1.0], 10**12, rng=0)",
    "outputs": "mf.solve(M, mf.Circle(10**5).uniform(), (0, 1), t_eval=np.linspace(0, 1, 10**4))",
    "projections": "mf.sliced_wasserstein(T, T, projections=10**9)",
    "bins": "mf.inner_product_histogram(T, bins=10**9)",
    "sample": "mf.Circle(8).uniform().sample(10**9, rng=0)",
    "nodes": "mf.Characteristics(mf.Circle(8).uniform(), nodes=9 * 10**7)",
}
SCRIPT = """
import resource
import numpy as np
import meanfield as mf
from meanfield.models.ensembles import goe
from meanfield.solving.arguments import Linspace as mf_linspace
M, T = mf.Transformer(mf.Kuramoto(), 1.0), mf.Tokens.uniform(4, 3, rng=0)
mf.solve(M, mf.Circle(8).uniform(), (0, 1e-3))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.{limit}, (used + 10**9, used + 10**9))
for name, call in {calls!r}.items():
    try:
        eval(call)
    except ValueError as error:
        print(name, error)
"""


@pytest.mark.repeats
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="sizes are told by Linux only")
@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_sizes_beyond_a_ulimit_are_refused_before_they_are_taken(limit):
    script = SCRIPT.format(limit=limit, calls=SIZES)
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    for name, line in zip(SIZES, done.stdout.splitlines(), strict=True):
        assert line.startswith(name)
        assert "bytes (" in line and "are available; reduce " in line


def test_sizes_beyond_this_machine_are_refused_at_once():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for call in (lambda: mf.Sphere(10**5), lambda: mf.Tokens.uniform(10**9, 10**6, rng=0)):
        with pytest.raises(ValueError, match=r"bytes \(.*GB\) are needed.*; reduce"):
            call()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 10**5  # in kB
