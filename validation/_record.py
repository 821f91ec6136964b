"""The record of verdicts: of which code they are, where they may be written, and how.

The record of the package is meanfield/app/verdicts.json: of the scripts and the package of one
tree. A record elsewhere may be of any scripts.
"""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

from _page import Run
from _verdicts import NOT_RUN, SKIPPED, STOPPED

import meanfield
from meanfield.app.literature import VERDICTS

__all__ = ["check", "digest", "of_package", "record", "version"]

ROOT = Path(__file__).resolve().parents[1]
IMPORTED = Path(meanfield.__file__).resolve().parents[1]
CODE = ("meanfield", "validation", f":(exclude)meanfield/app/{VERDICTS.name}")
KEYS = {"verdict", "quick", "date", "version", "comparisons", "script"}
SHARED = re.compile(r"^(?:from|import) (_\w+)", re.MULTILINE)  # imports of modules of this folder
DIGITS = 16
DIRTY = "-dirty"


def version(tree: Path = IMPORTED) -> str:
    """The version of the code that runs, by default that of the package that is imported.

    Of a checkout it is the last tag and the commit, as `git describe` has it, with "-dirty" where
    `meanfield/` or `validation/` has changes that are not committed, but for the record itself.
    Otherwise it is the version that is installed, with "-dirty" if git cannot read the checkout.
    """
    installed = meanfield.__version__
    try:
        if Path(_git(tree, "rev-parse", "--show-toplevel")).resolve() != tree.resolve():
            return installed
        described = _git(tree, "describe", "--tags", "--always")
        changes = _git(tree, "status", "--porcelain", "--untracked-files=all", "--", *CODE)
    except (OSError, subprocess.CalledProcessError):  # no git, or no checkout
        return installed + (DIRTY if (tree / ".git").exists() else "")
    return described + (DIRTY if changes else "")


def _git(tree: Path, *command: str) -> str:
    done = subprocess.run(
        ["git", "--no-optional-locks", "-C", str(tree), *command],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def digest(script: Path) -> str:
    """Digest of the text of a script and of the modules of its folder that it imports."""
    texts: dict[str, str] = {}
    names = [script.name]
    for name in names:
        path = script.parent / name
        if name not in texts and path.exists():
            texts[name] = path.read_text(encoding="utf-8")
            names += [f"{module}.py" for module in SHARED.findall(texts[name])]
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()[:DIGITS]


def of_package(path: Path) -> bool:
    """Whether a record is that of a package, beside its table of the literature."""
    return (path.resolve().parent / "literature.toml").exists()


def check(path: Path, scripts: Path, claims: Path) -> None:
    """Refuse, before anything runs, what could not be recorded at the end, or of other code.

    Raises
    ------
    ValueError
        If the imported package is not of this tree, if scripts or claims of another one were to be
        recorded in the package, or if there is no record at `path` that could be written.
    """
    if IMPORTED != ROOT:
        raise ValueError(
            f"--record: these scripts are of {ROOT}, but meanfield is imported from {IMPORTED}. "
            f"Run them with PYTHONPATH={ROOT}, or install that tree: pip install -e {ROOT}."
        )
    if of_package(path):
        ours = ROOT / "validation", ROOT / "docs/reference/claims.md", VERDICTS
        for option, given, own in zip(
            ("--scripts", "--claims", "--record"), (scripts, claims, path), ours, strict=True
        ):
            if given.resolve() != own.resolve():
                raise ValueError(
                    f"--record: the record of a package has its own scripts and claims; {option} "
                    f"{given} is not {own}. Name a file elsewhere: --record FILE."
                )
    _writable(path)
    _kept(path)


def _writable(path: Path) -> None:
    if path.is_dir():
        raise ValueError(f"--record {path} is a folder: name a file.")
    if not path.parent.is_dir():
        raise ValueError(f"--record {path}: there is no folder {path.parent}.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"--record {path} may not be written.")


def _kept(path: Path) -> dict[str, dict[str, Any]]:
    """What is recorded so far."""
    try:
        kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if not isinstance(kept, dict):
            raise ValueError("it has no names of scripts")
        wrong = [
            name for name, run in kept.items() if not isinstance(run, dict) or set(run) != KEYS
        ]
        if wrong:
            raise ValueError(f"{wrong[0]} needs {', '.join(sorted(KEYS))}")
    except (OSError, ValueError) as error:
        raise ValueError(
            f"--record {path} is no record of verdicts: {error}. Mend it, or move it away."
        ) from error
    return kept


def record(path: Path, run: Run) -> None:
    """Write down how the scripts of a run ended; a quick run never replaces one in full."""
    kept = _kept(path)
    for outcome in run.outcomes:
        if outcome.verdict in (NOT_RUN, SKIPPED, STOPPED):
            continue
        quick = run.quick and outcome.script.takes("--quick")
        if quick and outcome.holds and not kept.get(outcome.script.name, {"quick": True})["quick"]:
            continue
        kept[outcome.script.name] = {
            "verdict": outcome.verdict,
            "quick": quick,
            "date": f"{run.began:%Y-%m-%d}",
            "version": run.version,
            "comparisons": outcome.comparisons,
            "script": digest(outcome.script.path),
        }
    path.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", encoding="utf-8")
