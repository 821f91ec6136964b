"""Claim: at beta = 4 the ordering of USA with noise is discontinuous, with hysteresis.

Between the fold at kappa_f = 0.3870690 and the threshold kappa_c = beta/I_1(beta) = 0.4098585
of the uniform state two stable states exist: a small perturbation of the uniform density decays,
an ordered density stays ordered. Their free energies cross at kappa_t = 0.3914751.

    branches    for seven kappa, the order parameter reached from a perturbation of 1e-4 of the
                uniform state and from a von Mises density of concentration 8, against 0 and
                against the root of the self-consistency equation
                m_k = int cos(k theta) exp(2 (kappa/beta) sum_j I_j m_j cos(j theta)) / Z,
                solved by Newton's method in 24 moments, without any time stepping: <= 1e-7.
    threshold   where the growth rate of degree 1 vanishes: <= 1e-7.
    transition  where F(ordered) = F(uniform), by the secant method on the final states of
                runs, and the order parameter there, 0.66881: <= 1e-7 and 1e-5.

    python validation/hysteresis.py    # 4 s; exit code 1 on failure

References: Mun and Rosenzweig, arXiv:2604.16288, with their K = kappa/2, for the discontinuity
beyond beta = 2.4469; the numbers come from a branch continuation.
"""

import sys

import numpy as np
from _report import Report, successful
from scipy.optimize import brentq, root
from scipy.special import iv

import meanfield as mf
from meanfield.dynamics.observables import measure

BETA = 4.0
THRESHOLD, TRANSITION, JUMP = 0.4098585257, 0.3914751008, 0.66881
KAPPA = np.array([0.380, 0.388, 0.390, 0.393, 0.400, 0.405, 0.415])
FOLD = 0.3870690
MODES = 24


def self_consistent_order(kappa: float) -> float:
    """m_1 of the ordered stationary state; 0 below the fold."""
    if kappa < FOLD:
        return 0.0
    k, theta = np.arange(1, MODES + 1), np.linspace(0, 2 * np.pi, 256, endpoint=False)
    cosines = np.cos(k[:, None] * theta)

    def residual(m):
        weight = np.exp(2 * kappa / BETA * (iv(k, BETA) * m) @ cosines)
        return cosines @ weight / weight.sum() - m

    start = iv(k, 5.0) / iv(0, 5.0)
    found = root(residual, start, tol=1e-13)
    if np.abs(residual(found.x)).max() > 1e-12:
        raise RuntimeError(f"Newton's method failed at kappa = {kappa}: {found.message}")
    return float(found.x[0])


def final(kappa, start: mf.Density, rtol: float = 1e-10) -> tuple[mf.Transformer, mf.Density]:
    """The model and its steady state from a density."""
    model = mf.Transformer(mf.USA(BETA), kappa)
    options = {"rtol": rtol, "until": "steady", "steady_tolerance": 1e-10}
    return model, successful(mf.solve(model, start, (0, 2000), t_eval=[2000], **options)).final


def excess(kappa: float) -> tuple[float, float]:
    """F(ordered) - F(uniform), and the order parameter of the ordered state."""
    model, ordered = final(kappa, mf.Circle(64).von_mises(0, 8))
    uniform = measure(model, mf.Circle(64).uniform())["free_energy"]
    table = measure(model, ordered)
    return float(table["free_energy"] - uniform), float(table["order_parameter"])


def measured_threshold() -> float:
    """Where the growth rate of a perturbation of 1e-6, linear in 1/kappa, vanishes."""
    kappa, end = np.array([0.38, 0.44]), 2.0
    start = mf.Circle(32).fourier([1, 1e-6])
    model = mf.Transformer(mf.USA(BETA), kappa)
    run = successful(mf.solve(model, start, (0, end), t_eval=[end], dt=0.002))
    rate = np.log(np.abs(run.final.moment(1)) / 1e-6) / end
    slope = (rate[1] - rate[0]) / (1 / kappa[1] - 1 / kappa[0])
    return 1 / (1 / kappa[0] - rate[0] / slope)


def main() -> int:
    report = Report(["kappa", "from", "quantity"])
    starts = {"small": mf.Circle(64).fourier([1, 5e-5]), "ordered": mf.Circle(64).von_mises(0, 8)}
    for name, start in starts.items():
        reached = np.abs(final(KAPPA, start)[1].moment(1))
        for kappa, order in zip(KAPPA, reached, strict=True):
            dies = name == "small" and kappa < THRESHOLD
            predicted = 0.0 if dies else self_consistent_order(kappa)
            report.compare(kappa, name, "r", predicted=predicted, measured=order, tolerance=1e-7)
    measured = measured_threshold()
    report.compare("", "", "kappa_c", predicted=THRESHOLD, measured=measured, tolerance=1e-7)
    crossing = brentq(lambda kappa: excess(kappa)[0], 0.390, 0.393, xtol=1e-10)
    report.compare("", "", "kappa_t", predicted=TRANSITION, measured=crossing, tolerance=1e-7)
    jump = excess(crossing)[1]
    report.compare("", "", "r at kappa_t", predicted=JUMP, measured=jump, tolerance=1e-5)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
