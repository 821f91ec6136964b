"""Points of swept configurations that are solved together have the numbers that they have alone."""

import numpy as np
import pytest
from configurations import NOISY, SA, UNIFORM, density, equiangular, gaussian, tokens

import meanfield as mf
from meanfield.app import configured_runs
from meanfield.app.configured_runs import Runs
from meanfield.app.tasks import Run
from meanfield.solving.streams import Seeds
from meanfield.sweeps.points import Grid

BETAS = {"model.drift.beta": [0.0, 1.0, 4.0]}
RHOS = {"initial.rho": [0.0, 0.5]}
KAPPAS = {"model.kappa": [2.0, 4.0, 7.0]}
FIXED = {"scheme": "DormandPrince", "dt": 0.03}
COMMON = {"kind": "CommonRotations", "kappa": 2.0}
LEGENDRE = {"kind": "Legendre", "coefficients": [0.2]}
LAYERS = {"scheme": "Layers", "dt": 0.05}
GOE = {"kind": "GOE", "rng": 3}
ZONAL = {"kind": "Zonal", "dimension": 4, "degree": 12}
GRAM = {"kind": "Gram", "G": [[1, 0.3, 0.1], [0.3, 1, 0.2], [0.1, 0.2, 1]]}
PER_REPLICA = {"kind": "Attention", "beta": 1.0, "K": {**GOE, "per_replica": True}}


def sa(**keys):
    return {"drift": SA, **keys}


def noisy(**solve):
    return tokens(NOISY, solve={"dt": 0.03, "rng": 2, **solve})


TOGETHER = {
    "circle": (density(), {**BETAS, **KAPPAS}, {}),
    "without noise": (density(model=sa()), BETAS, {}),
    "Zonal": (density(space=ZONAL, initial=LEGENDRE), KAPPAS, {}),
    "starts": (density(), {"initial.cos.0": [0.1, 0.2, 0.3], **KAPPAS}, {}),
    "own steps": (tokens(), BETAS, {}),
    "fixed steps": (tokens(solve=FIXED), BETAS, {}),
    "LieTrotter": (tokens(solve={"scheme": "LieTrotter", "dt": 0.03}), BETAS, {}),
    "Layers": (tokens(sa(normalisation="PreLN"), solve=LAYERS), BETAS, {}),
    "radii": (tokens(sa(normalisation="PreLN")), BETAS, {}),
    "reaction": (tokens({"drift": {"kind": "USA", "beta": 1.0}, "reaction": 0.5}), BETAS, {}),
    "R^d": (tokens({"drift": {"kind": "Attention", "beta": 1.0}}, on_sphere=False), BETAS, {}),
    "GOE": (tokens({"drift": {"kind": "Attention", "beta": 1.0, "K": GOE}}), BETAS, {}),
    "matrices": (tokens({"drift": PER_REPLICA}), BETAS, {"rng": 1}),
    "replicas": (tokens(), BETAS, {"rng": 1, "replicas": 2}),
    "noise": (noisy(), KAPPAS, {}),
    "seeds": (noisy(), KAPPAS, {"rng": 1, "replicas": 2}),
    "common noise": (tokens({**NOISY, "common": COMMON}, solve={"dt": 0.03}), KAPPAS, {"rng": 1}),
    "Equiangular": (equiangular(sa(normalisation="NGPT")), {**RHOS, **BETAS}, {}),
    "Gram": ({**tokens(), "initial": GRAM}, BETAS, {}),
}
ALONE = {
    "Gaussian": (gaussian({"beta": 0.3}), BETAS, {}),
    "sizes": (tokens(), {"initial.x.n": [4, 5]}, {}),
    "until": (tokens(solve={"until": "steady"}), BETAS, {}),
    "merge": (tokens(solve={"merge": 1e-3}), BETAS, {}),
    "noise whose step is chosen": (tokens(NOISY, solve={"rng": 2}), KAPPAS, {}),
    "a density under common noise": (
        density(model=sa(kappa=3.0, common=COMMON), solve={"t_span": [0, 0.1], "dt": 0.05}),
        KAPPAS,
        {"rng": 3},
    ),
    "tolerances": (tokens(), {"solve.rtol": [1e-8, 1e-9]}, {}),
}


@pytest.fixture
def solved(monkeypatch):
    """The shapes of the runs that are solved."""
    shapes, solve = [], Run.solved

    def counted(self, *given, **options):
        run = solve(self, *given, **options)
        shapes.append(run.shape)
        return run

    monkeypatch.setattr(Run, "solved", counted)
    return shapes


@pytest.mark.repeats
@pytest.mark.parametrize("name", TOGETHER)
def test_points_that_differ_in_numbers_are_solved_together(name, solved):
    base, parameters, options = TOGETHER[name]
    alone = mf.sweep(base, parameters, **options, batch=1)
    points = len(solved)
    assert set(solved) == {()} and points == alone["status"].size
    solved.clear()
    together = mf.sweep(base, parameters, **options)
    assert together.identical(alone) and solved == [(points,)]
    assert mf.sweep(base, parameters, **options, batch=2).identical(alone)


@pytest.mark.repeats
@pytest.mark.parametrize("name", ALONE)
def test_points_that_would_have_other_numbers_are_solved_alone(name, solved):
    base, parameters, options = ALONE[name]
    alone = mf.sweep(base, parameters, **options, batch=1)
    assert mf.sweep(base, parameters, **options, batch=3).identical(alone)
    assert mf.sweep(base, parameters, **options).identical(alone) and set(solved) == {()}


def batches(base, parameters, size=None, workers=1, seed=None, replicas=None):
    runs = Runs(base)
    points = Grid.of(parameters, replicas).points(runs.contents)
    return [len(batch) for batch in runs.batches(points, size, seed, workers)]


def test_batches_are_as_large_as_pays_and_memory_allows(monkeypatch):
    many = {"model.drift.beta": np.linspace(0.1, 5, 200)}
    assert batches(tokens(), many) == [64, 64, 64, 8]
    assert batches(tokens(), many, 50) == [50] * 4 and batches(tokens(), many, 1) == [1] * 200
    assert batches(tokens(), many, workers=8) == [7] * 28 + [4]
    assert batches(tokens(), {**many, "initial.x.n": [4, 5]}, 100) == [100] * 4
    large = tokens(x={**UNIFORM, "n": 1024})  # of 4 numbers each
    assert set(batches(large, many)) == {4}
    assert set(batches(tokens(x={**UNIFORM, "n": 5000}), many)) == {1}
    often = {"t_eval": {"kind": "Linspace", "count": 10000}}
    assert max(batches(tokens(solve=often), many)) == 2**22 // (24 * 10000)
    assert max(batches(density(solve={"t_span": [0, 0.1], **often}), many)) == 2**22 // (34 * 10000)


def test_a_point_that_fails_is_run_again_alone(solved):
    parameters = {"initial.rho": [0.0, 1.5, 0.5]}
    found = mf.sweep(equiangular(), parameters, errors="keep")
    assert found.identical(mf.sweep(equiangular(), parameters, errors="keep", batch=1))
    assert [bool(text) for text in found["error"].values] == [False, True, False]


@pytest.mark.repeats
@pytest.mark.parametrize(("first", "then"), [(1, None), (None, 1), (2, 3)])
def test_a_store_of_one_batch_serves_others(first, then, tmp_path, solved):
    some, all_of_them = {"model.kappa": [2.0, 4.0]}, {"model.kappa": [2.0, 3.0, 4.0, 5.0]}
    mf.sweep(density(), some, store=tmp_path / "store", batch=first)
    solved.clear()
    found = mf.sweep(density(), all_of_them, store=tmp_path / "store", batch=then)
    assert sum(int(np.prod(shape)) for shape in solved) == 2
    assert found.identical(mf.sweep(density(), all_of_them, batch=1))


@pytest.mark.long
def test_an_interrupted_batch_is_not_run_point_by_point(monkeypatch):
    calls, solve = [], Run.solved

    def interrupted(self, *given, **options):
        calls.append(1)
        run = solve(self, *given, **options)
        object.__setattr__(run, "status", "interrupted")
        return run

    monkeypatch.setattr(Run, "solved", interrupted)
    runs = Runs(tokens())
    with pytest.raises(KeyboardInterrupt):
        runs.values(Grid.of(BETAS, None).points(runs.contents), None)
    assert len(calls) == 1


def test_members_draw_by_seeds_of_their_own():
    """With independent and common noise, as single systems do."""
    model = mf.Transformer(mf.SA(2.0), kappa=3.0, common=mf.CommonRotations(kappa=2.0))
    state = mf.Tokens.uniform(5, 3, rng=1, shape=(3,))
    options = {"t_span": (0, 0.2), "t_eval": [0.2], "dt": 0.05}
    run = mf.solve(model, state, rng=Seeds((5, 7, 5)), **options)
    for r, seed in enumerate((5, 7, 5)):
        alone = mf.solve(model, state[r], rng=seed, **options)
        np.testing.assert_array_equal(alone.final.x, run.final.x[r])
    assert run.options["seed"] == [5, 7, 5]
    with pytest.raises(ValueError, match="3 seeds"):
        mf.solve(model, state, rng=Seeds((5, 7)), **options)


def test_groups_of_single_points_are_not_looked_at(monkeypatch):
    monkeypatch.setattr(configured_runs.Runs, "_ensemble_of", None)
    assert batches(tokens(), {"initial.x.n": [4, 5]}) == [1, 1]
