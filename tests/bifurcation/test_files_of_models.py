"""Files of diagrams of whole models, of functions of a number and of indexed densities."""

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(16)
STRETCHED = mf.Attention(np.diag([1.0, 0.8]), np.eye(2), np.eye(2), 1.5)
EAST = mf.Field(lambda x: np.eye(2)[0] * np.ones_like(x))
NORTH = mf.Field(lambda x: np.eye(2)[1] * np.ones_like(x))
PAIR = CIRCLE.indexed(lambda s, a: 1 + 0 * (a + s), mf.Classes([0.0, 1.0]))
OPTIONS = {"secondary": False, "max_step": 0.3, "progress": False}


def family(s):
    return mf.Transformer((1 + s) * mf.Kuramoto() + 0.2 * STRETCHED, 2.0)


@pytest.mark.parametrize(
    ("arguments", "options", "computable"),
    [
        ((mf.Transformer(mf.Kuramoto() + 0.3 * STRETCHED, 1.0), CIRCLE, (1.5, 2.5)), {}, True),
        pytest.param((mf.Transformer(mf.Kuramoto() + 0.3 * STRETCHED, 2.0), CIRCLE),
                     {"vary": {"factors[1]": (0.1, 0.5)}}, True, marks=pytest.mark.long),
        pytest.param((family, CIRCLE, (0.0, 0.3)), {}, False, marks=pytest.mark.long),
        ((mf.Transformer(mf.Kuramoto() + 0.1 * EAST, 2.0), CIRCLE),
         {"vary": {"factors[1]": (0.05, 0.1)}}, False),
        ((mf.Transformer(mf.Kuramoto(), 2.0, coupling=np.ones((2, 2))), PAIR, (1.8, 2.2)), {},
         True),
    ],
    ids=["kappa", "factor", "function", "field", "indexed"],
)  # fmt: skip
def test_diagrams_come_back(tmp_path, arguments, options, computable):
    found = mf.branches(*arguments, **options, **OPTIONS)
    middle = sum(found.span) / 2
    found = mf.branches(*arguments, **options, **OPTIONS, save_at=[middle])
    again = mf.load(found.save(tmp_path / "diagram.nc"))
    assert again.data.equals(found.data) and again.warnings == found.warnings
    if computable:
        assert repr(again) == repr(found)
    for (number, one), (other_number, other) in zip(found.saved, again.saved, strict=True):
        assert number == other_number and one.value == other.value == middle
        np.testing.assert_array_equal(one.density.coefficients, other.density.coefficients)
    for one, other in zip(found.special_points, again.special_points, strict=True):
        assert (one.kind, one.value, one.kappa) == (other.kind, other.value, other.kappa)
    assert again.plot().axes
    if not computable:
        with pytest.raises(mf.MeanfieldError, match="function"):
            again.states_at(middle)
        again = mf.load(tmp_path / "diagram.nc", model=arguments[0])
        assert repr(again) == repr(found)
        other = mf.Transformer(mf.Kuramoto() + 0.1 * NORTH, 2.0)
        other = other if isinstance(arguments[0], mf.Transformer) else lambda s: family(0.9 * s)
        with pytest.raises(ValueError, match=r"those saved: the (residual|growth rate) of a state"):
            mf.load(tmp_path / "diagram.nc", model=other)
    for (_, one), (_, other) in zip(found.states_at(middle), again.states_at(middle), strict=True):
        assert one.order_parameter == other.order_parameter and one.stable == other.stable


def test_a_family_without_branches_is_known_by_growth_rates_and_onsets(tmp_path):
    """The uniform density is stationary whatever the function."""
    slow = lambda s: mf.Transformer((1 + s) * mf.Kuramoto(), 1.0)  # noqa: E731
    fast = lambda s: mf.Transformer((1 + 2 * s) * mf.Kuramoto(), 1.0)  # noqa: E731
    path = mf.branches(slow, CIRCLE, (0.1, 0.3), **OPTIONS).save(tmp_path / "diagram.nc")
    assert mf.load(path, model=slow).states_at(0.2)
    with pytest.raises(ValueError, match=r"the growth rate of a state is -0\.2, not -0\.35"):
        mf.load(path, model=fast)
    plane = mf.phase_diagram(slow, CIRCLE, (0.1, 0.3), degrees=[1], progress=False)
    path = plane.save(tmp_path / "plane.nc")
    assert mf.load(path, model=slow).kappa("critical", 0.2) == plane.kappa("critical", 0.2)
    with pytest.raises(ValueError, match=r"the kappa of an onset is 1\.66667, not 1\.81818"):
        mf.load(path, model=fast)
