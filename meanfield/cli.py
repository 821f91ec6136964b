"""The command `meanfield`: solve, plot, doctor, schema.

Everything heavy is imported inside the commands, so that `meanfield --help` answers at once.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .errors import MeanfieldError, StorageWarning, UnresolvedWarning

if TYPE_CHECKING:
    from .solution import Solution

__all__ = ["main"]

NOT_SUCCESSFUL, BAD_INPUT = 1, 2
SHOWN = (
    "order_parameter",
    "entropy",
    "interaction_energy",
    "free_energy",
    "dissipation",
    "minimum",
    "spectral_tail",
    "w2_to_dirac",
    "cluster_count",
    "quadrature_error",
    "mean_cosine",
    "effective_rank",
    "mean_radius",
    "spread",
    "speed",
)
MOST_ROWS = 20
MOVIES = (".mp4", ".gif")


def _refuses_cleanly(command: Callable) -> Callable:
    """A command whose errors are one message on stderr, and exit code 2."""

    @wraps(command)
    def run(*arguments, **options):
        try:
            return command(*arguments, **options)
        except MeanfieldError as error:
            click.echo(f"{error}", err=True)
            sys.exit(BAD_INPUT)

    return run


@contextmanager
def _plain_warnings() -> Iterator[list[str]]:
    """Warnings without the file and line of the source; yields the list of those shown."""
    shown: list[str] = []

    def show(message, *_, **__) -> None:
        shown.append(str(message))
        click.echo(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        for category in (UnresolvedWarning, StorageWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield shown


def _print_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    if asked:
        from .environment import version_of

        click.echo(f"meanfield {version_of('meanfield') or '(not installed)'}")
        context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def main() -> None:
    """Mean-field dynamics of attention: densities of tokens under the noisy Transformer."""


@main.command()
@click.argument("config", metavar="CONFIG.toml", type=click.Path(path_type=Path))
@click.option(
    "--out",
    metavar="RUN.nc",
    type=click.Path(path_type=Path),
    help="NetCDF file to write; by default the name of the configuration, in this folder.",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted run from its checkpoint.")
@click.option("--force", is_flag=True, help="Overwrite an existing result.")
@click.option("--quiet", "-q", is_flag=True, help="No progress bar and no table.")
@_refuses_cleanly
def solve(config: Path, out: Path | None, resume: bool, force: bool, quiet: bool) -> None:
    """Solve what a configuration file describes, and write the result.

    While it runs, checkpoints are kept beside the result, in RUN.nc.checkpoint.

    Exit code: 0 if the run succeeded; 1 if it ended early (its message says why; the states it
    reached are written); 2 if the input is wrong and nothing was run.
    """
    from .config import read_config

    checked = read_config(config)
    out = Path(config.with_suffix(".nc").name) if out is None else out
    _check_out(out, config, resume, force)
    from .config import run_config  # loads the solver

    with _plain_warnings() as shown:
        run = run_config(checked, out, resume=resume, progress=False if quiet else None)
    if not quiet:
        click.echo(_summary(run, out))
    if not run.success:
        if run.message not in shown:
            click.echo(f"{run.status}: {run.message}", err=True)
        sys.exit(NOT_SUCCESSFUL)


def _check_out(out: Path, config: Path, resume: bool, force: bool) -> None:
    """Refuse before the run what would fail, or destroy something, after it."""
    from .config import checkpoint_of
    from .storage.atomic import check_writable

    checkpoint = checkpoint_of(out)
    if not out.absolute().parent.is_dir():
        raise MeanfieldError(f"{out}: there is no folder {out.absolute().parent}; make it first")
    if out.is_dir() or out.resolve() == config.resolve():
        raise MeanfieldError(f"{out}: expected a new name for the result (--out RUN.nc)")
    if resume and not checkpoint.exists():
        if out.exists() and not force:
            raise MeanfieldError(
                f"{out} exists and there is no checkpoint {checkpoint}: there is nothing to "
                "resume. Use --force to run it again from the start."
            )
        click.echo(f"no checkpoint {checkpoint}: starting from the beginning", err=True)
    elif not (resume or force) and (out.exists() or checkpoint.exists()):
        raise MeanfieldError(
            f"{out if out.exists() else checkpoint} exists. Use --force to overwrite it, --out "
            "for another name" + (", or --resume to continue it." if checkpoint.exists() else ".")
        )
    check_writable(out)


def _summary(run: "Solution", out: Path) -> str:
    """Status, message, where the result is, and the observables at the last time."""
    head = f"{run.status}: {run.message}" if run.success else f"NOT COMPLETE: {run.status}"
    seconds = f"{run.stats['seconds']:.3g} s, {run.stats['steps']} steps"
    saved = f"wrote {out} ({len(run)} times, {seconds})"
    if not run.resolved:
        saved += "\nNOT RESOLVED: the last states are not accurate to rtol"
    return f"{head}\n{saved}\n\n{_table(run)}"


def _table(run: "Solution") -> str:
    """Observables at the last time: a row a member of the ensemble, a single run is one row."""
    import numpy as np

    from .observables import measure

    found = _replicas(run) | {name: v for name, v in run.model.parameters.items() if v.ndim}
    measured = measure(run.model, run.final, float(run.t[-1]))
    found |= {name: measured[name] for name in SHOWN if _is_known(measured, name)}
    columns = {name: np.broadcast_to(v, run.shape).ravel() for name, v in found.items()}
    rows = list(zip(*columns.values(), strict=True))
    widths = [max(len(name), 12) for name in columns]
    lines = ["  ".join(f"{name:>{w}}" for name, w in zip(columns, widths, strict=True))]
    for row in rows[:MOST_ROWS]:
        lines.append("  ".join(f"{v:>{w}.6g}" for v, w in zip(row, widths, strict=True)))
    if len(rows) > MOST_ROWS:
        lines.append(f"... and {len(rows) - MOST_ROWS} more members in the file")
    return "\n".join([f"at t = {run.t[-1]:g}, {_size(run)}:", *lines])


def _replicas(run: "Solution") -> dict:
    """The numbers of independent sets of tokens, whose axis comes before those of the model."""
    import numpy as np

    from .states import Gram, Tokens

    axes = len(run.model.shape)
    if not isinstance(run.final, Tokens | Gram) or len(run.shape) != axes + 1:
        return {}
    return {"replica": np.arange(run.shape[0]).reshape(-1, *(1,) * axes)}


def _is_known(measured: dict, name: str) -> bool:
    import numpy as np

    return name in measured and not np.isnan(measured[name]).all()


def _size(run: "Solution") -> str:
    from .states import Gram, Tokens

    final = run.final
    if isinstance(final, Tokens | Gram):
        return f"{len(final)} tokens"
    nodes = run.stats.get("nodes")
    return f"degree {final.geometry.degree}" if nodes is None else f"{nodes} nodes"


@main.command()
@click.argument("result", metavar="RUN.nc", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="FIGURE",
    required=True,
    type=click.Path(path_type=Path),
    help="File to write: .png (default), .pdf, .svg, ..., or .mp4 and .gif for a movie.",
)
@click.option(
    "--kind",
    help="overview (default), observables; on the circle spacetime, snapshots, polar; "
    "on the sphere orthographic, map.",
)
@_refuses_cleanly
def plot(result: Path, output: Path, kind: str | None) -> None:
    """Draw the figure, or the movie, of a result."""
    from .storage import load

    if output.is_dir() or not output.name:
        raise MeanfieldError(f"{output}: expected the name of a figure (-o FIGURE.png)")
    output = output if output.suffix else output.with_suffix(".png")
    movie = output.suffix.lower() in MOVIES
    if movie and kind is not None:
        raise MeanfieldError(f"--kind is for figures; {output} is a movie: leave it out")
    if not output.absolute().parent.is_dir():
        raise MeanfieldError(f"{output}: there is no folder {output.absolute().parent}")
    run = load(result)
    try:
        with _plain_warnings():
            if movie:
                run.animate(output)
            else:
                run.plot(kind=kind or "overview").savefig(output)
    except (ValueError, OSError) as error:  # an unknown kind, an unknown format, a full disk
        raise MeanfieldError(f"{output}: {error}") from error
    click.echo(f"wrote {output}")


@main.command()
@_refuses_cleanly
def doctor() -> None:
    """Print versions, threads and licences, for a bug report.

    Exit code: 0, or 1 if something that is required is missing.
    """
    from .environment import describe
    from .environment import doctor as examine

    report = examine()
    click.echo(describe(report))
    if report["problems"]:
        sys.exit(NOT_SUCCESSFUL)


@main.command()
@_refuses_cleanly
def schema() -> None:
    """Print the JSON schema of configuration files."""
    import json

    from .config import schema as configuration_schema

    click.echo(json.dumps(configuration_schema(), indent=2))
