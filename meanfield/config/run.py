"""Run what a configuration describes, with its provenance, checkpoints and result file."""

import json
import sys
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

from ..checks import boolean, path_of
from ..solving import solve
from .blame import blaming
from .build import build_density, build_model, build_state, solve_arguments
from .files import checkpoint_of, checksum, folder_of
from .initial import Ensemble, Mixture, Sample
from .matrices import MatrixFile
from .models import matrix_tables
from .schema import Config, StudyConfig, plain

if TYPE_CHECKING:
    from ..chaos import Study
    from ..solution import Solution

__all__ = ["run_config"]


@overload
def run_config(
    config: Config, out: PathLike | str | None = ..., *, resume: bool = ..., progress=...
) -> "Solution": ...


@overload
def run_config(
    config: StudyConfig, out: PathLike | str | None = ..., *, resume: bool = ..., progress=...
) -> "Study": ...


def run_config(
    config: Config | StudyConfig,
    out: PathLike | str | None = None,
    *,
    resume: bool = False,
    progress: bool | None = None,
) -> "Solution | Study":
    """Solve what a configuration describes, or do the study.

    Parameters
    ----------
    config : Config or StudyConfig
        From `read_config`.
    out : path, optional
        NetCDF file to write; what is there is replaced. While the run lasts, checkpoints are
        kept beside it under the same name with ``.checkpoint`` added, which are removed when
        the run succeeds. Without it nothing is written.
    resume : bool
        Continue from the checkpoint beside `out`, if there is one.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    Solution or Study
        Its provenance, or the attribute "provenance" of the data of a study, records the
        configuration, the checksums of the data files it read and the command line.

    Raises
    ------
    ConfigError
        If the density or the model cannot be built.
    CheckpointError
        If the checkpoint is damaged or belongs to another run.
    TypeError, ValueError
        If `out` is not a path, `resume` or `progress` not a bool; for `resume` without `out`.
    """
    resume, out = boolean("resume", resume), None if out is None else path_of("out", out)
    if resume and out is None:
        raise ValueError("resume=True needs out, the result file whose checkpoint is continued")
    checkpoint = None if out is None else checkpoint_of(out)
    options = {"progress": progress, "checkpoint": checkpoint, "resume": resume}
    run: Any = _solve(config, options) if isinstance(config, Config) else _study(config, options)
    if out is not None and checkpoint is not None:
        run.save(out)
        if run.success:
            checkpoint.unlink(missing_ok=True)
    return run


def _solve(config: Config, options: dict[str, Any]) -> "Solution":
    model, state = build_model(config), build_state(config)
    with blaming(config, "solve"):
        return solve(
            model, state, **solve_arguments(config), **options, provenance=_provenance(config)
        )


def _study(config: StudyConfig, options: dict[str, Any]) -> "Study":
    from ..chaos import propagation_of_chaos

    model, start = build_model(config), build_density(config)
    arguments = config.chaos.model_dump()
    with blaming(config, "chaos"):
        study = propagation_of_chaos(
            model,
            start,
            rng=arguments.pop("seed"),
            **arguments,
            **options,
            checkpoint_every=config.checkpoint.every,
        )
    study.data.attrs["provenance"] = json.dumps(_provenance(config))
    return study


def _provenance(config: Config | StudyConfig) -> dict[str, Any]:
    directory = folder_of(config.source)
    return {
        "config": plain(config),
        "config_file": None if config.source is None else str(config.source),
        "data_files": {file: {"sha256": checksum(directory / file)} for file in _files_of(config)},
        "command_line": list(sys.argv),
    }


def _files_of(config: Config | StudyConfig) -> list[str]:
    """The data files that a run reads."""
    found = _files(config.initial)
    if isinstance(config, Config) and config.tokens is not None and config.tokens.file is not None:
        found.append(config.tokens.file)
    found += [t.file for _, t in matrix_tables(config.model) if isinstance(t, MatrixFile)]
    return sorted(set(found))


def _files(table: Any) -> list[str]:
    """The data files that an initial density reads."""
    match table:
        case Sample(file=file):
            return [file]
        case Mixture(components=parts) | Ensemble(members=parts):
            return sorted({file for part in parts for file in _files(part)})
    return []
