"""Runs of densities, differentiated: the accepted steps of a journal, taken again."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..core.cached import cached_property
from ..core.errors import MeanfieldError
from ..models.transformer import Transformer
from ..spaces import Density, Geometry
from ..spaces.contract import Transport
from ..spaces.linearised import Adjoint, Tables, Tangents
from ..steppers import Scheme
from .journal import Journal, Stretch
from .parameters import changes_of, tables_of
from .steps import DifferentiatedScheme

END = 1 - 1e-9  # parts of a step from which on its end is meant


def check_differentiable(model: Transformer) -> None:
    """Raise MeanfieldError, with the reason, for runs of densities that are not differentiated."""
    kept = model.is_zonal and model.steady_noise and model.noise.laplacian
    if not kept or model.common is not None or not model.drift.constant:
        raise MeanfieldError(
            "Derivatives of runs of densities are known for a zonal drift whose parameters do not "
            f"change with time, with isotropic noise of constant kappa or none; got {model!r}. "
            "Take such a model, or differences of runs with dt= and max_degree= = min_degree=."
        )


class DifferentiatedRun:
    """One member of a run of densities, whose steps are taken again with derivatives.

    Parameters
    ----------
    model : Transformer
    initial : Density
        In the ensemble shape of the run.
    index : tuple of int
        The member.
    journal : Journal
    parameters : sequence of str
        "kappa", or of the drift, by which the run is differentiated.
    """

    def __init__(
        self,
        model: Transformer,
        initial: Density,
        index: tuple[int, ...],
        journal: Journal,
        parameters: Sequence[str],
    ):
        shape, drift = initial.shape, model.drift.as_zonal()
        if drift.shape:
            own = {n: np.broadcast_to(v, shape)[index] for n, v in drift.parameters.items()}
            drift = drift.replace(**own)
        self.kappa = float(np.broadcast_to(model.kappa, shape)[index])
        self.geometry, self.first = initial.geometry, initial.coefficients[index]
        self.drift, self.parameters = drift, tuple(parameters)
        self.of_drift = [name for name in self.parameters if name != "kappa"]
        self._stretches = journal.stretches
        self._kept: dict[Any, Any] = {}

    # Tangents ------------------------------------------------------------------------------

    def tangents(
        self, elapsed: np.ndarray, tangents: Sequence[str | np.ndarray]
    ) -> Iterator[np.ndarray]:
        """Yield state and tangents, (1 + p, modes), at times since the start, increasing.

        A tangent is the name of one of the parameters, or the coefficients of a direction.
        """
        first = [h if not isinstance(h, str) else np.zeros_like(self.first) for h in tangents]
        state, geometry = np.array([self.first, *first]), self.geometry
        names = [h if isinstance(h, str) else None for h in tangents]
        waiting = list(elapsed)
        while waiting and waiting[0] <= 0:
            yield state
            waiting.pop(0)
        last = elapsed[-1] if len(elapsed) else 0.0
        stretches = self._stretches
        for stretch, end in zip(stretches, _ends(stretches, last), strict=True):
            state = geometry.resample(state, stretch.degree)
            geometry = geometry.with_degree(stretch.degree)
            by, done = self._with_tangents(stretch, names), 0
            while waiting and (waiting[0] <= end or stretch is stretches[-1]):
                ends = np.append(stretch.steps[1:, 0], end)
                n = min(int(np.searchsorted(ends, waiting[0])), len(ends) - 1)
                if n >= done:
                    state, done = by.advance(state, stretch.steps[done : n + 1]), n + 1
                t, dt = stretch.steps[n]
                part = (waiting.pop(0) - t) / dt
                yield state if part >= END or part * dt + t == ends[n] else by.within(part)
            if done < len(stretch.steps):
                state = by.advance(state, stretch.steps[done:])

    def _with_tangents(self, stretch: Stretch, names: list[str | None]) -> DifferentiatedScheme:
        key = "tangents", stretch.degree, stretch.scheme.name
        if key not in self._kept:
            geometry = self.geometry.with_degree(stretch.degree)
            tables, changes = self._tables_on(geometry)
            which = [self.of_drift.index(n) if n in self.of_drift else -1 for n in names]
            transport = Tangents(geometry, tables, changes, which)
            factors = np.array([self._factor(name) for name in names])
            self._kept[key] = self._scheme(stretch.scheme, geometry, transport, factors)
        return self._kept[key]

    # The adjoint ---------------------------------------------------------------------------

    def gradient(self, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The gradient at the start, (modes,), of a scalar with the gradient `end` at the end.

        And its derivatives by the parameters. Stages are kept of about sqrt(n) of n steps at a
        time; states at the beginnings of these stretches are kept of all.
        """
        pieces, u, geometry = [], self.first, self.geometry
        longest = max(1, int(np.ceil(np.sqrt(sum(len(s.steps) for s in self._stretches)))))
        for stretch in self._stretches:
            u = geometry.resample(u, stretch.degree)
            geometry = geometry.with_degree(stretch.degree)
            forwards = self._forwards(stretch)
            for i in range(0, len(stretch.steps), longest):
                steps = stretch.steps[i : i + longest]
                pieces.append((stretch, steps, u))
                u = forwards.advance(u[None], steps)[0]
        l = self.geometry.with_modes(end.size).resample(end, geometry.degree)
        by_parameter = np.zeros(len(self.parameters))
        for stretch, steps, u in reversed(pieces):
            here = self.geometry.with_degree(stretch.degree)
            l = self.geometry.with_modes(l.size).resample(l, stretch.degree)
            forwards, backwards = self._forwards(stretch), self._backwards(stretch)
            record = forwards.recorded(u, steps)
            found = np.zeros(len(self.parameters))
            l = backwards.pulled_back(l, steps, record, found)
            by_parameter += found
        l = here.resample(l, self.geometry.degree) if pieces else l
        return l, by_parameter

    def _forwards(self, stretch: Stretch) -> DifferentiatedScheme:
        key = "forwards", stretch.degree, stretch.scheme.name
        if key not in self._kept:
            geometry = self.geometry.with_degree(stretch.degree)
            tables, _ = self._tables_on(geometry)
            transport = Tangents(geometry, tables, [], [])
            self._kept[key] = self._scheme(stretch.scheme, geometry, transport, np.zeros(0))
        return self._kept[key]

    def _backwards(self, stretch: Stretch) -> DifferentiatedScheme:
        key = "backwards", stretch.degree, stretch.scheme.name
        if key not in self._kept:
            geometry = self.geometry.with_degree(stretch.degree)
            tables, changes = self._tables_on(geometry)
            none = Tables(np.zeros(geometry.degree + 1), None)
            aligned = iter(changes)
            all_ = [next(aligned) if n != "kappa" else none for n in self.parameters]
            transport = Adjoint(geometry, tables, all_)
            factors = np.array([self._factor(name) for name in self.parameters])
            self._kept[key] = self._scheme(stretch.scheme, geometry, transport, factors)
        return self._kept[key]

    # Both ----------------------------------------------------------------------------------

    def _scheme(self, scheme: Scheme, geometry: Geometry, transport: Transport, factors):
        linear = geometry.laplacian / self.kappa
        return DifferentiatedScheme(scheme, linear, transport, factors, geometry.parseval)

    def _factor(self, name: str | None) -> float:
        """d log L, L = Lap/kappa; 0 where there is no noise."""
        return -1 / self.kappa if name == "kappa" else 0.0

    @cached_property
    def _changes(self) -> list[Tables]:
        """Derivatives by each parameter of the drift, of the multipliers up to all degrees met."""
        highest = max(stretch.degree for stretch in self._stretches)
        of = highest, self.geometry.dimension
        return [changes_of(self.drift, name, *of) for name in self.of_drift]

    def _tables_on(self, geometry: Geometry) -> tuple[Tables, list[Tables]]:
        size = geometry.degree + 1
        changes = [Tables(a[:size], None if z is None else z[:size]) for a, z in self._changes]
        return tables_of(self.drift, geometry.degree, geometry.dimension), changes


def _ends(stretches: list[Stretch], last: float) -> list[float]:
    """Where each stretch ends: where the next one begins, and at the last output or beyond."""
    begins = [float(stretch.steps[0, 0]) for stretch in stretches[1:]]
    if not stretches:
        return []
    t, dt = stretches[-1].steps[-1]
    return [*begins, max(float(t + dt), last)]
