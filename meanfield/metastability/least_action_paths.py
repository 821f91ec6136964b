"""Paths of least action between two stable states, for models without a free energy."""

from typing import Any

import numpy as np

from ..bifurcation import StationaryState
from ..bifurcation.reflections import Reflected, Symmetries, reflected_on
from ..core.errors import MeanfieldError
from .least_actions import DensityFlow, LeastAction, check_action, least_action
from .manifold_paths import descent, lowest_passes, manifold_course
from .path_frames import Course, PathFrame
from .saddles import Saddle, SaddleSearch, Watch

AT_REST = 1e-9  # largest angular velocity of a state at rest
UNIT_CHANGE = 0.01  # size of perturbations in a linear map of coefficients
ASIDE = 1e-7  # part of a state, in L^2, that may lack the symmetry of the path


def course_of_least_action(
    a: StationaryState, b: StationaryState, method: str, search: SaddleSearch
) -> tuple[Course, float, float]:
    """The path of least action, its action and the error of it; MeanfieldError without one."""
    if method == "string":
        raise MeanfieldError(
            f"The string method needs a free energy, which {a.model!r} has not: leave method out."
        )
    if max(abs(a.speed), abs(b.speed)) > AT_REST:
        raise MeanfieldError(
            f"Paths of least action begin and end at rest; {a!r} or {b!r} rotates."
        )
    check_action(a.model)
    climbed: dict[int, tuple[Saddle, PathFrame, LeastAction]] = {}

    def beyond(action: float, saddle: Saddle) -> float:
        if id(saddle) not in climbed:
            frame = PathFrame.of(a, b, saddle.state)
            climbed[id(saddle)] = saddle, frame, _ascent(frame, saddle, search.watch)
        return action + climbed[id(saddle)][-1].action

    crossings = lowest_passes(a, b, search.around, beyond, 0.0)
    frame = PathFrame.of(a, b, *(one.saddle.state for one in crossings))
    ascents = [
        found if other.space == frame.space else _ascent(frame, saddle, search.watch)
        for saddle, other, found in (climbed[id(one.saddle)] for one in crossings)
    ]
    course = manifold_course(a, b, crossings, search.watch, [one.rows for one in ascents])
    if course is None:
        raise MeanfieldError(
            f"No saddle between {a!r} and {b!r} was found, and {a.model!r} has no free energy for "
            "the string method: take as b the state beyond one of mf.saddles(a), its ends[1]."
        )
    return course, sum(one.action for one in ascents), sum(one.error for one in ascents)


def _ascent(frame: PathFrame, saddle: Saddle, watch: Watch) -> LeastAction:
    """The path of least action up to a saddle, in rows of coefficients of a frame."""
    basis = _common_basis(frame, saddle)
    axis = None if isinstance(basis, Reflected) else saddle.state.axis
    functions = basis.even
    moments = np.zeros((len(functions.members), len(basis.degrees)))
    moments[np.arange(len(moments)), functions.members] = UNIT_CHANGE / functions.sizes
    each = [basis.density(m, axis) for m in (np.zeros(len(basis.degrees)), *moments)]
    uniform, *others = (frame.row(one.space, one.coefficients, saddle.state.axis) for one in each)
    to_rows = (np.array(others) - uniform) / UNIT_CHANGE
    down = descent(frame, saddle, 0, watch)
    if down is None:
        raise MeanfieldError(f"The flow from {saddle!r} did not come down: it has no path up.")
    start = down[::-1]
    weights = np.sqrt(frame.space.parseval)
    table = (to_rows * weights).T
    real = np.concatenate([table.real, table.imag])
    changes = weights * (start - uniform)
    wanted = np.concatenate([changes.real, changes.imag], axis=1).T
    coordinates = np.linalg.lstsq(real, wanted)[0]
    if np.linalg.norm(real @ coordinates - wanted) > ASIDE:
        raise MeanfieldError(
            f"The state below {saddle!r} lacks its symmetry: pass the symmetry that both have."
        )
    flow = DensityFlow(frame.model, basis)
    found = least_action(flow.at, flow.coordinates(coordinates.T), watch)
    rows = uniform + flow.coefficients(found.rows) @ to_rows
    rows[0], rows[-1] = start[0], start[-1]
    return LeastAction(rows, found.action, found.error)


def _common_basis(frame: PathFrame, saddle: Saddle) -> Any:
    """The basis of the symmetry that a saddle and the state below it share, of a frame's degree."""
    end = saddle.ends[0]
    assert end is not None
    basis, degree = saddle.state.equation.basis, frame.basis.degree
    if isinstance(basis, Reflected):
        kept = set(basis.kept) & set(end.equation.basis.kept)
        return basis.keeping(tuple(sorted(kept))).finer(degree)
    if saddle.order == 0:
        return basis.finer(degree)
    space = saddle.state.density.space.with_degree(degree)
    return reflected_on(space)(space, frame.model.noise, Symmetries((0,)))
