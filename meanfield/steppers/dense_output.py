"""Dense output of Dormand and Prince's scheme of order 8: the state within a step, to order 7."""

from collections.abc import Callable

import numpy as np

from .combination import combined

__all__ = ["Interpolant"]

_NODES = (0.1, 0.2, 0.7777777777777778)
_STAGES = (
    {
        0: 0.056167502283047954,
        6: 0.25350021021662483,
        7: -0.2462390374708025,
        8: -0.12419142326381637,
        9: 0.15329179827876568,
        10: 0.00820105229563469,
        11: 0.007567897660545699,
        12: -0.008298,
    },
    {
        0: 0.03183464816350214,
        5: 0.028300909672366776,
        6: 0.053541988307438566,
        7: -0.05492374857139099,
        10: -0.00010834732869724932,
        11: 0.0003825710908356584,
        12: -0.00034046500868740456,
        13: 0.1413124436746325,
    },
    {
        0: -0.42889630158379194,
        5: -4.697621415361164,
        6: 7.683421196062599,
        7: 4.06898981839711,
        8: 0.3567271874552811,
        12: -0.0013990241651590145,
        13: 2.9475147891527724,
        14: -9.15095847217987,
    },
)
_WEIGHTS = (
    {
        0: -8.428938276109013,
        5: 0.5667149535193777,
        6: -3.0689499459498917,
        7: 2.38466765651207,
        8: 2.117034582445028,
        9: -0.871391583777973,
        10: 2.2404374302607883,
        11: 0.6315787787694688,
        12: -0.08899033645133331,
        13: 18.148505520854727,
        14: -9.194632392478356,
        15: -4.436036387594894,
    },
    {
        0: 10.427508642579134,
        5: 242.28349177525817,
        6: 165.20045171727028,
        7: -374.5467547226902,
        8: -22.113666853125306,
        9: 7.733432668472264,
        10: -30.674084731089398,
        11: -9.332130526430229,
        12: 15.697238121770845,
        13: -31.139403219565178,
        14: -9.35292435884448,
        15: 35.81684148639408,
    },
    {
        0: 19.985053242002433,
        5: -387.0373087493518,
        6: -189.17813819516758,
        7: 527.8081592054236,
        8: -11.57390253995963,
        9: 6.8812326946963,
        10: -1.0006050966910838,
        11: 0.7777137798053443,
        12: -2.778205752353508,
        13: -60.19669523126412,
        14: 84.32040550667716,
        15: 11.99229113618279,
    },
    {
        0: -25.69393346270375,
        5: -154.18974869023643,
        6: -231.5293791760455,
        7: 357.6391179106141,
        8: 93.40532418362432,
        9: -37.45832313645163,
        10: 104.0996495089623,
        11: 29.8402934266605,
        12: -43.53345659001114,
        13: 96.32455395918828,
        14: -39.17726167561544,
        15: -149.72683625798564,
    },
)


class Interpolant:
    """The state between the ends of one step, a polynomial of degree 7 in time.

    Parameters
    ----------
    velocity : callable
        (x, t) -> dx/dt.
    x, new : ndarray
        At the beginning and at the end of the step.
    slopes : ndarray, (13, x.size)
        The velocities of the stages, and that at the end.
    t, dt : float

    Notes
    -----
    Three more velocities.

    References
    ----------
    Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, section II.6, DOP853.
    """

    def __init__(self, velocity: Callable, x, new, slopes, t: float, dt: float):
        self._x, self._t, self._dt = x, t, dt
        known = np.concatenate([slopes, np.empty((len(_STAGES), x.size))])
        for i, (node, stage) in enumerate(zip(_NODES, _STAGES, strict=True), start=len(slopes)):
            place = combined(_row(stage), known, dt, x)
            known[i] = velocity(place, t + node * dt).ravel()
        change = (new - x).ravel()
        first, last = dt * slopes[0], dt * slopes[-1]
        self._terms = [change, first - change, 2 * change - last - first]
        self._terms += [combined(_row(weights), known, dt) for weights in _WEIGHTS]

    def __call__(self, t: float) -> np.ndarray:
        """The state at a time within the step."""
        s = (t - self._t) / self._dt
        return self._x + _sum(self._terms, s).reshape(self._x.shape)

    def of(self, picked: Callable) -> Callable:
        """A linear function of the state, `picked`, as a function of the part s of the step.

        Differences of values that are close keep their digits.
        """
        first, *terms = (
            picked(values.reshape(self._x.shape)) for values in (self._x, *self._terms)
        )
        return lambda s: first + _sum(terms, s)


def _sum(terms, s) -> np.ndarray:
    """The change since the beginning, at the part s of the step."""
    total = np.zeros_like(terms[0])
    for i, term in enumerate(reversed(terms)):
        total += term
        total *= s if i % 2 == 0 else 1 - s
    return total


def _row(weights: dict[int, float]) -> np.ndarray:
    return np.array([weights.get(stage, 0.0) for stage in range(max(weights) + 1)])
