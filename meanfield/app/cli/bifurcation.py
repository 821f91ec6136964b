"""`meanfield bifurcation`."""

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
    from ...bifurcation import Diagram

__all__ = ["bifurcation"]

WIDTHS = (8, 8, 16, 12, 14)


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
    checked = config_of(config, "BifurcationConfig")
    out = Path(config.with_suffix(".nc").name) if out is None else out
    check_out(out, config, False, force)
    figure = check_figure(out, "DIAGRAM.nc", force)
    from ..config import run_config  # loads the solver

    with plain_warnings():
        diagram = run_config(checked, out, progress=False if quiet else None)
        diagram.plot(y=_shown(diagram)).savefig(figure)
    if not quiet:
        click.echo(f"{_summary(diagram)}\nwrote {out} and {figure}")
    for doubt in diagram.doubts:
        click.echo(doubt, err=True)
    if diagram.doubts:
        sys.exit(NOT_SUCCESSFUL)


def _shown(diagram: "Diagram") -> list[str]:
    """The free energy tells branches apart whose order parameter is 0."""
    first = int(diagram.data.degree[0])
    shown = ["order_parameter" if first == 1 else f"moment {first}"]
    return [*shown, *(["free_energy"] if diagram.drift.gradient_flow else [])]


def _summary(diagram: "Diagram") -> str:
    """The special points, and why every branch ends."""
    data = diagram.data
    head = ("branch", "degree", diagram.parameter, "r", "F - F(unif)")
    where = f"{diagram.data.attrs['drift']} on {data.attrs['geometry']}"
    if not diagram.special_points:
        low, high = data.attrs[diagram.parameter]
        return (
            f"{where}: no onset of the uniform state for {low:g} < {diagram.parameter} < {high:g}"
        )
    lines = [f"{where}, special points:"]
    lines.append(f"{'':28}" + "".join(f"{name:>{w}}" for name, w in zip(head, WIDTHS, strict=True)))
    for special in sorted(diagram.special_points, key=lambda s: (s.branch, s.value)):
        state = special.state
        energy = f"{state.free_energy:.3g}" if diagram.drift.gradient_flow else "-"
        numbers = (
            f"{special.branch}", f"{special.degree}", f"{special.value:.10g}",
            f"{state.order_parameter:.6g}", energy,
        )  # fmt: skip
        name = f"{special.character} {special.kind}".strip()
        row = "".join(f"{number:>{w}}" for number, w in zip(numbers, WIDTHS, strict=True))
        lines.append(f"{name:28}{row}   {special.status}")
    for number, end in enumerate(diagram.ends, start=1):
        here = data[diagram.parameter].values[data.branch.values == number]
        lines.append(
            f"branch {number}: {len(here)} points, {diagram.parameter} from {here.min():.6g} to "
            f"{here.max():.6g}; ends: {end}"
        )
    return "\n".join(lines)
