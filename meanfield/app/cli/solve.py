"""`meanfield solve`."""

import sys
from pathlib import Path

import click

from .group import (
    NOT_SUCCESSFUL,
    check_out,
    config_of,
    main,
    plain_warnings,
    refuses_cleanly,
    writes_a_result,
)
from .summary import summary

__all__ = ["solve"]


@main.command()
@writes_a_result("RUN.nc", "run")
@refuses_cleanly
def solve(config: Path, out: Path | None, resume: bool, force: bool, quiet: bool) -> None:
    """Solve what a configuration file describes, and write the result.

    While it runs, checkpoints are kept beside the result, in RUN.nc.checkpoint.

    Exit code: 0 if the run succeeded; 1 if it ended early (its message says why; the states it
    reached are written); 2 if the input is wrong and nothing was run.
    """
    checked = config_of(config, "Config")
    out = Path(config.with_suffix(".nc").name) if out is None else out
    check_out(out, config, resume, force)
    from ..config import run_config  # loads the solver

    with plain_warnings() as shown:
        run = run_config(checked, out, resume=resume, progress=False if quiet else None)
    if not quiet:
        click.echo(summary(run, out))
    if not run.success:
        if run.message not in shown:
            click.echo(f"{run.status}: {run.message}", err=True)
        sys.exit(NOT_SUCCESSFUL)
