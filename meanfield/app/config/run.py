"""Run what a configuration describes, with its provenance, checkpoints and result file."""

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from ...core.checks import boolean, path_of
from ...solving import solve
from .blame import blaming
from .build import build_density, build_model, build_state, solve_arguments
from .files import checkpoint_of
from .provenance import provenance_of
from .schema import BifurcationConfig, Config, File, PhaseConfig, StudyConfig

if TYPE_CHECKING:
    from ...bifurcation import Diagram, PhaseDiagram
    from ...chaos import Study
    from ...results.solution import Solution

__all__ = ["run_config"]


@overload
def run_config(
    config: Config, out: PathLike | str | None = ..., *, resume: bool = ..., progress=...
) -> "Solution": ...


@overload
def run_config(
    config: StudyConfig, out: PathLike | str | None = ..., *, resume: bool = ..., progress=...
) -> "Study": ...


@overload
def run_config(
    config: BifurcationConfig, out: PathLike | str | None = ..., *, resume: bool = ..., progress=...
) -> "Diagram": ...


@overload
def run_config(
    config: PhaseConfig, out: PathLike | str | None = ..., *, resume: bool = ..., progress=...
) -> "tuple[PhaseDiagram, ...]": ...


@overload
def run_config(
    config: File, out: PathLike | str | None = ..., *, resume: bool = ..., progress=...
) -> Any: ...


def run_config(
    config: File,
    out: PathLike | str | None = None,
    *,
    resume: bool = False,
    progress: bool | None = None,
) -> Any:
    """Solve what a configuration describes, or do the study, or follow the diagram.

    Parameters
    ----------
    config : Config, StudyConfig, BifurcationConfig or PhaseConfig
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
    if resume and out is None:
        raise ValueError("resume=True needs out, the result file whose checkpoint is continued")
    if isinstance(config, BifurcationConfig | PhaseConfig):
        return _diagram(config, out, resume, progress)
    checkpoint = None if out is None else checkpoint_of(out)
    options = {"progress": progress, "checkpoint": checkpoint, "resume": resume}
    run: Any
    match config:
        case Config():
            run = _solve(config, options)
        case StudyConfig():
            run = _study(config, options)
        case _:
            raise TypeError(f"run_config needs a configuration from read_config; got {config!r}")
    if out is not None and checkpoint is not None:
        run.save(out)
        if run.success:
            checkpoint.unlink(missing_ok=True)
    return run


def _solve(config: Config, options: dict[str, Any]) -> "Solution":
    model, state = build_model(config), build_state(config)
    with blaming(config, "solve"):
        return solve(
            model, state, **solve_arguments(config), **options, provenance=provenance_of(config)
        )


def _study(config: StudyConfig, options: dict[str, Any]) -> "Study":
    from ...chaos import propagation_of_chaos

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
    study.data.attrs["provenance"] = json.dumps(provenance_of(config))
    return study


def _diagram(
    config: BifurcationConfig | PhaseConfig, out: Path | None, resume: bool, progress: bool | None
) -> "Diagram | tuple[PhaseDiagram, ...]":
    from .run_diagrams import follow_branches, follow_phases

    if resume:
        raise ValueError(
            "resume is for runs and studies; diagrams have no checkpoint: leave it out"
        )
    if isinstance(config, BifurcationConfig):
        return follow_branches(config, out, progress)
    return follow_phases(config, out, progress)
