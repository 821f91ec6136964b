"""The result of `branches`: labelled arrays, special points, saved states."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path as File
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.checks import finite
from ..core.checks import path_of as file_of
from ..models import SA, USA, ZonalDrift
from ..spaces import Geometry
from . import assembly, ground
from .crossings import crossings
from .ground import Transition
from .growing import Growth
from .path import Onset, Path, path_of
from .placement import basis_of, usual_axis
from .special_point import SpecialPoint
from .state import StationaryState, state_at

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

__all__ = ["Diagram"]


@dataclass(frozen=True, eq=False, repr=False)
class Diagram:
    """Branches of stationary states.

    Attributes
    ----------
    data : xarray.Dataset
        On `point`: branch (0 the uniform state), the parameter (kappa or beta), order_parameter,
        moments (of Legendre polynomials, cos(l theta) on the circle, of invariants for polyhedra,
        on `degree`), free_energy, growth (largest rate but for rotations), unstable (how many rates
        are positive, by order `order`), and observables.
    special_points : list of SpecialPoint
    ends : list of str
        Why each branch ends: "range", "uniform", "bifurcation" (on a branch of more symmetry),
        "closed", "max_points", "unresolved", "not continued", "interrupted".
    saved : list of (int, StationaryState)
        Branch and state, at the values that were asked for.
    drift : ZonalDrift, or type
    geometry : Geometry
    symmetry : str
    kappa : float or None
        The one kappa, where beta is the parameter.
    """

    data: "xr.Dataset"
    special_points: list[SpecialPoint]
    ends: list[str]
    saved: list[tuple[int, StationaryState]]
    drift: ZonalDrift | type[USA] | type[SA]
    geometry: Geometry
    symmetry: str
    kappa: float | None

    @classmethod
    def of(cls, drift, geometry: Geometry, symmetry: str, path: Path, span: tuple[float, float],
           onsets: list[Onset], growth: Growth, at: np.ndarray,
           observables: dict[str, Callable]) -> "Diagram":  # fmt: skip
        """From what was followed."""
        found = growth.found
        kappa = None if path.parameter == "kappa" else path.at(span[0])[1]
        data = assembly.table(path, span, found, geometry, observables)
        data.attrs |= {"drift": drift.__name__ if kappa else repr(drift)}
        data.attrs |= {"geometry": repr(geometry), "symmetry": symmetry}
        if growth.missing:
            data.attrs["missing"] = growth.missing
        specials = assembly.special_points(path, onsets, found, geometry)
        ends = [branch.end for branch in found]
        diagram = cls(data, specials, ends, [], drift, geometry, symmetry, kappa)
        for value in at:
            diagram.saved.extend(diagram.states_at(float(value)))
        return diagram

    @property
    def parameter(self) -> str:
        """What changes along the branches: "kappa" or "beta"."""
        return "kappa" if self.kappa is None else "beta"

    def special(self, kind: str, branch: int | None = None) -> list[SpecialPoint]:
        """The special points of a kind, on one branch if it is given."""
        return [
            s for s in self.special_points
            if s.kind == kind and branch in (None, s.branch)
        ]  # fmt: skip

    @property
    def doubts(self) -> list[str]:
        """What is missing, in words: branches cut short, points not located."""
        from .doubts import of_branches

        return of_branches(self)

    def states_at(self, value: float) -> list[tuple[int, StationaryState]]:
        """The states of all branches at a value of the parameter, with their branch.

        Found by Newton's method from the points next to them.

        Raises
        ------
        ValueError
            For values outside the range.
        """
        finite(**{self.parameter: value})
        low, high = self.data.attrs[self.parameter]
        if not low <= value <= high:
            raise ValueError(
                f"This diagram has {low:g} <= {self.parameter} <= {high:g}; got {value!r}."
            )
        uniform = self.path()
        z = np.append(np.zeros(len(uniform.basis.degrees)), uniform.coordinate(value))
        found = [(0, self._state(uniform, z))]
        for number, path, z in crossings(self, float(value)):
            found.append((number, self._state(path, z)))
        return found

    def ground_state(self, value: float) -> StationaryState:
        """The state of least free energy among those on the branches and the uniform one.

        Parameters
        ----------
        value : float
            Of the parameter.

        Raises
        ------
        MeanfieldError
            For SA, which has no free energy.
        ValueError
            For values outside the range.
        """
        return ground.state(self, value)

    def transition(self) -> Transition:
        """Where the uniform state ceases to be the ground state, and how.

        Raises
        ------
        ValueError
            If beta is the parameter, or the range has no onset.
        """
        return ground.transition(self)

    def path(self, degree: int | None = None) -> Path:
        """The path of the parameter, in harmonics up to a degree, by default as for branches."""
        return path_of(self.drift, basis_of(self.symmetry, self.geometry, degree), self.kappa)

    def _state(self, path: Path, z: np.ndarray) -> StationaryState:
        return state_at(path, z, self.geometry, usual_axis(self.geometry))

    def save(self, path: str | File) -> File:
        """Write everything to a NetCDF file, atomically."""
        from .files import write

        return write(self, file_of("path", path))

    @classmethod
    def load(cls, path: str | File) -> "Diagram":
        """A diagram from its file."""
        from .files import read

        data, header, specials, saved = read(file_of("path", path))
        diagram = cls(data, [], header.pop("ends"), [], **header)
        for row in specials:
            diagram.special_points.append(
                assembly.special_of(row, diagram.parameter, diagram._loaded(row))
            )
        diagram.saved.extend((int(row["branch"]), diagram._loaded(row)) for row in saved)
        return diagram

    def _loaded(self, row: dict[str, Any]) -> StationaryState:
        """A state from a row of a file."""
        path = self.path(int(row["resolution"]))
        return self._state(path, np.append(row["a"], path.coordinate(float(row["value"]))))

    def plot(self, **options) -> "Figure":
        """Order parameter against kappa or beta: `plotting.bifurcation`."""
        from ..plotting import bifurcation

        return bifurcation(self, **options)

    def __repr__(self) -> str:
        lines = [f"Diagram of {self.data.attrs['drift']}: {len(self.ends) + 1} branches, "
                 f"{self.data.sizes['point']} points"]  # fmt: skip
        lines += [f"  {special!r}" for special in self.special_points]
        return "\n".join([*lines, *(f"  <-- {doubt}" for doubt in self.doubts)])
