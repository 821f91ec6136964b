"""Whatever functions and kinds hold, different contents have different identities, or none."""

import functools
import importlib
import importlib.machinery
import json
import operator
import os
import random
import shutil
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import scipy.interpolate
from held import REFUSED, TOLD, Plain, Slotted, X, digests
from scipy.integrate import _odepack

import meanfield as mf
from meanfield.core.identity import digest, same

HERE = Path(__file__).parent


def test_every_kind_of_content_is_told_apart_or_refused(attack):
    for name, make in TOLD.items():
        one, again, other = digest(make(1)), digest(make(1)), digest(make(2))
        attack.saw("told apart") if one != other else attack.failed("two contents are one", name)
        attack.saw("the same again") if one == again else attack.failed("another identity", name)
    for name, make in REFUSED.items():
        for x in (1, 2):
            try:
                digest(make(x))
            except TypeError:
                attack.saw("refused")
            except Exception as error:
                attack.failed("foreign error", f"{name}: {error!r}")
            else:
                attack.failed("not refused", name)


def test_digests_are_the_same_in_other_processes(attack):
    program = "import held, json; print(json.dumps(held.digests()))"
    folders = os.pathsep.join([str(HERE), *sys.path])
    here = digests()
    for seed in map(str, range(attack.rounds(1, 6))):
        environment = {**os.environ, "PYTHONPATH": folders, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", program]
        there = json.loads(subprocess.check_output(command, env=environment))
        assert there.keys() == here.keys()
        for name, both in here.items():
            attack.saw("equal") if there[name] == both else attack.failed("other process", name)


# Random contents ---------------------------------------------------------------------------------


def _function_of(value):
    return lambda t: (value, t)


NODES = [
    lambda parts: list(parts),
    lambda parts: tuple(parts),
    lambda parts: dict(enumerate(parts)),
    lambda parts: {f"key {i}": part for i, part in enumerate(parts)},
    lambda parts: Plain(tuple(parts)),
    lambda parts: Slotted(list(parts)),
    lambda parts: functools.partial(max, *parts),
    lambda parts: _function_of(list(parts)),
    lambda parts: np.array([*parts, None], dtype=object),
    lambda parts: types.SimpleNamespace(**{f"a{i}": part for i, part in enumerate(parts)}),
    lambda parts: Plain(list(parts)).method,
    lambda parts: type("Own", (), {f"a{i}": part for i, part in enumerate(parts)}),
]
LEAVES = [
    lambda x: x,
    float,
    str,
    lambda x: np.arange(x),
    lambda x: np.full(3, x / 7),
    lambda x: frozenset([x, -1, "a"]),
    lambda x: scipy.interpolate.PPoly([[x]], [0, 1]),
    lambda x: np.random.default_rng(x),
    lambda x: operator.itemgetter(x),
]


def _tree(chance, changed, count, depth=4):
    """A random object; that of the same random numbers differs in the leaf that is changed."""
    if depth == 0 or chance.random() < 0.3:
        count[0] += 1
        x = chance.randrange(1000)
        return chance.choice(LEAVES)(x + 1000 * (count[0] == changed))
    node, size = chance.choice(NODES), chance.randrange(1, 4)
    return node([_tree(chance, changed, count, depth - 1) for _ in range(size)])


def test_one_leaf_of_a_random_object_changes_its_digest(attack):
    for seed in range(attack.rounds(150, 10000)):
        count = [0]
        one = digest(_tree(random.Random(seed), 0, count))
        again = digest(_tree(random.Random(seed), 0, [0]))
        leaf = random.Random(-seed).randrange(count[0]) + 1
        other = digest(_tree(random.Random(seed), leaf, [0]))
        attack.saw("told apart") if one == again != other else attack.failed("wrong", f"{seed}")


# Code that is found at run time ------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of modules that are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def _imports(text):
    names: dict = {"__name__": "script"}
    exec(f"def f(t):\n    {text}", names)
    return names["f"]


@pytest.mark.parametrize(
    "text",
    [
        "import local; return local.a",
        "import local.inner as it; return it.b",
        "from local import f; return f(t)",
        "from local.inner import b; return b",
        "from local import inner; return inner.b",
        "def g(): import local.inner; return local.inner.b\n    return g()",
    ],
)
def test_modules_that_a_function_imports_count(folder, text):
    (folder / "local").mkdir()
    (folder / "local/__init__.py").write_text("from .inner import b\na = 1\ndef f(t): return a * b")
    (folder / "local/inner.py").write_text("b = 2\n")
    function = _imports(text)
    before = digest(function)  # imports them
    assert digest(_imports(text)) == before
    found = sys.modules["local"], sys.modules["local.inner"]
    for module in found:
        module.a = module.b = 3
    assert digest(function) != before


def test_a_module_that_is_missing_may_be_there_later(folder):
    function = _imports("import later; return later.a")
    before = digest(function)
    (folder / "later.py").write_text("a = 1")
    importlib.invalidate_caches()
    assert digest(function) != before


def test_a_module_that_raises_is_refused(folder):
    (folder / "raising.py").write_text("raise ValueError('here')")
    with pytest.raises(TypeError, match=r"script.f imports raising, which raises .*here"):
        digest(_imports("import raising"))


# Libraries ---------------------------------------------------------------------------------------


def _package(folder, name, version="1.0"):
    (folder / name).mkdir(parents=True)
    (folder / f"{name}/__init__.py").write_text(f"__version__ = '{version}'\nfrom .inner import g")
    (folder / f"{name}/inner.py").write_text("a = 1\ndef g(t): return a")


@pytest.mark.parametrize("how", ["target", "dist-packages", "site-packages", "own"])
def test_installed_packages_count_by_name_and_version_wherever_they_are(folder, monkeypatch, how):
    at = folder / how
    _package(at, "elsewhere")
    if how == "target":  # as pip install --target leaves it
        (at / "elsewhere-1.0.dist-info").mkdir()
        record = "elsewhere/__init__.py,sha256=0,3\nelsewhere/inner.py,,\n"
        (at / "elsewhere-1.0.dist-info/RECORD").write_text(record)
    monkeypatch.syspath_prepend(at)
    elsewhere = importlib.import_module("elsewhere")
    uses = eval("lambda t: elsewhere.g(t)", {"elsewhere": elsewhere})
    before, module = digest(uses), digest(elsewhere)
    elsewhere.inner.a = 2
    assert (digest(uses) == before) == (digest(elsewhere) == module) == (how != "own")
    elsewhere.__version__ = "1.1"
    assert digest(elsewhere) != module


def test_a_module_beside_installed_ones_is_ones_own(folder):
    _package(folder, "elsewhere")
    (folder / "elsewhere-1.0.dist-info").mkdir()
    (folder / "elsewhere-1.0.dist-info/RECORD").write_text("elsewhere/__init__.py,,\n")
    (folder / "mine.py").write_text("a = 1")
    mine = importlib.import_module("mine")
    before = digest(mine)
    mine.a = 2
    assert digest(mine) != before


def test_compiled_functions_of_ones_own_count_by_the_file_that_has_them(folder):
    file = folder / Path(_odepack.__file__).name
    shutil.copy(_odepack.__file__, file)
    loader = importlib.machinery.ExtensionFileLoader("_odepack", str(file))
    spec = importlib.util.spec_from_loader("_odepack", loader)
    module = sys.modules["_odepack"] = importlib.util.module_from_spec(spec)
    before = digest(module.odeint)
    assert digest(module.odeint) == before
    other = folder / "other"
    other.write_bytes(file.read_bytes() + b"\0")
    other.replace(file)  # the one that is loaded stays as it is
    assert digest(module.odeint) != before


# What the identity is for ------------------------------------------------------------------------


def _spline(power):
    return scipy.interpolate.CubicSpline(X, X**power)


def test_functions_that_hold_other_splines_are_another_run_and_another_sweep(tmp_path):
    tokens = mf.Tokens.uniform(3, 3, rng=0)

    def solve(power, **options):
        spline = _spline(power)
        model = mf.Transformer(mf.Attention(V=lambda t: float(spline(t)) * np.eye(3)))
        return mf.solve(model, tokens, (0, 1), checkpoint=tmp_path / "run", **options)

    solve(1, max_steps=1)
    with pytest.raises(mf.CheckpointError, match="another run"):
        solve(2, resume=True)
    assert solve(1, resume=True).success

    def sweep(power):
        spline = _spline(power)
        return mf.sweep(lambda a: float(spline(a)), {"a": [0.5]}, store=tmp_path / "store")

    assert sweep(1)["value"] == sweep(1)["value"] == pytest.approx(0.5)
    with pytest.raises(mf.CheckpointError, match="another sweep"):
        sweep(2)


def test_kinds_are_equal_if_what_they_hold_is(tmp_path):
    assert mf.Interaction(_spline(1)) == mf.Interaction(_spline(1)) != mf.Interaction(_spline(2))
    held = np.frompyfunc(lambda t: t, 1, 1)
    one, other = mf.Attention(V=held), mf.Attention(V=held)
    assert one == one != other and not same(one, other) and len({one, other, one}) == 2
    with pytest.raises(mf.CheckpointError, match=r"V.*numpy.ufunc, has no contents"):
        mf.solve(
            mf.Transformer(one), mf.Tokens.uniform(3, 3, rng=0), (0, 1), checkpoint=tmp_path / "run"
        )
