"""Solutions as labelled arrays: times, ensemble members, angles, modes.

First plain dictionaries name -> (dimensions, values), which is what goes into files; then the
same as xarray datasets.
"""

from typing import TYPE_CHECKING

import numpy as np

from .observables import MOMENTS, measure_all
from .solution import Solution, common_degree

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["labelled_arrays", "observables_dataset", "solution_dataset"]

Arrays = dict[str, tuple[tuple[str, ...], np.ndarray]]

ATTRIBUTES = {
    "t": {"long_name": "time"},
    "theta": {"long_name": "angle", "units": "radian"},
    "z": {"long_name": "height, the cosine of the polar angle"},
    "phi": {"long_name": "longitude", "units": "radian"},
    "x": {"long_name": "inner product with the axis"},
    "l": {"long_name": "degree of the harmonic"},
    "m": {"long_name": "order of the harmonic"},
    "k": {"long_name": "degree of the moment"},
    "mode": {"long_name": "number of the coefficient; its degree where there is one of each"},
    "density": {"long_name": "density with respect to the uniform probability measure"},
}
COORDINATES = ("t", "theta", "z", "phi", "x", "k", "mode", "l", "m", "beta", "kappa")


def observable_arrays(solution: Solution) -> Arrays:
    """`observables.measure` at every time."""
    dims = ("t", *_member_dims(solution.shape))
    table = measure_all(solution.model, solution.states)
    moment, degree = table.pop("moment"), table.pop("degree")
    arrays = {name: (dims, values) for name, values in table.items()}
    arrays["moment_re"] = (*dims, "k"), moment.real
    arrays["moment_im"] = (*dims, "k"), moment.imag
    arrays["degree"] = ("t",), degree
    arrays["t"] = ("t",), solution.t
    arrays["k"] = ("k",), np.arange(1, MOMENTS + 1)
    return arrays | _parameters(solution)


def labelled_arrays(solution: Solution) -> Arrays:
    """Observables, densities on the grid of the highest degree, and their coefficients."""
    fine = [state.resample(common_degree(solution.states)) for state in solution.states]
    geometry, dims = fine[0].geometry, ("t", *_member_dims(solution.shape))
    coefficients = np.stack([state.coefficients for state in fine])
    values = np.stack([state.values for state in fine])
    grid: Arrays = {name: ((name,), axis) for name, axis in geometry.axes.items()}
    sizes = [axis.size for axis in geometry.axes.values()]
    return observable_arrays(solution) | {
        **grid,
        **{name: (("mode",), labels) for name, labels in geometry.mode_axes.items()},
        "density": ((*dims, *grid), values.reshape(*values.shape[:-1], *sizes)),
        "coefficient_re": ((*dims, "mode"), coefficients.real),
        "coefficient_im": ((*dims, "mode"), coefficients.imag),
    }


def observables_dataset(solution: Solution) -> "xr.Dataset":
    """`observable_arrays` as a dataset."""
    return _dataset(observable_arrays(solution))


def solution_dataset(solution: Solution) -> "xr.Dataset":
    """`labelled_arrays` as a dataset, with status and message among its attributes."""
    dataset = _dataset(labelled_arrays(solution))
    dataset.attrs = {
        "title": f"Density under {solution.model!r}",
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


def _member_dims(shape: tuple[int, ...]) -> tuple[str, ...]:
    return ("member",) if len(shape) == 1 else tuple(f"member_{i}" for i in range(len(shape)))


def _parameters(solution: Solution) -> Arrays:
    """beta and kappa along the ensemble axes where they vary."""
    shape, dims = solution.shape, _member_dims(solution.shape)
    arrays: Arrays = {}
    for name, values in solution.model.parameters.items():
        if values.ndim:
            own = (1,) * (len(shape) - values.ndim) + values.shape
            kept = tuple(i for i, size in enumerate(own) if size > 1)
            arrays[name] = tuple(dims[i] for i in kept), values.reshape([own[i] for i in kept])
    return arrays
