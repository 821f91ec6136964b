"""Which onsets of the uniform state are followed."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.checks import whole_number
from .path import Onset, Path

__all__ = ["asked_degrees", "chosen_onsets", "onsets_above"]

LARGEST = 12  # degree that is followed without being asked for
FARTHEST = 1000.0  # times the range: how high onsets are looked for


def chosen_onsets(
    path: Path, span: tuple[float, float], asked: Any
) -> tuple[Path, list[Onset], list[str]]:
    """Those of degrees that have one function, in the order of the parameter; what is left out.

    All that the path reaches for the range; those that are asked for must be in it, or below. And
    the path in twice as high a degree, which their normal forms need.
    """
    if asked is not None:
        wanted = asked_degrees(asked, path.basis.most // 2)
        path = path.finer(max(path.basis.degree, 2 * wanted[-1]))
        return path, _asked(path, span, wanted), []
    found = {l: path.onsets(l, path.reach(span)) for l in _single(path)}
    higher = [l for l in found if l > LARGEST and any(o.value < span[1] for o in found[l])]
    left_out = [] if not higher else [
        f"degrees above {LARGEST} have onsets in the range, {higher[0]} for one, which are not "
        "followed: give the degrees that you want."
    ]  # fmt: skip
    return path, _sorted(o for l in found if l <= LARGEST for o in found[l]), left_out


def onsets_above(path: Path, high: float) -> list[Onset]:
    """Those above a value, whose branches may come down below it."""
    place = (high, FARTHEST * high)
    return [o for l in _single(path) if l <= LARGEST for o in path.onsets(l, place)]


def _single(path: Path) -> list[int]:
    """Degrees with one function."""
    degrees, counts = np.unique(path.basis.degrees, return_counts=True)
    return [int(l) for l in degrees[(counts == 1) & (2 * degrees <= path.basis.degree)]]


def asked_degrees(asked: Any, most: int) -> list[int]:
    """Sorted; raises TypeError or ValueError unless they are whole numbers, at most `most`."""
    if not isinstance(asked, Iterable):
        raise TypeError(f"degrees is a sequence of whole numbers; got {asked!r}.")
    wanted = sorted({whole_number("degrees are whole numbers", "l", l) for l in asked})
    if not wanted:
        raise ValueError("degrees is empty: give one degree at least.")
    if wanted[-1] > most:
        raise ValueError(f"degrees are at most {most} here; got {wanted[-1]}.")
    return wanted


def _asked(path: Path, span: tuple[float, float], wanted: list[int]) -> list[Onset]:
    place = path.reach(span)[0], span[1]
    found = {l: path.onsets(l, place) for l in _single(path)}
    for l in wanted:
        if not found.get(l):
            there = [other for other in found if found[other]]
            low = f"{place[0]:g} < " if place[0] else ""
            raise ValueError(
                f"The uniform state has no bifurcation of degree {l} for {low}{path.parameter} < "
                f"{span[1]:g}; those of degree {there} are there."
            )
    return _sorted(onset for l in wanted for onset in found[l])


def _sorted(onsets: Iterable[Onset]) -> list[Onset]:
    return sorted(onsets, key=lambda onset: onset.value)
