"""The command line: `meanfield solve`, `meanfield plot`, `meanfield chaos` and the others.

Modules that only one command needs are imported when it runs.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ..core.errors import MeanfieldError, StorageError
from . import commands

MOVIE_SUFFIXES = (".mp4", ".gif")
Decorator = Callable[[Callable[..., Any]], Any]
TASK_NAMES = ["solve", "sweep", "chaos", "bifurcation", "phase_diagram"]


def option(names: str, text: str, metavar: str = "", kind: Any = None, **more: Any) -> Decorator:
    """An option of a command, a flag without `metavar`; the help shows its default."""
    more |= {"metavar": metavar, "type": kind} if metavar else {"is_flag": True}
    return click.option(*names.split(), help=text, show_default="default" in more, **more)


def argument(name: str, metavar: str, required: bool = True) -> Decorator:
    """An argument of a command that is the name of a file."""
    return click.argument(name, metavar=metavar, type=commands.FILE_NAME, required=required)


FORCE = option("--force", "Overwrite an existing result.")
QUIET = option("--quiet -q", "No progress bar and no report.")


def _print_version(context: click.Context, _option: click.Parameter, requested: bool) -> None:
    """Print the version and exit."""
    if requested:
        from ..core.version import __version__  # slow to import

        click.echo(f"meanfield {__version__}")
        context.exit()


@click.group(cls=commands.Commands, context_settings={"help_option_names": ["-h", "--help"]})
@option(
    "--version",
    "Print the version and exit.",
    is_eager=True,
    expose_value=False,
    callback=_print_version,
)
@option(
    "--traceback shows_traceback",
    "Show where an error arose, for a bug report.",
    envvar="MEANFIELD_TRACEBACK",
)
@click.option("--import", "modules", **commands.IMPORT)
@click.pass_context
def main(context: click.Context, shows_traceback: bool, modules: tuple[str, ...]) -> None:
    """Mean-field dynamics of attention: densities of tokens under the noisy Transformer."""
    context.obj = {name: commands.import_kinds(name) for name in modules}


# Commands that run a configuration ---------------------------------------------------------------


def task(metavar: str, result_name: str, *further: Decorator, required: bool = True) -> Decorator:
    """Define a command that reads CONFIG.toml and writes a NetCDF file; its docstring is the help.

    `result_name` names the result; `further` are further options, passed to the configuration.
    Unless it is `required`, CONFIG.toml may be left out.
    """
    default = "by default the name of the configuration, in this folder"
    options = (
        argument("config", "CONFIG.toml", required),
        option("--out", f"NetCDF file to write; {default}.", metavar, commands.FILE_NAME),
        option("--resume", f"Continue an interrupted {result_name} from its checkpoint."),
        *(FORCE, QUIET, *further),
    )

    def decorate(described: Callable[..., Any]) -> click.Command:
        """Command of the name of the function, with its docstring and these options."""
        name = described.__name__

        def command(**options: Any) -> None:
            run_task(name, metavar, **options)

        command.__doc__ = described.__doc__
        for add in reversed(options):
            command = add(command)
        return main.command(name.replace("_", "-"))(command)

    return decorate


EXTEND_OPTIONS = (
    option(
        "--extend",
        "Go on with the run of a file, in place of CONFIG.toml.",
        "RUN.nc",
        commands.FILE_NAME,
    ),
    option("--until", "With --extend: the new last time.", "T", float),
)


@task("RUN.nc", "run", *EXTEND_OPTIONS, required=False)
def solve() -> None:
    """Solve the problem of a configuration file and write the result.

    During the run, checkpoints are written to RUN.nc.checkpoint. With --extend RUN.nc --until T the
    run of a file goes on to a later time; the file is replaced by the longer run, or --out written.

    Exit code: 0 if the run succeeded; 1 if it ended early (its message gives the reason; its states
    are written); 2 if the input is wrong and nothing was run.
    """


WORKER_OPTIONS = (
    option("--scheduler", "Run on a dask scheduler: tcp://HOST:PORT.", "ADDRESS"),
    option("--workers", "Run in N processes.", "N", click.IntRange(1)),
)


@task("SWEEP.nc", "sweep", *WORKER_OPTIONS)
def sweep() -> None:
    """Solve at every point of the grid in the table [sweep] of a file.

    Writes the observables of all runs to SWEEP.nc. During the sweep, finished points are stored in
    SWEEP.nc.checkpoint. By default points are run one after the other.

    Exit code: 0 if all runs succeeded; 1 if some failed or ended early, or after Ctrl-C (--resume
    continues); 2 if the input is wrong and nothing was run, or if a point failed and the file does
    not set errors = "keep".
    """


@task("STUDY.nc", "study", *WORKER_OPTIONS)
def chaos() -> None:
    """Measure how far n tokens are from the mean field, for the table [chaos] of a file.

    Writes the study to STUDY.nc and its figure, distances against n and against time, to STUDY.png.
    During the study, finished batches are stored in STUDY.nc.checkpoint.

    Exit code: 0 if the study is complete; 1 if it was interrupted (--resume continues it); 2 if the
    input is wrong and nothing was run.
    """


@task("DIAGRAM.nc", "diagram")
def bifurcation() -> None:
    """Follow stationary states as kappa or beta changes, for the table [bifurcation] of a file.

    Writes branches, special points and states to DIAGRAM.nc and the figure to DIAGRAM.png.

    Exit code: 0 if the diagram is complete; 1 if a branch was not continued, a point not located,
    or Ctrl-C pressed (--resume continues), as the output says; 2 if the input is wrong and nothing
    was run.
    """


@task("PLANE.nc", "diagram")
def phase_diagram() -> None:
    """Compute critical curves, folds and first-order lines for the table [phase_diagram].

    Writes the curves to PLANE.nc (for two drifts PLANE_USA.nc and PLANE_SA.nc) and one figure to
    PLANE.png.

    Exit code: 0 if the diagram is complete; 1 if a curve was not continued or Ctrl-C pressed
    (--resume continues), as the output says; 2 if the input is wrong and nothing was run.
    """


def run_task(
    name: str,
    metavar: str,
    config: Path | None,
    out: Path | None,
    force: bool,
    quiet: bool,
    resume: bool,
    extend: Path | None = None,
    until: float | None = None,
    **settings: Any,
) -> None:
    """Read a configuration, check the files of its result, run it, and write, draw and print.

    With `extend`, a file, the run of this file goes on to the time `until` instead.
    """
    from .configuration import read_config, run_config

    if extend is not None or until is not None or config is None:
        if extend is None or until is None or config is not None or resume:
            raise click.UsageError(_why_not_one_run(config, extend, until))
        extend_run(extend, until, out, force, quiet)
        return
    parsed = read_config(config)
    if parsed.work != name:
        proper = parsed.work.replace("_", "-")
        raise MeanfieldError(f"{config} is for another command: use meanfield {proper} {config}.")
    parsed = replace(parsed, imports=click.get_current_context().find_root().obj, **settings)
    out = Path(config.with_suffix(".nc").name) if out is None else out
    check_outputs(parsed.outputs(out), config, resume, force)
    picture = check_figure(out, metavar, resume or force) if parsed.drawn else out
    with commands.plain_warnings() as shown:
        result = run_config(parsed, out, resume=resume, progress=False if quiet else None)
        figure = parsed.figure(result)
        if figure is not None:
            try:
                figure.savefig(picture)
            except StorageError as error:
                again = f"meanfield plot {parsed.outputs(out)[0]} -o {picture}"
                raise StorageError(f"{error} The result is written: draw it by {again}") from error
    if not quiet:
        count = len(result) if isinstance(result, tuple) else 1
        wrote = f"wrote {', '.join(map(str, parsed.outputs(out)[:count]))}"
        click.echo(parsed.report(result, wrote + (f" and {picture}" if figure else "")))
    _exit_with(parsed.problems(result), shown)


def _why_not_one_run(config: Path | None, extend: Path | None, until: float | None) -> str:
    """A usage message for a command that neither solves a problem nor extends a run."""
    usage = "meanfield solve --extend RUN.nc --until T"
    if extend is None and until is not None:
        end = "" if config is None else f" The end of a new run is t_span in {config}."
        return (
            f"--until belongs to --extend: {usage} continues the run of a file to the time T.{end}"
        )
    if extend is None:
        return f"Give CONFIG.toml, to solve a problem, or --extend: {usage} continues a run."
    if config is not None:
        return f"Give {config} or --extend, not both: {usage} continues a run without CONFIG.toml."
    if until is None:
        return f"--extend needs the new last time: {usage}"
    return f"--resume continues an interrupted run of CONFIG.toml; leave it out: {usage}"


def extend_run(file: Path, until: float, out: Path | None, force: bool, quiet: bool) -> None:
    """Extend the run of a file, and write and print the result."""
    from ..core.files import Lock, check_writable
    from ..results.files import load
    from ..results.solution import Solution
    from .tasks import Run

    if out is not None:
        check_outputs([out], file, False, force)
    target = file if out is None else out
    with commands.plain_warnings() as shown, Lock(target):
        short = load(file)
        if not isinstance(short, Solution):
            raise MeanfieldError(
                f"{file} holds a {type(short).__name__}: --extend takes a run, a result of "
                "`meanfield solve`."
            )
        check_writable(target)
        try:
            run = short.extend(until, progress=False if quiet else None)
        except ValueError as error:
            raise MeanfieldError(f"{file}: {str(error).replace('t_end', '--until')}") from error
        written = run.save(target, dense="dense" in run.stored)
    if not quiet:
        click.echo(Run.report(run, f"wrote {written}"))
    _exit_with(Run.problems(run, f"--extend {target} --until {until:g}"), shown)


def _exit_with(problems: list[str], shown: Sequence[str]) -> None:
    """Print the problems that no warning has shown, and exit with NOT_SUCCESSFUL."""
    for problem in problems:
        if not any(message in problem for message in shown):
            click.echo(problem, err=True)
    if problems:
        sys.exit(commands.NOT_SUCCESSFUL)


def check_figure(out: Path, metavar: str, replace: bool) -> Path:
    """The file of the figure of a result; raises MeanfieldError if it exists already."""
    figure = out.with_suffix(".png")
    if figure == out or figure.is_dir():
        raise MeanfieldError(f"{figure} is the name of the figure: use --out {metavar}.")
    check_new("--out", figure, (".png",), replace)
    return figure


def check_new(option: str, path: Path, suffixes: Sequence[str], replace: bool) -> None:
    """Raise MeanfieldError unless an option names a file that can be written, and has none yet."""
    from ..core.files import check_writable

    if path.suffix.lower() not in suffixes:
        expected = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
        raise MeanfieldError(f"{option} takes a file {expected}; got {path}.")
    if path.exists() and not replace:
        raise MeanfieldError(f"{path} exists. Use --force to overwrite it, or {option}.")
    check_writable(path)


def check_outputs(files: list[Path], config: Path, resume: bool, force: bool) -> None:
    """Raise MeanfieldError if a result cannot be written, or would overwrite something."""
    from ..core.files import check_writable
    from ..results.files import result_path
    from .tasks import checkpoint_of

    for out in files:
        if out.resolve() == config.resolve():
            raise MeanfieldError(f"{out}: expected a new name for the result (--out RUN.nc)")
        try:
            result_path("--out", out)
        except ValueError as error:
            raise MeanfieldError(str(error)) from None
        check_writable(out)
    checkpoints = [path for path in map(checkpoint_of, files) if path.exists()]
    there = [path for path in files if path.exists()]
    if resume and not checkpoints:
        if there and not force:
            raise MeanfieldError(
                f"{there[0]} exists and there is no checkpoint {checkpoint_of(there[0])}: there is "
                "nothing to resume. `meanfield plot` draws it; --force runs it again."
            )
        checkpoint = checkpoint_of(files[0])
        click.echo(f"no checkpoint {checkpoint}: starting from the beginning", err=True)
    elif not (resume or force) and (there or checkpoints):
        raise MeanfieldError(
            f"{[*there, *checkpoints][0]} exists. Use --force to overwrite it, --out for another "
            "name" + (", or --resume to continue it." if checkpoints else ".")
        )


# Other commands ----------------------------------------------------------------------------------


@main.command()
@argument("result", "RUN.nc")
@argument("figure", "[FIGURE]", required=False)
@option(
    "-o --output",
    "File to write: .png (default), .pdf, .svg, ..., or .mp4 and .gif for a movie.",
    *("FIGURE", commands.FILE_NAME),
)
@option(
    "--kind",
    "overview (default), observables; on the circle spacetime, snapshots, polar; "
    "on the sphere orthographic, map; of a Gaussian variances, in the plane ellipses, cone. "
    "Of a study: rates (default), or those of its densities. "
    "Of a bifurcation diagram: order_parameter (default), free_energy, growth, 'moment 2', ...; "
    "of a phase diagram: relative. Of a sweep: the name of a variable.",
    "TEXT",
)
@option(
    "--times",
    "Times to show, 0.1,0.5,2; of a run without dense = true the nearest saved ones. Of the kinds "
    "snapshots, polar, histogram, map, orthographic, distribution, projection, ellipses.",
    *("T,T,...", commands.numbers),
)
@option("--title", "Heading; by default the model, and none if empty.", "TEXT")
def plot(
    result: Path,
    figure: Path | None,
    output: Path | None,
    kind: str | None,
    times: list[float] | None,
    title: str | None,
) -> None:
    """Draw the figure, or the movie, of a result: in the file FIGURE, or after -o."""
    from ..core.files import check_writable
    from ..results.files import load

    drawable: Any = load(result)  # a missing file is reported first
    if (figure is None) == (output is None):
        raise MeanfieldError(
            f"expected one file to draw in; got {'none' if figure is None else 'two'}. "
            f"Use: meanfield plot {result} -o FIGURE.png"
        )
    output = figure if output is None else output
    assert output is not None
    check_writable(output)
    output = output if output.suffix else output.with_suffix(".png")
    movie = output.suffix.lower() in MOVIE_SUFFIXES
    if movie and not hasattr(drawable, "animate"):
        raise MeanfieldError(f"{result} holds a diagram, which has no movie: use -o FIGURE.png.")
    named: dict[str, Any] = {"kind": kind, "times": times, "title": title}
    options = {name: value for name, value in named.items() if value is not None}
    try:
        with commands.plain_warnings():
            if movie:
                drawable.animate(output, **options)
            else:
                drawable.plot(*filter(None, [options.pop("kind", None)]), **options).savefig(output)
    except (ValueError, TypeError, OSError) as error:  # unknown kind, option or format; a full disk
        raise MeanfieldError(f"{output}: {error}") from error
    click.echo(f"wrote {output}")


@main.command()
@argument("source", "MODEL_OR_NPZ")
@option(
    "--text texts",
    "A text in UTF-8 on which a network is probed. Repeatable.",
    *("FILE", commands.FILE_NAME),
    multiple=True,
)
@option("--out", "Page to write.", "REPORT.html", commands.FILE_NAME, default="report.html")
@option(
    "--cosines",
    "Also draw histograms of the cosines of pairs by layer: .png, .pdf or .svg.",
    *("FIGURE", commands.FILE_NAME),
)
@option("--draws", "Of each null model.", "N", click.IntRange(2), default=3)
@option("--rng", "Seed of null models, bootstrap and fit.", "SEED", click.IntRange(0), default=0)
@option("--no-fit", "Do not fit a flow.")
@FORCE
@QUIET
def probe(
    source: Path,
    texts: tuple[Path, ...],
    out: Path,
    cosines: Path | None,
    draws: int,
    rng: int,
    no_fit: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Compare the layers of a network with the theory, in a report with figures.

    MODEL_OR_NPZ is a folder with config.json, model.safetensors and tokenizer.json, or a file .npz
    or .npy of hidden states (layers + 1, n, d), which has no texts, heads and null models.

    Exit code: 0, or 2 if the input is wrong.
    """
    from ..core.files import NUMBER_FORMATS
    from ..networks import load, read_trace, report
    from ..networks.load import checked_folder

    if not source.exists() and source.suffix in NUMBER_FORMATS:
        raise MeanfieldError(f"there is no file {source}; looked for {source.absolute()}")
    if not source.exists():
        checked_folder(source)  # raises, and says what to give
    if source.is_dir() and not texts:
        raise MeanfieldError(f"{source} is a folder, of a network: name a text with --text FILE.")
    if source.is_file() and texts:
        raise MeanfieldError(f"{source} is a file, of hidden states, which have no --text.")
    check_new("--out", out, (".html", ".htm"), force)
    if cosines is not None:
        check_new("--cosines", cosines, (".png", ".pdf", ".svg"), force)
    try:
        net = load(source) if texts else None
        with commands.plain_warnings():
            probe_report = report(
                read_trace(source) if net is None else net,
                list(texts) or None,
                draws=draws,
                fit=not no_fit,
                rng=rng,
                title=f"{source.resolve().name} and the mean-field theory",
                progress=False if quiet else None,
            )
    except (ValueError, TypeError, ImportError, FileNotFoundError) as error:
        is_named = any(str(path) in str(error) for path in (source, *texts))
        raise MeanfieldError(str(error) if is_named else f"{source}: {error}") from error
    probe_report.save(out)
    if cosines is not None:
        probe_report.histograms().savefig(cosines)
    if not quiet:
        click.echo(probe_report)
        click.echo(f"wrote {out}{f' and {cosines}' if cosines is not None else ''}")


@main.command()
@option("--compile compiles", "First compile all functions that runs would compile on first use.")
def doctor(compiles: bool) -> None:
    """Print versions, threads and licences, for a bug report.

    Exit code: 0, or 1 if a required package is missing, or if no folder for compiled code is
    writable.
    """
    from . import doctor as installation

    if compiles:

        def tell(name: str, seconds: float) -> None:
            click.echo(f"{name:<30}{seconds:>8.1f} s")

        tell("compiled in", installation.compile_everything(tell))
        click.echo()
    report = installation.doctor()
    click.echo(installation.in_words(report))
    if report["problems"]:
        sys.exit(commands.NOT_SUCCESSFUL)


@main.command()
@argument("file", "[FILE]", required=False)
@option(
    "--host",
    "Address to serve at; others than this machine can reach any but the default.",
    "ADDRESS",
    default="127.0.0.1",
)
@option(
    "--port",
    "Port to serve at; 0 finds a free one.",
    *("N", click.IntRange(0, 65535)),
    default=8642,
)
@option("--no-browser", "Open no browser; print the address alone.")
def explore(file: Path | None, host: str, port: int, no_browser: bool) -> None:
    """Open an interactive page in the browser: change parameters, watch densities evolve.

    FILE is the configuration of a run, *.toml, or its result, *.nc: its initial law, or its last
    state, becomes one of the initial laws of the page.

    Needs tornado: pip install tornado. Exit code: 0 after Ctrl-C; 2 if tornado is
    missing, FILE cannot be shown, or the address cannot be served.
    """
    try:
        from ..explore.server import serve
    except ImportError as error:
        if (error.name or "").split(".")[0] != "tornado":
            raise
        raise MeanfieldError(
            "meanfield explore needs tornado, which is not installed: pip install tornado."
        ) from error
    from ..explore.scene import UserFile

    start = None if file is None else UserFile.of_file(file)
    serve(start, host, port, browser=not no_browser, say=click.echo)


@main.command()
@click.argument("words", metavar="[WORD]...", nargs=-1)
def literature(words: tuple[str, ...]) -> None:
    """Show statements of the literature with our verdicts: those with WORD, or a list of all.

    WORD is the key of a row, survey:theorem-5 or theorem-5, or any text in it. A key begins with
    the name of its source; the list of all rows ends with the sources.
    """
    from .literature import in_words, rows, sources

    word = " ".join(words)
    statements = rows(word)
    if word:
        click.echo("\n\n".join(map(in_words, statements)))
    else:
        click.echo("\n".join(f"{row.key:<36}{row.standing:<25} {row.title}" for row in statements))
        click.echo("\nSources, by the beginnings of keys:\n")
        click.echo("\n".join(f"{name + ':':<9}{text}" for name, text in sources().items()))


@main.command()
@click.argument("kind", default="solve", type=click.Choice(TASK_NAMES))
def schema(kind: str) -> None:
    """Print the JSON schema of configuration files of `meanfield solve`, or of another command."""
    from .configuration import schema as configuration_schema

    click.echo(json.dumps(configuration_schema(kind), indent=2))
