"""From a TOML file to a validated configuration."""

import re
import tomllib
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ...core.checks import path_of
from ...core.errors import ConfigError
from .problems import problems
from .schema import KINDS, Config, File

__all__ = ["parse_config", "read_config"]


def read_config(path: str | PathLike[str]) -> File:
    """Read and check a configuration file (TOML).

    It is of a run; with a table [chaos] of a study; with [bifurcation] or [phase_diagram] of a
    diagram.

    Parameters
    ----------
    path : path
        The file. Relative names of data files in it start from its folder.

    Returns
    -------
    Config, StudyConfig, BifurcationConfig or PhaseConfig

    Raises
    ------
    ConfigError
        If the file is missing, is not TOML, or holds anything invalid. The message has one
        line for each problem: file, dotted key, what was expected, what came, and for an
        unknown key the nearest valid one.
    TypeError
        If `path` is not a path.
    """
    source = path_of("path", path)
    return parse_config(_read_toml(source), source=source)


def parse_config(data: dict[str, Any], source: str | PathLike[str] | None = None) -> File:
    """Check a configuration given as plain data, such as the one a result file records.

    Parameters
    ----------
    data : dict
        What the TOML file would hold.
    source : path, optional
        The file it comes from: named in messages, and its folder is where relative names of
        data files start (the working directory by default).

    Raises
    ------
    ConfigError
        As `read_config`.
    """
    path = None if source is None else path_of("source", source)
    kind = next((kind for table, kind in KINDS.items() if table in data), Config)
    try:
        return kind.model_validate(data, context={"source": path})
    except ValidationError as error:
        prefix, lines = "" if path is None else f"{path}: ", problems(error, kind)
        raise ConfigError("\n".join(prefix + line for line in lines)) from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: there is no such configuration file; looked for {path.absolute()}"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: expected a TOML file, which is UTF-8 text; byte {error.start} is not. "
            "Give the configuration file, not a result file."
        ) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {_malformed(str(error), text)}") from None


def _malformed(message: str, text: str) -> str:
    """What is wrong with the TOML, the line number first."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, flags=re.DOTALL)
    if found is None:  # tomllib says "at end of document"
        reason = message.replace(" (at end of document)", "")
        return f"line {len(text.splitlines())}, the end of the file: not TOML: {reason}"
    reason, line, column = found.groups()
    return f"line {line}, column {column}: not TOML: {reason}"
