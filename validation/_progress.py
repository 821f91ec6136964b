"""The progress shown while scripts run, and the table of verdicts at the end."""

import sys
from collections.abc import Iterable, Sequence

from _pool import Outcome, Running
from tqdm.auto import tqdm

__all__ = ["Progress", "table"]

SHOWN = 12  # last lines of what a script printed that fails


class Progress:
    """A line for each script that ends, and below them a bar with those that run.

    The bar is shown on a terminal only.
    """

    def __init__(self, total: int):
        self._total, self._ended, self._hold = total, 0, 0
        self._bar = tqdm(
            total=total,
            disable=not sys.stderr.isatty(),
            bar_format="{n_fmt}/{total_fmt} |{bar:16}| {elapsed}{postfix}",
            dynamic_ncols=True,
        )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_exception) -> None:
        self._bar.close()

    def show(self, running: Sequence[Running], ended: Iterable[Outcome]) -> None:
        """Which scripts run, for how long, and how many hold; what failed is shown at once."""
        for outcome in ended:
            self._ended += 1
            self._hold += outcome.holds
            self._write(outcome)
            self._bar.update(1)
        names = "  ".join(f"{job.script.path.stem} {job.seconds:.0f} s" for job in running)
        self._bar.set_postfix_str(f"{self._hold} hold   {names}", refresh=True)

    def _write(self, outcome: Outcome) -> None:
        count = f"[{self._ended:>{len(str(self._total))}}/{self._total}]"
        lines = [f"{count} {_line(outcome)}"]
        if not outcome.holds:
            lines += [f"    | {line}" for line in outcome.output.splitlines()[-SHOWN:]]
        tqdm.write("\n".join(lines), file=sys.stdout)
        sys.stdout.flush()


def table(outcomes: Sequence[Outcome]) -> str:
    """Verdict, number of comparisons, seconds and script, one line each, and the sum."""
    hold = sum(outcome.holds for outcome in outcomes)
    lines = ["verdict    comparisons  seconds  script", *map(_row, outcomes)]
    comparisons = sum(outcome.comparisons for outcome in outcomes)
    return "\n".join([*lines, f"{hold} of {len(outcomes)} hold, with {comparisons} comparisons"])


def _row(outcome: Outcome) -> str:
    why = f": {outcome.why}" if outcome.why else ""
    numbers = f"{outcome.comparisons:>11}  {outcome.seconds:>7.1f}"
    return f"{outcome.verdict:<9}  {numbers}  {outcome.script.name}{why}"


def _line(outcome: Outcome) -> str:
    why = f" ({outcome.why})" if outcome.why else ""
    return f"{outcome.verdict:<9} {outcome.seconds:>6.1f} s  {outcome.script.path.stem}{why}"
