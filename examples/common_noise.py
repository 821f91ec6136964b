r"""
Common noise: a random density, and tokens on the same path
===========================================================

All Kuramoto oscillators are driven by one Brownian motion B of the plane,
:math:`d\theta_i = \dots + \sqrt{2/\kappa}\, P \circ dB`. The density is their law given B. It
remains a Poisson kernel, :math:`m_k = m_1^k`, because Kuramoto's drift and the noise move points by
conformal maps of the disc. 4000 tokens with the same seed and the same steps have the same B; their
mean agrees with that of the density up to :math:`n^{-1/2}`, at all times. Both statements are
measured. Along a path, :math:`\varrho = 2\,\mathrm{artanh}\, r` follows

.. math:: d\varrho = \left(\tanh(\varrho/2) + \frac{\coth \varrho}{\kappa}\right) dt
    + \sqrt{2/\kappa}\; dB'

and its quadratic variation is :math:`2t/\kappa`, up to the statistical error of a sum of squared
increments.

:Source: Survey, end of section 7, which asks for common noise.
:Run time: 3 s, ``python examples/common_noise.py``
:Look at: the random moments: the density is the law given the common noise.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf

CONFIG = Path(__file__).with_suffix(".toml")
TOKENS = 4000


def run(out: Path) -> list[Row]:
    """Solve, write common_noise.nc and .png, compare."""
    solution = mf.run_config(mf.read_config(CONFIG), out=out / f"{CONFIG.stem}.nc")
    solution.plot().savefig(out / f"{CONFIG.stem}.png")
    start, span, kappa = solution[0], (0.0, solution.t[-1]), float(solution.model.common.kappa)
    options = {"t_eval": solution.t, "dt": 0.02, "rng": 5}  # as in the configuration
    path = mf.solve(solution.model, start.sample(TOKENS, rng=1), span, **options)
    mean = np.array([tokens.x.mean(axis=0) @ [1, 1j] for tokens in path])
    first = np.array([density.moment(1) for density in solution])
    errors = [np.abs(mu.coefficients - powers(mu)).max() for mu in solution]
    rho = 2 * np.arctanh(np.abs(first))
    variation, steps = np.sum(np.diff(rho) ** 2), rho.size - 1
    predicted = 2 * span[1] / kappa
    return [
        Row("m_k - m_1^k, largest", float(np.max(errors)), 0.0, 1e-8),
        Row(
            f"distance of the mean of {TOKENS} tokens",
            float(np.sqrt(np.mean(np.abs(mean - first) ** 2))),
            0.0,
            3 / np.sqrt(TOKENS),
        ),
        Row(
            "quadratic variation of rho",
            float(variation),
            predicted,
            4.5 * predicted * np.sqrt(2 / steps),
        ),
        Row("r at the end", float(np.abs(first[-1])), "", remark="shown"),
    ]


def powers(density: mf.Density) -> np.ndarray:
    """The coefficients of the Poisson kernel with the first moment of a density."""
    return density.coefficients[1] ** density.space.degrees


if __name__ == "__main__":
    run_alone(__doc__, run)
