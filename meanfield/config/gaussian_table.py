"""A normal law on R^d: the table [gaussian]."""

from typing import Annotated

from pydantic import Field

from .values import Series, Table

__all__ = ["Gaussian"]

Rows = Annotated[tuple[Series, ...], Field(strict=False, min_length=1)]


class Gaussian(Table):
    """A normal law on R^d, which attention with matrices keeps."""

    mean: Series = Field(min_length=1, description="d numbers")
    cov: Rows = Field(description="covariance (d, d), symmetric and positive semidefinite")
