"""The statements of the literature, row by row, with our verdicts.

The rows are in ``literature.toml``. A row names the claims that check it by the first words of
their lines in docs/reference/claims.md, which has the numbers. ``verdicts.json`` records the last
runs of the scripts behind the claims: ``make validate VALIDATE_ARGS=--record``.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..core.errors import MeanfieldError
from .formulas import plain

__all__ = [
    "NOT_SHOWN", "VERDICTS", "Claim", "Row", "in_words", "last_runs", "names_of",
    "read_claims", "rows", "sources",
]  # fmt: skip

APP_FOLDER = Path(__file__).parent
VERDICTS = APP_FOLDER / "verdicts.json"
STATEMENT_HOLDS, NOT_SHOWN = "holds", "not shown"
CELL_SEPARATOR = re.compile(r"(?<!\\)\|")  # a | within a cell is written \| or \vert
SCRIPT_CELL = re.compile(r"`(\w+\.py)`")
OTHER_CELL = re.compile(r"script|command|[-: ]*|`make [\w-]+`")  # heads; checks in a browser


@dataclass(frozen=True)
class Claim:
    """A row of the table of claims, in Markdown."""

    text: str
    script: str
    asked: str
    measured: str


@dataclass(frozen=True)
class Row:
    """A statement, figure, experiment or question of a source, with our verdict.

    Parameters
    ----------
    key : str
        Key of the row, "survey:theorem-5"; the part before the colon names the source.
    title, where : str
        Its name in the source, and its section and equation numbers.
    says : str
        The statement in our words and conventions.
    verdict : str
        "holds", "holds with a correction", "open" or "not checked".
    found : str
        Our result; for a row that is not checked, the reason.
    correction : str
        The correction, for a row that holds with a correction.
    checks : sequence of str
        "script.py: first words of a claim", "script.py" for a script without such a line, or
        "examples/script.py".
    draws : sequence of str
        Scripts of examples/ that draw it, "five_tokens.py".
    pages : sequence of str
        Pages of the documentation, "limits.md".
    """

    key: str
    title: str
    where: str
    says: str
    verdict: str
    found: str
    correction: str = ""
    checks: Sequence[str] = ()
    draws: Sequence[str] = ()
    pages: Sequence[str] = ()

    @property
    def text(self) -> str:
        """The text of the row that a search reads."""
        words = self.key, self.title, self.where, self.says, self.found, self.correction
        return "\n".join([*words, *self.checks, *self.draws])

    @property
    def source(self) -> str:
        """The name of the source."""
        return self.key.partition(":")[0]

    @property
    def scripts(self) -> list[str]:
        """The scripts that check it, without repetition, in order."""
        return list(dict.fromkeys(check.partition(":")[0] for check in self.checks))

    @property
    def standing(self) -> str:
        """The verdict, unless the last runs of its scripts contradict it.

        A row that holds, with or without a correction, becomes "not shown: w2_rates.py FAILS
        (2026-11-27)" if a script has another recorded verdict, or none.
        """
        if not self.verdict.startswith(STATEMENT_HOLDS):
            return self.verdict
        runs = last_runs()
        scripts = [script for script in self.scripts if "/" not in script]
        contradictions = [
            f"{script} {run['verdict']} ({run['date']})" if run else f"{script} has no recorded run"
            for script, run in ((script, runs.get(script)) for script in scripts)
            if run is None or run["verdict"] != STATEMENT_HOLDS
        ]
        return f"{NOT_SHOWN}: {', '.join(contradictions)}" if contradictions else self.verdict

    @property
    def claims(self) -> list[Claim]:
        """The claims that check it.

        Raises
        ------
        ValueError
            If a check is not the beginning of exactly one claim.
        """
        claims = []
        for script, _, words in (check.partition(": ") for check in self.checks if ":" in check):
            matches = [c for c in _claims() if c.script == script and c.text.startswith(words)]
            if len(matches) != 1:
                raise ValueError(
                    f"{words!r} has to begin one claim of {script} in docs/reference/claims.md; it "
                    f"begins {len(matches)}. Name a claim by its first words, as they stand there."
                )
            claims += matches
        return claims


@cache
def _claims() -> list[Claim]:
    """Claims of the documentation, from the wheel or the repository."""
    packaged = APP_FOLDER / "claims.md"  # within a wheel
    return read_claims(
        packaged if packaged.exists() else APP_FOLDER.parents[1] / "docs/reference/claims.md"
    )


def read_claims(page: Path) -> list[Claim]:
    """The claims of a page: rows of its tables that name a script (not a target of make).

    Raises
    ------
    ValueError
        If there is no table, or a row does not have four cells, one of them naming a script.
    """
    claims = []
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in CELL_SEPARATOR.split(line)[1:-1]]
        if len(cells) != 4:
            raise ValueError(
                f"{page.name}, line {number}: a row has four cells (claim, script, asked, "
                f"measured); this one has {len(cells)}. Within a formula write \\vert for |."
            )
        script = SCRIPT_CELL.fullmatch(cells[1])
        if script:
            claims.append(Claim(cells[0], script[1], *cells[2:]))
        elif not OTHER_CELL.fullmatch(cells[1]):
            raise ValueError(
                f"{page.name}, line {number}: the second cell names a script, as `name.py`, or a "
                f"target, as `make name`; this one says {cells[1]!r}."
            )
    if not claims:
        raise ValueError(f"{page.name} has no table of claims: | claim | script | ... |")
    return claims


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads((APP_FOLDER / "literature.toml").read_text(encoding="utf-8"))


def sources() -> dict[str, str]:
    """The sources: descriptions by the names in keys."""
    return dict(_table()["sources"])


def rows(word: str = "") -> list[Row]:
    """The rows whose key, title, text or checks contain a word; all rows by default.

    The key of a row, "survey:remark-2", selects that row only, and the part after the colon,
    "remark-2", the rows with such keys.

    Raises
    ------
    MeanfieldError
        If there is no such row.
    """
    all_rows = [Row(**entries) for entries in _table()["row"]]
    by_key = [row for row in all_rows if word in (row.key, row.key.partition(":")[2])]
    rows = by_key or [row for row in all_rows if word.casefold() in row.text.casefold()]
    if not rows:
        raise MeanfieldError(
            f"no row of the literature has {word!r}; expected the key of a row or a word of its "
            "text. `meanfield literature` lists all keys."
        )
    return rows


def names_of(claim: Claim) -> list[str]:
    """The rows that a claim checks, such as "survey, Theorem 7, long contexts"."""
    return _checked().get(claim, [])


@cache
def _checked() -> dict[Claim, list[str]]:
    """Rows of the literature, by the claim that checks them."""
    names: dict[Claim, list[str]] = {}
    for row in rows():
        for claim in row.claims:
            names.setdefault(claim, []).append(f"{row.source}, {row.title}")
    return names


def last_runs() -> dict[str, dict[str, Any]]:
    """The last recorded run of each script: verdict, date, version, quick, comparisons, digest."""
    return json.loads(VERDICTS.read_text(encoding="utf-8"))


def in_words(row: Row) -> str:
    """A row as text for a terminal."""
    lines = [f"{row.key}  {row.title} ({row.where}): {row.standing}", "", row.says.strip()]
    if row.correction:
        lines += ["", f"Correction. {row.correction.strip()}"]
    lines += ["", f"{'Why not' if row.verdict == 'not checked' else 'Found'}. {row.found.strip()}"]
    for script in row.scripts:
        path, last_run = script if "/" in script else f"validation/{script}", ""
        if run := last_runs().get(script):
            part = ", of smaller sizes alone, as of --quick" if run["quick"] else ""
            last_run = f"last run {run['date']}, meanfield {run['version']}: {run['verdict']}{part}"
        lines += ["", f"{path} ({last_run})" if last_run else path]
        claims = [claim for claim in row.claims if claim.script == script]
        lines += [f"  - {c.text}\n    asked {c.asked}; measured {c.measured}" for c in claims]
    commands = [f"  python validation/{script}" for script in row.scripts if "/" not in script]
    if commands:
        lines += ["", "To repeat it, within the source of the project, a script alone or all:"]
        lines += [*commands, f'  make validate VALIDATE_ARGS="--row {row.key}"']
    if row.draws:
        lines += ["", "To draw it, within the source of the project:"]
        lines += [f"  python examples/{script}" for script in row.draws]
    return plain("\n".join(lines))
