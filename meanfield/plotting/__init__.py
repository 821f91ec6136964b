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
"""

from . import theme
from .animation import animate
from .bifurcation import bifurcation
from .chaos import rates
from .circle import snapshots, spacetime
from .cone import cone
from .distribution import distribution
from .dots import mollweide_dots, orthographic_dots
from .ellipses import ellipses
from .gaussian_overview import gaussian_overview
from .inner_products import inner_products
from .kinds import overview, plot
from .observables import observables
from .phases import phases
from .planes import paths, projection
from .polar import polar
from .rings import rings
from .sphere import mollweide, orthographic
from .token_histogram import histogram
from .token_overview import token_overview
from .token_trajectories import token_curves
from .trajectories import trajectories
from .variances import variances

__all__ = [
    "animate",
    "bifurcation",
    "cone",
    "distribution",
    "ellipses",
    "gaussian_overview",
    "histogram",
    "inner_products",
    "mollweide",
    "mollweide_dots",
    "observables",
    "orthographic",
    "orthographic_dots",
    "overview",
    "paths",
    "phases",
    "plot",
    "polar",
    "projection",
    "rates",
    "rings",
    "snapshots",
    "spacetime",
    "theme",
    "token_curves",
    "token_overview",
    "trajectories",
    "variances",
]
