"""Fixtures of the engines' tests."""

import pytest

from meanfield.engines import weighted_sums


@pytest.fixture
def small_blocks(monkeypatch):
    """Four rows by three columns, or six replicas of one token."""
    monkeypatch.setattr(weighted_sums, "ENTRIES", 12)
    monkeypatch.setattr(weighted_sums, "COLUMNS", 3)
