"""Configuration files: TOML tables for what objects and functions of the package take.

The tables [model], [space] and [initial] are kinds; [solve], [sweep], [chaos], [bifurcation] and
[phase_diagram] are the arguments of the functions that do the work. Which of these stands in a file
says of which kind the file is: see `tasks`.
"""

import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any

from ..core.checks import as_given, boolean, check_memory, fitting, path_of
from ..core.errors import ConfigError
from ..core.files import Lock
from ..core.forms import INVALID, Reading, nearest
from ..core.kinds import describe
from .tasks import TASKS, Configuration, Run, checkpoint_of

MOST_PROBLEMS = 20  # that one message lists
DEEPEST = 60  # tables and arrays in each other
TOO_DEEP = f"expected tables and arrays at most {DEEPEST} deep in each other; these are deeper."

# Reading -----------------------------------------------------------------------------------------


def read_config(path: str | PathLike[str]) -> Configuration:
    """Read and check a configuration file (TOML).

    It is of a run, with the table [solve]; of many runs, with [sweep] too; of a study, with
    [chaos]; or of a diagram, with [bifurcation] or [phase_diagram].

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
    kind = next((task for work, task in TASKS.items() if work in data), Run)
    reading = Reading(folder=Path() if path is None else path.parent)
    tables = _tables(kind, data, reading)
    if not reading.problems:
        reading.problems += _repeated_seeds(data)
    if reading.problems:
        prefix, lines = "" if path is None else f"{path}: ", reading.problems[:MOST_PROBLEMS]
        if left := len(reading.problems) - len(lines):
            lines = [*lines, f"and {left} more problems"]
        raise ConfigError("\n".join(prefix + line for line in lines))
    return kind(describe(dict(data)), path, tables, reading.files)


def _tables(kind: type[Configuration], data: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    forms, required, found = kind.forms(), kind.required(), {}
    for name, value in data.items():
        if name in forms:
            found[name] = forms[name].read(value, name, reading)
        else:
            homes = [f"[{table}]" for table in required if name in forms[table].keys]
            near = f"; did you mean {name} in {' or '.join(homes)}?" if homes else ""
            hint = near or nearest(str(name), forms)
            reading.refuse(name, f"unknown key{hint} (valid here: {', '.join(forms)})")
    for name in required:
        if name not in data:
            reading.refuse(name, "this key is required and is missing")
    return {name: value for name, value in found.items() if value is not INVALID}


def _repeated_seeds(data: Mapping[str, Any]) -> Iterator[str]:
    """The same random numbers must not be used twice: matrices, positions and noise.

    Those of the matrices of a model may be equal, and those of the entries of an array: the members
    of an ensemble, for instance.
    """
    known: dict[int, tuple[str, str]] = {}
    for key, seed, group in (s for name, value in data.items() for s in _seeds(value, name, name)):
        other, elsewhere = known.setdefault(seed, (key, group))
        if elsewhere != group:
            yield (
                f"{other} and {key} are both {seed}: the same random numbers would be used twice; "
                "give one of them another seed"
            )


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


def _read_toml(path: Path) -> dict[str, Any]:
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
    if _deeper_than(DEEPEST, [data]):
        raise ConfigError(f"{path}: {TOO_DEEP}")
    return data


def _deeper_than(most: int, data: Any) -> bool:
    """Whether there are tables and arrays in each other beyond this depth."""
    for _ in range(most):
        entries = (v.values() if isinstance(v, Mapping) else v for v in data)
        data = [v for some in entries for v in some if isinstance(v, Mapping | list)]
        if not data:
            return False
    return True


def schema(kind: str = "solve") -> dict[str, Any]:
    """The JSON schema of a configuration file of a run ("solve"), or of another of the `TASKS`.

    JSON cannot write inf; where it means no noise, TOML's `inf` is accepted too.

    Raises
    ------
    ValueError
        For another kind.
    """
    known = isinstance(kind, str) and kind in TASKS
    fitting("kind", kind, f"one of {', '.join(TASKS)}", known)
    chosen = TASKS[kind]
    definitions: dict[str, Any] = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind,
        "description": chosen.__doc__,
        "type": "object",
        "properties": {name: form.json(definitions) for name, form in chosen.forms().items()},
        "required": list(chosen.required()),
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
        the run succeeds, or nothing is missing from a diagram. Of several phase diagrams each has
        its own file, OUT_USA.nc and OUT_SA.nc, and its own checkpoint. Without `out` nothing is
        written.
    resume : bool
        Continue from the checkpoints beside `out`, if there are any.
    progress : bool, optional
        Show a progress bar; by default on a terminal and in a notebook.

    Returns
    -------
    Solution, Sweep, Study, Diagram or tuple of PhaseDiagram
        Its provenance, or the attribute "provenance" of the data of a study or a diagram, records
        the configuration, the checksums of the data files it read and the command line.

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
    resume, out = boolean("resume", resume), None if out is None else path_of("out", out)
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
            part.save(file)
        if not config.problems(result):
            for checkpoint in map(checkpoint_of, files):
                checkpoint.unlink(missing_ok=True)
    return result
