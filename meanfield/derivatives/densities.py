"""Derivatives of runs of densities, by repeating the accepted steps of their journal."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..core.annotations import Narrowed, TangentNames, Values
from ..core.cached import cached_property
from ..core.errors import MeanfieldError
from ..dynamics.density import DensityMotion
from ..models import ZonalDrift
from ..models.changes import table_changes
from ..models.transformer import Transformer
from ..spaces import Density, Space
from ..spaces.linearised import LinearisedAdjoint, LinearisedTangents, Tables
from ..steppers.eigenbasis import NO_BASIS
from .fields import DifferentiableFields, Parts, check_fields_differentiable
from .journal import Journal, Stretch
from .steps import DifferentiatedNonlinear, DifferentiatedScheme, Diffusion, NoiseStrengths, dual_of
from .variation import Variation

RECORDED_NUMBERS = 1 << 22  # of stages recorded at a time
STEP_END = 1 - 1e-9  # fractions of a step that count as its end


def check_differentiable(model: Transformer, fields: Parts | None) -> None:
    """Raise MeanfieldError, with the reason, for runs of densities that have no derivatives.

    `fields` are those of the first member on a space; None under a zonal drift.
    """
    reasons = {
        "common noise, which is random": model.common is not None,
        "a reaction": model.reaction != 0,
        f"the parts {', '.join(model.by_place)}": bool(model.by_place),
        f"the normalisation {model.normalisation!r}": not model.normalisation.is_identity,
        "a drift whose parameters change with time": not model.drift.constant,
    }
    for reason, applies in reasons.items():
        if applies:
            raise MeanfieldError(
                "Runs of densities, Indexed ones too, are differentiated under constant drifts "
                f"with independent noise or none; this model has {reason}: {model!r}. "
                "Take another model, or differences of runs with dt= and max_degree= = min_degree=."
            )
    if fields:
        drift, space = model.drift.member((0,) * len(model.drift.shape)), fields[0][1].space
        check_fields_differentiable(DifferentiableFields(model, drift, fields, space))


def drift_of(model: Transformer) -> Any:
    """The drift of a model, as a `ZonalDrift` if it is zonal."""
    return model.drift.as_zonal() if model.drift.is_zonal else model.drift


def names_of_kappa(model: Transformer) -> list[str]:
    """The names of the parameters of the noise: "kappa", or "kappa[i]" for layers i with noise.

    The list is empty if some member has no noise, or kappa is a function of time.
    """
    kappa = model.kappa
    if model.steady_noise:
        return ["kappa"] if np.isfinite(kappa).all() else []
    if model.smooth_noise:
        return []
    return [f"kappa[{i}]" for i in np.flatnonzero(np.isfinite(kappa.values))]


def name_of_kappa(model: Transformer, t: float) -> str:
    """The name of the parameter that is kappa at time t."""
    kappa: Values = model.kappa
    if model.steady_noise or model.smooth_noise:
        return "kappa"
    return f"kappa[{np.searchsorted(kappa.jumps, t, side='right')}]"


def fields_of_first(motion: DensityMotion) -> Parts | None:
    """The fields of the first member, with the kernels the motion has cached; None if zonal."""
    return None if motion.plain.is_zonal else motion.fields(motion.like.space).of(0)


class Piece(NamedTuple):
    """Steps on the same modes, by the same scheme and in the same layer of a `PerLayer` kappa.

    Attributes
    ----------
    stretch : Stretch
    layer : int
        The index of the layer; 0 if kappa has no layers.
    """

    stretch: Stretch
    layer: int = 0

    @property
    def steps(self) -> np.ndarray:
        return self.stretch.steps


class DifferentiatedRun:
    """One member of a run of densities, whose steps are repeated with derivatives.

    Parameters
    ----------
    motion : DensityMotion
    initial : Density
        The initial density, in the ensemble shape of the run.
    index : tuple of int
        The index of the member.
    journal : Journal
    parameters : sequence of str
        Names of parameters of the drift, the noise (see `names_of_kappa`) or the frequencies.
    start : float
        The time at which the run begins.
    cache : dict, optional
        A cache of N with its derivatives, shared by runs of the same member, or of members with
        the same drift.
    """

    def __init__(
        self,
        motion: Narrowed,
        initial: Density,
        index: tuple[int, ...],
        journal: Journal,
        parameters: Sequence[str],
        start: float = 0.0,
        *,
        cache: dict[object, DifferentiatedNonlinear] | None = None,
    ):
        """Member `index` of a run: its drift, its steps, and its parameters, for derivatives."""
        model, shape = motion.plain, initial.shape
        drift = drift_of(model)
        number = int(np.ravel_multi_index(index, shape)) if shape else 0
        drift = drift.broadcast(shape).member(number) if drift.shape else drift
        self._motion, self._model, self._start, self._number = motion, model, start, number
        self._nonlinear = {} if cache is None else cache
        self._steady = model.steady_noise
        self.kappa = float(np.broadcast_to(model.kappa, shape)[index]) if self._steady else np.nan
        self.space, self.first = initial.space, initial.coefficients[index]
        self.drift, self.parameters = drift, tuple(parameters)
        self.of_drift = [name for name in self.parameters if name in drift.parameters]
        self._pieces = [piece for stretch in journal.stretches for piece in self._parts(stretch)]
        self._schemes: dict[tuple[object, ...], DifferentiatedScheme] = {}
        self._diffusions: dict[int, Diffusion] = {}

    # Of a run ------------------------------------------------------------------------------

    variation: ClassVar[type[Variation]] = Variation

    @classmethod
    def check(cls, motion: Narrowed) -> None:
        """Raise MeanfieldError, with the reason, for runs that have no derivatives."""
        check_differentiable(motion.plain, fields_of_first(motion))

    @classmethod
    def parameters_of(cls, motion: Narrowed) -> list[str]:
        """The names of the parameters with derivatives, without those of `parameters_of_nodes`."""
        frequencies = motion.turning_slopes(motion.like.space)
        return [*drift_of(motion.plain).parameters, *names_of_kappa(motion.plain), *frequencies]

    @classmethod
    def parameters_of_nodes(cls, motion: Narrowed) -> list[str]:
        """The names of parameters of single nodes of an index."""
        return []

    # Tangents ------------------------------------------------------------------------------

    def tangents(
        self, elapsed: np.ndarray, tangents: Sequence[str | np.ndarray]
    ) -> Iterator[np.ndarray]:
        """Yield state and tangents, (1 + p, modes), at increasing times since the start, `elapsed`.

        A tangent is given by the name of a parameter, or by the coefficients of a direction.
        """
        first = [h if not isinstance(h, str) else np.zeros_like(self.first) for h in tangents]
        state, space = np.array([self.first, *first]), self.space
        names = [h if isinstance(h, str) else None for h in tangents]
        outputs = list(elapsed)
        while outputs and outputs[0] <= 0:
            yield state
            outputs.pop(0)
        last = elapsed[-1] if len(elapsed) else 0.0
        for piece, end in zip(self._pieces, _ends(self._pieces, last), strict=True):
            degree, steps = piece.stretch.degree, piece.steps
            state, space = space.resample(state, degree), space.with_degree(degree)
            scheme, noise, count = self._scheme(piece, names), self._noise(piece), 0
            while outputs and (outputs[0] <= end or piece is self._pieces[-1]):
                ends = np.append(steps[1:, 0], end)
                n = min(int(np.searchsorted(ends, outputs[0])), len(ends) - 1)
                if n >= count:
                    state = scheme.advance(state, steps[count : n + 1], noise.part(count, n + 1))
                    count = n + 1
                t, dt = steps[n]
                share = (outputs.pop(0) - t) / dt
                if share >= STEP_END or share * dt + t == ends[n]:
                    yield state
                else:
                    yield scheme.within(share, self._excess_since(t, piece), state.dtype)
            if count < len(steps):
                state = scheme.advance(state, steps[count:], noise.part(count, len(steps)))

    # The adjoint ---------------------------------------------------------------------------

    def gradient(self, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient of a scalar in the initial state, (modes,), and in the parameters, (p,).

        `end` is its gradient in the final state. The n steps are divided into parts of about
        sqrt(n) steps, or as many as fit into RECORDED_NUMBERS if more. The state at the start of
        each part is stored, and stages are recorded for one part at a time.
        """
        parts, u, space = [], self.first, self.space
        pieces = [(piece, *part) for piece in self._pieces for part in self._recorded(piece)]
        for piece, steps, noise in pieces:
            u = space.resample(u, piece.stretch.degree)
            space = space.with_degree(piece.stretch.degree)
            parts.append((piece, (steps, noise), u))
            if len(parts) < len(pieces):  # the last part needs no advance here
                u = self._scheme(piece, []).advance(u[None], steps, noise)[0]
        adjoint = self.space.with_modes(end.size).resample(end, space.degree)
        by_parameter = np.zeros(len(self.parameters))
        for piece, (steps, noise), u in reversed(parts):
            grid = self.space.with_degree(piece.stretch.degree)
            adjoint = self.space.with_modes(adjoint.size).resample(adjoint, piece.stretch.degree)
            recorded = self._scheme(piece, []).recorded(u, steps, noise)
            backwards = self._scheme(piece, self.parameters, adjoint=True)
            adjoint = backwards.pulled_back(adjoint, steps, noise, recorded, by_parameter)
        adjoint = grid.resample(adjoint, self.space.degree) if parts else adjoint
        return adjoint, by_parameter

    def _recorded(self, piece: Piece) -> Iterator[tuple[np.ndarray, NoiseStrengths]]:
        """Parts of a piece, as steps and 1/kappa, whose stages are recorded together."""
        count, space = sum(len(each.steps) for each in self._pieces), self.space
        modes = space.with_degree(piece.stretch.degree).degrees.size
        size = 2 * (len(piece.stretch.scheme.nodes) + 1) * modes * (space.dtype.itemsize // 8)
        longest = max(int(np.ceil(np.sqrt(count))), RECORDED_NUMBERS // size)
        noise = self._noise(piece)
        for first in range(0, len(piece.steps), longest):
            yield piece.steps[first : first + longest], noise.part(first, first + longest)

    # The noise -----------------------------------------------------------------------------

    def _parts(self, stretch: Stretch) -> Iterator[Piece]:
        """Divide a stretch at the jumps of kappa."""
        kappa: Values = self._model.kappa
        if self._steady or self._model.smooth_noise:
            yield Piece(stretch)
            return
        middles = self._start + stretch.steps.sum(axis=1) - stretch.steps[:, 1] / 2
        layers = np.searchsorted(kappa.jumps, middles, side="right")
        for layer in np.unique(layers):
            yield Piece(stretch._replace(steps=stretch.steps[layers == layer]), int(layer))

    def _noise(self, piece: Piece) -> NoiseStrengths:
        """1/kappa along the steps of a piece."""
        scheme, steps = piece.stretch.scheme, piece.steps
        if not self._model.smooth_noise:
            return NoiseStrengths.constant(self._strength(piece.layer), len(steps), scheme)
        table = scheme.table
        nodes = np.append(0.0, table.nodes[table.decay[: len(scheme.nodes) + 1]])
        times = steps[:, :1] + nodes * steps[:, 1:]
        values = [self._strength_at(t, piece) for t in times.flat]
        strengths = np.reshape(values, times.shape)
        return NoiseStrengths(strengths[:, 0].copy(), strengths - strengths[:, :1])

    def _strength(self, layer: int) -> float:
        """1/kappa in a layer of a kappa that does not change within layers."""
        kappa: Values = self._model.kappa
        return float(1 / (self.kappa if self._steady else kappa.values[layer]))

    def _strength_at(self, elapsed: float, piece: Piece) -> float:
        """1/kappa at a time since the start, clipped to the span of the piece."""
        start, end = piece.stretch.ends
        return float(1 / self._model.kappa_at(min(max(self._start + elapsed, start), end)))

    def _excess_since(self, start: float, piece: Piece) -> Callable[[float], float]:
        """The function elapsed -> increase of 1/kappa since the start of a step, `start`."""
        if not self._model.smooth_noise:
            return lambda _elapsed: 0.0
        first = self._strength_at(start, piece)
        return lambda elapsed: self._strength_at(elapsed, piece) - first

    def _slope(self, name: str | None, layer: int, space: Space, rates: np.ndarray) -> np.ndarray:
        """The derivative of L by a parameter, (modes,); 0 if L does not depend on it."""
        if name == ("kappa" if self._steady else f"kappa[{layer}]"):
            return -(self._strength(layer) ** 2) * rates
        return self._motion.turning_slopes(space).get(name or "", np.zeros(rates.shape))

    def _diffusion(self, space: Space) -> Diffusion:
        """Linear part of the equation on `space`: eigenvalues, basis and rotation."""
        parseval = np.repeat(space.parseval, space.dtype.itemsize // 8)
        generator, rotation = self._model.noise.on_densities(space), self._motion.turning(space)
        if generator is None:
            turning = 0.0 if rotation is None else rotation
            return Diffusion(space.laplacian, NO_BASIS, NO_BASIS, parseval, turning)
        rates, basis = generator.eigenbasis
        return Diffusion(rates, basis, dual_of(basis, parseval), parseval)

    # Both ----------------------------------------------------------------------------------

    def _scheme(
        self, piece: Piece, names: TangentNames, adjoint: bool = False
    ) -> DifferentiatedScheme:
        """The scheme of a piece with tangents by these parameters, or its transpose (cached)."""
        stretch = piece.stretch
        key = stretch.degree, stretch.scheme.name, piece.layer, tuple(names), adjoint
        if key not in self._schemes:
            space = self.space.with_degree(stretch.degree)
            by_drift = [name if name in self.of_drift else None for name in names]
            of_degree = stretch.degree, tuple(by_drift), adjoint
            if of_degree not in self._nonlinear:
                self._nonlinear[of_degree] = self._linearised(space, by_drift, adjoint)
            if stretch.degree not in self._diffusions:
                self._diffusions[stretch.degree] = self._diffusion(space)
            diffusion, nonlinear = self._diffusions[stretch.degree], self._nonlinear[of_degree]
            dL = [self._slope(name, piece.layer, space, diffusion.rates) for name in names]
            rows = np.array(dL).reshape(len(names), diffusion.rates.size)
            self._schemes[key] = DifferentiatedScheme(
                stretch.scheme, diffusion, nonlinear, rows, self._start
            )
        return self._schemes[key]

    def _linearised(
        self, space: Space, names: list[str | None], adjoint: bool
    ) -> DifferentiatedNonlinear:
        """N with tangents by parameters of the drift (None for a direction), or transposed."""
        if self._model.is_zonal:
            tables, changes = self._tables_on(space)
            slopes = dict(zip(self.of_drift, changes, strict=True))
            return linearised_by_tables(space, tables, slopes, names, adjoint)
        parts = self._motion.fields(space).of(self._number)
        fields = DifferentiableFields(self._model, self.drift, parts, space)
        return fields.adjoint(names) if adjoint else fields.tangents(names)

    @cached_property
    def _changes(self) -> list[Tables]:
        """Derivatives of the multipliers by each parameter of the drift, to the highest degree."""
        highest = max(piece.stretch.degree for piece in self._pieces)
        finest = self.space.with_degree(highest)
        return [slope_tables(self.drift, name, finest) for name in self.of_drift]

    def _tables_on(self, space: Space) -> tuple[Tables, list[Tables]]:
        """Multipliers of the drift on a space, and their derivatives by each parameter."""
        cut = space.shortened
        changes = [Tables(cut(a), None if z is None else cut(z)) for a, z in self._changes]
        return tables_of(self.drift, space), changes


def tables_of(drift: ZonalDrift, space: Space) -> Tables:
    """The multipliers of a single drift."""
    return Tables(space.attraction(drift), space.normaliser(drift))


def slope_tables(drift: ZonalDrift, name: str, space: Space) -> Tables:
    """Derivatives of the multipliers of a single drift by one of its parameters."""
    attraction, *normaliser = table_changes(drift, name, space)
    return Tables(attraction, normaliser[0] if normaliser else None)


def linearised_by_tables(
    space: Space,
    tables: Tables,
    slopes: dict[str, Tables],
    names: TangentNames,
    adjoint: bool,
    pairs: bool = False,
) -> LinearisedTangents:
    """N of a zonal drift with tangents by these parameters, or its transpose.

    `slopes` has the derivatives of the multipliers by each parameter; a name None is a direction.
    """
    if adjoint:
        zero = Tables(np.zeros(space.level_degrees.size), None)
        changes = [zero if name is None else slopes[name] for name in names]
        return LinearisedAdjoint(space, tables, changes, pairs=pairs)
    used = [name for name in slopes if name in names]
    rows = [-1 if name is None else used.index(name) for name in names]
    return LinearisedTangents(space, tables, [slopes[name] for name in used], rows, pairs)


def _ends(pieces: list[Piece], last: float) -> list[float]:
    """The end of each piece: the start of the next; of the last its end, or `last`."""
    begins = [float(piece.steps[0, 0]) for piece in pieces[1:]]
    if not pieces:
        return []
    t, dt = pieces[-1].steps[-1]
    return [*begins, max(float(t + dt), last)]
