r"""
Causal mean field: each position follows what came before it
============================================================

A decoder is masked: token i sees the tokens j <= i alone. As their number grows they follow
densities :math:`\mu_s`, one for each position s in [0, 1], with

.. math:: v_s(x) = P_x \int_0^s\! \int e^{\beta\langle x, y\rangle} y\, d\mu_\tau(y)\, d\tau
    \Big/ \int_0^s\! \int e^{\beta\langle x, y\rangle}\, d\mu_\tau(y)\, d\tau .

A position near s = 0 sees few others, which have hardly moved: the beginning of the sequence
decides where the rest gathers. Where all positions begin with the same density they all move as
without a mask, exactly. The uniform state is unstable here, so that what chance has put into the
first tokens grows: the longer they move, the more of them it takes to follow the densities.

:Source: Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322 (masked attention).
:Run time: 15 s, ``python examples/causal_mean_field.py``
:Look at: the band that grows out of the first positions, beside the tokens.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

N, BLOCKS, END = 20_000, 10, 3.0
MODEL = mf.Transformer(mf.SA(4.0), kappa=40.0, causal=True)
CIRCLE = mf.Circle(32)


def start(s: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """A preferred angle that turns along the sequence, and is lost towards its end."""
    return 1 + 0.8 * np.exp(-2 * s) * np.cos(theta - 2 * np.pi * s)


def run(out: Path) -> list[Row]:
    """Solve for densities and tokens, draw causal_mean_field.png, compare."""
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
    return [
        Row("distance of blocks, over that of a sample", gap.value / floor.value, 1.0, 1.0),
        Row("one law at all positions: difference from unmasked",
            float(np.abs(masked.each - unmasked.coefficients).max()), 0.0, 1e-13),
        Row("masses of positions", float(np.abs(path.final.mass - 1).max()), 0.0, 1e-13),
        Row("last coefficients in s", float(path.final.index_tail), "", remark="shown"),
    ]  # fmt: skip


def draw(path: mf.Solution, tokens: mf.Solution):
    """The density at every position, and every tenth token, at four times."""
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


if __name__ == "__main__":
    run_alone(__doc__, run)
