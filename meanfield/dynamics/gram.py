"""Motion of Gram matrices, G' = A G + G A^T - (c_i + c_j) G_ij, for tokens of any dimension."""

from collections.abc import Mapping
from copy import copy
from typing import ClassVar, Self

import numpy as np

from ..core.annotations import JsonTable, MovedState, Observations, TangentNames, UserValue
from ..core.dual import Array
from ..models.drift import unit_rates
from ..states import Gram
from ..states.gram import sum_of_pairs
from ..steppers.flow import NO_FLOAT_WARNINGS
from .linearised import Changes, check_vanishes, checked_changes, state_along
from .observables import cluster_counts, declare, mean_cosine, pairless, rank_of
from .replicas import ReplicaMotion

declare("least_cosine", "least cosine")

LOST_PRODUCT = 0.01  # steps that lead an inner product out of [-1, 1] by this much give nan


class GramMotion(ReplicaMotion, moves=Gram):
    """Velocities of a Gram matrix under a zonal drift.

        A_ij = m_j W'(G_ij) / sum_k m_k Z(G_ik),    c = diag(A G)

    Parameters
    ----------
    model : Transformer
        A zonal drift, without noise.
    state : Gram
        A state to whose ensemble shape that of the model broadcasts.

    Raises
    ------
    MeanfieldError
        For a model whose velocities are not determined by inner products.

    Notes
    -----
    Cost: n^2 exponentials and 2 n^3 operations a replica, whatever d.
    """

    example = "Gram(G)"
    tangent_arrays = ("G",)
    options = frozenset({"rng"})  # accepted, but not used
    refusals: ClassVar = {
        "engine": "Gram has one way to sum over tokens; leave out engine = {value!r}."
    }

    def setup(self) -> None:
        """Store the drift and the masses of every replica."""
        self._drift = self.model.zonal.broadcast(self.like.shape)
        self._masses = self.like.masses.reshape(-1, 1, len(self.like))

    def check(self) -> None:
        """Raise MeanfieldError for a model whose velocities inner products do not determine."""
        self.model.drift.as_zonal()

    def coordinates(self, state: Gram) -> np.ndarray:
        """The matrices (replicas, n, n)."""
        return state.G.reshape(-1, *state.G.shape[-2:])

    def state_of(self, y: np.ndarray) -> Gram:
        """The state with these matrices."""
        return Gram.computed(self.like.masses, y.reshape(self.like.G.shape))

    def velocity(self, y: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Rates of change of the matrices."""
        slopes, denominators = self._drift.slope_and_weight(y)
        weights = self._masses * slopes
        shares = weights if denominators is slopes else self._masses * denominators
        weights /= shares.sum(axis=2, keepdims=True)
        attention_products = weights @ y
        radial = np.einsum("rii->ri", attention_products)
        change = attention_products - radial[:, :, None] * y
        return change + np.swapaxes(change, 1, 2)

    def state_along(self, state: Gram, changes: Changes) -> MovedState:
        renamed = [h if h is None else {"inner_product": h["G"]} for h in changes]
        return state_along(state, renamed, ("inner_product",))

    def along(self, names: TangentNames, state: MovedState) -> Self:
        copied = copy(self)
        copied.like, copied._drift = state, self._drift.along(unit_rates(names))
        return copied

    def direction(self, direction: UserValue, state: Gram) -> dict[str, Array]:
        """A checked change {"G": array} of inner products, from such a mapping or an array."""
        direction = direction if isinstance(direction, Mapping) else {"G": direction}
        changes = checked_changes(direction, {"G": state.G.shape})
        change = changes["G"]
        violation = np.abs(change - change.swapaxes(-1, -2)).max(axis=-1)
        violation = violation + np.abs(np.einsum("...ii->...i", change))
        expected = "changes of inner products that are symmetric, with zeros on the diagonal"
        check_vanishes(expected, violation, change)
        return changes

    @np.errstate(**NO_FLOAT_WARNINGS)
    def projected(self, y: np.ndarray) -> np.ndarray:
        """The matrices, rescaled to a diagonal of ones and made symmetric.

        Inner products become nan where a step has led them out of [-1, 1] by LOST_PRODUCT.
        """
        lengths = np.sqrt(np.einsum("rii->ri", y))
        y = y / (lengths[:, :, None] * lengths[:, None, :])
        y = (y + np.swapaxes(y, 1, 2)) / 2
        return np.where(np.abs(y) < 1 + LOST_PRODUCT, y, np.nan)

    def remark(self, state: Gram) -> str | None:
        """A sentence if observables of pairs of tokens are nan; else None."""
        return pairless(state)

    def stats(self, state: Gram, t: float) -> JsonTable:
        """The name of the engine in results."""
        return {"engine": "gram"}

    def energy(self, y: np.ndarray) -> np.ndarray:
        """(1/2) sum_ij m_i m_j W(G_ij) of every replica."""
        return sum_of_pairs(self._drift.potential_at(y), self._masses[:, 0]) / 2

    def measure(self, state: Gram, t: float = 0.0) -> Observations:
        """Observables of tokens that are determined by inner products.

        Returns
        -------
        dict of ndarray, each of the shape of the replicas
            mass, order_parameter, mean_cosine, interaction_energy, effective_rank,
            cluster_count : as of tokens
            least_cosine : the smallest inner product
        """
        masses, G = state.masses, state.G
        square, root = sum_of_pairs(G, masses), np.sqrt(masses)
        values = np.maximum(np.linalg.eigvalsh(root[..., :, None] * G * root[..., None, :]), 0)
        return {
            "order_parameter": np.sqrt(np.maximum(square, 0)),
            "mean_cosine": mean_cosine(state),
            "least_cosine": G.min(axis=(-2, -1)),
            "cluster_count": cluster_counts(state),
            "interaction_energy": self.energy(self.coordinates(state)).reshape(state.shape),
            "effective_rank": rank_of(values / values.sum(axis=-1, keepdims=True)),
            "mass": masses.sum(axis=-1),
        }
