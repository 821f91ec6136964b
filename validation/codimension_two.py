"""Claim: special points of codimension two of phase diagrams solve their defining systems.

Active rotators on the circle under noise, with the moments z_n = E exp(i n theta),

    dz_n/dt = (-n^2/kappa + i n w) z_n + (n/2) sum_(k = 1, 2) (h_k z_(n-k) - h_k' z_(n+k)),

h_1 = c z_1 + b, h_2 = 2 m z_2, ' the conjugate, are F(x; w, kappa) in the real and imaginary parts
x of 16 moments; F is quadratic in x, with A = dF/dx and second derivative B. Compared with
`mf.phase_diagram` in the plane of w and kappa are solutions of

    cusp                A v = 0, A^T u = s u, |u| = |v| = 1, <u, B(v, v)> = 0 (and s = 0)
    Bogdanov-Takens     A v = 0, A g = v, |v| = 1, <v, g> = 0
    generalised Hopf    A q = i omega q and l_1 = 0, by bisection in kappa, l_1 for a quadratic F
    Hopf-fold           A v = 0 for one group, A q = i omega q for another one, whose frequency
                        is larger by 0.005, not coupled to the first

together with F = 0, by scipy, from states of `phase_diagram` rounded to three decimals. The cusp of
the noisy Kuramoto model in a field h is at h = 0, kappa = 2. With a phase lag a, attraction
sin(theta' - theta + a) and a second harmonic of strength m, the pair of the uniform state becomes
neutral at kappa = 2/cos a, and is a generalised Hopf point where the real part of
(m - e^(-ia)/2) e^(ia)/(2 cos a - 2 m + i sin a) is 0. Its waves z_n e^(i n Omega t) fold where
kappa(|z_1|) is least, by scipy on the moment equations. In the plane with kappa as the first
parameter and w as the second one the cusp and the Bogdanov-Takens point are the same.

    python validation/codimension_two.py [--quick]    # 50 s, 10 s quick

--quick leaves out generalised Hopf and Hopf-fold points, waves and exchanged axes. Asked: 1e-9.
Exit code 1 on failure.

Reference: Kuznetsov, Elements of Applied Bifurcation Theory (2004), chapters 8 and 10.
"""

import sys

import numpy as np
from _report import Report, command_line
from scipy.optimize import brentq, minimize_scalar, root

import meanfield as mf

MOMENTS = 16
SIZE = 2 * MOMENTS
CIRCLE = mf.Circle(12)
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
PULL, ATTRACTION, LAG, ASKED = 0.5, 2.0, 0.5, 1e-9


def rate(x, w, kappa, m):
    """F, (2 n,)."""
    z = np.concatenate([[x[0] - 1j * x[MOMENTS], 1.0], x[:MOMENTS] + 1j * x[MOMENTS:], [0.0, 0.0]])
    n = np.arange(1, MOMENTS + 1)
    change = (-(n**2) / kappa + 1j * n * w) * z[2:-2]
    for k, h in ((1, ATTRACTION * z[2] + PULL), (2, 2 * m * z[3])):
        ahead = z[2 + k : 2 + k + MOMENTS]
        change += n / 2 * (h * z[2 - k : 2 - k + MOMENTS] - np.conj(h) * ahead)
    return np.concatenate([change.real, change.imag])


def jacobian(x, *parameters):
    """A, exact to rounding: differences of a quadratic function."""
    unit = np.eye(SIZE)
    ends = [rate(x + e, *parameters) - rate(x - e, *parameters) for e in unit]
    return np.array(ends).T / 2


def curvature(x, one, other, *parameters):
    """B(one, other) for complex directions."""

    def along(u, v):
        f = [rate(x + a * u + b * v, *parameters) for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
        return (f[0] - f[1] - f[2] + f[3]) / 4

    real = along(one.real, other.real) - along(one.imag, other.imag)
    return real + 1j * (along(one.real, other.imag) + along(one.imag, other.real))


def solved(equations, start):
    """The solution of equations near a start."""
    found = root(equations, start, method="hybr", options={"xtol": 1e-14, "maxfev": 20000})
    return found.x


def null_vectors(x, *parameters):
    """Left and right singular vector of the least singular value of A."""
    left, _, right = np.linalg.svd(jacobian(x, *parameters))
    return left[:, -1], right[-1]


def start_at(plane, kind, point, slot=None):
    """State x of the nearest point of curves of a kind, rounded to three decimals."""
    best = min(
        ((abs(z[-1] - point.beta) + abs(np.exp(z[-2]) - point.kappa), line, z)
         for line in plane.loci.values() if line.kind == kind for z in line.points),
        key=lambda entry: entry[0],
    )  # fmt: skip
    density = best[1].basis.density(best[2][: best[1].size])
    z = np.array([moment_of(density, n, slot) for n in range(1, MOMENTS + 1)])
    return np.round(np.concatenate([z.real, z.imag]), 3)


def moment_of(density, n, slot):
    """E exp(i n theta) of a density, or of one group of an indexed density."""
    values = density.space.split(density.coefficients)[slot] if slot is not None else None
    series = density.coefficients if values is None else values
    return np.conj(series[n]) if n < len(series) else 0.0


def cusp(start, w, kappa):
    """(w, kappa) of the cusp."""
    u, v = null_vectors(start, w, kappa, 0.0)

    def equations(y):
        x, v, u = np.split(y[:-3], 3)
        parameters, slack = (y[-3], y[-2], 0.0), y[-1]
        a = jacobian(x, *parameters)
        bend = u @ curvature(x, v, v, *parameters).real
        ends = [v @ v - 1, u @ u - 1, bend]
        return np.concatenate([rate(x, *parameters), a @ v, a.T @ u - slack * u, ends])

    return solved(equations, np.concatenate([start, v, u, [w, kappa, 0.0]]))[-3:-1]


def bogdanov_takens(start, w, kappa):
    """(w, kappa) of the Bogdanov-Takens point."""
    _, v = null_vectors(start, w, kappa, 0.0)
    g = np.linalg.lstsq(jacobian(start, w, kappa, 0.0), v, rcond=1e-3)[0]

    def equations(y):
        x, v, g = np.split(y[:-2], 3)
        a = jacobian(x, y[-2], y[-1], 0.0)
        ends = [v @ v - 1, v @ g]
        return np.concatenate([rate(x, y[-2], y[-1], 0.0), a @ v, a @ g - v, ends])

    return solved(equations, np.concatenate([start, v, g - (v @ g) * v, [w, kappa]]))[-2:]


def hopf_equations(x, q, omega, w, kappa, m):
    """A q = i omega q, with q of norm 1 and <q, first> real, for q = (real, imaginary)."""
    a, (real, imaginary) = jacobian(x, w, kappa, m), np.split(q, 2)
    whole = a @ real + omega * imaginary, a @ imaginary - omega * real
    return [*whole, [q @ q - 1, real @ imaginary]]


def critical_pair(x, *parameters):
    """Frequency and eigenvector, as (real, imaginary) with orthogonal parts, of the pair."""
    values, vectors = np.linalg.eig(jacobian(x, *parameters))
    i = np.where(values.imag > 1e-3, values.real, -np.inf).argmax()
    q = vectors[:, i] * np.exp(-0.5j * np.angle(np.sum(vectors[:, i] ** 2)))
    return values[i].imag, np.concatenate([q.real, q.imag])


def generalised_hopf(start, w, kappa):
    """(w, kappa) of the generalised Hopf point."""
    omega, q = critical_pair(start, w, kappa, 1.5)

    def hopf(kappa):
        def equations(y):
            x, q, (omega, w) = y[:SIZE], y[SIZE:-2], y[-2:]
            ends = hopf_equations(x, q, omega, w, kappa, 1.5)
            return np.concatenate([rate(x, w, kappa, 1.5), *ends])

        return solved(equations, np.concatenate([start, q, [omega, w]]))

    def coefficient(kappa):
        y = hopf(kappa)
        x, q, (omega, w) = y[:SIZE], y[SIZE:-2], y[-2:]
        q = q[:SIZE] + 1j * q[SIZE:]
        a, parameters = jacobian(x, w, kappa, 1.5), (w, kappa, 1.5)
        values, left = np.linalg.eig(a.T)
        p = left[:, np.abs(values - 1j * omega).argmin()]
        mean = np.linalg.solve(a, curvature(x, q, q.conj(), *parameters))
        shifted = 2j * omega * np.eye(SIZE) - a
        double = np.linalg.solve(shifted, curvature(x, q, q, *parameters))
        total = curvature(x, q.conj(), double, *parameters)
        return float((p @ (total - 2 * curvature(x, q, mean, *parameters)) / (p @ q)).real)

    place = brentq(coefficient, kappa - 2e-3, kappa + 2e-3, xtol=1e-14)
    return hopf(place)[-1], place


def hopf_fold(first, second, w, kappa):
    """(w, kappa) of the Hopf-fold point of two groups."""
    _, v = null_vectors(first, w, kappa, 0.0)
    omega, q = critical_pair(second, w + 0.005, kappa, 0.0)

    def equations(y):
        x, v, other, q = y[:SIZE], y[SIZE : 2 * SIZE], y[2 * SIZE : 3 * SIZE], y[3 * SIZE : -3]
        omega, w, kappa = y[-3:]
        pair = hopf_equations(other, q, omega, w + 0.005, kappa, 0.0)
        states = rate(x, w, kappa, 0.0), rate(other, w + 0.005, kappa, 0.0)
        return np.concatenate([*states, jacobian(x, w, kappa, 0.0) @ v, [v @ v - 1], *pair])

    return solved(equations, np.concatenate([first, v, second, q, [omega, w, kappa]]))[-2:]


def rotators(w):
    """Active rotators."""
    field = mf.Field(lambda x: w * (x @ TURN.T) + np.array([PULL, 0.0]))
    return mf.Transformer(ATTRACTION * mf.Kuramoto() + field)


def two_harmonics(w):
    """Active rotators with the second harmonic, m = 1.5."""
    return rotators(w).replace(drift=rotators(w).drift + mf.CosineSeries([0.0, 0.0, 1.5]))


def two_groups(w):
    """Two groups of active rotators that do not see each other."""
    return rotators(w).replace(coupling=2 * np.eye(2), frequency=mf.OfIndex(1.0))


def in_a_field(h):
    """The noisy Kuramoto model in a field."""
    return mf.Transformer(mf.Kuramoto() + h * mf.Field(lambda x: np.eye(2)[0] * np.ones_like(x)))


def lagging(m):
    """Kuramoto's drift with a phase lag, and the second harmonic of strength m."""
    c, s = np.cos(LAG), np.sin(LAG)
    lag = mf.Attention(np.eye(2), np.eye(2), np.array([[c, -s], [s, c]]), 0.0)
    return mf.Transformer(lag + mf.CosineSeries([0.0, 0.0, m]))


def onset_of_waves():
    """The m of the generalised Hopf point, and kappa."""
    lag = np.exp(1j * LAG)

    def coefficient(m):
        return ((m - lag.conjugate() / 2) * lag / (2 * lag.real - 2 * m + 1j * lag.imag)).real

    return brentq(coefficient, 0.2, 0.6, xtol=1e-15), 2 / lag.real


def fold_of_waves(m, r, kappa):
    """The least kappa of a wave with |z_1| near r: in MOMENTS moments, z_1 = r."""
    n = np.arange(1, MOMENTS + 1)

    def equations(y, r):
        omega, kappa = y[-2:]
        z = np.concatenate([[r], y[: MOMENTS - 1] + 1j * y[MOMENTS - 1 : -2]])
        every = np.concatenate([[r, 1.0], z, [0.0, 0.0]])
        change = (-n / kappa - 1j * omega) * z
        for k, h in ((1, np.exp(1j * LAG) * r), (2, 2 * m * z[1])):
            ahead = every[1 + k + n]
            change += (h * every[1 - k + n] - np.conj(h) * ahead) / 2
        return np.concatenate([change.real, change.imag])

    start = np.concatenate([r ** (n[1:] ** 1.3), 0 * n[1:], [0.2, kappa]])
    return minimize_scalar(
        lambda r: root(equations, start, (r,), options={"xtol": 1e-14}).x[-1],
        bounds=(0.6 * r, 1.4 * r), options={"xatol": 1e-7},
    ).fun  # fmt: skip


def main() -> int:
    quick = command_line(__doc__).quick
    report = Report(["point", "of"], digits=12)

    def compare(name, found, place):
        for what, predicted, measured in zip(("w", "kappa"), place, found[:2], strict=True):
            report.compare(name, what, predicted=predicted, measured=measured, tolerance=ASKED)

    def plane_of(family, space, span, kappa, places=1):
        return mf.phase_diagram(family, space, span, kappa=kappa, places=places, progress=False)

    (point,) = plane_of(in_a_field, CIRCLE, (-0.1, 0.1), (1.5, 4.0)).cusps
    compare("cusp in a field", point, (0.0, 2.0))
    plane = plane_of(rotators, CIRCLE, (0.4, 0.44), (1.5, 1.8))
    for name, find, (point,) in (
        ("cusp", cusp, plane.cusps), ("Bogdanov-Takens", bogdanov_takens, plane.bogdanov_takens)
    ):  # fmt: skip
        near = np.round(point[:2], 3)
        compare(name, point, find(start_at(plane, "fold", point), *near))
    if quick:
        return report.verdict()
    turned = mf.phase_diagram(
        lambda kappa, w: rotators(w).replace(kappa=kappa), CIRCLE,
        vary={"kappa": (1.55, 1.7), "w": (0.4, 0.44)}, places=2, progress=False,
    )  # fmt: skip
    for name, (point,), (there,) in (
        ("cusp", turned.cusps, plane.cusps),
        ("Bogdanov-Takens", turned.bogdanov_takens, plane.bogdanov_takens),
    ):
        compare(f"{name}, axes exchanged", point[1::-1], there[:2])
    plane = plane_of(two_harmonics, CIRCLE, (1.2, 1.4), (0.8, 1.15))
    (point,) = plane.generalised_hopf
    start = start_at(plane, "Hopf", point)
    compare("generalised Hopf", point, generalised_hopf(start, *np.round(point[:2], 3)))
    plane = plane_of(lagging, CIRCLE, (0.4, 0.6), (1.8, 3.0), places=2)
    (point,) = plane.generalised_hopf
    compare("generalised Hopf of waves", point, onset_of_waves())
    for m in (0.5, 0.58):
        found, locus = plane.kappa("fold 1", m), plane.loci["fold 1"]
        z = min(locus.points, key=lambda z: abs(z[-1] - m))
        r = abs(locus.basis.density(z[: locus.size]).moment(1))
        predicted = fold_of_waves(m, r, found)
        report.compare("fold of waves", f"kappa at {m}", predicted=predicted, measured=found,
                       tolerance=ASKED)  # fmt: skip
    groups = CIRCLE.indexed(lambda s, a: 1 + 0 * (a + s), mf.Classes([0.0, 0.005])).space
    plane = plane_of(two_groups, groups, (0.4305, 0.4325), (1.5, 1.66))
    (point,) = plane.hopf_folds
    starts = [start_at(plane, "fold", point, slot) for slot in (0, 1)]
    compare("Hopf-fold", point, hopf_fold(*starts, *np.round(point[:2], 4)))
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
