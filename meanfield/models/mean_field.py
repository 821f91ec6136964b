"""The velocity field of a computed run of densities, in which tokens move independently."""

import numpy as np

from ..core.annotations import FromAbove, OfLibrary
from ..core.cached import cached_property
from ..core.checks import require
from ..core.errors import MeanfieldError
from ..spaces.contract import Space
from ..spaces.density import Density
from .drift import Drift

TIME_BEYOND_END = 1e-12
SPLINE_POINTS = 4  # points of a cubic spline


class MeanField(Drift):
    """The velocity v[mu_t] of a run of densities, at any point x and time t of the run.

    Independent tokens under this velocity, with the noise of the run's model, are the nonlinear
    process of McKean and Vlasov: each has the law mu_t if it starts from mu_0. With the `rng` and
    `dt` of a run of interacting tokens they have the same Brownian increments: the coupling that
    proofs of propagation of chaos use.

    Parameters
    ----------
    run : Solution
        A run of a single density on the circle, S^2 or a torus, under any drift. Between outputs
        the coefficients are interpolated by splines of order 4: choose outputs as close as the time
        steps of the tokens.

    Raises
    ------
    TypeError, ValueError
        For another run, or one of fewer than 4 outputs.

    Examples
    --------
    ``mf.solve(mf.Transformer(mf.MeanField(run), kappa=3.0), tokens, (0, 5), rng=0, dt=0.01)``
    """

    source: Drift
    t: np.ndarray
    space: Space
    values: np.ndarray

    def __init__(self, run: FromAbove):
        states: FromAbove = getattr(run, "states", [])
        first: FromAbove = states[0] if len(states) else None
        fits = type(first) is Density and not first.space.axisymmetric
        require("run", run, "one of densities on the circle, S^2 or a torus", fits, TypeError)
        if first.shape or len(states) < SPLINE_POINTS:
            raise ValueError(
                f"MeanField expects a run of a single density with {SPLINE_POINTS} outputs or "
                f"more; got ensemble shape {first.shape}, {len(states)} outputs."
            )
        degree = max(state.space.degree for state in states)
        resampled = [s.space.resample(s.coefficients, degree) for s in states]
        self._set(
            source=run.model.drift,
            t=np.array(run.t, dtype=float),
            space=first.space.with_degree(degree),
            values=np.stack(resampled),
        )

    @cached_property
    def _spline(self) -> OfLibrary:
        from scipy.interpolate import CubicSpline

        return CubicSpline(self.t, self.values)

    def coefficients(self, t: float) -> np.ndarray:
        """Coefficients (modes,) of mu_t; raises MeanfieldError before and after the run."""
        margin = TIME_BEYOND_END * (self.t[-1] - self.t[0])
        if not self.t[0] - margin <= t <= self.t[-1] + margin:
            raise MeanfieldError(
                f"The densities of this field are known for {self.t[0]:g} <= t <= {self.t[-1]:g}; "
                f"asked for t = {t:g}."
            )
        return self._spline(t)

    why_no_density = (
        "it is the velocity of tokens in the field of a run of densities, which is solved already."
    )
    has_table = False
    constant = False
    on_sphere_only = True

    @property
    def dimension(self) -> int:  # type: ignore[override]
        return self.space.dimension

    def rate(self, t: float = 0.0) -> np.ndarray:
        return self.source.rate(t)

    def identity(self) -> object:
        return [self.source, self.t, self.space.described, self.values]

    def __repr__(self) -> str:
        return f"MeanField({self.source!r}, {self.t[0]:g} <= t <= {self.t[-1]:g})"
