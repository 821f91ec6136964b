"""Claim: under a reaction densities have the moments of nodes that move and change their mass.

    d mu/dt = -div(mu v[mu]) + alpha mu (Phi - int Phi dmu),   Phi = W * mu,   W' the drift.

1. A law symmetric about an axis: nodes t of Gauss's rule for (1 - t^2)^((d-3)/2) with masses m,

       t_i' = sum_j m_j E[W'(z)(t_j - t_i z)] / Z_i,   m_i' = alpha m_i (Phi_i - sum_j m_j Phi_j),
       z = t_i t_j + sqrt((1 - t_i^2)(1 - t_j^2)) u,

   with u under (1 - u^2)^((d-4)/2), by another Gauss rule (d = 2: u = -1, 1), integrated by SciPy:
   no function of the package. USA (Z = 1) and SA (Z = E[e^{beta z}]), with Circle, Sphere and
   Zonal in d = 2, 3, 4, 8: means of t and t^2. Asked: 1e-9.
2. Attention without symmetry, unnormalised with V = Q^T K symmetric, on the circle: 200 nodes of
   equal angles, as above in R^2. Asked: 1e-9.
3. The mass is kept. Asked: 1e-13.

    python validation/reaction_on_densities.py      # 6 s

Exit code 1 on failure.

References: Rigollet, arXiv:2512.01868 (Wasserstein-Fisher-Rao).
"""

import argparse
import sys

import numpy as np
from _report import Report, successful
from scipy.integrate import solve_ivp
from scipy.special import roots_gegenbauer

import meanfield as mf

ALPHA, BETA, END, CONCENTRATION = 0.7, 1.5, 0.5, 1.0
OPTIONS = {"rtol": 1e-11}
MATRIX = np.array([[1.2, 0.4], [0.4, -0.6]])  # Q^T K = V


def rule(power: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes in [-1, 1] under (1 - t^2)^power, of mass 1; -1 and 1 for power -1."""
    if power == -1:
        return np.array([-1.0, 1.0]), np.array([0.5, 0.5])
    nodes, weights = roots_gegenbauer(size, power + 0.5)
    return nodes, weights / weights.sum()


def moved(t: np.ndarray, masses: np.ndarray, velocity) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and masses at END; `velocity` gives velocities and Phi."""
    shape = t.shape

    def rate(_, y):
        x, m = y[: t.size].reshape(shape), y[t.size :]
        v, phi = velocity(x, m)
        return np.concatenate([v.ravel(), ALPHA * m * (phi - m @ phi / m.sum())])

    start = np.concatenate([t.ravel(), masses])
    found = solve_ivp(rate, (0, END), start, method="DOP853", rtol=1e-12, atol=1e-14)
    assert found.success
    return found.y[: t.size, -1].reshape(shape), found.y[t.size :, -1]


def axisymmetric(d: int, softmax: bool) -> tuple[float, float]:
    """Means of t and t^2 of the nodes."""
    t, weights = rule((d - 3) / 2, 64)
    u, share = rule((d - 4) / 2, 48)
    masses = weights * np.exp(CONCENTRATION * t)

    def velocity(t, m):
        radius = np.sqrt(1 - t**2)
        z = np.multiply.outer(np.outer(t, t), np.ones_like(u)) + np.multiply.outer(
            np.outer(radius, radius), u
        )
        kernel = np.exp(BETA * z)
        mean, turn = kernel @ share, (kernel * z) @ share
        v = mean @ (m * t) - t * (turn @ m)
        return v / (mean @ m if softmax else 1), mean @ m / BETA

    t, m = moved(t, masses / masses.sum(), velocity)
    return float(m @ t), float(m @ t**2)


def check_axisymmetric(report: Report) -> None:
    spaces = {
        "Circle": (2, mf.Circle(48).von_mises(0.0, CONCENTRATION), 0),
        "Sphere": (3, mf.Sphere(32).von_mises_fisher((0, 0, 1), CONCENTRATION), -1),
        **{
            f"Zonal({d})": (d, mf.Zonal(d, 32).von_mises_fisher(CONCENTRATION), -1)
            for d in (2, 3, 4, 8)
        },
    }
    wanted = {(d, soft): axisymmetric(d, soft) for d in (2, 3, 4, 8) for soft in (False, True)}
    for name, (d, mu, axis) in spaces.items():
        for drift in (mf.USA(BETA), mf.SA(BETA)):
            case = f"{name}, {drift!r}"
            final = run(mf.Transformer(drift, reaction=ALPHA), mu, report, case)
            for power, exact in enumerate(wanted[d, isinstance(drift, mf.SA)], 1):
                mean = final.expect(lambda x, p=power, axis=axis: x[..., axis] ** p)
                report.compare(
                    f"mean of t^{power}",
                    case,
                    predicted=exact,
                    measured=float(mean),
                    tolerance=1e-9,
                )


def run(model: mf.Transformer, mu: mf.Density, report: Report, case: str) -> mf.Density:
    """The density at END; its mass is compared."""
    found = successful(mf.solve(model, mu, (0, END), **OPTIONS)).final
    report.compare("mass", case, predicted=1.0, measured=float(found.mass), tolerance=1e-13)
    return found


def check_matrices(report: Report) -> None:
    theta = np.arange(200) * (2 * np.pi / 200)
    density = 1 + 0.4 * np.cos(theta - 0.3) + 0.2 * np.sin(2 * theta)

    def velocity(angle, m):
        x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        kernel = np.exp(BETA * (x @ MATRIX @ x.T)) * m
        tangent = np.stack([-x[:, 1], x[:, 0]], axis=1)
        pull = kernel @ x @ MATRIX
        return (tangent * pull).sum(axis=1), kernel.sum(axis=1) / BETA

    angle, m = moved(theta, density / density.sum(), velocity)
    drift = mf.Attention(1.0, MATRIX, MATRIX, beta=BETA, weights=mf.Unnormalised())
    mu = mf.Circle(48).density(lambda t: 1 + 0.4 * np.cos(t - 0.3) + 0.2 * np.sin(2 * t))
    final = run(mf.Transformer(drift, reaction=ALPHA), mu, report, "Attention")
    for order in (1, 2, 3):
        for what, function in (("cos", np.cos), ("sin", np.sin)):
            exact = float(m @ function(order * angle))
            mean = final.expect(
                lambda x, f=function, k=order: f(k * np.arctan2(x[..., 1], x[..., 0]))
            )
            label = f"mean of {what} {order} theta", "Attention"
            report.compare(*label, predicted=exact, measured=float(mean), tolerance=1e-9)


def main() -> int:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    report = Report(["what", "case"], digits=12)
    check_axisymmetric(report)
    check_matrices(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
