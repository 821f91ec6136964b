"""kappa that depends on time: of densities and of tokens."""

import warnings

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(32)
START = CIRCLE.von_mises(0.3, 1.0)
DEGREE = 12


def breathing(t):
    return 4.0 / (1 + 0.5 * np.sin(3 * t))


def low(density):
    return density.resample(DEGREE).coefficients


def test_heat_flow_is_exact_in_the_integral_of_the_noise():
    """Without a drift degree k decays by exp(-k^2 int dt/kappa)."""
    run = mf.solve(mf.Transformer(0 * mf.Kuramoto(), kappa=breathing), START, (0, 1), rtol=1e-10)
    time = (1 + 0.5 * (1 - np.cos(3)) / 3) / 4
    expected = low(START) * np.exp(-(np.arange(DEGREE + 1) ** 2) * time)
    np.testing.assert_allclose(low(run.final), expected, rtol=0, atol=2e-11)


@pytest.mark.repeats
@pytest.mark.parametrize("noise", [mf.noise.Isotropic(), mf.noise.Anisotropic(np.diag([1.3, 0.7]))])
def test_exponential_steps_have_order_four(noise):
    model = mf.Transformer(mf.SA(3.0), kappa=breathing, noise=noise)
    exact = mf.solve(model, START, (0, 1), rtol=1e-12, scheme=mf.steppers.DormandPrince)
    errors = [
        np.abs(low(mf.solve(model, START, (0, 1), dt=dt).final) - low(exact.final)).max()
        for dt in (0.05, 0.025, 0.0125)
    ]
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 4, atol=0.3)


def test_layers_of_noise_are_runs_one_after_the_other():
    layers = mf.PerLayer([2.0, 8.0, 3.0], 0.5)
    run = mf.solve(mf.Transformer(mf.SA(3.0), kappa=layers), START, (0, 1.5), rtol=1e-10)
    density = START
    for kappa in layers.values:
        model = mf.Transformer(mf.SA(3.0), kappa=float(kappa))
        density = mf.solve(model, density, (0, 0.5), rtol=1e-10).final
    np.testing.assert_allclose(low(run.final), low(density), rtol=0, atol=1e-11)


@pytest.mark.parametrize("values", [[np.inf, 3.0], [2.0, np.inf]])
def test_noise_is_off_in_a_layer_of_infinite_kappa(values):
    layers = mf.PerLayer(values, 0.25)
    run = mf.solve(mf.Transformer(mf.SA(1.0), kappa=layers), START, (0, 0.5), rtol=1e-10)
    density = START
    for kappa in values:
        density = mf.solve(mf.Transformer(mf.SA(1.0), kappa), density, (0, 0.25), rtol=1e-10).final
    np.testing.assert_allclose(low(run.final), low(density), rtol=0, atol=1e-11)


def test_tokens_are_still_in_layers_without_noise():
    model = mf.Transformer(mf.Kuramoto() * 0.0, kappa=mf.PerLayer([np.inf, 2.0, np.inf], 0.25))
    tokens = START.sample(20, rng=0)
    run = mf.solve(model, tokens, (0, 0.75), t_eval=[0, 0.25, 0.5, 0.75], rng=1, dt=0.05)
    first, second, third, fourth = (state.x for state in run.states)
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-15)
    assert np.abs(third - second).max() > 0.1
    np.testing.assert_allclose(third, fourth, rtol=0, atol=1e-15)


def test_layers_without_noise_are_kept_in_files(tmp_path):
    model = mf.Transformer(mf.SA(1.0), kappa=mf.PerLayer([np.inf, 3.0], 0.25))
    mf.solve(model, START, (0, 0.1)).save(tmp_path / "run.nc")
    assert mf.load(tmp_path / "run.nc").model == model


@pytest.mark.parametrize("name", ["beta", "Q"])
def test_other_layers_are_finite(name):
    with pytest.raises(ValueError, match=f"{name} must be .*finite"):
        mf.Attention(**{name: mf.PerLayer([np.inf, 3.0])})


def test_free_energy_takes_the_kappa_of_its_time():
    layers = mf.PerLayer([2.0, 8.0], 0.5)
    run = mf.solve(mf.Transformer(mf.USA(1.0), kappa=layers), START, (0, 1), t_eval=[0.0, 0.25, 1])
    for i, kappa in enumerate([2.0, 2.0, 8.0]):
        there = mf.measure(mf.Transformer(mf.USA(1.0), kappa=kappa), run.states[i])
        assert run.observables.free_energy.values[i] == there["free_energy"]


@pytest.mark.bits
@pytest.mark.parametrize(
    "kappa", [breathing, mf.PerLayer([2.0, 8.0], 0.37)], ids=["smooth", "layers"]
)
def test_resumed_runs_are_the_same_bits(tmp_path, kappa):
    model, place = mf.Transformer(mf.SA(3.0), kappa=kappa), tmp_path / "kept"
    options = {"t_span": (0, 1), "t_eval": np.linspace(0, 1, 8)}
    whole = mf.solve(model, START, **options)
    for most in (3, 7, 12):  # also in the middle of a step
        options["checkpoint"] = place / str(most)
        place.mkdir(exist_ok=True)
        assert mf.solve(model, START, **options, max_steps=most).status == "max_steps"
        again = mf.solve(model, START, **options, resume=True)
        assert (again.final.coefficients == whole.final.coefficients).all()


def test_tokens_have_the_same_law():
    model, n = mf.Transformer(mf.SA(3.0), kappa=breathing), 20_000
    run = mf.solve(model, START.sample(n, rng=0), (0, 1), rng=1, dt=0.05)
    expected = mf.solve(model, START, (0, 1)).final
    z = run.final.x @ [1, 1j]
    for k in (1, 2):
        found = (z**k).mean()
        assert abs(found - expected.moment(k)) < 4.5 * np.sqrt(1 / n)


@pytest.mark.parametrize(
    ("kappa", "word"),
    [
        (lambda t: 1.0 if t < 0.3 else -1.0, "kappa"),
        (lambda t: [1.0, 2.0], "number"),
        (lambda t: None, "return"),
    ],
)
def test_values_of_functions_are_checked(kappa, word):
    with pytest.raises((ValueError, TypeError), match=word):
        mf.solve(mf.Transformer(mf.SA(3.0), kappa=kappa), START, (0, 1))


def test_stationary_states_need_a_kappa_that_stays():
    with pytest.raises(mf.MeanfieldError, match="kappa"):
        mf.stationary(mf.Transformer(mf.SA(3.0), kappa=breathing), START)


def test_no_time_before_the_start_is_asked_for():
    """kappa(0) = 0 is not allowed, but the run starts at t = 1."""
    for drift in (mf.SA(3.0), mf.Attention(1, 1, 1, 3.0)):
        run = mf.solve(mf.Transformer(drift, kappa=lambda t: 4 * t), START, (1, 1.5), rtol=1e-8)
        other = mf.Transformer(drift, kappa=lambda t: 4 * (t + 1))
        wanted = mf.solve(other, START, (0, 0.5), rtol=1e-8)
        np.testing.assert_allclose(low(run.final), low(wanted.final), rtol=0, atol=1e-8)


@pytest.mark.parametrize("state", [START, START.sample(5, rng=0)], ids=["density", "tokens"])
def test_kappa_so_small_that_its_inverse_overflows(state):
    """An error or a failed run, and no RuntimeWarning."""
    models = [mf.Transformer(mf.USA(1.0), common=mf.CommonTranslations(5e-324))]
    models += [mf.Transformer(mf.USA(1.0), kappa) for kappa in (5e-324, lambda t: 5e-324)]
    for model in models:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", mf.UnresolvedWarning)
                mf.solve(model, state, (0, 0.1), rng=0 if mf.Tokens is type(state) else None)
        except (ValueError, mf.MeanfieldError) as error:
            assert "inf" in str(error) or "dt" in str(error)
