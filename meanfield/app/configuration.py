"""Configuration files: TOML tables for what objects and functions of the package take.

The tables [model], [space] and [initial] are kinds; [solve], [chaos], [bifurcation] and
[phase_diagram] are the arguments of the functions that do the work. Which of these stands in a file
says of which kind the file is.
"""

import json
import math
import re
import sys
import tomllib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..core.checks import boolean, path_of
from ..core.errors import CheckpointError, ConfigError, MeanfieldError
from ..core.files import checksum
from ..core.forms import INVALID, TEXT, Form, Reading, nearest, toml
from ..core.kinds import KindOf, call_json, located, parameters_of, read_arguments

__all__ = ["Configuration", "checkpoint_of", "parse_config", "read_config", "run_config", "schema"]

BY_PROGRAM = {
    *("model", "state", "mu0", "drift", "geometry", "events", "callback", "observe"),
    *("observables", "functionals", "progress", "checkpoint", "resume", "provenance"),
}  # arguments of functions that a table does not give


def checkpoint_of(out: str | PathLike[str]) -> Path:
    """Where the checkpoint of a result file lies: beside it."""
    return Path(f"{out}.checkpoint")


@dataclass(frozen=True, eq=False)
class Arguments(Form):
    """The table of the arguments of a function, which is imported when a table is read."""

    function: Callable[[], Callable]
    expected: str = "a table"

    @property
    def keys(self) -> list[str]:
        return [name for name in parameters_of(self.function()) if name not in BY_PROGRAM]

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        if not isinstance(data, Mapping):
            return reading.refuse(at, f"expected {self.expected}; got {toml(data)}")
        return read_arguments(self.function(), data, at, reading, self.keys)

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        return call_json(self.function(), definitions, names=self.keys)


# What a file may hold ----------------------------------------------------------------------------


def _solver() -> Callable:
    from ..solving import solve

    return solve


def _study() -> Callable:
    from ..chaos import propagation_of_chaos

    return propagation_of_chaos


def _branches() -> Callable:
    from ..bifurcation import branches

    return branches


def _phases() -> Callable:
    from ..bifurcation import phase_diagram

    return phase_diagram


def _drifts() -> KindOf:
    from ..models import Drift

    return KindOf(Drift)


def _family(module: str, name: str) -> Callable[[], Form]:
    def form() -> Form:
        from importlib import import_module

        return KindOf(getattr(import_module(f"..{module}", __package__), name))

    return form


Forms = dict[str, Callable[[], Form]]  # of tables, made when they are read
TEXTS: Forms = {"title": lambda: TEXT, "description": lambda: TEXT}
MODEL, SPACE = _family("models.transformer", "Transformer"), _family("spaces", "Geometry")
START, LAW = _family("spaces.laws", "Start"), _family("spaces.laws", "DensityLaw")


@dataclass(frozen=True, eq=False)
class Configuration:
    """What a configuration file describes, read and checked.

    Attributes
    ----------
    data : dict
        What the file holds, as plain data that JSON can write; `parse_config` reads it again.
    source : Path or None
        The file.
    tables : dict
        The tables by name: kinds, and arguments of functions.
    files : tuple of Path
        The data files that it names.
    imports : dict
        The modules that were imported for their kinds, by name: the SHA-256 of each.
    """

    data: dict[str, Any]
    source: Path | None
    tables: dict[str, Any]
    files: tuple[Path, ...] = ()
    imports: Mapping[str, str] = field(default_factory=dict)

    work: ClassVar[str] = ""  # the table that says what is to be done
    command: ClassVar[str] = ""
    required: ClassVar[Forms] = {}
    optional: ClassVar[Forms] = {}
    resumable: ClassVar[bool] = True

    @abstractmethod
    def run(self, **options: Any) -> Any:
        """Do the work; `options` are progress, checkpoint and resume."""

    @property
    def provenance(self) -> dict[str, Any]:
        """Plain data that a result keeps, from which it can be computed again."""
        return {
            "config": self.data,
            "config_file": None if self.source is None else str(self.source),
            "data_files": {str(path): {"sha256": checksum(path)} for path in self.files},
            "imports": dict(self.imports),
            "command_line": list(sys.argv),
        }

    @contextmanager
    def blaming(self, table: str, names: Iterable[str] = ()) -> Iterator[None]:
        """Turns what the package refuses into an error that names the file and the key.

        That is the table, or one of `names` in it with which the message begins.
        """
        try:
            yield
        except (ConfigError, CheckpointError):
            raise  # says itself what is wrong
        except (MeanfieldError, ValueError, TypeError, MemoryError) as error:
            key, text = located(str(error), table, names)
            if isinstance(error, MemoryError):
                text = f"it needs more memory than there is. {error}".strip()
            raise self.error(f"{key}: {text}") from error

    def error(self, text: str) -> ConfigError:
        """An error that names the file."""
        return ConfigError(text if self.source is None else f"{self.source}: {text}")

    def begin(self) -> Any:
        """The state, or the density, that [initial] makes on [space]."""
        law = self.tables["initial"]
        kind: Callable = type(law)
        with self.blaming("initial", parameters_of(kind)):
            return law.begin(self.tables.get("space"))

    def call(self, function: Callable, *objects: Any, **options: Any) -> Any:
        """The function of the table `work`, with the arguments of that table."""
        with self.blaming(self.work, parameters_of(function)):
            return function(*objects, **self.tables[self.work], **options)


class Run(Configuration):
    """One run: a model, a state at the start, and how to solve."""

    work, command = "solve", "solve"
    required: ClassVar[Forms] = {
        "model": MODEL,
        "initial": START,
        "solve": lambda: Arguments(_solver),
    }
    optional: ClassVar[Forms] = {"space": SPACE, **TEXTS}

    def run(self, **options: Any) -> Any:
        from ..models.parameters import Place

        state = self.begin()
        with self.blaming("model"):
            model = self.tables["model"].resolve(Place(state.dimension, state.tokens))
        seeded = "rng" in self.tables["solve"]
        if state.takes_noise and seeded != model.noisy:
            raise self.error(
                "solve.rng: nothing is random without noise, where kappa = inf; leave it out"
                if seeded
                else "solve.rng: this key is required and is missing: with it a run that draws "
                "random numbers can be repeated"
            )
        state = state.with_members(len(model.shape))
        return self.call(_solver(), model, state, **options, provenance=self.provenance)


class Study(Configuration):
    """A study of propagation of chaos: a model, the law of the tokens at the start, and sizes."""

    work, command = "chaos", "chaos"
    required: ClassVar[Forms] = {
        "model": MODEL,
        "space": SPACE,
        "initial": LAW,
        "chaos": lambda: Arguments(_study),
    }
    optional: ClassVar[Forms] = {**TEXTS}

    def run(self, **options: Any) -> Any:
        study = self.call(_study(), self.tables["model"], self.begin(), **options)
        study.data.attrs["provenance"] = json.dumps(self.provenance)
        return study


class Bifurcation(Configuration):
    """A bifurcation diagram: a drift, a space, and a range of kappa or of another parameter."""

    work, command, resumable = "bifurcation", "bifurcation", False
    required: ClassVar[Forms] = {
        "drift": lambda: _DriftToFollow(),
        "space": SPACE,
        "bifurcation": lambda: Arguments(_branches),
    }
    optional: ClassVar[Forms] = TEXTS

    def run(self, **options: Any) -> Any:
        diagram = self.call(_branches(), self.tables["drift"], self.tables["space"], **options)
        diagram.data.attrs["provenance"] = json.dumps(self.provenance)
        return diagram


class PhaseDiagrams(Configuration):
    """Phase diagrams of some kinds of drifts: a space, and a range of beta."""

    work, command, resumable = "phase_diagram", "phase-diagram", False
    required: ClassVar[Forms] = {
        "drifts": lambda: _NamesOfDrifts(),
        "space": SPACE,
        "phase_diagram": lambda: Arguments(_phases),
    }
    optional: ClassVar[Forms] = TEXTS

    def run(self, **options: Any) -> tuple:
        found: list[Any] = []
        for drift in self.tables["drifts"]:
            found.append(self.call(_phases(), drift, self.tables["space"], **options))
            found[-1].data.attrs["provenance"] = json.dumps(self.provenance)
            if any("interrupted" in ends for ends in found[-1].ends.values()):
                break
        return tuple(found)

    def names(self, out: Path) -> list[Path]:
        """The file of every drift: `out`, or with several OUT_USA.nc and OUT_SA.nc."""
        drifts = [drift.__name__ for drift in self.tables["drifts"]]
        if len(drifts) == 1:
            return [out]
        return [out.with_name(f"{out.stem}_{drift}{out.suffix}") for drift in drifts]


class _DriftToFollow(Form):
    """A drift; or the name of one alone, where a parameter that it requires is followed."""

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        drifts = _drifts()
        kind = drifts.base.kinds.get(data) if isinstance(data, str) else None
        if kind is not None and any(p.required for p in parameters_of(kind).values()):
            return kind
        return drifts.read(data, at, reading)

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        drifts = _drifts()
        return {"anyOf": [*drifts.json(definitions)["anyOf"], {"enum": list(drifts.names)}]}


class _NamesOfDrifts(Form):
    """Names of kinds of drifts, each at most once."""

    expected = "an array of names of drifts, each at most once"

    def read(self, data: Any, at: str, reading: Reading) -> Any:
        drifts = _drifts()
        names = data if isinstance(data, list) else []
        if not names or len(set(map(str, names))) < len(names):
            return reading.refuse(at, f"expected {self.expected}; got {toml(data)}")
        before = len(reading.problems)
        for i, name in enumerate(names):
            if name not in drifts.names:
                known, hint = ", ".join(drifts.names), nearest(str(name), drifts.names)
                reading.refuse(f"{at}[{i}]", f"expected one of {known}; got {toml(name)}{hint}")
        if len(reading.problems) > before:
            return INVALID
        return [drifts.base.kinds[name] for name in names]

    def json(self, definitions: dict[str, Any]) -> dict[str, Any]:
        names = {"enum": list(_drifts().names)}
        return {"type": "array", "items": names, "minItems": 1, "uniqueItems": True}


KINDS: dict[str, type[Configuration]] = {
    kind.work: kind for kind in (Study, Bifurcation, PhaseDiagrams, Run)
}


# Reading -----------------------------------------------------------------------------------------


def read_config(path: str | PathLike[str]) -> Configuration:
    """Read and check a configuration file (TOML).

    It is of a run, with the table [solve]; of a study, with [chaos]; or of a diagram, with
    [bifurcation] or [phase_diagram].

    Parameters
    ----------
    path : path
        The file. Relative names of data files in it start from its folder.

    Raises
    ------
    ConfigError
        If the file is missing, is not TOML, or holds anything invalid. The message has one
        line for each problem: file, dotted key, what was expected, what came, and for an
        unknown key the nearest valid one.
    TypeError
        If `path` is not a path.
    """
    source = path_of("path", path)
    return parse_config(_read_toml(source), source=source)


def parse_config(
    data: Mapping[str, Any], source: str | PathLike[str] | None = None
) -> Configuration:
    """Check a configuration given as plain data, such as the one a result file records.

    Parameters
    ----------
    data : dict
        What the TOML file would hold.
    source : path, optional
        The file it comes from: named in messages, and its folder is where relative names of
        data files start (the working directory by default).

    Raises
    ------
    ConfigError
        As `read_config`.
    """
    path = None if source is None else path_of("source", source)
    kind = next((kind for table, kind in KINDS.items() if table in data), Run)
    reading = Reading(folder=Path() if path is None else path.parent)
    tables = _tables(kind, data, reading)
    if not reading.problems:
        reading.problems += _repeated_seeds(data)
    if reading.problems:
        prefix = "" if path is None else f"{path}: "
        raise ConfigError("\n".join(prefix + line for line in reading.problems))
    return kind(_json(data), path, tables, tuple(sorted(set(reading.files))))


def _tables(kind: type[Configuration], data: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    forms = {**kind.required, **kind.optional}
    found = {}
    for name, value in data.items():
        if name in forms:
            found[name] = forms[name]().read(value, name, reading)
        else:
            homes = [f"[{table}]" for table in kind.required if name in forms[table]().keys]
            near = f"; did you mean {name} in {' or '.join(homes)}?" if homes else ""
            hint = near or nearest(str(name), forms)
            reading.refuse(name, f"unknown key{hint} (valid here: {', '.join(forms)})")
    for name in kind.required:
        if name not in data:
            reading.refuse(name, "this key is required and is missing")
    return {name: value for name, value in found.items() if value is not INVALID}


def _repeated_seeds(data: Mapping[str, Any]) -> Iterator[str]:
    """The same random numbers must not be used twice: matrices, positions and noise.

    Those of the matrices of a model may be equal, and those of the entries of an array: the members
    of an ensemble, for instance.
    """
    found = [seed for name, value in data.items() for seed in _seeds(value, name, name)]
    for i, (key, seed, group) in enumerate(found):
        for other, same, elsewhere in found[:i]:
            if same == seed and elsewhere != group:
                yield (
                    f"{other} and {key} are both {seed}: the same random numbers would be used "
                    "twice; give one of them another seed"
                )
                break


def _seeds(data: Any, at: str, group: str) -> Iterator[tuple[str, int, str]]:
    """Key, seed and group of the random numbers below a key; those of a group may be equal."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            key = f"{at}.{name}"
            inner = group if group == "model" or group.endswith("[]") else key
            if name == "rng" and isinstance(value, int):
                yield key, value, inner
            yield from _seeds(value, key, inner)
    elif isinstance(data, list | tuple):
        inner = group if group == "model" else f"{at}[]"
        for i, value in enumerate(data):
            yield from _seeds(value, f"{at}[{i}]", inner)


def _json(value: Any) -> Any:
    """Plain data that JSON can write: infinite numbers as words."""
    if isinstance(value, Mapping):
        return {key: _json(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_json(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: there is no such configuration file; looked for {path.absolute()}"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: expected a TOML file, which is UTF-8 text; byte {error.start} is not. "
            "Give the configuration file, not a result file."
        ) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {_malformed(str(error), text)}") from None


def _malformed(message: str, text: str) -> str:
    """What is wrong with the TOML, the line number first."""
    found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", message, flags=re.DOTALL)
    if found is None:  # tomllib says "at end of document"
        reason = message.replace(" (at end of document)", "")
        return f"line {len(text.splitlines())}, the end of the file: not TOML: {reason}"
    reason, line, column = found.groups()
    return f"line {line}, column {column}: not TOML: {reason}"


def schema(kind: str = "solve") -> dict[str, Any]:
    """The JSON schema of a configuration file of a run ("solve"), or of another of the `KINDS`.

    JSON cannot write inf; where it means no noise, TOML's `inf` is accepted too.

    Raises
    ------
    ValueError
        For another kind.
    """
    if kind not in KINDS:
        raise ValueError(f"Configuration files are of kind {', '.join(KINDS)}; got {kind!r}.")
    chosen = KINDS[kind]
    definitions: dict[str, Any] = {}
    forms = {**chosen.required, **chosen.optional}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "description": chosen.__doc__,
        "type": "object",
        "properties": {name: form().json(definitions) for name, form in forms.items()},
        "required": list(chosen.required),
        "additionalProperties": False,
        "$defs": definitions,
    }


# Running -----------------------------------------------------------------------------------------


def run_config(
    config: Configuration,
    out: PathLike | str | None = None,
    *,
    resume: bool = False,
    progress: bool | None = None,
) -> Any:
    """Solve what a configuration describes, or do the study, or follow the diagram.

    Parameters
    ----------
    config : Configuration
        From `read_config`.
    out : path, optional
        NetCDF file to write; what is there is replaced. While the run lasts, checkpoints are
        kept beside it under the same name with ``.checkpoint`` added, which are removed when
        the run succeeds. Of several phase diagrams each has its own file, OUT_USA.nc and
        OUT_SA.nc. Without it nothing is written.
    resume : bool
        Continue from the checkpoint beside `out`, if there is one; diagrams have none.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    Solution, Study, Diagram or tuple of PhaseDiagram
        Its provenance, or the attribute "provenance" of the data of a study or a diagram, records
        the configuration, the checksums of the data files it read and the command line.

    Raises
    ------
    ConfigError
        If the density or the model cannot be built.
    CheckpointError
        If the checkpoint is damaged or belongs to another run.
    TypeError, ValueError
        If `out` is not a path, `resume` or `progress` not a bool; for `resume` without `out`, and
        of a diagram.
    """
    resume, out = boolean("resume", resume), None if out is None else path_of("out", out)
    if not isinstance(config, Configuration):
        raise TypeError(f"run_config needs a configuration from read_config; got {config!r}")
    if resume and out is None:
        raise ValueError("resume=True needs out, the result file whose checkpoint is continued")
    if resume and not config.resumable:
        raise ValueError(
            "resume is for runs and studies; diagrams have no checkpoint: leave it out"
        )
    options: dict[str, Any] = {"progress": progress}
    checkpoint = None if out is None else checkpoint_of(out)
    if config.resumable:
        options |= {"checkpoint": checkpoint, "resume": resume}
    result = config.run(**options)
    if out is not None and checkpoint is not None:
        if isinstance(config, PhaseDiagrams):
            for diagram, name in zip(result, config.names(out), strict=False):
                diagram.save(name)
        else:
            result.save(out)
            if config.resumable and result.success:
                checkpoint.unlink(missing_ok=True)
    return result
