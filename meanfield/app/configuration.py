"""Configuration files: TOML tables with the arguments of objects and functions of the package.

The tables [model], [space] and [initial] are kinds; [solve], [sweep], [chaos], [bifurcation] and
[phase_diagram] contain the arguments of functions, and identify the task of the file: see `tasks`.
"""

import itertools
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any

from ..core.checks import as_given, boolean, check_memory, path_of, require
from ..core.descriptions import describe
from ..core.errors import ConfigError
from ..core.files import Lock
from ..core.forms import INVALID, Plain, Reading, Schema, nearest
from ..results.files import result_path
from .tasks import TASKS, Configuration, Run, checkpoint_of

MAX_PROBLEMS = 20  # listed in one message
MAX_LENGTH = 2000  # characters of the problems listed, but for the first
MAX_DEPTH = 60  # of nested tables and arrays
TOO_DEEP = f"expected tables and arrays nested at most {MAX_DEPTH} deep; these are deeper."

# Reading -----------------------------------------------------------------------------------------


def read_config(path: str | PathLike[str]) -> Configuration:
    """Read and check a configuration file (TOML).

    A file with the table [solve] describes a run, with [sweep] in addition many runs, with [chaos]
    a study, and with [bifurcation] or [phase_diagram] a diagram.

    Parameters
    ----------
    path : path
        The file. Names of data files in it are relative to its folder.

    Raises
    ------
    ConfigError
        If the file is missing, is not TOML, or contains anything invalid. The message has one
        line for each problem: file, dotted key, expected and actual value, and for an unknown
        key the nearest valid one.
    TypeError
        If `path` is not a path.
    """
    source = path_of("path", path)
    return parse_config(_read_toml(source), source=source)


def parse_config(
    data: Mapping[str, Any], source: str | PathLike[str] | None = None
) -> Configuration:
    """Check a configuration in the form of plain data, as recorded in result files.

    Parameters
    ----------
    data : dict
        The contents of the TOML file.
    source : path, optional
        Its file, named in messages. Names of data files are relative to its folder (by default
        to the working directory).

    Raises
    ------
    ConfigError
        As `read_config`.
    TypeError
        If `data` is not a dictionary.
    """
    advice = "read_config reads a file, tomllib.loads a text."
    is_table = isinstance(data, Mapping)
    require("data", data, "a dictionary of tables", is_table, TypeError, advice)
    path = None if source is None else path_of("source", source)
    kind = next((task for work, task in TASKS.items() if work in data), Run)
    reading = Reading(folder=Path() if path is None else path.parent)
    tables = _tables(kind, data, reading)
    if not reading.problems:
        reading.problems += _repeated_seeds(data)
    if reading.problems:
        prefix, lines = "" if path is None else f"{path}: ", _listed(reading.problems)
        if left := len(reading.problems) - len(lines):
            lines = [*lines, f"and {left} more problems"]
        raise ConfigError("\n".join(prefix + line for line in lines))
    return kind(describe(dict(data)), path, tables, reading.files)


def _listed(problems: list[str]) -> list[str]:
    """The first problems, as many as one message has room for."""
    lengths = itertools.accumulate(len(problem) for problem in problems[:MAX_PROBLEMS])
    return problems[: max(1, sum(length <= MAX_LENGTH for length in lengths))]


def _tables(kind: type[Configuration], data: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Values of the tables of a configuration by name; problems are noted in `reading`."""
    forms, required, tables = kind.forms(), kind.required(), {}
    for name, value in data.items():
        if name in forms:
            tables[name] = forms[name].read(value, name, reading)
        else:
            homes = [f"[{table}]" for table in required if name in forms[table].keys]
            home_hint = f"; did you mean {name} in {' or '.join(homes)}?" if homes else ""
            hint = home_hint or nearest(str(name), forms)
            reading.refuse(name, f"unknown key{hint} (valid here: {', '.join(forms)})")
    for name in required:
        if name not in data:
            reading.refuse(name, "this key is required and is missing")
    return {name: value for name, value in tables.items() if value is not INVALID}


def _repeated_seeds(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each seed that occurs twice, for instance for positions and noise.

    The matrices of a model may have equal seeds, and so may the entries of an array, such as the
    members of an ensemble.
    """
    first_use: dict[int, tuple[str, str]] = {}
    for key, seed, group in (s for name, value in data.items() for s in _seeds(value, name, name)):
        first, first_group = first_use.setdefault(seed, (key, group))
        if first_group != group:
            yield (
                f"{first} and {key} are both {seed}: the same random numbers would be used twice; "
                "give one of them another seed"
            )


def _seeds(data: Plain, where: str, group: str) -> Iterator[tuple[str, int, str]]:
    """Yield key, seed and group of the seeds below a key; seeds of one group may be equal."""
    if isinstance(data, Mapping):
        for name, value in data.items():
            key = f"{where}.{name}"
            inner = group if group == "model" or group.endswith("[]") else key
            if name == "rng" and isinstance(value, int):
                yield key, value, inner
            yield from _seeds(value, key, inner)
    elif isinstance(data, list | tuple):
        inner = group if group == "model" else f"{where}[]"
        for i, value in enumerate(data):
            yield from _seeds(value, f"{where}[{i}]", inner)


def _read_toml(path: Path) -> dict[str, Any]:
    """Contents of a TOML file; ConfigError says why it cannot be read."""
    try:
        if not (stat.S_ISREG(path.stat().st_mode) or path.is_dir()):
            raise ConfigError(f"{path}: expected a file; it is a pipe or a device")
        check_memory(f"{path}", (2, path.stat().st_size), "its length")
        data = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
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
    except RecursionError:
        raise ConfigError(f"{path}: {TOO_DEEP}") from None
    except ValueError as error:  # also for integers of more than 4300 digits
        raise ConfigError(f"{path}: not TOML: {error}.") from None
    if _deeper_than(MAX_DEPTH, [data]):
        raise ConfigError(f"{path}: {TOO_DEEP}")
    return data


def _deeper_than(depth: int, data: Plain) -> bool:
    """Whether tables and arrays are nested deeper than this."""
    for _ in range(depth):
        entries = (v.values() if isinstance(v, Mapping) else v for v in data)
        data = [v for table in entries for v in table if isinstance(v, Mapping | list)]
        if not data:
            return False
    return True


def schema(kind: str = "solve") -> Schema:
    """The JSON schema of a configuration file of a run ("solve") or another of the `TASKS`.

    JSON has no inf; TOML's `inf` is accepted where it means no noise.

    Raises
    ------
    ValueError
        For other kinds.
    """
    require("kind", kind, f"one of {', '.join(TASKS)}", isinstance(kind, str) and kind in TASKS)
    task = TASKS[kind]
    definitions: Schema = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "description": task.__doc__,
        "type": "object",
        "properties": {name: form.json(definitions) for name, form in task.forms().items()},
        "required": list(task.required()),
        "additionalProperties": False,
        "$defs": definitions,
    }


# Running -----------------------------------------------------------------------------------------


def run_config(
    config: Configuration,
    out: PathLike[str] | str | None = None,
    *,
    resume: bool = False,
    progress: bool | None = None,
) -> Any:
    """Run the task that a configuration describes.

    Parameters
    ----------
    config : Configuration
        From `read_config`.
    out : path, optional
        NetCDF file to write; an existing file is replaced. During the run, checkpoints are written
        to the same name with ``.checkpoint`` added, and removed when the run succeeds or the
        diagram is complete. Several phase diagrams have separate files, OUT_USA.nc and OUT_SA.nc,
        and checkpoints. Without `out` nothing is written.
    resume : bool
        Continue from the checkpoints beside `out`, if there are any.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    Solution, Sweep, Study, Diagram or tuple of PhaseDiagram
        The attribute "provenance" of a solution, or of the data of a study or diagram, records
        the configuration, the checksums of its data files and the command line.

    Raises
    ------
    ConfigError
        If the density or the model cannot be built.
    CheckpointError
        If the checkpoint is damaged or belongs to another run.
    StorageError
        If `out` cannot be written, or is in use by another run.
    TypeError, ValueError
        If `out` is not a path, `resume` or `progress` not a bool; for `resume` without `out`.
    """
    progress = None if progress is None else boolean("progress", progress)
    resume, out = boolean("resume", resume), None if out is None else result_path("out", out)
    if not isinstance(config, Configuration):
        raise TypeError(f"config must be a configuration from read_config; got {as_given(config)}")
    if resume and out is None:
        raise ValueError("resume=True needs out, the result file whose checkpoint is continued")
    files = [] if out is None else config.outputs(out)
    with ExitStack() as locks:
        for file in files:
            locks.enter_context(Lock(file))
        result = config.run(out=out, resume=resume, progress=progress)
        parts = result if isinstance(result, tuple) else (result,)
        for part, file in zip(parts, files, strict=False):
            options = {"dense": True} if "dense" in getattr(part, "stored", {}) else {}
            part.save(file, **options)
        if not config.problems(result):
            for checkpoint in map(checkpoint_of, files):
                checkpoint.unlink(missing_ok=True)
    return result
