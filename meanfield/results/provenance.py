"""Provenance of results: versions, machine and command line."""

import platform
import sys
from datetime import UTC, datetime
from typing import Any

from ..core.descriptions import describe
from ..core.version import LIBRARIES, version_of
from ..models.transformer import Transformer


def versions() -> dict[str, str]:
    """Versions of Python, of this package and of the libraries that results depend on."""
    from ..lowlevel.fourier import fftw_version

    libraries = {name: version_of(name) or "not installed" for name in LIBRARIES}
    return {"python": platform.python_version(), **libraries, "fftw": fftw_version()}


def provenance(
    model: Transformer, options: dict[str, Any], extra: dict[str, Any]
) -> dict[str, Any]:
    """Model, options, versions, machine and command line of a run, as plain data."""
    return {
        "model": describe(model),
        "options": options,
        "versions": versions(),
        "machine": platform.machine(),
        "command_line": sys.argv,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        **extra,
    }
