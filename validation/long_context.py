"""Claim: for long contexts attention has a phase transition at beta_n = log n/(1 - rho).

The output of one attention layer, without the residual, for n tokens with inner products rho and
beta_n = gamma log n: the inner product of two outputs tends to 1, 4 rho/(1 + 3 rho), rho for
gamma (1 - rho) < 1, = 1, > 1.

1. `attend` of equiangular tokens, rho = 0.2, 0.5, 0.8: 1 - D^2 (1 - rho)/(D^2 + (1 - D^2) s) at
   finite n, and printed values for 0.5. Asked: 1e-13; all printed digits.
2. The limits are approached like n^{-2 (1 - gamma (1 - rho))} below the transition and like
   n^{-(gamma (1 - rho) - 1)} above; in the critical window gamma = (1 + c/log n)/(1 - rho) the
   limit is that of D = 1/(1 + e^{-c}), s = rho: printed values for rho = 0.5, 4 rho/(1 + 3 rho) for
   c = 0. Asked: exponents to 1e-3; all printed digits; 1e-12.
3. Arrays of equiangular tokens, which need d >= n: n = 64 to 4096 (1024 with --quick), c = -2, 0,
   2, and 8192, c = 0; rho = 0.2 and 0.8 up to 1024. Asked: 1e-11.
4. Arrays of random tokens with <x_i, x_j> = rho + O(d^{-1/2}), d = 512, n = 64 to 16384 (1024 with
   --quick): the window is moved by lambda^2/2d in c, lambda = beta (1 - rho). Asked: 0.1/n + 3e-4.
5. Independent uniform keys on S^2 and S^4, n = 64 to 16384 (1024 with --quick): for beta =
   n^{2/(d-1)} the sum of the squares of n weights, and beta (1 - <q, A>) for the output A of a
   query q, have limits; beta^0.5 spreads the weights over many keys, beta^1.25 puts them on one.
   Queries are tokens without mass under `attend`; keys carry eight independent Gaussian values of
   variance 1/8 beside their position, so that the squares of the outputs have the mean sum of w^2.
   Asked: 4.5 standard errors of 200 to 450 queries from the law at finite n; that law at n = 10^10
   to 2e-5 of the limit, derived for the Poisson process of keys near a query.
6. Layers one after the other with the critical beta of the first: its rho_1 = 4 rho/(1 + 3 rho) has
   gamma (1 - rho_1) = 1/(1 + 3 rho) < 1, so that the second layer is below the transition and
   1 - rho_2 ~ n^{-6 rho/(1 + 3 rho)}; above the transition, gamma (1 - rho) = 1.5, ten layers
   still return rho. Asked: exponents to 1e-3 from n = 1e60 to 1e80; 1e-12 at 1e80.

    python validation/long_context.py [--quick] [--figure FILE.png]    # 130 s, 10 s quick

Exit code 1 on failure.

References: Chen, Lin, Polyanskiy and Rigollet, arXiv:2510.05554 (1, 2); arXiv:2605.08505 (5).
"""

import sys

import numpy as np
from _long_contexts import answered, answered_at_random, keys, limit_of_keys
from _report import Report, command_line
from matplotlib.figure import Figure

import meanfield as mf
from meanfield.plotting import theme

RHO, DIMENSION, QUERIES, VALUES = 0.5, 512, 400, 8
OTHERS = (0.2, 0.8)
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


def outputs(n, beta, rho: float = RHO) -> mf.Equiangular:
    """The outputs for n equiangular tokens."""
    return mf.attend(mf.SA(beta), mf.Equiangular(n, rho))


def closed_form(report: Report) -> None:
    for (gamma, n), known in PRINTED.items():
        beta = mf.scalings.logarithmic(n, gamma)
        label, found = f"gamma = {gamma}, n = {n:g}", outputs(n, beta).rho
        report.compare("printed", label, predicted=known, measured=found, tolerance=6e-9)
        exact = answered(n, beta, RHO)
        report.compare("exact", label, predicted=exact, measured=found, tolerance=1e-13)


def other_products(report: Report) -> None:
    for rho in OTHERS:
        for n, product in ((64, 0.9), (1e4, 1.0), (1e8, 1.2)):  # gamma (1 - rho)
            beta = mf.scalings.logarithmic(n, product / (1 - rho))
            numbers = {"predicted": answered(n, beta, rho), "measured": outputs(n, beta, rho).rho}
            label = f"rho = {rho}, gamma (1 - rho) = {product}, n = {n:g}"
            report.compare("exact", label, **numbers, tolerance=1e-13)


def limits(report: Report) -> None:
    for rho in (RHO, *OTHERS):
        for excess, sizes in ((-0.3, (60, 80)), (-0.1, (60, 80)), (0.2, (20, 30)), (0.5, (12, 16))):
            n = 10.0 ** np.array(sizes)
            end = outputs(n, mf.scalings.logarithmic(n, (1 + excess) / (1 - rho)), rho)
            off = end.log_gap if excess < 0 else np.log(end.rho - rho)
            slope = float(np.diff(off)[0] / np.diff(np.log(n))[0])
            numbers = {"predicted": 2 * excess if excess < 0 else -excess, "measured": slope}
            label = f"rho = {rho}, gamma (1 - rho) = {1 + excess:g}"
            report.compare("exponent", label, **numbers, tolerance=1e-3)
        beta = mf.scalings.logarithmic(1e30, 1 / (1 - rho))
        numbers = {"predicted": 4 * rho / (1 + 3 * rho), "measured": outputs(1e30, beta, rho).rho}
        report.compare("4 rho/(1 + 3 rho)", f"rho = {rho}", **numbers, tolerance=1e-12)
    for c, known in zip(OFFSETS, WINDOW, strict=True):
        beta = mf.scalings.logarithmic(1e200, 1 / (1 - RHO), c / (1 - RHO))
        numbers = {"predicted": known, "measured": outputs(1e200, beta).rho, "tolerance": 6e-9}
        report.compare("window", f"c = {c}, n = 1e200", **numbers)


def iterated(report: Report) -> None:
    n = 10.0 ** np.array([60, 80])
    for rho in (RHO, *OTHERS):
        beta = mf.scalings.logarithmic(n, 1 / (1 - rho))
        first = outputs(n, beta, rho)
        second = mf.attend(mf.SA(beta), mf.Equiangular(n, first.rho))
        slope = float(np.diff(second.log_gap)[0] / np.diff(np.log(n))[0])
        report.compare("exponent of the second layer", f"rho = {rho}", measured=slope,
                       predicted=-6 * rho / (1 + 3 * rho), tolerance=1e-3)  # fmt: skip
        beta, state = mf.scalings.logarithmic(n, 1.5 / (1 - rho)), mf.Equiangular(n, rho)
        for _ in range(10):
            state = mf.Equiangular(n, mf.attend(mf.SA(beta), state).rho)
        report.compare("ten layers above the transition", f"rho = {rho}", predicted=rho,
                       measured=state.rho[-1], tolerance=1e-12)  # fmt: skip


def mean_cosine(tokens: mf.Tokens) -> float:
    """The mean of <x_i, x_j> over pairs."""
    n = len(tokens)
    return float(((tokens.x.sum(axis=0) ** 2).sum() - n) / (n * (n - 1)))


def arrays(report: Report, quick: bool) -> None:
    cases = [(n, RHO) for n in (64, 256, 1024) + (() if quick else (4096, 8192))]
    for n, rho in [*cases, *((n, rho) for n in (64, 1024) for rho in OTHERS)]:
        tokens = mf.Equiangular(n, rho).to_tokens()
        for c in (-2, 0, 2) if n <= 4096 else (0,):
            beta = mf.scalings.logarithmic(n, 1 / (1 - rho), c / (1 - rho))
            found = mean_cosine(mf.attend(mf.SA(beta), tokens))
            numbers = {"predicted": answered(n, beta, rho), "measured": found}
            report.compare("array", f"rho = {rho}, n = {n}, c = {c}", **numbers, tolerance=1e-11)


def random_tokens(n: int, rng) -> mf.Tokens:
    """Unit vectors with inner products RHO + O(d^{-1/2})."""
    x = mf.Tokens.uniform(n, DIMENSION, rng=rng).x * np.sqrt(1 - RHO)
    x = np.concatenate([x, np.full((n, 1), np.sqrt(RHO))], axis=1)
    return mf.Tokens(x)


def random_arrays(report: Report, quick: bool) -> dict:
    """Compare them; the measured values by (n, c)."""
    found = {}
    for i, n in enumerate(SIZES[:3] if quick else SIZES):
        tokens = random_tokens(n, i)
        for c in (-2, 0, 2) if n > 4096 else OFFSETS:
            beta = mf.scalings.logarithmic(n, 1 / (1 - RHO), c / (1 - RHO))
            found[n, c] = mean_cosine(mf.attend(mf.SA(beta), tokens))
            law, label = answered_at_random(n, beta, RHO, DIMENSION), f"n = {n}, c = {c}"
            numbers = {"predicted": law, "measured": found[n, c], "tolerance": 0.1 / n + 3e-4}
            report.compare("random array", label, **numbers)
    return found


def asked(n: int, beta: float, d: int, rng) -> tuple[np.ndarray, np.ndarray]:
    """Estimates of sum_j w_j^2 and sum_j w_j v_j, of queries among n keys; by `attend`.

    Of each set of keys few queries are asked, which are nearly independent.
    """
    queries = min(n // 16, QUERIES // 2)
    sets = 1 if n == SIZES[-1] else -(-QUERIES // queries)
    x = mf.Tokens.uniform(n + queries, d, rng=rng, shape=(sets,)).x
    values = rng.standard_normal((sets, n + queries, VALUES)) / np.sqrt(VALUES)
    masses = np.append(np.full(n, 1 / n), np.zeros(queries))
    place = np.eye(d, d + VALUES)  # attention sees it alone
    tokens = mf.Tokens(np.concatenate([x, values], axis=2), masses, on_sphere=False)
    answers = mf.attend(mf.Attention(place, place, beta=beta), tokens).x[:, n:]
    near = (answers[..., :d] * x[:, n:]).sum(axis=-1).ravel()
    return (answers[..., d:] ** 2).sum(axis=-1).ravel(), beta * (1 - near)


def independent_keys(report: Report, quick: bool) -> dict:
    """Compare them; the means and errors of sum_j w_j^2 by (d, n, beta)."""
    rng, found = np.random.default_rng(0), {}
    for d in (3, 5):
        for n in SIZES[:3] if quick else SIZES:
            for power in (0.5, 1.0, 1.25):
                beta = float(mf.scalings.power(n, d)) ** power
                label = f"d = {d}, n = {n}, beta = {beta:.4g}"
                measured, law = asked(n, beta, d, rng), keys(n, beta, d)
                names = ("sum of w^2", "beta (1 - <q, A>)")
                for name, exact, values in zip(names, law, measured, strict=True):
                    error = values.std() / np.sqrt(values.size)
                    numbers = {"predicted": exact, "measured": values.mean()}
                    report.compare(name, label, **numbers, tolerance=4.5 * error, random=True)
                squares = measured[0]
                found[d, n, beta] = squares.mean(), squares.std() / np.sqrt(squares.size)
        late = keys(1e10, float(mf.scalings.power(1e10, d)), d)
        for name, exact, value in zip(names, limit_of_keys(d), late, strict=True):
            numbers = {"predicted": exact, "measured": value, "tolerance": 2e-5}
            report.compare(f"limit of {name}", f"d = {d}, n = 1e10", **numbers)
    return found


def draw(found: dict, shares: dict, path: str) -> None:
    """The transition at finite n, in the critical window, and for independent keys."""
    figure = Figure(figsize=(12, 3.5), dpi=200, layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    gamma = np.linspace(1, 3, 201)
    sizes = (1e2, 1e4, 1e8, 1e16, 1e64)
    for n, colour in zip(sizes, theme.ordered_colours(5), strict=True):
        rho = outputs(n, mf.scalings.logarithmic(n, gamma)).rho
        left.plot(gamma, rho, color=colour, label=f"$n = 10^{{{np.log10(n):.0f}}}$")
    left.plot(2, 0.8, "ko", ms=4, label=r"$4\rho/(1 + 3\rho)$")
    left.set(xlabel=r"$\gamma = \beta/\log n$", ylabel="inner product of outputs")
    left.set_title(rf"equiangular tokens, $\rho = {RHO}$")
    _draw_window(middle, found)
    factors, marks = np.geomspace(3e-3, 30, 25), "os^Dv"
    for d, colour in zip((3, 5), theme.PALETTE, strict=False):
        n = 1e6
        law = [keys(n, f * float(mf.scalings.power(n, d)), d)[0] for f in factors]
        right.semilogx(factors, law, color=colour, label=f"$d = {d}$, $n = 10^6$, law")
        for n, mark in zip(SIZES, marks, strict=True):
            points = [(k[2], *value) for k, value in shares.items() if k[:2] == (d, n)]
            for beta, mean, error in points:
                place, label = beta / float(mf.scalings.power(n, d)), f"$n = {n}$"
                style = {"color": colour, "ms": 4, "lw": 1, "mfc": "none"}
                named = label if d == 3 and beta == points[0][0] else None
                right.errorbar(place, mean, error, fmt=mark, label=named, **style)
    right.set(xlabel=r"$\beta\,n^{-2/(d-1)}$", ylabel=r"$E \sum_j w_j^2$")
    right.set_title("independent keys on $S^{d-1}$")
    for ax in (left, middle, right):
        ax.legend(fontsize=7)
    figure.savefig(path)


def _draw_window(ax, found: dict) -> None:
    """Random tokens in the critical window, by how much they differ from the limit."""

    def limit(c):
        return outputs(1e200, mf.scalings.logarithmic(1e200, 2, 2 * np.asarray(c))).rho

    c, shown = np.linspace(-3, 3, 101), sorted({n for n, _ in found})
    for n, colour in zip(shown, theme.ordered_colours(len(shown)), strict=True):
        law = answered_at_random(n, mf.scalings.logarithmic(n, 2, 2 * c), RHO, DIMENSION)
        ax.plot(c, law - limit(c), color=colour, lw=1)
        places = [k for size, k in found if size == n]
        values = np.array([found[n, k] for k in places])
        ax.plot(places, values - limit(places), "o", ms=4, color=colour, label=f"$n = {n}$")
    ax.set(xlabel=r"$c = \beta(1 - \rho) - \log n$", ylabel=r"difference from the limit")
    ax.set_title(rf"random tokens, $d = {DIMENSION}$: measured (dots), law")


def main() -> int:
    arguments = command_line(__doc__, "fewer tokens", "where to draw the transitions")
    report = Report(["what", "case"])
    closed_form(report)
    other_products(report)
    limits(report)
    iterated(report)
    arrays(report, arguments.quick)
    found = random_arrays(report, arguments.quick)
    shares = independent_keys(report, arguments.quick)
    if arguments.figure:
        with theme.style():
            draw(found, shares, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
