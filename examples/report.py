"""Reports of examples: their figure, and rows measured / predicted / error / verdict."""

import argparse
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from meanfield.app.formulas import plain

__all__ = ["FailedVerdict", "Row", "folder", "in_words", "print_table", "run_alone", "title"]

FORMULA = re.compile(r":math:`([^`]+)`|\.\. math::(.+?)(?=\n\n)", re.DOTALL)

WIDTHS = (52, 13, 13, 8)  # the first at most
HEAD = ("quantity", "measured", "predicted", "error")


class FailedVerdict(Exception):
    """A number is not what theory predicts."""


@dataclass(frozen=True)
class Row:
    """One number of an experiment beside what theory says.

    Attributes
    ----------
    quantity : str
    measured : float
    predicted : float or str
        A string where theory gives no number.
    tolerance : float, optional
        Largest error with which the claim holds. Without it the row is shown and not judged.
    relative : bool
        Whether the error is divided by the prediction.
    remark : str
        Stands in place of the verdict where there is none.
    """

    quantity: str
    measured: float
    predicted: float | str
    tolerance: float | None = None
    relative: bool = False
    remark: str = ""

    @property
    def error(self) -> float | None:
        """|measured - predicted|, or None where no number is predicted."""
        if isinstance(self.predicted, str):
            return None
        scale = abs(self.predicted) if self.relative else 1.0
        return float(abs(self.measured - self.predicted) / scale)

    @property
    def fails(self) -> bool:
        """Whether the claim is judged and does not hold."""
        return self.tolerance is not None and not self.error <= self.tolerance

    @property
    def verdict(self) -> str:
        if self.tolerance is None:
            return self.remark or "shown"
        allowed = f"<= {self.tolerance:.0e}" if self.tolerance else "exact"
        unit = " relative" if self.relative else ""
        return f"{'FAILS' if self.fails else 'holds'}  ({allowed}{unit})"

    def __str__(self) -> str:
        return self.line(WIDTHS[0])

    def line(self, width: int) -> str:
        """The row of a table whose first column has this width."""
        error = "" if self.error is None else f"{self.error:.1e}"
        cells = (self.quantity, _number(self.measured), _number(self.predicted), error)
        return f"{_line(cells, width)}  {self.verdict}"


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:d}" if isinstance(value, int) else f"{value:.7g}"


def _line(cells: Iterable[str], width: int) -> str:
    first, *others = cells
    return f"{first:<{width}}" + "".join(
        f" {cell:>{width}}" for cell, width in zip(others, WIDTHS[1:], strict=True)
    )


def print_table(sections: dict[str, list[Row]]) -> None:
    """One table for all experiments, a section for each."""
    longest = max((len(row.quantity) for rows in sections.values() for row in rows), default=0)
    width = min(max(longest, len(HEAD[0])), WIDTHS[0])
    print(f"{_line(HEAD, width)}  verdict")
    for title, rows in sections.items():
        print(f"\n{title}")
        for row in rows:
            print(row.line(width))


def title(text: str) -> str:
    """The first line of the docstring of an example."""
    return in_words(text).strip().splitlines()[0]


def in_words(text: str) -> str:
    """The docstring of an example for a terminal, its formulas as text."""

    def shown(found: re.Match) -> str:
        latex = " ".join((found[1] or found[2]).split())
        return ("" if found[1] else "    ") + plain(f"${latex}$")

    return FORMULA.sub(shown, text).replace("``", "")


def folder(description: str) -> Path:
    """The folder named by --out on the command line, made if it does not exist."""
    parser = argparse.ArgumentParser(
        description=in_words(description), formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out"), help="where figures and NetCDF files go (out)"
    )
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    return out


def run_alone(text: str, run: Callable[[Path], list[Row]]) -> None:
    """Run one example as a script.

    Parameters
    ----------
    text : str
        The docstring of the example.
    run : callable
        Takes a folder for figures and files; returns rows, or [] where there is only a figure.

    Raises
    ------
    FailedVerdict
        If a verdict fails.
    """
    out = folder(text)
    start = time.perf_counter()
    rows = run(out)
    if rows:
        print_table({title(text): rows})
    print(f"\n{time.perf_counter() - start:.1f} s; figures and NetCDF files are in {out}/")
    failed = [row.quantity for row in rows if row.fails]
    if failed:
        raise FailedVerdict(f"not as predicted: {'; '.join(failed)}")
