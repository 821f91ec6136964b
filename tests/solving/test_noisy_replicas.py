"""Replicas with noise: each has a generator of its own, so its path is that of no other."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.dynamics import TokenMotion
from meanfield.steppers import Strang

DT = 0.125  # so that two steps are 0.25 to the last bit
KINDS = [
    mf.Isotropic(),
    mf.Anisotropic(np.diag([1.0, 0.8, 0.5])),
    mf.MultiplicativeStratonovich(lambda x: 1 + 0.3 * x[..., 0]),
]
COMMON = mf.CommonTranslations(5.0)
TOKENS = mf.Tokens.uniform(7, 3, rng=1, shape=(5,))
KAPPAS = np.array([1.0, 2.0, np.inf, 4.0, 0.5])


def end(model, tokens, rng=3, **options):
    """The last state, as an array."""
    options = {"dt": DT, "t_eval": [0.25, 1.0]} | options
    return mf.solve(model, tokens, (0, 1), rng=rng, **options).final.x


@pytest.mark.bits
@pytest.mark.parametrize("common", [None, COMMON], ids=["alone", "common"])
@pytest.mark.parametrize("noise", KINDS, ids=lambda noise: type(noise).__name__)
def test_the_path_of_a_replica_depends_on_no_other(noise, common):
    kappas = KAPPAS if noise.laplacian else np.where(np.isinf(KAPPAS), 3.0, KAPPAS)
    model = mf.Transformer(mf.SA(2.0), kappas, noise=noise, common=common)
    every = end(model, TOKENS)
    for first in (1, 3):
        few = slice(0, first)
        np.testing.assert_array_equal(end(model.member(few), TOKENS[few]), every[few])
    others = mf.Tokens(np.concatenate([TOKENS.x[:2], TOKENS.x[2:, ::-1]]))
    np.testing.assert_array_equal(end(model, others)[:2], every[:2])
    assert not np.allclose(end(model, TOKENS[[0, 0, 0, 0, 0]])[0], every[1])


def test_in_r_d_too():
    tokens = mf.Tokens(np.random.default_rng(1).standard_normal((4, 6, 2)), on_sphere=False)
    model = mf.Transformer(mf.Attention(), 2.0)
    np.testing.assert_array_equal(end(model, tokens[:2]), end(model, tokens)[:2])


def test_replicas_are_counted_in_c_order():
    model, square = mf.Transformer(mf.SA(2.0), 2.0), mf.Tokens(TOKENS.x[:4].reshape(2, 2, 7, 3))
    np.testing.assert_array_equal(end(model, square).reshape(4, 7, 3), end(model, TOKENS[:4]))


def test_a_replica_is_the_single_system_of_its_generator():
    """Child r + 1 of the generator of the run, with and without common noise of no strength."""
    model = mf.Transformer(mf.SA(2.0), 2.0)
    children = np.random.default_rng(3).spawn(6)[1:]
    alone = np.stack([end(model, TOKENS[r], rng=children[r]) for r in range(5)])
    np.testing.assert_array_equal(end(model, TOKENS), alone)
    weak = model.replace(common=mf.CommonRotations(1e30))
    np.testing.assert_allclose(end(weak, TOKENS), alone, rtol=0, atol=1e-12)


def test_a_generator_gives_other_paths_in_each_run_and_is_told_from_itself():
    model, rng = mf.Transformer(mf.SA(2.0), 2.0), np.random.default_rng(3)
    options = {"dt": DT, "t_eval": [1.0], "rng": rng}
    first, second = (mf.solve(model, TOKENS, (0, 1), **options) for _ in range(2))
    assert np.abs(first.final.x - second.final.x).max() > 0.01
    assert first.options["seed"] != second.options["seed"]


def test_a_single_system_draws_from_the_generator_itself():
    model, one = mf.Transformer(mf.SA(2.0), 2.0), TOKENS[0]
    motion, rng = TokenMotion(model, one), np.random.default_rng(3)
    y = motion.coordinates(one)
    for step in range(8):
        y = motion.step(Strang, y, step * DT, DT, rng)
    np.testing.assert_array_equal(end(model, one), y[0])


def test_an_ensemble_of_densities_has_the_common_paths_of_replicas_of_tokens():
    """Under common rotations alone: the images of the basis vectors are those of the density."""
    common = mf.CommonRotations([2.0, 4.0, 8.0])
    mu = mf.Circle(16).density(lambda angle: 1 + 0.5 * np.cos(angle))
    model = mf.Transformer(0.0 * mf.Kuramoto(), common=common)
    turned = end(model, mf.Tokens.orthonormal(2)).swapaxes(1, 2)
    law = mf.solve(model, mu, (0, 1), t_eval=[0.25, 1.0], dt=DT, rng=3).final
    np.testing.assert_allclose(
        law.expect(lambda x: x), turned @ mu.expect(lambda x: x), rtol=0, atol=1e-12
    )
    assert np.abs(turned[0] - turned[1]).max() > 0.1


def test_noise_of_different_replicas_is_uncorrelated_and_decays_at_the_known_rate():
    """E<x_t, x_0> = exp(-(d - 1) t/kappa) without a drift, within five standard errors."""
    R, n, kappa, t = 200, 10, 2.0, 0.5
    tokens = mf.Tokens.uniform(n, 3, rng=1, shape=(R,))
    still = mf.Transformer(0.0 * mf.Kuramoto(), kappa)
    moved = mf.solve(still, tokens, (0, t), t_eval=[t], dt=t / 4, rng=2).final
    cosines = (moved.x * tokens.x).sum(axis=-1).ravel()
    error = cosines.std() / np.sqrt(cosines.size)
    assert abs(cosines.mean() - np.exp(-2 * t / kappa)) < 5 * error
    same = mf.Tokens(np.broadcast_to(tokens.x[0], tokens.x.shape))
    steps = mf.solve(still, same, (0, t), t_eval=[t], dt=t / 4, rng=2).final.x - same.x
    steps -= steps.mean(axis=0)
    products = (steps[::2] * steps[1::2]).sum(axis=-1).ravel()
    assert abs(products.mean()) < 5 * products.std() / np.sqrt(products.size)


# Resumed -------------------------------------------------------------------------------------


@pytest.mark.bits
@pytest.mark.parametrize("common", [None, COMMON], ids=["alone", "common"])
@pytest.mark.parametrize("tokens", [TOKENS, TOKENS[0]], ids=["replicas", "single"])
def test_tokens_resume_to_the_last_bit_wherever_they_were_cut(tmp_path, tokens, common):
    model, options = mf.Transformer(mf.SA(2.0), 2.0, common=common), {"dt": 0.16, "rng": 7}
    run = {"t_eval": [0.3, 0.7, 1.0], **options}
    whole = mf.solve(model, tokens, (0, 1), **run)
    chained = tmp_path / "chained"
    for cut in range(1, whole.stats["steps"] + 1):
        path = tmp_path / f"cut {cut}"
        kept = {"checkpoint": path, "resume": True}
        mf.solve(model, tokens, (0, 1), max_steps=cut, **kept, **run)
        resumed = mf.solve(model, tokens, (0, 1), **kept, **run)
        one = {"checkpoint": chained, "resume": True, "max_steps": cut}
        last = mf.solve(model, tokens, (0, 1), **one, **run)
        for state, other in zip(whole, resumed, strict=True):
            np.testing.assert_array_equal(state.x, other.x)
        assert resumed.stats["steps"] == whole.stats["steps"]
    np.testing.assert_array_equal(last.final.x, whole.final.x)


@pytest.mark.repeats
@pytest.mark.bits
@pytest.mark.parametrize(("members", "kappa"), [(False, np.inf), (True, 4.0)])
def test_densities_resume_to_the_last_bit_wherever_they_were_cut(tmp_path, members, kappa):
    """A narrow density on few modes: some steps are taken again on more of them."""
    common = mf.CommonTranslations([2.0, 5.0] if members else 2.0)
    model = mf.Transformer(mf.SA(3.0), kappa, common=common)
    mu0, run = mf.Circle(16).von_mises(0.0, 1.0), {"dt": 0.16, "rng": 7, "t_eval": [0.3, 1.0]}
    whole = mf.solve(model, mu0, (0, 1), **run)
    assert kappa < np.inf or np.max(whole.stats["degree_changes"]) > 0
    chained = tmp_path / "chained"
    for cut in range(1, int(np.max(whole.stats["steps"])) + 1):
        kept = {"checkpoint": tmp_path / f"cut {cut}", "resume": True}
        mf.solve(model, mu0, (0, 1), max_steps=cut, **kept, **run)
        resumed = mf.solve(model, mu0, (0, 1), **kept, **run)
        one = {"checkpoint": chained, "resume": True, "max_steps": cut}
        mf.solve(model, mu0, (0, 1), **one, **run)
        for state, other in zip(whole, resumed, strict=True):
            np.testing.assert_array_equal(state.coefficients, other.coefficients)
    last = mf.solve(model, mu0, (0, 1), checkpoint=chained, resume=True, **run)
    np.testing.assert_array_equal(last.final.coefficients, whole.final.coefficients)


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.Philox, np.random.SFC64])
def test_states_of_all_generators_are_kept(tmp_path, kind):
    model, run = mf.Transformer(mf.SA(2.0), 2.0), {"dt": 0.25, "t_eval": [1.0]}
    kept = {"checkpoint": tmp_path / "run", "resume": True, **run}

    def rng():
        return np.random.Generator(kind(3))

    whole = mf.solve(model, TOKENS, (0, 1), rng=rng(), **run)
    mf.solve(model, TOKENS, (0, 1), rng=rng(), max_steps=2, **kept)
    resumed = mf.solve(model, TOKENS, (0, 1), rng=rng(), **kept)
    np.testing.assert_array_equal(whole.final.x, resumed.final.x)


def test_a_generator_without_a_seed_moves_a_single_system_alone():
    class Seedless(np.random.bit_generator.ISeedSequence):
        def generate_state(self, words, dtype=np.uint32):
            return np.arange(1, words + 1, dtype=dtype)

    model = mf.Transformer(mf.SA(2.0), 2.0)
    rng = np.random.Generator(np.random.PCG64(Seedless()))
    assert np.isfinite(end(model, TOKENS[0], rng=rng)).all()
    with pytest.raises(ValueError, match="no seed to spawn from"):
        end(model, TOKENS, rng=rng)
