"""Claim: resonance of waves on the torus decides whether the transition is continuous.

A wave and a second one that its square excites, a times as strong, on tori of one and two angles:

    W = cos z + a cos 2z,    W = cos z_1 + cos z_2 + a cos z_1 cos z_2,

with the onset kappa = 2 for a < 1 and a < 2. States that are even, and equal under an exchange of
the angles, are exp(b f + c g)/Z with f = cos x or cos x_1 + cos x_2 and g = cos 2x or
cos x_1 cos x_2, and critical points of

    kappa F = Q/kappa - log Z(b, c),    Q = m b^2/2 + c^2/(2 a),    m the number of angles.

1. The branch of the amplitude t in L^2 begins as kappa = 2 (1 + c_2 t^2). By the expansion of
   log Z to fourth order c_2 = (1 - 2a)/(4 - 4a) and c_2 = (2 - 5a)/(16 - 8a): the transition is
   continuous up to a = 1/2 and 2/5, and discontinuous beyond.
2. Beyond, it is at the least Q/log Z, which is below 2, and before it is not: by quadrature and
   scipy, against diagrams.

    python validation/torus_transitions.py [--quick]    # 20 s, 8 s quick

References: Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020), for
resonances of modes.
"""

import sys
from collections.abc import Callable

import numpy as np
from _report import Report, command_line
from scipy.optimize import minimize

import meanfield as mf
from meanfield.bifurcation.bases import basis_on
from meanfield.bifurcation.families import equation_of
from meanfield.bifurcation.normal_forms import normal_form, order_of

SYMMETRY = {1: "even", 2: "square"}
CLOSED: dict[int, Callable[[float], float]] = {
    1: lambda a: (1 - 2 * a) / (4 - 4 * a),
    2: lambda a: (2 - 5 * a) / (16 - 8 * a),
}
CRITICAL = {1: 1 / 2, 2: 2 / 5}
NEAR_UNIFORM = 0.02  # b and c below it: differences of free energies are rounding errors


def kernel(a: float, m: int) -> mf.PeriodicKernel:
    if m == 1:
        return mf.PeriodicKernel(lambda z: np.cos(z) + a * np.cos(2 * z), circles=1)
    return mf.PeriodicKernel(lambda z, w: np.cos(z) + np.cos(w) + a * np.cos(z) * np.cos(w))


def normal_forms(report: Report) -> None:
    for m, exact in CLOSED.items():
        basis = basis_on(mf.Torus(8, m), SYMMETRY[m])
        for a in (0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 0.9):
            equation = equation_of(kernel(a, m), basis)
            form, case = normal_form(equation, 1), f"m = {m}, a = {a}"
            report.compare(
                "c_2", case, predicted=exact(a), measured=form.quadratic, tolerance=1e-12
            )
            continuous = float(order_of(equation, form) == "continuous")
            claim = float(a < CRITICAL[m])
            report.compare("continuous", case, predicted=claim, measured=continuous, tolerance=0)


def least(a: float, m: int) -> float:
    """The least Q/log Z away from b = c = 0, where its limit is 2: kappa at the transition."""
    x = 2 * np.pi * np.arange(96) / 96
    f, g = np.cos(x), np.cos(2 * x)
    if m == 2:
        f, g = np.cos(x)[:, None] + np.cos(x), np.cos(x)[:, None] * np.cos(x)

    def quotient(z: np.ndarray) -> float:
        b, c = z
        return float((m * b**2 / 2 + c**2 / (2 * a)) / np.log(np.exp(b * f + c * g).mean()))

    options = {"xatol": 1e-9, "fatol": 1e-15, "maxiter": 10_000}
    starts = ((0.5, 0.1), (1.0, 0.5), (2.0, 1.5))
    found = [minimize(quotient, z, method="Nelder-Mead", options=options) for z in starts]
    return min([one.fun for one in found if np.abs(one.x).max() > NEAR_UNIFORM], default=2.0)


def transitions(report: Report, quick: bool) -> None:
    for m in (1, 2):
        for a in (0.3, 0.8) if quick else (0.2, 0.3, 0.6, 0.8):
            options = {"symmetry": SYMMETRY[m], "secondary": False}
            diagram = mf.branches(kernel(a, m), mf.Torus(8, m), kappa=(1.5, 2.3), **options)
            found, case = diagram.transition(), f"m = {m}, a = {a}"
            predicted = least(a, m)
            report.compare(
                "transition", case, predicted=predicted, measured=found.kappa, tolerance=1e-9
            )
            claim, measured = float(a < CRITICAL[m]), float(found.order == "continuous")
            report.compare("continuous", case, predicted=claim, measured=measured, tolerance=0)


def main() -> int:
    quick = command_line(__doc__, "two strengths").quick
    report = Report(["what", "case"])
    normal_forms(report)
    transitions(report, quick)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
