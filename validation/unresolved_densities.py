"""Claim: a density of one harmonic that its space does not resolve is made with a warning.

f = 1 + a p_k has one harmonic of degree k: cos k theta on the circle, P_k on S^2 and S^4. Degrees
above that of the space leave no trace in the coefficients, or appear as lower ones (aliasing), so
that the tail of the coefficients may be 0. `Space.density` compares f with its series on two finer
grids, on which k may be aliased too.

    warning     for every k from 9 to 195 (120 on spheres) there is one, for k < 7 there is none.
    escaped     k = 196 and 284 on the circle, the only ones up to 400: they are aliased to one
                lower degree on all three grids (found, not predicted).
    error       on the circle, the root mean square error that the warning says is at least that of
                the series, by a trapezoidal rule of 4096 points, to the two digits said, and at
                most 1.5 times as much.

    python validation/unresolved_densities.py [--quick]    # 3 s, 1 s quick

References: Trefethen, Approximation Theory and Approximation Practice (2013), chapter 4 (aliasing).
"""

import re
import sys
import warnings
from collections.abc import Callable

import numpy as np
from _report import Report, command_line
from scipy.special import eval_gegenbauer

import meanfield as mf

DEGREE, HEIGHT = 8, 0.5
POINTS = 2 * np.pi * (np.arange(4096) + 0.3) / 4096
SPACES = {2: mf.Circle(DEGREE), 3: mf.Sphere(DEGREE), 5: mf.Zonal(5, DEGREE)}


def harmonic(d: int, k: int) -> Callable[..., np.ndarray]:
    """1 + a p_k as a function of the arguments of `Space.density`."""
    if d == 2:
        return lambda theta: 1 + HEIGHT * np.cos(k * theta)
    half = d / 2 - 1
    largest = eval_gegenbauer(k, half, 1.0)
    return lambda *x: 1 + HEIGHT * eval_gegenbauer(k, half, x[-1]) / largest


def said(d: int, k: int) -> tuple[bool, float]:
    """Whether the density is made with a warning, and the error in it; nan without one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SPACES[d].density(harmonic(d, k))
    text = " ".join(str(one.message) for one in caught)
    found = re.search(r"root mean square error is (\d\S*\d)", text)
    return bool(caught), float(found[1]) if found else np.nan


def error_of_series(k: int) -> float:
    """Root mean square of f, divided by its mean on the grid, minus its series on the circle."""
    f, grid = harmonic(2, k), SPACES[2].arguments["theta"]
    values = f(grid) / f(grid).mean()
    modes = np.arange(-DEGREE, DEGREE + 1)
    c = np.exp(-1j * np.outer(modes, grid)) @ values / len(grid)
    series = (np.exp(1j * np.outer(POINTS, modes)) @ c).real
    return float(np.sqrt(np.mean((f(POINTS) / f(grid).mean() - series) ** 2)))


def main() -> int:
    quick = command_line(__doc__, "lower degrees").quick
    report = Report(["space", "quantity"], digits=4)
    for d, space in SPACES.items():
        high = range(DEGREE + 1, 40 if quick else 196 if d == 2 else 121)
        low = range(1, DEGREE - 1)
        report.compare(repr(space), "unresolved, without a warning", predicted=0,
                       measured=sum(not said(d, k)[0] for k in high), tolerance=0)  # fmt: skip
        report.compare(repr(space), "resolved, with a warning", predicted=0,
                       measured=sum(said(d, k)[0] for k in low), tolerance=0)  # fmt: skip
        if d == 2 and not quick:
            escaped = [k for k in range(196, 401) if not said(d, k)[0]]
            report.compare(repr(space), "escaped, but for 196 and 284", predicted=0,
                           measured=len({196, 284} ^ set(escaped)), tolerance=0)  # fmt: skip
        if d == 2:
            ratios = np.array([said(d, k)[1] / error_of_series(k) for k in high])
            told = ratios[np.isfinite(ratios)]
            wrong = np.count_nonzero((told < 0.98) | (told > 1.5))  # two digits are said
            report.compare(repr(space), f"errors said wrongly, of {len(told)}", predicted=0,
                           measured=wrong, tolerance=0)  # fmt: skip
            print(f"errors said / errors: from {told.min():.3f} to {told.max():.3f}")
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
