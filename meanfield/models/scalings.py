"""Inverse temperatures that grow with the number of tokens, for long contexts."""

import numpy as np

from ..core.annotations import Values
from ..core.checks import common_shape, whole_number
from ..core.forms import NUMBERS, Natural, Numbers
from .parameters import GivenNumber, StateSizes


def logarithmic(n: Values, gamma: Values = 1.0, offset: Values = 0.0) -> np.ndarray:
    """beta_n = gamma log n + offset, the scaling of logits by log n ("scalable softmax").

    Of n tokens with inner products rho a token weighs e^beta and all others together
    n e^(beta rho): they balance at gamma = 1/(1 - rho).

    Parameters
    ----------
    n : float or array
        Numbers of tokens, >= 2.
    gamma, offset : float or array

    References
    ----------
    Chen, Lin, Polyanskiy and Rigollet, arXiv:2510.05554.
    """
    n, gamma, offset = _together(n=n, gamma=gamma, offset=offset)
    return gamma * np.log(n) + offset


def power(n: Values, d: int, factor: Values = 1.0) -> np.ndarray:
    """beta_n = factor n^(2/(d - 1)), the scale of independent uniform keys on S^(d-1).

    The nearest of them is at the distance n^(-1/(d - 1)) from a query; so is the next.

    Parameters
    ----------
    n : float or array
        Numbers of tokens, >= 2.
    d : int
        >= 2.
    factor : float or array

    References
    ----------
    arXiv:2605.08505.
    """
    d = whole_number("d", d, least=2)
    n, factor = _together(n=n, factor=factor)
    with np.errstate(over="ignore"):
        beta = factor * n ** (2 / (d - 1))
    if not np.isfinite(beta).all():
        raise ValueError(
            f"factor n^(2/(d - 1)) exceeds 1.8e308, the largest number, for n = {n.max():g} and "
            f"d = {d}."
        )
    return beta


def _together(**numbers: Values) -> list[np.ndarray]:
    """Arrays of finite numbers, of shapes that broadcast; n >= 2."""
    arrays = {name: NUMBERS.check(name, values) for name, values in numbers.items()}
    if not (arrays["n"] >= 2).all():
        raise ValueError(f"A scaling needs n >= 2 tokens; got n = {arrays['n'].tolist()}.")
    common_shape("The arrays of a scaling", {name: array.shape for name, array in arrays.items()})
    return list(arrays.values())


class Logarithmic(GivenNumber):
    """beta_n = gamma log n + offset, by the number of tokens n.

    Parameters
    ----------
    gamma : float or array
        The factor of log n.
    offset : float or array
        What is added to it.
    """

    gamma: Numbers = 1.0
    offset: Numbers = 0.0

    def resolve(self, sizes: StateSizes) -> np.ndarray:
        return logarithmic(_tokens_of(sizes), self.gamma, self.offset)


class Power(GivenNumber):
    """beta_n = factor n^(2/(d - 1)), by the number of tokens n.

    Parameters
    ----------
    d : int
        Dimension of the keys; by default that of the state.
    factor : float or array
        The factor of the power.
    """

    d: Natural | None = None
    factor: Numbers = 1.0

    def resolve(self, sizes: StateSizes) -> np.ndarray:
        d = self.d or sizes.d
        if d is None:
            raise ValueError("Power needs d, the dimension of the keys: this state has none.")
        return power(_tokens_of(sizes), d, self.factor)


def _tokens_of(sizes: StateSizes) -> np.ndarray:
    if sizes.n is None:
        raise ValueError("A scaling of beta needs a number of tokens; this state has none.")
    return sizes.n
