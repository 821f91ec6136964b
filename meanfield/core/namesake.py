"""The package `meanfield` of 2022 on PyPI, which installs modules of the same name as this one."""

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

DISTRIBUTION = "meanfield-attention"  # the name by which this package is installed
REMEDY = (
    f"pip uninstall meanfield, then pip install --force-reinstall {DISTRIBUTION} "
    "(from a clone: pip install --force-reinstall .)"
)


def namesakes(
    home: Path = Path(__file__).parents[2], search_path: Iterable[str] = sys.path
) -> list[str]:
    """One line for each installation called `meanfield`, in the folder of this one or elsewhere."""
    lines = []
    for folder in dict.fromkeys([home, *map(Path, search_path)]):
        if folder == home:
            place = f"the folder of {DISTRIBUTION} and overwrites its files"
        elif (folder / "meanfield/__init__.py").is_file():
            place = f"{folder}, and the first of the two on sys.path is imported"
        else:  # an older clone of this package, installed as editable
            continue
        for info in sorted(folder.glob("meanfield-*.dist-info")):
            lines.append(f"{info.stem} is installed in {place}: {REMEDY}")
    return lines


def warn_of_namesakes() -> None:
    """Warn that another package has written into the folder of this one, or has its name."""
    for line in namesakes():
        warnings.warn(f"{line}.", UserWarning, stacklevel=3)
