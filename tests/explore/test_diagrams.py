"""Diagrams of the page as plain data."""

import json

import numpy as np
import pytest

import meanfield as mf
from meanfield.explore.diagrams import PLANE_BETAS, branches_of, plane_of
from meanfield.explore.scene import Scene


def test_branches_of_kuramoto_are_those_of_the_closed_form():
    """r = I_1(kappa r)/I_0(kappa r) on the circle, beyond kappa = 2."""
    from scipy.special import i0e, i1e

    found = branches_of(Scene(drift="Kuramoto"))
    assert found["onset"] == pytest.approx(2.0) and found["warnings"] == []
    ordered = [s for s in found["stretches"] if max(s["order"]) > 0.1]
    for stretch in ordered:
        kappa, r = np.array(stretch["kappa"]), np.array(stretch["order"])
        np.testing.assert_allclose(i1e(kappa * r) / i0e(kappa * r), r, atol=1e-8)
    assert all(stretch["stable"] for stretch in ordered)
    json.dumps(found, allow_nan=False)


def test_the_uniform_state_is_stable_below_its_onset():
    found = branches_of(Scene(beta=4.0))
    uniform = [s for s in found["stretches"] if max(s["order"]) == 0]
    assert [s["stable"] for s in uniform] == [True, False]
    step = 0.1 * found["onset"]
    assert uniform[0]["kappa"][-1] == pytest.approx(found["onset"], abs=step)
    assert {s["stable"] for s in found["stretches"] if max(s["order"]) > 0.5} == {True, False}


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("drift", ["USA", "SA", "Kuramoto"])
def test_the_critical_curve_of_the_plane_is_the_onset(drift):
    curve = plane_of(Scene(drift=drift))["curves"]["critical"]
    assert (curve["beta"][0], curve["beta"][-1]) == PLANE_BETAS
    for beta, kappa in list(zip(curve["beta"], curve["kappa"], strict=True))[::20]:
        assert kappa == pytest.approx(Scene(drift=drift, beta=beta).onset, rel=1e-9)


@pytest.mark.long
def test_the_plane_of_usa_has_a_fold_and_a_transition():
    found = plane_of(Scene())
    diagram = mf.phase_diagram(mf.USA, mf.Circle(64), (0.25, 6.0), degrees=(1,), progress=False)
    assert found["tricritical"] == pytest.approx(
        (diagram.tricritical[0].beta, diagram.tricritical[0].kappa)
    )
    for name in ("fold", "transition"):
        beta, kappa = found["curves"][name]["beta"][-1], found["curves"][name]["kappa"][-1]
        assert kappa == pytest.approx(diagram.kappa(name, beta), rel=1e-6)
    json.dumps(found, allow_nan=False)
