"""From a configuration to the objects of the package: model, space, density, options."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..characteristics import Characteristics
from ..drifts import SA, USA
from ..drifts import Interaction as InteractionDrift
from ..drifts import Kuramoto as KuramotoDrift
from ..errors import CheckpointError, ConfigError, MeanfieldError
from ..geometry import Circle, Geometry, Sphere, Zonal
from ..model import Transformer
from ..states.density import COMPUTED, Density
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
from .schema import Attention, Config, Interaction

E_Z = (0.0, 0.0, 1.0)
GENERAL = ("uniform", "perturbed", "mixture", "ensemble")
KINDS = {
    Circle: (*GENERAL, "fourier", "von_mises", "sample"),
    Sphere: (*GENERAL, "legendre", "von_mises_fisher", "sample"),
    Zonal: (*GENERAL, "legendre", "von_mises_fisher"),
}

__all__ = [
    "blaming",
    "build_density",
    "build_geometry",
    "build_model",
    "build_state",
    "solve_arguments",
]


def build_model(config: Config) -> Transformer:
    """The model that [model] describes."""
    with blaming(config, "model"):
        return Transformer(_drift(config), kappa=np.array(config.model.kappa))


def _drift(config: Config):
    model = config.model
    if isinstance(model, Attention):
        return {"USA": USA, "SA": SA}[model.drift](model.beta)
    if isinstance(model, Interaction):
        # cos(k theta) is the Chebyshev polynomial T_k of the inner product cos(theta)
        potential = np.polynomial.Chebyshev(model.cosines)
        return InteractionDrift(potential, name=f"cosines {list(model.cosines)}")
    return KuramotoDrift()


def build_geometry(config: Config) -> Geometry:
    """The space that [geometry] describes."""
    table = config.geometry
    with blaming(config, "geometry"):
        match table.kind:
            case "circle":
                return Circle(table.degree)
            case "sphere":
                return Sphere(table.degree)
            case _:
                return Zonal(table.dimension, table.degree)


def build_density(config: Config) -> Density:
    """The initial density that [initial] describes, or the ensemble of them.

    Raises
    ------
    ConfigError
        If a file cannot be read, or what is described is no density (negative somewhere) or
        does not fit in the degree; the message names the table.
    """
    density = _density(config.initial, build_geometry(config), config, "initial")
    with blaming(config, "initial"):
        return density.checked_positive(COMPUTED)


def build_state(config: Config) -> Density | Characteristics:
    """The initial density, or the nodes of it that [characteristics] asks for."""
    density = build_density(config)
    if config.characteristics is None:
        return density
    with blaming(config, "characteristics"):
        table = config.characteristics
        return Characteristics(density, nodes=table.nodes, limit=table.limit)


def _density(table: Initial, space: Geometry, config: Config, key: str) -> Density:
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


def _densities(tables: tuple, space: Geometry, config: Config, key: str) -> list[Density]:
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


def solve_arguments(config: Config) -> dict[str, Any]:
    """The keyword arguments of `meanfield.solve` that [solve] and [checkpoint] describe."""
    table = config.solve
    span = (table.t_start, table.t_end)
    times = np.linspace(*span, table.outputs) if table.t_eval is None else np.array(table.t_eval)
    names = ["rtol", "dt", "until", "steady_tolerance", "max_steps"]
    if config.characteristics is None:
        names += ["min_degree", "max_degree"]
    return {
        "t_span": span,
        "t_eval": times,
        "checkpoint_every": config.checkpoint.every,
        **{name: getattr(table, name) for name in names},
    }


@contextmanager
def blaming(config: Config, key: str) -> Iterator[None]:
    """Turns what the package refuses into an error that names the file and the table."""
    try:
        yield
    except (ConfigError, CheckpointError):
        raise  # says itself what is wrong
    except (MeanfieldError, ValueError, TypeError) as error:
        prefix = "" if config.source is None else f"{config.source}: "
        raise ConfigError(f"{prefix}{key}: {error}") from error
