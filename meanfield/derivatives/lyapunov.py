"""Lyapunov exponents: growth rates of small perturbations along a run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from ..core.annotations import FromAbove, MovedState
from ..core.calls import with_hints
from ..core.checks import generator, require, whole_number
from ..core.errors import MeanfieldError
from ..dynamics.linearised import LinearisedMotion
from ..dynamics.motion import motion_for
from ..spaces import Density
from ..spaces.contract import Space
from .adjoint import recorded
from .flows import DifferentiatedFlow
from .indexed import differentiated
from .journal import EnsembleJournal, Journal
from .steps import DifferentiatedNonlinear

if TYPE_CHECKING:
    from ..results.solution import Solution

UP_TO_ROUNDING = 1 - 1e-12  # share of a time at which it counts as reached


@dataclass(frozen=True, repr=False)
class LyapunovExponents:
    """The largest exponents of a run, and their convergence.

    Attributes
    ----------
    t : ndarray, (m,)
        Times at which tangents were made orthonormal again.
    history : ndarray, (m, *members, k)
        Averages of growth rates from the start to these times, in decreasing order except where
        averages have not converged.
    rates : ndarray, (m, *members, k)
        Growth rates between the previous time and this one.
    late : ndarray, (*members, k)
        Averages over the second half of the run, without the transient at the start.
    """

    t: np.ndarray
    history: np.ndarray
    rates: np.ndarray
    late: np.ndarray

    @property
    def exponents(self) -> np.ndarray:
        """The averages over the whole run, (*members, k), in decreasing order."""
        return -np.sort(-self.history[-1], axis=-1)

    @property
    def drift(self) -> np.ndarray:
        """The absolute difference of `late` and the averages over the run, (*members, k)."""
        return np.abs(self.late - self.history[-1])

    def __repr__(self) -> str:
        return (
            f"LyapunovExponents({self.history.shape[-1]} up to t = {self.t[-1]:g}, the largest "
            f"{self.exponents[..., 0].max():.6g}, second half differs by {self.drift.max():.1e})"
        )


@with_hints
def lyapunov_exponents(
    run: "Solution", count: int = 1, *, renewals: int = 100, rng: int | Generator = 0
) -> LyapunovExponents:
    """The largest Lyapunov exponents of a run.

    Tangents of the run, along its steps, are orthonormalised at about equal intervals by a QR
    decomposition. Sums of the logarithms of the diagonals of R, divided by the time, tend to the
    exponents. The result has these averages for the whole run and for its second half.

    Parameters
    ----------
    run : Solution
        Of a Density, or of a state whose runs have tangents, from `solve` in this session.
    count : int
        The number of exponents, at most the dimension of the tangent space.
    renewals : int
        The number of orthonormalisations, at ends of steps. Between two of them lengths of tangents
        should change by less than a factor of 1e10.
    rng : numpy.random.Generator or seed
        For the random initial directions.

    Returns
    -------
    LyapunovExponents
        The exponents of each replica or member.

    Raises
    ------
    TypeError, ValueError
        For other arguments.
    MeanfieldError
        For runs without steps or without derivatives, and of tokens with a reaction.

    Notes
    -----
    Cost: that of `count` tangents, see `solve`. Norms are Euclidean: of the coordinates of tokens,
    of mean and covariance of a Gaussian; for densities the norm of L^2.

    References
    ----------
    Benettin, Galgani, Giorgilli and Strelcyn, Meccanica 15 (1980).
    """
    require("run", run, "the Solution of a run", hasattr(run, "stored"), TypeError)
    count, renewals = whole_number("count", count), whole_number("renewals", renewals)
    rng = generator(rng)
    journal, initial = recorded(run)
    if isinstance(journal, EnsembleJournal):
        raise MeanfieldError(
            "Exponents are those of single densities, whose steps are their own; got an ensemble "
            f"{run.shape}. Solve for a member alone, and take its exponents."
        )
    if not len(journal):
        raise MeanfieldError(
            "The run has no steps, along which neighbours could leave it: solve to a later time."
        )
    walk = _of_densities if isinstance(initial, Density) else _of_flows
    times, logs = [], []
    for elapsed, log_growth in walk(run, journal, initial, count, renewals, rng):
        times.append(elapsed)
        logs.append(log_growth)
    t, growth = np.array(times), np.array(logs)
    shape = (-1,) + (1,) * (growth.ndim - 1)
    history = np.cumsum(growth, axis=0) / t.reshape(shape)
    rates = growth / np.diff(t, prepend=0.0).reshape(shape)
    half = int(np.searchsorted(t, t[-1] / 2))
    second_half = growth[half:].sum(axis=0) / (t[-1] - (t[half - 1] if half else 0.0))
    return LyapunovExponents(run.options["t_start"] + t, history, rates, second_half)


def _orthonormal(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The matrix C (..., k, k) that makes vectors (..., k, N) orthonormal, and log |R_ii|.

    The orthonormal vectors are C @ vectors.
    """
    _, R = np.linalg.qr(vectors.swapaxes(-1, -2))
    sizes = np.abs(np.diagonal(R, axis1=-2, axis2=-1))
    with np.errstate(divide="ignore"):
        logs = np.log(sizes)
    if not np.isfinite(logs).all():
        raise MeanfieldError(
            "Tangents became 0 or parallel to rounding between two renewals: ask for fewer "
            "exponents, or for more renewals."
        )
    return np.linalg.inv(R).swapaxes(-1, -2), logs


def _of_flows(
    run: FromAbove, journal: Journal, initial: MovedState, count: int, renewals: int, rng: Generator
) -> Iterator[tuple[float, np.ndarray]]:
    """Yield times since the start, and log growth (*members, k) since the previous time."""
    if any(stretch.labels is not None for stretch in journal.stretches):
        raise MeanfieldError(
            "Lyapunov exponents are those of runs in which no tokens merged, which have fewer "
            "neighbours afterwards: solve without merge=."
        )
    scheme = journal.stretches[0].scheme
    motion = motion_for(initial, run.model)(run.model, initial, scheme=scheme, rtol=run.rtol)
    motion.linearised([], [])  # refuses the model
    size, draw = motion.tangent_space(initial)
    require("count", count, f"at most {size}, the dimension of the tangent space", count <= size)
    directions = [draw(rng) for _ in range(count)]
    start = run.options["t_start"]
    flow = DifferentiatedFlow(motion, journal, initial, [None] * count, directions, start)
    duration = run.t[-1] - start
    last, shape = float(duration), flow.linearised.members
    flow.first, _ = _renewed(flow.linearised, flow.first)
    renewal = duration / renewals
    for elapsed, state in flow.steps():
        at_end = elapsed >= last * UP_TO_ROUNDING
        if elapsed < renewal * UP_TO_ROUNDING and not at_end:
            continue
        Y, logs = _renewed(flow.linearised, state.x)
        state.restart(Y, start + elapsed)
        renewal = elapsed + duration / renewals
        yield elapsed, logs.reshape(*shape, count)


def _renewed(linearised: LinearisedMotion, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The stack with orthonormal tangents, and the logarithms (members, k) of their growth."""
    change, logs = _orthonormal(linearised.vectors(Y))
    new = Y.copy()
    members, count = change.shape[:2]
    rows = Y[1:].reshape(count, members, -1)
    new[1:] = np.einsum("rab,brn->arn", change, rows).reshape(Y[1:].shape)
    return new, logs


def _of_densities(
    run: FromAbove, journal: Journal, initial: Density, count: int, renewals: int, rng: Generator
) -> Iterator[tuple[float, np.ndarray]]:
    """Yield times since the start, and log growth (k,) since the previous time, of one density."""
    start = run.options["t_start"]
    space, kind = initial.space, differentiated(initial)
    motion = motion_for(initial, run.model)(run.model, initial, rtol=run.rtol)
    kind.check(motion)
    parts = 1 if space.dtype.kind == "f" else 2 - space.real_modes  # numbers of a coefficient
    dofs = int((parts * (space.degrees > 0)).sum())
    require("count", count, f"at most {dofs}, the dimension of the tangent space", count <= dofs)
    pieces = list(_pieces(journal, renewals))
    noise = space.to_coefficients(rng.standard_normal((count, space.weights.size)))
    noise[:, space.degrees == 0] = 0
    tangents, _ = _renewed_modes(space, noise)
    density, cache = initial, dict[object, DifferentiatedNonlinear]()
    for piece, end in pieces:
        steps = kind(motion, density, (), piece, (), start, cache=cache)
        (stack,) = steps.tangents(np.array([end]), list(tangents))
        grid = space.with_modes(stack.shape[1])
        density = initial.computed(stack[0], grid)
        tangents, growth = _renewed_modes(grid, stack[1:])
        yield end, growth


def _renewed_modes(space: Space, tangents: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Tangents (k, modes) made orthonormal in L^2, and the logarithms (k,) of their growth."""
    weighed = np.sqrt(space.parseval) * tangents
    change, logs = _orthonormal(np.concatenate([weighed.real, weighed.imag], axis=1))
    return change @ tangents, logs


def _pieces(journal: Journal, renewals: int) -> Iterator[tuple[Journal, float]]:
    """Journals of the steps between two renewals, each with the time at which it ends."""
    stretches = journal.stretches
    t, dt = stretches[-1].steps[-1]
    last = float(t + dt)
    piece, renewal = Journal(), last / renewals
    for stretch in stretches:
        for step in stretch.steps:
            piece.add(step[None], stretch.scheme, stretch.ends, stretch.degree)
            end = float(step.sum())
            if end >= min(renewal, last) * UP_TO_ROUNDING:
                yield piece, end
                piece, renewal = Journal(), end + last / renewals
