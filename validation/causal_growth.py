"""Claim: perturbations under causal attention grow, and act on later positions, as means over what
came before.

Let c(s) be the coefficient of a harmonic of degree l on top of the uniform state, L = l(l + d - 2),
w = lambda_l/beta (USA), lambda_l/(beta lambda_0) (SA), T = L w t. To first order

    c' = L (w C - 1/kappa) c,   "mean": (C c)(s) = (1/s) int_0^s c,   "sum": (C c)(s) = int_0^s c.

1. "mean": C s^p = s^p/(1 + p), so that s^p grows at L(w/(1 + p) - 1/kappa): p = 0, 1, 2, degrees 1
   and 2, circle and S^2, USA and SA. Asked: 1e-6.
2. The norm matters. In the maximum norm p >= 0, and the onset is kappa_c = 1/w, that without mask;
   in L^2(ds) p > -1/2, and C has the norm 2: the onset is kappa_c/2. At kappa = 0.8 kappa_c, p = 0
   decays, and s^-0.4 grows at L(w/0.6 - 1/kappa), measured at s >= 0.1 on graded positions: 1e-6.
3. A sink of mass m at s = 0 moves as a density without mask. Where it is uniform, C is a Volterra
   operator with a bounded kernel, of spectral radius 0: there is no onset. With
   U = log((m + (1 - m) s)/m) a constant c becomes e^{-L t/kappa} times
   1 + int_0^U sqrt(T/v) e^{-v} I_1(2 sqrt(T v)) dv. Asked of solutions: 1e-6.
   A window h that sees the sink too: far from the first windows a constant grows at
   L(w q - 1/kappa), q = (1 - m) h/(m + (1 - m) h): h = 0.05, s = 1, 1e-6.
4. "sum": no onset either: 1 becomes e^{-L t/kappa} I_0(2 sqrt(T s)): 1e-6.
5. Influence of position tau on s, "mean": e^{TC} has the kernel
   delta + (1/s) sqrt(T/u) I_1(2 sqrt(T u)), u = log(s/tau). Asked of the exponential of the
   discretised C: 1e-11, of solutions: 1e-6; "sum": delta + sqrt(T/v) I_1(2 sqrt(T v)), v = s - tau.
   The kernel falls in tau, and delta is at tau = s: the influence is U-shaped. On s = 1, of blocks
   of 1/10 of the sequence, the last has more than the last but one until T = T_*, the root of
   1 + int_{0.9}^1 = int_{0.8}^{0.9}: 11.03; then the U is gone. The same of solutions that start
   in one block: shares to 1e-6. Noise has no part in this, nor has beta, but for T.
6. Stationary profiles, Kuramoto with kappa = 6: slices are von Mises of concentration kappa R(s),
   s R' = I_1(kappa R)/I_0(kappa R) - R. Besides R = 0 and R = r_* there are those with
   R ~ s^{kappa/2 - 1} near 0, R(cs) with R for all c. One of them is at rest: |velocity of all
   coefficients| <= 1e-10. It is unstable, as the first position is by itself: perturbed by 1e-3 all
   slices are at r_* at t = 120: 1e-6.
7. Following the first. n tokens near each other, the first apart by delta: theta_i = delta F_i(t)
   with F' = (C_n - 1) F, C_n the means of the first i, up to delta^2: 1e-6. F_i is about the chance
   that a Poisson number, of mean t, of steps Exp(1) exceeds log i: a front in log i at speed 1 of
   variance 2t. The mean time int_0^inf (1 - F_n) dt at which n follows is 1 + 1 + 1/2 + ... +
   1/(n - 1): n = 100, relative 1e-6. Asked of the times of F_n = 1/2, n = 100, 400, 1600: the slope
   in log n is 1 to 0.03. Hence t -> infinity with n fixed brings all to x_1(0), and
   n -> infinity with t fixed to the mean direction of the law: the limits do not commute.

    python validation/causal_growth.py [--quick]    # 20 s, 8 s quick

--quick has the circle only, and fewer tokens. Exit code 1 on failure.

The formulas are derived here: s = e^x makes C the convolution with e^{-x}, x > 0, whose powers are
the Gamma laws.
"""

import sys
from itertools import pairwise

import numpy as np
from _report import Report, command_line, successful
from scipy.integrate import quad, simpson, solve_ivp
from scipy.linalg import expm
from scipy.optimize import brentq
from scipy.special import i0, iv, ive, spherical_in

import meanfield as mf


def weight(name: str, d: int, l: int, beta: float) -> float:
    """w of degree l."""
    multiplier = (lambda k: iv(k, beta)) if d == 2 else (lambda k: spherical_in(k, beta))
    return multiplier(l) / beta / (multiplier(0) if name == "SA" else 1)


def solved(model, l, profile, index, end, d=2, size=1e-6):
    """c at all nodes at the time `end` in units of `size`, and the state."""
    space = mf.Circle(16) if d == 2 else mf.Sphere(8)

    def law(s, *point):
        if d == 2:
            return 1 + size * profile(s) * np.cos(l * point[0])
        z = point[2]
        return 1 + size * profile(s) * (z if l == 1 else 1.5 * z**2 - 0.5)

    start, options = space.indexed(law, index), {"t_eval": [end], "dt": end / 400}
    state = successful(mf.solve(model, start, (0, end), **options)).final
    unit = {2: 1 / 2, 3: 1 / (2 * l + 1)}[d]  # int of the square of the harmonic
    return coefficient(state, l) / (size * unit), state


def coefficient(state, l):
    """That of the harmonic, at all nodes."""
    return np.real(state.moment(l)) if state.dimension == 2 else np.real(state.moment(l)[..., 0])


def check_powers(report: Report, quick: bool) -> None:
    index = mf.Positions(order=6)
    late = index.nodes > 0.5
    for d in (2,) if quick else (2, 3):
        for name, drift in (("USA", mf.USA(2.0)), ("SA", mf.SA(2.0))):
            for l in (1, 2):
                w, L = weight(name, d, l, 2.0), l * (l + d - 2)
                kappa = 1.5 / w
                for p in (0, 1, 2):
                    rate = L * (w / (1 + p) - 1 / kappa)
                    model = mf.Transformer(drift, kappa, causal="mean")
                    end = 1 / max(abs(rate), 0.1)
                    found, _ = solved(model, l, lambda s: s**p, index, end, d)  # noqa: B023
                    rates = np.log(found[late] / index.nodes[late] ** p) / end
                    worst = rates[np.argmax(np.abs(rates - rate))]
                    labels = f"s^{p}", f"d = {d}, {name}, degree {l}"
                    report.compare(*labels, predicted=rate, measured=worst, tolerance=1e-6)


def check_norms(report: Report) -> None:
    w = weight("SA", 2, 1, 2.0)
    model = mf.Transformer(mf.SA(2.0), 0.8 / w, causal=True)
    index = mf.Positions.graded(pieces=22, ratio=4, order=10)
    late = index.nodes > 0.1
    for p in (0.0, -0.4):
        scale = index.nodes[0] ** -p  # 1 at the first node
        found, _ = solved(model, 1, lambda s: scale * s**p, index, 2.0, size=1e-3)  # noqa: B023
        rates = np.log(found[late] / (scale * index.nodes[late] ** p)) / 2.0
        rate = w * (1 / (1 + p) - 1 / 0.8)
        worst = rates[np.argmax(np.abs(rates - rate))]
        report.compare(
            f"s^{p:g}", "SA, 0.8 kappa_c", predicted=rate, measured=worst, tolerance=1e-6
        )


def jumps(t: float, v):
    """sqrt(t/v) I_1(2 sqrt(t v))."""
    return t if v == 0 else np.sqrt(t / v) * iv(1, 2 * np.sqrt(t * v))


def integral(f, a: float, b: float) -> float:
    return quad(f, a, b, epsabs=1e-14, epsrel=1e-13, limit=200)[0]


def far(t: float, U: float) -> float:
    """1 + int_0^U sqrt(t/v) e^{-v} I_1(2 sqrt(t v)) dv."""
    return 1 + integral(lambda v: np.exp(-v) * jumps(t, v), 0, U)


def check_sink(report: Report) -> None:
    m, w, T = 0.1, weight("SA", 2, 1, 2.0), 2.0
    index = mf.Positions([0, 0.1, 0.3, 1], order=14, sink=m)
    for ratio in (1.2, 50.0):
        model = mf.Transformer(mf.SA(2.0), ratio / w, causal=True)
        decay = np.exp(-T / ratio)
        found, _ = solved(model, 1, lambda s: 1.0 * (s > 0), index, T / w)
        for i in (1, 20, 42):
            s = index.nodes[i]
            law = decay * far(T, np.log((m + (1 - m) * s) / m))
            numbers = {"predicted": law, "measured": found[i], "tolerance": 1e-6}
            report.compare("uniform sink", f"{ratio:g} kappa_c, s = {s:.3f}", **numbers)
        found, _ = solved(model, 1, lambda s: 1.0 * (s == 0), index, T / w)
        rate, law = np.log(found[0]) * w / T, w * (1 - 1 / ratio)
        labels = "the sink itself", f"{ratio:g} kappa_c, rate"
        report.compare(*labels, predicted=law, measured=rate, tolerance=1e-6)


def check_window(report: Report) -> None:
    """A constant in windows of 0.05 that see a uniform sink too, far from the first windows."""
    m, h, w = 0.1, 0.05, weight("SA", 2, 1, 2.0)
    q = (1 - m) * h / (m + (1 - m) * h)
    index = mf.Positions(np.linspace(0, 1, 21), order=4, sink=m)
    for ratio in (1.5, 4.0):
        causal = mf.Causal(window=h, sink=m)
        model = mf.Transformer(mf.SA(2.0), ratio / w, causal=causal)
        found, _ = solved(model, 1, lambda s: 1.0 * (s > 0), index, 2 / w)
        law, rate = w * (q - 1 / ratio), np.log(found[-1]) * w / 2
        labels = "window and sink", f"{ratio:g} kappa_c, onset at {1 / q:.3f}"
        report.compare(*labels, predicted=law, measured=rate, tolerance=1e-6)


def check_sum(report: Report) -> None:
    w, T = weight("USA", 2, 1, 2.0), 3.0
    index = mf.Positions(order=14)
    for ratio in (0.8, 50.0):
        model = mf.Transformer(mf.USA(2.0), ratio / w, causal="sum")
        found, _ = solved(model, 1, np.ones_like, index, T / w)
        law = np.exp(-T / ratio) * i0(2 * np.sqrt(T * index.nodes))
        worst = np.argmax(np.abs(found - law))
        numbers = {"predicted": law[worst], "measured": found[worst], "tolerance": 1e-6}
        report.compare('"sum"', f"{ratio:g}/w, all s", **numbers)


def check_kernel(report: Report) -> None:
    """The exponential of C on a smooth function."""
    T, index = 2.0, mf.Positions(order=20)
    w = {"mean": weight("SA", 2, 1, 2.0), "sum": weight("USA", 2, 1, 2.0)}
    drifts = {"mean": mf.SA(2.0), "sum": mf.USA(2.0)}

    def g(s):
        return 0.5 + 0.3 * np.cos(5 * s)

    def exact(kind, s):
        if kind == "sum":
            return g(s) + integral(lambda v: jumps(T, v) * g(s - v), 0, s)
        return g(s) + integral(lambda u: np.exp(-u) * jumps(T, u) * g(s * np.exp(-u)), 0, 80)

    for kind in ("mean", "sum"):
        law = np.array([exact(kind, s) for s in index.nodes])
        model = mf.Transformer(drifts[kind], 1 / w[kind], causal=kind)
        found = expm(T * index.influence(model)) @ g(index.nodes)
        error = np.abs(found - law).max()
        report.compare("e^{TC}", kind, predicted=0, measured=error, tolerance=1e-11)
        found, _ = solved(model, 1, g, index, T / w[kind])
        error = np.abs(found - np.exp(-T) * law).max()
        report.compare("solution", kind, predicted=0, measured=error, tolerance=1e-6)


def block(T: float, a: float, b: float) -> float:
    """Influence on s = 1 of the positions between a and b, e^{TC} applied to their indicator."""
    low, high = -np.log(b), 80.0 if a == 0 else -np.log(a)
    return float(b == 1) + integral(lambda u: np.exp(-u) * jumps(T, u), low, high)


def check_blocks(report: Report, quick: bool) -> None:
    ends = np.linspace(0, 1, 11)
    ends[-1] = 1.0
    index, w = mf.Positions(ends, order=12), weight("SA", 2, 1, 2.0)
    flat = brentq(lambda T: block(T, 0.9, 1.0) - block(T, 0.8, 0.9), 0.1, 30)
    print(f"the U is gone for T > {flat:.6f}")
    model = mf.Transformer(mf.SA(2.0), 1 / w, causal=True)
    for T in (flat,) if quick else (1.0, 3.0, flat):
        laws = np.array([block(T, a, b) for a, b in pairwise(ends)])
        numbers = {"predicted": 1, "measured": laws.sum() * np.exp(-T), "tolerance": 1e-10}
        report.compare("sum of shares", f"T = {T:.3g}", **numbers)
        found = []
        for a, b in pairwise(ends):
            one = 1.0 * ((index.nodes > a) & (index.nodes < b))[:, None]
            c, _ = solved(model, 1, lambda _: one, index, T / w, size=1e-4)  # noqa: B023
            found.append(index.interpolation(1.0) @ c)
        print(f"T = {T:.3g}, shares of ten blocks:", *(f"{x * np.exp(-T):.4f}" for x in laws))
        error = np.abs(np.array(found) - np.exp(-T) * laws).max()
        report.compare("shares", f"T = {T:.3g}", predicted=0, measured=error, tolerance=1e-6)
        if T == flat:
            ratio = found[-1] / found[-2]
            report.compare("last/last but one", "T_*", predicted=1, measured=ratio, tolerance=1e-5)


def check_profiles(report: Report) -> None:
    kappa = 6.0

    def slope(x, R):
        return ive(1, kappa * R) / ive(0, kappa * R) - R

    first = -9.0  # log s, where R = s^2 to e^-36
    options = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-30, "dense_output": True}
    run = solve_ivp(slope, (first, 2), [np.exp(2 * first)], **options)
    top = brentq(lambda R: slope(0, R), 0.1, 1)
    index = mf.Positions([0, 0.125, 0.25, 0.5, 1], order=16)
    model = mf.Transformer(mf.Kuramoto(), kappa, causal="mean")
    circle = mf.Circle(32)
    for c in (1.5, 3.0):

        def R(s):
            x = np.log(c * np.asarray(s))  # noqa: B023
            return np.where(
                x < first, np.exp(2 * x), run.sol(np.maximum(x, first).ravel())[0].reshape(x.shape)
            )

        start = circle.indexed(lambda s, theta: np.exp(kappa * R(s) * np.cos(theta)), index)
        state = successful(mf.solve(model, start, (0, 0.1), t_eval=[0.1], dt=0.01)).final
        rate = np.abs(state.each - start.each).max() / 0.1
        label = f"R({c:g} s), R at s = 1: {R(1.0):.4f} of {top:.4f}"
        report.compare("velocity", label, predicted=0, measured=rate, tolerance=1e-10)
    start = circle.indexed(
        lambda s, theta: np.exp(kappa * R(s) * np.cos(theta)) * (1 + 1e-3 * np.cos(theta)), index
    )
    state = successful(mf.solve(model, start, (0, 120), t_eval=[120.0])).final
    error = np.abs(np.abs(state.moment(1)) - top).max()
    report.compare("all at r_*", "perturbed, t = 120", predicted=0, measured=error, tolerance=1e-6)


def check_followers(report: Report, quick: bool) -> None:
    model, delta = mf.Transformer(mf.Attention(beta=2.0, causal=True)), 1e-4
    halves, sizes = [], (100, 400) if quick else (100, 400, 1600)
    for n in sizes:
        grid = np.linspace(np.log(n) - 3, np.log(n) + 3, 61)
        start = mf.Tokens.on_circle(np.append(delta, np.zeros(n - 1)))
        run = successful(mf.solve(model, start, (0, grid[-1]), t_eval=grid, rtol=1e-8))
        F = np.array([np.arctan2(x.x[:, 1], x.x[:, 0]) / delta for x in run])
        if n == 100:
            means = np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None]
            law = expm(grid[30] * (means - np.eye(n)))[:, 0]
            error = np.abs(F[30] - law).max()
            report.compare("F", "n = 100, t = log n", predicted=0, measured=error, tolerance=1e-6)
            times = np.linspace(0, 60, 1201)
            options = {"t_eval": times, "rtol": 1e-10}
            run = successful(mf.solve(model, start, (0, 60), **options))
            late = [1 - np.arctan2(x.x[-1, 1], x.x[-1, 0]) / delta for x in run]
            law = 1 + (1 / np.arange(1, n)).sum()
            numbers = {"predicted": law, "measured": simpson(late, x=times), "relative": True}
            report.compare("mean time to follow", "n = 100", **numbers, tolerance=1e-6)
        halves.append(np.interp(0.5, F[:, -1], grid))
        share = 1 - np.exp(-grid[30]) * far(grid[30], np.log(n))
        print(f"n = {n}: F_n = 1/2 at log n + {halves[-1] - np.log(n):.4f}; at t = log n"
              f" F_n = {F[30, -1]:.4f}, without sums {share:.4f}")  # fmt: skip
    slope = np.polyfit(np.log(sizes), halves, 1)[0]
    report.compare("slope of the times", "F_n = 1/2", predicted=1, measured=slope, tolerance=0.03)


def main() -> int:
    quick = command_line(__doc__, "the circle only, and fewer tokens").quick
    report = Report(["what", "case"])
    check_powers(report, quick)
    check_norms(report)
    check_sink(report)
    check_window(report)
    check_sum(report)
    check_kernel(report)
    check_blocks(report, quick)
    check_profiles(report)
    check_followers(report, quick)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
