"""Which lengths of real transforms are fast when FFTW plans by ESTIMATE.

    python benchmarks/lengths.py [--longest 16384] [--small]

Prints the even lengths without prime factors beyond 5 that no longer length beats: the tuple
FAST of `lowlevel.fourier`. One inverse transform of two rows and one forward transform are
timed together, as a time step takes them; best of several rounds, so that other load on the
machine matters little. Takes about two minutes.
"""

import time

import numpy as np
from _small import parser, sized
from numba import njit

from meanfield.lowlevel.callbacks import call
from meanfield.lowlevel.fourier import RealTransform

ROUNDS = sized(12, 1)
TIE = 1.02


@njit
def _repeat(inverse, inverse_plan, forward, forward_plan, spectrum, values, count):
    for _ in range(count):
        call(inverse, inverse_plan, spectrum, values)
        call(forward, forward_plan, values, spectrum)


def smooth_lengths(longest: int) -> list[int]:
    """Even numbers 2^a 3^b 5^c from 12 to `longest`."""
    found = {
        2**a * 3**b * 5**c
        for a in range(1, 20)
        for b in range(12)
        for c in range(9)
        if 12 <= 2**a * 3**b * 5**c <= longest
    }
    return sorted(found)


def seconds(lengths: list[int]) -> np.ndarray:
    """Seconds for one set of transforms of every length, the best of all rounds."""
    transforms = [RealTransform(length, rows=2) for length in lengths]
    best = np.full(len(lengths), np.inf)
    for _ in range(ROUNDS):
        for i, transform in enumerate(transforms):
            count = max(5, 200_000 // lengths[i])
            buffers = transform.spectrum.ctypes.data, transform.values.ctypes.data
            began = time.perf_counter()
            _repeat(*transform.inverse, *transform.forward, *buffers, count)
            best[i] = min(best[i], (time.perf_counter() - began) / count)
    return best


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--longest", type=int, default=sized(16384, 64))
    lengths = smooth_lengths(options.parse_args().longest)
    seconds(lengths[:2])
    times = seconds(lengths)
    best_beyond = np.minimum.accumulate(times[::-1])[::-1]
    fast = [n for n, t, b in zip(lengths, times, best_beyond, strict=True) if t <= b * TIE]
    print("FAST =", tuple(fast))


if __name__ == "__main__":
    main()
