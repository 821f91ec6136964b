"""Frames are the states of the run that the configuration describes, in their order."""

import math
import time

import numpy as np
import pytest

import meanfield as mf
from meanfield.explore.frames import NODE_BANDWIDTH, frame_values, play
from meanfield.explore.scene import FRAME_COUNTS, Scene

UNRESOLVED = pytest.mark.filterwarnings("ignore::meanfield.UnresolvedWarning")
CHEAP = {"duration": 1.0, "tokens": 20, "beta": 1.0, "kappa": 3.0}


def played(scene, layer, stopped=lambda: False):
    frames = []
    ending = play(scene.configurations()[layer], frames.append, stopped)
    return frames, ending


@pytest.mark.repeats
@pytest.mark.parametrize("layer", ["density", "tokens"])
@pytest.mark.parametrize("kappa", [3.0, math.inf])
def test_frames_are_the_states_of_the_run(layer, kappa):
    scene = Scene(**CHEAP | {"kappa": kappa})
    frames, ending = played(scene, layer)
    run = scene.configurations()[layer].run(out=None, progress=False)
    assert ending["complete"] and ending["status"] == "finished"
    assert [frame.index for frame in frames] == list(range(FRAME_COUNTS["Circle"]))
    assert [frame.t for frame in frames] == run.t.tolist()
    for i in (0, 7, -1):
        np.testing.assert_array_equal(frames[i].values, frame_values(run[i]))
    order = [frame.order for frame in frames]
    np.testing.assert_allclose(order, run.observables["order_parameter"], rtol=1e-12)
    if layer == "density":
        energy = [frame.energy for frame in frames]
        np.testing.assert_allclose(energy, run.observables["free_energy"], rtol=1e-12)
        assert np.all(np.diff(energy) < 0)  # USA is a gradient flow


def test_sa_has_no_free_energy():
    frames, _ = played(Scene(**CHEAP | {"drift": "SA"}), "density")
    assert all(math.isnan(frame.energy) for frame in frames)


def test_a_run_that_nobody_wants_ends():
    began, seen = time.perf_counter(), []
    config = Scene(beta=4.0, duration=60.0).configurations()["density"]
    play(config, seen.append, lambda: len(seen) > 2)
    assert len(seen) < 10 and time.perf_counter() - began < 60


@UNRESOLVED
def test_what_is_not_resolved_is_told():
    frames, ending = played(Scene(beta=6.0, kappa=1000.0, tokens=0), "density")
    assert not ending["complete"] and ending["status"] == "unresolved"
    assert "max_degree" in ending["message"] and 0 < len(frames) < FRAME_COUNTS["Circle"]


def test_a_drawn_density_has_mass_one_and_its_own_values():
    circle = mf.Circle(degree=128)
    density = circle.von_mises(1.0, 20.0)
    values = frame_values(density)
    assert values.mean() == pytest.approx(1.0, abs=1e-6)
    angles = 2 * np.pi * np.arange(len(values)) / len(values)
    peak = 1.0, float(density.at(mf.Circle.embed(1.0)))
    near = np.argmin(np.abs(angles - peak[0]))
    assert values[near] == pytest.approx(peak[1], rel=0.01)


def test_nodes_are_drawn_with_a_bandwidth():
    mu = mf.Circle(degree=64).von_mises(0.0, 5.0)
    values = frame_values(mf.Characteristics(mu))
    k = np.arange(65)
    heat = np.exp(-0.5 * NODE_BANDWIDTH**2 * k**2)
    smooth = mf.Density(mf.Circle(degree=64), mu.coefficients * heat)
    np.testing.assert_allclose(values, smooth.resample(128).values, atol=1e-5)


def test_values_on_the_sphere_are_those_of_latitudes_and_longitudes():
    sphere = mf.Sphere(degree=48)
    density = sphere.von_mises_fisher([1.0, 0.0, 0.0], 3.0)
    space = mf.Sphere(degree=32)
    table = frame_values(density).reshape(len(space.z), len(space.longitudes))
    i, j = np.unravel_index(table.argmax(), table.shape)
    assert j == 0 and abs(space.z[i]) == np.abs(space.z).min()


def test_values_on_the_torus_are_those_of_both_angles():
    """The table has the first angle by row; peaks of the page lie where both angles are equal."""
    density = mf.Torus(degree=40).product([mf.Circle(40).von_mises(a, 3.0) for a in (0.0, 2.0)])
    angles = mf.Torus(degree=32).angles
    table = frame_values(density).reshape(len(angles), len(angles))
    i, j = np.unravel_index(table.argmax(), table.shape)
    assert abs(angles[i]) < 0.04 and abs(angles[j] - 2.0) < 0.04
    scene = Scene(space="Torus", peaks=1, concentration=20.0)
    tokens = frame_values(scene.configurations()["tokens"].begin())
    first, second = tokens[:, :2], tokens[:, 2:]
    assert first.shape == (200, 2) and (first @ [1, 0]).mean() > 0.9 < (second @ [1, 0]).mean()


@pytest.mark.repeats
@pytest.mark.parametrize("space", ["Circle", "Torus"])
def test_tokens_follow_their_density(space):
    """Order parameters agree to the sampling error, 1/sqrt(n), of 1000 tokens."""
    scene = Scene(space=space, beta=1.0, kappa=4.0, tokens=1000, duration=2.0)
    density, tokens = played(scene, "density")[0], played(scene, "tokens")[0]
    difference = [a.order - b.order for a, b in zip(density, tokens, strict=True)]
    assert np.abs(difference).max() < 4 / np.sqrt(1000)
