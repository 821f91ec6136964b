"""What is measured of a normal law."""

import numpy as np

from ...models.transformer import Transformer
from ...states import Gaussian
from .. import GaussianMotion
from ..gaussian_attention import length
from ..gaussian_energy import energy

__all__ = ["measure"]


def measure(model: Transformer, state: Gaussian, t: float = 0.0) -> dict[str, np.ndarray]:
    """Observables of a Gaussian under a model.

    Returns
    -------
    dict of ndarray, each ()
        order_parameter : |a|, the length of the mean
        spread : (tr Sigma)^(1/2), the root mean square distance from the mean
        largest_variance, least_variance : the extreme eigenvalues, see `Gaussian.variances`
        covariance_rank : how many of them exceed 1e-6 of the largest
        effective_rank : exp of the entropy of the eigenvalues of Sigma + a a^T, as of tokens
        speed : of the law in W2, 0 where only its points move; see `evolution.metric_speed`. It is
            (int |v|^2 dmu)^(1/2) where v is a gradient, and less elsewhere
        interaction_energy : E, with dE/dt = speed^2, where the motion is a gradient flow in W2, see
            `evolution.gaussian_energy`; else nan
    """
    variances = state.variances
    motion = GaussianMotion(model, state)
    y = motion.coordinates(state)
    found = {
        "order_parameter": length(state.mean),
        "spread": length(state.root),
        "largest_variance": variances[0],
        "least_variance": variances[-1],
        "covariance_rank": float(state.rank()),
        "effective_rank": _effective_rank(state),
        "speed": motion.rate(y, motion.velocity(y, t)),
        "interaction_energy": energy(model, state, t),
    }
    return {name: np.array(value) for name, value in found.items()}


def _effective_rank(state: Gaussian) -> float:
    values = np.linalg.svd(np.column_stack([state.root, state.mean]), compute_uv=False)
    if not values.any():
        return np.nan
    shares = (values / length(values)) ** 2
    logs = np.log(np.where(shares > 0, shares, 1.0))
    return float(np.exp(-(shares * logs).sum()))
