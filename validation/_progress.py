"""The progress shown while scripts run, and the tables of verdicts and of claims at the end."""

import sys
import time
from collections.abc import Iterable, Sequence

from _claims import Claim, Script
from _pool import Outcome, Running
from tqdm.auto import tqdm

from meanfield.app.formulas import plain
from meanfield.app.literature import names_of

__all__ = ["Progress", "expected", "of_claims", "table"]

SHOWN = 12  # last lines of what a script printed that fails
EVERY = 30.0  # seconds between signs of life where there is no terminal
WORTH = 60.0  # seconds, beyond which a quick run is offered


class Progress:
    """A line for each script that ends, and what runs, for how long, of how much.

    That is a bar on a terminal, and elsewhere a line every 30 seconds.
    """

    def __init__(self, total: int, quick: bool = False):
        self._total, self._ended, self._hold = total, 0, 0
        self._quick, self._told = quick, time.perf_counter()
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
        names = "  ".join(map(self._at_work, running))
        if self._bar.disable and names and time.perf_counter() - self._told > EVERY:
            self._told = time.perf_counter()
            print(f"running: {names}", flush=True)
        self._bar.set_postfix_str(f"{self._hold} hold   {names}", refresh=True)

    def _at_work(self, job: Running) -> str:
        stated = job.script.seconds(self._quick)
        of_all = f" of about {stated:.0f}" if stated < float("inf") else ""
        return f"{job.script.path.stem} {job.seconds:.0f}{of_all} s"

    def _write(self, outcome: Outcome) -> None:
        count = f"[{self._ended:>{len(str(self._total))}}/{self._total}]"
        lines = [f"{count} {_line(outcome)}"]
        if not outcome.holds:
            lines += [f"    | {line}" for line in outcome.output.splitlines()[-SHOWN:]]
        tqdm.write("\n".join(lines), file=sys.stdout)
        sys.stdout.flush()


def expected(scripts: Sequence[Script], quick: bool, workers: int) -> str:
    """About how long these scripts take, by what they say, and how to have it sooner."""
    seconds, sooner = _together(scripts, quick, workers), _together(scripts, True, workers)
    if not seconds:
        return "None says how long it takes."
    said = f"They take about {seconds:.0f} s, and longer when they first compile"
    if not quick and seconds > WORTH and sooner < seconds:
        said += f"; with --quick about {sooner:.0f} s (make validate QUICK=1)"
    return f"{said}."


def _together(scripts: Sequence[Script], quick: bool, workers: int) -> float:
    stated = [script.seconds(quick) for script in scripts]
    known = [seconds for seconds in stated if seconds < float("inf")]
    return max(sum(known) / workers, *known, 0.0)


def of_claims(claims: Sequence[Claim], outcomes: Sequence[Outcome]) -> str:
    """Each claim: what is asked, what the page says was measured; and what scripts measured now."""
    lines = []
    for outcome in outcomes:
        lines += [f"{outcome.script.name}: {outcome.verdict}"]
        for claim in claims:
            if claim.script == outcome.script.name:
                of_rows = "".join(f" [{name}]" for name in names_of(claim))
                lines += [f"  - {plain(claim.text)}{of_rows}"]
                lines += [f"    asked {plain(claim.asked)}; measured {plain(claim.measured)}"]
        lines += [f"  now: {line}" for line in outcome.measured]
    return "\n".join(lines)


def table(outcomes: Sequence[Outcome]) -> str:
    """Verdict, number of comparisons, seconds and script, one line each, and the sum."""
    hold = sum(outcome.holds for outcome in outcomes)
    lines = ["verdict    comparisons  seconds  script", *map(_row, outcomes)]
    comparisons = sum(outcome.comparisons for outcome in outcomes)
    skipped = sum(outcome.skipped for outcome in outcomes)
    said = f"{hold} of {len(outcomes)} hold" + (f", {skipped} skipped" if skipped else "")
    return "\n".join([*lines, f"{said}, with {comparisons} comparisons"])


def _row(outcome: Outcome) -> str:
    why = f": {outcome.why}" if outcome.why else ""
    numbers = f"{outcome.comparisons:>11}  {outcome.seconds:>7.1f}"
    return f"{outcome.verdict:<9}  {numbers}  {outcome.script.name}{why}"


def _line(outcome: Outcome) -> str:
    why = f" ({outcome.why})" if outcome.why else ""
    return f"{outcome.verdict:<9} {outcome.seconds:>6.1f} s  {outcome.script.path.stem}{why}"
