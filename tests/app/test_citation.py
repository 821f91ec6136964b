"""What to cite: entries are found by the words in which docstrings name their sources."""

import pkgutil
import re
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import meanfield as mf
from meanfield.app.citation import entries
from meanfield.core.namesake import DISTRIBUTION

CIRCLE = mf.Circle(16)
PACKAGE = Path(mf.__file__).parent
ROOT = Path(__file__).resolve().parents[2]


def keys(text):
    return re.findall(r"^@\w+\{(\w+),", text, re.MULTILINE)


def test_the_package_is_cited_with_the_version_installed_and_the_year_of_its_file():
    number = version(DISTRIBUTION)
    words = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (year,) = re.findall(r"^date-released: (\d{4})-", words, re.MULTILINE)
    assert mf.__version__ == number
    assert f"version = {{{number}}},\n  year = {{{year}}}" in mf.citation()


def test_a_run_cites_its_drift_its_scheme_and_the_package():
    model = mf.Transformer(mf.USA(1.0), 3.0)
    run = mf.solve(model, CIRCLE.von_mises(0, 1), (0, 0.1), scheme=mf.steppers.Krogstad)
    found = keys(mf.citation(run))
    assert found[0] == "meanfield"
    assert {"geshkovski2025mathematical", "krogstad2005generalized"} <= set(found)
    assert "hairer1993solving" not in found and "sander2022sinkformers" not in found


def test_parts_are_found_where_they_stand():
    drift = mf.SA(1.0) + mf.Attention(weights=mf.Sinkhorn())
    found = keys(mf.citation(mf.Transformer(drift, 3.0)))
    assert "sander2022sinkformers" in found
    tokens = mf.solve(mf.Transformer(mf.SA(1.0)), mf.Tokens.uniform(4, 3, rng=0), (0, 0.1))
    assert "hairer1993solving" in keys(mf.citation(tokens))


def test_implicit_steps_are_cited():
    stiff = mf.Transformer(mf.Attention(V=-np.diag([1.0, 30.0])))
    run = mf.solve(stiff, mf.Gaussian([1.0, 0.0], [[1.0, 0.3], [0.3, 2.0]]), (0, 50.0))
    assert run.stats["schemes"]["Radau"] > 0
    assert "hairer1996solving" in keys(mf.citation(run))


def test_results_cite_the_function_that_makes_them():
    diagram = mf.branches(mf.USA(1.0), CIRCLE, (1.6, 1.9), stability=False)
    assert "keller1977numerical" in keys(mf.citation(diagram))
    assert "delon2010fast" in keys(mf.citation(mf.wasserstein))
    one = mf.citation(diagram, mf.wasserstein, diagram)
    assert len(keys(one)) == len(set(keys(one))), "each entry once"


def test_every_entry_is_named_by_a_docstring():
    """A change of the words in a docstring must not lose its entry."""
    source = " ".join(
        " ".join(path.read_text(encoding="utf-8").split()) for path in PACKAGE.rglob("*.py")
    )
    assert [known for known in entries() if known not in source] == []


def test_entries_are_bibtex():
    for entry in entries().values():
        assert entry.count("{") == entry.count("}")
        fields = set(re.findall(r"^  (\w+) = \{", entry, re.MULTILINE))
        assert {"author", "title", "year"} <= fields and "known" not in fields


def test_every_kind_of_result_names_its_function():
    for module in pkgutil.walk_packages(mf.__path__, "meanfield."):
        if "__main__" not in module.name and "testing" not in module.name:
            import_module(module.name)
    from meanfield.results.files import Result

    def whole(kind):
        below = [one for kind in kind.__subclasses__() for one in whole(kind)]
        return below or [kind]

    ours = [kind for kind in whole(Result) if kind.__module__.startswith("meanfield")]
    assert len(ours) > 1 and all(callable(getattr(mf, kind.made_by)) for kind in ours)


@pytest.mark.parametrize("thing", [1.0, "USA", np.eye(2), None])
def test_what_has_no_sources_is_refused(thing):
    with pytest.raises(TypeError, match="citation takes"):
        mf.citation(thing)
