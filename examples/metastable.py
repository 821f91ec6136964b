r"""
First metastable state: the fastest Fourier mode decides the number of clusters
===============================================================================

Without noise, mode k of a small perturbation of the uniform density grows under USA at the rate
:math:`\lambda_k = k^2 I_k(\beta)/\beta`, largest at k = 3 for :math:`\beta = 5` and at k = 4 for
:math:`\beta = 7`. If the perturbation is so small that the fastest mode outgrows the others, k
clusters form, at the angles

.. math:: (2\pi j - \arg m_k)/k, \quad j = 1, \dots, k, \qquad m_k = \int e^{-ik\theta} d\mu_0.

The state counts as clustered from the first time at which the density exceeds 5 somewhere; clusters
are then its maxima. Later they narrow until no number of modes resolves them; the runs end before
that. The experiment is repeated for 30 seeds, and with perturbations of size 0.01, the size of the
fluctuations of 20 000 random tokens. In that case the fastest mode does not always decide.

:Source: Survey, section 5; Bruno, Pasqualotto and Agazzi, Emergence of meta-stable clustering in
    mean-field transformer models, ICLR 2025.
:Run time: 12 s, ``python examples/metastable.py``
:Look at: modes that follow the dashed lines of the linear theory over eight decades, and clusters
    at the angles of the orange ones.
"""

from pathlib import Path

import numpy as np
from metastable_figure import figure
from report import Row, run_alone
from scipy.special import iv

import meanfield as mf

CONFIGS = {
    5: Path(__file__).with_name("metastable_beta5.toml"),
    7: Path(__file__).with_name("metastable_beta7.toml"),
}
PEAK = 5.0
SEEDS = range(30)
SMALL, TOKENS = 1e-9, 1e-2  # sqrt(2/n) for n = 20 000 tokens
FINE = mf.Circle(degree=2048)


def growth(beta: float) -> np.ndarray:
    """lambda_k for k = 1, ..., 12."""
    k = np.arange(1, 13)
    return k**2 * iv(k, beta) / beta


def fastest(beta: float) -> int:
    """The mode that grows fastest."""
    return int(growth(beta).argmax()) + 1


def peaks(density: mf.Density) -> np.ndarray:
    """Angles of the maxima, on a grid of spacing 0.001."""
    values = density.resample(FINE.degree).values
    highest = (values > np.roll(values, 1)) & (values >= np.roll(values, -1))
    return FINE.angles[highest]


def clustered(run: mf.Solution) -> int:
    """Index of the first output time at which the density exceeds PEAK.

    Raises
    ------
    ValueError
        If the run ends before.
    """
    high = [state.values.max() > PEAK for state in run]
    if True not in high:
        raise ValueError(f"The density stays below {PEAK:g} until t = {run.t[-1]:g}; raise t_end.")
    return high.index(True)


def predicted_angles(initial: mf.Density, k: int) -> np.ndarray:
    """Where mode k of the initial density puts the clusters."""
    return (2 * np.pi * np.arange(k) - np.angle(initial.coefficients[k])) / k % (2 * np.pi)


def displacement(clusters: mf.Density, initial: mf.Density, k: int) -> float:
    """Largest distance of a predicted angle to the nearest peak, as a share of the spacing."""
    difference = predicted_angles(initial, k)[:, None] - peaks(clusters)
    distance = np.abs((difference + np.pi) % (2 * np.pi) - np.pi)
    return float(distance.min(axis=1).max() * k / (2 * np.pi))


def rate(run: mf.Solution, k: int) -> float:
    """d log |m_k| / dt while |m_k| grows from twice its initial size to 1e-4."""
    size = np.abs([state.moment(k) for state in run])
    linear = (size > 2 * size[0]) & (size < 1e-4)
    return float(np.polyfit(run.t[linear], np.log(size[linear]), 1)[0])


def first_clusters(beta: float, amplitude: float, seed: int) -> tuple[mf.Density, mf.Density]:
    """A perturbation of this size and seed, and the density when it is clustered."""

    def height(t: float, density: mf.Density) -> float:
        return float(density.values.max()) - PEAK

    height.terminal = True
    model = mf.Transformer(mf.USA(beta))
    initial = mf.Circle(degree=16).perturbed(amplitude, rng=seed)
    t_end = 2 * np.log(1 / amplitude) / growth(beta).max()
    run = mf.solve(model, initial, (0, t_end), t_eval=[0, t_end], events=height, progress=False)
    return initial, run.final


def survey(beta: float, amplitude: float) -> tuple[int, float]:
    """Of all seeds: how many give the predicted number of clusters, and their median place."""
    k = fastest(beta)
    pairs = [first_clusters(beta, amplitude, seed) for seed in SEEDS]
    good = [(initial, final) for initial, final in pairs if len(peaks(final)) == k]
    places = [displacement(final, initial, k) for initial, final in good]
    return len(good), float(np.median(places))


def run(out: Path) -> list[Row]:
    """Solve both configurations, write metastable_beta*.nc and metastable.png, compare."""
    runs = {
        beta: mf.run_config(mf.read_config(config), out=out / f"{config.stem}.nc")
        for beta, config in CONFIGS.items()
    }
    figure(runs, growth, clustered, predicted_angles).savefig(out / "metastable.png")
    return [row for beta, solution in runs.items() for row in _rows(beta, solution)]


def _rows(beta: int, solution: mf.Solution) -> list[Row]:
    k, at, n = fastest(beta), f"beta = {beta}", len(SEEDS)
    clusters = solution[clustered(solution)]
    place = displacement(clusters, solution[0], k)
    (small, median), (tokens, _) = survey(beta, SMALL), survey(beta, TOKENS)
    return [
        Row(f"{at}: clusters", len(peaks(clusters)), k, 0.0),
        Row(f"{at}: growth rate of mode {k}", rate(solution, k), growth(beta)[k - 1], 1e-5, True),
        Row(f"{at}: displacement of the clusters / spacing", place, 0.0, 0.1),
        Row(f"{at}: the same, median of {n} seeds", median, 0.0, 0.1),
        Row(f"{at}: seeds with {k} clusters, size {SMALL:g}", small, n, 0.0),
        Row(f"{at}: seeds with {k} clusters, size {TOKENS:g}", tokens, f"of {n}"),
        Row(f"{at}: end of the run", float(solution.t[-1]), "", remark=_end(solution)),
    ]


def _end(solution: mf.Solution) -> str:
    resolved = "resolved" if solution.resolved else "NOT RESOLVED"
    return f"{resolved}, degree {solution.stats['highest_degree']}"


if __name__ == "__main__":
    run_alone(__doc__, run)
