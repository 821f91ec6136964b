"""Checkpoints: one file with everything a run needs to go on, sealed with a checksum.

    CHECKPOINT_MAGIC (16 bytes) | SHA-256 of the payload (32 bytes) | payload

The payload is a .npz archive of arrays and of the identity of the run: a digest of what is computed
with, functions by their code. A file that is cut short, altered, or written for another model,
initial state or options is refused.
"""

import hashlib
import io
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..core.checks import boolean, path_of
from ..core.errors import CheckpointError, StorageError, StorageWarning
from ..core.files import Lock, check_writable, write_whole
from ..core.forms import NON_NEGATIVE
from ..core.identity import digest
from ..results.provenance import versions

CHECKPOINT_MAGIC = b"meanfield ckpt11"


class Keeper:
    """Writes and reads the checkpoint of one run, if there is to be one.

    Within a ``with`` block, no other run may use the same file.

    Parameters
    ----------
    checkpoint : path or None
        None keeps none.
    checkpoint_every : float
        Seconds of wall time between two checkpoints.
    resume : bool
        Whether the file, if it exists, is read first; else it must be a checkpoint, or empty.

    Raises
    ------
    TypeError, ValueError
        For arguments that make no sense.
    """

    def __init__(self, checkpoint: Any, checkpoint_every: Any, resume: Any):
        self._every = NON_NEGATIVE.check("checkpoint_every", checkpoint_every)
        self._resume = boolean("resume", resume)
        if self._resume and checkpoint is None:
            raise ValueError("resume=True needs checkpoint=PATH, the file to resume from.")
        self.path = None if checkpoint is None else path_of("checkpoint", checkpoint).absolute()
        self._lock: Lock | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._lock is not None:
            self._lock.release()

    def opened(self, identity: dict[str, Any]) -> dict[str, np.ndarray]:
        """The arrays to go on from, none at the beginning of a run.

        Parameters
        ----------
        identity : dict
            What determines the result, see `digest`. It must agree on resuming.

        Raises
        ------
        CheckpointError
            If the file is damaged, belongs to another run, is no checkpoint, cannot be written, or
            is in use by another run; if `identity` cannot be told from others.
        """
        path = self.path
        if path is None:
            return {}
        try:
            check_writable(path)
            self._lock = Lock(path)
        except StorageError as error:
            raise CheckpointError(f"No checkpoint can be kept: {error}") from error
        there = path.exists()
        if there and not self._resume and not _may_be_overwritten(path):
            raise CheckpointError(
                f"{path} exists and is not a checkpoint: it would be overwritten. Choose another "
                "name, or remove it."
            )
        try:
            self._identity = digest(identity)
        except TypeError as error:
            raise CheckpointError(
                f"{error}: no run with it can be resumed. Leave checkpoint out, or hold the "
                "numbers, arrays and Python functions that it is made of."
            ) from error
        self._versions, self._last = json.dumps(versions()), time.monotonic()
        return self._load(path) if there and self._resume else {}

    def save_now_and_then(self, arrays: Callable[[], dict[str, Any]]) -> None:
        """Save what `arrays` returns if the last checkpoint is old enough."""
        if self.path is not None and time.monotonic() - self._last >= self._every:
            self.save(arrays)

    def save(self, arrays: Callable[[], dict[str, Any]]) -> None:
        """Write a checkpoint of what `arrays` returns, replacing the previous one atomically.

        Where that fails, on a full disk for instance, the run is worth more than its checkpoint: it
        goes on, with a warning, and the previous checkpoint stays.
        """
        if self.path is None:
            return
        buffer = io.BytesIO()
        content: dict[str, Any] = {"identity": self._identity, "versions": self._versions}
        np.savez(buffer, **content, **arrays())
        payload = buffer.getvalue()
        try:
            write_whole(self.path, CHECKPOINT_MAGIC, hashlib.sha256(payload).digest(), payload)
        except StorageError as error:
            warnings.warn(
                f"{error} The run goes on; the last checkpoint that could be written stays, and "
                f"the next is tried in {self._every:g} s.",
                StorageWarning,
                stacklevel=2,
            )
        self._last = time.monotonic()

    def _load(self, path: Path) -> dict[str, np.ndarray]:
        """The arrays that were saved; raises CheckpointError unless all is well."""
        try:
            sealed = path.read_bytes()
        except OSError as error:
            raise CheckpointError(f"{path} could not be read: {error.strerror}.") from error
        payload = sealed[48:]
        if sealed[:16] != CHECKPOINT_MAGIC or hashlib.sha256(payload).digest() != sealed[16:48]:
            raise CheckpointError(
                f"{path} is not an intact checkpoint: it was cut short or altered, or "
                "another program wrote it. Remove it and start the run again."
            )
        with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
            content = {name: arrays[name] for name in arrays.files}
        if str(content.pop("identity")) != self._identity:
            raise CheckpointError(
                f"{path} belongs to another run, whose arguments differ: a model, a start, times "
                "or options. Resume with the same ones, or use another file."
            )
        then, now = json.loads(str(content.pop("versions"))), json.loads(self._versions)
        changed = [f"{n} {then.get(n)} -> {now[n]}" for n in now if now[n] != then.get(n)]
        if changed:
            warnings.warn(
                f"{path} was written with other versions, {', '.join(changed)}: the last bits of "
                "the result may not be those of an unbroken run.",
                StorageWarning,
                stacklevel=2,
            )
        return content


def _may_be_overwritten(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(len(CHECKPOINT_MAGIC)) in (b"", CHECKPOINT_MAGIC)
