"""The command line of a validation script, its table, and its exit code."""

import argparse
import sys
import time
from collections.abc import Sequence

import meanfield as mf

__all__ = ["NOTHING", "SKIPPED", "Report", "command_line", "skipped", "successful"]

SKIPPED = 77  # exit code of a script that has compared nothing
NOTHING = "Nothing was compared:"

BEGAN = time.perf_counter()


def command_line(doc: str, quick: str = "", figure: str = "") -> argparse.Namespace:
    """The options --quick and, where the script draws, --figure FILE, with these words for help.

    The first line of `doc` describes the script.
    """
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=quick)
    if figure:
        parser.add_argument("--figure", metavar="FILE", help=figure)
    return parser.parse_args()


class Report:
    """Rows of predicted and measured values, each with the error it may have.

    Parameters
    ----------
    columns : sequence of str
        Headings of the labels that come before the numbers.
    digits : int
        Decimals of predicted and measured values.
    """

    def __init__(self, columns: Sequence[str], digits: int = 10):
        self._columns, self._digits = columns, digits
        self._rows: list[tuple[str, ...]] = []
        self._failed = 0
        self._worst: dict[str, float] = {}

    def compare(
        self, *labels, predicted, measured, tolerance, relative=False, random=False
    ) -> None:
        """Add a row; it holds if |measured - predicted| <= tolerance (* |predicted|).

        A relative error is taken only where the predicted value is not zero. Random errors have a
        tolerance of their own in each row, and are summed up relative to it.
        """
        relative = relative and predicted != 0
        error = abs(measured - predicted) / (abs(predicted) if relative else 1)
        holds = bool(error <= tolerance)  # nan fails
        self._failed += not holds
        kind = f"{'relative' if relative else 'absolute'} error, allowed {tolerance:.1e}"
        kind, size = ("random error, allowed 1", error / tolerance) if random else (kind, error)
        self._worst[kind] = max(self._worst.get(kind, 0.0), float(size))
        numbers = (f"{float(value):.{self._digits}g}" for value in (predicted, measured))
        verdict = "" if holds else f"FAILS (allowed {tolerance:.1e})"
        self._rows.append((*map(str, labels), *numbers, f"{error:.1e}", verdict))

    def verdict(self) -> int:
        """Print the table; the exit code: 0 if every row holds, otherwise 1."""
        head = (*self._columns, "predicted", "measured", "error", "")
        widths = [max(map(len, column)) for column in zip(head, *self._rows, strict=True)]
        for row in (head, *self._rows):
            cells = (
                cell.ljust(width) if i < len(self._columns) else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            print("  ".join(cells).rstrip())
        for kind, worst in self._worst.items():
            print(f"largest {kind}: {worst:.1e}")
        seconds = time.perf_counter() - BEGAN
        outcome = f"{self._failed} FAIL" if self._failed else "all hold"
        print(f"{len(self._rows)} comparisons, {outcome}, in {seconds:.1f} s")
        return 1 if self._failed or not self._rows else 0


def successful(run: mf.Solution) -> mf.Solution:
    """The run itself if it did what was asked; otherwise the script ends with exit code 1."""
    if not run.success:
        sys.exit(f"A run ended with status {run.status!r}: {run.message}")
    return run


def skipped(why: str) -> int:
    """Say that nothing was compared, and why; the exit code for that, which is no verdict."""
    print(f"{NOTHING} {why}")
    return SKIPPED
