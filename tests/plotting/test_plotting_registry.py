"""Figures register themselves: those of a user's own, and of states that nobody described."""

import re
from dataclasses import replace
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from drawings import frames
from matplotlib.figure import Figure

import meanfield as mf
from meanfield.dynamics.observables import OBSERVABLE_STYLES, declare
from meanfield.plotting import Appearance, figure, scene, upper_part
from meanfield.plotting.pages import PARTS_OF_PAGES, SCENES, band
from meanfield.plotting.registry import FIGURE_KINDS, kinds_of, options_of

TOKENS = mf.Tokens.on_circle([0.0, 1.0, 2.0])


class Heading(mf.State):
    """A state of a user's own: one angle, which no room of the package knows."""

    def __init__(self, angle: float):
        self.angle = angle

    def arrays(self):
        return {"angle": ((), np.array(self.angle))}


class Labelled(mf.Tokens):
    """Tokens of a derived class."""


@pytest.fixture(autouse=True)
def kinds_of_this_test(monkeypatch):
    """Kinds that a test registers are not known in the others."""
    for registry in (FIGURE_KINDS, PARTS_OF_PAGES, SCENES):
        entries = {classes: dict(table) for classes, table in registry._entries.items()}
        monkeypatch.setattr(registry, "_entries", entries)


@pytest.fixture(scope="module")
def tokens():
    return mf.solve(mf.Transformer(mf.SA(1.0)), TOKENS, (0, 1), t_eval=[0.0, 0.5, 1.0])


@pytest.fixture
def run(tokens):
    """A run of states that have no figures, with what was measured of them."""
    states = tuple(Heading(angle) for angle in (0.0, 0.5, 1.0))
    found = replace(tokens, states=states)
    found.__dict__["observables"] = xr.Dataset(
        {
            "turning_rate": ("t", [1.0, 2.0, 3.0]),
            "path": (("t", "coordinate"), np.zeros((3, 2))),
            "words": ("t", ["a", "b", "c"]),
        },
        {"t": tokens.t},
    )
    return found


def test_states_that_nobody_described_have_observables_an_overview_and_a_movie(run, tmp_path):
    assert list(kinds_of(run)) == ["overview", "observables"]
    for kind in kinds_of(run):
        (ax,) = run.plot(kind).axes
        assert ax.get_ylabel() == "turning rate", "the one that is a number at each time"
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), [1, 2, 3])
    assert frames(run.animate(tmp_path / "movie.gif", dpi=30)) == 3
    with pytest.raises(ValueError, match="type Heading; got 'rose'"):
        run.plot("rose")


def test_an_observable_of_ones_own_has_the_symbol_and_the_scale_that_it_declares(run):
    declare("turning_rate", r"rate $\omega$", log_from=2.0)
    try:
        (ax,) = run.plot("observables").axes
    finally:
        del OBSERVABLE_STYLES["turning_rate", False]
    assert (ax.get_ylabel(), ax.get_yscale()) == (r"rate $\omega$", "log")


def test_without_any_observable_the_error_says_so(run):
    run.__dict__["observables"] = xr.Dataset()
    with pytest.raises(ValueError, match="no observable"):
        run.plot()


def test_a_figure_of_ones_own_is_a_kind_with_options_and_a_heading(run, tokens):
    @figure("rose", Heading, panels=(3.0, 3.0))
    def rose(panels, *, petals=5):
        """A petal for each state."""
        panels.axes[0].plot([state.angle for state in panels.solution], label=str(petals))

    assert "rose" in kinds_of(run) and "rose" not in kinds_of(tokens)
    page = run.plot("rose", petals=3, title="mine")
    assert page.axes[0].lines[0].get_label() == "3"
    assert page.get_suptitle() == "mine"
    ax = Figure().subplots()
    assert rose(run, ax=ax) is ax.figure
    with pytest.raises(TypeError, match=r"'petal' .* ax, member, title, petals"):
        run.plot("rose", petal=3)
    with pytest.raises(ValueError, match="did you mean rose"):
        run.plot("roses")
    with pytest.raises(TypeError, match="needs Heading; got tokens on the Circle"):
        rose(tokens)


def test_an_overview_and_a_movie_of_ones_own(run, tmp_path):
    drawn = []

    @figure("compass", Heading, panels=(3.0, 3.0))
    def compass(panels, *, colour="k"):
        panels.axes[0].set_title(f"compass in {colour}")

    @upper_part(Heading)
    def compasses(members, *, colour="r"):
        return [band(2.0, compass, members, colour=colour)]

    @scene(Heading)
    def turning(top, members):
        return [drawn.append]

    titles = [ax.get_title() for ax in run.plot(colour="b").axes]
    assert titles == ["compass in b", ""]
    run.animate(tmp_path / "movie.gif", dpi=30)
    assert drawn == [0, 1, 2]


def test_an_appearance_is_found_along_the_bases_of_a_class(run, tokens):
    @Appearance.register(Heading)
    class HeadingAppearance(Appearance):
        states = "headings"

    try:
        with pytest.raises(ValueError, match="for headings; got 'map'"):
            run.plot("map")
    finally:
        del Appearance.registered[Heading]
    derived = replace(tokens, states=tuple(Labelled(state.x) for state in tokens))
    assert list(kinds_of(derived)) == list(kinds_of(tokens))
    assert derived.plot("polar").axes


def test_a_kind_of_another_module_is_not_replaced():
    def foreign(solution):
        """From elsewhere."""

    with pytest.raises(ValueError, match=r"'polar' .* meanfield\.plotting"):
        figure("polar", mf.Tokens, mf.Circle)(foreign)


# Options -----------------------------------------------------------------------------------------

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "draw.md"


def kinds_with(option):
    """The kinds of figures of the package that have an option, for some state."""
    return {
        kind
        for kinds in FIGURE_KINDS._entries.values()
        for kind, draw in kinds.items()
        if draw.__module__.startswith("meanfield.") and option in options_of(draw)
    }


@pytest.mark.parametrize(
    "option", ["times", "log_time", "names", "bins", "density", "centre", "trails", "trace_one"]
)
def test_the_page_names_the_kinds_that_have_an_option(option):
    (row,) = re.findall(rf"^\| `{option}=.*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r'`"(\w+)"`', row.split("|")[3])) == kinds_with(option)


def test_an_option_of_another_kind_is_answered_with_that_kind():
    sphere = mf.Sphere(16).von_mises_fisher([0, 0, 1], 1.0)
    with pytest.raises(TypeError, match="have it: 'orthographic', 'map'") as said:
        sphere.plot(times=[0.1])
    assert "did you mean" not in str(said.value)
    with pytest.raises(TypeError, match="did you mean times"):
        sphere.plot("map", timse=[0.1])


def test_a_kind_of_other_spaces_is_answered_with_these():
    tokens = mf.Tokens.uniform(4, 16, rng=0)
    with pytest.raises(ValueError, match=r"'trajectories', which draws .* circle"):
        tokens.plot("trajectories")


def test_several_runs_in_one_panel_differ_and_share_a_legend(run):
    ax = Figure().subplots()
    for label in ("one", "two"):
        run.plot("observables", names=["turning_rate"], ax=ax, label=label)
    run.plot(
        "observables", names=["turning_rate"], ax=ax, label="three", color="red", linestyle=":"
    )
    first, second, third = ax.lines
    assert first.get_color() != second.get_color()
    assert first.get_linestyle() != second.get_linestyle()
    assert (third.get_color(), third.get_linestyle()) == ("red", ":")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two", "three"]


def test_headings_outside_the_style_have_its_font():
    page = mf.plotting.theme.figure()
    assert page.suptitle("Later").get_fontname() == "STIXGeneral"


def test_every_option_of_every_figure_has_a_line_in_its_docstring():
    """The options that all kinds share are those of `plot`."""
    shared = set(re.findall(r"^ *- ((?:`\w+`, )*`\w+`): ", mf.plotting.plot.__doc__, re.M))
    shared = {"ax", "member", "title"} & set(re.findall(r"\w+", " ".join(shared)))
    assert len(shared) == 3
    kinds = {id(kind): kind for each in FIGURE_KINDS._entries.values() for kind in each.values()}
    for kind in (kind for kind in kinds.values() if kind.draw.__module__.startswith("meanfield.")):
        _, _, parameters = kind.__doc__.partition("    Parameters\n")
        lines = re.findall(r"^    ([*\w][*\w, ]*)", parameters.partition("\n\n")[0], re.M)
        named = set(re.findall(r"\w+", ",".join(lines)))
        missing = set(signature(kind).parameters) - shared - named - {"solution"}
        assert not missing, f"{kind.draw.__module__}.{kind.draw.__name__}: {missing}"


@pytest.mark.parametrize("kind", ["spacetime", "observables", "polar"])
def test_several_axes_are_refused(tokens, kind):
    axes = Figure().subplots(1, 3)
    for several in (axes, list(axes)):
        with pytest.raises(
            TypeError, match=r"^ax must be one matplotlib Axes; got an array of 3[.]$"
        ):
            tokens.plot(kind, ax=several)
    with pytest.raises(TypeError, match=r"^ax must be one matplotlib Axes; got an array of 3[.]$"):
        tokens.final.plot("polar", ax=axes)


def test_the_options_of_a_figure_include_its_size(tokens):
    with pytest.raises(TypeError, match="width, height; did you mean width"):
        tokens.plot("spacetime", figsize=(3, 2))
