"""Claim: oscillators with natural frequencies, and classes with couplings, follow their equations.

Kuramoto's model, theta' = omega + K r sin(psi - theta) + noise of 1/kappa, is a density for each
omega (`OfIndex`), or one density under `Lorentzian(Delta)`, whose moments follow

    z_k' = -(k Delta + k^2/kappa) z_k + (k K/2)(r z_{k-1} - r z_{k+1}),   z_1 = r.

1. Without noise Poisson kernels stay such (Ott and Antonsen), with a = K - 2 Delta and x = r^2:
   x(t) = a/(K + (a/x(0) - K) e^{-a t}), and psi turns with the centre of the law. Moments 1 to 8:
   1e-9. At last r = sqrt(1 - 2 Delta/K): 1e-9.
2. With noise the rate of r near 0 is (K - K_c)/2, K_c = 2(Delta + 1/kappa), from two values of K:
   1e-9. Beyond it, moments 1 to 4 against SciPy with 40 moments: 1e-9.
3. The pole is a contour integral: if z_1(omega, 0) is analytic where the poles are and decays, the
   mean over omega moves as the density that starts with its value at the pole. Here it is
   0.4/(1 - i omega/2)^2, and 0.4/(1 + Delta/2)^2. Against `Classes`, every 0.2 between -50 and 50
   with the law as coupling, with noise and without; left out is e^{-2 pi Delta/0.2} and what lies
   beyond 50: 1e-5.
4. Gaussian frequencies of width sigma, with noise: the uniform state grows at the root of
   1 = (K/2) int g(omega)/(rate + 1/kappa + i omega) domega
     = (K/2) sqrt(pi/2)/sigma erfcx((rate + 1/kappa)/(sigma sqrt 2)),
   measured from the eigenvector, with 96 nodes: 1e-6. Without noise locked
   oscillators are Diracs, which no density shows.
5. Three classes with couplings J, not symmetric and of both signs, and frequencies, under Kuramoto
   and USA with noise against dense matrices by SciPy at rtol = 1e-11: 1e-9. So SA, J >= 0.
6. Two equal classes that attract within and repel across, J = 1 and -2: at last they are in
   opposite phases, with r the root of r = I_1(3 kappa r/2)/I_0(3 kappa r/2): 1e-8.

    python validation/oscillators.py [--quick]    # 20 s, 7 s quick

--quick has one case each of 1 to 4. Exit code 1 on failure.

References: Ott and Antonsen, Chaos 18 (2008) 037113; Sakaguchi, Prog. Theor. Phys. 79 (1988) 39,
and Strogatz and Mirollo, J. Stat. Phys. 63 (1991) 613, for noise.
"""

import sys

import numpy as np
from _indexed_reference import Attraction, moved_values
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import erfcx, ive

import meanfield as mf

DELTA = 0.5


def kuramoto(K: float, kappa: float, frequency) -> mf.Transformer:
    return mf.Transformer(K * mf.Kuramoto(), kappa, frequency=frequency)


def moments(density, count: int) -> np.ndarray:
    return np.array([density.moment(k) for k in range(1, count + 1)])


def check_poisson(report: Report, quick: bool) -> None:
    start = mf.Circle(64).density(lambda x: 0.91 / (1.09 - 0.6 * np.cos(x - 0.7)))
    for K in (3.0,) if quick else (0.8, 1.0, 3.0):
        a, model = K - 2 * DELTA, kuramoto(K, np.inf, mf.Lorentzian(DELTA, centre=0.4))
        times = [1.0, 2.0, 4.0]
        run = successful(mf.solve(model, start, (0, 4), t_eval=times, rtol=1e-11))
        for t, density in zip(times, run, strict=True):
            grown = t * K if a == 0 else K * -np.expm1(-a * t) / a
            r = np.sqrt(1 / (grown + np.exp(-a * t) / 0.09))
            exact = (r * np.exp(0.7j + 0.4j * t)) ** np.arange(1, 9)
            error = np.abs(moments(density, 8) - exact).max()
            report.compare("Ott-Antonsen", f"K = {K:g}, t = {t:g}, r = {r:.4f}",
                           predicted=0, measured=error, tolerance=1e-9)  # fmt: skip
    run = successful(mf.solve(model, start, (0, 30), t_eval=[30.0], rtol=1e-11))
    numbers = {"predicted": np.sqrt(1 - 2 * DELTA / K), "measured": abs(run.final.moment(1))}
    report.compare("r at last", "K = 3", **numbers, tolerance=1e-9)


def check_threshold(report: Report, quick: bool) -> None:
    start, size = mf.Circle(16).density(lambda x: 1 + 2e-5 * np.cos(x)), 1e-5
    cases = ((0.5, 4.0), (0.2, 1.5), (1.0, np.inf))
    for width, kappa in cases[: 1 if quick else None]:
        predicted, rates = 2 * (width + 1 / kappa), []
        couplings = predicted + np.array([-0.2, 0.3])
        for K in couplings:
            model = kuramoto(K, kappa, mf.Lorentzian(width, centre=1.3))
            end = successful(mf.solve(model, start, (0, 4), t_eval=[4.0], dt=1 / 200)).final
            rates.append(np.log(abs(end.moment(1)) / size) / 4)
        found = couplings[0] - rates[0] * np.diff(couplings)[0] / (rates[1] - rates[0])
        numbers = {"predicted": predicted, "measured": found, "tolerance": 1e-9}
        report.compare("K_c", f"Delta = {width:g}, kappa = {kappa:g}", **numbers)


def by_pole(z, K, kappa, end) -> np.ndarray:
    """The moments z_1, ... at the time `end`, of 40."""
    k = np.arange(1, 41)

    def rate(_, z):
        before, after = np.append(1, z[:-1]), np.append(z[1:], 0)
        return -(k * DELTA + k**2 / kappa) * z + k * K / 2 * (z[0] * before - np.conj(z[0]) * after)

    full = np.zeros(40, dtype=complex)
    full[: len(z)] = z
    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14}
    return solve_ivp(rate, (0, end), full, **options).y[:, -1]


def check_noise(report: Report, quick: bool) -> None:
    start = mf.Circle(32).density(lambda x: 1 + 0.5 * np.cos(x - 0.4) + 0.3 * np.cos(2 * x))
    cases = ((2.5, 4.0), (1.0, 4.0), (4.0, 10.0))
    for K, kappa in cases[: 1 if quick else None]:
        model = kuramoto(K, kappa, mf.Lorentzian(DELTA))
        run = successful(mf.solve(model, start, (0, 3), t_eval=[3.0], rtol=1e-11))
        exact = by_pole([0.25 * np.exp(0.4j), 0.15], K, kappa, 3.0)[:4]
        error = np.abs(moments(run.final, 4) - exact).max()
        label = f"K = {K:g}, kappa = {kappa:g}, r = {abs(exact[0]):.4f}"
        report.compare("Lorentzian", label, predicted=0, measured=error, tolerance=1e-9)


def check_pole(report: Report, quick: bool) -> None:
    step, K = 0.2, 3.0
    omega = np.arange(-50, 50 + step / 2, step)
    law = step * DELTA / np.pi / (omega**2 + DELTA**2)
    coupling = np.tile(K * law * omega.size, (omega.size, 1))
    start = mf.Circle(24).indexed(
        lambda w, x: 1 + 2 * np.real(0.4 / (1 - 0.5j * w) ** 2 * np.exp(-1j * x)),
        mf.Classes(omega),
    )
    for kappa in (4.0,) if quick else (4.0, np.inf):
        model = mf.Transformer(mf.Kuramoto(), kappa, coupling=coupling, frequency=mf.OfIndex())
        run = successful(mf.solve(model, start, (0, 1.5), t_eval=[1.5], rtol=1e-9))
        found = np.array([run.final.moment(k) @ law for k in (1, 2)])
        exact = by_pole([0.4 / (1 + 0.5 * DELTA) ** 2], K, kappa, 1.5)[:2]
        error = np.abs(found - exact).max()
        label = f"{omega.size} classes, kappa = {kappa:g}, r = {abs(exact[0]):.4f}"
        report.compare("pole - quadrature", label, predicted=0, measured=error, tolerance=1e-5)


def check_gaussian(report: Report, quick: bool) -> None:
    size = 1e-5
    cases = ((3.0, 0.5, 2.0), (4.0, 1.0, 4.0), (2.0, 0.5, 1.0))
    for K, sigma, kappa in cases[: 1 if quick else None]:

        def average(p, sigma=sigma):  # int g/(p + i omega)
            return np.sqrt(np.pi / 2) / sigma * erfcx(p / (sigma * np.sqrt(2)))

        threshold = 2 / average(1 / kappa)
        p = brentq(lambda p: K * average(p) / 2 - 1, 1e-3, 10)  # noqa: B023
        rate = p - 1 / kappa
        model = kuramoto(K, kappa, mf.OfIndex())
        start = mf.Circle(12).indexed(
            lambda w, x: 1 + 2 * size * np.real(p / (p - 1j * w) * np.exp(-1j * x)),  # noqa: B023
            mf.NormalIndex(sigma, 96),
        )
        run = successful(mf.solve(model, start, (0, 2), t_eval=[2.0], dt=1 / 200))
        found = np.abs(run.final.marginal().moment(1) / start.marginal().moment(1))
        label = f"K = {K:g}, sigma = {sigma:g}, kappa = {kappa:g}, K_c = {threshold:.6f}"
        numbers = {"predicted": rate, "measured": np.log(found) / 2, "tolerance": 1e-6}
        report.compare("Gaussian, rate", label, **numbers)


def check_classes(report: Report) -> None:
    values, shares = np.array([-1.0, 0.5, 2.0]), np.array([0.5, 0.2, 0.3])
    mixed = np.array([[1.0, -2.0, 0.5], [0.3, 2.0, 1.5], [-1.0, 0.4, 0.8]])
    angles, kappa = 2 * np.pi * np.arange(64) / 64, 5.0

    def law(s, x):
        return 1 + 0.4 * np.cos(x - s) + 0.2 * np.sin(2 * x)

    start = mf.Circle(28).indexed(law, mf.Classes(values, shares))
    for name, drift, other, J in (
        ("Kuramoto", mf.Kuramoto(), Attraction(0.0, False), mixed),
        ("USA", mf.USA(1.0), Attraction(1.0, False), mixed),
        ("SA", mf.SA(2.0), Attraction(2.0, True), np.abs(mixed)),
    ):
        for factor in (0.0, 1.0):
            turning = mf.OfIndex(factor) if factor else None
            model = mf.Transformer(drift, kappa, coupling=J, frequency=turning)
            run = successful(mf.solve(model, start, (0, 1), t_eval=[1.0], rtol=1e-11))
            dense = law(values[:, None], angles)
            options = {"turning": factor * values}
            end = moved_values(dense, J * shares, other, kappa, [1.0], **options)[0]
            exact = np.stack([(end * np.exp(1j * k * angles)).mean(axis=1) for k in range(1, 5)])
            error = np.abs(np.stack([run.final.moment(k) for k in range(1, 5)]) - exact).max()
            label = f"{name}, {'with' if factor else 'no'} frequencies"
            report.compare("classes - SciPy", label, predicted=0, measured=error, tolerance=1e-9)


def check_camps(report: Report) -> None:
    """Two classes, in opposite phases at last."""
    kappa, J = 3.0, np.array([[1.0, -2.0], [-2.0, 1.0]])
    start = mf.Circle(24).indexed(
        lambda s, x: 1 + 0.3 * np.cos(x - 0.5 * s) + 0.1 * s * np.sin(x), mf.Classes([0.0, 1.0])
    )
    model = mf.Transformer(mf.Kuramoto(), kappa, coupling=J)
    run = successful(mf.solve(model, start, (0, 150), t_eval=[150.0], rtol=1e-10))
    r = brentq(lambda r: ive(1, 1.5 * kappa * r) / ive(0, 1.5 * kappa * r) - r, 0.1, 1)
    found = run.final.moment(1)
    error = max(abs(abs(found[0]) - r), abs(found.sum()))
    report.compare("opposite camps", f"r = {r:.6f}", predicted=0, measured=error, tolerance=1e-8)


def main() -> int:
    quick = command_line(__doc__, "one case of each kind").quick
    report = Report(["what", "case"])
    check_poisson(report, quick)
    check_threshold(report, quick)
    check_noise(report, quick)
    check_pole(report, quick)
    check_gaussian(report, quick)
    check_classes(report)
    check_camps(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
