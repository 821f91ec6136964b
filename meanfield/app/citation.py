"""What to cite: BibTeX of the package, and of the methods and theorems behind a result.

Docstrings name their sources, and `reference` those of a scheme. An entry of ``references.bib`` is
cited where its field `known`, words by which docstrings name it, occurs in what is used.
"""

import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ..core.errors import MeanfieldError
from ..core.kinds import Kind
from ..core.version import __version__
from ..results.files import Result

__all__ = ["citation", "entries"]

FILE = Path(__file__).with_name("references.bib")
KNOWN = re.compile(r" known = \{([^}]*)\},")
FIELD = re.compile(r", (?=\w+ = \{)")
OURS = """\
@software{{meanfield,
  title = {{meanfield: the mean-field dynamics of attention}},
  author = {{{{The meanfield developers}}}},
  version = {{{version}}},
  year = {{2026}}
}}"""


def citation(*used: Any) -> str:
    """BibTeX of the package, and of the sources of what is given.

    Parameters
    ----------
    *used : result, model, state, space, class or function
        Such as a `Solution`, of which the drift, its weights, the noise, the normalisation, the
        space and the schemes count; a `Diagram`; ``mf.wasserstein``.

    Returns
    -------
    str
        Entries as their docstrings name them, sources of the first thing first. Some methods have
        none, and what a docstring does not name is not found.

    Raises
    ------
    TypeError
        For what has no docstring, such as a number.

    Examples
    --------
    >>> import meanfield as mf
    >>> print(mf.citation(mf.USA(1.0)).count("@"))
    2
    """
    texts = [text for thing in used for text in _texts(thing)]
    found = {known: entry for text in texts for known, entry in entries().items() if known in text}
    return "\n\n".join([OURS.format(version=__version__), *found.values()])


@cache
def entries() -> dict[str, str]:
    """The entries, by the words that docstrings know them by."""
    found = {}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        known = KNOWN.search(line)
        if known is None:
            raise MeanfieldError(f"references.bib: no field `known` in {line[:60]!r}.")
        head, *fields = FIELD.split(KNOWN.sub("", line).removesuffix("}"))
        found[known[1]] = ",\n  ".join([head, *fields]) + "\n}"
    return found


def _texts(thing: Any) -> Iterator[str]:
    """What names the sources of a thing, and of what it is made of."""
    if isinstance(thing, type) or inspect.isroutine(thing):
        yield _in_one_line(inspect.getdoc(thing) or "")
        return
    if not type(thing).__module__.startswith("meanfield") and not isinstance(thing, Kind):
        raise TypeError(
            "citation takes results, models, states, spaces, classes and functions of the "
            f"package; got {thing!r}."
        )
    yield _in_one_line(inspect.getdoc(type(thing)) or "")
    yield getattr(thing, "reference", "")
    if isinstance(thing, Result):
        yield from _texts(getattr(import_module("meanfield"), thing.made_by))
        parts = thing.made_with()
    else:
        held = vars(thing).values()
        within = [part for value in held for part in (value if type(value) is tuple else (value,))]
        parts = [part for part in within if isinstance(part, Kind)]
    for part in parts:
        yield from _texts(part)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
