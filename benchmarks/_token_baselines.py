"""Velocities under SA as one would write them with other libraries, tokens of equal masses.

    v = P softmax(beta X X^T) X

of tokens X (R, n, d) in float64: by NumPy with the n x n array, by the fused attention of PyTorch,
by KeOps. `velocities` lists those that can be imported.
"""

from collections.abc import Callable

import numpy as np

__all__ = ["MANY_PAIRS", "missing", "velocities"]

MANY_PAIRS = 2 * 10**8  # for which NumPy's array takes 1.6 GB
FEW_DIMENSIONS = 8


def velocities(x: np.ndarray, beta: float, threads: int) -> dict[str, Callable[[], np.ndarray]]:
    """Functions without arguments that return the velocities, by name of the library."""
    found = {}
    if threads == 1 and x.shape[0] * x.shape[1] ** 2 <= MANY_PAIRS:
        found["NumPy"] = lambda: _numpy_velocity(x, beta)
    if not missing("torch"):
        found["PyTorch"] = _of_torch(x, beta, threads)
    if threads == 1 and _for_keops(x) and not missing("pykeops.numpy"):
        found["KeOps"] = _of_keops(x, beta)
    return found


def _for_keops(x: np.ndarray) -> bool:
    """Whether it is meant for such tokens: single systems of few dimensions."""
    return len(x) == 1 and x.shape[2] <= FEW_DIMENSIONS


def missing(package: str) -> str:
    """What to say if a package cannot be imported, else nothing."""
    try:
        __import__(package)
    except Exception as error:  # KeOps looks for a compiler when it is imported
        return f"{package} is left out: {error}."
    return ""


def _numpy_velocity(x: np.ndarray, beta: float) -> np.ndarray:
    weights = x @ x.swapaxes(1, 2)
    weights -= 1
    weights *= beta
    np.exp(weights, out=weights)
    attention = (weights @ x) / weights.sum(axis=2, keepdims=True)
    return attention - (attention * x).sum(axis=2, keepdims=True) * x


def _of_torch(x: np.ndarray, beta: float, threads: int) -> Callable[[], np.ndarray]:
    import torch

    tokens = torch.from_numpy(x)[:, None]  # one head

    def run() -> np.ndarray:
        torch.set_num_threads(threads)
        attend = torch.nn.functional.scaled_dot_product_attention
        attention = attend(tokens, tokens, tokens, scale=beta)
        velocity = attention - (attention * tokens).sum(-1, keepdim=True) * tokens
        return velocity[:, 0].numpy()

    return run


def _of_keops(x: np.ndarray, beta: float) -> Callable[[], np.ndarray]:
    import pykeops
    from pykeops.numpy import LazyTensor

    pykeops.set_verbose(False)
    mine, others = LazyTensor(x[:, :, None].copy()), LazyTensor(x[:, None].copy())

    def run() -> np.ndarray:
        logits = beta * (mine | others)
        attention = logits.sumsoftmaxweight(others, axis=2)
        return attention - (attention * x).sum(axis=2, keepdims=True) * x

    return run
