"""The store of a sweep: the outcomes of each batch of points, on disk as soon as they are computed.

Points are identified by their keys, so a store also serves larger, smaller or other grids of the
same function. It is one file, to which only the process that runs the sweep writes; workers need no
access to it:

    STORE_MAGIC (16 bytes) | record | record | ...
    record: RECORD_MARK (8 bytes) | length of payload (8) | SHA-256 of payload (32) | payload

The first record identifies the sweep. A killed process leaves a truncated record at the end, which
is removed when the file is read again. Damaged records are ignored with a warning, and their points
are run again.
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

from ..core import system
from ..core.errors import CheckpointError, StorageError, StorageWarning
from ..core.files import Lock, check_writable, write_whole
from ..results.provenance import Origin

STORE_MAGIC = b"meanfield sweep3"
RECORD_MARK = b"\xf3record\n"
RECORD_HEAD = len(RECORD_MARK) + 8 + 32  # bytes before the payload
FLUSH_INTERVAL = 1.0  # seconds between calls of fsync


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
        """Store of the outcomes of a sweep in a file; in memory if `path` is None."""
        self.path = path
        self.payloads: list[bytes] = []  # of all records after the first
        self._identity, self._waiting = identity, bytearray()
        self._lock: Lock | None = None
        self._file, self._flushed = -1, time.monotonic()
        self._first, self._size = b"", 0  # the first record, and the bytes that are ours

    def __enter__(self) -> Self:
        """Lock the file, read its outcomes and open it; CheckpointError if it cannot be."""
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
        """Store the outcomes of a batch.

        If that fails, for instance on a full disk, the sweep continues with a warning, and this
        record is written together with the next one.
        """
        self.payloads.append(payload)
        if self._file >= 0:
            self._waiting += _record(payload)
            self._write()

    def _open(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | system.OPEN_FLAGS)
        self._size = os.fstat(self._file).st_size

    def _write(self) -> None:
        """Write the pending records, all or nothing, if the file is unchanged."""
        assert self.path is not None
        self._check_file(self.path)
        if not self._waiting or self._file < 0:
            return
        size = os.fstat(self._file).st_size
        try:
            data = memoryview(self._waiting)
            while data:
                data = data[os.write(self._file, data) :]
            if time.monotonic() - self._flushed > FLUSH_INTERVAL:
                os.fsync(self._file)
                self._flushed = time.monotonic()
        except OSError as error:
            os.ftruncate(self._file, size)
            _warn(
                f"{self.path} could not be written: {error.strerror}. The sweep continues; these "
                "results are written with the next ones"
            )
        else:
            data.release()
            self._size += len(self._waiting)
            self._waiting = bytearray()

    def _check_file(self, path: Path) -> None:
        """Check that the file still exists and is complete; otherwise warn and rewrite it.

        A file that replaced it is not overwritten: no more results are stored.
        """
        current, fault, lost = os.fstat(self._file), "", False
        try:
            entry = os.stat(path)
            if (entry.st_dev, entry.st_ino) != (current.st_dev, current.st_ino):
                fault = "was replaced by another file during the sweep; no more results are stored"
            elif current.st_size < self._size:
                lost, fault = True, "was cut short during the sweep"
        except OSError:
            lost, fault = True, "was removed during the sweep"
        if not fault:
            return
        if lost:
            self._waiting.clear()
            with suppress(StorageError, OSError):
                write_whole(path, *self._contents())
                os.close(self._file)
                self._open(path)
                _warn(f"{path} {fault}. It was rewritten with all results")
                return
            fault += ", and results are no longer stored"
        os.close(self._file)
        self._file = -1
        _warn(f"{path} {fault}")

    def _contents(self) -> list[bytes]:
        """The complete contents of the file."""
        return [STORE_MAGIC, *map(_record, [self._first, *self.payloads])]

    def _read(self, path: Path) -> None:
        """Read the records of the file, or create it."""
        origin = Origin(self._identity, "sweep or study", "store")
        self._first = json.dumps(origin.plain).encode()
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise CheckpointError(f"{path} could not be read: {error.strerror}.") from error
        if content and not content.startswith(STORE_MAGIC):
            raise CheckpointError(
                f"{path} exists and is not the store of a sweep. Choose another name, or remove it."
            )
        records = list(_records(content))
        if content and (not records or records[0][0] != len(STORE_MAGIC)):
            raise CheckpointError(
                f"{path} is not an intact store: its beginning is damaged. Remove it and start the "
                "sweep again."
            )
        if records:
            origin.check(path, json.loads(records[0][1]))
        self.payloads, damaged, foreign = _of_origin(content, records, self._first)
        if foreign:
            _warn(
                f"{path} has {foreign} records of another sweep, whose store was appended to it; "
                "they are ignored"
            )
        if damaged:
            _warn(f"{path} is damaged at {damaged} positions; the points there are run again")
        payloads = [records[0][1], *self.payloads] if records else []
        size = len(STORE_MAGIC) + sum(RECORD_HEAD + len(payload) for payload in payloads)
        if not records or len(content) != size:
            write_whole(path, *self._contents())


def _warn(text: str) -> None:
    warnings.warn(f"{text}.", StorageWarning, stacklevel=5)


def _of_origin(
    content: bytes, records: list[tuple[int, bytes]], first: bytes
) -> tuple[list[bytes], int, int]:
    """The payloads of this sweep, the number of damaged gaps, and the number of foreign records.

    In stores that were appended to each other, the first record of each identifies the next ones.
    """
    payloads, damaged, foreign, end, current = [], 0, 0, len(STORE_MAGIC), True
    for number, (begin, payload) in enumerate(records):
        gap = content[end:begin]
        end = begin + RECORD_HEAD + len(payload)
        if payload.startswith(b'{"identity"'):
            current = json.loads(payload)["identity"] == json.loads(first)["identity"]
            damaged += number > 0 and gap != STORE_MAGIC
            continue
        damaged += bool(gap)
        current = current and STORE_MAGIC not in gap  # else a store without intact first record
        if current:
            payloads.append(payload)
        foreign += not current
    return payloads, damaged, foreign


def _record(payload: bytes) -> bytes:
    seal = hashlib.sha256(payload).digest()
    return b"".join([RECORD_MARK, len(payload).to_bytes(8, "little"), seal, payload])


def _records(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the positions of intact records and their payloads."""
    place = content.find(RECORD_MARK)
    while place >= 0:
        begin = place + RECORD_HEAD
        length = int.from_bytes(content[begin - 40 : begin - 32], "little")
        payload, seal = content[begin : begin + length], content[begin - 32 : begin]
        if len(payload) == length and hashlib.sha256(payload).digest() == seal:
            yield place, payload
            place = content.find(RECORD_MARK, begin + length)
        else:
            place = content.find(RECORD_MARK, place + 1)
