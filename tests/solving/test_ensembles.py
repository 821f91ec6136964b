"""Ensembles: many parameters and many initial densities in one call."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.dynamics.density import DensityMotion
from meanfield.solving.batch import LARGEST_BATCH
from meanfield.solving.checkpoint import Keeper

RTOL = 1e-9
TIMES = [0.0, 0.2, 0.5]
CIRCLE = mf.Circle(24)

INITIAL = [CIRCLE.von_mises(0.5, 1.0), CIRCLE.von_mises(-1.0, 2.0), CIRCLE.fourier([1, 0.1, 0.3j])]


def solve(drift, kappa, density):
    """A short run with a tight tolerance."""
    return mf.solve(mf.Transformer(drift, kappa), density, (0, 0.5), t_eval=TIMES, rtol=RTOL)


def assert_same(one, other, tolerance):
    """Two densities agree in every coefficient that either of them keeps."""
    degree = max(one.space.degree, other.space.degree)
    difference = one.resample(degree).coefficients - other.resample(degree).coefficients
    assert np.abs(difference).max() <= tolerance


def assert_like_alone(run, members, tolerance=3 * RTOL):
    """Each member agrees with its own run; both err by less than rtol."""
    for index, alone in members.items():
        for together, single in zip(run, alone, strict=True):
            assert_same(together[index], single, tolerance)


# Members -----------------------------------------------------------------------------------


@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=lambda drift: drift.__name__)
def test_many_beta(drift):
    betas = [-1.0, 0.0, 1.0, 4.0]
    run = solve(drift(betas), 6.0, INITIAL[0])
    assert run.shape == (4,)
    assert_like_alone(run, {i: solve(drift(b), 6.0, INITIAL[0]) for i, b in enumerate(betas)})


def test_many_kappa_with_and_without_noise():
    kappas = [0.5, 3.0, np.inf]
    run = solve(mf.SA(2.0), kappas, INITIAL[0])
    assert_like_alone(run, {i: solve(mf.SA(2.0), k, INITIAL[0]) for i, k in enumerate(kappas)})


def test_many_initial_densities():
    run = solve(mf.USA(2.0), 4.0, mf.Density.stack(INITIAL))
    assert run.shape == (3,)
    assert_like_alone(run, {i: solve(mf.USA(2.0), 4.0, d) for i, d in enumerate(INITIAL)})


def test_a_table_of_beta_kappa_and_initial_densities():
    """beta (2, 1, 1), kappa (2, 1) and densities (3,) make (2, 2, 3) by broadcasting."""
    betas, kappas = np.array([0.0, 3.0]), np.array([1.0, 8.0])
    drift = mf.USA(betas[:, None, None])
    run = solve(drift, kappas[:, None], mf.Density.stack(INITIAL))
    assert run.shape == run.final.shape == (2, 2, 3)
    corners = [(0, 0, 0), (0, 1, 2), (1, 0, 1), (1, 1, 2), (1, 1, 0)]
    alone = {(i, j, k): solve(mf.USA(betas[i]), kappas[j], INITIAL[k]) for i, j, k in corners}
    assert_like_alone(run, alone)


def test_a_model_without_parameters_takes_densities_of_any_shape():
    density = mf.Density(CIRCLE, np.stack([d.coefficients for d in INITIAL])[:, None])
    run = solve(mf.Kuramoto(), 3.0, density)
    assert run.shape == (3, 1)
    alone = {(i, 0): solve(mf.Kuramoto(), 3.0, d) for i, d in enumerate(INITIAL)}
    assert_like_alone(run, alone)


def test_axes_of_length_one_are_kept():
    assert solve(mf.USA([2.0]), 3.0, INITIAL[0]).shape == (1,)
    assert solve(mf.USA(2.0), [[3.0]], INITIAL[0]).shape == (1, 1)


# Bits --------------------------------------------------------------------------------------


def counts(run):
    """What a run counts, as plain data, but for seconds."""
    return {n: np.asarray(v).tolist() for n, v in run.stats.items() if n not in ("seconds",)}


def assert_same_bits(one, other):
    """Two runs of single densities: outputs, degrees, states and observables."""
    np.testing.assert_array_equal(one.t, other.t)
    for mu, nu in zip(one, other, strict=True):
        assert mu.space == nu.space
        np.testing.assert_array_equal(mu.coefficients, nu.coefficients)


def assert_has_the_bits_of(run, members, names=()):
    """Each member, taken out of the run, is its own run; so are its observables."""
    data = run.observables
    for index, alone in members.items():
        np.testing.assert_array_equal(run.t, alone.t)
        for together, single in zip(run, alone, strict=True):
            assert together[index].space == single.space
            np.testing.assert_array_equal(together[index].coefficients, single.coefficients)
        for name, values in alone.observables.data_vars.items():
            at = dict(zip([d for d in data[name].dims if "member" in d], index, strict=True))
            np.testing.assert_array_equal(data[name].isel(at), values, err_msg=name)
        for name in ("steps", "rejected", "evaluations", "degree_changes", "highest_degree"):
            together = np.array(run.stats[name])[index]
            assert together == alone.stats[name], name


STARTS = {
    "circle": INITIAL[:2],
    "sphere": [mf.Sphere(16).von_mises_fisher([0, 0, 1], k) for k in (0.5, 2.0)],
    "zonal": [mf.Zonal(5, 24).von_mises_fisher(k) for k in (0.5, 2.0)],
}


@pytest.mark.bits
@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=lambda drift: drift.__name__)
@pytest.mark.parametrize("space", STARTS)
def test_members_in_company_have_the_bits_that_they_have_alone(space, drift):
    """Of parameters far apart: steps, schemes and degrees of the members differ."""
    betas, kappas, starts = [1.0, 4.0], np.array([0.5, 20.0, np.inf]), STARTS[space]

    def one(beta, kappa, start):
        return mf.solve(mf.Transformer(drift(beta), kappa), start, (0, 0.1), t_eval=[0, 0.04, 0.1])

    run = one(np.array(betas)[:, None, None], kappas[:, None], mf.Density.stack(starts))
    alone = {
        (i, j, k): one(betas[i], kappas[j], starts[k])
        for i, j, k in [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 2, 1)]
    }
    assert run.shape == (2, 3, 2)
    assert_has_the_bits_of(run, alone)
    assert np.unique(run.stats["steps"]).size > 3


@pytest.mark.bits
def test_members_of_a_batch_have_the_bits_that_they_have_alone():
    """Members of two batches, which grow at times of their own and compare schemes."""
    rng = np.random.default_rng(4)
    betas, kappas = rng.uniform(0.5, 6, LARGEST_BATCH + 5), rng.uniform(0.3, 8, LARGEST_BATCH + 5)

    def one(beta, kappa):
        return mf.solve(
            mf.Transformer(mf.USA(beta), kappa), INITIAL[2], (0, 0.4), t_eval=[0.1, 0.4]
        )

    run = one(betas, kappas)
    chosen = [0, 3, 8, 11, 17, 25, LARGEST_BATCH - 1, LARGEST_BATCH, LARGEST_BATCH + 4]
    assert_has_the_bits_of(run, {(i,): one(betas[i], kappas[i]) for i in chosen})
    assert np.unique(run.final.member_degrees).size > 3
    assert any(len(schemes) == 2 and min(schemes.values()) > 0 for schemes in schemes_of(run))


def schemes_of(run):
    """Steps of each scheme, of every member (n,)."""
    return [
        {name: counts[i] for name, counts in run.stats["schemes"].items()}
        for i in range(run.shape[0])
    ]


def test_members_that_are_alike_make_no_motions_of_their_own(monkeypatch):
    made, begin = [], DensityMotion.setup

    def setup(self):
        made.append(self)
        begin(self)

    monkeypatch.setattr(DensityMotion, "setup", setup)
    mf.solve(mf.Transformer(mf.USA(1.0), np.linspace(2, 3, LARGEST_BATCH)), INITIAL[0], (0, 0.1))
    assert len(made) == 5  # of all, of the batch, of the first member, of two checks of the end


def test_what_a_function_of_one_member_raises_is_raised():
    def fails(t, mu):
        if t > 0 and abs(mu.moment(1)) > 0.5:
            raise RuntimeError("of a member")
        return 1.0

    with pytest.raises(RuntimeError, match="of a member"):
        mf.solve(mf.Transformer(mf.USA([0.5, 4.0]), 9.0), INITIAL[0], (0, 2), events=fails)


@pytest.mark.bits
def test_threads_change_no_bit():
    betas = np.linspace(0.5, 5, 12)
    model = mf.Transformer(mf.USA(betas), np.geomspace(0.5, 20, 12))
    one, two = (mf.solve(model, INITIAL[0], (0, 1), threads=n) for n in (1, 2))
    assert_same_bits(one, two)
    assert counts(one) == counts(two)


def test_threads_are_for_ensembles_of_densities():
    for start in (INITIAL[0], mf.Tokens.uniform(4, 2, rng=0)):
        with pytest.raises(ValueError, match=r"threads must be 1.*got threads = 2"):
            mf.solve(mf.Transformer(mf.USA(1.0)), start, (0, 1), threads=2)
    with pytest.raises(ValueError, match="threads"):
        mf.solve(mf.Transformer(mf.USA([1.0])), INITIAL[0], (0, 1), threads=0)


@pytest.mark.bits
def test_identical_members_are_identical_in_every_bit():
    alone = solve(mf.SA(3.0), 5.0, INITIAL[1])
    copies = solve(mf.SA(3.0), 5.0, mf.Density.stack([INITIAL[1]] * 5))
    tabled = solve(mf.SA([3.0] * 5), [5.0] * 5, INITIAL[1])
    for run in (copies, tabled):
        assert_has_the_bits_of(run, {(i,): alone for i in range(5)})


def test_the_order_of_the_members_does_not_matter():
    forwards = solve(mf.USA([1.0, 2.0, 4.0]), 5.0, mf.Density.stack(INITIAL))
    backwards = solve(mf.USA([4.0, 2.0, 1.0]), 5.0, mf.Density.stack(INITIAL[::-1]))
    for one, other in zip(forwards, backwards, strict=True):
        np.testing.assert_array_equal(one.coefficients, other.coefficients[::-1])


def test_a_start_with_fewer_modes_has_them_in_company_too():
    """Stacked densities keep their degrees, of which the first step depends."""
    starts = [mf.Circle(8).von_mises(0, 0.1), mf.Circle(64).von_mises(0, 20.0)]
    run = solve(mf.USA(1.0), 5.0, mf.Density.stack(starts))
    assert_has_the_bits_of(run, {(i,): solve(mf.USA(1.0), 5.0, s) for i, s in enumerate(starts)})


@pytest.mark.bits
@pytest.mark.parametrize("drift", ["attention", "sinkhorn"])
def test_members_under_attention_have_the_bits_that_they_have_alone(drift):
    weights = {"attention": mf.Softmax(), "sinkhorn": mf.Sinkhorn()}[drift]
    betas, V = [1.0, 3.0], np.diag([1.0, 0.5])

    def one(beta):
        model = mf.Transformer(mf.Attention(V=V, beta=beta, weights=weights), 4.0)
        return mf.solve(model, INITIAL[1], (0, 0.2), t_eval=[0.2], rtol=1e-6)

    assert_has_the_bits_of(one(betas), {(i,): one(beta) for i, beta in enumerate(betas)})


def test_under_common_noise_a_member_has_its_path_whoever_comes_after_it():
    """Members draw from children of the generator, in their order."""

    def run(kappas):
        model = mf.Transformer(mf.USA(1.0), 4.0, common=mf.CommonRotations(kappas))
        options = {"t_eval": [0.1, 0.3], "dt": 0.05, "min_degree": 32, "max_degree": 32}
        return mf.solve(model, INITIAL[1], (0, 0.3), rng=5, **options)

    two, three = run([2.0, 8.0]), run([2.0, 8.0, 3.0])
    for mu, nu in zip(two, three, strict=True):
        np.testing.assert_array_equal(mu.coefficients, nu[:2].coefficients)
        assert not np.allclose(nu[1].coefficients, nu[2].coefficients)


# Own ends ----------------------------------------------------------------------------------


def test_a_member_that_cannot_go_on_keeps_its_last_state_and_the_others_go_on():
    def one(kappa):
        return mf.solve(mf.Transformer(mf.USA(2.0), kappa), INITIAL[0], (0, 5), max_degree=64)

    with pytest.warns(mf.UnresolvedWarning, match=r"Member \(1,\).*max_degree"):
        run = one([1.0, np.inf])
    with pytest.warns(mf.UnresolvedWarning):
        collapsing = one(np.inf)
    assert run.status == "unresolved" and not run.success and not run.resolved
    assert run.stats["status"].tolist() == ["finished", "unresolved"]
    assert run.t[-1] == 5 and run.stats["t_end"].tolist() == [5.0, collapsing.t[-1]]
    assert_same = np.testing.assert_array_equal
    assert_same(run.final[1].coefficients, collapsing.final.coefficients)
    assert_same(run.final[0].coefficients, one(1.0).final.coefficients)
    assert "1 finished, 1 unresolved" in run.message


def test_if_no_member_can_go_on_the_run_ends():
    model = mf.Transformer(mf.USA([2.0, 3.0]))
    with pytest.warns(mf.UnresolvedWarning, match="1 more"):
        run = mf.solve(model, INITIAL[0], (0, 5), max_degree=64)
    assert run.status == "unresolved" and run.t[-1] == max(run.stats["t_end"]) < 5


@pytest.mark.parametrize("dt", [None, 0.5], ids=["adaptive", "fixed"])
@pytest.mark.parametrize("betas", [[0.0, 600.0], [600.0, 0.0]], ids=["last", "first"])
def test_a_member_that_overflows_is_not_overlooked_beside_one_that_does_not(betas, dt):
    """Whatever the order: the run fails and the state it returns is finite."""
    options = {"dt": dt, "rtol": 1e-3}
    with pytest.warns(mf.UnresolvedWarning):
        run = mf.solve(mf.Transformer(mf.USA(betas), 2.0), INITIAL[0], (0, 5), **options)
        alone = mf.solve(mf.Transformer(mf.USA(600.0), 2.0), INITIAL[0], (0, 5), **options)
    assert run.status == alone.status != "finished"
    assert run.stats["status"][betas.index(0.0)] == "finished"
    assert np.isfinite(run.final.coefficients).all()


def test_steady_means_that_every_member_is_and_each_stops_when_it_is():
    def one(kappa):
        model = mf.Transformer(mf.Kuramoto(), kappa)
        return mf.solve(model, INITIAL[0], (0, 1000), t_eval=[1000], until="steady", rtol=1e-12)

    kappas = [1.0, 2.5]
    run, alone = one(kappas), [one(kappa) for kappa in kappas]
    assert run.status == "steady" and run.stats["t_end"].tolist() == [r.t[-1] for r in alone]
    assert run.t[-1] == max(run.stats["t_end"])
    for i in range(2):
        np.testing.assert_array_equal(run.final[i].coefficients, alone[i].final.coefficients)


def test_members_at_rest_from_the_start_stay_there():
    starts = mf.Density.stack([CIRCLE.uniform(), INITIAL[0]])
    run = mf.solve(mf.Transformer(mf.USA(1.0), 1.0), starts, (0, 100), until="steady")
    assert run.stats["t_end"][0] == 0 and run.stats["steps"][0] == 0 < run.stats["steps"][1]
    assert run.status == "steady"


def test_max_steps_ends_the_run_at_the_last_output_that_all_have_reached():
    run = solve(mf.USA([0.0, 5.0]), 5.0, INITIAL[0])
    most = int(max(run.stats["steps"])) - 1
    short = mf.solve(
        *(mf.Transformer(mf.USA([0.0, 5.0]), 5.0), INITIAL[0], (0, 0.5)),
        **{"t_eval": TIMES, "rtol": RTOL, "max_steps": most},
    )
    assert short.status == "max_steps" and short.t.tolist() == TIMES[:2]
    np.testing.assert_array_equal(short.final.coefficients, run[1].coefficients)


# Looked at ---------------------------------------------------------------------------------


def rises(_t, mu):
    """The order parameter passes 0.3."""
    return float(abs(mu.moment(1))) - 0.3


def test_events_are_those_of_every_member():
    """Each function sees one member at a time; the times are filled up with nan."""
    kappas = [0.5, 6.0, 20.0]
    run = mf.solve(mf.Transformer(mf.USA(1.0), kappas), INITIAL[0], (0, 4), events=rises)
    alone = [
        mf.solve(mf.Transformer(mf.USA(1.0), kappa), INITIAL[0], (0, 4), events=rises)
        for kappa in kappas
    ]
    assert run.t_events[0].shape == (3, 1)
    for row, single in zip(run.t_events[0], alone, strict=True):
        np.testing.assert_array_equal(row[~np.isnan(row)], single.t_events[0])
    assert np.isnan(run.t_events[0][:, 0]).sum() == sum(len(r.t_events[0]) == 0 for r in alone) > 0


def test_a_terminal_event_ends_its_member(tmp_path):
    def ends(t, mu):
        return rises(t, mu)

    ends.terminal, ends.direction = True, 1
    model = mf.Transformer(mf.USA(1.0), [0.5, 6.0])
    start = CIRCLE.von_mises(0.5, 0.2)
    run = mf.solve(model, start, (0, 4), t_eval=[2, 4], events=ends)
    sixth = mf.Transformer(mf.USA(1.0), 6.0)
    alone = mf.solve(sixth, start, (0, 4), t_eval=[2, 4], events=ends)
    assert run.stats["status"].tolist() == ["finished", "event"] and run.status == "finished"
    np.testing.assert_array_equal(run.final[1].coefficients, alone.final.coefficients)
    both = mf.solve(
        mf.Transformer(mf.USA(1.0), [6.0, 7.0]), start, (0, 4), t_eval=[2, 4], events=ends
    )
    assert both.status == "event" and both.t[-1] < 4
    np.testing.assert_array_equal(both.final[0].coefficients, alone.final.coefficients)
    again = mf.load(both.save(tmp_path / "run.nc"))
    np.testing.assert_array_equal(again.t_events[0], both.t_events[0])
    assert counts(again) == counts(both)


def test_a_member_that_an_event_ended_ends_there_with_its_tangents():
    def ends(t, mu):
        return rises(t, mu)

    ends.terminal = ends.direction = 1
    start, options = CIRCLE.von_mises(0.5, 0.2), {"t_eval": [0, 1, 4], "events": ends}
    options |= {"tangents": ["kappa"]}
    run = mf.solve(mf.Transformer(mf.USA(1.0), [0.5, 6.0]), start, (0, 4), **options)
    alone = mf.solve(mf.Transformer(mf.USA(1.0), 6.0), start, (0, 4), **options)
    assert run.stats["t_end"][1] == alone.t[-1] == run.t_events[0][1, 0]
    own = run.tangents["kappa"][-1].coefficients[1], alone.tangents["kappa"][-1].coefficients
    np.testing.assert_array_equal(own[0][: own[1].size], own[1])
    both = mf.solve(mf.Transformer(mf.USA(1.0), [6.0, 7.0]), start, (0, 4), **options)
    assert both.t[-1] == both.stats["t_end"].max() == alone.t[-1]


def test_a_run_that_is_cut_short_says_so_whatever_became_of_a_member():
    model = mf.Transformer(mf.USA([4.0, 1.0]), [np.inf, 3.0])
    with pytest.warns(mf.UnresolvedWarning):
        whole = mf.solve(model, INITIAL[0], (0, 5), max_degree=48)
    with pytest.warns(mf.UnresolvedWarning):
        short = mf.solve(*(model, INITIAL[0], (0, 5)), max_degree=48, callback=lambda t, _: t > 1)
    assert whole.status == "unresolved" and short.status == "stopped"
    assert short.stats["status"].tolist() == ["unresolved", "stopped"]


@pytest.mark.long
def test_a_member_that_cannot_go_on_has_a_gradient_at_its_end():
    model = mf.Transformer(mf.USA([1.0, 4.0]), [3.0, 40.0])
    with pytest.warns(mf.UnresolvedWarning):
        run = mf.solve(model, INITIAL[0], (0, 0.5), t_eval=[0.1, 0.5], max_degree=32)
        alone = mf.solve(mf.Transformer(mf.USA(4.0), 40.0), INITIAL[0], (0, 0.5), max_degree=32)
    one, other = (mf.gradient(lambda x: x[:, 0], r).initial.coefficients for r in (run, alone))
    np.testing.assert_array_equal(one[1], other)


def test_a_callback_sees_the_ensemble_at_outputs():
    seen = []

    def callback(t, state):
        seen.append((t, state.shape))
        return t > 0.1

    model = mf.Transformer(mf.USA([1.0, 2.0]), 5.0)
    run = mf.solve(model, INITIAL[0], (0, 0.5), t_eval=TIMES, callback=callback)
    assert seen == [(0.2, (2,))] and run.status == "stopped" and run.t.tolist() == TIMES[:2]


# Kept --------------------------------------------------------------------------------------


@pytest.mark.bits
def test_an_interrupted_ensemble_goes_on_with_the_same_bits(tmp_path):
    """At every output, and after a terminal event of a member."""

    def ends(t, mu):
        return rises(t, mu)

    ends.terminal = True
    model = mf.Transformer(mf.USA([1.0, 3.0, 1.0]), [0.5, 9.0, 6.0])
    options = {"t_eval": np.linspace(0, 1, 5), "events": ends}
    whole = mf.solve(model, INITIAL[0], (0, 1), **options)
    for stop in (0.25, 0.75):
        path = tmp_path / f"{stop}.ckpt"
        options["checkpoint"] = path
        mf.solve(model, INITIAL[0], (0, 1), callback=lambda t, _, at=stop: t >= at, **options)
        on = mf.solve(model, INITIAL[0], (0, 1), resume=True, **options)
        assert_same_bits(whole, on)
        np.testing.assert_array_equal(on.t_events[0], whole.t_events[0])
        assert counts(on) == counts(whole)
        del options["checkpoint"]


@pytest.mark.repeats
@pytest.mark.bits
@pytest.mark.parametrize("saves", [1, 4, 15, 40])
def test_an_ensemble_that_dies_between_outputs_goes_on_with_the_same_bits(
    tmp_path, monkeypatch, saves
):
    """Its members are at different times then, some of them within a step."""
    monkeypatch.setattr("meanfield.solving.ensemble.ADVANCE_SECONDS", 0.001)
    model = mf.Transformer(mf.USA([0.5, 5.0, 2.0]), [0.5, 30.0, 5.0])
    options = {"t_eval": np.linspace(0, 0.5, 4), "until": "steady", "steady_tolerance": 0.05}
    whole = mf.solve(model, INITIAL[0], (0, 0.5), **options)
    keeping = {"checkpoint": tmp_path / "run.ckpt", "checkpoint_every": 0}
    save, left = Keeper.save, iter(range(saves))

    def dies(self, arrays):
        save(self, arrays)
        if next(left, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Keeper, "save", dies)
        try:
            mf.solve(model, INITIAL[0], (0, 0.5), **options, **keeping)
        except KeyboardInterrupt:
            pass
    again = mf.solve(model, INITIAL[0], (0, 0.5), resume=True, **options, **keeping)
    assert_same_bits(whole, again)
    assert counts(whole) == counts(again)


def test_members_of_a_loaded_run_have_their_own_degrees(tmp_path):
    run = solve(mf.USA([0.5, 5.0]), [0.5, 30.0], INITIAL[0])
    again = mf.load(run.save(tmp_path / "run.nc"))
    assert run.final[0].space.degree < run.final[1].space.degree
    for mu, nu in zip(run, again, strict=True):
        np.testing.assert_array_equal(mu.member_degrees, nu.member_degrees)
        np.testing.assert_array_equal(mu.coefficients, nu.coefficients)
    assert run.observables.degree.dims == ("t", "member")


# Measured ----------------------------------------------------------------------------------


def test_observables_have_one_value_for_each_member():
    run = solve(mf.USA([[1.0], [3.0]]), [2.0, 4.0, 8.0], INITIAL[0])
    data = run.observables
    assert data.order_parameter.dims == ("t", "member_0", "member_1")
    assert data.order_parameter.shape == (3, 2, 3)
    np.testing.assert_array_equal(data.beta, [1.0, 3.0])
    np.testing.assert_array_equal(data.kappa, [2.0, 4.0, 8.0])
    alone = solve(mf.USA(3.0), 8.0, INITIAL[0]).observables
    for name in ("mass", "entropy", "interaction_energy", "free_energy", "moment_re"):
        together = data[name].isel(member_0=1, member_1=2).values
        np.testing.assert_allclose(together, alone[name].values, atol=1e-7, err_msg=name)


@pytest.mark.bits
def test_an_ensemble_that_was_cut_short_again_and_again_is_the_unbroken_one(tmp_path):
    model, start = mf.Transformer(mf.Kuramoto(), [0.8, 1.5, 8.0]), CIRCLE.fourier([1, 0.1])
    whole, most = mf.solve(model, start, (0, 20)), 20
    kept = {"checkpoint": tmp_path / "run.checkpoint", "checkpoint_every": 0, "resume": True}
    while (run := mf.solve(model, start, (0, 20), max_steps=most, **kept)).status == "max_steps":
        assert set(run.stats["status"]) == {"max_steps"} and (run.stats["t_end"] >= run.t[-1]).all()
        most += 37
    assert most > 100 and run.status == whole.status and run.t.tolist() == whole.t.tolist()
    for name in whole.stats.keys() - {"seconds"}:
        np.testing.assert_array_equal(run.stats[name], whole.stats[name])
    for state, same in zip(run, whole, strict=True):
        np.testing.assert_array_equal(state.coefficients, same.coefficients)
