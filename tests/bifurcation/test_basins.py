"""Shares of starts by where runs end."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.bifurcation.basins import wilson

CIRCLE = mf.Circle(16)
EAST = mf.Field(lambda x: np.eye(2)[0] * np.ones_like(x))
AXIS = mf.Attention(np.eye(2), np.eye(2), np.diag([1, 0]), 0.0)


def drawn(rng):
    return CIRCLE.von_mises(rng.uniform(0, 2 * np.pi), rng.uniform(0.5, 4))


def test_wilson_intervals():
    """They solve |share - p| = z (p (1 - p)/n)^(1/2)."""
    low, high = wilson(np.array([0, 3, 10]), 10, 0.95)
    for p in (low[1], high[0], high[1], low[2]):
        share = {low[1]: 0.3, high[1]: 0.3, high[0]: 0.0, low[2]: 1.0}[p]
        assert abs(share - p) == pytest.approx(1.959963985 * np.sqrt(p * (1 - p) / 10))
    assert low[0] == 0 and high[2] == 1


def test_two_attractors_share_the_starts(tmp_path):
    """Under weights even in x, a state at each end of the axis: runs go to the nearer one."""
    model = mf.Transformer(
        mf.Kuramoto() + mf.Attention(np.diag([1, 0]), np.eye(2), np.eye(2), 1.0), 4.0
    )
    starts = [CIRCLE.von_mises(angle, 2.0) for angle in (0.1, 0.4, -0.7, np.pi - 0.2, np.pi + 0.5)]
    found = mf.basins(model, starts, progress=False)
    assert sorted(found.data["count"].values[0]) == [2, 3]
    assert [name[:5] for name in found.densities] == ["state", "state"]
    again = mf.load(found.save(tmp_path / "basins.nc"))
    assert again.data.equals(found.data) and repr(again) == repr(found)
    one, other = found.densities["state 1"], again.densities["state 1"]
    np.testing.assert_array_equal(one.coefficients, other.coefficients)
    assert found.plot().axes


@pytest.mark.long
def test_ends_are_matched_along_a_parameter(tmp_path):
    """Two states in a weak field, one beyond the fold at h = 0.1140."""
    model = mf.Transformer(mf.Kuramoto() + 0.1 * EAST + 0.4 * AXIS, 3.0)
    starts = [CIRCLE.von_mises(angle, 3.0) for angle in (0.3, np.pi)]
    found = mf.basins(model, starts, vary={"factors[1]": [0.02, 0.05, 0.4]}, progress=False)
    share = found.data.share
    first, second = (share.sel(end=f"state {i}").values for i in (1, 2))
    np.testing.assert_array_equal(np.sort([first, second], axis=0)[1], [0.5, 0.5, 1.0])
    assert found.data.sizes["end"] == 2 and found.data["factors[1]"].values[-1] == 0.4
    path = found.save(tmp_path / "basins.nc")
    assert repr(mf.load(path, model=model).model) == repr(model)
    assert mf.load(path).model.kappa == 3.0
    north = mf.Field(lambda x: np.eye(2)[1] * np.ones_like(x))
    other = mf.Transformer(mf.Kuramoto() + 0.1 * north + 0.4 * AXIS, 3.0)
    with pytest.raises(
        ValueError,
        match=r"differ from those saved: the residual of a state, to rounding, is .*, not 0",
    ):
        mf.load(path, model=other)
    assert found.plot().axes


@pytest.mark.long
def test_waves_and_runs_that_end_nowhere():
    c, s = np.cos(0.5), np.sin(0.5)
    lag = mf.Attention(np.eye(2), np.eye(2), np.array([[c, -s], [s, c]]), 0.0)
    found = mf.basins(mf.Transformer(lag, 3.0), drawn, rng=0, count=3, progress=False)
    assert found.data.end.values.tolist() == ["wave 1"] and found.data.share.item() == 1
    model = mf.Transformer(mf.Kuramoto(), 2.2)
    short = mf.basins(model, drawn, rng=0, count=3, t_end=0.5, progress=False)
    assert short.data.sel(end="nowhere").share.item() > 0.6


@pytest.mark.long
def test_the_cycle_of_active_rotators():
    """theta' = w - b sin theta with noise and no coupling but a weak one: order returns."""
    turn = mf.Field(lambda x: 1.0 * np.stack([-x[..., 1], x[..., 0]], -1))
    model = mf.Transformer(6.0 * mf.Kuramoto() + turn + 0.8 * EAST, 3.0)
    found = mf.basins(model, [CIRCLE.von_mises(1.0, 3.0)], t_end=60.0, progress=False)
    (name,) = found.data.end.values
    assert name == "cycle 1" and 5 < found.data.period.item() < 20


@pytest.mark.parametrize(
    ("arguments", "options", "error", "match"),
    [
        ((mf.Transformer(EAST, 2.0), [1.0]), {}, TypeError, r"starts = \[1\.0\]"),
        ((EAST, drawn), {}, TypeError, "model"),
        ((mf.Transformer(EAST, 2.0), drawn), {"level": 2.0, "rng": 0}, ValueError, "level"),
        ((mf.Transformer(EAST), drawn), {"rng": 0}, ValueError, "noise"),
        *(
            ((mf.Transformer(EAST, 2.0), drawn), {"rng": 0, "vary": vary}, error, "vary must be")
            for vary, error in (
                ({}, TypeError),
                ({"b": (1, 2)}, TypeError),
                ({3: (1, 2)}, TypeError),
                ({"kappa": None}, TypeError),
                ({"kappa": []}, ValueError),
                ({"kappa": [[1, 2]]}, ValueError),
            )
        ),
    ],
)
def test_refusals(arguments, options, error, match):
    with pytest.raises(error, match=match):
        mf.basins(*arguments, **options)


@pytest.mark.long
def test_a_cycle_is_counted_with_its_own_period_and_under_its_own_name():
    """Outputs are farther apart than returns may be: twice the period was taken for it."""
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    field = mf.Field(lambda x: 0.8 * (x @ turn.T) + np.array([0.5, 0.0]))
    model = mf.Transformer(2.0 * mf.Kuramoto() + field, 1.0)
    starts = [mf.Circle(12).von_mises(angle, 0.5) for angle in (0.0, 2.0)]
    data = mf.basins(model, starts, vary={"kappa": (1.0, 1.4)}).data
    assert list(data.end.values) == ["cycle 1", "state 1"]
    np.testing.assert_array_equal(data["count"], [[0, 2], [2, 0]])
    assert float(data.period.sel(end="cycle 1")[1]) == pytest.approx(9.10280753594, rel=1e-4)
