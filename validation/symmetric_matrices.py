"""Claim: attention with a symmetric matrix D raises its energy, and ends where D's spectrum says.

Tokens move by x' = P_x sum_h int e^{<x, D_h y>} D_h y dmu(y), the gradient of the energy
E = (1/2) sum_h int int e^{<x, D_h y>} dmu dmu. On densities the stationary points of E for one
symmetric D are those of Burger, Kabri, Korolev, Roith and Weigand, arXiv:2501.03096.

1. Weights that change with time, two heads: dE/dt = int |v|^2 dmu + (1/2) sum_h int int
   <x, D_h' y> e^{<x, D_h y>}, the identity of a gradient flow whose energy depends on time
   (Massucco, Carioni, Brune, Schoenlieb and Del Grande, arXiv:2605.18870), along a density on the
   circle and on S^2: the integral from 0 to 1 to 1e-8.
2. D has its largest eigenvalue in modulus, l, above 0: tokens end on the axis of its eigenvector,
   in one cluster or in two opposite ones. With the shares p and q = 1 - p the energy is
   ((p^2 + q^2) e^l + 2 p q e^-l)/2. 64 random starts of 24 tokens for each of four D: 1e-6.
3. Where that eigenvalue is below 0 the same holds, and no end has one cluster: two signs share the
   tokens, as arXiv:2604.26085 says of alignment with the most negative eigenvector.

    python validation/symmetric_matrices.py [--quick]    # 20 s, 5 s quick

--quick has 16 starts. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf


def turned(t, base, rate):
    """A symmetric matrix that turns in its first plane and changes its size: D(t) and D'(t)."""
    c, s, d = np.cos(rate * t), np.sin(rate * t), len(base)
    R, dR = np.eye(d), np.zeros((d, d))
    R[:2, :2], dR[:2, :2] = [[c, -s], [s, c]], [[-rate * s, -rate * c], [rate * c, -rate * s]]
    size, growth = 1 + 0.5 * np.sin(3 * t), 1.5 * np.cos(3 * t)
    D = R @ base @ R.T
    return size * D, growth * D + size * (dR @ base @ R.T + R @ base @ dR.T)


BASES = {
    2: [(np.diag([0.9, -0.4]), 1.0), (np.array([[0.2, 0.5], [0.5, -0.7]]), -2.0)],
    3: [(np.diag([0.8, 0.1, -0.5]), 1.0), (np.diag([-0.6, 0.3, 0.4]), -2.0)],
}


def grid(d):
    """Points of the circle or of S^2 with the weights of a quadrature for the uniform law."""
    if d == 2:
        angles = 2 * np.pi * np.arange(256) / 256
        return np.stack([np.cos(angles), np.sin(angles)], 1), np.full(256, 1 / 256)
    heights, weights = np.polynomial.legendre.leggauss(40)
    angles = 2 * np.pi * np.arange(80) / 80
    z, a = (array.ravel() for array in np.meshgrid(heights, angles, indexing="ij"))
    r = np.sqrt(1 - z**2)
    return np.stack([r * np.cos(a), r * np.sin(a), z], 1), np.repeat(weights / 2, 80) / 80


def energy_and_power(mu, t, points, weights):
    """E, and its derivative by the identity: int |v|^2 dmu plus the part of changing matrices."""
    masses = mu.at(points) * weights
    v, energy, power = 0.0, 0.0, 0.0
    for base, rate in BASES[points.shape[1]]:
        D, change = turned(t, base, rate)
        kernel = np.exp(points @ D @ points.T)
        v = v + kernel @ (masses[:, None] * points) @ D
        energy += masses @ kernel @ masses / 2
        power += masses @ (kernel * (points @ change @ points.T)) @ masses / 2
    v = v - np.sum(v * points, axis=1, keepdims=True) * points
    return energy, power + masses @ np.sum(v**2, axis=1)


def identity(report, d, start):
    """Part 1: the increase of the energy along a run."""
    matrices = [lambda t, head=head: turned(t, *head)[0] for head in BASES[d]]
    both = mf.Attention(
        Q=lambda t: np.stack([D(t) for D in matrices]),
        V=lambda t: np.stack([D(t) for D in matrices]),
        weights=mf.Unnormalised(),
    )
    nodes, weights = np.polynomial.legendre.leggauss(24)
    times = np.concatenate([[0], (nodes + 1) / 2, [1]])
    run = successful(
        mf.solve(mf.Transformer(both), start, (0, 1), t_eval=times, rtol=1e-10, progress=False)
    )
    points, masses = grid(d)
    energies, powers = np.transpose(
        [energy_and_power(mu, t, points, masses) for mu, t in zip(run.states, times, strict=True)]
    )
    report.compare(
        "circle" if d == 2 else "S^2", "two heads, weights in time", "E(1) - E(0)",
        predicted=weights @ powers[1:-1] / 2, measured=energies[-1] - energies[0], tolerance=1e-8,
    )  # fmt: skip


def ends(report, d, eigenvalues, count, rng):
    """Parts 2 and 3: the ends of runs of 24 tokens from random starts."""
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    D = basis * eigenvalues @ basis.T
    axis = basis[:, np.argmax(np.abs(eigenvalues))]
    model = mf.Transformer(mf.Attention(Q=D, V=D, weights=mf.Unnormalised()))
    starts = rng.normal(size=(count, 24, d))
    starts = mf.Tokens(starts / np.linalg.norm(starts, axis=-1, keepdims=True))
    x = mf.solve(model, starts, (0, 300), t_eval=[300], progress=False).final.x
    along = x @ axis
    name = f"d = {d}, eigenvalues {', '.join(f'{value:g}' for value in eigenvalues)}"
    report.compare(
        name, "distance to the axis", "tokens", predicted=0.0,
        measured=np.abs(np.abs(along) - 1).max(), tolerance=1e-6,
    )  # fmt: skip
    signs = np.abs(np.sign(along).mean(axis=1))
    energies = np.exp(np.einsum("rid,de,rje->rij", x, D, x)).mean(axis=(1, 2)) / 2
    top = eigenvalues[np.argmax(np.abs(eigenvalues))]
    share = (1 + signs) / 2
    law = (share**2 + (1 - share) ** 2) * np.exp(top) / 2 + share * (1 - share) * np.exp(-top)
    report.compare(
        name, "energy of two signs", "tokens", predicted=0.0, measured=np.abs(energies - law).max(),
        tolerance=1e-6,
    )  # fmt: skip
    both = np.count_nonzero(signs < 1)
    print(f"{name}: {both} of {count} ends have both signs, the largest share is {share.max():.3f}")
    if top < 0:
        report.compare(
            name, "ends with one sign", "tokens", predicted=0, measured=count - both, tolerance=0
        )


def main():
    quick = command_line(__doc__).quick
    report, rng = Report(["system", "what", "by"]), np.random.default_rng(3)
    circle, sphere = mf.Circle(48), mf.Sphere(24)
    start = circle.density(lambda a: 1 + 0.4 * np.cos(a - 0.3) + 0.2 * np.sin(2 * a))
    identity(report, 2, start)
    identity(report, 3, sphere.density(lambda x, y, z: 1 + 0.5 * z + 0.4 * x * y))
    for eigenvalues in ([1.0, 0.3], [1.0, -0.4], [-1.0, -0.2], [-2.0, 0.5]):
        ends(report, 2, np.array(eigenvalues), 16 if quick else 64, rng)
    for eigenvalues in ([1.0, 0.5, 0.2], [1.0, 0.3, -0.6], [-1.0, -0.5, -0.2], [-2.0, 0.3, 0.5]):
        ends(report, 3, np.array(eigenvalues), 16 if quick else 64, rng)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
