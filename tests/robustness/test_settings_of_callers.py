"""What a caller has set for NumPy and numba does not reach into the package."""

import os
import subprocess
import sys

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(16)
MU = CIRCLE.von_mises(0.0, 1.0)
A, B = (mf.Tokens.uniform(n, 2, rng=n) for n in (10, 12))
CALLS = {
    "branches": lambda: mf.branches(mf.USA(4.0), CIRCLE, (0.3, 0.6), progress=False).data.kappa,
    "phase_diagram": lambda: mf.phase_diagram(mf.USA, CIRCLE, (3, 3.1), progress=False).data.kappa,
    "stationary": lambda: mf.stationary(mf.Transformer(mf.Kuramoto(), 3.0), MU).free_energy,
    "solve": lambda: (
        mf.solve(mf.Transformer(mf.SA(4.0), 9.0), MU, (0, 0.1), progress=False).final.coefficients
    ),
    "sinkhorn_divergence": lambda: mf.sinkhorn_divergence(A, B, blur=0.02).value,
    "wasserstein": lambda: mf.wasserstein(MU, A).value,
    "mmd": lambda: mf.mmd(A, B, beta=200.0).value,
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", CALLS)
def test_underflow_is_no_error_though_the_caller_made_it_one(name):
    expected = CALLS[name]()
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(CALLS[name](), expected)
        assert np.geterr()["under"] == "raise"


def test_numba_without_its_compiler_is_told_of():
    model, start = "mf.Transformer(mf.SA(1.0), 2.0)", "mf.Circle(8).von_mises(0, 0.1)"
    call = f"import meanfield as mf; mf.solve({model}, {start}, (0, 1))"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", call], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 1 and "NUMBA_DISABLE_JIT" in done.stderr.splitlines()[-1]
