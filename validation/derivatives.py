"""Claim: derivatives of runs and of stationary states are exact.

Frozen steps: tangents of runs with adaptive steps, schemes and degrees against differences of order
4 of the same steps, schemes and degrees, in beta, kappa and a direction, USA and SA, at outputs
within steps and at the end.

The adjoint: products of the gradient with directions, and its derivatives by parameters, against
the tangents of the same runs; and on S^2 and on Zonal(8), where tangents are checked by it and by
differences of runs with the same equal steps.

Other noises, and noise that changes: the same for a kappa that is a function of time or a
PerLayer, and under Anisotropic, MultiplicativeIto and MultiplicativeStratonovich noise, on the
circle and on S^2. Both under Attention with matrices, of two heads or of one with softmax, L2 or
sigmoid weights, on the circle linear and unnormalised ones too, and under sums with a Field, a
FeedForward, and with a feed-forward map.

Closed forms: growth rates from the uniform state and their derivatives by beta and kappa, the exact
solution of Ott and Antonsen along the run, and the noisy Kuramoto model at rest, dr/dkappa =
r (1 - 1/kappa - r^2)/(2 - kappa + kappa r^2), by a run and by the implicit function theorem.

States on S^2 without an axis: free energy, second moments and eigenvalues of the biaxial state of
W = 0.26 P_2 + b P_4 against differences of order 4 of states that are found anew, with D2h and
among all harmonics; and a state about a skew axis among all harmonics against that about its axis.

Folds, transitions, onsets: d kappa/d beta against differences of order 4 of diagrams, and of the
known onset beta/I_1(beta). Points under anisotropic noise, losses of symmetry and Hopf points among
them, and of the group Oh on S^2: of drifts b v, where d kappa/d b = -kappa/b.

    python validation/derivatives.py [--quick]   # 70 s, 8 s quick

--quick leaves out other drifts and noises, and states without an axis. Exit code 1 on failure.
"""

import sys
from functools import partial

import numpy as np
from _report import Report, successful
from scipy.special import iv

import meanfield as mf
from meanfield.derivatives.densities import DifferentiatedRun
from meanfield.dynamics import DensityMotion

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
            motion, journal = DensityMotion(model, start), run.stored["journal"]
            member = DifferentiatedRun(motion, start, (), journal, ())
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
        values = gradient.parameters | {"direction_0": gradient.initial.paired(direction)}
        for key in run.tangents:
            value = values[key]
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
                degree = direction.space.degree
                options |= {"min_degree": degree, "max_degree": degree}
                return mf.solve(model, mf.Density(start.space, moved), (0, 0.4), **options)

            here, worst = successful(run(np.zeros(3), "beta", "kappa", direction)), 0.0
            for row, found in enumerate(here.tangents.values()):
                many = {node: run(STEP * node * np.eye(3)[row]) for node in FOURTH}
                for i, h in enumerate(found):
                    expected = sum(w * many[n][i].coefficients for n, w in FOURTH.items()) / STEP
                    worst = max(worst, np.abs(expected - h.coefficients).max())
            report.compare(name, "tangents", predicted=0, measured=worst, tolerance=1e-8)
            adjoint(report, name, here, direction)


TENSOR = np.array([[1.0, 0.2, 0.0], [0.2, 1.5, 0.1], [0.0, 0.1, 2.0]])


def scale(x):
    return np.exp(0.1 * x[..., 0])


def noises(dimension: int):
    """Parameters of the noise, and what makes kappa and the noise of their changes, by name."""
    wave = lambda t: 4.0 + np.sin(3 * t)  # noqa: E731
    layers = lambda by: mf.PerLayer([4.0 + by["kappa[0]"], np.inf, 3.0 + by["kappa[2]"]], 0.1)  # noqa: E731
    tensor = TENSOR[:dimension, :dimension]
    return {
        "kappa(t)": ([], lambda _: {"kappa": wave}),
        "PerLayer": (["kappa[0]", "kappa[2]"], lambda by: {"kappa": layers(by)}),
        "Anisotropic": (
            ["kappa"],
            lambda by: {"kappa": 4.0 + by["kappa"], "noise": mf.Anisotropic(tensor)},
        ),
        "Ito": (
            ["kappa"],
            lambda by: {"kappa": 4.0 + by["kappa"], "noise": mf.MultiplicativeIto(scale)},
        ),
        "Stratonovich, kappa(t)": (
            [],
            lambda _: {"kappa": wave, "noise": mf.MultiplicativeStratonovich(scale)},
        ),
    }


def changing_and_other_noises(report: Report) -> None:
    for space in (CIRCLE, mf.Sphere(14)):
        start = space.density(lambda *x: 1 + 0.3 * (np.cos(x[0]) if len(x) == 1 else x[0] * x[2]))
        direction = mf.Variation(space, space.uniform().coefficients - start.coefficients)
        for noise, (own, made) in noises(space.dimension).items():
            name, names = f"{space!r}, {noise}", ["beta", *own, ""]
            fixed = {"min_degree": space.degree, "max_degree": space.degree}
            options = {"dt": 0.02, "rtol": 1e-4, "t_eval": [0.17, 0.3], **fixed}

            def run(by, tangents=(), *, of=(made, start, direction, options)):
                make, start, direction, options = of
                model = mf.Transformer(mf.SA(beta=2.0 + by["beta"]), **make(by))
                moved = start.coefficients + by[""] * direction.coefficients
                mu0 = mf.Density(start.space, moved)
                return mf.solve(model, mu0, (0, 0.3), tangents=tangents, **options)

            zero, worst = dict.fromkeys(names, 0.0), 0.0
            here = successful(run(zero, [*names[:-1], direction]))
            for which, found in zip(names, here.tangents.values(), strict=True):
                many = {node: run({**zero, which: STEP * node}) for node in FOURTH}
                for i, h in enumerate(found):
                    expected = sum(w * many[n][i].coefficients for n, w in FOURTH.items()) / STEP
                    worst = max(worst, np.abs(expected - h.coefficients).max())
            report.compare(name, "tangents", predicted=0, measured=worst, tolerance=1e-8)
            gradient = mf.gradient(lambda x: x[:, -1] ** 3 + x[:, 0], here)
            values = [*gradient.parameters.values(), gradient.initial.paired(direction)]
            forwards = [
                h[-1].expect(lambda x: x[:, -1] ** 3 + x[:, 0]) for h in here.tangents.values()
            ]
            apart = np.abs(np.array(values) - forwards).max()
            report.compare(name, "adjoint", predicted=0, measured=apart, tolerance=1e-10)


def pushing(x):
    return np.stack([x[..., 1] ** 2, *[x[..., 0]] * (x.shape[-1] - 1)], axis=-1)


def attention_and_fields(report: Report) -> None:
    for space in (CIRCLE, mf.Sphere(12)):
        d = space.dimension
        Q, V = (np.eye(d) + np.eye(d, k=k) / 3 for k in (1, -1))

        def heads(by, *, Q=Q, V=V):
            heads = {"Q": np.stack([Q, V]), "V": np.stack([V, Q])}
            return {"drift": mf.Attention(**heads, beta=1.5 + by.get("beta", 0))}

        def weighted(by, *, Q=Q, V=V, weights):
            return {"drift": mf.Attention(Q, Q, V, 1.5 + by.get("beta", 0), weights=weights)}

        def field(by):
            drift = mf.SA(beta=2.0 + by.get("drifts[0].beta", 0))
            drift = drift + (0.5 + by.get("factors[1]", 0)) * mf.Field(pushing)
            return {"drift": drift, "feedforward": pushing}

        def forward(by, *, Q=Q, V=V):
            drift = mf.SA(beta=2.0 + by.get("drifts[0].beta", 0))
            layer = mf.FeedForward(Q, V, np.arange(len(Q)) / 3, np.tanh)
            return {"drift": drift + (0.5 + by.get("factors[1]", 0)) * layer}

        start = space.density(lambda *x: 1 + 0.3 * (np.cos(x[0]) if len(x) == 1 else x[0] * x[2]))
        direction = mf.Variation(space, space.uniform().coefficients - start.coefficients)
        cases = {
            "heads": (["beta"], heads),
            "SA + Field": (["drifts[0].beta", "factors[1]"], field),
            "SA + FeedForward": (["drifts[0].beta", "factors[1]"], forward),
        }
        every = mf.Softmax(), mf.L2(), mf.Sigmoid(-0.5), mf.Linear(), mf.Unnormalised()
        for weights in every if d == 2 else every[:3]:  # kernels on S^2 take longer
            cases[type(weights).__name__] = ["beta"], partial(weighted, weights=weights)
        for name, (names, made) in cases.items():

            def run(by, tangents=(), *, of=(made, start, direction)):
                make, start, direction = of
                degree = start.space.degree
                options = {"dt": 0.05, "rtol": 1e-3, "t_eval": [0.07, 0.1], "tangents": tangents}
                options |= {"min_degree": degree, "max_degree": degree}
                model = mf.Transformer(**make(by), kappa=5.0 + by.get("kappa", 0.0))
                moved = start.coefficients + by.get("", 0.0) * direction.coefficients
                return mf.solve(model, mf.Density(start.space, moved), (0, 0.1), **options)

            worst, every = 0.0, [*names, "kappa", ""]
            here = successful(run({}, [*every[:-1], direction]))
            for which, found in zip(every, here.tangents.values(), strict=True):
                many = {node: run({which: STEP * node}) for node in FOURTH}
                for i, h in enumerate(found):
                    expected = sum(w * many[n][i].coefficients for n, w in FOURTH.items()) / STEP
                    worst = max(worst, np.abs(expected - h.coefficients).max())
            label = f"{space!r}, {name}"
            report.compare(label, "tangents", predicted=0, measured=worst, tolerance=1e-8)
            adjoint(report, label, here, direction)


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
    times = np.linspace(0, 2, 9)
    run = mf.solve(model, start, (0, 2), t_eval=times, rtol=1e-12, tangents=[direction])
    odds = np.exp(times) * r0**2 / (1 - r0**2)
    r = np.sqrt(odds / (1 + odds))
    predicted = r * (1 - r**2) / (r0 * (1 - r0**2))
    measured = run.tangents.observables.order_parameter[0].values
    worst = np.abs(measured - predicted).max()
    report.compare("Ott-Antonsen", "dr/dr_0 along the run", predicted=0, measured=worst,
                   tolerance=1e-9)  # fmt: skip
    for beta, kappa in ((3.0, 2.0), (1.0, 5.0)):
        state = mf.stationary(mf.Transformer(mf.USA(beta=beta), kappa=kappa), CIRCLE.uniform())
        l = np.arange(1, 33)
        slopes = (iv(l - 1, beta) + iv(l + 1, beta)) / (2 * beta) - iv(l, beta) / beta**2
        order = np.argsort(-(l**2) * (iv(l, beta) / beta - 1 / kappa), kind="stable")[:3]
        known = {"beta": l**2 * slopes, "kappa": l**2 / kappa**2}
        for name, expected in known.items():
            rates = state.derivative(name).eigenvalues(6)  # of cosines and of sines
            worst = np.abs(rates - np.repeat(expected[order], 2)).max()
            report.compare(f"beta = {beta}", f"ds_l/d{name}", predicted=0, measured=worst,
                           tolerance=1e-9)  # fmt: skip
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


class Biaxial(mf.ZonalDrift):
    """W = 0.26 P_2 + b P_4.

    Parameters
    ----------
    b : float
        Of P_4.
    """

    b: float

    def slope(self, t):
        return 0.78 * t + self.b * (35 * t**3 - 15 * t) / 2


class Quartic(mf.ZonalDrift):
    """W = b P_4.

    Parameters
    ----------
    b : float
        Of P_4.
    """

    b: float

    def slope(self, t):
        return self.b * (35 * t**3 - 15 * t) / 2


class Scaled(mf.ZonalDrift):
    """W = b e^(3t)/3.

    Parameters
    ----------
    b : float
        A factor.
    """

    b: float

    def slope(self, t):
        return self.b * np.exp(3 * t)


def second_moments(function):
    masses, x = function.space.weights * function.values, function.space.points
    return (x * masses[:, None]).T @ x


def without_an_axis(report: Report) -> None:
    space = mf.Sphere(12)
    c = np.zeros(space.degrees.size, dtype=complex)
    known = {(0, 0): 1, (2, 0): -0.131, (4, 0): 0.058, (2, 2): 0.028, (4, 2): -0.012}
    for (l, m), value in {**known, (4, 4): -0.077}.items():
        c[(space.degrees == l) & (space.orders == m)] = value

    def found(by, guess, symmetry="D2h"):
        model = mf.Transformer(Biaxial(b=0.432 + by.get("b", 0)), kappa=18.7 + by.get("kappa", 0))
        return mf.stationary(model, guess, symmetry=symmetry, tolerance=1e-14)

    here = found({}, mf.Density(space, c))
    free = found({}, here.density, "none")
    _, axes = np.linalg.eigh(second_moments(here.density))
    for name, step in (("b", 2e-4), ("kappa", 2e-3)):
        many = {node: found({name: node * step}, here.density) for node in FOURTH}
        quantities = {
            "free energy": lambda state: state.free_energy,
            "second moments": lambda state: np.linalg.eigvalsh(second_moments(state.density)),
            "eigenvalues": lambda state: state.stability(6).eigenvalues,
        }
        for label, state in (("D2h", here), ("none", free)):
            change = state.derivative(name)
            moments = np.diag(axes.T @ second_moments(change.density) @ axes)
            values = change.free_energy, moments, change.eigenvalues(6)
            for (what, f), value in zip(quantities.items(), values, strict=True):
                expected = sum(w * f(many[node]) for node, w in FOURTH.items()) / step
                worst = np.abs(value - expected).max()
                report.compare(f"biaxial, {label}", f"{what} by {name}", predicted=0,
                               measured=worst, tolerance=1e-8)  # fmt: skip
    axis = np.array([1.0, 2.0, 2.0]) / 3
    guess = space.density(lambda *x: np.exp(1.5 * np.moveaxis(np.array(x), 0, -1) @ axis))
    for drift, kappa in ((mf.USA, 3.0), (mf.SA, 4.0)):
        model = mf.Transformer(drift(beta=2.0), kappa=kappa)
        about = mf.stationary(model, guess).derivative("beta").density
        among = mf.stationary(model, guess, symmetry="none").derivative("beta").density
        apart = about.resample(among.space.degree).coefficients - among.coefficients
        report.compare(f"skew axis, {drift.__name__}", "density by beta", predicted=0,
                       measured=np.abs(apart).max(), tolerance=1e-10)  # fmt: skip


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
    noise = mf.Anisotropic(np.diag([1.0, 2.0]))
    under_noise = mf.branches(Scaled(b=1.0), CIRCLE, (1.0, 1.07), noise=noise)
    finite = mf.branches(Quartic(b=2.0), mf.Sphere(12), (4.0, 4.6), symmetry="Oh", stability=False)
    for name, found in (("anisotropic", under_noise), ("Oh", finite)):
        for point in found.special_points:
            label, predicted = f"{point.kind}, branch {point.branch}", -point.value / found.drift.b
            report.compare(name, label, predicted=predicted, measured=point.derivative("b"),
                           tolerance=1e-9)  # fmt: skip


def main() -> int:
    report, quick = Report(["case", "what"]), "--quick" in sys.argv[1:]
    frozen(report)
    other_spaces(report)
    closed_forms(report)
    if not quick:
        changing_and_other_noises(report)
        attention_and_fields(report)
        without_an_axis(report)
    special_points(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
