"""Indexed densities by other means: collocation in s, dense quadrature of points, SciPy."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import legendre
from scipy.integrate import solve_ivp

__all__ = ["Attraction", "Collocation", "moved_nodes", "moved_values"]


@dataclass(frozen=True)
class Collocation:
    """Legendre nodes on each piece of [0, 1], and what each of them sees of those before.

    Parameters
    ----------
    breaks : tuple of float
    order : int
        Nodes on each piece.
    sink : float
        Mass at s = 0.
    window : float
        A node at s sees [s - window, s].
    first, seen_sink : float, bool
        Up to which position, and whether the sink, is seen beyond the window too.
    decay : callable
        Weight of the difference s - tau.
    mean : bool
        Whether sums are divided by the mass seen.
    """

    breaks: tuple[float, ...] = (0.0, 1.0)
    order: int = 22
    sink: float = 0.0
    window: float = np.inf
    decay: Callable = np.ones_like
    mean: bool = True
    first: float = 0.0
    seen_sink: bool = False

    @cached_property
    def _x(self) -> np.ndarray:
        return legendre.leggauss(self.order)[0]

    @cached_property
    def nodes(self) -> np.ndarray:
        ends = np.array(self.breaks)
        inner = (ends[:-1, None] + np.diff(ends)[:, None] * (1 + self._x) / 2).ravel()
        return np.append(0.0, inner) if self.sink else inner

    @cached_property
    def weights(self) -> np.ndarray:
        gauss = legendre.leggauss(self.order)[1] / 2
        inner = (1 - self.sink) * np.outer(np.diff(self.breaks), gauss).ravel()
        return np.append(self.sink, inner) if self.sink else inner

    @cached_property
    def _series(self) -> np.ndarray:
        """The polynomials that are 1 at one node and 0 at the others: their Legendre series."""
        return np.linalg.inv(legendre.legvander(self._x, self.order - 1))

    def _polynomials(self, piece: int, s: float | np.ndarray) -> np.ndarray:
        """Those of a piece at s, (..., order)."""
        a, b = self.breaks[piece : piece + 2]
        return (
            legendre.legvander((2 * np.asarray(s) - a - b) / (b - a), self.order - 1) @ self._series
        )

    def _own(self, piece: int) -> slice:
        first = piece * self.order + bool(self.sink)
        return slice(first, first + self.order)

    def at(self, s: float) -> np.ndarray:
        """Weights of the nodes in the value at s."""
        found = np.zeros(len(self.nodes))
        piece = max(int(np.searchsorted(self.breaks, s)) - 1, 0)
        found[self._own(piece)] = self._polynomials(piece, s)
        return found

    def _seen(self, a: float, b: float, s: float) -> list[tuple[float, float]]:
        """The parts of a piece [a, b] that s sees."""
        begin = s - self.window
        ends = [(0.0, s)] if begin <= self.first else [(0.0, self.first), (begin, s)]
        parts = [(max(a, low), min(b, high)) for low, high in ends]
        return [(low, high) for low, high in parts if high - low > 1e-14]

    @cached_property
    def influence(self) -> np.ndarray:
        """Weights of the measures at all nodes in that which acts at each.

        Integrals are by Gauss with 40 nodes, exact up to degree 79: that of polynomials is at most
        21, which leaves 58 for the decay.
        """
        found = np.zeros((len(self.nodes),) * 2)
        x, w = legendre.leggauss(40)
        for i, s in enumerate(self.nodes):
            for piece, ends in enumerate(zip(self.breaks, self.breaks[1:], strict=False)):
                for a, b in self._seen(*ends, s):
                    tau = (a + b + (b - a) * x) / 2
                    share = (1 - self.sink) * (b - a) / 2 * w * self.decay(s - tau)
                    found[i, self._own(piece)] += share @ self._polynomials(piece, tau)
            if self.sink and (s <= self.window or self.seen_sink):
                found[i, 0] = self.sink * self.decay(np.array(s))
        return found / found.sum(axis=1, keepdims=True) if self.mean else found


@dataclass(frozen=True)
class Attraction:
    """v(x) = P_x V int e^{beta <Qx, Ky>} y dnu(y), divided by int e^{beta <Qx, Ky>} dnu or not."""

    beta: float | np.ndarray
    normalised: bool
    Q: np.ndarray | float = 1.0
    K: np.ndarray | float = 1.0
    V: np.ndarray | float = 1.0

    def matrices(self, d: int) -> tuple[np.ndarray, ...]:
        return tuple(m * np.eye(d) if np.ndim(m) == 0 else m for m in (self.Q, self.K, self.V))


def moved_nodes(law, x, w, influence, drift, times, rtol=1e-11) -> np.ndarray:
    """Points (T, P, N, d) that carry the masses w * law, law (P, N): the flow without noise."""
    count, (n, d) = len(law), x.shape
    masses = law * w / (law @ w)[:, None]
    beta = np.broadcast_to(drift.beta, (count,))
    Q, K, V = drift.matrices(d)
    ones = np.ones((count, n, 1))

    def velocity(_, flat):
        points = flat.reshape(count, n, d)
        keys, sources = points @ K.T, np.concatenate([points @ V.T, ones], axis=-1)
        found = np.empty_like(points)
        for i in range(count):
            seen = influence[i] != 0
            acting = (influence[i, seen, None] * masses[seen])[..., None] * sources[seen]
            logits = beta[i] * (points[i] @ Q.T) @ keys[seen].reshape(-1, d).T
            total = np.exp(logits, out=logits) @ acting.reshape(-1, d + 1)
            found[i] = total[:, :d] / total[:, d:] if drift.normalised else total[:, :d]
            found[i] -= (found[i] * points[i]).sum(axis=1, keepdims=True) * points[i]
        return found.ravel()

    start = np.broadcast_to(x, (count, n, d)).ravel()
    options = {"method": "DOP853", "rtol": rtol, "atol": rtol / 10, "t_eval": times}
    run = solve_ivp(velocity, (0, times[-1]), start, **options)
    assert run.success, run.message
    return run.y.T.reshape(len(times), count, n, d)


def moved_values(law, influence, drift, kappa, times, turning=0.0, rtol=1e-11) -> np.ndarray:
    """Densities (T, P, N) at equal angles, with noise, by dense matrices of Fourier."""
    count, n = law.shape
    theta = 2 * np.pi * np.arange(n) / n
    x = np.column_stack([np.cos(theta), np.sin(theta)])
    Q, K, V = drift.matrices(2)
    logits = np.broadcast_to(drift.beta, (count,))[:, None, None] * ((x @ Q.T) @ (x @ K.T).T)
    kernel = np.exp(logits) / n  # (P, N, N)
    across = np.column_stack([-x[:, 1], x[:, 0]]) @ (x @ V.T).T
    k = np.fft.fftfreq(n, 1 / n)
    slope = np.where(np.abs(k) == n / 2, 0, 1j * k)
    first, second = (
        np.fft.ifft(symbol[:, None] * np.fft.fft(np.eye(n), axis=0), axis=0).real
        for symbol in (slope, -(k**2))
    )
    omega = np.broadcast_to(turning, (count,))[:, None]

    def rate(_, flat):
        values = flat.reshape(count, n)
        acting = influence @ values
        v = np.einsum("pij,pj->pi", kernel * across, acting)
        if drift.normalised:
            v /= np.einsum("pij,pj->pi", kernel, acting)
        return (values @ second.T / kappa - (values * (v + omega)) @ first.T).ravel()

    start = law / law.mean(axis=1, keepdims=True)
    options = {"method": "DOP853", "rtol": rtol, "atol": rtol / 10, "t_eval": times}
    run = solve_ivp(rate, (0, times[-1]), start.ravel(), **options)
    assert run.success, run.message
    return run.y.T.reshape(len(times), count, n)
