"""Names, dimensions and values of what a solution holds."""

from typing import Any

import numpy as np

from ...dynamics.observables import MOMENTS, measure_all
from ...spaces.characteristics import Characteristics
from ...states import Equiangular, Gaussian, Gram, Tokens
from ..solution import Solution

__all__ = ["ATTRIBUTES", "Arrays", "labelled_arrays", "observable_arrays", "state_arrays"]

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
    "coordinates": {"long_name": "coordinates of the nodes, see Characteristics"},
    "masses": {"long_name": "masses of the nodes or tokens"},
    "radii": {"long_name": "lengths of the hidden states"},
    "mean": {"long_name": "mean of the Gaussian"},
    "covariance": {"long_name": "covariance of the Gaussian"},
    "root": {"long_name": "root L of the covariance L L^T"},
    "inner_product": {"long_name": "inner product of two tokens"},
    "rho": {"long_name": "inner product of any two tokens"},
    "gap": {"long_name": "1 - rho"},
    "radius": {"long_name": "length of the hidden states"},
    "logit": {"long_name": "log((1 + (n - 1) rho)/(1 - rho))"},
    "n": {"long_name": "number of tokens"},
    "initial_rho": {"long_name": "inner product at the start"},
    "initial_gap": {"long_name": "1 - rho at the start"},
    "initial_radius": {"long_name": "length of the hidden states at the start"},
    "w2_to_dirac": {"long_name": "W2 to the Dirac at limit_point", "units": "radian"},
    "limit_point": {"long_name": "direction of the mean"},
}
MORE_DIMENSIONS = {
    "limit_point": ("component",),
    "cluster_mass": ("cluster",),
    "cluster_point": ("cluster", "component"),
}


def observable_arrays(solution: Solution) -> Arrays:
    """`observables.measure` at every time, unless a file kept them."""
    if "observables" in solution.stored:
        return solution.stored["observables"]
    dims = ("t", *member_dims(solution.shape))
    table = measure_all(solution.model, solution.states, solution.t)
    moment, degree = table.pop("moment", None), table.pop("degree", None)
    arrays = {
        name: ((*dims, *MORE_DIMENSIONS.get(name, ())), values) for name, values in table.items()
    }
    if moment is not None:
        arrays["moment_re"] = (*dims, "k"), moment.real
        arrays["moment_im"] = (*dims, "k"), moment.imag
        arrays["k"] = ("k",), np.arange(1, MOMENTS + 1)
    if degree is not None:
        arrays["degree"] = ("t",), degree
    arrays["t"] = ("t",), solution.t
    return arrays | _parameters(solution)


def state_arrays(solution: Solution) -> Arrays:
    """The states themselves, on axes that all times share."""
    match solution.final:
        case Characteristics():
            return _nodes(solution)
        case Tokens():
            return _tokens(solution)
        case Gram():
            return _products(solution)
        case Equiangular():
            return _logits(solution)
        case Gaussian():
            return _gaussians(solution)
    return _densities(solution)


def labelled_arrays(solution: Solution) -> Arrays:
    """Observables and states."""
    return observable_arrays(solution) | state_arrays(solution)


def _densities(solution: Solution) -> Arrays:
    """Densities on the grid of the highest degree, and their coefficients."""
    states: list[Any] = list(solution.states)
    highest = max(state.geometry.degree for state in states)
    fine = [state.resample(highest) for state in states]
    geometry, dims = fine[0].geometry, ("t", *member_dims(solution.shape))
    coefficients = np.stack([state.coefficients for state in fine])
    values = np.stack([state.values for state in fine])
    grid: Arrays = {name: ((name,), axis) for name, axis in geometry.axes.items()}
    sizes = [axis.size for axis in geometry.axes.values()]
    return {
        **grid,
        **{name: (("mode",), labels) for name, labels in geometry.mode_axes.items()},
        "density": ((*dims, *grid), values.reshape(*values.shape[:-1], *sizes)),
        "coefficient_re": ((*dims, "mode"), coefficients.real),
        "coefficient_im": ((*dims, "mode"), coefficients.imag),
    }


def _nodes(solution: Solution) -> Arrays:
    """Coordinates of the nodes at every time; masses, and what else stays."""
    states: list[Any] = list(solution.states)
    first = states[0]
    dims = ("t", "node", "coordinate")[: 1 + first.coordinates.ndim]
    return {
        "coordinates": (dims, np.stack([state.coordinates for state in states])),
        "masses": (("node",), first.masses),
        "half": (("halving", "node"), np.array(first.halves, dtype=np.int8)),
        "limit": (("component",), first.limit),
    }


def _tokens(solution: Solution) -> Arrays:
    """Points at every time; masses, at every time where a reaction changes them; radii."""
    states: list[Any] = list(solution.states)
    members, first = member_dims(solution.shape), states[0]
    arrays: Arrays = {
        "x": (("t", *members, "token", "component"), np.stack([state.x for state in states])),
        "masses": ((*members, "token"), first.masses),
    }
    if solution.model.reaction:
        masses = np.stack([state.masses for state in states])
        arrays["masses"] = ("t", *members, "token"), masses
    if first.radii is not None:
        radii = np.stack([state.radii for state in states])
        arrays["radii"] = ("t", *members, "token"), radii
    return arrays


def _products(solution: Solution) -> Arrays:
    """Inner products at every time, and masses."""
    states: list[Any] = list(solution.states)
    members = member_dims(solution.shape)
    products = np.stack([state.G for state in states])
    return {
        "inner_product": (("t", *members, "token", "other"), products),
        "masses": ((*members, "token"), states[0].masses),
    }


def _logits(solution: Solution) -> Arrays:
    """Logits and radii at every time, and the numbers of tokens."""
    states: list[Any] = list(solution.states)
    members = member_dims(solution.shape)
    return {
        "logit": (("t", *members), np.stack([state.logit for state in states])),
        "radius": (("t", *members), np.stack([state.radius for state in states])),
        "n": (members, states[0].n),
    }


def _gaussians(solution: Solution) -> Arrays:
    """Means, covariances and their roots at every time."""
    states: list[Any] = list(solution.states)
    return {
        "mean": (("t", "component"), np.stack([state.mean for state in states])),
        "covariance": (("t", "component", "other"), np.stack([state.cov for state in states])),
        "root": (("t", "component", "column"), np.stack([state.root for state in states])),
    }


def member_dims(shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the ensemble axes."""
    return ("member",) if len(shape) == 1 else tuple(f"member_{i}" for i in range(len(shape)))


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
