"""Figures of probes, fits and advice; SVG takes the text colour of the surrounding page."""

import re
from html import escape
from io import StringIO

import numpy as np
import xarray as xr
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from meanfield.plotting.theme import INK, ORDER_MAP, PALETTE, style, subplots

from .advice import Advice
from .bootstrap import interval
from .findings import Changes
from .fitting import Fit
from .fitting.fit import is_undetermined

SUBLAYER_COLOURS = {"attention": 0, "mlp": 1, "normalisation": 2, "bias": 3}
HISTOGRAM_PANELS = 16  # largest number of histograms
LAYER_SHADES = (0.3, 0.85)  # range of the colour map that is visible on light and dark pages
LAYER_TICKS = 8  # approximate number of ticks of an axis of layers
NULL_STYLES = {
    "random weights": ("s--", 1),
    "shuffled weights": ("^:", 3),
    "shuffled tokens": ("v-.", 2),
    "untrained": ("x--", 4),
}


def of_layers(layers: xr.Dataset, changes: Changes, null: xr.Dataset | None) -> Figure:
    """Quantities by layer.

    The band of the mean cosine is its 95 % interval, bands of null models are the ranges of their
    draws, and bars of lengths are standard deviations over tokens.
    """
    with subplots(8.4, 5.6, 2, 3) as (page, panels):
        cosine, rank, energy, length, angle, clusters = panels.flat
        depth, marks = np.arange(len(layers.layer)), {"ms": 3, "color": PALETTE[0]}
        low, high = interval(changes.cosine[:, 1:]).T
        cosine.fill_between(depth, low, high, color=PALETTE[0], alpha=0.3, lw=0)
        cosine.plot(depth, changes.cosine[:, 0], "o-", **marks, label="network")
        rank.plot(depth, layers.effective_rank.mean("text"), "o-", **marks)
        if null is not None:
            _draw_nulls(cosine, null.mean_cosine)
            _draw_nulls(rank, null.effective_rank)
        cosine.set(title="mean cosine of pairs", ylim=(min(0, low.min()), 1.02))
        rank.set(title="effective rank", yscale="log")
        for k, beta in enumerate(layers.beta.values):
            values, label = layers.energy.sel(beta=beta).mean("text"), rf"$\beta = {beta:g}$"
            energy.plot(depth, values / values[0], "o-", ms=3, color=PALETTE[k % 6], label=label)
        energy.set(title=r"energy $E_\beta$ over that of layer 0", yscale="log")
        norm, deviation = (layers[name].mean("text") for name in ("norm", "norm_spread"))
        length.errorbar(depth, norm, deviation, fmt="o-", **marks, capsize=2)
        length.set(title="length of hidden states", ylim=(0, None))
        # often equal: the broad line stays visible beneath the other
        broad = {"lw": 5, "alpha": 0.4, "color": PALETTE[0], "label": r"$W_2$ between layers"}
        angle.plot(depth[1:], layers.w2.mean("text"), "-", **broad)
        narrow = {"ms": 3, "color": PALETTE[1], "label": "r.m.s. angle moved"}
        angle.plot(depth[1:], layers.moved.mean("text"), "s--", **narrow)
        angle.set(title="from the layer before, radians", ylim=(0, None))
        for k, gap in enumerate(layers.angle.values):
            counts, label = layers.clusters.sel(angle=gap).mean("text"), f"{gap:g} rad"
            clusters.plot(depth, counts, "o-", ms=3, color=PALETTE[k % 6], label=label)
        clusters.set(title="clusters, tokens linked up to", yscale="log", ylim=(0.8, None))
        for ax in panels.flat:
            ax.set(xlabel="layer", xticks=_ticks(depth))
            if ax.get_yscale() == "log":  # ticks 1, 2, 5, 10, ... as plain numbers
                ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
                ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
                ax.yaxis.set_minor_locator(NullLocator())
            if ax is not rank and ax.get_legend_handles_labels()[0]:
                # beneath the axes, where it hides no curve
                columns = 3 if ax in (energy, clusters) else 2
                ax.legend(fontsize=7, ncols=columns, loc="upper center", borderaxespad=0,
                          bbox_to_anchor=(0.5, -0.28), columnspacing=1.0)  # fmt: skip
    return page


def _ticks(layers: np.ndarray) -> np.ndarray:
    """About `LAYER_TICKS` of the layers, for the ticks of an axis."""
    return layers[:: max(1, len(layers) // LAYER_TICKS)]


def _draw_nulls(ax: Axes, null: xr.DataArray) -> None:
    """Draw null models by layer: the mean, and the range, of their draws."""
    for kind in map(str, null["null"].values):
        marks, colour = NULL_STYLES[kind]
        values = null.sel(null=kind).mean("text")
        ax.plot(values.layer, values.mean("draw"), marks, ms=3, lw=1, color=PALETTE[colour],
                label=kind)  # fmt: skip
        ax.fill_between(values.layer, values.min("draw"), values.max("draw"), lw=0, alpha=0.2,
                        color=PALETTE[colour])  # fmt: skip


def _densities(layers: xr.Dataset) -> tuple[xr.DataArray, float, np.ndarray]:
    """Densities of cosines, averaged over texts; width of a bin; bins that are not empty."""
    width = float(layers.bin[1] - layers.bin[0])
    density = layers.cosine_share.mean("text") / width
    return density, width, layers.bin.values[(density > 1e-3).any("layer").values]


def of_cosines(layers: xr.Dataset) -> Figure:
    """The law of the cosines of pairs, layer by layer."""
    with subplots(6.4, 2.9) as (page, ax):
        density, _, bins = _densities(layers)
        for k, colour in enumerate(_shades(len(layers.layer))):
            ax.plot(layers.bin, density.isel(layer=k), color=colour, lw=1.2)
        ax.set(xlim=(bins.min(), bins.max()), xlabel="cosine of a pair", ylabel="density of pairs")
        _bar_of_layers(page, ax, layers.layer.values)
    return page


def _shades(count: int) -> np.ndarray:
    """Colours (count, 4) of layers, in their order."""
    return colormaps[ORDER_MAP](np.linspace(*LAYER_SHADES, count))


def _bar_of_layers(page: Figure, axes: Axes, layers: np.ndarray) -> None:
    """Add a colour bar with one shade of `_shades` for each layer."""
    count = len(layers)
    edges = np.append(layers, layers[-1] + 1) - 0.5
    scale = ScalarMappable(BoundaryNorm(edges, count), ListedColormap(_shades(count)))
    bar = page.colorbar(scale, ax=axes, ticks=_ticks(layers), label="layer", pad=0.02)
    bar.ax.tick_params(length=0, which="both")


def of_histograms(layers: xr.Dataset) -> Figure:
    """Figure 1 of the survey: a histogram of the cosines of all pairs for each layer.

    Shares are averaged over texts. Of more than 16 layers, 16 evenly spaced ones are drawn, the
    first and the last among them.
    """
    total = len(layers.layer)
    shown = np.unique(np.linspace(0, total - 1, min(total, HISTOGRAM_PANELS)).round().astype(int))
    columns = min(4, len(shown))
    rows = -(-len(shown) // columns)
    shared = {"sharex": True, "sharey": True, "squeeze": False}
    with subplots(7.4, 0.5 + 1.5 * rows, rows, columns, **shared) as (page, grid):
        panels = np.ravel(grid)
        density, width, bins = _densities(layers)
        for ax, layer in zip(panels, shown, strict=False):
            mean = float(layers.mean_cosine.mean("text")[layer])
            ax.bar(layers.bin, density.isel(layer=layer), width, color=PALETTE[0], alpha=0.75)
            ax.axvline(mean, color=PALETTE[1], lw=1.2)
            ax.set_title(f"{'input' if layer == 0 else f'layer {layer}'}: mean {mean:.3f}",
                         fontsize=8)  # fmt: skip
        for ax in panels[len(shown) - columns : len(shown)]:  # the lowest of each column
            ax.tick_params(labelbottom=True)
        for ax in panels[len(shown) :]:
            ax.set_axis_off()
        panels[0].set(xlim=(bins.min() - width, min(bins.max() + width, 1)))
        page.supxlabel(r"$\langle x_i, x_j\rangle$", fontsize=9)
        page.supylabel("density of pairs", fontsize=9)
    return page


def of_parts(parts: dict[str, xr.Dataset]) -> Figure:
    """Changes of quantities by sublayer, as bars for each layer."""
    with subplots(4.2 * len(parts), 3.1, 1, len(parts), squeeze=False) as (page, (panels,)):
        for ax, (name, changes) in zip(panels, parts.items(), strict=True):
            part, blocks = changes.part.mean("text"), changes.block.values
            width = 0.8 / len(changes.sublayer)
            for k, kind in enumerate(map(str, changes.sublayer.values)):
                positions = blocks + (k - (len(changes.sublayer) - 1) / 2) * width
                colour = PALETTE[SUBLAYER_COLOURS[kind]]
                ax.bar(positions, part.sel(sublayer=kind), width, color=colour, label=kind)
            marker = {"ms": 4, "color": INK, "mfc": "none", "label": "whole"}
            ax.plot(blocks, changes.change.mean("text"), "D", **marker)
            ax.axhline(0, color=INK, lw=0.7)
            ax.set(title=f"change of the {name}", xlabel="layer", xticks=_ticks(blocks))
        panels[0].legend(fontsize=7)
    return page


def of_heads(layers: xr.Dataset, parts: xr.Dataset) -> Figure:
    """Parts of heads in the change of the mean cosine, and how well cosines explain logits.

    Left: the part of each head. Middle: the part against the trace of output V. Right: the
    explained share of logits against the inverse temperature times norms.
    """
    with subplots(8.4, 3.0, 1, 3) as (page, (left, middle, right)):
        part = parts.head_part.mean("text").values
        top = np.abs(part).max()
        blocks, heads = part.shape
        shown = left.pcolormesh(np.arange(heads + 1) + 0.5, np.arange(blocks + 1) + 0.5, part,
                                cmap="PuOr", vmin=-top, vmax=top)  # fmt: skip
        ticks = {"xticks": range(1, heads + 1, 1 + heads // 12)}
        ticks["yticks"] = range(1, blocks + 1, 1 + blocks // 12)
        title = "part in the change of mean cosine"
        left.set(xlabel="head", ylabel="layer", title=title, **ticks)
        page.colorbar(shown, ax=left)
        trace = layers.value_symmetric.sum("eigenvalue").values
        beta, share = (layers[n].mean("text").values for n in ("head_beta", "head_slope_share"))
        for k, shade in enumerate(_shades(blocks)):
            middle.plot(trace[k], part[k], "o", ms=3, color=shade)
            right.plot(beta[k], 100 * share[k], "o", ms=3, color=shade)
        middle.axhline(0, color=INK, lw=0.6)
        middle.axvline(0, color=INK, lw=0.6)
        middle.set(xlabel="trace of output V", ylabel="part of the head")
        right.set(xlabel="temperature times norms", xlim=(0, None), ylim=(0, 100),
                  ylabel="logits explained by cosines, %")  # fmt: skip
        _bar_of_layers(page, right, np.arange(1, blocks + 1))
    return page


def of_fit(fit: Fit) -> Figure:
    """Parameters with intervals, the test of fit, and errors of held-out predictions."""
    bars = PALETTE[0], PALETTE[5]  # dark and light
    with subplots(11, 3.2, 1, 3) as (page, (left, middle, right)):
        labels, values = fit.family.labels, fit.family.values(fit.estimate.point)
        scale = np.where(values == 0, 1, np.abs(values))
        rows = zip(values / scale, fit.interval() / scale[:, None], values, strict=True)
        for k, (relative_estimate, relative_interval, value) in enumerate(rows):
            left.plot(relative_interval, [k, k], "-", color="C0")
            left.plot(relative_estimate, k, "o", color="C0")
            text = "not determined" if is_undetermined(relative_interval) else f"{value:.3g}"
            left.annotate(text, (relative_estimate, k), xytext=(0, 7), ha="center",
                          textcoords="offset points")  # fmt: skip
        left.set(yticks=range(len(labels)), yticklabels=labels, xlabel="relative to the estimate",
                 title=f"{fit.family.name}: {fit.status}",
                 ylim=(-0.5, len(labels) - 0.5))  # fmt: skip
        if fit.goodness is not None:
            names = list(fit.goodness.deviations)
            middle.barh(range(len(names)), list(fit.goodness.deviations.values()))
            middle.set(yticks=range(len(names)), xlabel="standard errors",
                       title=f"test of fit: p {fit.goodness.p_in_words}")  # fmt: skip
            middle.set_yticklabels([name.split(" learned")[0] for name in names], fontsize=7)
        for k, prediction in enumerate(fit.predictions):
            errors = [prediction.flow, prediction.nothing, prediction.linear]
            options = {"color": bars[k % len(bars)], "label": f"{prediction.kind} held out"}
            right.bar(np.arange(3) + 0.35 * k, errors, 0.35, **options)
        right.set(xticks=range(3), xticklabels=["flow", "nothing", "linear map"],
                  ylabel="angle, radians", title="predictions")  # fmt: skip
        if fit.predictions:
            right.margins(y=0.3)  # room for the legend
            right.legend(loc="upper right")
    return page


def of_advice(advice: Advice) -> Figure:
    """Mean cosines and numbers of attended tokens, by layer and placement."""
    dashes = "-", "--", ":", "-."
    with subplots(8.4, 3.0, 1, 2) as (page, (left, right)):
        for k, name in enumerate(advice.placements):
            rows = advice.layers.sel(normalisation=name)
            look = {"color": PALETTE[k % 6], "ls": dashes[k % 4], "label": name}
            left.plot(rows.layer, rows.mean_cosine, **look)
            right.plot(rows.layer, rows.attended, **look)
        left.axhline(advice.threshold, color=INK, lw=0.7)
        left.set(xlabel="layer", ylabel="mean cosine of pairs", ylim=(None, 1.03))
        right.axhline(advice.n, color=INK, lw=0.7)
        right.set(xlabel="layer", ylabel=r"tokens looked at, $1/\sum_j w_{ij}^2$",
                  ylim=(0, 1.08 * advice.n))  # fmt: skip
        left.legend(loc="lower right")
    return page


def svg(page: Figure, key: str, title: str, description: str) -> str:
    """A figure as SVG for an HTML page, with unique ids and a text alternative.

    Parameters
    ----------
    page : Figure
    key : str
        Prefix of the ids in this figure.
    title, description : str
        Text alternative, for screen readers.
    """
    buffer = StringIO()
    with style():
        page.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(rf"{INK}|#000000", "currentColor", text, flags=re.IGNORECASE)
    text = re.sub(r'id="([^"]+)"', rf'id="{key}-\1"', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{key}-", text)
    attributes = (
        f'role="img" aria-labelledby="{key}-name {key}-words"><title id="{key}-name">'
        f'{escape(title)}</title><desc id="{key}-words">{escape(description)}</desc>'
    )
    text = re.sub(r'(<svg[^>]*?) width="[^"]*" height="[^"]*"', r"\1", text, count=1)
    return re.sub(r"<svg([^>]*)>", rf"<svg\1 {attributes}", text, count=1)
