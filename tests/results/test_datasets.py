"""Datasets with a header: phase diagrams come back to the last bit, and `load` knows a file."""

from dataclasses import replace
from functools import cache

import h5py
import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.results.files import contents_of, dataset_of


@cache
def usa_plane():
    return mf.phase_diagram(mf.USA, mf.Circle(16), (1.0, 4.0), degrees=(1, 2))


SPACES = {
    "one curve of SA": (mf.SA, mf.Sphere(16), (1.0, 2.0), (2,)),
    "any dimension": (mf.USA, mf.Zonal(5, 16), (1.0, 2.0), (1,)),
}


@pytest.mark.long
def test_a_phase_diagram_is_kept_in_a_file(tmp_path):
    again = mf.load(usa_plane().save(tmp_path / "plane.nc"))
    assert isinstance(again, mf.PhaseDiagram) and repr(again) == repr(usa_plane())
    assert (
        again.data.identical(usa_plane().data)
        and again.data.curve.dtype == usa_plane().data.curve.dtype
    )
    assert again.tricritical == usa_plane().tricritical and again.ends == usa_plane().ends
    for name, locus in usa_plane().loci.items():
        assert type(again.loci[name]) is type(locus)
        np.testing.assert_array_equal(again.loci[name].points, locus.points)
    for name in ("critical", "fold", "transition"):
        for beta in (1.5, 2.4470, 2.6, 3.0, 3.99):
            np.testing.assert_array_equal(again.kappa(name, beta), usa_plane().kappa(name, beta))
    assert mf.load(again.save(tmp_path / "copy.nc")).data.identical(usa_plane().data)
    again.plot().savefig(tmp_path / "plane.png")


@pytest.mark.repeats
@pytest.mark.parametrize("arguments", SPACES.values(), ids=SPACES)
def test_every_space_and_drift(arguments, tmp_path):
    *place, degrees = arguments
    found = mf.phase_diagram(*place, degrees=degrees)
    again = mf.PhaseDiagram.load(found.save(tmp_path / "plane.nc"))
    assert again.data.identical(found.data) and again.family.drift is found.family.drift
    l = degrees[0]
    assert again.kappa("critical", 1.3, l) == found.kappa("critical", 1.3, l)
    np.testing.assert_array_equal(again.kappa("fold", 1.7), found.kappa("fold", 1.7))


def test_load_knows_what_a_file_holds(tmp_path):
    circle = mf.Circle(16)
    run = mf.solve(mf.Transformer(mf.Kuramoto()), circle.von_mises(0, 1.0), t_span=(0, 0.1))
    diagram = mf.branches(mf.Kuramoto(), circle, (1.5, 2.5), stability=False)
    for found in (run, diagram, usa_plane()):
        assert type(mf.load(found.save(tmp_path / "any.nc"))) is type(found)
    with pytest.raises(mf.StorageError, match="holds no PhaseDiagram, but a Diagram"):
        mf.PhaseDiagram.load(diagram.save(tmp_path / "diagram.nc"))
    with pytest.raises(mf.StorageError, match="holds no Diagram, but a PhaseDiagram"):
        mf.Diagram.load(usa_plane().save(tmp_path / "plane.nc"))
    with pytest.raises(mf.StorageError, match="does not exist"):
        mf.load(tmp_path / "gone.nc")
    (tmp_path / "text.nc").write_text("no numbers")
    with pytest.raises(mf.StorageError, match="not an intact result"):
        mf.load(tmp_path / "text.nc")
    with pytest.raises(TypeError, match="path"):
        mf.load(3)


@pytest.mark.parametrize("name", ["kappa", "meanfield/header", "meanfield/loci.fold.points"])
def test_a_phase_diagram_is_sealed(tmp_path, name):
    path = usa_plane().save(tmp_path / "plane.nc")
    with h5py.File(path, "r+") as file:
        values = file[name][...]
        raw = values.view(np.uint8).reshape(-1)
        raw[raw.size // 2] ^= 1
        file[name][...] = values
    with pytest.raises(mf.StorageError, match=r"plane\.nc is not an intact result"):
        mf.load(path)


def test_long_arrays_are_variables_and_come_back():
    header = {"long": np.arange(40.0), "short": [1, "a", None], "in": [{"long": np.eye(9)}]}
    contents = contents_of(usa_plane().data, header)
    assert set(contents.long) == {"long", "in[0].long"}
    contents.header |= {"format": 0, "result": "PhaseDiagram"}
    again, found = dataset_of(contents)
    assert again.identical(usa_plane().data) and found["short"] == header["short"]
    np.testing.assert_array_equal(found["long"], header["long"])
    np.testing.assert_array_equal(found["in"][0]["long"], np.eye(9))


def test_a_study_is_a_tree_of_datasets(tmp_path):
    """Its densities have axes of their own, as they are at other times."""
    model, mu0 = mf.Transformer(mf.Kuramoto(), 3.0), mf.Circle(16).von_mises(0, 1.0)
    study = mf.propagation_of_chaos(model, mu0, [4, 8], [0.1], 2, rng=0, coupling=False)
    path = study.save(tmp_path / "study.nc")
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        assert dict(tree.sizes) == {"n": 2, "t": 1, "replica": 2}
        np.testing.assert_array_equal(tree["law"]["law_t"], study.law.t)
    assert mf.load(path).data.identical(study.data)


def test_attributes_that_netcdf_has_not_come_back(tmp_path):
    data = usa_plane().data.assign_attrs(
        note=None, flag=True, large=10**30, text="a\0b\udc80", tree={"a": [1]}, stored="array"
    )
    again = mf.load(replace(usa_plane(), data=data).save(tmp_path / "plane.nc"))
    assert again.data.attrs == data.attrs
    data.attrs["note"] = object()
    with pytest.raises(mf.StorageError, match="Attributes must be plain data"):
        replace(usa_plane(), data=data).save(tmp_path / "plane.nc")


@pytest.mark.parametrize("name", ["meanfield", "law", ".", "a/b", "x\0", "\udc80", ""])
def test_names_that_a_file_cannot_hold_are_refused_at_once(name):
    circle = mf.Circle(16)
    model, mu0, own = mf.Transformer(mf.Kuramoto(), 3.0), circle.von_mises(0, 1.0), {name: len}
    with pytest.raises(ValueError, match=r"law, n, t, replica, coupling"):
        mf.propagation_of_chaos(model, mu0, [4], [0.1], 2, rng=0, functionals=own)
    if name != "law":
        with pytest.raises(ValueError, match="name of observables"):
            mf.branches(mf.Kuramoto(), circle, (1.5, 2.5), observables=own)
        with pytest.raises(ValueError, match="observe"):
            mf.solve(model, mu0, (0, 1), observe={name: lambda _: 1.0})
