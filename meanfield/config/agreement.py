"""Which tables and keys of a file go together: what one table alone cannot know."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .gaussian_agreement import gaussian_disagreements
from .initial import Ensemble
from .models import Attention, Hardmax
from .solve_table import FOR_TOKENS
from .token_agreement import token_disagreements
from .values import shape_of

if TYPE_CHECKING:
    from .models import Model
    from .schema import Config, StudyConfig

__all__ = ["disagreements", "study_disagreements"]


def disagreements(config: "Config") -> Iterator[str]:
    """What does not fit together, in words that begin with a dotted key."""
    if config.gaussian is not None:
        yield from gaussian_disagreements(config)
    elif config.tokens is None:
        yield from _of_densities(config)
    else:
        yield from token_disagreements(config)
    yield from _of_shapes(config)


def _of_densities(config: "Config") -> Iterator[str]:
    geometry, solve, model = config.geometry, config.solve, config.model
    if geometry and solve.max_degree is not None and geometry.degree > solve.max_degree:
        yield (
            f"expected geometry.degree <= solve.max_degree; "
            f"got {geometry.degree} > {solve.max_degree}"
        )
    given = sorted({"min_degree", "max_degree"} & solve.model_fields_set)
    if config.characteristics is not None and given:
        yield (
            f"solve.{given[0]} bounds the modes of a density; with [characteristics], "
            "which have none, leave it out"
        )
    yield from density_disagreements(model)
    if isinstance(model, Attention | Hardmax):
        return
    for name in FOR_TOKENS:
        if getattr(solve, name) is not None:
            yield f"solve.{name} is for tokens; add [tokens], or leave it out"


def density_disagreements(model: "Model") -> Iterator[str]:
    """What densities cannot follow."""
    if isinstance(model, Attention | Hardmax):
        yield f'model.drift: "{model.drift}" moves tokens; add [tokens], or choose another drift'
        return
    parts = {
        "normalisation": model.normalisation and model.normalisation.kind != "post_ln",
        "noise": model.noise and model.noise.kind != "isotropic",
        "reaction": model.reaction,
        "feedforward": model.feedforward,
    }
    for name in (name for name, present in parts.items() if present):
        yield f"model.{name}: densities have none but the default; add [tokens], or leave it out"


def study_disagreements(config: "StudyConfig") -> Iterator[str]:
    """What a study cannot be of."""
    for reason in density_disagreements(config.model):
        yield reason.replace("add [tokens], or ", "")
    if config.geometry.kind == "zonal":
        yield 'geometry.kind: a study follows tokens; expected "circle" or "sphere"; got "zonal"'
    elif config.initial.kind == "ensemble":
        yield "initial.kind: a study starts from a single density; got an ensemble"
    for name in ("beta", "kappa"):
        if isinstance(getattr(config.model, name, 0.0), tuple):
            yield f"model.{name}: a study has a single model; expected a number; got an array"


def _of_shapes(config: "Config") -> Iterator[str]:
    """Arrays of an ensemble that do not broadcast."""
    import numpy as np

    shapes = {
        "model.beta": shape_of(getattr(config.model, "beta", 0.0)),
        "model.kappa": shape_of(config.model.kappa),
    }
    if config.tokens is None and isinstance(config.initial, Ensemble):
        shapes["initial.members"] = (len(config.initial.members),)
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        found = ", ".join(f"{key} has shape {shape}" for key, shape in shapes.items() if shape)
        yield (
            f"the arrays of an ensemble do not fit together: {found}; expected equal lengths, "
            "or for a table of two parameters one as a row [a, b] and one as a column [[a], [b]]"
        )
