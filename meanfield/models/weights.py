"""Attention weights k(x, y): how much a token at x attends to one at y.

Softmax        exp(beta <Qx, Ky>)             normalised: divided by Z(x) = sum_j m_j k(x, x_j)
Unnormalised   exp(beta <Qx, Ky>)             Z = 1
L2             exp(-beta |Qx - Ky|^2)         normalised
Sigmoid        1 / (1 + exp(-beta <Qx, Ky> - bias))      Z = 1
Sinkhorn       u(x) exp(beta <Qx, Ky>) w(y)   doubly stochastic
Linear         beta <Qx, Ky>                  Z = 1
"""

from typing import ClassVar

from ..core.forms import Natural, Positive
from ..core.kinds import Kind

__all__ = ["L2", "Linear", "Sigmoid", "Sinkhorn", "Softmax", "Unnormalised", "Weights"]


class Weights(Kind, family=True):
    """A kind of attention weights; `Attention` takes one.

    Attributes
    ----------
    bounded : bool
        Whether on the sphere they do not overflow, whatever beta is.
    """

    bounded: ClassVar[bool] = True


class Softmax(Weights):
    """k(x, y) = exp(beta <Qx, Ky>), divided by Z(x) = sum_j m_j k(x, x_j)."""


class Unnormalised(Weights):
    """k(x, y) = exp(beta <Qx, Ky>), Z = 1.

    Velocities are of the size of exp(beta <Qx, Ky>), which overflows above 709.
    """

    bounded = False


class L2(Weights):
    """k(x, y) = exp(-beta |Qx - Ky|^2), divided by Z(x) = sum_j m_j k(x, x_j).

    References
    ----------
    Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322 (beta = 1).
    """


class Sigmoid(Weights):
    """k(x, y) = 1 / (1 + exp(-beta <Qx, Ky> - bias)), Z = 1.

    Parameters
    ----------
    bias : float
        Any finite number; -log n makes the weights of n tokens, masses 1, sum to about one.
    """

    bias: float = 0.0


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


class Linear(Weights):
    """k(x, y) = beta <Qx, Ky>, which may be negative, Z = 1.

    Sums over n tokens take O(n) operations. In R^d tokens may reach infinity in finite time.

    References
    ----------
    Katharopoulos, Vyas, Pappas and Fleuret, "Transformers are RNNs", ICML 2020.
    """
