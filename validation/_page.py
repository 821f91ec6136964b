"""The report of a run: one HTML page with claims, verdicts, tables, figures and times."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template

from _claims import Claim
from _pool import Outcome

from meanfield.app.formulas import html_of
from meanfield.app.literature import names_of

__all__ = ["Run", "page"]

TEMPLATE = Path(__file__).with_name("_page.html")


@dataclass(frozen=True)
class Run:
    """What was run, when and where.

    Parameters
    ----------
    outcomes : sequence of Outcome
        One for each script, those that were not run included.
    began : datetime
    seconds : float
        From the first script to the last.
    workers, threads : int
        Scripts at the same time, and threads of each.
    quick : bool
    version, environment : str
        Of meanfield, and that of the machine in words.
    """

    outcomes: Sequence[Outcome]
    began: datetime
    seconds: float
    workers: int
    threads: int
    quick: bool
    version: str
    environment: str


def page(claims: Sequence[Claim], run: Run) -> str:
    """The whole page, with its figures inside."""
    by_name = {outcome.script.name: outcome for outcome in run.outcomes}
    checked = [claim for claim in claims if claim.script in by_name]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        title=f"Validation of meanfield {escape(run.version)}",
        summary=_summary(checked, run),
        when=_when(run),
        wrong=_wrong(run),
        claims="\n".join(_claim(claim, by_name[claim.script], run.quick) for claim in checked),
        scripts="\n".join(_script(outcome, run.quick) for outcome in run.outcomes),
        times_note=_times_note(run),
        times=_times(run),
        environment=escape(run.environment),
    )


def _summary(claims: Sequence[Claim], run: Run) -> str:
    skipped = sum(outcome.skipped for outcome in run.outcomes)
    failing = sum(not outcome.holds for outcome in run.outcomes) - skipped
    comparisons = sum(outcome.comparisons for outcome in run.outcomes)
    verdict = f"{failing} of {len(run.outcomes)} scripts fail" if failing else "All hold"
    verdict += f", {skipped} skipped" if skipped else ""
    return (
        f'<span class="{"fails" if failing else "holds"}">{verdict}</span>: {len(claims)} claims, '
        f"{len(run.outcomes)} scripts, {comparisons} comparisons."
    )


def _when(run: Run) -> str:
    at_once = f"{run.workers} at a time" if run.workers > 1 else "one after the other"
    threads = f"{run.threads} thread{'s' * (run.threads > 1)} each"
    size = (
        "Quick: smaller sizes, fewer replicas and cases than the claims name. " if run.quick else ""
    )
    minutes, seconds = divmod(round(run.seconds), 60)
    return (
        f"{size}Begun {run.began:%Y-%m-%d %H:%M %Z}, {minutes} min {seconds} s, "
        f"scripts {at_once}, {threads}."
    )


def _wrong(run: Run) -> str:
    rows = [
        f"<li>{_verdict(outcome, run.quick)} {_link(outcome)} {escape(outcome.why)}</li>"
        for outcome in run.outcomes
        if not outcome.holds
    ]
    return "\n".join(["<ul>", *rows, "</ul>"]) if rows else ""


def _claim(claim: Claim, outcome: Outcome, quick: bool) -> str:
    text = html_of(claim.text)
    text += "".join(f'<br><span class="faint">{escape(name)}</span>' for name in names_of(claim))
    cells = text, html_of(claim.asked), html_of(claim.measured), _now(outcome), _link(outcome)
    cells += (_verdict(outcome, quick),)
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _now(outcome: Outcome) -> str:
    """The largest errors of this run, of all claims of the script together."""
    return "<br>".join(map(escape, outcome.measured))


def _link(outcome: Outcome) -> str:
    stem = outcome.script.path.stem
    return f'<a href="#{stem}"><code>{stem.replace("_", "_<wbr>")}</code></a>'


def _verdict(outcome: Outcome, quick: bool) -> str:
    """A quick run has checked a part of a claim."""
    kind = "holds" if outcome.holds else "faint" if outcome.skipped else "fails"
    part = ", in part" if outcome.holds and quick and outcome.script.takes("--quick") else ""
    return f'<span class="{kind}">{outcome.verdict}{part}</span>'


def _script(outcome: Outcome, quick: bool) -> str:
    script = outcome.script
    option = " --quick" if quick and script.takes("--quick") else ""
    facts = [f"{outcome.comparisons} comparisons"] if outcome.comparisons else []
    facts += [f"errors up to {outcome.used:.2g} of the allowed ones"] if outcome.used >= 0 else []
    facts += [f"{outcome.seconds:.1f} s"]
    facts += [f"<code>python validation/{script.name}{option}</code>"]
    why = f" ({escape(outcome.why)})" if outcome.why else ""
    asked, printed = escape(script.docstring), _printed(outcome.output)
    return (
        f'<section class="script" id="{script.path.stem}">\n'
        f"<h3>{escape(script.title)}</h3>\n"
        f'<p class="faint">{_verdict(outcome, quick)}{why} · {" · ".join(facts)}</p>\n'
        f"{_figure(outcome)}"
        f"<details><summary>What is asked</summary><pre>{asked}</pre></details>\n"
        f"<details open><summary>What it printed</summary><pre>{printed}</pre></details>\n"
        "</section>"
    )


def _figure(outcome: Outcome) -> str:
    if outcome.figure is None:
        return ""
    data = base64.b64encode(outcome.figure.read_bytes()).decode("ascii")
    alt = escape(f"Figure of {outcome.script.name}", quote=True)
    return f'<figure><img alt="{alt}" src="data:image/png;base64,{data}"></figure>\n'


def _printed(output: str) -> str:
    """What a script printed, with the rows marked that fail."""
    lines = output.rstrip().splitlines()
    return "\n".join(
        f'<span class="bad">{escape(line)}</span>' if "FAILS (" in line else escape(line)
        for line in lines
    )


def _times_note(run: Run) -> str:
    busy = sum(outcome.seconds for outcome in run.outcomes)
    return (
        f"{busy:.0f} s of all scripts together. <em>Stated</em> is what a script says of itself, "
        "on one core that does nothing else; the first run after an installation compiles as well."
    )


def _times(run: Run) -> str:
    slowest = max((outcome.seconds for outcome in run.outcomes), default=0.0) or 1.0
    rows = []
    for outcome in sorted(run.outcomes, key=lambda outcome: -outcome.seconds):
        stated = outcome.script.seconds(run.quick)
        rows.append(
            f'<tr><td>{_link(outcome)}</td><td class="number">{outcome.seconds:.1f}</td>'
            f'<td class="number">{f"{stated:.0f}" if stated < float("inf") else ""}</td>'
            f'<td class="bar"><span style="width: {100 * outcome.seconds / slowest:.1f}%">'
            "</span></td></tr>"
        )
    return "\n".join(rows)
