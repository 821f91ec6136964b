"""Tokenisation by a tokenizer.json in a separate process, as the file is not trusted.

The package tokenizers may panic, take all memory or never end, in code that Python cannot stop.
"""

import importlib.util
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from meanfield import StorageError
from meanfield.extending import Json, JsonTable, Parameters

from .safetensors import bytes_of
from .tokenizing import OUT_OF_TIME

TOKENIZER_PROGRAM = Path(__file__).with_name("tokenizing.py")
LARGEST_TOKENIZER = 100_000_000  # bytes of a tokenizer.json; Gemma's has 35 million
# Bytes of memory of the process, and additional ones for each byte of the file
TOKENIZER_MEMORY, MEMORY_PER_BYTE = 2**30, 20
# Processor time for each text, and the length of a text that adds one second
TOKENIZER_SECONDS, BYTES_PER_SECOND = 8.0, 1e5
CLOCK_FACTOR = 10  # limit of wall-clock time over that of processor time, for a busy machine


class Tokenizer:
    """The tokenizer of a folder, without padding and truncation.

    Parameters
    ----------
    path : Path
        Path of the tokenizer.json.

    Raises
    ------
    ImportError
        Without the package tokenizers.
    StorageError
        For a file that cannot be read, or needs more than its bounds of memory and time, 1 GB and
        8 s plus parts that grow with its size.
    """

    # The process is started when it is needed, also after a fork, by its owner
    _process: "subprocess.Popen[bytes] | None" = None
    _owner = 0
    _end: "weakref.finalize[Any, Any] | None" = None

    def __init__(self, path: Path):
        if importlib.util.find_spec("tokenizers") is None:
            raise ImportError(
                "tokenizer.json needs the package tokenizers: pip install tokenizers, or the extra "
                "meanfield[networks]."
            )
        self.content = bytes_of(path, LARGEST_TOKENIZER)
        self._lock = threading.Lock()
        self._running()

    def encode(self, text: str, most: int) -> tuple[list[int], list[str], int]:
        """Ids and words of a text, truncated to `most`, and the number of ids before truncation."""
        seconds = TOKENIZER_SECONDS + len(text) / BYTES_PER_SECOND
        with self._lock:
            process = self._running()
            answer = self._answer(process, seconds, text=text, most=most)
        return answer["ids"], answer["words"], answer["whole"]

    def save(self, path: str | Path) -> None:
        """Write the contents of tokenizer.json to a path."""
        Path(path).write_bytes(self.content)

    def __getstate__(self) -> Parameters:
        return {"content": self.content}

    def __setstate__(self, state: Parameters) -> None:
        self.content, self._lock = state["content"], threading.Lock()

    def _running(self) -> "subprocess.Popen[bytes]":
        """The process that tokenises; it is started if there is none yet in this process."""
        if self._process is not None and self._owner == os.getpid():
            return self._process
        command, environment = [sys.executable, "-I", str(TOKENIZER_PROGRAM)], os.environ
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment | {"TOKENIZERS_PARALLELISM": "false"},
        )  # fmt: skip
        self._process, self._owner = process, os.getpid()
        self._end = weakref.finalize(self, _end_process, process, self._owner)
        seconds = TOKENIZER_SECONDS + len(self.content) / BYTES_PER_SECOND / 10
        memory = TOKENIZER_MEMORY + MEMORY_PER_BYTE * len(self.content)
        begin = {"size": len(self.content), "path": sys.path, "memory": memory}
        self._answer(process, seconds, self.content, **begin)
        return process

    def _answer(
        self, process: "subprocess.Popen[bytes]", seconds: float, also: bytes = b"", **request: Json
    ) -> JsonTable:
        """Send the values `request`, then the bytes `also`, to the process, and return its answer.

        Raises StorageError for an error in the process, and for more than `seconds` of processor
        time.
        """
        try:
            line = _exchange(
                process, json.dumps(request | {"seconds": seconds}).encode() + b"\n" + also,
                CLOCK_FACTOR * seconds,
            )  # fmt: skip
        except BaseException:
            self._stop()
            raise
        if line.endswith(b"\n"):
            answer = json.loads(line)
            if "error" not in answer:
                return answer
            reason = answer["error"]
        else:
            code = process.wait() if not line else None
            reason = {
                -OUT_OF_TIME: f"it takes more than {seconds:.0f} s",
                -signal.SIGABRT: "it aborts, or needs too much memory",
                None: f"no answer in {CLOCK_FACTOR * seconds:.0f} s",
            }.get(code, f"its process ends with {code}")
        self._stop()
        raise StorageError(f"tokenizer.json cannot be used: {reason}.")

    def _stop(self) -> None:
        """End the process; the next text starts another."""
        if self._end is not None:
            self._end()
        self._process = None


def _end_process(process: "subprocess.Popen[bytes]", owner: int) -> None:
    """End a process and close its pipes; a fork of its owner only closes the pipes."""
    if owner == os.getpid():
        process.kill()
        process.wait()
    for pipe in filter(None, (process.stdin, process.stdout)):
        with suppress(OSError):  # unsent bytes, which the process no longer reads
            pipe.close()


def _exchange(process: "subprocess.Popen[bytes]", data: bytes, seconds: float) -> bytes:
    """Send bytes and read one line of the answer.

    Returns b"" if the process has ended, and b" " if no whole line came in `seconds`.
    """
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(data)
        process.stdin.flush()
    except BrokenPipeError:
        return b""
    answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    read_line = process.stdout.readline
    threading.Thread(target=lambda: answers.put(read_line()), daemon=True).start()
    try:
        line = answers.get(timeout=seconds)
    except queue.Empty:
        return b" "
    return line if line.endswith(b"\n") else b""
