"""The motion of tokens: theta' = P u / r, r' = <theta, u>, u from attention to all tokens.

Coordinates are an array (replicas, n, d + more) with the points first, then the radius where the
normalisation has one, then the logarithm of the mass where the model has a reaction.
"""

import numpy as np

from ..core.checks import real_array
from ..engines import AttentionSums, Automatic, Direct, FieldSums
from ..models import Attention, Hardmax, MeanField, ZonalDrift
from ..models.normalisation import PostLN
from ..models.transformer import Transformer
from ..states import Tokens
from .fitting import check_tokens
from .lengths import lengths
from .pieces import Piece, distinct

__all__ = ["TokenMotion"]

LOST = 2.0  # a step that changes the length of a unit vector by this factor says nothing
OF_NO_MASS = -1e300  # a logarithm that is finite, and of which nothing is left


class TokenMotion:
    """Velocities of tokens under a model; the `Motion` of `steppers.Flow`.

    Parameters
    ----------
    model : Transformer
    tokens : Tokens
        In the ensemble shape of the model, or more.
    engine : engines.Automatic, engines.Direct or engines.Modes, optional
        How sums over tokens are done for zonal drifts.
    layers : bool
        Whether layers are taken rather than the flow.

    Raises
    ------
    ValueError, MeanfieldError
        For a model that these tokens cannot follow, or an engine that does not fit.
    """

    def __init__(self, model: Transformer, tokens: Tokens, engine=None, *, layers: bool = False):
        check_tokens(model, tokens)
        self.model, self._like = model, tokens
        self.dimension, self.on_sphere = tokens.dimension, tokens.on_sphere
        self._replicas = int(np.prod(tokens.shape))
        self.has_radii = model.normalisation.has_radii
        self._drift = model.drift.broadcast(tokens.shape)
        self._masses = np.ascontiguousarray(tokens.masses.reshape(self._replicas, -1))
        self._sums = self._build(engine, len(tokens), layers)
        self._exact = isinstance(self._drift, ZonalDrift) and self._tangential
        self._piece = Piece()
        self.kappa = np.broadcast_to(model.kappa, tokens.shape).ravel()

    def _build(self, engine, n: int, layers: bool):
        threads = getattr(engine, "threads", 1)
        if isinstance(self._drift, Attention | Hardmax | MeanField):
            if engine is not None and not isinstance(engine, Automatic):
                raise ValueError(
                    f"{type(self._drift).__name__} has one way to sum over tokens; leave out "
                    f"engine = {engine!r}, or give engines.Automatic(threads=...)."
                )
            if isinstance(self._drift, MeanField):
                return FieldSums(self._drift, threads)
            return AttentionSums(self._drift, threads=threads, shape=self._like.shape)
        if layers or not self._tangential or self.model.reaction:
            if engine is not None and not isinstance(engine, Automatic | Direct):
                what = "A reaction needs potentials"
                if layers or not self._tangential:
                    who = "steppers.Layers" if layers else repr(self.model.normalisation)
                    what = f"{who} needs the whole output of attention"
                raise ValueError(f"{what}, which engines.Direct gives; got engine = {engine!r}.")
            engine = Direct(threads=threads)
        engine = Automatic() if engine is None else engine
        return engine.build(self._drift, n, self.dimension, self._replicas)

    @property
    def _tangential(self) -> bool:
        """Whether the tangential part of the output of attention is all that is needed."""
        return isinstance(self.model.normalisation, PostLN)

    @property
    def engine(self) -> str:
        """What sums over tokens."""
        return self._sums.name

    # Coordinates ---------------------------------------------------------------------------

    def coordinates(self, tokens: Tokens) -> np.ndarray:
        """The array that moves."""
        columns = [tokens.x]
        if self.has_radii:
            radii = np.ones(tokens.masses.shape) if tokens.radii is None else tokens.radii
            columns.append(radii[..., None])
        if self.model.reaction:
            some = tokens.masses > 0
            logs = np.where(some, np.log(np.where(some, tokens.masses, 1.0)), OF_NO_MASS)
            columns.append(logs[..., None])
        y = np.concatenate(columns, axis=-1)
        return y.reshape(self._replicas, *y.shape[-2:])

    def state_of(self, y: np.ndarray) -> Tokens:
        """The tokens with these coordinates."""
        shape = (*self._like.shape, y.shape[1])
        x = y[..., : self.dimension].reshape(*shape, self.dimension)
        radii = y[..., self.dimension].reshape(shape) if self.has_radii else None
        masses = self.masses(y).reshape(shape) if self.model.reaction else self._like.masses
        return Tokens(x, masses, radii, on_sphere=self.on_sphere)

    def masses(self, y: np.ndarray) -> np.ndarray:
        """The masses (replicas, n)."""
        if not self.model.reaction:
            return self._masses
        weights = np.exp(y[..., -1] - y[..., -1].max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def points(self, y: np.ndarray) -> np.ndarray:
        """The points (replicas, n, d)."""
        return np.ascontiguousarray(y[..., : self.dimension])

    # Motion --------------------------------------------------------------------------------

    def velocity(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the coordinates."""
        rates = self.attention_rates(y, t)
        if self.model.feedforward is not None:
            rates += self.feedforward_rates(y, t)
        return rates

    def attention_rates(self, y: np.ndarray, t: float) -> np.ndarray:
        """Those by attention, and by reaction."""
        x, masses = self.points(y), self.masses(y)
        if self._exact:
            rates = self._sums.velocity(x, masses)
            if self.model.reaction:
                rates = np.concatenate([rates, np.empty((*masses.shape, 1))], axis=-1)
        else:
            rates = self._followed(y, t, self.attention_update(x, masses, t))
        if self.model.reaction:
            rates[..., -1] = self.reaction_rates(x, masses)
        return rates

    def reaction_rates(self, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """alpha Phi, by which the logarithms of masses grow, up to a common constant."""
        return self.model.reaction * self._sums.potential(x, masses)

    def feedforward_rates(self, y: np.ndarray, t: float) -> np.ndarray:
        """Those by the feed-forward map."""
        return self._followed(y, t, self.feedforward_update(self.points(y), t))

    def attention_update(self, x: np.ndarray, masses: np.ndarray, t: float) -> np.ndarray:
        """u of points (replicas, n, d), from attention."""
        if isinstance(self._sums, AttentionSums | FieldSums):
            A = self._sums.attention(self._piece.inside(t), x, masses)
        else:
            A = self._sums.attention(x, masses)
        return self._normalised(t, A, self._size_of_attention(t))

    def _size_of_attention(self, t: float) -> float:
        """About the length of its output where nothing cancels, if the normalisation asks."""
        if not self.model.normalisation.needs_direction:
            return 0.0
        if not isinstance(self._drift, Attention):
            return float(np.max(self._drift.rate(t)))
        matrices = self._drift.at(t)
        return float(np.prod([np.linalg.norm(matrices.get(name, 1.0)) for name in ("V", "output")]))

    def feedforward_update(self, x: np.ndarray, t: float) -> np.ndarray:
        """u of points (replicas, n, d), from the feed-forward map."""
        assert self.model.feedforward is not None
        shown = x.view()
        shown.setflags(write=False)  # it may be the state itself
        values = real_array("What feedforward returns", self.model.feedforward(shown))
        if values.shape != x.shape:
            raise ValueError(
                "feedforward takes points (..., d) and returns as many vectors; got shape "
                f"{values.shape} for {x.shape}."
            )
        return self._normalised(t, values)

    def _normalised(self, t: float, A: np.ndarray, size: float = 0.0) -> np.ndarray:
        if not self.on_sphere:
            return A
        return self.model.normalisation.update(self._piece.inside(t), A, size)

    def grows(self, t: float) -> bool:
        """Whether radii change at this time."""
        return self.on_sphere and self.model.normalisation.grows(self._piece.inside(t))

    def _followed(self, y: np.ndarray, t: float, u: np.ndarray) -> np.ndarray:
        """theta' = P u / r and r' = <theta, u>, or P u and 0 where radii are fixed."""
        rates, x = np.zeros_like(y), y[..., : self.dimension]
        points = rates[..., : self.dimension]
        if not self.on_sphere:
            points[...] = u
            return rates
        along = np.einsum("rnd,rnd->rn", x, u)
        np.multiply(-along[..., None], x, out=points)
        points += u
        if self.grows(t):
            radii = y[..., self.dimension, None]
            points /= np.where(radii > 0, radii, np.nan)
            rates[..., self.dimension] = along
        return rates

    # Parameters that jump ------------------------------------------------------------------

    def breakpoints(self, start: float, end: float) -> list[float]:
        """Times between start and end at which the model changes at once; one for jumps in one."""
        found = [t for t in self.model.normalisation.breakpoints() if start < t < end]
        if isinstance(self._drift, Attention | Hardmax):
            found += [float(t) for t in self._drift.breakpoints(start, end)]
        return distinct(found)

    def enter(self, start: float, end: float) -> None:
        """Between two breakpoints; at either the model is taken as it is in between."""
        self._piece.enter(start, end)

    # How errors and rates are measured -----------------------------------------------------

    def relative_error(self, error: np.ndarray, y: np.ndarray) -> float:
        """The largest error of a token, in radians; of a radius or mass, relative.

        In R^d that of a point is relative to the longest of its replica. It is infinite where there
        are no such tokens: beyond the largest number, or with a radius <= 0.
        """
        errors = lengths(error[..., : self.dimension])
        if not self.on_sphere:
            longest = lengths(y).max(axis=1, keepdims=True)
            errors /= np.where(longest > 0, longest, 1.0)
            errors[np.broadcast_to(~np.isfinite(longest), errors.shape)] = np.inf
        size = float(errors.max())
        if self.has_radii:
            radii = y[..., self.dimension]
            errors = np.abs(error[..., self.dimension]) / np.where(radii > 0, radii, 1.0)
            size = float(np.maximum(size, np.where(radii > 0, errors, np.inf).max()))
        if self.model.reaction:
            masses = self.masses(y)
            changes = np.where(masses > 0, np.abs(error[..., -1]), 0) * masses
            size = max(size, float((changes / masses.max(axis=1, keepdims=True)).max()))
        return size

    def projected(self, y: np.ndarray) -> np.ndarray:
        """The coordinates with unit vectors, in place; nan where a step was far too long."""
        if self.on_sphere:
            x = y[..., : self.dimension]
            size = lengths(x)
            x /= np.where((size > 1 / LOST) & (size < LOST), size, np.nan)[..., None]
        return y

    def fixed(self) -> dict[str, np.ndarray]:
        """The masses, which all states of a run share unless there is a reaction."""
        return {"masses": self._like.masses}

    def energy(self, y: np.ndarray) -> np.ndarray:
        """The interaction energy of every replica, for zonal drifts."""
        return self._sums.energy(self.points(y), self.masses(y))

    def rate(self, y: np.ndarray, velocity: np.ndarray) -> float:
        """(int |v|^2 dmu)^(1/2), of the fastest replica; radii do not count.

        Under a reaction with (d log m/dt)^2 added to |v|^2.
        """
        squares, masses = (velocity[..., : self.dimension] ** 2).sum(axis=-1), self.masses(y)
        if self.model.reaction:
            growth = velocity[..., -1]
            squares += (growth - (masses * growth).sum(axis=1, keepdims=True)) ** 2
        return float(np.sqrt((masses * squares).sum(axis=-1).max()))
