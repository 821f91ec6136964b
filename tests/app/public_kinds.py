"""The public kinds of the package, read from the registries of their families.

The stub of the package, the page of the API and the tables of configurations are filled from here;
bad calls are tried on all of them. To write the lists again: python tests/app/public_kinds.py.
"""

import re

from configurations import ROOT

import meanfield as mf
from meanfield.core.kinds import Kind

STUB = ROOT / "meanfield" / "__init__.pyi"
API = ROOT / "docs" / "reference" / "api.md"
FAMILIES = {
    **{"Drift": mf.Drift, "Weights": mf.Weights, "Normalisation": mf.Normalisation},
    **{"Noise": mf.Noise, "CommonNoise": mf.CommonNoise, "State": mf.State},
}
MARK = re.compile(r"^<!-- kinds: (\w+) -->\n(?:\n```\{eval-rst\}\n.*?```\n)?", re.M | re.S)


def public_kinds(family: type[Kind]) -> dict[str, type[Kind]]:
    """The kinds of a family that the package defines, by name."""
    return {
        name: kind
        for name, kind in sorted(family.kinds.items())
        if kind.__module__.startswith("meanfield.") and issubclass(kind, family)
    }


ALL = {name: kind for family in FAMILIES.values() for name, kind in public_kinds(family).items()}


def stub(text: str) -> str:
    """The stub with a line for every public kind; `make format` sorts them."""
    lines = text.splitlines(keepends=True)
    for name, kind in ALL.items():
        if not re.search(rf" as {name}$", text, re.M):
            module = kind.__module__.removeprefix("meanfield")
            lines.append(f"from {module} import {name} as {name}\n")
    return "".join(lines)


def api(text: str) -> str:
    """The page with an entry for every public kind: at the mark of its family, unless elsewhere."""
    elsewhere = set(re.findall(r"\w+", MARK.sub("", text)))

    def entries(found: re.Match[str]) -> str:
        names = [name for name in public_kinds(FAMILIES[found[1]]) if name not in elsewhere]
        classes = "\n".join(f".. autoclass:: meanfield.{name}\n" for name in names)
        return f"{found[0].splitlines()[0]}\n" + (
            f"\n```{{eval-rst}}\n{classes}```\n" if names else ""
        )

    return MARK.sub(entries, text)


if __name__ == "__main__":
    for path, written in ((STUB, stub), (API, api)):
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
    import test_configuration_page as tables

    page = tables.PAGE.read_text(encoding="utf-8")
    tables.PAGE.write_text(tables.with_tables(page), encoding="utf-8")
