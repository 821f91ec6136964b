"""Claim: one run passes through alignment, heat and pairing, on times O(1), O(beta), e^(c beta).

Tokens on S^2, Q^T K = R diag(1, 1, 0.8) R^T with a random Q, V = R diag(1, 1, -0.3) R^T, R a random
rotation: on a plane both are 1. Two clusters, of masses 0.6 and 0.4, their densities Gaussian
along the plane (variance s_0 of about 0.1, centres 2.5 apart) and even across it, by weighted
tokens closer together than a bandwidth; beta = 50 to 200. Three times are read off:

    alignment   the mean square latitude has fallen to 1/25. The law, which knows no beta, is
                phi' = -(1 + 0.8 * 0.3) sin phi cos phi/|B x|, B = K^T Q, for each latitude. Its
                error is of order 1/beta; asked: 10/beta, relative.
    heat        the mean variance of both clusters has fallen to a half: s' = -2s/(1 + beta s),
                t_h = (log 2 + beta s_0/2)/2. Asked: slope s_0/4 in beta, 2 per cent.
    pairing     the two tokens that are left are one. By quadrature for their gap and masses:
                1e-6. log(beta T) grows with beta at the rate 1 - cos(2.5): 2 per cent.

    python validation/three_phases.py [--quick] [--figure FILE.png]    # 4 min; exit code 1

--quick: beta = 50 and 100. By beta = 400 backward heat, which is ill-posed, has had the time to
break each of these clusters, which end abruptly, into seven.

Reference: Bruno, Pasqualotto and Agazzi, arXiv:2509.25040.
"""

import argparse
import sys

import numpy as np
from _report import Report, successful
from _two_bodies import angle, closing_time, sa_speeds
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.plotting import theme

BETAS = (50.0, 100.0, 150.0, 200.0)
MASSES, GAP, SPREAD, LATITUDE = (0.6, 0.4), 2.5, 0.1, 0.5
KEY, VALUE = 0.8, -0.3  # eigenvalues of Q^T K and V across the plane
TIGHT, LATE, FALLS = 1e-7, 50.0, 25
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
    """When the mean square latitude has fallen to 1/100, by the law of alignment."""
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
    options = {"events": [aligned, halved], "merge": TIGHT, "rtol": 1e-7}
    run = successful(mf.solve(model, tokens, (0, LATE), t_eval=times, **options))
    found = {"alignment": run.t_events[0][0], "heat": run.t_events[1][0], "widths": widths.mean()}
    return run, found


def paired(beta: float, tokens: mf.Tokens) -> tuple[float, float]:
    """When the two clusters that are left merge, and when they should.

    They are on the plane to rounding, whose normal is an eigenvector of V B: there they stay. In
    coordinates of the plane Q^T K = V = 1, which is SA; its velocities e^(-c beta) keep all their
    digits, while for general matrices they are differences of numbers of order one.
    """
    plane = R[:, :2]
    for matrix in ((Q @ plane).T @ K @ plane, plane.T @ V @ plane):
        np.testing.assert_allclose(matrix, np.eye(2), atol=1e-12)
    assert np.abs(latitudes(tokens)).max() < 1e-9
    labels = mf.cluster_labels(tokens, TIGHT)
    ends = np.array([tokens.x[labels == i][0] for i in (0, 1)]) @ R
    masses = np.bincount(labels, tokens.masses)
    assert len(masses) == 2
    gap = float(angle(*ends))
    law, _ = closing_time(sa_speeds(beta, *masses), gap, TIGHT)
    model = mf.Transformer(mf.SA(beta))
    start = mf.Tokens.on_circle(np.arctan2(ends[:, 1], ends[:, 0]), masses)
    run = successful(mf.solve(model, start, (0, 2 * law), t_eval=[2 * law], merge=TIGHT, rtol=1e-9))
    ((time, _),) = run.stats["merges"]
    return time, law


def check_run(report: Report, beta: float, run: mf.Solution, times: dict) -> None:
    label = f"beta = {beta:g}"
    law = aligned_by_law(start(beta))
    numbers = {"predicted": law, "measured": times["alignment"], "relative": True}
    report.compare("alignment", label, **numbers, tolerance=10 / beta)
    times["pairing"], law = paired(beta, run.final)
    numbers = {"predicted": law, "measured": times["pairing"], "relative": True}
    report.compare("pairing", label, **numbers, tolerance=1e-6)


def check_scales(report: Report, betas, times: dict) -> None:
    rows = {name: np.array([times[beta][name] for beta in betas]) for name in times[betas[0]]}
    slope = np.diff(rows["heat"])[-1] / (betas[-1] - betas[-2])
    numbers = {"predicted": rows["widths"][-1] / 4, "measured": slope, "relative": True}
    report.compare("heat", "slope in beta", **numbers, tolerance=0.02)
    slope = np.polyfit(betas, np.log(betas * rows["pairing"]), 1)[0]
    numbers = {"predicted": 1 - np.cos(GAP), "measured": slope, "relative": True}
    report.compare("pairing", "slope of log(beta T)", **numbers, tolerance=0.02)


def draw(runs: dict, times: dict, path: str) -> None:
    """What falls in each phase, over time; and the three times over beta."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), dpi=200, layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, (beta, run) in enumerate(runs.items()):
        height = [np.sqrt(mean_square_latitude(tokens)) for tokens in run]
        width = [np.sqrt(clusters(tokens)[1].mean()) for tokens in run]
        left.loglog(run.t, height, color=f"C{i}", ls="--", lw=1)
        left.loglog(run.t, width, color=f"C{i}", label=rf"$\beta = {beta:g}$")
    left.set(xlabel="time $t$", ylabel="root mean square width", ylim=(1e-3, 0.5), xlim=(0.05, 50))
    left.set_title("across the plane (dashed), along it (lines)")
    left.legend(fontsize=8)
    betas = np.array(list(times))
    labels = {"alignment": "$O(1)$", "heat": r"$O(\beta)$", "pairing": r"$e^{c\beta}$"}
    for i, (name, order) in enumerate(labels.items()):
        found = [times[beta][name] for beta in betas]
        right.plot(betas, np.log10(found), "o", color=f"C{i}", ms=4, label=f"{name}, {order}")
    fine = np.linspace(betas[0], betas[-1], 100)
    widths = times[betas[-1]]["widths"]
    right.plot(fine, np.full(100, np.log10(aligned_by_law(start(betas[0])))), "C0", lw=0.9)
    right.plot(fine, np.log10((np.log(2) + fine * widths / 2) / 2), "C1", lw=0.9)
    law = [closing_time(sa_speeds(beta, *MASSES), GAP, TIGHT)[0] for beta in fine]
    right.plot(fine, np.log10(law), "C2", lw=0.9)
    right.set_yscale("symlog", linthresh=2)
    right.set(xlabel=r"$\beta$", ylabel=r"$\log_{10}$ of the time", title="times of the phases")
    right.set_ylim(0, 500)
    right.legend(fontsize=8, loc="center right")
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="beta = 50 and 100")
    parser.add_argument("--figure", metavar="FILE", help="where to draw the three phases")
    arguments = parser.parse_args()
    betas, report = BETAS[: 2 if arguments.quick else None], Report(["what", "case"], digits=8)
    runs, times = {}, {}
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
