"""The same law as a density and as characteristics: two methods, which share no sum."""

import numpy as np
import pytest

import meanfield as mf

RNG = np.random.default_rng(0)
A, B, C = RNG.standard_normal((3, 2, 2)) * 0.7
S = np.array([[0.8, 0.3], [0.3, -0.4]])
unnormalised = mf.Unnormalised()
MODELS = {
    "softmax": mf.Transformer(mf.Attention(A, B, C, 1.5)),
    "two heads": mf.Transformer(mf.Attention(np.stack([A, B]), np.stack([B, C]), C)),
    "L2": mf.Transformer(mf.Attention(A, B, C, 1.5, weights=mf.L2())),
    "sigmoid": mf.Transformer(mf.Attention(A, B, C, 1.5, weights=mf.Sigmoid(-0.5))),
    "sum": mf.Transformer(0.5 * mf.USA(1.0) + mf.SA(2.0) + mf.Field(lambda x: np.sin(x @ C))),
    "feed-forward": mf.Transformer(mf.SA(2.0), feedforward=lambda x: np.sin(x @ C)),
    "nGPT": mf.Transformer(mf.Attention(A, B), normalisation=mf.NGPT(0.5)),
    "layers": mf.Transformer(mf.Attention(mf.PerLayer([A, B], 0.3), B, C)),
    "USA, reaction": mf.Transformer(mf.USA(1.5), reaction=0.5),
    "SA, reaction": mf.Transformer(mf.SA(2.0), reaction=0.5),
    "attention, reaction": mf.Transformer(
        mf.Attention(1.0, S, S, lambda t: 1 + t, weights=unnormalised), reaction=-0.5
    ),
}


def law(x):
    """A density on the circle without symmetry."""
    return 1 + 0.5 * np.cos(x - 1) + 0.2 * np.sin(2 * x)


NODES = mf.Characteristics(mf.Circle(4).density(law), nodes=512)
MODES = mf.Circle(48).density(law)


@pytest.mark.repeats
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_moments_agree(model):
    """Measured: 5e-14."""
    nodes, modes = (
        mf.solve(model, start, (0, 0.6), t_eval=[0.6], rtol=1e-11) for start in (NODES, MODES)
    )
    np.testing.assert_allclose(
        nodes.final.coefficients(8), modes.final.coefficients[:9], rtol=0, atol=1e-11
    )
    found, expected = (float(run.observables.interaction_energy[-1]) for run in (nodes, modes))
    if np.isfinite(found):
        assert found == pytest.approx(expected, rel=1e-10)
