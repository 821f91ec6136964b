"""Claim: tokens whose masses move too end in one point, under SA sooner than those of fixed mass.

m_i' = alpha m_i (Phi_i - sum_j m_j Phi_j), Phi = W * mu, W' the drift: a form of the
Wasserstein-Fisher-Rao equations, of which the sources print none.

1. Two tokens at the angle phi, of masses (1 + delta)/2 and (1 - delta)/2, c = cos phi:

       delta' = (alpha/2) (1 - delta^2) delta (W(1) - W(c)),
       USA  phi' = -e^{beta c} sin phi,
       SA   phi' = -(b/(a + b u) + a/(b + a u)) u sin phi,  u = e^{beta (c - 1)},

   a, b the masses, integrated by SciPy: angles and masses to 1e-9.
2. Random starts of random masses, n = 3, 8, d = 2, 3, 8, beta = 1, 4, alpha = 0.5, 5, SA and USA:
   of 20 each all end with mass 1 - 1e-6 within 1e-3 of one point.
3. USA: two tokens meet when they do without a reaction, whatever alpha: 1e-8. SA: two unequal ones
   (0.6 and 0.4, at a right angle) need less time, and the logarithm of the gain grows with beta;
   an equal pair stays equal and gains nothing.
4. alpha to 0: at t = 1 the change of positions is of order 1 in alpha, and alpha to infinity: at
   the time s/alpha tokens rest and masses follow the replicator equation in s, to order 1/alpha:
   orders within 0.05 of 1.

    python validation/weighted_tokens.py [--quick]    # 30 s, 13 s quick

--quick has 3 starts each. Exit code 1 on failure. Reference: the survey, section 4.1.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp

import meanfield as mf

DRIFTS = {"SA": mf.SA, "USA": mf.USA}


def potential(beta: float, c):
    """W(c) = e^{beta c}/beta, of both drifts."""
    return np.exp(beta * c) / beta


def pair(name: str, beta: float, alpha: float, phi: float, delta: float, end: float):
    """Angle and difference of masses of two tokens at the end, by SciPy."""

    def slope(_t, y):
        phi, delta = y
        a, b, c = (1 + delta) / 2, (1 - delta) / 2, np.cos(phi)
        near, far = np.exp(beta), np.exp(beta * c)
        Z = (a * near + b * far, b * near + a * far) if name == "SA" else (1, 1)
        speed = (b / Z[0] + a / Z[1]) * far * np.sin(phi)
        grown = alpha / 2 * (1 - delta**2) * delta * (potential(beta, 1) - potential(beta, c))
        return [-speed, grown]

    options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-14}
    return solve_ivp(slope, (0, end), [phi, delta], **options).y[:, -1]


def two_tokens(phi: float, delta: float) -> mf.Tokens:
    return mf.Tokens.on_circle([0, phi], [(1 + delta) / 2, (1 - delta) / 2])


def check_pairs(report: Report) -> None:
    for name, kind in DRIFTS.items():
        for beta, alpha in ((1.0, 0.5), (3.0, 4.0)):
            exact = pair(name, beta, alpha, 2.0, 0.3, 1.0)
            model = mf.Transformer(kind(beta), reaction=alpha)
            run = mf.solve(model, two_tokens(2.0, 0.3), (0, 1), t_eval=[1], rtol=1e-12)
            end = successful(run).final
            found = (np.arccos(end.x[0] @ end.x[1]), end.masses[0] - end.masses[1])
            for what, predicted, measured in zip(("angle", "masses"), exact, found, strict=True):
                report.compare(f"two tokens, {what}", f"{name}({beta:g}), {alpha=:g}",
                               predicted=predicted, measured=measured,
                               tolerance=1e-9)  # fmt: skip


def gathered(state: mf.Tokens) -> float:
    """The mass within 1e-3 of the heaviest token."""
    centre = state.x[np.argmax(state.masses)]
    return float(state.masses[np.linalg.norm(state.x - centre, axis=1) < 1e-3].sum())


def check_random_starts(report: Report, starts: int) -> None:
    rng = np.random.default_rng(1)

    def most(_t, state):
        return gathered(state) > 1 - 1e-6

    for n in (3, 8):
        for d in (2, 3, 8):
            for name, kind in DRIFTS.items():
                for beta, alpha in ((1.0, 0.5), (4.0, 0.5), (4.0, 5.0)):
                    model, ended = mf.Transformer(kind(beta), reaction=alpha), 0
                    for _ in range(starts):
                        x = mf.Tokens.uniform(n, d, rng=rng).x
                        start = mf.Tokens(x, rng.dirichlet(np.ones(n)))
                        run = mf.solve(model, start, (0, 1e6), t_eval=[1e6], callback=most)
                        ended += gathered(run.final) > 1 - 1e-6
                    case = f"{name}({beta:g}), {alpha=:g}, {n=}, {d=}"
                    report.compare("share in one point", case, predicted=1,
                                   measured=ended / starts, tolerance=0)  # fmt: skip


def meeting(drift, alpha: float, delta: float) -> float:
    """When two tokens, first at a right angle, are at the angle 0.01."""

    def near(_t, state):
        return np.linalg.norm(state.x[0] - state.x[1]) - 0.01

    near.terminal = True
    model = mf.Transformer(drift, reaction=alpha)
    run = mf.solve(model, two_tokens(np.pi / 2, delta), (0, 1e9), t_eval=[1e9], events=near,
                   rtol=1e-11)  # fmt: skip
    return float(successful(run).t_events[0][0])


def check_speed(report: Report) -> None:
    for alpha in (0.1, 1.0, 10.0):
        report.compare("time of USA(4)", f"{alpha=:g}", predicted=meeting(mf.USA(4.0), 0, 0.2),
                       measured=meeting(mf.USA(4.0), alpha, 0.2), tolerance=1e-8,
                       relative=True)  # fmt: skip
    gains = []
    for beta in (2.0, 4.0, 6.0, 8.0):
        plain, moved = (meeting(mf.SA(beta), alpha, 0.2) for alpha in (0.0, 1.0))
        gains.append(np.log(plain / moved))
        print(f"SA({beta:g}): two tokens meet at {plain:.4g}, with alpha = 1 at {moved:.4g}")
    report.compare("sooner with a reaction, the more the larger beta", "SA", predicted=1,
                   measured=int(gains[0] > 0 and np.all(np.diff(gains) > 0)),
                   tolerance=0)  # fmt: skip
    report.compare("time of an equal pair", "SA(4)", predicted=meeting(mf.SA(4.0), 0, 0),
                   measured=meeting(mf.SA(4.0), 1.0, 0), tolerance=1e-8, relative=True)  # fmt: skip


def check_limits(report: Report) -> None:
    rng = np.random.default_rng(2)
    start = mf.Tokens(mf.Tokens.uniform(8, 3, rng=rng).x, rng.dirichlet(np.ones(8)))
    for name, kind in DRIFTS.items():
        drift = kind(2.0)

        def end(alpha, t, drift=drift):
            model = mf.Transformer(drift, reaction=alpha)
            return successful(mf.solve(model, start, (0, t), t_eval=[t], rtol=1e-12)).final

        still = end(0.0, 1.0).x
        small = [np.abs(end(alpha, 1.0).x - still).max() for alpha in (1e-3, 1e-4)]
        report.compare("order in alpha, positions", name, predicted=1,
                       measured=np.log10(small[0] / small[1]), tolerance=0.05)  # fmt: skip
        W = potential(2.0, start.x @ start.x.T)
        replicator = solve_ivp(lambda _s, m, W=W: m * (W @ m - m @ W @ m), (0, 1), start.masses,
                               method="DOP853", rtol=1e-12, atol=1e-15).y[:, -1]  # fmt: skip
        large = [np.abs(end(alpha, 1 / alpha).masses - replicator).max() for alpha in (1e3, 1e4)]
        report.compare("order in 1/alpha, masses", name, predicted=1,
                       measured=np.log10(large[0] / large[1]), tolerance=0.05)  # fmt: skip


def main() -> int:
    report = Report(["claim", "case"])
    quick = command_line(__doc__, "5 starts each").quick
    check_pairs(report)
    check_random_starts(report, 3 if quick else 20)
    check_speed(report)
    check_limits(report)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
