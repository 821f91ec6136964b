"""What notebooks show: of every object a table and, where one can be drawn, a picture."""

import base64
import re
from io import BytesIO

import numpy as np
import pytest
from drawings import words
from matplotlib.figure import Figure
from PIL import Image

import meanfield as mf
from meanfield.plotting.registry import kinds_of, options_of, run_of_one_state

CIRCLE = mf.Circle(16)
MU = CIRCLE.von_mises(0.0, 2.0)
MODEL = mf.Transformer(mf.USA(4.0), 6.0)
STATES = {
    "circle": MU,
    "indexed": CIRCLE.indexed(lambda s, theta: 1 + 0.5 * np.cos(theta - s)),
    "sphere": mf.Sphere(16).von_mises_fisher([0, 0, 1], 1.0),
    "zonal": mf.Zonal(5, 8).zonal([1, 0.3]),
    "tokens": mf.Tokens.uniform(20, 3, rng=0),
    "tokens on the torus": mf.Tokens.on_torus(np.linspace([-3, 0], [3, 9], 20)),
    "characteristics": mf.Characteristics(MU),
    "gaussian": mf.Gaussian([0, 0], [[1.0, 0.3], [0.3, 0.5]]),
    "gram": mf.Tokens.uniform(9, 8, rng=0).gram(),
    "equiangular": mf.Equiangular(n=100, rho=0.1),
}


def picture(html):
    """The picture in a card: its size, and its share of dots that are not white."""
    (data,) = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    image = Image.open(BytesIO(base64.b64decode(data))).convert("RGB")
    return image.size, (np.asarray(image) < 250).any(axis=2).mean()


@pytest.mark.long
def test_objects_show_a_table_and_a_picture():
    diagram = mf.branches(mf.USA(4.0), CIRCLE, kappa=(0.35, 0.45), stability=False)
    run = mf.solve(MODEL, MU, t_span=(0, 0.1), t_eval=[0, 0.1])
    state = mf.stationary(mf.Transformer(mf.USA(1.0), 3.0), MU)
    for shown in (MODEL, run, diagram, state):
        html = shown._repr_html_()
        (width, _), drawn = picture(html)
        assert width == 720 and drawn > 0.01
    assert "finished" in run._repr_html_() and "0.409858525" in diagram._repr_html_()
    assert "USA(beta=4.0)" in MODEL._repr_html_()


@pytest.mark.repeats
@pytest.mark.parametrize("name", STATES)
def test_every_state_has_a_picture(name):
    state = STATES[name]
    html = state._repr_html_()
    assert picture(html)[1] > 0.005
    assert repr(state).partition("(")[0] in html
    assert state.plot().axes


@pytest.mark.repeats
@pytest.mark.parametrize("name", [*STATES, "tokens on the circle"])
def test_every_figure_of_a_state_fits_into_axes_with_a_title_of_their_own(name):
    state = STATES[name] if name in STATES else MU.sample(20, rng=0)
    for kind, draw in kinds_of(run_of_one_state(state)).items():
        if "ax" not in options_of(draw):
            continue
        box = "3d" if kind == "cone" else "rectilinear"
        named = {"names": ["order_parameter"]} if kind == "observables" else {}
        if kind == "observables" and name in ("gaussian", "gram", "equiangular"):
            named = {"names": [next(iter(run_of_one_state(state).observables))]}
        for title in ("mine", None):
            ax = Figure().add_subplot(projection=box)
            ax.set_title("before")
            try:
                state.plot(kind, ax=ax, **named, **({"title": title} if title else {}))
            except ValueError as error:
                assert "two saved times" in str(error), kind
            else:
                assert ax.get_title() == (title or "before"), kind


def test_a_picture_that_cannot_be_drawn_gives_way_to_the_reason():
    many = mf.Density.stack([MU] * 12)._repr_html_()
    assert "<img" not in many and "12 members" in many
    assert "<img" not in mf.Transformer(mf.Attention(np.eye(2)), 3.0)._repr_html_()


def test_texts_are_escaped():
    run = mf.solve(MODEL, MU, t_span=(0, 0.1), t_eval=[0, 0.1])
    object.__setattr__(run, "message", "<script>")
    assert "<script>" not in run._repr_html_() and "&lt;script&gt;" in run._repr_html_()


@pytest.mark.long
@pytest.mark.parametrize("name", ["sphere", "gaussian"])
def test_a_state_by_itself_is_drawn_without_a_time_or_an_energy(name):
    """Neither is known of it: saved at t = 0.4, every panel said t = 0."""
    state = STATES[name]
    for kind in kinds_of(run_of_one_state(state)):
        try:
            said = words(state.plot(kind))
        except ValueError as refused:  # of what needs two times
            assert "two saved times" in str(refused)
            continue
        assert not re.search(r"\bt =|time \$t|energy", said), kind


def test_a_state_by_itself_has_no_times_to_choose_from():
    with pytest.raises(ValueError, match="no times"):
        STATES["sphere"].plot("map", times=[0.4])


def test_a_kind_of_figure_that_a_state_does_not_have_is_refused():
    assert MU.plot("polar").axes
    with pytest.raises(ValueError, match="trajectories"):
        MU.plot("trajectories")
