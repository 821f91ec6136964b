"""Files of kinds that are not known here: their numbers are, and evaluating them is refused."""

import pickle
from contextlib import contextmanager

import numpy as np
import pytest

import meanfield as mf

WORDS = "is not known here: import the module that defines it"


class Tilted(mf.ZonalDrift):
    """v(x) = P_x int (1 + b <x, y>) y dmu(y).

    Parameters
    ----------
    b : float
        Slope of the weight.
    """

    beta: float = 1.0
    b: float = 0.5

    def slope(self, t):
        return self.beta + self.b * t


@contextmanager
def unknown(kind):
    """As in a process where the module of the kind was not imported."""
    kinds = mf.Drift.kinds
    del kinds[kind.__name__]
    try:
        yield
    finally:
        kinds[kind.__name__] = kind


@pytest.fixture(params=[1.0, np.array([1.0, 2.0]), np.linspace(0.0, 1.0, 20)], ids=np.size)
def run(request):
    model = mf.Transformer(Tilted(b=request.param), kappa=5.0)
    return mf.solve(model, mf.Circle(16).von_mises(0, 1), (0, 0.1), t_eval=[0, 0.1])


def test_numbers_are_kept_and_evaluating_is_refused(run, tmp_path):
    run.save(tmp_path / "run.nc")
    with unknown(Tilted):
        loaded = mf.load(tmp_path / "run.nc")
        assert "<Tilted, not known here>" in repr(loaded)
        np.testing.assert_array_equal(loaded.observables["mass"], run.observables["mass"])
        drift = loaded.model.drift
        np.testing.assert_array_equal(drift.b, run.model.drift.b)
        for evaluate in (
            lambda: drift.slope(0.0),
            lambda: drift.attraction(3, 2),
            lambda: drift.breadth,
            lambda: mf.solve(loaded.model, loaded.final, (0, 0.1)),
            lambda: mf.measure(loaded.model, loaded.final),
            lambda: mf.branches(drift, mf.Circle(8), (1, 2)),
            lambda: mf.stability(loaded.model, mf.Circle(8).uniform()),
        ):
            with pytest.raises(mf.MeanfieldError, match=f"Tilted {WORDS}"):
                evaluate()
        again = pickle.loads(pickle.dumps(loaded))
        assert again.model == loaded.model and repr(again) == repr(loaded)
        loaded.save(tmp_path / "again.nc")
        assert mf.describe(loaded.model)["drift"]["kind"] == "Tilted"
    again = mf.load(tmp_path / "again.nc")
    assert again.model == run.model
    assert again.final.coefficients.tobytes() == run.final.coefficients.tobytes()


@pytest.mark.repeats
@pytest.mark.parametrize("vary", [{}, {"kappa": 2.5, "vary": {"b": (0.5, 3.5)}}], ids=str)
def test_branches_of_a_drift_that_is_not_known(tmp_path, vary):
    diagram = mf.branches(Tilted(b=1.0), mf.Circle(8), **({"kappa": (1.0, 3.0)} | vary))
    diagram.save(tmp_path / "branches.nc")
    with unknown(Tilted):
        loaded = mf.load(tmp_path / "branches.nc")
        assert repr(loaded) == repr(diagram)
        loaded.plot()
        for one, other in zip(loaded.special_points, diagram.special_points, strict=True):
            moments = one.state.legendre_moments
            np.testing.assert_array_equal(moments, other.state.legendre_moments)
            np.testing.assert_array_equal(
                one.state.density.coefficients, other.state.density.coefficients
            )
        with pytest.raises(mf.MeanfieldError, match=WORDS):
            loaded.special_points[0].state.stability()
        with pytest.raises(mf.MeanfieldError, match=WORDS):
            loaded.states_at(2.2)
        loaded.save(tmp_path / "again.nc")
    again = mf.load(tmp_path / "again.nc")
    assert again.drift == diagram.drift
    assert again.special_points[0].state.stability().stable is not None


def test_phase_diagrams_of_a_drift_that_is_not_known(tmp_path):
    diagram = mf.phase_diagram(Tilted, mf.Circle(8), beta=(0.5, 1.0))
    diagram.save(tmp_path / "phases.nc")
    with unknown(Tilted):
        loaded = mf.load(tmp_path / "phases.nc")
        assert repr(loaded) == repr(diagram)
        loaded.plot()
        with pytest.raises(mf.MeanfieldError, match="import the module that defines it if"):
            loaded.kappa("critical", 0.7)
        loaded.save(tmp_path / "again.nc")
    assert repr(mf.load(tmp_path / "again.nc")) == repr(diagram)
