r"""
Where the flow ends: the stationary state reached, for hundreds of (beta, kappa)
================================================================================

From :math:`1 + 0.1 \cos\theta` the density under USA ends in the uniform state or in a cluster. For
random pairs of beta and kappa the flow is followed, as one ensemble, until it is slow,
:math:`\|\partial_t\mu\| \le 0.01`. Newton's method then finds the stationary state, and its
stability is checked. If the state is unstable, or far from the end of the flow, the pair is listed:
it is metastable, or close to the onset. For example, two clusters of unequal masses exchange mass
at rates of about 1e-9.

:Source: Survey, section 7; Carrillo et al., ARMA 235 (2020), for first-order transitions.
:Run time: 10 s, ``python examples/many_pairs.py``
:Look at: the colour changes on the curve :math:`\kappa = \beta/I_1(\beta)`; crosses, the slow
    pairs, lie along it and fill the corner of large beta and kappa, where two clusters form.
"""

from pathlib import Path

import numpy as np
from report import Row, run_alone
from scipy.special import iv

import meanfield as mf
from meanfield.plotting import theme

PAIRS, CHECKED = 300, 30
BETA, KAPPA = (0.5, 6.0), (0.3, 8.0)
SLOW, SPAN = 1e-2, 30.0  # the rate of change at which the flow is left, and the longest time
LONG, REST = 1000.0, 1e-7  # the same for flows that states are compared with
NEAR = 0.02  # how far the order parameter of the state may be from that of the flow
TRICRITICAL = 2.4469183113  # beta, beyond which the onset is discontinuous


def random_pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent pairs, uniform in a rectangle."""
    rng = np.random.default_rng(0)
    return rng.uniform(*BETA, count), rng.uniform(*KAPPA, count)


def flow(beta: np.ndarray, kappa: np.ndarray, rate: float, span: float, rtol: float) -> mf.Solution:
    """The ensemble of flows until each is slower than a rate of change."""
    start = mf.Circle(16).density(lambda x: 1 + 0.1 * np.cos(x))
    ends = {"t_eval": [span], "until": "steady", "steady_tolerance": rate}
    model = mf.Transformer(mf.USA(beta), kappa)
    return mf.solve(model, start, (0, span), rtol=rtol, progress=False, **ends)


def reached(beta: np.ndarray, kappa: np.ndarray) -> np.ndarray:
    """Order parameters of the stationary states that the flows reach; nan for those of slow ones.

    Slow are those whose state is not stable, or not near the flow when its rate of change is SLOW.
    """
    order = np.full(len(beta), np.nan)
    for i, law in enumerate(flow(beta, kappa, SLOW, SPAN, rtol=1e-6).final):
        state = mf.stationary(mf.Transformer(mf.USA(beta[i]), kappa[i]), law)
        near = abs(state.order_parameter - abs(law.moment(1))) <= NEAR
        if state.converged and near and state.stable:
            order[i] = state.order_parameter
    return order


def run(out: Path) -> list[Row]:
    """Find the states, compare some with long accurate flows, draw them."""
    beta, kappa = random_pairs(PAIRS)
    order = reached(beta, kappa)
    slow, onset = np.isnan(order), beta / iv(1, beta)
    some = np.flatnonzero(~slow)[:CHECKED]
    ends = flow(beta[some], kappa[some], REST, LONG, rtol=1e-8)
    error = np.abs(np.abs(ends.final.moment(1)) - order[some]).max()
    disordered = (kappa > onset) & (order < 1e-6)
    ordered = (kappa < onset) & (order > 1e-6) & (beta < TRICRITICAL)
    draw(beta, kappa, order).savefig(out / "many_pairs.png")
    return [
        Row(f"order parameters of {CHECKED} pairs, against long flows", error, 0.0, 3e-7),
        Row("pairs above the onset that stay uniform", int(disordered.sum()), 0, 0.0),
        Row("pairs below a continuous onset that order", int(ordered.sum()), 0, 0.0),
        Row(f"slow pairs among {PAIRS}", int(slow.sum()), "listed"),
    ]


def draw(beta: np.ndarray, kappa: np.ndarray, order: np.ndarray) -> theme.PaperFigure:
    """The pairs by order parameter, slow ones as crosses, and the onset."""
    fine, slow = np.linspace(*BETA, 200), np.isnan(order)
    with theme.style():
        page = theme.figure(width=4.4, height=3.2)
        ax = page.subplots()
        dots = ax.scatter(beta[~slow], kappa[~slow], c=order[~slow], s=9, vmin=0, vmax=1)
        ax.scatter(beta[slow], kappa[slow], s=7, c="0.6", marker="x", linewidths=0.6, label="slow")
        ax.plot(fine, fine / iv(1, fine), color="black", label=r"$\kappa = \beta/I_1(\beta)$")
        ax.set(xlabel=r"$\beta$", ylabel=r"inverse noise $\kappa$", yscale="log")
        ax.set_xlim(*BETA)
        ax.set_ylim(*KAPPA)
        page.colorbar(dots, ax=ax, label="order parameter reached")
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
