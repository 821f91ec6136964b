"""Claim: for large beta only the closest pair of tokens moves, along its geodesic, as

    phi' = -c sin phi,   tan(phi/2) = tan(phi_0/2) e^{-c s},   ds = e^{-beta (1 - cos phi(t))} dt,

in the clock s of its *current* inner product: c = a/b + b/a for SA and masses a, b, which is 2 for
equal ones; c = (a + b) e^beta for USA. The tokens never meet in finite s, against Theorem 6 of the
survey as printed. Under SA their ways are as b^2 to a^2.

Four tokens on S^2, the pair at 0.6 radians until 0.35, the others more than 1.3 from all; s is a
spline integral over all steps of the run. SA has another factor 1 + O(k), k = e^{-beta (1 - cos
phi)}, so that log tan(phi/2) is off by less than (a/b + b/a)^2 k s. Asked: this and 1e-5 for
beta = 50, 100, 200; 1e-5 for USA; that others move by less than 1e-9, and that the pair leaves its
plane by less.

Hardmax is the limit without the clock: x_i' = P x_j, j the nearest other. Eight Diracs of
different masses that are four pairs: tan(phi/2) = tan(phi_0/2) e^{-2t} for each, whatever the
masses; and a ninth, whose nearest is in a pair, follows it. Asked: 1e-8.

    python validation/pairing.py [--quick] [--figure FILE.png]    # 4 s, 3 s quick

--quick has every other beta. Exit code 1 on failure.

References: Bruno, Pasqualotto and Agazzi, arXiv:2509.25040, Proposition 3.11; the law for unequal
masses is derived here.
"""

import argparse
import sys

import numpy as np
from _report import Report, successful
from _two_bodies import angle
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline

import meanfield as mf
from meanfield.plotting import theme

FIRST, LAST = 0.6, 0.35
MASSES = {"equal": (0.25, 0.25), "1 : 2": (0.2, 0.4), "1 : 3": (0.15, 0.45)}
BETAS = (50, 100, 200)


def start(a: float, b: float) -> mf.Tokens:
    """A pair at the angle FIRST, of masses a and b, and two tokens far away."""
    x = np.array([[1, 0, 0], [np.cos(FIRST), np.sin(FIRST), 0], [-0.2, 0.1, 1], [0.1, -0.3, -1]])
    rest = (1 - a - b) / 2
    return mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True), [a, b, rest, rest])


def followed(drift, beta: float, tokens: mf.Tokens) -> tuple[np.ndarray, np.ndarray]:
    """Clock s and positions (steps, 4, 3) after every step, until the pair is at LAST."""
    t, x = [0.0], [tokens.x]

    def keep(now, state):
        t.append(now)
        x.append(state.x)

    def close(_t, state):
        return angle(*state.x[:2]) - LAST

    close.terminal = True
    scale = -np.cos(FIRST) if isinstance(drift, mf.USA) else 1 - np.cos(FIRST)
    end = 100 * np.exp(beta * scale)
    options = {"events": close, "callback": keep, "rtol": 1e-12}
    run = successful(mf.solve(mf.Transformer(drift), tokens, (0, end), t_eval=[end], **options))
    t[-1:], x[-1:] = [run.t[-1]], [run.final.x]  # the event is before the end of its step
    x = np.array(x)
    return clock(np.array(t), np.exp(-beta * (1 - (x[:, 0] * x[:, 1]).sum(axis=-1)))), x


def clock(t: np.ndarray, k: np.ndarray) -> np.ndarray:
    """int_0^t k dt by a spline in log(t* - t), where k ~ 1/(t* - t): its integrand is flat."""
    left = (t[-1] - t[-2]) / (k[-1] / k[-2] - 1)  # 1/k is nearly straight and 0 at t*
    until = t[-1] - t + left
    return CubicSpline(-np.log(until), k * until).antiderivative()(-np.log(until))


def check_pair(report: Report, drift, masses: str) -> tuple[np.ndarray, np.ndarray]:
    """Compare one run; the scaled clock c s and the angle."""
    beta, (a, b) = float(drift.beta), MASSES[masses]
    s, x = followed(drift, beta, start(a, b))
    softmax = isinstance(drift, mf.SA)
    c = a / b + b / a if softmax else (a + b) * np.exp(beta)
    phi, case = angle(x[:, 0], x[:, 1]), f"{type(drift).__name__} {beta:g}, {masses}"
    correction = c**2 * s[-1] * np.exp(-beta * (1 - np.cos(LAST))) if softmax else 0.0
    logarithm = np.log(np.tan(phi[-1] / 2) / np.tan(phi[0] / 2))
    report.compare(
        "log tan(phi/2)",
        case,
        predicted=-c * s[-1],
        measured=logarithm,
        tolerance=1e-5 + correction,
    )
    ways = angle(x[-1], x[0])
    law = b / a if not softmax else (b / a) ** 2
    options = {"predicted": law, "measured": ways[0] / ways[1], "relative": True}
    report.compare("ratio of ways", case, **options, tolerance=1e-5 + correction)
    report.compare("way of others", case, predicted=0, measured=ways[2:].max(), tolerance=1e-9)
    off = np.abs(x[:, :2, 2]).max()
    report.compare("off its plane", case, predicted=0, measured=off, tolerance=1e-9)
    return c * s, phi


def check_hardmax(report: Report) -> tuple[np.ndarray, np.ndarray]:
    """Four pairs around the circle and one that follows; times and angles of the pairs."""
    gaps, middles = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.0, 1.4, 3.0, 4.4])
    angles = np.append((middles[:, None] + gaps[:, None] * [-0.5, 0.5]).ravel(), 0.6)
    tokens = mf.Tokens.on_circle(angles, np.arange(1, 10) / 45)
    t = np.linspace(0, 4, 41)
    run = mf.solve(mf.Transformer(mf.Hardmax()), tokens, (0, 4), t_eval=t, rtol=1e-10)
    x = np.array([state.x for state in successful(run)])
    phi = angle(x[:, 0:8:2], x[:, 1:8:2])
    law = 2 * np.arctan(np.tan(gaps / 2) * np.exp(-2 * t[:, None]))
    for i, gap in enumerate(gaps):
        error = np.abs(phi[:, i] - law[:, i]).max()
        report.compare("angle", f"hardmax, gap {gap}", predicted=0, measured=error, tolerance=1e-8)

    def slope(time, psi):
        return -np.sin(psi - np.arctan(np.tan(gaps[0] / 2) * np.exp(-2 * time)))

    alone = solve_ivp(slope, (0, 4), [0.6], t_eval=t, rtol=1e-12, atol=1e-14)
    error = np.abs(np.arctan2(x[:, 8, 1], x[:, 8, 0]) - alone.y[0]).max()
    report.compare("angle", "hardmax, follower", predicted=0, measured=error, tolerance=1e-8)
    return t, np.arctan2(x[..., 1], x[..., 0])


def draw(curves: dict, hardmax: tuple, path: str) -> None:
    """Angles over the scaled clock, the error of the law, and hardmax."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.5), dpi=200, layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    colors = {masses: f"C{i}" for i, masses in enumerate(MASSES)}
    styles = dict(zip(BETAS, ("o", "s", "^"), strict=True))
    for (beta, masses), (scaled, phi) in curves.items():
        shown = slice(None, None, max(1, len(phi) // 12))
        marks = {"ls": "", "marker": styles[beta], "ms": 4, "mfc": "none", "color": colors[masses]}
        label = f"{beta}, {masses}"
        left.plot(scaled[shown], phi[shown], **marks, label=label)
        law = np.log(np.tan(FIRST / 2)) - scaled
        middle.semilogy(
            phi[1:],
            np.abs(np.log(np.tan(phi / 2)) - law)[1:],
            marker="",
            color=colors[masses],
            ls={50: ":", 100: "--", 200: "-"}[beta],
            label=label,
        )
    s = np.linspace(0, 0.6, 100)
    left.plot(s, 2 * np.arctan(np.tan(FIRST / 2) * np.exp(-s)), "k", lw=0.9, zorder=0)
    left.set(xlabel=r"scaled clock $(a/b + b/a)\,s$", ylabel=r"angle $\varphi$ of the closest pair")
    left.set(title="the pairing law")
    left.legend(title=r"$\beta$, masses $a : b$", fontsize=7, title_fontsize=7)
    middle.set(xlabel=r"angle $\varphi$", ylabel=r"error of $\log\tan(\varphi/2)$", ylim=(1e-9, 50))
    middle.set(title=r"its error for finite $\beta$")
    middle.invert_xaxis()
    middle.legend(fontsize=6.5, ncols=3, loc="upper center")
    t, angles = hardmax
    for i, angles_of_one in enumerate(angles.T):
        color = "k" if i == 8 else f"C{i // 2}"
        right.plot(t, (angles_of_one + 1) % (2 * np.pi) - 1, color=color, lw=0.6 + 0.25 * i)
    right.set(xlabel="time $t$", ylabel="angle", title="hardmax: nine weighted Diracs")
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="beta = 50 and 200 only")
    parser.add_argument("--figure", metavar="FILE", help="where to draw the law")
    arguments = parser.parse_args()
    report, curves = Report(["what", "case"], digits=8), {}
    for beta in BETAS[:: 2 if arguments.quick else 1]:
        for masses in MASSES:
            curves[beta, masses] = check_pair(report, mf.SA(float(beta)), masses)
            check_pair(report, mf.USA(float(beta)), masses)
    hardmax = check_hardmax(report)
    if arguments.figure:
        with theme.style():
            draw(curves, hardmax, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
