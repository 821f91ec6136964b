"""Equiangular tokens under `solve`: laws, tables, agreement with tokens, refusals."""

import numpy as np
import pytest
import xarray as xr

import meanfield as mf
from meanfield.steppers import Layers, LieTrotter

SCHEMES = [
    mf.PostLN(),
    mf.PreLN(),
    mf.PeriLN(),
    mf.MixLN(0.5),
    mf.NGPT(0.7),
    mf.NGPT(lambda t: 1 + t),
    mf.SqrtScaling(),
]
DRIFTS = [mf.SA(4.0), mf.SA(-2.0), mf.USA(2.0), mf.Kuramoto(), mf.Interaction(lambda x: x + x**3)]


def moved(drift, state, end, *, normalisation=None, **options):
    model = mf.Transformer(drift, normalisation=normalisation)
    options = options if "dt" in options else {"rtol": 1e-11} | options
    return mf.solve(model, state, (0, end), **options)


def test_without_temperature_the_logit_grows_by_2():
    """rho(t) = (e^{2t} - 1)/(e^{2t} + n - 1), also for n = 10^12 and n = 10^250."""
    n = np.array([2, 32, 1e12, 1e250])
    run = moved(mf.SA(0.0), mf.Equiangular(n, 0.0), 20.0, t_eval=[0.1, 5.0, 20.0])
    for t, state in zip(run.t, run, strict=True):
        np.testing.assert_allclose(state.rho, np.expm1(2 * t) / (n + np.expm1(2 * t)), rtol=1e-10)


@pytest.mark.parametrize(
    ("drift", "time"), [(mf.SA(4.0), 6.9535018488), (mf.USA(9.0), 0.6859876689)], ids=repr
)
def test_the_inner_product_passes_at_the_known_time(drift, time):
    def passes(_t, state):
        return state.rho - 0.999

    passes.terminal = True
    run = moved(drift, mf.Equiangular(32, 0.0), 300.0, events=passes)
    assert run.status == "event"
    np.testing.assert_allclose(run.t_events[0], [time], atol=1e-9)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("scheme", "t", "law"),
    [
        (mf.PostLN(), 300.0, lambda t, state: state.log_gap + 2 * t - np.log(37.856891)),
        (mf.NGPT(), 300.0, lambda t, state: state.log_gap + 2 * t - np.log(3.1402034)),
        (
            mf.SqrtScaling(),
            1e4,
            lambda t, state: state.log_gap + 4 * np.sqrt(t + 1) - np.log(2066.9162),
        ),
        (mf.PreLN(), 1e5, lambda t, state: state.gap * state.radius**2 / 1.1830278 - 1),
        (mf.PeriLN(), 1e5, lambda t, state: state.gap * state.radius**2 / 1.1830278 - 1),
    ],
)
def test_late_times_keep_their_law(scheme, t, law):
    """Long after 1 - rho has fallen below rounding: e^{-2t}, e^{-4 sqrt(t + 1)}, 1/r^2."""
    run = moved(mf.SA(1.0), mf.Equiangular(32, 0.0), t, normalisation=scheme, t_eval=[t])
    assert abs(law(t, run.final)) < 2e-7


@pytest.mark.repeats
@pytest.mark.parametrize("rtol", [1e-8, 1e-13])
@pytest.mark.parametrize("end", [1e5, 1e8, 1e12])
def test_rounding_of_the_logit_is_no_error_of_a_step(end, rtol):
    """z' is constant at late times, and z = 2e12 has lost what an absolute tolerance asks for."""
    model = mf.Transformer(mf.SA(4.0))
    run = mf.solve(model, mf.Equiangular(5, 0.0), (0, end), t_eval=[end], rtol=rtol, max_steps=200)
    assert run.status == "finished"
    np.testing.assert_allclose(run.final.log_gap + 2 * end, 11.2988313, atol=2e-7 + 1e-15 * end)


def test_pre_and_peri_ln_share_the_inner_product_as_a_function_of_the_radius():
    def grown(_t, state):
        return state.radius - 5

    grown.terminal = True
    ends = [
        moved(mf.SA(2.0), mf.Equiangular(9, 0.1), 50.0, normalisation=scheme, events=grown).final
        for scheme in (mf.PreLN(), mf.PeriLN())
    ]
    np.testing.assert_allclose(ends[0].gap, ends[1].gap, rtol=1e-9)


@pytest.mark.repeats
@pytest.mark.parametrize("drift", DRIFTS, ids=repr)
@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_tokens_and_equiangular_tokens_move_alike(drift, scheme):
    radius = 1.5 if scheme.has_radii else 1.0
    start = mf.Equiangular(5, 0.2, radius)
    options = {"normalisation": scheme, "t_eval": [0.3, 1.5]}
    runs = [moved(drift, state, 1.5, **options) for state in (start, start.to_tokens(6))]
    for state, tokens in zip(*runs, strict=True):
        np.testing.assert_allclose(tokens.gram().G[0, 1:], state.rho, atol=2e-10)
        if scheme.has_radii:
            np.testing.assert_allclose(tokens.radii, state.radius, rtol=1e-9)
    for name in ("order_parameter", "interaction_energy", "effective_rank", "speed"):
        xr.testing.assert_allclose(*(run.observables[name] for run in runs), atol=1e-8)
    np.testing.assert_allclose(
        runs[0].observables["rho"], runs[1].observables["mean_cosine"], atol=2e-10
    )


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_layers_are_exact(scheme):
    start = mf.Equiangular(5, -0.2)
    options = {"normalisation": scheme, "scheme": Layers, "dt": 0.25, "t_eval": [0.25, 2.0]}
    runs = [moved(mf.SA(1.0), state, 2.0, **options) for state in (start, start.to_tokens())]
    for state, tokens in zip(*runs, strict=True):
        np.testing.assert_allclose(tokens.gram().G[0, 1:], state.rho, atol=1e-14)
        if scheme.has_radii:
            np.testing.assert_allclose(tokens.radii, state.radius, rtol=1e-14)


def test_an_ensemble_is_its_members():
    n, beta = np.array([8.0, 1e6]), np.array([1.0, 4.0])
    run = moved(mf.SA(beta), mf.Equiangular(n, 0.0), 5.0, t_eval=[5.0])
    for i in range(2):
        alone = moved(mf.SA(beta[i]), mf.Equiangular(n[i], 0.0), 5.0, t_eval=[5.0])
        np.testing.assert_allclose(run.final[i].gap, alone.final.gap, rtol=1e-9)


@pytest.mark.bits
def test_runs_are_kept_in_files_and_resumed(tmp_path):
    model = mf.Transformer(mf.SA([1.0, 2.0]), normalisation=mf.MixLN(1.0))
    options = {"t_span": (0, 3), "t_eval": [0.5, 2.0, 3.0]}
    whole = mf.solve(model, mf.Equiangular(32, 0.0), **options)
    options |= {"checkpoint": tmp_path / "part", "checkpoint_every": 0.0}
    assert mf.solve(model, mf.Equiangular(32, 0.0), **options, max_steps=6).status == "max_steps"
    resumed = mf.solve(model, mf.Equiangular(32, 0.0), **options, resume=True)
    loaded = mf.load(resumed.save(tmp_path / "run.nc"))
    assert loaded.status == "finished"
    for state, same in zip(whole, loaded, strict=True):
        assert (state.logit == same.logit).all() and (state.radius == same.radius).all()
        assert (state.n == same.n).all()
    xr.testing.assert_identical(whole.observables, loaded.observables)
    assert "radius" in loaded.to_xarray()
    with pytest.raises(mf.CheckpointError, match="n"):
        mf.solve(model, mf.Equiangular(33, 0.0), **options, resume=True)


def test_members_are_told_apart_by_their_numbers(tmp_path):
    n, rho, beta = np.array([32.0, 1e12]), [[0.1], [0.2], [0.3]], 1.0
    model = mf.Transformer(mf.SA(beta), normalisation=mf.PreLN())
    run = mf.solve(model, mf.Equiangular(n, rho, radius=2.0), (0, 1), t_eval=[0.5, 1.0])
    for solution in (run, mf.load(run.save(tmp_path / "run.nc"))):
        coords = solution.observables.coords
        assert coords["n"].dims == ("member_1",) and coords["initial_rho"].dims == ("member_0",)
        np.testing.assert_allclose(coords["initial_rho"], [0.1, 0.2, 0.3], rtol=1e-14)
        assert "initial_radius" not in coords and solution.parameters["initial_radius"] == 2
        legend = [text.get_text() for text in solution.plot("observables").legends[0].get_texts()]
        assert legend[1] == r"$n = 10^{12}$, $\rho(0) = 0.1$" and len(set(legend)) == 6
    close = mf.solve(model, mf.Equiangular(8, gap=[1e-9, 1e-30]), (0, 1))
    np.testing.assert_allclose(close.observables["initial_gap"], [1e-9, 1e-30], rtol=1e-12)


def test_the_overview_goes_below_the_least_number():
    run = moved(mf.SA(1.0), mf.Equiangular([32, 64], 0.0), 1e3, t_eval=np.geomspace(0.1, 1e3, 30))
    top, *others = run.plot().axes
    assert top.get_xscale() == "log" and len(others) == 4
    np.testing.assert_allclose(
        top.get_lines()[1].get_ydata()[-1], run.final.log_gap[1] / np.log(10), rtol=1e-14
    )
    assert len(run.plot(member=0).axes[0].get_lines()) == 1
    with pytest.raises(TypeError, match=r"'log' .* member, title, log_time"):
        run.plot(log=True)


def test_a_run_ends_where_tokens_rest():
    run = moved(mf.SA(1.0), mf.Equiangular(32, 0.0), 1e3, until="steady")
    assert run.status == "steady" and run.final.gap < 1e-19
    assert len(run.plot().axes) == 5


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (mf.Transformer(mf.SA(1.0), kappa=2.0), "Equiangular moves without noise"),
        (mf.Transformer(mf.Attention(np.eye(3))), "inner products alone"),
        (mf.Transformer(mf.Attention(causal=True)), "causal=True.* its own past"),
        (mf.Transformer(mf.Hardmax()), "Hardmax.* neighbour"),
        (mf.Transformer(mf.SA(1.0), feedforward=np.tanh), "Equiangular moves without feedforward"),
    ],
)
def test_models_that_part_the_tokens_are_refused(model, message):
    with pytest.raises(mf.MeanfieldError, match=f"{message}.*[Ss]olve for Tokens"):
        mf.solve(model, mf.Equiangular(4, 0.0), (0, 1))


def test_arguments_that_do_not_fit_are_refused():
    model, state = mf.Transformer(mf.SA(1.0)), mf.Equiangular(4, 0.0)
    with pytest.raises(mf.MeanfieldError, match="radii, which PostLN"):
        mf.solve(model, mf.Equiangular(4, 0.0, radius=2.0), (0, 1))
    with pytest.raises(ValueError, match="need no sums"):
        mf.solve(model, state, (0, 1), engine=mf.engines.Direct())
    with pytest.raises(ValueError, match="merge is for Tokens; Equiangular"):
        mf.solve(model, state, (0, 1), merge=1e-8)
    with pytest.raises(ValueError, match="leave out rng"):
        mf.solve(model, state, (0, 1), rng=0)
    with pytest.raises(ValueError, match=r"tokens are one, .* they rest"):
        mf.solve(model, mf.attend(mf.Kuramoto(), state), (0, 1))
    with pytest.raises(ValueError, match="Equiangular has none"):
        mf.solve(model, state, (0, 1), max_degree=32)
    with pytest.raises(ValueError, match=r"Equiangular needs .*Layers; got LieTr"):
        mf.solve(model, state, (0, 1), scheme=LieTrotter, dt=0.1)
    with pytest.raises(ValueError, match="do not broadcast"):
        mf.solve(mf.Transformer(mf.SA([1.0, 2.0])), mf.Equiangular([3, 4, 5], 0.0), (0, 1))


@pytest.mark.long
def test_at_the_end_of_the_longest_span_tokens_are_one():
    """z' = 2 for tokens that are one: 1.8e308 would be reached at t = 9e307."""
    model, start = mf.Transformer(mf.SA(1.0)), mf.Equiangular(10, 0.0)
    run = mf.solve(model, start, (0, 1e300), t_eval=[1.0, 1e300])
    assert run.status == "finished" and run.final.rho == 1.0
    assert all(np.isfinite(values).all() for values in run.observables.values())
    with pytest.raises(ValueError, match=r"t_span .* 1e\+300"):
        mf.solve(model, start, (0, 1e308))
