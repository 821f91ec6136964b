"""Runs of a configuration with other values at dotted keys: what a sweep does at its points."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.checks import real, require, whole_number
from ..core.errors import ConfigError, MeanfieldError
from ..core.files import NUMBER_FORMATS, RESULT_FORMATS, checksum
from ..core.identity import digest
from ..core.provided import CONFIGURED_RUNS
from ..dynamics.motion import motion_for
from ..models.transformer import Transformer
from ..results.solution import Solution
from ..solving.arguments import times_of
from ..solving.streams import Seeds
from ..states import State
from ..steppers import Layers
from ..sweeps.outcomes import STATUS, Outcome, Variable
from ..sweeps.points import RNG, SweepPoint, Work, seed_of
from .commands import import_kinds, module_name
from .configuration import parse_config
from .tasks import Run

NOISE_SEED = "solve.rng"
INITIAL_TABLE = "initial"
MEMBER_AXIS = "member"
MODEL_PREFIX = "model."
MAX_BATCH = 64  # points; larger batches save less than 1 % of small runs
NUMBERS_PER_STEP = 2**14  # in all states of a batch; larger batches save no time per step
NUMBERS_PER_OUTPUT = 2**22  # in all outputs of a batch, 32 MB
BYTES_PER_NUMBER = 8
BATCHES_PER_WORKER = 4  # at least, since batches take different times
SINGLE_RUN_OPTIONS = ("until", "merge", "threads")  # options that exclude batches
QUIET_OPTIONS: dict[str, Any] = {"out": None, "progress": False}
RANGE_KEYS = ("first", "last", "count")
SPACINGS: dict[str, Any] = {"linear": np.linspace, "log": np.geomspace}


@CONFIGURED_RUNS.register
@dataclass(frozen=True)
class Runs(Work):
    """The runs of a configuration, whose parameters are dotted keys.

    Attributes
    ----------
    data : dict
        The tables of `meanfield solve`.
    source : Path or None
        The file they come from; its folder is where relative names of data files start.
    imports : dict
        Modules and Python files to import for their kinds: the SHA-256 of each.
    """

    data: dict[str, Any]
    source: Path | None = None
    imports: Mapping[str, str] = field(default_factory=dict)

    takes_rng = True

    def identity(self) -> dict[str, Any]:
        """The data that identify the sweep; data files by their contents."""
        files = parse_config(self.data, self.source).files
        contents = {key: checksum(path) for key, path in files.items()}
        return {"data": self.data, "files": contents, "imports": dict(self.imports)}

    def contents(self, value: Any) -> Any:
        """A value; for the name of a data file, with the checksum of the file."""
        if isinstance(value, Mapping):
            return {name: self.contents(entry) for name, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.contents(entry) for entry in value]
        folder = Path() if self.source is None else self.source.parent
        is_file_name = isinstance(value, str) and value.endswith((*NUMBER_FORMATS, *RESULT_FORMATS))
        if is_file_name and (folder / value).is_file():
            return value, checksum(folder / value)
        return value

    def check(self, point: SweepPoint) -> None:
        self._read(point.parameters)

    def batches(
        self, points: list[SweepPoint], size: int | None, seed: int | None, workers: int
    ) -> list[list[SweepPoint]]:
        """Points in batches of equal configurations but for arrays, each run as one ensemble."""
        groups: dict[str, list[SweepPoint]] = {}
        if size != 1:
            arrays = self._array_keys(points)
            for point in points:
                fixed = {n: v for n, v in point.parameters.items() if not _joins(n, v, arrays)}
                groups.setdefault(repr(fixed), []).append(point)
        else:
            groups = {point.key: [point] for point in points}
        share = -(-len(points) // (BATCHES_PER_WORKER * workers)) if workers > 1 else MAX_BATCH
        batches = []
        for group in groups.values():
            length = self._batch_size(group, seed) if len(group) > 1 else 1
            length = min(length, share) if size is None else min(size, len(group) if length else 1)
            length = max(length, 1)
            batches += [group[i : i + length] for i in range(0, len(group), length)]
        return batches

    def values(self, points: Sequence[SweepPoint], seed: int | None) -> list[Any]:
        """Results at the points: members of one ensemble; any that ended early run alone."""
        for name in self.imports:  # as the process of the sweep has
            if module_name(name) not in sys.modules:
                import_kinds(name)
        changes = [self._changes(point, seed) for point in points]
        batch = self._ensemble_of(changes) if len(points) > 1 else None
        if batch is None:
            return [self._run(change) for change in changes]
        run = batch.config.solved(batch.model, batch.start, **batch.options, **QUIET_OPTIONS)
        if run.status == "interrupted":
            raise KeyboardInterrupt  # start no further runs
        ends = np.broadcast_to(run.stats.get("status", run.status), run.shape)
        members = _members(run)
        return [
            members[i] if end == "finished" else self._run(changes[i]) for i, end in enumerate(ends)
        ]  # runs that end early have other outputs

    def _changes(self, point: SweepPoint, seed: int | None) -> dict[str, Any]:
        """The values of the parameters at a point, and its seeds."""
        return point.parameters | ({} if seed is None else self._seeds(point, seed))

    def _ensemble_of(self, changes: Sequence[Mapping[str, Any]]) -> "_EnsembleRun | None":
        """The ensemble whose members are these runs, or None if they form none.

        Every member gives bit-for-bit the results of the single run.
        """
        first = changes[0]
        differ = [name for name in first if any(c[name] != first[name] for c in changes)]
        arrays = {n: [c[n] for c in changes] for n in differ if n.startswith(MODEL_PREFIX)}
        config, last = self._read({**first, **arrays}), self._read(changes[-1])
        start, table = last.begin(), config.tables["solve"]
        if start.shape or any(name in table for name in SINGLE_RUN_OPTIONS):
            return None
        kind, model, single = motion_for(start), config.posed(start)[0], last.posed(start)[0]
        random, options = last.draws(single, start), {}
        if not kind.members_as_alone or (random and not (kind.draws_by_member and "dt" in table)):
            return None
        if random or len(differ) > len(arrays):
            configs = [*map(self._read, changes[:-1]), last]
            try:
                start = type(start).stack([c.begin() for c in configs])
            except (TypeError, ValueError):  # different sizes or kinds
                return None
            seeds = [c.tables["solve"].get("rng") for c in configs]
            if random and not all(isinstance(seed, int) for seed in seeds):
                return None
            options = {"rng": Seeds(tuple(seeds))} if random else {}
        as_alone = digest(model.member(len(changes) - 1)) == digest(single)
        return _EnsembleRun(config, model, start, options) if as_alone else None

    def _batch_size(self, points: list[SweepPoint], seed: int | None) -> int:
        """The best size of an ensemble of these points; 0 if they form none."""
        try:
            ensemble = self._ensemble_of([self._changes(point, seed) for point in points[:2]])
            if ensemble is None:
                return 0
            table = ensemble.config.tables["solve"]
            layer = table.get("dt") if table.get("scheme") is Layers else None
            _, times = times_of(table["t_span"], table.get("t_eval"), layer)
        except (MeanfieldError, ValueError, TypeError):  # single runs report it
            return 0
        state = ensemble.start
        arrays = [array for name in state.parts if (array := getattr(state, name)) is not None]
        numbers = sum(array.nbytes for array in arrays) // (
            BYTES_PER_NUMBER * (2 if state.shape else 1)
        )
        by_state = MAX_BATCH if motion_for(state).semilinear else NUMBERS_PER_STEP // numbers
        return min(MAX_BATCH, by_state, NUMBERS_PER_OUTPUT // (numbers * len(times)))

    def _run(self, changes: Mapping[str, Any]) -> Solution:
        return self._read(changes).run(**QUIET_OPTIONS)

    def _read(self, changes: Mapping[str, Any]) -> Run:
        """The configuration with changed values."""
        data = deepcopy(self.data)
        for key, value in changes.items():
            _set_key(data, key, value)
        config = parse_config(data, self.source)
        if not isinstance(config, Run):
            raise ConfigError(f"f must be a configuration of a run; got one with [{config.work}].")
        return config

    def _array_keys(self, points: list[SweepPoint]) -> list[str]:
        """The parameters of the model that may be arrays, with one entry for each member."""
        first = points[0].parameters

        def makes_members(name: str) -> bool:
            """Whether two values of this parameter make an ensemble."""
            try:
                model = self._read({**first, name: [first[name]] * 2}).tables["model"]
            except MeanfieldError:
                return False
            return model.shape == (2,)

        numbers = [n for n, v in first.items() if isinstance(v, int | float)]
        return [name for name in numbers if name.startswith(MODEL_PREFIX) and makes_members(name)]

    def _seeds(self, point: SweepPoint, seed: int) -> dict[str, int]:
        """Seeds of the noise and of random initial states, unless they are parameters."""
        keys = [NOISE_SEED, *_seed_keys(self.data.get(INITIAL_TABLE, {}), INITIAL_TABLE)]
        children = seed_of(seed, point).spawn(len(keys))
        seeds = [int(child.generate_state(1, np.uint64)[0] >> 1) for child in children]
        return {k: s for k, s in zip(keys, seeds, strict=True) if k not in point.parameters}


def _seed_keys(data: Any, where: str) -> Iterator[str]:
    """Yield the dotted keys of all random seeds in plain data."""
    data = dict(enumerate(data)) if isinstance(data, list | tuple) else data
    for name, value in data.items() if isinstance(data, Mapping) else ():
        if name == RNG:
            yield f"{where}.{RNG}"
        else:
            yield from _seed_keys(value, f"{where}.{name}")


def _set_key(data: Any, key: str, value: Any) -> None:
    """Set the value of a dotted key; numbers in it are indices of arrays."""
    *tables, last = key.split(".")
    table = data
    for name in tables:
        table = table[_key_or_index(table, name, key)]
    table[_key_or_index(table, last, key, new=True)] = value


def _key_or_index(table: Any, name: str, key: str, new: bool = False) -> Any:
    """The key of a table, or the index of an array, that a part of a dotted key names.

    A table need not have it yet if it is `new`.
    """
    if isinstance(table, list):
        if not name.isdigit() or int(name) >= len(table):
            raise ConfigError(f"{key}: expected an index below {len(table)}; got {name}.")
        return int(name)
    if not isinstance(table, dict) or not (new or name in table):
        raise ConfigError(
            f"{key}: expected a key of a table of the configuration; there is no table {name}."
        )
    return name


def _joins(name: str, value: Any, arrays: Sequence[str]) -> bool:
    """Whether runs that differ in this value may be members of one ensemble.

    A value of the initial state may differ if it is a real number or a seed.
    """
    *tables, last = name.split(".")
    of_start = tables[:1] == [INITIAL_TABLE] and (isinstance(value, float) or last == RNG)
    return name in arrays or name == NOISE_SEED or of_start


# Members of an ensemble --------------------------------------------------------------------------


class _EnsembleRun(NamedTuple):
    """Several runs as one ensemble: configuration, model, initial state, options of `solve`."""

    config: Run
    model: Transformer
    start: State
    options: dict[str, Any]


def _members(run: Solution) -> list[Outcome]:
    """The outcomes of the members of an ensemble with one axis, as single runs have them."""
    data = run.observables.reset_coords(drop=True)
    status = {STATUS: Variable((), np.array("finished"))}
    return [
        Outcome(Outcome.of(data.isel({MEMBER_AXIS: number}, drop=True)).variables | status)
        for number in range(run.shape[0])
    ]


# Tables of parameters ----------------------------------------------------------------------------


def flattened(table: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The values of a table with dotted keys or nested tables, by dotted keys.

    A table of `first`, `last` and `count` is a range: its `spacing` is "linear", or "log".

    Raises
    ------
    ConfigError
        For values that are neither arrays nor tables.
    """
    values: dict[str, Any] = {}
    for name, value in table.items():
        key = f"{where}.{name}" if where else name
        if isinstance(value, Mapping) and set(RANGE_KEYS) <= set(value):
            values[key] = _range(key, value)
        elif isinstance(value, Mapping):
            values |= flattened(value, key)
        elif isinstance(value, list | tuple) and value:
            values[key] = list(value)
        else:
            raise ConfigError(
                f"sweep.parameters.{key}: expected an array of values, or a range "
                f"{{ first = ..., last = ..., count = ... }}; got {value!r}."
            )
    return values


def _range(key: str, table: Mapping[str, Any]) -> list[float]:
    """Numbers from `first` to `last` with a spacing; ConfigError names the key."""
    try:
        unknown = [name for name in table if name not in (*RANGE_KEYS, "spacing")]
        require("keys", unknown, f"{', '.join(RANGE_KEYS)} and spacing", not unknown)
        count = whole_number("count", table["count"], most=10**6)
        spacing = table.get("spacing", "linear")
        require("spacing", spacing, " or ".join(SPACINGS), spacing in list(SPACINGS))
        ends = [real(name, table[name], "finite", np.isfinite) for name in ("first", "last")]
        expected = "above 0, and so the last, for a logarithmic spacing"
        require("first", ends[0], expected, spacing == "linear" or min(ends) > 0)
    except ValueError as error:
        raise ConfigError(f"sweep.parameters.{key}: {error}") from error
    return SPACINGS[spacing](*ends, count).tolist()
