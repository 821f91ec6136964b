r"""
Attention on the 2-sphere: a nearly uniform density forms clusters, degree 3 first
==================================================================================

A harmonic of degree l of the uniform density grows at the rate (SA)

.. math:: l (l + 1) \left(\frac{\lambda_l}{\beta \lambda_0} - \frac{1}{\kappa}\right), \qquad
    \lambda_l = \sqrt{\frac{\pi}{2\beta}}\, I_{l + 1/2}(\beta).

Compared with these rates: the growth of degrees 1 to 4 while they are small, and the degree that is
largest when the pattern appears. The later merging of clusters is shown without a verdict.

:Source: Survey, section 5, the linearised (2), and section 7 for the noise.
:Run time: 30 s, ``python examples/sphere.py``
:Look at: the movie of the two sides: a pattern of degree 3, then clusters, then fewer of them.
"""

from pathlib import Path

import numpy as np
from movies import movie_path
from report import Row, run_alone
from scipy.special import ive

import meanfield as mf

CONFIG = Path(__file__).with_suffix(".toml")
BETA, KAPPA = 6.0, 100.0  # as in the configuration
DEGREES = np.arange(1, 5)
EARLY = slice(0, 21)  # t <= 10: amplitudes are still small
LATE = 18.0  # the pattern can nearly be seen: the movie begins
TOLERANCE = 1e-3


def rates() -> np.ndarray:
    """Growth rates of degrees 1 to 4."""
    l = DEGREES
    return l * (l + 1) * (ive(l + 0.5, BETA) / ive(0.5, BETA) / BETA - 1 / KAPPA)


def amplitudes(solution: mf.Solution) -> np.ndarray:
    """sqrt(sum_m |c_lm|^2 / (2l + 1)) over time, for degrees 1 to 4."""
    return solution.observables.moment_re.sel(k=DEGREES).values


def run(out: Path) -> list[Row]:
    """Solve, write sphere.nc, .png and a movie of both sides of the sphere, compare."""
    solution = mf.run_config(mf.read_config(CONFIG), out=out / f"{CONFIG.stem}.nc")
    begin, times = solution[int((solution.t >= LATE).argmax())], np.linspace(LATE, 30, 61)
    film = mf.solve(solution.model, begin, (LATE, 30), t_eval=times)
    film.animate(movie_path(out, CONFIG.stem), fps=10, dpi=80)
    solution.plot().savefig(out / f"{CONFIG.stem}.png")
    t, size = solution.t, amplitudes(solution)
    early_t, early = t[EARLY], np.log(size[EARLY])
    measured = (early[-1] - early[0]) / (early_t[-1] - early_t[0])
    rows = [
        Row(f"growth of degree {l}", float(rate), float(predicted), TOLERANCE, relative=True)
        for l, rate, predicted in zip(DEGREES, measured, rates(), strict=True)
    ]
    highest = np.array([state.values.max() for state in solution])
    visible = int(np.argmax(highest > 1.5))
    power = (2 * DEGREES + 1) * size[visible] ** 2
    fastest = int(DEGREES[np.argmax(rates())])
    rows.append(
        Row(
            f"degree of the pattern at t = {t[visible]:g}", int(DEGREES[power.argmax()]), fastest, 0
        )
    )
    rows.append(Row("highest density at the end", float(highest[-1]), "", remark="shown"))
    return rows


if __name__ == "__main__":
    run_alone(__doc__, run)
