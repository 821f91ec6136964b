r"""
Attention on the torus: which of the waves of two angles grow
=============================================================

Points have two angles, and attract each other under USA by :math:`e^{\beta\langle x, y\rangle}`,
:math:`\langle x, y\rangle = \cos(x_1 - y_1) + \cos(x_2 - y_2)`. From a nearly uniform density the
wave :math:`e^{i\langle k, x\rangle}` grows at the rate

.. math:: |k|^2 \Big(\tfrac1\beta I_{k_1}(\beta)\, I_{k_2}(\beta) - \tfrac1\kappa\Big).

Compared with this formula: the rates of the waves (1, 0), (1, 1), (2, 0) and (2, 1), of which the
first grows at this noise and the others decay. The mass is checked too.

:Source: Carrillo, Gvalani, Pavliotis and Schlichting, Arch. Ration. Mech. Anal. 235 (2020).
:Run time: 15 s, ``python examples/torus.py``
:Look at: the map: first a stripe, the growing wave, and later a single cluster.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.special import iv

import meanfield as mf

BETA, KAPPA = 1.0, 2.2
WAVES = np.array([[1, 0], [1, 1], [2, 0], [2, 1]])
EARLY = 0.5  # the waves are still small
TOLERANCE = 1e-4  # products of two waves are a tenth of it, relative to a wave


def run(out: Path) -> list[Row]:
    """Solve, draw torus.png, compare."""
    torus = mf.Torus(16)
    c = torus.uniform().coefficients.copy()
    c[torus.places(WAVES)] = 1e-5 * np.exp(1j * np.arange(4))
    model = mf.Transformer(mf.USA(BETA), kappa=KAPPA)
    first = mf.solve(model, mf.Density(torus, c), t_span=(0, EARLY), t_eval=[EARLY], rtol=1e-9)
    later = mf.solve(model, mf.Density(torus, c), t_span=(0, 80), rtol=1e-7)
    later.plot("map").savefig(out / "torus.png")
    final = first.final.resample(16).coefficients
    measured = np.log(np.abs(final / np.where(c == 0, 1, c)))[torus.places(WAVES)] / EARLY
    rates = (WAVES**2).sum(axis=1) * (iv(WAVES, BETA).prod(axis=1) / BETA - 1 / KAPPA)
    named = zip(WAVES.tolist(), measured, rates, strict=True)
    return [
        *(Row(f"growth rate of the wave {tuple(k)}", m, r, TOLERANCE) for k, m, r in named),
        Row("mass at the end", float(later.final.mass), 1, 1e-13),
    ]


if __name__ == "__main__":
    run_alone(__doc__, run)
