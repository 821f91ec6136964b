"""Claim: stationary states and growth rates of all kinds of models agree with independent code.

Eight models whose states have no closed form: a zonal drift with Z of its own, Kuramoto with a
field and a feed-forward map, two heads of attention with matrices, a sum with a reaction,
Lorentzian and normal frequencies with one density each, and on S^2 attention with matrices, and
with a V that turns about e_3, whose state turns. The independent code knows nothing of meanfield
but one starting guess. On the circle it is collocation: the values u_j of a density at N
equidistant angles solve

    D^2 u/kappa - D(u v[u]) + ... = 0,    mean of u = 1,

with the dense matrix D of Fourier differentiation and v by sums over all pairs of angles. On S^2 it
is the weak form in real harmonics of scipy, by sums over all pairs of points of a product grid.
Newton's method has Jacobians by differences of fourth order, and the eigenvalues of these are the
growth rates. Densities agree to 1e-9 at all points, the four leading growth rates to 1e-7, and
the degree of truncation of meanfield is between 12 and 72. The speed of the state that turns is an
unknown, and agrees to 1e-9; after the time 2 `mf.solve` has turned this state by twice the speed.

    python validation/stationary_states_by_collocation.py [--quick]    # 60 s, 6 s quick

--quick leaves out S^2. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line
from scipy.linalg import lstsq, null_space
from scipy.special import sph_harm_y

import meanfield as mf

ANGLES = 72  # collocation points of the circle
STEP = 1e-3  # of differences for Jacobians
NEWTON = 12  # steps of Newton's method
RATES = 4  # growth rates that are compared
DEGREE = 12  # of harmonics on S^2


# The independent code -----------------------------------------------------------------------------


def fourier_derivative(n):
    """Dense matrix of the derivative of trigonometric polynomials at n (even) angles."""
    i = np.arange(n)
    apart = (i[:, None] - i) % n
    signs, angles = (-1.0) ** apart, np.pi * apart / n
    with np.errstate(divide="ignore"):
        return np.where(apart == 0, 0.0, signs / (2 * np.tan(angles)))


def differenced(f, u):
    """Jacobian of f at u by central differences of fourth order."""
    columns = []
    for i in range(u.size):
        unit = np.zeros(u.size)
        unit[i] = STEP
        near, far = f(u + unit) - f(u - unit), f(u + 2 * unit) - f(u - 2 * unit)
        columns.append((8 * near - far) / (12 * STEP))
    return np.array(columns).T


def newton(f, u, masses):
    """Zero of f with masses @ u = 1, by least squares where rotations leave a kernel."""
    for _ in range(NEWTON):
        matrix = np.vstack([differenced(f, u), masses])
        right = np.append(f(u), masses @ u - 1)
        step = lstsq(matrix, right, cond=1e-10)[0]
        u = u - step
        if np.abs(step).max() < 1e-12:
            break
    return u


def leading(f, u, masses, rotations):
    """Real parts of the leading eigenvalues for changes of mass 0, without those of rotations."""
    inside = null_space(masses) if len(masses) else np.eye(u.size)
    values = np.linalg.eigvals(inside.T @ differenced(f, u) @ inside)
    zeros = np.argsort(np.abs(values))[:rotations]
    return np.sort(np.delete(values, zeros).real)[::-1][:RATES]


class OnCircle:
    """Collocation on the circle: theta, unit vectors x, tangents e, and D."""

    def __init__(self, n=ANGLES):
        self.n, self.theta = n, 2 * np.pi * np.arange(n) / n
        self.x = np.stack([np.cos(self.theta), np.sin(self.theta)], 1)
        self.e = np.stack([-np.sin(self.theta), np.cos(self.theta)], 1)
        self.D = fourier_derivative(n)
        k = np.fft.fftfreq(n, 1 / n)
        waves = np.exp(1j * np.outer(self.theta, k))
        self.D2 = (waves * -(k**2) @ np.linalg.inv(waves)).real
        self.damping = (waves * -np.abs(k) @ np.linalg.inv(waves)).real
        self.cosines = self.x @ self.x.T

    def attention(self, u, logits, V):
        """Tangential part of sum_j e^logits_ij V x_j u_j / sum_j e^logits_ij u_j."""
        weights = np.exp(logits - logits.max()) * u
        return (self.e * ((weights / weights.sum(1, keepdims=True)) @ self.x @ V.T)).sum(1)

    def pairwise(self, u, slope):
        """Tangential part of mean_j slope(<x_i, x_j>) x_j u_j."""
        return (self.e * ((slope(self.cosines) * u) @ self.x / self.n)).sum(1)


C = OnCircle()
HEADS = [
    (np.array([[1.0, 0.3], [0.0, 0.8]]), np.eye(2), np.array([[1.0, 0.1], [0.1, 0.7]])),
    (np.array([[0.5, 0.0], [0.2, 1.0]]), np.diag([1.0, -0.5]), np.array([[0.3, -0.2], [0.1, 0.4]])),
]


class OwnZ(mf.ZonalDrift):
    """W' = 1 + b t, Z = 1 + t^2/2.

    Parameters
    ----------
    b : float
        Slope of W'.
    """

    b: float
    normalised = True

    def slope(self, t):
        return 1 + self.b * t

    def weight(self, t):
        return 1 + t**2 / 2


def east(x):
    return np.eye(x.shape[-1])[0] * np.ones_like(x)


def skew(x):
    return 0.2 * np.stack([x[..., 1], np.tanh(x[..., 0])], -1)


def transport(u, v, kappa):
    return C.D2 @ u / kappa - C.D @ (u * v)


def own_z(u):
    v = C.pairwise(u, lambda t: 1 + 0.8 * t) / ((1 + C.cosines**2 / 2) @ u / C.n)
    return transport(u, v, 6.0)


def in_a_field(u):
    v = C.pairwise(u, np.ones_like) + (C.e * (0.3 * east(C.x) + skew(C.x))).sum(1)
    return transport(u, v, 3.0)


def two_heads(u):
    v = sum(C.attention(u, 2.0 * (C.x @ Q.T) @ (C.x @ K.T).T, V) for Q, K, V in HEADS)
    return transport(u, v, 4.0)


def with_reaction(u):
    """1.5 USA(1.5) + 0.5 Kuramoto and the reaction 0.3: Phi = 1.5 e^(1.5 t)/1.5 + 0.5 t."""
    v = C.pairwise(u, lambda t: 1.5 * np.exp(1.5 * t) + 0.5)
    phi = (np.exp(1.5 * C.cosines) + 0.5 * C.cosines) @ u / C.n
    return transport(u, v, 1.5) + 0.3 * u * (phi - np.mean(phi * u))


def lorentzian(u):
    """Moments of order k are damped by the width, times k."""
    v = 2 * C.pairwise(u, np.ones_like)
    return transport(u, v, 4.0) + 0.2 * C.damping @ u


FREQUENCIES, SHARES = np.polynomial.hermite_e.hermegauss(5)
FREQUENCIES, SHARES = 0.3 * FREQUENCIES, SHARES / SHARES.sum()
FEW = OnCircle(40)


def frequencies(u):
    """One density for each frequency, moved by the mean of all."""
    each = u.reshape(5, FEW.n)
    v = 2 * FEW.pairwise(SHARES @ each, np.ones_like)
    speeds = v + FREQUENCIES[:, None]
    return (each @ FEW.D2.T / 1.5 - (each * speeds) @ FEW.D.T).ravel()


class OnSphere:
    """Weak form on S^2 in real harmonics up to a degree, on a product grid."""

    def __init__(self, degree):
        z, w = np.polynomial.legendre.leggauss(3 * degree // 2 + 2)
        count = 3 * degree + 2
        theta, phi = (a.ravel() for a in np.meshgrid(
            np.arccos(z), 2 * np.pi * np.arange(count) / count, indexing="ij"))  # fmt: skip
        self.weights = np.repeat(w / (2 * count), count)
        self.x = np.stack(
            [np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], 1
        )
        south = np.stack(
            [np.cos(theta) * np.cos(phi), np.cos(theta) * np.sin(phi), -np.sin(theta)], 1
        )
        east = np.stack([-np.sin(phi), np.cos(phi), 0 * phi], 1)
        self.frame, values, slopes, degrees = np.array([south, east]), [], [], []
        for l in range(1, degree + 1):
            for m in range(l + 1):
                y, dy = sph_harm_y(l, m, theta, phi, diff_n=1)
                size = np.sqrt(4 * np.pi * (2 if m else 1))
                for part in (np.real, np.imag)[: 1 + (m > 0)]:
                    values.append(size * part(y))
                    slopes.append(
                        size * np.array([part(dy[..., 0]), part(dy[..., 1]) / np.sin(theta)])
                    )
                    degrees.append(l)
        self.values, self.slopes = np.array(values), np.array(slopes)
        self.eigenvalues = np.array(degrees) * (np.array(degrees) + 1.0)
        self.by_longitude = (self.values * self.weights * np.sin(theta)) @ self.slopes[:, 1].T

    def rate(self, logits, V, field, kappa):
        """The rate of change of the coefficients c of u = 1 + sum c_i p_i.

        In a frame that turns about e_3 with a speed.
        """
        kernel = np.exp(logits - logits.max()) * self.weights

        def f(c, speed=0.0):
            u = 1 + c @ self.values
            pulled = kernel @ (np.column_stack([self.x @ V.T, np.ones(len(self.x))]) * u[:, None])
            v = pulled[:, :3] / pulled[:, 3:] + field
            tangential = (self.frame * v).sum(2)
            along = np.einsum("icm,cm->im", self.slopes, tangential * (u * self.weights))
            return along.sum(1) - self.eigenvalues * c / kappa + speed * self.by_longitude @ c

        return f


# Comparisons --------------------------------------------------------------------------------------


def compare(report, case, model, start, f, grid, rotations=0):
    """A model of meanfield on the circle with collocation."""
    state = mf.stationary(model, mf.solve(model, start, (0, 30), rtol=1e-6, progress=False).final)
    indexed = hasattr(state.density, "slices")
    each = state.density.slices if indexed else state.density
    values = each.at(grid.x).ravel()
    count = values.size // grid.n
    masses = np.kron(np.eye(count), np.full(grid.n, 1 / grid.n))
    u = newton(f, values * (1 + 0.01 * np.cos(np.tile(grid.theta, count) - 1)), masses)
    if rotations:  # the solution nearest to the state, turned by at most some degrees
        moment = np.exp(1j * np.tile(grid.theta, count))
        turn = np.angle(np.mean(moment * u) / np.mean(moment * values))
        turned = grid.x @ np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        values = each.at(turned).ravel()
    report.compare(case, f"density, degree {state.density.space.degree}", predicted=0.0,
                   measured=np.abs(u - values).max(), tolerance=1e-9)  # fmt: skip
    rates = state.stability(RATES + rotations).eigenvalues.real[rotations:]
    for i, rate in enumerate(leading(f, u, masses, rotations)):
        report.compare(case, f"growth rate {i + 1}", predicted=rate, measured=rates[i],
                       tolerance=1e-7)  # fmt: skip


def on_the_circle(report):
    space = mf.Circle(32)
    start = space.von_mises(0.3, 2.0)
    compare(report, "Z of its own", mf.Transformer(OwnZ(0.8), 6.0), start, own_z, C, rotations=1)
    field = mf.Transformer(mf.Kuramoto() + 0.3 * mf.Field(east), 3.0, feedforward=skew)
    compare(report, "field and feed-forward", field, start, in_a_field, C)
    Q, K, V = (np.array(matrices) for matrices in zip(*HEADS, strict=True))
    attention = mf.Transformer(mf.Attention(Q, K, V, 2.0), 4.0)
    compare(report, "two heads", attention, start, two_heads, C)
    reaction = mf.Transformer(1.5 * mf.USA(1.5) + 0.5 * mf.Kuramoto(), 1.5, reaction=0.3)
    compare(report, "sum and reaction", reaction, start, with_reaction, C, rotations=1)
    turning = mf.Transformer(2 * mf.Kuramoto(), 4.0, frequency=mf.Lorentzian(0.2))
    compare(report, "Lorentzian", turning, start, lorentzian, C, rotations=1)
    index = mf.NormalIndex(0.3, 5)
    begin = mf.Circle(16).indexed(lambda s, a: 1 + 0.8 * np.cos(a - 0.1) + 0 * s, index)
    normal = mf.Transformer(2 * mf.Kuramoto(), 1.5, frequency=mf.OfIndex())
    compare(report, "normal frequencies", normal, begin, frequencies, FEW, rotations=1)


def on_the_sphere(report, case, Q, V, field, kappa, start):
    """A state of attention in a field on S^2, which turns if V does, with the weak form."""
    drift = mf.Attention(Q, np.eye(3), V, 1.0) + mf.Field(lambda x: field + 0 * x)
    model, turns = mf.Transformer(drift, kappa), int(V[1, 0] != 0)
    if turns:
        start = mf.solve(model, start, (0, 40), rtol=1e-6, progress=False).final
    state, grid = mf.stationary(model, start), OnSphere(DEGREE)
    f = grid.rate(grid.x @ Q.T @ grid.x.T, V, field, kappa)
    guess = 0.9 * grid.values @ (grid.weights * (state.density.at(grid.x) - 1))
    unknown = np.append(guess, turns * [0.9 * state.speed])
    free = np.zeros((0, unknown.size))  # coefficients have no constant: the mass is 1
    c, *speed = np.split(newton(lambda z: f(z[: guess.size], z[guess.size :].sum()), unknown, free),
                         [guess.size])  # fmt: skip
    speed = float(np.sum(speed))
    u, density = 1 + c @ grid.values, state.density
    if turns:
        moments = [grid.weights @ (w * (grid.x @ [1, 1j, 0])) for w in (u, density.at(grid.x))]
        density = density.rotate(about_the_axis(np.angle(moments[0] / moments[1])))
        report.compare(case, "speed", predicted=speed, measured=state.speed, tolerance=1e-9)
        final = mf.solve(model, density, (0, 2), rtol=1e-11, progress=False).final
        report.compare(case, "solve from 0 to 2", predicted=0.0, tolerance=1e-9, measured=np.abs(
            final.at(grid.x) - density.rotate(about_the_axis(2 * speed)).at(grid.x)
        ).max())  # fmt: skip
    report.compare(case, f"density, degree {density.space.degree}", predicted=0.0,
                   measured=np.abs(u - density.at(grid.x)).max(), tolerance=1e-9)  # fmt: skip
    rates = state.stability(RATES + turns).eigenvalues.real[turns:]
    every = leading(lambda z: f(z, speed), c, np.zeros((0, c.size)), turns)
    for i, rate in enumerate(every):
        report.compare(case, f"growth rate {i + 1}", predicted=rate, measured=rates[i],
                       tolerance=1e-7)  # fmt: skip


def about_the_axis(angle):
    """Rotation about e_3."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def main() -> int:
    options = command_line(__doc__, "the circle alone")
    report = Report(["model", "quantity"])
    on_the_circle(report)
    if not options.quick:
        Q, sphere = np.array([[1.0, 0.2, 0], [0, 0.8, 0], [0.1, 0, 0.6]]), mf.Sphere(DEGREE)
        on_the_sphere(report, "S^2, matrices and field", Q, np.diag([1.0, 0.9, 0.7]),
                      np.array([0.4, 0.0, 0.0]), 1.5, sphere.uniform())  # fmt: skip
        V = about_the_axis(0.5)
        V[2, 2] = 0.6
        on_the_sphere(report, "S^2, V turns", np.diag([1.0, 1.0, 0.7]), V,
                      np.array([0.0, 0.0, 0.1]), 4.3,
                      sphere.density(lambda x, y, z: np.exp(x)))  # fmt: skip
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
