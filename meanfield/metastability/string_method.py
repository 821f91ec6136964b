"""The string method: minimum free-energy paths without known saddles."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..bifurcation import StationaryState
from ..bifurcation.multistability import same_state
from ..bifurcation.reflections import Reflected
from ..bifurcation.stationary import state_near
from ..dynamics.observables import measure
from ..solving import solve
from ..spaces import Circle
from ..spaces.validity import NEGATIVE_SHARE
from .path_frames import Course, PathFrame, parts_of, placed, spaced
from .saddles import Saddle, SaddleSearch, Watch, saddle_at, state_beyond

STRING_RTOL = 1e-9
ROUGH, SETTLED = 0.03, 1e-7  # moves of images in one step of the string, over its spacing
MOST_STRING_STEPS = 400
SHARE_OF_LENGTH = 0.1  # longest move of an image by the flow in one step, over the whole length


def string_course(
    a: StationaryState, b: StationaryState, images: int, search: SaddleSearch
) -> Course:
    """The string between two states, leg by leg between stable states and saddles.

    Without saddles where they were not found.
    """
    frame = PathFrame.of(a, b)
    ends = [frame.row_of(one) for one in (a, b)]
    if isinstance(frame.space, Circle) and not isinstance(frame.basis, Reflected):
        ends = [frame.space.rotate(row, -one.axis) for row, one in zip(ends, (a, b), strict=True)]
    share = np.linspace(0, 1, images)[:, None]
    rough = _evolved(frame, [(1 - share) * ends[0] + share * ends[1]], ROUGH, search.watch)
    found = _passes_on(frame, rough[0], a, b, search.symmetry)
    if found is None:
        return _relaxed(frame, rough, [], a, b, search.watch)
    nodes, places, passes = found
    cut = [rough[0][i : j + 1].copy() for i, j in pairwise([0, *places, images - 1])]
    for leg, (first, last) in zip(cut, pairwise([ends[0], *nodes, ends[1]]), strict=True):
        leg[0], leg[-1] = first, last
    counts = parts_of(frame, cut, images)
    cut = [spaced(frame, leg, count)[1] for leg, count in zip(cut, counts, strict=True)]
    return _relaxed(frame, cut, passes, a, b, search.watch)


def _relaxed(
    frame: PathFrame, legs: list[np.ndarray], passes: Sequence[Saddle], a: StationaryState,
    b: StationaryState, watch: Watch,
) -> Course:  # fmt: skip
    """The string after its last steps, in the frame of b or a."""
    legs = _evolved(frame, legs, SETTLED, watch)
    return Course(frame, placed(frame, legs, a, b) or legs, passes, "string")


def _passes_on(
    frame: PathFrame, rows: np.ndarray, a: StationaryState, b: StationaryState, symmetry: Any
) -> tuple[list[np.ndarray], list[int], list[Saddle]] | None:
    """Saddles and the stable states between them near the extremes of F on a string.

    Rows of coefficients of these, indices of their images, and the saddles; None unless the string
    leads over saddles from a to b.
    """
    energies = measure(frame.model, frame.density(rows))["free_energy"]
    turns = np.diff(np.sign(np.diff(energies)))
    places = [int(i) + 1 for i in np.flatnonzero(turns)]
    nodes: list[np.ndarray] = []
    passes: list[Saddle] = []
    here = a
    for i in places:
        guess = frame.lifted(rows[i], frame.basis.axis)
        state = state_near(frame.model, guess, symmetry)
        if not state.converged:
            return None
        nodes.append(frame.row_of(state, frame.basis.axis))
        if turns[i - 1] < 0:
            saddle = saddle_at(state, here, symmetry)
            if saddle is None:
                return None
            passes.append(saddle)
        here = state
    beyond = [*(place for place in places if turns[place - 1] > 0), None]
    reached = passes and all(one.converged for one in passes) and len(beyond) == len(passes)
    if not reached or not same_state(state_beyond(passes[-1]), b):
        return None
    return nodes, places, passes


def _evolved(
    frame: PathFrame, legs: list[np.ndarray], tolerance: float, watch: Watch
) -> list[np.ndarray]:
    """Legs of a string after steps until no image moves by more than `tolerance` spacings.

    Also after the last step allowed, and before a step after which densities would be negative.
    """
    change = np.inf
    for step in range(MOST_STRING_STEPS):
        rows = np.concatenate(legs)
        watch(f"string, step {step}, last moved by {change:.1e}")
        length = sum(float(frame.spline(leg)[0][-1]) for leg in legs)
        fastest = float(frame.norms(frame.velocities(rows)).max())
        duration = SHARE_OF_LENGTH * length / fastest
        degree = frame.space.degree
        final: Any = solve(
            frame.model, frame.density(rows), (0, duration), rtol=STRING_RTOL, min_degree=degree,
            max_degree=degree, progress=False,
        ).final  # fmt: skip
        places = np.cumsum([len(leg) for leg in legs])[:-1]
        moved = np.split(np.array(final.coefficients), places)
        for new, old in zip(moved, legs, strict=True):
            new[0], new[-1] = old[0], old[-1]
        moved = [spaced(frame, leg, len(leg) - 1)[1] for leg in moved]
        values = frame.density(np.concatenate(moved)).values
        if values.min() < -NEGATIVE_SHARE * values.max():
            break  # a spline oscillates at a kink of a string that does not converge
        change = float(frame.norms(np.concatenate(moved) - rows).max())
        legs = moved
        if change < tolerance * length / len(rows):
            break
    return legs
