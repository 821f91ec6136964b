"""Compile at once what `solve` would compile on first use, for `meanfield doctor --compile`."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = ["compile_everything"]


def compile_everything(report: Callable[[str, float], None] | None = None) -> float:
    """Solve one small problem of every kind, so that later runs find all functions in the cache.

    Parameters
    ----------
    report : callable, optional
        Called with the name of every kind and the seconds it took: short if it was compiled
        before.

    Returns
    -------
    float
        Seconds in all.
    """
    from ..solving import solve

    begin = time.perf_counter()
    for kind, model, state in _problems():
        start = time.perf_counter()
        options: dict[str, Any] = {"rng": 0} if kind.startswith("noisy") else {}
        solve(model, state, t_span=(0, 0.01), progress=False, **options)
        if report is not None:
            report(kind, time.perf_counter() - start)
    return time.perf_counter() - begin


def _problems() -> Iterator[tuple]:
    """Name, model and state of a problem for everything that has compiled code of its own."""
    from ..models import SA, USA, Attention
    from ..models.transformer import Transformer
    from ..spaces import Circle, Density, Sphere, Zonal
    from ..spaces.characteristics import Characteristics
    from ..states import Equiangular, Gaussian, Gram, Tokens

    model, noisy = Transformer(SA(beta=1.0)), Transformer(USA(beta=1.0), kappa=4.0)
    densities: dict[str, Density] = {
        "the circle": Circle(16).von_mises(0.0, 1.0),
        "the sphere": Sphere(16).von_mises_fisher([0.0, 0.0, 1.0], 1.0),
        "axisymmetric": Zonal(8, 16).von_mises_fisher(1.0),
    }
    for place, density in densities.items():
        yield f"density, {place}", noisy, density
        yield f"characteristics, {place}", model, Characteristics(density)
    for d in (2, 3, 5):
        x = np.random.default_rng(0).standard_normal((20, d))
        tokens = Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))
        yield f"tokens in R^{d}", model, tokens
        yield f"noisy tokens in R^{d}", noisy, tokens
    yield "inner products of tokens", model, Gram(tokens.x @ tokens.x.T)
    yield "equiangular tokens", model, Equiangular(n=8, rho=0.0)
    one = np.eye(2)
    yield "Gaussian", Transformer(Attention(Q=-one, K=one)), Gaussian(np.zeros(2), one)
