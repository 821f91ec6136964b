"""Claim: what anisotropic and multiplicative noise do to onsets, branches and phases.

1. Kuramoto on the circle under Sigma = diag(1 + e, 1 - e): 1/kappa_c = (int cos A/s)/(int 1/s), s^2
   = 1 - e cos 2 theta, A = artanh(sqrt(2e/(1 + e)) cos theta)/sqrt(2e(1 + e)), for order along the
   first axis, with -e for the second; e = 0.3, 0.6: 1e-10. For e = 0.3 only the branch along the
   second is stable.
2. Under isotropic Sigma states, eigenvalues and the onset are those of isotropic noise: 1e-10.
3. Multiplicative noise in the sense of Ito with an even scale: both onsets of Kuramoto coincide:
   1e-10, relative.
4. The largest eigenvalue is the rate at which `solve` leaves the state: 1e-6; ends of runs are the
   states that Newton's method finds: 1e-9 in all coefficients.
5. Scale 1 + a cos theta, Stratonovich: no onset; the other states begin at a fold, (kappa_f - 2)/
   (a/2)^(2/3) tends to 3 as a tends to 0: by extrapolation in a^(2/3), 1e-2. For USA(4) the state
   without order has two folds, which meet in a cusp: their distance to the power 2/3 is linear, and
   1 % below and above the cusp there are two and none.
6. S^2, Kuramoto, Sigma = diag(1.2, 1, 0.8): three onsets. Only the branch of the first is stable;
   on the others, eigenvalues across the axis are positive. The onsets under diag(1 + e, 1, 1 - e)
   are 3 + 0.9 e, 3 and 3 - 0.9 e to first order: 1e-4.
7. USA under Sigma = diag(1.3, 0.7): no stable state rests between the onset and the Hopf point
   (beta = 3), or the fold (beta = 4) of the next ones. Runs end on a periodic orbit; at beta = 4,
   kappa = 0.37 its period is the same from two starts, 1e-3 relative, and two tolerances.

    python validation/phase_diagrams_noise.py [--quick]    # 49 s, 12 s quick

--quick leaves out the cusp, the sphere and the periodic orbit. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf

CIRCLE = mf.Circle(32)
E = 0.3


def main() -> int:
    quick = command_line(__doc__, "without what takes long").quick
    report = Report(["claim", "case"], digits=10)
    onsets(report)
    isotropic(report)
    ito(report)
    runs(report)
    folds(report)
    gaps(report)
    if not quick:
        cusps(report)
        sphere(report)
        cycles(report)
    return report.verdict()


def stretched(*variances: float) -> mf.Noise:
    return mf.noise.Anisotropic(np.diag(variances))


def exact_onset(e: float) -> float:
    theta = 2 * np.pi * np.arange(8192) / 8192
    s = np.sqrt(1 - e * np.cos(2 * theta))
    ratio, size = np.sqrt(complex(2 * e / (1 + e))), np.sqrt(complex(2 * e * (1 + e)))
    A = (np.arctanh(ratio * np.cos(theta)) / size).real
    return float((1 / s).mean() / (np.cos(theta) * A / s).mean())


def onsets(report: Report) -> None:
    for e in (0.3, 0.6):
        diagram = mf.branches(
            mf.Kuramoto(), CIRCLE, (1.2, 3.2), noise=stretched(1 + e, 1 - e), secondary=False
        )
        found = {s.order: s.value for s in diagram.special("bifurcation", 0)}
        for order, sign, axis in ((1, 1, "first"), (2, -1, "second")):
            report.compare("onset", f"Kuramoto, e = {e}, {axis} axis",
                           predicted=exact_onset(sign * e), measured=found[order],
                           tolerance=1e-10)  # fmt: skip
        stable = {number for number, *_ in diagram.stable_ranges()}
        report.compare("stable branches", f"Kuramoto, e = {e}", predicted=2, measured=len(stable),
                       tolerance=0)  # fmt: skip


def isotropic(report: Report) -> None:
    guess = CIRCLE.von_mises(0.0, 2.0)
    plain, other = (
        mf.stationary(mf.Transformer(mf.SA(2.0), kappa=4.0, noise=noise), guess)
        for noise in (mf.noise.Isotropic(), stretched(1.0, 1.0))
    )
    report.compare("Sigma = 1", "r of SA(2), kappa = 4", predicted=plain.order_parameter,
                   measured=other.order_parameter, tolerance=1e-12)  # fmt: skip
    pairs = zip(plain.stability().eigenvalues, other.stability().eigenvalues, strict=True)
    for i, (one, two) in enumerate(pairs):
        report.compare("Sigma = 1", f"eigenvalue {i}", predicted=one, measured=two, tolerance=1e-10)
    diagram = mf.branches(mf.USA(2.0), CIRCLE, (1.2, 1.3), noise=stretched(1.0, 1.0))
    expected = mf.branches(mf.USA(2.0), CIRCLE, (1.2, 1.3)).special("bifurcation", 0)[0].value
    for special in diagram.special("bifurcation", 0):
        report.compare("Sigma = 1", "onset of USA(2)", predicted=expected, measured=special.value,
                       tolerance=1e-10)  # fmt: skip


def ito(report: Report) -> None:
    noise = mf.noise.MultiplicativeIto(lambda x: 1 + 0.3 * x[..., 0] ** 2 + 0.2 * x[..., 0] ** 4)
    diagram = mf.branches(mf.Kuramoto(), CIRCLE, (2.0, 3.5), noise=noise, secondary=False)
    first, second = (s.value for s in diagram.special("bifurcation", 0))
    report.compare("Ito", "second onset is the first", predicted=first, measured=second,
                   tolerance=1e-10, relative=True)  # fmt: skip


def runs(report: Report) -> None:
    model = mf.Transformer(mf.Kuramoto(), kappa=2.5, noise=stretched(1 + E, 1 - E))
    state = mf.stationary(model, CIRCLE.uniform())
    rate = state.stability(1).eigenvalues[0]
    start = mf.Circle(32).density(
        lambda theta: 1 + 1e-7 * np.sin(theta) * (1 + 0.2 * np.cos(2 * theta))
    )
    start = mf.Density(CIRCLE, start.coefficients + state.density.resample(32).coefficients
                       - CIRCLE.uniform().coefficients)  # fmt: skip
    run = successful(mf.solve(model, start, (0, 40), t_eval=[20, 40], rtol=1e-12))
    first, last = (abs(s.moment(1)) for s in run.states)
    report.compare("growth", "Kuramoto, e = 0.3, kappa = 2.5", predicted=rate,
                   measured=np.log(last / first) / 20, tolerance=1e-6)  # fmt: skip
    cases = {
        "Anisotropic": (mf.USA(2.0), stretched(1 + E, 1 - E), np.pi / 2),
        "Stratonovich": (mf.SA(2.0), mf.noise.MultiplicativeStratonovich(_odd(0.2)), 0.0),
        "Ito": (mf.SA(2.0), mf.noise.MultiplicativeIto(lambda x: 1 + 0.2 * x[..., 0] * x[..., 1]),
                0.75 * np.pi),
    }  # fmt: skip
    for name, (drift, noise, angle) in cases.items():
        model = mf.Transformer(drift, kappa=4.0, noise=noise)
        run = successful(mf.solve(model, CIRCLE.von_mises(angle, 1.0), (0, 240), rtol=1e-12))
        state = mf.stationary(model, run.final)
        found = state.density.resample(run.final.space.degree).coefficients
        apart = np.abs(run.final.coefficients - found).max()
        report.compare("ends of runs", name, predicted=0, measured=apart, tolerance=1e-9)


def _odd(a: float):
    return lambda x: 1 + a * x[..., 0]


def folds(report: Report) -> None:
    sizes, found = np.array([0.001, 0.002, 0.004]), []
    for a in sizes:
        noise = mf.noise.MultiplicativeStratonovich(_odd(a))
        diagram = mf.branches(mf.Kuramoto(), CIRCLE, (1.95, 2.15), noise=noise, secondary=False)
        (fold,) = diagram.special("fold")
        found.append((fold.value - 2) / (a / 2) ** (2 / 3))
    limit = np.polynomial.Polynomial.fit(sizes ** (2 / 3), found, 1)(0)
    report.compare("fold", "(kappa_f - 2)/(a/2)^(2/3), a -> 0", predicted=3, measured=limit,
                   tolerance=1e-2)  # fmt: skip


def cusps(report: Report) -> None:
    sizes = np.array([0.054, 0.056, 0.058, 0.06])
    powers = [abs(np.subtract(*_folds(a))) ** (2 / 3) for a in sizes]
    line = np.polynomial.Polynomial.fit(sizes, powers, 2)
    cusp = min(line.roots().real, key=lambda root: abs(root - sizes[-1]))
    for part, expected in ((0.99, 2), (1.01, 0)):
        report.compare("cusp", f"folds of USA(4) at {part} of a = {cusp:.5f}", predicted=expected,
                       measured=len(_folds(part * cusp)), tolerance=0)  # fmt: skip


def _folds(a: float) -> list[float]:
    """On the branch of the state without order of USA(4), under the scale 1 + a cos theta."""
    noise = mf.noise.MultiplicativeStratonovich(_odd(a))
    diagram = mf.branches(mf.USA(4.0), CIRCLE, (0.32, 0.37), noise=noise, secondary=False,
                          max_step=0.02)  # fmt: skip
    return [s.value for s in diagram.special("fold", 0)]


def sphere(report: Report) -> None:
    from scipy.optimize import brentq

    def onset(variances, order: int, near: float) -> float:
        def rate(kappa: float) -> float:
            model = mf.Transformer(mf.Kuramoto(), kappa=kappa, noise=stretched(*variances))
            found = mf.stationary(model, mf.Sphere(12).uniform()).stability(6)
            return float(found.eigenvalues[found.orders == order][0])

        return float(brentq(rate, near - 0.1, near + 0.1, xtol=1e-11))

    for order, expected, near in ((4, 0.0, 2.8), (2, 0.0, 3.0), (1, 0.0, 3.15)):
        kappa = onset((1.2, 1.0, 0.8), order, near)
        model = mf.Transformer(mf.Kuramoto(), kappa=kappa, noise=stretched(1.2, 1.0, 0.8))
        found = mf.stationary(model, mf.Sphere(12).uniform()).stability(3)
        report.compare("S^2", f"rate at the onset {kappa:.9f}", predicted=expected,
                       measured=found.eigenvalues[np.abs(found.eigenvalues).argmin()],
                       tolerance=1e-9)  # fmt: skip
    h = 0.01
    slopes = [(onset((1 + h, 1.0, 1 - h), order, 3.0) - onset((1 - h, 1.0, 1 + h), order, 3.0))
              / (2 * h) for order in (1, 2, 4)]  # fmt: skip
    report.compare("S^2", "slopes of the onsets, x and z", predicted=-slopes[2], measured=slopes[0],
                   tolerance=1e-9)  # fmt: skip
    report.compare("S^2", "slope of the onset, x", predicted=0.9, measured=slopes[0],
                   tolerance=1e-4)  # fmt: skip
    report.compare("S^2", "slope of the onset, y", predicted=0, measured=slopes[1], tolerance=1e-3)
    for axis, expected in enumerate((2, 1, 0)):
        model = mf.Transformer(mf.Kuramoto(), kappa=4.5, noise=stretched(1.2, 1.0, 0.8))
        guess = mf.Sphere(16).density(lambda *x, axis=axis: np.exp(2.5 * x[axis]))
        found = mf.stationary(model, guess).stability()
        report.compare("S^2", f"rates > 0 across, order along {'xyz'[axis]}", predicted=expected,
                       measured=(found.eigenvalues.real > 0).sum(), tolerance=0)  # fmt: skip


def gaps(report: Report) -> None:
    noise = stretched(1 + E, 1 - E)
    for beta, span, first, second in (
        (3.0, (0.6, 0.8), 0.69655150619, 0.707729330731),
        (4.0, (0.3, 0.6), 0.356497394913, 0.391708811138),
    ):
        ranges = mf.branches(mf.USA(beta), CIRCLE, span, noise=noise).stable_ranges()
        ends = max(last for number, _, last in ranges if number == 0)
        begins = min(begin for number, begin, _ in ranges if number > 0)
        report.compare("gap", f"USA({beta:g}), last stable", predicted=first, measured=ends,
                       tolerance=1e-9)  # fmt: skip
        report.compare("gap", f"USA({beta:g}), first stable", predicted=second, measured=begins,
                       tolerance=1e-9)  # fmt: skip


def cycles(report: Report) -> None:
    model = mf.Transformer(mf.USA(4.0), kappa=0.37, noise=stretched(1 + E, 1 - E))
    periods = []
    for angle, rtol in ((0.3, 1e-8), (1.2, 1e-9)):
        t = np.linspace(150, 400, 5001)
        run = successful(
            mf.solve(model, CIRCLE.von_mises(angle, 3.0), (0, 400), t_eval=t, rtol=rtol)
        )
        r = np.array([abs(state.moment(1)) for state in run.states])
        peaks = np.flatnonzero((r[1:-1] > r[:-2]) & (r[1:-1] > r[2:])) + 1
        periods.append((t[peaks[-1]] - t[peaks[0]]) / (len(peaks) - 1))
    report.compare("cycle", "period at beta = 4, kappa = 0.37", predicted=periods[0],
                   measured=periods[1], tolerance=1e-3, relative=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
