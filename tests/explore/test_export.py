"""What is exported gives the numbers of the page again, to the last bit."""

import math
import tomllib
from xml.etree import ElementTree

import numpy as np
import pytest

import meanfield as mf
from meanfield.app.configuration import parse_config
from meanfield.core.errors import MeanfieldError
from meanfield.explore.export import exported, script, toml_text
from meanfield.explore.frames import frame_values, play
from meanfield.explore.scene import Scene, UserFile

CHEAP = {"duration": 1.0, "tokens": 8, "beta": 1.0, "kappa": 3.0}
SCENES = [
    Scene(**CHEAP),
    Scene(**CHEAP | {"kappa": math.inf, "peaks": 1}),
    Scene(**CHEAP | {"start": "mode", "mode": 2, "normalisation": "PreLN"}),
    Scene(**CHEAP | {"drift": "Kuramoto", "peaks": 3}),
    Scene(**CHEAP | {"drift": "SA", "space": "Sphere"}),
    Scene(**CHEAP | {"space": "Sphere", "start": "mode", "mode": 2, "kappa": 8.0}),
    Scene(**CHEAP | {"space": "Torus", "start": "mode", "mode": 2, "kappa": 4.0}),
]


def last_frames(scene, file=None):
    """The last frame of each layer, as the page shows it."""
    found = {}
    for layer, config in scene.configurations(file).items():
        frames = []
        play(config, frames.append, lambda: False)
        found[layer] = frames[-1]
    return found


def executed(text, folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = {}
    lines = text.splitlines()
    assert "savefig" in lines.pop()  # figures are slow, and have a test of their own
    exec(compile("\n".join(lines), "explored.py", "exec"), names)
    return {"density": names.get("density_run"), "tokens": names.get("token_run")}


@pytest.mark.repeats
@pytest.mark.parametrize("scene", SCENES, ids=repr)
def test_the_script_and_the_configurations_repeat_the_frames(scene, tmp_path, monkeypatch):
    frames = last_frames(scene)
    runs = executed(script(scene), tmp_path, monkeypatch)
    for layer, frame in frames.items():
        _, text = exported(scene, f"{layer}.toml")
        again = parse_config(tomllib.loads(text.decode())).run(out=None, progress=False)
        for run in (runs[layer], again):
            assert run.t[-1] == frame.t
            np.testing.assert_array_equal(frame_values(run.final), frame.values)


@pytest.mark.parametrize("what", ["density", "tokens"])
def test_the_script_of_a_file_repeats_the_frames(what, tmp_path, monkeypatch):
    start = mf.Circle(degree=16).von_mises(0.5, 1.0)
    state = start if what == "density" else start.sample(5, rng=0)
    model = mf.Transformer(mf.USA(beta=1.0), kappa=5.0)
    noise = {"rng": 1} if what == "tokens" else {}
    mf.solve(model, state, t_span=(0, 0.1), progress=False, **noise).save(tmp_path / "run.nc")
    file = UserFile.of_file(tmp_path / "run.nc")
    scene = file.scene.replace(duration=1.0, tokens=8)
    runs = executed(script(scene, file), tmp_path, monkeypatch)
    for layer, frame in last_frames(scene, file).items():
        np.testing.assert_array_equal(frame_values(runs[layer].final), frame.values)


def test_toml_is_read_as_it_was_written():
    data = {"title": 'a "b" \\ é', "solve": {"a": 1, "b": 0.1, "c": math.inf, "d": [1.5, True]}}
    data |= {"initial": {"kind": "X", "parts": [{"weight": 1e-300}, {}]}}
    assert tomllib.loads(toml_text(data)) == data


def test_figures_are_png_and_svg():
    scene = Scene(**CHEAP)
    kind, png = exported(scene, "density.png")
    assert kind == "image/png" and png.startswith(b"\x89PNG")
    kind, svg = exported(scene, "tokens.svg")
    assert kind == "image/svg+xml" and ElementTree.fromstring(svg).tag.endswith("svg")


def test_files_that_there_are_not():
    for name in ("../scene.py", "density.exe", "explored.toml"):
        with pytest.raises(MeanfieldError, match="name"):
            exported(Scene(), name)
    with pytest.raises(MeanfieldError, match="no tokens"):
        exported(Scene(tokens=0), "tokens.toml")
