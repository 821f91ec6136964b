"""`meanfield plot`."""

from collections.abc import Callable
from pathlib import Path

import click

from ...core.errors import MeanfieldError
from .group import main, plain_warnings, refuses_cleanly

__all__ = ["plot"]

MOVIES = (".mp4", ".gif")


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
    draw = _of_run(result, movie, kind)
    try:
        with plain_warnings():
            draw(output)
    except (ValueError, TypeError, OSError) as error:  # no such kind, movie or format; a full disk
        raise MeanfieldError(f"{output}: {error}") from error
    click.echo(f"wrote {output}")


def _of_run(result: Path, movie: bool, kind: str | None) -> Callable[[Path], object]:
    """What draws the figure of a file; raises StorageError if it cannot be read."""
    from ...bifurcation import Diagram, PhaseDiagram
    from ...chaos import Study
    from ...results.loading import load

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
