"""When functions are compiled: on first use, and not without a word."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

from meanfield.lowlevel.compilation import INNER, listening

IMPORT_EVERYTHING = """
import importlib, pkgutil
from meanfield.lowlevel.compilation import listening
import meanfield
compiled = []
with listening(compiled.append):
    for module in pkgutil.walk_packages(meanfield.__path__, "meanfield."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(compiled)
"""


def test_nothing_is_compiled_when_modules_are_imported(tmp_path):
    """Neither announced nor written into the cache, which is empty before."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING],
        env=environment,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_what_is_compiled_is_announced_once_and_its_parts_are_not():
    @njit
    def part(x):
        return x + 1

    @njit
    def whole(x):
        return part(x) * 2

    heard = []
    with listening(heard.append):
        assert whole(1.0) == 4.0
        whole(2.0)
    assert heard == ["whole", None]
    with listening(heard.append):
        whole(3.0)
    part(np.float32(1.0))  # nobody listens any more
    assert heard == ["whole", None]


def test_the_end_of_a_compilation_that_fails_is_announced_too():
    @njit
    def wrong(x):
        return x.no_such_attribute

    heard = []
    with listening(heard.append), pytest.raises(Exception, match="no_such_attribute"):
        wrong(1.0)
    assert heard[0] == "wrong" and heard[-1] is None


def test_functions_without_an_entry_from_python_are_called_by_compiled_code():
    @njit(**{**INNER, "cache": False})
    def part(values):
        return values[0] + values[1].sum()

    @njit
    def whole(a, b):
        return part((a, b))

    assert whole(1.0, np.ones(3)) == 4.0
