"""Functions of points, and sums of drifts, from the engines of the parts."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..models.pointwise import Pointwise


class PointValues:
    """f(x_i) of a drift that is a function of points, for tokens (R, n, d).

    Parameters
    ----------
    drift : Pointwise
        Its parameters are numbers, or one for each replica.
    threads : int
        Which are not used: f is called once with all tokens, or once for each member.
    """

    name = "points"
    tangential = False

    def __init__(self, drift: Pointwise, threads: int = 1):
        self.drift = drift
        self._members = [drift.member(r) for r in range(*drift.shape)] if drift.shape else []

    def attention(self, _t: float, x: np.ndarray, _masses: np.ndarray) -> np.ndarray:
        """f of the tokens, (R, n, d), checked."""
        if not self._members:
            return self.drift.values(x)
        return np.stack([f.values(one) for f, one in zip(self._members, x, strict=True)])

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """nan (R,): the tokens do not interact."""
        return self.drift.interaction_energy(x, masses)


class CombinedSums:
    """What the parts of a sum of drifts give, added up with their factors.

    Parameters
    ----------
    factors : sequence of ndarray, each () or (R,)
    engines : sequence
        One for each part.
    whole : bool
        Whether `attention` is wanted as a whole, rather than up to what is along the tokens.

    Attributes
    ----------
    tangential : bool
        Whether all parts are engines of zonal drifts: see `Engine`.
    """

    def __init__(self, factors: Sequence[Any], engines: Sequence[Any], *, whole: bool):
        self._engines, self._whole = engines, whole
        self._factors = [np.asarray(factor)[..., None, None] for factor in factors]
        self.name = " + ".join(dict.fromkeys(engine.name for engine in engines))
        self.tangential = all(engine.tangential for engine in engines)

    def velocity(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Velocities (R, n, d), where all parts are tangential."""
        return self._total(lambda engine: engine.velocity(x, masses))

    def attention(self, t: float, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The output of attention (R, n, d) at time t."""

        def of_one(engine: Any) -> np.ndarray:
            if engine.tangential and not self._whole:
                return engine.velocity(x, masses)
            return engine.attention(t, x, masses)

        return self._total(of_one)

    def potential(self, x: np.ndarray, masses: np.ndarray, t: float = 0.0) -> np.ndarray:
        """The potentials (R, n), where all parts have one."""
        return self._total(lambda engine: engine.potential(x, masses, t)[..., None])[..., 0]

    def energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The interaction energies (R,); nan where a part has none."""
        return self._total(lambda engine: engine.energy(x, masses)[..., None, None])[..., 0, 0]

    def _total(self, of: Callable[[Any], np.ndarray]) -> np.ndarray:
        pairs = zip(self._factors, self._engines, strict=True)
        return np.asarray(sum(factor * of(engine) for factor, engine in pairs))
