"""Figures of sweeps: a variable at the end of each run, over one parameter or two."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.checks import fitting
from ..core.errors import MeanfieldError
from ..core.provided import FIGURES
from ..dynamics.observables import style_of_observable
from .labels import label_logarithmic, symbol_of
from .theme import figure, resized, style

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from ..sweeps import Sweep

REPLICA = "replica"
EVEN, LONG = 0.01, 5.0  # a logarithmic axis if log steps differ by less, and the range is longer


@FIGURES.register
def sweep(
    result: "Sweep",
    name: str = "order_parameter",
    *,
    ax: "Axes | None" = None,
    width: float | None = None,
    height: float | None = None,
) -> "Figure":
    """A variable over the parameters that have several values, at most two; means of replicas.

    Parameters
    ----------
    result : Sweep
    name : str
        A variable with one number for each run, or for each of its times.
    ax : Axes, optional
        Where to draw.
    width, height : float, optional
        Of a new figure, in inches.

    Raises
    ------
    ValueError
        For other variables.
    MeanfieldError
        For a sweep over more parameters, or over none that are numbers.
    """
    names = [str(n) for n, v in result.data.items() if v.dtype.kind in "fi" and result.is_scalar(n)]
    fitting("kind", name, f"a variable: one of {', '.join(names)}", name in names)
    values = result.at_the_end(name)
    values = values.mean(REPLICA) if REPLICA in values.dims else values
    values = values.squeeze(drop=True)
    if values.ndim not in (1, 2) or any(values[dim].dtype.kind not in "fi" for dim in values.dims):
        raise MeanfieldError(
            "Sweeps over one or two parameters that are numbers have a figure; this one is over "
            f"{', '.join(map(str, values.dims)) or 'none'}. Select some of its data, and draw that."
        )
    with style():
        page: Any = figure(width=4.2, height=3.1) if ax is None else ax.figure
        panel = page.subplots() if ax is None else ax
        x, *others = (str(dim) for dim in values.dims)
        if others:
            mesh = panel.pcolormesh(values[x], values[others[0]], np.transpose(values.values))
            page.colorbar(mesh, ax=panel, label=style_of_observable(name).symbol)
            _parameter(panel.yaxis, others[0], values)
        else:
            panel.plot(values[x], values.values, "o-")
            panel.set_ylabel(style_of_observable(name).symbol)
        _parameter(panel.xaxis, x, values)
    return page.figure if ax is not None else resized(page, width, height)


def _parameter(axis: "Axis", name: str, values: "xr.DataArray") -> None:
    """The axis of a parameter, logarithmic where its values are spaced like numpy.geomspace."""
    places = values[name].values
    axis.set_label_text(f"${symbol_of(name.rpartition('.')[2])}$")
    if places.min() > 0 and places.max() > LONG * places.min():
        steps = np.diff(np.log(places))
        if np.ptp(steps) < EVEN * np.abs(steps).max():
            axis.axes.set(**{f"{axis.axis_name}scale": "log"})
            label_logarithmic(axis)
