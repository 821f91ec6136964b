r"""
Random attention: the number of clusters under 200 random matrices
==================================================================

Each of 200 replicas of 32 tokens on :math:`S^2` has a separate symmetric random matrix,
:math:`Q^\top K = V = A` of the Gaussian orthogonal ensemble. One call moves all replicas, each with
its own adaptive steps. Tokens end at eigenvectors of an extreme eigenvalue of A, in one cluster or
in two opposite ones.

:Source: Geshkovski et al., arXiv:2312.10794, figure 5, for the scaling; docs/theory/tokens.md.
:Run time: 10 s, ``python examples/random_matrices.py``
:Look at: the numbers of replicas that end in one cluster, and in two.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

R, n, d, T = 200, 32, 3, 40.0
CLOSE = 1e-3  # 1 - |<x, v>| of a token x at an eigenvector v


def run(out: Path) -> list[Row]:
    """Solve all replicas and three of them alone, write random_matrices.nc and .png."""
    A = mf.ensembles.goe(d, 1, (R, 1)) / np.sqrt(d)
    tokens = mf.Tokens.uniform(n, d, rng=2, shape=(R,))
    model, options = mf.Transformer(mf.Attention(K=A, V=A)), {"t_eval": [10, T], "rtol": 1e-6}
    every = mf.solve(model, tokens, (0, T), **options)
    name = Path(__file__).stem
    every.save(out / f"{name}.nc")
    different = 0
    for r in (0, 7, 199):
        alone = mf.solve(model.member(r), tokens[r], (0, T), **options)
        different += np.count_nonzero(alone.final.x != every.final.x[r])
    along = np.abs(every.final.x @ np.linalg.eigh(A[:, 0])[1])
    at_rest = (along.max(axis=2) > 1 - CLOSE).all(axis=1)
    counts = every.observables["cluster_count"][-1].values
    draw(counts).savefig(out / f"{name}.png")
    steps = every.stats["steps"]
    return [
        Row("share of replicas at eigenvectors of A", at_rest.mean(), 1.0, 0.05),
        Row("numbers that differ from runs of one replica", different, 0, 0.0),
        Row("share of replicas in one cluster", (counts == 1).mean(), "no theory"),
        Row("most steps of a replica over the fewest", steps.max() / steps.min(), "no theory"),
    ]


def draw(counts: np.ndarray) -> theme.PaperFigure:
    """How many replicas end in how many clusters."""
    numbers, replicas = np.unique(counts, return_counts=True)
    with theme.style():
        page = theme.figure(width=3.2, height=2.4)
        ax = page.subplots()
        ax.bar(numbers, replicas, width=0.6)
        ax.set(xlabel=f"clusters at $t$ = {T:g}", ylabel="replicas", xticks=numbers)
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
