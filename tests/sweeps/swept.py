"""Functions at whose points sweeps are tested: other processes import them."""

import time

import numpy as np


def product(beta, kappa):
    return beta * kappa


def drawn(beta, rng):
    return {"noise": rng.standard_normal(3), "beta squared": beta**2}


def slow(i, rng):
    time.sleep(0.01)
    return np.array([i, rng.random()])


def fails_at_two(i):
    if i == 2:
        raise ValueError("two will not do")
    return {"i squared": i**2, "ones": np.ones(i + 1)}
