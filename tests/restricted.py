"""The tests of equal bits, as a processor without AVX-512 runs them: `make test-restricted`.

OpenBLAS, numpy and numba take the widest instructions that a processor has, and so add up in
another order on another one. Here they are told to take those of 2013: AVX2 and FMA. What FFTW and
ducc0 take cannot be told. BLAS has its own number of threads, of which `make test` has one.
Arguments go to pytest.
"""

import os
import sys

from numpy._core import _multiarray_umath as umath

AVX2 = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.2"
RESTRICTED = {
    "OPENBLAS_CORETYPE": "Haswell",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": AVX2,
}


def too_wide(dispatched, features):
    """The names by which numpy leaves out what a processor has beyond AVX2.

    Those of AVX-512, of which numpy knows one as X86_V4. It warns of names that the processor or
    numpy does not have.
    """
    wide = [name for name in dispatched if name.startswith("AVX512") or name == "X86_V4"]
    return [name for name in wide if features.get(name)]


def restrictions(dispatched, features):
    """Variables of the environment; none where there is no AVX2 to restrict a processor to."""
    if not (features.get("AVX2") and features.get("FMA3")):
        return {}
    return RESTRICTED | {"NPY_DISABLE_CPU_FEATURES": " ".join(too_wide(dispatched, features))}


def main(arguments):
    """Run pytest in place of this process."""
    given = restrictions(umath.__cpu_dispatch__, umath.__cpu_features__)
    if not given:
        print("There is no AVX2 on this processor, so that it is not restricted.")
    command = [sys.executable, "-m", "pytest", "--long", "-m", "bits", *arguments]
    threads = {"OPENBLAS_NUM_THREADS": str(os.cpu_count())}
    os.execve(sys.executable, command, {**threads, **os.environ, **given})


if __name__ == "__main__":
    main(sys.argv[1:])
