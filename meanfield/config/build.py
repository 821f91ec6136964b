"""From a configuration to the objects of the package: model, space, density, options."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..drifts import SA, USA
from ..drifts import Interaction as InteractionDrift
from ..drifts import Kuramoto as KuramotoDrift
from ..errors import CheckpointError, ConfigError, MeanfieldError
from ..geometry.circle import Circle
from ..model import Transformer
from ..states.density import COMPUTED, Density
from .files import folder_of
from .initial import Ensemble, Fourier, Initial, Mixture, Perturbed, Sample, Uniform, VonMises
from .sample import read_sample
from .schema import Attention, Config, Interaction

__all__ = ["blaming", "build_density", "build_geometry", "build_model", "solve_arguments"]


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


def build_geometry(config: Config) -> Circle:
    """The space that [geometry] describes."""
    return Circle(config.geometry.degree)


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


def _density(table: Initial, circle: Circle, config: Config, key: str) -> Density:
    with blaming(config, key):
        match table:
            case Ensemble(members=members):
                return Density.stack(_densities(members, circle, config, f"{key}.members"))
            case Mixture(components=parts):
                total = sum(part.weight for part in parts)
                shares = [part.weight / total for part in parts]
                densities = _densities(parts, circle, config, f"{key}.components")
                return Density.mixture(shares, densities)
        return _single(table, circle, folder_of(config.source))


def _densities(tables: tuple, circle: Circle, config: Config, key: str) -> list[Density]:
    return [_density(table, circle, config, f"{key}[{i}]") for i, table in enumerate(tables)]


def _single(table: Initial, circle: Circle, directory: Path) -> Density:
    match table:
        case Uniform():
            return circle.uniform()
        case Fourier(cos=cos, sin=sin):
            return circle.fourier(_fourier_coefficients(cos, sin))
        case VonMises(mean=mean, concentration=concentration):
            return circle.von_mises(mean, concentration)
        case Perturbed(amplitude=amplitude, seed=seed, degrees=degrees):
            rng = np.random.default_rng(seed)
            return circle.perturbed(amplitude, rng=rng, degrees=degrees)
        case Sample(file=file, bandwidth=bandwidth):
            return circle.estimate(read_sample(table, directory / file), bandwidth=bandwidth)
    raise TypeError(f"expected a table of initial.py; got {type(table).__name__}")


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
    names = ("rtol", "dt", "until", "steady_tolerance", "min_degree", "max_degree", "max_steps")
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
