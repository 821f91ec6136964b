"""The group of commands, and what they share: clean errors and warnings, checked file names."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path

import click

from ...core.errors import MeanfieldError, StorageWarning, UnresolvedWarning

__all__ = [
    "BAD_INPUT",
    "NOT_SUCCESSFUL",
    "check_figure",
    "check_out",
    "config_of",
    "main",
    "plain_warnings",
    "refuses_cleanly",
    "writes_a_result",
]

NOT_SUCCESSFUL, BAD_INPUT = 1, 2
COMMANDS = {
    "Config": "solve",
    "StudyConfig": "chaos",
    "BifurcationConfig": "bifurcation",
    "PhaseConfig": "phase-diagram",
}


def refuses_cleanly(command: Callable) -> Callable:
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
def plain_warnings() -> Iterator[list[str]]:
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
        from ..environment import version_of

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


def writes_a_result(metavar: str, what: str | None = None) -> Callable[[Callable], Callable]:
    """Options of a command that reads CONFIG.toml and writes a NetCDF file.

    Of a run or a study, which `what` names, or of what has no checkpoints.
    """
    kind = click.Path(path_type=Path)
    options = (
        click.argument("config", metavar="CONFIG.toml", type=kind),
        click.option(
            "--out",
            metavar=metavar,
            help="NetCDF file to write; by default the name of the configuration, in this folder.",
            type=kind,
        ),
        click.option(
            "--resume", is_flag=True, help=f"Continue an interrupted {what} from its checkpoint."
        ),
        click.option("--force", is_flag=True, help="Overwrite an existing result."),
        click.option("--quiet", "-q", is_flag=True, help="No progress bar and no table."),
    )

    def decorate(command: Callable) -> Callable:
        for option in reversed(options if what else options[:2] + options[3:]):
            command = option(command)
        return command

    return decorate


def config_of(path: Path, kind: str):
    """The configuration in a file, which must be of a kind: the name of its class."""
    from ..config import read_config

    config = read_config(path)
    found = type(config).__name__
    if found != kind:
        raise MeanfieldError(
            f"{path} is for another command: use meanfield {COMMANDS[found]} {path}."
        )
    return config


def check_figure(out: Path, metavar: str, replace: bool) -> Path:
    """Where the figure of a result goes: beside it, unless something is there."""
    figure = out.with_suffix(".png")
    if figure == out or figure.is_dir():
        raise MeanfieldError(f"{figure} is where the figure goes: use --out {metavar}.")
    if figure.exists() and not replace:
        raise MeanfieldError(f"{figure} exists. Use --force to overwrite it, or --out.")
    return figure


def check_out(out: Path, config: Path, resume: bool, force: bool) -> None:
    """Refuse before the run what would fail, or destroy something, after it."""
    from ...core.atomic import check_writable
    from ..config import checkpoint_of

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
