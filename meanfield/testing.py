"""Checks for kinds of one's own: what an author of a drift, weights, a noise or a state runs.

    mf.testing.check(LinearAttention(b=2.0))

Each check asks for one law that every kind of the package obeys. A failure is an AssertionError
that names the law and the numbers.
"""

import json
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .core.annotations import AnyObject, Function, PassedOn, Values
from .core.checks import as_given
from .core.descriptions import build, describe, schema
from .core.errors import MeanfieldError
from .core.forms import Reading
from .core.identity import digest
from .core.kinds import Kind
from .dynamics.motion import motion_for
from .models import CommonNoise, Drift, Noise, Normalisation, Weights, ZonalDrift
from .models.attention import Attention
from .models.potentials import SA
from .models.transformer import Transformer
from .results.files import load
from .solving.solve import solve
from .spaces import Circle, Sphere
from .spaces.kernels import Primitive, quadrature_multipliers
from .states import State, Tokens

CHECKS: list[tuple[type, Callable[[Any], None]]] = []
DURATION = 0.1


def _law_of(family: type) -> Callable[[Function], Function]:
    """Register a check for a family."""

    def register(function: Function) -> Function:
        CHECKS.append((family, function))
        return function

    return register


def check(kind: Any) -> list[str]:
    """Check a kind, or a state, of one's own against the laws of its family.

    Parameters
    ----------
    kind : Drift, Weights, Normalisation, Noise, CommonNoise, State or another kind
        An object, with parameters that make sense.

    Returns
    -------
    list of str
        What was checked.

    Raises
    ------
    AssertionError
        Which law does not hold, with the numbers.
    TypeError
        If it is of no family of the package.

    Notes
    -----
    Takes some seconds: runs of 20 tokens and of densities of degree 16 for 0.1 units of time.
    """
    if not isinstance(kind, Kind):
        raise TypeError(f"check expects a kind, an object such as USA(4.0); got {as_given(kind)}.")
    laws = []
    for family, law in CHECKS:
        if isinstance(kind, family):
            law(kind)
            laws.append((law.__doc__ or "").split("\n")[0])
    return laws


def _close(law: str, values: Values, expected: Values, tolerance: float) -> None:
    error = float(np.abs(np.asarray(values) - np.asarray(expected)).max())
    assert error <= tolerance, f"{law}: off by {error:.3g}, expected at most {tolerance:.0e}."


# Every kind --------------------------------------------------------------------------------------


@_law_of(Kind)
def _is_described(kind: Kind) -> None:
    """A round trip through a file, or a pickle, gives it back bit for bit."""
    if isinstance(kind, State) or kind.stored_kind() is not kind:
        return
    arrays: dict[str, np.ndarray] = {}
    table = json.loads(json.dumps(describe(kind, arrays)))
    reading = Reading(arrays=arrays, result=True)
    restored = build(type(kind).family, table, reading)
    name = type(kind).__name__
    assert reading.lost or restored == kind, f"The table {table} of {name} gives {restored!r}."
    assert repr(restored) == repr(kind), f"{name} prints {kind!r}, and {restored!r} after a file."
    home = sys.modules.get(type(kind).__module__)
    if not reading.lost and getattr(home, name, None) is type(kind):
        assert pickle.loads(pickle.dumps(kind)) == kind, f"{name} is another one after pickling."
    json.dumps(schema(type(kind)))


# Drifts ------------------------------------------------------------------------------------------


@_law_of(ZonalDrift)
def _multipliers_are_those_of_the_slope(drift: ZonalDrift) -> None:
    """Multipliers of W are those of `slope` where Z = 1, in dimensions 2, 3 and 6."""
    member = drift.member((0,) * len(drift.shape))
    if member.normalised:  # slope and weight may have a factor in common, of each row its own
        return
    for d in (2, 3, 6):
        slopes = quadrature_multipliers(member.slope, 9, d, continuous=False)
        expected = (slopes[:-2] - slopes[2:]) / (2 * np.arange(1, 9) + d - 2)
        multipliers, scale = member.attraction(8, d)[1:], np.abs(slopes).max()
        _close(f"attraction(8, {d}) against slope", multipliers / scale, expected / scale, 1e-9)


@_law_of(ZonalDrift)
def _functions_of_the_inner_product_fit(drift: ZonalDrift) -> None:
    """Z is positive, and W' is the derivative of W where Z = 1."""
    member, t = drift.member((0,) * len(drift.shape)), np.linspace(-1, 1, 201)
    with np.errstate(over="ignore"):
        weight = np.broadcast_to(member.weight(t), t.shape)
    minimum = weight.min() if weight[-1] > 0 else weight[-1]
    assert weight[-1] > 0 and minimum >= 0, (
        "Sums are divided by weight(t): it has to be >= 0, and > 0 at t = 1; "
        f"{type(drift).__name__} has {minimum:.3g}."
    )
    if not member.normalised:
        try:
            integral = Primitive(member.slope)
        except MeanfieldError as error:
            has_potential = type(member).potential is not ZonalDrift.potential
            assert has_potential, (
                f"The default potential did not converge: write potential(t). {error}."
            )
            return
        distances = 2.0 ** -np.arange(1, 50)
        t = np.concatenate([np.sort(np.append(t, distances - 1)), 1 - distances, [1.0]])
        potential = member.potential(t) - member.potential(np.zeros(1))
        law = "potential(t) - potential(0) against the integral of slope, relative to max |W|"
        scale = np.abs(integral(t)).max() or 1.0
        _close(law, potential / scale, integral(t) / scale, 1e-10)


@_law_of(ZonalDrift)
def _members_are_single_drifts(drift: ZonalDrift) -> None:
    """An ensemble computes what its members compute."""
    t = np.linspace(-0.9, 1.0, 7)
    nodes = np.broadcast_to(t, (*drift.shape, 7))
    for index in np.ndindex(*drift.shape):
        one = drift.member(index)
        for name in ("slope", "weight", "potential"):
            values, expected = getattr(drift, name)(nodes)[index], getattr(one, name)(t)
            tolerance = 1e-13 * max(1, np.abs(expected).max())
            _close(f"{name} of the member {index}", values, expected, tolerance)


@_law_of(ZonalDrift)
def _tokens_and_densities_feel_the_same(drift: ZonalDrift) -> None:
    """A quadrature of a density moves as the density does."""
    model = Transformer(drift.member((0,) * len(drift.shape)))
    for space in (Circle(16), Sphere(12)):
        density = space.perturbed(0.05, rng=0, degrees=[1, 2])
        tokens = Tokens(space.points, space.weights * density.values)
        options: dict[str, PassedOn] = {"t_eval": [DURATION], "rtol": 1e-9}
        starts: list[AnyObject] = [density, tokens]
        finals: list[AnyObject] = [solve(model, s, (0, DURATION), **options).final for s in starts]
        means = [state.expect(lambda x: x[..., 0]) for state in finals]
        _close(f"The mean after t = {DURATION} on {space!r}", means[1], means[0], 1e-6)


@_law_of(Drift)
def _a_run_comes_back(drift: Drift) -> None:
    """A run of tokens is saved, loaded and resumed bit for bit."""
    _resumes(Transformer(drift), Tokens.uniform(20, drift.dimension or 3, rng=0))


# Attention ---------------------------------------------------------------------------------------


@_law_of(Weights)
def _weights_are_those_of_pairs(weights: Weights) -> None:
    """Attention is the mean of the values by the weights of `of_logits`, pair by pair."""
    from .engines import AttentionSums

    rng = np.random.default_rng(0)
    x, masses = rng.standard_normal((2, 20, 3)), np.full((2, 20), 1 / 20)
    q, k = x, 0.5 * x
    squares = (q**2).sum(-1, keepdims=True), (k**2).sum(-1)[:, None, :]
    logits = q @ k.swapaxes(1, 2)
    pairs = weights.of_logits(logits.copy(), squares) / 20
    part = squares[0][:, :5], squares[1][:, :, :7]
    block = weights.of_logits(logits[:, :5, :7].copy(), part) / 20
    scale = np.abs(pairs).max()
    _close("of_logits of a block of pairs", block, pairs[:, :5, :7], 1e-10 * scale)
    repeated = weights.of_logits(logits.copy(), squares) / 20
    assert np.array_equal(pairs, repeated), (
        "of_logits of the same pairs differs: it may not change them."
    )
    expected = pairs @ x
    if weights.normalised:
        expected /= pairs.sum(axis=2, keepdims=True)
    attention = AttentionSums(Attention(K=0.5, weights=weights)).attention(0.0, x, masses)
    if type(weights).attend is Weights.attend:
        _close("Attention against pairs", attention, expected, 1e-10 * np.abs(expected).max())
    assert np.isfinite(attention).all(), "Attention is not finite."
    _resumes(Transformer(Attention(weights=weights)), Tokens.uniform(20, 3, rng=0))


@_law_of(Normalisation)
def _a_normalisation_moves_tokens(normalisation: Normalisation) -> None:
    """Tokens stay on the sphere, and a run is resumed bit for bit."""
    A, name = np.random.default_rng(0).standard_normal((2, 20, 3)), type(normalisation).__name__
    updates = [normalisation.update(t, A.copy(), 1.0) for t in (0.1, 0.7)]
    assert all(np.shape(u) == A.shape for u in updates), "Updates have the shape of A."
    if normalisation.constant:
        _close(f"{name} says that it is constant: its update", updates[1], updates[0], 1e-14)
    if normalisation.is_identity:
        _close(f"{name} says that it is the identity: its update", updates[0], A, 0.0)
    model = Transformer(Attention(beta=2.0), normalisation=normalisation)
    _resumes(model, Tokens.uniform(20, 3, rng=0, shape=()))


@_law_of(Noise)
def _noise_keeps_tokens_on_the_sphere(noise: Noise) -> None:
    """Moves keep lengths, depend on increments alone, and each replica has its own strength."""
    d = noise.dimension or 3
    x = Tokens.uniform(50, d, rng=0, shape=(d,)).x.copy()  # d replicas: axes are easily confused
    strengths = 0.1 * np.arange(1, d + 1)
    increments = noise.increments(x.shape, np.random.default_rng(1))
    points = _checked_move(lambda x: noise.moved(x, strengths, increments), x)
    close_points = noise.moved(x, strengths * (1 + 1e-7), increments)
    _close("Moves at two close strengths", close_points, points, 1e-6)
    for i, one in enumerate(np.eye(d, dtype=bool)):
        replica = noise.moved(x[one], strengths[one], increments[one])
        _close(f"Replica {i} of {d}, with its own s, against it alone", points[one], replica, 1e-13)


def _checked_move(move: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    """The moved points, after checks: unit lengths, equal results of two calls, `x` unchanged."""
    original, points = x.copy(), move(x)
    assert np.array_equal(x, original), "moved writes into the points that it is given."
    _close("Lengths after noise", np.linalg.norm(points, axis=2), 1.0, 1e-13)
    assert np.array_equal(points, move(x)), "The same increments move points differently."
    return points


@_law_of(Noise)
def _short_noise_is_diffusive(noise: Noise) -> None:
    """The square of the distance that noise moves tokens grows like its strength s."""
    x = Tokens.uniform(200, noise.dimension or 3, rng=0, shape=(1,)).x
    increments = noise.increments(x.shape, np.random.default_rng(1))
    squares = [((noise.moved(x, np.array([s]), increments) - x) ** 2).mean() for s in (1e-6, 4e-6)]
    if squares[0]:
        _close("Squared distance at s = 4e-6 over that at 1e-6", squares[1] / squares[0], 4, 0.04)


@_law_of(Noise)
def _a_run_with_noise_comes_back(noise: Noise) -> None:
    """A run of tokens with noise is saved, loaded and resumed bit for bit."""
    tokens = Tokens.uniform(20, noise.dimension or 3, rng=0, shape=(2,))
    _resumes(Transformer(Attention(), np.array([10.0, 20.0]), noise=noise), tokens)


@_law_of(CommonNoise)
def _common_noise_keeps_points_on_the_sphere(noise: CommonNoise) -> None:
    """Moves keep lengths, depend on increments alone, and each replica has its own."""
    x = Tokens.uniform(50, 3, rng=0, shape=(2,)).x.copy()
    strengths = np.array([0.1, 0.2])
    increments = noise.increments(2, 3, np.random.default_rng(1))
    points = _checked_move(lambda x: noise.moved(x, strengths, increments, x), x)
    replica = noise.moved(x[1:], strengths[1:], increments[1:], x[1:])
    _close("The second replica, against it alone", points[1:], replica, 1e-13)


@_law_of(CommonNoise)
def _runs_with_common_noise_come_back(noise: CommonNoise) -> None:
    """Runs of tokens and of a density are saved, loaded and resumed bit for bit."""
    model = Transformer(SA(1.0), 10.0, common=noise)
    _resumes(model, Tokens.uniform(20, 3, rng=0).broadcast(model.shape))
    _resumes(model, Circle(16).von_mises(0.0, 0.5))


# States ------------------------------------------------------------------------------------------


@_law_of(State)
def _a_state_is_what_it_holds(state: AnyObject) -> None:
    """The arrays of a state, and its header, give it back."""
    restored = type(state).unstacked(type(state).stacked([state]), state.header())[0]
    for name, (dims, values) in state.arrays().items():
        assert len(dims) == np.ndim(values), "Axes have names."
        stored = restored.arrays()[name][1]
        assert np.array_equal(values, stored), f"{name} is another one after a file."


@_law_of(State)
def _coordinates_of_a_state_give_it_back(state: AnyObject) -> None:
    """A motion makes the state again from its coordinates, and velocities have their shape."""
    motion = motion_for(state)(Transformer(SA(1.0)), state)
    if not motion.semilinear:
        y = motion.coordinates(state)
        restored = motion.coordinates(motion.state_of(y))
        _close("Coordinates of the state with these coordinates", restored, y, 1e-12)
        velocity = motion.velocity(y, 0.0)
        assert velocity.shape == y.shape, f"Velocities have shape {velocity.shape}, not {y.shape}."
    _resumes(Transformer(SA(1.0)), state)


def _resumes(model: Transformer, state: AnyObject) -> None:
    """A run that is cut in two and resumed is the same as one that is not, to the last bit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        times = np.linspace(0, DURATION, 4)
        options: dict[str, PassedOn] = {"t_eval": times, "rtol": 1e-8, "progress": False}
        if model.noisy:
            options |= {"rng": 0, "dt": DURATION / 10}
        full_run = solve(model, state, (0, DURATION), **options)
        file: dict[str, PassedOn] = {"checkpoint": path / "run.checkpoint", "checkpoint_every": 0.0}
        solve(model, state, (0, DURATION), **options, **file, max_steps=1)
        resumed = solve(model, state, (0, DURATION), **options, **file, resume=True)
        full_run.save(path / "run.nc")
        stored = load(path / "run.nc")
        for run, verb in ((resumed, "resumed"), (stored, "loaded")):
            is_same = digest(run.states) == digest(full_run.states)
            assert is_same, f"A run that was {verb} differs from the whole."
