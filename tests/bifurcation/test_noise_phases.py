"""Phase diagrams in beta and kappa under anisotropic and multiplicative noise."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import meanfield as mf
from meanfield.bifurcation.planes import KappaPlane
from meanfield.bifurcation.reflections import Reflected
from meanfield.bifurcation.special_curves import SpecialCurve

CIRCLE = mf.Circle(32)
UNEVEN = mf.noise.Anisotropic(np.diag([1.3, 0.7]))


class ScaledKuramoto(mf.ZonalDrift):
    """W' = beta: Kuramoto's drift times beta, whose onsets are at kappa_c/beta.

    Parameters
    ----------
    beta : float or array
        Strength.
    """

    beta: float

    def slope(self, t):
        return self.beta * np.ones_like(t)


@pytest.fixture(scope="module")
def scaled():
    return mf.phase_diagram(ScaledKuramoto, CIRCLE, (1.0, 1.2), noise=UNEVEN, places=1)


def test_onsets_are_those_of_the_closed_form(scaled):
    assert list(scaled.loci) == ["onset 1", "onset 2"] and not scaled.warnings
    for beta in (1.0, 1.07, 1.2):
        assert scaled.kappa("onset 1", beta) * beta == pytest.approx(1.785096547, abs=1e-8)
        assert scaled.kappa("onset 2", beta) * beta == pytest.approx(2.084202557, abs=1e-8)
    assert [count for count, *_ in scaled.stable_counts(1.1)] == [1]


class Elsewhere(ThreadPoolExecutor):
    """Pickles what it is given, as for another process."""

    def submit(self, job, number):
        return super().submit(pickle.loads(pickle.dumps(job)), number)


@pytest.mark.bits
def test_an_executor_changes_no_bit(scaled):
    with Elsewhere(1) as pool:
        again = mf.phase_diagram(
            ScaledKuramoto, CIRCLE, (1.0, 1.2), noise=UNEVEN, places=1, executor=pool
        )
    assert again.data.identical(scaled.data) and again.ends == scaled.ends
    for name, line in scaled.loci.items():
        np.testing.assert_array_equal(again.loci[name].points, line.points)
    with pytest.raises(ValueError, match="executor must be left out"):
        mf.phase_diagram(mf.USA, CIRCLE, (1.0, 1.2), executor="processes")


def test_round_trip_and_figure(scaled, tmp_path):
    scaled.save(tmp_path / "p.nc")
    loaded = mf.load(tmp_path / "p.nc")
    assert loaded.kappa("onset 2", 1.1) == scaled.kappa("onset 2", 1.1)
    assert loaded.stable_counts(1.1) == scaled.stable_counts(1.1)
    loaded.plot(relative=True)


@pytest.mark.parametrize(("kind", "order"), [("fold", 0), ("onset", 1), ("Hopf", 0)])
@pytest.mark.parametrize("drift", [mf.USA, mf.SA], ids=lambda drift: drift.__name__)
def test_gradients_are_those_of_differences(drift, kind, order):
    noise = mf.noise.MultiplicativeStratonovich(lambda x: 1 + 0.1 * x[..., 0])
    basis, rng = Reflected(mf.Circle(8), noise), np.random.default_rng(0)
    family, part = KappaPlane(drift, "beta", (1.0, 3.0), basis), basis.of_order(order)
    borders = rng.standard_normal((2, len(part.members)))
    line = SpecialCurve(family, kind, order, borders, 0.2)
    m = np.zeros(len(basis.degrees))
    m[basis.even.members] = 0.05 * rng.standard_normal(len(basis.even.members))
    z = np.concatenate([m, [0.3] * (kind == "Hopf"), [np.log(2.0), 1.7]])
    exact, step = line.jacobian(z), 1e-6 * np.eye(len(z))
    for j in [*basis.even.members, *range(len(m), len(z))]:
        slope = (line.system(z + step[j])[0] - line.system(z - step[j])[0]) / 2e-6
        np.testing.assert_allclose(exact[:, j], slope, atol=1e-7)


@pytest.mark.parametrize(
    "options", [{"noise": UNEVEN, "degrees": (1,)}, {"kappa": (1.0, 2.0)}], ids=["degrees", "kappa"]
)
def test_arguments_without_effect_are_refused(options):
    with pytest.raises(ValueError, match="left out"):
        mf.phase_diagram(mf.USA, CIRCLE, (1.0, 2.0), **options)


@pytest.mark.parametrize("options", [{"degrees": (1,)}, {"stability": False}], ids=str)
def test_arguments_of_branches_without_effect_are_refused(options):
    with pytest.raises(ValueError, match=r"left out|True"):
        mf.branches(mf.Kuramoto(), CIRCLE, (1.0, 2.0), noise=UNEVEN, **options)


@pytest.mark.long
@pytest.mark.bits
def test_a_killed_diagram_is_resumed_to_the_same_bits(scaled, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*_):
        raise Killed

    path, span = tmp_path / "p.checkpoint", (1.0, 1.2)
    options = {"noise": UNEVEN, "places": 1, "checkpoint": path, "checkpoint_every": 1e-9}
    with monkeypatch.context() as patches:
        patches.setattr(SpecialCurve, "tricritical", killed)
        with pytest.raises(Killed):
            mf.phase_diagram(ScaledKuramoto, CIRCLE, span, **options)
    resumed = mf.phase_diagram(ScaledKuramoto, CIRCLE, span, resume=True, **options)
    assert path.exists() and resumed.data.identical(scaled.data)
    assert resumed.ends == scaled.ends
