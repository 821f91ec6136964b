"""Motion of equiangular tokens: one logit and one radius for any n and d.

The output of attention, A_i = (1/n) sum_j k(<x_i, x_j>) x_j / Z with k = W', lies in the plane of
x_i and of the sum of the tokens:

    <x_i, A_i> = (k(1) + (n - 1) rho k(rho))/(n Z)
    |P A_i| = (k(rho)/Z) ((1 - 1/n) (1 - rho) (1 + (n - 1) rho)/n)^(1/2)

A normalisation changes it to u_i = f A_i, f > 0. The logit z = log((1 + (n - 1) rho)/(1 - rho)) has

    z' = 2 f k(rho)/(Z s)      r' = f <x_i, A_i> and s = r where radii grow, else r' = 0 and s = 1

and after a layer of depth h, exactly, z + 2 log(1 + h f k(rho)/(Z s + h f (k(1) - k(rho))/n)).
"""

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator

from ..core.annotations import JsonTable, Observations
from ..core.errors import MeanfieldError
from ..models.transformer import Transformer
from ..states import Equiangular
from ..steppers import DormandPrince, Layers, Splitting
from .motion import UNUSED_RADII
from .observables import declare
from .replicas import ReplicaMotion

declare("rho", r"inner product $\rho$")
declare("gap", r"$1 - \rho$", log_from=100.0, noise=0.0)
declare("radius", r"radius $r$", log_from=100.0)

COORDINATE_ROUNDING = 8 * np.finfo(float).eps


class Pull(NamedTuple):
    """Terms of the normalised output of attention at a token; arrays of shape (members,)."""

    rate: np.ndarray  # f k(rho)/Z
    excess: np.ndarray  # f (k(1) - k(rho))/(n Z)
    along: np.ndarray  # f <x_i, A_i>
    across: np.ndarray  # f |P A_i|


class EquiangularMotion(ReplicaMotion, moves=Equiangular):
    """Velocities of equiangular tokens, and layers.

    Coordinates (members, 1, 2) are the logit and the logarithm of the radius.

    Parameters
    ----------
    model : Transformer
        A zonal drift with any normalisation, without noise.
    state : Equiangular
        A state to whose ensemble shape that of the model broadcasts.

    Raises
    ------
    MeanfieldError
        For a model under which tokens do not stay equiangular, or radii that it does not use.

    References
    ----------
    Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, theorem 6.8; Karagodin, Ge,
    Polyanskiy and Rigollet, arXiv:2510.22026, for the normalisations.
    """

    example = "Equiangular(n, rho)"
    replica_arrays = ("_n",)
    smallest_count = 0
    follows = frozenset({"normalisation"})
    schemes = (DormandPrince, Layers)
    refusals: ClassVar = {
        "engine": "Equiangular tokens need no sums; leave out engine = {value!r}.",
        "rng": "Equiangular tokens move without noise; leave out rng.",
    }

    def setup(self) -> None:
        """Store the number of tokens and the drift of every member."""
        self._n = self.like.n.ravel()
        self._drift = self.model.drift.as_zonal().broadcast(self.like.shape)

    @classmethod
    def prepared(cls, model: Transformer, state: Equiangular) -> Equiangular:
        """The state, broadcast to the ensemble shape of the model; ValueError if tokens rest."""
        if not np.isfinite(state.logit).all():
            raise ValueError(
                "Some of these tokens are one, or their mean is 0, as what attention answers may "
                "be: they rest, and there is nothing to solve."
            )
        return super().prepared(model, state)

    def check(self) -> None:
        """Raise MeanfieldError for a model under which tokens do not stay equiangular."""
        drift, normalisation = self.model.drift, self.model.normalisation
        reasons = {
            f"{drift!r} gives every token its own past or neighbour, so they do not stay "
            "equiangular.": drift.parts_tokens,
            f"{normalisation!r} acts on hidden states of R^d.": bool(normalisation.norms),
            UNUSED_RADII.format(normalisation): not normalisation.has_radii
            and (self.like.radius != 1).any(),
        }
        for reason, holds in reasons.items():
            if holds:
                raise MeanfieldError(f"{reason} Solve for Tokens: state.to_tokens(d).")
        drift.as_zonal()

    def coordinates(self, state: Equiangular) -> np.ndarray:
        """The logits and logarithms of radii (members, 1, 2)."""
        pairs = np.stack([state.logit, np.log(state.radius)], axis=-1)
        return pairs.reshape(-1, 1, 2)

    def state_of(self, y: np.ndarray) -> Equiangular:
        """The state with these coordinates."""
        return self.unpacked(np.stack([y[:, 0, 0], np.exp(y[:, 0, 1])], axis=-1))

    def packed(self, state: Equiangular) -> np.ndarray:
        """The logits and the radii (members, 2); logarithms of radii would round them."""
        return np.stack([state.logit.ravel(), state.radius.ravel()], axis=-1)

    def unpacked(self, array: np.ndarray) -> Equiangular:
        """The state of an array made by `packed`."""
        logit, radius = (column.reshape(self.like.shape) for column in array.T)
        return Equiangular.computed(self.like.n, logit, radius)

    def _flat_state(self, y: np.ndarray) -> Equiangular:
        """The state with all members on one axis, and radii 1."""
        return Equiangular.computed(self._n, y[:, 0, 0], np.ones(len(y)))

    def pull(self, y: np.ndarray, t: float) -> Pull:
        """The terms of the normalised output of attention: see `Pull`."""
        n, state = self._n, self._flat_state(y)
        rho = state.rho
        pairs = np.stack([np.ones_like(rho), rho], axis=-1)
        slopes, weights = self._drift.slope_and_weight(pairs)
        mean = weights[:, 0] / n + (1 - 1 / n) * weights[:, 1]
        rate = slopes[:, 1] / mean
        parallel = slopes[:, 0] / mean / n + (1 - 1 / n) * rho * rate
        transverse = rate * np.sqrt((1 - 1 / n) * state.gap * state.square)
        A = np.stack([parallel, transverse], axis=-1)
        u = self.model.normalisation.updated(self.inside(t), A)
        size, limited = np.hypot(*A.T), np.hypot(*u.T)
        f = np.divide(limited, size, out=np.ones_like(size), where=size > 0)
        excess = (slopes[:, 0] - slopes[:, 1]) / mean / n
        return Pull(f * rate, f * excess, f * parallel, f * transverse)

    def velocity(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the coordinates."""
        pull, scale = self.pull(y, t), self._scale(y, t)
        lengths = pull.along / scale if self._grows(t) else np.zeros_like(scale)
        return np.stack([2 * pull.rate / scale, lengths], axis=-1)[:, None, :]

    def step(
        self, scheme: Splitting, y: np.ndarray, t: float, dt: float, rng: Generator
    ) -> np.ndarray:
        """The coordinates after one layer with learning rate dt; the only splitting is Layers."""
        pull, scale, new = self.pull(y, t), self._scale(y, t), y.copy()
        factor = dt * pull.rate / (scale + dt * pull.excess)
        new[:, 0, 0] += np.log1p(factor * (2 + factor))
        if self._grows(t):
            new[:, 0, 1] = np.log(np.hypot(scale + dt * pull.along, dt * pull.across))
        return new

    def attended(self, state: Equiangular) -> Equiangular:
        """The outputs of attention, with their lengths as radii.

        They raise the logits by 2 log |1 + n k(rho)/(k(1) - k(rho))|, computed from the logarithm
        of the fraction, which may overflow.
        """
        y = self.coordinates(state)
        pull = self.pull(y, 0.0)
        sign, log_contrast = self._drift.contrast(self._flat_state(y).log_gap[:, None])
        size = np.log(self._n) - log_contrast[:, 0]
        with np.errstate(divide="ignore"):
            raised = 2 * (np.maximum(size, 0) + np.log1p(sign[:, 0] * np.exp(-np.abs(size))))
        radius = np.hypot(pull.along, pull.across).reshape(state.shape)
        return Equiangular.computed(state.n, state.logit + raised.reshape(state.shape), radius)

    def _grows(self, t: float) -> bool:
        return self.model.normalisation.grows(self.inside(t))

    def _scale(self, y: np.ndarray, t: float) -> np.ndarray:
        """The divisor (members,) of velocities of directions: the radius where it grows, else 1."""
        return np.exp(y[:, 0, 1]) if self._grows(t) else np.ones(len(y))

    def relative_errors(self, error: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The largest relative error of 1 - rho, 1 + (n - 1) rho and the radius, (members,).

        Errors within the rounding of the coordinates count as 0, as shorter steps have them too.
        """
        rounded = np.abs(error) <= COORDINATE_ROUNDING * np.abs(y)
        return np.abs(error).max(axis=(1, 2), initial=0.0, where=~rounded)  # nan if an error is nan

    def rates(self, y: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """(int |v|^2 dmu)^(1/2) of every member."""
        state = self._flat_state(y)
        return np.abs(velocity[:, 0, 0]) / 2 * np.sqrt((1 - 1 / self._n) * state.gap * state.square)

    def energy(self, y: np.ndarray) -> np.ndarray:
        """(1/2n) (W(1) + (n - 1) W(rho)) of every member."""
        rho = self._flat_state(y).rho
        W = self._drift.potential_at(np.stack([np.ones_like(rho), rho], axis=-1))
        return (W[:, 0] / self._n + (1 - 1 / self._n) * W[:, 1]) / 2

    def recorded(self) -> JsonTable:
        """The initial state of every member."""
        return {"start": self.like.start()}

    def size(self, y: np.ndarray) -> str:
        """The number of members, for the progress bar."""
        return f"{len(y)} members"

    def stats(self, state: Equiangular, t: float) -> JsonTable:
        """The name of the engine in results."""
        return {"engine": "equiangular"}

    def measure(self, state: Equiangular, t: float = 0.0) -> Observations:
        """Observables of equiangular tokens, in closed form; names as for tokens.

        Returns
        -------
        dict of ndarray, each of the ensemble shape
            rho : the inner product of two different tokens, which is their mean cosine
            gap : 1 - rho, without cancellation
            radius : the length of hidden states, where the normalisation moves it
            order_parameter, interaction_energy, effective_rank : as of tokens
            speed : (int |v|^2 dmu)^(1/2)
        """
        y = self.coordinates(state)
        observables = {"order_parameter": np.sqrt(state.square), "rho": state.rho, "gap": state.gap}
        if self.model.normalisation.has_radii:
            observables["radius"] = state.radius
        observables["speed"] = self.rates(y, self.velocity(y, t)).reshape(state.shape)
        observables["interaction_energy"] = self.energy(y).reshape(state.shape)
        observables["effective_rank"] = _effective_rank(state)
        return {name: np.array(values) for name, values in observables.items()}


def _effective_rank(state: Equiangular) -> np.ndarray:
    """The effective rank for the eigenvalues `square`, simple, and gap/n, n - 1 times."""
    share = (1 - 1 / state.n) * state.gap
    log_rest = np.where(share > 0, state.log_gap - np.log(state.n), 0.0)
    logs = np.where(state.square > 0, np.log(np.where(state.square > 0, state.square, 1.0)), 0.0)
    return np.exp(-share * log_rest - state.square * logs)
