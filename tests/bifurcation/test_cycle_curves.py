"""Special points and homoclinic ends of cycles, for small systems in which they are known."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from meanfield.bifurcation.branches import stop_of
from meanfield.bifurcation.cycle import Resolution
from meanfield.bifurcation.cycle_branch import _doubled, _Follower, _Point
from meanfield.bifurcation.cycle_collocation import POINTS, Condensed, Mesh, radau
from meanfield.bifurcation.cycle_curve import CycleCurve, Orbit
from meanfield.lowlevel.blas import one_blas_thread


@pytest.fixture(autouse=True)
def _one_thread():
    """Systems of two or three numbers take seconds if threads are started for them."""
    with one_blas_thread():
        yield


class Flow:
    """dc/dt = f(c, p) with the face of `CoefficientFlow`."""

    rotations = ()

    def __init__(self, f, jacobian, by_parameter, size):
        self.rate, self.jacobian, self._change = f, jacobian, by_parameter
        self.states = SimpleNamespace(
            journal=None, value=float, coordinate=float, identity=lambda: (f,)
        )
        self.basis = SimpleNamespace(sizes=np.ones(size), degrees=np.arange(size), degree=1)

    def tail(self, stages, p, limit):
        return 0.0

    def padded(self, states):
        return states

    def by_parameter(self, states, p):
        return np.apply_along_axis(self._change, -1, states, p)


def orbit_of(flow, c, p, period, count=16):
    """The cycle at p near the one that passes c, on a mesh that resolves it."""
    run = solve_ivp(lambda t, c: flow.rate(c, p), (0, period), c, rtol=1e-9, dense_output=True)
    mesh = Mesh(np.linspace(0, 1, count + 1))
    stages = np.moveaxis(run.sol(mesh.phases.ravel() * period), 0, -1)
    orbit = Orbit(stages.reshape(*mesh.phases.shape, -1), period, np.zeros(0), p)
    curve = CycleCurve(flow, mesh, orbit, 0.2)
    curve, point, iteration = Resolution(1e-9, 1, 200).found(curve, orbit)
    assert iteration.converged, iteration.residuals
    return _Point(curve, point)


def followed(begin, span, sign=1.0, most=300, until=None):
    """Points of the branch in the direction of growing p, or of falling p, and the follower."""
    point = begin.point._replace(tangent=sign * begin.point.tangent)
    follower = _Follower(span, Resolution(1e-9, 1, 200), most, until=stop_of(until, None))
    return list(follower.points(_Point(begin.curve, point), 0.05)), follower


def radial(c, p):
    """r' = r (p + r^2 - r^4), angle' = 1."""
    x, y = c
    square = x * x + y * y
    growth = p + square - square**2
    return np.array([growth * x - y, growth * y + x])


def radial_jacobian(c, p):
    x, y = c
    square = x * x + y * y
    growth, slope = p + square - square**2, 2 - 4 * square
    return np.array([[growth + slope * x * x, slope * x * y - 1],
                     [slope * x * y + 1, growth + slope * y * y]])  # fmt: skip


RADIAL = Flow(radial, radial_jacobian, lambda c, p: c, 2)


def test_the_method_is_radau_iia():
    tableau = radau()
    assert tableau.matrix.sum(axis=1) == pytest.approx(tableau.points, abs=1e-14)
    for power in range(2 * POINTS - 1):
        moment = tableau.matrix[-1] @ tableau.points**power
        assert moment == pytest.approx(1 / (power + 1), abs=1e-14)


def test_interpolation_reproduces_polynomials_and_meshes_adapt():
    mesh = Mesh(np.array([0.0, 0.3, 0.4, 1.0]))
    stages = np.stack([np.cos(2 * np.pi * mesh.phases), np.sin(2 * np.pi * mesh.phases)], axis=-1)
    assert mesh.at(stages, mesh.phases) == pytest.approx(stages, abs=1e-13)
    assert mesh.at(stages, 1.2) == pytest.approx(mesh.at(stages, 0.2), abs=1e-14)
    finer = mesh.adapted(stages, 1e-10, 3, 100)
    phases = np.linspace(0, 1, 50)
    again = np.stack([np.cos(2 * np.pi * finer.phases), np.sin(2 * np.pi * finer.phases)], axis=-1)
    exact = np.stack([np.cos(2 * np.pi * phases), np.sin(2 * np.pi * phases)], axis=-1)
    assert np.abs(finer.at(again, phases) - exact).max() < 1e-10
    assert finer.errors(again).max() < 1e-10


def test_elimination_equals_a_dense_solution():
    rng = np.random.default_rng(0)
    n, size, borders = 4, 3, 2
    steps = rng.standard_normal((n, size, size))
    shifts = rng.standard_normal((n, size, borders + 1))
    rows, corner = rng.standard_normal((borders, n, size)), rng.standard_normal((borders, 3))
    ends, y = Condensed(steps, shifts).solved(rows, corner)
    for m in range(n):
        expected = steps[m] @ ends[m - 1] + shifts[m] @ y
        assert ends[m] == pytest.approx(expected, abs=1e-12)
    assert np.einsum("amn,mn->a", rows, ends) + corner @ y == pytest.approx(0, abs=1e-12)
    product = steps[3] @ steps[2] @ steps[1] @ steps[0]
    assert Condensed(steps, shifts).monodromy() == pytest.approx(product, abs=1e-12)


def test_a_fold_of_cycles():
    """r^2 = 1/2 at p = -1/4; the multiplier is exp(4 pi (r^2 - 2 r^4))."""
    begin = orbit_of(RADIAL, [1.0, 0.0], 0.0, 6.3)
    assert begin.orbit.period == pytest.approx(2 * np.pi, abs=1e-11)
    _, (multiplier,), error = begin.curve.multipliers(begin.point)
    assert multiplier == pytest.approx(np.exp(-4 * np.pi), abs=1e-11)
    assert error < 1e-10
    points, follower = followed(begin, (-0.5, 0.5), -1.0)
    (fold,) = follower.specials
    assert fold[0] == "fold"
    assert fold[2].point.value == pytest.approx(-0.25, abs=1e-9)
    assert follower.end == "Hopf"  # the unstable cycles shrink to the origin
    assert follower.limit == pytest.approx(0.0, abs=1e-4)
    assert len(points) > 5
    points, follower = followed(begin, (-0.5, 0.5), -1.0, until=1)
    assert follower.end == "stopped"
    assert points[-1] is follower.last
    assert [special.kind for special in follower.specials] == ["fold"]
    assert points[-1].point.tangent[-1] > 0


def test_a_torus():
    """Langford's system: x + i y turns with the rate 3; (r, z) have a Hopf point in closed form."""
    b, e, c, turn = 0.7, 0.25, 0.6, 3.0

    def f(v, a):
        x, y, z = v
        square = x * x + y * y
        return np.array([(z - b) * x - turn * y, turn * x + (z - b) * y,
                         c + a * z - z**3 / 3 - square * (1 + e * z)])  # fmt: skip

    def jacobian(v, a):
        x, y, z = v
        square = x * x + y * y
        return np.array([[z - b, -turn, x], [turn, z - b, y],
                         [-2 * x * (1 + e * z), -2 * y * (1 + e * z),
                          a - z * z - e * square]])  # fmt: skip

    flow = Flow(f, jacobian, lambda v, a: np.array([0.0, 0.0, v[2]]), 3)
    critical = (b**2 * (1 + e * b) + e * (c - b**3 / 3)) / (1 + e * b - e * b)
    a = critical - 0.1
    radius = np.sqrt((c + a * b - b**3 / 3) / (1 + e * b))
    begin = orbit_of(flow, [radius, 0.0, b], a, 2 * np.pi / turn)
    points, follower = followed(begin, (a, critical + 0.1))
    ((kind, multiplier, place),) = follower.specials
    assert kind == "torus"
    assert place.point.value == pytest.approx(critical, abs=1e-9)
    assert abs(multiplier) == pytest.approx(1.0, abs=1e-9)
    assert follower.end == "range"
    assert points[-1].point.value == critical + 0.1


def half_turned(v, p):
    """Perturbations w = (r - 1, z) turn by half the angle of the orbit r = 1.

    In axes that turn with them, q' = p q - q^3 and s' = -s.
    """
    x, y, z = v
    r = np.sqrt(x * x + y * y)
    cosine, sine = x / r, y / r
    w = np.array([r - 1, z])
    kept = np.array([(1 + cosine) * w[0] + sine * z, sine * w[0] + (1 - cosine) * z]) / 2
    square = kept[0] ** 2 + kept[1] ** 2
    rate = p * kept - square * kept - (w - kept) + np.array([-z, w[0]]) / 2
    return np.array([rate[0] * cosine - y, rate[0] * sine + x, rate[1]])


def half_turned_jacobian(v, p):
    return np.array([half_turned(v + 1e-30j * e, p).imag / 1e-30 for e in np.eye(3)]).T


def half_turned_change(v, p):
    return (half_turned(v, 1.0) - half_turned(v, -1.0)) / 2


HALF_TURNED = Flow(half_turned, half_turned_jacobian, half_turned_change, 3)


def test_a_doubled_branch_of_a_closed_form():
    """Orbits of the period 4 pi with q^2 = p begin at p = 0, with the multiplier exp(-8 pi p)."""
    begin = orbit_of(HALF_TURNED, [1.0, 0.0, 0.0], -0.03, 2 * np.pi, 8)
    _, follower = followed(begin, (-0.03, 0.03))
    ((kind, multiplier, place),) = follower.specials
    assert kind == "period doubling"
    assert place.point.value == pytest.approx(0.0, abs=1e-9)
    assert multiplier == pytest.approx(-1.0, abs=1e-8)
    first = _doubled(place, Resolution(1e-9, 1, 200))
    points, follower = followed(first, (-0.1, 0.06))
    assert follower.end == "range"
    for one in (first, *points):
        assert one.orbit.period == pytest.approx(4 * np.pi, abs=1e-9)
        assert one.odd_amplitude**2 == pytest.approx(one.point.value, abs=1e-9)
        _, others, _ = one.curve.multipliers(one.point)
        assert others[0] == pytest.approx(np.exp(-8 * np.pi * one.point.value), abs=1e-7)
    _, back = followed(points[-1], (-0.1, 0.2), -1.0)
    assert back.end == "period doubling"
    assert back.limit == pytest.approx(0.0, abs=1e-8)


def test_a_period_doubling():
    """Roessler's system; at the located point, scipy's monodromy matrix has the eigenvalue -1.

    Orbits of twice the period, which begin there, return after it and not after half of it.
    """

    def f(v, c):
        x, y, z = v
        return np.array([-y - z, x + 0.2 * y, 0.2 + z * (x - c)])

    def jacobian(v, c):
        x, _, z = v
        return np.array([[0, -1, -1], [1, 0.2, 0], [z, 0, x - c]], dtype=float)

    flow = Flow(f, jacobian, lambda v, c: np.array([0.0, 0.0, -v[2]]), 3)
    settled = solve_ivp(lambda t, v: f(v, 2.7), (0, 300), [2.0, 2.0, 0.1], rtol=1e-9).y[:, -1]
    begin = orbit_of(flow, settled, 2.7, 5.73)
    _, follower = followed(begin, (2.6, 2.9))
    ((kind, multiplier, place),) = follower.specials
    assert kind == "period doubling"
    assert multiplier == pytest.approx(-1.0, abs=1e-8)
    orbit = place.orbit

    def extended(t, v):
        return np.append(f(v[:3], orbit.p), jacobian(v[:3], orbit.p) @ v[3:].reshape(3, 3))

    start = np.append(orbit.stages[-1, -1], np.eye(3))
    end = solve_ivp(extended, (0, orbit.period), start, method="DOP853", rtol=1e-12, atol=1e-13)
    values = np.linalg.eigvals(end.y[3:, -1].reshape(3, 3))
    assert np.abs(values + 1).min() < 1e-7
    first = _doubled(place, Resolution(1e-9, 1, 200))
    for one in (first, followed(first, (2.6, 2.9))[0][-1]):
        c, p, period = one.orbit.stages[-1, -1], one.orbit.p, one.orbit.period
        run = solve_ivp(lambda t, v, p=p: f(v, p), (0, period), c, method="DOP853", rtol=1e-12,
                        atol=1e-13, t_eval=[period / 2, period])  # fmt: skip
        assert np.abs(run.y[:, 1] - c).max() < 1e-8
        assert np.abs(run.y[:, 0] - c).max() > 1e-2
    assert one.point.value == 2.9
    assert first.orbit.period == pytest.approx(2 * orbit.period, rel=1e-4)
    assert first.curve.multipliers(first.point)[1][0] == pytest.approx(1.0, abs=0.01)


def test_a_homoclinic_orbit():
    """Kuznetsov, example 6.1: the loop x^2 (1 - x) = y^2 at p = 0, to a saddle with rate 1."""

    def f(v, p):
        x, y = v
        return np.array([-x + 2 * y + x * x, (2 - p) * x - y - 3 * x * x + 1.5 * x * y])

    def jacobian(v, p):
        x, y = v
        return np.array([[-1 + 2 * x, 2.0], [2 - p - 6 * x + 1.5 * y, -1 + 1.5 * x]])

    flow = Flow(f, jacobian, lambda v, p: np.array([0.0, -v[0]]), 2)
    run = solve_ivp(lambda t, v: f(v, 0.05), (0, 200), [0.5, 0.2], rtol=1e-10, dense_output=True)
    late = run.sol(np.linspace(150, 200, 20001))
    back = np.linalg.norm(late - late[:, -1:], axis=0)
    minima = np.flatnonzero((back[1:-1] < back[:-2]) & (back[1:-1] < back[2:]))
    period = 50 - np.linspace(0, 50, 20001)[minima[-1] + 1]
    begin = orbit_of(flow, late[:, -1], 0.05, period)
    _, follower = followed(begin, (-0.1, 0.1), -1.0)
    assert follower.end == "homoclinic"
    assert follower.limit == pytest.approx(0.0, abs=1e-6)
