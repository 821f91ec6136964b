"""Claim: the bifurcation of noisy Kuramoto at kappa = 2, and what follows from the uniform state.

1. The pitchfork lies at kappa = 2 on the circle, at kappa = d on S^(d-1): 1e-10. On the branch
   r = I_(d/2)(kappa r)/I_(d/2-1)(kappa r): 1e-12; r^2 / (kappa - d) tends to (d + 2)/d^2: 1e-3.
2. kappa_n = beta/I_n(beta), beta = 1, 2, 4, 5, 10, n = 1, ..., 4: 1e-9, relative.
3. Moments and free energies of ordered states for seven (beta, kappa): 1e-11. Moments of Kuramoto's
   for six kappa: 1e-11.
4. Spectral gaps of these states, thirteen of them: 1e-8. Convergence of Newton's method: the
   residual after is below 20 times the square of that before, below 1e-2.
5. Doi-Onsager, W = -|sin|: K_c = 3 pi/4, continuous; Kuramoto-Daido, W = cos + m cos 2: the uniform
   state is unstable from K = min(1, 1/m); K = kappa/2: 1e-9.
6. For m > 1 the branch of cos 2 meets another one, with r > 0, at kappa = 2/(1 + q), where q =
   I_1(kappa m q)/I_0(kappa m q) is its <cos 2 theta>: kappa <cos^2 theta> = 1. There a branch
   leaves: 1e-10; of the other states, by deflation at kappa = 1.6, r agrees to 1e-10.
7. The threshold by another way: a perturbation of 1e-6 grows under `solve` at the rate I_1/beta -
   1/kappa on either side: 1e-6, as the state is solved to 1e-12.

    python validation/bifurcation_kappa_2.py    # 6 s; exit code 1 on failure

References: Acebron et al., Rev. Mod. Phys. 77 (2005); Bertini, Giacomin and Pakdaman, J. Stat.
Phys. 138 (2010), for the spectral gap; Mun and Rosenzweig, arXiv:2602.14954, for the last two.
"""

import sys
from itertools import pairwise

import numpy as np
from _report import Report, successful
from scipy.optimize import brentq
from scipy.special import iv, ive

import meanfield as mf

CRITICAL = {
    1: (1.769413237, 7.366608957, 45.1092039, 365.3474891),
    2: (1.257358016, 2.902974826, 9.401148741, 39.42551507),
    4: (0.4098585257, 0.6228405558, 1.198582396, 2.824308839),
    5: (0.2054599575, 0.2856226422, 0.4839732187, 0.9788117092),
    10: (3.743932531e-3, 4.383044867e-3, 5.687050538e-3, 8.153344598e-3),
}
MOMENTS = {  # (beta, kappa): m_1, m_2, m_3, free energy
    (1, 2): (0.543821203160, 0.205285340932, 0.061687841131, -1.070871312839e-2),
    (1, 3): (0.863961101266, 0.601702334173, 0.355358317638, -1.267350879807e-1),
    (1, 5): (0.947430064422, 0.808897477395, 0.627385709840, -2.985914802946e-1),
    (2, 2): (0.914665945171, 0.741190700828, 0.541106139231, -2.292009972298e-1),
    (2, 4): (0.977549558827, 0.913628180443, 0.817382167920, -6.411807017969e-1),
    (5, 0.19): (0.775321066363, 0.631131123999, 0.468040162296, -5.002095247791e-2),
    (5, 0.25): (0.954629361242, 0.878598862255, 0.770712094042, -1.847173041868),
}
ORDER = {2.1: 0.303689343806, 2.5: 0.589707987783, 3: 0.724158717626, 4: 0.831462024754,
         6: 0.902152779065, 10: 0.945542186423}  # fmt: skip
GAPS = {
    **{(0, 2.1): 0.048015791, (0, 2.5): 0.208287180, (0, 3): 0.360444151, (0, 4): 0.574124210},
    **{(0, 6): 0.788108769, (0, 10): 0.890288440, (1, 2): 0.136269814, (1, 3): 0.465714943},
    **{(1, 5): 0.511181577, (2, 2): 0.511227263, (2, 4): 0.397478010},
    **{(5, 0.2): 1.680919376, (5, 0.25): 2.168851969},
}


def main() -> int:
    report = Report(["claim", "case"], digits=12)
    pitchforks(report)
    thresholds(report)
    states(report)
    other_kernels(report)
    secondary(report)
    by_solving(report)
    return report.verdict()


def model(beta: float, kappa: float) -> mf.Transformer:
    return mf.Transformer(mf.USA(beta) if beta else mf.Kuramoto(), kappa)


def pitchforks(report: Report) -> None:
    for d in (2, 3, 8):
        found = mf.branches(mf.Kuramoto(), mf.Zonal(d, 16), (0.9 * d, 4 * d), stability=False)
        (onset,) = found.special_points
        case = f"S^{d - 1}"
        report.compare("pitchfork", case, predicted=d, measured=onset.kappa, tolerance=1e-10)
        branch = found.data.where(found.data.branch == 1, drop=True)
        r, kappa = branch.order_parameter.values, branch.kappa.values
        error = np.abs(r - ive(d / 2, kappa * r) / ive(d / 2 - 1, kappa * r)).max()
        report.compare("r on the branch", case, predicted=0, measured=error, tolerance=1e-12)
        first = slice(0, 1)
        ratio = float((r[first] ** 2 / (kappa[first] - d))[0])
        exact = (d + 2) / d**2
        report.compare("r^2/(kappa - d)", case, predicted=exact, measured=ratio, tolerance=1e-3)


def thresholds(report: Report) -> None:
    for beta, critical in CRITICAL.items():
        span = (critical[0] / 2, 1.01 * critical[3])
        found = mf.branches(
            mf.USA(beta), mf.Circle(16), span, max_points=1, secondary=False, stability=False
        )
        places = {s.degree: s.kappa for s in found.special("bifurcation", 0)}
        for n, kappa in enumerate(critical, start=1):
            report.compare(
                "kappa_n", f"beta = {beta}, n = {n}", predicted=kappa, measured=places[n],
                tolerance=1e-9, relative=True,
            )  # fmt: skip


def states(report: Report) -> None:
    start = mf.Circle(32).von_mises(0.0, 4.0)
    for (beta, kappa), (*moments, energy) in MOMENTS.items():
        found, case = mf.stationary(model(beta, kappa), start), f"beta = {beta}, kappa = {kappa}"
        for k, exact in enumerate(moments, start=1):
            measured = found.density.moment(k).real
            report.compare(f"m_{k}", case, predicted=exact, measured=measured, tolerance=1e-11)
        measured = found.free_energy
        report.compare("F - F(uniform)", case, predicted=energy, measured=measured, tolerance=1e-11)
        steps = [(a, b) for a, b in pairwise(found.residuals) if 1e-6 < a < 1e-2]
        largest = max((b / a**2 for a, b in steps), default=0.0)
        report.compare("Newton: quadratic", case, predicted=0, measured=largest, tolerance=20)
    for kappa, exact in ORDER.items():
        measured = mf.stationary(model(0, kappa), start).order_parameter
        case = f"Kuramoto, kappa = {kappa}"
        report.compare("r", case, predicted=exact, measured=measured, tolerance=1e-11)
    for (beta, kappa), gap in GAPS.items():
        measured = mf.stationary(model(beta, kappa), start).stability().gap
        case = f"beta = {beta}, kappa = {kappa}"
        report.compare("spectral gap", case, predicted=gap, measured=measured, tolerance=1e-8)


def other_kernels(report: Report) -> None:
    doi = mf.Interaction(lambda t: -np.sqrt(np.maximum(1 - t**2, 0.0)), name="Doi-Onsager")
    found = mf.branches(doi, mf.Circle(32), (4.0, 6.0), stability=False)
    (onset,) = found.special("bifurcation", 0)
    exact = 3 * np.pi / 4
    report.compare("K_c", "Doi-Onsager", predicted=exact, measured=onset.kappa / 2, tolerance=1e-8)
    report.compare(
        "folds and transitions", "Doi-Onsager", predicted=0, tolerance=0,
        measured=len(found.special("fold") + found.special("transition")),
    )  # fmt: skip
    for m in (0.25, 0.5, 2.0, 4.0):
        daido = mf.Interaction.chebyshev([0, 1, m])
        found = mf.branches(daido, mf.Circle(16), (0.3, 2.5), stability=False, secondary=False)
        first = min(s.kappa for s in found.special("bifurcation", 0))
        before = sum(s.kappa < first for s in found.special("transition"))
        case = f"Kuramoto-Daido, m = {m}"
        exact = min(1, 1 / m)
        report.compare("threshold K", case, predicted=exact, measured=first / 2, tolerance=1e-9)
        report.compare("transitions before", case, predicted=0, measured=before, tolerance=0)


def secondary(report: Report) -> None:
    for m in (1.3, 1.5, 1.7):
        daido, case = mf.Interaction.chebyshev([0, 1, m]), f"m = {m}"
        found = mf.branches(daido, mf.Circle(16), (1.0, 2.5), stability=False)
        parent = next(s.branch for s in found.special("bifurcation") if s.branch)
        (leaves,) = found.special("bifurcation", parent)
        at = {"predicted": meets(m), "measured": leaves.kappa, "tolerance": 1e-10}
        report.compare("secondary bifurcation", case, **at)
        followed = max(s.order_parameter for _, s in found.states_at(1.6))
        states = mf.stationary_states(mf.Transformer(daido, 1.6), mf.Circle(32))
        numbers = {"predicted": max(s.order_parameter for s in states), "measured": followed}
        report.compare("r beyond it", case, **numbers, tolerance=1e-10)


def meets(m: float) -> float:
    """kappa = 2/(1 + q), on the branch on which q = I_1(kappa m q)/I_0(kappa m q)."""

    def excess(q: float) -> float:
        x = 2 / (1 + q) * m * q
        return q - ive(1, x) / ive(0, x)

    return 2 / (1 + brentq(excess, 0.05, 0.95, xtol=1e-15))


def by_solving(report: Report) -> None:
    """d log m_1/dt of a small perturbation, against I_1/beta - 1/kappa."""
    start = mf.Circle(16).density(lambda t: 1 + 2e-6 * np.cos(t))
    for beta in (0, 4):
        critical = 2.0 if beta == 0 else beta / iv(1, beta)
        for part in (0.99, 1.01):
            alive = model(beta, part * critical)
            run = successful(mf.solve(alive, start, (0, 2), t_eval=[1.0, 2.0], rtol=1e-12))
            rate = np.log(run[1].moment(1).real / run[0].moment(1).real)
            exact = 1 / critical - 1 / (part * critical)
            case = f"beta = {beta}, {part} kappa_c"
            report.compare("growth", case, predicted=exact, measured=rate, tolerance=1e-6)


if __name__ == "__main__":
    sys.exit(main())
