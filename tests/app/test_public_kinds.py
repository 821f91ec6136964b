"""Every kind of the package is public, and has its entry in the reference."""

import pytest
from public_kinds import ALL, API, FAMILIES, MARK, STUB, api, stub

import meanfield as mf


@pytest.mark.parametrize(("path", "written"), [(STUB, stub), (API, api)], ids=["stub", "api"])
def test_lists_have_every_kind(path, written):
    """If this fails: python tests/app/public_kinds.py writes them again."""
    text = path.read_text(encoding="utf-8")
    assert written(text) == text


def test_every_family_has_its_mark_on_the_page():
    assert {found[1] for found in MARK.finditer(API.read_text(encoding="utf-8"))} == set(FAMILIES)


def test_a_new_kind_is_written_into_both_lists(monkeypatch):
    class Fresh(mf.ZonalDrift):
        """A drift that the package does not have yet."""

        def slope(self, t):
            return t

    monkeypatch.setattr(Fresh, "__module__", "meanfield.models.potentials")
    monkeypatch.setitem(ALL, "Fresh", Fresh)
    assert "from .models.potentials import Fresh as Fresh" in stub(STUB.read_text())
    assert ".. autoclass:: meanfield.Fresh" in api(API.read_text())
    del mf.Drift.kinds["Fresh"]
