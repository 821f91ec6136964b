"""Claim: the phase diagram of noisy attention, found by continuation, agrees with known values.

1. Tricritical points of USA on S^(d-1), d = 2, 3, 4, 8, 64: the zero of the quadratic term of the
   normal form is that of I_(d/2+1)(beta)/I_(d/2)(beta) = 1/d, to 1e-8. On the circle onsets of
   degree n = 1, ..., 5 become subcritical where I_2n/I_n = 1/2.
2. First-order transitions on the circle (beta = 2.5, ..., 9) and on S^2 (beta = 1.9, ..., 5): fold,
   transition and jump, on branches, to all digits of the reference; and the curves of folds and
   transitions, followed in beta from the tricritical point, pass through the same points, to 1e-10.
3. SA has no first-order onset: the normal form is supercritical for d = 2, 3, 8 and beta in (0,
   60]; the criterion (d-1)(1 - r_1) r_2/(r_1 - r_2) < d r_1 + 1, r_l = lambda_l/lambda_0, agrees.
4. S^2: onsets of even degree are transcritical, of odd degree pitchforks; on the circle all are.

    python validation/phase_diagram.py [--quick] [--figure FILE.png]    # 11 s, 6 s quick

--quick follows the curves to beta = 5.5 rather than 10. Exit code 1 on failure.

References: Mun and Rosenzweig, arXiv:2604.16288 and 2606.05140, with K = kappa/2.
"""

import sys

import numpy as np
from _report import Report, command_line
from scipy.optimize import brentq
from scipy.special import ive

import meanfield as mf
from meanfield.bifurcation.bases import AxialHarmonics
from meanfield.bifurcation.equation import MomentEquation
from meanfield.bifurcation.families import EquationFamily
from meanfield.bifurcation.normal_forms import normal_form
from meanfield.bifurcation.phase_diagram import tricritical_points
from meanfield.plotting import phases

CIRCLE = {  # beta: fold, m_1 there, transition, m_1 there
    2.5: (0.9932200706, 0.13824, 0.9932541481, 0.16937),
    3: (0.7502601061, 0.39275, 0.7521877664, 0.48154),
    4: (0.3870689960, 0.54713, 0.3914751008, 0.66881),
    5: (0.1843006830, 0.61419, 0.1879758266, 0.74803),
    7: (0.0366245206, 0.67900, 0.0378632957, 0.82237),
    9: (0.0065848424, 0.71171, 0.0068778920, 0.85882),
}
SPHERE = {  # beta: fold, transition, m_1 there
    1.9: (2.124540, 2.125014, 0.2779),
    2: (2.044166, 2.046183, 0.3968),
    2.5: (1.612827, 1.628087, 0.6553),
    3: (1.208448, 1.233744, 0.7623),
    4: (0.618273, 0.645350, 0.8586),
    5: (0.293215, 0.311846, 0.9019),
}


def main() -> int:
    options = command_line(__doc__, "the circle up to beta = 5 only", "file to draw in")
    report = Report(["claim", "case"], digits=11)
    tricritical(report)
    betas = (0.1, 5.5 if options.quick else 10.0)
    circle = mf.phase_diagram(mf.USA, mf.Circle(16), betas)
    first_order(report, circle, {beta: CIRCLE[beta] for beta in CIRCLE if beta < betas[1]})
    on_the_sphere(report)
    softmax(report)
    characters(report)
    if options.figure:
        other = mf.phase_diagram(mf.SA, mf.Circle(16), betas)
        phases(circle, other).savefig(options.figure)
    return report.verdict()


def tricritical(report: Report) -> None:
    for d in (2, 3, 4, 8, 64):
        exact = brentq(lambda b, d=d: ive(d / 2 + 1, b) / ive(d / 2, b) - 1 / d, 0.5, 4, xtol=1e-14)
        (found,) = tricritical_points(
            EquationFamily(mf.USA, "beta", (0.5, 4.0), AxialHarmonics(d, 0, 24)), 1
        )
        report.compare(
            "tricritical beta", f"d = {d}", predicted=exact, measured=found.beta, tolerance=1e-8
        )
    for n, span in ((2, (5, 15)), (3, (10, 25)), (4, (25, 45)), (5, (40, 70))):
        exact = brentq(lambda b, n=n: ive(2 * n, b) / ive(n, b) - 0.5, *span, xtol=1e-13)
        family = EquationFamily(mf.USA, "beta", span, AxialHarmonics(2, 0, 4 * n + 8))
        (found,) = tricritical_points(family, n)
        report.compare(
            "subcritical from beta",
            f"circle, n = {n}",
            predicted=exact,
            measured=found.beta,
            tolerance=1e-8,
        )


def first_order(report: Report, plane: mf.PhaseDiagram, known: dict) -> None:
    for beta, (fold, at_fold, transition, jump) in known.items():
        critical = plane.kappa("critical", beta)
        found = mf.branches(
            mf.USA(beta), mf.Circle(16), (0.6 * critical, 1.05 * critical), degrees=[1]
        )
        for kind, kappa, order in (("fold", fold, at_fold), ("transition", transition, jump)):
            (special,) = found.special(kind)
            case = f"circle, beta = {beta:g}"
            report.compare(
                f"{kind}: kappa", case, predicted=kappa, measured=special.kappa, tolerance=6e-11
            )
            measured = special.state.order_parameter
            report.compare(f"{kind}: m_1", case, predicted=order, measured=measured, tolerance=6e-6)
            report.compare(
                f"{kind}: curve",
                case,
                predicted=special.kappa,
                measured=plane.kappa(kind, beta),
                tolerance=1e-10,
            )


def on_the_sphere(report: Report) -> None:
    for beta, (fold, transition, jump) in SPHERE.items():
        critical = 1 / mf.USA(beta).attraction(1, 3)[1]
        found = mf.branches(
            mf.USA(beta), mf.Sphere(16), (0.5 * critical, 1.05 * critical), degrees=[1],
            stability=False,
        )  # fmt: skip
        case = f"S^2, beta = {beta:g}"
        for kind, kappa in (("fold", fold), ("transition", transition)):
            (special,) = found.special(kind)
            report.compare(
                f"{kind}: kappa", case, predicted=kappa, measured=special.kappa, tolerance=6e-7
            )
        measured = special.state.order_parameter
        report.compare("transition: m_1", case, predicted=jump, measured=measured, tolerance=6e-5)


def softmax(report: Report) -> None:
    """The number of beta in (0, 60] at which the two criteria say supercritical."""
    betas = np.linspace(0.5, 60, 120)
    for d in (2, 3, 8):
        both = 0
        for beta in betas:
            l = mf.SA(beta).normaliser(2, d)
            criterion = (d - 1) * (1 - l[1]) * l[2] / (l[1] - l[2]) < d * l[1] + 1
            form = normal_form(
                MomentEquation(mf.SA(beta), AxialHarmonics(d, 0, 96 if beta > 10 else 48)), 1
            )
            both += bool(criterion and form.kind == "supercritical")
        report.compare(
            "SA: supercritical onsets", f"d = {d}, of {len(betas)} beta",
            predicted=len(betas), measured=both, tolerance=0,
        )  # fmt: skip


def characters(report: Report) -> None:
    """1 for a transcritical onset, 0 for a pitchfork."""
    for d, name in ((2, "circle"), (3, "S^2")):
        for l in range(1, 7):
            form = normal_form(MomentEquation(mf.USA(3.0), AxialHarmonics(d, 0, 48)), l)
            report.compare(
                "transcritical", f"{name}, degree {l}", predicted=int(d == 3 and l % 2 == 0),
                measured=int(form.kind == "transcritical"), tolerance=0,
            )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
