"""Gaussians that grow: blow-up under softmax and two heads, exponentials under other weights."""

import numpy as np
from _gaussian_cases import KINDS, attention, grid, growing, mixed
from _gaussian_directions import fates, heads, integrated, softmax
from _gaussian_runs import AT_REST, LAW, Runs, blown_up, distance, followed, gaps, lines_of
from _report import Report, successful

import meanfield as mf

__all__ = ["check_growing", "check_mixed"]


def compare_times(report: Report, case: str, runs: list[mf.Solution], times) -> None:
    pairs = zip(runs, times, strict=True)
    worst = np.max([abs((run.stats["blow_up_time"] or np.inf) / T - 1) for run, T in pairs])
    report.compare(*case.split("/"), predicted=0, measured=worst, tolerance=1e-8)


def check_growing(report: Report, count: int) -> Runs:
    """Poles under softmax and two heads, exponentials under L2 and Sinkhorn weights."""
    matrices, starts = growing(), grid(count, 1.0)
    model = mf.Transformer(attention("softmax", *matrices))
    laws = [mf.Gaussian(np.zeros(2), S) for S in starts]
    times = {
        "softmax": [mf.ClosedCovariance(model, law).blow_up_time for law in laws],
        "two heads": fates(heads(*matrices), starts, 300.0).blow_up,
    }
    runs = {}
    for kind, T in times.items():
        runs[kind] = [blown_up(kind, matrices, *start) for start in zip(starts, T, strict=True)]
        compare_times(report, f"growth/{kind}: times of blow-up", runs[kind], T)
    saved = np.linspace(0, 12, 41)
    for kind, times in (("L2", saved), ("Sinkhorn", np.append(saved, [23, 24]))):
        runs[kind] = [successful(followed(kind, matrices, S, times)) for S in starts]
    compare_L2(report, matrices, runs["L2"], starts)
    compare_sinkhorn(report, matrices, runs["Sinkhorn"])
    return {kind: runs[kind] for kind in KINDS}


def rate(run: mf.Solution) -> float:
    """At which the trace grows between the last two saved states."""
    before, after = (np.trace(state.cov) for state in run[-2:])
    return np.log(after / before) / (run.t[-1] - run.t[-2])


def compare_L2(report: Report, matrices, runs: list[mf.Solution], starts) -> None:
    """Laws against S' itself, and the rate at the end."""
    Q, K, V = matrices

    def rates(S):
        moved = 2 * V @ S @ np.linalg.solve(np.eye(2) + 2 * K.T @ K @ S, K.T @ Q @ S)
        return moved + moved.swapaxes(-1, -2)

    far = distance(runs, integrated(rates, starts, runs[0].t[-1]))
    report.compare("growth", "L2: laws at t = 12", predicted=0, measured=far, tolerance=LAW)
    late = [rate(successful(followed("L2", matrices, S, [239.0, 240.0]))) for S in starts]
    limit = 2 * np.linalg.eigvals(np.linalg.solve(K, Q)).real.max()
    worst = max(late, key=lambda found: abs(found - limit))
    report.compare("growth", "L2: rate in the end", predicted=limit, measured=worst, tolerance=LAW)


def compare_sinkhorn(report: Report, matrices, runs: list[mf.Solution]) -> None:
    """The rate 2 cos theta of the direction at the end, of the start that is farthest from it."""
    A = matrices[1].T @ matrices[0]
    ends = np.array([run.final.trace_one for run in runs])
    areas = np.sqrt(np.maximum(np.linalg.det(ends), 0.0))  # negative ones are rounding
    angles = np.arctan2((A[0, 1] - A[1, 0]) * areas, np.trace(A @ ends, axis1=1, axis2=2))
    predicted, measured = 2 * np.cos(angles), np.array([rate(run) for run in runs])
    worst = np.abs(measured - predicted).argmax()
    report.compare(
        *("growth", "Sinkhorn: rate in the end"),
        predicted=predicted[worst],
        measured=measured[worst],
        tolerance=LAW,
    )


def check_mixed(report: Report, count: int) -> Runs:
    """Which starts blow up under softmax, when, and where the others go, and all under L2."""
    matrices, starts = mixed(), grid(count, 1.0)
    lines, expected = lines_of(*matrices[:2]), fates(softmax(*matrices), starts, 300.0)
    runs = {
        "softmax": [
            settling("softmax", matrices, S) if T == np.inf else blown_up("softmax", matrices, S, T)
            for S, T in zip(starts, expected.blow_up, strict=True)
        ],
        "L2": [settling("L2", matrices, S) for S in starts],
    }
    blow_up = np.isfinite(expected.blow_up)
    differ = sum(
        (run.status == "blow-up") != fate
        for run, fate in zip(runs["softmax"], blow_up, strict=True)
    )
    name = f"mixed, {blow_up.sum()} of {len(starts)} blow up"
    report.compare(name, "softmax: other fates", predicted=0, measured=differ, tolerance=0)
    poles = [run for run, fate in zip(runs["softmax"], blow_up, strict=True) if fate]
    stay = [run for run, fate in zip(runs["softmax"], blow_up, strict=True) if not fate]
    compare_times(report, f"{name}/softmax: times of blow-up", poles, expected.blow_up[blow_up])
    for what, far in (
        ("softmax: limits", distance(stay, expected.limits[~blow_up])),
        ("softmax: off one line", gaps(stay, lines).max(axis=0).min()),
        ("L2: off the same line", gaps(runs["L2"], lines)[:, gaps(stay, lines)[0].argmin()].max()),
    ):
        report.compare(name, what, predicted=0, measured=far, tolerance=LAW)
    return runs


def settling(kind: str, matrices, cov) -> mf.Solution:
    """A run that stops at rest, or where it does."""
    return followed(kind, matrices, cov, np.append(np.linspace(0, 20, 81), 1e7), **AT_REST)
