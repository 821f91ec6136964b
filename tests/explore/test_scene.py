"""A scene: read from a link and written to one, refused, and the configurations it stands for."""

import math

import numpy as np
import pytest

import meanfield as mf
from meanfield.core.errors import ConfigError, MeanfieldError
from meanfield.core.parameters import parameters_of
from meanfield.explore.export import exported
from meanfield.explore.scene import FRAME_COUNTS, Scene

SCENES = [
    Scene(),
    Scene(kappa=math.inf, drift="SA"),
    Scene(space="Sphere", drift="Kuramoto", kappa=4.5, peaks=1, tokens=17),
    Scene(start="mode", mode=3, amplitude=0.2, normalisation="PreLN", rng=7),
    Scene(space="Sphere", start="mode", mode=2, beta=1.25, duration=3.0),
    Scene(space="Torus", beta=1.5, peaks=3, kappa=0.5),
    Scene(space="Torus", start="mode", mode=2, kappa=math.inf),
]


@pytest.mark.parametrize("scene", SCENES, ids=repr)
def test_a_link_gives_the_same_scene(scene):
    assert Scene.of_texts(scene.link) == scene


def test_a_link_leaves_out_what_is_as_by_default():
    assert Scene().link == {}
    assert Scene(beta=2.0, kappa=math.inf).link == {"beta": "2.0", "kappa": "inf"}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("beta", "7", "from 0.25 to 6"),
        ("beta", "nan", "from 0.25 to 6"),
        ("kappa", "-1", "from 0.01 to 1000, or inf"),
        ("kappa", "-inf", "or inf"),
        ("kappa", "six", "or inf"),
        ("kappa", "1e999", "or inf"),
        ("tokens", "1001", "from 0 to 1000"),
        ("tokens", "2.5", "whole number"),
        ("mode", "9", "from 1 to 8"),
        ("rng", "-1", ">= 0"),
        ("drift", "Usa", "did you mean USA"),
        ("bta", "2", "did you mean beta"),
        ("drift", "__import__('os').system('true')", "USA"),
    ],
)
def test_bad_values_are_refused_by_name(name, text, words):
    with pytest.raises(ConfigError, match=words) as error:
        Scene.of_texts({name: text})
    assert str(error.value).startswith(name)


def test_all_bad_values_are_told_at_once():
    with pytest.raises(ConfigError) as error:
        Scene.of_texts({"beta": "0", "kappa": "0"})
    assert [line.split(":")[0] for line in str(error.value).splitlines()] == ["beta", "kappa"]


def test_every_parameter_is_explained():
    assert all(parameter.words for parameter in parameters_of(Scene).values())


@pytest.mark.repeats
@pytest.mark.parametrize(
    "drift, space",
    [("USA", "Circle"), ("SA", "Circle"), ("Kuramoto", "Circle"), ("USA", "Sphere"),
     ("Kuramoto", "Sphere"), ("SA", "Torus"), ("Kuramoto", "Torus")],
)  # fmt: skip
def test_the_onset_is_where_branches_bifurcate(drift, space):
    scene = Scene(drift=drift, space=space, beta=1.0)
    span = (0.8 * scene.onset, 1.2 * scene.onset)
    diagram = mf.branches(
        scene.zonal, scene.initial_space, kappa=span, degrees=(1,), secondary=False, max_points=2,
        progress=False,
    )  # fmt: skip
    (special,) = diagram.special("bifurcation", 0)
    assert special.value == pytest.approx(scene.onset, rel=1e-10)


def test_shares_and_angles_of_peaks():
    scene = Scene(peaks=3, share=0.5, separation=1.0)
    parts = scene.law()["components"]
    assert [part["weight"] for part in parts] == [0.5, 0.25, 0.25]
    assert [part["law"]["mean"] for part in parts] == [-1.0, 0.0, 1.0]
    on_sphere = Scene(space="Sphere", peaks=3, share=0.5, separation=1.0).law()["components"]
    axes = np.array([part["law"]["mean"] for part in on_sphere])
    np.testing.assert_allclose(axes[:-1] @ axes[1], [np.cos(1.0), 1.0], rtol=1e-15)


def test_a_density_without_noise_is_followed_along_characteristics():
    config = Scene(kappa=math.inf).configurations()["density"]
    assert isinstance(config.begin(), mf.Characteristics)
    assert isinstance(Scene(kappa=2.0).configurations()["density"].begin(), mf.Density)


def test_work_is_bounded():
    for scene in SCENES:
        for name, config in scene.configurations().items():
            solve = config.tables["solve"]
            assert solve["t_eval"].count == FRAME_COUNTS[scene.space]
            assert name == "tokens" or solve["max_steps"] <= 100_000
            assert scene.kappa == math.inf or name == "tokens" or solve["max_degree"] <= 1024
            assert name == "density" or len(config.begin()) <= 1000


def test_no_tokens_are_no_layer():
    assert list(Scene(tokens=0).configurations()) == ["density"]


def test_a_file_that_is_not_there_is_refused():
    with pytest.raises(MeanfieldError, match="meanfield explore FILE"):
        Scene(start="file").tables()


NASTY = (
    "9" * 4000, "9" * 199, "9" * 19, "1" * 16_000, "-1", "1e999", "1e308", "nan", "inf", "-inf", "",
    "0x10", "1_0", " 3", "true", "[]", "{}", "'", "\x00", "\ud800", "<b>", "..", "5e-324", "file",
)  # fmt: skip


@pytest.mark.parametrize("name", [*parameters_of(Scene), "unknown", "x" * 5000])
def test_any_text_is_a_scene_or_is_refused_in_a_few_lines(name):
    for text in NASTY:
        try:
            exported(Scene.of_texts({name: text}), "explored.py")
        except MeanfieldError as error:
            assert len(str(error)) < 1000
