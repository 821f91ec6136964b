"""Independent references: linear programs between atoms, quadrature between densities."""

import numpy as np
from scipy.optimize import brentq, linprog, minimize_scalar


def program(x, a, y, b, p):
    """W_p of atoms on a sphere by scipy's linear program."""
    angles = 2 * np.arcsin(np.minimum(np.linalg.norm(x[:, None] - y, axis=2) / 2, 1))
    n, m = angles.shape
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    found = linprog(
        (angles**p).ravel(),
        A_eq=np.concatenate([rows, columns[:-1]]),
        b_eq=np.concatenate([a, b[:-1]]),
        method="highs-ipm" if n * m > 4000 else "highs-ds",
    )
    assert found.status == 0
    return found.fun ** (1 / p)


def by_quadrature(below, above, p, size=4000):
    """W_p on the circle of laws with distribution functions of the angle, about 1e-6."""
    s = (np.arange(size) + 0.5) / size

    def quantile(function, level):
        turns = np.floor(level)
        return 2 * np.pi * turns + np.array(
            [
                brentq(lambda t, u=u: function(t) - u, -1e-9, 2 * np.pi + 1e-9, xtol=1e-14)
                for u in level - turns
            ]
        )

    first = quantile(below, s)

    def cost(shift):
        return np.mean(np.abs(first - quantile(above, s - shift)) ** p)

    return minimize_scalar(cost, bounds=(-0.5, 0.5), method="bounded").fun ** (1 / p)
