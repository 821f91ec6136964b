"""The phase diagram: tricritical points, folds and first-order lines by continuation."""

import sys
from functools import cache

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf
from meanfield.bifurcation.bases import AxialHarmonics
from meanfield.bifurcation.normal_forms import normal_form
from meanfield.bifurcation.phase_diagram import CurveSearch, tricritical_points
from meanfield.bifurcation.planes import KappaPlane
from meanfield.bifurcation.special_curves import SpecialCurve, between
from meanfield.plotting import phases


@cache
def on_circle(highest=3.5):
    return mf.phase_diagram(mf.USA, mf.Circle(16), (0.5, highest))


@cache
def on_sphere():
    return mf.phase_diagram(mf.USA, mf.Sphere(16), (0.5, 5.0), degrees=(1,))


@cache
def softmax():
    return mf.phase_diagram(mf.SA, mf.Circle(16), (0.5, 8.0))


FOLDS = {2.5: 0.9932200706, 3: 0.7502601061, 4: 0.3870689960, 5: 0.1843006830, 7: 0.0366245206,
         9: 0.0065848424}  # fmt: skip
TRANSITIONS = {2.5: 0.9932541481, 3: 0.7521877664, 4: 0.3914751008, 5: 0.1879758266,
               7: 0.0378632957, 9: 0.0068778920}  # fmt: skip
ON_THE_SPHERE = {1.9: (2.124540, 2.125014), 2: (2.044166, 2.046183), 2.5: (1.612827, 1.628087),
                 3: (1.208448, 1.233744), 4: (0.618273, 0.645350)}  # fmt: skip


@pytest.mark.repeats
@pytest.mark.parametrize("beta", FOLDS)
def test_curves_have_the_reference_values(beta):
    diagram = on_circle() if beta < 3.5 else on_circle(9.5)
    assert diagram.kappa("fold", beta) == pytest.approx(FOLDS[beta], abs=1e-10)
    assert diagram.kappa("transition", beta) == pytest.approx(TRANSITIONS[beta], abs=1e-10)
    assert diagram.kappa("critical", beta) == pytest.approx(beta / iv(1, beta), rel=1e-12)
    assert diagram.kappa("critical", beta, 3) == pytest.approx(beta / iv(3, beta), rel=1e-12)


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("beta", ON_THE_SPHERE)
def test_curves_on_the_sphere(beta):
    fold, transition = ON_THE_SPHERE[beta]
    assert on_sphere().kappa("fold", beta) == pytest.approx(fold, abs=5.1e-7)
    assert on_sphere().kappa("transition", beta) == pytest.approx(transition, abs=5.1e-7)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("d", "exact"),
    [
        (2, 2.44691831128905),
        (3, 1.81615452543588),
        (4, 1.57525715009213),
        (8, 1.26655302452092),
        (64, 1.03149442624724),
    ],
)
def test_tricritical_points_of_every_dimension(d, exact):
    found = list(
        tricritical_points(
            KappaPlane(mf.USA, "beta", (0.5 * exact, 2 * exact), AxialHarmonics(d, 0, 24)), 1
        )
    )
    assert [point.degree for point in found] == [1]
    assert found[0].beta == pytest.approx(exact, abs=1e-10)


def test_normal_forms_on_the_grid_are_computed_once(monkeypatch):
    plane, asked = KappaPlane(mf.USA, "beta", (2.0, 3.0), AxialHarmonics(2, 0, 24)), []

    def counted(equation, degree):
        asked.append(equation.drift.beta)
        return normal_form(equation, degree)

    monkeypatch.setattr(sys.modules[CurveSearch.__module__], "normal_form", counted)
    search = CurveSearch(plane, mf.Circle(16), 0.2, None, None)
    grid = np.linspace(2.0, 3.0, 81)
    kappas, (corner,), jumps = search._onsets(1, grid)
    assert sum(map(asked.count, grid)) == 83  # once more at both ends of the bracket of a zero
    assert kappas == pytest.approx(grid / iv(1, grid), rel=1e-12)
    assert corner.beta == pytest.approx(2.44691831128905, abs=1e-10)
    assert np.array_equal(jumps, grid > corner.beta)


@pytest.mark.long
def test_tricritical_points_of_higher_degrees():
    for degree, beta in ((2, 8.9667842546533), (3, 19.785686518664)):
        span = (0.95 * beta, 1.05 * beta)
        (point,) = mf.phase_diagram(mf.USA, mf.Circle(64), span, degrees=(degree,)).tricritical
        assert point.degree == degree and point.beta == pytest.approx(beta, abs=1e-9)


def test_curves_begin_at_the_tricritical_point():
    (corner,) = (point for point in on_circle().tricritical if point.degree == 1)
    for gap in (1e-3, 1e-4):
        beta = corner.beta + gap
        fold, transition, top = (
            on_circle().kappa(name, beta) for name in ("fold", "transition", "critical")
        )
        assert fold < transition < top and top - fold < 10 * gap**2
    assert np.isnan(on_circle().kappa("fold", corner.beta - 1e-3))


@pytest.mark.long
def test_no_cusp_is_sought_where_folds_pass_the_uniform_state():
    """The cubic term of folds vanishes at a tricritical point by symmetry, without a cusp."""
    diagram = on_circle()
    curve, corner = diagram.loci["fold"], diagram.tricritical[0]
    z = curve.at_value(between(curve.points, corner.beta + 0.05), corner.beta + 0.05)
    here, step = curve.point(z, np.append(np.zeros(len(z) - 1), -1.0)), 0.05
    last = here
    while here.z[0] * last.z[0] > 0:
        last, here = here, curve.ahead(here, step)
    assert curve.folding(last.z)[0] * curve.folding(here.z)[0] < 0
    curve.singular.clear()
    curve._singular_points(last, step, here)
    assert curve.singular == []


@pytest.mark.long
def test_first_order_lines_at_small_kappa():
    """kappa = 7e-4, where a free energy is of size 10^4: the line ends with its range."""
    space = mf.Zonal(8, 32)
    plane = mf.phase_diagram(mf.USA, space, (13.3, 13.5), degrees=[1], progress=False)
    assert not plane.warnings
    kappa = plane.kappa("transition", 13.4)
    found = mf.branches(mf.USA(13.4), space, (kappa / 1.01, kappa * 1.01), stability=False)
    assert found.special("transition")[0].value == pytest.approx(kappa, rel=1e-9)
    assert plane.kappa("fold", 13.4) < kappa


def test_softmax_has_critical_curves_only():
    assert softmax().tricritical == [] and set(softmax().data.curve.values) == {"critical"}
    assert np.isnan(softmax().kappa("fold", 4.0))
    l = mf.SA(4.0).attraction(1, 2)[1]
    assert softmax().kappa("critical", 4.0) == pytest.approx(1 / l)


@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=lambda drift: drift.__name__)
@pytest.mark.parametrize("d", [2, 3, 6])
def test_gradients_are_those_of_differences(drift, d):
    rng = np.random.default_rng(d)
    a = 0.3 * rng.standard_normal(16) * 0.5 ** np.arange(16)
    z, size = np.append(a, [np.log(2.0), 1.7]), 1e-6
    family = KappaPlane(drift, "beta", (1.0, 3.0), AxialHarmonics(d, 0, 16))
    locus = SpecialCurve(family, "fold", 0, rng.standard_normal((2, 16)), 0.2)
    z[:16] /= family.basis.sizes
    exact = locus.jacobian(z)
    for j in range(len(z)):
        step = size * np.eye(len(z))[j]
        slope = (locus.system(z + step)[0] - locus.system(z - step)[0]) / (2 * size)
        np.testing.assert_allclose(exact[:, j], slope, atol=3e-8)


def test_gradients_of_the_free_energy_at_stationary_states():
    state = mf.stationary(mf.Transformer(mf.USA(3.0), 0.76), mf.Circle(32).von_mises(0, 2.0))
    family, size = KappaPlane(mf.USA, "beta", (2.0, 4.0), state.equation.basis), 1e-6
    locus, z = (
        SpecialCurve(family, "transition", 0, (), 0.2),
        np.append(state.legendre_moments, [np.log(0.76), 3.0]),
    )
    exact = locus.jacobian(z)[-1]
    for j in (0, 1, -2, -1):
        step = size * np.eye(len(z))[j]
        slope = (locus.system(z + step)[0][-1] - locus.system(z - step)[0][-1]) / (2 * size)
        assert exact[j] == pytest.approx(slope, abs=1e-8)


def test_figures(tmp_path):
    on_circle().plot().savefig(tmp_path / "one.png")
    lowest = on_circle().kappa("fold", 3.5) / on_circle().kappa("critical", 3.5)
    assert lowest - 0.1 < on_circle().plot(relative=True).axes[0].get_ylim()[0] < lowest
    both = phases(on_circle(), softmax())
    assert [ax.get_title() for ax in both.axes] == ["USA", "SA"]
    phases(softmax(), ax=both.axes[0])
    with pytest.raises(ValueError, match="one diagram"):
        phases()
    assert "tricritical" in repr(on_circle()).lower() and "transition" in repr(on_circle())


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (("USA", mf.Circle(8), (1, 2)), TypeError, "needs a drift, such as USA"),
        ((mf.Kuramoto, mf.Circle(8), (1, 2)), TypeError, "beta alone"),
        ((mf.USA, 2, (1, 2)), TypeError, "space must be one of Circle"),
        ((mf.USA, mf.Circle(8), (2, 1)), ValueError, "a range"),
        ((mf.USA, mf.Circle(8), (0, 1)), ValueError, "a range"),
    ],
)
def test_bad_input(arguments, error, match):
    with pytest.raises(error, match=match):
        mf.phase_diagram(*arguments)


@pytest.mark.parametrize("place", [("spinodal", 3.0), ("fold", 30.0)])
def test_curves_and_places_that_a_phase_diagram_does_not_have(place):
    with pytest.raises(ValueError, match=r"(curve|beta) must be"):
        on_circle().kappa(*place)


def test_betas_whose_numbers_underflow_give_no_nan():
    """kappa_1 = beta/I_1(beta) = 2; that of degree 3, 48/beta^2, exceeds all numbers."""
    diagram = mf.phase_diagram(mf.USA, mf.Circle(16), (1e-300, 1e-299), progress=False)
    kappa = diagram.data.kappa.values
    assert not np.isnan(kappa).any() and not diagram.tricritical
    assert diagram.kappa("critical", 5e-300) == pytest.approx(2, rel=1e-12)
    assert diagram.kappa("critical", 5e-300, 3) == np.inf


class Bent(mf.ZonalDrift):
    """W'(t) = 1 + s p^2 t, on the circle with kappa_1 = 2 and tricritical points at s p^2 = 2."""

    p: float
    s: float = 1.0

    def slope(self, t):
        return 1 + self.s * self.p**2 * t


def discontinuous(span, **given):
    return mf.phase_diagram(Bent(0.5, **given), mf.Circle(16), vary={"p": span}, degrees=(1,))


@pytest.mark.long
def test_an_onset_that_is_discontinuous_on_both_sides_has_two_folds():
    both = discontinuous((-2.0, 1.9))
    assert [point.beta for point in both.tricritical] == pytest.approx([-(2**0.5), 2**0.5])
    assert set(both.ends) == {"fold", "transition", "fold 2", "transition 2"} and not both.warnings
    for name in ("fold", "transition"):
        for p in (1.42, 1.5, 1.9):
            assert both.kappa(name, p) == pytest.approx(both.kappa(name, -p), rel=1e-12)
            assert both.kappa(f"{name} 2", p) == both.kappa(name, p) < 2
        assert np.isnan([both.kappa(name, p) for p in (-1.41, 0.0, 1.41)]).all()
        assert np.isnan(both.kappa(f"{name} 2", -1.9))
    assert both.kappa("fold", 1.5) < both.kappa("transition", 1.5)


@pytest.mark.long
@pytest.mark.parametrize("span", [(0.0, 3.0), (-1.5, 0.5)])
def test_folds_are_found_on_the_side_of_small_parameters(span):
    """Of 1 + (3 - q^2) t, where they lie between two tricritical points q = -1 and 1."""

    class Arch(mf.ZonalDrift):
        q: float

        def slope(self, t):
            return 1 + (3 - self.q**2) * t

    arch = mf.phase_diagram(Arch(0.5), mf.Circle(16), vary={"q": span}, degrees=(1,))
    bent = discontinuous((1.0, 1.9))
    for q in (0.0, 0.4, 0.9) if span[1] > 1 else (0.0, -0.4, -0.9):
        for name in ("fold", "transition"):
            assert arch.kappa(name, q) == pytest.approx(
                bent.kappa(name, (3 - q**2) ** 0.5), rel=1e-11
            )
    assert not arch.warnings and np.isnan(arch.kappa("fold", span[0] if span[0] else 3.0))


@pytest.mark.long
def test_a_range_that_ends_next_to_a_pole_of_the_drift():
    class InverseSquare(mf.ZonalDrift):
        c: float

        def slope(self, t):
            return 1 / (self.c - t) ** 2

    diagram = mf.phase_diagram(
        InverseSquare(2.0), mf.Circle(16), vary={"c": (1.1, 2.0)}, degrees=(1,)
    )
    (corner,) = diagram.tricritical
    assert (corner.beta, corner.kappa) == pytest.approx((1.25, 1.5), rel=1e-12)
    assert diagram.kappa("fold", 1.2) == pytest.approx(1.2287123824, rel=1e-9)
    assert diagram.kappa("transition", 1.2) == pytest.approx(1.2304317457, rel=1e-9)


@pytest.mark.long
def test_where_another_degree_is_attracted_more_the_uniform_state_is_unstable_to_it():
    """At p = 2 the onsets coincide, which is a pole of the normal form; w_2 = p^2/8 beyond."""
    diagram = discontinuous((1.0, 2.5))
    assert [diagram.first_onset(p) for p in (1.5, 2.4)] == pytest.approx([2, 8 / 2.4**2])
    assert diagram.ends["transition"] == ("tricritical", "cusp")
    assert diagram.ends["transition 2"] == ("onset", "cusp")
    axes = diagram.plot().axes[0]
    (shaded,) = (one for one in axes.collections if one.get_label() == "both stable")
    places, heights = shaded.get_paths()[0].vertices.T
    assert heights.max() == pytest.approx(2, abs=0.01)
    assert heights[places > 2.1].max() < 8 / 2.1**2
