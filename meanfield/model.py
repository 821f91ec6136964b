"""The model: a drift and the strength of the noise."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .checks import real_array
from .drifts import Drift, ZonalDrift
from .errors import MeanfieldError

__all__ = ["Transformer"]


@dataclass(frozen=True, eq=False)
class Transformer:
    """Mean-field attention with noise: d mu/dt = (1/kappa) Lap mu - div(mu v[mu]).

    The law of tokens that follow dX = v[mu_t](X) dt + sqrt(2/kappa) dW on the unit sphere.

    Parameters
    ----------
    drift : Drift
        `USA(beta)`, `SA(beta)`, `Kuramoto()` or `Interaction(potential)`.
    kappa : float or array
        Noise parameter, > 0: increments have variance 2 dt/kappa in each tangent direction.
        Infinity, the default, is the deterministic flow. An array makes an ensemble, by
        broadcasting with the drift's parameters.

    Raises
    ------
    TypeError
        If `drift` is not a drift.
    ValueError
        If kappa is not positive (nan included), or does not broadcast with the drift.

    References
    ----------
    Rigollet, arXiv:2512.01868, equations (8) and (9); the printed (9) has a wrong sign.
    """

    drift: Drift
    kappa: np.ndarray

    def __init__(self, drift: Drift, kappa=np.inf):
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
        object.__setattr__(self, "drift", drift)
        object.__setattr__(self, "kappa", array)
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
    def zonal(self) -> ZonalDrift:
        """The drift; raises MeanfieldError unless densities can be moved by it."""
        if not isinstance(self.drift, ZonalDrift):
            raise MeanfieldError(
                f"{type(self.drift).__name__} does not depend on inner products alone, so it has "
                "no harmonics to move a density by: solve for Tokens. Densities and "
                "Characteristics take USA, SA, Kuramoto and Interaction."
            )
        return self.drift

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """beta, where the drift has one, and kappa."""
        return {**self.drift.parameters, "kappa": self.kappa}

    def describe(self) -> dict[str, Any]:
        """The model as plain data, of which JSON has no inf: kappa = None means no noise."""
        kappa = self.kappa.astype(object)
        kappa[np.isinf(self.kappa)] = None
        return {**self.drift.describe(), "kappa": kappa.tolist()}

    def __repr__(self) -> str:
        return f"Transformer({self.drift!r}, kappa={self.kappa.tolist()})"
