"""When functions are compiled: on first use, and not without a word."""

import ast
import gc
import os
import re
import subprocess
import sys
from collections import namedtuple
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numba import njit, typeof
from numba.core.compiler import Compiler
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from meanfield.lowlevel import code_cache, compilation
from meanfield.lowlevel.compilation import INNER, listening
from meanfield.steppers import attempt, clock, rows

ROOT = Path(__file__).parents[2]

IMPORT_EVERYTHING = """
import importlib, pkgutil
from meanfield.lowlevel.compilation import listening
import meanfield
compiled = []
with listening(compiled.append):
    for module in pkgutil.walk_packages(meanfield.__path__, "meanfield."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(compiled)
"""


def test_nothing_is_compiled_when_modules_are_imported(tmp_path):
    """Neither announced nor written into the cache, which is empty before."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_EVERYTHING],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_what_is_compiled_is_announced_once_and_its_parts_are_not():
    @njit
    def part(x):
        return x + 1

    @njit
    def whole(x):
        return part(x) * 2

    heard = []
    with listening(heard.append):
        assert whole(1.0) == 4.0
        whole(2.0)
    assert heard == ["whole", None]
    with listening(heard.append):
        whole(3.0)
    part(np.float32(1.0))  # nobody listens any more
    assert heard == ["whole", None]


def test_the_passes_that_are_left_out_are_passes_of_numba():
    found = set()

    class Heard(Compiler):
        def define_pipelines(self):
            pipelines = super().define_pipelines()
            found.update(step[0].__name__ for pipeline in pipelines for step in pipeline.passes)
            return pipelines

    @njit(pipeline_class=Heard)
    def function(x):
        return x

    function(1.0)
    assert found > compilation.UNUSED_PASSES


def test_garbage_is_collected_again_after_a_compilation():
    collects = []

    @intrinsic
    def seen(_typing, x):
        collects.append(gc.isenabled())
        return x(x), lambda _context, _builder, _signature, values: values[0]

    @compilation.njit
    def right(x):
        return seen(x)

    @compilation.njit
    def wrong(x):
        return x.no_such_attribute

    assert right(1.0) == 1.0 and gc.isenabled()
    with pytest.raises(Exception, match="no_such_attribute"):
        wrong(1.0)
    assert gc.isenabled()
    gc.disable()
    try:
        assert right(1) == 1 and not gc.isenabled()
    finally:
        gc.enable()
    assert collects and not any(collects)


def test_the_end_of_a_compilation_that_fails_is_announced_too():
    @njit
    def wrong(x):
        return x.no_such_attribute

    heard = []
    with listening(heard.append), pytest.raises(Exception, match="no_such_attribute"):
        wrong(1.0)
    assert heard[0] == "wrong" and heard[-1] is None


def test_functions_without_an_entry_from_python_are_called_by_compiled_code():
    @njit(**{**INNER, "cache": False})
    def part(values):
        return values[0] + values[1].sum()

    @njit
    def whole(a, b):
        return part((a, b))

    assert whole(1.0, np.ones(3)) == 4.0


MOVE_TOKENS = """
import numpy as np
import meanfield as mf
x = np.random.default_rng(0).standard_normal((300, 5))
tokens = mf.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))
run = mf.solve(mf.Transformer(mf.SA(beta=4.0)), tokens, (0, 0.1), t_eval=[0.1])
print(run.final.x.tobytes().hex())
"""


@pytest.mark.long
def test_a_run_that_compiles_and_one_that_reads_the_cache_are_the_same_bits(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", MOVE_TOKENS]
    options = {"env": environment, "cwd": ROOT, "capture_output": True, "check": True}
    assert len({subprocess.run(command, **options).stdout for _ in range(2)}) == 1


@cache
def compiled_functions():
    """All functions with the decorator njit: module, name, options, what they call, their body."""
    found = []
    for path in sorted((ROOT / "meanfield").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "@njit(" in text else ():
            for decorator in getattr(node, "decorator_list", []):
                if (options := ast.unparse(decorator)).startswith("njit("):
                    calls = {ast.unparse(c.func) for c in ast.walk(node) if isinstance(c, ast.Call)}
                    found.append((path.stem, node.name, options, calls, node))
    return found


def test_what_may_be_rounded_in_several_ways_is_a_part_of_its_caller():
    """`fastmath` lets each compilation of a function round in its own way."""
    found = compiled_functions()
    assert len(found) > 50
    for module, name, options, *_ in found:
        callers = [m for m, _, _, calls, _ in found if name in calls]
        private = name.startswith("_")
        if "fastmath" in options and (module in callers if private else callers):
            assert "WITHIN" in options, f"{module}.{name} is called by compiled code."


def test_what_calls_it_is_a_part_of_its_caller_too():
    """One that was compiled here and one from the cache may be rounded differently."""
    found = compiled_functions()
    paths = (ROOT / "meanfield").glob("*/*.py")
    texts = {path.stem: path.read_text(encoding="utf-8") for path in paths}

    def called(module, name):
        """Functions that call it, in its module and in those that import it."""
        imported = rf"from [\w.]*\b{module} import [^)]*?\b{name}\b"
        return {(m, n) for m, n, _, calls, _ in found if name in calls
                and (m == module or re.search(imported, texts[m]))}  # fmt: skip

    new = rounded = {(module, name) for module, name, options, *_ in found if "fastmath" in options}
    while new:
        new = set().union(*(called(*one) for one in new)) - rounded
        rounded = rounded | new
    for module, name, options, *_ in found:
        if (module, name) in rounded and called(module, name):
            assert "cache=True" not in options, f"{module}.{name} is called by compiled code."


def lost(x, y):
    """Rounding error of x + y; 0 where sums may be reordered."""
    return x - ((x + y) - y)


@pytest.mark.bits
@pytest.mark.parametrize("options", [{}, INNER], ids=["function", "part"])
def test_options_of_a_function_are_not_those_of_its_first_caller(options):
    part = compilation.njit(**options)(lost)

    @njit(fastmath={"reassoc", "nsz"})
    def first(x, y):
        return part(x, y)

    @compilation.njit
    def second(x, y):
        return part(x, y)

    assert njit(fastmath={"reassoc", "nsz"})(lost)(0.1, 1e10) == 0
    assert first(0.1, 1e10) == second(0.1, 1e10) == lost(0.1, 1e10) != 0


@pytest.mark.parametrize("options", [{}, INNER], ids=["function", "part"])
def test_divisions_by_zero_give_inf_whoever_calls_first(options):
    part = compilation.njit(**options)(lambda x, y: x / y)

    @njit(error_model="python")
    def first(x, y):
        return part(x, y)

    assert first(1.0, 0.0) == np.inf


@pytest.mark.bits
@pytest.mark.parametrize("operator", ["x * y", "x / y"])
def test_operators_round_as_the_function_says_that_has_them(operator, monkeypatch):
    """numba has the code of such operators made once, by whichever function asks first."""
    made = {}
    exec(f"def function(x, y): return {operator}", made)
    numbers = np.random.default_rng(0).uniform(0.1, 2, (200, 4)).view(complex)

    def values(decorator):
        compiled = decorator(made["function"])
        return [compiled(x, y) for x, y in numbers]

    def forget():
        monkeypatch.setattr(cpu_target.target_context, "cached_internal_func", {})
        monkeypatch.setattr(compilation, "OPERATORS", {})

    forget()
    exact = values(compilation.njit)
    forget()
    if values(njit(fastmath=True)) == exact:
        pytest.skip("a processor without fused multiplications and additions")
    assert values(compilation.njit(fastmath=True)) != exact
    assert values(compilation.njit) == exact


ORDERS = """
import sys
import numpy as np
from meanfield.engines.circle import _fill_values, _power_moments
rng = np.random.default_rng(0)
x, masses = rng.standard_normal((4, 8, 2)), rng.random((4, 8))
moments, values = np.zeros((4, 1, 31), complex), np.zeros((4, 1, 8))
terms = rng.standard_normal((2, 4, 1, 32))
works = [
    lambda: _power_moments(x, masses, moments, 0, 4),
    lambda: _fill_values(x, terms[0], terms[1], values, 0, 4),
]
for number in sys.argv[1]:
    works[int(number)]()
print(moments.tobytes().hex(), values.tobytes().hex())
"""


@pytest.mark.bits
def test_bits_do_not_depend_on_the_order_in_which_functions_are_compiled(tmp_path):
    """One of the two may contract products; the normalisation of tokens, in both, may not."""
    results = []
    for order in ("01", "10"):
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / order)}
        command = [sys.executable, "-c", ORDERS, order]
        options = {"env": environment, "cwd": ROOT, "capture_output": True, "check": True}
        results.append(subprocess.run(command, **options).stdout)
    assert results[0] == results[1]


def test_compiled_functions_assign_no_arrays_to_slices():
    """numba then compiles its message on shapes that differ, 37 functions that take 2 s."""
    for module, name, _, _, body in compiled_functions():
        for node in ast.walk(body):
            for target in getattr(node, "targets", ()):
                slices = [s for s in ast.walk(target) if isinstance(s, ast.Slice)]
                values = getattr(node.value, "elts", [node.value])
                numbers = all(isinstance(value, ast.Constant) for value in values)
                assert not slices or numbers, f"{module}.{name}: {ast.unparse(node)}"


CONSTANTS = """
import sys
from meanfield.lowlevel.compilation import njit
factor = float(sys.argv[1])

def of(shift):
    return lambda t: factor * t + shift

@njit(cache=True)
def part(t):
    return factor * t

@njit(cache=True)
def whole(t):
    return part(t) + 1.0

compiled = [njit(cache=True)(of(shift)) for shift in (0.0, factor)]
print([f(1.0) for f in compiled], whole(1.0))
"""


@pytest.mark.long
def test_code_is_kept_for_the_numbers_that_it_was_compiled_with(tmp_path):
    """Those of closures, of modules, and of compiled functions that are called."""
    script = tmp_path / "constants.py"
    script.write_text(CONSTANTS)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for factor in (2.0, 5.0, 2.0):
        done = subprocess.run(
            [sys.executable, str(script), str(factor)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == f"[{factor}, {2 * factor}] {factor + 1}"


def test_code_is_kept_for_the_switches_that_it_was_compiled_with(monkeypatch):
    before = code_cache._switches()
    monkeypatch.setattr(code_cache.config, "LOOP_VECTORIZE", "another")
    assert code_cache._switches() != before


def test_code_is_kept_for_the_names_of_fields_in_a_signature():
    """The text of a signature has the types of the fields of a named tuple, and not their order."""
    first, second = namedtuple("Pair", "a b"), namedtuple("Pair", "b a")
    signatures = [(typeof((pair(1, 2.0), 3)),) for pair in (first, second)]
    assert str(signatures[0]) == str(signatures[1])
    assert code_cache._fields(signatures[0]) != code_cache._fields(signatures[1])


def test_code_depends_on_the_modules_of_the_functions_that_it_calls_and_on_no_others():
    assert len(code_cache.sources(vars(clock))) < len(code_cache.sources(vars(rows)))
    assert set(code_cache.sources(vars(attempt))) < set(code_cache.sources(vars(rows)))


FIRST_RUNS = """
import gc
import numpy as np
import meanfield as mf
from numba.core.registry import CPUDispatcher
from meanfield.lowlevel.code_cache import CodeCache


def used():
    functions = [f for f in gc.get_objects() if issubclass(type(f), CPUDispatcher)]
    return {f.py_func.__name__ for f in functions if type(f._cache) is CodeCache and f.signatures}


density = mf.Circle(16).density(lambda a: 1 + 0.3 * np.cos(a))
tokens = mf.Tokens.uniform(20, 2, rng=0)
mf.solve(mf.Transformer(mf.SA(4.0), {KAPPA}), {STATE}, (0, 0.05), progress=False)
print(*sorted(used()))
"""


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("state", "kappa", "most"),
    [("mf.Characteristics(density)", "np.inf", 3), ("tokens", "np.inf", 5), ("density", 6.0, 4)],
    ids=["characteristics", "tokens", "density"],
)
def test_a_first_run_needs_few_compiled_functions(state, kappa, most):
    """In a fresh process, from the cache or not; parts of other functions do not count."""
    code = FIRST_RUNS.replace("{STATE}", state).replace("{KAPPA}", str(kappa))
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    used = done.stdout.split()
    assert 0 < len(used) <= most, used
    assert not {"plan_steps", "judge_steps"} & set(used)  # for several groups only
