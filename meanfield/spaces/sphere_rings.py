"""Fields on the grid of S^2 by rings of equal latitude: harmonics of any degree, divergences.

The transforms are those of ducc0, see `sphere_points` for its harmonics.
"""

import numpy as np

from .sphere_points import factors


class Rings:
    """The grid of latitudes times longitudes of a `Sphere`.

    Parameters
    ----------
    z, weights : ndarray, (rings,)
        Heights of the rings, from north to south, and their quadrature weights, of sum 1.
    longitudes : int
        Number of points of each ring, the first of them at the longitude 0.
    """

    def __init__(self, z: np.ndarray, weights: np.ndarray, longitudes: int) -> None:
        self.count = longitudes
        self._weights = weights / longitudes
        self._where = {
            "theta": np.arctan2(np.sqrt((1 - z) * (1 + z)), z),
            "nphi": np.full(z.size, longitudes, dtype=np.uint64),
            "phi0": np.zeros(z.size),
            "ringstart": longitudes * np.arange(z.size, dtype=np.uint64),
        }

    def synthesis(self, series: np.ndarray, degree: int) -> np.ndarray:
        """Values (r, N) of series (r, modes) of this degree, whatever it is."""
        from ducc0.sht import synthesis

        alm = (series * factors(degree))[:, None]
        return synthesis(alm=alm, spin=0, lmax=degree, nthreads=1, **self._where)[:, 0]

    def analysis(self, values: np.ndarray, degree: int) -> np.ndarray:
        """int conj(Y_lm) f dsigma of functions with values (r, N), as series (r, modes)."""
        from ducc0.sht import adjoint_synthesis

        alm = adjoint_synthesis(
            map=np.ascontiguousarray(values)[:, None],
            ringfactor=self._weights,
            **{"spin": 0, "lmax": degree, "nthreads": 1},
            **self._where,
        )
        return alm[:, 0] * factors(degree)

    def gradient(self, series: np.ndarray, degree: int) -> np.ndarray:
        """The gradient, southwards and east (2, N), of a series (modes,)."""
        from ducc0.sht import synthesis

        kind = {"spin": 1, "mode": "DERIV1", "lmax": degree, "nthreads": 1}
        return synthesis(alm=(series * factors(degree))[None], **kind, **self._where)

    def minus_divergence(self, field: np.ndarray, degree: int) -> np.ndarray:
        """Coefficients of -div F, int <F, grad conj(Y_lm)> dsigma; F southwards and east (2, N)."""
        from ducc0.sht import adjoint_synthesis

        alm = adjoint_synthesis(
            map=field,
            ringfactor=self._weights,
            **{"spin": 1, "mode": "DERIV1", "lmax": degree, "nthreads": 1},
            **self._where,
        )
        return alm[0] * factors(degree)
