r"""
Where noisy attention forgets the number of tokens, and where not
=================================================================

Between the fold and the onset of a first-order transition two states of noisy USA are stable, and
:math:`n` tokens leave the one of higher free energy after a time :math:`T(n)` with
:math:`\frac1n\log T(n) \to \kappa\,\Delta F`, the barrier between them. There chaos is not uniform
in time: for times beyond :math:`T(n)` tokens and density differ, however large :math:`n` is. Below
the fold it is uniform. Above the onset the order of the tokens only turns, on times of the order of
:math:`n`. The wedge opens at the tricritical point. Measured at six points by plain ensembles,
against the law of Eyring and Kramers.

:Source: Survey, section 7, and open question 1 of its summary; page Uniform in time.
:Run time: 30 s, ``python examples/lifetimes.py``
:Look at: the colour between the two lines, the barrier of the state of higher free energy, which is
    0 along both of them and largest along the transition; the points are measured.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.interpolate import PchipInterpolator

import meanfield as mf
from meanfield.plotting import theme

SPACES = {"circle": (mf.Circle(32), np.linspace(2.6, 10, 26)),
          "$S^2$": (mf.Sphere(16), np.linspace(1.9, 6, 26))}  # fmt: skip
# space, beta, share of the way from fold to onset, whether from the ordered state
POINTS = (
    ("circle", 6.0, 0.12, False), ("circle", 8.0, 0.12, False), ("circle", 6.0, 0.5, True),
    ("$S^2$", 5.0, 0.12, False), ("$S^2$", 4.0, 0.4, True), ("$S^2$", 5.0, 0.3, True),
)  # fmt: skip
BARRIER, TRAJECTORIES, STEP = 3.5, 32, 0.01  # n kappa dF; dt/kappa


def order(tokens):
    return np.linalg.norm(tokens.x.mean(axis=-2), axis=-1)


def disorder(tokens):
    return -order(tokens)


def barriers(beta, space):
    """kappa from fold to onset, and kappa dF from the uniform and from the ordered state."""
    onset = 1 / mf.USA(beta).attraction(1, space.dimension)[1]
    diagram = mf.branches(mf.USA(beta), space, (0.4 * onset, 1.02 * onset), degrees=[1],
                          stability=False)  # fmt: skip
    (branch,) = (
        one for _, one in diagram.data.groupby("branch") if one.order_parameter.max() > 0.05
    )
    kappa, energy = branch.kappa.values, branch.free_energy.values
    fold = int(kappa.argmin())
    at = np.linspace(kappa[fold], onset, 41)
    unstable = PchipInterpolator(kappa[fold::-1], energy[fold::-1], extrapolate=True)(at)
    ordered = PchipInterpolator(kappa[fold:], energy[fold:])(at)
    return at, at * np.maximum(unstable, 0.0), at * (unstable - ordered)


def measured(name, beta, share, ordered, seed):
    """The law of a point and its measured mean time."""
    space = SPACES[name][0]
    at, _, _ = barriers(beta, space)
    model = mf.Transformer(mf.USA(beta), at[0] + share * (at[-1] - at[0]))
    states = [s for s in mf.stationary_states(model, space, symmetry="axisymmetric") if s.stable]
    states.sort(key=lambda s: s.order_parameter)
    law = mf.escape_time(states[-1 if ordered else 0], 100)
    law = mf.escape_time(law.state, int(np.ceil(BARRIER / law.exponent)), around=law.saddles)
    density, saddle = law.state.density, law.saddles[0].state.order_parameter
    x = np.stack([density.sample(law.n, rng=np.random.default_rng([seed, i])).x for i in range(32)])
    level, target = disorder, -saddle / 2
    if not ordered:
        level, target = order, (saddle + states[-1].order_parameter) / 2
    times = mf.first_passages(model, mf.Tokens(x), level, target=target, t_max=1e9, rng=seed,
                              replicas=TRAJECTORIES, dt=STEP * model.kappa,
                              progress=False)  # fmt: skip
    return law, times.mean_time


def run(out: Path) -> list[Row]:
    """Find the barriers, measure six points, draw lifetimes.png, compare."""
    found = [(*point, *measured(*point, seed)) for seed, point in enumerate(POINTS)]
    draw(found).savefig(out / "lifetimes.png")
    return [
        Row(f"log T, {name}, β = {beta:g}, from {'order' if ordered else 'uniform'}, n = {law.n}",
            float(np.log(time.value)), law.log_time, 2 / BARRIER + 3 * time.error / time.value)
        for name, beta, _, ordered, law, time in found
    ]  # fmt: skip


def draw(found):
    """The wedge of metastability on both spaces, with the barrier of the less deep state."""
    with theme.style():
        page = theme.figure(width=7.4, height=3.4)
        panels = page.subplots(1, 2)
        for ax, (name, (space, betas)) in zip(panels, SPACES.items(), strict=True):
            columns = [barriers(beta, space) for beta in betas]
            shares = np.array([at / at[-1] for at, _, _ in columns])
            least = np.array([np.minimum(up, down) for _, up, down in columns])
            top = least.max()
            image = ax.pcolormesh(np.broadcast_to(betas[:, None], shares.shape), shares, least,
                                  shading="gouraud", vmin=0, vmax=top, cmap="viridis")  # fmt: skip
            ax.plot(betas, shares[:, 0], color=theme.INK)
            ax.axhline(1, color=theme.INK)
            points = [(beta, share, law.exponent, time, law) for where, beta, share, _, law, time
                      in found if where == name]  # fmt: skip
            for beta, _, _, time, law in points:
                at = law.state.kappa * mf.USA(beta).attraction(1, space.dimension)[1]
                rest = law.log_prefactor + law.power * np.log(law.n)
                value = (np.log(time.value) - rest) / law.n
                ax.scatter([beta], [at], c=[value], vmin=0, vmax=top, cmap="viridis", s=42,
                           edgecolors="white", zorder=3)  # fmt: skip
            ax.text(0.03, 0.06, "uniform in time", transform=ax.transAxes)
            ax.text(0.97, 0.94, "up to rotation", transform=ax.transAxes, ha="right", va="top")
            ax.set(title=name, xlabel=r"$\beta$", ylim=(shares.min() - 0.08, 1.09))
            page.colorbar(image, ax=ax, label=r"$\kappa\,\Delta F$")
        panels[0].set_ylabel(r"$\kappa/\kappa_c$")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
