"""Fixtures of the engines' tests."""

import pytest

from meanfield.engines import attention


@pytest.fixture
def small_blocks(monkeypatch):
    """Four rows by three columns, or six replicas of one token."""
    monkeypatch.setattr(attention, "LOGIT_ENTRIES", 12)
    monkeypatch.setattr(attention, "LOGIT_COLUMNS", 3)
