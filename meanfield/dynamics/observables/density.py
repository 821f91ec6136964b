"""What is measured of a density: mass, moments, entropy, energies, resolution."""

import numpy as np

from ...models.transformer import Transformer
from ...spaces.density import Density
from .. import DensityEvolution

__all__ = ["MOMENTS", "measure"]

MOMENTS = 8


def measure(model: Transformer, density: Density) -> dict[str, np.ndarray]:
    """Observables of a density, or of an ensemble of densities, under a model.

    Returns
    -------
    dict of ndarray, each of the ensemble shape
        mass : int dmu
        minimum : smallest value on the grid
        moment : (*ensemble, 8), for the degrees k = 1, ..., 8. On the circle int e^{ik theta} dmu,
            complex; for axisymmetric densities int P_k(<x, e>) dmu; on S^2 its modulus for a
            density with an axis, and in general sqrt(sum_m |c_km|^2 / (2k + 1)).
        order_parameter : |moment 1|, the length of the mean of the tokens
        entropy : int mu log |mu| dsigma
        interaction_energy : E = (1/2) int int W dmu dmu, W = e^(beta t)/beta for USA and SA
        free_energy : F = entropy/kappa - E (USA, Kuramoto and Interaction; nan for SA)
        dissipation : -dF/dt = int mu |grad (log mu / kappa - W * mu)|^2 dsigma >= 0; or nan
        spectral_tail : largest coefficient in the last eighth of the degrees

    Notes
    -----
    A truncated series may be slightly negative where the density is almost 0, see `minimum`;
    the logarithm of the modulus then keeps the entropy's error at the size of the
    truncation. The dissipation is computed as -int (log mu / kappa - W * mu) d_t mu dsigma,
    its value by parts, which does not divide by the density.
    """
    energy = _interaction_energy(model, density)
    entropy = _mean(density, density.values * _log(density.values))
    moments = [
        density.geometry.scalar_moment(density.coefficients, k) for k in range(1, MOMENTS + 1)
    ]
    result = {
        "mass": density.mass,
        "minimum": density.minimum,
        "moment": np.stack(moments, axis=-1).astype(complex),
        "order_parameter": np.abs(moments[0]),
        "entropy": entropy,
        "interaction_energy": energy,
        "free_energy": np.full(density.shape, np.nan),
        "dissipation": np.full(density.shape, np.nan),
        "spectral_tail": density.spectral_tail,
    }
    if model.drift.gradient_flow:
        result["free_energy"] = entropy / model.kappa - energy
        result["dissipation"] = _dissipation(model, density)
    return result


def _mean(density: Density, values: np.ndarray) -> np.ndarray:
    return values @ density.geometry.weights


def _log(values: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(np.abs(values), np.finfo(float).tiny))


def _interaction_energy(model: Transformer, density: Density) -> np.ndarray:
    geometry = density.geometry
    weights = model.zonal.interaction(geometry.degree, geometry.dimension)
    power = geometry.parseval * np.abs(density.coefficients) ** 2
    return 0.5 * (weights[..., geometry.degrees] * power).sum(axis=-1)


def _dissipation(model: Transformer, density: Density) -> np.ndarray:
    geometry = density.geometry
    evolution = DensityEvolution(model, geometry, density.shape)
    coefficients = density.coefficients.reshape(evolution.members, -1)
    change = evolution.linear * coefficients + evolution.nonlinear(coefficients)
    change = change.reshape(density.coefficients.shape)
    weights = model.zonal.attraction(geometry.degree, geometry.dimension)
    pairing = change * np.conj(weights[..., geometry.degrees] * density.coefficients)
    gain = (geometry.parseval * pairing.real).sum(axis=-1)
    loss = _mean(density, geometry.to_values(change) * _log(density.values))
    return gain - loss / model.kappa
