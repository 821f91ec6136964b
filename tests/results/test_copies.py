"""Copies and pickles of results: the same numbers, and arrays that stay read-only."""

import copy
import pickle
from functools import cache

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(16)
WAYS = {"pickle": lambda one: pickle.loads(pickle.dumps(one)), "deepcopy": copy.deepcopy}


@cache
def solved():
    model = mf.Transformer(mf.Kuramoto(), 3.0)
    return mf.solve(model, CIRCLE.von_mises(0, 1.0), (0, 0.1), progress=False)


@cache
def branches():
    return mf.branches(mf.Kuramoto(), CIRCLE, (1.8, 2.2), degrees=[1], progress=False)


@cache
def plane():
    return mf.phase_diagram(mf.USA, CIRCLE, (3.0, 3.1), progress=False)


RESULTS = {"solution": solved, "diagram": branches, "phase diagram": plane}


def read_only(one, path="", seen=None):
    """Where an object of the package holds read-only arrays."""
    seen = {} if seen is None else seen
    if id(one) in seen:
        return set()
    seen[id(one)] = one
    if isinstance(one, np.ndarray):
        return set() if one.flags.writeable else {path}
    if isinstance(one, dict):
        parts = one.items()
    elif isinstance(one, list | tuple):
        parts = enumerate(one)
    elif type(one).__module__.startswith("meanfield."):
        parts = getattr(one, "__dict__", {}).items()
    else:
        return set()
    return set().union(*(read_only(part, f"{path}.{name}", seen) for name, part in parts))


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", RESULTS)
def test_arrays_that_are_read_only_are_so_in_copies(name, way):
    result = RESULTS[name]()
    kept = read_only(way(result))
    assert read_only(way(way(result))) == kept
    cached = {".stored"}  # and what was computed, which copies do not have
    mine = {where for where in read_only(result) if not where.startswith(tuple(cached))}
    lost = [where for where in mine - kept if _is_there(way(result), where)]
    assert not lost


def _is_there(one, where):
    """Whether a copy has that array too: it may be computed when it is asked for."""
    for name in where.split(".")[1:]:
        try:
            if isinstance(one, list | tuple):
                one = one[int(name)]
            else:
                one = one[name] if isinstance(one, dict) else vars(one)[name]
        except (KeyError, IndexError, ValueError):
            return False
    return True


@pytest.mark.parametrize("way", [*WAYS.values(), copy.copy], ids=[*WAYS, "copy"])
def test_a_phase_diagram_that_was_copied_has_the_same_curves(way):
    result = plane()
    found = way(result)
    assert found.data.identical(result.data)
    for beta in (3.0, 3.05):
        assert found.kappa("critical", beta) == result.kappa("critical", beta)
        assert found.kappa("fold", beta) == result.kappa("fold", beta)
