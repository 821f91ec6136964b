"""Gaussians under attention: laws of the motion, energies, the closed form, what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import meanfield as mf
from meanfield.dynamics import GaussianMotion
from meanfield.dynamics.gaussian_attention import energy

KINDS = [mf.Softmax(), mf.L2(), mf.Sinkhorn(), mf.Linear()]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=repr)
reproducible = settings(deadline=None, derandomize=True, max_examples=40)


def random_case(seed, d, kind, beta=0.7, heads=2, k=2):
    """A model of several heads with projections, and a law."""
    rng = np.random.default_rng(seed)
    Q, K, V = rng.standard_normal((3, heads, k, d)) / np.sqrt(d)
    output = rng.standard_normal((heads, d, k))
    G, mean = rng.standard_normal((d, d)), rng.standard_normal(d)
    model = mf.Transformer(mf.Attention(Q, K, V, beta, weights=kind, output=output))
    return model, mf.Gaussian(mean, G @ G.T / d)


def rates(model, law, t=0.0):
    """a' and Sigma' of a law."""
    motion = GaussianMotion(model, law)
    y = motion.coordinates(law)
    L, slopes = y[:, :-1], motion.velocity(y, t)
    return slopes[:, -1], slopes[:, :-1] @ L.T + L @ slopes[:, :-1].T


@pytest.mark.repeats
@every_kind
@given(seed=st.integers(0, 2**31), d=st.integers(1, 6))
@reproducible
def test_heads_add_up_and_rotations_carry_over(kind, seed, d):
    """Attention with Q R, K R and R^T V R, for x replaced by R^T x, is the same attention."""
    model, law = random_case(seed, d, kind)
    drift = model.drift
    R = np.linalg.qr(np.random.default_rng(seed + 1).standard_normal((d, d)))[0]
    turned = mf.Attention(
        drift.Q @ R, drift.K @ R, drift.V @ R, drift.beta, weights=kind, output=R.T @ drift.output
    )
    mean, cov = rates(model, law)
    other = rates(mf.Transformer(turned), mf.Gaussian(R.T @ law.mean, _even(R.T @ law.cov @ R)))
    scale = 1 + np.abs(cov).max() + np.abs(mean).max()
    np.testing.assert_allclose(other[0], R.T @ mean, atol=1e-10 * scale)
    np.testing.assert_allclose(other[1], R.T @ cov @ R, atol=1e-10 * scale)


def _even(cov):
    return (cov + cov.T) / 2


def test_a_law_that_moves_too_fast_for_its_speed_to_be_a_number():
    law = mf.Gaussian([0.0], [[2.809e205]])
    motion = GaussianMotion(mf.Transformer(mf.Attention()), law)
    y = motion.coordinates(law)
    assert motion.rate(y, motion.velocity(y, 0.0)) == np.inf


@every_kind
def test_a_stack_of_laws_has_the_velocities_of_each(kind):
    model, law = random_case(5, 4, kind)
    motion = GaussianMotion(model, law)
    stack = np.random.default_rng(6).standard_normal((2, 3, 4, 5))
    each = [[motion.velocity(y, 0.0) for y in row] for row in stack]
    np.testing.assert_allclose(motion.velocity(stack, 0.0), each, rtol=1e-12, atol=1e-12)


@every_kind
def test_a_dirac_attends_to_itself(kind):
    """Without spread every token sees its own place: a' = V a; linear weights V a <Qa, Ka>."""
    model, law = random_case(3, 3, kind)
    dirac = mf.Gaussian(law.mean, np.zeros((3, 3)))
    mean, cov = rates(model, dirac)
    drift, a = model.drift, law.mean
    shares = [
        0.7 * (q @ a) @ (k @ a) if kind == mf.Linear() else 1.0
        for q, k in zip(drift.Q, drift.K, strict=True)
    ]
    expected = sum(s * o @ v @ a for s, o, v in zip(shares, drift.output, drift.V, strict=True))
    np.testing.assert_allclose(mean, expected, atol=1e-13)
    assert not cov.any()


@pytest.mark.parametrize("kind", KINDS[:3], ids=repr)
def test_the_mean_of_everything_at_beta_zero(kind):
    """a' = V a and nothing spreads."""
    model, law = random_case(4, 3, kind, beta=0.0)
    mean, cov = rates(model, law)
    total = sum(o @ v for o, v in zip(model.drift.output, model.drift.V, strict=True))
    np.testing.assert_allclose(mean, total @ law.mean, atol=1e-13)
    np.testing.assert_allclose(cov, 0, atol=1e-13)


@pytest.mark.repeats
@pytest.mark.parametrize("beta", [1.3, -0.4])
def test_on_the_line_l2_and_sinkhorn_are_what_quadrature_says(beta):
    """E[y | x] by sums over 301 points, the plan by plain iteration."""
    mean, sd = 0.4, 0.8
    z = np.linspace(-9, 9, 301)
    x, m = mean + sd * z, norm.pdf(z) / norm.pdf(z).sum()
    law = mf.Gaussian([mean], [[sd**2]])
    k = np.exp(beta * np.outer(x, x) - beta * (x[:, None] ** 2 + x**2) / 2)
    w = np.ones_like(x)
    for _ in range(3000):
        u = 1 / (k @ (m * w))
        w = 1 / (k.T @ (m * u))
    plan = u[:, None] * k * (m * w)
    expected = m @ ((x - mean) * (plan @ x))
    found = rates(mf.Transformer(mf.Attention(beta=beta, weights=mf.Sinkhorn())), law)[1][0, 0] / 2
    assert found == pytest.approx(expected, abs=1e-9)
    kernel = np.exp(-beta * (x[:, None] - 0.6 * x) ** 2) * m
    pulled = (kernel @ x) / kernel.sum(axis=1)
    drift = mf.Attention(1.0, 0.6, beta=beta, weights=mf.L2())
    mean_rate, cov_rate = rates(mf.Transformer(drift), law)
    assert mean_rate[0] == pytest.approx(m @ pulled, abs=1e-9)
    assert cov_rate[0, 0] / 2 == pytest.approx(m @ ((x - mean) * pulled), abs=1e-9)


def test_energies_rise_at_the_squared_speed_where_there_are_any():
    A, key = -np.array([[1, 0.2], [0.2, 0.5]]), np.array([[1, 0.2], [0.1, 0.5]])
    law, still = mf.Gaussian([0.6, 0.3], [[1, 0.3], [0.3, 0.5]]), np.zeros(2)
    flows = [
        (mf.Attention(A, None, -0.6 * A), mf.Gaussian(still, law.cov)),
        (mf.Attention(A, None, -0.5 * A, weights=mf.Sinkhorn()), law),
        (mf.Attention(key, key, -0.7 * key.T @ key, 0.8, weights=mf.L2()), law),
        (mf.Attention(A, None, -A, weights=mf.Linear()), law),
    ]
    for drift, start in flows:
        model, h = mf.Transformer(drift), 1e-4
        times = [0.1, 0.1 + h, 0.1 + 2 * h]
        run = mf.solve(model, start, (0, 1), t_eval=times, rtol=1e-13)
        found, speed = (run.observables[n].values for n in ("interaction_energy", "speed"))
        assert (found[2] - found[0]) / (2 * h) == pytest.approx(speed[1] ** 2, rel=1e-6)
    for drift in (
        mf.Attention(A),
        mf.Attention(A, None, -0.6 * A),
        mf.Attention(np.stack([A, A]), None, A),
        mf.Attention(key, None, key.T @ key, weights=mf.L2()),
    ):
        assert np.isnan(energy(drift, law))


@given(seed=st.integers(0, 2**31), d=st.integers(1, 5), rank=st.integers(0, 5))
@reproducible
def test_the_closed_form_solves_its_equation(seed, d, rank):
    """S' = S M S at any time before the blow-up, singular covariances included; rank d - rank M."""
    rng = np.random.default_rng(seed)
    rank = min(rank, d)
    G, A = rng.standard_normal((d, d)), rng.standard_normal((d, rank))
    law = mf.Gaussian(np.zeros(d), G @ G.T / d + 0.05 * np.eye(d))
    model = mf.Transformer(mf.Attention(A.T if rank else 0.0, -A.T if rank else 0.0))
    closed = mf.ClosedCovariance(model, law)
    assert closed.blow_up_time == np.inf
    h, M = 1e-5, -2 * A @ A.T
    slope, S = (closed.at(0.3 + h) - closed.at(0.3 - h)) / (2 * h), closed.at(0.3)
    np.testing.assert_allclose(slope, S @ M @ S, atol=1e-7 * (1 + np.abs(S @ M @ S).max()))
    assert mf.Gaussian(law.mean, closed.limit).rank(1e-9) == d - rank
    np.testing.assert_allclose(closed.limit @ A, 0, atol=1e-9)
    np.testing.assert_allclose(closed.at(0), law.cov, atol=1e-13 * np.abs(law.cov).max())


def test_where_the_closed_form_does_not_hold_it_says_so():
    law = mf.Gaussian([0, 0], [[1, 0.3], [0.3, 0.5]])
    refused = {
        "commutes with the covariance": mf.Attention(V=np.diag([1.0, 2.0])),
        "softmax weights with constant": mf.Attention(weights=mf.L2()),
        "constant parameters": mf.Attention(beta=lambda t: t),
    }
    for message, drift in refused.items():
        with pytest.raises(mf.MeanfieldError, match=message):
            mf.ClosedCovariance(mf.Transformer(drift), law)
    closed = mf.ClosedCovariance(mf.Transformer(mf.Attention()), law)
    with pytest.raises(mf.MeanfieldError, match=r"blows up at t = 0\.4"):
        _ = closed.limit
    with pytest.raises(ValueError, match=r"t must be >= 0 and < 0\.4"):
        closed.at(1.0)
    with pytest.raises(ValueError, match="got t = nan"):
        closed.at(np.nan)
    for time in ("1", None):
        with pytest.raises(TypeError, match="t must be real numbers"):
            closed.at(time)
    times = np.array([[0.0, 0.1, 0.4]])
    assert closed.at(times).shape == (1, 3, 2, 2)
    np.testing.assert_array_equal(closed.at(times)[0, 2], closed.at(0.4))
    with pytest.raises(TypeError, match=r"model must be Transformer\(...\); got model = Attention"):
        mf.ClosedCovariance(mf.Attention(), law)
    with pytest.raises(TypeError, match=r"Gaussian.*; got .* = Tokens"):
        mf.ClosedCovariance(mf.Transformer(mf.Attention()), law.sample(4, rng=0))


@pytest.mark.parametrize("Q", [1e200, -1e200])
def test_a_closed_form_beyond_numbers_is_refused(Q):
    """1 / T = 2e400."""
    model = mf.Transformer(mf.Attention(Q=Q))
    with pytest.raises(mf.MeanfieldError, match=r"L.T M L below 1e308.*Divide beta by some c"):
        mf.ClosedCovariance(model, mf.Gaussian([0, 0], 1e200 * np.eye(2)))
    closed = mf.ClosedCovariance(model, mf.Gaussian([0, 0], 1e100 * np.eye(2)))
    assert closed.blow_up_time == (pytest.approx(5e-301) if Q > 0 else np.inf)
    late = mf.ClosedCovariance(mf.Transformer(mf.Attention(Q=1e-300)), mf.Gaussian([0], [[1e-10]]))
    assert late.blow_up_time == np.inf


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("slopes", "variances", "T"),
    [([-1e6, 1e-7], [1.0, 1.0], 5e6), ([-1.0, 1.0], [1.0, 1e-13], 5e12)],
)
def test_a_late_blow_up_is_not_taken_for_a_limit(slopes, variances, T):
    model = mf.Transformer(mf.Attention(np.diag(slopes)))
    law = mf.Gaussian([0, 0], np.diag(variances))
    closed = mf.ClosedCovariance(model, law)
    assert closed.blow_up_time == pytest.approx(T, rel=1e-12)
    with pytest.raises(mf.MeanfieldError, match="There is no limit"):
        _ = closed.limit
    run = mf.solve(model, law, (0, 10 * T), t_eval=[10 * T])
    assert run.stats["blow_up_time"] == pytest.approx(T, rel=1e-8)


@pytest.mark.repeats
@every_kind
@given(seed=st.integers(0, 2**31), d=st.integers(1, 4))
@reproducible
def test_the_speed_is_that_of_the_law(kind, seed, d):
    """W2 of the laws h before and after, over 2 h; at most (int |v|^2 dmu)^(1/2)."""
    model, law = random_case(seed, d, kind)
    law, h = mf.Gaussian(law.mean, law.cov + 0.3 * np.eye(d)), 1e-4
    mean, cov = rates(model, law)
    ends = [mf.Gaussian(law.mean + s * h * mean, law.cov + s * h * cov) for s in (-1, 1)]
    motion = GaussianMotion(model, law)
    y = motion.coordinates(law)
    velocity = motion.velocity(y, 0.0)
    speed = motion.rate(y, velocity)
    assert speed <= np.linalg.norm(velocity) * (1 + 1e-12)
    scale = 1 + np.linalg.norm(velocity) ** 3  # of the third derivative along the path
    assert float(mf.wasserstein(*ends)) / (2 * h) == pytest.approx(speed, abs=1e-6 * scale)


NORMAL = mf.Gaussian([0.0, 0.0], np.eye(2))
REFUSED = [
    (mf.Transformer(mf.Attention(weights=mf.Unnormalised())), "not affine in x.*Softmax.*sample"),
    (mf.Transformer(mf.Attention(weights=mf.Sigmoid())), "not affine in x"),
    (
        mf.Transformer(mf.Attention(weights=mf.Sinkhorn(tolerance=0.5, most_iterations=1))),
        r"closed form, without iterations.*got Sinkhorn\(tolerance=0\.5, most_iterations=1\)",
    ),
    (mf.Transformer(mf.Attention(causal=True)), "a mixture of them, which is not Gaussian"),
    (mf.Transformer(mf.Hardmax()), "moves under Attention.*Hardmax is not affine"),
    (mf.Transformer(mf.SA(1.0)), "lives in R.d and moves under Attention"),
    (
        mf.Transformer(mf.Attention(), normalisation=mf.PreLN()),
        r"without normalisation; got .*PreLN",
    ),
    (mf.Transformer(mf.Attention(beta=-1.0, weights=mf.L2())), "no integral over this Gaussian"),
]


@pytest.mark.parametrize(("model", "message"), REFUSED)
def test_what_does_not_keep_a_gaussian_is_refused_with_the_reason(model, message):
    with pytest.raises(mf.MeanfieldError, match=message):
        mf.solve(model, NORMAL, (0, 1))


def test_other_dimensions_and_ensembles_are_refused():
    with pytest.raises(ValueError, match="is for dimension 3; got points of dimension 2"):
        mf.solve(mf.Transformer(mf.Attention(np.eye(3))), NORMAL, (0, 1))
    with pytest.raises(ValueError, match="expects a single model; got an ensemble"):
        mf.solve(mf.Transformer(mf.Attention(beta=[1.0, 2.0])), NORMAL, (0, 1))
