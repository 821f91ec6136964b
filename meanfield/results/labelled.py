"""Solutions as labelled arrays: times, ensemble members, coordinates, modes, nodes.

First plain dictionaries name -> (dimensions, values), which is what goes into files; then the
same as xarray datasets.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..dynamics.observables import MOMENTS, measure_all
from ..states import State
from ..states.contract import Arrays, member_dims
from .solution import Solution

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "labelled_arrays",
    "observable_arrays",
    "observables_dataset",
    "solution_dataset",
    "words",
]

WORDS = {
    "t": "time",
    "theta": "angle",
    "z": "height, the cosine of the polar angle",
    "phi": "longitude",
    "x": "inner product with the axis",
    "l": "degree of the harmonic",
    "m": "order of the harmonic",
    "k": "degree of the moment",
}
UNITS = {"theta": "radian", "phi": "radian", "w2_to_dirac": "radian"}
AXES = ("t", "theta", "z", "phi", "x", "k", "mode", "l", "m", "masses")
MORE_DIMENSIONS = {
    "limit_point": ("component",),
    "cluster_mass": ("cluster",),
    "cluster_point": ("cluster", "component"),
}


def words(name: str, state: type[State]) -> dict[str, str]:
    """The attributes of a variable of a file about states of one kind."""
    text = {**WORDS, **state.words}.get(name)
    found = {} if text is None else {"long_name": text}
    return {**found, "units": UNITS[name]} if name in UNITS else found


def observable_arrays(solution: Solution) -> Arrays:
    """What is measured at every time, unless a file kept it."""
    observed: Arrays = solution.stored.get("observed", {})
    if "observables" in solution.stored:
        return solution.stored["observables"] | observed
    dims = ("t", *member_dims(solution.shape))
    table = measure_all(solution.model, solution.states, solution.t)
    moment, degree = table.pop("moment", None), table.pop("degree", None)
    arrays: Arrays = {
        name: ((*dims, *MORE_DIMENSIONS.get(name, ())), values) for name, values in table.items()
    }
    if moment is not None:
        arrays["moment_re"] = (*dims, "k"), moment.real
        arrays["moment_im"] = (*dims, "k"), moment.imag
        arrays["k"] = ("k",), np.arange(1, MOMENTS + 1)
    if degree is not None:
        arrays["degree"] = ("t",), degree
    arrays["t"] = ("t",), solution.t
    return arrays | observed | _parameters(solution)


def labelled_arrays(solution: Solution) -> Arrays:
    """Observables and states."""
    state: Any = type(solution.final)
    return observable_arrays(solution) | state.stacked(solution.states)


def _parameters(solution: Solution) -> Arrays:
    """beta, kappa, and what else tells members apart, along the axes where they vary."""
    shape, dims = solution.shape, member_dims(solution.shape)
    arrays: Arrays = {}
    for name, values in solution.parameters.items():
        if values.ndim:
            own = (1,) * (len(shape) - values.ndim) + values.shape
            kept = tuple(i for i, size in enumerate(own) if size > 1)
            arrays[name] = tuple(dims[i] for i in kept), values.reshape([own[i] for i in kept])
    return arrays


def observables_dataset(solution: Solution) -> "xr.Dataset":
    """`observable_arrays` as a dataset."""
    return _dataset(observable_arrays(solution), solution)


def solution_dataset(solution: Solution) -> "xr.Dataset":
    """`labelled_arrays` as a dataset, with status and message among its attributes."""
    dataset = _dataset(labelled_arrays(solution), solution)
    dataset.attrs = {
        "title": f"{type(solution.final).__name__} under {solution.model!r}",
        "status": solution.status,
        "message": solution.message,
    }
    return dataset


def _dataset(arrays: Arrays, solution: Solution) -> "xr.Dataset":
    import xarray as xr

    state = type(solution.final)
    variables = {
        name: (dims, values, words(name, state)) for name, (dims, values) in arrays.items()
    }
    coordinates = (*AXES, *solution.parameters)
    coords = {name: variables.pop(name) for name in coordinates if name in variables}
    return xr.Dataset(variables, coords)
