"""Runs every claim of docs/reference/claims.md: progress, verdicts, a report with figures.

    python validation/_run.py [--quick] [--workers N] [--only WORD ...]     # or: make validate
    python validation/_run.py [--row survey:theorem-5 ...] [--record]

`--row` runs what checks rows of the literature (`meanfield literature` lists them); `--record`
writes down verdicts, with date and version, and docs/reference/literature.md anew; it is for
the scripts and the package of one tree.

Scripts run in processes of their own, several at a time, longest first. A script without a line
in the table of claims fails, and so does a claim without a script. What they print and draw, and
`report.html`, are written to out/validation/. A script holds if it ends with 0 and its summaries
say that all comparisons hold; one whose optional packages are not installed is skipped, which is
no verdict. Exit code: 0 if all others hold, 1 if one fails, 130 after Ctrl-C, which stops
everything at once.
"""

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from _claims import Claim, Script, disagreements, read_claims, scripts_of
from _literature import write_page
from _page import Run, page
from _pool import Outcome, Running, run_scripts
from _progress import Progress, expected, of_claims, table
from _record import DIRTY, check, of_package, record, version
from _verdicts import FAILS, NOT_RUN, STOPPED

from meanfield.app.doctor import doctor, in_words
from meanfield.app.literature import VERDICTS, rows
from meanfield.core.errors import MeanfieldError

ROOT = Path(__file__).resolve().parents[1]
INTERRUPTED = 130


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="smaller sizes, fewer replicas, no figures"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="scripts at a time (all cores)")
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds for each script")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="scripts whose name has a word")
    parser.add_argument(
        "--row", nargs="+", metavar="KEY", help="what checks rows of the literature"
    )
    parser.add_argument(
        "--record", nargs="?", type=Path, const=VERDICTS, metavar="FILE", help="keep the verdicts"
    )
    parser.add_argument("--scripts", type=Path, default=ROOT / "validation", metavar="FOLDER")
    claims = ROOT / "docs/reference/claims.md"
    parser.add_argument("--claims", type=Path, default=claims, metavar="PAGE")
    parser.add_argument("--out", type=Path, default=ROOT / "out/validation", metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    if chosen.workers is not None and chosen.workers < 1:
        parser.error(f"--workers needs at least 1; got {chosen.workers}.")
    if chosen.timeout is not None and not chosen.timeout > 0:
        parser.error(f"--timeout needs a number of seconds above 0; got {chosen.timeout}.")
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = options(arguments)
    try:
        claims, scripts = read_claims(chosen.claims), scripts_of(chosen.scripts)
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    wrong = dict(disagreements(claims, scripts))
    if chosen.only or chosen.row:
        names = scripts_of_rows(chosen.row) if chosen.row else []
        claims, scripts, wrong = selected(chosen.only or [], names, claims, scripts, wrong)
    report = chosen.out / "report.html"
    try:
        if chosen.record:
            check(chosen.record, chosen.scripts, chosen.claims)
        prepare(report)
    except ValueError as error:
        sys.exit(str(error))
    for name, why in wrong.items():
        print(f"{FAILS}  {name}: {why}")
    run, interrupted = carry_out(scripts, wrong, chosen)
    report.write_text(page(claims, run), encoding="utf-8")
    if chosen.only or chosen.row:
        print(f"\n{of_claims(claims, run.outcomes)}")
    print(f"\n{table(run.outcomes)}, in {run.seconds:.0f} s\nReport: {report}")
    if chosen.record:
        record(chosen.record, run)
        if of_package(chosen.record):
            write_page()
        if run.version.endswith(DIRTY):
            print(f"Recorded as {run.version}: the code has changes that are not committed.")
    if interrupted:
        print("Interrupted: what was still running has been stopped.")
        return INTERRUPTED
    return 0 if all(outcome.holds or outcome.skipped for outcome in run.outcomes) else 1


def carry_out(
    scripts: list[Script], wrong: dict[str, str], chosen: argparse.Namespace
) -> tuple[Run, bool]:
    """Run the scripts; what came of it, and whether it was interrupted."""
    cores, code = usable_cores(), version()
    workers = min(chosen.workers or cores, max(len(scripts), 1))
    threads = max(1, cores // workers)
    print(f"{len(scripts)} scripts, {workers} at a time, threads of each: {threads}.", end=" ")
    print(expected(scripts, chosen.quick, workers), flush=True)
    began, start = datetime.now().astimezone(), time.perf_counter()
    ended, interrupted = gather(scripts, chosen, workers, threads)
    seconds = time.perf_counter() - start
    names = sorted({script.name for script in scripts} | set(wrong))
    outcomes = [judged(Script(chosen.scripts / name), ended, wrong) for name in names]
    if version() != code:  # somebody has worked on it meanwhile
        code = code.removesuffix(DIRTY) + DIRTY
    quick, words = chosen.quick, in_words(doctor())
    return Run(outcomes, began, seconds, workers, threads, quick, code, words), interrupted


def prepare(report: Path) -> None:
    """Make the folders of what a run writes, see that files can be written there, and take the
    report of an earlier run away.
    """
    out = report.parent
    try:
        for folder in (out, out / "output", out / "figures"):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        report.unlink(missing_ok=True)
    except OSError as error:
        raise ValueError(f"--out {out} cannot be written: {error}.") from error


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def scripts_of_rows(keys: Sequence[str]) -> list[str]:
    """The scripts in this folder that check rows of the literature."""
    try:
        found = [row for key in keys for row in rows(key) if row.key == key]
    except MeanfieldError as error:
        sys.exit(str(error))
    named = [script for row in found for script in row.scripts if "/" not in script]
    if not named:
        sys.exit(
            f"No script of validation/ checks {' or '.join(keys)}: see `meanfield literature`."
        )
    return named


def selected(
    words: Sequence[str],
    names: Sequence[str],
    claims: list[Claim],
    scripts: list[Script],
    wrong: dict[str, str],
) -> tuple[list[Claim], list[Script], dict[str, str]]:
    """What concerns scripts whose name contains one of the words, or is one of the names."""

    def wanted(name: str) -> bool:
        return name in names or any(word in name for word in words)

    known = [script.name for script in scripts]
    none = [word for word in words if not any(word in name for name in known)]
    none += [name for name in names if name not in known]
    if none:
        there = ", ".join(script.path.stem for script in scripts)
        sys.exit(f"No script has {' or '.join(none)} in its name. There are: {there}.")
    claims = [claim for claim in claims if wanted(claim.script)]
    found = [script for script in scripts if wanted(script.name)]
    return claims, found, {name: why for name, why in wrong.items() if wanted(name)}


def stop(*_signal) -> None:
    """Ctrl-C, or a request to end, whichever way the runner was started."""
    raise KeyboardInterrupt


def gather(
    scripts: list[Script], chosen: argparse.Namespace, workers: int, threads: int
) -> tuple[dict[str, Outcome], bool]:
    """Outcomes by name of the script, and whether Ctrl-C or a request to end came first."""
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, stop)
    ended: dict[str, Outcome] = {}
    running: list[Running] = []
    states = run_scripts(
        scripts, chosen.out, workers=workers, threads=threads,
        quick=chosen.quick, time_limit=chosen.timeout,
    )  # fmt: skip
    try:
        with closing(states), Progress(len(scripts), chosen.quick) as progress:
            for running, news in states:
                ended |= {outcome.script.name: outcome for outcome in news}
                progress.show(running, news)
    except KeyboardInterrupt:
        ended |= {job.script.name: job.ended(STOPPED) for job in running}
        return ended, True
    return ended, False


def judged(script: Script, ended: dict[str, Outcome], wrong: dict[str, str]) -> Outcome:
    """The outcome of a script; it fails where claims and scripts do not match."""
    found = ended.get(script.name, Outcome(script, NOT_RUN))
    why = wrong.get(script.name)
    return replace(found, verdict=FAILS, why=why) if why else found


if __name__ == "__main__":
    sys.exit(main())
