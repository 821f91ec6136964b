"""The part of propagation_of_chaos.py on S^2, and the study of w2_on_the_sphere.py."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from _chaos_figure import mean_of
from _chaos_report import Sampled

import meanfield as mf

__all__ = ["sphere", "transport"]

SPACE = mf.Sphere(16)
study = partial(mf.propagation_of_chaos, dt=0.1, executor=ThreadPoolExecutor(2))


def sphere(report: Sampled, quick: bool) -> tuple[mf.Study, mf.Study]:
    sizes, replicas = ([16, 32, 64], 16) if quick else ([64, 128, 256, 512], 96)
    return transport(report, sizes, replicas), smooth(report, quick)


def transport(report: Sampled, sizes: list[int], replicas: int) -> mf.Study:
    """W_2 in the uniform phase."""
    kappa, options = 1.5, {"rng": 5, "coupling": False, "distances": ["W2"]}
    model = mf.Transformer(mf.Kuramoto(), kappa)
    found = study(model, SPACE.uniform(), sizes, [6.0], replicas, **options)
    names = "W2", "floor of W2"
    scaled = {name: found.data[name].isel(t=0) ** 2 * found.data.n for name in names}
    for name, table in scaled.items():
        slope, error = line(np.log(sizes), *mean_of(table))
        report.agrees("n E W2^2 ~ log n, S^2", name, 1.0, slope, error)
    means, errors = mean_of(scaled["W2"] - scaled["floor of W2"])
    precision = errors**-2
    mean, error = precision @ means / precision.sum(), precision.sum() ** -0.5
    more = 3 / 2 * (1 / (1 - kappa / 3) - 1)
    claim = "n E W2^2, tokens less samples"
    report.agrees(claim, "S^2, kappa = 1.5", more, mean, error, beyond=0.1 * more)
    return found


def smooth(report: Sampled, quick: bool) -> mf.Study:
    """Distances of harmonics, and the coupling."""
    model, start = mf.Transformer(mf.USA(1.0), 1.5), SPACE.von_mises_fisher([0, 0, 1], 1.0)
    sizes = [32, 128, 512] if quick else [64, 256, 1024, 4096, 16384]
    found = study(model, start, sizes, [1.0], 32, rng=6, floor=False)
    for name in ("mmd", "H^-2", "coupling"):
        report.rate("rate in n, S^2", f"{name}, t = 1", found.rate(name), -0.5)
    return found


def line(x: np.ndarray, means: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """The slope of a weighted line, and its standard error."""
    weights = errors**-2
    centred = x - weights @ x / weights.sum()
    size = weights @ centred**2
    return float(weights @ (centred * means) / size), float(size**-0.5)
