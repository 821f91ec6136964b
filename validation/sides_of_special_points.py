"""Claim: runs on both sides of special points do what the kind of the point predicts.

Runs of `mf.solve` begin near a state or cycle at parameters on both sides of a special point, which
`mf.branches` or `mf.cycles` has located. On one side perturbations decay; on the other one they
grow, and the run ends in the state or cycle of the branch that is stable there. Compared are

1. the largest multiplier of perturbations, from successive differences of states, with closed
   forms, or with that of `mf.stationary` or `mf.cycle`; and the side of the unit circle;
2. the ends of runs with the stable states, and periods, between passages, with those of `mf.cycle`.

The special points are the pitchfork of the Kuramoto drift at kappa = 2; the fold and the
transcritical point, kappa = 5, of axisymmetric densities under P_2(<x, y>) on S^2; and those of
active rotators on the circle, whose drift is 2 K[mu] + w + the field e_1/2: a Hopf point at
w = 0.8, the SNIC at kappa = 2 and, with 1.5 times the second harmonic and w = 1.4, a fold of cycles
that begin at a subcritical Hopf point; and the period doubling, kappa = 38.525, and the torus
bifurcation, kappa = 27.355, of `cycle_bifurcations.py`. Before these runs come back to the cycle.
Behind the doubling they end in a cycle of twice the period; behind the other one on a torus, where
averages over a window of time, with smooth weights, do not depend on the window.

Asked: 1e-3, relative, for multipliers; 1e-6 for states, periods and averages.

    python validation/sides_of_special_points.py [--quick]    # 180 s, 8 s quick

--quick leaves out the SNIC and what follows it. Exit code 1 on failure.

References: Kuznetsov, Elements of Applied Bifurcation Theory (2004), chapters 3 and 5; Shinomoto
and Kuramoto, Prog. Theor. Phys. 75 (1986).
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from cycle_bifurcations import FREQUENCIES, SHARES, distance, groups
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq, minimize_scalar
from scipy.special import iv

import meanfield as mf

CIRCLE, ZONAL = mf.Circle(16), mf.Zonal(3, 24)
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
FINER = 24  # degree of cycles of two groups
NEMATIC, TOLERANCE = mf.Interaction(lambda u: 1.5 * u**2 - 0.5), 1e-7


def two_largest(model, start, every, settled=8, count=8):
    """Two largest multipliers of perturbations over the time `every`, from a run."""
    times = every * np.arange(settled + count + 1)
    run = successful(mf.solve(model, start, (0, times[-1]), t_eval=times, rtol=1e-11))
    degree = min(state.space.degree for state in run.states)
    states = np.array([state.resample(degree).coefficients.ravel() for state in run.states])
    steps = np.diff(states.view(float), axis=0)[settled:]
    steps /= np.linalg.norm(steps, axis=1).max()
    pairs = np.stack([steps[1:-1].ravel(), steps[:-2].ravel()], axis=1)
    first, second = np.linalg.lstsq(pairs, steps[2:].ravel(), rcond=1e-4)[0]
    return sorted(np.abs(np.roots([1.0, -first, -second])), reverse=True)


def compare_multiplier(report, label, exact, found, outside):
    """The largest multiplier of a run, and on which side of the unit circle it is."""
    report.compare(label, "multiplier", predicted=exact, measured=found, tolerance=1e-3,
                   relative=True)  # fmt: skip
    report.compare(label, "grows", predicted=int(outside), measured=int(found > 1),
                   tolerance=0)  # fmt: skip


def ended(report, label, model, start, expected, time=400):
    """Compare the end of a run with a density."""
    final = successful(mf.solve(model, start, (0, time), t_eval=[time], rtol=1e-9)).final
    report.compare(label, "end of the run", predicted=0, measured=distance(final, expected),
                   tolerance=1e-6)  # fmt: skip


def period_of(model, start, settled, time):
    """Period of the cycle in which a run ends, between passages of the mean value of E cos."""
    times = np.linspace(settled, settled + time, 801)
    run = successful(mf.solve(model, start, (0, times[-1]), t_eval=times, rtol=1e-10))
    cosines = np.array([state.moment(1).real for state in run.states])
    passages = CubicSpline(times, cosines - (cosines.max() + cosines.min()) / 2).roots(
        extrapolate=False
    )
    return passages[-1] - passages[-3]


def pushed(density, size, degree=1):
    """The density with one harmonic changed."""
    coefficients = density.coefficients.copy()
    coefficients[..., degree] += size
    return type(density)(density.space, coefficients)


def at_a_pitchfork(report):
    """The Kuramoto drift, whose uniform density bifurcates at kappa = 2."""
    for kappa in (1.9, 2.1):
        model, start = mf.Transformer(mf.Kuramoto(), kappa), pushed(CIRCLE.uniform(), 1e-5)
        compare_multiplier(report, f"pitchfork, {kappa}", np.exp(0.5 - 1 / kappa),
                           two_largest(model, start, 1.0)[0], kappa > 2)  # fmt: skip
        final = successful(mf.solve(model, pushed(CIRCLE.uniform(), 0.1), (0, 500), t_eval=[500],
                                    rtol=1e-9)).final  # fmt: skip
        r = 0.0
        if kappa > 2:
            r = brentq(lambda r, k=kappa: iv(1, k * r) / iv(0, k * r) - r, 0.05, 1)
        report.compare(f"pitchfork, {kappa}", "end of the run", predicted=r,
                       measured=abs(final.moment(1)), tolerance=1e-6)  # fmt: skip


def at_a_fold_and_a_transcritical_point(report):
    """Axisymmetric densities under P_2: a fold at kappa = 4.4877, a transcritical point at 5."""
    diagram = mf.branches(NEMATIC, ZONAL, (4.2, 6.0))
    (fold,) = diagram.special("fold")
    for kappa in (fold.value - 0.1, 4.9, 5.1):
        model, label = mf.Transformer(NEMATIC, kappa), f"P_2, {kappa:.2f}"
        order = {state.density.coefficients[2].real: state.density
                 for _, state in diagram.states_at(kappa)}  # fmt: skip
        exact = np.exp(6 * (0.2 - 1 / kappa))
        found = two_largest(model, pushed(ZONAL.uniform(), 1e-5, 2), 1.0)[0]
        compare_multiplier(report, label, exact, found, kappa > 5)
        prolate = order[max(order)]
        if kappa < fold.value:
            ended(report, label, model, fold.state.density, ZONAL.uniform())
        elif kappa < 5:
            (middle,) = (one for part, one in order.items() if 1e-3 < part < 0.9 * max(order))
            ended(report, label, model, pushed(middle, 1e-3, 2), prolate, 1500)
            ended(report, label, model, pushed(middle, -1e-3, 2), ZONAL.uniform(), 1500)
        else:
            oblate = order[min(order)]
            ended(report, label, model, pushed(ZONAL.uniform(), 1e-3, 2), prolate, 1500)
            ended(report, label, model, pushed(ZONAL.uniform(), -1e-3, 2), oblate, 1500)


def rotators(w, kappa, second=0.0):
    """Active rotators with the drift w, and a second harmonic."""
    field = mf.Field(lambda x: w * (x @ TURN.T) + np.array([0.5, 0.0]))
    drift = 2.0 * mf.Kuramoto() + field
    return mf.Transformer(drift + mf.CosineSeries([0, 0, second]) if second else drift, kappa)


def at_a_hopf_point(report):
    """Rotators at w = 0.8."""
    (hopf,) = mf.branches(
        rotators(0.8, 1.1), CIRCLE, vary={"kappa": (1.0, 1.3)}, secondary=False
    ).special("Hopf")
    for kappa in (hopf.value - 0.05, hopf.value + 0.05):
        model, label = rotators(0.8, kappa), f"Hopf, {kappa:.3f}"
        state = mf.stationary(model, hopf.state.density)
        growth = state.stability(1).eigenvalues[0].real
        found = two_largest(model, pushed(state.density, 1e-5), 2.0, 12)[0]
        compare_multiplier(report, label, np.exp(2 * growth), found, kappa > hopf.value)
        if kappa > hopf.value:
            cycle = mf.cycle(model, hopf, tolerance=TOLERANCE)
            period = period_of(model, pushed(state.density, 0.1), 300, 3 * cycle.period)
            report.compare(label, "period", predicted=cycle.period, measured=period,
                           tolerance=1e-6)  # fmt: skip


def at_a_snic(report):
    """Rotators at kappa = 2: below the fold in w they rest, above it they turn."""
    diagram = mf.branches(lambda w: rotators(w, 2.0), CIRCLE, kappa=(0.2, 0.6), secondary=False)
    fold = max(diagram.special("fold"), key=lambda point: point.value)
    below, above = (rotators(fold.value + step, 2.0) for step in (-0.02, 0.02))
    at_rest = mf.stationary(below, successful(mf.solve(below, fold.state.density, (0, 100))).final)
    report.compare("SNIC, below", "stable state", predicted=1, measured=int(at_rest.stable),
                   tolerance=0)  # fmt: skip
    ended(report, "SNIC, below", below, CIRCLE.von_mises(np.pi, 0.3), at_rest.density)
    cycle = mf.cycle(above, fold.state.density, tolerance=TOLERANCE)
    period = period_of(above, fold.state.density, 100, 3 * cycle.period)
    report.compare("SNIC, above", "period", predicted=cycle.period, measured=period,
                   tolerance=1e-6)  # fmt: skip


def at_a_fold_of_cycles(report):
    """Rotators with the second harmonic at w = 1.4, whose Hopf point begins unstable cycles."""
    model = rotators(1.4, 1.0, 1.5)
    (hopf,) = mf.branches(model, CIRCLE, vary={"kappa": (0.9, 1.0)}, secondary=False).special(
        "Hopf"
    )
    branch = mf.cycles(model, hopf, (0.9, 0.945), tolerance=TOLERANCE)
    (fold,) = branch.special("fold")
    between, below = rotators(1.4, 0.9425, 1.5), rotators(1.4, fold.value - 0.02, 1.5)
    unstable, stable = (
        mf.cycle(between, one.at(0.0), one.period, tolerance=TOLERANCE)
        for one in (branch.cycles_at(0.9425)[0], branch.cycles[-1])
    )
    at_rest = mf.stationary(between, hopf.state.density).density
    for label, one in (("unstable", unstable), ("stable", stable)):
        label, exact = f"fold of cycles, {label}", abs(one.multipliers[~one.neutral][0])
        found = two_largest(between, moved(one.at(0.0), at_rest, 1e-4), one.period)[0]
        compare_multiplier(report, label, exact, found, one is unstable)
    at_rest = mf.stationary(below, hopf.state.density).density
    ended(report, "fold of cycles, below", below, fold.cycle.at(0.0), at_rest, 1500)


def at_a_period_doubling(report):
    """Two groups of oscillators in the field 0.6, before and behind kappa = 38.525."""
    for kappa, periods in ((34.0, 300), (40.0, 1200)):
        model, label, behind = groups(0.6, kappa), f"doubling, {kappa:g}", kappa > 38.525
        cycle = compared_cycle(report, label, model, 4.012, behind)
        final = later(model, cycle, [periods])[0]
        if behind:
            cycle = mf.cycle(model, final.resample(FINER), 2 * cycle.period, tolerance=TOLERANCE,
                             max_degree=FINER)  # fmt: skip
            twice = distance(cycle.at(0.0), cycle.at(0.5)) > 1e-2
            report.compare(label, "twice the period", predicted=1, measured=int(twice),
                           tolerance=0)  # fmt: skip
        report.compare(label, "end of the run", predicted=0, measured=from_cycle(cycle, final),
                       tolerance=1e-6)  # fmt: skip


def at_a_torus(report, every=16, window=200):
    """Two groups of oscillators in the field 0.4, before and behind kappa = 27.355.

    Averages of the square of E cos are over two windows of 200 periods of the cycle, from the
    400th one on, with 16 states of the run each.
    """
    before, behind = groups(0.4, 22.0), groups(0.4, 31.0)
    cycle = compared_cycle(report, "torus, 22", before, 3.862, False)
    (final,) = later(before, cycle, [300])
    report.compare("torus, 22", "end of the run", predicted=0, measured=from_cycle(cycle, final),
                   tolerance=1e-6)  # fmt: skip
    cycle, count = compared_cycle(report, "torus, 31", behind, 3.866, True), every * window
    parts = (np.arange(count) + 0.5) / count
    weights = np.exp(-1 / (parts * (1 - parts)))
    run = later(behind, cycle, np.arange(2 * count, 4 * count) / every)
    squares = np.array([state.marginal().moment(1).real ** 2 for state in run])
    first, second = squares.reshape(2, count) @ weights / weights.sum()
    report.compare("torus, 31", "average", predicted=first, measured=second, tolerance=1e-6)
    report.compare("torus, 31", "away from the cycle", predicted=1, tolerance=0,
                   measured=int(from_cycle(cycle, run[-1]) > 0.05))  # fmt: skip


def compared_cycle(report, label, model, period, grows):
    """A cycle whose largest multiplier is compared with that of a run."""
    cycle = cycle_of(model, period)
    found = two_largest(model, pushed(cycle.at(0.0), 1e-5), cycle.period, 20, 20)[0]
    exact = abs(cycle.multipliers[~cycle.neutral][0])
    compare_multiplier(report, label, exact, found, grows)
    return cycle


def later(model, cycle, periods):
    """States of a run from next to a cycle, after numbers of periods."""
    times = cycle.period * np.asarray(periods)
    start = pushed(cycle.at(0.0), 0.05)
    return successful(mf.solve(model, start, (0, times[-1]), t_eval=times, rtol=1e-9)).states


def cycle_of(model, period):
    """The cycle next to the end of a run, found at a low degree first."""
    index = mf.Classes(FREQUENCIES, SHARES)
    start = CIRCLE.indexed(lambda s, a: 1 + 0.5 * np.cos(a) + 0 * s, index)
    state = successful(mf.solve(model, start, (0, 120), t_eval=[120], rtol=1e-7)).final
    for degree in (CIRCLE.degree, FINER):
        cycle = mf.cycle(model, state.resample(degree), period, tolerance=TOLERANCE,
                         max_degree=degree)  # fmt: skip
        state, period = cycle.at(0.0), cycle.period
    return cycle


def from_cycle(cycle, state):
    """Distance of a state from a cycle."""

    def away(phase):
        return distance(state, cycle.at(phase))

    best = min(np.linspace(0, 1, 201), key=away)
    return minimize_scalar(away, bounds=(best - 0.005, best + 0.005), method="bounded",
                           options={"xatol": 1e-12}).fun  # fmt: skip


def moved(density, other, part):
    """The density, moved away from another one by a part of their difference."""
    other = other.resample(density.space.degree).coefficients
    change = part * (density.coefficients - other)
    return type(density)(density.space, density.coefficients + change)


def main() -> int:
    quick = command_line(__doc__, "without the SNIC and what follows it").quick
    report = Report(["of", "quantity"], digits=12)
    at_a_pitchfork(report)
    at_a_fold_and_a_transcritical_point(report)
    at_a_hopf_point(report)
    if not quick:
        at_a_snic(report)
        at_a_fold_of_cycles(report)
        at_a_period_doubling(report)
        at_a_torus(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
