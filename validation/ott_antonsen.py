"""Claim: Kuramoto's drift without noise follows the exact solution of Ott and Antonsen.

Poisson kernels stay Poisson kernels: if c_k(0) = z^k with z = r_0 e^{-i psi}, then

    int e^{ik theta} dmu_t = (r e^{i psi})^k,     r^2/(1 - r^2) = e^t r_0^2/(1 - r_0^2).

Checked at t = 1, 2, 3 for the moments of degree 1 to 8, and for the density itself at 1000
angles against (1 - r^2)/(1 - 2 r cos(theta - psi) + r^2), by Kuramoto(), and by USA and SA at
beta = 0, which are the same drift but other code.

Asked: absolute error of every moment, and error of the density relative to its maximum,
<= 1e-10 at rtol = 1e-11.

    python validation/ott_antonsen.py    # 2 s; exit code 1 on failure

References: Ott and Antonsen, Chaos 18 (2008) 037113, for equal natural frequencies.
"""

import sys

import numpy as np
from _report import Report, successful

import meanfield as mf

START, DIRECTION = 0.3, 0.7


def radius(t: float) -> float:
    """r(t) of the exact solution."""
    grown = np.exp(t) * START**2 / (1 - START**2)
    return float(np.sqrt(grown / (1 + grown)))


def poisson(r: float, theta: np.ndarray) -> np.ndarray:
    """The Poisson kernel of radius r around DIRECTION."""
    return (1 - r**2) / (1 - 2 * r * np.cos(theta - DIRECTION) + r**2)


def main() -> int:
    report = Report(["drift", "t", "quantity"], digits=12)
    start = mf.Circle(64).density(lambda theta: poisson(START, theta))
    theta = np.linspace(0, 2 * np.pi, 1000)
    times = [1.0, 2.0, 3.0]
    for drift in (mf.Kuramoto(), mf.USA(0), mf.SA(0)):
        run = successful(mf.solve(mf.Transformer(drift), start, (0, 3), t_eval=times, rtol=1e-11))
        for t, density in zip(run.t, run, strict=True):
            r = radius(t)
            exact = (r * np.exp(1j * DIRECTION)) ** np.arange(1, 9)
            moments = np.array([density.moment(k) for k in range(1, 9)])
            first, worst = abs(moments[0]), np.abs(moments - exact).max()
            shown = {"|m_1|": (r, first), "m_1, ..., m_8": (0, worst)}
            profile, computed = poisson(r, theta), density.at(mf.Circle.embed(theta))
            error = np.abs(computed - profile).max() / profile.max()
            shown["density"] = (0, error)
            for name, (predicted, measured) in shown.items():
                labels = (drift, f"{t:g}", name)
                report.compare(*labels, predicted=predicted, measured=measured, tolerance=1e-10)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
