"""docs/reference/literature.md, from the table of the literature.

python validation/_literature.py    # writes the page again
"""

from collections import Counter
from pathlib import Path
from typing import Any

from _record import digest

from meanfield.app.literature import NOT_SHOWN, Row, last_runs, rows, sources

__all__ = ["page", "write_page"]

SCRIPTS = Path(__file__).resolve().parent
PAGE = SCRIPTS.parent / "docs" / "reference" / "literature.md"
VERDICTS = ("holds", "holds with a correction", "open", "not checked", NOT_SHOWN)
HEAD = """\
# The literature, statement by statement

The statements, figures, experiments and open questions of papers on Transformers in the mean-field
limit, each with our measurements and the scripts behind them. Statements are in our words and
[conventions](../theory/conventions.md). The formulas are on the page
[Equations](../theory/equations.md), the terms in the [glossary](glossary.md).

| verdict | meaning |
|---|---|
| **holds** | all measurements agree with the statement: evidence, not a proof |
| **holds with a correction** | the printed statement is false or imprecise; we correct it |
| **open** | the question is not settled; our measurements are given |
| **not checked** | the reason is given |
| **not shown** | the last recorded run of a script failed, or there is none |

`meanfield literature` lists the rows, `meanfield literature survey:theorem-5` prints one row, and
`meanfield literature WORD` prints the rows that contain a word. The row of a figure names the
example that draws it.

Scripts are in the folder `validation/` of the repository. The first command below runs one script,
the second one the scripts of a row, with smaller sizes. Both print tolerances and measured values:

```sh
python validation/long_context.py
make validate QUICK=1 VALIDATE_ARGS="--row survey:theorem-7"
```

*Asked* is the tolerance, *measured* the worst case of the full script. The page
[Claims](claims.md) sorts the same claims by subject. This page is generated from
`meanfield/app/literature.toml` (rows) and `docs/reference/claims.md` (numbers) by
`python validation/_literature.py`.
"""


def page() -> str:
    """The whole page."""
    every, runs = rows(), last_runs()
    parts = [HEAD, _overview(every)]
    for name, about in sources().items():
        of_source = [row for row in every if row.source == name]
        parts += [f"## {about.split(':')[0]}\n", about.partition(": ")[2] + "\n"]
        parts += [_row(row) for row in of_source]
    return "\n".join([*parts, _last_runs(every, runs)])


def write_page() -> None:
    """Write docs/reference/literature.md."""
    PAGE.write_text(page(), encoding="utf-8")


def _overview(every: list[Row]) -> str:
    lines = ["| source | " + " | ".join(VERDICTS) + " |", "|---" * (len(VERDICTS) + 1) + "|"]
    for name, about in sources().items():
        count = Counter(row.standing.split(":")[0] for row in every if row.source == name)
        numbers = " | ".join(str(count[verdict]) for verdict in VERDICTS)
        lines.append(f"| {about.split(':')[0]} | {numbers} |")
    return "\n".join([*lines, ""])


def _row(row: Row) -> str:
    """A row as a section: statement, correction, findings, checks."""
    lines = [f"### {row.title}\n", f"`{row.key}`, {row.where}: **{row.standing}**\n"]
    lines += [f"> {line}" for line in row.says.strip().splitlines()]
    lines += [""]
    if row.correction:
        lines += [f"*Correction.* {row.correction.strip()}\n"]
    lines += [f"*{'Why not' if row.verdict == 'not checked' else 'Found'}.* {row.found.strip()}\n"]
    lines += [
        f"- `{claim.script}`: {claim.text}. Asked: {claim.asked}; measured: {claim.measured}"
        for claim in row.claims
    ]
    lines += [f"- `{check}`" for check in row.checks if ":" not in check]
    lines += [""] if row.checks else []
    if row.draws:
        commands = ", ".join(f"`python examples/{script}`" for script in row.draws)
        lines += [f"To draw it: {commands}\n"]
    if row.pages:
        names = (f"[{Path(page).stem.replace('_', ' ')}](../{page})" for page in row.pages)
        lines += [f"More: {', '.join(names)}\n"]
    return "\n".join(lines)


def _last_runs(every: list[Row], runs: dict[str, dict[str, Any]]) -> str:
    named = sorted({script for row in every for script in row.scripts if "/" not in script})
    lines = [
        "## Last runs of the scripts\n",
        "Recorded by `make validate VALIDATE_ARGS=--record`. *In part* marks quick runs,",
        "*changed since* marks scripts whose text, comments included, has changed after the run,",
        "and `-dirty` marks versions with uncommitted changes.\n",
        "| script | verdict | comparisons | date | meanfield |\n|---|---|---|---|---|",
    ]
    for script in named:
        run = runs.get(script)
        if run is None:
            lines.append(f"| `{script}` | not recorded yet | | | |")
            continue
        part = ", in part" if run["quick"] else ""
        part += ", changed since" if run["script"] != digest(SCRIPTS / script) else ""
        numbers = f"{run['comparisons']} | {run['date']} | {run['version']}"
        lines.append(f"| `{script}` | {run['verdict']}{part} | {numbers} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    write_page()
