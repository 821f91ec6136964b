"""The spaces of densities and how finely they are resolved: [geometry] and [characteristics]."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from .values import Natural, Series, Table

__all__ = ["Characteristics", "Circle", "Geometry", "Sphere", "Zonal"]


class Circle(Table):
    """The unit circle."""

    kind: Literal["circle"] = Field(default="circle", description="the space")
    degree: Natural = Field(description="highest Fourier mode of the initial density")


class Sphere(Table):
    """The unit sphere S^2."""

    kind: Literal["sphere"] = Field(description="the space")
    degree: Natural = Field(description="highest spherical harmonic of the initial density")


class Zonal(Table):
    """Densities on S^(d-1) that are symmetric about an axis."""

    kind: Literal["zonal"] = Field(description="the space")
    dimension: int = Field(ge=2, description="d: the dimension of the tokens")
    degree: Natural = Field(description="highest Gegenbauer polynomial of the initial density")


def _circle_by_default(table: Any) -> Any:
    return {"kind": "circle", **table} if isinstance(table, dict) else table


Geometry = Annotated[
    Annotated[Circle | Sphere | Zonal, Field(discriminator="kind")],
    BeforeValidator(_circle_by_default),
]


class Characteristics(Table):
    """Follow the density, without noise, by nodes that the flow carries, instead of by modes."""

    nodes: Natural | None = Field(
        default=None, description="how many; 4096 on the circle, 16384 on the sphere, 1024 zonal"
    )
    limit: Series | None = Field(
        default=None, description="unit vector at which the density is expected to gather"
    )
