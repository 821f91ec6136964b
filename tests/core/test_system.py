"""Differences between systems: what a process may take of memory, which packages pip installs."""

import math
import platform
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from meanfield.core import system
from meanfield.core.system import available_memory

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def with_files(folder, **files):
    """A folder with files of the system."""
    for name, text in files.items():
        file = folder / name.replace("__", "/").replace("DOT", ".")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


MACHINE = {"proc__meminfo": "MemTotal: 64 kB\nMemAvailable: 40 kB\nSwapFree: 8 kB\n"}


def test_the_machine_limits_memory(tmp_path):
    assert available_memory(with_files(tmp_path, **MACHINE)) == 48 * 1024


def test_a_container_of_version_2_limits_memory(tmp_path):
    files = {
        "proc__self__cgroup": "0::/a/b\n",
        "sys__fs__cgroup__a__memoryDOTmax": "9000\n",
        "sys__fs__cgroup__a__memoryDOTcurrent": "5000\n",
        "sys__fs__cgroup__a__memoryDOTstat": "anon 1\ninactive_file 1000\n",
        "sys__fs__cgroup__a__b__memoryDOTmax": "max\n",
        "sys__fs__cgroup__a__b__memoryDOTcurrent": "1\n",
    }
    assert available_memory(with_files(tmp_path, **MACHINE, **files)) == 5000


def test_a_container_of_version_1_limits_memory(tmp_path):
    files = {
        "proc__self__cgroup": "5:cpu:/x\n3:hugetlb,memory:/job\n",
        "sys__fs__cgroup__memory__job__memoryDOTlimit_in_bytes": "9000\n",
        "sys__fs__cgroup__memory__job__memoryDOTusage_in_bytes": "8000\n",
    }
    assert available_memory(with_files(tmp_path, **MACHINE, **files)) == 1000


def test_where_nothing_tells_the_memory_there_is_no_limit(tmp_path, monkeypatch):
    """A number all the same, which other numbers are compared with and multiplied by."""
    monkeypatch.setattr(system, "_of_machine", lambda root: math.inf)
    monkeypatch.setattr(system, "limit", lambda name: math.inf)
    assert available_memory(tmp_path) == sys.maxsize


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13), (3, 14)])
@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "arm64", "AMD64"])
@pytest.mark.parametrize("name", ["linux", "darwin", "win32"])
def test_pyshtools_is_asked_for_where_pip_installs_it(monkeypatch, name, machine, version):
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    (wanted,) = (Requirement(one) for one in project["dependencies"] if "pyshtools" in one)
    here = {"sys_platform": name, "platform_machine": machine}
    monkeypatch.setattr(sys, "platform", name)
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    monkeypatch.setattr(platform, "machine", lambda: machine)
    installs = wanted.marker.evaluate(here | {"python_version": ".".join(map(str, version))})
    assert system.pyshtools_has_wheel() == installs
