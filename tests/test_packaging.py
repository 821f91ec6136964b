"""Names and versions of the package and of what it needs are the same wherever they are written."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from meanfield.core.namesake import DISTRIBUTION, namesakes

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
    (here,) = namesakes(tmp_path)
    assert here.startswith("meanfield-0.2.1 is installed in the folder of meanfield-attention")
    path = [str(tmp_path / "nothing"), str(tmp_path)]
    assert not namesakes(tmp_path / "ours", path)
    (tmp_path / "meanfield").mkdir()
    (tmp_path / "meanfield/__init__.py").touch()
    (line,) = namesakes(tmp_path / "ours", path)
    assert line.startswith(f"meanfield-0.2.1 is installed in {tmp_path}, and the first of the two")
    code = f"import sys; sys.path.append({str(tmp_path)!r}); import meanfield"
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stderr.splitlines()[-1] == f"UserWarning: {line}."
