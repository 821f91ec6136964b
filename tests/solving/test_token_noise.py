"""Tokens with noise: exact moments, stationary laws, the order of steps, seeds and resuming."""

import numpy as np
import pytest
from scipy.special import ive

import meanfield as mf

MANY = 3000


def heights(x, y):
    """Inner products of tokens with where they started."""
    return np.einsum("...d,...d->...", x, y)


@pytest.mark.repeats
@pytest.mark.parametrize("d", [2, 3, 10])
def test_brownian_motion_forgets_at_the_rate_of_each_degree(d):
    """E<x_t, x_0> = e^(-(d-1) t/kappa), and degree 2 at 2d/kappa; five standard errors."""
    x, kappa, t = mf.Tokens.uniform(MANY, d, rng=1), 2.0 * d, 1.0
    model = mf.Transformer(mf.Interaction.chebyshev([0.0, 0.0]), kappa=kappa)
    end = mf.solve(model, x, (0, t), t_eval=[t], dt=0.25, rng=2).final
    c = heights(end.x, x.x)
    second = (d * c**2 - 1) / (d - 1)
    for values, rate in ((c, d - 1), (second, 2 * d)):
        error = abs(values.mean() - np.exp(-rate * t / kappa))
        assert error < 5 * values.std() / np.sqrt(MANY)
    np.testing.assert_allclose(np.linalg.norm(end.x, axis=1), 1, rtol=0, atol=1e-15)


@pytest.mark.parametrize("d", [2, 3])
def test_noisy_kuramoto_becomes_von_mises_fisher(d):
    """r = I_{d/2}(kappa r)/I_{d/2-1}(kappa r); n tokens fluctuate by n^(-1/2) around it."""
    kappa, n = 2.0 * d, 4000
    r = 1.0
    for _ in range(500):
        r = ive(d / 2, kappa * r) / ive(d / 2 - 1, kappa * r)
    x = mf.Tokens(np.tile(np.eye(d)[0], (n, 1)))
    run = mf.solve(
        mf.Transformer(mf.Kuramoto(), kappa), x, (0, 12), t_eval=np.arange(4, 13), dt=0.1, rng=5
    )
    found = run.observables["order_parameter"].values
    # Over time the order parameter varies by a few n^(-1/2); the bias of steps is 1e-3 here.
    assert found.mean() == pytest.approx(r, abs=4 / np.sqrt(n) / 2 + 1e-3)
    axis = run.final.x.mean(axis=0)
    along = run.final.x @ (axis / np.linalg.norm(axis))
    expected = 1 - (d - 1) / kappa  # E <x, e>^2 = 1 - (d - 1) r / (kappa r)
    assert (along**2).mean() == pytest.approx(
        expected, abs=5 * (along**2).std() / np.sqrt(n) + 2e-3
    )


def exact_mean(kappa, t, start):
    """E cos of dtheta = -sin(theta) dt + sqrt(2/kappa) dW from an angle, by Fourier modes."""
    from scipy.linalg import expm

    K = 40
    k = np.arange(-K, K + 1)
    generator = np.diag(-(k**2) / kappa).astype(complex)  # of E e^{ik theta}
    generator += np.diag(k[:-1] / 2.0, 1) - np.diag(k[1:] / 2.0, -1)
    generator = np.diag(-(k**2) / kappa) + np.diag(-k[:-1] / 2.0, 1) + np.diag(k[1:] / 2.0, -1)
    return (expm(t * generator) @ np.exp(1j * k * start))[K + 1].real


@pytest.mark.long
def test_steps_are_of_weak_order_two():
    """A heavy token holds still and pulls light ones: a linear equation, whose mean is known.

    With 4 * 10^6 paths the error of the longest step is 30 standard errors.
    """
    kappa, t, paths = 2.0, 1.0, 1_000_000
    start = 2.0
    angles = np.full(paths + 1, start)
    angles[-1] = 0.0
    masses = np.zeros(paths + 1)
    masses[-1] = 1.0

    class Light(mf.noise.Isotropic):
        """Noise for all but the last token."""

        def moved(self, x, s, increments):
            end = super().moved(x, s, increments)
            end[:, -1] = x[:, -1]
            return end

    model = mf.Transformer(mf.Kuramoto(), kappa, noise=Light())
    errors = []
    for steps in (1, 2, 4):
        tokens = mf.Tokens.on_circle(angles, masses)
        end = mf.solve(model, tokens, (0, t), t_eval=[t], dt=t / steps, rng=7).final
        cosines = end.x[:-1, 0]
        assert cosines.std() / np.sqrt(paths) < 8e-4
        errors.append(cosines.mean() - exact_mean(kappa, t, start))
    noise = 7e-4
    assert abs(errors[0]) > 10 * noise
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2, abs=0.5)
    assert abs(errors[2]) < abs(errors[0]) / 8


# Seeds --------------------------------------------------------------------------------------

MODEL = mf.Transformer(mf.SA(2.0), kappa=5.0)
START = mf.Tokens.uniform(30, 3, rng=0)


def noisy(rng, t=1.0, model=MODEL, tokens=START, **options):
    """A run with noise."""
    return mf.solve(model, tokens, (0, t), t_eval=[t / 2, t], dt=0.05, rng=rng, **options)


@pytest.mark.bits
def test_the_same_seed_gives_the_same_paths():
    one, two, other = noisy(3), noisy(3), noisy(4)
    assert one.final.x.tobytes() == two.final.x.tobytes() != other.final.x.tobytes()
    assert one.options["seed"] == 3
    generator = noisy(np.random.default_rng(3))
    assert generator.final.x.tobytes() == one.final.x.tobytes()


def test_a_run_without_a_seed_says_which_it_took():
    run = noisy(None)
    assert noisy(run.options["seed"]).final.x.tobytes() == run.final.x.tobytes()
    assert f"\n  seed     {run.options['seed']}" in repr(run)


def test_the_same_noise_couples_two_systems():
    """Tokens a little apart, moved by the same Brownian paths, stay a little apart."""
    shifted = mf.Tokens(START.x @ _turn(1e-6))
    gap = np.abs(noisy(3, tokens=shifted).final.x - noisy(3).final.x).max()
    assert 1e-8 < gap < 1e-4


def _turn(angle):
    turn = np.eye(3)
    turn[:2, :2] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return turn


def test_replicas_with_and_without_noise():
    tokens = START.broadcast((2,))
    run = noisy(3, model=mf.Transformer(mf.SA(2.0), kappa=[np.inf, 5.0]), tokens=tokens)
    still = mf.solve(mf.Transformer(mf.SA(2.0)), START, (0, 1), t_eval=[1.0], rtol=1e-10)
    np.testing.assert_allclose(run.final.x[0], still.final.x, rtol=0, atol=1e-6)
    assert np.abs(run.final.x[1] - still.final.x).max() > 0.1


def test_tokens_in_space_diffuse():
    x = mf.Tokens(np.zeros((MANY, 2)), on_sphere=False)
    model = mf.Transformer(mf.Attention(V=0.0), kappa=4.0)
    end = mf.solve(model, x, (0, 2), t_eval=[2.0], dt=1.0, rng=1).final
    second = (end.x**2).mean(axis=0)  # 2 t / kappa in each direction
    assert np.abs(second - 1.0).max() < 5 * np.sqrt(2 / MANY)


def test_a_step_is_chosen_if_none_is_given():
    run = mf.solve(MODEL, START, (0, 1), t_eval=[1.0], rng=1)
    # 0.05 over the rates of drift and noise, 1 + beta/2 and (d - 1)/kappa
    assert run.options["dt"] == pytest.approx(0.05 / (2 + 2 / 5))
    assert run.stats["schemes"] == {"Strang": int(np.ceil(1 / run.options["dt"]))}


@pytest.mark.bits
def test_a_run_with_noise_is_resumed_to_the_last_bit(tmp_path):
    path, whole = tmp_path / "run.checkpoint", noisy(3)
    noisy(3, checkpoint=path, max_steps=7)
    resumed = noisy(3, checkpoint=path, resume=True)
    assert resumed.final.x.tobytes() == whole.final.x.tobytes()
    assert resumed[0].x.tobytes() == whole[0].x.tobytes()
    with pytest.raises(mf.CheckpointError, match="belongs to another run"):
        noisy(4, checkpoint=path, resume=True)


def test_what_noise_does_not_go_with(tmp_path):
    with pytest.raises(ValueError, match="needs rng, a seed"):
        noisy(None, checkpoint=tmp_path / "x")
    with pytest.raises(ValueError, match=r"steppers\.Strang"):
        noisy(1, scheme=mf.steppers.DormandPrince)
    with pytest.raises(mf.MeanfieldError, match=r"Gram moves without noise.*kappa="):
        noisy(1, tokens=START.gram())
    with pytest.raises(mf.MeanfieldError, match="Equiangular moves without noise"):
        noisy(1, tokens=mf.Equiangular(5, 0.1))
    with pytest.raises(ValueError, match="rng is for Tokens, and for a Density"):
        mf.solve(MODEL, mf.Circle(8).uniform(), (0, 1), rng=1)
    with pytest.raises(ValueError, match='"steady"'):
        noisy(1, until="steady")


def test_events_of_noisy_runs_are_at_the_ends_of_steps():
    def g(t, _state):
        return t - 0.33

    run = noisy(3, events=g)
    assert run.t_events[0] == pytest.approx([0.35], abs=1e-12)
