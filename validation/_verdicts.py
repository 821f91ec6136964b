"""Verdicts of scripts, from how they ended and what they printed.

A script holds if it ended by itself with 0 and each summary of its reports (see _report.py) is
"N comparisons, all hold", with at least one summary and no comparison that fails.
"""

import re
import signal
from typing import Any

from _report import NOTHING
from _report import SKIPPED as NO_VERDICT

__all__ = [
    "COMPARISONS",
    "ENDED",
    "FAILS",
    "HOLDS",
    "NOT_RUN",
    "SKIPPED",
    "STOPPED",
    "TIMED_OUT",
    "judge",
    "status",
]

HOLDS, FAILS, TIMED_OUT = "holds", "FAILS", "TIMED OUT"
STOPPED, NOT_RUN, SKIPPED = "stopped", "not run", "skipped"
ENDED = 78  # exit code of the process of a script that has come to its end with 0
COMPARISONS = re.compile(r"^(\d+) comparisons, (.+)$", re.MULTILINE)
MISSED = "FAILS (allowed"


def status(code: Any) -> Any:
    """The exit code of the process of a script that ended with `code`, of `sys.exit`.

    It is ENDED for 0, since a process that is left by `os._exit(0)` has exit code 0, and so has
    one that ends with 256.
    """
    if code is None or code == 0:
        return ENDED
    if isinstance(code, int) and (code == ENDED or not 0 < code < 256):
        return f"The script ended with {code}: use 0 where all hold, otherwise 1."
    return code


def judge(code: int, printed: str) -> tuple[str, str]:
    """The verdict on a script that ended, and why it does not hold.

    Parameters
    ----------
    code : int
        Exit code of the process, as `status` gives it; negative for a signal.
    printed : str
        All that the script printed.
    """
    summaries = [found[0] for found in COMPARISONS.finditer(printed)]
    contradicting = [line for line in summaries if not _all_hold(line)]
    contradicting += [line.strip() for line in printed.splitlines() if MISSED in line]
    if code == NO_VERDICT:
        why = [line for line in printed.splitlines() if line.startswith(NOTHING)]
        if summaries or contradicting:
            shown = (contradicting or summaries)[0]
            return FAILS, f"exit code {code}, that nothing was compared, after {shown!r}"
        if not why:
            return FAILS, f"exit code {code} without {NOTHING + ' why'!r}"
        return SKIPPED, why[-1]
    if code == 0:
        return FAILS, "left before its end, with exit code 0"
    if code != ENDED:
        return FAILS, f"exit code {code}" if code > 0 else f"killed by {_signal(-code)}"
    if contradicting:
        return FAILS, f"exit code 0 after {contradicting[0]!r}"
    if not summaries:
        return FAILS, "no summary, 'N comparisons, all hold', was printed"
    return HOLDS, ""


def _all_hold(summary: str) -> bool:
    count, outcome = COMPARISONS.fullmatch(summary).groups()
    return int(count) > 0 and re.fullmatch(r"all hold(, in [\d.]+ s)?", outcome) is not None


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # one of real time
        return f"signal {number}"
