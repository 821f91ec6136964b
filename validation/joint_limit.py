"""Claim: n tokens have the velocities of large beta only if n is much larger than beta^((d+1)/2).

In the limits of large beta SA moves a density by beta v = grad log mu (V = 1) in the time
s = t/beta. For n independent tokens the kernel sees about n beta^(-(d-1)/2) of them, and the
gradient of what it sees is noise. With rho_l = lambda_l/lambda_0 and Lambda_l = l(l+d-2) the mean
square of the error of beta v is, for any positive mu and n >> beta^((d-1)/2),

    N/n,  N = sum_l dim(H_l) Lambda_l rho_l^2 = (d-1) beta lambda_1(2 beta)/(2 lambda_0(beta)^2)
            ~ c_d beta^((d+1)/2),  c_2 = sqrt(pi)/2,  c_3 = 1 .

Linearised about the uniform density a degree l of the noise decays (V = -1) or grows (V = 1) like
exp(-+r_l t), r_l = Lambda_l rho_l/beta. So beta times the displacement by noise has the mean square

    (1/n) sum_l dim(H_l) Lambda_l rho_l^2 ((1 - e^(-+r_l t))/(+-r_l))^2 .

1. Velocities of n = 500 to 8000 tokens from a von Mises-Fisher law of concentration 1/2 at
   beta = n^a, a (d+1)/2 = p: their error against the velocity of the density, known in closed
   form, has the mean square N/n. Asked: 4.5 standard errors, and twice beta^((d-1)/2)/n + 1/beta,
   relative. d = 2, p = 1/2, 1, 3/2; d = 3, p = 1/2, 3/4, 1.
2. Exponents of n of its root: (p - 1)/2, so it falls only for p < 1. Asked: 0.03.
3. Displacements of uniform tokens, d = 2, n = 2000, t = 1, V = -1 and 1: as predicted. So relative
   to s = 1/beta they are errors of the same order, (beta^(3/2)/n)^(1/2). Asked: 4.5 standard
   errors and 10 per cent; for the exponent of beta of the mean square 3/2 to 0.1.
4. With V = -1 the tokens' repulsion makes up for it: at s = 0.1 the displacement by noise is as
   predicted, n^(-1/2) times a number that is bounded in beta. Asked: as in 3. So positions follow
   forward heat as soon as n >> beta^((d-1)/2), velocities at the start do not. With V = 1 the noise
   has the growth of `diffusion_limits.py`.

    python validation/joint_limit.py [--quick] [--figure FILE.png]    # 65 s, 18 s quick

--quick has fewer replicas and twice the tolerances of exponents. Exit code 1 on failure.

References: Bruno, Pasqualotto and Agazzi, arXiv:2509.25040 (beta grows with n).
"""

import sys

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf
from meanfield.plotting import theme
from meanfield.spaces.contract import dimension_of_harmonics
from meanfield.spaces.kernels import exponential_multipliers

CONCENTRATION = 0.5
SIZES = (500, 2000, 8000)
POWERS = {2: (0.5, 1.0, 1.5), 3: (0.5, 0.75, 1.0)}  # p
BETAS = (16.0, 32.0, 64.0, 128.0)
TOKENS, LATE = 2000, 0.1
LAWS = {
    2: mf.Circle(32).von_mises(0.0, CONCENTRATION),
    3: mf.Sphere(24).von_mises_fisher((1.0, 0.0, 0.0), CONCENTRATION),
}


def noise(beta: float, d: int) -> float:
    """N."""
    top, bottom = exponential_multipliers(2 * beta, 1, d)[1], exponential_multipliers(beta, 0, d)[0]
    return float((d - 1) * beta * top / (2 * bottom**2))


def displacement(beta: float, t: float, V: float, d: int = 2) -> float:
    """n times the mean square of beta times the displacement by noise at t."""
    degree = int(8 * np.sqrt(beta)) + 40
    l = np.arange(1, degree + 1)
    rho = exponential_multipliers(beta, degree, d)
    rho, level = rho[1:] / rho[0], l * (l + d - 2)
    modes = np.array([dimension_of_harmonics(int(k), d) for k in l])
    rate = V * level * rho / beta
    return float((modes * level * rho**2 * (np.expm1(rate * t) / rate) ** 2).sum())


def slope(x, y) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


# Velocities ---------------------------------------------------------------------------------


def squares(beta: float, n: int, d: int, rng: np.random.Generator) -> float:
    """Mean square of beta (v[tokens] - v[density]), one sample of tokens."""
    pole, tokens = np.eye(d)[0], LAWS[d].sample(n, rng=rng)
    x, answer = tokens.x, mf.attend(mf.SA(beta), tokens)
    A = answer.radii[:, None] * answer.x
    r = np.linalg.norm(beta * x + CONCENTRATION * pole, axis=1)
    first = exponential_multipliers(r, 1, d)  # K * mu is lambda_0(r), up to a constant
    known = (first[:, 1] / first[:, 0] / r)[:, None] * CONCENTRATION * pole
    away = beta * (A - known)
    across = away - (away * x).sum(axis=1, keepdims=True) * x
    return float((across**2).sum(axis=1).mean())


def check_velocities(report: Report, sizes: tuple, count: int, loose: int) -> dict:
    found = {}
    for d, powers in POWERS.items():

        def at(power: float, n: int, rng: np.random.Generator, d=d) -> float:
            return n * squares(n ** (2 * power / (d + 1)), n, d, rng)

        samples = mf.sweep(at, {"power": powers, "n": sizes}, replicas=count, rng=d)["value"].values
        for power, rows in zip(powers, samples, strict=True):
            measured = []
            for n, values in zip(sizes, rows, strict=True):
                beta = n ** (2 * power / (d + 1))
                law, error = noise(beta, d), values.std(ddof=1) / np.sqrt(count)
                allowed = 4.5 * error + 2 * law * (beta ** ((d - 1) / 2) / n + 1 / beta)
                case = f"d = {d}, n = {n}, beta = {beta:.4g}"
                options = {"predicted": law, "measured": values.mean(), "random": True}
                report.compare("n * mean square", case, **options, tolerance=allowed)
                measured.append(np.sqrt(values.mean() / n))
            case, predicted = f"d = {d}, beta = n^{2 * power / (d + 1):.3g}", (power - 1) / 2
            options = {"predicted": predicted, "measured": slope(sizes, measured)}
            report.compare("exponent of n", case, **options, tolerance=0.03 * loose)
            found[d, power] = np.array(sizes, dtype=float), measured
    return found


# Displacements ------------------------------------------------------------------------------


def moves(beta: float, t: float, V: float, replicas: int) -> np.ndarray:
    """n times the mean square of beta times displacements, of each replica."""
    rng = np.random.default_rng(round(beta))
    start = mf.Tokens.uniform(TOKENS, 2, rng=rng, shape=replicas)
    drift = mf.SA(beta) if V > 0 else -mf.SA(beta)
    run = successful(mf.solve(mf.Transformer(drift), start, (0, t), t_eval=[t], rtol=1e-6))
    angles = [np.arctan2(tokens.x[..., 1], tokens.x[..., 0]) for tokens in (start, run.final)]
    away = (angles[1] - angles[0] + np.pi) % (2 * np.pi) - np.pi
    return TOKENS * beta**2 * (away**2).mean(axis=-1)


def check_displacements(report: Report, replicas: int, loose: int) -> dict:
    found: dict = {}
    for name, V, time in (
        ("V = -1, t = 1", -1.0, lambda beta: 1.0),
        ("V = 1, t = 1", 1.0, lambda beta: 1.0),
        (f"V = -1, s = {LATE}", -1.0, lambda beta: LATE * beta),
    ):
        measured = []
        for beta in BETAS:
            values = moves(beta, time(beta), V, replicas)
            law, error = displacement(beta, time(beta), V), values.std(ddof=1) / np.sqrt(replicas)
            options = {"predicted": law, "measured": values.mean(), "random": True}
            case = f"{name}, beta = {beta:g}"
            report.compare("n (beta * move)^2", case, **options, tolerance=4.5 * error + 0.1 * law)
            measured.append(values.mean())
        if "t =" in name:
            options = {"predicted": 1.5, "measured": slope(BETAS, measured)}
            report.compare("exponent of beta", name, **options, tolerance=0.1 * loose)
        found[name] = measured
    return found


# The figure ---------------------------------------------------------------------------------


def draw(velocities: dict, moved: dict, path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.3), dpi=200, layout="constrained")
    left, right = figure.subplots(1, 2)
    for (d, power), (sizes, errors) in velocities.items():
        marker = "os^"[POWERS[d].index(power)]
        left.loglog(sizes ** (1 - power), errors, marker, color=f"C{d - 2}", ms=5)
    span = np.geomspace(5e-3, 200, 20)
    for d, c in ((2, np.sqrt(np.pi) / 2), (3, 1.0)):
        left.loglog(span, np.sqrt(c / span), f"C{d - 2}-", lw=0.8, label=f"$d = {d}$")
    left.set(xlabel=r"$n/\beta^{(d+1)/2}$", ylabel=r"error of $\beta v$", title="velocities")
    left.legend(fontsize=8)
    for i, (name, values) in enumerate(moved.items()):
        late = "s =" in name
        size = np.sqrt(np.array(values) / TOKENS) / (np.array(BETAS) * LATE if late else 1)
        right.loglog(BETAS, size, "o^s"[i] + "-", color=f"C{i}", ms=4, label=f"${name}$")
    right.set(xlabel=r"$\beta$", ylabel="move by noise, divided by $s$")
    right.set_xticks(BETAS, [f"{beta:g}" for beta in BETAS])
    right.set_yticks((0.1, 0.2, 0.5, 1.0), ("0.1", "0.2", "0.5", "1"))
    right.minorticks_off()
    right.set(title=f"displacements, $n = {TOKENS}$")
    right.legend(fontsize=8)
    figure.savefig(path)


def main() -> int:
    arguments = command_line(__doc__, "fewer replicas", "where to draw errors and displacements")
    report, loose = Report(["what", "case"], digits=6), 2 if arguments.quick else 1
    velocities = check_velocities(report, SIZES, 24 if arguments.quick else 48, loose)
    moved = check_displacements(report, 8 if arguments.quick else 24, loose)
    if arguments.figure:
        with theme.style():
            draw(velocities, moved, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
