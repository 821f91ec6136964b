"""What Characteristics refuses: expected, got, and what to do instead."""

import numpy as np
import pytest

import meanfield as mf

CIRCLE = mf.Circle(16).density(lambda x: 1 + 0.5 * np.cos(x - 1) + 0.2 * np.cos(2 * x))
SPHERE = mf.Sphere(8).density(lambda x, y, z: 1 + 0.5 * z + 0.3 * x * y)
ZONAL = mf.Zonal(4, 8).zonal([1, 0.5])
NAN, INF = float("nan"), float("inf")


def refused(error, match, density=CIRCLE, **options):
    """The constructor must raise this."""
    with pytest.raises(error, match=match):
        mf.Characteristics(density, **options)


@pytest.mark.parametrize(
    "density",
    [None, np.ones(4), mf.Circle(4), lambda x: 1 + 0 * x, mf.Characteristics(CIRCLE)],
    ids=["None", "array", "space", "function", "characteristics"],
)
def test_a_density_is_expected(density):
    refused(TypeError, "density must be a Density; got", density)


def test_tokens_are_no_density():
    refused(TypeError, "must be a Density; got density = Tokens", CIRCLE.sample(10, rng=0))


@pytest.mark.parametrize("members", [1, 3])
def test_an_ensemble_is_refused(members):
    match = rf"a single density; got .*ensemble \({members},\).*Choose a member: .*density\[i\]"
    refused(ValueError, match, mf.Density.stack([CIRCLE] * members))
    assert mf.Characteristics(mf.Density.stack([CIRCLE] * members)[0]).resolved


def test_a_negative_density_is_refused():
    negative = mf.Density(mf.Circle(2), [1, 0.6, 0])
    refused(ValueError, r"must not be negative; its minimum is -0\.2", negative)
    touching = mf.Circle(2).density(lambda x: 1 + np.cos(x))  # 0 at one point: none
    assert mf.Characteristics(touching).masses.min() >= -1e-18


@pytest.mark.parametrize("nodes", [0, -5, 2.5, True, False, NAN, INF, "64", [64]], ids=repr)
@pytest.mark.parametrize("density", [CIRCLE, SPHERE, ZONAL], ids=["circle", "sphere", "zonal"])
def test_nodes_is_a_whole_number(density, nodes):
    refused(ValueError, r"nodes must be a whole number >= 1; got nodes = ", density, nodes=nodes)


def test_whole_numbers_of_any_kind_are_numbers_of_nodes():
    for nodes in (256, 256.0, np.int32(256), np.float64(256)):
        assert len(mf.Characteristics(ZONAL, nodes=nodes)) == 256


@pytest.mark.parametrize("nodes", [1, 2, 3, 16])
@pytest.mark.parametrize("density", [CIRCLE, SPHERE, ZONAL], ids=["circle", "sphere", "zonal"])
def test_too_few_nodes_say_how_wrong_they_are(density, nodes):
    match = r"\d+ nodes do not integrate this density: .* by \d\.\de[-+]\d\d, expected <= 1e-10"
    refused(ValueError, match, density, nodes=nodes)


def test_the_number_of_nodes_that_is_advised_is_enough_in_the_end():
    nodes, advised = 16, []
    while True:
        try:
            mf.Characteristics(CIRCLE, nodes=nodes)
            break
        except ValueError as error:
            nodes = int(str(error).split("for instance nodes = ")[1].split(";")[0])
            advised.append(nodes)
    assert advised == [4096]


def test_a_narrow_density_away_from_the_limit_asks_for_more_nodes():
    """The grading is no help there: 1024 nodes are 0.008 apart, the density 0.01 wide."""
    narrow = mf.Circle(1024).von_mises(1.0, 1e4)
    refused(
        ValueError, "Use more nodes, for instance nodes = 4096", narrow, limit=[0, -1], nodes=1024
    )
    assert mf.Characteristics(narrow, limit=[0, -1], nodes=8192).resolved
    assert mf.Characteristics(narrow, nodes=1024).resolved


def test_narrow_densities_in_high_dimension():
    """In d = 8 any; in d = 64 their mass is where no node is, which more nodes do not change."""
    assert mf.Characteristics(mf.Zonal(8, 512).von_mises_fisher(500.0)).resolved
    narrow = mf.Zonal(64, 80).von_mises_fisher(40.0)
    for nodes in (1024, 8192):
        refused(ValueError, "in high dimension, a less narrow density", narrow, nodes=nodes)


LIMITS = {
    "too short": [0.6, 0.7],
    "too long": [1.0, 0.1],
    "zero": [0.0, 0.0],
    "nan": [NAN, 1.0],
    "infinite": [INF, 0.0],
    "three components": [0.0, 0.0, 1.0],
    "a list of points": [[0.0, 1.0]],
    "an angle": 0.5,
    "nothing": [],
}


@pytest.mark.parametrize("limit", LIMITS.values(), ids=LIMITS)
def test_the_limit_is_a_unit_vector(limit):
    match = r"(limit|point) must be a unit vector of shape \(2,\); got "
    refused(ValueError, match, limit=limit)
    with pytest.raises(ValueError, match=match):
        mf.Characteristics(CIRCLE).w2_to_dirac(limit)


@pytest.mark.parametrize("limit", [[1j, 0], "north", [None, 1.0]], ids=str)
def test_of_real_numbers(limit):
    refused(TypeError, "limit must be real numbers; got ", limit=limit)


@pytest.mark.parametrize("limit", [[1.0, 0, 0, 0], [0, 0, 0.6, 0.8]], ids=str)
def test_axisymmetric_densities_have_it_on_the_axis(limit):
    match = "e_d or -e_d, the axis of the densities; got "
    refused(ValueError, match, ZONAL, limit=limit)
    with pytest.raises(ValueError, match=match):
        mf.Characteristics(ZONAL).w2_to_dirac(limit)


@pytest.mark.parametrize("k", [1.0, "1", True, None], ids=repr)
def test_a_moment_has_a_whole_degree(k):
    with pytest.raises(TypeError, match="k must be a whole number; got "):
        mf.Characteristics(CIRCLE).moment(k)


@pytest.mark.parametrize("density", [SPHERE, ZONAL], ids=["sphere", "zonal"])
def test_off_the_circle_degrees_are_not_negative(density):
    with pytest.raises(ValueError, match=r"k must be .*>= 0; got k = -1"):
        mf.Characteristics(density).moment(-1)


def test_expect_takes_functions_of_arrays():
    state = mf.Characteristics(ZONAL, nodes=256)
    for f in (lambda x: x.sum(), lambda x: x[:5, 0], lambda x: ["a"] * 256):
        with pytest.raises(ValueError, match=r"\(256, 4\) .*\(256,\)"):
            state.expect(f)


@pytest.mark.parametrize(
    "coordinates", [np.zeros(255), np.zeros((256, 1)), np.full(256, NAN), 0.0], ids=np.shape
)
def test_nodes_move_to_finite_places_in_the_same_number(coordinates):
    with pytest.raises(ValueError, match=r"coordinates .*\(256,\)"):
        mf.Characteristics(ZONAL, nodes=256).moved(coordinates)


def test_on_s2_nodes_move_to_unit_vectors():
    state = mf.Characteristics(SPHERE)
    with pytest.raises(ValueError, match="unit vectors"):
        state.moved(2 * state.points)
