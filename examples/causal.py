r"""
Causal attention: tokens gather around those that start far from all their predecessors
=======================================================================================

Token k attends to the tokens 1, ..., k. The first token never moves, and all others converge to it.
Long before that, for large :math:`\beta`, clusters form at the *strong Rényi centres*. These are
the tokens that start farther than :math:`\delta = c\,\beta^{-1/2}` from all earlier tokens. By a
lemma, centre j moves by less than :math:`\varepsilon c\,\beta^{-1/2}` until the time
:math:`T_j = \varepsilon c\,\beta^{-1/2}/(j\,h(c\,\beta^{-1/2}))`,
:math:`h(x) = e^{\beta(\cos x - 1)} \sin x`. The mean number of strong centres among n uniform
tokens is :math:`(1 - (1 - \delta/\pi)^n)\,\pi/\delta`.

:Source: Karagodin, Polyanskiy and Rigollet, arXiv:2411.04990, Lemma 5.1 and the figure with
    n = 200, d = 2, :math:`\beta = 64`.
:Run time: 5 s, ``python examples/causal.py``
:Look at: the dark lines of the centres, to which the other tokens converge.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

N, BETA, EPS, SAMPLES = 200, 64.0, 0.1, 2000
DELTA = 4 / np.sqrt(BETA)
END = 100.0


def distances(angles: np.ndarray, others: np.ndarray) -> np.ndarray:
    """On the circle."""
    return np.abs((angles - others + np.pi) % (2 * np.pi) - np.pi)


def strong_centres(angles: np.ndarray) -> np.ndarray:
    """Which of the tokens (..., n) start farther than DELTA from all before them."""
    far = distances(angles[..., :, None], angles[..., None, :]) > DELTA
    return (far | ~np.tri(angles.shape[-1], k=-1, dtype=bool)).all(axis=-1)


def excess(angles: np.ndarray, t: np.ndarray, centres: np.ndarray) -> float:
    """The largest displacement of a centre, of what the lemma allows, minus 1 if positive."""
    x = 4 / (1 + 2 * EPS) / np.sqrt(BETA)
    pull = np.exp(BETA * (np.cos(x) - 1)) * np.sin(x) * np.arange(1, N + 1)
    moved = distances(angles, angles[:1]) / (EPS * x)
    counted = centres & (t[:, None] <= EPS * x / pull)
    return max(0.0, float(moved[counted].max()) - 1)


def run(out: Path) -> list[Row]:
    """Solve, count, draw causal.png, compare."""
    rng = np.random.default_rng(3)
    t = np.concatenate([[0.0], np.geomspace(0.1, END, 80)])
    start = mf.Tokens.on_circle(rng.uniform(-np.pi, np.pi, N))
    model = mf.Transformer(mf.Attention(beta=BETA, causal=True))
    solution = mf.solve(model, start, (0, END), t_eval=t, rtol=1e-4)
    angles = np.array([np.arctan2(*state.x.T[::-1]) for state in solution])
    centres = strong_centres(angles[0])
    draw(t, angles, centres).savefig(out / "causal.png")
    counts = strong_centres(rng.uniform(-np.pi, np.pi, (SAMPLES, N))).sum(axis=1)
    predicted = (1 - (1 - DELTA / np.pi) ** N) * np.pi / DELTA
    error = 4 * counts.std() / np.sqrt(SAMPLES)
    soon = mf.Transformer(mf.Attention(beta=1.0, causal=True))
    few = mf.Tokens(start.x[:30])
    gathered = mf.solve(soon, few, (0, 400), t_eval=[400.0], rtol=1e-8).final
    near = distances(angles[-1][:, None], angles[0][centres]).min(axis=1) < 0.05
    return [
        Row("displacement of centres over that of the lemma", excess(angles, t, centres), 0.0, 0.0),
        Row(f"mean number of centres, {SAMPLES} samples", counts.mean(), predicted, error),
        Row("beta = 1, 30 of them, t = 400: distance to the first",
            float(np.abs(gathered.x - start.x[0]).max()), 0.0, 1e-8),
        Row("strong centres in the figure", int(centres.sum()), "", remark="shown"),
        Row(f"share within 0.05 of one at t = {END:g}", float(near.mean()), "", remark="shown"),
    ]  # fmt: skip


def draw(t: np.ndarray, angles: np.ndarray, centres: np.ndarray):
    """Angles over logarithmic time, without the lines of those that cross pi."""
    lines = np.unwrap(angles, axis=0)
    with theme.style():
        page = theme.figure(width=6.6, height=3.4)
        ax = page.subplots()
        for shift in (-2 * np.pi, 0, 2 * np.pi):
            ax.plot(t[1:], lines[1:, ~centres] + shift, color=theme.PALETTE[5], lw=0.5)
            ax.plot(t[1:], lines[1:, centres] + shift, color=theme.PALETTE[1], lw=1.8)
        ax.plot([], [], color=theme.PALETTE[1], lw=1.8, label="strong Rényi centres")
        ax.plot([], [], color=theme.PALETTE[5], lw=0.8, label="other tokens")
        ax.set(xlabel="time $t$", ylabel=r"angle $\theta$", xscale="log", xlim=(t[1], END),
               ylim=(-np.pi, np.pi))  # fmt: skip
        ax.set_yticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
        page.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
