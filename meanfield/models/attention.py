"""Attention with any matrices Q, K, V, several heads, and weights that change with time."""

from dataclasses import KW_ONLY

import numpy as np

from . import parameters
from .drift import Drift
from .heads import check_shapes, dimension, norm
from .parameters import InverseTemperature, Matrix, Parameter
from .weights import Softmax, Unnormalised, Weights

__all__ = ["Attention"]

ROWS = 512  # tokens whose weights are in memory at a time
EQUAL = 1e-12


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

    Q: Matrix = None
    K: Matrix = None
    V: Matrix = None
    beta: InverseTemperature = 1.0
    _: KW_ONLY
    weights: Weights = Softmax()
    output: Matrix | None = None
    causal: bool = False

    def validate(self) -> None:
        if self.causal and self.weights.not_causal:
            raise ValueError(
                f"{type(self.weights).__name__} weights cannot be causal: {self.weights.not_causal}"
            )
        check_shapes({name: value.shape for name, value in self._matrices.items()})

    @property
    def _matrices(self) -> dict[str, Parameter]:
        named: dict[str, Parameter] = {"Q": self.Q, "K": self.K, "V": self.V}
        return named if self.output is None else {**named, "output": self.output}

    def attend(self, head) -> np.ndarray:
        """sum_j m_j k_ij v_j / Z_i of one head, an `engines.attention.Head`."""
        return self.weights.attend(head)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.beta.shape or ()  # None while a function has not been evaluated

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        return {"beta": self.beta} if isinstance(self.beta, np.ndarray) else {}

    @property
    def dimension(self) -> int | None:
        """The d of the tokens, or None if multiples of the identity leave it open."""
        return dimension({name: value.shape for name, value in self._matrices.items()})

    @property
    def parts_tokens(self) -> bool:  # type: ignore[override]
        """Whether tokens at the same place may part: under causal attention each has its past."""
        return self.causal

    @property
    def constant(self) -> bool:  # type: ignore[override]
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

    def rate(self, t: float = 0.0) -> np.ndarray:
        matrices = self.at(t)
        norms = {name: norm(matrix) for name, matrix in matrices.items() if name != "beta"}
        response = 1 + np.abs(matrices["beta"]) * norms["Q"] * norms["K"]
        return norms["V"] * norms.get("output", 1.0) * response

    def known_rate(self, on_sphere: bool) -> bool:
        return self.constant and on_sphere and self.weights.bounded

    def output_size(self, t: float) -> float:
        matrices = self.at(t)
        return float(np.prod([np.linalg.norm(matrices.get(name, 1.0)) for name in ("V", "output")]))

    def interaction_energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """E = (c/(2 beta)) sum_ij m_i m_j exp(beta <Qx_i, Kx_j>), where it is increased.

        That is under Unnormalised() weights of one head with constant parameters, a symmetric
        A = K^T Q, and V = c A: then dE/dt = int |v|^2 dmu, on the sphere and in R^d. At beta = 0
        <Qx_i, Kx_j> stands for the exponential over beta. Elsewhere nan.
        """
        slope = self._gradient(x.shape[-1])
        if slope is None:
            return super().interaction_energy(x, masses)
        c, A, beta = slope
        energy = np.zeros(x.shape[:-2])
        betas = np.broadcast_to(beta, energy.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            for r in np.ndindex(energy.shape):
                for first in range(0, x.shape[-2], ROWS):
                    rows = slice(first, first + ROWS)
                    logits = x[r][rows] @ A @ x[r].T
                    values = np.exp(betas[r] * logits) / betas[r] if betas[r] else logits
                    energy[r] += c / 2 * (masses[r][rows] @ values @ masses[r])
        return energy

    def _gradient(self, d: int):
        """c, A and beta for which v is the gradient of the energy; None if it is of none."""
        if not (isinstance(self.weights, Unnormalised) and self.constant) or self.causal:
            return None
        matrices = self.at(0.0)
        beta, one = matrices.pop("beta"), np.eye(d)
        if any(m.ndim == 3 and len(m) > 1 for m in matrices.values()):
            return None
        full = {n: m.reshape(m.shape[-2:]) if m.ndim else m * one for n, m in matrices.items()}
        A, V = full["K"].T @ full["Q"], full.get("output", one) @ full["V"]
        c = (V * A).sum() / ((A * A).sum() or 1.0)
        if not (_alike(A, A.T) and _alike(V, c * A)):
            return None
        return c, A, beta

    def why_not_finite(self, largest: float) -> str:
        if self.weights.bounded:
            return super().why_not_finite(largest)
        return (
            "weights exp(beta <Qx, Ky>) overflow on these tokens. Softmax() weights do not; or "
            "use a smaller beta."
        )

    def breakpoints(self, start: float, end: float) -> np.ndarray:
        """Times strictly between `start` and `end` at which a parameter jumps, increasing."""
        return parameters.breakpoints({**self._matrices, "beta": self.beta}, start, end)


def _alike(A: np.ndarray, B: np.ndarray) -> bool:
    return bool(np.abs(A - B).max() <= EQUAL * np.abs(A).max())
