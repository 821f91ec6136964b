"""Claim: stationary states on S^2 with the symmetry of a polyhedron, their onset and stability.

1. The functions that a group leaves invariant are as many in each degree as Molien's series says,
   up to degree 32: tetrahedron, octahedron, icosahedron. Exactly.
2. W = P_l attracts one degree: the uniform state loses stability at kappa = 2 l + 1 (1e-12), in a
   pitchfork for l = 3, whose kappa/kappa_c - 1 grows as c_2 a^2, transcritical for l = 4 and 6, as
   c_1 a with c_1 = -<p^3>/2. By states of small amplitude, extrapolated: 1e-6.
3. The octahedral branch of l = 4, with one invariant p of that degree, is mu = exp(s p)/Z, kappa =
   9 s/E p. Its fold is the least of these kappa: 1e-10. At the transition its free energy is that
   of the uniform state, by `free_energy` of densities on S^2: 1e-11. It is stable between the fold
   and the loss of symmetry.
4. Under `solve` the tetrahedral and octahedral states stay (1e-10 after t = 1), and perturbations
   along modes of each kind decay or grow at the eigenvalue: 1e-8. Three rotations are neutral.

    python validation/polyhedral_states.py [--quick]    # 17 s, 4 s quick

--quick has half of the branch, and the octahedral state alone under `solve`. Exit code 1 on
failure.

Reference: Golubitsky, Stewart and Schaeffer, Singularities and Groups in Bifurcation Theory II
(1988), chapter XIII, for the maximal isotropy subgroups of O(3).
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.optimize import brentq, minimize_scalar

import meanfield as mf
from meanfield.bifurcation.point_groups import Invariants
from meanfield.dynamics.observables import measure

SERIES = {"tetrahedral": (3, 4), "octahedral": (4, 6), "icosahedral": (6, 10)}
DEGREES = {"tetrahedral": 3, "octahedral": 4, "icosahedral": 6}
SPHERE = mf.Sphere(16)


def attraction(l: int) -> mf.Interaction:
    return mf.Interaction(lambda t: np.polynomial.legendre.Legendre.basis(l)(t), name=f"P_{l}")


def main() -> int:
    report = Report(["claim", "case"], digits=12)
    counts(report)
    onsets(report)
    quick = command_line(__doc__, "half of the branch, one state").quick
    octahedral = first_order(report, **({"max_step": 0.2, "max_points": 13} if quick else {}))
    under_solve(report, "octahedral", octahedral)
    if not quick:
        found = mf.branches(attraction(3), SPHERE, (6.0, 7.6), symmetry="tetrahedral",
                            stability=False, save_at=[7.5])  # fmt: skip
        under_solve(report, "tetrahedral", found.saved[-1][1])
    return report.verdict()


def counts(report: Report) -> None:
    for group, (a, b) in SERIES.items():
        expected = np.zeros(33, dtype=int)
        for i in range(0, 33, a):
            for j in range(0, 33 - i, b):
                expected[i + j] += 1
        found = np.bincount(Invariants(group, 32).degrees, minlength=33)
        report.compare("invariants", group, predicted=0, tolerance=0,
                       measured=np.abs(found - expected)[1:].max())  # fmt: skip


def onsets(report: Report) -> None:
    for group, l in DEGREES.items():
        drift, critical = attraction(l), 2 * l + 1.0
        found = mf.branches(drift, SPHERE, (0.9 * critical, 1.1 * critical), symmetry=group,
                            degrees=[l], stability=False, max_points=2, max_step=1e-3)  # fmt: skip
        (onset,) = found.special("bifurcation", 0)
        report.compare("onset", group, predicted=critical, measured=onset.value, tolerance=1e-12)
        linear, quadratic = series_of(drift, group, l)
        grid = mf.Sphere(32)
        p = Invariants(group, 16).at(grid.points)[0]
        report.compare("c_1 = -<p^3>/2", group, predicted=-(grid.weights @ p**3) / 2,
                       measured=linear, tolerance=1e-6)  # fmt: skip
        if l == 3:
            up = quadratic > 0 and onset.character == "supercritical"
            report.compare("c_2 > 0, pitchfork", group, predicted=1, measured=int(up), tolerance=0)


def series_of(drift: mf.Interaction, group: str, l: int) -> tuple[float, float]:
    """c_1 and c_2 of kappa/kappa_c - 1 = c_1 a + c_2 a^2 + ..., from states with small a."""
    kappas = []
    for a in (0.02, -0.02, 0.04, -0.04):
        kappas.append(kappa_at(drift, group, l, a) / (2 * l + 1) - 1)
    odd = [(kappas[0] - kappas[1]) / 0.04, (kappas[2] - kappas[3]) / 0.08]
    even = [(kappas[0] + kappas[1]) / 0.0008, (kappas[2] + kappas[3]) / 0.0032]
    return (4 * odd[0] - odd[1]) / 3, (4 * even[0] - even[1]) / 3


def kappa_at(drift: mf.Interaction, group: str, l: int, a: float) -> float:
    """kappa of the state whose first moment is a: mu = exp(s p)/Z, E p = a, s = kappa w a."""
    grid = mf.Sphere(40)
    p = Invariants(group, 16).at(grid.points)[0]
    s = brentq(lambda s: mean_of(s, grid.weights, p) - a, a - 0.5, a + 0.5, xtol=1e-15)
    return s * (2 * l + 1) / a


def mean_of(s: float, weights: np.ndarray, p: np.ndarray) -> float:
    law = weights * np.exp(s * p)
    return float(law @ p / law.sum())


def first_order(report: Report, **steps) -> mf.StationaryState:
    found = mf.branches(attraction(4), SPHERE, (8.0, 9.05), symmetry="octahedral", degrees=[4],
                        save_at=[8.15], **steps)  # fmt: skip
    transition, fold = found.special("transition")[0], found.special("fold")[0]
    (breaking,) = found.special("symmetry breaking", fold.branch)
    grid = mf.Sphere(64)
    p = Invariants("octahedral", 16).at(grid.points)[0]
    least = minimize_scalar(lambda s: 9 * s / mean_of(s, grid.weights, p), bounds=(0.5, 3.0),
                            method="bounded", options={"xatol": 1e-9})  # fmt: skip
    report.compare("fold of l = 4", "octahedral", predicted=least.fun, measured=fold.value,
                   tolerance=1e-10)  # fmt: skip
    state = transition.state
    energy = measure(state.model, state.density)["free_energy"]
    uniform = measure(state.model, SPHERE.uniform())["free_energy"]
    report.compare("free energies", "at the transition", predicted=float(uniform),
                   measured=float(energy), tolerance=1e-11)  # fmt: skip
    data = found.data.where(found.data.branch == fold.branch, drop=True)
    between = (data.moments[:, 0] > fold.state.legendre_moments[0] + 1e-9) & (
        data.kappa < breaking.value - 1e-9
    )
    report.compare("stable", "between fold and loss of symmetry", predicted=0, tolerance=0,
                   measured=int((data.growth.values[between.values] > 1e-9).sum()))  # fmt: skip
    stable = [s for number, s in found.saved if number and s.stability().stable]
    return stable[0]


def under_solve(report: Report, group: str, state: mf.StationaryState) -> None:
    size, duration = 1e-4, 1.0
    space, start = state.density.space, state.density.coefficients
    run = successful(mf.solve(state.model, state.density, (0, 1), rtol=1e-11, t_eval=[1.0]))
    report.compare("stays", group, predicted=0, tolerance=1e-10,
                   measured=np.abs(ended(run, space) - start).max())  # fmt: skip
    found = state.stability(24)
    report.compare("neutral rotations, one of three", group, predicted=1,
                   measured=int(found.neutral.sum()), tolerance=0)  # fmt: skip
    for order in range(state.equation.basis.orders):
        i = next(i for i in range(24) if found.orders[i] == order and not found.neutral[i])
        values = found.modes[i].real @ state.equation.basis.of_order(order).at(space.points)
        mode = space.to_coefficients(values / np.abs(values).max())
        ends = []
        for sign in (1, -1):
            moved = mf.Density(space, start + sign * size * mode)
            run = mf.solve(state.model, moved, (0, duration), rtol=1e-12, t_eval=[duration])
            ends.append(ended(successful(run), space))
        change = (ends[0] - ends[1]) / 2  # without terms of second order
        ratio = (np.vdot(mode, change) / np.vdot(mode, size * mode)).real
        report.compare(f"rate of order {order} under solve", group, measured=np.log(ratio),
                       predicted=duration * found.eigenvalues[i].real, tolerance=1e-8)  # fmt: skip


def ended(run: mf.Solution, space: mf.Sphere) -> np.ndarray:
    """The last coefficients, in the degree of a space."""
    return run.final.space.resample(run.final.coefficients, space.degree)


if __name__ == "__main__":
    sys.exit(main())
