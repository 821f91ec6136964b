"""What is measured of equiangular tokens: the same as of tokens, in closed form."""

import numpy as np

from ...models.transformer import Transformer
from ...states import Equiangular
from .. import EquiangularMotion

__all__ = ["measure"]


def measure(model: Transformer, state: Equiangular, t: float = 0.0) -> dict[str, np.ndarray]:
    """Observables of equiangular tokens under a model.

    Returns
    -------
    dict of ndarray, each of the ensemble shape
        rho : the inner product of two different tokens, which is their mean cosine
        gap : 1 - rho, without cancellation
        radius : the length of hidden states, where the normalisation moves it
        order_parameter, interaction_energy, effective_rank : as of tokens
        speed : (int |v|^2 dmu)^(1/2)
    """
    motion = EquiangularMotion(model, state)
    y = motion.coordinates(state)
    found = {
        "rho": state.rho,
        "gap": state.gap,
        "order_parameter": np.sqrt(state.square),
        "interaction_energy": motion.energy(y).reshape(state.shape),
        "effective_rank": _effective_rank(state),
        "speed": motion.speed(y, motion.velocity(y, t)).reshape(state.shape),
    }
    if model.normalisation.has_radii:
        found["radius"] = state.radius
    return {name: np.array(values) for name, values in found.items()}


def _effective_rank(state: Equiangular) -> np.ndarray:
    """Of eigenvalues `square`, once, and gap/n, n - 1 times, whose sum is 1."""
    rest = (1 - 1 / state.n) * state.gap
    each = np.where(rest > 0, state.log_gap - np.log(state.n), 0.0)
    first = np.where(state.square > 0, np.log(np.where(state.square > 0, state.square, 1.0)), 0.0)
    return np.exp(-rest * each - state.square * first)
