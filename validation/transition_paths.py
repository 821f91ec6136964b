"""Claim: `mf.transition_path` computes minimum free-energy paths between stable states.

Between the uniform and the ordered state of noisy USA lies one saddle.

1. Both states and the saddle are on the path, on the circle, S^2 and axisymmetric densities in
   d = 3, 5: distance in L^2 of the densities, and of F at the saddle.
2. The equation is tangent to the path: d_t mu across it, relative to the largest d_t mu, in H^-1.
3. The string method with 129 images, which knows no unstable manifold, finds the path that
   `mf.solve` follows down from the saddle: largest distance in L^2 at equal length.
4. The Dawson-Gaertner action of the path up to the saddle, int |mu'| |v| - <mu', v> ds with
   norms in H^-1_mu, is twice the barrier, its least value, on the circle at beta = 4,
   kappa = 0.402. It is computed from fluxes on a grid and Bessel functions.

Asked: 1e-10 for states; 1e-5 for the tangent; 1e-6 for the string, and for the action, relative.

    python validation/transition_paths.py [--quick]    # 20 s, 5 s quick; exit code 1 on failure

--quick has the circle alone.
"""

import argparse
import sys

import numpy as np
from _report import Report
from scipy.interpolate import CubicSpline
from scipy.special import iv

import meanfield as mf

BETA, KAPPA = 4.0, 0.402
CASES = [
    ("circle", BETA, KAPPA, mf.Circle(32)),
    ("S^2", 3.0, 1.25, mf.Sphere(16)),
    ("zonal, d = 3", 3.0, 1.25, mf.Zonal(3, 32)),
    ("zonal, d = 5", 3.0, 2.45, mf.Zonal(5, 32)),
]


def ends(beta, kappa, space):
    """The uniform and the ordered stable state of USA."""
    states = mf.stationary_states(mf.Transformer(mf.USA(beta), kappa), space)
    return sorted((s for s in states if s.stable), key=lambda s: s.order_parameter)


def difference(one, other):
    """Distance of two densities in L^2."""
    degree = max(one.space.degree, other.space.degree)
    change = one.resample(degree).coefficients - other.resample(degree).coefficients
    return float(np.sqrt(one.space.with_degree(degree).parseval @ np.abs(change) ** 2))


def apart(string, path):
    """Largest distance in L^2 of the images of a string from a path, at equal lengths."""
    curve = CubicSpline(path.data.length.values, path.densities.coefficients)
    degree = path.densities.space.degree
    change = curve(string.data.length.values) - string.densities.resample(degree).coefficients
    return float(np.sqrt(np.abs(change) ** 2 @ path.densities.space.parseval).max())


def action_to_the_saddle(path):
    """The action of a path of even densities up to its highest image, by quadrature."""
    top = int(path.data.free_energy.values.argmax())
    length, c = path.data.length.values[: top + 1], path.densities.coefficients[: top + 1].real
    change, c = CubicSpline(length, c).derivative()(length)[:, 1:], c[:, 1:]
    k = np.arange(1, c.shape[1] + 1)
    theta = 2 * np.pi * np.arange(512) / 512
    sines = np.sin(np.outer(k, theta))
    density = 1 + 2 * c @ np.cos(np.outer(k, theta))
    flux = -2 * (change / k) @ sines
    v = -(2 * iv(k, BETA) / BETA * k * c) @ sines + 2 * (k * c) @ sines / density / KAPPA
    size = np.sqrt(np.mean(flux**2 / density, axis=1) * np.mean(density * v**2, axis=1))
    return CubicSpline(length, size - np.mean(flux * v, axis=1)).integrate(0, length[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the circle alone")
    quick = parser.parse_args().quick
    report = Report(["on", "quantity"], digits=10)
    for name, beta, kappa, space in CASES[: 1 if quick else None]:
        a, b = ends(beta, kappa, space)
        path = mf.transition_path(a, b, images=513)
        top = float(path.data.free_energy.values.max())
        report.compare(name, "first state", predicted=0.0, tolerance=1e-10,
                       measured=difference(path.densities[0], a.density))  # fmt: skip
        report.compare(name, "last state", predicted=0.0, tolerance=1e-10,
                       measured=difference(path.densities[-1], b.density))  # fmt: skip
        report.compare(name, "F at the saddle", predicted=path.saddle.state.free_energy,
                       measured=top, tolerance=1e-10)  # fmt: skip
        report.compare(name, "d_t mu across", predicted=0.0, measured=path.residual, tolerance=1e-5)
        string = mf.transition_path(a, b, method="string", images=129)
        if name == "circle":
            report.compare(name, "action", predicted=2 * path.barrier, tolerance=1e-6,
                           measured=action_to_the_saddle(path), relative=True)  # fmt: skip
        if name != "S^2":  # whose densities are computed as zonal ones
            report.compare(name, "string", predicted=0.0, measured=apart(string, path),
                           tolerance=1e-6)  # fmt: skip
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
