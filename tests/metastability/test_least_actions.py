"""Paths of least action against quasi-potentials in closed form, by quadrature and by energies."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq, root

import meanfield as mf
from meanfield.core.errors import MeanfieldError
from meanfield.metastability.least_actions import DensityFlow, Local, _action, _Polynomials
from meanfield.metastability.least_actions import least_action as least_action_of

CIRCLE = mf.Circle(16)


def point_flow(velocity, slope):
    """A flow of points with noise of unit mobility."""

    def at(x):
        nothing = np.zeros(len(x))
        unit = np.eye(len(x))
        return Local(
            velocity(x), unit, unit, slope(x), lambda p: nothing, lambda p, change: nothing
        )

    return at


@cache
def in_a_field(turning=0.0):
    """SA in a field of two wells, a little tilted; `turning` is no gradient."""

    def field(x):
        turned = turning * x[..., :1] * np.stack([-x[..., 1], x[..., 0]], axis=-1)
        return x * np.array([0.6, 0.0]) + np.array([0.02, 0.0]) + turned

    return mf.Transformer(mf.SA(2.0) + mf.Field(field), 5.0)


@cache
def wells(model):
    """The stable states to the right and to the left."""
    starts = [CIRCLE.density(lambda t, s=sign: 1 + 0.9 * s * np.cos(t)) for sign in (1, -1)]
    runs = [mf.solve(model, start, (0, 60), progress=False) for start in starts]
    return [mf.stationary(model, run.final) for run in runs]


def test_one_token_in_a_double_well_climbs_at_twice_the_barrier():
    """v = -sin 2 theta, by minimisation from points that are not those of the path."""
    flow = point_flow(lambda x: -np.sin(2 * x), lambda x: -2 * np.cos(2 * x)[:, None])
    start = np.pi / 2 * np.array([0.0, 0.1, 0.8, 1.0])[:, None]
    found = least_action_of(flow, start)
    assert found.action == pytest.approx(2.0, rel=1e-12)
    assert found.error < 1e-12


@pytest.mark.parametrize("sign", [1, -1])
def test_one_token_in_a_field_that_is_no_gradient_on_the_circle(sign):
    """v = 0.3 - sin 2 theta turns once around; twice its integral against v, by quadrature."""

    def velocity(x):
        return 0.3 - np.sin(2 * x)

    rest = brentq(velocity, -np.pi / 4, np.pi / 4)
    saddle = np.pi / 2 - rest - (sign < 0) * np.pi
    exact = 2 * abs(quad(velocity, rest, saddle)[0])
    flow = point_flow(velocity, lambda x: -2 * np.cos(2 * x)[:, None])
    assert least_action_of(flow, np.array([[rest], [saddle]])).action == pytest.approx(
        exact, rel=1e-6
    )


@pytest.mark.parametrize("turning", [0.0, 0.3])
def test_a_plane_flow_with_rotation_has_the_known_quasi_potential(turning):
    """v = -grad U + J grad U, J antisymmetric, has 2 U; the path is then no line of the flow."""

    def slope_of_energy(x):
        return np.array([x[0] ** 3 - x[0] + x[1] ** 2 * x[0], x[1] * (3 + x[0] ** 2)])

    def velocity(x):
        g = slope_of_energy(x)
        return -g + turning * x[0] * np.array([g[1], -g[0]])

    def slope(x):
        steps = 1e-6 * np.eye(2)
        return np.array([(velocity(x + h) - velocity(x - h)) / 2e-6 for h in steps]).T

    found = least_action_of(point_flow(velocity, slope), np.array([[-1.0, 0.0], [0.0, 0.0]]))
    assert found.action == pytest.approx(0.5, rel=1e-6)
    assert (np.abs(found.rows[:, 1]).max() > 1e-3) == (turning > 0)


def test_the_gradient_of_the_action_is_its_derivative():
    """Central differences, of a random path of SA in a field."""
    model = in_a_field(turning=0.1)
    flow = DensityFlow(model, wells(model)[0].equation.basis)
    rng = np.random.default_rng(3)
    scale = 1.0 / (1.0 + flow.functions.degrees) ** 3
    path = _Polynomials(6)
    ends = rng.standard_normal((2, len(scale))) * scale
    rows = path.spaced(ends) + 0.1 * rng.standard_normal((7, len(scale))) * scale
    change = rng.standard_normal(rows.shape) * scale
    gradient = np.sum(_action(flow.at, path, rows)[1] * change)
    above, below = (_action(flow.at, path, rows + h * change)[0] for h in (1e-5, -1e-5))
    assert gradient == pytest.approx((above - below) / 2e-5, rel=1e-7)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("model", "space"),
    [
        (mf.Transformer(mf.USA(4.0), 0.402), mf.Circle(16)),
        (mf.Transformer(mf.USA(3.0), 1.25), mf.Zonal(3, 16)),
    ],
    ids=["circle", "zonal"],
)
def test_with_a_free_energy_it_is_twice_the_barrier(model, space):
    """From the straight line between uniform state and saddle, 1e-6 asked."""
    states = mf.stationary_states(model, space)
    (saddle,) = [s for s in states if not s.stable]
    basis = saddle.equation.basis.finer(20)
    flow = DensityFlow(model, basis)
    top = basis.sizes * saddle.equation.basis.padded(saddle.legendre_moments)[:20]
    found = least_action_of(flow.at, flow.coordinates(np.array([0 * top, top])))
    assert found.action == pytest.approx(2 * saddle.free_energy, rel=1e-9)
    assert found.error < 1e-8 * found.action
    np.testing.assert_allclose(flow.coefficients(found.rows[-1]), top, atol=1e-10)


@pytest.mark.long
def test_a_path_of_sa_climbs_to_the_saddle_and_follows_the_flow_down():
    """Ends and saddle to 1e-10; the action is that of a relaxation in time, `validation/`."""
    model = in_a_field()
    a, b = wells(model)
    path = mf.transition_path(a, b, images=65)
    assert path.converged
    assert path.method == "least action"
    assert np.isnan(path.barrier)
    assert path.action == pytest.approx(0.3250730, rel=1e-6)
    assert path.action_error < 1e-6 * path.action
    assert path.quasi_potential == path.action / 2
    assert path.exponent == model.kappa * path.quasi_potential
    left, right = path.plot().axes
    assert left.get_ylabel() == "order parameter"
    np.testing.assert_array_equal(left.lines[0].get_ydata(), path.data.order_parameter)
    assert len(right.lines) == 7
    images = path.densities
    for state, i in ((a, 0), (b, -1)):
        assert np.abs(images[i].resample(32).coefficients
                      - state.density.resample(32).coefficients).max() < 1e-10  # fmt: skip
    saddle = path.saddle.state.density
    away = [np.abs(one.resample(32).coefficients - saddle.resample(32).coefficients).max()
            for one in images]  # fmt: skip
    assert min(away) < 1e-10
    assert "quasi-potential" in repr(path)


class OwnNormalisation(mf.ZonalDrift):
    """grad(W * mu)/(Z * mu) with W' = exp(3 t), Z = 1 + strength t.

    Parameters
    ----------
    strength : float
    """

    strength: float

    def slope(self, t):
        return np.exp(3 * t)

    def weight(self, t):
        return 1 + self.strength * t


ZONAL = mf.Zonal(3, 32)


@cache
def uniform_and_ordered(drift):
    """Both stable states at kappa = 1.3."""
    model = mf.Transformer(drift, 1.3)
    run = mf.solve(model, ZONAL.density(lambda x: np.exp(4 * x)), (0, 40), progress=False)
    return mf.stationary(model, ZONAL.uniform()), mf.stationary(model, run.final)


def first_order(path):
    """Derivative of the quasi-potential in the strength at 0, along the path of least energy.

    -int <b_1, mu'> ds up to the saddle, b_1 = div(mu (t * mu) grad(W * mu)), by fluxes of Legendre
    series.
    """
    x, w = np.polynomial.legendre.leggauss(64)
    points = np.stack([np.sqrt(1 - x**2), 0 * x, x], axis=1)
    top = int(path.data.free_energy.values.argmax())
    values = np.array([one.at(points) for one in path.densities])[: top + 1]
    l = np.arange(16)
    series = [np.polynomial.Legendre.basis(k) for k in l]
    p, slopes = np.array([s(x) for s in series]), np.array([s.deriv()(x) for s in series])
    kernel = p @ (w * np.exp(3 * x) / 3) / 2
    total = 0.0
    for one, two in pairwise(values):
        m, change = p @ (w * (one + two) / 2) / 2, p @ (w * (two - one)) / 2
        pull = ((2 * l + 1) * kernel * m) @ slopes
        inner = (2 * l[1:] + 1) * change[1:] / (l[1:] * (l[1:] + 1))
        flux = inner @ slopes[1:] * (1 - x**2)
        total += m[1] * np.sum(w * x * pull * flux) / 2
    return total


@pytest.mark.long
@pytest.mark.parametrize("way", [1, -1])
def test_a_drift_with_a_normalisation_of_its_own_on_the_sphere(tmp_path, way):
    """At strength 0 the barrier of USA; perturbations of the drift change it to first order."""
    known = mf.transition_path(*uniform_and_ordered(mf.USA(3.0))[::way], images=257)
    none, more = (
        mf.transition_path(*uniform_and_ordered(OwnNormalisation(strength))[::way])
        for strength in (0.0, 1e-4)
    )
    assert none.converged and more.converged
    assert none.quasi_potential == pytest.approx(known.barrier, rel=1e-9)
    slope = (more.quasi_potential - none.quasi_potential) / 1e-4
    assert slope == pytest.approx(first_order(known), rel=1e-3)
    again = mf.load(more.save(tmp_path / "path.nc"))
    assert again.action == more.action
    assert again.action_error == more.action_error
    assert again.converged


@pytest.mark.long
def test_attention_with_matrices_that_is_a_gradient_in_disguise():
    """Unnormalised attention with Q = V = A symmetric: F of W = exp(beta x.A y)/beta on a grid."""
    a, kappa, pull = np.array([[1.0, 0.15], [0.15, 0.6]]), 2.0, np.array([0.02, 0.0])
    theta = 2 * np.pi * np.arange(64) / 64
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    kernel, field = np.exp(x @ a @ x.T), x @ pull

    def energy(start):
        def law(psi):
            weights = np.exp(kappa * psi)
            return weights / weights.sum()

        found = root(lambda psi: kernel @ law(psi) + field - psi,
                     kernel @ law(start) + field, tol=1e-12)  # fmt: skip
        assert found.success
        mu = law(found.x)
        return mu @ np.log(64 * mu) / kappa - mu @ kernel @ mu / 2 - mu @ field

    right, left, saddle = (energy(size * np.cos(theta)) for size in (1.0, -1.0, 0.0))
    drift = mf.Attention(a, 1, a, 1.0, weights=mf.Unnormalised())
    states = wells(mf.Transformer(drift + mf.Field(lambda x: 0 * x + pull), kappa))
    for ends, below in ((states, right), (states[::-1], left)):
        path = mf.transition_path(*ends, images=65)
        assert path.converged
        assert np.isnan(path.barrier)
        assert path.quasi_potential == pytest.approx(saddle - below, rel=1e-9)


def test_what_has_no_least_action_is_refused():
    model = in_a_field()
    a, b = wells(model)
    with pytest.raises(MeanfieldError, match="free energy"):
        mf.transition_path(a, b, method="string")
    noise = mf.Transformer(mf.USA(2.0), noise=mf.Anisotropic(np.diag([1.3, 0.7])), kappa=3.0)
    with pytest.raises(MeanfieldError, match="isotropic"):
        DensityFlow(noise, None)
    with pytest.raises(MeanfieldError, match="log T = n exponent"):
        mf.escape_time(a, 100)
