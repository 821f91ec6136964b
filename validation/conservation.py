"""Claim: runs keep what the equation keeps: mass, the decay of free energy, the symmetries.

    mass           |int dmu - 1|, by quadrature on the grid, at every output: <= 1e-13.
    free energy    F = (1/kappa) int mu log mu - E never increases from one output to the next
                   (USA, Kuramoto, a general potential): by at most 1e-14 of |F|, rounding.
    balance        F(0) - F(T) = int_0^T D dt, D the dissipation that `observables` reports,
                   integrated by Gauss-Legendre quadrature on 40 graded panels: <= 1e-9, relative.
                   Without noise this is E(T) - E(0) = int int |v|^2 dmu dt.
    equivariance   solving commutes with the rotation by 1 radian and with the reflection
                   theta -> -theta: differences of coefficients <= 1e-12 after 400 equal steps.

Asked: the bounds above.

    python validation/conservation.py    # 6 s; exit code 1 on failure

References: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, section 3.
"""

import sys

import numpy as np
from _report import Report, successful

import meanfield as mf

ROTATION = 1.0
POTENTIAL = mf.Interaction.chebyshev([0, 1, 0.5], name="cos + cos 2 / 2")
RUNS = {
    "USA(4), kappa 6": (mf.Transformer(mf.USA(4.0), 6.0), 5.0),
    "USA(1), no noise": (mf.Transformer(mf.USA(1.0)), 1.5),
    "SA(4), kappa 20": (mf.Transformer(mf.SA(4.0), 20.0), 20.0),
    "SA(4), no noise": (mf.Transformer(mf.SA(4.0)), 2.0),
    "Kuramoto, kappa 3": (mf.Transformer(mf.Kuramoto(), 3.0), 100.0),
    "cos + cos 2 / 2, kappa 2.5": (mf.Transformer(POTENTIAL, 2.5), 30.0),
}


def initial() -> mf.Density:
    """An asymmetric density: 1 + 0.3 cos + 0.1 cos 2 theta + 0.05 sin 3 theta."""
    return mf.Circle(32).fourier([1, 0.15, 0.05, -0.025j])


def reflected(density: mf.Density) -> mf.Density:
    """The pushforward by theta -> -theta."""
    return mf.Density(density.space, np.conj(density.coefficients))


def add_mass_and_energy(report: Report, name: str, model: mf.Transformer, end: float) -> None:
    """Mass drift, largest increase of F, and the balance of F with its dissipation."""
    edges = end * np.linspace(0, 1, 41) ** 2
    nodes, weights = np.polynomial.legendre.leggauss(8)
    half = np.diff(edges)[:, None] / 2
    inner = ((edges[:-1] + edges[1:])[:, None] / 2 + half * nodes).ravel()
    times = np.concatenate([[0.0], inner, [end]])
    run = successful(mf.solve(model, initial(), (0, end), t_eval=times, rtol=1e-11))
    table = run.observables
    drift = max(abs(float(density.expect(lambda x: np.ones(len(x)))) - 1) for density in run)
    report.compare(name, "mass", predicted=0, measured=drift, tolerance=1e-13)
    if model.drift.gradient_flow:
        free = table["free_energy"].values
        increase = max(0.0, (np.diff(free) / np.abs(free[1:])).max())
        report.compare(name, "increase of F", predicted=0, measured=increase, tolerance=1e-14)
        lost = (half * weights).ravel() @ table["dissipation"].values[1:-1]
        options = {"tolerance": 1e-9, "relative": True}
        report.compare(name, "balance", predicted=free[0] - free[-1], measured=lost, **options)


def add_symmetries(report: Report, name: str, model: mf.Transformer, end: float) -> None:
    """Differences between transforming before and after the run."""

    def moved(density: mf.Density) -> mf.Density:
        bounds = {"min_degree": 256, "max_degree": 256}
        start = density.resample(256)
        run = mf.solve(model, start, (0, end), t_eval=[end], dt=end / 400, **bounds)
        return successful(run).final

    end = min(end, 2.0)
    plain = moved(initial())
    rotated = moved(initial().rotate(ROTATION)), plain.rotate(ROTATION)
    mirrored = moved(reflected(initial())), reflected(plain)
    for symmetry, (first, second) in {"rotation": rotated, "reflection": mirrored}.items():
        difference = np.abs(first.coefficients - second.coefficients).max()
        report.compare(name, symmetry, predicted=0, measured=difference, tolerance=1e-12)


def main() -> int:
    report = Report(["model", "what"], digits=6)
    for name, (model, end) in RUNS.items():
        add_mass_and_energy(report, name, model, end)
        add_symmetries(report, name, model, end)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
