"""Minimum free-energy paths: ends, saddles, the flow along them, and two ways to compute them."""

from functools import cache

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.special import iv

import meanfield as mf
from meanfield.metastability.saddles import saddle_at
from meanfield.metastability.transition_paths import _images_of, _manifold, _rotation

USA = mf.Transformer(mf.USA(4.0), 0.402)
TWO_CLUSTERS = mf.Transformer(mf.CosineSeries((0, 0, 1, 0, 0.9)), 1.9)


@cache
def states(model, space):
    """Uniform and ordered stable state of a model."""
    found = [s for s in mf.stationary_states(model, space) if s.stable]
    assert len(found) == 2
    return sorted(found, key=lambda s: np.abs(s.legendre_moments).max())


@cache
def path(model, space, **options):
    return mf.transition_path(*states(model, space), **options)


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


@pytest.mark.repeats
@pytest.mark.parametrize(("model", "space"), CASES[:3:2], ids=str)
def test_the_string_is_the_unstable_manifold(model, space):
    """Distance in L^2 at equal lengths, asked 1e-6; the string does not use the manifold."""
    fine = path(model, space, images=513)
    string = path(model, space, method="string", images=65)
    assert string.method == "string"
    assert string.converged
    curve = CubicSpline(fine.data.length.values, fine.densities.coefficients)
    degree = fine.densities.space.degree
    change = curve(string.data.length.values) - string.densities.resample(degree).coefficients
    norms = np.sqrt(np.abs(change) ** 2 @ fine.densities.space.parseval)
    assert norms.max() < 1e-6
    assert abs(string.data.length.values[-1] - fine.data.length.values[-1]) < 1e-6


def test_solve_follows_the_path_from_any_density_on_it():
    """A run from an image comes down along the path, to the spacing of the points, 1e-5."""
    here = path(USA, mf.Circle(32), images=513)
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
    here = path(USA, mf.Circle(32), images=513)
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


def test_the_path_back_is_the_path_reversed():
    a, b = states(USA, mf.Circle(32))
    forth, back = path(USA, mf.Circle(32)), mf.transition_path(b, a)
    change = forth.densities.coefficients[::-1] - back.densities.coefficients
    assert np.abs(change).max() < 1e-10
    step = b.free_energy - a.free_energy
    assert abs(forth.barrier - back.barrier - step) < 1e-12


@pytest.mark.long
@pytest.mark.parametrize("model", [USA, TWO_CLUSTERS], ids=["one cluster", "two clusters"])
def test_the_path_ends_in_a_state_that_is_turned(model):
    """Also from it: then it begins there."""
    a, b = states(model, mf.Circle(32))
    turned = mf.stationary(model, b.density.rotate(0.7))
    for ends, at in (((a, turned), -1), ((turned, a), 0)):
        here = mf.transition_path(*ends)
        assert difference(here.densities[at], turned.density) < 1e-10
        assert here.residual < 1e-5


def test_factors_turn_and_reflect_states():
    """The rotation of a state of period pi is known up to pi, the reflection of a zonal one."""
    row = np.array([1, 0, 0.4 + 0.1j, 0, -0.2j, 0, 0.1])
    space = mf.Circle(6)
    turned = space.rotate(row, 2.5)
    np.testing.assert_allclose(_rotation(space, turned, row) * turned, row, atol=1e-14)
    zonal = mf.Zonal(4, 3)
    series = np.array([1, 0.3, 0.2, -0.1])
    mirrored = series * [1, -1, 1, -1]
    np.testing.assert_allclose(_rotation(zonal, mirrored, series) * mirrored, series, atol=1e-14)


@pytest.mark.long
def test_a_path_among_states_of_a_group_is_the_axisymmetric_one():
    """On S^2 with C3v, from its own saddle, without the slow search; lengths to 1e-9."""
    model, space = CASES[3]
    found = mf.stationary_states(model, space, symmetry="C3v")
    ordered, top, uniform = sorted(found, key=lambda s: -s.order_parameter)
    saddle = saddle_at(top, uniform, "C3v")
    course = _manifold(uniform, ordered, [saddle])
    _, lengths, residual = _images_of(course, 33)
    here = path(model, space, images=33)
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
        with pytest.raises(ValueError, match="with which the residual of a state, to rounding"):
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
