"""How cycles begin at Hopf points: the first Lyapunov coefficient, and the first small orbit.

At a stationary state c with A = dF/dc, A q = i omega q, A^T p = -i omega p, |q| = 1, <p, q> = 1,
and the second and third derivatives B and C of F, the amplitude a of the pair obeys
d|a|/dt = l |a|^3 + ... at the Hopf point, with

    l = Re(<p, C(q, q, q')> - 2 <p, B(q, A^-1 B(q, q'))> + <p, B(q', (2 i omega - A)^-1 B(q, q))>)
        / 2,

where q' is the conjugate of q. l/omega is the first Lyapunov coefficient: negative where stable
cycles begin (supercritical), positive where unstable ones do. B and C are differences of order 10
of the exact A along the real and imaginary parts of q.

References
----------
Kuznetsov, Elements of Applied Bifurcation Theory (2004), equation (5.34).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..core.calls import checked_call
from ..core.checks import require
from ..core.differences import NODES, WEIGHTS
from ..core.errors import MeanfieldError
from .bases import Array
from .cycle import basis_of_cycles, flow_of
from .cycle_curve import CoefficientFlow

DIFFERENCE = 0.05  # step of differences, in L^2
LEAST_FREQUENCY = 1e-6  # least frequency of a pair
AT_HOPF_POINT = 1e-6  # largest rate of change, and growth rate, at a Hopf point of the same model
CURVATURES = np.array([5 / 3, -5 / 21, 5 / 126, -5 / 1008, 1 / 3150])  # second differences
SECOND = np.array([*CURVATURES[::-1], *CURVATURES])


class NeutralPair(NamedTuple):
    """The pair of eigenvalues nearest to the imaginary axis at a stationary state.

    Attributes
    ----------
    motion : CoefficientFlow
    c : ndarray, (N,)
        Coefficients of the state.
    p : float
        Parameter of its curve.
    value : complex
    vector : ndarray, (N,)
        q.
    """

    motion: CoefficientFlow
    c: Array
    p: float
    value: complex
    vector: Any


def neutral_pair(motion: CoefficientFlow, point: Any, value: float) -> NeutralPair:
    """The pair at a special point, at a value of the parameter of a curve."""
    density = point.state.density
    if motion.rotations:
        raise MeanfieldError(
            f"The model is invariant under rotations: at {point.parameter} = {point.value:.8g} no "
            "cycle begins, but rotating waves, which are branches of `branches` with a speed, and "
            "standing waves, which mf.cycle finds from the end of a run."
        )
    if density.space.degree > motion.basis.degree:
        motion = CoefficientFlow(motion.states.finer(density.space.degree))
    basis, p = motion.basis, motion.states.coordinate(value)
    c = basis.moments(density)[0] * basis.sizes
    values, vectors = np.linalg.eig(motion.jacobian(c, p))
    pairs = np.flatnonzero(values.imag > LEAST_FREQUENCY)
    require("point", point, "a Hopf point, with a pair of growth rates", pairs.size > 0)
    chosen = pairs[np.abs(values[pairs].real).argmin()]
    moving, growth = np.linalg.norm(motion.rate(c, p)), values[chosen].real
    if max(moving, abs(growth)) > AT_HOPF_POINT * max(1.0, values[chosen].imag):
        raise ValueError(
            f"No Hopf point of the model is at {motion.states.parameter} = {value:.8g}: there the "
            f"density of the point changes at the rate {moving:.1e}, and its pair grows at the "
            f"rate {growth:.1e}; both would be 0. Give the model of the diagram that has the point."
        )
    return NeutralPair(motion, c, p, complex(values[chosen]), vectors[:, chosen])


@checked_call()
def first_lyapunov(point: Any) -> float:
    """First Lyapunov coefficient of a Hopf point of `branches`.

    Parameters
    ----------
    point : SpecialPoint
        Of the kind Hopf, of a model without rotational invariance.

    Returns
    -------
    float
        Negative where stable cycles begin, positive where unstable ones do; for an eigenvector of
        norm 1 in L^2, over the frequency.

    Raises
    ------
    ValueError
        For other special points.
    MeanfieldError
        For models invariant under rotations, whose pair begins a rotating wave.
    """
    require("point", point, "a SpecialPoint of the kind Hopf", getattr(point, "kind", "") == "Hopf")
    model = point.state.model
    basis = basis_of_cycles([model], point.state.density.space)
    pair = neutral_pair(flow_of(model, basis), point, float(model.kappa))
    return lyapunov_coefficient(partial(pair.motion.jacobian, p=pair.p), pair.c, pair.value.imag)


def lyapunov_coefficient(jacobian: Callable[[Array], Array], c: Array, omega: float) -> float:
    """First Lyapunov coefficient at coefficients c with the eigenvalue i omega of A = dF/dc."""
    operator = jacobian(c)
    values, right = np.linalg.eig(operator)
    q = right[:, np.abs(values - 1j * omega).argmin()]
    values, left = np.linalg.eig(operator.T)
    adjoint = left[:, np.abs(values - 1j * omega).argmin()]
    adjoint = adjoint / (adjoint @ q)  # <p, x> = adjoint @ x
    first, second = [], []
    for part in (q.real, q.imag):
        ahead = [jacobian(c + DIFFERENCE * j * part) for j in NODES]
        first.append(np.tensordot(WEIGHTS, ahead, 1) / DIFFERENCE)
        middle = -np.sum(SECOND) * operator
        second.append((np.tensordot(SECOND, ahead, 1) + middle) / DIFFERENCE**2)
    along = first[0] + 1j * first[1]  # B(q, .)
    mean = np.linalg.solve(operator, along @ q.conj())
    double = np.linalg.solve(2j * omega * np.eye(len(q)) - operator, along @ q)
    total = (second[0] + second[1]) @ q - 2 * along @ mean + along.conj() @ double
    return float((adjoint @ total).real / (2 * omega))
