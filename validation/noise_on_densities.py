"""Claim: anisotropic and multiplicative noise move densities as they move tokens.

Stationary: without a drift densities end in the known ones, <x, Sigma^-1 x>^(-(d-1)/2) for
`Anisotropic(Sigma)`, 1/s and 1/s^2 for `MultiplicativeStratonovich(s)` and `MultiplicativeIto(s)`,
on the circle and S^2. Asked: values to 1e-9.

Rates: on the circle the first two are Brownian motions in phi, d phi = d theta / s, where
s^2 = <e, Sigma e> for the unit tangent e, with double eigenvalues -k^2/<1/s>^2, k <= 6; Ito's has
those of s^2 f'' = lambda f, by collocation. On S^2 axisymmetric functions have those of
c(z) ((1 - z^2) f')' = lambda f, by collocation of Legendre polynomials: c = a z^2 + b (1 - z^2) for
Sigma = diag(a, a, b), and c = s^2 for Ito's with s = s(z). Asked: 1e-8.

Onset: for Sigma = diag(1 + e, 1 - e), e = 0.3, the stationary density of Kuramoto on the circle
becomes unstable, to order along the first axis, at

    1/kappa_c = <A cos/s> / <1/s>,  A = artanh(sqrt(2e/(1+e)) cos theta)/sqrt(2e(1+e)),

that is at 2.084202557, and along the second one, where e is negative, at 1.785096547. Measured: the
root of the growth rate that two times of a run tell, each kappa a member of an ensemble: the
logarithm of a small moment is a parabola in kappa nearby. Asked: 1e-9.

Runs: moments 1 to 4 under Kuramoto and SA on the circle, at rtol 1e-11, against a method of lines
with values at 96 angles and Fourier's derivatives, integrated by scipy. On S^2 against the matrix
of L* on degrees 1 to 31, integrated by scipy. Asked: 1e-9; mass to 1e-13.

Tokens: means of 100 000 under SA, on the circle and S^2, by steps of 0.05. Asked: 4.5 standard
errors.

    python validation/noise_on_densities.py [--quick]    # 22 s, 11 s quick

--quick leaves out S^2 where it is slow, and three of four means of tokens. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp

import meanfield as mf

NOTHING = mf.Interaction.chebyshev([0.0, 0.0], name="nothing")
SIGMA = np.array([[1.3, 0.15, -0.1], [0.15, 0.9, 0.05], [-0.1, 0.05, 0.8]])
CIRCLE, SPHERE = mf.Circle(64), mf.Sphere(24)
ERRORS = 4.5  # standard errors


def scale(x: np.ndarray) -> np.ndarray:
    return 1 + 0.2 * x[..., 0] - 0.1 * x[..., -1] * x[..., 0]


def kinds(d: int) -> dict[str, mf.Noise]:
    return {
        "Anisotropic": mf.noise.Anisotropic(SIGMA[:d, :d]),
        "Stratonovich": mf.noise.MultiplicativeStratonovich(scale),
        "Ito": mf.noise.MultiplicativeIto(scale),
    }


def stationary(report: Report) -> None:
    for space in (CIRCLE, SPHERE):
        x, d = space.points, space.dimension
        q = np.einsum("ni,ij,nj->n", x, np.linalg.inv(SIGMA[:d, :d]), x)
        known = {"Anisotropic": q ** (-(d - 1) / 2), "Stratonovich": 1 / scale(x)}
        known["Ito"] = known["Stratonovich"] ** 2
        for name, noise in kinds(d).items():
            model = mf.Transformer(NOTHING, 1.0, noise=noise)
            run = mf.solve(model, space.uniform(), (0, 60), t_eval=[60], rtol=1e-11)
            expected = known[name] / (space.weights @ known[name])
            error = np.abs(successful(run).final.at(x) - expected).max()
            report.compare(
                f"stationary, d = {d}", name, predicted=0, measured=error, tolerance=1e-9
            )


def slowest(noise: mf.Noise, space: mf.Circle | mf.Sphere) -> np.ndarray:
    """Eigenvalues of the matrix of L*, without those of coefficients that are always 0."""
    live = np.delete(np.arange(2 * space.degrees.size), 1 + 2 * np.flatnonzero(space.parseval == 1))
    return np.sort(np.linalg.eigvals(noise.generator(space)[np.ix_(live, live)]).real)[::-1]


def rates(report: Report) -> None:
    n = 161
    k = np.arange(n)
    theta = 2 * np.pi * k / n
    speeds = {
        "Anisotropic": np.sqrt(
            0.9 * np.cos(theta) ** 2 + 1.3 * np.sin(theta) ** 2 - 0.15 * np.sin(2 * theta)
        ),
        "Stratonovich": scale(mf.Circle.embed(theta)),
    }
    known = {
        name: -(np.repeat(np.arange(7), 2)[1:] ** 2) / np.mean(1 / s) ** 2
        for name, s in speeds.items()
    }
    second = np.append(
        -(n**2 - 1) / 12,
        -0.5 * (-1.0) ** k[1:] / np.sin(theta[1:] / 2) / np.tan(theta[1:] / 2),
    )[(k[:, None] - k) % n]
    ito = speeds["Stratonovich"][:, None] ** 2 * second
    known["Ito"] = np.sort(np.linalg.eigvals(ito).real)[::-1][:13]
    for name, noise in kinds(2).items():
        error = np.abs(slowest(noise, CIRCLE)[:13] - known[name]).max()
        report.compare("13 rates, d = 2", name, predicted=0, measured=error, tolerance=1e-8)
    z, _ = np.polynomial.legendre.leggauss(48)
    values, l = np.polynomial.legendre.legvander(z, 47), np.arange(48)
    for name, noise, c in (
        (
            "Anisotropic",
            mf.noise.Anisotropic(np.diag([0.9, 0.9, 1.2])),
            0.9 * z**2 + 1.2 * (1 - z**2),
        ),
        ("Ito", mf.noise.MultiplicativeIto(lambda x: 1 + 0.1 * x[..., 2]), (1 + 0.1 * z) ** 2),
    ):
        operator = np.linalg.solve(values, c[:, None] * values * (-l * (l + 1.0)))
        expected = np.sort(np.linalg.eigvals(operator).real)[::-1][:6]
        found = slowest(noise, mf.Sphere(20))
        error = max(np.abs(found - rate).min() for rate in expected)
        report.compare("6 rates, d = 3", name, predicted=0, measured=error, tolerance=1e-8)


def onset(report: Report) -> None:
    theta = 2 * np.pi * np.arange(512) / 512
    noise = mf.noise.Anisotropic(np.diag([1.3, 0.7]))
    for axis, e in ((0, 0.3), (1, -0.3)):
        s, c = np.sqrt(1 - e * np.cos(2 * theta)), np.cos(theta)
        root = np.sqrt(complex(2 * e / (1 + e)))
        a = (np.arctanh(root * c) / (root * (1 + e))).real
        predicted = np.mean(1 / s) / np.mean(a * c / s)
        still = successful(
            mf.solve(mf.Transformer(NOTHING, 1.0, noise=noise), CIRCLE.uniform(), (0, 60))
        ).final
        tilt = CIRCLE.density(lambda t, axis=axis: 1 + 1e-5 * np.cos(t - axis * np.pi / 2))
        start = still.resample(64).coefficients + tilt.coefficients - CIRCLE.uniform().coefficients
        kappas = predicted + np.array([-0.01, 0.0, 0.012])
        model = mf.Transformer(mf.Kuramoto(), kappas, noise=noise)
        times = [20.0, 40.0]  # the other modes are gone, and the moment is small
        run = successful(
            mf.solve(model, mf.Density(CIRCLE, start), (0, 40), t_eval=times, rtol=1e-13)
        )
        growth = np.log(np.abs(run[1].moment(1)) / np.abs(run[0].moment(1)))
        parabola = np.polyfit(kappas - predicted, growth, 2)
        measured = predicted + min(np.roots(parabola), key=abs).real
        report.compare(
            "onset, Kuramoto",
            f"axis {axis + 1}",
            predicted=predicted,
            measured=measured,
            tolerance=1e-9,
        )


def lines(name: str, beta: float, kappa: float, t: float) -> np.ndarray:
    """Moments 1 to 4 at t under SA(beta), or Kuramoto for beta = 0, by a method of lines."""
    n = 96
    theta = 2 * np.pi * np.arange(n) / n
    k = np.fft.rfftfreq(n, 1 / n)
    s = scale(mf.Circle.embed(theta))
    if name == "Anisotropic":
        s = np.sqrt(0.9 * np.cos(theta) ** 2 + 1.3 * np.sin(theta) ** 2 - 0.15 * np.sin(2 * theta))
    difference = theta - theta[:, None]  # from the one that moves to the one that pulls
    weights = np.exp(beta * (np.cos(difference) - 1))

    def slope(f: np.ndarray) -> np.ndarray:
        return np.fft.irfft(1j * k * np.fft.rfft(f), n)

    def change(_t: float, mu: np.ndarray) -> np.ndarray:
        v = (weights * np.sin(difference)) @ mu / (weights @ mu if beta else mu.sum())
        flux = slope(s**2 * mu) if name == "Ito" else s * slope(s * mu)
        return slope(flux / kappa - mu * v)

    mu = initial(mf.Circle(47)).at(mf.Circle.embed(theta))
    mu = solve_ivp(change, (0, t), mu, method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    return np.array([np.mean(mu * np.exp(1j * m * theta)) for m in (1, 2, 3, 4)])


def initial(space: mf.Circle | mf.Sphere) -> mf.Density:
    if space.dimension == 2:
        return space.density(lambda t: np.exp(np.cos(t - 0.4)))
    return space.density(lambda x, y, z: np.exp(0.5 * z + 0.3 * x * y))


def runs(report: Report, quick: bool) -> None:
    for drift, beta in ((mf.Kuramoto(), 0.0), (mf.SA(2.0), 2.0)):
        for name, noise in kinds(2).items():
            model, what = mf.Transformer(drift, 3.0, noise=noise), type(drift).__name__
            start = initial(mf.Circle(32))
            run = successful(mf.solve(model, start, (0, 1), t_eval=[1.0], rtol=1e-11))
            found = np.array([run.final.moment(m) for m in (1, 2, 3, 4)])
            error = np.abs(found - lines(name, beta, 3.0, 1.0)).max()
            report.compare(f"{what}, d = 2", name, predicted=0, measured=error, tolerance=1e-9)
            report.compare(
                f"{what}, d = 2", "mass", predicted=1, measured=run.final.mass, tolerance=1e-13
            )
    fine = mf.Sphere(31)
    for name, noise in list(kinds(3).items())[: 1 if quick else 3]:
        model, start = mf.Transformer(mf.SA(2.0), 3.0, noise=noise), initial(mf.Sphere(15))
        run = successful(mf.solve(model, start, (0, 0.5), t_eval=[0.5], rtol=1e-11))
        matrix = noise.generator(fine) / 3.0
        transport = fine.transport(
            mf.SA(2.0).attraction(31, 3)[None], mf.SA(2.0).normaliser(31, 3)[None], 1
        )

        def change(_t, y, matrix=matrix, transport=transport):
            return matrix @ y + transport(y.view(complex)[None])[0].view(float)

        y = start.resample(31).coefficients.view(float)
        y = solve_ivp(change, (0, 0.5), y, method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
        expected = y.copy().view(complex)[fine.degrees <= 4]
        error = np.abs(run.final.resample(4).coefficients - expected).max()
        report.compare("SA, d = 3", name, predicted=0, measured=error, tolerance=1e-9)


def tokens(report: Report, quick: bool) -> None:
    functions = {
        "x": lambda x: x[..., 0],
        "y": lambda x: x[..., 1],
        "x y": lambda x: x[..., 0] * x[..., 1],
        "x^2": lambda x: x[..., 0] ** 2,
    }
    for space in (mf.Circle(32),) if quick else (mf.Circle(32), mf.Sphere(15)):
        for name, noise in kinds(space.dimension).items():
            model, start = mf.Transformer(mf.SA(2.0), 2.0, noise=noise), initial(space)
            law = successful(mf.solve(model, start, (0, 0.6), t_eval=[0.6])).final
            sample = start.sample(100_000, rng=1)
            run = mf.solve(model, sample, (0, 0.6), t_eval=[0.6], dt=0.05, rng=2)
            for which, f in list(functions.items())[: 1 if quick else 4]:
                values = f(successful(run).final.x)
                report.compare(
                    f"tokens, d = {space.dimension}",
                    f"{name}: {which}",
                    predicted=law.expect(f),
                    measured=values.mean(),
                    tolerance=ERRORS * values.std() / np.sqrt(values.size),
                    random=True,
                )


def main() -> int:
    quick = command_line(__doc__, "fewer cases on S^2, fewer means").quick
    report = Report(["what", "which"])
    stationary(report)
    rates(report)
    onset(report)
    runs(report, quick)
    tokens(report, quick)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
