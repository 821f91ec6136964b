"""What `make test-restricted` leaves a processor with."""

import json
import os
import subprocess
import sys

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
from restricted import restrictions, too_wide

SHOWN = """
import json
import numba, numpy, scipy.linalg, threadpoolctl
from numba.core.registry import cpu_target
from numpy._core import _multiarray_umath as umath

libraries = threadpoolctl.threadpool_info()
print(json.dumps([
    [library["architecture"] for library in libraries if library["internal_api"] == "openblas"],
    list(cpu_target.target_context.codegen().magic_tuple()),
    [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)],
]))
"""


@pytest.mark.parametrize(
    ("dispatched", "there", "wanted"),
    [
        (["X86_V3", "X86_V4", "AVX512_ICL", "AVX512_SPR"], {"X86_V3"}, []),
        (["X86_V3", "X86_V4", "AVX512_ICL"], {"X86_V3", "X86_V4"}, ["X86_V4"]),
        (["AVX2", "FMA3", "AVX512F", "AVX512_SKX"], {"AVX2", "AVX512F"}, ["AVX512F"]),
    ],
)
def test_numpy_leaves_out_what_the_processor_has(dispatched, there, wanted):
    assert too_wide(dispatched, {name: name in there for name in dispatched}) == wanted


def test_nothing_is_left_of_avx_512():
    given = restrictions(__cpu_dispatch__, __cpu_features__)
    if not given:
        pytest.skip("no AVX2 on this processor")
    command = [sys.executable, "-W", "error", "-c", SHOWN]
    found = subprocess.run(
        command, env={**os.environ, **given}, capture_output=True, text=True, check=True
    )
    libraries, numba, numpy = json.loads(found.stdout)
    assert set(libraries) <= {"Haswell"}
    assert "haswell" in numba and not any("+avx512" in str(part) for part in numba)
    assert not any("512" in name or name == "X86_V4" for name in numpy)
