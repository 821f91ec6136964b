"""Gaussians with noise and affine maps: the covariance equation by scipy, closed forms, tokens."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm, solve_continuous_lyapunov, sqrtm

import meanfield as mf
from meanfield.dynamics import CovarianceMotion

RNG = np.random.default_rng(3)
Q, K, V = (0.4 * RNG.standard_normal((2, 2, 2)) for _ in range(3))
V -= np.eye(2)
M = np.array([[-1.0, 0.5], [-0.3, -0.7]])
C = np.array([0.2, -0.1])
N = np.array([[1.0, 0.3], [0.3, 0.5]])
BETA = 0.6
POINT = mf.Gaussian([0.1, 0.2], np.zeros((2, 2)))
LAW = mf.Gaussian([0.1, 0.2], [[1.0, 0.4], [0.4, 0.7]])


def linear(kappa=3.0):
    """An Ornstein-Uhlenbeck process."""
    return mf.Transformer(mf.Field(lambda x: x @ M.T + C), kappa, noise=mf.Anisotropic(N))


def softmax(S, a, A, Q, K):
    return a + S @ A @ a, S @ A


def l2(S, a, A, Q, K):
    pull = 2 * BETA * S @ np.linalg.inv(np.eye(2) + 2 * BETA * K.T @ K @ S) @ K.T
    return a + pull @ (Q - K) @ a, pull @ Q


def sinkhorn(S, a, A, Q, K):
    root = sqrtm(np.eye(2) + 4 * S @ A.T @ S @ A)
    return a, 2 * S @ A @ np.linalg.inv(np.eye(2) + root)


def linear_weights(S, a, A, Q, K):
    moment = S + np.outer(a, a)
    return moment @ A @ a, moment @ A


KINDS = [
    (mf.Softmax(), softmax),
    (mf.L2(), l2),
    (mf.Sinkhorn(), sinkhorn),
    (mf.Linear(), linear_weights),
]
every_kind = pytest.mark.parametrize(("weights", "seen"), KINDS, ids=[repr(k) for k, _ in KINDS])


def attention(weights, beta=BETA):
    """Two heads, a field as part of the drift and a feed-forward map."""
    drift = mf.Attention(Q, K, V, beta, weights=weights) + 0.5 * mf.Field(lambda x: x @ M.T)
    return mf.Transformer(drift, 2.0, noise=mf.Anisotropic(N), feedforward=lambda x: C - x)


@pytest.mark.repeats
@every_kind
@pytest.mark.parametrize("law", [POINT, LAW], ids=["a point", "a regular law"])
def test_the_covariance_equation_by_scipy(weights, seen, law):
    """a' = sum V m + M a + c, S' = B S + S B^T + (2/kappa) N: formulas without roots of S."""

    def rates(t, y):
        a, S = y[:2], y[2:].reshape(2, 2)
        of_mean, B = 0.5 * M @ a + C - a, 0.5 * M - np.eye(2)
        for q, k, v in zip(Q, K, V, strict=True):
            m, G = seen(S, a, BETA * k.T @ q, q, k)
            of_mean, B = of_mean + v @ m, B + v @ G
        return np.concatenate([of_mean, (B @ S + S @ B.T + N).real.ravel()])

    start = np.concatenate([law.mean, law.cov.ravel()])
    exact = solve_ivp(rates, (0, 1), start, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    final = mf.solve(attention(weights), law, (0, 1), rtol=1e-11).final
    assert np.abs(final.mean - exact[:2]).max() < 1e-10
    assert np.abs(final.cov - exact[2:].reshape(2, 2)).max() < 1e-10


@pytest.mark.repeats
@pytest.mark.parametrize("kappa", [3.0, 1e6])
def test_the_linear_case_rests_at_the_solution_of_lyapunovs_equation(kappa):
    """M S + S M^T + (2/kappa) N = 0 and M a + c = 0, from a point and from a regular law."""
    cov, mean = solve_continuous_lyapunov(M, -2 / kappa * N), -np.linalg.solve(M, C)
    for law in POINT, LAW:
        final = mf.solve(linear(kappa), law, (0, 60), rtol=1e-10).final
        assert np.abs(final.cov - cov).max() < 1e-10 * np.abs(cov).max()
        assert np.abs(final.mean - mean).max() < 1e-10
    run = mf.solve(linear(kappa), LAW, (0, 200), until="steady")
    assert run.status == "steady"
    assert np.abs(run.final.cov - cov).max() < 1e-6


def test_noise_in_one_direction_spreads_a_point_in_all():
    """Kinetic Langevin: positions follow velocities, of variance (2/3) t^3 / kappa at first."""
    friction, kappa, t = 0.7, 2.0, np.array([1e-3, 0.1, 2.0])
    B, noise = np.array([[0.0, 1.0], [-1.0, -friction]]), np.diag([0.0, 1.0])
    model = mf.Transformer(mf.Field(lambda x: x @ B.T), kappa, noise=mf.Anisotropic(noise))
    start = mf.Gaussian([1.0, 0.0], np.zeros((2, 2)))
    run = mf.solve(model, start, (0, 2.0), t_eval=t, rtol=1e-10)
    block = np.block([[-B, 2 / kappa * noise], [np.zeros((2, 2)), B.T]])
    for time, state in zip(t, run.states, strict=True):
        flow = expm(time * block)  # Van Loan
        exact = flow[2:, 2:].T @ flow[:2, 2:]
        scale = np.sqrt(np.multiply.outer(np.diag(exact), np.diag(exact)))
        assert (np.abs(state.cov - exact) / scale).max() < 1e-7
        assert np.abs(state.mean - expm(time * B) @ [1.0, 0.0]).max() < 1e-9


def test_noise_that_changes_with_time():
    """S(t) = e^(-2t) int_0^t e^(2s) 2/kappa(s) ds, kappa of a layer and of a function."""
    pull = mf.Field(lambda x: -x)
    start = mf.Gaussian([0.0], [[0.0]])
    layers = mf.Transformer(pull, mf.PerLayer([2.0, np.inf], duration=1.0))
    assert mf.solve(layers, start, (0, 2)).final.cov.item() == pytest.approx(
        np.exp(-4) * (np.exp(2) - 1) / 2, rel=1e-7
    )
    smooth = mf.Transformer(pull, lambda t: 2 * np.exp(t))
    assert mf.solve(smooth, start, (0, 2)).final.cov.item() == pytest.approx(
        np.exp(-4) * (np.exp(2) - 1), rel=1e-7
    )


@pytest.mark.repeats
@pytest.mark.parametrize("start", [0.0, 0.3])
def test_a_blow_up_with_noise_in_closed_form(start):
    """S' = p S^2 + q blows up at (pi/2 - atan(S_0 (p/q)^(1/2))) / (p q)^(1/2)."""
    model = mf.Transformer(mf.Attention(beta=1.5), kappa=4.0)
    p, q = 2 * 1.5, 2 / 4.0
    run = mf.solve(model, mf.Gaussian([0.0], [[start]]), (0, 3), rtol=1e-9)
    T = (np.pi / 2 - np.arctan(start * np.sqrt(p / q))) / np.sqrt(p * q)
    assert run.status == "blow-up"
    assert run.stats["blow_up_time"] == pytest.approx(T, rel=1e-7)
    calm = mf.solve(mf.Transformer(mf.Field(lambda x: x), 4.0), POINT, (0, 20), rtol=1e-9)
    assert calm.status == "finished"
    assert calm.final.cov[0, 0] == pytest.approx((np.exp(40) - 1) / 4, rel=1e-6)


def test_affine_maps_without_noise_keep_the_digits_of_small_variances():
    rates = np.array([-8.0, 1.0])
    model = mf.Transformer(mf.Field(lambda x: rates * x), feedforward=mf.FeedForward(1.0, 0.0))
    final = mf.solve(model, mf.Gaussian([0, 1], np.eye(2)), (0, 4), rtol=1e-11).final
    assert final.variances == pytest.approx(np.exp(2 * 4 * rates[::-1]), rel=1e-8)
    assert final.mean == pytest.approx([0, np.exp(4)], rel=1e-9)


def test_speed_is_that_of_the_law():
    """W2 of the laws before and after, over the time between them."""
    model, h = linear(), 1e-4
    ends = mf.solve(model, LAW, (0, 2 * h), t_eval=[0, h, 2 * h], rtol=1e-12).states
    motion = CovarianceMotion(model, ends[1])
    speed = motion.measure(ends[1])["speed"]
    assert float(mf.wasserstein(ends[0], ends[2])) / (2 * h) == pytest.approx(speed, rel=1e-6)
    assert motion.measure(POINT)["speed"] == np.inf  # W2 grows like the root of time


@pytest.mark.repeats
@every_kind
def test_tangents_are_differences_of_the_same_steps(weights, seen):
    """By beta, from a point too, and in a direction in which a singular covariance changes."""
    towards = {"mean": np.array([0.3, -0.1]), "cov": np.array([[0.2, 0.1], [0.1, 0.3]])}

    def solved(by_beta, moved, law=LAW, tangents=()):
        start = mf.Gaussian(law.mean + moved * towards["mean"], law.cov + moved * towards["cov"])
        model = attention(weights, BETA + by_beta)
        return mf.solve(model, start, (0, 0.3), dt=0.05, tangents=tangents)

    h, nodes = 1e-3, {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
    run = solved(0, 0, tangents=["drifts[0].beta", towards])
    for key, (b, m) in {"drifts[0].beta": (1, 0), "direction_0": (0, 1)}.items():
        runs = {k: solved(b * k * h, m * k * h).final for k in nodes}
        for name in "mean", "cov":
            expected = sum(c * getattr(runs[k], name) for k, c in nodes.items()) / h
            assert np.abs(run.tangents[key][-1][name] - expected).max() < 1e-9
    run = solved(0, 0, POINT, ["drifts[0].beta"])
    runs = {k: solved(k * h, 0, POINT).final for k in nodes}
    expected = sum(c * runs[k].cov for k, c in nodes.items()) / h
    assert np.abs(run.tangents["drifts[0].beta"][-1].cov - expected).max() < 1e-9


@pytest.mark.repeats
@pytest.mark.parametrize("noise", [mf.Isotropic(), mf.Anisotropic(N)], ids=repr)
def test_tokens_have_the_covariance_within_four_standard_errors(noise):
    """Mean and covariance of 500 interacting tokens; kurtosis 3 of their law gives the errors."""
    model = attention(mf.Softmax()).replace(noise=noise)
    n, law = 500, mf.solve(attention(mf.Softmax()).replace(noise=noise), LAW, (0, 1)).final
    x = mf.solve(model, LAW.sample(n, rng=0), (0, 1), dt=0.05, rng=1).final.x
    off = (x.mean(axis=0) - law.mean) / np.sqrt(np.diag(law.cov) / n)
    assert np.abs(off).max() < 4
    spread = np.sqrt((np.multiply.outer(np.diag(law.cov), np.diag(law.cov)) + law.cov**2) / n)
    assert np.abs((np.cov(x.T) - law.cov) / spread).max() < 4


def test_a_run_goes_on_from_its_own_numbers(tmp_path):
    """Coordinates of a saved state are those of the run, bit by bit."""
    run = mf.solve(linear(), LAW, (0, 1), t_eval=[0.3, 1.0])
    motion = CovarianceMotion(linear(), LAW)
    packed = motion.packed(run.final)
    assert np.array_equal(motion.packed(motion.unpacked(packed)), packed)
    run.save(tmp_path / "run.nc")
    again = mf.load(tmp_path / "run.nc").final
    assert np.array_equal(again.cov, run.final.cov)
    assert np.array_equal(again.root, run.final.root)


REFUSED = [
    (mf.Transformer(mf.Field(np.tanh), 2.0), r"affine .* M x \+ c; values of this one are off by"),
    (mf.Transformer(mf.Attention(), feedforward=mf.FeedForward(1.0, 1.0)), "affine"),
    (
        mf.Transformer(
            mf.Attention(), 2.0, noise=mf.MultiplicativeIto(lambda x: 1 + x[..., 0] ** 2)
        ),
        r"strength depends on the point \(arXiv:2606.07600\)",
    ),
    (mf.Transformer(mf.Attention(), common=mf.CommonRotations(2.0)), "without common"),
]


@pytest.mark.parametrize(("model", "message"), REFUSED)
def test_maps_and_noise_that_keep_no_gaussian_are_refused_with_the_reason(model, message):
    with pytest.raises(mf.MeanfieldError, match=message):
        mf.solve(model, LAW, (0, 1))
    other = mf.Transformer(mf.Attention(), 2.0, noise=mf.Anisotropic(np.eye(3)))
    with pytest.raises(ValueError, match="is for dimension 3; got points of dimension 2"):
        mf.solve(other, LAW, (0, 1))


@pytest.mark.parametrize("weights", [mf.Softmax(), mf.Linear()], ids=repr)
def test_noise_that_spreads_a_small_law_is_no_growth_towards_a_blow_up(weights):
    """The rate that is watched has the size of the law without noise, however strong it is."""
    small = mf.Gaussian([0.0, 0.0], 1e-6 * LAW.cov)
    drift = mf.Attention(Q, K, np.eye(2), BETA, weights=weights)
    watched = []
    for kappa in (1e-3, 1e3):
        motion = CovarianceMotion(mf.Transformer(drift, kappa, noise=mf.Anisotropic(N)), small)
        y = motion.coordinates(small)
        watched.append(motion.growth(y, motion.velocity(y, 0.0), 0.0))
    assert watched[0] == watched[1] and abs(watched[0]) < 1
