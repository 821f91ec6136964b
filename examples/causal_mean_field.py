r"""
Causal mean field: each position follows the earlier ones
=========================================================

Attention in a decoder is masked: token i attends to the tokens j <= i only. As their number grows,
tokens follow densities :math:`\mu_s`, one for each position s in [0, 1], with

.. math:: v_s(x) = P_x \int_0^s\! \int e^{\beta\langle x, y\rangle} y\, d\mu_\tau(y)\, d\tau
    \Big/ \int_0^s\! \int e^{\beta\langle x, y\rangle}\, d\mu_\tau(y)\, d\tau .

The first positions attend to few others and hardly move; the beginning of the sequence therefore
determines where the rest gathers. If all positions have the same initial density, each evolves
exactly as without a mask. Here the uniform state is unstable, so that random fluctuations of the
first tokens grow. At later times, more tokens are needed to follow the densities.

The influence of position tau on the end of the sequence after the depth t is, near the uniform
state,

.. math:: e^{TC}(1, \tau) = \delta(1 - \tau) + \sqrt{T/u}\, I_1(2\sqrt{Tu}), \quad u = \log(1/\tau),

with T proportional to t. It is largest for the first and the last positions, and small in the
middle. After clustering the total influence of all positions is constant, but that of every fixed
position vanishes exponentially: it concentrates on :math:`\tau < e^{-vt}`.

:Source: Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322 (masked attention).
:Run time: 25 s, ``python examples/causal_mean_field.py``
:Look at: the band that grows out of the first positions, beside the tokens; in the second figure
    the U shape, and its end.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.integrate import quad
from scipy.special import i0, i1

import meanfield as mf
from meanfield.plotting import theme

N, BLOCKS, END = 20_000, 10, 3.0
MODEL = mf.Transformer(mf.SA(4.0), kappa=40.0, causal=True)
CIRCLE = mf.Circle(32)
BETA, KAPPA, ENDS = 2.0, 8.0, np.linspace(0, 1, 11)  # of influence, and of ten blocks
LATE = -0.332329  # rate of int tau K(tau) dtau, of validation/causal_influence.py


def start(s: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """A preferred angle that turns along the sequence, and is lost towards its end."""
    return 1 + 0.8 * np.exp(-2 * s) * np.cos(theta - 2 * np.pi * s)


def run(out: Path) -> list[Row]:
    """Solve for densities and tokens, draw both figures, compare."""
    mu = CIRCLE.indexed(start, mf.Positions.graded(3, order=10))
    path = mf.solve(MODEL, mu, (0, END), t_eval=np.linspace(0, END, 4))
    tokens = mf.solve(MODEL, mu.sample(N, rng=1), (0, END), t_eval=path.t, rng=2, dt=0.1)
    draw(path, tokens).savefig(out / "causal_mean_field.png")

    gap = mf.conditional_wasserstein(tokens.final, path.final, blocks=BLOCKS)
    floor = mf.conditional_wasserstein(path.final.sample(N, rng=3), path.final, blocks=BLOCKS)
    one_law = CIRCLE.von_mises(0, 1)
    same = mf.Indexed.of_slices(mf.Positions(order=4), [one_law] * 4)
    fixed = {"dt": 0.05, "min_degree": 32, "max_degree": 32}
    masked = mf.solve(MODEL, same, (0, END), **fixed).final
    unmasked = mf.solve(MODEL.replace(causal=None), one_law, (0, END), **fixed).final

    t = np.linspace(0, 30, 31)
    law = np.array([[by_formula(at, a, b) for a, b in pairwise(ENDS)] for at in t])
    linear, moved = influence(0.0, t[:13]), influence(0.8, t)
    draw_influence(t, law, moved).savefig(out / "causal_mean_field_influence.png")
    first = np.array([by_moment(0.8, at) for at in (20.0, 30.0)])
    shares = moved / moved.sum(axis=1, keepdims=True)
    return [
        Row("distance of blocks, over that of a sample", gap.value / floor.value, 1.0, 1.0),
        Row("one law at all positions: difference from unmasked",
            float(np.abs(masked.each - unmasked.coefficients).max()), 0.0, 1e-13),
        Row("masses of positions", float(np.abs(path.final.mass - 1).max()), 0.0, 1e-13),
        Row("last coefficients in s", float(path.final.index_tail), "", remark="shown"),
        Row("influence of ten blocks near the uniform state, t = 12",
            float(np.abs(linear[12] / law[12] - 1).max()), 0.0, 1e-4),
        Row("shares of the first, fifth and last block at t = 4: first", shares[4, 0], "",
            remark="shown"),
        Row("  fifth", shares[4, 4], "", remark="shown"),
        Row("  last", shares[4, -1], "", remark="shown"),
        Row("after clustering: sum of all influence, t = 30 over t = 20",
            moved[30].sum() / moved[20].sum(), 1.0, 1e-6),
        Row("  rate of its mean position", float(np.log(first[1] / first[0]) / 10), LATE, 1e-4),
        Row("  share of all but the first block at t = 30", shares[30, 1:].sum(), "",
            remark="shown"),
    ]  # fmt: skip


def draw(path: mf.Solution, tokens: mf.Solution):
    """The density at every position, and every sixteenth token, at four times."""
    s, theta = np.linspace(0, 1, 200), np.linspace(-np.pi, np.pi, 181)
    some = np.arange(0, N, 16)
    with theme.style():
        page = theme.figure(width=7.0, height=2.9)
        axes = page.subplots(1, len(path), sharey=True)
        top = max(state.values.max() for state in path)
        for ax, t, state, x in zip(axes, path.t, path, tokens, strict=True):
            values = state.at_position(s).at(CIRCLE.embed(theta))
            image = ax.pcolormesh(theta, s, values, vmin=0, vmax=top, cmap="Greys", rasterized=True)
            angles = np.arctan2(x.x[some, 1], x.x[some, 0])
            ax.plot(angles, (some + 0.5) / N, ".", ms=1.0, color=theme.PALETTE[1], rasterized=True)
            ax.set(
                title=f"$t = {t:g}$", xlabel=r"angle $\theta$", xlim=(-np.pi, np.pi), ylim=(0, 1)
            )
            ax.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
        axes[0].set_ylabel("position $s$")
        page.colorbar(image, ax=axes, label=r"density $\mu_s(\theta)$")
    return page


# Influence -------------------------------------------------------------------------------------


def by_formula(t: float, a: float, b: float) -> float:
    """Influence on the end of the positions between a and b, near the uniform state."""
    T = t * i1(BETA) / (BETA * i0(BETA))

    def kernel(u: float) -> float:
        return np.exp(-u) * np.sqrt(T / u) * i1(2 * np.sqrt(T * u))

    low, high = -np.log(b), 60.0 if a == 0 else -np.log(a)
    return np.exp(-t / KAPPA) * (float(b == 1) + quad(kernel, low, high, limit=200)[0])


def followed(a: float, t: np.ndarray, directions: list[np.ndarray]) -> mf.Solution:
    """A run from 1 + a cos(theta) at all positions, with tangents."""
    index = mf.Positions(ENDS, order=6)
    mu = CIRCLE.indexed(lambda s, theta: 1 + a * np.cos(theta) + 0 * s, index)
    model = mf.Transformer(mf.SA(BETA), KAPPA, causal=True)
    fixed = {"dt": 0.1, "min_degree": 32, "max_degree": 32}
    return mf.solve(model, mu, (0, t[-1]), t_eval=t, tangents=directions, **fixed)


def influence(a: float, t: np.ndarray) -> np.ndarray:
    """Of each of ten blocks, pushed by sin(theta), on sin(theta) at the end, (times, 10)."""
    directions = np.zeros((10, 60, 33), dtype=complex)
    for block in range(10):
        directions[block, 6 * block : 6 * block + 6, 1] = -0.5j
    run = followed(a, t, list(directions.reshape(10, -1)))
    ends = [[h.at_position(1.0).coefficients[1] for h in run.tangents[n]] for n in run.tangents]
    return -2 * np.array(ends).imag.T


def by_moment(a: float, t: float) -> float:
    """int tau K(tau) dtau, of one run backwards: the influence K of all positions on the end."""
    run = followed(a, np.array([t]), [])
    K = mf.gradient(mf.Functional.mean(lambda x: x[:, 1], position=1.0), run, parameters=[])
    change = -2 * K.initial.slices.coefficients[:, 1].imag
    return float((run.final.weights * run.final.positions) @ change)


def draw_influence(t: np.ndarray, law: np.ndarray, moved: np.ndarray):
    """Shares of ten blocks at three times; three of the blocks over time."""
    middles = (ENDS[1:] + ENDS[:-1]) / 2
    with theme.style():
        page = theme.figure(width=7.0, height=2.9)
        left, right = page.subplots(1, 2)
        for color, at in zip(theme.ordered_colours(3), (1, 4, 12), strict=True):
            for values, style in ((law[at], "--"), (moved[at], "o-")):
                share = values / values.sum()
                left.plot(middles, share, style, color=color, ms=3, lw=1,
                          label=f"$t = {t[at]:g}$" if style == "o-" else None)  # fmt: skip
        left.set(yscale="log", xlabel=r"position $\tau$", ylabel="share of the influence",
                 title="Ten blocks, on the end of the sequence", xlim=(0, 1))  # fmt: skip
        left.legend()
        for color, (name, block) in zip(
            theme.ordered_colours(3), (("first", 0), ("fifth", 4), ("last", 9)), strict=True
        ):
            right.plot(t[1:], law[1:, block], "--", color=color, lw=1)
            right.plot(t[1:], moved[1:, block], color=color, lw=1, label=f"{name} block")
        right.set(yscale="log", ylim=(1e-8, 1e3), xlabel="depth $t$", ylabel="influence",
                  title="dashed: near the uniform state")  # fmt: skip
        right.legend()
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
