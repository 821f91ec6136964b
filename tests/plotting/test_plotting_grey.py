"""Laws of all figures: every text is within the page and covers no other, and grey tells curves."""

from itertools import combinations

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text

import meanfield as mf
from meanfield.plotting import theme
from meanfield.plotting.registry import kinds_of

TIMES = np.linspace(0.0, 1.0, 4)
NOISY = mf.Transformer(mf.USA(2.0), kappa=6.0)
STILL = mf.Transformer(mf.SA(2.0))
CIRCLE, SPHERE, ZONAL = mf.Circle(16), mf.Sphere(16), mf.Zonal(5, 16)
MU = CIRCLE.density(lambda theta: 1 + 0.3 * np.cos(theta))
COVARIANCE = np.array([[1.0, 0.3], [0.3, 0.5]])
STARTS = {
    "circle": (NOISY, MU),
    "members": (mf.Transformer(mf.Kuramoto(), kappa=[1.5, 3.0, 400.0, np.inf]), MU),
    "sphere": (NOISY, SPHERE.von_mises_fisher([0, 0.6, 0.8], 1.0)),
    "zonal": (NOISY, ZONAL.zonal([1, 0.3])),
    "indexed": (NOISY, CIRCLE.indexed(lambda s, theta: 1 + 0.3 * np.cos(theta - s))),
    "characteristics": (STILL, mf.Characteristics(MU)),
    "tokens on the circle": (STILL, mf.Tokens.uniform(12, 2, rng=0)),
    "tokens on the sphere": (STILL, mf.Tokens.uniform(12, 3, rng=0)),
    "tokens": (STILL, mf.Tokens.uniform(12, 6, rng=0)),
    "products": (STILL, mf.Tokens.uniform(9, 8, rng=0).gram()),
    "gaussian": (mf.Transformer(mf.Attention(-1.0)), mf.Gaussian([0.4, 0.4], COVARIANCE)),
    "equiangular": (STILL, mf.Equiangular(n=8, rho=0.1)),
}


@pytest.fixture
def written(monkeypatch):
    """A function that draws a figure and gives every text in it with its box in pixels."""
    drawn = []
    draw = Text.draw

    def recording(self, renderer, *args, **options):
        if self.get_visible() and self.get_text().strip():
            drawn.append((self.get_text(), Text.get_window_extent(self, renderer)))
        return draw(self, renderer, *args, **options)

    monkeypatch.setattr(Text, "draw", recording)

    def boxes(figure):
        drawn.clear()
        figure.draw_without_rendering()
        return list(drawn)

    return boxes


def check(boxes, figure):
    """No text leaves the page, none covers another by a pixel or more."""
    width, height = figure.bbox.size
    for text, box in boxes:
        assert -1 < box.x0 and box.x1 < width + 1, text
        assert -1 < box.y0 and box.y1 < height + 1, text
    for (one, a), (other, b) in combinations(boxes, 2):
        wide = min(a.x1, b.x1) - max(a.x0, b.x0)
        high = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert min(wide, high) < 1, (one, other)


def figures(name, kinds):
    """Those of a run, of these kinds if there are any, else of all that it has."""
    model, start = STARTS[name]
    run = mf.solve(model, start, (0, 1), t_eval=TIMES, rtol=1e-6)
    return [run.plot(kind) for kind in kinds or kinds_of(run)]


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("circle", ["polar", "spectrum"]),
        ("members", ["polar"]),
        ("tokens on the sphere", ["map"]),
        ("gaussian", ["cone", "variances", "observables"]),
        *(pytest.param(name, (), marks=pytest.mark.long) for name in STARTS),
    ],
)
def test_no_text_is_cut_off_or_covered(name, kinds, written):
    for figure in figures(name, kinds):
        check(written(figure), figure)
        tell_apart(figure)


@pytest.mark.long
def test_diagrams_hold_their_texts(written):
    figures = [
        mf.branches(mf.USA(4.0), CIRCLE, (0.37, 0.42), stability=False).plot(),
        mf.phase_diagram(mf.USA, CIRCLE, (2.4, 2.6)).plot(),
    ]
    for figure in figures:
        check(written(figure), figure)
        tell_apart(figure)


def tell_apart(figure):
    """In each panel curves with a name differ in dashes, marker, or lightness."""
    for ax in figure.axes:
        named = [line for line in ax.lines if not line.get_label().startswith("_")]
        for one, other in combinations(named, 2):
            looks = [(str(line._unscaled_dash_pattern), line.get_marker()) for line in (one, other)]
            gap = abs(lightness(one.get_color()) - lightness(other.get_color()))
            assert looks[0] != looks[1] or gap > 7, (one.get_label(), other.get_label())


def lightness(colour):
    """CIE L*, from 0 of black to 100 of white."""
    r, g, b = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in matplotlib.colors.to_rgb(colour)
    )
    y = 0.2126 * r + 0.7152 * g + 0.0722 * b
    return 116 * y ** (1 / 3) - 16 if y > 0.008856 else 903.3 * y


@pytest.mark.parametrize("count", [2, 5, 9])
def test_colours_in_an_order_become_lighter_in_even_steps(count):
    steps = np.diff([lightness(colour) for colour in theme.ordered_colours(count)])
    assert steps.min() > 40 / count


def test_maps_are_as_light_as_their_values_are_large():
    for name in (theme.DENSITY_MAP, theme.ORDER_MAP):
        steps = np.diff([lightness(matplotlib.colormaps[name](x)) for x in np.linspace(0, 1, 33)])
        assert steps.min() > 1
