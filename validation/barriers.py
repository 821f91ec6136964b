"""Claim: `mf.saddles` finds the saddle between two stable states, and its barrier.

Noisy USA on the circle has an unstable state between the uniform and the ordered one.

1. At beta = 4, kappa = 0.402 its first moment is 0.2201262640, and F(saddle) - F(uniform) is
   0.0011400484279.
2. There and at three other points, both are those of a computation of its own: for a given first
   moment the others are iterated, m_l = E cos(l theta), and the first is found by bisection.
3. The unstable rate is that at which the first moment leaves the saddle in `mf.solve`.
4. The barrier vanishes like the power 3/2 of the distance to the fold, from the ordered state, and
   2 of that to the subcritical pitchfork, from the uniform one.

Asked: 1e-9 for moments and barriers; 1e-4, relative, for the rate; 0.02 for the powers.

    python validation/barriers.py    # 9 s; exit code 1 on failure
"""

import argparse
import sys

import numpy as np
from _report import Report
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf

CIRCLE, TERMS = mf.Circle(32), 24
POINTS = [(4.0, 0.402, 0.1, 0.4), (4.0, 0.39, 0.3, 0.5), (3.0, 0.754, 0.1, 0.35),
          (5.0, 0.19, 0.3, 0.5)]  # fmt: skip


def stable(beta, kappa, ordered=False):
    """The stable state of USA, uniform or ordered."""
    states = mf.stationary_states(mf.Transformer(mf.USA(beta), kappa), CIRCLE)
    return max((s for s in states if s.stable), key=lambda s: s.order_parameter * (2 * ordered - 1))


def by_bisection(beta, kappa, low, high):
    """First moment and F of the state whose first moment is between two values."""
    k = np.arange(1, TERMS + 1)
    w = 2 * iv(k, beta) / beta
    waves = np.cos(k[:, None] * 2 * np.pi * np.arange(512) / 512)

    def closed(first):
        m = np.zeros(TERMS)
        m[0] = first
        for _ in range(400):
            law = np.exp(kappa * (w * m) @ waves)
            moments = waves @ law / law.sum()
            m[1:] = moments[1:]
        return m, moments[0], law / law.mean()

    first = brentq(lambda r: closed(r)[1] - r, low, high, xtol=1e-13)
    m, _, law = closed(first)
    return first, np.mean(law * np.log(law)) / kappa - 0.5 * w @ m**2


def measured_rate(saddle):
    """Rate at which a run departs from the saddle, along its unstable direction."""
    here = saddle.state.density
    start = mf.Density(here.space, here.coefficients + 1e-7 * saddle.direction)
    times = np.linspace(0, 3 / saddle.rate, 4)
    run = mf.solve(saddle.state.model, start, (0, times[-1]), t_eval=times, rtol=1e-11,
                   progress=False)  # fmt: skip
    away = [abs(one.coefficients[1] - here.coefficients[1]) for one in run.states]
    return np.log(away[2] / away[1]) / (times[2] - times[1])


def main() -> int:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    report = Report(["of", "quantity"], digits=10)
    (known,) = mf.saddles(stable(4.0, 0.402))
    report.compare("reference", "first moment", predicted=0.2201262640,
                   measured=known.state.order_parameter, tolerance=1e-9)  # fmt: skip
    report.compare("reference", "barrier", predicted=0.0011400484279, measured=known.barrier,
                   tolerance=1e-9)  # fmt: skip
    for beta, kappa, low, high in POINTS:
        first, energy = by_bisection(beta, kappa, low, high)
        (saddle,) = mf.saddles(stable(beta, kappa))
        at = f"{beta:g}, {kappa:g}"
        report.compare(at, "first moment", predicted=first, measured=saddle.state.order_parameter,
                       tolerance=1e-9)  # fmt: skip
        report.compare(at, "barrier", predicted=energy, measured=saddle.barrier, tolerance=1e-9)
    report.compare("reference", "rate", predicted=known.rate, measured=measured_rate(known),
                   tolerance=1e-4, relative=True)  # fmt: skip
    diagram = mf.branches(mf.USA(4.0), CIRCLE, kappa=(0.3, 0.6))
    for kind, sign, power in (("fold", 1, 1.5), ("bifurcation", -1, 2.0)):
        place = diagram.special(kind)[0].value
        heights = [
            mf.saddles(stable(4.0, place * (1 + sign * step), ordered=kind == "fold"))[0].barrier
            for step in (1e-3, 5e-4)
        ]
        report.compare(kind, "power", predicted=power, measured=np.log2(heights[0] / heights[1]),
                       tolerance=0.02)  # fmt: skip
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
