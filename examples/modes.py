r"""
All modes of a kernel density estimate of tokens, and mean-shift by one attention layer
=======================================================================================

Measured: the mean number of modes of 10 000 uniform tokens on the circle, against the Kac-Rice
formula; the speed of softmax attention at each mode, which is 0; and the variance of a Gaussian
under three steps of mean-shift on the line, :math:`s \mapsto s\, (\beta s/(1 + \beta s))^2`.

:Source: Survey, section 5.3; Geshkovski, Rigollet and Sun, arXiv:2412.09080.
:Run time: 15 s, ``python examples/modes.py``
:Look at: one mode for each hill of the density estimate, at which attention vanishes.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.special import ive

import meanfield as mf
from meanfield.dynamics.kernel_modes import KernelModes
from meanfield.plotting import theme

BETA, SAMPLES, STEPS = 50.0, 40, 3
EXPECTED = 8.6532  # (sum k^4 I_k^2/sum k^2 I_k^2)^(1/2), I_k = I_k(50)


def run(out: Path) -> list[Row]:
    """Count, take steps, draw modes.png, compare."""
    rng = np.random.default_rng(0)
    samples = [mf.Tokens.uniform(10_000, 2, rng=rng) for _ in range(SAMPLES)]
    found = [mf.kernel_modes(tokens, BETA) for tokens in samples]
    counts = np.array([len(modes) for modes in found])
    error = counts.std(ddof=1) / np.sqrt(SAMPLES)
    undecided = sum(modes.undecided for modes in found)
    draw(samples[0], found[0], out / "modes.png")
    speeds = [speed(tokens, modes) for tokens, modes in zip(samples, found, strict=True)]
    beta, s, measured = 10.0, 0.04, variances(10.0, 0.04)
    rows = []
    for step, variance in enumerate(measured, start=1):
        s *= (beta * s / (1 + beta * s)) ** 2
        rows.append(Row(f"variance after step {step}", variance, s, 1e-10, relative=True))
    return [
        Row("modes on average, beta = 50", counts.mean(), EXPECTED, 4.5 * error),
        Row("modes that rounding leaves undecided", undecided, 0, 0),
        Row("largest speed of SA at a mode", max(speeds), 0, 2e-12),
        *rows,
    ]


def speed(tokens: mf.Tokens, modes: KernelModes) -> float:
    """The largest of SA at the modes: of tokens without mass that are put there."""
    there = mf.Tokens.on_circle(modes.places)
    x, masses = np.concatenate([there.x, tokens.x]), np.append(0 * there.masses, tokens.masses)
    mean = mf.attend(mf.SA(BETA), mf.Tokens(x, masses))
    across = np.stack([-there.x[:, 1], there.x[:, 0]], axis=1)
    output = mean.radii[:, None] * mean.x
    return float(np.abs((output[: len(across)] * across).sum(axis=1)).max())


def variances(beta: float, variance: float) -> list[float]:
    """Of a Gaussian on the line, by its Gauss-Hermite nodes, after each step of mean-shift."""
    nodes, masses = np.polynomial.hermite_e.hermegauss(40)
    x = np.sqrt(variance) * nodes[:, None]
    tokens, found = mf.Tokens(x, masses / masses.sum(), on_sphere=False), []
    for _ in range(STEPS):
        tokens = mf.attend(mf.Attention(beta=beta / 2, weights=mf.L2()), tokens)
        found.append(float(tokens.masses @ tokens.x[:, 0] ** 2))
    return found


def draw(tokens: mf.Tokens, modes: KernelModes, path: Path) -> None:
    """The estimate around the circle and its modes."""
    from matplotlib.figure import Figure

    angle = np.linspace(-np.pi, np.pi, 1001)
    gaps = angle[:, None] - np.arctan2(tokens.x[:, 1], tokens.x[:, 0])
    mean = ive(0, BETA)  # of e^(beta (cos - 1)) over the circle
    with theme.style():
        figure = Figure(figsize=(6, 3), dpi=200, layout="constrained")
        ax = figure.subplots()
        ax.plot(angle, np.exp(BETA * (np.cos(gaps) - 1)) @ tokens.masses / mean)
        ax.plot(modes.places, modes.heights / mean, "o", color="C3", label=f"{len(modes)} modes")
        ax.axhline(1, color=theme.FAINT, lw=0.8, zorder=0, label="uniform density")
        ax.set(xlabel=r"angle $\theta$", ylabel="kernel density estimate", xlim=angle[[0, -1]],
               title=rf"10 000 uniform tokens, $\beta = {BETA:g}$")  # fmt: skip
        ax.set_xticks([-np.pi, 0, np.pi], [r"$-\pi$", "0", r"$\pi$"])
        ax.legend()
        figure.savefig(path)


if __name__ == "__main__":
    run_alone(__doc__, run)
