"""Tokenisation by a tokenizer.json in a separate process, as the file is not trusted.

The package tokenizers may panic, take all memory or never end, in code that Python cannot stop.
"""

import importlib.util
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from meanfield import StorageError

from .safetensors import bytes_of
from .tokenizing import OUT_OF_TIME

TOKENIZER_PROGRAM = Path(__file__).with_name("tokenizing.py")
LARGEST_TOKENIZER = 100_000_000  # bytes of a tokenizer.json; Gemma's has 35 million
# Bytes of memory of the process, and additional ones for each byte of the file and of texts
TOKENIZER_MEMORY, MEMORY_PER_BYTE = 2**30, 20
# Processor time, and the bytes of the file, and of texts, that add one second
TOKENIZER_SECONDS, FILE_PER_SECOND, TEXT_PER_SECOND = 8.0, 1e6, 1e5
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

    def __init__(self, path: Path):
        if importlib.util.find_spec("tokenizers") is None:
            raise ImportError(
                "tokenizer.json needs the package tokenizers: pip install tokenizers, or the extra "
                "meanfield[networks]."
            )
        self.content = bytes_of(path, LARGEST_TOKENIZER)
        self.encode([], 1)  # refuses a file that cannot be used

    def encode(self, texts: list[str], most: int) -> list[tuple[list[int], list[str], int]]:
        """Ids and words of texts, truncated to `most`, and the numbers of ids before truncation.

        Each call starts a process, which reads the file.
        """
        size, length = len(self.content), sum(map(len, texts))
        seconds = TOKENIZER_SECONDS + size / FILE_PER_SECOND + length / TEXT_PER_SECOND
        memory = TOKENIZER_MEMORY + MEMORY_PER_BYTE * (size + length)
        request = {"texts": texts, "most": most, "path": sys.path}
        request |= {"memory": memory, "seconds": seconds}
        try:
            done = subprocess.run(
                [sys.executable, "-I", str(TOKENIZER_PROGRAM)], stdout=subprocess.PIPE,
                input=json.dumps(request).encode() + b"\n" + self.content,
                stderr=subprocess.DEVNULL, env=os.environ | {"TOKENIZERS_PARALLELISM": "false"},
                timeout=CLOCK_FACTOR * seconds, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            reason = f"no answer in {CLOCK_FACTOR * seconds:.0f} s"
        else:
            answer = json.loads(done.stdout) if done.stdout.endswith(b"\n") else {}
            if "texts" in answer:
                return answer["texts"]
            reason = answer.get("error") or {
                -OUT_OF_TIME: f"it takes more than {seconds:.0f} s",
                -signal.SIGABRT: "it aborts, or needs too much memory",
            }.get(done.returncode, f"its process ends with {done.returncode}")
        raise StorageError(f"tokenizer.json cannot be used: {reason}.")

    def save(self, path: str | Path) -> None:
        """Write the contents of tokenizer.json to a path."""
        Path(path).write_bytes(self.content)
