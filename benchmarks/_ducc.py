"""The right-hand side on S^2 as one would write it with ducc0, by vector harmonics."""

import ducc0
import numpy as np

import meanfield as mf

__all__ = ["DuccTransport"]


class DuccTransport:
    """d mu/dt for USA in meanfield's coefficients, all transforms by ducc0 on one thread.

    mu and grad g on a Gauss grid that integrates the product exactly; the divergence is the
    gradient part of the flux's vector harmonics.
    """

    def __init__(self, degree: int, model: mf.Transformer):
        sphere = mf.Sphere(degree)
        self._degree, l = degree, sphere.degrees
        self._to_ducc = np.sqrt(4 * np.pi) * (-1.0) ** sphere.orders
        self._attraction = model.drift.attraction(degree, 3)[l]
        self._diffusion = -l * (l + 1.0) / model.kappa
        self._root = np.sqrt(l * (l + 1.0))
        self._grid = {
            "lmax": degree,
            "ntheta": (3 * degree + 3) // 2,
            "nphi": ducc0.fft.good_size(3 * degree + 1),
            "geometry": "GL",
            "nthreads": 1,
        }

    def coefficients(self, values: np.ndarray) -> np.ndarray:
        """Coefficients of values on Gauss latitudes from the north times longitudes from 0."""
        options = {"lmax": self._degree, "geometry": "GL", "nthreads": 1}
        alm = ducc0.sht.analysis_2d(map=values[None], spin=0, **options)[0]
        return alm / self._to_ducc

    def slope(self, _t: float, state: np.ndarray) -> np.ndarray:
        """d mu/dt of the real vector of coefficients."""
        c, options = state.view(complex), self._grid
        alm = c * self._to_ducc
        synthesis = {
            key: options[key] for key in ("ntheta", "nphi", "lmax", "geometry", "nthreads")
        }
        density = ducc0.sht.synthesis_2d(alm=alm[None], spin=0, **synthesis)
        potential = (self._attraction * alm * self._root)[None]
        flux = ducc0.sht.synthesis_2d(alm=potential, spin=1, mode="GRAD_ONLY", **synthesis)
        flux *= density
        analysis = {key: options[key] for key in ("lmax", "geometry", "nthreads")}
        divergence = ducc0.sht.analysis_2d(map=flux, spin=1, **analysis)[0] * self._root
        return (self._diffusion * c + divergence / self._to_ducc).view(float)
