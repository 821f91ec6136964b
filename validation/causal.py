"""Claim: under causal attention tokens converge to the first, by way of clusters at Renyi centres.

Token k attends to tokens 1, ..., k. With V = 1 the first never moves. For large beta a token
farther than delta = c beta^{-1/2} from all earlier ones, a *strong Renyi centre*, hardly moves
either for long and collects the others around it; a *Renyi centre* is so far from all earlier
Renyi centres.

1. V = 1, random Q and K, beta = 1: every token reaches x_1(0). Asked: 1e-8 at t = 400.
2. Numbers of centres of n uniform tokens: strong sum_{j < n} (1 - sigma)^j, sigma the measure of a
   cap of radius delta: 2 pi/(2 delta) for n = infinity and d = 2, 2/(1 - cos delta) for d = 3;
   Renyi, on the circle, by his law of parking: L int_0^{n/L} exp(-2 int_0^u (1 - e^-v)/v dv) du,
   L = 2 pi/delta, whose quadrature for
   n = infinity is 0.7475979 L to 1e-6 (a formula only). Asked: 4 standard errors of 4000 samples.
3. n = 200, d = 2, beta = 64, delta = 4 beta^{-1/2}: strong centres move by less than
   eps c beta^{-1/2} until j t h = eps c beta^{-1/2}, h = e^{beta(cos x - 1)} sin x at
   x = c beta^{-1/2}, c = 4/(1 + 2 eps), eps = 0.1 (Lemma 5.1, an inequality): asked at all times.
4. The same runs: the share of tokens within 0.05 of a centre, mean and percentiles 10 and 90, is
   printed at stated times. At t = 0 a strong centre at j has 1 + (n - j) 0.05/pi tokens near it:
   4 standard errors. Later nothing is known but the limit, 1; found is that near strong centres
   the mean share rises: asked between any two times that follow each other, but for 4 standard
   errors of the difference. Near Renyi centres it is not monotone, as those that are not strong
   are consumed themselves; asked at all times from 50 on is 95 per cent near them, 80 near strong
   ones, which is what this script found, not a prediction.
5. V symmetric: the first token is z/|z|, z' = V z. Asked: 1e-10. If its eigenvalues are distinct
   and positive all tokens reach +-xi, xi the first eigenvector; if those of L, of dimension 2, are
   equal and the largest, all reach the projection of x_1(0) on L, normalised (conjectures of the
   paper). Asked: 1e-8 at t = 200, for 8 starts each.
6. One token pulls another at the angle x by h(x)/2, n = 2, in causal attention with weights
   e^{beta(<x, y> - 1)}: relative 1e-12 (`mf.attend`). It is largest at
   cos x = (-1 + (1 + 4 beta^2)^{1/2})/(2 beta): 1e-7. The interaction lemma is a formula, and no
   code of the package is tested by it: N tokens at a beta^{-1/2} pull less than one at
   eps beta^{-1/2}, for a = c - 1 - 2 eps, c >= 5.5 + 2 eps, eps < 0.1, beta >= a^2/2 and
   N < e^{3 a^2/8} eps/(c - 1). Asked on a grid: always.
7. On S^2 the number of Renyi centres among many tokens is proportional to beta, as delta^{-2}:
   asked of the exponent, beta = 64 to 1024: 0.05.

    python validation/causal.py [--quick] [--figure FILE.png]    # 70 s, 8 s quick

--quick has 1000 samples, 3 repetitions of 10 and 8 experiments of 320. Exit code 1 on failure.

References: Karagodin, Polyanskiy and Rigollet, arXiv:2411.04990.
"""

import sys

import numpy as np
from _renyi_centres import centres, number_of_centres, parked, strong_centres
from _report import Report, command_line, successful
from scipy.optimize import minimize_scalar

import meanfield as mf
from meanfield.plotting import theme

N, BETA, EPS, NEAR = 200, 64.0, 0.1, 0.05
DELTA = 4 / np.sqrt(BETA)
TIMES = np.unique(np.concatenate([np.geomspace(0.1, 200, 43), [50, 75, 150]]))
BATCH = 8
SHOWN = (0.1, 5, 20, 50, 75, 150, 200)
ASKED = {"Renyi": 95.0, "strong Renyi": 80.0}  # per cent, from t = 50 on


def check_limit(report: Report) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        Q, K = rng.standard_normal((2, 3, 3)) / np.sqrt(3)
        model = mf.Transformer(mf.Attention(Q, K, beta=1.0, causal=True))
        start = mf.Tokens.uniform(20, 3, rng=rng)
        end = successful(mf.solve(model, start, (0, 400), t_eval=[400])).final.x
        far = np.linalg.norm(end - start.x[0], axis=1).max()
        case = f"random Q, K, seed {seed}"
        report.compare("distance to x_1(0)", case, predicted=0, measured=far, tolerance=1e-8)


def check_numbers(report: Report, samples: int) -> None:
    laws = {2: DELTA / np.pi, 3: (1 - np.cos(DELTA)) / 2}
    strong = {d: (1 - (1 - cap) ** N) / cap for d, cap in laws.items()}
    cases = [("strong", 2, strong[2]), ("strong", 3, strong[3]), ("Renyi", 2, parked(N, DELTA))]
    for i, (kind, d, law) in enumerate(cases):
        x = mf.Tokens.uniform(N, d, rng=10 + i, shape=(samples,)).x
        numbers = (strong_centres if kind == "strong" else centres)(x, DELTA).sum(axis=1)
        options = {"predicted": law, "measured": numbers.mean()}
        error = 4 * numbers.std() / np.sqrt(samples)
        report.compare(f"{kind} centres", f"d = {d}, n = {N}", **options, tolerance=error)
    limit = 0.7475979202 * 2 * np.pi / DELTA
    report.compare(
        "law of parking",
        "n = infinity",
        predicted=limit,
        measured=parked(np.inf, DELTA),
        tolerance=1e-6,
    )


def experiments(count: int) -> np.ndarray:
    """Angles (experiments, times, n), the first at t = 0, of uniform tokens."""
    model = mf.Transformer(mf.Attention(beta=BETA, causal=True))
    found = []
    for seed in range(0, count, BATCH):
        start = mf.Tokens.uniform(N, 2, rng=seed, shape=(min(BATCH, count - seed),))
        t = np.append(0, TIMES)
        run = successful(mf.solve(model, start, (0, t[-1]), t_eval=t, rtol=1e-4))
        found.append(np.stack([np.arctan2(x.x[..., 1], x.x[..., 0]) for x in run], axis=1))
    return np.concatenate(found)


def way(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Distances on the circle."""
    return np.abs((a - b + np.pi) % (2 * np.pi) - np.pi)


def check_lemma(report: Report, angles: np.ndarray, strong: np.ndarray) -> None:
    """How far strong centres move, of what they may."""
    c = 4 / (1 + 2 * EPS)
    x = c / np.sqrt(BETA)
    until = EPS * x / (np.exp(BETA * (np.cos(x) - 1)) * np.sin(x) * np.arange(1, N + 1))
    moved = way(angles, angles[:, :1]) / (EPS * x)
    counted = strong[:, None, :] & (np.append(0, TIMES)[:, None] <= until)
    worst = moved[counted].max()
    print(f"strong centres move by at most {worst:.3f} of what Lemma 5.1 allows")
    excess, label = max(0.0, worst - 1), f"{strong.sum()} centres, {worst:.3f} <= 1"
    report.compare("Lemma 5.1, excess", label, predicted=0, measured=excess, tolerance=0)


def check_values(report: Report) -> None:
    """Tokens under V with distinct eigenvalues, and with two that are the largest."""
    frame = np.linalg.qr(np.random.default_rng(5).standard_normal((4, 4)))[0]
    for kind, values in (("distinct", (2, 1.5, 1, 0.5)), ("L of dimension 2", (2, 2, 1, 0.5))):
        V = frame * np.array(values) @ frame.T
        model = mf.Transformer(mf.Attention(V=V, beta=1.0, causal=True))
        start = mf.Tokens.uniform(12, 4, rng=6, shape=(8,))
        run = successful(mf.solve(model, start, (0, 200), t_eval=[1.0, 200.0], rtol=1e-12))
        z = start.x[:, 0] @ (frame * np.exp(np.array(values)) @ frame.T)
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        first = np.abs(run[0].x[:, 0] - z).max()
        report.compare("x_1 - z/|z|", kind, predicted=0, measured=first, tolerance=1e-10)
        top = frame[:, np.array(values) == 2]
        place = start.x[:, :1] @ top @ top.T
        place /= np.linalg.norm(place, axis=-1, keepdims=True)
        signs = np.sign((run.final.x * place).sum(axis=-1, keepdims=True))
        signs = signs if kind == "distinct" else 1.0
        far = np.linalg.norm(run.final.x - signs * place, axis=-1).max()
        report.compare("distance to the limit", kind, predicted=0, measured=far, tolerance=1e-8)


def pull(beta: float, x: float) -> float:
    """Of the first of two tokens on the second, at the angle x, by the package."""
    pair = mf.Tokens.on_circle([0, x])
    drift = mf.Attention(beta=beta, weights=mf.Unnormalised(), causal=True)
    mean = mf.attend(drift, pair)
    return float(mean.radii[1] * mean.x[1] @ [np.sin(x), -np.cos(x)] * np.exp(-beta))


def check_pull(report: Report) -> None:
    for beta in (0.5, 4.0, BETA):
        angle = np.arccos((np.sqrt(1 + 4 * beta**2) - 1) / (2 * beta))
        label, law = f"beta = {beta:g}", np.exp(beta * (np.cos(angle) - 1)) * np.sin(angle) / 2
        numbers = {"predicted": law, "measured": pull(beta, angle), "relative": True}
        report.compare("pull", label, **numbers, tolerance=1e-12)
        options = {
            "bounds": (0, min(np.pi, 4 * angle)),
            "method": "bounded",
            "options": {"xatol": 1e-10},
        }
        found = minimize_scalar(lambda x: -pull(beta, x), **options)  # noqa: B023
        report.compare("largest pull", label, predicted=angle, measured=found.x, tolerance=1e-7)
    check_interaction(report)


def check_interaction(report: Report) -> None:
    """The inequality of the paper's lemma, which is one between formulas."""
    eps, excess, growth = np.meshgrid(
        np.linspace(0.001, 0.0999, 40), np.linspace(0, 15, 61), np.geomspace(1, 1e6, 61)
    )
    a = 4.5 + excess  # c - 1 - 2 eps
    beta, log_count = growth * a**2 / 2, 3 * a**2 / 8 + np.log(eps / (a + 2 * eps))

    def log_pull(x):
        return -2 * beta * np.sin(x / 2) ** 2 + np.log(np.sin(x))

    ratio = log_count + log_pull(a / np.sqrt(beta)) - log_pull(eps / np.sqrt(beta))
    numbers = {"predicted": 0, "measured": max(0.0, ratio.max()), "tolerance": 0}
    report.compare("interaction lemma", f"log N h/h <= {ratio.max():.3f}", **numbers)


def check_growth(report: Report, samples: int) -> None:
    """The number of Renyi centres on S^2 against beta."""
    betas, counts = np.array([64, 128, 256, 512, 1024]), []
    for i, beta in enumerate(betas):
        delta = 4 / np.sqrt(beta)
        found = []
        for sample in range(samples):
            x = mf.Tokens.uniform(int(400 / delta**2), 3, rng=[i, sample]).x
            found.append(number_of_centres(x, delta))
        counts.append(np.mean(found))
        print(
            f"Renyi centres on S^2, beta = {beta}: {counts[-1]:.1f}, {counts[-1] / beta:.4f} beta"
        )
    slope = np.polyfit(np.log(betas), np.log(counts), 1)[0]
    report.compare("exponent of beta", "S^2", predicted=1, measured=slope, tolerance=0.05)


def check_shares(report: Report, angles: np.ndarray, leaders: dict) -> dict:
    """What is consumed at first, how it goes on, and what is left late; the shares."""
    shares = {name: consumed(angles, chosen) for name, chosen in leaders.items()}
    for name, values in shares.items():
        show(name, values)
        left = max(0.0, ASKED[name] - values[:, 1:][:, TIMES >= 50].mean(axis=0).min())
        label = f"{name}, all t >= 50"
        report.compare(f"below {ASKED[name]:g} %", label, predicted=0, measured=left, tolerance=0)
    strong, j = shares["strong Renyi"], np.arange(N)
    law = 100 / N * (1 - DELTA / np.pi) ** j @ (1 + (N - 1 - j) * NEAR / np.pi)
    error = 4 * strong[:, 0].std(ddof=1) / np.sqrt(len(strong))
    numbers = {"predicted": law, "measured": strong[:, 0].mean()}
    report.compare("share, per cent", "strong Renyi, t = 0", **numbers, tolerance=error)
    steps = np.diff(strong, axis=1)
    errors = steps.std(axis=0, ddof=1) / np.sqrt(len(strong))
    fall = max(0.0, float((-steps.mean(axis=0) - 4 * errors).max()))
    label = f"strong Renyi, {len(TIMES)} times"
    report.compare("fall of the share", label, predicted=0, measured=fall, tolerance=0)
    deepest = -np.diff(shares["Renyi"].mean(axis=0)).min()
    print(f"near Renyi centres the mean share falls once by {max(0.0, deepest):.2f} %")
    return shares


def consumed(angles: np.ndarray, leaders: np.ndarray) -> np.ndarray:
    """Percentages (experiments, times) of tokens within NEAR of a leader's present place."""
    found = []
    for theta, lead in zip(angles, leaders, strict=True):
        gaps = way(theta[:, :, None], theta[:, None, lead]).min(axis=-1)
        found.append(100 * (gaps <= NEAR).mean(axis=-1))
    return np.array(found)


def show(name: str, shares: np.ndarray) -> None:
    for time in SHOWN:
        i = 1 + int(np.argmin(np.abs(TIMES - time)))
        low, high = np.percentile(shares[:, i], [10, 90])
        mean = shares[:, i].mean()
        print(
            f"near {name} centres, t = {TIMES[i - 1]:7.4g}: {mean:5.1f} % ({low:.1f}, {high:.1f})"
        )


def draw(angles: np.ndarray, leaders: dict, shares: dict, path: str) -> None:
    """One experiment at four times, and what is consumed in all of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.2), dpi=200, layout="constrained")
    strong, every = leaders["strong Renyi"], leaders["Renyi"]
    *rings, right = figure.subplots(1, 4, width_ratios=(1, 1, 1, 1.5))
    for ax, time in zip(rings, (0, 75, 150), strict=True):
        theta = angles[0, np.searchsorted(np.append(0, TIMES), time)]
        x, y = np.cos(theta), np.sin(theta)
        ax.plot(np.cos(np.linspace(0, 7, 200)), np.sin(np.linspace(0, 7, 200)), color="0.85", lw=1)
        ax.plot(x, y, "o", ms=3, color="0.45", mec="none", label="tokens")
        ax.plot(
            1.13 * x[every[0]], 1.13 * y[every[0]], "s", ms=4, color="C0", label="Rényi centres"
        )
        ax.plot(
            0.87 * x[strong[0]], 0.87 * y[strong[0]], "^", ms=4.5, color="C3", label="strong ones"
        )
        ax.plot(x[0], y[0], "k*", ms=9, label="first token")
        ax.set(aspect="equal", title=f"$t = {time}$", xlim=(-1.25, 1.25), ylim=(-1.25, 1.25))
        ax.axis("off")
    rings[0].legend(fontsize=7, loc="center", frameon=False)
    for name, color in (("Renyi", "C0"), ("strong Renyi", "C3")):
        values, label = shares[name][:, 1:], "near " + name.replace("Renyi", "Rényi") + " centres"
        right.semilogx(TIMES, values.mean(axis=0), color=color, label=label)
        band = np.percentile(values, [10, 90], axis=0)
        right.fill_between(TIMES, *band, color=color, alpha=0.2, lw=0)
    right.set(xlabel="time $t$", ylabel="tokens, per cent", ylim=(0, 101), xlim=TIMES[[0, -1]])
    right.legend(fontsize=8, loc="lower right")
    figure.savefig(path)


def main() -> int:
    arguments = command_line(
        __doc__, "fewer samples and experiments", "where to draw experiments and shares"
    )
    report = Report(["what", "case"], digits=6)
    check_limit(report)
    check_numbers(report, 1000 if arguments.quick else 4000)
    check_values(report)
    check_pull(report)
    check_growth(report, 3 if arguments.quick else 10)
    angles = experiments(8 if arguments.quick else 320)
    x = np.stack([np.cos(angles[:, 0]), np.sin(angles[:, 0])], axis=-1)
    leaders = {"Renyi": centres(x, DELTA), "strong Renyi": strong_centres(x, DELTA)}
    check_lemma(report, angles, leaders["strong Renyi"])
    shares = check_shares(report, angles, leaders)
    if arguments.figure:
        with theme.style():
            draw(angles, leaders, shares, arguments.figure)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
