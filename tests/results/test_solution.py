"""The result of a run: a sequence of states, its verdict, its measurements, its labels."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.engines.direct import DirectSums

CIRCLE = mf.Circle(24)
TIMES = [0.0, 0.2, 0.5]
SCALARS = {
    *("mass", "minimum", "order_parameter", "entropy", "interaction_energy"),
    *("free_energy", "dissipation", "spectral_tail"),
}


def bumps():
    """A density without any symmetry."""
    return CIRCLE.density(
        lambda x: 1 + 0.3 * np.cos(x) + 0.1 * np.cos(2 * x) + 0.05 * np.sin(3 * x)
    )


def solve(drift, kappa, density=None, **options):
    """A short run."""
    options = {"t_eval": TIMES, **options}
    return mf.solve(mf.Transformer(drift, kappa), density or bumps(), (0, 0.5), **options)


@pytest.fixture(scope="module")
def run():
    return solve(mf.USA(4.0), 20.0)


@pytest.fixture(scope="module")
def table():
    return solve(mf.USA([[1.0], [4.0]]), [3.0, 6.0, 20.0])


# A sequence --------------------------------------------------------------------------------


def test_a_solution_is_the_sequence_of_its_states(run):
    assert len(run) == len(run.t) == 3
    assert run[0] is run.states[0] and run[-1] is run.final
    assert list(run) == list(run.states)
    with pytest.raises(IndexError, match=r"run\[3\].* 3 saved states, .* 0 to 2"):
        run[3]
    with pytest.raises(TypeError, match=r"abs\(run\.t - t\)"):
        run[0.1]


def test_every_state_is_on_its_own_degree(run):
    degrees = [density.space.degree for density in run]
    assert degrees[0] < degrees[-1] == run.stats["highest_degree"]


def test_states_cannot_be_written_to(run):
    with pytest.raises(ValueError, match="read-only"):
        run.final.coefficients[1] = 0
    with pytest.raises(AttributeError):
        run.status = "steady"


def test_states_do_not_share_memory():
    """Each is a copy of the march's state: the first one is still the first after many steps."""
    run = solve(mf.USA(1.0), 3.0)
    assert abs(run[0].moment(1) - bumps().moment(1)) == 0
    assert abs(run[0].moment(1) - run[1].moment(1)) > 1e-3


def test_a_finished_run_says_so(run):
    assert run.status == "finished" and run.success and run.resolved
    assert run.message == "Reached t = 0.5." and "NOT A COMPLETE RESULT" not in repr(run)
    assert "USA(beta=4.0), kappa=20.0" in repr(run) and "t = 0 ... 0.5 (3 states)" in repr(run)


def test_statistics_add_up(run):
    stats = run.stats
    assert stats["steps"] > 10 and stats["rejected"] >= 0
    assert sum(stats["schemes"].values()) == stats["steps"]
    most = 12 * (stats["steps"] + stats["rejected"])
    assert 4 * (stats["steps"] + stats["rejected"]) <= stats["evaluations"] <= most
    assert 0 < stats["weights"] <= stats["steps"] + stats["rejected"] + stats["degree_changes"]
    assert 0 < stats["seconds"] < 60 and stats["rate_of_change"] > 0


def test_options_and_provenance_are_plain_data(run):
    assert run.options["t_eval"] == TIMES and run.options["scheme"] is None
    assert run.rtol == run.options["rtol"] == 1e-8
    assert run.provenance["model"]["drift"] == {"kind": "USA", "beta": 4.0}
    assert run.provenance is run.provenance


# Measured ----------------------------------------------------------------------------------


def test_observables_are_those_of_the_states(run):
    """By quadrature of the values, where the package uses coefficients, and the other way."""
    data, beta = run.observables, 4.0
    assert {*SCALARS, "moment_re", "moment_im", "degree"} == set(data.data_vars)
    for i, density in enumerate(run):
        x, mu = density.space.angles, density.values
        gap = x[:, None] - x[None, :]
        energy = (np.exp(beta * np.cos(gap)) @ mu @ mu) / len(x) ** 2 / (2 * beta)
        entropy = np.mean(mu * np.log(mu))
        moments = [np.mean(mu * np.exp(1j * k * x)) for k in range(1, 9)]
        here = data.isel(t=i)
        assert float(here.interaction_energy) == pytest.approx(energy, rel=1e-13)
        assert float(here.entropy) == pytest.approx(entropy, rel=1e-10)
        assert float(here.free_energy) == pytest.approx(entropy / 20 - energy, rel=1e-12)
        assert float(here.order_parameter) == pytest.approx(abs(moments[0]), rel=1e-13)
        found = here.moment_re.values + 1j * here.moment_im.values
        np.testing.assert_allclose(found, moments, atol=1e-14)
        assert float(here.minimum) == mu.min() and int(here.degree) == density.space.degree


def test_observables_are_measured_once(run):
    assert run.observables is run.observables


# Labelled ----------------------------------------------------------------------------------


def test_a_single_run_has_no_ensemble_axis(run):
    data = run.to_xarray()
    assert data.density.dims == ("t", "theta") and data.coefficient_re.dims == ("t", "mode")
    assert "beta" not in data.coords and "kappa" not in data.coords
    assert data.moment_re.dims == ("t", "k") and data.k.values.tolist() == list(range(1, 9))
    assert data.attrs["status"] == "finished" and data.attrs["message"] == run.message


def test_densities_are_given_on_one_grid(run):
    """That of the highest degree; coefficients beyond a state's own are 0."""
    data = run.to_xarray()
    space = run.final.space
    np.testing.assert_array_equal(data.theta, space.angles)
    np.testing.assert_array_equal(data.mode, space.degrees)
    for i, density in enumerate(run):
        values = density.at(space.points)
        np.testing.assert_allclose(data.density[i], values, rtol=0, atol=1e-12)
        own = density.space.degree
        both = data.coefficient_re[i].values + 1j * data.coefficient_im[i].values
        np.testing.assert_array_equal(both[: own + 1], density.coefficients)
        assert not both[own + 1 :].any()


def test_an_ensemble_has_its_parameters_as_coordinates(table):
    data = table.to_xarray()
    assert data.density.dims == ("t", "member_0", "member_1", "theta")
    assert data.beta.dims == ("member_0",) and data.beta.values.tolist() == [1.0, 4.0]
    assert data.kappa.dims == ("member_1",) and data.kappa.values.tolist() == [3.0, 6.0, 20.0]
    assert table.shape == table.final.shape == (2, 3)
    picked = data.density.isel(t=-1, member_0=1, member_1=2)
    np.testing.assert_array_equal(picked, table.final[1, 2].values)


def test_one_axis_is_called_member():
    stacked = mf.Density.stack([bumps(), bumps().rotate(1.0)])
    data = solve(mf.Kuramoto(), 3.0, stacked).to_xarray()
    assert data.density.dims == ("t", "member", "theta")
    assert "kappa" not in data.coords and "beta" not in data.coords


def test_parameters_that_vary_along_one_axis_only_are_labelled_there():
    """beta along the trailing axis, kappa the same for all, densities along the leading one."""
    stacked = mf.Density(CIRCLE, np.stack([bumps().coefficients] * 2)[:, None])
    data = solve(mf.USA([0.0, 1.0, 2.0]), 3.0, stacked).to_xarray()
    assert data.density.shape[:3] == (3, 2, 3)
    assert data.beta.dims == ("member_1",) and "kappa" not in data.coords


# Elsewhere ---------------------------------------------------------------------------------


def test_a_solution_is_saved_drawn_and_loaded(tmp_path, run):
    run.save(tmp_path / "run.nc")
    again = mf.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(again.final.coefficients, run.final.coefficients)
    figure = run.plot()
    assert figure.axes
    import matplotlib.pyplot as plt

    plt.close(figure)


def test_what_is_measured_is_measured_once_or_left_out(monkeypatch):
    counts = []
    energy = DirectSums.energy
    monkeypatch.setattr(
        DirectSums, "energy", lambda self, x, m: counts.append(len(x)) or energy(self, x, m)
    )
    tokens = mf.Tokens.uniform(20, 3, rng=0)
    run = mf.solve(mf.Transformer(mf.SA([1.0, 2.0])), tokens, (0, 1), t_eval=[0.5, 1.0])
    counts.clear()
    without = run.to_xarray(observables=False)
    assert not counts and not set(without)
    assert set(without.coords) == {"t", "beta", "x", "masses"}
    whole = run.to_xarray()
    measured = len(counts)
    assert measured >= 2
    whole["interaction_energy"][:] = np.nan  # a copy
    assert np.isfinite(run.observables["interaction_energy"]).all()
    assert np.isfinite(run.to_xarray()["interaction_energy"]).all()
    run.contents()
    assert len(counts) == measured
    with pytest.raises(TypeError, match="observables"):
        run.to_xarray(observables=2)
    with pytest.raises(TypeError, match="observable; did you mean observables"):
        run.to_xarray(observable=False)


def test_observables_are_no_attributes_of_runs():
    run = mf.solve(mf.Transformer(mf.SA(1.0)), mf.Equiangular(3, 0.5), (0, 1), t_eval=[0, 1])
    with pytest.raises(AttributeError, match="observables, by name"):
        run.order_parameter  # noqa: B018
    with pytest.raises(AttributeError, match="'Solution' object has no attribute 'colour'"):
        run.colour  # noqa: B018
