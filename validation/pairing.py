"""Claim: for large beta only the closest pair of tokens moves, along its geodesic, as

    phi' = -c sin phi,   tan(phi/2) = tan(phi_0/2) e^{-c s},   ds = e^{-beta (1 - cos phi(t))} dt,

in the clock s of its *current* inner product: c = a/b + b/a for SA and masses a, b, which is 2 for
equal ones; c = (a + b) e^beta for USA. The tokens never meet in finite s, unlike in Theorem 6 of
the survey as printed. Under SA the distances that they move are in the ratio b^2 to a^2.

Four tokens on S^2, the pair at 0.6 radians until 0.35, the others more than 1.3 from all; s is a
spline integral over all steps of the run. For SA and finite beta the law has the factors

    c -> b/(a + b k) + a/(b + a k),   k = e^{-beta (1 - cos phi)},   a way of b k sin phi/(a + b k),

by the same integrals: 1e-6 of log tan(phi/2) and, relative, of both ways, beta = 50, 100, 200. What
the law without them lacks is int (b^2/a^2 + a^2/b^2) k ds to first order in k: asked of its excess
is the next order, c k at the end, relative, and 1e-6. For USA the law is exact: 1e-6. Others move
by less than 1e-9, and the pair leaves its plane by less.

Hardmax is the limit without the clock: x_i' = P x_j, j the nearest other. Eight Diracs of
different masses that are four pairs: tan(phi/2) = tan(phi_0/2) e^{-2t} for each, whatever the
masses; and a ninth, whose nearest is in a pair, follows it. Asked: 1e-8.

    python validation/pairing.py [--quick] [--figure FILE.png]    # 4 s, 1 s quick

--quick has every other beta. Exit code 1 on failure.

References: Bruno, Pasqualotto and Agazzi, arXiv:2509.25040, Proposition 3.11; the law for unequal
masses is derived here.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from _two_bodies import angle
from scipy.integrate import solve_ivp
from scipy.interpolate import make_interp_spline

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
    """Times and positions (steps, 4, 3) after every step, until the pair is at LAST."""
    t, x = [0.0], [tokens.x]

    def keep(now, state):
        t.append(now)
        x.append(state.x)

    def close(_t, state):
        return angle(*state.x[:2]) - LAST

    close.terminal = True
    scale = -np.cos(FIRST) if isinstance(drift, mf.USA) else 1 - np.cos(FIRST)
    end = 100 * np.exp(beta * scale)
    options = {"events": close, "callback": keep, "rtol": 1e-13}
    run = successful(mf.solve(mf.Transformer(drift), tokens, (0, end), t_eval=[end], **options))
    t[-1:], x[-1:] = [run.t[-1]], [run.final.x]  # the event is before the end of its step
    return np.array(t), np.array(x)


def clocks(t: np.ndarray, k: np.ndarray, *factors) -> list[np.ndarray]:
    """int_0^t f k dt by splines in log(t* - t), where k ~ 1/(t* - t): their integrands are flat."""
    left = (t[-1] - t[-2]) / (k[-1] / k[-2] - 1)  # 1/k is nearly straight and 0 at t*
    until = t[-1] - t + left
    at = -np.log(until)
    splines = [make_interp_spline(at, k * until * factor, k=7) for factor in factors]
    return [spline.antiderivative()(at) for spline in splines]


def check_pair(report: Report, drift, masses: str) -> tuple[np.ndarray, np.ndarray]:
    """Compare one run; the scaled clock c s and the angle."""
    beta, (a, b) = float(drift.beta), MASSES[masses]
    t, x = followed(drift, beta, start(a, b))
    phi, case = angle(x[:, 0], x[:, 1]), f"{type(drift).__name__} {beta:g}, {masses}"
    k = np.exp(-2 * beta * np.sin(phi / 2) ** 2)
    if isinstance(drift, mf.SA):
        c, first, second = a / b + b / a, b / (a + b * k), a / (b + a * k)
    else:
        c, first, second = (a + b) * np.exp(beta), b * np.exp(beta), a * np.exp(beta)
    shape, sine = np.ones_like(k), np.sin(phi)
    s, exact, *ways = clocks(t, k, shape, (first + second) * shape, first * sine, second * sine)
    logarithm = np.log(np.tan(phi / 2) / np.tan(phi[0] / 2))[-1]
    numbers = {"predicted": -exact[-1], "measured": logarithm, "tolerance": 1e-6}
    report.compare("log tan(phi/2)", case, **numbers)
    found = angle(x[-1], x[0])
    for i in (0, 1):
        numbers = {"predicted": ways[i][-1], "measured": found[i], "relative": True}
        report.compare(f"way of token {i + 1}", case, **numbers, tolerance=1e-6)
    if isinstance(drift, mf.SA):
        (excess,) = clocks(t, k, (b**2 / a**2 + a**2 / b**2) * k)
        numbers = {"predicted": excess[-1], "measured": logarithm + c * s[-1]}
        tolerance = c * k[-1] * excess[-1] + 1e-6
        report.compare("excess over -c s", case, **numbers, tolerance=tolerance)
    report.compare("way of others", case, predicted=0, measured=found[2:].max(), tolerance=1e-9)
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
        )
    s = np.linspace(0, 0.6, 100)
    left.plot(s, 2 * np.arctan(np.tan(FIRST / 2) * np.exp(-s)), "k", lw=0.9, zorder=0)
    left.set(xlabel=r"scaled clock $(a/b + b/a)\,s$", ylabel=r"angle $\varphi$ of the closest pair")
    left.set(title="the pairing law")
    left.legend(title=r"$\beta$, masses $a : b$", fontsize=7, title_fontsize=7)
    middle.set(
        xlabel=r"angle $\varphi$", ylabel=r"error of $\log\tan(\varphi/2)$", ylim=(1e-9, 0.1)
    )
    middle.set(title=r"its error for finite $\beta$")
    middle.invert_xaxis()
    for masses, color in colors.items():
        middle.plot([], [], color=color, label=masses)
    for beta, style in {50: ":", 100: "--", 200: "-"}.items():
        middle.plot([], [], color="k", ls=style, label=rf"$\beta = {beta}$")
    middle.legend(fontsize=7, ncols=2, loc="upper left")
    draw_hardmax(right, *hardmax)
    figure.savefig(path)


def draw_hardmax(ax, t: np.ndarray, angles: np.ndarray) -> None:
    """Angles over time, thicker for heavier Diracs."""
    for i, angles_of_one in enumerate(angles.T):
        color = "k" if i == 8 else f"C{i // 2}"
        label = {8: "mass 9, follows"}.get(i, f"masses {i + 1}, {i + 2}" if i % 2 == 0 else None)
        places = (angles_of_one + 1) % (2 * np.pi) - 1
        ax.plot(t, places, color=color, lw=0.6 + 0.25 * i, label=label)
    ax.legend(fontsize=7, loc="upper right", title="of 45", title_fontsize=7, ncols=2)
    ax.set(xlabel="time $t$", ylabel="angle", title="hardmax: nine weighted Diracs")
    ax.set_ylim(-0.5, 6.8)


def main() -> int:
    arguments = command_line(__doc__, "beta = 50 and 200 only", "where to draw the law")
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
