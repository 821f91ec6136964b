"""Tangents of a run: changes of its states by parameters and in directions."""

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..core.annotations import FromAbove, Observations
from ..core.cached import cached_property
from ..states.contract import member_dims

if TYPE_CHECKING:
    import xarray as xr

Change = TypeVar("Change")


class RunTangents(dict[str, tuple[Change, ...]]):
    """Derivatives of a run: the change of the state at each output, by parameter or direction.

    The keys are names of parameters, and "direction_0", "direction_1", ... for the directions in
    the order given. The values are the exact derivatives of the discrete map, for fixed steps and
    schemes.

    Attributes
    ----------
    t : ndarray, (m,)
        The times of the outputs of the run.
    """

    def __init__(self, run: FromAbove, tangents: dict[str, tuple[Change, ...]]):
        super().__init__(tangents)
        self.t, self._run = run.t, run

    def __missing__(self, name: str) -> tuple[Change, ...]:
        raise KeyError(f"The run has tangents {list(self)}; got {name!r}.")

    def __repr__(self) -> str:
        return f"Tangents({', '.join(self)}; {self.t.size} times)"

    @cached_property
    def observables(self) -> "xr.Dataset":
        """Derivatives of observables on ("tangent", "t", members of the ensemble).

        The page Derivatives lists these observables. Moments are `moment_re` and `moment_im`, with
        an axis "k". Values are nan where there is no derivative: of the order parameter at 0.
        """
        import xarray as xr

        tables, variables = [self._measured(name) for name in self], {}
        dims = ("tangent", "t", *member_dims(self._run.shape))
        for name in tables[0][0] if tables else ():
            values = np.array([[row[name] for row in rows] for rows in tables])
            axes = (*dims, "index") if name.endswith("_by_index") else dims
            if name.startswith("moment"):
                variables[f"{name}_re"] = (*axes, "k"), values.real
                variables[f"{name}_im"] = (*axes, "k"), values.imag
                variables["k"] = ("k",), np.arange(1, values.shape[-1] + 1)
            else:
                variables[name] = axes, values
        return xr.Dataset(variables, {"tangent": list(self), "t": self.t})

    @abstractmethod
    def _measured(self, name: str) -> list[Observations]:
        """Derivatives of observables along one tangent, by name, at every output."""
