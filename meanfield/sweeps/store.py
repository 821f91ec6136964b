"""The store of a sweep: what came of each batch of points, on disk as soon as it is known.

Points are found by their keys, so that a store serves other grids of the same function too, larger
ones or parts. It is one file, to which only the process writes that runs the sweep, so that workers
need not see it:

    MAGIC (16 bytes) | record | record | ...
    record: MARK (8 bytes) | length of the payload (8) | SHA-256 of the payload (32) | payload

The first record says whose store it is. A process that is killed leaves a record cut short at the
end, which is removed when the file is read again. Records that were damaged are left out, with a
warning, and their points are run again.
"""

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from ..core.errors import CheckpointError, StorageError, StorageWarning
from ..core.files import Lock, check_writable, write_whole
from ..core.identity import digest
from ..results.provenance import versions

MAGIC = b"meanfield sweep2"
MARK = b"\xf3record\n"
HEAD = len(MARK) + 8 + 32  # bytes of a record before its payload
FLUSHED = 1.0  # seconds after which records are forced from the system's memory to disk


class Store:
    """The records of one sweep; within the block no other run may use the file.

    Parameters
    ----------
    path : Path or None
        None keeps the records in memory only.
    identity : dict
        What determines the results, see `digest`.

    Raises
    ------
    CheckpointError
        If the file is another sweep's, no store, damaged at its beginning, cannot be written, or is
        in use by another run; if `identity` cannot be told from others.

    Warns
    -----
    StorageWarning
        If records are damaged, or were written with other versions of libraries.
    """

    def __init__(self, path: Path | None, identity: dict[str, Any]):
        self.path = path
        self.payloads: list[bytes] = []  # of all records after the first
        self._identity, self._waiting = identity, bytearray()
        self._lock: Lock | None = None
        self._file, self._flushed = -1, time.monotonic()
        self._first, self._size = b"", 0  # the first record, and the bytes that are ours

    def __enter__(self) -> Self:
        if self.path is None:
            return self
        try:
            check_writable(self.path)
            self._lock = Lock(self.path)
        except StorageError as error:
            raise CheckpointError(f"No results can be kept: {error}") from error
        try:
            self._read(self.path)
            self._open(self.path)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._file >= 0:
            self._write()
        if self._file >= 0:
            with suppress(OSError):
                os.fsync(self._file)
            os.close(self._file)
        if self._lock is not None:
            self._lock.release()

    def add(self, payload: bytes) -> None:
        """Keep what came of a batch.

        Where that fails, on a full disk for instance, the sweep goes on with a warning, and this
        record is written with the next one.
        """
        self.payloads.append(payload)
        if self._file >= 0:
            self._waiting += _record(payload)
            self._write()

    def _open(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size = os.fstat(self._file).st_size

    def _write(self) -> None:
        """Write the records that wait, all or nothing, once the file is found as it was left."""
        assert self.path is not None
        self._look(self.path)
        if not self._waiting or self._file < 0:
            return
        before = os.fstat(self._file).st_size
        try:
            left = memoryview(self._waiting)
            while left:
                left = left[os.write(self._file, left) :]
            if time.monotonic() - self._flushed > FLUSHED:
                os.fsync(self._file)
                self._flushed = time.monotonic()
        except OSError as error:
            os.ftruncate(self._file, before)
            warnings.warn(
                f"{self.path} could not be written: {error.strerror}. The sweep goes on; these "
                "results are written with the next ones.",
                StorageWarning,
                stacklevel=3,
            )
        else:
            left.release()
            self._size += len(self._waiting)
            self._waiting = bytearray()

    def _look(self, path: Path) -> None:
        """See whether the file is still there and whole; warn, and write it anew, if it is not.

        A file that another one has replaced is not overwritten: nothing more is kept.
        """
        mine = os.fstat(self._file)
        try:
            there: os.stat_result | None = os.stat(path)
        except OSError:
            there = None
        if there is not None and (there.st_dev, there.st_ino) != (mine.st_dev, mine.st_ino):
            os.close(self._file)
            self._file = -1
            _warn(f"{path} was replaced by another file while the sweep ran: no more is kept there")
        elif there is None or mine.st_size < self._size:
            what = "removed" if there is None else "cut short"
            self._waiting.clear()
            with suppress(StorageError, OSError):
                write_whole(path, *self._whole())
                os.close(self._file)
                self._open(path)
                _warn(
                    f"{path} was {what} while the sweep ran. It was written anew, with all results"
                )
                return
            os.close(self._file)
            self._file = -1
            _warn(f"{path} was {what} while the sweep ran, and cannot be written: no more is kept")

    def _whole(self) -> list[bytes]:
        """All that the file has to hold."""
        return [MAGIC, *map(_record, [self._first, *self.payloads])]

    def _read(self, path: Path) -> None:
        """The records that are there; a new file where there is none."""
        try:
            identity = digest(self._identity)
        except (TypeError, ValueError) as error:  # as of an integer that Python does not print
            raise CheckpointError(
                f"{error}: no sweep with it can be resumed. Leave store out, or hold the numbers, "
                "arrays and Python functions that it is made of."
            ) from error
        self._first = json.dumps({"identity": identity, "versions": versions()}).encode()
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise CheckpointError(f"{path} could not be read: {error.strerror}.") from error
        if content and not content.startswith(MAGIC):
            raise CheckpointError(
                f"{path} exists and is not the store of a sweep: it would be overwritten. Choose "
                "another name, or remove it."
            )
        found = list(_records(content))
        if content and (not found or found[0][0] != len(MAGIC)):
            raise CheckpointError(
                f"{path} is not an intact store: its beginning was altered. Remove it, and start "
                "the sweep again."
            )
        if found:
            self._check(path, json.loads(found[0][1]), json.loads(self._first))
        self.payloads, damaged, others = _of_identity(content, found, identity)
        if others:
            warnings.warn(
                f"{path} has {others} records of another sweep, whose store was appended to it: "
                "they are left out.",
                StorageWarning,
                stacklevel=4,
            )
        if damaged:
            warnings.warn(
                f"{path} is damaged at {damaged} places: what came of points there is left out, "
                "and they are run again.",
                StorageWarning,
                stacklevel=4,
            )
        if not found:
            write_whole(path, *self._whole())
            return
        kept = [found[0][1], *self.payloads]
        if len(content) != len(MAGIC) + sum(HEAD + len(payload) for payload in kept):
            write_whole(path, *self._whole())

    @staticmethod
    def _check(path: Path, then: dict[str, Any], now: dict[str, Any]) -> None:
        """Raise CheckpointError for the store of another sweep; warn of other versions."""
        if then["identity"] != now["identity"]:
            raise CheckpointError(
                f"{path} belongs to another sweep, whose function or rng differ. Resume "
                "with the same ones, or use another file."
            )
        old, new = then["versions"], now["versions"]
        changed = [f"{n} {old.get(n)} -> {new[n]}" for n in new if new[n] != old.get(n)]
        if changed:
            warnings.warn(
                f"{path} was written with other versions, {', '.join(changed)}: the last bits of "
                "its results may not be those of an unbroken sweep.",
                StorageWarning,
                stacklevel=5,
            )


def _warn(text: str) -> None:
    warnings.warn(f"{text}.", StorageWarning, stacklevel=5)


def _of_identity(
    content: bytes, found: list[tuple[int, bytes]], identity: str
) -> tuple[list[bytes], int, int]:
    """The payloads of this sweep, at how many places the file is damaged, and records of others.

    Where stores were appended to each other, the first record of each says whose the next ones are.
    """
    payloads, damaged, others, end, mine = [], 0, 0, len(MAGIC), True
    for number, (begin, payload) in enumerate(found):
        gap = content[end:begin]
        end = begin + HEAD + len(payload)
        if payload.startswith(b'{"identity"'):
            mine = json.loads(payload)["identity"] == identity
            damaged += number > 0 and gap != MAGIC
            continue
        damaged += bool(gap)
        mine = mine and MAGIC not in gap  # of another store, whose first record is damaged
        if mine:
            payloads.append(payload)
        others += not mine
    return payloads, damaged, others


def _record(payload: bytes) -> bytes:
    seal = hashlib.sha256(payload).digest()
    return b"".join([MARK, len(payload).to_bytes(8, "little"), seal, payload])


def _records(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Where intact records begin, and their payloads."""
    at = content.find(MARK)
    while at >= 0:
        length = int.from_bytes(content[at + len(MARK) : at + len(MARK) + 8], "little")
        payload = content[at + HEAD : at + HEAD + length]
        seal = content[at + HEAD - 32 : at + HEAD]
        if len(payload) == length and hashlib.sha256(payload).digest() == seal:
            yield at, payload
            at = content.find(MARK, at + HEAD + length)
        else:
            at = content.find(MARK, at + 1)
