"""Configuration files: read, check, run."""

from typing import TYPE_CHECKING

from .files import checkpoint_of
from .reader import parse_config, read_config
from .schema import Config, plain, schema

if TYPE_CHECKING:
    from .run import run_config

__all__ = [
    "Config",
    "checkpoint_of",
    "parse_config",
    "plain",
    "read_config",
    "run_config",
    "schema",
]


def __getattr__(name: str):
    if name == "run_config":  # loads the solver, which reading a file does not need
        from .run import run_config

        return run_config
    raise AttributeError(f"module {__name__} has no attribute {name!r}")
