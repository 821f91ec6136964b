"""External potentials: gradients, energies of tokens and densities, states at rest, barriers."""

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf
from meanfield.core.dual import Dual

CIRCLE, SPHERE = mf.Circle(24), mf.Sphere(12)
COUPLING, HEIGHT, KAPPA = 3.0, 0.2, 1.5
PULLED = COUPLING * mf.Kuramoto() + HEIGHT * mf.Potential(lambda x: x[..., 0])


def smooth(x):
    return 0.5 * x[..., 0] ** 2 + x[..., 1] * np.exp(0.3 * x[..., 0])


def by_scipy(x):  # no rule in core.dual
    from scipy.special import j0

    return j0(x[..., 0]) + x[..., 1] ** 3


def start(space, f=lambda x: 1 + 0.4 * x[..., 1]):
    values = f(space.points)
    return mf.Density(space, space.to_coefficients(values / (values @ space.weights)))


@pytest.mark.parametrize("V", [smooth, by_scipy])
def test_gradients_are_differences(V):
    x, h = np.random.default_rng(0).standard_normal((4, 5, 3)), 1e-5
    potential = mf.Potential(V)
    found = potential.values(x)
    for k, e in enumerate(np.eye(3)):
        expected = (V(x + h * e) - V(x - h * e)) / (2 * h)
        np.testing.assert_allclose(found[..., k], expected, atol=1e-9)
    moved = potential.values(Dual(x, np.ones((1, *x.shape))))
    expected = (potential.values(x + h) - potential.values(x - h)) / (2 * h)
    np.testing.assert_allclose(moved.changes[0], expected, atol=1e-8)
    assert (mf.Potential(lambda x: np.full(x.shape[:-1], 2.0)).values(x) == 0).all()


def test_a_potential_is_a_field_with_an_energy():
    """Same densities as under the field grad V; the energy grows by the squared speed."""
    field = mf.Field(lambda x: np.stack([x[..., 0], np.cos(x[..., 1])], axis=-1))
    potential = mf.Potential(lambda x: 0.5 * x[..., 0] ** 2 + np.sin(x[..., 1]))
    runs = [
        mf.solve(mf.Transformer(mf.USA(1.0) + one, 4.0), start(CIRCLE), (0, 1), dt=0.05)
        for one in (field, potential)
    ]
    assert np.abs(runs[0].final.coefficients - runs[1].final.coefficients).max() < 1e-14
    assert np.isnan(runs[0].observables["free_energy"]).all()
    F, t = runs[1].observables["free_energy"].values, runs[1].t
    fall = runs[1].observables["dissipation"].values
    assert np.abs(np.gradient(F, t)[1:-1] + fall[1:-1]).max() < 1e-3
    assert (np.diff(F) < 0).all()


@pytest.mark.repeats
@pytest.mark.parametrize("space", [CIRCLE, SPHERE], ids=repr)
def test_alone_it_rests_at_its_exponential(space):
    """exp(kappa V)/const, of the least free energy -log(int exp(kappa V))/kappa."""
    model = mf.Transformer(mf.Potential(smooth), 2.0)
    run = mf.solve(model, start(space), (0, 60), rtol=1e-9)
    final, law = run.final, np.exp(2 * smooth(run.final.space.points))
    mass = law @ final.space.weights
    assert np.abs(final.values - law / mass).max() < 1e-11
    least = run.observables["free_energy"].values[-1]
    assert least == pytest.approx(-np.log(mass) / 2.0, abs=1e-10)


def _bessel_states():
    """r = I_1/I_0(a), a = kappa (K r + h), of smallest to largest r, with free energies."""

    def off(r):
        a = KAPPA * (COUPLING * r + HEIGHT)
        return iv(1, a) / iv(0, a) - r

    def free_energy(r):
        a = KAPPA * (COUPLING * r + HEIGHT)
        return (a * r - np.log(iv(0, a))) / KAPPA - COUPLING * r**2 / 2 - HEIGHT * r

    grid = np.linspace(-0.999, 0.999, 400)
    pairs = [(a, b) for a, b in itertools.pairwise(grid) if off(a) * off(b) < 0]
    roots = [brentq(off, *pair, xtol=1e-15) for pair in pairs]
    return [(r, free_energy(r)) for r in roots]


def test_states_in_a_field_have_the_free_energies_of_bessel_functions():
    exact = _bessel_states()
    found = mf.stationary_states(mf.Transformer(PULLED, KAPPA), CIRCLE)
    assert len(exact) == len(found) == 3
    for state in found:
        r, F = min(exact, key=lambda one: abs(abs(one[0]) - state.order_parameter))
        assert state.order_parameter == pytest.approx(abs(r), abs=1e-12)
        assert state.free_energy == pytest.approx(F, abs=1e-12)


@pytest.mark.long
def test_the_barrier_in_a_field_is_that_of_the_turned_state():
    """Between the two ways round, the state against the field is a saddle of index one."""
    stable = mf.stationary_states(mf.Transformer(PULLED, KAPPA), CIRCLE)[0]
    (saddle,) = mf.saddles(stable)
    (_, least), (against, top) = _bessel_states()[-1], _bessel_states()[0]
    assert saddle.state.order_parameter == pytest.approx(-against, abs=1e-12)
    assert saddle.barrier == pytest.approx(top - least, abs=1e-12)


def test_tokens_have_its_energy():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((40, 3))
    tokens = mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))
    model = mf.Transformer(mf.USA(1.0) + 0.5 * mf.Potential(smooth))
    run = mf.solve(model, tokens, (0, 1), t_eval=np.linspace(0, 1, 201), rtol=1e-10)
    E, speed = (run.observables[name].values for name in ("interaction_energy", "speed"))
    t, y = run.t, tokens.x
    pairs = np.exp(y @ y.T).mean() / 2
    assert E[0] == pytest.approx(pairs + 0.5 * smooth(y).mean(), rel=1e-12)
    assert np.abs(np.gradient(E, t)[1:-1] - speed[1:-1] ** 2).max() < 1e-4


def test_a_reaction_has_its_level():
    """Masses grow by alpha (V - int V dmu), of tokens and of densities alike."""
    model = mf.Transformer(mf.Potential(smooth), reaction=0.7)
    nodes = start(CIRCLE)
    run = mf.solve(model, nodes, (0, 0.5), rtol=1e-10)
    angles = 2 * np.pi * np.arange(256) / 256
    x = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    masses = (1 + 0.4 * x[:, 1]) / 256
    tokens = mf.solve(model, mf.Tokens(x, masses), (0, 0.5), rtol=1e-10).final
    of_tokens = tokens.masses @ tokens.x
    c = run.final.coefficients[1]
    assert np.abs(of_tokens - [c.real, -c.imag]).max() < 1e-8


def test_refusals():
    with pytest.raises(TypeError, match="must be a function"):
        mf.Potential(3.0)
    with pytest.raises(ValueError, match=r"Potential.function, of points"):
        mf.Potential(lambda x: x).level(np.eye(2))
    kinked = mf.Potential(lambda x: np.interp(x[..., 0], [-1, 0, 1], [0, 0, 1]))
    with pytest.raises(mf.MeanfieldError, match=r"derivative of Potential.function"):
        kinked.values(np.array([[1e-5, 1.0]]))
