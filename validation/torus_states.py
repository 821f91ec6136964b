"""Claim: stationary states, branches and growth rates on the torus are those of independent code.

Under cos x_1 + cos x_2 the states are products of I_1/I_0(kappa r) = r: a stripe of the order
parameter r/sqrt(2), a lattice of r; both begin at kappa = 2 and are found once. USA and SA:
densities are compared with fixed points by scipy's FFT, from starts 1 % away, growth rates with
eigenvalues of dense matrices on a grid. Under USA branches begin at
kappa = beta / prod_i I_{k_i}(beta). On `Torus(degree, 1)` all are those of `Circle`.

Asked: closed form and densities 1e-10, growth rates 1e-7, onsets 1e-10, the circle 1e-12.

    python validation/torus_states.py [--quick]    # 60 s, 30 s quick; exit code 1 on failure

References: Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020);
Golubitsky, Stewart and Schaeffer, Singularities and Groups in Bifurcation Theory II (1988).
"""

import sys

import numpy as np
from _report import Report, command_line
from _torus_states import TorusReference
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf

BETA, KAPPA = 1.0, 2.4
NEUTRAL = 1e-8  # eigenvalues below this belong to the mass and to translations


def compare(report: Report, what: str, predicted: float, measured: float, tolerance: float) -> None:
    report.compare(what, predicted=predicted, measured=measured, tolerance=tolerance)


def order(kappa: float) -> float:
    """r > 0 with r = I_1(kappa r)/I_0(kappa r)."""
    return float(brentq(lambda r: iv(1, kappa * r) / iv(0, kappa * r) - r, 0.01, 1 - 1e-9))


def closed_form(report: Report) -> None:
    r = order(KAPPA)
    for symmetry in ("axisymmetric", "even"):
        diagram = mf.branches(
            mf.Kuramoto(), mf.Torus(8), kappa=(1.5, 2.6), symmetry=symmetry, stability=False,
            secondary=False,
        )  # fmt: skip
        found = sorted(state.order_parameter for _, state in diagram.states_at(KAPPA))
        compare(report, f"symmetry {symmetry}: number of states", 3, len(found), 0)
        begun = [special.value for special in diagram.special("bifurcation", 0)]
        apart = float(np.abs(np.subtract(begun, 2)).max())
        compare(report, f"symmetry {symmetry}: onsets less 2", 0, apart, 1e-10)
        compare(
            report,
            f"symmetry {symmetry}: order parameters of stripe and lattice at kappa = {KAPPA}",
            0,
            float(np.abs(np.subtract(found[1:], [r / 2**0.5, r])).max()),
            1e-10,
        )
    three = mf.stationary(
        mf.Transformer(mf.Kuramoto(), kappa=2.2), mf.Torus(12, 3).von_mises(0.0, 0.9),
        symmetry="square",
    )  # fmt: skip
    compare(
        report,
        "three angles: order parameter at kappa = 2.2",
        order(2.2),
        three.order_parameter,
        1e-10,
    )


def onsets(report: Report) -> None:
    diagram = mf.branches(
        mf.USA(BETA), mf.Torus(8), kappa=(1.35, 3.2), symmetry="square", degrees=[1, 2],
        stability=False, secondary=False,
    )  # fmt: skip
    begun = [special.value for special in diagram.special("bifurcation") if special.branch == 0]
    expected = [BETA / (iv(1, BETA) * iv(k, BETA)) for k in (0, 1)]
    compare(
        report,
        "USA(1): onsets of the waves (1, 0) and (1, 1), relative difference",
        0,
        float(np.abs(np.divide(begun, expected) - 1).max()),
        1e-10,
    )


def nearby(reference: TorusReference, values: np.ndarray, kappa: float) -> np.ndarray:
    """The fixed point of a reference from 1.01 times the deviation of a density from 1."""
    return reference.state(1 + 1.01 * (values - 1), kappa)


def independent(report: Report, n: int, grid: int) -> None:
    def attention(z: np.ndarray, w: np.ndarray) -> np.ndarray:
        return np.exp(BETA * (np.cos(z) + np.cos(w))) / BETA

    starts = {
        "stripe": lambda z, w: np.exp(np.cos(z)) + 0 * w,
        "lattice": lambda z, w: np.exp(1.5 * (np.cos(z) + np.cos(w))),
        "diagonal stripe": lambda z, w: np.exp(np.cos(z + w)),
    }
    cases = [
        ("USA", mf.USA(BETA), 0.0, 1.42, ("stripe",)),
        ("USA", mf.USA(BETA), 0.0, 1.25, ("lattice",)),
        ("USA", mf.USA(BETA), 0.0, 3.2, ("diagonal stripe",)),
        ("SA", mf.SA(BETA), BETA, 2.6, ("stripe", "lattice")),
    ]
    for name, drift, ratio, kappa, shapes in cases:
        model, reference = mf.Transformer(drift, kappa=kappa), TorusReference(attention, n, ratio)
        for shape in shapes:
            guess = mf.Torus(12).density(starts[shape])
            state = mf.stationary(model, guess, symmetry="even", tolerance=1e-14)
            here, coarse = (
                (one, state.density.at(state.density.space.embed(np.stack(one.grid, axis=-1))))
                for one in (reference, TorusReference(attention, grid, ratio))
            )
            mu = nearby(*here, kappa)
            compare(
                report,
                f"{name}, kappa = {kappa}, {shape}: differs from the uniform density by",
                1,
                float(np.abs(mu - 1).max() > 0.1),
                0,
            )
            compare(
                report,
                f"{name}, kappa = {kappa}, {shape}: density, largest difference",
                0,
                float(np.abs(here[1] - mu).max() / mu.max()),
                1e-10,
            )
            expected = coarse[0].growth_rates(nearby(*coarse, kappa), kappa)
            expected = expected[np.abs(expected) > NEUTRAL][:4]
            rates = state.stability(8).eigenvalues
            apart = max(np.abs(rates - one).min() for one in expected)
            compare(
                report,
                f"{name}, kappa = {kappa}, {shape}: leading growth rates",
                0,
                float(apart),
                1e-7,
            )


def the_circle(report: Report) -> None:
    for drift, kappa in ((mf.USA(2.0), 3.0), (mf.SA(2.0), 3.0)):
        model = mf.Transformer(drift, kappa=kappa)
        one, other = (
            mf.stationary(model, mf.symmetrised(space.density(lambda x: np.exp(np.cos(x - 0.3)))))
            for space in (mf.Circle(32), mf.Torus(32, 1))
        )
        modes = one.density.coefficients.size
        apart = np.abs(one.density.coefficients - other.density.coefficients[:modes]).max()
        rates = np.abs(one.stability(4).eigenvalues - other.stability(4).eigenvalues).max()
        compare(report, f"{drift!r}: circle and Torus(., 1)", 0, float(max(apart, rates)), 1e-12)


def main() -> int:
    quick = command_line(__doc__).quick
    report = Report(["case"])
    closed_form(report)
    onsets(report)
    independent(report, 64, 25 if quick else 31)
    the_circle(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
