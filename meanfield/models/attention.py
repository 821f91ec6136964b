"""Attention with matrices Q, K, V of several heads, which may change with time, and hardmax.

A number stands for that multiple of the identity. A matrix without an axis of heads, or a number,
is used by all heads. Axes before that of heads make an ensemble: every replica of tokens, or every
density, then has its own matrices.
"""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from ..core.annotations import ArrayIndex, Function, Parameters, Values
from ..core.cached import cached_property
from ..core.checks import common_shape, finite, finite_array, require, returned
from ..core.errors import MeanfieldError
from ..core.forms import NonNegative
from ..spaces.validity import SampledHarmonics
from .drift import Drift
from .parameters import (
    Bias,
    InverseTemperature,
    Matrix,
    Parameter,
    at,
    changing,
    in_every_layer,
    sizes_of,
)
from .pointwise import PROBED_POINTS, tangential
from .positional import PositionalEncoding
from .weights import AttentionHead, Softmax, Weights

if TYPE_CHECKING:
    from ..spaces import Space

CHUNK_ROWS = 512  # number of tokens whose weights are in memory together
EQUALITY = 1e-12
BIASES_REFUSED = (
    "attention with biases is known for tokens only; a density has no kernels for them."
)
ORDER_REFUSED = "attention with positions goes by the order of the tokens, which a density has not."
CAUSAL_REFUSED = "causal attention goes by the order of the tokens, which a density has not."
SAFE_SIZE = 1e100  # components up to this size cause no overflow
MATRICES = {"Q": "Hkd", "K": "Hkd", "V": "Hvd", "output": "Hdv"}  # axes in one member, H of heads
BIASES = {"Q_bias": "Hk", "K_bias": "Hk", "V_bias": "Hv", "output_bias": "d"}
AXES = MATRICES | BIASES


class _QKV(Drift):
    """A drift with queries, keys and values, all of whose parameters may change with time."""

    Q: Matrix = None
    K: Matrix = None
    V: Matrix = None

    def validate(self) -> None:
        sizes(self._array_parameters)
        super().validate()

    @property
    def _array_parameters(self) -> dict[str, Parameter]:
        """The parameters that may change with time, by name."""
        return {"Q": self.Q, "K": self.K, "V": self.V}

    @property
    def dimension(self) -> int | None:  # type: ignore[override]
        """The dimension d of the tokens; None if all matrices are multiples of the identity."""
        return sizes(self._array_parameters).get("d")

    @property
    def shape(self) -> tuple[int, ...]:
        """Ensemble shape: the axes of matrices before those of heads, broadcast with beta."""
        return common_shape("The ensembles of the parameters", self._ensembles)

    @property
    def _ensembles(self) -> dict[str, tuple[int, ...]]:
        """The ensemble shape of each parameter."""
        shapes = {
            n: value.shape
            for n, value in self._array_parameters.items()
            if n in AXES and value.shape
        }
        return {name: shape[: -len(AXES[name])] for name, shape in shapes.items()}

    @property
    def _has_members(self) -> bool:
        """Whether members of an ensemble differ in their matrices."""
        return any(self._ensembles.values())

    def broadcast(self, shape: tuple[int, ...]) -> Self:
        """The drift with parameters broadcast to the ensemble shape, as a flat ensemble."""
        return self._of_each(shape, lambda full, member_shape: full.reshape(-1, *member_shape))

    def member(self, index: ArrayIndex) -> Self:
        """The drift of one member of the ensemble; itself if it is a single drift.

        An array of indices of members gives the ensemble of these.
        """
        return self._of_each(self.shape, lambda full, member_shape: full[index])

    def _of_each(self, shape: tuple[int, ...], part: Function) -> Self:
        """The drift with part(values, member shape) in place of each ensemble parameter.

        The values are broadcast to `shape`; the member shape is that of a single member's values.
        """
        parts: Parameters = {}
        for name, values in self._array_parameters.items():
            ndim = len(values.shape or ())
            axes = min(ndim, len(AXES.get(name, "")))

            def of_values(array: np.ndarray, axes: int = axes) -> np.ndarray:
                member_shape = array.shape[array.ndim - axes :]
                return part(np.broadcast_to(array, (*shape, *member_shape)), member_shape)

            if ndim > axes:
                parts[name] = in_every_layer(values, of_values)
        return self.replace(**parts) if parts else self

    def at(self, t: float, d: int | None = None) -> dict[str, np.ndarray]:
        """The matrices, and beta where there is one, as arrays at time t, for points of R^d.

        A number () stands for that multiple of the identity. Raises ValueError or TypeError for
        invalid values of a callable, ValueError for matrices of another dimension than d, and
        MeanfieldError for a callable that was not stored in a file.
        """
        values = {name: at(value, t) for name, value in self._array_parameters.items()}
        own_d = sizes(values).get("d", d)
        if d not in (None, own_d):
            raise ValueError(f"{self!r} is for dimension {own_d}; got points of dimension {d}.")
        return values


class HeadMatrices(NamedTuple):
    """Matrices of one head on R^d; V is the product (output) V, (d, d)."""

    V: np.ndarray
    Q: np.ndarray
    K: np.ndarray
    beta: np.ndarray


class Attention(_QKV):
    """Attention of H heads among n tokens with masses m_j.

        A_i = sum_h O_h V_h sum_j m_j k_h(x_i, x_j) x_j / Z_h(x_i)

    with k_h the `weights` for Q_h, K_h and beta; the velocity is P_x A on the sphere and A in R^d.

    Parameters
    ----------
    Q, K : None, number, array of shape (k, d) or (H, k, d), PerLayer, or callable
        Queries and keys, of equal shapes. None is the identity, a number c is c times the identity.
        An array (R, H, k, d), or with more leading axes, makes an ensemble: each replica of tokens,
        or each density, has separate matrices of H heads. It broadcasts with beta, kappa and the
        state.
    V : the same, of shape (d, d) or (H, d, d); with `output`, (k, d) or (H, k, d)
        Values. A matrix without the axis of heads is used by all heads.
    beta : float, array, PerLayer, or callable
        Inverse temperature, any finite number. An array makes an ensemble.
    weights : Weights, optional
        `Softmax()`, the default, `Unnormalised()`, `L2()`, `Sigmoid(bias)`, `Sinkhorn()`,
        `Linear()`, or of a user-defined class.
    output : None, or like Q, of shape (d, k) or (H, d, k)
        O_h, which maps the values of a head back to R^d; by default O_h = 1.
    Q_bias, K_bias : None, array of shape (k,) or (H, k), PerLayer, or callable
        Added to queries Q x and keys K x. An array (R, H, k) makes an ensemble.
    V_bias : the same, of shape (d,) or (H, d); with `output`, (k,) or (H, k)
        Added to values V x.
    output_bias : the same, of shape (d,), or (R, d) for an ensemble
        Added once to A_i. With biases, attention moves tokens only, and has no potential.
    causal : bool
        Whether token i attends to the tokens j <= i only, so that x_1' = P O V x_1. Sums of
        unnormalised weights are not divided by the mass of these tokens, as under
        ``Transformer(drift, causal="sum")``; use its "mean" to divide them.
    positions : PositionalEncoding, optional
        Effect of positions: `Rotary(base)` rotates queries and keys, `ALiBi(slopes)` and
        `RelativeBias(values)` add terms to the logits beta <Qx, Ky>. For tokens only.

    Raises
    ------
    ValueError
        For matrices that do not fit together, nan, inf, `causal` with weights that do not allow it,
        or positions that do not fit the heads or the weights.
    TypeError
        For parameters that are not real numbers, weights that are no `Weights` object, or `causal`
        that is not a bool.

    Notes
    -----
    A callable is a function t -> array. Its values are checked at every evaluation: they must be
    finite and of constant shape. A callable makes no ensemble; a `PerLayer` does, with values of
    shape (layers, R, H, k, d).

    Tokens of mass 0 receive no attention, under all weights: they act as a padding mask. They move,
    and count in the numbering i of tokens.

    Tokens have length 1, but the input of a head of a network with RMSNorm has length sqrt(d):
    such a head has beta = d / sqrt(d_head) and V = sqrt(d) W_V.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794; Castin, Ablin, Carrillo and
    Peyre, arXiv:2501.18322 (kinds of weights); Karagodin, Polyanskiy and Rigollet,
    arXiv:2411.04990 (causal).
    """

    beta: InverseTemperature = 1.0
    _: KW_ONLY
    weights: Weights = Softmax()
    output: Matrix | None = None
    causal: bool = False
    Q_bias: Bias | None = None
    K_bias: Bias | None = None
    V_bias: Bias | None = None
    output_bias: Bias | None = None
    positions: PositionalEncoding | None = None

    def validate(self) -> None:
        if self.causal and self.why_not_causal:
            raise ValueError(self.why_not_causal)
        super().validate()
        if self.positions is not None:
            self._check_positions(self.positions)

    def _check_positions(self, positions: PositionalEncoding) -> None:
        """Raise ValueError if positions do not fit the weights, the number of heads, or Q and K."""
        kind = type(positions).__name__
        if positions.adds and self.weights.no_terms:
            raise ValueError(
                f"{type(self.weights).__name__} weights have no {kind}, whose terms are added to "
                f"logits: {self.weights.no_terms}"
            )
        count = sizes(self._array_parameters).get("H", 1)
        if positions.heads not in (None, count):
            raise ValueError(f"{kind} is for {positions.heads} heads; got matrices of {count}.")
        for shape in filter(None, (self._array_parameters[name].shape for name in "QK")):
            positions.check_size(shape[-2])

    @property
    def why_not_causal(self) -> str:  # type: ignore[override]
        reason = self.weights.not_causal
        return f"{type(self.weights).__name__} weights cannot be causal: {reason}" if reason else ""

    @property
    def _array_parameters(self) -> dict[str, Parameter]:
        names = "output", *BIASES
        matrices = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return {**super()._array_parameters, **matrices, "beta": self.beta}

    @property
    def biased(self) -> bool:
        """Whether queries, keys, values or the output have a bias."""
        return any(getattr(self, name) is not None for name in BIASES)

    @property
    def why_no_law(self) -> str:
        """The reason, masks aside, why heads move no densities or Gaussians; empty if they do."""
        if self.biased:
            return BIASES_REFUSED
        return "" if self.positions is None else ORDER_REFUSED

    def on(self, t: float, d: int) -> list[HeadMatrices]:
        """The heads at time t as matrices on R^d, also where parameters are numbers.

        Raises what `at` raises, and MeanfieldError for heads with biases or positions.
        """
        if self.why_no_law:
            raise MeanfieldError(f"{self!r} moves no laws: {self.why_no_law} Solve for Tokens.")
        matrices, on_space = self.at(t, d), []
        beta, unit = matrices.pop("beta"), np.eye(d)
        for head in heads(matrices):
            full = {name: matrix if matrix.ndim else matrix * unit for name, matrix in head.items()}
            V = full["output"] @ full["V"] if "output" in full else full["V"]
            on_space.append(HeadMatrices(V, full["Q"], full["K"], beta))
        return on_space

    def attend(self, head: AttentionHead) -> np.ndarray:
        """The output sum_j m_j k_ij v_j / Z_i of one head, an `engines.attention.Head`."""
        return self.weights.attend(head)

    @cached_property
    def harmonics(self) -> SampledHarmonics | None:
        """Harmonics of P_x k(x, y) V y as a function of x; None for closed forms.

        Exponentials of logits have harmonics without gaps, of which a truncation tells.
        """
        closed = type(self.weights).attend is not Weights.attend
        if closed or self.why_no_law or not self.constant:
            return None
        return SampledHarmonics(self._on_grid)

    def _on_grid(self, space: "Space") -> np.ndarray:
        """Components of P_x k(x, y) V y, (..., N), for x on a grid and a few points y."""
        x = space.points
        y = np.random.default_rng(0).choice(x, PROBED_POINTS, replace=False)
        values = []
        for V, Q, K, beta in self.on(0.0, x.shape[1]):
            q, k = x @ Q.T, y @ K.T
            squares = beta * (q**2).sum(axis=1), beta * (k**2).sum(axis=1)
            shaped = squares[0][None, :, None], squares[1][None, None]
            logits, name = (beta * q @ k.T)[None], f"{type(self.weights).__name__}.of_logits"
            weights = returned(name, self.weights.of_logits(logits, shaped), logits.shape)[0].T
            each = zip(weights, y @ V.T, strict=True)
            values.append(np.concatenate([tangential(space, np.outer(*one)) for one in each]))
        return np.concatenate([one / (np.abs(one).max() or 1.0) for one in values])

    @property
    def _ensembles(self) -> dict[str, tuple[int, ...]]:
        return super()._ensembles | {"beta": self.beta.shape or ()}  # a function has None at first

    @property
    def _has_members(self) -> bool:
        return any(super()._ensembles.values())

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        return {} if changing({"beta": self.beta}) else {"beta": self.beta}

    @property
    def parts_tokens(self) -> bool:  # type: ignore[override]
        """Whether tokens at the same point may separate, as their positions differ."""
        return self.causal or self.positions is not None

    def rate(self, t: float = 0.0) -> np.ndarray:
        """Bound |V| |output| (1 + |beta| |Q| |K|), with norms of matrices enlarged by biases."""
        matrices = self.at(t)
        beta = np.abs(matrices.pop("beta"))
        norms = {name: _norm(matrices[name]) for name in MATRICES if name in matrices}
        for name in "QKV":
            if f"{name}_bias" in matrices:
                norms[name] = norms[name] + _length(f"{name}_bias", matrices[f"{name}_bias"])
        rate = norms["V"] * norms.get("output", 1.0) * (1 + beta * norms["Q"] * norms["K"])
        added = matrices.get("output_bias")
        return rate if added is None else rate + _length("output_bias", added)

    def known_rate(self, on_sphere: bool) -> bool:
        return self.constant and on_sphere and self.weights.bounded

    def output_size(self, t: float) -> np.ndarray:
        matrices = self.at(t)
        size, added = _entries(matrices["V"]), matrices.get("output_bias")
        if "V_bias" in matrices:
            size = size + _length("V_bias", matrices["V_bias"])
        size = np.asarray(size * _entries(matrices.get("output", np.array(1.0))))
        return size if added is None else size + _length("output_bias", added)

    def interaction_energy(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """E = (1/2) sum_i m_i Phi(x_i), (...); nan if there is no `interaction_potential` Phi.

        It satisfies dE/dt = int |v|^2 dmu, on the sphere and in R^d.
        """
        if self._has_members:
            return self._by_member(x, masses, lambda one: one.interaction_energy)
        if not (self.constant and self.is_gradient(x.shape[-1])):
            return super().interaction_energy(x, masses)
        return 0.5 * (masses * self.interaction_potential(x, masses)).sum(axis=-1)

    def interaction_potential(
        self, x: np.ndarray, masses: np.ndarray, t: float = 0.0
    ) -> np.ndarray:
        """Phi(x_i) = c sum_j m_j W(<Qx_i, Kx_j>), (..., n), whose gradient is v.

        W is the `potential` of the weights, such as exp(beta t)/beta of Unnormalised(). Phi exists
        for one head with a symmetric A = K^T Q and V = c A; otherwise raises MeanfieldError.
        """
        if self._has_members:
            return self._by_member(x, masses, lambda one: partial(one.interaction_potential, t=t))
        self.check_potential(x.shape[-1], t)
        gradient = self.gradient_at(t, x.shape[-1])
        assert gradient is not None
        c, A, beta = gradient
        potential = np.empty(masses.shape)
        betas = np.broadcast_to(beta, x.shape[:-2])
        with np.errstate(over="ignore", invalid="ignore"):
            for r in np.ndindex(x.shape[:-2]):
                for first in range(0, x.shape[-2], CHUNK_ROWS):
                    rows = slice(first, first + CHUNK_ROWS)
                    logits = x[r][rows] @ A @ x[r].T
                    values = self.weights.potential(logits, betas[r])
                    potential[r][rows] = c * (values @ masses[r])
        return potential

    def _by_member(self, x: np.ndarray, masses: np.ndarray, of: Function) -> np.ndarray:
        """Results of of(member)(x, masses) for the tokens of each member, x (..., n, d)."""
        shape, flat = x.shape[:-2], self.broadcast(x.shape[:-2])
        results = [
            of(flat.member(number))(x[index], masses[index])
            for number, index in enumerate(np.ndindex(shape))
        ]
        return np.reshape(results, (*shape, *np.shape(results)[1:]))

    def is_gradient(self, d: int, t: float = 0.0) -> bool:
        if self._has_members:
            return all(self.member(index).is_gradient(d, t) for index in np.ndindex(self.shape))
        return self.gradient_at(t, d) is not None

    def why_no_potential(self, d: int, t: float = 0.0) -> str:
        if self.is_gradient(d, t):
            return ""
        return (
            "this Attention is the gradient of none. One is that of one head of Unnormalised() "
            "weights, or others with a `potential`, not causal, without biases and positions, "
            "K^T Q symmetric and V = c K^T Q"
        )

    def gradient_at(self, t: float, d: int) -> tuple[float, np.ndarray, np.ndarray] | None:
        """The c, A and beta such that v is the gradient of c int W(<Ax, y>) dmu; or None.

        For an ensemble of matrices it has to be called for each member.
        """
        if not self.weights.has_potential or self.causal or self.why_no_law:
            return None
        matrices = self.on(t, d)
        if len(matrices) > 1:
            return None
        V, Q, K, beta = matrices[0]
        A = K.T @ Q
        c = gradient_factor(V, A)
        return None if c is None else (c, A, beta)

    @property
    def why_no_density(self) -> str:  # type: ignore[override]
        if not self.causal:
            return self.why_no_law
        return CAUSAL_REFUSED

    @property
    def normalised(self) -> bool:  # type: ignore[override]
        return self.weights.normalised

    @property
    def undefined(self) -> str:  # type: ignore[override]
        by_logits = self.weights.normalised and type(self.weights).attend is Weights.attend
        return f"all {type(self.weights).__name__} weights of a token are 0" if by_logits else ""

    def why_not_finite(self, x: np.ndarray) -> str:
        if self.undefined and float(np.abs(x).max()) < SAFE_SIZE:
            name = type(self.weights).__name__
            return f"{self.undefined}, or not finite. Look at what {name}.of_logits returns."
        if self.weights.bounded:
            return super().why_not_finite(x)
        return (
            "weights exp(beta <Qx, Ky>) overflow on these tokens. Softmax() weights do not; or "
            "use a smaller beta."
        )


def gradient_factor(V: np.ndarray, A: np.ndarray) -> float | None:
    """The c with V = c A, if A is symmetric, so that velocities are gradients; else None."""
    c = (V * A).sum() / ((A * A).sum() or 1.0)
    return c if nearly_equal(A, A.T) and nearly_equal(V, c * A) else None


def nearly_equal(A: np.ndarray, B: np.ndarray) -> bool:
    """Whether two matrices are equal to 1e-12 of the largest entry."""
    return bool(np.abs(A - B).max() <= EQUALITY * np.abs(A).max())


class Hardmax(_QKV):
    """Hardmax attention: each token follows the other tokens with the largest logit.

        A_i = sum_h V_h (mean of the x_j, j != i, that maximise <Q_h x_i, K_h x_j>)

    The mean is weighted by masses, and includes all tokens within `ties` of the maximum. The
    velocity is P_x A on the sphere and A in R^d.

    Parameters
    ----------
    Q, K : None, number, array of shape (k, d) or (H, k, d), PerLayer, or callable
        Queries and keys, as in `Attention`.
    V : the same, of shape (d, d) or (H, d, d)
        Values.
    ties : float
        Largest difference from the maximum of <Q x_i, K x_j> that counts as a tie, >= 0, absolute.

    Raises
    ------
    ValueError
        For matrices that do not fit together, nan, inf, or a negative `ties`; evaluating asks
        for n >= 2 tokens.
    TypeError
        For parameters that are not real numbers.

    Notes
    -----
    The velocity jumps when another token becomes the maximiser. A step across such a jump has an
    error of the order of its length, for any scheme. Tokens of mass 0 do not attract others.

    References
    ----------
    Rigollet, arXiv:2512.01868, the footnote on hardmax.
    """

    parts_tokens = True  # none attends to itself
    causal = False
    positions = None
    normalised = True
    why_no_density = (
        "hardmax has no mean field. The maximum of <Qx, Ky> over all y that have mass is the same "
        "however little mass it is, so that velocities jump with the support of the law."
    )

    why_not_causal = "none attends to itself, and the first token has no other to attend to."

    ties: NonNegative = 1e-12

    def attend(self, head: AttentionHead) -> np.ndarray:
        """Means of the values of the maximisers, for one head, an `engines.attention.Head`."""
        n = head.masses.shape[1]
        if n < 2:
            raise ValueError(
                f"Hardmax expects n >= 2 tokens, since none attends to itself; got {n}."
            )
        return head.largest(self.ties)

    def rate(self, t: float = 0.0) -> np.ndarray:
        return _norm(self.at(t)["V"])


# Tokens of R^d in the frame of the values -------------------------------------------------------


def rescaled(x: Values, V: Values, t: float) -> np.ndarray:
    """z = e^(-t V) x, in which x' = V (weighted mean of the tokens) is

        z_i' = sum_j A_ij V (z_j - z_i),    A_ij the softmax weights.

    Parameters
    ----------
    x : array, shape (..., n, d)
        Tokens of R^d.
    V : number or array, shape (d, d)
        Values; a number c is c times the identity.
    t : float
        Time at which the tokens are x.

    Returns
    -------
    ndarray, shape (..., n, d)

    Raises
    ------
    ValueError
        If V is not a number or a square matrix of the tokens' dimension, or t is not finite.
    TypeError
        If x or V are not real numbers.

    Notes
    -----
    For V = 1 and Q^T K > 0 the convex hull of z never grows, and z tends to the vertices of a
    polytope, or to points on its faces.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2305.05465.
    """
    x, V = finite_array("x", x), finite_array("V", V)
    d = x.shape[-1] if x.ndim > 1 else None
    shapes, fits = (x.shape, V.shape), d is not None and V.shape in [(), (d, d)]
    require("x.shape, V.shape", shapes, "(..., n, d), () or (d, d)", fits)
    t = finite("t", t)
    from scipy.linalg import expm

    with np.errstate(over="ignore", invalid="ignore"):
        z = x * np.exp(-t * V) if V.ndim == 0 else x @ expm(-t * V).T
    require("t V", z, "so small that e^(-t V) x is finite", bool(np.isfinite(z).all()))
    return z


# Shapes of matrices ------------------------------------------------------------------------------


def sizes(matrices: Mapping[str, Values]) -> dict[str, int]:
    """The sizes of the axes H, k, v and d of matrices and biases, by name.

    A number stands for a multiple of the identity: k, or v, is then d, as v is without `output`.
    Raises ValueError unless the shapes fit together.
    """
    shapes = {name: matrices[name].shape for name in AXES if name in matrices}
    k = "d" if () in (shapes["Q"], shapes["K"]) else "k"
    v = "d" if () in (shapes["V"], shapes.get("output", ())) else "v"
    axes = {name: AXES[name].replace("k", k).replace("v", v) for name in shapes}
    advice, V = (
        "A number stands for a square matrix. Without output=, V must be square.",
        shapes["V"],
    )
    if V and "output" not in shapes and V[-2] != V[-1]:
        back = (*V[:-2], V[-1], V[-2])
        advice = f"V maps to {V[-2]} dimensions: give output= of shape {back}."
    return sizes_of(axes, shapes, advice)


def heads(matrices: Mapping[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Yield the matrices of each head, by name: arrays (..., rows, columns), or numbers ()."""
    for h in range(sizes(matrices).get("H", 1)):
        yield {
            name: m.take(h, axis=-len(AXES[name])) if _of_heads(name, m) else m
            for name, m in matrices.items()
        }


def _of_heads(name: str, array: np.ndarray) -> bool:
    """Whether a matrix or bias has an axis of heads."""
    return AXES[name][0] == "H" and array.ndim >= len(AXES[name])


def _length(name: str, bias: np.ndarray) -> np.ndarray:
    """The length of a bias, summed over heads."""
    lengths = np.linalg.norm(bias, axis=-1)
    return lengths.sum(axis=-1) if _of_heads(name, bias) else lengths


def _norm(matrix: np.ndarray) -> np.ndarray:
    """The largest singular value, summed over heads; the modulus of a number."""
    if matrix.ndim == 0:
        return np.abs(matrix)
    largest = np.linalg.svd(matrix, compute_uv=False)[..., 0]
    return largest.sum(axis=-1) if matrix.ndim > 2 else largest


def _entries(matrix: np.ndarray) -> np.ndarray:
    """The root of the sum of squares of the entries of all heads."""
    return np.sqrt((matrix**2).sum(axis=tuple(range(-min(matrix.ndim, 3), 0))))
