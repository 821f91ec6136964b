"""Where the branches of a diagram pass a value of their parameter."""

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple
from warnings import warn

import numpy as np

from .curve import Curve
from .path import Path

if TYPE_CHECKING:
    from .diagram import Diagram

__all__ = ["crossings"]

SMALL = 0.05  # moments of a branch that begins at the uniform state
CLOSE = 0.5  # of the guess: a smaller solution is the uniform state


class _Node(NamedTuple):
    """A point of a branch; moments leave it as this power of the change of the parameter."""

    value: float
    a: np.ndarray
    power: float


def crossings(diagram: "Diagram", value: float) -> Iterator[tuple[int, Path, np.ndarray]]:
    """Branch, path and (a, p) of every state on a branch, by Newton's method from near points.

    Onsets and folds are among the points: next to them moments change like the square root of the
    parameter, or linearly where the onset is transcritical.
    """
    for number in range(1, len(diagram.ends) + 1):
        path = diagram.path(int(diagram.data.resolution[diagram.data.branch == number].max()))
        curve = Curve(path, 1.0)
        for first, last in pairwise(_nodes(diagram, number, path)):
            inside = min(first.value, last.value) <= value <= max(first.value, last.value)
            if not inside or value == last.value:
                continue
            near = _between(first, last, value)
            z = curve.at_value(np.append(near, path.coordinate(value)), value)
            if z is None:
                warn(
                    f"Branch {number} passes {diagram.parameter} = {value:g}, but its state there "
                    "was not found: follow it with a smaller max_step.",
                    stacklevel=4,
                )
            elif np.abs(z[:-1]).max() > CLOSE * np.abs(near).max():
                yield number, path, z


def _nodes(diagram: "Diagram", number: int, path: Path) -> list[_Node]:
    here = diagram.data.branch.values == number
    count = len(path.basis.degrees)
    moments = diagram.data.moments.values[here, :count] * path.basis.sizes
    values = diagram.data[diagram.parameter].values[here]
    nodes = [_Node(float(v), a, 1.0) for v, a in zip(values, moments, strict=True)]
    for fold in diagram.special("fold", number):
        a = np.pad(fold.state.moments, (0, count - len(fold.state.moments)))
        detours = [
            np.linalg.norm(a - one.a) + np.linalg.norm(a - two.a) - np.linalg.norm(one.a - two.a)
            for one, two in pairwise(nodes)
        ]
        if detours:
            nodes.insert(int(np.argmin(detours)) + 1, _Node(fold.value, a, 0.5))
    if diagram.ends[number - 1] == "bifurcation":
        nodes[-1] = nodes[-1]._replace(power=0.5)
    degree = path.basis.degrees[np.abs(nodes[0].a).argmax()]
    onsets = [onset for onset in diagram.special("bifurcation", 0) if onset.degree == degree]
    if onsets and np.abs(nodes[0].a).max() < SMALL:
        onset = min(onsets, key=lambda special: abs(special.value - nodes[0].value))
        power = 1.0 if onset.character == "transcritical" else 0.5
        nodes.insert(0, _Node(onset.value, np.zeros(count), power))
    return nodes


def _between(first: _Node, last: _Node, value: float) -> np.ndarray:
    if last.power < first.power:
        first, last = last, first
    part = (value - first.value) / (last.value - first.value)
    return first.a + part**first.power * (last.a - first.a)
