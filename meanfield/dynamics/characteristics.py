"""Characteristics: nodes of a quadrature that the flow carries, x' = v[mu](x).

v = grad (W * mu) / (Z * mu), by harmonics.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..models.zonal import kernel_degree
from ..spaces.characteristics import Characteristics
from ..spaces.contract import dimension_of_harmonics
from .density import interaction_energy
from .motion import Failure, Motion
from .observables import MOMENTS, declare

declare("w2_to_dirac", r"$W_2$ to a Dirac (rad)", log_from=100.0)
declare("cluster_mass", "masses of clusters")
declare("quadrature_error", "quadrature error", log_from=1.0)

EPSILON = 2.0**-52
FINEST = 1e-5  # distances to which W2 keeps its relative accuracy, or coarser with rtol
INTERACTION = 1e-6  # largest change of the first velocities if half of the nodes are left out
W2 = 0.05  # of W2 to a Dirac, relative
ROUNDING = 0.01  # of velocities, relative
AT_THE_ANTIPODE = 1e-12


class CharacteristicsMotion(Motion, moves=Characteristics):
    """Velocities of the nodes of a quadrature under a deterministic model.

    After every step it is seen whether the nodes still resolve the density.

    Parameters
    ----------
    model : Transformer
        A single one, without noise.
    state : Characteristics
    rtol : float
        The error control will ask for this accuracy.

    Attributes
    ----------
    unresolved_since : float or None
        The first time at which the nodes did not resolve the density.
    last_to_arrive : list of float or None
        Where the node started that is then the farthest from the mean direction.

    Raises
    ------
    TypeError, ValueError
        For a model with noise, an ensemble.
    MeanfieldError
        If the kernel's harmonics do not decay.
    """

    example = "Characteristics(density)"
    smallest_change = 1e-15
    unresolved_since: float | None
    last_to_arrive: list[float] | None
    _reason: str | None
    refusals = dict.fromkeys(
        ("min_degree", "max_degree"),
        "min_degree and max_degree bound the modes of a Density; Characteristics has none. Its "
        "accuracy is that of its nodes: Characteristics(density, nodes=...).",
    )

    def setup(self) -> None:
        """Multipliers up to the degree where those of the kernel have decayed."""
        model, state = self.model, self.like
        self.chart, self.masses = state.chart, state.masses
        dimension = state.geometry.dimension
        self.degree = kernel_degree(model.zonal, dimension)
        self.attraction = model.zonal.attraction(self.degree, dimension)
        self.normaliser = model.zonal.normaliser(self.degree, dimension)
        self._finest = max(FINEST, 1e-15 / self.rtol)
        self.restore(dict.fromkeys(("unresolved_since", "reason", "last_to_arrive")))

    def check(self) -> None:
        """Raise ValueError or MeanfieldError for noise, ensembles, and drifts without harmonics."""
        model = self.model
        if model.noisy:
            raise ValueError(
                "Characteristics carries densities without noise, kappa = inf and common=None; got "
                f"{model!r}. Solve for the density itself, on Circle or Sphere, or for Tokens."
            )
        self.prepared(model, self.like)  # refuses ensembles
        model.zonal  # noqa: B018  (raises)

    def begin(self, y: np.ndarray, t: float) -> None:
        """Raise ValueError if the nodes do not resolve the interaction to begin with."""
        error = self.halved_error(y, self.like.halves)
        if not error <= INTERACTION:
            raise ValueError(
                f"{len(self.like)} nodes do not resolve this interaction: half of them change the "
                f"velocities by {error:.1e}, expected <= {INTERACTION:.0e}. Use more nodes: "
                f"Characteristics(density, nodes={4 * len(self.like)})."
            )

    def coordinates(self, state: Characteristics) -> np.ndarray:
        """Coordinates of the nodes, see `Chart`."""
        return state.coordinates

    def state_of(self, y: np.ndarray) -> Characteristics:
        """The state with these coordinates."""
        return self.like.moved(y)

    def velocity(self, y: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Rates of change of the coordinates."""
        return self.chart.velocity(y, self.masses, self.attraction, self.normaliser)

    def halved_error(self, x: np.ndarray, halves: Sequence[np.ndarray]) -> float:
        """Change of the velocities if only every second node is used.

        Relative to W'(1) / Z(1), the rate at which points move towards a Dirac next to them.
        """
        l, d = np.arange(self.degree + 1), self.chart.geometry.dimension
        with np.errstate(over="ignore", invalid="ignore"):
            harmonics = np.array([dimension_of_harmonics(int(k), d) for k in l])
            scale = (np.abs(self.attraction) * harmonics * l * (l + d - 2) / (d - 1)).sum()
            if self.normaliser is not None:
                scale /= np.abs(self.normaliser * harmonics).sum()
        velocity, change = self.velocity(x), 0.0
        for half in halves:
            masses = np.where(half, 2 * self.masses, 0.0)
            other = self.chart.velocity(x, masses, self.attraction, self.normaliser)
            change = max(change, float(self.chart.lengths(x, other - velocity).max()))
        return change / scale if scale != 0 else 0.0

    def rounding(self, state: Characteristics) -> float:
        """Relative error of velocities by rounding, where there is least mass around.

        v = grad (W * mu) / (Z * mu): both have the absolute accuracy of their largest values.
        """
        if self.normaliser is None:
            return EPSILON
        fine = state.geometry.with_degree(self.degree)
        level = self.normaliser[fine.degrees] * state.coefficients(self.degree)
        values = fine.at(level, state.points)
        return float(EPSILON * values.max() / max(values.min(), np.finfo(float).tiny))

    def relative_error(self, error: np.ndarray, y: np.ndarray) -> float:
        """As `Chart.relative_error`."""
        return self.chart.relative_error(error, y, self.masses, self._finest)

    def projected(self, y: np.ndarray) -> np.ndarray:
        """As `Chart.projected`."""
        return self.chart.projected(y)

    def rate(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """(int |v|^2 dmu)^(1/2), the speed in W2."""
        return float(np.sqrt(self.masses @ self.chart.lengths(y, velocity) ** 2))

    # Along a run ---------------------------------------------------------------------------

    def after_step(self, y: np.ndarray, t: float) -> None:
        """Look whether the nodes resolve the density; the first reason for doubt stays."""
        if self._reason is None and (reason := self._unresolved(self.like.moved(y))):
            self._reason, self.unresolved_since = f"After t = {t:g} {reason}", t

    def _unresolved(self, state: Characteristics) -> str | None:
        """What the nodes do not resolve, and what helps; None if they resolve everything."""
        if not state.resolved:
            return (
                f"the {len(state)} nodes no longer resolve the density: half of them give moments "
                f"that differ by {state.quadrature_error:.1e}. Between two clusters the nodes lie "
                "ever further apart; masses of clusters are uncertain by about as much. Use more "
                "nodes, Characteristics(density, nodes=...)."
            )
        if state.w2_to_dirac() < state.chart.smallest_w2:
            return (
                f"W2 to a Dirac is below {state.chart.smallest_w2:g}, where the mass that is too "
                "close to the antipode for any node, or for rounding, counts: take it for 0. "
                "Moments and clusters are as accurate as before."
            )
        if state.w2_error > W2:
            farthest = state.chart.distances(state.coordinates, state.mean_direction).argmax()
            place = self.like.points[farthest]
            self.last_to_arrive = place.tolist()
            if np.linalg.norm(place + self.like.limit) < AT_THE_ANTIPODE:
                remedy = (
                    "half of the nodes change it. Use more: Characteristics(density, nodes=...)"
                )
            else:
                remedy = (
                    f"the last mass to arrive starts near [{', '.join(f'{x:.4f}' for x in place)}],"
                    " and the nodes are graded towards the antipode of limit. Use limit = -p with "
                    'p that point; stats["last_to_arrive"] has its last digit'
                )
            return f"W2 to a Dirac is not resolved: {remedy}."
        if (rounding := self.rounding(state)) > ROUNDING:
            return (
                "velocities far from all mass are lost in rounding: their relative error is "
                f"{rounding:.1e}, about 1e-16 exp(2 beta). What is still there moves at random; a "
                "smaller beta, or USA, has no such bound."
            )
        return None

    def doubt(self, state: Characteristics, t: float, failure: Failure) -> str | None:
        """Whether the nodes resolved the density all the way to t."""
        return self._reason if self._unresolved_at(t) else None

    def _unresolved_at(self, t: float) -> bool:
        """Whether the nodes failed by t; a step may have gone on beyond the last state."""
        return self.unresolved_since is not None and self.unresolved_since <= t

    def snapshot(self) -> dict[str, Any]:
        """What was found so far."""
        return {
            "unresolved_since": self.unresolved_since,
            "reason": self._reason,
            "last_to_arrive": self.last_to_arrive,
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go back to a snapshot."""
        self.unresolved_since, self._reason = snapshot["unresolved_since"], snapshot["reason"]
        self.last_to_arrive = snapshot["last_to_arrive"]

    def stats(self, state: Characteristics, t: float) -> dict[str, Any]:
        """How the nodes resolve the density."""
        failed = self._unresolved_at(t)
        return {
            "nodes": len(self.like),
            "kernel_degree": self.degree,
            "quadrature_error": state.quadrature_error,
            "unresolved_since": self.unresolved_since if failed else None,
            "last_to_arrive": self.last_to_arrive if failed else None,
        }

    def why_rejected(self, at: Failure) -> str:
        """Why no step was short enough."""
        return "rounding errors are larger. Use a larger rtol."

    # Measured ------------------------------------------------------------------------------

    def measure(self, state: Characteristics, t: float = 0.0) -> dict[str, Any]:
        """Observables of characteristics.

        Returns
        -------
        dict of ndarray
            mass, moment, order_parameter, interaction_energy, free_energy, dissipation : as of a
                density; the free energy is -E, and the dissipation int |v|^2 dmu
            speed : (int |v|^2 dmu)^(1/2), that of mu_t in W2
            w2_to_dirac : W2 to the Dirac at `limit_point`, in radians
            limit_point : (d,), the direction of int x dmu
            cluster_count : number of `Characteristics.clusters`
            cluster_mass, cluster_point : (count,) and (count, d), the heaviest first
            quadrature_error : change of the moments if half of the nodes are left out
        """
        geometry = state.geometry.with_degree(MOMENTS)
        low = state.coefficients(MOMENTS)
        moments = [geometry.scalar_moment(low, k) for k in range(1, MOMENTS + 1)]
        speed = self.rate(state.coordinates, self.velocity(state.coordinates))
        fine = state.geometry.with_degree(self.degree)
        energy = interaction_energy(self.model, fine, state.coefficients(self.degree))
        clusters = state.clusters()
        gradient_flow = self.model.drift.gradient_flow
        return {
            "moment": np.stack(moments).astype(complex),
            "order_parameter": np.abs(moments[0]),
            "free_energy": -energy if gradient_flow else np.nan,
            "dissipation": speed**2 if gradient_flow else np.nan,
            "w2_to_dirac": state.w2_to_dirac(),
            "speed": speed,
            "limit_point": state.mean_direction,
            "cluster_count": len(clusters),
            "cluster_mass": np.array([cluster.mass for cluster in clusters], dtype=float),
            "cluster_point": np.reshape(
                [cluster.point for cluster in clusters], (-1, geometry.dimension)
            ),
            "interaction_energy": energy,
            "mass": state.mass,
            "quadrature_error": state.quadrature_error,
        }
