"""The density at the end of a run as the law with which another one begins."""

from typing import Any

from ..core.checks import as_given
from ..core.forms import ResultFile
from ..spaces import Density, Space
from ..spaces.laws import DensityLaw
from .files import load


class LastState(DensityLaw):
    """The density at the end of a run, from the file of its result.

    It keeps its degree. [space] may be left out; if it is there it is of the same kind.

    Parameters
    ----------
    file : str
        *.nc, as `meanfield solve` and `Solution.save` write it; relative names start from the
        folder of the configuration file.
    """

    method = "uniform"  # which all spaces have

    file: ResultFile

    def begin(self, space: Space | None) -> Density:
        density = self.density(space)
        if space is not None and type(space) is not type(density.space):
            raise ValueError(f"file {self.file} has a density on {density.space!r}, not {space!r}.")
        return density

    def density(self, space: Any) -> Density:
        final = getattr(load(self.file), "final", None)
        if not isinstance(final, Density):
            raise ValueError(
                f"file must be the result of a run of a density; {self.file} ends with "
                f"{as_given(final)}."
            )
        return final
