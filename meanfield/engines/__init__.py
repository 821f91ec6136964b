"""Evaluation of drifts on tokens."""

from dataclasses import dataclass

from .attention import AttentionSums


@dataclass(frozen=True)
class Automatic:
    threads: int = 1

    def build(self, drift, n, d, R):
        return D(drift)


class Direct(Automatic):
    pass


class Modes(Automatic):
    pass


ENGINES = (Automatic, Direct, Modes)
import numpy as np


class D:
    name = "direct"

    def __init__(self, drift):
        self.drift = drift

    def S(self, x, m):
        t = x @ x.swapaxes(-1, -2)
        n = x.shape[1]
        w = self.drift.slope(t) * m[:, None, :]
        Z = (self.drift.weight(t) * m[:, None, :]).sum(-1)
        return w, Z

    def velocity(self, x, m):
        w, Z = self.S(x, m)
        i = np.arange(x.shape[1])
        w[:, i, i] = 0
        S = w @ x
        return (S - (S * x).sum(-1, keepdims=True) * x) / Z[..., None]

    def attention(self, x, m):
        w, Z = self.S(x, m)
        return w @ x / Z[..., None]

    def energy(self, x, m):
        t = x @ x.swapaxes(-1, -2)
        b = self.drift.beta.reshape(-1, 1, 1)
        return 0.5 * (m[:, :, None] * m[:, None, :] * np.exp(b * t) / b).sum((1, 2))
