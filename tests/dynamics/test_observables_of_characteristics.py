"""What is measured of characteristics, as labelled arrays."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.dynamics.observables import measure, measure_all

CIRCLE = mf.Circle(8).density(lambda x: 1 + 0.5 * np.cos(x - 1) + 0.2 * np.sin(2 * x))
LUMPS = mf.Sphere(4).density(lambda x, y, z: 1 + 0.4 * z + 0.3 * x * y - 0.2 * y)
DENSITIES = {"circle": CIRCLE, "sphere": LUMPS, "d = 5": mf.Zonal(5, 4).zonal([1, 0.5, 0.4])}
MODELS = {
    "USA": mf.Transformer(mf.USA(1.5)),
    "SA": mf.Transformer(mf.SA(1.5)),
    "Kuramoto": mf.Transformer(mf.Kuramoto()),
}
SHARED = ["mass", "moment", "order_parameter", "interaction_energy"]


@pytest.mark.repeats
@pytest.mark.parametrize("density", DENSITIES.values(), ids=DENSITIES)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_what_both_have_agrees_with_the_density(model, density):
    """The density on modes enough for the kernel. Measured: 2e-13; on S^2 4e-12, relative."""
    fine = measure(model, density.resample(24))
    found = measure(model, mf.Characteristics(density))
    for name in SHARED:
        np.testing.assert_allclose(found[name], fine[name], rtol=1e-11, atol=1e-11, err_msg=name)


@pytest.mark.repeats
@pytest.mark.parametrize("density", DENSITIES.values(), ids=DENSITIES)
@pytest.mark.parametrize("name", ["USA", "Kuramoto"])
def test_the_dissipation_is_that_of_a_density_without_noise(name, density):
    """-dF/dt = int |v|^2 dmu, and F = -E."""
    fine = measure(MODELS[name], density.resample(32))
    found = measure(MODELS[name], mf.Characteristics(density))
    assert found["dissipation"] == pytest.approx(float(fine["dissipation"]), rel=1e-10)
    assert found["free_energy"] == -found["interaction_energy"]
    assert found["speed"] ** 2 == pytest.approx(float(found["dissipation"]), rel=1e-14)


def states(*lists):
    """States on the circle whose mass is at these angles, one list each."""
    start = mf.Characteristics(mf.Circle(4).uniform(), nodes=256)
    return [start.moved(np.resize(np.asarray(angles, dtype=float), 256)) for angles in lists]


def test_lists_of_clusters_are_padded_with_nan():
    """Angles are counted from the antipode of the limit, which is e_2."""
    table = measure_all(MODELS["USA"], states([0.3], [0.0, 2.0], [0.0, 2.0, -2.0]), range(3))
    assert table["cluster_count"].tolist() == [1, 2, 3]
    mass, point = table["cluster_mass"], table["cluster_point"]
    assert mass.shape == (3, 3) and point.shape == (3, 3, 2)
    np.testing.assert_array_equal(np.isnan(mass), [[0, 1, 1], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(np.isnan(point).all(axis=2), np.isnan(mass))
    np.testing.assert_allclose(np.nansum(mass, axis=1), 1, rtol=1e-9)
    angle = np.arctan2(point[0, 0, 1], point[0, 0, 0])
    assert angle == pytest.approx(0.3 - np.pi / 2, abs=1e-14)


def test_without_clusters_the_lists_are_empty():
    spread = states(np.linspace(-3, 3, 256), np.linspace(-2, 3, 256))
    table = measure_all(MODELS["USA"], spread, range(2))
    assert table["cluster_count"].tolist() == [0, 0]
    assert table["cluster_mass"].shape == (2, 0) and table["cluster_point"].shape == (2, 0, 2)


def test_a_run_has_them_as_a_dataset():
    run = mf.solve(MODELS["USA"], mf.Characteristics(CIRCLE), (0, 4), t_eval=[0.0, 2.0, 4.0])
    data = run.observables
    assert dict(data.sizes) == {"t": 3, "k": 8, "cluster": 1, "component": 2}
    assert data.cluster_mass.dims == ("t", "cluster")
    assert data.limit_point.dims == ("t", "component")
    assert (np.diff(data.w2_to_dirac) < 0).all() and (np.diff(data.order_parameter) > 0).all()
    np.testing.assert_allclose(
        data.order_parameter, np.abs(data.moment_re + 1j * data.moment_im)[:, 0]
    )
    whole = run.to_xarray()
    assert whole.coordinates.dims == ("t", "node") and whole.masses.dims == ("node",)
    assert set(data.variables) <= set(whole.variables) and whole.attrs["status"] == "finished"
