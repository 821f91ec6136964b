"""What a bug report needs: versions, FFTW, compiled code, threads, licences."""

import os
import platform
import shutil
import sys
from importlib import import_module, metadata
from typing import Any

__all__ = ["doctor", "in_words", "version_of"]

# Name of the package and licence of its binary wheel.
REQUIRED = {
    "numpy": "BSD-3-Clause",
    "scipy": "BSD-3-Clause",
    "numba": "BSD-2-Clause",
    "llvmlite": "BSD-2-Clause AND Apache-2.0 WITH LLVM-exception",
    "pyfftw": "BSD-3-Clause; its wheels contain FFTW, GPL-2.0-or-later",
    "ducc0": "GPL-2.0-or-later",
    "pyshtools": "BSD-3-Clause",
    "POT": "MIT",
    "xarray": "Apache-2.0",
    "h5netcdf": "BSD-3-Clause",
    "h5py": "BSD-3-Clause",
    "matplotlib": "Matplotlib licence (PSF-based)",
    "tqdm": "MPL-2.0 AND MIT",
    "threadpoolctl": "BSD-3-Clause",
    "click": "BSD-3-Clause",
    "lazy_loader": "BSD-3-Clause",
}
OPTIONAL = {"imageio-ffmpeg": "BSD-2-Clause; its wheels contain ffmpeg, GPL-3.0-or-later"}
MODULES = {"POT": "ot", "imageio-ffmpeg": "imageio_ffmpeg"}  # where the name differs
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "DUCC0_NUM_THREADS",
)
LICENCE_NOTE = """\
FFTW, inside the wheels of pyfftw, and ducc0 are under the GNU General Public License, version 2
or later. They are installed beside meanfield, which is BSD-3-Clause, and are not part of it.
Whoever redistributes a bundle that contains them has to meet the terms of the GPL."""


def doctor() -> dict[str, Any]:
    """The state of this installation as plain data; `in_words` puts it in words.

    Returns
    -------
    dict
        ``meanfield``, ``python``, ``platform`` and ``ffmpeg`` (where it is, or None);
        ``packages``, for each its version (None if missing), licence, whether it is required,
        and why it cannot be imported (None if it can); ``problems``, one line for each required
        package that is missing or broken; ``fftw``, ``numba``, ``threads`` and ``licences``.
    """
    packages = {name: _package(name, licence, True) for name, licence in REQUIRED.items()}
    packages |= {name: _package(name, licence, False) for name, licence in OPTIONAL.items()}
    return {
        "meanfield": version_of("meanfield"),
        "python": f"{platform.python_version()} ({sys.implementation.name})",
        "platform": platform.platform(),
        "packages": packages,
        "problems": [
            f"{name} {package['broken'] or 'is not installed'}: pip install {name}"
            for name, package in packages.items()
            if package["required"] and (package["broken"] or not package["version"])
        ],
        "fftw": _fftw() if not packages["pyfftw"]["broken"] else None,
        "numba": _numba() if not packages["numba"]["broken"] else None,
        "threads": _threads(),
        "ffmpeg": _ffmpeg(),
        "licences": LICENCE_NOTE,
    }


def version_of(package: str) -> str | None:
    """The installed version of a package; None if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _package(name: str, licence: str, required: bool) -> dict[str, Any]:
    broken = None
    try:
        import_module(MODULES.get(name, name))
    except Exception as error:  # whatever a broken installation raises belongs in the report
        broken = f"cannot be imported ({type(error).__name__}: {error})"
    return {
        "version": version_of(name),
        "licence": licence,
        "required": required,
        "broken": broken,
    }


def _fftw() -> str | None:
    from ..core.errors import MeanfieldError

    try:
        from ..lowlevel.fourier import fftw_version

        return fftw_version()
    except (MeanfieldError, ImportError, OSError):
        return None


def _probe() -> None:
    """Never compiled: numba is only asked where it would keep the result."""


def _numba() -> dict[str, Any]:
    import numba

    try:
        cache = numba.njit(cache=True)(_probe).stats.cache_path
    except RuntimeError:  # no folder can be written
        cache = None
    return {
        "cache": cache,
        "threading_layer": numba.config.THREADING_LAYER,
        "threads": numba.get_num_threads(),
    }


def _threads() -> dict[str, Any]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    set_here = {name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ}
    return {"cores": os.cpu_count(), "usable": usable, "environment": set_here}


def _ffmpeg() -> str | None:
    found = shutil.which("ffmpeg")
    if found is None and version_of("imageio-ffmpeg"):
        try:
            from imageio_ffmpeg import get_ffmpeg_exe

            found = get_ffmpeg_exe()
        except (ImportError, RuntimeError):
            return None
    return found


def in_words(report: dict[str, Any]) -> str:
    """The report of `doctor` in words, for a terminal or a bug report."""
    numba, threads = report["numba"], report["threads"]
    variables = ", ".join(f"{name}={value}" for name, value in threads["environment"].items())
    lines = [
        f"meanfield    {report['meanfield'] or 'not installed; running from its source folder'}",
        f"python       {report['python']}",
        f"platform     {report['platform']}",
        f"cores        {threads['usable']} usable of {threads['cores']}",
        f"threads      {variables or 'no variable set; each library uses its default'}",
        f"fftw         {report['fftw'] or 'not found'}",
    ]
    if numba:
        kept = numba["cache"] or "nowhere: compiled again in every process (set NUMBA_CACHE_DIR)"
        lines += [
            f"numba        {numba['threads']} threads, layer {numba['threading_layer']}",
            f"             compiled code is kept in {kept}",
        ]
    lines += [f"ffmpeg       {report['ffmpeg'] or 'none: movies are written as .gif only'}", ""]
    lines += [f"{'package':<16}{'version':<16}licence"]
    lines += [_row(name, package) for name, package in report["packages"].items()]
    lines += ["", report["licences"], ""]
    lines += report["problems"] or ["Everything that is required is installed."]
    return "\n".join(lines)


def _row(name: str, package: dict[str, Any]) -> str:
    version = package["version"] or ("MISSING" if package["required"] else "not installed")
    return f"{name:<16}{version:<16}{package['licence']}"
