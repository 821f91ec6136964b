"""`make validate`: claims and scripts are matched, verdicts, limits of time, Ctrl-C, the report."""

import json
import os
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAD = "| claim | script | asked | measured |\n|---|---|---|---|\n"
HOLDS = '''"""Claim: one & one are two.

    python validation/holds.py [--quick] [--figure FILE.png]    # 3 s, 1 s quick
"""
import os, sys
from matplotlib.figure import Figure
print("options", *sys.argv[1:2], "threads", os.environ["OMP_NUM_THREADS"])
print("largest absolute error, allowed 1.0e-08: 2.0e-10")
print("7 comparisons, all hold, in 0.1 s")
if "--figure" in sys.argv:
    Figure().savefig(sys.argv[-1])
'''
FAILS = '''"""Claim: one and one are three."""
print("1 + 1  3  2  1.0e+00  FAILS (allowed 1.0e-08) <&>")
print("1 comparisons, 1 FAIL, in 0.1 s")
raise SystemExit(1)
'''
NOTHING = '''"""Claim: what an optional package says is so."""
print("Nothing was compared: pip install it.")
raise SystemExit(77)
'''
ASLEEP = '''"""Claim: what is started here ends with this script."""
import os, subprocess, sys, tempfile, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
print(child.pid, tempfile.mkdtemp(), flush=True)
time.sleep(100)
'''


@pytest.fixture
def project(tmp_path):
    """Writes scripts and their claims; gives the command that runs them."""

    def write(scripts, claims=None):
        folder, page = tmp_path / "scripts", tmp_path / "claims.md"
        folder.mkdir()
        for name, text in scripts.items():
            (folder / f"{name}.py").write_text(text)
        named = scripts if claims is None else claims
        rows = [
            rf"| $\kappa_{i}$ | `{name}.py` | $10^{{-8}}$ | 0 |" for i, name in enumerate(named)
        ]
        page.write_text(HEAD + "\n".join(rows))
        runner = [sys.executable, ROOT / "validation" / "_run.py", "--workers", "2"]
        return [*runner, "--scripts", folder, "--claims", page, "--out", tmp_path / "out"]

    return write


def run(command, *options):
    env = os.environ | {"PYTHONPATH": str(ROOT)}  # the package of this tree
    return subprocess.run(
        [*command, *options], capture_output=True, text=True, timeout=120, env=env
    )


def ended(pid):
    """Whether a process is over, or only waits to be taken note of."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Tags(HTMLParser):
    """Fails where tags are not closed in the order in which they were opened."""

    def __init__(self):
        super().__init__()
        self.open, self.images = [], 0

    def handle_starttag(self, tag, attrs):
        self.images += tag == "img" and dict(attrs)["src"].startswith("data:image/png;base64,")
        if tag not in {"meta", "img", "wbr"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.long
def test_scripts_that_hold_give_exit_code_0_and_a_page_with_their_figures(project, tmp_path):
    done = run(project({"holds": HOLDS}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 1 hold, with 7 comparisons" in done.stdout
    page, tags = (tmp_path / "out" / "report.html").read_text(), Tags()
    tags.feed(page)
    assert tags.images == 1 and not tags.open
    assert (
        "All hold" in page
        and "in part" not in page
        and "one &amp; one are two" in page
        and "<i>κ</i><sub>0</sub>" in page
    )
    assert "numpy" in page and "errors up to 0.02 of the allowed ones" in page


@pytest.mark.long
def test_a_quick_run_asks_for_the_quick_version_and_draws_nothing(project, tmp_path):
    """Whose verdict is of a part, and which takes the figure of an earlier run away."""
    figure = tmp_path / "out" / "figures" / "holds.png"
    figure.parent.mkdir(parents=True)
    figure.write_text("of an earlier run")
    done = run(project({"holds": HOLDS}), "--quick")
    assert done.returncode == 0
    assert "They take about 1 s, and longer when they first compile." in done.stdout
    assert "now: largest" not in done.stdout
    printed = (tmp_path / "out" / "output" / "holds.txt").read_text()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "options --quick threads" in printed
    assert "holds, in part" in page and "<img" not in page and not figure.exists()


@pytest.mark.long
def test_a_word_chooses_scripts_whose_time_is_said_and_what_was_measured(project, tmp_path):
    """Those of chosen scripts, in words and beside what was asked; all are in the report."""
    command = project({"holds": HOLDS.replace("# 3 s", "# 90 s"), "fails": FAILS})
    none = run(command, "--only", "nothing")
    assert none.returncode == 1 and "No script has nothing in its name" in none.stderr
    done = run(command, "--only", "hold")
    assert done.returncode == 0
    assert (
        "They take about 90 s, and longer when they first compile; with --quick about 1 s"
        in done.stdout
    )
    assert "  - κ₀\n    asked 10⁻⁸; measured 0\n" in done.stdout
    assert "  now: largest absolute error, allowed 1.0e-08: 2.0e-10" in done.stdout
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<td>largest absolute error, allowed 1.0e-08: 2.0e-10</td>" in page


@pytest.mark.long
def test_one_failure_is_shown_at_once_and_gives_exit_code_1(project, tmp_path):
    done = run(project({"holds": HOLDS, "fails": FAILS}))
    assert done.returncode == 1
    assert "| 1 + 1  3  2" in done.stdout and "1 of 2 hold" in done.stdout
    page = (tmp_path / "out" / "report.html").read_text()
    assert "1 of 2 scripts fail" in page and "(allowed 1.0e-08) &lt;&amp;&gt;" in page


@pytest.mark.long
def test_a_script_that_compares_nothing_is_skipped_and_does_not_hold(project, tmp_path):
    done = run(project({"holds": HOLDS, "nothing": NOTHING}), "--record", tmp_path / "kept.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 2 hold, 1 skipped, with 7 comparisons" in done.stdout
    assert "pip install it" in done.stdout
    assert "All hold, 1 skipped" in (tmp_path / "out" / "report.html").read_text()
    assert set(json.loads((tmp_path / "kept.json").read_text())) == {"holds.py"}


@pytest.mark.long
def test_nothing_is_recorded_as_holding_that_did_not_show_it(project, tmp_path):
    """Left half way, empty, an exit code that wraps to 0, comparisons that fail and an exit 77."""
    begin, hold = '"""Claim: x."""\nimport os, sys\n', 'print("5 comparisons, all hold", flush=1)\n'
    fail = hold.replace("all hold", "4 FAIL")
    scripts = {
        "half": f"{begin}{hold}os._exit(0)\n",
        "empty": begin,
        "wraps": f"{begin}{hold}sys.exit(256)\n",
        "misses": f"{begin}{fail}sys.exit(0)\n",
        "hides": f'{begin}{fail}print("Nothing was compared: x")\nsys.exit(77)\n',
        "ends": begin + hold,
    }
    kept = tmp_path / "kept.json"
    old = {
        "verdict": "holds",
        "quick": False,
        "date": "2026-01-02",
        "version": "9",
        "comparisons": 5,
        "script": "0",
    }
    kept.write_text(json.dumps({"hides.py": old}))
    done = run(project(scripts), "--record", kept)
    assert done.returncode == 1 and "1 of 6 hold" in done.stdout
    for why in (
        "half (left before its end, with exit code 0)",
        "empty (no summary",
        "wraps (exit code 1)",
        "The script ended with 256",
        "misses (exit code 0 after '5 comparisons, 4 FAIL')",
        "hides (exit code 77, that nothing was compared, after '5 comparisons, 4 FAIL')",
    ):
        assert why in done.stdout
    verdicts = {name: run["verdict"] for name, run in json.loads(kept.read_text()).items()}
    assert verdicts == {f"{name}.py": "FAILS" for name in scripts} | {"ends.py": "holds"}


@pytest.mark.long
def test_a_script_that_draws_nothing_though_it_says_so_fails(project):
    done = run(project({"holds": HOLDS.replace("Figure().savefig", "str")}))
    assert done.returncode == 1 and "drew no figure" in done.stdout


@pytest.mark.long
def test_a_claim_without_a_script_and_a_script_without_a_claim_fail(project):
    done = run(project({"holds": HOLDS}, ["forgotten"]))
    assert done.returncode == 1
    assert "forgotten.py: has a claim, but there is no such script" in done.stdout
    assert "holds.py: has no line in the table of claims" in done.stdout


@pytest.mark.long
def test_a_script_over_its_time_is_stopped_with_its_children(project, tmp_path):
    done = run(project({"asleep": ASLEEP, "holds": HOLDS}), "--timeout", "4")
    assert done.returncode == 1
    assert "TIMED OUT" in done.stdout and "stopped after 4 s" in done.stdout
    child, folder = (tmp_path / "out" / "output" / "asleep.txt").read_text().split()
    assert ended(child) and not Path(folder).exists()


@pytest.mark.long
@pytest.mark.parametrize(
    "kind",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)],
    ids=lambda kind: kind.name,
)
def test_ctrl_c_stops_everything_and_says_what_was_done(project, tmp_path, kind):
    command = project({"asleep": ASLEEP, "other": ASLEEP, "third": ASLEEP, "fails": FAILS})
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    outputs = [tmp_path / "out" / "output" / f"{name}.txt" for name in ("asleep", "fails", "other")]
    limit = time.monotonic() + 60
    while not all(path.exists() and path.read_text().strip() for path in outputs):
        assert time.monotonic() < limit
        time.sleep(0.1)
    time.sleep(0.5)
    os.kill(process.pid, kind)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    for line in ("stopped", "not run", "FAILS", "0 of 4 hold", "Interrupted"):
        assert line in printed
    assert all(ended(path.read_text().split()[0]) for path in (outputs[0], outputs[2]))
