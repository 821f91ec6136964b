"""Claim: tokens in a cone contract at the rate 2/s, s = 1, r, 1/alpha or sqrt(t + 1).

For Q = K = V = 1 and tokens with <x_i, x_j> >= 1 - delta, Var = (1/n) sum_i |x_i - mean|^2 falls as
Var' = -Theta(Var/s), with s = 1 (Post-LN), t (Pre-, Mix- and Peri-LN, by r ~ t), 1/alpha(t) (nGPT)
and sqrt(t + 1) (square-root scaling).

1. Eight tokens of S^3 near a point, delta = 1e-5, beta = 1: -(s/2) d log Var/dt from t = 1 to 4,
   s = r where radii grow, alpha = 1/(1 + t). Asked: 1 to 10 delta.
2. Pre-LN: radii r_i(t) >= (1 - delta) t, of the tokens of 1 and of random ones in a cone with
   delta = 0.3. Asked: always.
3. The output of attention on n independent uniform tokens of S^(d-1), where e^{sqrt d} >= n log n
   >= d, is at most C (sqrt(log n/n) + log n/d): the largest length of the n outputs over that
   bound, n = 256 to 16384 (4096 with --quick). Asked: C = 1.

    python validation/normalisation_theorems.py [--quick]    # 11 s, 2 s quick

Exit code 1 on failure. Reference: Karagodin, Geshkovski, Polyanskiy and Rigollet, arXiv:2510.22026,
theorems 4.2 (3) and 4.3 (1, 2).
"""

import sys

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf

SCHEMES = {
    "Post-LN": mf.PostLN(),
    "Pre-LN": mf.PreLN(),
    "Mix-LN": mf.MixLN(0.5),
    "Peri-LN": mf.PeriLN(),
    "nGPT": mf.NGPT(lambda t: 1 / (1 + t)),
    "square-root scaling": mf.SqrtScaling(),
}
SIZES = {256: 64, 1024: 128, 4096: 256, 16384: 512}  # n: d


def in_a_cone(n: int, d: int, delta: float, rng) -> mf.Tokens:
    """Tokens with inner products >= 1 - delta."""
    x = np.eye(d)[0] + np.sqrt(delta / 2) * mf.Tokens.uniform(n, d, rng=rng).x
    return mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))


def variance(tokens: mf.Tokens) -> float:
    """(1/n) sum_i |x_i - mean|^2."""
    return float(((tokens.x - tokens.x.mean(axis=0)) ** 2).sum(axis=1).mean())


def scale(name: str, t: float, tokens: mf.Tokens) -> float:
    """s at the time t."""
    if tokens.radii is not None and (name != "Mix-LN" or t > 0.5):
        return float(tokens.radii.mean())
    return {"nGPT": 1 + t, "square-root scaling": np.sqrt(t + 1)}.get(name, 1.0)


def moved(tokens: mf.Tokens, name: str, times) -> mf.Solution:
    """The run under SA(1) at these times."""
    model = mf.Transformer(mf.SA(1.0), normalisation=SCHEMES[name])
    return successful(mf.solve(model, tokens, (0, times[-1]), t_eval=times, rtol=1e-12))


def contraction(report: Report, delta: float = 1e-5, h: float = 1e-3) -> None:
    tokens = in_a_cone(8, 4, delta, 0)
    for name in SCHEMES:
        for t in (1.0, 2.0, 4.0):
            before, now, after = moved(tokens, name, [t - h, t, t + h])
            rate = np.log(variance(after) / variance(before)) / (2 * h)
            numbers = {"predicted": 1, "measured": -rate * scale(name, t, now) / 2}
            report.compare("rate s/2", f"{name}, t = {t:g}", **numbers, tolerance=10 * delta)


def radii(report: Report) -> None:
    times = np.linspace(0, 20, 81)
    for delta in (1e-5, 0.3):
        run = moved(in_a_cone(32, 16, delta, 1), "Pre-LN", times)
        lack = [(1 - delta) * t - state.radii.min() for t, state in zip(times, run, strict=True)]
        numbers = {"predicted": 0, "measured": max(0, *lack), "tolerance": 0}
        report.compare("(1 - delta) t - min r", f"delta = {delta:g}", **numbers)


def outputs(report: Report, sizes: list[int]) -> None:
    for n in sizes:
        d = SIZES[n]
        lengths = mf.attend(mf.SA(1.0), mf.Tokens.uniform(n, d, rng=n)).radii
        share = lengths.max() / (np.sqrt(np.log(n) / n) + np.log(n) / d)
        numbers = {"predicted": 0, "measured": max(0, share - 1), "tolerance": 0}
        report.compare("excess over C = 1", f"n = {n}, d = {d}, C = {share:.3f}", **numbers)


def main() -> int:
    quick = command_line(__doc__, "fewer tokens").quick
    report = Report(["what", "case"])
    contraction(report)
    radii(report)
    outputs(report, [n for n in SIZES if not quick or n <= 4096])
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
