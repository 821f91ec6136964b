"""Collapse to a point on the 2-sphere, followed along characteristics.

Without noise a density that is positive everywhere and gathers in one point does so at the rate

    min(e^beta, (d - 1)/2 e^-beta)

of W2 (USA), which for beta = 1/2 and d = 3 is e^(-1/2): the last mass to arrive is that opposite
the point. Measured against it: the rate, from W2 = 10^-3 on; the mass, which is conserved; and the
energy of the point, e^beta / (2 beta).

    python examples/collapse.py
"""

import sys
from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf

TITLE = "Collapse to a point on the 2-sphere: the rate of W2"
CONFIG = Path(__file__).with_suffix(".toml")
BETA, DIMENSION = 0.5, 3  # as in the configuration


def run(out: Path) -> list[Row]:
    """Solve, write collapse.nc and .png, compare."""
    solution = mf.run_config(mf.read_config(CONFIG), out=out / f"{CONFIG.stem}.nc")
    solution.plot().savefig(out / f"{CONFIG.stem}.png")
    data, t = solution.observables, solution.t
    w2 = data.w2_to_dirac.values
    late = w2 < 1e-3
    rate = -np.polyfit(t[late], np.log(w2[late]), 1)[0]
    predicted = min(np.exp(BETA), (DIMENSION - 1) / 2 * np.exp(-BETA))
    energy = data.interaction_energy.values
    return [
        Row("rate of W2", float(rate), float(predicted), 1e-3, relative=True),
        Row("mass", float(data.mass[-1]), 1.0, 1e-13),
        Row("energy at the end", float(energy[-1]), float(np.exp(BETA) / BETA / 2), 1e-9),
        Row("W2 at the end", float(w2[-1]), "", remark="shown"),
        Row("W2 by Theorem 5, at most", float(w2[0] * np.exp(-t[-1] / 100)), "", remark="shown"),
    ]


if __name__ == "__main__":
    sys.exit(run_alone(TITLE, run))
