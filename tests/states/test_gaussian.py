"""The normal law as a state: root, variances, rank, samples, what is no covariance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf

reproducible = settings(deadline=None, derandomize=True, max_examples=60)


@given(seed=st.integers(0, 2**31), d=st.integers(1, 6), exponent=st.integers(-300, 300))
@reproducible
def test_root_and_variances_are_those_of_the_covariance(seed, d, exponent):
    rng = np.random.default_rng(seed)
    cov = np.cov(rng.standard_normal((d, 3 * d + 2))).reshape(d, d) * 10.0**exponent
    law = mf.Gaussian(np.zeros(d), cov)
    scale = np.abs(cov).max()
    np.testing.assert_allclose(law.root @ law.root.T / scale, cov / scale, atol=1e-13)
    values = np.linalg.eigvalsh(cov / scale)[::-1]
    np.testing.assert_allclose(law.variances / scale, values, atol=1e-13)


def test_ranks_count_variances():
    law = mf.Gaussian(np.zeros(3), np.diag([1.0, 1e-3, 1e-9]))
    assert [law.rank(share) for share in (1e-1, 1e-6, 1e-10, 0)] == [1, 2, 3, 3]
    assert mf.Gaussian([0, 0], np.zeros((2, 2))).rank() == 0
    for share in ("a", None, True, -1.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="negligible must be a share"):
            law.rank(share)


def test_samples_of_a_law_from_a_run_have_its_covariance():
    """Its root is triangular, not symmetric."""
    V = np.array([[0.0, 1.0], [-0.5, 0.2]])
    model = mf.Transformer(mf.Attention(V=V, weights=mf.L2()))
    law = mf.solve(model, mf.Gaussian([0, 0], [[1, 0.8], [0.8, 1]]), (0, 2)).final
    assert abs(law.root[0, 1] - law.root[1, 0]) > 0.1
    sample = law.sample(100_000, rng=3).x
    error = np.abs(np.cov(sample.T) - law.cov).max() / law.cov.max()
    assert error < 5 * np.sqrt(2 / len(sample))
    ends = [mf.Gaussian.of_root(law.mean, root) for root in (law.root, _symmetric(law.cov))]
    assert float(mf.wasserstein(*ends)) < 1e-13


def _symmetric(cov):
    return mf.Gaussian(np.zeros(len(cov)), cov).root


def test_a_trace_that_overflows_is_refused():
    with pytest.raises(ValueError, match=r"a trace below 1\.8e308; got inf"):
        mf.Gaussian([0.0, 0.0], 1e308 * np.eye(2))
    assert "trace of the covariance 1e+308" in repr(mf.Gaussian([0.0], [[1e308]]))
    with pytest.raises(ValueError, match="symmetric and positive semidefinite"):
        mf.Gaussian([0.0, 0.0], [[1e308, 1.7e308], [1.7e308, 1e307]])


@pytest.mark.parametrize("cov", [[[1.0, 2.0], [2.0]], ((1.0, 2.0), (2.0,)), [1.0, [2.0]]])
def test_rows_of_different_length_are_called_so(cov):
    with pytest.raises(ValueError, match=r"covariance .* rows of equal length"):
        mf.Gaussian([0.0, 0.0], cov)
    with pytest.raises(TypeError, match="covariance must be real numbers"):
        mf.Gaussian([0.0, 0.0], [[1.0, None], [None, 1.0]])


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_quadrature_integrates_polynomials(d):
    """Degree 2 n - 1 along each axis: E<b, x>^6 = 15 (b^T S b)^3 about the mean, for n = 4."""
    rng = np.random.default_rng(d)
    mean, M, b = rng.standard_normal(d), rng.standard_normal((d, d)), rng.standard_normal(d)
    law = mf.Gaussian(mean, M @ M.T)
    tokens = law.quadrature(4)
    assert len(tokens) == 4**d and tokens.masses.sum() == pytest.approx(1, abs=1e-14)
    variance = b @ law.cov @ b
    for power, moment in (
        (1, 0),
        (2, variance),
        (3, 0),
        (4, 3 * variance**2),
        (6, 15 * variance**3),
    ):
        found = tokens.expect(lambda x, power=power: ((x - mean) @ b) ** power)
        assert found == pytest.approx(moment, rel=1e-12, abs=1e-12 * variance ** (power / 2))


def test_a_singular_law_has_nodes_on_its_plane():
    tokens = mf.Gaussian([1.0, 2.0], [[1, 1], [1, 1]]).quadrature(5)
    assert tokens.x.shape == (5, 2)
    np.testing.assert_allclose(tokens.x[:, 1] - tokens.x[:, 0], 1, atol=1e-14)
    assert mf.Gaussian([1.0, 2.0], np.zeros((2, 2))).quadrature(5).x.tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("nodes", [1, 0, -3, 2.5, "8", None, True, 1001])
def test_a_quadrature_has_a_number_of_nodes(nodes):
    with pytest.raises((ValueError, TypeError), match="nodes"):
        mf.Gaussian([0.0], [[1.0]]).quadrature(nodes)


def test_a_quadrature_in_high_dimension_is_refused():
    with pytest.raises(ValueError, match=r"nodes = 5 along each axis.*are needed"):
        mf.Gaussian(np.zeros(40), np.eye(40)).quadrature(5)
