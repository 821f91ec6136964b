"""Runs of indexed densities, differentiated."""

import numpy as np
import pytest

import meanfield as mf

circle = mf.Circle(32)
positions = mf.Positions([0, 0.5, 1], order=5)
start = circle.indexed(lambda s, x: 1 + 0.4 * np.cos(x - s) + 0.2 * np.sin(2 * x), positions)
FIXED = {"dt": 0.03, "min_degree": 32, "max_degree": 32, "progress": False}
STEP = 1e-3


def _pushed(node=0):
    h = np.zeros_like(start.each)
    h[node, 1] = 0.2 - 0.1j
    return h.ravel()


def _by_differences(run_at):
    """The derivative at 0 by differences of order 4."""
    c = [run_at(k * STEP).final.coefficients for k in (-2, -1, 1, 2)]
    return (c[0] - 8 * c[1] + 8 * c[2] - c[3]) / (12 * STEP)


@pytest.mark.parametrize(("drift", "causal"), [(mf.SA, True), (mf.USA, mf.Causal("mean", 0.5))])
def test_tangents_are_those_of_differences(drift, causal):
    h = _pushed()

    def run(beta=1.5, kappa=4.0, mu=start, **more):
        model = mf.Transformer(drift(beta), kappa, causal=causal)
        return mf.solve(model, mu, (0, 0.3), t_eval=[0.3], **FIXED, **more)

    found = run(tangents=["beta", "kappa", h]).tangents
    wanted = {
        "beta": lambda e: run(beta=1.5 + e),
        "kappa": lambda e: run(kappa=4.0 + e),
        "direction_0": lambda e: run(mu=type(start)(start.space, start.coefficients + e * h)),
    }
    for name, at in wanted.items():
        error = np.abs(found[name][-1].coefficients - _by_differences(at)).max()
        assert error <= 1e-8, (name, error)
    assert np.abs(found["beta"][-1].mass).max() <= 1e-14


def test_observables_change_as_the_states_do():
    model = mf.Transformer(mf.SA(1.5), 4.0, causal=True)

    def run(e, **more):
        mu = type(start)(start.space, start.coefficients + e * _pushed())
        return mf.solve(model, mu, (0, 0.3), t_eval=[0.3], **FIXED, **more)

    found = run(0.0, tangents=[_pushed()]).tangents.observables.isel(tangent=0, t=-1)
    plus, minus = (run(e).observables.isel(t=-1) for e in (1e-5, -1e-5))
    for name in ("order_parameter", "order_by_index"):
        slope = (plus[name].values - minus[name].values) / 2e-5
        assert np.abs(found[name].values - slope).max() <= 1e-8


def test_nothing_acts_on_what_comes_before():
    model = mf.Transformer(mf.SA(1.5), 4.0, causal=True)
    last = len(positions) - 1
    run = mf.solve(model, start, (0, 0.3), t_eval=[0.3], **FIXED, tangents=[_pushed(last)])
    change = run.tangents["direction_0"][-1].slices.norm
    assert (change[: positions.order] == 0).all()  # nodes of other pieces
    assert change[last] > 0


# All that depends on positions: exact derivatives, and their transposes ------------------------

SPHERE = mf.Sphere(12)
SKEW = np.array([[1.0, 0.3], [-0.2, 0.8]])
SINK = mf.Positions([0, 0.5, 1], order=5, sink=0.2)


def _of_turning(s, *x):
    return 1 + 0.4 * np.cos(x[0] - s) if len(x) == 1 else 1 + 0.3 * x[2] * np.cos(s) + 0.2 * x[0]


def _betas(by):
    return lambda s: 1 + s + by.get("beta", 0) + by.get("beta[2]", 0) * (np.arange(s.size) == 2)


CASES = {
    "SA": lambda by: (mf.SA(1.5 + by.get("beta", 0)), {"causal": True}),
    "sum": lambda by: (mf.USA(1.5 + by.get("beta", 0)), {"causal": "sum"}),
    "window, sink, decay": lambda by: (
        mf.SA(1.5 + by.get("beta", 0)),
        {"causal": mf.Causal(window=0.5, sink=0.2, decay=lambda u: np.exp(-2 * u))},
    ),
    "beta(s)": lambda by: (mf.USA(1.0), {"causal": mf.Causal("mean", beta=_betas(by))}),
    "attention": lambda by: (
        mf.Attention(beta=1.5 + by.get("beta", 0), Q=SKEW, V=SKEW.T),
        {"causal": True},
    ),
    "frequency": lambda by: (
        3.0 * mf.Kuramoto(),
        {"frequency": mf.OfIndex(1 + by.get("frequency.factor", 0))},
    ),
}
NAMES = {
    "beta(s)": ["beta", "beta[2]", "kappa"],
    "frequency": ["frequency.factor", "kappa"],
}


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("name", "space"),
    [*((name, mf.Circle(24)) for name in CASES), ("sum", SPHERE), ("beta(s)", SPHERE)],
    ids=str,
)
def test_tangents_are_exact_and_gradients_their_transposes(name, space):
    """By differences of order 4: 1e-11. <gradient, h> = <J', tangent>: 1e-12, relative."""
    index = mf.NormalIndex(0.7, 4, 0.3) if name == "frequency" else SINK
    mu, names = space.indexed(_of_turning, index), NAMES.get(name, ["beta", "kappa"])
    h = 0.1 * space.indexed(lambda s, *x: _of_turning(s + 1, *x), index).each
    h[..., 0] = 0
    options = {**FIXED, "min_degree": space.degree, "max_degree": space.degree, "t_span": (0, 0.1)}

    def run(moved=0.0, tangents=(), **by):
        drift, seen = CASES[name](by)
        model = mf.Transformer(drift, 4.0 + by.get("kappa", 0.0), **seen)
        begin = mf.Indexed(mu.space, mu.coefficients + moved * h.ravel())
        return mf.solve(model, begin, t_eval=[0.05, 0.1], tangents=list(tangents), **options)

    whole = run(tangents=[h.ravel(), *names])
    for key, by in zip(whole.tangents, ["moved", *names], strict=True):
        several = [run(**{by: k * STEP}) for k in (-2, -1, 1, 2)]
        for output in range(2):
            c = [one[output].coefficients for one in several]
            slope = (c[0] - 8 * c[1] + 8 * c[2] - c[3]) / (12 * STEP)
            assert np.abs(whole.tangents[key][output].coefficients - slope).max() <= 1e-11, key

    def f(x):
        return x[..., -1] ** 2 + x[..., -1]

    s = index.nodes[-1]
    of_all, of_one = mf.Functional.mean(f), mf.Functional.mean(f, position=s)
    gradients = [mf.gradient(J, whole, parameters=names) for J in (of_all, of_one)]
    direction = mf.Variation(mu.space, h.ravel())
    for row, key in enumerate(whole.tangents):
        change = whole.tangents[key][-1]
        forwards = change.expect(f), change.at_position(s).expect(f)
        for found, wanted in zip(gradients, forwards, strict=True):
            back = found.parameters[names[row - 1]] if row else found.initial.paired(direction)
            assert back == pytest.approx(wanted, rel=1e-12, abs=1e-15), key


def test_the_same_beta_at_all_positions_has_the_tangents_of_one():
    same = mf.Causal("mean", beta=lambda s: np.full_like(s, 1.5))
    found = []
    for causal in ("mean", same):
        model = mf.Transformer(mf.USA(1.5), 4.0, causal=causal)
        run = mf.solve(model, start, (0, 0.1), **FIXED, tangents=["beta"])
        found.append(run.tangents["beta"][-1].coefficients)
    assert np.abs(found[0] - found[1]).max() <= 1e-14


@pytest.mark.long
def test_a_density_with_lorentzian_frequencies_has_derivatives_by_them():
    """r^2 = 1 - 2 Delta/K at the end, without noise: dr/dDelta = -1/(K r)."""
    mu = circle.density(lambda x: 1 + 0.5 * np.cos(x))
    model = mf.Transformer(3.0 * mf.Kuramoto(), frequency=mf.Lorentzian(1.3))
    options = {**FIXED, "dt": 0.06}
    run = mf.solve(model, mu, (0, 60), tangents=["frequency.width"], **options)
    r = abs(run.final.moment(1))
    change = run.tangents.observables.order_parameter.values[0, -1]
    assert change == pytest.approx(-1 / (3 * r), rel=1e-6)
    by = mf.gradient(lambda x: x[:, 0], run).parameters
    assert set(by) == {"factors[0]", "frequency.width", "frequency.centre"}
    assert by["frequency.width"] == pytest.approx(change, rel=1e-12)


def test_exponents_of_indexed_runs():
    """Near the uniform state, without noise: C has the eigenvalues 1, 1/2, 1/3 by s^p."""
    uniform = circle.indexed(lambda s, x: 1 + 0 * x + 0 * s, mf.Positions(order=3))
    run = mf.solve(
        mf.Transformer(mf.Kuramoto(), causal="mean"), uniform, (0, 30), **{**FIXED, "dt": 0.5}
    )
    found = mf.lyapunov_exponents(run, 4)
    assert found.late == pytest.approx([0.5, 0.5, 0.25, 0.25], abs=0.02)


# Changes by position, and what is refused --------------------------------------------------------

MODEL = mf.Transformer(mf.SA(1.5), 4.0, causal=True)


@pytest.fixture(scope="module")
def differentiated():
    both = mf.Indexed.stack([start, start.rotate(0.5)])
    return mf.solve(MODEL, both, (0, 0.1), t_eval=[0.1], **FIXED, tangents=["beta"])


def test_changes_are_had_at_many_positions(differentiated):
    """At each what it is alone, at the nodes that of the nodes; means over them are the whole."""
    change = differentiated.tangents["beta"][-1]
    some = change.at_position([[0.2, 0.5, 1.0], [0.1, 0.0, 0.7]])
    assert some.shape == (2, 2, 3)
    alone = change.at_position(0.7)
    assert alone.shape == (2,)
    np.testing.assert_allclose(some.coefficients[:, 1, 2], alone.coefficients, atol=1e-16)
    np.testing.assert_allclose(
        change.at_position(positions.nodes).coefficients, change.slices.coefficients, atol=1e-16
    )
    assert change.mass.shape == change.moment(1).shape == (2, len(positions))
    np.testing.assert_allclose(
        change.moment(1) @ positions.weights, change.marginal().moment(1), atol=1e-16
    )
    coarse = change.resample(8).at_position(0.7)
    np.testing.assert_array_equal(coarse.coefficients, alone.resample(8).coefficients)


def test_changes_and_states_call_their_moments_alike(differentiated):
    names = {name for name in differentiated.observables if "moment" in name}
    assert names == {f"{n}_{p}" for n in ("moment", "moment_by_index") for p in ("re", "im")}
    assert names == {name for name in differentiated.tangents.observables if "moment" in name}
    for name in names:
        dims = differentiated.observables[name].dims
        assert differentiated.tangents.observables[name].dims == ("tangent", *dims)


@pytest.mark.parametrize("s", [True, [], np.nan, [0.2, 1.5], "a"])
def test_changes_at_no_position_are_refused(differentiated, s):
    with pytest.raises((ValueError, TypeError), match=r"^s must "):
        differentiated.tangents["beta"][-1].at_position(s)


def test_changes_are_paired_with_what_is_on_their_space(differentiated):
    change = differentiated.tangents["beta"][-1]
    for other in (circle.uniform(), mf.Variation(circle, circle.uniform().coefficients), 3):
        with pytest.raises(TypeError, match=r"other must be a Variation or Density on Circle\(deg"):
            change.paired(other)
    coarse = start.resample(8)
    assert change.paired(coarse).shape == (2,)


def _first(x):
    return x[:, 0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"position": [0.2, 0.5]}, "position must be one number.* a Functional.mean for each"),
        ({"position": True}, "position must be a finite number; got position = True"),
        ({"position": "a"}, "position must be a finite number; got position = 'a'"),
        ({"position": np.nan}, "position must be a finite number"),
        ({"f": 3}, "f must be a function of unit vectors"),
    ],
)
def test_functionals_of_no_position_are_refused(given, words):
    with pytest.raises((ValueError, TypeError), match=words):
        mf.Functional.mean(**{"f": _first, **given})


def test_functionals_of_a_position_need_one(differentiated):
    beyond, within = (mf.Functional.mean(_first, position=s) for s in (1.5, np.array(0.5)))
    with pytest.raises(ValueError, match=r"^position: s must be positions between 0 and 1"):
        mf.gradient(beyond, differentiated)
    for call in (within.value, within.variation):
        for other in (circle.uniform(), 3):
            with pytest.raises(TypeError, match=r"position = 0.5 is that of a slice of Indexed"):
                call(other)


@pytest.mark.parametrize("wrong", [np.array(["beta", "kappa"]), np.array(1.0), 3, None])
def test_parameters_are_names(differentiated, wrong):
    with pytest.raises(TypeError, match="parameters must be names of parameters of the model"):
        mf.gradient(_first, differentiated, parameters=[wrong])
    with pytest.raises(TypeError, match="tangents must be lists of names of parameters"):
        mf.solve(MODEL, start, (0, 0.1), tangents=[wrong])


def test_names_may_be_of_an_array(differentiated):
    found = mf.gradient(_first, differentiated, parameters=list(np.array(["beta"])))
    assert [type(name) for name in found.parameters] == [str]


def test_functions_of_the_index_are_no_directions(differentiated):
    def f(s, theta):
        return np.cos(theta - s)

    with pytest.raises(TypeError, match=r"of \(s, theta\).*space.indexed\(f, index\)"):
        mf.solve(MODEL, start, (0, 0.1), tangents=[f])
    with pytest.raises(TypeError, match=r"f must be a function of points .* of \(s, theta\)"):
        mf.gradient(f, differentiated)


def test_other_names_are_refused():
    model = mf.Transformer(mf.SA(1.5), 4.0, causal=True)
    for name in ("beta[0]", "frequency.factor"):
        with pytest.raises(ValueError, match="parameters of the model"):
            mf.solve(model, start, (0, 0.1), tangents=[name])
