"""What is measured of characteristics: moments, energies, W2 to a Dirac, clusters."""

import numpy as np

from ...models.transformer import Transformer
from ...spaces.characteristics import Characteristics
from .. import CharacteristicsMotion
from .density import MOMENTS

__all__ = ["measure"]


def measure(model: Transformer, state: Characteristics) -> dict[str, np.ndarray]:
    """Observables of characteristics under a model.

    Returns
    -------
    dict of ndarray
        mass, moment, order_parameter, interaction_energy, free_energy, dissipation : as of a
            density; the free energy is -E, and the dissipation int |v|^2 dmu
        speed : (int |v|^2 dmu)^(1/2), that of mu_t in W2
        w2_to_dirac : W2 to the Dirac at `limit_point`, in radians
        limit_point : (d,), the direction of int x dmu
        cluster_count : number of `Characteristics.clusters`
        cluster_mass, cluster_point : (count,) and (count, d), the heaviest first
        quadrature_error : change of the moments if half of the nodes are left out
    """
    geometry = state.geometry.with_degree(MOMENTS)
    low = state.coefficients(MOMENTS)
    moments = [geometry.scalar_moment(low, k) for k in range(1, MOMENTS + 1)]
    motion = CharacteristicsMotion(model, state)
    speed = motion.rate(state.coordinates, motion.velocity(state.coordinates))
    energy = _interaction_energy(model, state, motion.degree)
    clusters = state.clusters()
    gradient_flow = model.drift.gradient_flow
    return {
        "mass": state.mass,
        "moment": np.stack(moments).astype(complex),
        "order_parameter": np.abs(moments[0]),
        "interaction_energy": energy,
        "free_energy": np.asarray(-energy if gradient_flow else np.nan),
        "dissipation": np.asarray(speed**2 if gradient_flow else np.nan),
        "speed": np.asarray(speed),
        "w2_to_dirac": np.asarray(state.w2_to_dirac()),
        "limit_point": state.mean_direction,
        "cluster_count": np.asarray(len(clusters)),
        "cluster_mass": np.array([cluster.mass for cluster in clusters], dtype=float),
        "cluster_point": np.reshape(
            [cluster.point for cluster in clusters], (-1, geometry.dimension)
        ),
        "quadrature_error": np.asarray(state.quadrature_error),
    }


def _interaction_energy(model: Transformer, state: Characteristics, degree: int) -> np.ndarray:
    fine = state.geometry.with_degree(degree)
    weights = model.zonal.interaction(degree, fine.dimension)
    power = fine.parseval * np.abs(state.coefficients(degree)) ** 2
    return np.asarray(0.5 * (weights[fine.degrees] * power).sum())
