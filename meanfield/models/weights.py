"""Attention weights k(x, y): how much a token at x attends to one at y.

Softmax        exp(beta <Qx, Ky>)             normalised: divided by Z(x) = sum_j m_j k(x, x_j)
Unnormalised   exp(beta <Qx, Ky>)             Z = 1
L2             exp(-beta |Qx - Ky|^2)         normalised
Sigmoid        1 / (1 + exp(-beta <Qx, Ky> - bias))      Z = 1
Sinkhorn       u(x) exp(beta <Qx, Ky>) w(y)   doubly stochastic
Linear         beta <Qx, Ky>                  Z = 1
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..core.checks import finite, positive, whole_number
from ..core.errors import MeanfieldError

__all__ = ["L2", "Linear", "Sigmoid", "Sinkhorn", "Softmax", "Unnormalised", "Weights"]


class Weights:
    """A kind of attention weights; `Attention` takes one.

    Attributes
    ----------
    bounded : bool
        Whether on the sphere they do not overflow, whatever beta is.
    """

    bounded = True

    def describe(self) -> dict[str, Any]:
        """The weights as plain data: their name and numbers."""
        return {"weights": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]

    @staticmethod
    def from_description(data: Mapping[str, Any]) -> "Weights":
        """The weights that `describe` described; raises MeanfieldError for others."""
        kinds = {kind.__name__: kind for kind in KINDS}
        numbers = dict(data)
        name = numbers.pop("weights", None)
        if name not in kinds:
            raise MeanfieldError(f"Expected weights among {', '.join(kinds)}; got {name!r}.")
        return kinds[name](**numbers)


@dataclass(frozen=True)
class Softmax(Weights):
    """k(x, y) = exp(beta <Qx, Ky>), divided by Z(x) = sum_j m_j k(x, x_j)."""


@dataclass(frozen=True)
class Unnormalised(Weights):
    """k(x, y) = exp(beta <Qx, Ky>), Z = 1.

    Velocities are of the size of exp(beta <Qx, Ky>), which overflows above 709.
    """

    bounded = False


@dataclass(frozen=True)
class L2(Weights):
    """k(x, y) = exp(-beta |Qx - Ky|^2), divided by Z(x) = sum_j m_j k(x, x_j).

    References
    ----------
    Castin, Ablin, Carrillo and Peyre, arXiv:2501.18322 (beta = 1).
    """


@dataclass(frozen=True)
class Sigmoid(Weights):
    """k(x, y) = 1 / (1 + exp(-beta <Qx, Ky> - bias)), Z = 1.

    Parameters
    ----------
    bias : float
        Any finite number; -log n makes the weights of n tokens, masses 1, sum to about one.
    """

    bias: float = 0.0

    def __post_init__(self):
        finite(bias=self.bias)


@dataclass(frozen=True)
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

    tolerance: float = 1e-12
    most_iterations: int = 10_000

    def __post_init__(self):
        positive(tolerance=self.tolerance)
        whole_number("Sinkhorn expects most_iterations", "most_iterations", self.most_iterations)


@dataclass(frozen=True)
class Linear(Weights):
    """k(x, y) = beta <Qx, Ky>, which may be negative, Z = 1.

    Sums over n tokens take O(n) operations. In R^d tokens may reach infinity in finite time.

    References
    ----------
    Katharopoulos, Vyas, Pappas and Fleuret, "Transformers are RNNs", ICML 2020.
    """


KINDS = (Softmax, Unnormalised, L2, Sigmoid, Sinkhorn, Linear)
