"""Claim: the search for stationary states misses none, below the second onset.

Under the potential cos + a cos 2 the densities at rest that are even are exp(kappa (m_1 cos theta +
a m_2 cos 2 theta))/const, and (m_1, m_2) solves two equations. All their solutions are found by
SciPy, from every cell of a grid in which both residuals change their sign, and are counted up to
m_1 -> -m_1 and, where m_1 = 0, m_2 -> -m_2, which are rotations. `stationary_states` has as many
states, with these m_1, at each kappa below the second onset of the uniform state: of those
2/a and 2, the larger one.

    python validation/stationary_searches.py [--quick]    # 12 s, 5 s quick
"""

import sys

import numpy as np
from _report import Report, command_line
from scipy.optimize import root

import meanfield as mf

ANGLES = 2 * np.pi * np.arange(128) / 128
WAVES = np.array([np.cos(ANGLES), np.cos(2 * ANGLES)])
CASES = {  # factors a of the second mode: values of kappa, below the second onset
    0.4: (1.9, 2.03, 2.6, 4.5),
    0.8: (1.6, 1.9, 1.97, 2.03, 2.4),
    1.0: (1.6, 1.9, 1.97),
    1.5: (1.6, 1.9, 1.97),
    -0.5: (1.9, 2.03, 2.6, 6.0),
}
CELLS = 200  # of the grid, in m_1 from 0 to 1; twice as many in m_2 from -1 to 1
EQUAL = 1e-7  # distance of equal solutions


def moments(m: np.ndarray, a: float, kappa: float) -> np.ndarray:
    """Moments (..., 2) of the density that moments (..., 2) attract to."""
    law = np.exp(kappa * (m * [1.0, a]) @ WAVES)
    return law @ WAVES.T / law.sum(axis=-1, keepdims=True)


def changes(positive: np.ndarray) -> np.ndarray:
    """Cells of a grid on whose corners a mask (n, k) is not constant, (n - 1, k - 1)."""
    corners = positive[:-1, :-1], positive[1:, :-1], positive[:-1, 1:], positive[1:, 1:]
    return np.any(corners, axis=0) & ~np.all(corners, axis=0)


def solutions(a: float, kappa: float) -> np.ndarray:
    """All moments (n, 2) at rest, one of each orbit under rotations, in increasing order."""
    first, second = np.linspace(-1e-3, 1, CELLS), np.linspace(-1, 1, 2 * CELLS)
    grid = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1)
    above = moments(grid, a, kappa) > grid
    found: list[np.ndarray] = []
    for i, j in np.argwhere(changes(above[..., 0]) & changes(above[..., 1])):
        centre = (grid[i, j] + grid[i + 1, j + 1]) / 2
        end = root(lambda m: moments(m, a, kappa) - m, centre, tol=1e-14).x
        if np.abs(moments(end, a, kappa) - end).max() > 1e-11:
            continue
        end = np.abs(end) if abs(end[0]) < EQUAL else np.array([abs(end[0]), end[1]])
        if not any(np.abs(end - other).max() < EQUAL for other in found):
            found.append(end)
    return np.array(sorted(found, key=tuple))


def main() -> int:
    quick = command_line(__doc__, "fewer values of kappa").quick
    report = Report(["what", "case"])
    for a, kappas in CASES.items():
        for kappa in kappas[:: 3 if quick else 1]:
            label, exact = f"a = {a}, kappa = {kappa}", solutions(a, kappa)
            model = mf.Transformer(mf.CosineSeries([0.0, 1.0, a]), kappa)
            states = mf.stationary_states(model, mf.Circle(32))
            report.compare("states", label, predicted=len(exact), measured=len(states), tolerance=0)
            found = np.sort([state.order_parameter for state in states])
            worst = np.abs(found - exact[:, 0]).max() if len(found) == len(exact) else np.inf
            report.compare("m_1", label, predicted=0, measured=worst, tolerance=1e-10)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
