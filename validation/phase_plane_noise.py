"""Claim: lines in the plane of beta and kappa under other noises are where they are said to be.

References are two computations of their own, on the circle:

    Galerkin    complex Fourier coefficients of (s (s mu)')' = kappa (mu v[mu])', s^2 a
                trigonometric polynomial, so that the matrix of L is exact; eigenvalues by numpy.
    Reduction   states that are even in theta have no flux: mu = exp(kappa G)/(s Z), G' = v/s^2.
                With f the cosines this is an exponential family, c = E f, whose derivatives are
                cumulants. On the reduced equation g(x) = 0 (Lyapunov and Schmidt) folds are
                g = g_x = 0, cusps g = g_x = g_xx = 0, tricritical points g_x = g_xxx = 0.

1. Kuramoto times beta, Sigma = diag(1.3, 0.7): beta kappa is 2.084202557 and 1.785096547 on the two
   onset lines, by the quadrature of `phase_diagrams_noise.py`: 1e-9.
2. USA, the same noise: onset lines, beta = 1 to 4, against Galerkin: 1e-9. The gap at beta = 3 and
   4 (onset to Hopf point, onset to fold) against Galerkin, the reduction and `branches`: 1e-8.
3. Tricritical points of both onsets, and the cusp under the scale 1 + 0.02 cos theta, against the
   reduction: 1e-8.
4. Nowhere between beta = 1 and 4 are several states stable under diag(1.3, 0.7), as in `branches`
   at beta = 2.56 and 3.95, where strips of two were once counted.
5. S^2, diag(1.2, 1, 0.8), Kuramoto times beta: beta kappa is that of `branches`: 1e-8.

    python validation/phase_plane_noise.py [--quick]    # 60 s, 8 s quick

--quick ends at beta = 3, and leaves out the odd scale, `branches` and the sphere. Exit code 1 on
failure.
"""

import sys

import numpy as np
from _report import Report, command_line
from phase_diagrams_noise import exact_onset, stretched
from scipy.linalg import toeplitz
from scipy.optimize import brentq, fsolve
from scipy.special import iv

import meanfield as mf

CIRCLE = mf.Circle(32)
E, A = 0.3, 0.02
UNEVEN = stretched(1 + E, 1 - E)
AXES = {"axis 1": E, "axis 2": -E}  # theta along the axis: s^2 = 1 - e cos 2 theta


class ScaledKuramoto(mf.ZonalDrift):
    """W' = beta: Kuramoto's drift times beta.

    Parameters
    ----------
    beta : float or array
        Strength.
    """

    beta: float

    def slope(self, t):
        return self.beta * np.ones_like(t)


def main() -> int:
    quick = command_line(__doc__, "without what takes long").quick
    report = Report(["claim", "case"], digits=10)
    kuramoto(report)
    span, places = ((1.0, 3.0), 2) if quick else ((1.0, 4.0), 4)
    plane = mf.phase_diagram(mf.USA, CIRCLE, span, noise=UNEVEN, places=places, progress=False)
    onsets(report, plane, [beta for beta in (1.0, 1.7, 2.3, 2.9, 3.5, 4.0) if beta <= span[1]])
    gaps(report, plane, span[1:] if quick else (3.0, 4.0))
    corners(report, plane, list(AXES)[: 1 if quick else 2])
    counts(report, plane, quick)
    if not quick:
        cusp(report)
        sphere(report)
    return report.verdict()


class Galerkin:
    """USA under Sigma = diag(1 + e, 1 - e), in the coefficients of e^{ik theta}, 0 < |k| <= K.

    Parameters
    ----------
    beta : float
    e : float
    most : int
        K.
    """

    def __init__(self, beta: float, e: float, most: int = 48):
        self.k = np.arange(-most, most + 1)
        n = len(self.k)
        row = np.zeros(n)
        row[0], row[2] = 1.0, -e / 2
        square, derivative = 1j * self.k[:, None], np.diag(1j * self.k)
        slope = toeplitz(row * 1j * np.arange(n), -row * 1j * np.arange(n))  # of s^2
        self.diffusion = square * (toeplitz(row) @ derivative + slope / 2)
        self.pull = 1j * self.k * iv(self.k, beta) / beta
        self.inner = self.k != 0

    def _product(self, c: np.ndarray) -> np.ndarray:
        """The matrix of multiplication by a function."""
        most = len(self.k) // 2
        wide = np.concatenate([np.zeros(most), c, np.zeros(most)])
        return wide[2 * most + self.k[:, None] - self.k]

    def operator(self, c: np.ndarray, kappa: float) -> np.ndarray:
        """The linearisation about a density, times kappa."""
        flow = self._product(self.pull * c) + self._product(c) * self.pull
        whole = self.diffusion - kappa * 1j * self.k[:, None] * flow
        return whole[np.ix_(self.inner, self.inner)]

    def state(self, c: np.ndarray, kappa: float) -> np.ndarray:
        """Newton's method from a density near the state."""
        c = c.copy()
        for _ in range(30):
            flux = self._product(self.pull * c) @ c
            residual = (self.diffusion @ c - kappa * 1j * self.k * flux)[self.inner]
            change = np.linalg.solve(self.operator(c, kappa), residual)
            c[self.inner] -= change
            if np.abs(change).max() < 1e-13:
                return c
        sys.exit(f"Newton's method did not converge at kappa = {kappa}.")

    def uniform(self) -> np.ndarray:
        return np.where(self.inner, 0, 1).astype(complex)

    def started(self, c: np.ndarray) -> np.ndarray:
        """From the coefficients of a real density, k >= 0."""
        half = np.zeros(len(self.k) // 2 + 1, dtype=complex)
        count = min(len(c), len(half))
        half[:count] = c[:count]
        return np.concatenate([half[:0:-1].conj(), half])

    def onset(self, near: float, sine: bool) -> float:
        """Where the state without order becomes unstable along cos (or sin) theta."""

        def rate(kappa: float) -> float:
            operator = self.operator(self.state(self.uniform(), kappa), kappa)
            odd = self.k[self.inner] % 2 != 0  # perturbations; among them, even and odd in theta
            block = operator[np.ix_(odd, odd)]
            half = len(block) // 2
            mirrored = block[half:, :half][:, ::-1]
            part = block[half:, half:] + (-1 if sine else 1) * mirrored
            return float(np.linalg.eigvals(part).real.max())

        return float(brentq(rate, 0.97 * near, 1.03 * near, xtol=1e-13))

    def hopf(self, state: np.ndarray, kappa: float, width: float) -> float:
        """Where the pair of eigenvalues of a state near this one crosses the axis."""

        def rate(value: float) -> float:
            values = np.linalg.eigvals(self.operator(self.state(state, value), value))
            turning = values[np.abs(values.imag) > 1e-3]
            return float(turning.real.max())

        return float(brentq(rate, kappa - width, kappa + width, xtol=1e-13))


class Reduction:
    """USA among densities that are even in theta, c = E cos k theta, and its reduced equation.

    Parameters
    ----------
    square : callable
        s^2 of theta.
    beta, kappa : float
    most : int
        Largest k.
    """

    def __init__(self, square, beta: float, kappa: float, most: int = 48):
        theta = 2 * np.pi * np.arange(512) / 512
        k = np.arange(1, most + 1)
        self.square, self.kappa = square(theta), kappa
        self.waves = np.cos(k[:, None] * theta)
        slopes = -2 * (k * iv(k, beta) / beta)[:, None] * np.sin(k[:, None] * theta) / self.square
        modes = np.fft.rfft(slopes)
        modes[:, 1:] /= 1j * np.arange(1, 257)
        modes[:, 0] = 0.0
        self.levels = kappa * np.fft.irfft(modes)  # kappa G of one coefficient

    def density(self, c: np.ndarray) -> np.ndarray:
        exponent = c @ self.levels
        mu = np.exp(exponent - exponent.max()) / np.sqrt(self.square)
        return mu / mu.sum()

    def expansion(self, x: float, c: np.ndarray) -> np.ndarray:
        """g and its first three derivatives at c_1 = x: all of c = E f but the first component."""
        n, g = len(c), 0.0
        whole, one = np.zeros((n + 1, n + 1)), np.eye(len(c))[0]
        whole[:n, n], whole[n, :n] = -one, one
        for _ in range(50):  # c - E f = (g, 0, 0, ...), c_1 = x
            mu = self.density(c)
            f = self.waves - (self.waves @ mu)[:, None]
            levels = self.levels - (self.levels @ mu)[:, None]
            whole[:n, :n] = np.eye(n) - (f * mu) @ levels.T
            residual = np.append(c - self.waves @ mu - g * one, c[0] - x)
            change = np.linalg.solve(whole, residual)
            c, g = c - change[:n], g - change[n]
            if np.abs(change).max() < 1e-14:
                break
        first = np.linalg.solve(whole, np.append(np.zeros(n), 1.0))
        h = first[:n] @ levels
        second = np.linalg.solve(whole, np.append((f * mu) @ h**2, 0.0))
        h2 = second[:n] @ levels
        fourth = (f * mu) @ h**3 - 3 * (mu @ h**2) * ((f * mu) @ h)
        third = np.linalg.solve(whole, np.append(fourth + 3 * (f * mu) @ (h * h2), 0.0))
        return np.array([g, first[n], second[n], third[n]])


def even(e: float):
    return lambda theta: 1 - e * np.cos(2 * theta)


def odd(theta: np.ndarray) -> np.ndarray:
    return (1 + A * np.cos(theta)) ** 2


def reduced(square, beta: float, kappa: float, x: float) -> np.ndarray:
    """g, g_x, g_xx, g_xxx, with x the mean of cos theta: found from a tilted density."""
    family = Reduction(square, beta, kappa)
    k = np.arange(1, len(family.waves) + 1)
    strength = float(brentq(lambda q: iv(1, q) / iv(0, q) - x, 0, 50)) if x > 0 else 0.0
    start = iv(k, strength) / iv(0, strength)
    return family.expansion(x, start)


def kuramoto(report: Report) -> None:
    plane = mf.phase_diagram(
        ScaledKuramoto, CIRCLE, (1.0, 1.2), noise=UNEVEN, places=1, progress=False
    )
    for name, axis in (("onset 1", "axis 2"), ("onset 2", "axis 1")):
        for beta in (1.0, 1.07, 1.2):
            report.compare("Kuramoto", f"beta kappa, {axis}, beta = {beta}",
                           predicted=exact_onset(AXES[axis]),
                           measured=beta * plane.kappa(name, beta), tolerance=1e-9)  # fmt: skip


def onsets(report: Report, plane: mf.NoisePhaseDiagram, betas: list[float]) -> None:
    for beta in betas:
        for name, sine in (("onset 1", True), ("onset 2", False)):
            kappa = plane.kappa(name, beta)
            report.compare("onset of USA", f"{name}, beta = {beta}",
                           predicted=Galerkin(beta, E).onset(kappa, sine), measured=kappa,
                           tolerance=1e-9)  # fmt: skip


def gaps(report: Report, plane: mf.NoisePhaseDiagram, betas: tuple[float, ...]) -> None:
    """From the onset to the Hopf point of oblique order, or to the fold of order along axis 2."""
    for beta in betas:
        ((_, last, first),) = (row for row in plane.stable_counts(beta) if row[0] == 0)
        onset = Galerkin(beta, E).onset(plane.kappa("onset 2", beta), sine=False)
        report.compare("gap", f"begins, beta = {beta:g}", predicted=onset, measured=last,
                       tolerance=1e-9)  # fmt: skip
        if beta == 3:
            hopf(report, plane, first)
        else:
            fold(report, plane, first)


def hopf(report: Report, plane: mf.NoisePhaseDiagram, first: float) -> None:
    line = next(line for name, line in plane.loci.items() if plane.kappa(name, 3.0) == first)
    z = line.points[np.abs(line.points[:, -1] - 3.0).argmin()]
    near = line.basis.density(line.at_value(z, 3.0)[: line.size], None).coefficients
    galerkin = Galerkin(3.0, E)
    predicted = galerkin.hopf(galerkin.started(near), first, 1e-3)
    report.compare("gap", f"ends at {line.kind} point, beta = 3", predicted=predicted,
                   measured=first, tolerance=1e-9)  # fmt: skip


def fold(report: Report, plane: mf.NoisePhaseDiagram, first: float) -> None:
    def flat(z) -> np.ndarray:
        return reduced(even(AXES["axis 2"]), 4.0, z[1], z[0])[:2]

    data = plane.data.isel(point=(plane.data.kind == "fold") & (plane.data.beta == 4.0))
    r = float(data.order_parameter.values[np.abs(data.kappa.values - first).argmin()])
    _, predicted = fsolve(flat, [r, 1.001 * first], xtol=1e-12)
    report.compare("gap", "ends at fold, beta = 4", predicted=predicted, measured=first,
                   tolerance=1e-8)  # fmt: skip


def corners(report: Report, plane: mf.NoisePhaseDiagram, axes: list[str]) -> None:
    for near, axis in zip(sorted(plane.tricritical, key=lambda c: c.beta), axes, strict=True):

        def turned(z, e=AXES[axis]) -> np.ndarray:
            return reduced(even(e), z[0], z[1], 0.0)[[1, 3]]

        beta, kappa = fsolve(turned, [1.01 * near.beta, near.kappa], xtol=1e-12)
        for what, predicted, measured in (("beta", beta, near.beta), ("kappa", kappa, near.kappa)):
            report.compare("tricritical", f"{what}, {axis}", predicted=predicted,
                           measured=measured, tolerance=1e-8)  # fmt: skip


def counts(report: Report, plane: mf.NoisePhaseDiagram, quick: bool) -> None:
    betas = np.linspace(1, 3 if quick else 4, 101)
    most = max(count for beta in betas for count, *_ in plane.stable_counts(beta))
    report.compare("stable states", "most, 101 values of beta", predicted=1, measured=most,
                   tolerance=0)  # fmt: skip
    for beta in () if quick else (2.56, 3.0, 3.95, 4.0):
        ((_, begins, ends),) = (row for row in plane.stable_counts(beta) if row[0] == 0)
        span = (0.9 * begins, 1.1 * ends)
        ranges = mf.branches(mf.USA(beta), CIRCLE, span, noise=UNEVEN).stable_ranges()
        last = max(high for number, _, high in ranges if number == 0)
        first = min(low for number, low, _ in ranges if number > 0)
        for what, predicted, measured in (("last", last, begins), ("first", first, ends)):
            report.compare("`branches`", f"{what} stable, beta = {beta}", predicted=predicted,
                           measured=measured, tolerance=1e-8)  # fmt: skip


def cusp(report: Report) -> None:
    noise = mf.noise.MultiplicativeStratonovich(lambda x: 1 + A * x[..., 0])
    plane = mf.phase_diagram(mf.USA, CIRCLE, (3.2, 4.0), noise=noise, places=2, progress=False)
    (found,) = plane.cusps
    data = plane.data.isel(point=(plane.data.kind == "fold"))
    r = float(data.order_parameter.values[np.abs(data.beta.values - found.beta).argmin()])

    def meets(z) -> np.ndarray:
        return reduced(odd, z[0], z[1], z[2])[:3]

    beta, kappa, _ = fsolve(meets, [1.001 * found.beta, found.kappa, r], xtol=1e-12)
    report.compare("cusp", "beta", predicted=beta, measured=found.beta, tolerance=1e-8)
    report.compare("cusp", "kappa", predicted=kappa, measured=found.kappa, tolerance=1e-8)


def sphere(report: Report) -> None:
    space, noise = mf.Sphere(6), stretched(1.2, 1.0, 0.8)
    plane = mf.phase_diagram(
        ScaledKuramoto, space, (1.0, 1.1), noise=noise, kappa=(2.5, 3.3), places=1,
        progress=False,
    )  # fmt: skip
    diagram = mf.branches(mf.Kuramoto(), space, (2.5, 3.3), noise=noise, secondary=False)
    onsets = sorted(special.value for special in diagram.special("bifurcation", 0))
    for number, predicted in enumerate(onsets, 1):
        measured = 1.1 * plane.kappa(f"onset {number}", 1.1)
        report.compare("S^2", f"beta kappa, onset {number}", predicted=predicted,
                       measured=measured, tolerance=1e-8)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
