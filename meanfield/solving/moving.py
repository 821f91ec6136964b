"""The arguments of `solve` that concern tokens: sums, random numbers, merging, steps."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ..core.checks import generator, positive
from ..engines import ENGINES
from ..models import Attention, Hardmax, Unnormalised
from ..models.noise import CommonNoise, Isotropic
from ..models.normalisation import PostLN
from ..models.transformer import Transformer
from ..states import Equiangular, Gram, SomeTokens, Tokens
from ..steppers import DormandPrince, Layers, LieTrotter, Scheme, Splitting, Strang

__all__ = ["Moving", "broadcast_tokens", "check_layers", "layer_times", "token_scheme"]

CAREFUL = 0.05  # default steps with noise, times the rate of the drift and of the noise
WHOLE = 1e-9
MOST_LAYERS = 10**6
SCHEMES: dict[type, tuple[Scheme | Splitting, ...]] = {
    Tokens: (DormandPrince, Layers, LieTrotter),
    Gram: (DormandPrince,),
    Equiangular: (DormandPrince, Layers),
}
NEAR = 0.1  # tokens farther apart are not one


class Moving(NamedTuple):
    """How tokens are moved."""

    engine: Any
    merge: float | None
    rng: np.random.Generator | None
    seed: Any

    @classmethod
    def checked(cls, problem, stopping, keeping, engine, merge, rng) -> "Moving":
        model, state = problem.model, problem.state
        if stopping.steady and _changes(model):
            raise ValueError(
                f'until="steady" is for models that do not change with time: under {model!r} '
                "tokens may rest and move again. Look at observables over time instead."
            )
        given = {"engine": engine, "merge": merge, "rng": rng}
        if not isinstance(state, SomeTokens):
            if named := [name for name, value in given.items() if value is not None]:
                raise ValueError(f"{named[0]} is for Tokens; got a {type(state).__name__}.")
            return cls(None, None, None, None)
        if stopping.steady and model.noisy:
            raise ValueError(
                'until="steady" is for states that come to rest; tokens with noise do not. Look at '
                "observables over time instead."
            )
        if engine is not None and not isinstance(engine, ENGINES):
            names = ", ".join(f"engines.{kind.__name__}(...)" for kind in ENGINES)
            raise TypeError(f"engine must be one of {names}; got {engine!r}.")
        if isinstance(state, Equiangular) and rng is not None and not model.noisy:
            raise ValueError("Equiangular tokens move without noise; leave out rng.")
        distance = _distance(merge, model, state)
        return cls(engine, distance, *_random(rng, model, keeping.path is not None))

    def options(self) -> dict[str, Any]:
        """As plain data."""
        return {"engine": repr(self.engine), "merge": self.merge, "seed": self.seed}


def _changes(model: Transformer) -> bool:
    """Whether a parameter depends on time."""
    drift, normalisation = model.drift, model.normalisation
    return not getattr(drift, "constant", True) or callable(getattr(normalisation, "alpha", None))


def _distance(merge, model: Transformer, state) -> float | None:
    if merge is None:
        return None
    positive(merge=merge)
    if merge > NEAR:
        raise ValueError(
            f"merge is a distance > 0 and <= {NEAR:g}, below which tokens are taken for one; got "
            f"merge = {merge!r}."
        )
    if isinstance(model.drift, Hardmax) or getattr(model.drift, "causal", False):
        raise ValueError(
            "Merging is for drifts that move tokens at the same place alike; under Hardmax, where "
            "none attends to itself, and causal attention they part."
        )
    if not isinstance(state, Tokens):
        raise ValueError(f"merge is for Tokens; got {type(state).__name__}: leave it out.")
    if state.shape or model.noisy:
        raise ValueError(
            "Merging needs a single set of Tokens without noise; solve replicas one by one, "
            "tokens[i]."
        )
    return float(merge)


def _random(rng, model: Transformer, has_checkpoint: bool) -> tuple:
    """The generator, and what tells it from others as plain data."""
    if not model.noisy:
        generator(rng)  # a valid one is not read
        return None, None
    if rng is None and has_checkpoint:
        raise ValueError(
            "A run with noise and a checkpoint needs rng, a seed or a Generator in the same state: "
            "only then can it be resumed with the same random numbers."
        )
    if rng is None:
        rng = np.random.SeedSequence().entropy
    numbers = generator(rng)
    seed = int(rng) if isinstance(rng, Integral) else numbers.bit_generator.state
    return numbers, _plain(seed)


def _plain(seed: Any) -> Any:
    if isinstance(seed, dict):
        return {key: _plain(value) for key, value in seed.items()}
    return seed.tolist() if isinstance(seed, np.ndarray | np.generic) else seed


def broadcast_tokens(model: Transformer, state: SomeTokens) -> SomeTokens:
    """The tokens, in the ensemble shape of the model too.

    Raises
    ------
    ValueError
        If the shapes do not broadcast, there is a single token, or equiangular ones are one.
    """
    if not isinstance(state, Equiangular) and len(state) < 2:
        raise ValueError("A single token has none to attend to; solve needs n >= 2 tokens.")
    if isinstance(state, Equiangular) and not np.isfinite(state.logit).all():
        raise ValueError(
            "Some of these tokens are one, or their mean is 0, as what attention answers may be: "
            "they rest, and there is nothing to solve."
        )
    try:
        shape = np.broadcast_shapes(model.shape, state.shape)
    except ValueError:
        raise ValueError(
            f"The model has ensemble shape {model.shape} and the tokens have replicas of shape "
            f"{state.shape}: these do not broadcast."
        ) from None
    return state if shape == state.shape else state.broadcast(shape)


def token_scheme(
    model: Transformer, state: Any, start: float, scheme, dt: float | None
) -> tuple[Scheme | Splitting, float | None]:
    """The scheme for tokens and the length of its steps, None if they adapt.

    Raises
    ------
    ValueError
        If the scheme does not fit the model, or has no dt.
    """
    if model.noisy:
        if scheme not in (None, Strang):
            raise ValueError(f"With noise tokens need steppers.Strang; got {scheme.name}.")
        if not isinstance(state, Tokens):  # which is refused later, in words of its own
            return Strang, dt or 1.0
        return Strang, _careful_step(model, state, start) if dt is None else dt
    scheme = DormandPrince if scheme is None else scheme
    fitting = next(schemes for kind, schemes in SCHEMES.items() if isinstance(state, kind))
    if scheme not in fitting:
        names = ", ".join(f"steppers.{known.name}" for known in fitting)
        raise ValueError(
            f"{type(state).__name__} without noise need one of {names}; got {scheme.name}."
        )
    if scheme is not DormandPrince:
        if dt is None:
            raise ValueError(f"steppers.{scheme.name} needs dt, the length of its steps.")
        positive(dt=dt)
    return scheme, dt


def layer_times(t_span, dt) -> np.ndarray | None:
    """The times of all layers of depth dt; None where the numbers make no sense.

    Raises
    ------
    ValueError
        Unless the time span is a whole number of layers, at most a million of which are listed.
    """
    span, steps = np.asarray(t_span), np.asarray(0.0 if dt is None else dt)
    numbers = span.dtype.kind in "fiu" and steps.dtype.kind in "fiu"
    if not numbers or span.shape != (2,) or steps.shape != () or not 0 < steps < np.inf:
        return None
    layers = float((span[1] - span[0]) / steps)
    if not 0 < layers < np.inf:
        return None
    if round(layers) < 1 or abs(layers - round(layers)) > WHOLE * layers:
        raise ValueError(
            f"steppers.Layers takes steps of exactly dt = {float(steps):g}, and t_span is "
            f"{layers:g} of them: expected a whole number >= 1."
        )
    if layers > MOST_LAYERS:
        raise ValueError(
            f"t_span has {layers:.3g} layers of dt = {float(steps):g}, too many to save each: say "
            "which by t_eval."
        )
    return span[0] + steps * np.arange(round(layers) + 1)


def check_layers(elapsed, dt: float | None, what: str) -> None:
    """Raise ValueError unless times since the start are whole numbers of layers."""
    layers = np.asarray(elapsed) / (dt or np.nan)
    off = np.abs(layers - np.round(layers))
    if layers.size and off.max() > WHOLE * max(1.0, layers.max()):
        worst = float(layers[off.argmax()])
        raise ValueError(
            f"steppers.Layers takes steps of exactly dt = {dt:g}, and {what} is {worst:g} layers "
            "after the start: expected a whole number. Leave t_eval out to see every layer."
        )


def _careful_step(model: Transformer, state: Tokens, start: float) -> float:
    """Small against the times in which drift and noise move tokens.

    Raises
    ------
    ValueError
        Where these are not known beforehand.
    """
    known = not (model.reaction or model.feedforward)
    known = known and isinstance(model.normalisation, PostLN)
    known = known and isinstance(model.noise, Isotropic | CommonNoise)
    if isinstance(model.drift, Attention):
        known = known and model.drift.constant and state.on_sphere
        known = known and not isinstance(model.drift.weights, Unnormalised)
    if not known:
        raise ValueError(
            "This model needs dt, the length of its steps with noise: it has no default where a "
            "normalisation, reaction, feed-forward map, changing parameters or a noise of its own "
            "decide how fast tokens move. Try one and half of it."
        )
    return float(CAREFUL / np.max(model.drift.rate(start) + (state.dimension - 1) / model.kappa))
