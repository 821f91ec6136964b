"""The identity of a checkpoint: what is computed with, not what it is called."""

import functools
import importlib
import re
import threading
from enum import Enum
from typing import NamedTuple

import numpy as np
import pytest

import meanfield as mf
from meanfield.core.identity import digest

X = mf.Tokens.uniform(5, 3, rng=0)


def crossing(level):
    """An event that passes a level; all have the same name."""

    def passes(_t, state):
        return state.x[0, 0] - level

    return passes


def turning(speed):
    """V(t) turns at a speed; all have the same name."""
    return lambda t: np.cos(speed * t) * np.eye(3)


def test_digests_tell_what_functions_do():
    assert digest(crossing(0.1)) == digest(crossing(0.1)) != digest(crossing(0.2))
    assert digest(lambda t: t + 1) != digest(lambda t: t + 2)
    assert digest(lambda t, a=1: t + a) != digest(lambda t, a=2: t + a)
    assert digest(lambda t: len(t)) != digest(lambda t: max(t))
    assert digest(len) != digest(max)
    assert digest(lambda t: np.sin(t)) != digest(lambda t: np.cos(t))


def test_digests_do_not_depend_on_what_was_evaluated_before():
    drift = mf.Interaction(np.exp)
    before = digest(drift)
    drift.attraction(4, 3), drift.slope(np.zeros(3))
    assert digest(drift) == before


def test_digests_tell_arrays_by_shape_and_type():
    a = np.arange(6.0)
    assert len({digest(b) for b in (a, a.reshape(2, 3), a.astype(np.float32), a + 1.0)}) == 4


def test_what_has_no_identity_is_not_resumed(tmp_path):
    lock = threading.Lock()

    def locked(t):
        with lock:
            return np.eye(3)

    drift = mf.Attention(V=locked)
    model = mf.Transformer(drift)
    with pytest.raises(mf.CheckpointError, match=r"V.*lock, a _thread.lock, .* resumed"):
        mf.solve(model, X, (0, 1), checkpoint=tmp_path / "run")
    assert mf.solve(model, X, (0, 1)).success
    assert drift == drift != mf.Attention(V=locked) and hash(drift) == hash(drift)


@pytest.mark.parametrize("what", ["event", "parameter"])
def test_another_function_of_the_same_name_is_another_run(tmp_path, what):
    def solve(value, **options):
        drift = mf.Attention(V=turning(value)) if what == "parameter" else mf.SA(1.0)
        events = crossing(value) if what == "event" else ()
        path = tmp_path / "run"
        return mf.solve(mf.Transformer(drift), X, (0, 1), events=events, checkpoint=path, **options)

    solve(0.3, max_steps=2)
    with pytest.raises(mf.CheckpointError, match="another run"):
        solve(0.4, resume=True)
    assert solve(0.3, resume=True).success


@pytest.mark.bits
def test_parameters_that_change_resume_to_the_last_bit(tmp_path):
    """Times of velocities differ from the clock's by rounding, and are kept too."""
    model = mf.Transformer(mf.Attention(V=turning(7.0)))
    options = {"t_eval": [1.05, np.pi, 9.1], "rtol": 1e-9}
    whole = mf.solve(model, X, (0.1, 9.1), **options)
    options["checkpoint"] = tmp_path / "run"
    for most in range(1, 40):
        part = mf.solve(model, X, (0.1, 9.1), max_steps=most, resume=most > 1, **options)
        assert part.status == "max_steps"
    parts = mf.solve(model, X, (0.1, 9.1), resume=True, **options)
    for one, other in zip(whole, parts, strict=True):
        assert one.x.tobytes() == other.x.tobytes()


class Turning:
    """V(t) turns at a speed."""

    speed = 3.0

    def __call__(self, t):
        return np.cos(self.speed * t) * np.eye(3)


def _class_of(**attributes):
    return type("Own", (Turning,), {"__module__": __name__, **attributes})


class Pair(NamedTuple):
    first: int


class Level(Enum):
    LOW = 1.0
    HIGH = 2.0


@pytest.mark.parametrize(
    "made",
    [
        lambda x: _class_of(speed=x)(),
        lambda x: _class_of(speed=property(lambda _self: x))(),
        lambda x: _class_of(speed=functools.cached_property(lambda _self: x))(),
        lambda x: _class_of(turn=staticmethod(lambda: x))(),
        lambda x: _class_of(turn=classmethod(lambda _cls: x))(),
        lambda x: _class_of(__eq__=lambda _self, _other: x),
        lambda x: _class_of(speed=x),
        lambda x: _class_of(speed=x, pair=Pair),
        lambda x: Level(float(x)),
        lambda x: np.random.default_rng(x).standard_normal,
        lambda x: [x].count,
        lambda x: re.compile(f"a{x}"),
        lambda x: re.compile("a", re.IGNORECASE if x == 1 else re.DOTALL),
    ],
)
def test_all_that_a_class_defines_is_identity(made):
    assert digest(made(1)) == digest(made(1)) != digest(made(2))


def test_kinds_of_a_family_do_not_change_one_of_them():
    class Own(mf.Weights, family=True):
        def of_logits(self, logits, squares):
            return logits

    class First(Own):
        """One."""

    before = digest(First())

    class Second(Own):
        """Another."""

    assert digest(First()) == before != digest(Second())


def test_flags_of_a_kind_are_identity():
    def kind(flag):
        body = {"__module__": __name__, "normalised": flag, "of_logits": lambda s, l, q: l}
        return type("Flagged", (mf.Weights,), body)()

    assert digest(kind(True)) == digest(kind(True)) != digest(kind(False))


def test_modules_of_ones_own_count_as_far_as_they_are_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "ownmod.py").write_text("import ownmod\nA = 2.0\nB = 3.0\ndef h(t): return B * t\n")
    import ownmod  # type: ignore[import-not-found]

    def through_a_global():
        return eval("lambda t: ownmod.A + ownmod.h(t)", {"ownmod": ownmod})

    before, whole = digest(through_a_global()), digest(ownmod)
    assert digest(through_a_global()) == before
    for name in "AB":
        with monkeypatch.context() as changed:
            changed.setattr(ownmod, name, 5.0)
            assert digest(through_a_global()) != before
    (tmp_path / "ownmod.py").write_text("A = 4.0\nC = 1.0")
    assert digest(ownmod) == whole  # it computes with what was loaded
    importlib.reload(ownmod)
    assert digest(ownmod) != whole


def test_a_variable_that_is_not_set_yet_has_an_identity():
    def event(_t, _state):
        return later

    before = digest(event)
    later = 1.0
    assert digest(event) != before


class Passes:
    """An event that is an object."""

    def __init__(self, level):
        self.level = level

    def __call__(self, _t, state):
        return state.x[0, 0] - self.level


@pytest.mark.bits
def test_a_callable_object_as_an_event_is_resumed(tmp_path):
    def solve(level, **options):
        path, model = tmp_path / "run", mf.Transformer(mf.SA(1.0))
        return mf.solve(model, X, (0, 1), events=Passes(level), checkpoint=path, **options)

    assert solve(0.3, max_steps=2).options["events"] == ["Passes"]
    with pytest.raises(mf.CheckpointError, match="another run"):
        solve(0.4, resume=True)
    assert solve(0.3, resume=True).success


def test_another_motion_of_a_state_is_another_run(tmp_path):
    class Angle(mf.State):
        """An angle."""

        def __init__(self, a: np.ndarray):
            self.a = np.array(a, dtype=float)

        def arrays(self):
            return {"a": (("token",), self.a)}

    def solve(speed, **options):
        class AngleMotion(mf.Motion, moves=Angle):
            def coordinates(self, state):
                return state.a

            def state_of(self, y):
                return Angle(y)

            def velocity(self, y, t):
                return speed * y

        model = mf.Transformer(mf.SA(1.0))
        return mf.solve(model, Angle([1.0]), (0, 1), checkpoint=tmp_path / "run", **options)

    solve(1.0, max_steps=2)
    with pytest.raises(mf.CheckpointError, match="another run"):
        solve(2.0, resume=True)
    assert solve(1.0, resume=True).success
