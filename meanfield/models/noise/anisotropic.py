"""Anisotropic noise: a Brownian motion of R^d with any covariance, projected on the sphere."""

from functools import cached_property

import numpy as np
from numba import njit

from ...core.errors import MeanfieldError
from ...core.forms import Array
from .contract import Noise

__all__ = ["Anisotropic"]

LONGEST = 100.0  # s tr(Sigma): far beyond any accuracy, and boosts grow like e^(s tr(Sigma))


class Anisotropic(Noise):
    """dX_i = sqrt(2/kappa) P_X Sigma^(1/2) o dB_i, independent for each token, Stratonovich.

    The generator is L/kappa, L = sum_k V_k^2 with V_k(x) = sqrt(lambda_k) P_x u_k, where
    (lambda_k, u_k) are the eigenvalues and eigenvectors of Sigma. For Sigma = I it is the
    Laplacian: isotropic noise.

    One step is the composition of the flows of V_1, ..., V_d for random times sqrt(2 s) xi_k,
    xi_k standard normal, in this order or the reverse one with probability 1/2, for each token
    (Ninomiya and Victoir): weak order 2. The flow of P_x u for a time tau is explicit,

        <x', u> = (<x, u> + tanh tau)/(1 + <x, u> tanh tau),

    the other components being divided by cosh tau + <x, u> sinh tau. It is a Lorentz boost of
    the light-like vector (x, 1), so that the d flows together cost O(d), with one division.

    Parameters
    ----------
    sigma : array, shape (d, d)
        Covariance Sigma, symmetric (to 1e-12 of its largest entry) and positive semidefinite
        (likewise). It may be singular, or 0.

    Raises
    ------
    TypeError
        If sigma is not real.
    ValueError
        If it is not a covariance matrix; on a step, if tokens have another dimension.
    MeanfieldError
        On a step with s tr(Sigma) > 100.

    Notes
    -----
    Increments: (R, n, d + 1) normals, xi_1, ..., xi_d and one whose sign is the order. Cost
    O(R n d^2), of the change to the eigenbasis.

    References
    ----------
    Ninomiya and Victoir, Appl. Math. Finance 15 (2008), 107-121.
    """

    sigma: Array

    def validate(self) -> None:
        sigma = self.sigma
        if sigma.ndim != 2 or sigma.shape[0] != sigma.shape[1] or len(sigma) < 2:
            raise ValueError(
                f"Anisotropic expects sigma of shape (d, d) with d >= 2; got {sigma.shape}. "
                "Independent components are np.diag(variances)."
            )
        rounding = 1e-12 * np.abs(sigma).max()
        asymmetry = np.abs(sigma - sigma.T).max()
        if asymmetry > rounding:
            raise ValueError(
                f"Anisotropic expects a symmetric sigma; sigma - sigma.T has {asymmetry:.2g}. "
                "The law of B dW is that of sigma = B @ B.T."
            )
        variances = np.linalg.eigvalsh(sigma)
        if variances[0] < -rounding:
            raise ValueError(
                "Anisotropic expects a positive semidefinite sigma; its smallest eigenvalue is "
                f"{variances[0]:.6g}. The law of B dW is that of sigma = B @ B.T."
            )

    @cached_property
    def _eigen(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard deviations along the principal axes, and these, (d, d)."""
        variances, axes = np.linalg.eigh(self.sigma)
        return np.sqrt(np.maximum(variances, 0)), axes  # -1e-17 is an eigenvalue 0

    def increments_shape(self, replicas: int, n: int, d: int) -> tuple[int, ...]:
        return (replicas, n, d + 1)

    def _moved(self, x, s, increments):
        d = len(self.sigma)
        deviations, axes = self._eigen
        if x.shape[2] != d:
            raise ValueError(
                f"Anisotropic has a sigma of shape {(d, d)}, and the tokens have d = {x.shape[2]}."
            )
        longest = s.max() * (deviations**2).sum()
        if longest > LONGEST:
            raise MeanfieldError(
                f"A step with s tr(sigma) = {longest:.3g}, s = dt/kappa, is too long to mean "
                f"anything; expected at most {LONGEST:g}, and much less than 1 to be accurate. "
                "Shorten dt."
            )
        result = (x.reshape(-1, d) @ axes).reshape(x.shape)
        _boost(result, np.sqrt(2 * s), deviations, increments)
        return (result.reshape(-1, d) @ axes.T).reshape(x.shape)


@njit(cache=True, error_model="numpy")
def _boost(x, scale, deviations, normals):
    """Boosts along the axes, in place; scale (R,)."""
    replicas, n, d = x.shape
    for r in range(replicas):
        for i in range(n):
            space, time = x[r, i], 1.0
            for step in range(d):
                k = step if normals[r, i, d] < 0 else d - 1 - step
                up = np.exp(scale[r] * deviations[k] * normals[r, i, k])
                cosh, sinh = (up + 1 / up) / 2, (up - 1 / up) / 2
                space[k], time = space[k] * cosh + time * sinh, time * cosh + space[k] * sinh
            length = 0.0  # time, up to rounding
            for k in range(d):
                length += space[k] ** 2
            length = np.sqrt(length)
            for k in range(d):
                space[k] /= length
