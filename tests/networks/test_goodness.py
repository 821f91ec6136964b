"""The size of the test of fit, where layers and replicas of them have one law, of any kind."""

import numpy as np
import pytest

from meanfield.networks.fitting.goodness import Comparison, leave_one_out
from meanfield.networks.fitting.transitions import LayerTransition, unit


def test_squares_from_the_others_are_those_without_each():
    x = np.random.default_rng(0).standard_normal((7, 2)) * [1.0, 30.0]
    precision, away = np.linalg.inv(np.cov(x.T)), x - x.mean(axis=0)
    found = leave_one_out(((away @ precision) * away).sum(axis=1), 7)
    for k, square in enumerate(found):
        others = np.delete(x, k, axis=0)
        v = x[k] - others.mean(axis=0)
        assert square == pytest.approx(v @ np.linalg.inv(np.cov(others.T)) @ v)


@pytest.mark.repeats
@pytest.mark.parametrize(("n", "transitions"), [(2, 3), (20, 3)])
def test_layers_like_their_replicas_are_rejected_in_five_percent(n, transitions):
    """Of 300, at most three standard errors more, by either part: by chi2 and by the spread of all
    replicas they were up to 19 %. Scores of few tokens have tails, as of squares of noise."""
    rng, count, d, times = np.random.default_rng(3), 16, 3, 300
    found = []
    for _ in range(times):
        comparison = Comparison(d, rng)
        for k in range(transitions):
            x = unit(rng.standard_normal((n, d)))
            noise = rng.standard_normal((count + 1, n, d))
            noise -= (noise * x).sum(axis=-1, keepdims=True) * x
            y, h = unit(x + 0.3 * noise), (noise**2).sum(axis=-1) - 2
            h = np.stack([(h**2).sum(axis=1), noise[:, :, 0].sum(axis=1)], axis=1)
            one = LayerTransition(x, y[0], 0, k, np.random.SeedSequence(0))
            comparison.add((one, y[1:], h[1:], h[0], noise[1:], noise[0]))
        made = comparison.goodness
        found.append([made.p_value, made.of_statistics, made.of_layers])
    rates = (np.array(found) < 0.05).mean(axis=0)
    assert (rates < 0.05 + 3 * np.sqrt(0.0475 / times)).all(), rates
    assert (rates > 0).all()
