"""Claim: `mf.basins` counts starts by the state, wave or cycle in which their runs end.

1. Noisy USA on the circle, beta = 4, kappa = 0.402: the uniform and the ordered state are stable,
   and between them is an unstable one u with the first moment 0.2201262640. Starts 1 + s (u - 1)
   go to the ordered state for s > 1 and to the uniform one for s < 1, here s = 1 +- 0.01, ...,
   0.1: four each.
2. Oscillators that attract each other, 2 K[mu] at kappa = 3, in the frame that turns with the
   speed 0.3: all random starts end in one wave of that speed, whose order parameter is
   r = I_1(6 r)/I_0(6 r).
3. Active rotators, 2 K[mu] + 0.8 - sin(theta)/2: all random starts end in one state at
   kappa = 1, below the Hopf point 1.1425, and in one cycle at kappa = 1.4, with the period of
   `mf.cycle`.
4. The intervals are those of Wilson, by scipy.

Asked: counts, exactly; 1e-8 for the order parameter, the speed and intervals; 1e-4, relative, for
the period, which is seen at 600 outputs.

    python validation/basins.py [--quick]    # 8 s, 5 s quick; exit code 1 on failure

References: Wilson, J. Am. Stat. Assoc. 22 (1927), 209-212.
"""

import sys

import numpy as np
from _report import Report, command_line
from scipy.optimize import brentq
from scipy.special import ive
from scipy.stats import binomtest

import meanfield as mf

CIRCLE = mf.Circle(16)
TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def rotators(w, pull, kappa):
    """Oscillators with the drift 2 K[mu] + w - pull sin(theta)."""
    field = mf.Field(lambda x: w * (x @ TURN.T) + np.array([pull, 0.0]))
    return mf.Transformer(2.0 * mf.Kuramoto() + field, kappa)


def drawn(rng):
    """A random start: a normal law on the circle."""
    return CIRCLE.von_mises(rng.uniform(-np.pi, np.pi), rng.uniform(0.2, 3.0))


def on_both_sides(report: Report, most: int) -> None:
    """Starts on both sides of an unstable state."""
    model = mf.Transformer(mf.USA(4.0), 0.402)
    states = mf.branches(mf.USA(4.0), mf.Circle(32), kappa=(0.3, 0.6)).states_at(0.402)
    (unstable,) = [s for _, s in states if abs(s.order_parameter - 0.22012626) < 1e-6]
    density, space = unstable.density, unstable.density.space
    sizes = (1 + sign * step for sign in (-1, 1) for step in (0.01, 0.02, 0.05, 0.1)[:most])
    starts = [space.density(lambda a, s=s: 1 + s * (density.at(space.embed(a)) - 1)) for s in sizes]
    data = mf.basins(model, starts, t_end=3000.0).data.isel(value=0)
    counts = dict(zip(np.round(data.order_parameter.values, 3), data["count"].values, strict=True))
    report.compare("USA", "uniform", predicted=most, measured=counts.get(0.0, 0), tolerance=0)
    ordered = max(counts)
    report.compare("USA", "ordered", predicted=most, measured=counts[ordered], tolerance=0)


def that_turn(report: Report, count: int) -> None:
    """Random starts that end in one wave."""
    data = mf.basins(rotators(0.3, 0.0, 3.0), drawn, rng=0, count=count).data.isel(value=0)
    r = brentq(lambda r: r - ive(1, 6 * r) / ive(0, 6 * r), 0.1, 1.0, xtol=1e-14)
    seen = data.sel(end="wave 1")
    report.compare("wave", "count", predicted=count, measured=int(seen["count"]), tolerance=0)
    report.compare("wave", "speed", predicted=0.3, measured=float(seen.speed), tolerance=1e-8)
    report.compare("wave", "order", predicted=r, measured=float(seen.order_parameter),
                   tolerance=1e-8)  # fmt: skip
    wilson = binomtest(count, count).proportion_ci(0.95, method="wilson")
    report.compare("wave", "interval", predicted=wilson.low, measured=float(seen.low),
                   tolerance=1e-8)  # fmt: skip


def that_oscillate(report: Report, count: int) -> None:
    """Random starts that end in a state, and in a cycle."""
    shares = mf.basins(rotators(0.8, 0.5, 1.0), drawn, rng=0, count=count,
                       vary={"kappa": (1.0, 1.4)})  # fmt: skip
    data = shares.data
    rest, turning = data.isel({data["count"].dims[0]: 0}), data.isel({data["count"].dims[0]: 1})
    report.compare("rotators", "at rest", predicted=count,
                   measured=int(rest["count"].sel(end="state 1")), tolerance=0)  # fmt: skip
    seen = turning.sel(end="cycle 1")
    report.compare("rotators", "turning", predicted=count, measured=int(seen["count"]), tolerance=0)
    period = mf.cycle(rotators(0.8, 0.5, 1.4), CIRCLE.von_mises(0.0, 0.3)).period
    report.compare("rotators", "period", predicted=period, measured=float(seen.period),
                   tolerance=1e-4, relative=True)  # fmt: skip


def main() -> int:
    quick = command_line(__doc__, "fewer starts").quick
    report = Report(["of", "quantity"], digits=10)
    on_both_sides(report, 2 if quick else 4)
    that_turn(report, 4 if quick else 12)
    that_oscillate(report, 3 if quick else 8)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
