r"""
Branches of stationary states, and the phase diagrams of USA and SA
===================================================================

The uniform state of USA loses its stability at :math:`\kappa = \beta/I_1(\beta)`. For :math:`\beta`
beyond the tricritical point, where :math:`I_2(\beta)/I_1(\beta) = 1/2`, the transition is
discontinuous. Ordered states exist above a fold, and have the lower free energy above the
transition. The states are compared with those of ``stationary.py``, which solves their equation
without the package.

:Source: Survey, section 7, stationary states of (9); Balasubramanian, Banerjee and Rigollet,
    arXiv:2510.20094.
:Run time: 7 s, ``python examples/bifurcation.py``
:Look at: where solid lines (stable) end, and the narrow wedge between fold and onset in which the
    start decides.
"""

from pathlib import Path

from report import Row, run_alone
from scipy.optimize import brentq
from scipy.special import iv
from stationary import stationary

import meanfield as mf
from meanfield.plotting import phases

BRANCHES = Path(__file__).with_suffix(".toml")
PLANE = BRANCHES.with_name("phase_diagram.toml")
BETA, KAPPA = 4.0, 0.4  # as in bifurcation.toml


def run(out: Path) -> list[Row]:
    """Follow both, write bifurcation.nc, phase_diagram_USA.nc, _SA.nc and figures, compare."""
    diagram = mf.run_config(mf.read_config(BRANCHES), out=out / "bifurcation.nc")
    diagram.plot(y=["order_parameter", "free_energy"]).savefig(out / "bifurcation.png")
    usa, sa = mf.run_config(mf.read_config(PLANE), out=out / "phase_diagram.nc")
    phases(usa, sa, close_up=True).savefig(out / "phase_diagram.png")

    onset, fold, equal = (diagram.special(k)[0] for k in ("bifurcation", "fold", "transition"))
    stable = max((s for _, s in diagram.saved), key=lambda state: state.order_parameter)
    corner = brentq(lambda beta: iv(2, beta) / iv(1, beta) - 0.5, 1.0, 4.0, xtol=1e-14)
    missing = len([*diagram.warnings, *usa.warnings, *sa.warnings])
    return [
        Row("kappa at which the uniform state loses stability", onset.kappa, BETA / iv(1, BETA),
            1e-10),
        Row("order parameter at kappa = 0.4", stable.order_parameter,
            stationary(BETA, KAPPA, 4.0).order, 1e-10),
        Row("free energy at the transition", stationary(BETA, equal.kappa, 4.0).free_energy, 0.0,
            1e-10),
        Row("fold: branch and phase diagram", fold.kappa, usa.kappa("fold", BETA), 1e-10),
        Row("transition: branch and phase diagram", equal.kappa, usa.kappa("transition", BETA),
            1e-10),
        Row("tricritical beta of USA", usa.tricritical[0].beta, corner, 1e-10),
        Row("tricritical points of SA", len(sa.tricritical), "", remark="shown"),
        Row("branches or curves that are not complete", missing, 0, 0.0),
    ]  # fmt: skip


if __name__ == "__main__":
    run_alone(__doc__, run)
