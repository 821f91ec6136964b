"""Which claim is checked by which script: the table of docs/claims.md, and the scripts."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

__all__ = ["Claim", "Script", "disagreements", "read_claims", "scripts_of"]

CELL = re.compile(r"(?<!\\)\|")  # a | within a cell is written \| or \vert
NAMED = re.compile(r"`(\w+\.py)`")
USAGE = re.compile(r"^ *python validation/.*$", re.MULTILINE)
SECONDS = re.compile(r"# (\d+) s(?:, (\d+) s quick)?")


@dataclass(frozen=True)
class Claim:
    """A row of the table of claims, in Markdown."""

    text: str
    script: str
    asked: str
    measured: str


@dataclass(frozen=True)
class Script:
    """A script that checks claims; its docstring says what, which options it takes, how long.

    The line of usage reads ``python validation/NAME.py [--quick] [--figure FILE.png]``, with the
    options it has, and ends with ``# 60 s, 8 s quick``, on one core.
    """

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def docstring(self) -> str:
        """What it claims and how that is measured; nothing if there is no such script."""
        try:
            return ast.get_docstring(ast.parse(self.path.read_text(encoding="utf-8"))) or ""
        except (OSError, SyntaxError):  # its run says so
            return ""

    @property
    def title(self) -> str:
        """The first paragraph of the docstring, which a formula may interrupt."""
        words = self.docstring.split("\n\n")[0].replace("\n", " ").removeprefix("Claim: ")
        return words[:1].upper() + words[1:] + ("" if words.endswith(".") else " …")

    def takes(self, option: str) -> bool:
        """Whether the line of usage names an option."""
        return f"[{option}" in self._usage

    def seconds(self, quick: bool) -> float:
        """About how long it says that it runs, on one core; inf if it does not say."""
        found = SECONDS.search(self._usage)
        if found is None:
            return float("inf")
        return float(found[2] if quick and found[2] else found[1])

    @cached_property
    def _usage(self) -> str:
        found = USAGE.search(self.docstring)
        return found[0] if found else ""


def read_claims(page: Path) -> list[Claim]:
    """The rows of the table on a page, without its head.

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
        cells = [cell.strip() for cell in CELL.split(line)[1:-1]]
        if len(cells) != 4:
            raise ValueError(
                f"{page.name}, line {number}: a row has four cells (claim, script, asked, "
                f"measured); this one has {len(cells)}. Within a formula write \\vert for |."
            )
        named = NAMED.fullmatch(cells[1])
        if named:
            claims.append(Claim(cells[0], named[1], *cells[2:]))
        elif cells[1] != "script" and cells[1].strip("-: "):
            raise ValueError(
                f"{page.name}, line {number}: the second cell names a script, as `name.py`; "
                f"this one says {cells[1]!r}."
            )
    if not claims:
        raise ValueError(f"{page.name} has no table of claims: | claim | script | ... |")
    return claims


def scripts_of(folder: Path) -> list[Script]:
    """The scripts in a folder, in alphabetical order; those that begin with _ are parts of them."""
    return [Script(path) for path in sorted(folder.glob("[!_]*.py"))]


def disagreements(claims: Iterable[Claim], scripts: Iterable[Script]) -> Iterator[tuple[str, str]]:
    """Yield (name of a script, what is wrong) where claims and scripts do not match."""
    claimed, there = {claim.script for claim in claims}, {script.name for script in scripts}
    for name in sorted(claimed - there):
        yield name, "has a claim, but there is no such script"
    for name in sorted(there - claimed):
        yield name, "has no line in the table of claims"
