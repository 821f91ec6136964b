"""From [tokens] to tokens."""

import numpy as np

from ...core.checks import check_memory, shape_of
from ...spaces.density import Density
from ...states import Tokens
from .blame import blaming
from .build_density import build_density
from .files import folder_of
from .scalings import shapes_of_beta
from .schema import Config
from .token_table import Tokens as Table

__all__ = ["build_tokens"]


def build_tokens(config: Config) -> Tokens:
    """The tokens that [tokens] describes.

    Replicas come before the ensemble of the model: each replica is solved for every member.

    Raises
    ------
    ConfigError
        If a file cannot be read, or what is described are no tokens; the message names the table.
    """
    table = config.tokens
    assert table is not None
    density = build_density(config) if table.source is None else None
    with blaming(config, "tokens"):
        _check_memory(table, density)
        tokens = _given(table, config) if density is None else _sampled(table, density)
        return _dressed(tokens, table, _replicas(tokens, table), _members(config))


def _check_memory(table: Table, density: Density | None) -> None:
    """Raises ValueError for more positions, or inner products, than memory can hold."""
    if table.n is None:
        return
    d = table.dimension or (table.n if density is None else density.geometry.dimension)
    width = max(table.n, d) if table.gram else d
    check_memory(f"{table.n} tokens", (table.replicas or 1, table.n, width))


def _given(table: Table, config: Config) -> Tokens:
    on_sphere = table.space == "sphere"
    match table.source:
        case "angles":
            return Tokens.on_circle(table.angles)
        case "points":
            return Tokens(table.points, on_sphere=on_sphere)
        case "file":
            path = folder_of(config.source) / str(table.file)
            return Tokens.from_file(path, key=table.key, on_sphere=on_sphere)
    return _by_law(table)


def _by_law(table: Table) -> Tokens:
    n, d = table.n, table.dimension
    assert n is not None
    if table.initial == "orthonormal":
        return Tokens.orthonormal(n, d)
    assert d is not None
    shape = () if table.replicas is None else (table.replicas,)
    if table.initial == "uniform":
        return Tokens.uniform(n, d, rng=table.seed, shape=shape)
    x = np.random.default_rng(table.seed).standard_normal((*shape, n, d))
    return Tokens(x, on_sphere=False)


def _sampled(table: Table, density: Density) -> Tokens:
    assert table.n is not None
    shape = () if table.replicas is None else (table.replicas,)
    drawn = density.sample(table.n * (table.replicas or 1), rng=table.seed)
    return Tokens(drawn.x.reshape(*shape, table.n, drawn.dimension))


def _replicas(tokens: Tokens, table: Table) -> tuple[int, ...]:
    """Shape of the replicas that the run has."""
    if table.replicas is None:
        return tokens.shape
    if tokens.shape not in ((), (table.replicas,)):
        raise ValueError(
            f"the positions have {tokens.shape[0]} replicas already; leave out replicas = "
            f"{table.replicas}"
        )
    return (table.replicas,)


def _members(config: Config) -> int:
    """Number of axes of the ensemble of models."""
    shapes = shapes_of_beta(getattr(config.model, "beta", 0.0)).values()
    return max(map(len, (*shapes, shape_of(config.model.kappa))))


def _dressed(tokens: Tokens, table: Table, replicas: tuple[int, ...], members: int) -> Tokens:
    """The tokens in every replica, with masses and radii, and an axis for each of the model."""
    on_sphere = table.space == "sphere"
    n, d = len(tokens), tokens.dimension
    x = np.broadcast_to(tokens.x, (*replicas, n, d))
    if replicas:
        x = x.reshape(*replicas, *(1,) * members, n, d)
    return Tokens(x, table.masses, table.radii, on_sphere=on_sphere)
