"""Systems of tokens, and their velocities and energies by dense sums in extended precision."""

import numpy as np

import meanfield as mf

CONFIGURATIONS = ("uniform", "clustered", "isolated")


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def tokens(kind, n, d, *, replicas=1, seed=0):
    """Tokens (R, n, d) and different masses (R, n)."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((replicas, n, d))
    if kind != "uniform":
        centres = unit(rng.standard_normal((3, d)))
        x = centres[rng.integers(3, size=(replicas, n))] + 0.1 * x
    if kind == "isolated":
        x[:, 1:] = centres[0] + 0.1 * rng.standard_normal((replicas, n - 1, d))
        x[:, 0] = -centres[0]
    masses = rng.random((replicas, n)) + 0.1
    return unit(x), masses / masses.sum(axis=1, keepdims=True)


def _kernels(drift):
    """W, W' and Z as functions of inner products of extended precision."""
    if isinstance(drift, mf.CosineSeries):
        series = np.polynomial.Chebyshev(drift.coefficients)
        return series, series.deriv(), np.ones_like
    if isinstance(drift, mf.Interaction):
        return drift.potential, drift.derivative or drift.potential.deriv(), np.ones_like
    beta = np.longdouble(getattr(drift, "beta", 0.0))
    if isinstance(drift, mf.Kuramoto) or beta == 0:
        return lambda t: t, np.ones_like, np.ones_like

    def kernel(t):
        return np.exp(beta * t)

    normaliser = kernel if isinstance(drift, mf.SA) else np.ones_like
    return (lambda t: kernel(t) / beta), kernel, normaliser


def dense(drift, x, masses):
    """Velocities, attention (n, d) and energy of one system, by their definitions."""
    x, masses = x.astype(np.longdouble), masses.astype(np.longdouble)
    x = x / np.sqrt((x * x).sum(axis=1))[:, None]
    differences = x[:, None] - x
    t = 1 - (differences**2).sum(axis=2) / 2
    potential, slope, normaliser = _kernels(drift)
    scale = (normaliser(t) * masses).sum(axis=1)
    weights = slope(t) * masses / scale[:, None]
    attention = weights @ x
    np.fill_diagonal(weights, 0)
    pull = -np.einsum("ij,ijc->ic", weights, differences)
    velocity = pull - (pull * x).sum(axis=1)[:, None] * x
    energy = masses @ potential(t) @ masses / 2
    return velocity.astype(float), attention.astype(float), energy


def error(found, expected):
    """The largest error of a component, relative to the largest component."""
    return np.abs(found - expected).max() / np.abs(expected).max()


def dense_causal(drift, causal, x, masses):
    """Velocities (n, d) of one system whose tokens see what comes before, by their definition."""
    x, masses = x.astype(np.longdouble), masses.astype(np.longdouble)
    places = masses.cumsum()
    difference = places[:, None] - places
    w = np.tril(np.ones_like(difference))
    if causal.window is not None:
        w[difference > causal.window + 1e-12] = 0
    if causal.decay is not None:
        w *= causal.decay(np.maximum(difference, 0))
    t = 1 - ((x[:, None] - x) ** 2).sum(axis=2) / 2
    if hasattr(drift, "beta"):
        beta = drift.beta if causal.beta is None else causal.beta(places)[:, None]
        slope = np.exp(np.longdouble(beta) * t)
        weight = slope if drift.normalised else 1.0
    else:
        t = np.clip(t, -1, 1).astype(float)
        slope, weight = drift.slope(t), drift.weight(t)
    if drift.normalised:
        scale = (w * weight) @ masses
    else:
        scale = w @ masses if causal.divide == "mean" else np.ones(len(x))
    pull = (w * slope * masses) @ x
    np.divide(pull, scale[:, None], out=pull, where=scale[:, None] != 0)
    return (pull - (pull * x).sum(axis=1)[:, None] * x).astype(float)
