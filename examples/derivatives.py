r"""
Derivatives of runs: a fit by tangents, a gradient by the adjoint
=================================================================

A density moves under USA until t = 1. From its first four moments at t = 0.5 and t = 1, the
Gauss-Newton method recovers :math:`\beta` and :math:`1/\kappa`; its Jacobian comes from the
tangents of the run. The gradient of the final second moment with respect to the initial law shows
where additional mass increases it most. Along this gradient the moment grows as predicted, with an
error of second order in the length of the step.

:math:`\beta` of attention and the factor of its values are recovered in the same way from the
positions of 32 tokens on their way to consensus. At consensus their Lyapunov exponents are 0 and
-1.

:Source: the tangent and adjoint equations of (9) in the survey.
:Run time: 3 s, ``python examples/derivatives.py``
:Look at: the error of the fit, which each step squares.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

CIRCLE = mf.Circle(48)
MU0 = CIRCLE.density(lambda theta: 1 + 0.3 * np.cos(theta) + 0.2 * np.cos(2 * theta + 1))
TRUE, GUESS, STEPS = np.array([3.0, 5.0]), np.array([2.7, 4.6]), 8
LENGTH = 1e-4


def solved(beta: float, kappa: float, start: mf.Density = MU0, tangents=()) -> mf.Solution:
    """The run that is fitted."""
    model = mf.Transformer(mf.USA(beta=beta), kappa=kappa)
    return mf.solve(model, start, (0, 1), t_eval=[0.5, 1.0], rtol=1e-10, tangents=tangents)


def moments(states) -> np.ndarray:
    """Moments 1 to 4 of densities, or of their derivatives, as real numbers."""
    found = np.array([state.moment(k) for state in states for k in range(1, 5)])
    return np.concatenate([found.real, found.imag])


def second(x: np.ndarray) -> np.ndarray:
    """cos(2 theta)."""
    return x[:, 0] ** 2 - x[:, 1] ** 2


def run(out: Path) -> list[Row]:
    """Fit, predict, and write derivatives.png."""
    seen, at, errors = moments(solved(*TRUE)), GUESS, []
    for _ in range(STEPS):
        one = solved(*at, tangents=["beta", "kappa"])
        by_beta, by_kappa = (moments(one.tangents[name]) for name in ("beta", "kappa"))
        jacobian = np.stack([by_beta, -(at[1] ** 2) * by_kappa], axis=1)  # in beta and 1/kappa
        errors.append(np.abs(at - TRUE).max())
        step = np.linalg.lstsq(jacobian, seen - moments(one), rcond=None)[0]
        at = np.array([at[0] + step[0], 1 / (1 / at[1] + step[1])])
    last = solved(*at)
    gradient = mf.gradient(second, last)
    direction = np.array(gradient.initial.coefficients)
    direction[0] = 0  # tokens are moved, not added
    predicted = gradient.initial.paired(mf.Variation(CIRCLE, direction))
    ends = [
        solved(*at, mf.Density(CIRCLE, MU0.coefficients + sign * LENGTH * direction)).final
        for sign in (1, -1)
    ]
    measured = (ends[0].expect(second) - ends[1].expect(second)) / (2 * LENGTH)
    figure(errors, gradient.initial).savefig(out / "derivatives.png")
    return [
        Row("beta", float(at[0]), TRUE[0], 1e-8),
        Row("kappa", float(at[1]), TRUE[1], 1e-8),
        Row("growth of the second moment", float(measured), float(predicted), 2e-5),
        *of_tokens(),
    ]


def of_tokens() -> list[Row]:
    """A fit to tokens, and the exponents of their consensus."""
    start = mf.Tokens(MU0.sample(32, rng=0).x)
    names = ["drifts[0].beta", "factors[0]"]

    def moved(beta: float, factor: float, tangents=()) -> mf.Solution:
        model = mf.Transformer(mf.Sum([mf.SA(beta=beta)], [factor]))
        return mf.solve(model, start, (0, 2), t_eval=[1.0, 2.0], rtol=1e-10, tangents=tangents)

    def places(states) -> np.ndarray:
        return np.concatenate([state.x.ravel() for state in states])

    seen, at = places(moved(3.0, 1.2)), np.array([2.0, 1.0])
    for _ in range(STEPS):
        one = moved(*at, tangents=names)
        jacobian = np.stack([places(one.tangents[name]) for name in names], axis=1)
        at = at + np.linalg.lstsq(jacobian, seen - places(one), rcond=None)[0]
    half = mf.Tokens(start.x[start.x[:, 0] > 0][:4])
    model = mf.Transformer(mf.SA(beta=3.0))
    gathered = mf.solve(model, half, (0, 60), dt=0.2, t_eval=[60.0])
    exponents = mf.lyapunov_exponents(gathered, 4).late
    return [
        Row("beta, from tokens", float(at[0]), 3.0, 1e-8),
        Row("factor, from tokens", float(at[1]), 1.2, 1e-8),
        Row("largest exponent at consensus", float(exponents[0]), 0.0, 1e-6),
        Row("least exponent at consensus", float(exponents[-1]), -1.0, 1e-6),
    ]


def figure(errors: list[float], gradient: mf.Variation):
    """Errors of the fit by the number of steps, and the gradient in the initial law."""
    import matplotlib.pyplot as plt

    with theme.style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
        left.semilogy(np.maximum(errors, 1e-16), "o-")
        left.set(xlabel="steps", ylabel=r"error of $\beta$, $\kappa$")
        right.plot(CIRCLE.angles, gradient.values)
        right.set(xlabel=r"$\theta$", ylabel=r"$dJ/d\mu_0$")
    return figure


if __name__ == "__main__":
    run_alone(__doc__, run)
