"""Sums of drifts: their algebra, parameters, tables, what they are, and what is refused."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.core.descriptions import build, describe
from meanfield.core.forms import Reading
from meanfield.models.parameters import StateSizes
from meanfield.models.scalings import Logarithmic

LEAVES = [mf.SA(2.0), mf.USA(1.0), mf.Kuramoto(), mf.Hardmax(), mf.Attention(V=-1.0)]


def total(drift):
    """The sum of the factors of each of the leaves."""
    return [sum(float(c) for c, part in drift.terms if part is leaf) for leaf in LEAVES]


single = st.sampled_from(LEAVES).map(lambda leaf: (leaf, total(leaf)))
factors = st.integers(-4, 4).map(lambda k: k / 2)


def grown(smaller):
    """Expressions with, beside them, the numbers that they should come to."""

    def combined(sign):
        def combine(pair):
            (a, x), (b, y) = pair
            return (a - b if sign < 0 else a + b), [p + sign * q for p, q in zip(x, y, strict=True)]

        return combine

    pairs = st.tuples(smaller, smaller)
    several = st.lists(smaller, min_size=1, max_size=3)
    return (
        pairs.map(combined(1))
        | pairs.map(combined(-1))
        | smaller.map(lambda e: (-e[0], [-x for x in e[1]]))
        | st.tuples(factors, smaller).map(lambda e: (e[0] * e[1][0], [e[0] * x for x in e[1][1]]))
        | several.map(
            lambda es: (
                sum(e[0] for e in es),
                [sum(x) for x in zip(*(e[1] for e in es), strict=True)],
            )
        )
    )


expressions = st.recursive(single, grown, max_leaves=8)


@given(expressions)
def test_an_expression_is_one_flat_sum(expression):
    drift, expected = expression
    assert total(drift) == expected  # halves of small numbers: exact
    assert all(part in LEAVES for _, part in drift.terms)


@given(expressions)
@settings(max_examples=50)
def test_a_sum_prints_as_it_is_written(expression):
    drift, _ = expression
    assert eval(repr(drift), {type(leaf).__name__: type(leaf) for leaf in LEAVES}) == drift


@given(expressions)
@settings(max_examples=50)
def test_a_sum_survives_its_table_and_its_pickle(expression):
    drift, _ = expression
    table = json.loads(json.dumps(describe(drift), allow_nan=False))
    again = build(mf.Drift, table)
    assert again == drift and repr(again) == repr(drift)
    assert pickle.loads(pickle.dumps(drift)) == drift


def test_numbers_of_numpy_and_ensembles_are_factors():
    two, many = np.float64(2.0) * mf.SA(1.0), np.array([1.0, 2.0]) * mf.SA(1.0)
    assert two == 2 * mf.SA(1.0) == mf.SA(1.0) * 2 == mf.Sum([mf.SA(1.0)], [2.0])
    assert many.shape == (2,) and many.member(1) == two and repr(two) == "2.0*SA(beta=1.0)"
    assert repr(many) == "[1.0, 2.0]*SA(beta=1.0)"


def test_the_factors_of_a_sum_cannot_be_changed():
    given = np.array([1.0, 2.0])
    drift = given * mf.SA(1.0)
    given[0] = 7.0
    assert drift.factors[0][0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        drift.factors[0][0] = 3.0


# Parameters ----------------------------------------------------------------------------------


def test_parameters_of_parts_have_the_keys_of_files():
    drift = mf.SA([1.0, 2.0]) + np.array([[0.5], [1.0], [1.5]]) * mf.USA(3.0)
    assert list(drift.parameters) == [
        *("factors[0]", "factors[1]", "drifts[0].beta", "drifts[1].beta")
    ]
    assert drift.shape == (3, 2)
    assert drift.member((2, 1)) == mf.SA(2.0) + 1.5 * mf.USA(3.0)
    flat = drift.broadcast((3, 2))
    assert flat.shape == (6,) and flat.member(5) == drift.member((2, 1))
    changed = drift.replace(**{"drifts[1].beta": 0.0, "factors[1]": 2.0})
    assert changed == mf.SA([1.0, 2.0]) + 2 * mf.USA(0.0)
    with pytest.raises(TypeError, match="gamma"):
        drift.replace(gamma=1.0)


def test_what_the_state_gives_is_put_in_its_place():
    """Also in factors, and where a factor stands before a sum whose factors are not known yet."""
    inner = mf.Sum(
        [mf.SA(Logarithmic(2.0)), mf.Attention(V=mf.ensembles.GOE(0))], [Logarithmic(), 2]
    )
    found = (3 * inner - mf.USA(1.0)).resolve(StateSizes(3, 8))
    log, V = np.log(8), mf.ensembles.goe(3, 0)
    assert found == 3 * log * mf.SA(2 * log) + 6 * mf.Attention(V=V) - mf.USA(1.0)
    drift = mf.SA(1.0) - mf.Attention()
    assert drift.resolve(StateSizes(3, 8)) is drift


def test_a_sum_says_what_its_parts_say():
    layers = mf.PerLayer([1.0, 2.0], duration=0.5)
    drift = mf.Attention(V=layers) + 2 * mf.Hardmax(V=mf.PerLayer([1.0, 2.0, 3.0], duration=0.25))
    assert drift.breakpoints(0, 9).tolist() == [0.25, 0.5] and not drift.constant
    assert drift.parts_tokens and not drift.on_sphere_only and not drift.gradient_flow
    assert (mf.Hardmax() + mf.SA(1.0)).on_sphere_only
    assert (mf.USA(1.0) + mf.Kuramoto()).gradient_flow
    assert float((mf.USA(1.0) - 2 * mf.Kuramoto()).rate()) == np.e + 2
    assert (mf.SA(1.0) + mf.USA(1.0)).known_rate(on_sphere=True)
    assert not (mf.SA(1.0) + mf.Field(np.sin)).known_rate(on_sphere=True)
    assert (mf.SA(1.0) + mf.Attention(V=np.eye(4))).dimension == 4
    assert mf.SA(2.0).terms == ((1.0, mf.SA(2.0)),)


def test_a_sum_with_a_part_that_no_file_holds_is_loaded():
    """It prints, and refuses to be evaluated."""
    field = mf.Field(lambda x: x)
    table = json.loads(json.dumps(describe(mf.SA(1.0) + 0.5 * field)))
    table["drifts"].append({"kind": "OfAnotherPackage", "rate": 2.0})
    table["factors"].append(3.0)
    reading = Reading(result=True)
    again = build(mf.Drift, table, reading)
    assert len(reading.lost) == 2 and "3.0*<OfAnotherPackage, not known here>" in repr(again)
    with pytest.raises(mf.MeanfieldError, match="OfAnotherPackage is not known here"):
        again.rate()


# Zonal sums ----------------------------------------------------------------------------------

ZONAL = [
    0.5 * mf.USA(2.0) + mf.Kuramoto(),
    mf.USA(1.0) - 0.3 * mf.CosineSeries([0.0, 0.0, 1.0, 0.5]),
    np.array([0.5, 2.0]) * mf.USA([1.0, 3.0]) + mf.Interaction(lambda t: np.exp(-((1 - t) ** 2))),
    -2 * mf.SA([1.0, 4.0]),
    mf.SA(4.0) + 0.5 * mf.SA(4.0),
]


@pytest.mark.repeats
@pytest.mark.parametrize("drift", ZONAL, ids=repr)
def test_a_zonal_sum_obeys_the_laws_of_zonal_drifts(drift):
    """Slope, potential, multipliers, members, tokens and densities, files: `testing.check`."""
    zonal = drift.as_zonal()
    assert drift.is_zonal and isinstance(zonal, mf.ZonalDrift) and zonal.as_zonal() is zonal
    assert zonal.shape == drift.shape and repr(zonal.stored_kind()) == repr(zonal)
    assert len(mf.testing.check(zonal)) == 6


def test_the_multipliers_of_a_zonal_sum_are_sums():
    drift = (0.5 * mf.USA([2.0, 3.0]) + mf.Kuramoto()).as_zonal()
    for name in ("attraction", "interaction"):
        expected = 0.5 * getattr(mf.USA([2.0, 3.0]), name)(9, 3) + getattr(mf.Kuramoto(), name)(
            9, 3
        )
        np.testing.assert_allclose(getattr(drift, name)(9, 3), expected, rtol=1e-15)
    assert drift.normaliser(9, 3) is None
    scaled, one = (np.array([0.5, 2.0]) * mf.SA(4.0)).as_zonal(), mf.SA(4.0)
    np.testing.assert_array_equal(scaled.normaliser(9, 3), np.tile(one.normaliser(9, 3), (2, 1)))
    np.testing.assert_array_equal(scaled.attraction(9, 3)[1], 2 * one.attraction(9, 3))


@pytest.mark.parametrize("log_gap", [-1.0, -30.0, -800.0])
def test_the_contrast_of_a_sum_needs_no_gap_that_is_a_number(log_gap):
    """W' = e^(beta t) / 2 + 1: (W'(1) - W'(1 - h)) / W'(1 - h), for h below 1e-308 too."""
    drift, gap = (0.5 * mf.USA(2.0) + mf.Kuramoto()).as_zonal(), np.exp(log_gap)
    sign, log_size = drift.contrast(np.array([log_gap]))
    there = np.exp(2 * (1 - gap)) / 2
    growth = np.log(np.expm1(2 * gap)) if log_gap > -700 else np.log(2) + log_gap
    np.testing.assert_allclose(log_size[0], np.log(there / (there + 1)) + growth, rtol=1e-14)
    assert sign[0] == 1


def test_numbers_beyond_the_largest_are_infinite_or_0_without_warnings():
    """Multipliers that overflow are refused where they are used; weights that vanish are 0."""
    drift = (-1.7e308 * mf.USA(1.0) + mf.Kuramoto()).as_zonal()
    assert drift.attraction(4, 2)[2] < 0 and not np.isfinite(drift.interaction(4, 2)[0])
    assert (0.5 * mf.SA(1.7e308)).as_zonal().slope(np.array([-1.0, 1.0])).tolist() == [0.0, 0.5]


def test_sums_that_are_not_zonal_say_why():
    for drift in (mf.SA(1.0) + mf.USA(1.0), mf.SA(1.0) + mf.SA(2.0)):
        assert not drift.is_zonal
        with pytest.raises(mf.MeanfieldError, match=r"SA\(beta=1.0\) is divided by Z \* mu"):
            drift.as_zonal()
    drift = mf.SA(1.0) + mf.FeedForward(1.0, 1.0)
    assert not drift.is_zonal
    with pytest.raises(mf.MeanfieldError, match="FeedForward does not depend on inner products"):
        drift.as_zonal()


# What is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other", [3, 0.0, "SA", None, mf.Circle(4).uniform(), mf.PreLN(), np.ones(2)], ids=str
)
def test_only_drifts_are_added_to_drifts(other):
    for add in (lambda a, b: a + b, lambda a, b: b + a, lambda a, b: a - b):
        with pytest.raises(TypeError, match="added to a drift must be a drift; got"):
            add(mf.SA(1.0), other)


@pytest.mark.parametrize("factor", ["2", None, mf.SA(1.0), 1j, [[1.0], [2.0, 3.0]], mf.PreLN()])
def test_only_real_numbers_are_factors(factor):
    with pytest.raises((TypeError, ValueError), match=r"factor must (be real|have rows)"):
        mf.SA(1.0) * factor


@pytest.mark.parametrize("factor", [np.nan, np.inf, [1.0, -np.inf], []])
def test_factors_are_finite(factor):
    with pytest.raises(ValueError, match="factor must be finite"):
        factor * mf.SA(1.0)


def test_parts_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match=r"one drift or more.*0 drifts and 0 factors"):
        mf.Sum([])
    with pytest.raises(ValueError, match="1 drifts and 2 factors"):
        mf.Sum([mf.SA(1.0)], [1, 2])
    with pytest.raises(TypeError, match="drifts must be an array, each entry one of Attention"):
        mf.Sum(mf.SA(1.0))
    with pytest.raises(TypeError, match=r"drifts\[1\] must be one of Attention"):
        mf.Sum([mf.SA(1.0), 3])
    with pytest.raises(ValueError, match=r"do not broadcast: .*drifts\[0\].beta of shape \(3,\)"):
        np.ones(2) * mf.SA(np.ones(3))
    with pytest.raises(ValueError, match="factors of a sum in a sum do not broadcast"):
        np.ones(2) * (np.ones(3) * mf.SA(1.0))
    with pytest.raises(ValueError, match="product of factors must be finite"):
        1e200 * (1e200 * mf.SA(1.0))
    with pytest.raises(ValueError, match=r"one dimension d; got .*for d = 2, .*for d = 3"):
        mf.Attention(V=np.eye(2)) + mf.Attention(V=np.eye(3))
    with pytest.raises(mf.ConfigError, match=r"factors\[0\]: must be real numbers; got .x"):
        build(mf.Drift, {"kind": "Sum", "drifts": ["Kuramoto"], "factors": ["x"]})
    with pytest.raises(mf.ConfigError, match=r"drifts\[0\].kind: .*did you mean Kuramoto"):
        build(mf.Drift, {"kind": "Sum", "drifts": ["Kuramotto"]})
