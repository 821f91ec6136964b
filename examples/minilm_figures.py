"""The figures of minilm.py: inner products layer by layer, and predicted beside real layers."""

import numpy as np
from alignment import FINE, aligned, distance

import meanfield as mf
from meanfield.plotting import theme

__all__ = ["inner_products_figure", "layers_figure"]

BINS = np.linspace(-0.4, 1.0, 71)
ORDER = np.argsort((FINE.angles + np.pi) % (2 * np.pi))
THETA = ((FINE.angles + np.pi) % (2 * np.pi) - np.pi)[ORDER]


def inner_products_figure(cosines: list[np.ndarray]) -> theme.PaperFigure:
    """A histogram of the inner products of all pairs for each layer, and their means."""
    with theme.style():
        page = theme.figure(width=7.4, height=3.6)
        panels = list(page.subplots(2, 4).ravel())
        top = 1.1 * max(np.histogram(values, BINS, density=True)[0].max() for values in cosines)
        for layer, (ax, values) in enumerate(zip(panels, cosines, strict=False)):
            ax.hist(values, BINS, density=True, color=theme.PALETTE[0], alpha=0.75)
            mean = values.mean()
            ax.axvline(mean, color=theme.PALETTE[1], lw=1.2)
            ax.text(0.97, 0.8, f"mean {mean:.3f}", transform=ax.transAxes, ha="right", fontsize=8)
            ax.set_title("input" if layer == 0 else f"layer {layer}")
            ax.set(xlim=(-0.4, 1), ylim=(0, top))
            ax.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
        _outer(panels, "density of pairs")
        panels[5].set_xlabel(r"$\langle x_i, x_j \rangle$ of normalised tokens", fontsize=10)
        _means(panels[7], cosines)
    return page


def _outer(panels: list, ylabel: str) -> None:
    """Labels at the left and below only; the last panel has its own."""
    for ax in panels[:3]:
        ax.tick_params(labelbottom=False)
    for i, ax in enumerate(panels[:7]):
        if i % 4:
            ax.tick_params(labelleft=False)
        else:
            ax.set_ylabel(ylabel)


def _means(ax, cosines: list[np.ndarray]) -> None:
    ax.plot([values.mean() for values in cosines], "o-", color=theme.PALETTE[1], markersize=4)
    ax.set_title("mean by layer")
    ax.set(ylim=(0, 0.35), xticks=range(len(cosines)), xlabel="layer")


def layers_figure(
    layers: list[mf.Density], predicted: dict[float, list[mf.Density]], floor: float
) -> theme.PaperFigure:
    """Densities on the circle, real and predicted, for each layer; their distances.

    Parameters
    ----------
    layers : list of Density
        The real ones; 0 is the input.
    predicted : dict
        beta -> the evolved input at each layer. The last beta is drawn beside the real layers.
    floor : float
        Distance between two halves of the same tokens.
    """
    with theme.style():
        page = theme.figure(width=7.4, height=4.0)
        panels = list(page.subplots(2, 4).ravel())
        beta, chosen = list(predicted.items())[-1]
        top = 1.05 * max(aligned(density).max() for density in (*layers, *chosen))
        for layer, (ax, real) in enumerate(zip(panels, layers, strict=False)):
            _layer(ax, real, chosen[layer], layers[0])
            ax.set_title("input" if layer == 0 else f"layer {layer}")
            ax.set(xlim=(-np.pi, np.pi), ylim=(0, top))
            ax.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
        _outer(panels, "density")
        page.supxlabel("angle from the mean direction", fontsize=10)
        handles, labels = panels[1].get_legend_handles_labels()
        labels[labels.index("model")] = rf"model, $\beta = {beta:.3g}$"
        page.legend(handles, labels, loc="outside upper center", ncols=3)
        _distances(panels[7], layers, predicted, floor)
    return page


def _layer(ax, real: mf.Density, model: mf.Density, start: mf.Density) -> None:
    _, mirrored = distance(real, model)
    values = aligned(real, mirrored=mirrored)[ORDER]
    ax.fill_between(THETA, values, color="0.8", lw=0, label="real layer")
    dashes = {"color": theme.INK, "lw": 0.7, "dashes": (4, 3)}
    ax.plot(THETA, aligned(start)[ORDER], label="input, unmoved", **dashes)
    ax.plot(THETA, aligned(model)[ORDER], label="model", color=theme.PALETTE[1], lw=1.2)
    for y, density, colour in ((0.86, real, "0.5"), (0.73, model, theme.PALETTE[1])):
        order = f"$r = {abs(density.moment(1)):.2f}$"
        ax.text(0.98, y, order, color=colour, fontsize=8, ha="right", transform=ax.transAxes)


def _distances(ax, layers, predicted: dict[float, list[mf.Density]], floor: float) -> None:
    depth = range(1, len(layers))
    unmoved = [distance(layers[0], layers[i])[0] for i in depth]
    ax.plot(depth, unmoved, "s--", color=theme.INK, lw=0.8, markersize=3, label="unmoved")
    for colour, (beta, states) in zip(theme.PALETTE[5::-2], predicted.items(), strict=False):
        far = [distance(states[i], layers[i])[0] for i in depth]
        ax.plot(depth, far, "o-", color=colour, lw=1, markersize=3, label=rf"$\beta = {beta:.3g}$")
    ax.axhspan(0, floor, color="0.9", lw=0)
    ax.text(1, 0.4 * floor, "sampling floor", fontsize=7.5, va="center")
    ax.set_title(r"$W_1$ to the real layer")
    ax.set(ylim=(0, 0.45), xticks=depth, xlabel="layer")
    ax.legend(ncols=2, fontsize=7, handlelength=1, columnspacing=0.8, loc="upper left")
