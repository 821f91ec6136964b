"""Claim: tokens under attention in R^d follow the Gaussian they are drawn from.

Under softmax, L2, Sinkhorn and linear weights, and two heads of the first two with output
projections, up to t = 0.5:

1. The nodes of a Gauss-Hermite rule of 20 x 20 points have mean and covariance of the law.
2. Clouds of n random tokens have them on average, up to a bias of c / n, as the weights are not
   linear in the cloud. To remove it, each half of a cloud is also moved by itself: with
   m the mean or covariance, 2 m(cloud) - (m(half) + m(other half)) / 2 has no such term, and the
   same sampling error to leading order. Replicas are independent: their mean is within Student's
   bound of the probability of 4.5 standard deviations, with as many degrees of freedom as there
   are (a factor of 4.8 for 100 clouds of 128 tokens), for all entries.
3. Quasi-random tokens are closer by a factor of 4 at least.

    python validation/gaussian_tokens.py [--quick]    # 19 s, 7 s quick
"""

import sys

import numpy as np
from _gaussian_laws import COV, KINDS, MEAN, K, Q, V, apart, final
from _report import Report, command_line, successful
from scipy.stats import norm, t
from scipy.stats.qmc import MultivariateNormalQMC

import meanfield as mf

END, N = 0.5, 128
MISSED = norm.sf(4.5)
TURNED = np.array([[0.4, -0.5], [0.6, 0.3]])


def drifts() -> dict[str, mf.Attention]:
    """One head of each kind, and two heads."""
    output = np.stack([np.eye(2), np.diag([0.5, -0.7])])
    two = {
        "Q": np.stack([Q, TURNED]),
        "K": np.stack([K, np.eye(2)]),
        "V": np.stack([-0.8 * V, TURNED.T]),
    }
    one = {name: mf.Attention(Q, K, -0.8 * V, 0.6, weights=kind) for name, kind in KINDS.items()}
    return one | {
        f"{name}, two heads": mf.Attention(**two, beta=0.4, weights=KINDS[name], output=output)
        for name in ("softmax", "L2")
    }


def hermite_tokens(law: mf.Gaussian, nodes: int) -> mf.Tokens:
    """A product rule for a law in the plane."""
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), axis=-1).reshape(-1, 2)
    masses = np.outer(weights, weights).ravel()
    return mf.Tokens(law.mean + grid @ law.root.T, masses / masses.sum(), on_sphere=False)


def moved_moments(drift: mf.Attention, tokens: mf.Tokens, rtol: float = 1e-7):
    """Mean and covariance of tokens at the end; by default far below their sampling error."""
    model = mf.Transformer(drift)
    end = successful(mf.solve(model, tokens, (0, END), t_eval=[END], rtol=rtol)).final
    weighted = end.masses[..., None] * end.x
    mean = weighted.sum(axis=-2)
    return mean, weighted.swapaxes(-1, -2) @ end.x - mean[..., :, None] * mean[..., None, :]


def entries(drift: mf.Attention, clouds: np.ndarray) -> np.ndarray:
    """Those of mean and covariance of clouds (replicas, n, 2) at the end, (replicas, 5)."""
    mean, cov = moved_moments(drift, mf.Tokens(clouds, on_sphere=False))
    return np.concatenate([mean, cov[:, *np.triu_indices(2)]], axis=1)


def without_bias(drift: mf.Attention, clouds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Entries without the term c / n, and those of whole clouds."""
    n, whole = clouds.shape[1], entries(drift, clouds)
    halves = entries(drift, clouds[:, : n // 2]) + entries(drift, clouds[:, n // 2 :])
    return 2 * whole - halves / 2, whole


def check(report: Report, name: str, replicas: int, rng) -> None:
    """One drift: nodes, random and quasi-random tokens."""
    drift, start = drifts()[name], mf.Gaussian(MEAN, COV)
    law = final(drift, END)
    error = apart(law, *moved_moments(drift, hermite_tokens(start, 20), 1e-11))
    report.compare("Gauss-Hermite", name, predicted=0, measured=error, tolerance=1e-11)
    expected = np.concatenate([law.mean, law.cov[np.triu_indices(2)]])
    clouds = start.sample(replicas * N, rng=rng).x.reshape(replicas, N, 2)
    found, whole = without_bias(drift, clouds)
    factor = t.isf(MISSED, replicas - 1)
    allowed = factor * found.std(axis=0, ddof=1) / np.sqrt(replicas)
    miss = (np.abs(found.mean(axis=0) - expected) / allowed).max()
    report.compare(
        f"{replicas} x {N} random",
        f"{name}, error / bound",
        predicted=0,
        measured=miss,
        tolerance=1,
        random=True,
    )
    sobol = MultivariateNormalQMC(MEAN, COV, rng=np.random.default_rng(5)).random(N)
    closer = apart(law, *moved_moments(drift, mf.Tokens(sobol, on_sphere=False)))
    usual = np.abs(whole - expected).max(axis=1).mean()
    report.compare(
        f"{N} quasi-random",
        f"{name}, error / random's",
        predicted=0,
        measured=closer / usual,
        tolerance=0.25,
    )


def main() -> int:
    quick = command_line(__doc__, "fewer replicas").quick
    report, rng = Report(["what", "case"]), np.random.default_rng(12)
    for name in drifts():
        check(report, name, 12 if quick else 100, rng)
    return report.verdict()


if __name__ == "__main__":
    sys.exit(main())
