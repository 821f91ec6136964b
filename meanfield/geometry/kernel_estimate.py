"""Angles read from data, and the bandwidth of their kernel density estimate."""

from pathlib import Path

import numpy as np

from ..errors import StorageError
from .circle_points import empirical_coefficients

__all__ = ["checked_angles", "plug_in_bandwidth", "read_sample"]

STAGES = 7


def read_sample(path: Path) -> np.ndarray:
    """The array in a .npy file, or the numbers in a .csv file (one header line is allowed)."""
    if not path.is_file():
        raise StorageError(f"The sample file {path} does not exist (looked in {Path.cwd()}).")
    if path.suffix not in (".npy", ".csv"):
        raise StorageError(f"A sample is read from .npy or .csv; got {path}.")
    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        header = 0 if _is_numeric(first) else 1
        return np.loadtxt(path, delimiter=",", skiprows=header)
    except (ValueError, OSError) as error:
        raise StorageError(f"{path} could not be read as numbers: {error}") from error


def _is_numeric(line: str) -> bool:
    try:
        [float(entry) for entry in line.split(",")]
    except ValueError:
        return False
    return True


def checked_angles(sample) -> np.ndarray:
    """Angles (n,) in radians of angles (n,) or unit vectors (n, 2).

    Raises
    ------
    ValueError
        For another shape, n < 2, values that are not finite or vectors not of unit length.
    """
    sample = np.asarray(sample, dtype=float)
    if sample.ndim not in (1, 2) or (sample.ndim == 2 and sample.shape[1] != 2) or len(sample) < 2:
        raise ValueError(
            "A sample on the circle is at least 2 angles (n,) in radians or unit vectors (n, 2); "
            f"got shape {sample.shape}. Tokens of higher dimension: see principal_circle."
        )
    if not np.isfinite(sample).all():
        raise ValueError(
            f"The sample has {np.count_nonzero(~np.isfinite(sample))} values that are not finite."
        )
    if sample.ndim == 1:
        return sample
    error = np.abs(np.linalg.norm(sample, axis=1) - 1).max()
    if error > 1e-6:
        raise ValueError(
            f"The sample's vectors must have length 1; the worst is off by {error:.2g}. "
            "Divide them by their norms first if only their directions matter."
        )
    return np.arctan2(sample[:, 1], sample[:, 0])


def plug_in_bandwidth(angles: np.ndarray) -> float:
    """Bandwidth, in radians, of the wrapped normal kernel: the improved Sheather-Jones rule.

    The kernel of variance t = bandwidth^2 minimises the mean integrated squared error of the
    density p with respect to d theta at

        t = (2 n sqrt(pi) |p''|^2)^(-2/5),

    and |p''|^2 is estimated from the data with a kernel whose own bandwidth comes from
    |p'''|^2, and so on for 7 stages; t is the fixed point. On the circle the norms are exact
    sums, |p^(j)|^2 = (1/pi) sum_k k^(2j) e^{-k^2 t} |m_k|^2.

    Returns
    -------
    float
        Between 0 and pi. Where there is no fixed point below pi, as for a sample that looks
        uniform, the estimate pi smooths away all modes: the uniform density.

    References
    ----------
    Botev, Grotowski and Kroese, Annals of Statistics 38 (2010), Algorithm 1, from the line to
    the circle.
    """
    from scipy.optimize import brentq

    n, modes = angles.size, 2048
    k = np.arange(1, modes + 1)
    power = np.abs(empirical_coefficients(angles, modes)[1:]) ** 2

    def squared_norm(derivative: int, t: float) -> float:
        return np.sum(np.exp(2 * derivative * np.log(k) - k**2 * t) * power) / np.pi

    def improved(t: float) -> float:
        norm = squared_norm(STAGES, t)
        for stage in range(STAGES - 1, 1, -1):
            odd = np.prod(np.arange(1, 2 * stage, 2)) / np.sqrt(2 * np.pi)
            constant = (1 + 0.5 ** (stage + 0.5)) / 3
            norm = squared_norm(stage, (2 * constant * odd / (n * norm)) ** (2 / (3 + 2 * stage)))
        return (2 * n * np.sqrt(np.pi) * norm) ** (-0.4)

    grid = np.geomspace((4 / modes) ** 2, np.pi**2, 400)
    excess = np.array([t - improved(t) for t in grid])
    crossings = np.flatnonzero((excess[:-1] < 0) & (excess[1:] >= 0))
    if crossings.size == 0:
        return float(np.pi)
    first = crossings[0]
    root = brentq(lambda t: t - improved(t), grid[first], grid[first + 1], xtol=1e-14)
    return float(np.sqrt(root))
