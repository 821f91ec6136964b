"""What is missing from a diagram, in words."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .diagram import Diagram
    from .phase_diagram import PhaseDiagram

__all__ = ["cut_short", "of_branches", "of_curves"]

ENDS = {
    "not continued": "was not continued beyond {place}: take a smaller max_step",
    "max_points": "ends at {place}, after its largest number of points: raise max_points",
    "unresolved": "needs too many moments beyond {place}: take a smaller range",
    "interrupted": "was interrupted at {place}; what would have come after it is missing",
    "not located": "was not found on the branch from which it is followed: take another range",
}


def of_branches(diagram: "Diagram") -> list[str]:
    """Branches that end for want of points, and special points that were not located."""
    data, name = diagram.data, diagram.parameter
    found = [str(sentence) for sentence in np.atleast_1d(data.attrs.get("missing", []))]
    for number, end in enumerate(diagram.ends, start=1):
        if end in ENDS:
            value = float(data[name].values[data.branch.values == number][-1])
            found.append(f"branch {number} {ENDS[end].format(place=f'{name} = {value:.6g}')}.")
    for special in diagram.special_points:
        if special.status == "not located":
            low, high = sorted(special.interval)
            found.append(
                f"{special.kind} of branch {special.branch} was not located between {name} = "
                f"{low:.10g} and {high:.10g}: take a smaller max_step."
            )
    return found


def cut_short(diagram: "Diagram", value: float) -> list[str]:
    """Branches that end for want of points before they come to a value of the parameter."""
    data, name, found = diagram.data, diagram.parameter, []
    for number, end in enumerate(diagram.ends, start=1):
        last = float(data[name].values[data.branch.values == number][-1])
        if end in ENDS and last <= value:
            found.append(f"branch {number} {ENDS[end].format(place=f'{name} = {last:.6g}')}.")
    return found


def of_curves(diagram: "PhaseDiagram") -> list[str]:
    """Curves that end for want of points, or that have none."""
    found = []
    for name, ends in diagram.ends.items():
        here = diagram.data.beta.values[diagram.data.curve.values == name]
        places = here[[0, -1]] if len(here) else [float("nan")] * 2
        for end, beta in dict(zip(ends, places, strict=True)).items():
            if end in ENDS:
                place = f"beta = {beta:.6g}" if len(here) else "its start"
                found.append(f"{name} {ENDS[end].format(place=place)}.")
    return found
