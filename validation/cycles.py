"""Claim: periodic orbits of densities, their periods, multipliers and ends, are those of the flow.

Active rotators on the circle, dc/dt of

    d mu/dt = mu''/kappa - (mu (2 K[mu] + w - sin(theta)/2))',

K the Kuramoto drift, rest for small w and oscillate for larger w and kappa. Compared are

1. the cycle at w = 0.8, kappa = 1.4 of `mf.cycle`: its states and extremes with `mf.solve` over one
   period, at rtol 1e-12; its largest multipliers with the derivative of `mf.solve` in the
   directions of all harmonics; and the cycle of twice the degree;
2. the cycles that begin at the Hopf point in kappa: amplitude^2 = 2 Re(s')(kappa - kappa_0)/(-l),
   with the first Lyapunov coefficient l of `mf.first_lyapunov`, up to terms of second order;
3. at kappa = 2, the value of w at which the period of `mf.cycles` becomes infinite (SNIC), with
   the fold of stationary states of `mf.branches`;
4. two groups of oscillators with the frequencies 1 and -1 (`Indexed`): the standing wave returns
   after one period, does not turn, and has the multiplier 1 twice;
5. on S^2 under 3 K and the field 0.8 e_3 x x + 0.3 e_1 at kappa = 1.3, a cycle of densities even in
   x_3, unstable to perturbations odd in x_3: it returns after one period of `mf.solve` at rtol
   1e-11, with the same extremes of the mean, and its three largest multipliers are those of six
   tangents of one period, taken twice; and so it is for a stable cycle under 2 K and the field
   0.8 e_3 x x + 0.5 e_1 - x_3 e_3 at kappa = 2.

Asked: 1e-8 for states and extremes, 1e-7 for multipliers, 1e-10 for the period of twice the degree;
1e-3, relative, for the amplitude; 1e-6 for the SNIC; 1e-8 for the standing wave; on S^2 1e-8 for
states, extremes and the period, 1e-7 for multipliers.

    python validation/cycles.py [--quick]    # 400 s, 30 s quick; exit code 1 on failure

The quick run leaves out the SNIC and S^2.

References: Shinomoto and Kuramoto, Prog. Theor. Phys. 75 (1986); Kuznetsov, Elements of Applied
Bifurcation Theory (2004), equation (5.34).
"""

import sys

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
CIRCLE = mf.Circle(12)
ON_THE_SPHERE = {  # attraction, pull along e_1, flattening along e_3, and kappa
    "S^2": (3.0, 0.3, 0.0, 1.3),
    "S^2, flattened": (2.0, 0.5, 1.0, 2.0),
}


def rotators(w, kappa=1.4):
    """Active rotators with the drift w and the noise 1/kappa."""
    pull = np.array([0.5, 0.0])
    return mf.Transformer(2.0 * mf.Kuramoto() + mf.Field(lambda x: w * (x @ TURN.T) + pull), kappa)


def against_time_stepping(report: Report) -> None:
    """States, extremes and multipliers of one cycle."""
    cycle = mf.cycle(rotators(0.8), CIRCLE.von_mises(0.0, 0.3))
    start, degree = cycle.at(0.0), cycle.space.degree
    harmonics = [
        lambda x, k=k, part=part: getattr((x[:, 0] + 1j * x[:, 1]) ** k, part)
        for k in range(1, degree + 1)
        for part in ("real", "imag")
    ]
    times = np.linspace(0, cycle.period, 801)
    run = successful(mf.solve(cycle.model, start, (0, cycle.period), t_eval=times, rtol=1e-12,
                              tangents=harmonics))  # fmt: skip
    for part in (0.25, 0.5, 1.0):
        state, other = run.states[round(800 * part)], cycle.at(part)
        error = max(abs(state.moment(k) - other.moment(k)) for k in range(1, degree + 1))
        report.compare(f"phase {part:g}", "moments", predicted=0, measured=error, tolerance=1e-8)
    orders = np.array([abs(state.moment(1)) for state in run.states])
    for name, measured, i in zip(
        ("least r", "largest r"),
        cycle.extremes(lambda state: abs(state.moment(1))),
        (orders.argmin(), orders.argmax()),
        strict=True,
    ):
        best = extreme_near(orders, i)
        report.compare("cycle", name, predicted=best, measured=measured, tolerance=1e-8)
    columns = [run.tangents[f"direction_{i}"][-1].resample(degree).coefficients[1:]
               for i in range(len(harmonics))]  # fmt: skip
    matrix = 2 * np.array([np.stack([c.real, -c.imag], -1).ravel() for c in columns]).T
    values = np.linalg.eigvals(matrix)
    values = values[np.argsort(-np.abs(values))]
    for i in range(3):
        report.compare("multiplier", i, predicted=abs(values[i]),
                       measured=abs(cycle.multipliers[i]), tolerance=1e-7)  # fmt: skip
    start = cycle.at(0.0).resample(2 * degree)
    finer = mf.cycle(rotators(0.8), start, cycle.period)
    report.compare(f"degree {finer.space.degree}", "period", predicted=finer.period,
                   measured=cycle.period, tolerance=1e-10)  # fmt: skip


def extreme_near(values, i):
    """Extreme of a periodic function near the sample i, by a polynomial through five samples."""
    near = np.take(values, range(i - 2, i + 3), mode="wrap")
    fit = np.polynomial.Polynomial.fit(np.arange(-2, 3), near, 4)
    roots = fit.deriv().roots()
    return fit(roots[np.abs(roots - 0).argmin()].real)


def at_the_hopf_point(report: Report) -> None:
    """Amplitudes of small cycles, from the normal form."""
    (hopf,) = mf.branches(rotators(0.8), CIRCLE, vary={"kappa": (1.1, 1.2)}).special("Hopf")
    branch = mf.cycles(rotators(0.8), hopf, (1.1, 1.15))
    near = [mf.stationary(rotators(0.8, hopf.value + step), hopf.state.density).stability(1)
            for step in (-1e-4, 1e-4)]  # fmt: skip
    growth = [each.eigenvalues[0] for each in near]
    slope = (growth[1].real - growth[0].real) / 2e-4
    rate = np.mean(np.abs(np.imag(growth)))
    square = 2 * slope * (branch.data.kappa.values[0] - hopf.value)
    square /= -mf.first_lyapunov(hopf) * rate
    measured = branch.data.amplitude.values[0] ** 2
    report.compare("Hopf", "amplitude^2", predicted=square, measured=measured, tolerance=1e-3,
                   relative=True)  # fmt: skip


def strong(w):
    """Active rotators with weaker noise, kappa = 2, above the cusp of the folds."""
    return rotators(w, 2.0)


def to_the_snic(report: Report) -> None:
    """The end of the branch in w, at kappa = 2."""
    diagram = mf.branches(strong, CIRCLE, kappa=(0.2, 0.6))
    fold = max(point.value for point in diagram.special("fold"))
    cycle = mf.cycle(strong(0.55), CIRCLE.von_mises(0.0, 0.3), tolerance=1e-6)
    branch = mf.cycles(strong, cycle, (0.2, 0.6), at=0.55, tolerance=1e-6)
    report.compare("SNIC", branch.ends[0], predicted=fold, measured=branch.limits[0],
                   tolerance=1e-6)  # fmt: skip


def of_two_frequencies(report: Report) -> None:
    """A standing wave of two groups of oscillators."""
    model = mf.Transformer(1.3 * mf.Kuramoto(), 4.0, frequency=mf.OfIndex(1.0))
    start = CIRCLE.indexed(lambda s, a: 1 + 0.5 * np.cos(a) + 0 * s, mf.Classes([-1.0, 1.0]))
    wave = mf.cycle(model, successful(mf.solve(model, start, (0, 60), t_eval=[60])))
    begin, period = wave.at(0.0), wave.period
    end = successful(mf.solve(model, begin, (0, period), t_eval=[period], rtol=1e-11)).final
    change = end.coefficients - begin.resample(end.space.degree).coefficients
    report.compare("standing wave", "return", predicted=0, measured=np.abs(change).max(),
                   tolerance=1e-8)  # fmt: skip
    report.compare("standing wave", "speed", predicted=0, measured=wave.speeds[0], tolerance=1e-8)
    for i, value in enumerate(np.sort(np.abs(wave.multipliers[wave.neutral]))):
        report.compare("standing wave", f"neutral {i}", predicted=1, measured=value,
                       tolerance=1e-7)  # fmt: skip


def on_the_sphere(report: Report, label, attraction, pull, flattened, kappa) -> None:
    """A cycle on S^2 against time stepping and tangents."""
    turn = np.diag([0.0, 0.0, -flattened])
    turn[:2, :2] = 0.8 * TURN
    pulled = np.array([pull, 0.0, 0.0])
    drift = attraction * mf.Kuramoto() + mf.Field(lambda x: x @ turn.T + pulled)
    model = mf.Transformer(drift, kappa)
    begun = mf.Sphere(12).density(lambda x, y, z: np.exp(x))
    outputs = np.linspace(0, 60, 601)
    run = successful(mf.solve(model, begun, (0, 60), t_eval=outputs, rtol=1e-6))
    cycle = mf.cycle(model, run)
    start, period, degree = cycle.at(0.0), cycle.period, cycle.space.degree

    def propagated(times, directions):
        """Run, and the tangents (2 modes, k) at its end."""
        run = successful(mf.solve(model, start, (0, times[-1]), t_eval=times, rtol=1e-11,
                                  tangents=directions))  # fmt: skip
        names = [f"direction_{i}" for i in range(len(directions))]
        ends = [run.tangents[name][-1].resample(degree).coefficients for name in names]
        return run, np.array(ends).view(float).T

    monomials = [lambda x, k=k: x[:, k] for k in range(3)]
    monomials += [lambda x, i=i, j=j: x[:, i] * x[:, j] for i, j in ((0, 1), (0, 2), (1, 2))]
    run, tangents = propagated(np.linspace(0, period, 801), monomials)
    change = run.final.resample(degree).coefficients - start.coefficients
    report.compare(label, "return", predicted=0, measured=np.abs(change).max(), tolerance=1e-8)
    velocity = (cycle.at(1e-5).coefficients - cycle.at(-1e-5).coefficients) / (2e-5 * period)
    late = np.vdot(velocity, change).real / np.vdot(velocity, velocity).real
    report.compare(label, "period", predicted=period - late, measured=period, tolerance=1e-8)
    orders = np.asarray(run.observables.order_parameter.values)
    extremes = cycle.extremes(
        lambda state: np.linalg.norm([state.expect(lambda x, k=k: x[:, k]) for k in range(3)])
    )
    for name, measured, i in zip(
        ("least |mean|", "largest |mean|"), extremes, (orders.argmin(), orders.argmax()),
        strict=True,
    ):  # fmt: skip
        best = extreme_near(orders[:-1], i)
        report.compare(label, name, predicted=best, measured=measured, tolerance=1e-8)
    first = np.ascontiguousarray(np.linalg.svd(tangents)[0][:, :3].T)
    series = [row.view(complex) for row in first]
    again = [lambda x, one=one: cycle.space.at(one, x) for one in series]
    values = np.linalg.eigvals(first @ propagated([period], again)[1])
    for i, value in enumerate(sorted(np.abs(values), reverse=True)):
        report.compare(f"{label}, multiplier", i, predicted=value,
                       measured=abs(cycle.multipliers[i]), tolerance=1e-7)  # fmt: skip


def main() -> int:
    quick = command_line(__doc__, "without the SNIC and S^2").quick
    report = Report(["of", "quantity"], digits=12)
    against_time_stepping(report)
    at_the_hopf_point(report)
    of_two_frequencies(report)
    if not quick:
        to_the_snic(report)
        for label, case in ON_THE_SPHERE.items():
            on_the_sphere(report, label, *case)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
