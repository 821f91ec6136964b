"""Runs of a configuration with other values at dotted keys: what a sweep does at its points."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..core.checks import fitting, real, whole_number
from ..core.errors import ConfigError, MeanfieldError
from ..core.files import NUMBER_FORMATS, RESULT_FORMATS, checksum
from ..results.solution import Solution
from ..sweeps.points import RNG, Point, Work, seed_of
from .cli import import_kinds
from .configuration import parse_config

NOISE = "solve.rng"
START = "initial"
MEMBER = "member"
RANGE = ("first", "last", "count")
SPACINGS: dict[str, Any] = {"linear": np.linspace, "log": np.geomspace}


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

    @property
    def takes_rng(self) -> bool:
        return True

    def identity(self) -> Any:
        """What `digest` reads of it: data files count by what they hold."""
        files = parse_config(self.data, self.source).files
        held = {key: checksum(path) for key, path in files.items()}
        return {"data": self.data, "files": held, "imports": dict(self.imports)}

    def contents(self, value: Any) -> Any:
        """A value; the name of a data file with what the file holds."""
        if isinstance(value, Mapping):
            return {name: self.contents(entry) for name, entry in value.items()}
        if isinstance(value, list | tuple):
            return [self.contents(entry) for entry in value]
        folder = Path() if self.source is None else self.source.parent
        named = isinstance(value, str) and value.endswith((*NUMBER_FORMATS, *RESULT_FORMATS))
        if named and (folder / value).is_file():
            return value, checksum(folder / value)
        return value

    def check(self, point: Point) -> None:
        self._read(point.parameters)

    def batches(self, points: list[Point], size: int, seed: int | None) -> list[list[Point]]:
        keys = [] if size == 1 or seed is not None else self._array_keys(points)
        if not keys:
            return [[point] for point in points]
        groups: dict[str, list[Point]] = {}
        for point in points:
            others = {name: v for name, v in point.parameters.items() if name not in keys}
            groups.setdefault(repr((others, point.replica)), []).append(point)
        return [some[i : i + size] for some in groups.values() for i in range(0, len(some), size)]

    def values(self, points: Sequence[Point], seed: int | None) -> list[Any]:
        self._import()
        if len(points) == 1:
            seeds = {} if seed is None else self._seeds(points[0], seed)
            return [self._run(points[0].parameters | seeds)]
        first = points[0].parameters
        together = {name: [p.parameters[name] for p in points] for name in first}
        same = {n: first[n] for n, values in together.items() if all(v == first[n] for v in values)}
        run = self._run(together | same)
        ends = np.broadcast_to(run.stats.get("status", run.status), run.shape)
        return [
            _Member(run, i) if end == "finished" else self._run(point.parameters)
            for i, (end, point) in enumerate(zip(ends, points, strict=True))
        ]  # one that ends earlier has other outputs than the rest

    def _run(self, changes: Mapping[str, Any]) -> Solution:
        config = self._read(changes)
        return config.run(out=None, resume=False, progress=False)

    def _read(self, changes: Mapping[str, Any]) -> Any:
        """The configuration with these values."""
        data = deepcopy(self.data)
        for key, value in changes.items():
            _change(data, key, value)
        config = parse_config(data, self.source)
        if config.work != "solve":
            raise ConfigError(f"f must be a configuration of a run; got one with [{config.work}].")
        return config

    def _array_keys(self, points: list[Point]) -> list[str]:
        """The parameters of which the model takes arrays: its members are then those of a batch."""
        first = points[0].parameters

        def makes_members(name: str) -> bool:
            try:
                model = self._read({**first, name: [first[name]] * 2}).tables["model"]
            except MeanfieldError:
                return False
            return model.shape == (2,)

        numbers = [n for n, v in first.items() if isinstance(v, int | float)]
        return [name for name in numbers if name.startswith("model.") and makes_members(name)]

    def _seeds(self, point: Point, seed: int) -> dict[str, int]:
        """Seeds of the noise, and of what is drawn at the start, unless they are parameters."""
        keys = [NOISE, *_seed_keys(self.data.get(START, {}), START)]
        children = seed_of(seed, point).spawn(len(keys))
        seeds = [int(child.generate_state(1, np.uint64)[0] >> 1) for child in children]
        return {k: s for k, s in zip(keys, seeds, strict=True) if k not in point.parameters}

    def _import(self) -> None:
        """What the process that began the sweep has imported."""
        for name in self.imports:
            if (Path(name).stem if name.endswith(".py") else name) not in sys.modules:
                import_kinds(name)


def _seed_keys(data: Any, at: str) -> Iterator[str]:
    data = dict(enumerate(data)) if isinstance(data, list | tuple) else data
    for name, value in data.items() if isinstance(data, Mapping) else ():
        if name == RNG:
            yield f"{at}.{RNG}"
        else:
            yield from _seed_keys(value, f"{at}.{name}")


def _change(data: Any, key: str, value: Any) -> None:
    """Set the value of a dotted key; numbers in it are places in arrays."""
    *above, last = key.split(".")
    table = data
    for name in above:
        table = _entry(table, name, key)
    if isinstance(table, list):
        table[_place(table, last, key)] = value
    elif isinstance(table, dict):
        table[last] = value
    else:
        raise ConfigError(f"{key}: expected a key of a table; there is {table!r} above it.")


def _entry(table: Any, name: str, key: str) -> Any:
    if isinstance(table, list):
        return table[_place(table, name, key)]
    if not isinstance(table, dict) or name not in table:
        raise ConfigError(
            f"{key}: expected a key of a table of the configuration; there is no table {name}."
        )
    return table[name]


def _place(entries: list, name: str, key: str) -> int:
    if not name.isdigit() or int(name) >= len(entries):
        raise ConfigError(f"{key}: expected a place below {len(entries)}; got {name}.")
    return int(name)


# Members of an ensemble --------------------------------------------------------------------------


class _Member:
    """What one member of an ensemble has, as its run alone would have it."""

    def __init__(self, run: Solution, number: int):
        data = run.observables
        member = data.isel({MEMBER: number}, drop=True) if MEMBER in data.dims else data
        own = [str(name) for name in member.coords if name not in member.dims]
        found = member.drop_vars(own).assign(status="finished")
        self.data_vars = found.data_vars
        self.variables, self.coords = found.variables, found.coords


# Tables of parameters ----------------------------------------------------------------------------


def flattened(table: Mapping[str, Any], at: str = "") -> dict[str, Any]:
    """Values by dotted keys, from a table whose keys are dotted, or that has tables in it.

    A table of `first`, `last` and `count` is a range: its `spacing` is "linear", or "log".

    Raises
    ------
    ConfigError
        For what is neither an array nor a table.
    """
    found: dict[str, Any] = {}
    for name, value in table.items():
        key = f"{at}.{name}" if at else name
        if isinstance(value, Mapping) and set(RANGE) <= set(value):
            found[key] = _range(key, value)
        elif isinstance(value, Mapping):
            found |= flattened(value, key)
        elif isinstance(value, list | tuple) and value:
            found[key] = list(value)
        else:
            raise ConfigError(
                f"sweep.parameters.{key}: expected an array of values, or a range "
                f"{{ first = ..., last = ..., count = ... }}; got {value!r}."
            )
    return found


def _range(key: str, table: Mapping[str, Any]) -> list[float]:
    try:
        unknown = [name for name in table if name not in (*RANGE, "spacing")]
        fitting("keys", unknown, f"{', '.join(RANGE)} and spacing", not unknown)
        count = whole_number("count", table["count"], most=10**6)
        spacing = table.get("spacing", "linear")
        fitting("spacing", spacing, " or ".join(SPACINGS), spacing in list(SPACINGS))
        ends = [real(name, table[name], "finite", np.isfinite) for name in ("first", "last")]
        wanted = "above 0, and so the last, for a logarithmic spacing"
        fitting("first", ends[0], wanted, spacing == "linear" or min(ends) > 0)
    except ValueError as error:
        raise ConfigError(f"sweep.parameters.{key}: {error}") from error
    return SPACINGS[spacing](*ends, count).tolist()
