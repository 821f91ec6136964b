"""Several stationary states of one model, by Newton's method with deflation from many starts."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from ..core.calls import checked_call
from ..core.checks import generator, is_whole, require, whole_number
from ..core.errors import StorageError
from ..core.forms import Natural
from ..derivatives.variation import comparable
from ..lowlevel.blas import one_blas_thread
from ..lowlevel.progress import SEARCH_FORMAT, Progress
from ..models.transformer import Transformer
from ..results.files import Contents, Result, dataset_of, stored_model
from ..spaces import Density, Space
from .bases import AXISYMMETRIC, Basis
from .families import basis_of, equation_of, known_symmetry
from .index_sums import index_sum
from .stability import GROWING_RATE
from .stationary import (
    AT_STATE,
    StationaryState,
    check_model,
    check_stationary,
    l2_distance,
    recognised,
    settled,
    state_near,
    turned_alike,
)
from .unstable_manifolds import (
    MOST_FLOW_PARTS,
    UnstableMode,
    basis_without,
    displaced,
    flow_from,
    searched,
    unstable_modes,
)

if TYPE_CHECKING:
    import xarray as xr

MOST_STATES = 20  # by default
GUESSED_FUNCTIONS = 6  # number of functions p_l from which guesses are made
DRAWN_DEGREE, DRAWN_SIZE = 3, 2.0  # of the exponents of random starts: degree, size of degree 1
MIXTURES = (0.15, 0.3, 0.5, 0.7, 0.85)  # shares of another stable state in guesses
DISPLACEMENTS = (0.5, 0.2), (0.1, 0.05), (0.025, 0.0125)  # L^2, of starts, by rounds
SEARCHED_PARTS = 4  # of the flow from an unstable state, in which it comes to another one


@dataclass(frozen=True, eq=False, repr=False)
class StationaryStates(Result, Sequence[StationaryState]):
    """Stationary states of one model: a sequence of `StationaryState`.

    In increasing order of the free energy or, if there is none, in decreasing order of the order
    parameter.

    Attributes
    ----------
    model : Transformer
    states : tuple of StationaryState
    tried : int
        Number of calls of Newton's method.
    starts : int
        Number of starts from which it was called.
    unresolved : int
        Number of its calls that ended at states which no allowed degree resolves: left out.
    cut_off : bool
        Whether the search ended because it had as many states as its `count` allows.
    symmetry : str or array
    index_sum : int or None
        Sum over these states and their images of (-1)^k, k the number of growing perturbations with
        the symmetry of the search. It is 1 if no state is missing: another sum is a warning, but
        missing states may cancel, as two do that are born at a fold. None if it is not known: with
        a group on S^2, at a bifurcation, or in older files.
    data : xarray.Dataset
        On `state`: order_parameter, free_energy, speed, growth (the largest growth rate, rotations
        excluded) and residual.
    """

    made_by = figure = "stationary_states"
    takes_model = True

    data: "xr.Dataset"
    model: Transformer
    states: tuple[StationaryState, ...]
    tried: int
    starts: int
    unresolved: int
    cut_off: bool
    symmetry: Any
    index_sum: int | None = None

    @property
    def warnings(self) -> list[str]:
        """Sentences that say what the search left out, or cannot have found."""
        sentences = []
        if self.unresolved:
            sentences.append(
                f"At {self.unresolved} of {self.tried} calls Newton's method ended at a state that "
                "the highest degree does not resolve, and which is left out. mf.stationary with a "
                "larger max_degree computes it from a density near to it."
            )
        if self.cut_off:
            sentences.append(
                f"The search ended with {len(self)} states, as many as count allows: there "
                "may be others."
            )
        elif len(self) and not any(self.data.growth.values <= GROWING_RATE):
            sentences.append(
                "None of these states is stable. Others exist, perhaps without this symmetry, or "
                "waves or cycles: solve the model from a density near to one of them."
            )
        if self.index_sum not in (None, 1) and not (self.unresolved or self.cut_off):
            sentences.append(
                f"The indices (-1)^k of these states, with k growing perturbations, and of their "
                f"images sum to {self.index_sum}, not 1: at least one state is missing. Search "
                "from more starts, such as starts=20 with rng=0."
            )
        return sentences

    @overload
    def __getitem__(self, index: int) -> StationaryState: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[StationaryState, ...]: ...

    def __getitem__(self, index: Any) -> Any:
        return self.states[index]

    def __len__(self) -> int:
        return len(self.states)

    @classmethod
    def made_of(cls, contents: Contents) -> Self:
        """The states from the contents of a file."""
        data, header = dataset_of(contents)
        model = model_in(contents, "these states")
        pairs = zip(header["states"], data.residual.values, strict=True)
        states = tuple(state_of(model, one, header["symmetry"], float(r)) for one, r in pairs)
        check_stationary(contents, *states)
        return cls(data, **header | {"model": model, "states": states})

    def __repr__(self) -> str:
        lines = [
            f"StationaryStates({len(self)} of {self.model!r}, by {self.tried} calls of Newton's "
            f"method from {self.starts} starts)"
        ]
        lines += [f"  {state!r}" for state in self.states]
        return "\n".join([*lines, *(f"  <-- {warning}" for warning in self.warnings)])


def model_in(contents: Contents, what: str) -> Transformer:
    """The model in the header of a file; StorageError if functions of it are lost, `what` it is."""
    model, lost = stored_model(contents)
    if lost:
        raise StorageError(
            f"The model of {what} has functions that files do not hold: {lost}. Give it, "
            "mf.load(path, model=model); xarray.open_dataset reads the table alone."
        )
    return model


def state_of(
    model: Transformer, density: Density, symmetry: Any, residual: float | None = None
) -> StationaryState:
    """The converged state with a density of a file; its residual is computed if not given."""
    basis = basis_of([model], density.space, symmetry)
    wide = basis.finer(density.space.degree)
    moments, axis = wide.moments(density)
    basis, m = wide.fitted(moments)
    equation, text = equation_of(model, basis), "A state of a file."
    if residual is None:
        residual = equation.residual(m, float(model.kappa))
    return StationaryState(model, "converged", text, [residual], m, equation, axis)


@checked_call("starts")
def stationary_states(
    model: Transformer,
    space: Any,
    *,
    starts: Any = None,
    rng: Any = None,
    symmetry: str | np.ndarray = AXISYMMETRIC,
    count: Natural = MOST_STATES,
    progress: bool | None = None,
) -> StationaryStates:
    """Compute several stationary states of a model, by deflation from many starts.

    From each start, Newton's method with deflation is repeated until it fails to converge. Unstable
    states lead to others along their unstable modes, see `starts`. No search is sure to find all
    states: `index_sum` of the result shows most failures.

    Parameters
    ----------
    model : Transformer
        As for `stationary`.
    space : Circle, Sphere, Torus or Zonal; or Density or Indexed
        A density stands for its space.
    starts : sequence of densities, or int, optional
        Densities to start from, instead of the default ones. Or the number of random densities
        exp(f)/const, f random of degree 3, to start from after the default ones; they need `rng`.
        By default the uniform density, exp(p_l)/const and exp(-p_l)/const for the first six
        functions p_l of the symmetry and, for drifts with a potential, the results of 30 steps
        mu <- exp(kappa g[mu])/const from them, which lower the free energy if W is positive.
        Afterwards each unstable state, displaced along each unstable mode of the symmetry of the
        search by 0.5 and 0.2 in L^2, and by 0.1 to 0.0125 while `index_sum` is not 1. Then, without
        deflation: the flow of the density from both sides of each state of index one among states
        of its symmetry; and mixtures of the state that the uniform density leads to with each other
        state, if both are stable. These are repeated for new states. With a given sequence no other
        starts are used.
    rng : numpy.random.Generator or seed, optional
        Source of the random starts.
    symmetry : str
        As for `stationary`.
    count : int
        Largest number of states.
    progress : bool, optional
        Show what is computed; by default on a terminal and in a notebook.

    Returns
    -------
    StationaryStates
        A sequence of converged states, the uniform one included, which says how many starts and
        calls of Newton's method it took. Other states may exist; see `warnings`.

    Raises
    ------
    TypeError, ValueError, MeanfieldError
        As `stationary`.

    References
    ----------
    Farrell, Birkisson and Funke, SIAM J. Sci. Comput. 37 (2015), for deflation; Yin, Wang, Chen,
    Zhang and Zhang, Phys. Rev. Lett. 124, 090601 (2020), for searches down from states of high
    index.
    """
    space = space.space if isinstance(space, Density) else space
    wanted = "a space such as Circle(32), or a density on one"
    require("space", space, wanted, isinstance(space, Space), TypeError)
    check_model(model, space)
    with one_blas_thread(), Progress("stationary states", progress, form=SEARCH_FORMAT) as bar:
        watch = partial(bar.show, 0.0)
        return deflated_states(model, space, symmetry, starts, rng, count, watch)


def deflated_states(
    model: Transformer, space: Any, symmetry: Any, starts: Any = None, rng: Any = None,
    count: int = MOST_STATES, watch: Callable[[str], Any] = str,
) -> StationaryStates:  # fmt: skip
    """The result of `stationary_states`; `watch` is called with a text before each search.

    `symmetry` may be what `known_symmetry` returned.
    """
    known = known_symmetry(model, space, symmetry)
    basis = basis_of([model], space, known)
    states: list[StationaryState] = []
    seen: list[StationaryState] = []  # with those that no degree resolves, which are avoided too
    tried = begun = 0

    def added(new: StationaryState) -> bool:
        nonlocal tried
        tried += 1
        if new.status == "unresolved":
            seen.append(new)
        elif new.converged and not any(same_state(new, state) for state in states):
            seen.append(new)
            states.append(new)
            return len(states) < count
        return False

    for guess, repeated in _starts(model, space, basis, starts, rng):
        begun += 1
        more = len(states) < count
        while more:
            watch(f"{len(states)} stationary states from {begun} starts")
            more = added(state_near(model, guess, known, seen)) and repeated
    examined, rounds = 0, () if np.iterable(starts) else DISPLACEMENTS
    for sizes in rounds:
        number = 0
        while number < len(states) < count:
            one, number = states[number], number + 1
            others = states_around(one, known, seen, basis.degree, sizes)
            beside = _others(one, states[0], known, seen) if number > examined else ()
            for new in chain(others, beside):
                begun += 1
                added(new)
                watch(f"{len(states)} stationary states, from state {number} to others")
                if len(states) == count:
                    break
        examined = len(states)
        if index_sum(states) in (None, 1):
            break
    energies = [-s.order_parameter if np.isnan(s.free_energy) else s.free_energy for s in states]
    ordered = tuple(states[i] for i in np.argsort(energies, kind="stable"))
    search = (tried, begun, len(seen) - len(states), len(states) == count, symmetry)
    return StationaryStates(_table(ordered), model, ordered, *search, index_sum(ordered))


def _others(
    one: StationaryState, first: StationaryState, symmetry: Any, seen: Sequence[StationaryState]
) -> Iterator[StationaryState]:
    """States to which an unstable state leads, or mixtures of a stable one with the first."""
    if not one.stable:
        yield from states_beside(one, symmetry, seen)
    elif one is not first and first.stable:
        yield from states_between(first, one, symmetry, seen)


def _table(states: Sequence[StationaryState]) -> "xr.Dataset":
    import xarray as xr

    names = "order_parameter", "free_energy", "speed", "residual"
    columns = {name: [getattr(state, name) for state in states] for name in names}
    columns["growth"] = [-state.leading.gap for state in states]
    return xr.Dataset({name: ("state", column) for name, column in columns.items()})


def _starts(
    model: Transformer, space: Space, basis: Basis, starts: Any, rng: Any
) -> Iterator[tuple[Density, bool]]:
    """Starts, and whether Newton's method is repeated from each."""
    random_numbers = generator(rng)
    if np.iterable(starts):
        starts = list(starts)
        require("starts", starts, "one density or more, or a number", bool(starts))
        for start in starts:
            on_space = isinstance(start, Density) and comparable(start.space, space)
            require("starts", start, f"densities on {space!r}", on_space, TypeError)
            yield start, True
        return
    number = 0 if starts is None else starts
    expected = "densities, or a number of random ones"
    require("starts", starts, expected, is_whole(number), TypeError)
    number = whole_number("starts", number, least=0)
    yield space.uniform(), False
    for guess in _guesses(model, basis):
        yield guess, True
    if number:
        degrees = basis.degrees[basis.degrees <= max(DRAWN_DEGREE, basis.degrees[0])]
        for _ in range(number):
            c = DRAWN_SIZE * random_numbers.standard_normal(degrees.size) / degrees
            yield basis.density(basis.tilted(c), basis.axis), True


def states_between(
    one: StationaryState,
    other: StationaryState,
    symmetry: Any,
    known: Sequence[StationaryState] = (),
) -> Iterator[StationaryState]:
    """States found by Newton's method from mixtures (1 - s) one + s other, `known` ones excepted.

    Mixtures are turned to the axis of the state that is not uniform. Without deflation, which leads
    away from saddles between two states.
    """
    wide = max(one.equation.basis, other.equation.basis, key=lambda basis: basis.degree)
    m, k = (wide.padded(state.legendre_moments) for state in (one, other))
    axis = one.axis if one.order_parameter > other.order_parameter else other.axis
    for share in MIXTURES:
        guess = wide.density((1 - share) * m + share * k, axis)
        if recognised(guess, known, symmetry) is None:
            new = state_near(one.model, guess, symmetry)
            if new.converged:
                yield new


def states_around(
    state: StationaryState,
    symmetry: Any,
    known: Sequence[StationaryState],
    degree: int,
    sizes: Sequence[float],
) -> Iterator[StationaryState]:
    """Results of Newton's method with deflation from a state displaced along its unstable modes.

    By several distances in L^2; the method begins at a degree of truncation.

    A state of index k is connected to some of index k - 1 along its unstable modes. Images of the
    state on other axes, which have other modes, are displaced too.
    """
    basis = state.equation.basis
    rates: list[np.ndarray] = []
    for image in state.images or [state]:
        modes = [mode for mode in unstable_modes(image) if searched(basis, mode.order)]
        growing = np.array([mode.rate for mode in modes])
        if any(np.array_equal(growing.round(9), other.round(9)) for other in rates):
            continue
        rates.append(growing)
        for mode, size in product(modes, sizes):
            for side in _sides(image, mode):
                guess = displaced(image, side, size).resample(degree)
                with suppress(ValueError):  # the axis of the guess is not that of the state
                    yield state_near(state.model, guess, symmetry, known)


def states_beside(
    state: StationaryState, symmetry: Any, known: Sequence[StationaryState] = ()
) -> Iterator[StationaryState]:
    """The first states on both sides of an unstable one, along the flow of an unstable mode.

    For each order whose only unstable mode is the only one with its symmetry: such a state is a
    saddle of index one among densities of that symmetry, which the flow keeps.
    """
    modes = unstable_modes(state)
    counts = Counter(mode.order for mode in modes)
    for mode in modes:
        there = counts[mode.order] + (counts[0] if mode.order else 0)
        if there > 1 or not searched(state.equation.basis, mode.order):
            continue
        for side in _sides(state, mode):
            ends = states_along(state, side, symmetry, SEARCHED_PARTS, known)
            yield from islice((end for end in ends if not same_state(end, state)), 1)


def _sides(state: StationaryState, mode: UnstableMode) -> list[UnstableMode]:
    """A mode with both signs, or with one if a symmetry exchanges its two sides of the state."""
    wide, sides = basis_without(state, mode.order), [mode, mode.opposite]
    m, k = (wide.moments(displaced(state, side, 1.0))[0] for side in sides)
    return sides[:1] if _equivalent(wide, m, k) else sides


def states_along(
    state: StationaryState, mode: UnstableMode, symmetry: Any, parts: int = MOST_FLOW_PARTS,
    known: Sequence[StationaryState] = (),
) -> Iterator[StationaryState]:  # fmt: skip
    """States to which `flow_from` comes close, one for each part of the way that ends at one.

    Those of `known` stand for their images. The way ends at a state that no allowed degree
    resolves.
    """
    for density in islice(flow_from(state, mode), parts):
        try:
            end = recognised(density, known, symmetry, AT_STATE)
            end = state_near(state.model, density, symmetry) if end is None else end
        except ValueError:  # the density on the way lacks the symmetry
            continue
        if end.status == "unresolved":
            return
        if end.converged and (end in known or l2_distance(end.density, density) < AT_STATE):
            yield end


def same_state(one: StationaryState, other: StationaryState) -> bool:
    """Whether two states of one model are equal up to rotations and reflections."""
    wide = max(one.equation.basis, other.equation.basis, key=lambda basis: basis.degree)
    return _equivalent(wide, *(wide.padded(state.legendre_moments) for state in (one, other)))


def _equivalent(basis: Basis, m: np.ndarray, k: np.ndarray) -> bool:
    """Whether moments m and k are equal up to rotations and reflections."""
    return any(turned_alike(basis, m, image) for image in (k, *basis.equivalents(k)))


def _guesses(model: Transformer, basis: Basis) -> Iterator[Density]:
    """Guesses of the basis, each followed by the result of `settled` from it."""
    equation = equation_of(model, basis)
    for m in basis.guesses(GUESSED_FUNCTIONS):
        yield basis.density(m, basis.axis)
        if equation.settles:
            end, finer = settled(equation, m, float(model.kappa))
            if np.isfinite(end).all():
                yield finer.basis.density(end, basis.axis)
