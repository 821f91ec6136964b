r"""
Limits of large beta: alignment, then diffusion with V = -1
===========================================================

Densities under attention are compared with their limits for large :math:`\beta`. One limit is
transport along :math:`P_x V B x/|B x|` (softmax with Q, K, V, :math:`B = K^T Q`, t = 0.4). The
others are, at s = 0.2, the heat equation (SA, :math:`s = t/\beta`), the porous medium equation
:math:`\partial_s \mu = \frac12 \Delta \mu^2` (USA, :math:`s = \lambda_0 t/\beta`) and the heat
equation at half the speed (Sinkhorn). When :math:`\beta` doubles, the largest error of a
coefficient halves: order 1 in :math:`1/\beta`.

:Source: Bruno, Pasqualotto and Agazzi, arXiv:2509.25040, alignment and heat phases.
:Run time: 6 s, ``python examples/limits.py``
:Look at: the densities for large :math:`\beta`, which lie on the dotted limits.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.integrate import solve_ivp
from scipy.special import ive

import meanfield as mf
from meanfield.plotting import theme

BETA, T, S = 64.0, 0.4, 0.2
CIRCLE = mf.Circle(64)
Q = np.array([[1.0, 0.3], [-0.2, 0.9]])
V = np.array([[1.0, 0.2], [-0.3, 0.7]])


def aligning(x: np.ndarray) -> np.ndarray:
    """V B x/|B x|, with K = 1."""
    w = x @ Q.T
    return (w / np.linalg.norm(w, axis=-1, keepdims=True)) @ V.T


def moved(drift, start: mf.Density, end: float) -> mf.Density:
    run = mf.solve(mf.Transformer(drift), start, (0, end), rtol=1e-9)
    return run.final.resample(CIRCLE.degree)


def diffused(start: mf.Density, pressure, end: float) -> mf.Density:
    """d mu/ds = Lap p(mu), by the method of lines."""

    def right(_s, parts):
        values = CIRCLE.to_values(parts.view(complex))
        return (CIRCLE.laplacian * CIRCLE.to_coefficients(pressure(values))).view(float)

    run = solve_ivp(right, (0, end), start.coefficients.view(float), rtol=1e-9, atol=1e-11)
    return mf.Density(CIRCLE, run.y[:, -1].copy().view(complex))


def attentions(beta: float) -> dict:
    """Names, and drifts with the time in which they reach the limit."""
    usa = -(beta / ive(0, beta)) * np.exp(-beta) * mf.USA(beta)  # in the time s
    sinkhorn = mf.Attention(V=-1.0, beta=beta, weights=mf.Sinkhorn())
    return {
        "softmax with Q, V": (mf.Attention(Q, V=V, beta=beta), T),
        "SA": (-mf.SA(beta), S * beta),
        "USA": (usa, S),
        "Sinkhorn": (sinkhorn, S * beta),
    }


def run(out: Path) -> list[Row]:
    """Solve with beta, 2 beta and in the limit, draw limits.png, compare."""
    start = CIRCLE.density(lambda a: np.exp(np.cos(a) + 0.5 * np.sin(2 * a)))
    limits = {
        "softmax with Q, V": moved(mf.Field(aligning), start, T),
        "SA": diffused(start, lambda u: u, S),
        "USA": diffused(start, lambda u: u**2 / 2, S),
        "Sinkhorn": diffused(start, lambda u: u / 2, S),
    }
    runs = [
        {name: moved(drift, start, end) for name, (drift, end) in attentions(beta).items()}
        for beta in (16.0, BETA, 2 * BETA)
    ]
    draw(start, limits, runs[0], out / "limits.png")
    rows = []
    for name, limit in limits.items():
        _, first, second = (
            np.abs(found[name].coefficients - limit.coefficients).max() for found in runs
        )
        rows.append(Row(f"{name}: largest error, beta = {2 * BETA:g}", second, "small"))
        rows.append(Row(f"{name}: error at {BETA:g} over it", first / second, 2, 0.1))
    return rows


def draw(start: mf.Density, limits: dict, found: dict, path: Path) -> None:
    """Densities at beta = 16 over their limits."""
    from matplotlib.figure import Figure

    angle = np.linspace(-np.pi, np.pi, 721)
    points = CIRCLE.embed(angle)
    with theme.style():
        figure = Figure(figsize=(8.4, 3.2), dpi=200, layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for ax in (left, right):
            ax.plot(angle, start.at(points), color="0.7", label="start")
        for i, (name, limit) in enumerate(limits.items()):
            ax = right if i else left
            ax.plot(angle, found[name].at(points), color=f"C{i}", label=rf"{name}, $\beta = 16$")
            ax.plot(angle, limit.at(points), "k:", label=None if 0 < i < 3 else "limit")
            ax.set(xlabel="angle", xlim=angle[[0, -1]])
            ax.legend(fontsize=8, loc="upper left")
        left.set(ylabel="density", title=f"alignment, $t = {T:g}$", ylim=(0, None))
        right.set(title=f"$V = -1$: diffusion, $s = {S:g}$")
        figure.savefig(path)


if __name__ == "__main__":
    run_alone(__doc__, run)
