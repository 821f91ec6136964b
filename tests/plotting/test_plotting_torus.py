"""Maps of densities on the torus."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.plotting.torus import plane_values

MODEL = mf.Transformer(mf.USA(1.0), kappa=3.0)


def run_on(torus):
    return mf.solve(MODEL, torus.von_mises([0.5] * torus.circles, 0.5), (0, 0.2), t_eval=[0, 0.2])


def test_a_map_has_the_values_of_the_density_of_the_first_two_angles():
    flat = mf.Torus(12).von_mises([0.5, -1.0], 0.6)
    solid = mf.Torus(12, 3).von_mises([0.5, -1.0, 2.0], 0.6)
    shown = plane_values(flat)
    angles = np.linspace(-np.pi, np.pi, len(shown))
    grid = np.stack(np.meshgrid(angles, angles, indexing="ij"), axis=-1)
    np.testing.assert_allclose(shown, flat.at(flat.space.embed(grid)), rtol=0, atol=1e-13)
    np.testing.assert_allclose(plane_values(solid), shown, rtol=0, atol=1e-12)


@pytest.mark.parametrize("torus", [mf.Torus(8), mf.Torus(5, 3)], ids=repr)
@pytest.mark.filterwarnings("ignore::meanfield.UnresolvedWarning")
def test_maps_are_drawn_at_times_and_in_the_overview(torus):
    run = run_on(torus)
    figure = run.plot("map")
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == ["$t = 0$", "$t = 0.2$"]
    (quad,) = figure.axes[0].collections
    np.testing.assert_allclose(quad.get_array(), plane_values(run[0]).T, rtol=1e-12)
    assert all(ax.get_aspect() == 1 for ax in figure.axes if ax.get_title())
    assert len(run.plot().axes) > len(figure.axes)


def test_one_angle_has_no_map():
    run = run_on(mf.Torus(12, 1))
    with pytest.raises(mf.MeanfieldError, match="A map shows two angles"):
        run.plot("map")
    assert run.plot().axes
