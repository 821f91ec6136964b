"""Derivatives of runs of flows, by repeating the accepted steps of their journal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.annotations import TangentNames
from ..core.dual import NoDerivative
from ..core.errors import MeanfieldError
from ..dynamics.linearised import LinearisedMotion
from ..dynamics.motion import Motion
from ..steppers import Scheme
from ..steppers.flow import NO_FLOAT_WARNINGS, ExplicitFlow, PointFlow
from ..steppers.radau import Radau, StiffFlow, collocation
from ..steppers.splitting import FixedSteps
from .journal import Journal, Stretch
from .run_tangents import RunTangents

if TYPE_CHECKING:
    from ..results.solution import Solution

END_OF_STEP = 1 - 1e-9  # fractions of a step that count as its end


class StateChange(dict[str, np.ndarray]):
    """The change of a state along a tangent: changes of its arrays, by name.

    They are attributes too: ``change.x`` is ``change["x"]``.
    """

    def __missing__(self, name: str) -> np.ndarray:
        raise KeyError(f"The state has changes of {list(self)}; got {name!r}.")

    def __getattr__(self, name: str) -> np.ndarray:
        if name not in self:
            raise AttributeError(f"The state has changes of {list(self)}; got {name!r}.")
        return self[name]

    def __repr__(self) -> str:
        sizes = [f"{name} {np.abs(a).max(initial=0):.3g}" for name, a in self.items()]
        return f"StateChange({', '.join(sizes)})"


class FlowTangents(RunTangents[StateChange]):
    """Derivatives of a run of a flow, with fixed merges: see `RunTangents`."""

    def __init__(self, run: "Solution", tangents: dict[str, tuple[StateChange, ...]], motion: Any):
        super().__init__(run, tangents)
        self._motion = motion

    def _measured(self, name: str) -> list[dict[str, Any]]:
        """Changes of the observables at the outputs, by a parameter or along a direction."""
        parameter = None if name.startswith("direction_") else name
        linearised = self._motion.linearised([parameter], [None])
        pairs = zip(self._run.states, self[name], self.t, strict=True)
        return [linearised.measured(state, h, parameter, t) for state, h, t in pairs]


def check_flow(tangents: Mapping[str, Any], motion: Any, state: Any) -> None:
    """Raise MeanfieldError for parameters and motions of a user without derivatives."""
    linearised = motion.linearised(*_by_kind(tangents))  # refuses parameters without derivatives
    if type(motion).along is Motion.along:  # a user's motion may use functions without derivatives
        try:
            with np.errstate(**NO_FLOAT_WARNINGS):
                linearised.velocity(linearised.first(state), 0.0)
        except NoDerivative as error:
            name = type(motion).__name__
            raise MeanfieldError(f"{name} has no derivatives along tangents. {error}") from error


def _by_kind(tangents: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """Two lists with an entry for each tangent: parameter or None, and direction or None."""
    names = [h if isinstance(h, str) else None for h in tangents.values()]
    return names, [None if isinstance(h, str) else h for h in tangents.values()]


class DifferentiatedFlow:
    """A run of a flow, whose steps are repeated with tangents.

    Parameters
    ----------
    motion : Motion
    journal : Journal
    state : object
        The initial state.
    names, directions : sequence
        The parameter, or the direction, of each tangent: see `LinearisedMotion`.
    start : float
        The time at which the run starts.
    """

    def __init__(
        self,
        motion: Any,
        journal: Journal,
        state: Any,
        names: TangentNames,
        directions: Sequence[Any],
        start: float = 0.0,
    ):
        """Linearise the motion along parameters and directions, from the first state on."""
        self.motion, self.stretches, self.start = motion, journal.stretches, start
        self.linearised: LinearisedMotion = motion.linearised(names, directions)
        self._moving = self.linearised  # acts on the rows that remain after merges
        if self.stretches:
            self.linearised.enter(*self.stretches[0].ends)
        self.first = self.linearised.first(state)

    def stacks(
        self, elapsed: np.ndarray, *, event: bool = False
    ) -> Iterator[tuple[LinearisedMotion, np.ndarray]]:
        """Yield the motion and the stack of state and tangents at times since the start.

        The times increase. If the last one is the time of an `event`, its state is computed by a
        shorter step instead of interpolation.
        """
        outputs, Y, labels = list(elapsed), self.first, None
        last = max((i for i, s in enumerate(self.stretches) if len(s.steps)), default=-1)
        for i, number, flow, Y in self._walked():
            stretch = self.stretches[i]
            labels = stretch.labels
            if flow is None:
                while outputs and outputs[0] <= (stretch.steps[0, 0] if len(stretch.steps) else 0):
                    yield self.linearised, self._all_rows(Y.copy(), labels)
                    outputs.pop(0)
                continue
            begin, dt = stretch.steps[number]
            final = number == len(stretch.steps) - 1
            while outputs and ((final and i == last) or outputs[0] <= begin + dt):
                share = (outputs[0] - begin) / dt
                if share >= END_OF_STEP and final and i + 1 < len(self.stretches):
                    break  # the next stretch begins with a merge or a jump
                outputs.pop(0)
                stack = self._inside(flow, stretch, share, shorter=event and not outputs)
                yield self.linearised, self._all_rows(stack, labels)
        for _ in outputs:
            yield self.linearised, self._all_rows(Y.copy(), labels)

    def steps(self) -> Iterator[tuple[float, Any]]:
        """Yield the time since the start, and the flow, after every step.

        The caller may restart the flow with other tangents.
        """
        for i, number, flow, _ in self._walked():
            if flow is not None:
                yield float(self.stretches[i].steps[number].sum()), flow

    def _walked(self) -> Iterator[tuple[int, int, Any, np.ndarray]]:
        """Yield stretch, step, flow and stack after each step, and without flow before the first.

        Stretches and steps are indices.
        """
        with np.errstate(**NO_FLOAT_WARNINGS):
            Y, labels, self._moving = self.first, None, self.linearised
            for i, stretch in enumerate(self.stretches):
                if stretch.labels is not labels and stretch.labels is not None:
                    Y, labels = self._merged(Y, labels, stretch.labels), stretch.labels
                yield i, 0, None, Y
                if not len(stretch.steps):
                    continue
                self._moving.enter(*stretch.ends)
                flow = self._flow(stretch, Y, float(stretch.steps[0, 0]))
                for number, (begin, dt) in enumerate(stretch.steps):
                    flow.take(begin, dt, stretch.stages[number])
                    yield i, number, flow, flow.x
                Y = flow.x

    def _inside(self, flow: Any, stretch: Stretch, share: float, *, shorter: bool) -> np.ndarray:
        """The stack at the fraction `share` of the last step, interpolated or by a shorter step."""
        step = flow.before
        if share >= END_OF_STEP:
            return flow.x.copy()
        if flow.dense and not shorter:
            return flow.within(step.elapsed + share * step.dt)
        shorter_flow = self._flow(stretch, step.x, step.elapsed)
        shorter_flow.take(step.elapsed, share * step.dt)
        return shorter_flow.x

    def _flow(self, stretch: Stretch, Y: np.ndarray, elapsed: float) -> Any:
        """A flow that takes the steps of a stretch, from the stack Y at a time since the start."""
        scheme, field = stretch.scheme, self._moving
        start = self.start + elapsed
        if isinstance(scheme, Scheme):
            flow: Any = (
                ImplicitTangents(field, Y, self.motion.rtol, self.start)
                if scheme is Radau
                else ExplicitFlow(scheme, field, Y, start=self.start)
            )
            if start != self.start:
                flow.restart(Y, start)
            return flow
        step = lambda Y, t, dt: field.step(scheme, Y, t, dt)  # noqa: E731
        return FixedSteps(scheme, step, Y, start=self.start)

    def _merged(self, Y: np.ndarray, earlier: Any, labels: np.ndarray) -> np.ndarray:
        """The stack after a merge; `earlier`, `labels`: rows of all tokens before and after."""
        rows = np.arange(len(labels)) if earlier is None else earlier
        targets = np.empty(Y.shape[2], dtype=int)
        targets[rows] = labels
        self._moving, Y = self._moving.merged(Y, targets)
        return Y

    def _all_rows(self, Y: np.ndarray, labels: Any) -> np.ndarray:
        """The stack with one row for every token, merged ones included."""
        return Y if labels is None else Y[..., labels, :]


class ImplicitTangents(PointFlow):
    """Steps of `Radau` for a stack of coordinates y and tangents dy.

    The increments Z of the stages solve Z = dt A v(y + Z); their changes dZ solve

        dZ_i = dt sum_j A_ij (J_j dZ_j + Dv(y + Z_j) (dy, dparameter)),    J_j = Dv(y + Z_j)

    one linear system of size s N for s stages and N coordinates. Newton's method for Z stops at
    1e-3 of rtol; dZ is the derivative at the resulting Z.

    Parameters
    ----------
    field : LinearisedMotion
    Y : ndarray, (1 + p, ...)
    rtol : float
        The relative tolerance of the run.
    start : float
    """

    def __init__(self, field: LinearisedMotion, Y: np.ndarray, rtol: float, start: float):
        """Flow of Y (1 + p, ...) by Radau, with the Jacobian from unit tangents."""
        motion, size = field.motion, Y[0].size
        self._base = StiffFlow(Radau, motion, Y[0], rtol=rtol, start=start)
        self._unit: Any = motion.linearised([None] * size, [None] * size)
        self._basis = np.eye(size).reshape(size, *Y[0].shape)
        super().__init__(Radau, field, Y, start=start)

    def step(self, x: np.ndarray, velocity: Any, elapsed: float, dt: float) -> tuple[Any, ...]:
        """The stack one step after x, its velocity, and an error estimate of 0."""
        t, y, dy = self._start + elapsed, x[0], x[1:]
        (nodes, A), N = collocation(), y.size
        Z = self._base.increments(y, elapsed, dt)
        if Z is None:
            raise MeanfieldError(
                f"Newton's method did not converge in the step from t = {t:g} when it was taken "
                "again for derivatives. Use a larger rtol."
            )
        stages = len(nodes)
        jacobians, forcing = np.empty((stages, N, N)), np.empty((stages, len(dy), N))
        for i, (z, c) in enumerate(zip(Z, nodes, strict=True)):
            stage = (y + z.reshape(y.shape))[None]
            rates = self._unit.velocity(np.concatenate([stage, self._basis]), t + c * dt)
            jacobians[i] = rates[1:].reshape(N, N).T
            stage_rates = self._field.velocity(np.concatenate([stage, dy]), t + c * dt)
            forcing[i] = stage_rates[1:].reshape(len(dy), N)
        # (1 - dt A J) dZ = dt A (Dv dy + dv/dparameter), the stages one after another
        matrix = np.eye(stages * N) - dt * np.einsum("ij,jab->iajb", A, jacobians).reshape(
            stages * N, stages * N
        )
        forces = dt * np.einsum("ij,jpa->iap", A, forcing).reshape(stages * N, len(dy))
        last = np.linalg.solve(matrix, forces)[-N:].T.reshape(dy.shape)
        new = np.concatenate([(y + Z[-1].reshape(y.shape))[None], dy + last])
        new = self._field.projected(new)
        return new, self._field.velocity(new, t + dt), 0.0


def flow_tangents_of(
    run: Any, motion: Any, journal: Journal, initial: Any, tangents: dict[str, Any]
) -> FlowTangents:
    """The derivatives of a run of a flow from `initial` along its accepted steps."""
    start = run.options["t_start"]
    member = DifferentiatedFlow(motion, journal, initial, *_by_kind(tangents), start)
    result: dict[str, list[StateChange]] = {name: [] for name in tangents}
    for linearised, Y in member.stacks(run.t - start, event=run.status == "event"):
        for name, arrays in zip(tangents, linearised.changes(Y), strict=True):
            result[name].append(StateChange(arrays))
    journal.forget_stages()
    return FlowTangents(run, {name: tuple(changes) for name, changes in result.items()}, motion)
