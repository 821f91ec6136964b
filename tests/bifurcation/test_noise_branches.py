"""Stationary states, stability and branches under anisotropic and multiplicative noise."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.bifurcation.families import equation_of
from meanfield.bifurcation.reflections import Reflected
from meanfield.dynamics.density import DensityMotion

CIRCLE = mf.Circle(32)
ANISOTROPY = 0.3


def stretched(*variances):
    return mf.noise.Anisotropic(np.diag(variances))


UNEVEN = stretched(1 + ANISOTROPY, 1 - ANISOTROPY)


def onset_of_kuramoto(e: float) -> float:
    """kappa_c of order along the first axis under Sigma = diag(1 + e, 1 - e); -e for the other."""
    theta = 2 * np.pi * np.arange(4096) / 4096
    s = np.sqrt(1 - e * np.cos(2 * theta))
    ratio = np.sqrt(complex(2 * e / (1 + e)))
    A = np.arctanh(ratio * np.cos(theta)) / np.sqrt(complex(2 * e * (1 + e)))
    return float(((1 / s).mean() / (np.cos(theta) * A.real / s).mean()).real)


@pytest.fixture(scope="module")
def kuramoto():
    return mf.branches(mf.Kuramoto(), CIRCLE, (1.5, 3.0), noise=UNEVEN, save_at=[2.5])


def test_onset_splits_into_one_for_each_axis(kuramoto):
    onsets = kuramoto.special("bifurcation", 0)
    expected = [onset_of_kuramoto(-ANISOTROPY), onset_of_kuramoto(ANISOTROPY)]
    np.testing.assert_allclose([o.value for o in onsets], expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(expected, [1.785096547, 2.084202557], atol=1e-9)
    assert [o.character for o in onsets] == ["supercritical"] * 2
    assert [o.order for o in onsets] == [2, 1]  # odd in y, odd in x
    assert kuramoto.ends == ["range"] * 2 and not kuramoto.warnings


def test_only_the_branch_of_the_first_onset_is_stable(kuramoto):
    (base, along_y, along_x) = (state for _, state in kuramoto.saved)
    assert [s.stability().stable for s in (base, along_y, along_x)] == [False, True, False]
    assert along_x.stability(1).orders[0] == 1  # odd in y, the reflection that it keeps
    np.testing.assert_allclose(along_y.legendre_moments[0], 0, atol=1e-15)
    branches = [number for number, *_ in kuramoto.stable_ranges()]
    assert branches == [0, 1]


def test_there_is_no_free_energy_and_no_transition(kuramoto):
    assert np.isnan(kuramoto.saved[1][1].free_energy)
    with pytest.raises(mf.MeanfieldError, match="no first-order transition"):
        kuramoto.transition()
    with pytest.raises(mf.MeanfieldError, match="Anisotropic"):
        kuramoto.ground_state(2.5)


def test_round_trip(kuramoto, tmp_path):
    kuramoto.save(tmp_path / "d.nc")
    loaded = mf.load(tmp_path / "d.nc")
    assert repr(loaded.noise) == repr(UNEVEN)
    for (number, state), (n, again) in zip(kuramoto.saved, loaded.saved, strict=True):
        assert number == n
        np.testing.assert_array_equal(state.legendre_moments, again.legendre_moments)
        assert state.stability().gap == pytest.approx(again.stability().gap, abs=1e-13)
    states = loaded.states_at(2.2)
    assert [number for number, _ in states] == [0, 1, 2]
    loaded.plot()


def test_a_scale_is_lost_in_files(tmp_path):
    """Branch and states are there, what needs the function is refused."""
    noise = mf.noise.MultiplicativeIto(lambda x: 1 + 0.3 * x[..., 0] ** 2)
    diagram = mf.branches(mf.Kuramoto(), CIRCLE, (2.0, 3.0), noise=noise, secondary=False)
    diagram.save(tmp_path / "d.nc")
    loaded = mf.load(tmp_path / "d.nc")
    state = loaded.special("bifurcation", 0)[0].state
    assert abs(state.density.moment(2)) > 0.01 and np.isnan(state.residual)
    with pytest.raises(mf.MeanfieldError, match="MultiplicativeIto"):
        loaded.states_at(2.5)


def test_ito_onsets_coincide_for_every_even_scale():
    """int cos A/s^2 = int sin B/s^2 with A' = -sin/s^2 and B' = cos/s^2, by parts."""
    noise = mf.noise.MultiplicativeIto(lambda x: 1 + 0.3 * x[..., 0] ** 2 + 0.2 * x[..., 0] ** 4)
    diagram = mf.branches(mf.Kuramoto(), CIRCLE, (2.0, 3.5), noise=noise, secondary=False)
    first, second = (o.value for o in diagram.special("bifurcation", 0))
    assert first == pytest.approx(second, rel=1e-11)


def test_isotropic_sigma_gives_the_states_of_isotropic_noise():
    drift, guess = mf.SA(2.0), CIRCLE.von_mises(0.0, 2.0)
    plain = mf.stationary(mf.Transformer(drift, kappa=4.0), guess)
    other = mf.stationary(mf.Transformer(drift, kappa=4.0, noise=stretched(1.0, 1.0)), guess)
    np.testing.assert_allclose(
        plain.density.resample(32).coefficients, other.density.resample(32).coefficients, atol=1e-13
    )
    one, two = plain.stability(), other.stability()
    np.testing.assert_allclose(one.eigenvalues, two.eigenvalues, atol=1e-10)
    assert one.neutral.tolist() == two.neutral.tolist() and one.neutral.sum() == 1


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("drift", "kappa", "noise", "angle"),
    [
        (mf.USA(2.0), 4.0, UNEVEN, np.pi / 2),
        (
            mf.SA(2.0),
            3.0,
            mf.noise.MultiplicativeStratonovich(lambda x: 1 + 0.2 * x[..., 0]),
            np.pi,
        ),
        (
            mf.SA(2.0),
            4.0,
            mf.noise.MultiplicativeIto(lambda x: 1 + 0.2 * x[..., 0] * x[..., 1]),
            0.75 * np.pi,
        ),
    ],
    ids=["Anisotropic", "Stratonovich", "Ito"],
)
def test_states_are_where_runs_end(drift, kappa, noise, angle):
    model = mf.Transformer(drift, kappa=kappa, noise=noise)
    run = mf.solve(model, CIRCLE.von_mises(angle, 1.0), (0, 120), rtol=1e-12)
    state = mf.stationary(model, run.final)
    assert state.converged and state.stability().stable
    size = run.final.space.degree
    found = state.density.resample(size).coefficients
    np.testing.assert_allclose(run.final.coefficients, found, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore::meanfield.UnresolvedWarning")  # at degree 18 of S^2
@pytest.mark.parametrize("space", [CIRCLE, mf.Sphere(12)], ids=repr)
def test_eigenvalues_are_those_of_the_equation_of_motion(space):
    """Against differences of the right-hand side that `solve` integrates."""
    d = space.dimension
    model = mf.Transformer(mf.USA(1.0), kappa=2.0, noise=stretched(*np.linspace(1.1, 0.9, d)))
    state = mf.stationary(model, space.uniform(), max_degree=space.degree * 3 // 2)
    density = state.density.resample(space.degree)
    motion = DensityMotion(model, density, rtol=1e-10)
    basis = Reflected(Reflected.resolving(space), model.noise)
    step, columns = 1e-4, []
    for i in np.flatnonzero(basis.degrees <= 6):
        unit = np.zeros(len(basis.degrees))
        unit[i] = step
        change = basis.all.series(unit, 0.0)
        two = (motion.velocity(density.coefficients + sign * change) for sign in (1, -1))
        columns.append(basis.all.moments(np.subtract(*two))[basis.degrees <= 6] / (2 * step))
    expected = np.sort(np.linalg.eigvals(np.array(columns).T).real)[::-1][:d]
    np.testing.assert_allclose(state.stability(d).eigenvalues, expected, atol=3e-7)


def test_growth_in_time_is_the_eigenvalue(kuramoto):
    state = kuramoto.saved[0][1]
    found = state.stability(1)
    part = state.equation.basis.of_order(found.orders[0])
    mode = np.zeros(len(state.equation.degrees))
    mode[part.members] = found.modes[0].real
    start = state.density.coefficients + 1e-7 * state.equation.basis.all.series(mode, 0.0)
    run = mf.solve(
        mf.Transformer(mf.Kuramoto(), kappa=2.5, noise=UNEVEN),
        mf.Density(state.density.space, start), (0, 10), t_eval=[2, 10], rtol=1e-12,
    )  # fmt: skip
    first, last = (abs(s.moment(1)) for s in run.states)
    assert np.log(last / first) / 8 == pytest.approx(found.eigenvalues[0], abs=1e-6)


@pytest.mark.parametrize("drift", [mf.SA(2.0), mf.USA(2.0)], ids=repr)
def test_jacobian(drift):
    noise = mf.noise.MultiplicativeStratonovich(lambda x: 1 + 0.1 * x[..., 0])
    basis = Reflected(mf.Sphere(10), noise)
    assert basis.kept == (0, 2, 4, 6)
    equation, mine = equation_of(drift, basis), basis.even.members
    m = np.zeros(len(basis.degrees))
    m[mine] = 0.02 * np.random.default_rng(0).standard_normal(mine.size)
    mean, h = equation.mean(m, 3.0), 1e-6
    differences = []
    for i in mine:
        change = np.where(np.arange(m.size) == i, h, 0.0)
        ends = [m + s * change - equation.mean(m + s * change, 3.0).moments for s in (1, -1)]
        differences.append((ends[0] - ends[1])[mine] / (2 * h))
    exact = equation.jacobian(mean)[np.ix_(mine, mine)]
    np.testing.assert_allclose(exact, np.array(differences).T, atol=1e-9)
    logs = [m - equation.mean(m, 3.0 * np.exp(s * h)).moments for s in (1, -1)]
    slope = (logs[0] - logs[1]) / (2 * h)
    np.testing.assert_allclose(equation.by_log_kappa(mean), slope, atol=1e-9)


@pytest.mark.repeats
@pytest.mark.parametrize("a", [0.002, 0.008])
def test_odd_scale_gives_an_imperfect_pitchfork(a):
    """No onset on the way; the fold is at 2 + 3 (a/2)^(2/3) to leading order."""
    noise = mf.noise.MultiplicativeStratonovich(lambda x: 1 + a * x[..., 0])
    diagram = mf.branches(mf.Kuramoto(), CIRCLE, (1.9, 2.3), noise=noise, secondary=False)
    (fold,) = diagram.special("fold")
    assert not diagram.special("bifurcation") and fold.branch == 1
    coefficient = (fold.value - 2) / (a / 2) ** (2 / 3)
    assert coefficient == pytest.approx(3, abs=3 * (a / 2) ** (2 / 3))


@pytest.mark.long
def test_usa_leaves_a_gap_without_stable_states():
    """Beyond the subcritical onset along x order turns to y, where nothing holds it: a cycle."""
    diagram = mf.branches(mf.USA(4.0), CIRCLE, (0.34, 0.40), noise=UNEVEN)
    onsets = diagram.special("bifurcation", 0)
    assert [o.character for o in onsets] == ["subcritical"] * 2
    assert [number for number, *_ in diagram.stable_ranges()] == [0, 2]
    (_, _, last), (_, first, _) = diagram.stable_ranges()
    assert last == pytest.approx(0.3564974, abs=1e-6) and first == pytest.approx(0.39171, abs=1e-4)
    assert "bifurcation" in diagram.ends  # the branch across connects the two
    assert all(not s.stability().stable for _, s in diagram.states_at(0.37))


@pytest.mark.long
def test_range_of_beta():
    diagram = mf.branches(
        mf.USA, CIRCLE, 0.4, beta=(3.0, 4.0), noise=UNEVEN, secondary=False, max_step=0.3
    )
    first = diagram.special("bifurcation", 0)[0]
    assert first.value == pytest.approx(3.83643379598, abs=1e-9)
    kappas = mf.branches(mf.USA(first.value), CIRCLE, (0.39, 0.41), noise=UNEVEN, secondary=False)
    assert kappas.special("bifurcation", 0)[0].value == pytest.approx(0.4, abs=1e-10)


SPHERE_ONSETS = {4: 2.79361514898, 2: 2.98846500646, 1: 3.15490470531}  # odd in z, y, x


@pytest.mark.long
def test_three_onsets_on_the_sphere():
    """The state without order has an eigenvalue 0 of each order; the others are apart."""
    for order, kappa in SPHERE_ONSETS.items():
        model = mf.Transformer(mf.Kuramoto(), kappa=kappa, noise=stretched(1.2, 1.0, 0.8))
        found = mf.stationary(model, mf.Sphere(12).uniform()).stability(3)
        nearest = np.abs(found.eigenvalues).argmin()
        assert abs(found.eigenvalues[nearest]) < 1e-10 and found.orders[nearest] == order


@pytest.mark.long
def test_branch_on_the_sphere():
    """The first of them is stable across the axis: order is along z, where noise is weakest."""
    diagram = mf.branches(
        mf.Kuramoto(), mf.Sphere(8), (2.7, 2.85), noise=stretched(1.2, 1.0, 0.8), max_step=0.3
    )
    (onset,) = diagram.special("bifurcation", 0)
    assert onset.value == pytest.approx(SPHERE_ONSETS[4], abs=1e-9)
    assert {number for number, *_ in diagram.stable_ranges()} == {0, 1}


@pytest.mark.bits
def test_resumed_search_is_the_same(tmp_path):
    def found(**options):
        return mf.branches(mf.Kuramoto(), CIRCLE, (1.7, 1.9), noise=UNEVEN, **options)

    whole = found(checkpoint=tmp_path / "c")
    again = found(checkpoint=tmp_path / "c", resume=True)
    for name in ("moments", "growth", "kappa"):
        np.testing.assert_array_equal(whole.data[name], again.data[name])


@pytest.mark.parametrize(
    ("noise", "space", "options", "match"),
    [
        (UNEVEN, mf.Sphere(8), {}, "dimension 2"),
        (UNEVEN, mf.Zonal(2, 8), {}, "symmetric about an axis"),
        (stretched(1.0, 0.0), CIRCLE, {}, "positive sigma"),
        (stretched(1.1, 1.0, 0.9), mf.Sphere(8), {"symmetry": "octahedral"}, "reflections"),
    ],
)
def test_refusals(noise, space, options, match):
    with pytest.raises((ValueError, TypeError, mf.MeanfieldError), match=match):
        mf.branches(mf.Kuramoto(), space, (1.0, 2.0), noise=noise, **options)


def test_two_onsets_in_one_step_and_near_the_edge_of_the_range():
    """Stability is lost at the first of them; a branch that comes from the edge begins there."""
    noise = mf.noise.Anisotropic(np.diag([1.001, 0.999]))
    diagram = mf.branches(
        mf.Kuramoto(), mf.Circle(16), (1.98, 2.01), noise=noise, secondary=False, max_points=3
    )
    first, second = (special.value for special in diagram.special("bifurcation", 0))
    assert 1.99 < first < second < first + 1.1e-3
    ((low, high),) = [ends for number, *ends in diagram.stable_ranges() if number == 0]
    assert low == pytest.approx(1.98, rel=1e-9) and high == first
