r"""
Without noise: how long clusters live
=====================================

Under softmax attention at large :math:`\beta` clusters of tokens rest for times
:math:`e^{c\beta}`, :math:`c = 1 - \cos\varphi` of the gap :math:`\varphi` between the closest two.
Left: regular :math:`k`-gons of clusters, perturbed by :math:`10^{-4}`. The time of the first merger
is that of their linearisation, :math:`\log(1/\varepsilon)/\lambda` up to a constant over
:math:`\lambda`, with

.. math:: \lambda = \max_q \frac{\sum_j (\beta\sin^2 a_j - \cos a_j)\, e^{\beta\cos a_j}
          (1 - \cos q a_j)}{\sum_j e^{\beta\cos a_j}}, \qquad a_j = 2\pi j/k .

Right: from random starts, the gap that is left to the last is random, and with it the rate. The law
of :math:`(\log T)/\beta` over 12 starts, for 8 tokens in three dimensions.

:Source: Summary of the survey, open question 2; Geshkovski, Koubbi, Polyanskiy and Rigollet,
    arXiv:2410.06833.
:Run time: 15 s, ``python examples/cluster_lifetimes.py``
:Look at: the slopes on the left, :math:`1 - \cos(2\pi/k)`; the spread on the right, which does not
    shrink as :math:`\beta` grows.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

SIZES, BETAS = (2, 3, 4, 5), (5.0, 20.0, 50.0, 100.0)
DIMENSIONS, STARTS, BETA, TOKENS = (2, 3, 8), 12, 50.0, 8
PERTURBATION, MET, MERGED = 1e-4, 1e-2, 1e-8


def growths(beta, k):
    """Rates of perturbations of a regular k-gon with wave numbers 1 to k // 2."""
    a = 2 * np.pi * np.arange(k) / k
    weights = np.exp(beta * (np.cos(a) - 1))
    pull = (beta * np.sin(a) ** 2 - np.cos(a)) * weights
    waves = np.arange(1, k // 2 + 1)
    return (1 - np.cos(waves[:, None] * a)) @ pull / weights.sum()


def lifetime(beta, k, size):
    """Time of the first merger of a k-gon whose fastest perturbation has this size."""
    rates = growths(beta, k)
    a = 2 * np.pi * np.arange(k) / k
    start = mf.Tokens.on_circle(a + size * np.cos((1 + np.argmax(rates)) * a))
    end = 1e3 * np.log(1 / size) / rates.max()
    run = mf.solve(mf.Transformer(mf.SA(beta)), start, (0, end), t_eval=[end], rtol=1e-11,
                   events=mf.merge_events(k, angle=MET)[:1], merge=MERGED)  # fmt: skip
    return float(run.t_events[0][0])


def last_merger(beta, start):
    """Time at which only two tokens of merged masses, and then one, are left."""
    end = 1e6 * np.exp(2 * beta)
    run = mf.solve(mf.Transformer(mf.SA(beta)), start, (0, end), t_eval=[end], rtol=1e-8,
                   events=mf.merge_events(TOKENS, angle=MET), merge=MERGED)  # fmt: skip
    return float(run.t_events[-1][0])


def run(out: Path) -> list[Row]:
    """Polygons and random starts; draw cluster_lifetimes.png, compare."""
    polygons = {k: [lifetime(beta, k, PERTURBATION) for beta in BETAS] for k in SIZES}
    shares = {}
    for d in DIMENSIONS:
        rng = np.random.default_rng(d)
        starts = [mf.Tokens.uniform(TOKENS, d, rng=rng) for _ in range(STARTS)]
        shares[d] = np.sort([np.log(last_merger(BETA, start)) / BETA for start in starts])
    draw(polygons, shares).savefig(out / "cluster_lifetimes.png")
    rows = []
    for k in SIZES:
        later, rate = lifetime(BETAS[-1], k, PERTURBATION**2), growths(BETAS[-1], k).max()
        rows.append(Row(f"{k}-gon, β = 100: log of T(ε²) - T(ε)",
                        float(np.log(later - polygons[k][-1])),
                        float(np.log(np.log(1 / PERTURBATION) / rate)), 1e-3))  # fmt: skip
    for d, values in shares.items():
        rows.append(Row(f"d = {d}: median of (log T)/β", float(np.median(values)), "",
                        remark="found"))  # fmt: skip
    return rows


def draw(polygons, shares):
    """Lifetimes of polygons over beta, and distribution functions of (log T)/beta."""
    with theme.style():
        page = theme.figure(width=7.4, height=3.2)
        left, right = page.subplots(1, 2)
        fine = np.linspace(BETAS[0], BETAS[-1], 100)
        for i, (k, times) in enumerate(polygons.items()):
            law = [np.log10(np.log(1 / PERTURBATION) / growths(beta, k).max()) for beta in fine]
            left.plot(fine, law, color=theme.colour(i))
            left.plot(BETAS, np.log10(times), "o", color=theme.colour(i), label=f"$k = {k}$")
        left.set(xlabel=r"$\beta$", ylabel=r"$\log_{10} T_1$")
        left.legend()
        for i, (d, values) in enumerate(shares.items()):
            right.step(values, np.arange(1, STARTS + 1) / STARTS, where="post",
                       color=theme.colour(i), label=f"$d = {d}$")  # fmt: skip
        right.set(xlabel=rf"$(\log T)/\beta$ at $\beta = {BETA:g}$", ylabel="share of starts")
        right.legend()
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
