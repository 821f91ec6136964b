"""Tangents of runs of characteristics: differences of the same steps, Ott and Antonsen."""

import numpy as np
import pytest

import meanfield as mf

FOURTH = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
STEP = 1e-3
CIRCLE = mf.Circle(16).density(lambda theta: 1 + 0.4 * np.cos(theta) + 0.2 * np.sin(2 * theta))
SPHERE = mf.Sphere(3).density(lambda *x: 1 + 0.4 * x[-1] + 0.1 * x[0])
ZONAL = mf.Zonal(5, 12).density(lambda *x: np.exp(0.4 * x[-1]))


def score(x):
    """By how much the logarithm of the density changes."""
    return x[:, 0] + 0.3 * x[:, -1] ** 2


def error_of(make, density, nodes, names):
    """The largest error of tangents against runs of the same steps."""
    start = mf.Characteristics(density, nodes=nodes)
    model = make()
    masses = start.masses * (score(start.points) - start.masses @ score(start.points))
    places = 0.1 * start.points[:, 0]
    if start.coordinates.ndim == 2:
        e = np.array([1.0, 2.0, -1.0])
        places = places[:, None] * (e - (start.points @ e)[:, None] * start.points)

    def solved(key="", s=0.0, tangents=()):
        moved = start.coordinates + (s * places if key == "direction_1" else 0)
        if moved.ndim == 2:
            moved = moved / np.linalg.norm(moved, axis=1, keepdims=True)
        other = start.moved(moved, start.masses + (s * masses if key == "direction_0" else 0))
        own = make(**({key: s} if key in names else {}))
        times = {"dt": 0.1, "t_eval": [0.13, 0.2]}
        return mf.solve(own, other, (0, 0.2), tangents=tangents, **times)

    assert model == make()
    run, error = solved(tangents=[*names, score, {"coordinates": places}]), 0.0
    for key, found in run.tangents.items():
        runs = {node: solved(key, node * STEP) for node in FOURTH}
        for i, h in enumerate(found):
            for name in ("coordinates", "points", "masses"):
                expected = sum(w * getattr(runs[n].states[i], name) for n, w in FOURTH.items())
                error = max(error, np.abs(expected / STEP - h[name]).max())
        measured = run.tangents.observables.sel(tangent=key)
        for name in measured:
            expected = sum(w * runs[n].observables[name].values for n, w in FOURTH.items()) / STEP
            error = max(error, np.abs(expected - measured[name].values).max())
    return error


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("kind", "density", "nodes"),
    [
        (mf.USA, CIRCLE, 260),
        (mf.SA, CIRCLE, 260),
        (mf.SA, SPHERE, 2600),
        (mf.USA, ZONAL, 200),
        (mf.SA, ZONAL, 200),
    ],
    ids=["S^1, USA", "S^1, SA", "S^2, SA", "S^4, USA", "S^4, SA"],
)
def test_zonal_drifts(kind, density, nodes):
    def make(beta=0.0):
        return mf.Transformer(kind(beta=2.0 + beta))

    assert error_of(make, density, nodes, ["beta"]) < 1e-9


@pytest.mark.long
def test_parts_by_harmonics_and_over_pairs():
    names = ["drifts[0].beta", "drifts[1].beta", "factors[1]", "factors[2]"]

    def make(**change):
        by = [change.get(name, 0.0) for name in names]
        attention = mf.Attention(V=np.diag([1.0, 0.5]), beta=1.0 + by[1])
        parts = [mf.SA(beta=2.0 + by[0]), attention, mf.Kuramoto()]
        return mf.Transformer(mf.Sum(parts, [1.0, 0.3 + by[2], 0.2 + by[3]]))

    assert error_of(make, CIRCLE, 260, names) < 1e-9


def test_a_normalisation_and_a_feed_forward_map():
    def make(beta=0.0):
        own = mf.FeedForward(0.3, 0.5, activation=np.tanh)
        drift = mf.SA(beta=2.0 + beta)
        return mf.Transformer(drift, normalisation=mf.NGPT(0.7), feedforward=own)

    assert error_of(make, CIRCLE, 260, ["beta"]) < 1e-9


def test_ott_and_antonsen():
    """r' = r (1 - r^2)/2 from a Poisson kernel, so that dr/dr_0 = r (1 - r^2)/(r_0 (1 - r_0^2))."""
    r0, t = 0.3, 2.0

    def poisson(theta):
        return (1 - r0**2) / (1 - 2 * r0 * np.cos(theta) + r0**2)

    def by_r0(x):
        inside = 1 - 2 * r0 * x[:, 0] + r0**2
        return -2 * r0 / (1 - r0**2) - (2 * r0 - 2 * x[:, 0]) / inside

    start = mf.Characteristics(mf.Circle(64).density(poisson), nodes=512)
    model = mf.Transformer(mf.Kuramoto())
    run = mf.solve(model, start, (0, t), tangents=[by_r0], rtol=1e-11)
    r = run.observables.order_parameter.values[-1]
    found = run.tangents.observables.order_parameter.values[0, -1]
    assert found == pytest.approx(r * (1 - r**2) / (r0 * (1 - r0**2)), rel=1e-9)


def test_refusals():
    start = mf.Characteristics(CIRCLE, nodes=400)
    model = mf.Transformer(mf.Kuramoto())
    with pytest.raises(TypeError, match="functions of unit vectors"):
        mf.solve(model, start, (0, 0.1), tangents=[np.ones(400)])
    with pytest.raises(ValueError, match="sum 0"):
        mf.solve(model, start, (0, 0.1), tangents=[{"masses": start.masses}])
    with pytest.raises(mf.MeanfieldError, match="without a reaction"):
        mf.solve(model.replace(reaction=1.0), start, (0, 0.1), tangents=[score])
