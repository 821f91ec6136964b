"""The result of a run: states at the requested times, and records of how they were obtained.

Labelled arrays, over times, ensemble members, coordinates, modes and nodes, are dictionaries
name -> (dimensions, values). Files store these; xarray datasets are made of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.cached import cached_property
from ..core.calls import with_hints
from ..core.checks import boolean, path_of, require
from ..core.descriptions import build, describe
from ..core.errors import MeanfieldError, StorageError
from ..core.forms import ResultFile
from ..core.provided import EXTENSIONS, FIGURES
from ..dynamics.observables import MOMENT_COUNT, measure_all, rates_of_change
from ..lowlevel.progress import Progress
from ..models.parameters import StateSizes
from ..models.transformer import Transformer
from ..spaces import Space
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..spaces.laws import DensityLaw
from ..states import Equiangular, Gaussian, Gram, Start, Tokens, TorusTokens
from ..states import State as AnyState
from ..states.contract import MEASURED, Arrays, member_dims
from ..steppers import SCHEMES, SPLITTINGS
from ..steppers.radau import Radau
from .files import Contents, Result, archive_array, check_functions, load, stored_model, unarchived
from .kept_steps import KeptSteps
from .provenance import provenance

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from ..derivatives.tangents import Tangents

State = Density | Characteristics | Tokens | TorusTokens | Gram | Equiangular | Gaussian
SUCCESSFUL = ("finished", "steady", "event", "stopped")
VARIABLE_NAMES = {
    "t": "time",
    "theta": "angle",
    "z": "height, the cosine of the polar angle",
    "phi": "longitude",
    "x": "inner product with the axis",
    "l": "degree of the harmonic",
    "m": "order of the harmonic",
    "k": "degree of the moment",
}
VARIABLE_UNITS = {"theta": "radian", "phi": "radian", "w2_to_dirac": "radian"}
DATASET_AXES = ("t", "index", "theta", "z", "phi", "x", "k", "mode", "l", "m", "masses")
PLAIN_FIELDS = ("status", "message", "stats", "rtol", "options")  # plain data, in files
PER_MEMBER = (  # arrays in stats of ensembles
    *("steps", "rejected", "evaluations", "weights", "degree_changes", "highest_degree"),
    *("rate_of_change", "t_end", "status"),
)
LAST, DENSE = "last", "dense"  # names of the snapshots of a run, as arrays of bytes
INITIAL = "initial"  # name of its initial state, as bytes and, in the header, with its axes
SUMS_OF_RATES = "rates"  # name, in the header, of the sums of rates of the first and the last state
SUM_OF_RATES = "the checksum of the rates of change at t = {t:g}"  # sum_k cos(k) dy_k/dt
SAME_RATES = 1e-7  # relative to the norms of rates and state: largest error of a sum by rounding
MODEL_ARRAYS = "model"  # prefix of the names of the model's long arrays
MORE_DIMENSIONS = {
    "limit_point": ("component",),
    "cluster_mass": ("cluster",),
    "cluster_point": ("cluster", "component"),
    "moment": ("k",),
    "moment_by_index": ("index", "k"),
    "order_by_index": ("index",),
}


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Result):
    """States of a run at the times `t`, with its model, status and statistics.

    Attributes
    ----------
    t : ndarray, (m,)
        The requested times that were reached, and the time at which the run ended.
    states : tuple of Density, Characteristics, Tokens, Gram, Equiangular or Gaussian
        The state at each time; each density has the number of modes that it needed.
    model : Transformer
    status : str
        "finished"; "steady" (the rate of change fell below the tolerance); "event" (a terminal
        event); "stopped" (by the callback); or, without success: "unresolved" (the
        density needs more than max_degree modes), "blow-up" (a Gaussian becomes infinite at the
        time stats["blow_up_time"]), "interrupted" (Ctrl-C), "step_too_small",
        "not_finite", "max_steps".
    message : str
        The status as a sentence, with advice after a failure.
    stats : dict
        steps, rejected, evaluations, weights, degree_changes, highest_degree, seconds, ... For an
        ensemble of densities, and for replicas with separate steps, entries that differ are arrays
        of the ensemble shape; so are "status", and "t_end", the time at which a member ended.
    t_events : list of ndarray
        The times of every event, one array for each event function; of an ensemble of densities
        (*ensemble, most), padded with nan.
    options : dict
        The arguments of `solve` as plain data.
    rtol : float
        The requested accuracy.
    stored : dict
        Observables and tangents computed during the run, or read from a file.
    """

    made_by = "solve"
    takes_model = True

    t: np.ndarray
    states: tuple[State, ...]
    model: Transformer
    status: str
    message: str
    stats: dict[str, Any]
    t_events: list[np.ndarray] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    rtol: float = 1e-8
    stored: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.t.setflags(write=False)
        each = {n: np.array(v) for n, v in self.stats.items() if n in PER_MEMBER and np.ndim(v)}
        object.__setattr__(self, "stats", self.stats | each)

    # A sequence of states ------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, i: int) -> State:
        try:
            return self.states[i]
        except (TypeError, IndexError) as error:
            raise type(error)(
                f"run[{i!r}]: the run has {len(self)} saved states, expected a number from 0 to "
                f"{len(self) - 1}. The state saved nearest to a time t is "
                "run[abs(run.t - t).argmin()]."
            ) from None

    def __iter__(self) -> Iterator[State]:
        return iter(self.states)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, for an observable with the place where it is."""
            if name in MEASURED:
                hint = f"A run has no {name}: its observables are in run.observables, by name."
                raise AttributeError(hint, name=name)
            return object.__getattribute__(self, name)

    @property
    def final(self) -> State:
        """The last state."""
        return self.states[-1]

    @property
    def shape(self) -> tuple[int, ...]:
        """Ensemble shape; () for a single run."""
        return self.final.shape

    @property
    def success(self) -> bool:
        """True if the run did what was asked."""
        return self.status in SUCCESSFUL

    @property
    def resolved(self) -> bool:
        """True if max_degree modes sufficed for the density, to the accuracy asked for.

        The initial density must be resolved, as modes added later do not restore coefficients that
        it lacks. Every saved density must be nonnegative: no negative mass beyond 1e-4 or 10 rtol,
        and no clearly negative minimum or dissipation. Where a density is narrow, rounding
        errors, relative to its L2 norm, can exceed its small values elsewhere.
        For characteristics: whether their nodes resolved every state. For indexed densities also
        whether the nodes of the index resolve the last state, see `Indexed.resolved`.
        """
        return self.resolved_after_start and self.stats.get("resolved_at_start", True)

    @property
    def resolved_after_start(self) -> bool:
        """`resolved`, but for coefficients of the initial density that are too large to end there.

        The run is then an accurate solution from the initial density without the harmonics that its
        space lacks.
        """
        of_members = np.ravel(self.stats.get("status", self.status))
        in_index = np.all(self.stats.get("resolved_in_index", True))
        in_time = all(t is None for t in self._unresolved_since)
        return "unresolved" not in of_members and in_time and bool(in_index)

    @property
    def _unresolved_since(self) -> list[float | None]:
        """For each member, in C order, the time from which on it is not resolved, or None."""
        return np.array(self.stats.get("unresolved_since"), dtype=object).ravel().tolist()

    @property
    def unresolved_since(self) -> float:
        """The time of the first saved state that is not resolved; inf without one."""
        return min((t for t in self._unresolved_since if t is not None), default=np.inf)

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """Parameters that may differ between members, each in a shape that broadcasts to `shape`.

        beta and kappa; of equiangular tokens also n, initial_rho, or initial_gap for tokens that
        begin close to each other, and initial_radius where radii grow.
        """
        start = {name: np.array(values) for name, values in self.options.get("start", {}).items()}
        return {**self.model.parameters, **{name: _squeezed(v) for name, v in start.items()}}

    def made_with(self) -> list[Any]:
        """The model, the last state, and the schemes that took steps."""
        by_name = {scheme.name: scheme for scheme in (*SCHEMES, *SPLITTINGS, Radau)}
        schemes = [by_name[name] for name in self.stats.get("schemes", {}) if name in by_name]
        return [self.model, self.final, *schemes]

    def __repr__(self) -> str:
        flag = "" if self.success else "  <-- NOT A COMPLETE RESULT"
        times = f"t = {self.t[0]:g} ... {self.t[-1]:g} ({len(self)} states)"
        seed = self.options.get("seed")
        return (
            f"Solution of {self.model!r}\n  status   {self.status}{flag}\n  message  {self.message}"
            f"\n  times    {times}\n  steps    {self._steps}\n  final    {self.final!r}"
        ) + f"\n  seed     {seed}" * isinstance(seed, int)

    @property
    def _steps(self) -> str:
        """The number of steps in words; of an ensemble, the sum over its members."""
        taken, rejected = (int(np.sum(self.stats.get(n, 0))) for n in ("steps", "rejected"))
        return f"{taken} ({rejected} rejected)"

    # Measured ------------------------------------------------------------------------------

    @cached_property
    def observables(self) -> "xr.Dataset":
        """mass, moments, order_parameter, energies, ... on the times `t`; of densities also
        entropy and minimum, of characteristics w2_to_dirac, limit_point and clusters.

        Computed at the first access; the formulas are documented at `measure` in the module of
        `dynamics` of each state.
        """
        return _dataset(self._measured, self)

    @cached_property
    def _measured(self) -> Arrays:
        """The result of `observable_arrays`, computed with a progress bar."""
        with Progress("measuring", None) as bar:
            return observable_arrays(self, lambda part: bar.show(part, "measuring"))

    @property
    def tangents(self) -> "Tangents":
        """Derivatives of the states at the times `t`, if `solve` was called with `tangents`."""
        if "tangents" not in self.stored:
            raise MeanfieldError(
                "This run has no tangents: ask for them with solve(..., tangents=[...]). A file "
                "does not keep them."
            )
        return self.stored["tangents"]

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Parameters, options, versions and command line: all that is needed to repeat the run."""
        if "provenance" in self.stored:
            return self.stored["provenance"]
        return provenance(self.model, self.options, self.stored.get("extra", {}))

    # Elsewhere -----------------------------------------------------------------------------

    def __call__(self, t: float | np.ndarray) -> Any:
        """State at the time t, or the run at increasing times t, with observables.

        At a saved time it is the saved state. At other times the run must have been solved with
        ``dense=True``: the last steps before t are repeated, at most 32 in general, and the state
        is interpolated within a step as at an output. It equals that of a run with t in `t_eval`.

        Parameters
        ----------
        t : float or array
            A time of the span of the run, or increasing ones.

        Returns
        -------
        State or Solution
            A state of the kind of the run; for an array of times a `Solution`.

        Raises
        ------
        ValueError
            If t is outside the span of the run.
        MeanfieldError
            If the run kept no steps from which the state at t can be found.
        """
        return EXTENSIONS["evaluated"](self, t)

    def save(self, path: str | Path, *, dense: bool = False) -> Path:
        """Write everything to a NetCDF file, atomically; read it back with `meanfield.load`.

        Parameters
        ----------
        path : path
            Name of the file.
        dense : bool
            Whether the file has the steps that a run with ``solve(..., dense=True)`` kept, so that
            it can be evaluated at any time when it is read. A file that is read, extended and
            saved again needs it again.

        Raises
        ------
        StorageError
            If there is no such folder, it is not writable, or the disk is full.
        MeanfieldError
            If the run kept no steps.
        TypeError, ValueError
            If `path` is not a path, or has the suffix of another format.
        """
        if not boolean("dense", dense):
            return super().save(path)
        kept = self.stored.get("dense")
        if kept is None:
            raise MeanfieldError("dense=True: the run kept no steps; solve it with dense=True.")

        def contents() -> Contents:
            whole = self.contents()
            whole.long[DENSE] = archive_array(kept.arrays())
            return whole

        return self.written(path, contents)

    @property
    def extend(self) -> Callable[..., "Solution"]:
        """The function of t_end that returns the run to this later time: see `meanfield.extend`."""
        return partial(EXTENSIONS["extend"], self)

    @with_hints
    def to_xarray(self, *, observables: bool = True) -> "xr.Dataset":
        """States and observables as one labelled dataset: densities are put on a common grid.

        Parameters
        ----------
        observables : bool
            Whether observables are in it. Energies and speeds of many tokens may take as long as a
            step for each saved time; what `Solution.observables` has measured is not measured
            again.
        """
        state: Any = type(self.final)
        measured = self._measured if boolean("observables", observables) else times_of(self)
        dataset = _dataset(measured | state.stacked(self.states), self)
        dataset.attrs = {
            "title": f"{state.__name__} under {self.model!r}",
            "status": self.status,
            "message": self.message,
        }
        return dataset

    def contents(self) -> Contents:
        """States and observables as arrays, and a header."""
        state: Any = type(self.final)
        long: dict[str, np.ndarray] = {}
        states, measured = state.stacked(self.states), self._measured
        arrays = measured | states
        stats = {n: np.asarray(v).tolist() if n in PER_MEMBER else v for n, v in self.stats.items()}
        header = {
            "state": state.__name__,
            "of": describe(self.final.header()),
            "model": describe(self.model, long, MODEL_ARRAYS),
            "states": list(states),
            "measured": list(measured),
            "observed": list(self.stored.get("observed", {})),
            "t_events": [times.tolist() for times in self.t_events],
            SUMS_OF_RATES: self.stored.get(SUMS_OF_RATES)
            or [value for value, _ in self._sums_of_rates()],
            "provenance": self.provenance,
            **{name: getattr(self, name) for name in PLAIN_FIELDS},
            "stats": stats,
        }
        attributes = {
            "Conventions": "CF-1.11",
            "title": f"{state.__name__} under {self.model!r}",
            "source": "meanfield",
            "references": "Rigollet, arXiv:2512.01868",
            "coordinates": " ".join(self.model.parameters),
        }
        texts = {name: words(name, state) for name in arrays}
        if last := self.stored.get("last"):
            long[LAST] = archive_array(last)
            header["engine"] = self.stored["engine"]
        if (initial := self.stored.get("initial")) is not None:
            begin = state.stacked([initial])
            long[INITIAL] = archive_array({name: values for name, (_, values) in begin.items()})
            header[INITIAL] = {name: dims for name, (dims, _) in begin.items()}
        return Contents(header, arrays, long, {"": attributes, **texts})

    def _sums_of_rates(self) -> list[tuple[float, float]]:
        """Sums of rates of the first and the last state, each with a bound of its rounding error.

        They tell apart models that differ in functions. nan if functions of the model are lost.
        """
        sums = []
        for i in (0, -1):
            try:
                rates = rates_of_change(self.model, self.states[i], float(self.t[i]))
            except MeanfieldError:
                rates = np.full(1, np.nan)
            weights = np.cos(np.arange(rates.size))
            values = [np.abs(one).ravel() for _, one in self.states[i].arrays().values()]
            size = np.hypot.reduce(np.concatenate([np.abs(rates), *values]))  # no square is inf
            scale = float(size) * np.linalg.norm(weights)
            sums.append((float(weights @ rates), float(SAME_RATES * scale)))
        return sums

    @classmethod
    def made_of(cls, contents: Contents) -> "Solution":
        """The solution with the contents of a file."""
        header, arrays = contents.header, contents.arrays
        state: Any = Start.kinds.get(header["state"])
        if state is None or not issubclass(state, AnyState):
            raise StorageError(
                f"Its states are {header['state']}, which is not known here: import the module "
                "that defines them."
            )
        state_header = _state_header(header["of"], state.families)
        stacked = {name: arrays[name] for name in header["states"]}
        states = tuple(state.unstacked(stacked, state_header))
        kept = _kept_snapshots(contents, state, state_header)
        first = kept.get("initial", states[0])
        model, lost = stored_model(contents, StateSizes(first.dimension, first.tokens, first.shape))
        if lost:  # observables cannot be measured again
            kept["observables"] = {name: arrays[name] for name in header["measured"]}
        kept["observed"] = {name: arrays[name] for name in header["observed"]}
        kept[SUMS_OF_RATES] = header.get(SUMS_OF_RATES, [np.nan, np.nan])
        run = cls(
            t=arrays["t"][1],
            states=states,
            model=model,
            t_events=[np.array(times) for times in header["t_events"]],
            stored={"provenance": header["provenance"], **kept},
            **{name: header[name] for name in PLAIN_FIELDS},
        )
        if contents.model is not None:
            sums = zip(run.t[[0, -1]], kept[SUMS_OF_RATES], run._sums_of_rates(), strict=True)
            for t, stored, (here, error) in sums:
                check_functions(SUM_OF_RATES.format(t=t), here, stored, error)
        return run

    def plot(self, kind: str = "overview", **options: Any) -> "Figure":
        """A figure of the run: "overview", "observables", or a kind that its states have.

        On the sphere "orthographic", "map"; of densities on the circle "spacetime", "snapshots",
        "polar"; of characteristics there "trajectories", "distribution". Of tokens on the circle
        also "histogram" and "trajectories"; of those in higher dimension or in R^d "projection",
        "paths"; of tokens and of Gram "inner_products". Of a Gaussian "variances", in the plane
        "ellipses" and "cone".

        Options are those of the kind; a wrong one is answered with the kinds that have it:
        `title` and `member` of all, `ax` of all but "overview"; `times=[0.1, 1]` or `count`, of
        those that show single times: without ``dense=True`` the nearest saved states are shown,
        labelled by their own times, with a warning; `scale` of densities; `log_time` of those over
        time; `names` of "observables".
        The page Draw a run has a table of them, and `plotting.plot` the rest.
        """
        return FIGURES["plot"](self, kind=kind, **options)

    def animate(self, path: str | Path, **options: Any) -> Path:
        """A film of the states, .mp4 or .gif: see `plotting.animate`."""
        return FIGURES["animate"](self, path_of("path", path), **options)


def _kept_snapshots(contents: Contents, state: Any, state_header: dict[str, Any]) -> dict[str, Any]:
    """Snapshots of a run and its initial state, by their names in `Solution.stored`."""
    header, kept = contents.header, dict[str, Any]()
    archives = {name: unarchived(contents.long[name])
                for name in (LAST, INITIAL, DENSE) if name in contents.long}  # fmt: skip
    if LAST in archives:
        kept |= {"last": archives[LAST], "engine": header["engine"]}
    if INITIAL in archives:
        dims = header[INITIAL]
        begin = {name: (tuple(dims[name]), archives[INITIAL][name]) for name in dims}
        kept["initial"] = state.unstacked(begin, state_header)[0]
    if DENSE in archives:
        kept["dense"] = KeptSteps.of_arrays(archives[DENSE])
    return kept


def _state_header(of: dict[str, Any], families: dict[str, Any]) -> dict[str, Any]:
    """The header of a state, read from plain data: tables are kinds of `families`, or spaces."""
    return {
        name: build(families.get(name, Space), value)
        if isinstance(value, dict) and "kind" in value
        else value
        for name, value in of.items()
    }


def _squeezed(values: np.ndarray) -> np.ndarray:
    """The array with length 1 along axes on which it is constant, to 1e-12; () if on all axes."""
    for axis in range(values.ndim):
        first = values.take([0], axis=axis)
        values = first if np.allclose(values, first, rtol=1e-12, atol=0) else values
    return values if values.size > 1 else values.reshape(())


# The end of a run as an initial law ------------------------------------------------------------


class LastState(DensityLaw):
    """The density at the end of a run, from the file of its result.

    It keeps its degree. [space] may be left out; if it is there it is of the same kind.

    Parameters
    ----------
    file : str
        *.nc, as `meanfield solve` and `Solution.save` write it; relative names start from the
        folder of the configuration file.
    """

    method = "uniform"  # available on all spaces

    file: ResultFile

    def begin(self, space: Space | None) -> Density:
        """The last density of the file; ValueError if `space` is of another class."""
        density = self.density(space)
        if space is not None and type(space) is not type(density.space):
            raise ValueError(f"file {self.file} has a density on {density.space!r}, not {space!r}.")
        return density

    def density(self, space: Space | None) -> Density:
        final = getattr(load(self.file), "final", None)
        wanted = "a density, for a run from it"
        return require(f"the end of {self.file}", final, wanted, isinstance(final, Density))


# Labelled arrays -----------------------------------------------------------------------------


def words(name: str, state: type[AnyState]) -> dict[str, str]:
    """The attributes long_name and units of a variable, for a class of states."""
    text = {**VARIABLE_NAMES, **state.words}.get(name)
    attributes = {} if text is None else {"long_name": text}
    return attributes | ({"units": VARIABLE_UNITS[name]} if name in VARIABLE_UNITS else {})


def times_of(solution: Solution) -> Arrays:
    """The times, and the parameters that vary between members on the axes along which they do."""
    shape, dims = solution.shape, member_dims(solution.shape)
    arrays: Arrays = {"t": (("t",), solution.t)}
    for name, values in solution.parameters.items():
        if values.ndim:
            sizes = (1,) * (len(shape) - values.ndim) + values.shape
            kept = tuple(i for i, size in enumerate(sizes) if size > 1)
            arrays[name] = tuple(dims[i] for i in kept), values.reshape([sizes[i] for i in kept])
    return arrays


def observable_arrays(
    solution: Solution, tell: Callable[[float], None] = lambda _part: None
) -> Arrays:
    """The observables at every time, stored ones if any; `tell` gets the fraction that is done."""
    observed: Arrays = solution.stored.get("observed", {})
    if "observables" in solution.stored:
        return solution.stored["observables"] | observed
    table = measure_all(solution.model, solution.states, solution.t, tell)
    arrays: Arrays = {}
    for name, values in table.items():
        dims = axes_of(name, values.shape[1:], solution.shape)
        if values.dtype.kind == "c":
            arrays |= {f"{name}_re": (dims, values.real), f"{name}_im": (dims, values.imag)}
        else:
            arrays[name] = dims, values
    if "moment" in table:
        arrays["k"] = ("k",), np.arange(1, MOMENT_COUNT + 1)
    return arrays | observed | times_of(solution)


def axes_of(name: str, values: tuple[int, ...], shape: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the axes of an observable whose values on a state have the shape `values`.

    The axes of an ensemble of this shape come first, if the values have them.
    """
    dims = member_dims(shape) if values[: len(shape)] == shape else ()
    rest = tuple(f"{name}_{axis}" for axis in range(len(values) - len(dims)))
    named = MORE_DIMENSIONS.get(name, ())
    return "t", *dims, *(named if len(named) == len(rest) else rest)


def _dataset(arrays: Arrays, solution: Solution) -> "xr.Dataset":
    """Labelled arrays as an xarray dataset, with attributes and coordinates."""
    import xarray as xr

    state = type(solution.final)
    variables = {
        name: (dims, np.array(values), words(name, state))
        for name, (dims, values) in arrays.items()
    }
    coordinates = (*DATASET_AXES, *solution.parameters)
    coords = {name: variables.pop(name) for name in coordinates if name in variables}
    return xr.Dataset(variables, coords)
