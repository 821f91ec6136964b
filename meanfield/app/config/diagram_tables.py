"""What diagrams of stationary states show: the tables [bifurcation] and [phase_diagram]."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, Strict

from .values import Natural, Positive, PositiveNumbers, Table

__all__ = ["Bifurcation", "Phases"]


def _is_range(numbers: tuple[float, ...]) -> tuple[float, ...]:
    if len(numbers) != 2 or not numbers[0] < numbers[1]:
        raise ValueError(f"expected a range [first, last], first < last; got {list(numbers)}")
    return numbers


def _is_range_or_number(numbers: float | tuple[float, ...]) -> float | tuple[float, ...]:
    return _is_range(numbers) if isinstance(numbers, tuple) else numbers


def _differ(entries: tuple) -> tuple:
    if len(set(entries)) < len(entries):
        raise ValueError(f"expected each at most once; got {list(entries)}")
    return entries


Range = Annotated[tuple[Positive, ...], Strict(False), AfterValidator(_is_range)]
Degrees = Annotated[tuple[Natural, ...], Strict(False), AfterValidator(_differ)]
Drifts = Annotated[tuple[Literal["USA", "SA"], ...], Strict(False), AfterValidator(_differ)]


class Bifurcation(Table):
    """The range of kappa or beta, and what is followed in it."""

    kappa: Annotated[PositiveNumbers, AfterValidator(_is_range_or_number)] = Field(
        description="the range of kappa, [first, last]; with beta one number"
    )
    beta: Range | None = Field(default=None, description="the range of beta, for one kappa")
    symmetry: Literal["axisymmetric", "tetrahedral", "octahedral", "icosahedral"] = Field(
        default="axisymmetric", description="of the states; polyhedral ones on the sphere"
    )
    degrees: Degrees | None = Field(
        default=None,
        min_length=1,
        description="whose branches are followed; by default all up to 12 that begin in the range",
    )
    secondary: bool = Field(
        default=True, description="whether branches that leave a branch are followed too"
    )
    stability: bool = Field(default=True, description="whether growth rates are computed")
    save_at: Annotated[tuple[Positive, ...], Strict(False)] = Field(
        default=(), description="where the states of every branch are kept"
    )
    max_step: Positive = Field(default=0.1, description="longest step along a branch")
    max_points: Natural = Field(default=500, description="most points of one branch")


class Phases(Table):
    """The range of beta, and which curves are wanted."""

    drifts: Drifts = Field(min_length=1, description='"USA", "SA" or both, side by side')
    beta: Range = Field(description="the range of beta, [first, last]")
    degrees: Degrees = Field(
        default=(1, 2, 3), min_length=1, description="whose critical curves are drawn"
    )
    max_step: Positive = Field(default=0.2, description="longest step along a curve")
