"""The page of the documentation on configurations has every kind and every key."""

import re
import tomllib

import pytest
from configurations import FAMILIES, ROOT, of_files

from meanfield.app.configuration import parse_config
from meanfield.app.tasks import TASKS
from meanfield.core.parameters import parameters_of

PAGE = ROOT / "docs" / "reference" / "configuration.md"
MARK = re.compile(r"^<!-- kinds: (\w+) -->\n(?:\n(?:\|.*\n)+)?", re.M)


def table(family):
    """The table of the documentation for a family: names, keys and first lines of docstrings."""
    rows = ["| kind | keys | what it is |", "|---|---|---|"]
    for name in sorted(of_files(FAMILIES[family])):
        kind = FAMILIES[family].kinds[name]
        keys = [f"`{k}`" if p.required else f"(`{k}`)" for k, p in parameters_of(kind).items()]
        first = (kind.__doc__ or "").strip().split("\n")[0].replace("|", "\\|")
        rows.append(f"| `{name}` | {', '.join(keys) or 'none'} | {first} |")
    return f"<!-- kinds: {family} -->\n\n" + "\n".join(rows) + "\n"


def with_tables(page):
    """A page with the tables that the classes say."""
    return MARK.sub(lambda found: table(found[1]), page)


def test_the_documentation_has_every_kind():
    """If this fails: python tests/app/test_configuration_page.py writes the tables again."""
    page = PAGE.read_text(encoding="utf-8")
    shown = {found[1] for found in MARK.finditer(page)}
    assert shown == set(FAMILIES) - {"Transformer", "Weighted"}
    assert with_tables(page).splitlines() == page.splitlines()


@pytest.mark.parametrize("work", TASKS)
def test_every_argument_is_in_the_documentation(work):
    for key in TASKS[work].required()[work].keys:
        assert re.search(rf"^\| `{key}` \|", PAGE.read_text(encoding="utf-8"), re.M), (
            f"{key} of [{work}]"
        )


def test_the_first_example_of_the_documentation_is_a_run():
    (example,) = re.findall(r"```toml\n(title.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert parse_config(tomllib.loads(example)).begin().space.degree == 128


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
