"""Tokens and tangents of them: what `tokens` computes, differentiated.

Changes dx of points are vectors of R^d, those of directions tangential; radii and logarithms of
masses change as the coordinates do that they are. Without a reaction masses are no coordinates, and
their changes are those at the start.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.checks import as_given, fitting
from ..core.errors import MeanfieldError
from ..models.normalisation import Sublayer
from ..models.pointwise import change_of
from ..states import State, Tokens
from ..steppers import Layers, LieTrotter, Splitting
from ..steppers.splitting import kutta_step
from .linearised import OFF_TANGENT, LinearisedMotion
from .observables import rank_change


class LinearisedTokens(LinearisedMotion):
    """The velocities of `TokenMotion`, and their derivatives."""

    arrays = "x", "masses", "radii"

    def setup(self) -> None:
        """What sums over tokens, with tangents."""
        motion = self.motion
        own = [None if name == "reaction" else name for name in self.names]
        self._sums = motion._sums.with_tangents(own)
        self._by_reaction = np.array([float(name == "reaction") for name in self.names])
        shape = (len(self.names), *motion._masses.shape)
        self._by_masses = np.zeros(shape)
        for a, direction in enumerate(self.directions):
            if direction is not None and "masses" in direction:
                self._by_masses[a] = direction["masses"].reshape(shape[1:])

    # Coordinates ---------------------------------------------------------------------------

    def first(self, state: Any) -> np.ndarray:
        motion = self.motion
        y = motion.coordinates(state)
        Y = np.zeros((1 + len(self.names), *y.shape))
        Y[0], d = y, motion.dimension
        for a, direction in enumerate(self.directions):
            if direction is None:
                continue
            if "x" in direction:
                Y[1 + a, ..., :d] = direction["x"].reshape(*y.shape[:2], d)
            if "radii" in direction:
                Y[1 + a, ..., d] = direction["radii"].reshape(y.shape[:2])
            if motion.model.reaction and "masses" in direction:
                Y[1 + a, ..., -1] = direction["masses"].reshape(y.shape[:2]) / motion.masses(y)
        return Y

    def changes(self, Y: np.ndarray) -> list[dict[str, np.ndarray]]:
        motion, shape = self.motion, (*self.motion.like.shape, Y.shape[2])
        d, by_masses = motion.dimension, self._mass_changes(Y, motion.masses(Y[0]))
        found = []
        for a in range(len(self.names)):
            own = {"x": Y[1 + a, ..., :d].reshape(*shape, d).copy()}
            if motion.has_radii:
                own["radii"] = Y[1 + a, ..., d].reshape(shape).copy()
            own["masses"] = by_masses[a].reshape(shape).copy()
            found.append(own)
        return found

    def _mass_changes(self, Y: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Those (p, replicas, n) of the masses."""
        if not self.motion.model.reaction:
            return self._by_masses
        logs = Y[1:, ..., -1]
        return masses * (logs - (masses * logs).sum(axis=-1, keepdims=True))

    def _given(self, Y: np.ndarray) -> tuple[np.ndarray, ...]:
        """Points and masses, and their changes."""
        motion, d = self.motion, self.motion.dimension
        masses = motion.masses(Y[0])
        dx = np.ascontiguousarray(Y[1:, ..., :d])
        return motion.points(Y[0]), masses, dx, self._mass_changes(Y, masses)

    # Motion --------------------------------------------------------------------------------

    def velocity(self, Y: np.ndarray, t: float) -> np.ndarray:
        rates = self.attention_rates(Y, t)
        if self.motion.model.feedforward is not None:
            rates += self.feedforward_rates(Y, t)
        return rates

    def velocity_beside(
        self, Y: np.ndarray, t: float, known: np.ndarray, beside: np.ndarray | None
    ) -> np.ndarray:
        model = self.motion.model
        alone = self.motion._exact and model.feedforward is None and not model.reaction
        if not alone or not getattr(self._sums, "takes_velocities", False):
            return self.velocity(Y, t)
        known = known.reshape(Y[0].shape)
        return stacked(*self._sums.velocity(*self._given(Y), known, beside))

    def attention_rates(self, Y: np.ndarray, t: float) -> np.ndarray:
        """Those by attention, and by reaction."""
        motion, given = self.motion, self._given(Y)
        if motion._exact:
            rates = stacked(*self._sums.velocity(*given))
        else:
            rates = self._followed(Y, t, self._attention_update(given, t))
        if motion.model.reaction:
            growth = self.reaction_rates(given, t)[..., None]
            rates = np.concatenate([rates[..., : Y.shape[-1] - 1], growth], axis=-1)
        return rates

    def reaction_rates(self, given: tuple[np.ndarray, ...], t: float) -> np.ndarray:
        """Those of the logarithms of masses, alpha (Phi - int Phi dmu)."""
        masses, dm, alpha = given[1], given[3], self.motion.model.reaction
        potential, change = self._sums.potential(*given, self.motion.inside(t))
        excess = potential - (masses * potential).sum(axis=-1, keepdims=True)
        mean = (dm * potential + masses * change).sum(axis=-1, keepdims=True)
        by = self._by_reaction[:, None, None] * excess
        return stacked(alpha * excess, alpha * (change - mean) + by)

    def feedforward_rates(self, Y: np.ndarray, t: float) -> np.ndarray:
        """Those by the feed-forward map."""
        return self._followed(Y, t, self._feedforward_update(Y, t))

    def _attention_update(self, given: tuple[np.ndarray, ...], t: float) -> np.ndarray:
        motion, (x, masses, dx, dm) = self.motion, given
        seen = motion.model.normalisation.before_tangents(motion.inside(t), x, dx, "attention")
        A, dA = self._sums.attention(motion.inside(t), seen[0], masses, seen[1], dm)
        needed = motion.model.normalisation.needs_direction
        return self._normalised(t, A, dA, motion._drift.output_size(t) if needed else 0.0)

    def _feedforward_update(self, Y: np.ndarray, t: float) -> np.ndarray:
        motion, d = self.motion, self.motion.dimension
        inside = motion.inside(t)
        x, dx = motion.model.normalisation.before_tangents(
            inside, motion.points(Y[0]), np.ascontiguousarray(Y[1:, ..., :d]), "feedforward"
        )
        change = change_of("feedforward", motion.model.feedforward_in(inside), x, dx)
        return self._normalised(t, motion.model.feedforward_at(x, inside), change)

    def _normalised(self, t: float, A: np.ndarray, dA: np.ndarray, size: float = 0.0):
        motion = self.motion
        if not motion.on_sphere:
            return stacked(A, dA)
        normalisation = motion.model.normalisation
        return stacked(*normalisation.update_tangents(motion.inside(t), A, dA, size))

    def _followed(self, Y: np.ndarray, t: float, u: np.ndarray) -> np.ndarray:
        """theta' = P u / r and r' = <theta, u>, or P u and 0 where radii are fixed."""
        rates, d = np.zeros_like(Y), self.motion.dimension
        if not self.motion.on_sphere:
            rates[..., :d] = u
            return rates
        x, dx = Y[0, ..., :d], Y[1:, ..., :d]
        along = (x * u[0]).sum(axis=-1)
        by_along = (dx * u[0] + x * u[1:]).sum(axis=-1)
        v = u[0] - along[..., None] * x
        dv = u[1:] - by_along[..., None] * x - along[..., None] * dx
        if self.motion.grows(t):
            r, dr = Y[0, ..., d, None], Y[1:, ..., d, None]
            r = np.where(r > 0, r, np.nan)
            v = v / r
            dv = (dv - v * dr) / r
            rates[..., d] = stacked(along, by_along)
        rates[..., :d] = stacked(v, dv)
        return rates

    def projected(self, Y: np.ndarray) -> np.ndarray:
        if self.motion.on_sphere:
            self._put_on_sphere(Y)
        return Y

    def _put_on_sphere(self, Y: np.ndarray) -> np.ndarray:
        """x/|x|, in place; the lengths and their changes, (1 + p, replicas, n)."""
        d = self.motion.dimension
        length = np.linalg.norm(Y[0, ..., :d], axis=-1)
        Y[0, ..., :d] /= length[..., None]
        x, dx = Y[0, ..., :d], Y[1:, ..., :d]
        along = (x * dx).sum(axis=-1)
        dx -= along[..., None] * x
        dx /= length[..., None]
        return stacked(length, along)

    def merged(self, Y: np.ndarray, labels: np.ndarray) -> tuple["LinearisedTokens", np.ndarray]:
        """Their centres of mass, put back on the sphere, and mean radii; see `solving.merging`."""
        motion = self.motion
        if motion.model.reaction or self._by_masses.any():
            raise MeanfieldError(
                "Derivatives of runs in which tokens merged are known where masses do not change: "
                "solve without merge=, or without reaction and changes of masses."
            )
        masses, m = motion._masses[0], np.zeros(labels.max() + 1)
        np.add.at(m, labels, masses)
        weights = np.where(m[labels] > 0, masses, 1.0)
        sums = np.zeros((len(m), len(labels)))
        sums[labels, np.arange(len(labels))] = weights
        new = (sums / sums.sum(axis=1, keepdims=True)) @ Y
        if motion.on_sphere:
            self._put_on_sphere(new)
        d = motion.dimension
        radii = new[0, 0, :, d] if motion.has_radii else None
        rows = Tokens(new[0, 0, :, :d], m, radii, on_sphere=motion.on_sphere)
        return LinearisedTokens(motion.with_state(rows), self.names, [None] * len(self.names)), new

    # For Lyapunov exponents ----------------------------------------------------------------

    @property
    def members(self) -> tuple[int, ...]:
        return self.motion.like.shape

    def tangent_space(self, state: Any) -> tuple[int, Callable]:
        motion, (n, d) = self.motion, state.x.shape[-2:]
        if motion.model.reaction:
            raise MeanfieldError(
                "Lyapunov exponents of tokens are known without a reaction, under which the "
                "logarithms of masses have a constant in common that changes nothing."
            )

        def draw(rng: np.random.Generator) -> dict[str, np.ndarray]:
            dx = rng.standard_normal(state.x.shape)
            if state.on_sphere:
                dx -= (dx * state.x).sum(axis=-1, keepdims=True) * state.x
            found = {"x": dx}
            if motion.has_radii:
                found["radii"] = rng.standard_normal(state.x.shape[:-1])
            return found

        return n * (d - bool(state.on_sphere) + bool(motion.has_radii)), draw

    def vectors(self, Y: np.ndarray) -> np.ndarray:
        return Y[1:].swapaxes(0, 1).reshape(Y.shape[1], len(Y) - 1, -1)

    # Measured ------------------------------------------------------------------------------

    def measured(
        self, state: Any, change: Mapping[str, np.ndarray], name: str | None, t: float
    ) -> dict[str, np.ndarray]:
        """See `token_observables`."""
        return token_observables(self, state, change, name, t)

    def energy_change(
        self, state: Any, change: Mapping[str, np.ndarray], name: str | None, t: float
    ) -> np.ndarray:
        """That of the interaction energy (1/2) sum_i m_i Phi(x_i); nan where no Phi is known."""
        motion, d = self.motion, self.motion.dimension
        if motion._drift.why_no_potential(d, t):
            return np.full(state.shape, np.nan)
        sums = motion._sums.with_tangents([None if name == "reaction" else name])
        shape = motion._masses.shape
        given = (
            np.ascontiguousarray(state.x.reshape(*shape, d)),
            np.ascontiguousarray(state.masses.reshape(shape)),
            np.ascontiguousarray(change["x"].reshape(1, *shape, d)),
            np.ascontiguousarray(change["masses"].reshape(1, *shape)),
        )
        try:
            potential, by = sums.potential(*given, motion.inside(t))
        except MeanfieldError:
            return np.full(state.shape, np.nan)
        energy = 0.5 * (given[3][0] * potential + given[1] * by[0]).sum(axis=-1)
        return energy.reshape(state.shape)

    # Steps of a given length ---------------------------------------------------------------

    def step(self, scheme: Splitting, Y: np.ndarray, t: float, dt: float) -> np.ndarray:
        return {Layers: self.layer_step, LieTrotter: self.lie_trotter_step}[scheme](Y, t, dt)

    def layer_step(self, Y: np.ndarray, t: float, step: float) -> np.ndarray:
        """One layer of a Transformer: see `TokenMotion.layer_step`."""
        new, given = Y.copy(), self._given(Y)
        if self.motion.model.reaction:
            new[..., -1] += step * self.reaction_rates(given, t)
        self._add(new, t, step * self._attention_update(given, t), "attention")
        if self.motion.model.feedforward is not None:
            self._add(new, t, step * self._feedforward_update(new, t), "feedforward")
        return new

    def _add(self, Y: np.ndarray, t: float, change: np.ndarray, sublayer: Sublayer) -> None:
        """Add what a sublayer gives to the hidden states, in place, and normalise."""
        d, grows = self.motion.dimension, self.motion.grows(t)
        if grows:
            r = Y[..., d, None]
            Y[1:, ..., :d] = r[0] * Y[1:, ..., :d] + r[1:] * Y[0, ..., :d]
            Y[0, ..., :d] *= r[0]
        Y[..., :d] += change
        if self.motion.on_sphere:
            lengths = self._put_on_sphere(Y)
            if grows:
                Y[..., d] = lengths
        else:
            kept = self.motion.model.normalisation.after_tangents
            inside = self.motion.inside(t)
            Y[..., :d] = stacked(*kept(inside, Y[0, ..., :d], Y[1:, ..., :d], sublayer))

    def lie_trotter_step(self, Y: np.ndarray, t: float, dt: float) -> np.ndarray:
        """Attention for dt, then the feed-forward map for dt."""
        Y = self.projected(kutta_step(self.attention_rates, Y, t, dt))
        if self.motion.model.feedforward is not None:
            Y = self.projected(kutta_step(self.feedforward_rates, Y, t, dt))
        return Y


def stacked(value: np.ndarray, change: np.ndarray) -> np.ndarray:
    """One array (1 + p, ...) of a value and its changes (p, ...)."""
    return np.concatenate([value[None], change])


# Directions --------------------------------------------------------------------------------------


def token_direction(motion: Any, state: Any, given: Any) -> dict[str, np.ndarray]:
    """A change of initial tokens: an array of that of x, a mapping, or a function of points.

    Raises
    ------
    TypeError, ValueError
        For other things, other shapes, changes of unit vectors that are not tangential, and those
        of masses whose sum is not 0.
    """
    x = state.x
    if callable(given) and not isinstance(given, Mapping):
        values = np.asarray(given(x), dtype=float)
        fitting(
            "tangents", values.shape, f"vectors at the tokens, {x.shape}", values.shape == x.shape
        )
        return {
            "x": values - (values * x).sum(-1, keepdims=True) * x if state.on_sphere else values
        }
    given = dict(given) if isinstance(given, Mapping) else {"x": given}
    known = ["x", "masses", *(["radii"] if motion.has_radii else [])]
    wrong = [name for name in given if name not in known]
    fitting("tangents", wrong, f"changes of {known}", not wrong)
    found = {}
    for name, value in given.items():
        shape = x.shape if name == "x" else x.shape[:-1]
        array = np.empty(0) if isinstance(value, State) else np.asarray(value)
        fits = array.dtype.kind in "fiu" and np.isfinite(array).all()
        if not fits or array.shape[-len(shape[-1:]) :] != shape[-1:]:
            raise TypeError(
                f"tangents must have names of parameters, or changes of the tokens: of {name} an "
                f"array {shape}; got {as_given(value)}."
            )
        try:
            found[name] = np.broadcast_to(array, shape).astype(float)
        except ValueError:
            raise ValueError(
                f"tangents: a change of {name} must broadcast to {shape}; got {array.shape}."
            ) from None
    if state.on_sphere and "x" in found:
        along = np.abs((found["x"] * x).sum(axis=-1)).max()
        largest = np.abs(found["x"]).max()
        if along > OFF_TANGENT * largest:
            raise ValueError(
                "tangents: changes of unit vectors x are tangential, <x, dx> = 0; got "
                f"{along:.1e} beside changes up to {largest:.1e}. Subtract <x, dx> x."
            )
    if "masses" in found:
        total = np.abs(found["masses"].sum(axis=-1)).max()
        scale = np.abs(found["masses"]).max()
        fitting("tangents", total, "changes of masses of sum 0", total <= OFF_TANGENT * scale)
    return found


# Observables -------------------------------------------------------------------------------------


def token_observables(
    linearised: LinearisedTokens,
    state: Any,
    change: Mapping[str, np.ndarray],
    name: str | None,
    t: float,
) -> dict[str, np.ndarray]:
    """Derivatives of observables of tokens that change, each of the shape of the replicas.

    Parameters
    ----------
    linearised : LinearisedTokens
    state : Tokens
    change : mapping
        Of x, masses and, where there are any, of radii.
    name : str or None
        The parameter that changes too.
    t : float

    Returns
    -------
    dict of ndarray
        order_parameter, mean_cosine, interaction_energy, effective_rank and mass; spread in R^d,
        mean_radius where there are radii. nan where there is no derivative.
    """
    x, m, dx, dm = state.x, state.masses, change["x"], change["masses"]
    mean = np.einsum("...i,...ic->...c", m, x)
    moved = np.einsum("...i,...ic->...c", dm, x) + np.einsum("...i,...ic->...c", m, dx)
    size = np.linalg.norm(mean, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = {
            "order_parameter": (mean * moved).sum(axis=-1) / size,
            "mean_cosine": _cosine_change(state, dx, dm),
            "interaction_energy": linearised.energy_change(state, change, name, t),
            "effective_rank": _rank_change(x, m, dx, dm),
        }
        if not state.on_sphere:
            gaps, own = x - mean[..., None, :], dx - moved[..., None, :]
            square = (m * (gaps**2).sum(axis=-1)).sum(axis=-1)
            by = (dm * (gaps**2).sum(axis=-1) + 2 * m * (gaps * own).sum(axis=-1)).sum(axis=-1)
            found["spread"] = by / (2 * np.sqrt(square))
    if state.radii is not None:
        found["mean_radius"] = (dm * state.radii + m * change["radii"]).sum(axis=-1)
    found["mass"] = dm.sum(axis=-1)
    return found


def _cosine_change(state: Any, dx: np.ndarray, dm: np.ndarray) -> np.ndarray:
    """That of (|M|^2 - q) / (1 - q), M = sum_i m_i u_i, q = sum_i m_i^2, over directed tokens."""
    length = np.linalg.norm(state.x, axis=-1, keepdims=True)
    some = length[..., 0] > 0
    length = np.where(length > 0, length, 1.0)
    u, m, dm = state.x / length, np.where(some, state.masses, 0.0), np.where(some, dm, 0.0)
    du = (dx - (u * dx).sum(axis=-1, keepdims=True) * u) / length
    M = np.einsum("...i,...ic->...c", m, u)
    dM = np.einsum("...i,...ic->...c", dm, u) + np.einsum("...i,...ic->...c", m, du)
    own, by_own, total = (m**2).sum(axis=-1), 2 * (m * dm).sum(axis=-1), m.sum(axis=-1)
    pairs = total**2 - own
    change = 2 * (M * dM).sum(axis=-1) - by_own
    cosine = ((M**2).sum(axis=-1) - own) / pairs
    return (change - cosine * (2 * total * dm.sum(axis=-1) - by_own)) / pairs


def _rank_change(x: np.ndarray, m: np.ndarray, dx: np.ndarray, dm: np.ndarray) -> np.ndarray:
    """That of the effective rank of sum_i m_i x_i x_i^T."""
    M = np.einsum("...i,...ia,...ib->...ab", m, x, x)
    half = np.einsum("...i,...ia,...ib->...ab", m, x, dx)
    return rank_change(
        M, np.einsum("...i,...ia,...ib->...ab", dm, x, x) + half + half.swapaxes(-1, -2)
    )
