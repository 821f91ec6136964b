"""Checkpoints that must not be resumed from: damaged ones, and those of another run."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.steppers import HochbruckOstermann

START = mf.Circle(16).von_mises(0.3, 1.0)
MODEL = mf.Transformer(mf.USA(1.0), 3.0)


def solve(path, *, model=MODEL, mu0=START, span=(0, 1), **options):
    """A short run with a checkpoint."""
    options = {"t_eval": [0.5, 1.0], **options}
    return mf.solve(model, mu0, span, checkpoint=path, **options)


def refuse(path, match, **changed):
    """Resuming must raise a CheckpointError, and leave the file as it is."""
    before = path.read_bytes()
    with pytest.raises(mf.CheckpointError, match=match):
        solve(path, resume=True, **changed)
    assert path.read_bytes() == before


@pytest.fixture
def checkpoint(tmp_path):
    """The checkpoint of a run that is not finished."""
    path = tmp_path / "run.ckpt"
    assert solve(path, max_steps=5).status == "max_steps"
    return path


@pytest.fixture
def damaged(checkpoint):
    """Writes a damaged version of the checkpoint and returns its path."""

    def write(content):
        path = checkpoint.with_name("damaged.ckpt")
        path.write_bytes(content)
        return path

    return write


def test_a_checkpoint_that_was_cut_short_is_refused(checkpoint, damaged):
    """Empty, within the name, within the checksum, within the data, by one byte."""
    whole = checkpoint.read_bytes()
    for length in (0, 1, 16, 47, 48, 1000, len(whole) // 2, len(whole) - 1):
        refuse(damaged(whole[:length]), "damaged.ckpt is not an intact checkpoint: it was cut")
    refuse(damaged(whole + b"\0"), "not an intact checkpoint")
    refuse(damaged(b"something else altogether" * 100), "or another program wrote it")


def test_a_checkpoint_with_a_single_wrong_bit_is_refused(checkpoint, damaged):
    """In the name, the checksum, or anywhere in the data."""
    whole = checkpoint.read_bytes()
    places = np.random.default_rng(0).integers(48, len(whole), 30)
    for place in (0, 15, 16, 47, 48, *places.tolist(), len(whole) - 1):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        refuse(damaged(flipped), "Remove it and start the run again")


OTHERS = {
    "model.drift.beta": {"model": mf.Transformer(mf.USA(1.5), 3.0)},
    "model.kappa": {"model": mf.Transformer(mf.USA(1.0), 3.5)},
    "model.drift": {"model": mf.Transformer(mf.SA(1.0), 3.0)},
    "ensemble: model.drift.beta": {"model": mf.Transformer(mf.USA([1.0]), 3.0)},
    "state": {"mu0": START.rotate(1e-9)},
    "initial degree: state": {"mu0": START.resample(17)},
    "t_start": {"span": (0.25, 1)},
    "t_eval": {"t_eval": [0.5, 0.75, 1.0]},
    "rtol": {"rtol": 1e-7},
    "dt": {"dt": 0.1},
    "scheme": {"scheme": HochbruckOstermann},
    "min_degree": {"min_degree": 17},
    "max_degree": {"max_degree": 4095},
    "steady_tolerance": {"until": "steady"},
    "events": {"events": lambda _t, density: abs(density.moment(1)) - 0.6},
}


@pytest.mark.repeats
@pytest.mark.parametrize("name", OTHERS)
def test_a_checkpoint_of_another_run_is_refused_with_the_argument_that_differs(checkpoint, name):
    wanted = f"run.ckpt belongs to another run.*[: ]{name.split()[-1]}[,.]"
    refuse(checkpoint, wanted, **OTHERS[name])


def test_the_same_numbers_in_another_shape_are_another_run(tmp_path):
    """Six members, and a table of two by three."""
    table = np.stack([START.coefficients] * 6)
    six = mf.Density(START.space, table)
    two_by_three = mf.Density(START.space, table.reshape(2, 3, -1))
    path = tmp_path / "run.ckpt"
    solve(path, mu0=six, max_steps=5)
    refuse(path, "belongs to another run", mu0=two_by_three)


HARMLESS = {
    "more steps": {"max_steps": 10**6},
    "progress": {"progress": False},
    "interval": {"checkpoint_every": 0},
    "callback": {"callback": lambda _t, _density: None},
    "notes": {"provenance": {"note": "second attempt"}},
}


@pytest.mark.bits
@pytest.mark.parametrize("changed", HARMLESS.values(), ids=HARMLESS)
def test_what_does_not_change_the_result_may_change(checkpoint, changed):
    final = solve(checkpoint, resume=True, **changed).final
    whole = mf.solve(MODEL, START, (0, 1), t_eval=[0.5, 1.0]).final
    np.testing.assert_array_equal(final.coefficients, whole.coefficients)


@pytest.mark.parametrize("name", ["missing/run.ckpt", "folder"])
def test_a_place_where_no_checkpoint_can_be_written_is_refused_at_once(tmp_path, name):
    """Not after an hour, when the first one is due."""
    (tmp_path / "folder").mkdir()
    steps = []
    with pytest.raises((mf.CheckpointError, ValueError), match=r"missing|folder"):
        solve(tmp_path / name, callback=lambda t, _density: steps.append(t))
    assert steps == []
