"""Stationary states and branches of indexed densities: frequencies, classes, causal attention."""

import numpy as np
import pytest
from scipy.optimize import brentq, fsolve
from scipy.special import erfcx, ive

import meanfield as mf
from meanfield.bifurcation.families import basis_of, equation_of

CIRCLE = mf.Circle(12)
UNIFORM = lambda s, a: 1 + 0 * (a + s)  # noqa: E731
COUPLING = np.array([[1.0, 0.5, 0.2], [0.3, 1.0, 0.4], [0.1, 0.6, 0.9]])
SHEARED = mf.Attention(np.diag([1, 0.6]), np.eye(2), np.eye(2), 1.0)
CLASSES = CIRCLE.indexed(UNIFORM, mf.Classes([0.0, 1.0, 3.0]))


def normal(width, centre=0.0, count=12):
    return CIRCLE.indexed(UNIFORM, mf.NormalIndex(width, count, centre))


def kuramoto(kappa, factor=1.0):
    return mf.Transformer(2.0 * mf.Kuramoto(), kappa, frequency=mf.OfIndex(factor))


@pytest.fixture(scope="module")
def normal_frequencies():
    return mf.branches(kuramoto(1.0), normal(0.3), (1.0, 1.5), secondary=False)


@pytest.mark.long
def test_onset_of_normal_frequencies_with_noise():
    """1 = int g(omega)/kappa / (1/kappa^2 + omega^2) domega: by the rule, and nearly in full."""
    found = mf.branches(kuramoto(1.0), normal(0.3), (1.0, 1.2), secondary=False)
    index = normal(0.3).index

    def excess(kappa):
        return index.weights @ (1 / kappa / (1 / kappa**2 + index.nodes**2)) - 1

    rule = brentq(excess, 1.0, 1.5, xtol=1e-14)
    full = brentq(lambda k: np.sqrt(np.pi / 2) / 0.3 * erfcx(1 / (0.3 * k * 2**0.5)) - 1, 1, 1.5)
    (onset,) = found.special("bifurcation", 0)  # one for a perturbation and its turn
    assert onset.value == pytest.approx(rule, abs=1e-12) and onset.status == "converged"
    assert not found.warnings
    assert rule == pytest.approx(full, abs=1e-6)


@pytest.mark.long
def test_states_of_frequencies_are_ends_of_runs(normal_frequencies):
    (_, uniform), (_, state) = normal_frequencies.states_at(1.4)
    assert uniform.order_parameter == 0 and not uniform.stability(1).stable
    start = CIRCLE.indexed(lambda s, a: 1 + 0.5 * np.cos(a) + 0 * s, normal(0.3).index)
    run = mf.solve(kuramoto(1.4), start, (0, 90), rtol=1e-11)
    degree = run.final.space.degree
    found = mf.stationary(kuramoto(1.4), run.final)
    assert found.converged and found.stability(2).stable
    assert found.order_parameter == pytest.approx(state.order_parameter, abs=1e-12)
    assert abs(found.density.resample(degree).coefficients - run.final.coefficients).max() < 1e-9


@pytest.mark.long
def test_the_derivative_of_the_order_parameter(normal_frequencies):
    low, state, high = (normal_frequencies.states_at(k)[-1][1] for k in (1.3999, 1.4, 1.4001))
    difference = (high.order_parameter - low.order_parameter) / 2e-4
    assert state.derivative("kappa").order_parameter == pytest.approx(difference, rel=1e-6)


@pytest.mark.long
def test_a_mean_frequency_turns_the_state(normal_frequencies):
    """In the frame that turns with the mean frequency the law is that of centred frequencies."""
    start = CIRCLE.indexed(lambda s, a: 1 + 0.5 * np.cos(a) + 0 * s, normal(0.3, 0.7).index)
    run = mf.solve(kuramoto(1.4), start, (0, 60), rtol=1e-10)
    wave = mf.stationary(kuramoto(1.4), run.final)
    rest = normal_frequencies.states_at(1.4)[-1][1]
    assert wave.converged and wave.speed == pytest.approx(0.7, abs=1e-10)
    assert wave.order_parameter == pytest.approx(rest.order_parameter, abs=1e-10)


def test_onset_of_groups_is_the_eigenvalue_of_their_coupling():
    """Degree 1 grows like c rho/2 - 1/kappa, rho the largest eigenvalue of J diag(shares)."""
    model = mf.Transformer(mf.Kuramoto(), 1.0, coupling=COUPLING)
    found = mf.branches(model, CLASSES, (2.5, 4.0), secondary=False)
    rho = np.linalg.eigvals(COUPLING / 3).real.max()
    onset = found.special("bifurcation", 0)[0]
    assert onset.value == pytest.approx(2 / rho, abs=1e-11)
    assert [state.stable for _, state in found.states_at(3.6)] == [False, True]


@pytest.mark.long
def test_two_perturbations_of_order_0_that_become_neutral_at_once():
    """Degree 2 on S^2 has two functions that are even under all reflections."""
    flat = mf.Sphere(6).indexed(lambda s, x, y, z: 1 + 0 * (x + s), mf.Classes([0.0, 1.0]))
    J = np.array([[1.0, 0.5], [0.3, 0.8]])
    drift = mf.Interaction(np.polynomial.legendre.Legendre.basis(2), name="P_2")
    rho = np.linalg.eigvals(J / 2).real.max()
    onset = 1 / (drift.attraction(2, 3)[2] * rho)
    found = mf.branches(mf.Transformer(drift, 1.0, coupling=J), flat, (0.95 * onset,
                        1.03 * onset), secondary=False, max_points=3, max_step=0.3)  # fmt: skip
    (special,) = found.special("bifurcation", 0)
    assert special.value == pytest.approx(onset, rel=1e-11)
    first = found.data.kappa.values[[list(found.data.branch.values).index(i) for i in (1, 2)]]
    assert min(first) < onset < max(first)  # transcritical
    assert set(found.data.branch.values) == {0, 1, 2}  # rotated copies are not listed


@pytest.mark.long
def test_branches_in_the_width_of_the_frequencies():
    found = mf.branches(kuramoto(1.4), normal(0.3), vary={"frequency.factor": (1.0, 3.0)},
                        secondary=False)  # fmt: skip
    index = normal(0.3).index

    def excess(f):
        return index.weights @ (1 / 1.4 / (1 / 1.4**2 + (f * index.nodes) ** 2)) - 1

    onset = found.special("bifurcation", 0)[0]
    assert onset.value == pytest.approx(brentq(excess, 1, 3, xtol=1e-14), abs=1e-10)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("model", "start"),
    [
        (mf.Transformer(mf.SA(2.0), 4.0, causal=True),
         CIRCLE.indexed(lambda s, a: 1 + 0.5 * np.cos(a) + 0 * s, mf.Positions(order=6))),
        (mf.Transformer(mf.USA(1.0) + 0.2 * SHEARED, 4.0, coupling=COUPLING),
         CIRCLE.indexed(lambda s, a: 1 + 0.3 * np.cos(a) + 0 * s, CLASSES.index)),
        (mf.Transformer(mf.USA(1.0), 1.85, coupling=np.eye(2) + 1.0),
         mf.Sphere(8).indexed(lambda s, x, y, z: 1 + 0.3 * z + 0 * s, mf.Classes([0.0, 1.0]))),
    ],
    ids=["causal", "groups", "sphere"],
)  # fmt: skip
def test_runs_end_in_states(model, start):
    run = mf.solve(model, start, (0, 3000), rtol=1e-11, until="steady", steady_tolerance=1e-11)
    state = mf.stationary(model, run.final)
    degree = run.final.space.degree
    assert state.converged and state.stability(3).stable
    assert abs(state.density.resample(degree).coefficients - run.final.coefficients).max() < 1e-8


@pytest.mark.parametrize("kept", [None, (0,)], ids=["symmetric", "all"])
@pytest.mark.parametrize(
    ("model", "start"),
    [
        (kuramoto(2.0), normal(0.5, count=5)),
        (mf.Transformer(
            mf.SA(2.0) + 0.3 * mf.Field(lambda x: np.eye(2)[0] * np.ones_like(x)),
            2.0, coupling=COUPLING), CLASSES),
        (mf.Transformer(mf.SA(2.0), 2.0, causal=True),
         CIRCLE.indexed(UNIFORM, mf.Positions(order=3))),
    ],
    ids=["frequencies", "groups", "causal"],
)  # fmt: skip
def test_derivatives_are_those_of_differences(model, start, kept):
    """Of the residual and of left . block right, at states without rotations."""
    basis = basis_of([model], start.space)
    basis = basis.keeping(basis.symmetries.reflections if kept is None else kept)
    if kept and basis.rotations:
        basis = type(basis)(basis.space, basis.noise, type(basis.symmetries)((0,)))
    equation, even, rng, h = equation_of(model, basis), basis.even, np.random.default_rng(0), 1e-5
    m = np.zeros(len(basis.degrees))
    m[even.members] = 0.02 * rng.standard_normal(even.members.size) * (even.degrees < 5)
    mean = equation.mean(m, 2.0)
    jacobian, part = equation.jacobian(mean), basis.of_order(basis.orders - 1)
    left, right = rng.standard_normal((2, part.members.size))
    exact = equation.block_change(mean, m, part, left, right)

    def at(m):
        mean = equation.mean(m, 2.0)
        return m - mean.moments, left @ equation.block(mean, part) @ right

    for i in rng.choice(even.members, 12):
        change = np.where(np.arange(m.size) == i, h, 0.0)
        (r, b), (s, c) = at(m + change), at(m - change)
        np.testing.assert_allclose((r - s) / (2 * h), jacobian[:, i], atol=1e-8)
        assert (b - c) / (2 * h) == pytest.approx(exact[i], abs=1e-7)


@pytest.mark.long
def test_states_of_many_classes_come_back_from_their_file(tmp_path):
    """More than 16 entries, which files hold apart; trials of Newton's method become infinite."""
    many = CIRCLE.indexed(UNIFORM, mf.Classes(np.arange(20.0)))
    model = mf.Transformer(mf.USA(1.0), 1.0, coupling=np.ones((20, 20)))
    found = mf.stationary_states(model, many, starts=[many])
    loaded = mf.load(found.save(tmp_path / "states.nc"))
    assert loaded.model == model and loaded[0].density.space == found[0].density.space
    apart = loaded[0].density.coefficients - found[0].density.coefficients
    assert np.abs(apart).max() < 1e-15


def test_folds_of_groups_in_a_field_in_the_plane_of_two_parameters(tmp_path):
    """Group s feels c_s r + h, r = E b(kappa (c_s r + h)), b = I_1/I_0; folds where dr/dh = inf."""
    strengths, pull = np.array([1.3, 0.7]), mf.Field(lambda x: np.array([1.0, 0.0]) + 0 * x)
    model = mf.Transformer(mf.Kuramoto() + 0.05 * pull, 2.4, coupling=np.outer(strengths, [1, 1]))
    start = mf.Circle(8).indexed(UNIFORM, mf.Classes([0.0, 1.0]))
    ranges = {"kappa": (2.3, 2.4), "factors[1]": (0.005, 0.06)}
    found = mf.phase_diagram(model, start, vary=ranges, places=1, progress=False)

    def system(unknowns, kappa):
        r, h = unknowns
        x = kappa * (strengths * r - h)
        b = ive(1, x) / ive(0, x)
        return r - b.mean(), 1 - (kappa * strengths * (1 - b / x - b**2)).mean()

    assert not found.warnings
    for kappa in (2.33, 2.4):
        _, h = fsolve(system, (0.45, 0.03), (kappa,), xtol=1e-14)
        assert found.kappa("fold 1", kappa) == pytest.approx(h, abs=1e-11)
    assert mf.load(found.save(tmp_path / "plane.nc")).data.identical(found.data)


def test_a_state_of_groups_is_followed_through_two_folds():
    """Each state solves r = E b(kappa (c_s r + h)), b = I_1/I_0, on a curve h(r) like an S."""
    strengths, pull = np.array([1.3, 0.7]), mf.Field(lambda x: np.array([1.0, 0.0]) + 0 * x)
    drift, coupling = mf.Kuramoto() + 0.06 * pull, np.outer(strengths, [1, 1])
    model = mf.Transformer(drift, 2.4, coupling=coupling)
    aligned = lambda s, a: 1 + 0.9 * np.cos(a) + 0 * s  # noqa: E731
    start = mf.stationary(model, mf.Circle(16).indexed(aligned, mf.Classes([0.0, 1.0])))
    along = {"factors[1]": (-0.06, 0.06)}
    h, r = [], []
    for state in mf.follow(start, vary=along, decreasing=True):
        h.append(state.model.drift.factors[1])
        r.append(state.density.moment(1).real.mean())
        x = 2.4 * (strengths * r[-1] + h[-1])
        assert r[-1] == pytest.approx((ive(1, x) / ive(0, abs(x))).mean(), abs=1e-14)
    assert r[0] > 0.59 and r[-1] < -0.59 and np.all(np.diff(r) < 0)
    assert np.count_nonzero(np.diff(np.sign(np.diff(h)))) == 2


def test_refusals():
    model = mf.Transformer(mf.Kuramoto(), 2.0, reaction=0.3)
    with pytest.raises(mf.MeanfieldError, match="reaction"):
        mf.stationary(model, CLASSES)
    zonal = mf.Zonal(4, 8).indexed(lambda s, x: 1 + 0 * (s + x), mf.Classes([0.0, 1.0]))
    with pytest.raises(mf.MeanfieldError, match="axis"):
        mf.stationary(mf.Transformer(mf.Kuramoto(), 2.0, coupling=np.ones((2, 2))), zonal)


def test_too_fine_densities_on_the_sphere_are_refused_with_the_degree_that_fits(monkeypatch):
    """Tables of all harmonics at degree 96 need 20 GB, and killed the process."""
    monkeypatch.setattr("meanfield.bifurcation.indexed.available_memory", lambda: 10**9)
    model = mf.Transformer(2.0 * mf.Kuramoto(), 2.0)
    fine = mf.Sphere(96).indexed(lambda s, x, y, z: 1 + 0 * (s + x), mf.Classes([0.0, 1.0]))
    with pytest.raises(ValueError, match=r"GB .* degree \d+ fit") as refused:
        mf.stationary(model, fine)
    fits = int(str(refused.value).split("resample(")[1].split(")")[0])
    sizes = [2 * 8 * 3 * n * m + 3 * 8 * (2 * n) ** 2
             for l in (fits, fits + 1)
             for n, m in [(l * (l + 2), mf.Sphere(l).weights.size)]]  # fmt: skip
    assert sizes[0] <= 10**9 < sizes[1]
