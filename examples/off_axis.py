r"""
Stationary states on the 2-sphere without an axis: a triangle, and a biaxial state
==================================================================================

Under :math:`W = -P_1 + 3 P_3` three clusters on a great circle are stationary from
:math:`\kappa = 7/3` on. A run from a density without any symmetry ends there. Newton's method finds
the same state from the end of this run, without assuming a symmetry, and from a guess with the
group D3h. :math:`W = 0.26 P_2 + 0.432 P_4` has a biaxial state, with three different second
moments, at :math:`\kappa = 18.7`.

:Source: Shalova and Schlichting, arXiv:2412.14813 (axisymmetric states); survey, section 7,
    equation (9) with another kernel.
:Run time: 6 s, ``python examples/off_axis.py``
:Look at: the three equal hills on the equator, and the two pairs of hills of the biaxial state.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

SPHERE = mf.Sphere(16)


def series(name: str, *coefficients: float) -> mf.Interaction:
    """The potential sum_l c_l P_l, with its derivative."""
    potential = np.polynomial.legendre.Legendre(coefficients)
    return mf.Interaction(potential, name=name, derivative=potential.deriv())


TRIANGLES = mf.Transformer(series("-P_1 + 3 P_3", 0, -1, 0, 3), kappa=2.36)
BIAXIAL = mf.Transformer(series("0.26 P_2 + 0.432 P_4", 0, 0, 0.26, 0, 0.432), kappa=18.7)


def run(out: Path) -> list[Row]:
    """Find both states, draw them, compare the triangle with the end of a run."""
    skew = SPHERE.density(lambda x, y, z: 1 + 0.5 * (x**3 - 3 * x * y**2) + 0.2 * x * z + 0.1 * y)
    end = mf.solve(TRIANGLES, skew, (0, 600), rtol=1e-9).final
    free = mf.stationary(TRIANGLES, end, symmetry="none")
    guess = SPHERE.density(lambda x, y, z: 1 + 0.5 * (x**3 - 3 * x * y**2))
    triangle = mf.stationary(TRIANGLES, guess, symmetry="D3h")
    biaxial = mf.stationary(BIAXIAL, biaxial_guess(), symmetry="D2h")
    figure(triangle.density, biaxial.density).savefig(out / "off_axis.png")
    found = triangle.stability(6)
    apart = np.abs(second_moments(end) - second_moments(triangle.density)).max()
    small, middle, large = second_moments(biaxial.density)
    return [
        Row("free energy of the triangle without symmetry", free.free_energy, triangle.free_energy,
            1e-12),
        Row("second moments at the end of a run, against them", apart, 0.0, 1e-7),
        Row("rotations among its eigenvalues", int(found.neutral.sum()), 3, 0),
        Row("rate at which perturbations decay", found.gap, "none"),
        Row("second moments of the biaxial state", f"{small:.5f}, {middle:.5f}, {large:.5f}",
            "three"),
    ]  # fmt: skip


def biaxial_guess() -> mf.Density:
    """A density near the biaxial state, from moments of degree 2 and 4."""
    c = np.zeros(SPHERE.degrees.size, dtype=complex)
    moments = {(0, 0): 1, (2, 0): -0.131, (2, 2): 0.028, (4, 0): 0.058, (4, 2): -0.012,
               (4, 4): -0.077}  # fmt: skip
    for (l, m), value in moments.items():
        c[(SPHERE.degrees == l) & (SPHERE.orders == m)] = value
    return mf.Density(SPHERE, c)


def second_moments(density: mf.Density) -> np.ndarray:
    """Eigenvalues of int x x^T dmu."""
    masses, x = density.space.weights * density.values, density.space.points
    return np.linalg.eigvalsh((x * masses[:, None]).T @ x)


def figure(*densities: mf.Density):
    """Each density by longitude and height z."""
    titles = ("triangle, D3h", "biaxial, D2h")
    with theme.style():
        page = theme.figure(width=7.2, height=2.6)
        for i, (density, title) in enumerate(zip(densities, titles, strict=True), start=1):
            phi, z = np.linspace(-np.pi, np.pi, 181), np.linspace(-1, 1, 91)
            flat = np.sqrt(1 - z[:, None] ** 2)
            x = np.stack(
                np.broadcast_arrays(flat * np.cos(phi), flat * np.sin(phi), z[:, None]), axis=-1
            )
            values = density.space.at(density.coefficients, x)
            ax = page.add_subplot(1, 2, i)
            image = ax.pcolormesh(phi, z, values, shading="gouraud")
            page.colorbar(image, ax=ax, label="density")
            ax.set(title=title, xlabel="longitude", ylabel="z")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
