"""Indices: quadrature, interpolation, and which nodes act on which."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.integrate import quad

import meanfield as mf

SINK = 0.3


@st.composite
def positions(draw):
    inner = draw(st.lists(st.floats(0.05, 0.95), max_size=3, unique=True))
    breaks = [0.0, *sorted(b for b in inner), 1.0]
    if min(np.diff(breaks)) < 0.02:
        breaks = [0.0, 1.0]
    return mf.Positions(breaks, draw(st.integers(1, 12)), draw(st.sampled_from([0.0, SINK])))


@given(positions())
@settings(max_examples=30, deadline=None)
def test_weights_are_a_law(index):
    assert (index.weights > 0).all()
    assert index.weights.sum() == pytest.approx(1, abs=1e-14)
    assert (np.diff(index.nodes) > 0).all()


@given(positions(), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_polynomials_on_each_piece_are_exact(index, seed):
    """Interpolation, the integral over all positions, those before a node, and means of blocks."""
    rng = np.random.default_rng(seed)
    p = np.polynomial.Polynomial(rng.standard_normal(index.order))
    whole, values = p.integ(), p(index.nodes)
    s = rng.random(5)
    np.testing.assert_allclose(index.interpolation(s) @ values, p(s), atol=1e-11)
    mean = index.sink * p(0) + (1 - index.sink) * (whole(1) - whole(0))
    assert index.weights @ values == pytest.approx(mean, abs=1e-12)
    seen = index.causal(mf.Causal("sum"), mean=False) @ values
    before = index.sink * p(0) + (1 - index.sink) * (whole(index.nodes) - whole(0))
    np.testing.assert_allclose(seen, before, atol=1e-12)
    np.testing.assert_allclose(index.blocks(3) @ np.ones(len(index)), 1, atol=1e-13)
    assert (index.blocks(4) @ values).mean() == pytest.approx(mean, abs=1e-11)


def test_a_sink_of_its_own_has_the_first_block():
    blocks = mf.Positions(sink=0.5).blocks(4)
    np.testing.assert_allclose(blocks[:2, 0], 1)
    np.testing.assert_allclose(blocks[2:, 0], 0)


@pytest.mark.parametrize("window", [None, 0.25, 0.4])
@pytest.mark.parametrize("decay", [None, lambda u: np.exp(-3 * u)])
@pytest.mark.parametrize("sink", [0.0, SINK])
def test_windows_and_decay_against_quadrature(window, decay, sink):
    breaks = [0, 0.25, 0.5, 0.75, 1] if window == 0.25 else [0, 1]
    index, weight = mf.Positions(breaks, 14, sink), decay or (lambda u: 1.0)
    f = np.cos(2 * index.nodes)
    causal = mf.Causal("mean", window=window, decay=decay)
    sums, means = (index.causal(causal, mean) @ f for mean in (False, True))
    for i in range(1 if sink else 0, len(index), 5):
        s = index.nodes[i]
        begin = max(0.0, s - (window or 2.0))
        seen = [
            (1 - sink) * quad(lambda u, g=g, s=s: weight(s - u) * g(u), begin, s, epsabs=1e-13)[0]
            + (sink * weight(s) * g(0.0) if s <= (window or 2.0) else 0.0)
            for g in (lambda u: np.cos(2 * u), lambda u: 1.0)
        ]
        assert sums[i] == pytest.approx(seen[0], abs=1e-12)
        assert means[i] == pytest.approx(seen[0] / seen[1], abs=1e-11)


@pytest.mark.parametrize(("atom", "more"), [(0.0, 0.1), (SINK, 0.0), (SINK, 0.1)])
def test_a_window_sees_its_sink_too(atom, more):
    """What lies in the first atom + more of the mass, beside the last 0.25."""
    index, end = mf.Positions(order=14, sink=atom), more / (1 - atom)
    causal = mf.Causal("mean", window=0.25, sink=atom + more, decay=lambda u: np.exp(-u))
    means = index.causal(causal, True) @ np.cos(2 * index.nodes)
    for i in range(1, len(index), 4):
        s = index.nodes[i]
        begin = max(0.0, s - 0.25)
        stretches = [(0, s)] if begin <= end else [(0, end), (begin, s)]
        seen = [
            sum((1 - atom) * quad(lambda u, g=g, s=s: np.exp(u - s) * g(u), *ends, epsabs=1e-13)[0]
                for ends in stretches) + atom * np.exp(-s) * g(0.0)
            for g in (lambda u: np.cos(2 * u), lambda u: 1.0)
        ]  # fmt: skip
        assert means[i] == pytest.approx(seen[0] / seen[1], abs=1e-11)


def test_sinks_of_windows_are_refused():
    for wrong in ({"window": 0.2, "sink": 1.0}, {"window": 0.2, "sink": 0.0}, {"sink": 0.1}):
        with pytest.raises(ValueError, match="sink"):
            mf.Causal("mean", **wrong)
    with pytest.raises(ValueError, match=r"causal.sink must be >= 0\.3"):
        mf.Positions(sink=SINK).causal(mf.Causal("mean", window=0.2, sink=0.1), True)


def test_the_mean_over_what_came_before_is_hardy_s_operator():
    """It takes s^p to s^p/(1 + p), also at s next to 0; s^p is an eigenfunction."""
    index = mf.Positions(order=8)
    C = index.causal(mf.Causal("mean"), mean=True)
    for p in range(8):
        np.testing.assert_allclose(C @ index.nodes**p, index.nodes**p / (1 + p), atol=2e-14)


def test_quantiles_put_the_tokens_of_a_sink_at_0():
    index = mf.Positions(sink=0.25)
    places = index.drawn(8, None)
    np.testing.assert_allclose(places, [0, 0, *(np.arange(2, 8) + 0.5 - 2) / 6])
    random = index.drawn(4000, np.random.default_rng(0))
    assert (np.diff(random) >= 0).all()
    assert abs((random == 0).mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)


def test_normal_index_integrates_polynomials():
    index = mf.NormalIndex(2.0, 12, 1.0)
    assert index.weights @ index.nodes == pytest.approx(1)
    assert index.weights @ (index.nodes - 1) ** 4 == pytest.approx(3 * 2.0**4)


def test_classes_have_densities_at_their_values_alone():
    index = mf.Classes([0.0, 2.0], [0.25, 0.75])
    np.testing.assert_array_equal(index.interpolation(2.0), [0, 1])
    with pytest.raises(ValueError, match="s must be"):
        index.interpolation(1.0)
    with pytest.raises(mf.MeanfieldError, match="Positions"):
        index.causal(mf.Causal("mean"), True)
    with pytest.raises(mf.MeanfieldError, match="positions"):
        index.blocks(2)
    with pytest.raises(mf.MeanfieldError, match="positions"):
        index.drawn(2, None)


def test_couplings():
    index, model = mf.Classes([0.0, 1.0], [0.25, 0.75]), mf.Transformer(mf.Kuramoto())
    np.testing.assert_allclose(index.influence(model), [[0.25, 0.75]] * 2)
    matrix = model.replace(coupling=np.array([[1.0, 2.0], [0.0, -1.0]]))
    np.testing.assert_allclose(index.influence(matrix), [[0.25, 1.5], [0, -0.75]])
    function = model.replace(coupling=lambda s, tau: s - 2 * tau)
    np.testing.assert_allclose(index.influence(function), [[0, -1.5], [0.25, -0.75]])
    for coupling, words in (
        (np.eye(3), r"\(2, 2\)"),
        (lambda s, tau: np.nan * s, "finite"),
        (lambda s, tau: "a", "coupling"),
    ):
        with pytest.raises((ValueError, TypeError), match=words):
            index.influence(model.replace(coupling=coupling))
    softmax = mf.Transformer(mf.SA(1.0), coupling=np.array([[1.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(ValueError, match="coupling"):
        index.influence(softmax)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"breaks": [0, 0.5]}, "breaks"),
        ({"breaks": [0, 0.5, 0.5, 1]}, "breaks"),
        ({"breaks": [0.1, 1]}, "breaks"),
        ({"breaks": [1, 0]}, "breaks"),
        ({"breaks": [0]}, "breaks"),
        ({"breaks": 0.5}, "breaks"),
        ({"breaks": [[0, 1]]}, "breaks"),
        ({"breaks": [0, np.nan, 1]}, "breaks"),
        ({"breaks": "a"}, "breaks"),
        ({"sink": 1.0}, "sink"),
        ({"sink": -0.1}, "sink"),
        ({"sink": np.nan}, "sink"),
        ({"sink": [0.1]}, "sink"),
        ({"order": 0}, "order"),
        ({"order": 1.5}, "order"),
        ({"order": True}, "order"),
        ({"order": 10**12}, "reduce order or breaks"),
    ],
)
def test_positions_are_refused(given, words):
    with pytest.raises((ValueError, TypeError), match=words):
        mf.Positions(**given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([1.0, 0.0],), "values"),
        (([],), "values"),
        (([[0.0, 1.0]],), "values"),
        (([0.0, np.nan],), "values"),
        (([0.0, 1.0], [0.5, 0.6]), "shares"),
        (([0.0, 1.0], [1.0, 0.0]), "shares"),
        (([0.0, 1.0], [1.0]), "shares must be numbers .* one for each of 2 values"),
    ],
)
def test_classes_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        mf.Classes(*given)


@pytest.mark.parametrize(
    "given", [{"width": 0.0}, {"width": np.inf}, {"count": 0}, {"count": 400}, {"centre": np.nan}]
)
def test_normal_indices_are_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        mf.NormalIndex(**{"width": 1.0, **given})


@pytest.mark.parametrize(
    ("causal", "words"),
    [
        ({"decay": lambda u: -np.ones_like(u)}, "decay must return finite numbers >= 0"),
        ({"decay": lambda u: np.nan * u}, "decay must return finite numbers >= 0"),
        ({"decay": lambda u: "a"}, "decay must return"),
        ({"decay": lambda u: np.ones(3)}, "decay must return"),
        ({"decay": lambda u: 0 * u}, "sees nothing: decay is 0"),
    ],
)
def test_decays_are_refused(causal, words):
    with pytest.raises((ValueError, TypeError), match=words):
        mf.Positions(order=4).causal(mf.Causal("mean", **causal), True)


@pytest.mark.parametrize("name", ["beta", "frequency"])
@pytest.mark.parametrize("wrong", [lambda s: np.nan * s, lambda s: "a", lambda s: np.ones(3)])
def test_functions_of_the_index_are_refused(name, wrong):
    mu = mf.Circle(8).indexed(lambda s, x: 1 + 0 * s * x, mf.Positions(order=4))
    options = {"beta": {"causal": mf.Causal(beta=wrong)}, "frequency": {"frequency": wrong}}
    with pytest.raises((ValueError, TypeError), match=f"{name} must return"):
        mf.solve(mf.Transformer(mf.SA(1.0), **options[name]), mu, (0, 1))


def test_graded_pieces_become_shorter_towards_0():
    index = mf.Positions.graded(4, 2.0, 3)
    np.testing.assert_allclose(index.breaks, [0, 1 / 8, 1 / 4, 1 / 2, 1])
    assert len(index) == 12
    for wrong in ({"ratio": 1.0}, {"ratio": np.inf}, {"pieces": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            mf.Positions.graded(**wrong)
    with pytest.raises(ValueError, match="pieces must be fewer, or a smaller ratio"):
        mf.Positions.graded(400, 1e10)


def test_steep_decays_are_integrated_or_refused():
    index = mf.Positions(order=4)
    steep = mf.Causal("sum", decay=lambda u: 1e5 * np.exp(-1e5 * u))
    np.testing.assert_allclose(index.causal(steep, False).sum(axis=1), 1, atol=1e-9)
    for decay in (lambda u: (u < 0.3).astype(float), lambda u: 1e13 * np.exp(-1e13 * u)):
        with pytest.raises(ValueError, match="decay"):
            index.causal(mf.Causal("sum", decay=decay), False)


def test_positions_far_nearer_to_0_than_rounding_see_what_is_before_them():
    index = mf.Positions.graded(30, 4.0, 4)
    seen = index.causal(mf.Causal("mean"), True)
    np.testing.assert_allclose(seen.sum(axis=1), 1, atol=1e-12)
    with pytest.raises(ValueError, match="window"):
        mf.Positions(order=4).causal(mf.Causal("mean", window=1e-18), True)


def test_couplings_of_sums_with_a_part_that_is_divided():
    index = mf.Classes([0.0, 1.0])
    model = mf.Transformer(mf.SA(2.0) + mf.USA(1.0), coupling=-np.eye(2))
    with pytest.raises(ValueError, match="coupling"):
        index.influence(model)
