"""Derivatives of the multipliers of a drift by its parameters."""

import numpy as np

from ..core.differences import NODES, WEIGHTS
from ..models import ZonalDrift
from ..models.changes import derivative_by
from ..spaces.linearised import Tables

__all__ = ["NODES", "WEIGHTS", "changes_of", "derivative_by", "tables_of"]


def tables_of(drift: ZonalDrift, degree: int, dimension: int) -> Tables:
    """The multipliers of a single drift."""
    return Tables(drift.attraction(degree, dimension), drift.normaliser(degree, dimension))


def changes_of(drift: ZonalDrift, name: str, degree: int, dimension: int) -> Tables:
    """Derivatives of the multipliers of a single drift by one of its parameters."""

    def both(drifts: ZonalDrift) -> np.ndarray:
        rows = [row for row in tables_of(drifts, degree, dimension) if row is not None]
        return np.stack(rows, axis=-2)

    found = derivative_by(drift, name, both)
    return Tables(found[0], found[1] if len(found) > 1 else None)
