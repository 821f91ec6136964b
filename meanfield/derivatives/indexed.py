"""Derivatives of runs of indexed densities, whose slices are moved by means of slices."""

from typing import Any, ClassVar

import numpy as np

from ..core.annotations import Narrowed, PassedOn, Values
from ..core.kinds import ancestor
from ..spaces import Density
from ..spaces.indexed import Indexed
from ..spaces.indexed_transport import IndexedAdjoint, IndexedTransport
from .densities import (
    DifferentiatedRun,
    linearised_by_tables,
    slope_tables,
    tables_of,
)
from .fields import DifferentiableFields
from .steps import DifferentiatedNonlinear
from .variation import Variation


class IndexedVariation(Variation):
    """A change of indexed densities: a real function on the space for each node of the index."""

    space: Narrowed

    @property
    def slices(self) -> Variation:
        """The changes at the nodes, (*ensemble, P)."""
        return Variation(self.space.slice_space, self.space.split(self.coefficients))

    @property
    def mass(self) -> np.ndarray:
        """The integral of each slice, (*ensemble, P)."""
        return self.slices.mass

    def moment(self, k: int) -> np.ndarray:
        """The moment of degree k of each slice, (*ensemble, P)."""
        return self.slices.moment(k)

    def at_position(self, s: Values) -> Variation:
        """The change at index s, an ensemble (*ensemble, *s.shape): see `Indexed.at_position`."""
        return Variation(self.space.slice_space, self.space.slice_at(self.coefficients, s))

    def marginal(self) -> Variation:
        """The change of the marginal law of the points, averaged over the index."""
        return Variation(self.space.slice_space, self.space.mean_slice(self.coefficients))


class DifferentiatedIndexed(DifferentiatedRun):
    """One member of a run of indexed densities: see `DifferentiatedRun`.

    If nodes have inverse temperatures, which replace that of the drift, the parameter "beta" is a
    number added to all of them, and "beta[i]" is the inverse temperature of node i.
    """

    variation: ClassVar[type[Variation]] = IndexedVariation

    def __init__(self, motion: Narrowed, *arguments: PassedOn, **options: PassedOn):
        """Run of all slices, with parameters of single nodes."""
        super().__init__(motion, *arguments, **options)
        self._influence, self._betas = motion.influence, motion.betas
        if self._betas is not None:
            of_nodes = self.parameters_of_nodes(motion)
            self.of_drift = [n for n in self.parameters if n in of_nodes or n in self.of_drift]

    @classmethod
    def parameters_of_nodes(cls, motion: Narrowed) -> list[str]:
        count = 0 if motion.betas is None else len(motion.betas)
        return [f"beta[{node}]" for node in range(count)]

    def _linearised(
        self, space: Narrowed, names: list[str | None], adjoint: bool
    ) -> DifferentiatedNonlinear:
        """Tangents, or the adjoint, of N on all slices, from those on pairs at each node."""
        count, modes = len(space.index), space.slice_space.degrees.size
        nodes = range(1 if self._betas is None else count)
        pairs = [self._pair(node, space, names, adjoint) for node in nodes]
        size = modes * (space.dtype.itemsize // 8)
        if adjoint:
            weights = space.index.weights
            return IndexedAdjoint(pairs, size, self._influence, weights, len(names))
        return IndexedTransport(pairs, size, self._influence, rows=1 + len(names))

    def _pair(self, node: int, product: Narrowed, names: list[str | None], adjoint: bool) -> Any:
        """N of a slice under the measure acting on it, with derivatives, at a node.

        The result serves all nodes if they have the same drift.
        """
        space, drift = product.slice_space, self.drift
        if self._betas is not None:
            drift = drift.replace(beta=float(self._betas[node]))
            renamed = {f"beta[{node}]": "beta"}
            directions = dict.fromkeys(self.parameters_of_nodes(self._motion))
            names = [{**directions, **renamed}.get(name or "", name) for name in names]
        if self._model.is_zonal:
            slopes = {name: slope_tables(drift, name, space) for name in names if name is not None}
            return linearised_by_tables(
                space, tables_of(drift, space), slopes, names, adjoint, True
            )
        parts = self._motion.fields(product).of(self._number * len(product.index) + node)
        fields = DifferentiableFields(self._model, drift, parts, space)
        return fields.adjoint(names, True) if adjoint else fields.tangents(names, True)


# Which derivatives a run of densities has ------------------------------------------------------

DIFFERENTIATED_RUNS: dict[type, type[DifferentiatedRun]] = {
    Density: DifferentiatedRun,
    Indexed: DifferentiatedIndexed,
}


def differentiated(state: Density) -> type[DifferentiatedRun]:
    """The class of differentiated runs for the class of a state."""
    return DIFFERENTIATED_RUNS[ancestor(type(state), DIFFERENTIATED_RUNS)]
