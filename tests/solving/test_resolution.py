"""Adaptivity: the error follows rtol, the modes follow the density, the outputs are exact."""

import re

import numpy as np
import pytest

import meanfield as mf
from meanfield.solving.spectral_integration import coarser, finer
from meanfield.steppers import EXPONENTIAL, SCHEMES, Krogstad

CIRCLE = mf.Circle(16)
NOISY = mf.Transformer(mf.USA(2.0), 6.0)
STILL = mf.Transformer(mf.Kuramoto())

every_scheme = pytest.mark.parametrize("scheme", EXPONENTIAL, ids=lambda scheme: scheme.name)


def bumps(degree=16):
    """A density without any symmetry."""
    return mf.Circle(degree).density(
        lambda x: 1 + 0.3 * np.cos(x) + 0.1 * np.cos(2 * x) + 0.05 * np.sin(3 * x)
    )


def degrees(run):
    """The degree of every state."""
    return [density.space.degree for density in run]


def unresolved(*arguments, **options):
    """A run that must end unresolved, with a warning that says the same as its message."""
    with pytest.warns(mf.UnresolvedWarning, match="not resolved by max_degree") as caught:
        run = mf.solve(*arguments, **options)
    assert len(caught) == 1 and str(caught[0].message) == run.message
    assert caught[0].filename == __file__  # it points at the caller
    return run


# Step size ---------------------------------------------------------------------------------


@every_scheme
@pytest.mark.parametrize(("model", "t"), [(NOISY, 0.5), (STILL, 2.0)], ids=["noisy", "still"])
def test_the_error_is_proportional_to_rtol(model, t, scheme):
    """dt^4 per unit time, dt ~ rtol^(1/4): the same ratio below 1 over four decades."""
    options = {"t_eval": [t], "scheme": scheme}
    exact = mf.solve(model, bumps(), (0, t), rtol=1e-13, **options).final
    ratios = []
    for rtol in (1e-7, 1e-8, 1e-9, 1e-10, 1e-11):
        final = mf.solve(model, bumps(), (0, t), rtol=rtol, **options).final
        ratios.append(max(abs(final.moment(k) - exact.moment(k)) for k in (1, 2, 3)) / rtol)
    assert max(ratios) < 1
    assert max(ratios) < 2 * min(ratios)


def test_work_grows_as_rtol_to_the_minus_one_fourth():
    """Two digits more cost 100^(1/4) = 3.2 times the steps."""
    steps = [
        mf.solve(NOISY, bumps(), (0, 5), t_eval=[5], rtol=r, scheme=Krogstad).stats["steps"]
        for r in (1e-9, 1e-11)
    ]
    assert steps[1] / steps[0] == pytest.approx(100**0.25, rel=0.15)


def test_rejected_steps_are_few():
    """Orders of magnitude in speed: the collapse of a near-uniform density and its settling."""
    run = mf.solve(mf.Transformer(mf.USA(5.0), 0.25), bumps(), (0, 5), rtol=1e-9)
    assert run.stats["rejected"] < 0.02 * run.stats["steps"]
    assert run.stats["evaluations"] >= 4 * (run.stats["steps"] + run.stats["rejected"])


def test_a_first_step_that_is_too_long_is_taken_back():
    """A start at rest says nothing about how fast things will move."""
    start = CIRCLE.fourier([1, 0, 1e-9])
    run = mf.solve(mf.Transformer(mf.USA(5.0), 0.25), start, (0, 3), t_eval=[3], rtol=1e-9)
    exact = mf.solve(mf.Transformer(mf.USA(5.0), 0.25), start, (0, 3), t_eval=[3], rtol=1e-12)
    assert abs(run.final.moment(2) - exact.final.moment(2)) < 1e-6


# Output times ------------------------------------------------------------------------------


def test_states_are_returned_at_the_requested_times_exactly():
    """Irregular ones, with and without the ends, one alone, two neighbouring numbers."""
    close = float(np.nextafter(0.3, 1))
    for times in ([0, 0.1, 1 / 3, 0.9], [1e-12, 0.3, close], [0.7], [0.0], (0.2, 1.0), 1.0):
        run = mf.solve(NOISY, bumps(), (0, 1), t_eval=times)
        assert run.t.tolist() == np.atleast_1d(times).tolist()
        assert run.status == "finished" and len(run) == len(run.t)


def test_by_default_there_are_101_output_times():
    run = mf.solve(NOISY, bumps(), (0.5, 1.5))
    np.testing.assert_array_equal(run.t, np.linspace(0.5, 1.5, 101))


def test_the_first_state_is_the_initial_one():
    run = mf.solve(NOISY, bumps(), (3, 4), t_eval=[3, 4])
    np.testing.assert_array_equal(run[0].coefficients, bumps().coefficients)


def test_a_run_can_go_on_from_an_output():
    """From any, to the same end up to a few rtol."""
    few = mf.solve(NOISY, bumps(), (0, 1), t_eval=[1], rtol=1e-10).final
    many = mf.solve(
        NOISY, bumps(), (0, 1), t_eval=np.sort(np.sin(np.arange(1, 90)) ** 2), rtol=1e-10
    )
    last = mf.solve(NOISY, many.final, (many.t[-1], 1), t_eval=[1], rtol=1e-10).final
    assert abs(few.moment(1) - last.moment(1)) < 1e-9


@pytest.mark.parametrize("shift", [-1, 0, 1], ids=["one ulp less", "exactly", "one ulp more"])
@pytest.mark.parametrize("dt", [None, 0.1], ids=["adaptive", "fixed"])
def test_the_last_digit_of_the_end_makes_no_difference(shift, dt):
    end = float(np.nextafter(0.3, shift)) if shift else 0.3
    run = mf.solve(NOISY, bumps(), (0, end), dt=dt, t_eval=[end])
    reference = mf.solve(NOISY, bumps(), (0, 0.3), dt=dt, t_eval=[0.3])
    assert run.t[-1] == end and run.stats["steps"] == reference.stats["steps"]
    assert abs(run.final.moment(1) - reference.final.moment(1)) < 1e-14
    if dt:
        assert run.stats["steps"] == 3


def test_fixed_steps_divide_the_time_into_equal_parts():
    """At most dt each: 1 in 4 steps. The outputs within them are seen by the callback too."""
    times, outputs = [], [0, 0.25, 0.4, 0.51, 1]
    run = mf.solve(
        NOISY,
        bumps(),
        (0, 1),
        t_eval=outputs,
        dt=0.3,
        rtol=1e-3,
        callback=lambda t, _density: times.append(t),
    )
    assert run.stats["steps"] == 4
    np.testing.assert_allclose(times, [0.25, 0.4, 0.5, 0.51, 0.75, 1], rtol=1e-15)


# Modes -------------------------------------------------------------------------------------


def test_the_degree_doubles_while_the_density_concentrates():
    run = mf.solve(mf.Transformer(mf.USA(4.0), 20.0), bumps(), (0, 1), rtol=1e-8)
    assert degrees(run)[0] == 16 and degrees(run)[-1] == 256
    assert set(np.diff(np.log2(degrees(run)))) <= {0, 1, 2}
    assert run.stats["degree_changes"] == 4 and run.stats["highest_degree"] == 256


def test_on_the_sphere_it_grows_in_smaller_steps():
    mu0 = mf.Sphere(16).density(lambda x, y, z: 1 + 0.5 * z + 0.2 * x * y)
    run = mf.solve(mf.Transformer(mf.USA(3.0), 20.0), mu0, (0, 0.9), rtol=1e-6)
    assert {16, 24, 32, 48} <= set(degrees(run)) <= {16, 24, 32, 48, 64, 96}


@pytest.mark.parametrize("halfway", [False, True])
def test_degrees_are_powers_of_two_and_three_times_those(halfway):
    table = sorted(
        {2**k for k in range(14)} | ({3 * 2**k for k in range(12)} if halfway else set())
    )
    for degree in range(1, 4000):
        assert finer(degree, halfway) == min(d for d in table if d > degree)
        assert coarser(degree, halfway) == max((d for d in table if d < degree), default=1)


def test_the_degree_shrinks_while_the_density_spreads():
    start = mf.Circle(512).von_mises(1.0, 2000.0)
    run = mf.solve(mf.Transformer(mf.Kuramoto(), 2.5), start, (0, 5), rtol=1e-8)
    assert degrees(run)[0] == 512 and degrees(run)[-1] == 16
    assert (np.diff(degrees(run)) <= 0).all()


@pytest.mark.parametrize("rtol", [1e-5, 1e-8, 1e-11])
def test_what_is_cut_off_is_far_below_rtol(rtol):
    """The largest coefficient in the last eighth stays below rtol/10, at any degree."""
    run = mf.solve(mf.Transformer(mf.USA(4.0), 20.0), bumps(), (0, 1), rtol=rtol)
    assert max(density.spectral_tail for density in run) <= rtol / 10


def test_adaptive_modes_give_what_many_fixed_modes_give():
    model = mf.Transformer(mf.USA(4.0), 20.0)
    adaptive = mf.solve(model, bumps(), (0, 1), t_eval=[0.3, 1], rtol=1e-10)
    fixed = mf.solve(
        model, bumps(), (0, 1), t_eval=[0.3, 1], rtol=1e-10, min_degree=512, max_degree=512
    )
    assert degrees(fixed) == [512, 512]
    for one, other in zip(adaptive, fixed, strict=True):
        difference = one.resample(512).coefficients - other.coefficients
        assert np.abs(difference).max() < 1e-8  # modes are kept to rtol/10, steps to rtol


def test_a_start_on_many_modes_is_cut_to_what_it_needs():
    run = mf.solve(NOISY, bumps(1024), (0, 0.1))
    assert degrees(run)[0] == 16
    np.testing.assert_allclose(run[0].coefficients, bumps(16).coefficients, atol=1e-16)


def test_the_number_of_modes_stays_within_its_bounds():
    run = mf.solve(NOISY, bumps(), (0, 0.5), min_degree=100, max_degree=100)
    assert set(degrees(run)) == {100} and run.stats["degree_changes"] == 0
    run = mf.solve(
        mf.Transformer(mf.USA(4.0), 20.0), bumps(), (0, 1), min_degree=20, max_degree=300
    )
    assert run.success and degrees(run)[0] == 20 and max(degrees(run)) <= 300


def test_a_circle_of_degree_one_is_enough_to_start():
    start = mf.Circle(1).fourier([1, 0.2])
    run = mf.solve(NOISY, start, (0, 1), t_eval=[1], rtol=1e-10)
    same = mf.solve(NOISY, start.resample(64), (0, 1), t_eval=[1], rtol=1e-10)
    assert run.success
    np.testing.assert_array_equal(run.final.coefficients, same.final.coefficients)


def test_degree_4096_is_solved_as_exactly_as_degree_128():
    model, options = mf.Transformer(mf.SA(4.0), 6.0), {"t_eval": [0.3], "rtol": 1e-9}
    big = mf.solve(model, bumps(4096), (0, 0.3), min_degree=4096, **options)
    small = mf.solve(model, bumps(), (0, 0.3), min_degree=128, **options)
    assert degrees(big) == [4096]
    difference = big.final.resample(128).coefficients - small.final.coefficients
    assert np.abs(difference).max() < 1e-10


# Too few modes -----------------------------------------------------------------------------


def test_a_collapse_ends_the_run_before_the_density_is_wrong():
    """Without noise USA concentrates to a Dirac; the run says so and names the way past it."""
    run = unresolved(mf.Transformer(mf.USA(2.0)), bumps(), (0, 5), max_degree=128)
    assert run.status == "unresolved" and not run.success and not run.resolved
    assert "max_degree = 128" in run.message and "mf.Characteristics" in run.message
    assert "NOT A COMPLETE RESULT" in repr(run) and "Characteristics" in repr(run)
    assert 0.5 < run.t[-1] < 5
    assert max(density.spectral_tail for density in run) <= run.rtol / 10


def test_a_fixed_step_beyond_the_bound_of_stability_is_named_with_the_bound():
    """At degree 32 and kappa = 1 the fastest damping is 1024, and |R(-z)| <= 1 up to z = 6.39."""
    mu0, model = mf.Circle(32).von_mises(0.0, 0.3), mf.Transformer(mf.Kuramoto(), kappa=1.0)
    options = {"scheme": mf.steppers.DormandPrince, "min_degree": 32, "max_degree": 32}
    run = unresolved(model, mu0, (0, 2), dt=7 / 1024, **options)
    assert all(number in run.message for number in ("0.00537", "degree 32", "5.5", "1024"))
    assert mf.solve(model, mu0, (0, 2), dt=5.5 / 1024, **options).success


def test_a_run_that_is_not_finite_names_the_bound_of_its_step_too():
    """At degree 16 and kappa = 1 the fastest damping is 256, to which transport adds little."""
    mu0, model = mf.Circle(16).von_mises(0.0, 0.3), mf.Transformer(mf.Kuramoto(), kappa=1.0)
    with pytest.warns(mf.UnresolvedWarning, match="degree 16: 5.5 over the largest rate"):
        run = mf.solve(model, mu0, (0, 40), dt=2.0, scheme=mf.steppers.DormandPrince)
    assert run.status == "not_finite"
    bound = float(re.search(r"exceeds ([0-9.]+),", run.message)[1])
    assert 5.5 / 256 / 1.05 < bound < 5.5 / 256 * 1.001
    assert mf.solve(model, mu0, (0, 2), dt=bound, scheme=mf.steppers.DormandPrince).success


def test_states_before_the_end_of_an_unresolved_run_are_right():
    run = unresolved(mf.Transformer(mf.USA(2.0)), bumps(), (0, 5), max_degree=64, rtol=1e-9)
    times = run.t.tolist()
    more = mf.solve(mf.Transformer(mf.USA(2.0)), bumps(), (0, 5), t_eval=times, rtol=1e-11)
    for one, other in zip(run, more, strict=True):
        assert abs(one.moment(1) - other.moment(1)) < 1e-8


def test_a_start_that_is_not_resolved_ends_the_run_at_once():
    start = mf.Circle(16).fourier([1, *[0.0] * 15, 0.2])
    run = unresolved(NOISY, start, (0, 1), max_degree=16)
    assert run.t.tolist() == [0] and run.stats["steps"] == 0


def test_a_run_from_a_density_that_was_cut_off_is_not_resolved(tmp_path):
    with pytest.warns(mf.UnresolvedWarning, match="Use a degree above 16"):
        start = mf.Circle(16).von_mises(0.0, 8.0)
    run = mf.solve(NOISY, start, (0, 0.1))
    assert run.success and not run.resolved
    assert run.message.startswith("The initial density is not resolved")
    assert not mf.load(run.save(tmp_path / "run.nc")).resolved
    run = mf.solve(NOISY, mf.Circle(64).von_mises(0.0, 8.0), (0, 0.1))
    assert run.resolved and "initial" not in run.message


@pytest.mark.parametrize("rtol", [1e-6, 1e-8, 1e-10])
def test_a_smooth_density_is_not_called_unresolved(rtol):
    """At t = 0.25 it has 1024 modes, as small fixed steps show; long steps must not blame them."""
    start = mf.Circle(32).density(lambda x: 1 + 0.5 * np.cos(x) + 0.2 * np.cos(2 * x))
    run = mf.solve(mf.Transformer(mf.USA(4.0)), start, (0, 0.25), rtol=rtol)
    assert run.status == "finished" and run.stats["highest_degree"] <= 2048


# Without noise -----------------------------------------------------------------------------


def test_without_noise_rounding_in_the_highest_modes_does_not_grow_into_the_tail():
    """Ott-Antonsen moments 0.1^k, then r(8)^k: long after the step has become large."""
    start = mf.Circle(16).fourier(0.1 ** np.arange(15))
    run = mf.solve(STILL, start, (0, 8), t_eval=[8.0], rtol=1e-8)
    growth = 0.01 / 0.99 * np.exp(8)
    exact = np.sqrt(growth / (1 + growth))
    assert run.status == "finished"
    assert abs(run.final.moment(1) - exact) <= 1e-8


@pytest.mark.parametrize("beta, kappa, concentration", [(50, 20, 20), (30, 20, 20), (200, 50, 40)])
def test_softmax_far_from_the_mass_does_not_matter(beta, kappa, concentration):
    """Opposite the peak Z * mu is rounding; where mass is, v is that of a positive sum.

    The reference: d/dt int cos dmu from an N x N sum of positive terms, which has no rounding
    to speak of, against the change of the moment over a short time.
    """
    start = mf.Circle(128).von_mises(0.0, concentration)
    theta, h = 2 * np.pi * np.arange(512) / 512, 1e-4
    mass = start.at(mf.Circle.embed(theta)) / 512
    gaps = theta[:, None] - theta
    weights = np.exp(beta * (np.cos(gaps) - 1)) * mass
    velocity = -(np.sin(gaps) * weights).sum(1) / weights.sum(1)
    rate = np.sum(-np.sin(theta) * velocity * mass) - np.sum(np.cos(theta) * mass) / kappa
    run = mf.solve(mf.Transformer(mf.SA(beta), kappa), start, (0, 2 * h), t_eval=[0, h, 2 * h])
    m0, m1, m2 = (density.moment(1).real for density in run)
    assert (-3 * m0 + 4 * m1 - m2) / (2 * h) == pytest.approx(rate, abs=1e-4 * abs(rate))
    assert mf.solve(mf.Transformer(mf.SA(beta), kappa), start, (0, 1)).success


@pytest.mark.parametrize("outputs", [1, 25])
@pytest.mark.parametrize("scheme", [None, *SCHEMES], ids=lambda scheme: scheme and scheme.name)
def test_errors_of_long_steps_do_not_ask_for_more_modes(scheme, outputs):
    """A step too long for the highest modes fills them; the density needs 1024 of them."""
    mu0 = mf.Circle(16).density(lambda a: 1 + 0.5 * np.cos(a) + 0.2 * np.cos(2 * a))
    times = np.linspace(0, 0.25, outputs + 1)[1:]
    options = {"t_eval": times, "rtol": 1e-10, "scheme": scheme}
    run = mf.solve(mf.Transformer(mf.USA(4.0)), mu0, (0, 0.25), **options)
    assert run.status == "finished" and run.stats["highest_degree"] == 1024


@pytest.mark.parametrize(("drift", "fast"), [(mf.USA(8.0), True), (mf.SA(8.0), False)])
def test_an_unresolved_run_says_how_fast_its_drift_is(drift, fast):
    """USA moves at e^8: whoever asks for t = 1 does not see why it fails at t = 0.003."""
    model, mu = mf.Transformer(drift, 40.0), mf.Circle(16).von_mises(0, 1.0)
    with pytest.warns(mf.UnresolvedWarning):
        run = mf.solve(model, mu, (0, 10), t_eval=[10], max_degree=16)
    assert run.status == "unresolved"
    assert ("3e+03: tokens move within times of about 0.0003" in run.message) == fast


def test_weights_that_jump_are_told_from_a_density_that_is_not_resolved():
    class Step(mf.Weights):
        def of_logits(self, logits, squares):
            return np.where(logits > 0.3, 1.0, 0.0)

    attention = mf.Attention(Q=np.array([[1.0, 0.3], [-0.2, 0.8]]), weights=Step())
    start = mf.Circle(16).von_mises(0, 1)
    with pytest.warns(mf.UnresolvedWarning, match="weights that jump or have kinks"):
        run = mf.solve(mf.Transformer(attention, 4.0), start, (0, 1), max_degree=128)
    assert run.status == "unresolved"
