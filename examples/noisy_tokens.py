r"""
1000 noisy Kuramoto oscillators, and the stationary state of their mean field
=============================================================================

As :math:`n \to \infty` the stationary density is :math:`e^{\kappa r \cos\theta}`, up to a factor
and a rotation, with the moments :math:`I_k(\kappa r)/I_0(\kappa r)`. The first moment is r, 0.724
for :math:`\kappa = 3`. Compared with theory: the first two moments of the tokens about their mean
direction, averaged over time from t = 50 on. They fluctuate by about :math:`0.5/\sqrt{n} = 0.017`,
with a correlation time of a few units. The standard error of an average over 350 units of time is
therefore about 0.0025; the tolerance is four standard errors.

:Source: Survey, section 7, the noisy tokens with beta = 0, and (8).
:Run time: 6 s, ``python examples/noisy_tokens.py``
:Look at: the cloud of tokens, which keeps its width while its mean direction diffuses.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.optimize import brentq
from scipy.special import ive

import meanfield as mf

CONFIG = Path(__file__).with_suffix(".toml")
KAPPA = 3.0  # as in the configuration
SETTLED = 50.0
TOLERANCE = 0.01


def run(out: Path) -> list[Row]:
    """Solve, write noisy_tokens.nc and .png, compare."""
    solution = mf.run_config(mf.read_config(CONFIG), out=out / f"{CONFIG.stem}.nc")
    solution.plot().savefig(out / f"{CONFIG.stem}.png")
    late = solution.t >= SETTLED
    r = solution.observables.order_parameter.values
    second = np.array([second_moment(tokens) for tokens in solution])
    order = stationary_order()
    predicted = ive(2, KAPPA * order) / ive(0, KAPPA * order)
    return [
        Row("order parameter", float(r[late].mean()), order, TOLERANCE),
        Row("second moment", float(second[late].mean()), float(predicted), TOLERANCE),
        Row("order parameter at the start", float(r[0]), "", remark="shown"),
        Row("fluctuation of the order parameter", float(r[late].std()), "", remark="shown"),
    ]


def second_moment(tokens: mf.Tokens) -> float:
    """Mean of cos 2(theta - psi), psi the mean direction."""
    z = tokens.x[:, 0] + 1j * tokens.x[:, 1]
    first = z.mean()
    return float(((z**2).mean() * (np.conj(first) / abs(first)) ** 2).real)


def stationary_order() -> float:
    """The positive solution of r = I_1(kappa r)/I_0(kappa r)."""
    return float(brentq(lambda r: ive(1, KAPPA * r) / ive(0, KAPPA * r) - r, 0.1, 1, xtol=1e-15))


if __name__ == "__main__":
    run_alone(__doc__, run)
