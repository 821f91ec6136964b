"""Transport on S^2 from its definition: no multipliers, no recurrences, no identities.

The velocity is the integral v(x) = P_x int W'(<x, y>) y dmu(y) over a fine Gauss grid, divided
by int Z(<x, y>) dmu(y) for softmax; the coefficients of -div(mu v) are int mu <v, grad Y*> with
the gradients that scipy gives. It shares no line with the package.
"""

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import sph_harm_y


class WeakForm:
    """The transport of densities of a degree.

    Parameters
    ----------
    degree : int
        Of the densities and of the result.
    fine : int
        Degree to which integrals are exact: twice the degree, and what the kernel adds.
    """

    def __init__(self, degree, fine):
        z, weights = leggauss(fine // 2 + 1)
        phi = 2 * np.pi * np.arange(fine + 1) / (fine + 1)
        theta, phi = (a.ravel() for a in np.meshgrid(np.arccos(z), phi, indexing="ij"))
        self.weights = np.repeat(weights / 2, fine + 1) / (fine + 1)
        sine, cosine = np.sin(theta), np.cos(theta)
        self.points = np.stack([sine * np.cos(phi), sine * np.sin(phi), cosine], axis=1)
        east = np.stack([-np.sin(phi), np.cos(phi), 0 * phi], axis=1)
        self.frame = np.stack([np.cross(east, self.points), east], axis=1)  # south and east
        l = np.concatenate([np.arange(m, degree + 1) for m in range(degree + 1)])
        m = np.repeat(np.arange(degree + 1), degree + 1 - np.arange(degree + 1))
        values, slopes = sph_harm_y(l, m, theta[:, None], phi[:, None], diff_n=1)
        scale = np.sqrt(4 * np.pi) * (-1.0) ** m
        self.multiplicity = np.where(m == 0, 1, 2)
        self.harmonics, self.south = scale * values, scale * slopes[..., 0]
        self.east = scale * slopes[..., 1] / sine[:, None]

    def values(self, coefficients):
        """Values at `points` of a real series."""
        return (self.harmonics @ (self.multiplicity * coefficients)).real

    def velocity(self, coefficients, slope, weight=None):
        """v at `points`, (N, 2) towards south and east; slope is W', weight is Z."""
        masses = self.weights * self.values(coefficients)
        inner = self.points @ self.points.T
        pull = (slope(inner) * masses) @ self.points
        if weight is not None:
            pull /= (weight(inner) @ masses)[:, None]
        return np.einsum("nad,nd->na", self.frame, pull)

    def __call__(self, coefficients, slope, weight=None):
        """Coefficients of -div(mu v), and the largest |v|."""
        v = self.velocity(coefficients, slope, weight)
        flux = (self.weights * self.values(coefficients))[:, None] * v
        result = flux[:, 0] @ np.conj(self.south) + flux[:, 1] @ np.conj(self.east)
        return result, np.linalg.norm(v, axis=1).max()
