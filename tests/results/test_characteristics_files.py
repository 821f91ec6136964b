"""Runs of characteristics on disk: files and checkpoints come back bit for bit, or are refused."""

import shutil

import numpy as np
import pytest
import xarray as xr

import meanfield as mf

MODEL = mf.Transformer(mf.USA(1.0))
TIMES = [0.0, 0.3, 0.6, 1.2]
ZONAL = mf.Zonal(3, 4)
STARTS = {
    "circle": mf.Characteristics(
        mf.Circle(4).density(lambda x: 1 + 0.5 * np.cos(x - 1) + 0.2 * np.sin(2 * x)), nodes=2048
    ),
    "sphere": mf.Characteristics(
        mf.Sphere(4).density(lambda x, y, z: 1 + 0.4 * z + 0.3 * x * y),
        limit=[0, 0.6, 0.8],
        nodes=4096,
    ),
    "d = 3": mf.Characteristics(ZONAL.zonal([1, 0.5, 0.2])),
    "d = 64": mf.Characteristics(mf.Zonal(64, 4).zonal([1, -2.0])),
}
every_start = pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)


def solve(start=STARTS["d = 3"], **options):
    """A run with an event."""
    options = {"t_eval": TIMES, "events": lambda _t, s: s.w2_to_dirac() - 1.45, **options}
    return mf.solve(options.pop("model", MODEL), start, (0, 1.2), **options)


@pytest.fixture(scope="module", params=STARTS.values(), ids=STARTS)
def run(request):
    return solve(request.param)


@pytest.fixture(scope="module")
def unbroken():
    return solve()


def assert_same(one, other):
    """Two solutions agree in everything that is stored, states in every bit."""
    assert one.t.tobytes() == other.t.tobytes()
    for a, b in zip(one, other, strict=True):
        assert type(a) is type(b) is mf.Characteristics and a.space == b.space
        for name in ("coordinates", "masses", "limit"):
            assert getattr(a, name).tobytes() == getattr(b, name).tobytes()
            assert getattr(a, name).shape == getattr(b, name).shape
        np.testing.assert_array_equal(a.halves, b.halves)
    for name in ("status", "message", "options", "rtol", "resolved"):
        assert getattr(one, name) == getattr(other, name), name
    assert [t.tolist() for t in one.t_events] == [t.tolist() for t in other.t_events]


# Files -------------------------------------------------------------------------------------


@pytest.mark.bits
def test_a_solution_comes_back_bit_for_bit(tmp_path, run):
    again = mf.load(run.save(tmp_path / "run.nc"))
    assert_same(again, run)
    assert again.stats == run.stats and again.provenance == run.provenance
    assert again.model == run.model
    xr.testing.assert_identical(again.to_xarray(), run.to_xarray())
    for one, other in zip(again, run, strict=True):
        assert one.quadrature_error == other.quadrature_error
        assert one.w2_to_dirac() == other.w2_to_dirac()


def test_what_came_back_can_be_gone_on_from(tmp_path, run):
    again = mf.load(run.save(tmp_path / "run.nc"))
    one, other = (
        mf.solve(MODEL, r[1], (0.5, 0.8), t_eval=[0.8]).final.coordinates for r in (run, again)
    )
    assert one.tobytes() == other.tobytes()


def test_xarray_reads_the_file_without_this_package(tmp_path, run):
    path = run.save(tmp_path / "run.nc")
    with xr.open_dataset(path, engine="h5netcdf") as data:
        expected = run.to_xarray()
        loaded = data.load()
        assert set(loaded.data_vars) | set(loaded.coords) == set(expected.variables)
        for name in expected.variables:
            np.testing.assert_array_equal(loaded[name], expected[name])
            assert loaded[name].dims == expected[name].dims
        assert data.attrs["title"].startswith("Characteristics under Transformer(USA")
        assert data.w2_to_dirac.attrs["units"] == "radian"


@pytest.mark.repeats
@pytest.mark.parametrize("name", ["coordinates", "masses", "limit", "half", "meanfield"])
def test_a_file_that_lacks_something_is_refused(tmp_path, unbroken, name):
    import h5py

    path = unbroken.save(tmp_path / "run.nc")
    with h5py.File(path, "a") as file:
        del file[name]
    with pytest.raises(mf.StorageError, match="not an intact result"):
        mf.load(path)


def test_a_flipped_bit_is_refused_or_without_effect(tmp_path, unbroken):
    path = unbroken.save(tmp_path / "run.nc")
    whole = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(whole), 120).tolist():
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            again = mf.load(path)
        except mf.StorageError:
            continue
        np.testing.assert_array_equal(again.t, unbroken.t)
        for one, other in zip(again, unbroken, strict=True):
            np.testing.assert_array_equal(one.coordinates, other.coordinates)
            np.testing.assert_array_equal(one.masses, other.masses)
            np.testing.assert_array_equal(one.limit, other.limit)


# Checkpoints -------------------------------------------------------------------------------


@pytest.mark.bits
@every_start
def test_a_run_that_was_stopped_and_resumed_is_the_unbroken_run(tmp_path, start):
    """At each of its steps in turn."""
    path, whole = tmp_path / "run.ckpt", solve(start)
    resumed, sessions = solve(start, checkpoint=path, max_steps=1), 1
    while resumed.status == "max_steps":
        sessions += 1
        resumed = solve(start, checkpoint=path, resume=True, max_steps=sessions)
    assert sessions > 3
    assert_same(resumed, whole)
    for name in ("steps", "rejected", "evaluations", "quadrature_error"):
        assert resumed.stats[name] == whole.stats[name]


@pytest.mark.bits
def test_every_checkpoint_leads_to_the_same_end(tmp_path, unbroken):
    path, copies = tmp_path / "run.ckpt", []

    def keep(_t, _state):
        if path.exists():
            copies.append(shutil.copy(path, tmp_path / f"{len(copies)}.ckpt"))

    solve(checkpoint=path, checkpoint_every=0, callback=keep)
    assert len(copies) >= 5
    for copy in copies:
        assert_same(solve(checkpoint=copy, resume=True), unbroken)


OTHERS = {
    "density": {"start": mf.Characteristics(ZONAL.zonal([1, 0.5, 0.1]))},
    "dimension": {"start": mf.Characteristics(mf.Zonal(4, 4).zonal([1, 0.5, 0.2]))},
    "limit": {"start": mf.Characteristics(ZONAL.zonal([1, 0.5, 0.2]), limit=[0, 0, -1])},
    "nodes": {"start": mf.Characteristics(ZONAL.zonal([1, 0.5, 0.2]), nodes=1000)},
    "reflected": {"start": mf.Characteristics(ZONAL.zonal([1, -0.5, 0.2]))},
    "the density itself": {"start": ZONAL.zonal([1, 0.5, 0.2])},
    "beta": {"model": mf.Transformer(mf.USA(2.1))},
    "drift": {"model": mf.Transformer(mf.SA(2.0))},
    "rtol": {"rtol": 1e-9},
    "dt": {"dt": 0.1},
    "times": {"t_eval": [0.0, 1.2]},
}


@pytest.mark.repeats
@pytest.mark.parametrize("changed", OTHERS.values(), ids=OTHERS)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, changed):
    """Nodes do not depend on the density: its masses tell one run from another."""
    path = tmp_path / "run.ckpt"
    solve(checkpoint=path, max_steps=5)
    with pytest.raises(mf.CheckpointError, match="belongs to another run"):
        solve(checkpoint=path, resume=True, **changed)


def test_a_density_in_another_dimension_is_another_run(tmp_path):
    """The same coefficients, but in R^4."""
    path, density = tmp_path / "run.ckpt", ZONAL.zonal([1, 0.5, 0.2])
    other = mf.Density(mf.Zonal(4, 4), density.coefficients)
    mf.solve(MODEL, density, (0, 1), checkpoint=path, max_steps=2)
    with pytest.raises(mf.CheckpointError, match="belongs to another run"):
        mf.solve(MODEL, other, (0, 1), checkpoint=path, resume=True)
