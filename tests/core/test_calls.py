"""Messages about calls: wrong names, missing arguments, abstract classes."""

import copy
import inspect
import pickle

import pytest

import meanfield as mf

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
