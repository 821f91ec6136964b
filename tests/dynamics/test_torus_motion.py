"""Densities and tokens on the torus in time."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.dynamics import DensityMotion

DRIFTS = [
    mf.USA(1.2),
    mf.SA(1.2),
    mf.SA(4.0),
    mf.Kuramoto(),
    mf.PeriodicKernel(lambda z, w: 0.6 * np.cos(z + 0.4) + 0.3 * np.sin(w - z)),
    mf.USA(1.0) + mf.Potential(lambda x: x[..., 0] * x[..., 3]),
    mf.PairKernel(lambda x, y: np.exp(0.5 * x[..., :1] * y[..., 3:]) * y[..., ::-1]),
]


def quadrature(torus, mu, points):
    """Tokens at a grid of points, with the masses of a density."""
    axis = 2 * np.pi * np.arange(points) / points
    angles = np.stack([x.ravel() for x in np.meshgrid(axis, axis, indexing="ij")], axis=1)
    masses = mu.at(torus.embed(angles))
    return mf.Tokens.on_torus(angles, masses / masses.sum())


@pytest.mark.parametrize("drift", DRIFTS, ids=repr)
def test_tokens_at_quadrature_nodes_move_as_the_density_does(drift):
    torus = mf.Torus(32)
    mu = torus.von_mises([0.3, 1.0], 0.5)
    span = {"t_span": (0, 0.3), "t_eval": [0.3], "rtol": 1e-9}
    run = mf.solve(mf.Transformer(drift), mu, **span)
    path = mf.solve(mf.Transformer(drift), quadrature(torus, mu, 24), **span)
    for k in (1, 2):
        np.testing.assert_allclose(path.final.moment(k), run.final.moment(k), rtol=0, atol=1e-9)
    assert run.final.mass == pytest.approx(1, abs=1e-13)


# Characteristics -----------------------------------------------------------------------------


@pytest.mark.parametrize("drift", DRIFTS[:2] + DRIFTS[3:6], ids=repr)
def test_characteristics_are_the_density_and_tokens(drift):
    torus = mf.Torus(16)
    mu = torus.von_mises([0.3, 1.0], 0.5)
    span = {"t_span": (0, 0.3), "t_eval": [0.3], "rtol": 1e-10}
    nodes = mf.solve(mf.Transformer(drift), mf.Characteristics(mu, nodes=1024), **span)
    assert nodes.success and len(nodes.final) == 32**2
    density = mf.solve(mf.Transformer(drift), mu, **span)
    tokens = mf.solve(mf.Transformer(drift), quadrature(torus, mu, 32), **span)
    expected = density.final.resample(4).coefficients
    np.testing.assert_allclose(nodes.final.coefficients(4), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(nodes.final.points, tokens.final.x, rtol=0, atol=1e-9)
    found, of_density = nodes.observables.isel(t=-1), density.observables.isel(t=-1)
    for name in ("order_parameter", "interaction_energy", "dissipation", "free_energy"):
        assert float(found[name]) == pytest.approx(float(of_density[name]), rel=1e-9, nan_ok=True)


def test_clusters_and_distances_of_characteristics_are_those_of_the_torus():
    """Nodes are drawn to the nearer of two points, one of which is at the seam of an angle."""
    torus, ends = mf.Torus(12), np.array([[0.5, 2 * np.pi - 0.02], [3.5, 2.0]])
    start = mf.Characteristics(torus.von_mises([0.3, 1.0], 0.4), nodes=1024)
    gaps = (start.coordinates - ends[:, None] + np.pi) % (2 * np.pi) - np.pi
    nearest = (gaps**2).sum(axis=2).argmin(axis=0)
    moved = start.moved(ends[nearest] + 0.01 * gaps[nearest, np.arange(len(start))])
    clusters = moved.clusters(radius=0.3)
    masses = [start.masses[nearest == i].sum() for i in (0, 1)]
    order = np.argsort(masses)[::-1]
    assert [c.mass for c in clusters] == pytest.approx([masses[i] for i in order], rel=1e-12)
    for cluster, i in zip(clusters, order, strict=True):
        np.testing.assert_allclose(cluster.point, torus.embed(ends[i]), rtol=0, atol=0.03)
    one = mf.Characteristics(mf.Torus(24).von_mises([3.0, -2.0], 5.0))
    angles = np.arctan2(one.mean_direction[1::2], one.mean_direction[::2])
    np.testing.assert_allclose(angles, [3.0, -2.0], atol=1e-12)
    gaps = (one.coordinates - [3.0, -2.0] + np.pi) % (2 * np.pi) - np.pi
    expected = np.sqrt(one.masses @ (gaps**2).sum(axis=1))
    assert one.w2_to_dirac() == pytest.approx(expected, rel=1e-12)


@pytest.mark.long
def test_characteristics_are_saved_and_resumed_bit_by_bit(tmp_path):
    start = mf.Characteristics(mf.Torus(8).von_mises([0.3, 1.0], 0.4), nodes=900)
    model, path = mf.Transformer(mf.SA(1.5)), tmp_path / "kept.npz"
    run = mf.solve(model, start, (0, 0.5))
    mf.solve(model, start, (0, 0.5), checkpoint=path, max_steps=2)
    resumed = mf.solve(model, start, (0, 0.5), checkpoint=path, resume=True)
    np.testing.assert_array_equal(resumed.final.coordinates, run.final.coordinates)
    run.save(tmp_path / "run.nc")
    again = mf.load(tmp_path / "run.nc").final
    np.testing.assert_array_equal(again.coordinates, run.final.coordinates)
    assert again.space == run.final.space and "Torus" in repr(again)


@pytest.mark.parametrize(
    ("parts", "options", "message"),
    [
        ({"reaction": 0.5}, {}, "move without reaction"),
        ({"normalisation": mf.SqrtScaling()}, {}, "move without normalisation"),
        ({}, {"tangents": ["beta"]}, "Take the Density"),
    ],
    ids=["reaction", "normalisation", "tangents"],
)
def test_characteristics_on_the_torus_refuse(parts, options, message):
    start = mf.Characteristics(mf.Torus(8).von_mises([0.3, 1.0], 0.4), nodes=400)
    with pytest.raises(mf.MeanfieldError, match=message):
        mf.solve(mf.Transformer(mf.USA(1.0), **parts), start, (0, 0.1), **options)


def test_nodes_that_do_not_resolve_the_interaction_are_refused():
    start = mf.Characteristics(mf.Torus(8).von_mises([0.3, 1.0], 0.4), nodes=400)
    with pytest.raises(ValueError, match="do not resolve this interaction"):
        mf.solve(mf.Transformer(mf.USA(30.0)), start, (0, 0.1))


@pytest.mark.parametrize("drift", DRIFTS[:2] + DRIFTS[3:5], ids=repr)
def test_growth_rates_of_the_uniform_state(drift):
    """|k|^2 (W_k / Z_0 - 1/kappa), with the imaginary part of a kernel that is not even."""
    torus, kappa = mf.Torus(6), 3.0
    tables = torus.attraction(drift), torus.normaliser(drift)
    expected = -torus.laplacian * (tables[0] - 1 / kappa)
    for place in (1, 7, 20, 60):
        c = torus.uniform().coefficients.copy()
        c[place] = 1e-6
        motion = DensityMotion(mf.Transformer(drift, kappa=kappa), mf.Density(torus, c))
        rate = motion.velocity(c)[place] / 1e-6
        assert rate == pytest.approx(expected[place], rel=1e-7, abs=1e-9)


def test_products_stay_products_under_a_sum_of_kernels():
    circle, torus = mf.Circle(16), mf.Torus(16)
    factors = [circle.von_mises(0.3, 0.6), circle.density(lambda x: 1 + 0.5 * np.cos(x))]
    drift = mf.PeriodicKernel(lambda z, w: np.cos(z) + 0.7 * np.cos(2 * w))
    options = {"t_span": (0, 0.5), "t_eval": [0.5], "rtol": 1e-11, "min_degree": 16}
    run = mf.solve(mf.Transformer(drift, kappa=3.0), torus.product(factors), **options)
    apart = [
        mf.solve(mf.Transformer(mf.CosineSeries(series), kappa=3.0), mu, **options).final
        for series, mu in zip(([0, 1.0], [0, 0, 0.7]), factors, strict=True)
    ]
    expected = run.final.space.product(apart)
    np.testing.assert_allclose(run.final.coefficients, expected.coefficients, rtol=0, atol=1e-11)


@pytest.mark.parametrize("drift", [mf.USA(1.5), mf.SA(1.5), mf.Kuramoto()], ids=repr)
def test_a_torus_of_one_angle_follows_the_circle(drift):
    start = [
        space.von_mises(mean, 0.8)
        for space, mean in ((mf.Circle(32), 0.2), (mf.Torus(32, 1), [0.2]))
    ]
    fixed = {"t_span": (0, 0.5), "dt": 0.05, "min_degree": 32, "max_degree": 32}
    finals = [mf.solve(mf.Transformer(drift, kappa=2.0), mu, **fixed).final for mu in start]
    np.testing.assert_allclose(finals[1].coefficients, finals[0].coefficients, rtol=0, atol=1e-13)


def test_the_free_energy_falls_at_the_rate_of_its_dissipation():
    model, mu = mf.Transformer(mf.USA(1.0), kappa=3.0), mf.Torus(16).von_mises([0.3, 1.0], 0.7)
    times = np.linspace(0, 0.4, 41)
    observables = mf.solve(model, mu, (0, 0.4), t_eval=times, rtol=1e-10).observables
    energy, loss = observables["free_energy"].values, observables["dissipation"].values
    lost = ((loss[1:] + loss[:-1]) / 2 * np.diff(times)).sum()
    assert energy[0] - energy[-1] == pytest.approx(lost, rel=1e-4)  # the trapezoidal rule


def second(x):
    return x[:, 0] * x[:, 3]


@pytest.mark.parametrize("drift", [mf.USA(1.0), mf.SA(1.0)], ids=repr)
def test_tangents_and_gradients_are_differences(drift):
    """Fixed steps: the derivative of the discrete map, by central differences of order 2."""
    torus = mf.Torus(12)
    start, towards = torus.von_mises([0.3, 1.0], 0.4), torus.von_mises([1.0, 0.0], 0.3)
    options = {"t_span": (0, 0.4), "t_eval": [0.4], "dt": 0.05, "rtol": 1e-4}
    options |= {"min_degree": 12, "max_degree": 12}

    def value(by_beta=0.0, by_kappa=0.0, moved=0.0):
        model = mf.Transformer(drift.replace(beta=1.0 + by_beta), kappa=3.0 + by_kappa)
        mixed = start.coefficients + moved * (towards.coefficients - start.coefficients)
        return mf.solve(model, mf.Density(torus, mixed), **options).final.expect(second)

    model, h = mf.Transformer(drift, kappa=3.0), 1e-4
    run = mf.solve(model, start, tangents=["beta", "kappa", towards], **options)
    found = [run.tangents[name][-1].expect(second) for name in run.tangents]
    steps = np.eye(3) * h
    expected = [(value(*step) - value(*-step)) / (2 * h) for step in steps]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)
    gradient = mf.gradient(second, run)
    direction = mf.Variation(torus, towards.coefficients - start.coefficients)
    backwards = [*gradient.parameters.values(), gradient.initial.paired(direction)]
    np.testing.assert_allclose(backwards, found, rtol=0, atol=1e-13)


def test_the_gradient_under_a_kernel_that_is_not_even_is_the_transpose():
    torus, model = mf.Torus(12), mf.Transformer(DRIFTS[4], kappa=3.0)
    start, towards = torus.von_mises([0.3, 1.0], 0.4), torus.von_mises([1.0, 0.0], 0.3)
    run = mf.solve(model, start, (0, 0.4), t_eval=[0.4], tangents=["kappa", towards])
    gradient = mf.gradient(second, run)
    direction = mf.Variation(torus, towards.coefficients - start.coefficients)
    forwards = [run.tangents[name][-1].expect(second) for name in run.tangents]
    backwards = [gradient.parameters["kappa"], gradient.initial.paired(direction)]
    np.testing.assert_allclose(backwards, forwards, rtol=0, atol=1e-12)


def test_a_reaction_and_a_field_of_points():
    """d mu/dt = Lap mu/kappa + alpha mu (Phi - int Phi dmu) - div(mu (v + P f)), on the grid."""
    torus, kappa, alpha = mf.Torus(12), 3.0, 0.4
    mu = torus.von_mises([0.3, 1.0], 0.5)
    field = mf.Field(
        lambda x: np.stack([0 * x[..., 0], x[..., 2], 0 * x[..., 0], 0.3 + 0 * x[..., 0]], -1)
    )
    rate = DensityMotion(mf.Transformer(mf.USA(1.0), kappa=kappa, reaction=alpha), mu).velocity(
        mu.coefficients
    )
    phi = torus.to_values(torus.interaction(mf.USA(1.0)) * mu.coefficients)
    growth = alpha * mu.values * (phi - (mu.values * phi) @ torus.weights)
    plain = DensityMotion(mf.Transformer(mf.USA(1.0), kappa=kappa), mu).velocity(mu.coefficients)
    expected = plain + torus.to_coefficients(growth)
    np.testing.assert_allclose(rate, expected, rtol=0, atol=1e-9)
    rate = DensityMotion(mf.Transformer(field, kappa=kappa), mu).velocity(mu.coefficients)
    a, b = torus.arguments.values()
    along = np.stack([np.cos(a) * np.cos(b), 0.3 * np.cos(b)])  # <f, e_1> and <f, e_2>
    expected = torus.laplacian * mu.coefficients / kappa + torus.minus_divergence(mu.values * along)
    np.testing.assert_allclose(rate, expected, rtol=0, atol=1e-9)


def test_indexed_densities_that_are_equal_move_as_one():
    torus, model = mf.Torus(12), mf.Transformer(mf.SA(1.0), kappa=3.0)
    mu = torus.density(lambda a, b: np.exp(0.4 * np.cos(a - b)))
    both = torus.indexed(lambda s, a, b: np.exp(0.4 * np.cos(a - b)) + 0 * s)
    fixed = {"t_span": (0, 0.2), "t_eval": [0.2], "dt": 0.02}
    run, other = mf.solve(model, mu, **fixed), mf.solve(model, both, **fixed)
    final = other.final.coefficients.reshape(len(other.final.index), -1)
    degree = max(run.final.space.degree, other.final.space.slice_space.degree)
    fine = other.final.space.slice_space.resample(final, degree)
    expected = run.final.resample(degree).coefficients
    np.testing.assert_allclose(fine, np.broadcast_to(expected, fine.shape), rtol=0, atol=1e-12)


# Files and checkpoints -----------------------------------------------------------------------


def test_results_are_saved_and_resumed_bit_by_bit(tmp_path):
    model, mu = mf.Transformer(mf.SA(1.5), kappa=3.0), mf.Torus(8).von_mises([0.3, 1.0], 0.4)
    run = mf.solve(model, mu, (0, 0.5))
    run.save(tmp_path / "run.nc")
    again = mf.load(tmp_path / "run.nc")
    assert again.final.space == run.final.space
    np.testing.assert_array_equal(again.final.coefficients, run.final.coefficients)
    path = tmp_path / "kept.npz"
    mf.solve(model, mu, (0, 0.5), checkpoint=path, max_steps=5)
    resumed = mf.solve(model, mu, (0, 0.5), checkpoint=path, resume=True)
    np.testing.assert_array_equal(resumed.final.coefficients, run.final.coefficients)
    tokens = mf.solve(model, mu.sample(20, rng=0), (0, 0.1), rng=1)
    tokens.save(tmp_path / "tokens.nc")
    found = mf.load(tmp_path / "tokens.nc").final
    np.testing.assert_array_equal(found.angles, tokens.final.angles)


def test_events_are_located_as_on_the_circle():
    def gathered(t, state):
        return float(np.abs(state.moment(1)).mean()) - 0.4

    model = mf.Transformer(mf.Kuramoto(), kappa=4.0)
    one, flat = (
        mf.solve(model, start, (0, 3), events=gathered, rtol=1e-10)
        for start in (mf.Circle(16).von_mises(0.3, 0.5), mf.Torus(16).von_mises(0.3, 0.5))
    )  # under Kuramoto angles are independent, so that each factor is that of the circle
    ((expected,), (found,)) = one.t_events[0], flat.t_events[0]
    assert 0 < found < 3
    assert found == pytest.approx(expected, abs=1e-8)


def test_members_of_an_ensemble_are_as_alone():
    mu = mf.Torus(8).von_mises([0.3, 1.0], 0.4)
    both = mf.solve(mf.Transformer(mf.USA(np.array([0.5, 1.0])), kappa=3.0), mu, (0, 0.3)).final
    for i, beta in enumerate((0.5, 1.0)):
        alone = mf.solve(mf.Transformer(mf.USA(beta), kappa=3.0), mu, (0, 0.3)).final
        np.testing.assert_array_equal(both[i].coefficients, alone.coefficients)


@pytest.mark.parametrize(
    "drift",
    [
        mf.Field(lambda x: np.full(x.shape, np.nan)),
        mf.PairKernel(lambda x, y: np.full(np.broadcast_shapes(x.shape, y.shape), np.inf)),
    ],
    ids=lambda drift: type(drift).__name__,
)
def test_velocities_that_are_not_finite_are_explained_by_the_drift(drift):
    tokens = mf.Tokens.on_torus([[0.0, 1.0], [2.0, 3.0]])
    name = type(drift).__name__
    with pytest.raises(mf.MeanfieldError, match=rf"not finite at the start: {name}\(.*\) returned"):
        mf.solve(mf.Transformer(drift), tokens, (0, 1))
