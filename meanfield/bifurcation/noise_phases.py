"""The phase diagram in beta and kappa under anisotropic and multiplicative noise.

The disordered state is not uniform, and there is no free energy. Phases are bounded by the lines on
which a stationary state has a neutral perturbation of some order.

A state and its images under reflections are counted once. Under strong noise there is one state,
which is stable. As kappa grows through a line, the number of stable states changes by at most one:

    fold        +-1 towards the side with two states, if one of them is stable,
    pitchfork   0 if a stable pair replaces the state, +-1 if the pair is unstable,
    Hopf        +-1, as the state becomes stable or unstable.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.checks import fitting, real
from ..core.descriptions import build, describe
from ..results.files import Contents, contents_of, dataset_of
from ..spaces import Space
from .bases import AXISYMMETRIC
from .diagram import noise_of
from .families import EquationFamily, basis_along, drift_of
from .noise_lines import Cusp, NeutralLine, Range, reference
from .phase_diagram import PhaseDiagram, Tricritical, between


@dataclass(frozen=True, eq=False, repr=False)
class NoisePhaseDiagram(PhaseDiagram):
    """Curves of special points in the plane of beta and kappa, under non-isotropic noise.

    Attributes
    ----------
    data : xarray.Dataset
        On `point`: curve (the name of the line, such as "onset 1" or "fold 2"), kind ("onset",
        "fold", "symmetry breaking", "Hopf"), order, beta, kappa, order_parameter, and change:
        the number of stable states just above the line minus that just below; 0 if only unstable
        states change.
    tricritical : list of Tricritical
        Points at which an onset turns from continuous to discontinuous.
    cusps : list of Cusp
        Points at which two lines of folds meet.
    ends : dict of str to (str, str)
        Why each line ends at its lowest and at its highest beta: "range", "range of kappa",
        "cusp", "turn" (beta turns back there, not at a cusp), "onset" (its states reach their
        onset), "unresolved", "not continued", "max_points", "interrupted".
    """

    cusps: list[Cusp] = field(default_factory=list)

    @property
    def warnings(self) -> list[str]:
        return [*map(str, np.atleast_1d(self.data.attrs.get("missing", []))), *super().warnings]

    def reference(self, beta: float) -> float:
        """The onset of degree 1 under isotropic noise of strength 1, unit of relative figures."""
        return reference(self.family, beta)

    def kappa(self, curve: str, beta: float, degree: int | None = None) -> float:
        """The kappa of a line at one beta, accurate to rounding; nan where the line has no point.

        `degree` is not used.

        Raises
        ------
        ValueError
            If there is no line of that name, or beta is outside the range.
        """
        beta = self._beta(beta)
        fitting("curve", curve, ", ".join(self.loci) or "none", curve in self.loci)
        line = self.loci[curve]
        points = line.points
        if not points[0, -1] <= beta <= points[-1, -1]:
            return float("nan")
        found = line.at_value(between(points, beta), beta)
        return float("nan") if found is None else float(np.exp(found[-2]))

    def _beta(self, beta: float) -> float:
        """`beta` as a float; raises ValueError outside the range."""
        low, high = self.data.attrs["beta"]
        wanted = f"from {low:g} to {high:g}, as of this diagram"
        return real("beta", beta, wanted, lambda number: low <= number <= high)

    def stable_counts(self, beta: float) -> list[tuple[int, float, float]]:
        """Numbers of stable states at a beta, as (number, first kappa, last kappa).

        Mirror images are counted once. 0: no density converges to a stationary state; 2 or more:
        bistability. Computed from the changes of the lines, upwards from one stable state.
        """
        return self._counts(self._beta(beta), lambda name: self.kappa(name, beta))

    def drawn_counts(self, beta: float) -> list[tuple[int, float, float]]:
        """`stable_counts` with kappa interpolated between points of the lines, for figures."""
        return self._counts(
            beta, lambda name: float(np.exp(between(self.loci[name].points, beta)[-2]))
        )

    def _counts(
        self, beta: float, kappa_of: Callable[[str], float]
    ) -> list[tuple[int, float, float]]:
        """Numbers of stable states; `kappa_of` returns the kappa of a line by its name."""
        crossings = []
        for name, line in self.loci.items():
            places = line.points[:, -1]
            if places[0] <= beta <= places[-1]:
                change = int(line.changes[np.abs(places - beta).argmin()])
                if change:
                    crossings.append((kappa_of(name), change))
        low, high = Range(*self.data.attrs["kappas"]).at(self.family, beta)
        found, count, first = [], 1, float(low)
        for kappa, change in sorted(crossings):
            found.append((count, first, kappa))
            count, first = count + change, kappa
        return [*found, (count, first, float(high))]

    @property
    def curves(self) -> list[tuple[str, str, int]]:
        return [(name, name, 1) for name in self.loci]

    def __repr__(self) -> str:
        lines = [super().__repr__()] + [f"  {cusp!r}" for cusp in self.cusps]
        return "\n".join(lines)

    def contents(self) -> Contents:
        header = {
            "drift": describe(self.family.drift),
            "noise": describe(self.noise),
            "space": self.family.basis.space,  # type: ignore[attr-defined]
            "span": self.family.span,
            "tricritical": self.tricritical,
            "cusps": self.cusps,
            "ends": self.ends,
            "lines": {
                name: {
                    "kind": line.kind, "order": line.order, "max_step": line.max_step,
                    "borders": [line.borders.real, line.borders.imag], "points": line.points,
                    "changes": line.changes, "kept": line.basis.kept, "degree": line.basis.degree,
                }
                for name, line in self.loci.items()
            },
        }  # fmt: skip
        return contents_of(self.data, header)

    @classmethod
    def made_of(cls, contents: Contents) -> "NoisePhaseDiagram":
        data, header = dataset_of(contents)
        noise, drift = noise_of(header["noise"]), drift_of(header["drift"])
        low, high = header["span"]
        space = build(Space, header["space"])
        basis = basis_along(drift, "beta", (low, high), noise, space, AXISYMMETRIC)
        corners = [Tricritical(int(l), float(b), float(k)) for l, b, k, *_ in header["tricritical"]]
        cusps = [Cusp(float(b), float(k)) for b, k in header["cusps"]]
        ends = {name: (first, last) for name, (first, last) in header["ends"].items()}
        lines: dict[str, Any] = {}
        for name, kept in header["lines"].items():
            here = basis.finer(kept.pop("degree")).keeping(tuple(map(int, kept.pop("kept"))))
            real, imaginary = kept.pop("borders")
            borders = real + 1j * imaginary if kept["kind"] == "Hopf" else real
            lines[name] = NeutralLine(
                EquationFamily(drift, "beta", (low, high), here), borders=borders, **kept
            )
        family = EquationFamily(drift, "beta", (low, high), basis)
        return cls(data, corners, ends, family, lines, noise, cusps=cusps)
