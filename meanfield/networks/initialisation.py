"""Mean cosines of tokens in a Transformer with random weights, layer by layer.

The variables are the mean cosine rho of pairs and the common length r of the hidden states of n
tokens: in high dimension all pairs have nearly the same cosine, and random matrices preserve inner
products. With attention weights w_ij, independent between heads except for lengths of queries,

    own = E sum_j w_ij^2,    shared = E sum_j w_ij w_kj,    i != k,

an output A_i = c sum_h z_hi/H + g (random), z_hi = sum_j w_hij x_j, of H heads has

    |A_i|^2 = q,   <A_i, A_k> = p,   q - p = (1 - rho) (own - shared) (g^2 + c^2/H)
    <x_i, A_k> = c (rho + (1 - rho)/n) for all i, k

and a layer with the step s, whose normalisation scales A to f A, is

    R^2 = r^2 + 2 r s f <x, A> + s^2 f^2 q
    1 - rho <- ((1 - rho) r^2 + s^2 f^2 (q - p))/R^2
    r <- R if lengths grow; otherwise r = 1 in these formulas.

The output of a random feed-forward map is orthogonal to x and has the length b. The outputs of two
tokens have the cosine E phi(a) phi(a')/E phi(a)^2, with a and a' normal of correlation rho. They
are scaled by the normalisation and added in the same way.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

import meanfield as mf

from .contexts import of_gaussian

if TYPE_CHECKING:
    from .advice import Advice

LENGTH_RULE = np.polynomial.hermite_e.hermegauss(12)
NORMAL_RULE = (np.linspace(-8, 8, 161), np.exp(-(np.linspace(-8, 8, 161) ** 2) / 2))
SPREAD_NODES = 48  # Chebyshev nodes of the interpolation of `own` in the spread of logits


class Overlaps:
    """The overlaps own and shared of attention with random queries and keys, as functions of rho.

    Given q_i, the logits <q_i, K x_j> of a row are independent and Gaussian, of variance
    logits^2 (1 - rho) |q_i|^2/k. |q_i|^2 has a chi-square law with k degrees of freedom, in Wilson
    and Hilferty's approximation. For these logits `own` is exact at any n. If many tokens are
    attended to, own = (1 - 2 t)^(-k/2)/n and shared = ((1 - t rho)^2 - t^2)^(-k/2)/n with
    t = logits^2 (1 - rho)/k. `shared` is computed by this formula, with the t for which the formula
    of `own` gives its exact value.

    Parameters
    ----------
    n : int
        Number of tokens.
    k : float
        Dimension of a head.
    logits : float
        Standard deviation of the logits of two unit vectors.
    """

    def __init__(self, n: int, k: float, logits: float):
        self.n, self.k, self.logits = n, k, logits
        part = 2 / (9 * k)
        self._lengths = np.maximum(1 - part + LENGTH_RULE[0] * np.sqrt(part), 0) ** 1.5
        self._shares = LENGTH_RULE[1] / LENGTH_RULE[1].sum()
        top = max(logits, 1e-9) * self._lengths.max()
        log = np.vectorize(lambda spread: np.log(n * of_gaussian(n, spread)))
        self._log = np.polynomial.Chebyshev.interpolate(log, SPREAD_NODES - 1, [0, top])

    def __call__(self, gap: float) -> tuple[float, float]:
        """The overlaps own and shared at the mean cosine 1 - gap."""
        if self.logits == 0:
            return 1 / self.n, 1 / self.n
        deviation = self.logits * np.sqrt(gap)
        mean_square = float(np.exp(self._log(deviation * self._lengths)) @ self._shares)
        t = -np.expm1(-2 / self.k * np.log(max(mean_square, 1.0))) / 2
        shared = ((1 - t * (1 - gap)) ** 2 - t**2) ** (-self.k / 2)
        return mean_square / self.n, float(shared) / self.n


def decorrelation(activation: str, inner: float, gap: float) -> float:
    """Compute 1 - E phi(a) phi(a')/E phi(a)^2 for the activation phi.

    a and a' are normal of standard deviation `inner` and correlation 1 - `gap`. The differences
    phi(a) - phi(a') are used, as they avoid cancellation for a small gap.
    """
    phi, (x, mass) = mf.activations.ACTIVATIONS[activation], NORMAL_RULE
    mass = np.outer(mass, mass) / mass.sum() ** 2
    middle, half = np.sqrt(1 - gap / 2) * x[:, None], np.sqrt(gap / 2) * x
    first, second = phi(inner * (middle + half)), phi(inner * (middle - half))
    size = (mass * (first**2 + second**2)).sum() / 2
    return float((mass * (first - second) ** 2).sum() / (2 * size))


def layers_of(
    net: "Advice", overlaps: Overlaps, normalisation: mf.Normalisation
) -> Iterator[tuple[float, float, float]]:
    """Yield (1 - rho, r, own) before the first layer and after each layer, endlessly.

    r is constant if lengths do not grow.
    """
    n, step = net.n, net.step
    gap, square, layer = 1 - net.rho, net.radius**2, 0
    while True:
        t = layer * step
        grows = normalisation.grows(t)
        squares, shared = overlaps(gap)
        yield gap, np.sqrt(square), squares
        weight = net.values**2 + net.identity**2 / net.heads
        mean = 1 - gap + gap / n
        # The mean of the tokens is common to all heads; deviations from it are independent
        q = (net.values**2 + net.identity**2) * mean + weight * gap * (squares - 1 / n)
        rate = _rate(normalisation, t, step, np.sqrt(q))
        r = np.sqrt(square) if grows else 1.0
        inner, differs = 2 * r * rate * net.identity * mean, weight * gap * (squares - shared)
        longer, gap = _added(r**2, gap, inner, rate**2 * q, rate**2 * differs)
        if net.feed_forward:
            size = _rate(normalisation, t, step, net.feed_forward) * net.feed_forward
            size, decorrelated = size**2, decorrelation(net.activation, net.inner, gap)
            longer, gap = _added(longer if grows else 1.0, gap, 0.0, size, size * decorrelated)
        square, layer = longer if grows else square, layer + 1


def _rate(normalisation: mf.Normalisation, t: float, step: float, length: float) -> float:
    """The factor s f by which the normalisation scales an output of this length."""
    u = normalisation.updated(t, np.array([length, 0.0]))
    return step * float(np.linalg.norm(u)) / length


def _added(
    square: float, gap: float, inner: float, size: float, difference: float
) -> tuple[float, float]:
    """|h|^2 and 1 - rho after a sublayer has added u to h.

    Before it they are `square` and `gap`; `inner` = 2 <h, u>, `size` = |u|^2, and `difference` =
    |u|^2 - <u, u'> with the u' of another token.
    """
    longer = square + inner + size
    return longer, (gap * square + difference) / longer
