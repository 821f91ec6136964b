"""Claim: cycles of densities double their period and become tori where Galerkin equations say.

Oscillators with the frequencies 0.9 (a quarter of them) and 1.7, under half the Kuramoto drift and
the field h e_1, at kappa above 25: the slow group follows the fast one. Galerkin equations of the
moments of both groups, which share no code with the package, are solved by scipy with their
derivatives in all directions. Compared are

1. the kappa at which `mf.cycles` locates the period doubling at h = 0.6, and the period there; the
   multiplier -1 of the Galerkin equations at this kappa;
2. a cycle of twice the period, at a degree that resolves it, with `mf.solve` over its period: the
   density returns, and has not returned after half of it;
3. the kappa at which cycles become tori at h = 0.4, and the period and the angle of the pair of
   multipliers there.

The cycles of 1 and 3 have 16 harmonics, as many as the Galerkin equations.

Asked: 1e-8 for kappa, periods, returns, angles and multipliers.

    python validation/cycle_bifurcations.py [--quick]    # 400 s, 120 s quick

--quick is 3 alone. Exit code 1 on failure.

Reference: Kuznetsov, Elements of Applied Bifurcation Theory (2004), chapter 5.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp
from scipy.optimize import root_scalar

import meanfield as mf

FREQUENCIES, SHARES, MOMENTS = np.array([0.9, 1.7]), np.array([0.25, 0.75]), 16
EAST = mf.Field(lambda x: np.eye(2)[0] * np.ones_like(x))
FINE, COARSE = 1e-9, 1e-7  # tolerances of cycles


class Galerkin:
    """Moments z_k = int e^(ik theta) dmu, k = 1, ..., K, of both groups, (2, K, n).

    dz_k/dt = k (H z_(k-1) - conj(H) z_(k+1))/2 + (i k w - k^2/kappa) z_k, where H = m/2 + h, and m
    is the mean of z_1.
    """

    def __init__(self, kappa, field):
        self.k, self.field = np.arange(1, MOMENTS + 1)[:, None], field
        self.diagonal = 1j * self.k * FREQUENCIES[:, None, None] - self.k**2 / kappa

    def rates(self, z, moved):
        """dz/dt for z (2, K, 1), and its derivative along moved (2, K, n)."""
        pull, turned = self._pull(z) + self.field, self._pull(moved)
        one, none = np.ones_like(z[:, :1]), np.zeros_like(moved[:, :1])
        below, above = np.hstack([one, z[:, :-1]]), np.hstack([z[:, 1:], 0 * one])
        lower, upper = np.hstack([none, moved[:, :-1]]), np.hstack([moved[:, 1:], none])
        rate = self.k / 2 * (pull * below - pull.conj() * above) + self.diagonal * z
        change = pull * lower + turned * below - pull.conj() * upper - turned.conj() * above
        return rate, self.k / 2 * change + self.diagonal * moved

    def _pull(self, z):
        return np.tensordot(SHARES, z[:, 0], 1) / 2

    def carried(self, z, time):
        """State after a time, and monodromy matrix of real and imaginary parts."""
        size = 2 * MOMENTS
        unit = np.eye(size).reshape(2, MOMENTS, size)
        begin = np.concatenate([z, unit, 1j * unit], axis=2)

        def rate(t, flat):
            state = flat.reshape(begin.shape)
            return np.concatenate(self.rates(state[..., :1], state[..., 1:]), axis=2).ravel()

        run = solve_ivp(rate, (0, time), begin.ravel(), method="DOP853", rtol=1e-12, atol=1e-13)
        end = run.y[:, -1].reshape(begin.shape)
        columns = end[..., 1:].reshape(size, -1)
        return end[..., :1], np.vstack([columns.real, columns.imag])

    def cycle(self, z, period):
        """The cycle near z: its state, period and multipliers."""
        for _ in range(8):
            end, matrix = self.carried(z, period)
            along, late = parts(self.rates(z, z)[0]), parts(self.rates(end, end)[0])
            system = np.block([[matrix - np.eye(len(matrix)), late[:, None]], [along, 0.0]])
            step = np.linalg.solve(system, np.append(parts(z - end), 0.0))
            change = step[:-1].reshape(2, *z.shape)
            z, period = z + change[0] + 1j * change[1], period + step[-1]
            if np.abs(step).max() < 1e-7:  # the next error is its square
                break
        return z, period, np.linalg.eigvals(matrix)


def parts(z):
    """Real and imaginary parts of all moments."""
    return np.append(z.real.ravel(), z.imag.ravel())


def moments(state):
    """Moments (2, K, 1) of the density of two groups."""
    series = state.resample(MOMENTS).coefficients.reshape(2, MOMENTS + 1, 1)
    return series[:, 1:].conj()


def groups(field, kappa):
    """The model of two groups of oscillators."""
    drift = 0.5 * mf.Kuramoto() + field * EAST
    return mf.Transformer(drift, kappa, frequency=mf.OfIndex())


def cycles_of_groups(field, span, period):
    """The branch of cycles in a range of kappa, from the end of a run."""
    model, index = groups(field, span[0]), mf.Classes(FREQUENCIES, SHARES)
    start = mf.Circle(MOMENTS).indexed(lambda s, a: 1 + 0.5 * np.cos(a) + 0 * s, index)
    run = successful(mf.solve(model, start, (0, 120), t_eval=[120], rtol=1e-7))
    options = {"tolerance": FINE, "max_degree": MOMENTS}
    begin = mf.cycle(model, run.final.resample(MOMENTS), period, **options)
    return mf.cycles(model, begin, span, **options)


def critical(field, special, excess):
    """kappa, period and multipliers of the Galerkin cycle where a function of those vanishes."""
    near = [moments(special.cycle.at(0.0)), special.period]

    def of_cycle(kappa):
        near[0], near[1], values = Galerkin(kappa, field).cycle(*near)
        return excess(values)

    begin = special.value + 1e-3
    kappa = root_scalar(of_cycle, x0=begin, x1=begin + 1e-3, xtol=1e-10).root
    return kappa, *Galerkin(kappa, field).cycle(*near)[1:]


def largest_pair(values):
    """The one with a positive imaginary part of the largest pair of multipliers."""
    pairs = values[values.imag > 0.1]
    return pairs[np.abs(pairs).argmax()]


def at_the_doubling(report):
    """The branch of cycles through the doubling."""
    branch = cycles_of_groups(0.6, (38.4, 38.7), 4.012)
    (special,) = branch.special("period doubling")
    kappa, period, _ = critical(0.6, special, lambda values: values.real.min() + 1)
    report.compare("doubling", "kappa", predicted=kappa, measured=special.value, tolerance=1e-8)
    report.compare("doubling", "period", predicted=period, measured=special.period, tolerance=1e-8)
    start = moments(special.cycle.at(0.0))
    values = Galerkin(special.value, 0.6).cycle(start, special.period)[2]
    report.compare("doubling", "multiplier", predicted=values.real.min(),
                   measured=special.multiplier.real, tolerance=1e-8)  # fmt: skip
    return branch


def of_twice_the_period(report, branch):
    """Return of a cycle behind the doubling."""
    (special,) = branch.special("period doubling")
    options = {"tolerance": COARSE, "max_degree": MOMENTS}
    twice = mf.cycles(groups(0.6, 38.4), special, (38.4, 38.9), **options).cycles[-1]
    fine = mf.cycle(twice.model, twice.at(0.0).resample(28), twice.period, tolerance=FINE)
    start, period = fine.at(0.0), fine.period
    run = successful(mf.solve(fine.model, start, (0, period), t_eval=[period / 2, period],
                              rtol=1e-11))  # fmt: skip
    half, whole = (distance(state, start) for state in run.states)
    report.compare("twice the period", "return", predicted=0, measured=whole, tolerance=1e-8)
    report.compare("twice the period", "not after half", predicted=1, tolerance=0,
                   measured=int(half > 1e-2))  # fmt: skip


def distance(state, other):
    """Largest difference of coefficients."""
    degree = max(state.space.degree, other.space.degree)
    change = state.resample(degree).coefficients - other.resample(degree).coefficients
    return np.abs(change).max()


def at_the_torus(report):
    """The torus bifurcation of cycles."""
    branch = cycles_of_groups(0.4, (27.0, 27.7), 3.8644)
    (special,) = branch.special("torus")
    kappa, period, values = critical(0.4, special, lambda values: abs(largest_pair(values)) - 1)
    report.compare("torus", "kappa", predicted=kappa, measured=special.value, tolerance=1e-8)
    report.compare("torus", "period", predicted=period, measured=special.period, tolerance=1e-8)
    report.compare("torus", "angle", predicted=np.angle(largest_pair(values)), tolerance=1e-8,
                   measured=abs(np.angle(special.multiplier)))  # fmt: skip


def main() -> int:
    quick = command_line(__doc__, "the torus alone").quick
    report = Report(["of", "quantity"], digits=12)
    if not quick:
        of_twice_the_period(report, at_the_doubling(report))
    at_the_torus(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
