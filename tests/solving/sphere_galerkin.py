"""The equation on S^2 by other means: dense matrices of scipy's harmonics, scipy in time.

Real harmonics at Gauss points as one matrix; the multipliers of the kernel by Gauss-Legendre
quadrature of their definition; the flux by 2 div(u grad g) = Lap(u g) + u Lap g - g Lap u. It
shares no line with the package. With integrals exact to three times the degree this is the
Galerkin projection to that degree, without any error in space where v is a gradient.
"""

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.integrate import solve_ivp
from scipy.special import eval_legendre, sph_harm_y


def multipliers(kernel, degree):
    """lambda_l = (1/2) int kernel(t) P_l(t) dt, l = 0, ..., degree."""
    t, weights = leggauss(degree + 60)
    l = np.arange(degree + 1)[:, None]
    return eval_legendre(l, t) @ (weights * kernel(t)) / 2


class Galerkin:
    """Densities of a degree, given by the coefficients of real orthonormal harmonics."""

    def __init__(self, degree, potential, kappa):
        z, weights = leggauss((3 * degree) // 2 + 1)
        count = 3 * degree + 1
        phi = 2 * np.pi * np.arange(count) / count
        theta, phi = (a.ravel() for a in np.meshgrid(np.arccos(z), phi, indexing="ij"))
        weights = np.repeat(weights / 2, count) / count
        columns, degrees = [], []
        for l in range(degree + 1):
            for m in range(-l, l + 1):
                y = np.sqrt(4 * np.pi) * (-1.0) ** m * sph_harm_y(l, abs(m), theta, phi)
                columns.append(y.real if m == 0 else np.sqrt(2) * (y.real if m > 0 else y.imag))
                degrees.append(l)
        degrees = np.array(degrees)
        sine = np.sin(theta)
        self.points = np.stack([sine * np.cos(phi), sine * np.sin(phi), np.cos(theta)], axis=1)
        self.values = np.ascontiguousarray(np.stack(columns, axis=1))
        self.projection = np.ascontiguousarray((self.values * weights[:, None]).T)
        self.laplacian = -degrees * (degrees + 1.0)
        self.potential = multipliers(potential, degree)[degrees]
        self.kappa = kappa

    def rate(self, _t, c):
        """d c/dt = (1/kappa) Lap c - div(mu grad (W * mu))."""
        g = self.potential * c
        u, lap_u, g, lap_g = (
            self.values @ series for series in (c, self.laplacian * c, g, self.laplacian * g)
        )
        flux = self.laplacian * (self.projection @ (u * g)) + self.projection @ (
            u * lap_g - g * lap_u
        )
        return self.laplacian / self.kappa * c - flux / 2

    def solve(self, f, times):
        """Values at `points`, (times, N), of the density that starts from f(x, y, z)."""
        c = self.projection @ f(*self.points.T)
        c, t, states = c / c[0], 0.0, []
        for end in times:  # each an end of its own, as interpolation is less accurate
            run = solve_ivp(self.rate, (t, end), c, method="DOP853", rtol=1e-11, atol=1e-13)
            assert run.success, run.message
            c, t = run.y[:, -1], end
            states.append(self.values @ c)
        return np.array(states)
