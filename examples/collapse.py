r"""
Collapse to a point on the 2-sphere, followed along characteristics
===================================================================

Without noise a density that is positive everywhere and collapses to one point does so at the rate

.. math:: \min\left(e^{\beta}, \tfrac{d-1}{2}\, e^{-\beta}\right)

of :math:`W_2` (USA), which for :math:`\beta = 1/2` and d = 3 is :math:`e^{-1/2}`: the last mass to
arrive starts near the antipode of the point. Compared with theory: the rate, from
:math:`W_2 = 10^{-3}` on; the conserved mass; and the energy of the point,
:math:`e^{\beta}/(2\beta)`.

:Source: Survey, section 4.3, Theorem 5 (its bound has the rate 1/100).
:Run time: 3 s, ``python examples/collapse.py``
:Look at: the straight end of :math:`W_2` on the logarithmic axis.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf

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
    run_alone(__doc__, run)
