"""Claim: how many peaks stationary states have under a potential of several cosines, and a field.

W = sum_k m_k cos(k theta) attracts on the circle, and a field h cos(theta) may confine. Stationary
states are mu ~ exp(kappa (sum_k m_k r_k cos(k theta) + h cos(theta))), r_k the k-th moment.

1. One mode m_k, k = 1 to 4: beyond the onset kappa = 2/m_k every state but the uniform one has k
   peaks, with r_k = I_1(s)/I_0(s), s = kappa m_k r_k: 1e-10.
2. Two and three modes, no field: peaks of the stable states of `stationary_states` from random
   starts are no more than the highest mode; each state satisfies the equations above by quadrature:
   1e-9. The uniform state is linearly stable up to min_k 2/m_k (1e-10), and loses to another state
   before if the transition is discontinuous: here for cos + 0.9 cos 2, not for cos + 0.3 cos 2.
3. A weak field h below the onset moves r_1 by h kappa/(2 - kappa m_1) to first order: the error
   falls with the order 3 in h, since r_1 is odd in h: 3 +- 0.05.

Bertoli, Goddard and Pavliotis, arXiv:2406.04884, abstract: multichromatic potentials have states
with several peaks, by number of the modes of the potential.

    python validation/multichromatic.py [--quick]    # 20 s, 10 s quick

--quick has fewer starts. Exit code 1 on failure.
"""

import sys

import numpy as np
from _report import Report, command_line
from scipy.optimize import brentq
from scipy.special import i0e, i1e

import meanfield as mf

KAPPA = 2.6  # of part 1
ANGLES = 2 * np.pi * np.arange(512) / 512


def drift(m, h=0.0):
    """The drift of the modes m, with a field h cos(theta)."""
    modes = mf.CosineSeries([0.0, *m])
    return modes + mf.Field(lambda x: np.broadcast_to([h, 0.0], x.shape)) if h else modes


def peaks(mu):
    """Number of local maxima of a density on the circle."""
    points = np.stack([np.cos(ANGLES), np.sin(ANGLES)], 1)
    values = mu.at(points)
    uneven = np.ptp(values) > 1e-6
    highest = (values > np.roll(values, 1)) & (values >= np.roll(values, -1))
    return int(np.count_nonzero(highest)) if uneven else 0


def residual(mu, m, kappa):
    """Error of mu as the law of its own potential, with phases, by quadrature."""
    values = mu.at(np.stack([np.cos(ANGLES), np.sin(ANGLES)], 1))
    potential = 0.0
    for k, strength in enumerate(m, start=1):
        moment = np.mean(values * np.exp(1j * k * ANGLES))
        potential = potential + strength * np.real(np.conj(moment) * np.exp(1j * k * ANGLES))
    law = np.exp(kappa * potential)
    return np.abs(values - law / law.mean()).max()


def one_mode(report):
    """Part 1."""
    for k in (1, 2, 3, 4):
        m = [1.0 if j == k - 1 else 0.0 for j in range(4)]
        start = mf.Circle(48).density(lambda a, k=k: 1 + 0.8 * np.cos(k * a))
        state = mf.stationary(mf.Transformer(drift(m), KAPPA), start)
        s = brentq(lambda s: KAPPA * i1e(s) / i0e(s) - s, 0.1, 20, xtol=1e-14)
        report.compare(
            f"mode {k}", "peaks", "stationary", predicted=k, measured=peaks(state.density),
            tolerance=0,
        )  # fmt: skip
        moment = state.density.moment(k)
        report.compare(
            f"mode {k}", f"r_{k}", "stationary", predicted=i1e(s) / i0e(s), measured=abs(moment),
            tolerance=1e-10,
        )  # fmt: skip
        diagram = mf.branches(
            mf.Transformer(drift(m), KAPPA), mf.Circle(16), kappa=(1, 3), progress=False
        )
        report.compare(
            f"mode {k}", "onset", "branches", predicted=2.0, measured=first_onset(diagram),
            tolerance=1e-10,
        )  # fmt: skip


def first_onset(diagram):
    """The least kappa at which the uniform state loses its stability."""
    return min(one.kappa for one in diagram.special("bifurcation", 0))


def several_modes(report, count):
    """Part 2: states from random starts."""
    cases = (([1.0, 0.9, 0, 0], 2.3), ([1.0, 0.3, 0, 0], 3.0), ([0.8, 0, 1.0, 0], 3.0))
    for m, kappa in cases:
        states = mf.stationary_states(
            mf.Transformer(drift(m), kappa), mf.Circle(32), count=count, rng=5
        )
        highest = max(k for k, strength in enumerate(m, start=1) if strength)
        name = "W = " + " + ".join(f"{v:g} cos {k}" for k, v in enumerate(m, start=1) if v)
        stable = [peaks(state.density) for state in states if state.stable]
        everyone = [residual(state.density, m, kappa) for state in states]
        print(f"{name}, kappa = {kappa}: {len(everyone)} states, peaks of the stable ones {stable}")
        report.compare(
            name, "law of its own potential", "states", predicted=0.0, measured=max(everyone),
            tolerance=1e-9,
        )  # fmt: skip
        report.compare(
            name, "stable states with too many peaks", "states", predicted=0,
            measured=sum(one > highest for one in stable), tolerance=0,
        )  # fmt: skip
        diagram = mf.branches(
            mf.Transformer(drift(m), kappa), mf.Circle(24), kappa=(1, 4), progress=False
        )
        report.compare(
            name, "onset", "branches", predicted=2 / max(m), measured=first_onset(diagram),
            tolerance=1e-10,
        )  # fmt: skip
        discontinuous = diagram.transition().order == "discontinuous"
        report.compare(
            name, "transition before the onset", "branches", predicted=m[1] > 0.5,
            measured=discontinuous, tolerance=0,
        )  # fmt: skip


def weak_field(report):
    """Part 3: the response of r_1 to a weak field."""
    m, kappa = [1.0, 0.4, 0, 0], 1.5
    errors = []
    for h in (2e-2, 1e-2):
        state = mf.stationary(mf.Transformer(drift(m, h), kappa), mf.Circle(16).uniform())
        errors.append(abs(state.density.moment(1).real - h * kappa / (2 - kappa * m[0])))
    report.compare(
        "weak field", "order of the error", "stationary", predicted=3.0,
        measured=np.log2(errors[0] / errors[1]), tolerance=0.05,
    )  # fmt: skip


def main():
    quick = command_line(__doc__).quick
    report = Report(["potential", "what", "by"])
    one_mode(report)
    several_modes(report, 8 if quick else 30)
    weak_field(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
