"""Claim: `mf.transition_path` computes paths of least action between stable states.

With a free energy these are minimum free-energy paths. Between the uniform and the ordered state of
noisy USA lies one saddle.

1. Both states and the saddle are on the path, on the circle, S^2 and axisymmetric densities in
   d = 3, 5: distance in L^2 of the densities, and of F at the saddle.
2. The equation is tangent to the path: d_t mu across it, relative to the largest d_t mu, in H^-1.
3. The string method with 129 images, which knows no unstable manifold, finds the path that
   `mf.solve` follows down from the saddle: largest distance in L^2 at equal length.
4. The Dawson-Gaertner action of the path up to the saddle, int |mu'| |v| - <mu', v> ds with
   norms in H^-1_mu, is twice the barrier, its least value, on the circle at beta = 4,
   kappa = 0.402. It is computed from fluxes on a grid and Bessel functions.

5. The path of least action by minimisation, which uses no free energy, from the straight line:
   its action is twice the barrier in the case of 4.
6. SA, beta = 2, in a field of two wells has no free energy. The action of its path, by the
   geometric method, is that of densities at given times which are relaxed, with 40 and 80
   intervals, in exponents of Fourier series; extrapolated.

Asked: 1e-10 for states; 1e-5 for the tangent; 1e-6 for the string, and for actions, relative; 1e-4
for that of SA.

    python validation/transition_paths.py [--quick]    # 120 s, 10 s quick; exit code 1 on failure

--quick has the circle alone, without SA.
"""

import sys

import numpy as np
from _report import Report, command_line
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.optimize import root
from scipy.special import iv, ive

import meanfield as mf
from meanfield.metastability.least_actions import DensityFlow, least_action

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


def minimised(saddle):
    """The least action from the uniform state to a saddle on the circle."""
    basis = saddle.equation.basis.finer(20)
    flow = DensityFlow(saddle.model, basis)
    top = basis.sizes * saddle.legendre_moments[:20]
    return least_action(flow.at, flow.coordinates(np.array([0 * top, top]))).action


class SaInAField:
    """Densities exp(sum_k c_k cos k theta)/const under SA and v = -(2 h cos + tilt) sin theta."""

    beta, kappa, h, tilt = 2.0, 5.0, 0.3, 0.02
    modes, grid = 16, 48

    def __init__(self):
        self.k = np.arange(1, self.modes + 1)
        self.theta = np.pi * (np.arange(self.grid) + 0.5) / self.grid
        waves = np.outer(self.k, self.theta)
        self.cosines, self.sines = np.cos(waves), np.sin(waves)
        self.weights = ive(self.k, self.beta) / ive(0, self.beta)
        self.model = mf.Transformer(
            mf.SA(self.beta) + mf.Field(lambda x: x * [2 * self.h, 0.0] + [self.tilt, 0.0]),
            self.kappa,
        )

    def density(self, c):
        law = np.exp(c @ self.cosines)
        return law / law.mean(axis=-1, keepdims=True)

    def moments(self, c):
        return self.density(c) @ self.cosines.T / self.grid

    def speed(self, c):
        """v - (log density)'/kappa."""
        m = self.moments(c) * self.weights
        v = -2 * (m * self.k) @ self.sines / (1 + 2 * m @ self.cosines) / self.beta
        field = -(2 * self.h * np.cos(self.theta) + self.tilt) * np.sin(self.theta)
        return v + field + (c * self.k) @ self.sines / self.kappa

    def change(self, _, c):
        """d_t c."""
        density, centred = self.density(c), self.cosines - self.moments(c)[:, None]
        moved = -(self.sines * self.k[:, None]) @ (density * self.speed(c)) / self.grid
        return np.linalg.solve((centred * density) @ centred.T / self.grid, moved)

    def rest(self, c):
        return root(lambda one: self.change(0, one), c, tol=1e-12).x

    def residuals(self, before, after, steps):
        """Rows whose squares add up to 1/2 int |d_t mu - b|^2 dt, at the middle of each step."""
        middle = (before + after) / 2
        density = self.density(middle)
        slope = (self.moments(after) - self.moments(before)) / steps[:, None]
        flux = -2 * (slope / self.k) @ self.sines
        excess = (flux - density * self.speed(middle)) / np.sqrt(density)
        return excess * np.sqrt(steps[:, None] / (2 * self.grid))

    def jacobian(self, path, steps):
        inner, n, h = len(path) - 2, self.modes, 1e-6
        matrix = np.zeros((len(steps), self.grid, inner, n))
        for after in (0, 1):
            for j, unit in enumerate(h * np.eye(n)):
                ends = [(path[:-1] + s * (1 - after) * unit, path[1:] + s * after * unit)
                        for s in (1, -1)]  # fmt: skip
                above, below = (self.residuals(*pair, steps) for pair in ends)
                for i in range(1 - after, len(steps) - after):
                    matrix[i, :, i + after - 1, j] = (above[i] - below[i]) / (2 * h)
        return matrix.reshape(len(steps) * self.grid, inner * n)

    def relaxed(self, intervals):
        """The action after 40 steps of Levenberg and Marquardt, from a run down and backwards."""
        first, unit = 2 * np.eye(self.modes)[0], np.eye(self.modes)
        stable = self.rest(solve_ivp(self.change, (0, 400), first, "LSODA").y[:, -1])
        saddle = self.rest(0.025 * first)
        slope = np.array([self.change(0, saddle + h) - self.change(0, saddle - h)
                          for h in 1e-6 * unit]).T / 2e-6  # fmt: skip
        values, vectors = np.linalg.eig(slope)
        growth, mode = values.real.max(), vectors[:, values.real.argmax()].real
        start = saddle + 1e-3 * np.sign(mode[0]) * mode / np.linalg.norm(mode)
        run = solve_ivp(self.change, (0, np.log(1e3) / growth + 60), start, "LSODA", rtol=1e-9,
                        atol=1e-11, dense_output=True)  # fmt: skip
        times = np.linspace(0, run.t[-1], 20_001)
        parts = np.linalg.norm(np.diff(run.sol(times), axis=1), axis=0)
        length = np.concatenate([[0], np.cumsum(parts)])
        times = np.interp(np.linspace(0, 1 - 1e-4, intervals + 1) * length[-1], length, times)
        path = np.concatenate([[stable], run.sol(times).T[::-1], [saddle]])
        steps = np.concatenate([[30.0], np.diff(times)[::-1], [4 / growth]])
        damping, least = 1e-3, np.sum(self.residuals(path[:-1], path[1:], steps) ** 2)
        for _ in range(40):
            matrix = self.jacobian(path, steps)
            normal = matrix.T @ matrix
            gradient = matrix.T @ self.residuals(path[:-1], path[1:], steps).ravel()
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient)
            moved = path.copy()
            moved[1:-1] -= step.reshape(-1, self.modes)
            action = np.sum(self.residuals(moved[:-1], moved[1:], steps) ** 2)
            better = action < least
            damping *= 0.2 if better else 10
            if better:
                path, least = moved, action
        return least


def of_sa(report):
    """Claim 6."""
    system = SaInAField()
    starts = [mf.Circle(16).density(lambda t, s=s: 1 + s * np.cos(t)) for s in (0.9, -0.9)]
    runs = [mf.solve(system.model, start, (0, 60), progress=False) for start in starts]
    path = mf.transition_path(*(mf.stationary(system.model, run.final) for run in runs))
    coarse, fine = system.relaxed(40), system.relaxed(80)
    report.compare("SA", "action", predicted=fine - (coarse - fine) / 3, measured=path.action,
                   tolerance=1e-4, relative=True)  # fmt: skip
    report.compare("SA", "error of the action", predicted=0.0, tolerance=1e-6,
                   measured=path.action_error / path.action)  # fmt: skip


def main() -> int:
    quick = command_line(__doc__, "the circle alone").quick
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
            report.compare(name, "action, minimised", predicted=2 * path.barrier, tolerance=1e-6,
                           measured=minimised(path.saddle.state), relative=True)  # fmt: skip
        if name != "S^2":  # whose densities are computed as zonal ones
            report.compare(name, "string", predicted=0.0, measured=apart(string, path),
                           tolerance=1e-6)  # fmt: skip
    if not quick:
        of_sa(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
