"""Plots of many tokens: what stands for crowds, for clusters, and for replicas of a run."""

import numpy as np
import pytest
from drawings import colours_in, drawn, panels, words
from matplotlib.collections import LineCollection, PathCollection

import meanfield as mf
from meanfield.plotting import theme, trajectories
from meanfield.plotting.appearance import appearance_of, clusters_of_tokens
from meanfield.plotting.layouts import time_edges

TIMES = np.linspace(0, 12, 7)


def run_of(drift, tokens, times=TIMES, **options):
    model = mf.Transformer(drift)
    return mf.solve(model, tokens, (0, times[-1]), t_eval=times, rtol=1e-5, **options)


@pytest.fixture(scope="module")
def replicas():
    return run_of(mf.SA(4.0), mf.Tokens.uniform(8, 2, rng=1, shape=(11,)))


def crowded(count, d=2):
    """Many tokens that are pulled to one place, as a run that was never computed."""
    x = mf.Tokens.uniform(count, d, rng=0).x
    pulled = [x + k * np.eye(d)[0] for k in (0, 1, 1000)]
    states = tuple(mf.Tokens(p / np.linalg.norm(p, axis=-1, keepdims=True)) for p in pulled)
    model, t = mf.Transformer(mf.SA(1.0)), np.array([0.0, 1.0, 2.0])
    return mf.Solution(t, states, model, "finished", "Reached t = 2.", {})


def test_tokens_that_have_not_gathered_have_one_colour_but_few_have_one_each():
    many = mf.Tokens.on_circle(0.3 * np.arange(20))
    assert clusters_of_tokens(many) == []
    two = mf.Tokens.on_circle([0.0, 2.0], masses=[0.3, 0.7])
    assert [(end.mass, list(end.tokens)) for end in clusters_of_tokens(two)] == [
        (pytest.approx(0.7), [1]),
        (pytest.approx(0.3), [0]),
    ]
    chain = mf.Tokens.on_circle(np.linspace(0, 3, 1000))
    assert clusters_of_tokens(chain) == [], "linked, but not in one place"


def test_heavier_tokens_have_thicker_curves_and_larger_dots():
    masses = np.array([0.7, 0.2, 0.1])
    run = run_of(mf.SA(1.0), mf.Tokens.on_circle([0.0, 1.0, 2.0], masses), np.array([0.0, 0.1]))
    (curves,) = drawn(run.plot("trajectories").axes[0], LineCollection)
    assert (np.diff(curves.get_linewidths()) < 0).all()
    (dots,) = drawn(run.plot("polar", times=[0]).axes[0], PathCollection)
    np.testing.assert_allclose(dots.get_sizes() / dots.get_sizes().sum(), masses)


def test_cells_of_the_heat_map_meet_halfway():
    t = np.array([1.0, 10.0, 1000.0])
    np.testing.assert_allclose(time_edges(t, log_time=False), [1, 5.5, 505, 1000])
    np.testing.assert_allclose(time_edges(t, log_time=True), [1, 10**0.5, 100, 1000])


def test_replicas_are_a_median_and_a_band(replicas):
    figure = replicas.plot("observables", names=["order_parameter"])
    (ax,) = panels(figure)
    (median,) = ax.lines
    values = replicas.observables["order_parameter"].transpose("t", "member").to_numpy()
    np.testing.assert_allclose(median.get_ydata(), np.median(values, axis=1))
    (band,) = ax.collections
    inside = band.get_paths()[0].vertices[:, 1]
    np.testing.assert_allclose(inside.max(), np.percentile(values, 95, axis=1).max())
    assert "5 to 95% of 11 replicas" in words(figure)
    alone = replicas.plot("observables", member=3, names=["order_parameter"]).axes[0]
    np.testing.assert_allclose(alone.lines[0].get_ydata(), values[:, 3])
    assert not alone.collections


def test_replicas_of_several_parameters_have_a_band_for_each():
    tokens = mf.Tokens.uniform(6, 2, rng=1, shape=(2, 4))
    run = run_of(mf.SA(np.array([[1.0], [4.0]])), tokens, np.array([0.0, 1.0]))
    figure = run.plot("observables", names=["order_parameter"])
    assert len(figure.axes[0].lines) == 2
    assert "4 replicas" in words(figure) and r"$\beta = 4$" in words(figure)


@pytest.mark.long
def test_the_overview_of_replicas_shows_the_first_and_says_so(replicas):
    assert "member 0, 8 tokens" in words(replicas.plot())
    assert "member 4, 8 tokens" in words(replicas.plot(member=4))
    with pytest.raises(ValueError, match="Choose one member"):
        replicas.plot("trajectories")
    with pytest.raises(ValueError, match="the last member is member=10"):
        replicas.plot(member=11)


@pytest.mark.long
def test_of_very_many_tokens_some_are_drawn_and_the_figure_says_how_many():
    run = crowded(100_000)
    figure = trajectories(run)
    (curves,) = drawn(figure.axes[0], LineCollection)
    begins = {round(float(s[0, 1] % (2 * np.pi)), 9) for s in curves.get_segments()}
    assert len(begins) == 300 and "300 of 100000 tokens" in words(figure)
    assert colours_in(curves.get_colors()) == {theme.PALETTE[0]} and "100%" in words(figure)
    assert "500 of 100000 tokens" in words(run.plot("inner_products"))
    run = crowded(30_000, 5)
    crowd = appearance_of(run.final).sample(run, (), 1000)
    assert len(crowd.indices) == 1000 and crowd.ends[0].mass == pytest.approx(1.0)


def test_a_space_time_map_counts_masses_relative_to_the_uniform_state():
    """Half of the mass in one of four bins is twice the uniform state."""
    tokens = mf.Tokens.on_circle([0.1, 0.2, 2.0, -2.0], [0.25, 0.25, 0.25, 0.25])
    run = mf.solve(mf.Transformer(mf.Kuramoto(), 1e9), tokens, (0, 1e-6), t_eval=[0, 1e-6], rng=1)
    figure = run.plot("spacetime", bins=4)
    (image,) = figure.axes[0].images
    np.testing.assert_allclose(image.get_array(), [[1, 1], [0, 0], [2, 2], [1, 1]])
    assert any(ax.images for ax in run.plot().axes)
    with pytest.raises(ValueError, match="bins must be a whole number >= 1"):
        run.plot("spacetime", bins=0)
