"""Periodic orbits of densities: laws, time stepping, Hopf points, standing waves, files."""

import importlib
import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import meanfield as mf

CIRCLE = mf.Circle(8)
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
COARSE = {"tolerance": 1e-7}


def rotators(w, kappa=1.4, angle=0.0):
    """Active rotators, 2 K[mu] + w - sin(theta - angle)/2."""
    pull = 0.5 * np.array([np.cos(angle), np.sin(angle)])
    return mf.Transformer(2.0 * mf.Kuramoto() + mf.Field(lambda x: w * (x @ TURN.T) + pull), kappa)


@pytest.fixture(scope="module")
def orbit():
    return mf.cycle(rotators(0.8), CIRCLE.von_mises(0.0, 0.3))


@pytest.fixture(scope="module")
def hopf():
    (point,) = mf.branches(rotators(0.8), CIRCLE, vary={"kappa": (1.1, 1.2)}).special("Hopf")
    return point


def test_a_cycle_is_converged_and_resolved(orbit):
    assert orbit.converged
    assert orbit.stable
    assert not orbit.warnings
    assert orbit.at(0.25).mass == pytest.approx(1.0, abs=1e-15)
    assert orbit.at(1.25).moment(1) == orbit.at(0.25).moment(1)
    assert "stable" in repr(orbit)


def test_period_states_and_extremes_are_those_of_time_stepping(orbit):
    times = np.linspace(0, 1, 5) * orbit.period
    run = mf.solve(orbit.model, orbit.at(0.0), (0, orbit.period), t_eval=times, rtol=1e-11)
    for time, state in zip(run.t, run.states, strict=True):
        for k in (1, 2):
            expected = orbit.at(time / orbit.period).moment(k)
            assert state.moment(k) == pytest.approx(expected, abs=1e-9)
    least, largest = orbit.extremes(lambda state: abs(state.moment(1)))
    fine = [abs(orbit.at(phase).moment(1)) for phase in np.linspace(0, 1, 3000)]
    assert least == pytest.approx(min(fine), abs=1e-6)
    assert largest == pytest.approx(max(fine), abs=1e-6)
    assert least <= min(fine)
    assert largest >= max(fine)


def test_the_multiplier_one_is_always_there(orbit):
    assert np.count_nonzero(orbit.neutral) == 1
    assert orbit.multipliers[orbit.neutral] == pytest.approx(1.0, abs=1e-9)
    assert orbit.neutral_error < 1e-8


def test_a_period_that_takes_too_many_steps_is_refused(orbit, monkeypatch):
    module = importlib.import_module("meanfield.bifurcation.cycle")
    monkeypatch.setattr(module, "RUN_STEPS", 1000)
    with pytest.raises(mf.MeanfieldError, match=r"takes more than 1000 steps.*another estimate"):
        mf.cycle(orbit.model, orbit.at(0.0), period=1e9)


@pytest.mark.long
def test_multipliers_are_those_of_tangents_over_one_period(orbit):
    """The derivative in the directions of the harmonics of degree 1 to 3, which are slow."""
    start = orbit.at(0.0)
    functions = [
        lambda x, k=k, part=part: getattr((x[:, 0] + 1j * x[:, 1]) ** k, part)
        for k in range(1, start.space.degree + 1)
        for part in ("real", "imag")
    ]
    run = mf.solve(orbit.model, start, (0, orbit.period), t_eval=[orbit.period], rtol=1e-11,
                   tangents=functions)  # fmt: skip
    degree = start.space.degree
    columns = []
    for i in range(len(functions)):
        moved = run.tangents[f"direction_{i}"][-1].resample(degree).coefficients[1:]
        columns.append(np.stack([moved.real, -moved.imag], axis=-1).ravel() * 2)
    values = np.linalg.eigvals(np.array(columns).T)
    values = values[np.argsort(-np.abs(values))]
    assert values[:2] == pytest.approx(orbit.multipliers[:2], abs=1e-7)


@pytest.mark.long
def test_a_resolved_cycle_agrees_with_one_of_twice_the_degree(orbit):
    finer = mf.cycle(orbit.model, orbit.at(0.0).space.with_degree(2 * orbit.space.degree)
                     .density(lambda a: 1 + 0.5 * np.cos(a)), orbit.period, **COARSE)  # fmt: skip
    assert finer.period == pytest.approx(orbit.period, abs=1e-9)
    assert finer.space.degree == 2 * orbit.space.degree


@pytest.mark.long
def test_a_rotation_of_the_model_rotates_the_cycle(orbit):
    angle = 0.7
    turned = mf.cycle(rotators(0.8, angle=angle), CIRCLE.von_mises(angle, 0.3), **COARSE)
    assert turned.period == pytest.approx(orbit.period, abs=1e-9)
    both = [one.extremes(lambda state: abs(state.moment(1))) for one in (orbit, turned)]
    assert both[0] == pytest.approx(both[1], abs=1e-7)
    assert turned.multipliers[1] == pytest.approx(orbit.multipliers[1], abs=1e-7)


@pytest.mark.long
def test_cycles_begin_at_a_hopf_point_and_grow_as_its_normal_form_says(hopf):
    lyapunov = mf.first_lyapunov(hopf)
    assert lyapunov < 0
    branch = mf.cycles(rotators(0.8), hopf, (1.1, 1.16), **COARSE)
    assert branch.ends == ("Hopf", "range")
    assert branch.limits[0] == hopf.value
    assert not branch.warnings
    pair = [mf.stationary(rotators(0.8, hopf.value + step), hopf.state.density).stability(1)
            for step in (-1e-3, 1e-3)]  # fmt: skip
    slope = (pair[1].eigenvalues[0].real - pair[0].eigenvalues[0].real) / 2e-3
    rate = abs(pair[0].eigenvalues[0].imag + pair[1].eigenvalues[0].imag) / 2
    rate = max(rate, abs(pair[0].eigenvalues[0].imag))
    predicted = 2 * slope * (branch.data.kappa.values[0] - hopf.value) / (-lyapunov * rate)
    assert branch.data.amplitude.values[0] ** 2 == pytest.approx(predicted, rel=1e-3)
    assert (branch.data.unstable.values == 0).all()
    assert branch.data.period.values[0] == pytest.approx(2 * np.pi / rate, rel=1e-3)


@pytest.mark.long
def test_the_cycle_from_a_hopf_point_is_the_end_of_a_run(hopf, orbit):
    found = mf.cycle(rotators(0.8), hopf, **COARSE)
    assert found.period == pytest.approx(orbit.period, abs=1e-8)


@pytest.mark.long
def test_standing_waves_of_two_frequencies(tmp_path):
    """With two opposite frequencies the wave does not turn; rotations are neutral too."""
    model = mf.Transformer(1.3 * mf.Kuramoto(), 4.0, frequency=mf.OfIndex(1.0))
    start = CIRCLE.indexed(lambda s, a: 1 + 0.5 * np.cos(a) + 0 * s, mf.Classes([-1.0, 1.0]))
    run = mf.solve(model, start, (0, 60), t_eval=[60], rtol=1e-8)
    wave = mf.cycle(model, run, **COARSE)
    assert wave.stable
    assert np.count_nonzero(wave.neutral) == 2
    assert wave.speeds == pytest.approx([0.0], abs=1e-9)
    assert wave.multipliers[wave.neutral] == pytest.approx(1.0, abs=1e-7)
    loaded = mf.load(wave.save(tmp_path / "wave.nc"))
    assert np.array_equal(loaded.at(0.3).coefficients, wave.at(0.3).coefficients)
    branch = mf.cycles(model, wave, (3.99, 4.01), **COARSE)
    loaded = mf.load(branch.save(tmp_path / "branch.nc"))
    assert repr(loaded.cycles[0]) == repr(branch.cycles[0])
    again = mf.solve(model, wave.at(0.0), (0, wave.period), t_eval=[wave.period], rtol=1e-10)
    degree = again.final.space.degree
    change = again.final.coefficients - wave.at(0.0).resample(degree).coefficients
    assert np.abs(change).max() < 1e-8


def two_groups(z, kappa):
    """Galerkin equations of the moments z (2, 10, n) of groups with the frequencies 0.9 and 1.7.

    Real and imaginary parts follow each other in the last axis.
    """
    z = z[..., ::2] + 1j * z[..., 1::2]
    k, pull = np.arange(1, 11)[:, None], np.tensordot([0.25, 0.75], z[:, 0], 1) / 2 + 0.6
    below = np.hstack([np.ones_like(z[:, :1]), z[:, :-1]])
    above = np.hstack([z[:, 1:], np.zeros_like(z[:, :1])])
    turned = (1j * k * np.array([0.9, 1.7])[:, None, None] - k**2 / kappa) * z
    rate = k / 2 * (pull * below - pull.conj() * above) + turned
    return np.ascontiguousarray(rate).view(float)


@pytest.mark.long
def test_the_period_of_two_groups_doubles():
    """At the located kappa, cycles of Galerkin equations have the multiplier -1."""
    coarse = {"tolerance": 1e-6, "max_degree": 10}
    east = mf.Field(lambda x: np.eye(2)[0] * np.ones_like(x))
    model = mf.Transformer(0.5 * mf.Kuramoto() + 0.6 * east, 38.4, frequency=mf.OfIndex())
    index = mf.Classes([0.9, 1.7], [0.25, 0.75])
    start = mf.Circle(16).indexed(lambda s, a: 1 + 0.5 * np.cos(a) + 0 * s, index)
    run = mf.solve(model, start, (0, 60), t_eval=np.linspace(56, 60, 17), rtol=1e-6)
    near = max((state.resample(10) for state in run.states), key=lambda one: one.minimum.min())
    begin = mf.cycle(model, near, 4.0127, **coarse)
    branch = mf.cycles(model, begin, (38.4, 38.7), **coarse)
    assert (begin.unstable, branch.cycles[-1].unstable) == (0, 1)
    (special,) = branch.special("period doubling")
    z = special.cycle.at(0.0).coefficients.reshape(2, 11, 1)[:, 1:].conj().view(float)
    shifts = np.concatenate([np.zeros((1, 40)), 1e-5 * np.eye(40), -1e-5 * np.eye(40)])
    starts = np.tile(z, 81) + shifts.reshape(81, 2, 10, 2).transpose(1, 2, 0, 3).reshape(2, 10, -1)
    run = solve_ivp(
        lambda t, z: two_groups(z.reshape(starts.shape), special.value).ravel(),
        *((0, special.period), starts.ravel()),
        **{"method": "DOP853", "rtol": 1e-12, "atol": 1e-13},
    )
    ends = run.y[:, -1].reshape(2, 10, 81, 2).transpose(2, 0, 1, 3).reshape(81, 40)
    assert ends[0] == pytest.approx(z.ravel(), abs=1e-7)
    values = np.linalg.eigvals((ends[1:41] - ends[41:]) / 2e-5)
    assert np.abs(values + 1).min() < 1e-7


def test_files_give_back_every_bit(orbit, tmp_path):
    again = mf.load(orbit.save(tmp_path / "cycle.nc"))
    assert again.period == orbit.period
    assert np.array_equal(again.at(0.3).coefficients, orbit.at(0.3).coefficients)
    assert np.array_equal(again.multipliers, orbit.multipliers)
    assert again.stable == orbit.stable
    assert repr(again).splitlines()[1:] == repr(orbit).splitlines()[1:]
    again = mf.load(tmp_path / "cycle.nc", model=rotators(0.8))
    assert again.run(3).observables.equals(orbit.run(3).observables)
    with pytest.raises(
        ValueError,
        match=r"differ from those saved: the residual of a cycle, to rounding, is .*, not 0",
    ):
        mf.load(tmp_path / "cycle.nc", model=rotators(0.8001))


@pytest.mark.long
def test_a_branch_is_followed_both_ways_saved_and_resumed(orbit, tmp_path):
    options = {"at": 0.8, "checkpoint": tmp_path / "kept", **COARSE}
    branch = mf.cycles(rotators, orbit, (0.75, 0.85), **options)
    values = branch.data.s.values
    assert branch.ends == ("range", "range")
    assert (values[0], values[-1]) == (0.75, 0.85)
    assert (np.diff(values) > 0).all()
    assert (np.diff(branch.data.period.values) < 0).all()
    again = mf.cycles(rotators, orbit, (0.75, 0.85), **options, resume=True)
    assert np.array_equal(again.data.period.values, branch.data.period.values)
    stopped = mf.cycles(rotators, orbit, (0.75, 0.85), **options, resume=True,
                        until=lambda one: one.period >= branch.data.period.values[1])  # fmt: skip
    assert stopped.ends == ("stopped", "range")
    assert stopped.data.s.values[0] == values[1]
    assert any("until" in warning for warning in stopped.warnings)
    loaded = mf.load(branch.save(tmp_path / "branch.nc"))
    assert repr(loaded) == repr(branch)
    assert loaded.cycles[0].period == branch.cycles[0].period
    assert np.array_equal(loaded.cycles[0].multipliers, branch.cycles[0].multipliers)
    assert [one.period for one in branch.cycles_at(values[1])] != []
    again = mf.load(tmp_path / "branch.nc", model=rotators)
    assert mf.cycle(again.cycles[1].model, again.cycles[1].at(0.0)).converged
    for given, words in [
        (lambda w: rotators(w + 1e-3), "the residual of a cycle"),
        (lambda w: rotators(w, 1.41), r"model\.kappa must be 1.4"),
        (rotators(0.8), "a model with the parameter s, or a function of it"),
    ]:
        with pytest.raises(ValueError, match=words):
            mf.load(tmp_path / "branch.nc", model=given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert branch.plot().get_axes()
        assert branch.plot("period").get_axes()


def test_figures_of_a_cycle(orbit):
    assert len(orbit.plot().get_axes()) == 2
    assert orbit.plot("spacetime").get_axes()
    assert len(orbit.run(9)) == 9


def test_a_model_that_changes_with_time_has_no_cycles():
    model = mf.Transformer(mf.USA(1.0), kappa=lambda t: 2 + t)
    with pytest.raises(mf.MeanfieldError, match="Stationary densities and cycles need"):
        mf.cycle(model, mf.Circle(8).uniform())


def test_too_few_intervals_and_too_low_a_degree_are_said():
    rough = mf.cycle(rotators(0.8), CIRCLE.von_mises(0.0, 0.3), max_degree=8, max_intervals=6,
                     tolerance=1e-10)  # fmt: skip
    assert any("max_intervals" in warning for warning in rough.warnings)
    rough = mf.cycle(rotators(0.8), CIRCLE.von_mises(0.0, 0.3), max_degree=8, **COARSE)
    assert any("Degree 8" in warning for warning in rough.warnings)


@pytest.mark.repeats
@pytest.mark.parametrize("multiple", [2, 3])
def test_a_cycle_has_its_least_period(orbit, multiple):
    """An orbit that is passed several times solves the equations too."""
    found = mf.cycle(orbit.model, orbit.at(0.0), multiple * orbit.period, **COARSE)
    assert found.period == pytest.approx(orbit.period, abs=1e-9)
    assert found.multipliers[1] == pytest.approx(orbit.multipliers[1], abs=1e-7)


@pytest.mark.repeats
@pytest.mark.parametrize("period", [0.01, 1.0])
@pytest.mark.parametrize("model", [rotators(0.8), mf.Transformer(mf.Kuramoto(), 3.0)],
                         ids=["with a cycle", "without"])  # fmt: skip
def test_a_density_that_does_not_move_is_no_cycle(model, period):
    """At the period 0 every density solves the equations, and stationary ones at all periods."""
    with pytest.raises(mf.MeanfieldError, match="does not move"):
        mf.cycle(model, CIRCLE.von_mises(0.0, 0.3), period, **COARSE)


@pytest.mark.long
def test_a_cycle_that_has_not_converged_is_not_called_stable():
    found = mf.cycle(rotators(0.8), CIRCLE.von_mises(0.0, 0.3), 5.0, **COARSE)
    assert not found.converged
    assert not found.stable
    assert "unknown" in repr(found)


@pytest.mark.long
def test_runs_that_rest_and_models_that_cycles_do_not_reach_are_refused(hopf):
    with pytest.raises(mf.MeanfieldError, match="comes to rest"):
        mf.cycle(rotators(0.8, 0.8), CIRCLE.von_mises(0.0, 0.3))
    with pytest.raises(mf.MeanfieldError, match="do not reach"):
        mf.cycle(rotators(0.8, 1.0), hopf, **COARSE)


def test_what_is_no_cycle_is_refused(orbit):
    with pytest.raises(ValueError, match="guess"):
        mf.cycle(rotators(0.8), 3.0)
    with pytest.raises(ValueError, match="period must be at least 1e-100; got"):
        mf.cycle(rotators(0.8), CIRCLE.von_mises(0.0, 0.3), 1e-300)
    with pytest.raises(ValueError, match="max_degree must be at least 8, the degree with which"):
        mf.cycle(rotators(0.8), CIRCLE.von_mises(0.0, 0.3), max_degree=4)
    with pytest.raises(mf.MeanfieldError, match="Circle, Sphere or Torus"):
        mf.cycle(mf.Transformer(mf.USA(1.0), 4.0), mf.Zonal(8, 24).von_mises_fisher(1.0))
    with pytest.raises(ValueError, match="finite kappa"):
        mf.cycle(mf.Transformer(mf.Kuramoto()), CIRCLE.uniform())
    with pytest.raises(TypeError, match="start"):
        mf.cycles(rotators(0.8), orbit.at(0.0), (1.0, 2.0))
    with pytest.raises(ValueError, match="at must be"):
        mf.cycles(rotators, orbit, (0.9, 1.0), at=0.8)
    with pytest.raises(ValueError, match="Hopf"):
        mf.first_lyapunov(orbit)


def test_a_hopf_point_is_one_of_the_same_model(hopf):
    with pytest.raises(ValueError, match=r"No Hopf point of the model is at kappa = 1\.1"):
        mf.cycles(rotators(0.81), hopf, (1.1, 1.2), **COARSE)
    with pytest.raises(ValueError, match=r"No Hopf point of the model is at kappa = 1\.1"):
        mf.cycle(rotators(0.81, 1.2), hopf, **COARSE)


@pytest.mark.long
def test_multipliers_behind_a_torus_bifurcation_are_those_of_tangents():
    """Two groups of oscillators: the monodromy matrix from tangents of one period of a run."""
    drift = 0.5 * mf.Kuramoto() + 0.4 * mf.Field(lambda x: np.eye(2)[0] + 0 * x)
    model = mf.Transformer(drift, 28.0, frequency=mf.OfIndex())
    index, degree = mf.Classes([0.9, 1.7], [0.25, 0.75]), 24
    begin = mf.Circle(16).indexed(lambda s, a: 1 + 0.5 * np.cos(a) + 0 * s, index)
    run = mf.solve(model, begin, (0, 120), t_eval=[120], rtol=1e-7)
    cycle = mf.cycle(model, run.final.resample(16), 3.8647, **COARSE, max_degree=16)
    start = cycle.at(0.0).resample(degree)
    cycle = mf.cycle(model, start, cycle.period, tolerance=1e-9, max_degree=degree)
    start = cycle.at(0.0)
    live = np.flatnonzero(np.arange(start.coefficients.size) % (degree + 1))
    units = np.eye(start.coefficients.size)[live]
    run = mf.solve(model, start, (0, cycle.period), t_eval=[cycle.period], rtol=1e-11,
                   tangents=[*units, *(1j * units)])  # fmt: skip
    ends = [run.tangents[f"direction_{i}"][-1].resample(degree) for i in range(2 * len(live))]
    columns = np.array([end.coefficients[live] for end in ends])
    matrix = np.hstack([columns.real, columns.imag]).T
    values = np.linalg.eigvals(matrix)
    largest = values[np.argsort(-np.abs(values))][:3]
    assert abs(largest[0]) > 1.005
    np.testing.assert_allclose(np.sort(largest), np.sort(cycle.multipliers[:3]), rtol=0, atol=1e-7)


@pytest.mark.long
def test_a_family_of_rotators_ends_at_a_homoclinic_orbit():
    """The period grows like -log |w - w_0| over the growth rate of the saddle at w_0."""

    def family(w):
        return rotators(w, 1.62)

    diagram = mf.branches(family, CIRCLE, (0.415, 0.44), secondary=False, max_step=0.05)
    (hopf,) = diagram.special("Hopf")
    found = mf.cycles(family, hopf, (0.415, 0.44), **COARSE)
    limit = found.limits[1]
    rates = [state.stability(1).eigenvalues[0] for _, state in diagram.states_at(limit)]
    (rate,) = (one.real for one in rates if one.imag == 0 and one.real > 0)
    periods, away = found.data.period.values[-2:], limit - found.data.s.values[-2:]
    assert found.ends == ("Hopf", "homoclinic")
    assert periods[1] > 3 * found.data.period.values[0]
    assert np.diff(periods)[0] / np.log(away[0] / away[1]) * rate == pytest.approx(1, abs=1e-2)
