"""Run scripts as separate processes, several at a time, and report how each of them ended."""

import multiprocessing
import os
import re
import runpy
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import NoReturn

from _claims import Script
from _verdicts import COMPARISONS, FAILS, HOLDS, SKIPPED, TIMED_OUT, judge, status

from meanfield.app.doctor import THREAD_VARIABLES

__all__ = ["Outcome", "Running", "limit", "run_scripts"]

LARGEST = re.compile(r"^largest .*, allowed (\S+): (\S+)$", re.MULTILINE)
UNKNOWN = 1800.0  # seconds, for a script that does not say how long it takes

# Scripts are forks of one process. Where there are more scripts than workers, it first imports what
# most of them need, which takes two seconds; not on macOS, where a fork may not use libraries of
# the system that were loaded before.
FORKS = multiprocessing.get_context("forkserver")
PRELOADED = ["_preloaded"] if sys.platform == "linux" else []


@dataclass(frozen=True)
class Outcome:
    """How a script ended, what it printed, and where its figure is."""

    script: Script
    verdict: str
    why: str = ""
    seconds: float = 0.0
    output: str = ""
    figure: Path | None = None

    @property
    def holds(self) -> bool:
        return self.verdict == HOLDS

    @property
    def skipped(self) -> bool:
        """Whether it had nothing to compare, as a package that nobody needs was not installed."""
        return self.verdict == SKIPPED

    @property
    def comparisons(self) -> int:
        """How many the script has printed."""
        return sum(int(number) for number, _ in COMPARISONS.findall(self.output))

    @property
    def measured(self) -> list[str]:
        """The largest errors that the script has printed, each beside the one allowed."""
        return [found[0] for found in LARGEST.finditer(self.output)]

    @property
    def used(self) -> float:
        """The largest error, relative to the allowed one; nan if no error has been printed."""
        pairs = [(float(allowed), float(error)) for allowed, error in LARGEST.findall(self.output)]
        parts = [error / allowed if allowed else float(error and "inf") for allowed, error in pairs]
        return max(parts, default=float("nan"))


def limit(script: Script, quick: bool) -> float:
    """Seconds after which a script is stopped: two minutes and five times what it says it takes."""
    stated = script.seconds(quick)
    return 120 + 5 * stated if stated < float("inf") else UNKNOWN


@dataclass
class Running:
    """A script at work, in a session of its own: a signal reaches its children too."""

    script: Script
    process: BaseProcess
    output: Path
    figure: Path | None
    limit: float
    began: float = field(default_factory=time.perf_counter)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def kill(self) -> None:
        """Stop it and its children, at once."""
        if self.process.is_alive():
            with suppress(ProcessLookupError):  # it has no session yet, or has just ended
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
            self.process.join()

    def outcome(self) -> Outcome | None:
        """How it ended; None while it runs. One that is over its time is stopped."""
        code = self.process.exitcode
        if code is None and self.seconds <= self.limit:
            return None
        if code is None:
            self.kill()
            return self.ended(TIMED_OUT, f"stopped after {self.limit:.0f} s")
        verdict, why = judge(code, self.output.read_text(encoding="utf-8", errors="replace"))
        if verdict != HOLDS:
            return self.ended(verdict, why)
        if self.figure and not self.figure.exists():
            return self.ended(FAILS, "drew no figure")
        return self.ended(HOLDS)

    def ended(self, verdict: str, why: str = "") -> Outcome:
        """The outcome, with what has been printed and drawn."""
        printed = self.output.read_text(encoding="utf-8", errors="replace")
        figure = self.figure if self.figure and self.figure.exists() else None
        return Outcome(self.script, verdict, why, self.seconds, printed, figure)


def run_scripts(
    scripts: Sequence[Script],
    out: Path,
    *,
    workers: int = 1,
    threads: int = 1,
    quick: bool = False,
    time_limit: float | None = None,
    pause: float = 0.1,
) -> Iterator[tuple[list[Running], list[Outcome]]]:
    """Run all scripts, longest first, and yield several times a second how things stand.

    Parameters
    ----------
    scripts : sequence of Script
        Those that take ``--figure`` are given it, or ``--quick`` instead where that is asked for:
        to draw takes a second each.
    out : Path
        The folder of ``output/NAME.txt`` and ``figures/NAME.png``.
    workers, threads : int
        Scripts that run at the same time, and threads of each.
    time_limit : float, optional
        Seconds after which any script is stopped; by default `limit` of each.

    Yields
    ------
    running : list of Running
    ended : list of Outcome
        Those that ended since the last time. If the generator is closed, or interrupted, all that
        still runs is stopped, with what it has started and its temporary files.
    """
    waiting = deque(sorted(scripts, key=lambda script: -script.seconds(quick)))
    running: list[Running] = []
    preloaded = PRELOADED if len(scripts) > workers else []
    with (
        tempfile.TemporaryDirectory(prefix="validation-") as scratch,
        _server(threads, scratch, preloaded),
    ):
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    script = waiting.popleft()
                    seconds = limit(script, quick) if time_limit is None else time_limit
                    running.append(_start(script, out, quick, seconds))
                found = [(job, job.outcome()) for job in running]
                running[:] = [job for job, outcome in found if outcome is None]
                ended = [outcome for _, outcome in found if outcome is not None]
                yield list(running), ended
                if not ended:
                    time.sleep(pause)
        finally:
            for job in running:
                job.kill()


@contextmanager
def _server(threads: int, scratch: str, preloaded: list[str]) -> Iterator[None]:
    """The process that scripts are forks of, whose environment they have.

    Each library has as many threads as a worker, files go to `scratch`.
    """
    known, few = dict(os.environ), dict.fromkeys(THREAD_VARIABLES, str(threads))
    folders = [str(Path(__file__).parent), *filter(None, [known.get("PYTHONPATH")])]
    os.environ |= few | {"TMPDIR": scratch, "MPLBACKEND": "Agg", "PYTHONUNBUFFERED": "1"}
    os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    try:
        FORKS.set_forkserver_preload(preloaded)
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(known)
    yield


def run_script(path: Path, arguments: Sequence[str], output: Path) -> NoReturn:
    """Run a script as `python path arguments` does, in this process; what it prints to `output`.

    The process ends with the `status` of the script.
    """
    os.setsid()
    sys.stdout.flush()
    for source, flags, targets in (
        (os.devnull, os.O_RDONLY, (0,)),
        (output, os.O_WRONLY | os.O_TRUNC, (1, 2)),
    ):
        opened = os.open(source, flags)
        for target in targets:
            os.dup2(opened, target)
        os.close(opened)
    sys.argv, sys.path[0] = [str(path), *arguments], str(path.parent)
    sys.modules.pop("_report", None)  # which tells the time from its import on
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        sys.exit(status(end.code))
    sys.exit(status(0))


def _start(script: Script, out: Path, quick: bool, seconds: float) -> Running:
    output = out / "output" / f"{script.path.stem}.txt"
    figure = out / "figures" / f"{script.path.stem}.png" if script.takes("--figure") else None
    for path in filter(None, (output, figure)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # of an earlier run
    if quick and script.takes("--quick"):
        figure, arguments = None, ["--quick"]
    else:
        arguments = ["--figure", str(figure)] if figure else []
    output.touch()
    process = FORKS.Process(target=run_script, args=(script.path, arguments, output))
    process.start()
    return Running(script, process, output, figure, seconds)
