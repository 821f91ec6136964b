"""Indexed densities: what they hold, their slices, tokens, files."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.spaces import indexed, laws

CIRCLE = mf.Circle(16)
SPACES = {
    "circle": (CIRCLE, lambda s, theta: 1 + 0.3 * np.cos(theta - s) + 0.1 * s * np.sin(2 * theta)),
    "sphere": (mf.Sphere(6), lambda s, x, y, z: 1 + 0.3 * z * s + 0.2 * x * y),
    "zonal": (mf.Zonal(5, 6), lambda s, x: 1 + 0.4 * x * (1 - s)),
}


@pytest.fixture(params=list(SPACES))
def made(request):
    space, f = SPACES[request.param]
    return space, f, space.indexed(f, mf.Positions([0, 0.5, 1], 6))


def test_slices_are_densities(made):
    space, f, mu = made
    for i in (0, 7, 11):
        s = mu.positions[i]
        alone = space.density(lambda *x, s=s: f(s, *x))
        np.testing.assert_allclose(mu.slices[i].coefficients, alone.coefficients, atol=1e-14)
    between = space.density(lambda *x: f(0.3, *x))
    np.testing.assert_allclose(mu.at_position(0.3).coefficients, between.coefficients, atol=1e-7)
    np.testing.assert_allclose(mu.mass, 1)
    assert mu.index_tail < 1e-5
    assert mu.at_position([[0.1, 0.2]]).shape == (1, 2)


def test_the_marginal_is_the_mean(made):
    _, _, mu = made
    np.testing.assert_allclose(
        mu.marginal().coefficients, mu.weights @ mu.slices.coefficients, atol=1e-15
    )
    np.testing.assert_allclose(mu.blocks(2).coefficients.mean(axis=0), mu.marginal().coefficients)
    assert mu.expect(lambda x: x[:, -1] ** 2) == pytest.approx(
        float(mu.marginal().expect(lambda x: x[:, -1] ** 2))
    )


def test_values_belong_to_the_grid(made):
    _, _, mu = made
    values = mu.values.reshape(len(mu.index), -1)
    np.testing.assert_allclose(values[3], mu.slices[3].values, atol=1e-14)
    np.testing.assert_allclose(mu.space.to_coefficients(mu.values), mu.coefficients, atol=1e-14)


def test_tokens_have_the_law_of_their_position():
    """Means over thirds of the sequence, within four standard errors; in any run the same."""
    mu = CIRCLE.indexed(
        lambda s, t: 1 + 0.9 * np.cos(t - 3 * s), mf.Positions([0, 0.5, 1], 7, sink=0.2)
    )
    n = 30_000
    tokens = mu.sample(n, rng=3)
    angles = np.arctan2(tokens.x[:, 1], tokens.x[:, 0])
    places = mu.index.drawn(n, None)
    for k in range(3):
        mine = slice(k * n // 3, (k + 1) * n // 3)
        mean = 0.45 * np.exp(1j * 3 * places[mine]).mean()
        assert abs(np.exp(1j * angles[mine]).mean() - mean) < 4 / np.sqrt(n / 3)
    np.testing.assert_array_equal(mu.sample(n, rng=3).x, tokens.x)
    unordered = mu.sample(n, rng=3, ordered=False)
    assert abs(unordered.expect(lambda x: x[:, 0]) - tokens.expect(lambda x: x[:, 0])) < 0.03


def test_tokens_of_a_polynomial_with_negative_weights():
    """Interpolation between few nodes has weights < 0; chi^2 of a histogram."""
    mu = CIRCLE.indexed(lambda s, t: 1 + (2 * s - 1) * np.cos(t), mf.Positions(order=3))
    points = mu.drawn_at(np.full(40_000, 0.02), np.random.default_rng(0))
    counts, edges = np.histogram(np.arctan2(points[:, 1], points[:, 0]), 20, (-np.pi, np.pi))
    law = (np.diff(edges) + (2 * 0.02 - 1) * np.diff(np.sin(edges))) / (2 * np.pi)
    chi2 = ((counts - 40_000 * law) ** 2 / (40_000 * law)).sum()
    assert chi2 < 19 + 4 * np.sqrt(2 * 19)


def test_tokens_are_not_drawn_from_what_is_negative_between_nodes():
    mu = CIRCLE.indexed(lambda s, t: 1 + np.sign(s - 0.5) * np.cos(t), mf.Positions(order=4))
    with pytest.raises(ValueError, match="between nodes"):
        mu.sample(500, rng=0)


def test_saved_and_loaded(made, tmp_path):
    _, _, mu = made
    model = mf.Transformer(mf.SA(1.0), 4.0, causal=True)
    run = mf.solve(model, mu, (0, 0.1), t_eval=[0, 0.1])
    run.save(tmp_path / "run.nc")
    again = mf.load(tmp_path / "run.nc")
    assert again.model == run.model
    assert again.final.space == run.final.space
    np.testing.assert_array_equal(again.final.coefficients, run.final.coefficients)
    np.testing.assert_array_equal(again.observables["order_by_index"],
                                  run.observables["order_by_index"])  # fmt: skip
    assert run.observables["order_by_index"].dims == ("t", "index")
    found = again.observables["moment_by_index_re"] + 1j * again.observables["moment_by_index_im"]
    assert found.dims == ("t", "index", "k")
    np.testing.assert_array_equal(np.abs(found[..., 0]), run.observables["order_by_index"])
    assert all(values.dtype.kind != "c" for values in run.observables.values())
    assert run.to_xarray()["density"].dims[:2] == ("t", "index")


def test_ensembles_and_mixtures():
    a, b = (CIRCLE.indexed(lambda s, t, c=c: 1 + c * s * np.cos(t)) for c in (0.2, 0.6))
    both = mf.Indexed.stack([a, b])
    assert both.shape == (2,)
    np.testing.assert_array_equal(both[1].coefficients, b.coefficients)
    assert isinstance(0.5 * a + 0.5 * b, mf.Indexed)
    np.testing.assert_allclose((0.5 * a + 0.5 * b).moment(1), 0.2 * a.positions, atol=1e-15)
    assert both.moment(1).shape == (2, 16)
    assert both.at_position([0.25, 0.5, 1.0]).shape == (2, 3)
    np.testing.assert_allclose(both.at_position([0.25, 0.5]).moment(1)[1], [0.075, 0.15])
    with pytest.raises(ValueError, match="one by one"):
        both.sample(3, rng=0)


def test_slices_make_one():
    index = mf.Classes([0.0, 1.0])
    mu = mf.Indexed.of_slices(index, [CIRCLE.uniform(), CIRCLE.von_mises(0, 1)])
    np.testing.assert_allclose(mu.moment(1)[1], CIRCLE.von_mises(0, 1).moment(1))
    with pytest.raises(ValueError, match="2 single densities"):
        mf.Indexed.of_slices(index, [CIRCLE.uniform()])


def test_rotation():
    mu = CIRCLE.indexed(lambda s, t: 1 + 0.3 * np.cos(t - s))
    turned = mu.rotate(0.4)
    assert isinstance(turned, mf.Indexed)
    np.testing.assert_allclose(turned.moment(1), mu.moment(1) * np.exp(0.4j))


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda s, t: np.cos(t) + 0 * s, "minimum"),
        (lambda s, t: np.ones(3), r"\(16, 50\)"),
        (lambda s, t: "x", "values"),
        (lambda s, t: np.nan * t, "finite"),
        (lambda s, t: np.inf + 0 * s * t, "800 values that are not finite"),
        (lambda t: 1 + 0 * t, r"f must be a function f\(position, theta\).* of \(t\)"),
        (3, r"f must be a function f\(position, theta\); got f = 3"),
    ],
)
def test_functions_are_refused(f, words):
    with pytest.raises((ValueError, TypeError), match=words):
        CIRCLE.indexed(f)


def test_functions_of_an_index_are_none_of_points():
    with pytest.raises(TypeError, match=r"f\(theta\).*\(s, theta\)"):
        CIRCLE.density(lambda s, theta: 1 + 0 * s * theta)


def test_errors_of_a_function_are_its_own():
    """A TypeError that comes from within is not one of how the function is called."""
    with pytest.raises(TypeError, match="unsupported operand"):
        CIRCLE.indexed(lambda s, t: "x" - 1)


@pytest.mark.parametrize(
    ("space", "index", "words"),
    [
        (CIRCLE, [0, 1], r"index must be an Index.*got index = \[0, 1\]"),
        (CIRCLE, mf.Positions, "index must be an Index"),
        (mf.Circle, mf.Positions(), "space must be a space"),
        (
            indexed.IndexedSpace(CIRCLE, mf.Positions()),
            mf.Positions(),
            "slice_space must be a space",
        ),
        (mf.Circle(4096), mf.Positions(np.linspace(0, 1, 10**5), 50), "reduce degree or nodes"),
    ],
)
def test_products_are_refused(space, index, words):
    with pytest.raises((ValueError, TypeError), match=words):
        indexed.IndexedSpace(space, index)


@pytest.mark.parametrize(
    ("s", "error"),
    [
        *((s, TypeError) for s in (True, [True], "a", None, 1j)),
        *((s, ValueError) for s in ([], np.nan, [0.1, np.nan], -0.1, [0.2, 1.5], [[0.1], [0, 1]])),
    ],
)
def test_positions_without_a_density_are_refused(s, error):
    for index in (mf.Positions(order=3), mf.Classes([0.0, 1.0])):
        mu = CIRCLE.indexed(lambda s, t: 1 + 0 * s * t, index)
        with pytest.raises(error, match=r"^s must "):
            mu.at_position(s)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda mu: mu.blocks(0), "count must be"),
        (lambda mu: mu.blocks(10**12), "count = 1000000000000 blocks"),
        (lambda mu: mu.sample(0, rng=0), "n must be"),
        (lambda mu: mu.sample(10**12, rng=0), "n = 1000000000000 tokens"),
        (lambda mu: mu.sample(3, rng=0, ordered=1), "ordered must be True or False"),
        (lambda mu: mu.resample(0), "degree must be"),
        (lambda mu: mf.Indexed(mu.space, mu.coefficients[1:]), "coefficients.shape must be"),
        (lambda mu: mf.Indexed.of_slices([0, 1], [CIRCLE.uniform()] * 2), "index must be"),
        (lambda mu: mf.Indexed.of_slices(mf.Classes([0.0]), [mu.slices]), "1 single densities"),
    ],
)
def test_calls_of_a_state_are_refused(call, words):
    mu = CIRCLE.indexed(lambda s, t: 1 + 0 * s * t, mf.Positions(order=3))
    with pytest.raises((ValueError, TypeError), match=words):
        call(mu)


def test_tokens_that_are_never_drawn_are_given_up(monkeypatch):
    mu = CIRCLE.indexed(lambda s, t: 1 + (2 * s - 1) * np.cos(t), mf.Positions(order=3))
    monkeypatch.setattr(indexed, "PROPOSAL_ROUNDS", 1)
    with pytest.raises(mf.MeanfieldError, match="not drawn in 1 rounds"):
        mu.sample(1000, rng=0)


def test_what_a_product_is_not():
    mu = CIRCLE.indexed(lambda s, t: 1 + 0 * s * t)
    for call in (
        lambda: mf.Characteristics(mu),
        lambda: mu.space.sample(mu.coefficients, 3, None),
        lambda: (
            mf.Transformer(mf.USA(1.0), frequency=mf.Lorentzian(1.0))
            and mf.solve(mf.Transformer(mf.USA(1.0), frequency=mf.Lorentzian(1.0)), mu, (0, 1))
        ),
    ):
        with pytest.raises(mf.MeanfieldError):
            call()
    with pytest.raises(ValueError, match="between 0 and 1"):
        mu.at_position(1.5)


def test_laws_of_files():
    law = mf.build(
        laws.Law,
        {
            "kind": "AlongIndex",
            "laws": [{"kind": "Uniform"}, {"kind": "VonMises", "concentration": 1.0}],
            "at": [0.0, 0.5],
        },
    )
    mu = law.begin(CIRCLE)
    m = CIRCLE.von_mises(0, 1).moment(1)
    np.testing.assert_allclose(mu.at_position([0.25, 0.75]).moment(1), [m / 2, m], atol=1e-14)
    assert mu.index.breaks.tolist() == [0, 0.5, 1]


def test_stacks_of_any_kind_are_indexed():
    mu = CIRCLE.indexed(lambda s, t: 1 + 0.3 * s * np.cos(t))
    assert type(mf.Density.stack([mu, mu])) is mf.Indexed
    with pytest.raises(TypeError, match="index"):
        mf.Indexed(CIRCLE, CIRCLE.uniform().coefficients)


def test_conditional_distances():
    """Symmetric within their errors, between pieces and orders; refused for other laws."""

    def f(s, t):
        return 1 + 0.9 * np.cos(t - s)

    a = CIRCLE.indexed(lambda s, t: 1 + 0.5 * np.cos(t - s / 2))
    b = CIRCLE.indexed(lambda s, t: 1 + 0.5 * np.cos(t - s))
    coarse = CIRCLE.indexed(lambda s, t: 1 + 0.5 * np.cos(t - s), mf.Positions([0, 0.3, 1], 8))
    there, back = mf.conditional_wasserstein(a, coarse), mf.conditional_wasserstein(coarse, a)
    assert there.value == pytest.approx(back.value, abs=there.error + back.error)
    assert there.value == pytest.approx(mf.conditional_wasserstein(a, b).value, abs=1e-7)
    turned = a.rotate(0.2)
    assert mf.conditional_wasserstein(a, turned).value <= 0.2 + 1e-9
    one, other = mf.Positions(sink=0.5), mf.Positions()
    for pair in (
        (CIRCLE.indexed(f, one), CIRCLE.indexed(f, other)),
        (CIRCLE.indexed(f, mf.Classes([0.0, 1.0])), CIRCLE.indexed(f, other)),
        (CIRCLE.indexed(f, mf.NormalIndex(1.0, 4)), CIRCLE.indexed(f, mf.NormalIndex(2.0, 4))),
    ):
        with pytest.raises(ValueError, match="index"):
            mf.conditional_wasserstein(*pair)
    classes = CIRCLE.indexed(f, mf.Classes([0.0, 1.0]))
    assert mf.conditional_wasserstein(classes, classes).value < 1e-7
