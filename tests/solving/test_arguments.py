"""Arguments that make no sense: each is refused before anything is computed, in clear words."""

import re

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(32)
START = CIRCLE.von_mises(0.3, 1.0)
MODEL = mf.Transformer(mf.USA(1.0), 3.0)
NAN, INF = float("nan"), float("inf")


def refused(match, *, model=MODEL, density=START, t_span=(0, 1), **options):
    """`solve` must raise a ValueError or TypeError with this text, and take no step."""
    steps = []
    options = {"callback": lambda t, _density: steps.append(t), **options}
    with pytest.raises((ValueError, TypeError), match=match):
        mf.solve(model, density, t_span, **options)
    assert steps == []


# The model ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kappa", [0, -1.0, NAN, -INF, [1.0, 0.0], [2.0, NAN]], ids=str)
def test_kappa_must_be_positive(kappa):
    with pytest.raises(ValueError, match=r"kappa must be > 0 .*got kappa = "):
        mf.Transformer(mf.USA(1.0), kappa)


@pytest.mark.parametrize("beta", [NAN, INF, -INF, [1.0, NAN]], ids=str)
@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=lambda drift: drift.__name__)
def test_beta_must_be_finite(drift, beta):
    with pytest.raises(ValueError, match="beta must be finite"):
        drift(beta)


def test_beta_must_not_overflow():
    with pytest.raises(ValueError, match=r"\|beta\| <= 700.*SA takes any beta"):
        mf.USA(701.0)
    mf.SA(1e6)


def test_parameters_must_broadcast():
    with pytest.raises(ValueError, match=r"drift of shape \(3,\), kappa of shape \(2,\)"):
        mf.Transformer(mf.USA([1.0, 2.0, 3.0]), [1.0, 2.0])


@pytest.mark.parametrize("drift", ["USA", mf.USA, None, 4.0], ids=str)
def test_a_drift_must_be_an_object(drift):
    with pytest.raises(TypeError, match="drift must be"):
        mf.Transformer(drift, 3.0)


@pytest.mark.parametrize("model", [mf.USA(1.0), "USA", None], ids=["drift", "str", "None"])
def test_the_model_must_be_a_transformer(model):
    refused("model must be .*Transformer.*; got model = ", model=model)


# The density -------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [0, -1, 1.5, True], ids=repr)
def test_a_degree_is_a_whole_number_from_one(degree):
    with pytest.raises(ValueError, match=f"got degree = {degree!r}"):
        mf.Circle(degree)


WRONG = {
    "shape": (lambda x: np.ones(3), r"must be \(100,\); got \(3,\)"),
    "scalar": (lambda x: 1.0, r"must be \(100,\); got \(\)"),
    "nan": (lambda x: np.where(x > 1, NAN, 1.0), "finite values >= 0.* not finite"),
    "infinity": (lambda x: np.where(x > 6, INF, 1.0), "finite values >= 0.* not finite"),
    "negative": (np.cos, r"finite values >= 0.*minimum -1\.0"),
    "zero": (np.zeros_like, "not all zero"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_density_is_a_function_with_values_from_zero(name):
    f, match = WRONG[name]
    with pytest.raises(ValueError, match=match):
        CIRCLE.density(f)


def test_coefficients_must_make_a_density():
    zeros = np.zeros(31)
    with pytest.raises(ValueError, match=r"coefficients.shape must be \(..., 33\)"):
        mf.Density(CIRCLE, np.ones(5))
    with pytest.raises(ValueError, match="finite, but 2 are not"):
        mf.Density(CIRCLE, [1, NAN, INF, *zeros[1:]])
    with pytest.raises(ValueError, match=r"got a mass off by 0\.5"):
        mf.Density(CIRCLE, [1.5, 0.1, *zeros])
    with pytest.raises(ValueError, match=r"minimum is -0\.6"):
        CIRCLE.fourier([1, 0.8])


def test_a_density_that_is_negative_is_not_solved():
    """Coefficients are not checked where they are made, for a solved density may ring."""
    refused("must not be negative; its minimum", density=mf.Density(CIRCLE, [1, 0.8] + [0] * 31))


@pytest.mark.parametrize("density", [np.ones(33), None, CIRCLE])
def test_only_states_are_solved(density):
    refused("Expected a state, .*a Density such as", density=density)
    refused("from_hidden", density=np.ones((4, 3)))


def test_ensembles_must_broadcast():
    stacked = mf.Density.stack([START] * 2)
    model = mf.Transformer(mf.USA([1.0, 2.0, 3.0]), 3.0)
    refused(r"model of shape \(3,\), state of shape \(2,\)", model=model, density=stacked)


# Times -------------------------------------------------------------------------------------


SPANS = [(1, 0), (0, 0), (0, NAN), (-INF, 0), (0, 1, 2), (0,), 5, None, "ab", (0, "b"), (0, 1j)]


@pytest.mark.parametrize("t_span", SPANS, ids=repr)
def test_a_time_span_is_two_numbers_that_increase(t_span):
    refused(r"t_span(\[.\])? must be (two|a finite|an array).*; got ", t_span=t_span)


@pytest.mark.parametrize("t_eval", [[], [NAN], [0, INF], [[0.1, 0.2]], "abc", [1j]], ids=repr)
def test_output_times_are_finite_numbers(t_eval):
    refused("t_eval must be (a list|finite|real).*; got", t_eval=t_eval)


@pytest.mark.parametrize("t_eval", [[0.5, 0.2], [0.1, 0.1]], ids=repr)
def test_output_times_increase(t_eval):
    place = re.escape(f"got t_eval[0] = {t_eval[0]} and t_eval[1] = {t_eval[1]}")
    refused(f"t_eval must increase strictly; {place}", t_eval=t_eval)


def test_the_first_times_that_do_not_increase_are_named():
    times = np.arange(1, 513) / 512
    times[384] = times[383]
    words = r"{}\[383\] = {}.75 and {}\[384\] = {}.75\.$"
    for name in ("t_eval", "breaks"):
        refused(words.format(name, 0, name, 0), **{name: times.tolist()})
    run = mf.solve(mf.Transformer(mf.USA(1.0)), mf.Equiangular(4, 0.1), (0, 1), dense=True)
    with pytest.raises(ValueError, match=words.format("t", 0, "t", 0)):
        run(times)
    for name in ("t_eval", "breaks"):
        with pytest.raises(ValueError, match=words.format(name, 1, name, 1)):
            run.extend(2, **{name: (1 + times).tolist()})


@pytest.mark.parametrize("t_eval", [[-0.1, 0.5], [0.5, 1.1], [2.0]], ids=repr)
def test_output_times_lie_within_the_span(t_eval):
    refused(r"t_eval must be within t_span = \[0.0, 1.0\]; got t_eval", t_eval=t_eval)


# Accuracy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1e-8, NAN, INF, "1e-8", [1e-8], 1j], ids=repr)
@pytest.mark.parametrize("name", ["rtol", "dt", "steady_tolerance", "max_steps"])
def test_tolerances_and_steps_are_positive_numbers(name, value):
    refused(f"{name} must be a .* number >=? .; got {name} = ", **{name: value})


@pytest.mark.parametrize("name", ["rtol", "steady_tolerance", "max_steps"])
def test_only_dt_may_be_none(name):
    refused(f"{name} must be a .* number >=? .; got {name} = None", **{name: None})


@pytest.mark.parametrize("rtol", [1e-14, 0.5], ids=repr)
def test_a_tolerance_can_be_met_and_means_something(rtol):
    refused(f"rtol must be between .*; got rtol = {rtol}", rtol=rtol)


@pytest.mark.parametrize("value", [0, -3, 1.5, NAN, INF, "many"], ids=repr)
@pytest.mark.parametrize("name", ["min_degree", "max_degree"])
def test_bounds_of_the_degree_are_whole_numbers(name, value):
    refused(f"{name} must be a whole number >= 1; got", **{name: value})


@pytest.mark.parametrize("bounds", [(100, 80), (16, 31)], ids=repr)
def test_bounds_of_the_degree_fit_together(bounds):
    """Fewest <= most, and the initial density fits into the most."""
    lowest, highest = bounds
    refused(
        f"min_degree = {lowest}, max_degree = {highest} and degree 32",
        min_degree=lowest,
        max_degree=highest,
    )


def test_a_default_of_the_degree_is_called_one():
    refused(r"min_degree = 16 \(which is the default\), max_degree = 8 and", max_degree=8)


@pytest.mark.parametrize(
    ("scheme", "meant"),
    [
        ("Krogstad", "did you mean mf.steppers.Krogstad"),
        ("RK45", "did you mean mf.steppers.DormandPrince"),
        (4, "got scheme = 4"),
    ],
)
def test_a_scheme_is_an_object(scheme, meant):
    refused(f"scheme must be one of .*mf.steppers.DormandPrince.*.*{meant}", scheme=scheme)


# Stopping and keeping ----------------------------------------------------------------------


@pytest.mark.parametrize("until", ["stady", True, 1.0], ids=repr)
def test_until_is_steady_a_function_or_nothing(until):
    refused('until must be a function, or "steady"; got until = ', until=until)
    refused(r"did you mean steady\?$", until="stady")


@pytest.mark.parametrize("events", [5, [5], None, [None], "events"], ids=repr)
def test_events_are_functions(events):
    refused("events must be a function; got", events=events)


@pytest.mark.parametrize("callback", [5, "print"], ids=repr)
def test_a_callback_is_a_function(callback):
    refused("callback must be a function; got", callback=callback)


def test_resuming_needs_a_file():
    refused("resume=True needs checkpoint=PATH", resume=True)


@pytest.mark.parametrize("name", ["resume", "progress"])
@pytest.mark.parametrize("value", ["no", 1, 0.0], ids=repr)
def test_what_is_true_or_false_is_not_guessed(name, value):
    refused(f"{name} must be True or False; got {name} = ", **{name: value})


@pytest.mark.parametrize("checkpoint", [5, True, ["run"]], ids=repr)
def test_a_checkpoint_is_a_path(checkpoint):
    refused("checkpoint must be a string or a pathlib.Path; got", checkpoint=checkpoint)


def test_a_rate_at_rest_is_for_runs_that_end_there():
    refused('steady_tolerance has an effect only with until="steady"', steady_tolerance=1e-3)
    assert mf.solve(MODEL, START, (0, 0.1), steady_tolerance=1e-10).success


@pytest.mark.parametrize("every", [-1, NAN, "often", None], ids=repr)
def test_the_time_between_checkpoints_is_not_negative(tmp_path, every):
    place = tmp_path / "run.ckpt"
    refused("checkpoint_every must be .* >= 0; got", checkpoint=place, checkpoint_every=every)


def test_a_misspelt_option_is_refused():
    refused("no parameter rtoll; did you mean rtol", rtoll=1e-8)
    refused("no parameter atol; did you mean rtol", atol=1e-8)
    refused("no parameter dense_output; did you mean t_eval", dense_output=True)
    refused("no parameter max_step; did you mean dt", max_step=0.1)
    refused("no parameter observables; did you mean observe", observables={})


def test_what_is_kept_with_a_result_must_be_plain_data():
    """Found out before the run, not when its result is saved."""
    refused("provenance", provenance={"sample": np.zeros(3)})
    refused("provenance", provenance=5)


def test_provenance_does_not_replace_what_the_run_records():
    with pytest.raises(ValueError, match=r"provenance has \['model'\] already"):
        mf.solve(MODEL, START, (0, 1), provenance={"model": "mine"})
    with pytest.raises(TypeError, match="plain data"):
        mf.solve(MODEL, START, (0, 1), provenance={"name": "\ud800"})


def test_a_span_without_room_for_the_default_times_is_refused():
    with pytest.raises(ValueError, match="no room for 101 different times"):
        mf.solve(MODEL, START, (1e15, 1e15 + 0.25))


@pytest.mark.parametrize("degrees", [[2, 2], [1.5], [0], [], [[1, 40]]], ids=repr)
def test_perturbed_degrees_are_different_whole_numbers(degrees):
    with pytest.raises(ValueError, match="between 1 and 16"):
        mf.Circle(16).perturbed(0.01, rng=0, degrees=degrees)


def test_numbers_beyond_all_measure_are_refused_like_others():
    huge = mf.Circle(4).density(lambda theta: 1e308 * (1 + 0.1 * np.cos(theta)))
    assert huge.moment(1) == pytest.approx(0.05)
    with pytest.raises(ValueError, match=r"min_degree .* below 2\^63"):
        mf.solve(MODEL, START, (0, 1), min_degree=10**30)
    with pytest.raises(TypeError, match="k must be a whole number"):
        START.moment(1.0)


# What the end says -------------------------------------------------------------------------


class ThresholdSlope(mf.ZonalDrift):
    """Tokens attract each other within 60 degrees."""

    def slope(self, t):
        return (t > 0.5) * 1.0


@pytest.mark.long
def test_a_run_of_many_rejected_steps_says_what_may_be_the_reason():
    model, tokens = mf.Transformer(ThresholdSlope()), mf.Tokens.uniform(40, 3, rng=0)
    run = mf.solve(model, tokens, (0, 2), rtol=1e-8)
    assert run.stats["rejected"] > run.stats["steps"] and "discontinuous. Give dt" in run.message
    assert f"steps    {run.stats['steps']} ({run.stats['rejected']} rejected)" in repr(run)
    fixed = mf.solve(model, tokens, (0, 2), dt=0.01)
    assert "discontinuous" not in fixed.message and "200 (0 rejected)" in repr(fixed)


def test_steps_of_an_ensemble_are_those_of_all_its_members():
    run = mf.solve(mf.Transformer(mf.SA([1.0, 4.0]), 5.0), START, (0, 1))
    assert f"steps    {run.stats['steps'].sum()} (" in repr(run)


@pytest.mark.parametrize(
    "state",
    [mf.Tokens(np.eye(3)), mf.Gram(np.eye(3)), mf.Equiangular(n=4, rho=0.1)],
    ids=["tokens", "gram", "equiangular"],
)
def test_a_tolerance_of_fixed_steps_is_refused(state):
    model = mf.Transformer(mf.SA(2.0))
    with pytest.raises(ValueError, match=r"rtol = 1e-06 has no effect.*dt = 0\.1.* Leave out dt"):
        mf.solve(model, state, (0, 0.2), dt=0.1, rtol=1e-6)
    noisy = mf.Transformer(mf.SA(2.0), kappa=5.0)
    if isinstance(state, mf.Tokens):
        with pytest.raises(ValueError, match=r"rtol = 1e-06 has no effect.* Leave out rtol"):
            mf.solve(noisy, state, (0, 0.2), rtol=1e-6, rng=0)


def test_the_tolerance_sets_the_modes_of_densities_with_fixed_steps():
    model, density = mf.Transformer(mf.USA(1.0), kappa=4.0), mf.Circle(32).von_mises(0, 1)
    degrees = [
        mf.solve(model, density, (0, 0.2), dt=0.01, rtol=rtol).stats["highest_degree"]
        for rtol in (1e-4, 1e-10)
    ]
    assert degrees[0] < degrees[1]


@pytest.mark.parametrize("end", [2.0, 2.5])
def test_runs_longer_than_their_layers_say_so(end):
    attention = mf.Attention(beta=mf.PerLayer([1.0, 2.0]))
    run = mf.solve(mf.Transformer(attention + mf.Kuramoto()), mf.Tokens(np.eye(3)), (0, end))
    said = f"Layers of PerLayer end at t = 2, before the run: until t = {end:g} the last layer acts"
    assert (said in run.message) == (end > 2)


def test_a_run_from_a_density_that_is_cut_off_is_resolved_after_its_start():
    with pytest.warns(mf.UnresolvedWarning, match="not resolved"):
        start = mf.Circle(32).von_mises(0, 25.0)
        run = mf.solve(mf.Transformer(mf.USA(1.0), kappa=0.5), start, (0, 1))
    assert run.resolved_after_start and not run.resolved
