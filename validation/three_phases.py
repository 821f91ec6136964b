"""Claim: tokens pass through alignment, heat and pairing, on times O(1), O(beta), e^(c beta).

Tokens on S^2, Q^T K = R diag(1, 1, 0.8) R^T with a random Q, V = R diag(1, 1, -0.3) R^T, R a random
rotation: general but for the plane, on which both are 1, as the theorems of the paper ask. Two
clusters, of masses 0.6 and 0.4, their densities Gaussian along the plane (variance s_0 of about
0.1, centres 2.5 apart) and even across it, by weighted tokens at most a bandwidth apart.

    alignment   the mean square latitude has fallen to 1/25. The law, which knows no beta, is
                phi' = -(1 + 0.8 * 0.3) sin phi cos phi/|B x|, B = K^T Q, for each latitude. The
                error of the time falls like beta^-p, p = 1 by least squares, beta = 100 to 800:
                asked 0.1. beta times it is 4.9 to 6.7; its constant is not known.
    heat        the mean variance of both clusters has fallen to a half: s' = -2s/(1 + beta s),
                t_h = (log 2 + beta s_0/2)/2 for flat clusters, beta = 50 to 200. The law is of
                first order in s_0, as the circle is curved: asked s_0/2, relative; and of the
                slope in beta, s_0/4, 2 per cent.
    pairing     the angle of the two tokens that are left is 1e-3. By quadrature for their angle
                and masses at t = 50: 1e-6, relative.

One run with Q, K, V goes through all three phases for beta = 4, 5, 6. For beta = 50 to 200
velocities of the last phase are e^(-c beta), below 1e-37, and in coordinates of R^3 differences of
numbers of order one: a second run takes the two tokens that the first has left to the plane, of
which V K^T Q keeps the normal, where Q^T K = V = 1, which is SA. There log(beta T) grows with beta
at the rate 1 - cos(2.5), and so does log T up to log(beta)/beta: asked 2 per cent of both.

    python validation/three_phases.py [--quick] [--figure FILE.png]    # 40 s, 10 s quick

--quick: fewer beta. By beta = 400 backward heat, which is ill-posed, has had the time to break each
of these clusters, which end abruptly, into seven. Exit code 1 on failure.

Reference: Bruno, Pasqualotto and Agazzi, arXiv:2509.25040.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from _two_bodies import angle, closing_time, sa_speeds
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.plotting import theme

WHOLE, BETAS = (4.0, 5.0, 6.0), (50.0, 100.0, 150.0, 200.0)
ALIGNING = (100.0, 200.0, 400.0, 800.0)
MASSES, GAP, SPREAD, LATITUDE = (0.6, 0.4), 2.5, 0.1, 0.5
KEY, VALUE = 0.8, -0.3  # eigenvalues of Q^T K and V across the plane
TIGHT, NEAR, LATE, FALLS = 1e-7, 1e-3, 50.0, 25
R = np.linalg.qr(mf.ensembles.ginibre(3, 11))[0]
Q = mf.ensembles.ginibre(3, 12)
K = np.linalg.inv(Q).T @ R @ np.diag([1, 1, KEY]) @ R.T
V = R @ np.diag([1, 1, VALUE]) @ R.T


def start(beta: float) -> mf.Tokens:
    """Both clusters, by products of rules of equal steps along the plane and across it."""
    step = min(0.08, 1 / np.sqrt(beta))
    along = np.arange(-1, 1.001, step)
    along -= along.mean()
    across = np.linspace(-LATITUDE, LATITUDE, 2 * int(LATITUDE / step) + 1)
    weights = np.exp(-(along**2) / (2 * SPREAD))
    theta = np.add.outer([-GAP / 2, GAP / 2], along)[..., None]
    points = [np.cos(across) * np.cos(theta), np.cos(across) * np.sin(theta)]
    x = np.stack([*points, np.sin(across) + 0 * theta], axis=-1).reshape(-1, 3)
    masses = np.multiply.outer(MASSES, weights)[..., None] * np.ones(across.size)
    return mf.Tokens(x @ R.T, masses.ravel() / masses.sum())


def latitudes(tokens: mf.Tokens) -> np.ndarray:
    return np.arcsin((tokens.x @ R)[:, 2])


def mean_square_latitude(tokens: mf.Tokens) -> float:
    return float(tokens.masses @ latitudes(tokens) ** 2)


def clusters(tokens: mf.Tokens) -> tuple[np.ndarray, np.ndarray]:
    """Centres and variances of both clusters along the plane."""
    first = np.arange(len(tokens)) < len(tokens) // 2
    x = tokens.x @ R
    theta = np.arctan2(x[:, 1], x[:, 0])
    found = []
    for part in (first, ~first):
        weights = tokens.masses[part] / tokens.masses[part].sum()
        centre = weights @ theta[part]
        found.append((centre, weights @ (theta[part] - centre) ** 2))
    return tuple(np.array(found).T)


def aligned_by_law(tokens: mf.Tokens) -> float:
    """When the mean square latitude has fallen to 1/FALLS, by the law of alignment."""
    first = latitudes(tokens)
    goal = mean_square_latitude(tokens) / FALLS

    def velocity(_t, phi):
        return (
            -(1 - KEY * VALUE)
            * np.sin(phi)
            * np.cos(phi)
            / np.hypot(np.cos(phi), KEY * np.sin(phi))
        )

    def reached(_t, phi):
        return tokens.masses @ phi**2 - goal

    reached.terminal = True
    run = solve_ivp(velocity, (0, 50), first, events=reached, rtol=1e-9, atol=1e-12)
    return float(run.t_events[0][0])


def followed(beta: float) -> tuple[mf.Solution, dict]:
    """A run until two clusters are left, and its first two times."""
    tokens = start(beta)
    goal = mean_square_latitude(tokens) / FALLS
    _, widths = clusters(tokens)

    def aligned(_t, state):
        return mean_square_latitude(state) - goal

    def halved(_t, state):
        return (clusters(state)[1] / widths).mean() - 0.5

    model, times = mf.Transformer(mf.Attention(Q, K, V, beta=beta)), np.geomspace(0.05, LATE, 60)
    options = {"events": [aligned, halved], "merge": TIGHT, "rtol": 1e-9}
    run = successful(mf.solve(model, tokens, (0, LATE), t_eval=times, **options))
    found = {"alignment": run.t_events[0][0], "heat": run.t_events[1][0], "widths": widths.mean()}
    return run, found


def left(tokens: mf.Tokens) -> tuple[np.ndarray, np.ndarray]:
    """Places, in coordinates whose first two are of the plane, and masses of two clusters."""
    labels = mf.cluster_labels(tokens, TIGHT)
    masses = np.bincount(labels, tokens.masses)
    assert len(masses) == 2
    assert np.abs(latitudes(tokens)).max() < 1e-9
    return np.array([tokens.x[labels == i][0] for i in (0, 1)]) @ R, masses


def near(_t, tokens: mf.Tokens) -> float:
    """The first token, of one cluster, and the last, of the other, have come close."""
    return float(angle(tokens.x[0], tokens.x[-1])) - NEAR


near.terminal = True


def paired(beta: float, tokens: mf.Tokens) -> tuple[float, float]:
    """When the two clusters that are left are near, by SA on the plane and by quadrature."""
    plane = R[:, :2]
    for matrix in ((Q @ plane).T @ K @ plane, plane.T @ V @ plane):
        np.testing.assert_allclose(matrix, np.eye(2), atol=1e-12)
    ends, masses = left(tokens)
    law, _ = closing_time(sa_speeds(beta, *masses), float(angle(*ends)), NEAR)
    start = mf.Tokens.on_circle(np.arctan2(ends[:, 1], ends[:, 0]), masses)
    options = {"t_eval": [2 * law], "events": near, "rtol": 1e-9}
    run = successful(mf.solve(mf.Transformer(mf.SA(beta)), start, (0, 2 * law), **options))
    return run.t_events[0][0], law


def check_whole(report: Report, beta: float) -> None:
    """One run of the tokens, with Q, K, V, until all are one."""
    end = 10 * np.exp(beta * (1 - np.cos(GAP)))
    model, options = mf.Transformer(mf.Attention(Q, K, V, beta=beta)), {"events": near}
    options |= {"t_eval": [LATE, end], "merge": TIGHT, "rtol": 1e-9}
    run = successful(mf.solve(model, start(beta), (0, end), **options))
    ends, masses = left(run[0])
    law, _ = closing_time(sa_speeds(beta, *masses), float(angle(*ends)), NEAR)
    numbers = {"predicted": law, "measured": run.t_events[0][0] - LATE, "relative": True}
    report.compare("pairing, one run", f"beta = {beta:g}", **numbers, tolerance=1e-6)


def check_alignment(report: Report, betas) -> None:
    """The errors of the law of alignment, and their order."""
    errors = {}
    for beta in betas:
        tokens = start(beta)
        law, goal = aligned_by_law(tokens), mean_square_latitude(tokens) / FALLS

        def aligned(_t, state, goal=goal):
            return mean_square_latitude(state) - goal

        aligned.terminal = True
        model = mf.Transformer(mf.Attention(Q, K, V, beta=beta))
        run = mf.solve(model, tokens, (0, 2), t_eval=[2], events=aligned, rtol=1e-6)
        errors[beta] = successful(run).t_events[0][0] / law - 1
        print(f"alignment, beta = {beta:g}: beta times the error is {beta * errors[beta]:.2f}")
    order = -np.polyfit(np.log(betas), np.log(list(errors.values())), 1)[0]
    label = f"order in 1/beta, to {betas[-1]:g}"
    report.compare("alignment", label, predicted=1, measured=order, tolerance=0.1)


def check_run(report: Report, beta: float, run: mf.Solution, times: dict) -> None:
    label, s = f"beta = {beta:g}", times["widths"]
    law = (np.log(2) + beta * s / 2) / 2
    numbers = {"predicted": law, "measured": times["heat"], "relative": True}
    report.compare("heat", label, **numbers, tolerance=s / 2)
    times["pairing"], law = paired(beta, run.final)
    numbers = {"predicted": law, "measured": times["pairing"], "relative": True}
    report.compare("pairing", label, **numbers, tolerance=1e-6)


def check_scales(report: Report, betas, times: dict) -> None:
    rows = {name: np.array([times[beta][name] for beta in betas]) for name in times[betas[0]]}
    slope = np.diff(rows["heat"])[-1] / (betas[-1] - betas[-2])
    numbers = {"predicted": rows["widths"][-1] / 4, "measured": slope, "relative": True}
    report.compare("heat", "slope in beta", **numbers, tolerance=0.02)
    for name, factor in (("log(beta T)", np.array(betas)), ("log T", 1.0)):
        slope = np.polyfit(betas, np.log(factor * rows["pairing"]), 1)[0]
        numbers = {"predicted": 1 - np.cos(GAP), "measured": slope, "relative": True}
        report.compare("pairing", f"slope of {name}", **numbers, tolerance=0.02)


def draw(runs: dict, times: dict, path: str) -> None:
    """What falls in each phase, over time; and the three times over beta."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), dpi=200, layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for i, (beta, run) in enumerate(runs.items()):
        height = [np.sqrt(mean_square_latitude(tokens)) for tokens in run]
        width = [np.sqrt(clusters(tokens)[1].mean()) for tokens in run]
        left.loglog(run.t, height, color=f"C{i}", ls="--", lw=1)
        left.loglog(run.t, width, color=f"C{i}", label=rf"$\beta = {beta:g}$")
    left.set(xlabel="time $t$", ylabel="root mean square width", ylim=(1e-3, 0.5), xlim=(0.05, 50))
    left.set_title("across the plane (dashed), along it (lines)")
    left.legend(fontsize=8)
    betas, fine = np.array(list(times)), np.linspace(min(times), max(times), 100)
    found = {name: [times[beta][name] for beta in betas] for name in times[betas[0]]}
    middle.plot(betas, found["alignment"], "o", color="C0", ms=4, label="alignment, $O(1)$")
    middle.plot(fine, np.full(100, aligned_by_law(start(betas[0]))), "C0", lw=0.9)
    middle.plot(betas, found["heat"], "s", color="C1", ms=4, label=r"heat, $O(\beta)$")
    middle.plot(fine, (np.log(2) + fine * found["widths"][-1] / 2) / 2, "C1", lw=0.9)
    middle.set(xlabel=r"$\beta$", ylabel="time", title="first two phases", ylim=(0, None))
    middle.legend(fontsize=8)
    law = [closing_time(sa_speeds(beta, *MASSES), GAP, NEAR)[0] for beta in fine]
    right.plot(betas, np.log10(found["pairing"]), "^", color="C2", ms=5)
    right.plot(fine, np.log10(law), "C2", lw=0.9, label="quadrature")
    right.set(xlabel=r"$\beta$", ylabel=r"$\log_{10}$ of the time", ylim=(0, None))
    right.set_title(r"pairing, $e^{c\beta}$")
    right.legend(fontsize=8)
    figure.savefig(path)


def main() -> int:
    arguments = command_line(__doc__, "fewer beta", "where to draw the three phases")
    quick, report = arguments.quick, Report(["what", "case"], digits=8)
    betas, runs, times = BETAS[: 2 if quick else None], {}, {}
    check_alignment(report, ALIGNING[: 3 if quick else None])
    for beta in WHOLE[: 1 if quick else None]:
        check_whole(report, beta)
    for beta in betas:
        runs[beta], times[beta] = followed(beta)
        check_run(report, beta, runs[beta], times[beta])
    check_scales(report, betas, times)
    if arguments.figure:
        with theme.style():
            draw(runs, times, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
