"""Hardmax attention, the limit of infinite inverse temperature."""

import numpy as np

from ..core.forms import NonNegative
from . import parameters
from .drift import Drift
from .heads import check_shapes, dimension, norm
from .parameters import Matrix, Parameter

__all__ = ["Hardmax"]


class Hardmax(Drift):
    """Each token follows the others that it attends to most, not itself.

        A_i = sum_h V_h (mean of the x_j, j != i, that maximise <Q_h x_i, K_h x_j>)

    weighted by their masses; those count that come within `ties` of the maximum. The velocity is
    P_x A on the sphere and A in R^d.

    Parameters
    ----------
    Q, K : None, number, array of shape (k, d) or (H, k, d), PerLayer, or callable
        Queries and keys, as in `Attention`.
    V : the same, of shape (d, d) or (H, d, d)
        Values.
    ties : float
        How far below the maximum of <Q x_i, K x_j> a tie may lie, >= 0, absolute.

    Raises
    ------
    ValueError
        For matrices that do not fit together, nan, inf, or a negative `ties`; evaluating asks
        for n >= 2 tokens.
    TypeError
        For parameters that are not real numbers.

    Notes
    -----
    The velocity jumps where another token becomes the maximiser: a step across such a time has an
    error of its own length, whatever the order of the scheme. Tokens without mass attract none.

    References
    ----------
    Rigollet, arXiv:2512.01868, the footnote on hardmax.
    """

    parts_tokens = True  # none attends to itself
    causal = False

    Q: Matrix = None
    K: Matrix = None
    V: Matrix = None
    ties: NonNegative = 1e-12

    def validate(self) -> None:
        check_shapes({name: value.shape for name, value in self._matrices.items()})

    @property
    def _matrices(self) -> dict[str, Parameter]:
        return {"Q": self.Q, "K": self.K, "V": self.V}

    def attend(self, head) -> np.ndarray:
        """Means of the values of the maximisers, for one head, an `engines.attention.Head`."""
        n = head.masses.shape[1]
        if n < 2:
            raise ValueError(
                f"Hardmax expects n >= 2 tokens, since none attends to itself; got {n}."
            )
        return head.largest(self.ties)

    @property
    def dimension(self) -> int | None:
        """The d of the tokens, or None if multiples of the identity leave it open."""
        return dimension({name: value.shape for name, value in self._matrices.items()})

    @property
    def constant(self) -> bool:  # type: ignore[override]
        """Whether no parameter depends on time."""
        return all(isinstance(value, np.ndarray) for value in self._matrices.values())

    def at(self, t: float) -> dict[str, np.ndarray]:
        """Q, K and V as arrays at time t; a number () is that multiple of the identity."""
        matrices = parameters.values_at(self._matrices, t)
        check_shapes({name: value.shape for name, value in matrices.items()})
        return matrices

    def rate(self, t: float = 0.0) -> np.ndarray:
        return np.array(norm(self.at(t)["V"]))

    def breakpoints(self, start: float, end: float) -> np.ndarray:
        """Times strictly between `start` and `end` at which a matrix jumps, increasing.

        Those at which the maximiser changes depend on the tokens, and are not among them.
        """
        return parameters.breakpoints(self._matrices, start, end)
