"""Claim: for long contexts attention has a phase transition at beta_n = log n/(1 - rho).

The output of one attention layer, without the residual, for n tokens with inner products rho and
beta_n = gamma log n: the inner product of two outputs tends to 1, 4 rho/(1 + 3 rho), rho for
gamma (1 - rho) < 1, = 1, > 1.

1. `attend` of equiangular tokens: 1 - D^2 (1 - rho)/(D^2 + (1 - D^2) s) at finite n, and printed
   values. Asked: 1e-13; all printed digits.
2. The limits are approached like n^{-2 (1 - gamma (1 - rho))} below the transition and like
   n^{-(gamma (1 - rho) - 1)} above; in the critical window gamma = (1 + c/log n)/(1 - rho) the
   limit is that of D = 1/(1 + e^{-c}), s = rho. Asked: exponents to 1e-3; all printed digits.
3. Arrays of equiangular tokens, n = 64 to 2048 (4096 without --quick). Asked: 1e-11.
4. Arrays of random tokens with <x_i, x_j> = rho + O(d^{-1/2}), d = 512, n = 64 to 16384: the window
   is moved by lambda^2/2d in c, lambda = beta (1 - rho). Asked: 0.1/n + 3e-4.
5. Independent uniform keys on S^2 and S^4, n = 64 to 16384: with beta = n^{2/(d-1)} the sum of the
   squares of n weights, and beta (1 - <q, A>) for the answer A to a query q, have limits; beta^0.5
   spreads the weights over many keys, beta^1.25 puts them on one. Asked: 4.5 standard errors of
   400 queries from the law at finite n; the law at n = 10^8 to 1e-4 of that at n = 10^10.

    python validation/long_context.py [--quick] [--figure FILE.png]    # 180 s, 20 s quick

Exit code 1 on failure.

References: Chen, Lin, Polyanskiy and Rigollet, arXiv:2510.05554 (1, 2); arXiv:2605.08505 (5).
"""

import argparse
import sys

import numpy as np
from _long_contexts import answered, answered_at_random, keys
from _report import Report
from matplotlib.figure import Figure

import meanfield as mf
from meanfield.plotting import theme

RHO, DIMENSION, QUERIES = 0.5, 512, 400
SIZES = (64, 256, 1024, 4096, 16384)
OFFSETS = (-2, -1, 0, 1, 2)
WINDOW = (0.98598974, 0.93254919, 0.8, 0.65170073, 0.56312537)
PRINTED = {  # (gamma, n): the inner product of two outputs for rho = 1/2
    (2, 1e2): 0.80279678,
    (2, 1e4): 0.80002800,
    (1.5, 1e2): 0.94836526,
    (1.5, 1e4): 0.99181886,
    (1.5, 1e8): 0.99990198,
    (3, 1e2): 0.54798632,
    (3, 1e4): 0.50497550,
}


def outputs(n, beta) -> mf.Equiangular:
    """The outputs for n equiangular tokens."""
    return mf.attend(mf.SA(beta), mf.Equiangular(n, RHO))


def closed_form(report: Report) -> None:
    for (gamma, n), known in PRINTED.items():
        beta = mf.scalings.logarithmic(n, gamma)
        label, found = f"gamma = {gamma}, n = {n:g}", outputs(n, beta).rho
        report.compare("printed", label, predicted=known, measured=found, tolerance=6e-9)
        exact = answered(n, beta, RHO)
        report.compare("exact", label, predicted=exact, measured=found, tolerance=1e-13)


def limits(report: Report) -> None:
    for gamma, sizes in ((1.4, (60, 80)), (1.8, (60, 80)), (2.4, (20, 30)), (3, (12, 16))):
        n = 10.0 ** np.array(sizes)
        end = outputs(n, mf.scalings.logarithmic(n, gamma))
        off = end.log_gap if gamma < 2 else np.log(end.rho - RHO)
        slope = float(np.diff(off)[0] / np.diff(np.log(n))[0])
        excess = gamma * (1 - RHO) - 1
        numbers = {"predicted": 2 * excess if gamma < 2 else -excess, "measured": slope}
        report.compare("exponent", f"gamma = {gamma}", **numbers, tolerance=1e-3)
    for c, known in zip(OFFSETS, WINDOW, strict=True):
        beta = mf.scalings.logarithmic(1e200, 1 / (1 - RHO), c / (1 - RHO))
        numbers = {"predicted": known, "measured": outputs(1e200, beta).rho, "tolerance": 6e-9}
        report.compare("window", f"c = {c}, n = 1e200", **numbers)


def mean_cosine(tokens: mf.Tokens) -> float:
    """The mean of <x_i, x_j> over pairs."""
    n = len(tokens)
    return float(((tokens.x.sum(axis=0) ** 2).sum() - n) / (n * (n - 1)))


def arrays(report: Report, quick: bool) -> None:
    for n in (64, 256, 1024, 2048) if quick else (64, 256, 1024, 2048, 4096):
        tokens = mf.Equiangular(n, RHO).to_tokens()
        for c in (-2, 0, 2):
            beta = mf.scalings.logarithmic(n, 1 / (1 - RHO), c / (1 - RHO))
            found = mean_cosine(mf.attend(mf.SA(beta), tokens))
            numbers = {"predicted": answered(n, beta, RHO), "measured": found}
            report.compare("array", f"n = {n}, c = {c}", **numbers, tolerance=1e-11)


def random_tokens(n: int, rng) -> mf.Tokens:
    """Unit vectors with inner products RHO + O(d^{-1/2})."""
    x = mf.Tokens.uniform(n, DIMENSION, rng=rng).x * np.sqrt(1 - RHO)
    x = np.concatenate([x, np.full((n, 1), np.sqrt(RHO))], axis=1)
    return mf.Tokens(x)


def random_arrays(report: Report, quick: bool) -> dict:
    """Compare them; the measured values by (n, c)."""
    found = {}
    for i, n in enumerate(SIZES[:-1] if quick else SIZES):
        tokens = random_tokens(n, i)
        for c in (-2, 0, 2) if n > 4096 else OFFSETS:
            beta = mf.scalings.logarithmic(n, 1 / (1 - RHO), c / (1 - RHO))
            found[n, c] = mean_cosine(mf.attend(mf.SA(beta), tokens))
            law, label = answered_at_random(n, beta, RHO, DIMENSION), f"n = {n}, c = {c}"
            numbers = {"predicted": law, "measured": found[n, c], "tolerance": 0.1 / n + 3e-4}
            report.compare("random array", label, **numbers)
    return found


def asked(n: int, beta: float, d: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """sum_j w_j^2 and sum_j w_j v_j of QUERIES queries among their own n keys."""
    found = np.empty((2, QUERIES))
    for k in range(QUERIES):
        v = beta * (1 - mf.Tokens.uniform(n, d, rng=rng).x[:, 0])  # the query is e_1
        w = np.exp(v.min() - v)
        w /= w.sum()
        found[:, k] = (w**2).sum(), (w * v).sum()
    return found


def independent_keys(report: Report) -> None:
    rng = np.random.default_rng(0)
    for d in (3, 5):
        for n in SIZES:
            for power in (0.5, 1.0, 1.25):
                beta = float(mf.scalings.power(n, d)) ** power
                label = f"d = {d}, n = {n}, beta = {beta:.4g}"
                measured, law = asked(n, beta, d, rng), keys(n, beta, d)
                names = ("sum of w^2", "beta (1 - <q, A>)")
                for name, exact, values in zip(names, law, measured, strict=True):
                    error = 4.5 * values.std() / np.sqrt(QUERIES)
                    numbers = {"predicted": exact, "measured": values.mean(), "tolerance": error}
                    report.compare(name, label, **numbers, random=True)
        late, later = (keys(n, float(mf.scalings.power(n, d)), d)[0] for n in (1e8, 1e10))
        label = f"d = {d}, n = 1e8"
        numbers = {"predicted": later, "measured": late, "tolerance": 1e-4}
        report.compare("limit of sum of w^2", label, **numbers)


def query_by_package(report: Report, n: int = 512, d: int = 5) -> None:
    """The answer to a query, a token without mass, as the package gives it."""
    beta, x = float(mf.scalings.power(n, d)), mf.Tokens.uniform(n + 1, d, rng=7).x
    masses = np.append(0, np.full(n, 1 / n))
    answer = mf.attend(mf.SA(beta), mf.Tokens(x, masses))
    found = beta * (1 - answer.radii[0] * (x[0] @ answer.x[0]))
    v = beta * (1 - x[1:] @ x[0])
    exact = (v * np.exp(-v)).sum() / np.exp(-v).sum()
    numbers = {"predicted": exact, "measured": found, "tolerance": 1e-11}
    report.compare("beta (1 - <q, A>)", f"attend, d = {d}, n = {n}", **numbers)


def draw(found: dict, path: str) -> None:
    """The transition at finite n, in the critical window, and for independent keys."""
    figure = Figure(figsize=(11, 3.3), dpi=200, layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    gamma, colours = np.linspace(1, 3, 201), theme.ordered_colours(5)
    for n, colour in zip((1e2, 1e4, 1e8, 1e16, 1e64), colours, strict=True):
        rho = outputs(n, mf.scalings.logarithmic(n, gamma)).rho
        left.plot(gamma, rho, color=colour, label=f"$n = 10^{{{np.log10(n):.0f}}}$")
    left.plot(2, 0.8, "ko", ms=4)
    left.set(xlabel=r"$\gamma = \beta/\log n$", ylabel=r"inner product of outputs")
    left.legend(fontsize=8)
    c = np.linspace(-3, 3, 101)
    for n, colour in zip(SIZES, colours, strict=True):
        beta = mf.scalings.logarithmic(n, 2, 2 * c)
        middle.plot(c, answered_at_random(n, beta, RHO, DIMENSION), color=colour, lw=1)
        points = [(k, value) for (size, k), value in found.items() if size == n]
        if points:
            middle.plot(*zip(*points, strict=True), "o", ms=4, color=colour, label=f"$n = {n}$")
    middle.plot(c, outputs(1e200, mf.scalings.logarithmic(1e200, 2, 2 * c)).rho, "k--", lw=1)
    middle.set(xlabel=r"$c = \beta(1 - \rho) - \log n$", title=f"random tokens, $d = {DIMENSION}$")
    middle.legend(fontsize=8)
    factors = np.geomspace(1e-2, 30, 21)
    for n, colour in zip((64, 1024, 16384), colours[::2], strict=True):
        shares = [keys(n, factor * n, 3)[0] for factor in factors]
        right.semilogx(factors, shares, color=colour, label=f"$n = {n}$")
    right.set(xlabel=r"$\beta/n$", ylabel=r"$E \sum_j w_j^2$", title="independent keys on $S^2$")
    right.legend(fontsize=8)
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer tokens")
    parser.add_argument("--figure", metavar="FILE", help="where to draw the transitions")
    arguments = parser.parse_args()
    report = Report(["what", "case"])
    closed_form(report)
    limits(report)
    arrays(report, arguments.quick)
    found = random_arrays(report, arguments.quick)
    independent_keys(report)
    query_by_package(report)
    if arguments.figure:
        with theme.style():
            draw(found, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
