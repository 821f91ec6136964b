"""Many-body attention on the circle: velocities that are products of moments of the measure."""

from collections.abc import Sequence
from typing import Annotated, ClassVar

import numpy as np

from ..core.annotations import Values
from ..core.checks import require
from ..core.forms import INTEGER, Many
from .drift import Drift

MOST_BODIES, MOST_MODE = 16, 64


class HigherOrder(Drift):
    """An interaction of p + 1 points of the circle, by the angles between them.

        v(theta) = int ... int sin(k_1 theta_1 + ... + k_p theta_p - m theta) dmu ... dmu
                 = Im(z_k1 ... z_kp e^(-i m theta)),    z_k = int e^(i k theta) dmu,

    with m = k_1 + ... + k_p, so that it is invariant under rotations. The modes (1,) are those of
    Kuramoto, (2, -1) those of triadic and (1, 1, -1) of tetradic interactions. For a negative k,
    z_k is the conjugate of z_|k|.

    Parameters
    ----------
    modes : sequence of int
        k_1, ..., k_p, none 0, of modulus up to 64; 16 at most.

    Raises
    ------
    TypeError, ValueError
        For other modes; where it is evaluated, for points of another dimension.

    Notes
    -----
    Cost O(n) for n tokens; the sums include equal indices. With `Lorentzian` frequencies the
    equation of densities is exact if |m| = 1.

    References
    ----------
    Skardal and Arenas, Commun. Phys. 3 (2020), 218, equations (1) to (4).

    Examples
    --------
    >>> drift = Kuramoto() + 8.0 * HigherOrder((2, -1)) + 2.0 * HigherOrder((1, 1, -1))
    """

    on_sphere_only = True
    dimension = 2
    why_not_causal: ClassVar[str] = "its sums are products of moments of all tokens"

    modes: Annotated[Sequence[int], Many(INTEGER, "whole numbers, none 0")]

    def validate(self) -> None:
        super().validate()
        modes = tuple(int(k) for k in self.modes)
        fits = 0 < len(modes) <= MOST_BODIES and all(0 < abs(k) <= MOST_MODE for k in modes)
        expected = f"1 to {MOST_BODIES} whole numbers, none 0, of modulus up to {MOST_MODE}"
        require("modes", modes, expected, fits)
        self._set(modes=modes)

    @property
    def harmonic(self) -> int:
        """The sum m of the modes: v is a multiple of a sine of m theta."""
        return sum(self.modes)

    def rate(self, t: float = 0.0) -> np.ndarray:
        """1, the largest speed, times m where that is more."""
        return np.asarray(float(max(1, abs(self.harmonic))))

    def at_points(self, x: Values, moments: dict[int, tuple[Values, Values]]) -> Values:
        """Velocities v (-x_2, x_1) at points x (..., d), d = 2.

        `moments` are the real and imaginary parts of z_k, which broadcast with x[..., 0], by
        |k|.
        """
        speed = self.speed(self.multiples(x), moments)[..., None]
        return speed * np.stack([-x[..., 1], x[..., 0]], axis=-1)

    def multiples(self, x: Values) -> tuple[Values, Values]:
        """cos(m theta) and sin(m theta) at points (..., 2)."""
        cosine, sine = _multiple(x, abs(self.harmonic))
        return cosine, sine if self.harmonic >= 0 else -sine

    def speed(
        self, multiples: tuple[Values, Values], moments: dict[int, tuple[Values, Values]]
    ) -> Values:
        """Im(z_k1 ... z_kp e^(-i m theta)), (...), at points with these `multiples`."""
        real, imaginary = 1.0, 0.0
        for k in self.modes:
            a, b = moments[abs(k)]
            b = b if k > 0 else -b
            real, imaginary = real * a - imaginary * b, real * b + imaginary * a
        cosine, sine = multiples
        return imaginary * cosine - real * sine

    def moments(self, x: Values, masses: Values) -> dict[int, tuple[Values, Values]]:
        """The moments of tokens x (..., n, 2) of masses (..., n), (..., 1), by |k|."""
        by_mode = {}
        for k in {abs(k) for k in self.modes}:
            parts = _multiple(x, k)
            by_mode[k] = tuple((masses * part).sum(axis=-1)[..., None] for part in parts)
        return by_mode


def _multiple(x: Values, k: int) -> tuple[Values, Values]:
    """cos(k theta) and sin(k theta), (...), at points (..., 2), by binary powers."""
    cosine, sine = x[..., 0], x[..., 1]
    if k == 0:
        return 0 * cosine + 1.0, 0 * sine
    a, b = cosine, sine
    for bit in bin(k)[3:]:
        a, b = a * a - b * b, 2 * (a * b)
        if bit == "1":
            a, b = a * cosine - b * sine, a * sine + b * cosine
    return a, b
