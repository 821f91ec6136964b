"""Functions that rooms above register for objects of rooms below."""

import sys

import pytest

from meanfield.core.provided import FIGURES, Provided


def test_figures_are_found_by_name_when_first_asked_for():
    import meanfield.plotting as plotting

    assert FIGURES["rates"] is plotting.rates and FIGURES["plot"] is plotting.plot


def test_a_function_that_nobody_registers_is_named_with_the_module(tmp_path, monkeypatch):
    (tmp_path / "upper_room.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    provided = Provided("upper_room")
    with pytest.raises(KeyError, match=r"upper_room .* lines"):
        provided["lines"]

    @provided.register
    def lines():
        return 1

    assert provided["lines"] is lines
    sys.modules.pop("upper_room")
