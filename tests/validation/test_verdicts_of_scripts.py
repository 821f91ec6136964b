"""A script holds if it ended by itself with 0 and its reports say so, and not otherwise."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOLD = "x  1  1  0.0e+00\n5 comparisons, all hold, in 0.1 s\n"
FAIL = "x  1  2  1.0e+00  FAILS (allowed 1.0e-08)\n5 comparisons, 3 FAIL, in 0.1 s\n"
NONE = "0 comparisons, all hold, in 0.1 s\n"
WHY = "Nothing was compared: pip install it.\n"


@pytest.fixture
def parts(monkeypatch):
    """The files of validation/ that print a report and judge one."""
    monkeypatch.syspath_prepend(str(ROOT / "validation"))
    import _report
    import _verdicts

    yield _report, _verdicts
    for name in ("_report", "_verdicts"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("code", "printed", "verdict", "why"),
    [
        (0, HOLD, "holds", ""),
        (None, f"some text\n{HOLD}\n{HOLD}more text\n", "holds", ""),
        (0, FAIL, "FAILS", "exit code 0 after '5 comparisons, 3 FAIL"),
        (0, HOLD + FAIL, "FAILS", "exit code 0 after '5 comparisons, 3 FAIL"),
        (0, FAIL.splitlines()[0] + "\n" + HOLD, "FAILS", "exit code 0 after 'x  1  2"),
        (0, NONE, "FAILS", "exit code 0 after '0 comparisons"),
        (0, "", "FAILS", "no summary"),
        (0, "All is well.\n", "FAILS", "no summary"),
        (1, HOLD, "FAILS", "exit code 1"),
        (77, WHY, "skipped", "pip install it"),
        (77, f"downloading\n{WHY}bye\n", "skipped", "pip install it"),
        (77, FAIL + WHY, "FAILS", "exit code 77, that nothing was compared, after '5 comparisons"),
        (77, HOLD + WHY, "FAILS", "exit code 77, that nothing was compared, after '5 comparisons"),
        (77, "", "FAILS", "exit code 77 without 'Nothing was compared: why'"),
        (-11, HOLD, "FAILS", "killed by SIGSEGV"),
        (-40, HOLD, "FAILS", "killed by signal 40"),
    ],
)
def test_a_verdict_needs_the_exit_code_and_the_summary(parts, code, printed, verdict, why):
    status, judge = parts[1].status, parts[1].judge
    found, said = judge(code if code and code < 0 else status(code), printed)
    assert found == verdict and why in said and bool(said) == (verdict != "holds")


@pytest.mark.parametrize("code", [256, 512, -256, 78, 333])
def test_an_exit_code_that_the_system_would_wrap_is_a_message(parts, code):
    """Which Python ends a process with exit code 1 for."""
    assert f"ended with {code}: use 0" in parts[1].status(code)


def test_the_code_of_a_process_that_is_left_in_the_middle_is_no_verdict(parts):
    """`os._exit(0)` after a first report that holds."""
    assert parts[1].judge(0, HOLD) == ("FAILS", "left before its end, with exit code 0")


@pytest.mark.parametrize(
    ("measured", "verdict"), [([1.0], "holds"), ([1.0, 2.0], "FAILS"), ([float("nan")], "FAILS")]
)
def test_what_a_report_prints_is_understood(parts, capsys, measured, verdict):
    report = parts[0].Report(["case"])
    for value in measured:
        report.compare("x", predicted=1.0, measured=value, tolerance=1e-8)
    code = report.verdict()
    printed = capsys.readouterr().out
    status, judge = parts[1].status, parts[1].judge
    assert judge(status(code), printed)[0] == verdict
    assert judge(status(0), printed)[0] == verdict


def test_a_report_without_comparisons_fails(parts, capsys):
    assert parts[0].Report(["case"]).verdict() == 1
    assert parts[1].judge(parts[1].status(0), capsys.readouterr().out)[0] == "FAILS"


def test_a_script_that_is_skipped_says_why(parts, capsys):
    code = parts[0].skipped("pip install it.")
    judged = parts[1].judge(parts[1].status(code), capsys.readouterr().out)
    assert judged == ("skipped", "Nothing was compared: pip install it.")
