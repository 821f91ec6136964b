"""Claim: densities on S^2, and axisymmetric ones in any dimension, follow exact solutions.

Compared, in this order, with

1. moments of f_0 = 1 + 0.5 P_1 on S^2 without noise, printed to 12 digits, through `Sphere` and
   through `Zonal(3, .)`, rtol = 1e-10. Asked: 1e-9.
2. the same run from the initial density turned by a random rotation: the turned solution, in
   the largest value at 200 points, relative. Asked: 1e-11.
3. Kuramoto's Moebius flow of ((1 - |a|^2)/|x - a|^2)^(d - 1), a' = (1 - |a|^2) m(a)/2, for d = 3
   (`Sphere`, a turned axis), 4 and 8: moments of degree 1, 2, 3 at t = 1. Asked: 1e-10.
4. the heat equation: a potential of 0 leaves exp(-l(l + d - 2) t/kappa). Asked: 1e-12, relative.
5. growth and decay of degrees 1 to 6 on the uniform state for d = 2, 3 (`Sphere`), 5, 64, USA and
   SA, beta = 1 and 5, with noise and without. Asked: 1e-6, relative.
6. `Zonal(2, .)` and `Circle`, and `Zonal(3, .)` and `Sphere`, from the same density, in the same
   steps and degree. Asked: 1e-13.

    python validation/spheres.py    # 5 s; exit code 1 on failure

References: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794; the Moebius flow and
the rates are classical.
"""

import sys

import numpy as np
from _report import Report, successful
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
from scipy.special import eval_gegenbauer

import meanfield as mf
from meanfield.lowlevel.legendre import gauss
from meanfield.spaces.kernels import exponential_multipliers

MOMENTS = {
    ("USA", 1.0, 0.25): (0.200240894197, 0.011684495564, 0.000676406191),
    ("USA", 1.0, 0.5): (0.240304569172, 0.029771759481, 0.003659213157),
    ("USA", 1.0, 1.0): (0.343882819150, 0.096723216195, 0.026996342478),
    ("SA", 1.0, 0.25): (0.194465779497, 0.006657492577, -0.000345350713),
    ("SA", 1.0, 1.0): (0.305608403731, 0.049281047527, 0.004157427565),
    ("SA", 4.0, 0.25): (0.182872204408, 0.001492282729, -0.000317943032),
    ("SA", 4.0, 1.0): (0.241157403152, 0.010248136389, -0.001787552864),
    ("USA", 4.0, 0.25): (0.321758026190, 0.109886350497, 0.048410751160),
}
DRIFTS = {"USA": mf.USA, "SA": mf.SA}


def final(model: mf.Transformer, start: mf.Density, t: float, **options) -> mf.Density:
    """The density at time t."""
    return successful(mf.solve(model, start, (0, t), t_eval=[t], **options)).final


def legendre_moment(density: mf.Density, k: int) -> float:
    """int P_k(z) dmu."""
    return float(np.real(np.ravel(density.moment(k))[0]))


def moments(report: Report) -> None:
    for (name, beta, t), expected in MOMENTS.items():
        for space in (mf.Sphere(16), mf.Zonal(3, 16)):
            end = final(mf.Transformer(DRIFTS[name](beta)), space.zonal([1, 0.5]), t, rtol=1e-10)
            for k, value in enumerate(expected, start=1):
                case = f"{name} {beta:g}, t = {t:g}, {type(space).__name__}: moment {k}"
                report.compare(
                    case,
                    predicted=value,
                    measured=legendre_moment(end, k),
                    tolerance=1e-9,
                )


def rotations(report: Report) -> None:
    turn = Rotation.random(random_state=7)
    points = np.random.default_rng(0).standard_normal((200, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    start = mf.Sphere(24).density(lambda x, y, z: 1 + 0.3 * z + 0.2 * x * y + 0.1 * (x**2 - z**2))
    for name, drift in DRIFTS.items():
        model = mf.Transformer(drift(2.0), 8.0)
        straight = final(model, start, 0.5).at(points)
        turned = final(model, start.rotate(turn), 0.5).at(turn.apply(points))
        error = np.abs(turned - straight).max() / straight.max()
        report.compare(f"{name} 2, rotated start", predicted=0.0, measured=error, tolerance=1e-11)


def moebius(report: Report) -> None:
    for d in (3, 4, 8):
        nodes, weights = gauss(400, d)

        def density(a, x, d=d):
            return ((1 - a * a) / (1 - 2 * a * x + a * a)) ** (d - 1)

        def slope(_t, a, nodes=nodes, weights=weights, density=density):
            return (1 - a * a) / 2 * ((density(a[0], nodes) * nodes) @ weights)

        ode = solve_ivp(slope, (0, 1), [0.2], rtol=1e-13, atol=1e-15, method="DOP853")
        if d == 3:
            space = mf.Sphere(64)
            start = space.density(
                lambda x, y, z, density=density: density(0.2, 0.48 * x + 0.64 * y + 0.6 * z)
            )
        else:
            space = mf.Zonal(d, 64)
            start = space.density(lambda x: density(0.2, x))
        end = final(mf.Transformer(mf.Kuramoto()), start, 1.0, rtol=1e-11)
        exact = density(ode.y[0, -1], nodes) * weights
        for k in (1, 2, 3):
            half = d / 2 - 1
            values = eval_gegenbauer(k, half, nodes) / eval_gegenbauer(k, half, 1.0)
            report.compare(
                f"Moebius flow, d = {d}: moment {k}",
                predicted=exact @ values,
                measured=float(end.space.amplitude(end.coefficients, k)),
                tolerance=1e-10,
            )


def heat(report: Report) -> None:
    still = mf.Interaction(lambda t: 0 * t, name="none")
    for space in (mf.Sphere(16), mf.Zonal(8, 16), mf.Zonal(64, 16)):
        d, kappa, t = space.dimension, 5.0, 0.2
        start = space.zonal([1, 0.4, 0.3])
        end = final(mf.Transformer(still, kappa), start, t)
        for l in (1, 2):
            report.compare(
                f"heat, d = {d}: degree {l}",
                predicted=np.exp(-l * (l + d - 2) * t / kappa),
                measured=legendre_moment(end, l) / legendre_moment(start, l),
                tolerance=1e-12,
                relative=True,
            )


def growth(report: Report) -> None:
    for d in (2, 3, 5, 64):
        space = mf.Sphere(16) if d == 3 else mf.Zonal(d, 16)
        for name, drift in DRIFTS.items():
            for beta in (1.0, 5.0):
                multipliers = exponential_multipliers(beta, 6, d) * np.exp(beta)
                scale = beta * (multipliers[0] if name == "SA" else 1.0)
                for kappa in (np.inf, 4 / 3 * scale / multipliers[1]):
                    model = mf.Transformer(drift(beta), kappa)
                    l = np.arange(1, 7)
                    rates = l * (l + d - 2) * (multipliers[1:] / scale - 1 / kappa)
                    for k, rate in zip(l, rates, strict=True):
                        report.compare(
                            f"{name} {beta:g}, kappa = {kappa:.4g}, d = {d}: degree {k}",
                            predicted=rate,
                            measured=measured_rate(space, model, k, rate, rates.max()),
                            tolerance=1e-6,
                            relative=True,
                        )


def measured_rate(space, model: mf.Transformer, k: int, rate: float, fastest: float) -> float:
    """From perturbations of both signs, of which the second order cancels."""
    end, size = 1 / max(abs(rate), 0.1 * fastest), 1e-6
    place = np.flatnonzero(space.degrees == k)[0]
    c = np.zeros((2, space.degrees.size))
    c[:, 0], c[:, place] = 1, [size, -size]
    after = final(model, mf.Density(space, c), end, dt=end / 400)
    place = np.flatnonzero(after.space.degrees == k)[0]
    return float(np.log(np.abs(after.coefficients[:, place]) / size).mean() / end)


def same(report: Report) -> None:
    pairs = {
        "Zonal(2) and Circle": (
            mf.Zonal(2, 24).zonal([1, 0.5, 0.2]),
            mf.Circle(24).fourier([1, 0.25, 0.1]),
        ),
        "Zonal(3) and Sphere": (
            mf.Zonal(3, 24).zonal([1, 0.5, 0.2]),
            mf.Sphere(24).zonal([1, 0.5, 0.2]),
        ),
    }
    for name, starts in pairs.items():
        for drift in (mf.USA(2.0), mf.SA(4.0)):
            model, same = (
                mf.Transformer(drift, 6.0),
                {"dt": 1 / 64, "min_degree": 64, "max_degree": 64},
            )
            ends = [final(model, start, 1.0, **same) for start in starts]
            difference = max(
                abs(end[0] - end[1])
                for k in range(1, 12)
                for end in [[float(e.space.amplitude(e.coefficients, k)) for e in ends]]
            )
            report.compare(
                f"{name}, {drift!r}", predicted=0.0, measured=difference, tolerance=1e-13
            )


def main() -> int:
    report = Report(["case"])
    for part in (moments, rotations, moebius, heat, growth, same):
        part(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
