"""Which claim is checked by which script: docs/reference/claims.md, and the scripts."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from meanfield.app.literature import Claim, read_claims

__all__ = ["Claim", "Script", "disagreements", "read_claims", "scripts_of"]

USAGE = re.compile(r"^ *python validation/.*$", re.MULTILINE)
SECONDS = re.compile(r"# (\d+) s(?:, (\d+) s quick)?")


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
