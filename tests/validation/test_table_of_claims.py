"""The table of claims is read as it is shown, and scripts say what the runner needs to know."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAD = "| claim | script | asked | measured |\n|---|---|---|---|\n"


@pytest.fixture
def parts(monkeypatch):
    """The files of validation/ that read claims and write formulas."""
    monkeypatch.syspath_prepend(str(ROOT / "validation"))
    import _claims
    import _pool

    yield _claims, _pool
    for name in ("_claims", "_pool"):
        sys.modules.pop(name, None)


def test_rows_are_claims(parts, tmp_path):
    page = tmp_path / "claims.md"
    page.write_text(
        f"# Claims\n\n{HEAD}| $\\vert x\\vert$ \\| y | `a_b.py` | 1 % | 0 |\n\nText.\n\n"
        "| claim | command | asked | measured |\n|---|---|---|---|\n| z | `make test-x` | 1 | 0 |\n"
    )
    (claim,) = parts[0].read_claims(page)
    assert (claim.script, claim.asked, claim.measured) == ("a_b.py", "1 %", "0")
    assert claim.text == r"$\vert x\vert$ \| y"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("| $|x|$ | `a.py` | 1 | 0 |", r"line 3: a row has four cells .* has 6"),
        ("| x | a script | 1 | 0 |", "line 3: the second cell names a script"),
        ("", "has no table of claims"),
    ],
)
def test_rows_that_are_not_claims_are_refused(parts, tmp_path, row, message):
    page = tmp_path / "claims.md"
    page.write_text(HEAD + row)
    with pytest.raises(ValueError, match=message):
        parts[0].read_claims(page)


def test_a_script_says_which_options_it_takes_and_how_long(parts, tmp_path):
    path = tmp_path / "a.py"
    path.write_text(
        '"""Claim: this\nholds.\n\n    python validation/a.py [--quick]  # 60 s, 8 s quick\n"""'
    )
    script = parts[0].Script(path)
    assert script.title == "This holds."
    assert script.takes("--quick") and not script.takes("--figure")
    assert (script.seconds(False), script.seconds(True)) == (60, 8)
    assert parts[1].limit(script, quick=True) == 160
    silent = parts[0].Script(tmp_path / "none.py")
    assert silent.seconds(False) == float("inf") and parts[1].limit(silent, False) == 1800


def test_slow_scripts_have_a_quick_version(parts):
    scripts = parts[0].scripts_of(ROOT / "validation")
    silent = [script.name for script in scripts if script.seconds(True) == float("inf")]
    assert not silent, f"scripts that do not say how long they take: {silent}"
    slow = [s.name for s in scripts if s.seconds(False) >= 10 and not s.takes("--quick")]
    assert not slow, f"scripts of 10 s and more need --quick: {slow}"
