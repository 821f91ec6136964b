"""Claim: for large beta softmax attention first aligns tokens, then runs the heat equation.

1. Alignment, time O(1): x' = P_x V B x/|B x|, B = K^T Q, whatever the other tokens do, while
   their density is positive. 600 tokens all around the circle, t = 1, beta = 50, 100, 200, 400:
   the largest distance to the solutions of this law, which falls like 1/beta. Its orbits are
   those of z/|z|, z' = V B z, in the time d tau = dt/|B x|, another one for each token: so is the
   largest distance to z(tau)/|z(tau)|, tau the integral along the token's own way. Asked: the
   order of both, between the last two beta, of 1 to 0.1.
2. Tokens on S^2 (beta = 30) end at the
   eigenvector of a simple real top eigenvalue of V B and at its antipode, or on the plane of a
   complex pair. Asked: mean distance below 1e-3 at t = 25, and both points taken.
3. Heat, Q = K = V = 1, time O(beta): a narrow Gaussian cluster of variance s has
   s' = -2 s/(1 + beta s), so ln(s/s_0) + beta (s - s_0) = -2t. The circle is curved: with
   beta s_0 = 0.4 kept, the error is of first order in s_0, 2.3 per cent for beta = 10, t = 1.
   Tokens at 48 Gauss-Hermite nodes, with their weights as masses. Asked: known values of the law
   to 1e-8; the order in s_0, beta = 40 to 160 and 640, of 1 to 0.05 at four times. The same for n
   equal tokens at the quantiles of the Gaussian, beta = 640: the tails that they lack add an error
   of order 1/n, n = 250, 1000: 0.1.
4. V = -1: forward heat, s' = 2 s/(1 + beta s). Three such clusters with beta = 50, s_0 = 0.04, of
   5 standard deviations' distance and more until t = 0.5. Asked: s_0/2. Later they fill
   the circle: the mode of degree 3 decays at the rate 9 I_3(beta)/(beta I_0(beta)). Asked: 1e-3.

    python validation/alignment_and_heat.py [--quick] [--figure FILE.png]    # 4 s, 1 s quick

--quick has a third of the tokens. Exit code 1 on failure.

References: Bruno, Pasqualotto and Agazzi, arXiv:2509.25040.
"""

import sys

import numpy as np
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicSpline
from scipy.linalg import expm
from scipy.optimize import brentq
from scipy.special import ive, ndtri

import meanfield as mf
from meanfield.plotting import theme

BETAS = (50, 100, 200, 400)
Q = np.array([[1.0, 0.3], [-0.2, 0.9]])
K = np.array([[0.9, -0.1], [0.4, 1.1]])
V = np.array([[1.0, 0.2], [-0.3, 0.7]])
TOPS = {
    "simple real": np.array([[1.0, 0.3, 0.1], [0.0, 0.4, -0.3], [0.1, 0.3, 0.3]]),
    "complex pair": np.array([[1.0, -0.6, 0.2], [0.7, 0.9, 0.0], [0.0, 0.2, 0.1]]),
}
NARROW = {0.1: 0.03457496, 0.2: 0.02971678, 0.5: 0.01828420, 1.0: 0.00749286}  # beta = 10
FLAT, WIDE = 0.4, 0.1  # beta s_0; a gap that is not drawn


def quantiles(n: int, variance: float) -> np.ndarray:
    """n points of this variance about 0 that are spread like a Gaussian."""
    x = ndtri((np.arange(n) + 0.5) / n)
    return x * np.sqrt(variance / (x**2).mean())


def angles(tokens: mf.Tokens) -> np.ndarray:
    return np.arctan2(tokens.x[..., 1], tokens.x[..., 0])


def solved(drift, start: mf.Tokens, times) -> mf.Solution:
    span = (0, times[-1])
    return successful(mf.solve(mf.Transformer(drift), start, span, t_eval=times, rtol=1e-7))


# Alignment ----------------------------------------------------------------------------------


def aligned(start: np.ndarray, t: float) -> np.ndarray:
    """The solution of the law of alignment."""
    B = K.T @ Q

    def velocity(_t, flat):
        x = flat.reshape(start.shape)
        y = x @ (V @ B).T / np.linalg.norm(x @ B.T, axis=1, keepdims=True)
        return (y - (x * y).sum(axis=1, keepdims=True) * x).ravel()

    run = solve_ivp(velocity, (0, t), start.ravel(), rtol=1e-10, atol=1e-12)
    return run.y[:, -1].reshape(start.shape)


def on_orbits(run: mf.Solution) -> np.ndarray:
    """z/|z| from the first state, at the time tau of each token at the end of the run."""
    B, x = K.T @ Q, np.array([tokens.x for tokens in run])
    slowness = 1 / np.linalg.norm(x @ B.T, axis=-1)
    taus = CubicSpline(run.t, slowness).integrate(run.t[0], run.t[-1])
    z = np.array([expm(tau * V @ B) @ point for tau, point in zip(taus, x[0], strict=True)])
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def check_alignment(report: Report, n: int) -> list[float]:
    start = mf.Tokens.on_circle(2 * np.pi * np.arange(n) / n)
    law, errors, others = aligned(start.x, 1.0), [], []
    for beta in BETAS:
        run = solved(mf.Attention(Q, K, V, beta=float(beta)), start, np.linspace(0, 1, 41))
        for found, places in ((errors, law), (others, on_orbits(run))):
            found.append(float(np.linalg.norm(run.final.x - places, axis=1).max()))
        print(
            f"alignment, beta = {beta}: farthest token {errors[-1]:.2e} from the law, "
            f"{others[-1]:.2e} from its z/|z|"
        )
    for case, found in (("alignment", errors), ("z/|z|", others)):
        order = np.log2(found[-2] / found[-1])
        report.compare("order in 1/beta", case, predicted=1, measured=order, tolerance=0.1)
    return errors


def spread(n: int) -> np.ndarray:
    """n points that cover S^2 evenly, on Fibonacci's spiral."""
    z, phi = 1 - (2 * np.arange(n) + 1) / n, np.pi * (3 - np.sqrt(5)) * np.arange(n)
    r = np.sqrt(1 - z**2)
    return np.stack([r * np.cos(phi), r * np.sin(phi), z], axis=1)


def check_limits(report: Report, n: int) -> dict:
    """Where tokens on S^2 end, Q = K = 1 and V the matrices of TOPS."""
    runs = {}
    for name, matrix in TOPS.items():
        times = np.linspace(0, 25, 51)
        run = runs[name] = solved(mf.Attention(V=matrix, beta=30.0), mf.Tokens(spread(n)), times)
        values, vectors = np.linalg.eig(matrix)
        top = vectors[:, values.real.argmax()]
        x, basis = run.final.x, np.linalg.qr(np.stack([top.real, top.imag], axis=1))[0]
        basis = basis[:, : 1 if np.isreal(top).all() else 2]
        far = np.linalg.norm(x - x @ basis @ basis.T, axis=1).mean()
        report.compare("mean distance", name, predicted=0, measured=far, tolerance=1e-3)
        if basis.shape[1] == 1:
            share = (x @ basis[:, 0] > 0).mean()
            report.compare("share of one", name, predicted=0.5, measured=share, tolerance=0.05)
    return runs


# Heat ---------------------------------------------------------------------------------------


def flat_variance(beta: float, start: float, t: float) -> float:
    """s of ln(s/s_0) + beta (s - s_0) = -2t; of 2|t| for t < 0, forward heat."""

    def law(log_ratio):
        return log_ratio + beta * start * np.expm1(log_ratio) + 2 * t

    return start * np.exp(brentq(law, -2 * abs(t) - 1, 2 * abs(t) + 1, xtol=1e-14))


def gaussian(variance: float) -> mf.Tokens:
    """A Gaussian cluster on the circle, by the rule of Gauss and Hermite."""
    x, masses = np.polynomial.hermite_e.hermegauss(48)
    return mf.Tokens.on_circle(np.sqrt(variance) * x, masses / masses.sum())


def ratios(beta: float, start: mf.Tokens, times: np.ndarray) -> np.ndarray:
    """s/s_0 of a cluster around 0."""
    s = [tokens.masses @ angles(tokens) ** 2 for tokens in solved(mf.SA(beta), start, times)]
    return np.array(s) * beta / FLAT


def check_narrow(report: Report) -> tuple[np.ndarray, dict]:
    """Narrow clusters whose beta s_0 is the same, ever narrower."""
    times, curves, errors = np.linspace(0, 1.5, 31), {}, []
    for t, known in NARROW.items():
        value = flat_variance(10, 0.04, t)
        report.compare("flat law", f"t = {t}", predicted=known, measured=value, tolerance=1e-8)
    law = np.array([flat_variance(1.0, FLAT, t) for t in times]) / FLAT
    for beta in (10.0, 40.0, 160.0, 640.0):
        curves[beta] = ratios(beta, gaussian(FLAT / beta), times)
        errors.append(curves[beta] / law - 1)
    print(f"s/s_0, beta = 10: off the law by up to {errors[0][times <= 1].max():.1e}, relative")
    for t in NARROW:
        i = int(np.argmin(np.abs(times - t)))
        for first, second, label in ((1, 2, "40 to 160"), (2, 3, "160 to 640")):
            order = np.log(errors[first][i] / errors[second][i]) / np.log(4)
            case = f"t = {t}, beta = {label}"
            report.compare("order in s_0", case, predicted=1, measured=order, tolerance=0.05)
    lacking = []
    for n in (250, 1000):
        equal = ratios(beta, mf.Tokens.on_circle(quantiles(n, FLAT / beta)), times)
        lacking.append(np.abs(equal / curves[beta] - 1)[times <= 1].max())
    order = np.log(lacking[0] / lacking[1]) / np.log(4)
    report.compare("order in 1/n", "quantiles", predicted=1, measured=order, tolerance=0.1)
    return times, curves


def check_forward(report: Report, n: int) -> mf.Solution:
    """Three clusters under V = -1, beta = 50."""
    beta, start, middles = 50.0, 0.04, 2 * np.pi / 3 * np.arange(3)[:, None]
    first = mf.Tokens.on_circle((middles + quantiles(n, start)).ravel())
    times = np.concatenate([np.linspace(0, 2, 21), np.linspace(4, 60, 29)])
    run = solved(mf.Attention(V=-1.0, beta=beta), first, times)
    for t in (0.1, 0.3, 0.5):
        i = int(np.argmin(np.abs(times - t)))
        clusters = np.angle(run[i].x @ [1, 1j]).reshape(3, n) - middles
        clusters = (clusters + np.pi) % (2 * np.pi) - np.pi
        s, law = clusters.var(axis=1).mean(), flat_variance(beta, start, -t)
        options = {"predicted": law, "measured": s, "relative": True}
        report.compare("variance", f"V = -1, t = {t}", **options, tolerance=0.02)
    mode = np.array([np.abs(((tokens.x @ [1, 1j]) ** 3).mean()) for tokens in run])
    late = (mode < 1e-2) & (mode > 1e-5)
    rate = -np.polynomial.Polynomial.fit(times[late], np.log(mode[late]), 1).convert().coef[1]
    law = 9 * ive(3, beta) / (beta * ive(0, beta))
    options = {"predicted": law, "measured": rate, "relative": True}
    report.compare("decay of mode 3", "V = -1", **options, tolerance=1e-3)
    return run


# The figure ---------------------------------------------------------------------------------


def draw(errors, limits: dict, narrow: tuple, forward: mf.Solution, path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6.2), dpi=200, layout="constrained")
    grid = figure.add_gridspec(2, 3)
    ax, ticks = figure.add_subplot(grid[0, 0]), (1e-3, 2e-3, 5e-3, 1e-2)
    ax.loglog(BETAS, errors, "o", label="measured")
    ax.loglog(BETAS, errors[-1] * BETAS[-1] / np.array(BETAS), "k:", label=r"order $1/\beta$")
    ax.set(xlabel=r"$\beta$", ylabel="largest distance to the law", title="alignment, $t = 1$")
    ax.set_xticks(BETAS, BETAS)
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.legend(fontsize=8)
    for i, (name, run) in enumerate(limits.items()):
        draw_sphere(figure.add_subplot(grid[0, 1 + i], projection="3d"), name, run)
    ax, (times, curves) = figure.add_subplot(grid[1, 0]), narrow
    law = np.array([flat_variance(1.0, FLAT, t) for t in times]) / FLAT
    for beta, s in curves.items():
        ax.semilogy(times[1:], (s / law - 1)[1:], label=rf"$\beta = {beta:g}$")
    ax.set(xlabel="time $t$", ylabel=r"relative error of $s' = -2s/(1 + \beta s)$")
    ax.set(title=r"backward heat, $\beta s_0 = 0.4$", ylim=(1e-5, 0.3))
    ax.legend(fontsize=8, ncols=2)
    draw_forward(figure.add_subplot(grid[1, 1:]), forward)
    figure.savefig(path)


def draw_sphere(ax, name: str, run: mf.Solution) -> None:
    """Tokens soon after the start and at the end, under V of TOPS."""
    turn = np.linspace(0, 2 * np.pi, 100)
    u, v = np.meshgrid(turn, np.linspace(0, np.pi, 50))
    ball = np.array([np.sin(v) * np.cos(u), np.sin(v) * np.sin(u), np.cos(v)])
    ax.computed_zorder = False  # tokens are on top
    ax.plot_surface(*ball, color="0.92", alpha=0.2, lw=0, shade=False)
    values, vectors = np.linalg.eig(TOPS[name])
    top = vectors[:, values.real.argmax()]
    if np.iscomplex(top).any():
        basis = np.linalg.qr(np.stack([top.real, top.imag], axis=1))[0]
        ax.plot(*(basis @ [np.cos(turn), np.sin(turn)]), color="k", lw=0.7)
    else:
        ax.plot(*(np.outer(top.real, [-1.2, 1.2])), color="k", lw=0.7)
    ax.scatter(*run[2].x.T, s=3, color="C0", alpha=0.8, lw=0)
    ax.scatter(*run.final.x.T, s=22, color="C3", depthshade=False, lw=0)
    ax.set(title=f"top eigenvalue: {name}", xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    ax.set_axis_off()
    ax.set_box_aspect((1, 1, 1), zoom=1.6)


def draw_forward(ax, run: mf.Solution) -> None:
    """Densities of ordered tokens, 1/n over their gaps, and three Gaussians of the law."""
    for i, t in enumerate((0, 1, 4, 20)):
        theta = np.sort(angles(run[int(np.argmin(np.abs(run.t - t)))]))
        heights = 2 * np.pi / (len(theta) * np.diff(theta))
        heights[np.diff(theta) > WIDE] = np.nan  # no density is known between far tokens
        ax.plot((theta[1:] + theta[:-1]) / 2, heights, color=f"C{i}", label=f"$t = {t}$")
    x, s = np.linspace(-np.pi, np.pi, 400), flat_variance(50.0, 0.04, -1.0)
    parts = [np.exp(-((x - 2 * np.pi / 3 * k) ** 2) / (2 * s)) for k in (-1, 0, 1)]
    law = np.sqrt(2 * np.pi / s) / 3 * sum(parts)
    ax.plot(x, law, "k:", label="law, $t = 1$")
    ax.set(xlabel="angle", ylabel="density", title=r"forward heat, $V = -1$, $\beta = 50$")
    ax.set(xlim=(-np.pi, np.pi), ylim=(0, 5))
    ax.legend(fontsize=8, ncols=5, loc="upper center")


def main() -> int:
    arguments = command_line(__doc__, "fewer tokens", "where to draw both phases")
    report, n = Report(["what", "case"], digits=8), 200 if arguments.quick else 600
    errors = check_alignment(report, n)
    limits = check_limits(report, n)
    narrow = check_narrow(report)
    forward = check_forward(report, n // 2)
    if arguments.figure:
        with theme.style():
            draw(errors, limits, narrow, forward, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
