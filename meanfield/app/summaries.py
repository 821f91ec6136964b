"""What results look like in the terminal: status, files, tables of numbers."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..bifurcation import Diagram, PhaseDiagram
    from ..chaos import Study
    from ..results.solution import Solution

__all__ = ["of_diagram", "of_phases", "of_run", "of_study", "shown"]

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
    "rho",
    "gap",
    "radius",
    "spread",
    "covariance_rank",
    "speed",
)
MOST_ROWS = 20
WIDTHS = (8, 8, 16, 12, 14)  # of the columns of special points
ROWS = 6  # values of beta in the table of a phase diagram


def of_run(run: "Solution", out: Path) -> str:
    """Status, message, where the result is, and the observables at the last time."""
    head = f"{run.status}: {run.message}" if run.success else f"NOT COMPLETE: {run.status}"
    seconds = f"{run.stats['seconds']:.3g} s, {run.stats['steps']} steps"
    saved = f"wrote {out} ({len(run)} times, {seconds})"
    if not run.resolved:
        saved += "\nNOT RESOLVED: the last states are not accurate to rtol"
    return f"{head}\n{saved}\n\n{_table(run)}"


def _table(run: "Solution") -> str:
    """Observables at the last time: a row a member of the ensemble, a single run is one row."""
    from ..dynamics.observables import measure

    found = _replicas(run) | {name: v for name, v in run.parameters.items() if v.ndim}
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
    return "\n".join([f"at t = {run.t[-1]:g}, {run.final.size_in_words}:", *lines])


def _replicas(run: "Solution") -> dict:
    """The numbers of independent sets of tokens, whose axis comes before those of the model."""
    axes = len(run.model.shape)
    if not run.final.replicated or len(run.shape) != axes + 1:
        return {}
    return {"replica": np.arange(run.shape[0]).reshape(-1, *(1,) * axes)}


def _is_known(measured: dict, name: str) -> bool:
    return name in measured and not np.isnan(measured[name]).all()


def _count_of(study: "Study") -> str:
    count = study.data.sizes["replica"]
    return str(count) if study.success else f"up to {count}"


def of_study(study: "Study") -> str:
    """Means of distances at the last time against n, their rates, and weak errors."""
    data = study.data.isel(t=-1)
    names = [*data.attrs["distances"], *(["coupling"] if "coupling" in data else [])]
    head = f"{'':20}" + "".join(f"{f'n = {n}':>12}" for n in data.n.values)
    lines = [f"at t = {float(data.t):g}, means over {_count_of(study)} replicas:", head]
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


def shown(diagram: "Diagram") -> list[str]:
    """The free energy tells branches apart whose order parameter is 0."""
    first = int(diagram.data.degree[0])
    shown = ["order_parameter" if first == 1 else f"moment {first}"]
    return [*shown, *(["free_energy"] if diagram.drift.gradient_flow else [])]


def of_diagram(diagram: "Diagram") -> str:
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


def of_phases(diagram: "PhaseDiagram") -> str:
    """The tricritical points, and the curves at a few beta."""
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
