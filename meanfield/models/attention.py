"""Attention with any matrices Q, K, V, several heads, and weights that change with time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.checks import boolean
from ..core.errors import MeanfieldError
from . import parameters
from .contract import Drift
from .heads import check_shapes, dimension, norm
from .parameters import Parameter
from .weights import Softmax, Weights

__all__ = ["Attention"]


@dataclass(frozen=True, eq=False, repr=False)
class Attention(Drift):
    """Attention of H heads: how n tokens of masses m_j pull on each of them.

        A_i = sum_h O_h V_h sum_j m_j k_h(x_i, x_j) x_j / Z_h(x_i)

    with k_h the `weights` for Q_h, K_h and beta; the velocity is P_x A on the sphere and A in R^d.

    Parameters
    ----------
    Q, K : None, number, array of shape (k, d) or (H, k, d), PerLayer, or callable
        Queries and keys, of equal shapes. None is the identity, a number c is c times it.
    V : the same, of shape (d, d) or (H, d, d); with `output`, (k, d) or (H, k, d)
        Values. What has no axis of heads serves all heads.
    beta : float, array, PerLayer, or callable
        Inverse temperature, any finite number. An array makes an ensemble.
    weights : Weights, optional
        `Softmax()`, the default, `Unnormalised()`, `L2()`, `Sigmoid(bias)`, `Sinkhorn()`,
        `Linear()`, or of a class of one's own.
    output : None, or like Q, of shape (d, k) or (H, d, k)
        O_h, which takes the values of a head back to R^d; without it O_h = 1.
    causal : bool
        Whether token i attends to the tokens j <= i only, so that x_1' = P O V x_1.

    Raises
    ------
    ValueError
        For matrices that do not fit together, nan, inf, or `causal` with weights that cannot be.
    TypeError
        For parameters that are not real numbers, weights that are not an object of those, or
        `causal` that is not a bool.

    Notes
    -----
    A callable is a function t -> array. What it returns is checked whenever it is evaluated: it
    must be finite and of the shape it had before.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794; Castin, Ablin, Carrillo and
    Peyre, arXiv:2501.18322 (kinds of weights); Karagodin, Polyanskiy and Rigollet,
    arXiv:2411.04990 (causal).
    """

    Q: Parameter
    K: Parameter
    V: Parameter
    beta: Parameter
    weights: Weights
    output: Parameter | None
    causal: bool

    def __init__(
        self,
        Q=None,
        K=None,
        V=None,
        beta=1.0,
        *,
        weights: Weights | None = None,
        output=None,
        causal: bool = False,
    ):
        weights = Softmax() if weights is None else weights
        if not isinstance(weights, Weights):
            raise TypeError(
                "weights must be Softmax(), Unnormalised(), L2(), Sigmoid(bias), Sinkhorn(), "
                f"Linear(), or of a class of your own that is a Weights; got {weights!r}."
            )
        causal = boolean("causal", causal)
        if causal and weights.not_causal:
            raise ValueError(
                f"{type(weights).__name__} weights cannot be causal: {weights.not_causal}"
            )
        for name, value in {"Q": Q, "K": K, "V": V}.items():
            object.__setattr__(self, name, parameters.matrix(name, value))
        projection = None if output is None else parameters.matrix("output", output)
        object.__setattr__(self, "output", projection)
        object.__setattr__(self, "beta", parameters.inverse_temperature(beta))
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "causal", causal)
        check_shapes({name: value.shape for name, value in self._matrices.items()})

    @property
    def _matrices(self) -> dict[str, Parameter]:
        named: dict[str, Parameter] = {"Q": self.Q, "K": self.K, "V": self.V}
        return named if self.output is None else {**named, "output": self.output}

    @property
    def shape(self) -> tuple[int, ...]:
        return self.beta.shape or ()

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        return {"beta": self.beta} if isinstance(self.beta, np.ndarray) else {}

    @property
    def dimension(self) -> int | None:
        """The d of the tokens, or None if multiples of the identity leave it open."""
        return dimension({name: value.shape for name, value in self._matrices.items()})

    @property
    def constant(self) -> bool:
        """Whether no parameter depends on time."""
        values = (*self._matrices.values(), self.beta)
        return all(isinstance(value, np.ndarray) for value in values)

    def at(self, t: float) -> dict[str, np.ndarray]:
        """Q, K, V, beta, and output if there is one, as arrays at time t.

        A number () stands for that multiple of the identity. Raises ValueError or TypeError for
        what a callable returned, and MeanfieldError for one that a file did not hold.
        """
        matrices = parameters.values_at(self._matrices, t)
        check_shapes({name: value.shape for name, value in matrices.items()})
        return {**matrices, **parameters.values_at({"beta": self.beta}, t)}

    def attend(self, head) -> np.ndarray:
        """sum_j m_j k_ij v_j / Z_i of one head, an `engines.attention.Head`."""
        return self.weights.attend(head)

    def rate(self, t: float = 0.0) -> np.ndarray:
        matrices = self.at(t)
        norms = {name: norm(matrix) for name, matrix in matrices.items() if name != "beta"}
        response = 1 + np.abs(matrices["beta"]) * norms["Q"] * norms["K"]
        return norms["V"] * norms.get("output", 1.0) * response

    def breakpoints(self, start: float, end: float) -> np.ndarray:
        """Times strictly between `start` and `end` at which a parameter jumps, increasing."""
        return parameters.breakpoints({**self._matrices, "beta": self.beta}, start, end)

    def describe(self) -> dict[str, Any]:
        """The drift as plain data; arrays as their bytes in base64, callables by their names."""
        values = {**self._matrices, "beta": self.beta}
        return {
            "drift": type(self).__name__,
            **{name: parameters.description(value) for name, value in values.items()},
            "weights": self.weights.describe(),
            "causal": self.causal,
        }

    @classmethod
    def from_description(cls, data: Mapping[str, Any]) -> "Attention":
        """The drift that `describe` described, bit for bit.

        A callable comes back as one that raises MeanfieldError when it is evaluated. Raises
        MeanfieldError if the data do not describe attention.
        """
        if data.get("drift") != cls.__name__ or "weights" not in data:
            raise MeanfieldError(
                f"Expected what Attention.describe() returns; got drift = {data.get('drift')!r}."
            )
        names = [name for name in ("Q", "K", "V", "beta", "output") if name in data]
        values = {name: parameters.from_description(name, data[name]) for name in names}
        weights = Weights.from_description(data["weights"])
        return cls(**values, weights=weights, causal=data.get("causal", False))

    def __repr__(self) -> str:
        values = {**self._matrices, "beta": self.beta}
        listed = [f"{name}={parameters.shown(value)}" for name, value in values.items()]
        causal = ["causal=True"] if self.causal else []
        return f"Attention({', '.join([*listed, f'weights={self.weights!r}', *causal])})"
