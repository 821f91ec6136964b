r"""
Where tokens of a random Transformer collapse, and what the normalisation changes
=================================================================================

64 tokens with the mean cosine 0.3 pass layers of eight heads with random weights, d = 512. Before
any training, `mf.networks.Advice` predicts the layer at which the mean cosine crosses 0.8 under
Post-, Pre- and Peri-LN, and the number of tokens that attention averages over. It is compared with
one random network of each kind. For long contexts of equiangular tokens the critical
:math:`\beta`, at which a token gives half of its attention to itself, is
:math:`\log n/(1 - \rho)`.

:Source: the recursion is derived here; normalisations: arXiv:2510.22026; long contexts: Theorem 7
    of the survey, arXiv:2510.05554.
:Run time: 10 s, ``python examples/advice.py``
:Look at: Post-LN collapses first; dots, one random network each, lie on the lines.
"""

from pathlib import Path
from textwrap import fill

import numpy as np
from report import Row, run_alone

import meanfield as mf
from meanfield.plotting import theme

N, D, DEPTH, HEADS, RHO = 64, 512, 10, 8, 0.3
SCHEMES = mf.PostLN(), mf.PreLN(), mf.PeriLN()
ALLOWED = 0.1  # relative, of the collapse of a single network


def critical(rho: float) -> tuple[float, float]:
    """The weight that equiangular tokens give to themselves at the critical beta, and beta."""
    advice = mf.networks.Advice(N, D, 1, rho=rho)
    beta = float(advice.critical.predicted.sel(arrangement="equiangular"))
    output = mf.attend(mf.SA(beta), mf.Equiangular(N, rho))
    squares = (float(output.radius) ** 2 - rho) / (1 - rho)  # |A|^2 = rho + (1 - rho) sum w^2
    return squares, beta


def run(out: Path) -> list[Row]:
    """Advise, draw one network of each kind, write advice.png."""
    found, rows = [], []
    for seed, scheme in enumerate(SCHEMES):
        advice = mf.networks.Advice(N, D, DEPTH, HEADS, scheme, rho=RHO, threshold=0.8)
        drawn = advice.measure(rng=seed)
        found.append((advice, drawn))
        rows.append(Row(f"{advice.name}: layer of the collapse", float(drawn.collapse[0]),
                        advice.collapse, ALLOWED, relative=True))  # fmt: skip
    for line in str(found[1][0]).splitlines():
        print(fill(line, 100, subsequent_indent="    "))
    draw(found).savefig(out / "advice.png")
    squares, beta = critical(0.5)
    rows.append(Row("sum of squared weights at the critical beta", squares, 0.25, 1e-9))
    rows.append(Row("critical beta, rho = 0.5", beta, np.log(N) / 0.5, 0.02, relative=True))
    return rows


def draw(found: list) -> theme.PaperFigure:
    """Mean cosines by layer, and the logits at which few tokens of a context are looked at."""
    with theme.style():
        page = theme.figure(width=8.0, height=3.0)
        left, right = page.subplots(1, 2)
        for colour, (advice, drawn) in zip(theme.PALETTE, found, strict=False):
            law = advice.layers.sel(normalisation=advice.name)
            left.plot(law.layer, law.mean_cosine, color=colour, label=advice.name)
            left.plot(drawn.layer, drawn.mean_cosine[0], "o", ms=3.5, color=colour)
        left.axhline(0.8, color=theme.INK, lw=0.7)
        left.set(xlabel="layer", ylabel="mean cosine of pairs")
        left.legend(loc="lower right")
        sizes = np.geomspace(16, 1e6, 25)
        laws = [mf.networks.Advice(int(n), D, 1, HEADS, rho=RHO).critical for n in sizes]
        for colour, arrangement in zip(theme.PALETTE[3:], laws[0].arrangement.values, strict=False):
            values = [float(one.predicted.sel(arrangement=arrangement)) for one in laws]
            right.loglog(sizes, values, color=colour, label=str(arrangement))
        right.set(xlabel="tokens n", ylabel="critical strength of logits")
        right.legend(fontsize=8)
    return page


if __name__ == "__main__":
    run_alone(__doc__, run)
