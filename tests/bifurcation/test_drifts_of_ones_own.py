"""Drifts that a user defines: stationary states, branches in kappa and in their own parameters."""

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf
from meanfield.bifurcation.bases import AxialHarmonics
from meanfield.bifurcation.equation import MomentEquation
from meanfield.bifurcation.families import EquationFamily
from meanfield.dynamics.density import DensityMotion
from meanfield.models import ZonalDrift
from meanfield.spaces.kernels import exponential_multipliers

CIRCLE = mf.Circle(16)


class Linear(ZonalDrift):
    """W' = 1 + b t, Z = 1: on the circle w_1 = 1/2 and w_2 = b/8."""

    b: float

    def slope(self, t):
        return 1 + self.b * t


class Sink(ZonalDrift):
    """Softmax with a sink of weight a: W' = exp(beta t), Z = a + exp(beta t), so Z' = beta W'."""

    a: float
    beta: float = 2.0

    def validate(self):
        super().validate()
        if (self.a < -0.1).any():
            raise ValueError("a >= -0.1")

    def slope(self, t):
        return np.exp(self.beta * t)

    def weight(self, t):
        return self.a + np.exp(self.beta * t)


class Unrelated(Linear):
    """Z = 2 + t^2, which is neither constant nor has Z' = c W'."""

    def weight(self, t):
        return 2 + t**2


def test_a_normaliser_that_is_not_proportional_has_states_too():
    """W' = 1 + 3 t and Z = 2 + t^2, of mean 5/2: w_1 = 1/5, and `solve` rests there."""
    drift = Unrelated(b=3.0)
    found = mf.branches(drift, CIRCLE, (2.0, 8.0))
    onset = found.special("bifurcation", 0)[0]
    assert not found.warnings and onset.degree == 1 and onset.kappa == pytest.approx(5.0, abs=1e-12)
    first = found.data.sel(point=found.data.branch == 1).isel(point=0)
    t = float(np.sqrt(2) * first.order_parameter)
    assert float(first.kappa) / 5 - 1 == pytest.approx(onset.coefficients[1] * t**2, abs=5 * t**4)
    model = mf.Transformer(drift, 10.0)
    state = mf.stationary(model, mf.Circle(32).von_mises(0.2, 6.0))
    assert state.order_parameter > 0.9 and state.stability().stable
    motion = DensityMotion(model, state.density, rtol=1e-10)
    assert np.abs(motion.velocity(state.density.coefficients, 0.0)).max() < 1e-12


def test_a_constant_normaliser_divides_the_potential():
    """W = t and Z = 4 on S^2: the pitchfork of Kuramoto, at four times its kappa."""

    class Slow(Linear):
        def weight(self, t):
            return np.full_like(t, 4.0)

    slow = mf.stationary(mf.Transformer(Slow(b=0.0), 20.0), mf.Zonal(3, 16).von_mises_fisher(2.0))
    quick = mf.stationary(mf.Transformer(mf.Kuramoto(), 5.0), slow.density)
    np.testing.assert_allclose(slow.legendre_moments, quick.legendre_moments, atol=1e-13)
    assert slow.free_energy == pytest.approx(quick.free_energy / 4, abs=1e-13)


def test_a_sink_of_no_weight_is_softmax():
    guess = CIRCLE.von_mises(0.0, 2.0)
    ours, known = (
        mf.stationary(mf.Transformer(drift, 4.0), guess) for drift in (Sink(0.0), mf.SA(2.0))
    )
    np.testing.assert_allclose(ours.legendre_moments, known.legendre_moments, atol=1e-13)
    assert np.isnan(ours.free_energy)
    rates = (state.stability().eigenvalues for state in (ours, known))
    np.testing.assert_allclose(*rates, atol=1e-10)
    same = mf.stability(ours.model, ours.density)
    np.testing.assert_allclose(same.eigenvalues, ours.stability().eigenvalues, atol=1e-10)


def test_branches_in_kappa_begin_where_the_multipliers_say():
    """kappa_1 = beta (a + I_0)/I_1 with a sink of weight a."""
    found = mf.branches(Sink(1.5), CIRCLE, (2.0, 8.0))
    onset = found.special("bifurcation", 0)[0]
    assert onset.kappa == pytest.approx(2 * (1.5 + iv(0, 2)) / iv(1, 2), rel=1e-12)
    assert not found.warnings and all(s.residual < 1e-12 for _, s in found.states_at(7.0))


@pytest.mark.long
def test_branches_in_a_parameter_of_ones_own(tmp_path):
    """kappa b/8 = 1 at the onset of degree 2, of a drift that makes no ensembles."""
    found = mf.branches(Linear(b=1.0), CIRCLE, kappa=4.0, vary={"b": (-1, 3)}, save_at=[2.5])
    assert found.parameter == "b" and found.kappa == 4.0 and not found.warnings
    (onset,) = found.special("bifurcation", 0)
    assert onset.value == pytest.approx(2.0, abs=1e-12) and onset.degree == 2
    assert found.data["b"].values.min() <= -0.99
    across = mf.branches(Linear(b=2.5), CIRCLE, (1.0, 4.5))
    shapes = [
        sorted(tuple(np.abs(s.legendre_moments[:4]).round(9)) for _, s in states)
        for states in (found.saved, across.states_at(4.0))
    ]
    np.testing.assert_allclose(*shapes, atol=2e-9)
    assert "b = 2," in repr(found)
    found.plot().savefig(tmp_path / "figure.png")
    with pytest.raises(ValueError, match="b as its parameter"):
        found.transition()


def test_branches_in_a_parameter_cross_zero():
    """The branch of degree 1 is there for every b: at b = 0 it is Kuramoto's."""
    found = mf.branches(Linear(b=1.0), CIRCLE, kappa=2.5, vary={"b": (-1, 3)}, stability=False)
    assert not found.warnings and found.ends == ["range"]
    (_, (_, state)) = found.states_at(0.0)
    exact = mf.stationary(mf.Transformer(mf.Kuramoto(), 2.5), CIRCLE.von_mises(0.0, 2.0))
    np.testing.assert_allclose(state.legendre_moments, exact.legendre_moments, atol=1e-12)


@pytest.mark.long
def test_derivatives_do_not_look_beyond_the_range():
    """Sink refuses a < -0.1; the onset is at a = kappa I_1/beta - I_0."""
    kappa = 3.2
    found = mf.branches(Sink(1.0), CIRCLE, kappa, vary={"a": (-0.1, 1.0)}, stability=False)
    onset = found.special("bifurcation", 0)[0]
    assert onset.value == pytest.approx(kappa * iv(1, 2) / 2 - iv(0, 2), abs=1e-12)
    assert onset.degree == 1 and not found.warnings and found.ends == ["range"]


@pytest.mark.long
def test_beta_is_one_of_the_parameters():
    known = mf.branches(mf.USA, CIRCLE, 0.42, beta=(2.0, 5.0), stability=False)
    found = mf.branches(mf.USA(1.0), CIRCLE, 0.42, vary={"beta": (2.0, 5.0)}, stability=False)
    assert found.ends == known.ends and found.parameter == known.parameter == "beta"
    for one, other in zip(found.special_points, known.special_points, strict=True):
        assert one.kind == other.kind and one.value == other.value
    (_, *states) = found.states_at(4.5)
    start = max((s for _, s in states), key=lambda s: s.order_parameter)
    one, two = (
        list(mf.follow(start, max_points=5, **way))
        for way in ({"beta": (4.0, 5.0)}, {"vary": {"beta": (4.0, 5.0)}})
    )
    assert [s.model.drift.beta for s in one] == [s.model.drift.beta for s in two]


@pytest.mark.parametrize("drift", [mf.USA, mf.SA])
@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("beta", [0.5, 1.0, 4.0, 9.0])
def test_derivatives_by_differences_are_exact_to_rounding(drift, d, beta):
    """d exp(beta t)/dbeta = t exp(beta t), by recurrence; one-sided at the end of the range."""
    family = EquationFamily(drift, "beta", (0.5, 9.0), AxialHarmonics(d, 0, 32))
    l, scaled = np.arange(1, 33), exponential_multipliers(beta, 33, d)
    changes = (l * scaled[l - 1] + (l + d - 2) * scaled[l + 1]) / (2 * l + d - 2)
    if drift is mf.SA:
        changes = (changes - scaled[l] / scaled[0] * scaled[1]) / scaled[0]
    else:
        changes *= np.exp(beta)
    exact = (changes - drift(beta).attraction(32, d)[1:]) / beta
    found = family.changes(beta)
    assert np.abs(found.weights[1:] - exact).max() < 2e-11 * np.abs(exact).max()
    assert found.ratio == pytest.approx(float(drift is mf.SA), abs=1e-11)


@pytest.mark.parametrize("beta", [-0.5, 0.0, 1e-7, 1e-4, 0.3])
def test_equations_are_smooth_where_softmax_becomes_kuramoto(beta):
    """dR/dbeta of SA by its formula and by differences of R, through beta = 0."""
    family = EquationFamily(mf.SA, "beta", (-1.0, 1.0), AxialHarmonics(3, 0, 16))
    m = 0.3 * 0.5 ** np.arange(16)
    member, h = family.at(beta), 1e-4
    mean = member.mean(m, 6.0)
    slope = member.along(mean, member.potential_change(m, mean))
    ends = [MomentEquation(mf.SA(beta + s * h), family.basis).mean(m, 6.0).moments for s in (1, -1)]
    np.testing.assert_allclose(slope, (ends[1] - ends[0]) / (2 * h), atol=1e-7)


def test_a_value_without_a_drift_is_a_step_too_far():
    """A range ends where the drifts do, and branches with it."""
    start = mf.stationary(mf.Transformer(Sink(0.2), 5.0), CIRCLE.von_mises(0.0, 2.0))
    states = list(mf.follow(start, vary={"a": (-0.1, 1.0)}, decreasing=True))
    assert -0.1 <= min(s.model.drift.a for s in states) < -0.1 + 1e-6
    with pytest.raises(ValueError, match=r"a >= -0\.1"):
        mf.follow(start, vary={"a": (-0.5, 1.0)})


class Power(mf.ZonalDrift):
    """v(x) = P_x int <x, y>^p y dmu(y)."""

    p: int = 2

    def slope(self, t):
        return t**self.p


@pytest.mark.parametrize(
    ("drift", "options", "error", "match"),
    [
        (Power(3), {"vary": {"p": (2, 3)}}, ValueError, "p of .* is a whole number and cannot"),
        (Linear(1.0), {"vary": {"c": (0, 1)}}, ValueError, "'c'"),
        (Linear(1.0), {"vary": {"b": (1, 0)}}, ValueError, "b must be a range"),
        (Linear(1.0), {"vary": {"b": (0, 1), "c": (0, 1)}}, TypeError, "vary"),
        (Linear(1.0), {"vary": ["b"]}, TypeError, "vary"),
        (Linear(1.0), {"vary": {"b": (0, 1)}, "beta": (0, 1)}, ValueError, "beta"),
        (Sink, {"vary": {"beta": (1, 2)}}, TypeError, "Sink"),
        (mf.USA, {"vary": {"beta": (1, 2)}, "kappa": (1, 2)}, ValueError, "kappa"),
        (Sink(1.0), {"vary": {"a": (-2.0, 1.0)}}, ValueError, r"a >= -0\.1"),
    ],
)
def test_bad_ranges_of_parameters(drift, options, error, match):
    with pytest.raises(error, match=match):
        mf.branches(drift, CIRCLE, **({"kappa": 2.5} | options))
