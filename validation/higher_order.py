"""Claim: triadic and tetradic Kuramoto models have the order parameters of Skardal and Arenas.

    theta_i' = omega_i + Im((K_1 z_1 + K_2 z_2 conj(z_1) + K_3 z_1 |z_1|^2) e^(-i theta_i))

with frequencies of the Lorentzian law of width 1, on the manifold of Ott and Antonsen z_k = r^k:

    r' = -r + (K_1 + K_23 r^2) r (1 - r^2)/2,   K_23 = K_2 + K_3.

1. A density, in modes and with `Lorentzian` frequencies, has r(t) of this equation by SciPy, and
   comes to rest at r^2 = (K_23 - K_1 + ((K_1 + K_23)^2 - 8 K_23)^(1/2))/(2 K_23).
2. Explosive onset: between the fold (K_1 + K_23)^2 = 8 K_23 and K_1 = 2 the state r = 0 and the
   upper one are stable, and the lower root divides their basins; 2 % below the fold all is lost.
3. 10^5 tokens with random frequencies have r(t) within 4.5 standard errors of ten samples. They
   turn by their frequencies exactly, and are moved by the sums of the package between.
4. Densities without frequencies agree with 4000 tokens at the nodes of a quadrature, under modes
   that are not Kuramoto's.
5. Branches with noise: even states of identical oscillators are exp(a cos x)/const with
   a = kappa (K_1 r_1 + K_2 r_2 r_1 + K_3 r_1^3), r_k = I_k(a)/I_0(a), so that fold, onset and both
   order parameters between are known; below the fold both states are lost.
6. With Lorentzian frequencies and noise 1/kappa, branches in K_1, extrapolated to no noise, have
   fold, onset and both order parameters of the closed form of claim 1.

    python validation/higher_order.py [--quick]    # 200 s, 60 s quick
"""

import sys
from itertools import pairwise

import numpy as np
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ive

import meanfield as mf
from meanfield.engines import MomentSums

CASES = {
    "K_1 = 0.5, K_2 = 5, K_3 = 4": (0.5, 5.0, 4.0),
    "K_1 = 1, K_2 = 8, K_3 = 0": (1.0, 8.0, 0.0),
    "K_1 = -1, K_2 = 0, K_3 = 12": (-1.0, 0.0, 12.0),
    "K_1 = 3, K_2 = -1, K_3 = -1": (3.0, -1.0, -1.0),
}
MODES = (1,), (2, -1), (1, 1, -1)


def drift(K1: float, K2: float, K3: float):
    """The three interactions."""
    triadic, tetradic = mf.HigherOrder((2, -1)), mf.HigherOrder((1, 1, -1))
    return K1 * mf.Kuramoto() + K2 * triadic + K3 * tetradic


def ring(r: float) -> mf.Density:
    """The density of moments r^k."""
    degree = int(np.clip(np.log(1e-11) / np.log(max(r, 0.1)), 16, 256))
    return mf.Circle(degree).density(lambda t: (1 - r * r) / (1 - 2 * r * np.cos(t) + r * r))


def along(K, r0: float, times) -> np.ndarray:
    """r(t) by SciPy."""
    K1, K23 = K[0], K[1] + K[2]

    def rate(_t, r):
        return -r + (K1 + K23 * r**2) * r * (1 - r**2) / 2

    end = (0, times[-1])
    return solve_ivp(rate, end, [r0], "DOP853", times, rtol=1e-13, atol=1e-15).y[0]


def roots(K) -> np.ndarray:
    """r of the two partially synchronised states, the upper one first; empty below the fold."""
    K1, K23 = K[0], K[1] + K[2]
    if (K1 + K23) ** 2 < 8 * K23:
        return np.array([])
    signs = np.array([1.0, -1.0])
    squares = (K23 - K1 + signs * np.sqrt((K1 + K23) ** 2 - 8 * K23)) / (2 * K23)
    return np.sqrt(squares[(squares > 0) & (squares < 1)])


def order(K, r0: float, times, rtol: float = 1e-10) -> np.ndarray:
    """r(t) of a density."""
    model = mf.Transformer(drift(*K), frequency=mf.Lorentzian(1.0))
    run = successful(mf.solve(model, ring(r0), (0, times[-1]), t_eval=times, rtol=rtol))
    return np.abs([state.coefficients[1] for state in run.states])


def check_order_parameter(report: Report) -> None:
    """Along runs, and at rest."""
    times = np.linspace(0, 2, 5)
    for label, K in CASES.items():
        error = np.abs(order(K, 0.6, times) - along(K, 0.6, times)).max()
        report.compare("r(t)", label, predicted=0, measured=error, tolerance=1e-9)
        upper = roots(K)[0]
        found = order(K, upper + 0.02, np.array([0.0, 12.0 if K[0] < 2 else 30.0]))[-1]
        report.compare("at rest", label, predicted=upper, measured=found, tolerance=1e-9)


def check_folds(report: Report, quick: bool) -> None:
    """Both sides of the lower root, and of the fold."""
    for K1 in (0.5,) if quick else (0.5, 1.2):
        fold = 4 - K1 + np.sqrt((4 - K1) ** 2 - K1**2)  # the larger root in K_23
        above, below = (K1, fold * 1.1, 0.0), (K1, fold * 0.98, 0.0)
        upper, lower = roots(above)
        for start, end in ((lower + 0.03, upper), (lower - 0.03, 0.0)):
            times = np.array([0.0, 30.0])
            found = order(above, start, times, 1e-9)[-1]
            label = f"K_1 = {K1}, from r = {start:.3f}"
            exact = along(above, start, times)[-1]
            report.compare("two states", label, predicted=exact, measured=found, tolerance=1e-7)
            report.compare("two states", label, predicted=end, measured=found, tolerance=1e-3)
        times = np.array([0.0, 60.0])
        label = f"K_1 = {K1}, 2 % below the fold"
        found = order(below, upper, times, 1e-9)[-1]
        report.compare("lost", label, predicted=0, measured=found, tolerance=1e-3)


def check_tokens(report: Report, n: int, samples: int) -> None:
    """Strang splitting of turning and interaction, with steps of 0.01."""
    dt, steps, r0, rng = 0.01, 100, 0.5, np.random.default_rng(0)
    for label, K in [*CASES.items()][:2]:
        sums = [(c, MomentSums(mf.HigherOrder(k))) for c, k in zip(K, MODES, strict=True)]
        found, masses = [], np.full((1, n), 1 / n)
        for _ in range(samples):
            omega = rng.standard_cauchy(n)
            theta = 2 * np.arctan((1 - r0) / (1 + r0) * np.tan(np.pi * (rng.random(n) - 0.5)))
            half = np.exp(0.5j * dt * omega)
            z = np.exp(1j * theta)
            for _ in range(steps):
                z = z * half
                z = z * np.exp(1j * moved(sums, z, masses, dt))
                z = z * half
            found.append(abs(z.mean()))
        exact = along(K, r0, np.array([0.0, dt * steps]))[-1]
        off = (np.mean(found) - exact) / (np.std(found, ddof=1) / np.sqrt(samples))
        name = f"{label}, in standard errors"
        report.compare("tokens", name, predicted=0, measured=off, tolerance=4.5)


def moved(sums, z, masses, dt: float) -> np.ndarray:
    """Changes of angles by the interaction, in one step of the midpoint rule."""

    def speeds(z):
        x = np.stack([z.real, z.imag], axis=-1)[None]
        v = sum(c * one.attention(0.0, x, masses) for c, one in sums)[0]
        return x[0, :, 0] * v[:, 1] - x[0, :, 1] * v[:, 0]

    return dt * speeds(z * np.exp(0.5j * dt * speeds(z)))


def check_quadrature(report: Report) -> None:
    """Densities against tokens at 4000 nodes."""
    theta = 2 * np.pi * np.arange(4000) / 4000
    x, shape = (
        np.stack([np.cos(theta), np.sin(theta)], axis=-1),
        lambda t: 1 + 0.4 * np.cos(t) + 0.2 * np.sin(2 * t),
    )
    start = mf.Circle(24).density(shape)
    for modes in ((2, -1), (3, -1, -2), (-2, 5)):
        model = mf.Transformer(mf.Kuramoto() - 1.5 * mf.HigherOrder(modes))
        final = successful(mf.solve(model, start, (0, 1), rtol=1e-10)).final
        tokens = mf.Tokens(x, shape(theta) / 4000)
        moved_tokens = successful(mf.solve(model, tokens, (0, 1), rtol=1e-10)).final
        z = moved_tokens.masses @ (moved_tokens.x[:, 0] - 1j * moved_tokens.x[:, 1])
        error = abs(final.coefficients[1] - z)
        report.compare("quadrature", f"{modes}", predicted=0, measured=error, tolerance=1e-9)


def check_branches(report: Report, quick: bool) -> None:
    """Identical oscillators with noise."""
    for label, K in [*CASES.items()][: 1 if quick else 2]:

        def kappa_of(a: float, K=K, less: float = 0.0) -> float:
            one, two = ive([1, 2], a) / ive(0, a)
            return a / (K[0] * one + K[1] * two * one + K[2] * one**3) - less

        at = minimize_scalar(kappa_of, (1.0, 2.5, 6.0), options={"xtol": 1e-12})
        middle = np.sqrt(at.fun * 2 / K[0])
        ends = (1e-6, at.x, 80.0)
        amplitudes = [brentq(kappa_of, *pair, args=(K, middle)) for pair in pairwise(ends)]
        exact = [0.0, *(ive(1, a) / ive(0, a) for a in amplitudes)]
        diagram = mf.branches(drift(*K), mf.Circle(16), (0.9 * at.fun, 2.5 / K[0]))
        compare_diagram(report, label, diagram, at.fun, 2 / K[0], middle, exact, 1e-9)
        below = [s.order_parameter for _, s in diagram.states_at(0.98 * at.fun)]
        report.compare("lost", f"{label}, states", predicted=1, measured=len(below), tolerance=0)


def check_small_noise(report: Report, quick: bool) -> None:
    """Lorentzian frequencies, with noise that is extrapolated to none."""
    for label, K in [*CASES.items()][: 1 if quick else 2]:
        K23 = K[1] + K[2]
        found = []
        for kappa in (250.0, 500.0, 1000.0, 2000.0):
            noisy = mf.Transformer(drift(*K), frequency=mf.Lorentzian(1.0), kappa=kappa)
            span = {"factors[0]": (np.sqrt(8 * K23) - K23 - 0.2, 2.2)}
            diagram = mf.branches(noisy, mf.Circle(32), vary=span, max_step=0.3)
            states = sorted(s.order_parameter for _, s in diagram.states_at(K[0]))
            special = (diagram.special(kind)[0].value for kind in ("fold", "bifurcation"))
            found.append([*special, *states])
        limits = np.array(found)
        for power in range(1, len(limits)):  # Richardson, in powers of 1/kappa
            limits = (2**power * limits[1:] - limits[:-1]) / (2**power - 1)
        exact = [np.sqrt(8 * K23) - K23, 2.0, 0.0, *roots(K)[::-1]]
        names = ("fold", "onset", "incoherent", "lower r", "upper r")
        for name, predicted, measured in zip(names, exact, limits[0], strict=True):
            case = f"{label}, {name}"
            report.compare("no noise", case, predicted=predicted, measured=measured, tolerance=1e-7)


def compare_diagram(report, label, diagram, fold, onset, middle, exact, tolerance) -> None:
    """Special points, and order parameters and stability between them."""
    for kind, predicted in (("fold", fold), ("bifurcation", onset)):
        (point,) = diagram.special(kind)
        case = f"{label}, {kind}"
        report.compare(
            "branches", case, predicted=predicted, measured=point.value, tolerance=tolerance
        )
    states = sorted((s for _, s in diagram.states_at(middle)), key=lambda s: s.order_parameter)
    for state, r, stable in zip(states, exact, (True, False, True), strict=True):
        case, tolerant = f"{label}, r = {r:.4f}", {"tolerance": tolerance}
        report.compare("branches", case, predicted=r, measured=state.order_parameter, **tolerant)
        growth = float(state.stability(2).stable)
        report.compare("stable", case, predicted=float(stable), measured=growth, tolerance=0)


def main() -> int:
    quick = command_line(__doc__, "fewer tokens and one fold").quick
    report = Report(["what", "case"])
    check_order_parameter(report)
    check_folds(report, quick)
    check_tokens(report, 20_000 if quick else 100_000, 10)
    check_quadrature(report)
    check_branches(report, quick)
    check_small_noise(report, quick)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
