"""Stationary states and branches of models with fields, matrices, reactions and frequencies."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf
from meanfield.bifurcation.bases import Truncation
from meanfield.bifurcation.branch_switching import BranchSearch
from meanfield.bifurcation.continuation import curve_of
from meanfield.bifurcation.families import equation_of
from meanfield.bifurcation.reflections import Reflected, Symmetries

CIRCLE, SPHERE = mf.Circle(32), mf.Sphere(12)


def along_x(x):
    return np.eye(x.shape[-1])[0] * np.ones_like(x)


PULL = mf.Field(along_x)
MATRICES = mf.Attention(
    Q=np.array([[1.0, 0.3], [0.0, 0.8]]),
    K=np.eye(2),
    V=np.array([[1.0, 0.1], [0.1, 0.7]]),
    beta=2.0,
)


def bessel(x, k=1):
    return iv(k, x) / iv(0, x)


def final_error(model, start, time=80.0):
    """The difference between the end of a run and the state next to it."""
    run = mf.solve(model, start, (0, time), rtol=1e-12)
    state = mf.stationary(model, run.final)
    assert state.converged and state.stability().stable
    size = run.final.space.degree
    return np.abs(run.final.coefficients - state.density.resample(size).coefficients).max()


def test_a_field_alone_has_the_law_of_gibbs():
    state = mf.stationary(mf.Transformer(0.7 * PULL, 3.0), CIRCLE.uniform())
    for k in range(1, 6):
        assert state.density.moment(k) == pytest.approx(bessel(2.1, k), abs=1e-14)
    on_sphere = mf.stationary(mf.Transformer(0.7 * PULL, 3.0), SPHERE.uniform())
    assert abs(on_sphere.order_parameter - (1 / np.tanh(2.1) - 1 / 2.1)) < 1e-12


@pytest.fixture(scope="module")
def in_a_field():
    """Kuramoto at kappa = 3 as the field turns over."""
    return mf.branches(mf.Transformer(mf.Kuramoto() + 0.05 * PULL, 3.0), CIRCLE,
                       vary={"factors[1]": (-0.3, 0.2)}, secondary=False)  # fmt: skip


@pytest.mark.long
def test_folds_of_noisy_kuramoto_in_a_field(in_a_field):
    """r = I_1/I_0 of x = kappa (r + h) folds where kappa (1 - r^2 - r/x) = 1."""

    def excess(x):
        return 3.0 * (1 - bessel(x) ** 2 - bessel(x) / x) - 1

    x = brentq(excess, 0.1, 5.0)
    h = x / 3.0 - bessel(x)
    folds = sorted(fold.value for fold in in_a_field.special("fold", 0))
    np.testing.assert_allclose(folds, [-abs(h), abs(h)], rtol=0, atol=1e-10)
    for _, state in in_a_field.states_at(0.05):
        r = float(state.legendre_moments[0])
        assert r == pytest.approx(bessel(3.0 * (r + 0.05)), abs=1e-12)


@pytest.mark.long
def test_cusp_of_noisy_kuramoto_in_a_field():
    """At (kappa, h) = (2, 0): folds at h = +-(2/3) a (16 a/3)^(1/2), a = 1/2 - 1/kappa, near it."""
    for kappa, count in ((1.98, 0), (2.02, 2)):
        model = mf.Transformer(mf.Kuramoto() + 0.01 * PULL, kappa)
        found = mf.branches(model, CIRCLE, vary={"factors[1]": (-0.01, 0.008)}, secondary=False,
                            max_step=0.05)  # fmt: skip
        folds = found.special("fold", 0)
        assert len(folds) == count
    a = 1 / 2 - 1 / 2.02
    for fold in folds:
        assert abs(fold.value) == pytest.approx(2 / 3 * a * np.sqrt(16 * a / 3), rel=4 * a)


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize(
    "model",
    [
        mf.Transformer(mf.SA(2.0) + 0.5 * mf.Kuramoto(), 4.0),
        mf.Transformer(MATRICES, 4.0),
        mf.Transformer(mf.USA(1.5), 2.5, reaction=0.3),
        mf.Transformer(2.0 * mf.Kuramoto(), 4.0, frequency=mf.Lorentzian(0.2)),
        mf.Transformer(mf.USA(2.0), 3.0, feedforward=lambda x: 0.3 * np.roll(x, 1, -1)),
    ],
    ids=["sum", "matrices", "reaction", "frequencies", "feedforward"],
)
def test_runs_end_in_states(model):
    assert final_error(model, CIRCLE.von_mises(0.3, 2.0)) < 1e-9


def test_onset_of_lorentzian_frequencies():
    """z' = (c/2 - 1/kappa - width) z + ...: order begins at 1/kappa = c/2 - width."""
    model = mf.Transformer(2.0 * mf.Kuramoto(), 1.0, frequency=mf.Lorentzian(0.2))
    found = mf.branches(model, CIRCLE, (1.0, 1.6), secondary=False)
    onsets = [onset.value for onset in found.special("bifurcation", 0)]
    np.testing.assert_allclose(onsets, 1 / 0.8, rtol=0, atol=1e-10)


def test_reaction_moves_the_onset():
    """Growth of degree l: l^2 (w_l - 1/kappa) + alpha W_l."""
    found = mf.branches(mf.Transformer(mf.Kuramoto(), 1.0, reaction=0.5), CIRCLE, (0.8, 1.8))
    onset = found.special("bifurcation", 0)[0]
    assert onset.value == pytest.approx(1 / 0.75, abs=1e-10) and onset.degree == 1
    first = found.data.sel(point=found.data.branch == 1).isel(point=0)
    t = float(np.sqrt(2) * first.order_parameter)
    expected = onset.coefficients[1] * t**2
    assert float(first.kappa) * 0.75 - 1 == pytest.approx(expected, abs=5 * t**4)


@pytest.mark.repeats
@pytest.mark.parametrize("low", [-0.4, 0.0])
def test_a_range_of_reactions_of_a_zonal_drift(low):
    """Onset at 1/kappa = 1/2 + alpha/2; at alpha = 0 alone there is an equation of moments."""
    model = mf.Transformer(mf.Kuramoto(), 2.3)
    found = mf.branches(model, mf.Circle(16), vary={"reaction": (low, 0.4)})
    assert not found.warnings
    onsets = [point.value for point in found.special("bifurcation", 0)]
    assert onsets == pytest.approx([2 / 2.3 - 1] if low < 0 else [], abs=1e-10)
    (_, disordered), (_, state) = found.states_at(0.1)
    assert disordered.order_parameter == 0
    alone = mf.stationary(model.replace(reaction=0.1), mf.Circle(16).von_mises(0.0, 1.0))
    assert state.order_parameter == pytest.approx(alone.order_parameter, abs=1e-12)
    start = mf.stationary(model, mf.Circle(16).von_mises(0.0, 1.0))
    for name, span in (("reaction", (-0.2, 0.2)), ("kappa", (2.2, 2.5))):
        *_, last = mf.follow(start, vary={name: span})
        again = mf.stationary(last.model, last.density)
        assert again.order_parameter == pytest.approx(last.order_parameter, abs=1e-12)
        assert last.value > span[1]


@pytest.mark.long
def test_a_family_of_models():
    """The function of one number may change drift and kappa; states are those of its models."""

    def family(s):
        return mf.Transformer(mf.USA(1.0 + s) + 0.1 * PULL, 2.0 + 0.5 * s)

    found = mf.branches(family, CIRCLE, (0.0, 0.4), max_step=0.3)
    (fold,) = found.special("fold")
    assert found.parameter == "s" and fold.value == pytest.approx(0.253858985941, abs=1e-9)
    (_, state) = found.states_at(0.3)[0]
    assert state.model.kappa == 2.15
    direct = mf.stationary(family(0.3), state.density)
    np.testing.assert_allclose(direct.legendre_moments, state.legendre_moments, atol=1e-12)


def test_models_of_a_family_are_made_once_for_many_differences():
    """Models between which R is differenced lie on one grid of the range: 25 a point before."""
    made = []

    def family(s):
        made.append(s)
        return mf.Transformer(s * mf.USA(1.25) + 0.1 * PULL, 2.13)

    found = mf.branches(family, mf.Circle(8), (0.8, 1.2), max_step=0.02)
    count, named = found.data.sizes["point"], mf.Transformer(0.8 * mf.USA(1.25) + 0.1 * PULL, 2.13)
    known = mf.branches(named, mf.Circle(8), vary={"factors[0]": (0.8, 1.2)}, max_step=0.02)
    assert len(made) < 8 * count and len(made) < 1.1 * len(set(made))
    folds = [[s.value for s in one.special("fold")] for one in (found, known)]
    assert folds[0] == pytest.approx(folds[1], abs=1e-10) and folds[0]


@pytest.mark.parametrize("high", [1.1, 1.3])
def test_a_branch_covers_its_range_whatever_degree_states_beyond_it_need(high, monkeypatch):
    """Degree 12 resolves states up to kappa = 1.3; the step from 1.2 leads to 1.4."""
    monkeypatch.setitem(Reflected.bounds, 2, Truncation(8, 40, 80, 1e-12))
    model = mf.Transformer(0.2 * mf.Kuramoto() + 0.5 * PULL)
    found = mf.branches(model, mf.Circle(8), (0.5, high), max_step=0.5, secondary=False)
    assert not found.warnings and set(found.data.branch.values) == {0}
    assert found.data.kappa.values[-1] > high


def test_a_branch_without_order_ends_at_strong_noise():
    """In a field no branch comes to the uniform state, and kappa would fall without end."""
    model = mf.Transformer(mf.Kuramoto() + 0.5 * PULL, 1.0)
    state = mf.stationary(model, CIRCLE.uniform())
    curve = curve_of(model, state.equation.basis, "kappa", (0.5, 1.5), None, 0.5)
    z = np.append(state.legendre_moments, 0.0)
    down = curve.point(z, np.append(np.zeros(len(z) - 1), -1.0))
    search = BranchSearch(curve, curve.reach, 500)
    assert sum(1 for _ in search.followed(down, curve)) < 100
    (branch,) = search.branches
    assert branch.end == "range" and 2.5e-4 < branch.points[-1].value < 5e-4


def test_a_start_leads_to_its_branch():
    """From a density of the other sign, at the value that the model has."""
    model = mf.Transformer(mf.Kuramoto() + 0.05 * PULL, 3.0)
    start = CIRCLE.von_mises(np.pi, 3.0)
    found = mf.branches(model, start, vary={"kappa": (2.4, 3.2)}, secondary=False)
    signs = {np.sign(float(state.density.moment(1).real)) for _, state in found.states_at(3.0)}
    assert signs == {-1.0, 1.0} and found.special("fold")[0].value == pytest.approx(2.49147400833)


@pytest.mark.parametrize("space", [mf.Circle(8), mf.Sphere(5)], ids=repr)
@pytest.mark.parametrize("order", [0, 1])
def test_derivatives_are_those_of_differences(space, order):
    """The Jacobian and the gradient of left . block right, of a sum with every part."""
    d, rng = space.dimension, np.random.default_rng(0)
    attention = mf.Attention(np.diag(np.linspace(1, 0.5, d)), np.eye(d), np.eye(d), 1.5)
    drift = mf.SA(2.0) + 0.7 * mf.USA(1.0) + 0.5 * attention + 0.3 * PULL
    model = mf.Transformer(drift, 3.0, feedforward=lambda x: 0.1 * x * x[..., :1])
    basis = Reflected(space, model.noise, Symmetries(tuple(range(2**d))), (0, 2))
    equation, even, part = equation_of(model, basis), basis.even, basis.of_order(order)
    m = np.zeros(len(basis.degrees))
    m[even.members] = 0.05 * rng.standard_normal(even.members.size)
    left, right = rng.standard_normal((2, part.members.size))
    mean, h = equation.mean(m, 3.0), 1e-5
    exact = equation.block_change(mean, m, part, left, right)
    jacobian = equation.jacobian(mean)

    def at(m, kappa=3.0):
        mean = equation.mean(m, kappa)
        return m - mean.moments, left @ equation.block(mean, part) @ right

    for i in even.members:
        change = np.where(np.arange(m.size) == i, h, 0.0)
        (r, b), (s, c) = at(m + change), at(m - change)
        np.testing.assert_allclose((r - s) / (2 * h), jacobian[:, i], atol=1e-7)
        assert (b - c) / (2 * h) == pytest.approx(exact[i], abs=1e-6)
    (r, b), (s, c) = at(m, 3.0 * np.exp(h)), at(m, 3.0 * np.exp(-h))
    np.testing.assert_allclose((r - s) / (2 * h), equation.by_log_kappa(mean), atol=1e-7)
    assert (b - c) / (2 * h) == pytest.approx(exact[-2], abs=1e-6)


@pytest.mark.long
def test_a_sphere_under_matrices():
    A = mf.Attention(np.diag([1.0, 0.8, 0.6]), np.eye(3), np.eye(3), 1.5)
    found = mf.branches(mf.Transformer(A, 1.0), mf.Sphere(8), (2.0, 3.2), max_step=0.3)
    onset = found.special("bifurcation", 0)[0]
    model = mf.Transformer(A, onset.value)
    rates = mf.stationary(model, mf.Sphere(12).uniform()).stability(3).eigenvalues
    assert np.abs(rates).min() < 1e-8


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((mf.Transformer(PULL, lambda t: 2 + t), CIRCLE, None, "vary"), mf.MeanfieldError,
         "change with time"),
        ((lambda s: s, CIRCLE, (1.0, 2.0)), TypeError, "Transformer"),
        ((mf.Transformer(PULL, 2.0), mf.Zonal(4, 8), (1.0, 2.0)), mf.MeanfieldError, "Zonal"),
    ],
)  # fmt: skip
def test_refusals(arguments, error, match):
    model, space, span, *varied = arguments
    options = {"vary": {"reaction": (0.0, 1.0)}} if varied else {}
    with pytest.raises(error, match=match):
        mf.branches(model, space, span, **options)


def test_unknown_parameters_are_refused_with_those_that_are_known():
    model = mf.Transformer(mf.Kuramoto() + 0.1 * PULL, 2.0)
    with pytest.raises(ValueError, match=r"factors\[0\], factors\[1\], kappa, reaction"):
        mf.branches(model, CIRCLE, vary={"beta": (1.0, 2.0)})


@pytest.mark.parametrize(("first", "last"), [(0.6, 2.0), (0.42, 0.46), (0.2, 0.21)])
def test_a_family_that_changes_its_space_is_refused_with_the_value(first, last):
    """At an end of the range, between, and where only points on the way are."""

    def attention(s):
        matrix = np.eye(3 if first < s < last else 2)
        return mf.Transformer(mf.Attention(s * matrix, matrix, matrix), 1.0)

    with pytest.raises(ValueError, match=r"At s = \d.*does not fit: Attention.*for dimension 3"):
        mf.branches(attention, mf.Circle(8), (0.1, 1.0), max_step=0.02, progress=False)


def test_one_state_is_followed_through_the_fold_in_a_field():
    """Every state obeys r = I_1/I_0 of kappa (r + h); the field turns over."""
    model = mf.Transformer(mf.Kuramoto() + 0.05 * PULL, 3.0)
    start = mf.stationary(model, CIRCLE.von_mises(0.0, 2.0))
    way = mf.follow(start, vary={"factors[1]": (-0.3, 0.2)}, decreasing=True)
    strengths = []
    for state in way:
        r, (_, h) = float(state.legendre_moments[0]), state.model.drift.factors
        assert r == pytest.approx(bessel(3.0 * (r + h)), abs=1e-12)
        assert state.value == h
        strengths.append(h)
    turns = np.flatnonzero(np.diff(np.sign(np.diff(strengths))))
    assert len(turns) == 2 and -0.3 > strengths[-1] > -0.5
    with pytest.raises(ValueError, match=r"factors\[1\] is 0.05 at this state"):
        mf.follow(start, vary={"factors[1]": (-0.3, 0.0)})
    with pytest.raises(ValueError, match="no parameter 'beta'"):
        mf.follow(start, beta=(1.0, 2.0))


PEAK = lambda s, a: np.exp(np.cos(a))  # noqa: E731
FREQUENCIES = mf.Circle(12).indexed(PEAK, mf.NormalIndex(0.3, 8, 0.0))
UNEVEN = mf.noise.Anisotropic(np.diag([1.3, 0.7]))


@pytest.mark.parametrize(
    ("model", "start"),
    [
        (mf.Transformer(MATRICES, 2.0), CIRCLE.uniform()),
        (mf.Transformer(mf.Kuramoto(), 3.0, noise=UNEVEN), CIRCLE.von_mises(0.0, 2.0)),
        pytest.param(
            mf.Transformer(mf.SA(1.0) + PULL, 2.0), SPHERE.uniform(), marks=pytest.mark.long
        ),
        (mf.Transformer(2.0 * mf.Kuramoto(), 2.0, frequency=mf.OfIndex(1.0)), FREQUENCIES),
    ],
)
def test_states_of_every_model_are_followed_in_kappa(model, start):
    """Newton's method finds the third state on the way again, in one step."""
    state = mf.stationary(model, start)
    *_, last = (s for s, _ in zip(mf.follow(state, kappa=(1.5, 6.0)), range(3), strict=False))
    assert last.kappa > model.kappa and last.residual < 1e-11
    again = mf.stationary(last.model, last.density)
    assert again.converged and abs(again.order_parameter - last.order_parameter) < 1e-10


LAG = 0.5


@pytest.fixture(scope="module")
def lagging():
    """Kuramoto's drift with the phase lag LAG, v(theta) = int sin(theta' - theta + LAG) dmu."""
    c, s = np.cos(LAG), np.sin(LAG)
    drift = mf.Attention(np.eye(2), np.eye(2), np.array([[c, -s], [s, c]]), 0.0)
    return mf.branches(mf.Transformer(drift, 1.0), CIRCLE, (2.0, 3.0))


def test_a_phase_lag_leads_to_a_wave_that_turns(lagging):
    """z' = (e^(i alpha)/2 - 1/kappa) z + ...: onset 2/cos(alpha), speed sin(alpha)/2 there."""
    (onset,) = lagging.special("Hopf", 0)
    assert onset.value == pytest.approx(2 / np.cos(LAG), abs=1e-10)
    assert lagging.ends == ["range"] and not lagging.warnings
    wave = lagging.states_at(onset.value * (1 + 3e-4))[1][1]
    assert wave.speed == pytest.approx(np.sin(LAG) / 2, abs=1e-4)
    assert lagging.states_at(3.0)[0][1].speed == 0


def test_no_cycle_begins_at_the_hopf_point_of_a_wave(lagging):
    (onset,) = lagging.special("Hopf", 0)
    model = onset.state.model.replace(kappa=2.5)
    for ask in (lambda: mf.first_lyapunov(onset), lambda: mf.cycle(model, onset)):
        with pytest.raises(mf.MeanfieldError, match=r"at kappa = 2\.2789\d* no cycle begins"):
            ask()


def test_waves_are_found_next_to_their_hopf_point(lagging):
    """r^2 is proportional to the distance, from rounding on."""
    onset = lagging.special("Hopf", 0)[0].value
    waves = [lagging.states_at(onset * (1 + e))[1][1] for e in (1e-7, 1e-5)]
    shares = [wave.order_parameter**2 / e for wave, e in zip(waves, (1e-7, 1e-5), strict=True)]
    assert shares[0] == pytest.approx(shares[1], rel=1e-3)
    assert waves[0].speed == pytest.approx(np.sin(LAG) / 2, abs=1e-6)


def test_a_wave_turns_as_runs_do_and_is_stable_in_its_frame(lagging):
    (_, wave) = lagging.states_at(2.8)[1]
    run = mf.solve(wave.model, wave.density, (0, 1.5), rtol=1e-12)
    first, last = wave.density.moment(1), run.final.moment(1)
    assert abs(last) == pytest.approx(abs(first), abs=1e-11)
    assert np.angle(last / first) == pytest.approx(1.5 * wave.speed, abs=1e-10)
    stability = wave.stability(3)
    assert stability.stable and stability.neutral.tolist() == [True, False, False]


@pytest.mark.repeats
@pytest.mark.parametrize(("space", "order"), [(CIRCLE, 0), (SPHERE, 0), (SPHERE, 1)])
def test_derivatives_at_a_wave_are_those_of_differences(space, order):
    """Speed and tangent of a wave change with it; order 1 is odd along the axis of S^2."""
    c, s = np.cos(LAG), np.sin(LAG)
    V = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 0.5]])[: space.dimension, : space.dimension]
    Q = np.diag([1.0, 1.0, 0.7])[: space.dimension, : space.dimension]
    model = mf.Transformer(mf.Attention(Q, np.eye(space.dimension), V, 0.5), 3.5)
    peak = lambda *x: np.exp(x[0] if len(x) > 1 else np.cos(x[0]))  # noqa: E731
    wave = mf.stationary(model, space.density(peak))
    equation, m, kappa = wave.equation, wave.legendre_moments, wave.kappa
    part = equation.basis.even if order == 0 else equation.basis.of_order(order)
    assert part.members.size and wave.speed > 0.1
    left, right = np.random.default_rng(0).standard_normal((2, part.members.size))
    exact = equation.block_change(equation.mean(m, kappa), m, part, left, right)

    def at(m, kappa):
        return left @ equation.block(equation.mean(m, kappa), part) @ right

    h = 1e-5
    for i in equation.basis.even.members[:8]:
        change = h * np.eye(m.size)[i]
        slope = (at(m + change, kappa) - at(m - change, kappa)) / (2 * h)
        assert slope == pytest.approx(exact[i], abs=1e-7 * np.abs(exact).max())
    slope = (at(m, kappa * np.exp(h)) - at(m, kappa * np.exp(-h))) / (2 * h)
    assert slope == pytest.approx(exact[-2], abs=1e-7 * np.abs(exact).max())


def test_a_wave_is_followed(lagging):
    (_, wave) = lagging.states_at(2.5)[1]
    *_, last = mf.follow(wave, kappa=(2.4, 2.8))
    (_, here) = lagging.states_at(2.8)[1]
    near = mf.stationary(here.model, last.density)
    assert last.kappa > 2.8 and last.residual < 1e-12
    assert near.speed == pytest.approx(here.speed, abs=1e-12)
    assert 0 < abs(last.speed - here.speed) < 0.1


def test_a_wave_is_found_from_the_end_of_a_run(lagging):
    model = lagging.states_at(2.8)[1][1].model
    run = mf.solve(model, CIRCLE.von_mises(1.0, 1.0), (0, 150), rtol=1e-10)
    state = mf.stationary(model, run.final)
    assert state.converged and state.speed == pytest.approx(lagging.states_at(2.8)[1][1].speed)


@pytest.mark.long
def test_a_wave_turns_about_the_axis_of_the_sphere():
    """V turns by LAG about e_3, along which a field pulls: the wave has no symmetry."""
    c, s = np.cos(LAG), np.sin(LAG)
    V = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 0.5]])
    north = mf.Field(lambda x: np.eye(3)[2] + 0 * x)
    drift = mf.Attention(np.diag([1.0, 1.0, 0.7]), np.eye(3), V, 1.0) + 0.05 * north
    model = mf.Transformer(drift, 4.2)
    wave = mf.stationary(model, SPHERE.von_mises_fisher([1.0, 0.0, 0.0], 2.0))
    assert wave.converged and wave.speed > 0.3 and wave.order_parameter > 0.3
    final = mf.solve(model, wave.density, (0, 1), rtol=1e-11).final
    c, s = np.cos(wave.speed), np.sin(wave.speed)
    turned = wave.density.rotate([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    change = final.resample(turned.space.degree).coefficients - turned.coefficients
    assert np.abs(change).max() < 1e-10
    stability = wave.stability(3)
    assert stability.stable and stability.neutral.tolist() == [True, False, False]


@pytest.mark.long
def test_an_isola_is_found_by_deflation_followed_and_closed():
    """h = 0.1 + s^2: the states of negative r exist between two folds in s alone."""

    def family(s):
        return mf.Transformer(mf.Kuramoto() + (0.1 + s**2) * PULL, 3.0)

    states = mf.stationary_states(family(0.0), CIRCLE)
    assert len(states) == 3 and states.tried >= states.starts > 3
    found = mf.branches(family, CIRCLE, (-0.3, 0.3), starts={0.0: states}, secondary=False,
                        max_step=0.2)  # fmt: skip
    assert found.ends == ["closed"]

    def excess(x):
        return 3.0 * (1 - bessel(x) ** 2 - bessel(x) / x) - 1

    x = brentq(excess, 0.1, 5.0)
    edge = np.sqrt(abs(x / 3.0 - bessel(x)) - 0.1)
    folds = sorted(fold.value for fold in found.special("fold", 1))
    np.testing.assert_allclose(folds, [-edge, edge], rtol=0, atol=1e-9)


@pytest.mark.parametrize("start", [3, mf.Zonal(5, 16).uniform(), [mf.Circle(16).uniform()]])
def test_starts_of_branches_are_densities_on_their_space(start):
    with pytest.raises(
        TypeError, match=r"starts must be densities on Zonal\(dimension=3, degree=16"
    ):
        mf.branches(mf.USA(4.0), mf.Zonal(3, 16), (1.0, 2.0), starts={1.5: start}, progress=False)


@pytest.mark.long
def test_random_starts_find_all_states_and_files_keep_them(tmp_path):
    model = mf.Transformer(mf.Kuramoto() + 0.3 * MATRICES, 5.0)
    states = mf.stationary_states(model, mf.Circle(16), starts=4, rng=0)
    again = mf.load(states.save(tmp_path / "states.nc"))
    assert again.tried == states.tried and again.data.equals(states.data)
    for one, other in zip(states, again, strict=True):
        np.testing.assert_allclose(one.legendre_moments, other.legendre_moments, atol=1e-15)
    with pytest.raises(TypeError, match="densities"):
        mf.stationary_states(model, mf.Circle(16), starts=[1.0])


def test_rotations_of_states_with_a_reaction_are_neutral():
    """Means over the sphere of perturbations of order 1 vanish, whatever part of it nodes cover."""
    model = mf.Transformer(mf.USA(1.5) + 0.5 * mf.Kuramoto(), 2.5, reaction=0.3)
    run = mf.solve(model, CIRCLE.von_mises(0.3, 2.0), (0, 30), rtol=1e-8)
    stability = mf.stationary(model, run.final).stability(3)
    assert stability.neutral[0] and abs(stability.eigenvalues[0]) < 1e-10


def test_orders_share_the_spectrum_of_all_perturbations():
    """Under reflections of a state, and with a reaction: the same eigenvalues without them."""
    noise = mf.Anisotropic(np.diag([1.2, 0.8]))
    model = mf.Transformer(mf.USA(1.5), 2.0, noise=noise, reaction=0.4)
    state = mf.stationary(model, CIRCLE.von_mises(0.0, 1.0))
    basis, m = state.equation.basis, state.legendre_moments
    every = equation_of(model, basis.keeping((0,)))
    whole = np.linalg.eigvals(every.linearised(m, 2.0, every.basis.of_order(0))).real
    parts = [np.linalg.eigvals(state.equation.linearised(m, 2.0, basis.of_order(order))).real
             for order in range(basis.orders)]  # fmt: skip
    assert basis.orders > 1
    np.testing.assert_allclose(np.sort(np.concatenate(parts)), np.sort(whole), atol=1e-9)


FIELD = mf.Field(lambda x: x @ np.array([[0.0, 0.2], [0.1, 0.3]]) + np.array([0.5, 0.3]))


def test_states_of_a_branch_are_not_resolved_again(monkeypatch):
    """All guesses at the end of a range lead to the branch, whose degree was raised."""
    begun = []
    monkeypatch.setattr(BranchSearch, "from_edge", lambda _, *given: begun.append(given) or ())
    found = mf.branches(mf.Transformer(0.8 * mf.USA(2.0) + FIELD), CIRCLE, (0.5, 2.0))
    assert found.data.resolution.values.max() > CIRCLE.degree and not begun


def test_states_of_few_modes_are_resolved():
    """From degree 32 to that of the branch."""
    model = mf.Transformer(0.8 * mf.USA(2.0) + FIELD, 2.0)
    state = mf.stationary(model, CIRCLE.von_mises(0.5, 2.0))
    fine = state.equation.basis
    coarse = curve_of(model, fine.finer(32), "kappa", (1.0, 4.0), None)
    p, tail = np.log(2.0), fine.unresolved
    z = coarse.at_value(np.append(coarse.basis.padded(state.legendre_moments), p), 2.0)
    assert not coarse.at(p)[0].resolves(z[:-1], 2.0, tail)
    curve, z = coarse.resolved(z, 2.0)
    assert curve.basis.degree > 32 and curve.at(p)[0].resolves(z[:-1], 2.0, tail)
    np.testing.assert_allclose(fine.padded(z[:-1]), state.legendre_moments, rtol=0, atol=1e-11)


def test_a_field_has_no_table_and_a_jacobian_is_computed_once(monkeypatch):
    model = mf.Transformer(0.8 * mf.USA(2.0) + FIELD, 2.0)
    state = mf.stationary(model, CIRCLE.von_mises(0.5, 2.0))
    heads = state.equation.heads
    assert [head.above.table is None for head in heads] == [False, True]
    curve = curve_of(state.model, state.equation.basis, "kappa", (1.0, 4.0), None)
    z = np.append(state.legendre_moments, np.log(2.0))
    matrix, calls = curve.jacobian(z), []
    jacobian = type(state.equation).jacobian
    monkeypatch.setattr(
        type(state.equation), "jacobian", lambda *given: calls.append(1) or jacobian(*given)
    )
    assert np.array_equal(curve.jacobian(z), matrix) and not calls
    point = curve.point(z, np.append(0 * z[:-1], 1.0))
    assert not calls and np.abs(matrix @ point.tangent).max() < 1e-12
    ahead = curve.jacobian(z + 1e-6 * point.tangent)
    assert calls and 0 < np.abs(ahead - matrix).max() < 1e-4
