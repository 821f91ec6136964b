"""Saddles that bound the basin of a stable stationary state: states of index one.

n tokens leave the basin of a stable state most easily across one of them. Under noise with a free
energy F the mean-field equation is its gradient flow, and it is the lowest on the boundary.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self, overload

import numpy as np

from ..bifurcation import StationaryState, branches
from ..bifurcation.bases import AXISYMMETRIC
from ..bifurcation.families import known_symmetry
from ..bifurcation.multistability import (
    deflated_states,
    model_in,
    same_state,
    state_of,
    states_along,
    states_between,
)
from ..bifurcation.stationary import check_model, check_stationary, state_near
from ..bifurcation.unstable_manifolds import UnstableMode, displaced, multiplicity, unstable_modes
from ..core.cached import cached_property
from ..core.calls import checked_call
from ..core.checks import require
from ..derivatives.variation import comparable
from ..lowlevel.blas import one_blas_thread
from ..lowlevel.progress import SEARCH_FORMAT, Progress
from ..models.transformer import Transformer
from ..results.files import Contents, Result, dataset_of

if TYPE_CHECKING:
    import xarray as xr

NEAREST_KAPPA = 1.3  # branches are followed from kappa over this factor to kappa times it
Watch = Callable[[str], Any]  # is called with what a search does next


@dataclass(frozen=True, eq=False)
class Saddle:
    """A stationary state of index one on the boundary of the basin of a stable state.

    Attributes
    ----------
    state : StationaryState
    barrier : float
        F(saddle) - F(stable state); nan for models without a free energy.
    rate : float
        Growth rate of the unstable perturbation, of the linearised equation.
    order : int
        Order of the unstable perturbation: see `Stability`. 0 keeps the symmetry of the saddle.
    direction : ndarray
        Unstable perturbation of unit norm in L^2, as change of the coefficients of
        ``state.density``; towards the stable state.
    ends : (StationaryState or None, StationaryState or None)
        Stable states at the two ends of the unstable manifold: the one the saddle belongs to, and
        the one beyond. None where the run had not ended.
    """

    state: StationaryState
    barrier: float
    rate: float
    order: int
    direction: np.ndarray
    ends: tuple[StationaryState | None, StationaryState | None]

    index = 1

    @property
    def converged(self) -> bool:
        """Whether the state and both ends of its unstable manifold were found."""
        return self.state.converged and None not in self.ends

    def for_file(self) -> dict[str, Any]:
        """Fields from which `saddle_of` makes the saddle again."""
        return dict(vars(self))

    def __repr__(self) -> str:
        beyond = (
            "not reached" if self.ends[1] is None else f"r = {self.ends[1].order_parameter:.6g}"
        )
        return (
            f"Saddle(r = {self.state.order_parameter:.6g}, barrier {self.barrier:.8g}, rate "
            f"{self.rate:.6g}, beyond it {beyond})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Saddles(Result, Sequence[Saddle]):
    """Saddles around one stable state, in increasing order of their barriers, if there are any.

    One for each orbit under rotations and reflections. Other saddles may exist: see `tried`.

    Attributes
    ----------
    state : StationaryState
        The stable state.
    saddles : tuple of Saddle
    tried : int
        Number of stationary states that were examined.
    symmetry : str or array
        Symmetry among whose states saddles were sought.
    data : xarray.Dataset
        On `saddle`: order_parameter, barrier, rate, order and residual.
    """

    made_by = figure = "saddles"
    takes_model = True
    derived = ("model",)

    data: "xr.Dataset"
    state: StationaryState
    saddles: tuple[Saddle, ...]
    tried: int
    symmetry: Any

    @overload
    def __getitem__(self, index: int) -> Saddle: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Saddle, ...]: ...

    def __getitem__(self, index: Any) -> Any:
        return self.saddles[index]

    def __len__(self) -> int:
        return len(self.saddles)

    @property
    def model(self) -> Transformer:
        return self.state.model

    @property
    def warnings(self) -> list[str]:
        """Sentences that say why there may be no saddle, and what to do."""
        if len(self):
            return []
        if not any(part.interacts for _, part in self.model.drift.terms):
            return [
                "Tokens without interaction have one stationary density, which has no basin to "
                "leave; mf.escape_time(state, 1) is the time of one token to leave a well."
            ]
        return [
            f"None of the {self.tried} stationary states that were found is a saddle beside this "
            "one. mf.stationary_states lists them: if no other one is stable, tokens have nowhere "
            "to go; mf.branches shows where others are. Another symmetry may show more."
        ]

    @classmethod
    def made_of(cls, contents: Contents) -> Self:
        """The saddles from the contents of a file."""
        data, header = dataset_of(contents)
        model, symmetry = model_in(contents, "these saddles"), header["symmetry"]
        around = tuple(saddle_of(model, one, symmetry) for one in header["saddles"])
        stable = state_of(model, header["state"], symmetry)
        check_stationary(contents, stable)
        return cls(data, stable, around, header["tried"], symmetry)

    def __repr__(self) -> str:
        head = f"Saddles({len(self)} around {self.state!r}, of {self.tried} states)"
        lines = [*(f"  {one!r}" for one in self), *(f"  <-- {text}" for text in self.warnings)]
        return "\n".join([head, *lines])


def saddle_of(model: Transformer, stored: dict[str, Any], symmetry: Any) -> Saddle:
    """The saddle from what `Saddle.for_file` returned."""
    here, one, other = (
        None if density is None else state_of(model, density, symmetry)
        for density in (stored["state"], *stored["ends"])
    )
    return Saddle(**stored | {"state": here, "ends": (one, other)})


def state_beyond(saddle: Saddle) -> StationaryState:
    """The stable state beyond a saddle whose ends are known."""
    end = saddle.ends[1]
    assert end is not None
    return end


@checked_call("state")
def saddles(
    state: StationaryState,
    *,
    symmetry: str | np.ndarray = AXISYMMETRIC,
    progress: bool | None = None,
) -> Saddles:
    """States of index one on the boundary of the basin of a stable state.

    They are sought among the results of `stationary_states`, by Newton's method with deflation from
    mixtures of the stable states, and on the branches near the kappa of the model. The unstable
    manifold of each is followed in both directions by backward differentiation formulas; those that
    come to the state are returned.

    Parameters
    ----------
    state : StationaryState
        A stable state on the circle, S^2 or Zonal.
    symmetry : str or array, (k, 3, 3)
        Symmetry of the states among which saddles are sought, as for `stationary`.
    progress : bool, optional
        Show what is computed; by default on a terminal and in a notebook.

    Returns
    -------
    Saddles
        A sequence of `Saddle`, lowest barrier first; empty if none was found. States of lower
        symmetry than the one asked for are not seen. For models without a free energy, such as SA,
        barriers are nan, and the action up to a saddle is that of `transition_path`.

    Raises
    ------
    TypeError, ValueError
        For arguments out of their range, and states that have not converged or are unstable.

    Notes
    -----
    The index is counted among all perturbations, of every symmetry, without rotations. On S^2 and
    Zonal perturbations that turn with an axis come in pairs, so that a saddle of index one is
    unstable to a perturbation with its own symmetry. The cost is that of `stationary_states`,
    `branches` and of two runs for each saddle: about 2 s on the circle, 10 to 25 s on S^2 with a
    group or without. On the torus of two angles in a potential it is minutes: with nine states,
    about one for the states, and at least as long for the branches.

    References
    ----------
    Gvalani and Schlichting, arXiv:1905.11823, on the mountain pass of the free energy;
    Farrell, Birkisson and Funke, SIAM J. Sci. Comput. 37 (2015), for deflation.
    """
    check_stable("state", state)
    check_model(state.model, state.density.space)
    with one_blas_thread(), Progress("saddles", progress, form=SEARCH_FORMAT) as bar:
        search = SaddleSearch(
            state, symmetry, lambda text: bar.show(0.0, f"saddles: {text}"), progress
        )
        around = search.around(state)
    return saddles_of(search.stable[0], around, len(search.known), symmetry)


class SaddleSearch:
    """Saddles around several stable states of one model; what they share is computed once.

    Attributes
    ----------
    symmetry : Any
        Symmetry of the states, as `known_symmetry` returned it.
    watch : callable
        Function that is called with what is done next.
    progress : bool, optional
        Whether branches show a bar of their own.
    known : list of StationaryState
        The stationary states that were examined.
    stable : list of StationaryState
        Those around which saddles were sought.
    """

    def __init__(
        self, state: StationaryState, symmetry: Any, watch: Watch = str,
        progress: bool | None = False,
    ):  # fmt: skip
        self._asked, self._start, self.watch, self.progress = symmetry, state, watch, progress
        self.known: list[StationaryState] = []
        self.stable: list[StationaryState] = []
        self._manifolds: dict[int, Manifold | None] = {}

    @cached_property
    def symmetry(self) -> Any:
        return known_symmetry(self._start.model, self._space, self._asked)

    @property
    def _space(self) -> Any:
        """The space of the least degree, at which searches begin: they refine what they find."""
        space, basis = self._start.density.space, self._start.equation.basis
        return space.with_degree(min(space.degree, basis.least))

    def around(self, state: StationaryState) -> list[Saddle]:
        """Saddles around a stable state, lowest first."""
        check_stable("state", state)
        state = state_near(state.model, state.density, self.symmetry)
        if not any(same_state(state, other) for other in self.stable):
            for found in self._candidates(state):
                if found.converged and not any(same_state(found, other) for other in self.known):
                    self.known.append(found)
            self.stable.append(state)
        each = (self._saddle(i, state) for i in range(len(self.known)))
        return sorted((one for one in each if one is not None), key=lambda one: one.barrier)

    def _saddle(self, i: int, state: StationaryState) -> Saddle | None:
        """The i-th state that is known, if it is a saddle on the boundary of a basin."""
        if i not in self._manifolds:
            self.watch(f"unstable manifold of state {i + 1} of {len(self.known)}")
            self._manifolds[i] = manifold_of(self.known[i], self.symmetry)
        return _saddle_of(self.known[i], self._manifolds[i], state)

    def _candidates(self, state: StationaryState) -> Iterator[StationaryState]:
        """Stationary states of the model, by deflation, from mixtures and on branches.

        Around a second state only mixtures with it are new.
        """
        model, symmetry, space = state.model, self.symmetry, self._space
        first = not self.stable
        yield state
        if first:
            yield from deflated_states(model, space, symmetry, watch=self.watch)
        others = [one for one in self.known if one.stable and not same_state(one, state)]
        for other in others:
            if not any(same_state(other, one) for one in self.stable):
                self.watch(f"{len(self.known)} stationary states, mixtures of two")
                yield from states_between(state, other, symmetry, self.known)
        if first:
            kappa = state.kappa
            span = kappa / NEAREST_KAPPA, kappa * NEAREST_KAPPA
            self.watch(f"{len(self.known)} stationary states, branches through them")
            diagram = branches(
                model.drift, space, span, noise=model.noise, symmetry=self._asked,
                progress=self.progress,
            )  # fmt: skip
            for _, one in diagram.states_at(kappa):
                yield state_near(model, one.density, symmetry)


def check_stable(name: str, state: Any) -> None:
    """Raise unless the argument `name` is a converged, stable stationary state."""
    wanted = "a StationaryState, as `stationary` returns"
    require(name, state, wanted, isinstance(state, StationaryState), TypeError)
    if not state.converged or not state.stable:
        kind = "unstable" if state.converged else f"not converged ({state.status})"
        advice = (
            "Take a stable one of mf.stationary_states(model, space)."
            if state.converged
            else "Give mf.stationary a closer guess, such as the end of a run, or more modes."
        )
        raise ValueError(
            f"{name} must be a stable stationary state; got one that is {kind}, {state!r}. {advice}"
        )


def check_together(names: str, one: StationaryState, other: StationaryState) -> None:
    """Raise ValueError unless two states are of one model on one space, of any degrees."""
    space, others = one.density.space, other.density.space
    if one.model != other.model or not comparable(space, others):
        raise ValueError(
            f"{names} must be of one model on one space; these are of "
            f"{one.model!r} on {space!r} and {other.model!r} on {others!r}."
        )


class Manifold(NamedTuple):
    """The unstable mode of a state of index one, and the stable states at its two ends."""

    mode: UnstableMode
    ends: tuple[StationaryState | None, StationaryState | None]


def manifold_of(found: StationaryState, symmetry: Any) -> Manifold | None:
    """The unstable manifold of a state; None unless its index is one."""
    modes, basis = unstable_modes(found), found.equation.basis
    if sum(multiplicity(basis, mode.order) for mode in modes) != 1:
        return None
    (mode,) = modes
    ends = (states_along(found, side, symmetry) for side in (mode, mode.opposite))
    up, down = (next((end for end in way if end.stable), None) for way in ends)
    return Manifold(mode, (up, down))


def saddle_at(found: StationaryState, state: StationaryState, symmetry: Any) -> Saddle | None:
    """The saddle, if a state has index one and its unstable manifold comes down to `state`."""
    return _saddle_of(found, manifold_of(found, symmetry), state)


def _saddle_of(
    found: StationaryState, manifold: Manifold | None, state: StationaryState
) -> Saddle | None:
    """The saddle with an unstable manifold, if that comes down to `state`."""
    if manifold is None:
        return None
    mode, ends = manifold
    if not any(end is not None and same_state(end, state) for end in ends):
        return None
    if ends[0] is None or not same_state(ends[0], state):
        ends, mode = ends[::-1], mode.opposite
    change = displaced(found, mode, 1.0).coefficients - found.density.coefficients
    barrier = found.free_energy - state.free_energy
    return Saddle(found, barrier, mode.rate, mode.order, change, ends)


def saddles_of(
    state: StationaryState, around: Sequence[Saddle], tried: int, symmetry: Any
) -> Saddles:
    """The saddles of a state, with their table."""
    import xarray as xr

    columns = {
        "order_parameter": [one.state.order_parameter for one in around],
        "barrier": [one.barrier for one in around],
        "rate": [one.rate for one in around],
        "order": [one.order for one in around],
        "residual": [one.state.residual for one in around],
    }
    table = xr.Dataset({name: ("saddle", column) for name, column in columns.items()})
    return Saddles(table, state, tuple(around), tried, symmetry)
