"""Ranks of limits of Gaussians under attention with keys K = -Q of half the dimension.

Seeds, recipes and the factor 1 / sqrt(d) of A = -Q^T Q / sqrt(d) are those of the histograms of
Castin et al.: Q normal (floor(d/2), d), starts G G^T, V = 1 or H^T H.

The rule: an eigenvalue stays if it falls by less than t^(-1/2) over the last decade of time and is
no rounding. Limits have S Q^T = 0 and are approached like S = S_oo + M / t, so that the power of t
is 0 for what stays, and -1 for what vanishes; -2 is found too. The size alone does not tell: of
what stays a part is below 0.1, the threshold of the paper, as G, Q and H may be small, and in one
run even below the share that `Gaussian.rank()` takes for 0 by default. For V = 1 what vanishes is
known to be at most sqrt(d) / (2 t least eigenvalue of Q Q^T), since S^-1 >= 2 t Q^T Q / sqrt(d);
twice that is a share that `rank()` can be asked with. Other V make limits that are stable from one
side only: errors of steps, of rtol = 1e-10, must stay well below 1 / t, which ends at 1e-7. Where
an eigenvalue of V is small a run may rest elsewhere for as long, and moves on: those that then have
more than ceil(d/2) are followed to t = 1e10, and counted.
"""

from dataclasses import dataclass

import numpy as np
from _report import Report, successful

import meanfield as mf

__all__ = ["DIMENSIONS", "Ranks", "check_ranks"]

DIMENSIONS = (3, 4, 5)
PAPER_RUNS = 100
ROUNDING = 1e-13
THRESHOLD = 0.1


@dataclass(frozen=True)
class Ranks:
    """Ranks by the rule, by `Gaussian.rank()` (if V = 1), and sizes above 0.1, each (runs,).

    Of random V also which runs were followed on.
    """

    followed_on: np.ndarray
    by_rule: np.ndarray
    by_size: np.ndarray
    above_threshold: np.ndarray


def check_ranks(report: Report, counts: tuple[int, int]) -> dict[tuple[int, bool], Ranks]:
    """Histograms for V = 1 (True) and V random, of the first runs of the paper's 100."""
    found = {}
    for identity, count in zip((True, False), counts, strict=True):
        for d in DIMENSIONS:
            ranks = found[d, identity] = ranks_of(d, identity, count)
            most = -(-d // 2)
            name = f"ranks, V {'= 1' if identity else 'random'}, d = {d}, {count} runs"
            off = ranks.by_rule != most if identity else ranks.by_rule > most
            what = f"{'other than' if identity else 'above'} {most}"
            report.compare(name, what, predicted=0, measured=off.sum(), tolerance=0)
            if identity:
                differ = (ranks.by_size != ranks.by_rule).sum()
                report.compare(name, "rank() is another", predicted=0, measured=differ, tolerance=0)
            print(f"{name}: rank 0 to {d} in {histogram(ranks.by_rule, d)}", end="; ")
            print(f"{ranks.followed_on.sum()} were followed to t = 1e10", end="; ")
            print(f"eigenvalues above 0.1: {histogram(ranks.above_threshold, d)}")
    return found


def histogram(ranks: np.ndarray, d: int) -> np.ndarray:
    return np.bincount(ranks, minlength=d + 1)


def ranks_of(d: int, identity: bool, count: int) -> Ranks:
    """Of the first `count` runs in dimension d."""
    rows = []
    for (Q, V), cov in zip(parameters(d)[:count], starts(d, count), strict=True):
        rows.append(ranks_of_limit(Q, None if identity else V, cov))
    return Ranks(*np.array(rows).T)


def ranks_of_limit(Q: np.ndarray, V: np.ndarray | None, cov: np.ndarray) -> tuple[int, ...]:
    """A row of `Ranks` from one start, for V = 1 if it is None."""
    if V is None:
        return False, *ranks_at(1e10, 1e-8, Q, V, cov)
    ranks = ranks_at(1e7, 1e-10, Q, V, cov)
    moves_on = ranks[0] > -(-len(cov) // 2)
    return moves_on, *(ranks_at(1e10, 1e-8, Q, V, cov) if moves_on else ranks)


def ranks_at(end: float, rtol: float, Q, V, cov: np.ndarray) -> tuple[int, int, int]:
    """By the rule, by size and above the threshold, of the run from one start to `end`."""
    d = len(cov)
    model = mf.Transformer(mf.Attention(Q, -Q, V, beta=1 / np.sqrt(d)))
    law = mf.Gaussian(np.zeros(d), cov)
    run = mf.solve(model, law, (0, end), t_eval=[end / 10, end], rtol=rtol)
    before, after = (np.linalg.eigvalsh(state.cov) for state in successful(run))
    stays = (after > before / np.sqrt(10)) & (after > ROUNDING * after[-1])
    vanishing = np.sqrt(d) / (2 * end * np.linalg.eigvalsh(Q @ Q.T).min())
    by_size = run.final.rank(2 * vanishing / after[-1])
    return stays.sum(), by_size, (after > THRESHOLD).sum()


def parameters(d: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Q and V = H^T H of all runs in dimension d: seeds 40 and 26 serve d = 3, 4, 5 in turn."""
    first, second = np.random.RandomState(40), np.random.RandomState(26)
    every = np.repeat(DIMENSIONS, PAPER_RUNS)
    pairs = [(first.randn(n // 2, n), second.randn(n, n)) for n in every]
    return [(Q, H.T @ H) for Q, H in pairs if H.shape == (d, d)]


def starts(d: int, count: int) -> list[np.ndarray]:
    """G G^T, seed 41 in each dimension."""
    rng = np.random.RandomState(41)
    roots = [rng.randn(d, d) for _ in range(count)]
    return [G @ G.T for G in roots]
