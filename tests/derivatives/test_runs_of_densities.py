"""Tangents and gradients of runs of densities: exact derivatives of the discrete map."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.derivatives.densities import DifferentiatedRun
from meanfield.derivatives.journal import EVER, Journal
from meanfield.dynamics import DensityMotion
from meanfield.steppers import DormandPrince, HochbruckOstermann, Krogstad

CIRCLE = mf.Circle(24)
MU0 = CIRCLE.density(lambda theta: 1 + 0.3 * np.cos(theta) + 0.1 * np.sin(2 * theta))
TOWARDS = CIRCLE.von_mises(0.3, 1.0)
DIRECTION = TOWARDS.coefficients - MU0.coefficients
FOURTH = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
STEP = 1e-3


def difference(f):
    """The derivative of f at 0 by a central difference of order 4."""
    return sum(weight * f(node * STEP) for node, weight in FOURTH.items()) / STEP


def journal_of(scheme, steps, dt, degrees=(24, 32)):
    """Equal steps on one degree, then as many on the other."""
    journal = Journal()
    starts = dt * np.arange(steps)
    for half, degree in zip(np.split(starts, 2), degrees, strict=True):
        journal.add(np.stack([half, np.full(half.size, dt)], axis=1), scheme, EVER, degree)
    return journal


def differentiated(drift, beta, kappa, moved, journal, parameters=()):
    model = mf.Transformer(drift(beta=beta), kappa=kappa)
    start = mf.Density(CIRCLE, MU0.coefficients + moved * DIRECTION)
    return DifferentiatedRun(DensityMotion(model, start), start, (), journal, parameters)


@pytest.mark.repeats
@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=["USA", "SA"])
@pytest.mark.parametrize("scheme", [Krogstad, HochbruckOstermann, DormandPrince], ids=repr)
def test_tangents_are_derivatives_on_frozen_steps(drift, scheme):
    journal = journal_of(scheme, 20, 0.004 if scheme.explicit else 0.05)
    (_, dt), times = journal.stretches[0].steps[0], np.array([0.0, 2.4, 10.0, 13.7, 20.0])

    def states(by_beta=0.0, by_kappa=0.0, moved=0.0):
        run = differentiated(drift, 2.0 + by_beta, 4.0 + by_kappa, moved, journal)
        return [rows[0] for rows in run.tangents(dt * times, [])]

    run = differentiated(drift, 2.0, 4.0, 0.0, journal, ["beta", "kappa"])
    found = list(run.tangents(dt * times, ["beta", "kappa", DIRECTION]))
    for row, name in enumerate(["by_beta", "by_kappa", "moved"], start=1):
        for i in range(times.size):
            expected = difference(lambda e, name=name, i=i: states(**{name: e})[i])
            assert np.abs(found[i][row] - expected).max() < 1e-10, (name, times[i])


@pytest.mark.repeats
@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=["USA", "SA"])
@pytest.mark.parametrize("scheme", [Krogstad, DormandPrince], ids=repr)
def test_the_adjoint_is_the_transpose(drift, scheme):
    journal = journal_of(scheme, 20, 0.004 if scheme.explicit else 0.05, degrees=(32, 20))
    run = differentiated(drift, 2.0, 4.0, 0.0, journal, ["kappa", "beta"])
    rng = np.random.default_rng(0)
    end = rng.standard_normal(21) + 1j * rng.standard_normal(21) * (np.arange(21) > 0)
    (*_, last) = run.tangents(
        np.array([1.0]) * sum(journal.stretches[-1].steps[-1]), ["kappa", "beta", DIRECTION]
    )
    gradient, by_parameter = run.gradient(end)
    pair = mf.Variation(CIRCLE.with_degree(20), end).paired
    forwards = [pair(mf.Variation(CIRCLE.with_degree(20), h)) for h in last[1:]]
    assert np.allclose(by_parameter, forwards[:2], rtol=0, atol=1e-13)
    backwards = mf.Variation(CIRCLE, gradient).paired(mf.Variation(CIRCLE, DIRECTION))
    assert backwards == pytest.approx(forwards[2], abs=1e-13)


def test_gradients_of_runs_that_are_kept_in_parts(monkeypatch):
    """Stages of sqrt(n) steps at a time, where those of all steps take too much memory."""
    run = mf.solve(mf.Transformer(mf.SA(beta=4.0), kappa=8.0), MU0, (0, 0.4), dt=0.02)
    whole = mf.gradient(lambda x: x[:, 0], run)
    monkeypatch.setattr("meanfield.derivatives.densities.RECORDED_NUMBERS", 0)
    parts = mf.gradient(lambda x: x[:, 0], run)
    np.testing.assert_array_equal(parts.initial.coefficients, whole.initial.coefficients)


def test_a_run_has_tangents_at_its_outputs_and_gradients():
    model = mf.Transformer(mf.USA(beta=4.0), kappa=6.0)
    times = [0.0, 0.33, 0.8]
    run = mf.solve(model, MU0, (0, 0.8), t_eval=times, tangents=["beta", TOWARDS, "kappa"])
    assert list(run.tangents) == ["beta", "direction_0", "kappa"]
    assert run.stats["degree_changes"] > 0
    for name in run.tangents:
        assert [h.space for h in run.tangents[name]] == [mu.space for mu in run]
        assert np.abs([h.mass for h in run.tangents[name]]).max() == 0
    gradient = mf.gradient(lambda x: x[:, 0] ** 2, run)
    second = [run.tangents[name][-1].expect(lambda x: x[:, 0] ** 2) for name in run.tangents]
    assert gradient.value == pytest.approx(run.final.expect(lambda x: x[:, 0] ** 2))
    assert gradient.parameters["beta"] == pytest.approx(second[0], abs=1e-12)
    assert gradient.parameters["kappa"] == pytest.approx(second[2], abs=1e-12)
    along = gradient.initial.paired(mf.Variation(CIRCLE, DIRECTION))
    assert along == pytest.approx(second[1], abs=1e-12)


@pytest.mark.repeats
@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=["USA", "SA"])
@pytest.mark.parametrize("space", [mf.Zonal(5, 16), mf.Sphere(15)], ids=repr)
def test_tangents_and_gradients_on_spheres(space, drift):
    start = space.density(lambda *x: np.exp(0.5 * x[-1] + 0.2 * x[-1] ** 2))
    options = {"t_span": (0, 0.2), "t_eval": [0.07, 0.2], "dt": 0.05, "rtol": 1e-4}
    options |= {"min_degree": space.degree, "max_degree": space.degree}
    towards = space.density(lambda *x: 1 + 0.3 * x[-1])

    def run(by_beta=0.0, by_kappa=0.0, moved=0.0):
        model = mf.Transformer(drift(beta=2.0 + by_beta), kappa=3.0 + by_kappa)
        mixed = start.coefficients + moved * (towards.coefficients - start.coefficients)
        return mf.solve(model, mf.Density(space, mixed), **options)

    options["tangents"] = ["beta", "kappa", towards]
    here = run()
    found = here.tangents
    gradient = mf.gradient(lambda x: x[:, -1] ** 2, here)
    direction = mf.Variation(space, towards.coefficients - start.coefficients)
    backwards = [*gradient.parameters.values(), gradient.initial.paired(direction)]
    forwards = [h[-1].expect(lambda x: x[:, -1] ** 2) for h in found.values()]
    assert np.abs(np.array(backwards) - forwards).max() < 1e-13
    options["tangents"] = []
    for key, name in zip(found, ["by_beta", "by_kappa", "moved"], strict=True):
        many = {node: run(**{name: node * STEP}) for node in FOURTH}
        for i in range(2):
            expected = sum(w * many[n][i].coefficients for n, w in FOURTH.items()) / STEP
            assert np.abs(found[key][i].coefficients - expected).max() < 1e-10


# Noise that changes, and other noises --------------------------------------------------------

TENSOR = np.array([[1.0, 0.2, 0.0], [0.2, 1.5, 0.1], [0.0, 0.1, 2.0]])


def slow_scale(x):
    return np.exp(0.1 * x[..., 0])


NOISES = {
    "kappa(t)": lambda _: {"kappa": lambda t: 4.0 + np.sin(3 * t)},
    "layers": lambda by: {
        "kappa": mf.PerLayer([4.0 + by.get("kappa[0]", 0), np.inf, 3 + by.get("kappa[2]", 0)], 0.1)
    },
    "Anisotropic": lambda by: {
        "kappa": 4.0 + by.get("kappa", 0),
        "noise": mf.Anisotropic(TENSOR if by["dimension"] == 3 else TENSOR[:2, :2]),
    },
    "Ito": lambda by: {
        "kappa": 4.0 + by.get("kappa", 0), "noise": mf.MultiplicativeIto(slow_scale)
    },
    "Stratonovich, kappa(t)": lambda _: {
        "kappa": lambda t: 4.0 + np.sin(3 * t), "noise": mf.MultiplicativeStratonovich(slow_scale)
    },
}  # fmt: skip
PARAMETERS = {"layers": ["kappa[0]", "kappa[2]"], "Anisotropic": ["kappa"], "Ito": ["kappa"]}


SPHERE = mf.Sphere(10)
CASES = [
    *((CIRCLE, name, scheme) for name in NOISES for scheme in (Krogstad, DormandPrince)),
    *((SPHERE, "layers", DormandPrince), (SPHERE, "Anisotropic", Krogstad)),
    *((SPHERE, "Anisotropic", DormandPrince), (SPHERE, "Stratonovich, kappa(t)", Krogstad)),
]


@pytest.mark.repeats
@pytest.mark.parametrize(("space", "name", "scheme"), CASES, ids=repr)
def test_other_noises_and_noise_that_changes(space, name, scheme):
    """Tangents are those of differences of the same steps, and the adjoint has the same."""
    waves = (lambda theta: np.cos(theta)) if space is CIRCLE else (lambda x, y, z: x * z + y)
    start = space.density(lambda *x: 1 + 0.3 * waves(*x))
    towards, dt = space.uniform(), 0.05 if scheme is Krogstad else 0.01
    direction = towards.coefficients - start.coefficients
    names = ["beta", *PARAMETERS.get(name, [])]
    degrees = {"min_degree": space.degree, "max_degree": space.degree}
    options = {"t_eval": [0.57, 0.8], "dt": dt, "scheme": scheme, "rtol": 1e-3, **degrees}

    def run(by, moved=0.0, tangents=()):
        noise = NOISES[name]({"dimension": space.dimension, **by})
        model = mf.Transformer(mf.SA(beta=2.0 + by.get("beta", 0)), **noise)
        mu0 = mf.Density(space, start.coefficients + moved * direction)
        return mf.solve(model, mu0, (0.5, 0.8), **options, tangents=tangents)

    here = run({}, tangents=[*names, towards])
    for key in here.tangents:
        moves = (lambda e, key=key: ({key: e}, 0.0)) if key in names else (lambda e: ({}, e))
        many = {node: run(*moves(node * STEP)) for node in FOURTH}
        for i, found in enumerate(here.tangents[key]):
            expected = sum(w * many[n][i].coefficients for n, w in FOURTH.items()) / STEP
            assert np.abs(found.coefficients - expected).max() < 1e-10, (key, i)
    gradient = mf.gradient(lambda x: x[:, 0] ** 2, here)
    assert list(gradient.parameters) == names
    along = gradient.initial.paired(mf.Variation(space, direction))
    backwards = [*gradient.parameters.values(), along]
    forwards = [here.tangents[key][-1].expect(lambda x: x[:, 0] ** 2) for key in here.tangents]
    assert np.abs(np.array(backwards) - forwards).max() < 1e-13


# Drifts that are not zonal ------------------------------------------------------------------


def pushing(x):
    return np.stack([x[..., 1] ** 2, *[x[..., 0]] * (x.shape[-1] - 1)], axis=-1)


def fields(name, by, dimension):
    """A model with changes of some of its parameters."""
    Q, V = (np.eye(dimension) + np.eye(dimension, k=k) / 3 for k in (1, -1))
    kappa = 4.0 + by.get("kappa", 0)
    if name == "heads":
        heads = {"Q": np.stack([Q, V]), "V": np.stack([V, Q])}
        drift = mf.Attention(**heads, beta=1.5 + by.get("beta", 0))
        return mf.Transformer(drift, kappa=kappa, noise=mf.Anisotropic(TENSOR[:2, :2]))
    if name == "linear":
        drift = mf.Attention(Q=Q, V=V, beta=1.5 + by.get("beta", 0), weights=mf.Linear())
        return mf.Transformer(drift, kappa=kappa)
    weak = 0.5 + by.get("factors[1]", 0)
    drift = mf.SA(beta=1.5) + weak * mf.Field(pushing)
    return mf.Transformer(drift, kappa=kappa, feedforward=pushing)


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("space", "name", "parameters"),
    [
        (CIRCLE, "heads", ["beta", "kappa"]),
        (SPHERE, "linear", ["beta", "kappa"]),
        (SPHERE, "sum", ["factors[1]"]),
    ],
    ids=repr,
)
def test_tangents_under_attention_and_fields(space, name, parameters):
    waves = (lambda theta: np.cos(theta)) if space is CIRCLE else (lambda x, y, z: x * z + y)
    start = space.density(lambda *x: 1 + 0.3 * waves(*x))
    direction = space.uniform().coefficients - start.coefficients
    degrees = {"min_degree": space.degree, "max_degree": space.degree}

    def run(by, moved=0.0, tangents=()):
        mu0, model = start.coefficients + moved * direction, fields(name, by, space.dimension)
        options = {"t_eval": [0.07, 0.1], "dt": 0.05, "rtol": 1e-3, "tangents": tangents}
        return mf.solve(model, mf.Density(space, mu0), (0, 0.1), **options, **degrees)

    here = run({}, tangents=[*parameters, space.uniform()])
    for key, found in here.tangents.items():
        moves = (lambda e, key=key: ({key: e}, 0.0)) if key in parameters else (lambda e: ({}, e))
        many = {node: run(*moves(node * STEP)) for node in FOURTH}
        for i, h in enumerate(found):
            expected = sum(w * many[n][i].coefficients for n, w in FOURTH.items()) / STEP
            assert np.abs(h.coefficients - expected).max() < 1e-10, (key, i)
    gradient = mf.gradient(lambda x: x[:, 0] ** 3, here, parameters=parameters)
    along = mf.Variation(space, direction)
    found = [*gradient.parameters.values(), gradient.initial.paired(along)]
    forwards = [h[-1].expect(lambda x: x[:, 0] ** 3) for h in here.tangents.values()]
    np.testing.assert_allclose(found, forwards, rtol=1e-9, atol=1e-15)


def test_members_with_matrices_of_their_own_are_differentiated_each():
    Q = np.array([[[[1.0, 0.3], [0.0, 1.0]]], [[[0.5, 0.0], [-0.4, 1.0]]]])  # of two members

    def run(Q):
        model = mf.Transformer(mf.Attention(Q=Q, V=0.8, beta=1.5), kappa=4.0)
        options = {"t_eval": [0.1], "dt": 0.05, "min_degree": 24, "max_degree": 24}
        return mf.solve(model, MU0, (0, 0.1), tangents=["beta", TOWARDS], **options)

    together, alone = run(Q), [run(one) for one in Q]
    gradients = [mf.gradient(lambda x: x[:, 0] ** 3, one) for one in (together, *alone)]
    for i, one in enumerate(alone):
        for name, found in one.tangents.items():
            every = together.tangents[name][-1]
            np.testing.assert_allclose(every.coefficients[i], found[-1].coefficients, atol=1e-15)
        own = gradients[1 + i]
        assert gradients[0].parameters["beta"][i] == pytest.approx(own.parameters["beta"])


def test_weights_that_depend_on_the_density_have_no_tangents():
    drift = mf.Attention(Q=np.array([[1.0, 0.5], [0.0, 1.0]]), beta=1.0, weights=mf.Sinkhorn())
    with pytest.raises(mf.MeanfieldError, match="Sinkhorn"):
        mf.solve(mf.Transformer(drift), MU0, (0, 0.1), tangents=[TOWARDS])


@pytest.mark.parametrize("name", ["kappa(t)", "layers", "Anisotropic"])
def test_adaptive_runs_are_taken_again(name):
    """The states of the differentiated run are those of the run."""
    noise = NOISES[name]({"dimension": 2})
    model, times = mf.Transformer(mf.USA(beta=4.0), **noise), [0.5, 0.57, 0.61, 0.8]
    run = mf.solve(model, MU0, (0.5, 0.8), t_eval=times, tangents=[TOWARDS])
    journal, initial = run.stored["journal"], run.stored["initial"]
    again = DifferentiatedRun(DensityMotion(model, initial), initial, (), journal, (), 0.5)
    for state, (found,) in zip(run, again.tangents(run.t - 0.5, []), strict=True):
        kept = min(found.size, state.coefficients.size)
        assert np.abs(found[:kept] - state.coefficients[:kept]).max() < 1e-13
    gradient = mf.gradient(lambda x: x[:, 0] ** 3, run, parameters=[])
    along = gradient.initial.paired(mf.Variation(CIRCLE, DIRECTION))
    forwards = run.tangents["direction_0"][-1].expect(lambda x: x[:, 0] ** 3)
    assert along == pytest.approx(forwards, abs=1e-13)


def test_members_of_an_ensemble_are_differentiated_each():
    betas, kappas = np.array([1.0, 3.0]), np.array([2.0, 5.0])
    options = {"t_span": (0, 0.2), "t_eval": [0.2], "dt": 0.01, "min_degree": 24, "max_degree": 24}
    model = mf.Transformer(mf.SA(beta=betas), kappa=kappas)
    together = mf.solve(model, MU0, **options, tangents=["beta", "kappa"])
    for i in range(2):
        one = mf.Transformer(mf.SA(beta=betas[i]), kappa=kappas[i])
        alone = mf.solve(one, MU0, **options, tangents=["beta", "kappa"])
        for name in ("beta", "kappa"):
            difference = together.tangents[name][-1].coefficients[i]
            difference = difference - alone.tangents[name][-1].coefficients
            assert np.abs(difference).max() < 1e-13


def test_ott_antonsen_in_closed_form():
    """|m_1| = r: r' = r (1 - r^2)/2, r^2/(1 - r^2) = e^t r_0^2/(1 - r_0^2)."""
    space, r0, t = mf.Circle(48), 0.3, 0.3
    density = mf.Density(space, r0 ** np.arange(49))
    direction = np.arange(49) * r0 ** np.arange(-1.0, 48.0)  # by r_0
    run = mf.solve(
        mf.Transformer(mf.Kuramoto()), density, (0, t), t_eval=[t], rtol=1e-12, tangents=[direction]
    )
    odds = np.exp(t) * r0**2 / (1 - r0**2)
    r = np.sqrt(odds / (1 + odds))
    expected = r * (1 - r**2) / (r0 * (1 - r0**2))
    assert run.tangents.observables.order_parameter[0, -1] == pytest.approx(expected, abs=1e-10)


@pytest.mark.repeats
@pytest.mark.parametrize("space", [mf.Sphere(12), CIRCLE], ids=repr)
@pytest.mark.parametrize("layers", [False, True], ids=["kappa", "kappa[1]"])
def test_observables_have_the_derivatives_of_their_values(space, layers):
    """On S^2 moments are amplitudes; free energies take the kappa of their time."""
    waves = (lambda theta: np.cos(theta)) if space is CIRCLE else (lambda x, y, z: x * z + y)
    start, name = space.density(lambda *x: 1 + 0.3 * waves(*x)), "kappa[1]" if layers else "kappa"
    degrees = {"min_degree": space.degree, "max_degree": space.degree}

    def run(beta=2.0, kappa=3.0, tangents=()):
        given = mf.PerLayer([4.0, kappa], 0.05) if layers else kappa
        model = mf.Transformer(mf.USA(beta=beta), kappa=given)
        options = {"t_eval": [0.03, 0.1], "dt": 0.01, "rtol": 1e-4, "tangents": tangents}
        return mf.solve(model, start, (0, 0.1), **options, **degrees)

    found = run(tangents=["beta", name]).tangents.observables
    for tangent, at in (("beta", lambda e: run(2.0 + e)), (name, lambda e: run(kappa=3.0 + e))):
        many = {node: at(node * STEP).observables for node in FOURTH}
        for key in found.data_vars:
            expected = sum(w * many[n][key].values for n, w in FOURTH.items()) / STEP
            defined = np.isfinite(found[key].sel(tangent=tangent).values)
            assert defined.all()
            assert np.abs(found[key].sel(tangent=tangent) - expected).max() < 1e-9, key


@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=["USA", "SA"])
def test_energies_have_no_derivative_by_beta_where_beta_is_0(drift):
    """E = int int exp(beta <x, y>)/(2 beta) is infinite there: nan, and the others have theirs."""
    model = mf.Transformer(drift(beta=np.array([0.0, 1.0])), kappa=3.0)
    run = mf.solve(model, MU0, (0, 0.1), t_eval=[0.1], tangents=["beta", "kappa"])
    found = run.tangents.observables.sel(t=0.1)
    energy = found.interaction_energy.values
    assert np.isnan(energy[0, 0])
    assert np.isfinite([energy[0, 1], *energy[1]]).all()
    assert np.isfinite(found.order_parameter.values).all()


def test_a_functional_of_ones_own():
    entropy = mf.Functional(
        lambda mu: (mu.values * np.log(mu.values)) @ mu.space.weights,
        lambda mu: 1 + np.log(mu.values),
    )
    model = mf.Transformer(mf.Kuramoto(), kappa=3.0)
    run = mf.solve(model, MU0, (0, 0.3), t_eval=[0.3], tangents=[TOWARDS])
    gradient = mf.gradient(entropy, run, parameters=[])
    expected = run.tangents.observables.entropy[0, 0]
    along = gradient.initial.paired(mf.Variation(CIRCLE, DIRECTION))
    assert along == pytest.approx(float(expected), abs=1e-11)
    assert gradient.parameters == {}


@pytest.mark.parametrize(
    "f", [lambda x: x, lambda x: x[:, 0] * np.nan, lambda x: np.ones(3)], ids=["rows", "nan", "3"]
)
def test_functionals_have_one_finite_value_at_each_point(f):
    run = mf.solve(mf.Transformer(mf.USA(beta=1.0)), MU0, (0, 0.1))
    for functional in (f, mf.Functional(lambda mu: 1.0, lambda mu: f(mu.space.points))):
        with pytest.raises(ValueError, match=r"one finite value|f must map"):
            mf.gradient(functional, run)


def test_what_has_no_derivatives_is_refused(tmp_path):
    model = mf.Transformer(mf.USA(beta=1.0), kappa=2.0)
    with pytest.raises(ValueError, match="gamma"):
        mf.solve(model, MU0, (0, 1), tangents=["gamma"])
    with pytest.raises(ValueError, match="each parameter once"):
        mf.solve(model, MU0, (0, 1), tangents=["beta", "kappa", "beta"])
    with pytest.raises(ValueError, match="kappa"):
        mf.solve(mf.Transformer(mf.USA(beta=1.0)), MU0, (0, 1), tangents=["kappa"])
    with pytest.raises(TypeError, match="25"):
        mf.solve(model, MU0, (0, 1), tangents=[np.zeros(3)])
    for direction in (MU0.sample(3, rng=0), [1.0, [2.0, 3.0]]):
        with pytest.raises(TypeError, match="25"):
            mf.solve(model, MU0, (0, 1), tangents=[direction])
    for function in (lambda x: x, lambda x: x[:, 0] * np.nan, lambda x: 1j * x[:, 0]):
        with pytest.raises(ValueError, match="finite real value"):
            mf.solve(model, MU0, (0, 1), tangents=[function])
    with pytest.raises(ValueError, match="imaginary"):
        mf.solve(model, MU0, (0, 1), tangents=[1j * np.ones(25)])
    changing = mf.Transformer(mf.USA(beta=1.0), kappa=lambda t: 2.0 + t)
    with pytest.raises(ValueError, match="function of time"):
        mf.solve(changing, MU0, (0, 1), tangents=["kappa"])
    layers = mf.Transformer(mf.USA(beta=1.0), kappa=mf.PerLayer([2.0, np.inf]))
    for name in ("kappa", "kappa[1]", "kappa[2]"):
        with pytest.raises(ValueError, match=r"\['beta', 'kappa\[0\]'\]"):
            mf.solve(layers, MU0, (0, 1), tangents=[name])
    with pytest.raises(mf.MeanfieldError, match="reaction"):
        mf.solve(mf.Transformer(mf.USA(beta=1.0), reaction=1.0), MU0, (0, 1), tangents=["beta"])
    tokens = mf.solve(mf.Transformer(mf.USA(beta=1.0)), MU0.sample(3, rng=0), (0, 0.1))
    with pytest.raises(mf.MeanfieldError, match="Tokens"):
        mf.gradient(lambda x: x[:, 0], tokens)
    run = mf.solve(model, MU0, (0, 0.1), t_eval=[0.1])
    with pytest.raises(mf.MeanfieldError, match="tangents"):
        run.tangents  # noqa: B018
    run.save(tmp_path / "run.nc")
    with pytest.raises(mf.MeanfieldError, match="solve again"):
        mf.gradient(lambda x: x[:, 0], mf.load(tmp_path / "run.nc"))


def test_runs_that_an_event_ends_within_a_step_have_tangents_and_no_gradient():
    def early(t, _state):
        return t - 0.1234

    early.terminal = True
    model = mf.Transformer(mf.USA(beta=1.0), kappa=2.0)
    run = mf.solve(model, MU0, (0, 1), t_eval=[1.0], events=early, tangents=["beta"])
    assert run.tangents["beta"][-1].norm > 0
    with pytest.raises(mf.MeanfieldError, match="within"):
        mf.gradient(lambda x: x[:, 0], run)


START = {
    mf.Circle: lambda space: space.von_mises(0.3, 0.5),
    mf.Sphere: lambda space: space.von_mises_fisher(concentration=0.5),
    mf.Zonal: lambda space: space.von_mises_fisher(0.5),
}


@pytest.mark.repeats
@pytest.mark.parametrize("space", [mf.Circle(20), mf.Sphere(14), mf.Zonal(5, 16)], ids=repr)
@pytest.mark.parametrize(
    ("drift", "name"),
    [
        (lambda e: mf.USA(e), "beta"),
        (lambda e: mf.SA(e), "beta"),
        (lambda e: e * mf.USA(2.0), "factors[0]"),
        (lambda e: mf.Kuramoto() + e * mf.USA(2.0), "factors[1]"),
        (lambda e: mf.Kuramoto() + 0.5 * mf.USA(e), "drifts[1].beta"),
    ],
    ids=["USA", "SA", "0 USA", "Kuramoto + 0 USA", "Kuramoto + USA"],
)
def test_parameters_bring_degrees_that_the_drift_has_not_got(space, drift, name):
    """Where beta or a factor is 0."""
    mu = START[type(space)](space)
    degrees = {"min_degree": space.degree, "max_degree": space.degree}
    options = {"dt": 0.05, "rtol": 1e-3, **degrees}

    def first(x):
        return x[..., -1] ** 2

    run = mf.solve(mf.Transformer(drift(0.0), 4.0), mu, (0, 0.2), tangents=[name], **options)

    def end(e):
        return mf.solve(mf.Transformer(drift(e), 4.0), mu, (0, 0.2), **options).final

    expected = difference(lambda e: end(e).coefficients)
    found = run.tangents[name][-1].coefficients
    assert np.abs(expected).max() > 1e-4
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    by = mf.gradient(first, run).parameters[name]
    assert by == pytest.approx(difference(lambda e: end(e).expect(first)), abs=1e-9)


@pytest.mark.parametrize("state", [MU0, MU0.sample(4, rng=0)], ids=["Density", "Tokens"])
def test_a_resumed_run_is_refused_before_it_goes_on(tmp_path, state):
    def interrupt(t, _state):
        seen.append(t)
        if len(seen) == 3:
            raise KeyboardInterrupt

    seen: list[float] = []
    options = {"checkpoint": tmp_path / "run.ckpt", "checkpoint_every": 0, "tangents": ["beta"]}
    model = mf.Transformer(mf.USA(beta=2.0))
    with pytest.raises(KeyboardInterrupt):
        mf.solve(model, state, (0, 1), callback=interrupt, **options)
    with pytest.raises(mf.MeanfieldError, match="without resume"):
        mf.solve(model, state, (0, 1), callback=interrupt, resume=True, **options)
    assert len(seen) == 3
