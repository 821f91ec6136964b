"""Checkpoints: one file with everything a run needs to go on, sealed with a checksum.

    MAGIC (16 bytes) | SHA-256 of the payload (32 bytes) | payload

The payload is a .npz archive of arrays and of the identity of the run: a digest of what is computed
with, functions by their code. A file that is cut short, altered, or written for another model,
initial state or options is refused.
"""

import hashlib
import io
import time
import warnings
from collections.abc import Callable
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.atomic import check_writable, write_atomically
from ..core.checks import boolean, path_of
from ..core.errors import CheckpointError, StorageWarning
from ..core.identity import digest

__all__ = ["Keeper", "Keeping"]

MAGIC = b"meanfield ckpt 6"


class Keeping(NamedTuple):
    """Where to keep a checkpoint, if anywhere; seconds between two; whether to go on from it."""

    path: Path | None
    every: float
    resume: bool

    @classmethod
    def checked(cls, checkpoint, checkpoint_every, resume) -> "Keeping":
        """From arguments of `solve`; TypeError or ValueError for what makes no sense."""
        every = float(checkpoint_every) if isinstance(checkpoint_every, Real) else np.nan
        if not every >= 0:
            raise ValueError(f"checkpoint_every must be >= 0 seconds; got {checkpoint_every!r}.")
        resume = boolean("resume", resume)
        if resume and checkpoint is None:
            raise ValueError("resume=True needs checkpoint=PATH, the file to resume from.")
        return cls(None if checkpoint is None else path_of("checkpoint", checkpoint), every, resume)

    def opened(self, identity: dict[str, Any]) -> tuple["Keeper | None", dict[str, np.ndarray]]:
        """The checkpoint of a run, None if there is none, and what it holds to go on from."""
        if self.path is None:
            return None, {}
        keeper = Keeper(self.path, identity, self.every, self.resume)
        return keeper, keeper.load() if self.resume and self.path.exists() else {}


class Keeper:
    """Writes and reads the checkpoint of one run.

    Parameters
    ----------
    path : Path
    identity : dict
        What determines the result, see `digest`. It must agree on resuming.
    every : float
        Seconds of wall time between two checkpoints.
    resume : bool
        Whether the file, if it exists, is read first; else it must be a checkpoint, or empty.
    """

    def __init__(self, path: Path, identity: dict[str, Any], every: float, resume: bool):
        if not path.absolute().parent.is_dir() or (path.exists() and not path.is_file()):
            raise CheckpointError(
                f"No checkpoint can be written to {path}: expected a file in an existing folder."
            )
        if path.exists() and not resume and not _may_be_overwritten(path):
            raise CheckpointError(
                f"{path} exists and is not a checkpoint: it would be overwritten. Choose another "
                "name, or remove it."
            )
        check_writable(path)
        try:
            self._path, self._identity = path, digest(identity)
        except TypeError as error:
            raise CheckpointError(
                f"{error}: no run with it can be resumed. Leave checkpoint out, or write it as a "
                "Python function."
            ) from error
        self._every, self._last = every, time.monotonic()

    def save_now_and_then(self, arrays: Callable[[], dict[str, Any]]) -> None:
        """Save what `arrays` returns if the last checkpoint is old enough."""
        if time.monotonic() - self._last >= self._every:
            self.save(arrays())

    def save(self, arrays: dict[str, Any]) -> None:
        """Write the checkpoint, replacing the previous one atomically.

        Where that fails, on a full disk for instance, the run is worth more than its
        checkpoint: it goes on, with a warning.
        """
        buffer = io.BytesIO()
        np.savez(buffer, identity=np.array(self._identity), **arrays)
        payload = buffer.getvalue()
        sealed = MAGIC + hashlib.sha256(payload).digest() + payload
        try:
            write_atomically(self._path, lambda path: path.write_bytes(sealed))
        except OSError as error:
            warnings.warn(
                f"The checkpoint {self._path} could not be written "
                f"({error.strerror or error}); the run goes on without it.",
                StorageWarning,
                stacklevel=2,
            )
        self._last = time.monotonic()

    def load(self) -> dict[str, np.ndarray]:
        """The arrays that were saved; raises CheckpointError unless all is well."""
        sealed = self._path.read_bytes()
        payload = sealed[48:]
        if sealed[:16] != MAGIC or hashlib.sha256(payload).digest() != sealed[16:48]:
            raise CheckpointError(
                f"{self._path} is not an intact checkpoint: it was cut short or altered, or "
                "another program wrote it. Remove it and start the run again."
            )
        with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
        if str(content.pop("identity")) != self._identity:
            raise CheckpointError(
                f"{self._path} belongs to another run: its model, initial state, times "
                "or options differ. Resume with the same arguments, or use another file."
            )
        return content


def _may_be_overwritten(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) in (b"", MAGIC)
