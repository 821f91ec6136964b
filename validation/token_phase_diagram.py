"""Claim: in high dimension random tokens meet when equiangular ones do.

n = 32 independent uniform tokens on S^(d-1), d = 8, 128, 1024. P(<x_i, x_j> >= 0.999), i != j, is
estimated from all pairs of 32 realisations (for USA 16; with --quick a quarter), followed as Gram
matrices where d > n, on a grid of times and beta: t <= 30 and 0.1 <= beta <= 9 for SA, t <= 3 and
beta <= 6 for USA. Uniform tokens of high dimension are almost orthogonal, and rho of orthogonal
ones reaches 0.999 at the time t(beta) = int_0^0.999 d rho / rho'(rho). Theorem 6.9 of the
reference makes this a limit, d -> infinity, with constants too large to be tested.

Where P crosses 1/2, the median of <x_i, x_j> crosses 0.999. That time is compared with t(beta) for
every beta with t(beta) within the diagram. At the start the weights e^{beta <x_i, x_j>} are on
average about e^{beta^2/2d}, not 1. So deviations of this size are expected: 0.18 for d = 128 and
beta = 6.8, 0.02 for d = 1024. Asked of the largest relative deviation: at most 0.3 for d = 128,
0.08 for d = 1024, smaller for larger d. At d = 8 there is no law: where beta is large half of the
pairs may not meet within the diagram, which counts as a deviation of 1.

    python validation/token_phase_diagram.py [--quick] [--figure FILE.png]  # 70 s, 6 s quick

--quick has a quarter of the realisations and a fifth of the beta. Exit code 1 on failure.

Reference: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, figure 3, theorem 6.9.
"""

import sys

import numpy as np
from _reduced_models import passage_time
from _report import Report, command_line, successful
from matplotlib.figure import Figure
from scipy.interpolate import PchipInterpolator

import meanfield as mf
from meanfield.plotting import theme

TOKENS, CLOSE, SEED = 32, 0.999, 0
DIMENSIONS = (8, 128, 1024)
ALLOWED = {128: 0.3, 1024: 0.08}
DRIFTS = {"SA": mf.SA, "USA": mf.USA}
TIMES = {"SA": np.linspace(0, 30, 61), "USA": np.linspace(0, 3, 61)}
BETAS = {"SA": np.linspace(0.1, 9, 45), "USA": np.linspace(0.1, 6, 30)}


def products(state: mf.Tokens | mf.Gram) -> np.ndarray:
    """<x_i, x_j> of all pairs i < j and all realisations."""
    G = state.G if isinstance(state, mf.Gram) else state.x @ np.swapaxes(state.x, -1, -2)
    return G[..., *np.triu_indices(TOKENS, 1)]


def met(_t: float, state: mf.Tokens | mf.Gram) -> bool:
    """Whether all tokens of all realisations have met, so that nothing more will happen."""
    return bool(products(state).min() > 0.9999)


def along(drift: str, beta: float, start: mf.Tokens | mf.Gram) -> tuple[np.ndarray, np.ndarray]:
    """P(<x_i, x_j> >= 0.999), and the median of 1 - <x_i, x_j>, at all times."""
    times = TIMES[drift]
    model = mf.Transformer(DRIFTS[drift](beta))
    span = (0, times[-1])
    run = successful(mf.solve(model, start, span, t_eval=times, rtol=1e-8, callback=met))
    share, gap = np.ones(times.size), np.full(times.size, 1e-4)  # as after all have met
    for i in np.flatnonzero(times <= run.t[-1]):
        cosines = products(run[i])
        share[i], gap[i] = (cosines >= CLOSE).mean(), max(1 - np.median(cosines), 1e-4)
    return share, gap


def crossing(times: np.ndarray, gap: np.ndarray) -> float:
    """When the median of 1 - <x_i, x_j> falls to 0.001; nan if it does not."""
    level = np.log(1 - CLOSE)
    roots = PchipInterpolator(times, np.log(gap) - level).roots(extrapolate=False)
    return float(roots[0]) if roots.size else np.nan


def diagram(drift: str, dimension: int, realisations: int, betas) -> tuple[np.ndarray, np.ndarray]:
    """P at (beta, t), and the time of transition at each beta."""

    def at(beta: float, rng: np.random.Generator) -> dict:
        tokens = mf.Tokens.uniform(TOKENS, dimension, rng=rng, shape=(realisations,))
        start = tokens if dimension < TOKENS else tokens.gram()  # whichever has fewer numbers
        share, gap = along(drift, beta, start)
        return {"share": share, "transition": crossing(TIMES[drift], gap)}

    found = mf.sweep(at, {"beta": betas}, rng=SEED + dimension)
    return found["share"].values, found["transition"].values


def compare(report: Report, drift: str, betas, transitions: dict) -> None:
    """Compare some times of transition, and the largest deviation of all."""
    exact = np.array([passage_time(drift, beta, TOKENS) for beta in betas])
    inside = exact <= TIMES[drift][-1]
    worst = []
    for dimension, measured in transitions.items():
        deviations = np.nan_to_num(np.abs(measured / exact - 1), nan=1.0)
        worst.append(deviations[inside].max())
        for i in np.flatnonzero(inside)[:: max(1, inside.sum() // 5)]:
            label = f"{drift}({betas[i]:.2f}), d = {dimension}"
            numbers = {"predicted": exact[i], "measured": measured[i], "relative": True}
            if dimension > TOKENS:
                report.compare("transition", label, **numbers, tolerance=ALLOWED[dimension])
            else:
                print(f"{label}: transition at {measured[i]:.4g}, no law; t(beta) = {exact[i]:.4g}")
    for dimension, deviation in zip(transitions, worst, strict=True):
        if dimension > TOKENS:
            numbers = {"predicted": 0, "measured": deviation, "tolerance": ALLOWED[dimension]}
            report.compare("largest deviation", f"{drift}, d = {dimension}", **numbers)
        else:
            print(f"{drift}, d = {dimension}: largest deviation {deviation:.3f}")
    falling = float(np.all(np.diff(worst) < 0))
    report.compare("smaller for larger d", drift, predicted=1, measured=falling, tolerance=0)


def draw(diagrams: dict, betas: dict, path: str) -> None:
    """P over time and beta for every dimension, with the equiangular curve."""
    figure = Figure(figsize=(9.0, 5.2), dpi=200, layout="constrained")
    axes = figure.subplots(2, 3, sharey="row", sharex="row")
    for row, drift in zip(axes, DRIFTS, strict=True):
        fine = np.linspace(0.1, betas[drift][-1], 200)
        curve = [passage_time(drift, beta, TOKENS) for beta in fine]
        for ax, dimension in zip(row, DIMENSIONS, strict=True):
            share, transitions = diagrams[drift, dimension]
            mesh = ax.pcolormesh(
                TIMES[drift],
                betas[drift],
                share,
                vmin=0,
                vmax=1,
                rasterized=True,
                shading="nearest",
            )
            ax.plot(curve, fine, color="white", lw=1.6, label=r"equiangular, $\rho = 0.999$")
            ax.plot(transitions, betas[drift], ".", color="#D55E00", ms=3, label="$P = 1/2$")
            ax.set(title=f"{drift}, $d = {dimension}$", xlim=(0, TIMES[drift][-1]))
        row[0].set_ylabel(r"$\beta$")
    axes[0, 2].legend(loc="upper left", labelcolor="white")
    for ax in axes[-1]:
        ax.set_xlabel("time $t$")
    label = r"$P(\langle x_i, x_j\rangle \geq 0.999)$"
    figure.colorbar(mesh, ax=axes, label=label, shrink=0.7, aspect=30, pad=0.01)
    figure.savefig(path)


def main() -> int:
    arguments = command_line(
        __doc__, "fewer realisations and betas", "where to draw the phase diagrams"
    )
    report = Report(["what", "case"], digits=4)
    realisations = {"SA": 8, "USA": 4} if arguments.quick else {"SA": 32, "USA": 16}
    betas = {name: grid[:: 5 if arguments.quick else 1] for name, grid in BETAS.items()}
    diagrams = {}
    for name in DRIFTS:
        for dimension in DIMENSIONS:
            diagrams[name, dimension] = diagram(name, dimension, realisations[name], betas[name])
        transitions = {d: diagrams[name, d][1] for d in DIMENSIONS}
        compare(report, name, betas[name], transitions)
    if arguments.figure:
        with theme.style():
            draw(diagrams, betas, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
