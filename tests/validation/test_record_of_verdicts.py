"""What cannot be recorded, or run, is refused before anything runs; a record names its code."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import meanfield as mf

ROOT = Path(__file__).resolve().parents[2]
HEAD = "| claim | script | asked | measured |\n|---|---|---|---|\n"
PARTS = (
    "_run", "_record", "_literature", "_page", "_progress", "_pool", "_claims", "_verdicts",
    "_report",
)  # fmt: skip
NAMES = ("tokens", "more_tokens", "density")


@pytest.fixture
def runner(monkeypatch):
    """The runner, within this process; no script starts."""
    monkeypatch.syspath_prepend(str(ROOT / "validation"))
    import _run

    monkeypatch.setattr(_run, "run_scripts", None)
    yield _run
    for name in PARTS:
        sys.modules.pop(name, None)


@pytest.fixture
def refusal(runner, monkeypatch, tmp_path, capsys):
    """What the runner says, of scripts that are never started, before it ends."""
    monkeypatch.setattr("_record.IMPORTED", ROOT)
    folder, page = tmp_path / "scripts", tmp_path / "claims.md"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text('"""Claim: x."""\n')
    page.write_text(HEAD + "\n".join(f"| x | `{name}.py` | 1 | 0 |" for name in NAMES))

    def said(*options):
        of_tests = ["--scripts", folder, "--claims", page, "--out", tmp_path / "out"]
        with pytest.raises(SystemExit) as ended:
            runner.main([str(option) for option in (*of_tests, *options)])
        assert ended.value.code not in (None, 0)
        return f"{ended.value.code} {capsys.readouterr().err}"

    return said


@pytest.mark.parametrize("seconds", ["-1", "0", "nan"])
def test_a_limit_of_time_is_positive(refusal, seconds):
    assert "--timeout needs a number of seconds above 0" in refusal("--timeout", seconds)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{broken", "is no record of verdicts: Expecting property name"),
        ("[1]", "is no record of verdicts: it has no names of scripts"),
        ('{"a.py": {"verdict": "holds"}}', "is no record of verdicts: a.py needs comparisons, "),
        (b"\xff\xfe", "is no record of verdicts"),
    ],
)
def test_a_record_that_cannot_be_read_is_left_as_it_is(refusal, tmp_path, text, message):
    path, kept = tmp_path / "kept.json", text if isinstance(text, bytes) else text.encode()
    path.write_bytes(kept)
    assert message in refusal("--record", path)
    assert path.read_bytes() == kept and not (tmp_path / "out" / "report.html").exists()


def test_a_record_that_cannot_be_written_is_refused(refusal, tmp_path, monkeypatch):
    assert "is a folder: name a file" in refusal("--record", tmp_path)
    assert "there is no folder" in refusal("--record", tmp_path / "none" / "kept.json")
    (tmp_path / "locked.json").write_text("{}")
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "locked.json")
    assert "may not be written" in refusal("--record", tmp_path / "locked.json")


def test_a_folder_that_cannot_be_written_is_refused(refusal, tmp_path):
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "out"):
        assert f"--out {out} cannot be written: " in refusal("--out", out)
    (tmp_path / "out" / "report.html").mkdir(parents=True)
    assert f"--out {tmp_path / 'out'} cannot be written: " in refusal()


def test_the_record_of_the_package_is_of_its_own_scripts(refusal, tmp_path):
    ours = ROOT / "validation", ROOT / "docs/reference/claims.md"
    package = ROOT / "meanfield/app/verdicts.json"
    before = package.read_bytes()
    assert "--scripts" in refusal("--record", package)
    assert "--claims" in refusal("--record", package, "--scripts", ours[0])
    other = tmp_path / "app"
    other.mkdir()
    (other / "literature.toml").touch()
    given = ("--scripts", ours[0], "--claims", ours[1], "--record", other / "verdicts.json")
    assert f"--record {other / 'verdicts.json'} is not {package}" in refusal(*given)
    assert package.read_bytes() == before


def test_verdicts_on_another_tree_are_not_recorded(refusal, tmp_path, monkeypatch):
    monkeypatch.setattr("_record.IMPORTED", tmp_path)
    found = refusal("--record", tmp_path / "kept.json")
    assert f"meanfield is imported from {tmp_path}" in found and f"PYTHONPATH={ROOT}" in found


def test_each_word_has_to_match(refusal):
    found = refusal("--only", "density", "nonsense", "tokens")
    assert "No script has nonsense in its name" in found and "more_tokens" in found


def test_a_row_is_checked_by_its_own_scripts_alone(runner):
    """Not by others whose name contains that of one of its scripts."""
    scripts = [runner.Script(Path(f"{name}.py")) for name in NAMES]
    claims = [runner.Claim("x", f"{name}.py", "1", "0") for name in NAMES]
    found = runner.selected([], ["tokens.py"], claims, scripts, {"more_tokens.py": "wrong"})
    assert [script.name for script in found[1]] == ["tokens.py"] == [found[0][0].script]
    assert len(found[0]) == 1 and not found[2]
    both = runner.selected(["dens"], ["tokens.py"], claims, scripts, {})[1]
    assert [script.name for script in both] == ["tokens.py", "density.py"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_version_is_that_of_the_code_that_runs(runner, tmp_path):
    """Of a checkout that of git, and whether it was changed; the record itself is no change."""
    import _record

    def git(*words):
        who = ("-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false")
        command = ["git", "-C", tmp_path, *who, *words]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    record, code = tmp_path / "meanfield/app/verdicts.json", tmp_path / "meanfield/code.py"
    new = tmp_path / "validation/new.py"
    for path in (record, code, new.with_name("old.py")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    assert _record.version(tmp_path) == mf.__version__  # no checkout
    git("init")
    assert _record.version(tmp_path) == f"{mf.__version__}-dirty"  # one that git cannot describe
    git("add", ".")
    git("commit", "-m", "x")
    commit = git("rev-parse", "--short", "HEAD")
    record.write_text(json.dumps({"a.py": {}}))
    assert _record.version(tmp_path) == commit
    assert _record.version(tmp_path / "meanfield") == mf.__version__  # a part of a checkout
    new.touch()
    assert _record.version(tmp_path) == f"{commit}-dirty"
    new.unlink()
    git("tag", "v1.2")
    assert _record.version(tmp_path) == "v1.2"
    code.write_text("changed")
    assert _record.version(tmp_path) == "v1.2-dirty"
