"""Densities that are wrong are not called resolved: at the end, at outputs, and by member."""

import numpy as np
import pytest
from scipy.special import gammaln, ive

import meanfield as mf
from meanfield import UnresolvedWarning

D, TIMES = 50, [0.0, 5.0, 20.0]
START = mf.Zonal(D, 32).density(lambda x: 1 + 0.5 * x)


def cluster(kappa, d):
    """The free energy and the first moment of the ordered stationary state of Kuramoto."""
    r, order = 1.0, d / 2 - 1
    for _ in range(200):
        c = kappa * r
        r = ive(order + 1, c) / ive(order, c)
    log_size = gammaln(d / 2) + order * np.log(2 / c) + np.log(ive(order, c)) + c
    return r * r / 2 - log_size / kappa, r


@pytest.mark.parametrize(("d", "kappa"), [(50, 300.0), (30, 300.0)])
def test_tight_clusters_in_many_dimensions_are_computed(d, kappa):
    """Free energy -.26934 in d = 50, which came out as -.5448 on 4096 modes."""
    free_energy, r = cluster(kappa, d)
    start = mf.Zonal(d, 32).density(lambda x: 1 + 0.5 * x)
    run = mf.solve(mf.Transformer(mf.Kuramoto(), kappa), start, (0, 20), t_eval=TIMES, rtol=1e-4)
    data = run.observables.isel(t=-1)
    assert run.resolved and run.stats["highest_degree"] <= 256 and run.stats["steps"] < 1000
    assert abs(data.order_parameter - r) < 1e-9 and abs(data.free_energy - free_energy) < 1e-6
    least = run.observables[["minimum", "dissipation"]].min()
    assert least.minimum > -1e-4 and least.dissipation > -1e-5


@pytest.mark.parametrize(("beta", "d"), [(16.0, 20), (16.0, 30)])
def test_softmax_attention_in_many_dimensions_finds_its_stationary_state(beta, d):
    """Steps are limited by the speed of the highest modes: 54 757 in d = 30 were rounding."""
    model = mf.Transformer(mf.SA(beta), 300.0)
    start = mf.Zonal(d, 32).von_mises_fisher(1.0)
    run = mf.solve(model, start, (0, 30), t_eval=[30], rtol=1e-4)
    found = mf.stationary(model, run.final)
    assert run.resolved and run.stats["highest_degree"] <= 512 and run.stats["steps"] < 2000
    assert abs(run.final.moment(1) - found.density.moment(1)) < 1e-5


def test_a_state_that_rounding_hides_is_not_resolved_and_the_advice_is_not_more_modes():
    """At kappa = 1000 the L2 norm is 5e17, and integrals of values are off by 1e-16 of it."""
    kappa = np.array([300.0, 1000.0])
    model = mf.Transformer(mf.Kuramoto(), kappa)
    with pytest.warns(UnresolvedWarning, match=r"Member \(1,\).*L2 norm") as caught:
        runs = mf.solve(model, START, (0, 20), t_eval=TIMES, rtol=1e-4)
    assert not runs.resolved and runs.unresolved_since == 20 and "degree" not in str(caught[0])
    assert runs.stats["unresolved_since"] == [None, 20.0] and runs.success
    assert abs(runs.final[1].moment(1) - cluster(1000.0, D)[1]) < 1e-5
    single = mf.Transformer(mf.Kuramoto(), 1000.0)
    with pytest.warns(UnresolvedWarning, match="negative mass"):
        run = mf.solve(single, START, (0, 20), t_eval=TIMES, rtol=1e-4)
    assert not run.resolved and run.unresolved_since == 20


def test_where_the_quotient_fails_the_advice_is_not_more_modes():
    """SA(40) in d = 16: Z * mu falls below the errors of mu, e^-80 of its largest value."""
    start = mf.Zonal(16, 32).density(lambda x: 1 + 0.5 * x)
    with pytest.warns(UnresolvedWarning, match="divided by Z"):
        run = mf.solve(
            mf.Transformer(mf.SA(40.0), 300.0), start, (0, 20), rtol=1e-4, max_degree=256
        )
    assert not run.resolved and "aise max_degree" not in run.message


def test_rounding_that_needs_more_than_the_tolerance_is_told_from_too_few_modes():
    model, start = mf.Transformer(mf.SA(16.0), 300.0), mf.Zonal(30, 32).von_mises_fisher(5.0)
    with pytest.warns(UnresolvedWarning, match="rtol of 1e-0[567] or more"):
        run = mf.solve(model, start, (0, 20), t_eval=[20], rtol=1e-8, max_degree=256)
    assert not run.resolved and "max_degree" not in run.message


def negative(space, depth):
    """A density that is negative by about `depth` at x = -1, of its maximum."""
    if space.dimension == 2:
        return np.array([1, 0.5 * (1 + depth), *[0] * (space.degree - 1)], complex)
    coefficients = space.uniform().coefficients.copy()
    coefficients[space.degrees == 1] = 0
    first = np.flatnonzero(space.degrees == 1)[0]
    coefficients[first] = (1 + depth) / np.sqrt(3)
    return coefficients


@pytest.mark.parametrize("space", [mf.Circle(8), mf.Sphere(6), mf.Zonal(3, 8)], ids=repr)
@pytest.mark.parametrize("shape", [(), (2,)], ids=["single", "ensemble"])
def test_outputs_that_are_negative_are_not_resolved_though_the_end_is(space, shape, monkeypatch):
    """The second of three states is replaced on its way into the record."""
    from meanfield.solving.solve import _Record

    save = _Record.save

    def spoiled(self, t, state):
        if t == 1.0:
            rows = state.coefficients.copy()
            rows[(-1,) if shape else ()] = negative(state.space, 0.1)
            state = type(state).computed(rows, state.space)
        save(self, t, state)

    monkeypatch.setattr(_Record, "save", spoiled)
    beta = np.array([0.5, 1.0]) if shape else 1.0
    model = mf.Transformer(mf.USA(beta), 2.0)
    with pytest.warns(UnresolvedWarning, match=r"at t = 1 is negative"):
        run = mf.solve(model, space.uniform(), (0, 2), t_eval=[0, 1, 2])
    assert run.success and not run.resolved and run.unresolved_since == 1
    assert run.stats["unresolved_since"] == ([None, 1.0] if shape else 1.0)


def test_slices_that_are_negative_are_not_resolved(monkeypatch):
    from meanfield.solving.solve import _Record

    save, circle = _Record.save, mf.Circle(8)

    def spoiled(self, t, state):
        if t == 1.0:
            rows = state.each.copy()
            rows[3] = negative(circle.with_degree(state.slice_space.degree), 0.1)
            state = type(state).computed(state.space.joined(rows), state.space)
        save(self, t, state)

    monkeypatch.setattr(_Record, "save", spoiled)
    start = circle.indexed(lambda s, theta: 1 + 0.2 * s * np.cos(theta))
    with pytest.warns(UnresolvedWarning, match=r"at t = 1 is negative"):
        run = mf.solve(mf.Transformer(mf.USA(1.0), 2.0), start, (0, 2), t_eval=[0, 1, 2])
    assert not run.resolved and run.unresolved_since == 1
