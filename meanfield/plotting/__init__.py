"""Figures and movies of a solution: maps, views, snapshots, observables.

Every function returns a matplotlib Figure that keeps its own style, so that neither pyplot nor
its settings are touched: `figure.savefig("run.pdf")` writes it for print, and a notebook shows it
when it is the last line of a cell. `pyplot.show()` does not know these figures; to put a plot in
one of your own, pass `ax=`.

The uniform probability measure is the reference, so the uniform state is the density 1 and is
drawn in every plot of a density. Characteristics, whose nodes have very different masses, are
drawn as curves or dots of equal mass. Tokens are curves or dots themselves, in the colour of the
cluster in which they end; of very many, some are drawn, and the figure says so. A solution that
is not resolved is framed in red.

A figure of your own is a function with the decorator `figure`; it is then a kind of
`solution.plot`. `upper_part` and `scene` do the same for overviews and movies, and a class
derived from `Appearance` tells how a kind of state is drawn.
"""

from ..core.public_names import with_hint
from ..dynamics.observables import declare
from . import cycles, rare_events, theme  # noqa: F401  which register figures
from .appearance import Appearance
from .curves import (
    distribution,
    histogram,
    polar,
    product_histogram,
    snapshots,
    spectrum,
    trajectories,
)
from .diagrams import bifurcation, phases, rates
from .fields import inner_products, spacetime, token_spacetime
from .gaussians import cone, cone_points, ellipses, variances
from .indexed import index_map, order, order_map
from .observables import observables
from .pages import Band, animate, overview, scene, upper_part
from .points import paths, projection, rings
from .registry import figure, plot, result_card
from .sphere import mollweide, mollweide_dots, orthographic, orthographic_dots
from .torus import torus_dots, torus_map

__all__ = [
    "Appearance", "Band", "animate", "bifurcation", "cone", "cone_points", "declare",
    "distribution", "ellipses", "figure", "histogram", "index_map", "inner_products",
    "mollweide", "mollweide_dots", "observables", "order", "order_map", "orthographic",
    "orthographic_dots", "overview", "paths", "phases", "plot", "polar", "product_histogram",
    "projection", "rates", "result_card", "rings", "scene", "snapshots", "spacetime",
    "spectrum", "theme", "token_spacetime", "torus_dots", "torus_map", "trajectories",
    "upper_part", "variances",
]  # fmt: skip

__getattr__ = with_hint(__name__, __all__)
