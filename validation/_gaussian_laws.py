"""A law, matrices and runs that the validations of Gaussians share."""

import numpy as np
from _report import successful

import meanfield as mf

__all__ = ["COV", "KINDS", "MEAN", "K", "Q", "V", "apart", "final"]

MEAN, COV = np.array([1.0, -0.5]), np.array([[1.0, 0.3], [0.3, 0.5]])
V = np.array([[0.8, 0.3], [-0.2, 0.6]])
Q = np.array([[0.7, 0.2], [0.1, 0.9]])
K = np.array([[0.5, -0.3], [0.4, 0.8]])
KINDS = {
    "softmax": mf.Softmax(),
    "L2": mf.L2(),
    "Sinkhorn": mf.Sinkhorn(),
    "linear": mf.Linear(),
}


def final(drift, end=1.0, mean=MEAN, cov=COV, rtol=1e-11) -> mf.Gaussian:
    """The law at time `end`."""
    model = mf.Transformer(drift)
    return successful(
        mf.solve(model, mf.Gaussian(mean, cov), (0, end), t_eval=[end], rtol=rtol)
    ).final


def apart(law: mf.Gaussian, mean, cov) -> float:
    """The largest difference of an entry of mean or covariance."""
    return float(max(np.abs(law.mean - mean).max(), np.abs(law.cov - cov).max()))
