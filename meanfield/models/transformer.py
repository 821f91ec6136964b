"""The model: a drift, the strength of the noise, and what else a layer of a Transformer does."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from ..core.checks import real_array
from ..core.errors import MeanfieldError
from . import Drift, ZonalDrift
from .noise import Isotropic, Noise
from .normalisation import Normalisation, PostLN

__all__ = ["Transformer"]


@dataclass(frozen=True, eq=False)
class Transformer:
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
        Of unit strength: `Isotropic()`, or for tokens `CommonNoise()`, `Anisotropic(sigma)`,
        `MultiplicativeIto(scale)`, `MultiplicativeStratonovich(scale)`, with a finite kappa.
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

    drift: Drift
    kappa: np.ndarray
    normalisation: Normalisation
    noise: Noise
    reaction: float
    feedforward: Callable | None

    def __init__(
        self,
        drift: Drift,
        kappa=np.inf,
        *,
        normalisation: Normalisation | None = None,
        noise: Noise | None = None,
        reaction: float = 0.0,
        feedforward: Callable | None = None,
    ):
        if not isinstance(drift, Drift):
            raise TypeError(
                "Transformer expects a drift such as USA(beta=4.0), SA(beta=4.0) or Kuramoto(); "
                f"got {drift!r}."
            )
        array = real_array("kappa", kappa)
        if array.size == 0 or not (array > 0).all():
            raise ValueError(
                f"kappa must be > 0 (kappa = inf means no noise); got kappa = {kappa!r}."
            )
        array.setflags(write=False)
        normalisation = PostLN() if normalisation is None else normalisation
        noise = Isotropic() if noise is None else noise
        _check_parts(normalisation, noise, reaction, feedforward)
        if not (isinstance(noise, Isotropic) or np.isfinite(array).any()):
            raise ValueError(
                f"{noise!r} has strength 1/kappa, and kappa = inf means no noise; give a finite "
                "kappa, or leave noise out."
            )
        for name, value in {
            "drift": drift,
            "kappa": array,
            "normalisation": normalisation,
            "noise": noise,
            "reaction": float(reaction),
            "feedforward": feedforward,
        }.items():
            object.__setattr__(self, name, value)
        self.shape  # noqa: B018  (raises if the two do not broadcast)

    @property
    def shape(self) -> tuple[int, ...]:
        """Ensemble shape: that of the drift's parameters broadcast with kappa; () if single."""
        try:
            return np.broadcast_shapes(self.drift.shape, self.kappa.shape)
        except ValueError:
            raise ValueError(
                f"The drift's parameters have shape {self.drift.shape} and kappa has shape "
                f"{self.kappa.shape}: these do not broadcast. For a table of both, give beta "
                "a trailing axis: USA(beta[:, None]) with kappa of shape (n,)."
            ) from None

    @property
    def noisy(self) -> bool:
        """Whether there is noise in some member."""
        return bool(np.isfinite(self.kappa).any())

    @property
    def zonal(self) -> ZonalDrift:
        """The drift, if densities can be moved by this model.

        Raises
        ------
        MeanfieldError
            If they cannot, with the reason.
        """
        if not isinstance(self.drift, ZonalDrift):
            raise MeanfieldError(
                f"{type(self.drift).__name__} does not depend on inner products alone, so it has "
                "no harmonics to move a density by: solve for Tokens. Densities and "
                "Characteristics take USA, SA, Kuramoto and Interaction."
            )
        if self.extras:
            raise MeanfieldError(
                "Densities and Characteristics have no "
                + ", no ".join(self.extras)
                + ": solve for Tokens, or leave these out of the model."
            )
        return self.drift

    @property
    def extras(self) -> dict[str, Any]:
        """What the model has beside a drift and isotropic noise, as plain data."""
        found: dict[str, Any] = {}
        if not isinstance(self.normalisation, PostLN):
            found |= self.normalisation.describe()
        if not isinstance(self.noise, Isotropic):
            found["noise"] = self.noise.describe()
        if self.reaction:
            found["reaction"] = self.reaction
        if self.feedforward is not None:
            found["feedforward"] = _described(self.feedforward)
        return found

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """beta, where the drift has one, and kappa."""
        return {**self.drift.parameters, "kappa": self.kappa}

    def describe(self) -> dict[str, Any]:
        """The model as plain data, of which JSON has no inf: kappa = None means no noise."""
        kappa = self.kappa.astype(object)
        kappa[np.isinf(self.kappa)] = None
        return {**self.drift.describe(), "kappa": kappa.tolist(), **self.extras}

    def __repr__(self) -> str:
        parts = [repr(self.drift), f"kappa={self.kappa.tolist()}"]
        if not isinstance(self.normalisation, PostLN):
            parts.append(f"normalisation={self.normalisation!r}")
        if not isinstance(self.noise, Isotropic):
            parts.append(f"noise={self.noise!r}")
        if self.reaction:
            parts.append(f"reaction={self.reaction:g}")
        if self.feedforward is not None:
            parts.append(f"feedforward={self.feedforward!r}")
        return f"Transformer({', '.join(parts)})"


def _check_parts(normalisation, noise, reaction, feedforward) -> None:
    if not isinstance(normalisation, Normalisation):
        raise TypeError(f"normalisation must be PostLN(), PreLN(), ...; got {normalisation!r}.")
    if not isinstance(noise, Noise):
        raise TypeError(f"noise must be Isotropic(), CommonNoise(), ...; got {noise!r}.")
    number = isinstance(reaction, Real) and not isinstance(reaction, bool)
    if not number or not np.isfinite(reaction):
        raise ValueError(f"reaction must be a finite number; got reaction = {reaction!r}.")
    if feedforward is not None and not callable(feedforward):
        raise TypeError(f"feedforward is a function of points (..., d); got {feedforward!r}.")


def _described(feedforward: Callable) -> dict[str, Any]:
    if hasattr(feedforward, "describe"):
        return feedforward.describe()
    return {"callable": getattr(feedforward, "__qualname__", repr(feedforward))}
