"""Attention weights k(x, y): how much a token at x attends to one at y.

Softmax        exp(beta <Qx, Ky>)             normalised: divided by Z(x) = sum_j m_j k(x, x_j)
Unnormalised   exp(beta <Qx, Ky>)             Z = 1
L2             exp(-beta |Qx - Ky|^2)         normalised
Sigmoid        1 / (1 + exp(-beta <Qx, Ky> - bias))      Z = 1
Sinkhorn       u(x) exp(beta <Qx, Ky>) w(y)   doubly stochastic
Linear         beta <Qx, Ky>                  Z = 1
"""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from ..core.annotations import AnyObject
from ..core.checks import returned
from ..core.errors import MeanfieldError
from ..core.forms import Natural, Positive
from ..core.kinds import Kind

AttentionHead = AnyObject  # an `engines.attention.Head`, or one with its methods
Squares = tuple[np.ndarray, np.ndarray]


class Weights(Kind, family=True):
    """A kind of attention weights k(x, y); `Attention` takes one.

    A user-defined kind has the method `of_logits`.

    Attributes
    ----------
    normalised : bool
        Whether they are divided by Z(x) = sum_j m_j k(x, x_j).
    bounded : bool
        Whether on the sphere the weights cannot overflow, for any beta.
    not_causal : str
        The reason why the weights cannot be restricted to tokens j <= i; empty if they can.
    no_terms : str
        The reason why terms, as of `ALiBi`, cannot be added to the logits; empty if they can.
    has_potential : bool
        Whether Z = 1 and `potential` is known: attention may then increase an energy.

    Examples
    --------
    Weights relu(beta <Qx, Ky>)^p, normalised:

    >>> class Rectified(Weights):
    ...     power: float = 2.0
    ...
    ...     def of_logits(self, logits, squares):
    ...         return np.maximum(logits, 0) ** self.power
    """

    normalised: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    not_causal: ClassVar[str] = ""
    no_terms: ClassVar[str] = ""
    has_potential: ClassVar[bool] = False

    @abstractmethod
    def of_logits(self, logits: np.ndarray, squares: Squares) -> np.ndarray:
        """The weights k(x_i, x_j) of a block of pairs.

        Parameters
        ----------
        logits : ndarray, shape (R, rows, columns)
            beta <Qx_i, Kx_j>, and what positions add. The array may be overwritten with the
            weights and returned.
        squares : two ndarrays, shapes (R, rows, 1) and (R, 1, columns)
            beta |Qx_i|^2 and beta |Kx_j|^2.

        Returns
        -------
        ndarray, shape (R, rows, columns)
            Weights, finite.
        """

    def potential(self, products: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """The potential W at inner products <Qx, Ky>; k is its derivative."""
        raise MeanfieldError(
            f"{type(self).__name__} needs a method potential(products, beta) for the energy of "
            "these weights, and has none. Define it."
        )

    def attend(self, head: AttentionHead) -> np.ndarray:
        """Outputs sum_j m_j k_ij v_j, divided by Z_i if `normalised`, of shape (R, n, size of v).

        A kind overrides this for faster or more accurate sums than those of `of_logits`. `head` is
        an `engines.attention.Head`, or an object with the same methods for densities or tangents.
        """

        def weights(logits: np.ndarray, squares: Squares) -> np.ndarray:
            shape, k = logits.shape, self.of_logits(logits, squares)
            return returned(f"{type(self).__name__}.of_logits", k, shape)

        weights.__name__ = f"{type(self).__name__}.of_logits"
        return head.weighted(weights, normalised=self.normalised)


class Softmax(Weights):
    """Softmax weights of `Attention`: k(x, y) = exp(beta <Qx, Ky>) / Z(x).

    The normalisation is Z(x) = sum_j m_j k(x, x_j). The drift with these weights alone is `SA`.
    """

    def of_logits(self, logits: np.ndarray, squares: Squares) -> np.ndarray:
        return np.exp(logits)

    def attend(self, head: AttentionHead) -> np.ndarray:
        return head.exponential(normalised=True)


class Unnormalised(Weights):
    """k(x, y) = exp(beta <Qx, Ky>), Z = 1.

    Velocities are of the size of exp(beta <Qx, Ky>), which overflows above 709.
    """

    has_potential = True
    bounded = normalised = False

    def of_logits(self, logits: np.ndarray, squares: Squares) -> np.ndarray:
        return np.exp(logits)

    def potential(self, products: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """exp(beta t) / beta; t at beta = 0."""
        return np.exp(beta * products) / beta if beta else products

    def attend(self, head: AttentionHead) -> np.ndarray:
        return head.exponential(normalised=False)


class L2(Weights):
    """k(x, y) = exp(-beta |Qx - Ky|^2), divided by Z(x) = sum_j m_j k(x, x_j).

    References
    ----------
    Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322 (beta = 1).
    """

    def of_logits(self, logits: np.ndarray, squares: Squares) -> np.ndarray:
        return np.exp(2 * logits - squares[0] - squares[1])

    def attend(self, head: AttentionHead) -> np.ndarray:
        return head.by_distance().exponential(normalised=True)


class Sigmoid(Weights):
    """k(x, y) = 1 / (1 + exp(-beta <Qx, Ky> - bias)), Z = 1.

    Parameters
    ----------
    bias : float
        Any finite number; -log n makes the weights of n tokens, masses 1, sum to about one.
    """

    bias: float = 0.0

    normalised = False

    def of_logits(self, logits: np.ndarray, squares: Squares) -> np.ndarray:
        from scipy.special import expit

        if self.bias:
            logits += self.bias
        return expit(logits, out=logits)


class Sinkhorn(Weights):
    """k(x, y) = u(x) exp(beta <Qx, Ky>) w(y) with both marginals equal to one.

        sum_j m_j k(x_i, x_j) = 1 for all i,    sum_i m_i k(x_i, x_j) = 1 for all j

    by Sinkhorn's iteration in logarithms, ended by Newton's method for up to 512 tokens.

    Parameters
    ----------
    tolerance : float
        Largest error of a marginal at which the iteration ends, > 0. The rows are exact to
        rounding, so it is the columns' that decides.
    most_iterations : int
        After as many, evaluating raises MeanfieldError. Beyond 512 tokens narrow kernels
        (beta > 20, say) and clusters that hardly see each other may need more.

    References
    ----------
    Sander, Ablin, Blondel and Peyre, "Sinkformers", AISTATS 2022.
    """

    tolerance: Positive = 1e-12
    most_iterations: Natural = 10_000

    not_causal = (
        "no weights on j <= i have both marginals one but those of each token on itself. "
        "Use Softmax() or L2()."
    )
    no_terms = "their balance is known for beta <Qx, Ky> alone. Use Softmax(), L2() or Sigmoid()."

    def of_logits(self, logits: np.ndarray, squares: Squares) -> np.ndarray:
        """exp(beta <Qx, Ky>), without the factors u(x) w(y)."""
        return np.exp(logits)

    def attend(self, head: AttentionHead) -> np.ndarray:
        balanced = head.doubly_stochastic(self.tolerance, self.most_iterations)
        return balanced.exponential(normalised=True)


class Linear(Weights):
    """k(x, y) = beta <Qx, Ky>, which may be negative, Z = 1.

    Sums over n tokens take O(n) operations. In R^d tokens may reach infinity in finite time.

    References
    ----------
    Katharopoulos, Vyas, Pappas and Fleuret, "Transformers are RNNs", ICML 2020.
    """

    normalised = False
    no_terms = "sums in O(n) operations have no logits. Use Softmax(), L2() or Sigmoid()."

    def of_logits(self, logits: np.ndarray, squares: Squares) -> np.ndarray:
        return logits

    def attend(self, head: AttentionHead) -> np.ndarray:
        return head.linear()
