r"""
Where tokens begin to cluster: 64 runs in the plane of beta and kappa
=====================================================================

Under USA the perturbation of degree 1 of the uniform state grows at the rate
:math:`I_1(\beta)/\beta - 1/\kappa`. A sweep measures this rate at 8 x 8 points. The sweep is then
repeated in several processes with a store, and once more from a store truncated to its first half,
as after a kill. All three give the same numbers.

:Source: Survey, section 7, the linearised (9).
:Run time: 10 s, ``python examples/sweep.py``
:Look at: the sign of the rate, which changes on the curve :math:`\kappa = \beta/I_1(\beta)`.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.special import iv

import meanfield as mf
from meanfield.plotting import theme

# sphinx_gallery_parallel = False
CONFIG = Path(__file__).with_suffix(".toml")
TOLERANCE = 1e-6  # the square of the perturbation, of size 1e-4, grown tenfold


def run(out: Path) -> list[Row]:
    """Sweep, write sweep.nc and .png, resume from half of a store, compare."""
    config = mf.read_config(CONFIG)
    tables = {name: table for name, table in config.data.items() if name != "sweep"}
    whole = mf.run_config(config, out=out / f"{CONFIG.stem}.nc").data
    axes = {name: whole[name].values for name in whole.attrs["axes"]}
    store = out / f"{CONFIG.stem}.store"
    store.unlink(missing_ok=True)
    mf.sweep(tables, axes, store=store, executor="processes", progress=False)
    content = store.read_bytes()
    store.write_bytes(content[: len(content) // 2])
    again = mf.sweep(tables, axes, store=store, progress=False)
    store.unlink()
    moment = whole["order_parameter"]
    rate = np.log(moment.isel(t=-1) / moment.isel(t=0))
    beta, kappa = (whole[name] for name in whole.attrs["axes"])
    error = float(abs(rate - (iv(1, beta) / beta - 1 / kappa)).max())
    draw(rate).savefig(out / f"{CONFIG.stem}.png")
    different = sum(not whole[name].equals(again[name]) for name in whole)
    return [
        Row("largest error of 64 growth rates", error, 0.0, TOLERANCE),
        Row("variables that differ after a resumption", different, 0, 0.0),
    ]


def draw(rate) -> theme.PaperFigure:
    """The rates, and the curve kappa = beta / I_1(beta) on which they vanish."""
    beta, kappa = rate.coords["model.drift.beta"].values, rate.coords["model.kappa"].values
    fine = np.linspace(beta[0], beta[-1], 200)
    with theme.style():
        page = theme.figure(width=4.2, height=3.1)
        ax = page.subplots()
        most = float(abs(rate).max())
        mesh = ax.pcolormesh(beta, kappa, rate.values.T, cmap="RdBu_r", vmin=-most, vmax=most)
        ax.plot(fine, fine / iv(1, fine), color="black", label=r"$\kappa = \beta/I_1(\beta)$")
        ax.set(xlabel=r"$\beta$", ylabel=r"inverse noise $\kappa$", yscale="log")
        ax.set_ylim(kappa[0], kappa[-1])
        page.colorbar(mesh, ax=ax, label="growth rate of degree 1")
        ax.legend(loc="upper right")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
