"""Five clusters on an arc that merge pair by pair: the times, by equations for the angles."""

from functools import partial

import numpy as np
from _two_bodies import closing_time, sa_speeds, usa_speeds
from scipy.integrate import solve_ivp

__all__ = ["SPEEDS", "STEPS", "limiting_gaps", "meetings", "pairings"]

STEPS = 0.5 * np.array([0, 0.5, 2, 4, 7]) * np.log(2000) / np.sqrt(2000)
SPEEDS = {"SA": sa_speeds, "scaled USA": partial(usa_speeds, shift=1.0)}


def _merged(angles: np.ndarray, masses: np.ndarray, i: int) -> tuple[np.ndarray, np.ndarray]:
    """Cluster i and the next one, in their centre of mass."""
    angles, masses = angles.copy(), masses.copy()
    angles[i] = np.average(angles[i : i + 2], weights=masses[i : i + 2])
    masses[i] += masses[i + 1]
    return np.delete(angles, i + 1), np.delete(masses, i + 1)


def pairings(clock: str, beta: float, masses: tuple, tight: float):
    """(time, masses left), the closest pair alone approaching, to the gap `tight`."""
    angles, masses, time = STEPS.copy(), np.array(masses), 0.0
    while len(angles) > 1:
        i = int(np.argmin(np.diff(angles)))
        speeds = SPEEDS[clock](beta, masses[i], masses[i + 1])
        lasts, way = closing_time(speeds, angles[i + 1] - angles[i], tight)
        time, angles[i] = time + lasts, angles[i] + way
        angles[i + 1] = angles[i] + tight
        angles, masses = _merged(angles, masses, i)
        yield time, masses


def meetings(clock: str, beta: float, masses: tuple, tight: float):
    """(time, angles, masses left), all pairs pulling: times t and angles over the closest gap.

    With l = log(gap) as the variable, d theta/dl = v gap/gap' and dt/dl = gap/gap': no time is too
    long.
    """
    angles, masses, time = STEPS.copy(), np.array(masses), 0.0

    def velocity(theta):
        gaps = theta - theta[:, None]
        weights = masses * np.exp(-2 * beta * np.sin(gaps / 2) ** 2)
        v = (weights * np.sin(gaps)).sum(axis=1)
        return v / weights.sum(axis=1) if clock == "SA" else v

    while len(angles) > 1:
        i = int(np.argmin(np.diff(angles)))

        def slope(log_gap, y, i=i):
            theta = y[:-1].copy()
            theta[i + 1] = theta[i] + np.exp(log_gap)
            v = velocity(theta)
            return np.append(v, 1.0) * np.exp(log_gap) / (v[i + 1] - v[i])

        span = (np.log(angles[i + 1] - angles[i]), np.log(tight))
        options = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-15, "max_step": 0.05}
        y = solve_ivp(slope, span, np.append(angles, time), **options).y[:, -1]
        angles, masses = _merged(y[:-1], masses, i)
        time = y[-1]
        yield float(time), angles, masses


def limiting_gaps() -> list[float]:
    """Gaps of the closest pairs, one merging after the other, for beta = infinity."""
    angles, masses, gaps = STEPS, np.ones(len(STEPS)), []
    while len(angles) > 1:
        i = int(np.argmin(np.diff(angles)))
        gaps.append(angles[i + 1] - angles[i])
        angles, masses = _merged(angles, masses, i)
    return gaps
