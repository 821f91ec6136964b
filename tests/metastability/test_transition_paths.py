"""Minimum free-energy paths: ends, saddles, the flow along them, and two ways to compute them."""

from functools import cache
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.special import iv

import meanfield as mf
from meanfield.bifurcation.multistability import same_state
from meanfield.metastability.manifold_paths import Crossing, lowest_passes, manifold_course
from meanfield.metastability.path_frames import Course, PathFrame, parts_of, turns_between
from meanfield.metastability.saddles import SaddleSearch, saddle_at
from meanfield.metastability.string_method import string_course
from meanfield.metastability.transition_paths import _images_of

USA = mf.Transformer(mf.USA(4.0), 0.402)
TWO_CLUSTERS = mf.Transformer(mf.CosineSeries((0, 0, 1, 0, 0.9)), 1.9)


@cache
def states(model, space):
    """Uniform and ordered stable state of a model."""
    found = [s for s in mf.stationary_states(model, space) if s.stable]
    assert len(found) == 2
    return sorted(found, key=lambda s: np.abs(s.legendre_moments).max())


@cache
def path(model, space, *, back=False, **options):
    """The path from the uniform state to the ordered one, or back, with many images."""
    ends = states(model, space)[:: -1 if back else 1]
    return mf.transition_path(*ends, **{"images": 513, **options})


def difference(one, other):
    """Distance of two densities in L^2."""
    degree = max(one.space.degree, other.space.degree)
    change = one.resample(degree).coefficients - other.resample(degree).coefficients
    return float(np.sqrt(one.space.with_degree(degree).parseval @ np.abs(change) ** 2))


CASES = [
    (USA, mf.Circle(32)),
    (TWO_CLUSTERS, mf.Circle(32)),
    (mf.Transformer(mf.USA(3.0), 1.25), mf.Zonal(3, 32)),
    (mf.Transformer(mf.USA(3.0), 1.25), mf.Sphere(16)),
]


@pytest.mark.repeats
@pytest.mark.parametrize(("model", "space"), CASES, ids=str)
def test_both_ends_and_the_saddle_are_on_the_path(model, space):
    """To 1e-10; F rises to the saddle and falls from it."""
    here, (a, b) = path(model, space), states(model, space)
    assert here.converged
    assert here.method == "manifold"
    assert difference(here.densities[0], a.density) < 1e-10
    assert difference(here.densities[-1], b.density) < 1e-10
    energy = here.data.free_energy.values
    top = int(energy.argmax())
    assert abs(energy[top] - here.saddle.state.free_energy) < 1e-12
    order = float(here.data.order_parameter[top])
    assert abs(order - here.saddle.state.order_parameter) < 1e-10
    assert (np.diff(energy[: top + 1]) > 0).all()
    assert (np.diff(energy[top:]) < 0).all()
    assert here.residual < 1e-5


def test_the_barrier_of_usa_is_the_known_one():
    here = path(USA, mf.Circle(32))
    assert abs(here.barrier - 0.0011400484279) < 1e-12
    assert abs(here.saddle.state.order_parameter - 0.2201262640) < 1e-9


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize(("model", "space"), CASES[:3:2], ids=str)
def test_the_string_is_the_unstable_manifold(model, space):
    """Distance in L^2 at equal lengths, asked 1e-6; the string does not use the manifold."""
    fine = path(model, space)
    string = path(model, space, method="string", images=65)
    assert string.method == "string"
    assert string.converged
    curve = CubicSpline(fine.data.length.values, fine.densities.coefficients)
    degree = fine.densities.space.degree
    change = curve(string.data.length.values) - string.densities.resample(degree).coefficients
    norms = np.sqrt(np.abs(change) ** 2 @ fine.densities.space.parseval)
    assert norms.max() < 1e-6
    assert abs(string.data.length.values[-1] - fine.data.length.values[-1]) < 1e-6


@pytest.mark.long
def test_solve_follows_the_path_from_any_density_on_it():
    """A run from an image comes down along the path, to the spacing of the points, 1e-5."""
    here = path(USA, mf.Circle(32))
    start = 300
    times = np.linspace(0, 8, 9)
    run = mf.solve(USA, here.densities[start], (0, 8), t_eval=times, rtol=1e-10, progress=False)
    degree = here.densities.space.degree
    length = here.data.length.values
    curve = CubicSpline(length, here.densities.coefficients)
    dense = curve(np.linspace(length[start], length[-1], 40_001))
    for one in run.states[1:]:
        change = dense - one.resample(degree).coefficients
        assert np.sqrt((np.abs(change) ** 2 @ here.densities.space.parseval).min()) < 1e-5


def test_the_action_up_to_the_saddle_is_twice_the_barrier():
    """Its least value: int |mu'| |grad F| - <mu', grad F> in H^-1_mu, from fluxes on a grid."""
    here = path(USA, mf.Circle(32))
    top = int(here.data.free_energy.values.argmax())
    length = here.data.length.values[: top + 1]
    c = here.densities.coefficients[: top + 1].real
    change = CubicSpline(length, c).derivative()(length)
    k = np.arange(1, c.shape[1])
    theta = 2 * np.pi * np.arange(512) / 512
    density = 1 + 2 * c[:, 1:] @ np.cos(np.outer(k, theta))
    flux = -2 * (change[:, 1:] / k) @ np.sin(np.outer(k, theta))
    w = 2 * iv(k, 4.0) / 4.0
    drift = -(w * k * c[:, 1:]) @ np.sin(np.outer(k, theta))
    slope = -2 * (k * c[:, 1:]) @ np.sin(np.outer(k, theta))
    v = drift - slope / density / USA.kappa
    size = np.sqrt(np.mean(flux**2 / density, axis=1) * np.mean(density * v**2, axis=1))
    action = CubicSpline(length, size - np.mean(flux * v, axis=1)).integrate(0, length[-1])
    assert abs(action - 2 * here.barrier) < 1e-6 * here.barrier


@pytest.mark.long
def test_the_path_back_is_the_path_reversed():
    a, b = states(USA, mf.Circle(32))
    forth, back = path(USA, mf.Circle(32)), path(USA, mf.Circle(32), back=True)
    change = forth.densities.coefficients[::-1] - back.densities.coefficients
    assert np.abs(change).max() < 1e-10
    step = b.free_energy - a.free_energy
    assert abs(forth.barrier - back.barrier - step) < 1e-12


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "at"), [(USA, -1), (TWO_CLUSTERS, 0)], ids=["one cluster", "two clusters"]
)
def test_the_path_ends_in_a_state_that_is_turned(model, at):
    """Also from it: then it begins there."""
    a, b = states(model, mf.Circle(32))
    turned = mf.stationary(model, b.density.rotate(0.7))
    here = mf.transition_path(*((turned, a) if at == 0 else (a, turned)))
    assert difference(here.densities[at], turned.density) < 1e-10
    assert here.residual < 1e-5


def test_turns_and_reflections_map_states():
    """The rotation of a state of period pi is known up to pi, the reflection of a zonal one."""
    row = np.array([1, 0, 0.4 + 0.1j, 0, -0.2j, 0, 0.1])
    space = mf.Circle(6)
    moved = [
        space.rotate(space.rotate(row, 2.5), turn)
        for turn in turns_between(space.rotate(row, 2.5), row)
    ]
    assert min(np.abs(one - row).max() for one in moved) < 1e-14
    uniform = mf.stationary(mf.Transformer(mf.USA(3.0), 0.5), mf.Zonal(4, 16).uniform())
    zonal = PathFrame.of(uniform, uniform)
    series = np.append([1, 0.3, 0.2, -0.1], np.zeros(zonal.space.degree - 3))
    mirrored = series * (-1.0) ** zonal.space.degrees
    np.testing.assert_allclose(zonal.symmetry(mirrored, series)(mirrored), series, atol=1e-14)
    assert zonal.symmetry(0.9 * mirrored, series) is None


def test_translations_map_states_on_the_torus():
    """Also of a state that depends on one angle alone; a state of another shape is not mapped."""
    space = mf.Torus(6, 2)
    state = mf.stationary(mf.Transformer(mf.Kuramoto(), 0.5), space.uniform())
    frame = PathFrame.of(state, state)
    for concentrations in ((1.0, 2.0), (1.5, 0.0)):
        row, moved = (
            frame.space.product(
                [mf.Circle(frame.space.degree).von_mises(*one)
                 for one in zip(means, concentrations, strict=True)]
            ).coefficients
            for means in ((0.3, -1.1), (2.0, 0.7))
        )  # fmt: skip
        assert np.abs(moved - row).max() > 0.1
        assert np.abs(frame.symmetry(moved, row)(moved) - row).max() < 1e-12
    assert frame.symmetry(0.9 * moved, row) is None


@cache
def cubic_wells():
    """Kuramoto in a field of three wells, invariant under x_2 -> -x_2 alone: a, and b, c mirrored.

    V = 0.1 cos 3 theta + 0.02 cos theta.
    """
    pull = mf.Potential(lambda x: 0.4 * x[..., 0] ** 3 - 0.28 * x[..., 0])
    model, circle = mf.Transformer(mf.Kuramoto() + pull, kappa=3.0), mf.Circle(24)
    found = [mf.stationary(model, circle.von_mises(angle, 4.0)) for angle in (0.0, 2.1, -2.1)]
    assert all(one.stable for one in found)
    return found


@pytest.mark.long
@pytest.mark.parametrize("method", ["manifold", pytest.param("string", marks=pytest.mark.long)])
def test_paths_in_a_field_end_in_the_state_asked_for_and_not_turned(method):
    """One saddle stands for two mirror images. Free energies on the path are those of its states.

    Before, the path to one of them was turned, ended 0.04 away and crossed 13 % lower.
    """
    a, b, c = cubic_wells()
    to_b, to_c = (mf.transition_path(a, end, method=method, images=33) for end in (b, c))
    mirrored = to_c.densities.coefficients.conj()
    assert np.abs(to_b.densities.coefficients - mirrored).max() < 1e-9
    for path, end in ((to_b, b), (to_c, c)):
        assert path.converged
        assert path.method == method
        assert difference(path.densities[0], a.density) < 1e-10
        assert difference(path.densities[-1], end.density) < 1e-10
        energy = path.data.free_energy.values
        assert abs(energy[-1] - energy[0] - end.free_energy + a.free_energy) < 1e-12
        assert abs(energy.max() - energy[0] - path.barrier) < 1e-12
        assert path.exponent == pytest.approx(3.0 * path.barrier, rel=1e-12)


@pytest.mark.long
def test_a_path_from_a_mirrored_state_begins_in_it_and_not_in_its_image():
    """From b and from c to a, which is its own mirror image; then from b over a to c."""
    a, b, c = cubic_wells()
    saddle = next(one for one in mf.saddles(b) if same_state(one.ends[1], a))
    both = saddle, saddle_at(saddle.state, a, "axisymmetric")

    def around(state):
        return [one for one in both if same_state(one.ends[0], state)]

    for start, end, count in ((b, a, 1), (c, a, 1), (b, c, 2)):
        ways = lowest_passes(start, end, around)
        assert len(ways) == count
        legs = manifold_course(start, end, ways).legs
        for row, state in ((legs[0][0], start), (legs[-1][-1], end)):
            away = row - state.density.resample(len(row) - 1).coefficients
            assert np.abs(away).max() < 1e-10
    assert ways[0].reflection != ways[1].reflection
    assert np.abs(legs[1][-1] - legs[2][0]).max() < 1e-10
    assert np.abs(legs[0] - legs[3][::-1].conj()).max() < 1e-8
    assert manifold_course(b, c, [ways[0], ways[0]]) is None


@pytest.mark.long
def test_a_path_joins_a_state_and_its_mirror_image_in_a_field():
    """Over a, which lies lower: tokens wait there, and their time has the exponent from a."""
    a, b, c = cubic_wells()
    here = mf.transition_path(b, c, images=17)
    assert here.converged
    for i, state in ((0, b), (8, a), (-1, c)):
        assert difference(here.densities[i], state.density) < 1e-10
    rows = here.densities.coefficients
    assert np.abs(rows - rows[::-1].conj()).max() < 1e-7
    up, back = (here.saddle.state.free_energy - one.free_energy for one in (b, a))
    assert here.quasi_potential == pytest.approx(up + back, rel=1e-12)
    assert here.barrier == pytest.approx(up, rel=1e-12)
    assert here.exponent == pytest.approx(3.0 * back, rel=1e-12)


def test_the_string_in_a_field_begins_with_the_states_themselves(monkeypatch):
    """After one step; states in a field have no axis."""
    monkeypatch.setattr("meanfield.metastability.string_method.MOST_STRING_STEPS", 1)
    a, b, _ = cubic_wells()
    course = string_course(a, b, 9, SaddleSearch(a, "axisymmetric"))
    for row, state in ((course.legs[0][0], a), (course.legs[-1][-1], b)):
        away = row - state.density.resample(len(row) - 1).coefficients
        assert np.abs(away).max() < 1e-12


@pytest.mark.long
def test_symmetries_of_a_model_map_states_and_others_do_not():
    """On S^2 in a field along an axis rotations about it and a mirror; on the torus half turns."""
    rng = np.random.default_rng(1)
    cases = [
        (mf.Sphere(12), lambda x: 0.3 * x[..., 2], np.diag([1.0, -1.0, 1.0])),
        (mf.Torus(6, 2), lambda x: 0.1 * x[..., 0] + 0.2 * (2 * x[..., 2] ** 2 - 1), None),
    ]
    for space, potential, mirror in cases:
        model = mf.Transformer(mf.Kuramoto() + mf.Potential(potential), kappa=0.5)
        state = mf.stationary(model, space.uniform())
        assert state.converged
        frame = PathFrame.of(state, state)
        harmonics = frame.basis.all
        low = rng.standard_normal(len(frame.basis.degrees)) * (frame.basis.degrees <= 3)
        row = harmonics.series(0.1 * low)
        if mirror is not None:
            c, s = np.cos(1.1), np.sin(1.1)
            about = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
            moved = frame.space.rotate(row, about @ mirror)
            wrong = frame.space.rotate(row, np.diag([1.0, -1.0, -1.0]))
        else:
            waves = frame.space.waves
            moved = row.conj() * np.exp(1j * np.pi * waves[:, 1])
            wrong = row * np.exp(1j * np.pi * waves[:, 0])
        found = frame.symmetry(moved, row)
        assert np.abs(found(moved) - row).max() < 1e-12
        assert frame.symmetry(wrong, row) is None


def test_the_exponent_is_that_of_the_mean_time_of_a_chain():
    """Random free energies of states and saddles; times by a linear system, rates exp(-N dF)."""
    rng, n = np.random.default_rng(4), 3000.0
    for count in (1, 2, 3, 4) * 5:
        bottoms, tops = 0.1 * rng.random(count + 1), 0.1 + 0.1 * rng.random(count)
        up, down = np.exp(-n * (tops - bottoms[:-1])), np.exp(-n * (tops - bottoms[1:]))
        steps = [1 / up[0]]
        for i in range(1, count):  # from c_i to c_{i+1}, first steps back included
            steps.append((1 + down[i - 1] * steps[-1]) / up[i])
        ends = [SimpleNamespace(free_energy=energy, model=SimpleNamespace(kappa=2.0))
                for energy in bottoms]  # fmt: skip
        passes = tuple(
            SimpleNamespace(state=SimpleNamespace(free_energy=top), ends=pair)
            for top, pair in zip(tops, pairwise(ends), strict=True)
        )
        action = 2 * (tops - bottoms[:-1]).sum()
        path = mf.TransitionPath(
            None, None, (ends[0], ends[-1]), passes, "manifold", 0.0, None, action, 0.0
        )
        assert abs(path.exponent / 2 - np.log(sum(steps)) / n) < 1e-3
        assert path.quasi_potential >= path.exponent / 2 - 1e-15
        unknown = [SimpleNamespace(free_energy=np.nan, model=ends[0].model) for _ in ends]
        nowhere = tuple(SimpleNamespace(state=unknown[0], ends=pair) for pair in pairwise(unknown))
        path = mf.TransitionPath(
            None, None, (unknown[0], unknown[-1]), nowhere, "least action", 0.0, None, 0.3, 0.0
        )
        known = count == 1
        assert np.isnan(path.exponent) != known
        assert (path.saddle is None) != known


@pytest.mark.parametrize("images", [9, 12, 13, 14, 40])
def test_a_path_over_three_saddles_has_two_parts_a_leg_or_more(images):
    """A few images are raised to 13; else the number is that asked for, and parts are as equal."""
    uniform = states(USA, mf.Circle(32))[0]
    frame = PathFrame.of(uniform, uniform)
    shares = np.array([0.0, 6.0, 6.2, 6.3, 11.0, 11.1, 11.2]) / 100
    nodes = np.zeros((7, frame.space.degree + 1))
    nodes[:, 0], nodes[:, 1] = 1.0, shares
    legs = [np.linspace(one, other, 30) for one, other in pairwise(nodes)]
    parts = parts_of(frame, legs, images)
    assert min(parts) >= 2
    assert sum(parts) == max(images, 13) - 1
    rows, lengths, _ = _images_of(Course(frame, legs, [], "manifold"), images)
    assert len(rows) == len(lengths) == max(images, 13)
    assert (np.diff(lengths) > 0).all()


@pytest.mark.long
def test_a_path_among_states_of_a_group_is_the_axisymmetric_one():
    """On S^2 with C3v, from its own saddle, without the slow search; lengths to 1e-9."""
    model, space = CASES[3]
    found = mf.stationary_states(model, space, symmetry="C3v")
    ordered, top, uniform = sorted(found, key=lambda s: -s.order_parameter)
    saddle = saddle_at(top, uniform, "C3v")
    course = manifold_course(uniform, ordered, [Crossing(saddle)])
    _, lengths, residual = _images_of(course, 33)
    here = path(model, space)
    assert abs(saddle.barrier - here.barrier) < 1e-12
    assert abs(lengths[-1] - here.data.length.values[-1]) < 1e-9
    assert residual < 1e-5


def test_files_and_figures_hold_paths(tmp_path):
    here = path(USA, mf.Circle(32))
    again = mf.load(here.save(tmp_path / "path.nc"))
    np.testing.assert_array_equal(again.densities.coefficients, here.densities.coefficients)
    assert again.data.identical(here.data)
    assert again.converged
    assert again.barrier == pytest.approx(here.barrier, abs=1e-13)
    figure = here.plot()
    assert len(figure.axes) == 2
    assert len(figure.axes[1].lines) == 7
    assert "barrier" in repr(again)


@pytest.mark.long
def test_files_of_paths_and_saddles_take_the_model_with_its_functions(tmp_path):
    axis = mf.Attention(np.eye(2), np.eye(2), np.diag([1, 0]), 0.0)

    def model(strength):
        pull = mf.Field(lambda x: strength * np.eye(2)[0] * np.ones_like(x))
        return mf.Transformer(mf.Kuramoto() + 0.1 * pull + 0.4 * axis, 3.0)

    one, other = (s for s in mf.stationary_states(model(0.5), mf.Circle(16)) if s.stable)
    for found in (mf.saddles(other), mf.transition_path(one, other, images=9)):
        file = found.save(tmp_path / "found.nc")
        assert repr(mf.load(file, model=model(0.5))) == repr(found)
        with pytest.raises(
            ValueError, match="differ from those saved: the residual of a state, to rounding"
        ):
            mf.load(file, model=model(0.501))


@pytest.mark.long
def test_a_path_without_a_saddle_is_not_converged():
    """The lowest saddle has a symmetry that the ordered state lacks: no manifold joins the two."""
    model = mf.Transformer(mf.CosineSeries((0, 0.8, 1, 0, 0.9)), 1.9)
    ordered, uniform = states(model, mf.Circle(32))[::-1]
    here = mf.transition_path(uniform, ordered, images=17)
    assert here.method == "string"
    assert not here.converged
    assert here.residual > 1e-3
    assert "not converged" in repr(here)


def test_ends_that_have_no_path_are_refused():
    a, b = states(USA, mf.Circle(32))
    with pytest.raises(ValueError, match="both are"):
        mf.transition_path(b, b)
    other = mf.stationary_states(USA.replace(kappa=0.39), mf.Circle(32))[0]
    with pytest.raises(ValueError, match="one model"):
        mf.transition_path(a, other)
    with pytest.raises(ValueError, match="images"):
        mf.transition_path(a, b, images=2)
    with pytest.raises((TypeError, ValueError), match="method"):
        mf.transition_path(a, b, method="gradient")
    sa = mf.stationary_states(mf.Transformer(mf.SA(2.0), 1.5), mf.Circle(16))[0]
    with pytest.raises(ValueError, match="both are"):
        mf.transition_path(sa, sa)
    with pytest.raises(TypeError, match="b must be a StationaryState"):
        mf.transition_path(a, 3.0)
