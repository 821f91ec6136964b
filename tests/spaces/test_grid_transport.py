"""The transport that every space inherits, by its transforms, against the one written for it."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.spaces import Space
from meanfield.spaces.linearised import GridTransport

EPS = np.finfo(float).eps
SPACES = [mf.Circle(20), mf.Sphere(12), mf.Zonal(5, 16)]
BETAS = np.array([1.0, 3.0, 6.0])
DRIFTS = [mf.USA(beta=BETAS), mf.SA(beta=BETAS), mf.SA(beta=4.0)]
WRITTEN = [  # quotients of axisymmetric densities have the inherited transport alone
    (space, drift)
    for space in SPACES
    for drift in DRIFTS
    if not (isinstance(drift, mf.SA) and isinstance(space, mf.Zonal))
]


def densities(space, seed):
    """Three random positive densities."""
    rng = np.random.default_rng(seed)
    return mf.Density.stack([space.perturbed(0.02, rng=rng) for _ in BETAS]).coefficients


def tables_of(space, drift):
    """Multipliers of W and of Z, (members, degree + 1); None for Z = 1."""
    tables = (f(space.degree, space.dimension) for f in (drift.attraction, drift.normaliser))
    return [None if table is None else np.atleast_2d(table) for table in tables]


def both(space, drift, members, pairs=False):
    """The inherited transport, and that of the space."""
    tables = tables_of(space, drift)
    inherited, written = Space.transports[0], space.transport(*tables, members, pairs)
    assert inherited is GridTransport and type(written) is not GridTransport
    return inherited(space, *tables, members, pairs), written


@pytest.mark.parametrize(("space", "drift"), WRITTEN, ids=str)
def test_it_equals_the_transport_written_for_the_space(space, drift):
    mu = densities(space, 1)
    inherited, written = both(space, drift, 3)
    expected = written(mu)
    tolerance = 200 * space.degree * EPS * np.abs(expected).max()
    np.testing.assert_allclose(inherited(mu), expected, rtol=0, atol=tolerance)
    assert inherited.speed > 0


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_with_pairs_each_density_moves_in_the_field_of_the_other_measure(space):
    pairs = np.concatenate([densities(space, 2), densities(space, 3)], axis=1)
    drift = mf.USA(beta=4.0) if isinstance(space, mf.Zonal) else mf.SA(beta=4.0)
    inherited, written = both(space, drift, 3, pairs=True)
    expected = written(pairs)
    tolerance = 200 * space.degree * EPS * np.abs(expected).max()
    np.testing.assert_allclose(inherited(pairs), expected, rtol=0, atol=tolerance)


def test_quotients_move_axisymmetric_densities_as_on_the_sphere():
    zonal, sphere, drift = mf.Zonal(3, 16), mf.Sphere(16), mf.SA(beta=4.0)
    starts = zonal.von_mises_fisher(2.0), sphere.von_mises_fisher([0.0, 0.0, 1.0], 2.0)
    along, moved = (
        mu.space.transport(*tables_of(mu.space, drift), 1)(mu.coefficients[None])[0]
        for mu in starts
    )
    axial = np.flatnonzero(sphere.real_modes)
    tolerance = 200 * 16 * EPS * np.abs(along).max()
    np.testing.assert_allclose(moved[axial], along, rtol=0, atol=tolerance)


def test_members_do_not_depend_on_each_other():
    space, mu = SPACES[0], densities(SPACES[0], 4)
    together, _ = both(space, mf.SA(beta=BETAS), 3)
    for i, beta in enumerate(BETAS):
        alone, _ = both(space, mf.SA(beta=beta), 1)
        np.testing.assert_array_equal(together(mu)[i], alone(mu[i : i + 1])[0])


def test_the_speed_is_the_largest_on_the_grid():
    """v = -r sin(theta) for Kuramoto, r the order parameter; 21 points sample it to 1 %."""
    space = mf.Circle(20)
    inherited, _ = both(space, mf.Kuramoto(), 1)
    density = space.von_mises(0.3, 2.0)
    inherited(density.coefficients[None])
    r = abs(density.moment(1))
    assert 0.99 * r <= inherited.speed[0] <= r * (1 + 4 * EPS)


def test_a_space_that_inherits_it_solves_as_before(monkeypatch):
    model, start = mf.Transformer(mf.SA(beta=3.0), kappa=20.0), mf.Circle(32).von_mises(0.2, 1.0)
    before = mf.solve(model, start, t_span=(0, 2), rtol=1e-9)
    monkeypatch.setattr(mf.Circle, "transports", Space.transports)
    run = mf.solve(model, start, t_span=(0, 2), rtol=1e-9)
    degree = max(run.final.space.degree, before.final.space.degree)
    finals = [one.final.resample(degree).coefficients for one in (run, before)]
    np.testing.assert_allclose(*finals, rtol=0, atol=1e-8)
