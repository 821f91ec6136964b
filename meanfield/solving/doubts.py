"""Whether the nodes of characteristics resolve their density, looked at after every step."""

from typing import Any

import numpy as np

from ..dynamics import CharacteristicsMotion
from ..spaces.characteristics import Characteristics

__all__ = ["Doubts"]

INTERACTION = 1e-6  # largest change of the first velocities if half of the nodes are left out
W2 = 0.05  # of W2 to a Dirac, relative
ROUNDING = 0.01  # of velocities, relative
AT_THE_ANTIPODE = 1e-12


class Doubts:
    """The first time at which a state is not resolved, and why.

    Raises
    ------
    ValueError
        If the nodes do not resolve the interaction to begin with.
    """

    def __init__(self, first: Characteristics, motion: CharacteristicsMotion):
        self._first, self._motion = first, motion
        self.since: float | None = None
        self.text: str | None = None
        self.last_to_arrive: list[float] | None = None
        error = motion.halved_error(first.coordinates, first.halves)
        if error > INTERACTION:
            raise ValueError(
                f"{len(first)} nodes do not resolve this interaction: half of them change the "
                f"velocities by {error:.1e}, expected <= {INTERACTION:.0e}. Use more nodes: "
                f"Characteristics(density, nodes={4 * len(first)})."
            )

    def look(self, t: float, state: Characteristics) -> None:
        """Look at the state at a time; the first reason for doubt stays."""
        if self.text is not None:
            return
        if not state.resolved:
            self.text = (
                f"After t = {t:g} the {len(state)} nodes no longer resolve the density: half of "
                f"them give moments that differ by {state.quadrature_error:.1e}. Between two "
                "clusters the nodes lie ever further apart; masses of clusters are uncertain by "
                "about as much. Use more nodes, Characteristics(density, nodes=...)."
            )
        elif state.w2_to_dirac() < state.chart.smallest_w2:
            self.text = (
                f"After t = {t:g} W2 to a Dirac is below {state.chart.smallest_w2:g}, where the "
                "mass that is too close to the antipode for any node, or for rounding, counts: "
                "take it for 0. Moments and clusters are as accurate as before."
            )
        elif state.w2_error > W2:
            self.last_to_arrive = self._farthest(state)
            self.text = f"After t = {t:g} W2 to a Dirac is not resolved: " + self._remedy()
        elif (rounding := self._motion.rounding(state)) > ROUNDING:
            self.text = (
                f"After t = {t:g} velocities far from all mass are lost in rounding: their "
                f"relative error is {rounding:.1e}, about 1e-16 exp(2 beta). What is still there "
                "moves at random; a smaller beta, or USA, has no such bound."
            )
        self.since = t if self.text else None

    def _remedy(self) -> str:
        place = np.array(self.last_to_arrive)
        if np.linalg.norm(place + self._first.limit) < AT_THE_ANTIPODE:
            return "half of the nodes change it. Use more: Characteristics(density, nodes=...)."
        return (
            "the last mass to arrive starts near "
            f"[{', '.join(f'{x:.4f}' for x in place)}], and the nodes are graded towards the "
            'antipode of limit. Use limit = -p with p that point; stats["last_to_arrive"] has '
            "its last digit."
        )

    def forget_after(self, t: float) -> None:
        """Nothing is known after the end of a run, which was within the last step."""
        if self.since is not None and self.since > t:
            self.since = self.text = self.last_to_arrive = None

    def _farthest(self, state: Characteristics) -> list[float]:
        """Where the node that is now the farthest from the mean direction started."""
        distances = state.chart.distances(state.coordinates, state.mean_direction)
        return self._first.points[distances.argmax()].tolist()

    def snapshot(self) -> list[Any]:
        """What was found so far, as plain data."""
        return [self.since, self.text, self.last_to_arrive]

    def restore(self, snapshot: list[Any]) -> None:
        """Go back to a snapshot."""
        self.since, self.text, self.last_to_arrive = snapshot
