"""Claim: tokens that see what comes before are summed by modes as by pairs, and in linear time.

Transformer(drift, causal=...): token i is pulled by the tokens j <= i.

1. Velocities by modes against all pairs, n = 20 000 (4000 where the kernel is not exponential), on
   the circle and S^2, from tokens in clusters: SA, USA, Kuramoto and a polynomial interaction,
   "mean" and "sum". Asked: 1e-10 of the largest velocity that the mass seen by a token can exert.
2. Softmax attention with matrices, causal=True, moves tokens as SA does: 1e-10 after t = 1.
3. If all tokens have one law at first, then under SA, and USA with "mean", those of every place
   have the law of the unmasked density: without noise and with kappa = 4, 10^5 tokens on the
   circle, means of cos and sin over the third and the last quarter of them at t = 0.6. Asked: 4.5
   standard errors.
4. The time of a velocity on the circle grows like n^p from 10^4 to 10^6 tokens. Asked: p = 1 to
   0.1. For 10^5 tokens all pairs take at least 20 times as long (processor time, one thread).

    python validation/causal_tokens.py [--quick]    # 17 s, 9 s quick

--quick has fewer tokens in 1, and leaves out 4. Exit code 1 on failure.
"""

import sys
import time

import numpy as np
from _report import Report, command_line, successful

import meanfield as mf
from meanfield.engines import Direct, Modes

TOKENS, T_END, STEP, ERRORS = 100_000, 0.6, 0.05, 4.5
CUBIC = mf.Interaction(lambda t: t + t**3, "cubic", derivative=lambda t: 1 + 3 * t**2)
DRIFTS = {"SA(4)": mf.SA(4.0), "SA(50)": mf.SA(50.0), "USA(4)": mf.USA(4.0)}
DRIFTS |= {"Kuramoto": mf.Kuramoto(), "t + t^3": CUBIC}
SPACES = {2: "circle", 3: "S^2"}


def main() -> int:
    quick = command_line(__doc__).quick
    report = Report(("case", "model", "what"))
    for d in SPACES:
        for name, drift in DRIFTS.items():
            n = 4000 if quick or drift.exponent is None else 20_000
            check_modes(report, d, name, drift, n)
        check_attention(report, d)
    for kappa in (np.inf, 4.0):
        check_law(report, mf.Transformer(mf.SA(2.0), kappa, causal=True))
        check_law(report, mf.Transformer(mf.USA(1.0), kappa, causal="mean"))
    if not quick:
        check_times(report)
    return report.verdict()


def check_modes(report: Report, d: int, name: str, drift: mf.ZonalDrift, n: int) -> None:
    rng = np.random.default_rng(d)
    x = rng.standard_normal((5, d))[rng.integers(5, size=n)] + 0.3 * rng.standard_normal((n, d))
    x /= np.linalg.norm(x, axis=1)[:, None]
    masses = rng.random(n) + 0.1
    masses /= masses.sum()
    t = np.linspace(-1, 1, 4001)[:, None]
    strongest = (np.abs(drift.slope(t) / drift.weight(t)) * np.sqrt(1 - t**2)).max()
    for causal in (mf.Causal("mean"), mf.Causal("sum")):
        one, two = (
            kind.build(drift, n, d, causal).velocity(x[None], masses[None])[0]
            for kind in (Modes(), Direct())
        )
        seen = np.ones(n) if causal.is_mean(drift) else masses.cumsum()
        error = (np.linalg.norm(one - two, axis=1) / seen).max() / strongest
        case = f"{SPACES[d]}, n = {n}"
        what = f'"{causal.divide}"'
        report.compare(case, name, what, predicted=0, measured=error, tolerance=1e-10)


def check_attention(report: Report, d: int) -> None:
    start = mf.Tokens.uniform(300, d, rng=1)
    one, two = (
        successful(mf.solve(model, start, (0, 1), rtol=1e-11, t_eval=[1])).final.x
        for model in (
            mf.Transformer(mf.SA(3.0), causal=True),
            mf.Transformer(mf.Attention(beta=3.0, causal=True)),
        )
    )
    error = np.abs(one - two).max()
    report.compare(
        f"{SPACES[d]}, n = 300", "SA(3)", "Attention", predicted=0, measured=error, tolerance=1e-10
    )


def check_law(report: Report, model: mf.Transformer) -> None:
    start = mf.Circle(64).density(lambda t: np.exp(1.5 * np.cos(t - 0.4)))
    options = {"t_eval": [T_END]} | ({"dt": STEP, "rng": 2} if model.noisy else {"rtol": 1e-6})
    tokens = mf.Tokens(start.sample(TOKENS, rng=1).x)
    run = successful(mf.solve(model, tokens, (0, T_END), **options))
    unmasked = mf.Transformer(model.drift, model.kappa)
    law = successful(mf.solve(unmasked, start, (0, T_END), t_eval=[T_END])).final
    for quarter in (2, 3):
        x = run.final.x[quarter * TOKENS // 4 : (quarter + 1) * TOKENS // 4]
        for column, name in enumerate(("cos", "sin")):
            values = x[:, column]
            report.compare(
                f"circle, quarter {quarter + 1}, kappa = {float(model.kappa):g}",
                repr(model.drift),
                name,
                predicted=law.expect(lambda p, c=column: p[..., c]),
                measured=values.mean(),
                tolerance=ERRORS * values.std() / np.sqrt(values.size),
                random=True,
            )


def check_times(report: Report) -> None:
    causal, drift, seconds = mf.Causal(), mf.SA(4.0), {}
    for n in (10**4, 10**5, 10**6):
        seconds[n] = fastest(Modes().build(drift, n, 2, causal), n)
    exponent = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]
    report.compare("circle", "SA(4)", "p", predicted=1, measured=exponent, tolerance=0.1)
    ratio = fastest(Direct().build(drift, 10**5, 2, causal), 10**5, 1) / seconds[10**5]
    share = 20 / ratio
    report.compare("n = 1e5", "SA(4)", "20 modes / pairs", predicted=0, measured=share, tolerance=1)
    print(f"exponent of n {exponent:.3f}; pairs take {ratio:.0f} times as long for n = 1e5")


def fastest(engine, n: int, repeats: int = 5) -> float:
    tokens = mf.Tokens.uniform(n, 2, rng=0, shape=(1,))
    x, masses = tokens.x.copy(), tokens.masses.copy()
    engine.velocity(x[:, :100], masses[:, :100])
    found = []
    for _ in range(repeats):
        began = time.process_time()
        engine.velocity(x, masses)
        found.append(time.process_time() - began)
    return min(found)


if __name__ == "__main__":
    sys.exit(main())
