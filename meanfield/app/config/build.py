"""From a configuration to what `meanfield.solve` takes: a state and keyword arguments."""

from typing import Any

import numpy as np

from ...engines import Automatic, Direct, Modes
from ...results.solution import State
from ...spaces.characteristics import Characteristics
from ...states import Equiangular, Gaussian
from ...steppers import DormandPrince, Layers, LieTrotter, Strang
from .blame import blaming
from .build_density import build_density, build_geometry
from .build_model import build_model
from .build_tokens import build_tokens
from .schema import Config

__all__ = [
    "build_density",
    "build_geometry",
    "build_model",
    "build_state",
    "build_tokens",
    "solve_arguments",
]

SCHEMES = {scheme.name: scheme for scheme in (DormandPrince, Layers, LieTrotter, Strang)}
WRITTEN_OUT: dict[str, Any] = {"equiangular": Equiangular, "gaussian": Gaussian}
ENGINES = {"automatic": Automatic, "direct": Direct, "modes": Modes}


def build_state(config: Config) -> State:
    """The state of its own table, the initial density, or its nodes for [characteristics]."""
    if config.tokens is not None:
        tokens = build_tokens(config)
        return tokens.gram() if config.tokens.gram else tokens
    for name, state in WRITTEN_OUT.items():
        if (written := getattr(config, name)) is not None:
            with blaming(config, name):
                return state(**written.model_dump())
    density = build_density(config)
    if config.characteristics is None:
        return density
    with blaming(config, "characteristics"):
        table = config.characteristics
        return Characteristics(density, nodes=table.nodes, limit=table.limit)


def solve_arguments(config: Config) -> dict[str, Any]:
    """The keyword arguments of `meanfield.solve` that [solve] and [checkpoint] describe."""
    table = config.solve
    span = (table.t_start, table.t_end)
    times: np.ndarray | None
    times = np.linspace(*span, table.outputs) if table.t_eval is None else np.array(table.t_eval)
    if table.scheme == "Layers" and not {"outputs", "t_eval"} & table.model_fields_set:
        times = None  # every layer
    names = ["rtol", "dt", "until", "steady_tolerance", "max_steps"]
    if config.geometry is not None and config.characteristics is None and config.tokens is None:
        names += ["min_degree", "max_degree"]
    return {
        "t_span": span,
        "t_eval": times,
        "checkpoint_every": config.checkpoint.every,
        **{name: getattr(table, name) for name in names},
        **_token_arguments(config),
    }


def _token_arguments(config: Config) -> dict[str, Any]:
    table = config.solve
    scheme = None if table.scheme is None else SCHEMES[table.scheme]
    if config.tokens is None:
        return {} if scheme is None else {"scheme": scheme}
    options: dict[str, Any] = {"tolerance": table.tolerance, "threads": table.threads}
    given = {name: value for name, value in options.items() if value is not None}
    engine = None
    if table.engine is not None or given:
        with blaming(config, "solve"):
            engine = ENGINES[table.engine or "automatic"](**given)
    return {
        "scheme": scheme,
        "engine": engine,
        "merge": table.merge,
        "rng": table.seed,
    }
