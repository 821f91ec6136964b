"""Velocities of tokens that move in the field of given densities, `MeanField`."""

from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..core.kinds import ancestor
from ..models import Attention, HigherOrder, MeanField, PairKernel, Pointwise, ZonalDrift
from ..spaces.contract import Space
from .attention import AttentionSums
from .attention_modes import AttentionModes, NoModes
from .circle import CircleModes
from .combined import PointValues
from .contract import Engine
from .direct import DirectSums
from .harmonics import HarmonicEngine
from .kernels import FINEST_DEGREE
from .many_body import MomentPoints
from .pair_kernels import PairPoints
from .sphere import SphereModes
from .torus import TorusField

MODES_BY_DIMENSION: dict[int, type[HarmonicEngine]] = {
    kind.dimension: kind for kind in (CircleModes, SphereModes)
}
FIELD_ACCURACY = 1e-12  # accuracy of velocities by harmonics


class FieldSums(Engine):
    """Velocities v[mu_t](x_i) of tokens (R, n, d) in the field of densities, O(n) for each degree.

    By harmonics of the density. The points of its grid are summed over instead for `Attention`
    without modes, zonal kernels that are not smooth, and the whole output of zonal drifts.

    Parameters
    ----------
    drift : MeanField
    threads : int
    whole : bool
        Whether `attention` includes radial components; else they may be missing.
    """

    name = "field"
    tangential = False

    def __init__(self, drift: MeanField, threads: int = 1, *, whole: bool = False) -> None:
        """Pair each term of the drift, with its factor, with the velocity of its class."""
        self.drift = drift
        source = drift.source.as_zonal() if drift.source.is_zonal else drift.source
        parts: dict[Any, Any] = {
            ZonalDrift: self._zonal_part(whole),
            Attention: AttentionPoints,
            Pointwise: lambda term, *_: PointValues(term),
            HigherOrder: lambda term, *_: MomentPoints(term),
            PairKernel: lambda term, space, _: PairPoints(term, space),
        }
        self._parts: list[Any] = [
            (factor, parts[ancestor(type(term), parts)](term, drift.space, threads))
            for factor, term in source.terms
        ]

    def _zonal_part(self, whole: bool) -> Any:
        if not self.drift.space.spherical:
            return TorusField
        return ZonalPoints if whole else zonal_field

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        coefficients = self.drift.coefficients(t)
        outputs = [factor * term.attention(t, x, coefficients) for factor, term in self._parts]
        return sum(outputs[1:], outputs[0])

    def with_tangents(self, names: Any) -> Any:
        """Raise MeanfieldError: derivatives in the field of densities are not known."""
        raise MeanfieldError(
            "Derivatives of tokens that move in the field of densities, MeanField, are not known. "
            "Leave tangents out, or solve for interacting tokens."
        )


class ZonalModes:
    """Velocities (R, n, d) at tokens under a zonal drift, by the harmonics of a density."""

    def __init__(self, drift: ZonalDrift, space: Space, threads: int) -> None:
        self._space = space
        self._sums = MODES_BY_DIMENSION[space.dimension](drift, FIELD_ACCURACY, threads)

    def attention(self, t: float, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        resampled = self._space.resample(coefficients, self._sums.degree)
        modes = np.broadcast_to(resampled, (len(x), resampled.size))
        return self._sums.fields(x, self._sums.scattered.coordinates(x), modes)[0]


class ZonalPoints:
    """Attention (R, n, d) at tokens under a zonal drift, by sums over the points of the grid.

    Tokens and points are one system, in which the tokens have no mass.
    """

    def __init__(self, drift: ZonalDrift, space: Space, threads: int) -> None:
        self._space, self._sums = space, DirectSums(drift, threads)

    def attention(self, t: float, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Outputs (R, n, d) at tokens x: grid points carry the density, tokens no mass."""
        points, masses = masses_of(self._space, coefficients, len(x))
        masses = np.concatenate([np.zeros(x.shape[:2]), masses], axis=1)
        output = self._sums.attention(t, np.concatenate([x, points], axis=1), masses)
        return output[:, : x.shape[1]]


def zonal_field(drift: ZonalDrift, space: Space, threads: int) -> ZonalModes | ZonalPoints:
    """Field of a zonal drift by modes, or by points of the grid if its kernel is not smooth."""
    try:
        return ZonalModes(drift, space, threads)
    except MeanfieldError:
        return ZonalPoints(drift, space, threads)


class AttentionPoints:
    """Attention (R, n, d) at tokens in the field of a density.

    By harmonics, with the density on a grid of degree FINEST_DEGREE or higher; where the weights
    have no modes, by sums over the grid of the density.
    """

    def __init__(self, drift: Attention, space: Space, threads: int) -> None:
        self._coarse, self._pairs = space, AttentionSums(drift, threads)
        self._fine = space.with_degree(max(space.degree, FINEST_DEGREE))
        self._sums = AttentionModes(drift, threads=threads, strict=True)

    def attention(self, t: float, x: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Outputs (R, n, d) by harmonics on the fine grid, else over pairs on the coarse one."""
        fine = self._coarse.resample(coefficients, self._fine.degree)
        try:
            return self._sums.attention(t, *masses_of(self._fine, fine, 1), at=x)
        except NoModes:
            return self._pairs.attention(t, *masses_of(self._coarse, coefficients, len(x)), at=x)


def masses_of(space: Space, coefficients: np.ndarray, replicas: int) -> tuple[Any, Any]:
    """Points (replicas, N, d) of the grid and their masses (replicas, N) under a density."""
    masses = space.weights * space.to_values(coefficients)
    points = np.broadcast_to(space.points, (replicas, *space.points.shape))
    return points, np.broadcast_to(masses, (replicas, masses.size))
