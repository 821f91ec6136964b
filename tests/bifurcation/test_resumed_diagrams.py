"""Diagrams that were interrupted and resumed are those of an unbroken call, bit for bit."""

import signal
import threading
from dataclasses import fields
from functools import cache, partial

import numpy as np
import pytest

import meanfield as mf
from meanfield.bifurcation import continuation, detection
from meanfield.bifurcation.branches import Following
from meanfield.solving.checkpoint import Keeper

CIRCLE = mf.Circle(16)
POLAR = mf.Interaction.chebyshev([0, 1, 1.5])
LEGENDRE = mf.Interaction(lambda t: np.polynomial.legendre.Legendre.basis(4)(t), name="P_4")


class Slanted(mf.ZonalDrift):
    """W' = 1 + b t."""

    b: float

    def slope(self, t):
        return 1 + self.b * t


def second(density):
    return float(density.moment(2).real)


CASES = {
    "USA on the circle": partial(
        mf.branches, mf.USA(4.0), CIRCLE, (0.37, 0.45),
        degrees=[1], save_at=[0.39, 0.4], observables={"second": second},
    ),
    "SA on the sphere": partial(mf.branches, mf.SA(2.0), mf.Sphere(8), (2.0, 4.0)),
    "zonal": partial(mf.branches, mf.USA(2.0), mf.Zonal(5, 16), (3.0, 5.0), max_points=20),
    "beta": partial(
        mf.branches, mf.USA, CIRCLE, 0.42, beta=(3.8, 4.2), degrees=[1], max_step=0.5
    ),
    "vary": partial(mf.branches, Slanted(b=1.0), CIRCLE, 2.5, vary={"b": (0, 3)}, max_step=0.5),
    "secondary": partial(mf.branches, POLAR, CIRCLE, (1.2, 1.8), save_at=[1.6], max_step=0.3),
    "octahedral": partial(
        mf.branches, LEGENDRE, mf.Sphere(16), (8.0, 9.05), symmetry="octahedral", max_points=6
    ),
    "phases of USA": partial(mf.phase_diagram, mf.USA, CIRCLE, (2.3, 3.0), degrees=(1,)),
    "phases of SA": partial(mf.phase_diagram, mf.SA, CIRCLE, (1.0, 3.0), degrees=(1, 2)),
}  # fmt: skip

LATE = "USA on the circle", "secondary", "phases of USA"  # a first branch, a second one, a curve


def numbers(value):
    """All that a diagram holds, as text in which every bit counts."""
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype}{value.shape}{value.tobytes().hex()}"
    if isinstance(value, dict):
        return repr([(name, numbers(entry)) for name, entry in value.items()])
    if isinstance(value, list | tuple):
        return repr([numbers(entry) for entry in value])
    if isinstance(value, mf.StationaryState):
        return numbers([value.kappa, value.legendre_moments, value.residuals])
    if hasattr(value, "data_vars"):
        return numbers([{n: v.values for n, v in value.variables.items()}, value.attrs])
    if hasattr(value, "special_points"):
        return numbers([getattr(value, field.name) for field in fields(value)] + value.warnings)
    if hasattr(value, "loci"):
        points = {name: locus.points for name, locus in value.loci.items()}
        return numbers([value.data, value.tricritical, value.ends, points, value.warnings])
    if hasattr(value, "interval"):
        return numbers([getattr(value, field.name) for field in fields(value)])
    return repr(value)


@cache
def unbroken(name):
    return numbers(CASES[name]())


class Killed(BaseException):
    """What a test raises instead of a signal."""


def kill_after(monkeypatch, answers):
    """Let the next call die after so many new answers; the last five are not in its file."""
    found, save = [], Keeper.save

    def count(self, arrays):
        found.append(arrays)
        if len(found) == answers - 5:
            save(self, arrays)
        if len(found) == answers:
            monkeypatch.setattr(Keeper, "save", lambda *_: None)
            raise Killed

    monkeypatch.setattr(Keeper, "save_now_and_then", count)


@pytest.mark.bits
@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_a_diagram_that_is_killed_again_and_again_is_the_unbroken_one(name, tmp_path, monkeypatch):
    """It dies after some answers, of which the checkpoint lacks the last five.

    When it is finished, nothing is computed again.
    """
    asked = unbroken(name)
    path, deaths, most = tmp_path / "diagram.checkpoint", 0, 7
    while True:
        with monkeypatch.context() as patches:
            kill_after(patches, most)
            try:
                found = CASES[name](checkpoint=path, resume=True)
            except Killed:
                deaths, most = deaths + 1, most * 3
                continue
        break
    assert numbers(found) == asked and (deaths >= 3 or name == "phases of SA")
    for module, function in ((continuation, "newton"), (detection, "growth_rates")):
        monkeypatch.setattr(module, function, None)
    monkeypatch.setattr(Keeper, "save_now_and_then", None)  # after new answers
    assert numbers(CASES[name](checkpoint=path, resume=True)) == asked


@pytest.mark.repeats
@pytest.mark.bits
@pytest.mark.parametrize("number, name", [(3, n) for n in CASES] + [(40, n) for n in LATE])
def test_ctrl_c_and_then_resume(name, number, tmp_path, monkeypatch):
    """Whatever is interrupted says so, and goes on where it was."""
    path, seen, at = tmp_path / "diagram.checkpoint", [], Following.at

    def pressed(self, *arguments):
        seen.append(arguments)
        if len(seen) == number:
            signal.raise_signal(signal.SIGINT)
        return at(self, *arguments)

    with monkeypatch.context() as patches:
        patches.setattr(Following, "at", pressed)
        cut = CASES[name](checkpoint=path)
    if numbers(cut) != unbroken(name):
        assert any("interrupted" in warning for warning in cut.warnings)
    else:
        assert len(seen) <= number
    assert numbers(CASES[name](checkpoint=path, resume=True)) == unbroken(name)


def small(**changes):
    """A diagram of 11 points, or another one."""
    arguments = {"drift": mf.Kuramoto(), "space": CIRCLE, "kappa": (1.5, 3.0), "degrees": [1]}
    return mf.branches(**(arguments | {"stability": False} | changes))


@pytest.mark.bits
def test_more_points_may_be_asked_for_when_a_diagram_is_resumed(tmp_path, monkeypatch):
    path = tmp_path / "diagram.checkpoint"
    assert "raise max_points" in small(max_points=5, checkpoint=path).warnings[0]
    found = small(checkpoint=path, resume=True)
    assert numbers(found) == numbers(small()) and found.ends == ["range"]
    fewer = small(max_points=5, checkpoint=path, resume=True)
    assert numbers(fewer) == numbers(small(max_points=5))


OTHERS = {
    "drift": {"drift": mf.USA(1.0)},
    "parameter of the drift": {"drift": mf.USA(1.0 + 1e-15)},
    "space": {"space": mf.Sphere(16)},
    "degree of the space": {"space": mf.Circle(17)},
    "range": {"kappa": (1.5, 3.1)},
    "another parameter": {"drift": mf.USA, "kappa": 2.5, "beta": (1.0, 1.5)},
    "degrees": {"degrees": None},
    "secondary": {"secondary": False},
    "stability": {"stability": True},
    "save_at": {"save_at": [2.5]},
    "observables": {"observables": {"second": second}},
    "max_step": {"max_step": 0.11},
    "symmetry": {"space": mf.Sphere(16), "symmetry": "octahedral"},
}


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "diagram.checkpoint"
    small(checkpoint=path)
    return path


@pytest.mark.repeats
@pytest.mark.parametrize("changed", OTHERS.values(), ids=OTHERS)
def test_a_checkpoint_of_another_diagram_is_refused(checkpoint, changed):
    before = checkpoint.read_bytes()
    with pytest.raises(mf.CheckpointError, match="belongs to another"):
        small(checkpoint=checkpoint, resume=True, **changed)
    assert checkpoint.read_bytes() == before


def test_checkpoints_of_phase_diagrams_are_told_apart(tmp_path):
    plane = partial(mf.phase_diagram, space=CIRCLE, degrees=(2,), progress=False)
    path = tmp_path / "plane.checkpoint"
    plane(mf.SA, beta=(1.0, 2.0), checkpoint=path)
    others = [
        {"beta": (1.0, 2.1)},
        {"degrees": (3,)},
        {"max_step": 0.1},
        {"space": mf.Sphere(8)},
    ]
    for changed in [{"drift": mf.USA}, *others]:
        asked = {"drift": mf.SA, "beta": (1.0, 2.0)} | changed
        with pytest.raises(mf.CheckpointError, match="belongs to another"):
            plane(**asked, checkpoint=path, resume=True)


def test_a_damaged_checkpoint_is_refused(checkpoint):
    whole = checkpoint.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    for damaged in (whole[:-1], bytes(flipped), b""):
        checkpoint.write_bytes(damaged)
        with pytest.raises(mf.CheckpointError, match="not an intact checkpoint"):
            small(checkpoint=checkpoint, resume=True)


def test_observables_are_not_asked_again(tmp_path):
    """But once, for the check of what they give."""
    path, asked = tmp_path / "diagram.checkpoint", tmp_path / "asked"

    def counted(_):
        with open(asked, "a") as file:
            return float(file.write("x"))

    small(observables={"counted": counted}, checkpoint=path)
    before = asked.stat().st_size
    small(observables={"counted": counted}, checkpoint=path, resume=True)
    assert before > 10 and asked.stat().st_size == before + 1


def test_arguments_of_checkpoints_are_checked(tmp_path):
    with pytest.raises(ValueError, match="resume=True needs checkpoint"):
        small(resume=True)
    with pytest.raises(ValueError, match="checkpoint_every"):
        small(checkpoint=tmp_path / "a", checkpoint_every=-1.0)
    lock = threading.Lock()
    with pytest.raises(mf.CheckpointError, match="no contents"):
        small(checkpoint=tmp_path / "a", observables={"locked": lambda _: float(lock.locked())})


def test_a_diagram_that_fails_keeps_what_it_found(tmp_path):
    path, asked = tmp_path / "diagram.checkpoint", []

    def fails(density):
        asked.append(density)
        if len(asked) == 2:
            raise RuntimeError("no luck")
        return 1.0

    with pytest.raises(RuntimeError, match="no luck"):
        small(observables={"fails": fails}, checkpoint=path)
    assert path.stat().st_size > 10_000
