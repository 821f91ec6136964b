"""Claim: random networks have a phase of order, where rank collapses, and one of chaos.

Layers with independent random weights: attention with values of length a, its logits Gaussian of
variance s^2, and a perceptron f F, F(x) = sqrt(2/m) W_2 tanh(g W_1 x) of m neurons, both from
normalised tokens. With z ~ N(0, 1),

    q = 2 E tanh(g z)^2,    chi = 2 g^2 E tanh'(g z)^2,    c(rho) = 2 E tanh(g u) tanh(g v)

for E uv = rho. Attention adds one vector to all tokens that are nearly the same, the perceptron
parts them. So eps = 1 - rho, the mean over pairs, is multiplied in a layer by

    Post-LN   chi* = (1 + f^2 chi)/((1 + f^2 q)(1 + a^2))
    Pre-LN    1 + (f^2 chi - f^2 q - a^2)/r^2,    r^2 grows by a^2 + f^2 q:  eps ~ depth^p,
              p = f^2 chi/(a^2 + f^2 q) - 1

1. Order, chi* < 1: tokens collapse to rank one; chaos, chi* > 1: they do not. The factor of a layer
   near rank one, n = 32, d = 128, m = 256, for g = 0.5 to 6, both sides of the transition, f = 1.
   Asked of the mean logarithm over layers: 4.5 standard errors and 2/d.
2. The transition a_c^2 = (1 + f^2 chi)/(1 + f^2 q) - 1 is where the measured factor is 1, between
   0.8 and 1.2 a_c: 4.5 standard errors and 2/d. It does not depend on the logits: s = 0, 1, 3. With
   ReLU chi = q, there is no chaos: the factor is 1/(1 + a^2). Without attention it is at chi = q.
3. In chaos rho follows, from nearly equal and from independent tokens,

       rho <- (rho + a^2 p)/(1 + a^2 p),  p = rho + (1 - rho)/n,    rho <- (rho + f^2 c)/(1 + f^2 q)

   (s = 0) to the same fixed point rho* < 1. Asked of the mean of rho after 16 and 48 layers: 4.5
   standard errors and 3/d.
4. Pre-LN: exponents p of both signs, over the layers 8 to 64. Asked: 4.5 standard errors and
   0.05. So order and chaos are separated at a^2 = f^2 (chi - q), which is larger than a_c^2.

    python validation/signal_propagation.py [--quick] [--figure FILE.png]    # 45 s, 12 s quick

--quick: fewer networks and points. Exit code 1 on failure. References: Cowsik, Nebabu, Qi and
Ganguli, arXiv:2403.02579, and Noci et al. (NeurIPS 2022), cited by Rigollet, arXiv:2512.01868,
section 6; formulas derived here.
"""

import sys
from functools import cache

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf
from meanfield.plotting import theme

N, D, M, NEAR, LAYERS = 32, 128, 256, 1e-8, 12
GAINS = (0.5, 1.0, 2.0, 3.0, 6.0)
NODES = np.linspace(-9, 9, 3601)  # the trapezoidal rule under exp(-z^2/2)
WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
TERMS = 200


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


# Mean field of a layer ----------------------------------------------------------------------


def moments(g: float) -> tuple[float, float]:
    """q and chi."""
    value = np.tanh(g * NODES)
    return 2 * WEIGHTS @ value**2, 2 * g**2 * WEIGHTS @ (1 - value**2) ** 2


@cache
def series(g: float) -> np.ndarray:
    """2 E[tanh(g z) He_k(z)]^2/k!, k = 0, 1, ...; the last one stands for all that are left out."""
    value, last, now, found = np.tanh(g * NODES), np.zeros_like(NODES), np.ones_like(NODES), []
    for k in range(TERMS):
        found.append(2 * float(WEIGHTS @ (value * now)) ** 2)
        last, now = now, (NODES * now - np.sqrt(k) * last) / np.sqrt(k + 1)
    found.append(moments(g)[0] - sum(found))
    return np.array(found)


def covariance(g: float, rho: float) -> float:
    """c(rho)."""
    return float(np.polynomial.polynomial.polyval(rho, series(g)))


def factor(a: float, f: float, g: float) -> float:
    """chi*."""
    q, chi = moments(g)
    return (1 + f**2 * chi) / (1 + f**2 * q) / (1 + a**2)


def transition(f: float, g: float) -> float:
    """a_c."""
    return float(np.sqrt(factor(0.0, f, g) - 1))


def recursion(a: float, f: float, g: float, rho: float, depth: int) -> float:
    """rho after `depth` layers without logits."""
    q = moments(g)[0]
    for _ in range(depth):
        shared = a**2 * (rho + (1 - rho) / N)
        after = (rho + shared) / (1 + shared)  # of attention and its norm
        rho = (after + f**2 * covariance(g, after)) / (1 + f**2 * q)
    return rho


def fixed_point(a: float, f: float, g: float) -> float:
    """rho*."""
    return recursion(a, f, g, 0.5, 1000)


# Random networks ----------------------------------------------------------------------------


def network(depth: int, a: float, f: float, g: float, s: float, rng, activation, scheme):
    """A Transformer of `depth` random layers, each a unit of time."""

    def layers(size: float, rows: int = D, columns: int = D):
        each = [size * rng.standard_normal((rows, columns)) for _ in range(depth)]
        return mf.PerLayer(each, duration=1.0)

    root = 1 / np.sqrt(D)
    Q, K = (layers(root), layers(root)) if s else (0.0, 0.0)
    drift = mf.Attention(Q, K, layers(a * root), beta=s * np.sqrt(D))
    forward = mf.FeedForward(
        layers(g, M), layers(f * np.sqrt(2 / M) * root, D, M), None, activation
    ) if f else None  # fmt: skip
    return mf.Transformer(drift, normalisation=scheme, feedforward=forward)


def gaps(depth, a, f, g, s=0.0, *, seed, first=NEAR, activation=np.tanh, scheme=None, keep=1):
    """1 - rho after layers, the mean over pairs; at the start it is about `first`."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((N, D))
    x = np.sqrt(1 - first) * rng.standard_normal(D) + np.sqrt(first) * x
    start = mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))
    model = network(depth, a, f, g, s, rng, activation, scheme or mf.PostLN())
    options = {"dt": 1.0, "scheme": mf.steppers.Layers, "t_eval": np.arange(0, depth + 1, keep)}
    run = successful(mf.solve(model, start, (0, depth), **options))
    return np.array([gap(tokens.x) for tokens in run])


def gap(x: np.ndarray) -> float:
    """The mean of |x_i - x_j|^2/2 over pairs."""
    away = x - x.mean(axis=0)
    return float((away**2).sum() / (len(x) - 1))


def growth(seed: int, networks: int, *parameters, **options) -> tuple[float, float]:
    """Mean and standard error of the logarithm of a layer's factor near rank one."""
    logs = []
    for rng in np.random.default_rng(seed).spawn(networks):
        found = gaps(LAYERS, *parameters, seed=rng, **options)
        logs += np.diff(np.log(found)).tolist()
    return float(np.mean(logs)), float(np.std(logs, ddof=1) / np.sqrt(len(logs)))


# Checks -------------------------------------------------------------------------------------


def compare(report: Report, what: str, case: str, known: float, found, allowed: float) -> None:
    mean, error = found
    options = {"predicted": known, "measured": mean, "random": True}
    report.compare(what, case, **options, tolerance=4.5 * error + allowed)


def check_factors(report: Report, gains, networks: int) -> dict:
    found, seed = {}, 0
    for g in gains:
        middle = transition(1.0, g) if factor(0.0, 1.0, g) > 1 else 0.5
        for a in (0.0, 0.8 * middle, 1.2 * middle):
            seed += 1
            measured = found[g, a] = growth(seed, networks, a, 1.0, g)
            case = f"g = {g:g}, a = {a:.3f}"
            compare(report, "log chi*", case, np.log(factor(a, 1.0, g)), measured, 2 / D)
    for a in (0.3, 1.0):
        measured = growth(round(10 * a), networks, a, 1.0, np.sqrt(0.5), activation=relu)
        compare(report, "log chi*", f"ReLU, a = {a:g}", -np.log1p(a**2), measured, 2 / D)
    return found


def check_transition(report: Report, networks: int) -> None:
    g = 3.0
    middle = transition(1.0, g)
    for s in (0.0, 1.0, 3.0):
        low, high = (growth(100 + round(s), networks, w * middle, 1.0, g, s) for w in (0.8, 1.2))
        slope = (low[0] - high[0]) / 0.4
        at, error = 0.8 + low[0] / slope, np.hypot(low[1], high[1]) / slope
        print(f"s = {s:g}: a_c is {at:.3f} of the law's {middle:.4f}, standard error {error:.3f}")
        compare(report, "a_c, of law", f"g = {g:g}, s = {s:g}", 1.0, (at, error), 2 / D)


def check_chaos(report: Report, cases, networks: int) -> None:
    """rho from both sides of its fixed point, after 16 and 48 layers."""
    for g, a in cases:
        print(f"g = {g:g}, a = {a:g}: rho* = {fixed_point(a, 1.0, g):.4f}")
        for first in (0.02, 1.0):
            runs = [1 - gaps(48, a, 1.0, g, seed=i, first=first, keep=16) for i in range(networks)]
            for i in (1, 3):
                ends = [run[i] for run in runs]
                measured = np.mean(ends), np.std(ends, ddof=1) / np.sqrt(networks)
                known = recursion(a, 1.0, g, 1 - first, 16 * i)
                case = f"g = {g:g}, a = {a:g}, from {1 - first:g}, layer {16 * i}"
                compare(report, "rho", case, known, measured, 3 / D)


def check_pre(report: Report, networks: int) -> None:
    for g, a in ((3.0, 0.5), (3.0, 2.5), (1.0, 1.0)):
        q, chi = moments(g)
        known = chi / (a**2 + q) - 1
        slopes = []
        for seed in range(networks):
            run = gaps(64, a, 1.0, g, seed=seed, scheme=mf.PreLN(), keep=8)
            depth = 8.0 * np.arange(1, 9) + 1 / (a**2 + q)
            slopes.append(np.polyfit(np.log(depth), np.log(run[1:]), 1)[0])
        measured = np.mean(slopes), np.std(slopes, ddof=1) / np.sqrt(networks)
        compare(report, "exponent, Pre-LN", f"g = {g:g}, a = {a:g}", known, measured, 0.05)


# The figure ---------------------------------------------------------------------------------


def draw(factors: dict, path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 3.4), dpi=200, layout="constrained")
    left, right = figure.subplots(1, 2)
    gains, widths = np.linspace(0.3, 6, 120), np.linspace(0, 2.6, 120)
    grid = np.array([[np.log(factor(a, 1.0, g)) for g in gains] for a in widths])
    drawn = left.pcolormesh(gains, widths, grid, cmap="RdBu_r", vmin=-2, vmax=2)
    figure.colorbar(drawn, ax=left, label=r"$\log\chi^*$")
    left.contour(gains, widths, grid, levels=[0], colors="k")
    pre = [np.sqrt(max(moments(g)[1] - moments(g)[0], 0)) for g in gains]
    left.plot(gains, pre, "k:", lw=1)
    for (g, a), (value, _) in factors.items():
        left.plot(g, a, "^" if value > 0 else "v", color="k", ms=5, mfc="w" if value > 0 else "k")
    left.set(xlabel="gain $g$", ylabel="size $a$ of attention", ylim=(0, 2.6))
    left.set_title("chaos (red) and order; dotted: Pre-LN", fontsize=9)
    fine = np.linspace(0.3, 6, 30)
    for i, a in enumerate((0.0, 0.5, 1.0)):
        ends = [fixed_point(a, 1.0, g) for g in fine]
        right.plot(fine, ends, color=f"C{i}", label=f"$a = {a:g}$")
    right.set(xlabel="gain $g$", ylabel=r"$\rho^*$ at large depth", title="where rank collapses")
    right.legend(fontsize=8)
    figure.savefig(path)


def main() -> int:
    arguments = command_line(__doc__, "fewer networks and points", "where to draw the phases")
    report, quick = Report(["what", "case"], digits=6), arguments.quick
    factors = check_factors(report, GAINS[1:4:2] if quick else GAINS, 4 if quick else 12)
    check_transition(report, 5 if quick else 40)
    check_chaos(report, ((6.0, 1.0),) if quick else ((6.0, 1.0), (3.0, 0.5)), 6 if quick else 24)
    check_pre(report, 4 if quick else 12)
    if arguments.figure:
        with theme.style():
            draw(factors, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
