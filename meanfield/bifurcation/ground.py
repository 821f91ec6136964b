"""Which of the states of a diagram has the least free energy, and where that changes."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.errors import MeanfieldError
from .state import StationaryState

if TYPE_CHECKING:
    from .diagram import Diagram

__all__ = ["Transition", "state", "transition"]


class Transition(NamedTuple):
    """Where the uniform state ceases to be the best.

    Attributes
    ----------
    order : str
        "continuous", or "discontinuous".
    kappa : float
        At which the free energies are equal; nan for SA if it is discontinuous, since there is
        none.
    onset : float
        kappa_c, at which the uniform state loses its stability.
    jump : float
        The order parameter of the new state at `kappa`; for polyhedra and even degrees, the
        size of its first moment that does not vanish.
    hysteresis : (float, float) or None
        From the fold at which the new state begins to kappa_c: both are stable there, unless the
        new one loses its symmetry before, which is among the special points.
    """

    order: str
    kappa: float
    onset: float
    jump: float
    hysteresis: tuple[float, float] | None


def state(diagram: "Diagram", value: float) -> StationaryState:
    """The state of least free energy at a value of the parameter."""
    states = [state for _, state in diagram.states_at(value)]
    if np.isnan(states[0].free_energy):
        raise MeanfieldError(
            f"{diagram.data.attrs['drift']} has no free energy, so no state of it is the ground "
            "state; see which ones are stable: [s.stability().stable for _, s in "
            "diagram.states_at(...)]."
        )
    return min(states, key=lambda state: state.free_energy)


def transition(diagram: "Diagram") -> Transition:
    """The first transition as kappa grows."""
    onsets = diagram.special("bifurcation", 0)
    if diagram.parameter != "kappa":
        raise ValueError(
            "transition is about a diagram in kappa; this one has beta as its parameter: give "
            f"branches {diagram.data.attrs['drift']}(beta=...) and a range of kappa, or see "
            "special_points."
        )
    if not onsets:
        low, high = diagram.data.attrs["kappa"]
        raise ValueError(
            f"The uniform state has no onset for {low:g} < kappa < {high:g}: take a range with it."
        )
    onset = min(onsets, key=lambda special: special.value)
    equation, _ = diagram.path().at(0.0)
    if equation.weights.max() * onset.value > 1 + 1e-9:
        raise ValueError(
            f"The uniform state is unstable before kappa = {onset.value:.6g}, the first onset of "
            "this diagram: take a range, and degrees, with its first one."
        )
    if onset.character == "supercritical":
        earlier = [s for s in diagram.special("transition") if s.value < onset.value]
        if not earlier:
            return Transition("continuous", onset.value, onset.value, 0.0, None)
    equal = [
        s for s in diagram.special("transition")
        if s.value <= onset.value and s.status == "converged"
    ]  # fmt: skip
    first = min(equal, key=lambda special: special.value, default=None)
    branch = None if first is None else first.branch
    folds = [s.value for s in diagram.special("fold", branch) if s.value < onset.value]
    hysteresis = (min(folds), onset.value) if folds else None
    if first is None:
        return Transition("discontinuous", np.nan, onset.value, np.nan, hysteresis)
    moments = np.abs(first.state.legendre_moments)
    jump = moments[np.flatnonzero(moments > 1e-10)[0]]
    return Transition("discontinuous", first.value, onset.value, float(jump), hysteresis)
