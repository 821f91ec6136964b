"""Errors of the package, told as errors of a configuration file."""

from collections.abc import Iterator
from contextlib import contextmanager

from ...core.errors import CheckpointError, ConfigError, MeanfieldError
from .described import Sourced

__all__ = ["blaming"]


@contextmanager
def blaming(config: Sourced, key: str) -> Iterator[None]:
    """Turns what the package refuses into an error that names the file and the table."""
    try:
        yield
    except (ConfigError, CheckpointError):
        raise  # says itself what is wrong
    except (MeanfieldError, ValueError, TypeError) as error:
        raise _told(config, key, f"{error}") from error
    except MemoryError as error:
        raise _told(config, key, f"it needs more memory than there is. {error}".strip()) from error


def _told(config: Sourced, key: str, text: str) -> ConfigError:
    prefix = "" if config.source is None else f"{config.source}: "
    return ConfigError(f"{prefix}{key}: {text}")
