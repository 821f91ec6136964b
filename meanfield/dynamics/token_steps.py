"""Steps of tokens that are maps (y, t, dt) -> y: layers, and splittings with noise or without."""

import numpy as np

from ..steppers.kutta import kutta_step
from .tokens import TokenMotion

__all__ = ["layer", "lie_trotter", "strang"]


def layer(motion: TokenMotion, y: np.ndarray, t: float, step: float) -> np.ndarray:
    """One layer of a Transformer with learning rate `step`: attention, then feed-forward.

    x <- r theta + step u,  theta <- x/|x|, r <- |x|        where radii grow
    theta <- N(theta + step u)                              where they do not
    """
    new = y.copy()
    x, masses = motion.points(y), motion.masses(y)
    if motion.model.reaction:
        new[..., -1] += step * motion.reaction_rates(x, masses)
    _add(motion, new, t, step * motion.attention_update(x, masses, t))
    if motion.model.feedforward is not None:
        _add(motion, new, t, step * motion.feedforward_update(motion.points(new), t))
    return new


def _add(motion: TokenMotion, y: np.ndarray, t: float, change: np.ndarray) -> None:
    """Add to the hidden states, in place, and normalise."""
    x = y[..., : motion.dimension]
    grows = motion.grows(t)
    if grows:
        x *= y[..., motion.dimension, None]
    x += change
    if motion.on_sphere:
        lengths = np.linalg.norm(x, axis=-1)
        x /= lengths[..., None]
        if grows:
            y[..., motion.dimension] = lengths


def lie_trotter(motion: TokenMotion, y: np.ndarray, t: float, dt: float) -> np.ndarray:
    """Attention for dt, then the feed-forward map for dt; order 1."""
    y = motion.projected(kutta_step(motion.attention_rates, y, t, dt))
    if motion.model.feedforward is not None:
        y = motion.projected(kutta_step(motion.feedforward_rates, y, t, dt))
    return y


def strang(
    motion: TokenMotion, y: np.ndarray, t: float, dt: float, rng: np.random.Generator
) -> np.ndarray:
    """Noise for dt/2, the drift for dt, noise for dt/2; weak order 2."""
    y = shaken(motion, y, dt / 2, rng)
    y = motion.projected(kutta_step(motion.velocity, y, t, dt))
    return shaken(motion, y, dt / 2, rng)


def shaken(motion: TokenMotion, y: np.ndarray, dt: float, rng: np.random.Generator) -> np.ndarray:
    """The tokens after noise for a time dt."""
    x, strength = motion.points(y), dt / motion.kappa
    new = y.copy()
    if motion.on_sphere:
        noise = motion.model.noise
        moved = noise.moved(x, strength, noise.increments(x.shape, rng))
    else:
        moved = x + np.sqrt(2 * strength)[:, None, None] * rng.standard_normal(x.shape)
    new[..., : motion.dimension] = moved
    return new
