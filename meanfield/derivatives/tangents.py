"""Derivatives of a run by parameters and initial states, at every output."""

from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from ..core.annotations import FromAbove, Function, MovedState, Narrowed, Observations, UserValue
from ..core.checks import as_called, require, takes
from ..core.dual import Array
from ..core.errors import MeanfieldError
from ..dynamics.observables import MOMENT_COUNT
from ..models.changes import derivative_by
from ..models.transformer import Transformer
from ..models.zonal import ZonalDrift
from ..spaces import Density, Space
from ..spaces.indexed import Indexed
from ..spaces.validity import log_modulus
from .densities import name_of_kappa
from .flows import FlowTangents, check_flow, flow_tangents_of
from .indexed import differentiated
from .journal import end_of
from .run_tangents import RunTangents
from .steps import DifferentiatedNonlinear
from .variation import Variation, comparable


class Tangents(RunTangents[Variation]):
    """Derivatives of a run of densities, with fixed degrees: see `RunTangents`."""

    def _measured(self, name: str) -> list[Observations]:
        """Derivatives of mass, moments, order_parameter, entropy, energies, minimum."""
        run = self._run
        if isinstance(run.final, Indexed):
            changes = self[name]
            return [_measured_by_index(*both) for both in zip(run.states, changes, strict=True)]
        pairs = zip(run.states, self[name], self.t, strict=True)
        return [_measured(run.model, mu, h, name, t) for mu, h, t in pairs]


def checked_tangents(
    tangents: UserValue, model: Transformer, state: MovedState, motion: Narrowed
) -> dict[str, UserValue]:
    """The checked tangents by key: names of parameters, and coefficients of directions.

    For a motion in coordinates, directions are changes of the state: see `Motion.direction`.

    Raises
    ------
    TypeError, ValueError
        For tangents that are neither parameters nor directions.
    MeanfieldError
        For runs that have no derivatives.
    """
    fits = isinstance(tangents, Sequence) and not isinstance(tangents, str)
    require("tangents", tangents, 'a list such as ["beta", "kappa"]', fits, TypeError)
    if not len(tangents):
        return {}
    names = [tangent for tangent in tangents if isinstance(tangent, str)]
    require("tangents", tangents, "each parameter once", len(set(names)) == len(names))
    if motion.semilinear:
        differentiated(state).check(motion)
    else:
        motion.linearised([], [])  # refuses the model
    direction = _direction if motion.semilinear else motion.direction
    checked: dict[str, UserValue] = {}
    for tangent in tangents:
        if isinstance(tangent, str):
            checked[checked_parameter("tangents", tangent, motion, ", or directions")] = tangent
        else:
            number = sum(name.startswith("direction_") for name in checked)
            checked[f"direction_{number}"] = direction(tangent, state)
    if not motion.semilinear:
        check_flow(checked, motion, state)
    return checked


def checked_parameter(argument: str, name: str, motion: Narrowed, more: str = "") -> str:
    """The name, if runs have a derivative by this parameter; else ValueError.

    `argument` is the argument to name in the message, `more` an addition to the list of parameters.
    """
    model = motion.model
    if motion.semilinear:
        kind = differentiated(motion.like)
        names = [*kind.parameters_of(motion), *kind.parameters_of_nodes(motion)]
    else:
        names = [*model.drift.parameters, *(["reaction"] if model.reaction else [])]
    expected, advice = f"parameters of the model, {names}{more}", ""
    require(argument, name, f"names of {expected}", isinstance(name, str), TypeError)
    if name == "kappa" and "kappa[0]" not in names:
        reason = "is a function of time" if model.smooth_noise else "is infinite: there is no noise"
        member_text = "" if model.smooth_noise or not model.shape else " in some member"
        advice = f"kappa {reason}{member_text}."
    require(argument, name, expected, name in names, advice=advice)
    return str(name)


def _direction(direction: UserValue, state: Density) -> np.ndarray:
    """Coefficients (*ensemble, modes) of a direction in which the initial density changes."""
    space = state.space
    if isinstance(direction, Density | Variation):
        require("tangents", direction, f"on {space!r}", comparable(direction.space, space))
        coefficients = direction.resample(space.degree).coefficients
        if isinstance(direction, Density):
            coefficients = coefficients - state.coefficients
    elif callable(direction):
        coefficients = _coefficients_of_function(direction, space, isinstance(state, Indexed))
    else:
        coefficients = _checked_coefficients(direction, space)
    try:
        return np.broadcast_to(coefficients, state.coefficients.shape).astype(space.dtype)
    except ValueError:
        raise ValueError(
            f"tangents: directions must broadcast with the ensemble {state.shape}; got one of "
            f"shape {coefficients.shape[:-1]}."
        ) from None


def _coefficients_of_function(f: Function, space: Space, indexed: bool) -> np.ndarray:
    """Coefficients of a checked function of unit vectors; TypeError or ValueError for others."""
    subject, single = "Functions in tangents", "of unit vectors (N, d) alone"
    advice = "Else give densities to move towards, space.indexed(f, index)." if indexed else ""
    require(subject, as_called(f), single, takes(f, 1), TypeError, advice)
    values = np.asarray(space.function_values(f, space.points))
    fits = values.dtype.kind != "c" and values.shape == space.weights.shape
    one_each = f"of one finite real value for each of {space.weights.size} unit vectors"
    require(subject, values, one_each, fits and np.isfinite(values).all())
    return space.to_coefficients(values)


def _checked_coefficients(values: UserValue, space: Space) -> np.ndarray:
    """Coefficients (..., modes) of real functions; TypeError or ValueError for other values."""
    try:
        coefficients = np.asarray(values)
    except (TypeError, ValueError):  # a state of another kind, or rows of unequal lengths
        coefficients = np.empty(0, object)
    numbers = coefficients.dtype.kind in "fiuc" and np.isfinite(coefficients).all()
    expected = (
        "lists of names of parameters, densities to move towards, Variations, functions of unit "
        f"vectors (N, d), or coefficients (..., {space.degrees.size})"
    )
    fits = numbers and coefficients.shape[-1:] == (space.degrees.size,)
    require("tangents", values, expected, fits, TypeError)
    real = not np.imag(coefficients)[..., space.real_modes].any()
    of_real = "coefficients of a real function, without imaginary parts of real harmonics"
    require("tangents", values, of_real, real)
    return coefficients if space.dtype.kind == "c" else coefficients.real


def tangents_of(
    run: FromAbove,
    journal: Narrowed,
    initial: MovedState,
    tangents: dict[str, UserValue],
    motion: Narrowed,
) -> Tangents | FlowTangents:
    """The derivatives of a run from `initial` along its accepted steps."""
    if not motion.semilinear:
        return flow_tangents_of(run, motion, journal, initial, tangents)
    model, shape, elapsed = run.model, initial.shape, run.t - run.options["t_start"]
    parameters = [name for name in tangents.values() if isinstance(name, str)]
    kind, rows = differentiated(initial), [{} for _ in elapsed]  # type: ignore[var-annotated]
    cache: dict[object, DifferentiatedNonlinear] | None = None if model.drift.shape else {}
    for index in np.ndindex(*shape):
        start, steps = run.options["t_start"], journal.member(index)
        until = np.minimum(elapsed, end_of(run, journal, index) - start)
        arguments = initial, index, steps, parameters, start
        member = kind(motion, *arguments, cache=cache)
        starts = [h if isinstance(h, str) else h[index] for h in tangents.values()]
        for row, changes in zip(rows, member.tangents(until, starts), strict=True):
            row[index] = changes[1:]
    result: dict[str, list[Variation]] = {name: [] for name in tangents}
    for row, state in zip(rows, run.states, strict=True):
        space = state.space
        for i, name in enumerate(tangents):
            changes = np.empty((*shape, space.degrees.size), space.dtype)
            for index in np.ndindex(*shape):
                values = row[index][i]
                changes[index] = space.with_modes(values.size).resample(values, space.degree)
            result[name].append(kind.variation(space, changes))
    return Tangents(run, {name: tuple(all_) for name, all_ in result.items()})


def _moment_changes(space: Space, c: Array, direction: Array) -> tuple[Array, Array]:
    """Derivatives of the moments (..., 8) and of |moment 1|, in a direction from c."""
    degrees, first = range(1, MOMENT_COUNT + 1), space.scalar_moment(c, 1)
    changes = np.stack([space.scalar_moment_change(c, direction, k) for k in degrees], axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        of_modulus = (np.conj(first) * changes[..., 0]).real / np.abs(first)
    return changes.astype(complex), of_modulus


def _minimum_change(mu: Density, h: Variation) -> Array:
    """The derivative of the smallest value on the grid, (*ensemble,)."""
    judged = mu.space.judged_values(mu.coefficients, mu.values)
    lowest = np.arange(mu.values.shape[-1])[mu.space.judged][judged.argmin(axis=-1)]
    return np.take_along_axis(h.values, lowest[..., None], axis=-1)[..., 0]


def _measured_by_index(mu: Indexed, h: Variation) -> Observations:
    """Derivatives of the observables of indexed densities mu in the direction h."""
    space, weights, change = mu.slice_space, mu.weights, mu.space.split(h.coefficients)
    marginal = _moment_changes(space, weights @ mu.each, weights @ change)
    by_index = _moment_changes(space, mu.each, change)
    return {
        **dict(zip(("moment", "order_parameter"), marginal, strict=True)),
        **dict(zip(("moment_by_index", "order_by_index"), by_index, strict=True)),
        "minimum": _minimum_change(mu, h),
        "mass": change[..., 0].real @ weights,
    }


def _measured(model: Transformer, mu: Density, h: Variation, name: str, t: float) -> Observations:
    """Derivatives of the observables of a density mu in the direction h.

    `name` is the parameter that changes at the rate 1 with it, or a key of another direction.
    """
    space, values, c, direction = mu.space, mu.values, mu.coefficients, h.coefficients
    moments, order = _moment_changes(space, c, direction)
    logarithm = log_modulus(values)
    by_entropy = (h.values * (1 + logarithm)) @ space.weights
    by_energy = by_free_energy = np.full(h.shape, np.nan)
    if model.drift.is_zonal:
        drift, kappa = model.drift.as_zonal(), model.kappa_at(t)
        weights = space.interaction(drift)[..., space.levels]
        by_energy = (weights * space.parseval * (np.conj(c) * direction).real).sum(axis=-1)
        if name in drift.parameters:
            power = 0.5 * space.parseval * np.abs(c) ** 2
            slopes = interaction_changes(drift, name, space)[..., space.levels]
            by_energy = by_energy + (slopes * power).sum(axis=-1)
        if drift.gradient_flow and model.noise.laplacian and not model.extras:
            by_free_energy = by_entropy / kappa - by_energy
            if name == name_of_kappa(model, t):
                by_free_energy = by_free_energy - (values * logarithm) @ space.weights / kappa**2
    return {
        "mass": h.mass,
        "moment": moments,
        "order_parameter": order,
        "entropy": by_entropy,
        "interaction_energy": by_energy,
        "free_energy": by_free_energy,
        "minimum": _minimum_change(mu, h),
    }


def interaction_changes(drift: "ZonalDrift", name: str, space: Space) -> np.ndarray:
    """Derivatives by a parameter of the multipliers of W in the energy, (*shape, levels).

    They are nan for members without a derivative: exp(beta t)/beta has no limit at beta = 0.
    """
    changes = np.full((*drift.shape, space.level_degrees.size), np.nan)
    for index in np.ndindex(*drift.shape):
        member = drift.member(index)
        with suppress(MeanfieldError):
            changes[index] = derivative_by(member, name, space.interaction)
    return changes
