"""The package `meanfield` of 2022 on PyPI, which installs modules of the same name as this one."""

import warnings
from pathlib import Path

DISTRIBUTION = "meanfield-attention"  # the name by which this package is installed
OVERWRITES = f"is installed in the folder of {DISTRIBUTION} and overwrites its files"
REMEDY = (
    f"pip uninstall meanfield, then pip install --force-reinstall {DISTRIBUTION} "
    "(from a clone: pip install --force-reinstall .)"
)


def namesakes(folder: Path = Path(__file__).parents[2]) -> list[str]:
    """Installations called `meanfield` in the folder where this package is installed."""
    return sorted(path.stem for path in folder.glob("meanfield-*.dist-info"))


def warn_of_namesakes(names: list[str]) -> None:
    """Warn that other packages have written into the folder of this one."""
    for name in names:
        warnings.warn(f"{name} {OVERWRITES}: {REMEDY}.", UserWarning, stacklevel=3)
