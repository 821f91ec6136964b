r"""
Tokens that repel each other settle at the vertices of Platonic solids
======================================================================

With values V = -1 attention repels: under USA the energy
:math:`\frac{1}{2\beta n^2} \sum_{ij} e^{\beta\langle x_i, x_j\rangle}` decreases. Its minimisers on
:math:`S^2` for 4, 6 and 12 tokens are the regular tetrahedron, octahedron and icosahedron, as for
every potential that is completely monotonic in the squared distance. Runs from random starts are
compared: inner products of different vertices are -1/3; 0 or -1; and :math:`\pm 1/\sqrt 5` or -1.

:Source: Geshkovski, Letrouit, Polyanskiy and Rigollet, arXiv:2312.10794, section 9.1; Cohn and
    Kumar, J. Amer. Math. Soc. 20 (2007).
:Run time: 8 s, ``python examples/platonic_solids.py``
:Look at: the movie of twelve tokens, which spread fast and then slowly reach their positions.
"""

from pathlib import Path

import numpy as np
from movies import movie_path
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

SOLIDS = {  # n: name, inner products of different corners; beta and the time for which it runs
    4: ("tetrahedron", (-1 / 3,), 1.0, 60.0),
    6: ("octahedron", (-1.0, 0.0), 1.0, 400.0),
    12: ("icosahedron", (-1.0, -1 / np.sqrt(5), 1 / np.sqrt(5)), 8.0, 4.0),
}
SEEN = np.array([[0.9, 0.4, 0.2], [-0.3, 0.8, -0.5], [-0.3, 0.4, 0.85]])


def run(out: Path) -> list[Row]:
    """Solve for 4, 6 and 12 tokens, draw platonic_solids.png and a movie, compare."""
    finals, rows = {}, []
    for n, (name, products, beta, end) in SOLIDS.items():
        tokens = mf.Tokens.uniform(n, 3, rng=n)
        model = mf.Transformer(-1 * mf.USA(beta))
        finals[n] = mf.solve(model, tokens, (0, end), t_eval=[end], rtol=1e-9).final.x
        cosines = (finals[n] @ finals[n].T)[np.triu_indices(n, 1)]
        off = np.abs(cosines[:, None] - np.array(products)).min(axis=1).max()
        rows.append(Row(f"{name}: largest error of an inner product", float(off), 0.0, 1e-6))
    t = (np.geomspace(1, 60, 60) - 1) / 400
    film = mf.solve(model, tokens, (0, t[-1]), t_eval=t, rtol=1e-9)
    film.animate(movie_path(out, "platonic_solids"), dpi=100, title="$V = -1$, 12 tokens")
    draw(finals).savefig(out / "platonic_solids.png")
    return rows


def draw(finals: dict[int, np.ndarray]):
    """The solids, edges between nearest corners; those behind are faint."""
    frame = np.linalg.qr(SEEN)[0]
    around = np.linspace(0, 2 * np.pi, 181)
    with theme.style():
        page = theme.figure(width=6.6, height=2.4)
        for ax, (n, x) in zip(page.subplots(1, 3), finals.items(), strict=True):
            ax.plot(np.cos(around), np.sin(around), color=theme.FAINT, lw=0.8)
            place = x @ frame
            cosines = x @ x.T - 2 * np.eye(n)
            for i, j in np.argwhere(np.triu(cosines > cosines.max() - 0.01)):
                behind = place[[i, j], 2].mean() < 0
                ax.plot(*place[[i, j], :2].T, color=theme.PALETTE[0], lw=1.4,
                        alpha=0.3 if behind else 1.0)  # fmt: skip
            front = place[:, 2] >= 0
            for some, alpha in ((~front, 0.4), (front, 1.0)):
                ax.plot(*place[some, :2].T, "o", color=theme.PALETTE[1], alpha=alpha, markersize=6)
            ax.set_aspect("equal")
            ax.set_axis_off()
            ax.set_title(f"{n} tokens: {SOLIDS[n][0]}")
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
