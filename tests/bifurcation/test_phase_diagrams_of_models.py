"""Phase diagrams of models with fields: special points of codimension two."""

import re
from functools import partial

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf
from meanfield.bifurcation.families import EquationFamily, basis_of
from meanfield.bifurcation.special_curves import between

CIRCLE = mf.Circle(32)
PULL = mf.Field(lambda x: np.eye(x.shape[-1])[0] * np.ones_like(x))


def bessel(x):
    return iv(1, x) / iv(0, x)


def test_curves_reach_the_ends_of_the_range_of_kappa():
    """They ended at the last point before, up to a step short, and had no value beyond it.

    At h = 0, one of the places, curves cross; that value was refused.
    """
    model = lambda h: mf.Transformer(mf.Kuramoto() + h * PULL)  # noqa: E731
    found = mf.phase_diagram(
        model, mf.Circle(16), (-0.1, 0.1), kappa=(1.5, 2.2), places=3, progress=False
    )
    assert found.ends == {"fold 1": ("range of kappa", "range of kappa")} and len(found.cusps) == 1
    assert found.data.kappa.values[[0, -1]] == pytest.approx([2.2, 2.2], abs=1e-11)
    assert found.kappa("fold", 0.001) == found.kappa("fold 1", 0.001)


@pytest.mark.repeats
@pytest.mark.parametrize("by_name", [True, False])
def test_a_phase_diagram_of_models_has_the_cusp_of_kuramoto_in_a_field(by_name, tmp_path):
    """Folds h = x/kappa - r(x), kappa (1 - r^2 - r/x) = 1, meet at (h, kappa) = (0, 2)."""
    plane = partial(mf.phase_diagram, space=CIRCLE, kappa=(1.5, 4.0), places=1, progress=False)
    model = mf.Transformer(mf.Kuramoto() + 0.1 * PULL)
    if not by_name:
        model = lambda h: mf.Transformer(mf.Kuramoto() + h * PULL)  # noqa: E731
    span = (-0.1, 0.1)
    found = plane(model, **({"vary": {"factors[1]": span}} if by_name else {"beta": span}))
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
        words = (
            r"holds no functions, here \S*lambda>: pass it again, mf\.load\(path, model=function\)"
        )
        with pytest.raises(mf.MeanfieldError, match=words):
            loaded.kappa("fold 1", 0.05)
    again = mf.load(tmp_path / "plane.nc", model=model)
    assert again.kappa("fold 1", 0.05) == found.kappa("fold 1", 0.05)
    wide = mf.Transformer(mf.Kuramoto() + 0.1 * mf.Field(lambda x: 1.1 * np.ones_like(x)))
    other = wide if by_name else lambda h: model(1.1 * h)
    with pytest.raises(
        ValueError,
        match=r"differ from those saved: the residual of fold 1, to rounding, is .*, not 0",
    ):
        mf.load(tmp_path / "plane.nc", model=other)


@pytest.mark.long
def test_curves_end_at_a_kink_of_the_family_and_name_it():
    """The amplitude of the field is |h|: without end before."""
    model = lambda h: mf.Transformer(mf.Kuramoto() + abs(h) * PULL)  # noqa: E731
    options = {"beta": (-0.1, 0.12), "kappa": (1.5, 4.0), "places": 1, "progress": False}
    found = mf.phase_diagram(model, mf.Circle(16), **options)
    kink, *short = found.warnings
    assert "no derivative by s at s = 0, where curves end" in kink and kink not in short
    assert any("its steps become shorter without end" in warning for warning in short)
    (ends,) = found.ends.values()
    assert set(ends) == {"short steps", "range"}


@pytest.mark.parametrize(
    "place, factor",
    [(0.004, lambda h: abs(h - 0.004)), (-0.0031, lambda h: h + 0.2 * max(h + 0.0031, 0)),
     (None, lambda h: h), (None, lambda h: h**4), (None, lambda h: np.exp(3 * h)),
     (None, lambda h: 0.1)],
)  # fmt: skip
def test_kinks_of_a_family(place, factor):
    model = lambda h: mf.Transformer(mf.Kuramoto() + factor(h) * PULL)  # noqa: E731
    basis = basis_of([model(0.05)], mf.Circle(16))
    kinks = EquationFamily(model, "h", (-0.5, 0.5), basis).kinks(0.0)
    assert kinks == ({} if place is None else {"h": pytest.approx(place, abs=1e-8)})


@pytest.mark.long
@pytest.mark.parametrize("first", ["kappa", "K"])
def test_a_plane_of_two_parameters_has_the_folds_and_the_cusp_of_kuramoto_in_a_field(
    first, tmp_path
):
    """At kappa = 2 with K Kuramoto + h field the curve is that of kappa K and h/K."""
    if first == "kappa":
        model = mf.Transformer(mf.Kuramoto() + 0.1 * PULL, kappa=2.4)
        ranges, scale = {"kappa": (1.9, 2.4), "factors[1]": (-0.1, 0.1)}, 1.0
    else:
        model = lambda K, h: mf.Transformer(K * mf.Kuramoto() + h * PULL, kappa=2.0)  # noqa: E731
        ranges, scale = {"K": (1.05, 1.2), "h": (-0.12, 0.12)}, 2.0
    (_, span), (second, _) = ranges.items()
    found = mf.phase_diagram(
        model, mf.Circle(16), vary=ranges, places=1 + (first == "kappa"), progress=False
    )
    assert not found.warnings and not found.tricritical and found.second == second
    if first == "kappa":
        (cusp,) = found.cusps
        assert cusp[:2] == pytest.approx((2.0, 0.0), abs=1e-10)
        assert f"Cusp(kappa={cusp.beta!r}, factors[1]=" in repr(found)
    folds = [name for name in found.loci if name.startswith("fold")]
    for value in (2.15 / scale, 2.35 / scale):
        kappa = scale * value
        x = brentq(lambda x: kappa * (1 - bessel(x) ** 2 - bessel(x) / x) - 1, 0.1, 5.0)  # noqa: B023
        h = abs(x / kappa - bessel(x)) * (1.0 if first == "kappa" else value)
        assert sorted(found.kappa(name, value) for name in folds) == pytest.approx([-h, h], 1e-11)
    loaded = mf.load(found.save(tmp_path / "plane.nc"))
    assert loaded.data.identical(found.data) and loaded.cusps == found.cusps
    axes = loaded.plot().axes[0]
    assert axes.get_xlim() == pytest.approx(span) and axes.get_yscale() == "linear"
    with pytest.raises(ValueError, match="divide kappa; the plane has"):
        found.plot("relative")
    with pytest.raises(mf.MeanfieldError, match=f"{re.escape(second)} of this plane is not kappa"):
        found.stable_counts(span[0])


@pytest.mark.long
def test_a_ring_of_states_without_a_field_exchanges_one_stable_state():
    """At h = 0 all dipoles are states: one along the field gains stability, one against it loses.

    Both were 0 or 1 at random before, as no pair bifurcates from a ring.
    """
    model = mf.Transformer(mf.Kuramoto() + 0.01 * PULL, kappa=2.4)
    ranges = {"kappa": (2.3, 2.35), "factors[1]": (-0.015, 0.015)}
    found = mf.phase_diagram(model, mf.Circle(8), vary=ranges, places=1, progress=False).data
    assert np.abs(found["factors[1]"]).max() < 1e-12
    each = [found.change.values[found.curve.values == name] for name in np.unique(found.curve)]
    assert sorted(map(set, map(np.ndarray.tolist, each)), key=max) == [{-1}, {1}]


@pytest.mark.long
def test_a_curve_that_goes_on_with_rotated_states_is_listed_once():
    """Two clusters oscillate along a curve to 2/cos(lag), and beyond as rotated clusters."""
    c, s = np.cos(0.5), np.sin(0.5)
    lagging = mf.Attention(V=np.array([[c, -s], [s, c]]), beta=0.0, weights=mf.Unnormalised())
    model = mf.Transformer(1.0 * lagging + 0.85 * mf.CosineSeries([0.0, 0.0, 1.0]), kappa=2.35)
    ranges = {"kappa": (2.27, 2.34), "factors[1]": (0.852, 0.89)}
    found = mf.phase_diagram(model, mf.Circle(8), vary=ranges, places=2, progress=False)
    (curve,) = (one for one in found.loci.values() if one.kind == "Hopf" and one.order == 1)
    assert curve.points[0, -2:] == pytest.approx([c, 2 / c], abs=1e-6)


@pytest.mark.long
def test_hopf_points_in_the_plane_of_drive_and_field_are_those_in_kappa():
    """Active rotators at kappa = 1.2: a pair of growth rates lies on the axis."""
    space = mf.Circle(12)
    turn = mf.Field(lambda x: np.stack([-x[..., 1], x[..., 0]], -1))

    def rotators(w, b):
        return mf.Transformer(3.0 * mf.Kuramoto() + w * turn + b * PULL, kappa=1.2)

    found = mf.phase_diagram(
        rotators, space, vary={"w": (0.8, 0.9), "b": (0.7, 1.3)}, places=1, progress=False
    )
    names = [name for name, curve in found.loci.items() if curve.kind == "Hopf"]
    b = found.kappa(names[0], 0.86)
    in_kappa = mf.branches(rotators(0.86, b), space, (1.1, 1.3), progress=False)
    assert min(abs(one.value - 1.2) for one in in_kappa.special("Hopf")) < 1e-9


def test_a_plane_of_two_parameters_says_what_it_needs():
    for model, vary, error, message in [
        (mf.Kuramoto() + PULL, {"factors[0]": (1, 2), "factors[1]": (1, 2)}, TypeError,
         "drift must be a Transformer, or a function of two numbers"),
        (mf.Transformer(mf.Kuramoto() + PULL), {"factors[0]": (1, 2), "kappa": (1, 2)}, ValueError,
         "vary must be kappa as the first of two"),
        (lambda a, b: mf.Transformer(a * mf.Kuramoto() + b * mf.USA(1.0), kappa=1.0),
         {"a": (1, 2), "b": (1, 2)}, mf.MeanfieldError,
         "invariant under rotations, for all values of a and b"),
    ]:  # fmt: skip
        with pytest.raises(error, match=message):
            mf.phase_diagram(model, mf.Circle(8), vary=vary, progress=False)
    with pytest.raises(ValueError, match="kappa must be left out"):
        mf.phase_diagram(lambda a, b: None, mf.Circle(8), vary={"a": (1, 2), "b": (1, 2)},
                         kappa=(1, 2))  # fmt: skip


@pytest.mark.long
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


@pytest.mark.long
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


@pytest.mark.long
def test_folds_of_waves_begin_at_a_generalised_hopf_point():
    """With a phase lag a, where Re (m - e^(-ia)/2) e^(ia)/(2 cos a - 2 m + i sin a) = 0."""
    a = np.exp(0.5j)
    lag = mf.Attention(np.eye(2), np.eye(2), [[a.real, -a.imag], [a.imag, a.real]], 0.0)
    family = lambda m: mf.Transformer(lag + mf.CosineSeries([0.0, 0.0, m]))  # noqa: E731
    found = mf.phase_diagram(family, mf.Circle(16), (0.35, 0.6), kappa=(1.8, 3.0), places=2)
    (point,) = found.generalised_hopf
    place = brentq(
        lambda m: ((m - a.conjugate() / 2) * a / (2 * a.real - 2 * m + 1j * a.imag)).real, 0.2, 0.6
    )
    assert (point.beta, point.kappa) == pytest.approx((place, 2 / a.real), abs=1e-10)
    assert not found.warnings
    values = found.loci["fold 1"].points[:, -1]
    assert len(values) < 30 and values.min() < place + 0.02 and values.max() == 0.6
    (fold,) = mf.branches(family(0.55), mf.Circle(16), (1.8, 3.0)).special("fold")
    assert found.kappa("fold 1", 0.55) == pytest.approx(fold.value, abs=1e-9)


@pytest.mark.long
def test_a_hopf_fold_point_where_one_group_folds_and_another_begins_to_oscillate(tmp_path):
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
    loaded = mf.load(found.save(tmp_path / "groups.nc"), model=pair)
    assert loaded.space == groups and loaded.hopf_folds == found.hopf_folds
