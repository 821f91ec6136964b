"""One state on the sphere in one projection: its pixels, and what is drawn around them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.image import AxesImage
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.patheffects import withStroke

from ..spaces.characteristics import Characteristics
from ..spaces.density import Density
from ..states import Tokens
from . import theme
from .density_bar import density_bar
from .portions import percent
from .projections import OrthographicPair, Projection, graticule
from .scales import Scale, choose_scale
from .sphere_clusters import clusters_of

__all__ = [
    "DENSITY",
    "View",
    "direction_of",
    "draw_views",
    "globe",
    "mark_cluster",
    "name_sides",
    "paint",
    "pixels",
]

DENSITY = r"density $\mu_t(x)$"
PER_UNIT = 240  # pixels in the radius of a disc, and in half the height of a map
MARGIN = 0.02


@dataclass(frozen=True)
class View:
    """A state, not an ensemble, in the projection in which `ax` shows it.

    Attributes
    ----------
    projection : Projection or None
        None where the panel is no view of the sphere.
    title : str
        Above the panel.
    resolved : bool
        Whether the state is; else its title is red.
    """

    ax: Axes
    projection: Projection | None
    state: Density | Characteristics | Tokens
    title: str = ""
    resolved: bool = True

    def head(self) -> None:
        """Write the title."""
        self.ax.set_title(self.title, color=theme.INK if self.resolved else theme.WARNING)


def pixels(projection: Projection, density: Density, per_unit: int = PER_UNIT) -> np.ndarray:
    """Values at the middles of pixels, (rows from below, columns); nan outside the outlines.

    The density is evaluated there, not interpolated from a grid: poles and the date line are
    points like others. Pixels which the outline cuts show its nearest point.
    """
    left, right, bottom, top = projection.box
    columns, rows = round((right - left) * per_unit), round((top - bottom) * per_unit)
    x = left + (right - left) * (np.arange(columns) + 0.5) / columns
    y = bottom + (top - bottom) * (np.arange(rows) + 0.5) / rows
    points = projection.points(*np.meshgrid(x, y), slack=1.5 / per_unit)
    seen = np.isfinite(points[..., 0])
    image = np.full(seen.shape, np.nan)
    image[seen] = density.at(points[seen])
    return image


def draw_views(
    figure: FigureBase, views: Sequence[View], scale: str, *, rows: int = 1, clusters: bool = False
) -> None:
    """All views on one scale of colours, with one bar, which is as high as `rows` panels."""
    images = [pixels(view.projection, view.state) for view in views]
    chosen = choose_scale(np.concatenate([image.ravel() for image in images]), scale)
    for view, image in zip(views, images, strict=True):
        picture, _ = paint(view.ax, view.projection, image, chosen)
        view.head()
        for cluster in clusters_of(view.state) if clusters else []:
            mark_cluster(view.ax, view.projection, cluster.point, cluster.share)
    axes = [view.ax for view in views]
    density_bar(figure, axes, picture, chosen, DENSITY, rows=rows, short=rows == 1)


def paint(
    ax: Axes, projection: Projection, image: np.ndarray, scale: Scale
) -> tuple[AxesImage, PathPatch]:
    """The picture, cut at the outline, beneath the graticule; and the outline."""
    left, right, bottom, top = projection.box
    outline = globe(ax, projection, "white")
    picture = ax.imshow(
        scale.shown(image),
        extent=(left, right, bottom, top),
        origin="lower",
        norm=scale.norm,
        cmap=theme.DENSITY_MAP,
    )
    picture.set_clip_path(outline)
    ax.set(**_limits(projection))
    return picture, outline


def globe(ax: Axes, projection: Projection, lines: str) -> PathPatch:
    """The outline of a view, which is returned, and its graticule in the colour `lines`."""
    path = Outline.make_compound_path(*(Outline(c, closed=True) for c in projection.outlines))
    outline = PathPatch(path, facecolor="none", edgecolor=theme.INK, linewidth=0.7, zorder=3)
    ax.add_patch(outline)
    fine, main = graticule(projection)
    for curves, alpha in ((fine, 0.3), (main, 0.65)):
        for curve in curves:
            ax.plot(*curve.T, color=lines, linewidth=0.45, alpha=alpha, zorder=2)
    ax.set(**_limits(projection), xticks=[], yticks=[], aspect="equal")
    for spine in ax.spines.values():
        spine.set_visible(False)
    return outline


def _limits(projection: Projection) -> dict[str, tuple[float, float]]:
    left, right, bottom, top = projection.box
    return {
        "xlim": (left - MARGIN, right + MARGIN),
        "ylim": (bottom - MARGIN, top + MARGIN),
    }


def name_sides(ax: Axes, pair: OrthographicPair) -> None:
    """Write beside the discs from where each is seen."""
    numbers = ", ".join(f"{{{number:.2f}}}" for number in pair.frame[2]).replace("-0.00", "0.00")
    names = (f"seen from $({numbers})$", "from behind")
    for (right, up), name in zip(pair.centres, names, strict=True):
        if pair.beside:
            place = {"x": right, "y": up - 1.07, "va": "top", "ha": "center"}
        else:
            place = {"x": right - 1.07, "y": up, "va": "center", "ha": "right", "rotation": 90}
            name = name.replace("from $", "from\n$")
        ax.text(s=name, fontsize=8, multialignment="center", **place)


def direction_of(density: Density) -> np.ndarray:
    """Where to look from: the direction of the mean, or of the maximum if the mean is near 0.

    Of several maxima of equal height the northernmost is taken; the uniform density is seen from
    the first axis.
    """
    points, values = density.geometry.points, density.values
    mean = (density.geometry.weights * values) @ points
    if np.linalg.norm(mean) > 0.1:
        return mean
    if values.max() < 1 + 1e-6:
        return np.array([1.0, 0.0, 0.0])
    return points[np.argmax(values > values.max() * (1 - 1e-6))]


def mark_cluster(ax: Axes, projection: Projection, point: np.ndarray, share: float) -> list[Artist]:
    """A ring at a cluster, and its share of the mass beside it."""
    halo = [withStroke(linewidth=1.6, foreground="white")]
    place = projection.place(point)
    left, down = _near_the_end(projection, place)  # else the text would leave the outline
    free = {"zorder": 4, "clip_on": False, "mfc": "none", "ms": 4.6}
    rings = ax.plot(*place, "o", mec="white", mew=1.7, **free)
    rings += ax.plot(*place, "o", mec=theme.INK, mew=0.8, **free)
    label = ax.annotate(
        percent(share),
        place,
        xytext=(-4 if left else 4, -3 if down else 3),
        ha="right" if left else "left",
        va="top" if down else "baseline",
        textcoords="offset points",
        fontsize=7.5,
        zorder=5,
        path_effects=halo,
    )
    return [*rings, label]


def _near_the_end(projection: Projection, place: np.ndarray) -> tuple[bool, bool]:
    """Whether a place is near the right and the upper end of the outline it lies in."""
    ends = [(outline.min(axis=0), outline.max(axis=0)) for outline in projection.outlines]
    low, high = min(ends, key=lambda box: np.linalg.norm(place - (box[0] + box[1]) / 2))
    right, top = (place - low) / (high - low) > 0.85
    return bool(right), bool(top)
