"""Claim: external potentials move tokens and densities along grad V, with a known free energy.

1. Alone, V with isotropic noise rests at exp(kappa V)/const on the circle and on S^2, where
   F = -log(int exp(kappa V) dsigma)/kappa.
2. Under K Kuramoto + h cos(theta) stationary states and free energies are those of Bessel
   functions, a = kappa (K r + h), r = I_1/I_0(a), F = (a r - log I_0(a))/kappa - K r^2/2 - h r,
   and the barrier of the mountain pass is their difference.
3. Along runs of densities dF/dt is minus the dissipation, by differences in time.
4. A run under USA + V agrees with SciPy, in Fourier modes of the product mu (W * mu + V)'.
5. Noisy tokens under V alone have the means of x and x^2 of exp(kappa V), within 4.5 standard
   errors.

    python validation/potentials.py [--quick]    # 9 s
"""

import itertools
import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf

KAPPA = 1.5


def smooth(x):
    """A potential that no symmetry simplifies."""
    return 0.5 * x[..., 0] ** 2 + x[..., 1] * np.exp(0.3 * x[..., 0])


def tilted(space) -> mf.Density:
    """A density to start with."""
    values = 1 + 0.4 * space.points[:, 1]
    return mf.Density(space, space.to_coefficients(values))


def check_rest(report: Report) -> None:
    """exp(kappa V), from a run and from Newton's method."""
    model = mf.Transformer(mf.Potential(smooth), KAPPA)
    for name, space in (("circle", mf.Circle(24)), ("S^2", mf.Sphere(12))):
        run = successful(mf.solve(model, tilted(space), (0, 60), rtol=1e-9))
        states = {"run": run.final}
        if name == "circle":
            states["Newton"] = mf.stationary_states(model, space)[0].density
        for how, density in states.items():
            law = np.exp(KAPPA * smooth(density.space.points))
            mass = law @ density.space.weights
            error = np.abs(density.values - law / mass).max()
            report.compare("rest", f"{name}, {how}", predicted=0, measured=error, tolerance=1e-10)
        least = run.observables["free_energy"].values[-1]
        exact = -np.log(mass) / KAPPA
        report.compare("F at rest", name, predicted=exact, measured=least, tolerance=1e-10)


def check_bessel(report: Report) -> None:
    """All states in a field, and the barrier between the two ways round."""
    for K, h in ((3.0, 0.2), (2.5, 0.05), (6.0, 1.0)):

        def off(r, K=K, h=h):
            a = KAPPA * (K * r + h)
            return iv(1, a) / iv(0, a) - r

        def F(r, K=K, h=h):
            a = KAPPA * (K * r + h)
            return (a * r - np.log(iv(0, a))) / KAPPA - K * r**2 / 2 - h * r

        pairs = itertools.pairwise(np.linspace(-0.999, 0.999, 2000))
        exact = [brentq(off, *p, xtol=1e-15) for p in pairs if off(p[0]) * off(p[1]) < 0]
        model = mf.Transformer(K * mf.Kuramoto() + h * mf.Potential(lambda x: x[..., 0]), KAPPA)
        found = mf.stationary_states(model, mf.Circle(32))
        label = f"K = {K}, h = {h}"
        report.compare("states", label, predicted=len(exact), measured=len(found), tolerance=0)
        worst = 0.0
        for state in found:
            r = min(exact, key=lambda r: abs(abs(r) - state.order_parameter))
            off_r, off_F = abs(r) - state.order_parameter, F(r) - state.free_energy
            worst = max(worst, abs(off_r), abs(off_F))
        report.compare("r and F", label, predicted=0, measured=worst, tolerance=1e-11)
        barrier = mf.saddles(found[0])[0].barrier
        height = F(exact[0]) - F(exact[-1])
        report.compare("barrier", label, predicted=height, measured=barrier, tolerance=1e-11)


def check_dissipation(report: Report) -> None:
    """dF/dt along a run, by differences of order 4."""
    model = mf.Transformer(mf.USA(1.0) + mf.Potential(smooth), KAPPA)
    times, h = np.array([0.2, 0.5, 1.0]), 1e-2
    steps = (times[:, None] + h * np.array([-2, -1, 0, 1, 2])).ravel()
    for name, space in (("circle", mf.Circle(24)), ("S^2", mf.Sphere(12))):
        run = successful(mf.solve(model, tilted(space), (0, 1.1), t_eval=steps, rtol=1e-11))
        F = run.observables["free_energy"].values.reshape(3, 5)
        fall = run.observables["dissipation"].values.reshape(3, 5)[:, 2]
        slope = F @ np.array([1, -8, 0, 8, -1]) / (12 * h)
        error = np.abs(slope / fall + 1).max()
        report.compare("dissipation", name, predicted=0, measured=error, tolerance=1e-6)


def check_flow(report: Report) -> None:
    """The equation on the circle in 64 Fourier modes, by SciPy."""
    N, beta, kappa = 128, 1.3, 5.0
    theta = 2 * np.pi * np.arange(N) / N
    x = np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    k = np.fft.fftfreq(N, 1 / N)
    V = 1j * k * np.fft.fft(smooth(x))
    multipliers = iv(np.abs(k), beta) / beta

    def rates(_t, mu):
        modes = np.fft.fft(mu)
        speed = np.fft.ifft(1j * k * multipliers * modes + V).real
        return np.fft.ifft(-(k**2) / kappa * modes - 1j * k * np.fft.fft(mu * speed)).real

    options = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}
    exact = solve_ivp(rates, (0, 1), 1 + 0.4 * x[:, 1], **options).y[:, -1]
    model = mf.Transformer(mf.USA(beta) + mf.Potential(smooth), kappa)
    final = successful(mf.solve(model, tilted(mf.Circle(24)), (0, 1), rtol=1e-11)).final
    moments = [np.mean(exact * np.exp(1j * j * theta)) for j in range(1, 9)]
    c = final.coefficients[1:9]
    error = min(np.abs(c - moments).max(), np.abs(np.conj(c) - moments).max())
    report.compare("flow", "USA + V", predicted=0, measured=error, tolerance=1e-9)


def check_tokens(report: Report, n: int) -> None:
    """Independent tokens: V alone, in the law at rest from the start."""
    model = mf.Transformer(mf.Potential(smooth), KAPPA)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, 3))
    start = mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))
    final = mf.solve(model, start, (0, 12), dt=0.04, rng=1).final.x
    space = mf.Sphere(24)
    law = np.exp(KAPPA * smooth(space.points)) * space.weights
    law /= law.sum()
    for name, f in (("x", lambda y: y), ("x^2", lambda y: y**2)):
        exact, values = law @ f(space.points), f(final)
        off = (values.mean(axis=0) - exact) / (values.std(axis=0) / np.sqrt(n))
        worst = float(np.abs(off).max())
        label = f"{name}, in standard errors"
        report.compare("tokens", label, predicted=0, measured=worst, tolerance=4.5)


def main() -> int:
    quick = command_line(__doc__, "fewer tokens").quick
    report = Report(["what", "case"])
    check_rest(report)
    check_bessel(report)
    check_dissipation(report)
    check_flow(report)
    check_tokens(report, 2_000 if quick else 20_000)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
