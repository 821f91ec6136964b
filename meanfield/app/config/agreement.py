"""Which tables and keys of a file go together: what one table alone cannot know."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ...core.checks import shape_of
from .equiangular_table import equiangular_disagreements
from .gaussian_table import gaussian_disagreements
from .initial import Ensemble
from .models import Attention, Hardmax, SelfAttentionOfAnyBeta
from .scalings import LogarithmicScaling, PowerScaling, shapes_of_beta
from .solve_table import FEWEST_MODES, FOR_TOKENS
from .token_agreement import token_disagreements

if TYPE_CHECKING:
    from .models import Model
    from .schema import BifurcationConfig, Config, StudyConfig

__all__ = ["STATES", "bifurcation_disagreements", "disagreements", "study_disagreements"]

STATES: dict[str, Callable[["Config"], Iterator[str]]] = {  # tables that need no density
    "tokens": token_disagreements,
    "equiangular": equiangular_disagreements,
    "gaussian": gaussian_disagreements,
}


def disagreements(config: "Config") -> Iterator[str]:
    """What does not fit together, in words that begin with a dotted key."""
    state = next((name for name in reversed(STATES) if getattr(config, name) is not None), None)
    yield from _of_densities(config) if state is None else STATES[state](config)
    if state not in (None, "tokens"):  # which may be sampled from a density
        for name in (*STATES, "geometry", "initial", "characteristics"):
            if name != state and getattr(config, name) is not None:
                yield f"[{state}] and [{name}] exclude each other; keep one of them"
    yield from _of_shapes(config)


def _of_densities(config: "Config") -> Iterator[str]:
    geometry, solve, model = config.geometry, config.solve, config.model
    if geometry and solve.max_degree is not None and geometry.degree > solve.max_degree:
        yield (
            f"expected geometry.degree <= solve.max_degree; "
            f"got {geometry.degree} > {solve.max_degree}"
        )
    least = FEWEST_MODES if solve.min_degree is None else solve.min_degree
    if solve.max_degree is not None and least > solve.max_degree:
        yield f"solve: expected min_degree <= max_degree; got {least} > {solve.max_degree}"
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
    if isinstance(getattr(model, "beta", 0.0), LogarithmicScaling | PowerScaling):
        yield "model.beta: a scaling needs a number of tokens; add [tokens], or give numbers"
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


def bifurcation_disagreements(config: "BifurcationConfig") -> Iterator[str]:
    """What a bifurcation diagram cannot be of."""
    model, table = config.model, config.bifurcation
    for reason in density_disagreements(model):
        yield reason.replace("add [tokens], or ", "")
    if "kappa" in model.model_fields_set:
        yield (
            "model.kappa: kappa is the parameter of a bifurcation diagram; leave it out, "
            "bifurcation.kappa is its range"
        )
    if isinstance(getattr(model, "beta", 0.0), tuple):
        yield "model.beta: a diagram has a single drift; expected a number; got an array"
    if table.symmetry != "axisymmetric" and config.geometry.kind != "sphere":
        yield (
            f'bifurcation.symmetry: polyhedra need geometry.kind = "sphere"; got '
            f'"{table.symmetry}" on "{config.geometry.kind}"'
        )
    yield from _of_ranges(config)


def _of_ranges(config: "BifurcationConfig") -> Iterator[str]:
    """What is wrong with the parameter of a bifurcation diagram and its range."""
    model, table = config.model, config.bifurcation
    single = isinstance(table.kappa, float)
    if table.beta is None and single:
        yield "bifurcation.kappa: expected a range [first, last], or bifurcation.beta with it"
    elif table.beta is not None and not single:
        yield "bifurcation.kappa: expected one number, as bifurcation.beta is a range"
    if not isinstance(model, SelfAttentionOfAnyBeta):
        if table.beta is not None:
            yield f'bifurcation.beta: "{model.drift}" has no beta; choose "USA" or "SA"'
    elif table.beta is not None and model.beta is not None:
        yield "model.beta: beta is the parameter; leave it out, bifurcation.beta is its range"
    elif table.beta is None and model.beta is None:
        yield "model.beta: this key is required (inverse temperature) and is missing"
    name, span = ("kappa", table.kappa) if table.beta is None else ("beta", table.beta)
    if isinstance(span, tuple):
        outside = [value for value in table.save_at if not span[0] <= value <= span[1]]
        if outside:
            yield (
                f"bifurcation.save_at: expected {name} from {span[0]:g} to {span[1]:g}; got "
                f"{outside[0]:g}"
            )


def _of_shapes(config: "Config") -> Iterator[str]:
    """Arrays of an ensemble that do not broadcast."""
    import numpy as np

    shapes = {
        **shapes_of_beta(getattr(config.model, "beta", 0.0)),
        "model.kappa": shape_of(config.model.kappa),
    }
    if config.equiangular is not None:
        table = config.equiangular
        given = {name: getattr(table, name) for name in ("n", "rho", "gap", "radius")}
        shapes |= {f"equiangular.{name}": shape_of(value or 0.0) for name, value in given.items()}
    elif config.tokens is None and isinstance(config.initial, Ensemble):
        shapes["initial.members"] = (len(config.initial.members),)
    try:
        np.broadcast_shapes(*shapes.values())
    except ValueError:
        found = ", ".join(f"{key} has shape {shape}" for key, shape in shapes.items() if shape)
        yield (
            f"the arrays of an ensemble do not fit together: {found}; expected equal lengths, "
            "or for a table of two parameters one as a row [a, b] and one as a column [[a], [b]]"
        )
