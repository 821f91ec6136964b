"""Figures of diagrams: several panels, what is unknown is dotted, special points where they are."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import xarray as xr
from drawings import room, texts, words
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

import meanfield as mf
from meanfield.plotting import bifurcation, phases, theme
from meanfield.sweeps import Sweep

CIRCLE = mf.Circle(16)


@cache
def short():
    return mf.branches(mf.USA(4.0), CIRCLE, (0.37, 0.42), stability=False)


@cache
def judged():
    return mf.branches(mf.Kuramoto(), CIRCLE, (1.5, 2.5))


@cache
def usa_plane():
    return mf.phase_diagram(mf.USA, CIRCLE, (2.0, 3.5))


@cache
def sa_plane():
    return mf.phase_diagram(mf.SA, CIRCLE, (2.0, 3.5))


def styles(figure):
    return {line.get_linestyle() for line in figure.axes[0].lines} - {"None"}


def test_logarithmic_axes_of_the_caller_are_labelled_as_those_of_figures():
    """Also in a figure of matplotlib's own, which knows nothing of this package."""
    plane, line = Figure().subplots(), Figure().subplots()
    phases(sa_plane(), ax=plane)
    bifurcation(short(), log=True, ax=line)
    for axis in (plane.yaxis, line.xaxis):
        assert isinstance(axis.get_minor_formatter(), NullFormatter)
        assert axis.get_ticklabels()[0].get_text().strip("$")[0].isdigit()


def test_only_stability_that_is_known_is_shown():
    assert styles(bifurcation(short())) == {"-", "--", ":"}  # the uniform state is known
    assert styles(bifurcation(judged())) == {"-", "--"}
    (legend,) = bifurcation(judged()).legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["stable", "unstable", "uniform", "branch 1", "bifurcation"]


def test_each_quantity_has_its_panel(tmp_path):
    figure = short().plot(y=["order_parameter", "free_energy"])
    first, second = figure.axes
    assert first.get_xlim() == second.get_xlim() == (0.37, 0.42)
    assert len(figure.legends) == 1
    assert [text.get_text() for text in first.texts] == [r"$\kappa_{1}$"]
    (fold,) = short().special("fold")
    markers = [tuple(np.ravel(line.get_xydata())) for line in second.lines]
    assert (fold.kappa, fold.state.free_energy) in markers
    with pytest.raises(ValueError, match="y, the kind of a diagram, must be branch"):
        short().plot(y=["order_parameter", "momentum"])


@pytest.mark.long
def test_a_close_up_of_those_with_a_fold():
    figure = phases(usa_plane(), sa_plane(), close_up=True)
    assert [ax.get_title() for ax in figure.axes] == ["USA", "SA", "USA"]
    assert [ax.get_yscale() for ax in figure.axes] == ["log", "log", "linear"]
    first, second, close = figure.axes
    assert first.get_ylim() == second.get_ylim() and close.get_ylim()[1] < 1.2
    kappa = np.concatenate([line.get_ydata() for ax in (first, second) for line in ax.lines])
    low, high = first.get_ylim()
    assert low < kappa.min() and kappa.max() < high
    assert len(phases(sa_plane(), close_up=True).axes) == 1
    assert len(phases(usa_plane(), relative=True, close_up=True).axes) == 1
    assert phases(sa_plane(), relative=True).axes[0].get_yscale() == "log"


@pytest.mark.long
def test_the_legend_of_a_phase_diagram_names_the_tricritical_point():
    (legend,) = phases(usa_plane(), relative=True).legends
    assert [text.get_text() for text in legend.get_texts()].count("tricritical") == 1


@pytest.mark.parametrize("span", [(1.5, 2.5), (1.49, 2.5), (1.47, 2.43)])
def test_lines_change_where_stability_does(span):
    diagram = mf.branches(mf.Kuramoto(), CIRCLE, span)
    uniform = bifurcation(diagram).axes[0].lines[:2]
    stable, unstable = (line.get_xdata() for line in uniform)
    assert [line.get_linestyle() for line in uniform] == ["-", "--"]
    assert stable[-1] == unstable[0] == pytest.approx(2, abs=5e-3)
    assert (stable[0], unstable[-1]) == pytest.approx(span, abs=0.1)


def test_a_transition_is_marked_where_both_free_energies_are_equal():
    axes = bifurcation(short(), y="free_energy").axes[0]
    (mark,) = (line for line in axes.lines if line.get_marker() == "D")
    assert mark.get_xdata()[0] == pytest.approx(0.3914751008, abs=1e-9)
    assert mark.get_ydata()[0] == pytest.approx(0, abs=1e-9)


def test_branches_without_order_parameter_have_a_panel_of_their_own():
    both = mf.branches(mf.USA(4.0), CIRCLE, (0.37, 0.8), degrees=[1, 2], stability=False)
    names = [ax.get_ylabel() for ax in bifurcation(both).axes]
    assert len(names) == 2 and names[1].startswith("moment 2")
    assert len(bifurcation(short()).axes) == 1


# Axes and sizes of the caller's -------------------------------------------------------------


@cache
def small_study():
    model = mf.Transformer(mf.Kuramoto(), 1.0)
    return mf.propagation_of_chaos(
        model, CIRCLE.von_mises(0, 1), [8, 16], [0.5], 4, rng=0, dt=0.1, coupling=False
    )


@cache
def swept():
    base = {
        "model": {"drift": {"kind": "SA", "beta": 1.0}},
        "initial": {"kind": "Equiangular", "n": 4, "rho": 0.1},
        "solve": {"t_span": [0, 0.2]},
    }
    return Sweep(mf.sweep(base, {"model.drift.beta": [0.5, 1.0, 2.0]}, progress=False))


DRAWN = {"diagram": judged, "plane": usa_plane, "study": small_study, "sweep": swept}


@pytest.mark.parametrize("name", DRAWN)
def test_figures_are_drawn_in_axes_of_the_caller_and_in_any_size(name):
    result = DRAWN[name]()
    page = theme.figure(width=3.4, height=2.4)
    left, right = page.subplots(1, 2)
    kind = {"kind": "rho"} if name == "sweep" else {}
    assert result.plot(**kind, ax=right) is page
    assert right.has_data() and not left.has_data()
    assert tuple(result.plot(**kind, width=5.0, height=2.5).get_size_inches()) == (5.0, 2.5)
    assert result.plot(**kind, width=5.0).get_size_inches()[0] == 5.0
    with pytest.raises(ValueError, match="height"):
        result.plot(**kind, height=-1)


def test_several_quantities_do_not_fit_into_one_axes():
    with pytest.raises(ValueError, match="one name"):
        judged().plot(y=["order_parameter", "free_energy"], ax=theme.figure().subplots())


@pytest.mark.long
def test_narrow_figures_have_legible_panels_and_a_legend_beneath():
    both = ["order_parameter", "free_energy"]
    for figure in (short().plot(width=3.4), short().plot(both, width=3.4)):
        assert room(figure) > 1.2 and figure.get_figwidth() == 3.4
    first, second = short().plot(both, width=3.4).axes
    assert first.get_position().y0 > second.get_position().y1
    assert room(phases(usa_plane(), sa_plane(), width=3.4)) > 1.0


def test_a_narrow_panel_keeps_its_width_and_the_uniform_line_differs_from_stable_ones():
    figure = short().plot("order_parameter", width=3.4)
    assert room(figure) > 2.0
    (legend,) = figure.legends
    marks = {h.get_label(): (h.get_marker(), h.get_linestyle()) for h in legend.legend_handles}
    assert marks["uniform"] != marks["stable"]


def test_an_unknown_option_of_a_diagram_is_answered_with_the_nearest():
    with pytest.raises(TypeError, match="did you mean width"):
        short().plot(widht=3.4)


def test_branches_are_in_the_legend_and_moments_are_defined():
    figure = short().plot("moment 2")
    assert {"uniform", "branch 1", "fold"} <= {*texts(figure)}
    assert r"cos 2" in words(figure).replace("\\", "")


@cache
def study():
    mu0 = CIRCLE.density(lambda theta: 1 + 0.3 * np.cos(theta))
    model, sizes = mf.Transformer(mf.USA(1.0), kappa=6.0), [8, 16]
    return mf.propagation_of_chaos(model, mu0, sizes, times=[0.1, 0.2], replicas=2, rng=0)


def test_a_study_fits_into_a_column():
    figure = study().plot(width=3.4, height=2.4)
    assert room(figure) > 0.7
    assert "radians" in figure.axes[0].get_ylabel() and "radians" in figure.axes[1].get_ylabel()


def test_a_study_of_one_time_has_one_panel():
    one = replace(study(), data=study().data.isel(t=[1]))
    assert len(one.plot().axes) == 1


def test_cells_of_a_sweep_lie_about_their_values():
    """Halfway on the axis that is drawn, whatever the order of the values."""
    base = {
        "model": {"drift": "Kuramoto", "kappa": 1.0},
        "space": {"kind": "Circle", "degree": 16},
        "initial": {"kind": "VonMises", "mean": 0.0, "concentration": 1.0},
        "solve": {"t_span": [0, 0.01]},
    }
    kappas, shares = [100.0, 1.0, 10.0], [2.0, 1.0]
    values = {"model.kappa": kappas, "initial.concentration": shares}
    result = Sweep(mf.sweep(base, values, progress=False))
    figure = result.plot()
    (mesh,) = figure.axes[0].collections
    x, y = mesh.get_coordinates()[0, :, 0], mesh.get_coordinates()[:, 0, 1]
    assert list(x) == pytest.approx([10**-0.5, 10**0.5, 10**1.5, 10**2.5])
    assert list(y) == pytest.approx([0.5, 1.5, 2.5])
    table = result.at_the_end("order_parameter")
    for i, kappa in enumerate(sorted(kappas)):
        for j, share in enumerate(sorted(shares)):
            there = table.sel({"model.kappa": kappa, "initial.concentration": share})
            assert mesh.get_array()[j, i] == pytest.approx(float(there.squeeze()))
    assert figure.axes[0].get_title() == "at $t = 0.01$"
    data = mf.sweep(base, {"model.kappa": [1.0, 50.0, 100.0]}, progress=False)
    replicas = xr.concat([data, data], "replica")
    replicas.attrs["axes"] = [*data.attrs["axes"], "replica"]
    ax = Sweep(replicas).plot().axes[0]  # kappa > 0, and so is the axis
    assert ax.get_xlim()[0] == 0
    assert ax.get_title() == "at $t = 0.01$, mean of 2 replicas"
    result = Sweep(mf.sweep(base, {"model.kappa": [1.0, np.inf]}, progress=False))
    with pytest.raises(mf.MeanfieldError, match="finite"):
        result.plot()


def test_small_figures_have_their_legend_inside_or_none():
    small = short().plot("order_parameter", width=3, height=2.2)
    assert not small.legends and room(small) > 1.0
    assert short().plot("order_parameter", width=6.0, height=3.0).legends


def test_a_legend_is_asked_for_or_left_out():
    without, study = short().plot("order_parameter", legend=False), small_study()
    assert not without.legends and without.axes[0].get_legend() is None
    assert all(ax.get_legend() is None for ax in study.plot(legend=False).axes)
    page = theme.figure(width=6.3, height=2.1)
    for ax, legend in zip(page.subplots(1, 3), (None, True, False), strict=True):
        short().plot("order_parameter", ax=ax, legend=legend)
    assert [ax.get_legend() is not None for ax in page.axes][1:] == [True, False]
    with pytest.raises(TypeError, match="legend must be True or False"):
        short().plot(legend="left")


def test_names_of_onsets_are_above_the_axis_in_low_panels():
    page = theme.figure(width=6.3, height=2.1)
    for ax in page.subplots(1, 3):
        short().plot("order_parameter", ax=ax)
    page.canvas.draw()
    for ax in page.axes:
        for name in ax.texts:
            assert name.get_window_extent().y0 >= ax.get_window_extent().y0


def test_axes_of_the_caller_keep_what_is_in_them():
    """Their legend where none is wanted, their limits and title; and small ones have a legend."""
    diagram = mf.phase_diagram(mf.USA, mf.Circle(16), (1, 2), degrees=(1, 2), progress=False)
    one, other = Figure(figsize=(3, 0.8)).subplots(1, 2)
    one.plot([0, 1], [0, 1], label="mine")
    kept = one.legend()
    diagram.plot(ax=one, legend=False)
    diagram.plot(ax=other)
    assert one.get_legend() is kept and other.get_legend() is not None
