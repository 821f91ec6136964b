"""Claim: transitions are found, and called what they are, where two onsets are close together.

W = cos + m cos 2 on the circle has the onsets 2 (degree 1) and 2/m (degree 2). Stationary states
are the critical points of

    Phi(a, b) = a^2/(2 kappa) + b^2/(2 kappa m) - log int exp(a cos + b cos 2) = kappa F,

which for small a, b, with e_1 = 1/kappa - 1/2 and e_2 = 1/(kappa m) - 1/2, is

    e_1 a^2/2 + e_2 b^2/2 - a^2 b/8 + (a^4 + b^4)/64 + O(5).

So the branch of degree 2, b^2 = -16 e_2, loses its stability to degree 1 at b = 4 e_1: for m > 1 at
r_2 = m - 1 and kappa m/2 - 1 = (m - 1)^2/2 to leading order, however small m - 1 is. The
first-order transition is far away.

1. First-order transition, jump and fold are those of Phi, found here by quadrature and scipy, for m
   from 0.55 to 1.25; so is the secondary bifurcation.
2. The transition is continuous for m <= 1/2, where c_2 = 0 and c_4 > 0 decides, and beyond the end
   point of the first-order line at m = 1.26729, where it meets the onset 2/m: least values of Phi,
   and the double series sum_k I_k(b) I_2k(a) of the integral in Bessel functions.
3. The same line is that of `phase_diagram`.
4. For pairs of degrees on the circle, S^2 and S^4 with onsets 1 % to 1e-7 apart, or none, and for
   three degrees with equal onsets, the order of the transition is that which least values of Phi at
   the first onset have, with P_k and P_l. Degrees 3, 4, 5 on the circle are discontinuous together,
   continuous two by two.
5. Under multiplicative noise of constant scale, which is isotropic, the equations are those of any
   noise: fold and transition are those of Phi all the same, and onsets that differ but count as one
   are named in `warnings`.
6. Beyond the end point there is a second transition, from the branch of degree 2 to states with a >
   0: where their Phi are equal, found by quadrature and scipy, and by the free energies of states
   of `branches`. It is of first order up to m = 1.63493910, where the quartic term of min_b Phi
   vanishes at the secondary bifurcation, and beyond it is continuous, that bifurcation.

7. Along a parameter other than kappa the two onsets move at paces of their own: the strength of
   both, in which they move together, or of one of them, which changes the other by as much, three
   times or minus once. Folds, bifurcations and all states are those of Phi; of 1e-4 between the
   onsets, and of a strength that moves one of them alone, `warnings` tells.

    python validation/close_onsets.py [--quick]    # 210 s, 25 s quick

References: Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020), for
discontinuous transitions at resonances.
"""

import itertools
import sys
from collections.abc import Callable

import numpy as np
from _report import Report, command_line
from scipy.optimize import brentq, fsolve, minimize
from scipy.special import eval_chebyt, eval_gegenbauer, iv, roots_gegenbauer

import meanfield as mf

ANGLES = np.pi * (np.arange(400) + 0.5) / 400
FIRST, SECOND = np.cos(ANGLES), np.cos(2 * ANGLES)
RATIOS = (0.99, 0.999, 1 - 1e-7, 1.0, 1.0001, 1.01)


class Cosines(mf.ZonalDrift):
    """W = cos + m cos 2."""

    m: float

    def slope(self, t):
        return 1 + 4 * self.m * t


class Paced(mf.ZonalDrift):
    """W = b cos + m (1 + pace (b - 1)) cos 2."""

    b: float
    pace: float
    m: float

    def slope(self, t):
        return self.b + 4 * self.m * (1 + self.pace * (self.b - 1)) * t


# The reference -------------------------------------------------------------------------------


def law(a: float, b: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Masses of exp(a cos + b cos 2) on a grid, its two moments, and the logarithm of its mean."""
    exponent = a * FIRST + b * SECOND
    masses = np.exp(exponent - exponent.max())
    log_mean = exponent.max() + np.log(masses.mean())
    masses /= masses.sum()
    return masses, np.array([masses @ FIRST, masses @ SECOND]), log_mean


def energy(y: np.ndarray, kappa: float, m: float) -> float:
    """Phi."""
    return y[0] ** 2 / (2 * kappa) + y[1] ** 2 / (2 * kappa * m) - law(*y)[2]


def ordered(kappa: float, m: float) -> tuple[np.ndarray, float]:
    """The least Phi among states with a > 0, from four starts, and where it is."""
    best, least = np.zeros(2), np.inf
    for start in ((0.8 * kappa, 0.5 * kappa * m), (1.8 * kappa, 1.5 * kappa * m), (0.5, 0.5)):
        found = minimize(energy, start, args=(kappa, m), options={"gtol": 1e-12})
        if found.fun < least and abs(found.x[0]) > 1e-3:
            best, least = found.x, found.fun
    return best, least


def transition(m: float) -> np.ndarray:
    """(a, b, kappa) of the state with a > 0 and Phi = 0 below the first onset."""
    low, high = 0.85 * min(2, 2 / m), min(2, 2 / m)
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (low, middle) if ordered(middle, m)[1] < -1e-10 else (middle, high)

    def residual(y: np.ndarray) -> list[float]:
        a, b, kappa = y
        moments = law(a, b)[1]
        return [a - kappa * moments[0], b - kappa * m * moments[1], energy(y[:2], kappa, m)]

    return fsolve(residual, [*ordered(high, m)[0], high], xtol=1e-12)


def fold(m: float, start: np.ndarray) -> float:
    """kappa at which the determinant of the second derivatives of Phi vanishes."""

    def residual(y: np.ndarray) -> list[float]:
        a, b, kappa = y
        masses, moments, _ = law(a, b)
        functions = np.array([FIRST, SECOND])
        covariance = (functions * masses) @ functions.T - np.outer(moments, moments)
        hessian = np.diag([1 / kappa, 1 / (kappa * m)]) - covariance
        return [a - kappa * moments[0], b - kappa * m * moments[1], np.linalg.det(hessian)]

    return float(fsolve(residual, start * [0.8, 0.8, 0.985], xtol=1e-12)[2])


def secondary(m: float) -> float:
    """kappa on the branch of degree 2 with kappa E cos^2 = 1: by r_2, where kappa = 2/(1 + r_2)."""

    def residual(r: float) -> float:
        kappa = 2 / (1 + r)
        return float(law(0.0, kappa * m * r)[1][1] / r - 1)

    return 2 / (1 + brentq(residual, 0.3 * (m - 1), 0.9, xtol=1e-15))


def along_degree_two(kappa: float, m: float) -> float:
    """Phi of the branch of degree 2, where b/(kappa m) = I_1(b)/I_0(b)."""
    b = brentq(lambda b: b / (kappa * m) - iv(1, b) / iv(0, b), 1e-6, 2 * kappa * m, xtol=1e-15)
    return b**2 / (2 * kappa * m) - float(np.log(iv(0, b)))


def second_transition(m: float) -> float:
    """kappa at which a state with a > 0 has the Phi of the branch of degree 2."""
    low, high = 2 / m * (1 + 1e-6), secondary(m)
    while high - low > 1e-4:
        middle = (low + high) / 2
        lower = ordered(middle, m)[1] < along_degree_two(middle, m)
        low, high = (low, middle) if lower else (middle, high)

    def residual(y: np.ndarray) -> list[float]:
        a, b, kappa = y
        moments = law(a, b)[1]
        apart = energy(y[:2], kappa, m) - along_degree_two(kappa, m)
        return [a - kappa * moments[0], b - kappa * m * moments[1], apart]

    return float(fsolve(residual, [*ordered(high, m)[0], high], xtol=1e-12)[2])


def end_of_second_line() -> float:
    """m at which min_b Phi has no term in a^2 nor in a^4 on the branch of degree 2."""

    def residual(y: np.ndarray) -> list[float]:
        kappa, m, b = y
        masses, moments, _ = law(0.0, b)
        square, fourth = masses @ FIRST**2, masses @ FIRST**4
        mixed = masses @ (FIRST**2 * SECOND) - square * moments[1]
        stiffness = 1 / (kappa * m) - (masses @ SECOND**2 - moments[1] ** 2)
        quartic = (3 * square**2 - fourth) / 24 - mixed**2 / (8 * stiffness)
        return [b - kappa * m * moments[1], 1 - kappa * square, quartic]

    return float(fsolve(residual, [1.4, 1.6, 1.0], xtol=1e-12)[1])


def end_by_bessel_functions() -> float:
    """m at which a state with kappa = 2/m has Phi = 0, without quadrature or minimisation."""
    k = np.arange(1, 40)

    def residual(y: np.ndarray) -> list[float]:
        a, b, m = y
        mean = iv(0, a) * iv(0, b) + 2 * iv(k, b) @ iv(2 * k, a)
        by_a = iv(1, a) * iv(0, b) + iv(k, b) @ (iv(2 * k - 1, a) + iv(2 * k + 1, a))
        by_b = iv(0, a) * iv(1, b) + (iv(k - 1, b) + iv(k + 1, b)) @ iv(2 * k, a)
        phi = m * a**2 / 4 + b**2 / 4 - np.log(mean)
        return [m * a / 2 - by_a / mean, b / 2 - by_b / mean, phi]

    return float(fsolve(residual, [0.8, 1.0, 1.27], xtol=1e-13)[2])


def legendre(degree: int, d: int, t: np.ndarray) -> np.ndarray:
    if d == 2:
        return eval_chebyt(degree, t)
    half = d / 2 - 1
    return eval_gegenbauer(degree, half, t) / eval_gegenbauer(degree, half, 1.0)


def nodes(d: int, count: int = 200) -> tuple[np.ndarray, np.ndarray]:
    if d == 2:
        return np.cos(np.pi * (np.arange(count) + 0.5) / count), np.full(count, 1 / count)
    x, weights = roots_gegenbauer(count, d / 2 - 1)
    return x, weights / weights.sum()


def least(degrees: tuple[int, ...], d: int, ratio: float = 1.0) -> float:
    """The least Phi at the first onset, for onsets 1, ..., 1 and `ratio`."""
    x, weights = nodes(d)
    p = np.array([legendre(l, d, x) for l in degrees])
    sizes = 1 / (p**2 @ weights)  # dim H_l
    strengths = sizes / [*np.ones(len(degrees) - 1), ratio]
    kappa = min(1.0, ratio)

    def phi(y: np.ndarray) -> tuple[float, np.ndarray]:
        exponent = y @ p
        masses = weights * np.exp(exponent - exponent.max())
        mass = masses.sum()
        value = y @ (y / strengths) / (2 * kappa) - exponent.max() - np.log(mass)
        return value, y / (kappa * strengths) - p @ masses / mass

    ways = np.array([*itertools.product((-1, -0.4, 0.4, 1), repeat=len(degrees))])
    starts = itertools.product((0.5, 2, 10), ways / np.linalg.norm(ways, axis=1)[:, None])
    return float(min(minimize(phi, r * np.sqrt(sizes / d) * a, jac=True).fun for r, a in starts))


STARTS = np.array([*itertools.product((0, 0.03, 0.3, 1.5, 4), (-3, -0.5, -0.05, 0.05, 0.5, 3))])


def states_of(strengths: tuple[float, float]) -> np.ndarray:
    """Moments (n, 2) of all states exp(a cos + b cos 2), a = strength r_1, ..., up to rotations."""
    found = [np.zeros(2)]
    for start in STARTS:
        y, _, good, _ = fsolve(lambda y: y - strengths * law(*y)[1], start, xtol=1e-13,
                               full_output=True)  # fmt: skip
        r = law(*y)[1] * [np.sign(y[0]) or 1, 1]
        r = np.abs(r) if abs(r[0]) < 1e-7 else r
        if good == 1 and all(np.abs(r - one).max() > 1e-6 for one in found):
            found.append(r)
    return np.array(found)


def fold_along(strengths: Callable[[float], np.ndarray], start: np.ndarray) -> float:
    """The parameter at which the second derivatives of Phi, of these strengths, are singular."""

    def residual(y: np.ndarray) -> list[float]:
        masses, moments, _ = law(*y[:2])
        functions = np.array([FIRST, SECOND])
        covariance = (functions * masses) @ functions.T - np.outer(moments, moments)
        hessian = np.diag(1 / strengths(y[2])) - covariance
        return [*(y[:2] - strengths(y[2]) * moments), np.linalg.det(hessian)]

    return float(fsolve(residual, start, xtol=1e-12)[2])


def moments_of(density: mf.Density) -> np.ndarray:
    """|E e^(i theta)| and E cos 2 theta about that axis."""
    space = density.space
    first, second = (
        (density.values * space.weights) @ np.exp(1j * k * space.arguments["theta"]) for k in (1, 2)
    )
    turn = np.conj(first) / abs(first) if abs(first) > 1e-7 else 0.0
    return np.array([abs(first), (second * turn**2).real if turn else abs(second)])


# The comparisons -----------------------------------------------------------------------------


def check_transitions(report: Report, plane: mf.PhaseDiagram, values: tuple) -> None:
    for m in values:
        known = transition(m)
        diagram = mf.branches(mf.CosineSeries([0.0, 1.0, m]), mf.Circle(16), (1.2, 2.4))
        found = diagram.transition()
        rows = [
            ("transition", known[2], found.kappa), ("of a phase diagram", known[2],
             plane.kappa("transition", m)), ("jump", known[0] / known[2], found.jump),
            ("fold", fold(m, known), found.hysteresis[0] if found.hysteresis else np.nan),
        ]  # fmt: skip
        if m > 1:
            second = min(s.value for s in diagram.special("bifurcation", 1))
            rows.append(("secondary bifurcation", secondary(m), second))
        for what, predicted, measured in rows:
            report.compare(f"m = {m:g}", what, predicted=predicted, measured=measured,
                           tolerance=1e-9)  # fmt: skip
        report.compare(f"m = {m:g}", "warnings", predicted=0, measured=len(diagram.warnings),
                       tolerance=0)  # fmt: skip


def check_orders(report: Report, plane: mf.PhaseDiagram) -> None:
    end = brentq(lambda m: ordered(2 / m, m)[1], 1.2, 1.29, xtol=1e-12)
    (point,) = plane.end_points
    ends = ("least Phi", end), ("Bessel functions", end_by_bessel_functions())
    for what, predicted in ends:
        report.compare("end of the line", f"m, by {what}", predicted=predicted,
                       measured=point.beta, tolerance=1e-8)  # fmt: skip
    for m in (0.45, 0.5, 0.5001, 0.6, 1.2, end - 0.001, end + 0.001, 1.3, 1.4, 2.0, 2.5):
        first = min(2, 2 / m)
        lower = m > 0.5 if m < 0.51 else ordered(first, m)[1] < -1e-7  # c_2 ~ 1/2 - m
        diagram = mf.branches(mf.CosineSeries([0.0, 1.0, m]), mf.Circle(16), (0.7, 2.4))
        for name, found in (("branches", diagram), ("phase_diagram", plane)):
            options = () if name == "branches" else (m,)
            order = found.transition(*options).order
            report.compare(f"m = {m:.5g}", f"discontinuous, {name}", predicted=int(lower),
                           measured=int(order == "discontinuous"), tolerance=0)  # fmt: skip


def check_pairs(report: Report, pairs: list, dimensions: tuple) -> None:
    spaces = {2: mf.Circle(16), 3: mf.Sphere(16), 5: mf.Zonal(5, 16)}
    for d, pair in itertools.product(dimensions, pairs):
        x, weights = nodes(d)
        sizes = [1 / (legendre(l, d, x) ** 2 @ weights) for l in pair]
        for ratio in RATIOS:
            strengths = sizes[0], sizes[1] / ratio

            def potential(t, d=d, pair=pair, strengths=strengths):
                return sum(w * legendre(l, d, t) for l, w in zip(pair, strengths, strict=True))

            drift = mf.Interaction(potential, name=f"{pair}, {ratio}")
            diagram = mf.branches(drift, spaces[d], (0.5, 1.3), stability=False)
            lower = least(pair, d, ratio) < -1e-9
            order = diagram.transition().order
            report.compare(f"d = {d}, degrees {pair}, {ratio:.8g}", "discontinuous",
                           predicted=int(lower), measured=int(order == "discontinuous"),
                           tolerance=0)  # fmt: skip


def check_triples(report: Report, triples: dict) -> None:
    for (d, degrees), space in triples.items():
        x, weights = nodes(d)
        sizes = [1 / (legendre(l, d, x) ** 2 @ weights) for l in degrees]

        def potential(t, d=d, degrees=degrees, sizes=sizes):
            return sum(w * legendre(l, d, t) for l, w in zip(degrees, sizes, strict=True))

        drift = mf.Interaction(potential, name=f"{degrees}")
        found = mf.branches(drift, space, (0.5, 1.3), stability=False).transition()
        report.compare(f"d = {d}, degrees {degrees}", "discontinuous",
                       predicted=int(least(degrees, d) < -1e-9),
                       measured=int(found.order == "discontinuous"), tolerance=0)  # fmt: skip


def check_noise(report: Report, values: tuple) -> None:
    noise = mf.noise.MultiplicativeStratonovich(lambda x: 1 + 0 * x[..., 0])
    for m in values:
        case, drift = f"m = {m:.8g}, as any noise", mf.CosineSeries([0.0, 1.0, m])
        found = mf.branches(drift, mf.Circle(24), (1.6, 2.03), noise=noise)
        report.compare(case, "fold", predicted=fold(m, transition(m)),
                       measured=min((s.value for s in found.special("fold")), default=np.nan),
                       tolerance=1e-9)  # fmt: skip
        report.compare(case, "transition", predicted=transition(m)[2],
                       measured=found.transition().kappa, tolerance=1e-9)  # fmt: skip
        named = sum("onsets of degrees 1 and 2" in warning for warning in found.warnings)
        report.compare(case, "onsets that count as one", predicted=int(0 < abs(m - 1) < 7e-4),
                       measured=named, tolerance=0)  # fmt: skip


def check_parameters(report: Report, cases: dict) -> None:
    noise = mf.noise.MultiplicativeStratonovich(lambda x: 1 + 0 * x[..., 0])
    for (name, noisy, drift, kappa, span), strengths in cases.items():
        parameter = "b" if isinstance(drift, Paced) else name
        model = mf.Transformer(drift, kappa, noise=noise) if noisy else drift
        at = {} if noisy else {"kappa": kappa}
        found = mf.branches(model, mf.Circle(24), vary={parameter: span}, **at)
        far = np.linspace(*span, 8)[1:-1]
        missed = 0
        for value in far:
            own = [moments_of(state.density) for _, state in found.states_at(float(value))]
            known = states_of(strengths(value))
            missed += sum(min(np.abs(r - one).max() for one in own) > 1e-7 for r in known)
        named = any("onsets of degrees 1 and 2" in warning for warning in found.warnings)
        report.compare(name, "states missed without a warning", predicted=0,
                       measured=0 if named else missed, tolerance=0)  # fmt: skip
        for place in found.special("fold"):
            r = moments_of(place.state.density)
            start = np.append(strengths(place.value) * r, place.value) * 1.001
            report.compare(name, "fold", predicted=fold_along(strengths, start),
                           measured=place.value, tolerance=1e-9 * kappa**-1)  # fmt: skip


def parameter_cases() -> dict:
    """Strengths (kappa w_1, kappa w_2) as functions of the parameter, by case."""
    cases: dict = {}
    for b, m in itertools.product((0.05, 1.0, 20.0), (1.0001, 1.001, 1.01)):
        both = b * mf.CosineSeries([0.0, 1.0, m])
        for noisy in (False, True):
            key = "factors[0]", noisy, both, 2 / b, (0.85 * b, 1.03 * b)
            cases[key] = lambda v, b=b, m=m: 2 * v / b * np.array([1.0, m])
    for apart in (0.01, 0.001, 0.0001):
        one, kappa = mf.Kuramoto() + mf.CosineSeries([0.0, 0.0, 1.0]), 2 * (1 + apart)
        for i in (0, 1):
            key = f"factors[{i}]", False, one, kappa, (0.8, 1.25)
            cases[key] = lambda v, i=i, kappa=kappa: kappa * np.where(np.arange(2) == i, v, 1.0)
    for pace, m in itertools.product((3.0, 0.3, -1.0), (1.0, 1.001, 1.01)):
        key = f"pace {pace:g}, m = {m:g}", False, Paced(1.0, pace, m), 2.0, (0.8, 1.2)
        cases[key] = lambda v, p=pace, m=m: 2 * np.array([v, m * (1 + p * (v - 1))])
    return cases


def check_second(report: Report, values: tuple) -> None:
    end = end_of_second_line()
    report.compare("end of the second line", "m", predicted=1.6349391, measured=end,
                   tolerance=1e-8)  # fmt: skip
    for m in (*values, end - 0.01, end + 0.01):
        found = mf.branches(mf.CosineSeries([0.0, 1.0, m]), mf.Circle(16), (0.9, 2.1))
        turning = min(s.value for s in found.special("bifurcation", 1))
        jumps = bool(found.special("fold"))
        report.compare(f"m = {m:.5g}", "second transition discontinuous", predicted=int(m < end),
                       measured=int(jumps), tolerance=0)  # fmt: skip
        if m in values:

            def excess(kappa: float, found: mf.Diagram = found) -> float:
                states = [state for _, state in found.states_at(kappa)]
                energies = [(s.order_parameter > 1e-6, s.free_energy) for s in states]
                return min(e for mixed, e in energies if mixed) - min(
                    e for mixed, e in energies if not mixed
                )

            low = min(s.value for s in found.special("fold")) * (1 + 1e-9)
            report.compare(f"m = {m:.5g}", "second transition", predicted=second_transition(m),
                           measured=brentq(excess, low, turning * (1 - 1e-9), xtol=1e-14),
                           tolerance=1e-9)  # fmt: skip


def main() -> int:
    quick = command_line(__doc__, "few values of m, and few pairs").quick
    report = Report(["case", "quantity"], digits=11)
    plane = mf.phase_diagram(Cosines(1.0), mf.Circle(16), vary={"m": (0.4, 2.5)})
    many = (0.55, 0.6, 0.8, 0.95, 0.999, 1.0, 1.001, 1.01, 1.019, 1.05, 1.1, 1.2, 1.25)
    check_transitions(report, plane, (0.6, 1.001, 1.05) if quick else many)
    check_orders(report, plane)
    pairs = list(itertools.combinations((1, 2, 3, 4), 2))
    check_pairs(report, pairs[:2] if quick else pairs, (2,) if quick else (2, 3, 5))
    circle, sphere, zonal = mf.Circle(16), mf.Sphere(16), mf.Zonal(5, 16)
    triples = {(2, (3, 4, 5)): circle, (2, (1, 3, 5)): circle, (2, (1, 2, 3)): circle,
               (2, (1, 4, 6)): circle, (3, (1, 3, 5)): sphere, (5, (1, 3, 5)): zonal}  # fmt: skip
    check_triples(report, dict(itertools.islice(triples.items(), 1 if quick else None)))
    any_noise = (0.9999, 1.0, 1 + 1e-7, 1.0001, 1.0005, 1.001, 1.01, 1.05)
    check_noise(report, (1.0001,) if quick else any_noise)
    cases = parameter_cases()
    check_parameters(report, dict(list(cases.items())[3:4]) if quick else cases)
    check_second(report, (1.3,) if quick else (1.27, 1.3, 1.35, 1.45))
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
