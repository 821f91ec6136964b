"""Derivatives of a run by parameters and initial states, at every output."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from ..core.checks import as_called, as_given, fitting, takes
from ..core.errors import MeanfieldError
from ..dynamics.observables import MOMENT_COUNT
from ..models.changes import derivative_by
from ..models.transformer import Transformer
from ..spaces import Density
from ..spaces.indexed import Indexed
from .densities import name_of_kappa
from .flows import FlowTangents, checked_flow_tangents, flow_tangents_of
from .indexed import differentiated
from .journal import end_of
from .run_tangents import RunTangents
from .variation import Variation, alike


class Tangents(RunTangents[Variation]):
    """Derivatives of a run of densities, with fixed degrees: see `RunTangents`."""

    def _measured(self, name: str) -> list[dict[str, Any]]:
        """Derivatives of mass, moments, order_parameter, entropy, energies, minimum."""
        run = self._run
        if isinstance(run.final, Indexed):
            changes = self[name]
            return [_measured_by_index(*both) for both in zip(run.states, changes, strict=True)]
        pairs = zip(run.states, self[name], self.t, strict=True)
        return [_measured(run.model, mu, h, name, t) for mu, h, t in pairs]


def checked_tangents(tangents: Any, model: Transformer, state: Any, motion: Any) -> dict[str, Any]:
    """The checked tangents by key: names of parameters, and coefficients of directions.

    For a motion in coordinates, directions are changes of the state: see `checked_flow_tangents`.

    Raises
    ------
    TypeError, ValueError
        For tangents that are neither parameters nor directions.
    MeanfieldError
        For runs that have no derivatives.
    """
    many = isinstance(tangents, Sequence) and not isinstance(tangents, str)
    fitting("tangents", tangents, 'a list such as ["beta", "kappa"]', many, TypeError)
    if not len(tangents):
        return {}
    names = [given for given in tangents if isinstance(given, str)]
    fitting("tangents", tangents, "each parameter once", len(set(names)) == len(names))
    if not motion.semilinear:
        return checked_flow_tangents(tangents, motion, state)
    differentiated(state).check(motion)
    found: dict[str, Any] = {}
    directions = 0
    for given in tangents:
        if isinstance(given, str):
            found[checked_parameter("tangents", given, motion, ", or directions")] = given
        else:
            found[f"direction_{directions}"] = _direction(given, state)
            directions += 1
    return found


def check_state(state: Any) -> None:
    """Raise MeanfieldError for states whose runs have no gradients."""
    if not isinstance(state, Density):
        raise MeanfieldError(
            f"Gradients of runs are known for a Density; got a run of {type(state).__name__}. Ask "
            "for tangents, solve(..., tangents=[...]), in the directions that matter."
        )


def checked_parameter(argument: str, name: str, motion: Any, more: str = "") -> str:
    """The name, if runs have a derivative by this parameter; else ValueError.

    `argument` is the argument to name in the message, `more` an addition to the list of parameters.
    """
    kind, model = differentiated(motion.like), motion.model
    known = [*kind.parameters_of(motion), *kind.parameters_of_nodes(motion)]
    wanted, advice = f"parameters of the model, {known}{more}", ""
    fitting(argument, name, f"names of {wanted}", isinstance(name, str), TypeError)
    if name == "kappa" and "kappa[0]" not in known:
        reason = "is a function of time" if model.smooth_noise else "is infinite: there is no noise"
        inside = "" if model.smooth_noise or not model.shape else " in some member"
        advice = f"kappa {reason}{inside}."
    fitting(argument, name, wanted, name in known, advice=advice)
    return str(name)


def _direction(given: Any, state: Density) -> np.ndarray:
    """Coefficients (*ensemble, modes) of a direction in which the initial density changes."""
    space = state.space
    wanted = (
        "the name of a parameter, a Density to move towards, a Variation, a function of unit "
        f"vectors (N, d), or coefficients (..., {space.degrees.size})"
    )
    if isinstance(given, Density | Variation):
        fitting("tangents", given, f"on {space!r}", alike(given.space, space))
        coefficients = given.resample(space.degree).coefficients
        if isinstance(given, Density):
            coefficients = coefficients - state.coefficients
    elif isinstance(given, Callable):  # type: ignore[arg-type]
        if not takes(given, 1):
            advice = ", space.indexed(f, index)" if isinstance(state, Indexed) else ""
            raise TypeError(
                "tangents: a function that is a direction is one of unit vectors (N, d) alone; got "
                f"{as_called(given)}. Else give a density to move towards{advice}."
            )
        values = np.asarray(space.function_values(given, space.points))
        real = values.dtype.kind != "c" and values.shape == space.weights.shape
        if not (real and np.isfinite(values).all()):
            raise ValueError(
                "tangents: a function of unit vectors (N, d) must have one finite real value for "
                f"each, ({space.weights.size},) here; got {values.dtype} of {values.shape}, "
                f"{np.count_nonzero(~np.isfinite(values))} of them not finite."
            )
        coefficients = space.to_coefficients(values)
    else:
        try:
            coefficients = np.asarray(given)
        except (TypeError, ValueError):  # a state of another kind, or rows of unequal lengths
            coefficients = np.empty(0, object)
        numbers = coefficients.dtype.kind in "fiuc" and np.isfinite(coefficients).all()
        fits = coefficients.shape[-1:] == (space.degrees.size,)
        if not (numbers and fits):
            raise TypeError(f"tangents must have {wanted}; got {as_given(given)}.")
        if np.imag(coefficients)[..., space.real_modes].any():
            raise ValueError(
                "tangents: coefficients must be those of a real function, without imaginary parts "
                f"where a harmonic is real; got {as_given(given)}."
            )
        coefficients = coefficients if space.dtype.kind == "c" else coefficients.real
    try:
        return np.broadcast_to(coefficients, state.coefficients.shape).astype(space.dtype)
    except ValueError:
        raise ValueError(
            f"tangents: directions must broadcast with the ensemble {state.shape}; got one of "
            f"shape {coefficients.shape[:-1]}."
        ) from None


def tangents_of(
    run: Any, journal: Any, initial: Any, tangents: dict[str, Any], motion: Any
) -> Tangents | FlowTangents:
    """The derivatives of a run from `initial` along its accepted steps."""
    if not motion.semilinear:
        return flow_tangents_of(run, motion, journal, initial, tangents)
    model, shape, elapsed = run.model, initial.shape, run.t - run.options["t_start"]
    parameters = [name for name in tangents.values() if isinstance(name, str)]
    kind, rows = differentiated(initial), [{} for _ in elapsed]  # type: ignore[var-annotated]
    shared: dict[Any, Any] | None = None if model.drift.shape else {}
    for index in np.ndindex(*shape):
        start, steps = run.options["t_start"], journal.member(index)
        until = np.minimum(elapsed, end_of(run, journal, index) - start)
        given = initial, index, steps, parameters, start
        member = kind(motion, *given, kept=shared)
        own = [h if isinstance(h, str) else h[index] for h in tangents.values()]
        for row, found in zip(rows, member.tangents(until, own), strict=True):
            row[index] = found[1:]
    result: dict[str, list[Variation]] = {name: [] for name in tangents}
    for row, state in zip(rows, run.states, strict=True):
        space = state.space
        for i, name in enumerate(tangents):
            found = np.empty((*shape, space.degrees.size), space.dtype)
            for index in np.ndindex(*shape):
                values = row[index][i]
                found[index] = space.with_modes(values.size).resample(values, space.degree)
            result[name].append(kind.variation(space, found))
    return Tangents(run, {name: tuple(all_) for name, all_ in result.items()})


def _measured_by_index(mu: Indexed, h: Variation) -> dict[str, Any]:
    """Derivatives of the observables of indexed densities mu in the direction h."""
    space, weights = mu.slice_space, mu.weights
    each, change = mu.each, mu.space.split(h.coefficients)

    def moments(c: np.ndarray, along: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of the moments, and of |moment 1|."""
        degrees = range(1, MOMENT_COUNT + 1)
        first = space.scalar_moment(c, 1)
        found = np.stack([space.scalar_moment_change(c, along, k) for k in degrees], axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            turned = (np.conj(first) * found[..., 0]).real / np.abs(first)
        return found.astype(complex), turned

    whole, turned = moments(weights @ each, weights @ change)
    by_index, turned_by_index = moments(each, change)
    values, moved = mu.values, h.values
    judged = mu.space.judged_values(mu.coefficients, values)
    lowest = np.flatnonzero(mu.space.judged)[judged.argmin(axis=-1)][..., None]
    return {
        "moment": whole,
        "order_parameter": turned,
        "moment_by_index": by_index,
        "order_by_index": turned_by_index,
        "minimum": np.take_along_axis(moved, lowest, axis=-1)[..., 0],
        "mass": change[..., 0].real @ weights,
    }


def _measured(model: Transformer, mu: Density, h: Variation, name: str, t: float) -> dict[str, Any]:
    """Derivatives of the observables of a density mu in the direction h.

    `name` is the parameter that changes at the rate 1 with it, or a key of another direction.
    """
    space, values, change, degrees = mu.space, mu.values, h.values, range(1, MOMENT_COUNT + 1)
    c, along = mu.coefficients, h.coefficients
    moments = np.stack([space.scalar_moment(c, k) for k in degrees], -1)
    changes = np.stack([space.scalar_moment_change(c, along, k) for k in degrees], -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        turned = (np.conj(moments[..., 0]) * changes[..., 0]).real / np.abs(moments[..., 0])
        logarithm = np.log(np.abs(values))
    by_entropy = (change * (1 + logarithm)) @ space.weights
    by_energy = free = np.full(h.shape, np.nan)
    if model.drift.is_zonal:
        drift, of, kappa = (
            model.drift.as_zonal(),
            (space.degree, space.dimension),
            model.kappa_at(t),
        )
        weights = drift.interaction(*of)[..., space.degrees]
        by_energy = (weights * space.parseval * (np.conj(c) * along).real).sum(axis=-1)
        if name in drift.parameters:
            power = 0.5 * space.parseval * np.abs(c) ** 2
            changed = interaction_changes(drift, name, *of)[..., space.degrees]
            by_energy = by_energy + (changed * power).sum(axis=-1)
        if drift.gradient_flow and model.noise.laplacian and not model.extras:
            free = by_entropy / kappa - by_energy
            if name == name_of_kappa(model, t):
                free = free - (values * logarithm) @ space.weights / kappa**2
    lowest = np.arange(values.shape[-1])[space.judged]
    lowest = lowest[space.judged_values(c, values).argmin(axis=-1)]
    return {
        "mass": h.mass,
        "moment": changes.astype(complex),
        "order_parameter": turned,
        "entropy": by_entropy,
        "interaction_energy": by_energy,
        "free_energy": free,
        "minimum": np.take_along_axis(change, lowest[..., None], axis=-1)[..., 0],
    }


def interaction_changes(drift: Any, name: str, degree: int, dimension: int) -> np.ndarray:
    """Derivatives by a parameter of the multipliers of W in the energy, (*shape, degree + 1).

    They are nan for members without a derivative: exp(beta t)/beta has no limit at beta = 0.
    """
    found = np.full((*drift.shape, degree + 1), np.nan)
    for index in np.ndindex(*drift.shape):
        one = drift.member(index)
        with suppress(MeanfieldError):
            found[index] = derivative_by(
                one, name, lambda many: many.interaction(degree, dimension)
            )
    return found
