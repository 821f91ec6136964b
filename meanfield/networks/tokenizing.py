"""Program that tokenises texts by a tokenizer.json, in a process that `tokenizer` starts.

It imports nothing of meanfield, and takes the sys.path of the process that started it. Input: one
line of JSON with texts, sys.path and limits, then the file. Output: one line of JSON.
"""

import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any

if sys.platform != "win32":  # memory is not limited there
    import resource

OUT_OF_TIME = getattr(signal, "SIGPROF", signal.NSIG)  # no signal on Windows, without such timers
TOKEN_LENGTH = 100  # characters to which the word of a token is cut


def encoded(tokenizer: Any, text: str, most: int) -> tuple[list[int], list[str], int]:
    """Ids and words of a text, truncated to `most`, and the number of ids before truncation.

    Special tokens around a text, such as [CLS] and [SEP], also surround a truncated one.
    """
    code = tokenizer.encode(text)
    count = len(code.ids)
    room = most - tokenizer.num_special_tokens_to_add(False) if count > most else 0
    if room > 0:
        code = tokenizer.encode(text, add_special_tokens=False)
        code.truncate(room)
        code = tokenizer.post_process(code)
    return list(code.ids[:most]), [word[:TOKEN_LENGTH] for word in code.tokens[:most]], count


def main() -> None:
    """Read the tokenizer and the texts, and answer; past its time OUT_OF_TIME ends the process.

    Windows has no such timer; the caller's clock ends the process there.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # discards what the package prints
    request = json.loads(sys.stdin.buffer.readline())
    content = sys.stdin.buffer.read()
    sys.path[:] = request["path"]
    if sys.platform != "win32":
        with suppress(ValueError, OSError):  # lower limits are set
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (request["memory"],) * 2)
        signal.setitimer(signal.ITIMER_PROF, request["seconds"])
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_str(content.decode())
        tokenizer.no_padding()
        tokenizer.no_truncation()
        texts = [encoded(tokenizer, text, request["most"]) for text in request["texts"]]
        answer: dict[str, Any] = {"texts": texts}
    except BaseException as error:  # a panic of the package is no Exception
        answer = {"error": _in_words(error)}
    print(json.dumps(answer), file=answers, flush=True)


def _in_words(error: BaseException) -> str:
    """Type and message of an error as one line of printable text, of 300 characters at most."""
    message = " ".join(str(error).split())[:300]
    printable = "".join(mark if mark.isprintable() else ascii(mark)[1:-1] for mark in message)
    return f"{type(error).__name__}: {printable}"


if __name__ == "__main__":
    main()
