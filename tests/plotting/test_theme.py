"""The look of figures: one font, plain numbers, sizes that keep room for headings."""

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text

import meanfield as mf
from meanfield.plotting import theme


@pytest.mark.parametrize("make", ["subplots", "add_subplot", "subplot_mosaic", "add_axes"])
def test_axes_have_the_fonts_of_the_package_outside_its_context(make):
    page = theme.figure()
    if make == "add_axes":
        page.set_layout_engine("none")
    given = {"subplot_mosaic": ("A",), "add_axes": ([0.1, 0.1, 0.8, 0.8],)}.get(make, ())
    made = getattr(page, make)(*given)
    ax = made["A"] if make == "subplot_mosaic" else made
    ax.set(title="title", xlabel="x", ylabel="y")
    page.draw_without_rendering()
    texts = [text for text in page.findobj(Text) if text.get_text()]
    assert len(texts) > 5
    assert {tuple(text.get_fontfamily()) for text in texts} == {("STIXGeneral",)}


@pytest.mark.parametrize("span", [(2, 9), (0.5, 8), (3, 40), (1e-3, 1e4)])
def test_logarithmic_axes_have_plain_numbers_within_a_decade(span):
    page = theme.figure()
    ax = page.subplots()
    ax.loglog(span, span)
    page.draw_without_rendering()
    shown = [label.get_text() for label in ax.get_yticklabels(which="both") if label.get_text()]
    low, high = span
    assert shown
    if high < 10 * low:
        assert not any("10^" in text for text in shown)
    else:
        assert not any("times" in text for text in shown)


def test_a_figure_in_another_size_keeps_the_room_of_its_heading():
    run = mf.solve(mf.Transformer(mf.Kuramoto(), 1.0), mf.Circle(16).von_mises(0, 1), (0, 0.1))
    usual, wide = run.plot("spacetime"), run.plot("spacetime", width=9.0, height=6.0)
    assert tuple(wide.get_size_inches()) == (9.0, 6.0)

    def above(figure):
        _, bottom, _, height = figure.get_layout_engine().get()["rect"]
        return (1 - bottom - height) * figure.get_figheight()

    assert above(usual) == pytest.approx(above(wide)) and above(usual) > 0.2
    with pytest.raises(ValueError, match="width"):
        run.plot("spacetime", width=np.nan)


def test_the_style_of_others_stays():
    before = dict(matplotlib.rcParams)
    theme.figure().subplots()
    assert dict(matplotlib.rcParams) == before
