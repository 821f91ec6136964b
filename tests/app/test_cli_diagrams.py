"""`meanfield bifurcation` and `meanfield phase-diagram`: files, figures, tables, exit codes."""

import json
import signal

import numpy as np
import pytest
from click.testing import CliRunner
from meanfield.app.config import parse_config, plain, read_config, run_config, schema

import meanfield as mf
from meanfield.app.cli import main

BRANCHES = """
title = "a small diagram"
[model]
drift = "Kuramoto"
[geometry]
degree = 16
[bifurcation]
kappa = [1.5, 3.0]
save_at = [2.5]
"""
PLANE = """
[geometry]
degree = 16
[phase_diagram]
drifts = ["USA", "SA"]
beta = [1.0, 3.5]
degrees = [1]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "diagram.toml").write_text(BRANCHES)
    (tmp_path / "plane.toml").write_text(PLANE)
    return tmp_path


def meanfield(*arguments, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    assert "Traceback" not in result.output
    return result.stdout, result.stderr


def test_branches_of_a_file_are_those_of_python(folder):
    out, err = meanfield("bifurcation", "diagram.toml")
    by_hand = mf.branches(mf.Kuramoto(), mf.Circle(16), (1.5, 3.0), save_at=[2.5])
    diagram = mf.load("diagram.nc")
    assert isinstance(diagram, mf.Diagram)
    provenance = json.loads(diagram.data.attrs.pop("provenance"))
    assert diagram.data.identical(by_hand.data) and diagram.ends == by_hand.ends
    assert parse_config(provenance["config"]) == parse_config(plain(read_config("diagram.toml")))
    assert "supercritical bifurcation" in out and "exact" in out and "ends: range" in out
    assert "wrote diagram.nc and diagram.png" in out and err == ""
    assert (folder / "diagram.png").stat().st_size > 10_000


def test_phase_diagrams_of_a_file_are_those_of_python(folder):
    out, err = meanfield("phase-diagram", "plane.toml")
    usa, sa = mf.load("plane_USA.nc"), mf.load("plane_SA.nc")
    by_hand = mf.phase_diagram(mf.USA, mf.Circle(16), (1.0, 3.5), degrees=(1,))
    for name in ("critical", "fold", "transition"):
        assert usa.kappa(name, 3.0) == by_hand.kappa(name, 3.0)
    assert usa.doubts == sa.doubts == [] and sa.loci == {} and err == ""
    assert "tricritical point of degree 1: beta = 2.446918311" in out
    assert "wrote plane_USA.nc, plane_SA.nc and plane.png" in out
    assert (folder / "plane.png").stat().st_size > 10_000
    (folder / "one.toml").write_text(PLANE.replace('["USA", "SA"]', '["SA"]'))
    assert meanfield("phase-diagram", "one.toml", "--out", "sa.nc", "-q")[0] == ""
    assert mf.load("sa.nc").kappa("critical", 2.0) == sa.kappa("critical", 2.0)


def test_figures_of_diagrams(folder):
    meanfield("bifurcation", "diagram.toml", "-q")
    meanfield("phase-diagram", "plane.toml", "-q")
    for kind in ([], ["--kind", "free_energy"], ["--kind", "moment 2"]):
        meanfield("plot", "diagram.nc", "-o", "again.pdf", *kind)
    for kind in ([], ["--kind", "relative"]):
        meanfield("plot", "plane_USA.nc", "-o", "again.png", *kind)
    assert "moment l" in meanfield("plot", "diagram.nc", "-o", "a", "--kind", "polar", code=2)[1]
    assert "relative" in meanfield("plot", "plane_SA.nc", "-o", "a", "--kind", "polar", code=2)[1]
    assert "no movie" in meanfield("plot", "plane_SA.nc", "-o", "a.gif", code=2)[1]


def test_what_is_missing_is_said_and_the_exit_code_is_1(folder):
    (folder / "cut.toml").write_text(BRANCHES + "max_points = 3\n")
    out, err = meanfield("bifurcation", "cut.toml", code=1)
    assert "ends: max_points" in out and "branch 1 ends at kappa" in err
    assert mf.load("cut.nc").ends == ["max_points"]
    assert "raise max_points" in meanfield("bifurcation", "cut.toml", "-q", "--force", code=1)[1]


def after(number, monkeypatch):
    """Ctrl-C at the n-th new point."""
    from meanfield.bifurcation.following import Following

    seen, at = [], Following.at

    def interrupted(self, *arguments):
        seen.append(arguments)
        if len(seen) == number:
            signal.raise_signal(signal.SIGINT)
        return at(self, *arguments)

    monkeypatch.setattr(Following, "at", interrupted)


def test_ctrl_c_keeps_the_branches_that_were_found(folder, monkeypatch):
    after(4, monkeypatch)
    out, err = meanfield("bifurcation", "diagram.toml", code=1)
    diagram = mf.load("diagram.nc")
    assert diagram.ends == ["interrupted"] and int((diagram.data.branch == 1).sum()) == 4
    assert "branch 1 was interrupted at kappa" in err and "wrote diagram.nc" in out


@pytest.mark.parametrize("number", [2, 60])  # on the branch, and on a curve
def test_ctrl_c_keeps_the_curves_that_were_found(folder, monkeypatch, number):
    after(number, monkeypatch)
    _, err = meanfield("phase-diagram", "plane.toml", code=1)
    assert "USA: fold was interrupted" in err or "USA: transition was interrupted" in err
    assert not (folder / "plane_SA.nc").exists() and mf.load("plane_USA.nc").doubts


def test_nothing_is_overwritten(folder):
    (folder / "plane_SA.nc").write_text("mine")
    assert "plane_SA.nc exists" in meanfield("phase-diagram", "plane.toml", code=2)[1]
    (folder / "diagram.png").write_text("mine")
    assert "diagram.png exists" in meanfield("bifurcation", "diagram.toml", code=2)[1]
    assert meanfield("bifurcation", "diagram.toml", "-q", "--force")[0] == ""
    assert "diagram.nc exists" in meanfield("bifurcation", "diagram.toml", code=2)[1]
    err = meanfield("bifurcation", "diagram.toml", "--out", "a.png", code=2)[1]
    assert "use --out DIAGRAM.nc" in err


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"Kuramoto"', '"Kuramoto"\nkappa = 2.0', "model.kappa: kappa is the parameter"),
        ('"Kuramoto"', '"Kuramoto"\nkappa = inf', "model.kappa: kappa is the parameter"),
        ('"Kuramoto"', '"Kuramoto"\nreaction = 1.0', "model.reaction: densities have none"),
        ('"Kuramoto"', '"Attention"', 'model.drift: "Attention" moves tokens; choose another'),
        ('"Kuramoto"', '"USA"\nbeta = [1.0, 2.0]', "model.beta: a diagram has a single drift"),
        ("[1.5, 3.0]", "[3.0, 1.5]", "bifurcation.kappa: expected a range [first, last]"),
        (
            "[1.5, 3.0]",
            "2.0",
            "bifurcation.kappa: expected a range [first, last], or bifurcation.beta",
        ),
        ("[1.5, 3.0]", "[0.0, 2.0]", "bifurcation.kappa: expected a finite number > 0"),
        ("[2.5]", "[5.0]", "bifurcation.save_at: expected kappa from 1.5 to 3; got 5"),
        ("save_at", "saveat", "bifurcation.saveat: unknown key; did you mean save_at?"),
        ("save_at = [2.5]", "degrees = [1, 1]", "bifurcation.degrees: expected each at most once"),
        ("save_at = [2.5]", "degrees = [2]", "bifurcation: The uniform state has no bifurcation"),
        ("save_at = [2.5]", "max_points = 0", "bifurcation.max_points: expected a number >= 1"),
        ("[bifurcation]", "[solve]\nt_end = 1.0\n[bifurcation]", "solve: unknown key"),
    ],
)
def test_bad_files_of_branches(folder, old, new, expected):
    (folder / "diagram.toml").write_text(BRANCHES.replace(old, new))
    err = meanfield("bifurcation", "diagram.toml", code=2)[1]
    assert f"diagram.toml: {expected}" in err and not (folder / "diagram.nc").exists()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('["USA", "SA"]', '"USA"', 'phase_diagram.drifts: expected an array; got "USA"'),
        ('["USA", "SA"]', "[]", "phase_diagram.drifts: expected an array with at least 1"),
        ('["USA", "SA"]', '["USA", "USA"]', "phase_diagram.drifts: expected each at most once"),
        ('["USA", "SA"]', '["UAS"]', 'phase_diagram.drifts[0]: expected "USA" or "SA"; got "UAS"'),
        ("[1.0, 3.5]", "[3.5]", "phase_diagram.beta: expected a range"),
        ("[geometry]", '[model]\ndrift = "USA"\n[geometry]', "model: unknown key"),
    ],
)
def test_bad_files_of_phase_diagrams(folder, old, new, expected):
    (folder / "plane.toml").write_text(PLANE.replace(old, new))
    err = meanfield("phase-diagram", "plane.toml", code=2)[1]
    assert f"plane.toml: {expected}" in err and not (folder / "plane_USA.nc").exists()


def test_files_of_other_commands(folder):
    err = meanfield("solve", "diagram.toml", code=2)[1]
    assert "use meanfield bifurcation diagram.toml" in err
    err = meanfield("bifurcation", "plane.toml", code=2)[1]
    assert "use meanfield phase-diagram plane.toml" in err
    with pytest.raises(ValueError, match="diagrams have no checkpoint"):
        run_config(read_config("plane.toml"), "plane.nc", resume=True)
    with pytest.raises(TypeError, match="a configuration from read_config"):
        run_config({"bifurcation": {}})


@pytest.mark.parametrize("kind", ["bifurcation", "phase_diagram"])
def test_the_schema_of_a_diagram(kind):
    assert json.loads(meanfield("schema", kind)[0]) == schema(kind)
    assert kind in schema(kind)["required"]


def test_the_defaults_of_a_file_are_those_of_python(folder):
    import inspect

    for path, function in (("diagram.toml", mf.branches), ("plane.toml", mf.phase_diagram)):
        config = read_config(path)
        table = getattr(config, function.__name__.replace("branches", "bifurcation"))
        parameters = inspect.signature(function).parameters
        for key, field in type(table).model_fields.items():
            if not field.is_required():
                assert np.array_equal(field.default, parameters[key].default), key
