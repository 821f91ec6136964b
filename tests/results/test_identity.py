"""The identity of a checkpoint: what is computed with, not what it is called."""

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
    class Opaque:
        __slots__ = ()

        def __call__(self, t):
            return np.eye(3)

    with pytest.raises(TypeError, match="no contents"):
        digest(Opaque())
    model = mf.Transformer(mf.Attention(V=Opaque()))
    with pytest.raises(mf.CheckpointError, match="resumed"):
        mf.solve(model, X, (0, 1), checkpoint=tmp_path / "run")


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
