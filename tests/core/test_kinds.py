"""One description, read in five ways: tables, `repr`, schema, identity, errors."""

import json
import pickle
import threading
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import meanfield as mf
from meanfield.core.descriptions import KindOf, build, describe, schema
from meanfield.core.forms import Array, Index, Natural, NonNegative, Positive, Reading, nearest
from meanfield.core.identity import digest
from meanfield.core.kinds import Kind
from meanfield.core.parameters import parameters_of


class Shape(Kind, family=True):
    """A family of this file."""


class Point(Shape):
    """One without parameters."""


class Disc(Shape):
    """A disc.

    Parameters
    ----------
    radius : float
        Its radius, > 0.
    colour : str
        What it looks like.
    corners : array
        More of it.
    inner : Shape
        What lies inside.
    """

    radius: Positive
    colour: Literal["red", "blue"] = "red"
    corners: Array | None = None
    inner: Shape = Point()
    times: Natural = 1
    seed: Index = 0
    shift: float = 0.0
    size: NonNegative = 0.0
    others: tuple[Shape, ...] = ()


class Written(Shape):
    """One with a constructor of its own.

    Parameters
    ----------
    name : str
        Its name.
    """

    def __init__(self, name: str, *, loud: bool = False):
        self._set(name=name.upper() if loud else name, loud=loud)


finite = st.floats(allow_nan=False, allow_infinity=False)
shapes = st.deferred(
    lambda: st.one_of(
        st.builds(Point),
        st.builds(Written, st.text("abc", min_size=1)),
        st.builds(
            Disc,
            radius=st.floats(min_value=1e-300, max_value=1e300),
            colour=st.sampled_from(["red", "blue"]),
            corners=st.one_of(st.none(), st.lists(finite, min_size=1, max_size=40).map(np.array)),
            inner=shapes,
            shift=finite,
            others=st.lists(shapes, max_size=2),
        ),
    )
)


@settings(derandomize=True, deadline=None, max_examples=20)
@given(shapes)
def test_what_was_described_is_built_again_bit_for_bit(shape):
    arrays = {}
    table = json.loads(json.dumps(describe(shape, arrays)))
    again = build(Shape, table, Reading(arrays=arrays, result=True))
    assert again == shape and hash(again) == hash(shape) and repr(again) == repr(shape)
    inline = build(Shape, json.loads(json.dumps(describe(shape))))
    assert inline == shape


def test_a_bare_string_is_a_kind_without_parameters():
    assert build(Shape, "Point") == Point()
    assert build(Shape, {"kind": "Disc", "radius": 1, "inner": "Point"}) == Disc(1.0)


def test_every_problem_is_named_at_once_with_the_nearest_valid_key():
    table = {
        "kind": "Disc",
        "raduis": 2.0,
        "colour": "rad",
        "times": 0,
        "inner": {"kind": "Diks"},
        "others": [{"kind": "Disc", "radius": -1}],
    }
    with pytest.raises(mf.ConfigError) as caught:
        build(Shape, table, where="shape")
    lines = str(caught.value).split("\n")
    assert len(lines) == 6
    for key, word in {
        "shape.raduis": "radius",
        "shape.colour": "red",
        "shape.times": "got 0",
        "shape.inner.kind": "Disc",
        "shape.others[0].radius": "-1",
        "shape.radius": "required (Its radius",
    }.items():
        assert any(line.startswith(f"{key}: ") and word in line for line in lines), (key, lines)


@pytest.mark.parametrize("data", [3, None, [1], {"radius": 1}, {"kind": 3}], ids=repr)
def test_what_is_no_table_of_a_kind_is_refused(data):
    with pytest.raises(mf.ConfigError, match="Disc"):
        build(Shape, data)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"radius": -1.0}, ValueError),
        ({"radius": np.nan}, ValueError),
        ({"radius": 1.0, "inner": "Point"}, TypeError),
        ({"radius": 1.0, "corners": ["a"]}, TypeError),
        ({"radius": 1.0, "times": 1.5}, ValueError),
        ({"radius": 1.0, "others": 3}, TypeError),
    ],
    ids=repr,
)
def test_python_and_files_have_the_same_checks(arguments, error):
    name = list(arguments)[-1]
    with pytest.raises(error, match=name):
        Disc(**arguments)
    if not isinstance(arguments[name], str):
        with pytest.raises(mf.ConfigError, match=name):
            build(Shape, {"kind": "Disc", **arguments})


def test_a_kind_cannot_be_changed_but_replaced():
    disc = Disc(1.0, corners=[1.0, 2.0])
    with pytest.raises(AttributeError):
        disc.radius = 2.0
    with pytest.raises(ValueError, match="read-only"):
        disc.corners[0] = 3
    assert disc.replace(radius=2.0) == Disc(2.0, corners=[1.0, 2.0]) != disc


def test_kinds_can_be_sent_to_other_processes():
    disc = Disc(1.0, corners=[1.0, 2.0], inner=Disc(2.0))
    assert pickle.loads(pickle.dumps(disc)) == disc


def test_the_schema_has_the_words_of_the_docstring():
    found = schema(Shape)
    disc = found["$defs"]["Shape.Disc"]
    assert disc["description"] == "A disc."
    assert disc["properties"]["radius"]["description"] == "Its radius, > 0."
    assert disc["properties"]["radius"]["exclusiveMinimum"] == 0
    assert disc["required"] == ["kind", "radius"] and not disc["additionalProperties"]
    assert {"const": "Point"} in found["anyOf"] and {"const": "Disc"} not in found["anyOf"]
    json.dumps(found)


def test_names_belong_to_the_module_that_took_them():
    with pytest.raises(TypeError, match=r"defines a Shape of the name Point"):
        type("Point", (Shape,), {"__module__": "elsewhere"})
    again = type("Point", (Shape,), {"__module__": Point.__module__})
    assert Shape.kinds["Point"] is again  # a notebook cell that is run twice
    Shape.kinds["Point"] = Point


def test_a_kind_that_is_not_installed_prints_and_refuses():
    data = {"kind": "Transformer", "drift": {"kind": "Unheard", "b": 2.0}}
    with pytest.raises(mf.ConfigError, match="Unheard"):
        build(mf.Transformer, data)
    model = build(mf.Transformer, data, Reading(result=True))
    assert "Unheard" in repr(model)
    with pytest.raises(mf.MeanfieldError, match="Unheard"):
        model.drift.rate()


def test_descriptions_are_made_once():
    """A run asks for them thousands of times."""
    assert parameters_of(mf.SA) is parameters_of(mf.SA)
    assert parameters_of(mf.solve) is parameters_of(mf.solve)


def test_parameters_of_functions_are_read_too():
    found = parameters_of(mf.solve)
    assert "t_span" in found and found["t_span"].required and found["rtol"].default == 1e-8
    assert "relative" in found["rtol"].words


def test_an_annotation_may_be_a_form_of_its_own():
    form = KindOf(Shape)

    def f(shape: Annotated[Shape, form]):
        return shape

    assert parameters_of(f)["shape"].form is form


# Identity ------------------------------------------------------------------------------------


def test_identity_is_what_is_computed_with():
    one, two = (lambda t: t**2), (lambda t: t**2)
    assert digest(one) == digest(two) != digest(lambda t: t**3)

    def power(k):
        return lambda t: t**k

    assert digest(power(2)) == digest(power(2)) != digest(power(3))
    assert digest(np.arange(3)) != digest(np.arange(3.0)) != digest(np.arange(3.0)[None])
    assert digest(0.0) != digest(-0.0) and digest(1) != digest(True)
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest(mf.USA(4.0)) == digest(mf.USA(4.0)) != digest(mf.SA(4.0))
    with pytest.raises(TypeError, match="lock has no contents"):
        digest(threading.Lock())


SCALE = 2.0


def test_globals_that_a_function_reads_count(monkeypatch):
    def f(t):
        return SCALE * t

    before = digest(f)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert digest(f) != before


# Classes that would compute something else -----------------------------------------------------


@pytest.mark.parametrize(
    ("family", "name"),
    [
        *((mf.ZonalDrift, name) for name in ("exponent", "polynomial_degree", "constant", "rate")),
        *(
            (mf.ZonalDrift, name)
            for name in ("has_table", "shape", "parameters", "member", "kinds")
        ),
        (mf.ZonalDrift, "self"),
        (mf.ZonalDrift, "kind"),
        (mf.Weights, "normalised"),
        (mf.Weights, "replace"),
    ],
)
def test_a_parameter_does_not_hide_what_a_class_inherits(family, name):
    with pytest.raises(TypeError, match=f"Hiding has a parameter {name}.*such as {name}_"):
        type("Hiding", (family,), {"__annotations__": {name: float}})
    assert "Hiding" not in family.kinds


def test_a_default_of_a_parameter_may_be_another():
    class Small(Disc):
        """A small disc."""

        radius: float = 0.1

    assert Small().radius == 0.1


@pytest.mark.parametrize("base", [mf.USA, mf.SA, mf.Kuramoto, mf.CosineSeries])
@pytest.mark.parametrize("method", ["slope", "weight"])
def test_closed_forms_of_another_slope_are_not_inherited(base, method):
    with pytest.raises(TypeError, match=r"would inherit the .*attraction.* ZonalDrift"):
        type("Steeper", (base,), {method: lambda self, t: 1 + t})


def test_closed_forms_of_its_own_slope_may_be_inherited():
    class Renamed(mf.USA):
        """USA under another name."""

    class Sloping(mf.ZonalDrift):
        """Without closed forms."""

        def slope(self, t):
            return 1 + t

    class Steeper(Sloping):
        """With another slope."""

        def slope(self, t):
            return 1 + 2 * t

    np.testing.assert_array_equal(Renamed(2.0).attraction(4, 3), mf.USA(2.0).attraction(4, 3))
    assert Steeper().attraction(1, 3)[1] == pytest.approx(1 / 3)


@pytest.mark.parametrize("hint", [complex, "Unheard", dict, complex | None, tuple[object, ...]])
def test_annotations_without_a_meaning_are_refused_and_others_are_left_alone(hint):
    with pytest.raises(TypeError, match=r"Spoilt cannot be read: .*(complex|Unheard|dict|object)"):
        type("Spoilt", (Shape,), {"__annotations__": {"b": hint}})
    assert "Spoilt" not in Shape.kinds
    json.dumps(schema(Shape))


def test_a_kind_may_hold_another_of_its_own_class():
    class Onion(Shape):
        """One inside another."""

        inner: "Onion | None" = None

    table = describe(Onion(Onion()))
    assert build(Shape, table) == Onion(Onion())


def test_what_files_cannot_hold_is_kept_in_words():
    class Holder(Shape):
        """Of anything."""

        what: Any

    arrays = {}
    for value in (1 + 2j, object, {1, 2}, object()):
        reading = Reading(result=True)
        lost = build(Shape, json.loads(json.dumps(describe(Holder(value)))), reading).what
        assert reading.lost
        with pytest.raises(mf.MeanfieldError, match="files do not hold"):
            lost()
    table = json.loads(json.dumps(describe(Holder(np.arange(20.0)), arrays)))
    again = build(Shape, table, Reading(arrays=arrays, result=True))
    np.testing.assert_array_equal(again.what, np.arange(20.0))


@pytest.mark.parametrize("what", [int, mf.USA(1.0), "USA", Kind])
def test_what_is_no_family_has_no_schema(what):
    with pytest.raises(TypeError, match=r"family must be a family .* got"):
        schema(what)
    with pytest.raises(TypeError, match=r"family must be a family .* got"):
        build(what, {"kind": "USA"})


# Words -----------------------------------------------------------------------------------------


def test_setting_an_attribute_says_what_to_do_instead():
    class Plain(Shape):
        """Of a user."""

    with pytest.raises(AttributeError, match=r"USA is frozen; use replace\(beta="):
        mf.USA(1.0).beta = 2.0
    with pytest.raises(AttributeError, match=r"frozen and has no parameter betta; .*mean beta\?"):
        mf.USA(1.0).betta = 2.0
    with pytest.raises(AttributeError, match="frozen and has no parameter rate"):
        mf.USA(1.0).rate = 2.0
    with pytest.raises(AttributeError, match=r"declare `size: float` in the class"):
        Plain().size = 2.0


def test_a_default_without_an_annotation_is_no_parameter():
    class Halfway(Shape):
        """With a constant."""

        b = 1.0

    with pytest.raises(TypeError, match=r"Halfway has no parameter b: write `b: float = 1\.0`"):
        Halfway(b=2.0)
    with pytest.raises(TypeError, match="Halfway has no parameter c"):
        Halfway(c=2.0)


@pytest.mark.parametrize(
    ("family", "needs"),
    [(mf.Drift, "Interaction"), (mf.Noise, "MultiplicativeIto")],
)
def test_files_are_not_told_of_kinds_that_need_a_function(family, needs):
    with pytest.raises(mf.ConfigError) as caught:
        build(family, {"kind": "Unheard"})
    assert needs not in str(caught.value) and f"{family.__name__}.{needs}" not in schema(family)
    assert needs in KindOf(family).expected  # in Python


class Expo(mf.ZonalDrift):
    """W' = exp(a t) (1 + c t)."""

    a: float
    c: float

    def slope(self, t):
        return np.exp(self.a * t) * (1 + self.c * t)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: mf.SA(temperature=2.0), "SA has no parameter temperature; did you mean beta"),
        (lambda: mf.Attention(W_Q=1.0), "no parameter W_Q; did you mean Q"),
        (lambda: mf.Attention(is_causal=True), "is_causal; did you mean causal"),
        (
            lambda: mf.Transformer(mf.SA(1.0), normalization=mf.PreLN()),
            "did you mean normalisation",
        ),
        (
            lambda: mf.Tokens.uniform(4, 3, seed=0),
            "uniform has no parameter seed; did you mean rng",
        ),
        (lambda: mf.sweep(abs, {"b": [1]}, workers=2), "workers; did you mean executor"),
        (lambda: mf.wasserstein(0, 0, cels=2), "wasserstein has no parameter cels.* cells"),
        (
            lambda: mf.branches(mf.USA, mf.Circle(8), (1, 2), bta=(1, 2)),
            "bta; did you mean beta",
        ),
        (
            lambda: mf.phase_diagram(Expo(1.0, 2.0), mf.Circle(8), a=(1, 2)),
            r'to vary that of Expo, write vary=\{"a": \(start, end\)\}',
        ),
        (lambda: Expo(1.0, 2.0, e=1.0), r"Expo has no parameter e\. It takes a, c"),
        (lambda: mf.Kuramoto(beta=2.0), "It takes none"),
        (lambda: mf.Attention(weights="softmax"), r"did you mean Softmax\(...\)"),
        (lambda: mf.FeedForward([[1.0]], [[1.0]], activation="swish"), '"silu"'),
    ],
)
def test_wrong_names_of_parameters_are_told_the_nearest_and_what_others_call_them(call, meant):
    with pytest.raises(TypeError, match=meant):
        call()


def test_a_name_of_another_library_counts_only_where_its_meaning_is_a_parameter():
    assert nearest("atol", ["rtol", "dt"]) == "; did you mean rtol?"
    assert nearest("temperature", ["radius", "kappa"]) == ""


def test_activations_have_names_in_python_too():
    named, function = (mf.FeedForward([[1.0]], [[1.0]], activation=f) for f in ("tanh", np.tanh))
    assert named == function
