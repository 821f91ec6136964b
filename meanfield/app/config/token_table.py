"""Finitely many tokens: the table [tokens]."""

from typing import Literal

from pydantic import Field

from .files import ArrayName, DataFile
from .values import Index, Natural, Points, PositiveNumbers, Series, Table

__all__ = ["SOURCES", "Tokens"]

SOURCES = ("initial", "angles", "points", "file")


class Tokens(Table):
    """Finitely many tokens, whose positions are given, drawn, or sampled from a density."""

    n: int | None = Field(default=None, ge=2, description="number of tokens")
    dimension: Natural | None = Field(default=None, description="d: the dimension of the tokens")
    initial: Literal["uniform", "normal", "orthonormal"] | None = Field(
        default=None, description="positions by a law, or the first n basis vectors"
    )
    angles: Series | None = Field(
        default=None, min_length=2, description="positions on the circle, in radians"
    )
    points: Points | None = Field(default=None, description="positions [[...], ...]")
    file: DataFile | None = Field(
        default=None, description="positions from a *.npy, *.npz or *.csv file"
    )
    key: ArrayName = Field(default=None, description="name of the array in an .npz file")
    seed: Index | None = Field(default=None, description="seed of the positions")
    replicas: Natural | None = Field(
        default=None, description="independent sets of tokens; by default one without an axis"
    )
    space: Literal["sphere", "euclidean"] = Field(
        default="sphere", description="the unit sphere of R^d, or R^d"
    )
    masses: Series | None = Field(default=None, description="n numbers of sum 1; 1/n by default")
    radii: PositiveNumbers | None = Field(
        default=None, description="lengths of the hidden states; 1 by default"
    )
    gram: bool = Field(default=False, description="whether inner products alone are followed")

    @property
    def source(self) -> str | None:
        """Where positions come from: the name of a key; None is a density."""
        return next((name for name in SOURCES if getattr(self, name) is not None), None)

    @property
    def drawn(self) -> bool:
        """Whether positions are random."""
        return self.source is None or self.initial in ("uniform", "normal")
