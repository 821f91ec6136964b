"""Claim: densities on the torus follow the same equations as on spheres, for kernels W(x - y).

Coefficients of `Torus(degree)` at t = 1 are compared with independent code (full spectra, DOP853),
with noise: USA, SA, Kuramoto and a kernel that is not even. The uniform state loses stability to
the wave k at kappa = beta / prod_i I_{k_i}(beta) under USA, and perturbations grow at the rate
|k|^2 (W_k / Z_0 - 1/kappa). Without noise the density moves as 4096 tokens at quadrature nodes do.
Under a sum of kernels of one angle each, products of densities stay products, whose factors move
on circles. `Torus(degree, 1)` is the circle. Noise with a scale, of Stratonovich and of Ito, is
compared with the same code.

Asked: 1e-10 against independent code; onsets 1e-10, rates 1e-7, relative; tokens 1e-10; products
1e-11, at rtol 1e-12; the circle 1e-13; mass 1e-13.

    python validation/torus.py [--quick]    # 45 s, 25 s quick; exit code 1 on failure

References: Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020);
Abramowitz and Stegun, 9.6.34, for the multipliers.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from _torus_reference import coefficients_at
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf

BETA, DEGREE = 1.2, 24
WAVES = [(1, 0), (1, 1), (2, 1), (-2, 3), (0, 4)]


def cosines(z: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.cos(z) + np.cos(w)


def attention(z: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.exp(BETA * cosines(z, w))


def uneven(z: np.ndarray, w: np.ndarray) -> np.ndarray:
    return 0.6 * np.cos(z + 0.4) + 0.3 * np.sin(w - z) + 0.2 * np.cos(2 * w + z)


def initial(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.exp(0.5 * np.cos(a - 0.3) + 0.4 * np.sin(b) + 0.3 * np.cos(a - b))


CASES = {
    "USA": (mf.USA(BETA), lambda z, w: attention(z, w) / BETA, None, 1.5),
    "SA": (mf.SA(BETA), lambda z, w: attention(z, w) / BETA, attention, 6.0),
    "Kuramoto": (mf.Kuramoto(), cosines, None, 6.0),
    "a kernel that is not even": (mf.PeriodicKernel(uneven), uneven, None, 6.0),
}


def against_independent_code(report: Report) -> None:
    for name, (drift, W, Z, kappa) in CASES.items():
        model, start = mf.Transformer(drift, kappa=kappa), mf.Torus(DEGREE).density(initial)
        run = successful(
            mf.solve(
                model, start, (0, 1), t_eval=[1], rtol=1e-12, min_degree=DEGREE, max_degree=DEGREE
            )
        )
        found, space = run.final.coefficients, run.final.space
        expected = coefficients_at(initial, W, Z, kappa, 1.0, DEGREE)[tuple(space.waves.T)]
        report.compare(
            f"{name}, kappa = {kappa:g}: coefficients at t = 1, largest difference",
            predicted=0,
            measured=float(np.abs(found - expected).max()),
            tolerance=1e-10,
        )
        report.compare(
            f"{name}: mass at t = 1",
            predicted=1,
            measured=float(run.final.mass),
            tolerance=1e-13,
        )


def noise_with_a_scale(report: Report) -> None:
    def scale(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return 1 + 0.1 * np.cos(a) - 0.05 * np.sin(b) * np.cos(a)

    def of_points(x: np.ndarray) -> np.ndarray:
        return 1 + 0.1 * x[..., 0] - 0.05 * x[..., 3] * x[..., 0]

    degree, kernel = 16, CASES["USA"][1]
    options = {"t_eval": [0.5], "rtol": 1e-12, "min_degree": degree, "max_degree": degree}
    for kind in (mf.noise.MultiplicativeStratonovich, mf.noise.MultiplicativeIto):
        model = mf.Transformer(mf.USA(BETA), kappa=1.0, noise=kind(of_points))
        run = successful(mf.solve(model, mf.Torus(degree).density(initial), (0, 0.5), **options))
        found, waves = run.final.coefficients, run.final.space.waves
        expected = coefficients_at(
            initial, kernel, None, 1.0, 0.5, degree, scale=scale, power=kind.power
        )
        report.compare(
            f"USA under {kind.__name__}: coefficients at t = 0.5, largest difference",
            predicted=0,
            measured=float(np.abs(found - expected[tuple(waves.T)]).max()),
            tolerance=1e-10,
        )


def growth(drift: mf.Drift, kappa: float, wave: tuple[int, int], size: float = 1e-3) -> float:
    """Growth rate of a wave at the uniform state, from its rate of change at a small amplitude.

    The quadratic part of the equation moves the waves 0 and 2 k alone.
    """
    from meanfield.dynamics import DensityMotion

    space = mf.Torus(8)
    k = np.array(wave)
    place = space.places(k[None])[0]
    c = space.uniform().coefficients.copy()
    c[place] = size
    state = mf.Density(space, c)
    return (
        float(DensityMotion(mf.Transformer(drift, kappa=kappa), state).velocity(c)[place].real)
        / size
    )


def uniform_state(report: Report) -> None:
    for wave in WAVES:
        product = float(np.prod(iv(np.abs(wave), BETA)))
        onset = BETA / product
        found = brentq(
            lambda kappa, w=wave: growth(mf.USA(BETA), kappa, w),
            onset / 2,
            onset * 2,
            xtol=1e-13 * onset,
        )
        report.compare(
            f"USA, wave {wave}: kappa at which it becomes unstable",
            predicted=onset,
            measured=found,
            tolerance=1e-10,
            relative=True,
        )
        for name, drift, level in (
            ("USA", mf.USA(BETA), 1.0),
            ("SA", mf.SA(BETA), iv(0, BETA) ** 2),
        ):
            report.compare(
                f"{name}, wave {wave}, kappa = 3: growth rate",
                predicted=(wave[0] ** 2 + wave[1] ** 2) * (product / BETA / level - 1 / 3),
                measured=growth(drift, 3.0, wave, 1e-5),
                tolerance=1e-7,
                relative=True,
            )


def against_tokens(report: Report, points: int) -> None:
    torus = mf.Torus(64)
    start = torus.von_mises([0.3, 1.0], 0.5)
    angles = 2 * np.pi * np.arange(points) / points
    grid = np.stack([x.ravel() for x in np.meshgrid(angles, angles, indexing="ij")], axis=1)
    masses = start.at(torus.embed(grid))
    tokens = mf.Tokens.on_torus(grid, masses / masses.sum())
    for name, (drift, *_) in CASES.items():
        options = {"t_span": (0, 0.5), "t_eval": [0.5], "rtol": 1e-11}
        run, path = (
            successful(mf.solve(mf.Transformer(drift), x, **options)) for x in (start, tokens)
        )
        differences = [run.final.moment(k) - path.final.moment(k) for k in (1, 2, 3)]
        report.compare(
            f"{name} without noise: moments of {len(grid)} tokens at quadrature nodes, t = 0.5",
            predicted=0,
            measured=float(np.abs(differences).max()),
            tolerance=1e-10,
        )


def products(report: Report) -> None:
    circle, torus = mf.Circle(DEGREE), mf.Torus(DEGREE)
    factors = [
        circle.density(lambda x: np.exp(0.6 * np.cos(x - 0.3))),
        circle.density(lambda x: 1 + 0.5 * np.cos(x) + 0.2 * np.sin(2 * x)),
    ]
    options = {"t_span": (0, 1), "t_eval": [1], "rtol": 1e-12}
    limits = {"min_degree": DEGREE, "max_degree": DEGREE}
    drift = mf.PeriodicKernel(lambda z, w: np.cos(z) + 0.7 * np.cos(w) + 0.2 * np.cos(2 * w))
    of_each = [mf.CosineSeries([0.0, 1.0]), mf.CosineSeries([0.0, 0.7, 0.2])]
    run = successful(
        mf.solve(mf.Transformer(drift, kappa=3.0), torus.product(factors), **options, **limits)
    )
    apart = [
        successful(mf.solve(mf.Transformer(one, kappa=3.0), mu, **options, **limits)).final
        for one, mu in zip(of_each, factors, strict=True)
    ]
    expected = torus.product(apart).coefficients
    report.compare(
        "a sum of kernels of one angle: the product of the densities on circles, t = 1",
        predicted=0,
        measured=float(np.abs(run.final.coefficients - expected).max()),
        tolerance=1e-11,
    )


def the_circle(report: Report) -> None:
    for drift in (mf.USA(2.0), mf.SA(2.0), mf.Kuramoto()):
        final = [
            successful(
                mf.solve(
                    mf.Transformer(drift, kappa=2.0),
                    space.density(lambda x: np.exp(0.5 * np.cos(x) + 0.3 * np.sin(2 * x))),
                    (0, 1),
                    dt=0.01,
                    min_degree=48,
                    max_degree=48,
                )
            ).final
            for space in (mf.Circle(48), mf.Torus(48, 1))
        ]
        report.compare(
            f"{drift!r} on Torus(48, 1) and Circle(48): coefficients at t = 1",
            predicted=0,
            measured=float(np.abs(final[0].coefficients - final[1].coefficients).max()),
            tolerance=1e-13,
        )


def main() -> int:
    quick = command_line(__doc__).quick
    report = Report(["case"])
    against_independent_code(report)
    noise_with_a_scale(report)
    uniform_state(report)
    against_tokens(report, 40 if quick else 64)
    products(report)
    the_circle(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
