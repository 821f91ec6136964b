"""Saddles of the free energy against the self-consistency equation, by quadrature and bisection."""

import sys
import types
from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf
from meanfield.metastability.saddles import SaddleSearch, saddle_at
from meanfield.metastability.string_method import string_course

BESIDE = mf.USA(4.0), 0.39, mf.Circle(32)  # a model and its space, with two stable states


@cache
def both_stable(drift, kappa, space):
    """The uniform stable state of a model and the ordered one; or one of them."""
    states = mf.stationary_states(mf.Transformer(drift, kappa), space)
    return sorted((s for s in states if s.stable), key=lambda s: s.order_parameter)


def stable(drift, kappa, space, ordered=False):
    """The stable state of a model, uniform or ordered."""
    return both_stable(drift, kappa, space)[-1 if ordered else 0]


@cache
def saddles_around(drift, kappa, space, ordered=False):
    """The saddles around a stable state of a model, uniform or ordered."""
    return mf.saddles(stable(drift, kappa, space, ordered))


def saddles_beside(ordered):
    """The saddles of `BESIDE` around a stable state."""
    return saddles_around(*BESIDE, ordered)


def bessel_state(beta, kappa, low, high, terms=24):
    """First moment and F of a state of USA on the circle, by fixed points of the higher moments.

    For each m_1 the other moments are iterated; m_1 is the root of the remaining equation.
    """
    k = np.arange(1, terms + 1)
    w = 2 * iv(k, beta) / beta
    theta = 2 * np.pi * np.arange(512) / 512
    waves = np.cos(k[:, None] * theta)

    def closed(first):
        m = np.zeros(terms)
        m[0] = first
        for _ in range(400):
            law = np.exp(kappa * (w * m) @ waves)
            moments = waves @ law / law.sum()
            m[1:] = moments[1:]
        return m, moments[0], law

    first = brentq(lambda r: closed(r)[1] - r, low, high, xtol=1e-13)
    m, _, law = closed(first)
    law /= law.mean()
    energy = np.mean(law * np.log(law)) / kappa - 0.5 * w @ m**2
    return first, energy


def test_the_saddle_of_usa_is_the_known_one():
    """First moment and barrier at beta = 4, kappa = 0.402; the reference has ten digits."""
    (saddle,) = saddles_around(mf.USA(4.0), 0.402, mf.Circle(32))
    assert saddle.converged
    assert abs(saddle.state.order_parameter - 0.2201262640) < 1e-9
    assert abs(saddle.barrier - 0.0011400484279) < 1e-12
    assert abs(saddle.ends[0].order_parameter) < 1e-12
    assert saddle.ends[1].order_parameter > 0.75
    assert not saddle.state.stable


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("beta", "kappa", "low", "high"),
    [(4.0, 0.402, 0.1, 0.4), (4.0, 0.39, 0.3, 0.5), (5.0, 0.19, 0.3, 0.5)],
)
def test_barriers_on_the_circle_are_those_of_fixed_points(beta, kappa, low, high):
    first, energy = bessel_state(beta, kappa, low, high)
    (saddle,) = saddles_around(mf.USA(beta), kappa, mf.Circle(32))
    assert abs(saddle.state.order_parameter - first) < 1e-9
    assert abs(saddle.barrier - energy) < 1e-11


@pytest.mark.long
def test_both_stable_states_have_the_same_saddle_with_the_ends_exchanged():
    (one,), (other,) = saddles_beside(ordered=False), saddles_beside(ordered=True)
    assert abs(one.state.order_parameter - other.state.order_parameter) < 1e-10
    assert abs(one.ends[1].order_parameter - other.ends[0].order_parameter) < 1e-10
    step = one.ends[1].free_energy - one.ends[0].free_energy
    assert abs(one.barrier - other.barrier - step) < 1e-12
    assert one.direction[1].real * other.direction[1].real < 0


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("sign", [1, -1])
def test_the_direction_leads_to_the_stable_state_whatever_the_sign_of_the_mode(monkeypatch, sign):
    """An eigenvector has no sign; it is set here, where it is computed."""
    around = [(stable(*BESIDE, ordered), *saddles_beside(ordered)) for ordered in (False, True)]
    module = sys.modules[mf.saddles.__module__]
    modes = module.unstable_modes
    monkeypatch.setattr(
        module, "unstable_modes",
        lambda state: [mode._replace(vector=sign * mode.vector) for mode in modes(state)],
    )  # fmt: skip
    for ordered, (state, found) in enumerate(around):
        saddle = saddle_at(found.state, state, SaddleSearch(state, "axisymmetric").symmetry)
        first = saddle.state.density.moment(1)
        rises = np.real(saddle.direction[1] / first) > 0
        assert rises == ordered
        assert (saddle.ends[0].order_parameter > abs(first)) == ordered


@pytest.mark.long
def test_the_sphere_and_its_zonal_densities_have_one_saddle():
    """Also by the equation of self-consistency in one variable, with 12 moments."""
    drift, kappa = mf.USA(3.0), 1.25
    (one,) = saddles_around(drift, kappa, mf.Zonal(3, 32))
    (other,) = saddles_around(drift, kappa, mf.Sphere(16))
    assert abs(one.barrier - other.barrier) < 1e-12
    assert abs(one.rate - other.rate) < 1e-9
    m = one.state.legendre_moments[:16]
    l = np.arange(1, 17)
    kernel = [quad(lambda t, k=k: np.exp(3 * t) / 3 * np.polynomial.Legendre.basis(k)(t) / 2,
                   -1, 1)[0] for k in l]  # fmt: skip
    potential = np.polynomial.Legendre(np.append(0, (2 * l + 1) * np.array(kernel) * m))
    mass = quad(lambda t: np.exp(kappa * potential(t)) / 2, -1, 1)[0]
    first = quad(lambda t: t * np.exp(kappa * potential(t)) / 2, -1, 1)[0] / mass
    assert abs(first - m[0]) < 1e-10


@pytest.mark.long
@pytest.mark.parametrize("symmetry", ["C3v", "none"])
def test_the_saddle_with_a_group_and_without_is_the_axisymmetric_one(symmetry):
    """From an axisymmetric state of another degree, ordered or not; barrier and rate to 1e-10."""
    drift, space = mf.USA(3.0), mf.Sphere(16)
    ordered = symmetry == "C3v"
    (one,) = saddles_around(drift, 1.25, space, ordered)
    (other,) = mf.saddles(stable(drift, 1.25, space, ordered), symmetry=symmetry)
    assert other.converged
    assert abs(one.barrier - other.barrier) < 1e-12
    assert abs(one.rate - other.rate) < 1e-10
    for here, there in zip((one.state, *one.ends), (other.state, *other.ends), strict=True):
        assert abs(here.order_parameter - there.order_parameter) < 1e-10


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize(
    ("kind", "order", "ordered"), [("fold", 1.5, True), ("bifurcation", 2.0, False)]
)
def test_barriers_vanish_with_the_known_powers(kind, order, ordered):
    """3/2 at a fold, 2 at a subcritical pitchfork: within 0.02, on both sides."""
    drift, space = mf.USA(4.0), mf.Circle(32)
    diagram = mf.branches(drift, space, kappa=(0.3, 0.6))
    place = diagram.special(kind)[0].value
    sign = 1 if kind == "fold" else -1
    steps = (1e-3, 5e-4)
    heights = [
        mf.saddles(stable(drift, place * (1 + sign * step), space, ordered))[0].barrier
        for step in steps
    ]
    assert abs(np.log2(heights[0] / heights[1]) - order) < 0.02


def test_files_hold_saddles(tmp_path):
    found = saddles_beside(ordered=False)
    again = mf.load(found.save(tmp_path / "saddles.nc"))
    np.testing.assert_array_equal(again[0].direction, found[0].direction)
    assert again[0].barrier == found[0].barrier
    assert abs(again[0].ends[1].free_energy - found[0].ends[1].free_energy) < 1e-13
    assert len(found.plot().axes) == 1
    assert "barrier" in repr(again)


def test_a_uniform_state_without_rivals_has_no_saddle():
    found = mf.saddles(stable(mf.Kuramoto(), 1.5, mf.Circle(16)))
    assert len(found) == 0
    assert found.tried == 1
    assert "mf.stationary_states" in found.warnings[0]
    assert found.warnings[0] in repr(found)


def test_tokens_without_interaction_have_no_saddle_but_wells():
    well = mf.Field(lambda x: np.stack([x[..., 0], -x[..., 1]], axis=-1))
    state = mf.stationary_states(mf.Transformer(well, 2.0), mf.Circle(16))[0]
    found = mf.saddles(state)
    assert len(found) == 0
    assert "mf.escape_time(state, 1)" in found.warnings[0]


@pytest.mark.long
def test_searches_show_what_they_do(capfd):
    state, (saddle,) = stable(*BESIDE), saddles_beside(ordered=False)
    alone = stable(mf.Kuramoto(), 1.5, mf.Circle(16))
    mf.saddles(alone, progress=True)
    assert "saddles" in capfd.readouterr().err
    mf.transition_path(state, saddle.ends[1], images=9, progress=True)
    assert "transition path" in capfd.readouterr().err
    texts = []
    search = SaddleSearch(state, "axisymmetric", texts.append)
    assert [one.barrier for one in search.around(state)] == [saddle.barrier]
    string_course(state, saddle.ends[1], 9, search)
    for part in ("3 stationary states from", "unstable manifold of state", "string, step 1, last"):
        assert any(part in text for text in texts)
    capfd.readouterr()
    mf.saddles(alone, progress=False)
    assert capfd.readouterr().err == ""


def test_what_is_no_stable_state_is_refused():
    uniform = mf.stationary_states(mf.Transformer(mf.Kuramoto(), 3.0), mf.Circle(16))
    (unstable,) = [s for s in uniform if not s.stable]
    with pytest.raises(ValueError, match="unstable"):
        mf.saddles(unstable)
    with pytest.raises(TypeError, match="StationaryState"):
        mf.saddles(3.0)


def tilted(height, space):
    """The stable states of noisy Kuramoto in a potential with two wells and no symmetry."""
    well = mf.Potential(
        lambda x: height * (x[..., 0] ** 2 - x[..., 1] ** 2) + 0.02 * (x[..., 0] + x[..., 1])
    )
    states = mf.stationary_states(mf.Transformer(mf.Kuramoto() + well, 4.0), space)
    return states, [state for state in states if state.stable]


def index_by_differences(state):
    """Negative eigenvalues of the second variation of F at a state, by differences of moments.

    The critical points of F are those of kappa |m|^2/2 - log int exp(kappa (m.x + V)) in m, of the
    same index. The gradient is kappa (m - mean of x).
    """
    kappa, (_, potential) = state.kappa, (part for _, part in state.model.drift.terms)
    theta = 2 * np.pi * np.arange(256) / 256
    x = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    here = np.array([state.density.moment(1).real, state.density.moment(1).imag])

    def gradient(m):
        law = np.exp(kappa * (x @ m + potential.function(x)))
        return m - law @ x / law.sum()

    assert np.abs(gradient(here)).max() < 1e-9
    step = 1e-5 * np.eye(2)
    second = np.array([(gradient(here + e) - gradient(here - e)) / 2e-5 for e in step])
    return int((np.linalg.eigvalsh((second + second.T) / 2) < 0).sum())


@pytest.mark.long
def test_saddles_are_ordered_by_barrier_and_states_of_index_two_are_left_out():
    """Two ways around the circle, over a summit of index two between them."""
    states, (one, other) = tilted(0.1, mf.Circle(16))
    assert sorted(index_by_differences(state) for state in states) == [0, 0, 1, 1, 2]
    each = mf.saddles(one), mf.saddles(other)
    for stable_state, found in zip((one, other), each, strict=True):
        assert [index_by_differences(saddle.state) for saddle in found] == [1, 1]
        assert found.tried == 5
        heights = [saddle.state.free_energy - stable_state.free_energy for saddle in found]
        np.testing.assert_allclose([saddle.barrier for saddle in found], heights, rtol=1e-12)
        assert heights[0] < heights[1] - 0.01
    path = mf.transition_path(one, other)
    assert abs(path.barrier - each[0][0].barrier) < 1e-12


def test_mixtures_find_the_saddle_of_usa_that_no_other_search_has(monkeypatch):
    """Deflation is left with the stable states alone, and branches with none."""
    one, other = (stable(mf.USA(4.0), 0.402, mf.Circle(32), ordered) for ordered in (False, True))
    module = sys.modules[mf.saddles.__module__]
    monkeypatch.setattr(module, "deflated_states", lambda *_, **__: [one, other])
    nothing = types.SimpleNamespace(states_at=lambda kappa: [])
    monkeypatch.setattr(module, "branches", lambda *_, **__: nothing)
    for state in (one, other):
        (saddle,) = mf.saddles(state)
        assert abs(saddle.state.order_parameter - 0.2201262640) < 1e-9
    monkeypatch.setattr(module, "states_between", lambda *_: [])
    assert len(mf.saddles(one)) == 0


def test_a_model_with_common_noise_has_no_states_to_have_saddles():
    model = mf.Transformer(mf.Kuramoto(), 4.0, common=mf.CommonRotations(2.0))
    with pytest.raises(ValueError, match="no stationary states, and so no saddles or paths"):
        mf.stationary(model, mf.Circle(16).von_mises(0.0, 2.0))
