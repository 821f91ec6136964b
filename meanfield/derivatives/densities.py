"""Runs of densities, differentiated: the accepted steps of a journal, taken again."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from ..core.cached import cached_property
from ..core.errors import MeanfieldError
from ..engines.fields import fields_of
from ..models.transformer import Transformer
from ..spaces import Density, Space
from ..spaces.linearised import Adjoint, Tables, Tangents
from .fields import DifferentiableFields, check_fields_differentiable
from .journal import DensityJournal, Stretch
from .parameters import changes_of, tables_of
from .steps import DifferentiatedScheme, Diffusion, Noise
from .variation import Variation

FieldsOn = Callable[[Space, int], Any]  # factors and fields of a member's drift on a space
Turned = tuple[np.ndarray | None, dict[str, np.ndarray]]  # what frequencies add to L, and slopes
RECORDED = 1 << 22  # numbers of stages that are kept, where those of sqrt(n) steps are fewer
END = 1 - 1e-9  # parts of a step from which on its end is meant


def check_differentiable(model: Transformer, space: Space, fields: FieldsOn | None = None) -> None:
    """Raise MeanfieldError, with the reason, for runs of densities that are not differentiated.

    `fields` of the run on a space, where the drift is not zonal, and they are known.
    """
    reasons = {
        "common noise, which is random": model.common is not None,
        "a reaction": model.reaction != 0,
        f"the parts {', '.join(model.by_place)}": bool(model.by_place),
        f"the normalisation {model.normalisation!r}": not model.normalisation.is_identity,
        "a drift whose parameters change with time": not model.drift.constant,
    }
    for reason, here in reasons.items():
        if here:
            raise MeanfieldError(
                "Runs of densities, Indexed ones too, are differentiated under constant drifts "
                f"with independent noise or none; this model has {reason}: {model!r}. "
                "Take another model, or differences of runs with dt= and max_degree= = min_degree=."
            )
    if not model.is_zonal:
        drift = model.drift.member((0,) * len(model.drift.shape))
        if fields is None:
            space = space.with_degree(min(space.degree, 4))
        own = fields_of(drift, space) if fields is None else fields(space, 0)
        check_fields_differentiable(DifferentiableFields(model, drift, own, space))


def drift_of(model: Transformer) -> Any:
    """The drift, as a zonal one where it is one."""
    return model.drift.as_zonal() if model.drift.is_zonal else model.drift


def names_of_kappa(model: Transformer) -> list[str]:
    """The names of the parameters of the noise: "kappa", or "kappa[i]" for layers i with noise.

    None where there is no noise in some member, and where kappa is a function of time.
    """
    kappa = model.kappa
    if model.steady_noise:
        return ["kappa"] if np.isfinite(kappa).all() else []
    if model.smooth_noise:
        return []
    return [f"kappa[{i}]" for i in np.flatnonzero(np.isfinite(kappa.values))]


def name_of_kappa(model: Transformer, t: float) -> str:
    """The name of the parameter that kappa is at a time."""
    kappa: Any = model.kappa
    if model.steady_noise or model.smooth_noise:
        return "kappa"
    return f"kappa[{np.searchsorted(kappa.jumps, t, side='right')}]"


def fields_in(motion: Any) -> FieldsOn:
    """The fields of a motion, whose kernels are made."""
    return lambda space, member: motion.fields(space).of(member)


class Piece(NamedTuple):
    """Steps on the same modes, by the same scheme and in the same layer of a kappa.

    Attributes
    ----------
    stretch : Stretch
    layer : int
        0 where kappa has none.
    """

    stretch: Stretch
    layer: int = 0

    @property
    def steps(self) -> np.ndarray:
        return self.stretch.steps


class DifferentiatedRun:
    """One member of a run of densities, whose steps are taken again with derivatives.

    Parameters
    ----------
    model : Transformer
    initial : Density
        In the ensemble shape of the run.
    index : tuple of int
        The member.
    journal : DensityJournal
    parameters : sequence of str
        Of the drift, or of the noise: see `names_of_kappa`.
    start : float
        The time at which the run begins.
    fields : callable, optional
        (space, member) -> the fields of a drift that is not zonal, those of the run.
    turned : callable, optional
        space -> what frequencies add to L, and its derivatives by parameters.
    kept : dict, optional
        Where N with its derivatives is kept for other steps of the same member, or of members
        with the same drift.
    """

    def __init__(
        self,
        model: Transformer,
        initial: Density,
        index: tuple[int, ...],
        journal: DensityJournal,
        parameters: Sequence[str],
        start: float = 0.0,
        *,
        fields: FieldsOn | None = None,
        turned: Callable[[Space], Turned] | None = None,
        kept: dict | None = None,
    ):
        shape, drift = initial.shape, drift_of(model)
        number = int(np.ravel_multi_index(index, shape)) if shape else 0
        drift = drift.broadcast(shape).member(number) if drift.shape else drift
        self._model, self._start = model, start
        self._fields, self._number = fields, number
        self._turned = (lambda _space: (None, {})) if turned is None else turned
        self._nonlinear = {} if kept is None else kept
        self._steady = model.steady_noise
        self.kappa = float(np.broadcast_to(model.kappa, shape)[index]) if self._steady else np.nan
        self.space, self.first = initial.space, initial.coefficients[index]
        self.drift, self.parameters = drift, tuple(parameters)
        self.of_drift = [name for name in self.parameters if name in drift.parameters]
        self._pieces = [piece for stretch in journal.stretches for piece in self._split(stretch)]
        self._kept: dict[Any, Any] = {}
        self._diffusions: dict[int, Diffusion] = {}

    # Of a run ------------------------------------------------------------------------------

    variation: ClassVar[type[Variation]] = Variation

    @classmethod
    def check(cls, motion: Any) -> None:
        """Raise MeanfieldError, with the reason, for runs that are not differentiated."""
        check_differentiable(motion.plain, motion.like.space, fields_in(motion))

    @classmethod
    def parameters_of(cls, motion: Any) -> list[str]:
        """The names of the parameters by which runs are differentiated, without single nodes'."""
        frequencies = motion.turning_slopes(motion.like.space)
        return [*drift_of(motion.plain).parameters, *names_of_kappa(motion.plain), *frequencies]

    @classmethod
    def parameters_of_nodes(cls, motion: Any) -> list[str]:
        """The names of those that single nodes of an index have."""
        return []

    @classmethod
    def of_motion(cls, motion: Any, *given: Any, **options: Any) -> Self:
        """The run of a motion, of these arguments but the model."""

        def turned(space: Space) -> Turned:
            return motion.turning(space), motion.turning_slopes(space)

        return cls(motion.plain, *given, fields=fields_in(motion), turned=turned, **options)

    # Tangents ------------------------------------------------------------------------------

    def tangents(
        self, elapsed: np.ndarray, tangents: Sequence[str | np.ndarray]
    ) -> Iterator[np.ndarray]:
        """Yield state and tangents, (1 + p, modes), at times since the start, increasing.

        A tangent is the name of one of the parameters, or the coefficients of a direction.
        """
        first = [h if not isinstance(h, str) else np.zeros_like(self.first) for h in tangents]
        state, space = np.array([self.first, *first]), self.space
        names = [h if isinstance(h, str) else None for h in tangents]
        waiting = list(elapsed)
        while waiting and waiting[0] <= 0:
            yield state
            waiting.pop(0)
        last = elapsed[-1] if len(elapsed) else 0.0
        for piece, end in zip(self._pieces, _ends(self._pieces, last), strict=True):
            degree, steps = piece.stretch.degree, piece.steps
            state, space = space.resample(state, degree), space.with_degree(degree)
            by, noise, done = self._with_tangents(piece, names), self._noise(piece), 0
            while waiting and (waiting[0] <= end or piece is self._pieces[-1]):
                ends = np.append(steps[1:, 0], end)
                n = min(int(np.searchsorted(ends, waiting[0])), len(ends) - 1)
                if n >= done:
                    state = by.advance(state, *_part(steps, noise, done, n + 1))
                    done = n + 1
                t, dt = steps[n]
                part = (waiting.pop(0) - t) / dt
                if part >= END or part * dt + t == ends[n]:
                    yield state
                else:
                    yield by.within(part, self._excess_since(t, piece), state.dtype)
            if done < len(steps):
                state = by.advance(state, *_part(steps, noise, done, len(steps)))

    def _with_tangents(self, piece: Piece, names: list[str | None]) -> DifferentiatedScheme:
        key = self._key("tangents", piece)
        if key not in self._kept:
            space = self.space.with_degree(piece.stretch.degree)
            transport = self._transport(space, names)
            self._kept[key] = self._scheme(piece, space, transport, names)
        return self._kept[key]

    # The adjoint ---------------------------------------------------------------------------

    def gradient(self, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient at the start, (modes,), of a scalar with the gradient `end` at the end.

        And its derivatives by the parameters. Stages are kept of about sqrt(n) of n steps at a
        time, or of as many as RECORDED numbers hold; states at the beginnings of these parts are
        kept of all.
        """
        parts, u, space = [], self.first, self.space
        every = [(piece, *part) for piece in self._pieces for part in self._recorded(piece)]
        for piece, steps, noise in every:
            u = space.resample(u, piece.stretch.degree)
            space = space.with_degree(piece.stretch.degree)
            parts.append((piece, (steps, noise), u))
            if len(parts) < len(every):  # the last one is recorded alone
                u = self._forwards(piece).advance(u[None], steps, noise)[0]
        l = self.space.with_modes(end.size).resample(end, space.degree)
        by_parameter = np.zeros(len(self.parameters))
        for piece, (steps, noise), u in reversed(parts):
            here = self.space.with_degree(piece.stretch.degree)
            l = self.space.with_modes(l.size).resample(l, piece.stretch.degree)
            record = self._forwards(piece).recorded(u, steps, noise)
            found = np.zeros(len(self.parameters))
            l = self._backwards(piece).pulled_back(l, steps, noise, record, found)
            by_parameter += found
        l = here.resample(l, self.space.degree) if parts else l
        return l, by_parameter

    def _recorded(self, piece: Piece) -> Iterator[tuple[np.ndarray, Noise]]:
        """Parts of a piece whose stages and slopes are kept at a time."""
        most, space = sum(len(each.steps) for each in self._pieces), self.space
        modes = space.with_degree(piece.stretch.degree).degrees.size
        size = 2 * (len(piece.stretch.scheme.nodes) + 1) * modes * (space.dtype.itemsize // 8)
        longest, noise = max(int(np.ceil(np.sqrt(most))), RECORDED // size), self._noise(piece)
        for first in range(0, len(piece.steps), longest):
            yield _part(piece.steps, noise, first, first + longest)

    def _forwards(self, piece: Piece) -> DifferentiatedScheme:
        key = self._key("forwards", piece)
        if key not in self._kept:
            space = self.space.with_degree(piece.stretch.degree)
            transport = self._transport(space, [])
            self._kept[key] = self._scheme(piece, space, transport, [])
        return self._kept[key]

    def _backwards(self, piece: Piece) -> DifferentiatedScheme:
        key = self._key("backwards", piece)
        if key not in self._kept:
            space = self.space.with_degree(piece.stretch.degree)
            transport = self._transport(space, self.parameters, adjoint=True)
            self._kept[key] = self._scheme(piece, space, transport, self.parameters)
        return self._kept[key]

    # The noise -----------------------------------------------------------------------------

    def _split(self, stretch: Stretch) -> Iterator[Piece]:
        """The parts of a stretch between two jumps of kappa."""
        kappa: Any = self._model.kappa
        if self._steady or self._model.smooth_noise:
            yield Piece(stretch)
            return
        middles = self._start + stretch.steps.sum(axis=1) - stretch.steps[:, 1] / 2
        layers = np.searchsorted(kappa.jumps, middles, side="right")
        for layer in np.unique(layers):
            yield Piece(stretch._replace(steps=stretch.steps[layers == layer]), int(layer))

    def _noise(self, piece: Piece) -> Noise:
        """1/kappa along the steps of a piece."""
        scheme, steps = piece.stretch.scheme, piece.steps
        if not self._model.smooth_noise:
            return Noise.constant(self._strength(piece.layer), len(steps), scheme)
        table = scheme.table
        nodes = np.append(0.0, table.nodes[table.decay[: len(scheme.nodes) + 1]])
        times = steps[:, :1] + nodes * steps[:, 1:]
        values = [self._strength_at(t, piece) for t in times.flat]
        strengths = np.reshape(values, times.shape)
        return Noise(strengths[:, 0].copy(), strengths - strengths[:, :1])

    def _strength(self, layer: int) -> float:
        """1/kappa, where it does not change."""
        kappa: Any = self._model.kappa
        return float(1 / (self.kappa if self._steady else kappa.values[layer]))

    def _strength_at(self, elapsed: float, piece: Piece) -> float:
        """1/kappa on a piece, which may end where it jumps."""
        start, end = piece.stretch.ends
        return float(1 / self._model.kappa_at(min(max(self._start + elapsed, start), end)))

    def _excess_since(self, begun: float, piece: Piece) -> Callable[[float], float]:
        """What 1/kappa is more than at the beginning of a step, at times since the start."""
        if not self._model.smooth_noise:
            return lambda _elapsed: 0.0
        first = self._strength_at(begun, piece)
        return lambda elapsed: self._strength_at(elapsed, piece) - first

    def _moved(self, name: str | None, layer: int, space: Space, rates: Any) -> np.ndarray:
        """dL by a parameter, L = M/kappa and what frequencies add; 0 where it has no part in L."""
        if name == ("kappa" if self._steady else f"kappa[{layer}]"):
            return -(self._strength(layer) ** 2) * rates
        return self._turned(space)[1].get(name or "", np.zeros(rates.shape))

    def _diffusion(self, space: Space) -> Diffusion:
        parseval = np.repeat(space.parseval, space.dtype.itemsize // 8)
        generator = self._model.noise.on_densities(space)
        rates, basis = (space.laplacian, None) if generator is None else generator.eigenbasis
        return Diffusion.of(rates, basis, parseval, self._turned(space)[0])

    # Both ----------------------------------------------------------------------------------

    def _transport(self, space: Space, names: Sequence[str | None], adjoint: bool = False) -> Any:
        """N with its tangents, or transposed."""
        of_drift = [n if n in self.of_drift else None for n in names]
        key = space.degree, tuple(of_drift), adjoint
        if key not in self._nonlinear:
            self._nonlinear[key] = self._linearised(space, of_drift, adjoint)
        return self._nonlinear[key]

    def _linearised(self, space: Space, names: list[str | None], adjoint: bool) -> Any:
        """N with derivatives by parameters of the drift, or transposed."""
        if self._model.is_zonal:
            tables, changes = self._tables_on(space)
            by = dict(zip(self.of_drift, changes, strict=True))
            return linearised_by_tables(space, tables, by, names, adjoint)
        of = self._fields
        own = fields_of(self.drift, space) if of is None else of(space, self._number)
        fields = DifferentiableFields(self._model, self.drift, own, space)
        return fields.adjoint(names) if adjoint else fields.tangents(names)

    def _key(self, what: str, piece: Piece) -> tuple:
        return what, piece.stretch.degree, piece.stretch.scheme.name, piece.layer

    def _scheme(
        self, piece: Piece, space: Space, transport: Any, names: Sequence[str | None]
    ) -> DifferentiatedScheme:
        if space.degree not in self._diffusions:
            self._diffusions[space.degree] = self._diffusion(space)
        diffusion = self._diffusions[space.degree]
        moved = [self._moved(name, piece.layer, space, diffusion.rates) for name in names]
        rows = np.array(moved).reshape(len(names), diffusion.rates.size)
        return DifferentiatedScheme(piece.stretch.scheme, diffusion, transport, rows, self._start)

    @cached_property
    def _changes(self) -> list[Tables]:
        """Derivatives by each parameter of the drift, of the multipliers up to all degrees met."""
        highest = max(piece.stretch.degree for piece in self._pieces)
        of = highest, self.space.dimension
        return [changes_of(self.drift, name, *of) for name in self.of_drift]

    def _tables_on(self, space: Space) -> tuple[Tables, list[Tables]]:
        size = space.degree + 1
        changes = [Tables(a[:size], None if z is None else z[:size]) for a, z in self._changes]
        return tables_of(self.drift, space.degree, space.dimension), changes


def linearised_by_tables(
    space: Space,
    tables: Tables,
    by: dict[str, Tables],
    names: Sequence[str | None],
    adjoint: bool,
    pairs: bool = False,
) -> Tangents | Adjoint:
    """N of a zonal drift, of tangents with these names of parameters, or transposed."""
    if adjoint:
        none = Tables(np.zeros(space.degree + 1), None)
        return Adjoint(space, tables, [none if n is None else by[n] for n in names], pairs)
    known = [name for name in by if name in names]
    which = [-1 if name is None else known.index(name) for name in names]
    return Tangents(space, tables, [by[name] for name in known], which, pairs)


def _part(steps: np.ndarray, noise: Noise, first: int, end: int) -> tuple[np.ndarray, Noise]:
    """Some of the steps, and the noise along them."""
    return steps[first:end], Noise(noise.strengths[first:end], noise.excess[first:end])


def _ends(pieces: list[Piece], last: float) -> list[float]:
    """Where each piece ends: where the next one begins, and at the last output or beyond."""
    begins = [float(piece.steps[0, 0]) for piece in pieces[1:]]
    if not pieces:
        return []
    t, dt = pieces[-1].steps[-1]
    return [*begins, max(float(t + dt), last)]
