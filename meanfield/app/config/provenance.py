"""Where a result comes from: the configuration, its data files and the command line."""

import sys
from typing import Any

from .files import checksum, folder_of
from .initial import Ensemble, Mixture, Sample
from .matrices import MatrixFile
from .models import matrix_tables
from .schema import Config, File, StudyConfig, plain

__all__ = ["provenance_of"]


def provenance_of(config: File) -> dict[str, Any]:
    """Plain data that a result keeps, from which it can be computed again."""
    directory = folder_of(config.source)
    return {
        "config": plain(config),
        "config_file": None if config.source is None else str(config.source),
        "data_files": {file: {"sha256": checksum(directory / file)} for file in _files_of(config)},
        "command_line": list(sys.argv),
    }


def _files_of(config: File) -> list[str]:
    """The data files that a run reads; diagrams read none."""
    if not isinstance(config, Config | StudyConfig):
        return []
    found = _files(config.initial)
    if isinstance(config, Config) and config.tokens is not None and config.tokens.file is not None:
        found.append(config.tokens.file)
    found += [t.file for _, t in matrix_tables(config.model) if isinstance(t, MatrixFile)]
    return sorted(set(found))


def _files(table: Any) -> list[str]:
    """The data files that an initial density reads."""
    match table:
        case Sample(file=file):
            return [file]
        case Mixture(components=parts) | Ensemble(members=parts):
            return sorted({file for part in parts for file in _files(part)})
    return []
