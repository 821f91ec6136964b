"""Claim: for large beta attention with Q = K = 1, V = -1 follows a diffusion, of order 1 in 1/beta.

The field of attention is a gradient, v = -(1/beta) grad F for V = -1. Let rho_l = lambda_l/lambda_0
be the multipliers of e^{beta t}, rho_l = 1 - l(l+d-2)/(2 beta) + O(1/beta^2): smoothing by the
kernel is 1 + Lap/(2 beta) + O(1/beta^2), and with s = t/beta (USA: s = lambda_0 t/beta)

    SA        F = log(K*mu)        = log mu + Lap mu/(2 beta mu)        d mu/ds = Lap mu
    USA       F = K*mu/lambda_0    = mu + Lap mu/(2 beta)               d mu/ds = (1/2) Lap(mu^2)
    Sinkhorn  F = -log u, u(K*(u mu)) = 1,
                F = (1/2) log mu + Lap sqrt(mu)/(4 beta sqrt(mu))       d mu/ds = (1/2) Lap mu

up to O(1/beta^2) on the left. The terms of order 1/beta give the first correction mu_1 as well:

    SA        d mu_1/ds = Lap mu_1 + (1/2) div(mu grad(Lap mu/mu))
    USA       d mu_1/ds = Lap(mu mu_1) + (1/2) div(mu grad Lap mu)
    Sinkhorn  d mu_1/ds = (1/2) Lap mu_1 + (1/4) div(mu grad(Lap sqrt(mu)/sqrt(mu)))

1. V = -1, circle and S^2, beta = 16 to 256 s = 0.2. Asked: the largest
   error of a coefficient is of order 1 in 1/beta, to 0.05, between the last two beta; the rest
   mu_beta - mu - mu_1/beta of order 2, to 0.15. The limits are solved by scipy; the heat equation
   among them agrees with its exact solution to 1e-9.
2. V = 1, circle and S^2: perturbations of degree 1 to 4 of the uniform density grow at the rates
   r_l of finite beta (5e-5, relative), and beta r_l tends to l(l+d-2), Sinkhorn to half of it, at
   order 1 to 0.1.
3. V = 1, SA, circle: the backward heat equation is ill-posed. From three wrapped normals of
   variance 0.4 it has a solution until s = 0.2. Two runs whose starts differ by 1e-11 of the
   fastest degree, l about sqrt(2 beta), part like exp(s max l^2 rho_l): the logarithm of this,
   about 2 beta s/e, is asked to 10 per cent at s = 0.05. So a perturbation has reached a given
   size at a time s proportional to 1/beta.
4. Even without a perturbation SA leaves backward heat at fixed s: its corrections of order 1/beta
   have coefficients that decay like e^(-c l), which backward heat multiplies by e^(s l^2), l up
   to sqrt(2 beta). Asked: at beta = 512 SA has no resolved density at s = 0.07. With times that
   shrink, s = 0.16/sqrt(beta) and s = 1/beta, the error relative to the displacement by backward
   heat is of order 1 to 0.05, at s = 1/beta with the perturbation too.

    python validation/diffusion_limits.py [--quick] [--figure FILE.png]    # 8 s, 5 s quick

--quick stops at beta = 64 or 128, with three times the tolerances of orders. Exit code 1 on
failure.

References: Bruno, Pasqualotto and Agazzi, arXiv:2509.25040, Remark 3.10 (USA, without the
factor 1/2); Rigollet, arXiv:2512.01868, section 3; Sander, Ablin, Blondel and Peyre,
arXiv:2110.11773 (Sinkhorn).
"""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _report import Report, command_line, successful
from scipy.integrate import solve_ivp

import meanfield as mf
from meanfield.plotting import theme
from meanfield.spaces import Space
from meanfield.spaces.kernels import exponential_multipliers

END = 0.2  # s of the forward limits
BETAS = (16.0, 32.0, 64.0, 128.0, 256.0)
SMALL, DEGREES = 1e-7, (1, 2, 3, 4)
VARIANCE, STOP, LATE, SEED = 0.4, 0.05, 0.07, 1e-11
RTOL = 1e-10


# Attention, and what it tends to ------------------------------------------------------------


def ratios(beta: float, degree: int, dimension: int) -> np.ndarray:
    """rho_l = lambda_l/lambda_0, l = 0, ..., degree."""
    multipliers = exponential_multipliers(beta, degree, dimension)
    return multipliers / multipliers[0]


def sa(beta: float, _dimension: int) -> mf.Sum:
    return beta * mf.SA(beta)


def usa(beta: float, dimension: int) -> mf.Sum:
    """USA in the time s: divided by lambda_0/beta, which would be out of range."""
    scaled = exponential_multipliers(beta, 0, dimension)[0]  # lambda_0 e^-beta
    return beta / scaled * np.exp(-beta) * mf.USA(beta)


def sinkhorn(beta: float, _dimension: int) -> mf.Sum:
    return beta * mf.Attention(beta=beta, weights=mf.Sinkhorn(tolerance=1e-11))


@dataclass(frozen=True)
class Limit:
    """A kind of attention in the time s, and for V = -1 the equations of mu and mu_1.

    Attributes
    ----------
    attention : callable
        (beta, dimension) -> the drift with V = 1.
    pressure : callable
        p of d mu/ds = Lap p(mu), and its derivative.
    correction : callable
        (mu, Lap) -> g of d mu_1/ds = Lap(p'(mu) mu_1) + div(mu grad g).
    speed : callable
        Growth of a degree with l(l+d-2) = 1 in units of 1/beta, from rho_l.
    """

    attention: Callable
    pressure: tuple[Callable, Callable]
    correction: Callable
    speed: Callable


LIMITS = {
    "SA": Limit(
        sa,
        (lambda u: u, np.ones_like),
        lambda u, laplacian: laplacian(u) / (2 * u),
        lambda rho: rho,
    ),
    "USA": Limit(
        usa,
        (lambda u: u**2 / 2, lambda u: u),
        lambda u, laplacian: laplacian(u) / 2,
        lambda rho: rho,
    ),
    "Sinkhorn": Limit(
        sinkhorn,
        (lambda u: u / 2, lambda u: np.full_like(u, 0.5)),
        lambda u, laplacian: laplacian(np.sqrt(u)) / (4 * np.sqrt(u)),
        lambda rho: rho / (1 + rho),
    ),
}
SPACES = {"circle": mf.Circle(48), "S^2": mf.Sphere(20)}


def beginning(name: str) -> mf.Density:
    """A positive density without symmetries."""
    if name == "circle":
        return SPACES[name].density(lambda a: np.exp(0.5 * np.cos(a) + 0.3 * np.sin(2 * a)))
    tilt = SPACES[name].von_mises_fisher((2 / 3, 1 / 3, 2 / 3), 1.0)
    return 0.6 * tilt + 0.4 * SPACES[name].von_mises_fisher((0.0, 0.8, -0.6), 1.5)


def limit(law: Limit, start: mf.Density, s: float) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of mu and mu_1 at s, by the method of lines."""
    space: Space = start.space
    size = start.coefficients.size

    def laplacian(values):
        return space.to_values(space.laplacian * space.to_coefficients(values))

    def right(_s, parts):
        series, first = np.split(parts.view(start.coefficients.dtype), 2)
        u, v = space.to_values(series), space.to_values(first)
        p, slope = law.pressure
        g = law.correction(u, laplacian)
        flow = space.laplacian * space.to_coefficients(u * g + 2 * slope(u) * v)
        flow += space.to_coefficients(u * laplacian(g) - g * laplacian(u))
        return np.concatenate([space.laplacian * space.to_coefficients(p(u)), flow / 2]).view(float)

    first = np.concatenate([start.coefficients, np.zeros(size)]).view(float)
    run = solve_ivp(right, (0, s), first, method="DOP853", rtol=1e-10, atol=1e-12)
    mu, correction = np.split(run.y[:, -1].view(start.coefficients.dtype), 2)
    return mu, correction


def moved(drift, start: mf.Density, s: float, degree: int | None = None) -> np.ndarray:
    """Coefficients at s of a density that moves under a drift."""
    run = successful(mf.solve(mf.Transformer(drift), start, (0, s), t_eval=[s], rtol=RTOL))
    return run.final.resample(degree or start.space.degree).coefficients


def orders(errors, betas) -> np.ndarray:
    """Orders in 1/beta, by the last two beta."""
    return np.log(errors[-2] / errors[-1]) / np.log(betas[-1] / betas[-2])


def size(coefficients: np.ndarray) -> float:
    return float(np.abs(coefficients).max())


# 1. Forward ---------------------------------------------------------------------------------


def check_forward(report: Report, quick: bool) -> dict:
    found = {}
    for place, space in SPACES.items():
        start, exact = beginning(place), None
        for name, law in LIMITS.items():
            betas = BETAS[: 4 if quick else None]
            mu, first = limit(law, start, END)
            if name == "SA":
                exact = start.coefficients * np.exp(space.laplacian * END)
                error = size(mu - exact)
                report.compare("heat", place, predicted=0, measured=error, tolerance=1e-9)
            runs = [moved(-law.attention(b, space.dimension), start, END) for b in betas]
            errors = [size(run - mu) for run in runs]
            rests = [size(run - mu - first / b) for run, b in zip(runs, betas, strict=True)]
            loose = 3 if quick else 1
            case = f"{name}, {place}"
            measured = float(orders(errors, betas))
            report.compare("order", case, predicted=1, measured=measured, tolerance=0.05 * loose)
            measured = float(orders(rests, betas))
            report.compare("of rest", case, predicted=2, measured=measured, tolerance=0.15 * loose)
            scaled = " ".join(f"{b * e:.4f}" for b, e in zip(betas, errors, strict=True))
            print(f"{case}: beta * error {scaled}, by mu_1 {size(first):.4f}", flush=True)
            found[name, place] = betas, errors, rests
    return found


# 2. Rates of growth -------------------------------------------------------------------------


def check_rates(report: Report, quick: bool) -> None:
    for place, space in SPACES.items():
        d, s = space.dimension, 0.05
        start = space.perturbed(SMALL, rng=np.random.default_rng(0), degrees=DEGREES)
        for name, law in LIMITS.items():
            betas, errors = BETAS[: 3 if quick else 4], []
            for beta in betas:
                run = moved(law.attention(beta, d), start, s)
                away, worst = [], 0.0
                for l in DEGREES:
                    of, level = space.degrees == l, l * (l + d - 2)
                    rate = np.log(size(run[of]) / size(start.coefficients[of])) / s
                    known = level * law.speed(ratios(beta, l, d)[l])
                    worst = max(worst, abs(rate / known - 1))
                    away.append(rate / (level * law.speed(1.0)) - 1)
                case = f"{name}, {place}, beta = {beta:g}"
                report.compare("rates", case, predicted=0, measured=worst, tolerance=5e-5)
                errors.append(np.abs(away))
            for l, measured in zip(DEGREES, orders(errors, betas), strict=True):
                case, loose = f"{name}, {place}, degree {l}", 3 if quick else 1
                report.compare(
                    "order of rate", case, predicted=1, measured=measured, tolerance=0.1 * loose
                )


# 3. and 4. Backward heat is ill-posed -------------------------------------------------------


def wrapped_normals(space: mf.Circle) -> mf.Density:
    k, middles = np.arange(space.degree + 1), np.array([0.0, 2.2, 4.1])
    parts = np.array([0.4, 0.25, 0.35]) @ np.exp(-1j * np.outer(middles, k))
    return space.fourier(parts * np.exp(-(k**2) * VARIANCE / 2))


def check_backward(report: Report, quick: bool) -> dict:
    """SA with V = 1 beside backward heat, with and without SEED at the fastest degree."""
    space, betas = mf.Circle(64), BETAS[1:4] if quick else BETAS[1:]
    start, loose = wrapped_normals(space), 3 if quick else 1
    found: dict = {"betas": betas, "parted": [], "known": [], "away": []}
    for beta in betas:
        growth = space.degrees**2 * ratios(beta, space.degree, 2)
        fastest = int(growth.argmax())
        seeded = start.coefficients + SEED * (space.degrees == fastest)
        both, away = (start, mf.Density(space, seeded)), []
        for s in (STOP, 0.16 / np.sqrt(beta), 1 / beta):
            known = start.coefficients * np.exp(-space.laplacian * s)
            runs = [moved(sa(beta, 2), begin, s) for begin in both]
            shift = size(known - start.coefficients)
            away.append([size(run - known) / shift for run in runs])
            if s == STOP:
                found["parted"].append(size(runs[1] - runs[0]))
                found["known"].append(s * growth.max())
        found["away"].append(away)
        measured = np.log(found["parted"][-1] / SEED)
        options = {"predicted": found["known"][-1], "measured": measured, "relative": True}
        case = f"beta = {beta:g}, degree {fastest}"
        report.compare("log of growth", case, **options, tolerance=0.1)
    found["away"] = np.array(found["away"])  # (beta, time, disturbed)
    shrinking = found["away"][:, [1, 2, 2], [0, 0, 1]].T
    labels = ("0.16/sqrt(beta)", "1/beta", "1/beta, disturbed")
    for label, errors in zip(labels, shrinking, strict=True):
        measured, case = float(orders(errors, betas)), f"backward heat, s = {label}"
        report.compare("order", case, predicted=1, measured=measured, tolerance=0.05 * loose)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.UnresolvedWarning)
        late = mf.solve(mf.Transformer(sa(512.0, 2)), start, (0, LATE), t_eval=[LATE], rtol=RTOL)
    ended = late.status == "unresolved"
    report.compare(
        "unresolved", f"beta = 512, s < {LATE}", predicted=1, measured=ended, tolerance=0
    )
    return found


# The figure ---------------------------------------------------------------------------------


def draw(forward: dict, backward: dict, path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.4), dpi=200, layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    for i, (name, place) in enumerate(forward):
        betas, errors, rests = forward[name, place]
        style = {"color": f"C{i % 3}", "marker": "o" if place == "circle" else "^", "ms": 4}
        left.loglog(
            betas, errors, **style, label=f"{name}, ${place}$" if i > 2 else f"{name}, {place}"
        )
        left.loglog(betas, rests, **style, ls=":", mfc="none")
    left.set(xlabel=r"$\beta$", ylabel="largest error of a coefficient", ylim=(3e-7, None))
    left.set(title="$V = -1$: to the limit, and with $\\mu_1$ (dotted)")
    left.legend(fontsize=7)
    betas, labels = backward["betas"], (f"{STOP:g}", r"0.16/\sqrt{\beta}", r"1/\beta")
    for i, label in enumerate(labels):
        middle.loglog(
            betas, backward["away"][:, i, 0], "os^"[i] + "-", ms=4, label=f"$s = {label}$"
        )
    middle.set(xlabel=r"$\beta$", ylabel="relative error", title="$V = 1$, SA: to backward heat")
    middle.legend(fontsize=7)
    for ax, shown in ((left, forward["SA", "circle"][0]), (middle, betas)):
        ax.set_xticks(shown, [f"{beta:g}" for beta in shown])
        ax.xaxis.minorticks_off()
    right.semilogy(betas, backward["parted"], "o", ms=4, label="measured")
    right.semilogy(betas, SEED * np.exp(backward["known"]), "k:", label=r"$e^{s\,\max l^2\rho_l}$")
    right.set(xlabel=r"$\beta$", title=f"{SEED:g} of the fastest degree, $s = {STOP:g}$")
    right.legend(fontsize=7)
    figure.savefig(path)


def main() -> int:
    arguments = command_line(__doc__, "smaller beta", "where to draw errors and densities")
    report, quick = Report(["what", "case"], digits=6), arguments.quick
    forward = check_forward(report, quick)
    check_rates(report, quick)
    backward = check_backward(report, quick)
    if arguments.figure:
        with theme.style():
            draw(forward, backward, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
