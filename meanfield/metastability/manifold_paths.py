"""Paths along the unstable manifolds of the saddles between two stable states."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..bifurcation import StationaryState
from ..bifurcation.reflections import Reflected
from ..bifurcation.unstable_manifolds import basis_without, flow_solver
from .path_frames import Course, PathFrame, maps, placed
from .saddles import Saddle, Watch

NEAR_SADDLE, NEAR_END = 1e-5, 1e-6  # L^2 distances at which the flow begins and ends
TIME_STEP = 0.05  # between outputs of the flow, over the shorter time of growth and decay
MOST_OUTPUTS = 4000  # from one saddle
DESCENT_RTOL, DESCENT_ATOL = 1e-9, 1e-12  # of the flow


class Crossing(NamedTuple):
    """A saddle on a path, and the number of the reflection of the model that maps it there."""

    saddle: Saddle
    reflection: int = 0


def _highest(height: float, saddle: Saddle) -> float:
    """The greater of a free energy and that of a saddle."""
    return max(height, saddle.state.free_energy)


def lowest_passes(
    a: StationaryState, b: StationaryState,
    around: Callable[[StationaryState], Iterable[Saddle]],
    beyond: Callable[[float, Saddle], float] = _highest, start: float = -np.inf,
) -> list[Crossing]:  # fmt: skip
    """Saddles on the way from a to b whose highest one is lowest; empty if none is known.

    `around` gives saddles around a state, up to reflections of the model. `beyond` gives the height
    of a way that has a height, `start` in a, continued over a saddle.
    """
    basis = a.equation.basis
    reflections = basis.symmetries.reflections if isinstance(basis, Reflected) else (0,)
    reached: list[tuple[StationaryState, int]] = []
    waiting: list[tuple[float, bool, StationaryState, int, list[Crossing]]]
    waiting = [(start, True, a, 0, [])]
    while waiting:
        height, ahead, here, image, way = waiting.pop(_first(waiting))
        if not ahead:
            return way
        if any(maps(image ^ other, here, known) for known, other in reached):
            continue
        reached.append((here, image))
        for one in around(here):
            before, after = one.ends
            if before is None or after is None:
                continue
            top = beyond(height, one)
            for r in (r for r in reflections if maps(r ^ image, before, here)):
                there = [*way, Crossing(one, r)]
                waiting.append((top, not maps(r, after, b), after, r, there))
    return []


def _first(waiting: Sequence[tuple[Any, ...]]) -> int:
    """Index of the lowest way, of those that have arrived if there are several."""
    return min(range(len(waiting)), key=lambda i: waiting[i][:2])


def manifold_course(
    a: StationaryState, b: StationaryState, crossings: Sequence[Crossing], watch: Watch = str,
    ascents: Sequence[np.ndarray] = (),
) -> Course | None:  # fmt: skip
    """The path over saddles, along their unstable manifolds, or `ascents` up to each of them.

    None without saddles, and if a manifold leads to another end than the flow from farther away,
    as it does at a saddle whose symmetry a stable state lacks, or its ends are not known to be
    images of a, of b or of the end of the next one.
    """
    passes = [one.saddle for one in crossings]
    frame, legs = PathFrame.of(a, b, *(one.state for one in passes)), list[np.ndarray]()
    for i, (saddle, reflection) in reversed(list(enumerate(crossings))):
        up = ascents[i] if ascents else descent(frame, saddle, 0, watch)
        down = descent(frame, saddle, 1, watch)
        if up is None or down is None:
            return None
        pair = [frame.reflected(reflection, leg) for leg in (up if ascents else up[::-1], down)]
        if legs:  # the path is continuous at the stable state between two saddles
            map_to = frame.symmetry(pair[1][-1], legs[0][0])
            if map_to is None:
                return None
            pair = [map_to(leg) for leg in pair]
        legs = [*pair, *legs]
    course = placed(frame, legs, a, b) if legs else None
    if course is None:
        return None
    method = "least action" if ascents else "manifold"
    return Course(frame, course, passes, method, climbs=bool(ascents))


def descent(frame: PathFrame, saddle: Saddle, which: int, watch: Watch = str) -> np.ndarray | None:
    """Rows of coefficients from a saddle down to one of its ends, along the unstable manifold.

    By backward differentiation formulas. None if the end is not reached.
    """
    state, end = saddle.state, saddle.ends[which]
    assert end is not None
    top, bottom = frame.row_of(state), frame.row_of(end, state.axis)
    direction = frame.row(state.density.space, saddle.direction, state.axis)
    rows = [top, top + (NEAR_SADDLE if which == 0 else -NEAR_SADDLE) * direction]
    basis = basis_without(state, saddle.order).finer(frame.basis.degree)
    m, axis = basis.moments(frame.lifted(rows[-1], state.axis))
    step = TIME_STEP / max(saddle.rate, end.stability(1).gap)
    run = flow_solver(state.model, basis, m, MOST_OUTPUTS * step, DESCENT_RTOL, DESCENT_ATOL)
    while run.status == "running":
        run.step()
        at = run.dense_output() if run.status != "failed" else None
        while at is not None and len(rows) - 1 <= run.t / step:
            here = basis.density(at((len(rows) - 1) * step), axis)
            row = frame.row(here.space, here.coefficients, state.axis)
            if frame.apart(row, bottom) <= NEAR_END:
                return np.array([*rows, bottom])
            rows.append(row)
        watch(f"unstable manifold, {frame.apart(rows[-1], bottom):.1e} from its end")
    return None
