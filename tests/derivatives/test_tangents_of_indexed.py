"""Runs of indexed densities, differentiated."""

import numpy as np
import pytest

import meanfield as mf

circle = mf.Circle(32)
positions = mf.Positions([0, 0.5, 1], order=5)
start = circle.indexed(lambda s, x: 1 + 0.4 * np.cos(x - s) + 0.2 * np.sin(2 * x), positions)
FIXED = {"dt": 0.03, "min_degree": 32, "max_degree": 32, "progress": False}
STEP = 1e-3


def _pushed(node=0):
    h = np.zeros_like(start.each)
    h[node, 1] = 0.2 - 0.1j
    return h.ravel()


def _by_differences(run_at):
    """The derivative at 0 by differences of order 4."""
    c = [run_at(k * STEP).final.coefficients for k in (-2, -1, 1, 2)]
    return (c[0] - 8 * c[1] + 8 * c[2] - c[3]) / (12 * STEP)


@pytest.mark.parametrize(("drift", "causal"), [(mf.SA, True), (mf.USA, mf.Causal("mean", 0.5))])
def test_tangents_are_those_of_differences(drift, causal):
    h = _pushed()

    def run(beta=1.5, kappa=4.0, mu=start, **more):
        model = mf.Transformer(drift(beta), kappa, causal=causal)
        return mf.solve(model, mu, (0, 0.3), t_eval=[0.3], **FIXED, **more)

    found = run(tangents=["beta", "kappa", h]).tangents
    wanted = {
        "beta": lambda e: run(beta=1.5 + e),
        "kappa": lambda e: run(kappa=4.0 + e),
        "direction_0": lambda e: run(mu=type(start)(start.geometry, start.coefficients + e * h)),
    }
    for name, at in wanted.items():
        error = np.abs(found[name][-1].coefficients - _by_differences(at)).max()
        assert error <= 1e-8, (name, error)
    assert np.ptp(found["beta"][-1].mass) <= 1e-14


def test_observables_change_as_the_states_do():
    model = mf.Transformer(mf.SA(1.5), 4.0, causal=True)

    def run(e, **more):
        mu = type(start)(start.geometry, start.coefficients + e * _pushed())
        return mf.solve(model, mu, (0, 0.3), t_eval=[0.3], **FIXED, **more)

    found = run(0.0, tangents=[_pushed()]).tangents.observables.isel(tangent=0, t=-1)
    plus, minus = (run(e).observables.isel(t=-1) for e in (1e-5, -1e-5))
    for name in ("order_parameter", "order_by_index"):
        slope = (plus[name].values - minus[name].values) / 2e-5
        assert np.abs(found[name].values - slope).max() <= 1e-8


def test_nothing_acts_on_what_comes_before():
    model = mf.Transformer(mf.SA(1.5), 4.0, causal=True)
    last = len(positions) - 1
    run = mf.solve(model, start, (0, 0.3), t_eval=[0.3], **FIXED, tangents=[_pushed(last)])
    change = run.tangents["direction_0"][-1].slices.norm
    assert (change[: positions.order] == 0).all()  # nodes of other pieces
    assert change[last] > 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"causal": mf.Causal(beta=lambda s: 1 + s)}, "a beta for each position"),
        ({"frequency": mf.OfIndex()}, "natural frequencies"),
    ],
)
def test_other_runs_are_refused(options, told):
    model = mf.Transformer(mf.SA(1.5), 4.0, **options)
    with pytest.raises(mf.MeanfieldError, match=told):
        mf.solve(model, start, (0, 0.1), tangents=["kappa"])
