"""Basins of attraction: shares of starts by the state, wave or cycle in which runs end."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from ..core.calls import checked_call
from ..core.checks import generator, real, real_array, require
from ..core.forms import Natural, Positive
from ..derivatives.variation import comparable
from ..models.transformer import Transformer
from ..results.files import Contents, Result
from ..solving import solve
from ..spaces import Density
from ..sweeps.execution import run_points
from ..sweeps.outcomes import Outcome
from ..sweeps.points import Grid, SweepPoint, Work
from .bases import AXISYMMETRIC
from .families import basis_of, parameters_of, with_parameter
from .multistability import state_of
from .stationary import AT_STATE, check_model, check_stationary, l2_distance, state_near

if TYPE_CHECKING:
    import xarray as xr

NOWHERE = "nowhere"
TURNING = 1e-6  # smaller angular velocities are rest
SAME_END = 1e-4  # tolerance on invariants of equal ends
SAME_CYCLE = 1e-2  # relative tolerance on period and extremes of equal cycles
RETURNED = 0.02  # distance of a return, relative to the largest distance on the way
OUTPUTS = 600  # outputs in which a return is sought
NEAR_RETURN, NEAR_OUTPUTS, MOST_RETURNS = 0.5, 41, 8  # where it is looked for more closely


class End(NamedTuple):
    """Where a run ends.

    Attributes
    ----------
    kind : str
        "state", "wave" (a state that turns), "cycle" or "nowhere".
    density : Density
        The state, or the end of the run.
    invariants : ndarray
        Numbers that are equal for ends that differ by a symmetry of the model; for a cycle the
        period, and the least and largest order parameter.
    numbers : ndarray, (3,)
        Order parameter, at a cycle the largest; speed; period.
    """

    kind: str
    density: Density
    invariants: np.ndarray
    numbers: np.ndarray

    def equals(self, other: "End") -> bool:
        """Whether two ends of runs under one model are the same."""
        if self.kind != other.kind:
            return False
        if self.kind == "cycle":
            return bool(np.allclose(self.invariants, other.invariants, rtol=SAME_CYCLE, atol=1e-6))
        size = max(len(self.invariants), len(other.invariants))
        one, two = (np.pad(e.invariants, (0, size - len(e.invariants))) for e in (self, other))
        return bool(np.linalg.norm(one - two) < SAME_END)


def end_of(model: Transformer, start: Density, time: float, rtol: float) -> End:
    """The end of a run from a start: its state or wave, else its cycle, else nowhere."""
    final: Any = solve(model, start, (0, time), until="steady", rtol=rtol, progress=False).final
    if (state := _state_at(model, final)) is not None:
        kind = "wave" if abs(state.speed) > TURNING else "state"
        return _ended(model, kind, state.density, state.order_parameter, state.speed)
    times = np.linspace(0, time, OUTPUTS)
    run: Any = solve(model, final, (0, time), t_eval=times, rtol=rtol, progress=False)
    away = np.array([l2_distance(one, final) for one in run.states])
    order = np.abs(run.observables["order_parameter"].values)
    left = int(np.argmax(away > away.max() / 2))
    lows = left + 1 + np.flatnonzero((away[left + 1 : -1] <= away[left:-2])
                                     & (away[left + 1 : -1] <= away[left + 2 :]))  # fmt: skip
    lows = lows[away[lows] < NEAR_RETURN * away.max()][:MOST_RETURNS]
    if away.max() >= AT_STATE:
        for low in lows:
            period, distance = _return(model, final, times[low - 1], times[low + 1], rtol)
            if distance < RETURNED * away.max() + 1e-9:
                over = order[: low + 1]
                numbers = np.array([over.max(), np.nan, period])
                return End("cycle", final, np.array([period, over.min(), over.max()]), numbers)
    return _ended(model, NOWHERE, final, order[-1], np.nan)


def _return(
    model: Transformer, start: Density, low: float, high: float, rtol: float
) -> tuple[float, float]:
    """Time between two times at which a run is nearest to its start, and the distance then."""
    times = np.linspace(low, high, NEAR_OUTPUTS)
    run: Any = solve(model, start, (0, high), t_eval=times, rtol=rtol, progress=False)
    squares = np.array([l2_distance(one, start) for one in run.states]) ** 2
    k = min(max(int(np.argmin(squares)), 1), NEAR_OUTPUTS - 2)
    before, here, after = squares[k - 1 : k + 2]
    slope, curvature = (after - before) / 2, max(before - 2 * here + after, 1e-300)
    least = max(here - slope**2 / (2 * curvature), 0.0)
    return float(times[k] - slope / curvature * (times[1] - times[0])), float(np.sqrt(least))


def _state_at(model: Transformer, final: Density) -> Any:
    """The stable state or wave at the end of a run; None if there is none."""
    try:
        state = state_near(model, final, AXISYMMETRIC)
    except ValueError:  # the density has no axis of symmetry, so the run has not ended
        return None
    near = state.converged and l2_distance(state.density, final) < AT_STATE
    return state if near and state.stable else None


def _ended(model: Transformer, kind: str, density: Density, order: float, speed: float) -> End:
    """The end of a run at a state or wave, or nowhere."""
    basis = basis_of([model], density.space)
    basis = basis.finer(density.space.degree)
    m = basis.moments(density)[0]
    return End(kind, density, basis.fingerprint(m), np.array([order, speed, np.nan]))


@dataclass(frozen=True)
class BasinsWork(Work):
    """Ends of runs from all starts at one value of a parameter, as the work of a sweep."""

    model: Any
    starts: tuple[Density, ...]
    parameter: str
    time: float
    rtol: float

    supplied: ClassVar[str] = "model and starts"

    def model_at(self, value: float) -> Transformer:
        """The model at a value of the parameter."""
        return with_parameter(self.model, self.parameter, value) if self.parameter else self.model

    def values(self, points: Sequence[SweepPoint], seed: int | None) -> list[Any]:
        found = []
        for point in points:
            model = self.model_at(point.parameters["value"])
            arrays: dict[str, Any] = {}
            for i, start in enumerate(self.starts):
                end = end_of(model, start, self.time, self.rtol)
                parts = np.ascontiguousarray(end.density.coefficients, dtype=complex).view(float)
                arrays |= {f"kind {i}": np.array(end.kind), f"invariants {i}": end.invariants,
                           f"numbers {i}": end.numbers, f"parts {i}": parts,
                           f"degree {i}": np.array(end.density.space.degree)}  # fmt: skip
            found.append(arrays)
        return found

    def read(self, outcome: Outcome) -> list[End]:
        """Ends of all starts from an outcome."""
        arrays, ends = {n: variable.values for n, variable in outcome.variables.items()}, []
        for i, start in enumerate(self.starts):
            space = start.space.with_degree(int(arrays[f"degree {i}"]))
            parts = arrays[f"parts {i}"].view(complex)
            coefficients = parts if space.dtype == complex else parts.real
            density = type(start).computed(coefficients, space)
            numbers = arrays[f"invariants {i}"], arrays[f"numbers {i}"]
            ends.append(End(str(arrays[f"kind {i}"]), density, *numbers))
        return ends


@dataclass(frozen=True, eq=False, repr=False)
class Basins(Result):
    """Shares of starts by where they end, along a parameter.

    Attributes
    ----------
    data : xarray.Dataset
        On the parameter, or on `value` for a single model, and `end`: count, share, low and high
        (Wilson interval of the share), order_parameter (the largest on a cycle), speed, period.
        `end` has names such as "state 1", "wave 1", "cycle 1", and "nowhere" for runs that neither
        came to rest nor returned. An end has the same name at all values at which it was matched.
    model : Transformer
    parameter : str or None
    densities : dict of str to Density
        The density of each end, at the last value of the parameter at which a run ended there.
    """

    made_by = figure = "basins"
    takes_model = True

    data: "xr.Dataset"
    model: Transformer
    parameter: str | None
    densities: dict[str, Density]

    @classmethod
    def made_of(cls, contents: Contents) -> Self:
        """The basins from the contents of a file."""
        found = super().made_of(contents)
        for name, density in found.densities.items() if contents.model is not None else ():
            if name.startswith(("state", "wave")):
                counts = found.data["count"].sel(end=name)
                last = float(counts[counts.dims[0]][counts > 0][-1])  # of its density
                model, parameter = found.model, found.parameter
                here = with_parameter(model, parameter, last) if parameter else model
                check_stationary(contents, state_of(here, density, AXISYMMETRIC))
        return found

    def __repr__(self) -> str:
        data: Any = self.data
        rows = [f"Basins({data.attrs['starts']} starts for each of {len(data.share)} models)"]
        last, name = data.isel({data.share.dims[0]: -1}), data.share.dims[0]
        for i, end in enumerate(data.end.values):
            low, high = float(last.low[i]), float(last.high[i])
            rows.append(f"  {end}  {float(last.share[i]):.3g}, from {low:.3g} to {high:.3g}")
        if self.parameter is not None:
            rows.insert(1, f"  {name} = {float(last[name]):g}, the last value:")
        return "\n".join(rows)


@checked_call("model", "starts", "vary", "executor", "store")
def basins(
    model: Any,
    starts: Any,
    *,
    rng: Any = None,
    count: Natural = 100,
    vary: Mapping[str, Any] | None = None,
    t_end: Positive = 200.0,
    rtol: Positive = 1e-8,
    level: float = 0.95,
    executor: Any = None,
    store: str | Path | None = None,
    progress: bool | None = None,
) -> Basins:
    """Solve from many starts, and count the states, waves and cycles in which the runs end.

    A run ends in a state, or in a rotating wave, if Newton's method from its end converges to a
    stable one at a distance of at most 0.03 in L^2. Otherwise the run is continued. It then ends in
    a cycle if it returns to an earlier density, and otherwise "nowhere".

    Parameters
    ----------
    model : Transformer
        A model with noise that moves densities, as for `stationary`.
    starts : sequence of Density or Indexed, or callable
        Starts; or a function of a generator that returns a random one, which is called `count`
        times with the generator of `rng`.
    rng : numpy.random.Generator or seed, optional
        Source of random numbers, for a function.
    count : int
        Number of starts that a function draws.
    vary : mapping of str to sequence, optional
        One parameter of the model, as for `branches`, and its values in the order in which ends are
        matched: an end keeps the name of an end of its kind at an earlier value if a run that
        starts from that end leads to it.
    t_end : float
        Duration of a run, and of its continuation.
    rtol : float
        As for `solve`.
    level : float
        Level of the Wilson intervals of the shares.
    executor, store, progress
        As for `sweep`: one point is all starts at one value of the parameter.

    Returns
    -------
    Basins

    Raises
    ------
    TypeError, ValueError, MeanfieldError
        For arguments out of their range, and models without stationary densities.

    References
    ----------
    Wilson, J. Am. Stat. Assoc. 22 (1927), 209-212; Menck et al., Nature Physics 9 (2013), 89-92.
    """
    level = real("level", level, "between 0 and 1", lambda number: 0 < number < 1)
    require("model", model, "a Transformer", isinstance(model, Transformer), TypeError)
    begun = _drawn(starts, rng, count)
    known = parameters_of(model)
    one = vary is None or (isinstance(vary, Mapping) and len(vary) == 1 and {*vary} <= {*known})
    wanted = f'a parameter of {known} and its values, {{"{known[0]}": (1, 2)}}'
    require("vary", vary, wanted, one, TypeError)
    ((name, values),) = ({"": [0.0]} if vary is None else vary).items()
    array = np.atleast_1d(real_array("vary", values))
    require("vary", vary, wanted, array.ndim == 1 and array.size > 0)
    values = array.tolist()
    work = BasinsWork(model, begun, name, t_end, rtol)
    for value in values:
        check_model(work.model_at(value), begun[0].space)
    points = Grid.of({"value": values}, None).points(work.contents)
    outcomes, _ = run_points(work, points, executor=executor, progress=progress, name="basins",
                             store=None if store is None else Path(store))  # fmt: skip
    done = [(v, work.read(o)) for v, o in zip(values, outcomes, strict=True) if o is not None]
    return _counted(work, done, level)


def _drawn(starts: Any, rng: Any, count: int) -> tuple[Density, ...]:
    """The starts, drawn if they are a function."""
    random_numbers = generator(rng)
    if callable(starts):
        source: Callable[..., Any] = starts
        found = [source(random_numbers) for _ in range(count)]
    else:
        found = list(starts) if np.iterable(starts) else []
    wanted = "densities on one space, or a function of a generator that returns one"
    fits = bool(found) and all(isinstance(one, Density) and not one.shape for one in found)
    require("starts", starts, wanted, fits, TypeError)
    space = found[0].space
    same = all(comparable(one.space, space) for one in found)
    require("starts", starts, wanted, same)
    return tuple(found)


def _counted(work: BasinsWork, done: list[tuple[float, list[End]]], level: float) -> Basins:
    """Basins from the ends at all values, with names that are matched from value to value."""
    import xarray as xr

    known: dict[str, End] = {}
    each: list[dict[str, list[End]]] = []
    for value, ends in done:
        model, here = work.model_at(value), dict[str, list[End]]()
        carried = {
            name: end_of(model, end.density, work.time, work.rtol)
            for name, end in (known.items() if each else ())
            if end.kind != NOWHERE
        }
        for end in ends:
            name = next((n for n, (o, *_) in here.items() if o.equals(end)), None)
            free = [n for n, other in carried.items() if n not in here and other.equals(end)
                    and known[n].kind == end.kind]  # fmt: skip
            number = 1 + sum(n.startswith(end.kind) for n in {**known, **here})
            new = NOWHERE if end.kind == NOWHERE else f"{end.kind} {number}"
            name = NOWHERE if end.kind == NOWHERE else name or next(iter(free), new)
            here.setdefault(name, []).append(end)
        known |= {name: found[0] for name, found in here.items()}
        each.append(here)
    names = sorted(known, key=lambda name: (name == NOWHERE, name.split()[0], len(name), name))
    total = len(work.starts)
    counts = np.array([[len(here.get(name, [])) for name in names] for here in each])
    low, high = wilson(counts, total, level)
    none = np.full(3, np.nan)
    numbers = np.array([[here[name][0].numbers if name in here else none for name in names]
                        for here in each])  # fmt: skip
    dims = work.parameter or "value", "end"
    columns = {"count": counts, "share": counts / total, "low": low, "high": high}
    rows = "order_parameter", "speed", "period"
    columns |= {row: numbers[..., i] for i, row in enumerate(rows)}
    data = xr.Dataset({name: (dims, column) for name, column in columns.items()})
    data = data.assign_coords({dims[0]: [value for value, _ in done], "end": names})
    data.attrs = {"starts": total, "level": level, "t_end": work.time, "rtol": work.rtol}
    densities = {name: end.density for name, end in known.items()}
    return Basins(data, work.model, work.parameter or None, densities)


def wilson(counts: np.ndarray, total: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson intervals of shares: lower and upper ends, for counts out of a total."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, scale = counts / total, 1 / (1 + z**2 / total)
    middle = scale * (share + z**2 / (2 * total))
    half = scale * z * np.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    low = np.where(counts == 0, 0.0, middle - half)
    return low, np.where(counts == total, 1.0, middle + half)
