"""What a configuration file may hold, all tables together; its JSON schema.

Descriptions and docstrings appear in the schema and in error messages.
"""

import math
from pathlib import Path
from typing import Any, Self

from pydantic import (
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from .agreement import STATES, bifurcation_disagreements, disagreements, study_disagreements
from .chaos_table import Chaos
from .diagram_tables import Bifurcation, Phases
from .equiangular_table import Equiangular
from .gaussian_table import Gaussian
from .initial import Initial
from .models import FollowedModel, Model
from .solve_table import Checkpoint, Solve
from .spaces import Characteristics, Geometry
from .token_table import Tokens
from .values import Table

__all__ = [
    "KINDS",
    "BifurcationConfig",
    "Config",
    "File",
    "PhaseConfig",
    "StudyConfig",
    "plain",
    "schema",
]

ONE_STATE: dict[str, Any] = {
    "anyOf": [{"required": [name]} for name in STATES] + [{"required": ["geometry", "initial"]}]
}


class File(Table):
    """What every file may have, and where it was read from."""

    title: str = Field(default="", description="one line for people")
    description: str = Field(default="", description="more for people")

    _source: Path | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any) -> None:
        self._source = (context or {}).get("source")

    @property
    def source(self) -> Path | None:
        """The file this was read from; None if it was not read from a file."""
        return self._source


class Config(File):
    """One run: a model, a state at the start, and how to solve.

    Read one with `meanfield.read_config`, run it with `meanfield.run_config`.
    """

    model_config = ConfigDict(json_schema_extra=ONE_STATE)

    model: Model = Field(description="the drift and the noise")
    tokens: Tokens | None = Field(default=None, description="finitely many tokens")
    equiangular: Equiangular | None = Field(
        default=None, description="tokens whose inner products are all the same"
    )
    gaussian: Gaussian | None = Field(default=None, description="a normal law on R^d")
    geometry: Geometry | None = Field(
        default=None, validate_default=True, description="the space and its resolution"
    )
    initial: Initial | None = Field(
        default=None, validate_default=True, description="the density at t_start"
    )
    characteristics: Characteristics | None = Field(
        default=None, description="nodes that the flow carries, instead of modes; may be empty"
    )
    solve: Solve = Field(description="times, accuracy and limits")
    checkpoint: Checkpoint = Field(default=Checkpoint(), description="checkpoints")

    @field_validator("geometry", "initial")
    @classmethod
    def _is_there_for_a_density(cls, table: Any, info: ValidationInfo) -> Any:
        if table is None and all(info.data.get(name, "refused") is None for name in STATES):
            what = cls.model_fields[info.field_name or ""].description
            raise ValueError(
                f"this key is required ({what}) and is missing; or give [{'] or ['.join(STATES)}]"
            )
        return table

    @model_validator(mode="after")
    def _tables_agree(self) -> Self:
        if found := list(disagreements(self)):
            raise ValueError("\n".join(found))
        return self


class StudyConfig(File):
    """A study of propagation of chaos: a model, the law of the tokens at the start, and sizes.

    Read one with `meanfield.read_config`, run it with `meanfield.run_config`.
    """

    model: Model = Field(description="the drift and the noise")
    geometry: Geometry = Field(description="the space and its resolution")
    initial: Initial = Field(description="the law of the tokens at the start")
    chaos: Chaos = Field(description="sizes, times and replicas")
    checkpoint: Checkpoint = Field(default=Checkpoint(), description="checkpoints")

    @model_validator(mode="after")
    def _tables_agree(self) -> Self:
        if found := list(study_disagreements(self)):
            raise ValueError("\n".join(found))
        return self


class BifurcationConfig(File):
    """A bifurcation diagram: a drift, a space, and a range of kappa or beta.

    Read one with `meanfield.read_config`, run it with `meanfield.run_config`.
    """

    model: FollowedModel = Field(description="the drift; kappa or beta is the parameter")
    geometry: Geometry = Field(description="the space and the resolution at which to begin")
    bifurcation: Bifurcation = Field(description="the range, and what is followed in it")

    @model_validator(mode="after")
    def _tables_agree(self) -> Self:
        if found := list(bifurcation_disagreements(self)):
            raise ValueError("\n".join(found))
        return self


class PhaseConfig(File):
    """A phase diagram of USA, SA or both: a space, and a range of beta.

    Read one with `meanfield.read_config`, run it with `meanfield.run_config`.
    """

    geometry: Geometry = Field(description="the space and the resolution at which to begin")
    phase_diagram: Phases = Field(description="the range, and which curves are wanted")


KINDS: dict[str, type[File]] = {
    "run": Config,
    "chaos": StudyConfig,
    "bifurcation": BifurcationConfig,
    "phase_diagram": PhaseConfig,
}


def plain(config: File) -> dict[str, Any]:
    """The configuration as JSON data, defaults filled in; inf becomes the string "inf".

    `parse_config` reads it back.
    """
    data = _json(config.model_dump(exclude_none=True))
    if isinstance(config, Config):
        if config.solve.t_eval is not None:
            del data["solve"]["outputs"]  # t_eval stands in its place
        if config.solve.until is None:
            del data["solve"]["steady_tolerance"]
    if isinstance(config, BifurcationConfig):
        del data["model"]["kappa"]  # the parameter
    return data


def _json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _json(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_json(entry) for entry in value]
    return "inf" if value == math.inf else value


def schema(kind: str = "run") -> dict[str, Any]:
    """The JSON schema of a configuration file of a run, or of one of the other `KINDS`.

    JSON cannot write inf; where it means no noise, TOML's `inf` is accepted too.

    Raises
    ------
    ValueError
        For another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"Configuration files are of kind {', '.join(KINDS)}; got {kind!r}.")
    return KINDS[kind].model_json_schema()
