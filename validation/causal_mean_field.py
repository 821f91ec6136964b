"""Claim: densities indexed by position follow the causal mean field.

Position s of a sequence is moved by the slices up to it,

    d mu_s/dt = (1/kappa) Lap mu_s - div(mu_s v_s),
    v_s(x) = P_x V int_0^s int k(x, y) y dmu_tau(y) dtau / D_s(x).

1. Circle, against collocation with 22 Legendre nodes in s (the package has 16) and dense
   quadrature in angle by SciPy at rtol = 1e-11: without noise nodes that move, with noise values
   at equal angles. USA divided by the mass seen, and not divided; SA; attention with Q, K, V; a
   window, a decay, a sink, a window that sees the sink too, beta(s). Moments 1, ..., 4 of the
   marginal and at s = 0, 0.3, 0.77, 1: 1e-8. The law at s = 0.3 is interpolated by both.
2. S^2, against 24 positions of 512 nodes that move, t = 0.5: means of coordinates and of their
   products: 1e-6.
3. If the initial law does not depend on s, and sums are divided by the mass seen, each position
   moves as the density without mask: 1e-14 of all coefficients, in the same steps.
4. Mass of every position: 1e-13.
5. Error of q nodes on each of m = 1/h pieces. The slice between nodes has the error of its
   polynomial, h^q. At the nodes an integral over pieces that are complete is exact to h^{2q}, and
   over a part of one piece to h^{q+1}; at the first positions, s ~ h, division by s makes this h^q.
   The marginal, in which those have the weight h, then is of order q + 1. Asked of slopes of
   m = 4, 8, 16: within 0.3 of q for slices and q + 1 for the marginal, q = 2, 3, 4.
6. In fixed steps, after a change of the law at positions beyond a break no bit differs before it.

    python validation/causal_mean_field.py [--quick]    # 38 s, 5 s quick

--quick has on the circle every second drift with noise and the others without, on S^2 USA only,
10 positions of 200 nodes. Exit code 1 on failure.

References: Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322, for masked attention.
"""

import sys
import warnings

import numpy as np
from _indexed_reference import Attraction, Collocation, moved_nodes, moved_values
from _report import Report, command_line, successful

import meanfield as mf

PLACES = (0.3, 0.77, 1.0)
ANGLES = 2 * np.pi * np.arange(64) / 64
ROTATION = np.array([[0.8, 0.3], [-0.2, 0.9]])


def law(s, theta):
    return 1 + 0.4 * np.cos(theta - 1.5 * s) + 0.2 * s * np.cos(2 * theta)


def decay(r):
    return np.exp(-3 * r)


def beta(s):
    return 0.5 + s


def circle_cases():
    """Drift, options of Causal and of positions, and the same for the reference."""
    usa, sa = Attraction(1.0, False), Attraction(2.0, True)
    matrices = {"Q": ROTATION, "V": ROTATION.T}
    quarters = (0.0, 0.25, 0.5, 0.75, 1.0)
    yield "USA, mean", mf.USA(1.0), mf.Causal("mean"), {}, usa, {}
    yield "USA, sum", mf.USA(1.0), mf.Causal("sum"), {}, usa, {"mean": False}
    yield "SA", mf.SA(2.0), mf.Causal(), {}, sa, {}
    yield (
        *("Q, K, V", mf.Attention(**matrices, beta=1.0), mf.Causal(), {}),
        *(Attraction(1.0, True, **matrices), {}),
    )
    yield (
        *("SA, window", mf.SA(2.0), mf.Causal(window=0.25), {"breaks": quarters, "order": 10}),
        *(sa, {"breaks": quarters, "order": 13, "window": 0.25}),
    )
    yield "SA, decay", mf.SA(2.0), mf.Causal(decay=decay), {}, sa, {"decay": decay}
    yield "SA, sink", mf.SA(2.0), mf.Causal(), {"sink": 0.2}, sa, {"sink": 0.2}
    sink = {"breaks": quarters, "sink": 0.2}
    yield (
        *("SA, window and sink", mf.SA(2.0), mf.Causal(window=0.25, sink=0.2)),
        *({**sink, "order": 10}, sa, {**sink, "order": 13, "window": 0.25, "seen_sink": True}),
    )
    first = {"breaks": (0.0, 0.1, 0.35, 0.6, 0.85, 1.0)}
    yield (
        *("USA, window and first tenth", mf.USA(1.0), mf.Causal("mean", window=0.25, sink=0.1)),
        *({**first, "order": 10}, usa, {**first, "order": 13, "window": 0.25, "first": 0.1}),
    )
    yield "SA, beta(s)", mf.SA(2.0), mf.Causal(beta=beta), {}, Attraction(beta, True), {}


def check_circle(report: Report, quick: bool) -> None:
    for k, (name, drift, causal, positions, other, options) in enumerate(circle_cases()):
        index, reference = mf.Positions(**positions), Collocation(**options)
        if callable(other.beta):
            other = Attraction(other.beta(reference.nodes), other.normalised)
        start, dense = mf.Circle(32).indexed(law, index), law(reference.nodes[:, None], ANGLES)
        for kappa in ((5.0, np.inf)[k % 2],) if quick else (np.inf, 5.0):
            model = mf.Transformer(drift, kappa, causal=causal)
            run = successful(mf.solve(model, start, (0, 0.5), t_eval=[0.5], rtol=1e-11))
            if kappa == np.inf:
                x = mf.Circle.embed(ANGLES)
                w = np.full(64, 1 / 64)
                end = moved_nodes(dense, x, w, reference.influence, other, [0.5])[0]
                masses = dense / dense.sum(axis=1, keepdims=True)
                z = end[..., 0] + 1j * end[..., 1]
                moments = np.stack([(masses * z**k).sum(axis=1) for k in range(1, 5)])
            else:
                end = moved_values(dense, reference.influence, other, kappa, [0.5])[0]
                moments = np.stack(
                    [(end * np.exp(1j * k * ANGLES)).mean(axis=1) for k in range(1, 5)]
                )
            compare(report, f"{name}, kappa = {kappa:g}", run.final, reference, moments, 1e-8)
            mass = np.abs(run.final.mass - 1).max()
            numbers = {"predicted": 0, "measured": mass, "tolerance": 1e-13}
            report.compare(f"{name}, kappa = {kappa:g}", "mass - 1, all positions", **numbers)


def compare(report, name, found, reference, moments, tolerance) -> None:
    """Largest errors of moments (4, P) at positions and of the marginal."""
    places = (0.0, *PLACES)  # the atom of a sink at 0, or the value of the polynomial there
    numbers = {
        f"s = {s:g}": (
            found.at_position(s),
            moments[:, 0] if s == 0 and reference.sink else moments @ reference.at(s),
        )
        for s in places
    }
    numbers["marginal"] = found.marginal(), moments @ reference.weights
    for label, (density, expected) in numbers.items():
        computed = np.array([density.moment(k) for k in range(1, 5)])
        error = np.abs(computed - expected).max()
        report.compare(name, f"moments, {label}", predicted=0, measured=error, tolerance=tolerance)


def on_sphere(s, x, y, z):
    return np.exp(0.6 * x * np.cos(s) + 0.6 * y * np.sin(s) + 0.3 * s * z)


def check_sphere(report: Report, quick: bool) -> None:
    count, n = (10, 10) if quick else (24, 16)
    height, gauss = np.polynomial.legendre.leggauss(n)
    angle = np.pi * np.arange(2 * n) / n
    ring = np.sqrt(1 - height**2)[:, None]
    x = np.stack([ring * np.cos(angle), ring * np.sin(angle), height[:, None] + 0 * angle], axis=-1)
    x, w = x.reshape(-1, 3), np.repeat(gauss / (4 * n), 2 * n)
    reference = Collocation(order=count)
    dense = on_sphere(reference.nodes[:, None], *x.T)
    masses = dense * w / (dense @ w)[:, None]
    start = mf.Sphere(16).indexed(on_sphere, mf.Positions(order=8 if quick else 14))
    cases = (
        ("USA, mean", mf.USA(1.0), Attraction(1.0, False)),
        ("SA", mf.SA(1.0), Attraction(1.0, True)),
    )
    for name, drift, other in cases[: 1 if quick else 2]:
        model = mf.Transformer(drift, causal="mean")
        run = successful(mf.solve(model, start, (0, 0.5), t_eval=[0.5], rtol=1e-8))
        end = moved_nodes(dense, x, w, reference.influence, other, [0.5], rtol=1e-8)[0]
        moments = np.einsum("pn,pnk->kp", masses, monomials(end))
        numbers = {
            f"s = {s:g}": (run.final.at_position(s), moments @ reference.at(s)) for s in PLACES
        }
        numbers["marginal"] = run.final.marginal(), moments @ reference.weights
        for label, (density, expected) in numbers.items():
            error = np.abs(density.expect(monomials) - expected).max()
            labels = f"S^2, {name}", f"moments of degree 1, 2, {label}"
            report.compare(*labels, predicted=0, measured=error, tolerance=1e-6)


def monomials(x: np.ndarray) -> np.ndarray:
    """x_a and x_a x_b at points (..., 3): (..., 12)."""
    products = x[..., :, None] * x[..., None, :]
    return np.concatenate([x, products.reshape(*x.shape[:-1], 9)], axis=-1)


def check_unmasked(report: Report) -> None:
    """A law that does not depend on s stays so."""
    spaces = {
        "circle": (mf.Circle(32), lambda s, theta: np.exp(np.cos(theta)) + 0 * s),
        "S^2": (mf.Sphere(12), lambda s, x, y, z: np.exp(x + 0.5 * z) + 0 * s),
        "Zonal(4)": (mf.Zonal(4, 16), lambda s, x: np.exp(x) + 0 * s),
    }
    steps = {"t_eval": [0.5], "dt": 1 / 64}
    for name, (space, f) in spaces.items():
        start = space.indexed(f, mf.Positions([0, 0.3, 1], order=6))
        for drift in (mf.SA(2.0), mf.USA(1.0)):
            masked = mf.Transformer(drift, 6.0, causal="mean")
            found = successful(mf.solve(masked, start, (0, 0.5), **steps)).final
            plain = mf.Transformer(drift, 6.0)
            alone = successful(mf.solve(plain, start.slices[0], (0, 0.5), **steps)).final
            error = np.abs(found.each - alone.coefficients).max()
            numbers = {"predicted": 0, "measured": error, "tolerance": 1e-14}
            report.compare(f"{name}, {drift}", "masked - unmasked", **numbers)


def check_order(report: Report) -> None:
    """Of q nodes on m pieces, in the same steps."""
    model = mf.Transformer(mf.SA(2.0), 5.0, causal=True)
    places = np.linspace(0, 1, 1001)

    def solved(index):
        start = mf.Circle(16).indexed(lambda s, theta: 1 + 0.4 * np.cos(theta - 4 * s), index)
        end = successful(mf.solve(model, start, (0, 0.5), t_eval=[0.5], dt=1 / 32)).final
        return end.at_position(places).moment(1), end.marginal().moment(1)

    exact = solved(mf.Positions(order=24))
    pieces = np.array([4, 8, 16])
    for q in (2, 3, 4):
        with warnings.catch_warnings():  # so few nodes are warned of
            warnings.simplefilter("ignore", mf.UnresolvedWarning)
            found = [solved(mf.Positions(np.linspace(0, 1, m + 1), order=q)) for m in pieces]
        for what, part, order in (("slices", 0, q), ("marginal", 1, q + 1)):
            errors = [np.abs(each[part] - exact[part]).max() for each in found]
            slope = -np.polyfit(np.log(pieces), np.log(errors), 1)[0]
            print(f"q = {q}, {what}: errors", " ".join(f"{e:.2e}" for e in errors))
            numbers = {"predicted": order, "measured": slope, "tolerance": 0.3}
            report.compare(f"order, q = {q}", what, **numbers)


def check_causality(report: Report) -> None:
    """Another law beyond s = 0.5, in the same steps."""
    index = mf.Positions([0, 0.5, 1], order=6)
    cases = {
        "USA, sum": mf.Transformer(mf.USA(1.0), 5.0, causal="sum"),
        "SA": mf.Transformer(mf.SA(2.0), causal=True),
        "Q, K, V": mf.Transformer(mf.Attention(ROTATION, V=ROTATION.T), 5.0, causal=True),
        "SA, window": mf.Transformer(mf.SA(2.0), 5.0, causal=mf.Causal(window=0.5)),
    }
    for name, model in cases.items():
        ends = []
        for amplitude in (0.4, -0.3):
            start = mf.Circle(24).indexed(
                lambda s, theta: 1 + np.where(s < 0.5, 0.4, amplitude) * np.cos(theta - s),  # noqa: B023
                index,
            )
            run = mf.solve(model, start, (0, 0.5), t_eval=[0.5], dt=1 / 32)
            ends.append(successful(run).final.each)
        before = index.nodes < 0.5
        same = np.count_nonzero(ends[0][before] != ends[1][before])
        report.compare(
            name, "numbers changed before s = 0.5", predicted=0, measured=same, tolerance=0
        )
        later = (ends[0] != ends[1])[~before, 1].mean()
        report.compare(
            name, "share of c_1 changed beyond it", predicted=1, measured=later, tolerance=0
        )


def main() -> int:
    quick = command_line(__doc__, "fewer cases and nodes").quick
    report = Report(["case", "what"])
    check_circle(report, quick)
    check_sphere(report, quick)
    check_unmasked(report)
    check_order(report)
    check_causality(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
