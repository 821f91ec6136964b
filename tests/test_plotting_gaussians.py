"""Plots of Gaussians: ellipses, the cone of covariances, variances."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import meanfield as mf
from meanfield.plotting.cone import cone_points

COV = np.array([[1.0, 0.3], [0.3, 0.5]])


def run(d=2, sign=-1.0, **options):
    cov = COV if d == 2 else np.diag(np.arange(1.0, d + 1))
    law = mf.Gaussian(np.full(d, 0.4), cov)
    return mf.solve(mf.Transformer(mf.Attention(sign)), law, (0, 1), **options)


@pytest.mark.parametrize("sign", [-1.0, 1.0], ids=["clustering", "blow-up"])
@pytest.mark.parametrize(
    ("d", "kind"),
    [
        *((2, kind) for kind in ("overview", "ellipses", "cone", "variances", "observables")),
        *((d, kind) for d in (1, 4) for kind in ("overview", "variances", "observables")),
    ],
)
def test_every_kind_is_drawn(d, kind, sign, tmp_path):
    path = tmp_path / "figure.png"
    solution = run(d, sign)
    solution.plot(kind).savefig(path, dpi=40)
    assert path.stat().st_size > 2000
    solution.plot(kind, title="").savefig(path, dpi=40)


def test_ellipses_are_level_curves():
    solution = run(t_eval=[0, 0.5, 1])
    ax = solution.plot("ellipses", times=[0.5]).axes[0]
    curve = next(line.get_xydata() for line in ax.lines if len(line.get_xdata()) > 100)
    state = solution[1]
    gaps = curve - state.mean
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", gaps, np.linalg.inv(state.cov), gaps), 1)


def test_the_cone_holds_the_covariances():
    solution = run()
    points = cone_points(solution)
    np.testing.assert_allclose(points[0], [0.5, 0.6, 1.5])
    assert (np.hypot(points[:, 0], points[:, 1]) <= points[:, 2]).all()
    disc = cone_points(solution, trace_one=True)
    np.testing.assert_allclose(disc[:, 2], 1)
    ax = Figure().add_subplot(projection="3d")
    solution.plot("cone", ax=ax)
    drawn = len(ax.lines)
    run(sign=-0.5).plot("cone", ax=ax)
    assert len(ax.lines) == drawn + 3  # the surface is drawn once
    flat = Figure().add_subplot()
    solution.plot("cone", ax=flat, trace_one=True)
    with pytest.raises(ValueError, match='needs an ax with projection="3d"'):
        solution.plot("cone", ax=flat)


def test_one_saved_time_and_kinds_that_are_not_there(tmp_path):
    for d in (1, 2, 3):
        run(d, t_eval=[1.0]).plot().savefig(tmp_path / "one.png", dpi=40)
    with pytest.raises(ValueError, match=r"for Gaussians in R.d, d > 2; got 'cone'"):
        run(4).plot("cone")
    with pytest.raises(TypeError, match="got states of type Gaussian"):
        run().animate(tmp_path / "movie.gif")
    run(4, t_eval=np.geomspace(0.01, 1, 5)).plot(log_time=True)
