"""The same equation by other means: no Fourier coefficients, no multipliers, scipy in time.

Values on n equally spaced angles; the drift as the integral it is defined by, with the
trapezoidal rule; derivatives by the dense differentiation matrix of trigonometric
interpolation. It shares no line with the package.
"""

import numpy as np
from scipy.integrate import solve_ivp


def derivative(n):
    """First derivative on n (even) equally spaced angles, (n, n)."""
    i = np.arange(n)
    offset = i[:, None] - i[None, :]
    with np.errstate(divide="ignore"):
        matrix = 0.5 * (-1.0) ** offset / np.tan(np.pi * offset / n)
    matrix[i, i] = 0
    return matrix


class Usa:
    """v(x) = int e^(beta cos(y - x)) sin(y - x) dmu(y)."""

    def __init__(self, beta):
        self.beta = beta

    def velocity(self, gap, mu):
        """At all angles; gap[i, j] = y_j - x_i."""
        return (np.exp(self.beta * np.cos(gap)) * np.sin(gap)) @ mu / len(mu)


class Sa(Usa):
    """The same divided by int e^(beta cos(y - x)) dmu(y)."""

    def velocity(self, gap, mu):
        """At all angles."""
        weights = np.exp(self.beta * (np.cos(gap) - 1))
        return ((weights * np.sin(gap)) @ mu) / (weights @ mu)


class Potential:
    """v(x) = int W'(cos(y - x)) sin(y - x) dmu(y)."""

    def __init__(self, slope):
        self.slope = slope

    def velocity(self, gap, mu):
        """At all angles."""
        return (self.slope(np.cos(gap)) * np.sin(gap)) @ mu / len(mu)


def collocate(drift, kappa, initial, times, *, n, method="DOP853"):
    """Moments 1, 2, 3 at the given times after 0, (times, 3), to about 1e-11.

    Parameters
    ----------
    drift : object with `velocity`
    kappa : float
    initial : callable
        Unnormalised density of the angle.
    n : int
        Even number of angles; the state must be resolved by degrees below n/2.
    """
    x = 2 * np.pi * np.arange(n) / n
    gap, D = x[None, :] - x[:, None], derivative(n)
    diffusion = D @ D / kappa

    def rate(_t, mu):
        return diffusion @ mu - D @ (mu * drift.velocity(gap, mu))

    start = initial(x) / initial(x).mean()
    run = solve_ivp(
        rate, (0, times[-1]), start, method=method, t_eval=times, rtol=1e-12, atol=1e-13
    )
    assert run.success, run.message
    return run.y.T @ np.exp(1j * np.outer(x, [1, 2, 3])) / n
