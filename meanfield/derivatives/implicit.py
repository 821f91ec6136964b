"""Implicit steps of a flow with tangents, by the differentiated equations of the stages."""

from typing import Any

import numpy as np

from ..core.errors import MeanfieldError
from ..dynamics.linearised import LinearisedMotion
from ..steppers.flow import PointFlow
from ..steppers.radau import Radau, StiffFlow, collocation


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
