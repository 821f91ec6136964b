"""Checkpoints: one file with everything a run needs to go on, sealed with a checksum.

    CHECKPOINT_MAGIC (16 bytes) | SHA-256 of the payload (32 bytes) | payload

The payload is a .npz archive of arrays and of the identity of the run: a digest of the model, the
initial state and the options, with functions by their code. A file that is incomplete, altered, or
written for another run is refused.
"""

import hashlib
import json
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from ..core.annotations import JsonTable, Snapshot
from ..core.checks import boolean, path_of
from ..core.errors import CheckpointError, StorageError, StorageWarning
from ..core.files import Lock, check_writable, write_whole
from ..core.forms import NON_NEGATIVE
from ..results.files import archived, unarchived
from ..results.provenance import Origin

CHECKPOINT_MAGIC = b"meanfield ckpt15"


class Keeper(ExitStack):
    """Writer and reader of the checkpoint of one run; without a path it does nothing.

    The file is locked against other runs until the ``with`` block of the keeper ends.

    Parameters
    ----------
    checkpoint : path or None
        File of the checkpoint; None writes none.
    checkpoint_every : float
        Seconds of wall time between two checkpoints.
    resume : bool
        Whether the run continues from the file, if it exists. If False, an existing file must be
        empty.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.
    """

    def __init__(self, checkpoint: Any, checkpoint_every: Any, resume: Any):
        """Check the options of checkpoints; ValueError for resume without a path."""
        super().__init__()
        self._every = NON_NEGATIVE.check("checkpoint_every", checkpoint_every)
        self._resume = boolean("resume", resume)
        if self._resume and checkpoint is None:
            raise ValueError("resume=True needs checkpoint=PATH, the file to resume from.")
        self.path = None if checkpoint is None else path_of("checkpoint", checkpoint).absolute()

    def opened(self, identity: JsonTable) -> dict[str, np.ndarray]:
        """Lock the file, and return the arrays to resume from by name; {} for a new run.

        Parameters
        ----------
        identity : dict
            Objects that determine the result, see `digest`. They must be the same when the run is
            resumed.

        Raises
        ------
        CheckpointError
            If the file is damaged, belongs to another run, is no checkpoint, cannot be written, or
            is in use by another run; if `digest` cannot describe an object of `identity`.
        """
        path = self.path
        if path is None:
            return {}
        try:
            check_writable(path)
            self.enter_context(Lock(path))
        except StorageError as error:
            raise CheckpointError(f"No checkpoint can be kept: {error}") from error
        exists = path.exists()
        if exists and not self._resume and path.stat().st_size:
            what, way = "is not a checkpoint", ""
            if is_checkpoint(path):
                what, way = "is the checkpoint of an earlier run", "Continue it with resume=True. "
            raise CheckpointError(
                f"{path} {what}: it would be overwritten. {way}Choose another name, or remove it."
            )
        self._origin = Origin(identity, "run", "checkpoint")
        self._last = time.monotonic()
        return self._load(path) if exists and self._resume else {}

    def save_now_and_then(self, arrays: Callable[[], Snapshot]) -> None:
        """Save the arrays that `arrays()` returns, if the last checkpoint is old enough."""
        if self.path is not None and time.monotonic() - self._last >= self._every:
            self.save(arrays)

    def save(self, arrays: Callable[[], Snapshot]) -> None:
        """Write the arrays that `arrays()` returns, replacing the previous checkpoint atomically.

        If that fails, for instance on a full disk, a warning is issued and the previous checkpoint
        stays; the run goes on.
        """
        if self.path is None:
            return
        payload = archived({"origin": json.dumps(self._origin.plain), **arrays()})
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
        """Arrays saved in a file; CheckpointError if it is damaged or belongs to another run."""
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
        content = unarchived(payload)
        self._origin.check(path, json.loads(str(content.pop("origin"))))
        return content


def is_checkpoint(path: Path) -> bool:
    """True if a file is a checkpoint."""
    with open(path, "rb") as file:
        return file.read(len(CHECKPOINT_MAGIC)) == CHECKPOINT_MAGIC
