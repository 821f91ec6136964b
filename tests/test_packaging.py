"""Names and versions of the package and of what it needs are the same wherever they are written."""

import re
import tomllib
from pathlib import Path

import pytest

from meanfield.core.namesake import DISTRIBUTION, namesakes, warn_of_namesakes

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CONDA_NAMES = {"matplotlib-base": "matplotlib"}


def test_the_recipe_needs_what_the_project_needs():
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    needed = re.findall(r"    - (\S+) (>=\S+)", recipe.split("  run:")[1].split("tests:")[0])
    wanted = {re.split("[>;]", one)[0].lower(): re.search(r">=[\d.]+", one)[0]
              for one in PROJECT["dependencies"] if ">=" in one}  # fmt: skip
    wanted["python"] = PROJECT["requires-python"]
    assert {CONDA_NAMES.get(name, name): bound for name, bound in needed} == wanted


def test_another_package_of_the_same_name_is_seen(tmp_path):
    assert PROJECT["name"] == DISTRIBUTION and not namesakes()
    for name in ("meanfield-0.2.1", "meanfield_attention-0.3.0", "numpy-2.2.0"):
        (tmp_path / f"{name}.dist-info").mkdir()
    assert namesakes(tmp_path) == ["meanfield-0.2.1"]
    with pytest.warns(UserWarning, match=r"meanfield-0\.2\.1 is installed in the folder of"):
        warn_of_namesakes(namesakes(tmp_path))
