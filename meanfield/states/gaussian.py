"""The normal law N(a, Sigma) on R^d."""

from typing import Annotated

import numpy as np

from ..core.checks import check_memory, finite_array, generator, real, require, whole_number
from .contract import State, StatePart
from .points import Seed
from .tokens import Tokens

COVARIANCE_TOLERANCE = 1e-12
MOST_AXIS_NODES = 1000  # along an axis
NEGLIGIBLE_VARIANCE = 1e-6  # share of the largest variance; smaller variances count as 0


class Gaussian(State):
    """The normal law of R^d with a mean and a covariance, which may be singular.

    `solve` moves it under `Attention` with softmax, L2, Sinkhorn or linear weights, affine fields
    and feed-forward maps, and independent isotropic or matrix noise.

    Parameters
    ----------
    mean : array, shape (d,)
        The mean.
    cov : array, shape (d, d)
        Symmetric and positive semidefinite, to 1e-12 of its largest entry times d.

    Attributes
    ----------
    mean, cov : ndarray
    root : ndarray, (d, d)
        A root of the covariance, root @ root.T = cov; of a given covariance the symmetric root. In
        states of a run it resolves small variances, which are lost to rounding in `cov`.

    Raises
    ------
    TypeError, ValueError
        For other shapes, numbers that are not finite, and matrices that are not covariances.
    """

    mean: Annotated[np.ndarray, StatePart("mean of the Gaussian", ("component",))]
    covariance: Annotated[
        np.ndarray, StatePart("covariance of the Gaussian", ("component", "other"))
    ]
    root: Annotated[
        np.ndarray, StatePart("root L of the covariance L L^T", ("component", "column"))
    ]

    def __init__(self, mean: np.ndarray, cov: np.ndarray):
        """Check mean (d,) and cov (d, d); compute the symmetric root of cov."""
        mean, cov = finite_array("The mean", mean), finite_array("The covariance", cov)
        shapes = mean.shape, cov.shape
        fits = mean.ndim == 1 and mean.size and cov.shape == 2 * mean.shape
        require("mean.shape, cov.shape", shapes, "(d,), (d, d)", fits)
        self._set(mean=mean, covariance=cov, root=_symmetric_root(cov))

    @classmethod
    def of_root(cls, mean: np.ndarray, root: np.ndarray) -> "Gaussian":
        """The law of a run, from its mean and the root of its covariance; nothing is checked."""
        root = root.copy()
        return cls.computed(mean, root @ root.T, root)

    @property
    def cov(self) -> np.ndarray:
        """The covariance, (d, d)."""
        return self.covariance

    @property
    def size_in_words(self) -> str:
        return f"a Gaussian in R^{self.dimension}"

    def __repr__(self) -> str:
        return f"Gaussian(d={self.dimension}, trace of the covariance {np.trace(self.cov):.6g})"

    @property
    def dimension(self) -> int:
        """The dimension d of the space."""
        return self.mean.size

    @property
    def variances(self) -> np.ndarray:
        """The eigenvalues of the covariance, (d,), decreasing: squared singular values of the root.

        For a given covariance they are accurate to 1e-16 of the largest. For states of a run, small
        ones are accurate even below 1e-30 of the largest, where those of `cov` are noise.
        """
        return np.linalg.svd(self.root, compute_uv=False) ** 2

    @property
    def trace_one(self) -> np.ndarray:
        """The covariance divided by its trace, (d, d); nan if the trace is 0."""
        trace = np.trace(self.cov)
        return self.cov / (trace if trace > 0 else np.nan)

    def rank(self, negligible: float = NEGLIGIBLE_VARIANCE) -> int:
        """The number of `variances` that exceed `negligible` times the largest."""
        expected = "a share, 0 <= negligible < 1"
        negligible = real("negligible", negligible, expected, lambda share: 0 <= share < 1)
        variances = self.variances
        return int((variances > negligible * variances[0]).sum())

    def sample(self, n: int, *, rng: Seed) -> Tokens:
        """n independent tokens of R^d.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator or seed
        """
        n = whole_number("n", n)
        check_memory(f"n = {n} tokens", (3 * n, self.dimension), "n")
        normal = generator(rng).standard_normal((n, self.dimension))
        return Tokens(self.mean + normal @ self.root.T, on_sphere=False)

    def quadrature(self, nodes: int) -> Tokens:
        """Weighted tokens of R^d: nodes of a product of Gauss-Hermite rules along the axes.

        They integrate polynomials of degree 2 `nodes` - 1 exactly, and functions as e^(<b, x>) with
        errors that vanish faster than exponentially. `solve` moves them with the flow, under any
        drift of R^d: they give reference moments of laws that do not stay normal. The difference
        from `quadrature(2 * nodes)` estimates the error.

        Parameters
        ----------
        nodes : int
            Number along each axis of positive variance, nodes^d in all for d such axes. In higher
            dimension use `sample`.
        """
        from scipy.special import roots_hermitenorm

        nodes = whole_number("nodes", nodes, least=2, most=MOST_AXIS_NODES)
        axes, sizes, _ = np.linalg.svd(self.root)
        axes = (axes * sizes)[:, sizes > COVARIANCE_TOLERANCE * sizes[0]]
        count, dimension = nodes ** axes.shape[1], self.dimension
        check_memory(f"nodes = {nodes} along each axis", (6 * count, dimension), "nodes")
        z, weights = roots_hermitenorm(nodes)
        node_indices = np.indices((nodes,) * axes.shape[1]).reshape(-1, count)
        masses = (weights / weights.sum())[node_indices].prod(axis=0)
        return Tokens(self.mean + (axes @ z[node_indices]).T, masses, on_sphere=False)


def _symmetric_root(cov: np.ndarray) -> np.ndarray:
    """The symmetric root of a covariance, (d, d); ValueError for others, and infinite traces."""
    largest = float(np.abs(cov).max()) or 1.0
    scaled = cov / largest  # sums of its entries may overflow
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    skew, tolerance = np.abs(scaled - scaled.T).max(), COVARIANCE_TOLERANCE * len(cov)
    got = f"{skew * largest:.2g} from its transpose, with the eigenvalue {values[0] * largest:.3g}"
    fits = skew <= tolerance and values[0] >= -tolerance
    require("cov", cov, f"symmetric and positive semidefinite; it is off by {got}", fits)
    fits = largest <= np.finfo(float).max / max(values.sum(), 1.0)
    require("The trace of cov", np.inf, "a trace below 1.8e308", fits)
    roots = np.sqrt(np.maximum(values, 0.0))  # negative ones are rounding, as was checked
    return np.sqrt(largest) * (vectors * roots) @ vectors.T
