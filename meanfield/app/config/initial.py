"""The kinds of initial densities that a file may describe: the table [initial]."""

from typing import Annotated, Literal

from pydantic import Field, Strict

from .files import ArrayName, DataFile
from .values import Finite, Index, Natural, NonNegative, Positive, Series, Table

__all__ = [
    "Ensemble",
    "Fourier",
    "Initial",
    "Legendre",
    "Mixture",
    "Perturbed",
    "Sample",
    "Uniform",
    "VonMises",
    "VonMisesFisher",
]


class Uniform(Table):
    """The uniform density 1."""

    kind: Literal["uniform"]


class Fourier(Table):
    """The density 1 + sum_k a_k cos(k theta) + b_k sin(k theta), k = 1, 2, ..."""

    kind: Literal["fourier"]
    cos: Series = Field(default=(), description="a_1, a_2, ...")
    sin: Series = Field(default=(), description="b_1, b_2, ...")


class VonMises(Table):
    """The von Mises density, proportional to exp(concentration cos(theta - mean))."""

    kind: Literal["von_mises"]
    mean: Finite = Field(default=0.0, description="angle of the peak, in radians")
    concentration: NonNegative = Field(description="0 is uniform, large is narrow")


class VonMisesFisher(Table):
    """The von Mises-Fisher density, proportional to exp(concentration <x, mean>)."""

    kind: Literal["von_mises_fisher"]
    mean: Series | None = Field(
        default=None, description="unit vector; by default the last axis, the only one if zonal"
    )
    concentration: NonNegative = Field(description="0 is uniform, large is narrow")


class Legendre(Table):
    """The density 1 + sum_l a_l P_l(<x, axis>) with Legendre polynomials, P_l(1) = 1."""

    kind: Literal["legendre"]
    coefficients: Series = Field(min_length=1, description="a_1, a_2, ...")
    axis: Series | None = Field(
        default=None, description="unit vector; by default the last axis, the only one if zonal"
    )


class Perturbed(Table):
    """The uniform density with a seeded random perturbation."""

    kind: Literal["perturbed"]
    amplitude: Positive = Field(
        description="standard deviation of the coefficients, such as that of cos(k theta)"
    )
    seed: Index = Field(description="seed of the random numbers")
    degrees: Annotated[tuple[Natural, ...], Strict(False)] | None = Field(
        default=None, min_length=1, description="the degrees that are perturbed; by default 1 to 8"
    )


class Sample(Table):
    """The spectral kernel estimate of a sample that is read from a file."""

    kind: Literal["sample"]
    file: DataFile = Field(description="*.npy, *.npz or *.csv, relative to the configuration file")
    key: ArrayName = Field(default=None, description="name of the array in an .npz file")
    layer: Index | None = Field(
        default=None, description="layer of hidden states (layers, n, d), counted from 0"
    )
    bandwidth: Positive | None = Field(
        default=None, description="width of the kernel in radians; by default from the sample"
    )


class Component(Table):
    """A part of a mixture."""

    weight: Positive = Field(description="share of this part; shares are divided by their sum")


class UniformComponent(Uniform, Component):
    """The uniform density 1, as a part of a mixture."""


class FourierComponent(Fourier, Component):
    """A Fourier series, as a part of a mixture."""


class VonMisesComponent(VonMises, Component):
    """A von Mises density, as a part of a mixture."""


class VonMisesFisherComponent(VonMisesFisher, Component):
    """A von Mises-Fisher density, as a part of a mixture."""


class LegendreComponent(Legendre, Component):
    """A Legendre series, as a part of a mixture."""


class PerturbedComponent(Perturbed, Component):
    """A perturbed uniform density, as a part of a mixture."""


class SampleComponent(Sample, Component):
    """An estimated density, as a part of a mixture."""


Part = Annotated[
    UniformComponent
    | FourierComponent
    | VonMisesComponent
    | VonMisesFisherComponent
    | LegendreComponent
    | PerturbedComponent
    | SampleComponent,
    Field(discriminator="kind"),
]


class Mixture(Table):
    """The weighted mean of several densities."""

    kind: Literal["mixture"]
    components: Annotated[tuple[Part, ...], Strict(False)] = Field(
        min_length=1, description="tables like [initial], each with a weight"
    )


Single = Annotated[
    Uniform | Fourier | VonMises | VonMisesFisher | Legendre | Perturbed | Sample | Mixture,
    Field(discriminator="kind"),
]


class Ensemble(Table):
    """Several initial densities, solved in one call."""

    kind: Literal["ensemble"]
    members: Annotated[tuple[Single, ...], Strict(False)] = Field(
        min_length=1, description="tables like [initial], one a member"
    )


Initial = Annotated[
    Uniform
    | Fourier
    | VonMises
    | VonMisesFisher
    | Legendre
    | Perturbed
    | Sample
    | Mixture
    | Ensemble,
    Field(discriminator="kind"),
]
