"""Solutions on disk: every bit comes back, others can read the file, nothing is half written."""

import json
from functools import partial

import h5netcdf
import h5py
import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.app.configuration import read_config, run_config
from meanfield.core.descriptions import describe
from meanfield.results import files

CIRCLE = mf.Circle(24)
START = CIRCLE.density(lambda x: 1 + 0.3 * np.cos(x) + 0.1 * np.cos(2 * x) + 0.05 * np.sin(3 * x))


def quartic(t):
    """An interaction potential that is no Chebyshev series of the package's making."""
    return t**4 - 0.3 * t


def solve(model, density=START, **options):
    """A short run."""
    options = {"t_eval": [0.0, 0.1, 0.5], **options}
    return mf.solve(model, density, (0, 0.5), **options)


RUNS = {
    "USA": lambda: solve(mf.Transformer(mf.USA(4.0), 20.0)),
    "SA without noise": lambda: solve(mf.Transformer(mf.SA(2.0))),
    "Kuramoto": lambda: solve(mf.Transformer(mf.Kuramoto(), 3.0)),
    "a potential": lambda: solve(mf.Transformer(mf.Interaction(quartic), 5.0)),
    "a series": lambda: solve(mf.Transformer(mf.Interaction.chebyshev([0, 1, 0.5]), 5.0)),
    "ensemble": lambda: solve(mf.Transformer(mf.USA([0.0, 2.0]), [3.0, np.inf])),
    "table": lambda: solve(mf.Transformer(mf.SA([[0.0], [1.0], [2.0]]), [3.0, np.inf])),
    "densities": lambda: solve(
        mf.Transformer(mf.USA(1.0), 3.0), mf.Density.stack([START, START.rotate(1.0)])
    ),
    "events": lambda: solve(
        mf.Transformer(mf.USA(1.0), 3.0), events=[lambda t, _d: t - 0.3, lambda t, _d: t - 2]
    ),
    "stopped": lambda: solve(mf.Transformer(mf.USA(1.0), 3.0), callback=lambda t, _d: t > 0.2),
}


@pytest.fixture
def run():
    return RUNS["USA"]()


def assert_same(one, other):
    """Two solutions agree in everything that is stored, states in every bit."""
    assert one.t.tobytes() == other.t.tobytes()
    for a, b in zip(one, other, strict=True):
        assert a.space == b.space and a.shape == b.shape
        assert a.coefficients.tobytes() == b.coefficients.tobytes()
    for name in ("status", "message", "options", "rtol", "shape", "success"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.stats.keys() == other.stats.keys()
    for name, count in one.stats.items():
        np.testing.assert_array_equal(count, other.stats[name], err_msg=name)
    assert [t.tolist() for t in one.t_events] == [t.tolist() for t in other.t_events]
    assert one.provenance == other.provenance
    assert describe(one.model) == describe(other.model)


# There and back ----------------------------------------------------------------------------


@pytest.mark.bits
@pytest.mark.parametrize("name", RUNS)
def test_a_solution_comes_back_bit_for_bit(tmp_path, name):
    run = RUNS[name]()
    assert run.save(tmp_path / "run.nc") == tmp_path / "run.nc"
    again = mf.load(tmp_path / "run.nc")
    assert_same(again, run)
    agree = xr.testing.assert_allclose if "a " in name else xr.testing.assert_identical
    agree(again.to_xarray(), run.to_xarray())  # a potential comes back as its series
    again.save(tmp_path / "again.nc")
    assert_same(mf.load(tmp_path / "again.nc"), run)


def test_states_on_different_degrees_come_back_on_theirs(tmp_path, run):
    """The file holds them on a common grid; padding must not stay."""
    assert len({density.space.degree for density in run}) > 1
    run.save(tmp_path / "run.nc")
    assert [d.space for d in mf.load(tmp_path / "run.nc")] == [d.space for d in run]


def test_signs_of_zero_come_back(tmp_path):
    """-0.0 equals 0.0, but a bit is a bit: real and imaginary parts are stored apart."""
    zeros = [complex(-0.0, 1e-3), complex(1e-3, -0.0), complex(-0.0, -0.0), complex(0.0, -1e-3)]
    density = mf.Density(mf.Circle(4), [1, *zeros])
    run = solve(mf.Transformer(mf.USA(1.0), 3.0), density, t_eval=[0.0], min_degree=4)
    run.save(tmp_path / "run.nc")
    assert_same(mf.load(tmp_path / "run.nc"), run)


def test_a_potential_that_came_back_acts_as_before(tmp_path):
    """The function itself cannot be stored; its Chebyshev series can."""
    run = RUNS["a potential"]()
    run.save(tmp_path / "run.nc")
    model = mf.load(tmp_path / "run.nc").model
    assert "quartic" in repr(run.provenance["model"]) and "quartic" in repr(describe(model))
    one, other = solve(model).final, run.final
    assert np.abs(one.coefficients - other.coefficients).max() < 1e-13


def test_a_solution_that_came_back_can_be_gone_on_from(tmp_path, run):
    run.save(str(tmp_path / "run.nc"))
    again = mf.load(str(tmp_path / "run.nc"))
    one, other = (mf.solve(r.model, r.final, (0.5, 0.7), t_eval=[0.7]).final for r in (run, again))
    assert one.coefficients.tobytes() == other.coefficients.tobytes()


# Readable by others ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["USA", "table"])
def test_xarray_reads_the_file_without_this_package(tmp_path, name):
    run = RUNS[name]()
    run.save(tmp_path / "run.nc")
    with xr.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as data:
        expected = run.to_xarray()
        xr.testing.assert_equal(data.load(), expected)
        assert data.density.dims == expected.density.dims
        assert set(data.coords) == set(expected.coords)
        assert data.theta.attrs["units"] == "radian"
        assert data.attrs["source"] == "meanfield" and "Density under" in data.attrs["title"]


def test_the_file_says_where_it_comes_from(tmp_path):
    """Everything that is needed to do it again, as JSON."""
    run = solve(mf.Transformer(mf.USA(2.0), 3.0), provenance={"seed": 7}, rtol=1e-7)
    run.save(tmp_path / "run.nc")
    with h5netcdf.File(tmp_path / "run.nc", "r") as file:
        header = json.loads(file["meanfield/header"][...].tobytes())
    provenance = header["provenance"]
    assert provenance["model"]["drift"] == {"kind": "USA", "beta": 2.0}
    assert provenance["seed"] == 7 and header["rtol"] == provenance["options"]["rtol"] == 1e-7
    assert provenance["options"]["t_eval"] == [0.0, 0.1, 0.5]
    assert {"meanfield", "numpy", "scipy", "numba", "fftw"} <= set(provenance["versions"])
    assert isinstance(provenance["command_line"], list) and "T" in provenance["written"]


# Refusals ----------------------------------------------------------------------------------


def refuse(path, match):
    """Loading must raise a StorageError."""
    with pytest.raises(mf.StorageError, match=match):
        mf.load(path)


def test_a_missing_file_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuse("nowhere.nc", f"nowhere.nc does not exist .looked in {tmp_path}")
    refuse(tmp_path, "is a folder; expected a file that")


def test_a_damaged_file_is_refused(tmp_path, run):
    path = tmp_path / "run.nc"
    whole = run.save(path).read_bytes()
    for length in (0, 8, 100, len(whole) // 2, len(whole) - 100):
        path.write_bytes(whole[:length])
        refuse(path, "run.nc is not an intact result of meanfield")
    path.write_bytes(b"certainly not NetCDF" * 1000)
    refuse(path, "Expected a NetCDF file that `save` wrote")


def altered(path, change):
    """The same file with its header changed."""
    with h5py.File(path, "a") as file:
        header = json.loads(file["meanfield/header"][...].tobytes())
        change(header)
        del file["meanfield/header"]
        file["meanfield/header"] = np.frombuffer(json.dumps(header).encode(), "S1")


CHANGES = {
    "nothing is left out": lambda header: header.pop("status"),
    "the drift": lambda header: header["model"]["drift"].update(beta=7.0),
    "provenance": lambda header: header["provenance"]["options"].update(rtol=1e-3),
    "what it holds": lambda header: header["variables"].pop("order_parameter"),
}


@pytest.mark.repeats
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_whose_header_was_altered_is_refused(tmp_path, run, change):
    path = run.save(tmp_path / "run.nc")
    altered(path, change)
    refuse(path, r"run.nc is not an intact result of meanfield .*its numbers were altered")


def test_a_number_that_was_altered_is_refused(tmp_path, run):
    """By a program that keeps the checksums of HDF5 right."""
    path = run.save(tmp_path / "run.nc")
    with h5py.File(path, "a") as file:
        file["entropy"][1] *= 1 + 1e-15
    refuse(path, r"its numbers were altered")


def test_what_other_programs_add_does_no_harm(tmp_path, run):
    path = run.save(tmp_path / "run.nc")
    with h5netcdf.File(path, "a") as file:
        file.attrs["history"] = "looked at"
        file["entropy"].attrs["comment"] = "of mu"
        file.create_variable("squares", ("t",), data=run.t**2)
        file.create_group("notes").attrs["by"] = "another program"
    assert_same(mf.load(path), run)


def test_a_file_of_an_earlier_format_is_refused(tmp_path):
    path = tmp_path / "old.nc"
    with h5netcdf.File(path, "w") as file:
        file.attrs["meanfield"] = '{"format": 3}'
    refuse(path, r"old.nc has a format of an earlier meanfield; .* Make the result again")


def test_a_file_of_a_later_format_is_refused(tmp_path, run):
    path = run.save(tmp_path / "run.nc")
    altered(path, lambda header: header.update(format=files.FILE_FORMAT + 1))
    refuse(path, "format")


def test_a_file_of_another_program_is_refused(tmp_path):
    path = tmp_path / "other.nc"
    xr.Dataset({"t": ("t", np.arange(3.0))}).to_netcdf(path, engine="h5netcdf")
    refuse(path, "other.nc is not an intact result of meanfield")


FOREIGN = {
    "numbers.npy": (b"\x93NUMPY\x01\x00", "numpy.load"),
    "trace.npz": (b"PK\x03\x04....", "mf.networks.read_trace"),
    "table.csv": (b"t,energy\n0,1\n", "pandas.read_csv"),
    "run.toml": (b"[model]\n", "mf.read_config"),
    "sweep.store": (b"meanfield sweep2", "mf.sweep"),
    "run.ckpt": (b"meanfield ckpt15", "resume=True"),
    "old.nc": (b"CDF\x01", "xarray.open_dataset"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_refused_with_what_opens_it(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FOREIGN[name][0])
    refuse(path, f"{name} is no result of meanfield, but .*{FOREIGN[name][1]}")


@pytest.mark.parametrize("name", ["run.csv", "run.NPZ", "run.png"])
def test_results_are_not_saved_under_the_suffix_of_another_format(tmp_path, run, name):
    with pytest.raises(ValueError, match=r"\*\.nc.*observables\.to_dataframe\(\)\.to_csv"):
        run.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_saving_into_a_folder_that_does_not_exist_is_refused(tmp_path, run):
    with pytest.raises(mf.StorageError, match=r"the folder .*missing does not exist"):
        run.save(tmp_path / "missing" / "run.nc")


# Atomic ------------------------------------------------------------------------------------


def test_saving_replaces_an_older_file(tmp_path, run):
    path = tmp_path / "run.nc"
    RUNS["Kuramoto"]().save(path)
    run.save(path)
    assert_same(mf.load(path), run)
    assert [file.name for file in tmp_path.iterdir()] == ["run.nc"]


@pytest.mark.repeats
@pytest.mark.parametrize("moment", ["writing", "flushing", "renaming"])
def test_a_failure_while_saving_leaves_the_older_file(tmp_path, monkeypatch, run, moment):
    """A full disk, say: the old file is untouched and nothing else is left behind."""
    path = tmp_path / "run.nc"
    RUNS["Kuramoto"]().save(path)
    before = path.read_bytes()

    def full(*_arguments, **_options):
        raise OSError(28, "no space left on device")

    place = {
        "writing": "os.write",
        "flushing": "os.fsync",
        "renaming": "os.replace",
    }
    with monkeypatch.context() as patched:
        patched.setattr(place[moment], full)
        with pytest.raises(mf.StorageError, match=r"run.nc .* no space left"):
            run.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.nc"]


def test_saving_through_a_link_writes_the_file_behind_it(tmp_path, run):
    link, target = tmp_path / "latest.nc", tmp_path / "run.nc"
    link.symlink_to(target)
    run.save(link)
    assert link.is_symlink() and mf.load(target).t.tolist() == run.t.tolist()


def test_a_folder_is_not_overwritten(tmp_path, run):
    with pytest.raises(mf.StorageError, match="is not a file"):
        run.save(tmp_path)


def test_a_path_is_a_path(run):
    for call in (run.save, run.animate, mf.load, read_config, partial(run_config, None)):
        with pytest.raises(TypeError, match=r"pathlib\.Path; got .* = 3"):
            call(3)
