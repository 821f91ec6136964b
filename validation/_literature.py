"""docs/reference/literature.md, from the table of the literature.

python validation/_literature.py    # writes the page again
"""

from collections import Counter
from pathlib import Path
from typing import Any

from meanfield.app.literature import NOT_SHOWN, Row, last_runs, rows, sources

__all__ = ["page", "write_page"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "literature.md"
VERDICTS = ("holds", "holds with a correction", "open", "not checked", NOT_SHOWN)
HEAD = """\
# The literature, statement by statement

Each statement, figure, experiment and open question of these texts, in our words and
[conventions](../theory/conventions.md): what it says, what we found, the script, and the numbers.
The formulas are on the page [Equations](../theory/equations.md).

- **holds**: all that we measured agrees with it. This is evidence, not a proof.
- **holds with a correction**: as printed it fails, or is imprecise; the correction is said.
- **open**: nobody has settled it; we say what we measured.
- **not checked**: and why not.
- **not shown**: it held before, but a script behind it fails in its last recorded run.

`meanfield literature` lists the rows, `meanfield literature survey:theorem-5` prints one, and
`meanfield literature WORD` those with a word.
A row with a figure names the example that draws it.
Scripts are in `validation/` of the project's source. One runs by itself, or those of a row by its
key, which prints each claim with what is asked and measured; `QUICK=1` takes smaller sizes:

```sh
python validation/long_context.py
make validate QUICK=1 VALIDATE_ARGS="--row survey:theorem-7"
```

*Asked* is a tolerance, *measured* the worst case in full, as on the page [Claims](claims.md), which
sorts the same lines by what the package does. This page is generated: rows are in
`meanfield/app/literature.toml`, numbers in `docs/reference/claims.md`. After a change run
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
        "Recorded by `make validate VALIDATE_ARGS=--record`; *in part* is said of quick runs, and",
        "`-dirty` of a version with changes that were not committed.\n",
        "| script | verdict | comparisons | date | meanfield |\n|---|---|---|---|---|",
    ]
    for script in named:
        run = runs.get(script)
        if run is None:
            lines.append(f"| `{script}` | not recorded yet | | | |")
            continue
        part = ", in part" if run["quick"] else ""
        numbers = f"{run['comparisons']} | {run['date']} | {run['version']}"
        lines.append(f"| `{script}` | {run['verdict']}{part} | {numbers} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    write_page()
