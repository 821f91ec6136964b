"""BibTeX entries of the package and of the methods and theorems behind a result.

Docstrings name their sources, as does the attribute `reference` of a scheme. An entry of
``references.bib`` is cited if the text of its field `known` occurs in one of them.
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

REFERENCES = Path(__file__).with_name("references.bib")
KNOWN_FIELD = re.compile(r" known = \{([^}]*)\},")
FIELD_SEPARATOR = re.compile(r", (?=\w+ = \{)")
PACKAGE_ENTRY = """\
@software{{meanfield,
  title = {{meanfield: the mean-field dynamics of attention}},
  author = {{{{The meanfield developers}}}},
  version = {{{version}}},
  year = {{2026}}
}}"""


def citation(*objects: Any) -> str:
    """BibTeX entries of the package and of the sources of the arguments.

    Parameters
    ----------
    *objects : result, model, state, space, class or function
        For instance a `Solution`, whose drift, weights, noise, normalisation, space and schemes
        are included; a `Diagram`; or ``mf.wasserstein``.

    Returns
    -------
    str
        The entries that docstrings name, in the order of the arguments. Sources that no docstring
        names are missing.

    Raises
    ------
    TypeError
        For objects without a docstring, such as numbers.

    Examples
    --------
    >>> import meanfield as mf
    >>> print(mf.citation(mf.USA(1.0)).count("@"))
    2
    """
    texts = [text for thing in objects for text in _texts(thing)]
    cited = {key: entry for text in texts for key, entry in entries().items() if key in text}
    return "\n\n".join([PACKAGE_ENTRY.format(version=__version__), *cited.values()])


@cache
def entries() -> dict[str, str]:
    """The BibTeX entries, by the text that docstrings use for them."""
    by_text = {}
    for line in REFERENCES.read_text(encoding="utf-8").splitlines():
        field = KNOWN_FIELD.search(line)
        if field is None:
            raise MeanfieldError(f"references.bib: no field `known` in {line[:60]!r}.")
        head, *fields = FIELD_SEPARATOR.split(KNOWN_FIELD.sub("", line).removesuffix("}"))
        by_text[field[1]] = ",\n  ".join([head, *fields]) + "\n}"
    return by_text


def _texts(thing: Any) -> Iterator[str]:
    """Yield the texts that name the sources of an object and of its parts."""
    documented = thing if isinstance(thing, type) or inspect.isroutine(thing) else type(thing)
    words = " ".join((inspect.getdoc(documented) or "").split())
    if documented is thing:
        yield words
        return
    if not type(thing).__module__.startswith("meanfield") and not isinstance(thing, Kind):
        raise TypeError(
            "citation takes results, models, states, spaces, classes and functions of the "
            f"package; got {thing!r}."
        )
    yield words
    yield getattr(thing, "reference", "")
    if isinstance(thing, Result):
        yield from _texts(getattr(import_module("meanfield"), thing.made_by))
        parts = thing.made_with()
    else:
        values = vars(thing).values()
        candidates = [
            part for value in values for part in (value if type(value) is tuple else (value,))
        ]
        parts = [part for part in candidates if isinstance(part, Kind)]
    for part in parts:
        yield from _texts(part)
