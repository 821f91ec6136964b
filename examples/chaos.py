"""
How fast tokens approach the mean field: 16 to 1024 of them, 64 runs each
=========================================================================

Distances of the tokens from the density fall like :math:`n^{-1/2}`, as for independent samples. So
does the distance of each token from the nonlinear process with the same noise. Means over 64 runs
have standard errors of 5 to 8 %, and exponents over this range of n have 0.015; the tolerance is
four standard errors. ``validation/propagation_of_chaos.py`` measures the same exponents up to 16384
tokens.

:Source: Survey, section 7, from n tokens to equation (8).
:Run time: 20 s, ``python examples/chaos.py``
:Look at: the slope of every line, which agrees with the dashed one.
"""

from pathlib import Path

from report import Row, run_alone

import meanfield as mf

CONFIG = Path(__file__).with_suffix(".toml")
TOLERANCE = 0.06


def run(out: Path) -> list[Row]:
    """Do the study, write chaos.nc and .png, compare."""
    study = mf.run_config(mf.read_config(CONFIG), out=out / f"{CONFIG.stem}.nc")
    study.plot().savefig(out / f"{CONFIG.stem}.png")
    names = [*study.data.attrs["distances"], "coupling"]
    exponents = [
        Row(f"exponent of n: {name}", study.rate(name).exponent, -0.5, TOLERANCE) for name in names
    ]
    ratio = study.data["W2"] / study.data["floor of W2"].mean("replica")
    largest = float(ratio.isel(n=-1, t=-1).mean())
    return [*exponents, Row("W2 over that of samples, n = 1024", largest, "", remark="shown")]


if __name__ == "__main__":
    run_alone(__doc__, run)
