"""Claim: derivatives of runs and of stationary states are exact.

Frozen steps: tangents of runs with adaptive steps, schemes and degrees against differences of order
4 of the same steps, schemes and degrees, in beta, kappa and a direction, USA and SA, at outputs
within steps and at the end.

The adjoint: products of the gradient with directions, and its derivatives by parameters, against
the tangents of the same runs; and on S^2 and on Zonal(8), where tangents are checked by it and by
differences of runs with the same equal steps.

Closed forms: growth rates from the uniform state, the exact solution of Ott and Antonsen, and the
noisy Kuramoto model at rest, dr/dkappa = r (1 - 1/kappa - r^2)/(2 - kappa + kappa r^2), by a run
and by the implicit function theorem.

Folds, transitions, onsets: d kappa/d beta against differences of order 4 of diagrams, and of the
known onset beta/I_1(beta).

    python validation/derivatives.py    # 5 s

Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, successful
from scipy.special import iv

import meanfield as mf
from meanfield.derivatives.densities import DifferentiatedRun

CIRCLE = mf.Circle(32)
MU0 = CIRCLE.density(lambda theta: 1 + 0.4 * np.cos(theta) + 0.2 * np.sin(2 * theta))
TOWARDS = CIRCLE.von_mises(0.5, 1.0)
DIRECTION = TOWARDS.coefficients - MU0.coefficients
FOURTH = {-2: 1 / 12, -1: -2 / 3, 1: 2 / 3, 2: -1 / 12}
STEP = 1e-3
CASES = {"USA": (mf.USA, 4.0, 6.0), "SA": (mf.SA, 4.0, 8.0), "USA, weak": (mf.USA, 1.0, 3.0)}


def difference(f, step=STEP):
    """The derivative of f at 0 by a central difference of order 4."""
    return sum(weight * f(node * step) for node, weight in FOURTH.items()) / step


def frozen(report: Report) -> None:
    for name, (drift, beta, kappa) in CASES.items():
        model, times = mf.Transformer(drift(beta=beta), kappa=kappa), np.linspace(0, 2, 12)
        wanted = ["beta", "kappa", TOWARDS]
        run = successful(mf.solve(model, MU0, (0, 2), t_eval=times, tangents=wanted))
        found = [run.tangents[key] for key in run.tangents]

        def states(by_beta, by_kappa, moved, *, of=(drift, beta, kappa), run=run):
            model = mf.Transformer(of[0](beta=of[1] + by_beta), kappa=of[2] + by_kappa)
            start = mf.Density(CIRCLE, MU0.coefficients + moved * DIRECTION)
            member = DifferentiatedRun(model, start, (), run.stored["journal"], ())
            return [rows[0] for rows in member.tangents(run.t, [])]

        worst = 0.0
        for row, tangent in enumerate(found):
            many = {node: states(*(STEP * node * np.eye(3)[row])) for node in FOURTH}
            for i, h in enumerate(tangent):
                expected = sum(w * many[node][i] for node, w in FOURTH.items()) / STEP
                kept = min(expected.size, h.coefficients.size)
                worst = max(worst, np.abs(expected[:kept] - h.coefficients[:kept]).max())
        report.compare(name, "tangents, frozen steps", predicted=0, measured=worst, tolerance=1e-8)
        adjoint(report, name, run, mf.Variation(CIRCLE, DIRECTION))


def adjoint(report: Report, name: str, run: mf.Solution, direction: mf.Variation) -> None:
    for what, f in {"x^2": lambda x: x[:, -1] ** 2, "x^3": lambda x: x[:, -1] ** 3}.items():
        gradient = mf.gradient(f, run)
        along = gradient.initial.paired(direction)
        values = [gradient.parameters["beta"], gradient.parameters["kappa"], along]
        for value, key in zip(values, run.tangents, strict=True):
            forwards = float(run.tangents[key][-1].expect(f))
            label = f"adjoint of {what}, {key}"
            report.compare(name, label, predicted=forwards, measured=value, tolerance=1e-10)


def other_spaces(report: Report) -> None:
    for space in (mf.Sphere(16), mf.Zonal(8, 20)):
        start = space.density(lambda *x: np.exp(0.4 * x[-1] + 0.2 * x[0] * x[-1]))
        towards = space.density(lambda *x: 1 + 0.3 * x[0])
        direction = mf.Variation(space, towards.coefficients - start.coefficients)
        for drift in (mf.USA, mf.SA):
            name = f"{space!r}, {drift.__name__}"

            def run(changes, *tangents, drift=drift, start=start, direction=direction):
                model = mf.Transformer(drift(beta=2.0 + changes[0]), kappa=5.0 + changes[1])
                moved = start.coefficients + changes[2] * direction.coefficients
                options = {"dt": 0.05, "rtol": 1e-4, "t_eval": [0.17, 0.4], "tangents": tangents}
                degree = direction.geometry.degree
                options |= {"min_degree": degree, "max_degree": degree}
                return mf.solve(model, mf.Density(start.geometry, moved), (0, 0.4), **options)

            here, worst = successful(run(np.zeros(3), "beta", "kappa", direction)), 0.0
            for row, found in enumerate(here.tangents.values()):
                many = {node: run(STEP * node * np.eye(3)[row]) for node in FOURTH}
                for i, h in enumerate(found):
                    expected = sum(w * many[n][i].coefficients for n, w in FOURTH.items()) / STEP
                    worst = max(worst, np.abs(expected - h.coefficients).max())
            report.compare(name, "tangents", predicted=0, measured=worst, tolerance=1e-8)
            adjoint(report, name, here, direction)


def closed_forms(report: Report) -> None:
    beta, kappa, t = 3.0, 2.0, 1.0
    for l in (1, 2, 3):
        direction = np.zeros(33, complex)
        direction[l] = 1.0
        model = mf.Transformer(mf.USA(beta=beta), kappa=kappa)
        options = {"t_eval": [t], "dt": 0.005, "min_degree": 32}  # at rest steps adapt to nothing
        run = successful(mf.solve(model, CIRCLE.uniform(), (0, t), tangents=[direction], **options))
        rate = l**2 * (iv(l, beta) / beta - 1 / kappa)
        measured = np.log(run.tangents["direction_0"][-1].coefficients[l].real) / t
        report.compare(
            "uniform", f"growth rate {l}", predicted=rate, measured=measured, tolerance=1e-9
        )
    r0, space = 0.3, mf.Circle(64)
    start = mf.Density(space, r0 ** np.arange(65))
    direction = np.arange(65) * r0 ** np.arange(-1.0, 64.0)
    model = mf.Transformer(mf.Kuramoto())
    run = mf.solve(model, start, (0, 2), t_eval=[2.0], rtol=1e-12, tangents=[direction])
    odds = np.exp(2.0) * r0**2 / (1 - r0**2)
    r = np.sqrt(odds / (1 + odds))
    predicted = r * (1 - r**2) / (r0 * (1 - r0**2))
    measured = float(run.tangents.observables.order_parameter[0, -1])
    report.compare(
        "Ott-Antonsen", "dr/dr_0", predicted=predicted, measured=measured, tolerance=1e-9
    )
    for kappa in (2.5, 3.0, 6.0):
        model = mf.Transformer(mf.Kuramoto(), kappa=kappa)
        state = mf.stationary(model, CIRCLE.von_mises(0, 1.0))
        r = state.order_parameter
        predicted = r * (1 - 1 / kappa - r**2) / (2 - kappa + kappa * r**2)
        options = {"t_eval": [120.0], "rtol": 1e-11, "tangents": ["kappa"]}
        run = mf.solve(model, CIRCLE.von_mises(0, 1.0), (0, 120), **options)
        by_run = float(run.tangents.observables.order_parameter[0, -1])
        by_state = state.derivative("kappa").order_parameter
        for what, measured in (("a run", by_run), ("the state", by_state)):
            label = f"dr/dkappa by {what}"
            report.compare(
                f"kappa = {kappa}", label, predicted=predicted, measured=measured, tolerance=1e-9
            )


def special_points(report: Report) -> None:
    def diagram(beta):
        span = (0.17, 0.21)
        return mf.branches(mf.USA(beta=beta), CIRCLE, span, degrees=[1], stability=False)

    here, beta = diagram(5.0), 5.0
    many = {node: diagram(5.0 + 0.005 * node) for node in FOURTH}
    for kind in ("fold", "transition"):
        predicted = sum(w * many[n].special(kind)[0].value for n, w in FOURTH.items()) / 0.005
        measured = here.special(kind)[0].derivative("beta")
        report.compare(
            kind, "d kappa/d beta", predicted=predicted, measured=measured, tolerance=1e-9
        )
    slope = (iv(0, beta) + iv(2, beta)) / 2
    predicted = 1 / iv(1, beta) - beta * slope / iv(1, beta) ** 2  # of beta / I_1(beta)
    measured = here.special("bifurcation")[0].derivative("beta")
    report.compare(
        "onset", "d kappa/d beta", predicted=predicted, measured=measured, tolerance=1e-9
    )


def main() -> int:
    report = Report(["case", "what"])
    frozen(report)
    other_spaces(report)
    closed_forms(report)
    special_points(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
