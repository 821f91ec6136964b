"""Plots of axisymmetric densities: over the polar angle, where there is mass."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.plotting.fields import profiles, visible_chart
from meanfield.plotting.layouts import DrawnMembers


def run(dimension=3, kappa=6.0, **options):
    start = mf.Zonal(dimension, 16).zonal([1, 0.4, 0.2])
    return mf.solve(mf.Transformer(mf.USA(1.0), kappa), start, (0, 1), **options)


def test_profiles_are_the_densities_over_the_polar_angle():
    solution = run(5)
    theta, values = profiles(DrawnMembers(solution, [()]), [0, 100])
    points = np.zeros((theta.size, 5))
    points[:, 1], points[:, -1] = np.sin(theta), np.cos(theta)
    assert theta[0] == 0 and theta[-1] == np.pi
    np.testing.assert_allclose(values[0, 1], solution[100].at(points), rtol=1e-12)


def test_in_high_dimension_only_angles_with_mass_are_shown():
    assert visible_chart(DrawnMembers(run(3), [()])).limits == (0, np.pi)
    low, high = visible_chart(DrawnMembers(run(64, 80.0), [()])).limits
    assert 0.3 < low < 1.2 and high == pytest.approx(np.pi - low)
    ax = run(64, 80.0).plot("snapshots").axes[0]
    assert ax.get_xlim() == (low, high) and "polar" in ax.get_xlabel()
    assert ax.get_ylim()[1] < 4  # not the rounding beyond


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("kind", "kappa"),
    [("overview", 6.0), ("spacetime", [5.0, 6.0]), ("snapshots", [5.0, 6.0]), ("observables", 6.0)],
)
def test_every_kind_is_drawn(kind, kappa, tmp_path):
    path = tmp_path / "figure.png"
    run(8, kappa, t_eval=[0, 0.5, 1]).plot(kind).savefig(path, dpi=40)
    assert path.stat().st_size > 2000


@pytest.mark.long
def test_one_saved_time_a_movie_and_a_kind_that_is_not_there(tmp_path):
    single = run(t_eval=[1.0])
    assert len(single.plot().axes) == len(single.plot("snapshots").axes)
    assert run(t_eval=[0, 0.5, 1]).animate(tmp_path / "movie.gif").stat().st_size > 2000
    with pytest.raises(ValueError, match="on the Zonal; got 'polar'"):
        single.plot("polar")
