"""From [geometry] and [initial] to a space and a density on it."""

from pathlib import Path

import numpy as np

from ...spaces import Circle, Geometry, Sphere, Zonal
from ...spaces.density import COMPUTED, Density
from .blame import blaming
from .described import Described, InSpace
from .files import folder_of
from .initial import (
    Ensemble,
    Fourier,
    Initial,
    Legendre,
    Mixture,
    Perturbed,
    Sample,
    Uniform,
    VonMises,
    VonMisesFisher,
)
from .sample import read_sample

E_Z = (0.0, 0.0, 1.0)
GENERAL = ("uniform", "perturbed", "mixture", "ensemble")
KINDS = {
    Circle: (*GENERAL, "fourier", "von_mises", "sample"),
    Sphere: (*GENERAL, "legendre", "von_mises_fisher", "sample"),
    Zonal: (*GENERAL, "legendre", "von_mises_fisher"),
}

__all__ = ["build_density", "build_geometry"]


def build_geometry(config: InSpace) -> Geometry:
    """The space that [geometry] describes."""
    table = config.geometry
    assert table is not None  # or the file would have been refused
    with blaming(config, "geometry"):
        match table.kind:
            case "circle":
                return Circle(table.degree)
            case "sphere":
                return Sphere(table.degree)
            case _:
                return Zonal(table.dimension, table.degree)


def build_density(config: Described) -> Density:
    """The initial density that [initial] describes, or the ensemble of them.

    Raises
    ------
    ConfigError
        If a file cannot be read, or what is described is no density (negative somewhere) or
        does not fit in the degree; the message names the table.
    """
    assert config.initial is not None
    density = _density(config.initial, build_geometry(config), config, "initial")
    with blaming(config, "initial"):
        return density.checked_positive(COMPUTED)


def _density(table: Initial, space: Geometry, config: Described, key: str) -> Density:
    with blaming(config, key):
        match table:
            case Ensemble(members=members):
                return Density.stack(_densities(members, space, config, f"{key}.members"))
            case Mixture(components=parts):
                total = sum(part.weight for part in parts)
                shares = [part.weight / total for part in parts]
                densities = _densities(parts, space, config, f"{key}.components")
                return Density.mixture(shares, densities)
        return _single(table, space, folder_of(config.source))


def _densities(tables: tuple, space: Geometry, config: Described, key: str) -> list[Density]:
    return [_density(table, space, config, f"{key}[{i}]") for i, table in enumerate(tables)]


def _single(table: Initial, space: Geometry, directory: Path) -> Density:
    match table, space:
        case Uniform(), _:
            return space.uniform()
        case Perturbed(amplitude=amplitude, seed=seed, degrees=degrees), _:
            return space.perturbed(amplitude, rng=np.random.default_rng(seed), degrees=degrees)
        case Fourier(cos=cos, sin=sin), Circle():
            return space.fourier(_fourier_coefficients(cos, sin))
        case VonMises(mean=mean, concentration=concentration), Circle():
            return space.von_mises(mean, concentration)
        case VonMisesFisher(mean=mean, concentration=concentration), Sphere():
            return space.von_mises_fisher(mean or E_Z, concentration)
        case VonMisesFisher(mean=None, concentration=concentration), Zonal():
            return space.von_mises_fisher(concentration)
        case Legendre(coefficients=coefficients, axis=axis), Sphere():
            return space.zonal([1, *coefficients], axis or E_Z)
        case Legendre(coefficients=coefficients, axis=None), Zonal():
            return space.zonal([1, *coefficients])
        case Sample(file=file, bandwidth=bandwidth), Circle() | Sphere():
            sample = read_sample(table, directory / file, space.dimension)
            return space.estimate(sample, bandwidth=bandwidth)
        case VonMisesFisher() | Legendre(), Zonal():
            raise ValueError("the axis of geometry kind zonal is fixed; leave mean and axis out")
    raise ValueError(
        f"kind {table.kind!r} is not for geometry kind {type(space).__name__.lower()!r}; expected "
        + ", ".join(KINDS[type(space)])
    )


def _fourier_coefficients(cos: tuple[float, ...], sin: tuple[float, ...]) -> np.ndarray:
    """c_k = int exp(-i k theta) dmu = (a_k - i b_k) / 2, and c_0 = 1."""
    coefficients = np.zeros(max(len(cos), len(sin)) + 1, dtype=complex)
    coefficients[0] = 1
    coefficients[1 : len(cos) + 1] += np.array(cos) / 2
    coefficients[1 : len(sin) + 1] -= 0.5j * np.array(sin)
    return coefficients
