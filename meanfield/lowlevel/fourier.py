"""Real Fourier transforms on fixed buffers, planned once by FFTW and called by compiled code.

FFTW comes with pyfftw. A call through its Python objects costs 0.3 microseconds, as long as a
transform of length 200, so the time loop calls the FFTW library directly. Plans are made with
FFTW_ESTIMATE: the same plan, hence the same bits, in every process.
"""

import ctypes
import functools
import importlib.util
import math
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..core.system import FFTW_FILES
from .callbacks import call
from .compilation import INNER, hold_at_fork, njit
from .records import Layout, complexes, floats
from .simd import address_of, aligned

ESTIMATE, MEASURE = 1 << 6, 0
PLANNING = threading.Lock()  # FFTW plans and frees plans in one thread at a time
UNUSED: list[int] = []  # addresses of plans that have to be freed
hold_at_fork(PLANNING)

# Even lengths that are faster than all longer ones, with plans by ESTIMATE: benchmarks/lengths.py.
# fmt: off
FAST = (
    12, 16, 20, 32, 36, 40, 48, 50, 64, 72, 90, 100, 120, 144, 150, 180, 192, 200, 240, 256,
    300, 320, 384, 400, 480, 512, 576, 640, 768, 1024, 1152, 1200, 1280, 1536, 1600, 2048,
    2560, 3072, 3200, 4096, 5120, 6400, 7680, 8000, 8192, 10240, 11520, 12800, 15360, 16000,
    16384,
)
# fmt: on


@functools.cache
def _library() -> ctypes.CDLL:
    """FFTW, found through the extension module of pyfftw that is linked to it.

    The package itself is not imported: it imports a good part of scipy.
    """
    package = importlib.util.find_spec("pyfftw")
    folder = Path(next(iter((package and package.submodule_search_locations) or ["."])))
    for path in [path for pattern in FFTW_FILES for path in sorted(folder.glob(pattern))]:
        try:
            library = ctypes.CDLL(str(path))
        except OSError:  # a source file, or a module of another version of Python
            continue
        if hasattr(library, "fftw_plan_many_dft_c2r"):
            for planner in (library.fftw_plan_many_dft_c2r, library.fftw_plan_many_dft_r2c):
                planner.restype = ctypes.c_void_p
            return library
    raise MeanfieldError(
        f"FFTW was not found behind pyfftw ({folder}); expected the function "
        "fftw_plan_many_dft_c2r in it or in a library it links to. "
        "Reinstall pyfftw from a binary wheel (pip install --force-reinstall pyfftw)."
    )


def fftw_version() -> str:
    """The version string of the FFTW library in use."""
    version = (ctypes.c_char * 64).in_dll(_library(), "fftw_version")
    return version.value.decode()


def good_length(n: int) -> int:
    """The shortest fast length >= n: in FAST, or a multiple of 512 without primes beyond 5."""
    if n <= FAST[-1]:
        return next(length for length in FAST if length >= n)
    rows = -(-n // 512)  # 60^k, k large, is a multiple of all numbers without other primes
    while pow(60, rows.bit_length(), rows):
        rows += 1
    return 512 * rows


class RealTransform:
    """Transforms between half spectra and values on n equally spaced points, or a product of such.

        values[j] = sum_{|k| <= n/2} spectrum[k] e^{2 pi i <j, k> / n},   spectrum[-k] = conj

    The last direction has the wave numbers 0, ..., n/2; others have 0, ..., n - 1, where n - k is
    -k.

    Parameters
    ----------
    length : int or tuple of int
        Number of points n, even; or that of each direction.
    rows : int
        The inverse transform takes `rows` spectra at a time, the forward one a row of values.
    measure : bool
        Plan with FFTW_MEASURE: faster by some per cent, but not repeatable (benchmarks only).

    Attributes
    ----------
    spectrum : ndarray of complex, (rows, stride)
    values : ndarray of float, (rows, 2 * stride)
        The buffers, 64-byte aligned; entries beyond the last are padding. The inverse transform
        destroys `spectrum`, the forward one is not normalised. The plans also fit other buffers, at
        addresses that are multiples of 16.
    inverse, forward : (int, int)
        Address of the executing function and of the plan, for `callbacks.call`.
    record : Record
        Buffers and plans for compiled code, see `fill_values` and `fill_spectrum`. It is valid as
        long as this object exists.
    """

    def __init__(self, length: int | tuple[int, ...], rows: int, *, measure: bool = False) -> None:
        """Plan transforms of real rows: inverse ones of all rows, forward ones of one."""
        library, lengths = _library(), length if isinstance(length, tuple) else (length,)
        stride = -(-math.prod(lengths[:-1]) * (lengths[-1] // 2 + 1) // 4) * 4
        self.rows, self.stride = rows, stride
        self.spectrum = aligned(rows, 2 * stride).view(complex)
        self.values = aligned(rows, 2 * stride)
        flags = MEASURE if measure else ESTIMATE
        spectrum, values = (self.spectrum, stride), (self.values, 2 * stride)
        self.inverse = (
            _address(library.fftw_execute_dft_c2r),
            _plan(library.fftw_plan_many_dft_c2r, lengths, rows, spectrum, values, flags),
        )
        self.forward = (
            _address(library.fftw_execute_dft_r2c),
            _plan(library.fftw_plan_many_dft_r2c, lengths, 1, values, spectrum, flags),
        )
        for _, plan in (self.inverse, self.forward):
            weakref.finalize(self, _destroy, plan).atexit = False
        self.record = TRANSFORM.filled(
            inverse=self.inverse[0],
            inverse_plan=self.inverse[1],
            forward=self.forward[0],
            forward_plan=self.forward[1],
            spectrum=self.spectrum,
            values=self.values,
        )


TRANSFORM = Layout(
    "RealTransform",
    {
        **dict.fromkeys(("inverse", "inverse_plan", "forward", "forward_plan"), int),
        "spectrum": complexes("rows", "stride"),
        "values": floats("rows", "width"),
    },
)


@njit(**INNER)
def fill_values(transform: Any) -> None:
    """Inverse transform: fill the values of all rows from the spectra of a record TRANSFORM."""
    spectrum, values = address_of(transform.spectrum), address_of(transform.values)
    call(transform.inverse, transform.inverse_plan, spectrum, values)


@njit(**INNER)
def fill_spectrum(transform: Any) -> None:
    """Forward transform: fill the first spectrum from the first row of values of a record."""
    spectrum, values = address_of(transform.spectrum), address_of(transform.values)
    call(transform.forward, transform.forward_plan, values, spectrum)


def _plan(
    planner: Any, lengths: tuple[int, ...], rows: int, source: Any, target: Any, flags: int
) -> int:
    """Plan `rows` transforms of these lengths at (array, stride) source and target."""
    (source, source_stride), (target, target_stride) = source, target
    with PLANNING:
        plan = planner(
            len(lengths),
            (ctypes.c_int * len(lengths))(*lengths),
            rows,
            *(ctypes.c_void_p(source.ctypes.data), None, 1, source_stride),
            *(ctypes.c_void_p(target.ctypes.data), None, 1, target_stride),
            ctypes.c_uint(flags),
        )
        _free()
    if not plan:
        shape = " x ".join(map(str, lengths))
        raise MeanfieldError(f"FFTW could not plan a transform of length {shape}.")
    return plan


def _destroy(plan: int) -> None:
    """Free a plan, now or later: it must not wait, as garbage collection may run under any lock."""
    UNUSED.append(plan)
    if PLANNING.acquire(blocking=False):
        try:
            _free()
        finally:
            PLANNING.release()


def _free() -> None:
    while UNUSED:
        _library().fftw_destroy_plan(ctypes.c_void_p(UNUSED.pop()))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def to_values(coefficients: np.ndarray, length: int) -> np.ndarray:
    """Values at `length` equally spaced angles from 0, from half spectra along the last axis."""
    return np.fft.irfft(coefficients, n=length, axis=-1, norm="forward")


def to_coefficients(values: np.ndarray, degree: int) -> np.ndarray:
    """Fourier coefficients 0..degree, from values at equally spaced angles along the last axis.

    The first angle is 0.
    """
    return np.fft.rfft(values, axis=-1, norm="forward")[..., : degree + 1]
