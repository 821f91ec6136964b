"""Runs of indexed densities, differentiated: slices that are moved by means of others.

With acting_i = sum_j C_ij mu_j and v_i = A_i/B_i, A_i = grad W * acting_i, B_i = Z * acting_i,

    N_i = -div(mu_i v_i),    DN_i h = -div(h_i v_i + mu_i (A_h - v_i B_h)/B_i),

A_h and B_h of sum_j C_ij h_j; where a parameter of W and Z changes with h, its derivatives are
added.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..lowlevel.callbacks import PythonFunction
from ..spaces import Geometry
from ..spaces.linearised import Tables
from .densities import DifferentiatedRun, check_differentiable
from .variation import Variation


def check_indexed(motion: Any) -> None:
    """Raise MeanfieldError, with the reason, for runs that are not differentiated."""
    model, causal = motion.model, motion.model.causal
    reasons = {
        "natural frequencies": model.frequency is not None,
        "a beta for each position": causal is not None and causal.beta is not None,
        "a drift that is not zonal": not motion.plain.is_zonal,
    }
    for reason, here in reasons.items():
        if here:
            raise MeanfieldError(
                "Runs of Indexed densities are differentiated under zonal drifts with one beta, "
                f"such as USA, SA and Kuramoto; this model has {reason}. Take differences of runs "
                "with dt= and max_degree= = min_degree=."
            )
    check_differentiable(motion.plain, motion.like.geometry)


class DifferentiatedIndexed(DifferentiatedRun):
    """One member of a run of indexed densities: see `DifferentiatedRun`.

    Parameters
    ----------
    influence : ndarray, (P, P)
        See `Index.influence`.
    """

    def __init__(self, *given: Any, influence: np.ndarray, **options: Any):
        super().__init__(*given, **options)
        self._influence = influence

    def _transport(
        self, geometry: Geometry, names: Sequence[str | None], adjoint: bool = False
    ) -> Any:
        of_drift = [n if n in self.of_drift else None for n in names]
        key = geometry.degree, tuple(of_drift)
        if key not in self._nonlinear:
            tables, changes = self._tables_on(geometry)
            by = dict(zip(self.of_drift, changes, strict=True))
            rows = [None if name is None else by[name] for name in of_drift]
            self._nonlinear[key] = IndexedTangents(geometry, self._influence, tables, rows)
        return self._nonlinear[key]


class IndexedTangents:
    """(u, h_1, ..., h_p) -> (N(u), DN(u) h_1 + dN/dp_1, ...): as `linearised.Tangents`.

    Parameters
    ----------
    geometry : IndexedSpace
    influence : ndarray, (P, P)
    tables : Tables
        Multipliers of W and Z.
    changes : sequence of Tables or None
        Their derivatives by the parameter that changes with each h, if one does.
    """

    def __init__(
        self,
        geometry: Any,
        influence: np.ndarray,
        tables: Tables,
        changes: Sequence[Tables | None],
    ):
        self._geometry, self._influence, self._changes = geometry, influence, changes
        self._tables, self.time = tables, np.zeros(1)
        self._shape = 1 + len(changes), geometry.degrees.size
        size = geometry.dtype.itemsize // 8 * self._shape[0] * self._shape[1]
        self._function = PythonFunction(self._evaluate, size, float, size)
        self.address, self.context = self._function.address, 0

    def check(self) -> None:
        self._function.check()

    def _evaluate(self, _member: int, source: np.ndarray, target: np.ndarray) -> None:
        geometry, space = self._geometry, self._geometry.space
        each = geometry.split(source.view(space.dtype).reshape(self._shape))  # (1 + p, P, modes)
        acting = np.einsum("ij,rjk->rik", self._influence, each)
        values = space.to_values(each)
        above, below = self._sums(self._tables, acting)
        for row, changes in enumerate(self._changes, 1):
            if changes is not None:
                more = self._sums(changes, acting[:1])
                above[:, row] += more[0][:, 0]
                if below is not None and more[1] is not None:
                    below[row] += more[1][0]
        velocity, change = above[:, 0], above[:, 1:]
        if below is not None:
            velocity = velocity / below[0]
            change = (change - velocity[:, None] * below[1:]) / below[0]
        flux = np.concatenate(
            [(velocity * values[0])[:, None], velocity[:, None] * values[1:] + change * values[0]],
            axis=1,
        )
        found = target.view(space.dtype).reshape(*self._shape[:1], *each.shape[1:])
        for row, node in np.ndindex(each.shape[:2]):
            found[row, node] = space.minus_divergence(flux[:, row, node])

    def _sums(self, tables: Tables, acting: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """grad W * acting (d - 1, rows, P, N), and Z * acting (rows, P, N), None where Z = 1."""
        space, degrees = self._geometry.space, self._geometry.space.degrees
        series = tables.attraction[degrees] * acting
        slopes = [space.gradient(one) for one in series.reshape(-1, degrees.size)]
        above = np.stack(slopes, axis=1)
        above = above.reshape(len(above), *acting.shape[:2], -1)
        if tables.normaliser is None:
            return above, None
        return above, space.to_values(tables.normaliser[degrees] * acting)


class IndexedVariation(Variation):
    """A change of indexed densities: a real function on the space for each node of the index."""

    geometry: Any

    @property
    def slices(self) -> Variation:
        """The changes at the nodes, (*ensemble, P)."""
        return Variation(self.geometry.space, self.geometry.split(self.coefficients))

    def at_position(self, s: float) -> Variation:
        """The change at index s, interpolated as `Indexed.at_position` does."""
        weights = self.geometry.index.interpolation(s)
        each = self.geometry.split(self.coefficients)
        return Variation(self.geometry.space, np.einsum("p,...pk->...k", weights, each))
