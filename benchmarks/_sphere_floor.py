"""The transforms of one evaluation of the transport on S^2, and nothing else.

One synthesis of all degrees, two of the few degrees of the potential, the FFTs, two analyses at
once: by the functions that the package uses, which are the fastest we know of.
"""

from collections.abc import Callable

import numpy as np
from numba import njit

from meanfield.lowlevel.batched_fft import ROW, radices, transform, twiddles
from meanfield.lowlevel.legendre import BLOCK, analyse, rules_at, synthesise
from meanfield.lowlevel.simd import LANES, aligned
from meanfield.spaces.sphere_transport import SphereTransport

__all__ = ["transforms"]


def transforms(transport: SphereTransport, evaluations: int) -> Callable[[], None]:
    """A run of the transforms of so many evaluations, in a compiled loop."""
    latitudes, n = transport.latitudes, transport.length
    record = transport._record
    degree, band, fields = latitudes.degree, record.band, len(record.spectra)
    pairs, rows = latitudes.pairs(0), aligned(8, latitudes.x.size)
    folded, found = aligned(4, pairs), aligned(pairs, 8)
    factors = radices(n)
    arrays = aligned(fields, n, ROW // 8), aligned(fields, n, ROW // 8), aligned(n, ROW // 8)
    plan = (*arrays, np.array(factors), twiddles(factors))
    rules = latitudes.rules()

    def run() -> None:
        _repeat(rules.address, folded, found, rows, plan, degree, band, evaluations)

    return run


@njit(cache=True)
def _repeat(address, folded, found, rows, plan, degree, band, evaluations):
    spectra, values, scratch, factors, turns = plan
    rules, table = rules_at(address), turns.ctypes.data
    for _ in range(evaluations):
        for m in range(degree + 1):
            synthesise(m, rules, folded, _steps_of(degree + 1 - m, BLOCK), rows[:4])
            if m <= band:
                synthesise(m, rules, folded, _steps_of(band + 2 - m, BLOCK), rows[:4])
                synthesise(m, rules, folded, _steps_of(band + 1 - m, BLOCK), rows[:4])
        for _ in range(0, rows.shape[1], LANES):
            for f in range(len(spectra)):
                source, target = spectra[f].ctypes.data, values[f].ctypes.data
                transform(source, target, scratch.ctypes.data, factors, table)
            for f in range(2):
                source, target = values[f + 1].ctypes.data, values[f].ctypes.data
                transform(source, target, scratch.ctypes.data, factors, table)
        for m in range(degree + 1):
            analyse(m, rules, rows, found, _steps_of(degree + 2 - m, 2))


@njit(cache=True)
def _steps_of(degrees, block):
    """Pairs of degrees, in whole blocks."""
    return (degrees + 2 * block - 1) // (2 * block) * block
