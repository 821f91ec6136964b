"""Motion of tokens, theta' = P u / r and r' = <theta, u>, with or without noise.

u is the (normalised) output of attention to all tokens. The coordinates are an array (replicas, n,
d + 0, 1 or 2): the point, the radius if the normalisation has radii, and the logarithm of the mass
if the model has a reaction.
"""

from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from typing import Self

import numpy as np
from numpy.random import Generator

from ..core.annotations import JsonTable, MovedState, Observations, TangentNames, UserValue, Values
from ..core.checks import finite_array, first_not_finite, values_of
from ..core.dual import Array, Dual, changes_of, contiguous, differentiable, value_of
from ..core.errors import MeanfieldError
from ..engines import engine_for
from ..lowlevel.compilation import WITHIN, njit
from ..models.normalisation import Sublayer
from ..states import Tokens
from ..states.clusters import MOST_PAIRED_TOKENS
from ..steppers import DormandPrince, Layers, LieTrotter, Splitting, Strang
from ..steppers.splitting import kutta_step
from .linearised import Changes, TangentSpace, check_masses, check_vanishes, checked_changes
from .motion import RESTART_ADVICE, UNUSED_RADII, AnyScheme, ChosenScheme, Failure
from .observables import cluster_counts, declare, effective_rank, mean_cosine, pairless
from .replicas import ReplicaMotion

declare("mean_radius", "mean radius", log_from=100.0)

LOST_LENGTH = 2.0  # steps that change the length of a unit vector by this factor give nan
LOG_OF_NO_MASS = -1e300  # the finite logarithm of a mass 0; its exponential is 0
# Growth of the longest token, relative to its initial length, that counts as an escape to infinity.
ESCAPE_GROWTH = 100.0


class TokenMotion(ReplicaMotion, moves=Tokens):
    """Velocities of tokens under a model, and steps of splittings and layers.

    Parameters
    ----------
    model : Transformer
    state : Tokens
        Tokens whose ensemble shape is that of the model, or to which that of the model broadcasts.
    engine : engines.Automatic, engines.Direct or engines.Modes, optional
        How sums over tokens are done for zonal drifts and attention.
    scheme : Scheme or Splitting, optional
        The scheme of the run. `Layers` needs the whole output of attention, not only its
        tangential part, which not every engine computes.

    Raises
    ------
    ValueError, MeanfieldError
        For a model that these tokens cannot follow, or an engine that does not fit.
    TypeError
        If `engine` is not an engine.
    """

    example = "Tokens(x)"
    schemes = (DormandPrince, Layers, LieTrotter)
    options = frozenset({"engine", "merge", "rng"})
    follows = frozenset("noise common normalisation reaction feedforward causal".split())
    draws_by_member = True
    tangent_arrays = "x", "radii", "masses"
    not_finite = "the state was not finite, a radius was not > 0, or tokens were far off the sphere"

    def setup(self) -> None:
        """Choose the engine, and flatten the parameters and masses to one row for each replica."""
        model, state = self.model, self.like
        self.dimension, self.on_sphere = state.dimension, state.on_sphere
        self.has_radii = model.normalisation.has_radii
        self._reaction: float | Dual = model.reaction
        self._drift = model.drift.broadcast(state.shape)
        self._masses = np.ascontiguousarray(state.masses.reshape(-1, len(state)))
        attention_reason, tangential = "", model.normalisation.is_identity
        if self._scheme is Layers or not tangential:
            part_name = "steppers.Layers" if self._scheme is Layers else repr(model.normalisation)
            attention_reason = f"{part_name} needs the whole output of attention"
        elif model.reaction:
            attention_reason = "A reaction needs potentials"
        elif model.common is not None and model.common.needs_attention:
            attention_reason = f"{model.common!r} needs the whole output of attention"
        sizes = len(state), self.dimension
        self._sums = engine_for(
            self._drift,
            self._engine,
            *sizes,
            whole_for=attention_reason,
            on_sphere=self.on_sphere,
            causal=model.causal,
        )
        if model.reaction:
            self._drift.check_potential(self.dimension)
        self._exact = self._sums.tangential and tangential

    @property
    def directions(self) -> int:
        return self.dimension - bool(self.on_sphere)

    def check(self) -> None:
        """Raise ValueError or MeanfieldError, with the reason, for a model that does not fit."""
        model, tokens, drift = self.model, self.like, self.model.drift
        normalisation = model.normalisation
        in_space = normalisation.is_identity or bool(normalisation.norms)
        if not tokens.on_sphere and (drift.on_sphere_only or not in_space):
            part_name = type(drift).__name__ if drift.on_sphere_only else repr(normalisation)
            raise MeanfieldError(
                f"{part_name} is defined on the sphere, and these tokens live in R^d. There, use "
                "Attention(Q, K, V, beta), without a normalisation or with one that has norms, "
                "PreLN(LayerNorm(...), LayerNorm(...))."
            )
        if tokens.on_sphere and normalisation.norms:
            raise MeanfieldError(
                f"{normalisation!r} normalises hidden states of R^d, and these tokens are unit "
                "vectors: give hidden states, Tokens(h, on_sphere=False)."
            )
        self.check_dimensions()
        if not tokens.on_sphere and model.noisy and model.noise.on_sphere_only:
            raise MeanfieldError(
                f"{model.noise!r} is defined on the sphere; in R^d use Isotropic() or "
                "Anisotropic(sigma)."
            )
        if not tokens.on_sphere and model.common is not None:
            raise MeanfieldError(
                f"{model.common!r} is defined on the sphere, and these tokens live in R^d. Use "
                "Tokens of unit vectors, or common=None."
            )
        if model.causal is not None and model.reaction:
            raise MeanfieldError(
                "reaction needs a potential, of which velocities are the gradient; those of tokens "
                "that see only what comes before are not. Leave causal out, or use reaction=0."
            )
        if tokens.radii is not None and not model.normalisation.has_radii:
            raise MeanfieldError(UNUSED_RADII.format(model.normalisation))

    def chosen_scheme(self, scheme: AnyScheme, dt: float | None, start: float) -> ChosenScheme:
        """The scheme, and the length of its steps, None if they adapt.

        Raises
        ------
        ValueError
            If the scheme does not fit the model, or has no dt.
        MeanfieldError
            For a normalisation after sublayers, which is defined for layers but has no flow.
        """
        normalisation = self.model.normalisation
        if normalisation.why_no_flow and scheme is not Layers:
            raise MeanfieldError(
                f"{normalisation!r} has no flow: {normalisation.why_no_flow}. Take layers, "
                "scheme=steppers.Layers with dt=1."
            )
        return super().chosen_scheme(scheme, dt, start)

    # Coordinates ---------------------------------------------------------------------------

    def coordinates(self, state: Tokens) -> np.ndarray:
        """The coordinates (replicas, n, d + 0, 1 or 2): see the docstring of this module."""
        columns = [state.x]
        if self.has_radii:
            radii = np.ones(state.masses.shape) if state.radii is None else state.radii
            columns.append(radii[..., None])
        if self.model.reaction:
            has_mass = state.masses > 0
            logs = np.where(has_mass, np.log(np.where(has_mass, state.masses, 1.0)), LOG_OF_NO_MASS)
            columns.append(logs[..., None])
        y = np.concatenate(columns, axis=-1)
        return y.reshape(-1, *y.shape[-2:])

    def state_of(self, y: np.ndarray) -> Tokens:
        """The tokens with these coordinates."""
        return self._tokens(y, self.masses(y))

    def packed(self, state: Tokens) -> np.ndarray:
        """The coordinates with the masses instead of their logarithms, which would round them."""
        y = self.coordinates(state)
        if self.model.reaction:
            y[..., -1] = state.masses.reshape(y.shape[:-1])
        return y

    def unpacked(self, array: np.ndarray) -> Tokens:
        """The tokens of an array made by `packed`."""
        return self._tokens(array, array[..., -1])

    def _tokens(self, y: np.ndarray, masses: np.ndarray) -> Tokens:
        """The tokens with these coordinates; `masses` (replicas, n) matter only with a reaction."""
        shape = (*self.like.shape, y.shape[1])
        x = y[..., : self.dimension].reshape(*shape, self.dimension)
        radii = y[..., self.dimension].reshape(shape) if self.has_radii else None
        masses = masses.reshape(shape) if self.model.reaction else self.like.masses
        if isinstance(y, Dual):
            return Tokens.computed(x=x, masses=masses, radii=radii, on_sphere=self.on_sphere)
        return Tokens(x, masses, radii, on_sphere=self.on_sphere)

    def masses(self, y: np.ndarray) -> np.ndarray:
        """The masses (replicas, n)."""
        if not self.model.reaction:
            return self._masses
        weights = np.exp(y[..., -1] - y[..., -1].max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def points(self, y: np.ndarray) -> np.ndarray:
        """The points (replicas, n, d)."""
        return contiguous(y[..., : self.dimension])

    # Motion --------------------------------------------------------------------------------

    @property
    def intermediate(self) -> np.ndarray | None:
        """Intermediate results of the last call of `velocity`; None if the engine stores none."""
        return getattr(self._sums, "intermediate", None)

    def velocity(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the coordinates."""
        rates = self.attention_rates(y, t)
        if self.model.feedforward is not None:
            rates += self.feedforward_rates(y, t)
        return rates

    def attention_rates(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the coordinates by attention and by reaction."""
        x, masses = self.points(y), self.masses(y)
        if self._exact:
            rates = self._sums.velocity(x, masses)
        else:
            rates = self._coordinate_rates(y, t, self.attention_update(x, masses, t))
        if self.model.reaction:
            growth = self.reaction_rates(x, masses, t)[..., None]
            rates = np.concatenate([rates[..., : y.shape[-1] - 1], growth], axis=-1)
        return rates

    def reaction_rates(self, x: np.ndarray, masses: np.ndarray, t: float) -> np.ndarray:
        """Growth rates alpha (Phi - int Phi dmu) of the logarithms of masses, (replicas, n)."""
        potential = self._sums.potential(x, masses, self.inside(t))
        return self._reaction * (potential - (masses * potential).sum(axis=1, keepdims=True))

    def feedforward_rates(self, y: np.ndarray, t: float) -> np.ndarray:
        """Rates of change of the coordinates by the feed-forward map."""
        return self._coordinate_rates(y, t, self.feedforward_update(self.points(y), t))

    def attention_update(self, x: np.ndarray, masses: np.ndarray, t: float) -> np.ndarray:
        """Normalised outputs u of attention at points (replicas, n, d)."""
        normalised_points = self.model.normalisation.before(self.inside(t), x, "attention")
        A = self._sums.attention(self.inside(t), normalised_points, masses)
        needs_size = self.model.normalisation.needs_direction
        size = np.asarray(self._drift.output_size(t) if needs_size else 0.0)
        return self._normalised(t, A, size[..., None, None])

    def feedforward_update(self, x: np.ndarray, t: float) -> np.ndarray:
        """Normalised outputs u of the feed-forward map at points (replicas, n, d)."""
        normalised_points = self.model.normalisation.before(self.inside(t), x, "feedforward")
        return self._normalised(t, self.model.feedforward_at(normalised_points, self.inside(t)))

    def _normalised(self, t: float, A: np.ndarray, size: Values = 0.0) -> np.ndarray:
        """Outputs A of a sublayer after the normalisation; in R^d unchanged.

        `size` is the scale of A that `Drift.output_size` gives.
        """
        if not self.on_sphere:
            return A
        return self.model.normalisation.updated(self.inside(t), A, size)

    def grows(self, t: float) -> bool:
        """Whether radii change at this time."""
        return self.on_sphere and self.model.normalisation.grows(self.inside(t))

    def _coordinate_rates(self, y: np.ndarray, t: float, u: np.ndarray) -> np.ndarray:
        """Rates of change of the coordinates under an update u (replicas, n, d).

        theta' = P u / r and r' = <theta, u>; P u and 0 where radii are fixed; u in R^d.
        """
        rates, x = np.zeros_like(y), y[..., : self.dimension]
        points = rates[..., : self.dimension]
        if not self.on_sphere:
            points[...] = u
            return rates
        radial = np.einsum("rnd,rnd->rn", x, u)
        np.multiply(-radial[..., None], x, out=points)
        points += u
        if self.grows(t):
            radii = y[..., self.dimension, None]
            points /= np.where(radii > 0, radii, np.nan)
            rates[..., self.dimension] = radial
        return rates

    # Steps of a given length ---------------------------------------------------------------

    def step(
        self,
        scheme: Splitting,
        y: np.ndarray,
        t: float,
        dt: float,
        rng: Generator,
        common: Generator | None = None,
    ) -> np.ndarray:
        """The coordinates after one step of Layers, LieTrotter or Strang."""
        if scheme is Strang:
            return self.strang_step(y, t, dt, rng, common)
        return {Layers: self.layer_step, LieTrotter: self.lie_trotter_step}[scheme](y, t, dt)

    def layer_step(self, y: np.ndarray, t: float, step: float) -> np.ndarray:
        """One layer of a Transformer with learning rate `step`: attention, then feed-forward.

        x <- r theta + step u,  theta <- x/|x|, r <- |x|        where radii grow
        theta <- N(theta + step u)                              where they do not
        h <- N_k(h + step u) or h + step u, u of N_k(h)         in R^d with norms
        """
        new = y.copy()
        x, masses = self.points(y), self.masses(y)
        if self.model.reaction:
            new[..., -1] += step * self.reaction_rates(x, masses, t)
        self._add(new, t, step * self.attention_update(x, masses, t), "attention")
        if self.model.feedforward is not None:
            change = step * self.feedforward_update(self.points(new), t)
            self._add(new, t, change, "feedforward")
        return new

    def _add(self, y: np.ndarray, t: float, change: np.ndarray, sublayer: Sublayer) -> None:
        """Add the update `change` of a sublayer to the hidden states, in place, and normalise."""
        x = y[..., : self.dimension]
        grows = self.grows(t)
        if grows:
            x *= y[..., self.dimension, None]
        x += change
        if self.on_sphere:
            lengths = np.linalg.norm(x, axis=-1)
            x /= lengths[..., None]
            if grows:
                y[..., self.dimension] = lengths
        else:
            x[...] = self.model.normalisation.after(self.inside(t), x, sublayer)

    def lie_trotter_step(self, y: np.ndarray, t: float, dt: float) -> np.ndarray:
        """Attention for dt, then the feed-forward map for dt; order 1."""
        y = self.projected(kutta_step(self.attention_rates, y, t, dt))
        if self.model.feedforward is not None:
            y = self.projected(kutta_step(self.feedforward_rates, y, t, dt))
        return y

    def strang_step(
        self, y: np.ndarray, t: float, dt: float, rng: Generator, common: Generator | None = None
    ) -> np.ndarray:
        """Noise for dt/2, the drift for dt, noise for dt/2; weak order 2.

        Common noise, drawn from `common`, comes first and last.
        """
        y = self.after_noise(self.after_common_noise(y, t, dt / 2, common), t, dt / 2, rng)
        y = self.projected(kutta_step(self.velocity, y, t, dt))
        y = self.after_noise(y, t + dt / 2, dt / 2, rng)
        return self.after_common_noise(y, t + dt, dt / 2, common)

    def after_common_noise(
        self, y: np.ndarray, t: float, dt: float, rng: Generator | None
    ) -> np.ndarray:
        """The coordinates after common noise for a time dt, drawn from `rng`."""
        common_noise = self.model.common
        if common_noise is None:
            return y
        x, new, attention = self.points(y), y.copy(), None
        if common_noise.needs_attention:
            attention = self._sums.attention(self.inside(t), x, self.masses(y))
        increments = common_noise.increments(len(x), self.dimension, rng)  # type: ignore[arg-type]
        strength = np.full(self.like.shape, dt / common_noise.kappa).ravel()
        new[..., : self.dimension] = common_noise.moved(x, strength, increments, attention)
        return new

    def after_noise(self, y: np.ndarray, t: float, dt: float, rng: Generator) -> np.ndarray:
        """The coordinates after independent noise for a time dt, with kappa at t + dt/2."""
        if not self.model.has_independent_noise:
            return y
        kappa = self.model.kappa_at(self.inside(t + dt / 2))
        x, strength = self.points(y), np.full(self.like.shape, dt / kappa).ravel()
        new = y.copy()
        if self.on_sphere:
            noise = self.model.noise
            noisy_points = noise.moved(x, strength, noise.increments(x.shape, rng))
        else:
            noisy_points = self.model.noise.moved_in_space(x, strength, rng)
        new[..., : self.dimension] = noisy_points
        return new

    # Derivatives ---------------------------------------------------------------------------

    def state_along(self, state: Tokens, changes: Changes) -> MovedState:
        """State with changes; with radii 1 where the motion has radii and the state none."""
        if self.has_radii and state.radii is None:  # they begin with 1, and may change
            radii, sphere = np.ones(state.masses.shape), state.on_sphere
            state = Tokens.computed(x=state.x, masses=state.masses, radii=radii, on_sphere=sphere)
        return super().state_along(state, changes)

    def along(self, names: TangentNames, state: MovedState) -> Self:
        """Copy with changes of the drift and the reaction by the parameters, at `state`."""
        copied = copy(self)
        copied.like = state
        copied._masses = contiguous(state.masses.reshape(self._masses.shape))
        copied._sums = self._sums.with_tangents([None if n == "reaction" else n for n in names])
        if self.model.reaction:
            rates = np.array([float(name == "reaction") for name in names])
            copied._reaction = Dual(self.model.reaction, rates)
        return copied

    def velocity_from(self, y: Dual, t: float, value: Array, intermediate: Array | None) -> Values:
        """Velocity with changes; its `value` is used again where the engine can."""
        attention_only = self.model.feedforward is None and not self.model.reaction
        if self._exact and attention_only and self._sums.takes_velocities:
            return self._sums.velocity(self.points(y), self.masses(y), value, intermediate)
        return self.velocity(y, t)

    def merged(self, y: Dual, labels: np.ndarray) -> tuple[Tokens, Dual]:
        """The tokens after merging those with equal labels (n,), and their coordinates.

        A merged token is at the centre of mass, projected onto the sphere, and has the mean radius:
        see `solving.merging`.
        """
        if self.model.reaction or changes_of(self._masses, len(y.changes)).any():
            raise MeanfieldError(
                "Derivatives of runs in which tokens merged are known where masses do not change: "
                "solve without merge=, or without reaction and changes of masses."
            )
        masses, m = value_of(self._masses)[0], np.zeros(labels.max() + 1)
        np.add.at(m, labels, masses)
        sums = np.zeros((len(m), len(labels)))
        sums[labels, np.arange(len(labels))] = np.where(m[labels] > 0, masses, 1.0)
        new, d = (sums / sums.sum(axis=1, keepdims=True)) @ y, self.dimension
        if self.on_sphere:
            new[..., :d] /= np.linalg.norm(new[..., :d], axis=-1)[..., None]
        rows = new.value[0]
        radii = rows[:, d] if self.has_radii else None
        return Tokens(rows[:, :d], m, radii, on_sphere=self.on_sphere), new

    def direction(self, direction: UserValue, state: Tokens) -> dict[str, Array]:
        """A checked change of the initial tokens, as arrays by the names x, masses and radii.

        `direction` is an array (the change of x), a mapping of such names to arrays, or a function
        of points (..., d), whose values are projected onto the tangent spaces of the sphere.
        """
        x, mass_shape = state.x, state.masses.shape
        if callable(direction) and not isinstance(direction, Mapping):
            direction = finite_array("Values of the function", values_of(direction, x))
            if state.on_sphere and direction.shape == x.shape:
                direction -= (direction * x).sum(-1, keepdims=True) * x
        direction = direction if isinstance(direction, Mapping) else {"x": direction}
        radii = {"radii": mass_shape} if self.has_radii else {}
        changes = checked_changes(direction, {"x": x.shape, "masses": mass_shape, **radii})
        if state.on_sphere and "x" in changes:
            radial, needs = (changes["x"] * x).sum(axis=-1), "tangential changes of unit vectors x"
            check_vanishes(needs, radial, changes["x"], "Subtract <x, dx> x.")
        check_masses(changes)
        return changes

    def tangent_space(self, state: Tokens) -> TangentSpace:
        """Dimension of the tangent space, and a function that draws a Gaussian tangent."""
        n, d = state.x.shape[-2:]
        if self.model.reaction:
            raise MeanfieldError(
                "Lyapunov exponents of tokens are known without a reaction, under which the "
                "logarithms of masses have a constant in common that changes nothing."
            )

        def draw(rng: Generator) -> dict[str, Array]:
            """Gaussian changes of x, tangential on the sphere, and of radii."""
            dx = rng.standard_normal(state.x.shape)
            if state.on_sphere:
                dx -= (dx * state.x).sum(axis=-1, keepdims=True) * state.x
            if not self.has_radii:
                return {"x": dx}
            return {"x": dx, "radii": rng.standard_normal(state.x.shape[:-1])}

        return n * (d - bool(state.on_sphere) + bool(self.has_radii)), draw

    # How errors and rates are measured -----------------------------------------------------

    def relative_errors(self, error: np.ndarray, y: np.ndarray) -> np.ndarray:
        """The largest error of a token in each replica, (replicas,).

        Errors of unit vectors are in radians, errors of radii and masses relative. In R^d the error
        of a point is relative to the longest point of its replica. An error is inf if a point is
        not finite or a radius is not > 0.
        """
        errors = lengths(error[..., : self.dimension])
        if not self.on_sphere:
            longest = lengths(y).max(axis=1, keepdims=True)
            errors /= np.where(longest > 0, longest, 1.0)
            errors[np.broadcast_to(~np.isfinite(longest), errors.shape)] = np.inf
        sizes = errors.max(axis=1)
        if self.has_radii:
            radii = y[..., self.dimension]
            errors = np.abs(error[..., self.dimension]) / np.where(radii > 0, radii, 1.0)
            sizes = np.maximum(sizes, np.where(radii > 0, errors, np.inf).max(axis=1))
        if self.model.reaction:
            masses = self.masses(y)
            changes = np.where(masses > 0, np.abs(error[..., -1]), 0) * masses
            sizes = np.maximum(sizes, (changes / masses.max(axis=1, keepdims=True)).max(axis=1))
        return sizes

    def projected(self, y: np.ndarray) -> np.ndarray:
        """The coordinates with points normalised to length 1, in place.

        Points become nan where a step has changed their length by a factor of LOST_LENGTH or more.
        """
        if self.on_sphere:
            x = y[..., : self.dimension]
            size = lengths(x)
            is_reliable = (size > 1 / LOST_LENGTH) & (size < LOST_LENGTH)
            x /= (size if is_reliable.all() else np.where(is_reliable, size, np.nan))[..., None]
        return y

    def rates(self, y: np.ndarray, velocity: np.ndarray) -> np.ndarray:
        """The root mean square speed (int |v|^2 dmu)^(1/2) of each replica, without radii.

        Under a reaction (d log m/dt)^2 is added to |v|^2.
        """
        speeds = self._speeds(velocity)
        if self.model.reaction:
            growth = velocity[..., -1]
            mean = (self.masses(y) * growth).sum(axis=1, keepdims=True)
            speeds = np.hypot(speeds, growth - mean)
        return self._mean_speed(y, speeds)

    def _speeds(self, velocity: np.ndarray) -> np.ndarray:
        """|v| of every token, (replicas, n), computed without overflow of |v|^2."""
        largest = _scales(velocity)
        return largest[..., 0] * lengths(velocity[..., : self.dimension] / largest)

    def _mean_speed(self, y: np.ndarray, speeds: np.ndarray) -> np.ndarray:
        """The root mean square of speeds (replicas, n) with the masses as weights, (replicas,)."""
        largest = _scales(speeds)
        scaled = np.sqrt(self.masses(y)) * (speeds / largest)
        return largest[..., 0] * np.linalg.norm(scaled, axis=-1)

    # In words ------------------------------------------------------------------------------

    def size(self, y: np.ndarray) -> str:
        """The number of tokens that move."""
        return f"{y.shape[1]} tokens"

    def remark(self, state: Tokens) -> str | None:
        """A sentence if observables of pairs of tokens are nan; else None."""
        return pairless(state)

    def stats(self, state: Tokens, t: float) -> JsonTable:
        """The name of the engine."""
        return {"engine": self._sums.name}

    def why_rejected(self, end: Failure) -> str:
        """The reason why no step was short enough."""
        events = " or ".join(self._singular_events) or "a radius falls to 0"
        return (
            f"the velocity is not smooth there, or not finite, as where {events}. Use a larger "
            "rtol, or dt= for fixed steps."
        )

    @property
    def _singular_events(self) -> list[str]:
        """Phrases for the events at which the solution ends: a radius of 0, an undefined drift."""
        radius = "a radius falls to 0" if self.has_radii else ""
        return [phrase for phrase in (radius, self.model.drift.undefined) if phrase]

    def why_stalled(self, end: Failure) -> str:
        """The reason why steps became too short to change t: collapse, singularity or escape."""
        longest, start = (float(np.abs(x).max()) for x in (end.y, self.like.x))
        if not self.on_sphere and not longest <= ESCAPE_GROWTH * max(start, np.finfo(float).tiny):
            return (
                f"{self.stall(end)}; tokens go to infinity there, where the solution ends. Take "
                "the states before, or project tokens on the sphere."
            )
        events = "".join(f"; where {event} the solution ends" for event in self._singular_events)
        if end.merging or self.model.parts_tokens:
            return f"{self.stall(end)}{events}. {RESTART_ADVICE}"
        advice = "For tokens that have collapsed use merge=, of replicas one by one."
        return f"{self.stall(end)}{events}. {advice}"

    def why_not_finite(self, y: np.ndarray, t: float) -> str:
        """The reason why velocities at these coordinates are not finite, and what helps."""
        x, masses = self.points(y), self.masses(y)
        if self.model.feedforward is not None:
            if where := first_not_finite(self.feedforward_update(x, t), x=x):
                return f"feedforward returned vectors that are not finite: {where}."
        u = x if self._exact else self.attention_update(x, masses, t)
        if not np.isfinite(u).all():
            if np.isfinite(self._sums.attention(self.inside(t), x, masses)).all():
                name = type(self.model.normalisation).__name__
                return f"{name}.update returned numbers that are not finite. Look at what it does."
        elif self.has_radii:
            return "they are divided by radii so small that they overflow. Use larger radii."
        return self.model.drift.why_not_finite(x)

    # Measured ------------------------------------------------------------------------------

    def attended(self, state: Tokens) -> Tokens:
        """The outputs of attention; on a sphere their directions, with their lengths as radii."""
        y = self.coordinates(state)
        A = self.attention_update(self.points(y), self.masses(y), 0.0).reshape(state.x.shape)
        if not self.on_sphere:
            return Tokens(A, state.masses, on_sphere=False)
        sizes = np.linalg.norm(A, axis=-1)
        if not (sizes > 0).all():
            raise MeanfieldError(
                f"Attention answers 0 to {np.count_nonzero(sizes == 0)} tokens, which has no "
                "direction. Move the tokens off this symmetric position."
            )
        return Tokens(A / sizes[..., None], state.masses, sizes)

    def energy(self, y: np.ndarray) -> np.ndarray:
        """The interaction energy of every replica; nan for drifts without one."""
        return self._sums.energy(self.points(y), self.masses(y)).reshape(self.like.shape)

    def measure(self, state: Tokens, t: float = 0.0) -> Observations:
        """Observables of tokens, or of replicas of them.

        Returns
        -------
        dict of ndarray, each of the shape of the replicas
            mass : sum of the masses
            order_parameter : |sum_i m_i x_i|
            mean_cosine : mean of <x_i, x_j> over pairs i != j; in R^d of the directions
            interaction_energy : E = (1/2) sum_ij m_i m_j W(<x_i, x_j>) for zonal drifts; see
                `Attention.interaction_energy` for those that increase one; else nan
            speed : (sum_i m_i |v_i|^2)^(1/2), without noise; nan for layers that have no flow
            effective_rank : exp of the entropy of the eigenvalues of sum_i m_i x_i x_i^T
            cluster_count : by single linkage, gaps up to arccos 0.9999 (in R^d: that distance); nan
                for more than 20000 tokens in d > 3
            mean_radius : sum_i m_i r_i, where tokens have radii
            spread : in R^d, the root mean square distance from the mean

        Notes
        -----
        Cost: that of a velocity, and n d min(n, d) operations.
        """
        y = self.coordinates(state)
        speed = np.full(len(self._masses), np.nan)
        if not self.model.normalisation.why_no_flow:
            speed = self._mean_speed(y, self._speeds(self.velocity(y, t)))
        countable = len(state) <= MOST_PAIRED_TOKENS or self.dimension <= 3
        observables = self.smooth_observables(state, t) | {
            "speed": speed.reshape(state.shape),
            "cluster_count": cluster_counts(state) if countable else np.full(state.shape, np.nan),
        }
        return {name: observables[name] for name in IN_FIGURES if name in observables}

    def smooth_observables(self, state: Tokens, t: float) -> Observations:
        """Observables that depend on tokens smoothly, each (*replicas,)."""
        masses = state.masses
        mean = np.einsum("...i,...id->...d", masses, state.x)
        observables = {
            "order_parameter": np.linalg.norm(mean, axis=-1),
            "mean_cosine": mean_cosine(state),
            "interaction_energy": self._energy_at(self.coordinates(state), t),
            "effective_rank": effective_rank(state),
        }
        if not state.on_sphere:
            gaps = ((state.x - mean[..., None, :]) ** 2).sum(axis=-1)
            observables["spread"] = np.sqrt((masses * gaps).sum(axis=-1))
        if state.radii is not None:
            observables["mean_radius"] = (masses * state.radii).sum(axis=-1)
        observables["mass"] = masses.sum(axis=-1)
        return observables

    def _energy_at(self, y: Values, t: float) -> Values:
        """`energy`, also of coordinates with tangents.

        With tangents it is (1/2) sum_i m_i Phi(x_i), or nan if the drift has no potential Phi.
        """
        if not isinstance(y, Dual):
            return self.energy(y)
        x, masses = self.points(y), self.masses(y)
        external = any(not part.interacts for _, part in self._drift.terms)
        if not (external or self._drift.why_no_potential(self.dimension, t)):
            with suppress(MeanfieldError):
                potential = self._sums.potential(x, masses, self.inside(t))
                return (0.5 * (masses * potential).sum(axis=-1)).reshape(self.like.shape)
        unknown = np.full((1 + len(y.changes), *self.like.shape), np.nan)
        return Dual.of_stack(unknown)


IN_FIGURES = (
    *("order_parameter", "mean_cosine", "speed", "cluster_count", "interaction_energy"),
    *("effective_rank", "spread", "mean_radius", "mass"),
)


@njit(**WITHIN, fastmath={"contract", "reassoc"})
def _length(vector: np.ndarray) -> float:
    """Euclidean length of a vector."""
    square = 0.0
    for c in range(vector.size):
        square += vector[c] * vector[c]
    return np.sqrt(square)


@differentiable(lambda x, dx, length: (x * dx).sum(axis=-1) / length)
@njit(cache=True, nogil=True)
def lengths(x: np.ndarray) -> np.ndarray:
    """|x| of vectors (R, n, d), as (R, n)."""
    result = np.empty(x.shape[:2])
    for r in range(x.shape[0]):
        for i in range(x.shape[1]):
            result[r, i] = _length(x[r, i])
    return result


def _scales(values: np.ndarray) -> np.ndarray:
    """The largest modulus in each replica, (R, 1, ...); 1 where that is 0 or inf.

    Values are divided by it before they are squared, against overflow.
    """
    largest = np.abs(values).max(axis=tuple(range(1, values.ndim)), initial=0.0, keepdims=True)
    return np.where((largest > 0) & (largest < np.inf), largest, 1.0)
