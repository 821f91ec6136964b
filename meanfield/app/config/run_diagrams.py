"""Follow the stationary states that a configuration describes, and write the diagrams."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...models import SA, USA
from .blame import blaming
from .build_density import build_geometry
from .build_model import build_drift
from .provenance import provenance_of
from .schema import BifurcationConfig, PhaseConfig

if TYPE_CHECKING:
    from ...bifurcation import Diagram, PhaseDiagram

__all__ = ["follow_branches", "follow_phases", "names_of"]

DRIFTS: dict[str, type[USA] | type[SA]] = {"USA": USA, "SA": SA}


def follow_branches(
    config: BifurcationConfig, out: Path | None, progress: bool | None
) -> "Diagram":
    """The bifurcation diagram; written to `out` if it is given."""
    from ...bifurcation import branches

    of_any_beta = config.bifurcation.beta is not None
    drift: Any = DRIFTS[config.model.drift] if of_any_beta else build_drift(config)
    space = build_geometry(config)
    with blaming(config, "bifurcation"):
        diagram = branches(drift, space, progress=progress, **config.bifurcation.model_dump())
    diagram.data.attrs["provenance"] = json.dumps(provenance_of(config))
    if out is not None:
        diagram.save(out)
    return diagram


def follow_phases(
    config: PhaseConfig, out: Path | None, progress: bool | None
) -> tuple["PhaseDiagram", ...]:
    """One phase diagram for each drift, until one is interrupted; written as `names_of` says."""
    from ...bifurcation import phase_diagram

    space, arguments = build_geometry(config), config.phase_diagram.model_dump()
    found: list[PhaseDiagram] = []
    for name in arguments.pop("drifts"):
        with blaming(config, "phase_diagram"):
            found.append(phase_diagram(DRIFTS[name], space, progress=progress, **arguments))
        found[-1].data.attrs["provenance"] = json.dumps(provenance_of(config))
        if out is not None:
            found[-1].save(names_of(config, out)[len(found) - 1])
        if any("interrupted" in ends for ends in found[-1].ends.values()):
            break
    return tuple(found)


def names_of(config: PhaseConfig, out: Path) -> list[Path]:
    """The file of every drift: `out`, or with several OUT_USA.nc and OUT_SA.nc."""
    drifts = config.phase_diagram.drifts
    if len(drifts) == 1:
        return [out]
    return [out.with_name(f"{out.stem}_{drift}{out.suffix}") for drift in drifts]
