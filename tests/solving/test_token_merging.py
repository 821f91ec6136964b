"""When tokens merge: times located within steps, whatever outputs are asked for."""

import shutil
import warnings

import numpy as np
import pytest
from scipy.integrate import quad

import meanfield as mf
from meanfield.dynamics.motion import motion_for
from meanfield.solving import merging
from meanfield.solving.merging import Merging, may_merge

SA = mf.Transformer(mf.SA(4.0))
TWO = mf.Tokens.on_circle([0.2, 1.2])
OUTPUTS = [[60.0], np.linspace(0, 60, 7), np.linspace(0, 60, 6001)]


def merges(model, tokens, end, times=None, **options):
    """Times, and counts of what is left."""
    times = [end] if times is None else times
    run = mf.solve(model, tokens, (0, end), t_eval=times, **{"merge": 1e-8, **options})
    assert run.success
    return np.array(run.stats["merges"]).reshape(-1, 2).T, run


@pytest.mark.repeats
@pytest.mark.parametrize("times", OUTPUTS, ids=len)
@pytest.mark.parametrize(("rtol", "error"), [(1e-8, 1e-5), (1e-12, 1e-7)])
def test_two_tokens_merge_on_time_whatever_the_outputs(times, rtol, error):
    """phi' = -sin(phi) 2 e^(beta cos phi)/(e^beta + e^(beta cos phi)); steps were 20.85 and 20."""

    def wait(phi):
        return (np.exp(4 * (1 - np.cos(phi))) + 1) / 2 / np.sin(phi)

    options = {"epsrel": 1e-12, "limit": 500, "points": [1e-6, 1e-4, 1e-2]}
    expected = quad(wait, 2 * np.arcsin(0.5e-8), 1.0, **options)[0]
    (found, left), run = merges(SA, TWO, 60.0, times, rtol=rtol)
    assert left.tolist() == [1] and found[0] == pytest.approx(expected, rel=error)
    assert run.stats["steps"] < 110


@pytest.mark.parametrize("second", [0.2, 0.2 + 1e-9])
def test_tokens_at_the_same_place_are_one_from_the_beginning(second):
    (found, left), _ = merges(SA, mf.Tokens.on_circle([0.2, second]), 60.0)
    assert found.tolist() == [0] and left.tolist() == [1]
    (found, left), _ = merges(SA, mf.Tokens.on_circle([0.2, second, 1.0]), 60.0)
    assert found[0] == 0 and found[1] > 10 and left.tolist() == [2, 1]


@pytest.mark.repeats
@pytest.mark.parametrize(("scheme", "end"), [(mf.PostLN(), 200.0), (mf.PreLN(), 1e7)], ids=repr)
def test_every_merge_has_its_own_time(scheme, end):
    """Also of those within one step: few outputs, many, and a small rtol."""
    tokens = mf.Tokens.uniform(12, 3, rng=1)
    model = mf.Transformer(mf.SA(8.0), normalisation=scheme)
    (exact, counts), _ = merges(model, tokens, end, rtol=1e-12, merge=1e-5)
    assert counts.tolist() == list(range(11, int(counts[-1]) - 1, -1)) and counts[-1] <= 3
    assert (np.diff(exact) > 0).all()
    for times in ([end], np.linspace(0, end, 2001)):
        (found, left), run = merges(model, tokens, end, times, merge=1e-5)
        assert left.tolist() == counts.tolist()
        np.testing.assert_allclose(found, exact, rtol=1e-6)
        assert run.stats["steps"] < 300


@pytest.mark.repeats
@pytest.mark.parametrize("rtol", [1e-8, 1e-10])
def test_radii_that_come_as_close_are_part_of_it(rtol):
    """log(r_1/r_2) falls like 1/t, and last: its error is about rtol/merge of t."""
    tokens = mf.Tokens([[1.0, 0.0], [np.cos(1), np.sin(1)]], radii=[1.0, 2.0])
    model = mf.Transformer(mf.SA(8.0), normalisation=mf.PreLN())
    ((exact,), _), _ = merges(model, tokens, 1e7, rtol=1e-13, merge=1e-5)
    for times in ([1e7], np.linspace(0, 1e7, 501)):
        ((found,), _), _ = merges(model, tokens, 1e7, times, rtol=rtol, merge=1e-5)
        assert found == pytest.approx(exact, rel=rtol / 1e-5)
    at = mf.solve(model, tokens, (0, found), t_eval=[found], rtol=1e-12).final
    assert np.hypot(np.diff(np.log(at.radii))[0], np.linalg.norm(at.x[1] - at.x[0])) == (
        pytest.approx(1e-5, rel=rtol / 1e-5)
    )


@pytest.mark.parametrize("places", [[0.2, 0.2, 0.2, 1.0], [0.2, 0.2, 0.2 + 1e-9, 1.0]])
def test_chains_of_equal_tokens_are_one(places):
    merging = Merging(4, 1e-8)
    left = merging.merge(mf.Tokens.on_circle(places), 0.0)
    assert len(left) == 2 and merging.labels.tolist() == [0, 0, 0, 1]
    np.testing.assert_allclose(merging.shares, [1 / 3, 1 / 3, 1 / 3, 1], rtol=1e-15)


def test_tokens_without_mass_merge_too():
    merging = Merging(3, 1e-8)
    left = merging.merge(mf.Tokens.on_circle([0.2, 0.2, 1.0], [0.0, 0.0, 1.0]), 0.0)
    assert left.masses.tolist() == [0, 1] and merging.shares.tolist() == [1, 1, 1]


def test_two_merges_in_one_step_have_two_times():
    """Gaps that close at 0.5 and 0.55 of a step."""
    merging, closes = Merging(4, 1e-8), {(0, 1): 0.5, (2, 3): 0.55}

    def gaps(one, two):
        ends = np.array([closes[pair] for pair in zip(one, two, strict=True)])
        return lambda s: np.maximum(ends - np.ravel(s), 0)

    merging.merge(mf.Tokens.on_circle([0.2, 0.2, 1.0, 1.0]), 2.0, (1.0, 1.0, gaps))
    (first, three), (second, two) = merging.times
    assert (three, two) == (3, 2)
    assert [first, second] == pytest.approx([1.5, 1.55], abs=1e-7)


def test_symmetric_tokens_merge_at_once():
    square = mf.Tokens.on_circle(np.array([0.3, -0.3, np.pi - 0.3, np.pi + 0.3]))
    (_, left), _ = merges(mf.Transformer(mf.SA(9.0)), square, 30.0, merge=1e-6)
    assert left.tolist() == [2]


def test_outputs_after_a_merge_and_within_its_step_have_merged_tokens():
    ((found,), _), _ = merges(SA, TWO, 60.0)
    times = [found - 0.1, found - 0.01, found + 0.01, found + 0.1, 60.0]
    _, run = merges(SA, TWO, 60.0, times)
    gaps = [np.linalg.norm(np.diff(state.x, axis=0)) for state in run]
    assert gaps[0] > gaps[1] > 0 and gaps[2:] == [0, 0, 0]


@pytest.mark.repeats
@pytest.mark.bits
@pytest.mark.parametrize("stop", range(20, 36, 3))
def test_a_run_that_merges_within_steps_resumes(tmp_path, stop):
    times, path = np.linspace(0, 60, 601), tmp_path / "run.checkpoint"
    whole = mf.solve(SA, TWO, (0, 60), t_eval=times, merge=1e-8)
    options = {"t_eval": times, "merge": 1e-8, "checkpoint": path}
    end = times[stop * 6] + 0.05
    mf.solve(SA, TWO, (0, 60), callback=lambda t, _: t > end, **options)
    run = mf.solve(SA, TWO, (0, 60), resume=True, **options)
    assert run.stats["merges"] == whole.stats["merges"]
    assert run.stats["steps"] == whole.stats["steps"]
    for one, two in zip(run, whole, strict=True):
        np.testing.assert_array_equal(one.x, two.x)


@pytest.mark.long
@pytest.mark.bits
def test_masses_of_clusters_are_those_of_the_unbroken_run(tmp_path):
    """Sums of masses depend on the order of mergers in their last bits, which move the rest."""
    rng, path, copies = np.random.default_rng(3), tmp_path / "run.checkpoint", []
    x, masses = rng.standard_normal((24, 3)), rng.uniform(0.1, 1, 24)
    tokens = mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True), masses / masses.sum())
    times = np.linspace(0, 60, 31)
    options = {"t_eval": times, "merge": 1e-2, "checkpoint_every": 0}

    def keep(_t, _state):
        if path.exists():
            copies.append(shutil.copy(path, tmp_path / f"{len(copies)}"))

    whole = mf.solve(SA, tokens, (0, 60), checkpoint=path, callback=keep, **options)
    assert len(whole.stats["merges"]) > 20
    for copy in copies[4::12]:
        run = mf.solve(SA, tokens, (0, 60), checkpoint=copy, resume=True, **options)
        assert run.stats["merges"] == whole.stats["merges"]
        for one, two in zip(run, whole, strict=True):
            np.testing.assert_array_equal(one.x, two.x)


def test_a_steady_run_has_all_outputs_before_its_end():
    times = np.linspace(0, 100, 1001)
    run = mf.solve(SA, TWO, (0, 100), t_eval=times, until="steady", steady_tolerance=1e-6)
    assert run.status == "steady" and run.t[-1] < 100
    assert run.t[:-1].tolist() == times[times < run.t[-1]].tolist()


# The hint ----------------------------------------------------------------------------------------


def hints(monkeypatch, **options):
    """The warnings of a run of three tokens under USA, of which two collapse at once."""
    monkeypatch.setattr(merging, "HINT_INTERVAL", 50)
    tokens = mf.Tokens.on_circle([0.0, 0.1, 3.0])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        mf.solve(mf.Transformer(mf.USA(5.0)), tokens, (0, 5), t_eval=[5], **options)
    return [str(warning.message) for warning in said]


def test_a_long_run_of_collapsed_tokens_hints_at_merging_once(monkeypatch):
    (text,) = hints(monkeypatch)
    assert "merge=1e-8" in text and "% of the way" in text


def test_no_hint_where_tokens_merge_or_steps_are_given(monkeypatch):
    assert hints(monkeypatch, merge=1e-8) == []
    assert hints(monkeypatch, dt=0.01) == []


def test_tokens_that_may_not_merge_have_no_hint():
    attention = mf.Transformer(mf.Attention(np.eye(2), causal=True))
    for model in (attention, mf.Transformer(mf.SA(1.0), causal=True)):
        assert not may_merge(motion_for(TWO)(model, TWO))
    assert may_merge(motion_for(TWO)(SA, TWO))
