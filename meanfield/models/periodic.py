"""Drifts on the torus by a kernel W(x - y) of differences of angles."""

from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from ..core.annotations import Function
from ..core.cached import cached_property
from ..core.checks import require
from ..core.errors import MeanfieldError
from ..core.forms import Natural
from .on_torus import by_quadrature, values_on_grid
from .zonal import ZonalDrift, remembered

if TYPE_CHECKING:
    from ..spaces.torus import Torus

EVEN_KERNEL = 1e-13  # largest odd part of an even kernel, relative to its largest value
GRID_POINTS = {1: 1024, 2: 128, 3: 32}  # in each direction, for the largest speed


class PeriodicKernel(ZonalDrift, hides=("potential",)):
    """Drift v(x) = grad_x int W(x - y) dmu(y) on the torus, for any smooth periodic W.

    W need not be even, nor a function of the inner product of x and y. It has the period 2 pi in
    each angle. Points move towards larger W.

    Parameters
    ----------
    potential : callable
        W(z_1, ..., z_m) of m arrays of angles of one shape, which is that of its values.
    circles : int
        Number m of angles, as of the `Torus`.
    name : str
        Name in figures and files; the function's own name by default.

    Raises
    ------
    TypeError, ValueError
        If `potential` is not a function; where it is evaluated, if it does not return as many
        finite real numbers as it got.
    MeanfieldError
        Where multipliers are computed, if W is not smooth.

    Notes
    -----
    If W is even, mu follows the gradient of the energy (1/2) int int W(x - y) dmu dmu; else there
    is no free energy.

    References
    ----------
    Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020).

    Examples
    --------
    >>> drift = PeriodicKernel(lambda z, w: np.cos(z) + np.cos(w) + np.cos(z - w))
    """

    potential: Function = field()
    circles: Natural = 2
    name: str = ""
    undefined = ""
    normalised = False

    def validate(self) -> None:
        potential_name = getattr(self.potential, "__qualname__", type(self.potential).__qualname__)
        require("circles", self.circles, "1, 2 or 3", self.circles <= 3)
        self._set(name=self.name or potential_name)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """The dimension 2m of the points, m pairs (cos, sin)."""
        return 2 * self.circles

    @property
    def gradient_flow(self) -> bool:  # type: ignore[override]
        values = self._values
        opposite = values[np.ix_(*[-np.arange(n) for n in values.shape])]
        return bool(np.abs(values - opposite).max() <= EVEN_KERNEL * np.abs(values).max())

    @cached_property
    def _values(self) -> np.ndarray:
        return values_on_grid(self.potential, GRID_POINTS[self.circles], self.circles)

    def rate(self, t: float = 0.0) -> np.ndarray:
        """The largest |grad W| on a grid."""
        n, m = self._values.shape[0], self.circles
        spectrum, k = np.fft.fftn(self._values), np.fft.fftfreq(n, 1 / n)
        waves = np.meshgrid(*[k] * m, indexing="ij")
        slopes = [np.fft.ifftn(1j * wave * spectrum).real for wave in waves]
        return np.asarray(np.sqrt(sum(slope**2 for slope in slopes)).max())

    def slope(self, t: np.ndarray) -> np.ndarray:
        raise MeanfieldError(self._elsewhere_refused)

    def attraction(self, degree: int, dimension: int) -> np.ndarray:
        raise MeanfieldError(self._elsewhere_refused)

    interaction = attraction

    @property
    def _elsewhere_refused(self) -> str:
        return (
            f"{self!r} is a function of differences of angles, for a Density on "
            f"Torus(degree, {self.circles}) and tokens on it, Tokens.on_torus(angles). On other "
            "spaces take Interaction(W), a function of inner products."
        )

    @remembered
    def on_torus(self, name: str, space: "Torus") -> np.ndarray:
        """Fourier coefficients of W, (modes,); complex if W is not even."""
        if space.circles != self.circles:
            raise MeanfieldError(f"{self!r} is for {self.circles} angles; got {space!r}.")
        table = by_quadrature(self.potential, space)
        real = name == "interaction" or self.gradient_flow
        return table.real if real else table

    def identity(self) -> object:
        return self.described

    def __repr__(self) -> str:
        return f"PeriodicKernel({self.name})"
