"""The labelled arrays as xarray datasets."""

from typing import TYPE_CHECKING

from ..solution import Solution
from .arrays import ATTRIBUTES, Arrays, labelled_arrays, observable_arrays

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["observables_dataset", "solution_dataset"]

AXES = ("t", "theta", "z", "phi", "x", "k", "mode", "l", "m", "masses")
PARAMETERS = ("beta", "kappa", "n", "initial_rho", "initial_gap", "initial_radius")
COORDINATES = (*AXES, *PARAMETERS)


def observables_dataset(solution: Solution) -> "xr.Dataset":
    """`observable_arrays` as a dataset."""
    return _dataset(observable_arrays(solution))


def solution_dataset(solution: Solution) -> "xr.Dataset":
    """`labelled_arrays` as a dataset, with status and message among its attributes."""
    dataset = _dataset(labelled_arrays(solution))
    dataset.attrs = {
        "title": f"{type(solution.final).__name__} under {solution.model!r}",
        "status": solution.status,
        "message": solution.message,
    }
    return dataset


def _dataset(arrays: Arrays) -> "xr.Dataset":
    import xarray as xr

    variables = {
        name: (dims, values, ATTRIBUTES.get(name, {})) for name, (dims, values) in arrays.items()
    }
    coords = {name: variables.pop(name) for name in COORDINATES if name in variables}
    return xr.Dataset(variables, coords)
