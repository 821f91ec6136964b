"""What a finished run looks like in the terminal: status, file, table of observables."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...results.solution import Solution

__all__ = ["summary"]

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


def summary(run: "Solution", out: Path) -> str:
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

    from ...dynamics.observables import measure

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
    return "\n".join([f"at t = {run.t[-1]:g}, {_size(run)}:", *lines])


def _replicas(run: "Solution") -> dict:
    """The numbers of independent sets of tokens, whose axis comes before those of the model."""
    import numpy as np

    from ...states import Gram, Tokens

    axes = len(run.model.shape)
    if not isinstance(run.final, Tokens | Gram) or len(run.shape) != axes + 1:
        return {}
    return {"replica": np.arange(run.shape[0]).reshape(-1, *(1,) * axes)}


def _is_known(measured: dict, name: str) -> bool:
    import numpy as np

    return name in measured and not np.isnan(measured[name]).all()


def _size(run: "Solution") -> str:
    from ...states import Equiangular, Gaussian, Gram, Tokens

    final = run.final
    if isinstance(final, Equiangular):
        return "equiangular tokens"
    if isinstance(final, Gaussian):
        return f"a Gaussian in R^{final.dimension}"
    if isinstance(final, Tokens | Gram):
        return f"{len(final)} tokens"
    nodes = run.stats.get("nodes")
    return f"degree {final.geometry.degree}" if nodes is None else f"{nodes} nodes"
