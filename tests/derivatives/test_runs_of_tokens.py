"""Tangents of runs of tokens: differences of the same steps, laws, closed forms, refusals."""

import numpy as np
import pytest

import meanfield as mf
from meanfield import steppers
from meanfield.core.dual import Dual, constant
from meanfield.derivatives.flows import DifferentiatedFlow
from meanfield.dynamics.tokens import TokenMotion
from meanfield.models.activations import gelu, softplus
from meanfield.models.pointwise import FeedForward
from meanfield.solving import integration
from meanfield.spaces.sphere_points import ScatteredTransforms

FOURTH = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
STEP = 1e-3
RNG = np.random.default_rng(0)
MASSES = np.array([0.0, 0.1, 0.2, 0.05, 0.25, 0.1, 0.3])
Q, K, V = 0.5 * RNG.standard_normal((3, 2, 2, 3))
OUT = 0.5 * RNG.standard_normal((2, 3, 2))


class Slope(mf.ZonalDrift):
    """W' = 1 + b t + sin(t)/3, Z = 2 + cos(b t)."""

    b: float

    def slope(self, t):
        return 1 + self.b * t + np.sin(t) / 3

    def weight(self, t):
        return 2 + np.cos(self.b * t)


class Rough(mf.Weights):
    """Weights of one's own, which read the squares."""

    def of_logits(self, logits, squares):
        return 1.3 + np.tanh(logits) + 0.1 * np.cos(squares[0] - 0.3 * squares[1])


class Bent(mf.Normalisation):
    """An update of one's own."""

    def update(self, t, A, size=0.0):
        return (1 + t) * np.tanh(A)


def points(n, d, seed=1):
    x = np.random.default_rng(seed).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def tangential(x, seed=22, size=0.5):
    e = np.random.default_rng(seed).standard_normal(x.shape)
    e -= (e * x).sum(axis=-1, keepdims=True) * x
    return size * e / np.linalg.norm(e)


def difference(of):
    """The derivative at 0 by a central difference of order 4."""
    return sum(weight * of(node * STEP) for node, weight in FOURTH.items()) / STEP


def worst(make, x, names, masses=None, on_sphere=True, **options):
    """The largest error of tangents, of states and observables, against runs of the same steps."""
    e = tangential(x) if on_sphere else 0.2 * np.random.default_rng(2).standard_normal(x.shape)

    def solved(changed, amount, tangents=()):
        y = x + (amount if changed == "direction_0" else 0) * e
        y = y / np.linalg.norm(y, axis=-1, keepdims=True) if on_sphere else y
        tokens = mf.Tokens(y, masses, on_sphere=on_sphere)
        model = make(**({changed: amount} if changed in names else {}))
        steps = {"dt": 0.1, "t_eval": [0.13, 0.3]} | options
        return mf.solve(model, tokens, (0, 0.3), tangents=tangents, **steps)

    run, error = solved("", 0, [*names, e]), 0.0
    observables = run.tangents.observables
    for key, found in run.tangents.items():
        runs = {node * STEP: solved(key, node * STEP) for node in FOURTH}
        for i, change in enumerate(found):
            for name, values in change.items():
                states = {s: getattr(one.states[i], name) for s, one in runs.items()}
                error = max(error, np.abs(difference(states.get) - values).max())
        for name, values in observables.sel(tangent=key).items():
            if np.isfinite(values).all():
                measured = {s: one.observables[name].values for s, one in runs.items()}
                error = max(error, np.abs(difference(measured.get) - values.values).max())
    return error


def zonal(kind, **fixed):
    def make(**change):
        ((name, value),) = fixed.items()
        return mf.Transformer(kind(**{name: value + change.get(name, 0)}))

    return make


@pytest.mark.repeats
@pytest.mark.parametrize("kind", [mf.USA, mf.SA], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("n", "d"), [(7, 2), (7, 3), (7, 5), (66, 9)])
def test_exponential_drifts(kind, n, d):
    masses = MASSES if n == len(MASSES) else None
    assert worst(zonal(kind, beta=2.0), points(n, d), ["beta"], masses) < 1e-9


@pytest.mark.repeats
@pytest.mark.parametrize("beta", [-3.0, 0.0])
@pytest.mark.parametrize("kind", [mf.USA, mf.SA], ids=lambda kind: kind.__name__)
def test_any_sign_of_beta(kind, beta):
    assert worst(zonal(kind, beta=beta), points(7, 3), ["beta"]) < 1e-9


def test_a_drift_of_ones_own():
    assert worst(zonal(Slope, b=0.7), points(7, 3), ["b"], MASSES) < 1e-9


def test_a_sum_by_factors_and_parameters_of_its_parts():
    def make(**change):
        beta, factor = (change.get(n, 0) for n in ("drifts[0].beta", "factors[1]"))
        parts = [mf.SA(beta=2.0 + beta), mf.Kuramoto(), mf.Field(np.sin)]
        return mf.Transformer(mf.Sum(parts, [1.0, factor - 0.4, 0.3]))

    assert worst(make, points(7, 3), ["drifts[0].beta", "factors[1]"], MASSES) < 1e-9


@pytest.mark.repeats
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "weights",
    [
        mf.Softmax(),
        mf.Unnormalised(),
        mf.L2(),
        mf.Sigmoid(0.3),
        mf.Sinkhorn(),
        mf.Linear(),
        Rough(),
    ],
    ids=lambda weights: type(weights).__name__,
)
def test_attention(weights, causal):
    if causal and weights.not_causal:
        return

    def make(beta=0.0):
        drift = mf.Attention(Q, K, V, 1.5 + beta, weights=weights, output=OUT, causal=causal)
        return mf.Transformer(drift)

    x = points(7, 3)
    assert worst(make, x, ["beta"], None if causal else MASSES) < 1e-9
    if not causal:
        assert worst(make, 0.5 * x, ["beta"], MASSES, on_sphere=False) < 1e-9


@pytest.mark.repeats
@pytest.mark.parametrize(
    "normalisation",
    [mf.PreLN(), mf.MixLN(0.2), mf.PeriLN(), mf.NGPT(0.7), mf.SqrtScaling(), Bent()],
    ids=lambda normalisation: type(normalisation).__name__,
)
def test_normalisations_and_feed_forward_maps(normalisation):
    inner, outer = 0.3 * RNG.standard_normal((2, 3, 3))

    def make(activation, beta=0.0):
        own = FeedForward(inner, outer, activation=activation)
        return mf.Transformer(mf.SA(beta=2.0 + beta), normalisation=normalisation, feedforward=own)

    x = points(7, 3)
    assert worst(lambda **c: make(gelu, **c), x, ["beta"], MASSES) < 1e-9
    for scheme in (steppers.Layers, steppers.LieTrotter):
        options = {"scheme": scheme, "t_eval": [0.1, 0.3]}
        assert worst(lambda **c: make(softplus, **c), x, ["beta"], MASSES, **options) < 1e-9


@pytest.mark.parametrize("drift", [mf.SA(beta=2.0), mf.Kuramoto()], ids=lambda d: type(d).__name__)
def test_reactions(drift):
    def make(reaction=0.0):
        return mf.Transformer(drift, reaction=0.7 + reaction)

    assert worst(make, points(6, 3), ["reaction"], MASSES[1:] / MASSES.sum()) < 1e-9


def test_adaptive_steps_are_frozen():
    """Differences along the steps of one adaptive run, outputs within them, from t = 1."""
    x, model = points(7, 3), mf.Transformer(mf.SA(beta=2.0))
    e = tangential(x, size=0.2)
    run = mf.solve(model, mf.Tokens(x), (1, 3), t_eval=np.linspace(1, 3, 7), tangents=[e])
    journal = run.stored["journal"]

    def states(s):
        y = x + s * e
        tokens = mf.Tokens(y / np.linalg.norm(y, axis=1, keepdims=True))
        flow = DifferentiatedFlow(TokenMotion(model, tokens), journal, tokens, [], [], 1.0)
        return np.array([Y[0, 0] for _, Y in flow.stacks(run.t - 1)])

    assert np.abs(states(0.0) - [state.x for state in run.states]).max() < 1e-13
    found = np.array([change.x for change in run.tangents["direction_0"]])
    assert np.abs(difference(states) - found).max() < 1e-9


def test_jumps_of_parameters():
    beta = mf.PerLayer([1.0, 3.0], 0.15)
    x = points(6, 3)
    drift = mf.Attention(V=np.eye(3), beta=beta)
    assert worst(lambda: mf.Transformer(drift), x, []) < 1e-9


def test_replicas_have_their_own():
    x = np.stack([points(5, 3, seed) for seed in range(4)])
    model = mf.Transformer(mf.SA(beta=np.array([1.0, 2.0, 3.0, 4.0])))
    e = np.stack([tangential(y) for y in x])
    options = {"dt": 0.1, "t_span": (0, 0.5), "t_eval": [0.25, 0.5]}
    run = mf.solve(model, mf.Tokens(x), tangents=["beta", e], **options)
    for r in range(4):
        alone = mf.Transformer(mf.SA(beta=1.0 + r))
        one = mf.solve(alone, mf.Tokens(x[r]), tangents=["beta", e[r]], **options)
        for key in run.tangents:
            assert np.abs(run.tangents[key][-1].x[r] - one.tangents[key][-1].x).max() < 1e-13
    assert run.tangents.observables.order_parameter.shape == (2, 2, 4)


@pytest.mark.long
def test_a_turned_start_has_turned_tangents():
    x, model = points(6, 4), mf.Transformer(mf.USA(beta=1.5))
    turn = np.linalg.qr(RNG.standard_normal((4, 4)))[0]
    e = tangential(x)
    one, other = (
        mf.solve(model, mf.Tokens(y), (0, 1), tangents=["beta", h], dt=0.1)
        for y, h in ((x, e), (x @ turn.T, e @ turn.T))
    )
    for key in one.tangents:
        expected = one.tangents[key][-1].x @ turn.T
        assert np.abs(other.tangents[key][-1].x - expected).max() < 1e-12


def test_rotations_of_all_tokens_are_carried_along():
    """A generator A of rotations: the tangent that starts as A x stays A x(t)."""
    x = points(6, 3)
    A = RNG.standard_normal((3, 3))
    A -= A.T
    run = mf.solve(mf.Transformer(mf.SA(beta=3.0)), mf.Tokens(x), (0, 2), tangents=[x @ A.T])
    assert np.abs(run.tangents["direction_0"][-1].x - run.final.x @ A.T).max() < 1e-12


def test_the_velocity_is_carried_along():
    """d/dt of the flow: the tangent that starts as v(x) is v(x(t)), but for the error of steps."""
    x, model = points(6, 3), mf.Transformer(mf.SA(beta=3.0))
    velocity = lambda x: TokenMotion(model, mf.Tokens(x)).velocity(x[None], 0.0)[0]  # noqa: E731
    run = mf.solve(model, mf.Tokens(x), (0, 2), tangents=[velocity(x)], rtol=1e-11)
    assert np.abs(run.tangents["direction_0"][-1].x - velocity(run.final.x)).max() < 1e-9


def test_kuramoto_of_two_tokens():
    """The angle between them follows tan(a/2) = tan(a_0/2) e^-t, so that da/da_0 is known."""
    a = 1.3
    x = np.array([[1.0, 0.0], [np.cos(a), np.sin(a)]])
    e = np.array([[0.0, 0.0], [-np.sin(a), np.cos(a)]])
    model, t = mf.Transformer(mf.Kuramoto()), 2.0
    run = mf.solve(model, mf.Tokens(x), (0, t), tangents=[e], rtol=1e-12)
    y, h = run.final.x, run.tangents["direction_0"][-1].x
    quarter = np.array([[0.0, -1.0], [1.0, 0.0]])
    angles = (h * (y @ quarter.T)).sum(axis=1)
    tangent = np.tan(a / 2) * np.exp(-t)
    expected = np.exp(-t) / np.cos(a / 2) ** 2 / (1 + tangent**2)
    assert angles[1] - angles[0] == pytest.approx(expected, rel=1e-9)


def test_directions_in_masses_and_functions():
    x, model = points(5, 3), mf.Transformer(mf.SA(beta=2.0))
    change = np.array([0.1, -0.1, 0.05, 0.0, -0.05])

    def solved(s, tangents=()):
        return mf.solve(model, mf.Tokens(x, 0.2 + s * change), (0, 0.5), dt=0.1, tangents=tangents)

    field = np.array([1.0, 2.0, -1.0])
    e = field - (x @ field)[:, None] * x
    run = solved(0, [{"masses": change}, lambda y: np.broadcast_to(field, y.shape), e])
    expected = difference(lambda s: solved(s).final.x)
    assert np.abs(run.tangents["direction_0"][-1].x - expected).max() < 1e-11
    assert np.array_equal(run.tangents["direction_1"][-1].x, run.tangents["direction_2"][-1].x)


def test_radii_that_are_not_given_begin_with_1_and_may_change():
    x, rates = points(5, 3), np.linspace(0.5, 1.5, 5)
    model = mf.Transformer(mf.SA(2.0), normalisation=mf.PreLN())
    fixed = {"dt": 0.1, "t_eval": [1.0]}
    run = mf.solve(model, mf.Tokens(x), (0, 1), tangents=[{"radii": rates}], **fixed)

    def final(h):
        return mf.solve(model, mf.Tokens(x, radii=1 + h * rates), (0, 1), **fixed).final.radii

    expected = (final(1e-5) - final(-1e-5)) / 2e-5
    np.testing.assert_allclose(run.tangents["direction_0"][-1].radii, expected, atol=1e-8)


def test_refusals():
    x = points(5, 3)
    tokens, model = mf.Tokens(x), mf.Transformer(mf.SA(beta=2.0))

    def solved(tangents, model=model, **options):
        return mf.solve(model, tokens, (0, 0.2), tangents=tangents, **options)

    with pytest.raises(ValueError, match="kappa is infinite"):
        solved(["kappa"])
    with pytest.raises(ValueError, match="parameters of the model"):
        solved(["gamma"])
    with pytest.raises(ValueError, match="tangential"):
        solved([x])
    with pytest.raises(ValueError, match=r"change of x must be of shape \(5, 3\); got \(4, 2\)"):
        solved([np.ones((4, 2))])
    with pytest.raises(ValueError, match="sum 0"):
        solved([{"masses": np.ones(5)}])
    with pytest.raises(mf.MeanfieldError, match="without noise"):
        solved(["beta"], mf.Transformer(mf.SA(beta=2.0), kappa=5.0), rng=1)
    with pytest.raises(mf.MeanfieldError, match="maximiser"):
        solved([0 * x], mf.Transformer(mf.Hardmax()))
    kinked = mf.Transformer(mf.Kuramoto(), feedforward=lambda y: np.abs(y - x))
    with pytest.raises(mf.MeanfieldError, match="smooth near"):
        solved([tangential(x)], kinked)


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("kind", [mf.USA, mf.SA], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("d", "beta"), [(2, 3.0), (2, 20000.0), (3, 3.0)])
def test_modes_agree_with_pairs(kind, d, beta):
    """Velocities and their derivatives; at beta = 20000 with more than 150 degrees."""
    if kind is mf.USA and beta > 700:
        return
    rng = np.random.default_rng(5)
    x, masses = points(300, d), rng.random((1, 300))
    masses /= masses.sum()
    dm = rng.standard_normal((2, 1, 300)) * masses
    dx = np.stack([tangential(x, seed, 1.0) for seed in (6, 7)])
    given = Dual((1.001 * x)[None], dx[:, None]), Dual(masses, dm)
    drift = kind(beta=beta)
    names = ["beta", None]
    v = mf.engines.Modes(1e-12).build(drift, 300, d).with_tangents(names).velocity(*given)
    w = mf.engines.Direct().build(drift, 300, d).with_tangents(names).velocity(*given)
    assert np.abs((v - w).value).max() < 1e-10 * np.abs(w.value).max()
    largest = np.abs(w.changes).max()
    assert np.abs((v - w).changes).max() < 1e-9 * max(1.0, beta) * largest


@pytest.mark.long
@pytest.mark.repeats
@pytest.mark.parametrize("name", [None, "beta"])
@pytest.mark.parametrize("drift", [mf.SA(beta=2.0), mf.USA(beta=-1.5)], ids=repr)
@pytest.mark.parametrize(
    "engine, n, d",
    [(mf.engines.Direct(), 300, 16), (mf.engines.Modes(), 60, 2), (mf.engines.Modes(), 60, 3)],
)
def test_known_velocities_leave_their_changes_as_they_are(engine, n, d, drift, name):
    """Blocks of Gram matrices, which there are several of, and harmonics with their modes."""
    x, masses = points(n, d), RNG.uniform(0.5, 1.5, (1, n)) / n
    dm = RNG.standard_normal((1, 1, n)) * masses
    given = Dual(1.001 * x[None], tangential(x, 3, 1.0)[None, None]), Dual(masses, dm)
    sums = engine.build(drift, n, d)
    tangents, known = sums.with_tangents([name]), sums.velocity(1.001 * x[None], masses)
    w = tangents.velocity(*given)
    assert np.abs(w.value - known).max() < 1e-12 * np.abs(known).max()
    for intermediate in {id(each): each for each in (None, sums.intermediate)}.values():
        v = tangents.velocity(*given, known, intermediate)
        # parts along u, which are larger than velocities, are added and taken off
        assert np.abs(v.value - known).max() < 1e-13 * np.abs(known).max()
        assert np.abs((v - w).changes).max() < 1e-12 * np.abs(w.changes).max()


@pytest.mark.parametrize(("n", "d"), [(300, 2), (300, 3), (300, 5), (80, 9)])
def test_velocities_without_tangents(n, d):
    x, masses = points(n, d)[None], np.full((1, n), 1 / n)
    sums = mf.engines.Direct().build(mf.SA(beta=2.0), n, d)
    v = sums.with_tangents([]).velocity(constant(x, 0), constant(masses, 0))
    known = sums.velocity(x, masses)
    assert not v.changes.size and np.abs(v.value - known).max() < 1e-13 * np.abs(known).max()


@pytest.mark.long
@pytest.mark.parametrize(
    "engine, n, d", [(mf.engines.Direct(), 80, 9), (mf.engines.Modes(), 60, 3)]
)
def test_velocities_that_are_kept_need_not_be_taken_again(engine, n, d, monkeypatch):
    """Without room for those of the run they are; afterwards none are kept."""
    model, x = mf.Transformer(mf.SA(beta=2.0)), points(n, d)
    times = np.linspace(0, 1, 4)

    def solved():
        return mf.solve(
            model, mf.Tokens(x), (0, 1), t_eval=times, tangents=[tangential(x)], engine=engine
        )

    kept = solved()
    monkeypatch.setattr(integration, "KEPT_STAGES", 0)
    again = solved()
    for one, other in zip(*(run.tangents["direction_0"] for run in (kept, again)), strict=True):
        assert np.abs(one.x - other.x).max() < 1e-11 * np.abs(other.x).max()
    stretches = kept.stored["journal"].stretches
    assert all(stages is None for stretch in stretches for stages in stretch.stages)


@pytest.mark.parametrize("kind", [mf.USA, mf.SA], ids=lambda kind: kind.__name__)
def test_modes_of_stages_are_taken_once(kind, monkeypatch):
    """Tangents add up modes of the masses where they start, and no others."""
    counted, moments = [], ScatteredTransforms.moments
    monkeypatch.setattr(
        ScatteredTransforms, "moments", lambda self, m: counted.append(1) or moments(self, m)
    )
    x = points(60, 3)
    given = {"t_eval": [1.0], "tangents": [tangential(x), "beta"], "engine": mf.engines.Modes()}
    run = mf.solve(mf.Transformer(kind(beta=2.0)), mf.Tokens(x), (0, 1), **given)
    assert len(counted) == 1 and run.stats["evaluations"] > 10


@pytest.mark.long
def test_modes_move_a_run_as_pairs_do():
    x = points(300, 2)
    e = tangential(x)
    model = mf.Transformer(mf.SA(beta=4.0))
    found = [
        mf.solve(model, mf.Tokens(x), (0, 1), dt=0.2, engine=engine, tangents=["beta", e]).tangents
        for engine in (mf.engines.Modes(), mf.engines.Direct())
    ]
    for key in found[0]:
        assert np.abs(found[0][key][-1].x - found[1][key][-1].x).max() < 1e-8


@pytest.mark.parametrize("normalisation", [mf.PostLN(), mf.PreLN()], ids=repr)
def test_tokens_that_merge(normalisation):
    """Differences along the steps of the run, with its merges."""
    x = points(6, 3)
    x[3:] = x[:3] + 0.01 * tangential(x[:3])
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    masses = MASSES[1:] / MASSES.sum()
    e = tangential(x, size=0.002)
    model = mf.Transformer(mf.SA(beta=3.0), normalisation=normalisation)
    options = {"dt": 0.1, "t_eval": [0, 0.3, 1, 1.5, 2], "merge": 2e-3, "tangents": [e]}
    run = mf.solve(model, mf.Tokens(x, masses), (0, 2), **options)
    assert run.stats["merges"] and run.tangents["direction_0"][-1].x.shape == x.shape
    assert sum(stretch.labels is not None for stretch in run.stored["journal"].stretches) > 0

    def states(s):
        y = x + s * e
        tokens = mf.Tokens(y / np.linalg.norm(y, axis=1, keepdims=True), masses)
        motion = TokenMotion(model, tokens)
        flow = DifferentiatedFlow(motion, run.stored["journal"], tokens, [], [])
        return np.array([Y[0, 0, :, :3] for _, Y in flow.stacks(run.t)])

    assert np.abs(states(0.0) - [state.x for state in run.states]).max() < 1e-13
    found = np.array([change.x for change in run.tangents["direction_0"]])
    assert np.abs(difference(states) - found).max() < 1e-10


def test_attention_is_followed_without_any_direction():
    """The states of a run along its own steps, with tangents in no direction."""
    model = mf.Transformer(mf.Attention(*np.random.default_rng(0).standard_normal((3, 3, 3)), 1.5))
    tokens = mf.Tokens(points(5, 3))
    run = mf.solve(model, tokens, (0, 1), t_eval=[0, 0.5, 1], tangents=["beta"])
    flow = DifferentiatedFlow(TokenMotion(model, tokens), run.stored["journal"], tokens, [], [])
    found = [flow_motion.motion.state_of(Y[0]).x for flow_motion, Y in flow.stacks(run.t)]
    assert np.abs(np.array(found) - [state.x for state in run.states]).max() < 1e-12
