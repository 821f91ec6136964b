"""Densities whose harmonics are multiples of n: as many degrees as the gaps between them need.

A density invariant under turns by 2 pi/n has the harmonics 0, n, 2n, ... alone, and W = cos(n z)
moves nu(n z) on the circle as Kuramoto's drift moves nu, n^2 times as fast.
"""

import numpy as np
import pytest
from scipy.special import iv

import meanfield as mf

ORDERED = 0.7241587176263531  # r = I_1(3 r)/I_0(3 r)
FOLDS = pytest.mark.parametrize("n", [3, 5, 6, 12])


def cosine(n):
    """The drift of W = cos(n theta)."""
    return mf.CosineSeries(np.eye(n + 1)[n])


def folded(n, *, degree=16, size=0.3):
    """The density 1 + size cos(n theta) on the circle."""
    return mf.Circle(degree).density(lambda theta: 1 + size * np.cos(n * theta))


@FOLDS
def test_a_density_of_n_equal_clusters_settles_where_bessel_functions_say(n):
    run = mf.solve(mf.Transformer(cosine(n), 3.0), folded(n), (0, 60 / n**2))
    assert run.status == "finished"
    assert abs(run.final.moment(n)) == pytest.approx(ORDERED, abs=1e-8)
    moments = [abs(run.final.moment(k * n)) for k in (2, 3)]
    bessel = iv(np.array([2, 3]), 3 * ORDERED) / iv(0, 3 * ORDERED)
    assert moments == pytest.approx(bessel.tolist(), abs=1e-8)


@pytest.mark.parametrize("n", [5, 12])
@pytest.mark.parametrize("drift", [mf.USA(4.0), mf.SA(4.0)], ids=["USA", "SA"])
def test_gaps_do_not_change_a_run_under_attention(drift, n):
    """As on degrees given in advance."""
    model, span = mf.Transformer(drift, 2.0), (0, 1.0)
    run = mf.solve(model, folded(n), span)
    fixed = mf.solve(model, folded(n), span, min_degree=128, max_degree=128)
    for k in (n, 2 * n):
        assert run.final.resample(128).moment(k) == pytest.approx(fixed.final.moment(k), abs=1e-8)


@pytest.mark.parametrize("n", [3, 5])
def test_a_product_density_on_the_torus_has_the_moments_of_its_factors(n):
    """W = cos n x + cos n y acts on each angle apart, as on the circle."""
    kernel = mf.PeriodicKernel(lambda x, y: np.cos(n * x) + np.cos(n * y))
    start = mf.Torus(8).density(lambda x, y: (1 + 0.3 * np.cos(n * x)) * (1 + 0.2 * np.cos(n * y)))
    span = (0, 6 / n**2)
    run = mf.solve(mf.Transformer(kernel, 3.0), start, span, rtol=1e-7)
    first, second = [
        mf.solve(mf.Transformer(cosine(n), 3.0), folded(n, size=a), span, min_degree=128)
        .final.moment(n).real for a in (0.3, 0.2)
    ]  # fmt: skip
    waves, c = run.final.space.waves, run.final.coefficients
    for wave, expected in ([(n, 0), first], [(0, n), second], [(n, n), first * second]):
        (moment,) = c[(waves == wave).all(axis=1)].real
        assert moment == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("n", [3, 5, 6])
def test_a_field_of_degree_n_alone_moves_densities_on_the_sphere(n):
    """V = Re (x + iy)^n, as on degrees given in advance."""
    V = mf.Potential(lambda x: ((x[..., 0] + 1j * x[..., 1]) ** n).real)
    model, start = mf.Transformer(V, 0.5), mf.Sphere(8).uniform()
    run, fixed = (
        mf.solve(model, start, (0, 0.3), rtol=1e-7, min_degree=k, max_degree=48) for k in (8, 48)
    )
    difference = run.final.resample(48).coefficients - fixed.final.coefficients
    assert np.abs(difference).max() < 3e-7


@pytest.mark.parametrize("n", [5, 12])
def test_common_rotations_do_not_change_the_size_of_a_moment(n):
    common = mf.CommonRotations(2.0)
    model = mf.Transformer(cosine(n), 3.0, common=common)
    run = mf.solve(model, folded(n), (0, 60 / n**2), dt=0.2 / n**2, rng=1)
    assert abs(run.final.moment(n)) == pytest.approx(ORDERED, abs=1e-7)


def test_members_of_an_ensemble_may_have_different_symmetry():
    """Each as alone: one degree for all is enough for the one with the widest gaps."""
    model = mf.Transformer(cosine(6) + cosine(5) + cosine(1), 3.0)
    starts = [folded(n) for n in (6, 5, 1)]
    run = mf.solve(model, mf.Density.stack(starts), (0, 2.0))
    for member, start in zip(run.final, starts, strict=True):
        exact = mf.solve(model, start, (0, 2.0), min_degree=128).final
        np.testing.assert_allclose(
            member.resample(128).coefficients, exact.resample(128).coefficients, rtol=0, atol=1e-8
        )


@pytest.mark.parametrize("n", [5, 6])
def test_slices_of_indexed_densities_have_gaps_too(n):
    """Slices that begin alike in symmetry, and apart in size, end alike."""
    start = mf.Circle(16).indexed(
        lambda s, theta: 1 + (0.2 + 0.2 * s) * np.cos(n * theta), mf.Positions(order=3)
    )
    run = mf.solve(mf.Transformer(cosine(n), 3.0), start, (0, 100 / n**2))
    assert abs(run.final.moment(n)) == pytest.approx(ORDERED, abs=1e-8)


def test_a_single_large_degree_far_above_the_others_is_kept():
    """1 + cos(theta)/2 + cos(40 theta)/4 under diffusion: each harmonic decays on its own."""
    start = mf.Circle(64).density(lambda t: 1 + 0.5 * np.cos(t) + 0.25 * np.cos(40 * t))
    run = mf.solve(mf.Transformer(0.0 * mf.Kuramoto(), 1600.0), start, (0, 1.0))
    exact = [0.25 * np.exp(-1 / 1600), 0.125 * np.exp(-1.0)]
    assert [run.final.moment(k).real for k in (1, 40)] == pytest.approx(exact, abs=1e-9)
