"""What an engine is: velocities and interaction energies of tokens."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from ..models import ZonalDrift

__all__ = ["Engine"]


class Engine(ABC):
    """Velocities of interacting tokens under a zonal drift,

        v_i = P_i sum_j m_j W'(t_ij) x_j / sum_j m_j Z(t_ij),    t_ij = <x_i, x_j>

    of R independent systems of n tokens each. Only the directions x_i / |x_i| count: between the
    stages of a Runge-Kutta step tokens may leave the sphere a little. Velocities are tangent at
    the directions. Arrays are C-contiguous, of float64.

    Parameters
    ----------
    drift : ZonalDrift
        Its parameters are numbers, or have shape (R,).

    Attributes
    ----------
    name : str
        How the sums are computed: "direct", "circle", "sphere", "mean".
    """

    name: ClassVar[str]

    def __init__(self, drift: ZonalDrift):
        self.drift = drift

    @abstractmethod
    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Velocities (R, n, d) of tokens x (R, n, d) with masses (R, n), >= 0, of sum 1."""

    @abstractmethod
    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """(1/2) sum_ij m_i m_j W(t_ij), (R,); W = exp(beta t) / beta for USA and SA.

        At beta = 0, as for Kuramoto, W = t. Infinite where exp(|beta|) overflows.
        """
