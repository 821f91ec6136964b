"""Claim: softmax attention is blurring mean-shift, whose modes and clusters can be counted.

1. On S^(d-1) grad log sum_j m_j exp(-beta |x - x_j|^2/2) = beta v_SA (d = 2, 3, 8; derivatives
   by complex steps: 1e-12 relative). One layer without the residual is a step of mean-shift: on the
   sphere SA and L2 weights of beta/2 agree (1e-14). On the line, where v = sum_j w_j x_j - x,
   Gaussians keep their form: s' = -2s/(1 + beta s) in the flow (asked: known values to 1e-8, they
   have eight digits), s -> s (beta s/(1 + beta s))^2 by a step, which is cubic convergence (1e-10).
2. Circle, n independent uniform tokens: the estimate sum_i e^(beta cos(theta - theta_i)) has
   (sum k^4 I_k^2/sum k^2 I_k^2)^(1/2) modes on average, ~ sqrt(3 beta/2): known values (to
   their digits), Monte Carlo for beta up to 5000 (4.5 standard errors).
3. Then SA moves them. While deviations from the uniform density are small, degree k grows like
   e^(s_k t), and the number of modes is that of the power P_k = I_k^2 e^(2 s_k t), which tends
   to k* ~ sqrt(2 beta): n = 4000, t = 1, 2, 3 (4.5 standard errors).
4. That number is the first clusters' until t = 3, while what is linear decides: 4.5 standard
   errors. By t = 10 close ones have merged: the number is Theta(sqrt(beta)), exponent 0.5 to 0.03
   and 4.5 standard errors for beta from 10 to 160; its ratio to k*, which starts nearer to uniform
   reach exactly (metastable_clusters.py), is printed.

No critical point is left undecided in any sample. --quick: fewer samples and times, wider errors.

    python validation/mean_shift.py [--quick] [--figure FILE.png]    # 100 s, 7 s quick

Modes on the line: modes_on_the_line.py. Reference: Cheng (1995); parts 2 to 4 derived here.
"""

import sys

import numpy as np
from _mode_counts import fastest_degree, mean_of, modes_on_circle, places_of
from _report import Report, command_line, successful

import meanfield as mf
from meanfield.plotting import theme

SEED, SIGMAS = 5, 4.5
KNOWN = {5: 2.7215, 10: 3.8587, 50: 8.6532}
NARROW = {0.1: 0.03457496, 0.2: 0.02971678, 0.5: 0.01828420, 1.0: 0.00749286}  # beta = 10
CIRCLE = (5, 10, 50, 200, 1000, 5000)
GROWING = (10.0, 20.0, 40.0, 80.0, 160.0)
TIMES = np.array([0, 1, 2, 3, 4, 6, 8, 10, 15, 20.0])
CLUSTERED = 10.0
TOKENS = 4000


# Attention is mean-shift --------------------------------------------------------------------


def check_velocities(report: Report) -> None:
    beta, n = 3.0, 40
    for d in (2, 3, 8):
        rng = np.random.default_rng([SEED, d])
        x, masses = mf.Tokens.uniform(n, d, rng=rng).x, rng.dirichlet(np.ones(n))
        tokens = mf.Tokens(x, masses)
        mean = mf.attend(mf.SA(beta), tokens)
        A = mean.x * mean.radii[:, None]
        v = A - (x * A).sum(axis=1, keepdims=True) * x
        gradient = np.array([ascent(point, x, masses, beta) for point in x])
        error = np.abs(gradient - beta * v).max() / np.abs(beta * v).max()
        report.compare("gradient", f"d = {d}", predicted=0, measured=error, tolerance=1e-12)
        other = mf.attend(mf.Attention(beta=beta / 2, weights=mf.L2()), tokens)
        error = np.abs(other.x - mean.x).max()
        report.compare("SA and L2", f"d = {d}", predicted=0, measured=error, tolerance=1e-14)


def ascent(point: np.ndarray, x: np.ndarray, masses: np.ndarray, beta: float) -> np.ndarray:
    """Gradient on the sphere of the logarithm of the Gaussian estimate, by complex steps."""
    tangent = np.linalg.svd(point[None])[2][1:]
    moved = point + 1e-30j * tangent
    squares = ((moved[:, None] - x) ** 2).sum(axis=-1)
    slopes = np.log(np.exp(-beta / 2 * squares) @ masses).imag / 1e-30
    return slopes @ tangent


def check_gaussians(report: Report) -> None:
    """Flow and steps of a Gaussian on the line, beta = 10, s_0 = 0.04."""
    beta, s, (nodes, masses) = 10.0, 0.04, np.polynomial.hermite_e.hermegauss(40)
    points = (np.sqrt(s) * nodes)[:, None]
    start = mf.Tokens(points, masses / masses.sum(), on_sphere=False)
    drift = mf.Attention(beta=beta / 2, weights=mf.L2())
    model = mf.Transformer(drift, feedforward=np.negative)
    run = mf.solve(model, start, (0, 1), t_eval=list(NARROW), rtol=1e-10)
    for (t, known), tokens in zip(NARROW.items(), successful(run), strict=True):
        numbers = {"predicted": known, "measured": variance(tokens), "tolerance": 1e-8}
        report.compare("variance, flow", f"t = {t}", **numbers)
    tokens = start
    for step in (1, 2, 3):
        tokens, s = mf.attend(drift, tokens), s * (beta * s / (1 + beta * s)) ** 2
        numbers = {"predicted": s, "measured": variance(tokens), "relative": True}
        report.compare("variance, steps", f"step {step}", **numbers, tolerance=1e-10)


def variance(tokens: mf.Tokens) -> float:
    return float(tokens.masses @ tokens.x[:, 0] ** 2)


# Modes and clusters on the circle -----------------------------------------------------------


def check_circle(report: Report, samples: int) -> dict:
    for beta, known in KNOWN.items():
        numbers = {"predicted": known, "measured": modes_on_circle(beta), "tolerance": 5e-5}
        report.compare("modes, formula", f"beta = {beta}", **numbers)

    def modes(beta: float, rng: np.random.Generator) -> int:
        return len(places_of(mf.Tokens.uniform(TOKENS, 2, rng=rng), beta))

    counted = mf.sweep(modes, {"beta": CIRCLE}, replicas=samples, rng=SEED)["value"].values
    found = {}
    for beta, counts in zip(CIRCLE, counted, strict=True):
        found[beta] = mean, error = mean_of(counts)
        label = f"beta = {beta}, sqrt(3 beta/2) = {np.sqrt(1.5 * beta):.3f}"
        numbers = {"predicted": modes_on_circle(beta), "measured": mean}
        report.compare("modes, uniform", label, **numbers, tolerance=SIGMAS * error, random=True)
    return found


def check_clusters(report: Report, betas, replicas: int, times: list[float]) -> dict:
    """Numbers of modes along SA, as (mean, standard error) at times."""
    curves = {}
    for beta in betas:
        rng = np.random.default_rng([SEED, 2, int(beta)])
        start = mf.Tokens.uniform(TOKENS, 2, rng=rng, shape=(replicas,))
        model, span = mf.Transformer(mf.SA(beta)), (0, times[-1])
        run = successful(mf.solve(model, start, span, t_eval=times, rtol=1e-5))
        every = [[len(places_of(state[i], beta)) for i in range(replicas)] for state in run]
        curves[beta] = [mean_of(counts) for counts in every]
        for i in (1, 2, 3):
            mean, error = curves[beta][i]
            numbers = {"predicted": modes_on_circle(beta, times[i]), "measured": mean}
            label = f"beta = {beta:g}, t = {times[i]:g}"
            report.compare(
                "modes, growing", label, **numbers, tolerance=SIGMAS * error, random=True
            )
    check_exponent(report, curves, times.index(CLUSTERED))
    return curves


def check_exponent(report: Report, curves: dict, at: int) -> None:
    means = np.array([curve[at][0] for curve in curves.values()])
    errors = np.array([curve[at][1] for curve in curves.values()]) / means
    slope, error = slope_of(np.log(list(curves)), np.log(means), errors)
    tolerance = 0.03 + SIGMAS * error
    report.compare("clusters", "exponent", predicted=0.5, measured=slope, tolerance=tolerance)
    for beta, mean, error in zip(curves, means, errors, strict=True):
        ratio = mean / fastest_degree(beta)
        print(f"clusters at t = 10 over k*, beta = {beta:g}: {ratio:.3f} +- {ratio * error:.3f}")


def slope_of(x, y, errors) -> tuple[float, float]:
    """Slope of the straight line of least squares, and its standard error."""
    weights = (x - np.mean(x)) / ((x - np.mean(x)) ** 2).sum()
    return float(weights @ y), float(np.sqrt((weights**2) @ errors**2))


# The figure ---------------------------------------------------------------------------------


def draw(circle: dict, curves: dict, times: list[float], path: str) -> None:
    """Modes of uniform tokens over beta, and their way under SA, a panel for each beta."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), dpi=200, layout="constrained")
    grid = figure.add_gridspec(2, 6)
    left = figure.add_subplot(grid[:, :3])
    betas = np.geomspace(4, 6000, 200)
    left.loglog(betas, [modes_on_circle(beta) for beta in betas], "C0", label="Kac-Rice")
    left.loglog(betas, np.sqrt(1.5 * betas), "k:", label=r"$\sqrt{3\beta/2}$")
    stars = np.array([fastest_degree(beta) for beta in betas])
    left.loglog(betas, stars, "0.6", lw=0.9, label=r"$k^*(\beta)$")
    means, errors = np.array(list(circle.values())).T
    left.errorbar(list(circle), means, SIGMAS * errors, fmt="o", color="C0", ms=4, label="tokens")
    clustered = [curve[times.index(CLUSTERED)][0] for curve in curves.values()]
    left.loglog(
        list(curves), clustered, "s", color="C3", ms=4, mfc="none", label="clusters, $t = 10$"
    )
    left.set(xlabel=r"$\beta$", ylabel="number of modes", title="circle, uniform tokens")
    left.legend(fontsize=7)
    fine, first = np.linspace(0, times[-1], 200), None
    for i, (beta, curve) in enumerate(curves.items()):
        ax = first = figure.add_subplot(grid[i // 3, 3 + i % 3], sharex=first, sharey=first)
        means, errors = np.array(curve).T / fastest_degree(beta)
        ax.errorbar(times, means, 2 * errors, fmt="o", ms=3, color="C0")
        law = [modes_on_circle(beta, t) / fastest_degree(beta) for t in fine]
        ax.plot(fine, law, color="C1", lw=1, label="linear growth")
        ax.set_title(rf"$\beta = {beta:g}$", fontsize=8)
        ax.tick_params(labelsize=7)
        ax.set_xlabel("time", fontsize=8)
        if i % 3 == 0:
            ax.set_ylabel("modes over $k^*$", fontsize=8)
    figure.legend(*ax.get_legend_handles_labels(), fontsize=8, loc=(0.87, 0.25))
    figure.savefig(path)


def main() -> int:
    arguments = command_line(__doc__, "fewer samples", "where to draw the numbers of modes")
    report, quick = Report(["what", "case"], digits=8), arguments.quick
    check_velocities(report)
    check_gaussians(report)
    circle = check_circle(report, 5 if quick else 60)
    times = [*TIMES[TIMES <= 3].tolist(), CLUSTERED] if quick else TIMES.tolist()
    betas, replicas = (GROWING[::2], 5) if quick else (GROWING, 40)
    curves = check_clusters(report, betas, replicas, times)
    if arguments.figure:
        with theme.style():
            draw(circle, curves, times, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
