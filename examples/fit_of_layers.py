r"""
Fit a flow to layers, and try to falsify it
===========================================

Tokens pass four layers of SA with noise. The fit recovers :math:`\beta`, the time per layer and
:math:`\kappa`, with confidence intervals, and the test of fit does not reject it. Then the same
rotation is added to each layer, which no flow of this family can do. The fit is rejected, and a
linear map predicts the last layer better.

:Source: estimating equations of indirect inference (Gourieroux, Monfort and Renault, 1993).
:Run time: 10 s, ``python examples/fit_of_layers.py``
:Look at: the test of fit, and the predictions of a layer that the fit does not use.
"""

import warnings
from pathlib import Path
from textwrap import fill

import numpy as np
from report import Row, run_alone

import meanfield as mf

TRUE = {"beta": 3.0, "time": 0.5, "kappa": 100.0}
LAYERS, ANGLE = 4, 0.4


def layers() -> np.ndarray:
    """Tokens before the first layer and after each, (LAYERS + 1, n, d)."""
    model = mf.Transformer(mf.SA(TRUE["beta"]), kappa=TRUE["kappa"])
    start, t = mf.Tokens.uniform(100, 5, rng=0), TRUE["time"] * np.arange(LAYERS + 1)
    run = mf.solve(model, start, (0, t[-1]), t_eval=t, dt=0.025, rng=1)
    return np.array([state.x for state in run.states])


def turned(x: np.ndarray) -> np.ndarray:
    """Each layer turned by ANGLE in one plane from the one before."""
    turn = np.eye(x.shape[-1])
    turn[:2, :2] = [[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]]
    return np.array([one @ np.linalg.matrix_power(turn, k) for k, one in enumerate(x)])


def run(out: Path) -> list[Row]:
    """Fit both, and write fit_of_layers.png."""
    x = layers()
    found = mf.networks.fit(x, mf.SA, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mf.UnresolvedWarning)
        other = mf.networks.fit(turned(x), mf.SA, rng=0)
    for line in f"{found}\n{other}".splitlines():
        print(fill(line, 100, subsequent_indent="    "))
    found.plot().savefig(out / "fit_of_layers.png")
    other.plot().savefig(out / "fit_of_turned_layers.png")
    table = found.parameters
    rows = []
    for name, true in TRUE.items():
        error = 3 * float(table.error.sel(parameter=name))
        rows.append(Row(f"{name}, to three standard errors", found[name], true, error))
    return [
        *rows,
        Row("rejected: the flow", float(bool(found.rejected)), 0.0, 0.0),
        Row("rejected: turned layers", float(bool(other.rejected)), 1.0, 0.0),
    ]


if __name__ == "__main__":
    run_alone(__doc__, run)
