"""Tokens in the field of densities: the nonlinear process, its law, its coupling to tokens."""

import numpy as np
import pytest

import meanfield as mf

TIMES = np.linspace(0, 1, 51)
CIRCLE, SPHERE = mf.Circle(48), mf.Sphere(24)
STARTS = {
    "circle": CIRCLE.density(lambda t: 1 + 0.5 * np.cos(t - 1)),
    "sphere": SPHERE.von_mises_fisher([0.0, 0.6, 0.8], 1.0),
}


def solved(start, drift, kappa=np.inf, times=TIMES):
    """The run of densities, and the model of tokens in its field."""
    run = mf.solve(mf.Transformer(drift, kappa), start, (0, 1), t_eval=times, rtol=1e-10)
    return run, mf.Transformer(mf.MeanField(run), kappa)


@pytest.mark.repeats
@pytest.mark.parametrize("space", STARTS)
@pytest.mark.parametrize("drift", [mf.USA(1.5), mf.SA(3.0), mf.Kuramoto()], ids=str)
def test_the_velocity_is_that_of_fine_atoms(space, drift):
    from meanfield.dynamics import TokenMotion

    start = STARTS[space]
    _, model = solved(start, drift)
    fine = start.space.with_degree(80)
    masses = fine.weights * start.at(fine.points)
    few = start.sample(5, rng=0)
    among = mf.Tokens(np.concatenate([few.x, fine.points]), np.concatenate([np.zeros(5), masses]))
    exact = TokenMotion(mf.Transformer(drift), among, mf.engines.Direct()).velocity(
        among.x[None], 0
    )
    found = TokenMotion(model, few).velocity(few.x[None], 0.0)
    np.testing.assert_allclose(found, exact[:, :5], atol=1e-12)


@pytest.mark.parametrize("space", STARTS)
def test_without_noise_tokens_are_carried_by_the_flow(space):
    """Nodes of a quadrature, with its masses, keep integrating the density."""
    start = STARTS[space]
    run, model = solved(start, mf.SA(2.0))
    nodes = mf.Characteristics(start)
    tokens = mf.Tokens(nodes.points, nodes.masses / nodes.masses.sum())
    final = mf.solve(model, tokens, (0, 1), t_eval=[1.0], rtol=1e-9).final
    assert mf.sobolev_distance(final, run.final, degree=8).value < 1e-7


@pytest.mark.repeats
@pytest.mark.parametrize("space", STARTS)
def test_with_noise_each_token_has_the_law_of_the_density(space):
    """The mean of 20000 independent tokens, 4.5 standard errors."""
    run, model = solved(STARTS[space], mf.USA(1.0), 3.0)
    tokens = STARTS[space].sample(20_000, rng=1)
    final = mf.solve(model, tokens, (0, 1), t_eval=[1.0], dt=0.05, rng=2).final
    for c in range(tokens.dimension):
        mean = run.final.expect(lambda x, c=c: x[..., c])
        assert abs(final.x[:, c].mean() - mean) < 4.5 * final.x[:, c].std() / 20_000**0.5


@pytest.mark.long
def test_the_synchronous_coupling_is_of_order_one_half():
    """Root mean square of |X_i - Xbar_i| at t = 1 for n = 64 and 1024: a factor 4, within 20 %."""
    start = STARTS["circle"]
    _, field = solved(start, mf.SA(2.0), 4.0)
    model, found = mf.Transformer(mf.SA(2.0), 4.0), []
    for n in (64, 1024):
        tokens = start.sample(16 * 1024, rng=3).x.reshape(-1, n, 2)
        ends = [
            mf.solve(m, mf.Tokens(tokens), (0, 1), t_eval=[1.0], dt=0.05, rng=4).final.x
            for m in (model, field)
        ]
        found.append(np.sqrt(((ends[0] - ends[1]) ** 2).sum(axis=-1).mean()))
    assert found[0] / found[1] == pytest.approx(4, rel=0.2)


def test_a_file_does_not_hold_the_densities(tmp_path):
    _, model = solved(STARTS["circle"], mf.SA(2.0))
    run = mf.solve(model, STARTS["circle"].sample(10, rng=0), (0, 1), t_eval=[0, 1.0])
    run.save(tmp_path / "run.nc")
    again = mf.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(again.final.x, run.final.x)
    np.testing.assert_array_equal(
        again.observables["order_parameter"], run.observables["order_parameter"]
    )
    with pytest.raises(mf.MeanfieldError, match="MeanField is a Drift that files do not hold"):
        mf.solve(again.model, again.final, (0, 1))


def test_what_is_no_field_is_refused():
    start = STARTS["circle"]
    _, model = solved(start, mf.SA(2.0))
    with pytest.raises(TypeError, match="run must be one of densities on the circle, S"):
        mf.MeanField(mf.solve(mf.Transformer(mf.SA(1.0)), start.sample(5, rng=0), (0, 1)))
    with pytest.raises(TypeError, match="run must be one of densities"):
        mf.MeanField(start)
    with pytest.raises(ValueError, match=r"4 outputs or more; got ensemble shape .*, 2 outputs"):
        solved(start, mf.SA(2.0), times=[0, 1.0])
    with pytest.raises(ValueError, match="dimension 2; got points of dimension 3"):
        mf.solve(model, mf.Tokens.uniform(4, 3, rng=0), (0, 1))
    with pytest.raises(mf.MeanfieldError, match="known for 0 <= t <= 1; asked for t = 1"):
        mf.solve(model, start.sample(5, rng=0), (0, 2))
    with pytest.raises(mf.MeanfieldError, match="moves no densities"):
        mf.solve(model, start, (0, 1))


@pytest.mark.repeats
@pytest.mark.parametrize("space", STARTS)
def test_the_field_of_attention_with_matrices_is_that_of_the_density(space):
    """Nodes that are carried by it keep integrating the density."""
    d, rng = STARTS[space].dimension, np.random.default_rng(0)
    drift = mf.Attention(*rng.standard_normal((3, d, d)) / 2) + 0.5 * mf.SA(1.0)
    start = STARTS[space].resample(12)
    run = mf.solve(mf.Transformer(drift), start, (0, 0.2), t_eval=np.linspace(0, 0.2, 6), rtol=1e-9)
    nodes = mf.Characteristics(start)
    tokens = mf.Tokens(nodes.points[:8])
    field = mf.solve(mf.Transformer(mf.MeanField(run)), tokens, (0, 0.2), rtol=1e-9).final
    masses = np.append(np.zeros(8), start.space.weights * start.values)
    among = mf.Tokens(np.concatenate([tokens.x, start.space.points]), masses / masses.sum())
    alone = mf.solve(mf.Transformer(drift), among, (0, 0.2), rtol=1e-9).final
    np.testing.assert_allclose(field.x, alone.x[:8], rtol=0, atol=1e-6)
