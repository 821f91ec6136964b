"""Runs that have ended go on to a later time: in memory, from files and from checkpoints."""

import pickle
from functools import partial

import numpy as np
import pytest

import meanfield as mf

FIXED = {"dt": 1 / 64}
SA = mf.Transformer(mf.SA(2.0))
NOISY = mf.Transformer(mf.SA(2.0), kappa=5.0)
JUMPING = mf.Transformer(mf.SA(2.0), kappa=mf.PerLayer([1.0, 3.0, 2.0, 4.0], 0.5))
COMMON = mf.Transformer(mf.SA(2.0), kappa=5.0, common=mf.CommonRotations(0.1))
USA = mf.Transformer(mf.USA(np.array([1.0, 2.0])), kappa=5.0)
SHRINKING = mf.Transformer(mf.Attention(V=-1.0))
BUMP = mf.Circle(16).von_mises(0.3, 1.0)
CAP = mf.Zonal(4, 16).density(lambda x: 1 + 0.3 * x)
BALL = mf.Sphere(8).density(lambda x, y, z: 1 + 0.3 * x + 0.2 * y)
X = mf.Tokens.uniform(6, 3, rng=0)
CLOSE = mf.Tokens(np.array([[1.0, 0.0], [np.cos(0.06), np.sin(0.06)], [0.0, 1.0]]))
STARTS = mf.Tokens.uniform(6, 3, rng=0, shape=(3,))
LAW = mf.Gaussian([0.5, -0.2], [[1, 0.3], [0.3, 0.5]])
RUNS = {
    "density": (NOISY, BUMP, FIXED),
    "explicit density": (NOISY, BUMP, {**FIXED, "scheme": mf.steppers.DormandPrince}),
    "sphere": (NOISY, BALL, FIXED),
    "zonal": (NOISY, CAP, FIXED),
    "ensemble": (USA, BUMP, FIXED),
    "common noise": (COMMON, BUMP, {**FIXED, "rng": 3}),
    "jumps, one at the old end": (JUMPING, BUMP, FIXED),
    "tokens": (SA, X, FIXED),
    "merging": (SA, CLOSE, {**FIXED, "merge": 0.05}),
    "layers": (SA, X, {**FIXED, "scheme": mf.steppers.Layers}),
    "noise": (NOISY, X, {"rng": 3}),
    "generator": (NOISY, X, {"rng": np.random.default_rng(5)}),
    "noisy replicas": (NOISY, STARTS, {"rng": 3}),
    "replicas": (SA, STARTS, FIXED),
    "characteristics": (SA, mf.Characteristics(BUMP), FIXED),
    "gram": (SA, mf.Gram(X.x @ X.x.T), FIXED),
    "equiangular": (SA, mf.Equiangular(n=8, rho=0.1), FIXED),
    "gaussian": (SHRINKING, LAW, FIXED),
}
EARLY, LATE = [0.25, 0.5, 1.0], [1.25, 2.0]


def crosses(t, state):
    return t - 1.3


def contents(run):
    """All that a run returns, but for the seconds it took."""
    states = [{name: np.array(a) for name, (_, a) in state.arrays().items()} for state in run]
    states += [{"c": s.coefficients} for s in run if isinstance(s, mf.Density)]
    stats = {name: value for name, value in run.stats.items() if name != "seconds"}
    events = [times.tolist() for times in run.t_events]
    return run.status, run.message, run.t.tolist(), events, stats, states, run.options


def solved(name, times, **more):
    model, state, options = RUNS[name]
    if isinstance(options.get("rng"), np.random.Generator):
        options = {**options, "rng": np.random.default_rng(5)}
    return mf.solve(model, state, (0, times[-1]), t_eval=times, **{**options, **more})


@pytest.mark.parametrize("name", RUNS)
def test_an_extension_is_the_longer_run(name, tmp_path):
    whole, short = solved(name, EARLY + LATE), solved(name, EARLY)
    np.testing.assert_equal(contents(short.extend(2.0, t_eval=LATE)), contents(whole))
    loaded = mf.load(short.save(tmp_path / "short.nc"))
    again = mf.load(loaded.save(tmp_path / "again.nc"))  # a file from a file extends too
    for run in (loaded, again):
        np.testing.assert_equal(contents(mf.extend(run, 2.0, t_eval=LATE)), contents(whole))


@pytest.mark.parametrize("name", RUNS)
def test_a_finished_checkpoint_resumes_to_a_later_end(name, tmp_path):
    keeping = {"checkpoint": tmp_path / "run.checkpoint", "resume": True}
    if name == "generator":
        pytest.skip("the same as noise: a generator in the same state")
    solved(name, EARLY, **keeping)
    longer = solved(name, EARLY + LATE, **keeping)
    np.testing.assert_equal(contents(longer), contents(solved(name, EARLY + LATE)))


def test_extensions_extend():
    short = solved("noise", EARLY)
    twice = short.extend(1.25, t_eval=[1.25]).extend(2.0, t_eval=[2.0])
    np.testing.assert_equal(contents(twice), contents(solved("noise", EARLY + LATE)))


@pytest.mark.parametrize(("model", "state"), [(NOISY, BUMP), (SA, X), (SA, STARTS), (USA, BUMP)])
def test_with_error_control_it_differs_by_the_error(model, state):
    whole = mf.solve(model, state, (0, 2), t_eval=EARLY + LATE, rtol=1e-9)
    short = mf.solve(model, state, (0, 1), t_eval=EARLY, rtol=1e-9)
    longer = short.extend(2.0, t_eval=LATE)
    coordinates = "coefficients" if isinstance(state, mf.Density) else "x"
    for one, other in zip(longer, whole, strict=True):
        one, other = (getattr(part, coordinates) for part in (one, other))
        size = min(one.shape[-1], other.shape[-1]) if coordinates != "x" else one.shape[-1]
        np.testing.assert_allclose(one[..., :size], other[..., :size], rtol=0, atol=1e-7)


@pytest.mark.parametrize(("model", "state"), [(NOISY, BUMP), (SA, X), (SA, STARTS), (USA, BUMP)])
def test_an_early_break_is_extended_bit_for_bit(model, state):
    times = [1.0, 5.0, 40.0]
    whole = mf.solve(model, state, (0, 40), t_eval=times, rtol=1e-9)
    broken = mf.solve(model, state, (0, 20), t_eval=[1.0, 5.0, 20.0], rtol=1e-9, max_steps=6)
    assert broken.status == "max_steps"
    longer = broken.extend(40.0, t_eval=[40.0])
    kept = [i for i, t in enumerate(longer.t) if t != 20.0]
    assert longer.t[kept].tolist() == times
    for i, state in zip(kept, whole, strict=True):
        np.testing.assert_equal(contents_of(longer[i]), contents_of(state))


def jumping(kind):
    """Model whose kappa, or whose values of attention, jump at t = 1.40625 = 90/64."""

    def parameter(t):
        return (4.0, 20.0)[int(t >= 1.40625)]

    if kind == "noise":
        return mf.Transformer(mf.SA(2.0), kappa=parameter)
    return mf.Transformer(mf.Attention(V=lambda t: parameter(t) / 8 * np.eye(2)))


BREAKING = {
    "density": ("noise", BUMP, FIXED),
    "explicit density": ("noise", BUMP, {**FIXED, "scheme": mf.steppers.DormandPrince}),
    "noise": ("noise", CLOSE, {"rng": 3, "dt": 0.01}),
    "tokens": ("drift", CLOSE, FIXED),
    "characteristics": ("drift", mf.Characteristics(BUMP), FIXED),
    "gaussian": ("drift", mf.Gaussian([0.5, -0.2], [[0.1, 0.03], [0.03, 0.05]]), {"dt": 1 / 256}),
}
QUICK = ("density", "tokens")


@pytest.mark.parametrize(
    ("name", "early"),
    [pytest.param(n, [], marks=[pytest.mark.long] * (n not in QUICK)) for n in BREAKING]
    + [
        pytest.param(n, [0.625], marks=pytest.mark.long)
        for n in ("density", "noise", "tokens", "characteristics", "gaussian")
    ],
)
def test_an_extension_has_breaks_of_its_own_beside_those_of_the_run(name, early):
    kind, state, options = BREAKING[name]
    model = jumping(kind)
    whole = mf.solve(
        model, state, (0, 2), t_eval=EARLY + LATE, breaks=[*early, 1.40625, 1.75], **options
    )
    blind = mf.solve(model, state, (0, 2), t_eval=EARLY + LATE, breaks=early, **options)
    with pytest.raises(AssertionError):
        np.testing.assert_equal(contents(blind)[5], contents(whole)[5])
    short = mf.solve(model, state, (0, 1), t_eval=EARLY, breaks=early, **options)
    longer = short.extend(2.0, t_eval=LATE, breaks=[1.40625, 1.75])
    np.testing.assert_equal(contents(longer), contents(whole))
    twice = short.extend(1.25, t_eval=LATE[:1]).extend(2, t_eval=[2], breaks=[1.40625, 1.75])
    np.testing.assert_equal(contents(twice), contents(whole))


def test_breaks_of_an_extension_are_after_the_run(tmp_path):
    """Also if its `t_span` is longer than its outputs: breaks that it had there are met."""
    for breaks in ([1.0], [0.5], [1.5, 1.25], [1.5, 1.5], [2.5]):
        words = "be increasing times after .* t_end = 2|increase strictly"
        with pytest.raises(ValueError, match=f"breaks must ({words})"):
            solved("tokens", EARLY).extend(2.0, breaks=breaks)
    run = mf.solve(jumping("noise"), BUMP, (0, 2), t_eval=EARLY, breaks=[1.40625, 1.75], **FIXED)
    for end in (1.25, 2.0):
        longer = run.extend(end, t_eval=[end])
        times = [*EARLY, end]
        whole = mf.solve(
            jumping("noise"), BUMP, (0, 2), t_eval=times, breaks=[1.40625, 1.75], **FIXED
        )
        np.testing.assert_equal(contents(longer), contents(whole))
    plain = mf.load(solved("density", EARLY, breaks=[0.625]).save(tmp_path / "run.nc"))
    np.testing.assert_equal(
        contents(plain.extend(2.0, t_eval=LATE, breaks=[1.703125])),
        contents(solved("density", EARLY + LATE, breaks=[0.625, 1.703125])),
    )


def test_a_run_that_was_cut_short_goes_on_to_its_own_end(tmp_path):
    whole = mf.solve(SA, X, (0, 40), t_eval=[1.0, 5.0, 40.0])
    cut = mf.solve(SA, X, (0, 40), t_eval=[1.0, 5.0, 40.0], max_steps=6)
    assert cut.t[-1] not in whole.t
    for run in (cut, mf.load(cut.save(tmp_path / "cut.nc"))):
        np.testing.assert_equal(contents(run.extend(40.0)), contents(whole))


def contents_of(state):
    return state.coefficients if isinstance(state, mf.Density) else state.x


def test_events_and_observables_go_on(tmp_path):
    options = {"events": crosses, "observe": {"first": lambda tokens: tokens.x[0, 0]}}
    whole, short = solved("tokens", EARLY + LATE, **options), solved("tokens", EARLY, **options)
    longer = short.extend(2.0, t_eval=LATE)
    loaded = mf.load(short.save(tmp_path / "short.nc"))
    with pytest.raises(mf.MeanfieldError, match=r"events = \['crosses'\], and a file holds no"):
        loaded.extend(2.0)
    with pytest.raises(mf.MeanfieldError, match=r"observe = \['first'\]"):
        loaded.extend(2.0, events=crosses)
    for run in (longer, loaded.extend(2.0, t_eval=LATE, **options)):
        np.testing.assert_equal(contents(run), contents(whole))
        np.testing.assert_equal(run.observables["first"].values, whole.observables["first"].values)
    assert whole.t_events[0].size == 1


def test_outputs_go_on_at_their_mean_distance():
    short = mf.solve(SA, X, (0, 1), t_eval=np.linspace(0, 1, 5), **FIXED)
    np.testing.assert_array_equal(short.extend(1.6).t[5:], [1.25, 1.5, 1.6])
    np.testing.assert_array_equal(short.extend(2.0).t, np.linspace(0, 2, 9))
    tenths = mf.solve(SA, X, (0, 1), t_eval=np.linspace(0, 1, 11), dt=0.1)
    assert len(tenths.extend(1.3)) == 14  # though (1.3 - 1)/.1 is more than 3 in floating point


def test_a_checkpoint_with_the_outputs_of_default_goes_on(tmp_path):
    keeping = {"checkpoint": tmp_path / "run.checkpoint", "resume": True}
    short = mf.solve(SA, X, (0, 1), **keeping)
    longer = mf.solve(SA, X, (0, 1.55), **keeping)
    np.testing.assert_array_equal(longer.t[:101], short.t)
    assert longer.t[-1] == 1.55
    assert (np.diff(longer.t) > 0).all()
    assert longer.options["t_eval"] == longer.t.tolist()


def test_what_ended_early_keeps_its_end():
    def half(t, state):
        return t - 0.5

    half.terminal = True
    run = mf.solve(SA, X, (0, 1), events=half)
    assert run.extend(2.0).t[-1] == run.t[-1] == 0.5
    assert run.extend(2.0).status == "event"


def test_shorter_ends_are_refused(tmp_path):
    path = tmp_path / "run.checkpoint"
    run = mf.solve(SA, X, (0, 1), t_eval=EARLY, checkpoint=path)
    for t_end in (0.5, 1.0):
        with pytest.raises(ValueError, match=r"t_end must be after the end of the run"):
            run.extend(t_end)
    with pytest.raises(mf.CheckpointError, match="can be extended, not shortened"):
        mf.solve(SA, X, (0, 0.5), t_eval=EARLY[:2], checkpoint=path, resume=True)
    with pytest.raises(mf.CheckpointError, match="differ: t_eval"):
        mf.solve(SA, X, (0, 2), t_eval=[0.5, 2.0], checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="t_eval must be increasing times after the last output"):
        run.extend(2.0, t_eval=[0.5, 2.0])
    with pytest.raises(ValueError, match="up to t_end = 2"):
        run.extend(2.0, t_eval=[1.5, 2.5])


@pytest.mark.long
def test_the_engine_of_a_run_is_that_of_its_extension():
    options = {**FIXED, "engine": mf.engines.Modes(1e-3)}
    whole = mf.solve(SA, STARTS, (0, 2), t_eval=EARLY + LATE, **options)
    short = mf.solve(SA, STARTS, (0, 1), t_eval=EARLY, **options)
    np.testing.assert_equal(contents(short.extend(2.0, t_eval=LATE)), contents(whole))


def test_options_of_the_run_hold_in_its_extension():
    """A callback: equal bits; `max_steps` counts the attempts of the run as well."""
    seen = []
    options = {**FIXED, "callback": lambda t, state: seen.append(t)}
    whole = mf.solve(SA, X, (0, 2), t_eval=EARLY + LATE, **options)
    called = len(seen)
    short = mf.solve(SA, X, (0, 1), t_eval=EARLY, **options)
    np.testing.assert_equal(contents(short.extend(2.0, t_eval=LATE)), contents(whole))
    assert set(seen[called:]) == set(seen[:called]) and called > 0
    cut = short.extend(4.0, max_steps=128)  # of 1/64
    assert cut.status == "max_steps" and cut.t[-1] == 2


def test_an_extension_becomes_steady_where_the_longer_run_does():
    options = {"until": "steady", "steady_tolerance": 1e-3, **FIXED}
    short = mf.solve(NOISY, BUMP, (0, 1), t_eval=EARLY, **options)
    longer = short.extend(64.0, t_eval=[8.0, 64.0])
    whole = mf.solve(NOISY, BUMP, (0, 64), t_eval=[*EARLY, 8.0, 64.0], **options)
    assert short.status == "finished" and longer.status == "steady"
    np.testing.assert_equal(contents(longer), contents(whole))


def test_a_condition_given_anew_stands_for_those_that_a_file_lacks(tmp_path):
    done = {"until": lambda t, tokens: t > 1.3}
    loaded = mf.load(solved("tokens", EARLY, **done).save(tmp_path / "short.nc"))
    with pytest.raises(mf.MeanfieldError, match="a file holds no functions"):
        loaded.extend(2.0)
    assert loaded.extend(2.0, **done).status == "event"


@pytest.mark.parametrize("times", [[1.0], [0.0, 1.0], None])
def test_an_unresolved_start_stays_known(times, tmp_path):
    """Also from a file, whose saved states have more modes than the start."""
    with pytest.warns(mf.UnresolvedWarning):
        narrow = mf.Circle(4).von_mises(0.0, 1.0)
    run = mf.solve(NOISY, narrow, (0, 1), t_eval=times)
    assert not run.resolved
    for before in (run, mf.load(run.save(tmp_path / "run.nc"))):
        longer = before.extend(2.0)
        assert not longer.resolved and longer.resolved_after_start
        assert longer.message.startswith("The initial density is not resolved")


@pytest.mark.parametrize("name", ["gaussian", "merging", "density", "replicas"])
def test_a_file_goes_on_from_the_start_that_is_not_among_its_states(name, tmp_path):
    """With error control, whose norms and whose number of tokens are those of the start."""
    model, state, options = RUNS[name]
    options = {key: value for key, value in options.items() if key != "dt"}
    run = mf.solve(model, state, (0, 1), t_eval=EARLY, dense=True, **options)
    loaded = mf.load(run.save(tmp_path / "run.nc", dense=True))
    np.testing.assert_equal(
        contents(loaded.extend(2.0, t_eval=LATE)), contents(run.extend(2.0, t_eval=LATE))
    )
    for t in (0.1, 0.6):
        for (_, one), (_, other) in zip(
            loaded(t).arrays().values(), run(t).arrays().values(), strict=True
        ):
            np.testing.assert_array_equal(one, other)


def test_a_copy_extends_but_has_no_functions():
    plain = pickle.loads(pickle.dumps(solved("noise", EARLY)))
    np.testing.assert_equal(
        contents(plain.extend(2.0, t_eval=LATE)), contents(solved("noise", EARLY + LATE))
    )
    watched = pickle.loads(pickle.dumps(solved("tokens", EARLY, events=lambda t, state: t - 0.3)))
    with pytest.raises(mf.MeanfieldError, match="give them again"):
        watched.extend(2.0)


def test_warnings_of_an_extension_are_about_the_line_that_asks_for_it():
    density = mf.Circle(16).von_mises(0.3, 1.0)
    run = mf.solve(mf.Transformer(mf.SA(2.0)), density, (0, 0.1), max_degree=16)
    assert run.success
    for extend in (run.extend, partial(mf.extend, run)):
        with pytest.warns(mf.UnresolvedWarning) as caught:
            extend(5)
        assert [one.filename for one in caught] == [__file__]


@pytest.mark.long
def test_replicas_keep_common_steps():
    """They have tangents, which an extension has not."""
    common = mf.solve(SA, STARTS, (0, 1), t_eval=[1.0], tangents=["beta"]).extend(2)
    whole = mf.solve(SA, STARTS, (0, 2), t_eval=[1.0, 2.0], tangents=["beta"])
    assert np.allclose(common.final.x, whole.final.x, rtol=0, atol=1e-6)


def test_replicas_that_take_separate_steps_have_no_events():
    separate = mf.solve(SA, STARTS, (0, 1), t_eval=[1.0])
    for name, function in (("events", crosses), ("until", crosses), ("callback", crosses)):
        with pytest.raises(mf.MeanfieldError, match="take separate steps"):
            separate.extend(2, **{name: function})
