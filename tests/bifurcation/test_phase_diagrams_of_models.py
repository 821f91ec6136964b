"""Phase diagrams of models with fields: special points of codimension two."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf
from meanfield.bifurcation.special_curves import between

CIRCLE = mf.Circle(32)
PULL = mf.Field(lambda x: np.eye(x.shape[-1])[0] * np.ones_like(x))


def bessel(x):
    return iv(1, x) / iv(0, x)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_phase_diagram_of_models_has_the_cusp_of_kuramoto_in_a_field(by_name, tmp_path):
    """Folds h = x/kappa - r(x), kappa (1 - r^2 - r/x) = 1, meet at (h, kappa) = (0, 2)."""
    plane = partial(mf.phase_diagram, space=CIRCLE, kappa=(1.5, 4.0), places=1, progress=False)
    if by_name:
        model = mf.Transformer(mf.Kuramoto() + 0.1 * PULL)
        found = plane(model, vary={"factors[1]": (-0.1, 0.1)})
    else:
        found = plane(lambda h: mf.Transformer(mf.Kuramoto() + h * PULL), beta=(-0.1, 0.1))
    assert list(found.loci) == ["fold 1"] and not found.warnings
    (cusp,) = found.cusps
    assert (cusp.beta, cusp.kappa) == pytest.approx((0.0, 2.0), abs=1e-10)
    for h in (-0.09, -0.02, 0.05):
        kappa = found.kappa("fold 1", h)
        x = brentq(lambda x: kappa * (1 - bessel(x) ** 2 - bessel(x) / x) - 1, 0.1, 5.0)  # noqa: B023
        assert abs(x / kappa - bessel(x)) == pytest.approx(abs(h), abs=1e-12)
    loaded = mf.load(found.save(tmp_path / "plane.nc"))
    assert loaded.data.identical(found.data) and loaded.cusps == found.cusps
    if not by_name:
        with pytest.raises(mf.MeanfieldError, match=r"lambda> is not known here.* phase_diagram"):
            loaded.kappa("fold 1", 0.05)


def test_a_curve_of_hopf_points_begins_at_the_bogdanov_takens_point_of_active_rotators():
    """There the linearised operator has the double eigenvalue 0, and then a pair on the axis."""
    turn = mf.Field(lambda x: np.stack([-x[..., 1], x[..., 0]], -1))
    model = mf.Transformer(3.0 * mf.Kuramoto() + 0.8 * turn + PULL)
    found = mf.phase_diagram(
        model, CIRCLE, vary={"factors[1]": (0.7, 0.9)}, kappa=(1.0, 2.0), places=1, progress=False
    )
    (point,) = found.bogdanov_takens

    def spectrum(line, value):
        z = line.at_value(between(line.points, value), value)
        equation, m, mean = line.state(z)
        values = np.linalg.eigvals(equation.linearised(m, mean.kappa, line.basis.even))
        return z, values[np.argsort(np.abs(values.real))[:2]]

    folds = [c for c in found.loci.values() if c.kind == "fold" and c.reaches(point.beta)]
    apart = [np.abs(spectrum(fold, point.beta)[1]).max() for fold in folds]
    assert min(apart) < 1e-4  # the square root of the error of the place
    assert found.ends["Hopf 1"][0] == "Bogdanov-Takens"
    z, pair = spectrum(found.loci["Hopf 1"], 0.86)
    np.testing.assert_allclose(pair.real, 0, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.abs(pair.imag), abs(z[-3]), rtol=1e-9)
    met = found.loci["Hopf 1"].points[0]  # the curve begins at the point, without a frequency
    assert met[-3] == 0 and (met[-1], np.exp(met[-2])) == pytest.approx(point[:2], abs=1e-9)


def two_harmonics(w):
    """Active rotators that also attract each other by the second harmonic."""
    attraction = 2.0 * mf.Kuramoto() + mf.CosineSeries([0.0, 0.0, 1.5])
    turn = mf.Field(lambda x: np.stack([0.5 - w * x[..., 1], w * x[..., 0]], -1))
    return mf.Transformer(attraction + turn)


def test_cycles_change_their_stability_at_a_generalised_hopf_point(tmp_path):
    """The first Lyapunov coefficient of `branches` has opposite signs on both sides."""
    space = mf.Circle(12)
    found = mf.phase_diagram(
        two_harmonics, space, (1.2, 1.4), kappa=(0.8, 1.15), places=1, progress=False
    )
    (point,) = found.generalised_hopf
    assert point[:2] == pytest.approx((1.2637854181746, 0.9376355018009), abs=1e-9)
    assert "GeneralisedHopf(s=1.26378" in repr(found)
    signs = []
    for value in (1.25, 1.28):
        here = found.kappa("Hopf 1", value)
        model = two_harmonics(value).replace(kappa=here)
        diagram = mf.branches(model, space, (here - 0.005, here + 0.005), progress=False)
        (hopf,) = diagram.special("Hopf")
        signs.append(np.sign(mf.first_lyapunov(hopf)))
    assert signs == [-1, 1]
    loaded = mf.load(found.save(tmp_path / "plane.nc"))
    assert loaded.generalised_hopf == [point] and type(loaded.generalised_hopf[0]) is type(point)
    labels = [line.get_label() for line in loaded.plot().axes[0].get_lines()]
    assert "generalised Hopf" in labels


def test_a_hopf_fold_point_where_one_group_folds_and_another_begins_to_oscillate():
    """Two groups that do not see each other: both curves through the point are those of one."""
    groups = mf.Circle(12).indexed(lambda s, a: 1 + 0 * (a + s), mf.Classes([0.0, 0.005])).space
    turn = lambda w: mf.Field(lambda x: np.stack([0.5 - w * x[..., 1], w * x[..., 0]], -1))  # noqa: E731

    def pair(w):
        apart = {"coupling": 2 * np.eye(2), "frequency": mf.OfIndex(1.0)}
        return mf.Transformer(2.0 * mf.Kuramoto() + turn(w), **apart)

    found = mf.phase_diagram(
        pair, groups, (0.4305, 0.4325), kappa=(1.5, 1.66), places=1, progress=False
    )
    (point,) = found.hopf_folds
    assert point[:2] == pytest.approx((0.431401106751, 1.585635592822), abs=1e-9)
    for kind in ("fold", "Hopf"):
        near = [found.kappa(n, point.beta) for n, c in found.loci.items() if c.kind == kind]
        assert np.nanmin(np.abs(np.array(near) - point.kappa)) < 1e-9
