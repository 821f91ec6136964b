"""What tokens are refused, and with which words; what overflows elsewhere and not here."""

import numpy as np
import pytest

import meanfield as mf
from meanfield import engines

X = mf.Tokens.uniform(5, 3, rng=0)
SA = mf.Transformer(mf.SA(1.0))


def refused(match, *, model=SA, state=X, error=ValueError, **options):
    """The call is refused in these words, and nothing was computed."""
    steps = []
    with pytest.raises(error, match=match):
        mf.solve(model, state, (0, 1), callback=lambda t, _: steps.append(t), **options)
    assert steps == []


def test_a_single_token_attends_to_nobody():
    refused(r"n >= 2 tokens", state=mf.Tokens([[1.0, 0.0]]))
    refused(r"n >= 2 tokens", state=mf.Gram([[1.0]]))


@pytest.mark.parametrize("beta", [np.inf, np.nan, [1.0, np.inf]])
@pytest.mark.parametrize("drift", [mf.SA, mf.USA, lambda b: mf.Attention(beta=b)])
def test_the_inverse_temperature_is_finite(drift, beta):
    with pytest.raises(ValueError, match=r"finite.*got"):
        drift(beta)


def test_matrices_fit_the_tokens():
    wrong = mf.Transformer(mf.Attention(V=np.eye(4)))
    refused("dimension 4; got points of dimension 3", model=wrong)
    with pytest.raises(ValueError, match=r"V \(d, d\).*one d; got V \(2, 3\)"):
        mf.Attention(V=np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"Q \(2, 3\), K \(3, 3\)"):
        mf.Attention(Q=np.ones((2, 3)), K=np.eye(3))


def test_ensembles_must_broadcast():
    refused(
        r"model of shape \(3,\), state of shape \(2,\)",
        model=mf.Transformer(mf.SA([1.0, 2.0, 3.0])),
        state=X.broadcast((2,)),
    )


@pytest.mark.parametrize("options", [{"min_degree": 8}, {"max_degree": 8}])
def test_tokens_have_no_modes(options):
    refused("degree is for Density and Indexed; Tokens has none", **options)


def test_engines_are_objects_that_fit():
    refused("engine must be one of", error=TypeError, engine="direct")
    state = mf.Tokens.uniform(5, 4, rng=0)
    refused("d = 2 or 3; got d = 4", state=state, engine=engines.Modes())
    hardmax = mf.Transformer(mf.Hardmax())
    refused("has one way to sum over tokens", model=hardmax, engine=engines.Direct())
    causal = mf.Transformer(mf.Attention(causal=True))
    refused("attend to all tokens; got causal", model=causal, engine=engines.Modes())
    in_space, moved = mf.Tokens(np.ones((3, 2)), on_sphere=False), mf.Transformer(mf.Attention())
    refused("got in R.d, d = 2", state=in_space, model=moved, engine=engines.Modes())
    pre = mf.Transformer(mf.SA(1.0), normalisation=mf.PreLN())
    refused(r"PreLN\(\) needs the whole output", model=pre, engine=engines.Modes())
    reacting = mf.Transformer(mf.SA(1.0), reaction=1.0)
    refused("A reaction needs potentials", model=reacting, engine=engines.Modes())
    refused("one way to sum over tokens", state=X.gram(), engine=engines.Direct())
    refused("engine is for Tokens", state=mf.Circle(8).uniform(), engine=engines.Direct())


def test_every_engine_gives_the_same_run():
    x = mf.Tokens.uniform(600, 3, rng=2)
    ends = []
    for engine in (engines.Direct(), engines.Direct(threads=2), engines.Modes(1e-12)):
        run = mf.solve(SA, x, (0, 1), t_eval=[1.0], engine=engine)
        ends.append(run.final.x)
        assert run.stats["engine"] == ("sphere" if isinstance(engine, engines.Modes) else "direct")
    assert ends[0].tobytes() == ends[1].tobytes()
    np.testing.assert_allclose(ends[2], ends[0], rtol=0, atol=1e-10)
    many = mf.Tokens.uniform(6000, 3, rng=2)
    assert mf.solve(SA, many, (0, 0.1), t_eval=[0.1]).stats["engine"] == "sphere"


def test_radii_need_a_scheme_that_uses_them():
    radii = mf.Tokens(X.x, radii=2.0)
    refused(r"have radii, which PostLN\(\) does not use", state=radii, error=mf.MeanfieldError)


def test_a_reaction_needs_a_potential():
    model = mf.Transformer(mf.Attention(), reaction=1.0)
    refused("reaction needs a potential: this Attention", model=model, error=mf.MeanfieldError)


def test_inner_products_do_not_know_directions():
    for model in (
        mf.Transformer(mf.Attention()),
        mf.Transformer(mf.SA(1.0), normalisation=mf.PreLN()),
        mf.Transformer(mf.SA(1.0), kappa=3.0),
    ):
        refused("Gram", model=model, state=X.gram(), error=mf.MeanfieldError)


DENSITY = mf.Circle(8).uniform()


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (mf.Transformer(mf.Attention(causal=True)), "order of the tokens"),
        (mf.Transformer(mf.Hardmax()), "no mean field"),
        (mf.Transformer(mf.SA(1.0) + mf.Hardmax()), "no mean field"),
        (mf.Transformer(mf.SA(1.0), normalisation=mf.PreLN()), "radii"),
        (mf.Transformer(mf.Attention(), reaction=1.0), "potential"),
        (mf.Transformer(mf.SA(1.0) + mf.Field(np.tanh), reaction=1.0), "potential"),
        (mf.Transformer(mf.SA(1.0), 2.0, noise=mf.Anisotropic(np.diag([1, 0]))), "positive sigma"),
    ],
    ids=["causal", "hardmax", "sum", "radii", "potential", "field", "singular"],
)
def test_densities_are_told_what_they_cannot_follow(model, match):
    refused(match, model=model, state=DENSITY, error=mf.MeanfieldError)


def test_a_feedforward_map_keeps_the_shape():
    model = mf.Transformer(mf.SA(1.0), feedforward=lambda x: x[..., :1])
    refused("returns as many vectors; got shape", model=model)


@pytest.mark.parametrize("kind", ["SA", "hardmax", "softmax", "L2"])
def test_large_beta_does_not_overflow(kind):
    drift = {
        "SA": mf.SA(1e4),
        "hardmax": mf.Hardmax(),
        "softmax": mf.Attention(beta=1e4),
        "L2": mf.Attention(beta=1e4, weights=mf.L2()),
    }[kind]
    run = mf.solve(mf.Transformer(drift), X, (0, 0.5), t_eval=[0.5], rtol=1e-6)
    assert run.success and np.isfinite(run.final.x).all()
    assert np.abs(run.final.x - X.x).max() < 0.9


def test_weights_that_overflow_are_told_at_the_start():
    model = mf.Transformer(mf.Attention(beta=1e4, weights=mf.Unnormalised()))
    refused("not finite at the start", model=model, error=mf.MeanfieldError)


@pytest.mark.long
def test_tokens_that_grow_without_bound_end_the_run():
    """x' = e^(beta x^2) x in one dimension blows up in finite time."""
    x = mf.Tokens([[1.0], [1.0]], on_sphere=False)
    model = mf.Transformer(mf.Attention(weights=mf.Unnormalised()))
    with pytest.warns(mf.UnresolvedWarning, match="No step size meets rtol"):
        run = mf.solve(model, x, (0, 1), t_eval=[0.05, 1.0])
    assert run.status == "step_too_small" and not run.success
    # int_1^inf e^(-x^2)/x dx = E_1(1)/2
    assert run.t[-1] == pytest.approx(0.10969196719776, rel=1e-6)


def test_hardmax_follows_the_nearest():
    """Two tokens, each the other's nearest: phi' = -2 sin phi."""
    run = mf.solve(mf.Transformer(mf.Hardmax()), mf.Tokens.on_circle([0, 1.0]), (0, 1), rtol=1e-10)
    gap = np.arccos(run.final.x[0] @ run.final.x[1])
    assert np.tan(gap / 2) == pytest.approx(np.tan(0.5) * np.exp(-2), rel=1e-8)


@pytest.mark.parametrize("state", [X, X.gram()], ids=repr)
def test_a_seed_is_checked_also_where_it_is_not_read(state):
    refused("rng must be a numpy Generator, or a seed", state=state, error=TypeError, rng="abc")
    refused("rng must be a numpy Generator, or a seed", state=state, rng=-3)
    assert mf.solve(SA, state, (0, 0.1), t_eval=[0.1], rng=3).success


def not_finite(match, drift=SA.drift, state=X, **parts):
    """The run is refused for velocities that are not finite, with this reason."""
    model = mf.Transformer(drift, **parts)
    match = f"not finite at the start: .*{match}"
    refused(match, model=model, state=state, error=mf.MeanfieldError)


def test_velocities_that_are_not_finite_are_told_by_what_made_them():
    not_finite("feedforward returned .* the first of 5 points", feedforward=lambda x: x * np.nan)
    lost = mf.Interaction(lambda t: t, derivative=lambda t: np.nan * t)
    not_finite("the derivative of the Interaction", lost)
    not_finite("the derivative of the Interaction", lost, X.gram())
    far = mf.Tokens([[1e200, 0.0], [0.0, -1e200]], on_sphere=False)
    for weights in (mf.Softmax(), mf.L2()):
        not_finite(r"exceed 1.8e308.*up to 1e\+200. Rescale", mf.Attention(weights=weights), far)
    short = mf.Tokens(X.x, radii=1e-310)
    not_finite("divided by radii so small", state=short, normalisation=mf.PreLN())


def test_a_feedforward_map_is_real():
    model = mf.Transformer(mf.SA(1.0), feedforward=lambda x: 1j * x)
    refused("feedforward returns must be real .* complex128", model=model, error=TypeError)
