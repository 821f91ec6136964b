"""Hardmax attention, the limit of infinite inverse temperature."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.checks import finite
from ..core.errors import MeanfieldError
from . import parameters
from .contract import Drift
from .heads import check_shapes, dimension, norm
from .parameters import Parameter

__all__ = ["Hardmax"]


@dataclass(frozen=True, eq=False, repr=False)
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

    Q: Parameter
    K: Parameter
    V: Parameter
    ties: float

    parts_tokens = True  # none attends to itself

    def __init__(self, Q=None, K=None, V=None, ties: float = 1e-12):
        finite(ties=ties)
        if ties < 0:
            raise ValueError(f"Hardmax needs ties >= 0; got ties = {ties!r}.")
        for name, value in {"Q": Q, "K": K, "V": V}.items():
            object.__setattr__(self, name, parameters.matrix(name, value))
        object.__setattr__(self, "ties", float(ties))
        check_shapes({name: value.shape for name, value in self._matrices.items()})

    @property
    def _matrices(self) -> dict[str, Parameter]:
        return {"Q": self.Q, "K": self.K, "V": self.V}

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

    def describe(self) -> dict[str, Any]:
        """The drift as plain data; arrays as their bytes in base64, callables by their names."""
        described = {n: parameters.description(value) for n, value in self._matrices.items()}
        return {"drift": type(self).__name__, **described, "ties": self.ties}

    @classmethod
    def from_description(cls, data: Mapping[str, Any]) -> "Hardmax":
        """The drift that `describe` described, bit for bit; see `Attention.from_description`."""
        if data.get("drift") != cls.__name__:
            raise MeanfieldError(
                f"Expected what Hardmax.describe() returns; got drift = {data.get('drift')!r}."
            )
        values = {n: parameters.from_description(n, data[n]) for n in "QKV" if n in data}
        return cls(**values, ties=data.get("ties", 1e-12))

    def __repr__(self) -> str:
        listed = [f"{name}={parameters.shown(value)}" for name, value in self._matrices.items()]
        return f"Hardmax({', '.join(listed)}, ties={self.ties!r})"
