"""How each observable is shown: its symbol and its scale."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..states import Gaussian, Gram, Tokens

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = [
    "QUANTITIES",
    "Quantity",
    "energy_name",
    "is_present",
    "is_shown",
    "quantity_of",
    "telling",
]


@dataclass(frozen=True)
class Quantity:
    """How one observable is shown.

    Attributes
    ----------
    symbol : str
        Label of its axis.
    log_from : float
        The factor that positive values span from which on the axis is logarithmic.
    offset : float
        Subtracted before drawing.
    steps : bool
        Whether it is a whole number, constant between saved times.
    noise : float
        The share of earlier values below which it is rounding; 0 for what keeps its digits.
    """

    symbol: str
    log_from: float = np.inf
    offset: float = 0.0
    steps: bool = False
    noise: float = 1e-20


QUANTITIES = {
    "moments": Quantity(r"moments $|m_k|$"),
    "order_parameter": Quantity(r"order parameter $|m_1|$"),
    "mean_cosine": Quantity(r"mean cosine"),
    "least_cosine": Quantity(r"least cosine"),
    "rho": Quantity(r"inner product $\rho$"),
    "gap": Quantity(r"$1 - \rho$", log_from=100.0, noise=0.0),
    "radius": Quantity(r"radius $r$", log_from=100.0),
    "free_energy": Quantity(r"free energy $F(\mu_t)$"),
    "dissipation": Quantity(r"dissipation $-\mathrm{d}F/\mathrm{d}t$", log_from=100.0),
    "w2_to_dirac": Quantity(r"$W_2$ to a Dirac (rad)", log_from=100.0),
    "speed": Quantity(r"speed in $W_2$", log_from=100.0),
    "cluster_count": Quantity("clusters", log_from=50.0, steps=True),
    "cluster_mass": Quantity("masses of clusters"),
    "interaction_energy": Quantity(r"interaction energy $E(\mu_t)$"),
    "effective_rank": Quantity("effective rank", log_from=1e4),
    "largest_variance": Quantity("largest variance", log_from=100.0, noise=0.0),
    "least_variance": Quantity("least variance", log_from=100.0, noise=0.0),
    "covariance_rank": Quantity("rank of the covariance", steps=True),
    "spread": Quantity("spread (r.m.s.)", log_from=100.0),
    "mean_radius": Quantity("mean radius", log_from=100.0),
    "entropy": Quantity(r"$\int \mu_t \log \mu_t \,\mathrm{d}\sigma$"),
    "minimum": Quantity(r"minimum $\min\,\mu_t$", log_from=100.0),
    "mass": Quantity(r"mass drift $\int \mathrm{d}\mu_t - 1$", offset=1.0),
    "spectral_tail": Quantity("spectral tail", log_from=100.0),
    "degree": Quantity("degree", steps=True),
    "quadrature_error": Quantity("quadrature error", log_from=1.0),
}
IN_FLAT_SPACE = {
    "order_parameter": Quantity(r"length of the mean $|\bar{x}|$", log_from=100.0),
    "mean_cosine": Quantity("mean cosine of directions"),
}
# In this order, the four that tell most of tokens, among those that are measured and change.
TELLING = ("order_parameter", "cluster_count", "interaction_energy", "effective_rank", "speed")
TELLING_NORMAL = ("spread", "covariance_rank", "order_parameter", "speed", "effective_rank")
TELLING_FLAT = ("spread", "cluster_count", "order_parameter", "speed", "effective_rank")


def quantity_of(solution: "Solution", name: str) -> Quantity:
    """How an observable of this solution is shown."""
    flat = isinstance(solution.final, Gaussian) or not getattr(solution.final, "on_sphere", True)
    if flat and name in IN_FLAT_SPACE:
        return IN_FLAT_SPACE[name]
    return QUANTITIES.get(name, Quantity(name.replace("_", " ")))


def is_present(solution: "Solution", name: str) -> bool:
    """Whether a solution has this observable, with a finite value at some time."""
    data = solution.observables
    if name == "moments":
        return "moment_re" in data
    return name in data and bool(np.isfinite(data[name]).any())


def is_shown(solution: "Solution", name: str) -> bool:
    """Whether it is present, and not the mean of a Gaussian that stays 0."""
    still = isinstance(solution.final, Gaussian) and name == "order_parameter"
    return is_present(solution, name) and not (still and not solution.observables[name].any())


def energy_name(solution: "Solution") -> str:
    """The free energy where it exists; else the entropy, or what has none, its interaction."""
    names = ("free_energy", "entropy", "interaction_energy")
    return next(name for name in names if is_present(solution, name))


def telling(solution: "Solution", count: int = 4) -> list[str]:
    """The observables of tokens that tell most, `count` at most."""
    final = solution.final
    if isinstance(final, Gaussian):
        return [name for name in TELLING_NORMAL if is_shown(solution, name)][:count]
    flat = isinstance(final, Tokens) and not final.on_sphere
    names: tuple[str, ...] = TELLING_FLAT if flat else TELLING
    if isinstance(final, Gram) or (final.dimension > 3 and not flat):
        names = ("order_parameter", "cluster_count", "effective_rank", *names)
    if solution.model.noisy:  # clusters come and go
        names = ("order_parameter", "mean_cosine", *[n for n in names if n != "cluster_count"])
    if isinstance(final, Tokens) and final.radii is not None:
        names = ("order_parameter", "cluster_count", "mean_radius", *names)
    return [name for name in dict.fromkeys(names) if is_present(solution, name)][:count]
