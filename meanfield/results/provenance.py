"""Provenance of results: versions, machine and command line; what a resumed run must share."""

import platform
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..core.descriptions import describe
from ..core.errors import CheckpointError, StorageWarning
from ..core.identity import differing, digests
from ..core.version import LIBRARIES, __version__, version_of
from ..models.transformer import Transformer


def versions() -> dict[str, str]:
    """Versions of Python, of this package and of the libraries that results depend on."""
    from ..lowlevel.fourier import fftw_version

    libraries = {name: version_of(name) or "not installed" for name in LIBRARIES}
    return {
        "python": platform.python_version(),
        "meanfield": __version__,
        **libraries,
        "fftw": fftw_version(),
    }


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


class Origin:
    """Identity and versions of a run, by which a file is recognised when the run is resumed.

    Parameters
    ----------
    identity : dict
        Objects that determine the result: see `digests`.
    noun : str
        What is resumed, for messages: "run".
    option : str
        The argument that names the file.

    Raises
    ------
    CheckpointError
        If an object has no digest.
    """

    def __init__(self, identity: dict[str, Any], noun: str, option: str):
        self.noun = noun
        try:
            self.plain: dict[str, Any] = {"identity": digests(identity), "versions": versions()}
        except (TypeError, ValueError) as error:  # such as an integer that Python does not print
            raise CheckpointError(
                f"{error}: a {noun} with it cannot be resumed. Omit {option}, or pass the numbers, "
                "arrays and Python functions of which it consists."
            ) from error

    def check(self, path: Path, then: dict[str, Any]) -> None:
        """Raise CheckpointError for a file of another origin; warn if versions differ."""
        if then["identity"][""] != self.plain["identity"][""]:
            names = differing(then["identity"], self.plain["identity"])
            raise CheckpointError(
                f"{path} belongs to another {self.noun}, whose arguments differ: "
                f"{', '.join(names)}. Resume with the same ones, or use another file."
            )
        old, new = then["versions"], self.plain["versions"]
        changed = [f"{n} {old.get(n)} -> {new[n]}" for n in new if new[n] != old.get(n)]
        if changed:
            warnings.warn(
                f"{path} was written with other versions, {', '.join(changed)}: the last bits of "
                f"the result may not be those of an unbroken {self.noun}.",
                StorageWarning,
                stacklevel=4,
            )
