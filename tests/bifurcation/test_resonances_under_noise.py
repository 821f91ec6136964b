"""Onsets close together where the noise is not isotropic: all branches are found, or it is said.

A multiplicative noise of constant scale is isotropic, but the equations are those of any noise.
"""

import numpy as np
import pytest

import meanfield as mf
from meanfield.bifurcation.bases import AxialHarmonics
from meanfield.bifurcation.branch_switching import _neutral
from meanfield.bifurcation.continuation import CurvePoint, curve_of
from meanfield.bifurcation.detection import Special
from meanfield.bifurcation.equation import MomentEquation
from meanfield.bifurcation.families import basis_of, equation_of, model_of, transport_equation
from meanfield.bifurcation.normal_forms import neutral_at, normal_form, rays

CIRCLE = mf.Circle(24)
CONSTANT = mf.noise.MultiplicativeStratonovich(lambda x: 1 + 0 * x[..., 0])
UNEVEN = mf.noise.Anisotropic(np.diag([1.02, 0.98]))


def waves(*degrees, last=1.0):
    """W = cos(k theta) + ... + last cos(l theta)."""
    coefficients = np.isin(np.arange(degrees[-1] + 1), degrees).astype(float)
    coefficients[-1] = last
    return mf.CosineSeries(coefficients)


def followed(drift, span=(1.7, 2.03), noise=CONSTANT):
    return mf.branches(drift, CIRCLE, span, noise=noise)


def squares(diagram, kappa):
    """Sums of squared moments of all states at a value of kappa, increasing."""
    states = (state for _, state in diagram.states_at(kappa))
    return sorted(float((state.legendre_moments**2).sum()) for state in states)


@pytest.mark.repeats
@pytest.mark.parametrize("m", [1.0, 1 + 1e-7, 0.9999, 1.0001, 1.0003])
def test_the_secondary_bifurcation_next_to_the_onset_is_not_missed(m):
    """Missed before, without a word, at m = 1.0001."""
    found, known = (
        followed(waves(1, 2, last=m)),
        mf.branches(waves(1, 2, last=m), CIRCLE, (1.7, 2.03)),
    )
    (fold,), (expected,) = found.special("fold"), known.special("fold")
    assert fold.value == pytest.approx(expected.value, abs=1e-11)
    assert squares(found, 1.9) == pytest.approx(squares(known, 1.9), abs=1e-11)
    assert (m == 1) == (not found.warnings)
    assert m == 1 or "the onsets of degrees 1 and 2 differ by" in found.warnings[0]


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("m", [1.0008, 1.001, 1.01, 1.05])
def test_distinct_onsets_close_together(m):
    found = followed(waves(1, 2, last=m))
    known = mf.branches(waves(1, 2, last=m), CIRCLE, (1.7, 2.03))
    (fold,), (expected,) = found.special("fold"), known.special("fold")
    assert fold.value == pytest.approx(expected.value, abs=1e-11) and not found.warnings
    (secondary,) = found.special("symmetry breaking", 1)
    (place,) = known.special("bifurcation", 1)
    assert secondary.value == pytest.approx(place.value, abs=1e-10)


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("strength", [0.05, 20.0])
def test_distances_along_a_strength_are_those_of_log_kappa(strength):
    """Of kappa b only the product counts; states were missed without a word before."""
    drift, unit = waves(1, 2, last=1.001), 2 / strength
    found = mf.branches(
        mf.Transformer(strength * drift, unit, noise=CONSTANT),
        CIRCLE, vary={"factors[0]": (0.85 * strength, 1.015 * strength)},
    )  # fmt: skip
    known = mf.branches(drift, CIRCLE, (1.7, 2.03))
    assert not found.warnings
    for kind, other, order in (("fold", "fold", None), ("symmetry breaking", "bifurcation", 1)):
        (here,) = (s.value * unit for s in found.special(kind, order))
        (there,) = {round(s.value, 11) for s in known.special(other, order)}
        assert here == pytest.approx(there, abs=1e-9)
    for kappa in (1.8, 1.95, 2.02):
        own, others = squares(found, kappa / unit), squares(known, kappa)
        assert own == pytest.approx(others, abs=1e-9)


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("degrees", [(1, 3), (2, 3), (2, 4)], ids=str)
@pytest.mark.parametrize("m", [1.0, 1.0001], ids=str)
def test_other_pairs_of_degrees(degrees, m):
    """Folds, and states just above the onsets, are those of isotropic noise."""
    drift = waves(*degrees, last=m)
    found, known = followed(drift), mf.branches(drift, CIRCLE, (1.7, 2.03))
    folds = [[s.value for s in one.special("fold")] for one in (found, known)]
    assert folds[0] == pytest.approx(folds[1], abs=1e-10)
    own, others = np.array(squares(found, 2.02)), np.array(squares(known, 2.02))
    for value in others:  # mirror images may be listed twice
        assert np.abs(own - value).min() < 1e-9


def test_rays_are_those_of_isotropic_noise():
    drift = waves(1, 2)
    plain = MomentEquation(drift, AxialHarmonics(2, 0, 16))
    known = rays(plain, normal_form(plain, 1)).rays
    basis = basis_of([mf.Transformer(drift, 2.0, noise=CONSTANT)], CIRCLE)
    assert sorted(basis.steady) == [(0, 1), (0, 2)]  # even in one coordinate: no rotation is
    for group in basis.steady:
        equation = equation_of(drift, basis.keeping(group))
        base = np.zeros(len(basis.degrees))
        ends = [equation.jacobian(equation.mean(base, 2 * np.exp(h))) for h in (1e-3, -1e-3)]
        neutral = neutral_at(equation, 2.0, base, (ends[0] - ends[1]) / 2e-3)
        assert neutral.degrees == [1, 2]
        found = neutral.rays()
        assert found.complete and found.order == "discontinuous"
        sizes = [sorted((abs(r.linear), r.quadratic) for r in one) for one in (found.rays, known)]
        assert np.ravel(sizes[0]) == pytest.approx(np.ravel(sizes[1]), rel=1e-6, abs=1e-9)


def test_terms_of_series_are_derivatives_at_any_state():
    """By Cauchy's integrals: t and t^2 by the Jacobian and its changes, under a reaction too."""
    noise = mf.noise.MultiplicativeIto(lambda x: 1 + 0.3 * x[..., 0])
    model = mf.Transformer(mf.SA(3.0), 2.0, noise=noise, reaction=0.2)
    equation = equation_of(model, basis_of([model], CIRCLE))
    rng = np.random.default_rng(0)
    base, way = (
        0.1 * rng.standard_normal(len(equation.degrees)) / equation.degrees**3 for _ in "ab"
    )
    m = np.array([base, way, 0 * way])
    zeroth, first, second = equation.series(m, np.array([2.0, 0.0, 0.0]))
    assert zeroth == pytest.approx(base - equation.mean(base, 2.0).moments, abs=1e-13)
    assert first == pytest.approx(equation.jacobian(equation.mean(base, 2.0)) @ way, abs=1e-12)
    ends = [equation.jacobian(equation.mean(base + h * way, 2.0)) @ way for h in (1e-4, -1e-4)]
    assert second == pytest.approx((ends[0] - ends[1]) / 4e-4, abs=1e-8)


@pytest.mark.parametrize("drift", [mf.USA(4.0), mf.SA(8.0)], ids=str)
def test_series_of_two_equations_agree(drift):
    basis = AxialHarmonics(3, 0, 16)
    one = normal_form(MomentEquation(drift.as_zonal(), basis), 1)
    other = normal_form(transport_equation(model_of(drift, basis.noise), basis), 1)
    assert other[:5] == pytest.approx(one[:5], rel=1e-12, abs=1e-14, nan_ok=True)


EQUAL = 0.5000166710010908  # m at which both axes have one onset, by bisection


@pytest.mark.long
def test_two_onsets_of_a_state_that_is_not_uniform():
    """Along both axes at once at m = 0.5000167; c_2 of each ray is that of its branch."""
    found = mf.branches(waves(1, 2, last=EQUAL), mf.Circle(16), (1.7, 2.1), noise=UNEVEN)
    one, other = found.special("bifurcation", 0)
    assert one.value == pytest.approx(other.value, abs=1e-11) and not found.warnings
    assert {one.character, other.character} == {"subcritical", "supercritical"}
    base, kappa = one.state.legendre_moments, one.value
    equation = one.state.equation.among(one.state.equation.basis.keeping((0,)))
    assert np.abs(base).max() > 1e-2
    states = [found.states_at(kappa * np.exp(h))[0][1].legendre_moments for h in (1e-3, -1e-3)]
    ends = [equation.jacobian(equation.mean(m, kappa * np.exp(h)))
            for m, h in zip(states, (1e-3, -1e-3), strict=True)]  # fmt: skip
    neutral = neutral_at(equation, kappa, base, (ends[0] - ends[1]) / 2e-3)
    assert neutral.degrees == [1]
    for ray in neutral.rays().rays:
        along = int(np.abs(ray.direction).argmax())
        (branch,) = (number for number, state in found.states_at(2.005)
                     if np.abs(state.legendre_moments[along]) > 0.1)  # fmt: skip
        here = found.data.branch.values == branch
        first, size = found.data.moments.values[here][0], equation.basis.sizes[along]
        t = size * first[along] / ray.direction[along]
        bent = np.log(found.data.kappa.values[here][0] / kappa) / t**2
        assert abs(t) < 0.025 and bent == pytest.approx(ray.quadratic, abs=2 * t**2)


@pytest.mark.long
def test_a_wave_next_to_another_onset_is_said():
    """Under a phase lag waves begin at 2/cos(lag), where m = cos(lag) gives degree 2 its onset."""
    lag = 0.5
    c, s = np.cos(lag), np.sin(lag)
    lagging = mf.Attention(np.eye(2), np.eye(2), np.array([[c, -s], [s, c]]), 0.0)
    drift = lagging + c * mf.CosineSeries([0.0, 0.0, 1.0])
    found = mf.branches(mf.Transformer(drift, 1.0), mf.Circle(16), (2.2, 2.3), max_points=30)
    (onset,) = found.special("Hopf", 0)
    assert onset.value == pytest.approx(2 / c, abs=1e-9)
    assert any("onsets of degrees 1 and 2 coincide" in warning for warning in found.warnings)


@pytest.mark.long
def test_clustered_states_are_looked_for_at_onsets_without_a_free_energy():
    """Under a reaction; with all branches these states lie on one of them."""
    model = mf.Transformer(waves(1, 2, last=1.1), 1.0, reaction=0.05)
    short = mf.branches(model, mf.Circle(16), (1.4, 2.5), secondary=False)
    (warning,) = short.warnings
    assert "at the onset, kappa = 1.79574" in warning and "degree 1" in warning
    whole = mf.branches(model, mf.Circle(16), (1.4, 2.5))
    assert not whole.warnings
    low, high = whole.transition().hysteresis
    assert low < 1.6 and high == pytest.approx(short.transition().onset, abs=1e-12)


@pytest.mark.long
def test_points_under_noise_of_constant_scale_are_those_of_the_same_laplacian():
    """Kappa of a scale .7 is .49 kappa of isotropic noise; 1.7233286 by quadrature."""
    noise = mf.noise.MultiplicativeStratonovich(lambda x: 0.7 + 0 * x[..., 0])
    drift = waves(1, 2, last=1.05)
    found = followed(drift, span=(0.82, 1.0), noise=noise)
    known = mf.branches(drift, CIRCLE, (0.82 / 0.49, 1.0 / 0.49))
    (here,), (there,) = found.special("transition"), known.special("transition")
    assert there.value == pytest.approx(1.72332859, abs=5e-9)
    assert here.value == pytest.approx(0.49 * there.value, abs=1e-9)
    own, isotropic = found.transition(), known.transition()
    assert own.order == isotropic.order == "discontinuous"
    assert own[1:4] == pytest.approx(np.array(isotropic[1:4]) * [0.49, 0.49, 1], rel=1e-9)
    assert own.hysteresis == pytest.approx(np.multiply(isotropic.hysteresis, 0.49), rel=1e-9)


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("drift", [waves(1, 3, last=0.9), waves(1, 2, last=0.50001), mf.SA(2.0)])
def test_transitions_under_a_multiple_of_the_laplacian_by_the_normal_form(drift):
    """Continuous, discontinuous by less than rounding, and without a free energy."""
    noise = mf.noise.MultiplicativeStratonovich(lambda x: 0.7 + 0 * x[..., 0])
    known = mf.branches(drift, CIRCLE, (1.2, 3.2)).transition()
    found = mf.branches(drift, CIRCLE, (1.2 * 0.49, 3.2 * 0.49), noise=noise).transition()
    assert found.order == known.order
    assert found[1:4] == pytest.approx(np.array(known[1:4]) * [0.49, 0.49, 1], rel=1e-7)
    with pytest.raises(mf.MeanfieldError, match="There is no free energy under Anisotropic"):
        mf.branches(drift, CIRCLE, (1.5, 2.2), noise=UNEVEN).transition()


@pytest.mark.long
@pytest.mark.parametrize("ratio", [0.999, 1.001])
def test_both_halves_of_every_branch_at_a_resonance_on_the_sphere(ratio):
    """Onsets .001 apart: not together, so each has branches and clearances of its own."""
    drift = mf.Interaction(np.polynomial.Polynomial([0, 3, 15 * ratio / 2]), name=f"{ratio}")
    known = mf.branches(drift, mf.Sphere(10), (0.6, 1.02))
    options = {"noise": CONSTANT, "secondary": ratio > 1}  # as that of degree 1 at 1.001
    found = mf.branches(drift, mf.Sphere(10), (0.6, 1.02), **options)
    assert not found.warnings
    for kind in ("fold", "transition"):
        values = [sorted(s.value for s in one.special(kind)) for one in (found, known)]
        assert values[0] == pytest.approx(values[1], abs=1e-9) and len(values[0]) == 2
    assert found.transition()[1:4] == pytest.approx(known.transition()[1:4], abs=1e-9)


def off_axis(state):
    """Squares of the amplitudes in L^2 of degrees 1 and 2, and that of 2 along the dipole."""
    x, y, z = state.space.points.T
    law = state.values * state.space.weights
    dipole = np.array([law @ x, law @ y, law @ z])
    second = np.einsum("n,nc,nd->cd", law, state.space.points, state.space.points) - np.eye(3) / 3
    along = dipole @ second @ dipole / (dipole @ dipole)
    return 3 * dipole @ dipole, 7.5 * np.trace(second @ second), 7.5 * 1.5 * along**2


@pytest.mark.long
def test_the_branch_off_the_axis_at_a_resonance_on_the_sphere():
    """It leaves oblate states where their dipoles across the axis become neutral.

    By the quadratic terms, 1 - kappa = -t/sqrt 5 and 1 - 1.001 kappa = t sqrt(5)/7: see below.
    """
    drift = mf.Interaction(np.polynomial.Polynomial([0, 3, 15 * 1.001 / 2]), name="1.001")
    found = mf.branches(drift, mf.Sphere(6), (0.99, 1.005), noise=CONSTANT)
    t = -0.001 / (5**-0.5 + 5**0.5 / 7)  # 1 - kappa = -.4472 t
    places = found.special("symmetry breaking")
    assert [s.value for s in places] == pytest.approx([1 + t / 5**0.5] * 2, abs=t**2)
    first, second, along = np.array([off_axis(s.density) for _, s in found.states_at(1.002)]).T
    (biaxial,) = np.flatnonzero((first > 1e-6) & (along < 0.1 * second))
    assert first[biaxial] / second[biaxial] == pytest.approx(5 / 7, abs=0.1)
    state = found.states_at(1.002)[biaxial][1]
    known = mf.stationary(mf.Transformer(drift, 1.002), state.density, symmetry="none")
    assert known.converged and known.residuals[0] < 1e-9  # the equation of isotropic noise
    assert off_axis(known.density) == pytest.approx(off_axis(state.density), abs=1e-10)


@pytest.mark.long
def test_rays_off_the_axis_on_the_sphere():
    """Where onsets of degrees 1 and 2 are equal a dipole b leaves with y^2 - z^2 across it.

    With s = b sqrt(3) x + q sqrt(15) (y^2 - z^2)/2, E s^2 p = 0 for p = P_2(x) asks for
    b^2 = 5 q^2/7; the ray has c_1 = 0, so that it is next to no state about an axis.
    """
    drift = mf.Interaction(np.polynomial.Polynomial([0, 3, 15 / 2]), name="equal")
    basis = basis_of([mf.Transformer(drift, 1.0, noise=CONSTANT)], mf.Sphere(6))
    shares = []
    base = np.zeros(len(basis.degrees))
    equation = equation_of(drift, basis.keeping((0, 2, 4, 6)))  # even in y and in z
    neutral = neutral_at(equation, 1.0, base, -np.eye(len(base)))
    assert neutral.right.shape[1] == 3
    for ray in neutral.rays().rays:
        if abs(ray.linear) < 1e-12:
            shares += [np.bincount(basis.degrees, ray.direction**2)[1:3]]
            assert ray.quadratic > 0
    assert len(shares) == 2 and np.array(shares) == pytest.approx(np.tile([5 / 12, 7 / 12], (2, 1)))


@pytest.mark.long
def test_rotations_of_a_state_are_no_neutral_perturbations():
    """A state about an axis is turned by rotations of the order in which it loses its symmetry."""
    drift = mf.Interaction(np.polynomial.Polynomial([0, 3, 15 * 0.999 / 2]), name="0.999")
    known = mf.branches(drift, mf.Sphere(10), (0.95, 1.02))
    (place,) = known.special("symmetry breaking", 2)
    basis = basis_of([mf.Transformer(drift, 1.0, noise=CONSTANT)], mf.Sphere(10))
    near = np.append(basis.moments(place.state.density)[0], np.log(place.value))
    basis = basis.keeping((0, 1, 2, 3))  # about the third axis, in which degree 1 is even
    curve = curve_of(drift, basis, "kappa", (0.95, 1.02), None)
    z = curve.at_value(near, place.value)
    equation, kappa = curve.at(z[-1])
    for order in (1, 2):
        special = Special(CurvePoint(z, z, place.value), place.interval, "", order=order)
        size, way = _neutral(curve, special)
        part = basis.of_order(order)
        turned, mine = part.sizes * part.rotation_tangents(z[:-1]), way[part.members]
        assert part.rotation_count(z[:-1]) == 1 and np.abs(turned).max() > 1e-3 and size < 1e-9
        assert np.abs(turned @ mine).max() < 1e-12
        assert np.abs(equation.linearised(z[:-1], kappa, part) @ mine).max() < 1e-8
        assert np.linalg.norm(way[basis.degrees == 1]) > 0.99
