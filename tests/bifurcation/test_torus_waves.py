"""Stationary states and branches on the torus."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf
from meanfield.bifurcation.bases import Basis
from meanfield.bifurcation.equation import MomentEquation
from meanfield.bifurcation.stability import ITERATED_FROM, growth_rates, leading_of, neutral_among
from meanfield.bifurcation.torus_waves import TorusWaves, lattice_of

SYMMETRIES = ("axisymmetric", "square", "even")


def order(kappa):
    """r > 0 with r = I_1(kappa r)/I_0(kappa r)."""
    return brentq(lambda r: iv(1, kappa * r) / iv(0, kappa * r) - r, 0.01, 1 - 1e-9)


@pytest.mark.repeats
@pytest.mark.parametrize("circles", [1, 2, 3])
@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_functions_of_each_order_are_orthonormal_eigenfunctions(circles, symmetry):
    basis = TorusWaves(mf.Torus(3, circles), symmetry)
    parts = [basis.of_order(order) for order in range(basis.orders)]
    for part in parts:
        gram = (part.values * part.weights) @ part.values.T
        slopes = np.einsum("cnm,ckm->nk", part.gradients * part.weights, part.gradients)
        assert gram == pytest.approx(np.eye(len(gram)), abs=1e-12)
        assert slopes == pytest.approx(np.diag(part.eigenvalues), abs=1e-11)
    if symmetry != "square":  # else one of several equal orders stands for all
        assert sum(len(part.degrees) for part in parts) == 7**circles - 1


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_moments_are_those_of_a_translated_density(symmetry):
    basis = TorusWaves(mf.Torus(3), symmetry)
    m = 0.02 * np.random.default_rng(1).standard_normal(len(basis.degrees))
    found, _ = basis.moments(basis.density(m, [0.4, 2.0]))
    assert min(np.abs(found - one).max() for one in (m, *basis.equivalents(m))) < 1e-15
    coarse = TorusWaves(mf.Torus(2), symmetry)
    assert np.array_equal(coarse.degrees, basis.degrees[: len(coarse.degrees)])
    assert np.array_equal(coarse.waves, basis.waves[: len(coarse.degrees)])


def test_equivalent_states_are_translated_by_half_periods_and_exchanged():
    basis = TorusWaves(mf.Torus(4), "axisymmetric")
    m = np.zeros(len(basis.degrees))
    number = {tuple(wave): i for i, wave in enumerate(basis.waves.tolist())}
    m[number[2, 0]] = 0.3  # a stripe of period pi
    found = [one[[number[2, 0], number[0, 2]]].tolist() for one in [m, *basis.equivalents(m)]]
    assert sorted(found) == [[-0.3, 0], [0, -0.3], [0, 0.3], [0.3, 0]]
    assert basis.mirrored(m)


@pytest.mark.parametrize(
    ("waves", "volume"),
    [([[2, 0], [0, 3]], 6), ([[1, 1], [1, -1]], 2), ([[4, 2], [6, 4]], 4), ([[2, 4], [3, 6]], 0)],
)
def test_lattices_of_waves(waves, volume):
    basis = lattice_of(np.array(waves))
    square = basis if len(basis) == 2 else np.zeros((2, 2))
    assert abs(np.linalg.det(square)) == pytest.approx(volume)
    assert np.linalg.matrix_rank(np.vstack([basis, waves])) == len(basis)


@pytest.mark.parametrize("drift", [mf.USA(2.0), mf.SA(2.0)], ids=repr)
def test_one_angle_is_the_circle(drift):
    model = mf.Transformer(drift, kappa=3.0)
    law = mf.Circle(32).density(lambda x: np.exp(np.cos(x - 0.3)))
    here = mf.stationary(model, law)
    there = mf.stationary(model, mf.Torus(32, 1).density(lambda x: np.exp(np.cos(x - 0.3))))
    modes = min(here.density.coefficients.size, there.density.coefficients.size)
    difference = (here.density.coefficients - there.density.coefficients)[:modes]
    assert np.abs(difference).max() < 1e-12
    assert np.abs(here.density.coefficients[1:]).max() > 0.1
    assert here.stability(4).eigenvalues == pytest.approx(there.stability(4).eigenvalues, abs=1e-11)


@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_states_of_a_sum_of_cosines_are_products(symmetry):
    model = mf.Transformer(mf.Kuramoto(), kappa=2.2)
    state = mf.stationary(model, mf.Torus(12).von_mises([0.3, 1.0], 0.9), symmetry=symmetry)
    assert state.converged
    assert state.order_parameter == pytest.approx(order(2.2), abs=1e-12)
    a = 2.2 * order(2.2)
    expected = state.density.space.von_mises([0.3, 1.0], a)
    assert np.abs(state.density.coefficients - expected.coefficients).max() < 1e-12
    if symmetry == "square":
        assert state.stable
    else:
        stability = state.stability(3)
        assert stability.neutral.tolist() == [True, True, False]
        assert np.abs(stability.eigenvalues[:2]).max() < 1e-11
        assert stability.stable


@pytest.mark.parametrize(("symmetry", "shapes"), [("axisymmetric", 2), ("square", 1)])
def test_stripes_and_lattices_are_found_once(symmetry, shapes):
    diagram = mf.branches(
        mf.Kuramoto(), mf.Torus(8), kappa=(1.9, 2.2), symmetry=symmetry, stability=False,
        secondary=False,
    )  # fmt: skip
    found = sorted(state.order_parameter for _, state in diagram.states_at(2.15))
    expected = order(2.15) * np.sqrt([0.5, 1][-shapes:])
    assert found == pytest.approx([0, *expected], abs=1e-10)
    begun = {special.value for special in diagram.special("bifurcation") if special.branch == 0}
    assert begun == {2.0}


def test_diagonal_stripes_are_even_about_a_point():
    wave = lambda z, w: np.cos(z + w)  # noqa: E731
    model = mf.Transformer(mf.PeriodicKernel(wave), kappa=3.0)
    guess = mf.Torus(12).density(lambda z, w: np.exp(wave(z, w) + 0.3 * np.sin(z + w)))
    with pytest.raises(mf.MeanfieldError, match='take symmetry="even"'):
        mf.stationary(model, mf.Torus(12).von_mises([0, 0], 1.0))
    state = mf.stationary(model, guess, symmetry="even")
    r = order(3.0)
    c = state.density.coefficients[state.density.space.places(np.array([[1, 1]]))]
    assert np.abs(c) == pytest.approx(r, abs=1e-12)
    assert state.free_energy < 0


def test_growth_rates_of_the_uniform_state():
    beta, kappa = 1.0, 3.0
    state = mf.stationary(mf.Transformer(mf.USA(beta), kappa=kappa), mf.Torus(8).uniform())
    products = [iv(1, beta) * iv(0, beta), iv(1, beta) ** 2]
    expected = [q * (w / beta - 1 / kappa) for q, w in zip((1, 2), products, strict=True)]
    values = state.stability(8).eigenvalues
    assert values == pytest.approx(sorted([expected[0]] * 4 + [expected[1]] * 4)[::-1], abs=1e-12)


@pytest.mark.repeats
@pytest.mark.parametrize("symmetry", SYMMETRIES)
def test_order_parameters_are_those_of_runs_and_have_their_derivatives(symmetry):
    space = mf.Torus(12)

    def state(kappa):
        model = mf.Transformer(mf.Kuramoto(), kappa=kappa)
        return mf.stationary(model, space.von_mises([0.3, 1.0], 0.9), symmetry=symmetry)

    run = mf.solve(state(2.2).model, state(2.2).density, (0.0, 0.1))
    order = run.observables["order_parameter"].values
    assert state(2.2).order_parameter == pytest.approx(order, abs=1e-12)
    difference = (state(2.2001).order_parameter - state(2.1999).order_parameter) / 2e-4
    assert state(2.2).derivative("kappa").order_parameter == pytest.approx(difference, rel=1e-6)


def test_what_has_no_stationary_equation_is_refused():
    space = mf.Torus(8)
    uneven = mf.PeriodicKernel(lambda z, w: np.cos(z) + np.sin(w))
    with pytest.raises(mf.MeanfieldError, match="is not even"):
        mf.stationary(mf.Transformer(uneven, kappa=3.0), space.von_mises([0, 0], 0.3))
    with pytest.raises(ValueError, match="'axisymmetric' or 'square' or 'even'"):
        mf.branches(mf.USA(1.0), space, kappa=(1, 2), symmetry="D4")


@pytest.mark.repeats
@pytest.mark.parametrize("circles", [1, 2, 3])
@pytest.mark.parametrize("symmetry", SYMMETRIES)
@pytest.mark.parametrize("drift", [mf.USA(1.0), mf.SA(1.3)], ids=repr)
def test_sums_over_waves_are_sums_over_nodes(circles, symmetry, drift):
    basis = TorusWaves(mf.Torus((8, 5, 3)[circles - 1], circles), symmetry)
    equation = MomentEquation(drift, basis)
    m = np.random.default_rng(2).standard_normal(len(basis.degrees)) / (4 + basis.eigenvalues)
    m *= 0.1
    mean = equation.mean(m, 2.0)
    masses, few = mean.weights * mean.gain, np.array([0, 3])
    assert basis.synthesised(m) == pytest.approx(m @ basis.legendre, abs=1e-13)
    assert basis.analysed(masses) == pytest.approx(basis.legendre @ masses, abs=1e-14)
    gradient = np.tensordot(m, basis.gradients, (0, 1))
    assert basis.gradient_of(m) == pytest.approx(gradient, abs=1e-13)
    flow = mean.gain * basis.gradient_of(equation.strengths * m / basis.sizes)
    for order in range(basis.orders):
        part = basis.of_order(order)
        gram = (part.legendre * masses) @ part.legendre.T
        assert part.pairings(masses) == pytest.approx(gram, abs=1e-14)
        assert part.pairings(masses, few) == pytest.approx(gram[:, few], abs=1e-14)
        flows = part.weights * flow, equation.ratio * masses * flow
        given = *flows, masses, equation.multipliers(part)
        assert part.transport(*given) == pytest.approx(Basis.transport(part, *given), abs=1e-12)


def test_leading_rates_are_those_of_the_whole_spectrum():
    model = mf.Transformer(mf.Kuramoto(), kappa=2.5)  # with double eigenvalues
    start = mf.Torus(18).density(lambda x, y: np.exp(np.cos(x) + np.cos(y)))
    state = mf.stationary(model, start)
    basis = TorusWaves(mf.Torus(18), "axisymmetric")
    equation, (m, _) = MomentEquation(mf.Kuramoto(), basis), basis.moments(state.density)
    for order in range(basis.orders):
        part = basis.of_order(order)
        matrix = equation.linearised(m, 2.5, part)
        assert len(matrix) >= ITERATED_FROM
        found, modes = leading_of(matrix, 0.5, 1 + part.eigenvalues)
        every = np.sort(np.linalg.eigvals(matrix).real)[::-1]
        assert found == pytest.approx(every[: len(found)], abs=1e-10)
        assert matrix @ modes == pytest.approx(modes * found, abs=1e-9)
        assert np.linalg.norm(modes, axis=0) == pytest.approx(1.0)
        assert growth_rates(equation, m, 2.5, part)[0] == pytest.approx(
            every[part.rotation_count(m)]
        )
        assert leading_of(matrix, every[0] - 0.1, 1 + part.eigenvalues) is None  # one is larger
    assert leading_of(np.diag(np.arange(1.0, 301.0)), 301.0, np.arange(1.0, 301.0)) is None


def kernel(n):
    """Attraction with cos(n z) of one angle."""
    return mf.PeriodicKernel(lambda z: np.cos(n * z), circles=1)


GROWING = mf.PeriodicKernel(lambda x, y: np.cos(x) + np.cos(y) + 0.42 * np.cos(12 * x))


@pytest.mark.parametrize(
    ("drift", "kappa", "harmonic", "size", "space"),
    [
        (mf.SA(1.0), 2.8, 1, 1.0, mf.Torus(18)),
        (kernel(3), 4.0, 3, 2.0, mf.Torus(96, 1)),
        (GROWING, 2.6, 1, 1.0, mf.Torus(18)),  # waves of degree 12 grow, which low degrees lack
        # Waves are coupled to those n degrees away: truncations without any of these agree.
        (kernel(40), 2.5, 40, 1.0, mf.Torus(450, 1)),
        (kernel(24), 2.002, 24, 0.1, mf.Torus(200, 1)),
        (mf.USA(0.5) + mf.SA(0.5), 1.3, 1, 1.6, mf.Torus(24)),  # not by moments
    ],
)
def test_growth_rates_by_few_functions_are_those_by_all(drift, kappa, harmonic, size, space):
    def law(*angles):
        return np.exp(size * sum(np.cos(harmonic * x) for x in angles))

    start = space.density(law)
    state = mf.stationary(mf.Transformer(drift, kappa=kappa), start)
    equation, m = state.equation, state.legendre_moments
    assert np.abs(m).max() > 0.02
    for order in range(equation.basis.orders):
        part = equation.basis.of_order(order)
        found = growth_rates(equation, m, kappa, part)
        matrix = equation.linearised(m, kappa, part)
        whole = np.linalg.eigvals(matrix)
        kept = np.sort(np.delete(whole, neutral_among(whole, part, m)).real)[::-1]
        assert found[:5] == pytest.approx(kept[:5], abs=1e-9)
        coarse = next(equation.basis.coarser(part, m, np.zeros(len(part.degrees), dtype=bool)))
        chosen = np.ix_(*2 * (part.highest <= coarse.degree,))
        assert equation.linearised(m, kappa, coarse) == pytest.approx(matrix[chosen], abs=1e-10)


@pytest.mark.long  # 15 s
def test_transitions_under_a_sum_kernel_are_those_of_the_circle():
    """W(x - y) = sum_i cos(x_i - y_i) + m cos 2 (x_i - y_i): a stripe is a state of the circle."""

    def on_circle(m):
        return mf.Transformer(mf.Interaction(lambda t: t + m * (2 * t**2 - 1)))

    def on_torus(m):
        def kernel(x, y):
            return np.cos(x) + np.cos(y) + m * (np.cos(2 * x) + np.cos(2 * y))

        return mf.Transformer(mf.PeriodicKernel(kernel))

    asked = {"degrees": (1,), "progress": False}
    one = mf.phase_diagram(on_circle, mf.Circle(8), (0.45, 0.62), **asked)
    two = mf.phase_diagram(on_torus, mf.Torus(8), (0.45, 0.62), **asked)
    for found in (one, two):
        (corner,) = found.tricritical
        assert corner.beta == pytest.approx(0.5, abs=1e-10)
        assert found.transition(0.48).order == "continuous"
    one, two = one.transition(0.6), two.transition(0.6)
    assert two.order == one.order == "discontinuous"
    assert two.kappa == pytest.approx(one.kappa, rel=1e-10)
    assert two.jump == pytest.approx(one.jump, abs=1e-9)
    assert two.hysteresis == pytest.approx(one.hysteresis, rel=1e-10)
