"""Claim: kernels of two points move densities as dense quadrature does, on the circle and S^2.

    v(x) = P_x int k(x, y) dmu(y) / int z(x, y) dmu(y)

with a kernel that turns what it sees, k = e^(2 <x, y>) R y, and one with x and y on unequal footing
and weights of its own.

1. On the circle with noise: a pseudospectral code of 96 nodes, k as a full matrix, SciPy's DOP853.
2. On S^2 without noise: the nodes of a product rule, moved by DOP853 with dense sums.
3. Zonal kernels as functions of two points are equal to USA and SA.
4. On S^2 matrices of 35 million entries and more have low rank by adaptive cross approximation:
   velocities against sums over a finer grid; ranks are printed.

    python validation/pair_kernels.py [--quick]    # 30 s, 15 s quick
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp
from scipy.special import roots_legendre

import meanfield as mf
from meanfield.engines.density_heads import GridDensity
from meanfield.engines.fields import fields_of

ANGLE = 0.5
KAPPA = 4.0


def turned(y):
    """R y, a rotation of the first two coordinates."""
    cosine, sine = np.cos(ANGLE), np.sin(ANGLE)
    first = cosine * y[..., 0] - sine * y[..., 1]
    second = sine * y[..., 0] + cosine * y[..., 1]
    return np.stack([first, second, *np.moveaxis(y, -1, 0)[2:]], axis=-1)


def of_rotation(x, y):
    return np.exp(2 * (x * y).sum(axis=-1, keepdims=True)) * turned(y)


def unequal(x, y):
    pull = np.exp(x[..., :1] * y[..., 1:2] + 0.5 * y[..., :1])
    return pull * y + 0.4 * x[..., 1:2] * y[..., :1] * x[..., ::-1]


def positive(x, y):
    return 1.5 + x[..., 0] * y[..., 1]


FUNCTIONS = {"rotation": (of_rotation, None), "unequal": (unequal, positive)}
KERNELS = {name: mf.PairKernel(k, weight=z) for name, (k, z) in FUNCTIONS.items()}


def start(x):
    """Values of the density at the start."""
    return 1 + 0.4 * x[..., 1] + 0.3 * x[..., 0] * x[..., 1]


def density(space) -> mf.Density:
    return mf.Density(space, space.to_coefficients(start(space.points)))


def velocity(name: str, x, y, masses) -> np.ndarray:
    """Sums of NumPy over points y, projected at x."""
    k, z = FUNCTIONS[name]
    shape = (len(x), *y.shape)
    total = np.einsum("j,ijd->id", masses, np.broadcast_to(k(x[:, None], y[None]), shape))
    if z is not None:
        total /= (z(x[:, None], y[None]) @ masses)[:, None]
    return total - (total * x).sum(axis=1, keepdims=True) * x


def check_circle(report: Report) -> None:
    """Noise and drift in values at 96 nodes."""
    n = 96
    theta = 2 * np.pi * np.arange(n) / n
    x = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    tangent = np.stack([-np.sin(theta), np.cos(theta)], axis=-1)
    modes = np.fft.fftfreq(n, 1 / n)

    for name, drift in KERNELS.items():

        def rates(_t, mu, name=name):
            speed = (velocity(name, x, x, mu / n) * tangent).sum(axis=1)
            flux = -1j * modes * np.fft.fft(mu * speed)
            return np.fft.ifft(flux - modes**2 / KAPPA * np.fft.fft(mu)).real

        options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}
        exact = solve_ivp(rates, (0, 1), start(x), **options).y[:, -1]
        model = mf.Transformer(drift, KAPPA)
        run = successful(mf.solve(model, density(mf.Circle(24)), (0, 1), rtol=1e-11))
        c = run.final.coefficients[1:9]
        moments = [np.mean(exact * np.exp(-1j * k * theta)) for k in range(1, 9)]
        error = np.abs(c - moments).max()
        report.compare("circle", name, predicted=0, measured=error, tolerance=1e-9)


def check_sphere(report: Report) -> None:
    """A product rule of 24 x 48 nodes, for a short time in which its images integrate well."""
    heights, weights = roots_legendre(24)
    phi = 2 * np.pi * np.arange(48) / 48
    ring = np.sqrt(1 - heights**2)
    x = np.stack(
        [np.outer(ring, np.cos(phi)), np.outer(ring, np.sin(phi)), np.outer(heights, np.ones(48))],
        axis=-1,
    ).reshape(-1, 3)
    masses = np.repeat(weights / 2, 48) / 48 * start(x)
    for name, drift in KERNELS.items():

        def rates(_t, y, name=name):
            points = y.reshape(-1, 3)
            points = points / np.linalg.norm(points, axis=1, keepdims=True)
            return velocity(name, points, points, masses).ravel()

        end = 0.1
        options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}
        moved = solve_ivp(rates, (0, end), x.ravel(), **options).y[:, -1].reshape(-1, 3)
        model, first = mf.Transformer(drift), density(mf.Sphere(12))
        run = successful(mf.solve(model, first, (0, end), rtol=1e-10))
        final = run.final
        for what, f in (("x", lambda y: y), ("x^2", lambda y: y**2)):
            error = np.abs(final.expect(f) - masses @ f(moved)).max()
            report.compare("S^2", f"{name}, {what}", predicted=0, measured=error, tolerance=1e-9)


def check_zonal(report: Report) -> None:
    """USA and SA, of densities on the circle."""
    weight = lambda x, y: np.exp(2 * (x * y).sum(axis=-1))  # noqa: E731
    kernel = lambda x, y: weight(x, y)[..., None] * y  # noqa: E731
    pairs = {
        "USA": (mf.PairKernel(kernel), mf.USA(2.0)),
        "SA": (mf.PairKernel(kernel, weight=weight), mf.SA(2.0)),
    }
    for name, drifts in pairs.items():
        models, first = [mf.Transformer(drift, KAPPA) for drift in drifts], density(mf.Circle(24))
        one, two = (successful(mf.solve(m, first, (0, 1), rtol=1e-10)) for m in models)
        error = np.abs(one.final.coefficients[:8] - two.final.coefficients[:8]).max()
        report.compare("zonal", name, predicted=0, measured=error, tolerance=1e-10)


def check_low_rank(report: Report, degree: int) -> None:
    """Velocities on a grid of S^2 at 50 of its points."""
    space = mf.Sphere(degree)
    mu = density(space)
    fine = space.with_degree(3 * degree // 2)
    masses = fine.weights * fine.to_values(space.resample(mu.coefficients, fine.degree))
    for name, drift in KERNELS.items():
        ((_, field),) = fields_of(drift, space)
        found = field.attention(0.0, GridDensity(space, mu.coefficients, mu.values))
        few = slice(0, None, len(space.points) // 50)
        x = space.points[few]
        tangential = found[few] - (found[few] * x).sum(axis=1, keepdims=True) * x
        error = np.abs(tangential - velocity(name, x, fine.points, masses)).max()
        rank, shape = field.kernel.rank, field.kernel.shape
        label = f"{name}, rank {rank} of {shape[0]} x {shape[1]}"
        report.compare("low rank", label, predicted=0, measured=error, tolerance=1e-9)


def main() -> int:
    quick = command_line(__doc__, "a smaller grid of low rank").quick
    report = Report(["what", "case"])
    check_circle(report)
    check_zonal(report)
    check_sphere(report)
    check_low_rank(report, 24 if quick else 32)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
