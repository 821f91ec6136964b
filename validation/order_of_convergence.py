"""Claim: every scheme converges with order 4, within steps too, its estimate with order 4 per step.

Fixed steps, halved three times; the order is log2 of the ratio of two errors, in the largest
Fourier coefficient. The reference solutions do not use the schemes:

    USA noisy      d mu/dt = (1/kappa) mu'' - (mu v)', beta = 2, kappa = 3: real L. Reference:
                   the Galerkin convolution sums by scipy's DOP853 at 1e-13.
    rotating       the same in a rotating frame, omega = 4: L_k = -i omega k - k^2/kappa is
                   complex; the solution is the reference turned by omega t.
    Ott-Antonsen   Kuramoto without noise in a rotating frame, omega = 5: L_k = -i omega k is
                   imaginary; the solution is known in closed form.

A scheme whose coefficients lose the imaginary part of L drops to order 1 in the last two. The
estimate is that of one step from the initial state; its order in dt is the embedded order 3
plus 1. The state within a step is taken at the end time after 5/8 of the last step.

Asked: orders within 0.1 of 4.

    python validation/order_of_convergence.py    # 2 s; exit code 1 on failure

References: Krogstad, J. Comput. Phys. 203 (2005), equation (51); Hochbruck and Ostermann,
SIAM J. Numer. Anal. 43 (2005), equation (5.19).
"""

import sys

import numpy as np
from _report import Report
from scipy.integrate import solve_ivp
from scipy.special import iv

import meanfield as mf
from meanfield.dynamics import DensityEvolution
from meanfield.steppers import EXPONENTIAL, Stepper
from meanfield.steppers.clock import started
from meanfield.steppers.stepper import FIXED_STEP

DEGREE, BETA, KAPPA = 40, 2.0, 3.0
COUNTS = (40, 80, 160, 320)
ORDER_TOLERANCE = 0.1


def galerkin(start: np.ndarray, end: float) -> np.ndarray:
    """c_k' = -k^2 c_k/kappa - i k sum_j v_j c_{k-j}, v_j = i j I_j c_j / beta, by DOP853."""
    k = np.arange(DEGREE + 1)

    def slope(_t, c):
        full = np.concatenate([np.conj(c[:0:-1]), c])
        velocity = 1j * k * iv(k, BETA) / BETA * c
        velocity = np.concatenate([np.conj(velocity[:0:-1]), velocity])
        product = np.convolve(full, velocity)[2 * DEGREE : 3 * DEGREE + 1]
        return -(k**2) * c / KAPPA - 1j * k * product

    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-16}
    return solve_ivp(slope, (0, end), start, **options).y[:, -1]


class Case:
    """An equation, an initial density, an end time and the exact answer there."""

    def __init__(self, name: str, model: mf.Transformer, start: mf.Density, end: float, omega=0.0):
        evolution = DensityEvolution(model, start.space, ())
        k = start.space.degrees
        self.name, self.end = name, end
        self.linear = evolution.linear - 1j * omega * k if omega else evolution.linear
        self.nonlinear, self.start = evolution.nonlinear, start.coefficients[None]
        self.turn = np.exp(-1j * omega * k * end)
        self.exact = self.turn * start.coefficients

    def stepper(self, scheme) -> Stepper:
        return Stepper(scheme, self.linear, self.nonlinear, self.start)

    def error(self, scheme, count: int) -> float:
        """Largest error of a coefficient after `count` steps."""
        stepper, u = self.stepper(scheme), self.start
        for _ in range(count):
            u, _ = stepper.step(u, self.end / count)
        return float(np.abs(u[0] - self.exact).max())

    def error_within(self, scheme, count: int) -> float:
        """The same where the end is within the last step, by dense output."""
        stepper, dt = self.stepper(scheme), self.end / (count - 3 / 8)
        stepper.advance(started(dt), FIXED_STEP, 2 * count * dt, count, self.end)
        assert stepper.before.t < self.end < stepper.before.t + stepper.before.step
        return float(np.abs(stepper.within(self.end)[0] - self.exact).max())

    def estimate(self, scheme, count: int) -> float:
        """The error estimate of the first step."""
        return self.stepper(scheme).step(self.start, self.end / count)[1]


def cases() -> list[Case]:
    circle = mf.Circle(DEGREE)
    start = circle.fourier([1, 0.25, 0.1 - 0.05j])
    usa, end = mf.Transformer(mf.USA(BETA), KAPPA), 1.0
    noisy, rotating = Case("USA noisy", usa, start, end), Case("rotating", usa, start, end, 4.0)
    reference = galerkin(start.coefficients, end)
    noisy.exact, rotating.exact = reference, rotating.turn * reference
    start, end = circle.fourier(0.2 ** np.arange(DEGREE + 1)), 1.0
    free = Case("Ott-Antonsen", mf.Transformer(mf.Kuramoto()), start, end, 5.0)
    grown = np.exp(end) * 0.2**2 / (1 - 0.2**2)
    free.exact = free.turn * np.sqrt(grown / (1 + grown)) ** np.arange(DEGREE + 1)
    return [noisy, rotating, free]


def main() -> int:
    report = Report(["equation", "scheme", "what", "steps"], digits=4)
    for case in cases():
        for scheme in EXPONENTIAL:
            measures = {"solution": (case.error, scheme.order)}
            measures["within a step"] = case.error_within, scheme.order
            measures["estimate"] = case.estimate, scheme.estimate_order + 1
            for what, (measure, order) in measures.items():
                sizes = np.array([measure(scheme, count) for count in COUNTS])
                rates = np.log2(sizes[:-1] / sizes[1:])
                for count, rate in zip(COUNTS[2:], rates[1:], strict=True):
                    labels = (case.name, scheme.name, what, count)
                    tolerance = ORDER_TOLERANCE
                    report.compare(*labels, predicted=order, measured=rate, tolerance=tolerance)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
