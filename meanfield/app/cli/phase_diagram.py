"""`meanfield phase-diagram`."""

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
    from ...bifurcation import PhaseDiagram

__all__ = ["phase_diagram"]

ROWS = 6  # values of beta in the table


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
    checked = config_of(config, "PhaseConfig")
    out = Path(config.with_suffix(".nc").name) if out is None else out
    from ...plotting import phases
    from ..config import run_config  # loads the solver
    from ..config.run_diagrams import names_of

    files = names_of(checked, out)
    for file in files:
        check_out(file, config, False, force)
    figure = check_figure(out, "PLANE.nc", force)
    with plain_warnings():
        found = run_config(checked, out, progress=False if quiet else None)
        phases(*found, close_up=True).savefig(figure)
    if not quiet:
        written = ", ".join(map(str, files[: len(found)]))
        click.echo("\n\n".join(map(_summary, found)) + f"\nwrote {written} and {figure}")
    doubts = [f"{d.data.attrs['drift']}: {doubt}" for d in found for doubt in d.doubts]
    for doubt in doubts:
        click.echo(doubt, err=True)
    if doubts:
        sys.exit(NOT_SUCCESSFUL)


def _summary(diagram: "PhaseDiagram") -> str:
    """The tricritical points, and the curves at a few beta."""
    import numpy as np

    data = diagram.data
    lines = [f"{data.attrs['drift']} on {data.attrs['geometry']}:"]
    for point in diagram.tricritical:
        lines.append(
            f"tricritical point of degree {point.degree}: beta = {point.beta:.10g}, "
            f"kappa = {point.kappa:.10g}"
        )
    degrees = [int(l) for l in np.unique(data.degree.values)]
    curves = [("critical", l) for l in degrees] + [(name, 1) for name in diagram.loci]
    titles = [f"kappa_{l}" for l in degrees] + list(diagram.loci)
    lines.append(f"{'beta':>10}" + "".join(f"{title:>16}" for title in titles))
    first, last = data.attrs["beta"]
    for beta in np.linspace(first, last, ROWS):
        values = [diagram.kappa(name, float(beta), l) for name, l in curves]
        numbers = "".join(f"{'-' if np.isnan(v) else f'{v:.9g}':>16}" for v in values)
        lines.append(f"{beta:>10.4g}{numbers}")
    return "\n".join(lines)
