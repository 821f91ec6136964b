"""Projections of the sphere, and densities at their pixels: exact everywhere, without a seam."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import meanfield as mf
from meanfield.plotting.appearance import clusters_of_density as clusters_of
from meanfield.plotting.sphere import Mollweide, OrthographicPair, frame_of, graticule, pixels

NORTH = np.array([0.0, 0.0, 1.0])
DIRECTIONS = [(1, 0, 0), (0, 0, 1), (0, 0, -1), (-0.3, 2.0, 0.8), (1e-12, 0, -1)]
PROJECTIONS = [
    Mollweide(),
    Mollweide(centre=2.5),
    *(OrthographicPair(frame_of(d), upright) for d in DIRECTIONS for upright in (True, False)),
]
DENSITY = 0.6 * mf.Sphere(24).von_mises_fisher([-1, 0, 0], 5.0) + 0.4 * mf.Sphere(
    24
).von_mises_fisher([0.0, 0.6, 0.8], 3.0)


def random_points(n):
    """Independent points of the sphere, (n, 3)."""
    vectors = np.random.default_rng(0).standard_normal((n, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def page(projection, per_unit=40):
    """Places x and y on a page that is larger than the view."""
    left, right, bottom, top = projection.box
    x = np.arange(left - 0.2, right + 0.2, 1 / per_unit)
    y = np.arange(bottom - 0.2, top + 0.2, 1 / per_unit)
    return np.meshgrid(x + 1e-3, y + 1e-3)


def pixel_middles(projection, shape):
    left, right, bottom, top = projection.box
    x = left + (np.arange(shape[1]) + 0.5) * (right - left) / shape[1]
    y = bottom + (np.arange(shape[0]) + 0.5) * (top - bottom) / shape[0]
    return np.meshgrid(x, y)


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
def test_points_are_found_again(projection):
    points = random_points(2000)
    again = projection.points(*np.moveaxis(projection.place(points), -1, 0), slack=1e-12)
    # At an outline the height follows from the place by a square root.
    np.testing.assert_allclose(again, points, atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(again, axis=1), 1, atol=1e-14)


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
def test_places_are_found_again_and_those_outside_show_nothing(projection):
    x, y = page(projection)
    points = projection.points(x, y)
    seen = np.isfinite(points[..., 0])
    again = projection.place(points[seen])
    np.testing.assert_allclose(again, np.stack([x[seen], y[seen]], axis=-1), atol=1e-10)
    assert seen.sum() / 40**2 == pytest.approx(2 * np.pi, rel=0.01)  # of two discs, or the map


@pytest.mark.parametrize("z", [1.0, 1 - 1e-15, 1 - 1e-9, 1 - 1e-4, 0.3, 1e-12, 0.0])
def test_mollweide_solves_its_equation(z):
    """2 t + sin 2 t = pi z, with y = sin t; near the pole in the complement, s - sin s."""
    point = np.array([np.sqrt((1 - z) * (1 + z)), 0.0, z])
    for sign in (1, -1):
        y = Mollweide().place(point * [1, 1, sign])[1]
        t = np.arcsin(y)
        assert sign * np.pi * z == pytest.approx(2 * t + np.sin(2 * t), abs=1e-14)


def test_mollweide_keeps_areas():
    """The ellipse has half the area of the sphere, everywhere."""
    rng, h = np.random.default_rng(1), 1e-5
    angle, radius = 2 * np.pi * rng.random(500), 0.97 * np.sqrt(rng.random(500))
    x, y = 2 * radius * np.cos(angle), radius * np.sin(angle)
    project = Mollweide(centre=0.7).points
    along_x = (project(x + h, y) - project(x - h, y)) / (2 * h)
    along_y = (project(x, y + h) - project(x, y - h)) / (2 * h)
    area = np.linalg.norm(np.cross(along_x, along_y), axis=1)
    np.testing.assert_allclose(area, 2.0, rtol=1e-5)


def test_the_mean_over_a_map_is_the_mass():
    """To the error of pixels at the outline, which fall with their width."""
    for per_unit in (60, 240):
        x, y = pixel_middles(Mollweide(), (2 * per_unit, 4 * per_unit))
        image = pixels(Mollweide(), DENSITY, per_unit)[x**2 / 4 + y**2 < 1]
        assert image.mean() == pytest.approx(1, abs=0.2 / per_unit)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_a_frame_is_a_rotation_with_north_up(direction):
    frame = frame_of(direction)
    np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(frame) == pytest.approx(1)
    assert frame[1] @ NORTH >= 0
    np.testing.assert_allclose(frame[2], direction / np.linalg.norm(direction), atol=1e-15)


@pytest.mark.parametrize("direction", [(0, 0, 0), (1, 0), 3.0, (np.nan, 0, 1)])
def test_what_is_no_direction_is_refused(direction):
    with pytest.raises(ValueError, match="seen_from must be a direction"):
        frame_of(direction)


@pytest.mark.parametrize("projection", PROJECTIONS[:6], ids=repr)
def test_pixels_hold_the_density_at_their_points(projection):
    image = pixels(projection, DENSITY, 50)
    points = projection.points(*pixel_middles(projection, image.shape))
    inside = np.isfinite(points[..., 0])
    np.testing.assert_allclose(image[inside], DENSITY.at(points[inside]), rtol=1e-10)


@pytest.mark.parametrize("projection", PROJECTIONS[:6], ids=repr)
def test_pixels_outside_the_outline_are_empty(projection):
    """Those that the outline cuts are not, so that it has no jagged edge."""
    image = pixels(projection, DENSITY, 50)
    x, y = pixel_middles(projection, image.shape)
    if isinstance(projection, Mollweide):
        distance = np.hypot(x / 2, y)
    else:
        distance = np.min([np.hypot(x - a, y - b) for a, b in projection.centres], axis=0)
    assert np.isfinite(image[distance <= 1]).all()
    assert np.isnan(image[distance > 1 + 2 / 50]).all()


@pytest.mark.parametrize("upright", [True, False])
def test_a_rotated_density_is_a_rotated_view(upright):
    rotation = Rotation.from_rotvec([0.3, -1.1, 0.4]).as_matrix()
    frame = frame_of((1, 2, 0.5))
    turned = pixels(OrthographicPair(frame, upright), DENSITY.rotate(rotation), 50)
    seen = pixels(OrthographicPair(frame @ rotation, upright), DENSITY, 50)
    np.testing.assert_allclose(turned, seen, atol=1e-9 * np.nanmax(seen))


def test_both_views_show_north_up_and_the_second_from_behind():
    pair = OrthographicPair(frame_of((1, 0, 0)))
    front, back = pair.centres
    shown = {
        tuple(point): pair.place(np.array(point, dtype=float))
        for point in [
            (1, 0, 0),
            (-1, 0, 0),
            (0.6, 0.8, 0),
            (-0.6, 0.8, 0),
            (0.6, 0, 0.8),
            (-0.6, 0, 0.8),
        ]
    }
    right, up = np.array([0.8, 0]), np.array([0, 0.8])
    expected = [front, back, front + right, back - right, front + up, back + up]
    np.testing.assert_allclose(list(shown.values()), expected, atol=1e-15)


@pytest.mark.parametrize("centre", [0.0, 1.0, np.pi])
def test_the_date_line_has_no_seam(centre):
    """Its two images on the outline show the same points, also where a cluster lies on it."""
    y = np.linspace(-1, 1, 101)
    x = 2 * np.sqrt(1 - y**2)
    left, right = (Mollweide(centre).points(side * x, y, slack=1e-12) for side in (-1, 1))
    np.testing.assert_allclose(left, right, atol=1e-13)
    np.testing.assert_allclose(DENSITY.at(left), DENSITY.at(right), rtol=1e-10)


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
def test_poles_are_points_like_others(projection):
    for pole in (NORTH, -NORTH):
        place = projection.place(pole)
        again = projection.points(*place, slack=1e-12)
        np.testing.assert_allclose(again, pole, atol=1e-7)
    np.testing.assert_allclose(Mollweide().points(np.array(0.0), np.array(1.0)), NORTH)


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
def test_the_graticule_never_crosses_a_gap(projection):
    fine, main = graticule(projection)
    assert (len(fine), len(main)) == (15, 2)
    for curve in [*fine, *main]:
        steps = np.linalg.norm(np.diff(curve, axis=0), axis=1)
        assert np.nanmax(steps) < projection.leap


def test_clusters_have_the_mass_that_was_put_there():
    """Shares are 0.3 and 0.7 up to overlaps of e^(-30); one of the peaks is a pole."""
    sphere = mf.Sphere(48)
    places = np.array([[0, 0, 1], [-0.6, 0.8, 0]])
    density = 0.7 * sphere.von_mises_fisher(places[0], 30.0)
    density = density + 0.3 * sphere.von_mises_fisher(places[1], 30.0)
    found = clusters_of(density)
    np.testing.assert_allclose([cluster.mass for cluster in found], [0.7, 0.3], atol=1e-6)
    for cluster, place in zip(found, places, strict=True):
        np.testing.assert_allclose(cluster.point, place, atol=1e-3)
        assert density.at(cluster.point) == pytest.approx(density.at(place), rel=1e-4)


def test_a_density_near_the_mean_has_no_clusters():
    assert clusters_of(mf.Sphere(8).uniform()) == []
    assert clusters_of(mf.Sphere(8).zonal([1, 0.9])) == []
