"""Messages about calls: wrong names, missing arguments, abstract classes."""

import copy
import inspect
import pickle
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf
from meanfield.core.calls import checked_call
from meanfield.core.kinds import Kind

PUBLIC = {name: getattr(mf, name) for name in mf.__all__}
MODULES = [mf, mf.networks, mf.plotting, mf.steppers, mf.engines]
CLASSES = {
    name: one for name, one in PUBLIC.items() if inspect.isclass(one) and hasattr(one, "described")
}
ABSTRACT = [one for one in PUBLIC.values() if inspect.isclass(one) and inspect.isabstract(one)]
CALLED = [*(c for c in CLASSES.values() if c not in ABSTRACT), mf.solve, mf.branches, mf.sweep]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_public_names_in_another_case_are_known(module):
    """Two public names may differ by case alone: then either is meant."""
    for name in module.__all__:
        cases = {name.lower(), name.upper(), name.capitalize()} - set(module.__all__)
        for wrong in cases if name[0] != "_" else ():
            if hasattr(module, wrong):  # a module inside
                continue
            with pytest.raises(AttributeError, match=f"has no {wrong}; did you mean") as raised:
                getattr(module, wrong)
            assert str(raised.value).split()[-1].rstrip("?").lower() == name.lower()
    with pytest.raises(AttributeError, match=r"^\S+ has no _wrong[.]$"):
        module._wrong  # noqa: B018


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("Krogstad", "steppers.Krogstad"),
        ("krogstad", "steppers.Krogstad"),
        ("torus_map", "plotting.torus_map"),
        ("probe", "networks.probe"),
        ("fit", "networks.fit"),  # there is networks.Fit too
        ("relu", "models.activations.relu"),
    ],
)
def test_public_names_of_modules_are_pointed_to(name, place):
    with pytest.raises(AttributeError, match=rf"has no {name}; did you mean meanfield\.{place}\?"):
        getattr(mf, name)


def test_all_public_modules_are_searched():
    modules = {one.__name__ for one in PUBLIC.values() if inspect.ismodule(one)}
    for module in modules:
        names = [n for n, v in vars(sys.modules[module]).items() if is_own(v, module)]
        lowered = {public.lower() for public in PUBLIC}
        for name in set(getattr(sys.modules[module], "__all__", names)) - set(PUBLIC):
            if name[0] != "_" and name.lower() not in lowered and name not in vars(mf):
                with pytest.raises(AttributeError, match=rf"did you mean meanfield\.\S+\.{name}\?"):
                    getattr(mf, name)


def is_own(value, module):
    return getattr(value, "__module__", None) == module


def test_submodules_are_no_misspelt_names():
    """`from meanfield import explore` asks for the name first: it imports nothing else."""
    with pytest.raises(AttributeError, match=r"^meanfield has no sweeps[.]?"):
        mf.core.public_names.with_hint("meanfield", [], None, ["plotting"])("sweeps")


@pytest.mark.parametrize("target", CALLED, ids=lambda target: target.__name__)
def test_a_call_without_arguments_names_what_is_called_and_what_it_needs(target):
    signature = inspect.signature(target.__init__ if inspect.isclass(target) else target)
    needed = [
        name
        for name, one in signature.parameters.items()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if needed := [name for name in needed if name != "self"]:
        expected = f"{target.__name__}(\\(\\) missing .*{needed[0]}| needs {needed[0]})"
        with pytest.raises(TypeError, match=f"^{expected}"):
            target()


def test_a_call_with_too_many_arguments_says_which_it_takes():
    with pytest.raises(TypeError, match=r"^USA takes only beta .*; got 3 values"):
        mf.USA(1.0, 2.0, 3.0)
    with pytest.raises(TypeError, match=r"^Attention takes only Q, K, V, beta .*; got 5 values"):
        mf.Attention(1, 2, 3, 4, 5)
    with pytest.raises(TypeError, match=r"^Softmax takes no arguments; got 1 value[.]$"):
        mf.Softmax(1.0)


@pytest.mark.parametrize("cls", ABSTRACT, ids=lambda cls: cls.__name__)
def test_abstract_classes_say_what_to_define(cls):
    with pytest.raises(TypeError, match=f"^{cls.__name__} is abstract") as raised:
        cls()
    for method in cls.__abstractmethods__:
        assert method in str(raised.value)


def test_a_drift_without_rate_says_what_to_derive_from():
    class RightHandSide(mf.Drift):
        """v(t, x, mu)."""

        def velocity(self, t, x, mu):
            return -x

    for cls in (RightHandSide, mf.Drift):
        with pytest.raises(TypeError, match=r"lacks rate. Derive from ZonalDrift .* Motion"):
            cls()
    with pytest.raises(TypeError, match="defines slope"):
        mf.ZonalDrift()


def test_kinds_are_copied_and_pickled_without_their_constructors():
    drift, tokens = mf.USA(2.0), mf.Tokens.uniform(3, 3, rng=0)
    drift.attraction(8, 2)
    for again in (copy.copy(drift), copy.deepcopy(drift), pickle.loads(pickle.dumps(drift))):
        assert again == drift and type(again) is mf.USA
    assert (pickle.loads(pickle.dumps(tokens)).x == tokens.x).all()


CIRCLE = mf.Circle(8)
TOKENS = mf.Tokens.uniform(5, 3, rng=0)
OBJECTS = [
    *(TOKENS, TOKENS.gram(), mf.Equiangular(5, 0.1), mf.Gaussian(np.zeros(2), np.eye(2))),
    *(CIRCLE.uniform(), mf.Characteristics(CIRCLE.uniform()), CIRCLE, mf.Sphere(4), mf.Zonal(4, 4)),
    *(mf.USA(1.0), mf.SA(1.0), mf.Kuramoto(), mf.Interaction(np.exp), mf.Attention(), mf.Hardmax()),
    *(mf.SA(1.0) + mf.Kuramoto(), mf.Field(np.sin), mf.Transformer(mf.SA(1.0))),
    *(mf.Isotropic(), mf.Softmax(), mf.PostLN(), mf.PreLN()),
]


@pytest.mark.parametrize("made", OBJECTS, ids=lambda made: type(made).__name__)
def test_completion_offers_documented_names_only(made):
    root = Path(__file__).parents[2]
    pages = [*(root / "docs").rglob("*.md"), root / "README.md"]
    text = "\n".join(page.read_text() for page in pages)
    blocks = re.findall(r"```.*?```|`[^`\n]+`|:members:.*", text, re.DOTALL)
    documented = set(re.findall(r"\w+", " ".join(blocks)))
    for cls in type(made).__mro__:
        documented |= set(re.findall(r"^(\w[\w, ]*?) :", inspect.cleandoc(cls.__doc__ or ""), re.M))
    documented = {word for entry in documented for word in entry.split(", ")}
    offered = {name for name in dir(made) if name[0] != "_"}
    assert (
        not offered & {"plain_class", "facts", "parts", "kinds"} and offered - documented == set()
    )


def test_names_that_completion_leaves_out_are_there():
    """A list of names that were renamed since would hide nothing, or a new name."""
    found = [Kind]
    while any(cls not in found for cls in _below(found)):
        found += [cls for cls in _below(found) if cls not in found]
    for cls in found:
        for name in vars(cls).get("_internal", "").split():
            below = [other for other in found if issubclass(other, cls)]
            made = [one for one in OBJECTS if isinstance(one, cls)]
            assert any(hasattr(one, name) for one in (*below, *made)), name


def _below(classes):
    return [cls for one in classes for cls in one.__subclasses__()]


def test_tables_of_notebooks_say_sizes_and_values():
    told = TOKENS.facts()
    assert told["masses of the tokens"] == "5 numbers, each 0.2"
    assert told["position of a token"].startswith("5 × 3 numbers, from -0.")


def test_classes_offer_what_their_objects_offer_for_completion():
    """Also the parameters, and constructors such as `Tokens.uniform`."""
    for cls in {type(made) for made in OBJECTS if isinstance(made, Kind)}:
        offered = {name for name in dir(cls) if name[0] != "_"}
        assert not offered & {"plain_class", "told", "held", "kinds", "annotation_forms", "as_form"}
    assert {"x", "masses", "radii", "uniform", "from_hidden"} <= set(dir(mf.Tokens))


def test_a_class_that_lacks_a_method_names_it_with_its_arguments():

    class Quadratic(mf.ZonalDrift):
        """A drift without its slope."""

    class Bent(mf.Weights):
        """Weights whose method is misspelt."""

        def of_logit(self, logits, squares):
            return logits

    with pytest.raises(TypeError, match=r"^Quadratic must define slope\(self, t\)\.$"):
        Quadratic()
    with pytest.raises(TypeError, match=r"of_logits\(self, logits, squares\).* of_logit\."):
        Bent()


def test_a_misspelt_class_attribute_is_refused():
    with pytest.raises(TypeError, match=r"normalized.*did you mean normalised"):
        type("Relu", (mf.Weights,), {"normalized": False, "of_logits": abs})


def test_signatures_have_no_module_paths():
    functions = (mf.solve, mf.branches, mf.wasserstein, mf.propagation_of_chaos)
    for target in (*functions, mf.USA, mf.Tokens, mf.Transformer, mf.Circle, mf.Density):
        text = str(inspect.signature(target))
        assert not re.search(r"Annotated|meanfield\.|numpy\.|typing", text)


def test_signatures_say_array_like():
    assert "(angles: ArrayLike, " in str(inspect.signature(mf.Tokens.on_circle))


def test_a_parameter_that_a_class_of_the_package_lacks_gets_no_advice_for_authors():
    with pytest.raises(TypeError, match=r"no parameter dimension.*Zonal.* It takes degree"):
        mf.Sphere(degree=16, dimension=4)


def test_one_number_in_place_of_several_is_refused_with_what_to_write():
    model, mu = mf.Transformer(mf.USA(beta=4.0)), mf.Circle(degree=8).density(lambda a: 1 + 0 * a)
    with pytest.raises(TypeError, match=r"t_span must be two times \(start, end\)"):
        mf.solve(model, mu, t_span=1.0)
    with pytest.raises(TypeError, match=r"sizes.*\[64\]"):
        mf.propagation_of_chaos(model, mu, sizes=64, times=[1.0], rng=0)


def test_a_value_given_in_its_place_and_by_name_is_refused_with_the_name_of_the_function():
    @checked_call()
    def area(width: float, height: float) -> float:
        return width * height

    with pytest.raises(TypeError, match=r"area got width twice: the value in place 1"):
        area(2.0, width=3.0)
