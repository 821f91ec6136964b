"""`meanfield chaos`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .group import (
    NOT_SUCCESSFUL,
    check_figure,
    check_out,
    config_of,
    main,
    plain_warnings,
    refuses_cleanly,
    writes_a_result,
)

if TYPE_CHECKING:
    from ...chaos import Study

__all__ = ["chaos"]


@main.command()
@writes_a_result("STUDY.nc", "study")
@refuses_cleanly
def chaos(config: Path, out: Path | None, resume: bool, force: bool, quiet: bool) -> None:
    """Measure how far n tokens are from the mean field, for the table [chaos] of a file.

    Writes the study to STUDY.nc and its figure, distances against n and against time, to STUDY.png.

    Exit code: 0 if the study is complete; 1 if it was interrupted (--resume continues it); 2 if the
    input is wrong and nothing was run.
    """
    checked = config_of(config, "StudyConfig")
    out = Path(config.with_suffix(".nc").name) if out is None else out
    check_out(out, config, resume, force)
    figure = check_figure(out, "STUDY.nc", resume or force)
    from ..config import run_config  # loads the solver

    with plain_warnings():
        study = run_config(checked, out, resume=resume, progress=False if quiet else None)
        drawn = study.success and bool(study.data.attrs["distances"] or "coupling" in study.data)
        if drawn:
            study.plot().savefig(figure)
    if not quiet:
        click.echo(_summary(study))
        click.echo(f"wrote {out}" + (f" and {figure}" if drawn else ""))
    if not study.success:
        click.echo("interrupted: --resume continues the study", err=True)
        sys.exit(NOT_SUCCESSFUL)


def _replicas(study: "Study") -> str:
    count = study.data.sizes["replica"]
    return str(count) if study.success else f"up to {count}"


def _summary(study: "Study") -> str:
    """Means of distances at the last time against n, their rates, and weak errors."""
    data = study.data.isel(t=-1)
    names = [*data.attrs["distances"], *(["coupling"] if "coupling" in data else [])]
    head = f"{'':20}" + "".join(f"{f'n = {n}':>12}" for n in data.n.values)
    lines = [f"at t = {float(data.t):g}, means over {_replicas(study)} replicas:", head]
    for name in names:
        means = data[name].mean("replica").values
        rate = study.rate(name)
        numbers = "".join(f"{mean:>12.5g}" for mean in means)
        low, high = rate.interval
        lines.append(f"{name:20}{numbers}   ~ n^{rate.exponent:.3f} [{low:.3f}, {high:.3f}]")
    for name in data.attrs["functionals"]:
        limit = float(data[f"limit of {name}"])
        means = data[name].mean("replica").values - limit
        label = f"{name} - {limit:.5g}"
        lines.append(f"{label:20}" + "".join(f"{mean:>12.3g}" for mean in means))
    return "\n".join(lines)
