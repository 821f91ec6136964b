r"""
Gaussians that grow: softmax attention blows up in finite time, other weights do not
====================================================================================

Keys and queries with :math:`A + A^T > 0` and V = 1: covariances grow. Under softmax weights, where
:math:`S(t) = (S_0^{-1} - t (A + A^T))^{-1}`, they are infinite at
:math:`T = 1/\lambda_{\max}(S_0^{1/2} (A + A^T) S_0^{1/2})`. Under L2 weights,
:math:`e^{-|Qx - Ky|^2}`, they finally grow at the rate
:math:`2 \max \mathrm{Re}\, \mathrm{eig}(K^{-1} Q)`. Sinkhorn weights are a coupling, so that S
cannot grow faster than :math:`S' = 2 S`. Their rate tends to :math:`2 \cos\vartheta`,
:math:`\tan\vartheta = (A_{12} - A_{21}) \sqrt{\det S}/\mathrm{tr} A S`.

:Source: Castin, Ablin, Carrillo and Peyré, arXiv:2501.18322, figure 2, with their seed.
:Run time: 4 s, ``python examples/growing_gaussians.py``
:Look at: the pole of softmax weights beside two straight lines.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

START = np.array([[0.6, 0.1], [0.1, 0.4]])
LATE = {"L2": 80.0, "Sinkhorn": 12.0}
SHOWN = 6.0


def matrices() -> tuple[np.ndarray, np.ndarray]:
    """The first normal Q, K of seed 33 with A + A^T > 0."""
    rng = np.random.RandomState(33)
    while True:
        Q, K = rng.randn(2, 2), rng.randn(2, 2)
        if np.linalg.eigvalsh(K.T @ Q + Q.T @ K)[0] > 0:
            return Q, K


def solved(weights: mf.Weights, end: float, beta: float = 1.0) -> mf.Solution:
    Q, K = matrices()
    model = mf.Transformer(mf.Attention(Q, K, beta=beta, weights=weights))
    t = np.unique(np.concatenate([np.linspace(0, min(end, SHOWN), 121), [end - 1, end]]))
    law = mf.Gaussian(np.zeros(2), START)
    return mf.solve(model, law, (0, end), t_eval=t, rtol=1e-10)


def last_rate(run: mf.Solution) -> float:
    """Of the trace, between the last two times, one apart."""
    before, after = (np.trace(state.cov) for state in run[-2:])
    return float(np.log(after / before))


def run(out: Path) -> list[Row]:
    """Solve under three kinds of weights, draw growing_gaussians.png, compare."""
    Q, K = matrices()
    A = K.T @ Q
    factor = np.linalg.cholesky(START)
    T = 1 / np.linalg.eigvalsh(factor.T @ (A + A.T) @ factor)[-1]
    softmax = solved(mf.Softmax(), SHOWN)
    runs = {"L2": solved(mf.L2(), LATE["L2"]), "Sinkhorn": solved(mf.Sinkhorn(), LATE["Sinkhorn"])}
    draw({"softmax": softmax, **runs}, T).savefig(out / "growing_gaussians.png")
    S = runs["Sinkhorn"].final.cov
    turned = np.arctan2((A[0, 1] - A[1, 0]) * np.sqrt(np.linalg.det(S)), np.trace(A @ S))
    limits = {
        "L2": 2 * float(np.linalg.eigvals(np.linalg.solve(K, Q)).real.max()),
        "Sinkhorn": 2 * float(np.cos(turned)),
    }
    return [
        Row("softmax: time of the blow-up", softmax.stats["blow_up_time"], float(T), 1e-8, True),
        *(Row(f"{name}: rate at t = {LATE[name]:g}", last_rate(found), limits[name], 1e-6)
          for name, found in runs.items()),
    ]  # fmt: skip


def draw(runs: dict[str, mf.Solution], T: float):
    """The trace over time."""
    with theme.style():
        page = theme.figure(width=5.0, height=3.2)
        ax = page.subplots()
        for colour, (name, run) in zip(theme.PALETTE, runs.items(), strict=False):
            ax.semilogy(run.t, [np.trace(state.cov) for state in run], color=colour, label=name)
        ax.axvline(T, color=theme.PALETTE[0], lw=0.8, dashes=(4, 3))
        ax.text(T + 0.08, 2e4, "$T$", color=theme.PALETTE[0])
        ax.set(xlabel="time $t$", ylabel=r"$\mathrm{tr}\, S$", xlim=(0, SHOWN), ylim=(0.5, 1e5))
        page.legend(loc="outside lower center", ncols=3)
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
