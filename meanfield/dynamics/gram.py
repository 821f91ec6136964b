"""The motion of inner products: G' = A G + G A^T - (c_i + c_j) G_ij, whatever the dimension."""

import numpy as np

from ..core.errors import MeanfieldError
from ..models import ZonalDrift
from ..models.transformer import Transformer
from ..states import Gram

__all__ = ["GramMotion"]


class GramMotion:
    """Velocities of a Gram matrix under a zonal drift; the `Motion` of `steppers.Flow`.

        A_ij = m_j W'(G_ij) / sum_k m_k Z(G_ik),    c = diag(A G)

    Parameters
    ----------
    model : Transformer
        A zonal drift, without noise.
    state : Gram
        In the ensemble shape of the model, or more.

    Raises
    ------
    MeanfieldError
        For a model that inner products do not determine.

    Notes
    -----
    Cost: n^2 exponentials and 2 n^3 operations a replica, whatever d.
    """

    engine = "gram"

    def __init__(self, model: Transformer, state: Gram, engine=None):
        if not isinstance(model.drift, ZonalDrift) or model.extras or model.noisy:
            raise MeanfieldError(
                "Gram follows USA, SA, Kuramoto and Interaction without noise, normalisation or "
                f"reaction; got {model!r}. Solve for Tokens: gram.to_tokens()."
            )
        if engine is not None:
            raise ValueError(f"Gram has one way to sum over tokens; leave out engine = {engine!r}.")
        self._like, n = state, len(state)
        self._drift = model.zonal.broadcast(state.shape)
        self._masses = state.masses.reshape(-1, 1, n)

    def coordinates(self, state: Gram) -> np.ndarray:
        """The matrices (replicas, n, n)."""
        return state.G.reshape(-1, *state.G.shape[-2:])

    def state_of(self, y: np.ndarray) -> Gram:
        """The state with these matrices."""
        return Gram.computed(y.reshape(self._like.G.shape), self._like.masses)

    def velocity(self, y: np.ndarray, _t: float) -> np.ndarray:
        """Rates of change of the matrices."""
        weights = self._masses * self._drift.slope(y)
        weights /= (self._masses * self._drift.weight(y)).sum(axis=2, keepdims=True)
        pulled = weights @ y
        along = np.einsum("rii->ri", pulled)
        change = pulled - along[:, :, None] * y
        return change + np.swapaxes(change, 1, 2)

    def relative_error(self, error: np.ndarray, _y: np.ndarray) -> float:
        """The largest error of an inner product."""
        return float(np.abs(error).max())

    def projected(self, y: np.ndarray) -> np.ndarray:
        """The matrices with ones on their diagonals, and symmetric."""
        lengths = np.sqrt(np.einsum("rii->ri", y))
        y = y / (lengths[:, :, None] * lengths[:, None, :])
        return (y + np.swapaxes(y, 1, 2)) / 2

    def rate(self, _y: np.ndarray, velocity: np.ndarray) -> float:
        """The fastest change of an inner product."""
        return float(np.abs(velocity).max())

    def fixed(self) -> dict[str, np.ndarray]:
        """The masses, which all states of a run share."""
        return {"masses": self._like.masses}

    def energy(self, y: np.ndarray) -> np.ndarray:
        """(1/2) sum_ij m_i m_j W(G_ij) of every replica."""
        masses = self._masses[:, 0]
        return np.einsum("ri,rij,rj->r", masses, self._drift.potential_at(y), masses) / 2

    def breakpoints(self, _start: float, _end: float) -> list[float]:
        """None: these models do not depend on time."""
        return []

    def enter(self, start: float, end: float) -> None:
        """Nothing changes."""
