"""Branches and their special points, against reference values and exact solutions."""

from functools import cache

import numpy as np
import pytest
from scipy.special import iv, ive

import meanfield as mf
from meanfield.bifurcation.bases import AxialHarmonics
from meanfield.bifurcation.continuation import curve_of
from meanfield.bifurcation.equation import MomentEquation
from meanfield.bifurcation.normal_forms import normal_form

CIRCLE = mf.Circle(16)


@cache
def wide_diagram():
    return mf.branches(mf.USA(4.0), CIRCLE, (0.3, 1.5), save_at=[0.4])


FIRST_ORDER = [  # beta, kappa_c, fold, m_1 there, transition, m_1 there
    (2.5, 0.9933579142, 0.9932200706, 0.13824, 0.9932541481, 0.16937),
    (3, 0.7588462084, 0.7502601061, 0.39275, 0.7521877664, 0.48154),
    (4, 0.4098585257, 0.3870689960, 0.54713, 0.3914751008, 0.66881),
    (5, 0.2054599575, 0.1843006830, 0.61419, 0.1879758266, 0.74803),
    (7, 0.0448605530, 0.0366245206, 0.67900, 0.0378632957, 0.82237),
    (9, 0.0087301110, 0.0065848424, 0.71171, 0.0068778920, 0.85882),
]
ON_THE_SPHERE = [
    (1.9, 2.126474219, 2.124540, 2.125014, 0.2779),
    (2, 2.052581507, 2.044166, 2.046183, 0.3968),
    (2.5, 1.683634249, 1.612827, 1.628087, 0.6553),
    (3, 1.337619591, 1.208448, 1.233744, 0.7623),
    (4, 0.781030582, 0.618273, 0.645350, 0.8586),
    (5, 0.421093011, 0.293215, 0.311846, 0.9019),
]
CRITICAL = {
    1: (1.769413237, 7.366608957, 45.1092039, 365.3474891),
    2: (1.257358016, 2.902974826, 9.401148741, 39.42551507),
    4: (0.4098585257, 0.6228405558, 1.198582396, 2.824308839),
    5: (0.2054599575, 0.2856226422, 0.4839732187, 0.9788117092),
}


@pytest.mark.repeats
@pytest.mark.parametrize(("beta", "critical", "fold", "at_fold", "equal", "jump"), FIRST_ORDER)
def test_first_order_transitions_on_the_circle(beta, critical, fold, at_fold, equal, jump):
    span = (0.7 * critical, 1.05 * critical)
    found = mf.branches(mf.USA(beta), CIRCLE, span, degrees=[1], stability=False)
    (onset,), (turn,), (change,) = map(found.special, ("bifurcation", "fold", "transition"))
    assert onset.kappa == pytest.approx(critical, abs=1e-10) and onset.character == "subcritical"
    assert turn.kappa == pytest.approx(fold, abs=1e-10) and turn.status == "converged"
    assert turn.state.order_parameter == pytest.approx(at_fold, abs=5.1e-6)
    assert change.kappa == pytest.approx(equal, abs=1e-10)
    assert change.state.order_parameter == pytest.approx(jump, abs=5.1e-6)
    for special in (turn, change):
        low, high = special.interval
        assert low <= special.kappa <= high and high - low < 1e-10
        assert special.state.residual < 1e-11
    assert abs(change.state.free_energy) < 1e-12


@pytest.mark.repeats
@pytest.mark.parametrize(("beta", "critical", "fold", "equal", "jump"), ON_THE_SPHERE)
def test_first_order_transitions_on_the_sphere(beta, critical, fold, equal, jump):
    span = (0.6 * critical, 1.05 * critical)
    found = mf.branches(mf.USA(beta), mf.Sphere(16), span, degrees=[1], stability=False)
    (onset,), (turn,), (change,) = map(found.special, ("bifurcation", "fold", "transition"))
    assert onset.kappa == pytest.approx(critical, abs=1e-9)
    assert turn.kappa == pytest.approx(fold, abs=5.1e-7)
    assert change.kappa == pytest.approx(equal, abs=5.1e-7)
    assert change.state.order_parameter == pytest.approx(jump, abs=5.1e-5)


@pytest.mark.repeats
@pytest.mark.parametrize("beta", [1, 2, 2.4])
def test_continuous_transitions_have_neither_fold_nor_transition(beta):
    critical = beta / iv(1, beta)
    found = mf.branches(mf.USA(beta), CIRCLE, (0.5 * critical, 1.5 * critical), degrees=[1])
    assert [s.kind for s in found.special_points] == ["bifurcation"]
    assert found.special_points[0].character == "supercritical"


@pytest.mark.parametrize(("beta", "critical"), CRITICAL.items())
def test_where_the_uniform_state_bifurcates(beta, critical):
    span = (critical[0] / 2, critical[3] * 1.01)
    found = mf.branches(mf.USA(beta), CIRCLE, span, stability=False, max_points=2, secondary=False)
    places = [s.kappa for s in found.special("bifurcation", 0)]
    np.testing.assert_allclose(places[:4], critical, rtol=1e-9)


@pytest.mark.repeats
@pytest.mark.parametrize("d", [2, 3, 8])
def test_the_pitchfork_of_kuramoto(d):
    """At kappa = d, exactly; r = I_(d/2)(kappa r)/I_(d/2-1)(kappa r) along the branch."""
    found = mf.branches(mf.Kuramoto(), mf.Zonal(d, 16), (0.5 * d, 3 * d))
    (onset,) = found.special_points
    assert onset.kappa == pytest.approx(d, abs=1e-10) and onset.character == "supercritical"
    branch = found.data.where(found.data.branch == 1, drop=True)
    r, kappa = branch.order_parameter.values, branch.kappa.values
    np.testing.assert_allclose(
        r, ive(d / 2, kappa * r) / ive(d / 2 - 1, kappa * r), rtol=0, atol=1e-12
    )
    small = r < 0.1
    slope = (kappa[small] - d) / r[small] ** 2  # r^2 ~ (kappa - d) (d + 2)/d^2
    assert slope == pytest.approx(d**2 / (d + 2), rel=0.02)
    assert (branch.unstable.sum("order") == 0).all() and found.ends == ["range"]


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
def test_tricritical_points(d, exact):
    """Where the quadratic term of the normal form vanishes."""
    low, high = (
        normal_form(MomentEquation(mf.USA(b), AxialHarmonics(d, 0, 8)), 1)
        for b in (exact - 1e-8, exact + 1e-8)
    )
    assert low.quadratic > 0 > high.quadratic


@pytest.mark.parametrize("beta", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_normal_forms_on_the_circle(beta, n):
    """kappa/kappa_n = 1 + (1/2)(1 - 2 l)/(1 - l) m_n^2 with l = I_2n/I_n."""
    form = normal_form(MomentEquation(mf.USA(beta), AxialHarmonics(2, 0, 32)), n)
    ratio = iv(2 * n, beta) / iv(n, beta)
    assert 2 * form.quadratic == pytest.approx((1 - 2 * ratio) / (1 - ratio) / 2, rel=1e-10)
    assert abs(form.linear) < 1e-13


def test_two_degrees_with_one_multiplier_have_a_degenerate_normal_form():
    """W = cos + cos 2 theta: degree 1 excites degree 2, which has its multiplier."""
    resonant = mf.CosineSeries([0.0, 1.0, 1.0])
    first, second = (
        normal_form(MomentEquation(resonant, AxialHarmonics(2, 0, 8)), n) for n in (1, 2)
    )
    assert first.kind == "degenerate" and np.isnan(first.quadratic)
    assert np.isfinite(first.second).all()
    assert second.kind == "supercritical"
    found = mf.branches(resonant, CIRCLE, (1.5, 2.5))
    characters = [special.character for special in found.special("bifurcation", 0)]
    assert sorted(characters) == ["degenerate", "supercritical"]


@pytest.mark.parametrize("drift", [mf.USA(2.5), mf.SA(3.0)], ids=repr)
@pytest.mark.parametrize(("d", "degree"), [(2, 1), (2, 2), (3, 1), (3, 2), (5, 2)])
def test_branches_begin_as_their_normal_form_says(drift, d, degree):
    """kappa = kappa_c (1 + c_1 a + c_2 a^2) up to the third order of the amplitude a."""
    equation = MomentEquation(drift, AxialHarmonics(d, 0, 48))
    form = normal_form(equation, degree)
    errors = []
    for amplitude in (0.02, 0.01):
        row, size = np.zeros(49), amplitude / equation.basis.sizes[degree - 1]
        row[degree - 1] = 1.0
        z = np.append(size * row[:-1], np.log(form.kappa))
        curve = curve_of(drift, equation.basis, "kappa", (1.0, 2.0), None)
        kappa = np.exp(curve.solved(z, row, size)[-1])
        series = 1 + form.linear * amplitude + form.quadratic * amplitude**2
        errors.append(abs(kappa / form.kappa - series))
    assert errors[0] < 1e-4 and errors[1] < errors[0] / 6


def test_stability_changes_at_folds_only():
    """From one growing perturbation to none on the branch of degree 1, at the fold."""
    branch = wide_diagram().data.where(wide_diagram().data.branch == 1, drop=True)
    growing, kappa = branch.unstable.sum("order").values, branch.kappa.values
    turn = int(kappa.argmin())
    assert (growing[: turn - 1] == 1).all() and (growing[turn + 2 :] == 0).all()
    others = wide_diagram().data.where(wide_diagram().data.branch > 1, drop=True)
    assert (others.unstable.sum("order") > 0).all()


def test_saved_states_are_stationary_and_solve_stays_there():
    states = [state for number, state in wide_diagram().saved if number == 1]
    assert [state.kappa for state in states] == [0.4, 0.4]  # before and behind the fold
    assert sorted(round(s.stability().gap > 0) for s in states) == [0, 1]
    stable = max(states, key=lambda s: s.order_parameter)
    run = mf.solve(stable.model, stable.density, (0, 5), rtol=1e-10, t_eval=[5.0])
    assert abs(run.final.moment(1) - stable.density.moment(1)) < 1e-9


def test_softmax_has_no_first_order_onset():
    for d in (2, 3, 8):
        for beta in (0.5, 2, 8, 30, 60):
            degree = 96 if beta > 10 else 48
            form = normal_form(MomentEquation(mf.SA(beta), AxialHarmonics(d, 0, degree)), 1)
            l = mf.SA(beta).normaliser(2, d)
            criterion = (d - 1) * (1 - l[1]) * l[2] / (l[1] - l[2]) < d * l[1] + 1
            assert criterion and form.kind == "supercritical"


def test_special_points_have_the_coefficients_of_their_normal_form():
    """kappa/kappa_1 - 1 = c_2 a^2 with a = sqrt(2) m_1 and 2 c_2 = (1/2)(1 - 2 l)/(1 - l)."""
    onset, *others = wide_diagram().special_points
    ratio = iv(2, 4.0) / iv(1, 4.0)
    assert 2 * onset.coefficients[1] == pytest.approx((1 - 2 * ratio) / (1 - ratio) / 2, rel=1e-10)
    assert abs(onset.coefficients[0]) < 1e-13
    assert np.isnan([s.coefficients for s in others if s.branch > 0]).all()


def test_degree_two_is_transcritical_on_the_sphere():
    found = mf.branches(mf.USA(2.5), mf.Sphere(16), (3.0, 5.0), degrees=[2])
    (onset,) = found.special("bifurcation", 0)
    assert onset.character == "transcritical" and onset.kappa == pytest.approx(3.9171316538)
    assert len(found.special("fold")) == 1 and found.special("fold")[0].kappa < onset.kappa
    first, second = (found.data.where(found.data.branch == b, drop=True) for b in (1, 2))
    assert (first.moments.sel(degree=2) > 0).all() and (second.moments.sel(degree=2) < 0).all()


@pytest.mark.long
def test_doi_onsager_and_kuramoto_daido():
    """kappa = 2K: K_c = 3 pi/4 for W = -|sin|; min(1, 1/m) for W = cos + m cos 2."""
    doi = mf.Interaction(lambda t: -np.sqrt(np.maximum(1 - t**2, 0.0)), name="Doi-Onsager")
    found = mf.branches(doi, mf.Circle(32), (4.0, 6.0), stability=False)
    (onset,) = found.special("bifurcation", 0)
    assert onset.kappa / 2 == pytest.approx(3 * np.pi / 4, rel=1e-9)
    assert onset.character == "supercritical" and onset.degree == 2
    for m in (0.3, 2.5):
        daido = mf.Interaction.chebyshev([0, 1, m])
        found = mf.branches(daido, CIRCLE, (0.5, 2.5), stability=False, secondary=False)
        first = min(found.special("bifurcation", 0), key=lambda s: s.kappa)
        assert first.kappa / 2 == pytest.approx(min(1, 1 / m), rel=1e-9)
        assert not any(s.kappa < first.kappa for s in found.special("transition"))


def test_a_diagram_is_kept_in_a_file(tmp_path):
    path = wide_diagram().save(tmp_path / "diagram.nc")
    again = mf.Diagram.load(path)
    assert again.data.identical(wide_diagram().data) and again.ends == wide_diagram().ends
    assert repr(again) == repr(wide_diagram())
    for one, other in zip(again.special_points, wide_diagram().special_points, strict=True):
        assert one.kappa == other.kappa and one.interval == other.interval
        np.testing.assert_array_equal(one.coefficients, other.coefficients)
        np.testing.assert_array_equal(one.state.legendre_moments, other.state.legendre_moments)
        np.testing.assert_array_equal(
            one.state.density.coefficients, other.state.density.coefficients
        )
    assert [(b, s.kappa) for b, s in again.saved] == [(b, s.kappa) for b, s in wide_diagram().saved]
    again.plot()
    with pytest.raises(mf.StorageError, match=r"none.nc does not exist"):
        mf.Diagram.load(tmp_path / "none.nc")
    with pytest.raises(mf.StorageError, match="does not exist"):
        wide_diagram().save(tmp_path / "nowhere" / "diagram.nc")


@pytest.mark.long
def test_observables_and_figures(tmp_path):
    found = mf.branches(
        mf.Kuramoto(), CIRCLE, (1.0, 4.0), observables={"top": lambda mu: mu.values.max()}
    )
    assert found.data["top"].dims == ("point",) and float(found.data["top"].max()) > 2
    for y in ("order_parameter", "free_energy", "moment 2", "top", "growth"):
        found.plot(y=y).savefig(tmp_path / "figure.png")
    wide_diagram().plot(log=True)
    with pytest.raises(ValueError, match="y, the kind of a diagram, must be branch"):
        found.plot(y="momentum")
    assert "2 branches" in repr(found) and "supercritical" in repr(found)


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"drift": CIRCLE}, TypeError, "branches needs a drift"),
        ({"drift": mf.Hardmax()}, mf.MeanfieldError, "Hardmax"),
        ({"space": mf.Tokens}, TypeError, "space must be one of Circle"),
        ({"drift": mf.USA([1.0, 2.0])}, ValueError, "ensemble USA"),
        ({"kappa": (2, 1)}, ValueError, "a range"),
        ({"kappa": (0, 1)}, ValueError, "a range"),
        ({"kappa": 3.0}, ValueError, "a range"),
        ({"save_at": [5.0]}, ValueError, "save_at"),
        ({"observables": {"r": 1.0}}, TypeError, "observables"),
        ({"degrees": [3]}, ValueError, "no bifurcation of degree 3"),
        ({"progress": 1}, TypeError, "progress"),
    ],
)
def test_bad_input(changes, error, match):
    with pytest.raises(error, match=match):
        mf.branches(**({"drift": mf.USA(1.0), "space": CIRCLE, "kappa": (1.0, 2.0)} | changes))


@pytest.mark.long
def test_a_diagram_of_many_matrices_is_saved(tmp_path):
    """More than 16 entries, which files of runs hold as arrays of their own."""
    identities = np.stack([np.eye(3)] * 3)
    drift = mf.Attention(Q=identities, K=identities, V=identities / 3)
    diagram = mf.branches(
        mf.Transformer(drift), mf.Sphere(4), kappa=(2.0, 2.1), max_points=3, progress=False
    )
    diagram.save(tmp_path / "diagram.nc")
    loaded = mf.load(tmp_path / "diagram.nc")
    np.testing.assert_array_equal(loaded.drift.drift.V, drift.V)
    np.testing.assert_array_equal(loaded.data.kappa, diagram.data.kappa)


def test_degrees_that_are_hardly_attracted_have_no_onset():
    """Multipliers of USA below 1e-308 have no inverse: a RuntimeWarning before."""
    curve = curve_of(mf.USA(4.0), AxialHarmonics(2, 0, 400), "kappa", (0.3, 0.6), None)
    weights = curve.at(0.0)[0].multipliers(curve.basis)
    assert 0 < weights[weights > 0].min() < 1e-308
    onset, *_ = curve.onsets(list(curve.basis.degrees[[0, *range(150, 400)]]), (0.0, 600.0))
    assert onset.value == pytest.approx(4 / iv(1, 4), rel=1e-12)
