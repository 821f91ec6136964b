r"""
Orthogonal tokens, 32 to a million million, gather slowly under Pre-LN
======================================================================

All inner products of n tokens are equal, so that two numbers describe the tokens: the inner product
:math:`\rho` and the length r of hidden states. Under Pre-LN :math:`1 - \rho` falls like
:math:`C/r^2`. Compared with theory: the constant C for n = 32, and the exponent; the time at which
:math:`\rho = 1/2`, which is :math:`\frac12 \log n + O(1)` for large n; and that Peri-LN has the
same :math:`\rho` at the same r.

:Source: Survey, section 6.2, equation (7) with equal angles.
:Run time: 7 s, ``python examples/equiangular.py``
:Look at: the straight ends on logarithmic axes, a power of time (Post-LN would be exponential).
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf

CONFIG = Path(__file__).with_suffix(".toml")
CONSTANT = 1.1830278  # of n = 32, beta = 1
NUMBERS = (32, 1e3, 1e6, 1e12)  # as in the configuration


def run(out: Path) -> list[Row]:
    """Solve, write equiangular.nc and .png, compare."""
    solution = mf.run_config(mf.read_config(CONFIG), out=out / f"{CONFIG.stem}.nc")
    solution.plot(log_time=True).savefig(out / f"{CONFIG.stem}.png")
    log_gap = np.array([state.log_gap for state in solution])
    log_r = np.log([state.radius for state in solution])
    late = solution.t >= 500
    slopes = np.ptp(log_gap[late], axis=0) / np.ptp(log_r[late], axis=0)
    constants = np.exp(log_gap + 2 * log_r)[-1]
    passed = [half_time(n) for n in NUMBERS]
    peri = mf.solve(
        mf.Transformer(mf.SA(1.0), normalisation=mf.PeriLN()),
        mf.Equiangular(32, 0.0),
        t_span=(0, 2000),
        rtol=1e-11,
        events=grown_to(float(solution.final.radius[0])),
    )
    later = (passed[3] - passed[2]) / np.log(1e6)
    return [
        Row("(1 - rho) r^2 at the end, n = 32", constants[0], CONSTANT, 1e-6, relative=True),
        *(
            Row(f"exponent of r, n = {n:g}", -slope, -2.0, 1e-5)
            for n, slope in zip(NUMBERS, slopes.tolist(), strict=True)
        ),
        Row("time to rho = 1/2 per log n, 10^6 to 10^12", later, 0.5, 1e-4),
        Row(
            "1 - rho of Peri-LN at the same r",
            float(peri.final.gap),
            float(solution.final.gap[0]),
            1e-8,
            relative=True,
        ),
    ]


def half_time(n: float) -> float:
    """When rho = 1/2 under Post-LN."""

    def half(_t, state):
        return state.rho - 0.5

    half.terminal = True
    model, start = mf.Transformer(mf.SA(1.0)), mf.Equiangular(n, 0.0)
    return float(mf.solve(model, start, (0, 100), rtol=1e-11, events=half).t[-1])


def grown_to(radius: float):
    """An event that ends the run where hidden states have this length."""

    def grown(_t, state):
        return state.radius - radius

    grown.terminal = True
    return grown


if __name__ == "__main__":
    run_alone(__doc__, run)
