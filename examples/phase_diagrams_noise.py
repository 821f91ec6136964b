r"""
Phase diagrams under anisotropic noise: two onsets that cross, and a gap
========================================================================

Under :math:`\Sigma = \mathrm{diag}(1.3, 0.7)` the onset of USA splits. At :math:`\beta = 4` ordered
states along the first axis appear discontinuously, and become unstable across it. From there to the
fold of the states along the second axis no stationary state is stable, and densities rotate
periodically. In the plane of :math:`\beta` and :math:`\kappa` the two onsets cross. Onsets are
compared with those of an integral equation.

:Source: Survey, end of section 7, which asks for anisotropic noise.
:Run time: 10 s, ``python examples/phase_diagrams_noise.py``
:Look at: the gap between the stable branches, and the periodic orbit that fills it.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.optimize import brentq
from scipy.special import iv

import meanfield as mf
from meanfield.plotting import theme

CIRCLE = mf.Circle(32)
E, BETA, CYCLING = 0.3, 4.0, 0.37
NEUTRAL = 1e-8  # growth rates that are rounding
UNEVEN = mf.noise.Anisotropic(np.diag([1 + E, 1 - E]))


def run(out: Path) -> list[Row]:
    """Follow the branches, solve for the periodic orbit, draw both, compare."""
    usa = mf.branches(mf.USA(BETA), CIRCLE, (0.33, 0.45), noise=UNEVEN, max_step=0.03)
    plane = mf.phase_diagram(mf.USA, CIRCLE, (2.2, 3.0), noise=UNEVEN, places=1)
    usa.save(out / "phase_diagrams_noise.nc")
    model = mf.Transformer(mf.USA(BETA), kappa=CYCLING, noise=UNEVEN)
    t = np.linspace(0, 250, 2501)
    cycle = mf.solve(model, CIRCLE.von_mises(0.3, 3.0), t_span=(0, 250), t_eval=t, rtol=1e-8)
    figure(usa, plane, cycle).savefig(out / "phase_diagrams_noise.png")
    onsets = usa.special("bifurcation", 0)
    rows = [
        Row(f"onset of USA(4) along axis {order}", onset.value, exact_onset(sign * E), 1e-9)
        for onset, order, sign in zip(onsets, (1, 2), (1, -1), strict=True)
    ]
    crossing = float(brentq(lambda beta: split(plane, beta), 2.4, 2.7))
    rows.append(Row("beta at which the onsets cross", crossing, 2.549, 1e-3, remark="measured"))
    (_, _, last), *_, (_, first, _) = sorted(usa.stable_ranges())
    rows.append(Row("last stable state without order", last, onsets[0].value, 1e-9))
    rows.append(Row("first stable state with order", first, "a fold", remark="gap in between"))
    rows.append(Row(f"period at kappa = {CYCLING}", period(cycle), "none", remark="no free energy"))
    return rows


def exact_onset(e: float) -> float:
    """kappa_c of order along the first axis of diag(1 + e, 1 - e), from an integral equation.

    Without flux mu = exp(kappa G)/(s Z) with G' = v[mu]/s^2: solved by iteration for the state
    without order. Its perturbations are h = kappa mu (H - int H dmu), H' = v[h]/s^2: a matrix on
    odd cosines, whose largest eigenvalue is 1 at kappa_c.
    """
    theta = 2 * np.pi * np.arange(1024) / 1024
    s, k = np.sqrt(1 - e * np.cos(2 * theta)), np.arange(1, 64)
    waves = np.cos(k[:, None] * theta)
    slopes = -(iv(k, BETA) / BETA * k)[:, None] * np.sin(k[:, None] * theta) * 2 / s**2
    integrals = np.fft.irfft(np.fft.rfft(slopes) * np.append(0, -1j / np.arange(1, 513)))

    odd, even = slice(0, None, 2), slice(1, None, 2)

    def excess(kappa: float) -> float:
        mu = 1 / s
        for _ in range(200):
            mu = np.exp(kappa * (waves[even] @ mu / mu.sum()) @ integrals[even]) / s
        mu, H = mu / mu.sum(), integrals[odd]
        matrix = kappa * waves[odd] @ (mu * (H - (H @ mu)[:, None])).T
        return float(np.linalg.eigvals(matrix).real.max() - 1)

    return float(brentq(excess, 0.3, 0.45, xtol=1e-13))


def split(plane: mf.NoisePhaseDiagram, beta: float) -> float:
    """By how much the onset along the second axis is above that along the first."""
    return plane.kappa("onset 1", beta) - plane.kappa("onset 2", beta)


def period(run: mf.Solution) -> float:
    """The mean time between the last maxima of the order parameter."""
    r = run.observables.order_parameter.values
    peaks = np.flatnonzero((r[1:-1] > r[:-2]) & (r[1:-1] > r[2:])) + 1
    return float((run.t[peaks[-1]] - run.t[peaks[-3]]) / 2)


def figure(usa: mf.Diagram, plane: mf.NoisePhaseDiagram, cycle: mf.Solution) -> theme.PaperFigure:
    """Branches with the gap, the periodic orbit, and the onsets over beta."""
    with theme.style():
        page = theme.figure(width=7.4, height=2.7)
        left, middle, right = page.subplots(1, 3)
        draw_branches(left, usa, "order_parameter")
        (_, _, last), *_, (_, first, _) = sorted(usa.stable_ranges())
        left.axvspan(last, first, color=theme.FAINT, alpha=0.3, lw=0)
        left.annotate("no\nstable\nstate", ((last + first) / 2, 0.62), ha="center", va="center")
        left.set(xlabel=r"inverse noise $\kappa$", ylabel=r"$|\int x\,d\mu|$", xlim=usa.span)
        left.set(title=rf"USA, $\beta = {BETA:g}$, $\Sigma$ = diag({1 + E:g}, {1 - E:g})")
        z = np.array([state.moment(1) for state in cycle.states])
        late = cycle.t > 150
        middle.plot(z.real[~late], z.imag[~late], color=theme.FAINT, lw=0.7)
        middle.plot(z.real[late], z.imag[late], color=theme.PALETTE[1])
        middle.set(xlabel=r"$\int x_1\,d\mu$", ylabel=r"$\int x_2\,d\mu$", aspect="equal")
        middle.set(xlim=(0, 0.85), ylim=(0, 0.85))
        middle.set(title=rf"$\kappa = {CYCLING}$: period {period(cycle):.1f}")
        for name, axis in (("onset 2", 1), ("onset 1", 2)):
            here = plane.data.isel(point=plane.data.curve.values == name)
            beta = here.beta.values
            onset = here.kappa.values / [plane.reference(b) for b in beta]
            right.plot(beta, onset, label=f"order along axis {axis}")
        (corner,) = plane.tricritical
        right.plot(corner.beta, corner.kappa / plane.reference(corner.beta), "o", ms=4.5,
                   mfc="white", mec=theme.INK, ls="", label="tricritical")  # fmt: skip
        right.set(xlabel=r"$\beta$", ylabel=r"$\kappa/\kappa_1$", title="The two onsets")
        right.set(ylim=(0.895, 0.965))
        right.legend(loc="lower left")
    return page


def draw_branches(ax, diagram: mf.Diagram, name: str) -> None:
    """Stable states as lines, others dashed, special points in the range as circles."""
    data, (low, high) = diagram.data, diagram.span
    values = data[name].values if data[name].ndim == 1 else data[name].values[:, 0]
    index = 0 if name == "order_parameter" else 1
    points = [
        (s.value, (s.state.order_parameter, s.state.legendre_moments[0])[index])
        for s in diagram.special_points
        if low <= s.value <= high
    ]
    for number in np.unique(data.branch.values):
        here = data.branch.values == number
        colour = theme.INK if number == 0 else theme.PALETTE[(number - 1) % 6]
        line = np.stack([data.kappa.values[here], values[here]], axis=1)
        stable = data.growth.values[here] <= NEUTRAL
        ax.plot(*line.T, color=colour, ls="--", lw=0.8)
        ax.plot(*np.where(stable[:, None], line, np.nan).T, color=colour, lw=1.8)
        for i in np.flatnonzero(stable[1:] != stable[:-1]):  # on to the point where it changes
            ends = np.sort(line[i : i + 2], axis=0) + np.array([[-1e-6], [1e-6]])
            for point in (p for p in points if np.all((ends[0] <= p) & (p <= ends[1]))):
                ax.plot(*np.stack([line[i + (not stable[i])], point]).T, color=colour, lw=1.8)
    for point in points:
        ax.plot(*point, "o", ms=3.5, mfc="white", mec=theme.INK)


if __name__ == "__main__":
    run_alone(__doc__, run)
