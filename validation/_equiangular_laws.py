"""Limits of 1 - rho at late times by quadrature, for `equiangular.py` and `tokens_exact.py`.

With the logit z of the inner product, 1 - rho = g(z) = n/(e^z + n - 1), SA has from orthogonal
tokens, where z = 0,

    Post-LN    2t = int_0^z (e^{beta g} + n - 1)/n
    nGPT    2 int alpha = int_0^z |A| Z/k
    square-root scaling    as Post-LN for 2 (sqrt(t + 1) - 1) instead of t
    Pre-, Peri-LN    log r^2 = int_0^z (e^{beta g} + (n - 1)(1 - g))/n

Each integrand tends to 1, so 1 - rho times e^{2t}, e^{2 int alpha}, e^{4 sqrt(t + 1)} or
r^2 has the limit n exp(int_0^inf (integrand - 1)). Mix-LN is Pre-LN from z(tau) and r = 1 on.
"""

from functools import cache

import mpmath as mp

__all__ = ["late_constant"]

DIGITS = 20
FAR = 200  # where g < 1e-80
PANELS = (0, 1, 2, 4, 7, 10, 15, 25, 40, 70, FAR)


@cache
def late_constant(scheme: str, n: int = 32, beta: float = 1.0, tau: float = 2.0) -> float:
    """The limit, from orthogonal tokens of radius 1, with 20 digits before it is rounded."""
    with mp.workdps(DIGITS):
        if scheme != "MixLN":
            constant = n * mp.exp(_excess(scheme, n, beta, 0))
            return float(constant * mp.exp(4) if scheme == "SqrtScaling" else constant)

        whole = _excess("PostLN", n, beta, 0)

        def late(z):
            return z + whole - _excess("PostLN", n, beta, z) - 2 * tau

        start = mp.findroot(late, 2 * tau)
        return float(n * mp.exp(_excess("PreLN", n, beta, start) - start))


def _excess(scheme: str, n: int, beta: float, start) -> mp.mpf:
    """The integral of integrand - 1 from `start` on."""

    def integrand(z):
        g = n / (mp.exp(z) + n - 1)
        q = mp.expm1(beta * g)
        if scheme in ("PostLN", "SqrtScaling"):
            return q / n
        if scheme == "NGPT":  # |A| Z/k, whose square is the sum of all |w_j x_j|^2 and 2 <., .>
            square = (1 + q + n - 1) ** 2 - g * (n - 1) * (2 * (1 + q) + n - 2)
            return mp.sqrt(square) / n - 1
        return (q - (n - 1) * g) / n

    return mp.quad(integrand, [start, *(edge for edge in PANELS if edge > start)])
