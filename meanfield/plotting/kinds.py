"""The kinds of figure by name, for each kind of state and the space it lives on."""

from collections.abc import Callable
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from ..spaces import Circle, Sphere, Zonal
from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Equiangular, Gaussian, Gram, Tokens
from .characteristics_overview import dots_overview, trajectories_overview
from .circle import snapshots, spacetime
from .cone import cone
from .density_overview import density_overview
from .distribution import distribution
from .dots import mollweide_dots, orthographic_dots
from .ellipses import ellipses
from .equiangular_overview import equiangular_overview
from .gaussian_overview import gaussian_overview
from .inner_products import inner_products
from .observables import observables
from .planes import paths, projection
from .polar import polar
from .rings import rings
from .spaces import ByState, Space, describe_states, entry_of, space_of
from .sphere import mollweide, orthographic
from .sphere_overview import sphere_overview
from .token_histogram import histogram
from .token_overview import token_overview
from .token_spacetime import token_spacetime
from .token_trajectories import token_curves
from .trajectories import trajectories
from .variances import variances

if TYPE_CHECKING:
    from ..results.solution import Solution

__all__ = ["KINDS", "overview", "plot"]

Draw = Callable[..., Figure]

ANGULAR: dict[str, Draw] = {
    "overview": trajectories_overview,
    "trajectories": trajectories,
    "distribution": distribution,
    "observables": observables,
}
PLANAR: dict[str, Draw] = {
    "overview": token_overview,
    "inner_products": inner_products,
    "projection": projection,
    "paths": paths,
    "observables": observables,
}
NORMAL: dict[str, Draw] = {
    "overview": gaussian_overview,
    "variances": variances,
    "observables": observables,
}
KINDS: ByState[dict[str, Draw]] = {
    Density: {
        Circle: {
            "overview": density_overview,
            "spacetime": spacetime,
            "snapshots": snapshots,
            "polar": polar,
            "observables": observables,
        },
        Sphere: {
            "overview": sphere_overview,
            "orthographic": orthographic,
            "map": mollweide,
            "observables": observables,
        },
        Zonal: {
            "overview": density_overview,
            "spacetime": spacetime,
            "snapshots": snapshots,
            "observables": observables,
        },
    },
    Characteristics: {
        Circle: ANGULAR,
        Sphere: {
            "overview": dots_overview,
            "orthographic": orthographic_dots,
            "map": mollweide_dots,
            "observables": observables,
        },
        Zonal: ANGULAR,
    },
    Tokens: {
        Circle: {
            "overview": token_overview,
            "trajectories": token_curves,
            "spacetime": token_spacetime,
            "polar": rings,
            "histogram": histogram,
            "inner_products": inner_products,
            "observables": observables,
        },
        Sphere: {
            "overview": token_overview,
            "orthographic": orthographic_dots,
            "map": mollweide_dots,
            "inner_products": inner_products,
            "observables": observables,
        },
        Space.HYPERSPHERE: PLANAR,
        Space.LINE: {
            "overview": token_overview,
            "trajectories": token_curves,
            "observables": observables,
        },
        Space.PLANE: PLANAR,
        Space.EUCLIDEAN: PLANAR,
    },
    Gram: {
        Space.PAIRS: {
            "overview": token_overview,
            "inner_products": inner_products,
            "observables": observables,
        }
    },
    Equiangular: {Space.ANYWHERE: {"overview": equiangular_overview, "observables": observables}},
    Gaussian: {
        Space.LINE: NORMAL,
        Space.PLANE: {**NORMAL, "ellipses": ellipses, "cone": cone},
        Space.EUCLIDEAN: NORMAL,
    },
}


def plot(solution: "Solution", kind: str = "overview", **options: Any) -> Figure:
    """A figure of a solution.

    Parameters
    ----------
    solution : Solution
    kind : str
        For densities on the circle "overview", "spacetime", "snapshots", "polar" or
        "observables"; on the sphere "overview", "orthographic", "map" or "observables"; for
        axisymmetric densities "overview", "spacetime", "snapshots" or "observables". For
        characteristics on the sphere the same as for densities; on the circle, or axisymmetric,
        "overview", "trajectories", "distribution" or "observables".

        For tokens "overview" and "observables", and on the circle "trajectories", "spacetime",
        "polar", "histogram" or "inner_products"; on the sphere of R^3 "orthographic", "map" or
        "inner_products"; on spheres of higher dimension, in the plane and in R^d
        "inner_products", "projection" or "paths"; on the line "trajectories". For inner products
        (Gram) "overview", "inner_products" or "observables"; for equiangular tokens "overview" or
        "observables". For a Gaussian "overview", "variances" or "observables", and in the plane
        "ellipses" or "cone".
    **options
        Of the function of that name in this room: `member`, `scale`, `times`, `ax`, ... For
        "map" it is `mollweide`; for characteristics and tokens on the sphere `orthographic_dots`
        and `mollweide_dots`; for tokens "overview" is `token_overview`, "trajectories"
        `token_curves`, "spacetime" `token_spacetime` and "polar" `rings`. The axis of times is
        logarithmic where saved times are spaced like numpy.geomspace, or as `log_time=` says for
        "observables" of any states, and what runs over time of tokens and Gaussians.

    Returns
    -------
    Figure
        Write it with `figure.savefig(path)`: 300 dpi, maps as images inside vector formats.

    Raises
    ------
    ValueError
        If there is no such kind for these states on this space; and as the function of that name.
    TypeError
        For an option that it does not have.
    """
    kinds = entry_of(solution, KINDS)
    if kind not in kinds:
        raise ValueError(
            f"kind must be one of {', '.join(map(repr, kinds))} for {describe_states(solution)}; "
            f"got {kind!r}."
        )
    _check_options(kinds[kind], solution, kind, options)
    return kinds[kind](solution, **options)


def _check_options(draw: Draw, solution: "Solution", kind: str, options: dict[str, Any]) -> None:
    """Raise TypeError for an option that the figure does not have."""
    parameters = signature(draw).parameters.values()
    known = [option.name for option in parameters if option.kind == Parameter.KEYWORD_ONLY]
    if draw is token_overview and space_of(solution) is Sphere:
        known += ["seen_from", "clusters"]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise TypeError(
            f"{unknown[0]!r} is no option of kind={kind!r} for {describe_states(solution)}; it "
            f"has {', '.join(known)}."
        )


def overview(solution: "Solution", **options: Any) -> Figure:
    """One page with the states at several times and their observables.

    Parameters
    ----------
    solution : Solution
    **options
        `title`, and of densities `member` and `scale`, as for `spacetime`; on the sphere also
        `seen_from` and `clusters`, as for `orthographic`; of tokens, and of equiangular ones,
        `member` and `log_time`.
    """
    return plot(solution, "overview", **options)
