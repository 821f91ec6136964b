"""Tokens and masses at random, and attention on one replica of them or on many."""

import numpy as np

from meanfield.engines.attention import AttentionSums


def unit_vectors(rng, *shape):
    """Uniform on the sphere, shape (..., n, d)."""
    x = rng.standard_normal(shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def attention(drift, x, masses=None, t=0.0, threads=1):
    """A for tokens (n, d) or replicas of them (R, n, d); equal masses by default."""
    x = np.asarray(x)
    masses = np.full(x.shape[:-1], 1 / x.shape[-2]) if masses is None else masses
    many = x if x.ndim == 3 else x[None]
    result = AttentionSums(drift, threads).attention(t, many, masses.reshape(many.shape[:2]))
    return result.reshape(x.shape)


def random_masses(rng, *shape):
    masses = rng.random(shape)
    return masses / masses.sum(axis=-1, keepdims=True)
