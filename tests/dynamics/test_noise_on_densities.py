"""Densities under anisotropic and multiplicative noise, held against systems that scipy solves."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm

import meanfield as mf
from meanfield.app.configuration import parse_config, run_config
from meanfield.dynamics.density import DensityEvolution
from meanfield.models.noise import (
    Anisotropic,
    Isotropic,
    MultiplicativeIto,
    MultiplicativeStratonovich,
)
from meanfield.steppers import DormandPrince, HochbruckOstermann, Krogstad

SIGMA = np.array([[1.3, 0.15, -0.1], [0.15, 0.9, 0.05], [-0.1, 0.05, 0.8]])
CIRCLE, SPHERE = mf.Circle(32), mf.Sphere(15)
NOTHING = mf.Interaction.chebyshev([1.0])
ROUND = CIRCLE.density(lambda t: np.exp(np.cos(t - 0.4)))
SOLID = SPHERE.density(lambda x, y, z: np.exp(0.5 * z + 0.3 * x * y))


def scale(x):
    return 1 + 0.1 * x[..., 0] - 0.05 * x[..., -1] * x[..., 0]


def slope(x):
    return np.stack([0.1 - 0.05 * x[..., 1], -0.05 * x[..., 0]], axis=-1)  # on the circle


def kinds(d):
    return [Anisotropic(SIGMA[:d, :d]), MultiplicativeStratonovich(scale), MultiplicativeIto(scale)]


each_kind = pytest.mark.parametrize("which", range(3), ids=["anisotropic", "stratonovich", "ito"])
everywhere = pytest.mark.parametrize("start", [ROUND, SOLID], ids=["circle", "sphere"])


def solved(model, start, end=0.5, **options):
    options = {"rtol": 1e-11, "t_eval": [end]} | options
    run = mf.solve(model, start, (0, end), **options)
    assert run.success
    return run


def reference(model, start, end, degree):
    """A Galerkin system with the matrix of L* itself, on more modes, by scipy."""
    fine = start.resample(degree)
    matrix = model.noise.generator(fine.space)
    transport = DensityEvolution(with_noise(model), fine.space).nonlinear

    def velocity(_t, y):
        return matrix @ y / model.kappa + transport(y.view(complex)[None])[0].view(float)

    y = fine.coefficients.view(float)
    found = solve_ivp(velocity, (0, end), y, method="DOP853", rtol=1e-12, atol=1e-14)
    return mf.Density(fine.space, found.y[:, -1].copy().view(complex))


def with_noise(model, noise=None):
    return mf.Transformer(model.drift, model.kappa, noise=Isotropic() if noise is None else noise)


def difference(one, other):
    degree = max(one.space.degree, other.space.degree)
    return np.abs(one.resample(degree).coefficients - other.resample(degree).coefficients).max()


# Against other solvers -----------------------------------------------------------------------


@pytest.mark.repeats
@everywhere
@each_kind
def test_noise_alone_is_the_exponential_of_its_matrix(start, which):
    noise, space = kinds(start.space.dimension)[which], start.space
    model = mf.Transformer(NOTHING, 3.0, noise=noise)
    fixed = {"dt": 0.5, "min_degree": space.degree, "max_degree": space.degree, "rtol": 1e-4}
    run = solved(model, start, 1.5, **fixed)
    exact = expm(0.5 * noise.generator(space)) @ start.coefficients.view(float)
    assert np.abs(run.final.coefficients.view(float) - exact).max() < 2e-14


@pytest.mark.repeats
@everywhere
@each_kind
@pytest.mark.parametrize("drift", [mf.Kuramoto(), mf.SA(2.0)], ids=["kuramoto", "sa"])
def test_with_a_drift_it_is_the_solution_of_a_dense_system(start, which, drift):
    noise = kinds(start.space.dimension)[which]
    model = mf.Transformer(drift, 3.0, noise=noise)
    expected = reference(model, start, 0.5, 64 if start is ROUND else 24)
    assert difference(solved(model, start).final, expected) < 1e-10


@pytest.mark.repeats
@everywhere
def test_with_attention_too(start):
    d, rng = start.space.dimension, np.random.default_rng(4)
    Q, K, V = 0.5 * rng.standard_normal((3, d, d))
    model = mf.Transformer(mf.Attention(Q=Q, K=K, V=V, beta=1.0), 3.0, noise=kinds(d)[0])
    expected = reference(model, start, 0.2, 48 if d == 2 else 24)
    assert difference(solved(model, start, 0.2).final, expected) < 1e-10


@pytest.mark.parametrize("scheme", [Krogstad, HochbruckOstermann, DormandPrince], ids=repr)
def test_every_scheme_takes_it_and_gives_states_within_its_steps(scheme):
    model = mf.Transformer(mf.Kuramoto(), 2.0, noise=kinds(2)[1])
    run = mf.solve(model, ROUND, (0, 1), t_eval=[0.37, 1.0], scheme=scheme, rtol=1e-9)
    for t, state in zip(run.t, run, strict=True):
        assert difference(state, reference(model, ROUND, t, 48)) < 1e-8


@each_kind
def test_steps_are_not_bound_by_damping(which):
    """Thirty units of time of the fastest mode and more in one step: exact, and stable."""
    model = mf.Transformer(mf.Kuramoto(), 0.01, noise=kinds(2)[which])
    run = solved(model, ROUND, 2.0, rtol=1e-5, scheme=Krogstad, min_degree=64)
    stationary = solved(mf.Transformer(NOTHING, 0.01, noise=kinds(2)[which]), ROUND, 2.0, dt=2.0)
    assert run.stats["steps"] < 60
    assert difference(run.final, stationary.final) < 0.02  # the drift is a hundredth of the noise


# Laws ----------------------------------------------------------------------------------------


@everywhere
@each_kind
def test_mass_is_kept(start, which):
    model = mf.Transformer(mf.USA(3.0), 1.5, noise=kinds(start.space.dimension)[which])
    assert abs(solved(model, start, 1.0, rtol=1e-6).final.mass - 1) < 1e-13


@each_kind
def test_what_is_turned_with_its_noise_is_solved_alike(which):
    rotation = np.linalg.qr(np.random.default_rng(5).standard_normal((3, 3)))[0]
    rotation[:, 0] *= np.linalg.det(rotation)
    turned = [
        Anisotropic(rotation @ SIGMA @ rotation.T),
        MultiplicativeStratonovich(lambda x: scale(x @ rotation)),
        MultiplicativeIto(lambda x: scale(x @ rotation)),
    ][which]
    options = {"dt": 0.05, "scheme": Krogstad, "max_degree": 15, "min_degree": 15}
    options["rtol"] = 1e-4
    model = mf.Transformer(mf.SA(2.0), 3.0, noise=kinds(3)[which])
    here = solved(model, SOLID, **options).final.rotate(rotation)
    there = solved(with_noise(model, turned), SOLID.rotate(rotation), **options).final
    assert difference(here, there) < 1e-11


@pytest.mark.repeats
@everywhere
def test_noise_of_strength_one_is_isotropic(start):
    options = {"dt": 0.05, "scheme": Krogstad}
    model = mf.Transformer(mf.SA(2.0), 3.0)
    one = lambda x: np.ones(x.shape[:-1])  # noqa: E731
    expected = solved(model, start, **options).final
    for noise in (
        Anisotropic(np.eye(start.space.dimension)),
        MultiplicativeStratonovich(one),
        MultiplicativeIto(one),
    ):
        assert (
            difference(solved(with_noise(model, noise), start, **options).final, expected) < 1e-12
        )


def test_kuramoto_orders_along_the_first_axis_and_the_second_where_it_should():
    """Sigma = diag(1 + e, 1 - e), s^2 = 1 - e cos 2 theta: 1/kappa_c = <A cos/s> / <1/s>.

    A = artanh(sqrt(2e/(1+e)) cos theta)/sqrt(2e(1+e)) for order along the first axis; along the
    second e is negative and artanh becomes arctan. Growth rates about the stationary density,
    by the derivative of the transport, are 0 there.
    """
    e, circle = 0.3, mf.Circle(64)
    theta = 2 * np.pi * np.arange(512) / 512
    s, c = np.sqrt(1 - e * np.cos(2 * theta)), np.cos(theta)
    a = np.arctanh(np.sqrt(2 * e / (1 + e)) * c) / np.sqrt(2 * e * (1 + e))
    first = np.mean(1 / s) / np.mean(a * c / s)
    assert abs(first - 2.084202557) < 1e-9
    s, e = np.sqrt(1 + e * np.cos(2 * theta)), -e
    a = np.arctan(np.sqrt(-2 * e / (1 + e)) * c) / np.sqrt(-2 * e * (1 + e))
    second = np.mean(1 / s) / np.mean(a * c / s)
    assert abs(second - 1.785096547) < 1e-9
    noise = Anisotropic(np.diag([1.3, 0.7]))
    rates, basis = noise.on_densities(circle).eigenbasis
    unit = np.zeros((1, rates.size))
    unit[0, 0] = 1
    density = basis.out_of(unit)  # stationary; Kuramoto does not move it, as its mean is 0
    transport = DensityEvolution(mf.Transformer(mf.Kuramoto()), circle).nonlinear

    def slope(v):
        return transport(v.view(complex)).view(float)[0]

    columns = []
    for row in np.eye(rates.size):  # N is quadratic: central differences are exact
        columns.append((slope(density + row) - slope(density - row)) / 2)
    matrix, pull = noise.generator(circle), np.array(columns).T
    for kappa, parts in ((first, slice(0, None, 2)), (second, slice(1, None, 2))):
        block = (matrix / kappa + pull)[parts, parts]  # cosines, or sines
        assert np.abs(np.linalg.eigvals(block[1:, 1:])).min() < 1e-9


def test_a_run_ends_in_the_stationary_density():
    noise = kinds(2)[2]
    run = mf.solve(mf.Transformer(NOTHING, 0.5, noise=noise), ROUND, (0, 60), until="steady")
    assert run.status == "steady"
    expected = scale(run.final.space.points) ** -2.0
    expected /= run.final.space.weights @ expected
    np.testing.assert_allclose(run.final.values, expected, rtol=0, atol=1e-9)


@pytest.mark.repeats
@pytest.mark.parametrize("which", [0, 2], ids=["anisotropic", "ito"])
def test_tokens_agree(which):
    """Means of 10^5 tokens within 4.5 standard errors."""
    noise = MultiplicativeIto(scale, slope) if which else kinds(2)[0]
    model = mf.Transformer(mf.SA(2.0), 2.0, noise=noise)
    law = solved(model, ROUND, 0.6, rtol=1e-8).final
    tokens = mf.solve(model, ROUND.sample(100_000, rng=1), (0, 0.6), t_eval=[0.6], dt=0.1, rng=2)
    for f in (
        lambda x: x[..., 0],
        lambda x: x[..., 1],
        lambda x: x[..., 0] * x[..., 1],
        lambda x: x[..., 0] ** 2,
    ):
        values = f(tokens.final.x)
        error = values.std() / np.sqrt(values.size)
        assert abs(values.mean() - law.expect(f)) < 4.5 * error


# As any density ------------------------------------------------------------------------------


def test_members_of_an_ensemble_share_the_eigenvectors_and_go_their_own_ways():
    kappas, noise = np.array([0.5, 3.0, np.inf]), kinds(2)[1]
    options = {"dt": 0.02, "scheme": Krogstad, "min_degree": 64}
    together = solved(mf.Transformer(mf.SA(1.0), kappas, noise=noise), ROUND, 0.4, **options).final
    for member, kappa in enumerate(kappas[:2]):
        alone = solved(mf.Transformer(mf.SA(1.0), kappa, noise=noise), ROUND, 0.4, **options).final
        assert difference(together[member], alone) < 1e-14
    free = solved(mf.Transformer(mf.SA(1.0)), ROUND, 0.4, **options).final
    assert difference(together[2], free) < 1e-12


@pytest.mark.bits
@pytest.mark.parametrize("scheme", [None, DormandPrince], ids=["chosen", "explicit"])
def test_a_broken_run_is_resumed_to_the_last_bit(tmp_path, scheme):
    model = mf.Transformer(mf.SA(4.0), 12.0, noise=kinds(2)[0])
    options = {"rtol": 1e-12, "scheme": scheme}
    whole = mf.solve(model, ROUND, (0, 2), **options)
    assert whole.stats["degree_changes"] > 0
    options["checkpoint"] = tmp_path / "run"
    for most in (5, 20, 60):
        part = mf.solve(model, ROUND, (0, 2), max_steps=most, resume=most > 5, **options)
        assert part.status == "max_steps"
    parts = mf.solve(model, ROUND, (0, 2), resume=True, **options)
    for one, other in zip(whole, parts, strict=True):
        assert one.coefficients.tobytes() == other.coefficients.tobytes()


def test_what_is_measured():
    """There is no free energy; entropy, mass and moments are those of the density."""
    model = mf.Transformer(mf.Kuramoto(), 2.0, noise=kinds(2)[0])
    found = solved(model, ROUND).observables.isel(t=-1)
    assert np.isnan(found["free_energy"]) and np.isnan(found["dissipation"])
    plain = solved(mf.Transformer(mf.Kuramoto(), 2.0), ROUND).observables.isel(t=-1)
    assert np.isfinite(plain["free_energy"])
    assert np.isfinite(found["entropy"]) and np.isfinite(found["interaction_energy"])


def test_a_configuration_has_it():
    config = parse_config(
        {
            "model": {
                "drift": "Kuramoto",
                "kappa": 3.0,
                "noise": {"kind": "Anisotropic", "sigma": [[1.3, 0.15], [0.15, 0.9]]},
            },
            "space": {"kind": "Circle", "degree": 32},
            "initial": {"kind": "VonMises", "mean": 0.4, "concentration": 1.0},
            "solve": {"t_span": [0.0, 0.5], "t_eval": [0.5], "rtol": 1e-11},
        }
    )
    model = mf.Transformer(mf.Kuramoto(), 3.0, noise=kinds(2)[0])
    start = CIRCLE.von_mises(0.4, 1.0)
    assert difference(run_config(config).final, solved(model, start).final) == 0
