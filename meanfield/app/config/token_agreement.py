"""Which keys go together where tokens are followed."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .initial import Ensemble, Mixture, Perturbed
from .layer_tables import MixLN, PeriLN, PreLN
from .matrices import RandomMatrix
from .models import Attention, Hardmax, Model, matrix_tables
from .scalings import shapes_of_beta
from .token_table import SOURCES, Tokens

if TYPE_CHECKING:
    from .schema import Config

__all__ = ["is_noisy", "token_disagreements"]

NEEDED = {"n": "number of tokens", "dimension": "dimension of the tokens"}
SEED = (
    "this key is required and is missing: with it a run that draws random numbers can be repeated"
)
GIVEN = {
    "angles": "the angles say it",
    "points": "the points say it",
    "file": "the file says it",
    None: "[geometry] says it",
}


def token_disagreements(config: "Config") -> Iterator[str]:
    """What does not fit together, in words that begin with a dotted key."""
    tokens = config.tokens
    assert tokens is not None
    for part in (_tables, _positions, _spaces, _stepping, _gram, _repeated_seeds):
        yield from part(config, tokens)
    yield from _noise(config)
    yield from _matrices(config.model)


def is_noisy(model: Model) -> bool:
    """Whether some kappa is finite."""
    return any(kappa < math.inf for kappa in _flat(model.kappa))


def _flat(numbers: float | tuple) -> Iterator[float]:
    if isinstance(numbers, tuple):
        for entry in numbers:
            yield from _flat(entry)
    else:
        yield numbers


def _tables(config: "Config", tokens: Tokens) -> Iterator[str]:
    solve = config.solve
    if config.characteristics is not None:
        yield "[characteristics] follow a density; with [tokens] leave them out"
    for name in ("min_degree", "max_degree"):
        if getattr(solve, name) is not None:
            yield f"solve.{name} bounds the modes of a density; tokens have none, leave it out"
    named = [name for name in SOURCES if getattr(tokens, name) is not None]
    if len(named) > 1:
        yield f"tokens.{named[0]} and tokens.{named[1]} exclude each other; keep one of them"
    density = [name for name in ("geometry", "initial") if getattr(config, name) is not None]
    if tokens.source is not None and density:
        yield (
            f"tokens.{tokens.source} and [{density[0]}] exclude each other: [geometry] and "
            "[initial] are a density from which tokens without other positions are sampled"
        )
    if tokens.source is None and len(density) < 2:
        yield (
            'tokens.initial: expected "uniform", "normal" or "orthonormal"; or one of the keys '
            "angles, points and file; or the tables [geometry] and [initial] of a density to sample"
        )
    if isinstance(config.initial, Ensemble):
        yield 'initial.kind: tokens are sampled from one density; got "ensemble"'


def _positions(config: "Config", tokens: Tokens) -> Iterator[str]:
    source = tokens.source
    if source is None and (config.geometry is None or config.initial is None):
        return  # said already
    if tokens.key is not None and tokens.file is None:
        yield "tokens.key names an array in tokens.file, which is missing"
    if source == "initial" or source is None:
        if tokens.n is None:
            yield f"tokens.n: this key is required ({NEEDED['n']}) and is missing"
    elif tokens.n is not None:
        yield f"tokens.n: {GIVEN[source]}; leave it out"
    if tokens.initial in ("uniform", "normal"):
        if tokens.dimension is None:
            yield f"tokens.dimension: this key is required ({NEEDED['dimension']}) and is missing"
    elif tokens.initial is None and tokens.dimension is not None:
        yield f"tokens.dimension: {GIVEN[source]}; leave it out"
    if tokens.drawn and tokens.seed is None:
        yield f"tokens.seed: {SEED}"
    if not tokens.drawn and tokens.seed is not None:
        yield "tokens.seed: these positions are not drawn at random; leave it out"
    if tokens.replicas is not None and not tokens.drawn and not is_noisy(config.model):
        yield (
            "tokens.replicas: all would be equal, since neither positions nor motion are random; "
            "leave it out"
        )
    if tokens.masses is not None and tokens.n not in (None, len(tokens.masses)):
        yield f"tokens.masses: expected n = {tokens.n} masses; got {len(tokens.masses)}"


def _spaces(config: "Config", tokens: Tokens) -> Iterator[str]:
    model = config.model
    if tokens.space == "sphere":
        if tokens.initial == "normal":
            yield 'tokens.initial: "normal" points are in R^d; set tokens.space = "euclidean"'
        if tokens.dimension == 1:
            yield "tokens.dimension: expected a number >= 2 on the sphere; got 1"
    else:
        if not isinstance(model, Attention | Hardmax):
            yield (
                f'model.drift: "{model.drift}" is defined on the sphere; in R^d use "Attention" or '
                '"Hardmax"'
            )
        if tokens.angles is not None or (tokens.source is None and config.geometry):
            yield 'tokens.space: angles and densities are on the sphere; got "euclidean"'
        if model.normalisation is not None and model.normalisation.kind != "post_ln":
            yield 'model.normalisation puts tokens on the sphere; with "euclidean" leave it out'
        if model.noise is not None and model.noise.kind != "isotropic":
            yield f'model.noise: "{model.noise.kind}" is defined on the sphere; use "isotropic"'
    if tokens.radii is not None and not isinstance(model.normalisation, PreLN | MixLN | PeriLN):
        yield (
            "tokens.radii: lengths of hidden states matter only with "
            'model.normalisation of kind "pre_ln", "mix_ln" or "peri_ln"; leave them out'
        )


def _noise(config: "Config") -> Iterator[str]:
    model, solve = config.model, config.solve
    if is_noisy(model):
        if solve.seed is None:
            yield f"solve.seed: {SEED}"
        if solve.scheme not in (None, "Strang"):
            yield f'solve.scheme: with noise tokens need "Strang"; got "{solve.scheme}"'
        if solve.merge is not None:
            yield "solve.merge: noise separates what was merged; leave it out"
    else:
        if model.noise is not None and model.noise.kind != "isotropic":
            yield "model.noise has an effect only with a finite model.kappa; set it, or leave both"
        if solve.seed is not None:
            yield "solve.seed: without noise (model.kappa = inf) nothing is random; leave it out"
        if solve.scheme == "Strang":
            yield 'solve.scheme: "Strang" is for noise, and model.kappa is inf'


def _stepping(config: "Config", tokens: Tokens) -> Iterator[str]:
    solve, model = config.solve, config.model
    if solve.scheme in ("Layers", "LieTrotter") and solve.dt is None:
        yield f'solve.dt: this key is required by scheme "{solve.scheme}" and is missing'
    if isinstance(model, Attention | Hardmax):
        if solve.engine in ("direct", "modes") or solve.tolerance is not None:
            name = "tolerance" if solve.tolerance is not None else "engine"
            yield (
                f"solve.{name}: {model.drift} has one way to sum over tokens, to rounding; "
                "leave it out"
            )
    if solve.merge is not None and (tokens.replicas is not None or _is_ensemble(model)):
        yield "solve.merge: tokens are merged in single runs, without replicas and arrays"


def _is_ensemble(model: Any) -> bool:
    shapes = shapes_of_beta(getattr(model, "beta", 0.0)).values()
    return any(shapes) or isinstance(model.kappa, tuple)


def _gram(config: "Config", tokens: Tokens) -> Iterator[str]:
    solve, model = config.solve, config.model
    if not tokens.gram:
        return
    reason = "inner products (tokens.gram = true)"
    if isinstance(model, Attention | Hardmax):
        yield f'model.drift: {reason} do not determine the motion by "{model.drift}"'
    if is_noisy(model):
        yield f"model.kappa: {reason} are followed without noise"
    if model.normalisation is not None and model.normalisation.kind != "post_ln":
        yield f"model.normalisation: {reason} are followed under post_ln only"
    for name in ("reaction", "feedforward"):
        if getattr(model, name, None):
            yield f"model.{name}: {reason} are followed without it"
    if tokens.space == "euclidean":
        yield f"tokens.space: {reason} are those of unit vectors"
    for name in ("engine", "tolerance", "threads", "merge"):
        if getattr(solve, name) is not None:
            yield f"solve.{name}: {reason} have no use for it; leave it out"
    if solve.scheme in ("Layers", "LieTrotter"):
        yield f'solve.scheme: {reason} need "DormandPrince"; got "{solve.scheme}"'


def _matrices(model: Model) -> Iterator[str]:
    drawn = [(key, table) for key, table in matrix_tables(model) if isinstance(table, RandomMatrix)]
    for key, table in drawn:
        if table.rows is not None and table.ensemble != "ginibre":
            yield f'{key}.rows: "{table.ensemble}" is square; leave it out, or set columns'
    inside = [key for key, _ in drawn if not key.startswith("model.feedforward")]
    if getattr(model, "heads", None) is not None and not inside:
        yield "model.heads is for random matrices; the shapes of others tell their heads"


def _repeated_seeds(config: "Config", tokens: Tokens) -> Iterator[str]:
    """Positions and noise must not be made of the same random numbers."""
    seeds = [("tokens.seed", tokens.seed), ("solve.seed", config.solve.seed)]
    for key, table in matrix_tables(config.model):
        if isinstance(table, RandomMatrix):
            seeds.append((f"{key}.seed", table.seed))
    seeds += _seeds_of(config.initial, "initial")
    for i, (key, seed) in enumerate(seeds[:2]):
        for other, same in seeds[i + 1 :]:
            if seed is not None and seed == same:
                yield (
                    f"{key} and {other} are both {seed}: the same random numbers would be used "
                    "twice; give one of them another seed"
                )


def _seeds_of(table: Any, key: str) -> list[tuple[str, int | None]]:
    match table:
        case Perturbed(seed=seed):
            return [(f"{key}.seed", seed)]
        case Mixture(components=parts):
            places = [(part, f"{key}.components[{i}]") for i, part in enumerate(parts)]
            return [found for part, place in places for found in _seeds_of(part, place)]
    return []
