r"""
A deep Transformer with random weights at its initialisation: tokens align layer by layer
=========================================================================================

32 uniform tokens of dimension d = 256 pass 16 layers of softmax attention with
:math:`\beta = \sqrt d` and matrices Q, K, V of independent entries of variance 1/d, new in each
layer. Outputs are orthogonal to the tokens, and random weights have the overlaps
:math:`q = \rho + (1 - \rho)\, e^{1 - \rho}/n` and
:math:`p = \rho + (1 - \rho)\, e^{(1 - \rho)\rho}/n`. So the mean cosine :math:`\rho` follows

.. math:: r^2 \leftarrow r^2 + f^2 q, \qquad r^2 \rho \leftarrow r^2 \rho + f^2 p, \qquad
    f = 1 \text{ or, for Peri-LN, } q^{-1/2},

with r = 1 in every layer for Post-LN. The recursion is exact for infinitely wide networks; networks
of this size deviate by 0.05, in either direction. The tolerance is 0.1 for the mean of three
networks.

:Source: Survey, section 6.2, figure 4; Karagodin, Geshkovski, Polyanskiy and Rigollet,
    arXiv:2510.22026. The recursion is derived here.
:Run time: 8 s, ``python examples/random_weights.py``
:Look at: the bands, with 90 % of all pairs, around the dashed recursion; Post-LN aligns first.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

N, D, DEPTH, NETWORKS = 32, 256, 16, 3
SCHEMES = {"Post-LN": mf.PostLN(), "Pre-LN": mf.PreLN(), "Peri-LN": mf.PeriLN()}
ALLOWED = 0.1


def network(rng: np.random.Generator) -> mf.Attention:
    """Attention with matrices of its own in each layer."""
    Q, K, V = (
        mf.PerLayer(mf.ensembles.ginibre(D, rng, (DEPTH,)) / np.sqrt(D), duration=1.0)
        for _ in range(3)
    )
    return mf.Attention(Q, K, V, beta=np.sqrt(D))


def cosines() -> dict[str, np.ndarray]:
    """<x_i, x_j> of all pairs of all networks, (layers, pairs), by scheme."""
    found = {name: [] for name in SCHEMES}
    pairs = np.triu_indices(N, 1)
    for seed in range(NETWORKS):
        rng = np.random.default_rng(seed)
        drift, start = network(rng), mf.Tokens.uniform(N, D, rng=rng)
        for name, scheme in SCHEMES.items():
            model = mf.Transformer(drift, normalisation=scheme)
            run = mf.solve(model, start, (0, DEPTH), dt=1.0, scheme=mf.steppers.Layers)
            found[name].append([(state.x @ state.x.T)[pairs] for state in run])
    return {name: np.concatenate(values, axis=1) for name, values in found.items()}


def recursion(name: str) -> np.ndarray:
    """The mean cosine at all layers."""
    rho, square, found = 0.0, 1.0, [0.0]
    for _ in range(DEPTH):
        own = rho + (1 - rho) * np.exp(1 - rho) / N
        shared = rho + (1 - rho) * np.exp((1 - rho) * rho) / N
        factor = 1 / own if name == "Peri-LN" else 1.0
        rho = (square * rho + factor * shared) / (square + factor * own)
        square = 1.0 if name == "Post-LN" else square + factor * own
        found.append(rho)
    return np.array(found)


def run(out: Path) -> list[Row]:
    """Pass the layers, draw random_weights.png, compare."""
    found = cosines()
    draw(found).savefig(out / "random_weights.png")
    rows = []
    for name, values in found.items():
        mean, law = values.mean(axis=1), recursion(name)
        worst = float(np.abs(mean - law).max())
        rows.append(Row(f"{name}: mean cosine, largest error of a layer", worst, 0.0, ALLOWED))
        rows.append(Row(f"{name}: mean cosine after {DEPTH} layers", mean[-1], law[-1],
                        remark="shown"))  # fmt: skip
    return rows


def draw(found: dict[str, np.ndarray]):
    """Mean cosines and bands over the layers."""
    layers = np.arange(DEPTH + 1)
    with theme.style():
        page = theme.figure(width=5.4, height=3.2)
        ax = page.subplots()
        for colour, (name, values) in zip(theme.PALETTE, found.items(), strict=False):
            low, high = np.percentile(values, [5, 95], axis=1)
            ax.fill_between(layers, low, high, color=colour, alpha=0.15, lw=0)
            ax.plot(layers, values.mean(axis=1), color=colour, label=name)
            ax.plot(layers, recursion(name), color=theme.INK, lw=0.9, dashes=(4, 3))
        ax.plot([], [], color=theme.INK, lw=0.9, dashes=(4, 3), label="recursion for wide networks")
        ax.fill_between([], [], [], color=theme.INK, alpha=0.15, lw=0, label="90 % of the pairs")
        ax.set_title(rf"$n = {N}$, $d = {D}$, $\beta = \sqrt{{d}}$, {NETWORKS} networks")
        ax.set(xlabel="layer", ylabel="mean cosine", xlim=(0, DEPTH), ylim=(-0.15, 1.02))
        ax.legend(loc="lower right")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
