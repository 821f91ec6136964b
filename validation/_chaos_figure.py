"""The figure of propagation_of_chaos.py."""

import numpy as np

import meanfield as mf
from meanfield.plotting import theme

NAMES = {
    "W1": "$W_1$",
    "W2": "$W_2$",
    "W2 up to rotation": "$W_2$ up to rotation",
    "|m_1|^2": "$|m_1|^2$",
    "|m_2|^2": "$|m_2|^2$",
}

__all__ = ["draw", "mean_of"]


def mean_of(table) -> tuple[np.ndarray, np.ndarray]:
    """Means over replicas and their standard errors."""
    values = table.transpose(..., "replica").values
    return values.mean(axis=-1), values.std(axis=-1, ddof=1) / values.shape[-1] ** 0.5


def draw(path: str, circle, weak, uniform, ordered, metastable, spheres) -> None:
    from matplotlib.figure import Figure

    with theme.style():
        figure = Figure(figsize=(12, 7), dpi=160, layout="constrained")
        axes = figure.subplots(2, 3)
        draw_rates(axes[0, 0], circle, ("W1", "W2", "coupling"), "circle, noisy USA, $t = 4$")
        draw_weak(axes[0, 1], weak)
        draw_uniform(axes[0, 2], uniform)
        draw_ordered(axes[1, 0], ordered)
        draw_metastable(axes[1, 1], metastable)
        draw_spheres(axes[1, 2], spheres[0])
        figure.savefig(path)


def draw_rates(ax, found: mf.Study, names, title: str) -> None:
    sizes = found.data.n.values
    for name in names:
        mean, error = mean_of(found.data[name].isel(t=-1))
        rate = found.rate(name)
        ax.errorbar(sizes, mean, 1.96 * error, fmt="o", ms=4, color=(colour := next_colour(ax)))
        fitted = rate.constant * sizes**rate.exponent
        ax.plot(sizes, fitted, color=colour, label=fitted_label(name, rate))
        if f"floor of {name}" in found.data:
            floor = mean_of(found.data[f"floor of {name}"].isel(t=-1))[0]
            ax.plot(sizes, floor, "--", lw=1, color=colour)
    ax.plot([], [], "k--", lw=1, label="independent samples")
    ax.set(xscale="log", yscale="log", xlabel="$n$", title=title)
    tick_at(ax, sizes)
    ax.legend(fontsize=8)


def fitted_label(name: str, rate) -> str:
    return rf"{NAMES.get(name, name)} $\propto n^{{{rate.exponent:.3f}}}$"


def tick_at(ax, values) -> None:
    """Ticks of a logarithmic axis where there is something to see."""
    ax.set_xticks(values, [f"{value:g}" for value in values])
    ax.set_xticks([], minor=True)


def next_colour(ax) -> str:
    return f"C{len(ax.containers)}"


def draw_weak(ax, found: mf.Study) -> None:
    sizes = found.data.n.values
    for i, name in enumerate(("|m_1|^2", "|m_2|^2")):
        limit = float(found.data[f"limit of {name}"].isel(t=-1))
        mean, error = mean_of(found.data[name].isel(t=-1))
        rate = found.weak_rate(name)
        ax.errorbar(sizes, mean - limit, 1.96 * error, fmt="o", ms=4, color=f"C{i}")
        fitted = rate.constant * sizes**rate.exponent
        ax.plot(sizes, fitted, f"C{i}", label="$F =$ " + fitted_label(name, rate))
    ax.set(xscale="log", yscale="log", xlabel="$n$", title=r"$E\,F(\mu^n) - F(\mu)$, $t = 1$")
    tick_at(ax, sizes)
    ax.legend(fontsize=8)


def draw_uniform(ax, curves: dict) -> None:
    for i, ((beta, part), (times, means, errors, predicted)) in enumerate(curves.items()):
        label = rf"$\beta = {beta}$, $\kappa = {part}\,\kappa_c$"
        ax.errorbar(times, means, 1.96 * errors, fmt="o-", ms=4, color=f"C{i}", label=label)
        ax.axhline(predicted, color=f"C{i}", lw=1, ls=":")
    ax.set(xscale="log", yscale="log", xlabel="time $t$", title=r"$n\,E\,W_2^2$, uniform phase")
    ax.legend(fontsize=7)


def draw_ordered(ax, found: mf.Study) -> None:
    times = found.data.t.values
    for i, n in enumerate(found.data.n.values):
        for name, style in (("W2", "o-"), ("W2 up to rotation", "s--")):
            mean, error = mean_of(n * found.data[name].sel(n=n) ** 2)
            label = f"{NAMES[name]}, $n = {n}$"
            ax.errorbar(times, mean, 1.96 * error, fmt=style, ms=4, color=f"C{i}", label=label)
    ax.plot(times, 2 + 2 * times / 3, "k:", label="$2 + 2t/3$")
    ax.set(yscale="log", xlabel="time $t$", title=r"$n\,E\,W_2^2$, Kuramoto, $\kappa = 3$")
    ax.legend(fontsize=7)


def draw_metastable(ax, found: mf.Study) -> None:
    for i, n in enumerate(found.data.n.values):
        mean, error = mean_of(found.data["W2"].sel(n=n))
        label = f"$n = {n}$"
        ax.errorbar(found.data.t, mean, 1.96 * error, fmt="o-", ms=4, color=f"C{i}", label=label)
    title = r"$E\,W_2$, $\beta = 4$, $\kappa = 0.402$"
    ax.set(xscale="log", yscale="log", xlabel="time $t$", title=title)
    tick_at(ax, found.data.t.values)
    ax.legend(fontsize=8)


def draw_spheres(ax, found: mf.Study) -> None:
    sizes = found.data.n.values
    for i, (name, label) in enumerate((("W2", "tokens"), ("floor of W2", "independent samples"))):
        mean, error = mean_of(found.data[name].isel(t=-1) ** 2 * found.data.n)
        ax.errorbar(sizes, mean, 1.96 * error, fmt="o", ms=4, color=f"C{i}", label=label)
        weights = error**-2
        start = weights @ (mean - np.log(sizes)) / weights.sum()
        ax.plot(sizes, np.log(sizes) + start, f"C{i}", lw=1, label=rf"$\log n + {start:.2f}$")
    ax.set(xscale="log", xlabel="$n$", title=r"$n\,E\,W_2^2$ on $S^2$, $\kappa = 1.5$")
    tick_at(ax, sizes)
    ax.legend(fontsize=8, loc="upper left")
