"""The command line: `meanfield solve`, `meanfield plot`, `meanfield chaos` and the others.

Errors are one message on stderr, and exit code 2. What only one command needs is imported when it
runs.
"""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from ..core.errors import MeanfieldError, StorageWarning, UnresolvedWarning

__all__ = ["main"]

NOT_SUCCESSFUL, BAD_INPUT = 1, 2
MOVIES = (".mp4", ".gif")
KINDS = ["solve", "chaos", "bifurcation", "phase_diagram"]


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
        from .doctor import version_of

        click.echo(f"meanfield {version_of('meanfield') or '(not installed)'}")
        context.exit()


def import_kinds(name: str) -> str:
    """Import a module by its name, or a Python file, for the kinds in it; its SHA-256.

    Raises
    ------
    MeanfieldError
        If it cannot be imported.
    """
    from ..core.files import checksum

    try:
        module = _import_file(Path(name)) if name.endswith(".py") else import_module(name)
    except Exception as error:  # whatever the module does
        raise MeanfieldError(f"--import {name}: {type(error).__name__}: {error}") from error
    source = getattr(module, "__file__", None)
    return "" if source is None else checksum(Path(source))


def _import_file(path: Path) -> ModuleType:
    """A Python file as the module of its name."""
    known = sys.modules.get(path.stem)
    if known is not None and getattr(known, "__file__", None) != str(path.absolute()):
        raise ImportError(f"there is a module {path.stem} already; give the file another name")
    spec = spec_from_file_location(path.stem, path.absolute())
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"there is no such file; looked for {path.absolute()}")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module  # annotations of its classes are looked up there
    spec.loader.exec_module(module)
    return module


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
@click.option(
    "--import",
    "modules",
    metavar="MODULE_OR_FILE",
    multiple=True,
    help="Import a module, or a Python file, that defines kinds of your own. Repeatable.",
)
@click.pass_context
@refuses_cleanly
def main(context: click.Context, modules: tuple[str, ...]) -> None:
    """Mean-field dynamics of attention: densities of tokens under the noisy Transformer."""
    context.obj = {name: import_kinds(name) for name in modules}


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


def config_of(path: Path, command: str) -> Any:
    """The configuration in a file, which must be for this command."""
    from .configuration import read_config

    config = replace(read_config(path), imports=click.get_current_context().find_root().obj)
    if config.command != command:
        raise MeanfieldError(
            f"{path} is for another command: use meanfield {config.command} {path}."
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
    from ..core.files import check_writable
    from .configuration import checkpoint_of

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


@main.command()
@writes_a_result("RUN.nc", "run")
@refuses_cleanly
def solve(config: Path, out: Path | None, resume: bool, force: bool, quiet: bool) -> None:
    """Solve what a configuration file describes, and write the result.

    While it runs, checkpoints are kept beside the result, in RUN.nc.checkpoint.

    Exit code: 0 if the run succeeded; 1 if it ended early (its message says why; the states it
    reached are written); 2 if the input is wrong and nothing was run.
    """
    checked = config_of(config, "solve")
    out = Path(config.with_suffix(".nc").name) if out is None else out
    check_out(out, config, resume, force)
    from .configuration import run_config
    from .summaries import of_run

    with plain_warnings() as shown:
        run = run_config(checked, out, resume=resume, progress=False if quiet else None)
    if not quiet:
        click.echo(of_run(run, out))
    if not run.success:
        if run.message not in shown:
            click.echo(f"{run.status}: {run.message}", err=True)
        sys.exit(NOT_SUCCESSFUL)


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
    "on the sphere orthographic, map; of a Gaussian variances, in the plane ellipses, cone. "
    "Of a study: rates (default), or those of its densities. "
    "Of a bifurcation diagram: order_parameter (default), free_energy, growth, 'moment 2', ...; "
    "of a phase diagram: relative.",
)
@refuses_cleanly
def plot(result: Path, output: Path, kind: str | None) -> None:
    """Draw the figure, or the movie, of a result."""
    if output.is_dir() or not output.name:
        raise MeanfieldError(f"{output}: expected the name of a figure (-o FIGURE.png)")
    output = output if output.suffix else output.with_suffix(".png")
    movie = output.suffix.lower() in MOVIES
    if movie and kind is not None:
        raise MeanfieldError(f"--kind is for figures; {output} is a movie: leave it out")
    if not output.absolute().parent.is_dir():
        raise MeanfieldError(f"{output}: there is no folder {output.absolute().parent}")
    draw = _drawing_of(result, movie, kind)
    try:
        with plain_warnings():
            draw(output)
    except (ValueError, TypeError, OSError) as error:  # no such kind, movie or format; a full disk
        raise MeanfieldError(f"{output}: {error}") from error
    click.echo(f"wrote {output}")


def _drawing_of(result: Path, movie: bool, kind: str | None) -> Callable[[Path], object]:
    """What draws the figure of a file; raises StorageError if it cannot be read."""
    from ..bifurcation import Diagram, PhaseDiagram
    from ..chaos import Study
    from ..results.loading import load

    run = load(result)
    if movie and isinstance(run, Diagram | PhaseDiagram):
        raise MeanfieldError(f"{result} holds a diagram, which has no movie: use -o FIGURE.png.")
    if movie:
        return run.animate
    match run:
        case Diagram():
            return lambda output: run.plot(y=kind or "order_parameter").savefig(output)
        case PhaseDiagram():
            if kind not in (None, "relative"):
                raise MeanfieldError(f"--kind of a phase diagram is relative; got {kind!r}.")
            return lambda output: run.plot(relative=kind is not None).savefig(output)
    if kind in (None, "rates") and Study.is_in(result):
        study = Study.load(result)
        return lambda output: study.plot().savefig(output)
    return lambda output: run.plot(kind=kind or "overview").savefig(output)


@main.command()
@writes_a_result("STUDY.nc", "study")
@refuses_cleanly
def chaos(config: Path, out: Path | None, resume: bool, force: bool, quiet: bool) -> None:
    """Measure how far n tokens are from the mean field, for the table [chaos] of a file.

    Writes the study to STUDY.nc and its figure, distances against n and against time, to STUDY.png.

    Exit code: 0 if the study is complete; 1 if it was interrupted (--resume continues it); 2 if the
    input is wrong and nothing was run.
    """
    checked = config_of(config, "chaos")
    out = Path(config.with_suffix(".nc").name) if out is None else out
    check_out(out, config, resume, force)
    figure = check_figure(out, "STUDY.nc", resume or force)
    from .configuration import run_config
    from .summaries import of_study

    with plain_warnings():
        study = run_config(checked, out, resume=resume, progress=False if quiet else None)
        drawn = study.success and bool(study.data.attrs["distances"] or "coupling" in study.data)
        if drawn:
            study.plot().savefig(figure)
    if not quiet:
        click.echo(of_study(study))
        click.echo(f"wrote {out}" + (f" and {figure}" if drawn else ""))
    if not study.success:
        click.echo("interrupted: --resume continues the study", err=True)
        sys.exit(NOT_SUCCESSFUL)


@main.command()
@writes_a_result("DIAGRAM.nc")
@refuses_cleanly
def bifurcation(config: Path, out: Path | None, force: bool, quiet: bool) -> None:
    """Follow stationary states as kappa or beta changes, for the table [bifurcation] of a file.

    Writes branches, special points and states to DIAGRAM.nc and the figure to DIAGRAM.png.

    Exit code: 0 if all was found; 1 if something is missing, which is said, because a branch was
    not continued, a point not located, or Ctrl-C pressed; 2 if the input is wrong and nothing was
    run.
    """
    checked = config_of(config, "bifurcation")
    out = Path(config.with_suffix(".nc").name) if out is None else out
    check_out(out, config, False, force)
    figure = check_figure(out, "DIAGRAM.nc", force)
    from .configuration import run_config
    from .summaries import of_diagram, shown

    with plain_warnings():
        diagram = run_config(checked, out, progress=False if quiet else None)
        diagram.plot(y=shown(diagram)).savefig(figure)
    if not quiet:
        click.echo(f"{of_diagram(diagram)}\nwrote {out} and {figure}")
    for doubt in diagram.doubts:
        click.echo(doubt, err=True)
    if diagram.doubts:
        sys.exit(NOT_SUCCESSFUL)


@main.command()
@writes_a_result("PLANE.nc")
@refuses_cleanly
def phase_diagram(config: Path, out: Path | None, force: bool, quiet: bool) -> None:
    """Critical curves, folds and first-order lines, for the table [phase_diagram] of a file.

    Writes the curves to PLANE.nc, those of two drifts to PLANE_USA.nc and PLANE_SA.nc, and one
    figure to PLANE.png.

    Exit code: 0 if all was found; 1 if something is missing, which is said, because a curve was not
    continued or Ctrl-C pressed; 2 if the input is wrong and nothing was run.
    """
    checked = config_of(config, "phase-diagram")
    out = Path(config.with_suffix(".nc").name) if out is None else out
    from ..plotting import phases
    from .configuration import run_config
    from .summaries import of_phases

    files = checked.names(out)
    for file in files:
        check_out(file, config, False, force)
    figure = check_figure(out, "PLANE.nc", force)
    with plain_warnings():
        found = run_config(checked, out, progress=False if quiet else None)
        phases(*found, close_up=True).savefig(figure)
    if not quiet:
        written = ", ".join(map(str, files[: len(found)]))
        click.echo("\n\n".join(map(of_phases, found)) + f"\nwrote {written} and {figure}")
    doubts = [f"{d.data.attrs['drift']}: {doubt}" for d in found for doubt in d.doubts]
    for doubt in doubts:
        click.echo(doubt, err=True)
    if doubts:
        sys.exit(NOT_SUCCESSFUL)


@main.command()
@click.option(
    "--compile",
    "compiles",
    is_flag=True,
    help="First compile at once all that runs would compile on first use.",
)
@refuses_cleanly
def doctor(compiles: bool) -> None:
    """Print versions, threads and licences, for a bug report.

    Exit code: 0, or 1 if something that is required is missing.
    """
    if compiles:
        from .compilation import compile_everything

        seconds = compile_everything(lambda name, took: click.echo(f"{name:<30}{took:>8.1f} s"))
        click.echo(f"{'compiled in':<30}{seconds:>8.1f} s\n")
    from .doctor import doctor as examine
    from .doctor import in_words

    report = examine()
    click.echo(in_words(report))
    if report["problems"]:
        sys.exit(NOT_SUCCESSFUL)


@main.command()
@click.argument("kind", default="solve", type=click.Choice(KINDS))
@refuses_cleanly
def schema(kind: str) -> None:
    """Print the JSON schema of configuration files of `meanfield solve`, or of another command."""
    import json

    from .configuration import schema as configuration_schema

    click.echo(json.dumps(configuration_schema(kind), indent=2))
