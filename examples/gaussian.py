r"""
A normal law in the plane collapses to a line under attention, or blows up
==========================================================================

Under softmax attention with :math:`A = K^T Q` a normal law :math:`N(a, S)` stays normal. For V = 1
and :math:`A = -q q^T`, q a unit vector,

.. math:: S(t) = (S_0^{-1} + 2 t\, q q^T)^{-1}
    = S_0 - \frac{2t\, S_0 q q^T S_0}{1 + 2t \langle q, S_0 q\rangle},

which tends to a limit of rank 1; its smaller variance falls like :math:`1/(2t)`. With -A instead of
A the law blows up at :math:`T = 1/(2 \langle q, S_0 q\rangle)`. Compared with these formulas: the
covariance at all times, its rank at :math:`t = 10^8`, and T. The law is also compared with tokens
under the same attention, which start at the nodes of a Gauss-Hermite rule.

:Source: Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322, the Gaussian case: the equation of the
    covariance and its closed form.
:Run time: 2 s, ``python examples/gaussian.py``
:Look at: the ellipses, which keep their extent along the line and lose it across.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf

CONFIG = Path(__file__).with_suffix(".toml")
q = np.array([0.6, 0.8])  # as in the configuration
NODES = 20


def run(out: Path) -> list[Row]:
    """Solve, write gaussian.nc and .png, compare."""
    solution = mf.run_config(mf.read_config(CONFIG), out=out / f"{CONFIG.stem}.nc")
    solution.plot(log_time=True).savefig(out / f"{CONFIG.stem}.png")
    model, law, t = solution.model, solution[0], solution.t
    pulled, along = law.cov @ q, q @ law.cov @ q
    shares = 2 * t / (1 + 2 * t * along)
    exact = law.cov - shares[:, None, None] * np.outer(pulled, pulled)
    covs = np.array([state.cov for state in solution])
    blown = mf.solve(mf.Transformer(mf.Attention(q[None], q[None])), law, (0, 10))
    tokens = mf.solve(model, hermite_tokens(law), (0, 1), t_eval=[1], rtol=1e-10).final
    moved = tokens.x.T * tokens.masses @ tokens.x
    there = covs[np.searchsorted(t, 1.0)]
    return [
        Row("largest error of the covariance", float(np.abs(covs - exact).max()), 0.0, 1e-9),
        Row("2 t times the least variance, t = 10^8", 2e8 * q @ solution.final.cov @ q, 1.0, 1e-6),
        Row("rank at t = 10^8", solution.final.rank(), 1, 0),
        Row(
            "time of the blow-up under -A",
            blown.stats["blow_up_time"],
            float(1 / (2 * along)),
            1e-8,
            relative=True,
        ),
        Row(
            f"{NODES**2} tokens against the law, t = 1",
            float(np.abs(moved - there).max()),
            0.0,
            1e-8,
        ),
    ]


def hermite_tokens(law: mf.Gaussian) -> mf.Tokens:
    """A product rule, whose moments are those of the law."""
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
    masses = np.outer(weights, weights).ravel() / weights.sum() ** 2
    values, axes = np.linalg.eigh(law.cov)
    root = axes * np.sqrt(values) @ axes.T
    return mf.Tokens(law.mean + grid @ root, masses, on_sphere=False)


if __name__ == "__main__":
    run_alone(__doc__, run)
