"""The model: a drift, the strength of the noise, and what else a layer of a Transformer does."""

from collections.abc import Callable
from dataclasses import KW_ONLY
from typing import Annotated, Any, ClassVar

import numpy as np

from ..core.checks import common_shape
from ..core.errors import MeanfieldError
from ..core.forms import ARRAY, FUNCTION, Array, Either, Leaf, PositiveNumbers
from ..core.kinds import Kind, KindOf
from .common_noise import CommonNoise
from .drift import Drift
from .noise import Isotropic, Noise
from .normalisation import Normalisation, PostLN
from .parameters import GivenMatrix
from .zonal import ZonalDrift


def relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0)."""
    return np.maximum(x, 0)


ACTIVATIONS: dict[str, Callable] = {"relu": relu, "tanh": np.tanh}
ACTIVATION = Leaf('"relu" or "tanh", or in Python a function', FUNCTION.accept, {}, ACTIVATIONS)
Weight = Annotated[Any, Either((ARRAY, KindOf(GivenMatrix)))]


class FeedForward(Kind, family=True):
    """f(x) = outer activation(inner x + bias), token by token.

    Parameters
    ----------
    inner : array, (k, d), or number
        First matrix; a number is that multiple of the identity.
    outer : array, (d, k), or number
        Second matrix.
    bias : array, (k,), optional
        0 by default.
    activation : callable
        Of arrays; `relu` by default. In files "relu" or "tanh".

    Raises
    ------
    TypeError, ValueError
        If the shapes do not fit together, or entries are not finite.
    """

    default_kind: ClassVar[str | None] = "FeedForward"

    inner: Weight
    outer: Weight
    bias: Array | None = None
    activation: Annotated[Callable, ACTIVATION] = relu

    def validate(self) -> None:
        if self.inner.shape is None or self.outer.shape is None:  # not known yet
            return
        inner, outer = self.inner.shape, self.outer.shape[::-1]
        fit = {len(inner), len(outer)} <= {0, 2} and (inner == outer or not (inner and outer))
        shape = inner or outer
        fit = fit and (bool(inner and outer) or len(set(shape)) <= 1)  # a number is square
        width = shape[:1]
        bias: Any = np.zeros(width) if self.bias is None else self.bias
        if not fit or (bias.shape != width and (shape or bias.ndim > 1)):
            raise ValueError(
                "FeedForward expects inner (k, d), outer (d, k) and bias (k,), where a number "
                "stands for a square matrix; got "
                f"{self.inner.shape}, {self.outer.shape} and {bias.shape}."
            )
        self._set(bias=bias)

    @property
    def dimension(self) -> int | None:
        """d; None where numbers fit any."""
        of_rows = (
            *self.inner.shape[1:],
            *self.outer.shape[:1],
            *(() if self.bias is None else self.bias.shape),
        )
        return of_rows[0] if of_rows else None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return _times(self.outer, self.activation(_times(self.inner, x) + self.bias))


def _times(matrix: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Each row of x times a matrix, or a number."""
    return x @ matrix.T if matrix.ndim else matrix * x


class Transformer(Kind, family=True):
    """Mean-field attention with noise: d mu/dt = (1/kappa) Lap mu - div(mu v[mu]).

    The law of tokens that follow dX = v[mu_t](X) dt + sqrt(2/kappa) dW on the unit sphere.

    Parameters
    ----------
    drift : Drift
        `USA(beta)`, `SA(beta)`, `Kuramoto()` or `Interaction(potential)`; for tokens also
        `Attention(Q, K, V, beta)` and `Hardmax()`.
    kappa : float or array
        Noise parameter, > 0: increments have variance 2 dt/kappa in each tangent direction.
        Infinity, the default, is the deterministic flow. An array makes an ensemble, by
        broadcasting with the drift's parameters.
    normalisation : Normalisation
        Where the hidden states are put back on the sphere: `PostLN()`, the flow above, or
        `PreLN()`, `MixLN(tau)`, `PeriLN()`, `NGPT(alpha)`, `SqrtScaling()`. Others than PostLN
        are for tokens.
    noise : Noise
        Of unit strength: `Isotropic()`, or for tokens `Anisotropic(sigma)`,
        `MultiplicativeIto(scale)`, `MultiplicativeStratonovich(scale)`, with a finite kappa.
    common : CommonNoise, optional
        Noise that all tokens have in common, with a strength of its own, beside `noise`:
        `CommonRotations(kappa)`, `CommonTranslations(kappa)` or `CommonMatrix(kappa)`. A density is
        then random: the law of the tokens given the common noise.
    reaction : float
        alpha of d mu/dt = ... + alpha mu (Phi - int Phi dmu), Phi = W * mu: the masses of tokens
        then follow w_i' = alpha w_i (Phi(x_i) - sum_j w_j Phi(x_j)) (Wasserstein-Fisher-Rao).
    feedforward : callable, optional
        f of `FeedForward`, or any function of points (..., d): added to the output of attention,
        for tokens.

    Raises
    ------
    TypeError
        If one of them is of another kind.
    ValueError
        If kappa is not positive (nan included), or does not broadcast with the drift; for
        another noise than Isotropic where kappa is infinite.

    References
    ----------
    Rigollet, arXiv:2512.01868, equations (8) and (9); the printed (9) has a wrong sign.
    """

    default_kind: ClassVar[str | None] = "Transformer"

    drift: Drift
    kappa: PositiveNumbers = np.inf
    _: KW_ONLY
    normalisation: Normalisation = PostLN()
    noise: Noise = Isotropic()
    common: CommonNoise | None = None
    reaction: float = 0.0
    feedforward: FeedForward | Callable | None = None

    def validate(self) -> None:
        if not (self.noise.moves_densities or self.has_independent_noise):
            raise ValueError(
                f"{self.noise!r} has strength 1/kappa, and kappa = inf means no noise; give a "
                "finite kappa, or leave noise out."
            )
        self.shape  # noqa: B018  (raises if the two do not broadcast)

    @property
    def shape(self) -> tuple[int, ...]:
        """Ensemble shape: that of the drift's parameters broadcast with kappa; () if single."""
        shapes = {"drift": self.drift.shape, "kappa": self.kappa.shape}
        if self.common is not None:
            shapes["common"] = self.common.shape
        return common_shape(
            "The drift's parameters and kappa",
            shapes,
            "For a table of both, give beta a trailing axis: USA(beta[:, None]) with kappa of "
            "shape (n,).",
        )

    @property
    def noisy(self) -> bool:
        """Whether there is noise in some member, independent or common."""
        return self.has_independent_noise or self.common is not None

    @property
    def has_independent_noise(self) -> bool:
        """Whether there is noise in some member that each token has for itself."""
        return bool(np.isfinite(self.kappa).any())

    @property
    def zonal(self) -> ZonalDrift:
        """The drift, if densities can be moved by this model.

        Raises
        ------
        MeanfieldError
            If they cannot, with the reason.
        """
        drift = self.drift.as_zonal()
        if self.extras:
            raise MeanfieldError(
                "Densities and Characteristics have no "
                + ", no ".join(self.extras)
                + ": solve for Tokens, or leave these out of the model."
            )
        return drift

    @property
    def extras(self) -> list[str]:
        """The parts of the model that densities cannot have."""
        parts = {
            "normalisation": not self.normalisation.is_identity,
            "noise": not self.noise.moves_densities,
            "reaction": self.reaction != 0,
            "feedforward": self.feedforward is not None,
        }
        return [name for name, present in parts.items() if present]

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """beta, where the drift has one, kappa, and that of common noise as `common_kappa`."""
        common = {} if self.common is None else {"common_kappa": self.common.kappa}
        return {**self.drift.parameters, "kappa": self.kappa, **common}

    def __repr__(self) -> str:
        name, _, rest = super().__repr__().partition("drift=")
        return name + rest
