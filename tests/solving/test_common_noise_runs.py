"""Tokens and densities under common noise: the law given the common path."""

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(32).density(lambda t: 1 + 0.5 * np.cos(t) + 0.2 * np.sin(2 * t))
SPHERE = mf.Sphere(16).von_mises_fisher((0.0, 0.6, 0.8), 1.0)
TRANSLATIONS, ROTATIONS = mf.CommonTranslations(2.0), mf.CommonRotations(2.0)
DT = 0.05


def noisy(state, common, kappa=4.0, drift=None, rng=3, **options):
    """A run with common noise."""
    model = mf.Transformer(drift or mf.SA(2.0), kappa, common=common)
    return mf.solve(model, state, (0, 0.5), t_eval=[0.2, 0.5], dt=DT, rng=rng, **options)


def turn(common, d, steps, rng):
    """The rotation of a run, from the stream that it draws from."""
    stream, total = np.random.default_rng(rng).spawn(1)[0], np.eye(d)
    for _ in range(2 * steps):
        increments = common.increments(1, d, stream)
        moved = common.moved(np.eye(d)[None], np.array([DT / 2 / 2.0]), increments)[0]
        total = moved.T @ total
    return total


# A zonal drift commutes with rotations -----------------------------------------------------------


def falling(t):
    """kappa that depends on time."""
    return 4.0 - 2.0 * t


@pytest.mark.parametrize(
    "kappa",
    [np.inf, 4.0, mf.PerLayer([1.0, 9.0], 0.3), falling],
    ids=["none", "constant", "layers", "smooth"],
)
@pytest.mark.parametrize("mu", [CIRCLE, SPHERE], ids=["circle", "sphere"])
def test_under_common_rotations_the_law_is_the_noiseless_one_rotated(mu, kappa):
    degree = {"min_degree": 32, "max_degree": 32, "rtol": 1e-6}  # the same for both
    mu = mu.resample(32)
    run = noisy(mu, ROTATIONS, kappa, **degree)
    model, options = mf.Transformer(mf.SA(2.0), kappa), {"t_eval": [0.2, 0.5], "dt": DT, **degree}
    still = mf.solve(model, mu, (0, 0.5), **options).final
    expected = still.rotate(turn(ROTATIONS, mu.dimension, 10, 3)).coefficients
    np.testing.assert_allclose(run.final.coefficients, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_under_common_rotations_tokens_are_the_noiseless_ones_rotated(d):
    x = mf.Tokens.uniform(20, d, rng=1)
    end = noisy(x, ROTATIONS, np.inf).final
    options = {"t_eval": [0.2, 0.5], "dt": DT, "scheme": mf.steppers.LieTrotter}
    still = mf.solve(mf.Transformer(mf.SA(2.0)), x, (0, 0.5), **options).final
    expected = still.x @ turn(ROTATIONS, d, 10, 3).T
    np.testing.assert_allclose(end.x, expected, rtol=0, atol=1e-13)


# Tokens and their law, path by path --------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("kappa", [np.inf, 4.0])
@pytest.mark.parametrize("mu", [CIRCLE, SPHERE], ids=["circle", "sphere"])
@pytest.mark.parametrize("common", [TRANSLATIONS, ROTATIONS], ids=repr)
def test_tokens_converge_to_the_density_of_their_path(common, mu, kappa):
    law = noisy(mu, common, kappa)
    for n in (400, 6400):
        end = noisy(mu.sample(n, rng=1), common, kappa).final
        gap = end.x.mean(axis=0) - law.final.expect(lambda x: x)
        assert np.abs(gap).max() < 4.5 / np.sqrt(n)
        gap = (end.x[:, 0] ** 2).mean() - law.final.expect(lambda x: x[..., 0] ** 2)
        assert abs(gap) < 4.5 / 2 / np.sqrt(n)
    other = noisy(mu, common, kappa, rng=4).final
    assert np.abs(other.expect(lambda x: x) - law.final.expect(lambda x: x)).max() > 0.1


@pytest.mark.repeats
@pytest.mark.parametrize("common", [TRANSLATIONS, ROTATIONS, mf.CommonMatrix(4.0)], ids=repr)
@pytest.mark.parametrize("mu", [CIRCLE, SPHERE], ids=["circle", "sphere"])
def test_tokens_follow_their_law_under_any_attention_and_independent_noise(mu, common):
    """Q, K, V and anisotropic noise, neither of which commutes with rotations."""
    d, n = mu.dimension, 600
    rng = np.random.default_rng(d)
    Q, V = rng.standard_normal((2, 2, d, d)) / np.sqrt(d)
    drift = mf.Attention(Q=Q, V=V) + mf.FeedForward(np.eye(d), 0.5 * np.eye(d), activation=np.tanh)
    noise = mf.Anisotropic(np.diag([1.5, 1.0, 0.5][:d]))
    model = mf.Transformer(drift, 4.0, noise=noise, common=common)
    options = {"t_eval": [0.3], "dt": DT}
    degree = {"min_degree": 24, "max_degree": 24, "rtol": 1e-3}
    law = mf.solve(model, mu.resample(24), (0, 0.3), rng=3, **options, **degree).final
    end = mf.solve(model, mu.sample(n, rng=1), (0, 0.3), rng=3, **options).final
    model = model.replace(common=None)
    still = mf.solve(model, mu.resample(24), (0, 0.3), **options, **degree).final
    mean = law.expect(lambda x: x)
    assert np.abs(end.x.mean(axis=0) - mean).max() < 4.5 / np.sqrt(n)
    assert np.abs(still.expect(lambda x: x) - mean).max() > 0.02


@pytest.mark.repeats
@pytest.mark.parametrize("drift", [mf.SA(2.0), mf.USA(1.0)], ids=repr)
@pytest.mark.parametrize("mu", [CIRCLE, SPHERE], ids=["circle", "sphere"])
def test_a_common_matrix_moves_tokens_and_their_law_alike(mu, drift):
    law = noisy(mu, mf.CommonMatrix(2.0), drift=drift, rtol=1e-6).final
    end = noisy(mu.sample(1000, rng=1), mf.CommonMatrix(2.0), drift=drift).final
    assert np.abs(end.x.mean(axis=0) - law.expect(lambda x: x)).max() < 4.5 / np.sqrt(1000)


@pytest.mark.parametrize("drift", [mf.SA(2.0), mf.USA([1.0, -3.0]), mf.Kuramoto()], ids=repr)
@pytest.mark.parametrize("mu", [CIRCLE, SPHERE], ids=["circle", "sphere"])
def test_the_output_of_attention_on_the_grid(mu, drift):
    """Against sums over the nodes of the quadrature."""
    from meanfield.dynamics.density import DensityMotion

    mu = mu if not drift.shape else mf.Density.stack([mu, mu.rotate(_quarter(mu))])
    motion = DensityMotion(mf.Transformer(drift), mu)
    space = mu.space
    series = mu.coefficients.reshape(-1, space.degrees.size)
    found = motion.fields(space).attention(0.0, series)
    for i in range(len(series)):
        masses, x = space.weights * space.to_values(series[i]), space.points
        one = drift.member(i)
        kernel = one.slope(x @ x.T) * masses
        level = (one.weight(x @ x.T) * masses).sum(axis=1)
        np.testing.assert_allclose(found[i], kernel @ x / level[:, None], rtol=0, atol=1e-11)


def _quarter(mu):
    return np.pi / 2 if mu.dimension == 2 else np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])


# Common translations of the circle ---------------------------------------------------------------


def poisson(r, angle=0.4, degree=64):
    """Coefficients of the Poisson kernel, c_k = (r e^{-i angle})^k."""
    return (r * np.exp(-1j * angle)) ** np.arange(degree + 1)


def test_common_translations_take_poisson_kernels_to_poisson_kernels():
    """The image of z -> (1 - r^2)/|1 - r z|^2 under a Moebius map is another, exactly."""
    rng = np.random.default_rng(0)
    c, space = poisson(0.5)[None], mf.Circle(64)
    for _ in range(10):
        c = TRANSLATIONS.carried(space, c, np.array([5e-4]), TRANSLATIONS.increments(1, 2, rng))
    assert abs(c[0, 1] - poisson(0.5)[1]) > 1e-2
    np.testing.assert_allclose(c[0], c[0, 1] ** np.arange(65), rtol=0, atol=1e-14)


def test_kuramoto_with_common_translations_stays_a_poisson_kernel_and_grows_at_the_known_rate():
    """d rho = (tanh(rho/2) + coth(rho)/kappa_0) dt + sqrt(2/kappa_0) dB, rho = 2 artanh r.

    The mean of rho_T - rho_0 - int drift dt is 0, its variance 2 T/kappa_0: 4.5 standard errors.
    """
    paths, kappa, times = 200, 8.0, np.linspace(0, 0.5, 26)
    start = mf.Density(mf.Circle(64), np.tile(poisson(0.3), (paths, 1)))
    model = mf.Transformer(mf.Kuramoto(), common=mf.CommonTranslations(kappa))
    run = mf.solve(model, start, (0, 0.5), t_eval=times, dt=0.02, rng=1)
    for state in run:
        c = state.coefficients
        powers = c[:, 1:2] ** np.arange(c.shape[1])
        np.testing.assert_allclose(c, powers, rtol=0, atol=1e-8)
    r = np.array([np.abs(state.coefficients[:, 1]) for state in run])
    rho = 2 * np.arctanh(r)
    drift = np.tanh(rho / 2) + 1 / np.tanh(rho) / kappa
    martingale = rho[-1] - rho[0] - np.trapezoid(drift, times, axis=0)
    variance = 2 * 0.5 / kappa
    assert abs(martingale.mean()) < 4.5 * np.sqrt(variance / paths)
    assert martingale.var() == pytest.approx(variance, rel=4.5 * np.sqrt(2 / paths))
    assert (rho[-1] - rho[0]).mean() > 10 * np.sqrt(variance / paths)


@pytest.mark.repeats
@pytest.mark.parametrize("drift, rate", [(mf.SA(1.0), 1.0), (mf.USA(1.0), np.e)], ids=repr)
@pytest.mark.parametrize("d", [2, 3])
def test_two_close_tokens_approach_at_the_known_rate(d, drift, rate):
    """-(1 or e^beta) - (d - 1)/kappa_0, where one rotation would give -(1 or e^beta)."""
    paths, kappa, T = 400, 2.0, 1.0
    x = np.zeros((paths, 2, d))
    x[:, :, 0], x[:, 1, 1] = 1.0, 1e-5
    model = mf.Transformer(drift, common=mf.CommonTranslations(kappa))
    end = mf.solve(model, mf.Tokens(x), (0, T), t_eval=[T], dt=0.05, rng=2).final.x
    growth = np.log(np.linalg.norm(end[:, 1] - end[:, 0], axis=1) / 1e-5) / T
    error = np.sqrt(2 / kappa / T / paths)
    assert abs(growth.mean() + rate + (d - 1) / kappa) < 4.5 * error + 2e-3
    assert growth.std() == pytest.approx(np.sqrt(2 / kappa / T), rel=0.2)


# Runs --------------------------------------------------------------------------------------------


def test_mass_is_kept_and_the_degree_follows_the_density():
    start = mf.Circle(16).density(lambda t: 1 + 0.5 * np.cos(t))
    run = noisy(start, TRANSLATIONS, drift=mf.USA(1.0))
    assert run.success
    assert run.stats["highest_degree"] > 16
    assert run.stats["degree_changes"] > 0
    assert abs(run.final.mass - 1) < 1e-13
    fine = noisy(start, TRANSLATIONS, drift=mf.USA(1.0), min_degree=128, max_degree=128)
    np.testing.assert_allclose(
        run.final.resample(64).coefficients, fine.final.resample(64).coefficients, atol=1e-8
    )


def test_a_density_that_needs_more_modes_than_allowed_ends_as_unresolved():
    with pytest.warns(mf.UnresolvedWarning):
        run = noisy(CIRCLE, TRANSLATIONS, np.inf, max_degree=32)
    assert run.status == "unresolved"


def test_members_of_an_ensemble_have_paths_of_their_own_as_replicas_have():
    common = mf.CommonTranslations([2.0, 20.0])
    law = noisy(CIRCLE, common)
    x = CIRCLE.sample(4000, rng=1)
    end = noisy(x, common).final
    for i in range(2):
        gap = end.x[i].mean(axis=0) - law.final[i].expect(lambda x: x)
        assert np.abs(gap).max() < 4.5 / np.sqrt(4000)


def test_weak_common_noise_leaves_independent_noise_as_it_is():
    x = CIRCLE.sample(50, rng=1)
    alone = mf.solve(mf.Transformer(mf.SA(2.0), 4.0), x, (0, 0.5), t_eval=[0.2, 0.5], dt=DT, rng=3)
    beside = noisy(x, mf.CommonTranslations(1e30))
    np.testing.assert_allclose(beside.final.x, alone.final.x, rtol=0, atol=1e-13)


@pytest.mark.bits
@pytest.mark.parametrize("common", [TRANSLATIONS, ROTATIONS, mf.CommonMatrix(9.0)], ids=repr)
@pytest.mark.parametrize("kappa", [np.inf, 4.0])
@pytest.mark.parametrize("state", [CIRCLE, CIRCLE.sample(20, rng=0)], ids=["density", "tokens"])
def test_runs_are_resumed_to_the_last_bit(tmp_path, state, kappa, common):
    path, whole = tmp_path / "run.checkpoint", noisy(state, common, kappa)
    for steps in (1, 3, 4):
        noisy(state, common, kappa, checkpoint=path, max_steps=steps, resume=True)
    resumed = noisy(state, common, kappa, checkpoint=path, resume=True)
    for one, other in zip(whole, resumed, strict=True):
        for name, (_, array) in one.arrays().items():
            assert array.tobytes() == other.arrays()[name][1].tobytes()
    assert resumed.stats["steps"] == whole.stats["steps"]
    with pytest.raises(mf.CheckpointError, match="belongs to another run"):
        noisy(state, common, kappa, rng=5, checkpoint=path, resume=True)


def test_seeds_are_recorded_and_generators_are_told_from_each_other():
    one = noisy(CIRCLE, TRANSLATIONS, rng=None)
    again = noisy(CIRCLE, TRANSLATIONS, rng=one.options["seed"])
    assert again.final.coefficients.tobytes() == one.final.coefficients.tobytes()
    rng = np.random.default_rng(3)
    first, second = noisy(CIRCLE, TRANSLATIONS, rng=rng), noisy(CIRCLE, TRANSLATIONS, rng=rng)
    expected = noisy(CIRCLE, TRANSLATIONS, rng=3).final.coefficients
    assert first.final.coefficients.tobytes() == expected.tobytes()
    assert np.abs(second.final.coefficients - first.final.coefficients).max() > 1e-2


def test_files_keep_runs_with_common_noise(tmp_path):
    run = noisy(CIRCLE, mf.CommonTranslations([2.0, 3.0]))
    loaded = mf.load(run.save(tmp_path / "run.nc"))
    assert repr(loaded.model) == repr(run.model)
    assert loaded.final.coefficients.tobytes() == run.final.coefficients.tobytes()
    assert loaded.options["seed"] == 3


def test_events_are_at_the_ends_of_steps():
    run = noisy(CIRCLE, TRANSLATIONS, events=lambda t, _state: t - 0.23)
    assert run.t_events[0] == pytest.approx([0.25], abs=1e-12)


def test_a_step_is_chosen_if_none_is_given():
    model = mf.Transformer(mf.SA(2.0), 4.0, common=TRANSLATIONS)
    runs = [
        mf.solve(model, state, (0, 0.1), t_eval=[0.1], rng=1)
        for state in (CIRCLE, CIRCLE.sample(9, rng=1))
    ]
    for run in runs:  # 0.05 over 1 + beta/2 and the rates 1/4 and 1/2 of the two noises
        assert run.options["dt"] == pytest.approx(0.05 / 2.75)


def test_a_configuration_has_a_table_for_common_noise(tmp_path):
    (tmp_path / "a.toml").write_text(
        "[model]\ndrift = {kind = 'SA', beta = 2.0}\nkappa = 4.0\n"
        "common = {kind = 'CommonTranslations', kappa = 2.0}\n"
        "[space]\nkind = 'Circle'\ndegree = 32\n"
        "[initial]\nkind = 'VonMises'\nmean = 0.0\nconcentration = 1.0\n"
        "[solve]\nt_span = [0, 0.5]\nt_eval = [0.2, 0.5]\ndt = 0.05\nrng = 3\n"
    )
    run = mf.run_config(mf.read_config(tmp_path / "a.toml"))
    expected = noisy(mf.Circle(32).von_mises(0.0, 1.0), TRANSLATIONS)
    assert run.final.coefficients.tobytes() == expected.final.coefficients.tobytes()


# Refused -----------------------------------------------------------------------------------------


def test_states_that_cannot_have_common_noise_say_which_can():
    density = mf.Zonal(3, 16).uniform()
    for common in (TRANSLATIONS, ROTATIONS, mf.CommonMatrix(1.0)):
        with pytest.raises(mf.MeanfieldError, match="Circle and Sphere, and Tokens"):
            noisy(density, common)
    x = mf.Tokens.uniform(5, 3, rng=0)
    for state in (mf.Characteristics(CIRCLE), x.gram(), mf.Equiangular(5, 0.1)):
        with pytest.raises((mf.MeanfieldError, ValueError), match=r"Tokens|to_tokens"):
            noisy(state, TRANSLATIONS, np.inf, rng=None)
    with pytest.raises(mf.MeanfieldError, match="Solve for Tokens"):
        noisy(mf.Gaussian([0, 0], np.eye(2)), TRANSLATIONS, np.inf, mf.Attention(), rng=None)
    with pytest.raises(mf.MeanfieldError, match="unit vectors"):
        noisy(mf.Tokens(x.x, on_sphere=False), TRANSLATIONS, np.inf, mf.Attention())
    with pytest.raises(ValueError, match="does not rest"):
        mf.stationary(mf.Transformer(mf.SA(1.0), 2.0, common=ROTATIONS), CIRCLE)
    with pytest.raises(ValueError, match='"steady"'):
        noisy(CIRCLE, TRANSLATIONS, until="steady")
    with pytest.raises(ValueError, match="rng is for Tokens, and for a Density"):
        mf.solve(mf.Transformer(mf.SA(1.0), 2.0), CIRCLE, (0, 1), rng=1)
    with pytest.raises(ValueError, match="random"):
        mf.propagation_of_chaos(
            mf.Transformer(mf.SA(1.0), common=ROTATIONS),
            CIRCLE,
            sizes=[4, 8],
            times=[0.1],
            replicas=4,
            rng=1,
        )
