"""Kinds that one test module defines are not known in the others; `--attack`, and its table.

Tests marked `long` run with `--long` or `--attack` only, and of those marked `repeats` all but the
first case.
"""

import gc
import os
from collections import Counter

import pytest

# Before numpy is imported, here and in the workers: each core has one, whose BLAS is to take no
# other's; threads of BLAS that wait for a busy core take fifty times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from meanfield.core.kinds import Kind


def families():
    """All families of kinds that are defined."""
    found, open_ = [], [Kind]
    while open_:
        kind = open_.pop()
        open_ += kind.__subclasses__()
        if "kinds" in vars(kind) and kind is not Kind:
            found.append(kind)
    return found


OF_TESTS: dict[type, tuple[type, str]] = {}  # kinds of test modules: their family, their name


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    """Two test modules may choose the same name for a kind: each is known to its own tests only."""
    report = yield  # a module has been imported
    for family in families():
        for name, kind in list(family.kinds.items()):
            if not kind.__module__.startswith("meanfield."):
                OF_TESTS[kind] = (family, name)
                del family.kinds[name]
    return report


@pytest.fixture(autouse=True)
def kinds_of_this_module(request):
    """Those of the package, and those that the module of the test names."""
    before = [(family, dict(family.kinds)) for family in families()]
    for value in vars(request.module).values():
        if isinstance(value, type) and value in OF_TESTS:
            family, name = OF_TESTS[value]
            family.kinds[name] = value
    yield
    for family, kinds in before:  # modules of the package may have been imported meanwhile
        ours = {n: k for n, k in family.kinds.items() if k.__module__.startswith("meanfield.")}
        family.kinds.clear()
        family.kinds.update(ours | kinds)


def pytest_configure(config):
    """Collect from the end in every second worker: each reads what the other has rewritten."""
    gc.set_threshold(50_000, 20, 20)  # what is collected stays, and to look through it takes long
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    if config.args == ["tests"] and int(worker[2:]) % 2:
        tests = config.rootpath / "tests"
        ignored = {config.invocation_params.dir / path for path in config.getoption("ignore") or ()}
        parts = {*tests.glob("[!_]*/"), *tests.glob("test_*.py")} - ignored  # named are not ignored
        config.args = [str(path) for path in sorted(parts, reverse=True)]


def pytest_addoption(parser):
    parser.addoption("--long", action="store_true", help="tests that are marked long, too")
    parser.addoption("--attack", action="store_true", help="long attacks, see tests/robustness")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what is long, and all but the first case of what repeats, unless asked for."""
    items.sort(key=lambda item: item.path)  # in all workers alike
    begun = set()
    for item in items:
        if item.get_closest_marker("repeats"):
            test = item.nodeid.partition("[")[0]
            if test in begun:
                item.add_marker("long")
            begun.add(test)
    if config.getoption("--long") or config.getoption("--attack"):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_terminal_summary(terminalreporter, config):
    """What came of the attacks, as a table that is kept in out/attack.md too."""
    if not config.getoption("--attack"):
        return
    found: dict[str, Counter] = {}
    for report in (r for reports in terminalreporter.stats.values() for r in reports):
        if getattr(report, "when", "") == "teardown":
            name = report.nodeid.removeprefix("tests/robustness/").split("[")[0]
            for outcomes in (v for n, v in report.user_properties if n == "attack"):
                found.setdefault(name, Counter()).update(outcomes)
    table = ["| attack | tried | outcomes |", "|---|---|---|"]
    for name, outcomes in sorted(found.items()):
        file, claim = name.removesuffix("()").split("::")
        words = claim.removeprefix("test_").replace("_", " ")
        counts = ", ".join(f"{count} {what}" for what, count in sorted(outcomes.items()))
        table.append(f"| `{file}`: {words} | {outcomes.total()} | {counts} |")
    path = config.rootpath / "out" / "attack.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*table, ""]), encoding="utf-8")
    terminalreporter.section("attacks: outcomes")
    for line in table:
        terminalreporter.line(line)
