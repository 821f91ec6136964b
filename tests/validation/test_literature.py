"""The table of the literature is complete, and what it names exists; its page is up to date."""

import json
import re
import sys
from datetime import datetime
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner

from meanfield.app.cli import main
from meanfield.app.literature import last_runs, names_of, rows, sources
from meanfield.core.errors import MeanfieldError

ROOT = Path(__file__).resolve().parents[2]
VERDICTS = {"holds", "holds with a correction", "open", "not checked"}
NUMBERED = {
    "survey": """theorem-1 remark-2 theorem-3 corollary-4 theorem-5 theorem-6 theorem-7
        figure-1 figure-2 figure-3 figure-4""",
    "summary": "experiment-1 experiment-2 experiment-3 question-1 question-2 question-3",
    "castin": """theorem-3.1 definition-3.2-remark-3.3 theorem-3.4 lemma-4.1 propositions-4.2-4.4
        figure-1 figure-1-appendix figure-2 figure-2-appendix figure-3 figures-rest""",
    "slides": """proposition-gaussian proposition-closed-form estimates
        question-1 question-2 question-3""",
    "cited": """polytopes hardmax-leaders several-unstable-degrees signal-propagation coarsening
        low-temperature stochastic-tokens multi-head""",
    "bruno": "remark-2.1 contribution-1 figures-1-2 figures-3-4",
    "later": "kuramoto-daido",
}


@pytest.fixture
def literature(monkeypatch):
    """The file of validation/ that writes the page."""
    monkeypatch.syspath_prepend(str(ROOT / "validation"))
    names = ("_literature", "_record", "_page", "_pool", "_claims", "_verdicts", "_report")
    import _literature

    yield _literature
    for name in names:
        sys.modules.pop(name, None)


def test_every_number_of_the_sources_is_there_once():
    keys = [row.key for row in rows()]
    assert len(set(keys)) == len(keys)
    expected = {f"{source}:{key}" for source, some in NUMBERED.items() for key in some.split()}
    assert expected <= set(keys)
    assert {row.source for row in rows()} == set(sources()) == set(NUMBERED)


@pytest.mark.parametrize("number", range(1, 10))
def test_every_equation_of_the_survey_is_named(number):
    assert any(f"({number})" in row.where for row in rows() if row.source == "survey")


def test_no_row_is_empty_and_all_that_it_names_exists(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    chapters = {name for chapter in import_module("chapters").CHAPTERS for name in chapter.examples}
    for row in rows():
        assert row.title and row.where and row.says.strip() and row.found.strip()
        assert row.verdict in VERDICTS
        assert bool(row.correction) == (row.verdict == "holds with a correction"), row.key
        assert row.checks or row.verdict == "not checked", row.key
        assert len(row.claims) == sum(":" in check for check in row.checks)
        for script in row.scripts:
            assert (ROOT / ("" if "/" in script else "validation") / script).exists(), script
        for example in row.draws:
            assert example.removesuffix(".py") in chapters, row.key
        for page in row.pages:
            assert (ROOT / "docs" / page).exists(), page
        for key in re.findall(r"`(\w+:[\w.-]+)`", row.found):
            assert rows(key)[0].key == key


def test_verdicts_of_all_scripts_are_recorded():
    """If this fails: make validate VALIDATE_ARGS="--row KEY --record" records those of a row."""
    named = {script for row in rows() for script in row.scripts if "/" not in script}
    assert named <= set(last_runs())
    failing = [name for name, run in last_runs().items() if run["verdict"] != "holds"]
    assert not failing, f"scripts whose last recorded run does not hold: {failing}"
    for name, run in last_runs().items():
        assert (ROOT / "validation" / name).exists()
        assert set(run) == {"verdict", "quick", "date", "version", "comparisons", "script"}


@pytest.fixture
def failing(monkeypatch, tmp_path):
    """The recorded verdicts, of which w2_rates.py fails and slow_motion.py has none."""
    runs = last_runs()
    runs["w2_rates.py"] |= {"verdict": "FAILS", "date": "2026-12-24"}
    del runs["slow_motion.py"]
    path = tmp_path / "verdicts.json"
    path.write_text(json.dumps(runs))
    monkeypatch.setattr("meanfield.app.literature.VERDICTS", path)


def test_a_row_whose_script_fails_is_not_shown(literature, failing):
    """By the command, its list and the page; what no script of theirs contradicts stays."""
    said = "not shown: w2_rates.py FAILS (2026-12-24)"
    assert said in CliRunner().invoke(main, ["literature", "survey:theorem-5"]).output
    of_all = CliRunner().invoke(main, ["literature"]).output
    assert f"survey:theorem-5                    {said}" in of_all
    assert "survey:theorem-6                    holds with a correction" in of_all
    assert rows("survey:5.1-slow-motion")[0].standing.startswith(
        "not shown: slow_motion.py has no recorded run"
    )
    page = literature.page()
    assert f"`survey:theorem-5`, section 4.3: **{said}**" in page
    (survey,) = (line for line in page.splitlines() if line.startswith("| The survey |"))
    affected = [
        row for row in rows() if {"w2_rates.py", "slow_motion.py"} & set(row.scripts)
        and row.source == "survey" and row.verdict.startswith("holds")
    ]  # fmt: skip
    assert survey.endswith(f"| {len(affected)} |")


def test_the_page_is_up_to_date(literature):
    """If this fails: python validation/_literature.py writes it again."""
    assert literature.PAGE.read_text(encoding="utf-8") == literature.page()


def test_a_quick_run_does_not_replace_one_in_full(literature, tmp_path):
    from _claims import Script
    from _page import Run
    from _pool import Outcome
    from _record import record

    path = tmp_path / "verdicts.json"
    script = tmp_path / "a.py"
    script.write_text('"""Claim: x.\n\n    python validation/a.py [--quick]  # 9 s\n"""')
    outcome = Outcome(Script(script), "holds", output="7 comparisons, all hold\n")
    for quick in (False, True):
        run = Run([outcome], datetime(2026, 1, 2), 1.0, 1, 1, quick, "9.9", "")
        record(path, run)
    assert '"quick": false' in path.read_text() and '"comparisons": 7' in path.read_text()


def test_a_claim_names_the_rows_that_it_checks():
    (claim,) = (c for c in rows("survey:theorem-7")[0].claims if "Below and above" in c.text)
    assert "survey, Theorem 7, long contexts" in names_of(claim)


def test_every_figure_of_the_survey_has_an_example():
    table = (ROOT / "examples/README.md").read_text(encoding="utf-8")
    for number in range(1, 5):
        (row,) = rows(f"survey:figure-{number}")
        assert row.draws
        for example in row.draws:
            assert f"| figure {number} |" in table and f"`python examples/{example}`" in table


def test_a_key_stands_for_its_row_with_its_source_or_without():
    assert [row.key for row in rows("survey:remark-2")] == ["survey:remark-2"]
    assert [row.key for row in rows("remark-2")] == ["survey:remark-2"]
    assert [row.key for row in rows("figure-3")] == ["survey:figure-3", "castin:figure-3"]
    assert len(rows("remark")) > 3


def test_the_command_prints_rows():
    done = CliRunner().invoke(main, ["literature", "survey:theorem-6"])
    assert done.exit_code == 0 and "validation/pairing.py" in done.output
    several = CliRunner().invoke(main, ["literature", "the", "staircase"])
    assert "python examples/five_tokens.py" in several.output
    of_all = CliRunner().invoke(main, ["literature"]).output
    listed, _, about = of_all.partition("\n\nSources")
    assert listed.count("\n") + 1 == len(rows())
    assert all(f"\n{name}:" in about and text in about for name, text in sources().items())
    with pytest.raises(MeanfieldError, match="no row of the literature has 'xyzzy'"):
        rows("xyzzy")
