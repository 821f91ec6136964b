"""Derivatives of the multipliers of a drift by its parameters."""

from ..core.differences import NODES, WEIGHTS
from ..models import ZonalDrift
from ..models.changes import derivative_by, multiplier_changes
from ..spaces.linearised import Tables

__all__ = ["NODES", "WEIGHTS", "changes_of", "derivative_by", "tables_of"]


def tables_of(drift: ZonalDrift, degree: int, dimension: int) -> Tables:
    """The multipliers of a single drift."""
    return Tables(drift.attraction(degree, dimension), drift.normaliser(degree, dimension))


def changes_of(drift: ZonalDrift, name: str, degree: int, dimension: int) -> Tables:
    """Derivatives of the multipliers of a single drift by one of its parameters."""
    found = multiplier_changes(drift, name, degree, dimension)
    return Tables(found[0], found[1] if len(found) > 1 else None)
