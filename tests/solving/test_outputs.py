"""Outputs cost no steps: they move nothing, whatever moves, and are as accurate as the steps."""

import shutil

import numpy as np
import pytest

import meanfield as mf
from meanfield.steppers import EXPONENTIAL, SCHEMES, HochbruckOstermann

CIRCLE = mf.Circle(32).density(
    lambda x: 1 + 0.3 * np.cos(x) + 0.1 * np.cos(2 * x) + 0.05 * np.sin(3 * x)
)
SPHERE = mf.Sphere(16).density(lambda x, y, z: 1 + 0.3 * z + 0.2 * x * y)
ZONAL = mf.Zonal(8, 16).zonal([1, 0.5])
TOKENS = mf.Sphere(8).uniform().sample(16, rng=0)

STILL, NOISY = mf.Transformer(mf.SA(2.0)), mf.Transformer(mf.USA(4.0), 6.0)
DENSITIES = {
    "circle, still": (STILL, CIRCLE, 1.0),
    "circle, two schemes": (mf.Transformer(mf.SA(4.0), 200.0), CIRCLE, 5.0),
    "circle, noise": (NOISY, CIRCLE, 1.0),
    "circle, an ensemble": (mf.Transformer(mf.USA([1.0, 2.0]), [4.0, 20.0]), CIRCLE, 2.0),
    "sphere, still": (STILL, SPHERE, 0.3),
    "sphere, noise": (mf.Transformer(mf.USA(2.0), 3.0), SPHERE, 0.5),
    "zonal, noise": (mf.Transformer(mf.SA(2.0), 10.0), ZONAL, 1.0),
}
POINTS = {
    "characteristics": (STILL, mf.Characteristics(CIRCLE), 2.0),
    "tokens": (STILL, TOKENS, 3.0),
    "equiangular": (STILL, mf.Equiangular(8, 0.1), 10.0),
    "gaussian": (mf.Transformer(mf.Attention(1.0, 1.0, 1.0)), mf.Gaussian([0.0], [[1.0]]), 0.2),
}

every_density = pytest.mark.parametrize("name", DENSITIES)
every_scheme = pytest.mark.parametrize("scheme", SCHEMES, ids=repr)


def numbers(state):
    """A state as one array."""
    return np.concatenate([np.ravel(values) for _, values in state.arrays().values()])


def assert_same_end(one, other):
    """The same last state to the bit, after the same steps."""
    np.testing.assert_array_equal(numbers(one.final), numbers(other.final))
    for name in ("steps", "rejected", "evaluations", "schemes"):
        assert np.array_equal(one.stats[name], other.stats[name])


# Steps -------------------------------------------------------------------------------------


@pytest.mark.repeats
@pytest.mark.parametrize("name", DENSITIES | POINTS)
def test_outputs_have_no_influence_on_the_steps(name):
    """No output, 101 of them, and irregular ones: the same bits at the end, of the same steps."""
    model, state, t = (DENSITIES | POINTS)[name]
    alone = mf.solve(model, state, (0, t), t_eval=[t])
    for times in (None, [*t * np.sort(np.sin(np.arange(1, 20)) ** 2), t]):
        assert_same_end(mf.solve(model, state, (0, t), t_eval=times), alone)


def test_a_short_smooth_run_takes_as_many_steps_as_it_needs():
    """18, not the 103 that end at 101 outputs; a run on (0, 10) takes 189, not 387."""
    model, state, t = DENSITIES["circle, two schemes"]
    assert 10 < mf.solve(STILL, CIRCLE, (0, 1)).stats["steps"] < 30
    assert 150 < mf.solve(model, state, (0, 2 * t)).stats["steps"] < 250


@every_scheme
def test_fixed_steps_are_not_moved_either(scheme):
    alone, many = (
        mf.solve(NOISY, CIRCLE, (0, 0.1), t_eval=times, dt=0.003, scheme=scheme)
        for times in ([0.1], None)
    )
    assert many.stats["steps"] == 34
    assert_same_end(many, alone)


# Accuracy ----------------------------------------------------------------------------------


def errors(run, reference):
    """Errors in H^-1 at all outputs but the first."""
    found = []
    for one, other in zip(run, reference, strict=True):
        degree = max(one.space.degree, other.space.degree)
        fine = one.resample(degree)
        l = np.maximum(fine.space.degrees, 1)
        squares = np.abs(fine.coefficients - other.resample(degree).coefficients) ** 2 / l**2
        found.append(np.sqrt((fine.space.parseval * squares).sum(axis=-1)).max())
    return np.array(found[1:])


@pytest.mark.repeats
@pytest.mark.parametrize("rtol", [1e-5, 1e-7, 1e-10])
@pytest.mark.parametrize("scheme", [None, *EXPONENTIAL], ids=repr)
@every_density
def test_outputs_are_as_accurate_as_the_steps(name, scheme, rtol):
    """Measured: at most 1.1 rtol, by HochbruckOstermann 5 rtol, and that at ends of steps too."""
    model, state, t = DENSITIES[name]
    times = t * np.linspace(0, 1, 24) ** 2
    reference = mf.solve(model, state, (0, t), t_eval=times, rtol=1e-12)
    run = mf.solve(model, state, (0, t), t_eval=times, rtol=rtol, scheme=scheme)
    assert errors(run, reference).max() < (10 if scheme is HochbruckOstermann else 2) * rtol


@pytest.mark.parametrize("scheme", EXPONENTIAL, ids=repr)
def test_the_order_is_four_at_outputs_within_fixed_steps(scheme):
    """Two-sided. Measured: 3.9 to 4.1."""
    times = np.linspace(0, 0.3, 41)
    options = {"t_eval": times, "min_degree": 96, "max_degree": 96}
    reference = mf.solve(STILL, CIRCLE, (0, 0.3), rtol=1e-13, **options)
    largest = [
        errors(
            mf.solve(STILL, CIRCLE, (0, 0.3), dt=0.3 / n, rtol=1e-3, scheme=scheme, **options),
            reference,
        ).max()
        for n in (3, 6, 12)
    ]
    np.testing.assert_allclose(np.log2(np.divide(largest[:-1], largest[1:])), 4, atol=0.2)


# What is kept ------------------------------------------------------------------------------


@pytest.mark.repeats
@every_scheme
@every_density
def test_mass_and_mirror_symmetry_are_kept_within_steps(name, scheme):
    """The coefficient of degree 0 to the bit."""
    model, state, t = DENSITIES[name]
    t = min(t, 0.2)
    run = mf.solve(model, state, (0, t), scheme=scheme)
    for density in run:
        np.testing.assert_array_equal(
            density.coefficients[..., 0], np.broadcast_to(state.coefficients[0], density.shape)
        )
    even = mf.Circle(32).density(lambda x: 1 + 0.3 * np.cos(x) + 0.1 * np.cos(2 * x))
    for density in mf.solve(STILL, even, (0, 0.2), scheme=scheme):
        assert np.abs(density.coefficients.imag).max() < 1e-15


def test_every_state_within_a_step_has_the_modes_of_the_step():
    """Spreading from degree 256 to 16: no output has lost a coefficient of more than rtol / 10."""
    model, state = mf.Transformer(mf.Kuramoto(), 2.5), mf.Circle(512).von_mises(1.0, 2000.0)
    run = mf.solve(model, state, (0, 5), t_eval=5 * np.linspace(0, 1, 201) ** 3)
    degrees = [density.space.degree for density in run]
    assert degrees[0] == 512 and degrees[-1] == 16 and (np.diff(degrees) <= 0).all()
    assert max(density.spectral_tail for density in run) < 1e-9


# Those who look on -------------------------------------------------------------------------


@pytest.mark.bits
@pytest.mark.parametrize(
    "name", ["circle, two schemes", pytest.param("sphere, noise", marks=pytest.mark.long), "tokens"]
)
def test_a_run_cut_anywhere_goes_on_to_the_same_bits(tmp_path, name):
    """Between two outputs within a step, too: checkpoints are kept at each of them."""
    model, state, t = (DENSITIES | POINTS)[name]
    path, copies, times = tmp_path / "run.ckpt", [], np.linspace(0, t, 60)

    def keep(_t, _state):
        if path.exists():
            copies.append(shutil.copy(path, tmp_path / f"{len(copies)}.ckpt"))

    options = {"t_eval": times, "checkpoint_every": 0}
    whole = mf.solve(model, state, (0, t), checkpoint=path, callback=keep, **options)
    assert len(copies) > whole.stats["steps"] + 10  # some of them are within a step
    for copy in copies[:: len(copies) // 3]:
        again = mf.solve(model, state, (0, t), checkpoint=copy, resume=True, **options)
        assert_same_end(again, whole)
        for one, other in zip(again, whole, strict=True):
            np.testing.assert_array_equal(numbers(one), numbers(other))


def test_a_steady_state_is_found_at_the_same_step_whatever_the_outputs():
    model, options = mf.Transformer(mf.Kuramoto(), 3.0), {"until": "steady", "rtol": 1e-10}
    few, many = (
        mf.solve(model, CIRCLE, (0, 300), t_eval=times, **options)
        for times in ([300.0], np.linspace(0, 300, 2001))
    )
    assert few.status == many.status == "steady" and few.t[-1] == many.t[-1]
    assert_same_end(many, few)


def test_as_many_steps_as_are_needed_are_enough_for_the_outputs_within_the_last():
    needed = mf.solve(STILL, CIRCLE, (0, 1)).stats["steps"]
    run = mf.solve(STILL, CIRCLE, (0, 1), max_steps=needed)
    assert run.status == "finished" and len(run) == 101
    assert mf.solve(STILL, CIRCLE, (0, 1), max_steps=needed - 1).status == "max_steps"
