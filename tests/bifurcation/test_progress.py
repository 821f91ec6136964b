"""What is said and kept while curves are followed: progress, Ctrl-C, warnings."""

from types import SimpleNamespace

import numpy as np
import pytest

import meanfield as mf
from meanfield.bifurcation.branches import Following

CIRCLE = mf.Circle(16)


def test_the_bar_names_the_curve_and_goes_to_and_fro(capsys):
    with Following("kappa", (1.0, 4.0), True) as following:
        first, second = object(), object()
        for curve, value in [(first, 2.0), (first, 1.0), (second, 16.0)]:
            assert not following.at(curve, "degree 1", value)
            following._bar.refresh()
            assert following._bar.n == pytest.approx(min(np.log(value) / np.log(4.0), 1.0))
    shown = capsys.readouterr().err
    assert "curve 1, degree 1, kappa = 2" in shown and "curve 2, degree 1, kappa = 16" in shown


def test_progress_of_branches_and_of_phase_diagrams(capsys):
    options = {"stability": False, "progress": True}
    mf.branches(mf.Kuramoto(), CIRCLE, (1.5, 3.0), **options)
    assert "kappa = " in capsys.readouterr().err
    mf.phase_diagram(mf.USA, CIRCLE, (2.0, 3.0), degrees=(1,), progress=True)
    assert "transition, beta = " in capsys.readouterr().err
    mf.branches(mf.Kuramoto(), CIRCLE, (1.5, 3.0), stability=False, progress=False)
    assert capsys.readouterr().err == ""
    with pytest.raises(TypeError, match="progress"):
        mf.phase_diagram(mf.USA, CIRCLE, (2.0, 3.0), progress=1)


def test_nothing_is_missing_from_a_complete_diagram():
    found = mf.branches(mf.USA(4.0), CIRCLE, (0.3, 0.6), degrees=[1], stability=False)
    assert found.ends == ["range"] and found.warnings == []


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("not continued", "branch 1 was not continued beyond kappa = 2: take a smaller max_step."),
        ("unresolved", "branch 1 needs too many moments beyond kappa = 2"),
        ("interrupted", "branch 1 was interrupted at kappa = 2"),
    ],
)
def test_doubts_of_branches(end, text):
    found = mf.branches(mf.Kuramoto(), CIRCLE, (1.5, 3.0), stability=False)
    last = int(np.flatnonzero(found.data.branch.values == 1)[-1])
    found.data.kappa.values[last] = 2.0
    found.ends[0] = end
    assert len(found.warnings) == 1 and text in found.warnings[0]


def test_a_point_that_was_not_located_is_a_doubt():
    found = mf.branches(mf.USA(4.0), CIRCLE, (0.3, 0.6), degrees=[1], stability=False)
    (fold,) = found.special("fold")
    lost = SimpleNamespace(**{**vars(fold), "status": "not located", "interval": (0.39, 0.38)})
    found.special_points.append(lost)
    assert found.warnings == [
        "fold of branch 1 was not located between kappa = 0.38 and 0.39: take a smaller max_step."
    ]
    found.plot().canvas.draw()  # in the colour of warnings


@pytest.mark.long
def test_doubts_of_curves():
    found = mf.phase_diagram(mf.USA, CIRCLE, (2.0, 3.0), degrees=(1,))
    assert found.ends == {"fold": ("tricritical", "range"), "transition": ("tricritical", "range")}
    assert found.warnings == []
    found.ends["fold"] = ("tricritical", "not continued")
    found.ends["third"] = ("not located", "not located")
    first, second = found.warnings
    assert first == "fold was not continued beyond beta = 3: take a smaller max_step."
    assert second.startswith("third was not found")


@pytest.mark.long
def test_a_range_beyond_the_tricritical_point_ends_at_its_ends():
    found = mf.phase_diagram(mf.USA, CIRCLE, (3.0, 4.0), degrees=(1,))
    assert found.ends == {"fold": ("range", "range"), "transition": ("range", "range")}
    for name in found.loci:
        beta = found.data.beta.values[found.data.curve.values == name]
        assert beta[0] == 3.0 and beta[-1] == 4.0
