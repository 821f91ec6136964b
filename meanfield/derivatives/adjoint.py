"""Gradients of a scalar of the final state in the initial law and parameters, by the adjoint."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core.annotations import FromAbove, Narrowed, Values
from ..core.calls import with_hints
from ..core.checks import as_given, finite, real_array, require
from ..core.errors import MeanfieldError
from ..dynamics.motion import motion_for
from ..spaces import Density
from ..spaces.contract import Space
from ..spaces.indexed import Indexed
from .indexed import differentiated
from .journal import EnsembleJournal, Journal, end_of
from .steps import DifferentiatedNonlinear
from .tangents import checked_parameter
from .variation import Variation

if TYPE_CHECKING:
    from ..results.solution import Solution

STEPPED = 1e-9  # tolerance for the end of a run, relative to its last step


@dataclass(frozen=True)
class Functional:
    """A scalar function J of a density, with its first variation.

    Parameters
    ----------
    value : callable
        J(mu) of a single Density, a number.
    variation : callable
        mu -> the values (N,) at `mu.space.points` of the function dJ/dmu, with
        J(mu + h) = J(mu) + int (dJ/dmu) h + ...

    Examples
    --------
    The entropy:

    >>> entropy = Functional(
    ...     lambda mu: (mu.values * np.log(mu.values)) @ mu.space.weights,
    ...     lambda mu: 1 + np.log(mu.values),
    ... )
    """

    value: Callable[[Density], Values]
    variation: Callable[[Density], np.ndarray]

    def __post_init__(self) -> None:
        for name in ("value", "variation"):
            function = getattr(self, name)
            require(name, function, "a function of a Density", callable(function), TypeError)

    @classmethod
    def mean(
        cls, f: Callable[[np.ndarray], np.ndarray], position: float | None = None
    ) -> "Functional":
        """int f dmu of a real function of unit vectors (N, d).

        Given a position s, it is int f dmu_s, with the slice mu_s of `Indexed` densities. Its
        gradient by the initial densities is then the influence of all positions on s.

        Raises
        ------
        TypeError, ValueError
            If f is not a function, or position not a single number; on evaluation, if the density
            has no index, or position is not in its range.
        """
        require("f", f, "a function of unit vectors (N, d)", callable(f), TypeError)
        if position is None:
            return cls(lambda mu: mu.expect(f), lambda mu: _values_of(f, mu.space))
        if np.ndim(position):
            raise ValueError(
                "position must be one number, as a Functional is one: take a Functional.mean for "
                f"each of several positions; got position = {as_given(position)}."
            )
        s = finite("position", position)

        def checked(mu: Density) -> Indexed:
            """`mu`, if it is Indexed and has position s; TypeError or ValueError otherwise."""
            if not isinstance(mu, Indexed):
                raise TypeError(
                    f"position = {s:g} is that of a slice of Indexed densities; got "
                    f"{as_given(mu)}. Leave it out: Functional.mean(f)."
                )
            try:
                mu.index.interpolation(s)
            except ValueError as error:
                raise ValueError(f"position: {error}") from None
            return mu

        def variation(mu: Narrowed) -> np.ndarray:
            weights = checked(mu).index.interpolation(s) / mu.index.weights
            return np.outer(weights, _values_of(f, mu.slice_space)).ravel()

        return cls(lambda mu: checked(mu).at_position(s).expect(f), variation)


def _values_of(f: Callable[[np.ndarray], np.ndarray], space: Space) -> np.ndarray:
    return space.function_values(f, space.points)


@dataclass(frozen=True, repr=False)
class Gradient:
    """The gradient of a scalar J at the end of a run.

    Attributes
    ----------
    value : ndarray, (*ensemble,)
        J of the last state.
    initial : Variation
        The function g with dJ = int g dh for a change h of the initial density.
    parameters : dict of str to ndarray, (*ensemble,)
        dJ/dp, of each member by its own p.
    """

    value: np.ndarray
    initial: Variation
    parameters: dict[str, np.ndarray]

    def __repr__(self) -> str:
        return f"Gradient({self.initial!r}, parameters {list(self.parameters)})"


@with_hints
def gradient(
    f: Functional | Callable[[np.ndarray], np.ndarray],
    run: "Solution",
    *,
    parameters: Sequence[str] | None = None,
) -> Gradient:
    """The gradient of a scalar of the last state in the initial law and in parameters.

    The gradient is the transpose of the derivative of the discrete run, with fixed steps, schemes
    and degrees: products with directions equal the `tangents` of `solve` to rounding. For n steps
    about sqrt(n) states are stored, and at a time the stages of sqrt(n) steps, or 32 MiB of them.

    Parameters
    ----------
    f : Functional or function
        A function of unit vectors (N, d) stands for int f dmu.
    run : Solution
        Of a Density, or of Indexed densities, from `solve` in this session: a file does not keep
        the steps.
    parameters : list of str, optional
        By default all that the model has: those of the drift, and kappa if there is noise; of a
        `PerLayer` kappa "kappa[0]", "kappa[1]", ... for the layers with noise; of frequencies
        "frequency.factor" (`OfIndex`), "frequency.width" and "frequency.centre" (`Lorentzian`).
        If each position has a separate beta, "beta" adds one number to all of them, and "beta[i]"
        is that of node i, which must be named here.

    Returns
    -------
    Gradient

    Raises
    ------
    TypeError, ValueError
        For other arguments.
    MeanfieldError
        For runs of other states or models, from a file or a checkpoint, and for those that end
        within a step, as an event ends them.
    """
    fits = isinstance(f, Functional) or callable(f)
    require("f", f, "a Functional, or a function of unit vectors", fits, TypeError)
    functional = f if isinstance(f, Functional) else Functional.mean(f)
    require("run", run, "the Solution of a run", hasattr(run, "stored"), TypeError)
    final: FromAbove = run.final
    if not isinstance(final, Density):
        raise MeanfieldError(
            f"Gradients of runs are known for a Density; got a run of {type(final).__name__}. Ask "
            "for tangents, solve(..., tangents=[...]), in the directions that matter."
        )
    journal, initial = recorded(run)
    kind = differentiated(initial)
    motion = motion_for(initial, run.model)(run.model, initial, rtol=run.rtol)
    kind.check(motion)
    names = _checked_names(kind.parameters_of(motion) if parameters is None else parameters, motion)
    space, shape, start = final.space, run.shape, run.options["t_start"]
    values, in_initial = np.empty(shape), np.empty(initial.coefficients.shape, space.dtype)
    in_parameters = np.empty((len(names), *shape))
    cache: dict[object, DifferentiatedNonlinear] | None = None if run.model.drift.shape else {}
    for index in np.ndindex(*shape):
        last = final.computed(final.coefficients[index], space)
        values[index], slope = _evaluated(functional, last)
        end = space.to_coefficients(slope)
        steps = journal.member(index)
        _check_end(run, steps, end_of(run, journal, index))
        member = kind(motion, initial, index, steps, names, start, cache=cache)
        in_initial[index], in_parameters[:, *index] = member.gradient(end)
    return Gradient(
        values,
        kind.variation(initial.space, in_initial),
        dict(zip(names, in_parameters, strict=True)),
    )


def _checked_names(parameters: Sequence[str], motion: Narrowed) -> list[str]:
    """Names of parameters with derivatives; TypeError or ValueError for others."""
    valid = isinstance(parameters, Sequence) and not isinstance(parameters, str)
    require("parameters", parameters, 'a list such as ["beta", "kappa"]', valid, TypeError)
    return [checked_parameter("parameters", name, motion) for name in parameters]


def _check_end(run: "Solution", journal: Journal, end: float) -> None:
    """Raise MeanfieldError if a run, or a member, ends within a step."""
    steps = journal.stretches[-1].steps[-1] if len(journal) else (0.0, 1.0)
    if abs(sum(steps) - (end - run.options["t_start"])) > STEPPED * steps[1] and len(journal):
        raise MeanfieldError(
            f"The gradient is that of the end of a step, and the run ends at t = {end:g} "
            f"within one ({run.status}). Run again with t_span to end there."
        )


def _evaluated(f: Functional, density: Density) -> tuple[float, np.ndarray]:
    """The value, and the variation at the points (N,); ValueError unless they are finite."""
    points = density.space.weights.shape
    value = real_array("the value of f", f.value(density))
    slope = real_array("the variation of f", f.variation(density))
    if (
        value.shape != ()
        or slope.shape not in ((), points)
        or not np.isfinite([value, *slope.flat]).all()
    ):
        raise ValueError(
            "f must have one finite value, and a variation with one finite value at each of the "
            f"{points[0]} points of the grid; got {as_given(value)}, and for the variation "
            f"{as_given(slope)} of shape {slope.shape}."
        )
    return float(value), np.broadcast_to(slope, points)


def recorded(run: "Solution") -> tuple[Journal | EnsembleJournal, Density]:
    """The journal of a run, and its initial state; MeanfieldError if there is no journal."""
    return known_steps(run.stored.get("journal")), run.stored["initial"]


def known_steps(journal: Journal | EnsembleJournal | None) -> Journal | EnsembleJournal:
    """The journal of a run; MeanfieldError where there is none."""
    if journal is None:
        raise MeanfieldError(
            "Derivatives need the accepted steps of the run, which files and checkpoints do not "
            "keep, and which replicas of tokens must have in common: call solve again without "
            "resume, for replicas with dt=, and take the derivative of what it returns."
        )
    return journal
